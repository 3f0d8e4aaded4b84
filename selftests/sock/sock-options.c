// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket options, their values and effects; ioctls (socket-api.rst; af_esp.h has
 * the ranges).
 */
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <stddef.h>
#include <sys/utsname.h>
#include "sock-hosts.h"

/*
 * Each option's range, and its initial value: a number, or the value of a sysctl.
 */
static const struct option {
	int name, lo, hi, initially;
	const char *sysctl;
} options[] = {
	{ ESP_MAXSEG, 64, 65503, 0, NULL },
	{ ESP_NODELAY, 0, 1, 1, NULL },
	{ ESP_CORK, 0, 1, 0, NULL },
	{ ESP_USER_TIMEOUT, 0, 0x7fffffff, 0, NULL },
	{ ESP_KEEPIDLE, 1, 32767, 0, "keepalive_time" },
	{ ESP_KEEPINTVL, 1, 32767, 0, "keepalive_intvl" },
	{ ESP_KEEPCNT, 1, 127, 0, "keepalive_probes" },
	{ ESP_BURST_LENGTH, 0, 65535, 0, "burst_length" },
	{ ESP_INITIAL_ACK_BURST_LENGTH, -1, 64, 0, "initial_ack_burst_length" },
	{ ESP_PACKETS_TO_ACK, 1, 64, 0, "packets_to_ack" },
};

static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };

/* Read an option, like get_int(), but -1 is a value. */
static int read_option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int v = -99;

	MUST(getsockopt(fd, SOL_ESP, name, &v, &len));
	return v;
}

TEST_F(hosts, ranges)
{
	unsigned int i, t;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		int fd = esp_socket(A, types[t]);

		for (i = 0; i < ARRAY_SIZE(options); i++) {
			const struct option *o = &options[i];
			int v = o->sysctl ? read_sysctl(A, o->sysctl) :
					    o->initially;

			EXPECT_EQ(v, read_option(fd, o->name))
				TH_LOG("option %d", o->name);
			EXPECT_EQ(0, set_int(fd, SOL_ESP, o->name, o->lo));
			EXPECT_EQ(o->lo, read_option(fd, o->name));
			EXPECT_EQ(0, set_int(fd, SOL_ESP, o->name, o->hi));
			EXPECT_EQ(o->hi, read_option(fd, o->name));
			if (o->lo == 0 && o->hi == 1) {
				EXPECT_EQ(0, set_int(fd, SOL_ESP, o->name, 17));
				EXPECT_EQ(1, read_option(fd, o->name));
				continue;
			}
			EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, o->name,
						     o->lo - 1));
			EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, o->name,
						     (int)(o->hi + 1U)));
			EXPECT_EQ(o->hi, read_option(fd, o->name));
		}
	}
}

TEST_F(hosts, malformed)
{
	int fd = esp_socket(A, SOCK_STREAM), v = 5;
	char buf[sizeof(struct esp_info) + 8];
	struct esp_info *info = (void *)buf;
	socklen_t len;

	for (len = 0; len < 4; len++)
		EXPECT_ERRNO(EINVAL, setsockopt(fd, SOL_ESP, ESP_KEEPCNT, &v, len));
	EXPECT_ERRNO(EINVAL, setsockopt(fd, SOL_ESP, ESP_KEEPCNT, &v, -1));
	EXPECT_ERRNO(EFAULT, setsockopt(fd, SOL_ESP, ESP_KEEPCNT, NULL, 4));
	EXPECT_EQ(0, setsockopt(fd, SOL_ESP, ESP_KEEPCNT, &v, 4));
	EXPECT_ERRNO(ENOPROTOOPT, set_int(fd, SOL_ESP, 0, 1));
	EXPECT_ERRNO(ENOPROTOOPT, set_int(fd, SOL_ESP, ESP_RECVERR, 1));
	EXPECT_ERRNO(ENOPROTOOPT, set_int(fd, SOL_ESP, ESP_TCP_SOCKET + 1, 1));
	EXPECT_ERRNO(ENOPROTOOPT, set_int(fd, SOL_ESP, -1, 1));
	EXPECT_ERRNO(ENOPROTOOPT, set_int(fd, SOL_ESP, ESP_MTU, 1));
	EXPECT_ERRNO(ENOPROTOOPT, set_int(fd, SOL_ESP, ESP_STATS, 1));
	EXPECT_ERRNO(ENOPROTOOPT, set_int(fd, SOL_ESP, ESP_INFO, 1));
	EXPECT_ERRNO(ENOPROTOOPT, set_int(fd, IPPROTO_TCP, 1, 1));
	EXPECT_EQ(-ENOPROTOOPT, get_int(fd, SOL_ESP, 0));
	EXPECT_EQ(-ENOPROTOOPT, get_int(fd, SOL_ESP, ESP_RECVERR));
	EXPECT_EQ(-ENOPROTOOPT, get_int(fd, SOL_ESP, ESP_TCP_DEST));
	EXPECT_EQ(-ENOPROTOOPT, get_int(fd, SOL_ESP, ESP_TCP_SOCKET));
	EXPECT_EQ(-ENOPROTOOPT, get_int(fd, SOL_ESP, ESP_TCP_SOCKET + 1));
	EXPECT_EQ(-ENOPROTOOPT, get_int(fd, IPPROTO_TCP, 1));

	/* getsockopt() fills as much as fits into the buffer */
	len = -1;
	EXPECT_ERRNO(EINVAL, getsockopt(fd, SOL_ESP, ESP_KEEPCNT, &v, &len));
	EXPECT_ERRNO(EFAULT, getsockopt(fd, SOL_ESP, ESP_KEEPCNT, &v, NULL));
	len = 4;
	EXPECT_ERRNO(EFAULT, getsockopt(fd, SOL_ESP, ESP_KEEPCNT, NULL, &len));
	len = 2;
	v = -1;
	EXPECT_EQ(0, getsockopt(fd, SOL_ESP, ESP_KEEPCNT, &v, &len));
	EXPECT_EQ(2U, len);
	EXPECT_EQ(5, v & 0xffff);
	EXPECT_EQ(-1, v >> 16);
	len = sizeof(buf);
	memset(buf, 0x55, sizeof(buf));
	EXPECT_EQ(0, getsockopt(fd, SOL_ESP, ESP_INFO, buf, &len));
	EXPECT_EQ(sizeof(*info), len);
	EXPECT_EQ(0x55, buf[sizeof(*info)]);
	EXPECT_EQ(7, info->state);	/* TCP_CLOSE */
	EXPECT_EQ(0U, info->pad);
	len = 8;
	memset(buf, 0x55, sizeof(buf));
	EXPECT_EQ(0, getsockopt(fd, SOL_ESP, ESP_STATS, buf, &len));
	EXPECT_EQ(8U, len);
	EXPECT_EQ(0x55, buf[8]);
	len = 1000;
	EXPECT_EQ(0, getsockopt(fd, SOL_ESP, ESP_STATS, buf, &len));
	EXPECT_EQ(sizeof(struct esp_stats), len);
}

