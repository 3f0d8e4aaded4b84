/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The common part of the programs vt-*.c with many senders at one port: a rack in
 * simulated time. A test provokes an event and checks that it happened. In the end
 * all data have arrived, and no socket is parked, outstanding or counted.
 *
 *	snd[0] e0 --- q0 -+
 *	snd[1] e0 --- q1 -+-- sw: bridge -- p0 ---------------- e0 rx
 *	...        ...   -+      rate, drop-tail of 86 frames
 *
 * The senders' devices delay frames by half of the round trip, the receiver's
 * device by the other half. Switch and senders are made once, the receiver for
 * each test.
 */
#ifndef VT_RACK_H
#define VT_RACK_H

#include "sock-lib.h"

#define SENDERS		64
#define RTT_US		200
#define MSS		1468
#define FRAME_NS(mbit)	(8 * 1538 * 1000LL / (mbit))	/* on the wire, with gap and preamble */
#define FIRST_BURSTS	64	/* net.esp.first_burst_pool */
#define GRANT_MAX	32
#define TICK_US		50	/* interval at which streams are written and read */
#define SLOW_US		5000	/* the interval where little happens */
#define MS		1000LL
#define SEC		1000000LL
#define ENDLESS		1000000000000LL

static struct host sw, rx, snd[SENDERS];

/*
 * The port and what is counted
 */

/* A line of /proc/net/esp/dev. */
struct port {
	int	peers;
	int	senders;
	int	parked;
	int	open;
	int	budget;
	int	bursts;
	int	mbit;
	char	from[16];	/* what tells @mbit */
};

static inline int open_ports(const struct host *h)
{
	enter(h);
	return MUST(open("/proc/thread-self/net/esp/dev", O_RDONLY | O_CLOEXEC));
}

static inline struct port read_port(int fd)
{
	char buf[1024], *line;
	struct port p = {};
	ssize_t n;

	n = MUST(pread(fd, buf, sizeof(buf) - 1, 0));
	buf[n] = 0;
	line = strstr(buf, "\ne0 ");
	if (line && sscanf(line + 4, "%*d %d %d %d %d %d %d %d %15s", &p.peers, &p.senders,
			   &p.parked, &p.open, &p.budget, &p.bursts, &p.mbit, p.from) != 8)
		MUST(-1);
	return p;
}

static int rx_ports = -1;	/* /proc/net/esp/dev of rx */

static inline struct port port(void)
{
	return read_port(rx_ports);
}

static inline bool quiet(void)
{
	struct port p = port();

	return !p.senders && !p.parked && !p.open;
}

/* The sums of the senders' counters, when the test began and now. */
static struct count {
	char	name[32];
	long	n;
} before[128], after[128];

static inline void add_up(struct count *c)
{
	int i, k;

	memset(c, 0, sizeof(before));
	for (i = 0; i < SENDERS; i++) {
		FILE *f;
		long v;

		enter(&snd[i]);
		f = fopen("/proc/thread-self/net/esp/stat", "r");
		for (k = 0; f && k < 127 && fscanf(f, "%31s %ld", c[k].name, &v) == 2; k++)
			c[k].n += v;
		if (f)
			fclose(f);
	}
}

/* Return the sum of a counter over all senders, since the test began. */
static inline long sent(const char *name)
{
	int i;

	add_up(after);
	for (i = 0; i < 128; i++)
		if (!strcmp(after[i].name, name))
			return after[i].n - before[i].n;
	printf("# not in /proc/net/esp/stat: %s\n", name);
	exit(KSFT_FAIL);
}

/* Return the frames dropped at a port of the switch. */
static inline long drops_at(const char *dev)
{
	char line[256];
	long n = -1;
	FILE *f;

	enter(&sw);
	snprintf(line, sizeof(line), "tc -s qdisc show dev %s root", dev);
	f = popen(line, "r");
	while (f && n < 0 && fgets(line, sizeof(line), f))
		if (strstr(line, "dropped "))
			n = atol(strstr(line, "dropped ") + 8);
	if (f)
		pclose(f);
	return MUST(n);
}

