// SPDX-License-Identifier: GPL-2.0-only
/* Sending: rules 2, 3, 7, 8, 13, 19, 21. Included by suite.c, after harness.c. */

#define T_DATA	(40 * T_MSS)

static u8 *pattern(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, T_DATA, GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < T_DATA; i++)
		buf[i] = i / T_MSS;
	return buf;
}

/* Expect the packets from @from to before @to, of a transmission @first ... @last. */
static void expect_packets(struct kunit *test, struct t_conn *c, u32 first,
			   u32 last, u32 from, u32 to)
{
	struct esp_frame f;
	u32 seq;

	for (seq = from; seq != to; seq++) {
		next(test, c, ESP_ACK | (seq == first ? ESP_TXS : 0) |
		     (seq == last ? ESP_TXF : 0), &f);
		KUNIT_EXPECT_EQ(test, f.pkt_seq, seq);
		KUNIT_EXPECT_EQ(test, f.len, T_MSS);
	}
}

/* Rule 3: the first burst leaves, then what ACKs grant. The last packet has TXF (rule 2). */
static void send__first_burst_then_grants(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	u32 s;

	open_conn(test, &c, 0, 4);
	s = c.ack;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 20 * T_MSS, 0), 20 * T_MSS);
	expect_packets(test, &c, s, s + 19, s, s + 4);
	silence(test);
	c.ack = s + 1;
	feed_ack(test, &c, 10);
	expect_packets(test, &c, s, s + 19, s + 4, s + 11);
	silence(test);
	c.ack = s + 11;
	feed_ack(test, &c, 100);
	expect_packets(test, &c, s, s + 19, s + 11, s + 20);
	silence(test);
	c.ack = s + 20;
	feed_ack(test, &c, 6);
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&c.sock->sk->sk_write_queue));
	KUNIT_EXPECT_EQ(test, c.esp->snd.advice, 6);
	/* rule 8: the timer stops while everything is acknowledged */
	KUNIT_EXPECT_EQ(test, c.esp->deadline[ESP_T_SEND], 0ull);
	close_conn(test, &c);
}

/* An ACK with a grant for ten packets, which gives no sample of the round trip. */
static void feed_grant(struct kunit *test, struct t_conn *c)
{
	struct esp_frame f;

	conn_frame(c, &f, ESP_ACK, c->seq, 0);
	f.grant = 10;
	f.ts_ecr -= ESP_RTT_MAX_US;
	feed_frame(test, c->mac, &f, NULL);
}

/* On the same host, a writer that is woken sends the packets for which a grant has come. */
static void send__writer_sends(struct kunit *test)
{
	static const struct {
		bool	for_room;	/* the writer waits for queue space */
		u32	min_rtt;	/* microseconds */
		bool	whole;		/* the device takes GSO packets */
		bool	asleep;		/* the writer is not woken */
		bool	shut;		/* SEND_SHUTDOWN is set */
		bool	leaves;		/* the ACK sends packets */
	} v[] = {
		{ true, 50, true, false, false, false },
		{ false, 50, true, false, false, true },
		{ true, 50, true, false, false, false },
		{ true, 51, true, false, false, true },
		{ true, 50, true, false, false, false },
		{ true, 50, false, false, false, true },
		{ true, 0, true, false, false, true },
		{ true, 50, true, false, false, false },
		{ true, 50, true, true, false, true },
		{ true, 50, true, false, false, false },
		{ true, 50, true, false, true, true },
		{ true, 50, true, false, false, false },
	};
	u8 *buf = pattern(test);
	struct t_conn c;
	u32 i, s, sent;
	int sndbuf;

	open_conn(test, &c, 0, 4);
	s = c.ack;
	sent = s + 4;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 40 * T_MSS, 0), 40 * T_MSS);
	expect_packets(test, &c, s, s + 39, s, sent);
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		c.esp->waits_for_queue = v[i].for_room;
		c.esp->min_rtt = v[i].min_rtt;
		WRITE_ONCE(c.esp->dev->takes_gso, v[i].whole);
		/* too little queue space to wake the writer */
		sndbuf = c.esp->sk.sk_sndbuf;
		if (v[i].asleep) {
			set_bit(SOCK_NOSPACE, &c.sock->flags);
			c.esp->sk.sk_sndbuf = SOCK_MIN_SNDBUF;
		}
		c.esp->sk.sk_shutdown = v[i].shut ? SEND_SHUTDOWN : 0;
		c.ack++;
		feed_grant(test, &c);
		clear_bit(SOCK_NOSPACE, &c.sock->flags);
		c.esp->sk.sk_sndbuf = sndbuf;
		c.esp->sk.sk_shutdown = 0;
		if (v[i].leaves) {
			expect_packets(test, &c, s, s + 39, sent, c.ack + 10);
			sent = c.ack + 10;
		}
		silence(test);
	}
	/* the writer did not run before the timer sent a probe */
	c.esp->probe_tries = 1;
	feed_grant(test, &c);
	expect_packets(test, &c, s, s + 39, sent, c.ack + 10);
	c.esp->waits_for_queue = 0;
	close_conn(test, &c);
}

