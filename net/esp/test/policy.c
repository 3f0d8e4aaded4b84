// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of policy.c. Included by suite.c, and in user space by
 * selftests/unit/host-pure.c.
 */

static const struct esp_policy seed_policy = {
	.burst_length = 64, .q_min = 8, .q_max = 4096, .first_pool = 64,
};

static const struct esp_policy adaptive_policy = {
	.adaptive = 1, .q_min = 8, .q_max = 4096, .first_pool = 64,
};

/* With a budget of @q, where the wire is not fast. */
static u32 grant_of(const struct esp_policy *p, u32 q, int open, int count)
{
	struct esp_qctl c = { .q = q, .lone = ESP_GRANT_LONE };

	return esp_policy_grant(p, &c, open, count);
}

static u32 ask_of(const struct esp_policy *p, u32 q, int count)
{
	struct esp_qctl c = { .q = q, .lone = ESP_LONE_MAX };

	/* esp_grant_due() doesn't look further */
	for (c.no_wire = 0; c.no_wire < 2; c.no_wire++)
		if (esp_policy_ask(p, &c, count) > esp_policy_ask_most(&c))
			return ~0u;
	c.no_wire = 0;
	c.lone = ESP_GRANT_LONE;
	return esp_policy_ask(p, &c, count);
}

