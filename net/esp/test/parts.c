// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets that are too large for a path whose MTU has shrunk: rule 9. Included by suite.c, after
 * crc.c.
 */

#define T_LARGE	(5 * PAGE_SIZE + 500)	/* a packet that comes in parts, bytes */

/* Byte @at of packet @seq. */
static u8 part_byte(u32 seq, u32 at)
{
	return seq * 7 + at / 3;
}

/* Feed the bytes @at to before @at + @len of packet @seq, which has @size bytes. */
static void feed_part(struct kunit *test, struct t_conn *c, u8 flags, u32 seq, u32 at, u32 len,
		      u32 size)
{
	u8 *buf = kmalloc(len, GFP_KERNEL);
	struct esp_frame f;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < len; i++)
		buf[i] = part_byte(seq, at + i);
	conn_frame(c, &f, flags | ESP_ACK, seq, len);
	f.grant = c->grant;
	f.opts |= ESP_HAS(ESP_OPT_PART);
	f.part_at = at;
	f.part_size = size;
	feed_frame(test, c->mac, &f, buf);
	kfree(buf);
}

/* Expect to read packet @seq. */
static void expect_large(struct kunit *test, struct t_conn *c, u32 seq)
{
	u8 *buf = kunit_kzalloc(test, T_LARGE + 1, GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_EQ(test, recv_bytes(c, buf, T_LARGE + 1), (int)T_LARGE);
	for (i = 0; i < T_LARGE && buf[i] == part_byte(seq, i); i++)
		;
	KUNIT_EXPECT_EQ(test, i, (u32)T_LARGE);
}

/* A packet in parts is as good as a whole one: it is read once, and its flags act once. */
static void parts__put_together(struct kunit *test)
{
	unsigned long used = mib(ESP_MIB_InParts);
	struct t_conn c;
	u32 at, round;
	u8 byte;

	for (round = 0; round < 2; round++) {
		fx.crc = round;
		fx.paged = !round;
		open_conn(test, &c, round, 4);
		for (at = 0; at < T_LARGE; at += 1000) {
			KUNIT_EXPECT_EQ(test, recv_bytes(&c, &byte, 1), -EAGAIN);
			KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);
			KUNIT_EXPECT_FALSE(test, c.esp->grant.recv_announced);
			feed_part(test, &c, ESP_TXS, c.seq, at, min(1000u, (u32)T_LARGE - at),
				  T_LARGE);
		}
		KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 1);
		KUNIT_EXPECT_EQ(test, c.esp->stats.rx_packets, 1ull);
		KUNIT_EXPECT_EQ(test, c.esp->stats.rx_bytes, (u64)T_LARGE);
		KUNIT_EXPECT_TRUE(test, c.esp->grant.recv_announced);
		KUNIT_EXPECT_NULL(test, c.esp->part);
		feed(test, &c, ESP_TXF, c.seq + 1, 0);
		expect_large(test, &c, c.seq);
		KUNIT_EXPECT_EQ(test, atomic_read(&c.sock->sk->sk_rmem_alloc), 0);
		close_conn(test, &c);
	}
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InParts), used + 2 * DIV_ROUND_UP(T_LARGE, 1000));
}

/* The peer may cut a packet anew before it repeats it. A part after a gap is dropped. */
static void parts__cut_anew(struct kunit *test)
{
	unsigned long dropped = mib(ESP_MIB_InPartDrop);
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	feed_part(test, &c, ESP_TXS, c.seq, 700, 700, T_LARGE);		/* not the first one */
	KUNIT_EXPECT_NULL(test, c.esp->part);
	feed_part(test, &c, ESP_TXS, c.seq, 0, 700, T_LARGE);
	feed_part(test, &c, ESP_TXS, c.seq, 0, 700, T_LARGE);
	feed_part(test, &c, ESP_TXS, c.seq, 1400, 700, T_LARGE);	/* a gap */
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InPartDrop), dropped + 2);
	feed_part(test, &c, ESP_TXS, c.seq, 600, 5000, T_LARGE);	/* 100 bytes are here */
	feed_part(test, &c, ESP_TXS, c.seq, 100, 300, T_LARGE);
	feed_part(test, &c, ESP_TXS, c.seq, 5600, 700, T_LARGE - 1);	/* another size */
	feed_part(test, &c, ESP_TXS, c.seq, 0, 1, 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InPartDrop), dropped + 4);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);
	feed_part(test, &c, ESP_TXS, c.seq, 5600, T_LARGE - 5600, T_LARGE);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 1);
	expect_large(test, &c, c.seq);
	close_conn(test, &c);
}

