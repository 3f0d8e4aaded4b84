// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer's claims move its own share only: senders keep their part of a port beside a host with
 * connections that lie, and beside a host whose cable loses frames.
 */
#include "vt-rack.h"
#include "vt-forge.h"

#define HONEST	8	/* senders; the hosts after them are the other ones */
#define LIARS	8	/* connections that lie, at most */
#define TIME	(100 * MS)

/* Let the streams run for a time. Return what the honest ones got, in percent of the link. */
static double honest_share(void)
{
	long long start = now_us(), had = 0;
	int i;

	for (i = 0; i < HONEST; i++)
		had -= st[i].got;
	PUMP(false, TIME);
	for (i = 0; i < HONEST; i++)
		had += st[i].got;
	return 100 * had / capacity(1000, now_us() - start);
}

/* Add @n connections from the host @nth after the honest ones; return the first one's index. */
static int other_host(int nth, int n)
{
	int l = listener(&rx, SOCK_STREAM, PORT + 1, n), first = nst, i;

	for (i = 0; i < n; i++) {
		struct stream *s = &st[nst++];

		memset(s, 0, sizeof(*s));
		s->tx = esp_socket(&snd[HONEST + nth], SOCK_STREAM);
		MUST(do_connect(s->tx, at(&rx, PORT + 1)));
		s->rx = MUST(accept4(l, NULL, NULL, SOCK_CLOEXEC));
	}
	close(l);
	return first;
}

/* A connection that lies: @nth frame of its script. */
typedef void (*script_fn)(struct forger *f, __u32 first, int nth);

/* It skips each second packet, and sends it later: losses without end. */
static void skips_and_fills(struct forger *f, __u32 first, int nth)
{
	forge_frame(f, first + (nth ^ 1), nth ? 0 : ESP_TXS, 0, 1);
}

/* Its round trips are 29 seconds: its tokens would never expire. It sends what it is granted. */
static void is_far(struct forger *f, __u32 first, int nth)
{
	if (!nth)
		forged(f)->ts_ecr = htonl(ntohl(forged(f)->ts_ecr) - 29000000);
	forge_frame(f, first + nth, nth ? 0 : ESP_TXS, 0, 1);
}

/* Its round trips are nothing: the base of a link that believes that has no room for a round trip. */
static void is_near(struct forger *f, __u32 first, int nth)
{
	forged(f)->ts_ecr = htonl(ntohl(forged(f)->ts_ecr) + 2 * TICK_US);
	forge_frame(f, first + nth, nth ? 0 : ESP_TXS, 0, 1);
}

/* An announcement of data without end, and of a first burst. */
static void announce(struct forger *f, __u32 first, int len)
{
	__u8 *o = f->frame + ETH_HLEN + ESP_HLEN;
	__u32 end = first + 0x7000;

	memcpy(o, (__u8[8]){ ESP_OPT_LEFT, 6, end >> 8, end, 0, 64, 0, 0 }, 8);
	forge_frame(f, first, ESP_TXS, 8, len);
}

/* It sends nothing of what it has announced: all its grants expire. */
static void sends_nothing(struct forger *f, __u32 first, int nth)
{
	if (!(nth % 10))
		announce(f, first, 0);
}

/* The same from far away, by its own word; a packet now and then keeps its grants. */
static void holds_grants(struct forger *f, __u32 first, int nth)
{
	if (!nth) {
		forged(f)->ts_ecr = htonl(ntohl(forged(f)->ts_ecr) - 29000000);
		announce(f, first, 1);
	} else if (!(nth % 50)) {
		forge_frame(f, first + nth / 50, 0, 0, 1);
	}
}

/* A small message, again and again, which claims a first burst each time. */
static void claims_bursts(struct forger *f, __u32 first, int nth)
{
	if (nth % 2)
		forge_frame(f, first + nth, ESP_TXF, 0, 1);
	else
		announce(f, first + nth, 1);
}

/* A message without end that is always short: it tells of 15 packets more, again and again. */
static void is_short(struct forger *f, __u32 first, int nth)
{
	__u8 *o = f->frame + ETH_HLEN + ESP_HLEN;
	__u32 end = first + nth + 15;

	memcpy(o, (__u8[8]){ ESP_OPT_LEFT, 6, end >> 8, end, 0, 0, 0, 0 }, 8);
	forge_frame(f, first + nth, nth ? 0 : ESP_TXS, 8, nth % 2);
}

