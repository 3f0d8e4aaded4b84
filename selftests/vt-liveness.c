// SPDX-License-Identifier: GPL-2.0-only
/*
 * What must hold whatever happens: liveness, fairness, bounds and exactness of
 * the ACK queue (rules 10 - 22), with many senders at one port and in simulated
 * time. Each test provokes one thing, makes sure that it happened, and in the
 * end all data are there, nothing is parked, open or counted.
 *
 *	snd[0] e0 --- q0 -+
 *	snd[1] e0 --- q1 -+-- sw: bridge -- p0 ---------------- e0 rx
 *	...        ...   -+      rate, drop-tail of 86 frames
 *
 * Half of the round trip is spent on the senders' way out, half on the
 * receiver's. Switch and senders are made once, the receiver for each test.
 */
#include <linux/sock_diag.h>
#include <net/ethernet.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <linux/esp_wire.h>
#include "checksum.h"
#include "sock-lib.h"

#define SENDERS		64
#define RTT_US		200
#define MSS		1468
#define FRAME_NS(mbit)	(8 * 1538 * 1000LL / (mbit))	/* on the wire, with gap and preamble */
#define FIRST_BURSTS	64	/* net.esp.first_burst_pool */
#define GRANT_MAX	32
#define TICK_US		50	/* how often the streams are looked after */
#define SLOW_US		5000	/* likewise, where little happens */
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
};

static int open_ports(const struct host *h)
{
	enter(h);
	return MUST(open("/proc/thread-self/net/esp/dev", O_RDONLY | O_CLOEXEC));
}

static struct port read_port(int fd)
{
	char buf[1024], *line;
	struct port p = {};
	ssize_t n;

	n = MUST(pread(fd, buf, sizeof(buf) - 1, 0));
	buf[n] = 0;
	line = strstr(buf, "\ne0 ");
	if (line && sscanf(line + 4, "%*d %d %d %d %d %d %d", &p.peers, &p.senders, &p.parked,
			   &p.open, &p.budget, &p.bursts) != 6)
		MUST(-1);
	return p;
}

static int rx_ports = -1;	/* file of rx */

static struct port port(void)
{
	return read_port(rx_ports);
}

static bool quiet(void)
{
	struct port p = port();

	return !p.senders && !p.parked && !p.open;
}

/* The senders' counters, all added up, when the test began. */
static struct count {
	char	name[32];
	long	n;
} before[128], after[128];

static void add_up(struct count *c)
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

/* Of all senders, since the test began. */
static long sent(const char *name)
{
	int i;

	add_up(after);
	for (i = 0; i < 128; i++)
		if (!strcmp(after[i].name, name))
			return after[i].n - before[i].n;
	printf("# not in /proc/net/esp/stat: %s\n", name);
	exit(KSFT_FAIL);
}

/* Frames dropped at a port of the switch. */
static long drops_at(const char *dev)
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

static long drops(void)
{
	return drops_at("p0");
}

/*
 * Streams: one process has both ends of all of them
 */

struct stream {
	int		tx, rx;
	long long	want;		/* bytes to be sent so far */
	long long	sent;
	long long	got;
	bool		mute;		/* nothing is written */
	bool		stopped;	/* nothing is read */
	int		tx_err, rx_err;	/* -EPIPE: orderly end */
	long long	mark;		/* when data came last, or began to be awaited */
	long long	gap;		/* longest time without any, while some were awaited */
};

#define STREAMS 64
static struct stream st[STREAMS];
static int nst;
static int parked_max;
static int tick_us = TICK_US;

/* Each stream has bytes of its own. */
static size_t salt(const struct stream *s)
{
	return (s - st) * 0x30507;
}

static void write_some(struct stream *s)
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

static void read_some(struct stream *s)
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

/* Write and read whatever is possible now or within a tick. */
static void step(void)
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

/* Everything that was to be sent has been read. */
static bool all_in(void)
{
	int i;

	for (i = 0; i < nst; i++)
		if (st[i].got != st[i].want)
			return false;
	return true;
}

static bool no_errors(void)
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

/* From now on. */
static void reset_gaps(void)
{
	int i;

	for (i = 0; i < nst; i++) {
		st[i].gap = 0;
		st[i].mark = now_us();
	}
}

/* The longest time that a stream from @first on went without data it waited for. */
static long long longest_gap(int first)
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

/* No more is to be sent than has been. */
static void enough(void)
{
	int i;

	for (i = 0; i < nst; i++)
		st[i].want = st[i].sent;
}

static long long received(int first)
{
	long long n = 0;
	int i;

	for (i = first; i < nst; i++)
		n += st[i].got;
	return n;
}

/* Bytes that a port lets through in this time. */
static double capacity(int mbit, long long us)
{
	return us * 1000.0 / FRAME_NS(mbit) * MSS;
}

static void connect_stream(struct stream *s, const struct host *from, const struct host *to, int l)
{
	memset(s, 0, sizeof(*s));
	s->tx = esp_socket(from, SOCK_STREAM);
	MUST(set_int(s->tx, SOL_SOCKET, SO_SNDBUF, 131072));
	MUST(do_connect(s->tx, at(to, PORT)));
	s->rx = MUST(accept4(l, NULL, NULL, SOCK_CLOEXEC));
}

/* A listener at @to, connections from each of @from in turn. */
static void connect_streams(const struct host *from, int n, const struct host *to)
{
	int l = listener(to, SOCK_STREAM, PORT, SENDERS), i;

	for (i = 0; i < n; i++)
		connect_stream(&st[nst++], &from[i], to, l);
	close(l);
}

static void close_streams(void)
{
	int i;

	for (i = 0; i < nst; i++) {
		close(st[i].tx);
		close(st[i].rx);
	}
}

static bool flag(int fd, int flag)
{
	return get_info(fd).flags & flag;
}

static int tokens(int fd)
{
	return get_info(fd).open;
}

/*
 * The rack
 */

/* Nothing but ESP on the cables. */
static void no_ipv6(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY);

	if (fd < 0)
		return;
	MUST(write(fd, "1", 1));
	close(fd);
}

static void new_host(struct host *h, const char *dev, int last)
{
	make_host(h, dev, last);
	h->ifindex = 10;
	no_ipv6();
}

static void build_rack(void)
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
		link_up(&snd[i], true);
		run("tc qdisc add dev e0 root netem limit 10000 delay %dus", RTT_US / 2);
	}
	for (i = 0; i < SENDERS; i++)
		MUST(UNTIL(running(&snd[i])) ? 0 : -1);
	MUST(prctl(PR_SET_TIMERSLACK, 1));
}

