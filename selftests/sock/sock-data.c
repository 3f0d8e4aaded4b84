// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data of a stream: every flag and every way to write and to read. The tests
 * require TCP's behaviour, and "every byte once and in order, or an error"
 * (protocol, "Must hold").
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include "sock-pair.h"

#define LONG_READ 32768

TEST_F(pair, both_ways)
{
	EXPECT_EQ(0, transfer(self->fd[0], self->fd[1], 3 * MEGA));
	EXPECT_EQ(0, transfer(self->fd[1], self->fd[0], 3 * MEGA));
}

/* Both directions at the same time. */
TEST_F(pair, duplex)
{
	pid_t pid[3];
	int i;

	for (i = 0; i < 3; i++) {
		pid[i] = MUST(fork());
		if (pid[i])
			continue;
		if (i == 0)
			_exit(!!write_stream(self->fd[0], 0, 2 * MEGA));
		if (i == 1)
			_exit(!!write_stream(self->fd[1], 0, 2 * MEGA));
		_exit(!!read_stream(self->fd[0], 0, 2 * MEGA));
	}
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 2 * MEGA));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, reap(pid[i]));
}

/* One send() of many MiB, more than all buffers take. */
TEST_F(pair, big_send)
{
	size_t n = 3 * MEGA + 5;
	char *buf = malloc(n);
	pid_t pid;

	buffers(self->fd[0], 100000, 0);
	buffers(self->fd[1], 0, 100000);
	pid = MUST(fork());
	if (!pid) {
		fill(buf, 0, n);
		_exit(send(self->fd[0], buf, n, 0) == (ssize_t)n ? 0 : 1);
	}
	EXPECT_EQ(0, read_stream(self->fd[1], 0, n));
	EXPECT_EQ(0, reap(pid));
}

/* A call that may not wait takes as much as fits. */
TEST_F(pair, partial_write)
{
	size_t n = 4 * MEGA, sent;
	char *buf = malloc(n);
	ssize_t put;

	buffers(self->fd[0], 200000, 0);
	buffers(self->fd[1], 0, 100000);
	fill(buf, 0, n);
	put = send(self->fd[0], buf, n, MSG_DONTWAIT);
	ASSERT_LT(0, put);
	ASSERT_GT((ssize_t)n, put);
	sent = put + stuff(self->fd[0], put);
	EXPECT_EQ(0, events(self->fd[0], POLLOUT, 0));
	nonblock(self->fd[0], true);
	EXPECT_ERRNO(EAGAIN, send(self->fd[0], buf, 1, 0));
	nonblock(self->fd[0], false);
	set_timeo(self->fd[0], SO_SNDTIMEO, 30);
	EXPECT_ERRNO(EAGAIN, send(self->fd[0], buf, 1, 0));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, sent));
	EXPECT_EQ(POLLOUT, events(self->fd[0], POLLOUT, LONG));
	EXPECT_TRUE(alive(self->fd));
}

/* The smallest buffers that can be set: slow, but exact. */
TEST_F(pair, small_buffers)
{
	buffers(self->fd[0], 1, 1);
	buffers(self->fd[1], 1, 1);
	EXPECT_EQ(0, transfer(self->fd[0], self->fd[1], 100000));
	EXPECT_EQ(0, transfer(self->fd[1], self->fd[0], 100000));
}

/* The smallest buffers where a single packet is larger than the whole buffer. */
TEST_F(pair, small_buffers_loopback)
{
	struct sockaddr_esp a = any(PORT);
	int l, fd[2];

	l = esp_socket(A, SOCK_STREAM);
	buffers(l, 1, 1);
	ASSERT_EQ(0, do_bind(l, a));
	ASSERT_EQ(0, listen(l, 1));
	a.sesp_ifindex = if_nametoindex("lo");
	fd[0] = esp_socket(A, SOCK_STREAM);
	buffers(fd[0], 1, 1);
	ASSERT_EQ(0, do_connect(fd[0], a));
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_EQ(0, transfer(fd[0], fd[1], 500000));
	EXPECT_EQ(0, transfer(fd[1], fd[0], 500000));
}

