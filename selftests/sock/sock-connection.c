// SPDX-License-Identifier: GPL-2.0-only
/*
 * connect(): choice of the device, every way in which a connection fails, and the
 * port's next use (state-machine.rst). Listeners: sock-listen.c.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include "sock-hosts.h"
#include "sock-types.h"

/* Both ends know their own name and the other's. */
TEST_F(hosts, names)
{
	struct sockaddr_esp own, peer;
	int fd[2];

	make_pair(variant->type, fd);
	own = sockname(fd[0]);
	EXPECT_EQ(AF_ESP, own.sesp_family);
	EXPECT_EQ(6, own.sesp_halen);
	EXPECT_EQ(0, memcmp(own.sesp_addr, A->mac, 6));
	EXPECT_EQ(A->ifindex, own.sesp_ifindex);
	EXPECT_NE(0, own.sesp_port);
	ASSERT_EQ(0, peername(fd[0], &peer));
	EXPECT_EQ(0, memcmp(peer.sesp_addr, B->mac, 6));
	EXPECT_EQ(PORT, ntohs(peer.sesp_port));
	EXPECT_EQ(A->ifindex, peer.sesp_ifindex);

	ASSERT_EQ(0, peername(fd[1], &peer));
	EXPECT_EQ(own.sesp_port, peer.sesp_port);
	EXPECT_EQ(0, memcmp(peer.sesp_addr, A->mac, 6));
	EXPECT_EQ(B->ifindex, peer.sesp_ifindex);
	own = sockname(fd[1]);
	EXPECT_EQ(PORT, ntohs(own.sesp_port));
	EXPECT_EQ(0, memcmp(own.sesp_addr, B->mac, 6));
	EXPECT_EQ(variant->type, get_int(fd[1], SOL_SOCKET, SO_TYPE));
	EXPECT_EQ(AF_ESP, get_int(fd[1], SOL_SOCKET, SO_DOMAIN));
}

/* accept() returns the peer's address, cut to the size of the buffer. */
TEST_F(hosts, accept_address)
{
	int l = listener(B, variant->type, PORT, 1);
	int fd = esp_socket(A, variant->type);
	struct sockaddr_esp a = {}, own;
	socklen_t len = 4;

	ASSERT_EQ(0, do_connect(fd, at(B, PORT)));
	own = sockname(fd);
	ASSERT_LE(0, accept(l, (struct sockaddr *)&a, &len));
	EXPECT_EQ(sizeof(a), len);
	EXPECT_EQ(AF_ESP, a.sesp_family);
	EXPECT_EQ(own.sesp_port, a.sesp_port);
	EXPECT_EQ(0, a.sesp_halen);

	fd = esp_socket(A, variant->type);
	ASSERT_EQ(0, do_connect(fd, at(B, PORT)));
	len = sizeof(a);
	ASSERT_LE(0, accept(l, (struct sockaddr *)&a, &len));
	EXPECT_EQ(0, memcmp(a.sesp_addr, A->mac, 6));
}

/* Without a listener connect() fails with ECONNREFUSED, and the socket can try again. */
TEST_F(hosts, refused)
{
	int fd = esp_socket(A, variant->type), l;

	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(0, so_error(fd));
	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd, at(B, PORT)));
	l = listener(B, variant->type, PORT, 1);
	EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* A bound socket does not listen; the refused socket keeps its own port. */
TEST_F(hosts, refused_bound)
{
	int fd = esp_socket(A, variant->type);
	int s = esp_socket(B, variant->type);

	ASSERT_EQ(0, do_bind(s, any(PORT)));
	ASSERT_EQ(0, do_bind(fd, any(3000)));
	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(3000, ntohs(sockname(fd).sesp_port));
}

/* A stream and a seqpacket socket refuse each other. */
TEST_F(hosts, type_mismatch)
{
	int other = variant->type == SOCK_STREAM ? SOCK_SEQPACKET : SOCK_STREAM;
	int l = listener(B, other, PORT, 1);
	int fd = esp_socket(A, variant->type);

	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(0, events(l, POLLIN, SHORT));
	EXPECT_LE(1, counter(B, "TypeMismatch"));
}

