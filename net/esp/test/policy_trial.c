// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of policy.c's trials: is it the budget that makes round trips long (rule 22)?
 * Included by suite.c, and in user space by selftests/unit/host-pure.c, after policy.c.
 */

/*
 * A path, all of whose budget is on its way. A frame takes @frame ns on the link, a round
 * trip @base us when nothing is sent, and @hold more because cards hold interrupts back;
 * @others us of the others' frames stand in the port.
 */
struct test_path {
	u32	frame;
	u32	base;
	u32	hold;
	u32	others;
};

static u64 path_rounds(struct esp_qctl *c, const struct test_path *path, int n, int count,
		       u64 now)
{
	while (n--) {
		u32 flying = count <= 1 ? max(c->q, c->lone) : c->q;
		u32 rtt = path->base + path->hold, full = flying * path->frame / 1000;

		rtt = max(rtt, full) + path->others;
		c->total += path->others ? (rtt + 1) * 1000 / path->frame : flying;
		c->limited = 1;
		esp_qctl_sample(c, &adaptive_policy, count, rtt, path->base, now += rtt + 1);
	}
	return now;
}

/* Rule 22: round trips that are long because of cards are no queue. */
static void qctl__card_holds_back(struct kunit *test)
{
	const struct test_path path[] = {
		{ 1230, 60, 200, 0 },		/* 10 Gbit/s */
		{ 1230, 20, 500, 0 },
		{ 12304, 60, 300, 0 },		/* 1 Gbit/s */
	};
	int i, count;

	for (i = 0; i < ARRAY_SIZE(path); i++) {
		u32 need = (path[i].base + path[i].hold) * 1000 / path[i].frame;

		for (count = 1; count <= 8; count += 7) {
			struct esp_qctl c;
			u64 now = 1000000;
			int n, low = 0;

			qctl_init(&c);
			c.frame.cur = path[i].frame;
			c.frame.prev = path[i].frame;
			now = path_rounds(&c, &path[i], 500, count, now);
			for (n = 0; n < 1000; n++) {
				now = path_rounds(&c, &path[i], 1, count, now);
				KUNIT_EXPECT_LE(test, c.q, max(2 * need, 64u));
				low += max(c.q, count == 1 ? c.lone : 0) < need * 3 / 4;
			}
			/* hardly ever has anybody to wait for permission */
			KUNIT_EXPECT_LE(test, low, 50);
			/* no card does so any more: no queue is left */
			now = path_rounds(&c, &(struct test_path){ path[i].frame, 60, 0, 0 },
					  2 * ESP_DRAIN_US / 60, count, now);
			KUNIT_EXPECT_LE(test, c.q, max(140 * 1000 / path[i].frame * 5 / 4,
						       count == 1 ? c.lone : 18));
		}
	}
}

/* A budget that was cut for nothing is given back, soon; not if nobody missed it. */
static void qctl__cut_on_trial(struct kunit *test)
{
	const struct test_path known = { 1230, 210, 0, 0 }, held = { 1230, 60, 150, 0 };
	const struct test_path full = { 1230, 60, 0, 0 };
	u64 now = 1000000, then;
	struct esp_qctl c;
	u32 q, n;

	qctl_init(&c);
	c.frame.cur = 1230;
	c.frame.prev = 1230;
	now = path_rounds(&c, &known, 100, 8, now);
	q = c.q;
	KUNIT_EXPECT_GE(test, q, 150u);
	then = path_rounds(&c, &held, 30, 8, now);
	KUNIT_EXPECT_GE(test, c.q, q);
	KUNIT_EXPECT_GE(test, c.held, 140u);
	/* and then only what brings more stays */
	n = c.q;
	then = path_rounds(&c, &held, 100, 8, then);
	KUNIT_EXPECT_LE(test, c.q, n * 5 / 4 + 1);

	qctl_init(&c);
	c.frame.cur = 1230;
	c.frame.prev = 1230;
	now = path_rounds(&c, &known, 100, 8, now);
	path_rounds(&c, &full, 30, 8, now);
	KUNIT_EXPECT_LE(test, c.q, q * 3 / 4);
	KUNIT_EXPECT_EQ(test, c.held, 0u);
}