/*
 * Rules 13 and 20: the reader stops. The sender waits without loss and without a
 * time limit, and goes on when there is receive space again.
 */
TEST_F(pair, reader_stops)
{
	size_t pos = 0, got = 0;
	int i;

	give_up_soon(A);
	buffers(self->fd[1], 0, 60000);
	for (i = 0; i < 4; i++) {
		pos += stuff(self->fd[0], pos);
		if (!i)
			ASSERT_TRUE(tries_long(A));
		ASSERT_EQ(0, so_error(self->fd[0]));
		ASSERT_EQ(0, read_stream(self->fd[1], got, (pos - got) / 2));
		got += (pos - got) / 2;
	}
	EXPECT_EQ(0, read_stream(self->fd[1], got, pos - got));
	EXPECT_LT(0, counter(B, "MemPressure"));
	/*
	 * On a busy machine a delay may look like a loss now and then, and a window be sent
	 * again. If waiting were loss, there would be 2 * RETRIES timeouts.
	 */
	EXPECT_GT(RETRIES, (int)stats(self->fd[0]).timeouts);
	EXPECT_GT(200UL, stats(self->fd[0]).retrans);
	EXPECT_TRUE(alive(self->fd));
}

/* After memory pressure the reader takes a byte at a time. */
TEST_F(pair, slow_reader)
{
	size_t pos, i;

	buffers(self->fd[1], 0, 5000);
	buffers(self->fd[0], 5000, 0);
	pos = stuff(self->fd[0], 0);
	for (i = 0; i < pos; i++)
		ASSERT_EQ(0, read_stream(self->fd[1], i, 1));
	EXPECT_TRUE(alive(self->fd));
}

TEST_F(pair, peek)
{
	char buf[10000];

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 10000));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 10000));
	EXPECT_EQ(10, recv(self->fd[1], buf, 10, MSG_PEEK));
	EXPECT_TRUE(right(buf, 0, 10));
	EXPECT_EQ(10000, recv(self->fd[1], buf, 10000, MSG_PEEK));
	EXPECT_TRUE(right(buf, 0, 10000));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 5));
	EXPECT_EQ(9995, recv(self->fd[1], buf, 10000, MSG_PEEK));
	EXPECT_TRUE(right(buf, 5, 9995));
	EXPECT_EQ(9995, queued(self->fd[1], SIOCINQ));
	EXPECT_EQ(0, read_stream(self->fd[1], 5, 9995));
	EXPECT_ERRNO(EAGAIN, recv(self->fd[1], buf, 1, MSG_PEEK | MSG_DONTWAIT));
}

/* MSG_TRUNC: the bytes are thrown away. */
TEST_F(pair, trunc)
{
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 10000));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 10000));
	EXPECT_EQ(4000, recv(self->fd[1], NULL, 4000, MSG_TRUNC));
	EXPECT_EQ(0, read_stream(self->fd[1], 4000, 6000));
}

/*
 * Make three small writes, with @flags except for the last one, or corked if @flags is
 * 0. They give one packet, unless this process was stopped for longer than a packet is
 * held back.
 */
static bool one_packet(int fd[2], int flags)
{
	__u64 before = stats(fd[0]).tx_packets;
	char buf[30];
	int i;

	fill(buf, 0, sizeof(buf));
	if (!flags)
		MUST(set_int(fd[0], SOL_ESP, ESP_CORK, 1));
	for (i = 0; i < 3; i++)
		MUST(send(fd[0], buf + 10 * i, 10, i < 2 ? flags : 0));
	if (!flags)
		MUST(set_int(fd[0], SOL_ESP, ESP_CORK, 0));
	MUST(-!!read_stream(fd[1], 0, 30));
	return stats(fd[0]).tx_packets == before + 1;
}