/* Silence: ETIMEDOUT after syn_retries. */
TEST_F(hosts, timed_out)
{
	int fd = esp_socket(A, variant->type), l;
	struct sockaddr_esp nobody = at(B, PORT);
	long long start = now_ms();

	nobody.sesp_addr[5] = 0x77;
	sysctl(A, "syn_retries", 2);
	EXPECT_ERRNO(ETIMEDOUT, do_connect(fd, nobody));
	EXPECT_GT(LONG, now_ms() - start);
	EXPECT_EQ(2, counter(A, "SynRetrans"));
	EXPECT_EQ(1, counter(A, "AbortOnTimeout"));
	l = listener(B, variant->type, PORT, 1);
	EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* A SYN is lost: the next one makes the connection. */
TEST_F(hosts, syn_lost)
{
	int l = listener(B, variant->type, PORT, 1);
	int fd = esp_socket(A, variant->type);

	link_up(B, false);
	nonblock(fd, true);
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd, at(B, PORT)));
	EXPECT_ERRNO(EALREADY, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(0, events(fd, POLLOUT | POLLIN, SHORT));
	EXPECT_ERRNO(EAGAIN, send(fd, "x", 1, 0));
	EXPECT_ERRNO(EAGAIN, recv(fd, &l, 1, 0));
	link_up(B, true);
	EXPECT_EQ(POLLOUT, events(fd, POLLOUT | POLLIN, LONG));
	EXPECT_EQ(0, so_error(fd));
	EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_ERRNO(EISCONN, do_connect(fd, at(B, PORT)));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* A non-blocking connect() fails: poll() and SO_ERROR report that, once. */
TEST_F(hosts, nonblocking_refused)
{
	int fd = esp_socket(A, variant->type), l;

	nonblock(fd, true);
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(POLLOUT | POLLERR | POLLHUP,
		  events(fd, POLLOUT, LONG) & (POLLOUT | POLLERR | POLLHUP));
	EXPECT_EQ(ECONNREFUSED, so_error(fd));
	EXPECT_EQ(0, so_error(fd));
	EXPECT_ERRNO(ECONNABORTED, do_connect(fd, at(B, PORT)));
	nonblock(fd, false);
	l = listener(B, variant->type, PORT, 1);
	EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* ... or the next connect() reports it. */
TEST_F(hosts, nonblocking_refused_told_by_connect)
{
	int fd = esp_socket(A, variant->type);

	nonblock(fd, true);
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd, at(B, PORT)));
	events(fd, POLLOUT, LONG);
	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd, at(B, PORT)));
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd, at(B, PORT)));
}

