// SPDX-License-Identifier: GPL-2.0-only
/* GSO packets, offload.c. Included by suite.c, after harness.c. */
#include <linux/crc32.h>
#include <linux/prandom.h>

#define T_RUN	(20 * T_MSS)	/* longest message in these tests, bytes */

/* A frame as on a cable. Its packet numbers count from the connection's first ones. */
struct t_seen {
	struct esp_frame	f;
	u32			crc;	/* CRC of the payload */
};

/* A message that the socket sends, and the behaviour of the peer that receives it. */
struct t_message {
	u32	len, piece;	/* bytes of the message, and of each write */
	u16	advice, grant;	/* the peer's first burst, and each of its grants, packets */
	bool	data;		/* the peer acknowledges by data packets */
	bool	calls;		/* the socket connects: its first frames have options */
};

/* Make a message. Each byte differs from the next one, and from the one a packet later. */
static u8 *message(struct kunit *test)
{
	u8 *buf = kunit_kmalloc(test, T_RUN, GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < T_RUN; i++)
		buf[i] = i * 7 + i / 251 + i / T_MSS;
	return buf;
}

/*
 * Record the frame @skb. @begin: time before the test fed the frame that it answers, or before
 * the connection was opened. The age of the echo in ts_ecr, by the frame's own clock, must not
 * be more than the time since then.
 */
static void see(struct kunit *test, struct t_conn *c, struct sk_buff *skb, u32 seq,
		u32 ack, u64 begin, struct t_seen *s)
{
	struct esp_frame *f = &s->f;
	u32 now, held;

	memset(f, 0, sizeof(*f));
	read_frame(test, skb, f, NULL);
	s->crc = crc32_le(0, skb->data + ETH_HLEN + f->hlen, f->len);
	now = f->ts_val - c->esp->ts_off;
	held = now - f->ts_ecr;
	if (f->len) {	/* not sent by a timer */
		KUNIT_EXPECT_LE(test, now - (u32)begin, (u32)esp_now() - (u32)begin);
		KUNIT_EXPECT_LE(test, held, now - (u32)begin);
	}
	KUNIT_EXPECT_EQ(test, f->cookie, c->cookie);
	f->cookie = 0;
	f->pkt_seq -= seq;
	f->ack_seq -= ack;
	f->ts_val = 0;
	f->ts_ecr = 0;
	if (f->opts & ESP_HAS(ESP_OPT_COOKIE)) {
		KUNIT_EXPECT_EQ(test, f->peer_cookie, c->their_cookie);
		f->peer_cookie = 0;
	}
}

/* Open a connection from the peer, or one to the peer. */
static void open_either(struct kunit *test, struct t_conn *c, int nr,
			const struct t_message *m)
{
	struct esp_frame f;

	if (!m->calls) {
		open_conn(test, c, nr, m->advice);
		return;
	}
	if (fx.listener)	/* it has the port */
		sock_release(fx.listener);
	fx.listener = NULL;
	begin_connect(test, c);
	hello_frame(c, &f, ESP_SYN | ESP_ACK);
	f.grant = m->advice;
	feed_frame(test, c->mac, &f, NULL);
	next_but_syn(test, &f);
	c->grant = m->advice;
	c->esp->opened_at = 0;	/* what the handshake told counts, however slow the test is */
}

/* Send the message @m, record the frames with data that leave, and return their number. */
static int record(struct kunit *test, int nr, const u8 *buf, const struct t_message *m,
		  struct t_seen *s, int most)
{
	u32 seq, ack, at, piece;
	u8 flags = ESP_TXS;
	struct sk_buff *skb;
	struct t_conn c;
	int n = 0, rounds = 0;
	u64 begin;

