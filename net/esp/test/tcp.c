// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners in the place of TCP's: tcp.c. Included by suite.c, after connect.c. The addresses that
 * the device and TCP's listener have are set by hand.
 */

static const struct in6_addr t_v6 = { .s6_addr = { 0xfd, [15] = 2 } };
static const struct in6_addr t_v6_other = { .s6_addr = { 0xfd, [15] = 3 } };

/* Return the name of an IPv4 address, or of an IPv6 address if @v6 is not NULL. */
static u64 tcp_name(struct kunit *test, u32 v4, const struct in6_addr *v6)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(v4) };
	struct socket *sock;
	u64 name;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, SOCK_STREAM, 0, &sock), 0);
	if (v6)
		in6.sin6_addr = *v6;
	lock_sock(sock->sk);
	KUNIT_EXPECT_EQ(test, esp_tcp_set_dest(sock->sk, v6 ? KERNEL_SOCKPTR(&in6) :
					       KERNEL_SOCKPTR(&in), v6 ? sizeof(in6) : sizeof(in)),
			0);
	name = esp_sk(sock->sk)->tcp_name;
	release_sock(sock->sk);
	sock_release(sock);
	return name;
}

/* Start a TCP listener at the port of ESP's listener, which stands for it from then on. */
static struct socket *tcp_listener(struct kunit *test, int family)
{
	struct sockaddr_storage a = { .ss_family = family };
	struct socket *tcp;

	start_listener(test);
	((struct sockaddr_in *)&a)->sin_port = htons(T_PORT);	/* both families have it there */
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, family, SOCK_STREAM, IPPROTO_TCP, &tcp),
			0);
	KUNIT_ASSERT_EQ(test, kernel_bind(tcp, (struct sockaddr_unsized *)&a,
					  family == AF_INET ? sizeof(struct sockaddr_in) :
					  sizeof(struct sockaddr_in6)), 0);
	KUNIT_ASSERT_EQ(test, kernel_listen(tcp, 1), 0);
	sock_hold(tcp->sk);
	WRITE_ONCE(esp_sk(fx.listener->sk)->tcp, tcp->sk);
	return tcp;
}

static void tcp_stop(struct socket *tcp)
{
	sock_release(fx.listener);
	fx.listener = NULL;
	sock_release(tcp);
}

static bool tcp_accepts(const struct net_device *dev, u64 name)
{
	bool yes;

	rcu_read_lock();
	yes = esp_tcp_accepts(fx.listener->sk, dev, name);
	rcu_read_unlock();
	return yes;
}

/* Give the device the IPv4 address @ifa, or none if NULL. */
static void tcp_set_v4(struct in_ifaddr *ifa)
{
	rtnl_lock();
	rcu_assign_pointer(__in_dev_get_rtnl(fx.dev)->ifa_list, ifa);
	rtnl_unlock();
	synchronize_net();
}

/* TCP's listener of IPv4: it accepts at the device's addresses only, as far as it is bound. */
static void tcp__v4(struct kunit *test)
{
	struct in_ifaddr other = { .ifa_local = htonl(0x0a010003) };
	struct in_ifaddr own = { .ifa_local = htonl(0x0a010002) };
	u64 v6 = tcp_name(test, 0, &t_v6);
	struct net_device *dev;
	struct socket *tcp;
	struct sock *sk;

	dev = alloc_netdev(0, "espother%d", NET_NAME_UNKNOWN, fx_setup);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	tcp = tcp_listener(test, AF_INET);
	sk = tcp->sk;
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, 0x0a010002));
	RCU_INIT_POINTER(own.ifa_next, &other);
	tcp_set_v4(&own);
	KUNIT_EXPECT_EQ(test, tcp_name(test, 0x0a010002, NULL), 0x0a010002ull);
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, 0x0a010002));
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, 0x0a010003));
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, 0x0a010004));
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, v6));
	KUNIT_EXPECT_FALSE(test, tcp_accepts(dev, 0x0a010002));		/* it has no addresses */
	inet_sk(sk)->inet_rcv_saddr = own.ifa_local;
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, 0x0a010002));
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, 0x0a010003));
	inet_sk(sk)->inet_rcv_saddr = 0;
	/* it is bound to a device */
	WRITE_ONCE(sk->sk_bound_dev_if, fx.dev->ifindex);
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, 0x0a010002));
	WRITE_ONCE(sk->sk_bound_dev_if, fx.dev->ifindex + 1);
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, 0x0a010002));
	WRITE_ONCE(sk->sk_bound_dev_if, 0);
	/* another socket has the port by now; or it listens no longer */
	KUNIT_EXPECT_EQ(test, esp_tcp_port(fx.listener->sk), T_PORT);
	WRITE_ONCE(esp_sk(fx.listener->sk)->tcp_lost, true);
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, 0x0a010002));
	WRITE_ONCE(esp_sk(fx.listener->sk)->tcp_lost, false);
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, 0x0a010002));
	WRITE_ONCE(inet_sk(sk)->inet_num, T_PORT + 1);
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, 0x0a010002));
	WRITE_ONCE(inet_sk(sk)->inet_num, T_PORT);
	KUNIT_EXPECT_EQ(test, kernel_sock_shutdown(tcp, SHUT_RDWR), 0);
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, 0x0a010002));
	KUNIT_EXPECT_EQ(test, esp_tcp_port(fx.listener->sk), 0);
	tcp_set_v4(NULL);
	tcp_stop(tcp);
	free_netdev(dev);
}

