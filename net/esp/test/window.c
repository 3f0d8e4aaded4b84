// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of window.c and of sequence numbers. Included by suite.c, and in
 * user space by selftests/unit/host-pure.c.
 */

static void seq__wraps(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, esp_before(0xffffffffu, 0));
	KUNIT_EXPECT_FALSE(test, esp_before(0, 0xffffffffu));
	KUNIT_EXPECT_FALSE(test, esp_before(5, 5));
	KUNIT_EXPECT_FALSE(test, esp_after(5, 5));
	KUNIT_EXPECT_TRUE(test, esp_after(0x80000000u, 0x7fffffffu));
	KUNIT_EXPECT_TRUE(test, esp_before(0, 0x7fffffffu));
	KUNIT_EXPECT_TRUE(test, esp_after(0, 0x80000001u));
}

/* Initial sequence numbers, so that each case passes 2^32 as well. */
static const u32 isns[] = { 1000, 0xfffffffeu, 0xfffffff0u, 0x7ffffff8u };

static void new_window(struct esp_window *w, u32 isn, u16 advice)
{
	memset(w, 0, sizeof(*w));
	w->initial = -1;
	w->advice = advice;
	esp_window_init(w, isn);
}

/* Make a new window, announce a transmission, and return its first number. */
static u32 announced(struct esp_window *w, u32 isn, u16 advice)
{
	new_window(w, isn, advice);
	esp_window_announce(w, false);
	return isn + 1;
}

/* Send up to @n packets that the window allows; return their number. */
static u32 send_some(struct esp_window *w, u32 n, bool txf)
{
	u32 i;

	for (i = 0; i < n && esp_window_test(w); i++)
		esp_window_sent(w, 1, !i && !w->in_trans, txf && i == n - 1);
	return i;
}

static int take_ack(struct esp_window *w, u32 ack_seq, u16 grant)
{
	return esp_window_ack(w, ack_seq, grant);
}

static void window_init__nothing_allowed(struct kunit *test)
{
	struct esp_window w;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(isns); i++) {
		new_window(&w, isns[i], 10);
		KUNIT_EXPECT_EQ(test, w.send_next, isns[i] + 1);
		KUNIT_EXPECT_EQ(test, w.una_seq, isns[i] + 1);
		KUNIT_EXPECT_FALSE(test, esp_window_test(&w));
		KUNIT_EXPECT_TRUE(test, esp_window_may_announce(&w));
	}
}

/* Rule 3: no more packets than the first burst leave before the first ACK. */
static void window_announce__first_burst(struct kunit *test)
{
	struct esp_window w;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(isns); i++) {
		announced(&w, isns[i], 10);
		KUNIT_EXPECT_EQ(test, w.announce_seq, isns[i] + 1);
		KUNIT_EXPECT_FALSE(test, esp_window_may_announce(&w));
		KUNIT_EXPECT_EQ(test, send_some(&w, 100, false), 10u);
		KUNIT_EXPECT_FALSE(test, esp_window_test(&w));
	}
}

/*
 * Rule 21: earlier packets that are still on their way don't shorten a first burst. One packet more
 * than those may leave even if the peer tells none.
 */
static void window_announce__on_its_way(struct kunit *test)
{
	struct esp_window w;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(isns); i++) {
		u32 s = announced(&w, isns[i], 10);

		KUNIT_EXPECT_EQ(test, send_some(&w, 7, true), 7u);
		take_ack(&w, s + 1, 9);
		esp_window_announce(&w, false);
		KUNIT_EXPECT_EQ(test, w.edge, s + 7 + 10);
		KUNIT_EXPECT_EQ(test, send_some(&w, 4, true), 4u);
		take_ack(&w, s + 8, 3);
		w.advice = 0;
		esp_window_announce(&w, false);
		KUNIT_EXPECT_EQ(test, send_some(&w, 20, true), 1u);
	}
}