/* Pass round trips that are @extra longer than the smallest; @n packets come in each. */
static u64 tried_rounds(struct esp_qctl *c, int times, u32 min_rtt, u32 extra, u32 n, u64 now)
{
	u32 rtt = min_rtt + extra;

	for (; times; times--) {
		c->limited = 1;
		c->total += n;
		esp_qctl_sample(c, &adaptive_policy, 8, rtt, min_rtt, now += rtt + 1);
	}
	return now;
}

/* Frames that come many at a time: of a few round trips chance would tell. */
static void qctl__tried_long_enough(struct kunit *test)
{
	struct esp_qctl c;
	u64 now = 1000000;
	u32 q;

	qctl_init(&c);
	c.q = 107;
	now = tried_rounds(&c, 3, 100, 45, 120, now);
	now = tried_rounds(&c, 1, 100, 60, 120, now);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_LESS);
	q = c.q;
	KUNIT_EXPECT_LT(test, q, 107u * 7 / 8);
	now = tried_rounds(&c, 1, 100, 45, 120, now + 160);
	/* one bunch of them has not come yet */
	now = tried_rounds(&c, 2, 100, 45, 90, now);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_LESS);
	now = tried_rounds(&c, 1, 100, 45, 180, now);
	tried_rounds(&c, ESP_TRY_LOOKS, 100, 45, 120, now);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	KUNIT_EXPECT_EQ(test, c.held, 0u);
	KUNIT_EXPECT_LT(test, c.q, 107u * 7 / 8);
}

/* One sender's shortest round trip was luck: the others may not wait so much longer. */
static void qctl__held_by_luck(struct kunit *test)
{
	struct esp_qctl c;
	u64 now = 1000000;

	qctl_init(&c);
	c.q = 100;
	now = tried_rounds(&c, 3, 90, 45, 100, now);
	now = tried_rounds(&c, 1, 30, 120, 120, now);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_LESS);
	now = tried_rounds(&c, 1, 90, 40, 50, now + 150);
	tried_rounds(&c, ESP_TRY_LOOKS + 1, 90, 40, 50, now);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	KUNIT_EXPECT_EQ(test, c.q, 100u);		/* less came through */
	KUNIT_EXPECT_EQ(test, c.held, 40u + ESP_EXTRA_US);
}

/* A lone sender's grants leave whole: what more of a budget brings is counted in them. */
static void qctl__tried_in_grants(struct kunit *test)
{
	struct esp_qctl c;
	u64 now = 1000000;
	int i;

	qctl_init(&c);
	c.fast = 0;
	c.q = 41;
	for (i = 0; i < 200; i++) {
		u32 grant = grant_of(&adaptive_policy, c.q, c.q, 1);

		c.limited = 1;
		c.total += DIV_ROUND_UP(c.q, grant) * grant;
		esp_qctl_sample(&c, &adaptive_policy, 1, 520, 250, now += 521);
	}
	/* with 41 it is 50 packets, with 52 it would be 52 */
	KUNIT_EXPECT_GE(test, c.q, 160u);
}

/* A full link: whatever a lone sender's budget, no more comes through, and it stays. */
static void qctl__tried_in_vain(struct kunit *test)
{
	u32 q;

	for (q = 40; q <= 159; q++) {
		struct esp_qctl c;
		u64 now = 1000000;
		int i, tried = 0;

		qctl_init(&c);
		c.frame.cur = 12304;
		c.frame.prev = 12304;
		c.drained = now;
		c.fast = 0;
		c.held = 200;
		c.q = q;
		for (i = 0; i < 60; i++) {
			c.limited = 1;
			c.total += 106;
			esp_qctl_sample(&c, &adaptive_policy, 1, 1300, 1200, now += 1304);
			tried += c.trial == ESP_TRY_MORE && !c.looks;
			KUNIT_EXPECT_LE(test, c.q, 192u);
		}
		/* twice as in the table, where the next larger one takes too long */
		KUNIT_EXPECT_LE(test, c.q, q + q / 8 + 2);
		KUNIT_EXPECT_GT(test, tried, 0);
	}
}

