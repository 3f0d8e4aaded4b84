// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CRC (crc.c): which sides agree on one, which frames have it, and which damage it finds
 * that the internet checksum does not find. Included by suite.c, after fuzz.c.
 */

#define T_CRC_LEN	1500	/* length of a frame that is damaged */
#define T_CRC_TRIES	100000	/* frames with a pair of bits flipped */
#define T_CRC_DAMAGED	2000	/* frames with other damage */

static u16 crc_bit(bool crc)
{
	return crc ? ESP_HAS(ESP_OPT_CRC) : 0;
}

/* The kernel's CRC32c and that of the tests agree, and have the known value. */
static void crc__known_value(struct kunit *test)
{
	u32 n;

	KUNIT_EXPECT_EQ(test, slow_crc32c("123456789", 9), 0xe3069283u);
	prandom_seed_state(&fz.rnd, 3);
	prandom_bytes_state(&fz.rnd, fz.buf, T_CRC_LEN);
	for (n = 0; n < T_CRC_LEN; n += 1 + rnd(20))
		KUNIT_EXPECT_EQ(test, slow_crc32c(fz.buf, n), ~crc32c(~0, fz.buf, n));
}

/*
 * A connection has a CRC if one side wants it. An echo that has a CRC where none was agreed on,
 * or none where one was, has no valid cookie.
 */
static void crc__listener(struct kunit *test)
{
	unsigned long invalid, wrong = mib(ESP_MIB_InCRC);
	struct esp_frame f;
	struct t_conn c;
	u32 i, n;

	start_listener(test);
	for (i = 0; i < 4; i++) {
		bool agreed = i;

		fx.crc = i & 1;
		esp_sk(fx.listener->sk)->user_crc = i >> 1;
		new_conn(&c, i);
		syn(test, &c);
		KUNIT_EXPECT_EQ(test, c.crc, agreed);

		invalid = mib(ESP_MIB_CookieInvalid);
		c.crc = !agreed;
		echo_frame(&c, &f, 4);
		feed_frame(test, c.mac, &f, NULL);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieInvalid), invalid + 1);
		next(test, &c, ESP_RST | ESP_ACK, &f);
		c.crc = agreed;

		echo_frame(&c, &f, 4);
		if (agreed) {	/* a wrong CRC, with a right checksum */
			n = esp_wire_hlen(&f);
			esp_wire_build(fz.buf, &f);
			put_crc(test, fz.buf, n);
			fz.buf[ESP_CRC_AT]++;
			((struct esp_wire *)fz.buf)->csum =
				(__force u16)csum_fold(csum_partial(fz.buf, n, 0));
			feed_raw(test, c.mac, fz.buf, n);
			KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), ++wrong);
			silence(test);
		}
		c.grant = 4;
		accept_conn(test, &c, &f);
		KUNIT_EXPECT_EQ(test, c.esp->crc, agreed);
		KUNIT_EXPECT_EQ(test, c.esp->mss, T_MSS - (agreed ? ESP_CRC_ROOM : 0u));
		feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 300);
		expect_data(test, &c, c.seq, 1, 300);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, fz.buf, 900, 0), 900);
		next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
		KUNIT_EXPECT_EQ(test, f.hlen, ESP_HLEN + (agreed ? ESP_CRC_ROOM : 0));
		close_conn(test, &c);
	}
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), wrong);
}

