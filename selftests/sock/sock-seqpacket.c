// SPDX-License-Identifier: GPL-2.0-only
/*
 * SOCK_SEQPACKET: records. "EOR survives merging" (protocol, "Must hold,
 * Exactness"); esp(7) and recvmsg.c describe the results of calls.
 */
#define PAIR_TYPE SOCK_SEQPACKET
#include "sock-pair.h"
#include <sys/mman.h>

/* Call recvmsg() with @len bytes; set *@out to its flags. */
static ssize_t take(int fd, void *buf, size_t len, int flags, int *out)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(fd, &msg, flags);

	*out = msg.msg_flags & (MSG_EOR | MSG_TRUNC);
	return n;
}

static ssize_t put(int fd, size_t pos, size_t n, int flags)
{
	char *buf = malloc(n);
	ssize_t res;

	fill(buf, pos, n);
	res = send(fd, buf, n, flags | MSG_NOSIGNAL);
	free(buf);
	return res;
}

/* Each send() is a record, however they are merged on the way. */
TEST_F(pair, boundaries)
{
	static const int size[] = { 1, 2, 1468, 1469, 5000, 1, 255, 257, 3, 70000 };
	static char buf[80000];
	unsigned int i;
	int flags;

	for (i = 0; i < ARRAY_SIZE(size); i++)
		ASSERT_EQ(size[i], put(self->fd[0], i, size[i], 0));
	for (i = 0; i < ARRAY_SIZE(size); i++) {
		ASSERT_EQ(size[i], take(self->fd[1], buf, sizeof(buf), 0, &flags));
		EXPECT_EQ(MSG_EOR, flags);
		EXPECT_TRUE(right(buf, i, size[i]));
	}
	EXPECT_ERRNO(EAGAIN, take(self->fd[1], buf, 1, MSG_DONTWAIT, &flags));
}

/* Thousands of small records; MSG_WAITALL doesn't join them. */
TEST_F(pair, many)
{
	char buf[300];
	pid_t pid = MUST(fork());
	int i, flags;

	if (!pid) {
		for (i = 0; i < 3000; i++)
			if (put(self->fd[0], i, i % 290 + 1, 0) != i % 290 + 1)
				_exit(1);
		_exit(0);
	}
	for (i = 0; i < 3000; i++) {
		ASSERT_EQ(i % 290 + 1, take(self->fd[1], buf, sizeof(buf),
					    MSG_WAITALL, &flags));
		ASSERT_EQ(MSG_EOR, flags);
		ASSERT_TRUE(right(buf, i, i % 290 + 1));
	}
	EXPECT_EQ(0, reap(pid));
}

/* The part of a record that doesn't fit is discarded, to the end of the record and no further. */
TEST_F(pair, truncation)
{
	char buf[10000];
	int flags;

	ASSERT_EQ(9000, put(self->fd[0], 0, 9000, 0));
	ASSERT_EQ(100, put(self->fd[0], 7, 100, 0));
	ASSERT_EQ(5, put(self->fd[0], 8, 5, 0));
	EXPECT_EQ(10, take(self->fd[1], buf, 10, 0, &flags));
	EXPECT_EQ(MSG_TRUNC, flags);
	EXPECT_TRUE(right(buf, 0, 10));
	EXPECT_EQ(99, take(self->fd[1], buf, 99, 0, &flags));
	EXPECT_EQ(MSG_TRUNC, flags);
	EXPECT_TRUE(right(buf, 7, 99));
	/* the buffer is just large enough */
	EXPECT_EQ(5, take(self->fd[1], buf, 5, 0, &flags));
	EXPECT_EQ(MSG_EOR, flags);
	EXPECT_EQ(0, queued(self->fd[1], SIOCINQ));
}

