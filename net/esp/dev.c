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

/* Devices of all namespaces; written under RTNL, read under RCU. */
static DEFINE_HASHTABLE(esp_devs, 6);
static bool esp_default_enable;

static bool device_fits(const struct net_device *dev)
{
	return (dev->type == ARPHRD_ETHER || dev->type == ARPHRD_LOOPBACK) &&
	       dev->addr_len == ETH_ALEN;
}

/* Where no frame leaves the machine, an administrator needn't be asked. */
static bool is_kind(const struct net_device *dev, const char *kind)
{
	return dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, kind);
}

/* No frame of theirs gets any further, whatever they are connected to. */
static bool stays_here(const struct net_device *dev)
{
	return (dev->flags & IFF_LOOPBACK) || is_kind(dev, "dummy");
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
	esp_port_put(ed->port);
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
 * esp_port_get() - where a device's frames congest (rule 12)
 * @ed:	device
 *
 * Return: the port, with a reference
 */
struct esp_port *esp_port_get(struct esp_dev *ed)
{
	struct esp_port *port;

	spin_lock_bh(&ed->lock);
	port = ed->port;
	refcount_inc(&port->ref);
	spin_unlock_bh(&ed->lock);
	return port;
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
static unsigned int dev_headroom(struct esp_dev *ed,
				 const struct net_device *dev)
{
	unsigned int room = LL_RESERVED_SPACE(dev);

	if (READ_ONCE(ed->headroom) != room)
		WRITE_ONCE(ed->headroom, room);
	return room;
}

static void dev_features(struct esp_dev *ed, const struct net_device *dev)
{
	WRITE_ONCE(ed->sums, !!(dev->features & NETIF_F_HW_CSUM));
	WRITE_ONCE(ed->whole, !!(dev->features & NETIF_F_GSO_SCTP));
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
static int hard_header(struct sk_buff *skb, struct net_device *dev, const u8 *daddr,
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
	room = dev_headroom(ed, dev);
	skb->dev = dev;
	skb->protocol = esp_ethertype;
	skb_reset_network_header(skb);
	if ((skb_headroom(skb) < room && skb_cow_head(skb, room)) ||
	    hard_header(skb, dev, daddr, saddr) < 0) {
		ESP_INC_NS(ed->ns, OutDiscards);
		reason = SKB_DROP_REASON_NOMEM;
		goto drop;
	}
	if (skb_is_gso(skb)) {
		ESP_ADD_NS(ed->ns, OutFrames, skb_shinfo(skb)->gso_segs);
		ESP_INC_NS(ed->ns, OutRuns);
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

/* Of two that are set at once the later one is to stay. */
static DEFINE_MUTEX(policy_mutex);

/**
 * esp_dev_policy() - a sysctl has changed the policy of a namespace
 * @net:	namespace
 */
void esp_dev_policy(struct net *net)
{
	struct esp_policy policy;
	struct net_device *dev;

	mutex_lock(&policy_mutex);
	esp_policy_get(net, &policy);
	rcu_read_lock();
	for_each_netdev_rcu(net, dev) {
		struct esp_dev *ed = esp_dev_rcu(dev);
		struct esp_port *port = NULL;

		if (!ed)
			continue;
		spin_lock_bh(&ed->lock);	/* as in dev_find_port() */
		if (ed->own_port)
			port = ed->port;
		spin_unlock_bh(&ed->lock);
		if (port)
			esp_ackq_policy(&port->ackq, &policy);
	}
	rcu_read_unlock();
	mutex_unlock(&policy_mutex);
}

/*
 * Notifier. RTNL is held.
 */

static struct esp_dev *dev_find(const struct net_device *dev)
{
	struct esp_dev *ed;

	rcu_read_lock();
	ed = esp_dev_rcu(dev);
	rcu_read_unlock();
	return ed;
}

/* VLAN and macvlan congest where their lower device does (rule 12). */
static void dev_find_port(struct esp_dev *ed, struct net_device *dev)
{
	struct list_head *iter = dev->adj_list.lower.next;
	struct net_device *lower;
	struct esp_port *old;
	struct esp_dev *led;

	if (!is_vlan_dev(dev) && !netif_is_macvlan(dev))
		return;
	lower = netdev_lower_get_next(dev, &iter);
	led = lower ? dev_find(lower) : NULL;
	if (!led)
		return;
	spin_lock_bh(&ed->lock);
	old = ed->port;
	ed->port = led->port;
	ed->own_port = false;
	refcount_inc(&ed->port->ref);
	spin_unlock_bh(&ed->lock);
	esp_port_put(old);
}

static int dev_register(struct net_device *dev)
{
	struct esp_dev *ed;

	if (!device_fits(dev) || dev_find(dev))
		return 0;
	ed = kzalloc_obj(*ed, GFP_KERNEL);
	if (!ed)
		return -ENOMEM;
	ed->port = esp_port_alloc(dev_net(dev));
	if (!ed->port) {
		kfree(ed);
		return -ENOMEM;
	}
	ed->own_port = true;
	refcount_set(&ed->ref, 1);
	spin_lock_init(&ed->lock);
	INIT_LIST_HEAD(&ed->socks);
	ed->ifindex = dev->ifindex;
	ed->ns = esp_net(dev_net(dev));
	ed->up = !!(dev->flags & IFF_UP);
	dev_headroom(ed, dev);
	dev_features(ed, dev);
	ed->enabled = esp_default_enable || stays_here(dev) || is_kind(dev, "veth");
	ed->tx_checksum = stays_here(dev);
	rcu_assign_pointer(ed->dev, dev);
	dev_find_port(ed, dev);
	hash_add_rcu(esp_devs, &ed->node, (unsigned long)dev);
	if (esp_sysctl_dev_init(dev_net(dev), ed, dev->name))
		netdev_warn(dev, "no sysctl net.esp.dev.%s: out of memory\n",
			    dev->name);
	return 0;
}

/* What can happen to a socket's device. */
#define ESP_EV_LOST	0x01	/* it has left */
#define ESP_EV_MAC	0x02	/* it has another address */
#define ESP_EV_MTU	0x04
#define ESP_EV_UP	0x08	/* it can be used again */

/* The device has left, or is another one now: nothing can be saved. */
static void sock_lost_device(struct sock *sk)
{
	ESP_INC(sock_net(sk), AbortOnDevice);
	if (sk->sk_state == TCP_LISTEN || sk->sk_type == SOCK_DGRAM) {
		WRITE_ONCE(sk->sk_err, ENETDOWN);
		sk_error_report(sk);
		return;
	}
	esp_done(sk, -ENETDOWN);
}

static void sock_new_mtu(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb;
	int room;

	esp_update_mss(sk);
	room = esp_dev_mtu(esp->dev) - esp_data_hlen(esp);
	skb_queue_walk(&sk->sk_write_queue, skb) {
		if (min_t(int, skb->len, ESP_TX(skb)->size) <= room)
			continue;
		ESP_INC(sock_net(sk), AbortOnMTU);
		esp_abort(sk, -EMSGSIZE);
		return;
	}
}

static bool other_mac(struct esp_opt *esp)
{
	u8 mac[ETH_ALEN];

	return !esp_dev_mac(esp->dev, mac) &&
	       !ether_addr_equal_unaligned(mac, esp->saddr);
}

/**
 * esp_dev_events_run() - draw the consequences of what happened to the device
 * @sk:	socket; its lock is held
 */
void esp_dev_events_run(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u8 ev = esp->dev_events;

	WRITE_ONCE(esp->dev_events, 0);
	if (ev & ESP_EV_LOST) {
		if (sk->sk_state != TCP_CLOSE || sk->sk_type == SOCK_DGRAM)
			sock_lost_device(sk);
		return;
	}
	if (sk->sk_state == TCP_CLOSE || !esp->peer)
		return;
	if ((ev & ESP_EV_MAC) && other_mac(esp)) {
		sock_lost_device(sk);
		return;
	}
	if (ev & ESP_EV_MTU)
		sock_new_mtu(sk);
	if ((ev & ESP_EV_UP) && esp->deadline[ESP_T_SEND])
		esp_timer_set(esp, ESP_T_SEND, esp_now());
}

/*
 * One walk at a time: the sockets that one has yet to tell are on its own
 * list, where another would not find them. Inside RTNL, or without it.
 */
static DEFINE_MUTEX(esp_tell_mutex);

/*
 * Tell the sockets of a device what happened to it, one by one, each with a
 * reference. Nobody waits for a socket's owner here, RTNL is held: the owner
 * finds the news when it is done (esp_release_cb()). The list may change
 * meanwhile; those that come later know better.
 */
static void dev_tell(struct esp_dev *ed, u8 event)
{
	LIST_HEAD(todo);

	mutex_lock(&esp_tell_mutex);
	spin_lock_bh(&ed->lock);
	list_splice_init(&ed->socks, &todo);
	while (!list_empty(&todo)) {
		struct esp_opt *esp = list_first_entry(&todo, struct esp_opt,
						       dev_node);
		struct sock *sk = &esp->sk;

		list_move_tail(&esp->dev_node, &ed->socks);
		if (!refcount_inc_not_zero(&sk->sk_refcnt))
			continue;
		spin_unlock_bh(&ed->lock);
		local_bh_disable();
		bh_lock_sock(sk);
		if (esp->dev == ed) {
			WRITE_ONCE(esp->dev_events, esp->dev_events | event);
			if (!esp_owned(sk))
				esp_dev_events_run(sk);
		}
		bh_unlock_sock(sk);
		local_bh_enable();
		sock_put(sk);
		spin_lock_bh(&ed->lock);
	}
	spin_unlock_bh(&ed->lock);
	mutex_unlock(&esp_tell_mutex);
}

/**
 * esp_dev_enabled() - the device may carry ESP again, or no longer
 * @ed:	device
 */
void esp_dev_enabled(struct esp_dev *ed)
{
	struct esp_port *port = esp_port_get(ed);

	dev_tell(ed, ESP_EV_UP);
	esp_ack_pump(&port->ackq);
	esp_port_put(port);
}

static void dev_unregister(struct net_device *dev)
{
	struct esp_dev *ed = dev_find(dev);

	if (!ed)
		return;
	hash_del_rcu(&ed->node);
	rcu_assign_pointer(ed->dev, NULL);
	WRITE_ONCE(ed->up, false);
	esp_sysctl_dev_exit(ed);
	/* whoever finds the device does it under RCU; esp_dev_link() looks again */
	synchronize_net();
	dev_tell(ed, ESP_EV_LOST);
	esp_dev_put(ed);
}

static int dev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct esp_dev *ed;

	if (event == NETDEV_REGISTER)
		return notifier_from_errno(dev_register(dev));
	if (event == NETDEV_UNREGISTER) {
		dev_unregister(dev);
		return NOTIFY_DONE;
	}
	if (event == NETDEV_CHANGEUPPER) {
		struct netdev_notifier_changeupper_info *info = ptr;

		ed = info->linking ? dev_find(info->upper_dev) : NULL;
		if (ed)
			dev_find_port(ed, info->upper_dev);
		return NOTIFY_DONE;
	}
	ed = dev_find(dev);
	if (!ed)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UP:
		WRITE_ONCE(ed->up, true);
		esp_dev_enabled(ed);
		break;
	case NETDEV_DOWN:
		WRITE_ONCE(ed->up, false);
		break;
	case NETDEV_FEAT_CHANGE:
		dev_features(ed, dev);
		break;
	case NETDEV_CHANGEMTU:
		dev_tell(ed, ESP_EV_MTU);
		break;
	case NETDEV_CHANGEADDR:
		dev_tell(ed, ESP_EV_MAC);
		break;
	case NETDEV_CHANGENAME:
		esp_sysctl_dev_exit(ed);
		esp_sysctl_dev_init(dev_net(dev), ed, dev->name);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block dev_notifier = {
	.notifier_call	= dev_event,
};

int esp_dev_init(bool default_enable)
{
	esp_default_enable = default_enable;
	return register_netdevice_notifier(&dev_notifier);
}

void esp_dev_exit(void)
{
	/* sends NETDEV_UNREGISTER for every device */
	unregister_netdevice_notifier(&dev_notifier);
	rcu_barrier();
}
