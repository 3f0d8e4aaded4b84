// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of budget.c, turn.c and overdue.c, and of ackq.c with hosts that have some sockets.
 * Included by suite.c, and in user space by selftests/unit/host-pure.c.
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
			esp_budget_limit(&bt.b, &bt.h[0], 1));
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
	b_init(10000);
	esp_budget_spend(&bt.b, 16, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, bt.now), 0u);
	esp_budget_spend(&bt.b, 60, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, bt.now), 65010u);
	/* small packets take less time */
	esp_budget_spend(&bt.b, 12, bt.b.frame_bytes / 12, bt.now);
	KUNIT_EXPECT_LE(test, esp_budget_wait(&bt.b, bt.now), 66130u);
	/* no debt beyond a budget: a pause ends soon, whatever was granted */
	esp_budget_spend(&bt.b, 100000, 0, bt.now);
	KUNIT_EXPECT_LE(test, esp_budget_wait(&bt.b, bt.now),
			esp_budget_wire_time(&bt.b, bt.b.size) + 1);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, bt.now + MS), 0u);
	/* slower links may run ahead by frames, not by time */
	b_init(100);
	esp_budget_spend(&bt.b, 17, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, bt.now), 0u);
	esp_budget_spend(&bt.b, 1, 0, bt.now);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, bt.now), 44741u);
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
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, bt.now), 0u);
	/* what was granted a round trip ago need not be waited for */
	b_init(10000);
	esp_budget_spend(&bt.b, 64, 0, bt.now - 100 * US);
	KUNIT_EXPECT_EQ(test, esp_budget_wait(&bt.b, bt.now), 0u);
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
		KUNIT_EXPECT_LE(test, esp_budget_wait(&bt.b, 0), (u32)ESP_STALE_NS);
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

/* Hosts, each with some grants; their turns as letters would show them. */
static struct {
	struct esp_turns	t;
	struct esp_turn		h[3];
	struct esp_turn_grant	g[6];	/* of host i / 2 */
} tt;

static void tt_add(int i, u32 len)
{
	esp_turn_add(&tt.t, &tt.h[i / 2], &tt.g[i], esp_turn_class(len), false);
}

/* Let a grant leave and, if @again, queue it again. Returns its number; -1: none. */
static int tt_next(bool again)
{
	struct esp_turn *h = esp_turn_host(&tt.t);
	struct esp_turn_grant *g;
	u8 class;

	if (!h)
		return -1;
	g = esp_turn_next(&tt.t, h);
	class = g->class;
	esp_turn_del(&tt.t, h, g);
	if (again)
		esp_turn_add(&tt.t, h, g, class, false);
	esp_turn_over(&tt.t, h, 1);
	return g - tt.g;
}

static void tt_reset(void)
{
	int i;

	memset(&tt, 0, sizeof(tt));
	esp_turns_init(&tt.t);
	for (i = 0; i < 3; i++)
		esp_turn_init(&tt.h[i]);
}

static void turn__class(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, esp_turn_class(0), 0);
	KUNIT_EXPECT_EQ(test, esp_turn_class(3), 0);
	KUNIT_EXPECT_EQ(test, esp_turn_class(4), 1);
	KUNIT_EXPECT_EQ(test, esp_turn_class(16), 2);
	KUNIT_EXPECT_EQ(test, esp_turn_class(16383), 6);
	KUNIT_EXPECT_EQ(test, esp_turn_class(16384), 7);
	KUNIT_EXPECT_EQ(test, esp_turn_class(~0u), ESP_CLASSES - 1);
}

static void turn__order(struct kunit *test)
{
	tt_reset();
	KUNIT_EXPECT_EQ(test, tt_next(false), -1);
	tt_add(0, 1000);
	tt_add(1, 2);		/* of the same host */
	tt_add(2, 10);
	tt_add(4, 2);
	KUNIT_EXPECT_EQ(test, tt_next(false), 1);	/* shortest class, first come */
	KUNIT_EXPECT_EQ(test, tt_next(false), 4);
	KUNIT_EXPECT_EQ(test, tt_next(false), 2);
	KUNIT_EXPECT_EQ(test, tt_next(false), 0);
	KUNIT_EXPECT_EQ(test, tt_next(false), -1);
}

