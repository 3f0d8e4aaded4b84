// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a socket is charged to the memory cgroup of the process that made or accepted it,
 * as with TCP and UDP.
 */
#include <linux/if_tun.h>
#include <net/if_arp.h>
#include "sock-hosts.h"
#include "memcg.h"

#define CARRIER	ROOT "/carrier"
#define MUCH	(512 * 1024)	/* bytes that wait to be read */
#define TIMES	16
#define MEM	"/proc/sys/net/esp/mem"	/* of the first namespace only */

/* Return the memory charged to a group. The kernel adds it up every two seconds. */
static long charged_to(const char *stat)
{
	return MUST(named(stat, "sock"));
}

static long charged(void)
{
	return charged_to(GROUP "/memory.stat");
}

static int first;	/* network namespace that has the limits for all sockets */

static long charged_at_last(void)
{
	usleep(2500 * 1000);
	return charged();
}

/* Return the pages charged for all sockets. */
static long of_all(void)
{
	FILE *f = fopen("/proc/net/protocols", "r");
	char line[256];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "ESP ", 4))
			sscanf(line, "ESP %*s %*s %ld", &n);
	if (f)
		fclose(f);
	return MUST(n);
}

/* Read the limits for all sockets; the caller is in the first namespace afterwards. */
static void read_mem(char *mem, size_t size)
{
	FILE *f;

	MUST(setns(first, CLONE_NEWNET));
	f = fopen(MEM, "re");
	if (!f || !fgets(mem, size, f))
		MUST(-1);
	fclose(f);
}

/* Send @n datagrams of 1000 bytes, few at a time; returns how many of them are queued there. */
static long datagrams(int from, int port, int n)
{
	long took = counter(B, "DgramIn"), lost = counter(B, "DgramMemDrop"), now = 0;
	char buf[1000];
	int i;

	fill(buf, 0, sizeof(buf));
	for (i = 0; i < n; i++) {
		MUST(do_sendto(from, buf, sizeof(buf), 0, at(B, port)));
		if (i % 16 != 15 && i != n - 1)
			continue;
		MUST(UNTIL((now = counter(B, "DgramIn") - took) +
			   counter(B, "DgramMemDrop") - lost == i + 1) ? 0 : -1);
	}
	return now;
}

/* Read all datagrams that wait; returns their number, or -1 if one is not whole. */
static long read_datagrams(int fd)
{
	char buf[1000];
	long n = 0;

	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) == sizeof(buf)) {
		if (!right(buf, 0, sizeof(buf)))
			return -1;
		n++;
	}
	return n;
}

/* Make a connection that waits in the accept queue of @l, with @n bytes to be read. */
static int waits(int l, size_t n)
{
	static char buf[6 * MUCH];
	int fd = esp_socket(A, SOCK_STREAM);
	ssize_t sent;

	MUST(do_connect(fd, at(B, PORT)));
	fill(buf, 0, n);
	sent = MUST(send(fd, buf, n, 0));
	if (sent != (ssize_t)n) {	/* the next call tells why */
		printf("# %zd of %zu bytes were taken\n", sent, n);
		MUST(send(fd, buf, 1, MSG_NOSIGNAL));
		exit(KSFT_FAIL);
	}
	MUST(UNTIL(!queued(fd, SIOCOUTQ)) ? 0 : -1);
	MUST(events(l, POLLIN, LONG) ? 0 : -1);
	return fd;
}

