// SPDX-License-Identifier: GPL-2.0-only
/*
 * listen(), accept(): the backlog, the state that a listener keeps for clients, and the
 * options that accepted sockets inherit (state-machine.rst; protocol, "Must hold, Connections").
 */
#include <linux/esp_wire.h>
#include <linux/if_packet.h>
#include "checksum.h"
#include "sock-hosts.h"
#include "sock-types.h"

/* The backlog is a limit: a late client waits, and connects when there is space again. */
TEST_F(hosts, backlog)
{
	int l = listener(B, variant->type, PORT, 1), fd[4], i;

	for (i = 0; i < 4; i++) {
		fd[i] = esp_socket(A, variant->type);
		nonblock(fd[i], true);
		EXPECT_ERRNO(EINPROGRESS, do_connect(fd[i], at(B, PORT)));
		/* as with TCP, one more than the backlog */
		EXPECT_EQ(i < 2 ? POLLOUT : 0,
			  events(fd[i], POLLOUT, i < 2 ? LONG : SHORT));
		if (i < 2)	/* B has received the client's echo, too */
			EXPECT_TRUE(UNTIL(counter(B, "PassiveOpens") == i + 1));
	}
	EXPECT_LE(2, counter(B, "ListenOverflows"));
	EXPECT_EQ(2, counter(B, "PassiveOpens"));
	for (i = 0; i < 4; i++)
		EXPECT_LE(0, accept(l, NULL, NULL));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(POLLOUT, events(fd[i], POLLOUT, LONG));
	EXPECT_EQ(4, counter(B, "PassiveOpens"));
}

/* listen() again changes the backlog. */
TEST_F(hosts, backlog_changed)
{
	int l = listener(B, variant->type, PORT, 0), fd, i;

	ASSERT_EQ(0, listen(l, 2));
	for (i = 0; i < 3; i++) {
		fd = esp_socket(A, variant->type);
		set_timeo(fd, SO_SNDTIMEO, LONG);
		EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	}
	for (i = 0; i < 3; i++)
		EXPECT_LE(0, accept(l, NULL, NULL));
}

/* accept() without a connection. */
TEST_F(hosts, accept_waits)
{
	int l = listener(B, variant->type, PORT, 1), fd;

	nonblock(l, true);
	EXPECT_ERRNO(EAGAIN, accept(l, NULL, NULL));
	nonblock(l, false);
	set_timeo(l, SO_RCVTIMEO, 30);
	EXPECT_ERRNO(EAGAIN, accept(l, NULL, NULL));
	set_timeo(l, SO_RCVTIMEO, 0);
	alarm_in_call(false);
	EXPECT_ERRNO(EINTR, accept(l, NULL, NULL));

	EXPECT_EQ(0, events(l, POLLIN | POLLOUT, 0));
	fd = esp_socket(A, variant->type);
	ASSERT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(POLLIN, events(l, POLLIN | POLLOUT, LONG));
	fd = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	EXPECT_EQ(0, events(l, POLLIN, 0));
}

/* A client comes while accept() waits; the wait is restarted by SA_RESTART. */
TEST_F(hosts, accept_woken)
{
	int l = listener(B, variant->type, PORT, 1), fd;
	pid_t pid;

	fd = esp_socket(A, variant->type);
	on_alarm_count(true);
	pid = MUST(fork());
	if (!pid) {
		interrupt_parent();
		_exit(do_connect(fd, at(B, PORT)) ? 1 : 0);
	}
	EXPECT_LE(0, accept(l, NULL, NULL));
	EXPECT_EQ(1, alarms);
	ASSERT_EQ(pid, waitpid(pid, &fd, 0));
	EXPECT_EQ(0, fd);
}

