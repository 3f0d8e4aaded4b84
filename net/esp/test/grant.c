// SPDX-License-Identifier: GPL-2.0-only
/* Grants, their memory and their end: rules 7, 10-18, 20. Included by suite.c. */

/* Set the budget of the device's link, packets. */
static void set_budget(u32 n)
{
	conf()->q_min = n;
	conf()->q_max = n;
	esp_dev_policy(&init_net);
}

/* Rules 10, 14: a TXS is answered by a grant. */
static void txs__brings_permission(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	KUNIT_ASSERT_LT(test, c.advice, T_BUDGET);
	feed(test, &c, ESP_TXS, c.seq, T_MSS);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	/* with the rest of the first burst, all of the budget */
	KUNIT_EXPECT_EQ(test, f.grant, T_BUDGET);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), f.grant);
	KUNIT_EXPECT_EQ(test, atomic_read(&c.esp->peer->host.outstanding), f.grant);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->esp_recv_count), 1);
	KUNIT_EXPECT_NE(test, c.esp->deadline[ESP_T_RRQ], 0ull);
	close_conn(test, &c);
}

/* Feed an announcement of packets up to @end. The first @first of them leave before an ACK. */
static void feed_left(struct kunit *test, struct t_conn *c, u16 len, u32 end, u16 first)
{
	struct esp_frame f;

	conn_frame(c, &f, ESP_TXS | ESP_ACK, c->seq, len);
	f.grant = c->grant;
	f.opts |= ESP_HAS(ESP_OPT_LEFT);
	f.left = end;
	f.first = first;
	feed_frame(test, c->mac, &f, NULL);
	c->seq += !!len;
}

/*
 * A peer that tells the end of its data is granted no more. All of it has been granted: then an
 * ACK leaves after packets_to_ack packets. An empty packet that tells more brings a grant.
 */
static void left__no_grant_beyond(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;
	u32 end, i;

	fx.left = true;
	conf()->esp_packets_to_ack = 3;
	open_conn(test, &c, 0, 4);
	end = c.seq + 9;
	feed_left(test, &c, T_MSS, end, 2);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq + f.grant, end);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.queued);
	for (i = 1; i <= 6; i++) {
		feed(test, &c, 0, c.seq++, T_MSS);
		if (i % 3)
			continue;
		next(test, &c, ESP_ACK, &f);
		KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq);
		KUNIT_EXPECT_EQ(test, f.ack_seq + f.grant, end);
	}
	silence(test);
	conn_frame(&c, &f, ESP_ACK, c.seq, 0);
	f.opts = ESP_HAS(ESP_OPT_LEFT);
	f.left = end + 3;
	feed_frame(test, c.mac, &f, NULL);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq + f.grant, end + 3);
	/* what an older packet tells does not count */
	conn_frame(&c, &f, ESP_ACK, c.seq - 5, 0);
	f.opts = ESP_HAS(ESP_OPT_LEFT);
	f.left = end + 30;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c.esp->grant.end, end + 3);
	silence(test);
	close_conn(test, &c);
}

/* A first burst that a peer claims counts as far as its bucket has room. */
static void left__burst_is_bounded(struct kunit *test)
{
	struct t_conn c;

	fx.left = true;
	open_conn(test, &c, 0, 4);
	feed_left(test, &c, T_MSS, c.seq + 60000, 65535);
	KUNIT_EXPECT_LE(test, atomic_read(&ackq()->outstanding), T_BUDGET);
	KUNIT_EXPECT_LE(test, c.esp->grant.edge - c.seq, (u32)ESP_ADVICE_MAX + T_BUDGET);
	close_conn(test, &c);
}

