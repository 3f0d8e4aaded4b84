// SPDX-License-Identifier: GPL-2.0-only
/*
 * ESP_CRC32C: which connections have a CRC, and that all kinds of data come through with it.
 * net-crc.sh, and test/crc.c of the module, test the detection of errors.
 */
#include <sys/mman.h>
#include <sys/sendfile.h>
#include "sock-hosts.h"
#include "sock-types.h"

#define MEGA	(1024 * 1024)
#define MSS	(1500 - 32 - 8)		/* with the option in the header */

static int wants(const struct host *h, int type, bool crc)
{
	int fd = esp_socket(h, type);

	MUST(set_int(fd, SOL_ESP, ESP_CRC32C, crc));
	MUST(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	return fd;
}

/* Return whether the socket has a CRC; -1 if its option and its esp_info differ. */
static int has(int fd)
{
	int v = get_int(fd, SOL_ESP, ESP_CRC32C);

	return v == !!(get_info(fd).flags & ESP_IF_CRC32C) ? v : -1;
}

/* Make a connection on which @client and @server say which ends set ESP_CRC32C. */
static void crc_pair(int type, bool client, bool server, int fd[2])
{
	int l = wants(B, type, server);

	MUST(do_bind(l, any(PORT)));
	MUST(listen(l, 1));
	fd[0] = wants(A, type, client);
	MUST(do_connect(fd[0], at(B, PORT)));
	fd[1] = MUST(accept(l, NULL, NULL));
	close(l);
	impatient(fd[0]);
	impatient(fd[1]);
}

/* The option can be set before the connection, and never after. */
TEST_F(hosts, option)
{
	int l = listener(B, variant->type, PORT, 1), fd = esp_socket(A, variant->type);

	EXPECT_EQ(0, get_int(fd, SOL_ESP, ESP_CRC32C));
	EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, ESP_CRC32C, 2));
	EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, ESP_CRC32C, -1));
	EXPECT_EQ(0, set_int(fd, SOL_ESP, ESP_CRC32C, 1));
	EXPECT_EQ(1, get_int(fd, SOL_ESP, ESP_CRC32C));
	EXPECT_EQ(0, set_int(fd, SOL_ESP, ESP_CRC32C, 0));
	EXPECT_EQ(0, get_int(fd, SOL_ESP, ESP_CRC32C));
	EXPECT_ERRNO(EISCONN, set_int(l, SOL_ESP, ESP_CRC32C, 1));
	EXPECT_EQ(0, get_int(l, SOL_ESP, ESP_CRC32C));
	ASSERT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_ERRNO(EISCONN, set_int(fd, SOL_ESP, ESP_CRC32C, 1));
	EXPECT_EQ(0, has(fd));
	fd = esp_socket(A, SOCK_DGRAM);
	EXPECT_ERRNO(EOPNOTSUPP, set_int(fd, SOL_ESP, ESP_CRC32C, 1));
	EXPECT_EQ(0, get_int(fd, SOL_ESP, ESP_CRC32C));
}

/* One side's option is enough. */
TEST_F(hosts, wishes)
{
	int i, fd[2];

	for (i = 0; i < 4; i++) {
		crc_pair(variant->type, i & 1, i & 2, fd);
		/* the client knows after the SYN|ACK, the server when accept() returns */
		EXPECT_EQ(!!i, has(fd[0]));
		EXPECT_EQ(!!i, has(fd[1]));
		EXPECT_TRUE(alive(fd));
		EXPECT_EQ(i ? MSS : MSS + 8, get_int(fd[0], SOL_ESP, ESP_MAXSEG));
		EXPECT_EQ(i ? MSS : MSS + 8, get_int(fd[1], SOL_ESP, ESP_MAXSEG));
		EXPECT_EQ(i ? MSS : MSS + 8, get_int(fd[1], SOL_ESP, ESP_MTU));
		close(fd[0]);
		close(fd[1]);
	}
	EXPECT_EQ(0, counter(A, "InCRC") + counter(B, "InCRC"));
}

/* SYNs that cross. */
TEST_F(hosts, crossing)
{
	int fd[4][2], i, wish;

	slow_link();
	for (wish = 0; wish < 4; wish++) {
		for (i = 0; i < 2; i++) {
			fd[wish][i] = wants(&hosts[i], variant->type, wish >> i & 1);
			nonblock(fd[wish][i], true);
			ASSERT_EQ(0, do_bind(fd[wish][i], any(PORT + wish)));
		}
		EXPECT_ERRNO(EINPROGRESS, do_connect(fd[wish][0], at(B, PORT + wish)));
		EXPECT_ERRNO(EINPROGRESS, do_connect(fd[wish][1], at(A, PORT + wish)));
	}
	EXPECT_TRUE(crossed(4));
	for (wish = 0; wish < 4; wish++) {
		for (i = 0; i < 2; i++) {
			EXPECT_EQ(POLLOUT, events(fd[wish][i], POLLOUT, LONG));
			EXPECT_EQ(0, so_error(fd[wish][i]));
			EXPECT_EQ(!!wish, has(fd[wish][i]));
		}
		EXPECT_TRUE(alive(fd[wish]));
	}
	EXPECT_EQ(0, counter(A, "InCRC") + counter(B, "InCRC"));
}