/* Rule 3: the first burst ends with announce_seq + initial_ack_burst_length. */
static void window_announce__initial_ack_burst_length(struct kunit *test)
{
	struct esp_window w;

	new_window(&w, 1000, 10);
	w.initial = 3;
	KUNIT_EXPECT_EQ(test, esp_window_first_burst(&w), 4u);
	esp_window_announce(&w, false);
	KUNIT_EXPECT_EQ(test, send_some(&w, 10, false), 4);
	w.initial = 0;
	KUNIT_EXPECT_EQ(test, esp_window_first_burst(&w), 1u);
	w.initial = -1;
	KUNIT_EXPECT_EQ(test, esp_window_first_burst(&w), 10u);
	w.burst_length = 6;	/* caps the advised first burst, too */
	KUNIT_EXPECT_EQ(test, esp_window_first_burst(&w), 6u);
}

/* Rule 21: with an advised first burst of 0 no data leaves before the empty TXS is answered. */
static void window_announce__advice_0(struct kunit *test)
{
	struct esp_window w;

	announced(&w, 1000, 0);
	KUNIT_EXPECT_EQ(test, w.edge, w.send_next);
	KUNIT_EXPECT_EQ(test, send_some(&w, 10, false), 0u);
	/* the answer to the empty TXS has ack_seq = announce_seq */
	KUNIT_EXPECT_EQ(test, take_ack(&w, 1001, 4), ESP_ACK_OPENED);
	KUNIT_EXPECT_EQ(test, send_some(&w, 10, false), 4u);
	KUNIT_EXPECT_TRUE(test, w.announcing);
	take_ack(&w, 1002, 3);
	KUNIT_EXPECT_FALSE(test, w.announcing);
}

/* Rule 7: a whole transmission in a small packet never waits. */
static void window_announce__small(struct kunit *test)
{
	struct esp_window w;

	new_window(&w, 1000, 0);
	esp_window_announce(&w, true);
	KUNIT_EXPECT_EQ(test, send_some(&w, 10, true), 1u);
	new_window(&w, 1000, 5);
	esp_window_announce(&w, true);
	KUNIT_EXPECT_EQ(test, w.edge, w.send_next + 5);
}

/* Rule 3: a stream of small writes sends one first burst, and stops without an ACK. */
static void window_announce__stands_still(struct kunit *test)
{
	struct esp_window w;
	u32 sent = 0, i;

	new_window(&w, 0xfffffff0u, 6);
	for (i = 0; i < 100; i++) {
		if (esp_window_may_announce(&w))
			esp_window_announce(&w, true);
		sent += send_some(&w, 1, true);
	}
	KUNIT_EXPECT_EQ(test, sent, 6u);
	KUNIT_EXPECT_EQ(test, w.announce_seq, 0xfffffff1u);
	/* an ACK of the announcing packet lets the next one announce */
	take_ack(&w, w.announce_seq + 1, 0);
	KUNIT_EXPECT_TRUE(test, esp_window_may_announce(&w));
}

/* Rule 3: edge = max(edge, ack_seq + min(grant, burst_length)). */
static void window_ack__moves_edge(struct kunit *test)
{
	struct esp_window w;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(isns); i++) {
		u32 s = announced(&w, isns[i], 4);

		send_some(&w, 4, false);
		KUNIT_EXPECT_EQ(test, take_ack(&w, s + 1, 10),
				ESP_ACK_PROGRESS | ESP_ACK_OPENED);
		KUNIT_EXPECT_EQ(test, w.una_seq, s + 1);
		KUNIT_EXPECT_EQ(test, w.edge, s + 11);
		/* the edge never moves back during a transmission */
		KUNIT_EXPECT_EQ(test, take_ack(&w, s + 2, 3),
				ESP_ACK_PROGRESS);
		KUNIT_EXPECT_EQ(test, w.edge, s + 11);
		/* the same ACK again changes nothing */
		KUNIT_EXPECT_EQ(test, take_ack(&w, s + 2, 3), 0);
		/* burst_length caps the grant */
		w.burst_length = 16;
		KUNIT_EXPECT_EQ(test, take_ack(&w, s + 2, 500),
				ESP_ACK_OPENED);
		KUNIT_EXPECT_EQ(test, w.edge, s + 18);
	}
}