/* BUSY and round trips reach the bucket of the peer's host, and the link counts the bytes. */
static void data__counts_for_host(struct kunit *test)
{
	struct esp_frame f;
	struct esp_host *h;
	struct t_conn c;
	u32 bytes;

	open_conn(test, &c, 0, 4);
	c.esp->peer_left = 1;
	h = &c.esp->peer->host;
	WRITE_ONCE(h->since, ktime_get_ns() + NSEC_PER_SEC);	/* no round ends */
	bytes = atomic_read(&c.esp->link->budget.bytes);
	conn_frame(&c, &f, ESP_TXS | ESP_TXF | ESP_ACK, c.seq, 100);
	f.busy = 1;
	f.grant = 7;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, atomic_read(&h->came), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&h->marked), 1);
	KUNIT_EXPECT_EQ(test, h->busy, 1);
	KUNIT_EXPECT_EQ(test, c.esp->snd.advice, 7);
	KUNIT_EXPECT_EQ(test, atomic_read(&c.esp->link->budget.bytes) - bytes,
			100u + ESP_HLEN + ESP_FRAMING);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq + 1, 100);
	KUNIT_EXPECT_EQ(test, atomic_read(&h->came), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&h->marked), 1);
	KUNIT_EXPECT_EQ(test, h->busy, 0);
	close_conn(test, &c);
}

/* A user who watches the socket sees the bucket of its host, BUSY in both directions, and LEFT. */
static void data__bucket_is_shown(struct kunit *test)
{
	struct esp_devq *q;
	struct esp_info i;
	struct esp_host *h;
	struct t_conn c;

	fx.left = true;
	open_conn(test, &c, 0, 4);
	h = &c.esp->peer->host;
	esp_get_info(&c.esp->sk, &i);
	KUNIT_EXPECT_EQ(test, i.bucket, esp_host_most(&c.esp->link->budget, h, 0));
	KUNIT_EXPECT_EQ(test, i.bucket_open | i.bucket_busy | i.left, 0u);
	KUNIT_EXPECT_EQ(test, i.flags & ESP_IF_BUSY, 0);
	feed_left(test, &c, T_MSS, c.seq + 21, 0);
	KUNIT_ASSERT_GT(test, atomic_read(&h->outstanding), 3);
	h->bounded = 1;
	h->alpha = 512;
	h->busy_cap = 3 * ESP_BUCKET_UNIT;
	esp_get_info(&c.esp->sk, &i);
	KUNIT_EXPECT_EQ(test, i.bucket, 3u);
	KUNIT_EXPECT_EQ(test, (int)i.bucket_open, atomic_read(&h->outstanding));
	KUNIT_EXPECT_EQ(test, i.bucket_busy, 500u);
	KUNIT_EXPECT_EQ(test, i.left, 20u);
	q = c.esp->devq;
	WRITE_ONCE(q->link_busy, 1);
	atomic_add(1000000, &q->unused);
	esp_get_info(&c.esp->sk, &i);
	KUNIT_EXPECT_EQ(test, i.flags & ESP_IF_BUSY, ESP_IF_BUSY);
	atomic_sub(1000000, &q->unused);
	esp_get_info(&c.esp->sk, &i);
	KUNIT_EXPECT_EQ(test, i.flags & ESP_IF_BUSY, 0);
	WRITE_ONCE(q->link_busy, 0);
	close_conn(test, &c);
}

/* Rule 7: TXS and TXF on one packet touch no shared state. */
static void txs__whole_touches_nothing_shared(struct kunit *test)
{
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 200);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->esp_recv_count), 0);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.recv_announced);
	KUNIT_EXPECT_EQ(test, c.esp->deadline[ESP_T_RRQ], 0ull);
	silence(test);
	close_conn(test, &c);
}

/* Rule 7: the ACK of a small transmission rides on the reply. */
static void txs__ack_rides_on_reply(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 200);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "reply", 5, 0), 5);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	KUNIT_EXPECT_EQ(test, f.len, 5);
	silence(test);
	close_conn(test, &c);
}

/* Open two connections that share a budget of one grant, without first bursts. */
static void open_rivals(struct kunit *test, struct t_conn *a, struct t_conn *b)
{
	conf()->first_burst_pool = 0;
	set_budget(2);
	open_conn(test, a, 0, 4);
	open_conn(test, b, 1, 4);
}

