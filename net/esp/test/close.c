// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections: how they end (close.c). Included by suite.c, after harness.c.
 */

/* Feed a FIN, and expect its ACK at once. */
static void fin_acked(struct kunit *test, struct t_conn *c, u32 seq)
{
	struct esp_frame f;

	feed(test, c, ESP_FIN, seq, 0);
	next(test, c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, seq + 1);
}

/* Shut down the socket, expect its FIN, and return the FIN's number. */
static u32 send_our_fin(struct kunit *test, struct t_conn *c)
{
	struct esp_frame f;

	KUNIT_EXPECT_EQ(test, kernel_sock_shutdown(c->sock, SHUT_WR), 0);
	next(test, c, ESP_ACK | ESP_FIN, &f);
	return f.pkt_seq;
}

/* Expect an RST with number @seq. */
static void resets(struct kunit *test, struct t_conn *c, u32 seq)
{
	struct esp_frame f;

	next(test, c, ESP_ACK | ESP_RST, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, seq);
}

/* Close the socket so that it sends an RST, and expect that with number @seq. */
static void ends_by_reset(struct kunit *test, struct t_conn *c, u32 seq)
{
	sock_no_linger(c->sock->sk);
	sock_release(c->sock);
	c->sock = NULL;
	resets(test, c, seq);
}

/* A FIN takes a number, is acknowledged, and ends the stream. */
static void fin__ends_the_stream(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;
	u8 byte;

	conf()->time_wait_ms = 1;
	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 1);
	feed(test, &c, ESP_FIN, c.seq + 1, 0);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_CLOSE_WAIT);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, &byte, 1), 1);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, &byte, 1), 0);
	/* half-close: the socket may still send */
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "x", 1, 0), 1);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 2);
	KUNIT_EXPECT_EQ(test, kernel_sock_shutdown(c.sock, SHUT_WR), 0);
	next(test, &c, ESP_ACK | ESP_FIN, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack + 1);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_LAST_ACK);
	c.ack += 2;
	c.seq += 2;
	feed_ack(test, &c, 0);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_CLOSE);
	sock_release(c.sock);
	silence(test);
}

/* The ACK of the first FIN rides on the second FIN. The ACK of the second FIN leaves at once. */
static void fin__ack_rides(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	conf()->ack_delay_us = T_NEVER_US;
	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_FIN, c.seq, 0);
	silence(test);
	KUNIT_EXPECT_EQ(test, kernel_sock_shutdown(c.sock, SHUT_WR), 0);
	next(test, &c, ESP_ACK | ESP_FIN, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	silence(test);
	close_conn(test, &c);

	open_conn(test, &c, 0, 4);
	send_our_fin(test, &c);
	c.ack++;
	fin_acked(test, &c, c.seq);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_TIME_WAIT);
	close_conn(test, &c);

	/* the user does not close: the ACK leaves after ack_delay_us, before the peer's timer */
	conf()->ack_delay_us = 2000;
	open_conn(test, &c, 0, 4);
	fin_acked(test, &c, c.seq);
	close_conn(test, &c);
}

/*
 * The ACK of a FIN leaves at once if the FIN was retransmitted, came after a gap, or stands in
 * place of TXF, and without ack_delay_us.
 */
static void fin__ack_at_once(struct kunit *test)
{
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;

	conf()->ack_delay_us = T_NEVER_US;
	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_FIN, c.seq, 0);
	silence(test);
	fin_acked(test, &c, c.seq);	/* the peer's timer was shorter */
	close_conn(test, &c);

	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_FIN, c.seq + 1, 0);	/* after the lost packet */
	next(test, &c, ESP_ACK | ESP_RRQ, &f);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 1);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 2);
	close_conn(test, &c);

	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS, c.seq, 1);
	next(test, &c, ESP_ACK, &f);
	while ((skb = next_skb(3)))	/* a further grant */
		kfree_skb(skb);
	fin_acked(test, &c, c.seq + 1);	/* in place of TXF */
	close_conn(test, &c);

	conf()->ack_delay_us = 0;
	open_conn(test, &c, 0, 4);
	fin_acked(test, &c, c.seq);
	close_conn(test, &c);
}

/*
 * Two RSTs follow a FIN that has no ACK: one with the number after the FIN, and one with the
 * number of the FIN, which may have been lost.
 */
static void fin__reset_behind_it(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;
	u32 fin;

	open_conn(test, &c, 0, 4);
	fin = send_our_fin(test, &c);
	ends_by_reset(test, &c, fin + 1);
	resets(test, &c, fin);
	silence(test);

	/* the data before the FIN has no ACK either: one RST, with the number of the data */
	open_conn(test, &c, 1, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "x", 1, 0), 1);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	send_our_fin(test, &c);
	ends_by_reset(test, &c, c.ack);
	silence(test);
}