	begin = esp_now();
	open_either(test, &c, nr, m);
	c.untimed = true;
	esp_timer_set(c.esp, ESP_T_CORK, esp_now() + 10000000);	/* longer than all writes take */
	seq = c.ack;
	ack = c.seq;
	for (at = 0; at < m->len; at += piece) {
		piece = min(m->piece, m->len - at);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf + at, piece,
						 at + piece < m->len ? MSG_MORE : 0),
				(int)piece);
	}
	while (n < most) {
		skb = next_skb(2);
		if (skb) {
			see(test, &c, skb, seq, ack, begin, &s[n]);
			n += !!s[n].f.len;	/* probes and ACKs don't count */
			kfree_skb(skb);
			continue;
		}
		if (c.ack == c.esp->snd.send_seq || ++rounds > most)
			break;
		c.ack = n ? seq + s[n - 1].f.pkt_seq + 1 : seq;
		begin = esp_now();
		if (m->data) {
			c.grant = m->grant;
			feed(test, &c, flags, c.seq++, 10);
			flags = 0;
		} else {
			feed_ack(test, &c, m->grant);
		}
	}
	KUNIT_EXPECT_EQ(test, c.esp->snd.una_seq, c.esp->snd.send_seq);
	KUNIT_EXPECT_EQ(test, c.esp->unacked, 0u);
	KUNIT_EXPECT_EQ(test, c.esp->notsent, 0u);
	close_conn(test, &c);
	return n;
}

/* Wherever a GSO packet ends, its frames are those that leave without GSO, one by one. */
static void offload__as_one_by_one(struct kunit *test)
{
	static const struct t_message v[] = {
		{ T_RUN, T_RUN, 64, 64 },
		{ T_RUN - 1, T_RUN, 64, 64 },
		{ T_RUN - T_MSS + 1, T_RUN, 64, 64 },
		{ 2 * T_MSS, T_RUN, 2, 2 },
		{ T_RUN - 17, T_RUN, 1, 1 },
		{ T_RUN - 17, T_RUN, 3, 5 },
		{ T_RUN - 17, T_RUN, 7, 3 },
		{ T_RUN - 17, T_RUN, 0, 4 },
		{ T_RUN - 17, 100, 3, 5 },
		{ T_RUN - 17, 333, 5, 3 },
		{ T_RUN - 17, 5 * T_MSS + 3, 3, 4 },
		{ T_RUN - 17, T_RUN, 3, 5, .data = true },
		{ T_RUN - 17, 333, 5, 3, .data = true },
		{ T_RUN, T_RUN, 64, 64, .calls = true },
		{ T_RUN - 17, T_RUN, 7, 3, .calls = true },
		{ T_RUN - 17, 333, 5, 3, .calls = true, .data = true },
	};
	struct t_seen *one = kunit_kcalloc(test, 64, sizeof(*one), GFP_KERNEL);
	struct t_seen *run = kunit_kcalloc(test, 64, sizeof(*run), GFP_KERNEL);
	unsigned int segs = fx.dev->gso_max_segs;
	const u8 *buf = message(test);
	int i, j, n, m;

	KUNIT_ASSERT_NOT_NULL(test, one);
	KUNIT_ASSERT_NOT_NULL(test, run);
	/* grants depend on what happened before, and when: here all are the same */
	conf()->first_burst_pool = 0;
	esp_dev_policy(&init_net);
	esp_link_rate(fx.ed->link, 400000, 1500);
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		WRITE_ONCE(fx.dev->gso_max_segs, 1);
		n = record(test, 0, buf, &v[i], one, 64);
		WRITE_ONCE(fx.dev->gso_max_segs, segs);
		m = record(test, 1, buf, &v[i], run, 64);
		KUNIT_EXPECT_EQ_MSG(test, m, n, "case %d", i);
		for (j = 0; j < n; j++) {
			const struct esp_frame *f = &run[j].f, *want = &one[j].f;

			KUNIT_EXPECT_EQ_MSG(test, f->flags, want->flags, "%d.%d", i, j);
			KUNIT_EXPECT_EQ_MSG(test, f->pkt_seq, want->pkt_seq, "%d.%d", i, j);
			KUNIT_EXPECT_EQ_MSG(test, f->len, want->len, "%d.%d", i, j);
			KUNIT_EXPECT_EQ_MSG(test, f->ack_seq, want->ack_seq, "%d.%d", i, j);
			KUNIT_EXPECT_EQ_MSG(test, f->grant, want->grant, "%d.%d", i, j);
			KUNIT_EXPECT_EQ_MSG(test, (u32)f->opts, (u32)want->opts, "%d.%d", i, j);
			KUNIT_EXPECT_EQ_MSG(test, memcmp(f, want, sizeof(*f)), 0, "%d.%d", i, j);
			KUNIT_EXPECT_EQ_MSG(test, run[j].crc, one[j].crc, "%d.%d", i, j);
		}
		/* the frames with options and with ACKs were among them */
		KUNIT_EXPECT_EQ_MSG(test, !!one[0].f.opts, v[i].calls, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, !!one[n - 1].f.opts, v[i].calls && v[i].advice >= n,
				    "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, !!one[n - 1].f.ack_seq, v[i].data, "case %d", i);
	}
}

