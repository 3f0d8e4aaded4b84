// SPDX-License-Identifier: GPL-2.0-only
/*
 * ACKs that may come later, ESP_GRANT_LATER: which packets allow it, and when such an ACK leaves.
 * Included by suite.c, after harness.c.
 */

/* Open a connection whose peer knows ESP_GRANT_LATER, and has lost nothing for long. */
static void open_later(struct kunit *test, struct t_conn *c)
{
	conf()->rto_min_us = 4000000;	/* no retransmission while the test runs */
	conf()->ack_delay_us = 500000;
	fx.later = true;
	open_conn(test, c, 0, 8);
	WRITE_ONCE(c->esp->peer->lossless, ESP_LOSSLESS);
}

/* Send @n packets as one transmission, and expect its last one with LATER or without. */
static void expect_later(struct kunit *test, struct t_conn *c, int n, bool later)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	int i;

	lock_sock(c->sock->sk);
	c->esp->data_us = esp_now();	/* as if the peer had answered the one before */
	release_sock(c->sock->sk);
	KUNIT_EXPECT_EQ(test, send_bytes(c, buf, n * T_MSS, 0), n * T_MSS);
	for (i = 0; i < n; i++)
		next(test, c, ESP_ACK | (i ? 0 : ESP_TXS) | (i < n - 1 ? 0 : ESP_TXF), &f);
	KUNIT_EXPECT_EQ(test, (bool)f.later, later);
}

static u32 rto_of(struct t_conn *c)
{
	u32 rto;

	lock_sock(c->sock->sk);
	rto = esp_rto(c->esp);
	release_sock(c->sock->sk);
	return rto;
}

/* A transmission of one packet has it, and is taken for lost as much later. */
static void later__whole(struct kunit *test)
{
	struct t_conn c;
	u32 rto;

	open_later(test, &c);
	rto = rto_of(&c);
	expect_later(test, &c, 1, true);
	KUNIT_EXPECT_EQ(test, rto_of(&c), rto + ESP_LATER_US);
	c.ack += 1;
	feed_ack(test, &c, 8);
	KUNIT_EXPECT_EQ(test, rto_of(&c), rto);
	/* the end of a longer one has its ACK at once */
	expect_later(test, &c, 3, false);
	KUNIT_EXPECT_EQ(test, rto_of(&c), rto);
	c.ack += 3;
	feed_ack(test, &c, 8);
	/* Nagle's rule waits for the ACK */
	lock_sock(c.sock->sk);
	c.esp->nodelay = 0;
	release_sock(c.sock->sk);
	expect_later(test, &c, 1, false);
	KUNIT_EXPECT_EQ(test, rto_of(&c), rto);
	close_conn(test, &c);
}

/* It has none if the peer has not answered the one before. */
static void later__in_turns(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;
	int i;

	open_later(test, &c);
	expect_later(test, &c, 1, true);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, send_bytes(&c, "again", 5, 0), 5);
		next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
		KUNIT_EXPECT_EQ(test, (int)f.later, 0);
		usleep_range(2, 3);
	}
	c.ack += 3;
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	c.seq++;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "reply", 5, 0), 5);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, (int)f.later, 1);
	close_conn(test, &c);
}

/* It has none if somebody would wait for the ACK, or give up meanwhile. */
static void later__in_time(struct kunit *test)
{
	struct t_conn c;
	int sndbuf;

	open_later(test, &c);
	lock_sock(c.sock->sk);
	c.esp->user_timeout_ms = ESP_LATER_US / USEC_PER_MSEC;
	release_sock(c.sock->sk);
	expect_later(test, &c, 1, false);
	lock_sock(c.sock->sk);
	c.esp->user_timeout_ms = 60000;
	release_sock(c.sock->sk);
	expect_later(test, &c, 1, true);
	/* the queue is full with this packet */
	sndbuf = c.sock->sk->sk_sndbuf;
	WRITE_ONCE(c.sock->sk->sk_sndbuf, c.sock->sk->sk_wmem_queued + 1);
	expect_later(test, &c, 1, false);
	WRITE_ONCE(c.sock->sk->sk_sndbuf, sndbuf);
	c.ack += 3;
	feed_ack(test, &c, 8);
	conf()->rto_max_ms = ESP_LATER_US / USEC_PER_MSEC;
	expect_later(test, &c, 1, false);
	close_conn(test, &c);
}

static u64 send_deadline(struct t_conn *c)
{
	u64 at;

	lock_sock(c->sock->sk);
	at = c->esp->deadline[ESP_T_SEND];
	release_sock(c->sock->sk);
	return at;
}

