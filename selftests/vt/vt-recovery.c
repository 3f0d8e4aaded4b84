// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery ("Must hold": every kind of lost frame is repaired within a few round
 * trips): the cable drops one certain frame, and the test measures the time until
 * all data have arrived, in round trips. Needs simulated time, where computing
 * takes no time.
 *
 *	A: va ---veth--- wa [a thread: forwards, but for what a rule names] wb ---veth--- vb :B
 *
 * Each host's device delays frames by half a round trip.
 */
#include <net/ethernet.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <linux/esp_wire.h>
#include "sock-lib.h"

#define ETHERTYPE	0x88b5
#define RTT_US		200
#define MSS		1468

/* The kinds of frames, as bits. */
enum what {
	SYN	= 0x001,
	SYNACK	= 0x002,
	ECHO	= 0x004,	/* third frame of the handshake, or others with its options */
	DATA	= 0x008,
	TXS	= 0x010,	/* on data */
	TXF	= 0x020,	/* on data */
	FIN	= 0x040,
	ACK	= 0x080,	/* empty, with a grant or a first burst */
	HOLD	= 0x100,	/* empty, with grant 0 */
	RRQ	= 0x200,
	PROBE	= 0x400,	/* empty TXS */
	ANY	= 0x7ff,
};

/* Affect @count frames of a kind from host @from, beginning with the @first one. */
struct rule {
	int	from;
	int	what;
	int	first;
	int	count;
	int	again;		/* send this many copies more; 0: do not */
	int	late_us;	/* delay by this time; 0 here and in @again: drop the frame */
	int	port;		/* A's, of the only connection that counts; 0: all do */
	int	seen;
	int	hits;
};

static struct rule rules[4];
static int nrules;
static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;
static int wire_fd[2];
static atomic_bool wire_stop;
static pthread_t wire_thread;

static int classify(const unsigned char *frame, size_t len)
{
	const struct esp_wire *h = (const void *)(frame + ETH_HLEN);
	int what = 0;

	if (len < ETH_HLEN + sizeof(*h))
		return 0;
	if (h->flags & ESP_SYN)
		return h->flags & ESP_ACK ? SYNACK : SYN;
	if (h->flags & ESP_RRQ)
		return RRQ;
	if (h->flags & ESP_FIN)
		return FIN;
	if ((h->ver_hlen & 15) * 4 > ESP_HLEN + 4)
		what |= ECHO;
	if (!h->len) {
		if (h->flags & ESP_TXS)
			return what | PROBE;
		return what | (h->grant ? ACK : HOLD);
	}
	what |= DATA;
	if (h->flags & ESP_TXS)
		what |= TXS;
	if (h->flags & ESP_TXF)
		what |= TXF;
	return what;
}

/* A frame that the cable delays. */
struct late {
	int		to;
	int		us;
	ssize_t		len;
	unsigned char	frame[];
};

static void *send_late(void *arg)
{
	struct late *l = arg;

	nap_us(l->us);
	if (send(wire_fd[l->to], l->frame, l->len, 0) != l->len)
		printf("# a late frame was not sent: %s\n", strerror(errno));
	free(l);
	return NULL;
}

static void forward(int from, const unsigned char *frame, ssize_t n)
{
	const struct esp_wire *h = (const void *)(frame + ETH_HLEN);
	int what = classify(frame, n), i, times = 1, late = 0;
	int port = what ? ntohs(from ? h->dport : h->sport) : 0;

	pthread_mutex_lock(&rules_lock);
	for (i = 0; i < nrules; i++) {
		struct rule *r = &rules[i];

		if (r->from != from || !(r->what & what) || (r->port && r->port != port))
			continue;
		r->seen++;
		if (r->seen < r->first || r->seen >= r->first + r->count)
			continue;
		r->hits++;
		if (r->again)
			times += r->again;
		else if (r->late_us)
			late = r->late_us;
		else
			times = 0;
	}
	pthread_mutex_unlock(&rules_lock);
	if (times && late) {
		struct late *l = malloc(sizeof(*l) + n);
		pthread_t t;

		l->to = !from;
		l->us = late;
		l->len = n;
		memcpy(l->frame, frame, n);
		pthread_create(&t, NULL, send_late, l);
		pthread_detach(t);
		return;
	}
	while (times--)
		if (send(wire_fd[!from], frame, n, 0) != n)
			printf("# a frame was not forwarded: %s\n", strerror(errno));
}

