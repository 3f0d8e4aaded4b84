// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a sender's data, ESP_OPT_LEFT, as the sender tells it. Included by suite.c, after
 * harness.c.
 */

#define L_SIZE	(T_MSS - ESP_LEFT_ROOM)	/* payload of a packet beside the option, bytes */

static void open_left(struct kunit *test, struct t_conn *c, u16 advice)
{
	fx.left = true;
	open_conn(test, c, 0, advice);
}

/* Expect the next packet with payload of @len bytes, and read its header. */
static void next_data(struct kunit *test, struct t_conn *c, u8 flags, u16 len, struct esp_frame *f)
{
	next(test, c, flags, f);
	KUNIT_EXPECT_EQ(test, f->len, len);
}

/* The packet that announces more than itself tells it, and leaves room for that. */
static void left__announced(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	u32 i;

	open_left(test, &c, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 6 * L_SIZE + 10, 0), 6 * L_SIZE + 10);
	next_data(test, &c, ESP_ACK | ESP_TXS, L_SIZE, &f);
	KUNIT_EXPECT_EQ(test, (u32)f.opts, ESP_HAS(ESP_OPT_LEFT));
	KUNIT_EXPECT_EQ(test, esp_frame_end(&f), c.ack + 7);
	KUNIT_EXPECT_EQ(test, f.first, 4);
	for (i = 1; i < 4; i++) {	/* those that leave with it need no option */
		next_data(test, &c, ESP_ACK, L_SIZE, &f);
		KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack + i);
		KUNIT_EXPECT_EQ(test, (u32)f.opts, 0);
	}
	silence(test);
	c.ack += 4;
	feed_ack(test, &c, 3);
	for (i = 0; i < 3; i++)
		next(test, &c, i < 2 ? ESP_ACK : ESP_ACK | ESP_TXF, &f);
	silence(test);
	close_conn(test, &c);
}

/* A packet that is a whole transmission tells no end. No packet does to an older peer. */
static void left__of_no_use(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	int i;

	open_left(test, &c, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, T_MSS, 0), T_MSS);
	next_data(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, T_MSS, &f);
	KUNIT_EXPECT_EQ(test, (u32)f.opts, 0);
	close_conn(test, &c);

	fx.left = false;
	open_conn(test, &c, 1, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 3 * T_MSS, 0), 3 * T_MSS);
	for (i = 0; i < 3; i++) {
		next_data(test, &c, ESP_ACK | (i ? 0 : ESP_TXS) | (i < 2 ? 0 : ESP_TXF), T_MSS, &f);
		KUNIT_EXPECT_EQ(test, (u32)f.opts, 0);
	}
	close_conn(test, &c);
}

/*
 * The user writes more: when all that the peer knows of is permitted, an empty packet tells it, and
 * as much again. More data up to that is not told. A probe tells the end, too.
 */
static void left__grows(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	u32 told;

	open_left(test, &c, 2);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 3 * L_SIZE, 0), 3 * L_SIZE);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, esp_frame_end(&f), c.ack + 3);
	next(test, &c, ESP_ACK, &f);
	silence(test);

	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 2 * T_MSS, 0), 2 * T_MSS);
	c.ack += 2;
	feed_ack(test, &c, 0);	/* a HOLD */
	silence(test);
	feed_ack(test, &c, 1);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.len, L_SIZE);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.len, 0);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack + 1);
	KUNIT_EXPECT_TRUE(test, f.opts & ESP_HAS(ESP_OPT_LEFT));
	KUNIT_EXPECT_EQ(test, f.first, 0);
	told = esp_frame_end(&f) - c.ack;
	KUNIT_EXPECT_EQ(test, told, 2 * (c.esp->snd.send_seq - c.ack));
	KUNIT_EXPECT_GE(test, told, 6u);

	while (c.esp->snd.send_seq - c.ack + 2 < told)
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, T_MSS, 0), T_MSS);
	silence(test);
	c.ack++;
	feed_ack(test, &c, 0);
	lock_sock(c.sock->sk);
	esp_send_probe(c.sock->sk);
	release_sock(c.sock->sk);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_TRUE(test, f.opts & ESP_HAS(ESP_OPT_LEFT));
	KUNIT_EXPECT_EQ(test, esp_frame_end(&f), c.ack - 1 + told);	/* it takes nothing back */
	close_conn(test, &c);
}

/*
 * The packet that tells of growth is lost: what the peer permits of the packets that it knew before
 * does not stand for an answer. So the sender's next question does not wait longer than usual.
 */
