// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compare every collective operation of MPI, blocking and not, with random sizes and roots, with
 * the result that each rank can compute by itself.
 *
 *	coll [ROUNDS [SEED]]
 */
#include "mpi-test.h"

#define MAX_COUNT	20000

static int round_no;
static int *in, *out, *counts, *displs, *counts2, *displs2;

/* Return a size: often 0, mostly small, seldom large; the same on all ranks. */
static int size_of(uint64_t seed)
{
	uint64_t n = number(seed);

	switch (n >> 60) {
	case 0:
		return 0;
	case 1:
		return n % MAX_COUNT;
	default:
		return n % 300;
	}
}

/* Return the sum of the first N ranks' elements. */
static int sum(int n, int to, size_t i)
{
	int s = 0;

	for (int r = 0; r < n; r++)
		s += element(round_no, r, to, i);
	return s;
}

static int max(int n, int to, size_t i)
{
	int m = 0;

	for (int r = 0; r < n; r++) {
		int e = element(round_no, r, to, i);

		if (e > m)
			m = e;
	}
	return m;
}

/* Call a function in one of both forms: at once, or with a request. */
#define BOTH_IN(comm, nb, Name, name, ...)					\
	do {									\
		MPI_Request request_;						\
										\
		if (nb) {							\
			MPI_I##name(__VA_ARGS__, comm, &request_);		\
			MPI_Wait(&request_, MPI_STATUS_IGNORE);			\
		} else {							\
			MPI_##Name(__VA_ARGS__, comm);				\
		}								\
	} while (0)
#define BOTH(...) BOTH_IN(MPI_COMM_WORLD, __VA_ARGS__)

static void bcast(int nb, int n, int root)
{
	if (rank == root)
		fill(in, n, round_no, root, 0);
	else
		memset(in, 0, n * sizeof(int));
	BOTH(nb, Bcast, bcast, in, n, MPI_INT, root);
	CHECK(same(in, n, round_no, root, 0), "bcast of %d from %d", n, root);
}

static void reduces(int nb, int n, int root)
{
	fill(in, n, round_no, rank, 0);
	BOTH(nb, Reduce, reduce, in, out, n, MPI_INT, MPI_SUM, root);
	for (int i = 0; rank == root && i < n; i++)
		CHECK(out[i] == sum(ranks, 0, i), "reduce of %d to %d, %d", n, root, i);
	BOTH(nb, Allreduce, allreduce, in, out, n, MPI_INT, MPI_MAX);
	for (int i = 0; i < n; i++)
		CHECK(out[i] == max(ranks, 0, i), "allreduce of %d, %d", n, i);
	BOTH(nb, Scan, scan, in, out, n, MPI_INT, MPI_SUM);
	for (int i = 0; i < n; i++)
		CHECK(out[i] == sum(rank + 1, 0, i), "scan of %d, %d", n, i);
	BOTH(nb, Exscan, exscan, in, out, n, MPI_INT, MPI_SUM);
	for (int i = 0; rank && i < n; i++)
		CHECK(out[i] == sum(rank, 0, i), "exscan of %d, %d", n, i);
}

static void reduce_scatters(int nb, int n)
{
	int total = 0;

	for (int r = 0; r < ranks; r++) {
		counts[r] = size_of(round_no * 31 + r) % (n + 1);
		displs[r] = total;
		total += counts[r];
	}
	fill(in, total, round_no, rank, 1);
	BOTH(nb, Reduce_scatter, reduce_scatter, in, out, counts, MPI_INT, MPI_SUM);
	for (int i = 0; i < counts[rank]; i++)
		CHECK(out[i] == sum(ranks, 1, displs[rank] + i), "reduce_scatter, %d", i);
	fill(in, (size_t)n * ranks, round_no, rank, 2);
	BOTH(nb, Reduce_scatter_block, reduce_scatter_block, in, out, n, MPI_INT, MPI_SUM);
	for (int i = 0; i < n; i++)
		CHECK(out[i] == sum(ranks, 2, (size_t)rank * n + i), "reduce_scatter_block, %d", i);
}