/* Rules 14, 15. */
static void policy__seed(struct kunit *test)
{
	const struct esp_policy *p = &seed_policy;

	/* fast path while esp_recv_count <= 1 */
	KUNIT_EXPECT_TRUE(test, esp_policy_fast(p, 8, 1000, 0));
	KUNIT_EXPECT_TRUE(test, esp_policy_fast(p, 8, 1000, 1));
	KUNIT_EXPECT_FALSE(test, esp_policy_fast(p, 8, 0, 2));
	/* release when the queue holds esp_recv_count entries */
	KUNIT_EXPECT_FALSE(test, esp_policy_release(p, 8, 2, 1, 3));
	KUNIT_EXPECT_TRUE(test, esp_policy_release(p, 8, 3, 1, 3));
	KUNIT_EXPECT_TRUE(test, esp_policy_release(p, 8, 3, 1, 2));
	/* or when nothing is on its way that could bring the next cause */
	KUNIT_EXPECT_TRUE(test, esp_policy_release(p, 8, 1, 0, 3));
	KUNIT_EXPECT_FALSE(test, esp_policy_release(p, 8, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, grant_of(p, 8, 0, 5), 64u);
}

static void policy__adaptive(struct kunit *test)
{
	struct esp_policy p = adaptive_policy;

	KUNIT_EXPECT_TRUE(test, esp_policy_fast(&p, 10, 9, 5));
	KUNIT_EXPECT_FALSE(test, esp_policy_fast(&p, 10, 10, 1));
	KUNIT_EXPECT_TRUE(test, esp_policy_release(&p, 10, 1, 9, 5));
	KUNIT_EXPECT_FALSE(test, esp_policy_release(&p, 10, 5, 10, 5));
	KUNIT_EXPECT_FALSE(test, esp_policy_release(&p, 10, 0, 0, 0));
	/* rule 22: clamp(Q/4, 2, 32), a lone sender's >= 32 */
	KUNIT_EXPECT_EQ(test, grant_of(&p, 4, 0, 2), 2u);
	KUNIT_EXPECT_EQ(test, grant_of(&p, 40, 0, 2), 10u);
	KUNIT_EXPECT_EQ(test, grant_of(&p, 4000, 0, 2), 32u);
	/* a lone sender's is longer */
	KUNIT_EXPECT_EQ(test, grant_of(&p, 8, 0, 1), 32u);
	KUNIT_EXPECT_EQ(test, grant_of(&p, 8, 0, 0), 32u);
	KUNIT_EXPECT_EQ(test, grant_of(&p, 8, 7, 1), 25u);
	KUNIT_EXPECT_EQ(test, grant_of(&p, 8, 100, 1), 2u);
	KUNIT_EXPECT_EQ(test, grant_of(&p, 64, 0, 1), 32u);
	KUNIT_EXPECT_EQ(test, grant_of(&p, 4000, 0, 1), 32u);
	p.burst_length = 5;	/* only a cap */
	KUNIT_EXPECT_EQ(test, grant_of(&p, 64, 0, 1), 5u);
	KUNIT_EXPECT_EQ(test, grant_of(&p, 8, 0, 2), 2u);
}

/* A control that knows: the link is so fast that the bound is 50 us. */
static void qctl_init(struct esp_qctl *c)
{
	esp_qctl_init(c, &adaptive_policy);
	c->frame.cur = 100;
	c->frame.prev = 100;
}

/* Pass @n round trips; the budget has held a sender back in each of them. */
static u64 qctl_rounds(struct esp_qctl *c, int n, u32 median, u32 min_rtt, u64 now)
{
	while (n--) {
		c->limited = 1;
		esp_qctl_sample(c, &adaptive_policy, 2, median, min_rtt, now += 1000);
	}
	return now;
}

/* Rule 22: who has less than a share asks at once, others in good time. */
static void policy__ask(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;

	KUNIT_EXPECT_EQ(test, ask_of(p, 8, 1), 16u);
	KUNIT_EXPECT_EQ(test, ask_of(p, 100, 1), 100u);
	KUNIT_EXPECT_EQ(test, ask_of(p, 100, 0), 100u);
	KUNIT_EXPECT_EQ(test, ask_of(p, 16, 2), 8u);
	KUNIT_EXPECT_EQ(test, ask_of(p, 16, 16), 2u);
	KUNIT_EXPECT_EQ(test, ask_of(p, 8, 64), 1u);
}

/* Rule 22: grows fast while little waits, then slowly, and only if needed. */
static void qctl__grows_when_limited(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;
	struct esp_qctl c;
	u64 now = 1000000;
	u32 q;

	qctl_init(&c);
	q = c.q;
	esp_qctl_sample(&c, p, 2, 100, 100, now += 1000);
	esp_qctl_sample(&c, p, 2, 100, 100, now += 1000);
	KUNIT_EXPECT_EQ(test, c.q, q);		/* held nobody back */
	now = qctl_rounds(&c, 1, 100, 100, now);
	KUNIT_EXPECT_EQ(test, c.q, q);		/* but not for a whole round trip */
	KUNIT_EXPECT_FALSE(test, c.limited);
	now = qctl_rounds(&c, 1, 100, 100, now);
	KUNIT_EXPECT_EQ(test, c.q, 2 * q);
	/* once a round trip */
	c.limited = 1;
	esp_qctl_sample(&c, p, 2, 100, 100, now + 50);
	KUNIT_EXPECT_TRUE(test, c.limited);
	/* not while something waits */
	now = qctl_rounds(&c, 4, 100 + ESP_EXTRA_US * 7 / 8 + 1, 100, now);
	KUNIT_EXPECT_EQ(test, c.q, 2 * q);
	/* it did not hold anybody back all the time */
	esp_qctl_sample(&c, p, 2, 100, 100, now += 1000);
	now = qctl_rounds(&c, 1, 100, 100, now);
	esp_qctl_sample(&c, p, 2, 100, 100, now += 1000);
	KUNIT_EXPECT_EQ(test, c.q, 2 * q);
	/* too much waits: as much as makes 3/4 of the bound; then slowly */
	esp_qctl_sample(&c, p, 2, 100 + 100, 100, now += 1000);
	KUNIT_EXPECT_EQ(test, c.q, 2 * q * (100 + ESP_EXTRA_US * 3 / 4) / 200);
	q = c.q;
	now = qctl_rounds(&c, 2, 100, 100, now);
	KUNIT_EXPECT_GT(test, c.q, q);
	KUNIT_EXPECT_LT(test, c.q, q + q / 8);
	/* never less than half at once */
	q = c.q;
	esp_qctl_sample(&c, p, 2, 10000, 100, now += 20000);
	KUNIT_EXPECT_EQ(test, c.q, q / 2);
}

static void qctl__bounds(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;
	struct esp_qctl c;
	u64 now = 1000000;
	int i;

	qctl_init(&c);
	for (i = 0; i < 100; i++)
		esp_qctl_sample(&c, p, 2, 10000, 100, now += 20000);
	KUNIT_EXPECT_EQ(test, c.q, p->q_min);
	qctl_rounds(&c, 2000, 100, 100, now);
	KUNIT_EXPECT_EQ(test, c.q, p->q_max);
}

/* Rule 22: the bound is eight frame times, if those are longer than 50 us. */
static void qctl__frame_time(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;
	u64 now = 1000000;
	struct esp_qctl c;
	u32 n = 0, q;
	int i;

	esp_qctl_init(&c, p);
	KUNIT_EXPECT_EQ(test, esp_qctl_wire_time(&c, 100), 1230u);
	for (i = 0; i < 50; i++)	/* nobody is held back */
		esp_qctl_arrivals(&c, n += 100, 100, now += 100);
	KUNIT_EXPECT_EQ(test, esp_min_rtt_get(&c.frame), 0u);
	c.busy = 1;
	for (i = 0; i < 50; i++)	/* a link that is half idle, at times */
		esp_qctl_arrivals(&c, n += i % 5 ? 4 : 8, 100, now += 100);
	/* in one stretch of 1 ms: 8 + 9 times 4, at best twice the eight */
	KUNIT_EXPECT_LE(test, esp_min_rtt_get(&c.frame), 25000u);
	KUNIT_EXPECT_GE(test, esp_min_rtt_get(&c.frame), 20000u);
	c.frame.cur = 20000;
	c.frame.prev = 20000;
	q = c.q;
	now = qctl_rounds(&c, 2, 100 + 159, 100, now);	/* below 8 times 20 us */
	KUNIT_EXPECT_EQ(test, c.q, q);
	now = qctl_rounds(&c, 2, 100 + 79, 100, now);	/* and below half of it */
	KUNIT_EXPECT_EQ(test, c.q, 2 * q);
	/* half of a lone sender's burst waits for the other half */
	esp_qctl_sample(&c, p, 1, 100 + 319, 100, now += 1000);
	KUNIT_EXPECT_EQ(test, c.q, 2 * q);
	esp_qctl_sample(&c, p, 2, 100 + 161, 100, now += 1000);
	KUNIT_EXPECT_LT(test, c.q, 2 * q);
	KUNIT_EXPECT_EQ(test, esp_qctl_wire_time(&c, 10), 200u);
	/* a pause is no frame time, and a wrap of the count does no harm */
	c.busy = 1;
	esp_qctl_arrivals(&c, 0xfffffff0u, 100, now += 2000000);
	esp_qctl_arrivals(&c, 0x10u, 100, now += 1600);
	KUNIT_EXPECT_LE(test, esp_min_rtt_get(&c.frame), 25000u);
	KUNIT_EXPECT_EQ(test, c.lone, 32u);	/* a slow wire's, however slow */
	/* a fast wire's is what it carries in 250 us, up to a super-packet */
	now += 20000000;
	n = 0x10;
	esp_qctl_arrivals(&c, n, 100, now);
	c.busy = 1;
	esp_qctl_arrivals(&c, n += 160, 100, now += 1000);
	KUNIT_EXPECT_EQ(test, c.lone, 40u);
	esp_qctl_arrivals(&c, n += 1000, 100, now += 1000);
	KUNIT_EXPECT_EQ(test, c.lone, 44u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(p, &c, 0, 1), 44u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(p, &c, 44, 1), c.q / 4);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(p, &c, 0, 2), c.q / 4);
	/* but not where much is on the way anyway */
	esp_qctl_arrivals(&c, n += 1000, 500, now += 1000);
	KUNIT_EXPECT_EQ(test, c.lone, 32u);
}

