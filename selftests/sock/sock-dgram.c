// SPDX-License-Identifier: GPL-2.0-only
/*
 * EDP: SOCK_DGRAM, a datagram is one frame that may get lost (socket-api.rst).
 */
#include <linux/esp_diag.h>
#include <linux/esp_wire.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include "sock-lib.h"

FIXTURE(pair) {
	int fd[2];	/* at A, unbound; at B, bound to PORT */
};

FIXTURE_SETUP(pair)
{
	int i;

	make_hosts();
	for (i = 0; i < 2; i++) {
		self->fd[i] = esp_socket(&hosts[i], SOCK_DGRAM);
		impatient(self->fd[i]);
	}
	ASSERT_EQ(0, do_bind(self->fd[1], any(PORT)));
}

FIXTURE_TEARDOWN(pair)
{
	if (_metadata->exit_code != KSFT_PASS)
		dump_counters();
	EXPECT_TRUE(leave_hosts());
}

/* Receive the first datagram, with its sender. */
static ssize_t take(int fd, void *buf, size_t n, int flags,
		    struct sockaddr_esp *from)
{
	socklen_t len = sizeof(*from);
	ssize_t r;

	memset(from, 0, sizeof(*from));
	r = recvfrom(fd, buf, n, flags, (struct sockaddr *)from, &len);
	if (r >= 0 && len != sizeof(*from))
		return -1;
	return r;
}

/* A datagram there and back; a sender without a port gets one. */
TEST_F(pair, addresses)
{
	struct sockaddr_esp from, own;
	char buf[100];

	EXPECT_EQ(0, sockname(self->fd[0]).sesp_port);
	ASSERT_EQ(5, do_sendto(self->fd[0], "hello", 5, 0, at(B, PORT)));
	own = sockname(self->fd[0]);
	EXPECT_NE(0, own.sesp_port);
	EXPECT_EQ(5, take(self->fd[1], buf, 100, 0, &from));
	EXPECT_EQ(0, memcmp(buf, "hello", 5));
	EXPECT_EQ(AF_ESP, from.sesp_family);
	EXPECT_EQ(own.sesp_port, from.sesp_port);
	EXPECT_EQ(6, from.sesp_halen);
	EXPECT_EQ(0, memcmp(from.sesp_addr, A->mac, 6));
	EXPECT_EQ(B->ifindex, from.sesp_ifindex);
	EXPECT_EQ(0, from.sesp_zero);
	/* an answer to exactly that address */
	ASSERT_EQ(3, do_sendto(self->fd[1], "yes", 3, 0, from));
	EXPECT_EQ(3, take(self->fd[0], buf, 100, 0, &from));
	EXPECT_EQ(PORT, ntohs(from.sesp_port));
	EXPECT_EQ(0, memcmp(from.sesp_addr, B->mac, 6));
}

/* Boundaries, and the length of a datagram that didn't fit. */
TEST_F(pair, truncation)
{
	struct sockaddr_esp from;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char buf[1500];
	int i;

	fill(buf, 0, 1468);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(1000, do_sendto(self->fd[0], buf, 1000, 0, at(B, PORT)));
	EXPECT_EQ(1000, take(self->fd[1], buf, 10, MSG_TRUNC | MSG_PEEK, &from));
	EXPECT_EQ(1000, queued(self->fd[1], SIOCINQ));
	EXPECT_EQ(1000, take(self->fd[1], buf, 10, MSG_TRUNC, &from));
	EXPECT_EQ(10, take(self->fd[1], buf, 10, 0, &from));
	iov.iov_base = buf;
	iov.iov_len = 999;
	EXPECT_EQ(999, recvmsg(self->fd[1], &msg, 0));
	EXPECT_EQ(MSG_TRUNC, msg.msg_flags);
	iov.iov_len = 1500;
	EXPECT_EQ(1000, recvmsg(self->fd[1], &msg, 0));
	EXPECT_EQ(0, msg.msg_flags);
	EXPECT_TRUE(right(buf, 0, 1000));
	EXPECT_ERRNO(EAGAIN, take(self->fd[1], buf, 1, MSG_DONTWAIT, &from));
}

