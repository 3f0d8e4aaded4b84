/* SPDX-License-Identifier: GPL-2.0-only */
/* A link: the receiving side of a device, where frames congest (rule 12). */
#ifndef _ESP_LINK_H
#define _ESP_LINK_H

#include "esp.h"

#define ESP_PEER_BUCKETS 64

/**
 * struct esp_link - a receiving lower device: where frames congest (rule 12)
 * @ref:	esp_dev and connected sockets hold it
 * @ackq:	the ACK queue
 * @lock:	guards what follows, but for @pace; taken when connections come, go
 *		or end a transmission, and once in a round trip, not for each packet
 * @peers:	struct esp_peer by MAC address
 * @npeers:	how many of them may begin a transmission
 * @given:	packets of first bursts that peers may send (rule 21)
 * @pending:	likewise, advised in SYN|ACKs that were not yet echoed; of this
 *		slot and of the one before
 * @slot:	start of this slot, microseconds
 * @shared:	when those who had more than a share were last told so, microseconds
 * @pace:	calls esp_ack_pump() when the link has carried what was permitted;
 *		holds no reference, canceled before @rcu frees the port
 * @rcu:	the end
 *
 * Lives as long as a device or a socket refers to it.
 */
struct esp_link {
	refcount_t		ref;
	struct esp_ackq		ackq;
	spinlock_t		lock;	/* see @lock */
	struct hlist_head	peers[ESP_PEER_BUCKETS];
	u32			npeers;
	u32			given;
	u32			pending[2];
	u64			slot;
	u64			shared;
	struct hrtimer		pace;
	struct rcu_head		rcu;
};

void esp_policy_get(struct net *net, struct esp_policy *p);
void esp_link_put(struct esp_link *link);
struct esp_link *esp_link_alloc(struct net *net, const struct esp_ackq_ops *ops,
				enum hrtimer_restart (*pace)(struct hrtimer *timer));

#endif /* _ESP_LINK_H */
