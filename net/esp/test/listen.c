// SPDX-License-Identifier: GPL-2.0-only
/* Connections: how a listener makes them. Included by suite.c, after harness.c. */

/* Connections: a SYN leaves no state at the listener. */
static void listen__syn_leaves_no_state(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;
	int i, before;
	u32 cookie;

	start_listener(test);
	before = count_socks();
	new_conn(&c, 0);
	feed_syn(test, &c);
	next(test, &c, ESP_SYN | ESP_ACK, &f);
	cookie = f.peer_cookie;
	KUNIT_EXPECT_NE(test, cookie, 0u);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, esp_isn(cookie));
	KUNIT_EXPECT_EQ(test, f.ack_seq, esp_isn(c.cookie) + 1);
	KUNIT_EXPECT_EQ(test, f.opts & ESP_HAS_HELLO, ESP_HAS_HELLO);
	KUNIT_EXPECT_EQ(test, f.type, SOCK_STREAM);
	KUNIT_EXPECT_EQ(test, f.mss, fx.dev->mtu - ESP_HLEN);
	KUNIT_EXPECT_EQ(test, f.grant, fx.ed->link->budget.bdp + 1);
	for (i = 0; i < 20; i++) {
		feed_syn(test, &c);
		next(test, &c, ESP_SYN | ESP_ACK, &f);
	}
	KUNIT_EXPECT_EQ(test, count_socks(), before);
	KUNIT_EXPECT_EQ(test, fx.listener->sk->sk_ack_backlog, 0);
	KUNIT_EXPECT_EQ(test, fx.ed->link->npeers, 0u);
	silence(test);
}

/* Connections: the echo brings back the parameters that the listener did not keep. */
static void listen__echo_makes_child(struct kunit *test)
{
	unsigned long opens = mib(ESP_MIB_PassiveOpens);
	struct sockaddr_esp a;
	struct t_conn c;

	open_conn(test, &c, 0, 7);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_PassiveOpens), opens + 1);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, c.esp->cookie, c.their_cookie);
	KUNIT_EXPECT_EQ(test, c.esp->peer_cookie, c.cookie);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, c.ack);
	KUNIT_EXPECT_EQ(test, c.esp->mss, (u32)T_MSS);
	KUNIT_EXPECT_EQ(test, c.esp->snd.advice, 7);
	KUNIT_EXPECT_EQ(test, c.esp->burst_told, c.advice);
	esp_addr_peer(c.sock->sk, &a);
	KUNIT_EXPECT_EQ(test, a.sesp_port, htons(c.port));
	KUNIT_EXPECT_TRUE(test, ether_addr_equal(a.sesp_addr, c.mac));
	close_conn(test, &c);
}

/* Feed the peer's echo, with a grant for four packets. */
static void feed_echo(struct kunit *test, struct t_conn *c)
{
	struct esp_frame f;

	echo_frame(c, &f, 4);
	feed_frame(test, c->mac, &f, NULL);
}

/* The echo makes a connection, which ends again. */
static void echo_connects(struct kunit *test, struct t_conn *c)
{
	struct esp_frame f;

	echo_frame(c, &f, 4);
	accept_conn(test, c, &f);
	close_conn(test, c);
}

/* An echo with a wrong cookie, or with other parameters, is counted and makes no child. */
static void listen__bad_echo_is_refused(struct kunit *test)
{
	unsigned long bad = mib(ESP_MIB_CookieInvalid);
	struct esp_frame f;
	struct t_conn c;
	int i;

	begin_handshake(test, &c);
	for (i = 0; i < 7; i++) {
		struct t_conn who = c;	/* the host that gets the answer */

		echo_frame(&c, &f, 4);
		switch (i) {
		case 0:
			f.cookie ^= 1;
			break;
		case 1:
			f.advice++;		/* more than the SYN|ACK gave */
			break;
		case 2:
			f.peer_cookie = ++who.cookie;
			break;
		case 3:
			f.sport = htons(++who.port);
			break;
		case 4:
			who.mac[5]++;
			break;
		case 5:
			f.opts &= ~ESP_HAS(ESP_OPT_ADVICE);
			break;
		case 6:
			f.type = SOCK_SEQPACKET;
			break;
		}
		feed_frame(test, who.mac, &f, NULL);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieInvalid), bad + i + 1);
		next(test, &who, ESP_RST | ESP_ACK, &f);
	}
	/* no answer to an RST, and none to a frame without a cookie for the answer */
	echo_frame(&c, &f, 4);
	f.cookie ^= 1;
	f.flags = ESP_RST | ESP_ACK;
	feed_frame(test, c.mac, &f, NULL);
	conn_frame(&c, &f, ESP_ACK, c.seq, 0);
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieInvalid), bad + i + 2);
	silence(test);
	KUNIT_EXPECT_EQ(test, fx.listener->sk->sk_ack_backlog, 0);
}

