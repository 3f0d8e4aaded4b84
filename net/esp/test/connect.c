// SPDX-License-Identifier: GPL-2.0-only
/* Connections: how a client begins them. Included by suite.c, after harness.c. */

/* Call connect() to the peer. */
static void call_peer(struct kunit *test, struct t_conn *c)
{
	struct sockaddr_esp a = {
		.sesp_family	= esp_family,
		.sesp_port	= htons(T_PEER_PORT),
		.sesp_ifindex	= fx.dev->ifindex,
		.sesp_halen	= ETH_ALEN,
	};

	new_conn(c, 0);
	ether_addr_copy(a.sesp_addr, c->mac);
	c->sock = new_socket(test, SOCK_STREAM);
	c->esp = esp_sk(c->sock->sk);
	KUNIT_EXPECT_EQ(test, kernel_connect(c->sock, (struct sockaddr_unsized *)&a,
					     sizeof(a), O_NONBLOCK), -EINPROGRESS);
}

/* Take the SYN of call_peer(). */
static void take_syn(struct kunit *test, struct t_conn *c)
{
	struct sk_buff *skb = next_skb(T_ANSWER_MS);
	struct esp_frame f;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	read_frame(test, skb, &f, NULL);
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, f.flags, ESP_SYN);
	KUNIT_EXPECT_EQ(test, f.cookie, 0u);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, esp_isn(f.peer_cookie));
	c->their_cookie = f.peer_cookie;
	c->ack = f.pkt_seq + 1;
	c->ts = f.ts_val;
}

static void begin_connect(struct kunit *test, struct t_conn *c)
{
	call_peer(test, c);
	take_syn(test, c);
}

/* Close a socket that may still try to connect. */
static void give_up(struct t_conn *c)
{
	sock_release(c->sock);
	skb_queue_purge(&fx.out);
}

/* Read the next frame that is not a retransmitted SYN. */
static void next_but_syn(struct kunit *test, struct esp_frame *f)
{
	struct sk_buff *skb;

	do {
		skb = next_skb(T_ANSWER_MS);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		read_frame(test, skb, f, NULL);
		kfree_skb(skb);
	} while (f->flags == ESP_SYN);
}

/* connect(): the client sends a SYN, gets a SYN|ACK, and echoes until the first reply. */
static void connect__echoes_until_reply(struct kunit *test)
{
	unsigned long ignored = mib(ESP_MIB_InResetsIgnored);
	u8 hello = ESP_HAS_HELLO | ESP_HAS(ESP_OPT_ADVICE);
	struct esp_frame f;
	struct t_conn c;

	begin_connect(test, &c);
	/* an RST that acknowledges another SYN, or comes with another cookie */
	conn_frame(&c, &f, ESP_RST | ESP_ACK, 0, 0);
	f.ack_seq++;
	feed_frame(test, c.mac, &f, NULL);
	f.ack_seq--;
	f.cookie ^= 1;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InResetsIgnored), ignored + 2);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_SYN_SENT);

	/* a SYN|ACK for another cookie: nothing happens */
	hello_frame(&c, &f, ESP_SYN | ESP_ACK);
	f.grant = 5;
	f.cookie ^= 1;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_SYN_SENT);

	f.cookie ^= 1;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	next_but_syn(test, &f);
	KUNIT_EXPECT_EQ(test, f.flags, ESP_ACK);
	KUNIT_EXPECT_EQ(test, f.cookie, c.cookie);
	KUNIT_EXPECT_EQ(test, f.opts & hello, hello);
	KUNIT_EXPECT_EQ(test, f.advice, 5);
	KUNIT_EXPECT_EQ(test, f.peer_cookie, c.their_cookie);

	/* the first reply */
	c.grant = 5;
	feed_ack(test, &c, 5);
	skb_queue_purge(&fx.out);
	feed(test, &c, ESP_TXS, c.seq - 1, 0);	/* a keepalive probe */
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, (u32)f.opts, 0);
	KUNIT_EXPECT_EQ(test, f.hlen, ESP_HLEN);
	close_conn(test, &c);
}

