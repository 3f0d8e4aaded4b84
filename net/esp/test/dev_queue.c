// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices that refuse frames, without a queue in front of them and with one; how much is in the
 * queue. Included by suite.c, after harness.c.
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
		struct esp_frame f;

		next_with_data(test, &f);
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
		skb_queue_purge(&fx.out);
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

/*
 * How much of the connections' data is in the device's queue.
 */

#define DEVQ_PACKETS 20		/* packets of a connection; there is a grant for each */
#define DEVQ_STUCK 3

static struct esp_devq *devq(void)
{
	return &fx.ed->link->devq;
}

/*
 * Stop the device's queue, and set up connections to hosts of their own; @segs: most packets of a
 * frame
 */
static void devq_open(struct kunit *test, struct t_conn *c, int n, int segs)
{
	int i;

	WRITE_ONCE(fx.dev->gso_max_segs, segs);
	for (i = 0; i < n; i++)
		open_conn(test, &c[i], i, DEVQ_PACKETS);
	KUNIT_EXPECT_EQ(test, atomic_read(&devq()->busy), 0);
	queue_stop(true);
}

/* Packets of a connection that were handed to the device for the first time. */
static u64 devq_sent(struct t_conn *c)
{
	u64 n;

	lock_sock(&c->esp->sk);
	n = c->esp->stats.tx_packets;
	release_sock(&c->esp->sk);
	return n;
}

/* Memory of a connection's frames that the device has not freed. */
static int devq_memory(struct t_conn *c)
{
	return refcount_read(&c->esp->sk.sk_wmem_alloc) - 1;
}

/*
 * Take data frames of @n connections until each has sent its packets; @at: their order, from a
 * device that takes one frame a time
 */
static void devq_drain(struct kunit *test, struct t_conn *c, int n, u8 *at)
{
	int left = n * DEVQ_PACKETS, i;

	while (left) {
		struct esp_frame f;
		struct sk_buff *skb;

		if (at) {
			msleep(20);	/* the connection whose frame was freed has its turn */
			atomic_set(&fx.takes, 1);
			queue_stop(false);
		}
		skb = next_skb(T_ANSWER_MS);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		read_frame(test, skb, &f, NULL);
		for (i = 0; i < n - 1; i++)
			if (ether_addr_equal(eth_hdr(skb)->h_dest, c[i].mac))
				break;
		kfree_skb(skb);
		if (!f.len)
			continue;
		if (at)
			*at++ = i;
		left--;
	}
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, c[i].esp->stats.retrans, 0ull);
	EVENTUALLY(test, !atomic_read(&devq()->busy));
}

static void devq_close(struct kunit *test, struct t_conn *c, int n)
{
	int i;

	for (i = 0; i < n; i++)
		close_conn(test, &c[i]);
	KUNIT_EXPECT_TRUE(test, list_empty(&devq()->ready));
}

/* A device gets two full frames. It gets the others as it frees these, and none is lost. */
static void devq__two_frames(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;

	devq_open(test, &c, 1, 1);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, DEVQ_PACKETS * T_MSS, 0),
			DEVQ_PACKETS * T_MSS);
	KUNIT_EXPECT_EQ(test, devq_sent(&c), 2ull);
	KUNIT_EXPECT_GT(test, devq_memory(&c), 2 * T_MSS);
	KUNIT_EXPECT_EQ(test, atomic_read(&c.esp->devq_frames), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&devq()->busy), 1);
	msleep(20);	/* it waits however long that takes */
	KUNIT_EXPECT_EQ(test, devq_sent(&c), 2ull);
	queue_stop(false);
	devq_drain(test, &c, 1, NULL);
	EVENTUALLY(test, !devq_memory(&c));
	devq_close(test, &c, 1);
}

/* A packet that is alone does not count; the next ones do. */
static void devq__alone(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	int i;

	devq_open(test, &c, 1, 1);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 100, 0), 100);
		KUNIT_EXPECT_EQ(test, devq_sent(&c), i + 1ull);
		KUNIT_EXPECT_EQ(test, atomic_read(&c.esp->devq_frames), i);
	}
	queue_stop(false);
	EVENTUALLY(test, !devq_memory(&c));
	skb_queue_purge(&fx.out);
	devq_close(test, &c, 1);
}

