// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which devices carry ESP, and which are chosen. Included by suite.c, after harness.c.
 */

/* Make a device that is not registered yet. */
static struct net_device *make_device(struct kunit *test)
{
	struct net_device *dev = alloc_netdev(0, "espother%d", NET_NAME_UNKNOWN, fx_setup);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	return dev;
}

static void remove_device(struct net_device *dev)
{
	unregister_netdev(dev);
	free_netdev(dev);
}

static bool is_listed(const struct net_device *dev)
{
	struct esp_dev *ed = esp_dev_get(&init_net, dev->ifindex);

	if (ed)
		esp_dev_put(ed);
	return ed;
}

/* Is the test's device the only one that counts? */
static bool is_only(void)
{
	struct esp_dev *ed = esp_dev_only(&init_net);

	if (ed)
		esp_dev_put(ed);
	return ed == fx.ed;
}

/* A VRF gets frames by routing, so ESP does not know it. */
static void choice__vrf(struct kunit *test)
{
	struct net_device *dev = make_device(test);

	dev->priv_flags |= IFF_L3MDEV_MASTER;
	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	KUNIT_EXPECT_FALSE(test, is_listed(dev));
	remove_device(dev);
}

/* No peer can name a device without an address. The device carries ESP once it has one. */
static void choice__no_address(struct kunit *test)
{
	static const u8 none[ETH_ALEN], some[ETH_ALEN] = { 2, 0, 0, 0, 0, 0x78 };
	struct net_device *dev = make_device(test);

	eth_hw_addr_set(dev, none);
	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	KUNIT_EXPECT_FALSE(test, is_listed(dev));
	rtnl_lock();
	eth_hw_addr_set(dev, some);
	call_netdevice_notifiers(NETDEV_CHANGEADDR, dev);
	rtnl_unlock();
	KUNIT_EXPECT_TRUE(test, is_listed(dev));
	remove_device(dev);
}

/* A device counts if it is up, enabled, and leads to other machines. */
static void choice__counts(struct kunit *test)
{
	struct net_device *dev = make_device(test);
	struct esp_dev *ed;

	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	ed = esp_dev_get(&init_net, dev->ifindex);
	KUNIT_ASSERT_NOT_NULL(test, ed);
	KUNIT_EXPECT_TRUE(test, is_only());
	WRITE_ONCE(ed->enabled, 1);
	KUNIT_EXPECT_TRUE(test, is_only());
	rtnl_lock();
	KUNIT_EXPECT_EQ(test, dev_open(dev, NULL), 0);
	rtnl_unlock();
	KUNIT_EXPECT_FALSE(test, is_only());
	ed->local = true;
	KUNIT_EXPECT_TRUE(test, is_only());
	esp_dev_put(ed);
	remove_device(dev);
}

static rx_handler_result_t take_frame(struct sk_buff **skb)
{
	return RX_HANDLER_PASS;
}

/* A master gets its ports' frames if it has a receive handler at the port; a VRF has none. */
static void choice__port(struct kunit *test)
{
	struct net_device *master = make_device(test);

	KUNIT_ASSERT_EQ(test, register_netdev(master), 0);
	rtnl_lock();
	KUNIT_EXPECT_EQ(test, netdev_master_upper_dev_link(fx.dev, master, NULL, NULL, NULL), 0);
	KUNIT_EXPECT_EQ(test, esp_dev_check(fx.ed), 0);
	KUNIT_EXPECT_TRUE(test, is_only());
	KUNIT_EXPECT_EQ(test, netdev_rx_handler_register(fx.dev, take_frame, NULL), 0);
	KUNIT_EXPECT_EQ(test, esp_dev_check(fx.ed), -ENODEV);
	KUNIT_EXPECT_FALSE(test, is_only());
	/* the handler is of a macvlan above a VRF's port */
	fx.dev->priv_flags |= IFF_L3MDEV_SLAVE;
	KUNIT_EXPECT_EQ(test, esp_dev_check(fx.ed), 0);
	fx.dev->priv_flags &= ~IFF_L3MDEV_SLAVE;
	netdev_upper_dev_unlink(fx.dev, master);
	/* the handler is of a device that takes other frames */
	KUNIT_EXPECT_EQ(test, esp_dev_check(fx.ed), 0);
	KUNIT_EXPECT_TRUE(test, is_only());
	netdev_rx_handler_unregister(fx.dev);
	rtnl_unlock();
	remove_device(master);
}