/* ESP_MTU is the payload that fits into a frame of the device. */
TEST_F(hosts, mtu)
{
	int fd = esp_socket(A, SOCK_STREAM), p[2];
	struct sockaddr_esp a = any(PORT);

	EXPECT_EQ(-ENODEV, get_int(fd, SOL_ESP, ESP_MTU));
	a.sesp_ifindex = A->ifindex;
	ASSERT_EQ(0, do_bind(fd, a));
	EXPECT_EQ(1500 - 32, get_int(fd, SOL_ESP, ESP_MTU));
	make_pair(SOCK_STREAM, p);
	EXPECT_EQ(1468, get_int(p[0], SOL_ESP, ESP_MTU));
	EXPECT_EQ(1468, get_int(p[1], SOL_ESP, ESP_MTU));
	enter(A);
	run("ip link set va mtu 2000");
	EXPECT_EQ(2000 - 32, get_int(fd, SOL_ESP, ESP_MTU));
	EXPECT_TRUE(alive(p));
}

/* ESP_MAXSEG bounds packets; it is fixed once the socket is connected. */
TEST_F(hosts, maxseg)
{
	int l = listener(B, SOCK_STREAM, PORT, 2), fd[2];

	EXPECT_ERRNO(EISCONN, set_int(l, SOL_ESP, ESP_MAXSEG, 100));
	fd[0] = esp_socket(A, SOCK_STREAM);
	ASSERT_EQ(0, set_int(fd[0], SOL_ESP, ESP_MAXSEG, 100));
	ASSERT_EQ(0, do_connect(fd[0], at(B, PORT)));
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_ERRNO(EISCONN, set_int(fd[0], SOL_ESP, ESP_MAXSEG, 200));
	EXPECT_EQ(100, get_int(fd[0], SOL_ESP, ESP_MAXSEG));
	ASSERT_EQ(0, transfer(fd[0], fd[1], 10000));
	EXPECT_EQ(100U, get_info(fd[0]).mss);
	/* packets of the first buffer leave room for an option of 8 bytes */
	EXPECT_GE(get_info(fd[0]).stats.tx_packets, 100UL);
	EXPECT_LE(get_info(fd[0]).stats.tx_packets, 109UL);
	close(fd[0]);
	close(fd[1]);
	/* a value larger than the device takes is reduced */
	fd[0] = esp_socket(A, SOCK_STREAM);
	ASSERT_EQ(0, set_int(fd[0], SOL_ESP, ESP_MAXSEG, 65503));
	ASSERT_EQ(0, do_connect(fd[0], at(B, PORT)));
	fd[1] = MUST(accept(l, NULL, NULL));
	ASSERT_TRUE(alive(fd));
	EXPECT_EQ(1468, get_int(fd[0], SOL_ESP, ESP_MAXSEG));
}