/* The SYN|ACK decides whether a client uses a CRC, even if the client wants it otherwise. */
static void crc__client(struct kunit *test)
{
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u32 i;

	for (i = 0; i < 4; i++) {
		bool wish = i & 1, agreed = i >> 1;

		new_conn(&c, i);
		fuzz_connect(test, &c, wish, &f);
		KUNIT_EXPECT_EQ(test, f.features,
				ESP_FEATURE_PARTS | ESP_FEATURE_LEFT | ESP_FEATURE_LATER |
				(wish ? ESP_FEATURE_CRC32C : 0));
		c.wish = agreed;
		hello_frame(&c, &f, ESP_SYN | ESP_ACK);
		f.grant = 4;
		feed_frame(test, c.mac, &f, NULL);
		KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
		KUNIT_EXPECT_EQ(test, c.esp->crc, agreed);
		c.crc = agreed;
		do {	/* retransmitted SYNs may come first */
			skb = next_skb(T_ANSWER_MS);
			KUNIT_ASSERT_NOT_NULL(test, skb);
			read_frame(test, skb, &f, NULL);
			kfree_skb(skb);
		} while (f.flags == ESP_SYN);
		KUNIT_EXPECT_EQ(test, f.flags, ESP_ACK);
		KUNIT_EXPECT_EQ(test, f.opts & ESP_HAS(ESP_OPT_CRC), crc_bit(agreed));
		KUNIT_EXPECT_EQ(test, !(f.opts & ESP_HAS(ESP_OPT_TYPE)), agreed);
		KUNIT_EXPECT_EQ(test, f.hlen, ESP_HLEN_MAX);
		feed_ack(test, &c, 4);
		KUNIT_EXPECT_EQ(test, c.esp->handshake_unconfirmed, 0);
		KUNIT_EXPECT_EQ(test, c.esp->mss, T_MSS - (agreed ? ESP_CRC_ROOM : 0u));
		skb_queue_purge(&fx.out);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, fz.buf, 900, 0), 900);
		next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
		close_conn(test, &c);
	}
}

/* A connection that fails leaves no CRC at the socket, which may listen next. */
static void crc__not_kept(struct kunit *test)
{
	struct sockaddr_esp a = { .sesp_family = esp_family, .sesp_port = htons(1) };
	struct esp_frame f;
	struct t_conn c;

	new_conn(&c, 0);
	fuzz_connect(test, &c, false, &f);
	c.wish = true;
	hello_frame(&c, &f, ESP_SYN | ESP_ACK);
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c.esp->crc, 1);
	feed(test, &c, ESP_RST, c.seq, 0);
	skb_queue_purge(&fx.out);
	/* connect() tells how the attempt ended */
	KUNIT_EXPECT_EQ(test, kernel_connect(c.sock, (struct sockaddr_unsized *)&a, sizeof(a),
					     O_NONBLOCK), -ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, c.esp->crc, 0);
	KUNIT_EXPECT_EQ(test, kernel_listen(c.sock, 1), 0);
	close_conn(test, &c);
}

/* SYNs that cross: the side that wants a CRC tells the other, and both use it. */
static void crc__crossing(struct kunit *test)
{
	unsigned long wrong;
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u32 i;

	for (i = 0; i < 4; i++) {
		new_conn(&c, i);
		fuzz_connect(test, &c, i & 1, &f);
		c.wish = i >> 1;
		feed_syn(test, &c);
		do {	/* retransmitted SYNs may come first */
			skb = next_skb(T_ANSWER_MS);
			KUNIT_ASSERT_NOT_NULL(test, skb);
			read_frame(test, skb, &f, NULL);
			kfree_skb(skb);
		} while (f.flags == ESP_SYN);
		KUNIT_EXPECT_EQ(test, f.flags, ESP_SYN | ESP_ACK);
		KUNIT_EXPECT_EQ(test, f.features, i ? ESP_FEATURE_CRC32C : 0);
		c.advice = f.grant;

		/* the peer's SYN|ACK was lost, and its echo comes; ours asked for a CRC */
		wrong = mib(ESP_MIB_InCRC);
		if (i & 1) {
			echo_frame(&c, &f, 4);
			feed_frame(test, c.mac, &f, NULL);
			KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_SYN_SENT);
			KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), ++wrong);
		}
		c.crc = i;
		echo_frame(&c, &f, 4);
		feed_frame(test, c.mac, &f, NULL);
		KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
		KUNIT_EXPECT_EQ(test, c.esp->crc, !!i);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), wrong);
		close_conn(test, &c);
	}
}

/* Build a frame in fz.buf as conn_frame() makes it; return its length. */
static u32 crc_frame(struct kunit *test, struct t_conn *c, u8 flags, u16 len)
{
	struct esp_frame f;
	u32 n;

	conn_frame(c, &f, flags, c->seq, len);
	if (!len) {
		f.opts |= ESP_HAS(ESP_OPT_COOKIE);
		f.peer_cookie = c->cookie;
	}
	n = esp_wire_hlen(&f);
	esp_wire_build(fz.buf, &f);
	prandom_bytes_state(&fz.rnd, fz.buf + n, len);
	n += len;
	put_crc(test, fz.buf, n);
	((struct esp_wire *)fz.buf)->csum = (__force u16)csum_fold(csum_partial(fz.buf, n, 0));
	return n;
}

