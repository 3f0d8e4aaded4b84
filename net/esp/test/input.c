// SPDX-License-Identifier: GPL-2.0-only
/* Frames that must not be taken. Included by suite.c, after harness.c. */

/* Each kind of malformed frame has its own counter, and no answer. */
static void malformed__counted_and_silent(struct kunit *test)
{
	static const struct {
		const char	*what;
		int		item;
		u8		offset, value;
		u8		len;	/* length of the frame; 0: all of it */
	} bad[] = {
		{ "short header", ESP_MIB_InShort, 0, 0x18, 31 },
		{ "nothing at all", ESP_MIB_InShort, 0, 0x18, 1 },
		{ "header beyond the frame", ESP_MIB_InShort, 0, 0x1f, 50 },
		{ "payload beyond the frame", ESP_MIB_InShort, 28, 0xff, 0 },
		{ "version", ESP_MIB_InVersion, 0, 0x28, 0 },
		{ "version 0", ESP_MIB_InVersion, 0, 0x08, 0 },
		{ "header length", ESP_MIB_InHeaderLength, 0, 0x17, 0 },
		{ "flags", ESP_MIB_InFlags, 1, ESP_SYN | ESP_FIN, 0 },
		{ "no ACK", ESP_MIB_InFlags, 1, ESP_TXS, 0 },
		{ "SYN with payload", ESP_MIB_InFlags, 1, ESP_SYN, 0 },
		{ "source port", ESP_MIB_InPort, 5, 0, 0 },
		{ "destination port", ESP_MIB_InPort, 7, 0, 0 },
		{ "RRQ of 5 bytes", ESP_MIB_InRange, 1, ESP_ACK | ESP_RRQ, 0 },
		{ "option", ESP_MIB_InOption, 0, 0x19, 0 },
		{ "checksum", ESP_MIB_InChecksum, 33, 'x', 0 },
	};
	struct t_conn c;
	u32 recv_seq;
	int i;

	open_conn(test, &c, 0, 4);
	recv_seq = c.esp->recv_seq;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		unsigned long before = mib(bad[i].item);
		unsigned long in = mib(ESP_MIB_InFrames);
		struct esp_frame f;
		u8 data[64] = {};

		conn_frame(&c, &f, ESP_ACK | ESP_TXS | ESP_TXF, c.seq, 5);
		f.sport = htons(200);	/* changing one byte makes it 0 */
		f.dport = htons(201);
		esp_wire_build(data, &f);
		data[32] = 99;		/* an option of length 1 */
		data[33] = 1;
		*(__sum16 *)(data + 30) = csum_fold(csum_partial(data, 37, 0));
		data[bad[i].offset] = bad[i].value;
		feed_raw(test, c.mac, data, bad[i].len ? bad[i].len : 60);
		KUNIT_EXPECT_EQ_MSG(test, mib(bad[i].item), before + 1, "%s",
				    bad[i].what);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InFrames), in + 1);
	}
	silence(test);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, recv_seq);
	close_conn(test, &c);
}

/* Frames of the reliable types from or to a group MAC address are refused. */
static void malformed__group_address(struct kunit *test)
{
	unsigned long bad = mib(ESP_MIB_InGroupSource);
	struct esp_frame f;
	struct sk_buff *skb;
	struct t_conn c;

	start_listener(test);
	new_conn(&c, 0);
	c.mac[0] |= 1;
	feed_syn(test, &c);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InGroupSource), bad + 1);
	/* broadcast, of this version and of another */
	new_conn(&c, 0);
	hello_frame(&c, &f, ESP_SYN);
	f.cookie = 0;
	for (f.version = ESP_VERSION; f.version < ESP_VERSION + 2; f.version++) {
		skb = new_frame(c.mac, 60);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		eth_broadcast_addr(((struct ethhdr *)skb->data)->h_dest);
		esp_wire_build(skb_put_zero(skb, 60), &f);
		((struct esp_wire *)(skb->data + ETH_HLEN))->csum =
			(__force u16)csum_fold(csum_partial(skb->data + ETH_HLEN,
							    esp_wire_hlen(&f), 0));
		receive(skb);
	}
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InGroupSource), bad + 3);
	silence(test);
}

