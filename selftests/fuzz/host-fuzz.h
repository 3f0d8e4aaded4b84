/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The common part of the fuzzers host-*-fuzz.c. A run takes all random choices from rnd(), which
 * takes them from a seed or from bytes. The bytes are a file of the corpus, or clang's libFuzzer
 * makes them from such a file: it looks for bytes that lead to new code, or to new values of
 * branches (fuzz-guided.sh, with GUIDED).
 *
 * A fuzzer defines RUNS, the number of seeds; HOLDS, the property that it checks; run() and
 * report().
 */
#ifndef HOST_FUZZ_H
#define HOST_FUZZ_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/pure.h"

static void run(void);		/* make one run */
static void report(void);	/* print statistics of all seeds, if no run failed */

static u64 seed, rnd_state;
static const char *file;	/* name of the file that the bytes are from */
static const u8 *bytes;		/* source of choices; NULL: the seed */
static size_t bytes_left;
static bool verbose;

/* xorshift64* */
static inline u32 next_random(void)
{
	rnd_state ^= rnd_state >> 12;
	rnd_state ^= rnd_state << 25;
	rnd_state ^= rnd_state >> 27;
	return (rnd_state * 0x2545f4914f6cdd1dull) >> 32;
}

/* Return a random number below @n: from the bytes, and after their end from the seed. */
static inline u32 rnd(u32 n)
{
	unsigned int size = n <= 256 ? 1 : n <= 65536 ? 2 : 4;
	u32 v = 0;

	if (n < 2)
		return 0;
	if (bytes_left < size)
		return next_random() % n;
	for (; size; size--, bytes_left--)
		v = v << 8 | *bytes++;
	return v % n;
}

/* Take the bytes themselves, at most @most; return how many there were. */
static inline size_t take_bytes(u8 *to, size_t most)
{
	size_t n = min(bytes_left, most);

	memcpy(to, bytes, n);
	bytes += n;
	bytes_left -= n;
	return n;
}

/* Are there choices left for another step? */
static inline bool more(void)
{
	return !bytes || bytes_left;
}

static inline void run_seed(u64 s)
{
	seed = s;
	rnd_state = s * 0x9e3779b97f4a7c15ull | 1;
	run();
}

static inline void run_bytes(const u8 *data, size_t n)
{
	bytes = data;
	bytes_left = n;
	run_seed(1);
	bytes = NULL;
	bytes_left = 0;
}

/* Print what did not hold, and the command that repeats it. */
static inline void complain(const char *what)
{
	printf("not ok 1 - %s\n# reproduce: %s ", what,
	       program_invocation_short_name);
	if (!bytes)
		printf("%llu\n", (unsigned long long)seed);
	else
		puts(file ? file : "with the file that libFuzzer names");
}

#ifdef GUIDED

int LLVMFuzzerTestOneInput(const u8 *data, size_t n)
{
	run_bytes(data, n);
	return 0;
}

#else

static inline void run_file(void)
{
	FILE *f = fopen(file, "r");
	u8 data[4096];
	size_t n;

	if (!f) {
		perror(file);
		exit(1);
	}
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	run_bytes(data, n);
}

int main(int argc, char **argv)
{
	char *end;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("1..1");
	if (argc == 1) {
		for (u64 s = 1; s <= RUNS; s++)
			run_seed(s);
		report();
	}
	verbose = argc == 2;
	for (int i = 1; i < argc; i++) {
		u64 s = strtoull(argv[i], &end, 0);

		file = argv[i];
		if (*end)
			run_file();
		else
			run_seed(s);
	}
	puts("ok 1 - " HOLDS);
	return 0;
}

#endif
#endif