#if IS_ENABLED(CONFIG_IPV6)
/* The same of IPv6, at addresses of both kinds. An address that may be another host's is none. */
static void tcp__v6(struct kunit *test)
{
	struct in_ifaddr own = { .ifa_local = htonl(0x0a010002) };
	u64 name = tcp_name(test, 0, &t_v6), other = tcp_name(test, 0, &t_v6_other);
	struct in6_addr mapped = { .s6_addr32 = { 0, 0, htonl(0xffff), htonl(0x0a010002) } };
	struct inet6_ifaddr *ifa = kunit_kzalloc(test, sizeof(*ifa), GFP_KERNEL);
	struct inet6_dev *in6;
	struct net_device *dev;
	struct socket *tcp;
	struct sock *sk;

	KUNIT_ASSERT_NOT_NULL(test, ifa);
	rtnl_lock();
	in6 = __in6_dev_get(fx.dev);
	rtnl_unlock();
	KUNIT_ASSERT_NOT_NULL(test, in6);
	dev = alloc_netdev(0, "espother%d", NET_NAME_UNKNOWN, fx_setup);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	tcp = tcp_listener(test, AF_INET6);
	sk = tcp->sk;
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, name));
	tcp_set_v4(&own);
	ifa->addr = t_v6;
	write_lock_bh(&in6->lock);
	list_add_rcu(&ifa->if_list, &in6->addr_list);
	write_unlock_bh(&in6->lock);

	KUNIT_EXPECT_EQ(test, tcp_name(test, 0, &mapped), 0x0a010002ull);
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, name));
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, 0x0a010002));
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, other));
	KUNIT_EXPECT_FALSE(test, tcp_accepts(dev, name));
	ifa->flags = IFA_F_TENTATIVE;
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, name));
	ifa->flags = IFA_F_DADFAILED;
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, name));
	ifa->flags = 0;
	sk->sk_ipv6only = 1;
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, name));
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, 0x0a010002));
	sk->sk_ipv6only = 0;
	sk->sk_v6_rcv_saddr = t_v6;
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, name));
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, 0x0a010002));
	sk->sk_v6_rcv_saddr = t_v6_other;
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, name));
	sk->sk_v6_rcv_saddr = mapped;
	KUNIT_EXPECT_TRUE(test, tcp_accepts(fx.dev, 0x0a010002));
	KUNIT_EXPECT_FALSE(test, tcp_accepts(fx.dev, name));
	sk->sk_v6_rcv_saddr = in6addr_any;

	write_lock_bh(&in6->lock);
	list_del_rcu(&ifa->if_list);
	write_unlock_bh(&in6->lock);
	tcp_set_v4(NULL);	/* waits for readers of both */
	tcp_stop(tcp);
	free_netdev(dev);
}
#endif

/* Feed the SYN of a client that asks for the TCP server at an IPv4 address. */
static void feed_tcp_syn(struct kunit *test, struct t_conn *c, u32 v4)
{
	struct esp_frame f;

	hello_frame(c, &f, ESP_SYN);
	f.opts |= ESP_HAS(ESP_OPT_FEATURES);
	f.features |= ESP_FEATURE_TCP;
	f.cookie = 0;
	f.ts_ecr = v4;
	feed_frame(test, c->mac, &f, NULL);
}

