// SPDX-License-Identifier: GPL-2.0-only
/* Reading, datagrams, addresses: recvmsg.c, dgram.c, hash.c. Included by suite.c, after nomem.c. */

/* A reader that takes the only small packet ends memory pressure, and the sender learns it. */
static void read__lifts_pressure(struct kunit *test)
{
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	feed(test, &c, ESP_TXS | ESP_TXF, c.seq, 10);
	silence(test);		/* the ACK waits for a reply */
	lock_sock(c.sock->sk);
	c.sock->sk->sk_rcvbuf = 1;
	WRITE_ONCE(c.esp->grant.rcv_mem_pressure, 1);
	release_sock(c.sock->sk);
	KUNIT_EXPECT_TRUE(test, c.esp->grant.rcv_mem_pressure);
	expect_data(test, &c, c.seq, 1, 10);
	KUNIT_EXPECT_FALSE(test, c.esp->grant.rcv_mem_pressure);
	next(test, &c, ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, f.ack_seq, c.seq + 1);
	close_conn(test, &c);
}

static int woken;

static void count_wake(struct sock *sk)
{
	woken++;
}

/* A reader waits for more bytes than there are, until SO_RCVLOWAT becomes smaller. */
static void read__low_mark(struct kunit *test)
{
	struct t_conn c;
	struct sock *sk;

	open_conn(test, &c, 0, 4);
	sk = c.sock->sk;
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, esp_set_rcvlowat(sk, 100), 0);
	release_sock(sk);
	sk->sk_data_ready = count_wake;
	woken = 0;
	feed(test, &c, ESP_TXS, c.seq, 10);
	KUNIT_EXPECT_EQ(test, woken, 0);
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, esp_set_rcvlowat(sk, 11), 0);
	KUNIT_EXPECT_EQ(test, woken, 0);
	KUNIT_EXPECT_EQ(test, esp_set_rcvlowat(sk, 10), 0);
	KUNIT_EXPECT_EQ(test, woken, 1);
	KUNIT_EXPECT_EQ(test, esp_set_rcvlowat(sk, 0), 0);
	KUNIT_EXPECT_EQ(test, woken, 2);
	KUNIT_EXPECT_EQ(test, sk->sk_rcvlowat, 1);
	release_sock(sk);
	expect_data(test, &c, c.seq, 1, 10);
	close_conn(test, &c);
}

/* A socket that is shut down takes no more datagrams. */
static void read__dgram_shut_down(struct kunit *test)
{
	unsigned long in = mib(ESP_MIB_DgramIn), dropped = mib(ESP_MIB_DgramMemDrop);
	struct t_conn peer, own;
	struct esp_frame f;
	u8 buf[10];
	int i;

	new_conn(&peer, 0);
	own.sock = new_socket(test, SOCK_DGRAM);
	for (i = 0; i < 2; i++) {
		conn_frame(&peer, &f, 0, 0, 10);
		f.cookie = 0;
		f.ts_val = 0;
		feed_frame(test, peer.mac, &f, NULL);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_DgramIn), in + 1);
		KUNIT_EXPECT_EQ(test, mib(ESP_MIB_DgramMemDrop), dropped + i);
		/* it is not connected: shutdown() says so, too */
		if (!i)
			KUNIT_EXPECT_EQ(test, kernel_sock_shutdown(own.sock, SHUT_RD), -ENOTCONN);
	}
	KUNIT_EXPECT_EQ(test, recv_bytes(&own, buf, 10), 10);
	KUNIT_EXPECT_EQ(test, recv_bytes(&own, buf, 10), -EAGAIN);
	sock_release(own.sock);
}

/* Peers that a datagram socket can't have. Only an address that can't be reached disconnects. */
static void dgram__bad_peers(struct kunit *test)
{
	static const struct {
		int	err;
		bool	group, no_port, no_device, connected;
	} v[] = {
		{ 0, .connected = true },
		{ -EACCES, .group = true, .connected = true },
		{ -EINVAL, .no_port = true, .connected = true },
		{ -ENODEV, .no_device = true },
		{ 0, .connected = true },
	};
	struct sockaddr_esp a;
	struct socket *sock;
	int i;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, SOCK_DGRAM, 0, &sock), 0);
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		peer_address(&a, v[i].no_port ? 0 : htons(T_PEER_PORT));
		if (v[i].group)
			a.sesp_addr[0] |= 1;
		if (v[i].no_device)
			a.sesp_ifindex = INT_MAX;
		KUNIT_EXPECT_EQ_MSG(test, call_connect(sock, &a), v[i].err, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, sock->sk->sk_state == TCP_ESTABLISHED, v[i].connected,
				    "case %d", i);
	}
	/* a group's members are no peer's, but may be sent to */
	peer_address(&a, htons(T_PEER_PORT));
	a.sesp_addr[0] |= 1;
	KUNIT_EXPECT_EQ(test, send_to(sock, &a), -EACCES);
	sock_valbool_flag(sock->sk, SOCK_BROADCAST, 1);
	KUNIT_EXPECT_EQ(test, send_to(sock, &a), 10);
	a.sesp_port = 0;
	KUNIT_EXPECT_EQ(test, send_to(sock, &a), -EINVAL);
	sock_release(sock);
	skb_queue_purge(&fx.out);
}

