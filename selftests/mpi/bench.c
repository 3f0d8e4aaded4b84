// SPDX-License-Identifier: GPL-2.0-only
/*
 * No test: measure how long messages and collective operations take, for speed-mpi.sh. Prints lines
 * "CASE BYTES MICROSECONDS", each the median of ROUNDS rounds. A round is CALLS equal calls, until
 * the last rank is through.
 *
 *	bench [ROUNDS [CALLS]]
 *
 * latency: half of there and back, between ranks 0 and 1; stream: of one of 64 messages sent in a
 * row; the others: of one operation of all ranks.
 */
#include "mpi-test.h"

#define WINDOW	64

static char *in, *out;
static int rounds, calls;

static void latency(int size)
{
	if (rank == 0) {
		MPI_Send(out, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(in, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(in, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(out, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

static void stream(int size)
{
	MPI_Request requests[WINDOW];

	for (int i = 0; rank < 2 && i < WINDOW; i++) {
		if (rank == 0)
			MPI_Isend(out, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
		else
			MPI_Irecv(in, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
	}
	if (rank < 2)
		MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	/* The last message has arrived. */
	if (rank == 0)
		MPI_Recv(in, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else if (rank == 1)
		MPI_Send(out, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

static void allreduce(int size)
{
	MPI_Allreduce(out, in, size, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
}

static void alltoall(int size)
{
	MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
}

static void bcast(int size)
{
	MPI_Bcast(out, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void gather(int size)
{
	MPI_Gather(out, size, MPI_BYTE, in, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Print the median time of one call, divided by PER. */
static void measure(const char *name, void (*call)(int size), int size, double per)
{
	double *t = room(rounds * sizeof(*t)), mine;

	call(size);
	for (int i = 0; i < rounds; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		mine = MPI_Wtime();
		for (int j = 0; j < calls; j++)
			call(size);
		mine = (MPI_Wtime() - mine) / calls;
		MPI_Reduce(&mine, &t[i], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	}
	if (rank == 0) {
		qsort(t, rounds, sizeof(*t), compare);
		printf("%s %d %.2f\n", name, size, t[rounds / 2] * 1e6 / per);
		fflush(stdout);
	}
	free(t);
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 1, 64, 1024, 8192, 65536, 262144, 1 << 20, 4 << 20 };
	size_t n, room_for;

	begin(&argc, &argv);
	rounds = argc > 1 ? atoi(argv[1]) : 9;
	calls = argc > 2 ? atoi(argv[2]) : 10;
	/* At most 4 MiB between two ranks, 64 KiB among many. */
	n = ranks == 2 ? 8 : 5;
	room_for = (size_t)sizes[n - 1] * ranks;
	in = room(room_for);
	out = room(room_for);
	memset(out, 1, room_for);
	if (ranks == 2) {
		for (size_t i = 0; i < n; i++)
			measure("latency", latency, sizes[i], 2);
		for (size_t i = 0; i < n - 1; i++)
			measure("stream", stream, sizes[i], WINDOW);
	} else {
		for (size_t i = 0; i < n; i++) {
			measure("allreduce", allreduce, sizes[i], 1);
			measure("alltoall", alltoall, sizes[i], 1);
			measure("bcast", bcast, sizes[i], 1);
			measure("gather", gather, sizes[i], 1);
		}
	}
	MPI_Finalize();
	return 0;
}