/* Rule 22: the queue is emptied now and then, for the smallest round trip. */
static void qctl__drains(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;
	u64 now = 1000000, low = 0;
	struct esp_qctl c;
	int i, times = 0;
	u32 q;

	esp_qctl_init(&c, p);
	c.fast = 0;
	q = c.q;
	for (i = 0; i < 30000; i++) {
		bool was = c.saved;

		/* something waits, but not too much: nothing else to do */
		esp_qctl_sample(&c, p, 2, 140, 100, now += 1000);
		times += !was && c.saved;
		low += !!c.saved;
		if (c.saved)
			KUNIT_EXPECT_EQ(test, c.q, (u32)ESP_GRANT_MIN);
		else
			KUNIT_EXPECT_EQ(test, c.q, q);
	}
	KUNIT_EXPECT_GE(test, times, 5);
	KUNIT_EXPECT_LE(test, times, 6);
	KUNIT_EXPECT_LE(test, low, 6u);		/* a round trip or two each */
	/* after a long silence there is no need; but what cards did before is forgotten */
	c.held = 500;
	esp_qctl_sample(&c, p, 2, 140, 100, now += 100 * 1000 * 1000);
	KUNIT_EXPECT_EQ(test, c.q, q);
	KUNIT_EXPECT_EQ(test, c.held, 0u);
}