/* A device above that takes no frames for itself, as a macvlan in passthru does, is no reason. */
static void choice__upper(struct kunit *test)
{
	struct net_device *upper = make_device(test);

	KUNIT_ASSERT_EQ(test, register_netdev(upper), 0);
	rtnl_lock();
	KUNIT_EXPECT_EQ(test, netdev_upper_dev_link(fx.dev, upper, NULL), 0);
	KUNIT_EXPECT_EQ(test, netdev_rx_handler_register(fx.dev, take_frame, NULL), 0);
	KUNIT_EXPECT_EQ(test, esp_dev_check(fx.ed), 0);
	KUNIT_EXPECT_TRUE(test, is_only());
	netdev_rx_handler_unregister(fx.dev);
	netdev_upper_dev_unlink(fx.dev, upper);
	rtnl_unlock();
	remove_device(upper);
}

/* Some drivers' devices get no frames of ESP. All frames of a dummy stay on this machine. */
static void choice__kinds(struct kunit *test)
{
	static const struct {
		const char	*kind;
		bool		listed, local;
	} v[] = {
		{ "ipvlan", false, false },
		{ "ipvtap", false, false },
		{ "ifb", false, false },
		{ "dummy", true, true },
		{ "bridge", true, false },
	};
	static struct rtnl_link_ops ops;
	int i;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		struct net_device *dev = make_device(test);
		struct esp_dev *ed;

		ops.kind = v[i].kind;
		dev->rtnl_link_ops = &ops;
		KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
		ed = esp_dev_get(&init_net, dev->ifindex);
		KUNIT_EXPECT_EQ_MSG(test, !!ed, v[i].listed, "%s", v[i].kind);
		if (ed) {
			KUNIT_EXPECT_EQ(test, ed->local, v[i].local);
			KUNIT_EXPECT_EQ(test, ed->tx_checksum, v[i].local);
			esp_dev_put(ed);
		}
		remove_device(dev);
	}
}

static const struct header_ops no_headers;

/* A device without Ethernet's addresses or headers carries no ESP. */
static void choice__not_ethernet(struct kunit *test)
{
	int i;

	for (i = 0; i < 6; i++) {
		struct net_device *dev = make_device(test);

		switch (i) {
		case 1:
			dev->type = ARPHRD_NONE;
			break;
		case 2:
			dev->addr_len = ETH_ALEN + 2;
			break;
		case 3:
			dev->hard_header_len = ETH_HLEN - 1;
			break;
		case 4:
			dev->header_ops = NULL;
			break;
		case 5:
			dev->header_ops = &no_headers;
			break;
		}
		KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
		KUNIT_EXPECT_EQ_MSG(test, is_listed(dev), !i, "%d", i);
		remove_device(dev);
	}
}

/* A device changes its type: it leaves, and comes back with Ethernet's type. */
static void choice__another_type(struct kunit *test)
{
	struct net_device *dev = make_device(test);
	int i;

	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	KUNIT_EXPECT_TRUE(test, is_listed(dev));
	rtnl_lock();
	for (i = 0; i < 2; i++) {
		call_netdevice_notifiers(NETDEV_PRE_TYPE_CHANGE, dev);
		KUNIT_EXPECT_FALSE(test, is_listed(dev));
		dev->type = i ? ARPHRD_ETHER : ARPHRD_NONE;
		call_netdevice_notifiers(NETDEV_POST_TYPE_CHANGE, dev);
		KUNIT_EXPECT_EQ(test, is_listed(dev), !!i);
	}
	rtnl_unlock();
	remove_device(dev);
}

