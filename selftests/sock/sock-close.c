// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a stream: shutdown(), close(), SO_LINGER, resets, killed processes.
 * A device or link that is down for a while does not end it. The tests require
 * TCP's behaviour; data come before the end or the error.
 */
#include "sock-pair.h"

static int pipes;

static void on_pipe(int sig)
{
	pipes += sig == SIGPIPE;
}

/* EPIPE comes with SIGPIPE, unless MSG_NOSIGNAL is set. */
TEST_F(pair, sigpipe)
{
	signal(SIGPIPE, on_pipe);
	shutdown(self->fd[0], SHUT_WR);
	EXPECT_ERRNO(EPIPE, send(self->fd[0], "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(0, pipes);
	EXPECT_ERRNO(EPIPE, send(self->fd[0], "x", 1, 0));
	EXPECT_EQ(1, pipes);
	EXPECT_ERRNO(EPIPE, write(self->fd[0], "x", 1));
	EXPECT_EQ(2, pipes);
	/* the other direction still works */
	EXPECT_EQ(0, transfer(self->fd[1], self->fd[0], 100000));
}

/* A writer to a peer that has closed gets EPIPE, because the peer sends a reset. */
TEST_F(pair, write_after_close)
{
	char c;

	close(self->fd[1]);
	EXPECT_EQ(0, recv(self->fd[0], &c, 1, 0));
	EXPECT_EQ(1, send(self->fd[0], "x", 1, MSG_NOSIGNAL));
	ASSERT_TRUE(UNTIL(events(self->fd[0], POLLIN, 0) & POLLERR));
	/* a reader has seen all of the stream, so the error is the writer's, as with TCP */
	EXPECT_EQ(0, recv(self->fd[0], &c, 1, 0));
	EXPECT_ERRNO(EPIPE, send(self->fd[0], "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(0, recv(self->fd[0], &c, 1, 0));
}

/* Half-close: one direction ends, the other goes on. */
TEST_F(pair, half_close)
{
	int i;

	for (i = 0; i < 2; i++) {
		int *fd = self->fd;
		char c;

		ASSERT_EQ(0, write_stream(fd[i], 0, 50000));
		ASSERT_EQ(0, shutdown(fd[i], SHUT_WR));
		EXPECT_EQ(0, read_stream(fd[!i], 0, 50000));
		EXPECT_EQ(0, recv(fd[!i], &c, 1, 0));
		EXPECT_EQ(0, recv(fd[!i], &c, 1, 0));
		EXPECT_EQ(0, transfer(fd[!i], fd[i], 500000));
		ASSERT_EQ(0, shutdown(fd[!i], SHUT_WR));
		EXPECT_EQ(0, recv(fd[i], &c, 1, 0));
		EXPECT_TRUE(events(fd[i], POLLIN, 0) & POLLHUP);
		EXPECT_TRUE(UNTIL(inuse(A) + inuse(B) == 0));
		EXPECT_ERRNO(ENOTCONN, shutdown(fd[i], SHUT_WR));
		close(fd[0]);
		close(fd[1]);
		make_pair(SOCK_STREAM, fd);
		impatient(fd[0]);
		impatient(fd[1]);
	}
}

/* Both ends close at the same time. */
TEST_F(pair, simultaneous_close)
{
	char c;
	int i;

	for (i = 0; i < 2; i++) {
		enter(&hosts[i]);
		run("tc qdisc add dev %s root netem delay 20ms", hosts[i].dev);
	}
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 5000));
	ASSERT_EQ(0, write_stream(self->fd[1], 0, 5000));
	shutdown(self->fd[0], SHUT_WR);
	shutdown(self->fd[1], SHUT_WR);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, read_stream(self->fd[i], 0, 5000));
		EXPECT_EQ(0, recv(self->fd[i], &c, 1, 0));
	}
	EXPECT_TRUE(UNTIL(inuse(A) + inuse(B) == 0));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, so_error(self->fd[i]));
}

