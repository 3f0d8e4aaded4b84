// SPDX-License-Identifier: GPL-2.0-only
// LIBS: -luring
/*
 * Sending without a copy: MSG_ZEROCOPY and its notices, and io_uring's
 * IORING_OP_SEND_ZC. A receiver on the same host, over veth, copies lent memory,
 * as with TCP; a NIC would read the user's memory.
 */
#include <time.h>
#include <linux/errqueue.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include "sock-pair.h"

#define SIZE	300000

#ifndef IORING_SEND_ZC_REPORT_USAGE	/* liburing's header may be of Linux 6.1 */
#define IORING_SEND_ZC_REPORT_USAGE	(1U << 3)
#endif
#ifndef IORING_NOTIF_USAGE_ZC_COPIED
#define IORING_NOTIF_USAGE_ZC_COPIED	(1U << 31)
#endif

static void *pages(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Read the next notice, for calls *lo to *hi. Return its code, or -1. */
static int notice(int fd, __u32 *lo, __u32 *hi)
{
	char control[100];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	struct sock_extended_err *ee;
	struct cmsghdr *c;

	if (recvmsg(fd, &msg, MSG_ERRQUEUE))
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_ESP || c->cmsg_type != ESP_RECVERR ||
	    !(msg.msg_flags & MSG_ERRQUEUE))
		return -1;
	ee = (struct sock_extended_err *)CMSG_DATA(c);
	if (ee->ee_origin != SO_EE_ORIGIN_ZEROCOPY || ee->ee_errno)
		return -1;
	*lo = ee->ee_info;
	*hi = ee->ee_data;
	return ee->ee_code;
}

/* The calls that have got a notice, and their number; each one once, in any order. */
struct told {
	bool seen[1000];
	__u32 n;
	int code;	/* the last notice's */
};

/* Take a notice that comes within @ms; false: none, or a wrong one. */
static bool tell(int fd, struct told *t, int ms)
{
	__u32 lo, hi;

	if (!(events(fd, 0, ms) & POLLERR))
		return false;
	t->code = notice(fd, &lo, &hi);
	if (t->code < 0 || hi < lo || hi >= 1000)
		return false;
	for (; lo <= hi; lo++, t->n++) {
		if (t->seen[lo])
			return false;
		t->seen[lo] = true;
	}
	return true;
}

/* Wait for notices of the first @n calls, in any order: a copied call's notice needs no ACK. */
static bool noticed(int fd, struct told *t, __u32 n)
{
	while (t->n < n)
		if (!tell(fd, t, LONG))
			return false;
	return t->n == n && t->seen[n - 1];
}

static bool silent(int fd)
{
	__u32 lo, hi;

	return notice(fd, &lo, &hi) < 0 && errno == EAGAIN && !(events(fd, 0, 0) & POLLERR);
}

/* Lent memory may be changed after its notice has come, and not before. */
TEST_F(pair, notices)
{
	char *buf = pages(SIZE);
	struct told told = {};
	int i, times = 12;
	pid_t pid;

	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	EXPECT_EQ(1, get_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY));
	EXPECT_EQ(1, get_int(self->fd[0], SOL_SOCKET, SO_ZEROCOPY));
	pid = MUST(fork());
	if (!pid)
		_exit(!!read_stream(self->fd[1], 0, (size_t)times * SIZE));
	for (i = 0; i < times; i++) {
		fill(buf, (size_t)i * SIZE, SIZE);
		ASSERT_EQ(SIZE, send(self->fd[0], buf, SIZE, MSG_ZEROCOPY));
		EXPECT_TRUE(noticed(self->fd[0], &told, i + 1));
	}
	EXPECT_TRUE(silent(self->fd[0]));
	EXPECT_EQ(0, reap(pid));
}

