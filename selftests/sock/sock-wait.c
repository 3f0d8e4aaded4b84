// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting for data of a stream: amounts, timeouts, poll(), epoll, signals and
 * interruptions. The tests require TCP's behaviour.
 */
#include <linux/sock_diag.h>
#include "sock-pair.h"

/* Start a child that writes @n bytes at @pos of the stream once this process sleeps. */
static pid_t write_later(int fd, size_t pos, size_t n)
{
	pid_t pid = MUST(fork());

	if (!pid) {
		MUST(UNTIL(asleep(getppid())) ? 0 : -1);
		_exit(!!write_stream(fd, pos, n));
	}
	return pid;
}

TEST_F(pair, timeouts)
{
	long long start = now_ms();
	char c;

	set_timeo(self->fd[1], SO_RCVTIMEO, 100);
	EXPECT_ERRNO(EAGAIN, recv(self->fd[1], &c, 1, 0));
	EXPECT_LE(90, now_ms() - start);	/* the first jiffy has begun already */
	EXPECT_GT(LONG, now_ms() - start);
}

TEST_F(pair, waitall)
{
	char buf[6000];
	pid_t pid;

	pid = MUST(fork());
	if (!pid) {
		write_stream(self->fd[0], 0, 3000);
		if (!drained(self->fd[0]) || !UNTIL(asleep(getppid())))
			_exit(1);
		_exit(!!write_stream(self->fd[0], 3000, 3000));
	}
	EXPECT_EQ(6000, recv(self->fd[1], buf, 6000, MSG_WAITALL));
	EXPECT_TRUE(right(buf, 0, 6000));
	EXPECT_EQ(0, reap(pid));
	/* no more comes in time */
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 100));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 100));
	set_timeo(self->fd[1], SO_RCVTIMEO, 30);
	EXPECT_EQ(100, recv(self->fd[1], buf, 200, MSG_WAITALL));
	EXPECT_ERRNO(EAGAIN, recv(self->fd[1], buf, 200, MSG_WAITALL));
	/* no more comes at all */
	set_timeo(self->fd[1], SO_RCVTIMEO, LONG);
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 100));
	shutdown(self->fd[0], SHUT_WR);
	EXPECT_EQ(100, recv(self->fd[1], buf, 200, MSG_WAITALL));
	EXPECT_EQ(0, recv(self->fd[1], buf, 200, MSG_WAITALL));
}

/* More than the receive buffer holds. */
TEST_F(pair, waitall_beyond_buffer)
{
	static char buf[MEGA];
	pid_t pid;

	buffers(self->fd[1], 0, 20000);
	pid = MUST(fork());
	if (!pid)
		_exit(!!write_stream(self->fd[0], 0, MEGA));
	EXPECT_EQ(MEGA, recv(self->fd[1], buf, MEGA, MSG_WAITALL));
	EXPECT_TRUE(right(buf, 0, MEGA));
	EXPECT_EQ(0, reap(pid));
}

/* MSG_PEEK with MSG_WAITALL waits for all, and takes nothing. */
TEST_F(pair, peek_waitall)
{
	char buf[6000];
	pid_t pid;

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 3000));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 3000));
	pid = write_later(self->fd[0], 3000, 3000);
	EXPECT_EQ(6000, recv(self->fd[1], buf, 6000, MSG_PEEK | MSG_WAITALL));
	EXPECT_TRUE(right(buf, 0, 6000));
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 6000));
}

/* Has the receive buffer space for less than two packets? */
static bool full(int fd)
{
	__u32 mem[SK_MEMINFO_VARS];
	socklen_t len = sizeof(mem);

	MUST(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, mem, &len));
	return mem[SK_MEMINFO_RMEM_ALLOC] + 2 * 2304 >= mem[SK_MEMINFO_RCVBUF];
}

/*
 * A reader that peeks must see as much as the buffer holds, although the receiver does
 * not advertise its free space packet by packet: with and without waiting.
 */
TEST_F(pair, peek_full_buffer)
{
	static char buf[MEGA];
	size_t n;
	pid_t pid;

	buffers(self->fd[1], 0, 150000);
	nonblock(self->fd[0], true);
	n = stuff(self->fd[0], 0);
	EXPECT_TRUE(UNTIL(full(self->fd[1])));
	/* the reader frees too little space for an advertisement */
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 60000));
	EXPECT_TRUE(UNTIL(full(self->fd[1])));
	EXPECT_EQ(0, read_stream(self->fd[1], 60000, 60000));
	pid = MUST(fork());
	if (!pid) {
		set_timeo(self->fd[1], SO_RCVTIMEO, LONG);
		recv(self->fd[1], buf, sizeof(buf), MSG_PEEK | MSG_WAITALL);
		_exit(0);
	}
	EXPECT_TRUE(UNTIL(full(self->fd[1])));
	kill(pid, SIGKILL);
	reap(pid);
	EXPECT_EQ(0, read_stream(self->fd[1], 120000, n - 120000));
}