/* Rule 2: a write merges into a transmission whose last packet is unsent. */
static void send__merges_into_unsent(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	u32 s;

	open_conn(test, &c, 0, 1);
	s = c.ack;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 3 * T_MSS, 0), 3 * T_MSS);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 2 * T_MSS, 0), 2 * T_MSS);
	expect_packets(test, &c, s, s + 4, s, s + 1);
	c.ack = s + 1;
	feed_ack(test, &c, 20);
	expect_packets(test, &c, s, s + 4, s + 1, s + 5);
	silence(test);
	close_conn(test, &c);
}

/* Rules 2, 3: packets that were sent keep their flags, so the next write is announced. */
static void send__announces_anew(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	u32 s;

	open_conn(test, &c, 0, 5);
	s = c.ack;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 2 * T_MSS, 0), 2 * T_MSS);
	expect_packets(test, &c, s, s + 1, s, s + 2);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, T_MSS, 0), T_MSS);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, s + 2);
	/* announce_seq stands still: two more packets may leave, no third */
	KUNIT_EXPECT_EQ(test, c.esp->snd.announce_seq, s);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 4 * T_MSS, 0), 4 * T_MSS);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, s + 4);
	silence(test);
	close_conn(test, &c);
}

/* Rule 7: one small packet always leaves. */
static void send__small_always_goes(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 0);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, ESP_SMALL, 0), ESP_SMALL);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, f.len, ESP_SMALL);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack);
	/* the next one waits for the answer to the first (rule 3); the sender asks once */
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, ESP_SMALL - 1, 0), ESP_SMALL - 1);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, f.len, 0);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack - 1);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 1, 0), 1);
	silence(test);
	c.ack++;
	feed_ack(test, &c, 0);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack);
	KUNIT_EXPECT_EQ(test, f.len, ESP_SMALL);
	close_conn(test, &c);
}

/* Small messages one after the other: a first burst of them leaves, then the sender asks. */
static void send__small_ones_ask(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	u32 i, s;

	open_conn(test, &c, 0, 4);
	s = c.ack;
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 20, 0), 20);
	for (i = 0; i < 4; i++) {
		next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
		KUNIT_EXPECT_EQ(test, f.pkt_seq, s + i);
	}
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, f.len, 0);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, s - 1);
	silence(test);
	/* a grant for the announced one does not let the fifth leave; the ACK of all four does */
	feed_ack(test, &c, 7);
	silence(test);
	c.ack = s + 4;
	feed_ack(test, &c, 4);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, s + 4);
	silence(test);
	close_conn(test, &c);
}

/* Rule 21: with a first burst of 0, an empty TXS announces. */
static void send__empty_txs_at_advice_0(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 0);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 5 * T_MSS, 0), 5 * T_MSS);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, f.len, 0);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack);
	silence(test);
	feed_ack(test, &c, 3);
	expect_packets(test, &c, c.ack, c.ack + 4, c.ack, c.ack + 3);
	silence(test);
	close_conn(test, &c);
}

/* With MSG_MORE a few packets wait for more, until the outstanding ones are acknowledged. */
static void send__more_to_come(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	u32 first;

	conf()->rto_min_us = 1000000;
	open_conn(test, &c, 0, 60);
	esp_timer_set(c.esp, ESP_T_CORK, esp_now() + 10000000);	/* not now */
	first = c.esp->snd.send_next;
	/* nothing is outstanding: a full packet leaves */
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, T_MSS + 10, MSG_MORE), T_MSS + 10);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, first + 1);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, f.len, T_MSS);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 5 * T_MSS, MSG_MORE), 5 * T_MSS);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, first + 1);
	c.ack++;
	feed_ack(test, &c, 60);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, first + 6);
	/* ESP_MORE_RUN packets don't wait */
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, ESP_MORE_RUN * T_MSS, MSG_MORE),
			ESP_MORE_RUN * T_MSS);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, first + 6 + ESP_MORE_RUN);
	skb_queue_purge(&fx.out);
	close_conn(test, &c);
}

