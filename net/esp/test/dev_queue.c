// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices that refuse frames, without a queue in front of them and with one. Included by
 * suite.c, after harness.c.
 */

#define Q_PACKETS 3

/* Set up a device with a queue (qdisc), as most devices have. */
static int queue_init(struct kunit *test)
{
	int err;

	fx.queued = true;
	err = packet_init(test);
	fx.queued = false;
	return err;
}

/* Take and acknowledge the packets from c->ack on, in any order; return the number of repeats. */
static u32 take_packets(struct kunit *test, struct t_conn *c)
{
	u32 first = c->ack, end = c->ack + Q_PACKETS, here = 0, again = 0;

	while (c->ack != end) {
		struct sk_buff *skb = next_skb(T_ANSWER_MS);
		struct esp_frame f;

		KUNIT_ASSERT_NOT_NULL(test, skb);
		read_frame(test, skb, &f, NULL);
		kfree_skb(skb);
		if (!f.len)
			continue;
		if (f.pkt_seq - first >= Q_PACKETS || here & BIT(f.pkt_seq - first)) {
			again++;
			continue;
		}
		here |= BIT(f.pkt_seq - first);
		while (c->ack != end && here & BIT(c->ack - first))
			c->ack++;
		feed_ack(test, c, 4);
	}
	return again;
}

static void conn_with_timeouts(struct kunit *test, struct t_conn *c)
{
	conf()->rto_min_us = 2000;
	conf()->rto_max_ms = 50;
	conf()->ack_delay_us = 0;
	open_conn(test, c, 0, 4);
}

/* A packet that a device without a queue refuses is lost, and is retransmitted. */
static void queue__none_refused(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	int i;

	conn_with_timeouts(test, &c);
	WRITE_ONCE(fx.dev->gso_max_segs, 1);	/* single packets: a refusal is reported */
	for (i = 1; i <= 2 * Q_PACKETS; i++) {
		unsigned long discards = mib(ESP_MIB_OutDiscards);
		u64 timeouts = c.esp->stats.timeouts;

		atomic_set(&fx.refuse, i);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, Q_PACKETS * T_MSS, 0),
				Q_PACKETS * T_MSS);
		take_packets(test, &c);
		KUNIT_EXPECT_EQ(test, atomic_read(&fx.refuse), 0);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutDiscards), discards + i);
		KUNIT_EXPECT_GT(test, c.esp->stats.timeouts, timeouts);
		KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	}
	skb_queue_purge(&fx.out);
	close_conn(test, &c);
}

/* A queue keeps the packets that the device refuses, and offers them again: none is lost. */
static void queue__refused(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	int i;

	open_conn(test, &c, 0, 4);
	for (i = 1; i <= 2 * Q_PACKETS; i++) {
		unsigned long discards = mib(ESP_MIB_OutDiscards);

		atomic_set(&fx.refuse, i);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, Q_PACKETS * T_MSS, 0),
				Q_PACKETS * T_MSS);
		KUNIT_EXPECT_EQ(test, take_packets(test, &c), 0u);
		KUNIT_EXPECT_EQ(test, atomic_read(&fx.refuse), 0);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutDiscards), discards);
	}
	KUNIT_EXPECT_EQ(test, c.esp->stats.timeouts, 0ull);
	close_conn(test, &c);
}

static void queue_stop(bool stop)
{
	struct netdev_queue *txq = netdev_get_tx_queue(fx.dev, 0);

	__netif_tx_lock_bh(txq);
	if (stop)
		netif_tx_stop_queue(txq);
	__netif_tx_unlock_bh(txq);
	if (!stop)
		netif_tx_wake_queue(txq);
}

/* A device stops: packets sent meanwhile leave when it goes on. */
static void queue__stops(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	int i;

	conn_with_timeouts(test, &c);
	for (i = 0; i < 3; i++) {
		u64 timeouts = c.esp->stats.timeouts;

		queue_stop(true);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, Q_PACKETS * T_MSS, 0),
				Q_PACKETS * T_MSS);
		EVENTUALLY(test, READ_ONCE(c.esp->stats.timeouts) > timeouts + 1);
		KUNIT_EXPECT_EQ(test, skb_queue_len(&fx.out), 0u);
		queue_stop(false);
		take_packets(test, &c);
		KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
		skb_queue_purge(&fx.out);	/* retransmitted packets come twice */
	}
	close_conn(test, &c);
}

/* The socket is closed, and the device leaves, while frames wait in the queue. */
static void queue__stopped_for_ever(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	queue_stop(true);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, Q_PACKETS * T_MSS, 0), Q_PACKETS * T_MSS);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&fx.out), 0u);
	close_conn(test, &c);
}

static struct kunit_case noqueue_cases[] = {
	KUNIT_CASE(queue__none_refused),
	{}
};

static struct kunit_case queue_cases[] = {
	KUNIT_CASE(queue__refused),
	KUNIT_CASE(queue__stops),
	KUNIT_CASE(queue__stopped_for_ever),
	{}
};
