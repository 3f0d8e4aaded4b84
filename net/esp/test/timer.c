// SPDX-License-Identifier: GPL-2.0-only
/* Deadlines, hrtimers, and the line of delayed ACKs. Included by suite.c, after harness.c. */

/*
 * The hrtimer follows a deadline that moves on after half of its time, so that it does not
 * fire for nothing. It follows no further than to the next deadline, and only if this
 * processor has armed it.
 */
static void timer__follows(struct kunit *test)
{
	const u64 s = USEC_PER_SEC, slack = ESP_SLACK_US;
	struct t_conn c;
	u64 now;

	conf()->ack_delay_us = 0;
	open_conn(test, &c, 0, 4);
	local_bh_disable();
	esp_timers_stop(c.sock->sk);
	now = esp_now();
	esp_timer_move(c.esp, ESP_T_ACK, now, 100 * s, slack);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, now + 100 * s + slack);
	esp_timer_move(c.esp, ESP_T_ACK, now + 40 * s, 100 * s, slack);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, now + 100 * s + slack);
	c.esp->timer_by += ESP_T_MAX;
	esp_timer_move(c.esp, ESP_T_ACK, now + 60 * s, 100 * s, slack);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, now + 100 * s + slack);
	c.esp->timer_by -= ESP_T_MAX;
	/* the hrtimer is armed for another deadline */
	esp_timer_move(c.esp, ESP_T_SEND, now + 60 * s, 200 * s, slack);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, now + 100 * s + slack);
	esp_timer_move(c.esp, ESP_T_ACK, now + 60 * s, 100 * s, slack);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, now + 160 * s + slack);
	esp_timer_set(c.esp, ESP_T_RRQ, now + 170 * s);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, now + 160 * s + slack);
	esp_timer_move(c.esp, ESP_T_ACK, now + 120 * s, 100 * s, slack);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, now + 170 * s);
	KUNIT_EXPECT_EQ(test, c.esp->timer_by, esp_timer_by(ESP_T_RRQ));
	esp_timers_stop(c.sock->sk);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, U64_MAX);
	KUNIT_EXPECT_EQ(test, c.esp->timer_ref, 0);
	local_bh_enable();
	close_conn(test, &c);
}

/*
 * An ACK without data to ride on is late by the slack at most. It may leave early, together
 * with ACKs of other sockets.
 */
static void timer__ack_window(struct kunit *test)
{
	const u64 ms = 1000;
	struct t_conn c;
	u64 at;

	conf()->ack_delay_us = 500 * ms;
	open_conn(test, &c, 0, 4);
	local_bh_disable();
	esp_timers_stop(c.sock->sk);
	c.esp->ack_pending = 0;
	c.esp->progress_us = esp_now();
	at = c.esp->progress_us + 500 * ms;
	esp_ack_soon(c.sock->sk, 0);
	KUNIT_EXPECT_EQ(test, c.esp->deadline[ESP_T_ACK], at - ESP_ACK_EARLY_US);
	KUNIT_EXPECT_EQ(test, c.esp->ack_at, at - ESP_ACK_EARLY_US);
	KUNIT_EXPECT_TRUE(test, c.esp->ack_line);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, U64_MAX);
	/* a delay that is longer than ack_delay_us takes the socket's hrtimer */
	esp_timers_stop(c.sock->sk);
	c.esp->ack_pending = 0;
	esp_ack_soon(c.sock->sk, 800 * ms);
	KUNIT_EXPECT_FALSE(test, c.esp->ack_line);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, at + 300 * ms + ESP_SLACK_US);
	esp_timers_stop(c.sock->sk);
	local_bh_enable();
	close_conn(test, &c);
}

/*
 * Open @n connections of one host, without a deadline. Softirqs are off afterwards, so that
 * no frame and no timer comes in between.
 */
static void open_line(struct kunit *test, struct t_conn *c, int n)
{
	struct esp_frame f;
	int i;

	conf()->ack_delay_us = 100 * USEC_PER_SEC;
	open_conn(test, &c[0], 0, 4);
	for (i = 1; i < n; i++) {
		new_conn(&c[i], 0);
		c[i].port += i;
		syn(test, &c[i]);
		echo_frame(&c[i], &f, 4);
		c[i].grant = 4;
		accept_conn(test, &c[i], &f);
		silence(test);
	}
	local_bh_disable();
	for (i = 0; i < n; i++) {
		esp_timers_stop(c[i].sock->sk);
		c[i].esp->ack_pending = 0;
	}
}

static void close_line(struct kunit *test, struct t_conn *c, int n)
{
	int i;

	for (i = 0; i < n; i++)
		esp_timers_stop(c[i].sock->sk);
	local_bh_enable();
	for (i = 0; i < n; i++)
		close_conn(test, &c[i]);
}

static bool behind(struct t_conn *last, struct t_conn *first)
{
	return first->esp->ack_node.next == &last->esp->ack_node;
}

