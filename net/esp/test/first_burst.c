// SPDX-License-Identifier: GPL-2.0-only
/* Peers, and first bursts: rules 12, 21. Included by suite.c, after harness.c. */

/* Let the link carry more packets in a base round trip than first bursts have. */
static void fast_link(void)
{
	esp_link_rate(fx.ed->link, 400000, 1500);
}

/* Wait until no frame leaves any more: grants wait for the link. */
static void quiet(void)
{
	struct sk_buff *skb;

	while ((skb = next_skb(3)))
		kfree_skb(skb);
}

/* The first bursts of hosts that begin together share the port's room. */
static void burst__shared(struct kunit *test)
{
	struct t_conn c[4], late;
	int i;
	struct esp_frame f;

	fast_link();
	start_listener(test);
	for (i = 0; i < 4; i++) {
		/* the windows in which beginnings count together are long */
		ackq()->budget->base.v = ESP_STALE_NS;
		open_conn(test, &c[i], i, 4);
		/* exact figures depend on the time between two handshakes: budget__first_burst */
		KUNIT_EXPECT_GE(test, c[i].advice, 1);
		KUNIT_EXPECT_LE(test, c[i].advice, ESP_PORT_FRAMES / 2);
		feed(test, &c[i], ESP_TXS, c[i].seq, 0);
		quiet();
	}
	ackq()->budget->base.v = ESP_STALE_NS;
	new_conn(&late, 4);
	syn(test, &late);
	KUNIT_EXPECT_LE(test, late.advice, ESP_PORT_FRAMES / 2);
	/* who has ended begins again, with all that have begun lately */
	quiet();
	feed(test, &c[0], ESP_TXS | ESP_TXF, c[0].seq, 300);
	quiet();	/* the others get what it has left */
	feed(test, &c[0], ESP_TXS, c[0].seq - 1, 0);
	next(test, &c[0], ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, ESP_PORT_FRAMES / 4);
	KUNIT_EXPECT_EQ(test, c[0].esp->burst_told, ESP_PORT_FRAMES / 4);
	for (i = 0; i < 4; i++)
		close_conn(test, &c[i]);
}

/* A pool of 0 lets nobody begin without a grant. */
static void burst__no_pool(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	conf()->first_burst_pool = 0;
	esp_dev_policy(&init_net);
	open_conn(test, &c, 0, 4);
	KUNIT_EXPECT_EQ(test, c.advice, 0);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 300);
	feed(test, &c, ESP_TXS, c.seq, 0);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, 0);
	close_conn(test, &c);
}

/* A host that has sent its FIN begins nothing. It counts as a peer again if it connects again. */
static void burst__none_after_fin(struct kunit *test)
{
	struct t_conn c[3], again;
	struct esp_link *link;
	struct esp_frame f;
	int i;

	for (i = 0; i < 3; i++)
		open_conn(test, &c[i], i, 4);
	link = c[0].esp->link;
	KUNIT_EXPECT_EQ(test, link->npeers, 3);
	feed(test, &c[0], ESP_FIN, c[0].seq, 0);
	silence(test);
	KUNIT_EXPECT_EQ(test, c[0].sock->sk->sk_state, TCP_CLOSE_WAIT);
	KUNIT_EXPECT_EQ(test, link->npeers, 2);
	lock_sock(c[0].sock->sk);
	esp_peer_advise(c[0].sock->sk);
	esp_peer_leave(c[0].sock->sk);	/* a second call changes nothing */
	release_sock(c[0].sock->sk);
	KUNIT_EXPECT_EQ(test, c[0].esp->burst_told, 0);
	KUNIT_EXPECT_EQ(test, link->npeers, 2);

	new_conn(&again, 0);
	again.port++;
	syn(test, &again);
	echo_frame(&again, &f, 4);
	accept_conn(test, &again, &f);
	KUNIT_EXPECT_PTR_EQ(test, again.esp->peer, c[0].esp->peer);
	KUNIT_EXPECT_PTR_EQ(test, again.esp->grant.host, c[0].esp->grant.host);
	KUNIT_EXPECT_EQ(test, link->npeers, 3);

	/* a host whose connection ends by RST begins nothing either */
	lock_sock(c[1].sock->sk);
	esp_abort(c[1].sock->sk, -ECONNABORTED);
	release_sock(c[1].sock->sk);
	KUNIT_EXPECT_EQ(test, link->npeers, 2);
	close_conn(test, &again);
	KUNIT_EXPECT_EQ(test, link->npeers, 1);
	for (i = 0; i < 3; i++)
		close_conn(test, &c[i]);
	KUNIT_EXPECT_EQ(test, link->npeers, 0);
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

static struct kunit_case burst_cases[] = {
	KUNIT_CASE(peers__bucket_is_secret),
	KUNIT_CASE(burst__shared),
	KUNIT_CASE(burst__no_pool),
	KUNIT_CASE(burst__none_after_fin),
	{}
};