/* Segment @skb as the core does for a device with @features, but without SKB_GSO_SCTP. */
static struct sk_buff *take_apart(struct sk_buff *skb,
				  netdev_features_t features)
{
	struct sk_buff *segs;

	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb->protocol = esp_ethertype;
	skb->dev = fx.dev;
	rcu_read_lock();
	segs = __skb_gso_segment(skb, features, true);
	rcu_read_unlock();
	return segs;
}

/*
 * Segment the GSO packet @skb, and expect packets with the payload @buf, of T_MSS bytes each
 * but the last. The other fields of their headers are those of @skb.
 */
static void expect_apart(struct kunit *test, struct sk_buff *skb, netdev_features_t features,
			 const u8 *buf)
{
	struct sk_buff *seg, *next;
	struct esp_frame h, f, want;
	u32 n = skb->len - ETH_HLEN, k = 0;

	memset(&h, 0, sizeof(h));
	memset(&f, 0, sizeof(f));
	KUNIT_ASSERT_EQ(test, (int)esp_wire_parse(skb->data + ETH_HLEN, n, n, &h), ESP_WIRE_OK);
	KUNIT_ASSERT_EQ(test, (u32)h.hlen + h.len, n);
	n = DIV_ROUND_UP(h.len, T_MSS);
	seg = take_apart(skb, features);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(seg));
	for (; seg; seg = next, k++) {
		next = seg->next;
		skb_mark_not_on_list(seg);
		KUNIT_ASSERT_EQ(test, skb_linearize(seg), 0);
		KUNIT_EXPECT_FALSE(test, skb_is_gso(seg));
		if (seg->ip_summed == CHECKSUM_PARTIAL)	/* left to the device */
			KUNIT_EXPECT_EQ(test, skb_checksum_help(seg), 0);
		read_frame(test, seg, &f, NULL);
		want = h;
		want.pkt_seq += k;
		want.len = k + 1 == n ? h.len - k * T_MSS : T_MSS;
		want.flags &= ~((k ? ESP_TXS : 0) | (k + 1 < n ? ESP_TXF | ESP_EOR : 0));
		KUNIT_EXPECT_EQ(test, f.flags, want.flags);
		KUNIT_EXPECT_EQ(test, f.pkt_seq, want.pkt_seq);
		KUNIT_EXPECT_EQ(test, f.len, want.len);
		KUNIT_EXPECT_EQ(test, f.ack_seq, want.ack_seq);
		KUNIT_EXPECT_EQ(test, f.grant, want.grant);
		KUNIT_EXPECT_EQ(test, f.ts_val, want.ts_val);
		KUNIT_EXPECT_EQ(test, f.ts_ecr, want.ts_ecr);
		KUNIT_EXPECT_EQ(test, memcmp(&f, &want, sizeof(f)), 0);
		KUNIT_EXPECT_EQ(test, seg->len, (u32)ETH_HLEN + f.hlen + f.len);
		KUNIT_EXPECT_EQ(test, memcmp(seg->data + ETH_HLEN + f.hlen, buf + k * T_MSS,
					     f.len), 0);
		kfree_skb(seg);
	}
	KUNIT_EXPECT_EQ(test, k, n);
	skb_push(skb, skb->data - skb_mac_header(skb));
}

