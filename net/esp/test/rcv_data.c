// SPDX-License-Identifier: GPL-2.0-only
/* Data that arrives: rules 10, 18, 19. Included by suite.c, after harness.c. */

/* A packet with a wrong cookie is dropped, counted, and not answered. */
static void data__bad_cookie_is_silent(struct kunit *test)
{
	unsigned long bad = mib(ESP_MIB_InCookie);
	struct t_conn c;
	u8 byte;

	open_conn(test, &c, 0, 4);
	c.their_cookie ^= 0x100;
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	c.their_cookie ^= 0x100;
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCookie), bad + 1);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, &byte, 1), -EAGAIN);
	close_conn(test, &c);
}

static void data__in_order(struct kunit *test)
{
	struct t_conn c;
	u32 i;

	open_conn(test, &c, 0, 4);
	for (i = 0; i < 20; i++)
		feed(test, &c, (i ? 0 : ESP_TXS) | (i == 19 ? ESP_TXF : 0),
		     c.seq + i, T_MSS);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 20);
	expect_data(test, &c, c.seq, 20, T_MSS);
	close_conn(test, &c);
}

/* A FIN in order is taken without free memory, because it is not kept. */
static void data__fin_without_room(struct kunit *test)
{
	unsigned long dropped = mib(ESP_MIB_InMemDrop);
	struct t_conn c;
	u32 i, est;

	open_conn(test, &c, 0, 4);
	for (i = 0; i < 3; i++)
		feed(test, &c, i ? i == 2 ? ESP_TXF : 0 : ESP_TXS, c.seq + i, T_MSS);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 3);
	c.sock->sk->sk_rcvbuf = 1;
	c.esp->burst_told = 0;		/* nothing is granted */
	est = c.esp->grant.rcv_est;
	feed(test, &c, ESP_FIN, c.seq + 3, 0);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 4);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_CLOSE_WAIT);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InMemDrop), dropped);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.rcv_mem_pressure);
	KUNIT_EXPECT_EQ(test, c.esp->grant.rcv_est, est);
	expect_data(test, &c, c.seq, 3, T_MSS);
	close_conn(test, &c);
}

/* Packets on the receive queue are coalesced into a buffer, unless their records differ. */
static void data__coalesced(struct kunit *test)
{
	struct t_conn c;
	struct sock *sk;
	u8 buf[250];
	u32 i;

	fx.paged = true;
	open_conn(test, &c, 0, 4);
	sk = c.sock->sk;
	for (i = 0; i < 30; i++)
		feed(test, &c, i ? 0 : ESP_TXS, c.seq + i, 700);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&sk->sk_receive_queue), 2u);
	KUNIT_EXPECT_LE(test, atomic_read(&sk->sk_rmem_alloc), 30 * 700 + 5000);
	KUNIT_EXPECT_EQ(test, c.esp->rcv_bytes, 30 * 700u);
	expect_data(test, &c, c.seq, 30, 700);
	KUNIT_EXPECT_EQ(test, atomic_read(&sk->sk_rmem_alloc), 0);

	for (i = 30; i < 33; i++)
		feed(test, &c, ESP_EOR, c.seq + i, 100);
	feed(test, &c, 0, c.seq + 33, 100);
	KUNIT_EXPECT_EQ(test, c.esp->rcv_records, 3u);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&sk->sk_receive_queue), 4u);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, buf, 250), 250);
	KUNIT_EXPECT_EQ(test, c.esp->rcv_records, 1u);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, buf, 250), 150);
	KUNIT_EXPECT_EQ(test, c.esp->rcv_records, 0u);
	KUNIT_EXPECT_EQ(test, atomic_read(&sk->sk_rmem_alloc), 0);
	close_conn(test, &c);
}

/* Open a connection whose packets have their payload side by side in pages. */
static void open_paged(struct kunit *test, struct t_conn *c, unsigned int order)
{
	fx.paged = true;
	fx.page = alloc_pages(GFP_KERNEL | __GFP_COMP, order);
	KUNIT_ASSERT_NOT_NULL(test, fx.page);
	open_conn(test, c, 0, 4);
}