/* Hosts take turns, however many grants one of them has. */
static void turn__hosts(struct kunit *test)
{
	tt_reset();
	tt_add(0, 100);
	tt_add(1, 100);
	tt_add(2, 100);
	KUNIT_EXPECT_EQ(test, tt_next(true), 0);
	KUNIT_EXPECT_EQ(test, tt_next(true), 2);
	KUNIT_EXPECT_EQ(test, tt_next(true), 1);
	KUNIT_EXPECT_EQ(test, tt_next(true), 2);
	KUNIT_EXPECT_EQ(test, tt_next(true), 0);
}

/* A long message gets each eighth turn beside short ones without end. */
static void turn__fifo(struct kunit *test)
{
	int i, n = 0;

	tt_reset();
	tt_add(0, 1000);
	tt_add(2, 2);
	tt_add(4, 2);
	for (i = 0; i < 24 * ESP_TURN_FIFO; i++)
		n += tt_next(true) == 0;
	KUNIT_EXPECT_GE(test, n, 24 / 3);
	/* only by waiting time */
	tt_reset();
	tt.t.every = 1;
	tt_add(0, 1000);
	tt_add(2, 2);
	KUNIT_EXPECT_EQ(test, tt_next(true), 0);
	KUNIT_EXPECT_EQ(test, tt_next(true), 2);
	KUNIT_EXPECT_EQ(test, tt_next(true), 0);
}

static void turn__park(struct kunit *test)
{
	tt_reset();
	tt_add(0, 2);
	tt_add(2, 100);
	esp_turn_park(&tt.t, &tt.h[0], true);
	esp_turn_park(&tt.t, &tt.h[0], true);
	KUNIT_EXPECT_EQ(test, tt.t.full, 1u);
	KUNIT_EXPECT_EQ(test, tt_next(true), 2);
	tt_add(1, 2);		/* still parked */
	KUNIT_EXPECT_EQ(test, tt_next(false), 2);
	KUNIT_EXPECT_EQ(test, tt_next(false), -1);
	esp_turn_unpark(&tt.t, &tt.h[0]);
	KUNIT_EXPECT_EQ(test, tt.t.full, 0u);
	KUNIT_EXPECT_EQ(test, tt_next(false), 0);
	/* a parked host whose last grant is withdrawn is like new */
	esp_turn_park(&tt.t, &tt.h[0], true);
	esp_turn_del(&tt.t, &tt.h[0], &tt.g[1]);
	KUNIT_EXPECT_EQ(test, tt.t.full, 0u);
	KUNIT_EXPECT_FALSE(test, tt.h[0].parked);
	KUNIT_EXPECT_EQ(test, tt_next(false), -1);
}

/* The queue of ackq.c's tests, with a slower link. Sockets 0 and 1 are of one host. */
static void tb_init(void)
{
	int i;

	b_init(10000);
	t_init(&adaptive_policy, 0, 1000);
	t.now = bt.now;
	t.q.budget = &bt.b;
	for (i = 0; i < T_GRANTS; i++)
		t.g[i].host = &bt.h[i / 2];
	bt.b.base.v = 10 * US;
	bt.b.rtt.v = 10 * US;
	esp_budget_rate(&bt.b, 10000, 1500);	/* 9 + 4 + 8 packets */
}

/* A sender announces @len packets; the first one has come. */
static void tb_announce(int i, u32 len)
{
	t_left(i, len);
	t.now += MS;		/* the pace has no say */
	t_announce(i, 0);
}

static u32 tb_granted(int i)
{
	return t.g[i].edge - t.g[i].recv_seq;
}

/* A packet arrives, after the time of several: the pace has no say. */
static void tb_arrive(int i)
{
	t.now += US;		/* and one in t_arrive() */
	t_arrive(i);
}

/* Packets that the host of the sockets 0 and 1 may have outstanding. */
static u32 tb_limit(void)
{
	return esp_budget_limit(&bt.b, &bt.h[0], atomic_read(&t.q.esp_recv_count));
}