/* After a transfer both ends' numbers and counters agree. */
TEST_F(hosts, info)
{
	struct esp_info a, b;
	int fd[2];

	make_pair(SOCK_STREAM, fd);
	ASSERT_EQ(0, transfer(fd[0], fd[1], 1000000));
	ASSERT_EQ(0, transfer(fd[1], fd[0], 10));
	ASSERT_TRUE(UNTIL(!queued(fd[0], SIOCOUTQ) && !queued(fd[1], SIOCOUTQ)));
	a = get_info(fd[0]);
	b = get_info(fd[1]);
	EXPECT_EQ(1, a.state);
	EXPECT_EQ(1, b.state);
	EXPECT_EQ(a.send_seq, a.una_seq);
	EXPECT_EQ(a.send_seq, a.send_next);
	EXPECT_EQ(b.send_seq, b.una_seq);
	EXPECT_EQ(a.send_seq, b.recv_seq);
	EXPECT_EQ(b.send_seq, a.recv_seq);
	EXPECT_EQ(a.recv_seq, a.ack_seq);
	EXPECT_EQ(b.recv_seq, b.ack_seq);
	EXPECT_EQ(0U, a.notsent);
	EXPECT_EQ(0U, a.unacked);
	EXPECT_EQ(0U, b.open);
	EXPECT_EQ(0, a.retransmits);
	EXPECT_EQ(0, a.probes);
	EXPECT_EQ(0, a.flags & (ESP_IF_TRANS_ANNOUNCED | ESP_IF_ECHOING));
	EXPECT_EQ(0, b.flags & (ESP_IF_RECV_ANNOUNCED | ESP_IF_PARKED |
				ESP_IF_RCV_MEM_PRESSURE));
	EXPECT_EQ(1468U, a.mss);
	EXPECT_EQ(1468U, a.peer_mss);
	EXPECT_EQ(1468U, b.mss);
	EXPECT_LT(0U, a.rtt_us);
	EXPECT_LE(a.min_rtt_us, a.rtt_us + 4 * a.rttvar_us);
	EXPECT_LE(1000U, a.rto_us);
	EXPECT_GE(500000U, a.rto_us);
	EXPECT_EQ(b.advice_given, a.advice);
	EXPECT_EQ(0U, a.pad | a.pad2);
	EXPECT_EQ(0U, a.left_told | b.left | b.bucket_open | b.bucket_busy);
	EXPECT_LT(2U, b.bucket);

	EXPECT_EQ(1000000UL, a.stats.tx_bytes);
	EXPECT_EQ(1000000UL, b.stats.rx_bytes);
	EXPECT_EQ(10UL, b.stats.tx_bytes);
	EXPECT_EQ(10UL, a.stats.rx_bytes);
	EXPECT_EQ(a.stats.tx_packets, b.stats.rx_packets);
	EXPECT_EQ(b.stats.tx_packets, a.stats.rx_packets);
	EXPECT_LE(1000000 / 1468 + 1UL, a.stats.tx_packets);
	EXPECT_GE(a.stats.tx_packets / 2, b.stats.tx_empty);
}

/* With the link cut, data stay unacknowledged; while the sender waits for a grant, unsent. */
TEST_F(hosts, info_in_flight)
{
	struct esp_info i;
	int fd[2];

	make_pair(SOCK_STREAM, fd);
	ASSERT_TRUE(alive(fd));
	link_up(B, false);
	ASSERT_EQ(0, write_stream(fd[0], 0, 500000));
	ASSERT_TRUE(UNTIL(get_info(fd[0]).retransmits));
	i = get_info(fd[0]);
	EXPECT_EQ(500000U, i.notsent + i.unacked);
	EXPECT_LT(0U, i.unacked);
	EXPECT_NE(i.una_seq, i.send_next);
	EXPECT_LT(0UL, i.stats.timeouts);
	EXPECT_LT(0UL, i.stats.retrans);
	EXPECT_EQ(500000, queued(fd[0], SIOCOUTQ));
	EXPECT_EQ((int)get_info(fd[0]).notsent, queued(fd[0], SIOCOUTQNSD));
	link_up(B, true);
	EXPECT_EQ(0, read_stream(fd[1], 0, 500000));
}

/* The receiver has little memory. Both ends show that the sender has more. */
TEST_F(hosts, info_left)
{
	struct esp_info a, b;
	int fd[2];

	make_pair(SOCK_STREAM, fd);
	ASSERT_EQ(0, set_int(fd[1], SOL_SOCKET, SO_RCVBUF, 20000));
	ASSERT_EQ(0, write_stream(fd[0], 0, 500000));
	ASSERT_TRUE(UNTIL(get_info(fd[1]).left > 100));
	a = get_info(fd[0]);
	b = get_info(fd[1]);
	EXPECT_LE(b.left, a.left_told);
	EXPECT_GE(2U * (500000 / 1468 + 1), a.left_told);	/* it may tell as much again */
	EXPECT_EQ(0, read_stream(fd[1], 0, 500000));
	ASSERT_TRUE(UNTIL(!get_info(fd[0]).left_told && !get_info(fd[1]).left));
	/* the seed's policy knows no buckets */
	sysctl(B, "adaptive", 0);
	EXPECT_EQ(0U, get_info(fd[1]).bucket);
	sysctl(B, "adaptive", 1);
	EXPECT_LT(0U, get_info(fd[1]).bucket);
}

