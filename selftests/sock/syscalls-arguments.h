/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arguments for the calls of syscalls.c: random numbers, which follow from a seed, and
 * arguments made from them, most of them valid.
 */
#ifndef SYSCALLS_ARGUMENTS_H
#define SYSCALLS_ARGUMENTS_H

#include <limits.h>
#include "sock-lib.h"

#define PORTS		3		/* ports from PORT on */
#define ARENA		(1 << 20)	/* bytes of memory for sending and receiving */
#define GUARD		65536		/* bytes after it: no access, then read-only */

static __thread __u64 rnd_state;
static __u64 seed;
static char *arena, *readonly;

static int rnd(__u32 n)
{
	rnd_state ^= rnd_state >> 12;
	rnd_state ^= rnd_state << 25;
	rnd_state ^= rnd_state >> 27;
	return n ? (int)((rnd_state * 0x2545f4914f6cdd1dull >> 32) % n) : 0;
}

static bool one_in(__u32 n)
{
	return !rnd(n);
}

/* Begin random numbers that follow from the seed, the process, the thread and the call. */
static void rnd_begin(__u64 process, __u64 thread, __u64 call)
{
	rnd_state = (seed << 32 ^ process << 24 ^ thread << 16) + call;
	rnd_state = rnd_state * 0x9e3779b97f4a7c15ull | 1;
	rnd(2);
	rnd(2);
}

#define ONE_OF(array) ((array)[rnd(sizeof(array) / sizeof((array)[0]))])

static int any_int(void)
{
	static const int values[] = {
		0, 1, 2, -1, 5, 63, 64, 127, 1500, 4096, 50000, 65503, 65535, 65536, 1 << 20,
		INT_MAX, INT_MIN,
	};

	return one_in(8) ? rnd(~0u) : ONE_OF(values);
}

static size_t length(void)
{
	return one_in(8) ? rnd(ARENA / 4) : one_in(2) ? rnd(3000) : rnd(100);
}

/* Return memory of @n bytes: valid, too short, read-only, or missing. */
static void *memory(size_t n)
{
	switch (rnd(32)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(~0UL << 47);
	case 2:
		return arena + ARENA - rnd(n + 1);
	case 3:
		return readonly;
	}
	return arena + rnd(ARENA - n + 1);
}

/* Return an address without memory. */
static void *wrong(void)
{
	return one_in(2) ? NULL : arena + ARENA;
}

static int vector(struct iovec *v, int most)
{
	int i, n = rnd(most + 1);

	for (i = 0; i < n; i++) {
		v[i].iov_len = length();
		v[i].iov_base = memory(v[i].iov_len);
	}
	return one_in(64) ? any_int() : n;
}

/* Make an address of a host, or a wrong one; return its length. */
static socklen_t address(struct sockaddr_esp *a)
{
	static const socklen_t lengths[] = { 0, 1, 2, 15, 17, sizeof(*a), 128, 129, -1 };

	*a = at(&hosts[rnd(2)], PORT + rnd(PORTS));
	if (one_in(3))
		a->sesp_ifindex = hosts[rnd(2)].ifindex;
	switch (rnd(32)) {
	case 0:
		a->sesp_family = rnd(50);
		break;
	case 1:
		a->sesp_family = AF_UNSPEC;
		break;
	case 2:
		a->sesp_port = htons(one_in(2) ? 0 : rnd(65536));
		break;
	case 3:
		a->sesp_ifindex = any_int();
		break;
	case 4:
		a->sesp_halen = one_in(2) ? 0 : rnd(256);
		break;
	case 5:
		memset(a->sesp_addr, one_in(2) ? 0 : 0xff, 6);
		break;
	case 6:
		a->sesp_addr[rnd(6)] ^= 1 << rnd(8);
		break;
	case 7:
		return ONE_OF(lengths);
	}
	return sizeof(*a);
}

static int send_flags(void)
{
	static const int known[] = {
		MSG_MORE, MSG_MORE, MSG_ZEROCOPY, MSG_ZEROCOPY, MSG_OOB, MSG_EOR, MSG_NOSIGNAL,
		MSG_DONTROUTE, MSG_CONFIRM, MSG_FASTOPEN, MSG_BATCH,
	};
	int flags = one_in(2) ? MSG_DONTWAIT : 0;

	while (one_in(3))
		flags |= ONE_OF(known);
	return one_in(64) ? rnd(~0u) : flags;
}

static int recv_flags(void)
{
	static const int known[] = {
		MSG_PEEK, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, MSG_ERRQUEUE, MSG_OOB,
		MSG_CMSG_CLOEXEC, MSG_WAITFORONE,
	};
	int flags = one_in(2) ? MSG_DONTWAIT : 0;

	while (one_in(3))
		flags |= ONE_OF(known);
	return one_in(64) ? rnd(~0u) : flags;
}

#endif