/* Replace the host's device by a tap device. */
static int tap(const struct host *h)
{
	struct ifreq ifr = { .ifr_name = "tap", .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd;

	link_up(h, false);
	fd = MUST(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
	MUST(ioctl(fd, TUNSETIFF, &ifr));
	ifr.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(ifr.ifr_hwaddr.sa_data, h->mac, sizeof(h->mac));
	MUST(ioctl(fd, SIOCSIFHWADDR, &ifr));
	dev_up(h, "tap", true);
	sysctl(h, "dev/tap/enable", 1);
	return fd;
}

/* Forward frames between two tap devices, as a cable does. */
static _Noreturn void carry(const int fd[2])
{
	struct pollfd p[2] = {
		{ .fd = fd[0], .events = POLLIN },
		{ .fd = fd[1], .events = POLLIN },
	};
	static char frame[65536];
	ssize_t n;
	int i;

	for (;;) {
		MUST(poll(p, 2, -1));
		for (i = 0; i < 2; i++)
			while ((n = read(fd[i], frame, sizeof(frame))) > 0)
				MUST(write(fd[!i], frame, n));
	}
}

FIXTURE(memcg) {
};

FIXTURE_SETUP(memcg)
{
	ASSERT_TRUE(make_group());
	first = MUST(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
	make_hosts();
}

FIXTURE_TEARDOWN(memcg)
{
	if (_metadata->exit_code != KSFT_PASS)
		dump_counters();
	EXPECT_TRUE(leave_hosts());
	EXPECT_TRUE(UNTIL(charged() == 0));
	EXPECT_TRUE(remove_group());
}

/* accept() charges the group of its caller for data that came before; later data follow. */
TEST_F(memcg, accepted)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2];

	fd[0] = waits(l, MUCH);
	join_group(true);
	EXPECT_EQ(0, charged_at_last());
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_TRUE(UNTIL(charged() >= MUCH));
	EXPECT_GE(4 * MUCH, charged());

	EXPECT_EQ(0, write_stream(fd[0], MUCH, MUCH));
	EXPECT_TRUE(UNTIL(!queued(fd[0], SIOCOUTQ)));
	EXPECT_TRUE(UNTIL(charged() >= 2 * MUCH));
	EXPECT_EQ(0, read_stream(fd[1], 0, 2 * MUCH));
}

/*
 * accept() does not change the memory charged for all sockets, except for pages that processors
 * count apart.
 */
TEST_F(memcg, of_all_sockets)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2], i;
	long before = of_all();

	join_group(true);
	for (i = 0; i < TIMES; i++) {
		fd[0] = waits(l, MUCH);
		fd[1] = MUST(accept(l, NULL, NULL));
		EXPECT_EQ(0, read_stream(fd[1], 0, MUCH));
		close(fd[0]);
		close(fd[1]);
	}
	EXPECT_GT(TIMES * MUCH / 4096 / 2, labs(of_all() - before));
}

/* accept() works when all sockets are at their limit, because it charges no more for them. */
TEST_F(memcg, bound_of_all)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2];
	char mem[128];

	read_mem(mem, sizeof(mem));
	fd[0] = waits(l, 6 * MUCH);
	join_group(true);
	MUST(setns(first, CLONE_NEWNET));
	write_text(MEM, "800 900 1000");
	fd[1] = accept(l, NULL, NULL);
	write_text(MEM, mem);
	ASSERT_LE(0, fd[1]);
	EXPECT_TRUE(UNTIL(charged() >= 6 * MUCH));
	EXPECT_EQ(0, read_stream(fd[1], 0, 6 * MUCH));
}

/* Datagrams are charged to the group of the process that made their socket. */
TEST_F(memcg, datagram)
{
	int fd[2];

	fd[0] = esp_socket(A, SOCK_DGRAM);
	join_group(true);
	fd[1] = esp_socket(B, SOCK_DGRAM);
	MUST(do_bind(fd[1], any(PORT)));
	MUST(set_int(fd[1], SOL_SOCKET, SO_RCVBUFFORCE, 2 * MUCH));
	EXPECT_EQ(MUCH / 1000, datagrams(fd[0], PORT, MUCH / 1000));
	EXPECT_TRUE(UNTIL(charged() >= MUCH));
	EXPECT_EQ(MUCH / 1000, read_datagrams(fd[1]));
	EXPECT_TRUE(UNTIL(charged() < MUCH / 8));
}