/* Lent and copied sends of all sizes, with and without MSG_MORE, give one stream. */
TEST_F(pair, mixed)
{
	size_t n = 4 * MEGA, pos, step;
	struct told told = {};
	char *buf = pages(n);
	__u32 calls = 0;
	ssize_t put;
	bool zero;
	int i = 0;
	pid_t pid;

	ASSERT_NE(NULL, buf);
	fill(buf, 0, n);
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	pid = MUST(fork());
	if (!pid)
		_exit(!!read_stream(self->fd[1], 0, n));
	for (pos = 0; pos < n; pos += step, i++) {
		static const size_t steps[] = { 100, 5000, 70001, 1, 300, 200000, 4096, 1446, 64999 };

		if (i == 40) {	/* from here on packets are segmented before the device */
			enter(A);
			run("ethtool -K va tx-sctp-segmentation off");
		}
		step = steps[i % 9];
		zero = i % 4 != 3;
		if (step > n - pos)
			step = n - pos;
		/* unread notices take the memory for more notices */
		while ((put = send(self->fd[0], buf + pos, step,
				   (zero ? MSG_ZEROCOPY : 0) | (i % 5 ? 0 : MSG_MORE))) < 0 &&
		       errno == ENOBUFS)
			ASSERT_TRUE(tell(self->fd[0], &told, LONG));
		ASSERT_EQ((ssize_t)step, put);
		calls += zero;
	}
	EXPECT_TRUE(noticed(self->fd[0], &told, calls));
	EXPECT_EQ(0, reap(pid));
}

/* Lost packets are retransmitted from the lent memory. */
TEST_F(pair, loss)
{
	size_t n = 3 * MEGA;
	char *buf = pages(n);
	pid_t pid;

	ASSERT_NE(NULL, buf);
	fill(buf, 0, n);
	run("tc qdisc add dev va root netem loss 25%%");
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	pid = MUST(fork());
	if (!pid)
		_exit(!!read_stream(self->fd[1], 0, n));
	ASSERT_EQ((ssize_t)n, send(self->fd[0], buf, n, MSG_ZEROCOPY));
	EXPECT_TRUE(noticed(self->fd[0], &(struct told){}, 1));
	EXPECT_EQ(0, reap(pid));
	EXPECT_LT(0ULL, stats(self->fd[0]).retrans);
}

/* Data that a receiver on this host has not read yet were copied from the sender's memory. */
TEST_F(pair, unread)
{
	struct told told = {};
	char *buf = pages(SIZE);

	ASSERT_NE(NULL, buf);
	fill(buf, 0, SIZE);
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	ASSERT_EQ(SIZE, send(self->fd[0], buf, SIZE, MSG_ZEROCOPY));
	EXPECT_TRUE(noticed(self->fd[0], &told, 1));
	EXPECT_EQ(SO_EE_CODE_ZEROCOPY_COPIED, told.code);
	memset(buf, 0, SIZE);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, SIZE));
}

/* Data that reached no receiver on this host were not copied. */
TEST_F(pair, not_copied)
{
	struct told told = {};
	char *buf = pages(SIZE);

	ASSERT_NE(NULL, buf);
	ASSERT_TRUE(alive(self->fd));
	enter(A);
	run("tc qdisc add dev va root netem loss 100%%");
	forget_soon(A);
	forget_soon(B);
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	ASSERT_EQ(SIZE, send(self->fd[0], buf, SIZE, MSG_ZEROCOPY));
	EXPECT_TRUE(UNTIL(so_error(self->fd[0]) == ETIMEDOUT));
	EXPECT_TRUE(noticed(self->fd[0], &told, 1));
	EXPECT_EQ(0, told.code);
	enter(A);
	run("tc qdisc del dev va root");
}