/* A connection that is not accepted yet is reset when the listener closes. */
TEST_F(hosts, listener_closed)
{
	int l = listener(B, variant->type, PORT, 5), fd[3], i;
	char c;

	for (i = 0; i < 3; i++) {
		fd[i] = esp_socket(A, variant->type);
		ASSERT_EQ(0, do_connect(fd[i], at(B, PORT)));
		set_timeo(fd[i], SO_RCVTIMEO, LONG);
	}
	EXPECT_EQ(1, send(fd[1], "x", 1, 0));
	ASSERT_TRUE(UNTIL(counter(B, "PassiveOpens") == 3));
	close(l);
	for (i = 0; i < 3; i++) {
		EXPECT_ERRNO(ECONNRESET, recv(fd[i], &c, 1, 0));
		EXPECT_EQ(0, recv(fd[i], &c, 1, 0));
		EXPECT_ERRNO(EPIPE, send(fd[i], &c, 1, MSG_NOSIGNAL));
	}
	EXPECT_TRUE(UNTIL(inuse(B) == 0));
	EXPECT_EQ(0, inuse(A));
}

/* Return the first packet number that belongs to a cookie (the handshake). */
static __u32 first_number(__u32 cookie)
{
	cookie ^= cookie >> 16;
	cookie *= 0x7feb352du;
	cookie ^= cookie >> 15;
	return cookie;
}

/*
 * SYNs of a thousand hosts that never send more: each is answered. They take no
 * socket and no place in the backlog, so a client can still connect.
 */
TEST_F(hosts, no_half_open_state)
{
	struct {
		__u8		pad[2];	/* aligns the header */
		__u8		dst[6];
		__u8		src[6];
		__be16		proto;
		struct esp_wire	h;
		__u8		options[16];
	} f = {
		.proto = htons(ESP_ETHERTYPE),
		.h = {
			.ver_hlen = ESP_VERSION << 4 | 12,
			.flags = ESP_SYN,
			.dport = htons(PORT),
		},
		.options = {
			ESP_OPT_COOKIE, 6, 0, 0, 0, 0,
			ESP_OPT_MSS, 4, 1468 >> 8, 1468 & 255,
			ESP_OPT_TYPE, 3, variant->type,
		},
	};
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_ifindex = A->ifindex,
	};
	int l = listener(B, variant->type, PORT, 1), raw, fd;
	long before, i;

	enter(A);
	raw = MUST(socket(AF_PACKET, SOCK_RAW, 0));
	memcpy(f.dst, B->mac, 6);
	f.src[0] = 2;
	before = counter(B, "OutFrames");
	for (i = 1; i <= 1000; i++) {
		__be32 cookie = htonl(i);

		f.src[3] = i >> 8;
		f.src[4] = i;
		f.h.sport = htons(i);
		f.h.pkt_seq = htonl(first_number(i));
		memcpy(f.options + 2, &cookie, 4);
		f.h.csum = 0;
		f.h.csum = checksum(&f.h, sizeof(f.h) + sizeof(f.options));
		ASSERT_EQ((ssize_t)sizeof(f) - 2,
			  sendto(raw, (char *)&f + 2, sizeof(f) - 2, 0,
				 (struct sockaddr *)&to, sizeof(to)));
	}
	EXPECT_TRUE(UNTIL(counter(B, "OutFrames") == before + 1000));
	EXPECT_EQ(1, inuse(B));
	EXPECT_EQ(0, counter(B, "PassiveOpens"));
	EXPECT_EQ(0, counter(B, "ListenOverflows"));
	EXPECT_EQ(0, events(l, POLLIN, 0));
	fd = esp_socket(A, variant->type);
	EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* Data that were sent before accept() can be read. */
TEST_F(hosts, data_before_accept)
{
	int l = listener(B, variant->type, PORT, 1), fd[2];

	fd[0] = esp_socket(A, variant->type);
	ASSERT_EQ(0, do_connect(fd[0], at(B, PORT)));
	EXPECT_EQ(0, write_stream(fd[0], 0, 20000));
	close(fd[0]);
	usleep(SHORT * 1000);
	fd[1] = accept(l, NULL, NULL);
	ASSERT_LE(0, fd[1]);
	EXPECT_EQ(0, read_stream(fd[1], 0, 20000));
	EXPECT_EQ(0, recv(fd[1], fd, 1, 0));
}