/* A packet that comes as a whole replaces its parts. Parts of later packets are asked for. */
static void parts__of_other_packets(struct kunit *test)
{
	unsigned long asked = mib(ESP_MIB_OutRRQ), dup = mib(ESP_MIB_InDuplicate);
	unsigned long beyond = mib(ESP_MIB_InBeyondWindow);
	struct t_conn c;

	open_conn(test, &c, 0, 8);
	feed_part(test, &c, 0, c.seq + 1, 0, 700, T_LARGE);
	KUNIT_EXPECT_NULL(test, c.esp->part);
	EVENTUALLY(test, mib(ESP_MIB_OutRRQ) > asked);
	feed_part(test, &c, ESP_TXS, c.seq, 0, 700, 1000);
	KUNIT_EXPECT_NOT_NULL(test, c.esp->part);
	KUNIT_EXPECT_GE(test, atomic_read(&c.sock->sk->sk_rmem_alloc), 1000);
	feed(test, &c, ESP_TXS, c.seq, 1000);
	KUNIT_EXPECT_NULL(test, c.esp->part);
	KUNIT_EXPECT_LE(test, atomic_read(&c.sock->sk->sk_rmem_alloc), 4096);
	feed_part(test, &c, ESP_TXS, c.seq, 0, 700, 1000);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InDuplicate), dup + 1);
	feed_part(test, &c, 0, c.seq + 1 + ESP_SEQ_WINDOW, 0, 700, 1000);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InBeyondWindow), beyond + 1);
	KUNIT_EXPECT_NULL(test, c.esp->part);
	expect_data(test, &c, c.seq, 1, 1000);
	/* a packet that is not complete goes with its connection */
	feed_part(test, &c, 0, c.seq + 1, 0, 700, T_LARGE);
	KUNIT_EXPECT_NOT_NULL(test, c.esp->part);
	close_conn(test, &c);
}

/* A part that comes after close() brings an RST, because no reader is left. */
static void parts__after_close(struct kunit *test)
{
	unsigned long aborts = mib(ESP_MIB_AbortOnData);
	struct t_conn c;
	u32 fin;

	open_conn(test, &c, 0, 4);
	sock_hold(&c.esp->sk);
	fin = send_our_fin(test, &c);
	sock_release(c.sock);
	c.ack = fin + 1;
	feed_part(test, &c, ESP_TXS, c.seq, 0, 700, T_LARGE);
	resets(test, &c, fin + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_AbortOnData), aborts + 1);
	KUNIT_EXPECT_NULL(test, c.esp->part);
	sock_put(&c.esp->sk);
	silence(test);
}

/* close() sends an RST if a packet has come in part. */
static void parts__closed(struct kunit *test)
{
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	feed_part(test, &c, ESP_TXS, c.seq, 0, 700, T_LARGE);
	KUNIT_EXPECT_NOT_NULL(test, c.esp->part);
	skb_queue_purge(&fx.out);
	sock_release(c.sock);
	resets(test, &c, c.ack);
	silence(test);
}

/* However small the parts are, they take no more memory than the packet, and it is charged. */
static void parts__memory(struct kunit *test)
{
	unsigned long dropped = mib(ESP_MIB_InMemDrop);
	struct t_conn c;
	struct sock *sk;
	u32 at;

	open_conn(test, &c, 0, 4);
	sk = c.sock->sk;
	for (at = 0; at < 500; at++)
		feed_part(test, &c, ESP_TXS, c.seq, at, 1, T_LARGE);
	KUNIT_EXPECT_GE(test, atomic_read(&sk->sk_rmem_alloc), (int)T_LARGE);
	KUNIT_EXPECT_LE(test, atomic_read(&sk->sk_rmem_alloc), (int)(2 * T_LARGE));
	feed(test, &c, ESP_TXS, c.seq, 1000);
	feed(test, &c, 0, c.seq + 1, 1000);
	sk->sk_rcvbuf = 1;
	c.esp->burst_told = 0;
	WRITE_ONCE(c.esp->grant.edge, c.esp->recv_seq);
	feed_part(test, &c, 0, c.seq + 2, 0, 700, T_LARGE);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InMemDrop), dropped + 1);
	KUNIT_EXPECT_NULL(test, c.esp->part);
	KUNIT_EXPECT_TRUE(test, c.esp->grant.rcv_mem_pressure);
	close_conn(test, &c);
}