/* Feed an echo with the cookie of @age slots ago; true: it made a child. */
static bool echo_of_age(struct kunit *test, int nr, int age)
{
	unsigned long opens = mib(ESP_MIB_PassiveOpens), bad = mib(ESP_MIB_CookieInvalid);
	struct ethhdr eth;
	struct esp_frame f;
	struct t_conn c;

	new_conn(&c, nr);
	syn(test, &c);
	echo_frame(&c, &f, 4);
	ether_addr_copy(eth.h_source, c.mac);
	ether_addr_copy(eth.h_dest, fx.dev->dev_addr);
	f.cookie = esp_listen_cookie(fx.listener->sk, fx.dev->ifindex, &eth, &f, f.advice,
				     false, esp_cookie_slot() - age);
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_PassiveOpens) + mib(ESP_MIB_CookieInvalid),
			opens + bad + 1);
	if (mib(ESP_MIB_PassiveOpens) == opens) {
		next(test, &c, ESP_RST | ESP_ACK, &f);
		return false;
	}
	c.their_cookie = f.cookie;
	take_conn(test, &c, &f);
	close_conn(test, &c);
	return true;
}

/* A cookie is valid in its slot of time and in the next one. */
static void listen__echo_of_another_slot(struct kunit *test)
{
	static const struct {
		int age;
		bool good;
	} v[] = { { 0, true }, { 1, true }, { 2, false }, { 3, false }, { -1, false } };
	bool good;
	u32 slot;
	int i;

	start_listener(test);
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		do {	/* repeat if the slot ends meanwhile */
			slot = esp_cookie_slot();
			good = echo_of_age(test, i, v[i].age);
		} while (slot != esp_cookie_slot());
		KUNIT_EXPECT_EQ_MSG(test, good, v[i].good, "%d slots ago", v[i].age);
	}
}

/*
 * A copy of the echo comes when the connection has ended. It makes no other one, which would get
 * the data again.
 */
static void listen__echo_comes_late(struct kunit *test)
{
	unsigned long opens, used = mib(ESP_MIB_CookieUsed);
	struct esp_frame f, copy;
	struct t_conn c;
	int i;

	start_listener(test);
	new_conn(&c, 1);
	syn(test, &c);
	echo_frame(&c, &f, 4);
	f.flags |= ESP_TXS | ESP_TXF;
	f.len = 5;
	copy = f;
	feed_frame(test, c.mac, &f, "hello");
	take_conn(test, &c, &f);
	opens = mib(ESP_MIB_PassiveOpens);
	feed_frame(test, c.mac, &copy, "hello");	/* a duplicate of the connection's */
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieUsed), used);
	close_conn(test, &c);
	for (i = 1; i <= 3; i++) {
		feed_frame(test, c.mac, &copy, "hello");
		next(test, &c, ESP_RST | ESP_ACK, &f);
		silence(test);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieUsed), used + i);
	}
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_PassiveOpens), opens);
	KUNIT_EXPECT_EQ(test, fx.listener->sk->sk_ack_backlog, 0);
	/* the client itself may connect again from there */
	new_conn(&c, 1);
	syn(test, &c);
	echo_connects(test, &c);
}

/*
 * A copy of the echo comes while another processor makes the connection: the cookie is used, and
 * nobody finds the connection yet. The copy gets no RST, unless the listener is not locked.
 */
static void listen__copy_comes_at_once(struct kunit *test)
{
	unsigned long used = mib(ESP_MIB_CookieUsed);
	struct esp_frame f, copy, again;
	u32 slot = esp_cookie_slot();
	struct t_conn c;
	struct sock *sk;

	begin_handshake(test, &c);
	sk = fx.listener->sk;
	echo_frame(&c, &f, 4);
	copy = f;
	again = f;
	while (!esp_cookie_use(slot, f.cookie, f.peer_cookie))
		slot = esp_cookie_slot();
	lock_sock(sk);	/* as the other processor has locked it */
	feed_frame(test, c.mac, &copy, NULL);
	release_sock(sk);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieUsed), used);
	feed_frame(test, c.mac, &again, NULL);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieUsed), used + 1);
	KUNIT_EXPECT_EQ(test, sk->sk_ack_backlog, 0u);
}