/* A lone sender's cut is given back like any other, whatever the grants. */
static void qctl__lone_cut_on_trial(struct kunit *test)
{
	struct esp_qctl c;
	u64 now = 1000000;

	qctl_init(&c);
	c.fast = 0;
	c.q = 160;
	c.idle = 0;
	c.frame.cur = 1230;
	c.frame.prev = 1230;
	while (c.trial != ESP_TRY_LESS && now < 1100000) {
		c.limited = 1;
		c.total += 200;
		esp_qctl_sample(&c, &adaptive_policy, 1, 250, 170, now += 251);
	}
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_LESS);
	KUNIT_EXPECT_LT(test, c.q, 160u * 7 / 8);
	now += 250;
	while (c.trial == ESP_TRY_LESS && now < 1200000) {
		c.limited = 1;
		c.total += 150;
		esp_qctl_sample(&c, &adaptive_policy, 1, 210, 170, now += 251);
	}
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	KUNIT_EXPECT_GE(test, c.q, 160u);
}

/* Rounds of 5 ms in which @n packets arrive, each taking 10 us, and much waits. */
static u64 slow_rounds(struct esp_qctl *c, int times, int count, u32 n, u64 now)
{
	for (; times; times--) {
		c->limited = 1;
		c->total += n;
		esp_qctl_sample(c, &adaptive_policy, count, 5000, 200, now += 5000);
	}
	return now;
}

/* While the link is idle, packets wait for a host, not for the link: no trial is needed. */
static void qctl__idle_link(struct kunit *test)
{
	struct esp_qctl c;
	u64 now = 1000000;
	u32 q;

	esp_qctl_init(&c, &adaptive_policy);
	slow_rounds(&c, 4, 1, 100, now);	/* how fast the link is isn't known */
	KUNIT_EXPECT_LT(test, c.q, (u32)ESP_Q_START);
	esp_qctl_init(&c, &adaptive_policy);
	c.frame.cur = 10000;
	c.frame.prev = 10000;
	c.looked = now;
	/* a short time says nothing */
	q = c.q;
	now = slow_rounds(&c, ESP_IDLE_US / 5000 - 1, 1, 370, now);
	KUNIT_EXPECT_LE(test, c.q, q);
	for (q = 0; q < 20 && c.q < ESP_Q_IDLE; q++)
		now = slow_rounds(&c, 1, 1, 370, now);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_IDLE);
	/* more is tried, in vain: it stays */
	now = slow_rounds(&c, 100, 1, 370, now);
	KUNIT_EXPECT_GE(test, c.q, (u32)ESP_Q_IDLE);
	for (q = 0; q < 20 && c.trial; q++)
		now = slow_rounds(&c, 1, 1, 370, now);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_IDLE);
	KUNIT_EXPECT_EQ(test, c.held, 0u);
	/* it is busy for more than three quarters of the time: once, what a late host does */
	now = slow_rounds(&c, 1, 1, 470, now);
	KUNIT_EXPECT_GE(test, c.q, (u32)ESP_Q_IDLE);
	now = slow_rounds(&c, 1, 1, 470, now);
	KUNIT_EXPECT_LT(test, c.q, (u32)ESP_Q_IDLE);
	/* more than that is not for a late host */
	c.q = ESP_Q_IDLE + 32;
	c.idle = 2 * ESP_IDLE_US;
	c.trial = ESP_TRY_NOTHING;
	now = slow_rounds(&c, 2, 1, 370, now);
	KUNIT_EXPECT_LT(test, c.q, (u32)ESP_Q_IDLE);
	/* others could be sending too, which don't share this port's arrivals */
	c.q = ESP_Q_IDLE;
	slow_rounds(&c, 2, 2, 370, now + 10000);
	KUNIT_EXPECT_LT(test, c.q, (u32)ESP_Q_IDLE);
	/* the pause was the sender's */
	c.q = ESP_Q_IDLE;
	c.idle = 2 * ESP_IDLE_US;
	slow_rounds(&c, 1, 1, 370, now + 100000);
	KUNIT_EXPECT_LT(test, c.q, (u32)ESP_Q_IDLE);
}