/*
 * A SYN|ACK of another type of socket refuses the connection. So does one that does not confirm
 * the TCP server that the client asks for (ESP_TCP_DEST).
 */
static void connect__another_server(struct kunit *test)
{
	static const int counter[] = { ESP_MIB_TypeMismatch, ESP_MIB_TcpMismatch };
	struct esp_frame f;
	struct t_conn c;
	int i;

	for (i = 0; i < 2; i++) {
		unsigned long was = mib(counter[i]);

		begin_connect(test, &c);
		lock_sock(c.sock->sk);
		c.esp->tcp_name = i ? 0x0a010002 : 0;	/* 10.1.0.2 */
		release_sock(c.sock->sk);
		hello_frame(&c, &f, ESP_SYN | ESP_ACK);
		if (!i)
			f.type = SOCK_SEQPACKET;
		feed_frame(test, c.mac, &f, NULL);
		KUNIT_EXPECT_EQ(test, mib(counter[i]), was + 1);
		KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_CLOSE);
		KUNIT_EXPECT_EQ(test, sock_error(c.sock->sk), -ECONNREFUSED);
		give_up(&c);
	}
}

/*
 * SYNs cross. A SYN with a number that does not follow from its cookie, or with another
 * socket type, is ignored.
 */
static void connect__crossed_by_a_bad_syn(struct kunit *test)
{
	unsigned long bad = mib(ESP_MIB_InCookie), mismatch = mib(ESP_MIB_TypeMismatch);
	struct esp_frame f;
	struct t_conn c;
	struct sock *sk;

	begin_connect(test, &c);
	sk = c.sock->sk;
	conn_frame(&c, &f, ESP_SYN, esp_isn(c.cookie) + 1, 0);
	add_hello(&c, &f);
	f.cookie = 0;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCookie), bad + 1);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_SYN_SENT);
	f.pkt_seq--;
	f.type = SOCK_SEQPACKET;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_TypeMismatch), mismatch + 1);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_SYN_SENT);
	feed_syn(test, &c);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_SYN_SENT);
	next_but_syn(test, &f);
	KUNIT_EXPECT_EQ(test, f.flags, ESP_SYN | ESP_ACK);
	KUNIT_EXPECT_EQ(test, f.ack_seq, esp_isn(c.cookie) + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCookie), bad + 1);
	give_up(&c);
}

/*
 * Answers that are not quite right for the SYN: a SYN|ACK with another number or another
 * acknowledgment, a SYN without a cookie, and an RST of another version, which ends the attempt.
 */
static void connect__answers_askew(struct kunit *test)
{
	unsigned long bad = mib(ESP_MIB_InCookie);
	struct esp_frame f;
	struct t_conn c;
	struct sock *sk;
	int i;

	begin_connect(test, &c);
	sk = c.sock->sk;
	for (i = 0; i < 3; i++) {
		hello_frame(&c, &f, i < 2 ? ESP_SYN | ESP_ACK : ESP_SYN);
		f.pkt_seq += i == 0;
		f.ack_seq += i == 1;
		if (i == 2) {
			f.cookie = 0;
			f.peer_cookie = 0;
			f.pkt_seq = esp_isn(0);
		}
		feed_frame(test, c.mac, &f, NULL);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCookie), bad + i + 1);
		KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_SYN_SENT);
	}
	conn_frame(&c, &f, ESP_RST | ESP_ACK, 0, 0);
	f.version = ESP_VERSION + 1;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, sock_error(sk), -EPROTONOSUPPORT);
	give_up(&c);
}

/*
 * SYNs cross, and one of the clients asks for a TCP server (ESP_TCP_DEST): they do not connect to
 * each other.
 */
static void connect__crossed_with_tcp(struct kunit *test)
{
	unsigned long other = mib(ESP_MIB_TcpMismatch), bad = mib(ESP_MIB_InCookie);
	struct esp_frame f;
	struct t_conn c;
	struct sock *sk;

	begin_connect(test, &c);
	sk = c.sock->sk;
	hello_frame(&c, &f, ESP_SYN);
	f.opts |= ESP_HAS(ESP_OPT_FEATURES);
	f.features |= ESP_FEATURE_TCP;
	f.cookie = 0;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_TcpMismatch), other + 1);
	lock_sock(sk);
	c.esp->tcp_name = 0x0a010002;	/* 10.1.0.2 */
	release_sock(sk);
	feed_syn(test, &c);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_TcpMismatch), other + 2);
	echo_frame(&c, &f, 4);
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCookie), bad + 1);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_SYN_SENT);
	give_up(&c);
}