/* A device whose MTU is too small for ESP leads to no peer. */
static void connect__small_mtu(struct kunit *test)
{
	unsigned int mtu = fx.dev->mtu;
	struct sockaddr_esp a;
	struct socket *sock;
	int i;

	for (i = 0; i < 2; i++) {	/* of a socket that is bound to it, and of another */
		if (i)
			sock = new_socket(test, SOCK_STREAM);
		else
			KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, SOCK_STREAM,
							       0, &sock), 0);
		peer_address(&a, htons(T_PEER_PORT));
		WRITE_ONCE(fx.dev->mtu, ESP_MTU_MIN - 1);
		KUNIT_EXPECT_EQ(test, call_connect(sock, &a), -EMSGSIZE);
		WRITE_ONCE(fx.dev->mtu, ESP_MTU_MIN);
		KUNIT_EXPECT_EQ(test, call_connect(sock, &a), -EINPROGRESS);
		WRITE_ONCE(fx.dev->mtu, mtu);
		sock_release(sock);
	}
	skb_queue_purge(&fx.out);
}

/*
 * The port of a connection whose listener has closed: another socket may have it if both share
 * ports (SO_REUSEADDR), or if it is bound to another device.
 */
static void bind__port_of_a_connection(struct kunit *test)
{
	struct net_device *dev = make_device(test);
	static const struct {
		bool	reuse, other, may;	/* SO_REUSEADDR; bound to another device */
	} v[] = {
		{ false, false, false },
		{ true, false, true },
		{ false, true, true },
		{ true, true, true },
	};
	struct t_conn c;
	int i, strict;

	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	for (strict = 0; strict < 2; strict++) {
		start_listener(test);
		if (strict)
			fx.listener->sk->sk_reuse = SK_NO_REUSE;
		open_conn(test, &c, strict, 4);
		sock_release(fx.listener);
		fx.listener = NULL;
		for (i = 0; i < ARRAY_SIZE(v); i++) {
			struct sockaddr_esp a = {
				.sesp_family	= esp_family,
				.sesp_port	= htons(T_PORT),
				.sesp_ifindex	= v[i].other ? dev->ifindex : fx.dev->ifindex,
			};
			bool may = v[i].may && (!strict || v[i].other);
			struct socket *sock;

			KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, SOCK_STREAM,
							       0, &sock), 0);
			sock->sk->sk_reuse = v[i].reuse ? SK_CAN_REUSE : SK_NO_REUSE;
			KUNIT_EXPECT_EQ_MSG(test, kernel_bind(sock, (struct sockaddr_unsized *)&a,
							      sizeof(a)), may ? 0 : -EADDRINUSE,
					    "%s, case %d", strict ? "strict" : "shared", i);
			sock_release(sock);
		}
		close_conn(test, &c);
	}
	remove_device(dev);
}

static bool any_sock(struct sock *sk, void *data)
{
	return true;
}

/* Find a socket by what a list tells of it: all of it must be right. */
static bool is_found(int type, u16 port, u16 peer_port, const u8 *mac, const struct sock *sk)
{
	struct sockaddr_esp src = { .sesp_port = htons(port) };
	struct sockaddr_esp dst = {
		.sesp_port	= htons(peer_port),
		.sesp_ifindex	= fx.dev->ifindex,
	};
	struct sock *found;

	if (mac)
		ether_addr_copy(dst.sesp_addr, mac);
	found = esp_find_sock(&init_net, type, &src, &dst, any_sock, NULL);
	if (found)
		sock_put(found);
	return found && found == sk;
}

static void find__by_address(struct kunit *test)
{
	struct socket *dgram = new_socket(test, SOCK_DGRAM);
	struct t_conn c;
	struct sock *sk;

	open_conn(test, &c, 0, 4);
	sk = c.sock->sk;
	KUNIT_EXPECT_TRUE(test, is_found(SOCK_STREAM, T_PORT, c.port, c.mac, sk));
	KUNIT_EXPECT_FALSE(test, is_found(SOCK_SEQPACKET, T_PORT, c.port, c.mac, sk));
	KUNIT_EXPECT_FALSE(test, is_found(SOCK_STREAM, T_PORT, c.port + 1, c.mac, sk));
	KUNIT_EXPECT_TRUE(test, is_found(SOCK_STREAM, T_PORT, 0, NULL, fx.listener->sk));
	KUNIT_EXPECT_FALSE(test, is_found(SOCK_SEQPACKET, T_PORT, 0, NULL, fx.listener->sk));
	/* the next port of the same bucket */
	KUNIT_EXPECT_FALSE(test, is_found(SOCK_STREAM, T_PORT + 1024, 0, NULL, fx.listener->sk));
	KUNIT_EXPECT_TRUE(test, is_found(SOCK_DGRAM, T_PORT, 0, NULL, dgram->sk));
	KUNIT_EXPECT_FALSE(test, is_found(SOCK_STREAM, T_PORT + 1, 0, NULL, dgram->sk));
	rcu_read_lock();
	KUNIT_EXPECT_NULL(test, esp_lookup_listener(&init_net, fx.dev->ifindex, htons(T_PORT + 1)));
	KUNIT_EXPECT_NULL(test, esp_lookup_listener(&init_net, fx.dev->ifindex,
						    htons(T_PORT + 1024)));
	KUNIT_EXPECT_NULL(test, esp_next_dgram(&init_net, fx.dev->ifindex, htons(T_PORT - 1),
					       NULL));
	rcu_read_unlock();
	sock_release(dgram);
	close_conn(test, &c);
}

static struct kunit_case read_cases[] = {
	KUNIT_CASE(read__lifts_pressure),
	KUNIT_CASE(read__low_mark),
	KUNIT_CASE(read__dgram_shut_down),
	KUNIT_CASE(dgram__bad_peers),
	KUNIT_CASE(connect__small_mtu),
	KUNIT_CASE(bind__port_of_a_connection),
	KUNIT_CASE(find__by_address),
	{}
};