/* shutdown(SHUT_RD) ends reading here, and tells the peer nothing. */
TEST_F(pair, shutdown_read)
{
	char c;

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 100));
	ASSERT_TRUE(drained(self->fd[0]));
	ASSERT_EQ(0, shutdown(self->fd[1], SHUT_RD));
	EXPECT_EQ(POLLIN | POLLRDHUP,
		  events(self->fd[1], POLLIN | POLLRDHUP, 0));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 100));
	EXPECT_EQ(0, recv(self->fd[1], &c, 1, 0));
	EXPECT_EQ(0, transfer(self->fd[1], self->fd[0], 100000));
	EXPECT_EQ(1, send(self->fd[0], "x", 1, 0));
	EXPECT_TRUE(drained(self->fd[0]));
}

/* shutdown() wakes a process that waits. */
TEST_F(pair, shutdown_wakes)
{
	pid_t reader, writer;
	char c;

	reader = MUST(fork());
	if (!reader)
		_exit(recv(self->fd[1], &c, 1, 0) ? 1 : 0);
	buffers(self->fd[1], 50000, 0);
	buffers(self->fd[0], 0, 50000);
	writer = MUST(fork());
	if (!writer)
		_exit(-write_stream(self->fd[1], 0, 4 * MEGA));
	ASSERT_TRUE(UNTIL(asleep(reader)));
	ASSERT_TRUE(UNTIL(asleep(writer)));
	EXPECT_EQ(0, shutdown(self->fd[1], SHUT_RD));
	EXPECT_EQ(0, reap(reader));
	EXPECT_EQ(0, shutdown(self->fd[1], SHUT_WR));
	EXPECT_EQ(EPIPE, reap(writer));
	EXPECT_EQ(0, shutdown(self->fd[1], SHUT_RDWR));
}

/* SO_LINGER with 0 resets the connection; data that had arrived can be read. */
TEST_F(pair, linger_zero)
{
	char c;

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 1000));
	ASSERT_TRUE(drained(self->fd[0]));
	linger(self->fd[0], 0);
	close(self->fd[0]);
	ASSERT_TRUE(UNTIL(events(self->fd[1], POLLIN, 0) & POLLERR));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 1000));
	EXPECT_ERRNO(ECONNRESET, recv(self->fd[1], &c, 1, 0));
	EXPECT_EQ(0, recv(self->fd[1], &c, 1, 0));
	EXPECT_ERRNO(EPIPE, send(self->fd[1], &c, 1, MSG_NOSIGNAL));
}

/* Reset a connection while its data are under way, so that the peer expects another number. */
static void reset_in_flight(const int fd[2])
{
	enter(A);
	run("tc qdisc add dev va root netem delay 20ms");
	MUST(write_stream(fd[0], 0, 1000) ? -1 : 0);
	linger(fd[0], 0);
	close(fd[0]);
}

/* A reset with a number that the peer does not expect is sent again. */
TEST_F(pair, linger_zero_in_flight)
{
	char c;

	sysctl(A, "time_wait_ms", 10000);
	reset_in_flight(self->fd);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 1000));
	EXPECT_ERRNO(ECONNRESET, recv(self->fd[1], &c, 1, 0));
	EXPECT_EQ(0, counter(A, "InNoSocket"));
}

/* ... also if the connection is forgotten by the time that the peer asks. */
TEST_F(pair, linger_zero_forgotten)
{
	char c;

	sysctl(A, "time_wait_ms", 1);
	reset_in_flight(self->fd);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 1000));
	EXPECT_ERRNO(ECONNRESET, recv(self->fd[1], &c, 1, 0));
	EXPECT_LE(1, counter(A, "InNoSocket"));
}