/* Accepted sockets have the listener's options, as with TCP. */
TEST_F(hosts, inheritance)
{
	static const struct {
		int level, name, value, read;
	} t[] = {
		{ SOL_SOCKET, SO_RCVBUF, 100000, 200000 },
		{ SOL_SOCKET, SO_SNDBUF, 70000, 140000 },
		{ SOL_SOCKET, SO_PRIORITY, 5, 5 },
		{ SOL_SOCKET, SO_MARK, 7, 7 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1, 1 },
		{ SOL_SOCKET, SO_RCVLOWAT, 9, 9 },
		{ SOL_SOCKET, SO_REUSEADDR, 1, 1 },
		{ SOL_SOCKET, SO_BUSY_POLL, 60, 60 },
		{ SOL_ESP, ESP_NODELAY, 0, 0 },
		{ SOL_ESP, ESP_CORK, 1, 1 },
		{ SOL_ESP, ESP_USER_TIMEOUT, 12345, 12345 },
		{ SOL_ESP, ESP_KEEPIDLE, 11, 11 },
		{ SOL_ESP, ESP_KEEPINTVL, 12, 12 },
		{ SOL_ESP, ESP_KEEPCNT, 13, 13 },
		{ SOL_ESP, ESP_BURST_LENGTH, 14, 14 },
		{ SOL_ESP, ESP_INITIAL_ACK_BURST_LENGTH, 15, 15 },
		{ SOL_ESP, ESP_PACKETS_TO_ACK, 16, 16 },
		{ SOL_ESP, ESP_MAXSEG, 500, 500 },
		{ SOL_ESP, ESP_ZEROCOPY, 1, 1 },
	};
	struct linger linger = { 1, 17 };
	int l = esp_socket(B, variant->type), fd[2];
	socklen_t len = sizeof(linger);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		ASSERT_EQ(0, set_int(l, t[i].level, t[i].name, t[i].value))
			TH_LOG("level %d option %d", t[i].level, t[i].name);
	ASSERT_EQ(0, setsockopt(l, SOL_SOCKET, SO_LINGER, &linger, len));
	set_timeo(l, SO_SNDTIMEO, 3000);
	ASSERT_EQ(0, do_bind(l, any(PORT)));
	ASSERT_EQ(0, listen(l, 1));
	connect_through(l, variant->type, fd);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		EXPECT_EQ(t[i].read, get_int(fd[1], t[i].level, t[i].name))
			TH_LOG("level %d option %d", t[i].level, t[i].name);
	memset(&linger, 0, sizeof(linger));
	EXPECT_EQ(0, getsockopt(fd[1], SOL_SOCKET, SO_LINGER, &linger, &len));
	EXPECT_EQ(1, linger.l_onoff);
	EXPECT_EQ(17, linger.l_linger);
}

/* Two listeners can't have one port, whatever SO_REUSEADDR says. */
TEST_F(hosts, listen_taken)
{
	int l = esp_socket(B, variant->type), fd;

	fd = esp_socket(B, variant->type);
	set_int(l, SOL_SOCKET, SO_REUSEADDR, 1);
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	ASSERT_EQ(0, do_bind(l, any(PORT)));
	ASSERT_EQ(0, do_bind(fd, any(PORT)));
	ASSERT_EQ(0, listen(l, 1));
	EXPECT_ERRNO(EADDRINUSE, listen(fd, 1));
	/* listen() without a port takes a free one */
	fd = esp_socket(B, variant->type);
	EXPECT_EQ(0, listen(fd, 1));
	EXPECT_NE(0, sockname(fd).sesp_port);
}

TEST_HARNESS_MAIN