static void *wire(void *arg)
{
	static unsigned char frame[65536];
	struct pollfd p[2];
	int i;

	while (!wire_stop) {
		for (i = 0; i < 2; i++)
			p[i] = (struct pollfd){ .fd = wire_fd[i], .events = POLLIN };
		if (poll(p, 2, 100) <= 0)
			continue;
		for (i = 0; i < 2; i++) {
			struct sockaddr_ll from;
			socklen_t len = sizeof(from);
			ssize_t n;

			if (!(p[i].revents & POLLIN))
				continue;
			n = recvfrom(wire_fd[i], frame, sizeof(frame), 0,
				     (struct sockaddr *)&from, &len);
			if (n > 0 && from.sll_pkttype != PACKET_OUTGOING)
				forward(i, frame, n);
		}
	}
	return arg;
}

static int packet_socket(const char *dev)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETHERTYPE),
		.sll_ifindex = if_nametoindex(dev),
	};
	int fd = MUST(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETHERTYPE)));
	int size = 8 << 20;

	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)));
	MUST(bind(fd, (struct sockaddr *)&a, sizeof(a)));
	return fd;
}

static void make_wire(void)
{
	struct host w;
	int pid = getpid();

	make_host(B, "vb", 0x0b);
	make_host(A, "va", 0x0a);
	make_host(&w, "wa", 0);
	run("ip link add va address %s index 10 netns /proc/%d/fd/%d type veth peer name wa",
	    "02:00:00:00:00:0a", pid, A->ns);
	run("ip link add vb address %s index 11 netns /proc/%d/fd/%d type veth peer name wb",
	    "02:00:00:00:00:0b", pid, B->ns);
	run("ip link set wa up promisc on && ip link set wb up promisc on");
	wire_fd[0] = packet_socket("wa");
	wire_fd[1] = packet_socket("wb");
	A->ifindex = 10;
	B->ifindex = 11;
	enable(B);
	enable(A);
	link_up(B, true);
	link_up(A, true);
	wait_running();
	sysctl(B, "dev/vb/rate_mbit", 10000);
	sysctl(A, "dev/va/rate_mbit", 10000);
	/* rules count frames, so no GSO packets */
	run("ip link set va gso_max_segs 1");
	run("tc qdisc add dev va root netem limit 10000 delay %dus", RTT_US / 2);
	enter(B);
	run("ip link set vb gso_max_segs 1");
	run("tc qdisc add dev vb root netem limit 10000 delay %dus", RTT_US / 2);
	nrules = 0;
	MUST(prctl(PR_SET_TIMERSLACK, 1));
	wire_stop = false;
	pthread_create(&wire_thread, NULL, wire, NULL);
	enter(A);
}

static void add_rule(struct rule r)
{
	pthread_mutex_lock(&rules_lock);
	if (!r.count)
		r.count = 1;
	if (!r.first)
		r.first = 1;
	rules[nrules++] = r;
	pthread_mutex_unlock(&rules_lock);
}

/* Return the frames that met a rule: without any, the test has tested nothing. */
static int hits(void)
{
	int i, n = 0;

	pthread_mutex_lock(&rules_lock);
	for (i = 0; i < nrules; i++)
		n += rules[i].hits;
	pthread_mutex_unlock(&rules_lock);
	return n;
}

FIXTURE(cable) {
	int fd[2];	/* at A, at B */
	int l;
};

FIXTURE_SETUP(cable)
{
	make_wire();
	self->l = listener(B, SOCK_STREAM, PORT, 5);
	self->fd[0] = -1;
	signal(SIGPIPE, SIG_IGN);
}

/* Close all sockets; return true if no connection outlives that. */
static bool leave_cable(void)
{
	int fd;

	nrules = 0;
	for (fd = 3; fd < 256; fd++)
		if (fd != A->ns && fd != B->ns && fd != wire_fd[0] && fd != wire_fd[1])
			close(fd);
	return UNTIL(inuse(A) + inuse(B) == 0);
}

