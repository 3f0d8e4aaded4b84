// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of budget.c. Included by suite.c, and in user space by
 * selftests/unit/host-pure.c.
 */

#define US	1000ull
#define MS	(1000 * US)
#define B_HOSTS	5

/* A link of 10 Gbit/s: 1538 bytes take 1230 ns. */
static struct {
	struct esp_budget	b;
	struct esp_host		h[B_HOSTS];
	u64			now;
} bt;

static void b_init(u32 mbit)
{
	int i;

	memset(&bt, 0, sizeof(bt));
	bt.now = 1000 * MS;
	esp_budget_init(&bt.b, mbit, 1500);
	for (i = 0; i < B_HOSTS; i++)
		esp_host_init(&bt.h[i]);
}

/* All hosts report their round trips once in each of @looks looks. */
static void b_report(int looks, const u32 *least, int hosts, int senders)
{
	int i;

	while (looks--) {
		bt.now += 10 * MS;
		for (i = 0; i < hosts; i++)
			esp_budget_rtt(&bt.b, &bt.h[i], least[i], least[i], senders, bt.now);
	}
}

/* A look of 1 ms, in which the link carried @permille of what it can. */
static void b_look(u32 permille, bool waits)
{
	esp_budget_look(&bt.b, waits, bt.now);
	atomic_add(1250 * permille, &bt.b.bytes);
	bt.now += MS;
	esp_budget_look(&bt.b, waits, bt.now);
}

static void budget__rate(struct kunit *test)
{
	b_init(10000);
	KUNIT_EXPECT_EQ(test, esp_budget_wire_time(&bt.b, 1000), 1230375ull);
	b_init(400000);
	KUNIT_EXPECT_EQ(test, esp_budget_wire_time(&bt.b, 1000), 30750ull);
	b_init(10);
	KUNIT_EXPECT_EQ(test, esp_budget_wire_time(&bt.b, 1), 1230400ull);
	/* unknown: as 1 Gbit/s at first, then the fastest that was measured twice */
	b_init(0);
	KUNIT_EXPECT_EQ(test, esp_budget_wire_time(&bt.b, 1), 12304ull);
	b_look(400, true);
	KUNIT_EXPECT_EQ(test, esp_budget_measured(&bt.b), 0u);
	b_look(800, true);
	KUNIT_EXPECT_EQ(test, esp_budget_wire_time(&bt.b, 1000) / 1000, 3076ull);
	KUNIT_EXPECT_EQ(test, esp_budget_measured(&bt.b), 4000u);
	b_look(800, true);
	b_look(100, true);
	KUNIT_EXPECT_EQ(test, esp_budget_wire_time(&bt.b, 1000) / 1000, 1538ull);
	/* too few packets measure nothing */
	b_init(0);
	b_look(1, true);
	KUNIT_EXPECT_EQ(test, esp_budget_wire_time(&bt.b, 1), 12304ull);
	/* nor does a time in which senders had no more to send: the link could have been faster */
	b_init(0);
	esp_budget_look(&bt.b, false, bt.now);
	atomic_add(50000, &bt.b.bytes);
	bt.now += 20 * MS;
	esp_budget_look(&bt.b, true, bt.now);
	b_look(800, true);
	KUNIT_EXPECT_EQ(test, esp_budget_wire_time(&bt.b, 1), 12304ull);
	b_look(800, true);
	KUNIT_EXPECT_EQ(test, esp_budget_wire_time(&bt.b, 1000) / 1000, 1538ull);
}

static void budget__size(struct kunit *test)
{
	static const u32 least[] = { 100, 10, 10000 };

	b_init(10000);
	b_report(1, least, 1, 1);
	KUNIT_EXPECT_EQ(test, bt.b.bdp, 82u);
	KUNIT_EXPECT_EQ(test, bt.b.size, 82u + 32 + 8);
	b_report(1, least + 1, 1, 1);
	KUNIT_EXPECT_EQ(test, bt.b.bdp, 9u);
	KUNIT_EXPECT_EQ(test, bt.b.size, 9u + 4 + 8);
	b_report(1, least + 2, 1, 1);
	KUNIT_EXPECT_EQ(test, bt.b.size, 8128u + 32 + 8);
	KUNIT_EXPECT_EQ(test, esp_budget_quantum(&bt.b), 44u);
}

