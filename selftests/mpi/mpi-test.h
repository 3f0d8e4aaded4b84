/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions that the MPI programs share: numbers that every rank can compute for itself, a check
 * that ends the job, and the last line "passed: N checks".
 */
#ifndef MPI_TEST_H
#define MPI_TEST_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static long checks;

#define CHECK(condition, ...)							\
	do {									\
		checks++;							\
		if (!(condition)) {						\
			fprintf(stderr, "rank %d, %s:%d: %s: ", rank, __FILE__,	\
				__LINE__, #condition);				\
			fprintf(stderr, __VA_ARGS__);				\
			fputc('\n', stderr);					\
			MPI_Abort(MPI_COMM_WORLD, 1);				\
		}								\
	} while (0)

/* Return a number of SEED (splitmix64), which is the same on every rank. */
static inline uint64_t number(uint64_t seed)
{
	uint64_t z = seed * 0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Return element I of the message from rank FROM to rank TO in ROUND. */
static inline int element(int round, int from, int to, size_t i)
{
	return number(number(((uint64_t)round << 32) + from * 256 + to) + i) & 0xffffff;
}

static inline void fill(int *a, size_t n, int round, int from, int to)
{
	for (size_t i = 0; i < n; i++)
		a[i] = element(round, from, to, i);
}

static inline int same(const int *a, size_t n, int round, int from, int to)
{
	for (size_t i = 0; i < n; i++) {
		if (a[i] != element(round, from, to, i))
			return 0;
	}
	return 1;
}

static inline void *room(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		abort();
	return p;
}

static inline void begin(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static inline int end(void)
{
	long all;

	MPI_Reduce(&checks, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank == 0)
		printf("passed: %ld checks\n", all);
	return 0;
}

#endif