/* A device gets one GSO packet, and the next one when it has freed that. */
static void devq__one_gso_packet(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	u64 sent;

	devq_open(test, &c, 1, 5);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, DEVQ_PACKETS * T_MSS, 0),
			DEVQ_PACKETS * T_MSS);
	sent = devq_sent(&c);
	KUNIT_EXPECT_GE(test, sent, 2ull);
	KUNIT_EXPECT_LE(test, sent, 5ull);
	msleep(20);
	KUNIT_EXPECT_EQ(test, devq_sent(&c), sent);
	queue_stop(false);
	devq_drain(test, &c, 1, NULL);
	EVENTUALLY(test, !devq_memory(&c));
	devq_close(test, &c, 1);
}

/* Connections take turns, frame by frame. */
static void devq__turns(struct kunit *test)
{
	int n[3] = {}, i, j, spread = 0;
	u8 *buf = pattern(test);
	u8 at[3 * DEVQ_PACKETS];
	struct t_conn c[3];

	devq_open(test, c, 3, 1);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, send_bytes(&c[i], buf, DEVQ_PACKETS * T_MSS, 0),
				DEVQ_PACKETS * T_MSS);
	devq_drain(test, c, 3, at);
	queue_stop(false);
	for (i = 0; i < 3 * DEVQ_PACKETS; i++) {
		n[at[i]]++;
		for (j = 0; j < 3; j++)
			if (n[at[i]] - n[j] > spread)
				spread = n[at[i]] - n[j];
	}
	for (j = 0; j < 3; j++)
		KUNIT_EXPECT_EQ(test, n[j], DEVQ_PACKETS);
	/* the first one has two frames in the queue before the others come */
	KUNIT_EXPECT_LE(test, spread, 3);
	devq_close(test, c, 3);
}

/* Frames that stay in the queue hold up no other connection: each may have one there, at once. */
static void devq__stuck_neighbour(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c[3];
	int i;

	devq_open(test, c, 3, 1);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, send_bytes(&c[i], buf, DEVQ_PACKETS * T_MSS, 0),
				DEVQ_PACKETS * T_MSS);
		KUNIT_EXPECT_EQ(test, devq_sent(&c[i]), i ? 1ull : 2ull);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&devq()->busy), 3);
	queue_stop(false);
	devq_drain(test, c, 3, NULL);
	devq_close(test, c, 3);
}

/*
 * A connection may have the n-th part of the limit if n have frames in the queue. However long the
 * device takes for these, the queue gets no more.
 */
static void devq__shared(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c[4];
	int i;

	devq_open(test, c, 4, 12);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, send_bytes(&c[i], buf, DEVQ_PACKETS * T_MSS, 0),
				DEVQ_PACKETS * T_MSS);
	msleep(300);	/* longer than a device needs that is not very slow */
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_GE(test, devq_sent(&c[i]), 1ull);
		/* a packet's share of the memory beyond the payload */
		KUNIT_EXPECT_LE(test, devq_sent(&c[i]), 12ull / (i + 1) + 1);
	}
	queue_stop(false);
	devq_drain(test, c, 4, NULL);
	devq_close(test, c, 4);
}

/* Connections have frames that stay in the queue, and some of them end. Another one sends. */
static void devq__many_stuck(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn *c;
	int i;

	c = kunit_kcalloc(test, DEVQ_STUCK + 1, sizeof(*c), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c);
	devq_open(test, c, DEVQ_STUCK + 1, 1);
	for (i = 0; i < DEVQ_STUCK; i++) {
		send_bytes(&c[i], buf, DEVQ_PACKETS * T_MSS, 0);
		EVENTUALLY(test, devq_sent(&c[i]));
	}
	for (i = 0; i < DEVQ_STUCK / 2; i++)
		close_conn(test, &c[i]);
	send_bytes(&c[DEVQ_STUCK], buf, DEVQ_PACKETS * T_MSS, 0);
	EVENTUALLY(test, devq_sent(&c[DEVQ_STUCK]));
	for (; i <= DEVQ_STUCK; i++)
		close_conn(test, &c[i]);
	KUNIT_EXPECT_TRUE(test, list_empty(&devq()->ready));
	queue_stop(false);
	EVENTUALLY(test, !atomic_read(&devq()->busy));
}