FIXTURE_TEARDOWN(cable)
{
	if (_metadata->exit_code != KSFT_PASS)
		dump_counters();
	EXPECT_TRUE(leave_cable());
	wire_stop = true;
	pthread_join(wire_thread, NULL);
}

static void there_and_back(int fd[2])
{
	char c;

	MUST(send(fd[0], "x", 1, 0));
	MUST(recv(fd[1], &c, 1, 0));
	MUST(send(fd[1], "y", 1, 0));
	MUST(recv(fd[0], &c, 1, 0));
}

/*
 * Make a connection, and send messages each way, so that both ends know the round
 * trip. The first sample may be far off, because the cable's thread is just starting.
 */
static void open_cable(int fd[2], int l)
{
	connect_through(l, SOCK_STREAM, fd);
	do {
		there_and_back(fd);
		nap_us(20 * RTT_US);
	} while (get_info(fd[0]).rtt_us + get_info(fd[0]).rttvar_us > 3 * RTT_US / 2);
}

static char block[1 << 20], got[1 << 20];

/*
 * Send @n bytes from A in pieces of @piece, read them at B, and wait until A knows
 * that. Return the time in tenths of a round trip.
 */
static int pieces(int fd[2], size_t n, size_t piece)
{
	long long start = now_us();
	size_t have = 0, sent;
	ssize_t r;

	fill(block, 0, n);
	for (sent = 0; sent < n; sent += piece)
		if (send(fd[0], block + sent, piece, 0) != (ssize_t)piece)
			return -1;
	while (have < n) {
		r = recv(fd[1], got + have, n - have, 0);
		if (r <= 0)
			return -2;
		have += r;
	}
	if (memcmp(block, got, n))
		return -3;
	while (queued(fd[0], SIOCOUTQ)) {
		nap_us(RTT_US / 20);
		if (now_us() - start > 10000000)
			return -4;
	}
	return (now_us() - start) * 10 / RTT_US;
}

static int message(int fd[2], size_t n)
{
	return pieces(fd, n, n);
}

static void tell(const char *what, int took)
{
	printf("# %s: %d.%d round trips\n", what, took / 10, took % 10);
}

#define FEW	50	/* five round trips */
/* Only the sender's timer helps: its minimum and the ACK delay, 1.5 ms. */
#define LAST	(10 * 1500 / RTT_US + FEW)

/* Without loss each of these messages takes one round trip. */
TEST_F(cable, nothing_lost)
{
	int took;

	open_cable(self->fd, self->l);
	took = message(self->fd, 4 * MSS);
	tell("4 packets", took);
	EXPECT_GE(took, 10);
	EXPECT_LE(took, 15);
	took = message(self->fd, 65536);
	tell("64 KiB", took);
	EXPECT_GE(took, 10);
	EXPECT_LE(took, 15);
	EXPECT_EQ(0, counter(A, "OutRetrans"));
}