/* A socket without ESP_ZEROCOPY gets no notice. A call that takes no data gets none either. */
TEST_F(pair, not_asked)
{
	char buf[5000] = "";
	size_t sent;

	ASSERT_EQ(5000, send(self->fd[0], buf, 5000, MSG_ZEROCOPY));
	ASSERT_EQ(5000, recv(self->fd[1], buf, 5000, MSG_WAITALL));
	EXPECT_TRUE(drained(self->fd[0]));
	EXPECT_TRUE(silent(self->fd[0]));

	EXPECT_ERRNO(EINVAL, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 2));
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	buffers(self->fd[0], 50000, 0);
	buffers(self->fd[1], 0, 20000);
	sent = stuff(self->fd[0], 0);
	EXPECT_ERRNO(EAGAIN, send(self->fd[0], buf, 5000, MSG_ZEROCOPY | MSG_DONTWAIT));
	EXPECT_TRUE(silent(self->fd[0]));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, sent));
	EXPECT_TRUE(drained(self->fd[0]));
	EXPECT_ERRNO(EFAULT, send(self->fd[0], NULL, 5000, MSG_ZEROCOPY));
	EXPECT_TRUE(silent(self->fd[0]));
	/* the first call that takes data is number 0 */
	fill(buf, 0, 5000);
	ASSERT_EQ(5000, send(self->fd[0], buf, 5000, MSG_ZEROCOPY));
	EXPECT_EQ(0, read_stream(self->fd[1], 0, 5000));
	EXPECT_TRUE(noticed(self->fd[0], &(struct told){}, 1));
}

/* Small data are copied, and get a notice all the same. */
TEST_F(pair, small)
{
	char buf[64] = "";
	struct told told = {};
	int i;

	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(64, send(self->fd[0], buf, 64, MSG_ZEROCOPY));
	EXPECT_TRUE(noticed(self->fd[0], &told, 3));
	EXPECT_EQ(SO_EE_CODE_ZEROCOPY_COPIED, told.code);
	ASSERT_EQ(192, recv(self->fd[1], (char [192]){}, 192, MSG_WAITALL));
}

/* A connection that is reset gives back the lent memory. */
TEST_F(pair, reset)
{
	char *buf = pages(2 * MEGA);
	ssize_t n;

	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	buffers(self->fd[1], 0, 50000);
	n = send(self->fd[0], buf, 2 * MEGA, MSG_ZEROCOPY | MSG_DONTWAIT);
	ASSERT_LT(0, n);
	EXPECT_TRUE(silent(self->fd[0]));
	linger(self->fd[1], 0);
	close(self->fd[1]);
	EXPECT_TRUE(UNTIL(events(self->fd[0], POLLIN, 0) & POLLHUP));
	EXPECT_EQ(ECONNRESET, so_error(self->fd[0]));
	EXPECT_TRUE(noticed(self->fd[0], &(struct told){}, 1));
}

/* The sender closes its socket before the notice. */
TEST_F(pair, closed)
{
	char *buf = pages(MEGA);

	ASSERT_NE(NULL, buf);
	fill(buf, 0, MEGA);
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	ASSERT_EQ(MEGA, send(self->fd[0], buf, MEGA, MSG_ZEROCOPY));
	close(self->fd[0]);
	EXPECT_EQ(0, read_stream(self->fd[1], 0, MEGA));
	EXPECT_EQ(0, recv(self->fd[1], buf, 1, 0));
}

/* Memory that may not be locked is not lent. */
TEST_F(pair, locked_memory)
{
	struct rlimit none = { 0, 0 };
	char *buf = pages(SIZE);
	pid_t pid;

	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, set_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	pid = MUST(fork());
	if (!pid) {
		if (setrlimit(RLIMIT_MEMLOCK, &none) || setresuid(65534, 65534, 65534))
			_exit(2);
		_exit(send(self->fd[0], buf, SIZE, MSG_ZEROCOPY) < 0 && errno == ENOBUFS ? 0 : 1);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_TRUE(silent(self->fd[0]));
}

static bool since_6_2(void)
{
	int major = 0, minor = 0;
	struct utsname u;

	MUST(uname(&u));
	return sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 2));
}