/* EMSGSIZE above the MTU. An empty datagram arrives. */
TEST_F(pair, sizes)
{
	static char buf[70000];
	struct sockaddr_esp from;
	static const int size[] = { 0, 1, 13, 14, 15, 27, 28, 29, 1467, 1468 };
	unsigned int i;

	fill(buf, 0, sizeof(buf));
	EXPECT_ERRNO(EMSGSIZE, do_sendto(self->fd[0], buf, 1469, 0, at(B, PORT)));
	EXPECT_ERRNO(EMSGSIZE, do_sendto(self->fd[0], buf, 70000, 0, at(B, PORT)));
	for (i = 0; i < ARRAY_SIZE(size); i++) {
		ASSERT_EQ(size[i], do_sendto(self->fd[0], buf, size[i], 0,
					     at(B, PORT)));
		memset(buf, 0, 2000);
		EXPECT_EQ(size[i], take(self->fd[1], buf, 2000, 0, &from));
		EXPECT_TRUE(right(buf, 0, size[i]));
		EXPECT_EQ(PORT, ntohs(sockname(self->fd[1]).sesp_port));
		fill(buf, 0, sizeof(buf));
	}
}

/* Sizes around the limit above which data go into pages, not into the packet's linear part. */
TEST_F(pair, large)
{
	static const int size[] = { 3000, 4076, 4096, 8000, 65503 };
	static char buf[66000];
	int i, n;

	enter(A);
	run("ip link set va mtu 65535");
	enter(B);
	run("ip link set vb mtu 65535");
	for (n = 3600; n < 4000; n++) {
		fill(buf, 0, n);
		ASSERT_EQ(n, do_sendto(self->fd[0], buf, n, 0, at(B, PORT)));
		memset(buf, 0, n);
		ASSERT_EQ(n, recv(self->fd[1], buf, sizeof(buf), 0));
		ASSERT_TRUE(right(buf, 0, n));
	}
	for (i = 0; i < ARRAY_SIZE(size); i++) {
		fill(buf, 0, size[i]);
		ASSERT_EQ(size[i], do_sendto(self->fd[0], buf, size[i], 0, at(B, PORT)));
		EXPECT_EQ(10, recv(self->fd[1], buf, 10, MSG_PEEK));
		memset(buf, 0, size[i]);
		EXPECT_EQ(size[i], recv(self->fd[1], buf, sizeof(buf), 0));
		EXPECT_TRUE(right(buf, 0, size[i]));
	}
}

TEST_F(pair, iovec)
{
	struct sockaddr_esp to = at(B, PORT), from;
	struct iovec iov[100];
	char out[1000], in[1000];
	struct msghdr msg = {
		.msg_name = &to, .msg_namelen = sizeof(to),
		.msg_iov = iov, .msg_iovlen = 100,
	};
	int i;

	fill(out, 0, 1000);
	for (i = 0; i < 100; i++) {
		iov[i].iov_base = out + 10 * i;
		iov[i].iov_len = 10;
	}
	EXPECT_EQ(1000, sendmsg(self->fd[0], &msg, 0));
	EXPECT_EQ(1000, take(self->fd[1], in, 1000, 0, &from));
	EXPECT_TRUE(right(in, 0, 1000));
}

