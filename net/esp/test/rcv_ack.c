// SPDX-License-Identifier: GPL-2.0-only
/* RRQs and ACKs of the peer: rule 19. Included by suite.c, after harness.c. */

/* Rule 19: the sender retransmits what the RRQ names, and only once in a round trip. */
static void send__rrq_names_packets(struct kunit *test)
{
	struct esp_wire_range r[] = {
		{ htons(1), htons(2) }, { htons(5), htons(1) },
	};
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	int i;

	open_conn(test, &c, 0, 10);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 8 * T_MSS, 0), 8 * T_MSS);
	expect_packets(test, &c, c.ack, c.ack + 7, c.ack, c.ack + 8);
	usleep_range(2000, 3000);
	c.esp->rtt.srtt8 = 8 * 1000;
	conn_frame(&c, &f, ESP_ACK | ESP_RRQ, c.seq, sizeof(r));
	f.grant = 10;
	f.ts_ecr = c.ts + 1000000000;	/* no valid sample */
	feed_frame(test, c.mac, &f, r);
	for (i = 0; i < 3; i++) {
		static const u8 which[] = { 1, 2, 5 };
		struct esp_frame got;

		next(test, &c, ESP_ACK, &got);
		KUNIT_EXPECT_EQ(test, got.pkt_seq, c.ack + which[i]);
	}
	silence(test);
	c.esp->rtt.srtt8 = 8 * 10000000;
	feed_frame(test, c.mac, &f, r);
	silence(test);
	/* ranges of packets that were never sent */
	r[0].offset = htons(8);
	r[0].count = htons(0xffff);
	r[1].offset = htons(0xffff);
	c.esp->rtt.srtt8 = 8;
	feed_frame(test, c.mac, &f, r);
	silence(test);
	close_conn(test, &c);
}

/* Feed an RRQ of @n packets from @at on, which claims a round trip of nothing. */
static void feed_rrq(struct kunit *test, struct t_conn *c, u16 at, u16 n)
{
	struct esp_wire_range r = { htons(at), htons(n) };
	struct esp_frame f;

	usleep_range(20, 30);	/* older than the claimed round trip */
	conn_frame(c, &f, ESP_ACK | ESP_RRQ, c->seq, sizeof(r));
	f.grant = c->grant;
	f.ts_ecr = (u32)esp_now() + c->esp->ts_off;
	feed_frame(test, c->mac, &f, &r);
}

/* A peer that requests everything again and again gets what it has acknowledged, twice. */
static void send__rrq_has_a_limit(struct kunit *test)
{
	unsigned long again, limited = mib(ESP_MIB_RRQLimited);
	u8 *buf = kunit_kzalloc(test, 40 * T_MSS, GFP_KERNEL);
	struct t_conn c;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	open_conn(test, &c, 0, 60);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 40 * T_MSS, 0), 40 * T_MSS);
	again = mib(ESP_MIB_OutRetrans);
	feed_rrq(test, &c, 0, 30);	/* a loss of 30 packets at the beginning */
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutRetrans), again + 30);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_RRQLimited), limited);
	for (i = 0; i < 20; i++)
		feed_rrq(test, &c, 0, 40);
	KUNIT_EXPECT_LE(test, mib(ESP_MIB_OutRetrans), again + ESP_RRQ_CREDIT / ESP_RRQ_STEPS);
	KUNIT_EXPECT_GE(test, mib(ESP_MIB_RRQLimited), limited + 18);
	again = mib(ESP_MIB_OutRetrans);
	c.ack += 10;
	feed_rrq(test, &c, 0, 15);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutRetrans), again + 15);
	for (i = 0; i < 20; i++)
		feed_rrq(test, &c, 0, 30);
	KUNIT_EXPECT_LE(test, mib(ESP_MIB_OutRetrans), again + 20);
	/* what is far behind costs, too */
	again = mib(ESP_MIB_OutRetrans);
	c.ack += 4;
	for (i = 0; i < 20; i++)
		feed_rrq(test, &c, 25, 1);
	KUNIT_EXPECT_GT(test, mib(ESP_MIB_OutRetrans), again);
	KUNIT_EXPECT_LE(test, mib(ESP_MIB_OutRetrans), again + 7);
	skb_queue_purge(&fx.out);
	close_conn(test, &c);
}

/* RRQs of single packets don't cut the write queue to pieces beyond twice the send buffer. */
static void send__rrq_splits_no_more(struct kunit *test)
{
	unsigned long again, kept = mib(ESP_MIB_WqueueTooBig);
	u8 *buf = kunit_kzalloc(test, 480 * T_MSS, GFP_KERNEL);
	struct sock *sk;
	struct t_conn c;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	open_conn(test, &c, 0, 64);
	sk = c.sock->sk;
	takes_super_packets(true);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 480 * T_MSS, 0), 480 * T_MSS);
	c.ack++;
	c.grant = 200;
	feed_ack(test, &c, c.grant);
	takes_super_packets(false);
	again = mib(ESP_MIB_OutRetrans);
	feed_rrq(test, &c, 100, 1);	/* the send buffer is large */
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutRetrans), again + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_WqueueTooBig), kept);
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	sk->sk_sndbuf = SOCK_MIN_SNDBUF;
	KUNIT_ASSERT_GT(test, sk->sk_wmem_queued, 2 * (sk->sk_sndbuf + 2 * ESP_GSO_MAX));
	feed_rrq(test, &c, 150, 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutRetrans), again + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_WqueueTooBig), kept + 1);
	feed_rrq(test, &c, 5, 2);	/* the first buffer */
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutRetrans), again + 3);
	/* grants of single packets wait, too, until packets are acknowledged */
	i = c.esp->snd.send_next;
	c.grant = i + 1 - c.ack;
	feed_ack(test, &c, c.grant);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, i);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_WqueueTooBig), kept + 2);
	c.ack = i;
	feed_ack(test, &c, 1);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, i + 1);
	skb_queue_purge(&fx.out);
	close_conn(test, &c);
}

/* An ACK of packets that were never sent is dropped and counted, and its clock isn't believed. */
static void send__ack_of_unsent(struct kunit *test)
{
	unsigned long bad = mib(ESP_MIB_InAckInvalid);
	struct t_conn c;
	u64 ts;

	open_conn(test, &c, 0, 4);
	ts = c.esp->ts_recent;
	c.ack += 5;
	feed_ack(test, &c, 100);
	c.ack -= 5;
	silence(test);
	KUNIT_EXPECT_EQ(test, c.esp->ts_recent, ts);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InAckInvalid), bad + 1);
	KUNIT_EXPECT_EQ(test, c.esp->snd.una_seq, c.ack);
	close_conn(test, &c);
}

static struct kunit_case ack_cases[] = {
	KUNIT_CASE(send__rrq_names_packets),
	KUNIT_CASE(send__rrq_has_a_limit),
	KUNIT_CASE(send__rrq_splits_no_more),
	KUNIT_CASE(send__ack_of_unsent),
	{}
};