/* MSG_MORE: a packet that is not full waits for the rest, but not for ever. */
TEST_F(pair, more)
{
	char buf[10000];

	EXPECT_TRUE(UNTIL(one_packet(self->fd, MSG_MORE)));
	fill(buf, 0, sizeof(buf));
	EXPECT_EQ(10, send(self->fd[0], buf, 10, MSG_MORE));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 10));
	/* full packets don't wait */
	EXPECT_EQ(4000, send(self->fd[0], buf + 10, 4000, MSG_MORE));
	EXPECT_EQ(0, read_stream(self->fd[1], 10, 2000));
	/* the end of data ends the wait */
	shutdown(self->fd[0], SHUT_WR);
	EXPECT_EQ(0, read_stream(self->fd[1], 2010, 2000));
	EXPECT_EQ(0, recv(self->fd[1], buf, 1, 0));
}

TEST_F(pair, cork)
{
	char c;

	EXPECT_TRUE(UNTIL(one_packet(self->fd, 0)));
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_CORK, 1));
	EXPECT_EQ(0, write_stream(self->fd[0], 0, 10));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 10));
	/* close() sends what is held back */
	EXPECT_EQ(0, write_stream(self->fd[0], 10, 10));
	close(self->fd[0]);
	EXPECT_EQ(0, read_stream(self->fd[1], 10, 10));
	EXPECT_EQ(0, recv(self->fd[1], &c, 1, 0));
}

/* Let the link lose all frames of B, or none. */
static void lose_acks(bool lose)
{
	enter(B);
	run("tc qdisc %s dev vb root netem loss 100%%", lose ? "add" : "del");
}

/* ESP_NODELAY 0: small packets wait while another one is unacknowledged. */
TEST_F(pair, nagle)
{
	__u64 before;
	int i;

	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_NODELAY, 0));
	before = stats(self->fd[0]).tx_packets;
	lose_acks(true);
	for (i = 0; i < 10; i++)
		EXPECT_EQ(0, write_stream(self->fd[0], 10 * i, 10));
	EXPECT_EQ(90, queued(self->fd[0], SIOCOUTQNSD));
	lose_acks(false);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 100));
	EXPECT_EQ(before + 2, stats(self->fd[0]).tx_packets);
	ASSERT_TRUE(drained(self->fd[0]));
	/* setting ESP_NODELAY sends the waiting packets */
	lose_acks(true);
	EXPECT_EQ(0, write_stream(self->fd[0], 100, 10));
	EXPECT_EQ(0, write_stream(self->fd[0], 110, 10));
	EXPECT_EQ(10, queued(self->fd[0], SIOCOUTQNSD));
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_NODELAY, 1));
	EXPECT_EQ(0, queued(self->fd[0], SIOCOUTQNSD));
	EXPECT_EQ(0, read_stream(self->fd[1], 100, 20));
	lose_acks(false);
}

/* A sender that has filled a small send buffer asks for the ACK that empties it. */
TEST_F(pair, small_send_buffer)
{
	long before = counter(B, "AckDelayed");
	char *buf = malloc(MEGA);
	pid_t pid;

	ASSERT_NE(NULL, buf);
	buffers(self->fd[0], 10000, 0);
	pid = MUST(fork());
	if (!pid)
		_exit(!!read_stream(self->fd[1], 0, MEGA));
	fill(buf, 0, MEGA);
	EXPECT_EQ(MEGA, send(self->fd[0], buf, MEGA, 0));
	EXPECT_EQ(0, reap(pid));
	free(buf);
	/* the buffer was full a hundred times: grants, or questions, bring ACKs, and no timer */
	EXPECT_GT(40, counter(B, "AckDelayed") - before);
}

