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

static struct kunit_case choice_cases[] = {
	KUNIT_CASE(choice__vrf),
	KUNIT_CASE(choice__no_address),
	KUNIT_CASE(choice__counts),
	KUNIT_CASE(choice__port),
	{}
};