/* A socket filter cuts the datagram, as with UDP. */
TEST_F(pair, filter_cuts)
{
	static const unsigned int keep[] = { ESP_HLEN + 100, ESP_HLEN + 10, ESP_HLEN, ESP_HLEN - 1, 1 };
	char buf[100];
	int i;

	fill(buf, 0, 100);
	for (i = 0; i < (int)ARRAY_SIZE(keep); i++) {
		struct sock_filter ret = BPF_STMT(BPF_RET | BPF_K, keep[i]);
		struct sock_fprog prog = { .len = 1, .filter = &ret };
		int left = keep[i] > ESP_HLEN ? (int)keep[i] - ESP_HLEN : 0;
		struct sockaddr_esp from;

		ASSERT_EQ(0, setsockopt(self->fd[1], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
		EXPECT_EQ(100, do_sendto(self->fd[0], buf, 100, 0, at(B, PORT)));
		EXPECT_EQ(left, take(self->fd[1], buf, 100, 0, &from));
		EXPECT_TRUE(right(buf, 0, left));
	}
}

TEST_F(pair, malformed)
{
	struct sockaddr_esp a = at(B, PORT);
	int fd = self->fd[0];

	EXPECT_ERRNO(EDESTADDRREQ, send(fd, "x", 1, 0));
	EXPECT_ERRNO(EINVAL, sendto(fd, "x", 1, 0, (void *)&a, 15));
	a.sesp_family = AF_INET;
	EXPECT_ERRNO(EAFNOSUPPORT, do_sendto(fd, "x", 1, 0, a));
	a = at(B, PORT);
	a.sesp_halen = 8;
	EXPECT_ERRNO(EINVAL, do_sendto(fd, "x", 1, 0, a));
	EXPECT_ERRNO(EINVAL, do_sendto(fd, "x", 1, 0, at(B, 0)));
	EXPECT_ERRNO(EOPNOTSUPP, do_sendto(fd, "x", 1, MSG_OOB, at(B, PORT)));
	EXPECT_ERRNO(EOPNOTSUPP, recv(fd, &a, 1, MSG_OOB));
	EXPECT_ERRNO(EFAULT, do_sendto(fd, NULL, 10, 0, at(B, PORT)));
	EXPECT_ERRNO(EOPNOTSUPP, listen(fd, 1));
	EXPECT_ERRNO(EOPNOTSUPP, accept(fd, NULL, NULL));
	EXPECT_ERRNO(ENOTCONN, peername(fd, &a));
	EXPECT_EQ(0, events(self->fd[1], POLLIN, SHORT));
	/* to a closed port: no error, because there is no answer */
	EXPECT_EQ(1, do_sendto(fd, "x", 1, 0, at(B, PORT + 1)));
	EXPECT_TRUE(UNTIL(counter(B, "InNoSocket") == 1));
	EXPECT_EQ(0, so_error(fd));
	/* as with UDP, shutdown() reports that there is no peer, but works */
	EXPECT_ERRNO(ENOTCONN, shutdown(fd, SHUT_RDWR));
	EXPECT_ERRNO(EPIPE, do_sendto(fd, "x", 1, MSG_NOSIGNAL, at(B, PORT + 1)));
}

/* A connect() that fails leaves the socket unconnected. */
TEST_F(pair, connect_fails)
{
	struct sockaddr_esp a = at(B, PORT);
	int fd = self->fd[0];

	EXPECT_ERRNO(EINVAL, connect(fd, (void *)&a, 1));
	EXPECT_ERRNO(EINVAL, connect(fd, (void *)&a, 15));
	a.sesp_family = AF_INET;
	EXPECT_ERRNO(EAFNOSUPPORT, do_connect(fd, a));
	a = at(B, PORT);
	a.sesp_halen = 8;
	EXPECT_ERRNO(EINVAL, do_connect(fd, a));
	EXPECT_ERRNO(EINVAL, do_connect(fd, at(B, 0)));
	link_up(A, false);
	EXPECT_ERRNO(EHOSTUNREACH, do_connect(fd, at(B, PORT)));
	a = at(B, PORT);
	a.sesp_ifindex = A->ifindex;
	EXPECT_ERRNO(ENETDOWN, do_connect(fd, a));
	link_up(A, true);
	EXPECT_ERRNO(ENOTCONN, peername(fd, &a));
	EXPECT_ERRNO(EDESTADDRREQ, send(fd, "x", 1, 0));
	EXPECT_EQ(0U, sockname(fd).sesp_ifindex);

	/* once connected: an invalid address changes nothing, an unreachable one disconnects */
	ASSERT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_ERRNO(EINVAL, do_connect(fd, at(B, 0)));
	EXPECT_EQ(1, send(fd, "x", 1, 0));
	link_up(A, false);
	EXPECT_ERRNO(EHOSTUNREACH, do_connect(fd, at(B, PORT)));
	link_up(A, true);
	EXPECT_ERRNO(ENOTCONN, peername(fd, &a));
	EXPECT_ERRNO(EDESTADDRREQ, send(fd, "x", 1, 0));
	EXPECT_EQ(0U, sockname(fd).sesp_ifindex);
}

/* A bad buffer for a datagram: EFAULT, and the next datagram can be received. */
TEST_F(pair, fault_recv)
{
	struct sockaddr_esp from;
	char buf[10];

	ASSERT_EQ(5, do_sendto(self->fd[0], "first", 5, 0, at(B, PORT)));
	ASSERT_EQ(6, do_sendto(self->fd[0], "second", 6, 0, at(B, PORT)));
	EXPECT_ERRNO(EFAULT, take(self->fd[1], NULL, 5, 0, &from));
	EXPECT_LT(0, take(self->fd[1], buf, 10, 0, &from));
}

/* Sending to a group needs SO_BROADCAST. Every socket of the port gets the datagram. */
TEST_F(pair, groups)
{
	struct sockaddr_esp to = at(B, PORT), from;
	int fd[3], i, j;
	char buf[10];

	close(self->fd[1]);
	for (i = 0; i < 3; i++) {
		fd[i] = esp_socket(B, SOCK_DGRAM);
		impatient(fd[i]);
		set_int(fd[i], SOL_SOCKET, SO_REUSEADDR, 1);
		ASSERT_EQ(0, do_bind(fd[i], any(i < 2 ? PORT : PORT + 1)));
	}
	for (j = 0; j < 2; j++) {
		if (j)
			memset(to.sesp_addr, 0xff, 6);
		else
			to.sesp_addr[0] |= 1;
		set_int(self->fd[0], SOL_SOCKET, SO_BROADCAST, 0);
		EXPECT_ERRNO(EACCES, do_sendto(self->fd[0], "x", 1, 0, to));
		EXPECT_ERRNO(EACCES, do_connect(self->fd[0], to));
		EXPECT_EQ(0, events(fd[0], POLLIN, SHORT));
		set_int(self->fd[0], SOL_SOCKET, SO_BROADCAST, 1);
		EXPECT_EQ(3, do_sendto(self->fd[0], "all", 3, 0, to));
		for (i = 0; i < 2; i++)
			EXPECT_EQ(3, take(fd[i], buf, 10, 0, &from));
		EXPECT_EQ(0, events(fd[2], POLLIN, SHORT));
	}
	/* a datagram to a host goes to one of them */
	EXPECT_EQ(3, do_sendto(self->fd[0], "one", 3, 0, at(B, PORT)));
	EXPECT_TRUE(UNTIL(counter(B, "DgramIn") == 5));
	EXPECT_EQ(1, !!events(fd[0], POLLIN, 0) + !!events(fd[1], POLLIN, 0));
}

/* A connected socket sends without an address, and receives only from its peer. */
TEST_F(pair, connected)
{
	struct sockaddr_esp peer;
	char buf[100];
	int other;

	ASSERT_EQ(0, do_bind(self->fd[0], any(3000)));
	ASSERT_EQ(0, do_connect(self->fd[0], at(B, PORT)));
	ASSERT_EQ(0, peername(self->fd[0], &peer));
	EXPECT_EQ(PORT, ntohs(peer.sesp_port));
	EXPECT_EQ(0, memcmp(peer.sesp_addr, B->mac, 6));
	EXPECT_EQ(4, send(self->fd[0], "four", 4, 0));
	EXPECT_EQ(4, take(self->fd[1], buf, 100, 0, &peer));

	other = esp_socket(B, SOCK_DGRAM);
	ASSERT_EQ(0, do_bind(other, any(PORT + 1)));
	EXPECT_EQ(5, do_sendto(other, "other", 5, 0, peer));
	EXPECT_TRUE(UNTIL(counter(A, "InNoSocket") == 1));
	EXPECT_EQ(0, events(self->fd[0], POLLIN, 0));
	EXPECT_EQ(4, do_sendto(self->fd[1], "peer", 4, 0, peer));
	EXPECT_EQ(4, recv(self->fd[0], buf, 100, 0));

	/* another address is allowed all the same */
	EXPECT_EQ(1, do_sendto(self->fd[0], "x", 1, 0, at(B, PORT + 1)));
	EXPECT_EQ(1, recv(other, buf, 100, 0));

	/* connected to another peer, then disconnected */
	ASSERT_EQ(0, do_connect(self->fd[0], at(B, PORT + 1)));
	EXPECT_EQ(2, send(self->fd[0], "xy", 2, 0));
	EXPECT_EQ(2, recv(other, buf, 100, 0));
	peer.sesp_family = AF_UNSPEC;
	ASSERT_EQ(0, connect(self->fd[0], (void *)&peer, sizeof(peer)));
	EXPECT_ERRNO(EDESTADDRREQ, send(self->fd[0], "x", 1, 0));
	EXPECT_ERRNO(ENOTCONN, peername(self->fd[0], &peer));
	EXPECT_EQ(3000, ntohs(sockname(self->fd[0]).sesp_port));
	EXPECT_EQ(5, do_sendto(self->fd[1], "again", 5, 0,
			       (struct sockaddr_esp) {
				       .sesp_family = AF_ESP,
				       .sesp_port = htons(3000),
				       .sesp_addr = { 2, 0, 0, 0, 0, 0x0a },
			       }));
	EXPECT_EQ(5, recv(self->fd[0], buf, 100, 0));
}

/* The device is chosen for each datagram, by the rules of connect(). */
TEST_F(pair, device_choice)
{
	struct sockaddr_esp to = at(B, PORT), bound = any(0), a;
	unsigned int other;
	char c;
	int fd;

	/* a device that isn't there is not replaced by the only one */
	to.sesp_ifindex = 9999;
	EXPECT_ERRNO(ENODEV, do_sendto(self->fd[0], "x", 1, 0, to));
	EXPECT_ERRNO(ENODEV, do_connect(self->fd[0], to));
	to.sesp_ifindex = 0;
	EXPECT_EQ(1, do_sendto(self->fd[0], "x", 1, 0, to));
	EXPECT_EQ(1, recv(self->fd[1], &c, 1, 0));

	/* a device whose frames stay here doesn't count */
	make_dev("dummy", "other");
	dev_up(A, "other", true);
	other = if_nametoindex("other");
	EXPECT_EQ(1, do_sendto(self->fd[0], "x", 1, 0, to));
	EXPECT_EQ(1, recv(self->fd[1], &c, 1, 0));
	run("ip link add second type veth peer name third && ip link set second up");
	sysctl(A, "dev/second/enable", 1);
	EXPECT_ERRNO(EHOSTUNREACH, do_sendto(self->fd[0], "x", 1, 0, to));
	to.sesp_ifindex = A->ifindex;
	EXPECT_EQ(1, do_sendto(self->fd[0], "x", 1, 0, to));
	EXPECT_EQ(1, recv(self->fd[1], &c, 1, 0));
	to.sesp_ifindex = other;
	EXPECT_EQ(1, do_sendto(self->fd[0], "x", 1, 0, to));
	EXPECT_EQ(0, events(self->fd[1], POLLIN, SHORT));
	/* bound by bind(): that device, whatever the address says */
	fd = esp_socket(A, SOCK_DGRAM);
	bound.sesp_ifindex = A->ifindex;
	ASSERT_EQ(0, do_bind(fd, bound));
	EXPECT_EQ(1, do_sendto(fd, "x", 1, 0, to));
	EXPECT_EQ(1, recv(self->fd[1], &c, 1, 0));

	/* bound by SO_BINDTODEVICE */
	fd = esp_socket(A, SOCK_DGRAM);
	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "va", 3));
	EXPECT_EQ(1, do_sendto(fd, "x", 1, 0, to));
	EXPECT_EQ(1, recv(self->fd[1], &c, 1, 0));
	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "other", 6));
	EXPECT_EQ(1, do_sendto(fd, "x", 1, 0, at(B, PORT)));
	EXPECT_EQ(0, events(self->fd[1], POLLIN, SHORT));

	/* connected over one device, then over another */
	fd = esp_socket(A, SOCK_DGRAM);
	ASSERT_EQ(0, do_connect(fd, to));
	EXPECT_EQ(other, sockname(fd).sesp_ifindex);
	to.sesp_ifindex = A->ifindex;
	ASSERT_EQ(0, do_connect(fd, to));
	EXPECT_EQ(A->ifindex, sockname(fd).sesp_ifindex);
	EXPECT_EQ(1, send(fd, "x", 1, 0));
	EXPECT_EQ(1, recv(self->fd[1], &c, 1, 0));
	a.sesp_family = AF_UNSPEC;
	ASSERT_EQ(0, connect(fd, (void *)&a, sizeof(a)));
	EXPECT_EQ(0U, sockname(fd).sesp_ifindex);

	/* down, or not enabled */
	to.sesp_ifindex = A->ifindex;
	sysctl(A, "dev/va/enable", 0);
	EXPECT_ERRNO(ENETDOWN, do_sendto(self->fd[0], "x", 1, 0, to));
	sysctl(A, "dev/va/enable", 1);
	link_up(A, false);
	EXPECT_ERRNO(ENETDOWN, do_sendto(self->fd[0], "x", 1, 0, to));
	link_up(A, true);
	EXPECT_EQ(1, do_sendto(self->fd[0], "x", 1, 0, to));
}

