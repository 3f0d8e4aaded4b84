/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzzers host-*-fuzz.c have in common: one run for each seed, and
 * everything random in it follows from that.
 */
#ifndef HOST_FUZZ_H
#define HOST_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include "pure.h"

static u64 seed, rnd_state;
static bool verbose;

/* xorshift64* */
static inline u32 rnd(u32 n)
{
	rnd_state ^= rnd_state >> 12;
	rnd_state ^= rnd_state << 25;
	rnd_state ^= rnd_state >> 27;
	return n ? (u32)((rnd_state * 0x2545f4914f6cdd1dull) >> 32) % n : 0;
}

static inline void run_seed(void (*run)(void), u64 s)
{
	seed = s;
	rnd_state = s * 0x9e3779b97f4a7c15ull | 1;
	run();
}

/*
 * All seeds, or one that the command line names, with its trace; false: only
 * that one.
 */
static inline bool fuzz(int argc, char **argv, void (*run)(void), u64 runs)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("1..1");
	if (argc > 1) {
		verbose = true;
		run_seed(run, strtoull(argv[1], NULL, 0));
		return false;
	}
	for (u64 s = 1; s <= runs; s++)
		run_seed(run, s);
	return true;
}

#endif