/* Rule 3: the smaller of both ends' caps counts, even if the user changes it later. */
static void send__smaller_cap(struct kunit *test)
{
	static const struct { int own, both; } v[] = {
		{ 10, 3 }, { 2, 2 }, { 0, 3 }, { 3, 3 },
	};
	struct esp_frame f;
	struct t_conn c;
	int i;

	begin_handshake(test, &c);
	echo_frame(&c, &f, 40);
	f.burst = 3;
	c.grant = 40;
	accept_conn(test, &c, &f);
	KUNIT_EXPECT_EQ(test, c.esp->snd.burst_length, 3);
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		int own = v[i].own;

		KUNIT_EXPECT_EQ(test, esp_setsockopt(c.sock, SOL_ESP, ESP_BURST_LENGTH,
						     KERNEL_SOCKPTR(&own), sizeof(own)), 0);
		KUNIT_EXPECT_EQ(test, c.esp->snd.burst_length, v[i].both);
		KUNIT_EXPECT_EQ(test, c.esp->agreed_burst, 3);
	}
	close_conn(test, &c);
}

/* Expect @n packets from @seq on, with checksums left to the device or not. */
static void expect_summed(struct kunit *test, u32 seq, int n, bool by_device)
{
	for (; n; n--, seq++) {
		struct sk_buff *skb = next_skb(T_ANSWER_MS);
		struct esp_frame f;

		KUNIT_ASSERT_NOT_NULL(test, skb);
		KUNIT_EXPECT_EQ(test, (int)skb->ip_summed,
				by_device ? CHECKSUM_PARTIAL : CHECKSUM_NONE);
		if (by_device)
			KUNIT_EXPECT_EQ(test, skb_checksum_help(skb), 0);
		read_frame(test, skb, &f, NULL);
		KUNIT_EXPECT_EQ(test, f.pkt_seq, seq);
		kfree_skb(skb);
	}
}

/* The device computes checksums, and the sysctl changes while packets wait. */
static void send__checksum_by_device(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	u32 s;
	int on;

	open_conn(test, &c, 0, 4);
	rtnl_lock();
	fx.dev->features |= NETIF_F_HW_CSUM;
	netdev_features_change(fx.dev);
	rtnl_unlock();
	s = c.ack;
	for (on = 1; on >= 0; on--) {
		WRITE_ONCE(fx.ed->tx_checksum, on);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 8 * T_MSS - 5, 0),
				8 * T_MSS - 5);
		expect_summed(test, s, 4, on);
		WRITE_ONCE(fx.ed->tx_checksum, !on);
		c.ack = s + 4;
		feed_ack(test, &c, 4);
		expect_summed(test, s + 4, 4, !on);
		s += 8;
		c.ack = s;
		feed_ack(test, &c, 4);
	}
	/* a device that no longer can is not asked to, even before the notifier tells */
	WRITE_ONCE(fx.ed->tx_checksum, 1);
	fx.dev->features &= ~NETIF_F_HW_CSUM;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 100, 0), 100);
	expect_summed(test, s, 1, false);
	close_conn(test, &c);
}

/* A page of splice() may change until the packet leaves: its checksum is computed only then. */
static void send__lent_page_changes(struct kunit *test)
{
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	struct bio_vec bv;
	struct msghdr msg = {
		.msg_flags = MSG_DONTWAIT | MSG_MORE | MSG_SPLICE_PAGES,
	};
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;

	KUNIT_ASSERT_NOT_NULL(test, page);
	open_conn(test, &c, 0, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 100, MSG_MORE), 100);
	bvec_set_page(&bv, page, 600, 0);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &bv, 1, 600);
	KUNIT_EXPECT_EQ(test, sock_sendmsg(c.sock, &msg), 600);
	memset(page_address(page), 0x5a, 600);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 10, 0), 10);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);	/* checks the sum */
	KUNIT_EXPECT_EQ(test, f.len, 710);
	c.ack++;
	feed_ack(test, &c, 4);
	put_page(page);
	close_conn(test, &c);
}