static inline long drops(void)
{
	return drops_at("p0");
}

/*
 * Streams: one process has both ends of all streams
 */

struct stream {
	int		tx, rx;
	long long	want;		/* bytes to be sent so far */
	long long	sent;
	long long	got;
	bool		mute;		/* the test does not write */
	bool		stopped;	/* the test does not read */
	int		tx_err, rx_err;	/* -EPIPE: orderly end */
	long long	mark;		/* time of the last data, or when waiting began */
	long long	gap;		/* longest time without data while data were awaited */
};

#define STREAMS 64
static struct stream st[STREAMS];
static int nst;
static int parked_max;
static int tick_us = TICK_US;

/* Return an offset that gives each stream bytes of its own. */
static inline size_t salt(const struct stream *s)
{
	return (s - st) * 0x30507;
}

static inline void write_some(struct stream *s)
{
	static __u8 buf[CHUNK];

	while (s->sent < s->want) {
		ssize_t n = s->want - s->sent < CHUNK ? s->want - s->sent : CHUNK;
		ssize_t put;

		fill(buf, salt(s) + s->sent, n);
		put = send(s->tx, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (put < 0) {
			if (errno != EAGAIN)
				s->tx_err = -errno;
			return;
		}
		if (s->got == s->sent)
			s->mark = now_us();
		s->sent += put;
	}
}

static inline void read_some(struct stream *s)
{
	static __u8 buf[CHUNK];
	long long now = now_us();
	ssize_t n;

	while ((n = recv(s->rx, buf, CHUNK, MSG_DONTWAIT)) > 0) {
		if (!right(buf, salt(s) + s->got, n)) {
			s->rx_err = -EBADMSG;
			return;
		}
		s->got += n;
		if (now - s->mark > s->gap)
			s->gap = now - s->mark;
		s->mark = now;
	}
	if (!n)
		s->rx_err = -EPIPE;
	else if (errno != EAGAIN)
		s->rx_err = -errno;
}

/* Write and read as much as is possible now or within a tick. */
static inline void step(void)
{
	struct timespec tick = { 0, tick_us * 1000 };
	static struct pollfd p[2 * STREAMS];
	struct port now;
	int i;

	for (i = 0; i < nst; i++) {
		struct stream *s = &st[i];

		p[2 * i].fd = s->sent < s->want && !s->mute && !s->tx_err ? s->tx : -1;
		p[2 * i].events = POLLOUT;
		p[2 * i + 1].fd = s->stopped || s->rx_err ? -1 : s->rx;
		p[2 * i + 1].events = POLLIN;
	}
	MUST(ppoll(p, 2 * nst, &tick, NULL));
	for (i = 0; i < nst; i++) {
		if (p[2 * i].revents)
			write_some(&st[i]);
		if (p[2 * i + 1].revents)
			read_some(&st[i]);
	}
	now = port();
	if (now.parked > parked_max)
		parked_max = now.parked;
	nap_us(tick_us / 2);
}

/* Go on until @cond holds, @us at most; true if it does. */
#define PUMP(cond, us) ({						\
	long long end_ = now_us() + (us);				\
	bool ok_;							\
									\
	while (!(ok_ = (cond)) && now_us() < end_)			\
		step();							\
	ok_;								\
})

/* Have all data been read? */
static inline bool all_in(void)
{
	int i;

	for (i = 0; i < nst; i++)
		if (st[i].got != st[i].want)
			return false;
	return true;
}

static inline bool no_errors(void)
{
	int i;

	for (i = 0; i < nst; i++) {
		if (!st[i].tx_err && !st[i].rx_err)
			continue;
		printf("# stream %d: tx %s, rx %s\n", i, strerror(-st[i].tx_err),
		       strerror(-st[i].rx_err));
		return false;
	}
	return true;
}

/* Measure gaps from now on. */
static inline void reset_gaps(void)
{
	int i;

	for (i = 0; i < nst; i++) {
		st[i].gap = 0;
		st[i].mark = now_us();
	}
}