/* Half of its packets never come, and the others say that its link is busy. */
static void loses_half(struct forger *f, __u32 first, int nth)
{
	forged(f)->grant |= htons(ESP_GRANT_BUSY);
	forge_frame(f, first + 2 * nth, nth ? 0 : ESP_TXS, 0, 1);
}

/* The honest senders keep @least percent of the link beside @hosts, each with these connections. */
static void beside(struct __test_metadata *_metadata, const script_fn *script, int n, int hosts,
		   int least)
{
	static struct forger f[LIARS];
	long long start, had = 0;
	int i, nth, other = HONEST;
	__u32 first[LIARS];
	double alone, got;

	connect_streams(snd, HONEST, &rx);
	for (i = 0; i < hosts; i++)
		other_host(i, n);
	for (i = 0; i < n * hosts; i++) {
		learn(&f[i], &st[other + i], HONEST + i / n);
		first[i] = ntohl(forged(&f[i])->pkt_seq) + 1;
		/* what they send is not what the streams' tests expect */
		st[other + i].stopped = true;
	}
	keep_busy(0, HONEST);
	alone = honest_share();
	reset_gaps();
	start = now_us();
	for (i = 0; i < HONEST; i++)
		had -= st[i].got;
	for (nth = 0; now_us() - start < TIME; nth++) {
		for (i = 0; i < n * hosts; i++)
			script[i % n](&f[i], first[i], nth);
		step();
	}
	for (i = 0; i < HONEST; i++)
		had += st[i].got;
	got = 100 * had / capacity(1000, now_us() - start);
	printf("# honest senders: %.1f %% of the link, beside liars %.1f %%; budget %d, open %d\n",
	       alone, got, port().budget, port().open);
	EXPECT_GE(nth, 100);
	EXPECT_GE(alone, 95);
	EXPECT_GE(got, least);
	for (i = 0; i < n * hosts; i++) {
		close(f[i].fd);
		close(st[other + i].tx);
		close(st[other + i].rx);
	}
	nst = HONEST;
	enough();
	EXPECT_ALL_WELL(SEC);
}

/* Rule 22: five connections of one host lie about all that a sender can claim. */
TEST_F(rack, liars)
{
	static const script_fn script[] = {
		skips_and_fills, is_far, is_near, sends_nothing, loses_half,
	};

	beside(_metadata, script, 5, 1, 90);
}

/* Rule 14: two hosts keep what they are granted, and say that they are far away. */
TEST_F(rack, holders)
{
	static const script_fn script[] = { holds_grants, holds_grants };

	beside(_metadata, script, 2, 2, 90);
}

/* Rules 14, 21: short messages, and claims of first bursts, without end. */
TEST_F(rack, short_ones)
{
	static const script_fn script[] = { claims_bursts, is_short, claims_bursts, is_short };

	/* a ninth of the link is this host's */
	beside(_metadata, script, 4, 1, 85);
}

/* Rule 22: the cable of an honest host loses frames. The others don't pay for that. */
TEST_F(rack, lossy_host)
{
	double even, lossy;
	int other;

	connect_streams(snd, HONEST, &rx);
	other = other_host(0, 1);
	keep_busy(0, HONEST + 1);
	even = honest_share();
	enter(&snd[HONEST]);
	run("tc qdisc change dev e0 root netem limit 10000 delay %dus loss 5%%", RTT_US / 2);
	lossy = honest_share();
	printf("# eight hosts: %.1f %% of the link, beside a host that loses 5 %%: %.1f %%\n", even,
	       lossy);
	EXPECT_STREQ("measured", port().from);
	EXPECT_GE(port().mbit, 950);
	EXPECT_LE(port().mbit, 1050);
	EXPECT_GE(even, 80);
	EXPECT_GE(lossy, 0.9 * even);
	EXPECT_GT(st[other].got, 0);
	enough();
	PUMP(all_in(), SEC);
	enter(&snd[HONEST]);
	run("tc qdisc change dev e0 root netem limit 10000 delay %dus loss 0%%", RTT_US / 2);
	EXPECT_ALL_WELL(2 * SEC);
}

int main(int argc, char **argv)
{
	return rack_main(argc, argv);
}
