// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages between pairs of ranks in all the ways that MPI has: tags out of order, wildcards,
 * probes, cancelled receives, persistent requests, synchronous, buffered and ready sends, derived
 * datatypes, from several threads, one-sided; of all sizes around the limits of fragments and puts,
 * up to BIG bytes.
 *
 *	p2p [threads] [ROUNDS [BIG]]
 *
 * With "threads", by MPI_THREAD_MULTIPLE; one-sided operations only without, because Open MPI's
 * osc/pt2pt has no support for both together. Ranks work in pairs (0, 1), (2, 3) …, and all with
 * all where a comment says so.
 */
#include <pthread.h>
#include "mpi-test.h"

#define TAGS	40
#define THREADS	4

static int peer, round_no;

static int *filled(size_t n, int from, int to)
{
	int *a = room(n * sizeof(int));

	fill(a, n, round_no, from, to);
	return a;
}

/* Send N numbers there and back, and compare each. */
static void there_and_back(size_t n)
{
	int *out = filled(n, rank, peer), *in = room(n * sizeof(int));
	MPI_Status status;
	int count;

	if (rank < peer) {
		MPI_Send(out, n, MPI_INT, peer, 1, MPI_COMM_WORLD);
		MPI_Recv(in, n, MPI_INT, peer, 2, MPI_COMM_WORLD, &status);
	} else {
		MPI_Recv(in, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &status);
		MPI_Send(out, n, MPI_INT, peer, 2, MPI_COMM_WORLD);
	}
	MPI_Get_count(&status, MPI_INT, &count);
	CHECK((size_t)count == n && same(in, n, round_no, peer, rank), "%zu numbers", n);
	free(out);
	free(in);
}

static void sizes(void)
{
	static const size_t limits[] = { 0, 1, 2, 120, 128, 1000, 16380, 16384, 32768, 65536, 300000 };

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		there_and_back(limits[i]);
		there_and_back(limits[i] + 1);
	}
}

/* Return byte I of message NUMBER of rank FROM. */
static inline char byte(int from, int number, size_t i)
{
	return element(round_no, from, number, i / 4) >> i % 4 * 8;
}

/*
 * Send any number of bytes, from and to any address, COUNT messages in both directions at once, and
 * await the last first; nothing beyond them is written.
 */
static void bytes(size_t size, int count)
{
	MPI_Request requests[2 * count];
	size_t step = size + 128;
	char *out = room(count * step), *in = room(count * step);

	memset(in, 0x55, count * step);
	for (int m = 0; m < count; m++) {
		for (size_t i = 0; i < size; i++)
			out[m * step + i] = byte(rank, m, i);
		MPI_Irecv(in + m * step + 64, size, MPI_BYTE, peer, m, MPI_COMM_WORLD,
			  &requests[m]);
	}
	for (int m = 0; m < count; m++)
		MPI_Isend(out + m * step, size, MPI_BYTE, peer, m, MPI_COMM_WORLD,
			  &requests[count + m]);
	for (int m = 2 * count - 1; m >= 0; m--)
		MPI_Wait(&requests[m], MPI_STATUS_IGNORE);
	for (int m = 0; m < count; m++) {
		const char *at = in + m * step;
		size_t wrong = 0;

		for (size_t i = 0; i < step; i++) {
			int inside = i >= 64 && i < 64 + size;

			wrong += at[i] != (inside ? byte(peer, m, i - 64) : 0x55);
		}
		CHECK(!wrong, "%zu of message %d of %zu bytes", wrong, m, size);
	}
	free(out);
	free(in);
}

/* Send sizes around eager_limit, which counts the PML's header, too, and around max_send_size. */
static void all_sizes(void)
{
	for (size_t size = 65536 - 72; size <= 65536 + 8; size++)
		bytes(size, 1);
	for (size_t size = 131072 - 24; size <= 131072 + 8; size += 3)
		bytes(size, 1);
	bytes(1000003, 8);
}