/* Return the longest time that a stream from @first on waited for data. */
static inline long long longest_gap(int first)
{
	long long gap = 0, now = now_us();
	int i;

	for (i = first; i < nst; i++) {
		if (st[i].gap > gap)
			gap = st[i].gap;
		if (st[i].got < st[i].sent && now - st[i].mark > gap)
			gap = now - st[i].mark;
	}
	return gap;
}

/* Send no more data than have been sent. */
static inline void enough(void)
{
	int i;

	for (i = 0; i < nst; i++)
		st[i].want = st[i].sent;
}

static inline long long received(int first)
{
	long long n = 0;
	int i;

	for (i = first; i < nst; i++)
		n += st[i].got;
	return n;
}

/* Return the bytes that a port sends in this time. */
static inline double capacity(int mbit, long long us)
{
	return us * 1000.0 / FRAME_NS(mbit) * MSS;
}

static inline void connect_stream(struct stream *s, const struct host *from,
				  const struct host *to, int l)
{
	memset(s, 0, sizeof(*s));
	s->tx = esp_socket(from, SOCK_STREAM);
	MUST(set_int(s->tx, SOL_SOCKET, SO_SNDBUF, 131072));
	MUST(do_connect(s->tx, at(to, PORT)));
	s->rx = MUST(accept4(l, NULL, NULL, SOCK_CLOEXEC));
}

/* Make a listener at @to, and a connection from each of @from. */
static inline void connect_streams(const struct host *from, int n, const struct host *to)
{
	int l = listener(to, SOCK_STREAM, PORT, SENDERS), i;

	for (i = 0; i < n; i++)
		connect_stream(&st[nst++], &from[i], to, l);
	close(l);
}

static inline void close_streams(void)
{
	int i;

	for (i = 0; i < nst; i++) {
		close(st[i].tx);
		close(st[i].rx);
	}
}

/* Let these streams always have data to send; return when they have begun. */
static inline void keep_busy(int from, int to)
{
	for (; from < to; from++)
		st[from].want = ENDLESS;
	PUMP(false, 10 * MS);
}

/* Has each stream received more than @had? */
static inline bool all_moved(const long long *had)
{
	int i;

	for (i = 0; i < nst; i++)
		if (st[i].got == had[i])
			return false;
	return true;
}

static inline bool flag(int fd, int flag)
{
	return get_info(fd).flags & flag;
}

static inline int tokens(int fd)
{
	return get_info(fd).open;
}

/*
 * The rack
 */

/* Switch IPv6 off, so that the cables carry ESP only. */
static inline void no_ipv6(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY);

	if (fd < 0)
		return;
	MUST(write(fd, "1", 1));
	close(fd);
}

static inline void new_host(struct host *h, const char *dev, int last)
{
	make_host(h, dev, last);
	h->ifindex = 10;
	no_ipv6();
}

/* Delay frames of the entered host. The switch's buffer counts frames, so no GSO packets. */
static inline void long_cable(void)
{
	run("ip link set e0 gso_max_segs 1");
	run("tc qdisc add dev e0 root netem limit 10000 delay %dus", RTT_US / 2);
}

static inline void build_rack(void)
{
	char name[] = "/tmp/rack.XXXXXX";
	int i, pid = getpid();
	FILE *f;

	signal(SIGPIPE, SIG_IGN);
	new_host(&sw, "br0", 0);
	f = fdopen(MUST(mkstemp(name)), "w");
	fprintf(f, "link add br0 type bridge\nlink set br0 up\n");
	for (i = 0; i < SENDERS; i++) {
		new_host(&snd[i], "e0", 1 + i);
		fprintf(f, "link add q%d index %d type veth peer name e0 index 10", i, 100 + i);
		fprintf(f, " address 02:00:00:00:00:%02x netns /proc/%d/fd/%d\n", 1 + i, pid,
			snd[i].ns);
		fprintf(f, "link set q%d master br0 up\n", i);
	}
	fclose(f);
	enter(&sw);
	run("ip -batch %s && rm %s", name, name);
	for (i = 0; i < SENDERS; i++) {
		enable(&snd[i]);
		link_up(&snd[i], true);
		long_cable();
	}
	for (i = 0; i < SENDERS; i++)
		MUST(UNTIL(running(&snd[i])) ? 0 : -1);
	MUST(prctl(PR_SET_TIMERSLACK, 1));
}