TEST_F(pair, peek)
{
	char buf[10000];
	int flags;

	ASSERT_EQ(3000, put(self->fd[0], 0, 3000, 0));
	ASSERT_EQ(100, put(self->fd[0], 5, 100, 0));
	EXPECT_EQ(3000, take(self->fd[1], buf, sizeof(buf), MSG_PEEK, &flags));
	EXPECT_EQ(MSG_EOR, flags);
	EXPECT_TRUE(right(buf, 0, 3000));
	EXPECT_EQ(10, take(self->fd[1], buf, 10, MSG_PEEK, &flags));
	EXPECT_EQ(MSG_TRUNC, flags);
	EXPECT_EQ(3000, take(self->fd[1], buf, sizeof(buf), 0, &flags));
	EXPECT_EQ(MSG_EOR, flags);
	EXPECT_EQ(100, take(self->fd[1], buf, sizeof(buf), 0, &flags));
	EXPECT_TRUE(right(buf, 5, 100));
}

/* MSG_MORE: the record goes on with the next send(). */
TEST_F(pair, more)
{
	char buf[10000];
	int flags;

	ASSERT_EQ(100, put(self->fd[0], 0, 100, MSG_MORE));
	ASSERT_EQ(5000, put(self->fd[0], 100, 5000, MSG_MORE));
	EXPECT_EQ(0, events(self->fd[1], POLLIN, SHORT));
	EXPECT_ERRNO(EAGAIN, take(self->fd[1], buf, 1, MSG_DONTWAIT, &flags));
	ASSERT_EQ(50, put(self->fd[0], 5100, 50, 0));
	ASSERT_EQ(7, put(self->fd[0], 1, 7, 0));
	EXPECT_EQ(5150, take(self->fd[1], buf, sizeof(buf), 0, &flags));
	EXPECT_EQ(MSG_EOR, flags);
	EXPECT_TRUE(right(buf, 0, 5150));
	EXPECT_EQ(7, take(self->fd[1], buf, sizeof(buf), 0, &flags));
	EXPECT_EQ(MSG_EOR, flags);
}

/* poll() and recv() wait for whole records. */
TEST_F(pair, whole_records)
{
	char buf[10000];
	int flags;

	ASSERT_EQ(4000, put(self->fd[0], 0, 4000, MSG_MORE));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) > 0));
	EXPECT_EQ(0, events(self->fd[1], POLLIN, SHORT));
	set_timeo(self->fd[1], SO_RCVTIMEO, 30);
	EXPECT_ERRNO(EAGAIN, take(self->fd[1], buf, sizeof(buf), 0, &flags));
	ASSERT_EQ(1, put(self->fd[0], 4000, 1, 0));
	EXPECT_EQ(POLLIN, events(self->fd[1], POLLIN, LONG));
	EXPECT_EQ(4001, take(self->fd[1], buf, sizeof(buf), 0, &flags));
	EXPECT_TRUE(right(buf, 0, 4001));
}

/* The end of data inside a record: the reader gets its beginning, without MSG_EOR. */
TEST_F(pair, unfinished)
{
	char buf[10000];
	int flags;

	ASSERT_EQ(10, put(self->fd[0], 0, 10, 0));
	ASSERT_EQ(2000, put(self->fd[0], 10, 2000, MSG_MORE));
	shutdown(self->fd[0], SHUT_WR);
	EXPECT_EQ(10, take(self->fd[1], buf, sizeof(buf), 0, &flags));
	EXPECT_EQ(MSG_EOR, flags);
	EXPECT_EQ(2000, take(self->fd[1], buf, sizeof(buf), 0, &flags));
	EXPECT_EQ(0, flags);
	EXPECT_TRUE(right(buf, 10, 2000));
	EXPECT_EQ(0, take(self->fd[1], buf, sizeof(buf), 0, &flags));
}

/* A record larger than the receive buffer comes in pieces. */
TEST_F(pair, beyond_buffer)
{
	static char buf[1000000];
	pid_t pid;
	int i;

	set_int(self->fd[1], SOL_SOCKET, SO_RCVBUF, 30000);
	pid = MUST(fork());
	if (!pid) {
		for (i = 0; i < 3; i++)
			if (put(self->fd[0], i, 200000, 0) != 200000)
				_exit(1);
		_exit(put(self->fd[0], 0, 5, 0) != 5);
	}
	for (i = 0; i < 3; i++) {
		int pos = 0, flags = 0;

		while (!(flags & MSG_EOR)) {
			ssize_t n = take(self->fd[1], buf, sizeof(buf), 0, &flags);

			ASSERT_LT(0, n);
			EXPECT_EQ(0, flags & MSG_TRUNC);
			ASSERT_TRUE(right(buf, i + pos, n));
			pos += n;
		}
		EXPECT_EQ(200000, pos);
	}
	EXPECT_EQ(5, recv(self->fd[1], buf, sizeof(buf), 0));
	EXPECT_EQ(0, reap(pid));
}