TEST_F(hosts, ioctls)
{
	int fd = listener(A, SOCK_STREAM, PORT, 1), t, n;
	struct ifreq ifr = { .ifr_name = "va" };

	EXPECT_ERRNO(EINVAL, ioctl(fd, SIOCINQ, &n));
	EXPECT_ERRNO(EINVAL, ioctl(fd, SIOCOUTQ, &n));
	for (t = 0; t < 3; t++) {
		fd = esp_socket(A, types[t]);
		EXPECT_EQ(0, queued(fd, SIOCINQ));
		EXPECT_EQ(0, queued(fd, SIOCOUTQ));
		ASSERT_EQ(0, ioctl(fd, SIOCGIFHWADDR, &ifr));
		EXPECT_EQ(0, memcmp(ifr.ifr_hwaddr.sa_data, A->mac, 6));
		ASSERT_EQ(0, ioctl(fd, SIOCGIFINDEX, &ifr));
		EXPECT_EQ((int)A->ifindex, ifr.ifr_ifindex);
		ASSERT_EQ(0, ioctl(fd, SIOCGIFMTU, &ifr));
		EXPECT_EQ(1500, ifr.ifr_mtu);
		EXPECT_ERRNO(ENOTTY, ioctl(fd, 0x12345678, &n));
	}
}

/* SO_BINDTODEVICE chooses listeners and datagrams by device. */
TEST_F(hosts, bindtodevice)
{
	int l = esp_socket(B, SOCK_STREAM), fd;

	EXPECT_ERRNO(ENODEV, setsockopt(l, SOL_SOCKET, SO_BINDTODEVICE, "no", 3));
	make_dev("dummy", "other");
	enter(B);
	run("ip link add other type dummy");
	ASSERT_EQ(0, setsockopt(l, SOL_SOCKET, SO_BINDTODEVICE, "other", 6));
	ASSERT_EQ(0, do_bind(l, any(PORT)));
	ASSERT_EQ(0, listen(l, 1));
	fd = esp_socket(A, SOCK_STREAM);
	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd, at(B, PORT)));
	ASSERT_EQ(0, setsockopt(l, SOL_SOCKET, SO_BINDTODEVICE, "vb", 3));
	EXPECT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* Return the packets that left by the third band of a prio queue. */
static int third_band(void)
{
	FILE *f = popen("tc -s class show dev va", "r");
	bool third = false;
	char line[256];
	int n = -1;

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, "class prio"))
			third = strstr(line, "1:3");
		else if (third)
			sscanf(line, " Sent %*u bytes %d pkt", &n);
	}
	if (f)
		pclose(f);
	return n;
}

/* Every frame of a socket has its mark and its priority. */
TEST_F(hosts, mark_and_priority)
{
	int fd[2], t;

	run("tc qd add dev va handle 1: root prio bands 3 priomap 0 0 0 0 0 2 0 0 0 0 0 0 0 0 0 0");
	for (t = 0; t < 3; t++) {
		if (types[t] == SOCK_DGRAM) {
			fd[0] = esp_socket(A, SOCK_DGRAM);
			set_int(fd[0], SOL_SOCKET, SO_PRIORITY, 5);
			ASSERT_EQ(4, do_sendto(fd[0], "four", 4, 0, at(B, PORT)));
		} else {
			make_pair(types[t], fd);
			set_int(fd[0], SOL_SOCKET, SO_PRIORITY, 5);
			ASSERT_EQ(4, send(fd[0], "four", 4, 0));
			ASSERT_EQ(4, recv(fd[1], fd, 4, MSG_PEEK));
		}
	}
	/* three data frames at least went by the third band */
	enter(A);
	EXPECT_LE(3, third_band());
	run("tc qdisc del dev va root");
	for (t = 0; t < 3; t++) {
		fd[0] = esp_socket(A, types[t]);
		EXPECT_EQ(0, set_int(fd[0], SOL_SOCKET, SO_MARK, 9));
		EXPECT_EQ(9, get_int(fd[0], SOL_SOCKET, SO_MARK));
	}
}

#define PACE		4000000		/* bytes in a second */
#define PACED_BYTES	2000000
#define PACED_FIRST	(40 * 1500)	/* bytes that fq lets leave at once, and a packet more */

/* Send PACED_BYTES, and return how long it took until all had come, ms. */
static long paced_ms(struct __test_metadata *_metadata, int fd[2])
{
	static char buf[20000];
	long long start = now_ms();
	long sent = 0, come = 0;
	ssize_t n;

	while (come < PACED_BYTES) {
		n = 0;
		if (sent < PACED_BYTES)
			n = send(fd[0], buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0)
			sent += n;
		n = recv(fd[1], buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0)
			come += n;
		else
			nap_us(1000);
		ASSERT_GT(60000, now_ms() - start);
	}
	return now_ms() - start;
}

/* With fq a connection is no faster than SO_MAX_PACING_RATE says, and its rate can be raised. */
TEST_F(hosts, pacing)
{
	long ms, least = (PACED_BYTES - PACED_FIRST) / (PACE / 1000);
	int fd[2];

	enter(A);
	run("tc qdisc add dev va root fq");
	make_pair(SOCK_STREAM, fd);
	if (set_int(fd[0], SOL_SOCKET, SO_MAX_PACING_RATE, PACE / 100))
		ASSERT_EQ(0, errno);
	ASSERT_EQ(0, set_int(fd[0], SOL_SOCKET, SO_MAX_PACING_RATE, PACE));
	ms = paced_ms(_metadata, fd);
	TH_LOG("paced: %ld ms, at least %ld", ms, least);
	EXPECT_LE(least, ms);
	EXPECT_GT(50 * least, ms);	/* the lower rate of before does not stay */
	EXPECT_EQ(0, counter(A, "OutDiscards"));
	run("tc qdisc del dev va root");
}