/* A SYN of another version gets one RST. Other frames of that version get no answer. */
static void version__one_reset(struct kunit *test)
{
	unsigned long bad = mib(ESP_MIB_InVersion);
	struct esp_frame f;
	struct t_conn c;

	start_listener(test);
	new_conn(&c, 0);
	hello_frame(&c, &f, ESP_SYN);
	f.cookie = 0;
	f.version = 2;
	feed_frame(test, c.mac, &f, NULL);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, (int)f.version, ESP_VERSION);
	KUNIT_EXPECT_EQ(test, f.ack_seq, esp_isn(c.cookie) + 1);
	conn_frame(&c, &f, ESP_ACK, 1, 0);
	f.version = 2;
	feed_frame(test, c.mac, &f, NULL);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InVersion), bad + 2);
}

/* RSTs to strangers are rate-limited. */
static void version__resets_are_limited(struct kunit *test)
{
	unsigned long resets = mib(ESP_MIB_OutResets);
	u64 start = esp_now();
	struct esp_frame f;
	struct t_conn c;
	u64 slots;
	int i;

	new_conn(&c, 0);
	for (i = 0; i < 1000; i++) {
		hello_frame(&c, &f, ESP_SYN);
		f.version = 2;
		feed_frame(test, c.mac, &f, NULL);
	}
	/* 100 in each 10 ms */
	slots = div_u64(esp_now() - start, 10000) + 2;
	KUNIT_EXPECT_LE(test, mib(ESP_MIB_OutResets) - resets,
			(unsigned long)min_t(u64, 100 * slots, 1000));
	KUNIT_EXPECT_GE(test, mib(ESP_MIB_OutResets) - resets, 100ul);
}

/* Frames from a device that isn't enabled are dropped. */
static void device__not_enabled(struct kunit *test)
{
	unsigned long dropped = mib(ESP_MIB_InDevDisabled);
	struct t_conn c;

	start_listener(test);
	WRITE_ONCE(fx.ed->enabled, 0);
	new_conn(&c, 0);
	feed_syn(test, &c);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InDevDisabled), dropped + 1);
	silence(test);
	WRITE_ONCE(fx.ed->enabled, 1);
}

/* Frames for a socket that a process owns wait in its backlog, as many as it has memory for. */
static void backlog__is_bounded(struct kunit *test)
{
	unsigned long dropped = mib(ESP_MIB_InBacklogDrop);
	struct t_conn c;
	struct sock *sk;
	u32 i;

	open_conn(test, &c, 0, 4);
	sk = c.sock->sk;
	lock_sock(sk);
	sk->sk_rcvbuf = 2304;
	sk->sk_sndbuf = 4608;
	for (i = 0; i < 1000 && mib(ESP_MIB_InBacklogDrop) == dropped; i++)
		feed(test, &c, 0, c.seq - 1, T_MSS);	/* a duplicate */
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InBacklogDrop), dropped + 1);
	KUNIT_EXPECT_GT(test, sk->sk_backlog.len, 65536);
	KUNIT_EXPECT_LE(test, sk->sk_backlog.len, 65536 + 2 * 2304 + 4608 + 8192);
	dropped = mib(ESP_MIB_InDuplicate);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InDuplicate), dropped + i - 1);
	KUNIT_EXPECT_EQ(test, sk->sk_backlog.len, 0);
	close_conn(test, &c);
}

/* Frames for other hosts, and the host's own, come to all packet handlers. */
static void input__not_for_us(struct kunit *test)
{
	unsigned long in = mib(ESP_MIB_InFrames);
	static const u8 types[] = { PACKET_OTHERHOST, PACKET_LOOPBACK };
	struct sk_buff *skb;
	int i;

	for (i = 0; i < 2; i++) {
		skb = new_frame(fx.dev->dev_addr, 60);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		skb_put_zero(skb, 60);
		skb->protocol = eth_type_trans(skb, fx.dev);
		skb_reset_network_header(skb);
		skb->pkt_type = types[i];
		local_bh_disable();
		rcu_read_lock();
		KUNIT_EXPECT_EQ(test, esp_rcv(skb, fx.dev, NULL, fx.dev), NET_RX_DROP);
		rcu_read_unlock();
		local_bh_enable();
	}
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InFrames), in);
}

static struct kunit_case input_cases[] = {
	KUNIT_CASE(malformed__counted_and_silent),
	KUNIT_CASE(malformed__group_address),
	KUNIT_CASE(version__one_reset),
	KUNIT_CASE(version__resets_are_limited),
	KUNIT_CASE(device__not_enabled),
	KUNIT_CASE(backlog__is_bounded),
	KUNIT_CASE(input__not_for_us),
	{}
};