/* The same two RSTs follow if the peer does not acknowledge the FIN in time. */
static void fin__timed_out(struct kunit *test)
{
	unsigned long ended = mib(ESP_MIB_AbortOnTimeout);
	struct t_conn c;
	u32 fin;
	u8 byte;

	conf()->rto_min_us = 2000;
	conf()->ack_delay_us = 0;
	open_conn(test, &c, 0, 4);
	c.esp->user_timeout_ms = 1;
	fin = send_our_fin(test, &c);
	resets(test, &c, fin + 1);
	resets(test, &c, fin);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_AbortOnTimeout), ended + 1);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, &byte, 1), -ETIMEDOUT);
	sock_release(c.sock);
	silence(test);
}

/* close() sends an RST if the user has not read all that has come, or what came after a gap. */
static void rst__for_what_is_not_read(struct kunit *test)
{
	struct t_conn c;
	int i;

	conf()->ack_delay_us = 0;	/* no ACK leaves between data and RST */
	for (i = 0; i < 2; i++) {
		open_conn(test, &c, i, 4);
		feed(test, &c, ESP_TXS | ESP_TXF, c.seq + i, 10);
		skb_queue_purge(&fx.out);
		sock_release(c.sock);
		resets(test, &c, c.ack);
		skb_queue_purge(&fx.out);
	}
}

/* Too many closed sockets: close() with data that aren't acknowledged sends an RST. */
static void orphan__refused(struct kunit *test)
{
	unsigned long refused = mib(ESP_MIB_AbortOnMemory);
	unsigned long cut = mib(ESP_MIB_TimeWaitOverflow);
	int before, had = esp_max_orphans;
	struct esp_frame f;
	struct t_conn c;

	conf()->time_wait_ms = 60000;
	start_listener(test);
	before = count_socks();
	open_conn(test, &c, 0, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "x", 1, 0), 1);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	esp_max_orphans = -1;
	sock_release(c.sock);
	next(test, &c, ESP_ACK | ESP_FIN, &f);
	resets(test, &c, c.ack);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_AbortOnMemory), refused + 1);
	EVENTUALLY(test, count_socks() == before);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_TimeWaitOverflow), cut + 1);
	esp_max_orphans = had;
}

/* There are too many closed sockets when one of them would retransmit: it sends an RST instead. */
static void orphan__refused_later(struct kunit *test)
{
	unsigned long refused = mib(ESP_MIB_AbortOnMemory);
	int before, had = esp_max_orphans;
	struct esp_frame f;
	struct t_conn c;

	start_listener(test);
	before = count_socks();
	open_conn(test, &c, 0, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "x", 1, 0), 1);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	sock_hold(&c.esp->sk);
	sock_release(c.sock);
	next(test, &c, ESP_ACK | ESP_FIN, &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_AbortOnMemory), refused);
	esp_max_orphans = -1;
	lock_sock(&c.esp->sk);
	esp_timer_set(c.esp, ESP_T_SEND, esp_now());
	release_sock(&c.esp->sk);
	resets(test, &c, c.ack);
	EVENTUALLY(test, count_socks() == before);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_AbortOnMemory), refused + 1);
	esp_max_orphans = had;
	sock_put(&c.esp->sk);
	silence(test);
}

/* There is no room for sockets that only wait for the peer's FIN: one ends at once. */
static void orphan__waits_short(struct kunit *test)
{
	unsigned long cut = mib(ESP_MIB_TimeWaitOverflow);
	int before, had = esp_max_orphans;
	struct t_conn c;
	u32 fin;

	conf()->time_wait_ms = 60000;
	conf()->fin_timeout_ms = 60000;
	start_listener(test);
	before = count_socks();
	open_conn(test, &c, 0, 4);
	fin = send_our_fin(test, &c);
	sock_release(c.sock);
	KUNIT_EXPECT_EQ(test, count_socks(), before + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_TimeWaitOverflow), cut);
	esp_max_orphans = 0;
	c.ack = fin + 1;
	feed_ack(test, &c, 0);
	EVENTUALLY(test, count_socks() == before);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_TimeWaitOverflow), cut + 1);
	esp_max_orphans = had;
	skb_queue_purge(&fx.out);
}

