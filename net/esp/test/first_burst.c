// SPDX-License-Identifier: GPL-2.0-only
/* First bursts, which all hosts share: rule 21. Included by suite.c, after harness.c. */

static void begin(struct kunit *test)
{
	conf()->first_burst_pool = 8;
	esp_dev_policy(&init_net);
	start_listener(test);
}

/*
 * Three hosts have 4, 2 and 1 of the 8 packets. Connect a fourth host, which gets the last
 * one: the first host is cut to 2.
 */
static void cut(struct kunit *test, struct t_conn c[4])
{
	struct esp_frame f;

	new_conn(&c[3], 3);
	syn(test, &c[3]);
	KUNIT_EXPECT_EQ(test, c[3].advice, 1);
	echo_frame(&c[3], &f, 4);
	c[3].grant = 4;
	accept_conn(test, &c[3], &f);
	KUNIT_EXPECT_EQ(test, c[0].esp->peer->want, 2);
}

static void open_three(struct kunit *test, struct t_conn c[4])
{
	int i;

	begin(test);
	for (i = 0; i < 3; i++) {
		open_conn(test, &c[i], i, 4);
		KUNIT_EXPECT_EQ(test, c[i].advice, 4 >> i);
	}
}

static void close_all(struct kunit *test, struct t_conn c[4])
{
	int i;

	for (i = 0; i < 4; i++)
		close_conn(test, &c[i]);
}

/* A cut is told at once, and again until the host echoes it: then its share is free. */
static void advice__cut_is_told(struct kunit *test)
{
	struct t_conn c[4];
	struct esp_frame f;

	open_three(test, c);
	cut(test, c);
	next(test, &c[0], ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 2);
	/* a peer echoes no cut that it knows: the repetition is a probe */
	next(test, &c[0], ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 2);
	KUNIT_EXPECT_EQ(test, c[0].esp->link->given, 8);
	conn_frame(&c[0], &f, ESP_ACK, c[0].seq, 0);
	f.opts = ESP_HAS(ESP_OPT_ADVICE);
	f.advice = 2;
	feed_frame(test, c[0].mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c[0].esp->link->given, 6);
	close_all(test, c);
}

/* The other side: a sender echoes a cut, and echoes it again when it gets a probe. */
static void advice__echo_again(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	begin(test);
	open_conn(test, &c, 0, 4);
	feed_ack(test, &c, 2);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.advice, 2);
	c.grant = 2;
	feed(test, &c, ESP_TXS, c.seq - 1, 0);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.advice, 2);
	close_conn(test, &c);
}

/* A frame that left before the cut was told is no echo, however small its value is. */
static void advice__old_is_no_echo(struct kunit *test)
{
	struct t_conn c[4];
	struct esp_frame f;

	open_three(test, c);
	cut(test, c);
	EVENTUALLY(test, c[0].esp->burst_told == 2);
	conn_frame(&c[0], &f, ESP_ACK, c[0].seq, 0);
	f.opts = ESP_HAS(ESP_OPT_ADVICE);
	f.advice = 1;
	f.ts_ecr = (u32)c[0].esp->burst_told_at + c[0].esp->ts_off - 100;
	feed_frame(test, c[0].mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c[0].esp->link->given, 8);
	close_all(test, c);
}

/* A cut during a transmission is told when the transmission is given up. */
static void advice__cut_then_abandoned(struct kunit *test)
{
	unsigned long given_up = mib(ESP_MIB_ExpiryAbandoned);
	struct t_conn c[4];
	struct esp_frame f;

	conf()->rrq_min_us = 20000;
	open_three(test, c);
	feed(test, &c[0], ESP_TXS, c[0].seq, T_MSS);
	next(test, &c[0], ESP_ACK, &f);
	cut(test, c);
	KUNIT_EXPECT_EQ(test, c[0].esp->peer->behind, 1);
	KUNIT_EXPECT_EQ(test, c[0].esp->link->given, 8);
	EVENTUALLY(test, mib(ESP_MIB_ExpiryAbandoned) == given_up + 1);
	EVENTUALLY(test, c[0].esp->link->given == 6);
	KUNIT_EXPECT_EQ(test, c[0].esp->peer->behind, 0);
	close_all(test, c);
}

/* A host has half a second for its echo, however many ACKs it gets meanwhile. */
static void advice__tries_take_their_time(struct kunit *test)
{
	struct t_conn c[4];
	u64 told;
	int n;

	conf()->ack_delay_us = 300;
	open_three(test, c);
	told = esp_now();
	cut(test, c);
	for (n = 0; n < 1500 && c[0].esp->peer->behind; n++) {
		feed(test, &c[0], ESP_TXS | ESP_TXF, c[0].seq + n, 10);
		usleep_range(500, 700);
	}
	KUNIT_EXPECT_EQ(test, c[0].esp->peer->behind, 0);
	KUNIT_EXPECT_GT(test, esp_now() - told, 400000ull);
	close_all(test, c);
}