/* Truncation of such a record discards all the rest of it. */
TEST_F(pair, truncation_beyond_buffer)
{
	char buf[100];
	int flags;
	pid_t pid;

	set_int(self->fd[1], SOL_SOCKET, SO_RCVBUF, 30000);
	pid = MUST(fork());
	if (!pid) {
		if (put(self->fd[0], 0, 200000, 0) != 200000)
			_exit(1);
		_exit(put(self->fd[0], 3, 50, 0) != 50);
	}
	EXPECT_EQ(100, take(self->fd[1], buf, 100, 0, &flags));
	EXPECT_EQ(MSG_TRUNC, flags);
	EXPECT_EQ(50, take(self->fd[1], buf, 100, 0, &flags));
	EXPECT_EQ(MSG_EOR, flags);
	EXPECT_TRUE(right(buf, 3, 50));
	EXPECT_EQ(0, reap(pid));
}

/* There are no empty records, because a reader could not tell one from the end of data. */
TEST_F(pair, empty)
{
	char c;

	EXPECT_ERRNO(EINVAL, send(self->fd[0], "", 0, 0));
	EXPECT_ERRNO(EINVAL, send(self->fd[0], NULL, 0, MSG_EOR));
	EXPECT_EQ(0, events(self->fd[1], POLLIN, SHORT));
	/* a read of nothing takes nothing */
	ASSERT_EQ(3, put(self->fd[0], 0, 3, 0));
	ASSERT_EQ(POLLIN, events(self->fd[1], POLLIN, LONG));
	EXPECT_EQ(0, recv(self->fd[1], &c, 0, MSG_PEEK));
	EXPECT_EQ(3, queued(self->fd[1], SIOCINQ));
}

/* Write records of @n bytes until the queue is full; return how many it took. */
static int fill_records(int fd, size_t n)
{
	int i;

	for (i = 0;; i++) {
		ssize_t r = put(fd, i, n, MSG_DONTWAIT);

		if (r < 0)
			return errno == EAGAIN ? i : -1;
		if (r != (ssize_t)n)
			return -1;
	}
}

/* A call takes a record whole or not at all, whether or not the call may wait. */
TEST_F(pair, all_or_nothing)
{
	static char buf[100000];
	const size_t n = 90000;
	int i, took, flags;
	long left;

	set_int(self->fd[0], SOL_SOCKET, SO_SNDBUF, 100000);
	set_int(self->fd[1], SOL_SOCKET, SO_RCVBUF, 100000);
	took = fill_records(self->fd[0], n);
	ASSERT_LT(1, took);
	left = queued(self->fd[0], SIOCOUTQ);
	EXPECT_ERRNO(EAGAIN, put(self->fd[0], 50, n, MSG_DONTWAIT));
	set_timeo(self->fd[0], SO_SNDTIMEO, 20);
	EXPECT_ERRNO(EAGAIN, put(self->fd[0], 50, n, 0));
	set_timeo(self->fd[0], SO_SNDTIMEO, 0);
	alarm_in_call(false);
	EXPECT_ERRNO(EINTR, put(self->fd[0], 50, n, 0));
	impatient(self->fd[0]);
	EXPECT_GE(left, queued(self->fd[0], SIOCOUTQ));
	for (i = 0; i < took; i++) {
		size_t pos = 0;

		for (flags = 0; !(flags & MSG_EOR); ) {	/* pieces, if the buffer is full */
			ssize_t r = take(self->fd[1], buf, sizeof(buf), 0, &flags);

			ASSERT_LT(0, r);
			ASSERT_TRUE(right(buf, i + pos, r));
			pos += r;
		}
		ASSERT_EQ(n, pos);
	}
	EXPECT_ERRNO(EAGAIN, take(self->fd[1], buf, 1, MSG_DONTWAIT, &flags));
	/* poll() says when the next record is taken */
	EXPECT_EQ(POLLOUT, events(self->fd[0], POLLOUT, LONG));
	EXPECT_EQ((ssize_t)n, put(self->fd[0], 7, n, MSG_DONTWAIT));
}

