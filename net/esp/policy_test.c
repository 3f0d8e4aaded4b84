// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of rtt.c and policy.c. Included by esp_test.c, and in user space by
 * selftests/host-pure.c.
 */

/* Rule 8: RFC 6298, section 2. */
static void rtt__first_sample(struct kunit *test)
{
	struct esp_rtt r = {};

	/* nothing measured: ten times the floor */
	KUNIT_EXPECT_EQ(test, esp_rtt_timeout(&r, 0, 1000, 500000), 10000u);
	esp_rtt_sample(&r, 800);
	KUNIT_EXPECT_EQ(test, esp_rtt_smooth(&r), 800u);
	KUNIT_EXPECT_EQ(test, r.rttvar4, 1600u);	/* half of it, times 4 */
	KUNIT_EXPECT_EQ(test, esp_rtt_timeout(&r, 0, 1000, 500000), 2400u);
	KUNIT_EXPECT_EQ(test, esp_rtt_timeout(&r, 500, 1000, 500000), 2900u);
}

static void rtt__converges(struct kunit *test)
{
	struct esp_rtt r = {};
	int i;

	esp_rtt_sample(&r, 100000);
	for (i = 0; i < 200; i++)
		esp_rtt_sample(&r, 200);
	KUNIT_EXPECT_LE(test, esp_rtt_smooth(&r), 210u);
	KUNIT_EXPECT_GE(test, esp_rtt_smooth(&r), 190u);
	KUNIT_EXPECT_LE(test, r.rttvar4 >> 2, 10u);
	for (i = 0; i < 200; i++)
		esp_rtt_sample(&r, 0);
	KUNIT_EXPECT_GE(test, r.srtt8, 1u);	/* 0 would mean: none yet */
	esp_rtt_sample(&r, 0xffffffffu);	/* a lie */
	KUNIT_EXPECT_LE(test, esp_rtt_smooth(&r), ESP_RTT_MAX_US / 8 + 10);
}

static void rtt_timeout__bounds(struct kunit *test)
{
	struct esp_rtt r = {};

	esp_rtt_sample(&r, 10);
	KUNIT_EXPECT_EQ(test, esp_rtt_timeout(&r, 0, 1000, 500000), 1000u);
	/* the peer's delay comes on top of the floor */
	KUNIT_EXPECT_EQ(test, esp_rtt_timeout(&r, 500, 1000, 500000), 1500u);
	esp_rtt_sample(&r, ESP_RTT_MAX_US);
	KUNIT_EXPECT_EQ(test, esp_rtt_timeout(&r, 0, 1000, 500000), 500000u);
}

static void rtt_backoff__doubles(struct kunit *test)
{
	unsigned int n;

	for (n = 0; n < 10; n++)
		KUNIT_EXPECT_EQ(test, esp_rtt_backoff(1000, n, ~0u), 1000u << n);
	for (n = 0; n < 300; n++)
		KUNIT_EXPECT_LE(test, esp_rtt_backoff(1000, n, 500000), 500000u);
	KUNIT_EXPECT_EQ(test, esp_rtt_backoff(1000, 200, 500000), 500000u);
}

/* Rule 22: the smallest round trip of ten seconds. */
static void min_rtt__ten_seconds(struct kunit *test)
{
	const u64 second = 1000 * 1000;
	struct esp_min_rtt m = {};
	u64 t;

	esp_min_rtt_sample(&m, 70, 0);
	KUNIT_EXPECT_EQ(test, esp_min_rtt_get(&m), 70u);
	esp_min_rtt_sample(&m, 50, second);
	esp_min_rtt_sample(&m, 90, second);
	KUNIT_EXPECT_EQ(test, esp_min_rtt_get(&m), 50u);
	/* remembered for five seconds at least, ten at most */
	for (t = 2 * second; t <= 16 * second; t += second / 2) {
		esp_min_rtt_sample(&m, 100, t);
		if (t <= 6 * second)
			KUNIT_EXPECT_EQ(test, esp_min_rtt_get(&m), 50u);
		if (t > 11 * second)
			KUNIT_EXPECT_EQ(test, esp_min_rtt_get(&m), 100u);
	}
	/* after a long silence the new one alone counts */
	esp_min_rtt_sample(&m, 300, 100 * second);
	KUNIT_EXPECT_EQ(test, esp_min_rtt_get(&m), 300u);
}

