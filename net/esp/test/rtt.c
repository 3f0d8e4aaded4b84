// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of rtt.c. Included by suite.c, and in user space by selftests/unit/host-pure.c.
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
	KUNIT_EXPECT_GE(test, r.srtt8, 1u);	/* 0 means that nothing was measured */
	esp_rtt_sample(&r, 0xffffffffu);	/* an invalid sample counts as ESP_RTT_MAX_US */
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
	/* after a long silence only the new sample counts */
	esp_min_rtt_sample(&m, 300, 100 * second);
	KUNIT_EXPECT_EQ(test, esp_min_rtt_get(&m), 300u);
	/* a sample that another processor took a moment earlier is no silence */
	esp_min_rtt_sample(&m, 900, 100 * second - 1);
	KUNIT_EXPECT_EQ(test, esp_min_rtt_get(&m), 300u);
}

/* Rule 22: the shortest and the longest round trip of a round. */
static void rtt_round__bounds(struct kunit *test)
{
	struct esp_rtt_round r = {};

	esp_rtt_round_begin(&r, 1000);
	KUNIT_EXPECT_FALSE(test, esp_rtt_round_add(&r, 500, 200, 1010));
	KUNIT_EXPECT_FALSE(test, esp_rtt_round_add(&r, 900, 200, 1011));
	KUNIT_EXPECT_FALSE(test, esp_rtt_round_add(&r, 100, 200, 1199));
	KUNIT_EXPECT_TRUE(test, esp_rtt_round_add(&r, 300, 200, 1200));
	KUNIT_EXPECT_EQ(test, r.least, 100u);
	KUNIT_EXPECT_EQ(test, r.most, 900u);

	/* what was measured before a round does not count in it */
	esp_rtt_round_begin(&r, 1200);
	KUNIT_EXPECT_FALSE(test, esp_rtt_round_add(&r, 400, 200, 1300));
	KUNIT_EXPECT_EQ(test, r.least, 400u);
	KUNIT_EXPECT_EQ(test, r.most, 400u);

	/* nor what was measured before a long pause */
	KUNIT_EXPECT_TRUE(test, esp_rtt_round_add(&r, 900, 200, 1200 + ESP_MIN_RTT_WINDOW_US));
	KUNIT_EXPECT_EQ(test, r.least, 900u);
	KUNIT_EXPECT_EQ(test, r.most, 900u);

	/* 0 counts as 1 */
	esp_rtt_round_begin(&r, 1600);
	KUNIT_EXPECT_FALSE(test, esp_rtt_round_add(&r, 0, 200, 1700));
	KUNIT_EXPECT_EQ(test, r.least, 1u);
}

static struct kunit_case rtt_cases[] = {
	KUNIT_CASE(rtt__first_sample),
	KUNIT_CASE(rtt__converges),
	KUNIT_CASE(rtt_timeout__bounds),
	KUNIT_CASE(rtt_backoff__doubles),
	KUNIT_CASE(min_rtt__ten_seconds),
	KUNIT_CASE(rtt_round__bounds),
	{}
};
