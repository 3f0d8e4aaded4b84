// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices: the table of Ethernet devices, and the transmission of frames.
 *
 * The module holds no reference to a struct net_device. A table maps the devices to
 * struct esp_dev. The notifier of NETDEV_UNREGISTER clears esp_dev.dev, and the core then
 * waits for RCU readers. So a device can leave at any point.
 */
#include <linux/ethtool.h>
#include <linux/hashtable.h>
#include <linux/if_macvlan.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include "esp.h"
#include "dev.h"
#include "link.h"

#define ESP_SPEED_DEPTH	4	/* bridges and bonds above each other whose ports count */

/* Devices of all namespaces; written under RTNL, read under RCU. */
static DEFINE_HASHTABLE(esp_devs, 6);

/**
 * esp_dev_add() - add a device to the table
 * @ed:		entry of the device; @ed->dev is set
 * @dev:	device
 *
 * Context: RTNL.
 */
void esp_dev_add(struct esp_dev *ed, struct net_device *dev)
{
	ASSERT_RTNL();
	hash_add_rcu(esp_devs, &ed->node, (unsigned long)dev);
}

/**
 * esp_dev_rcu() - find the entry of a device
 * @dev:	device
 *
 * Context: RCU read side.
 * Return: the entry; NULL: the device cannot carry ESP
 */
struct esp_dev *esp_dev_rcu(const struct net_device *dev)
{
	struct esp_dev *ed;

	hash_for_each_possible_rcu(esp_devs, ed, node, (unsigned long)dev)
		if (rcu_access_pointer(ed->dev) == dev)
			return ed;
	return NULL;
}

/**
 * esp_dev_get() - find the entry of the device with an index
 * @net:	namespace
 * @ifindex:	index
 *
 * Return: the entry, with a reference; NULL: there is none
 */
struct esp_dev *esp_dev_get(struct net *net, int ifindex)
{
	struct esp_dev *ed = NULL;
	struct net_device *dev;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(net, ifindex);
	if (dev)
		ed = esp_dev_rcu(dev);
	if (ed && !refcount_inc_not_zero(&ed->ref))
		ed = NULL;
	rcu_read_unlock();
	return ed;
}

static bool is_passthru(const struct net_device *dev)
{
	const struct macvlan_dev *vlan = netdev_priv(dev);

	return netif_is_macvlan(dev) && READ_ONCE(vlan->mode) == MACVLAN_MODE_PASSTHRU;
}

/*
 * Do all frames that come in by @dev go to a device above it? They do if @dev is a port of a
 * bridge, bond or team, or below a macvlan in mode passthru, which take them by a receive handler.
 * A VRF and batman-adv are masters that leave these frames to their ports. Other receive handlers
 * take frames to other addresses only, or IP packets.
 */
static bool dev_is_port(struct net_device *dev)
{
	struct net_device *upper;
	struct list_head *iter;

	if (!rcu_access_pointer(dev->rx_handler))
		return false;
	if (netdev_master_upper_dev_get_rcu(dev) && !netif_is_l3_slave(dev))
		return true;
	netdev_for_each_upper_dev_rcu(dev, upper, iter)
		if (is_passthru(upper))
			return true;
	return false;
}

/**
 * esp_dev_only() - find the only device by which other hosts can be reached
 * @net:	namespace
 *
 * Not counted are devices that are down or not enabled, ports (dev_is_port()), and devices whose
 * frames stay on this machine.
 *
 * Return: the entry, with a reference; NULL: there is none, or more than one
 */
struct esp_dev *esp_dev_only(struct net *net)
{
	struct esp_dev *found = NULL;
	struct net_device *dev;

	rcu_read_lock();
	for_each_netdev_rcu(net, dev) {
		struct esp_dev *ed = esp_dev_rcu(dev);

		if (!ed || ed->local || !READ_ONCE(ed->enabled) ||
		    !(READ_ONCE(dev->flags) & IFF_UP) || dev_is_port(dev))
			continue;
		if (found) {
			found = NULL;
			break;
		}
		found = ed;
	}
	if (found && !refcount_inc_not_zero(&found->ref))
		found = NULL;
	rcu_read_unlock();
	return found;
}

void esp_dev_put(struct esp_dev *ed)
{
	if (!refcount_dec_and_test(&ed->ref))
		return;
	esp_link_put(ed->link);
	kfree_rcu(ed, rcu);
}

/**
 * esp_dev_link() - attach a socket to a device
 * @sk:	socket without a device; its owner calls
 * @ed:	device; the caller's reference passes to the socket
 *
 * Return: 0; ENODEV: the device has left, perhaps before the socket was on the list that
 * esp_dev_tell() walks. The socket is attached in both cases.
 */
