// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls of syscalls.c: one_call() makes one of them, on sockets that other threads use,
 * with arguments of syscalls-arguments.h. Each is counted by its kind.
 */
#include <liburing.h>
#include <linux/esp_diag.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include "syscalls-arguments.h"

#define SOCKETS		24		/* sockets of a process at a time */
#define MESSAGES	3		/* most messages of one call */

#define KINDS(X)							\
	X(socket) X(bind) X(connect) X(listen) X(accept4)		\
	X(send) X(sendto) X(sendmsg) X(sendmmsg) X(writev)		\
	X(recv) X(recvfrom) X(recvmsg) X(recvmmsg) X(readv)		\
	X(setsockopt) X(getsockopt) X(ioctl) X(shutdown)		\
	X(splice_from) X(splice_to) X(tee) X(sendfile)			\
	X(poll) X(epoll_ctl) X(epoll_wait) X(fcntl)			\
	X(getsockname) X(getpeername) X(mmap)				\
	X(uring_send) X(uring_send_zc) X(uring_recv) X(uring_accept)	\
	X(take) X(pass) X(diag) X(proc) X(device)			\
	X(close) X(dup) X(setitimer) X(fork)

enum kind {
#define ENUM(name) K_##name,
	KINDS(ENUM)
	K_MAX
};

static const char *const names[] = {
#define NAME(name) #name,
	KINDS(NAME)
};

/* Memory that all processes share. */
static struct shared {
	struct {
		long	ok;
		long	failed;		/* without EBADF: there was no socket */
		long	error[140];
	} tally[K_MAX];
	bool	stop;
	bool	hung;
} *shared;

struct thread {
	pthread_t	id;
	pid_t		tid;
	int		process;
	int		number;
	bool		done;
	unsigned long	calls;		/* number of calls begun */
	int		kind;		/* kind of the last call */
	unsigned long	seen;		/* calls when the watchdog looked last */
	int		ticks;		/* how often the watchdog saw the same call */
	pid_t		child;		/* 0: none */
	int		pipe[2], other[2];
	int		epoll;
	__u64		nth;		/* number of the call, for one_call() */
	int		pending;	/* requests in the ring */
	struct io_uring	ring;
};

static __thread struct thread *me;
static int fds[SOCKETS];	/* -1: none */
static int post[2], file;	/* sockets between processes; file for sendfile() */
static bool brief;		/* this process ends after some calls */

/*
 * Calls, counted by their kind. The watchdog sees which call a thread makes.
 */

static long did(enum kind kind, long result)
{
	int err = errno;

	if (result >= 0) {
		__atomic_fetch_add(&shared->tally[kind].ok, 1, __ATOMIC_RELAXED);
	} else if (err != EBADF) {
		__atomic_fetch_add(&shared->tally[kind].failed, 1, __ATOMIC_RELAXED);
		if (err < 140)
			__atomic_fetch_add(&shared->tally[kind].error[err], 1, __ATOMIC_RELAXED);
	}
	return result;
}

static void begin(enum kind kind)
{
	me->kind = kind;
	__atomic_store_n(&me->calls, me->calls + 1, __ATOMIC_RELAXED);
}

#define CALL(kind, call) ({ begin(K_##kind); did(K_##kind, call); })

static int some(void)
{
	return __atomic_load_n(&fds[rnd(SOCKETS)], __ATOMIC_RELAXED);
}

/* Put a socket into a random slot; close the one that was there, even if a thread uses it. */
static void put(int fd)
{
	int old = __atomic_exchange_n(&fds[rnd(SOCKETS)], fd, __ATOMIC_RELAXED);

	if (old >= 0)
		CALL(close, close(old));
}

static void put_new(int fd)
{
	if (fd >= 0)
		put(fd);
}

static void try_close(void)
{
	put(-1);
}

static void try_bind_to(int fd)
{
	struct sockaddr_esp a;
	socklen_t len = address(&a);

	if (!one_in(3)) {	/* any */
		memset(a.sesp_addr, 0, 6);
		a.sesp_ifindex = 0;
	}
	CALL(bind, bind(fd, one_in(64) ? wrong() : (void *)&a, len));
}

