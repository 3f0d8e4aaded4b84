// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests for memory that fail. Included by suite.c, after parts.c.
 *
 * In the first tests no frame can be made, because the device wants more room in front of each
 * than the kernel gives. In the others, which need the kernel's fault injection, each request
 * of a call fails in turn.
 */

/* From now on there is no memory for frames, or there is some again. */
static void no_memory(bool on)
{
	WRITE_ONCE(fx.ed->headroom, on ? 1 << 30 : LL_RESERVED_SPACE(fx.dev));
}

/* A listener that can't answer a SYN answers the next one. */
static void nomem__syn_ack(struct kunit *test)
{
	unsigned long failed = mib(ESP_MIB_OutAllocFail);
	struct t_conn c;

	start_listener(test);
	new_conn(&c, 0);
	no_memory(true);
	feed_syn(test, &c);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutAllocFail), failed + 1);
	no_memory(false);
	syn(test, &c);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutAllocFail), failed + 1);
}

/* connect() goes on without its first SYN, because a timer sends the next one. */
static void nomem__syn(struct kunit *test)
{
	unsigned long failed = mib(ESP_MIB_OutAllocFail);
	struct t_conn c;

	no_memory(true);
	call_peer(test, &c);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&fx.out), 0u);
	KUNIT_EXPECT_GE(test, mib(ESP_MIB_OutAllocFail), failed + 1);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_SYN_SENT);
	no_memory(false);
	take_syn(test, &c);
	sock_release(c.sock);
	skb_queue_purge(&fx.out);
}

/* An ACK that is due leaves as soon as there is memory for it. */
static void nomem__ack(struct kunit *test)
{
	unsigned long failed = mib(ESP_MIB_OutAllocFail);
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	conf()->ack_delay_us = 2000;
	no_memory(true);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	EVENTUALLY(test, mib(ESP_MIB_OutAllocFail) > failed + 2);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&fx.out), 0u);
	no_memory(false);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	close_conn(test, &c);
}

/* The same of a request for missing packets. */
static void nomem__rrq(struct kunit *test)
{
	unsigned long failed = mib(ESP_MIB_OutAllocFail), rrqs = mib(ESP_MIB_OutRRQ);
	struct esp_frame f;
	struct t_conn c;

	conf()->rrq_min_us = 2000;
	conf()->rrq_max_ms = 10;
	conf()->retries = 1000;
	open_conn(test, &c, 0, 4);
	no_memory(true);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq + 1, 10);
	EVENTUALLY(test, mib(ESP_MIB_OutAllocFail) > failed + 2);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutRRQ), rrqs);
	no_memory(false);
	next(test, &c, ESP_ACK | ESP_RRQ, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq);
	close_conn(test, &c);
}

/* The FIN of a shutdown() leaves later. */
static void nomem__fin(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	no_memory(true);
	KUNIT_EXPECT_EQ(test, kernel_sock_shutdown(c.sock, SHUT_WR), 0);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_FIN_WAIT1);
	KUNIT_EXPECT_FALSE(test, c.esp->fin_queued);
	silence(test);
	no_memory(false);
	next(test, &c, ESP_ACK | ESP_FIN, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack);
	close_conn(test, &c);
}

/* A writer that does not wait gets an error, and may try again. */
static void nomem__write(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;
	int i;

	open_conn(test, &c, 0, 4);
	for (i = 0; i < 2; i++) {
		int len = i ? 10 : T_MSS;	/* in pages, or after the header */

		no_memory(true);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, "0123456789", 10, 0), -EAGAIN);
		no_memory(false);
		silence(test);
		KUNIT_EXPECT_TRUE(test, skb_queue_empty(&c.sock->sk->sk_write_queue));
		KUNIT_EXPECT_EQ(test, send_bytes(&c, pattern(test), len, 0), len);
		next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
		KUNIT_EXPECT_EQ(test, f.len, len);
		c.ack++;
		feed_ack(test, &c, 4);
	}
	close_conn(test, &c);
}

/* A record is refused as a whole if no other one can make room. */
static void nomem__record(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	fx.type = SOCK_SEQPACKET;
	open_conn(test, &c, 0, 4);
	no_memory(true);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "0123456789", 10, 0), -ENOBUFS);
	no_memory(false);
	silence(test);
	KUNIT_EXPECT_EQ(test, c.esp->notsent, 0u);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_seq, c.ack);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "0123456789", 10, 0), 10);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF | ESP_EOR, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack);
	close_conn(test, &c);
}