/* Make the checksum right again, as if the frame was damaged before it was summed. */
static void sum_again(u32 n)
{
	struct esp_wire *h = (struct esp_wire *)fz.buf;

	h->csum = 0;
	n = min((h->ver_hlen & 15) * 4u + ntohs(h->len), n);
	h->csum = (__force u16)csum_fold(csum_partial(h, n, 0));
}

/* Frames without a CRC, or with a wrong one, are counted, dropped, and not answered. */
static void crc__required(struct kunit *test)
{
	unsigned long wrong = mib(ESP_MIB_InCRC), resets = mib(ESP_MIB_InResets);
	static const u8 flags[] = { ESP_ACK, ESP_ACK | ESP_TXS, ESP_ACK | ESP_FIN };
	struct esp_frame f;
	struct t_conn c;
	u32 i, n;

	prandom_seed_state(&fz.rnd, 4);
	fx.crc = true;
	open_conn(test, &c, 0, 4);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		c.crc = false;
		conn_frame(&c, &f, flags[i], c.seq, 0);
		feed_frame(test, c.mac, &f, NULL);
		c.crc = true;
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), ++wrong);
		n = crc_frame(test, &c, flags[i], 0);
		fz.buf[ESP_CRC_AT + 3] ^= 0x10;
		sum_again(n);
		feed_raw(test, c.mac, fz.buf, n);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), ++wrong);
	}
	c.crc = false;
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 100);
	c.crc = true;
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), ++wrong);

	/* an ACK that damage has made an RST; a real RST has no CRC */
	n = crc_frame(test, &c, ESP_ACK, 0);
	fz.buf[1] |= ESP_RST;
	sum_again(n);
	feed_raw(test, c.mac, fz.buf, n);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), ++wrong);

	/* a frame that asks for an answer, and that damage has led to a port without a socket */
	n = crc_frame(test, &c, ESP_ACK, 0);
	fz.buf[offsetof(struct esp_wire, dport)] ^= 0x40;
	sum_again(n);
	feed_raw(test, c.mac, fz.buf, n);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), ++wrong);
	silence(test);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InResets), resets);

	/* right frames are taken */
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 100);
	expect_data(test, &c, c.seq, 1, 100);
	close_conn(test, &c);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InResets), resets + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), wrong);
}

/* Payload in pages, of any length. read_frame() checks the CRC of frames that leave. */
static void crc__pages(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;
	u32 n, seq;

	fx.crc = true;
	fx.paged = true;
	open_conn(test, &c, 0, 64);
	for (n = 1, seq = c.seq; n < T_MSS; n += 97, seq++) {
		feed(test, &c, ESP_TXS | ESP_TXF, seq, n);
		expect_data(test, &c, seq, 1, n);
	}
	skb_queue_purge(&fx.out);
	c.ack = c.esp->snd.send_next;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, fz.buf, 3000, 0), 3000);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, f.len, T_MSS - ESP_CRC_ROOM);
	next(test, &c, ESP_ACK, &f);
	next(test, &c, ESP_ACK, &f);
	next(test, &c, ESP_ACK | ESP_TXF, &f);
	/* full packets, and no GSO packet */
	KUNIT_EXPECT_EQ(test, f.len, 3000 - 3 * (T_MSS - ESP_CRC_ROOM));
	close_conn(test, &c);
}

/* Sum of the counters of frames that are dropped because of damage. */
static unsigned long crc_refused(void)
{
	return refused() + mib(ESP_MIB_InCookie) + mib(ESP_MIB_InNoSocket) +
	       mib(ESP_MIB_CookieInvalid);
}