/* List a host's sockets of this type and port by sock_diag; return their number. */
static int diag(const struct host *h, int type, int port, struct esp_diag_msg *m, bool attr[4])
{
	struct {
		struct nlmsghdr		head;
		struct esp_diag_req	req;
	} question = {
		.head = {
			.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.req = { .sdiag_family = AF_ESP, .sdiag_type = type, .port = htons(port) },
	};
	char answer[8192] __attribute__((aligned(8)));
	int fd, n = 0;

	enter(h);
	fd = MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
	MUST(send(fd, &question, sizeof(question), 0));
	memset(attr, 0, 4 * sizeof(*attr));
	for (;;) {
		struct nlmsghdr *head = (void *)answer;
		int left = MUST(recv(fd, answer, sizeof(answer), 0));

		for (; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
			int len = head->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
			struct rtattr *a;

			MUST(head->nlmsg_type == NLMSG_ERROR ? -1 : 0);
			if (head->nlmsg_type == NLMSG_DONE) {
				close(fd);
				return n;
			}
			n++;
			memcpy(m, NLMSG_DATA(head), sizeof(*m));
			a = NLMSG_DATA(head) + NLMSG_ALIGN(sizeof(*m));
			for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
				if (a->rta_type < 4)
					attr[a->rta_type] = true;
		}
	}
}

TEST_F(pair, diagnosis)
{
	static const __u8 none[6];
	struct esp_diag_msg m;
	struct stat st;
	char buf[1000];
	bool attr[4];
	int port;

	fill(buf, 0, 1000);
	ASSERT_EQ(0, do_connect(self->fd[0], at(B, PORT)));
	ASSERT_EQ(1000, send(self->fd[0], buf, 1000, 0));
	ASSERT_EQ(POLLIN, events(self->fd[1], POLLIN, LONG));
	ASSERT_EQ(1, diag(B, SOCK_DGRAM, PORT, &m, attr));
	ASSERT_EQ(0, fstat(self->fd[1], &st));
	EXPECT_EQ(AF_ESP, m.family);
	EXPECT_EQ(SOCK_DGRAM, m.type);
	EXPECT_EQ(7, m.state);		/* TCP_CLOSE */
	EXPECT_EQ(st.st_ino, m.ino);
	EXPECT_LE(1000U, m.rqueue);
	EXPECT_EQ(0U, m.wqueue);
	EXPECT_EQ(PORT, ntohs(m.src.sesp_port));
	EXPECT_EQ(0, memcmp(m.src.sesp_addr, none, 6));
	EXPECT_EQ(0, m.dst.sesp_family);
	/* a datagram socket has no figures of a connection */
	EXPECT_FALSE(attr[ESP_DIAG_INFO]);
	EXPECT_TRUE(attr[ESP_DIAG_MEMINFO]);

	port = ntohs(sockname(self->fd[0]).sesp_port);
	ASSERT_EQ(1, diag(A, SOCK_DGRAM, port, &m, attr));
	EXPECT_EQ(1, m.state);		/* TCP_ESTABLISHED */
	EXPECT_EQ(0U, m.rqueue);
	EXPECT_EQ(A->ifindex, m.src.sesp_ifindex);
	EXPECT_EQ(PORT, ntohs(m.dst.sesp_port));
	EXPECT_EQ(0, memcmp(m.dst.sesp_addr, B->mac, 6));
	/* no socket of another type or host has this port */
	EXPECT_EQ(0, diag(B, SOCK_STREAM, PORT, &m, attr));
	EXPECT_EQ(0, diag(A, SOCK_DGRAM, PORT, &m, attr));
	ASSERT_EQ(1000, recv(self->fd[1], buf, 1000, 0));
	ASSERT_EQ(1, diag(B, SOCK_DGRAM, PORT, &m, attr));
	EXPECT_EQ(0U, m.rqueue);
}

/* A socket that is bound to a device receives over that device only. */
TEST_F(pair, receiving_device)
{
	int fd = esp_socket(B, SOCK_DGRAM), lo = esp_socket(B, SOCK_DGRAM);
	struct sockaddr_esp a = any(PORT);
	char c;

	close(self->fd[1]);
	enter(B);
	a.sesp_ifindex = if_nametoindex("lo");
	ASSERT_EQ(0, do_bind(lo, a));
	a.sesp_ifindex = B->ifindex;
	ASSERT_EQ(0, do_bind(fd, a));
	EXPECT_EQ(1, do_sendto(self->fd[0], "v", 1, 0, at(B, PORT)));
	EXPECT_EQ(1, recv(fd, &c, 1, 0));
	EXPECT_EQ('v', c);
	EXPECT_EQ(0, events(lo, POLLIN, SHORT));
	/* from the host itself: by lo, and by its MAC */
	a.sesp_ifindex = if_nametoindex("lo");
	EXPECT_EQ(1, do_sendto(lo, "l", 1, 0, a));
	EXPECT_EQ(1, recv(lo, &c, 1, 0));
	EXPECT_EQ('l', c);
	EXPECT_EQ(1, do_sendto(fd, "m", 1, 0, at(B, PORT)));
	EXPECT_EQ(1, recv(fd, &c, 1, 0));
	EXPECT_EQ('m', c);
}

/* A device leaves: a socket bound to it gets the error once; a listener, too. */
TEST_F(pair, device_leaves)
{
	int fd = esp_socket(A, SOCK_DGRAM), l = esp_socket(A, SOCK_STREAM);
	int sender = esp_socket(A, SOCK_DGRAM);
	struct sockaddr_esp a = any(PORT);
	char c;

	make_dev("dummy", "other");
	a.sesp_ifindex = if_nametoindex("other");
	ASSERT_EQ(0, do_bind(fd, a));
	a.sesp_port = htons(PORT + 1);
	ASSERT_EQ(0, do_bind(sender, a));
	a.sesp_port = htons(PORT);
	ASSERT_EQ(0, do_bind(l, a));
	ASSERT_EQ(0, listen(l, 1));
	impatient(l);
	enter(A);
	run("ip link del other");
	EXPECT_EQ(POLLERR, events(fd, POLLIN, LONG) & POLLERR);
	EXPECT_EQ(POLLERR, events(l, POLLIN, LONG) & POLLERR);
	EXPECT_ERRNO(ENETDOWN, recv(fd, &c, 1, MSG_DONTWAIT));
	EXPECT_ERRNO(EAGAIN, recv(fd, &c, 1, MSG_DONTWAIT));
	EXPECT_ERRNO(ENETDOWN, do_sendto(sender, "x", 1, 0, at(B, PORT)));
	EXPECT_EQ(0, so_error(sender));
	EXPECT_EQ(0, so_error(fd));
	EXPECT_ERRNO(ENETDOWN, accept(l, NULL, NULL));
	EXPECT_EQ(0, so_error(l));
}

/* A full buffer drops datagrams and counts them; queued datagrams are whole. */
TEST_F(pair, receive_buffer)
{
	char buf[1000];
	long sent, got = 0;

	set_int(self->fd[1], SOL_SOCKET, SO_RCVBUF, 10000);
	fill(buf, 0, 1000);
	for (sent = 0; sent < 100; sent++)
		ASSERT_EQ(1000, do_sendto(self->fd[0], buf, 1000, 0, at(B, PORT)));
	EXPECT_TRUE(UNTIL(counter(B, "DgramIn") + counter(B, "DgramMemDrop") ==
			  sent));
	while (recv(self->fd[1], buf, 1000, MSG_DONTWAIT) == 1000) {
		EXPECT_TRUE(right(buf, 0, 1000));
		got++;
	}
	EXPECT_LT(0, got);
	EXPECT_GT(sent, got);
	EXPECT_EQ(got, counter(B, "DgramIn"));
	EXPECT_EQ(1, do_sendto(self->fd[0], buf, 1, 0, at(B, PORT)));
	EXPECT_EQ(1, recv(self->fd[1], buf, 1000, 0));
}

/* Small datagrams don't take a page each. */
TEST_F(pair, small)
{
	int i, n = 50, room = 50 * 2048;
	char c = 'x';

	set_int(self->fd[1], SOL_SOCKET, SO_RCVBUF, room / 2);	/* the kernel doubles it */
	for (i = 0; i < n; i++)
		ASSERT_EQ(1, do_sendto(self->fd[0], &c, 1, 0, at(B, PORT)));
	EXPECT_TRUE(UNTIL(counter(B, "DgramIn") + counter(B, "DgramMemDrop") == n));
	EXPECT_EQ(n, counter(B, "DgramIn"));
}

/* Waiting: poll, timeout, signal, shutdown. */
TEST_F(pair, waiting)
{
	pid_t pid;
	char c;

	EXPECT_EQ(POLLOUT, events(self->fd[1], POLLIN | POLLOUT, 0));
	EXPECT_ERRNO(EAGAIN, recv(self->fd[1], &c, 1, MSG_DONTWAIT));
	EXPECT_ERRNO(EAGAIN, recv(self->fd[1], &c, 1, MSG_ERRQUEUE));
	set_timeo(self->fd[1], SO_RCVTIMEO, 20);
	EXPECT_ERRNO(EAGAIN, recv(self->fd[1], &c, 1, 0));
	set_timeo(self->fd[1], SO_RCVTIMEO, 0);
	alarm_in_call(false);
	EXPECT_ERRNO(EINTR, recv(self->fd[1], &c, 1, 0));
	EXPECT_EQ(1, do_sendto(self->fd[0], "x", 1, 0, at(B, PORT)));
	EXPECT_EQ(POLLIN, events(self->fd[1], POLLIN, LONG));
	EXPECT_ERRNO(EAGAIN, recv(self->fd[1], &c, 1, MSG_ERRQUEUE));
	EXPECT_EQ(1, recv(self->fd[1], &c, 1, 0));

	/* without a peer shutdown() fails, but it wakes a waiting reader */
	pid = MUST(fork());
	if (!pid)
		_exit(recv(self->fd[0], &c, 1, 0) ? 1 : 0);
	ASSERT_TRUE(UNTIL(asleep(pid)));
	EXPECT_ERRNO(ENOTCONN, shutdown(self->fd[0], SHUT_RD));
	EXPECT_EQ(0, reap(pid));

	ASSERT_EQ(0, do_connect(self->fd[1], at(A, 3000)));
	pid = MUST(fork());
	if (!pid)
		_exit(recv(self->fd[1], &c, 1, 0) ? 1 : 0);
	ASSERT_TRUE(UNTIL(asleep(pid)));
	EXPECT_EQ(0, shutdown(self->fd[1], SHUT_RDWR));
	EXPECT_EQ(0, reap(pid));
	EXPECT_ERRNO(EPIPE, send(self->fd[1], &c, 1, MSG_NOSIGNAL));
}

/* SO_TIMESTAMP, which every datagram socket has. */
TEST_F(pair, timestamp)
{
	char control[256], buf[10];
	struct iovec iov = { buf, 10 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	ASSERT_EQ(0, set_int(self->fd[1], SOL_SOCKET, SO_TIMESTAMP, 1));
	EXPECT_EQ(1, do_sendto(self->fd[0], "x", 1, 0, at(B, PORT)));
	EXPECT_EQ(1, recvmsg(self->fd[1], &msg, 0));
	c = CMSG_FIRSTHDR(&msg);
	ASSERT_NE(NULL, c);
	EXPECT_EQ(SOL_SOCKET, c->cmsg_level);
	EXPECT_EQ(SO_TIMESTAMP, c->cmsg_type);
}

/* close() with datagrams queued, bound and connected. */
TEST_F(pair, close_queued)
{
	int fd;

	EXPECT_EQ(1, do_sendto(self->fd[0], "x", 1, 0, at(B, PORT)));
	EXPECT_EQ(POLLIN, events(self->fd[1], POLLIN, LONG));
	close(self->fd[1]);
	fd = esp_socket(B, SOCK_DGRAM);
	EXPECT_EQ(0, do_bind(fd, any(PORT)));
	EXPECT_EQ(0, events(fd, POLLIN, 0));
}

TEST_HARNESS_MAIN