/* A client's connection has ended, and its accept queue is full: a late copy gets its RST. */
static void listen__copy_finds_it_full(struct kunit *test)
{
	unsigned long full = mib(ESP_MIB_ListenOverflows), used = mib(ESP_MIB_CookieUsed);
	struct t_conn c[T_BACKLOG + 2];
	struct esp_frame f, copy;
	u32 i;

	start_listener(test);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		new_conn(&c[i], i);
		syn(test, &c[i]);
	}
	echo_frame(&c[0], &f, 4);
	copy = f;
	feed_frame(test, c[0].mac, &f, NULL);
	take_conn(test, &c[0], &f);
	close_conn(test, &c[0]);
	for (i = 1; i < ARRAY_SIZE(c); i++)
		feed_echo(test, &c[i]);
	KUNIT_EXPECT_EQ(test, fx.listener->sk->sk_ack_backlog, T_BACKLOG + 1);
	feed_frame(test, c[0].mac, &copy, NULL);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_ListenOverflows), full);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieUsed), used + 1);
}

/* Fill slot @slot, as many connections do; return the number of its cookies. */
static u32 fill_slot(u32 slot, u32 salt)
{
	u32 n = 0;

	while (esp_cookie_slot() == slot && n < 100000)
		esp_cookie_use(slot, ++n, salt);
	return n;
}

/*
 * A slot ends early when its table is half full. Its cookies are remembered during the next
 * slot, and are invalid after it; cookies that are not used yet are valid in both.
 */
static void listen__slot_ends_early(struct kunit *test)
{
	u32 slot, n, i, wrong = 0;

	do {	/* begin anew if the clock ends a slot meanwhile */
		slot = esp_cookie_slot();
		fill_slot(slot, 1);
		slot = esp_cookie_slot();
		n = fill_slot(slot, 2);
	} while (n < 500 || !esp_cookie_used(slot, n, 2));
	KUNIT_EXPECT_LE(test, n, 32768);
	for (i = 1; i <= n; i++)
		wrong += !esp_cookie_used(slot, i, 2);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_FALSE(test, esp_cookie_used(slot, n + 1, 2));
	KUNIT_EXPECT_FALSE(test, esp_cookie_used(slot + 1, 1, 2));
	/* clients that use the old slot's cookies end the new slot in their turn */
	for (i = n + 1; esp_cookie_slot() == slot + 1 && i < 2 * n; i++)
		esp_cookie_use(slot, i, 2);
	KUNIT_EXPECT_NE(test, esp_cookie_slot(), slot + 1);
	KUNIT_EXPECT_GE(test, i, n + n / 2 - 2);
	KUNIT_EXPECT_FALSE(test, esp_cookie_use(slot, 1, 2));	/* it is invalid */
	fill_slot(esp_cookie_slot(), 3);
	slot = esp_cookie_slot();
	KUNIT_EXPECT_FALSE(test, esp_cookie_used(slot, 1, 2));
	/* a cookie that has made no connection may come again; those behind it stay */
	for (i = 1; i <= 300; i++)
		KUNIT_EXPECT_TRUE(test, esp_cookie_use(slot, i, 2));
	for (i = 1; i <= 300; i += 3)
		esp_cookie_return(slot, i, 2);
	for (i = 1; i <= 300; i++)
		KUNIT_EXPECT_EQ(test, esp_cookie_use(slot, i, 2), i % 3 == 1);
}

/* Clients get a SYN|ACK while the accept queue has room; some of their echoes find it full. */
static void listen__echo_finds_it_full(struct kunit *test)
{
	unsigned long full = mib(ESP_MIB_ListenOverflows);
	struct t_conn c[T_BACKLOG + 3];
	u32 i;

	start_listener(test);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		new_conn(&c[i], i);
		syn(test, &c[i]);
	}
	for (i = 0; i < ARRAY_SIZE(c); i++)
		feed_echo(test, &c[i]);
	/* one more than the backlog, as with TCP */
	KUNIT_EXPECT_EQ(test, fx.listener->sk->sk_ack_backlog, T_BACKLOG + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_ListenOverflows), full + 2);
}