/* Flip each bit of a frame, first with the old checksum, then with a right one. */
static void crc__every_bit(struct kunit *test)
{
	u32 i, n, csum = 8 * offsetof(struct esp_wire, csum);
	unsigned long before, wrong;
	struct t_conn c;

	prandom_seed_state(&fz.rnd, 5);
	fx.crc = true;
	open_conn(test, &c, 0, 4);
	n = crc_frame(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, 100);
	before = refused();
	for (i = 0; i < 8 * n; i++) {
		fz.buf[i / 8] ^= 1 << i % 8;
		feed_raw(test, c.mac, fz.buf, n);
		fz.buf[i / 8] ^= 1 << i % 8;
		KUNIT_EXPECT_EQ_MSG(test, refused(), before + i + 1, "bit %u", i);
	}
	wrong = mib(ESP_MIB_InCRC);
	before = crc_refused();
	for (i = 0; i < 8 * n; i++) {
		if (i >= csum && i < csum + 16)
			continue;
		fz.buf[i / 8] ^= 1 << i % 8;
		sum_again(n);
		feed_raw(test, c.mac, fz.buf, n);
		fz.buf[i / 8] ^= 1 << i % 8;
		KUNIT_EXPECT_EQ_MSG(test, crc_refused(), ++before, "bit %u", i);
	}
	silence(test);
	kunit_info(test, "%lu of %u by the CRC alone\n", mib(ESP_MIB_InCRC) - wrong, 8 * n - 16);
	KUNIT_EXPECT_GE(test, mib(ESP_MIB_InCRC) - wrong, 8ul * 100);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);
	sum_again(n);
	feed_raw(test, c.mac, fz.buf, n);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 1);
	close_conn(test, &c);
}

/* Feed the frame in fz.buf, and expect that it is dropped although its checksum is right. */
static void feed_damaged(struct kunit *test, struct t_conn *c, u32 n)
{
	unsigned long before = crc_refused();

	feed_raw(test, c->mac, fz.buf, n);
	KUNIT_EXPECT_EQ(test, crc_refused(), before + 1);
	KUNIT_EXPECT_EQ(test, c->esp->recv_seq, c->seq);
}

/*
 * Flip two bits of a large frame, for 100,000 pairs, and feed the frames whose damage the
 * checksum misses: one in 32, see flip__two_bits().
 */
static void crc__two_bits(struct kunit *test)
{
	u32 i, n, a, b, missed = 0;
	struct t_conn c;

	prandom_seed_state(&fz.rnd, 6);
	fx.crc = true;
	open_conn(test, &c, 0, 4);
	n = crc_frame(test, &c, ESP_ACK | ESP_TXS | ESP_TXF,
		      T_CRC_LEN - ESP_HLEN - ESP_CRC_ROOM);
	KUNIT_EXPECT_EQ(test, n, T_CRC_LEN);
	for (i = 0; i < T_CRC_TRIES; i++) {
		a = rnd(8 * n);
		do {
			b = rnd(8 * n);
		} while (b == a);
		fz.buf[a / 8] ^= 1 << a % 8;
		fz.buf[b / 8] ^= 1 << b % 8;
		if (!csum_fold(csum_partial(fz.buf, n, 0))) {
			feed_damaged(test, &c, n);
			missed++;
		}
		fz.buf[a / 8] ^= 1 << a % 8;
		fz.buf[b / 8] ^= 1 << b % 8;
	}
	silence(test);
	kunit_info(test, "%u of %u missed by the checksum, none by the CRC\n", missed, i);
	KUNIT_EXPECT_GT(test, missed, T_CRC_TRIES / 40);
	close_conn(test, &c);
}

static int compare_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/*
 * All pairs of bits. The change of the CRC by one bit does not depend on the other bits, so
 * the CRC misses two bits if both change it in the same way.
 */