/* SO_ZEROCOPY, the option's usual name, works where the kernel passes it to the protocol. */
TEST_F(pair, so_zerocopy)
{
	int fd[2];

	if (!since_6_2()) {
		EXPECT_ERRNO(EOPNOTSUPP, set_int(self->fd[0], SOL_SOCKET, SO_ZEROCOPY, 1));
		EXPECT_EQ(0, get_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY));
	} else {
		EXPECT_EQ(0, set_int(self->fd[0], SOL_SOCKET, SO_ZEROCOPY, 1));
		EXPECT_EQ(1, get_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY));
		EXPECT_ERRNO(EINVAL, set_int(self->fd[0], SOL_SOCKET, SO_ZEROCOPY, 2));
		EXPECT_EQ(0, set_int(self->fd[0], SOL_SOCKET, SO_ZEROCOPY, 0));
		EXPECT_EQ(0, get_int(self->fd[0], SOL_ESP, ESP_ZEROCOPY));
		/* on a socket that accept() has returned, too */
		EXPECT_EQ(0, set_int(self->fd[1], SOL_SOCKET, SO_ZEROCOPY, 1));
	}
	/* other options work as usual */
	EXPECT_EQ(0, set_int(self->fd[0], SOL_SOCKET, SO_KEEPALIVE, 1));
	EXPECT_EQ(1, get_int(self->fd[0], SOL_SOCKET, SO_KEEPALIVE));
	EXPECT_ERRNO(EOPNOTSUPP, set_int(esp_socket(A, SOCK_DGRAM), SOL_ESP, ESP_ZEROCOPY, 1));
	/* records are copied */
	make_pair(SOCK_SEQPACKET, fd);
	ASSERT_EQ(0, set_int(fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	ASSERT_EQ(5000, send(fd[0], (char [5000]){}, 5000, MSG_ZEROCOPY));
	ASSERT_EQ(5000, recv(fd[1], (char [5000]){}, 5000, 0));
	EXPECT_TRUE(UNTIL(events(fd[0], 0, 0) & POLLERR));
	EXPECT_EQ(SO_EE_CODE_ZEROCOPY_COPIED, notice(fd[0], &(__u32){ 0 }, &(__u32){ 0 }));
	close(fd[0]);
	close(fd[1]);
}

/* io_uring: sends that copy and sends that lend; notices come by the ring. */
TEST_F(pair, uring)
{
	struct io_uring_cqe *cqe;
	int i, sent = 0, told = 0, more;
	char *buf = pages(SIZE);
	struct io_uring ring;
	pid_t pid;

	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, io_uring_queue_init(8, &ring, 0));
	pid = MUST(fork());
	if (!pid)
		_exit(!!read_stream(self->fd[1], 0, 8 * SIZE));
	for (i = 0; i < 8; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		fill(buf, (size_t)i * SIZE, SIZE);
		if (i & 1)
			io_uring_prep_send(sqe, self->fd[0], buf, SIZE, MSG_WAITALL);
		else
			io_uring_prep_send_zc(sqe, self->fd[0], buf, SIZE, MSG_WAITALL, 0);
		ASSERT_EQ(1, io_uring_submit(&ring));
		do {	/* the result, and a notice if memory was lent */
			ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
			if (cqe->flags & IORING_CQE_F_NOTIF) {
				told++;
			} else {
				EXPECT_EQ(SIZE, cqe->res);
				sent++;
			}
			more = cqe->flags & IORING_CQE_F_MORE;
			io_uring_cqe_seen(&ring, cqe);
		} while (more);
	}
	EXPECT_EQ(8, sent);
	EXPECT_EQ(4, told);
	io_uring_queue_exit(&ring);
	EXPECT_EQ(0, reap(pid));
	EXPECT_TRUE(silent(self->fd[0]));
}

/* The ways in which io_uring lends. */
enum lend { LEND, LEND_MSG, LEND_FIXED, LENDS };