/* Packets side by side in pages become one fragment, with one reference to the pages. */
static void data__side_by_side(struct kunit *test)
{
	struct sk_buff *skb, *copy;
	struct t_conn c;
	struct sock *sk;
	u32 i;

	open_paged(test, &c, 2);
	sk = c.sock->sk;
	for (i = 0; i < 10; i++)
		feed(test, &c, i ? 0 : ESP_TXS, c.seq + i, 700);
	KUNIT_ASSERT_EQ(test, skb_queue_len(&sk->sk_receive_queue), 1u);
	skb = skb_peek(&sk->sk_receive_queue);
	KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->nr_frags, 1);
	KUNIT_EXPECT_EQ(test, page_count(fx.page), 2);
	KUNIT_EXPECT_EQ(test, skb->data_len, 7000u);
	KUNIT_EXPECT_EQ(test, skb->truesize, (unsigned int)atomic_read(&sk->sk_rmem_alloc));
	KUNIT_EXPECT_GE(test, skb->truesize, 7000u);

	fx.at += 8;		/* a gap in the pages */
	for (i = 10; i < 13; i++)
		feed(test, &c, 0, c.seq + i, 700);
	KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->nr_frags, 2);
	KUNIT_EXPECT_EQ(test, page_count(fx.page), 3);

	/* another reader has a clone of the buffer, which must not change */
	copy = skb_clone(skb, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	feed(test, &c, 0, c.seq + 13, 700);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&sk->sk_receive_queue), 2u);
	KUNIT_EXPECT_EQ(test, skb->data_len, 13 * 700u);
	kfree_skb(copy);
	expect_data(test, &c, c.seq, 14, 700);
	KUNIT_EXPECT_EQ(test, page_count(fx.page), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&sk->sk_rmem_alloc), 0);
	close_conn(test, &c);
	put_page(fx.page);
}

/* Make @n packets of 700 bytes, chained as by GRO; @bare: the first buffer has a header only. */
static struct sk_buff *chained(struct kunit *test, struct t_conn *c, u8 flags, u32 n, bool bare)
{
	struct sk_buff *skb, *p, **at;
	struct esp_frame f;
	u8 *data;
	u32 i;

	conn_frame(c, &f, ESP_ACK | flags, c->seq, n * 700);
	skb = new_frame(c->mac, ESP_HLEN + 700);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	data = skb_put_zero(skb, ESP_HLEN);
	esp_wire_build(data, &f);
	if (!bare) {
		memset(skb_put(skb, 700), c->seq, 700);
		if (fx.paged)
			page_payload(test, skb, data + ESP_HLEN, 700);
	}
	at = &skb_shinfo(skb)->frag_list;
	for (i = !bare; i < n; i++) {
		p = alloc_skb(700, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, p);
		memset(skb_put(p, 700), c->seq + i, 700);
		if (fx.paged)
			page_payload(test, p, p->data, 700);
		*at = p;
		at = &p->next;
		skb->len += 700;
		skb->data_len += 700;
		skb->truesize += p->truesize;
	}
	__skb_pull(skb, ETH_HLEN);
	esp_gso_mark(skb, 700, n);
	__skb_push(skb, ETH_HLEN);
	c->seq += n;
	return skb;
}