int esp_dev_link(struct sock *sk, struct esp_dev *ed)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	spin_lock_bh(&ed->lock);
	esp->dev = ed;
	list_add_tail(&esp->dev_node, &ed->socks);
	spin_unlock_bh(&ed->lock);
	/*
	 * dev_unregister() clears ed->dev before it walks the list. If it did not find this
	 * socket there, this read sees NULL.
	 */
	return rcu_access_pointer(ed->dev) ? 0 : -ENODEV;
}

/**
 * esp_dev_unlink() - stop reporting the device's events to a socket
 * @sk:	socket; its owner calls, or its destructor
 *
 * The socket keeps its pointer and reference to the device, because another context may be
 * sending for the socket (grant_send()).
 */
void esp_dev_unlink(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_dev *ed = esp->dev;

	if (!ed)
		return;
	spin_lock_bh(&ed->lock);
	list_del_init(&esp->dev_node);
	spin_unlock_bh(&ed->lock);
}

/**
 * esp_dev_release() - detach a socket from its device and drop the reference
 * @sk:	socket; its owner calls, with lock_sock() and without the spinlock, or its
 *	destructor
 */
void esp_dev_release(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_dev *ed = esp->dev;

	if (!ed)
		return;
	esp_dev_unlink(sk);
	/* Discard pending events: they must not be applied to the socket's next device. */
	spin_lock_bh(&sk->sk_lock.slock);
	esp->dev = NULL;
	WRITE_ONCE(esp->dev_events, 0);
	spin_unlock_bh(&sk->sk_lock.slock);
	esp_dev_put(ed);
}

/**
 * esp_link_get() - get the link on which a device's frames congest (rule 12)
 * @ed:	device
 *
 * Return: the link, with a reference
 */
struct esp_link *esp_link_get(struct esp_dev *ed)
{
	struct esp_link *link;

	spin_lock_bh(&ed->lock);
	link = ed->link;
	refcount_inc(&link->ref);
	spin_unlock_bh(&ed->lock);
	return link;
}

/**
 * esp_dev_mbit() - read the speed of a device's link, as far as it was told
 * @ed:	device
 *
 * A VLAN or macvlan has its lower device's link.
 *
 * Context: any; takes no lock.
 * Return: Mbit/s; 0: not known
 */
u32 esp_dev_mbit(const struct esp_dev *ed)
{
	u32 mbit;

	rcu_read_lock();	/* dev_find_link() may replace the link */
	mbit = esp_link_mbit(READ_ONCE(ed->link));
	rcu_read_unlock();
	return mbit;
}

/**
 * esp_dev_apply_rate() - let the budget of a device's link have the speed and the MTU of now
 * @ed:	device
 */
void esp_dev_apply_rate(struct esp_dev *ed)
{
	struct esp_link *link = esp_link_get(ed);
	int mtu = esp_dev_mtu(ed);

	if (READ_ONCE(ed->own_link) && mtu)
		esp_link_rate(link, esp_link_mbit(link), mtu);
	esp_link_put(link);
}

/**
 * esp_dev_set_mbit() - tell the speed of a device's link
 * @ed:		device
 * @mbit:	Mbit/s; 0: ethtool's figure counts
 *
 * A lower device may be in another namespace, whose administrator decides on its link.
 *
 * Return: 0; EOPNOTSUPP: the link is a lower device's
 */
int esp_dev_set_mbit(struct esp_dev *ed, int mbit)
{
	int err = -EOPNOTSUPP;

	spin_lock_bh(&ed->lock);
	if (ed->own_link) {
		WRITE_ONCE(ed->link->set_mbit, mbit);
		err = 0;
	}
	spin_unlock_bh(&ed->lock);
	if (!err)
		esp_dev_apply_rate(ed);
	return err;
}

/*
 * Ask ethtool for the speed of @dev itself, Mbit/s; 0: not known. Is it a figure of hardware?
 * Hardware names the media that it supports. Devices that are made of software (veth, tun,
 * virtio_net, Hyper-V's) name none, and report a constant, or what somebody has set.
 */
static u32 dev_own_speed(struct net_device *dev, bool *hardware)
{
	struct ethtool_link_ksettings k;

	*hardware = false;
	if (__ethtool_get_link_ksettings(dev, &k))
		return 0;
	*hardware = !bitmap_empty(k.link_modes.supported, __ETHTOOL_LINK_MODE_MASK_NBITS);
	return k.base.speed == (u32)SPEED_UNKNOWN ? 0 : min_t(u32, k.base.speed, ESP_MBIT_MAX);
}