/* A sysctl of the device's exists already: the device carries ESP without sysctls of its own. */
static void choice__sysctl_taken(struct kunit *test)
{
	struct net_device *dev = alloc_netdev(0, "esptaken", NET_NAME_USER, fx_setup);
	static int value;
	static struct ctl_table table[] = {
		{
			.procname	= "enable",
			.data		= &value,
			.maxlen		= sizeof(value),
			.mode		= 0444,
			.proc_handler	= proc_dointvec,
		},
	};
	struct ctl_table_header *taken;
	struct esp_dev *ed;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	taken = register_net_sysctl_sz(&init_net, "net/esp/dev/esptaken", table, 1);
	KUNIT_ASSERT_NOT_NULL(test, taken);
	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	ed = esp_dev_get(&init_net, dev->ifindex);
	KUNIT_ASSERT_NOT_NULL(test, ed);
	KUNIT_EXPECT_NULL(test, ed->ctl);
	KUNIT_EXPECT_NULL(test, ed->table);
	unregister_net_sysctl_table(taken);
	rtnl_lock();
	call_netdevice_notifiers(NETDEV_CHANGENAME, dev);
	rtnl_unlock();
	KUNIT_EXPECT_NOT_NULL(test, ed->ctl);
	esp_dev_put(ed);
	remove_device(dev);
}

/* The entry of a device that has left: whoever still has it learns that, and sends nothing. */
static void choice__left(struct kunit *test)
{
	static const u8 peer[ETH_ALEN] = { 2, 0, 0, 0, 0, 0x79 };
	unsigned long out = mib(ESP_MIB_OutFrames);
	struct esp_dev *ed = fx.ed;
	struct socket *sock;
	struct sk_buff *skb;
	u8 mac[ETH_ALEN];
	int i;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, SOCK_STREAM, 0, &sock), 0);
	for (i = 0; i < 3; i++) {
		switch (i) {
		case 0:
			WRITE_ONCE(ed->enabled, 0);
			break;
		case 1:
			WRITE_ONCE(ed->enabled, 1);
			rtnl_lock();
			dev_close(fx.dev);
			rtnl_unlock();
			break;
		case 2:
			lose_device();
			break;
		}
		KUNIT_EXPECT_EQ(test, esp_dev_check(ed), -ENETDOWN);
		skb = alloc_skb(200, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		skb_reserve(skb, 100);
		skb_put_zero(skb, 60);
		KUNIT_EXPECT_EQ(test, esp_dev_xmit(skb, ed, peer, NULL), -ENETDOWN);
	}
	KUNIT_EXPECT_EQ(test, esp_dev_mtu(ed), 0);
	KUNIT_EXPECT_EQ(test, esp_dev_mac(ed, mac), -ENODEV);
	KUNIT_EXPECT_EQ(test, esp_dev_gso_bytes(ed, T_MSS), (u32)T_MSS);
	lock_sock(sock->sk);
	refcount_inc(&ed->ref);
	KUNIT_EXPECT_EQ(test, esp_dev_link(sock->sk, ed), -ENODEV);
	KUNIT_EXPECT_PTR_EQ(test, esp_sk(sock->sk)->dev, ed);
	esp_dev_release(sock->sk);
	release_sock(sock->sk);
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutFrames), out);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&fx.out), 0u);
}

static bool refuse_header;

static int own_header(struct sk_buff *skb, struct net_device *dev, unsigned short type,
		      const void *daddr, const void *saddr, unsigned int len)
{
	return refuse_header ? -EINVAL : eth_header(skb, dev, type, daddr, saddr, len);
}

static const struct header_ops own_headers = { .create = own_header };

/* A device writes its own headers. A frame that it has no header for is lost, and counted. */
static void choice__own_headers(struct kunit *test)
{
	unsigned long discards = mib(ESP_MIB_OutDiscards);
	const struct header_ops *had = fx.dev->header_ops;
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	WRITE_ONCE(fx.dev->header_ops, &own_headers);
	refuse_header = true;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "x", 1, 0), 1);
	silence(test);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutDiscards), discards + 1);
	refuse_header = false;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "y", 1, 0), 1);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, c.ack + 1);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_OutDiscards), discards + 1);
	close_conn(test, &c);
	WRITE_ONCE(fx.dev->header_ops, had);
}

/*
 * Speeds.
 */

/* The settings that ethtool reports of a device. */
struct t_speed {
	u32	mbit;		/* base.speed */
	bool	hardware;	/* a medium is named */
	bool	fails;
};

static int speed_report(struct net_device *dev, struct ethtool_link_ksettings *k)
{
	const struct t_speed *s = netdev_priv(dev);

	if (READ_ONCE(s->fails))
		return -EIO;
	k->base.speed = READ_ONCE(s->mbit);
	if (READ_ONCE(s->hardware))
		ethtool_link_ksettings_add_link_mode(k, supported, 10000baseT_Full);
	return 0;
}

