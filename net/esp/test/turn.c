// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of turn.c. Included by suite.c, and in user space by
 * selftests/unit/host-pure.c.
 */

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

static struct kunit_case turn_cases[] = {
	KUNIT_CASE(turn__class),
	KUNIT_CASE(turn__order),
	KUNIT_CASE(turn__hosts),
	KUNIT_CASE(turn__fifo),
	KUNIT_CASE(turn__park),
	{}
};