/*
 * Rules 3, 16: the next transmission does not get the grant of the announced one. It has to
 * wait until it may be announced itself.
 */
static void window_test__not_the_next_transmission(struct kunit *test)
{
	struct esp_window w;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(isns); i++) {
		u32 s = announced(&w, isns[i], 4);

		/* the next transmission shares the first burst */
		KUNIT_EXPECT_EQ(test, send_some(&w, 2, true), 2);
		KUNIT_EXPECT_EQ(test, send_some(&w, 1, true), 1);
		/* a peer that knows neither tells the first burst of the one after them */
		KUNIT_EXPECT_EQ(test, take_ack(&w, s, 10), 0);
		KUNIT_EXPECT_EQ(test, w.advice, 10);
		KUNIT_EXPECT_EQ(test, w.edge, s + 4);
		KUNIT_EXPECT_EQ(test, send_some(&w, 5, false), 1);

		announced(&w, isns[i], 4);		/* the announced one gets the grant */
		KUNIT_EXPECT_EQ(test, send_some(&w, 1, false), 1);
		take_ack(&w, s + 1, 9);
		KUNIT_EXPECT_EQ(test, send_some(&w, 20, false), 9);

		/* an answer to the announced one grants nothing to a long one that follows */
		announced(&w, isns[i], 8);
		KUNIT_EXPECT_EQ(test, send_some(&w, 2, true), 2);
		KUNIT_EXPECT_EQ(test, send_some(&w, 20, false), 6);
		KUNIT_EXPECT_EQ(test, take_ack(&w, s + 1, 15), ESP_ACK_PROGRESS);
		KUNIT_EXPECT_EQ(test, w.announce_seq, s + 2);
		KUNIT_EXPECT_FALSE(test, esp_window_test(&w));
		take_ack(&w, s + 3, 15);
		KUNIT_EXPECT_EQ(test, send_some(&w, 20, false), 10);

		announced(&w, isns[i], 0);		/* by an empty TXS */
		take_ack(&w, s, 10);
		KUNIT_EXPECT_EQ(test, send_some(&w, 2, true), 2);
		KUNIT_EXPECT_FALSE(test, esp_window_test(&w));
		take_ack(&w, s + 1, 9);
		KUNIT_EXPECT_TRUE(test, esp_window_may_announce(&w));
		esp_window_announce(&w, false);
		KUNIT_EXPECT_EQ(test, w.edge, s + 3);
	}
}

static void window_ack__stale_and_invalid(struct kunit *test)
{
	struct esp_window w, old;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(isns); i++) {
		u32 s = announced(&w, isns[i], 8);

		send_some(&w, 8, false);
		take_ack(&w, s + 4, 10);
		memcpy(&old, &w, sizeof(w));
		KUNIT_EXPECT_EQ(test, take_ack(&w, s + 9, 100),
				ESP_ACK_INVALID);
		KUNIT_EXPECT_EQ(test, take_ack(&w, s + 0x40000000, 100),
				ESP_ACK_INVALID);
		KUNIT_EXPECT_EQ(test, take_ack(&w, s + 3, 100),
				ESP_ACK_STALE);
		KUNIT_EXPECT_EQ(test, take_ack(&w, s - 0x40000000, 100),
				ESP_ACK_STALE);
		KUNIT_EXPECT_EQ(test, memcmp(&old, &w, sizeof(w)), 0);
	}
}