/* Rule 13: a sender whose grant is queued gets a HOLD; rule 14: and its turn. */
static void txs__hold_when_parked(struct kunit *test)
{
	struct t_conn a, b;
	struct esp_frame f;

	open_rivals(test, &a, &b);
	KUNIT_EXPECT_EQ(test, a.advice, 0);

	feed(test, &a, ESP_TXS, a.seq, 0);	/* announces, empty (rule 21) */
	next(test, &a, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, ESP_GRANT_MIN);
	feed(test, &b, ESP_TXS, b.seq, 0);
	next(test, &b, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 0);
	KUNIT_EXPECT_EQ(test, f.ack_seq, b.seq);
	KUNIT_EXPECT_TRUE(test, b.esp->grant.queued);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->esp_recv_count), 2);

	/* every probe is answered, and merges into the queued grant (rule 11) */
	feed(test, &b, ESP_TXS, b.seq, 0);
	next(test, &b, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 0);
	KUNIT_EXPECT_EQ(test, ackq()->qlen, 2u);	/* a wants more than it has */

	/* a's last packet voids the rest of its grant: it is b's turn */
	feed(test, &a, ESP_TXS | ESP_TXF, a.seq, 300);
	next(test, &b, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, ESP_GRANT_MIN);
	next(test, &a, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, a.seq + 1);
	KUNIT_EXPECT_FALSE(test, a.esp->grant.queued);
	KUNIT_EXPECT_EQ(test, ackq()->qlen, 1u);
	close_conn(test, &a);
	close_conn(test, &b);
}

/* Rule 11: closing a socket takes its grant out of the queue. */
static void txs__parked_then_closed(struct kunit *test)
{
	struct t_conn a, b, c;
	struct esp_frame f;

	open_rivals(test, &a, &b);
	open_conn(test, &c, 2, 4);
	feed(test, &a, ESP_TXS, a.seq, 0);
	next(test, &a, ESP_ACK, &f);
	feed(test, &b, ESP_TXS, b.seq, 0);
	next(test, &b, ESP_ACK, &f);
	feed(test, &c, ESP_TXS, c.seq, 0);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, ackq()->qlen, 3u);	/* all want more than they have */
	close_conn(test, &b);
	KUNIT_EXPECT_EQ(test, ackq()->qlen, 2u);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->esp_recv_count), 2);
	KUNIT_EXPECT_FALSE(test, esp_after(c.esp->grant.edge, c.esp->recv_seq));
	close_conn(test, &a);	/* an RST gives the tokens back (rule 16) */
	KUNIT_EXPECT_EQ(test, ackq()->qlen, 1u);
	KUNIT_EXPECT_TRUE(test, esp_after(c.esp->grant.edge, c.esp->recv_seq));
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), ESP_GRANT_MIN);
	close_conn(test, &c);
}

/* Rules 16, 18: TXF ends the transmission and voids the rest of the grant. */
static void txf__voids_permission(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS, c.seq, T_MSS);
	next(test, &c, ESP_ACK, &f);
	feed(test, &c, ESP_TXF, c.seq + 1, T_MSS);
	next(test, &c, ESP_ACK, &f);	/* leaves at once (rule 10) */
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->esp_recv_count), 0);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.recv_announced);
	/* idle: the grant is a first burst, that of a single peer (rule 21) */
	KUNIT_EXPECT_EQ(test, f.grant, esp_burst_now(&c.esp->link->budget));
	close_conn(test, &c);
}

/* Rule 18: TXF acts when it is consumed in order, not when it arrives. */
static void txf__waits_for_its_turn(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	c.esp->rtt.srtt8 = 8 * 4000000;
	feed(test, &c, ESP_TXS, c.seq, T_MSS);
	next(test, &c, ESP_ACK, &f);
	feed(test, &c, ESP_TXF, c.seq + 2, T_MSS);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->esp_recv_count), 1);
	feed(test, &c, 0, c.seq + 1, T_MSS);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->esp_recv_count), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), 0);
	close_conn(test, &c);
}

/*
 * Rule 17: the RRQ timer asks for the granted packets and repeats the grant. After five
 * expiries recv_announced ends, but data is still taken.
 */