/* A peer that acknowledges packet by packet doesn't keep a closed socket for ever. */
static void orphan__has_an_end(struct kunit *test)
{
	u64 wait = 10000000, *at;
	struct t_conn c;
	u8 buf[40] = {};
	u32 i;

	conf()->fin_timeout_ms = 10000;
	open_conn(test, &c, 0, 60);
	for (i = 0; i < sizeof(buf); i++)
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 1, 0), 1);
	sock_hold(&c.esp->sk);
	sock_release(c.sock);
	at = &c.esp->deadline[ESP_T_CONN];
	KUNIT_EXPECT_LE(test, *at, esp_now() + wait);
	KUNIT_EXPECT_GT(test, *at, c.esp->orphaned_at);
	for (i = 0; i < 5; i++) {
		u64 now = esp_now();

		c.ack++;
		feed_ack(test, &c, 60);
		KUNIT_EXPECT_EQ(test, c.esp->snd.una_seq, c.ack);
		KUNIT_EXPECT_GE(test, *at, now + wait);
	}
	c.esp->orphaned_at -= 9 * wait + wait / 2;	/* time passes */
	c.ack++;
	feed_ack(test, &c, 60);
	KUNIT_EXPECT_EQ(test, c.esp->snd.una_seq, c.ack);
	KUNIT_EXPECT_LE(test, *at, c.esp->orphaned_at + 10 * wait);
	c.esp->orphaned_at = esp_now() - 10 * wait;
	c.ack++;
	feed_ack(test, &c, 60);
	EVENTUALLY(test, c.esp->sk.sk_state == TCP_TIME_WAIT || c.esp->sk.sk_state == TCP_CLOSE);
	sock_put(&c.esp->sk);
	skb_queue_purge(&fx.out);
}

/* RST: valid only with the cookie and pkt_seq == recv_seq. */
static void rst__needs_cookie_and_number(struct kunit *test)
{
	unsigned long ignored = mib(ESP_MIB_InResetsIgnored);
	unsigned long taken = mib(ESP_MIB_InResets);
	struct esp_frame f;
	struct t_conn c;
	u8 byte;

	open_conn(test, &c, 0, 4);
	c.their_cookie ^= 1;
	feed(test, &c, ESP_RST, c.seq, 0);
	c.their_cookie ^= 1;
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InResetsIgnored), ignored + 1);
	/* right cookie, wrong number: a probe has the right number, and this end's cookie */
	feed(test, &c, ESP_RST, c.seq + 1, 0);
	next(test, &c, ESP_TXS | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq);
	KUNIT_EXPECT_TRUE(test, f.opts & ESP_HAS(ESP_OPT_COOKIE));
	KUNIT_EXPECT_EQ(test, f.peer_cookie, c.their_cookie);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InResetsIgnored), ignored + 2);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	feed(test, &c, ESP_RST, c.seq, 0);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InResets), taken + 1);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, &byte, 1), -ECONNRESET);
	sock_release(c.sock);
}

/* Without a socket a SYN gets an RST, and a frame without a cookie gets no answer. */
static void rst__for_strangers(struct kunit *test)
{
	unsigned long nobody = mib(ESP_MIB_InNoSocket);
	struct esp_frame f;
	struct t_conn c;

	new_conn(&c, 0);
	feed_syn(test, &c);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, esp_isn(c.cookie) + 1);
	feed(test, &c, ESP_TXS | ESP_TXF, 5, 10);
	feed(test, &c, ESP_RST, 5, 0);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InNoSocket), nobody + 3);
	/* a frame with the peer's cookie, which asks whether the connection exists */
	conn_frame(&c, &f, ESP_ACK, 7, 0);
	f.ack_seq = 99;
	f.opts = ESP_HAS(ESP_OPT_COOKIE);
	f.peer_cookie = c.cookie;
	feed_frame(test, c.mac, &f, NULL);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.cookie, c.cookie);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, 99);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InNoSocket), nobody + 4);
}

/* The device gets another address: frames keep the old one until the connection ends. */
static void device__another_address(struct kunit *test)
{
	static const u8 other[ETH_ALEN] = { 2, 0, 0, 0, 0, 0x77 };
	unsigned long lost = mib(ESP_MIB_AbortOnDevice);
	u8 known[ETH_ALEN], byte;
	struct sk_buff *skb;
	struct esp_frame f;
	struct t_conn c;
	u32 seq;

	open_conn(test, &c, 0, 4);
	ether_addr_copy(known, fx.dev->dev_addr);
	/* the notifier is called a moment later */
	rtnl_lock();
	eth_hw_addr_set(fx.dev, other);
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "x", 1, 0), 1);
	skb = next_skb(T_ANSWER_MS);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_TRUE(test, ether_addr_equal(eth_hdr(skb)->h_source, known));
	kfree_skb(skb);
	rtnl_lock();
	call_netdevice_notifiers(NETDEV_CHANGEADDR, fx.dev);
	rtnl_unlock();
	/* the peer is told, whether it has the packet or not, by frames with the old address */
	for (seq = c.ack; seq <= c.ack + 1; seq++) {
		skb = next_skb(T_ANSWER_MS);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		KUNIT_EXPECT_TRUE(test, ether_addr_equal(eth_hdr(skb)->h_source, known));
		KUNIT_ASSERT_EQ(test, (int)esp_wire_parse(skb->data + ETH_HLEN, ESP_HLEN, ESP_HLEN,
							  &f), ESP_WIRE_OK);
		KUNIT_EXPECT_EQ(test, f.flags, ESP_RST | ESP_ACK);
		KUNIT_EXPECT_EQ(test, f.pkt_seq, seq);
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, &byte, 1), -ENETDOWN);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_AbortOnDevice), lost + 1);
	sock_release(c.sock);
	silence(test);
}