/* The base round trip is the median of the hosts: one that lies does not move it. */
static void budget__base(struct kunit *test)
{
	static const u32 honest[] = { 100, 100, 110, 90, 100 };
	static const u32 huge[] = { 100, 100, 110, 90, 4000000 };
	static const u32 tiny[] = { 100, 100, 110, 90, 0 };

	b_init(10000);
	b_report(40, honest, 5, 5);
	KUNIT_EXPECT_GE(test, bt.b.base.v, 90 * US);
	KUNIT_EXPECT_LE(test, bt.b.base.v, 110 * US);
	b_report(200, huge, 5, 5);
	KUNIT_EXPECT_LE(test, bt.b.base.v, 125 * US);
	b_report(200, tiny, 5, 5);
	KUNIT_EXPECT_GE(test, bt.b.base.v, 75 * US);
	/* a longer way is followed within a few looks */
	b_report(12, huge + 4, 1, 5);
	KUNIT_EXPECT_GE(test, bt.b.base.v, 1000 * US);
	/* and a shorter one */
	b_init(10000);
	b_report(12, honest, 1, 5);
	b_report(12, tiny + 4, 1, 5);
	KUNIT_EXPECT_LE(test, bt.b.base.v, 5 * US);
	/* a second report of the same look does not count */
	b_init(10000);
	esp_budget_rtt(&bt.b, &bt.h[0], 1000, 1000, 2, bt.now);
	KUNIT_EXPECT_GT(test, bt.b.base.v, 50 * US);
	esp_budget_rtt(&bt.b, &bt.h[0], 1, 1, 2, bt.now + US);
	KUNIT_EXPECT_GT(test, bt.b.base.v, 50 * US);
}

static void budget__grow(struct kunit *test)
{
	static const u32 least[] = { 10 };
	u32 grow;
	int i;

	b_init(10000);
	b_report(1, least, 1, 1);
	/* round trips are 100 us longer than the shortest: cards hold packets back */
	esp_budget_rtt(&bt.b, &bt.h[0], 10, 110, 1, bt.now);
	b_look(500, false);
	KUNIT_EXPECT_EQ(test, bt.b.grow, 0u);	/* senders had nothing more to send */
	b_look(960, true);
	KUNIT_EXPECT_EQ(test, bt.b.grow, 0u);	/* the link is full */
	b_look(500, true);
	KUNIT_EXPECT_GT(test, bt.b.grow, 0u);
	KUNIT_EXPECT_EQ(test, bt.b.size, 9 + 4 + 8 + bt.b.grow);
	/* Little's law bounds it: the packets of 100 us */
	for (i = 0; i < 100; i++)
		b_look(500, true);
	KUNIT_EXPECT_EQ(test, bt.b.grow, 82u);
	b_look(990, true);
	grow = bt.b.grow;
	KUNIT_EXPECT_EQ(test, grow, 79u);
	/* a look that lasted too long tells nothing */
	bt.now += 60 * MS;
	esp_budget_look(&bt.b, true, bt.now);
	KUNIT_EXPECT_EQ(test, bt.b.grow, grow);
	/* the bound follows the round trips */
	esp_budget_rtt(&bt.b, &bt.h[0], 10, 15, 1, bt.now);
	b_look(970, true);
	KUNIT_EXPECT_EQ(test, bt.b.grow, 5u);
}

/* A packet of @i comes; its round trip is @rtt, us. */
static bool b_came(int i, bool busy, u32 rtt)
{
	return esp_host_came(&bt.b, &bt.h[i], 1, busy, rtt, bt.now);
}