/* As long as the farthest sender's packets are on their way, whoever else's come; not for ever. */
static void qctl__drains_far(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;
	struct esp_qctl c;
	u64 now, low;
	u32 far;

	for (far = 400; far <= 400 * 1000; far *= 10) {
		esp_qctl_init(&c, p);
		c.fast = 0;
		now = 1000000;
		esp_qctl_sample(&c, p, 2, 50, 50, now);
		while (!c.saved && now < 10000000) {
			esp_qctl_sample(&c, p, 2, far, far, now += 10);
			esp_qctl_sample(&c, p, 2, 50, 50, now += 10);
		}
		/* read by another processor, before the first */
		esp_qctl_sample(&c, p, 2, 50, 50, now - 30);
		KUNIT_EXPECT_TRUE(test, c.saved);
		for (low = now; c.saved && now < 20000000; now += 10)
			esp_qctl_sample(&c, p, 2, 50, 50, now);
		KUNIT_EXPECT_GE(test, now - low, (u64)min(2 * far, ESP_DRAIN_MAX_US));
		KUNIT_EXPECT_LE(test, now - low, (u64)ESP_DRAIN_MAX_US + 20);
	}
}

/* Rule 22: × 0.7 on loss, once a round trip. */
static void qctl__loss(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;
	struct esp_qctl c;

	esp_qctl_init(&c, p);
	c.q = 100;
	esp_qctl_loss(&c, p, 100, 1000);
	KUNIT_EXPECT_EQ(test, c.q, 70u);
	esp_qctl_loss(&c, p, 100, 1050);
	KUNIT_EXPECT_EQ(test, c.q, 70u);
	esp_qctl_loss(&c, p, 100, 1100);
	KUNIT_EXPECT_EQ(test, c.q, 49u);
	c.q = p->q_min;
	esp_qctl_loss(&c, p, 100, 2000);
	KUNIT_EXPECT_EQ(test, c.q, p->q_min);
}

/*
 * Rule 22: permission runs ahead of a slow link by frames, of a fast one by a time
 * in which timers are served. One that was late costs nothing.
 */
static void qctl__pace(struct kunit *test)
{
	struct esp_qctl c;
	u64 now = 1000000;
	u32 n;

	esp_qctl_init(&c, &adaptive_policy);
	c.fast = 0;
	c.frame.cur = 9000;
	c.frame.prev = 9000;
	esp_qctl_spend(&c, 18, now);
	KUNIT_EXPECT_EQ(test, esp_qctl_pace(&c, 32, 2, now), 0u);
	esp_qctl_spend(&c, 9, now);
	KUNIT_EXPECT_EQ(test, esp_qctl_pace(&c, 32, 2, now), 27u * 8000 - 16 * 9000);
	KUNIT_EXPECT_EQ(test, esp_qctl_pace(&c, 31, 2, now), 0u);

	c.frame.cur = 450;
	c.frame.prev = 450;
	now += 1000000;
	for (n = 0; !esp_qctl_pace(&c, 32, 2, now); n += 18)
		esp_qctl_spend(&c, 18, now);
	KUNIT_EXPECT_EQ(test, n, 126u);		/* 400 ns each, 50 us */
	KUNIT_EXPECT_EQ(test, esp_qctl_pace(&c, 32, 2, now), 400u);
	now += 400 + 20000;			/* the timer is late */
	for (n = 0; !esp_qctl_pace(&c, 32, 2, now); n += 18)
		esp_qctl_spend(&c, 18, now);
	KUNIT_EXPECT_EQ(test, n, 54u);
}

/*
 * Rule 22: a port that is too small for what is no congestion elsewhere gets less at
 * once, and less stands in it, for ten seconds.
 */