/* Send in one order, receive in another. */
static void tags(void)
{
	MPI_Request requests[TAGS];
	int *out[TAGS], *in = room(4000 * sizeof(int));

	for (int i = 0; i < TAGS; i++) {
		out[i] = filled(i * 100, rank, i);
		MPI_Isend(out[i], i * 100, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[i]);
	}
	for (int i = TAGS - 1; i >= 0; i--) {
		MPI_Recv(in, 4000, MPI_INT, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(same(in, i * 100, round_no, peer, i), "tag %d", i);
	}
	MPI_Waitall(TAGS, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < TAGS; i++)
		free(out[i]);
	free(in);
}

/*
 * Send from all ranks to all, and take messages as they come: each once, those of one sender in
 * order.
 */
static void wildcards(void)
{
	int per = 10, n = per * (ranks - 1), *next = calloc(ranks, sizeof(int)), in[64];
	MPI_Request *requests = room(n * sizeof(*requests));
	int **out = room(n * sizeof(*out)), k = 0;
	MPI_Status status;

	for (int i = 0; i < per; i++) {
		for (int to = 0; to < ranks; to++) {
			if (to == rank)
				continue;
			out[k] = filled(64, rank, i);
			MPI_Isend(out[k], 64, MPI_INT, to, i, MPI_COMM_WORLD, &requests[k]);
			k++;
		}
	}
	for (int i = 0; i < n; i++) {
		MPI_Recv(in, 64, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		CHECK(status.MPI_TAG == next[status.MPI_SOURCE]++, "tag %d of %d came out of order",
		      status.MPI_TAG, status.MPI_SOURCE);
		CHECK(same(in, 64, round_no, status.MPI_SOURCE, status.MPI_TAG), "from %d",
		      status.MPI_SOURCE);
	}
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		free(out[i]);
	free(out);
	free(requests);
	free(next);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Learn the size of each message by probing, before it is received. */
static void probes(void)
{
	for (int i = 0; i < 20; i++) {
		size_t n = number(round_no * 100 + i) % 50000;
		int *out = filled(n, rank, i), *in, count, found = 0;
		MPI_Request request;
		MPI_Message message;
		MPI_Status status;

		MPI_Isend(out, n, MPI_INT, peer, i, MPI_COMM_WORLD, &request);
		switch (i % 3) {
		case 0:
			MPI_Probe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
			break;
		case 1:
			while (!found)
				MPI_Iprobe(peer, i, MPI_COMM_WORLD, &found, &status);
			break;
		default:
			MPI_Mprobe(peer, i, MPI_COMM_WORLD, &message, &status);
		}
		MPI_Get_count(&status, MPI_INT, &count);
		CHECK((size_t)count == n && status.MPI_TAG == i, "probe: %d of %zu", count, n);
		in = room(n * sizeof(int));
		if (i % 3 == 2)
			MPI_Mrecv(in, n, MPI_INT, &message, &status);
		else
			MPI_Recv(in, n, MPI_INT, peer, i, MPI_COMM_WORLD, &status);
		CHECK(same(in, n, round_no, peer, i), "probe %d, of %zu", i, n);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		free(out);
		free(in);
	}
}

/* Cancel receives for which no message comes; then the next message isn't lost. */
static void cancels(void)
{
	int buffer, cancelled, value = rank;
	MPI_Request request;
	MPI_Status status;

	for (int i = 0; i < 20; i++) {
		MPI_Irecv(&buffer, 1, MPI_INT, peer, 900, MPI_COMM_WORLD, &request);
		MPI_Cancel(&request);
		MPI_Wait(&request, &status);
		MPI_Test_cancelled(&status, &cancelled);
		CHECK(cancelled, "a receive was not");
		MPI_Sendrecv(&value, 1, MPI_INT, peer, 901, &buffer, 1, MPI_INT, peer, 901,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(buffer == peer, "%d", buffer);
	}
}

static void persistent(void)
{
	int n = 30000, *out = room(n * sizeof(int)), *in = room(n * sizeof(int));
	MPI_Request requests[2];

	MPI_Send_init(out, n, MPI_INT, peer, 7, MPI_COMM_WORLD, &requests[0]);
	MPI_Recv_init(in, n, MPI_INT, peer, 7, MPI_COMM_WORLD, &requests[1]);
	for (int i = 0; i < 10; i++) {
		fill(out, n, round_no, rank, i);
		MPI_Startall(2, requests);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		CHECK(same(in, n, round_no, peer, i), "start %d", i);
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
	free(out);
	free(in);
}

/* A synchronous send is complete no sooner than it is received. Then a buffered and a ready one. */
static void modes(void)
{
	int n = 20000, *out = filled(n, rank, 0), *in = room(n * sizeof(int)), done, token = 0;
	int size = n * sizeof(int) + MPI_BSEND_OVERHEAD;
	void *buffer = room(size);
	MPI_Request request;

	MPI_Issend(out, 1, MPI_INT, peer, 20, MPI_COMM_WORLD, &request);
	/* The peer receives the message only after it got the token, which is sent later. */
	MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	CHECK(!done, "a synchronous send is complete that nobody received");
	MPI_Sendrecv(&token, 1, MPI_INT, peer, 21, &token, 1, MPI_INT, peer, 21, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Recv(in, 1, MPI_INT, peer, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(same(in, 1, round_no, peer, 0), "synchronous");
	MPI_Wait(&request, MPI_STATUS_IGNORE);

	MPI_Buffer_attach(buffer, size);
	MPI_Bsend(out, n, MPI_INT, peer, 22, MPI_COMM_WORLD);
	memset(out, 0, n * sizeof(int));
	MPI_Recv(in, n, MPI_INT, peer, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(same(in, n, round_no, peer, 0), "buffered");
	MPI_Buffer_detach(&buffer, &size);

	fill(out, n, round_no, rank, 1);
	MPI_Irecv(in, n, MPI_INT, peer, 23, MPI_COMM_WORLD, &request);
	MPI_Sendrecv(&token, 1, MPI_INT, peer, 24, &token, 1, MPI_INT, peer, 24, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Rsend(out, n, MPI_INT, peer, 23, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK(same(in, n, round_no, peer, 1), "ready");
	free(buffer);
	free(out);
	free(in);
}

/* Send every third number of an array, which must be packed, to a receiver with another layout. */
static void datatypes(void)
{
	static const int counts[] = { 1, 20, 100, 5000, 16368, 16384, 32752, 32768, 100000 };

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		int n = counts[c], *out = room(3 * n * sizeof(int)), *in = room(2 * n * sizeof(int));
		MPI_Datatype third, second;

		for (int i = 0; i < 3 * n; i++)
			out[i] = i % 3 ? -1 : element(round_no, rank, 0, i / 3);
		for (int i = 0; i < 2 * n; i++)
			in[i] = -2;
		MPI_Type_vector(n, 1, 3, MPI_INT, &third);
		MPI_Type_vector(n, 1, 2, MPI_INT, &second);
		MPI_Type_commit(&third);
		MPI_Type_commit(&second);
		MPI_Sendrecv(out, 1, third, peer, 30, in, 1, second, peer, 30, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		for (int i = 0; i < 2 * n; i++)
			CHECK(in[i] == (i % 2 ? -2 : element(round_no, peer, 0, i / 2)),
			      "datatype, %d of %d", i, n);
		MPI_Type_free(&third);
		MPI_Type_free(&second);
		free(out);
		free(in);
	}
}

/*
 * The numbers are contiguous on one side only; or on both, but not from the address that the call
 * gets.
 */
static void half_in_a_row(void)
{
	int n = 100000, *a = room(3 * n * sizeof(int)), length = n, place = 5;
	MPI_Datatype third, from_five;

	MPI_Type_vector(n, 1, 3, MPI_INT, &third);
	MPI_Type_indexed(1, &length, &place, MPI_INT, &from_five);
	MPI_Type_commit(&third);
	MPI_Type_commit(&from_five);
	for (int sender = 0; sender < 2; sender++) {
		for (int kind = 0; kind < 3; kind++) {
			MPI_Datatype out = kind == 0 ? third : from_five;
			MPI_Datatype in = kind == 1 ? third : from_five;
			int step = (rank % 2 == sender ? out : in) == third ? 3 : 1;
			int *first = a + (step == 1 ? 5 : 0);

			memset(a, 0, 3 * n * sizeof(int));
			if (rank % 2 == sender) {
				for (int i = 0; i < n; i++)
					first[i * step] = element(round_no, rank, kind, i);
				MPI_Send(a, 1, out, peer, 31, MPI_COMM_WORLD);
				continue;
			}
			MPI_Recv(a, 1, in, peer, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			for (int i = 0; i < 3 * n; i++) {
				int at = a + i - first, is = at >= 0 && at < n * step && at % step == 0;

				CHECK(a[i] == (is ? element(round_no, peer, kind, at / step) : 0),
				      "kind %d, %d of %d", kind, i, n);
			}
		}
	}
	MPI_Type_free(&third);
	MPI_Type_free(&from_five);
	free(a);
}

/* Send many messages at once: more than a socket takes. */
static void flood(void)
{
	enum { N = 400 };
	MPI_Request requests[2 * N];
	int *out = filled(5000, rank, 0), *in = room(N * 5000 * sizeof(int));

	for (int i = 0; i < N; i++)
		MPI_Isend(out, 1 + i * 12, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[i]);
	for (int i = 0; i < N; i++)
		MPI_Irecv(in + i * 5000, 1 + i * 12, MPI_INT, peer, i, MPI_COMM_WORLD,
			  &requests[N + i]);
	MPI_Waitall(2 * N, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++)
		CHECK(same(in + i * 5000, 1 + i * 12, round_no, peer, 0), "message %d", i);
	free(out);
	free(in);
}

static void one_sided(int n)
{
	int *memory, *got = room(n * sizeof(int)), *put = filled(n, rank, 0);
	MPI_Win window;

	MPI_Win_allocate(n * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
			 &window);
	MPI_Win_fence(0, window);
	MPI_Put(put, n, MPI_INT, peer, 0, n, MPI_INT, window);
	MPI_Win_fence(0, window);
	CHECK(same(memory, n, round_no, peer, 0), "put");
	MPI_Get(got, n, MPI_INT, peer, 0, n, MPI_INT, window);
	MPI_Win_fence(0, window);
	CHECK(same(got, n, round_no, rank, 0), "get");
	MPI_Accumulate(put, n, MPI_INT, peer, 0, n, MPI_INT, MPI_SUM, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < n; i++)
		CHECK(memory[i] == 2 * element(round_no, peer, 0, i), "accumulate, %d", i);
	MPI_Win_free(&window);
	free(got);
	free(put);
}

static void *thread(void *arg)
{
	int t = (int)(intptr_t)arg, n, *out, *in = room(40000 * sizeof(int));

	for (int i = 0; i < 50; i++) {
		n = number(round_no * 1000 + t * 64 + i) % 40000;
		out = filled(n, rank, t * 64 + i);
		MPI_Sendrecv(out, n, MPI_INT, peer, 100 + t, in, 40000, MPI_INT, peer, 100 + t,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (!same(in, n, round_no, peer, t * 64 + i))
			return (void *)1;
		free(out);
	}
	free(in);
	return NULL;
}

static void threads(void)
{
	pthread_t id[THREADS];
	void *bad;

	for (intptr_t t = 0; t < THREADS; t++)
		CHECK(!pthread_create(&id[t], NULL, thread, (void *)t), "thread %d", (int)t);
	for (int t = 0; t < THREADS; t++) {
		pthread_join(id[t], &bad);
		CHECK(!bad, "thread %d received something else", t);
	}
}

/* Send one message of that many bytes. */
static void big(size_t bytes)
{
	MPI_Datatype mebibyte;
	size_t n = bytes >> 20, step = 1 << 20;
	char *a;

	if (!n)
		return;
	a = room(n << 20);
	MPI_Type_contiguous(1 << 20, MPI_BYTE, &mebibyte);
	MPI_Type_commit(&mebibyte);
	if (rank == 0) {
		for (size_t i = 0; i < n; i++)
			memset(a + i * step, (int)(1 + i % 251), step);
		MPI_Send(a, n, mebibyte, 1, 50, MPI_COMM_WORLD);
	} else if (rank == 1) {
		MPI_Recv(a, n, mebibyte, 0, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (size_t i = 0; i < n; i++) {
			const char *m = a + i * step;

			CHECK(*m == (char)(1 + i % 251) && !memcmp(m, m + 1, step - 1),
			      "mebibyte %zu", i);
		}
	}
	MPI_Type_free(&mebibyte);
	free(a);
}

int main(int argc, char **argv)
{
	int multiple = argc > 1 && !strcmp(argv[1], "threads"), rounds, level;
	size_t bytes;

	argc -= multiple;
	argv += multiple;
	rounds = argc > 1 ? atoi(argv[1]) : 3;
	bytes = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(!multiple || level == MPI_THREAD_MULTIPLE, "threads: %d", level);
	CHECK(ranks % 2 == 0, "%d ranks", ranks);
	peer = rank ^ 1;
	for (round_no = 0; round_no < rounds; round_no++) {
		sizes();
		all_sizes();
		tags();
		wildcards();
		probes();
		cancels();
		persistent();
		modes();
		datatypes();
		half_in_a_row();
		flood();
		if (multiple) {
			threads();
		} else {
			one_sided(1000);
			one_sided(100000);
		}
	}
	big(bytes);
	return end();
}