/* Send @len bytes of @buf, and return the GSO packet that leaves. */
static struct sk_buff *send_run(struct kunit *test, struct t_conn *c, const u8 *buf, u32 len)
{
	struct sk_buff *skb;

	takes_super_packets(true);
	KUNIT_EXPECT_EQ(test, send_bytes(c, buf, len, 0), (int)len);
	skb = next_skb(T_ANSWER_MS);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	silence(test);
	takes_super_packets(false);
	KUNIT_EXPECT_EQ(test, (int)skb_shinfo(skb)->gso_size, T_MSS);
	KUNIT_EXPECT_EQ(test, (int)skb_shinfo(skb)->gso_segs, (int)DIV_ROUND_UP(len, T_MSS));
	KUNIT_EXPECT_EQ(test, (int)skb->ip_summed, CHECKSUM_PARTIAL);
	return skb;
}

/* A device that takes GSO packets gets them, and a copy is segmented correctly. */
static void offload__one_frame(struct kunit *test)
{
	const u8 *buf = message(test);
	struct esp_wire *h;
	struct sk_buff *skb;
	struct t_conn c;

	open_conn(test, &c, 0, 64);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq++, 10);
	skb = send_run(test, &c, buf, T_RUN - 10);
	KUNIT_EXPECT_EQ(test, (int)skb->len, ETH_HLEN + ESP_HLEN + T_RUN - 10);
	KUNIT_EXPECT_EQ(test, c.esp->stats.tx_packets, 20ull);
	h = (struct esp_wire *)(skb->data + ETH_HLEN);
	KUNIT_EXPECT_EQ(test, h->flags, ESP_ACK | ESP_TXS | ESP_TXF);
	KUNIT_EXPECT_EQ(test, ntohl(h->pkt_seq), c.ack);
	KUNIT_EXPECT_EQ(test, ntohl(h->ack_seq), c.seq);
	expect_apart(test, skb, 0, buf);
	expect_apart(test, skb, NETIF_F_SG, buf);
	/* the device computes checksums only if its sysctl tx_checksum is 1, too */
	expect_apart(test, skb, NETIF_F_SG | NETIF_F_HW_CSUM, buf);
	WRITE_ONCE(fx.ed->tx_checksum, 1);
	expect_apart(test, skb, NETIF_F_SG | NETIF_F_HW_CSUM, buf);
	/* the end of a record; the middle of a transmission */
	h->flags = ESP_ACK | ESP_TXS | ESP_EOR;
	expect_apart(test, skb, 0, buf);
	h->flags = ESP_ACK;
	expect_apart(test, skb, 0, buf);
	kfree_skb(skb);
	close_conn(test, &c);
}