/* Empty packets never wait. */
static void devq__ack_does_not_wait(struct kunit *test)
{
	u8 *buf = pattern(test);
	unsigned long empty, acks;
	struct t_conn c;

	devq_open(test, &c, 1, 1);
	send_bytes(&c, buf, DEVQ_PACKETS * T_MSS, 0);
	KUNIT_EXPECT_EQ(test, devq_sent(&c), 2ull);
	empty = mib(ESP_MIB_OutEmpty);
	acks = c.esp->stats.tx_empty;
	lock_sock(&c.esp->sk);
	esp_send_ack(&c.esp->sk);
	release_sock(&c.esp->sk);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutEmpty), empty + 1);
	KUNIT_EXPECT_EQ(test, (unsigned long)c.esp->stats.tx_empty, acks + 1);
	queue_stop(false);
	devq_drain(test, &c, 1, NULL);
	devq_close(test, &c, 1);
}

/* A packet that is still in the queue is not lost: the timer does not send it again. */
static void devq__not_lost(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	u64 timeouts;

	conf()->rto_min_us = 2000;
	conf()->rto_max_ms = 20;
	devq_open(test, &c, 1, 1);
	timeouts = c.esp->stats.timeouts;
	send_bytes(&c, buf, 2 * T_MSS, 0);
	EVENTUALLY(test, READ_ONCE(c.esp->stats.timeouts) > timeouts + 2);
	KUNIT_EXPECT_EQ(test, c.esp->stats.retrans, 0ull);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	queue_stop(false);
	/* no ACK comes: from now on they may be lost */
	EVENTUALLY(test, READ_ONCE(c.esp->stats.retrans));
	devq_close(test, &c, 1);
}

/* A device that keeps frames does not begin the user's timeout anew. */
static void devq__user_timeout(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;

	conf()->rto_min_us = 2000;
	conf()->rto_max_ms = 5;
	devq_open(test, &c, 1, 1);
	c.esp->user_timeout_ms = 50;
	send_bytes(&c, buf, DEVQ_PACKETS * T_MSS, 0);
	EVENTUALLY(test, READ_ONCE(c.sock->sk->sk_state) == TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_err, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, c.esp->stats.retrans, 0ull);
	queue_stop(false);
	sock_release(c.sock);
}

/* A connection with nothing outstanding may send a packet, whatever the device keeps. */
static void devq__nothing_outstanding(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c[3];
	int i;

	devq_open(test, c, 3, 1);
	send_bytes(&c[0], buf, 2 * T_MSS, 0);
	send_bytes(&c[1], buf, 2 * T_MSS, 0);
	send_bytes(&c[2], buf, DEVQ_PACKETS * T_MSS, 0);
	KUNIT_ASSERT_EQ(test, devq_sent(&c[2]), 1ull);
	/* the peer has what the device does not report yet */
	c[2].ack++;
	feed_ack(test, &c[2], DEVQ_PACKETS);
	KUNIT_EXPECT_EQ(test, devq_sent(&c[2]), 2ull);
	/* nor does it believe a peer that goes on like that */
	for (i = 0; i < 4; i++) {
		c[2].ack = c[2].esp->snd.send_next;
		feed_ack(test, &c[2], DEVQ_PACKETS);
	}
	KUNIT_EXPECT_LE(test, devq_sent(&c[2]), 4ull);
	queue_stop(false);
	devq_close(test, c, 3);
}

/*
 * The peer may wait for packets that are in the queue before it acknowledges the first ones, which
 * the device has sent: the timer does not send these again.
 */