/* With fq a datagram leaves at the time that SCM_TXTIME names. */
TEST_F(hosts, departure)
{
	struct sock_txtime txtime = { .clockid = CLOCK_MONOTONIC };
	union {
		char buf[CMSG_SPACE(sizeof(long long))];
		struct cmsghdr c;
	} u = { .c = { CMSG_LEN(sizeof(long long)), SOL_SOCKET, SCM_TXTIME } };
	struct sockaddr_esp to = at(B, PORT);
	struct iovec iov = { "four", 4 };
	struct msghdr msg = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &iov,
			      .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u) };
	int fd[2] = { esp_socket(A, SOCK_DGRAM), esp_socket(B, SOCK_DGRAM) };
	long long when;
	char data[8];

	enter(A);
	run("tc qdisc add dev va root fq");
	ASSERT_EQ(0, do_bind(fd[1], any(PORT)));
	EXPECT_ERRNO(EINVAL, sendmsg(fd[0], &msg, 0));	/* without SO_TXTIME */
	ASSERT_EQ(0, setsockopt(fd[0], SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)));
	when = (now_ms() + 300) * 1000000LL;
	memcpy(CMSG_DATA(&u.c), &when, sizeof(when));
	ASSERT_EQ(4, sendmsg(fd[0], &msg, 0));
	ASSERT_EQ(4, recv(fd[1], data, sizeof(data), 0));
	EXPECT_LE(when / 1000000, now_ms() + 1);
	run("tc qdisc del dev va root");
}

/* Send 4 bytes on a connected socket with one control message of SOL_SOCKET. */
static ssize_t send_with(int fd, int type, int value)
{
	union {
		char buf[CMSG_SPACE(sizeof(value))];
		struct cmsghdr c;
	} u = { .c = { CMSG_LEN(sizeof(value)), SOL_SOCKET, type } };
	struct iovec iov = { "four", 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u,
			      .msg_controllen = sizeof(u) };

	memcpy(CMSG_DATA(&u.c), &value, sizeof(value));
	return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

/* Control messages are those of TCP and UDP: unknown ones are refused, and nothing is sent. */
TEST_F(hosts, control_messages)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr c;
	} u;
	char data[8];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u,
			      .msg_controllen = sizeof(u) };
	struct sockaddr_esp a;
	int fd[2], t;

	for (t = 0; t < 2; t++) {
		make_pair(types[t], fd);
		EXPECT_ERRNO(EINVAL, send_with(fd[0], 9999, 1));
		EXPECT_ERRNO(EINVAL, send_with(fd[0], SO_TXTIME, 1));
		EXPECT_ERRNO(EOPNOTSUPP, send_with(fd[0], SO_TIMESTAMPING,
						   SOF_TIMESTAMPING_TX_SOFTWARE));
		EXPECT_EQ(0, queued(fd[0], SIOCOUTQ));
		EXPECT_EQ(4, send_with(fd[0], SO_MARK, 9));
		EXPECT_EQ(4, recv(fd[1], data, sizeof(data), 0));
		close(fd[0]);
		close(fd[1]);
	}
	fd[0] = esp_socket(A, SOCK_DGRAM);
	fd[1] = esp_socket(A, SOCK_DGRAM);
	a = any(PORT);
	a.sesp_ifindex = if_nametoindex("lo");
	ASSERT_EQ(0, do_bind(fd[1], a));
	impatient(fd[1]);
	ASSERT_EQ(0, set_int(fd[1], SOL_SOCKET, SO_RCVMARK, 1));
	ASSERT_EQ(0, do_connect(fd[0], a));
	EXPECT_ERRNO(EINVAL, send_with(fd[0], 9999, 1));
	EXPECT_ERRNO(EOPNOTSUPP, send_with(fd[0], SO_TIMESTAMPING, SOF_TIMESTAMPING_TX_SOFTWARE));
	EXPECT_ERRNO(EAGAIN, recv(fd[1], data, sizeof(data), MSG_DONTWAIT));
	ASSERT_EQ(4, send_with(fd[0], SO_MARK, 9));
	ASSERT_EQ(4, recvmsg(fd[1], &msg, 0));
	ASSERT_LE(sizeof(u), msg.msg_controllen);
	EXPECT_EQ(SO_MARK, u.c.cmsg_type);
	EXPECT_EQ(9, *(int *)CMSG_DATA(&u.c));
}