/* A process owns the socket when the device changes: the socket learns it when it is released. */
static void device__changes_meanwhile(struct kunit *test)
{
	static const u8 other[ETH_ALEN] = { 2, 0, 0, 0, 0, 0x77 };
	struct sockaddr_esp a, none = { .sesp_ifindex = fx.dev->ifindex };
	struct t_conn c[2];
	u8 mac[ETH_ALEN];
	struct sock *sk;
	int i;

	for (i = 0; i < 2; i++)
		open_conn(test, &c[i], i, 4);
	sk = c[0].sock->sk;
	lock_sock(sk);
	ether_addr_copy(mac, fx.dev->dev_addr);
	rtnl_lock();
	eth_hw_addr_set(fx.dev, other);
	call_netdevice_notifiers(NETDEV_CHANGEADDR, fx.dev);
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, c[1].sock->sk->sk_state, TCP_CLOSE);
	lose_device();
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_ESTABLISHED);
	/* it still has the address that its peer knows, and leads nowhere */
	esp_addr_local(sk, &a);
	KUNIT_EXPECT_TRUE(test, ether_addr_equal(a.sesp_addr, mac));
	KUNIT_EXPECT_EQ(test, esp_connect_device(sk, &none), -ENODEV);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, sock_error(c[i].sock->sk), -ENETDOWN);
		sock_release(c[i].sock);
	}
}

/* SOCK_DESTROY of a socket whose connect() waits, and of one that has been closed. */
static void kill__early_and_late(struct kunit *test)
{
	unsigned long resets = mib(ESP_MIB_OutResets);
	struct t_conn c;
	struct sock *sk;
	int i;

	begin_connect(test, &c);
	KUNIT_EXPECT_EQ(test, esp_kill(c.sock->sk, ECONNABORTED), 0);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, sock_error(c.sock->sk), -ECONNABORTED);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutResets), resets);
	for (i = 0; i < 2; i++) {
		sk = c.sock->sk;
		sock_hold(sk);
		sock_release(c.sock);
		KUNIT_EXPECT_EQ(test, i ? esp_dgram_kill(sk, ECONNABORTED) :
				      esp_kill(sk, ECONNABORTED), -ENOENT);
		sock_put(sk);
		if (!i)
			c.sock = new_socket(test, SOCK_DGRAM);
	}
	skb_queue_purge(&fx.out);
}

/* SOCK_DESTROY comes after close() has begun, and before the socket is marked as dead. */
static void dgram__killed_in_close(struct kunit *test)
{
	struct socket *sock = new_socket(test, SOCK_DGRAM);
	struct sock *sk = sock->sk;

	sock->sk = NULL;
	KUNIT_EXPECT_EQ(test, esp_dgram_kill(sk, ECONNABORTED), 0);
	KUNIT_EXPECT_EQ(test, sock_error(sk), -ECONNABORTED);
	sock->sk = sk;
	sock_release(sock);
}

static struct kunit_case close_cases[] = {
	KUNIT_CASE(fin__ends_the_stream),
	KUNIT_CASE(fin__ack_rides),
	KUNIT_CASE(fin__ack_at_once),
	KUNIT_CASE(fin__reset_behind_it),
	KUNIT_CASE(fin__timed_out),
	KUNIT_CASE(rst__for_what_is_not_read),
	KUNIT_CASE(orphan__refused),
	KUNIT_CASE(orphan__refused_later),
	KUNIT_CASE(orphan__waits_short),
	KUNIT_CASE(orphan__has_an_end),
	KUNIT_CASE(rst__needs_cookie_and_number),
	KUNIT_CASE(rst__for_strangers),
	KUNIT_CASE(device__another_address),
	KUNIT_CASE(device__changes_meanwhile),
	KUNIT_CASE(kill__early_and_late),
	KUNIT_CASE(dgram__killed_in_close),
	{}
};