/* SO_LINGER: close() waits for the ACK, but not for ever. */
TEST_F(pair, linger_waits)
{
	long long start = now_ms();
	char c;

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 100000));
	linger(self->fd[0], LONG / 1000);
	ASSERT_EQ(0, close(self->fd[0]));
	EXPECT_GT(LONG, now_ms() - start);
	EXPECT_EQ(100000, queued(self->fd[1], SIOCINQ));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 100000));
	EXPECT_EQ(0, recv(self->fd[1], &c, 1, 0));

	close(self->fd[1]);
	make_pair(SOCK_STREAM, self->fd);
	link_up(B, false);
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 1000));
	linger(self->fd[0], 1);
	start = now_ms();
	ASSERT_EQ(0, close(self->fd[0]));
	EXPECT_LE(900, now_ms() - start);
	EXPECT_GT(LONG, now_ms() - start);
	/* data that are not acknowledged are still on the way */
	link_up(B, true);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 1000));
	EXPECT_EQ(0, recv(self->fd[1], &c, 1, 0));
}

/* close() with unread data tells the peer by a reset. */
TEST_F(pair, close_unread)
{
	char c;

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 1000));
	ASSERT_TRUE(drained(self->fd[0]));
	close(self->fd[1]);
	EXPECT_ERRNO(ECONNRESET, recv(self->fd[0], &c, 1, 0));
	EXPECT_EQ(0, recv(self->fd[0], &c, 1, 0));
	EXPECT_ERRNO(EPIPE, send(self->fd[0], &c, 1, MSG_NOSIGNAL));
}

/* Start a child that writes more than is read, and waits for queue space. */
static pid_t write_too_much(int fd[2])
{
	pid_t pid;

	buffers(fd[0], 50000, 0);
	buffers(fd[1], 0, 50000);
	pid = MUST(fork());
	if (!pid) {
		close(fd[1]);
		_exit(-write_stream(fd[0], 0, 64 * MEGA));
	}
	return pid;
}

/* The writer gets the error, too, even if it waits for queue space. */
TEST_F(pair, close_unread_writer)
{
	pid_t pid = write_too_much(self->fd);

	ASSERT_TRUE(events(self->fd[1], POLLIN, LONG));
	ASSERT_TRUE(UNTIL(asleep(pid)));
	close(self->fd[1]);
	EXPECT_EQ(ECONNRESET, reap(pid));
}

/* close() with data in flight delivers all of it. */
TEST_F(pair, close_in_flight)
{
	size_t n = 2 * MEGA;
	char c;

	MUST(set_int(self->fd[0], SOL_SOCKET, SO_SNDBUFFORCE, 2 * MEGA));
	buffers(self->fd[1], 0, 100000);
	ASSERT_EQ(0, write_stream(self->fd[0], 0, n));
	close(self->fd[0]);
	usleep(SHORT * 1000);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, n));
	EXPECT_EQ(0, recv(self->fd[1], &c, 1, 0));
	EXPECT_EQ(0, so_error(self->fd[1]));
}

/* ... also if the reader is so slow that nothing moves for longer than the retries last. */
TEST_F(pair, close_in_flight_slow)
{
	size_t n;

	give_up_soon(A);
	buffers(self->fd[0], 300000, 0);
	buffers(self->fd[1], 0, 20000);
	n = stuff(self->fd[0], 0);
	close(self->fd[0]);
	EXPECT_TRUE(tries_long(A));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, n));
}

/* An error after the data is not lost: first come the data, then the error. */
TEST_F(pair, waitall_reset)
{
	char buf[200];

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 100));
	ASSERT_TRUE(drained(self->fd[0]));
	linger(self->fd[0], 0);
	close(self->fd[0]);
	ASSERT_TRUE(UNTIL(events(self->fd[1], POLLIN, 0) & POLLERR));
	EXPECT_EQ(100, recv(self->fd[1], buf, 200, MSG_WAITALL));
	EXPECT_TRUE(right(buf, 0, 100));
	EXPECT_ERRNO(ECONNRESET, recv(self->fd[1], buf, 200, MSG_WAITALL));
	EXPECT_EQ(0, recv(self->fd[1], buf, 200, 0));
}