/* A signal ends the wait, not the attempt. */
TEST_F(hosts, interrupted)
{
	int l = listener(B, variant->type, PORT, 1);
	int fd = esp_socket(A, variant->type);

	link_up(B, false);
	alarm_in_call(false);
	EXPECT_ERRNO(EINTR, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(1, alarms);
	nonblock(fd, true);
	EXPECT_ERRNO(EALREADY, do_connect(fd, at(B, PORT)));
	nonblock(fd, false);
	link_up(B, true);
	EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* SA_RESTART: the call goes on waiting. */
TEST_F(hosts, restarted)
{
	int fd = esp_socket(A, variant->type);
	struct sockaddr_esp nobody = at(B, PORT);

	nobody.sesp_addr[5] = 0x77;
	sysctl(A, "syn_retries", 3);
	alarm_in_call(true);
	EXPECT_ERRNO(ETIMEDOUT, do_connect(fd, nobody));
	EXPECT_EQ(1, alarms);
}

/* A call of a thread that waits for a connection, until another thread ends the attempt. */
struct attempt {
	int			fd, err;
	struct sockaddr_esp	to;
	volatile pid_t		tid;
};

static void *connects(void *arg)
{
	struct attempt *a = arg;

	a->tid = syscall(SYS_gettid);
	a->err = do_connect(a->fd, a->to) ? errno : 0;
	return NULL;
}

static void *sends(void *arg)
{
	struct attempt *a = arg;

	a->tid = syscall(SYS_gettid);
	a->err = send(a->fd, "x", 1, MSG_NOSIGNAL) < 0 ? errno : 0;
	return NULL;
}

static void *receives(void *arg)
{
	struct attempt *a = arg;
	char c;

	a->tid = syscall(SYS_gettid);
	a->err = recv(a->fd, &c, 1, 0) < 0 ? errno : 0;
	return NULL;
}

static pthread_t sleeper(void *(*call)(void *), struct attempt *a)
{
	pthread_t t;

	MUST(-pthread_create(&t, NULL, call, a));
	MUST(UNTIL(a->tid && asleep(a->tid)) ? 0 : -1);
	return t;
}

static void one_cpu(void)
{
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	MUST(sched_setaffinity(0, sizeof(cpu), &cpu));
}

/* Give this thread the processor until it sleeps; false: no longer. */
static void before_others(bool yes)
{
	struct sched_param p = { .sched_priority = yes };

	MUST(sched_setscheduler(0, yes ? SCHED_FIFO : SCHED_OTHER, &p));
}

/*
 * shutdown() ends the attempt. Before connect() returns, the socket already listens (0), connects
 * again (1), or is connected to B (2). connect() must fail all the same, because this is not the
 * connection that it asked for, and must change nothing.
 */
TEST_F(hosts, ended_by_another)
{
	int l = listener(B, variant->type, PORT, 1), what;
	pthread_t thread;

	one_cpu();
	for (what = 0; what < 3; what++) {
		struct attempt a = { esp_socket(A, variant->type), -1, at(B, PORT) };

		a.to.sesp_addr[5] = 0x77;
		thread = sleeper(connects, &a);
		before_others(true);
		shutdown(a.fd, SHUT_RDWR);
		nonblock(a.fd, what == 1);
		if (!what) {
			EXPECT_EQ(0, listen(a.fd, 1));
		} else if (what == 1) {
			EXPECT_ERRNO(EINPROGRESS, do_connect(a.fd, a.to));
		} else {
			EXPECT_EQ(0, do_connect(a.fd, at(B, PORT)));
		}
		before_others(false);
		pthread_join(thread, NULL);
		EXPECT_EQ(ECONNABORTED, a.err);
		/* the new state is unchanged */
		if (!what) {
			EXPECT_EQ(0, listen(a.fd, 2));
		} else if (what == 1) {
			EXPECT_ERRNO(EALREADY, do_connect(a.fd, a.to));
		} else {
			EXPECT_ERRNO(EISCONN, do_connect(a.fd, at(B, PORT)));
		}
		close(a.fd);
	}
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/*
 * A thread waits in send() (0) or recv() (1) for a connection that is shut down. It must not send
 * to the peer of the socket's next connection, or receive from there.
 */
TEST_F(hosts, data_of_another)
{
	int l = listener(B, variant->type, PORT, 1), child, what;
	struct sockaddr_esp nobody = at(B, PORT);
	pthread_t thread;
	char c;

	nobody.sesp_addr[5] = 0x77;
	one_cpu();
	for (what = 0; what < 2; what++) {
		struct attempt a = { .fd = esp_socket(A, variant->type), .err = -1 };

		nonblock(a.fd, true);
		EXPECT_ERRNO(EINPROGRESS, do_connect(a.fd, nobody));
		nonblock(a.fd, false);
		thread = sleeper(what ? receives : sends, &a);
		before_others(true);
		shutdown(a.fd, SHUT_RDWR);
		EXPECT_EQ(0, do_connect(a.fd, at(B, PORT)));
		child = accept(l, NULL, NULL);
		EXPECT_EQ(1, send(child, "x", 1, 0));
		before_others(false);
		pthread_join(thread, NULL);
		EXPECT_EQ(EPIPE, a.err);
		EXPECT_ERRNO(EAGAIN, recv(child, &c, 1, MSG_DONTWAIT));
		EXPECT_EQ(1, recv(a.fd, &c, 1, 0));
		close(a.fd);
		close(child);
	}
}

/* SO_SNDTIMEO bounds the wait. */
TEST_F(hosts, send_timeout)
{
	int fd = esp_socket(A, variant->type);
	struct sockaddr_esp nobody = at(B, PORT);

	nobody.sesp_addr[5] = 0x77;
	set_timeo(fd, SO_SNDTIMEO, 30);
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd, nobody));
	EXPECT_ERRNO(EALREADY, do_connect(fd, nobody));
}

/* Invalid addresses; the socket can still connect. */
TEST_F(hosts, bad_address)
{
	int l = listener(B, variant->type, PORT, 1);
	int fd = esp_socket(A, variant->type);
	struct sockaddr_esp a = at(B, PORT);

	EXPECT_ERRNO(EINVAL, connect(fd, (struct sockaddr *)&a, sizeof(a) - 1));
	EXPECT_ERRNO(EINVAL, connect(fd, (struct sockaddr *)&a, 0));
	a.sesp_family = AF_INET;
	EXPECT_ERRNO(EAFNOSUPPORT, do_connect(fd, a));
	a = at(B, PORT);
	a.sesp_halen = 5;
	EXPECT_ERRNO(EINVAL, do_connect(fd, a));
	a = at(B, 0);
	EXPECT_ERRNO(EADDRNOTAVAIL, do_connect(fd, a));
	a = at(B, PORT);
	a.sesp_addr[0] |= 1;
	EXPECT_ERRNO(ENETUNREACH, do_connect(fd, a));
	memset(a.sesp_addr, 0xff, 6);
	EXPECT_ERRNO(ENETUNREACH, do_connect(fd, a));
	EXPECT_EQ(0, sockname(fd).sesp_port);
	/* the original's programs leave halen 0 */
	a = at(B, PORT);
	a.sesp_halen = 0;
	EXPECT_EQ(0, do_connect(fd, a));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* connect() and listen() on sockets that are connected, or listen, already. */
TEST_F(hosts, wrong_state)
{
	int l = listener(B, variant->type, PORT, 2), fd[2];
	struct sockaddr_esp a;

	EXPECT_ERRNO(EISCONN, do_connect(l, at(A, PORT)));
	EXPECT_ERRNO(ENOTCONN, peername(l, &a));
	EXPECT_ERRNO(ENOTCONN, recv(l, &a, 1, 0));
	EXPECT_ERRNO(EPIPE, send(l, &a, 1, MSG_NOSIGNAL));
	connect_through(l, variant->type, fd);
	EXPECT_ERRNO(EISCONN, do_connect(fd[0], at(B, PORT)));
	EXPECT_ERRNO(EISCONN, do_connect(fd[1], at(A, PORT)));
	EXPECT_ERRNO(EINVAL, listen(fd[0], 1));
	EXPECT_ERRNO(EINVAL, listen(fd[1], 1));
	EXPECT_ERRNO(EINVAL, accept(fd[0], NULL, NULL));
	close(fd[0]);
	fd[0] = esp_socket(A, variant->type);
	EXPECT_ERRNO(EINVAL, accept(fd[0], NULL, NULL));
	EXPECT_ERRNO(ENOTCONN, peername(fd[0], &a));
	EXPECT_ERRNO(ENOTCONN, recv(fd[0], &a, 1, 0));
	EXPECT_ERRNO(EPIPE, send(fd[0], &a, 1, MSG_NOSIGNAL));
	EXPECT_ERRNO(ENOTCONN, shutdown(fd[0], SHUT_RDWR));
	EXPECT_ERRNO(EINVAL, shutdown(fd[1], 3));
}

/* shutdown() of a listener ends accept(); shutdown() of a connect() leaves
 * nothing, and the socket can connect again.
 */
TEST_F(hosts, shutdown_early)
{
	int l = listener(B, variant->type, PORT, 2), fd, i;
	struct sockaddr_esp nobody = at(B, PORT);
	pid_t pid;

	fd = esp_socket(A, variant->type);
	nobody.sesp_addr[4] = 0x77;
	for (i = 0; i < 5; i++) {
		nobody.sesp_addr[5] = i;
		nonblock(fd, true);
		EXPECT_ERRNO(EINPROGRESS, do_connect(fd, nobody));
		EXPECT_EQ(0, shutdown(fd, SHUT_RDWR));
	}
	nonblock(fd, false);
	EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(1, send(fd, "x", 1, MSG_NOSIGNAL));

	EXPECT_EQ(0, shutdown(l, SHUT_WR));	/* a listener ignores it */
	close(MUST(accept(l, NULL, NULL)));
	pid = MUST(fork());
	if (!pid)
		_exit(accept(l, NULL, NULL) >= 0 || errno != EINVAL);
	ASSERT_TRUE(UNTIL(asleep(pid)));
	EXPECT_EQ(0, shutdown(l, SHUT_RD));
	EXPECT_EQ(0, reap(pid));
}

/* Two connections can't have the same two ports and hosts. */
TEST_F(hosts, four_tuple)
{
	int l = listener(B, variant->type, PORT, 2);
	int fd[2], i;

	for (i = 0; i < 2; i++) {
		fd[i] = esp_socket(A, variant->type);
		set_int(fd[i], SOL_SOCKET, SO_REUSEADDR, 1);
		ASSERT_EQ(0, do_bind(fd[i], any(3000)));
	}
	EXPECT_EQ(0, do_connect(fd[0], at(B, PORT)));
	EXPECT_ERRNO(EADDRNOTAVAIL, do_connect(fd[1], at(B, PORT)));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/*
 * Which device: the bound one; else sesp_ifindex, or ENODEV; if that is 0, the only one up, or
 * EHOSTUNREACH.
 */
TEST_F(hosts, device_choice)
{
	int l = listener(B, variant->type, PORT, 10), fd, lo;
	struct sockaddr_esp a = at(B, PORT);
	unsigned int other;

	/* the only one that is up */
	fd = esp_socket(A, variant->type);
	EXPECT_EQ(0, do_connect(fd, a));
	EXPECT_LE(0, accept(l, NULL, NULL));

	/* a device whose frames stay here doesn't count */
	make_dev("dummy", "other");
	dev_up(A, "other", true);
	other = if_nametoindex("other");
	fd = esp_socket(A, variant->type);
	EXPECT_EQ(0, do_connect(fd, a));
	EXPECT_LE(0, accept(l, NULL, NULL));

	/* two are up, so none is chosen */
	run("ip link add second type veth peer name third && ip link set second up");
	sysctl(A, "dev/second/enable", 1);
	fd = esp_socket(A, variant->type);
	EXPECT_ERRNO(EHOSTUNREACH, do_connect(fd, a));
	a.sesp_ifindex = 12345;
	EXPECT_ERRNO(ENODEV, do_connect(fd, a));
	a.sesp_ifindex = A->ifindex;
	EXPECT_EQ(0, do_connect(fd, a));
	EXPECT_LE(0, accept(l, NULL, NULL));

	/* bound by bind(): sesp_ifindex is ignored */
	fd = esp_socket(A, variant->type);
	a = any(0);
	a.sesp_ifindex = A->ifindex;
	EXPECT_EQ(0, do_bind(fd, a));
	a = at(B, PORT);
	a.sesp_ifindex = other;
	EXPECT_EQ(0, do_connect(fd, a));
	EXPECT_EQ(A->ifindex, sockname(fd).sesp_ifindex);
	EXPECT_LE(0, accept(l, NULL, NULL));

	/* bound by SO_BINDTODEVICE */
	fd = esp_socket(A, variant->type);
	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "va", 3));
	EXPECT_EQ(0, do_connect(fd, a));
	EXPECT_EQ(A->ifindex, sockname(fd).sesp_ifindex);
	EXPECT_LE(0, accept(l, NULL, NULL));

	/* a failed connect() leaves no device set */
	sysctl(A, "syn_retries", 0);
	fd = esp_socket(A, variant->type);
	EXPECT_ERRNO(ETIMEDOUT, do_connect(fd, a));
	EXPECT_EQ(0U, sockname(fd).sesp_ifindex);
	sysctl(A, "syn_retries", 9);
	a.sesp_ifindex = A->ifindex;
	EXPECT_EQ(0, do_connect(fd, a));
	EXPECT_LE(0, accept(l, NULL, NULL));

	/* one is up again; sesp_ifindex names a device that is gone */
	dev_up(A, "second", false);
	fd = esp_socket(A, variant->type);
	a.sesp_ifindex = 12345;
	EXPECT_ERRNO(ENODEV, do_connect(fd, a));

	/* none is up; loopback and dummy devices don't count unless they are named */
	dev_up(A, "va", false);
	fd = esp_socket(A, variant->type);
	EXPECT_ERRNO(EHOSTUNREACH, do_connect(fd, at(B, PORT)));
	lo = listener(A, variant->type, PORT, 1);
	a = any(PORT);
	a.sesp_ifindex = if_nametoindex("lo");
	fd = esp_socket(A, variant->type);
	EXPECT_EQ(0, do_connect(fd, a));
	EXPECT_LE(0, accept(lo, NULL, NULL));
}

/* Only a device that is enabled and up carries ESP. */
TEST_F(hosts, device_disabled)
{
	int l = listener(B, variant->type, PORT, 1);
	int fd = esp_socket(A, variant->type);
	struct sockaddr_esp a = at(B, PORT);

	sysctl(A, "dev/va/enable", 0);
	EXPECT_ERRNO(EHOSTUNREACH, do_connect(fd, a));
	a.sesp_ifindex = A->ifindex;
	EXPECT_ERRNO(ENETDOWN, do_connect(fd, a));
	sysctl(A, "dev/va/enable", 1);
	link_up(A, false);
	EXPECT_ERRNO(ENETDOWN, do_connect(fd, a));
	link_up(A, true);

	/* at the listener's end: frames are dropped */
	sysctl(B, "dev/vb/enable", 0);
	sysctl(A, "syn_retries", 0);
	EXPECT_ERRNO(ETIMEDOUT, do_connect(fd, a));
	EXPECT_LE(1, counter(B, "InDevDisabled"));
	sysctl(B, "dev/vb/enable", 1);
	sysctl(A, "syn_retries", 9);
	EXPECT_EQ(0, do_connect(fd, a));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* A listener that is bound to a device takes connections over that device only. */
TEST_F(hosts, listener_bound)
{
	int any_l = listener(B, variant->type, PORT, 1), l, fd, s;
	struct sockaddr_esp a = any(PORT);

	close(any_l);
	enter(B);
	run("ip link add other type dummy && ip link set other up");
	a.sesp_ifindex = if_nametoindex("other");
	l = esp_socket(B, variant->type);
	ASSERT_EQ(0, do_bind(l, a));
	ASSERT_EQ(0, listen(l, 1));
	fd = esp_socket(A, variant->type);
	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd, at(B, PORT)));
	/* the port is free on the other device */
	a.sesp_ifindex = B->ifindex;
	s = esp_socket(B, variant->type);
	ASSERT_EQ(0, do_bind(s, a));
	ASSERT_EQ(0, listen(s, 1));
	EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(0, events(l, POLLIN, 0));
	fd = accept(s, NULL, NULL);
	ASSERT_LE(0, fd);
	EXPECT_EQ(B->ifindex, sockname(fd).sesp_ifindex);
}

