// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames from a network card, and the GSO packets into which GRO coalesces them: offload.c.
 * Included by suite.c, after offload.c.
 */

static int no_poll(struct napi_struct *napi, int budget)
{
	return 0;
}

/* Begin a poll: the frames that the test hands over until end_poll() belong to it. */
static struct napi_struct *begin_poll(struct kunit *test)
{
	struct napi_struct *napi = kunit_kzalloc(test, sizeof(*napi), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, napi);
	netif_napi_add(fx.dev, napi, no_poll);
	napi_enable(napi);
	local_bh_disable();
	set_bit(NAPI_STATE_SCHED, &napi->state);
	return napi;
}

static void end_poll(struct napi_struct *napi)
{
	napi_complete_done(napi, 1);
	local_bh_enable();
	napi_disable(napi);
	netif_napi_del(napi);
}

/* Make a frame, with payload as feed() makes it. */
static struct sk_buff *card_frame(struct kunit *test, struct t_conn *c, struct esp_frame *f)
{
	unsigned int hlen = esp_wire_hlen(f), n = hlen + f->len;
	struct sk_buff *skb = new_frame(c->mac, n);
	u8 *data;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	data = skb_put_zero(skb, max(n, 46u));
	esp_wire_build(data, f);
	memset(data + hlen, f->pkt_seq, f->len);
	((struct esp_wire *)data)->csum =
		(__force u16)csum_fold(csum_partial(data, n, 0));
	return skb;
}

static void gro_receive(struct napi_struct *napi, struct sk_buff *skb)
{
	skb->protocol = eth_type_trans(skb, fx.dev);
	napi_gro_receive(napi, skb);
}

/* Hand over a frame as feed() makes it, or, if not @good, one with a wrong byte. */
static void gro_feed(struct kunit *test, struct napi_struct *napi,
		     struct t_conn *c, u8 flags, u32 seq, u16 len, bool good)
{
	struct esp_frame f;
	struct sk_buff *skb;

	conn_frame(c, &f, flags | ESP_ACK, seq, len);
	f.grant = c->grant;
	skb = card_frame(test, c, &f);
	skb->data[ETH_HLEN + ESP_HLEN] ^= !good;
	gro_receive(napi, skb);
}

static void gro__coalesced(struct kunit *test)
{
	unsigned long frames = mib(ESP_MIB_InFrames);
	unsigned long bad = mib(ESP_MIB_InChecksum);
	struct napi_struct *napi;
	struct t_conn c, d;
	u32 i;

	open_conn(test, &c, 0, 64);
	open_conn(test, &d, 1, 64);
	frames = mib(ESP_MIB_InFrames);
	napi = begin_poll(test);
	for (i = 0; i < 10; i++) {	/* frames of two connections, in turn */
		gro_feed(test, napi, &c, i ? 0 : ESP_TXS, c.seq + i, T_MSS, true);
		gro_feed(test, napi, &d, i ? 0 : ESP_TXS, d.seq + i, T_MSS, true);
	}
	/* a shorter packet ends a GSO packet, and so does the end of a transmission */
	gro_feed(test, napi, &c, 0, c.seq + 10, T_MSS - 1, true);
	for (i = 11; i < 16; i++)
		gro_feed(test, napi, &c, i == 15 ? ESP_TXF : 0, c.seq + i, T_MSS, true);
	/* a gap, a bad frame and an empty frame end it, too */
	for (i = 11; i < 20; i++)
		gro_feed(test, napi, &d, i == 19 ? ESP_TXF : 0, d.seq + i,
			 T_MSS, i != 15);
	gro_feed(test, napi, &d, 0, d.seq + 20, 0, true);
	end_poll(napi);

	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InFrames), frames + 16 + 20);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InChecksum), bad + 1);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 16);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&c.sock->sk->sk_receive_queue), 2u);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&d.sock->sk->sk_receive_queue), 1u);
	KUNIT_EXPECT_EQ(test, d.esp->recv_seq, d.seq + 10);
	KUNIT_EXPECT_EQ(test, d.esp->grant.ooo_pkts, 8u);
	feed(test, &d, 0, d.seq + 10, T_MSS);
	feed(test, &d, 0, d.seq + 15, T_MSS);
	expect_data(test, &d, d.seq, 20, T_MSS);
	close_conn(test, &d);
	close_conn(test, &c);
}