static void tcp_echo_frame(struct t_conn *c, struct esp_frame *f)
{
	echo_frame(c, f, 4);
	c->grant = 4;
	f->opts |= ESP_HAS(ESP_OPT_FEATURES);
	f->features |= ESP_FEATURE_TCP;
}

/*
 * Clients that ask for a TCP server: only a listener that stands for it answers, only at its
 * address, and its cookie is of no use at any other listener.
 */
static void tcp__handshake(struct kunit *test)
{
	struct in_ifaddr own = { .ifa_local = htonl(0x0a010002) };
	unsigned long other = mib(ESP_MIB_TcpMismatch), invalid = mib(ESP_MIB_CookieInvalid);
	unsigned long full = mib(ESP_MIB_ListenOverflows);
	struct socket *tcp;
	struct esp_frame f;
	struct t_conn c;

	start_listener(test);
	new_conn(&c, 0);
	feed_tcp_syn(test, &c, 0x0a010002);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_TcpMismatch), other + 1);
	tcp_echo_frame(&c, &f);		/* somebody guesses the cookie */
	f.cookie = 0x12345678;
	feed_frame(test, c.mac, &f, NULL);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieInvalid), invalid + 1);

	tcp = tcp_listener(test, AF_INET);
	tcp_set_v4(&own);
	feed_tcp_syn(test, &c, 0x0a010003);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_TcpMismatch), other + 2);
	/* the accept queue is full: TCP's may not be */
	fx.listener->sk->sk_ack_backlog = T_BACKLOG + 1;
	feed_tcp_syn(test, &c, 0x0a010002);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_ListenOverflows), full + 1);
	fx.listener->sk->sk_ack_backlog = 0;

	feed_tcp_syn(test, &c, 0x0a010002);
	next(test, &c, ESP_SYN | ESP_ACK, &f);
	KUNIT_EXPECT_TRUE(test, f.features & ESP_FEATURE_TCP);
	c.their_cookie = f.peer_cookie;
	c.ack = esp_isn(f.peer_cookie) + 1;
	c.advice = f.grant;
	/* another socket stands for another TCP listener at this port by now */
	WRITE_ONCE(esp_sk(fx.listener->sk)->tcp, NULL);
	tcp_echo_frame(&c, &f);
	feed_frame(test, c.mac, &f, NULL);
	next(test, &c, ESP_RST | ESP_ACK, &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_CookieInvalid), invalid + 2);
	WRITE_ONCE(esp_sk(fx.listener->sk)->tcp, tcp->sk);
	tcp_echo_frame(&c, &f);
	accept_conn(test, &c, &f);
	close_conn(test, &c);
	tcp_set_v4(NULL);
	tcp_stop(tcp);
}

/* ESP_TCP_DEST takes the address of a server, and no other thing. */
static void tcp__bad_destination(struct kunit *test)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = t_v6 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct socket *sock;
	struct sock *sk;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, SOCK_STREAM, 0, &sock), 0);
	sk = sock->sk;
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, esp_tcp_set_dest(sk, KERNEL_SOCKPTR(&in), sizeof(in)), -EINVAL);
	KUNIT_EXPECT_EQ(test, esp_tcp_set_dest(sk, KERNEL_SOCKPTR(&in), sizeof(in) - 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, esp_tcp_set_dest(sk, KERNEL_SOCKPTR(&in6), sizeof(in)), -EINVAL);
	in.sin_family = AF_PACKET;
	KUNIT_EXPECT_EQ(test, esp_tcp_set_dest(sk, KERNEL_SOCKPTR(&in), sizeof(in)),
			-EAFNOSUPPORT);
	KUNIT_EXPECT_EQ(test, esp_sk(sk)->tcp_name, 0ull);
	KUNIT_EXPECT_EQ(test, esp_tcp_set_dest(sk, KERNEL_SOCKPTR(&in6),
					       offsetofend(struct sockaddr_in6, sin6_addr)), 0);
	KUNIT_EXPECT_NE(test, esp_sk(sk)->tcp_name >> 32, 0ull);
	KUNIT_EXPECT_EQ(test, esp_tcp_port(sk), 0);
	release_sock(sk);
	sock_release(sock);
}

static struct kunit_case tcp_cases[] = {
	KUNIT_CASE(tcp__v4),
#if IS_ENABLED(CONFIG_IPV6)
	KUNIT_CASE(tcp__v6),
#endif
	KUNIT_CASE(tcp__handshake),
	KUNIT_CASE(tcp__bad_destination),
	{}
};