/* Frames to the host's own MAC are delivered locally, because switches don't return them. */
TEST_F(hosts, own_address)
{
	int l = listener(A, variant->type, PORT, 1), fd[2];

	link_up(B, false);
	fd[0] = esp_socket(A, variant->type);
	ASSERT_EQ(0, do_connect(fd[0], at(A, PORT)));
	fd[1] = accept(l, NULL, NULL);
	ASSERT_LE(0, fd[1]);
	EXPECT_TRUE(alive(fd));
	EXPECT_EQ(0, transfer(fd[0], fd[1], 1 << 20));
}

TEST_F(hosts, loopback)
{
	int l = listener(A, variant->type, PORT, 1), fd[2];
	struct sockaddr_esp a = any(PORT);

	a.sesp_ifindex = if_nametoindex("lo");
	fd[0] = esp_socket(A, variant->type);
	ASSERT_EQ(0, do_connect(fd[0], a));
	fd[1] = accept(l, NULL, NULL);
	ASSERT_LE(0, fd[1]);
	EXPECT_TRUE(alive(fd));
	EXPECT_EQ(0, transfer(fd[0], fd[1], 1 << 20));
}

/* A socket that connects to itself talks to itself, as with TCP. */
TEST_F(hosts, itself)
{
	int fd = esp_socket(A, variant->type);
	char buf[6];

	ASSERT_EQ(0, do_bind(fd, any(PORT)));
	ASSERT_EQ(0, do_connect(fd, at(A, PORT)));
	EXPECT_EQ(5, send(fd, "hello", 5, 0));
	set_timeo(fd, SO_RCVTIMEO, LONG);
	EXPECT_EQ(5, recv(fd, buf, sizeof(buf), 0));
	EXPECT_EQ(0, memcmp(buf, "hello", 5));
	EXPECT_EQ(0, transfer(fd, fd, 100000));
	EXPECT_EQ(0, shutdown(fd, SHUT_WR));
	EXPECT_EQ(0, recv(fd, buf, sizeof(buf), 0));
}