/* A record larger than the send buffer can be is refused, and nothing of it is sent. */
TEST_F(pair, too_long)
{
	static char buf[8 << 20];
	int flags;

	EXPECT_ERRNO(EMSGSIZE, send(self->fd[0], buf, sizeof(buf), MSG_NOSIGNAL));
	set_int(self->fd[0], SOL_SOCKET, SO_SNDBUF, 50000);
	EXPECT_ERRNO(EMSGSIZE, send(self->fd[0], buf, 100001, MSG_NOSIGNAL));
	EXPECT_EQ(0, queued(self->fd[0], SIOCOUTQ));
	EXPECT_EQ(100000, put(self->fd[0], 3, 100000, 0));
	EXPECT_EQ(100000, take(self->fd[1], buf, sizeof(buf), 0, &flags));
	EXPECT_EQ(MSG_EOR, flags);
	EXPECT_TRUE(right(buf, 3, 100000));
}

/*
 * Memory that can't be read in the middle of a record: nothing of the record is sent, also if it
 * continues one in a packet that still waits.
 */
TEST_F(pair, fault_in_send)
{
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char buf[100000];
	int flags, i;

	ASSERT_NE(MAP_FAILED, (void *)map);
	ASSERT_EQ(0, munmap(map + 20 * page, page));
	for (i = 0; i < 3; i++) {
		/* readable bytes before the hole */
		const long most[] = { 3, page + 3, 20 * page };

		EXPECT_ERRNO(EFAULT, send(self->fd[0], map + 20 * page - most[i], most[i] + 1,
					  MSG_NOSIGNAL));
		EXPECT_ERRNO(EFAULT, send(self->fd[0], map + 20 * page - most[i], most[i] + 9000,
					  MSG_NOSIGNAL));
		EXPECT_EQ(0, queued(self->fd[0], SIOCOUTQ));
		ASSERT_EQ(700, put(self->fd[0], 0, 700, MSG_MORE));
		EXPECT_ERRNO(EFAULT, send(self->fd[0], map + 19 * page, 2 * page,
					  MSG_MORE | MSG_NOSIGNAL));
		ASSERT_EQ(90, put(self->fd[0], 700, 90, 0));
		EXPECT_EQ(790, take(self->fd[1], buf, sizeof(buf), 0, &flags));
		EXPECT_EQ(MSG_EOR, flags);
		EXPECT_TRUE(right(buf, 0, 790));
		/* the beginning has bytes that were summed while they were copied */
		ASSERT_EQ(100, put(self->fd[0], 0, 100, MSG_MORE));
		EXPECT_ERRNO(EFAULT, send(self->fd[0], map + 19 * page + 1, 2 * page,
					  MSG_MORE | MSG_NOSIGNAL));
		ASSERT_EQ(10, put(self->fd[0], 100, 10, 0));
		EXPECT_EQ(110, take(self->fd[1], buf, sizeof(buf), 0, &flags));
		EXPECT_TRUE(right(buf, 0, 110));
		ASSERT_TRUE(UNTIL(!queued(self->fd[0], SIOCOUTQ)));
	}
	EXPECT_EQ(0, counter(B, "InChecksum"));
	munmap(map, 64 * page);
}