static void left__growth_lost(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	u32 i;

	open_left(test, &c, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 6 * L_SIZE, 0), 6 * L_SIZE);
	for (i = 0; i < 4; i++)
		next(test, &c, i ? ESP_ACK : ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 2 * T_MSS, 0), 2 * T_MSS);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.len, 0);
	KUNIT_EXPECT_TRUE(test, f.opts & ESP_HAS(ESP_OPT_LEFT));
	KUNIT_EXPECT_EQ(test, c.esp->told_growth, 1);
	c.ack += 4;
	feed_ack(test, &c, 2);	/* as far as the first packet told */
	for (i = 0; i < 2; i++)
		next(test, &c, ESP_ACK, &f);
	c.ack += 2;
	feed_ack(test, &c, 0);
	KUNIT_EXPECT_EQ(test, c.esp->told_growth, 1);
	next(test, &c, ESP_ACK | ESP_TXS, &f);	/* it asks */
	feed_ack(test, &c, 1);	/* a peer that knows of no growth may permit one packet more */
	KUNIT_EXPECT_EQ(test, c.esp->told_growth, 1);
	feed_ack(test, &c, 2);
	KUNIT_EXPECT_EQ(test, c.esp->told_growth, 0);
	close_conn(test, &c);
}

/* A probe that tells of growth may be lost, too. */
static void left__probe_lost(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	u32 i, end;

	open_left(test, &c, 2);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 4 * L_SIZE, 0), 4 * L_SIZE);
	for (i = 0; i < 2; i++)
		next(test, &c, i ? ESP_ACK : ESP_ACK | ESP_TXS, &f);
	end = c.esp->told_end;
	c.ack += 2;
	feed_ack(test, &c, 0);	/* a HOLD */
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, T_MSS, 0), T_MSS);
	KUNIT_EXPECT_EQ(test, c.esp->told_growth, 0);
	lock_sock(c.sock->sk);
	esp_send_probe(c.sock->sk);
	release_sock(c.sock->sk);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_TRUE(test, esp_after(esp_frame_end(&f), end));
	KUNIT_EXPECT_EQ(test, c.esp->told_growth, 1);
	KUNIT_EXPECT_EQ(test, c.esp->told_before, end);
	feed_ack(test, &c, end - c.ack);
	KUNIT_EXPECT_EQ(test, c.esp->told_growth, 1);
	skb_queue_purge(&fx.out);
	feed_ack(test, &c, esp_frame_end(&f) - c.ack);	/* all that it was told */
	KUNIT_EXPECT_EQ(test, c.esp->told_growth, 0);
	skb_queue_purge(&fx.out);
	close_conn(test, &c);
}

/* No number further away than the option can tell is told, and no growth beyond it. */
static void left__far(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;

	open_left(test, &c, 1);
	c.esp->to_copy = 100ul << 20;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 2 * L_SIZE, 0), 2 * L_SIZE);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, esp_frame_end(&f), c.ack + U16_MAX);
	KUNIT_EXPECT_EQ(test, c.esp->told_end, c.ack + U16_MAX);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 2 * L_SIZE, 0), 2 * L_SIZE);
	silence(test);
	c.esp->to_copy = 0;
	close_conn(test, &c);
}

/* The handshake's echo tells it in place of BURST, unless this end has a cap. */
static void left__in_echo(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	int cap;

	fx.left = true;
	for (cap = 0; cap <= 3; cap += 3) {
		begin_connect(test, &c);
		c.esp->user_burst = cap;
		conn_frame(&c, &f, ESP_SYN | ESP_ACK, esp_isn(c.cookie), 0);
		add_hello(&c, &f);
		f.grant = 2;
		feed_frame(test, c.mac, &f, NULL);
		next_but_syn(test, &f);
		KUNIT_EXPECT_EQ(test, f.flags, ESP_ACK);
		KUNIT_EXPECT_TRUE(test, f.opts & ESP_HAS(ESP_OPT_BURST));
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 3 * T_MSS, 0), 3 * T_MSS);
		next_but_syn(test, &f);
		KUNIT_EXPECT_EQ(test, f.flags, ESP_ACK | ESP_TXS);
		KUNIT_EXPECT_EQ(test, f.opts & ESP_HAS_HELLO, ESP_HAS_HELLO);
		KUNIT_EXPECT_EQ(test, !!(f.opts & ESP_HAS(ESP_OPT_LEFT)), !cap);
		KUNIT_EXPECT_EQ(test, !!(f.opts & ESP_HAS(ESP_OPT_BURST)), !!cap);
		if (!cap) {
			KUNIT_EXPECT_EQ(test, esp_frame_end(&f), c.esp->snd.send_seq);
			KUNIT_EXPECT_EQ(test, f.first, 2);
		}
		skb_queue_purge(&fx.out);
		close_conn(test, &c);
	}
}

static struct kunit_case left_cases[] = {
	KUNIT_CASE(left__announced),
	KUNIT_CASE(left__of_no_use),
	KUNIT_CASE(left__grows),
	KUNIT_CASE(left__growth_lost),
	KUNIT_CASE(left__probe_lost),
	KUNIT_CASE(left__far),
	KUNIT_CASE(left__in_echo),
	{}
};