TEST_F(pair, flags_unknown)
{
	char c = 0;

	EXPECT_ERRNO(EOPNOTSUPP, send(self->fd[0], &c, 1, MSG_OOB));
	EXPECT_ERRNO(EOPNOTSUPP, recv(self->fd[0], &c, 1, MSG_OOB));
	EXPECT_ERRNO(EAGAIN, recv(self->fd[0], &c, 1, MSG_ERRQUEUE));
	EXPECT_ERRNO(EAGAIN, recv(self->fd[0], &c, 1, MSG_DONTWAIT));
	/* the peer is known: an address is ignored, as with TCP */
	EXPECT_EQ(1, do_sendto(self->fd[0], &c, 1, 0, at(A, PORT)));
	EXPECT_EQ(1, recv(self->fd[1], &c, 1, 0));
}

/* Hundreds of small buffers, some empty, of different sizes at the two ends. */
TEST_F(pair, iovec)
{
	static struct iovec out[1000], in[1000];
	static char a[30000], b[30000];
	size_t n = 0, m = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		out[i].iov_base = a + n;
		out[i].iov_len = i * 7 % 23;
		n += out[i].iov_len;
		in[i].iov_base = b + m;
		in[i].iov_len = i * 5 % 27;
		m += in[i].iov_len;
	}
	fill(a, 0, n);
	ASSERT_LT(n, m);
	ASSERT_EQ((ssize_t)n, writev(self->fd[0], out, 1000));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == (int)n));
	EXPECT_EQ((ssize_t)n, readv(self->fd[1], in, 1000));
	EXPECT_TRUE(right(b, 0, n));
	EXPECT_GT(n / 1000 + 2, stats(self->fd[0]).tx_packets);
}

/* Map two pages, the second without access; return the border. */
static char *two_pages(void)
{
	size_t page = getpagesize();
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p == MAP_FAILED ? -1 : 0);
	MUST(mprotect(p + page, page, PROT_NONE));
	return p + page;
}

/* A bad buffer: send() fails with EFAULT, or takes only bytes before the fault. */
TEST_F(pair, fault_send)
{
	char *wall = two_pages(), first[3000];
	struct iovec iov[] = {
		{ first, 3000 }, { wall - 50, 100 }, { first, 100 },
	};
	size_t pos = 0;
	ssize_t n;

	fill(first, 0, 3000);
	fill(wall - 50, 3000, 50);
	EXPECT_ERRNO(EFAULT, send(self->fd[0], wall, 100, 0));
	EXPECT_ERRNO(EFAULT, send(self->fd[0], NULL, 100000, 0));
	EXPECT_EQ(0, events(self->fd[1], POLLIN, SHORT));
	/* as with TCP: some of the bytes before the fault, or none */
	n = writev(self->fd[0], iov, 3);
	if (n < 0) {
		EXPECT_EQ(EFAULT, errno);
		n = 0;
	}
	EXPECT_GE(3050, n);
	pos += n;
	EXPECT_EQ(0, write_stream(self->fd[0], pos, 5000));
	EXPECT_ERRNO(EFAULT, send(self->fd[0], wall, 2000, 0));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, pos + 5000));
	EXPECT_EQ(0, events(self->fd[1], POLLIN, SHORT));
	EXPECT_TRUE(alive(self->fd));
}

/* A bad buffer while MSG_MORE holds an incomplete packet back. */
TEST_F(pair, fault_more)
{
	char *wall = two_pages(), buf[100];

	fill(buf, 0, 100);
	EXPECT_EQ(50, send(self->fd[0], buf, 50, MSG_MORE));
	EXPECT_ERRNO(EFAULT, send(self->fd[0], wall, 100, MSG_MORE));
	EXPECT_ERRNO(EFAULT, send(self->fd[0], wall, 100, 0));
	EXPECT_EQ(50, send(self->fd[0], buf + 50, 50, 0));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 100));
	EXPECT_TRUE(alive(self->fd));
}