/* Frames that GRO hands up, caught as a bridge does: they reach no socket. */
static struct sk_buff_head came;

static rx_handler_result_t catch_frame(struct sk_buff **skb)
{
	skb_queue_tail(&came, *skb);
	return RX_HANDLER_CONSUMED;
}

static void catch_frames(struct kunit *test, bool on)
{
	int err = 0;

	skb_queue_head_init(&came);
	rtnl_lock();
	if (on)
		err = netdev_rx_handler_register(fx.dev, catch_frame, NULL);
	else
		netdev_rx_handler_unregister(fx.dev);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, err, 0);
}

static struct sk_buff *next_caught(struct kunit *test)
{
	struct sk_buff *skb = skb_dequeue(&came);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_push(skb, skb->data - skb_mac_header(skb));
	return skb;
}

/*
 * Expect that @skb is the frame @fed, with the fields of the other direction from @last, the
 * last frame of the same GSO packet. Frees @skb.
 */
static void expect_fed(struct kunit *test, struct sk_buff *skb, struct sk_buff *fed,
		       const struct sk_buff *last, int nr)
{
	const struct esp_wire *l = (struct esp_wire *)(last->data + ETH_HLEN);
	struct esp_wire *want = (struct esp_wire *)(fed->data + ETH_HLEN);
	unsigned int n = (want->ver_hlen & 15) * 4 + ntohs(want->len);
	const struct esp_wire *h;

	if (skb->ip_summed == CHECKSUM_PARTIAL)
		KUNIT_EXPECT_EQ(test, skb_checksum_help(skb), 0);
	KUNIT_ASSERT_EQ(test, skb_linearize(skb), 0);
	h = (struct esp_wire *)(skb->data + ETH_HLEN);
	want->grant = l->grant;
	want->ack_seq = l->ack_seq;
	want->ts_val = l->ts_val;
	want->ts_ecr = l->ts_ecr;
	want->csum = 0;
	want->csum = (__force u16)csum_fold(csum_partial(want, n, 0));
	KUNIT_EXPECT_EQ_MSG(test, h->flags, want->flags, "frame %d", nr);
	KUNIT_EXPECT_EQ_MSG(test, ntohl(h->pkt_seq), ntohl(want->pkt_seq), "frame %d", nr);
	KUNIT_EXPECT_EQ_MSG(test, ntohs(h->len), ntohs(want->len), "frame %d", nr);
	KUNIT_EXPECT_EQ_MSG(test, ntohl(h->ack_seq), ntohl(want->ack_seq), "frame %d", nr);
	KUNIT_EXPECT_EQ_MSG(test, ntohs(h->grant), ntohs(want->grant), "frame %d", nr);
	KUNIT_EXPECT_EQ_MSG(test, ntohl(h->ts_val), ntohl(want->ts_val), "frame %d", nr);
	KUNIT_EXPECT_EQ_MSG(test, ntohl(h->ts_ecr), ntohl(want->ts_ecr), "frame %d", nr);
	KUNIT_EXPECT_EQ_MSG(test, skb->len, fed->len, "frame %d", nr);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(skb->data, fed->data, ETH_HLEN + n), 0, "frame %d", nr);
	kfree_skb(skb);
}