static void try_connect_to(int fd)
{
	struct sockaddr_esp a;
	socklen_t len = address(&a);

	CALL(connect, connect(fd, one_in(64) ? wrong() : (void *)&a, len));
}

static void try_listen_on(int fd)
{
	CALL(listen, listen(fd, one_in(8) ? any_int() : rnd(8)));
}

/* Make a socket; often it then listens or connects. */
static void try_socket(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };
	int fd, type = one_in(32) ? rnd(16) : ONE_OF(types);
	int protocol = one_in(32) ? any_int() : 0;
	int what = rnd(4);

	type |= SOCK_CLOEXEC | (one_in(2) ? SOCK_NONBLOCK : 0);
	enter(&hosts[rnd(2)]);
	fd = CALL(socket, socket(AF_ESP, type, protocol));
	if (fd < 0)
		return;
	if (what == 0) {
		CALL(setsockopt, set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
		try_bind_to(fd);
		try_listen_on(fd);
	} else if (what < 3) {
		try_connect_to(fd);
	}
	put(fd);
}

static void try_bind(void)
{
	try_bind_to(some());
}

static void try_connect(void)
{
	try_connect_to(some());
}

static void try_listen(void)
{
	try_listen_on(some());
}

static void try_accept(void)
{
	static const int flags[] = { 0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC };
	socklen_t len = one_in(8) ? (socklen_t)any_int() : sizeof(struct sockaddr_esp);
	void *addr = one_in(2) ? memory(128) : NULL;

	put_new(CALL(accept4, accept4(some(), addr, one_in(32) ? wrong() : addr ? &len : NULL,
				      one_in(64) ? any_int() : ONE_OF(flags))));
}

static void try_ring(enum kind kind, int fd);

/* Make a connection, unless another thread interferes; perhaps its listener stays. */
static void try_pair(void)
{
	int type = one_in(3) ? SOCK_SEQPACKET : SOCK_STREAM, to = rnd(2), stays = one_in(4);
	struct sockaddr_esp a = any(0);
	socklen_t len = sizeof(a);
	int l, c;

	enter(&hosts[to]);
	l = CALL(socket, socket(AF_ESP, type | SOCK_CLOEXEC, 0));
	enter(&hosts[one_in(8) ? to : !to]);
	c = CALL(socket, socket(AF_ESP, type | SOCK_CLOEXEC, 0));
	CALL(bind, bind(l, (void *)&a, len));
	CALL(listen, listen(l, 4));
	CALL(getsockname, getsockname(l, (void *)&a, &len));
	a = at(&hosts[to], ntohs(a.sesp_port));
	CALL(connect, connect(c, (void *)&a, sizeof(a)));
	if (one_in(4))
		try_ring(K_uring_accept, l);
	else
		put_new(CALL(accept4, accept4(l, NULL, NULL, SOCK_CLOEXEC)));
	put_new(c);
	if (stays)
		put_new(l);
	else if (l >= 0)
		CALL(close, close(l));
}

/*
 * Data.
 */

static void try_send(void)
{
	size_t len = length();
	struct sockaddr_esp a;
	socklen_t alen = address(&a);
	bool none = one_in(2);

	if (one_in(2))
		CALL(send, send(some(), memory(len), len, send_flags()));
	else
		CALL(sendto, sendto(some(), memory(len), len, send_flags(), none ? NULL :
				    one_in(32) ? wrong() : (void *)&a, none ? 0 : alen));
}

/* The buffers, address and control data of a message. */
struct parts {
	struct iovec		v[4];
	struct sockaddr_esp	a;
	char			control[128] __attribute__((aligned(8)));
};