/* The core's options that ESP has no use for are refused; switched off, they are accepted. */
TEST_F(hosts, options_without_effect)
{
	static const struct {
		int name, on, off;
		bool dgram;	/* EDP has it */
	} no[] = {
		{ SO_REUSEPORT, 1, 0, false },
		{ SO_INCOMING_CPU, 0, -1, false },
		{ SO_TIMESTAMP, 1, 0, true },
		{ SO_TIMESTAMPNS, 1, 0, true },
		{ SO_TIMESTAMPING, SOF_TIMESTAMPING_RX_SOFTWARE, 0, true },
		{ SO_TIMESTAMPING, SOF_TIMESTAMPING_TX_SOFTWARE, 0, false },
	};
	struct sock_filter all[] = { { BPF_RET | BPF_K, 0, 0, 0xffff } };
	struct sock_fprog filter = { 1, all };
	struct sock_txtime txtime = { .clockid = CLOCK_TAI };
	struct sock_txtime errors = { CLOCK_TAI, SOF_TXTIME_REPORT_ERRORS };
	struct utsname kernel;
	unsigned int i, t;

	/* asked of the kernel's version, not of ESP: a defect there must not end in a skip */
	MUST(uname(&kernel));
	if (!strncmp(kernel.release, "6.1.", 4))
		SKIP(return, "this kernel sets SOL_SOCKET's options without asking the family");
	for (t = 0; t < ARRAY_SIZE(types); t++) {
		bool dgram = types[t] == SOCK_DGRAM;
		int fd = esp_socket(A, types[t]);

		for (i = 0; i < ARRAY_SIZE(no); i++) {
			int err = set_int(fd, SOL_SOCKET, no[i].name, no[i].on) ? errno : 0;

			EXPECT_EQ(dgram && no[i].dgram ? 0 : EOPNOTSUPP, err)
				TH_LOG("option %d", no[i].name);
			EXPECT_EQ(0, set_int(fd, SOL_SOCKET, no[i].name, no[i].off))
				TH_LOG("option %d", no[i].name);
		}
		i = setsockopt(fd, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime));
		EXPECT_EQ(dgram ? 0 : -1, (int)i);
		EXPECT_ERRNO(EOPNOTSUPP, setsockopt(fd, SOL_SOCKET, SO_TXTIME, &errors,
						    sizeof(errors)));
		EXPECT_ERRNO(EOPNOTSUPP, set_int(fd, SOL_SOCKET, SO_PEEK_OFF, 1));
		i = setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
		EXPECT_EQ(dgram ? 0 : -1, (int)i);
		EXPECT_ERRNO(EINVAL, setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &i, 1));
		EXPECT_ERRNO(EFAULT, setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, (void *)16, 4));
		EXPECT_EQ(0, set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	}
}