/* Frames that are coalesced and segmented again are the same, in the same order. */
static void gro__coalesced_and_apart(struct kunit *test)
{
	static const struct {
		u8 seq, flags;
		u16 len;
		bool first;	/* the first frame of a GSO packet, or alone */
		bool older;	/* ts_val is older than that of the frame before */
		u8 opts;
	} v[] = {
		{ 0, ESP_TXS, T_MSS, true },
		{ 1, 0, T_MSS },
		{ 2, ESP_TXF, T_MSS },
		{ 3, ESP_TXS, T_MSS, true },
		{ 4, 0, T_MSS - 1 },
		{ 5, 0, T_MSS, true },
		{ 6, 0, T_MSS },
		{ 7, ESP_EOR, T_MSS },
		{ 8, 0, T_MSS, true },
		{ 9, ESP_EOR | ESP_TXF, ESP_MSS_MIN },
		{ 10, ESP_TXF, T_MSS, true },
		{ 11, ESP_TXS | ESP_TXF | ESP_EOR, T_MSS, true },
		{ 12, ESP_TXS, T_MSS, true },
		{ 13, ESP_TXS, T_MSS, true },
		{ 14, 0, T_MSS },
		{ 16, 0, T_MSS, true },		/* a gap */
		{ 15, 0, T_MSS, true },		/* late */
		{ 16, 0, T_MSS },
		{ 16, 0, T_MSS, true },		/* twice */
		{ 17, 0, T_MSS },
		{ 18, 0, T_MSS + 1, true },	/* longer */
		{ 19, 0, T_MSS },
		{ 20, 0, 0, true },		/* no packet */
		{ 20, 0, T_MSS, true },
		{ 21, 0, T_MSS, true, .older = true },
		{ 22, 0, T_MSS },
		{ 23, 0, T_MSS, true, .opts = ESP_HAS(ESP_OPT_ADVICE) },
		{ 24, 0, T_MSS, true },
		{ 25, 0, ESP_MSS_MIN - 1, true },
		{ 26, 0, T_MSS, true },
		{ 27, 0, T_MSS },
		{ 28, ESP_RRQ, 8, true },
		{ 28, ESP_FIN, 0, true },
	};
	static const netdev_features_t features[] = {
		0, NETIF_F_SG, NETIF_F_SG | NETIF_F_HW_CSUM,
	};
	struct sk_buff *fed[ARRAY_SIZE(v)], *skb, *seg;
	int i, j, k, round, newer, segs;
	struct napi_struct *napi;
	struct esp_frame f;
	struct t_conn c;
	u32 ts;

	open_conn(test, &c, 0, 64);
	catch_frames(test, true);
	WRITE_ONCE(fx.ed->tx_checksum, 1);
	for (round = 0; round < 2 * ARRAY_SIZE(features); round++) {
		newer = round & 1;	/* fields of the other direction differ in each frame */
		ts = esp_now();
		napi = begin_poll(test);
		for (i = 0; i < ARRAY_SIZE(v); i++) {
			conn_frame(&c, &f, v[i].flags | ESP_ACK, c.seq + v[i].seq, v[i].len);
			f.grant = c.grant + 3 * i * newer;
			f.ack_seq += i * newer;
			f.ts_val = ts + i * newer - 5 * v[i].older;
			f.ts_ecr += 7 * i * newer;
			f.opts = v[i].opts;
			skb = card_frame(test, &c, &f);
			fed[i] = skb_copy(skb, GFP_ATOMIC);
			KUNIT_ASSERT_NOT_NULL(test, fed[i]);
			gro_receive(napi, skb);
		}
		end_poll(napi);
		for (i = 0; i < ARRAY_SIZE(v); i = j) {
			for (j = i + 1; j < ARRAY_SIZE(v) && !v[j].first; j++)
				;
			skb = next_caught(test);
			segs = j - i > 1 ? j - i : 0;
			KUNIT_ASSERT_EQ_MSG(test, (int)skb_shinfo(skb)->gso_segs, segs,
					    "frame %d", i);
			if (!segs) {
				expect_fed(test, skb, fed[i], fed[i], i);
				continue;
			}
			KUNIT_EXPECT_EQ(test, (u32)skb_shinfo(skb)->gso_size, (u32)v[i].len);
			seg = take_apart(skb, features[round / 2]);
			KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(seg));
			for (k = i; seg && k < j; k++) {
				struct sk_buff *next = seg->next;

				skb_mark_not_on_list(seg);
				expect_fed(test, seg, fed[k], fed[j - 1], k);
				seg = next;
			}
			KUNIT_EXPECT_EQ(test, k, j);
			KUNIT_EXPECT_NULL(test, seg);
			kfree_skb(skb);
		}
		KUNIT_EXPECT_TRUE(test, skb_queue_empty(&came));
		for (i = 0; i < ARRAY_SIZE(v); i++)
			kfree_skb(fed[i]);
	}
	catch_frames(test, false);
	close_conn(test, &c);
}