#define RECOVERS(name, bytes, limit, ...)				\
TEST_F(cable, name)							\
{									\
	int took;							\
									\
	open_cable(self->fd, self->l);					\
	add_rule((struct rule){ __VA_ARGS__ });				\
	took = message(self->fd, bytes);				\
	tell(#name, took);						\
	EXPECT_GE(hits(), 1);						\
	EXPECT_GE(took, 10);						\
	EXPECT_LE(took, limit);						\
	EXPECT_EQ(0, counter(A, "AbortOnTimeout"));			\
}

/* Rules 10, 17, 19: the receiver asks for packets. Rule 8: the sender's timer, the last resort. */
RECOVERS(lost_tail, 4 * MSS, FEW, .from = 0, .what = DATA, .first = 4)
RECOVERS(lost_head, 4 * MSS, FEW, .from = 0, .what = DATA, .first = 1)
RECOVERS(lost_middle, 4 * MSS, FEW, .from = 0, .what = DATA, .first = 2, .count = 2)
RECOVERS(lost_all, 4 * MSS, LAST, .from = 0, .what = DATA, .first = 1, .count = 4)
RECOVERS(lost_small, 100, LAST, .from = 0, .what = DATA)
RECOVERS(lost_last_ack, 4 * MSS, LAST, .from = 1, .what = ACK, .first = 1)
RECOVERS(lost_acks, 65536, FEW, .from = 1, .what = ACK, .count = 3)
RECOVERS(lost_permission, 1 << 20, LAST, .from = 1, .what = ACK, .first = 10)

#define LATER	(10 * ESP_LATER_US / RTT_US)
#define MANY	25	/* messages of 1 MiB: more packets without a loss than LATER needs */

/*
 * Rule 10: when losses are rare, the ACK of a message waits for a reply, as long as the user
 * replies. A loss costs that time once; then losses are repaired as soon as before.
 */
TEST_F(cable, lost_later)
{
	int took, i;

	open_cable(self->fd, self->l);
	for (i = 0; i < MANY; i++)
		ASSERT_GE(message(self->fd, 1 << 20), 10);
	EXPECT_EQ(0, counter(A, "OutRetrans"));
	there_and_back(self->fd);
	took = message(self->fd, 100);
	tell("the ACK waits for a reply", took);
	EXPECT_GE(took, LATER);
	EXPECT_LE(took, LATER + FEW);
	took = message(self->fd, 100);
	tell("the user does not reply any more", took);
	EXPECT_LE(took, FEW);
	there_and_back(self->fd);
	nap_us(10 * RTT_US);	/* the reply's ACK must not be on the packet that is lost */
	add_rule((struct rule){ .from = 0, .what = DATA });
	took = message(self->fd, 100);
	tell("lost", took);
	EXPECT_EQ(1, hits());
	EXPECT_GE(took, LATER);
	EXPECT_LE(took, LATER + LAST + FEW);
	there_and_back(self->fd);
	nap_us(10 * RTT_US);
	add_rule((struct rule){ .from = 0, .what = DATA });
	took = message(self->fd, 100);
	tell("lost again", took);
	EXPECT_EQ(2, hits());
	EXPECT_LE(took, LAST);
	EXPECT_EQ(2, counter(A, "OutRetrans"));
}

static void rrq_lost(struct __test_metadata *_metadata, int fd[2], int l, int times)
{
	int took;

	open_cable(fd, l);
	add_rule((struct rule){ .from = 0, .what = DATA, .first = 3 });
	add_rule((struct rule){ .from = 1, .what = RRQ, .count = times });
	took = message(fd, 8 * MSS);
	tell("RRQs lost", took);
	EXPECT_EQ(1 + times, hits());
	EXPECT_GE(took, 10);
	EXPECT_LE(took, FEW);
}

TEST_F(cable, rrq_lost_too)
{
	rrq_lost(_metadata, self->fd, self->l, 1);
}

TEST_F(cable, rrq_lost_twice)
{
	rrq_lost(_metadata, self->fd, self->l, 2);
}

/*
 * Rule 19: one slow frame of the handshake makes the smoothed round trip too long for
 * a while. So the round trip that the RRQ itself took decides which losses it proves.
 */
TEST_F(cable, lost_after_slow_handshake)
{
	char c;
	int took;

	add_rule((struct rule){ .from = 0, .what = SYN, .late_us = 50 * RTT_US });
	connect_through(self->l, SOCK_STREAM, self->fd);
	MUST(send(self->fd[0], "x", 1, 0));
	MUST(recv(self->fd[1], &c, 1, 0));
	nap_us(20 * RTT_US);
	add_rule((struct rule){ .from = 0, .what = DATA, .first = 3 });
	took = message(self->fd, 8 * MSS);
	printf("# lost_after_slow_handshake: %d.%d round trips, srtt %u us, %ld RRQs ignored\n",
	       took / 10, took % 10, get_info(self->fd[0]).rtt_us, counter(A, "RRQIgnored"));
	EXPECT_EQ(2, hits());
	EXPECT_GE(took, 10);
	EXPECT_LE(took, FEW);
}

/* The announcement, with many packets after it. */
RECOVERS(lost_txs, 65536, FEW, .from = 0, .what = TXS)

/* Rule 21: the first burst is 0, so an empty packet announces; it gets lost, or its answer. */
#define ANNOUNCES_EMPTY(name, ...)					\
TEST_F(cable, name)							\
{									\
	int took;							\
									\
	sysctl(B, "first_burst_pool", 0);				\
	open_cable(self->fd, self->l);					\
	took = message(self->fd, 4 * MSS);				\
	EXPECT_GE(counter(A, "AdviceEmpty"), 1);			\
	add_rule((struct rule){ __VA_ARGS__ });				\
	tell("without loss", took);					\
	took = message(self->fd, 4 * MSS);				\
	tell(#name, took);						\
	EXPECT_EQ(1, hits());						\
	EXPECT_EQ(2, counter(A, "AdviceEmpty"));			\
	EXPECT_GE(took, 10);						\
	EXPECT_LE(took, LAST);						\
}

ANNOUNCES_EMPTY(lost_empty_txs, .from = 0, .what = PROBE)
ANNOUNCES_EMPTY(lost_answer_to_empty_txs, .from = 1, .what = ACK)

/* The end of a transmission, when the next one follows at once. */
TEST_F(cable, lost_txf)
{
	int took;

	open_cable(self->fd, self->l);
	add_rule((struct rule){ .from = 0, .what = TXF });
	/* the next transmission begins at once, and arrives */
	add_rule((struct rule){ .from = 0, .what = TXS, .first = 2, .late_us = 1 });
	took = pieces(self->fd, 8 * MSS, 4 * MSS);
	tell("lost_txf", took);
	EXPECT_EQ(2, hits());
	EXPECT_GE(took, 10);
	EXPECT_LE(took, FEW);
}

/*
 * Lose each frame in turn, in both directions, while a message is sent: with the
 * usual first burst, with a first burst shorter than the message, and with none.
 */
static void each_frame(struct __test_metadata *_metadata, int fd[2], int l, int pool)
{
	int from, k, took, worst;

	sysctl(B, "first_burst_pool", pool);
	open_cable(fd, l);
	for (from = 0; from < 2; from++) {
		worst = 0;
		for (k = 1; k < 100; k++) {
			nrules = 0;
			add_rule((struct rule){ .from = from, .what = ANY, .first = k });
			took = message(fd, 12 * MSS);
			EXPECT_GE(took, 10);
			nap_us(20 * RTT_US);
			if (!hits())
				break;
			EXPECT_LE(took, LAST)
				TH_LOG("frame %d from %c: %d.%d round trips", k, 'A' + from,
				       took / 10, took % 10);
			if (took > worst)
				worst = took;
		}
		printf("# %d frames from %c, lost one at a time: %d.%d round trips at most\n",
		       k - 1, 'A' + from, worst / 10, worst % 10);
		EXPECT_GE(k, from ? 2 : 12);
		EXPECT_LT(k, 100);
	}
}

TEST_F(cable, each_frame_lost)
{
	each_frame(_metadata, self->fd, self->l, 64);
}

TEST_F(cable, each_frame_lost_with_grants)
{
	each_frame(_metadata, self->fd, self->l, 4);
}

TEST_F(cable, each_frame_lost_with_empty_txs)
{
	each_frame(_metadata, self->fd, self->l, 0);
}

/* A second connection that always has something to send. */
static int load_fd[2];
static atomic_bool load_stop;

static void *load(void *arg)
{
	static char buf[CHUNK];

	while (!load_stop) {
		struct pollfd p[2] = {
			{ .fd = load_fd[0], .events = POLLOUT },
			{ .fd = load_fd[1], .events = POLLIN },
		};

		if (poll(p, 2, 1) <= 0)
			continue;
		if (p[0].revents)
			send(load_fd[0], buf, CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (p[1].revents)
			recv(load_fd[1], buf, CHUNK, MSG_DONTWAIT);
		nap_us(RTT_US / 20);
	}
	return arg;
}

/* Rule 13: the grant is parked, and the HOLD that tells the sender so is lost. */
TEST_F(cable, lost_hold)
{
	int took, usual, port;
	pthread_t t;

	/* as if the link had only this capacity */
	sysctl(B, "q_max", 8);
	sysctl(B, "first_burst_pool", 1);
	sysctl(B, "shortest_first", 0);
	open_cable(self->fd, self->l);
	open_cable(load_fd, self->l);
	port = ntohs(sockname(self->fd[0]).sesp_port);
	pthread_create(&t, NULL, load, NULL);
	nap_us(100 * RTT_US);
	usual = message(self->fd, 8 * MSS);
	add_rule((struct rule){ .from = 1, .what = HOLD, .port = port });
	took = message(self->fd, 8 * MSS);
	printf("# lost_hold: %d.%d round trips, without loss %d.%d\n", took / 10, took % 10,
	       usual / 10, usual % 10);
	EXPECT_EQ(1, hits());
	EXPECT_GE(get_info(self->fd[1]).stats.parked, 2u);
	EXPECT_GE(took, 10);
	EXPECT_LE(took, FEW);
	EXPECT_EQ(0, counter(A, "Timeouts"));
	load_stop = true;
	pthread_join(t, NULL);
}

/* A frame is late, not lost: the sender retransmits nothing. */
TEST_F(cable, reordered)
{
	int took;

	open_cable(self->fd, self->l);
	add_rule((struct rule){ .from = 0, .what = DATA, .first = 3, .count = 1,
		 .late_us = RTT_US / 8 });
	took = message(self->fd, 65536);
	tell("reordered", took);
	EXPECT_EQ(1, hits());
	EXPECT_LE(took, FEW);
	EXPECT_EQ(0, counter(A, "OutRetrans"));
	EXPECT_EQ(0, counter(B, "OutRRQ"));
}

TEST_F(cable, duplicated)
{
	int took;

	open_cable(self->fd, self->l);
	add_rule((struct rule){ .from = 0, .what = DATA, .first = 1, .count = 1000,
		 .again = 1 });
	add_rule((struct rule){ .from = 1, .what = ACK | HOLD, .first = 1,
		 .count = 1000, .again = 1 });
	took = message(self->fd, 65536);
	tell("duplicated", took);
	EXPECT_LE(took, FEW);
	EXPECT_EQ(0, counter(A, "OutRetrans"));
	EXPECT_GE(counter(B, "InDuplicate"), 40);
}

/* Lost frames of the handshake: its own timer repairs that, after 20 ms, then doubled. */
#define CONNECTS(name, limit_ms, ...)					\
TEST_F(cable, name)							\
{									\
	long long start = now_us();					\
									\
	add_rule((struct rule){ __VA_ARGS__ });				\
	connect_through(self->l, SOCK_STREAM, self->fd);		\
	printf("# %s: %lld us\n", #name, now_us() - start);		\
	EXPECT_GE(hits(), 1);						\
	EXPECT_LE(now_us() - start, limit_ms * 1000);			\
	EXPECT_GE(message(self->fd, 1000), 10);				\
}

CONNECTS(lost_syn, 25, .from = 0, .what = SYN)
CONNECTS(lost_synack, 25, .from = 1, .what = SYNACK)
CONNECTS(lost_echo, 45, .from = 0, .what = ECHO)
CONNECTS(lost_syns, 65, .from = 0, .what = SYN, .count = 2)

static int end_of_stream(int fd[2])
{
	long long start = now_us();
	char c;

	MUST(shutdown(fd[0], SHUT_WR));
	MUST(recv(fd[1], &c, 1, 0));
	return (now_us() - start) * 10 / RTT_US;
}

TEST_F(cable, lost_fin)
{
	int took;

	open_cable(self->fd, self->l);
	add_rule((struct rule){ .from = 0, .what = FIN });
	took = end_of_stream(self->fd);
	tell("lost_fin", took);
	EXPECT_EQ(1, hits());
	EXPECT_LE(took, LAST);
}

TEST_F(cable, lost_ack_of_fin)
{
	int took;

	open_cable(self->fd, self->l);
	add_rule((struct rule){ .from = 1, .what = ACK | HOLD });
	took = end_of_stream(self->fd);
	EXPECT_LE(took, FEW);
	nap_us(20 * RTT_US);
	EXPECT_EQ(1, hits());
	EXPECT_GE(counter(A, "OutRetrans"), 1);
	EXPECT_LE(counter(A, "OutRetrans"), 2);
}

TEST_HARNESS_MAIN