TEST_F(pair, fault_recv)
{
	char *wall = two_pages(), buf[1000];
	struct iovec iov[] = { { buf, 1000 }, { wall, 100 } };
	size_t pos = 0;
	ssize_t n;

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 5000));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 5000));
	EXPECT_ERRNO(EFAULT, recv(self->fd[1], wall, 100, 0));
	EXPECT_ERRNO(EFAULT, recv(self->fd[1], NULL, 5000, 0));
	EXPECT_ERRNO(EFAULT, recv(self->fd[1], wall, 5000, MSG_PEEK));
	n = readv(self->fd[1], iov, 2);
	if (n > 0)
		pos = n;
	EXPECT_GE(1000UL, pos);
	EXPECT_TRUE(right(buf, 0, pos));
	n = recv(self->fd[1], wall - 20, 100, 0);
	if (n > 0)
		pos += n;
	EXPECT_EQ(0, read_stream(self->fd[1], pos, 5000 - pos));
	EXPECT_TRUE(alive(self->fd));
}

/* A bad buffer for a read small enough to copy under the socket's spinlock, without page faults. */
TEST_F(pair, fault_recv_small)
{
	char *wall = two_pages(), buf[100];
	struct iovec iov[] = { { buf, 50 }, { wall, 100 } };
	char *untouched = two_pages() - getpagesize();

	ASSERT_EQ(0, write_stream(self->fd[0], 0, 100));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 100));
	EXPECT_ERRNO(EFAULT, recv(self->fd[1], wall, 100, 0));
	EXPECT_ERRNO(EFAULT, recv(self->fd[1], wall - 20, 100, 0));
	EXPECT_ERRNO(EFAULT, recv(self->fd[1], NULL, 200, 0));
	EXPECT_ERRNO(EFAULT, readv(self->fd[1], iov, 2));
	EXPECT_EQ(100, queued(self->fd[1], SIOCINQ));
	EXPECT_EQ(100, recv(self->fd[1], untouched, 100, 0));
	EXPECT_TRUE(right(untouched, 0, 100));

	/* a packet in two calls */
	ASSERT_EQ(0, write_stream(self->fd[0], 100, 100));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 100));
	EXPECT_EQ(50, recv(self->fd[1], buf, 50, 0));
	EXPECT_TRUE(right(buf, 100, 50));
	EXPECT_EQ(50, recv(self->fd[1], buf, 100, MSG_PEEK));
	EXPECT_EQ(0, recv(self->fd[1], buf, 0, MSG_DONTWAIT));
	EXPECT_EQ(50, recv(self->fd[1], buf, 100, 0));
	EXPECT_TRUE(right(buf, 150, 50));
	EXPECT_TRUE(alive(self->fd));
}

/* A bad buffer for a read that copies much at once. */
TEST_F(pair, fault_recv_long)
{
	static char buf[200000];
	char *wall = two_pages();
	struct iovec iov[] = { { buf, 100000 }, { wall, 100000 } };
	size_t pos = 0, total = 400000;
	ssize_t n;
	int i;

	ASSERT_EQ(0, write_stream(self->fd[0], 0, total));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == (int)total));
	EXPECT_ERRNO(EFAULT, recv(self->fd[1], wall, 100000, 0));
	EXPECT_EQ((int)total, queued(self->fd[1], SIOCINQ));
	for (i = 0; i < 3; i++) {
		n = readv(self->fd[1], iov, 2);
		if (n < 0) {
			EXPECT_EQ(EFAULT, errno);
			continue;
		}
		EXPECT_GE(100000, n);
		EXPECT_TRUE(right(buf, pos, n));
		pos += n;
		EXPECT_EQ((int)(total - pos), queued(self->fd[1], SIOCINQ));
	}
	EXPECT_LT(0UL, pos);	/* a packet is smaller than the good buffer */
	EXPECT_EQ(0, read_stream(self->fd[1], pos, total - pos));
	EXPECT_TRUE(alive(self->fd));
}