/* A device's sum over the frame counts if it is right. All other frames are summed. */
static void gro__coalesced_sums(struct kunit *test)
{
	static const struct {
		u8 summed;	/* checksum status from the device */
		bool good;	/* the frame is intact */
		bool said;	/* the device's sum says that the frame is intact */
		bool taken;	/* GRO coalesces the frame */
	} v[] = {
		{ CHECKSUM_NONE, true, false, true },
		{ CHECKSUM_NONE, false, true, false },
		{ CHECKSUM_UNNECESSARY, true, false, true },
		{ CHECKSUM_UNNECESSARY, false, true, false },
		{ CHECKSUM_PARTIAL, false, false, true },
		{ CHECKSUM_COMPLETE, true, true, true },
		{ CHECKSUM_COMPLETE, true, false, true },
		{ CHECKSUM_COMPLETE, false, false, false },
		{ CHECKSUM_COMPLETE, false, true, true },	/* not summed again */
	};
	struct napi_struct *napi;
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u32 i, at, k, n;

	open_conn(test, &c, 0, 64);
	catch_frames(test, true);
	for (i = 0; i < ARRAY_SIZE(v) * 3; i++) {
		at = i % 3;	/* place of the frame among three */
		napi = begin_poll(test);
		for (k = 0; k < 3; k++) {
			conn_frame(&c, &f, ESP_ACK, c.seq + k, T_MSS);
			skb = card_frame(test, &c, &f);
			if (k == at) {
				skb->ip_summed = v[i / 3].summed;
				skb->csum = csum_partial(skb->data + ETH_HLEN, ESP_HLEN + T_MSS,
							 (__force __wsum)!v[i / 3].said);
				skb->data[ETH_HLEN + ESP_HLEN] ^= !v[i / 3].good;
			}
			if (k == at && skb->ip_summed == CHECKSUM_PARTIAL) {
				skb->csum_start = skb_headroom(skb) + ETH_HLEN;
				skb->csum_offset = offsetof(struct esp_wire, csum);
			}
			gro_receive(napi, skb);
		}
		end_poll(napi);
		for (n = 0, k = 0; !skb_queue_empty(&came); n++) {
			skb = next_caught(test);
			if (!skb_is_gso(skb) && (k != at || v[i / 3].good)) {
				/* GRO has recorded the sum for the core */
				KUNIT_EXPECT_EQ(test, (int)skb->ip_summed, CHECKSUM_COMPLETE);
				KUNIT_EXPECT_EQ(test, csum_fold(skb->csum), 0);
			}
			k += skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
			kfree_skb(skb);
		}
		KUNIT_EXPECT_EQ_MSG(test, n, v[i / 3].taken ? 1u : at == 1 ? 3u : 2u,
				    "case %d, the %d.", i / 3, at);
		KUNIT_EXPECT_EQ(test, k, 3u);
	}
	catch_frames(test, false);
	close_conn(test, &c);
}

/* GRO chains nothing to a frame that is a list of buffers already. */
static void gro__coalesced_lists(struct kunit *test)
{
	struct napi_struct *napi;
	struct sk_buff *skb, *part;
	struct esp_frame f;
	struct t_conn c;
	u8 *data;
	u32 i;

	open_conn(test, &c, 0, 64);
	napi = begin_poll(test);
	for (i = 0; i < 3; i++) {
		skb = new_frame(c.mac, ESP_HLEN + T_MSS);
		part = alloc_skb(T_MSS, GFP_ATOMIC);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		KUNIT_ASSERT_NOT_NULL(test, part);
		conn_frame(&c, &f, (i ? 0 : ESP_TXS) | ESP_ACK, c.seq + i, T_MSS);
		f.grant = c.grant;
		data = skb_put(skb, ESP_HLEN + 100);
		esp_wire_build(data, &f);
		memset(data + ESP_HLEN, c.seq + i, 100);
		memset(skb_put(part, T_MSS - 100), c.seq + i, T_MSS - 100);
		skb_shinfo(skb)->frag_list = part;
		skb->len += part->len;
		skb->data_len += part->len;
		skb->truesize += part->truesize;
		((struct esp_wire *)data)->csum =
			(__force u16)csum_fold(skb_checksum(skb, ETH_HLEN, ESP_HLEN + T_MSS, 0));
		gro_receive(napi, skb);
	}
	end_poll(napi);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 3);
	expect_data(test, &c, c.seq, 3, T_MSS);
	close_conn(test, &c);
}

/* Make a full data frame of a connection. */
static struct sk_buff *data_frame(struct kunit *test, struct t_conn *c, u8 flags, u32 seq)
{
	struct esp_frame f;

	conn_frame(c, &f, flags | ESP_ACK, seq, T_MSS);
	f.grant = c->grant;
	return card_frame(test, c, &f);
}