/* Memory that can't be written: the record is gone, and the next one is whole. */
TEST_F(pair, fault_in_recv)
{
	static const int size[] = { 100, 3000, 90000 };
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char buf[100000];
	int flags, i;

	ASSERT_NE(MAP_FAILED, (void *)map);
	ASSERT_EQ(0, munmap(map + page, page));
	for (i = 0; i < 3; i++) {
		struct iovec iov[2] = { { map + page - 50, 50 }, { NULL, sizeof(buf) } };
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

		ASSERT_EQ(size[i], put(self->fd[0], i, size[i], 0));
		ASSERT_EQ(5, put(self->fd[0], 40 + i, 5, 0));
		EXPECT_ERRNO(EFAULT, recvmsg(self->fd[1], &msg, MSG_PEEK));
		EXPECT_EQ(size[i], recv(self->fd[1], buf, sizeof(buf), MSG_PEEK));
		EXPECT_ERRNO(EFAULT, recvmsg(self->fd[1], &msg, 0));
		EXPECT_EQ(5, take(self->fd[1], buf, sizeof(buf), 0, &flags));
		EXPECT_EQ(MSG_EOR, flags);
		EXPECT_TRUE(right(buf, 40 + i, 5));
	}
	munmap(map, page);
}

/* MSG_TRUNC: the result is the record's length, however little of it the caller takes. */
TEST_F(pair, length)
{
	char buf[16];
	int flags;

	ASSERT_EQ(32, put(self->fd[0], 0, 32, 0));
	ASSERT_EQ(9000, put(self->fd[0], 5, 9000, 0));
	ASSERT_EQ(3, put(self->fd[0], 6, 3, 0));
	EXPECT_EQ(32, take(self->fd[1], NULL, 0, MSG_PEEK | MSG_TRUNC, &flags));
	EXPECT_EQ(MSG_TRUNC, flags);
	EXPECT_EQ(32, take(self->fd[1], buf, 16, MSG_TRUNC, &flags));
	EXPECT_EQ(MSG_TRUNC, flags);
	EXPECT_TRUE(right(buf, 0, 16));
	EXPECT_EQ(9000, take(self->fd[1], NULL, 0, MSG_PEEK | MSG_TRUNC, &flags));
	EXPECT_EQ(9000, take(self->fd[1], buf, 16, MSG_TRUNC, &flags));
	/* a read of nothing takes a record, too */
	ASSERT_EQ(4, put(self->fd[0], 9, 4, 0));
	EXPECT_EQ(0, take(self->fd[1], NULL, 0, 0, &flags));
	EXPECT_EQ(MSG_TRUNC, flags);
	EXPECT_EQ(4, take(self->fd[1], buf, 16, MSG_TRUNC, &flags));
	EXPECT_EQ(MSG_EOR, flags);
	EXPECT_TRUE(right(buf, 9, 4));
	EXPECT_ERRNO(EAGAIN, take(self->fd[1], NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT,
				  &flags));
}

#define RESULTS 24

/* Results of calls on a connection: a number, or an error number, negative. */
struct results {
	int n, value[RESULTS];
};

static void result(struct results *r, ssize_t value)
{
	if (r->n < RESULTS)
		r->value[r->n] = value < 0 ? -errno : value;
	r->n++;
}