/* A port with an idle link, whose frames take 10 us. */
static void idle_init(struct esp_qctl *c, u64 now)
{
	esp_qctl_init(c, &adaptive_policy);
	c->frame.cur = 10000;
	c->frame.prev = 10000;
	c->looked = now;
}

/* @count senders' rounds, of @less and @more microseconds in turns. */
static u64 uneven_rounds(struct esp_qctl *c, int times, int count, u32 less, u32 more, u64 now)
{
	for (; times; times--) {
		c->limited = 1;
		c->total += 370;
		esp_qctl_sample(c, &adaptive_policy, count, times % 2 ? less : more, 200,
				now += 7000);
	}
	return now;
}

/* Return a single sender's budget after many round trips of @less and @more us in turns. */
static u32 budget_if_uneven(u32 less, u32 more)
{
	struct esp_qctl c;
	u64 now = 1000000;
	int n;

	idle_init(&c, now);
	now = uneven_rounds(&c, 100, 1, less, more, now);
	for (n = 0; n < 50 && c.trial; n++)	/* more is tried, in vain */
		now = uneven_rounds(&c, 2, 1, less, more, now);
	return c.q;
}

/* A queue that stands makes all round trips long; a host that waits for its turn, some. */
static void qctl__uneven(struct kunit *test)
{
	struct esp_qctl c;
	u64 now = 1000000;
	int n, more = 0;

	KUNIT_EXPECT_EQ(test, budget_if_uneven(3000, 7000), (u32)ESP_Q_UNEVEN);
	KUNIT_EXPECT_EQ(test, budget_if_uneven(4500, 5700), (u32)ESP_Q_UNEVEN);
	/* by less than a fifth */
	KUNIT_EXPECT_EQ(test, budget_if_uneven(4700, 5500), (u32)ESP_Q_IDLE);
	KUNIT_EXPECT_EQ(test, budget_if_uneven(5000, 5000), (u32)ESP_Q_IDLE);
	/* by less than a millisecond beyond the smallest */
	KUNIT_EXPECT_EQ(test, budget_if_uneven(600, 1600), (u32)ESP_Q_IDLE);

	/* on a fast link still more is tried, and given up as trials are */
	idle_init(&c, now);
	c.frame.cur = 1230;
	c.frame.prev = 1230;
	for (n = 0; n < 200; n++) {
		now = uneven_rounds(&c, 2, 1, 3000, 7000, now);
		more += c.trial == ESP_TRY_MORE;
		if (n > 50)
			KUNIT_EXPECT_GE(test, c.q, (u32)ESP_Q_UNEVEN);
	}
	KUNIT_EXPECT_GT(test, more, 0);

	/* a step from short ones to long ones is none */
	idle_init(&c, now);
	now = uneven_rounds(&c, 40, 1, 210, 210, now);
	WRITE_ONCE(c.q, ESP_Q_IDLE);
	now = uneven_rounds(&c, 3, 1, 6900, 6900, now);
	KUNIT_EXPECT_GT(test, 5 * c.jitter, c.mean);
	KUNIT_EXPECT_EQ(test, c.even_q, 0u);
	uneven_rounds(&c, 20, 1, 6900, 6900, now);
	KUNIT_EXPECT_EQ(test, c.even_q, 0u);
}

/*
 * The budget beyond ESP_Q_IDLE is handed back at once when round trips are no longer uneven, or
 * the sender is no longer alone. Nothing is learned from it.
 */