/* A connect() without an answer has told the peer no first burst: a cut frees its share at once. */
static void advice__connecting_is_not_behind(struct kunit *test)
{
	struct sockaddr_esp a = {
		.sesp_family	= esp_family,
		.sesp_port	= htons(T_PEER_PORT),
		.sesp_ifindex	= fx.dev->ifindex,
		.sesp_halen	= ETH_ALEN,
	};
	struct t_conn c[4], s;
	int i;

	begin(test);
	new_conn(&s, 9);
	ether_addr_copy(a.sesp_addr, s.mac);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, SOCK_STREAM,
					       0, &s.sock), 0);
	s.esp = esp_sk(s.sock->sk);
	conf()->syn_retries = 250;
	KUNIT_EXPECT_EQ(test, kernel_connect(s.sock, (struct sockaddr_unsized *)&a,
					     sizeof(a), O_NONBLOCK), -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, s.esp->peer->own, 4);
	esp_timers_stop(s.sock->sk);	/* no second SYN */
	skb_queue_purge(&fx.out);
	for (i = 0; i < 3; i++)
		open_conn(test, &c[i], i, 4);
	KUNIT_EXPECT_EQ(test, s.esp->peer->want, 2);
	KUNIT_EXPECT_EQ(test, s.esp->peer->own, 2);
	KUNIT_EXPECT_EQ(test, s.esp->peer->behind, 0);
	sock_release(s.sock);
	for (i = 0; i < 3; i++)
		close_conn(test, &c[i]);
}

/* Feed a small message, and the probe of a sender that can't go on without its ACK. */
static void small_and_ask(struct kunit *test, struct t_conn *c)
{
	feed(test, c, ESP_TXS | ESP_TXF, c->seq++, 20);
	feed(test, c, ESP_TXS, c->seq - 2, 0);
}

/*
 * A host that sends only small messages gets a share, too. It comes from what is left, or
 * from a host that has more than a share.
 */
static void advice__small_messages(struct kunit *test)
{
	struct t_conn c[3];
	struct esp_peer *most, *least;
	struct esp_frame f;
	int i;

	conf()->first_burst_pool = 64;
	esp_dev_policy(&init_net);
	start_listener(test);
	for (i = 0; i < 3; i++)
		open_conn(test, &c[i], i, 4);
	KUNIT_EXPECT_EQ(test, c[2].advice, 8);
	most = c[0].esp->peer;
	least = c[2].esp->peer;
	/* 8 is less than half of 64 / 3; but a host that sends no data is told no more */
	feed(test, &c[2], ESP_TXS, c[2].seq - 1, 0);
	next(test, &c[2], ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 8);
	small_and_ask(test, &c[2]);
	next(test, &c[2], ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 16);
	KUNIT_EXPECT_EQ(test, most->link->given, 64);

	/* the state after hosts came while a cut was not echoed */
	most->own += 15;
	most->want = most->own;
	least->own -= 15;
	least->want = least->own;
	c[2].esp->burst_told = least->want;
	small_and_ask(test, &c[2]);
	for (i = 0; i < 2; i++) {	/* the answer, and the cut to the host that has more */
		struct sk_buff *skb = next_skb(T_ANSWER_MS);

		KUNIT_ASSERT_NOT_NULL(test, skb);
		read_frame(test, skb, &f, NULL);
		if (ether_addr_equal(eth_hdr(skb)->h_dest, c[0].mac))
			c[0].ts = f.ts_val;
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, c[0].esp->burst_told, 21);
	KUNIT_EXPECT_EQ(test, least->want, 1);
	KUNIT_EXPECT_EQ(test, c[1].esp->peer->want, 16);
	conn_frame(&c[0], &f, ESP_ACK, c[0].seq, 0);
	f.opts = ESP_HAS(ESP_OPT_ADVICE);
	f.advice = 21;
	feed_frame(test, c[0].mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, most->behind, 0);
	skb_queue_purge(&fx.out);
	small_and_ask(test, &c[2]);
	next(test, &c[2], ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 21);
	/* a host with half a share or more is told no more */
	small_and_ask(test, &c[1]);
	next(test, &c[1], ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 16);
	for (i = 0; i < 3; i++)
		close_conn(test, &c[i]);
}