/* Fill @buf, whose bytes differ from packet to packet and within one. */
static u8 *mtu_pattern(struct kunit *test, u32 len)
{
	u8 *buf = kunit_kzalloc(test, len, GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < len; i++)
		buf[i] = part_byte(i / 251, i);
	return buf;
}

/* Feed an ACK that tells the peer's largest payload, and a grant. */
static void feed_mss(struct kunit *test, struct t_conn *c, u16 mss, u16 grant)
{
	struct esp_frame f;

	conn_frame(c, &f, ESP_ACK, c->seq, 0);
	f.opts |= ESP_HAS(ESP_OPT_MSS);
	f.mss = mss;
	f.grant = grant;
	feed_frame(test, c->mac, &f, NULL);
}

/* The stream as the peer has received it, up to the first missing byte. */
struct t_stream {
	u8	*buf;
	u32	len;		/* bytes that are here */
	u32	part;		/* of these: bytes of packet ack */
	u32	parts, starts, ends, fins;
};

/* Take the socket's frames, put packets together, and expect none larger than @most bytes. */
static void take_stream(struct kunit *test, struct t_conn *c, struct t_stream *s, u32 most)
{
	struct sk_buff *skb;
	struct esp_frame f;

	while ((skb = next_skb(3))) {
		const u8 *data;
		u32 at = 0;

		read_frame(test, skb, &f, NULL);
		data = skb->data + ETH_HLEN + f.hlen;
		c->ts = f.ts_val;
		if (f.len && !(f.flags & ESP_RRQ) && f.pkt_seq == c->ack) {
			KUNIT_EXPECT_LE(test, f.hlen + f.len, ESP_HLEN + most);
			if (f.opts & ESP_HAS(ESP_OPT_PART)) {
				s->parts++;
				at = f.part_at;
			}
			if (at == s->part) {
				memcpy(s->buf + s->len, data, f.len);
				s->len += f.len;
				s->part += f.len;
			}
			if (!(f.opts & ESP_HAS(ESP_OPT_PART)) || s->part == f.part_size) {
				s->part = 0;
				s->starts += !!(f.flags & ESP_TXS);
				s->ends += !!(f.flags & ESP_TXF);
				c->ack++;
			}
		}
		if ((f.flags & ESP_FIN) && f.pkt_seq == c->ack) {
			s->fins++;
			c->ack++;
		}
		kfree_skb(skb);
	}
}

/* Drop the frames that the socket has sent. */
static void lose_frames(void)
{
	struct sk_buff *skb;

	while ((skb = next_skb(3)))
		kfree_skb(skb);
}

/* Rule 9: what was not sent is cut anew; what was sent is repeated in parts. */
static void mtu__goes_on(struct kunit *test)
{
	u32 n = 12 * T_MSS + 100, crc, gso, i;
	u8 *buf = mtu_pattern(test, n);
	struct t_stream s = { .buf = kunit_kzalloc(test, 2 * n, GFP_KERNEL) };
	struct t_conn c;
	u32 sent;

	KUNIT_ASSERT_NOT_NULL(test, s.buf);
	fx.parts = true;
	for (i = 0; i < 4; i++) {
		crc = i & 1;
		gso = i & 2;
		fx.crc = crc;
		WRITE_ONCE(fx.dev->gso_max_segs, gso ? 4 : 1);
		s = (struct t_stream){ .buf = s.buf };
		conf()->rto_min_us = T_NEVER_US;
		conf()->ack_delay_us = T_NEVER_US;
		open_conn(test, &c, i, 3);
		KUNIT_EXPECT_TRUE(test, c.esp->peer_parts);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, n, 0), (int)n);
		sent = c.esp->snd.send_next;
		KUNIT_EXPECT_EQ(test, sent, c.ack + 3);
		lose_frames();
		if (gso)
			KUNIT_EXPECT_EQ(test, kernel_sock_shutdown(c.sock, SHUT_WR), 0);
		feed_mss(test, &c, 300, 2);
		conf()->rto_min_us = 5000;	/* no packet is retransmitted before */
		conf()->ack_delay_us = 1000;
		esp_timer_set(c.esp, ESP_T_SEND, esp_now());
		KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, sent);
		KUNIT_EXPECT_GE(test, c.esp->snd.send_seq - sent, (n - 3 * T_MSS) / 300);
		for (; s.len < n || s.fins < !!gso; feed_ack(test, &c, 8)) {
			u32 before = c.ack, tries = 0;

			while (c.ack == before && tries++ < 2000)
				take_stream(test, &c, &s, 300);
			KUNIT_ASSERT_NE_MSG(test, c.ack, before,
					    "run %u, packet %d, %u bytes of it, %d sent, %d in all",
					    i, c.ack - sent + 3, s.part,
					    c.esp->snd.send_next - sent + 3,
					    c.esp->snd.send_seq - sent + 3);
		}
		KUNIT_EXPECT_EQ(test, memcmp(s.buf, buf, n), 0);
		KUNIT_EXPECT_GE(test, s.parts, 3 * 3u);
		KUNIT_EXPECT_EQ(test, s.starts, 1u);
		KUNIT_EXPECT_EQ(test, s.ends, 1u);
		KUNIT_EXPECT_EQ(test, c.esp->snd.una_seq, c.esp->snd.send_seq);
		KUNIT_EXPECT_TRUE(test, skb_queue_empty(&c.sock->sk->sk_write_queue));
		close_conn(test, &c);
	}
}