/* With MSG_TRUNC a peek copies nothing while it waits, and takes nothing. */
TEST_F(pair, peek_waitall_trunc)
{
	char buf[100];
	pid_t pid;

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 10));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 10));
	pid = write_later(self->fd[0], 10, 90);
	EXPECT_EQ(100, recv(self->fd[1], buf, 100,
			    MSG_PEEK | MSG_WAITALL | MSG_TRUNC));
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 100));
}

/* SO_RCVLOWAT: poll() and recv() wait for that many bytes. */
TEST_F(pair, rcvlowat)
{
	long long start = now_ms();
	char buf[5000];
	pid_t pid;

	ASSERT_EQ(0, set_int(self->fd[1], SOL_SOCKET, SO_RCVLOWAT, 2000));
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 1999));
	EXPECT_EQ(0, events(self->fd[1], POLLIN, SHORT));
	ASSERT_EQ(0, write_stream(self->fd[0], 1999, 1));
	EXPECT_EQ(POLLIN, events(self->fd[1], POLLIN, LONG));
	pid = write_later(self->fd[0], 2000, 1000);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 1000));
	EXPECT_EQ(2000, recv(self->fd[1], buf, 5000, 0));
	EXPECT_TRUE(right(buf, 1000, 2000));
	EXPECT_EQ(0, reap(pid));
	/* fewer bytes, and the end of data */
	ASSERT_EQ(0, write_stream(self->fd[0], 3000, 10));
	shutdown(self->fd[0], SHUT_WR);
	EXPECT_TRUE(events(self->fd[1], POLLIN, LONG) & POLLIN);
	EXPECT_EQ(10, recv(self->fd[1], buf, 5000, 0));
	EXPECT_EQ(0, recv(self->fd[1], buf, 5000, 0));
	/* data woke the calls each time, not SO_RCVTIMEO */
	EXPECT_GT(LONG, now_ms() - start);
}

/* A reader must not wait for more than the buffer can ever hold. */
TEST_F(pair, rcvlowat_beyond_buffer)
{
	buffers(self->fd[1], 0, 10000);
	ASSERT_EQ(0, set_int(self->fd[1], SOL_SOCKET, SO_RCVLOWAT, MEGA));
	stuff(self->fd[0], 0);
	EXPECT_EQ(POLLIN, events(self->fd[1], POLLIN, LONG));
}

/*
 * Small writes to a reader that doesn't read. Its host answers that it has no memory,
 * so the sender does not give up, whatever net.esp.retries is (rule 13). poll() returns
 * although SO_RCVLOWAT is more than the buffer holds (rule 20).
 */
TEST_F(pair, slow_reader_small_writes)
{
	size_t i, n = 1200;
	char buf[100];
	pid_t pid;

	give_up_soon(A);
	buffers(self->fd[1], 0, 20000);
	ASSERT_EQ(0, set_int(self->fd[1], SOL_SOCKET, SO_RCVLOWAT, 1000000));
	pid = MUST(fork());
	if (!pid) {
		for (i = 0; i < n; i++) {
			if (write_stream(self->fd[0], 100 * i, 100))
				_exit(1);
			usleep(200);
		}
		_exit(0);
	}
	EXPECT_EQ(POLLIN, events(self->fd[1], POLLIN, LONG));
	EXPECT_EQ(0, reap(pid));
	EXPECT_TRUE(tries_long(A));
	for (i = 0; i < n; i++) {
		ASSERT_EQ(100, recv(self->fd[1], buf, 100, MSG_WAITALL));
		ASSERT_TRUE(right(buf, 100 * i, 100));
	}
}

static int epoll_of(int fd, __u32 want)
{
	int e = MUST(epoll_create1(0));
	struct epoll_event ev = { .events = want };

	MUST(epoll_ctl(e, EPOLL_CTL_ADD, fd, &ev));
	return e;
}

/* Return the events that epoll reports within @ms; 0: none. */
static __u32 epolled(int e, int ms)
{
	struct epoll_event ev = {};

	return MUST(epoll_wait(e, &ev, 1, ms)) ? ev.events : 0;
}

TEST_F(pair, epoll_level)
{
	int e = epoll_of(self->fd[1], EPOLLIN | EPOLLRDHUP);

	EXPECT_EQ(0U, epolled(e, 0));
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 10));
	EXPECT_EQ(EPOLLIN, (int)epolled(e, LONG));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 5));
	EXPECT_EQ(EPOLLIN, (int)epolled(e, 0));
	EXPECT_EQ(0, read_stream(self->fd[1], 5, 5));
	EXPECT_EQ(0U, epolled(e, 0));
	shutdown(self->fd[0], SHUT_WR);
	EXPECT_EQ(EPOLLIN | EPOLLRDHUP, (int)epolled(e, LONG));
	shutdown(self->fd[1], SHUT_WR);
	EXPECT_TRUE(UNTIL(epolled(e, 0) & EPOLLHUP));
}