/* Rule 4: a writer that gets no memory and does not wait ends its transmission. */
static void send__no_memory_ends(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 64 * T_MSS, GFP_KERNEL);
	struct sk_buff *skb;
	struct esp_frame f = {};
	struct t_conn c;
	int n;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	open_conn(test, &c, 0, 64);
	WRITE_ONCE(fx.dev->gso_max_segs, 4);
	c.sock->sk->sk_sndbuf = 4 * T_MSS;
	c.sock->sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	n = send_bytes(&c, buf, 64 * T_MSS, 0);
	KUNIT_EXPECT_GT(test, n, 0);
	KUNIT_EXPECT_LT(test, n, 64 * T_MSS);
	while ((skb = next_skb(2))) {
		read_frame(test, skb, &f, NULL);
		kfree_skb(skb);
	}
	KUNIT_EXPECT_TRUE(test, f.flags & ESP_TXF);
	KUNIT_EXPECT_EQ(test, c.esp->snd.trans_announced, 0);
	c.ack = c.esp->snd.send_seq;
	feed_ack(test, &c, 64);
	close_conn(test, &c);
}

/* A sender whose writer has no memory asks, when all is sent, for the ACK that frees some. */
static void send__asks_for_ack(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 64 * T_MSS, GFP_KERNEL);
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u32 asked = 0;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	open_conn(test, &c, 0, 4);
	WRITE_ONCE(fx.dev->gso_max_segs, 4);
	c.sock->sk->sk_sndbuf = 32 * T_MSS;
	c.sock->sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	KUNIT_EXPECT_LT(test, send_bytes(&c, buf, 64 * T_MSS, 0), 64 * T_MSS);
	while ((skb = next_skb(2))) {	/* the first burst */
		read_frame(test, skb, &f, NULL);
		KUNIT_EXPECT_NE(test, f.len, 0);
		kfree_skb(skb);
	}
	KUNIT_EXPECT_NOT_NULL(test, c.esp->sk.sk_send_head);
	c.ack++;
	feed_ack(test, &c, 64);
	KUNIT_EXPECT_NULL(test, c.esp->sk.sk_send_head);
	while ((skb = next_skb(2))) {
		read_frame(test, skb, &f, NULL);
		asked += !f.len && (f.flags & ESP_TXS);
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, asked, 1);
	c.ack++;
	feed_ack(test, &c, 64);		/* no second request */
	silence(test);
	c.ack = c.esp->snd.send_seq;
	feed_ack(test, &c, 64);
	close_conn(test, &c);
}

/*
 * The sender asks for an ACK where the receiver may see none due: when Nagle's rule holds the
 * last packet back, and at a cap that the receiver does not know.
 */
static void send__tail_asks(struct kunit *test)
{
	static const struct {
		u32	packets;	/* full packets that are written */
		u32	cap;		/* burst_length of the sender */
		u32	agreed;		/* burst_length agreed on in the handshake */
		bool	late;		/* the listener's burst_length was set later */
		u32	sent;		/* packets that leave */
		u32	asked;		/* requests for an ACK */
	} v[] = {
		{ 16, 0, 0, false, 16, 0 },
		{ 17, 0, 0, false, 17, 1 },
		{ 17, 8, 0, false, 8, 1 },
		{ 17, 8, 9, false, 8, 1 },
		{ 17, 8, 8, false, 8, 0 },
		{ 17, 8, 8, true, 8, 1 },
		{ 6, 8, 0, false, 6, 0 },
	};
	u8 *buf = kunit_kzalloc(test, 18 * T_MSS, GFP_KERNEL);
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u32 i, k, asked;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	open_conn(test, &c, 0, 64);
	c.esp->nodelay = 0;
	WRITE_ONCE(fx.dev->gso_max_segs, 4);	/* some packets leave before the last one */
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		u32 len = v[i].packets * T_MSS + 100;

		c.esp->snd.burst_length = v[i].cap;
		c.esp->agreed_burst = v[i].agreed;
		c.esp->late_cap = v[i].late;
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, len, 0), len);
		for (k = 0, asked = 0; (skb = next_skb(2));) {
			read_frame(test, skb, &f, NULL);
			k += !!f.len;
			asked += !f.len && (f.flags & ESP_TXS);
			kfree_skb(skb);
		}
		KUNIT_EXPECT_EQ(test, k, v[i].sent);
		KUNIT_EXPECT_EQ(test, asked, v[i].asked);
		c.esp->snd.burst_length = 0;
		while (c.esp->snd.una_seq != c.esp->snd.send_seq) {
			c.ack = c.esp->snd.send_next;
			feed_ack(test, &c, 64);
			while ((skb = next_skb(2)))
				kfree_skb(skb);
		}
	}
	close_conn(test, &c);
}

