// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices: which carry ESP, where their frames congest, and frames on their way
 * out.
 *
 * Nothing here holds a reference to a struct net_device. A table maps the
 * devices to struct esp_dev; its pointer back is cleared in the notifier of
 * NETDEV_UNREGISTER, after which the core waits for RCU readers. So a device
 * can leave at any point.
 */
#include <linux/hashtable.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include "esp.h"
#include "dev.h"
#include "link.h"

/* Devices of all namespaces; written under RTNL, read under RCU. */
static DEFINE_HASHTABLE(esp_devs, 6);

/**
 * esp_dev_add() - put a device into the table
 * @ed:		its entry, whose pointer to the device is set
 * @dev:	device
 *
 * Context: RTNL.
 */
void esp_dev_add(struct esp_dev *ed, struct net_device *dev)
{
	hash_add_rcu(esp_devs, &ed->node, (unsigned long)dev);
}

/**
 * esp_dev_rcu() - what is known of a device
 * @dev:	device
 *
 * Context: RCU read side.
 * Return: the entry, or NULL if the device isn't one for ESP
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
 * esp_dev_get() - the device of an index
 * @net:	namespace
 * @ifindex:	index
 *
 * Return: a reference, or NULL
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

/**
 * esp_dev_only() - the only Ethernet device that is up and carries ESP
 * @net:	namespace
 *
 * The loopback device doesn't count, nor do devices of a bond or bridge.
 *
 * Return: a reference; NULL if there is none or more than one
 */
struct esp_dev *esp_dev_only(struct net *net)
{
	struct esp_dev *found = NULL;
	struct net_device *dev;

	rcu_read_lock();
	for_each_netdev_rcu(net, dev) {
		struct esp_dev *ed = esp_dev_rcu(dev);

		if (!ed || !READ_ONCE(ed->enabled) || !(READ_ONCE(dev->flags) & IFF_UP) ||
		    (dev->flags & IFF_LOOPBACK) ||
		    netdev_master_upper_dev_get_rcu(dev))
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
 * esp_dev_link() - a socket works on this device from now on
 * @sk:	socket without a device; its owner calls
 * @ed:	device; the caller's reference goes to the socket
 *
 * Return: 0; ENODEV: it has left, perhaps before the socket could be told. The
 * socket has it all the same.
 */
int esp_dev_link(struct sock *sk, struct esp_dev *ed)
{
	struct esp_opt *esp = esp_sk(sk);

	spin_lock_bh(&ed->lock);
	esp->dev = ed;
	list_add_tail(&esp->dev_node, &ed->socks);
	spin_unlock_bh(&ed->lock);
	/* Who leaves does it before it tells: if it didn't find us, we see it. */
	return rcu_access_pointer(ed->dev) ? 0 : -ENODEV;
}

/**
 * esp_dev_unlink() - what happens to the device is no longer the socket's
 * @sk:	socket; its owner calls. Its pointer and reference stay: somebody may
 *	be sending for it (grant_send())
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
 * esp_dev_release() - give the socket's device back
 * @sk:	socket that nobody else refers to, or that never was connected
 */
void esp_dev_release(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_dev *ed = esp->dev;

	if (!ed)
		return;
	esp_dev_unlink(sk);
	/* What its owner has yet to hear of it is of no concern to the next one. */
	spin_lock_bh(&sk->sk_lock.slock);
	esp->dev = NULL;
	WRITE_ONCE(esp->dev_events, 0);
	spin_unlock_bh(&sk->sk_lock.slock);
	esp_dev_put(ed);
}

/**
 * esp_link_get() - where a device's frames congest (rule 12)
 * @ed:	device
 *
 * Return: the port, with a reference
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

/* MTU, or 0 if the device has left. */
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

/* Headroom, also for the frames to come: nobody tells when it changes. */
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
 * esp_dev_gso_bytes() - how much may leave as one super-packet
 * @ed:		device
 * @size:	payload of a packet
 *
 * A device that takes none gets them taken apart (offload.c): what counts here
 * is what it, or an administrator, says of their size.
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

		/* the core wants the frame to be smaller than that */
		most -= min_t(u32, most, VLAN_ETH_HLEN + ESP_HLEN_MAX + 1);
		n = min(most / size, READ_ONCE(dev->gso_max_segs));
	}
	rcu_read_unlock();
	return size * max(n, 1u);
}

/* Room for it is there. Ethernet's own needs no call; that of a VLAN, a macvlan ... is theirs. */
static int dev_header(struct sk_buff *skb, struct net_device *dev, const u8 *daddr,
		      const u8 *saddr)
{
	const struct header_ops *ops = READ_ONCE(dev->header_ops);
	struct ethhdr *eth;

	if (unlikely(!ops || ops->create != eth_header))
		return dev_hard_header(skb, dev, ntohs(esp_ethertype), daddr, saddr, skb->len);
	eth = __skb_push(skb, ETH_HLEN);
	memcpy(eth->h_dest, daddr, ETH_ALEN);
	memcpy(eth->h_source, saddr ? saddr : dev->dev_addr, ETH_ALEN);
	eth->h_proto = esp_ethertype;
	return 0;
}

/**
 * esp_dev_xmit() - hand a frame to the device
 * @skb:	frame from the ESP header on, whose header nobody shares; consumed
 * @ed:		device
 * @daddr:	destination
 * @saddr:	source; NULL: the device's address. A connection has its own: its peer knows
 *		no other, and that the device has another one it learns later
 *
 * The host's own address is delivered here: switches don't hairpin.
 *
 * Context: any but hard interrupt.
 * Return: 0 or ENETDOWN; what a queue drops later is for retransmission
 */
int esp_dev_xmit(struct sk_buff *skb, struct esp_dev *ed, const u8 *daddr,
		 const u8 *saddr)
{
	enum skb_drop_reason reason = SKB_DROP_REASON_DEV_READY;
	struct net_device *dev;
	unsigned int room;

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
		/* a VLAN's device may have put in its tag */
		__skb_pull(skb, skb_network_offset(skb));
		skb->protocol = esp_ethertype;
		skb->pkt_type = PACKET_HOST;
		netif_rx(skb);
	} else if (dev_queue_xmit(skb)) {
		ESP_INC_NS(ed->ns, OutDiscards);
	}
	rcu_read_unlock();
	return 0;
drop:
	rcu_read_unlock();
	kfree_skb_reason(skb, reason);
	return -ENETDOWN;
}