static void qctl__uneven_no_more(struct kunit *test)
{
	struct esp_qctl c;
	u64 now = 1000000;

	/* round trips become even; not for less than an eighth */
	idle_init(&c, now);
	now = uneven_rounds(&c, 300, 1, 3000, 7000, now);
	KUNIT_EXPECT_EQ(test, c.uneven, (u8)ESP_UNEVEN_LOOKS);
	now = uneven_rounds(&c, 100, 1, 4600, 5400, now);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_UNEVEN);
	now = uneven_rounds(&c, 40, 1, 5000, 5000, now);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_IDLE);
	KUNIT_EXPECT_EQ(test, c.held, 0u);
	/* or are long because a queue stands in a link that is full */
	idle_init(&c, now);
	now = uneven_rounds(&c, 100, 1, 3000, 7000, now);
	c.jitter = c.mean / 9;
	c.before = 5000;
	c.idle = 0;
	c.total += 200;
	now = uneven_rounds(&c, 1, 1, 5000, 5000, now);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_IDLE);
	KUNIT_EXPECT_EQ(test, c.even_q, 0u);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	/* or while there is no wire: when that is there again */
	idle_init(&c, now);
	c.q = ESP_Q_UNEVEN;
	c.even_q = ESP_Q_IDLE;
	c.wire_q = ESP_Q_UNEVEN;
	c.whole = 1;
	esp_qctl_sample(&c, &adaptive_policy, 1, 5000, 40, now += 7000);
	KUNIT_EXPECT_EQ(test, c.wire_q, (u32)ESP_Q_IDLE);
	/* what it was before, if that was more, and nothing if it has been cut to less */
	idle_init(&c, now);
	now = uneven_rounds(&c, 100, 1, 3000, 7000, now);
	c.q = 160;
	c.even_q = 0;
	now = uneven_rounds(&c, 1, 1, 3000, 3000, now);
	KUNIT_EXPECT_GT(test, c.q, 160u);
	KUNIT_EXPECT_EQ(test, c.even_q, 160u);
	c.q = 60;
	now = uneven_rounds(&c, 1, 1, 7000, 7000, now);
	KUNIT_EXPECT_EQ(test, c.even_q, 0u);
	/* while the queue is made empty nobody pauses */
	now = uneven_rounds(&c, 40, 1, 3000, 7000, now);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_UNEVEN);
	c.saved = c.q;
	WRITE_ONCE(c.q, ESP_GRANT_MIN);
	c.drained = now;
	c.drain_us = 50000;
	esp_qctl_sample(&c, &adaptive_policy, 1, 3000, 200, now += 50000);
	now = uneven_rounds(&c, 1, 1, 3000, 3000, now);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_UNEVEN);

	/* another sender comes, be it in the middle of a round */
	idle_init(&c, now);
	now = uneven_rounds(&c, 100, 1, 3000, 7000, now);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_UNEVEN);
	esp_qctl_sample(&c, &adaptive_policy, 2, 3000, 200, now + 1);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_IDLE);
	/* and goes: a lone one begins anew */
	now = uneven_rounds(&c, 4, 1, 3000, 7000, now);
	KUNIT_EXPECT_EQ(test, c.even_q, 0u);
	/* or while the queue is made empty */
	idle_init(&c, now);
	now = uneven_rounds(&c, 100, 1, 3000, 7000, now);
	c.saved = c.q;
	WRITE_ONCE(c.q, ESP_GRANT_MIN);
	c.drained = now;
	c.drain_us = 10000;
	esp_qctl_sample(&c, &adaptive_policy, 2, 3000, 200, now + 1);
	KUNIT_EXPECT_EQ(test, c.saved, (u32)ESP_Q_IDLE);
	KUNIT_EXPECT_EQ(test, c.even_q, 0u);
	/* or while still more is tried */
	idle_init(&c, now);
	c.q = ESP_Q_UNEVEN + 64;
	c.old_q = ESP_Q_UNEVEN;
	c.even_q = ESP_Q_IDLE;
	c.trial = ESP_TRY_MORE;
	c.last = now;
	esp_qctl_sample(&c, &adaptive_policy, 2, 3000, 200, now + 1);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_IDLE);

	/* packets are lost: what a link holds that is not idle */
	idle_init(&c, now);
	now = uneven_rounds(&c, 100, 1, 3000, 7000, now);
	esp_qctl_loss(&c, &adaptive_policy, 5000, now);
	now = uneven_rounds(&c, 20, 1, 3000, 7000, now);
	KUNIT_EXPECT_LE(test, c.q, (u32)ESP_Q_IDLE);

	/* after a pause it may be somebody else */
	idle_init(&c, now);
	now = uneven_rounds(&c, 100, 1, 3000, 7000, now);
	now = uneven_rounds(&c, 1, 1, 5000, 5000, now + 100000);
	KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_Q_IDLE);
	now = uneven_rounds(&c, 12, 1, 5000, 5000, now);
	KUNIT_EXPECT_EQ(test, c.even_q, 0u);
	/* and its own are not compared with the other's */
	c.before = 40000;
	uneven_rounds(&c, 10, 1, 5000, 5000, now + 100000);
	KUNIT_EXPECT_EQ(test, c.uneven, (u8)0);
}