TEST_F(pair, queues)
{
	int q;

	EXPECT_EQ(0, queued(self->fd[0], SIOCOUTQ));
	EXPECT_EQ(0, queued(self->fd[1], SIOCINQ));
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 2000));
	EXPECT_TRUE(drained(self->fd[0]));
	EXPECT_EQ(2000, queued(self->fd[1], SIOCINQ));
	link_up(B, false);
	ASSERT_EQ(0, write_stream(self->fd[0], 2000, 3000));
	EXPECT_EQ(3000, queued(self->fd[0], SIOCOUTQ));
	link_up(B, true);
	EXPECT_TRUE(drained(self->fd[0]));
	EXPECT_EQ(5000, queued(self->fd[1], SIOCINQ));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 5000));
	EXPECT_EQ(0, queued(self->fd[1], SIOCINQ));
	EXPECT_ERRNO(EFAULT, ioctl(self->fd[0], SIOCINQ, NULL));
	EXPECT_ERRNO(ENOTTY, ioctl(self->fd[0], 0x12345678, &q));
}

TEST_F(pair, sendfile)
{
	int file = stream_file(MEGA + 33);
	off_t pos = 0;
	pid_t pid = MUST(fork());

	if (!pid)
		_exit(!!read_stream(self->fd[1], 0, MEGA + 33));
	while (pos < MEGA + 33)
		ASSERT_LT(0, sendfile(self->fd[0], file, &pos,
				      MEGA + 33 - pos));
	EXPECT_EQ(0, reap(pid));
}

/* The count is larger than the file: the file's last bytes must not be held back. */
TEST_F(pair, sendfile_beyond_end)
{
	int file = stream_file(10007);
	off_t pos = 0;

	EXPECT_EQ(10007, sendfile(self->fd[0], file, &pos, 65536));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 10007));
	EXPECT_TRUE(alive(self->fd));
}

/* A header, then a file, both in one packet; the checksum of the header was computed alone. */
TEST_F(pair, header_then_file)
{
	int file = stream_file(1000);
	char header[100];
	off_t pos = sizeof(header);

	fill(header, 0, sizeof(header));
	ASSERT_EQ(100, send(self->fd[0], header, sizeof(header), MSG_MORE));
	ASSERT_EQ(900, sendfile(self->fd[0], file, &pos, 900));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 1000));
	EXPECT_TRUE(alive(self->fd));
}

/* From a socket through a pipe into a socket. */
TEST_F(pair, splice)
{
	size_t pos = 0, sent = 0;
	int p[2];

	ASSERT_EQ(0, pipe(p));
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 200000));
	while (pos < 200000) {
		ssize_t n = splice(self->fd[1], NULL, p[1], NULL, 50000, 0);

		ASSERT_LT(0, n);
		pos += n;
		while (sent < pos) {
			n = splice(p[0], NULL, self->fd[1], NULL, pos - sent, 0);
			ASSERT_LT(0, n);
			sent += n;
		}
	}
	EXPECT_EQ(0, read_stream(self->fd[0], 0, 200000));
}

/* splice() from an empty socket waits if it may, and sees the end of data. */
TEST_F(pair, splice_waits)
{
	char buf[10];
	pid_t pid;
	int p[2];

	ASSERT_EQ(0, pipe(p));
	nonblock(self->fd[1], true);
	EXPECT_ERRNO(EAGAIN, splice(self->fd[1], NULL, p[1], NULL, 100, 0));
	nonblock(self->fd[1], false);
	alarm_in_call(false);
	EXPECT_ERRNO(EINTR, splice(self->fd[1], NULL, p[1], NULL, 100, 0));
	pid = MUST(fork());
	if (!pid) {
		usleep(SHORT * 1000);
		_exit(-write_stream(self->fd[0], 0, 10));
	}
	EXPECT_EQ(10, splice(self->fd[1], NULL, p[1], NULL, 100, 0));
	EXPECT_EQ(10, read(p[0], buf, sizeof(buf)));
	EXPECT_TRUE(right(buf, 0, 10));
	EXPECT_EQ(0, reap(pid));
	shutdown(self->fd[0], SHUT_WR);
	EXPECT_EQ(0, splice(self->fd[1], NULL, p[1], NULL, 100, 0));
}

