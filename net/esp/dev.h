/* SPDX-License-Identifier: GPL-2.0-only */
/* Ethernet devices: their entries, and the transmission of frames. */
#ifndef _ESP_DEV_H
#define _ESP_DEV_H

#include <linux/if_arp.h>
#include "esp.h"
#include "link.h"

#define ESP_MBIT_MAX	10000000	/* largest speed of a link, Mbit/s */

/**
 * struct esp_dev - an Ethernet device
 *
 * The table holds a reference until the device leaves. Each attached socket holds one, too.
 */
struct esp_dev {
	/** @ref: references of the table and of sockets */
	refcount_t		ref;
	/** @node: in the table of devices; written under RTNL, read under RCU */
	struct hlist_node	node;
	/** @dev: the device, without a reference; NULL once it is leaving; read under RCU */
	struct net_device __rcu	*dev;
	/** @ifindex: index of the device; set once */
	int			ifindex;
	/** @enabled: 1: the device carries ESP, 0: not; sysctl "enable" */
	int			enabled;
	/** @tx_checksum: 1: checksums are left to the device if @sums; sysctl "tx_checksum" */
	int			tx_checksum;
	/**
	 * @rate_mbit: the link's speed as the administrator tells it, Mbit/s; 0: ethtool's figure
	 * counts; sysctl "rate_mbit". Without effect while a lower device owns @link
	 */
	int			rate_mbit;
	/** @speed_stale: ethtool has to be asked anew for the link's speed; under RTNL */
	bool			speed_stale;
	/** @ns: state of the device's namespace; valid for readers that have seen @dev */
	struct esp_net		*ns;
	/**
	 * @headroom: bytes that the device's headers need, as of the last frame. esp_dev_xmit()
	 * makes room if they need more by then
	 */
	unsigned int		headroom;
	/** @local: no frame leaves this machine by the device; set once */
	bool			local;
	/** @up: the device is up; the notifier writes it */
	bool			up;
	/**
	 * @sums: the device computes checksums of outgoing frames; the notifier writes it. The
	 * kernel computes a checksum if the device does not when the frame leaves
	 */
	bool			sums;
	/**
	 * @takes_gso: the device takes GSO packets unsegmented, which no network adapter does;
	 * the notifier writes it
	 */
	bool			takes_gso;
	/** @lock: guards @link, @own_link and @socks */
	spinlock_t		lock;	/* see @lock */
	/**
	 * @link: link of the receiving lower device, with a reference. A connected socket takes
	 * a reference of its own
	 */
	struct esp_link		*link;
	/** @own_link: @link is this device's, not a lower device's */
	bool			own_link;
	/** @socks: sockets bound to the device or connected over it, by esp_opt.dev_node */
	struct list_head	socks;
	/** @ctl: sysctls net.esp.dev.NAME; NULL: not registered */
	struct ctl_table_header	*ctl;
	/** @table: table of @ctl */
	struct ctl_table	*table;
	/** @name: path of @ctl */
	char			name[sizeof("net/esp/dev/") + IFNAMSIZ];
	/** @rcu: frees the structure */
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
u32 esp_dev_mbit(const struct esp_dev *ed);
void esp_dev_apply_rate(struct esp_dev *ed);
int esp_dev_set_mbit(struct esp_dev *ed, int mbit);
void esp_dev_read_speeds(void);
int esp_dev_mtu(struct esp_dev *ed);
int esp_dev_mac(struct esp_dev *ed, u8 *mac);
int esp_dev_check(struct esp_dev *ed);
unsigned int esp_dev_update_headroom(struct esp_dev *ed, const struct net_device *dev);
void esp_dev_features(struct esp_dev *ed, const struct net_device *dev);
u32 esp_dev_gso_bytes(struct esp_dev *ed, u32 size);
int esp_dev_xmit(struct sk_buff *skb, struct esp_dev *ed, const u8 *daddr,
		 const u8 *saddr);

/* Does the device have Ethernet's addresses and headers? */
static inline bool esp_dev_fits(const struct net_device *dev)
{
	return (dev->type == ARPHRD_ETHER || dev->type == ARPHRD_LOOPBACK) &&
	       dev->addr_len == ETH_ALEN && dev->hard_header_len >= ETH_HLEN &&
	       dev->header_ops && dev->header_ops->create;
}

/**
 * esp_dev_usable() - check whether the device can send frames
 * @ed:	device
 *
 * Return: 0; ENETDOWN: the device is down, leaving, or not enabled for ESP
 */
static inline int esp_dev_usable(const struct esp_dev *ed)
{
	return READ_ONCE(ed->up) && READ_ONCE(ed->enabled) ? 0 : -ENETDOWN;
}

/* Read the headroom that a frame needs in front of the ESP header, bytes. */
static inline unsigned int esp_dev_headroom(const struct esp_dev *ed)
{
	return READ_ONCE(ed->headroom);
}

/**
 * esp_dev_checksums() - does the device compute checksums of outgoing frames?
 * @ed:	device
 *
 * Many a NIC that claims this feature computes TCP's and UDP's checksums only, and a bridge
 * may forward to such a NIC. So the sysctl tx_checksum decides, too. It is off by default on
 * devices whose frames may leave the machine.
 *
 * Return: true if the sender may use CHECKSUM_PARTIAL
 */
static inline bool esp_dev_checksums(const struct esp_dev *ed)
{
	return READ_ONCE(ed->tx_checksum) && READ_ONCE(ed->sums);
}

#endif /* _ESP_DEV_H */