/* Connect or cut the cable of a sender. */
static inline void set_cable(int sender, bool up)
{
	char name[IFNAMSIZ];

	snprintf(name, sizeof(name), "q%d", sender);
	dev_up(&sw, name, up);
}

/* Limit the rate from the switch to a host, with a switch's buffer. */
static inline void limit_port(const char *dev, int mbit)
{
	enter(&sw);
	run("tc qdisc replace dev %s root handle 1: tbf rate %dmbit overhead 24 %s", dev, mbit,
	    "burst 1600 limit 131072");
	run("tc qdisc replace dev %s parent 1:1 handle 2: pfifo limit 86", dev);
}

static inline void add_receiver(void)
{
	new_host(&rx, "e0", 0xff);
	enter(&sw);
	if (if_nametoindex("p0"))	/* left by a test that failed badly */
		run("ip link del p0");
	run("ip link add p0 index 200 type veth peer name e0 index 10 %s netns /proc/%d/fd/%d",
	    "address 02:00:00:00:00:ff", getpid(), rx.ns);
	run("ip link set p0 master br0 up");
	enable(&rx);
	link_up(&rx, true);
	MUST(UNTIL(running(&rx)) ? 0 : -1);
	long_cable();
	rx_ports = open_ports(&rx);
}

FIXTURE(rack) {
	int unused;
};

FIXTURE_SETUP(rack)
{
	add_receiver();
	limit_port("p0", 1000);
	add_up(before);
}

static inline void dump(void)
{
	struct port p = port();
	int i;

	printf("# port: peers %d senders %d parked %d open %d budget %d bursts %d\n",
	       p.peers, p.senders, p.parked, p.open, p.budget, p.bursts);
	for (i = 0; i < nst; i++)
		if (st[i].got != st[i].want)
			printf("# stream %d: want %lld sent %lld got %lld\n", i, st[i].want,
			       st[i].sent, st[i].got);
	dump_host(&rx, "rx");
	printf("# senders:");
	add_up(after);
	for (i = 0; i < 128; i++)
		if (after[i].n != before[i].n)
			printf(" %s %ld", after[i].name, after[i].n - before[i].n);
	printf("\n");
}

static inline long sockets(void)
{
	long n = inuse(&rx);
	int i;

	for (i = 0; i < SENDERS; i++)
		n += inuse(&snd[i]);
	return n;
}

/* Whatever a test does, nothing may be left. */
FIXTURE_TEARDOWN(rack)
{
	int i;

	close_streams();
	/* time_wait_ms; or retries, fin_timeout_ms, if only one end still has a connection */
	for (i = 0; sockets() && i < 250; i++)
		nap_us(i < 50 ? 20 * MS : 500 * MS);
	EXPECT_LT(i, 250);
	EXPECT_TRUE(quiet());
	if (_metadata->exit_code != KSFT_PASS)
		dump();
	enter(&sw);
	if (if_nametoindex("p0"))
		run("ip link del p0");
}

/* Expect that all data arrive within @us, intact, and that the queue is empty then. */
#define EXPECT_ALL_WELL(us) do {					\
	EXPECT_TRUE(PUMP(all_in(), us));				\
	EXPECT_TRUE(no_errors());					\
	EXPECT_TRUE(PUMP(quiet(), 100 * MS));				\
} while (0)

#define EXPECT_NO_REPAIR() do {						\
	EXPECT_EQ(0, sent("OutRetrans"));				\
	EXPECT_EQ(0, sent("Timeouts"));					\
	EXPECT_EQ(0, counter(&rx, "Expiries"));				\
	EXPECT_EQ(0, drops());						\
} while (0)

static inline int rack_main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-l") || !strcmp(argv[i], "-h"))
			return test_harness_run(argc, argv);
	build_rack();
	return test_harness_run(argc, argv);
}

#endif