/* Packets that GRO has chained are coalesced, too, unless another reader shares them. */
static void data__chained(struct kunit *test)
{
	struct sk_buff *skb, *copy;
	struct sk_buff_head *queue;
	struct t_conn c;
	struct sock *sk;
	u32 seq;

	open_paged(test, &c, 4);
	seq = c.seq;
	sk = c.sock->sk;
	queue = &sk->sk_receive_queue;
	receive(chained(test, &c, ESP_TXS, 10, false));
	receive(chained(test, &c, ESP_EOR, 5, false));
	KUNIT_ASSERT_EQ(test, skb_queue_len(queue), 1u);
	skb = skb_peek(queue);
	KUNIT_EXPECT_FALSE(test, skb_has_frag_list(skb));
	KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->nr_frags, 1);
	KUNIT_EXPECT_EQ(test, page_count(fx.page), 2);
	KUNIT_EXPECT_EQ(test, skb->data_len, 15 * 700u);
	KUNIT_EXPECT_EQ(test, skb->truesize, (unsigned int)atomic_read(&sk->sk_rmem_alloc));
	KUNIT_EXPECT_EQ(test, c.esp->rcv_bytes, 15 * 700u);
	KUNIT_EXPECT_EQ(test, c.esp->rcv_records, 1u);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);

	/* the next record: another reader has a clone */
	skb = chained(test, &c, 0, 4, false);
	copy = skb_clone(skb, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	receive(skb);
	KUNIT_EXPECT_EQ(test, skb_queue_len(queue), 2u);
	KUNIT_EXPECT_TRUE(test, skb_has_frag_list(skb_peek_tail(queue)));
	kfree_skb(copy);
	/* another reader has a reference to the list */
	skb = chained(test, &c, 0, 3, false);
	copy = skb_get(skb_shinfo(skb)->frag_list);
	receive(skb);
	KUNIT_EXPECT_TRUE(test, skb_has_frag_list(skb_peek_tail(queue)));
	KUNIT_EXPECT_NOT_NULL(test, copy->next);
	KUNIT_EXPECT_EQ(test, skb_shinfo(copy)->nr_frags, 1);
	kfree_skb(copy);
	/* the first buffer has no packet */
	receive(chained(test, &c, 0, 3, true));
	KUNIT_EXPECT_TRUE(test, skb_has_frag_list(skb_peek_tail(queue)));
	receive(chained(test, &c, 0, 3, false));
	KUNIT_EXPECT_FALSE(test, skb_has_frag_list(skb_peek_tail(queue)));
	/* payload that is not in pages */
	fx.paged = false;
	receive(chained(test, &c, ESP_TXF | ESP_EOR, 6, false));
	KUNIT_EXPECT_TRUE(test, skb_has_frag_list(skb_peek_tail(queue)));
	KUNIT_EXPECT_EQ(test, skb_queue_len(queue), 6u);
	KUNIT_EXPECT_EQ(test, c.esp->rcv_records, 2u);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);

	expect_data(test, &c, seq, 34, 700);
	KUNIT_EXPECT_EQ(test, page_count(fx.page), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&sk->sk_rmem_alloc), 0);
	close_conn(test, &c);
	put_page(fx.page);
}

/*
 * A NIC's CHECKSUM_UNNECESSARY does not count, because the NIC does not know the protocol. A
 * CHECKSUM_COMPLETE sum that is wrong is computed again. A frame with CHECKSUM_PARTIAL comes
 * from this machine, and is taken. The packets have one byte.
 */