static void expiry__asks_then_ends(struct kunit *test)
{
	unsigned long given_up = mib(ESP_MIB_ExpiryAbandoned);
	struct esp_wire_range r[ESP_RRQ_RANGES] = {};
	int rrqs = 0, grants = 0;
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u16 said;

	conf()->rrq_min_us = 2000;
	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS, c.seq, T_MSS);
	next(test, &c, ESP_ACK, &f);
	said = f.grant;
	EVENTUALLY(test, !atomic_read(&ackq()->esp_recv_count));
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), 0);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_ExpiryAbandoned), given_up + 1);
	while ((skb = skb_dequeue(&fx.out))) {
		read_frame(test, skb, &f, (u8 *)r);
		kfree_skb(skb);
		if (f.flags & ESP_RRQ) {
			rrqs++;
			KUNIT_EXPECT_EQ(test, ntohs(r[0].offset), 0);
			KUNIT_EXPECT_EQ(test, ntohs(r[0].count), said);
		} else {
			grants++;
			KUNIT_EXPECT_EQ(test, f.flags, ESP_ACK);
		}
		/* nothing new: the same edge again */
		KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
		KUNIT_EXPECT_EQ(test, f.grant, said);
	}
	KUNIT_EXPECT_EQ(test, rrqs, 5);
	KUNIT_EXPECT_GE(test, grants, 5);	/* a grant may be repeated piece by piece */
	feed(test, &c, ESP_TXF, c.seq + 1, T_MSS);
	expect_data(test, &c, c.seq, 2, T_MSS);
	close_conn(test, &c);
}

/* Rule 17: a grant that is larger than the budget is by now is repeated, and watched to its end. */
static void expiry__beyond_budget(struct kunit *test)
{
	unsigned long given_up = mib(ESP_MIB_ExpiryAbandoned);
	struct t_conn c;

	conf()->rrq_min_us = 2000;
	conf()->rrq_max_ms = 500;	/* so that all expiries fit into EVENTUALLY() */
	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS, c.seq, 100);
	KUNIT_ASSERT_EQ(test, atomic_read(&ackq()->outstanding), T_BUDGET);
	set_budget(4);
	EVENTUALLY(test, atomic_read(&ackq()->outstanding) <= 4);
	feed(test, &c, 0, c.seq + 1, 100);
	feed(test, &c, 0, c.seq + 2, 100);
	KUNIT_EXPECT_LE(test, atomic_read(&ackq()->outstanding), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->esp_recv_count), 1);
	EVENTUALLY(test, !atomic_read(&ackq()->esp_recv_count));
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), 0);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_ExpiryAbandoned), given_up + 1);
	close_conn(test, &c);
}

/* Rule 17: an expired grant is queued before the grants that wait. */
static void expiry__goes_to_the_head(struct kunit *test)
{
	unsigned long expiries = mib(ESP_MIB_Expiries);
	struct t_conn a, b;
	struct esp_frame f;

	conf()->rrq_min_us = 50000;
	open_rivals(test, &a, &b);
	/* the link waits longer for packets of a than a's timer does */
	a.untimed = true;
	b.untimed = true;
	ackq()->budget->base.v = ESP_STALE_NS;
	feed(test, &a, ESP_TXS, a.seq, 0);
	next(test, &a, ESP_ACK, &f);
	feed(test, &b, ESP_TXS, b.seq, 0);
	next(test, &b, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 0);
	next(test, &a, ESP_ACK | ESP_RRQ, &f);
	next(test, &a, ESP_ACK, &f);	/* not to b */
	KUNIT_EXPECT_EQ(test, f.grant, ESP_GRANT_MIN);
	KUNIT_EXPECT_GE(test, mib(ESP_MIB_Expiries), expiries + 1);
	close_conn(test, &a);
	close_conn(test, &b);
}

/* The seed's policy (net.esp.adaptive = 0): each ACK grants, and at most burst_length packets. */
static void data__seeds_policy(struct kunit *test)
{
	u32 i, acks = 0, last;
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;

	conf()->adaptive = 0;
	conf()->esp_burst_length = 24;
	esp_dev_policy(&init_net);
	open_conn(test, &c, 0, 4);
	last = c.seq;
	for (i = 0; i < 64; i++)
		feed(test, &c, i ? 0 : ESP_TXS, c.seq + i, 100);
	while ((skb = next_skb(3))) {
		read_frame(test, skb, &f, NULL);
		kfree_skb(skb);
		if (f.ack_seq == last)
			continue;
		/* as often as packets_to_ack says, or earlier where the grant ends */
		KUNIT_EXPECT_LE(test, f.ack_seq - last, esp_packets_to_ack(c.sock->sk));
		/* what is left of the first burst, or burst_length */
		KUNIT_EXPECT_LE(test, (int)f.grant,
				max(24, (int)(c.seq + c.advice - f.ack_seq)));
		last = f.ack_seq;
		acks++;
	}
	KUNIT_EXPECT_GE(test, acks, 64 / esp_packets_to_ack(c.sock->sk));
	KUNIT_EXPECT_GT(test, f.grant, 0);
	feed(test, &c, ESP_TXF, c.seq + i, 100);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + i + 1);
	close_conn(test, &c);
	conf()->adaptive = fx.saved.adaptive;
	conf()->esp_burst_length = fx.saved.esp_burst_length;
	esp_dev_policy(&init_net);
}