static void gathers(int nb, int n, int root)
{
	int total = 0;

	fill(in, n, round_no, rank, 3);
	BOTH(nb, Gather, gather, in, n, MPI_INT, out, n, MPI_INT, root);
	for (int r = 0; rank == root && r < ranks; r++)
		CHECK(same(out + (size_t)r * n, n, round_no, r, 3), "gather of %d from %d", n, r);
	BOTH(nb, Allgather, allgather, in, n, MPI_INT, out, n, MPI_INT);
	for (int r = 0; r < ranks; r++)
		CHECK(same(out + (size_t)r * n, n, round_no, r, 3), "allgather of %d from %d", n, r);

	for (int r = 0; r < ranks; r++) {
		counts[r] = size_of(round_no * 37 + r) % (n + 1);
		displs[r] = total + r;
		total += counts[r];
	}
	fill(in, counts[rank], round_no, rank, 4);
	BOTH(nb, Gatherv, gatherv, in, counts[rank], MPI_INT, out, counts, displs, MPI_INT, root);
	for (int r = 0; rank == root && r < ranks; r++)
		CHECK(same(out + displs[r], counts[r], round_no, r, 4), "gatherv from %d", r);
	BOTH(nb, Allgatherv, allgatherv, in, counts[rank], MPI_INT, out, counts, displs, MPI_INT);
	for (int r = 0; r < ranks; r++)
		CHECK(same(out + displs[r], counts[r], round_no, r, 4), "allgatherv from %d", r);
}

static void scatters(int nb, int n, int root)
{
	int total = 0;

	for (int r = 0; rank == root && r < ranks; r++)
		fill(in + (size_t)r * n, n, round_no, root, r);
	BOTH(nb, Scatter, scatter, in, n, MPI_INT, out, n, MPI_INT, root);
	CHECK(same(out, n, round_no, root, rank), "scatter of %d from %d", n, root);

	for (int r = 0; r < ranks; r++) {
		counts[r] = size_of(round_no * 41 + r) % (n + 1);
		displs[r] = total + r;
		total += counts[r];
		if (rank == root)
			fill(in + displs[r], counts[r], round_no, root, r);
	}
	BOTH(nb, Scatterv, scatterv, in, counts, displs, MPI_INT, out, counts[rank], MPI_INT, root);
	CHECK(same(out, counts[rank], round_no, root, rank), "scatterv from %d", root);
}

static void alltoalls(int nb, int n)
{
	MPI_Datatype *types = room(ranks * sizeof(*types));
	int to = 0, from = 0;

	for (int r = 0; r < ranks; r++)
		fill(in + (size_t)r * n, n, round_no, rank, r);
	BOTH(nb, Alltoall, alltoall, in, n, MPI_INT, out, n, MPI_INT);
	for (int r = 0; r < ranks; r++)
		CHECK(same(out + (size_t)r * n, n, round_no, r, rank), "alltoall of %d from %d", n, r);

	for (int r = 0; r < ranks; r++) {
		counts[r] = size_of(round_no * 43 + rank * 256 + r) % (n + 1);
		counts2[r] = size_of(round_no * 43 + r * 256 + rank) % (n + 1);
		displs[r] = to;
		displs2[r] = from;
		to += counts[r];
		from += counts2[r];
		fill(in + displs[r], counts[r], round_no, rank, r);
	}
	BOTH(nb, Alltoallv, alltoallv, in, counts, displs, MPI_INT, out, counts2, displs2, MPI_INT);
	for (int r = 0; r < ranks; r++)
		CHECK(same(out + displs2[r], counts2[r], round_no, r, rank), "alltoallv from %d", r);

	memset(out, 0, from * sizeof(int));
	for (int r = 0; r < ranks; r++) {
		types[r] = MPI_INT;
		displs[r] *= sizeof(int);
		displs2[r] *= sizeof(int);
	}
	BOTH(nb, Alltoallw, alltoallw, in, counts, displs, types, out, counts2, displs2, types);
	for (int r = 0; r < ranks; r++)
		CHECK(same(out + displs2[r] / sizeof(int), counts2[r], round_no, r, rank),
		      "alltoallw from %d", r);
	free(types);
}