static u32 b_cap(int i)
{
	return esp_host_cap(&bt.b, &bt.h[i], 5);
}

static void budget__lost(struct kunit *test)
{
	static const u32 least[] = { 100, 100 };

	b_init(10000);
	b_report(20, least, 2, 2);
	bt.b.grow = 100;
	/* no queue: an error of the wire */
	b_came(0, false, 140);
	esp_budget_lost(&bt.b, &bt.h[0], 40, bt.now);
	KUNIT_EXPECT_EQ(test, bt.b.grow, 100u);
	/* a queue longer than the budget explains; the host has half of the packets */
	esp_budget_rtt(&bt.b, &bt.h[0], 100, 100, 2, bt.now);
	b_came(0, false, 1000);
	atomic_set(&bt.h[0].outstanding, 20);
	esp_budget_lost(&bt.b, &bt.h[0], 40, bt.now);
	KUNIT_EXPECT_EQ(test, bt.b.grow, 85u);
	KUNIT_EXPECT_EQ(test, bt.b.calm, bt.now + 5 * MS);
	KUNIT_EXPECT_EQ(test, b_cap(0), (82u + 8 + 100) / 2);
	/* once a round trip */
	esp_budget_lost(&bt.b, &bt.h[0], 40, bt.now + 10 * US);
	KUNIT_EXPECT_EQ(test, bt.b.grow, 85u);
	/* another host's loss counts for its share, too */
	esp_budget_rtt(&bt.b, &bt.h[1], 100, 100, 2, bt.now);
	b_came(1, false, 1000);
	atomic_set(&bt.h[1].outstanding, 20);
	esp_budget_lost(&bt.b, &bt.h[1], 40, bt.now);
	KUNIT_EXPECT_EQ(test, bt.b.grow, 72u);
	/* the budget does not grow meanwhile, though the link is not full */
	bt.b.rtt.v = bt.b.base.v + 200 * US;
	b_look(500, true);
	KUNIT_EXPECT_EQ(test, bt.b.grow, 72u);
	bt.now += 10 * MS;
	b_look(500, true);
	KUNIT_EXPECT_GT(test, bt.b.grow, 72u);
	/* whatever is claimed */
	atomic_set(&bt.h[1].outstanding, 1000);
	bt.now += MS;
	esp_budget_lost(&bt.b, &bt.h[1], 0, bt.now);
	KUNIT_EXPECT_LE(test, bt.b.calm, bt.now + 10 * MS);
	KUNIT_EXPECT_GE(test, b_cap(1), 1u);
}

/* Once a queue has overflowed, packets that it delays are marks. */
static void budget__late(struct kunit *test)
{
	static const u32 least[] = { 100 };
	u32 cap;

	b_init(10000);
	b_report(20, least, 1, 2);
	b_came(0, false, 1000);
	esp_host_round(&bt.b, &bt.h[0], bt.now);
	KUNIT_EXPECT_EQ(test, b_cap(0), 90u);	/* nothing was lost */
	b_came(0, false, 1000);
	esp_budget_lost(&bt.b, &bt.h[0], 40, bt.now);
	cap = b_cap(0);
	KUNIT_EXPECT_EQ(test, cap, 45u);
	bt.now += MS;
	b_came(0, false, 1000);
	esp_host_round(&bt.b, &bt.h[0], bt.now);
	KUNIT_EXPECT_LT(test, b_cap(0), cap);
	cap = b_cap(0);
	b_came(0, false, 110);
	esp_host_round(&bt.b, &bt.h[0], bt.now);
	KUNIT_EXPECT_EQ(test, b_cap(0), cap + 1);
	bt.now += 10 * MS;
	b_came(0, false, 1000);
	esp_host_round(&bt.b, &bt.h[0], bt.now);
	KUNIT_EXPECT_EQ(test, b_cap(0), cap + 2);
}