/* The listener's owner works meanwhile, so the echoes wait in the backlog. Some find it full. */
static void listen__echo_finds_it_full_later(struct kunit *test)
{
	unsigned long full = mib(ESP_MIB_ListenOverflows);
	struct t_conn c[T_BACKLOG + 3];
	struct sock *sk;
	u32 i;

	start_listener(test);
	sk = fx.listener->sk;
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		new_conn(&c[i], i);
		syn(test, &c[i]);
	}
	lock_sock(sk);
	for (i = 0; i < ARRAY_SIZE(c); i++)
		feed_echo(test, &c[i]);
	KUNIT_EXPECT_EQ(test, sk->sk_ack_backlog, 0);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, sk->sk_ack_backlog, T_BACKLOG + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_ListenOverflows), full + 2);
}

/* An echo and its copy wait in the backlog: one makes the connection, and the other is dropped. */
static void listen__copy_comes_meanwhile(struct kunit *test)
{
	unsigned long used = mib(ESP_MIB_CookieUsed), opens = mib(ESP_MIB_PassiveOpens);
	struct esp_frame f, copy;
	struct t_conn c;
	struct sock *sk;

	begin_handshake(test, &c);
	sk = fx.listener->sk;
	echo_frame(&c, &f, 4);
	copy = f;
	lock_sock(sk);
	feed_frame(test, c.mac, &f, NULL);
	feed_frame(test, c.mac, &copy, NULL);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_PassiveOpens), opens + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieUsed), used);
	KUNIT_EXPECT_EQ(test, sk->sk_ack_backlog, 1u);
	take_conn(test, &c, &f);
	silence(test);
	close_conn(test, &c);
}

/*
 * A client asks twice, with two cookies, and both echoes wait in the backlog. They would make
 * connections with the same addresses, so the second one fails, and may come again.
 */
static void listen__two_cookies_of_one(struct kunit *test)
{
	unsigned long opens = mib(ESP_MIB_PassiveOpens), failed = mib(ESP_MIB_OutAllocFail);
	struct esp_frame f;
	struct t_conn c[2];
	struct sock *sk;
	int i;

	start_listener(test);
	sk = fx.listener->sk;
	for (i = 0; i < 2; i++) {
		new_conn(&c[i], 0);
		syn(test, &c[i]);
		c[i].grant = 4;
	}
	lock_sock(sk);
	for (i = 0; i < 2; i++)
		feed_echo(test, &c[i]);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_PassiveOpens), opens + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutAllocFail), failed + 1);
	KUNIT_EXPECT_EQ(test, sk->sk_ack_backlog, 1u);
	take_conn(test, &c[0], &f);
	silence(test);
	close_conn(test, &c[0]);
	echo_frame(&c[1], &f, 4);
	accept_conn(test, &c[1], &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_PassiveOpens), opens + 2);
	close_conn(test, &c[1]);
}

/* The device gets another address while an echo waits: the connection would have the old one. */
static void listen__address_changes_meanwhile(struct kunit *test)
{
	static const u8 other[ETH_ALEN] = { 2, 0, 0, 0, 0, 0x77 };
	unsigned long opens = mib(ESP_MIB_PassiveOpens);
	u8 known[ETH_ALEN];
	struct t_conn c;
	struct sock *sk;

	begin_handshake(test, &c);
	sk = fx.listener->sk;
	c.grant = 4;
	ether_addr_copy(known, fx.dev->dev_addr);
	lock_sock(sk);
	feed_echo(test, &c);
	rtnl_lock();
	eth_hw_addr_set(fx.dev, other);
	rtnl_unlock();
	release_sock(sk);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_PassiveOpens), opens);
	KUNIT_EXPECT_EQ(test, sk->sk_ack_backlog, 0u);
	KUNIT_EXPECT_EQ(test, fx.ed->link->npeers, 0u);
	/* its cookie has made no connection, so the echo may come again */
	rtnl_lock();
	eth_hw_addr_set(fx.dev, known);
	rtnl_unlock();
	echo_connects(test, &c);
}

/* The device leaves while an echo waits in the listener's backlog. */
static void listen__device_leaves_meanwhile(struct kunit *test)
{
	unsigned long opens = mib(ESP_MIB_PassiveOpens);
	struct t_conn c;
	struct sock *sk;

	begin_handshake(test, &c);
	sk = fx.listener->sk;
	lock_sock(sk);
	feed_echo(test, &c);
	lose_device();
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_PassiveOpens), opens);
	KUNIT_EXPECT_EQ(test, sk->sk_ack_backlog, 0u);
	KUNIT_EXPECT_EQ(test, sock_error(sk), -ENETDOWN);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&fx.out), 0u);
}

/*
 * A frame finds its socket, waits for it, and the socket is another one by then: a listener in
 * the place of a connection, or a connection in the place of a listener. The states are set by
 * hand, because calls process the frames that wait.
 */