static void put_control(struct msghdr *m, struct parts *p)
{
	static const int types[] = {
		SCM_RIGHTS, SCM_CREDENTIALS, SO_MARK, SO_PRIORITY, SO_TIMESTAMPING, SO_TXTIME,
	};
	static const int levels[] = { SOL_SOCKET, SOL_SOCKET, SOL_ESP };
	struct cmsghdr *c = (void *)p->control;

	c->cmsg_len = one_in(8) ? (size_t)any_int() : CMSG_LEN(4 * rnd(4));
	c->cmsg_level = one_in(16) ? any_int() : ONE_OF(levels);
	c->cmsg_type = one_in(8) ? any_int() : ONE_OF(types);
	memset(CMSG_DATA(c), rnd(256), 12);
	m->msg_control = one_in(16) ? memory(128) : p->control;
	m->msg_controllen = one_in(8) ? (size_t)any_int() : sizeof(p->control);
}

static void build(struct msghdr *m, struct parts *p, bool out)
{
	memset(m, 0, sizeof(*m));
	m->msg_iov = one_in(64) ? wrong() : p->v;
	m->msg_iovlen = vector(p->v, 4);
	if (one_in(3)) {
		m->msg_name = one_in(16) ? wrong() : &p->a;
		m->msg_namelen = address(&p->a);
	}
	m->msg_flags = any_int();
	if (one_in(4) && out) {
		put_control(m, p);
	} else if (one_in(2) && !out) {
		m->msg_control = one_in(16) ? memory(128) : p->control;
		m->msg_controllen = rnd(sizeof(p->control) + 1);
	}
}

static void build_all(struct mmsghdr *m, struct parts *p, bool out)
{
	int i;

	for (i = 0; i < MESSAGES; i++)
		build(&m[i].msg_hdr, &p[i], out);
}

static void try_sendmsg(void)
{
	struct mmsghdr m[MESSAGES];
	struct parts p[MESSAGES];

	build_all(m, p, true);
	if (one_in(2))
		CALL(sendmsg, sendmsg(some(), &m[0].msg_hdr, send_flags()));
	else
		CALL(sendmmsg, sendmmsg(some(), m, rnd(MESSAGES + 1), send_flags()));
}

static void try_recv(void)
{
	socklen_t alen = one_in(8) ? (socklen_t)any_int() : sizeof(struct sockaddr_esp);
	size_t len = length();

	if (one_in(2))
		CALL(recv, recv(some(), memory(len), len, recv_flags()));
	else
		CALL(recvfrom, recvfrom(some(), memory(len), len, recv_flags(),
					memory(128), one_in(32) ? wrong() : (void *)&alen));
}

static void try_recvmsg(void)
{
	struct timespec t = { 0, rnd(30000000) };
	struct mmsghdr m[MESSAGES];
	struct parts p[MESSAGES];

	build_all(m, p, false);
	if (one_in(2))
		CALL(recvmsg, recvmsg(some(), &m[0].msg_hdr, recv_flags()));
	else
		CALL(recvmmsg, recvmmsg(some(), m, rnd(MESSAGES + 1), recv_flags(),
					one_in(2) ? &t : NULL));
}

static void try_vector(void)
{
	struct iovec v[4];
	int n = vector(v, 4);

	if (one_in(2))
		CALL(writev, writev(some(), v, n));
	else
		CALL(readv, readv(some(), v, n));
}

static void try_splice(void)
{
	int flags = rnd(16);	/* SPLICE_F_* */
	size_t len = length();
	loff_t off = rnd(ARENA);

	switch (rnd(4)) {
	case 0:
		CALL(splice_from, splice(some(), one_in(32) ? &off : NULL, me->pipe[1], NULL,
					 len, flags));
		break;
	case 1:
		if (one_in(2) && write(me->pipe[1], arena, rnd(8192)) < 0)
			break;
		CALL(splice_to, splice(me->pipe[0], NULL, some(), NULL, len, flags));
		break;
	case 2:
		CALL(tee, tee(me->pipe[0], me->other[1], len, flags));
		break;
	case 3:
		CALL(sendfile, sendfile(some(), file, one_in(2) ? &off : NULL, len));
		lseek(file, rnd(ARENA), SEEK_SET);
	}
	/* empty the pipes, or they would fill */
	if (one_in(2))
		while (read(me->pipe[0], arena, ARENA) > 0)
			;
	while (read(me->other[0], arena, ARENA) > 0)
		;
}