/*
 * A line of delayed ACKs is in order of time. A socket whose place is not near the end, or
 * whose place in the line is later than its new deadline, takes its own hrtimer.
 */
static void timer__line_order(struct kunit *test)
{
	const u64 s = USEC_PER_SEC, late = ESP_ACK_EARLY_US + ESP_SLACK_US;
	u64 now = esp_now();
	struct t_conn *c;
	int i;

	c = kunit_kcalloc(test, 11, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	open_line(test, c, 11);
	for (i = 1; i < 10; i++)
		esp_ack_wait(c[i].esp, now + (500 + i) * s);
	esp_ack_wait(c[10].esp, now + 502 * s);
	KUNIT_EXPECT_TRUE(test, behind(&c[10], &c[2]));
	KUNIT_EXPECT_TRUE(test, behind(&c[3], &c[10]));
	esp_ack_wait(c[0].esp, now + 400 * s);
	KUNIT_EXPECT_FALSE(test, c[0].esp->ack_line);
	KUNIT_EXPECT_EQ(test, c[0].esp->timer_at, now + 400 * s + late);
	esp_ack_wait(c[5].esp, now + 300 * s);
	KUNIT_EXPECT_EQ(test, c[5].esp->ack_at, now + 505 * s);
	KUNIT_EXPECT_EQ(test, c[5].esp->timer_at, now + 300 * s + late);
	/* the hrtimer keeps a deadline before the place, and one after it that doesn't ride */
	esp_timer_follow(c[5].esp);
	KUNIT_EXPECT_EQ(test, c[5].esp->timer_at, now + 300 * s + late);
	esp_timer_clear(c[5].esp, ESP_T_ACK);
	c[5].esp->ack_pending = ESP_ACK_WAITS;
	esp_timer_set(c[5].esp, ESP_T_ACK, now + 600 * s);
	esp_timer_follow(c[5].esp);
	KUNIT_EXPECT_EQ(test, c[5].esp->timer_at, now + 600 * s + ESP_SLACK_US);
	close_line(test, c, 11);
}

/* A socket stays in its line while ACKs ride on replies. The line holds one reference. */
static void timer__line_stays(struct kunit *test)
{
	const u64 s = USEC_PER_SEC;
	u64 now = esp_now();
	struct t_conn c[2];
	int refs;

	open_line(test, c, 2);
	refs = refcount_read(&c[0].sock->sk->sk_refcnt);
	esp_ack_wait(c[0].esp, now + 500 * s);
	esp_ack_wait(c[1].esp, now + 510 * s);
	KUNIT_EXPECT_EQ(test, refcount_read(&c[0].sock->sk->sk_refcnt), refs + 1);
	esp_timer_clear(c[0].esp, ESP_T_ACK);
	esp_ack_wait(c[0].esp, now + 540 * s);
	KUNIT_EXPECT_EQ(test, c[0].esp->ack_at, now + 500 * s);
	KUNIT_EXPECT_EQ(test, refcount_read(&c[0].sock->sk->sk_refcnt), refs + 1);
	/* another deadline arms the hrtimer, and leaves the ACK to the line */
	esp_timer_set(c[0].esp, ESP_T_RRQ, now + 600 * s);
	KUNIT_EXPECT_EQ(test, c[0].esp->timer_at, now + 600 * s);
	esp_timer_follow(c[0].esp);
	KUNIT_EXPECT_EQ(test, c[0].esp->timer_at, now + 600 * s);
	esp_timers_stop(c[0].sock->sk);
	KUNIT_EXPECT_FALSE(test, c[0].esp->ack_line);
	KUNIT_EXPECT_EQ(test, refcount_read(&c[0].sock->sk->sk_refcnt), refs);
	close_line(test, c, 2);
}

/*
 * After half of the time, sockets at the head for which no ACK is due move to the place of
 * the ACK that waits now, or that would wait now, so that the hrtimer does not fire for
 * nothing. A socket whose ACK is still due does not move, and an idle socket does not.
 */
static void timer__line_follows(struct kunit *test)
{
	const u64 s = USEC_PER_SEC, early = ESP_ACK_EARLY_US;
	u64 now = esp_now(), next;
	struct t_conn c[3];
	int i;

	open_line(test, c, 3);
	for (i = 0; i < 3; i++) {
		c[i].esp->progress_us = now + (400 + 10 * i) * s;
		esp_ack_wait(c[i].esp, now + (500 + 10 * i) * s - early);
	}
	/* the first socket's ACK is still due: none moves */
	esp_ack_wait(c[2].esp, now + 560 * s);
	KUNIT_EXPECT_EQ(test, c[0].esp->ack_at, now + 500 * s - early);
	KUNIT_EXPECT_EQ(test, c[2].esp->ack_at, now + 520 * s - early);
	/* its ACK has left, and no message came since; and the last attempt was just now */
	esp_timer_clear(c[0].esp, ESP_T_ACK);
	esp_ack_wait(c[1].esp, now + 555 * s);
	KUNIT_EXPECT_EQ(test, c[1].esp->ack_at, now + 510 * s - early);
	esp_ack_wait(c[2].esp, now + 620 * s);
	KUNIT_EXPECT_EQ(test, c[0].esp->ack_at, now + 500 * s - early);
	/* a message came, and the second socket waits for another ACK than at first */
	c[0].esp->progress_us = now + 410 * s;
	esp_ack_wait(c[2].esp, now + 690 * s);
	next = now + 690 * s - ESP_SLACK_US / 2;
	KUNIT_EXPECT_EQ(test, c[0].esp->ack_at, next);
	KUNIT_EXPECT_EQ(test, c[1].esp->ack_at, now + 555 * s);
	KUNIT_EXPECT_EQ(test, c[2].esp->ack_at, now + 690 * s);
	KUNIT_EXPECT_TRUE(test, behind(&c[0], &c[1]));
	KUNIT_EXPECT_TRUE(test, behind(&c[2], &c[0]));
	close_line(test, c, 3);
}

/*
 * The first socket's ACK waits longer than at first, but not as long as those of many sockets
 * after it. Its new place would not be near the end, so it keeps the old one.
 */
static void timer__line_keeps_the_first(struct kunit *test)
{
	const u64 s = USEC_PER_SEC;
	u64 now = esp_now();
	struct t_conn *c;
	int i;

	c = kunit_kcalloc(test, 11, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	open_line(test, c, 11);
	esp_ack_wait(c[0].esp, now + 500 * s);
	for (i = 1; i < 11; i++)
		esp_ack_wait(c[i].esp, now + (600 + i) * s);
	esp_timer_clear(c[0].esp, ESP_T_ACK);
	esp_ack_wait(c[0].esp, now + 550 * s);
	KUNIT_EXPECT_EQ(test, c[0].esp->ack_at, now + 500 * s);
	esp_ack_wait(c[10].esp, now + 700 * s);		/* the line would follow */
	KUNIT_EXPECT_EQ(test, c[0].esp->ack_at, now + 500 * s);
	KUNIT_EXPECT_TRUE(test, behind(&c[1], &c[0]));
	/* without them it moves */
	for (i = 2; i < 11; i++)
		esp_timers_stop(c[i].sock->sk);
	esp_timer_clear(c[1].esp, ESP_T_ACK);
	esp_ack_wait(c[1].esp, now + 900 * s);
	KUNIT_EXPECT_EQ(test, c[0].esp->ack_at, now + 550 * s);
	close_line(test, c, 11);
}

/* An ACK without data to ride on leaves when the line's hrtimer fires, and so does the socket. */
static void timer__line_fires(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;
	int i;

	open_conn(test, &c, 0, 4);
	conf()->ack_delay_us = 2000;
	esp_timers_stop(c.sock->sk);
	c.esp->ack_pending = 0;
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 64);
	for (i = 0; i < 1000 && READ_ONCE(c.esp->ack_line); i++)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_FALSE(test, c.esp->ack_line);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	KUNIT_EXPECT_EQ(test, c.esp->deadline[ESP_T_ACK], 0ull);
	close_conn(test, &c);
}

/* In TIME_WAIT the hrtimer fires once, with more slack, together with other sockets' hrtimers. */
static void timer__time_wait(struct kunit *test)
{
	struct t_conn c;
	u64 at;

	conf()->time_wait_ms = 60000;
	open_conn(test, &c, 0, 4);
	local_bh_disable();
	esp_timers_stop(c.sock->sk);
	at = esp_now() + USEC_PER_SEC;
	esp_timer_set(c.esp, ESP_T_SEND, at);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, at + ESP_SLACK_US);
	esp_timer_clear(c.esp, ESP_T_SEND);
	esp_time_wait(c.sock->sk);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, (unsigned char)TCP_TIME_WAIT);
	at = c.esp->deadline[ESP_T_CONN];
	KUNIT_EXPECT_GT(test, at, esp_now() + 59 * USEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, at + ESP_WAIT_SLACK_US);
	/* the hrtimer keeps an earlier deadline */
	esp_timer_set(c.esp, ESP_T_RRQ, at - 30 * USEC_PER_SEC);
	esp_time_wait(c.sock->sk);
	KUNIT_EXPECT_EQ(test, c.esp->timer_at, at - 30 * USEC_PER_SEC);
	esp_timers_stop(c.sock->sk);
	esp_set_state(c.sock->sk, TCP_ESTABLISHED);	/* close_conn()'s RST ends this state */
	local_bh_enable();
	close_conn(test, &c);
}

static struct kunit_case timer_cases[] = {
	KUNIT_CASE(timer__follows),
	KUNIT_CASE(timer__ack_window),
	KUNIT_CASE(timer__line_order),
	KUNIT_CASE(timer__line_stays),
	KUNIT_CASE(timer__line_follows),
	KUNIT_CASE(timer__line_keeps_the_first),
	KUNIT_CASE(timer__line_fires),
	KUNIT_CASE(timer__time_wait),
	{}
};