static void listen__frame_of_another_time(struct kunit *test)
{
	unsigned long invalid = mib(ESP_MIB_CookieInvalid), bad = mib(ESP_MIB_InCookie);
	struct t_conn c, late;
	struct sock *sk;
	u32 recv_seq;

	open_conn(test, &c, 0, 4);
	recv_seq = c.esp->recv_seq;
	sk = c.sock->sk;
	lock_sock(sk);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	feed_syn(test, &c);
	esp_set_state(sk, TCP_LISTEN);
	release_sock(sk);
	esp_set_state(sk, TCP_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieInvalid), invalid + 2);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, recv_seq);
	silence(test);
	close_conn(test, &c);

	sk = fx.listener->sk;
	new_conn(&late, 1);
	syn(test, &late);
	late.grant = 4;
	lock_sock(sk);
	feed_echo(test, &late);
	esp_set_state(sk, TCP_ESTABLISHED);
	release_sock(sk);
	esp_set_state(sk, TCP_LISTEN);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCookie), bad + 1);
	KUNIT_EXPECT_EQ(test, sk->sk_ack_backlog, 0u);
	silence(test);
	echo_connects(test, &late);
}

/* A SYN whose number does not follow from its cookie, or whose cookie is 0, gets no answer. */
static void listen__bad_syn_is_silent(struct kunit *test)
{
	unsigned long bad = mib(ESP_MIB_InCookie);
	struct esp_frame f;
	struct t_conn c;

	start_listener(test);
	new_conn(&c, 0);
	conn_frame(&c, &f, ESP_SYN, esp_isn(c.cookie) + 1, 0);
	add_hello(&c, &f);
	feed_frame(test, c.mac, &f, NULL);
	f.peer_cookie = 0;
	f.pkt_seq = esp_isn(0);
	feed_frame(test, c.mac, &f, NULL);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCookie), bad + 2);
}

/* Stream and seqpacket refuse each other in the handshake. */
static void listen__type_mismatch_resets(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	start_listener(test);
	new_conn(&c, 0);
	hello_frame(&c, &f, ESP_SYN);
	f.type = SOCK_SEQPACKET;
	feed_frame(test, c.mac, &f, NULL);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, esp_isn(c.cookie) + 1);
	silence(test);
}

/* Data may come with the echo, and the echo may come twice. */
static void listen__data_in_echo(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	begin_handshake(test, &c);
	echo_frame(&c, &f, 4);
	f.flags |= ESP_TXS | ESP_TXF;
	f.len = 10;
	feed_frame(test, c.mac, &f, NULL);
	feed_frame(test, c.mac, &f, NULL);
	take_conn(test, &c, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);

	expect_data(test, &c, c.seq, 1, 10);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, &f, 1), -EAGAIN);
	close_conn(test, &c);
}

/* A SYN|ACK gets no RST: who sends it keeps nothing, and a forged SYN may have asked for it. */
static void listen__no_reset_for_a_syn_ack(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	start_listener(test);
	new_conn(&c, 0);
	hello_frame(&c, &f, ESP_SYN | ESP_ACK);
	feed_frame(test, c.mac, &f, NULL);
	silence(test);
	f.dport++;
	feed_frame(test, c.mac, &f, NULL);
	silence(test);
}

static struct kunit_case listen_cases[] = {
	KUNIT_CASE(listen__syn_leaves_no_state),
	KUNIT_CASE(listen__echo_makes_child),
	KUNIT_CASE(listen__bad_echo_is_refused),
	KUNIT_CASE(listen__echo_of_another_slot),
	KUNIT_CASE(listen__echo_comes_late),
	KUNIT_CASE(listen__slot_ends_early),
	KUNIT_CASE(listen__echo_finds_it_full),
	KUNIT_CASE(listen__echo_finds_it_full_later),
	KUNIT_CASE(listen__copy_comes_meanwhile),
	KUNIT_CASE(listen__copy_comes_at_once),
	KUNIT_CASE(listen__copy_finds_it_full),
	KUNIT_CASE(listen__two_cookies_of_one),
	KUNIT_CASE(listen__address_changes_meanwhile),
	KUNIT_CASE(listen__device_leaves_meanwhile),
	KUNIT_CASE(listen__frame_of_another_time),
	KUNIT_CASE(listen__bad_syn_is_silent),
	KUNIT_CASE(listen__type_mismatch_resets),
	KUNIT_CASE(listen__data_in_echo),
	KUNIT_CASE(listen__no_reset_for_a_syn_ack),
	{}
};