static void ackq_budget__one(struct kunit *test)
{
	u32 i;

	tb_init();
	tb_announce(0, 6);
	KUNIT_EXPECT_EQ(test, tb_granted(0), 5u);	/* not beyond what is left */
	KUNIT_EXPECT_EQ(test, t.q.qlen, 0u);
	tb_announce(2, 1000);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);	/* the budget */
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 5);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[1].outstanding), 16);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 1u);
	for (i = 0; i < 40; i++) {
		t.now += 10 * US;
		t_arrive(2);
		KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), 21 + (int)t.q.overdue.tokens);
		KUNIT_EXPECT_LE(test, atomic_read(&bt.h[1].outstanding), 17);
	}
	/* the link doesn't wait for ever for a host that sends nothing */
	KUNIT_EXPECT_EQ(test, bt.h[0].overdue, 5u);
	KUNIT_EXPECT_EQ(test, t.q.overdue.tokens, 5u);
	KUNIT_EXPECT_GE(test, tb_granted(2), 12u);
	t_end(2);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[1].outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 5);
}

/*
 * A sole sender that has sent as much as a port has room for has a GSO packet beyond the BDP, and
 * waits for a grant of that size.
 */
static void ackq_budget__sole(struct kunit *test)
{
	u32 i, limit, edge;

	tb_init();
	limit = 9 + 44 + 8;
	tb_announce(0, 1000);
	KUNIT_EXPECT_EQ(test, tb_granted(0), 21u);
	for (i = 0; i < 64; i++)
		tb_arrive(0);
	KUNIT_EXPECT_LE(test, tb_granted(0), limit);
	while (tb_granted(0) > limit - 44 + 1) {
		tb_arrive(0);
		KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), (int)limit);
	}
	tb_arrive(0);
	KUNIT_EXPECT_EQ(test, tb_granted(0), limit);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), (int)limit);
	/* while packets are missing, the budget counts again: their tokens are not back */
	t.g[0].ooo_pkts = 3;
	edge = t.g[0].edge;
	while (atomic_read(&t.q.outstanding) > 21) {
		tb_arrive(0);
		KUNIT_EXPECT_EQ(test, t.g[0].edge, edge);
	}
	for (i = 0; i < 16; i++) {
		tb_arrive(0);
		KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), 21);
	}
	KUNIT_EXPECT_GT(test, t.g[0].edge, edge);
	t.g[0].ooo_pkts = 0;
	KUNIT_EXPECT_EQ(test, tb_limit(), limit);
	/* so it does beside another one, and as long as both may begin together again */
	tb_announce(2, 1000);
	KUNIT_EXPECT_EQ(test, tb_limit(), 21u);
	t_end(2);
	esp_burst_size(&bt.b, false, 2, t.now);
	KUNIT_EXPECT_EQ(test, tb_limit(), 21u);
	for (i = 0; i < 2; i++) {	/* it goes on sending */
		t.now += 150 * MS;
		esp_ackq_rtt(&t.q, &t.g[0], 10, 10, t.now);
	}
	KUNIT_EXPECT_EQ(test, tb_limit(), limit);
	/* a transmission after a pause begins like the first one */
	while (tb_granted(0))
		tb_arrive(0);
	t_end(0);
	t.now += MS;
	tb_announce(0, 1000);
	for (i = 0; i < 60; i++) {
		tb_arrive(0);
		KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), 21);
	}
}

/* With a budget that is small, a sole sender's next grant leaves before all packets are here. */
static void ackq_budget__sole_small(struct kunit *test)
{
	u32 i, most, open, edge;

	for (most = 32; most <= 64; most += 32) {
		tb_init();
		esp_budget_limits(&bt.b, 8, most, 64);
		if (most == 64)
			esp_host_came_whole(&bt.h[0], true, false);
		tb_announce(0, 1000);
		for (i = 0; i < 300; i++) {
			open = tb_granted(0);
			edge = t.g[0].edge;
			tb_arrive(0);
			KUNIT_EXPECT_TRUE(test, t.g[0].edge == edge || open > 10);
			KUNIT_EXPECT_LE(test, tb_granted(0), most);
		}
	}
}