TEST_F(pair, epoll_edge)
{
	int in = epoll_of(self->fd[1], EPOLLIN | EPOLLRDHUP | EPOLLET);
	int out = epoll_of(self->fd[0], EPOLLOUT | EPOLLET);
	size_t pos;

	/* an edge for each arrival */
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 10));
	EXPECT_EQ(EPOLLIN, (int)epolled(in, LONG));
	EXPECT_EQ(0U, epolled(in, SHORT));
	ASSERT_EQ(0, write_stream(self->fd[0], 10, 10));
	EXPECT_EQ(EPOLLIN, (int)epolled(in, LONG));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 20));
	EXPECT_EQ(0U, epolled(in, SHORT));

	/* an edge when there is queue space again */
	buffers(self->fd[0], 50000, 0);
	buffers(self->fd[1], 0, 50000);
	pos = stuff(self->fd[0], 20);
	epolled(out, 0);
	EXPECT_EQ(0U, epolled(out, SHORT));
	EXPECT_EQ(0, read_stream(self->fd[1], 20, pos));
	EXPECT_EQ(EPOLLOUT, (int)epolled(out, LONG));

	/* and for the end */
	epolled(in, 0);
	shutdown(self->fd[0], SHUT_WR);
	EXPECT_EQ(EPOLLIN | EPOLLRDHUP, (int)epolled(in, LONG));
}

/* SIGIO for a process that asked for it. */
TEST_F(pair, sigio)
{
	sigset_t set;
	struct timespec t = { LONG / 1000, 0 };

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ASSERT_EQ(0, fcntl(self->fd[1], F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(self->fd[1], F_SETFL, O_ASYNC));
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 10));
	EXPECT_EQ(SIGIO, sigtimedwait(&set, NULL, &t));
}

/* A signal ends a read without data with EINTR. */
TEST_F(pair, interrupted_recv)
{
	char buf[100];

	set_timeo(self->fd[1], SO_RCVTIMEO, 0);
	alarm_in_call(false);
	EXPECT_ERRNO(EINTR, recv(self->fd[1], buf, 1, 0));
	/* and a read that has got data with those */
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 10));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 10));
	alarm_in_call(false);
	EXPECT_EQ(10, recv(self->fd[1], buf, 100, MSG_WAITALL));
	EXPECT_TRUE(right(buf, 0, 10));
}

TEST_F(pair, restarted_recv)
{
	pid_t pid;
	char c;

	set_timeo(self->fd[1], SO_RCVTIMEO, 0);
	on_alarm_count(true);
	pid = MUST(fork());
	if (!pid) {
		interrupt_parent();
		_exit(!!write_stream(self->fd[0], 0, 1));
	}
	EXPECT_EQ(1, recv(self->fd[1], &c, 1, 0));
	EXPECT_EQ(1, alarms);
	EXPECT_EQ(0, reap(pid));
}

TEST_F(pair, interrupted_send)
{
	size_t n = 4 * MEGA, pos;
	char *buf = malloc(n);
	ssize_t put;

	set_timeo(self->fd[0], SO_SNDTIMEO, 0);
	buffers(self->fd[0], 50000, 0);
	buffers(self->fd[1], 0, 50000);
	fill(buf, 0, n);
	alarm_in_call(true);
	put = send(self->fd[0], buf, n, 0);
	ASSERT_LT(0, put);
	ASSERT_GT((ssize_t)n, put);
	pos = put + stuff(self->fd[0], put);
	alarm_in_call(false);
	EXPECT_ERRNO(EINTR, send(self->fd[0], buf, n, 0));
	EXPECT_EQ(2, alarms);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, pos));
	EXPECT_TRUE(alive(self->fd));
}

/* A storm of signals loses and doubles nothing. */
TEST_F(pair, signal_storm)
{
	struct itimerval t = { { 0, 2000 }, { 0, 2000 } };
	size_t pos;
	pid_t pid;

	set_timeo(self->fd[0], SO_SNDTIMEO, 0);
	set_timeo(self->fd[1], SO_RCVTIMEO, 0);
	buffers(self->fd[0], 50000, 0);
	buffers(self->fd[1], 0, 50000);
	pid = MUST(fork());
	on_alarm_count(true);
	setitimer(ITIMER_REAL, &t, NULL);
	for (pos = 0; !pid; pos += MEGA)
		if (write_stream(self->fd[0], pos, MEGA))
			_exit(1);
	for (pos = 0; pos < 3 * MEGA || alarms < 20; pos += MEGA)
		ASSERT_EQ(0, read_stream(self->fd[1], pos, MEGA));
	t.it_value.tv_usec = 0;
	setitimer(ITIMER_REAL, &t, NULL);
	kill(pid, SIGKILL);
	EXPECT_EQ(-1, reap(pid));
}

TEST_HARNESS_MAIN