/* Take the completions that have come; count each result for its kind of call. */
static void reap_ring(void)
{
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(&me->ring, &cqe)) {
		int kind = cqe->user_data, res = cqe->res;

		if (!(cqe->flags & IORING_CQE_F_NOTIF) && kind) {
			errno = -res;
			did(kind, res < 0 ? -1 : res);
			if (kind == K_uring_accept)
				put_new(res);
		}
		if (!(cqe->flags & IORING_CQE_F_MORE))
			me->pending--;
		io_uring_cqe_seen(&me->ring, cqe);
	}
}

static void try_ring(enum kind kind, int fd)
{
	struct __kernel_timespec t = { 0, rnd(20000000) };
	size_t len = length();
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	int n;

	if (brief)	/* the ring is the parent's */
		return;
	begin(kind);
	sqe = io_uring_get_sqe(&me->ring);
	if (!sqe) {
		io_uring_submit(&me->ring);
		return;
	}
	if (me->pending > 4) {	/* the requests may wait for ever */
		io_uring_prep_cancel64(sqe, kind, IORING_ASYNC_CANCEL_ALL);
		kind = 0;
	} else if (kind == K_uring_send) {
		io_uring_prep_send(sqe, fd, memory(len), len, send_flags());
	} else if (kind == K_uring_send_zc) {
		io_uring_prep_send_zc(sqe, fd, memory(len), len, send_flags(), 0);
	} else if (kind == K_uring_recv) {
		io_uring_prep_recv(sqe, fd, memory(len), len, recv_flags());
	} else {
		io_uring_prep_accept(sqe, fd, NULL, NULL, one_in(2) ? SOCK_NONBLOCK : 0);
	}
	sqe->user_data = kind;
	n = io_uring_submit(&me->ring);
	if (n > 0)
		me->pending += n;
	io_uring_wait_cqe_timeout(&me->ring, &cqe, &t);
	reap_ring();
}

static void try_uring(void)
{
	try_ring(K_uring_send + rnd(4), some());
}

/*
 * Options, ioctls, and calls for any kind of file.
 */

static int option(int *level)
{
	*level = one_in(32) ? any_int() : one_in(2) ? SOL_ESP : SOL_SOCKET;
	return one_in(32) ? any_int() : *level == SOL_ESP ? rnd(ESP_CRC32C + 2) : rnd(90);
}

static void try_setsockopt(void)
{
	struct sock_filter accept_all = { BPF_RET, 0, 0, 65535 };
	struct sock_fprog prog = { 1, &accept_all };
	static const socklen_t lengths[] = { 0, 1, 3, 8, 16, 100, -1 };
	int fd = some(), level, name = option(&level), v[4] = { any_int(), rnd(3), 0, 0 };
	socklen_t len = one_in(8) ? ONE_OF(lengths) : sizeof(int);

	if (level == SOL_SOCKET && (name == SO_LINGER || name == SO_RCVTIMEO_OLD ||
				    name == SO_SNDTIMEO_OLD)) {
		v[0] = rnd(3);
		len = one_in(2) ? sizeof(struct linger) : sizeof(struct timeval);
	}
	if (one_in(64)) {
		CALL(setsockopt, setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	} else if (one_in(32)) {
		CALL(setsockopt, setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE,
					    hosts[rnd(2)].dev, 1 + rnd(3)));
	} else if (one_in(8)) {
		CALL(setsockopt, set_int(fd, SOL_ESP, ESP_ZEROCOPY, 1));
	} else if (one_in(8)) {
		v[0] = one_in(4) ? any_int() : rnd(300000);
		CALL(setsockopt, set_int(fd, SOL_SOCKET, one_in(2) ? SO_SNDBUF : SO_RCVBUF, v[0]));
	} else {
		CALL(setsockopt, setsockopt(fd, level, name, one_in(16) ? memory(4) : v, len));
	}
}

static void try_getsockopt(void)
{
	int level, name = option(&level);
	socklen_t len = one_in(4) ? any_int() : rnd(300);

	CALL(getsockopt, getsockopt(some(), level, name, memory(ARENA / 2),
				    one_in(32) ? wrong() : (void *)&len));
}