/* A packet without it is taken for lost as early as ever, whatever was sent before. */
static void later__timer_moves(struct kunit *test)
{
	struct t_conn c;
	u64 before;

	open_later(test, &c);
	expect_later(test, &c, 1, true);
	before = send_deadline(&c);
	WRITE_ONCE(c.esp->peer->lossless, 0);
	expect_later(test, &c, 1, false);
	KUNIT_EXPECT_EQ(test, send_deadline(&c), c.esp->sent_at + rto_of(&c));
	KUNIT_EXPECT_LT(test, send_deadline(&c), before + (c.esp->sent_at - c.esp->waiting_since));
	close_conn(test, &c);
}

/* An older peer would acknowledge at once, or not know the bit. */
static void later__older_peer(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_later(test, &c);
	close_conn(test, &c);
	fx.later = false;
	open_conn(test, &c, 1, 8);
	WRITE_ONCE(c.esp->peer->lossless, ESP_LOSSLESS);
	expect_later(test, &c, 1, false);
	c.ack += 1;
	conf()->ack_delay_us = 1000;
	conn_frame(&c, &f, ESP_TXS | ESP_TXF | ESP_ACK, c.seq, 10);
	f.grant = 8;
	f.later = 1;
	lock_sock(c.sock->sk);
	c.esp->replies = 1;
	release_sock(c.sock->sk);
	feed_frame(test, c.mac, &f, NULL);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	KUNIT_EXPECT_LT(test, (u32)esp_now() - (u32)c.esp->progress_us, (u32)USEC_PER_SEC);
	close_conn(test, &c);
}

/* Packets that the peer has got count up to ESP_LOSSLESS; a retransmission begins anew. */
static void later__after_losses(struct kunit *test)
{
	struct esp_peer *peer;
	struct t_conn c;

	open_later(test, &c);
	peer = c.esp->peer;
	WRITE_ONCE(peer->lossless, ESP_LOSSLESS - 3);
	expect_later(test, &c, 1, false);
	expect_later(test, &c, 1, false);
	expect_later(test, &c, 1, false);
	KUNIT_EXPECT_EQ(test, peer->lossless, ESP_LOSSLESS - 3);
	c.ack += 2;
	feed_ack(test, &c, 8);
	KUNIT_EXPECT_EQ(test, peer->lossless, ESP_LOSSLESS - 1);
	c.ack += 1;
	feed_ack(test, &c, 8);
	KUNIT_EXPECT_EQ(test, peer->lossless, ESP_LOSSLESS);
	expect_later(test, &c, 1, true);
	feed_rrq(test, &c, 0, 1);
	KUNIT_EXPECT_EQ(test, peer->lossless, 0u);
	KUNIT_EXPECT_EQ(test, (int)c.esp->sent_later, 0);
	skb_queue_purge(&fx.out);
	c.ack += 1;
	feed_ack(test, &c, 8);
	KUNIT_EXPECT_EQ(test, peer->lossless, 1u);
	expect_later(test, &c, 1, false);
	close_conn(test, &c);
}

/* Feed a packet, with LATER or without. */
static void feed_later(struct kunit *test, struct t_conn *c, u8 flags, bool later)
{
	struct esp_frame f;

	conn_frame(c, &f, flags | ESP_ACK, c->seq++, 10);
	f.grant = 8;
	f.later = later;
	feed_frame(test, c->mac, &f, NULL);
}

/* Return the time for which the ACK may wait from now on, microseconds. */
static u64 ack_wait(struct t_conn *c)
{
	u64 wait = 0;

	lock_sock(c->sock->sk);
	if (c->esp->ack_pending)
		wait = c->esp->deadline[ESP_T_ACK] - c->esp->progress_us;
	release_sock(c->sock->sk);
	return wait;
}

static void set_replies(struct t_conn *c, bool replies)
{
	lock_sock(c->sock->sk);
	c->esp->replies = replies;
	release_sock(c->sock->sk);
}

/* The ACK waits for data if data have followed before. */
static void later__ack_waits(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_later(test, &c);
	conf()->ack_delay_us = 1000;	/* with rto_min_us, longer than the test needs */
	set_replies(&c, true);
	feed_later(test, &c, ESP_TXS | ESP_TXF, true);
	KUNIT_EXPECT_EQ(test, ack_wait(&c), (u64)ESP_LATER_US);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "reply", 5, 0), 5);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq);
	KUNIT_EXPECT_EQ(test, ack_wait(&c), 0ull);
	close_conn(test, &c);
}