/* All frames of a connection have one flow hash, and another connection has another. */
static void send__one_flow(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct sk_buff *skb;
	struct t_conn c[2];
	u32 hash[2];
	int i, j;

	for (i = 0; i < 2; i++) {
		open_conn(test, &c[i], i, 4);
		KUNIT_EXPECT_EQ(test, send_bytes(&c[i], buf, 20, 0), 20);
		feed(test, &c[i], ESP_TXS, c[i].seq - 1, 0);
		for (j = 0; j < 2; j++) {
			skb = next_skb(T_ANSWER_MS);
			KUNIT_ASSERT_NOT_NULL(test, skb);
			KUNIT_EXPECT_TRUE(test, skb->l4_hash);
			KUNIT_EXPECT_EQ(test, skb->hash, c[i].esp->sk.sk_txhash);
			hash[i] = skb->hash;
			kfree_skb(skb);
		}
	}
	KUNIT_EXPECT_NE(test, hash[0], hash[1]);
	for (i = 0; i < 2; i++)
		close_conn(test, &c[i]);
}

/* Lend a page in more pieces than a buffer has room for; the packets that leave have no gap. */
static void send_pieces(struct kunit *test, int type)
{
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	struct bio_vec *bv;
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_SPLICE_PAGES };
	const u32 n = 2 * MAX_SKB_FRAGS + 1;
	struct esp_frame f;
	struct t_conn c;
	u32 i, len = 0;
	u8 flags = 0;

	KUNIT_ASSERT_NOT_NULL(test, page);
	bv = kunit_kcalloc(test, n, sizeof(*bv), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bv);
	for (i = 0; i < n; i++)
		bvec_set_page(&bv[i], page, 20, 40 * i);	/* none after another */
	fx.type = type;
	open_conn(test, &c, type == SOCK_SEQPACKET, 8);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, bv, n, 20 * n);
	KUNIT_EXPECT_EQ(test, sock_sendmsg(c.sock, &msg), (int)(20 * n));
	for (i = 0; !(flags & ESP_TXF) && i < 4; i++) {
		struct sk_buff *skb = next_skb(T_ANSWER_MS);

		KUNIT_ASSERT_NOT_NULL(test, skb);
		read_frame(test, skb, &f, NULL);
		kfree_skb(skb);
		KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack + i);
		KUNIT_EXPECT_EQ(test, !!(f.flags & ESP_TXS), !i);
		len += f.len;
		flags = f.flags;
	}
	KUNIT_EXPECT_GE(test, i, 2u);
	KUNIT_EXPECT_EQ(test, len, 20 * n);
	KUNIT_EXPECT_EQ(test, flags & ESP_EOR, type == SOCK_SEQPACKET ? ESP_EOR : 0);
	silence(test);
	put_page(page);
	close_conn(test, &c);
	sock_release(fx.listener);
	fx.listener = NULL;
}

/* The same of a stream and of a record, which stays one. */
static void send__many_pieces(struct kunit *test)
{
	send_pieces(test, SOCK_STREAM);
	send_pieces(test, SOCK_SEQPACKET);
}

/* A socket that may not use its task's page has one of its own, and gives it back. */
static void send__page_of_its_own(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct page *page;
	struct t_conn c;

	open_conn(test, &c, 0, 8);
	c.sock->sk->sk_use_task_frag = false;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 4 * T_MSS, 0), 4 * T_MSS);
	page = c.sock->sk->sk_frag.page;
	KUNIT_ASSERT_NOT_NULL(test, page);
	get_page(page);
	expect_packets(test, &c, c.ack, c.ack + 3, c.ack, c.ack + 4);
	c.ack += 4;
	feed_ack(test, &c, 8);
	close_conn(test, &c);
	EVENTUALLY(test, page_count(page) == 1);
	put_page(page);
}

static struct kunit_case send_cases[] = {
	KUNIT_CASE(send__first_burst_then_grants),
	KUNIT_CASE(send__writer_sends),
	KUNIT_CASE(send__merges_into_unsent),
	KUNIT_CASE(send__announces_anew),
	KUNIT_CASE(send__small_always_goes),
	KUNIT_CASE(send__small_ones_ask),
	KUNIT_CASE(send__one_flow),
	KUNIT_CASE(send__empty_txs_at_advice_0),
	KUNIT_CASE(send__more_to_come),
	KUNIT_CASE(send__smaller_cap),
	KUNIT_CASE(send__checksum_by_device),
	KUNIT_CASE(send__lent_page_changes),
	KUNIT_CASE(send__no_memory_ends),
	KUNIT_CASE(send__many_pieces),
	KUNIT_CASE(send__page_of_its_own),
	KUNIT_CASE(send__asks_for_ack),
	KUNIT_CASE(send__tail_asks),
	{}
};