static void try_ioctl(void)
{
	static const int commands[] = {
		SIOCINQ, SIOCOUTQ, SIOCOUTQNSD, FIONBIO, FIOASYNC, SIOCATMARK, FIOGETOWN,
		SIOCGIFINDEX, SIOCGIFMTU, SIOCGIFCONF, FIOQSIZE,
	};
	unsigned long command = ONE_OF(commands);
	struct ifreq ifr = {};

	if (one_in(16))
		command = one_in(2) ? SIOCPROTOPRIVATE + rnd(32) : rnd(~0u);
	if (command == FIONBIO || command == FIOASYNC)
		ifr.ifr_name[0] = rnd(2);
	else if (one_in(2))
		strcpy(ifr.ifr_name, hosts[rnd(2)].dev);
	CALL(ioctl, ioctl(some(), command, one_in(16) ? wrong() : (void *)&ifr));
}

static void try_fcntl(void)
{
	int owners[] = { 0, getpid(), INT_MAX }, command, fd;

	switch (rnd(5)) {
	case 0:
		CALL(fcntl, fcntl(some(), F_SETFL, (one_in(2) ? O_NONBLOCK : 0) |
						   (one_in(2) ? O_ASYNC : 0)));
		break;
	case 1:
		CALL(fcntl, fcntl(some(), F_SETOWN, ONE_OF(owners)));
		break;
	case 2:
		CALL(fcntl, fcntl(some(), F_GETFL));
		break;
	case 3:
		put_new(CALL(fcntl, fcntl(some(), F_DUPFD_CLOEXEC, 3)));
		break;
	case 4:
		command = any_int();
		fd = CALL(fcntl, fcntl(some(), command, 0));
		if (command == F_DUPFD)
			put_new(fd);
	}
}

static void try_name(void)
{
	socklen_t len = one_in(4) ? (socklen_t)any_int() : sizeof(struct sockaddr_esp);

	if (one_in(2))
		CALL(getsockname, getsockname(some(), memory(128), &len));
	else
		CALL(getpeername, getpeername(some(), memory(128), &len));
}

static void try_shutdown(void)
{
	CALL(shutdown, shutdown(some(), rnd(4) - one_in(64)));
}

static void try_dup(void)
{
	put_new(CALL(dup, dup(some())));
}

static void try_mmap(void)
{
	CALL(mmap, (long)mmap(NULL, 8192, rnd(8), 1 + rnd(2), some(), 4096 * rnd(2)));
}

/*
 * Waiting.
 */

static void try_poll(void)
{
	struct pollfd p[4];
	int i;

	for (i = 0; i < 4; i++)
		p[i] = (struct pollfd){ .fd = some(), .events = rnd(65536) };
	CALL(poll, poll(one_in(12) ? wrong() : (void *)p, 4, rnd(30)));
}

static void try_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET }, got[8];

	if (one_in(2))
		ev.events = rnd(~0u);
	if (one_in(2))
		CALL(epoll_ctl, epoll_ctl(me->epoll, 1 + rnd(3), some(), &ev));
	else
		CALL(epoll_wait, epoll_wait(me->epoll, one_in(12) ? wrong() : (void *)got,
					    one_in(32) ? 0 : 8, rnd(30)));
}

/* Soon interrupt a call of some thread, which is perhaps restarted. */
static void try_setitimer(void)
{
	struct itimerval t = { .it_value.tv_usec = 1 + rnd(30000) };

	if (!brief)	/* a brief process has a timer as its watchdog */
		CALL(setitimer, setitimer(ITIMER_REAL, &t, NULL));
}

/*
 * Other processes, and the hosts.
 */