/* A host that has ended its transmission, and holds back packets, stops no sole sender. */
static void ackq_budget__sole_waits(struct kunit *test)
{
	u32 i, looks;

	tb_init();
	tb_announce(0, 1000);
	for (i = 0; i < 64; i++)
		tb_arrive(0);
	atomic_add(25, &bt.h[1].outstanding);
	atomic_add(25, &t.q.outstanding);
	esp_overdue_granted(&t.q.overdue, &bt.h[1], 25, t.now + esp_budget_due(&bt.b));
	esp_ackq_gap(&t.q);	/* as such an announcement would */
	for (i = 0; i < 300; i++) {
		for (looks = 0; looks < 3 && !tb_granted(0); looks++) {
			t.now += t.later;
			esp_ackq_resume(&t.q);
		}
		KUNIT_EXPECT_GT(test, tb_granted(0), 0u);
		tb_arrive(0);
	}
	KUNIT_EXPECT_EQ(test, t.q.overdue.tokens, 25u);
	KUNIT_EXPECT_EQ(test, tb_granted(0) + 25, (u32)atomic_read(&t.q.outstanding));
}

/* A sole sender's grant waits for half of what memory has room for, at most. */
static void ackq_budget__sole_memory(struct kunit *test)
{
	u32 i;

	tb_init();
	tb_announce(0, 1000);
	for (i = 0; i < 64; i++)
		tb_arrive(0);
	t.room[0] = 30;
	while (tb_granted(0) > 16)
		tb_arrive(0);
	t.nsent = 0;
	tb_arrive(0);
	KUNIT_EXPECT_EQ(test, t.nsent, 1);
	KUNIT_EXPECT_EQ(test, tb_granted(0), 30u);
	/* this is not the budget's doing: the link may be able to carry more */
	KUNIT_EXPECT_EQ(test, bt.b.idle, t.now);
	/* without memory, it leaves when all that was granted is here, and says so */
	t.room[0] = 0;
	while (tb_granted(0))
		tb_arrive(0);
	KUNIT_EXPECT_EQ(test, t.g[0].rcv_mem_pressure, 1);
}

/* Without a wire there is no port, so a sole sender has several GSO packets. */
static void ackq_budget__near(struct kunit *test)
{
	u32 i;

	tb_init();
	tb_announce(0, 1000);
	for (i = 0; i < 64; i++)
		tb_arrive(0);
	esp_host_came_whole(&bt.h[0], true, false);
	KUNIT_EXPECT_EQ(test, tb_limit(), 9u + 176 + 8);
	for (i = 0; i < ESP_NEAR_SINGLES; i++) {
		KUNIT_EXPECT_EQ(test, tb_limit(), 9u + 176 + 8);
		esp_host_came_whole(&bt.h[0], false, false);
	}
	KUNIT_EXPECT_EQ(test, tb_limit(), 9u + 44 + 8);
	esp_host_came_whole(&bt.h[0], true, false);
	/* what GRO has merged was on a wire */
	esp_host_came_whole(&bt.h[0], false, true);
	KUNIT_EXPECT_EQ(test, tb_limit(), 9u + 44 + 8);
	esp_host_came_whole(&bt.h[0], true, false);
	KUNIT_EXPECT_EQ(test, esp_host_grant(&bt.h[0], false), 88u);
	KUNIT_EXPECT_EQ(test, esp_host_grant(&bt.h[0], true), 176u);
	/* and a queue that has dropped packets is one */
	esp_budget_rtt(&bt.b, &bt.h[0], 10, 10, 2, t.now);
	b_came(0, false, 1000);
	esp_budget_lost(&bt.b, &bt.h[0], 40, t.now);
	KUNIT_EXPECT_EQ(test, tb_limit(), 9u + 44 + 8);
}