TEST_F(pair, zero_length)
{
	__u64 before = stats(self->fd[0]).tx_packets;
	char c;

	EXPECT_EQ(0, send(self->fd[0], "", 0, 0));
	EXPECT_EQ(0, send(self->fd[0], NULL, 0, 0));
	EXPECT_EQ(before, stats(self->fd[0]).tx_packets);
	EXPECT_ERRNO(EAGAIN, recv(self->fd[1], &c, 1, MSG_DONTWAIT));
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 10));
	ASSERT_TRUE(drained(self->fd[0]));
	EXPECT_EQ(0, recv(self->fd[1], &c, 0, 0));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 10));
}

struct writer {
	int fd, tag, err;
};

#define BLOCKS	3000
#define BLOCK	101

/* Write bytes that have the writer's tag in one bit, and their position in seven bits. */
static void *tagged(void *arg)
{
	struct writer *w = arg;
	__u8 buf[BLOCK];
	int i, j;

	for (i = 0; i < BLOCKS; i++) {
		for (j = 0; j < BLOCK; j++)
			buf[j] = w->tag << 7 | ((i * BLOCK + j) & 127);
		if (send(w->fd, buf, BLOCK, 0) != BLOCK)
			w->err = errno ?: EIO;
	}
	return NULL;
}

/* Two threads write to one socket: each one's bytes are in order. */
TEST_F(pair, two_writers)
{
	struct writer w[2] = { { self->fd[0], 0, 0 }, { self->fd[0], 1, 0 } };
	int total = 2 * BLOCKS * BLOCK, count[2] = {}, got, i;
	static __u8 buf[CHUNK];
	pthread_t t[2];

	buffers(self->fd[0], 20000, 0);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&t[i], NULL, tagged, &w[i]));
	for (; total > 0; total -= got) {
		got = recv(self->fd[1], buf, CHUNK, 0);
		ASSERT_LT(0, got);
		for (i = 0; i < got; i++) {
			int tag = buf[i] >> 7;

			ASSERT_EQ(count[tag] & 127, buf[i] & 127);
			count[tag]++;
		}
	}
	for (i = 0; i < 2; i++) {
		pthread_join(t[i], NULL);
		EXPECT_EQ(0, w[i].err);
		EXPECT_EQ(BLOCKS * BLOCK, count[i]);
	}
	EXPECT_TRUE(alive(self->fd));
}

/* Read @n bytes at a time, and count how often each word comes. */
static int count_words(int fd, __u8 *seen, size_t n)
{
	static __u32 word[LONG_READ / 4];
	ssize_t got;

	/* the queue holds whole words, so a reader gets whole words */
	while ((got = recv(fd, word, n, MSG_WAITALL)) > 0)
		for (got /= 4; got--;)
			__atomic_add_fetch(&seen[word[got]], 1, __ATOMIC_RELAXED);
	return got < 0;
}

/* Peek: the bytes at the head of the queue are consecutive, whichever process reads meanwhile. */
static int look_at_words(int fd)
{
	static __u32 word[LONG_READ / 4];
	ssize_t got;
	int i;

	while ((got = recv(fd, word, sizeof(word), MSG_PEEK)) > 0)
		for (i = 1; i < got / 4; i++)
			if (word[i] != word[0] + i)
				return 1;
	return got < 0;
}