/* Send @len bytes; return the result, or an error. A notice has to follow. */
static int lend(struct io_uring *ring, int fd, enum lend how, char *buf, size_t len)
{
	static struct iovec iov;
	static struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int res;

	iov.iov_base = buf;
	iov.iov_len = len;
	if (how == LEND_MSG)
		io_uring_prep_sendmsg_zc(sqe, fd, &msg, MSG_WAITALL);
	else if (how == LEND_FIXED)
		io_uring_prep_send_zc_fixed(sqe, fd, buf, len, MSG_WAITALL, 0, 0);
	else
		io_uring_prep_send_zc(sqe, fd, buf, len, MSG_WAITALL, 0);
	if (since_6_2())
		sqe->ioprio |= IORING_SEND_ZC_REPORT_USAGE;
	if (io_uring_submit(ring) != 1 || io_uring_wait_cqe(ring, &cqe))
		return -EIO;
	res = cqe->flags & IORING_CQE_F_MORE ? cqe->res : -EPROTO;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

/* Return the result of a notice after a copy; Linux before 6.2 does not report copies. */
static int copied(void)
{
	return since_6_2() ? (int)IORING_NOTIF_USAGE_ZC_COPIED : 0;
}

/* Return the result of the next notice within @ms; -ETIME: none has come. */
static int used(struct io_uring *ring, int ms)
{
	struct __kernel_timespec t = { ms / 1000, ms % 1000 * 1000000L };
	struct io_uring_cqe *cqe;
	int res = io_uring_wait_cqe_timeout(ring, &cqe, &t);

	if (res)
		return res;
	res = cqe->flags & IORING_CQE_F_NOTIF ? cqe->res : -EPROTO;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

/* Make a ring, with @buf registered. */
static void open_ring(struct io_uring *ring, char *buf, size_t len)
{
	struct iovec iov = { buf, len };

	MUST(io_uring_queue_init(8, ring, 0));
	MUST(io_uring_register_buffers(ring, &iov, 1));
}

/* io_uring reports a copy: for a receiver on this host, or of too few bytes to lend. */
TEST_F(pair, uring_copied)
{
	char *buf = pages(SIZE);
	struct io_uring ring;
	enum lend how;

	ASSERT_NE(NULL, buf);
	fill(buf, 0, SIZE);
	open_ring(&ring, buf, SIZE);
	for (how = LEND; how < LENDS; how++) {
		ASSERT_EQ(SIZE, lend(&ring, self->fd[0], how, buf, SIZE));
		EXPECT_EQ(copied(), used(&ring, LONG));
		EXPECT_EQ(0, read_stream(self->fd[1], 0, SIZE));
		ASSERT_EQ(64, lend(&ring, self->fd[0], how, buf, 64));
		EXPECT_EQ(copied(), used(&ring, LONG));
		EXPECT_EQ(0, read_stream(self->fd[1], 0, 64));
	}
	io_uring_queue_exit(&ring);
}

/* Data that reached no receiver on this host were not copied, and stay lent until the end. */
TEST_F(pair, uring_not_copied)
{
	size_t n = SIZE / LENDS;
	char *buf = pages(SIZE);
	struct io_uring ring;
	enum lend how;

	ASSERT_NE(NULL, buf);
	ASSERT_TRUE(alive(self->fd));
	open_ring(&ring, buf, SIZE);
	enter(A);
	run("tc qdisc add dev va root netem loss 100%%");
	for (how = LEND; how < LENDS; how++)
		ASSERT_EQ((int)n, lend(&ring, self->fd[0], how, buf + how * n, n));
	EXPECT_EQ(-ETIME, used(&ring, 20));
	forget_soon(A);
	forget_soon(B);
	EXPECT_TRUE(UNTIL(so_error(self->fd[0]) == ETIMEDOUT));
	for (how = LEND; how < LENDS; how++)
		EXPECT_EQ(0, used(&ring, LONG));
	enter(A);
	run("tc qdisc del dev va root");
	io_uring_queue_exit(&ring);
}

/* Lost packets are retransmitted from the lent memory, in other pieces. */
TEST_F(pair, uring_loss)
{
	char *buf = pages(MEGA);
	struct io_uring ring;
	enum lend how;
	pid_t pid;

	ASSERT_NE(NULL, buf);
	open_ring(&ring, buf, MEGA);
	run("tc qdisc add dev va root netem loss 25%%");
	pid = MUST(fork());
	if (!pid)
		_exit(!!read_stream(self->fd[1], 0, LENDS * MEGA));
	for (how = LEND; how < LENDS; how++) {
		fill(buf, how * MEGA, MEGA);
		ASSERT_EQ(MEGA, lend(&ring, self->fd[0], how, buf, MEGA));
		EXPECT_EQ(copied(), used(&ring, LONG));
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_LT(0ULL, stats(self->fd[0]).retrans);
	io_uring_queue_exit(&ring);
}

TEST_HARNESS_MAIN