/* Packets that arrive pump when a grant may leave, and not before. */
static void ackq_budget__leaves_at(struct kunit *test)
{
	bool pump;
	int most;

	tb_init();
	most = 21 - esp_budget_quantum(&bt.b);
	atomic_set(&t.q.esp_recv_count, 1);
	tb_announce(0, 1000);
	tb_announce(2, 1000);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);
	do {
		pump = esp_ackq_arrived(&t.q, &t.g[2], t.g[2].recv_seq++, 1);
		KUNIT_EXPECT_EQ(test, pump, atomic_read(&t.q.outstanding) <= most);
	} while (!pump);
	/* a packet that is missing may have been what the grant waited for */
	esp_ack_pump(&t.q);
	t.g[2].ooo_pkts = 1;
	esp_ackq_gap(&t.q);
	KUNIT_EXPECT_TRUE(test, esp_ackq_arrived(&t.q, &t.g[2], t.g[2].recv_seq++, 1));
}

/* A host whose bucket is empty waits aside, and others get what it may not have. */
static void ackq_budget__park(struct kunit *test)
{
	tb_init();
	bt.h[0].busy_cap = 4 * ESP_BUCKET_UNIT;
	atomic_set(&t.q.esp_recv_count, 1);	/* another one, so that buckets count */
	tb_announce(0, 100);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 4);
	KUNIT_EXPECT_TRUE(test, bt.h[0].turn.parked);
	tb_announce(1, 100);			/* of the same host */
	KUNIT_EXPECT_EQ(test, tb_granted(1), 0u);
	tb_announce(2, 3);			/* of another one */
	KUNIT_EXPECT_EQ(test, tb_granted(2), 2u);
	t_arrive(0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 3);	/* no complete grant yet */
	t_arrive(0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 4);
	KUNIT_EXPECT_EQ(test, tb_granted(1), 0u);
	t_arrive(0);
	t_arrive(0);
	KUNIT_EXPECT_EQ(test, tb_granted(1), 2u);		/* in turn */
	/* the end of a transmission gives its packets to the other one */
	t_end(0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 4);
	KUNIT_EXPECT_EQ(test, tb_granted(1), 4u);
	t_end(1);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 0);
	KUNIT_EXPECT_FALSE(test, bt.h[0].turn.parked);
}

/* A first burst counts as far as the host's bucket has room. */
static void ackq_budget__first_burst(struct kunit *test)
{
	tb_init();
	atomic_set(&t.q.esp_recv_count, 1);
	t_left(0, 1000);
	t.g[0].recv_seq++;
	esp_ackq_announced(&t.q, &t.g[0], t.g[0].recv_seq, t.g[0].recv_seq + 64);
	KUNIT_EXPECT_EQ(test, tb_granted(0), 64u);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 17);
	t.g[1].recv_seq++;
	esp_ackq_announced(&t.q, &t.g[1], t.g[1].recv_seq, t.g[1].recv_seq + 64);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 17);
	t_end(0);
	t_end(1);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 0);
}

/* Grants that expire, again and again, leave the host one token. */
static void ackq_budget__expired(struct kunit *test)
{
	u32 i;

	tb_init();
	atomic_set(&t.q.esp_recv_count, 1);
	tb_announce(0, 100);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 16);
	for (i = 0; i < 6; i++) {
		t.now += 10 * MS;
		esp_ackq_void(&t.q, &t.g[0]);
		esp_ackq_expired(&t.q, &t.g[0], i);
		esp_ack_pump(&t.q);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 1);
	/* silence is no sign of a queue: the host may have been busy with other things */
	KUNIT_EXPECT_GE(test, esp_host_cap(&bt.b, &bt.h[0], 1), bt.b.size);
}

/* The class follows a message that grows, and not one that comes to its end. */
static void ackq_budget__class(struct kunit *test)
{
	tb_init();
	tb_announce(0, 10);
	KUNIT_EXPECT_EQ(test, t.g[0].class, 1);
	t_arrive(0);
	esp_ackq_left(&t.g[0], t.g[0].recv_seq + 5);	/* no more than before */
	KUNIT_EXPECT_EQ(test, t.g[0].class, 1);
	esp_ackq_left(&t.g[0], t.g[0].recv_seq + 300);
	KUNIT_EXPECT_EQ(test, t.g[0].class, 4);
	KUNIT_EXPECT_TRUE(test, esp_ackq_wants(&t.g[0]));
}