/* A packet that is lost is retransmitted later, as a whole or in parts. */
static void nomem__retransmission(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	int i;

	fx.parts = true;
	conf()->rto_min_us = 2000;
	conf()->rto_max_ms = 10;
	conf()->ack_delay_us = 0;
	conf()->retries = 1000;
	for (i = 0; i < 2; i++) {
		unsigned long failed;

		open_conn(test, &c, i, 4);
		KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, T_MSS, 0), T_MSS);
		next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
		no_memory(true);
		if (i)
			feed_mss(test, &c, 300, 4);
		failed = mib(ESP_MIB_OutAllocFail);
		EVENTUALLY(test, mib(ESP_MIB_OutAllocFail) > failed + 2);
		lose_frames();
		no_memory(false);
		next_with_data(test, &f);	/* questions come, too */
		KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack);
		KUNIT_EXPECT_EQ(test, !!(f.opts & ESP_HAS(ESP_OPT_PART)), i);
		close_conn(test, &c);
	}
}

/* The ACK of a grant that leaves the queue can't be made: the peer asks again. */
static void nomem__grant(struct kunit *test)
{
	unsigned long failed, released;
	struct t_conn a, b;
	struct esp_frame f;

	open_rivals(test, &a, &b);
	feed(test, &a, ESP_TXS, a.seq, 0);
	next(test, &a, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, ESP_GRANT_MIN);
	feed(test, &b, ESP_TXS, b.seq, 0);
	next(test, &b, ESP_ACK, &f);
	KUNIT_EXPECT_TRUE(test, b.esp->grant.queued);
	no_memory(true);
	failed = mib(ESP_MIB_OutAllocFail);
	released = mib(ESP_MIB_GrantReleased);
	feed(test, &a, ESP_TXS | ESP_TXF, a.seq, 300);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_GrantReleased), released + 1);
	KUNIT_EXPECT_GE(test, mib(ESP_MIB_OutAllocFail), failed + 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&b.esp->grant.outstanding), ESP_GRANT_MIN);
	silence(test);
	no_memory(false);
	/* b asks again, and gets what is its own already */
	feed(test, &b, ESP_TXS, b.seq, 0);
	next(test, &b, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.grant, ESP_GRANT_MIN);
	skb_queue_purge(&fx.out);
	close_conn(test, &a);
	close_conn(test, &b);
}

/* A buffer of eight packets can't be split where the grant ends. The next ACK tries again. */
static void nomem__split(struct kunit *test)
{
	unsigned long failed;
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 0);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 8 * T_MSS, 0), 8 * T_MSS);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, f.len, 0);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&c.sock->sk->sk_write_queue), 1u);
	no_memory(true);
	failed = mib(ESP_MIB_OutAllocFail);
	feed_ack(test, &c, 3);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutAllocFail), failed + 1);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&c.sock->sk->sk_write_queue), 1u);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, c.ack);
	no_memory(false);
	feed_ack(test, &c, 3);
	KUNIT_EXPECT_EQ(test, c.esp->snd.send_next, c.ack + 3);
	close_conn(test, &c);
}

static int send_to(struct socket *sock, struct sockaddr_esp *a)
{
	struct msghdr msg = {
		.msg_flags	= MSG_DONTWAIT,
		.msg_name	= a,
		.msg_namelen	= sizeof(*a),
	};
	struct kvec vec = { .iov_base = "0123456789", .iov_len = 10 };

	return kernel_sendmsg(sock, &msg, &vec, 1, 10);
}

static int call_connect(struct socket *sock, struct sockaddr_esp *a)
{
	return kernel_connect(sock, (struct sockaddr_unsized *)a, sizeof(*a), O_NONBLOCK);
}

static void peer_address(struct sockaddr_esp *a, __be16 port)
{
	static const u8 mac[ETH_ALEN] = { 2, 0, 0, 0, 0, 0x10 };

	memset(a, 0, sizeof(*a));
	a->sesp_family = esp_family;
	a->sesp_port = port;
	a->sesp_ifindex = fx.dev->ifindex;
	a->sesp_halen = ETH_ALEN;
	ether_addr_copy(a->sesp_addr, mac);
}