static void budget__busy(struct kunit *test)
{
	static const u32 least[] = { 100, 100 };
	u32 cap;
	int i;

	b_init(10000);
	b_report(20, least, 2, 2);
	KUNIT_EXPECT_EQ(test, esp_host_cap(&bt.b, &bt.h[0], 1),
			esp_budget_limit(&bt.b, 1));
	KUNIT_EXPECT_EQ(test, b_cap(0), 82u + 8);
	/* one packet of four has BUSY: alpha becomes 1/4 */
	for (i = 0; i < 400; i++) {
		if (b_came(0, !(i % 4), 0))
			esp_host_round(&bt.b, &bt.h[0], bt.now);
		bt.now += 30 * US;
		if (b_came(0, false, 0))
			esp_host_round(&bt.b, &bt.h[0], bt.now);
	}
	KUNIT_EXPECT_GT(test, bt.h[0].alpha, 60u);
	KUNIT_EXPECT_LT(test, bt.h[0].alpha, 300u);
	KUNIT_EXPECT_LT(test, b_cap(0), 90u);
	KUNIT_EXPECT_EQ(test, b_cap(1), 90u);
	/* all of them: only the least remains */
	for (i = 0; i < 400; i++) {
		b_came(0, true, 0);
		bt.now += 100 * US;
		esp_host_round(&bt.b, &bt.h[0], bt.now);
	}
	KUNIT_EXPECT_EQ(test, b_cap(0), (u32)ESP_BUSY_LEAST);
	/* and a packet more each round trip afterwards, up to the largest */
	b_came(0, false, 0);
	esp_host_round(&bt.b, &bt.h[0], bt.now);
	cap = b_cap(0);
	KUNIT_EXPECT_EQ(test, cap, ESP_BUSY_LEAST + 1u);
	/* a round without a packet changes nothing */
	esp_host_round(&bt.b, &bt.h[0], bt.now);
	KUNIT_EXPECT_EQ(test, b_cap(0), cap);
	for (i = 0; i < 400; i++) {
		bt.now += 100 * US;
		if (b_came(0, false, 0))
			esp_host_round(&bt.b, &bt.h[0], bt.now);
	}
	KUNIT_EXPECT_EQ(test, b_cap(0), 90u);
	/* nothing is counted of a host without a signal, until the first one */
	KUNIT_EXPECT_EQ(test, bt.h[0].bounded, 0);
	bt.now += MS;
	KUNIT_EXPECT_FALSE(test, b_came(0, false, 0));
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].came), 0);
	KUNIT_EXPECT_TRUE(test, b_came(0, true, 0));
	esp_host_round(&bt.b, &bt.h[0], bt.now);
	KUNIT_EXPECT_EQ(test, bt.h[0].bounded, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].came), 1);
	KUNIT_EXPECT_FALSE(test, b_came(0, false, 0));
	bt.now += MS;
	KUNIT_EXPECT_TRUE(test, b_came(0, false, 0));
}

/* A host that claims a long way gets a bucket of twice the base round trip, no more. */
static void budget__far(struct kunit *test)
{
	static const u32 least[] = { 100, 100, 100, 100, 4000000 };

	b_init(10000);
	b_report(100, least, 5, 5);
	KUNIT_EXPECT_LE(test, b_cap(4), 2 * bt.b.bdp + 8);
	KUNIT_EXPECT_GT(test, b_cap(4), b_cap(0));
}