static const struct ethtool_ops speed_ops = {
	.get_link_ksettings	= speed_report,
};

/* Make a device with a speed; the caller registers it. */
static struct net_device *speed_device(struct kunit *test, u32 mbit, bool hardware)
{
	struct net_device *dev = alloc_netdev(sizeof(struct t_speed), "espspeed%d",
					      NET_NAME_UNKNOWN, fx_setup);
	struct t_speed *s;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->ethtool_ops = &speed_ops;
	s = netdev_priv(dev);
	s->mbit = mbit;
	s->hardware = hardware;
	return dev;
}

/* Let the device's speed be read, and return what the module knows then. */
static u32 speed_of(struct kunit *test, struct net_device *dev)
{
	struct esp_dev *ed = esp_dev_get(&init_net, dev->ifindex);
	u32 mbit;

	KUNIT_ASSERT_NOT_NULL(test, ed);
	rtnl_lock();
	esp_dev_read_speeds();
	rtnl_unlock();
	mbit = esp_dev_mbit(ed);
	esp_dev_put(ed);
	return mbit;
}

/* Change what ethtool reports of a device that is up, and report the event as a driver does. */
static void speed_change(struct kunit *test, struct net_device *dev, u32 mbit, bool hardware)
{
	struct t_speed *s = netdev_priv(dev);

	rtnl_lock();
	KUNIT_EXPECT_EQ(test, dev_open(dev, NULL), 0);
	rtnl_unlock();
	speed_of(test, dev);	/* so that NETDEV_UP does not stand in for the event below */
	WRITE_ONCE(s->mbit, mbit);
	WRITE_ONCE(s->hardware, hardware);
	rtnl_lock();
	netdev_state_change(dev);
	rtnl_unlock();
}

/* Only what hardware reports is believed. It counts from the start, and after each change. */
static void speed__ethtool(struct kunit *test)
{
	struct net_device *dev = speed_device(test, 10000, true);
	struct t_speed *s = netdev_priv(dev);

	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 10000u);
	speed_change(test, dev, 25000, true);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 25000u);
	speed_change(test, dev, 25000, false);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 0u);
	speed_change(test, dev, 1000, true);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 1000u);
	speed_change(test, dev, SPEED_UNKNOWN, true);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 0u);
	speed_change(test, dev, 0, true);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 0u);
	speed_change(test, dev, INT_MAX, true);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), (u32)ESP_MBIT_MAX);
	WRITE_ONCE(s->fails, true);
	speed_change(test, dev, 100, true);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 0u);
	KUNIT_EXPECT_EQ(test, speed_of(test, fx.dev), 0u);	/* no ethtool_ops of its own */
	remove_device(dev);
}

/* The module asks by itself, and finds a device's leaving between the event and the question. */
static void speed__by_itself(struct kunit *test)
{
	struct net_device *dev = speed_device(test, 40000, true);
	struct esp_dev *ed;

	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	ed = esp_dev_get(&init_net, dev->ifindex);
	KUNIT_ASSERT_NOT_NULL(test, ed);
	EVENTUALLY(test, esp_dev_mbit(ed) == 40000);
	rtnl_lock();
	KUNIT_EXPECT_EQ(test, dev_open(dev, NULL), 0);
	netdev_state_change(dev);
	unregister_netdevice(dev);
	rtnl_unlock();
	rtnl_lock();
	esp_dev_read_speeds();
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, esp_dev_mbit(ed), 40000u);	/* the entry lives on */
	esp_dev_put(ed);
	free_netdev(dev);
}

/* The administrator's figure comes before ethtool's. */
static void speed__set(struct kunit *test)
{
	struct net_device *dev = speed_device(test, 10000, true);
	struct esp_dev *ed;

	KUNIT_ASSERT_EQ(test, register_netdev(dev), 0);
	ed = esp_dev_get(&init_net, dev->ifindex);
	KUNIT_ASSERT_NOT_NULL(test, ed);
	KUNIT_EXPECT_EQ(test, esp_dev_set_mbit(ed, 2500), 0);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 2500u);
	speed_change(test, dev, 100000, true);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 2500u);
	KUNIT_EXPECT_EQ(test, esp_dev_set_mbit(ed, 0), 0);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 100000u);
	/* a device that has another one's link does not decide on it */
	ed->own_link = false;
	KUNIT_EXPECT_EQ(test, esp_dev_set_mbit(ed, 1), -EOPNOTSUPP);
	speed_change(test, dev, 10, true);
	KUNIT_EXPECT_EQ(test, speed_of(test, dev), 100000u);
	ed->own_link = true;
	esp_dev_put(ed);
	remove_device(dev);
}