/* Simultaneous open: the SYNs cross on a slow link. */
TEST_F(hosts, simultaneous_open)
{
	int fd[2], i;

	slow_link();
	for (i = 0; i < 2; i++) {
		fd[i] = esp_socket(&hosts[i], variant->type);
		nonblock(fd[i], true);
		ASSERT_EQ(0, do_bind(fd[i], any(PORT)));
	}
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd[0], at(B, PORT)));
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd[1], at(A, PORT)));
	EXPECT_TRUE(crossed(1));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(POLLOUT, events(fd[i], POLLOUT, LONG));
		EXPECT_EQ(0, so_error(fd[i]));
		EXPECT_LE(1, counter(&hosts[i], "SimultaneousOpens"));
	}
	EXPECT_TRUE(alive(fd));
}

/*
 * One SYN of two is lost: the other makes the connection all the same. Frames from
 * A are lost until B has called connect(), because B would refuse an earlier SYN.
 */
TEST_F(hosts, simultaneous_open_syn_lost)
{
	int fd[2], i;

	for (i = 0; i < 2; i++) {
		fd[i] = esp_socket(&hosts[i], variant->type);
		nonblock(fd[i], true);
		ASSERT_EQ(0, do_bind(fd[i], any(PORT)));
	}
	enter(A);
	run("tc qdisc add dev %s root netem loss 100%%", A->dev);
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd[0], at(B, PORT)));
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd[1], at(A, PORT)));
	enter(A);
	run("tc qdisc del dev %s root", A->dev);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(POLLOUT, events(fd[i], POLLOUT, LONG));
		EXPECT_EQ(0, so_error(fd[i]));
	}
	EXPECT_TRUE(alive(fd));
}