/* All frames of a connection have one hash, whether they are coalesced or not; others another. */
static void gro__hash(struct kunit *test)
{
	struct t_conn c[2];
	struct napi_struct *napi;
	struct sk_buff *skb;
	u32 hash[2], i, j;

	for (i = 0; i < 2; i++)
		open_conn(test, &c[i], i, 64);
	catch_frames(test, true);
	napi = begin_poll(test);
	for (j = 0; j < 3; j++)
		for (i = 0; i < 2; i++)
			gro_receive(napi, data_frame(test, &c[i], j ? 0 : ESP_TXS, c[i].seq + j));
	for (i = 0; i < 2; i++)		/* one of them waits for nothing */
		gro_receive(napi, data_frame(test, &c[i], ESP_TXF, c[i].seq + 100));
	end_poll(napi);
	for (i = 0; i < 2; i++) {
		skb = next_caught(test);
		KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_segs, 3);
		KUNIT_EXPECT_TRUE(test, skb->l4_hash && skb->sw_hash);
		hash[i] = skb->hash;
		kfree_skb(skb);
		skb = next_caught(test);
		KUNIT_EXPECT_FALSE(test, skb_is_gso(skb));
		KUNIT_EXPECT_EQ(test, skb->hash, hash[i]);
		kfree_skb(skb);
	}
	KUNIT_EXPECT_NE(test, hash[0], 0u);
	KUNIT_EXPECT_NE(test, hash[0], hash[1]);
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&came));
	catch_frames(test, false);
	for (i = 0; i < 2; i++)
		close_conn(test, &c[i]);
}

/* Frames that differ in what the hash does not cover are not coalesced: address, VLAN. */
static void gro__hash_is_not_all(struct kunit *test)
{
	struct napi_struct *napi;
	struct sk_buff *skb;
	u32 hash = 0, i, v;
	struct t_conn c;

	open_conn(test, &c, 0, 64);
	catch_frames(test, true);
	for (v = 0; v < 4; v++) {
		napi = begin_poll(test);
		for (i = 0; i < 2; i++) {
			skb = data_frame(test, &c, i ? 0 : ESP_TXS, c.seq + i);
			if (v == 1)	/* to another address */
				skb->data[ETH_ALEN - 1] ^= i;
			if (v == 2 || (v == 3 && i))
				__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), 5 + i);
			gro_receive(napi, skb);
		}
		end_poll(napi);
		skb = next_caught(test);
		KUNIT_EXPECT_EQ_MSG(test, skb_is_gso(skb), !v, "case %u", v);
		if (!v)
			hash = skb->hash;
		KUNIT_EXPECT_EQ_MSG(test, skb->hash, hash, "case %u", v);
		kfree_skb(skb);
		skb = skb_dequeue(&came);
		KUNIT_EXPECT_EQ_MSG(test, !skb, !v, "case %u", v);
		KUNIT_EXPECT_EQ_MSG(test, skb ? skb->hash : hash, hash, "case %u", v);
		kfree_skb(skb);
	}
	catch_frames(test, false);
	close_conn(test, &c);
}

/* A card's own hash of the flow stays. */
static void gro__hash_of_card(struct kunit *test)
{
	struct napi_struct *napi;
	struct sk_buff *skb;
	struct t_conn c;
	u32 i;

	open_conn(test, &c, 0, 64);
	catch_frames(test, true);
	napi = begin_poll(test);
	for (i = 0; i < 2; i++) {
		skb = data_frame(test, &c, i ? 0 : ESP_TXS, c.seq + i);
		skb_set_hash(skb, 0x1234, PKT_HASH_TYPE_L4);
		gro_receive(napi, skb);
	}
	end_poll(napi);
	skb = next_caught(test);
	KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_segs, 2);
	KUNIT_EXPECT_EQ(test, skb->hash, 0x1234u);
	kfree_skb(skb);
	catch_frames(test, false);
	close_conn(test, &c);
}

static struct kunit_case gro_cases[] = {
	KUNIT_CASE(gro__hash),
	KUNIT_CASE(gro__hash_is_not_all),
	KUNIT_CASE(gro__hash_of_card),
	KUNIT_CASE(gro__coalesced),
	KUNIT_CASE(gro__coalesced_and_apart),
	KUNIT_CASE(gro__coalesced_sums),
	KUNIT_CASE(gro__coalesced_lists),
	{}
};