static void budget__pace(struct kunit *test)
{
	u32 wait;

	b_init(10000);
	esp_budget_spend(&bt.b, 16, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, false, bt.now), 0u);
	esp_budget_spend(&bt.b, 60, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, false, bt.now), 65010u);
	/* small packets take less time */
	esp_budget_spend(&bt.b, 12, bt.b.frame_bytes / 12, bt.now);
	KUNIT_EXPECT_LE(test, esp_budget_wait(&bt.b, false, bt.now), 66130u);
	/* no debt beyond a budget: a pause ends soon, whatever was granted */
	esp_budget_spend(&bt.b, 100000, 0, bt.now);
	KUNIT_EXPECT_LE(test, esp_budget_wait(&bt.b, false, bt.now),
			esp_budget_wire_time(&bt.b, bt.b.size) + 1);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, false, bt.now + MS), 0u);
	/* a sole sender's as far ahead as the budget has grown, up to a port */
	b_init(10000);
	bt.b.grow = 1000;
	esp_budget_limits(&bt.b, 0, ~0u, 64);
	esp_budget_spend(&bt.b, 16 + 64, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, true, bt.now), 0u);
	KUNIT_EXPECT_GT(test, esp_budget_wait(&bt.b, false, bt.now), 0u);
	esp_budget_spend(&bt.b, 16, 0, bt.now);
	KUNIT_EXPECT_GT(test, esp_budget_wait(&bt.b, true, bt.now), 0u);
	wait = esp_budget_wait(&bt.b, false, bt.now);
	bt.b.grow = 0;
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, true, bt.now), wait);
	/* slower links may run ahead by frames, not by time */
	b_init(100);
	esp_budget_spend(&bt.b, 17, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, false, bt.now), 0u);
	esp_budget_spend(&bt.b, 1, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, false, bt.now), 44741u);
	/* a rate that is told too low: 1.1 times what was measured */
	b_init(5000);
	b_look(1000, true);
	b_look(1000, true);
	esp_budget_spend(&bt.b, 40, 0, bt.now);
	KUNIT_EXPECT_EQ(test, (bt.b.paced - bt.now) / 40, 1118ull);
	/* nobody told a rate: what was measured paces nothing */
	b_init(0);
	b_look(800, true);
	b_look(800, true);
	esp_budget_spend(&bt.b, 1000, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, false, bt.now), 0u);
	/* what was granted a round trip ago need not be waited for */
	b_init(10000);
	esp_budget_spend(&bt.b, 64, 0, bt.now - 100 * US);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, false, bt.now), 0u);
}

static void budget__busy_from(struct kunit *test)
{
	static const u32 least[] = { 100 };

	b_init(10000);
	b_report(1, least, 1, 1);
	KUNIT_EXPECT_EQ(test, esp_budget_busy_from(&bt.b), 62u);
	esp_budget_rtt(&bt.b, &bt.h[0], 100, 1000, 1, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_busy_from(&bt.b), 610u);
}

static void budget__first_burst(struct kunit *test)
{
	static const u32 least[] = { 20, 100 };
	u32 window[20] = { 0 }, i;

	b_init(10000);
	b_report(1, least, 1, 1);
	/* nobody else begins: a BDP, and the packet that announces */
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, true, 0, bt.now), 17u + 1);
	b_report(1, least + 1, 1, 1);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 0, bt.now), (u32)ESP_PORT_FRAMES);
	/* handshakes tell half of what is left of the port, and one packet at least */
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, true, 0, bt.now), 32u);
	for (i = 32; i < ESP_PORT_FRAMES - 1;)
		i += esp_burst_size(&bt.b, true, 0, bt.now);
	KUNIT_EXPECT_EQ(test, i, (u32)ESP_PORT_FRAMES - 1);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, true, 0, bt.now), 1u);
	bt.now += 400 * US;
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, true, 0, bt.now), 1u);
	bt.now += 2 * MS;
	for (i = 0; i < 16; i++)
		esp_burst_begins(&bt.b, &window[i], bt.now);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, true, 0, bt.now), 4u);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 0, bt.now), 4u);
	/* the same connection again is not another one */
	for (i = 0; i < 10; i++) {
		esp_burst_begins(&bt.b, &window[0], bt.now);
		bt.now += 300 * US;
	}
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 0, bt.now), 4u);
	/* a handshake looks at the present; others may begin together again for a while */
	bt.now += 50 * MS;
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, true, 0, bt.now), ESP_PORT_FRAMES / 2u);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 0, bt.now), 4u);
	bt.now += 250 * MS;
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 0, bt.now), (u32)ESP_PORT_FRAMES);
	/* transmissions that last longer end together, and begin again */
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 32, bt.now), 2u);
	bt.now += 50 * MS;
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 1, bt.now), 2u);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, true, 1, bt.now), ESP_PORT_FRAMES / 2u);
	/* more than the port has frames: none */
	for (i = 0; i < 65; i++) {
		window[0] = 0;
		esp_burst_begins(&bt.b, &window[0], bt.now);
	}
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 0, bt.now), 0u);
	/* with a small BDP it is as many as an ACK is for, while few begin */
	b_init(1000);
	b_report(1, least, 1, 1);
	KUNIT_EXPECT_EQ(test, bt.b.bdp, 2u);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, true, 0, bt.now), 3u);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 4, bt.now), 16u);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, false, 8, bt.now), 8u);
}