/*
 * A reset while much is being sent: the sending call returns the error, or the next
 * call, whatever it is.
 */
TEST_F(pair, reset_in_send)
{
	static char buf[16 * MEGA];
	int i, fd[2], seen = 0;
	pid_t pid;
	ssize_t n;
	char c;

	for (i = 0; i < 40; i++) {
		make_pair(SOCK_STREAM, fd);
		pid = MUST(fork());
		if (!pid) {
			close(fd[0]);
			recv(fd[1], buf, i * 100000 + 1, MSG_WAITALL);
			linger(fd[1], 0);
			_exit(0);
		}
		close(fd[1]);
		impatient(fd[0]);
		n = send(fd[0], buf, sizeof(buf), 0);
		if (n < 0) {
			EXPECT_EQ(ECONNRESET, errno);
		} else {
			ASSERT_GT((ssize_t)sizeof(buf), n);
			EXPECT_ERRNO(ECONNRESET, recv(fd[0], &c, 1, 0));
			seen++;
		}
		EXPECT_EQ(0, reap(pid));
		close(fd[0]);
	}
	EXPECT_LT(0, seen);
}

/* A process dies in send(): the data that it had sent arrive, and the end of data. */
TEST_F(pair, killed_in_send)
{
	static char buf[CHUNK];
	size_t pos = 0;
	pid_t pid;
	ssize_t n;

	pid = write_too_much(self->fd);
	close(self->fd[0]);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 200000));
	ASSERT_TRUE(UNTIL(asleep(pid)));
	kill(pid, SIGKILL);
	EXPECT_EQ(-1, reap(pid));
	for (pos = 200000; (n = recv(self->fd[1], buf, CHUNK, 0)) > 0; pos += n)
		ASSERT_TRUE(right(buf, pos, n));
	EXPECT_EQ(0, n);
}

TEST_F(pair, killed_in_recv)
{
	char c;
	pid_t pid;

	pid = MUST(fork());
	if (!pid) {
		close(self->fd[0]);
		_exit(read_stream(self->fd[1], 0, MEGA));
	}
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 1000));
	ASSERT_TRUE(drained(self->fd[0]));
	/* if the child died with unread data, its host would send a reset */
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 0));
	close(self->fd[1]);
	kill(pid, SIGKILL);
	EXPECT_EQ(-1, reap(pid));
	EXPECT_EQ(0, recv(self->fd[0], &c, 1, 0));
}

/* Rule 1: ENETDOWN while the device is down, and the connection survives. */
TEST_F(pair, device_down)
{
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 1000));
	link_up(A, false);
	EXPECT_ERRNO(ENETDOWN, send(self->fd[0], "x", 1, 0));
	EXPECT_EQ(0, so_error(self->fd[0]));
	/* the other end does not know of it, so its data wait */
	EXPECT_EQ(0, write_stream(self->fd[1], 0, 1000));
	usleep(100 * 1000);
	link_up(A, true);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 1000));
	EXPECT_EQ(0, read_stream(self->fd[0], 0, 1000));
	EXPECT_TRUE(alive(self->fd));

	sysctl(A, "dev/va/enable", 0);
	EXPECT_ERRNO(ENETDOWN, send(self->fd[0], "x", 1, 0));
	sysctl(A, "dev/va/enable", 1);
	EXPECT_TRUE(alive(self->fd));
}

/* The link goes away and comes back in the midst of a transfer. */
TEST_F(pair, link_flaps)
{
	pid_t pid = MUST(fork());
	int i;

	if (!pid)
		_exit(!!write_stream(self->fd[0], 0, 2 * MEGA));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, read_stream(self->fd[1], i * MEGA / 2, MEGA / 2));
		link_up(B, false);
		usleep(20 * 1000);
		link_up(B, true);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_TRUE(alive(self->fd));
}

TEST_HARNESS_MAIN