/* A short packet after large ones is retransmitted as a whole, and its buffer stays as it is. */
static void mtu__short_after_large(struct kunit *test)
{
	u32 n = 2 * T_MSS + 63, tries = 0;
	u8 *buf = mtu_pattern(test, n);
	struct t_stream s = { .buf = kunit_kzalloc(test, 2 * n, GFP_KERNEL) };
	struct t_conn c;

	KUNIT_ASSERT_NOT_NULL(test, s.buf);
	fx.parts = true;
	WRITE_ONCE(fx.dev->gso_max_segs, 4);
	conf()->rto_min_us = T_NEVER_US;
	conf()->ack_delay_us = T_NEVER_US;
	open_conn(test, &c, 0, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, n - 10, 0), (int)n - 10);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf + n - 10, 10, 0), 10);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, c.ack + 4);
	lose_frames();
	feed_mss(test, &c, 300, 4);
	conf()->rto_min_us = 5000;
	esp_timer_set(c.esp, ESP_T_SEND, esp_now());
	while (s.len < n && tries++ < 2000) {
		u32 before = c.ack;

		take_stream(test, &c, &s, 300);
		if (c.ack != before)
			feed_ack(test, &c, 4);
	}
	KUNIT_EXPECT_EQ(test, s.len, n);
	KUNIT_EXPECT_EQ(test, memcmp(s.buf, buf, n), 0);
	KUNIT_EXPECT_GE(test, s.parts, 2 * (u32)(T_MSS / 300));
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&c.sock->sk->sk_write_queue));
	close_conn(test, &c);
}

/* A small message that waits behind the header in one buffer is cut, too. */
static void mtu__cuts_small(struct kunit *test)
{
	u32 n = 250, tries = 0;
	u8 *buf = mtu_pattern(test, n);
	struct t_stream s = { .buf = kunit_kzalloc(test, 2 * n, GFP_KERNEL) };
	struct t_conn c;

	KUNIT_ASSERT_NOT_NULL(test, s.buf);
	fx.parts = true;
	open_conn(test, &c, 0, 8);
	lock_sock(c.sock->sk);
	esp_timer_set(c.esp, ESP_T_CORK, esp_now() + T_NEVER_US);
	release_sock(c.sock->sk);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, n, MSG_MORE), (int)n);
	KUNIT_EXPECT_EQ(test, skb_headlen(skb_peek(&c.sock->sk->sk_write_queue)), n);
	silence(test);
	feed_mss(test, &c, ESP_MSS_MIN, 8);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_seq - c.ack, DIV_ROUND_UP(n, ESP_MSS_MIN));
	lock_sock(c.sock->sk);
	esp_timer_set(c.esp, ESP_T_CORK, esp_now());
	release_sock(c.sock->sk);
	while (s.len < n && tries++ < 2000) {
		u32 before = c.ack;

		take_stream(test, &c, &s, ESP_MSS_MIN);
		if (c.ack != before)
			feed_ack(test, &c, 8);
	}
	KUNIT_EXPECT_EQ(test, s.len, n);
	KUNIT_EXPECT_EQ(test, memcmp(s.buf, buf, n), 0);
	KUNIT_EXPECT_EQ(test, s.parts, 0u);
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&c.sock->sk->sk_write_queue));
	close_conn(test, &c);
}