/* Return a buffer's default size for all datagram sockets. */
static int datagram_default(const char *path)
{
	FILE *f = fopen(path, "re");
	int n = -1;

	if (f && fscanf(f, "%d", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return MUST(n);
}

/* Buffers start as the sysctls say; EDP's as those of all datagram sockets. */
TEST_F(hosts, buffer_defaults)
{
	int fd, t, first = MUST(open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC)), rcv, snd;

	MUST(setns(first, CLONE_NEWNET));
	rcv = datagram_default("/proc/sys/net/core/rmem_default");
	snd = datagram_default("/proc/sys/net/core/wmem_default");

	sysctl(A, "rcvbuf", 300000);
	sysctl(A, "sndbuf", 200000);
	for (t = 0; t < 3; t++) {
		fd = esp_socket(A, types[t]);
		EXPECT_EQ(types[t] == SOCK_DGRAM ? rcv : 300000, get_int(fd, SOL_SOCKET, SO_RCVBUF));
		EXPECT_EQ(types[t] == SOCK_DGRAM ? snd : 200000, get_int(fd, SOL_SOCKET, SO_SNDBUF));
	}
}

/* Options without a value of their own follow the sysctl. */
TEST_F(hosts, sysctl_defaults)
{
	int fd = esp_socket(A, SOCK_STREAM);

	sysctl(A, "keepalive_time", 11);
	sysctl(A, "keepalive_intvl", 12);
	sysctl(A, "keepalive_probes", 13);
	sysctl(A, "burst_length", 14);
	sysctl(A, "initial_ack_burst_length", 15);
	sysctl(A, "packets_to_ack", 16);
	EXPECT_EQ(11, get_int(fd, SOL_ESP, ESP_KEEPIDLE));
	EXPECT_EQ(12, get_int(fd, SOL_ESP, ESP_KEEPINTVL));
	EXPECT_EQ(13, get_int(fd, SOL_ESP, ESP_KEEPCNT));
	EXPECT_EQ(14, get_int(fd, SOL_ESP, ESP_BURST_LENGTH));
	EXPECT_EQ(15, get_int(fd, SOL_ESP, ESP_INITIAL_ACK_BURST_LENGTH));
	EXPECT_EQ(16, get_int(fd, SOL_ESP, ESP_PACKETS_TO_ACK));
}

/* The three options of the original, set for one socket: still every byte arrives. */
TEST_F(hosts, bursts)
{
	static const int v[][3] = {
		{ 1, 0, 1 }, { 2, 1, 64 }, { 65535, 64, 64 }, { 3, -1, 2 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		int l = listener(B, SOCK_STREAM, PORT, 1), fd[2];

		fd[0] = esp_socket(A, SOCK_STREAM);
		set_int(fd[0], SOL_ESP, ESP_BURST_LENGTH, v[i][0]);
		set_int(fd[0], SOL_ESP, ESP_INITIAL_ACK_BURST_LENGTH, v[i][1]);
		set_int(l, SOL_ESP, ESP_PACKETS_TO_ACK, v[i][2]);
		ASSERT_EQ(0, do_connect(fd[0], at(B, PORT)));
		fd[1] = MUST(accept(l, NULL, NULL));
		close(l);
		/* once more while the connection is in use */
		EXPECT_EQ(0, transfer(fd[0], fd[1], 200000));
		set_int(fd[0], SOL_ESP, ESP_BURST_LENGTH, 5);
		EXPECT_EQ(0, transfer(fd[0], fd[1], 200000));
		close(fd[0]);
		close(fd[1]);
	}
}

/* Keepalive: a peer that is gone is noticed within its settings. */
TEST_F(hosts, keepalive)
{
	long long start;
	int fd[2];
	char c;

	make_pair(SOCK_STREAM, fd);
	ASSERT_TRUE(alive(fd));
	set_int(fd[0], SOL_ESP, ESP_KEEPIDLE, 1);
	set_int(fd[0], SOL_ESP, ESP_KEEPINTVL, 1);
	set_int(fd[0], SOL_ESP, ESP_KEEPCNT, 1);
	ASSERT_EQ(0, set_int(fd[0], SOL_SOCKET, SO_KEEPALIVE, 1));
	set_timeo(fd[0], SO_RCVTIMEO, 3 * LONG);
	/* a peer that is there answers */
	EXPECT_TRUE(UNTIL(counter(A, "KeepaliveProbes") >= 2));
	EXPECT_EQ(0, so_error(fd[0]));
	link_up(B, false);
	start = now_ms();
	EXPECT_ERRNO(ETIMEDOUT, recv(fd[0], &c, 1, 0));
	EXPECT_GT(2 * LONG, now_ms() - start);
	EXPECT_LE(800, now_ms() - start);
	EXPECT_EQ(0, recv(fd[0], &c, 1, 0));
	EXPECT_ERRNO(EPIPE, send(fd[0], &c, 1, MSG_NOSIGNAL));
	forget_soon(B);
}

/* ESP_USER_TIMEOUT limits the time that data stay unacknowledged. */
TEST_F(hosts, user_timeout)
{
	long long start;
	int fd[2];
	char c;

	make_pair(SOCK_STREAM, fd);
	ASSERT_TRUE(alive(fd));
	ASSERT_EQ(0, set_int(fd[0], SOL_ESP, ESP_USER_TIMEOUT, 200));
	set_timeo(fd[0], SO_RCVTIMEO, 2 * LONG);
	link_up(B, false);
	start = now_ms();
	ASSERT_EQ(0, write_stream(fd[0], 0, 1000));
	EXPECT_ERRNO(ETIMEDOUT, recv(fd[0], &c, 1, 0));
	EXPECT_LE(190, now_ms() - start);
	EXPECT_GT(LONG, now_ms() - start);
	forget_soon(B);
}

/* As TCP's, it limits the time that data wait for room, although the peer answers probes. */
TEST_F(hosts, user_timeout_waiting)
{
	int fd[2];

	make_pair(SOCK_STREAM, fd);
	set_int(fd[1], SOL_SOCKET, SO_RCVBUF, 20000);
	ASSERT_EQ(0, set_int(fd[0], SOL_ESP, ESP_USER_TIMEOUT, 500));
	sysctl(A, "probe_max_ms", 20);
	stuff(fd[0], 0);
	ASSERT_TRUE(UNTIL(events(fd[0], 0, 0) & POLLERR));
	EXPECT_EQ(ETIMEDOUT, so_error(fd[0]));
}

/*
 * Data that the peer can't get, while it sends: its frames are no ACKs of them. They must not
 * keep the connection, which the other limit would.
 */
TEST_F(hosts, user_timeout_one_way)
{
	long long start;
	int fd[2], i;

	make_pair(SOCK_STREAM, fd);
	ASSERT_TRUE(alive(fd));
	/* for 25 seconds B's frames don't stop for as long as that, although it gets no ACKs */
	sysctl(B, "rto_max_ms", 100);
	sysctl(B, "probe_max_ms", 100);
	sysctl(B, "retries", 250);
	ASSERT_EQ(0, set_int(fd[0], SOL_ESP, ESP_USER_TIMEOUT, 500));
	enter(A);
	run("tc qdisc add dev va root netem loss 100%%");
	start = now_ms();
	ASSERT_EQ(0, write_stream(fd[0], 0, 1000));
	for (i = 0; !(events(fd[0], 0, 0) & POLLERR) && now_ms() - start < LONG; i++) {
		enter(B);
		send(fd[1], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		usleep(10 * 1000);
	}
	EXPECT_LT(10, i);
	EXPECT_EQ(ETIMEDOUT, so_error(fd[0]));
	EXPECT_LE(490, now_ms() - start);
	enter(A);
	run("tc qdisc del dev va root");
	forget_soon(B);
}

/* Without traffic, it replaces the number of keepalive's probes. */
TEST_F(hosts, user_timeout_keepalive)
{
	long long start;
	int fd[2];
	char c;

	sysctl(A, "keepalive_time", 1);
	sysctl(A, "keepalive_intvl", 1);
	sysctl(A, "keepalive_probes", 100);
	make_pair(SOCK_STREAM, fd);
	ASSERT_EQ(0, set_int(fd[0], SOL_ESP, ESP_USER_TIMEOUT, 1500));
	link_up(B, false);
	start = now_ms();
	ASSERT_EQ(0, set_int(fd[0], SOL_SOCKET, SO_KEEPALIVE, 1));
	set_timeo(fd[0], SO_RCVTIMEO, LONG);
	EXPECT_ERRNO(ETIMEDOUT, recv(fd[0], &c, 1, 0));
	EXPECT_LE(1400, now_ms() - start);
	forget_soon(B);
}

/*
 * A host that has lost the connection, as by a crash, tells the other end as soon
 * as that sends a frame, long before its retries end, and whether a listener is
 * there again or not.
 */
static void forgotten(struct __test_metadata *_metadata, bool listens, bool data)
{
	int fd[2], l = -1;
	char c = 0;

	sysctl(A, "keepalive_time", 1);
	make_pair(SOCK_STREAM, fd);
	ASSERT_TRUE(alive(fd));
	enter(B);
	run("tc qdisc add dev vb root netem loss 100%%");
	sysctl(B, "time_wait_ms", 1);
	linger(fd[1], 0);
	close(fd[1]);
	ASSERT_TRUE(UNTIL(inuse(B) == 0));
	if (listens)
		l = listener(B, SOCK_STREAM, PORT, 1);
	enter(B);
	run("tc qdisc del dev vb root");
	set_timeo(fd[0], SO_RCVTIMEO, LONG);
	if (data) {
		ASSERT_EQ(1, send(fd[0], &c, 1, 0));
	} else {
		ASSERT_EQ(0, set_int(fd[0], SOL_SOCKET, SO_KEEPALIVE, 1));
	}
	EXPECT_ERRNO(ECONNRESET, recv(fd[0], &c, 1, 0));
	if (listens)
		close(l);
}

TEST_F(hosts, forgotten)
{
	forgotten(_metadata, false, true);
}

TEST_F(hosts, forgotten_but_for_the_port)
{
	forgotten(_metadata, true, true);
}

TEST_F(hosts, forgotten_while_idle)
{
	forgotten(_metadata, false, false);
}

/* net.esp.retries limits the time without an answer if no option does. */
TEST_F(hosts, retries)
{
	unsigned long before;
	long long start;
	int fd[2];

	make_pair(SOCK_STREAM, fd);
	ASSERT_TRUE(alive(fd));
	before = get_info(fd[0]).stats.timeouts;
	forget_soon(A);
	link_up(B, false);
	start = now_ms();
	ASSERT_EQ(0, write_stream(fd[0], 0, 1000));
	EXPECT_TRUE(events(fd[0], 0, LONG) & POLLERR);
	EXPECT_EQ(ETIMEDOUT, so_error(fd[0]));
	EXPECT_GT(LONG, now_ms() - start);
	EXPECT_EQ(before + 3, get_info(fd[0]).stats.timeouts);
	forget_soon(B);
}

/* The options of SOL_SOCKET that have a meaning here. */
TEST_F(hosts, sol_socket)
{
	int fd[2], v;
	struct linger l;
	socklen_t len = sizeof(l);

	make_pair(SOCK_STREAM, fd);
	EXPECT_EQ(SOCK_STREAM, get_int(fd[0], SOL_SOCKET, SO_TYPE));
	EXPECT_EQ(AF_ESP, get_int(fd[0], SOL_SOCKET, SO_DOMAIN));
	EXPECT_EQ(0, get_int(fd[0], SOL_SOCKET, SO_PROTOCOL));
	EXPECT_EQ(0, get_int(fd[0], SOL_SOCKET, SO_ACCEPTCONN));
	EXPECT_EQ(0, getsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, &len));
	EXPECT_EQ(0, l.l_onoff);
	v = listener(A, SOCK_STREAM, PORT, 1);
	EXPECT_EQ(1, get_int(v, SOL_SOCKET, SO_ACCEPTCONN));
	EXPECT_EQ(1, get_int(fd[0], SOL_SOCKET, SO_RCVLOWAT));
}

/* Send a byte to B; return the NAPI instance of the device by which B's end got it. */
static int napi_of_next(int fd[2])
{
	char c;

	MUST(send(fd[0], "x", 1, 0));
	MUST(recv(fd[1], &c, 1, 0));
	return get_int(fd[1], SOL_SOCKET, SO_INCOMING_NAPI_ID);
}

/*
 * A socket that polls a device needs the NAPI instance by which its frames come: none
 * at first, then one, then another.
 */
TEST_F(hosts, busy_poll)
{
	int fd[2], first, second;
	char c;

	make_pair(SOCK_STREAM, fd);
	ASSERT_EQ(0, set_int(fd[1], SOL_SOCKET, SO_BUSY_POLL, 50));
	EXPECT_EQ(0, napi_of_next(fd));
	/* a veth has an instance if it coalesces and its peer does not segment TCP */
	enter(A);
	run("ethtool -K va tso off >/dev/null");
	enter(B);
	run("ethtool -K vb gro on >/dev/null");
	first = napi_of_next(fd);
	EXPECT_LT(0, first);
	run("ethtool -K vb gro off >/dev/null");
	run("ethtool -K vb gro on >/dev/null");
	second = napi_of_next(fd);
	EXPECT_LT(0, second);
	EXPECT_NE(first, second);
	/* a read that polls finds no data */
	EXPECT_ERRNO(EAGAIN, recv(fd[1], &c, 1, MSG_DONTWAIT));
}

TEST_HARNESS_MAIN