/*
 * Ask ethtool for the speed of @dev, Mbit/s; 0: not known.
 *
 * A bond or team adds up the speeds of its ports that carry frames, and is believed if all ports
 * are. Frames come in by the fastest port of a bridge at the most: ports that no figure is known
 * of lead to other parts of this machine. All other devices speak for their lower device, if they
 * have one.
 */
static u32 dev_speed(struct net_device *dev, int depth)
{
	bool hardware, all = true, any = false;
	struct net_device *lower;
	struct list_head *iter;
	u32 speed, most = 0;

	if (!netif_is_bridge_master(dev) && !netif_is_lag_master(dev)) {
		speed = dev_own_speed(dev, &hardware);
		return hardware ? speed : 0;
	}
	if (!depth)
		return 0;
	netdev_for_each_lower_dev(dev, lower, iter) {
		if (netif_is_bridge_master(dev)) {
			most = max(most, dev_speed(lower, depth - 1));
			continue;
		}
		dev_own_speed(lower, &hardware);
		any = true;
		all &= hardware;
	}
	if (netif_is_bridge_master(dev))
		return most;
	return any && all ? dev_own_speed(dev, &hardware) : 0;
}

/**
 * esp_dev_read_speeds() - ask ethtool for the speeds that may have changed
 *
 * Context: process, RTNL. Drivers may sleep. No device's instance lock may be held.
 */
void esp_dev_read_speeds(void)
{
	struct esp_dev *ed;
	int bucket;

	ASSERT_RTNL();
	hash_for_each(esp_devs, bucket, ed, node) {
		struct net_device *dev = rtnl_dereference(ed->dev);
		u32 mbit;

		if (!ed->speed_stale || !dev)
			continue;
		ed->speed_stale = false;
		if (!ed->own_link)	/* the lower device's entry tells; under RTNL */
			continue;
		mbit = dev_speed(dev, ESP_SPEED_DEPTH);
		WRITE_ONCE(ed->link->ethtool_mbit, mbit);
		esp_dev_apply_rate(ed);
	}
}

/* Read the MTU; 0: the device has left. */
int esp_dev_mtu(struct esp_dev *ed)
{
	struct net_device *dev;
	int mtu = 0;

	rcu_read_lock();
	dev = rcu_dereference(ed->dev);
	if (dev)
		mtu = READ_ONCE(dev->mtu);
	rcu_read_unlock();
	return min(mtu, 65535);
}

int esp_dev_mac(struct esp_dev *ed, u8 *mac)
{
	struct net_device *dev;
	int err = -ENODEV;

	rcu_read_lock();
	dev = rcu_dereference(ed->dev);
	if (dev) {
		ether_addr_copy(mac, dev->dev_addr);
		err = 0;
	}
	rcu_read_unlock();
	return err;
}

/**
 * esp_dev_check() - check whether frames can be exchanged over the device
 * @ed:	device
 *
 * Return: 0; ENODEV: a device above this one gets all frames that come in; ENETDOWN: the device
 * is down, leaving, or not enabled for ESP
 */
int esp_dev_check(struct esp_dev *ed)
{
	struct net_device *dev;
	bool port;

	rcu_read_lock();
	dev = rcu_dereference(ed->dev);
	port = dev && dev_is_port(dev);
	rcu_read_unlock();
	return port ? -ENODEV : esp_dev_usable(ed);
}

/*
 * Return the headroom that @dev needs now, bytes, and store it for later frames. The core
 * has no event for a change.
 */
unsigned int esp_dev_update_headroom(struct esp_dev *ed, const struct net_device *dev)
{
	unsigned int room = LL_RESERVED_SPACE(dev);

	if (READ_ONCE(ed->headroom) != room)
		WRITE_ONCE(ed->headroom, room);
	return room;
}

void esp_dev_features(struct esp_dev *ed, const struct net_device *dev)
{
	WRITE_ONCE(ed->sums, !!(dev->features & NETIF_F_HW_CSUM));
	WRITE_ONCE(ed->takes_gso, !!(dev->features & NETIF_F_GSO_SCTP));
}

/**
 * esp_dev_gso_bytes() - compute the largest payload of a GSO packet
 * @ed:		device
 * @size:	payload of a packet, bytes
 *
 * For a device that takes no GSO packets, offload.c segments them. So only the sizes count
 * here that the device or an administrator has set.
 *
 * Return: bytes, a multiple of @size
 */