/* A peer that doesn't take parts makes the connection end, if a packet is too large. */
static void mtu__without_parts(struct kunit *test)
{
	unsigned long ended = mib(ESP_MIB_AbortOnMTU), resets = mib(ESP_MIB_OutResets);
	u8 *buf = mtu_pattern(test, 8 * T_MSS);
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	KUNIT_EXPECT_FALSE(test, c.esp->peer_parts);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 300, 0), 300);
	lose_frames();
	feed_mss(test, &c, 300, 4);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 8 * T_MSS, 0), 8 * T_MSS);
	lose_frames();
	feed_mss(test, &c, 301, 4);	/* it never grows */
	KUNIT_EXPECT_EQ(test, c.esp->mss, 300u);
	feed_mss(test, &c, 200, 4);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_err, EMSGSIZE);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_AbortOnMTU), ended + 1);
	KUNIT_EXPECT_GE(test, mib(ESP_MIB_OutResets), resets + 1);
	lose_frames();
	sock_release(c.sock);
}

/* The smallest size that a peer may ask for, and no end of such wishes. */
static void mtu__smallest(struct kunit *test)
{
	struct t_conn c;
	int i;

	fx.parts = true;
	open_conn(test, &c, 0, 4);
	for (i = 0; i < 3; i++) {
		feed_mss(test, &c, i ? 0 : 63, 4);
		KUNIT_EXPECT_EQ(test, c.esp->mss, (u32)ESP_MSS_MIN);
		KUNIT_EXPECT_EQ(test, c.esp->peer_mss, (u32)ESP_MSS_MIN);
	}
	silence(test);
	close_conn(test, &c);
}

static void set_mtu(struct kunit *test, int mtu)
{
	int err;

	rtnl_lock();
	err = dev_set_mtu(fx.dev, mtu);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, err, 0);
}

static void expect_mss(struct kunit *test, struct t_conn *c, u8 flags, int mtu)
{
	struct esp_frame f;

	next(test, c, ESP_ACK | flags, &f);
	KUNIT_EXPECT_TRUE(test, f.opts & ESP_HAS(ESP_OPT_MSS));
	KUNIT_EXPECT_EQ(test, f.mss, mtu - ESP_HLEN);
}

/* The peer learns of this end's new MTU at once, or when the device is up. */
static void mtu__is_told(struct kunit *test)
{
	struct t_conn c;
	int err;

	open_conn(test, &c, 0, 4);
	set_mtu(test, 600);
	expect_mss(test, &c, 0, 600);
	KUNIT_EXPECT_EQ(test, c.esp->mss, 600u - ESP_HLEN);
	rtnl_lock();
	dev_close(fx.dev);
	rtnl_unlock();
	set_mtu(test, 700);
	silence(test);
	rtnl_lock();
	err = dev_open(fx.dev, NULL);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, err, 0);
	expect_mss(test, &c, 0, 700);
	silence(test);
	close_conn(test, &c);
}

/* A peer whose packets don't arrive learns it again: it asks, or gets an RRQ again. */
static void mtu__is_told_again(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	usleep_range(1000, 2000);	/* an answer too soon has no option */
	conn_frame(&c, &f, ESP_ACK, c.seq + 1, 0);
	f.opts |= ESP_HAS(ESP_OPT_COOKIE);
	f.peer_cookie = c.cookie;
	feed_frame(test, c.mac, &f, NULL);
	expect_mss(test, &c, 0, fx.dev->mtu);
	next(test, &c, ESP_ACK | ESP_RRQ, &f);
	KUNIT_EXPECT_FALSE(test, f.opts & ESP_HAS(ESP_OPT_MSS));
	conf()->rrq_min_us = 1000;
	feed(test, &c, 0, c.seq + 1, 10);
	esp_timer_set(c.esp, ESP_T_REORDER, esp_now());
	expect_mss(test, &c, ESP_RRQ, fx.dev->mtu);
	close_conn(test, &c);
}

static struct kunit_case parts_cases[] = {
	KUNIT_CASE(parts__put_together),
	KUNIT_CASE(parts__cut_anew),
	KUNIT_CASE(parts__of_other_packets),
	KUNIT_CASE(parts__after_close),
	KUNIT_CASE(parts__closed),
	KUNIT_CASE(parts__memory),
	KUNIT_CASE(mtu__goes_on),
	KUNIT_CASE(mtu__short_after_large),
	KUNIT_CASE(mtu__cuts_small),
	KUNIT_CASE(mtu__without_parts),
	KUNIT_CASE(mtu__smallest),
	KUNIT_CASE(mtu__is_told),
	KUNIT_CASE(mtu__is_told_again),
	{}
};