/*
 * The budget also holds a sender back that waits for all its packets on their way, even if no
 * grant had to wait.
 */
static void qctl__idle_by_law(struct kunit *test)
{
	static const struct { u32 q, packets, then; } cases[] = {
		{ ESP_Q_START, 20, ESP_Q_START },
		{ ESP_Q_START, 100, ESP_Q_IDLE },
		{ 8, 7, 8 },	/* a grant is more */
	};
	struct esp_qctl c;
	u64 now;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		now = 1000000;
		idle_init(&c, now);
		c.idle = 2 * ESP_IDLE_US;
		c.q = cases[i].q;
		for (n = 0; n < 20; n++) {
			c.total += cases[i].packets;
			esp_qctl_sample(&c, &adaptive_policy, 1, 5000, 200, now += 5000);
		}
		KUNIT_EXPECT_EQ(test, c.q, cases[i].then);
	}
}

/*
 * A smaller budget does not shorten the queue that other senders have in the port. A larger
 * one must not be taken instead.
 */
static void qctl__others_in_port(struct kunit *test)
{
	const struct test_path full = { 12304, 60, 0, 700 };
	struct esp_qctl c;
	u64 now = 1000000;

	esp_qctl_init(&c, &adaptive_policy);
	c.frame.cur = full.frame;
	c.frame.prev = full.frame;
	now = path_rounds(&c, &full, 20, 8, now);
	KUNIT_EXPECT_LE(test, c.q, adaptive_policy.q_min * 5 / 4 + 1);
	path_rounds(&c, &full, 200, 8, now);
	KUNIT_EXPECT_LE(test, c.q, adaptive_policy.q_min * 5 / 4 + 1);
	KUNIT_EXPECT_EQ(test, c.held, 0u);
}

/* A try is over when packets are lost, or nobody needs the budget. */
static void qctl__try_ends(struct kunit *test)
{
	const struct test_path path = { 1230, 60, 200, 0 };
	struct esp_qctl c;
	u64 now = 1000000;
	u32 n;

	qctl_init(&c);
	for (n = 0; n < 1000 && c.trial != ESP_TRY_LESS; n++)
		now = path_rounds(&c, &path, 1, 8, now);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_LESS);
	esp_qctl_sample(&c, &adaptive_policy, 8, 100, 60, now += 100000);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	for (n = 0; n < 1000 && c.trial != ESP_TRY_MORE; n++)
		now = path_rounds(&c, &path, 1, 8, now);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_MORE);
	KUNIT_EXPECT_TRUE(test, c.fast);
	/* in the round trip in which it doesn't show yet: what was before */
	esp_qctl_loss(&c, &adaptive_policy, 260, now + 300);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	KUNIT_EXPECT_EQ(test, c.q, c.old_q);
	KUNIT_EXPECT_FALSE(test, c.fast);
	n = c.q;
	/* not at once again */
	now = path_rounds(&c, &path, ESP_TRY_ROUNDS - 4, 8, now + 300);
	KUNIT_EXPECT_TRUE(test, c.trial != ESP_TRY_MORE);
	/* nor where that has not been forgotten: slowly, then */
	n = c.q;
	now = path_rounds(&c, &path, 200, 8, now);
	KUNIT_EXPECT_TRUE(test, c.trial != ESP_TRY_MORE);
	KUNIT_EXPECT_GT(test, c.q, n);
	c.lost = 0;
	for (n = 0; n < 1000 && c.trial != ESP_TRY_MORE; n++)
		now = path_rounds(&c, &path, 1, 8, now);
	n = c.old_q;
	esp_qctl_loss(&c, &adaptive_policy, 260, now += 1000);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	KUNIT_EXPECT_EQ(test, c.q, max(n * 7 / 10, adaptive_policy.q_min));
	/* a pause: likewise */
	c.lost = 0;
	for (n = 0; n < 1000 && c.trial != ESP_TRY_MORE; n++)
		now = path_rounds(&c, &path, 1, 8, now);
	now = path_rounds(&c, &path, 2, 8, now);
	n = c.old_q;
	KUNIT_EXPECT_GT(test, c.q, n);
	c.limited = 1;
	esp_qctl_sample(&c, &adaptive_policy, 8, 260, 60, now += 1000);
	KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	KUNIT_EXPECT_EQ(test, c.q, n);
	KUNIT_EXPECT_FALSE(test, c.fast);
	/* however long round trips are said to be */
	esp_qctl_loss(&c, &adaptive_policy, ESP_RTT_MAX_US, now += 2 * ESP_RTT_MAX_US);
	KUNIT_EXPECT_LE(test, c.next_try, now + ESP_TRY_MAX_US);
}