static void nomem__dgram(struct kunit *test)
{
	unsigned long failed = mib(ESP_MIB_OutAllocFail), out = mib(ESP_MIB_DgramOut);
	struct socket *sock = new_socket(test, SOCK_DGRAM);
	struct sockaddr_esp a;

	peer_address(&a, htons(T_PEER_PORT));
	no_memory(true);
	KUNIT_EXPECT_EQ(test, send_to(sock, &a), -ENOBUFS);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutAllocFail), failed + 1);
	no_memory(false);
	KUNIT_EXPECT_EQ(test, send_to(sock, &a), 10);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_DgramOut), out + 1);
	sock_release(sock);
}

/* Other sockets use all that net.esp.mem allows, or no longer. */
static void others_use_all(bool on)
{
	long n = esp_mem[2] + 1;

	atomic_long_add(on ? n : -n, &esp_memory_allocated);
	if (!on)
		WRITE_ONCE(esp_memory_pressure, 0);
}

/*
 * All sockets together have no memory left. A writer gets none. A packet is taken only if there is
 * nothing to read; the sender of another one, which had no grant, is told.
 */
static void nomem__others_use_all(struct kunit *test)
{
	unsigned long dropped = mib(ESP_MIB_InMemDrop);
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	c.esp->burst_told = 0;
	others_use_all(true);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, T_MSS, 0), -EAGAIN);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InMemDrop), dropped);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq + 1, 10);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_InMemDrop), dropped + 1);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	KUNIT_EXPECT_TRUE(test, c.esp->grant.rcv_mem_pressure);
	others_use_all(false);
	skb_queue_purge(&fx.out);
	expect_data(test, &c, c.seq, 1, 10);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, T_MSS, 0), T_MSS);
	close_conn(test, &c);
}

/* In a large transfer a socket charges memory ahead, unless that would be more than there is. */
static void nomem__not_ahead(struct kunit *test)
{
	int rsv = net_hotdata.sysctl_mem_pcpu_rsv;
	long had[3], most;
	struct t_conn c;
	u32 i;

	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS, c.seq, T_MSS);
	KUNIT_EXPECT_TRUE(test, c.esp->grant.recv_announced);
	/* each charge counts at once, and half of the limit is free */
	WRITE_ONCE(net_hotdata.sysctl_mem_pcpu_rsv, 1);
	most = 2 * atomic_long_read(&esp_memory_allocated) + 30;
	memcpy(had, esp_mem, sizeof(had));
	for (i = 0; i < 3; i++)
		WRITE_ONCE(esp_mem[i], most);
	for (i = 1; i < 8; i++) {
		feed(test, &c, 0, c.seq + i, T_MSS);
		KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + i + 1);
		KUNIT_EXPECT_LT(test, c.sock->sk->sk_forward_alloc, 2 * (int)PAGE_SIZE);
	}
	memcpy(esp_mem, had, sizeof(had));
	for (; i < 12; i++)
		feed(test, &c, 0, c.seq + i, T_MSS);
	KUNIT_EXPECT_GT(test, c.sock->sk->sk_forward_alloc, 40 * (int)PAGE_SIZE);
	WRITE_ONCE(net_hotdata.sysctl_mem_pcpu_rsv, rsv);
	expect_data(test, &c, c.seq, 12, T_MSS);
	close_conn(test, &c);
}

#ifdef CONFIG_FAILSLAB
#define T_REQUESTS	300	/* more than any of these calls makes */
#define T_ROUNDS	20

/*
 * A call is repeated. Each time another of its requests for memory fails, of those that may not
 * wait. The kernel's debugging code makes some, too, now and then. So it goes on from the first
 * request until the call has been refused often enough.
 */
struct t_faults {
	unsigned int	want;		/* refusals */
	unsigned int	refused;	/* the test counts them */
	unsigned int	nth, round;
};

static bool faults_go_on(const struct t_faults *t)
{
	return t->refused < t->want && t->nth < T_REQUESTS && t->round < T_ROUNDS;
}

static void faults_begin(struct t_faults *t)
{
	WRITE_ONCE(current->fail_nth, ++t->nth);
}

static void faults_end(struct t_faults *t)
{
	if (READ_ONCE(current->fail_nth)) {	/* the call made fewer requests */
		t->nth = 0;
		t->round++;
	}
	WRITE_ONCE(current->fail_nth, 0);
}