/* A part of a GSO packet is lost: only that part is retransmitted, once. */
static void offload__part_again(struct kunit *test)
{
	struct esp_wire_range r = { htons(3), htons(4) };
	const u8 *buf = message(test);
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u32 base, i;

	open_conn(test, &c, 0, 64);
	base = c.ack;
	takes_super_packets(true);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 12 * T_MSS, 0), 12 * T_MSS);
	skb = next_skb(T_ANSWER_MS);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	kfree_skb(skb);
	takes_super_packets(false);
	usleep_range(3000, 4000);	/* longer than a round trip: its packets count as lost */
	c.ack = base + 2;
	c.ts = (u32)esp_now() + c.esp->ts_off - 1000;
	conn_frame(&c, &f, ESP_ACK | ESP_RRQ, c.seq, sizeof(r));
	f.grant = 64;
	feed_frame(test, c.mac, &f, &r);	/* ack_seq is 2: packets 5 to 8 */
	for (i = 5; i < 9; i++) {
		next(test, &c, ESP_ACK, &f);
		KUNIT_EXPECT_EQ(test, f.pkt_seq, base + i);
		KUNIT_EXPECT_EQ(test, f.len, T_MSS);
	}
	silence(test);
	KUNIT_EXPECT_EQ(test, c.esp->unacked, 10u * T_MSS);
	c.ack = base + 12;
	feed_ack(test, &c, 64);
	KUNIT_EXPECT_EQ(test, c.esp->unacked, 0u);
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&c.sock->sk->sk_write_queue));
	close_conn(test, &c);
}

/* Make a GSO packet of @n packets, each as feed() makes it. */
static struct sk_buff *new_run(struct kunit *test, struct t_conn *c, u8 flags,
			       u32 seq, u32 n, u32 size, u32 last)
{
	u32 len = (n - 1) * size + last, i;
	struct esp_frame f;
	struct sk_buff *skb = new_frame(c->mac, ESP_HLEN + len);
	u8 *data;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	conn_frame(c, &f, flags | ESP_ACK, seq, len);
	f.grant = c->grant;
	data = skb_put(skb, ESP_HLEN + len);
	esp_wire_build(data, &f);
	for (i = 0; i < len; i++)
		data[ESP_HLEN + i] = seq + i / size;
	skb_shinfo(skb)->gso_size = size;
	skb_shinfo(skb)->gso_segs = n;
	skb_shinfo(skb)->gso_type = SKB_GSO_SCTP;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_headroom(skb) + ETH_HLEN;
	skb->csum_offset = offsetof(struct esp_wire, csum);
	if (fx.paged)
		page_payload(test, skb, data + ESP_HLEN, len);
	return skb;
}

static void feed_run(struct kunit *test, struct t_conn *c, u8 flags, u32 seq,
		     u32 n)
{
	receive(new_run(test, c, flags, seq, n, T_MSS, T_MSS));
}

static void offload__in_order(struct kunit *test)
{
	unsigned long in = mib(ESP_MIB_InData);
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	feed_run(test, &c, ESP_TXS, c.seq, 7);
	feed_run(test, &c, 0, c.seq + 7, 8);
	receive(new_run(test, &c, ESP_TXF, c.seq + 15, 5, T_MSS, T_MSS));
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 20);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InData), in + 20);
	KUNIT_EXPECT_EQ(test, c.esp->stats.rx_packets, 20ull);
	KUNIT_EXPECT_LE(test, skb_queue_len(&c.sock->sk->sk_receive_queue), 3u);
	KUNIT_EXPECT_EQ(test, c.esp->grant.recv_announced, 0);
	expect_data(test, &c, c.seq, 20, T_MSS);
	close_conn(test, &c);
}

/* The first packets of a GSO packet are here already, and its payload is in pages. */
static void offload__pages_partly_here(struct kunit *test)
{
	struct t_conn c;
	u32 est;

	fx.paged = true;
	open_conn(test, &c, 0, 64);
	feed(test, &c, ESP_TXS, c.seq, T_MSS);
	est = c.esp->grant.rcv_est;
	feed_run(test, &c, ESP_TXS, c.seq, 10);		/* 0-9: nine new */
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 10);
	feed_run(test, &c, 0, c.seq + 1, 10);		/* 1-10: one new */
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 11);
	feed(test, &c, 0, c.seq + 11, T_MSS);
	KUNIT_EXPECT_EQ(test, c.esp->grant.rcv_est, est);
	expect_data(test, &c, c.seq, 12, T_MSS);
	KUNIT_EXPECT_EQ(test, atomic_read(&c.sock->sk->sk_rmem_alloc), 0);
	close_conn(test, &c);
}