/* A connection on which nothing is announced does not set the base of another one's link. */
static void ackq_budget__idle_peer(struct kunit *test)
{
	tb_init();
	tb_announce(0, 1000);
	esp_ackq_rtt(&t.q, &t.g[0], 10, 12, t.now);
	KUNIT_EXPECT_EQ(test, bt.b.base.v, 10 * US);
	esp_ackq_rtt(&t.q, &t.g[2], 40000, 40000, t.now);
	KUNIT_EXPECT_LE(test, bt.b.base.v, 20 * US);
	esp_ackq_rtt(&t.q, &t.g[0], 10, 12, t.now);
	KUNIT_EXPECT_LE(test, bt.b.base.v, 20 * US);
}

/* A host that is alone sets the base, but not after others: a lie in their pause would stay. */
static void ackq_budget__sole_peer(struct kunit *test)
{
	int i;

	tb_init();
	for (i = 0; i < 100; i++) {
		t.now += MS;
		esp_ackq_rtt(&t.q, &t.g[0], 10, 12, t.now);
	}
	tb_announce(2, 1000);
	for (i = 0; i < 3; i++)
		esp_ackq_rtt(&t.q, &t.g[2], 40000, 40000, t.now);
	KUNIT_EXPECT_LE(test, bt.b.base.v, 20 * US);
	t.now += 11000 * MS;
	esp_ackq_rtt(&t.q, &t.g[2], 40, 40, t.now);
	KUNIT_EXPECT_EQ(test, bt.b.base.v, 40 * US);
}

/*
 * The policy changes while grants of hosts that take turns, and of one that is parked, are queued.
 * None is lost, and each one leaves.
 */
static void ackq_budget__switch(struct kunit *test)
{
	struct esp_policy p = seed_policy;
	int i, round, queued;

	tb_init();
	bt.h[0].loss_cap = 2 * ESP_BUCKET_UNIT;
	for (i = 0; i < T_GRANTS; i++)
		tb_announce(i, 1000);
	KUNIT_EXPECT_TRUE(test, bt.h[0].turn.parked);
	queued = t.q.qlen;
	KUNIT_EXPECT_GE(test, queued, 3);
	for (round = 0; round < 4; round++) {
		p.adaptive = round & 1;
		p.q_min = 1;
		p.q_max = 4096;
		p.burst_length = 8;
		esp_ackq_policy(&t.q, &p);
		KUNIT_EXPECT_EQ(test, !t.q.turns.classes && list_empty(&t.q.turns.parked),
				!p.adaptive || !t.q.qlen);
		KUNIT_EXPECT_EQ(test, list_empty(&t.q.esp_ack_queue), p.adaptive || !t.q.qlen);
		for (i = 0, queued = 0; i < T_GRANTS; i++)
			queued += t.g[i].queued;
		KUNIT_EXPECT_EQ(test, t.q.qlen, (u32)queued);
		for (i = 0; i < T_GRANTS; i++) {
			t.now += MS;
			if (atomic_read(&t.g[i].outstanding))
				t_arrive(i);
			esp_ackq_resume(&t.q);
		}
	}
	for (i = 0; i < T_GRANTS; i++)
		t_end(i);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 0u);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[i].outstanding), 0);
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
	KUNIT_CASE(ackq_budget__switch),
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
	KUNIT_CASE(turn__class),
	KUNIT_CASE(turn__order),
	KUNIT_CASE(turn__hosts),
	KUNIT_CASE(turn__fifo),
	KUNIT_CASE(turn__park),
	KUNIT_CASE(ackq_budget__one),
	KUNIT_CASE(ackq_budget__sole),
	KUNIT_CASE(ackq_budget__sole_small),
	KUNIT_CASE(ackq_budget__sole_waits),
	KUNIT_CASE(ackq_budget__sole_memory),
	KUNIT_CASE(ackq_budget__near),
	KUNIT_CASE(ackq_budget__leaves_at),
	KUNIT_CASE(ackq_budget__park),
	KUNIT_CASE(ackq_budget__first_burst),
	KUNIT_CASE(ackq_budget__expired),
	KUNIT_CASE(ackq_budget__class),
	KUNIT_CASE(ackq_budget__idle_peer),
	KUNIT_CASE(ackq_budget__sole_peer),
	{}
};