static void crc__all_pairs(struct kunit *test)
{
	u32 *change = kunit_kcalloc(test, 8 * T_CRC_LEN, sizeof(u32), GFP_KERNEL);
	u32 i, crc, n = 0, same = 0, ones[16] = { 0 }, missed = 0;
	u32 csum = 8 * offsetof(struct esp_wire, csum);

	KUNIT_ASSERT_NOT_NULL(test, change);
	prandom_seed_state(&fz.rnd, 7);
	prandom_bytes_state(&fz.rnd, fz.buf, T_CRC_LEN);
	memset(fz.buf + csum / 8, 0, 2);
	memset(fz.buf + ESP_CRC_AT, 0, 4);
	crc = crc32c(~0, fz.buf, T_CRC_LEN);
	for (i = 0; i < 8 * T_CRC_LEN; i++) {
		ones[i % 16] += fz.buf[i / 8] >> i % 8 & 1;
		if (i >= csum && i < csum + 16)
			continue;	/* the checksum finds damage to itself */
		if (i / 8 >= ESP_CRC_AT && i / 8 < ESP_CRC_AT + 4) {
			change[n++] = 1u << (24 - i / 8 % ESP_CRC_AT * 8 + i % 8);
			continue;
		}
		fz.buf[i / 8] ^= 1 << i % 8;
		change[n++] = crc ^ crc32c(~0, fz.buf, T_CRC_LEN);
		fz.buf[i / 8] ^= 1 << i % 8;
	}
	sort(change, n, sizeof(u32), compare_u32, NULL);
	KUNIT_EXPECT_NE(test, change[0], 0u);
	for (i = 1; i < n; i++)
		same += change[i] == change[i - 1];
	KUNIT_EXPECT_EQ(test, same, 0u);
	/* the checksum misses opposite flips in one column */
	for (i = 0; i < 16; i++)
		missed += ones[i] * (T_CRC_LEN / 2 - ones[i]);
	kunit_info(test, "of %u pairs %u missed by a sum, %u by the CRC\n",
		   8 * T_CRC_LEN * (8 * T_CRC_LEN - 1) / 2, missed, same);
}

/*
 * Damage that the checksum does not notice: two words change places, or parts are damaged
 * before the checksum is computed.
 */
static void crc__other_damage(struct kunit *test)
{
	u32 i, j, n, at, len, from = ESP_HLEN + ESP_CRC_ROOM, exchanged = 0;
	unsigned long wrong = mib(ESP_MIB_InCRC);
	static u8 good[T_CRC_LEN];
	struct t_conn c;

	prandom_seed_state(&fz.rnd, 8);
	fx.crc = true;
	open_conn(test, &c, 0, 4);
	n = crc_frame(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, T_CRC_LEN - from);
	memcpy(good, fz.buf, n);
	for (i = 0; i < T_CRC_DAMAGED; i++) {
		u8 *a = fz.buf + from + 2 * rnd((n - from) / 2);
		u8 *b = fz.buf + from + 2 * rnd((n - from) / 2);

		if (!memcmp(a, b, 2))
			continue;
		swap(a[0], b[0]);
		swap(a[1], b[1]);
		KUNIT_EXPECT_EQ(test, csum_fold(csum_partial(fz.buf, n, 0)), 0);
		feed_damaged(test, &c, n);
		exchanged++;
		memcpy(fz.buf, good, n);
	}
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCRC), wrong + exchanged);
	kunit_info(test, "%u with words exchanged\n", exchanged);
	/* a part is zero, random, or another part */
	for (i = 0, wrong = 0; i < T_CRC_DAMAGED; i++) {
		len = 1 + rnd(one_in(2) ? 4 : 256);
		at = from + rnd(n - from - len);
		if (one_in(3))
			memset(fz.buf + at, 0, len);
		else if (one_in(2))
			memmove(fz.buf + at, fz.buf + from + rnd(n - from - len), len);
		else
			for (j = 0; j < len; j++)
				fz.buf[at + j] ^= rnd(256);
		if (!memcmp(fz.buf, good, n))
			continue;
		sum_again(n);
		feed_damaged(test, &c, n);
		wrong++;
		memcpy(fz.buf, good, n);
	}
	kunit_info(test, "%lu with parts damaged\n", wrong);
	silence(test);
	feed_raw(test, c.mac, fz.buf, n);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 1);
	close_conn(test, &c);
}

static struct kunit_case crc_cases[] = {
	KUNIT_CASE(crc__known_value),
	KUNIT_CASE(crc__listener),
	KUNIT_CASE(crc__client),
	KUNIT_CASE(crc__not_kept),
	KUNIT_CASE(crc__crossing),
	KUNIT_CASE(crc__required),
	KUNIT_CASE(crc__pages),
	KUNIT_CASE(crc__every_bit),
	KUNIT_CASE(crc__two_bits),
	KUNIT_CASE(crc__all_pairs),
	KUNIT_CASE(crc__other_damage),
	{}
};