/* GSO packets overlap with packets that are here already, in every way. */
static void offload__partly_here(struct kunit *test)
{
	unsigned long dup = mib(ESP_MIB_InDuplicate);
	struct rb_node *n;
	struct t_conn c;

	open_conn(test, &c, 0, 64);
	feed_run(test, &c, ESP_TXS, c.seq, 4);		/* 0-3 */
	feed_run(test, &c, 0, c.seq + 2, 4);		/* 2-5: two new */
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 6);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InDuplicate), dup + 2);
	feed_run(test, &c, 0, c.seq + 8, 4);		/* 8-11, out of order */
	feed_run(test, &c, 0, c.seq + 14, 2);		/* 14-15 */
	KUNIT_EXPECT_EQ(test, c.esp->grant.ooo_pkts, 6u);
	feed_run(test, &c, 0, c.seq + 10, 5);		/* 12, 13 new */
	KUNIT_EXPECT_EQ(test, c.esp->grant.ooo_pkts, 8u);
	/* a packet that is kept has memory of its own, and is charged for no more */
	for (n = rb_first(&c.esp->ooo); n; n = rb_next(n)) {
		const struct sk_buff *skb = rb_to_skb(n);

		KUNIT_EXPECT_FALSE(test, skb_cloned(skb));
		KUNIT_EXPECT_LE(test, skb_end_offset(skb), skb->truesize);
	}
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InDuplicate), dup + 5);
	feed_run(test, &c, 0, c.seq + 8, 4);		/* nothing new */
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InDuplicate), dup + 9);
	feed_run(test, &c, 0, c.seq + 5, 5);		/* 6, 7: all in order */
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InDuplicate), dup + 12);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 16);
	KUNIT_EXPECT_EQ(test, c.esp->grant.ooo_pkts, 0u);
	feed_run(test, &c, 0, c.seq + 2, 4);		/* consumed long ago */
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 16);
	feed_run(test, &c, ESP_TXF, c.seq + 16, 2);
	expect_data(test, &c, c.seq, 18, T_MSS);
	close_conn(test, &c);
}

/* Packets come in any order, in GSO packets of any size, and repeatedly: each byte counts once. */
static void offload__random(struct kunit *test)
{
	struct rnd_state rnd;
	struct t_conn c;
	u32 round, n = 40;

	prandom_seed_state(&rnd, 4711);
	for (round = 0; round < 50; round++) {
		open_conn(test, &c, 0, 64);
		feed_run(test, &c, ESP_TXS, c.seq, 2);
		while (c.esp->recv_seq != c.seq + n) {
			u32 from = 1 + prandom_u32_state(&rnd) % (n - 1);
			u32 k = 1 + prandom_u32_state(&rnd) % 9;

			k = min(k, n - from);
			if (k == 1)
				feed(test, &c, from + k == n ? ESP_TXF : 0,
				     c.seq + from, T_MSS);
			else
				feed_run(test, &c, from + k == n ? ESP_TXF : 0,
					 c.seq + from, k);
		}
		expect_data(test, &c, c.seq, n, T_MSS);
		KUNIT_EXPECT_EQ(test, c.esp->stats.rx_packets, (u64)n);
		KUNIT_EXPECT_EQ(test, c.esp->grant.ooo_pkts, 0u);
		KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), 0);
		close_conn(test, &c);
	}
}