static void devq__ack_comes_later(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	u64 timeouts;

	conf()->rto_min_us = 2000;
	conf()->rto_max_ms = 20;
	devq_open(test, &c, 1, 1);
	timeouts = c.esp->stats.timeouts;
	send_bytes(&c, buf, 2 * T_MSS, 0);
	atomic_set(&fx.takes, 1);
	queue_stop(false);
	EVENTUALLY(test, atomic_read(&c.esp->devq_frames) == 1);
	EVENTUALLY(test, READ_ONCE(c.esp->stats.timeouts) > timeouts + 2);
	KUNIT_EXPECT_EQ(test, c.esp->stats.retrans, 0ull);
	queue_stop(false);
	EVENTUALLY(test, READ_ONCE(c.esp->stats.retrans));
	devq_close(test, &c, 1);
}

/* Sockets end while their frames are in the queue, and while they wait for these. */
static void devq__closed(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c[3];
	int i;

	devq_open(test, c, 3, 1);
	for (i = 0; i < 3; i++)
		send_bytes(&c[i], buf, DEVQ_PACKETS * T_MSS, 0);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, esp_devq_waits(c[i].esp));
		KUNIT_EXPECT_GT(test, devq_memory(&c[i]), 0);
	}
	for (i = 0; i < 3; i++)
		close_conn(test, &c[i]);
	KUNIT_EXPECT_TRUE(test, list_empty(&devq()->ready));
	KUNIT_EXPECT_EQ(test, atomic_read(&devq()->unused), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&devq()->busy), 3);
	queue_stop(false);
	EVENTUALLY(test, !atomic_read(&devq()->busy));
}

/* A queue that drops frames gets fewer of them, and one that runs dry gets more. */
static void devq__limit(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;
	int limit;

	devq_open(test, &c, 1, 1);
	KUNIT_EXPECT_EQ(test, devq()->limit, 2);
	send_bytes(&c, buf, DEVQ_PACKETS * T_MSS, 0);
	queue_stop(false);
	devq_drain(test, &c, 1, NULL);
	limit = READ_ONCE(devq()->limit);
	KUNIT_EXPECT_GT(test, limit, 2);	/* the device frees its frames at once */
	WRITE_ONCE(devq()->limit, 20);
	devq()->halved -= 1000000;
	lock_sock(&c.esp->sk);
	esp_devq_refused(&c.esp->sk);
	KUNIT_EXPECT_EQ(test, READ_ONCE(devq()->limit), 10);
	esp_devq_refused(&c.esp->sk);	/* frames that were refused together are one reason */
	KUNIT_EXPECT_EQ(test, READ_ONCE(devq()->limit), 10);
	WRITE_ONCE(devq()->limit, 3);
	devq()->halved -= 1000000;
	esp_devq_refused(&c.esp->sk);
	release_sock(&c.esp->sk);
	KUNIT_EXPECT_EQ(test, READ_ONCE(devq()->limit), 2);
	devq_close(test, &c, 1);
}

/* Adapt the limit, as before a turn at which @left units are in the queue; return it. */
static int devq_adapt(u32 left, u64 now)
{
	unsigned long irqs;

	spin_lock_irqsave(&devq()->lock, irqs);
	esp_devq_adapt(devq(), left, now);
	spin_unlock_irqrestore(&devq()->lock, irqs);
	return devq()->limit;
}

/* The limit shrinks by half of the units that were never needed. */
static void devq__limit_shrinks(struct kunit *test)
{
	u64 now = esp_now();

	atomic_inc(&devq()->busy);
	devq_adapt(0, now);		/* an interval begins */
	devq()->limit = 100;
	devq()->low = U32_MAX;		/* there was no turn */
	KUNIT_EXPECT_EQ(test, devq_adapt(30, now + 200000), 100);
	KUNIT_EXPECT_EQ(test, devq_adapt(40, now + 201000), 100);
	KUNIT_EXPECT_EQ(test, devq_adapt(U32_MAX, now + 400000), 85);
	KUNIT_EXPECT_EQ(test, devq_adapt(0, now + 600000), 2);
	atomic_dec(&devq()->busy);
	KUNIT_EXPECT_EQ(test, devq_adapt(0, now + 601000), 3);	/* it ran dry */
}