/* Rule 13: grant 0 is a HOLD; it opens nothing and takes nothing back. */
static void window_ack__hold(struct kunit *test)
{
	struct esp_window w;

	announced(&w, 1000, 4);
	send_some(&w, 10, false);
	KUNIT_EXPECT_EQ(test, take_ack(&w, 1003, 0),
			ESP_ACK_PROGRESS | ESP_ACK_HOLD);
	KUNIT_EXPECT_TRUE(test, w.on_hold);
	KUNIT_EXPECT_EQ(test, w.edge, 1005u);
	/* a HOLD in a row is not reported again */
	KUNIT_EXPECT_EQ(test, take_ack(&w, 1005, 0), ESP_ACK_PROGRESS);
	KUNIT_EXPECT_EQ(test, take_ack(&w, 1005, 2), ESP_ACK_OPENED);
	KUNIT_EXPECT_FALSE(test, w.on_hold);
}

/* Rule 21: on an idle connection the field grant is a first burst, not a grant. */
static void window_ack__advice(struct kunit *test)
{
	struct esp_window w;

	announced(&w, 1000, 4);
	KUNIT_EXPECT_EQ(test, send_some(&w, 2, true), 2u);
	/* not all acknowledged: a grant */
	KUNIT_EXPECT_EQ(test, take_ack(&w, 1002, 20),
			ESP_ACK_PROGRESS | ESP_ACK_OPENED);
	KUNIT_EXPECT_EQ(test, w.advice, 4);
	/* all acknowledged, nothing announced: a first burst */
	KUNIT_EXPECT_EQ(test, take_ack(&w, 1003, 9), ESP_ACK_PROGRESS);
	KUNIT_EXPECT_EQ(test, w.advice, 9);
	KUNIT_EXPECT_EQ(test, w.edge, 1022u);
	/* a cut is to be echoed; a first burst of 0 is no HOLD */
	KUNIT_EXPECT_EQ(test, take_ack(&w, 1003, 0), ESP_ACK_CUT);
	KUNIT_EXPECT_EQ(test, w.advice, 0);
	KUNIT_EXPECT_FALSE(test, w.on_hold);
	/* within a transmission it is a grant again */
	esp_window_announce(&w, false);
	KUNIT_EXPECT_EQ(test, take_ack(&w, 1003, 7), ESP_ACK_OPENED);
	KUNIT_EXPECT_EQ(test, w.advice, 0);
}

/* Rules 16, 18: TXF gives the rest of the grant back. */
static void window_announce__voids_the_rest(struct kunit *test)
{
	struct esp_window w;

	announced(&w, 0xfffffff8u, 2);
	send_some(&w, 2, false);
	take_ack(&w, 0xfffffffau, 60);
	KUNIT_EXPECT_EQ(test, send_some(&w, 10, true), 10u);
	esp_window_announce(&w, false);
	KUNIT_EXPECT_EQ(test, w.edge, w.send_next + 2);
	/* an ACK from before the announcement opens nothing */
	KUNIT_EXPECT_EQ(test, take_ack(&w, 0xffffffffu, 60),
			ESP_ACK_PROGRESS);
	KUNIT_EXPECT_EQ(test, w.edge, w.send_next + 2);
}

static struct kunit_case window_cases[] = {
	KUNIT_CASE(seq__wraps),
	KUNIT_CASE(window_init__nothing_allowed),
	KUNIT_CASE(window_announce__first_burst),
	KUNIT_CASE(window_announce__on_its_way),
	KUNIT_CASE(window_announce__initial_ack_burst_length),
	KUNIT_CASE(window_announce__advice_0),
	KUNIT_CASE(window_announce__small),
	KUNIT_CASE(window_announce__stands_still),
	KUNIT_CASE(window_ack__moves_edge),
	KUNIT_CASE(window_test__not_the_next_transmission),
	KUNIT_CASE(window_ack__stale_and_invalid),
	KUNIT_CASE(window_ack__hold),
	KUNIT_CASE(window_ack__advice),
	KUNIT_CASE(window_announce__voids_the_rest),
	{}
};