static void data__checksum_with_help(struct kunit *test)
{
	static const struct {
		u8 summed;
		bool field_good, csum_good, accepted;
	} v[] = {
		{ CHECKSUM_NONE, true, false, true },
		{ CHECKSUM_NONE, false, false, false },
		{ CHECKSUM_UNNECESSARY, true, false, true },
		{ CHECKSUM_UNNECESSARY, false, false, false },
		{ CHECKSUM_PARTIAL, false, false, true },
		{ CHECKSUM_COMPLETE, true, true, true },
		{ CHECKSUM_COMPLETE, true, false, true },
		{ CHECKSUM_COMPLETE, false, true, false },
	};
	unsigned long bad = mib(ESP_MIB_InChecksum);
	struct esp_frame f;
	struct t_conn c;
	int i;

	open_conn(test, &c, 0, 4);
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		struct sk_buff *skb = new_frame(c.mac, 60);
		struct esp_wire *h;
		__wsum sum;

		KUNIT_ASSERT_NOT_NULL(test, skb);
		conn_frame(&c, &f, ESP_TXS | ESP_TXF | ESP_ACK, c.seq, 1);
		f.grant = 4;
		h = skb_put_zero(skb, 60);
		esp_wire_build((u8 *)h, &f);
		((u8 *)h)[ESP_HLEN] = 0x5a;
		h->csum = (__force u16)csum_fold(csum_partial(h, 60, 0));
		if (!v[i].field_good)
			h->csum ^= 0x55;
		skb->ip_summed = v[i].summed;
		if (v[i].summed == CHECKSUM_PARTIAL) {
			skb->csum_start = skb_headroom(skb) + ETH_HLEN;
			skb->csum_offset = offsetof(struct esp_wire, csum);
		} else {
			sum = csum_partial(h, 60, 0);
			skb->csum = v[i].csum_good ? sum : csum_add(sum, (__force __wsum)1);
		}
		receive(skb);
		if (v[i].accepted)
			c.seq++;
		else
			bad++;
		KUNIT_EXPECT_EQ_MSG(test, c.esp->recv_seq, c.seq, "case %d", i);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InChecksum), bad);
	}
	close_conn(test, &c);
}

/* Rule 19: an RRQ names what is missing, after the reorder delay. */
static void data__gap_brings_rrq(struct kunit *test)
{
	struct esp_wire_range r[ESP_RRQ_RANGES] = {};
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u32 i;

	conf()->rrq_min_us = 2000;
	open_conn(test, &c, 0, 4);
	c.esp->rtt.srtt8 = 8 * 40000;		/* so the delay is 10 ms */
	for (i = 0; i < 8; i++)		/* 1, 4 and 5 are lost */
		if (i != 1 && i != 4 && i != 5)
			feed(test, &c, i ? 0 : ESP_TXS, c.seq + i, 100);
	do {	/* the TXS's grant and ACKs come first */
		skb = next_skb(T_ANSWER_MS);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		read_frame(test, skb, &f, (u8 *)r);
		kfree_skb(skb);
	} while (f.flags == ESP_ACK);
	KUNIT_EXPECT_EQ(test, f.flags, ESP_ACK | ESP_RRQ);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	KUNIT_ASSERT_GE(test, f.len, 8);
	KUNIT_EXPECT_EQ(test, ntohs(r[0].offset), 0);
	KUNIT_EXPECT_EQ(test, ntohs(r[0].count), 1);
	KUNIT_EXPECT_EQ(test, ntohs(r[1].offset), 3);
	KUNIT_EXPECT_EQ(test, ntohs(r[1].count), 2);
	/* the packets that came were kept */
	feed(test, &c, 0, c.seq + 5, 100);
	feed(test, &c, 0, c.seq + 4, 100);
	feed(test, &c, 0, c.seq + 1, 100);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 8);
	expect_data(test, &c, c.seq, 8, 100);
	close_conn(test, &c);
}

/* Data with a number after the FIN's arrives before the FIN: no reader gets it. */
static void data__stored_behind_fin(struct kunit *test)
{
	unsigned long behind = mib(ESP_MIB_InAfterFin);
	struct t_conn c;
	u8 byte;

	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS, c.seq, 10);
	feed(test, &c, 0, c.seq + 2, 10);
	feed(test, &c, 0, c.seq + 3, 10);
	KUNIT_EXPECT_EQ(test, c.esp->grant.ooo_pkts, 2u);
	feed(test, &c, ESP_FIN, c.seq + 1, 0);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InAfterFin), behind + 2);
	KUNIT_EXPECT_EQ(test, c.esp->grant.ooo_pkts, 0u);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 4);
	expect_data(test, &c, c.seq, 1, 10);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, &byte, 1), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&c.sock->sk->sk_rmem_alloc), 0);
	close_conn(test, &c);
}