/* A connection that fq paces has a limit of its own, and does not count for others. */
static void devq__paced(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c[2];
	int i;

	devq_open(test, c, 2, 1);
	WRITE_ONCE(c[0].esp->sk.sk_max_pacing_rate, 1000);
	WRITE_ONCE(c[0].esp->sk.sk_pacing_status, SK_PACING_FQ);
	for (i = 0; i < 2; i++) {
		send_bytes(&c[i], buf, DEVQ_PACKETS * T_MSS, 0);
		KUNIT_EXPECT_EQ(test, devq_sent(&c[i]), 2ull);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&c[0].esp->devq_frames), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&devq()->busy), 1);
	queue_stop(false);
	devq_drain(test, c, 2, NULL);
	devq_close(test, c, 2);
}

/*
 * A host whose device does not take what peers permit says so in its frames, once one of them
 * permits more, until most of it has left.
 */
static void devq__link_busy(struct kunit *test)
{
	struct esp_devq *q = devq();
	int i, busy = 0, last = 0;
	u8 *buf = pattern(test);
	struct t_conn c[2];

	devq_open(test, c, 2, 1);
	/* a round trip of 10 frames: 3/4 of these are too many */
	esp_budget_init(&fx.ed->link->budget, 1000, 1500);
	esp_budget_rtt(&fx.ed->link->budget, &c[0].esp->peer->host, 123, 123, 1, 0);
	for (i = 0; i < 2; i++) {
		c[i].esp->peer_left = 1;
		send_bytes(&c[i], buf, DEVQ_PACKETS * T_MSS - ESP_LEFT_ROOM, 0);
		KUNIT_EXPECT_EQ(test, c[i].esp->devq_unused, DEVQ_PACKETS - 2u + i);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&q->unused), 2 * DEVQ_PACKETS - 3);
	KUNIT_EXPECT_FALSE(test, q->link_busy);
	c[0].ack++;
	feed_ack(test, &c[0], DEVQ_PACKETS);
	KUNIT_EXPECT_TRUE(test, q->link_busy);
	queue_stop(false);
	for (i = 0; i < 2 * DEVQ_PACKETS; i++) {
		struct esp_frame f;

		next_with_data(test, &f);
		busy += f.busy;
		if (f.busy)
			last = i;
	}
	/* not the first three, which have left before, and not those at the end */
	KUNIT_EXPECT_GE(test, busy, DEVQ_PACKETS);
	KUNIT_EXPECT_LE(test, last, 2 * DEVQ_PACKETS - 3);
	EVENTUALLY(test, !atomic_read(&q->unused));
	KUNIT_EXPECT_FALSE(test, q->link_busy);
	devq_close(test, c, 2);
}

static struct kunit_case noqueue_cases[] = {
	KUNIT_CASE(queue__none_refused),
	{}
};

static struct kunit_case queue_cases[] = {
	KUNIT_CASE(queue__refused),
	KUNIT_CASE(queue__stops),
	KUNIT_CASE(queue__stopped_for_ever),
	KUNIT_CASE(devq__two_frames),
	KUNIT_CASE(devq__alone),
	KUNIT_CASE(devq__one_gso_packet),
	KUNIT_CASE(devq__turns),
	KUNIT_CASE(devq__stuck_neighbour),
	KUNIT_CASE(devq__shared),
	KUNIT_CASE(devq__many_stuck),
	KUNIT_CASE(devq__ack_does_not_wait),
	KUNIT_CASE(devq__not_lost),
	KUNIT_CASE(devq__user_timeout),
	KUNIT_CASE(devq__nothing_outstanding),
	KUNIT_CASE(devq__ack_comes_later),
	KUNIT_CASE(devq__closed),
	KUNIT_CASE(devq__limit),
	KUNIT_CASE(devq__limit_shrinks),
	KUNIT_CASE(devq__paced),
	KUNIT_CASE(devq__link_busy),
	{}
};
