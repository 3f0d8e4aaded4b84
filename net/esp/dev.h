/* SPDX-License-Identifier: GPL-2.0-only */
/* Ethernet devices: what is known of them, and frames on their way out. */
#ifndef _ESP_DEV_H
#define _ESP_DEV_H

#include "esp.h"
#include "link.h"

/**
 * struct esp_dev - an Ethernet device
 * @ref:	the table (until the device leaves) and sockets hold it
 * @node:	in the table, RCU
 * @dev:	NULL once the device is leaving; read under RCU, never held
 * @ifindex:	stays
 * @enabled:	carries ESP
 * @tx_checksum: checksums are left to the device, if it says it can
 * @up:		it is up, as its notifier says
 * @ns:		its namespace's state; for who has seen @dev
 * @headroom:	what its headers need, as of the last frame; if it is too little
 *		by now, esp_dev_xmit() makes room
 * @sums:	it computes checksums of what leaves, as its notifier says; if it
 *		doesn't when a frame leaves, the kernel does
 * @takes_gso:	it takes super-packets as they are, as no network adapter does
 * @lock:	guards @link's replacement and @socks
 * @link:	the receiving lower device's; sockets take a reference of their
 *		own when they are connected
 * @own_link:	@link is this device's, not a lower one's
 * @socks:	sockets bound to or connected over it, esp_opt.dev_node
 * @ctl:	net.esp.dev.NAME
 * @table:	its table
 * @name:	path of @ctl
 * @rcu:	for kfree_rcu
 */
struct esp_dev {
	refcount_t		ref;
	struct hlist_node	node;
	struct net_device __rcu	*dev;
	int			ifindex;
	int			enabled;
	int			tx_checksum;
	struct esp_net		*ns;
	unsigned int		headroom;
	bool			up;
	bool			sums;
	bool			takes_gso;
	spinlock_t		lock;	/* see @lock */
	struct esp_link		*link;
	bool			own_link;
	struct list_head	socks;
	struct ctl_table_header	*ctl;
	struct ctl_table	*table;
	char			name[sizeof("net/esp/dev/") + IFNAMSIZ];
	struct rcu_head		rcu;
};

void esp_dev_add(struct esp_dev *ed, struct net_device *dev);
struct esp_dev *esp_dev_rcu(const struct net_device *dev);
struct esp_dev *esp_dev_get(struct net *net, int ifindex);
struct esp_dev *esp_dev_only(struct net *net);
void esp_dev_put(struct esp_dev *ed);
int esp_dev_link(struct sock *sk, struct esp_dev *ed);
void esp_dev_unlink(struct sock *sk);
void esp_dev_release(struct sock *sk);
struct esp_link *esp_link_get(struct esp_dev *ed);
int esp_dev_mtu(struct esp_dev *ed);
int esp_dev_mac(struct esp_dev *ed, u8 *mac);
unsigned int esp_dev_update_headroom(struct esp_dev *ed, const struct net_device *dev);
void esp_dev_features(struct esp_dev *ed, const struct net_device *dev);
u32 esp_dev_gso_bytes(struct esp_dev *ed, u32 size);
int esp_dev_xmit(struct sk_buff *skb, struct esp_dev *ed, const u8 *daddr,
		 const u8 *saddr);

/**
 * esp_dev_usable() - can frames leave?
 * @ed:	device
 *
 * Return: 0; ENETDOWN: down, leaving, or not enabled for ESP
 */
static inline int esp_dev_usable(const struct esp_dev *ed)
{
	return READ_ONCE(ed->up) && READ_ONCE(ed->enabled) ? 0 : -ENETDOWN;
}

/* In front of the ESP header. */
static inline unsigned int esp_dev_headroom(const struct esp_dev *ed)
{
	return READ_ONCE(ed->headroom);
}

/**
 * esp_dev_checksums() - does the device compute checksums of what leaves?
 * @ed:	device
 *
 * Many a NIC that claims so knows TCP and UDP only, and a bridge may forward to
 * one: tx_checksum decides, which is off where frames may leave the machine.
 *
 * Return: true if so: CHECKSUM_PARTIAL
 */
static inline bool esp_dev_checksums(const struct esp_dev *ed)
{
	return READ_ONCE(ed->tx_checksum) && READ_ONCE(ed->sums);
}

#endif /* _ESP_DEV_H */