static void record_calls(const int fd[2], struct results *r)
{
	static char buf[1 << 20];
	char *bad = (char *)16;
	struct iovec iov[2] = { { buf, 10 }, { bad, 10 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int flags;

	set_int(fd[0], SOL_SOCKET, SO_SNDBUF, 50000);
	result(r, put(fd[0], 0, 32, 0));
	result(r, put(fd[0], 0, 20, MSG_EOR));
	result(r, recv(fd[1], NULL, 0, MSG_PEEK | MSG_TRUNC));
	result(r, take(fd[1], buf, 16, MSG_PEEK, &flags));
	result(r, flags & MSG_TRUNC);
	result(r, take(fd[1], buf, 16, MSG_TRUNC, &flags));
	result(r, flags & MSG_TRUNC);
	result(r, recv(fd[1], buf, sizeof(buf), MSG_WAITALL));
	result(r, sendmsg(fd[0], &msg, 0));
	result(r, recv(fd[1], buf, sizeof(buf), MSG_DONTWAIT));
	result(r, put(fd[0], 0, 40, 0));
	result(r, put(fd[0], 0, 50, 0));
	result(r, recvmsg(fd[1], &msg, MSG_PEEK));
	result(r, recvmsg(fd[1], &msg, 0));
	result(r, recv(fd[1], buf, sizeof(buf), 0));
	result(r, put(fd[0], 0, 100001, 0));
	result(r, put(fd[0], 0, 60000, 0));
	result(r, recv(fd[1], NULL, 0, 0));
	result(r, recv(fd[1], buf, 1, MSG_DONTWAIT));
	result(r, put(fd[0], 0, 7, 0));
	result(r, shutdown(fd[0], SHUT_WR));
	result(r, recv(fd[1], buf, sizeof(buf), 0));
	result(r, recv(fd[1], buf, sizeof(buf), 0));
	result(r, put(fd[0], 0, 7, 0));
}

/* Calls return what they return for AF_UNIX (socket-api.rst, "Records"). */
TEST_F(pair, as_unix)
{
	struct results esp = {}, un = {};
	int i, fd[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd));
	record_calls(fd, &un);
	record_calls(self->fd, &esp);
	ASSERT_EQ(RESULTS, un.n);
	ASSERT_EQ(RESULTS, esp.n);
	for (i = 0; i < RESULTS; i++)
		EXPECT_EQ(un.value[i], esp.value[i])
			TH_LOG("call %d", i);
	close(fd[0]);
	close(fd[1]);
}

/* Two writers, one reader: records are whole. */
TEST_F(pair, two_writers)
{
	int i, j, flags, next[2] = {};
	pid_t pid[2];
	__u8 buf[4000];

	set_int(self->fd[0], SOL_SOCKET, SO_SNDBUF, 500000);
	for (i = 0; i < 2; i++) {
		pid[i] = MUST(fork());
		if (pid[i])
			continue;
		for (j = 0; j < 500; j++) {
			int n = 10 + j % 2500;

			memset(buf, j, n);
			buf[0] = i;
			if (send(self->fd[0], buf, n, 0) != n)
				_exit(1);
		}
		_exit(0);
	}
	for (i = 0; i < 1000; i++) {
		int who;

		j = take(self->fd[1], buf, sizeof(buf), 0, &flags);
		ASSERT_LT(0, j);
		ASSERT_EQ(MSG_EOR, flags);
		who = buf[0] & 1;
		ASSERT_EQ(10 + next[who] % 2500, j);
		ASSERT_EQ(next[who] & 255, buf[1]);
		ASSERT_EQ(next[who] & 255, buf[j - 1]);
		next[who]++;
	}
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, reap(pid[i]));
}

/* Records survive loss, too: a retransmission carries the same EOR. */
TEST_F(pair, loss)
{
	char buf[3000];
	pid_t pid;
	int i, flags;

	enter(A);
	run("tc qdisc add dev va root netem loss 10%% reorder 20%% delay 1ms limit 10000");
	pid = MUST(fork());
	if (!pid) {
		for (i = 0; i < 200; i++)
			if (put(self->fd[0], i, 1 + i * 13, 0) != 1 + i * 13)
				_exit(1);
		_exit(0);
	}
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(1 + i * 13, take(self->fd[1], buf, 3000, 0, &flags));
		ASSERT_EQ(MSG_EOR, flags);
		ASSERT_TRUE(right(buf, i, 1 + i * 13));
	}
	EXPECT_EQ(0, reap(pid));
	enter(A);
	run("tc qdisc del dev va root");
}

/* A stream's MSG_EOR is no more than a hint: bytes are bytes. */
TEST_F(pair, stream_eor)
{
	char buf[100];
	int fd[2], flags;

	close(self->fd[0]);
	close(self->fd[1]);
	make_pair(SOCK_STREAM, fd);
	impatient(fd[1]);
	ASSERT_EQ(10, put(fd[0], 0, 10, MSG_EOR));
	ASSERT_EQ(10, put(fd[0], 10, 10, MSG_EOR));
	ASSERT_TRUE(UNTIL(queued(fd[1], SIOCINQ) == 20));
	EXPECT_EQ(20, take(fd[1], buf, 100, 0, &flags));
	EXPECT_EQ(0, flags);
	EXPECT_TRUE(right(buf, 0, 20));
}

TEST_HARNESS_MAIN