/*
 * Register @master, whose ports are @a and @b. The flag of its kind is set only while it is
 * registered, because the bridge's and the bond's own notifiers would take it for theirs.
 */
static void speed_enslave(struct kunit *test, struct net_device *master, unsigned int kind,
			  struct net_device *a, struct net_device *b)
{
	KUNIT_ASSERT_EQ(test, register_netdev(master), 0);
	KUNIT_ASSERT_EQ(test, register_netdev(a), 0);
	KUNIT_ASSERT_EQ(test, register_netdev(b), 0);
	KUNIT_EXPECT_EQ(test, speed_of(test, master), 0u);
	rtnl_lock();
	master->priv_flags |= kind;
	KUNIT_EXPECT_EQ(test, netdev_master_upper_dev_link(a, master, NULL, NULL, NULL), 0);
	KUNIT_EXPECT_EQ(test, netdev_master_upper_dev_link(b, master, NULL, NULL, NULL), 0);
	rtnl_unlock();
}

static void speed_free(struct net_device *master, unsigned int kind, struct net_device *a,
		       struct net_device *b)
{
	rtnl_lock();
	master->priv_flags &= ~kind;
	netdev_upper_dev_unlink(a, master);
	netdev_upper_dev_unlink(b, master);
	rtnl_unlock();
	remove_device(a);
	remove_device(b);
	remove_device(master);
}

/* A bond or team adds up the speeds of its ports, and is believed if all of them are. */
static void speed__team(struct kunit *test)
{
	struct net_device *team = speed_device(test, 20000, false);
	struct net_device *a = speed_device(test, 10000, true);
	struct net_device *b = speed_device(test, 10000, true);

	speed_enslave(test, team, IFF_TEAM, a, b);
	KUNIT_EXPECT_EQ(test, speed_of(test, team), 20000u);
	((struct t_speed *)netdev_priv(team))->mbit = 10000;
	speed_change(test, a, SPEED_UNKNOWN, true);	/* the port lost its carrier */
	KUNIT_EXPECT_EQ(test, speed_of(test, team), 10000u);
	speed_change(test, a, 10000, false);
	KUNIT_EXPECT_EQ(test, speed_of(test, team), 0u);
	speed_free(team, IFF_TEAM, a, b);
}

/* Frames come in by the fastest port of a bridge at the most. */
static void speed__bridge(struct kunit *test)
{
	struct net_device *bridge = speed_device(test, 40000, false);
	struct net_device *a = speed_device(test, 2500, true);
	struct net_device *b = speed_device(test, 10000, false);

	speed_enslave(test, bridge, IFF_EBRIDGE, a, b);
	KUNIT_EXPECT_EQ(test, speed_of(test, bridge), 2500u);
	speed_change(test, b, 10000, true);
	KUNIT_EXPECT_EQ(test, speed_of(test, bridge), 10000u);
	speed_change(test, a, 2500, false);
	speed_change(test, b, 10000, false);
	KUNIT_EXPECT_EQ(test, speed_of(test, bridge), 0u);
	speed_free(bridge, IFF_EBRIDGE, a, b);
}

static struct kunit_case choice_cases[] = {
	KUNIT_CASE(choice__vrf),
	KUNIT_CASE(choice__no_address),
	KUNIT_CASE(choice__counts),
	KUNIT_CASE(choice__port),
	KUNIT_CASE(choice__upper),
	KUNIT_CASE(choice__kinds),
	KUNIT_CASE(choice__not_ethernet),
	KUNIT_CASE(choice__another_type),
	KUNIT_CASE(choice__sysctl_taken),
	KUNIT_CASE(choice__left),
	KUNIT_CASE(choice__own_headers),
	KUNIT_CASE(speed__ethtool),
	KUNIT_CASE(speed__by_itself),
	KUNIT_CASE(speed__set),
	KUNIT_CASE(speed__team),
	KUNIT_CASE(speed__bridge),
	{}
};