/* After the barrier all ranks are in the same round. */
static void barrier(int nb)
{
	MPI_Request request;
	int mine = round_no, first = -1;

	if (nb) {
		MPI_Ibarrier(MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	CHECK(first == round_no, "a rank is in round %d", first);
}

/* Exchange with the two neighbours on a ring. */
static void neighbours(int nb, int n)
{
	int period = 1, left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
	int beside[2] = { left, right }, to[2], from[2], at[2] = { 0, n + 1 };
	MPI_Aint bytes[2] = { 0, (n + 1) * sizeof(int) };
	MPI_Datatype types[2] = { MPI_INT, MPI_INT };
	MPI_Comm ring;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &period, 0, &ring);
	fill(in, n, round_no, rank, 5);
	BOTH_IN(ring, nb, Neighbor_allgather, neighbor_allgather, in, n, MPI_INT, out, n, MPI_INT);
	CHECK(same(out, n, round_no, left, 5) && same(out + n, n, round_no, right, 5),
	      "neighbor_allgather of %d", n);

	for (int i = 0; i < 2; i++)
		from[i] = size_of(round_no * 47 + beside[i]) % (n + 1);
	BOTH_IN(ring, nb, Neighbor_allgatherv, neighbor_allgatherv, in,
		size_of(round_no * 47 + rank) % (n + 1), MPI_INT, out, from, at, MPI_INT);
	for (int i = 0; i < 2; i++)
		CHECK(same(out + at[i], from[i], round_no, beside[i], 5), "neighbor_allgatherv, %d", i);

	/*
	 * With two ranks both neighbours are one rank, and MPI doesn't tell which block is which.
	 */
	if (ranks == 2)
		goto out;
	for (int i = 0; i < 2; i++)
		fill(in + i * n, n, round_no, rank, beside[i]);
	BOTH_IN(ring, nb, Neighbor_alltoall, neighbor_alltoall, in, n, MPI_INT, out, n, MPI_INT);
	for (int i = 0; i < 2; i++)
		CHECK(same(out + i * n, n, round_no, beside[i], rank), "neighbor_alltoall of %d", n);

	for (int i = 0; i < 2; i++) {
		to[i] = size_of(round_no * 53 + rank * 256 + beside[i]) % (n + 1);
		from[i] = size_of(round_no * 53 + beside[i] * 256 + rank) % (n + 1);
		fill(in + at[i], to[i], round_no, rank, beside[i]);
	}
	BOTH_IN(ring, nb, Neighbor_alltoallv, neighbor_alltoallv, in, to, at, MPI_INT, out, from, at,
		MPI_INT);
	for (int i = 0; i < 2; i++)
		CHECK(same(out + at[i], from[i], round_no, beside[i], rank), "neighbor_alltoallv, %d", i);
	memset(out, 0, 2 * (n + 1) * sizeof(int));
	BOTH_IN(ring, nb, Neighbor_alltoallw, neighbor_alltoallw, in, to, bytes, types, out, from,
		bytes, types);
	for (int i = 0; i < 2; i++)
		CHECK(same(out + at[i], from[i], round_no, beside[i], rank), "neighbor_alltoallw, %d", i);
out:
	MPI_Comm_free(&ring);
}

/* Let two halves gather at the same time. */
static void halves(int n)
{
	MPI_Comm half;
	int r, s;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_rank(half, &r);
	MPI_Comm_size(half, &s);
	fill(in, n, round_no, rank, 6);
	MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, half);
	for (int i = 0; i < s; i++)
		CHECK(same(out + (size_t)i * n, n, round_no, 2 * i + rank % 2, 6), "half, %d", i);
	MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 50;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	size_t size;

	begin(&argc, &argv);
	size = (size_t)ranks * (MAX_COUNT + 1) * sizeof(int);
	in = room(size);
	out = room(size);
	counts = room(ranks * sizeof(int));
	displs = room(ranks * sizeof(int));
	counts2 = room(ranks * sizeof(int));
	displs2 = room(ranks * sizeof(int));
	for (int i = 0; i < rounds; i++) {
		uint64_t s = number(seed) + i * 16;
		int nb = i % 2;

		round_no = (seed * 100000 + i) & 0x7fffff;
		bcast(nb, size_of(s), number(s + 1) % ranks);
		reduces(nb, size_of(s + 2), number(s + 3) % ranks);
		reduce_scatters(nb, size_of(s + 4));
		gathers(nb, size_of(s + 5), number(s + 6) % ranks);
		scatters(nb, size_of(s + 7), number(s + 8) % ranks);
		alltoalls(nb, size_of(s + 9));
		neighbours(nb, size_of(s + 10) / 2);
		halves(size_of(s + 11));
		barrier(nb);
	}
	return end();
}