/* An echo that makes no connection leaves nothing, and may come again. */
static void nomem__each_of_an_echo(struct kunit *test)
{
	struct t_faults t = { .want = 4 };

	start_listener(test);
	while (faults_go_on(&t)) {
		unsigned long opens = mib(ESP_MIB_PassiveOpens);
		struct esp_frame f;
		struct t_conn c;

		new_conn(&c, 0);
		syn(test, &c);
		echo_frame(&c, &f, 4);
		faults_begin(&t);
		feed_frame(test, c.mac, &f, NULL);
		faults_end(&t);
		if (mib(ESP_MIB_PassiveOpens) == opens) {
			t.refused++;
			KUNIT_EXPECT_EQ(test, fx.listener->sk->sk_ack_backlog, 0u);
			EVENTUALLY(test, !READ_ONCE(fx.ed->link->npeers));
			echo_frame(&c, &f, 4);
			feed_frame(test, c.mac, &f, NULL);
		}
		KUNIT_ASSERT_EQ(test, kernel_accept(fx.listener, &c.sock, O_NONBLOCK), 0);
		c.esp = esp_sk(c.sock->sk);
		close_conn(test, &c);
	}
	KUNIT_EXPECT_EQ(test, t.refused, t.want);
}

static int call_bind(struct socket *sock, struct sockaddr_esp *a)
{
	eth_zero_addr(a->sesp_addr);
	return kernel_bind(sock, (struct sockaddr_unsized *)a, sizeof(*a));
}

/* Calls that need a port fail without memory for it, and work when they are tried again. */
static void nomem__each_of_a_call(struct kunit *test)
{
	static const struct {
		int	type, (*call)(struct socket *sock, struct sockaddr_esp *a), result;
	} v[] = {
		{ SOCK_STREAM, call_bind, 0 },
		{ SOCK_DGRAM, call_bind, 0 },
		{ SOCK_DGRAM, call_connect, 0 },
		{ SOCK_DGRAM, send_to, 10 },
		{ SOCK_STREAM, call_connect, -EINPROGRESS },
	};
	int i, err;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		struct t_faults t = { .want = 2 };

		while (faults_go_on(&t)) {
			struct sockaddr_esp a;
			struct socket *sock;

			KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, v[i].type, 0,
							       &sock), 0);
			peer_address(&a, htons(T_PEER_PORT));
			faults_begin(&t);
			err = v[i].call(sock, &a);
			faults_end(&t);
			if (err != v[i].result) {
				t.refused++;
				KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "call %d", i);
				KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_CLOSE);
				KUNIT_EXPECT_EQ(test, esp_sk(sock->sk)->sport, 0);
				KUNIT_EXPECT_EQ(test, v[i].call(sock, &a), v[i].result);
			}
			sock_release(sock);
		}
		KUNIT_EXPECT_EQ_MSG(test, t.refused, t.want, "call %d", i);
	}
	skb_queue_purge(&fx.out);
}

/* Each socket of a group gets a copy of its own. One that can't be made is counted. */
static void nomem__each_of_a_group(struct kunit *test)
{
	struct t_faults t = { .want = 4 };
	struct t_conn sock[2], peer;
	int i;

	new_conn(&peer, 0);
	for (i = 0; i < 2; i++)
		sock[i].sock = new_socket(test, SOCK_DGRAM);
	while (faults_go_on(&t)) {
		unsigned long in = mib(ESP_MIB_DgramIn), dropped = mib(ESP_MIB_DgramMemDrop);
		struct esp_frame f;
		struct sk_buff *skb;
		int got = 0;
		u8 byte[10];

		conn_frame(&peer, &f, 0, 0, 10);
		f.ts_val = 0;
		f.cookie = 0;
		skb = make_frame(test, peer.mac, &f, NULL);
		eth_broadcast_addr(((struct ethhdr *)skb->data)->h_dest);
		faults_begin(&t);
		receive(skb);
		faults_end(&t);
		for (i = 0; i < 2; i++)
			got += recv_bytes(&sock[i], byte, 10) == 10;
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_DgramIn), in + got);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_DgramMemDrop), dropped + 2 - got);
		t.refused += got < 2;
	}
	KUNIT_EXPECT_EQ(test, t.refused, t.want);
	for (i = 0; i < 2; i++)
		sock_release(sock[i].sock);
}