/* Rule 20: without free memory the grant is 0; when there is some again, an ACK tells. */
static void memory__pressure_lifts(struct kunit *test)
{
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u8 *buf, rest[8];
	u32 i;

	conf()->first_burst_pool = 0;
	esp_dev_policy(&init_net);
	open_conn(test, &c, 0, 4);
	c.sock->sk->sk_rcvbuf = 10 * c.esp->grant.rcv_est;
	feed(test, &c, ESP_TXS, c.seq, 0);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_GE(test, f.grant, 8);
	KUNIT_EXPECT_LE(test, f.grant, 10);
	/* fill the buffer with granted packets: none is dropped */
	for (i = 0; c.seq + i != f.ack_seq + f.grant && i < 100; i++) {
		feed(test, &c, i ? 0 : ESP_TXS, c.seq + i, T_MSS);
		while ((skb = skb_dequeue(&fx.out))) {
			read_frame(test, skb, &f, rest);
			kfree_skb(skb);
		}
	}
	KUNIT_EXPECT_EQ(test, f.grant, 0);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + i);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + i);
	KUNIT_EXPECT_GE(test, i, 8u);
	KUNIT_EXPECT_TRUE(test, c.esp->grant.rcv_mem_pressure);
	KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), 0);
	/* a probe is answered */
	feed(test, &c, ESP_TXS, c.seq + i, 0);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 0);

	buf = kunit_kzalloc(test, i * T_MSS, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, buf, i * T_MSS), (int)(i * T_MSS));
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_GT(test, f.grant, 0);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.rcv_mem_pressure);
	close_conn(test, &c);
}

/*
 * While a backlog is processed, its frames count in the backlog and in the receive queue. The
 * socket must not stay under memory pressure for that.
 */
static void memory__backlog_counts_once(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;
	u32 i, n;

	conf()->first_burst_pool = 0;
	esp_dev_policy(&init_net);
	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS, c.seq, 0);
	next(test, &c, ESP_ACK, &f);
	n = f.grant;
	KUNIT_ASSERT_GE(test, n, 8u);
	lock_sock(c.sock->sk);
	for (i = 0; i < n; i++)
		feed(test, &c, i ? 0 : ESP_TXS, c.seq + i, T_MSS);
	c.sock->sk->sk_rcvbuf = 2 * c.sock->sk->sk_backlog.len;
	release_sock(c.sock->sk);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + n);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.rcv_mem_pressure);
	KUNIT_EXPECT_TRUE(test, esp_after(c.esp->grant.edge, c.esp->recv_seq));
	skb_queue_purge(&fx.out);
	close_conn(test, &c);
}

/* Rule 20: a reader that frees one packet at a time: an ACK tells of a quarter of the buffer. */
static void memory__not_by_the_packet(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, T_MSS, GFP_KERNEL);
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u32 i, n = 0;
	u8 rest[8];

	KUNIT_ASSERT_NOT_NULL(test, buf);
	conf()->first_burst_pool = 0;
	esp_dev_policy(&init_net);
	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS, c.seq, T_MSS);
	c.sock->sk->sk_rcvbuf = 64 * c.esp->grant.rcv_est;
	for (i = 1; i < 200 && !c.esp->grant.rcv_mem_pressure; i++)
		feed(test, &c, 0, c.seq + i, T_MSS);
	KUNIT_ASSERT_TRUE(test, c.esp->grant.rcv_mem_pressure);
	KUNIT_EXPECT_GE(test, i, 48u);
	KUNIT_EXPECT_LE(test, i, 66u);
	skb_queue_purge(&fx.out);
	while (!(skb = skb_dequeue(&fx.out)) && n < 64) {
		KUNIT_EXPECT_EQ(test, recv_bytes(&c, buf, T_MSS), (int)T_MSS);
		n++;
	}
	KUNIT_ASSERT_NOT_NULL(test, skb);
	do {	/* grant by grant */
		read_frame(test, skb, &f, rest);
		kfree_skb(skb);
	} while (f.grant < 16 && (skb = next_skb(T_ANSWER_MS)));
	KUNIT_EXPECT_GE(test, f.grant, 16);
	KUNIT_EXPECT_LE(test, n, 18u);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.rcv_mem_pressure);
	close_conn(test, &c);
}