/* Pass a socket to any process. */
static void try_pass(void)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = "";
	struct iovec v = { arena, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fd = some();

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	CALL(pass, sendmsg(post[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static void try_take(void)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))), byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	int fd;

	if (CALL(take, recvmsg(post[1], &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0)
		return;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	put(fd);
}

/* End a socket, as "esp kill" does; the answer comes among the list's messages. */
static void end_socket(int fd, const struct esp_diag_msg *m)
{
	struct {
		struct nlmsghdr		head;
		struct esp_diag_kill	req;
	} ask = {
		.head = {
			.nlmsg_len = sizeof(ask),
			.nlmsg_type = SOCK_DESTROY,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.req = {
			.sdiag_family = AF_ESP,
			.sdiag_type = m->type,
			.cookie = { m->cookie[0], m->cookie[1] },
			.src = m->src,
			.dst = m->dst,
		},
	};

	CALL(diag, send(fd, &ask, sizeof(ask), 0));
}

/* List all sockets of a host, as "esp show" does; sometimes end one. */
static void try_diag(void)
{
	struct {
		struct nlmsghdr		head;
		struct esp_diag_req	req;
	} ask = {
		.head = {
			.nlmsg_len = sizeof(ask),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.req = { .sdiag_family = AF_ESP, .states = one_in(2) ? rnd(~0u) : 0 },
	};
	char answer[8192] __attribute__((aligned(8)));
	struct nlmsghdr *head = (void *)answer;
	long got;
	int fd;

	enter(&hosts[rnd(2)]);
	fd = MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
	got = CALL(diag, send(fd, &ask, sizeof(ask), 0));
	while (got > 0) {
		got = CALL(diag, recv(fd, answer, sizeof(answer), 0));
		if (got > 0 && (head->nlmsg_type == NLMSG_DONE || head->nlmsg_type == NLMSG_ERROR))
			break;
		if (got > 0 && head->nlmsg_type == SOCK_DIAG_BY_FAMILY && one_in(4))
			end_socket(fd, NLMSG_DATA(head));
	}
	close(fd);
}

static void try_proc(void)
{
	static const char *const files[] = { "esp/stat", "esp/dev", "protocols" };
	char path[64], buf[4096];
	int fd;

	enter(&hosts[rnd(2)]);
	snprintf(path, sizeof(path), "/proc/thread-self/net/%s", ONE_OF(files));
	fd = CALL(proc, open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return;
	while (CALL(proc, read(fd, buf, sizeof(buf))) > 0)
		;
	close(fd);
}

static void reap_child(void)
{
	if (me->child && one_in(2))
		kill(me->child, SIGKILL);
	while (me->child && waitpid(me->child, NULL, 0) < 0 && errno == EINTR)
		;
	me->child = 0;
}

static void brief_calls(void);

/* Fork a process that shares all sockets for a moment. */
static void try_fork(void)
{
	if (brief)
		return;
	begin(K_fork);
	reap_child();
	me->child = did(K_fork, fork());
	if (!me->child) {
		brief_calls();
		_exit(0);
	}
	if (me->child < 0)
		me->child = 0;
}

static const struct {
	void	(*fn)(void);
	int	weight;
} calls[] = {
	{ try_socket, 6 }, { try_pair, 8 }, { try_bind, 2 }, { try_connect, 4 }, { try_listen, 2 },
	{ try_accept, 8 }, { try_send, 16 }, { try_sendmsg, 12 }, { try_recv, 16 },
	{ try_recvmsg, 12 }, { try_vector, 8 }, { try_splice, 12 }, { try_uring, 8 },
	{ try_setsockopt, 12 }, { try_getsockopt, 8 }, { try_ioctl, 6 }, { try_fcntl, 4 },
	{ try_name, 4 }, { try_shutdown, 2 }, { try_close, 3 }, { try_dup, 2 }, { try_mmap, 1 },
	{ try_poll, 4 }, { try_epoll, 6 }, { try_setitimer, 2 }, { try_pass, 2 },
	{ try_take, 2 }, { try_diag, 1 }, { try_proc, 1 }, { try_fork, 1 },
};

static void one_call(__u64 n)
{
	int i, at, sum = 0;

	for (i = 0; i < (int)(sizeof(calls) / sizeof(calls[0])); i++)
		sum += calls[i].weight;
	me->nth = n;
	rnd_begin(me->process, me->number, n);
	at = rnd(sum);
	for (i = 0; at >= calls[i].weight; i++)
		at -= calls[i].weight;
	calls[i].fn();
}