/* A GSO packet whose type or size ESP never uses is refused, on input and in segmentation. */
static void offload__not_ours(struct kunit *test)
{
	static const struct {
		u16 size;
		u32 type;
	} v[] = {
		{ T_MSS, 0 },
		{ T_MSS, SKB_GSO_TCPV4 },
		{ T_MSS, SKB_GSO_TCPV4 | SKB_GSO_SCTP },
		{ T_MSS, SKB_GSO_UDP_L4 },
		{ 1, SKB_GSO_SCTP },
		{ ESP_MSS_MIN - 1, SKB_GSO_SCTP },
		{ GSO_BY_FRAGS, SKB_GSO_SCTP },
	};
	unsigned long bad = mib(ESP_MIB_InBadGso);
	struct sk_buff *skb, *segs;
	struct t_conn c;
	int i;

	open_conn(test, &c, 0, 64);
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		skb = new_run(test, &c, ESP_TXS, c.seq, 5, T_MSS, T_MSS);
		skb_shinfo(skb)->gso_size = v[i].size;
		skb_shinfo(skb)->gso_type = v[i].type;
		segs = take_apart(skb, 0);
		KUNIT_EXPECT_TRUE_MSG(test, IS_ERR(segs), "case %d", i);
		skb_push(skb, skb->data - skb_mac_header(skb));
		receive(skb);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InBadGso), bad + i + 1);
	}
	/* a header without payload */
	skb = new_run(test, &c, 0, c.seq, 1, T_MSS, 0);
	segs = take_apart(skb, 0);
	KUNIT_EXPECT_TRUE(test, IS_ERR(segs));
	kfree_skb(skb);
	silence(test);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);
	close_conn(test, &c);
}

/* A frame list whose frames have any size is linearized, because skb_segment() would misread it. */
static void offload__odd_list(struct kunit *test)
{
	static const u32 odd[][3] = {
		{ T_MSS, T_MSS, T_MSS }, { 100, T_MSS, T_MSS },
		{ 2 * T_MSS, 100, 100 }, { T_MSS, 1, T_MSS }, { 1, 1, 1 },
	};
	struct sk_buff *skb, *part, *segs, *next;
	struct esp_frame f;
	struct t_conn c;
	u32 i, k, j, at, n;

	open_conn(test, &c, 0, 64);
	for (i = 0; i < ARRAY_SIZE(odd) * 3; i++) {
		u32 first = i % 3 == 0 ? T_MSS : i % 3 == 1 ? 77 : 2 * T_MSS;

		skb = new_run(test, &c, 0, c.seq, 1, T_MSS, first);
		for (k = 3; k--; ) {
			part = alloc_skb(odd[i / 3][k], GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, part);
			skb_put(part, odd[i / 3][k]);
			part->next = skb_shinfo(skb)->frag_list;
			skb_shinfo(skb)->frag_list = part;
			skb->len += part->len;
			skb->data_len += part->len;
			skb->truesize += part->truesize;
		}
		at = first;
		skb_walk_frags(skb, part)
			for (j = 0; j < part->len; j++)
				part->data[j] = c.seq + at++ / T_MSS;
		for (j = 0; j < first; j++)
			skb->data[ETH_HLEN + ESP_HLEN + j] = c.seq + j / T_MSS;
		((struct esp_wire *)(skb->data + ETH_HLEN))->len = htons(at);
		segs = take_apart(skb, NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_GSO_SCTP);
		KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(segs));
		for (n = 0; segs; segs = next, n++) {
			next = segs->next;
			skb_mark_not_on_list(segs);
			KUNIT_ASSERT_EQ(test, skb_linearize(segs), 0);
			j = segs->len - ETH_HLEN;
			KUNIT_ASSERT_EQ(test, (int)esp_wire_parse(segs->data + ETH_HLEN, j, j, &f),
					ESP_WIRE_OK);
			KUNIT_EXPECT_EQ(test, csum_fold(csum_partial(segs->data + ETH_HLEN, j, 0)),
					0);
			KUNIT_EXPECT_EQ(test, f.pkt_seq, c.seq + n);
			KUNIT_EXPECT_EQ(test, (u32)f.len, min_t(u32, T_MSS, at - n * T_MSS));
			for (j = 0; j < f.len; j++)
				if (segs->data[ETH_HLEN + ESP_HLEN + j] != (u8)f.pkt_seq)
					break;
			KUNIT_EXPECT_EQ(test, j, (u32)f.len);
			kfree_skb(segs);
		}
		KUNIT_EXPECT_EQ(test, n, DIV_ROUND_UP(at, T_MSS));
		kfree_skb(skb);
	}
	close_conn(test, &c);
}