/* net.esp.mem bounds all sockets of datagrams together: less fits than their buffers take. */
TEST_F(memcg, datagrams_of_all)
{
	int from = esp_socket(A, SOCK_DGRAM), fd[3 * TIMES], i;
	long one, all = 0, free;
	char mem[128], few[128];

	for (i = 0; i < 3 * TIMES; i++) {
		fd[i] = esp_socket(B, SOCK_DGRAM);
		MUST(do_bind(fd[i], any(PORT + i)));
	}
	one = datagrams(from, PORT, 300);	/* more than a socket's buffer takes */
	EXPECT_GT(300, one);
	EXPECT_EQ(one, read_datagrams(fd[0]));
	read_mem(mem, sizeof(mem));
	free = of_all();	/* processors keep some of what was given back */
	snprintf(few, sizeof(few), "%ld %ld %ld", free + 200, free + 250, free + 300);
	write_text(MEM, few);
	for (i = 0; i < 3 * TIMES; i++)
		all += datagrams(from, PORT + i, one);
	MUST(setns(first, CLONE_NEWNET));
	write_text(MEM, mem);
	EXPECT_LT(0, all);
	EXPECT_GT(3 * TIMES * one / 2, all);
	for (i = 0; i < 3 * TIMES; i++)
		all -= read_datagrams(fd[i]);
	EXPECT_EQ(0, all);
	EXPECT_EQ(1, datagrams(from, PORT, 1));
}

/* Sockets made and accepted outside of the group charge it nothing after the process has joined. */
TEST_F(memcg, nobodys)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2];

	fd[0] = waits(l, MUCH);
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_EQ(0, charged_at_last());
	join_group(true);
	EXPECT_EQ(0, write_stream(fd[0], MUCH, MUCH));
	EXPECT_EQ(0, read_stream(fd[1], 0, 2 * MUCH));
	EXPECT_EQ(0, charged_at_last());
}

/* A socket of socket() is charged to the process that made it. */
TEST_F(memcg, made)
{
	int l, fd;

	l = listener(B, SOCK_STREAM, PORT, 1);
	join_group(true);
	fd = esp_socket(A, SOCK_STREAM);
	MUST(do_connect(fd, at(B, PORT)));
	link_up(B, false);
	EXPECT_EQ(0, write_stream(fd, 0, MUCH));
	EXPECT_TRUE(UNTIL(charged() >= MUCH));
}

/*
 * A frame that is written to a tap device is received in the context of the writer. The socket
 * that the frame makes must not be charged to that process.
 */
TEST_F(memcg, carried)
{
	const int taps[2] = { tap(A), tap(B) };
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2];
	pid_t pid;

	MUST(mkdir(CARRIER, 0700));
	pid = MUST(fork());
	if (!pid) {
		MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
		write_text(CARRIER "/cgroup.procs", "0");
		carry(taps);
	}
	fd[0] = waits(l, MUCH);
	EXPECT_EQ(0, charged_at_last());
	EXPECT_EQ(0, charged_to(CARRIER "/memory.stat"));

	join_group(true);
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_EQ(0, write_stream(fd[0], MUCH, MUCH));
	EXPECT_TRUE(UNTIL(!queued(fd[0], SIOCOUTQ)));
	EXPECT_TRUE(UNTIL(charged() >= 2 * MUCH));
	EXPECT_EQ(0, charged_to(CARRIER "/memory.stat"));
	EXPECT_EQ(0, read_stream(fd[1], 0, 2 * MUCH));
	EXPECT_TRUE(alive(fd));
	MUST(kill(pid, SIGKILL));
	EXPECT_EQ(-1, reap(pid));
	EXPECT_TRUE(UNTIL(!rmdir(CARRIER)));
}

/* accept() fails while the group is at its limit; the connection waits until there is memory. */
TEST_F(memcg, limit)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2], i;
	char text[32];

	write_text("/proc/self/oom_score_adj", "-1000");
	fd[0] = waits(l, MUCH);
	join_group(true);
	snprintf(text, sizeof(text), "%ld", MUCH / 2L);
	if (!access(GROUP "/memory.swap.max", F_OK))
		write_text(GROUP "/memory.swap.max", "0");
	write_text(GROUP "/memory.max", text);
	/* ENFILE comes from the core, if the group has no memory for the file either */
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-1, accept(l, NULL, NULL));
		EXPECT_TRUE(errno == ENOMEM || errno == ENFILE);
	}
	EXPECT_GT(MUCH / 2, charged_at_last());
	write_text(GROUP "/memory.max", "max");
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_TRUE(UNTIL(charged() >= MUCH));
	EXPECT_EQ(0, read_stream(fd[1], 0, MUCH));
	EXPECT_TRUE(alive(fd));
}

TEST_HARNESS_MAIN
