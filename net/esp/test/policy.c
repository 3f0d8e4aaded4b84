// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of policy.c. Included by suite.c, and in user space by
 * selftests/unit/host-pure.c.
 */

static const struct esp_policy seed_policy = {
	.burst_length = 64, .q_min = 8, .q_max = 4096, .first_pool = 64,
};

static const struct esp_policy adaptive_policy = {
	.adaptive = 1, .shortest_first = 1, .q_min = 8, .q_max = 4096, .first_pool = 64,
};

/* Rules 14, 15. */
static void policy__seed(struct kunit *test)
{
	static const struct esp_policy none = { 0 };

	/* fast path while esp_recv_count <= 1 */
	KUNIT_EXPECT_TRUE(test, esp_policy_fast(0));
	KUNIT_EXPECT_TRUE(test, esp_policy_fast(1));
	KUNIT_EXPECT_FALSE(test, esp_policy_fast(2));
	/* release when the queue holds esp_recv_count entries */
	KUNIT_EXPECT_FALSE(test, esp_policy_release(2, 1, 3));
	KUNIT_EXPECT_TRUE(test, esp_policy_release(3, 1, 3));
	KUNIT_EXPECT_TRUE(test, esp_policy_release(3, 1, 2));
	/* or when nothing is on its way that could bring the next cause */
	KUNIT_EXPECT_TRUE(test, esp_policy_release(1, 0, 3));
	KUNIT_EXPECT_FALSE(test, esp_policy_release(0, 0, 0));
	KUNIT_EXPECT_EQ(test, esp_policy_grant(&seed_policy), 64u);
	KUNIT_EXPECT_EQ(test, esp_policy_grant(&none), 1u);
}

static struct kunit_case policy_cases[] = {
	KUNIT_CASE(policy__seed),
	{}
};
