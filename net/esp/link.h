/* SPDX-License-Identifier: GPL-2.0-only */
/* A link: the receiving side of a device, where frames congest (rule 12). */
#ifndef _ESP_LINK_H
#define _ESP_LINK_H

#include <linux/jhash.h>
#include "esp.h"

#define ESP_PEER_BUCKETS 64

/**
 * struct esp_devq - frames with payload that wait in front of a device; see dev_queue.c
 */
struct esp_devq {
	/** @busy: connections with frames that the device is not done with, but for paced ones */
	atomic_t		busy;
	/** @unused: packets that peers permit and that wait for the device; atomic */
	atomic_t		unused;
	/** @link_busy: they are many: frames have BUSY. Any connection's owner writes it */
	u8			link_busy;
	/** @limit: what these connections may have there together, units; written under @lock */
	int			limit;
	/** @low: least that was left in the queue at a turn since @since; U32_MAX: no turn */
	u32			low;
	/** @since: start of the interval of @low, microseconds; under @lock */
	u64			since;
	/** @halved: when the queue had no room and @limit was halved, microseconds; under @lock */
	u64			halved;
	/** @lock: guards @ready, @due, the timer's start, and the fields above */
	spinlock_t		lock;	/* see @lock */
	/** @due: @timer was started, and has not run since; under @lock */
	bool			due;
	/**
	 * @ready: connections that have waited, and one of whose frames was freed, each with a
	 * reference, by devq_node
	 */
	struct list_head	ready;
	/** @timer: gives turns; canceled before the link is freed */
	struct hrtimer		timer;
};

/**
 * struct esp_link - a receiving lower device: where frames congest (rule 12)
 *
 * A link lives as long as a device or a socket refers to it.
 */
struct esp_link {
	/** @ref: references of struct esp_dev and of connected sockets */
	refcount_t		ref;
	/** @ackq: the ACK queue, with a lock of its own */
	struct esp_ackq		ackq;
	/** @budget: budget of @ackq, which guards it */
	struct esp_budget	budget;
	/**
	 * @lock: guards @peers and @npeers. Taken when a connection comes or goes, and for a
	 * smaller round trip than any before, not for each packet
	 */
	spinlock_t		lock;	/* see @lock */
	/** @peers: struct esp_peer, by esp_peer_hash() */
	struct hlist_head	peers[ESP_PEER_BUCKETS];
	/** @peer_seed: secret with which @peers are hashed */
	u32			peer_seed;
	/** @npeers: number of peers that may begin a transmission; read without the lock */
	u32			npeers;
	/**
	 * @pace: timer that calls esp_ack_pump() when the link has carried the granted packets.
	 * It holds no reference. It is canceled before @rcu frees the link
	 */
	struct hrtimer		pace;
	/** @devq: the sending side: frames that wait in front of the device */
	struct esp_devq		devq;
	/**
	 * @set_mbit: the link's speed as the sysctl "rate_mbit" of the device that owns the link
	 * tells it, Mbit/s; 0: not set
	 */
	u32			set_mbit;
	/** @ethtool_mbit: the link's speed as ethtool reports it, Mbit/s; 0: not known */
	u32			ethtool_mbit;
	/** @rcu: frees the structure */
	struct rcu_head		rcu;
};

/**
 * esp_link_mbit() - read the link's speed, as far as it was told
 * @link:	link
 *
 * Needs no lock. The administrator's figure comes before ethtool's.
 *
 * Return: Mbit/s; 0: not known
 */
static inline u32 esp_link_mbit(const struct esp_link *link)
{
	u32 set = READ_ONCE(link->set_mbit);

	return set ? set : READ_ONCE(link->ethtool_mbit);
}

/* Hash a MAC address. Without the seed nobody can choose addresses that share a bucket. */
static inline u32 esp_peer_hash(u32 seed, const u8 *mac)
{
	return jhash(mac, ETH_ALEN, seed) % ESP_PEER_BUCKETS;
}

void esp_policy_get(struct net *net, struct esp_policy *p);
void esp_link_put(struct esp_link *link);
u32 esp_link_bucket(const struct sock *sk, int *open);

/* Compute the time that packets take on the link one after the other, microseconds. */
static inline u32 esp_link_wire_time(const struct esp_link *link, u32 n)
{
	return div_u64(esp_budget_wire_time(&link->budget, min_t(u32, n, 4096)), 1000);
}

void esp_link_rate(struct esp_link *link, u32 mbit, u32 mtu);
struct esp_link *esp_link_alloc(struct net *net, const struct esp_ackq_ops *ops,
				enum hrtimer_restart (*pace)(struct hrtimer *timer));

#endif /* _ESP_LINK_H */
