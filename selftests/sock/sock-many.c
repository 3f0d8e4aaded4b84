// SPDX-License-Identifier: GPL-2.0-only
/*
 * More sockets than there are ports, and 20,000 sockets one after the other: their ports are
 * used again, and nothing is left of them.
 */
#include <dirent.h>
#include <sys/resource.h>
#include "sock-hosts.h"

#define FIRST	32768	/* first port of those for sockets that don't name one */
#define LAST	60999
#define RANGE	(LAST - FIRST + 1)
#define SOCKETS	20000

/* Does no socket refer to the module? Modules that need it have references, too. */
static bool unused(void)
{
	FILE *f = fopen("/sys/module/esp/refcnt", "r");
	DIR *d = opendir("/sys/module/esp/holders");
	long n = -1;
	struct dirent *e;

	if (!f || !d || fscanf(f, "%ld", &n) != 1)
		MUST(-1);
	while ((e = readdir(d)))
		n -= e->d_name[0] != '.';
	closedir(d);
	fclose(f);
	return !n;
}

/*
 * All ports can be taken. Only then does bind() fail; a port that is free again can be taken, by
 * several connections if they have different peers.
 */
TEST_F_TIMEOUT(hosts, ports, 300)
{
	struct rlimit limit = { RANGE + 100, RANGE + 100 };
	static bool given[LAST + 1];
	static int fd[RANGE];
	int i, n, extra, other, second, third, l, l2, port, dgram;

	MUST(setrlimit(RLIMIT_NOFILE, &limit));
	l = listener(B, SOCK_STREAM, PORT, 16);
	for (i = 0; i < RANGE; i++) {
		fd[i] = esp_socket(A, i % 2 ? SOCK_STREAM : SOCK_SEQPACKET);
		ASSERT_EQ(0, do_bind(fd[i], any(0)));
		port = ntohs(sockname(fd[i]).sesp_port);
		ASSERT_TRUE(port >= FIRST && port <= LAST);
		ASSERT_FALSE(given[port]);
		given[port] = true;
	}
	extra = esp_socket(A, SOCK_STREAM);
	EXPECT_ERRNO(EADDRNOTAVAIL, do_connect(extra, at(B, PORT)));
	EXPECT_ERRNO(EADDRINUSE, do_bind(extra, any(0)));
	EXPECT_ERRNO(EADDRINUSE, listen(extra, 1));
	EXPECT_EQ(0, sockname(extra).sesp_port);
	/* datagram sockets, and other hosts, have ports of their own */
	dgram = esp_socket(A, SOCK_DGRAM);
	EXPECT_EQ(0, do_bind(dgram, any(0)));
	other = esp_socket(B, SOCK_STREAM);
	EXPECT_EQ(0, do_bind(other, any(0)));

	i = RANGE / 3;
	port = sockname(fd[i]).sesp_port;
	close(fd[i]);
	ASSERT_EQ(0, do_connect(extra, at(B, PORT)));
	EXPECT_EQ(port, sockname(extra).sesp_port);
	fd[i] = MUST(accept(l, NULL, NULL));
	EXPECT_EQ(0, transfer(extra, fd[i], 10000));

	/* another connection may have the same port if its peer is another one */
	l2 = listener(B, SOCK_STREAM, PORT + 1, 16);
	second = esp_socket(A, SOCK_STREAM);
	ASSERT_EQ(0, do_connect(second, at(B, PORT + 1)));
	EXPECT_EQ(port, sockname(second).sesp_port);
	EXPECT_ERRNO(EADDRNOTAVAIL, do_connect(third = esp_socket(A, SOCK_STREAM), at(B, PORT)));
	EXPECT_EQ(0, sockname(third).sesp_port);
	EXPECT_ERRNO(EADDRINUSE, do_bind(third, any(ntohs(port))));
	n = MUST(accept(l2, NULL, NULL));
	EXPECT_EQ(0, transfer(second, n, 10000));
	EXPECT_EQ(0, transfer(extra, fd[i], 10000));
	/* what a failed connect() has taken is free again */
	EXPECT_ERRNO(ECONNREFUSED, do_connect(third, at(B, PORT + 2)));
	EXPECT_EQ(0, sockname(third).sesp_port);
	close(n);
	close(l2);
	close(second);
	close(third);

	close(extra);
	for (i = 0; i < RANGE; i++)
		close(fd[i]);
	for (i = 0; i < 1000; i++) {
		fd[i] = esp_socket(A, SOCK_STREAM);
		ASSERT_EQ(0, do_bind(fd[i], any(FIRST + i)));
	}
	for (i = 0; i < 1000; i++)
		close(fd[i]);
	close(dgram);
	close(other);
	close(l);
	EXPECT_TRUE(UNTIL(unused()));
}

/* Close sockets in each state: new, bound, listening, connecting, connected with data in flight. */
TEST_F_TIMEOUT(hosts, one_after_the_other, 300)
{
	int l, type, fd[2], i, n = 0;
	char buf[3];

	sysctl(A, "time_wait_ms", 1);
	sysctl(B, "time_wait_ms", 1);
	l = listener(B, SOCK_STREAM, PORT, 16);
	for (i = 0; n < SOCKETS; i++) {
		type = i % 3 == 0 ? SOCK_STREAM : i % 3 == 1 ? SOCK_SEQPACKET : SOCK_DGRAM;
		fd[0] = esp_socket(A, type);
		n++;
		switch (i % 5) {
		case 1:
			ASSERT_EQ(0, do_bind(fd[0], any(0)));
			break;
		case 2:
			ASSERT_EQ(0, do_bind(fd[0], any(PORT)));
			if (type != SOCK_DGRAM)
				ASSERT_EQ(0, listen(fd[0], 1));
			break;
		case 3:
			nonblock(fd[0], true);
			EXPECT_ERRNO(type == SOCK_DGRAM ? 0 : EINPROGRESS,
				     do_connect(fd[0], at(B, PORT + 1)));
			break;
		case 4:
			close(fd[0]);
			connect_through(l, SOCK_STREAM, fd);
			n += 2;
			ASSERT_EQ(3, send(fd[0], "abc", 3, 0));
			if (i % 2)
				ASSERT_EQ(3, recv(fd[1], buf, 3, MSG_WAITALL));
			close(fd[1]);
			break;
		}
		close(fd[0]);
	}
	close(l);
	EXPECT_TRUE(UNTIL(inuse(A) + inuse(B) == 0));
	EXPECT_TRUE(UNTIL(unused()));
}

TEST_HARNESS_MAIN