/* The end of a transmission of more than one packet has an ACK at once, whatever the peer says. */
static void later__end_of_many(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_later(test, &c);
	feed_later(test, &c, ESP_TXS, false);
	skb_queue_purge(&fx.out);	/* a grant */
	set_replies(&c, true);
	feed_later(test, &c, ESP_TXF, true);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq);
	close_conn(test, &c);
}

/* An ACK that a gap has held back does not wait again. */
static void later__after_a_gap(struct kunit *test)
{
	struct t_conn c;

	open_later(test, &c);
	conf()->ack_delay_us = ESP_LATER_US / 2;
	set_replies(&c, true);
	c.seq++;
	feed_later(test, &c, ESP_TXS | ESP_TXF, true);
	c.seq -= 2;
	feed_later(test, &c, ESP_TXS | ESP_TXF, false);
	c.seq++;
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);
	KUNIT_EXPECT_LE(test, ack_wait(&c), ESP_LATER_US / 2ull);
	skb_queue_purge(&fx.out);
	close_conn(test, &c);
}

/* An older peer's grant has a bit more. */
static void later__older_grant(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 8);
	conn_frame(&c, &f, ESP_TXS | ESP_TXF | ESP_ACK, c.seq, 10);
	f.grant = 5;
	f.later = 1;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c.esp->snd.advice, 5u + ESP_GRANT_LATER);
	close_conn(test, &c);
}

/* A packet without LATER, or a FIN, does not wait with those before it. */
static void later__no_longer(struct kunit *test)
{
	struct t_conn c;

	open_later(test, &c);
	conf()->ack_delay_us = ESP_LATER_US / 2;
	set_replies(&c, true);
	feed_later(test, &c, ESP_TXS | ESP_TXF, true);
	KUNIT_EXPECT_EQ(test, ack_wait(&c), (u64)ESP_LATER_US);
	feed_later(test, &c, ESP_TXS | ESP_TXF, false);
	KUNIT_EXPECT_LE(test, ack_wait(&c), ESP_LATER_US / 2ull);
	set_replies(&c, true);
	feed_later(test, &c, ESP_TXS | ESP_TXF, true);
	feed(test, &c, ESP_FIN, c.seq++, 0);
	KUNIT_EXPECT_LE(test, ack_wait(&c), ESP_LATER_US / 2ull);
	close_conn(test, &c);
	/* it does not wait at all if the administrator wants that */
	open_later(test, &c);
	conf()->ack_delay_us = 0;
	skb_queue_purge(&fx.out);
	set_replies(&c, true);
	feed_later(test, &c, ESP_TXS | ESP_TXF, true);
	KUNIT_EXPECT_LE(test, ack_wait(&c), 0ull);
	close_conn(test, &c);
}

/* The user's last data tell whether others will follow. */
static void later__replies(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_later(test, &c);
	lock_sock(c.sock->sk);
	c.esp->replies = 0;
	c.esp->data_us = esp_now();
	release_sock(c.sock->sk);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "reply", 5, 0), 5);
	KUNIT_EXPECT_EQ(test, (int)c.esp->replies,
			c.esp->sent_at - c.esp->data_us < ESP_LATER_US);
	lock_sock(c.sock->sk);
	c.esp->data_us -= ESP_LATER_US;
	release_sock(c.sock->sk);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "late", 4, 0), 4);
	KUNIT_EXPECT_EQ(test, (int)c.esp->replies, 0);
	skb_queue_purge(&fx.out);
	/* an ACK that left alone has waited in vain */
	conf()->ack_delay_us = 1000;
	c.ack += 2;
	set_replies(&c, true);
	feed_later(test, &c, ESP_TXS | ESP_TXF, true);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq);
	EVENTUALLY(test, !c.esp->replies);
	close_conn(test, &c);
}

static struct kunit_case later_cases[] = {
	KUNIT_CASE(later__whole),
	KUNIT_CASE(later__in_turns),
	KUNIT_CASE(later__in_time),
	KUNIT_CASE(later__timer_moves),
	KUNIT_CASE(later__after_a_gap),
	KUNIT_CASE(later__older_grant),
	KUNIT_CASE(later__older_peer),
	KUNIT_CASE(later__after_losses),
	KUNIT_CASE(later__ack_waits),
	KUNIT_CASE(later__end_of_many),
	KUNIT_CASE(later__no_longer),
	KUNIT_CASE(later__replies),
	{}
};