static void qctl__lossy(struct kunit *test)
{
	u64 now = 100 * 1000 * 1000, ns;	/* microseconds */
	struct esp_qctl c;
	u32 n, times;

	for (times = 0; times < 4; times++) {
		static const u32 ago[] = { 0, 1000, 9999 * 1000, 10000 * 1000 };
		bool lossy = times == 1 || times == 2;

		esp_qctl_init(&c, &adaptive_policy);
		c.fast = 0;
		c.frame.cur = 900;
		c.frame.prev = 900;
		if (times)
			esp_qctl_loss(&c, &adaptive_policy, 100, now - ago[times]);
		ns = 1000 * now;
		for (n = 0; !esp_qctl_pace(&c, 32, 2, ns); n += 9)
			esp_qctl_spend(&c, 9, ns);
		KUNIT_EXPECT_EQ(test, n, lossy ? 27u : 63u);

		c.q = 100;
		c.drained = now;
		esp_qctl_sample(&c, &adaptive_policy, 2, 140, 100, now);
		KUNIT_EXPECT_EQ(test, c.q < 100, lossy);
	}
}

/* Where 35 us are more than a small port holds, less than that after a loss: 64 frames. */
static void qctl__lossy_and_fast(struct kunit *test)
{
	u64 now = 100 * 1000 * 1000;
	struct esp_qctl c;
	int lossy, extra;

	for (lossy = 0; lossy < 2; lossy++) {
		for (extra = 18; extra <= 20; extra += 2) {
			esp_qctl_init(&c, &adaptive_policy);
			c.fast = 0;
			c.frame.cur = 300;
			c.frame.prev = 300;
			if (lossy)
				esp_qctl_loss(&c, &adaptive_policy, 100, now - 1000);
			c.q = 100;
			c.drained = now;
			esp_qctl_sample(&c, &adaptive_policy, 2, 100 + extra, 100, now);
			KUNIT_EXPECT_EQ(test, c.q < 100, lossy && extra > 19);
		}
	}
}

/* Rule 22: a single sender on this machine is delayed by processors only, and has no pace. */
static void qctl__no_wire(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;
	struct esp_qctl c;
	u64 now = 1000000;
	u32 i;

	esp_qctl_init(&c, p);
	c.fast = 0;
	c.q = 800;
	c.frame.cur = 9000;
	c.frame.prev = 9000;
	esp_qctl_spend(&c, 100, now);
	KUNIT_EXPECT_GT(test, esp_qctl_pace(&c, 32, 1, now), 0u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(p, &c, 0, 1), 32u);
	esp_qctl_came(&c, true, false);
	esp_qctl_sample(&c, p, 1, 51, 51, now += 10000);	/* a long way */
	KUNIT_EXPECT_FALSE(test, esp_qctl_no_wire(&c, 1));
	esp_qctl_sample(&c, p, 1, 50, 50, now += 10000);
	esp_qctl_spend(&c, 100, now);
	KUNIT_EXPECT_EQ(test, esp_qctl_pace(&c, 32, 1, now), 0u);
	KUNIT_EXPECT_GT(test, esp_qctl_pace(&c, 32, 2, now), 0u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(p, &c, 0, 1), 384u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(p, &c, 300, 1), 84u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(p, &c, 0, 2), 32u);
	esp_qctl_sample(&c, p, 1, 510, 10, now += 10000);
	KUNIT_EXPECT_EQ(test, c.q, 800u);
	esp_qctl_sample(&c, p, 1, 511, 10, now += 10000);
	KUNIT_EXPECT_LT(test, c.q, 800u);
	c.q = 4096;
	/* nor are frames timed, be nothing known of them */
	c.frame.cur = 0;
	c.frame.prev = 0;
	c.busy = 1;
	esp_qctl_arrivals(&c, 0, 10, now += 2000);
	c.busy = 1;
	esp_qctl_arrivals(&c, 1000, 10, now += 2000);
	KUNIT_EXPECT_EQ(test, c.frame.cur, 0u);
	/* singles come between, the ends of messages; but these only: a wire */
	for (i = 0; i < 16; i++) {
		KUNIT_EXPECT_TRUE(test, esp_qctl_no_wire(&c, 1));
		esp_qctl_came(&c, false, false);
	}
	KUNIT_EXPECT_FALSE(test, esp_qctl_no_wire(&c, 1));
	esp_qctl_came(&c, false, false);
	/* nor does what was learned without one count there */
	esp_qctl_sample(&c, p, 1, 10, 10, now += 10000);
	KUNIT_EXPECT_EQ(test, c.q, 800u);
	esp_qctl_came(&c, true, false);
	esp_qctl_sample(&c, p, 1, 10, 10, now += 10000);
	KUNIT_EXPECT_TRUE(test, esp_qctl_no_wire(&c, 1));
	esp_qctl_came(&c, false, true);		/* GRO's */
	KUNIT_EXPECT_FALSE(test, esp_qctl_no_wire(&c, 1));
	esp_qctl_came(&c, true, false);
	esp_qctl_sample(&c, p, 2, 10, 10, now += 10000);
	KUNIT_EXPECT_FALSE(test, esp_qctl_no_wire(&c, 1));
	/* a queueing discipline that drops some: for ten seconds */
	esp_qctl_sample(&c, p, 1, 10, 10, now += 10000);
	KUNIT_EXPECT_TRUE(test, esp_qctl_no_wire(&c, 1));
	c.saved = 700;		/* made empty just now: not that little counts */
	c.q = ESP_GRANT_MIN;
	c.wire_q = 600;
	esp_qctl_loss(&c, p, 10, now += 1000);
	KUNIT_EXPECT_FALSE(test, esp_qctl_no_wire(&c, 1));
	esp_qctl_sample(&c, p, 1, 10, 10, now + 1000);
	KUNIT_EXPECT_EQ(test, c.q, 600u);
	esp_qctl_sample(&c, p, 1, 10, 10, now + 9000000);
	KUNIT_EXPECT_FALSE(test, esp_qctl_no_wire(&c, 1));
	esp_qctl_sample(&c, p, 1, 10, 10, now + 10000000);
	KUNIT_EXPECT_TRUE(test, esp_qctl_no_wire(&c, 1));
}