/* Senders who pause in between: what is missing then is no reason for a larger budget. */
static void qctl__bursts(struct kunit *test)
{
	const struct test_path full = { 1230, 60, 0, 0 };
	u32 pause, i, most;

	for (pause = 100; pause <= 9000; pause = pause * 3 / 2) {
		struct esp_qctl c;
		u64 now = 1000000;

		qctl_init(&c);
		c.frame.cur = 1230;
		c.frame.prev = 1230;
		for (i = most = 0; i < 2000; i++) {
			/* the first one's does not wait */
			c.total += 8;
			c.limited = 1;
			esp_qctl_sample(&c, &adaptive_policy, 8, 61, 60, now += pause + 61);
			now = path_rounds(&c, &full, 5 + i % 40, 8, now);
			most = max(most, c.q);
		}
		/* 49 are on the link, and 50 us of them may wait */
		KUNIT_EXPECT_LE(test, most, 120u);
	}
}

/* A budget that an administrator has fixed is not tried. */
static void qctl__fixed(struct kunit *test)
{
	const struct test_path path = { 1230, 60, 200, 0 };
	struct esp_policy p = adaptive_policy;
	struct esp_qctl c;
	u64 now = 1000000;
	int i;

	p.q_min = 64;
	p.q_max = 64;
	esp_qctl_init(&c, &p);
	for (i = 0; i < 1000; i++) {
		c.total += c.q;
		c.limited = 1;
		esp_qctl_sample(&c, &p, 8, path.base + path.hold, path.base, now += 261);
		KUNIT_EXPECT_EQ(test, c.trial, (u8)ESP_TRY_NOTHING);
	}
	KUNIT_EXPECT_EQ(test, c.held, 0u);
}

static struct kunit_case trial_cases[] = {
	KUNIT_CASE(qctl__card_holds_back),
	KUNIT_CASE(qctl__cut_on_trial),
	KUNIT_CASE(qctl__tried_long_enough),
	KUNIT_CASE(qctl__held_by_luck),
	KUNIT_CASE(qctl__tried_in_grants),
	KUNIT_CASE(qctl__tried_in_vain),
	KUNIT_CASE(qctl__lone_cut_on_trial),
	KUNIT_CASE(qctl__idle_link),
	KUNIT_CASE(qctl__uneven),
	KUNIT_CASE(qctl__uneven_no_more),
	KUNIT_CASE(qctl__idle_by_law),
	KUNIT_CASE(qctl__others_in_port),
	KUNIT_CASE(qctl__try_ends),
	KUNIT_CASE(qctl__bursts),
	KUNIT_CASE(qctl__fixed),
	{}
};