/*
 * A stranger that only knows the ports sends a SYN in the peer's name. It is answered, but the
 * connection is made with the peer that has our cookie.
 */
static void connect__forged_syn(struct kunit *test)
{
	struct t_conn c, forged;
	struct esp_frame f;

	begin_connect(test, &c);
	forged = c;
	forged.cookie ^= 0x55;
	feed_syn(test, &forged);
	next_but_syn(test, &f);
	KUNIT_EXPECT_EQ(test, f.flags, ESP_SYN | ESP_ACK);
	KUNIT_EXPECT_EQ(test, f.cookie, forged.cookie);
	hello_frame(&c, &f, ESP_SYN | ESP_ACK);
	f.grant = 5;
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, c.esp->peer_cookie, c.cookie);
	next_but_syn(test, &f);
	KUNIT_EXPECT_EQ(test, f.cookie, c.cookie);
	close_conn(test, &c);
}

/*
 * SYNs cross, and the peer's SYN|ACK is lost. Its echo, which has our cookie, connects, and is
 * answered; an echo that lacks an option, or acknowledges another SYN, does not.
 */
static void connect__crossed_and_echoed(struct kunit *test)
{
	unsigned long bad = mib(ESP_MIB_InCookie);
	struct esp_frame f;
	struct t_conn c;

	begin_connect(test, &c);
	feed_syn(test, &c);
	next_but_syn(test, &f);
	c.advice = f.grant;
	echo_frame(&c, &f, 4);
	f.ack_seq++;
	feed_frame(test, c.mac, &f, NULL);
	f.ack_seq--;
	f.opts &= ~ESP_HAS(ESP_OPT_MSS);
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_SYN_SENT);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InCookie), bad + 2);
	echo_frame(&c, &f, 4);
	feed_frame(test, c.mac, &f, NULL);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	next_but_syn(test, &f);
	KUNIT_EXPECT_EQ(test, f.flags, ESP_ACK);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq);
	close_conn(test, &c);
}

/*
 * The peer's SYN opens a connection where there is one already. The old connection stays
 * while the peer answers its probes. If the peer does not, the old connection ends after a
 * while, and the next SYN is answered.
 */
static void stale__makes_room(struct kunit *test)
{
	struct t_conn c, anew;
	struct esp_frame f;
	u8 byte;
	int i;

	open_conn(test, &c, 0, 4);
	feed_syn(test, &c);		/* the SYN of this connection, late */
	silence(test);
	new_conn(&anew, 0);
	anew.cookie ^= 0x55;
	for (i = 0; i < 3; i++) {
		feed_syn(test, &anew);
		next(test, &c, ESP_ACK | ESP_TXS, &f);
	}
	c.esp->syn_since -= 3600ull * 1000 * 1000;
	feed_ack(test, &c, 4);		/* the peer still has the connection */
	for (i = 0; i < 5; i++) {
		feed_syn(test, &anew);
		next(test, &c, ESP_ACK | ESP_TXS, &f);
	}
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	c.esp->syn_since -= 3600ull * 1000 * 1000;
	feed_syn(test, &anew);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, recv_bytes(&c, &byte, 1), -ECONNRESET);
	silence(test);
	syn(test, &anew);
	sock_release(c.sock);
}

static struct kunit_case connect_cases[] = {
	KUNIT_CASE(connect__echoes_until_reply),
	KUNIT_CASE(connect__another_server),
	KUNIT_CASE(connect__crossed_by_a_bad_syn),
	KUNIT_CASE(connect__answers_askew),
	KUNIT_CASE(connect__crossed_with_tcp),
	KUNIT_CASE(connect__forged_syn),
	KUNIT_CASE(connect__crossed_and_echoed),
	KUNIT_CASE(stale__makes_room),
	{}
};