/* After a connection with a CRC, or an attempt, the socket's own option counts for the next one. */
TEST_F(hosts, again)
{
	int fd = wants(A, variant->type, true), l;

	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(1, get_int(fd, SOL_ESP, ESP_CRC32C));
	ASSERT_EQ(0, set_int(fd, SOL_ESP, ESP_CRC32C, 0));
	l = listener(B, variant->type, PORT, 1);
	ASSERT_EQ(0, do_connect(fd, at(B, PORT)));
	EXPECT_EQ(0, has(fd));
	EXPECT_LE(0, accept(l, NULL, NULL));
}

/* Much data, in both directions: full packets, and no GSO packets. */
TEST_F(hosts, much)
{
	int fd[2];

	crc_pair(variant->type, true, false, fd);
	ASSERT_EQ(0, transfer(fd[0], fd[1], 8 * MEGA));
	ASSERT_EQ(0, transfer(fd[1], fd[0], 8 * MEGA));
	EXPECT_EQ(0, counter(A, "OutGsoFrames") + counter(B, "OutGsoFrames"));
	EXPECT_EQ(0, counter(A, "InGsoFrames") + counter(B, "InGsoFrames"));
	EXPECT_EQ(0, counter(A, "InCRC") + counter(B, "InCRC"));
	EXPECT_LE(8UL * MEGA / MSS, get_info(fd[0]).stats.tx_packets);
}

/* Devices that do and do not compute checksums, jumbo frames, and a smaller MTU. */
TEST_F(hosts, devices)
{
	int i, fd[2];

	for (i = 0; i < 2; i++) {
		enter(&hosts[i]);
		run("ip link set %s mtu 9000", hosts[i].dev);
	}
	crc_pair(variant->type, true, true, fd);
	EXPECT_EQ(0, transfer(fd[0], fd[1], MEGA));
	EXPECT_EQ(MSS + 7500, get_int(fd[0], SOL_ESP, ESP_MAXSEG));
	for (i = 0; i < 2; i++) {
		enter(&hosts[i]);
		run("ethtool -K %s tx off sg off >/dev/null", hosts[i].dev);
	}
	EXPECT_EQ(0, transfer(fd[0], fd[1], MEGA));
	EXPECT_TRUE(alive(fd));
	for (i = 0; i < 2; i++) {
		enter(&hosts[i]);
		run("ip link set %s mtu 600", hosts[i].dev);
	}
	EXPECT_EQ(600 - 32 - 8, get_int(fd[0], SOL_ESP, ESP_MAXSEG));
	EXPECT_EQ(0, transfer(fd[0], fd[1], MEGA));
	EXPECT_EQ(0, counter(A, "InCRC") + counter(B, "InCRC"));
	EXPECT_EQ(0, counter(A, "InChecksum") + counter(B, "InChecksum"));
}

/* Pages that do not belong to the socket: sendfile(), MSG_ZEROCOPY. */
TEST_F(hosts, pages)
{
	int fd[2], file = stream_file(MEGA + 33);
	off_t pos = 0;
	size_t sent;
	ssize_t put;
	char *buf;
	pid_t pid;

	if (variant->type != SOCK_STREAM)
		return;	/* records are copied */
	crc_pair(SOCK_STREAM, true, false, fd);
	buf = mmap(NULL, MEGA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, buf);
	fill(buf, MEGA + 33, MEGA);
	ASSERT_EQ(0, set_int(fd[0], SOL_ESP, ESP_ZEROCOPY, 1));
	pid = MUST(fork());
	if (!pid)
		_exit(!!read_stream(fd[1], 0, 2 * MEGA + 33));
	while (pos < MEGA + 33)
		ASSERT_LT(0, sendfile(fd[0], file, &pos, MEGA + 33 - pos));
	for (sent = 0; sent < MEGA; sent += put) {
		put = send(fd[0], buf + sent, MEGA - sent, MSG_ZEROCOPY);
		ASSERT_LT(0, put);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(0, counter(A, "InCRC") + counter(B, "InCRC"));
}

/*
 * A file changes while its pages are on the way: the receiver refuses them, and the
 * retransmitted packet is right. Repeat until the change has come in time.
 */
TEST_F(hosts, pages_change)
{
	char buf[1000], got[sizeof(buf)];
	int fd[2], file, i;
	off_t pos;

	if (variant->type != SOCK_STREAM)
		return;	/* records are copied */
	file = stream_file(sizeof(buf));
	crc_pair(SOCK_STREAM, false, true, fd);
	EXPECT_TRUE(alive(fd));
	sysctl(A, "dev/va/tx_checksum", 1);	/* else the checksum would detect it, too */
	enter(A);
	run("tc qdisc add dev %s root netem delay 200ms", A->dev);
	for (i = 1; i < 50 && !counter(B, "InCRC"); i++) {
		pos = 0;
		ASSERT_EQ((ssize_t)sizeof(buf), sendfile(fd[0], file, &pos, sizeof(buf)));
		memset(buf, i, sizeof(buf));
		ASSERT_EQ((ssize_t)sizeof(buf), pwrite(file, buf, sizeof(buf), 0));
		ASSERT_EQ((ssize_t)sizeof(got), recv(fd[1], got, sizeof(got), MSG_WAITALL));
		/* all bytes are old, or all are new */
		EXPECT_TRUE(!memcmp(got, got + 1, sizeof(got) - 1) || right(got, 0, sizeof(got)));
	}
	EXPECT_LE(1, counter(B, "InCRC"));
	EXPECT_EQ(0, memcmp(got, buf, sizeof(got)));
	EXPECT_LE(1, counter(A, "OutRetrans"));
	EXPECT_TRUE(alive(fd));
}

TEST_HARNESS_MAIN