/* Several processes read from one socket: no byte is lost, none comes twice. */
static void read_together(struct __test_metadata *_metadata, int fd[2], size_t n,
			  int words, int others)
{
	__u8 *seen = mmap(NULL, 8 * MEGA, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i, j;
	pid_t pid[3];

	for (i = 0; i < 2 + others; i++) {
		pid[i] = MUST(fork());
		if (!pid[i])
			_exit(i < 2 ? count_words(fd[1], seen, n) :
				      look_at_words(fd[1]));
	}
	for (i = 0; i < words; i += 256) {
		__u32 word[256];

		for (j = 0; j < 256; j++)
			word[j] = i + j;
		ASSERT_EQ(1024, send(fd[0], word, 1024, 0));
	}
	shutdown(fd[0], SHUT_WR);
	for (i = 0; i < 2 + others; i++)
		EXPECT_EQ(0, reap(pid[i]));
	for (i = 0; i < words; i++)
		ASSERT_EQ(1, seen[i]) TH_LOG("word %d", i);
	munmap(seen, 8 * MEGA);
}

TEST_F(pair, two_readers)
{
	read_together(_metadata, self->fd, 1024, MEGA / 4, 0);
}

/* Two readers whose copies are long enough to be made without the lock. */
TEST_F(pair, two_long_readers)
{
	read_together(_metadata, self->fd, LONG_READ, 8 * MEGA / 4, 1);
}

/* Map @size bytes that stay missing until the test provides them; return the userfaultfd, or -1. */
static int absent(void **p, size_t size)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0)
		return -1;
	*p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(*p == MAP_FAILED ? -1 : 0);
	r.range.start = (unsigned long)*p;
	r.range.len = size;
	MUST(ioctl(uffd, UFFDIO_API, &api));
	MUST(ioctl(uffd, UFFDIO_REGISTER, &r));
	return uffd;
}

struct read_call {
	int	fd;
	void	*buf;
	size_t	size;
	ssize_t	got;
	int	over;
};

static void *read_call(void *p)
{
	struct read_call *c = p;

	c->got = recv(c->fd, c->buf, c->size, 0);
	__atomic_store_n(&c->over, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* While a long copy waits for its memory, no other reader may take the bytes after it. */
TEST_F(pair, small_read_behind_long)
{
	struct read_call c[2] = { { .size = 65536 }, { .size = 256 } };
	struct uffdio_zeropage zero = { .range.len = 65536 };
	struct pollfd fault = { .fd = absent(&c[0].buf, 65536), .events = POLLIN };
	static __u8 buf[8192];
	pthread_t t[2];
	int i;

	ASSERT_LE(0, fault.fd) TH_LOG("userfaultfd: %s", strerror(errno));
	c[0].fd = c[1].fd = self->fd[1];
	c[1].buf = buf;
	for (i = 0; i < 8; i++) {	/* a reader that never sleeps copies without the lock */
		ASSERT_EQ(0, write_stream(self->fd[0], 0, 8192));
		ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 8192));
		ASSERT_EQ(8192, recv(self->fd[1], buf, 8192, 0));
	}
	ASSERT_EQ(0, write_stream(self->fd[0], 0, 65536));
	ASSERT_TRUE(UNTIL(queued(self->fd[1], SIOCINQ) == 65536));
	ASSERT_EQ(0, pthread_create(&t[0], NULL, read_call, &c[0]));
	ASSERT_EQ(1, poll(&fault, 1, LONG));
	ASSERT_EQ(POLLIN, fault.revents);
	ASSERT_EQ(0, write_stream(self->fd[0], 65536, 64));
	ASSERT_EQ(0, pthread_create(&t[1], NULL, read_call, &c[1]));
	usleep(1000 * SHORT);
	EXPECT_EQ(0, __atomic_load_n(&c[1].over, __ATOMIC_ACQUIRE));
	zero.range.start = (unsigned long)c[0].buf;
	ASSERT_EQ(0, ioctl(fault.fd, UFFDIO_ZEROPAGE, &zero));
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	EXPECT_EQ(65536, c[0].got);
	EXPECT_TRUE(right(c[0].buf, 0, 65536));
	EXPECT_EQ(64, c[1].got);
	EXPECT_TRUE(right(buf, 65536, 64));
	close(fault.fd);
}

TEST_HARNESS_MAIN