/* A clock that another processor has read earlier, and values that no peer can have measured. */
static void budget__extremes(struct kunit *test)
{
	u32 i, mbit[] = { 1, 10, 400000, ~0u };

	for (i = 0; i < ARRAY_SIZE(mbit); i++) {
		b_init(mbit[i]);
		esp_budget_rtt(&bt.b, &bt.h[0], ~0u, ~0u, 1, bt.now);
		KUNIT_EXPECT_GE(test, bt.b.size, bt.b.bdp);
		esp_budget_rtt(&bt.b, &bt.h[0], 0, 0, 1, bt.now);
		KUNIT_EXPECT_GE(test, bt.b.bdp, 2u);
		esp_budget_spend(&bt.b, ~0u, 0, bt.now);
		KUNIT_EXPECT_LE(test, esp_budget_wait(&bt.b, i % 2, 0), (u32)ESP_STALE_NS);
		atomic_add(~0u, &bt.b.bytes);
		esp_budget_look(&bt.b, true, bt.now + MS);
		esp_budget_look(&bt.b, true, bt.now);
		esp_budget_look(&bt.b, true, ~0ull);
		KUNIT_EXPECT_GE(test, bt.b.frame, 1u);
		b_came(0, true, ~0u);
		esp_budget_lost(&bt.b, &bt.h[0], -5, bt.now);
		esp_host_round(&bt.b, &bt.h[0], bt.now);
		KUNIT_EXPECT_GE(test, b_cap(0), 1u);
	}
}

/* The administrator's bounds hold, and the upper one first. */
static void budget__limits(struct kunit *test)
{
	b_init(10000);
	KUNIT_EXPECT_GT(test, bt.b.size, 20u);
	esp_budget_limits(&bt.b, 1, 20, 7);
	KUNIT_EXPECT_EQ(test, bt.b.size, 20u);
	KUNIT_EXPECT_LE(test, esp_burst_size(&bt.b, true, 0, bt.now), 7u);
	esp_budget_limits(&bt.b, 500, 600, 64);
	KUNIT_EXPECT_EQ(test, bt.b.size, 500u);
	esp_budget_limits(&bt.b, 500, 0, 0);
	KUNIT_EXPECT_EQ(test, bt.b.size, 1u);
	KUNIT_EXPECT_EQ(test, esp_burst_size(&bt.b, true, 0, bt.now), 0u);
}

static struct kunit_case budget_cases[] = {
	KUNIT_CASE(budget__limits),
	KUNIT_CASE(budget__rate),
	KUNIT_CASE(budget__size),
	KUNIT_CASE(budget__base),
	KUNIT_CASE(budget__grow),
	KUNIT_CASE(budget__lost),
	KUNIT_CASE(budget__late),
	KUNIT_CASE(budget__busy),
	KUNIT_CASE(budget__far),
	KUNIT_CASE(budget__pace),
	KUNIT_CASE(budget__busy_from),
	KUNIT_CASE(budget__first_burst),
	KUNIT_CASE(budget__extremes),
	{}
};