u32 esp_dev_gso_bytes(struct esp_dev *ed, u32 size)
{
	struct net_device *dev;
	u32 n = 1;

	rcu_read_lock();
	dev = rcu_dereference(ed->dev);
	if (dev) {
		u32 most = min3(READ_ONCE(dev->gso_max_size),
				READ_ONCE(dev->gso_ipv4_max_size),
				ESP_GSO_MAX + 1u);

		/* the core requires the frame to be smaller than the limit */
		most -= min_t(u32, most, VLAN_ETH_HLEN + ESP_HLEN_MAX + 1);
		n = min(most / size, READ_ONCE(dev->gso_max_segs));
	}
	rcu_read_unlock();
	return size * max(n, 1u);
}

/*
 * Push the Ethernet header; the caller has made room. A plain Ethernet header is written
 * without an indirect call. A VLAN, a macvlan ... has header operations of its own.
 */
static int dev_header(struct sk_buff *skb, struct net_device *dev, const u8 *daddr,
		      const u8 *saddr)
{
	const struct header_ops *ops = READ_ONCE(dev->header_ops);
	struct ethhdr *eth;

	if (unlikely(!ops || ops->create != eth_header)) {
		/* the notifier of a change of type leaves no device that has other addresses */
		if (WARN_ON_ONCE(!esp_dev_fits(dev)))
			return -EAFNOSUPPORT;
		return dev_hard_header(skb, dev, ntohs(esp_ethertype), daddr, saddr, skb->len);
	}
	eth = __skb_push(skb, ETH_HLEN);
	memcpy(eth->h_dest, daddr, ETH_ALEN);
	memcpy(eth->h_source, saddr ? saddr : dev->dev_addr, ETH_ALEN);
	eth->h_proto = esp_ethertype;
	return 0;
}

/**
 * esp_dev_xmit() - hand a frame to the device
 * @skb:	frame from the ESP header on; its header is not shared; consumed
 * @ed:		device
 * @daddr:	destination
 * @saddr:	source; NULL: the device's address. A connection passes the address that its
 *		peer knows, because it learns of a change of the device's address later
 *
 * A frame to the device's own address is delivered on this host, because switches don't
 * hairpin.
 *
 * Context: any but hard interrupt.
 * Return: 0; ENETDOWN; NET_XMIT_DROP or NET_XMIT_CN, which are positive: the device's queue dropped
 * this frame or another one. A frame that a queue drops has to be retransmitted
 */
int esp_dev_xmit(struct sk_buff *skb, struct esp_dev *ed, const u8 *daddr,
		 const u8 *saddr)
{
	enum skb_drop_reason reason = SKB_DROP_REASON_DEV_READY;
	struct net_device *dev;
	unsigned int room;
	int err = 0;

	rcu_read_lock();
	dev = rcu_dereference(ed->dev);
	if (!dev || !(READ_ONCE(dev->flags) & IFF_UP) || !READ_ONCE(ed->enabled))
		goto drop;
	room = esp_dev_update_headroom(ed, dev);
	skb->dev = dev;
	skb->protocol = esp_ethertype;
	skb_reset_network_header(skb);
	if ((skb_headroom(skb) < room && skb_cow_head(skb, room)) ||
	    dev_header(skb, dev, daddr, saddr) < 0) {
		ESP_INC_NS(ed->ns, OutDiscards);
		reason = SKB_DROP_REASON_NOMEM;
		goto drop;
	}
	if (skb_is_gso(skb)) {
		ESP_ADD_NS(ed->ns, OutFrames, skb_shinfo(skb)->gso_segs);
		ESP_INC_NS(ed->ns, OutGsoFrames);
	} else {
		ESP_INC_NS(ed->ns, OutFrames);
	}
	skb_reset_mac_header(skb);
	if (!(dev->flags & IFF_LOOPBACK) &&
	    ether_addr_equal(daddr, dev->dev_addr)) {
		/* a VLAN device's header operations may have inserted a tag */
		__skb_pull(skb, skb_network_offset(skb));
		skb->protocol = esp_ethertype;
		skb->pkt_type = PACKET_HOST;
		/* the receiver's time stamp is not the time of departure */
		skb_clear_delivery_time(skb);
		skb_clear_tstamp(skb);
		netif_rx(skb);
	} else {
		err = dev_queue_xmit(skb);
		if (unlikely(err))
			ESP_INC_NS(ed->ns, OutDiscards);
	}
	rcu_read_unlock();
	return max(err, 0);
drop:
	rcu_read_unlock();
	kfree_skb_reason(skb, reason);
	return -ENETDOWN;
}