/* Growth that finds no room is not forgotten: the reader, when it makes room, tells the sender. */
static void memory__growth_waits(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 8 * T_MSS, GFP_KERNEL);
	struct esp_frame f;
	struct t_conn c;
	u32 end, i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	fx.left = true;
	open_conn(test, &c, 0, 4);
	end = c.seq + 8;
	feed_left(test, &c, T_MSS, end, 1);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq + f.grant, end);
	for (i = 1; i < 8; i++)
		feed(test, &c, 0, c.seq++, T_MSS);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, end);
	skb_queue_purge(&fx.out);
	c.sock->sk->sk_rcvbuf = 8 * c.esp->grant.rcv_est;
	conn_frame(&c, &f, ESP_ACK, c.seq, 0);
	f.opts = ESP_HAS(ESP_OPT_LEFT);
	f.left = end + 8;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_TRUE(test, c.esp->grant.rcv_mem_pressure);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.queued);
	skb_queue_purge(&fx.out);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, buf, 8 * T_MSS), 8 * T_MSS);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_GT(test, f.grant, 0);
	close_conn(test, &c);
}

/* A peer that announces again and again, and sends first bursts, gets memory for two of them. */
static void memory__announced_again_is_bounded(struct kunit *test)
{
	int round, most;
	struct t_conn c;
	u32 i, end;

	fx.left = true;
	open_conn(test, &c, 0, 4);
	c.sock->sk->sk_rcvbuf = 10 * c.esp->grant.rcv_est;
	for (round = 0; round < 8; round++) {
		c.seq = c.esp->recv_seq;
		end = c.seq + ESP_ADVICE_MAX;
		feed_left(test, &c, round % 2 ? T_MSS : 0, end, 65535);
		for (i = c.seq; esp_before(i, end - 1); i++)
			feed(test, &c, 0, i, T_MSS);
		feed(test, &c, ESP_TXF, i, T_MSS);
	}
	most = (10 + 2 * ESP_ADVICE_MAX + 2) * c.esp->grant.rcv_est;
	KUNIT_EXPECT_LE(test, atomic_read(&c.sock->sk->sk_rmem_alloc), most);
	close_conn(test, &c);
}

/* Data without a grant is taken while the buffer has room, and dropped then. */
static void memory__unsolicited_is_bounded(struct kunit *test)
{
	struct t_conn c;
	u32 i;

	conf()->first_burst_pool = 0;
	esp_dev_policy(&init_net);
	open_conn(test, &c, 0, 4);
	c.sock->sk->sk_rcvbuf = 10 * c.esp->grant.rcv_est;
	for (i = 0; i < 200; i++)
		feed(test, &c, ESP_TXS | ESP_TXF, c.seq + i, T_MSS);
	KUNIT_EXPECT_LT(test, c.esp->recv_seq - c.seq, 80u);
	KUNIT_EXPECT_LE(test, atomic_read(&c.sock->sk->sk_rmem_alloc),
			(int)((10 + ESP_ADVICE_MAX + 2) * c.esp->grant.rcv_est));
	close_conn(test, &c);
}

/*
 * The first packet of a burst is lost, and the others fill the buffer. No reader can free
 * space before the first packet comes, so it is taken.
 */
static void memory__gap_before_full_buffer(struct kunit *test)
{
	struct t_conn c;
	u32 i;

	conf()->first_burst_pool = 0;
	esp_dev_policy(&init_net);
	open_conn(test, &c, 0, 4);
	c.sock->sk->sk_rcvbuf = 8 * c.esp->grant.rcv_est;
	for (i = 1; i < 17; i++)
		feed(test, &c, 0, c.seq + i, T_MSS);
	KUNIT_EXPECT_GT(test, atomic_read(&c.sock->sk->sk_rmem_alloc),
			c.sock->sk->sk_rcvbuf - (int)c.esp->grant.rcv_est);
	feed(test, &c, ESP_TXS, c.seq, T_MSS);
	KUNIT_EXPECT_NE(test, c.esp->recv_seq, c.seq);
	close_conn(test, &c);
}