/* Rule 21: handshakes share F, and never give more than there is. */
static void advice__handshake(struct kunit *test)
{
	u32 given = 0, i, n;

	KUNIT_EXPECT_EQ(test, esp_advice_handshake(64, 0), 32u);
	KUNIT_EXPECT_EQ(test, esp_advice_handshake(1000, 0), 32u);
	KUNIT_EXPECT_EQ(test, esp_advice_handshake(64, 32), 16u);
	KUNIT_EXPECT_EQ(test, esp_advice_handshake(64, 50), 4u);
	KUNIT_EXPECT_EQ(test, esp_advice_handshake(64, 64), 0u);
	KUNIT_EXPECT_EQ(test, esp_advice_handshake(64, 100), 0u);
	KUNIT_EXPECT_EQ(test, esp_advice_handshake(0, 0), 0u);
	for (i = 0; i < 100; i++) {
		n = esp_advice_handshake(64, given);
		given += n;
	}
	KUNIT_EXPECT_EQ(test, given, 64u);
}

static void advice__connected(struct kunit *test)
{
	/* min(64, F / peers) */
	KUNIT_EXPECT_EQ(test, esp_advice_connected(64, 32, 32, 1), 64u);
	KUNIT_EXPECT_EQ(test, esp_advice_connected(1000, 32, 32, 1), 64u);
	KUNIT_EXPECT_EQ(test, esp_advice_connected(64, 48, 32, 4), 16u);
	KUNIT_EXPECT_EQ(test, esp_advice_connected(64, 64, 1, 65), 0u);
	/* a raise waits for the others' cuts */
	KUNIT_EXPECT_EQ(test, esp_advice_connected(64, 64, 2, 2), 2u);
	KUNIT_EXPECT_EQ(test, esp_advice_connected(64, 60, 2, 2), 6u);
	KUNIT_EXPECT_EQ(test, esp_advice_connected(64, 200, 2, 2), 2u);
	KUNIT_EXPECT_EQ(test, esp_advice_connected(64, 0, 0, 0), 64u);
}

static struct kunit_case policy_cases[] = {
	KUNIT_CASE(policy__seed),
	KUNIT_CASE(policy__adaptive),
	KUNIT_CASE(policy__ask),
	KUNIT_CASE(qctl__grows_when_limited),
	KUNIT_CASE(qctl__bounds),
	KUNIT_CASE(qctl__frame_time),
	KUNIT_CASE(qctl__pace),
	KUNIT_CASE(qctl__lossy),
	KUNIT_CASE(qctl__lossy_and_fast),
	KUNIT_CASE(qctl__no_wire),
	KUNIT_CASE(qctl__drains),
	KUNIT_CASE(qctl__drains_far),
	KUNIT_CASE(qctl__loss),
	KUNIT_CASE(advice__handshake),
	KUNIT_CASE(advice__connected),
	{}
};