/* Rule 22: a median, once a round trip. */
static void rtt_round__median(struct kunit *test)
{
	static const u32 samples[] = { 900, 100, 500, 300, 700 };
	struct esp_rtt_round r = {};
	unsigned int i;
	u32 median = 0;

	r.start = 1000;
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_FALSE(test, esp_rtt_round_add(&r, samples[i], 200,
							   1010 + i, &median));
	KUNIT_EXPECT_TRUE(test, esp_rtt_round_add(&r, samples[4], 200, 1200,
						  &median));
	KUNIT_EXPECT_EQ(test, median, 500u);
	KUNIT_EXPECT_EQ(test, r.sample[0], 100u);	/* the smallest */
	KUNIT_EXPECT_EQ(test, r.n, 0u);

	/* more than there is room for: the first ones count */
	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_FALSE(test, esp_rtt_round_add(&r, i, 200, 1300,
							   &median));
	KUNIT_EXPECT_TRUE(test, esp_rtt_round_add(&r, 1, 200, 1400, &median));
	KUNIT_EXPECT_EQ(test, median, ESP_RTT_SAMPLES / 2u);
}

static const struct esp_policy seed_policy = {
	.burst_length = 64, .q_min = 8, .q_max = 4096, .first_pool = 64,
};

static const struct esp_policy adaptive_policy = {
	.adaptive = 1, .q_min = 8, .q_max = 4096, .first_pool = 64,
};

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
	KUNIT_EXPECT_EQ(test, esp_policy_grant(p, 8, 5), 64u);
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
	KUNIT_EXPECT_EQ(test, esp_policy_grant(&p, 4, 2), 2u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(&p, 40, 2), 10u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(&p, 4000, 2), 32u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(&p, 8, 1), 32u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(&p, 8, 0), 32u);
	p.burst_length = 5;	/* only a cap */
	KUNIT_EXPECT_EQ(test, esp_policy_grant(&p, 8, 1), 5u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(&p, 8, 2), 2u);
}

/* Rule 22: grows fast while little waits, then slowly, and only if needed. */
static void qctl__grows_when_limited(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;
	struct esp_qctl c;
	u64 now = 1000000;
	u32 q;

	esp_qctl_init(&c, p);
	q = c.q;
	esp_qctl_sample(&c, p, 100, 100, now += 1000);
	KUNIT_EXPECT_EQ(test, c.q, q);		/* held nobody back */
	c.limited = 1;
	esp_qctl_sample(&c, p, 100, 100, now += 1000);
	KUNIT_EXPECT_EQ(test, c.q, 2 * q);
	KUNIT_EXPECT_FALSE(test, c.limited);
	/* once a round trip */
	c.limited = 1;
	esp_qctl_sample(&c, p, 100, 100, now + 50);
	KUNIT_EXPECT_EQ(test, c.q, 2 * q);
	/* too much waits: less, and from now on slowly */
	esp_qctl_sample(&c, p, 100 + ESP_EXTRA_US + 1, 100, now += 1000);
	KUNIT_EXPECT_EQ(test, c.q, 2 * q - q / 4);
	q = c.q;
	c.limited = 1;
	esp_qctl_sample(&c, p, 100, 100, now += 1000);
	KUNIT_EXPECT_GT(test, c.q, q);
	KUNIT_EXPECT_LT(test, c.q, q + q / 8);
}

static void qctl__bounds(struct kunit *test)
{
	const struct esp_policy *p = &adaptive_policy;
	struct esp_qctl c;
	u64 now = 1000000;
	int i;

	esp_qctl_init(&c, p);
	for (i = 0; i < 200; i++)
		esp_qctl_sample(&c, p, 10000, 100, now += 20000);
	KUNIT_EXPECT_EQ(test, c.q, p->q_min);
	for (i = 0; i < 2000; i++) {
		c.limited = 1;
		esp_qctl_sample(&c, p, 100, 100, now += 20000);
	}
	KUNIT_EXPECT_EQ(test, c.q, p->q_max);
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
	KUNIT_CASE(rtt__first_sample),
	KUNIT_CASE(rtt__converges),
	KUNIT_CASE(rtt_timeout__bounds),
	KUNIT_CASE(rtt_backoff__doubles),
	KUNIT_CASE(min_rtt__ten_seconds),
	KUNIT_CASE(rtt_round__median),
	KUNIT_CASE(policy__seed),
	KUNIT_CASE(policy__adaptive),
	KUNIT_CASE(qctl__grows_when_limited),
	KUNIT_CASE(qctl__bounds),
	KUNIT_CASE(qctl__loss),
	KUNIT_CASE(advice__handshake),
	KUNIT_CASE(advice__connected),
	{}
};