/* The way from the switch to a host is slow, with a switch's buffer. */
static void limit_port(const char *dev, int mbit)
{
	enter(&sw);
	run("tc qdisc replace dev %s root handle 1: tbf rate %dmbit overhead 24 %s", dev, mbit,
	    "burst 1600 limit 131072");
	run("tc qdisc replace dev %s parent 1:1 handle 2: pfifo limit 86", dev);
}

static void add_receiver(void)
{
	new_host(&rx, "e0", 0xff);
	enter(&sw);
	if (if_nametoindex("p0"))	/* of a test that failed badly */
		run("ip link del p0");
	run("ip link add p0 index 200 type veth peer name e0 index 10 %s netns /proc/%d/fd/%d",
	    "address 02:00:00:00:00:ff", getpid(), rx.ns);
	run("ip link set p0 master br0 up");
	link_up(&rx, true);
	MUST(UNTIL(running(&rx)) ? 0 : -1);
	run("tc qdisc add dev e0 root netem limit 10000 delay %dus", RTT_US / 2);
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

static void dump(void)
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

static long sockets(void)
{
	long n = inuse(&rx);
	int i;

	for (i = 0; i < SENDERS; i++)
		n += inuse(&snd[i]);
	return n;
}

/* Whatever a test does, this is left: nothing. */
FIXTURE_TEARDOWN(rack)
{
	int i;

	close_streams();
	/* time_wait_ms; if only one end knows of a connection: retries, fin_timeout_ms */
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

/* All is in, whole, and the queue is empty. */
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

/*
 * Rules 11, 16: with the end of its transmission (TXF) a sender leaves the
 * queue, and the others' turn comes: its place is no hole.
 */
TEST_F(rack, txf_of_parked)
{
	long long end;
	int i, n = 0;
	long left;

	connect_streams(snd, 8, &rx);
	for (i = 0; i < 4; i++)
		st[i].want = ENDLESS;
	for (end = now_us() + 60 * MS; now_us() < end; step())
		for (i = 4; i < 8; i++)
			if (st[i].got == st[i].want)
				st[i].want += (20 + n++ * 7 % 60) * MSS - i;
	enough();
	EXPECT_ALL_WELL(SEC);
	left = counter(&rx, "AckParked") - counter(&rx, "AckReleased");
	printf("# %d transmissions, %ld ended while parked, nobody waited longer than %lld us\n",
	       n, left, longest_gap(0));
	EXPECT_GE(n, 20);
	EXPECT_GE(left, 5);
	/* everybody had a grant of 32 before it was one's turn again */
	EXPECT_LE(longest_gap(0), 8 * GRANT_MAX * FRAME_NS(1000) / 1000 + 2 * RTT_US);
	EXPECT_NO_REPAIR();
}

/*
 * Rules 11, 16: the process of a sender whose permission is parked is killed:
 * its socket sends what it took, or an RST, and leaves.
 */
static void killed(struct __test_metadata *_metadata, bool reset)
{
	int l = listener(&rx, SOCK_STREAM, PORT + 1, 5), i;
	pid_t child = MUST(fork());
	long long others;

	if (!child) {
		int fd = esp_socket(&snd[4], SOCK_STREAM);

		struct linger l = { reset, 0 };

		MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
		MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
		MUST(do_connect(fd, at(&rx, PORT + 1)));
		/* the bytes of stream 4 */
		write_stream(fd, salt(&st[4]), ENDLESS);
		_exit(1);
	}
	st[4].rx = MUST(accept4(l, NULL, NULL, SOCK_CLOEXEC));
	close(l);
	connect_streams(snd, 4, &rx);
	nst = 5;
	st[4].tx = -1;
	st[4].mute = true;
	for (i = 0; i < 4; i++)
		st[i].want = ENDLESS;
	PUMP(false, 10 * MS);
	EXPECT_TRUE(PUMP(flag(st[4].rx, ESP_IF_PARKED), 10 * MS));
	EXPECT_EQ(5, port().senders);
	MUST(kill(child, SIGKILL));
	EXPECT_TRUE(flag(st[4].rx, ESP_IF_PARKED));
	EXPECT_EQ(-1, reap(child));
	reset_gaps();
	/* it had 4 MiB in its buffer */
	EXPECT_TRUE(PUMP(st[4].rx_err, reset ? 2 * MS : 500 * MS));
	EXPECT_EQ(reset ? -ECONNRESET : -EPIPE, st[4].rx_err);
	EXPECT_GE(st[4].got, 100000);
	EXPECT_EQ(4, port().senders);
	others = received(0);
	PUMP(false, 10 * MS);
	printf("# after that the others had %.1f %% of the link\n",
	       100 * (received(0) - others) / capacity(1000, 10 * MS));
	EXPECT_GE(received(0) - others, 0.95 * capacity(1000, 10 * MS));
	st[4].want = st[4].got;
	EXPECT_LE(longest_gap(0), 5 * GRANT_MAX * FRAME_NS(1000) / 1000 + 2 * RTT_US);
	st[4].rx_err = 0;
	st[4].stopped = true;
	enough();
	st[4].want = st[4].got;
	EXPECT_ALL_WELL(SEC);
	EXPECT_NO_REPAIR();
}

TEST_F(rack, parked_sender_killed)
{
	killed(_metadata, false);
}

TEST_F(rack, parked_sender_reset)
{
	killed(_metadata, true);
}

static void set_cable(int sender, bool up)
{
	char name[IFNAMSIZ];

	snprintf(name, sizeof(name), "q%d", sender);
	dev_up(&sw, name, up);
}

/*
 * Rule 17: a sender's cable is cut: the tokens of what it may send come back
 * when they expire, it is given up after net.esp.expiries, and the others go
 * on. What it sends later is taken.
 */
static void cut(struct __test_metadata *_metadata, bool parked)
{
	long long start;
	long long others;
	int i;

	connect_streams(snd, 4, &rx);
	for (i = 0; i < 4; i++)
		st[i].want = ENDLESS;
	PUMP(false, 10 * MS);
	EXPECT_TRUE(PUMP(flag(st[0].rx, ESP_IF_PARKED) == parked &&
			 (parked || tokens(st[0].rx) > 0), 10 * MS));
	set_cable(0, false);
	start = now_us();
	others = received(1);
	reset_gaps();
	EXPECT_TRUE(PUMP(counter(&rx, "Expiries") > 0, 100 * MS));
	printf("# first expiry after %lld us, others waited for %lld us\n", now_us() - start,
	       longest_gap(1));
	EXPECT_TRUE(PUMP(counter(&rx, "ExpiryAbandoned") == 1, SEC));
	printf("# given up after %lld us\n", now_us() - start);
	EXPECT_EQ(6, counter(&rx, "Expiries"));
	EXPECT_EQ(3, port().senders);
	EXPECT_FALSE(flag(st[0].rx, ESP_IF_PARKED));
	EXPECT_EQ(0, tokens(st[0].rx));
	PUMP(false, start + 100 * MS - now_us());
	others = received(1) - others;
	printf("# others: %.1f %% of the link, waited for %lld us\n",
	       100 * others / capacity(1000, now_us() - start), longest_gap(1));
	EXPECT_GE(others, 0.95 * capacity(1000, now_us() - start));
	/* a round of grants, or the RRQ timer's floor and that */
	EXPECT_LE(longest_gap(1), 1000 + 4 * GRANT_MAX * FRAME_NS(1000) / 1000 + 2 * RTT_US);
	set_cable(0, true);
	start = now_us();
	others = st[0].got;
	/* the sender's timer has backed off to rto_max_ms at most */
	EXPECT_TRUE(PUMP(st[0].got > others, SEC));
	printf("# goes on after %lld us\n", now_us() - start);
	enough();
	EXPECT_ALL_WELL(2 * SEC);
}

TEST_F(rack, cable_cut_while_parked)
{
	cut(_metadata, true);
}

TEST_F(rack, cable_cut_while_granted)
{
	cut(_metadata, false);
}

/*
 * Liveness, rule 17: all that may be open was granted to a sender whose cable
 * is cut. Another one comes and is parked: its turn comes when the RRQ timer
 * says so, each time.
 */
TEST_F(rack, cable_cut_with_all_permission)
{
	sysctl(&rx, "q_max", 8);
	connect_streams(snd, 2, &rx);
	st[0].want = ENDLESS;
	PUMP(false, 10 * MS);
	EXPECT_TRUE(PUMP(port().open >= port().budget && tokens(st[0].rx) == port().open,
			 10 * MS));
	set_cable(0, false);
	nap_us(RTT_US);		/* what was under way arrives */
	EXPECT_GE(tokens(st[0].rx), 8);
	st[1].want = ENDLESS;
	EXPECT_TRUE(PUMP(flag(st[1].rx, ESP_IF_PARKED), MS));
	EXPECT_TRUE(PUMP(counter(&rx, "ExpiryAbandoned") == 1, SEC));
	printf("# the other waited for %lld us\n", longest_gap(1));
	/* the timer's floor, and what others' packets may take */
	EXPECT_LE(longest_gap(1), 1000 + 3 * RTT_US + GRANT_MAX * FRAME_NS(1000) / 1000);
	EXPECT_EQ(1, port().senders);
	set_cable(0, true);
	PUMP(false, 10 * MS);
	enough();
	EXPECT_ALL_WELL(2 * SEC);
}

/*
 * Rule 20, liveness: who doesn't read gives no permission, takes no place in
 * the queue, and goes on as soon as it reads.
 */
TEST_F(rack, reader_stops)
{
	long long start, probes;
	long long others, had;
	int i;

	connect_streams(snd, 4, &rx);
	MUST(set_int(st[0].rx, SOL_SOCKET, SO_RCVBUF, 131072));
	for (i = 0; i < 4; i++)
		st[i].want = ENDLESS;
	PUMP(false, 10 * MS);
	st[0].stopped = true;
	EXPECT_TRUE(PUMP(flag(st[0].rx, ESP_IF_RCV_MEM_PRESSURE) &&
			 flag(st[0].tx, ESP_IF_HELD), 50 * MS));
	EXPECT_TRUE(PUMP(!tokens(st[0].rx), 10 * MS));
	start = now_us();
	others = received(1);
	had = queued(st[0].rx, SIOCINQ);
	reset_gaps();
	PUMP(false, 50 * MS);
	others = received(1) - others;
	probes = sent("Probes");
	printf("# others: %.1f %% of the link, waited for %lld us; %lld probes\n",
	       100 * others / capacity(1000, now_us() - start), longest_gap(1), probes);
	EXPECT_GE(others, 0.95 * capacity(1000, now_us() - start));
	EXPECT_LE(longest_gap(1), 3 * GRANT_MAX * FRAME_NS(1000) / 1000 + 2 * RTT_US);
	EXPECT_GE(probes, 1);
	EXPECT_EQ(had, queued(st[0].rx, SIOCINQ));
	EXPECT_GE(counter(&rx, "MemPressure"), 1);

	st[0].stopped = false;
	had += st[0].got;
	start = now_us();
	EXPECT_TRUE(PUMP(st[0].got > had, 100 * MS));
	printf("# goes on after %lld us\n", now_us() - start);
	/* permission in its turn, and a round trip */
	EXPECT_LE(now_us() - start, 4 * GRANT_MAX * FRAME_NS(1000) / 1000 + 2 * RTT_US);
	enough();
	EXPECT_ALL_WELL(SEC);
	EXPECT_EQ(0, counter(&rx, "InMemDrop"));
	EXPECT_NO_REPAIR();
}

/*
 * Connections: the receiver's device leaves while many are parked. Both ends
 * learn of it, and nothing is left.
 */
TEST_F_TIMEOUT(rack, device_leaves, 120)
{
	long long start;
	int i;

	connect_streams(snd, 16, &rx);
	for (i = 0; i < 16; i++)
		st[i].want = ENDLESS;
	PUMP(false, 10 * MS);
	EXPECT_TRUE(PUMP(port().parked >= 3, 10 * MS));
	enter(&sw);
	run("ip link del p0");
	for (i = 0; i < 16; i++) {
		char c;

		/* what is queued is read first */
		PUMP(st[i].rx_err, MS);
		EXPECT_EQ(-ENETDOWN, st[i].rx_err);
		EXPECT_EQ(0, recv(st[i].rx, &c, 1, MSG_DONTWAIT));
	}
	EXPECT_EQ(0, inuse(&rx));
	EXPECT_EQ(16, counter(&rx, "AbortOnDevice"));
	start = now_us();
	tick_us = SLOW_US;
	for (i = 0; i < 16; i++) {
		EXPECT_TRUE(PUMP(st[i].tx_err, 60 * SEC));
		EXPECT_EQ(-ETIMEDOUT, st[i].tx_err);
	}
	printf("# the senders gave up after %lld ms\n", (now_us() - start) / 1000);
	EXPECT_LE(now_us() - start, 40 * SEC);
}

/* Is one of these streams parked, or does it have tokens? */
static bool some_of(int from, int to, bool parked)
{
	for (; from < to; from++)
		if (parked ? flag(st[from].rx, ESP_IF_PARKED) : tokens(st[from].rx) > 0)
			return true;
	return false;
}

/*
 * Rules 11, 16: the receiver's application closes sockets whose senders are
 * parked or on the way. The others go on; what those were granted comes back.
 */
TEST_F(rack, receiver_closes)
{
	long long start, others;
	int i, parked = 0, granted = 0;

	connect_streams(snd, 8, &rx);
	for (i = 0; i < 8; i++)
		st[i].want = ENDLESS;
	PUMP(false, 10 * MS);
	/* at a moment when one of the four is parked, and another has permission */
	EXPECT_TRUE(PUMP(some_of(4, 8, true) && some_of(4, 8, false), 10 * MS));
	for (i = 4; i < 8; i++) {
		parked += flag(st[i].rx, ESP_IF_PARKED);
		granted += tokens(st[i].rx) > 0;
		close(st[i].rx);
		st[i].rx = -1;
	}
	EXPECT_GE(parked, 1);
	EXPECT_GE(granted, 1);
	EXPECT_TRUE(PUMP(port().senders == 4, MS));
	start = now_us();
	nst = 4;
	others = received(0);
	reset_gaps();
	PUMP(false, 10 * MS);
	printf("# %d parked, %d granted closed; others: %.1f %% of the link, waited for %lld us\n",
	       parked, granted, 100 * (received(0) - others) / capacity(1000, now_us() - start),
	       longest_gap(0));
	EXPECT_GE(received(0) - others, 0.9 * capacity(1000, now_us() - start));
	EXPECT_LE(longest_gap(0), 8 * GRANT_MAX * FRAME_NS(1000) / 1000 + 2 * RTT_US);
	enough();
	EXPECT_ALL_WELL(SEC);
	nst = 8;
	for (i = 4; i < 8; i++) {
		/* ECONNRESET, or EPIPE where a FIN came first */
		write_some(&st[i]);
		EXPECT_LT(st[i].tx_err, 0);
	}
}

/* Rule 16: the same, where that was all that may be open. */
static void closed(struct __test_metadata *_metadata, bool cut_off)
{
	struct linger at_once = { 1, 0 };

	sysctl(&rx, "q_max", 8);
	connect_streams(snd, 2, &rx);
	st[0].want = ENDLESS;
	PUMP(false, 10 * MS);
	EXPECT_TRUE(PUMP(port().open >= port().budget, 10 * MS));
	if (cut_off) {
		forget_soon(&snd[0]);	/* it misses the RST, and there is no other */
		set_cable(0, false);
		nap_us(RTT_US);
	}
	MUST(setsockopt(st[0].rx, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	close(st[0].rx);
	EXPECT_GE(port().open, 8);
	st[0].rx = -1;
	st[1].want = 100 * MSS;
	EXPECT_TRUE(PUMP(st[1].got == st[1].want, SEC));
	printf("# the other waited for %lld us\n", longest_gap(1));
	/* the RRQ timer, as if nobody had closed */
	EXPECT_LE(longest_gap(1), 1000 + 3 * RTT_US + GRANT_MAX * FRAME_NS(1000) / 1000);
	set_cable(0, true);
	EXPECT_TRUE(PUMP(st[0].tx_err, SEC));
	sysctl(&snd[0], "retries", 60);
	sysctl(&snd[0], "rto_max_ms", 500);
	close(st[0].tx);
	st[0] = (struct stream){ .tx = -1, .rx = -1 };
	EXPECT_ALL_WELL(SEC);
}

TEST_F(rack, all_permission_closed)
{
	closed(_metadata, false);
}

TEST_F(rack, all_permission_closed_and_cut)
{
	closed(_metadata, true);
}

static bool all_moved(const long long *before)
{
	int i;

	for (i = 0; i < nst; i++)
		if (st[i].got == before[i])
			return false;
	return true;
}

/*
 * Connections, liveness: the receiver's device is down, or carries no ESP, for a
 * moment or for longer than permission lasts, while many are parked.
 */
TEST_F(rack, receiver_down_and_up)
{
	static const int off_ms[] = { 1, 20, 300, 1, 20, 300 };
	long long had[STREAMS], start, bytes;
	int i, k;

	connect_streams(snd, 8, &rx);
	for (i = 0; i < 8; i++)
		st[i].want = ENDLESS;
	for (k = 0; k < (int)ARRAY_SIZE(off_ms); k++) {
		PUMP(false, 10 * MS);
		EXPECT_TRUE(PUMP(port().parked >= 2, 10 * MS));
		if (k < 3)
			link_up(&rx, false);
		else
			sysctl(&rx, "dev/e0/enable", 0);
		PUMP(false, off_ms[k] * MS);
		for (i = 0; i < 8; i++)
			had[i] = st[i].got;
		if (k < 3)
			link_up(&rx, true);
		else
			sysctl(&rx, "dev/e0/enable", 1);
		start = now_us();
		EXPECT_TRUE(PUMP(all_moved(had), SEC));
		printf("# %s for %d ms: all go on after %lld us\n", k < 3 ? "down" : "disabled",
		       off_ms[k], now_us() - start);
		/* senders' timers have backed off: rto_max_ms, and the time it was off */
		EXPECT_LE(now_us() - start, 500 * MS);
		bytes = received(0);
		PUMP(false, 20 * MS);
		EXPECT_GE(received(0) - bytes, 0.9 * capacity(1000, 20 * MS));
	}
	enough();
	EXPECT_ALL_WELL(SEC);
}

/* A sender whose own device was down goes on as soon as it is up. */
TEST_F(rack, sender_down_and_up)
{
	long long start, had, others;
	int i;

	connect_streams(snd, 4, &rx);
	for (i = 0; i < 4; i++)
		st[i].want = ENDLESS;
	PUMP(false, 10 * MS);
	st[0].mute = true;	/* ENETDOWN */
	link_up(&snd[0], false);
	others = received(1);
	start = now_us();
	PUMP(false, 300 * MS);
	EXPECT_EQ(1, counter(&rx, "ExpiryAbandoned"));
	EXPECT_GE(received(1) - others, 0.95 * capacity(1000, now_us() - start));
	EXPECT_GT(queued(st[0].tx, SIOCOUTQ), 0);
	had = st[0].got;
	link_up(&snd[0], true);
	start = now_us();
	EXPECT_TRUE(PUMP(st[0].got > had, SEC));
	printf("# goes on after %lld us\n", now_us() - start);
	/* first its oldest packet, which others are before at the port */
	EXPECT_LE(now_us() - start, 4 * GRANT_MAX * FRAME_NS(1000) / 1000 + 2 * RTT_US);
	st[0].mute = false;
	enough();
	EXPECT_ALL_WELL(SEC);
}

/*
 * Rule 14: by the seed's policy nobody waits for ever either, whoever ends, stops
 * reading or is cut off; but until that one is given up.
 */
TEST_F(rack, seed_policy)
{
	long long start, bytes, had[STREAMS];
	int i;

	sysctl(&rx, "burst_length", 8);
	sysctl(&rx, "adaptive", 0);
	connect_streams(snd, 4, &rx);
	MUST(set_int(st[0].rx, SOL_SOCKET, SO_RCVBUF, 131072));
	for (i = 0; i < 4; i++)
		st[i].want = ENDLESS;
	PUMP(false, 10 * MS);
	EXPECT_EQ(4, port().senders);
	EXPECT_GE(parked_max, 2);

	st[0].stopped = true;
	EXPECT_TRUE(PUMP(flag(st[0].rx, ESP_IF_RCV_MEM_PRESSURE), 50 * MS));
	bytes = received(1);
	reset_gaps();
	PUMP(false, 20 * MS);
	printf("# one does not read: others %.1f %% of the link, waited for %lld us\n",
	       100 * (received(1) - bytes) / capacity(1000, 20 * MS), longest_gap(1));
	EXPECT_LE(longest_gap(1), 3 * (2 * RTT_US + 8 * FRAME_NS(1000) / 1000));
	st[0].stopped = false;
	for (i = 0; i < 4; i++)
		had[i] = st[i].got;
	EXPECT_TRUE(PUMP(all_moved(had), 10 * MS));

	PUMP(false, 10 * MS);
	set_cable(0, false);
	start = now_us();
	bytes = received(1);
	reset_gaps();
	EXPECT_TRUE(PUMP(counter(&rx, "ExpiryAbandoned") == 1, SEC));
	printf("# one is cut off: others %.1f %% of the link, waited for %lld us\n",
	       100 * (received(1) - bytes) / capacity(1000, now_us() - start), longest_gap(1));
	/* the queue is never as long as there are senders: all its expiries */
	EXPECT_LE(longest_gap(1), 100 * MS);
	EXPECT_EQ(3, port().senders);
	bytes = received(1);
	PUMP(false, 20 * MS);
	printf("# given up after %lld us: others %.1f %%\n", now_us() - start - 20 * MS,
	       100 * (received(1) - bytes) / capacity(1000, 20 * MS));
	set_cable(0, true);
	for (i = 0; i < 4; i++)
		had[i] = st[i].got;
	EXPECT_TRUE(PUMP(all_moved(had), SEC));

	/* one after the other ends, others parked */
	for (i = 0; i < 4; i++) {
		st[i].want = st[i].sent;
		EXPECT_TRUE(PUMP(st[i].got == st[i].want, SEC));
		EXPECT_TRUE(PUMP(port().senders == 3 - i, 10 * MS));
	}
	EXPECT_ALL_WELL(SEC);
	EXPECT_EQ(0, drops());
}

/* Rule 14: the pump runs after each change of a sysctl: nothing else happens here. */
TEST_F(rack, sysctl_releases)
{
	long long start;

	sysctl(&rx, "q_max", 8);
	sysctl(&rx, "rrq_min_us", 500 * MS);
	sysctl(&rx, "rto_min_us", 500 * MS);
	connect_streams(snd, 2, &rx);
	st[0].want = ENDLESS;
	PUMP(false, 10 * MS);
	set_cable(0, false);
	nap_us(RTT_US);
	EXPECT_GE(port().open, 8);
	st[1].want = 200 * MSS;
	EXPECT_TRUE(PUMP(flag(st[1].rx, ESP_IF_PARKED), MS));
	PUMP(false, 10 * MS);
	EXPECT_TRUE(flag(st[1].rx, ESP_IF_PARKED));
	start = now_us();
	sysctl(&rx, "q_max", 4096);
	sysctl(&rx, "q_min", 64);
	EXPECT_FALSE(flag(st[1].rx, ESP_IF_PARKED));
	EXPECT_TRUE(PUMP(st[1].got == st[1].want, 100 * MS));
	printf("# the other has sent all after %lld us\n", now_us() - start);
	EXPECT_EQ(0, counter(&rx, "Expiries"));
	set_cable(0, true);
	sysctl(&rx, "rrq_min_us", MS);
	sysctl(&rx, "rto_min_us", MS);
	enough();
	EXPECT_ALL_WELL(2 * SEC);
}

/*
 * Rule 14: policy and limits change in any order, also where the policy
 * becomes another one in mid flight.
 */
TEST_F(rack, sysctls_change)
{
	static const struct {
		const char	*name;
		int		value;
	} steps[] = {
		{ "q_min", 1 }, { "q_max", 1 }, { "q_max", 4096 }, { "q_max", 1 },
		{ "burst_length", 1 }, { "q_max", 4096 }, { "burst_length", 3 },
		{ "packets_to_ack", 1 }, { "burst_length", 0 }, { "packets_to_ack", 64 },
		{ "burst_length", 4 }, { "adaptive", 0 }, { "adaptive", 1 },
		{ "burst_length", 1 }, { "adaptive", 0 }, { "packets_to_ack", 16 },
		{ "burst_length", 64 }, { "adaptive", 1 }, { "burst_length", 0 },
		{ "adaptive", 0 }, { "first_burst_pool", 0 }, { "adaptive", 1 },
		{ "first_burst_pool", 64 }, { "q_min", 8 },
	};
	int i, changes = 0, parked = 0, most = ARRAY_SIZE(steps);

	connect_streams(snd, 16, &rx);
	for (i = 0; i < 16; i++)
		st[i].want = 800000 + 1000 * i;
	PUMP(false, 2 * MS);
	/* twice, to meet each in another state, as long as there is traffic */
	while (!all_in() && changes < 2 * most) {
		PUMP(port().parked > 0 || all_in(), 5 * MS);
		parked += port().parked > 0;
		sysctl(&rx, steps[changes % most].name, steps[changes % most].value);
		changes++;
		PUMP(all_in(), MS);
	}
	printf("# %d changes, %d of them while somebody was parked\n", changes, parked);
	EXPECT_GE(changes, most);
	EXPECT_GE(parked, changes * 3 / 4);
	EXPECT_ALL_WELL(5 * SEC);
	EXPECT_EQ(0, counter(&rx, "ExpiryAbandoned"));
}

/*
 * Rule 21: however many start in the same moment, no more than F packets reach
 * the port unasked, and they fit into its buffer.
 */
TEST_F(rack, all_start_at_once)
{
	int i, r;

	connect_streams(snd, SENDERS, &rx);
	nap_us(100 * MS);
	for (r = 0; r < 4; r++) {
		long data = sent("OutData"), lost = drops();
		long empty = sent("AdviceEmpty");
		long long start = now_us();

		for (i = 0; i < SENDERS; i++) {
			st[i].want += 34 * MSS;	/* more than any first burst here */
			write_some(&st[i]);
		}
		/* before any answer can be here */
		EXPECT_LT(now_us() - start, RTT_US);
		data = sent("OutData") - data;
		EXPECT_TRUE(PUMP(all_in(), SEC));
		lost = drops() - lost;
		printf("# round %d: first bursts of %ld, %ld empty TXS, %ld dropped, %lld us\n",
		       r, data, sent("AdviceEmpty") - empty, lost, now_us() - start);
		EXPECT_LE(data, FIRST_BURSTS);
		EXPECT_EQ(0, lost);
		PUMP(false, 5 * MS);
	}
	EXPECT_GE(parked_max, SENDERS / 2);
	EXPECT_ALL_WELL(SEC);
}

/*
 * Rule 3: announce_seq stands still while it is unacknowledged, so that small
 * writes without end push no more than one first burst.
 */
TEST_F(rack, small_writes_without_ack)
{
	struct stream *s = &st[0];
	struct esp_info was, is;
	int i, advice;
	long data;

	connect_streams(snd, 1, &rx);
	MUST(set_int(s->tx, SOL_ESP, ESP_NODELAY, 1));
	s->want = 3 * 65536;
	EXPECT_ALL_WELL(SEC);
	nap_us(10 * MS);
	advice = get_info(s->tx).advice;
	EXPECT_GE(advice, 1);
	data = sent("OutData");
	/* all that the receiver says comes later */
	enter(&rx);
	run("tc qdisc change dev e0 root netem limit 10000 delay 50ms");
	s->want += 100;
	write_some(s);
	was = get_info(s->tx);
	for (i = 0; i < 1000; i++) {
		s->want += 100;
		write_some(s);
		nap_us(40);
		is = get_info(s->tx);
		if (is.announce_seq != was.announce_seq)
			break;
	}
	EXPECT_EQ(1000, i);
	EXPECT_EQ(was.announce_seq, is.una_seq);
	data = sent("OutData") - data;
	printf("# 1000 writes, %ld packets, advice %d, %ld timeouts\n", data, advice,
	       sent("Timeouts"));
	EXPECT_GE(data, 2);
	EXPECT_LE(data, advice);
	enter(&rx);
	run("tc qdisc change dev e0 root netem limit 10000 delay %dus", RTT_US / 2);
	EXPECT_ALL_WELL(SEC);
	EXPECT_EQ(0, drops());
}

/*
 * Both directions between all pairs of four hosts: the ACKs that ride on data
 * say what was granted, and no more.
 */
#define MESH 4

static struct {
	int		ports[MESH];
	atomic_bool	stop;
	int		samples;
	int		open;		/* most */
	long long	start;
	int		first;		/* beyond the budget of late and one grant, most */
	int		beyond;		/* likewise, when no announcement is on its way */
	int		out_of_turn;	/* packets of a sender's edge beyond the receiver's */
	int		piggy;		/* looks at permission in both directions */
	int		compared;	/* edges */
} mesh;

static void look_at_edges(void)
{
	int i;

	for (i = 0; i < nst; i++) {
		struct esp_info tx = get_info(st[i].tx), to = get_info(st[i].rx);
		int n;

		if (!(to.flags & ESP_IF_RECV_ANNOUNCED))
			continue;
		mesh.piggy += !!(tx.flags & ESP_IF_RECV_ANNOUNCED);
		/* its announcement has been answered */
		if ((__s32)(tx.una_seq - tx.announce_seq) <= 0)
			continue;
		mesh.compared++;
		n = tx.edge - to.recv_edge;
		if (n > mesh.out_of_turn)
			mesh.out_of_turn = n;
	}
}

static void *watch_mesh(void *arg)
{
	int q[MESH][40] = {}, i, k;

	while (!mesh.stop) {
		for (i = 0; i < MESH; i++) {
			struct port p = read_port(mesh.ports[i]);
			int budget = 0, grant;

			q[i][mesh.samples % 40] = p.budget;
			for (k = 0; k < 40; k++)
				if (q[i][k] > budget)
					budget = q[i][k];
			grant = p.senders > 1 && budget / 4 < GRANT_MAX ? budget / 4 : GRANT_MAX;
			if (p.open > mesh.open)
				mesh.open = p.open;
			k = p.open - budget - grant;
			if (k > mesh.first)
				mesh.first = k;
			if (k > mesh.beyond && now_us() - mesh.start > 2 * MS)
				mesh.beyond = k;
			if (p.parked > parked_max)
				parked_max = p.parked;
		}
		look_at_edges();
		mesh.samples++;
		nap_us(TICK_US);
	}
	return arg;
}

static bool mesh_quiet(void)
{
	int i;

	for (i = 0; i < MESH; i++) {
		struct port p = read_port(mesh.ports[i]);

		if (p.senders || p.parked || p.open)
			return false;
	}
	return true;
}

/* Each connects to every other, or only to those behind it. */
static void mesh_traffic(struct __test_metadata *_metadata, bool twice)
{
	char name[IFNAMSIZ];
	pthread_t watcher;
	long long took;
	long lost = 0;
	int i, k, n;

	for (i = 0; i < MESH; i++) {
		snprintf(name, sizeof(name), "q%d", i);
		limit_port(name, 1000);
		mesh.ports[i] = open_ports(&snd[i]);
	}
	for (i = 0; i < MESH; i++)
		for (k = twice ? 0 : i + 1; k < MESH; k++)
			if (i != k)
				connect_streams(&snd[i], 1, &snd[k]);
	n = nst;
	for (i = 0; i < n; i++) {
		/* the other direction */
		st[n + i].tx = st[i].rx;
		st[n + i].rx = st[i].tx;
	}
	nst = 2 * n;
	nap_us(10 * MS);
	for (i = 0; i < nst; i++)
		st[i].want = 256 << 10;
	mesh.start = now_us();
	pthread_create(&watcher, NULL, watch_mesh, NULL);
	EXPECT_TRUE(PUMP(all_in(), SEC));
	took = now_us() - mesh.start;
	EXPECT_TRUE(no_errors());
	EXPECT_TRUE(PUMP(mesh_quiet(), 100 * MS));
	mesh.stop = true;
	pthread_join(watcher, NULL);
	for (i = 0; i < MESH; i++) {
		snprintf(name, sizeof(name), "q%d", i);
		lost += drops_at(name);
		enter(&sw);
		run("tc qdisc del dev %s root", name);
	}
	printf("# all in after %lld us, %ld dropped; open %d at most, parked %d\n", took, lost,
	       mesh.open, parked_max);
	printf("# %d looks: %d beyond the bound, first bursts %d; edge %d out of turn (%d looks)\n",
	       mesh.samples, mesh.beyond, mesh.first, mesh.out_of_turn, mesh.compared);
	EXPECT_GE(mesh.samples, 100);
	EXPECT_GE(mesh.piggy, 100);
	EXPECT_GE(mesh.compared, 100);
	EXPECT_GE(parked_max, 2);
	EXPECT_LE(mesh.first, FIRST_BURSTS);
	EXPECT_LE(mesh.beyond, 0);
	EXPECT_LE(mesh.out_of_turn, 0);
	if (!twice)	/* else each host has two first bursts (protocol.rst, "Decisions") */
		EXPECT_EQ(0, lost);
	nst = n;	/* each socket is closed once */
}

TEST_F(rack, both_ways_everywhere)
{
	mesh_traffic(_metadata, true);
}

TEST_F(rack, both_ways_once)
{
	mesh_traffic(_metadata, false);
}

/*
 * Rules 13, 17: a sender announces, and none of its data arrives.
 */
TEST_F(rack, announces_and_never_sends)
{
	long long start;
	long long others;
	int i;

	sysctl(&rx, "first_burst_pool", 0);	/* announced by an empty TXS */
	connect_streams(snd, 4, &rx);
	for (i = 1; i < 4; i++)
		st[i].want = ENDLESS;
	PUMP(false, 20 * MS);
	/* nothing longer than this gets into the switch */
	enter(&sw);
	run("ip link set q0 mtu 100");
	st[0].want = 20 * MSS;
	start = now_us();
	others = received(1);
	reset_gaps();
	EXPECT_TRUE(PUMP(port().senders == 4, 10 * MS));
	EXPECT_TRUE(PUMP(counter(&rx, "ExpiryAbandoned") == 1, SEC));
	printf("# given up after %lld us; others: %.1f %% of the link, waited for %lld us\n",
	       now_us() - start, 100 * (received(1) - others) / capacity(1000, now_us() - start),
	       longest_gap(1));
	EXPECT_EQ(6, counter(&rx, "Expiries"));
	EXPECT_GE(received(1) - others, 0.9 * capacity(1000, now_us() - start));
	EXPECT_EQ(3, port().senders);
	EXPECT_EQ(0, st[0].got);
	EXPECT_EQ(0, tokens(st[0].rx));
	enter(&sw);
	run("ip link set q0 mtu 1500");
	start = now_us();
	EXPECT_TRUE(PUMP(st[0].got == st[0].want, 2 * SEC));
	printf("# all of it after %lld us\n", now_us() - start);
	enough();
	EXPECT_ALL_WELL(SEC);
}

/*
 * Rule 20: who sends far more than it is allowed gets nothing for it: the
 * memory of its socket is bounded, and the others have the link.
 */
static __u8 forged[ETH_HLEN + ESP_HLEN + MSS];
static struct esp_wire *const header = (void *)(forged + ETH_HLEN);

/* What this connection sends goes by here. */
static int learn(struct stream *s, int sender)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
	};
	int fd;

	enter(&snd[sender]);
	a.sll_ifindex = if_nametoindex("e0");
	fd = MUST(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
	MUST(bind(fd, (struct sockaddr *)&a, sizeof(a)));
	s->want += 1000;
	PUMP(s->got == s->want, 10 * MS);
	do {
		MUST(recv(fd, forged, sizeof(forged), MSG_DONTWAIT));
	} while (memcmp(forged, rx.mac, 6) || !header->len);
	return fd;
}

static void forge(int fd, __u32 seq, int flags)
{
	header->ver_hlen = ESP_VERSION << 4 | ESP_HLEN / 4;
	header->flags = ESP_ACK | flags;
	header->pkt_seq = htonl(seq);
	header->ts_val = htonl(ntohl(header->ts_val) + TICK_US);
	header->len = htons(MSS);
	header->csum = 0;
	header->csum = checksum(header, ESP_HLEN + MSS);
	if (send(fd, forged, sizeof(forged), 0) < 0 && errno != ENOBUFS)
		MUST(-1);
}

static int memory(int fd)
{
	__u32 m[SK_MEMINFO_VARS] = {};
	socklen_t len = sizeof(m);

	MUST(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, m, &len));
	return m[SK_MEMINFO_RMEM_ALLOC];
}

TEST_F(rack, window_ignored)
{
	int most = 0, rcvbuf, allowance = 65 * 2304;
	__u32 seq, start;
	long long began;
	long long honest;
	int fd, i;

	connect_streams(snd, 2, &rx);
	MUST(set_int(st[0].rx, SOL_SOCKET, SO_RCVBUF, 131072));
	rcvbuf = get_int(st[0].rx, SOL_SOCKET, SO_RCVBUF);
	fd = learn(&st[0], 0);
	st[0].stopped = true;
	st[1].want = ENDLESS;
	PUMP(false, 10 * MS);
	honest = st[1].got;
	reset_gaps();
	seq = ntohl(header->pkt_seq) + 1;
	start = seq;
	began = now_us();
	for (i = 0; i < 1200; i++) {
		int kind = i / 400;

		/* one after the other; every second one; anywhere */
		forge(fd, seq, !i ? ESP_TXS : 0);
		seq = kind == 0 ? seq + 1 : kind == 1 ? seq + 2 : start + i * 977;
		step();
		if (memory(st[0].rx) > most)
			most = memory(st[0].rx);
	}
	honest = st[1].got - honest;
	printf("# rmem %d at most, rcvbuf %d; dropped %ld, beyond window %ld\n", most, rcvbuf,
	       counter(&rx, "InMemDrop"), counter(&rx, "InBeyondWindow"));
	printf("# forged frames: %.1f %% of the link; honest: %.1f %%, waited for %lld us\n",
	       100 * 1200.0 * MSS / capacity(1000, now_us() - began),
	       100 * honest / capacity(1000, now_us() - began), longest_gap(1));
	EXPECT_LE(most, rcvbuf + allowance);
	EXPECT_GE(most, rcvbuf / 2);
	EXPECT_GE(counter(&rx, "InMemDrop"), 300);
	EXPECT_GE(counter(&rx, "InBeyondWindow"), 300);
	EXPECT_LE(queued(st[0].rx, SIOCINQ), rcvbuf + allowance);
	EXPECT_GE(honest, 0.9 * (capacity(1000, now_us() - began) - 1200.0 * MSS));
	/* what it was given expires; who does not read gives no more */
	EXPECT_TRUE(PUMP(!tokens(st[0].rx) && !flag(st[0].rx, ESP_IF_PARKED), 100 * MS));
	close(fd);
	close(st[0].rx);
	close(st[0].tx);
	EXPECT_TRUE(PUMP(port().senders == 1, 100 * MS));
	st[0] = (struct stream){ .tx = -1, .rx = -1 };
	enough();
	EXPECT_ALL_WELL(SEC);
}

/*
 * Rule 13: parked for longer than any loss timer, and with a port that is as
 * slow, is no loss: neither when the round trips are known ...
 */
static void slow_port(void)
{
	int i;

	limit_port("p0", 10);
	connect_streams(snd, SENDERS, &rx);
	nap_us(100 * MS);
	tick_us = 10 * TICK_US;
	for (i = 0; i < SENDERS; i++)
		st[i].want = 65536;
}

TEST_F(rack, parked_for_long)
{
	long retrans, timeouts, expiries, lost;
	long long parked = 0;
	int i;

	slow_port();
	PUMP(false, SEC);
	retrans = sent("OutRetrans");
	timeouts = sent("Timeouts");
	expiries = counter(&rx, "Expiries");
	lost = drops();
	EXPECT_GE(port().parked, SENDERS / 2);
	EXPECT_TRUE(PUMP(all_in(), 10 * SEC));
	for (i = 0; i < SENDERS; i++) {
		long long us = get_info(st[i].rx).stats.parked_us;

		if (us > parked)
			parked = us;
	}
	printf("# parked for %lld ms at most, %d at once\n", parked / 1000, parked_max);
	EXPECT_GE(parked, 2 * SEC);
	EXPECT_EQ(retrans, sent("OutRetrans"));
	EXPECT_EQ(timeouts, sent("Timeouts"));
	EXPECT_EQ(expiries, counter(&rx, "Expiries"));
	EXPECT_EQ(lost, drops());
	EXPECT_ALL_WELL(SEC);
}

/* When they are not, and the first bursts alone last for 79 ms, it is a while. */
TEST_F(rack, start_at_slow_port)
{
	slow_port();
	PUMP(false, 500 * MS);
	printf("# sent again %ld, timeouts %ld, expiries %ld, dropped %ld\n",
	       sent("OutRetrans"), sent("Timeouts"), counter(&rx, "Expiries"), drops());
	/* the timers of the first packets double until they are above that */
	EXPECT_LE(sent("OutRetrans"), 16 * SENDERS);
	EXPECT_ALL_WELL(10 * SEC);
}

/*
 * All of it at once, and frames are lost, doubled and overtaken: what was
 * written arrives, and nothing is left. SEED=N in the environment: another
 * course of events.
 */
static unsigned long long seed;
static long long gone;	/* bytes read from connections that were closed */

static unsigned int dice(unsigned int n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

static void set_noise(const struct host *h, const char *noise)
{
	enter(h);
	run("tc qdisc replace dev e0 root netem limit 10000 delay %dus %s", RTT_US / 2, noise);
}

#define MANY 12

/* Both ends are closed, by FIN or RST, the one or the other first. */
static void connect_anew(struct stream *s)
{
	struct linger linger = { dice(2), 0 };
	int l, first = dice(2);

	set_cable(s - st, true);
	setsockopt(s->tx, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	s->mute = true;
	s->stopped = true;
	close(first ? s->tx : s->rx);
	PUMP(false, dice(1000));
	close(first ? s->rx : s->tx);
	l = listener(&rx, SOCK_STREAM, PORT, 1);
	connect_stream(s, &snd[s - st], &rx, l);
	MUST(set_int(s->rx, SOL_SOCKET, SO_RCVBUF, 131072));
	close(l);
}

static void something(void)
{
	static const struct {
		const char	*name;
		int		value[3];
	} knobs[] = {
		{ "adaptive", { 0, 1, 1 } }, { "burst_length", { 0, 0, 5 } },
		{ "q_max", { 1, 20, 4096 } }, { "q_min", { 1, 8, 100 } },
		{ "packets_to_ack", { 1, 16, 64 } }, { "first_burst_pool", { 0, 8, 64 } },
		{ "expiries", { 1, 5, 5 } },
	};
	struct stream *s = &st[dice(MANY)];
	int k = dice(ARRAY_SIZE(knobs));

	switch (dice(20)) {
	case 0:
		gone += s->got;
		connect_anew(s);
		break;
	case 1 ... 3:
		s->stopped = !s->stopped;
		break;
	case 4 ... 6:
		set_cable(s - st, dice(3));
		break;
	case 7 ... 9:
		sysctl(&rx, knobs[k].name, knobs[k].value[dice(3)]);
		break;
	default:
		if (s->want - s->got < 4 << 20)
			s->want += dice(3) ? dice(300000) : dice(300);
	}
}

TEST_F_TIMEOUT(rack, whatever_happens, 300)
{
	const char *given = getenv("SEED");
	int i;

	seed = given ? atoll(given) : 1;
	set_noise(&rx, "30us loss 1% duplicate 1%");
	for (i = 0; i < MANY; i++)
		set_noise(&snd[i], "30us loss 1% duplicate 1%");
	connect_streams(snd, MANY, &rx);
	for (i = 0; i < MANY; i++)
		MUST(set_int(st[i].rx, SOL_SOCKET, SO_RCVBUF, 131072));
	for (i = 0; i < 500; i++) {
		something();
		PUMP(false, dice(2000));
	}
	for (i = 0; i < MANY; i++) {
		set_cable(i, true);
		st[i].stopped = false;
	}
	EXPECT_TRUE(PUMP(all_in(), 20 * SEC));
	for (i = 0; i < MANY; i++)
		set_noise(&snd[i], "");
	printf("# seed %s: %lld bytes, %ld lost at the port, ", given ? given : "1",
	       gone + received(0), drops());
	printf("expiries %ld, given up %ld, parked %ld\n", counter(&rx, "Expiries"),
	       counter(&rx, "ExpiryAbandoned"), counter(&rx, "AckParked"));
	EXPECT_GE(gone + received(0), 10000000);
	EXPECT_GE(counter(&rx, "Expiries"), 5);
	EXPECT_GE(counter(&rx, "AckParked"), 100);
	EXPECT_GE(counter(&rx, "MemPressure"), 5);
	EXPECT_GE(counter(&rx, "InDuplicate"), 50);
	EXPECT_ALL_WELL(SEC);
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-l") || !strcmp(argv[i], "-h"))
			return test_harness_run(argc, argv);
	build_rack();
	return test_harness_run(argc, argv);
}