/* A host that has sent its FIN begins nothing: its share is free, and it is told of no cut. */
static void advice__none_after_fin(struct kunit *test)
{
	struct t_conn c[4], late[3];
	struct esp_link *link;
	struct esp_frame f;
	int i;

	open_three(test, c);
	link = c[0].esp->link;
	feed(test, &c[0], ESP_FIN, c[0].seq, 0);
	silence(test);
	KUNIT_EXPECT_EQ(test, c[0].sock->sk->sk_state, TCP_CLOSE_WAIT);
	KUNIT_EXPECT_EQ(test, link->given, 3);
	KUNIT_EXPECT_EQ(test, link->npeers, 2);
	KUNIT_EXPECT_EQ(test, c[0].esp->peer->own, 0);

	/* it connects again, and gets what a new host would: 2 of the 5 that are left */
	new_conn(&c[3], 0);
	c[3].port++;
	syn(test, &c[3]);
	KUNIT_EXPECT_EQ(test, c[3].advice, 2);
	echo_frame(&c[3], &f, 4);
	c[3].grant = 4;
	accept_conn(test, &c[3], &f);
	silence(test);
	KUNIT_EXPECT_PTR_EQ(test, c[3].esp->peer, c[0].esp->peer);
	KUNIT_EXPECT_EQ(test, link->given, 5);
	KUNIT_EXPECT_EQ(test, link->npeers, 3);
	esp_peer_leave(c[0].sock->sk);	/* a second call changes nothing */
	KUNIT_EXPECT_EQ(test, link->given, 5);

	/* three more hosts, and the one with 2 is cut to 1 */
	for (i = 0; i < 2; i++)
		open_conn(test, &late[i], 4 + i, 4);
	new_conn(&late[2], 6);
	syn(test, &late[2]);
	echo_frame(&late[2], &f, 4);
	late[2].grant = 4;
	accept_conn(test, &late[2], &f);
	KUNIT_EXPECT_EQ(test, link->given, 8);
	KUNIT_EXPECT_EQ(test, c[3].esp->peer->want, 1);
	KUNIT_EXPECT_EQ(test, c[3].esp->peer->behind, 1);
	EVENTUALLY(test, c[3].esp->burst_told == 1);
	KUNIT_EXPECT_FALSE(test, esp_advice_changed(c[0].sock->sk));
	KUNIT_EXPECT_EQ(test, c[0].esp->burst_told, 4);
	KUNIT_EXPECT_EQ(test, esp_peer_advise(c[0].sock->sk), 0);

	/* a host whose connection ends by RST begins nothing either */
	lock_sock(late[0].sock->sk);
	esp_abort(late[0].sock->sk, -ECONNABORTED);
	release_sock(late[0].sock->sk);
	KUNIT_EXPECT_EQ(test, link->npeers, 5);
	KUNIT_EXPECT_EQ(test, link->given, 7);
	close_conn(test, &c[3]);
	KUNIT_EXPECT_EQ(test, link->npeers, 4);
	KUNIT_EXPECT_EQ(test, link->given, 5);
	c[3] = c[0];
	for (i = 1; i < 4; i++)
		close_conn(test, &c[i]);
	for (i = 0; i < 3; i++)
		close_conn(test, &late[i]);
}

/*
 * Addresses that share a bucket with one seed are spread with another one. 4,096 whose last three
 * bytes cancel each other out, so that they would share one without a seed, are spread as well.
 */
static void peers__bucket_is_secret(struct kunit *test)
{
	u32 n[ESP_PEER_BUCKETS] = {}, together = 0, i, most = 0;
	u8 mac[ETH_ALEN] = { 2 }, first[ETH_ALEN] = { 2 };

	for (i = 0; i < 4096; i++) {
		mac[3] = i;
		mac[4] = i >> 6;
		mac[5] = mac[3] ^ mac[4];
		most = max(most, ++n[esp_peer_hash(0x12345678, mac)]);
		if (esp_peer_hash(0x12345678, mac) == esp_peer_hash(0x12345678, first) &&
		    esp_peer_hash(0x87654321, mac) == esp_peer_hash(0x87654321, first))
			together++;
	}
	KUNIT_EXPECT_LT(test, most, 2 * 4096u / ESP_PEER_BUCKETS);
	KUNIT_EXPECT_LT(test, together, 16);
}

static struct kunit_case advice_cases[] = {
	KUNIT_CASE(peers__bucket_is_secret),
	KUNIT_CASE(advice__cut_is_told),
	KUNIT_CASE(advice__echo_again),
	KUNIT_CASE(advice__old_is_no_echo),
	KUNIT_CASE(advice__cut_then_abandoned),
	KUNIT_CASE(advice__tries_take_their_time),
	KUNIT_CASE(advice__connecting_is_not_behind),
	KUNIT_CASE(advice__small_messages),
	KUNIT_CASE(advice__none_after_fin),
	{}
};