/* A device still has a clone of a buffer that is to leave again, so its header is copied. */
static void nomem__each_of_a_transmission(struct kunit *test)
{
	struct t_faults t = { .want = 4 };
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	struct sock *sk;
	int err;

	open_conn(test, &c, 0, 4);
	sk = c.sock->sk;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, T_MSS, 0), T_MSS);
	while (faults_go_on(&t)) {
		unsigned long before = mib(ESP_MIB_OutAllocFail);
		struct sk_buff *held;

		skb_queue_purge(&fx.out);
		lock_sock(sk);
		held = skb_clone(skb_peek(&sk->sk_write_queue), GFP_KERNEL);
		local_bh_disable();
		faults_begin(&t);
		err = esp_skb_xmit(sk, skb_peek(&sk->sk_write_queue), true);
		faults_end(&t);
		local_bh_enable();
		release_sock(sk);
		kfree_skb(held);
		if (!err)
			continue;
		t.refused++;
		KUNIT_EXPECT_EQ(test, err, -ENOMEM);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutAllocFail), before + 1);
		KUNIT_EXPECT_EQ(test, skb_queue_len(&fx.out), 0u);
	}
	KUNIT_EXPECT_EQ(test, t.refused, t.want);
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, esp_skb_xmit(sk, skb_peek(&sk->sk_write_queue), true), 0);
	release_sock(sk);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack);
	close_conn(test, &c);
}

/*
 * A GSO packet is received packet by packet, because one of its packets is here already; or a part
 * of a packet comes. Packets without memory count as lost, and may come again.
 */
static void nomem__each_of_a_packet(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, T_MSS, GFP_KERNEL);
	struct sk_buff *skb;
	struct t_conn c;
	int parts;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	open_conn(test, &c, 0, 8);
	for (parts = 0; parts < 2; parts++) {
		struct t_faults t = { .want = 4 };

		while (faults_go_on(&t)) {
			unsigned long dropped = mib(ESP_MIB_InMemDrop);

			skb = NULL;
			if (!parts) {
				feed(test, &c, 0, c.seq + 2, T_MSS);
				skb = new_run(test, &c, ESP_TXS | ESP_TXF, c.seq, 4, T_MSS, T_MSS);
			}
			faults_begin(&t);
			if (parts)
				feed_part(test, &c, ESP_TXS | ESP_TXF, c.seq, 0, 600, T_MSS);
			else
				receive(skb);
			faults_end(&t);
			if (mib(ESP_MIB_InMemDrop) != dropped) {
				t.refused++;
				KUNIT_EXPECT_LT(test, c.esp->recv_seq - c.seq, 4u);
				KUNIT_EXPECT_NULL(test, c.esp->part);
				if (parts)
					feed_part(test, &c, ESP_TXS | ESP_TXF, c.seq, 0, 600,
						  T_MSS);
				else
					feed_run(test, &c, ESP_TXS | ESP_TXF, c.seq, 4);
			}
			if (parts)
				feed_part(test, &c, ESP_TXS | ESP_TXF, c.seq, 600, 400, T_MSS);
			KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + (parts ? 1 : 4));
			if (parts)
				KUNIT_EXPECT_EQ(test, recv_bytes(&c, buf, T_MSS), T_MSS);
			else
				expect_data(test, &c, c.seq, 4, T_MSS);
			c.seq = c.esp->recv_seq;
			skb_queue_purge(&fx.out);
		}
		KUNIT_EXPECT_EQ(test, t.refused, t.want);
	}
	close_conn(test, &c);
}
#endif

static struct kunit_case nomem_cases[] = {
	KUNIT_CASE(nomem__syn_ack),
	KUNIT_CASE(nomem__syn),
	KUNIT_CASE(nomem__ack),
	KUNIT_CASE(nomem__rrq),
	KUNIT_CASE(nomem__fin),
	KUNIT_CASE(nomem__write),
	KUNIT_CASE(nomem__record),
	KUNIT_CASE(nomem__retransmission),
	KUNIT_CASE(nomem__grant),
	KUNIT_CASE(nomem__split),
	KUNIT_CASE(nomem__dgram),
	KUNIT_CASE(nomem__others_use_all),
	KUNIT_CASE(nomem__not_ahead),
#ifdef CONFIG_FAILSLAB
	KUNIT_CASE(nomem__each_of_an_echo),
	KUNIT_CASE(nomem__each_of_a_call),
	KUNIT_CASE(nomem__each_of_a_group),
	KUNIT_CASE(nomem__each_of_a_transmission),
	KUNIT_CASE(nomem__each_of_a_packet),
#endif
	{}
};