/* Simultaneous open of different types can't succeed, and ends. */
TEST_F(hosts, simultaneous_open_mismatch)
{
	int other = variant->type == SOCK_STREAM ? SOCK_SEQPACKET : SOCK_STREAM;
	int fd[2], i;

	for (i = 0; i < 2; i++) {
		enter(&hosts[i]);
		run("tc qdisc add dev %s root netem delay 30ms", hosts[i].dev);
		sysctl(&hosts[i], "syn_retries", 2);
		fd[i] = esp_socket(&hosts[i], i ? other : variant->type);
		nonblock(fd[i], true);
		ASSERT_EQ(0, do_bind(fd[i], any(PORT)));
	}
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd[0], at(B, PORT)));
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd[1], at(A, PORT)));
	for (i = 0; i < 2; i++) {
		int err;

		EXPECT_TRUE(events(fd[i], POLLIN, LONG) & POLLERR);
		err = so_error(fd[i]);
		EXPECT_TRUE(err == ETIMEDOUT || err == ECONNREFUSED)
			TH_LOG("%s", strerror(err));
	}
}

/* A process dies: its sockets are closed, its ports free. */
TEST_F(hosts, killed)
{
	int l = listener(B, variant->type, PORT, 5), fd, status;
	pid_t pid;
	char c;

	pid = MUST(fork());
	if (!pid) {
		fd = MUST(accept(l, NULL, NULL));
		MUST(send(fd, "x", 1, 0));
		recv(fd, &c, 1, 0);
		_exit(0);
	}
	close(l);
	fd = esp_socket(A, variant->type);
	ASSERT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(1, recv(fd, &c, 1, 0));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, recv(fd, &c, 1, 0));
	close(fd);
	EXPECT_TRUE(UNTIL(inuse(A) + inuse(B) == 0));
	l = esp_socket(B, variant->type);
	EXPECT_EQ(0, do_bind(l, any(PORT)));
}