/* Without scatter-gather a frame list is linearized if its frames are not linear. */
static void offload__list_without_sg(struct kunit *test)
{
	static const u32 len[] = { T_MSS, 77 }, head[] = { 77, 77 };
	struct sk_buff *skb, *part, *segs, *next;
	struct page *page;
	struct t_conn c;
	u32 k, n;

	open_conn(test, &c, 0, 64);
	skb = new_run(test, &c, 0, c.seq, 1, T_MSS, T_MSS);
	for (k = ARRAY_SIZE(len); k--; ) {
		part = alloc_skb(head[k], GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, part);
		skb_put_zero(part, head[k]);
		if (len[k] > head[k]) {
			page = alloc_page(GFP_KERNEL | __GFP_ZERO);
			KUNIT_ASSERT_NOT_NULL(test, page);
			skb_add_rx_frag(part, 0, page, 0, len[k] - head[k],
					PAGE_SIZE);
		}
		part->next = skb_shinfo(skb)->frag_list;
		skb_shinfo(skb)->frag_list = part;
		skb->len += part->len;
		skb->data_len += part->len;
		skb->truesize += part->truesize;
	}
	((struct esp_wire *)(skb->data + ETH_HLEN))->len = htons(2 * T_MSS + 77);
	segs = take_apart(skb, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(segs));
	for (n = 0; segs; segs = next, n++) {
		next = segs->next;
		skb_mark_not_on_list(segs);
		KUNIT_EXPECT_EQ(test, segs->len, ETH_HLEN + ESP_HLEN +
				(n == 2 ? 77u : T_MSS));
		KUNIT_EXPECT_EQ(test, csum_fold(skb_checksum(segs, ETH_HLEN,
							     segs->len - ETH_HLEN, 0)),
				0);
		kfree_skb(segs);
	}
	KUNIT_EXPECT_EQ(test, n, 3u);
	kfree_skb(skb);
	close_conn(test, &c);
}

/* A GSO packet that a tunnel has marked with its own type is segmented, too. */
static void offload__in_tunnel(struct kunit *test)
{
	static const u32 type[] = {
		SKB_GSO_UDP_TUNNEL, SKB_GSO_UDP_TUNNEL_CSUM, SKB_GSO_GRE,
		SKB_GSO_GRE_CSUM,
	};
	struct sk_buff *skb, *segs, *next;
	struct t_conn c;
	u32 i, n;

	open_conn(test, &c, 0, 64);
	for (i = 0; i < ARRAY_SIZE(type); i++) {
		skb = new_run(test, &c, 0, c.seq, 5, T_MSS, T_MSS);
		skb_shinfo(skb)->gso_type |= type[i];
		segs = take_apart(skb, 0);
		KUNIT_EXPECT_FALSE_MSG(test, IS_ERR_OR_NULL(segs), "case %d", i);
		for (n = 0; !IS_ERR_OR_NULL(segs); segs = next, n++) {
			next = segs->next;
			kfree_skb(segs);
		}
		KUNIT_EXPECT_EQ(test, n, 5u);
		kfree_skb(skb);
	}
	close_conn(test, &c);
}

static struct kunit_case offload_cases[] = {
	KUNIT_CASE(offload__as_one_by_one),
	KUNIT_CASE(offload__one_frame),
	KUNIT_CASE(offload__part_again),
	KUNIT_CASE(offload__in_order),
	KUNIT_CASE(offload__partly_here),
	KUNIT_CASE(offload__pages_partly_here),
	KUNIT_CASE(offload__random),
	KUNIT_CASE(offload__not_ours),
	KUNIT_CASE(offload__odd_list),
	KUNIT_CASE(offload__list_without_sg),
	KUNIT_CASE(offload__in_tunnel),
	{}
};