/* The peer answers no RRQ: at most net.esp.retries are sent until a frame comes. */
static void data__gap_is_given_up(struct kunit *test)
{
	unsigned long rrqs = mib(ESP_MIB_OutRRQ);
	struct t_conn c;

	conf()->rrq_min_us = 1000;
	conf()->retries = 2;
	open_conn(test, &c, 0, 4);
	/* a whole transmission, so that no grant is due */
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	feed(test, &c, 0, c.seq + 2, 10);
	EVENTUALLY(test, mib(ESP_MIB_OutRRQ) == rrqs + 3);
	lock_sock(c.sock->sk);		/* the timer's function has ended */
	KUNIT_EXPECT_EQ(test, c.esp->deadline[ESP_T_REORDER], 0ull);
	release_sock(c.sock->sk);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutRRQ), rrqs + 3);
	feed(test, &c, 0, c.seq + 3, 10);
	EVENTUALLY(test, mib(ESP_MIB_OutRRQ) == rrqs + 6);
	close_conn(test, &c);
}

/* Reordering that lasts less than the delay asks for nothing (rule 19). */
static void data__reordering_is_no_loss(struct kunit *test)
{
	unsigned long rrqs = mib(ESP_MIB_OutRRQ);
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	c.esp->rtt.srtt8 = 8 * 4000000;		/* so the delay is a second */
	feed(test, &c, ESP_TXS, c.seq, 100);
	feed(test, &c, 0, c.seq + 2, 100);
	feed(test, &c, 0, c.seq + 1, 100);
	feed(test, &c, ESP_TXF, c.seq + 3, 100);
	expect_data(test, &c, c.seq, 4, 100);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutRRQ), rrqs);
	KUNIT_EXPECT_EQ(test, c.esp->deadline[ESP_T_REORDER], 0ull);
	close_conn(test, &c);
}

/* Rule 10: a duplicate is answered, and not queued. */
static void data__duplicate_is_acked(struct kunit *test)
{
	unsigned long dups = mib(ESP_MIB_InDuplicate);
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	silence(test);		/* its ACK may ride on the reply */
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InDuplicate), dups + 1);
	expect_data(test, &c, c.seq, 1, 10);
	close_conn(test, &c);
}

/*
 * Rule 10: packets that are left of a transmission get their ACK after half of the time after which
 * the sender takes them for lost.
 */
static void data__ack_before_loss(struct kunit *test)
{
	struct t_conn c;
	int n;

	conf()->ack_delay_us = 1000;
	conf()->rto_min_us = 4000000;	/* more than the round trips */
	open_conn(test, &c, 0, 40);
	feed(test, &c, ESP_TXS, c.seq, 10);
	/* the first packets bring grants, which are ACKs */
	for (n = 1; n < 8 && !READ_ONCE(c.esp->ack_pending); n++)
		feed(test, &c, 0, c.seq + n, 10);
	lock_sock(c.sock->sk);
	KUNIT_EXPECT_EQ(test, c.esp->ack_pending, ESP_ACK_WAITS);
	KUNIT_EXPECT_EQ(test, c.esp->deadline[ESP_T_ACK], c.esp->progress_us + 2000000);
	release_sock(c.sock->sk);
	expect_data(test, &c, c.seq, n, 10);
	close_conn(test, &c);
}

static struct kunit_case receive_cases[] = {
	KUNIT_CASE(data__bad_cookie_is_silent),
	KUNIT_CASE(data__in_order),
	KUNIT_CASE(data__fin_without_room),
	KUNIT_CASE(data__coalesced),
	KUNIT_CASE(data__side_by_side),
	KUNIT_CASE(data__chained),
	KUNIT_CASE(data__checksum_with_help),
	KUNIT_CASE(data__gap_brings_rrq),
	KUNIT_CASE(data__stored_behind_fin),
	KUNIT_CASE(data__gap_is_given_up),
	KUNIT_CASE(data__reordering_is_no_loss),
	KUNIT_CASE(data__duplicate_is_acked),
	KUNIT_CASE(data__ack_before_loss),
	{}
};