/* shutdown() while connecting ends the attempt. */
TEST_F(hosts, shutdown_connecting)
{
	int fd = esp_socket(A, variant->type);
	struct sockaddr_esp nobody = at(B, PORT);

	nobody.sesp_addr[5] = 0x77;
	nonblock(fd, true);
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd, nobody));
	shutdown(fd, SHUT_RDWR);
	EXPECT_TRUE(events(fd, POLLIN, 0) & POLLHUP);
	EXPECT_EQ(0, inuse(A));
}

/* close() while connecting leaves nothing. */
TEST_F(hosts, close_connecting)
{
	int fd = esp_socket(A, variant->type);
	struct sockaddr_esp nobody = at(B, PORT);

	nobody.sesp_addr[5] = 0x77;
	nonblock(fd, true);
	ASSERT_EQ(0, do_bind(fd, any(3000)));
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd, nobody));
	EXPECT_EQ(1, inuse(A));
	close(fd);
	EXPECT_EQ(0, inuse(A));
	fd = esp_socket(A, variant->type);
	EXPECT_EQ(0, do_bind(fd, any(3000)));
}

/* A dead client's port is used again at once: TIME_WAIT is short. */
TEST_F(hosts, port_again)
{
	int l = listener(B, variant->type, PORT, 5), fd[2], i;

	for (i = 0; i < 5; i++) {
		fd[0] = esp_socket(A, variant->type);
		set_int(fd[0], SOL_SOCKET, SO_REUSEADDR, 1);
		ASSERT_EQ(0, do_bind(fd[0], any(3000)));
		/* the connection before may be in TIME_WAIT at either end */
		ASSERT_TRUE(UNTIL(!do_connect(fd[0], at(B, PORT))));
		fd[1] = accept(l, NULL, NULL);
		ASSERT_LE(0, fd[1]);
		ASSERT_TRUE(alive(fd));
		close(fd[i % 2]);
		close(fd[!(i % 2)]);
	}
}

/* The server closes first and keeps TIME_WAIT: a new SYN from there ends it. */
TEST_F(hosts, time_wait_ends)
{
	int l = listener(B, variant->type, PORT, 5), fd[2], i;
	char c;

	sysctl(B, "time_wait_ms", 60000);
	for (i = 0; i < 5; i++) {
		fd[0] = esp_socket(A, variant->type);
		set_int(fd[0], SOL_SOCKET, SO_REUSEADDR, 1);
		ASSERT_TRUE(UNTIL(!do_bind(fd[0], any(3000))));
		ASSERT_EQ(0, do_connect(fd[0], at(B, PORT)));
		fd[1] = accept(l, NULL, NULL);
		ASSERT_LE(0, fd[1]);
		/* the last time A keeps TIME_WAIT, for 50 ms */
		close(fd[i < 4]);
		EXPECT_EQ(0, recv(fd[i == 4], &c, 1, 0));
		close(fd[i == 4]);
		ASSERT_TRUE(UNTIL(inuse(A) == 0));
	}
	EXPECT_EQ(0, counter(A, "SynRetrans"));
	close(l);
}

TEST_HARNESS_MAIN