/* Work that the pump leaves to the owner (grant_send()) is done even if another ACK leaves. */
static void memory__own_probe_stays(struct kunit *test)
{
	struct t_conn c;
	struct sock *sk;

	open_conn(test, &c, 0, 4);
	sk = c.sock->sk;
	lock_sock(sk);
	WRITE_ONCE(c.esp->grant.rcv_mem_pressure, 1);
	esp_timer_set(c.esp, ESP_T_TELL, esp_now());
	EVENTUALLY(test, READ_ONCE(c.esp->deferred));
	esp_send_ack(sk);
	release_sock(sk);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.rcv_mem_pressure);
	close_conn(test, &c);
}

/* An acknowledgment of 2^31 packets ago is not taken for a newer one than the last. */
static void receive__told_long_ago(struct kunit *test)
{
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	c.esp->queue_acked_seq = c.seq - 0x80000010;
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	silence(test);		/* the ACK waits for a reply */
	KUNIT_EXPECT_EQ(test, c.esp->to_ack, 1u);
	close_conn(test, &c);
}

/* Rule 17: the first packet after an expiry ends the backoff at once. */
static void receive__arrival_ends_backoff(struct kunit *test)
{
	u64 now = esp_now();
	struct t_conn c;

	conf()->rrq_min_us = 500000;
	open_conn(test, &c, 0, 8);
	feed(test, &c, ESP_TXS, c.seq, T_MSS);
	c.esp->rtt.srtt8 = 8 * 1000;
	c.esp->rtt.rttvar4 = 0;
	c.esp->expiries = 4;		/* as after the fourth expiry */
	esp_start_rrq_timer(c.esp);
	KUNIT_EXPECT_GT(test, c.esp->deadline[ESP_T_RRQ], now + 16 * 400000);
	atomic_add(1000, &ackq()->outstanding);	/* other senders have the budget */
	feed(test, &c, 0, c.seq + 1, T_MSS);
	atomic_sub(1000, &ackq()->outstanding);
	KUNIT_EXPECT_EQ(test, c.esp->expiries, 0);
	KUNIT_EXPECT_LT(test, c.esp->deadline[ESP_T_RRQ], esp_now() + 2 * 500000);
	KUNIT_EXPECT_GT(test, c.esp->deadline[ESP_T_RRQ], 0ull);
	close_conn(test, &c);
}

static struct kunit_case permission_cases[] = {
	KUNIT_CASE(data__seeds_policy),
	KUNIT_CASE(txs__brings_permission),
	KUNIT_CASE(left__no_grant_beyond),
	KUNIT_CASE(left__burst_is_bounded),
	KUNIT_CASE(data__counts_for_host),
	KUNIT_CASE(data__bucket_is_shown),
	KUNIT_CASE(txs__whole_touches_nothing_shared),
	KUNIT_CASE(txs__ack_rides_on_reply),
	KUNIT_CASE(txs__hold_when_parked),
	KUNIT_CASE(txs__parked_then_closed),
	KUNIT_CASE(txf__voids_permission),
	KUNIT_CASE(txf__waits_for_its_turn),
	KUNIT_CASE(expiry__asks_then_ends),
	KUNIT_CASE(expiry__beyond_budget),
	KUNIT_CASE(expiry__goes_to_the_head),
	KUNIT_CASE(memory__pressure_lifts),
	KUNIT_CASE(memory__growth_waits),
	KUNIT_CASE(memory__backlog_counts_once),
	KUNIT_CASE(memory__not_by_the_packet),
	KUNIT_CASE(memory__announced_again_is_bounded),
	KUNIT_CASE(memory__unsolicited_is_bounded),
	KUNIT_CASE(memory__gap_before_full_buffer),
	KUNIT_CASE(memory__own_probe_stays),
	KUNIT_CASE(receive__told_long_ago),
	KUNIT_CASE(receive__arrival_ends_backoff),
	{}
};
