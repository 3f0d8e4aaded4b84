/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ACK queue (seed: "Managing the ACK queue"; rules 11-17).
 *
 * Locks: @lock guards esp_ack_queue and every queued entry. An entry that is
 * not queued belongs to its socket's owner. The tokens (@outstanding of both
 * structures) are atomic, so that arrivals take no shared lock.
 * Order: socket's lock, then @lock; nothing is taken inside @lock.
 */
#ifndef _ESP_ACKQ_H
#define _ESP_ACKQ_H

#include "pure.h"
#include "policy.h"

struct esp_grant;
struct esp_ackq;

/**
 * struct esp_ackq_ops - what the queue needs of the sockets
 * @room:	last packet number + 1 for which memory can be reserved
 *		(rule 20); called with the queue's lock, for sockets that the
 *		caller doesn't own
 * @send:	permission leaves: build the ACK with the ack_seq of this moment
 *		and start the RRQ timer. Called without the queue's lock; with
 *		queued set, it takes over the reference that the queue held
 * @get:	another reference for the queue, for a permission that leaves
 *		and stays queued; called with the queue's lock
 * @later:	to call esp_ackq_resume() after so many nanoseconds, unless it is to
 *		be called before; called without the queue's lock
 * @now:	the time, nanoseconds
 */
struct esp_ackq_ops {
	u32	(*room)(struct esp_grant *g, u32 recv_seq);
	void	(*send)(struct esp_grant *g, bool queued);
	void	(*get)(struct esp_grant *g);
	void	(*later)(struct esp_ackq *q, u32 wait);
	u64	(*now)(void);
};

/**
 * struct esp_ackq - the queue of one receiving device
 * @lock:		see above
 * @esp_ack_queue:	parked permissions, struct esp_grant.link
 * @qlen:		their number; written under @lock, read anywhere
 * @outstanding:		packets granted and not yet arrived, of all sockets
 * @arrived:		packets that have arrived, of all sockets
 * @esp_recv_count:	sockets with an announced transmission
 * @policy:		from the device's namespace; written under @lock
 * @ctl:		the budget; written under @lock, but for whole, which each socket's
 *			owner writes; q, lone and what tells of the wire are read anywhere
 * @until:		the head waits for the pace, until then; low half of the clock,
 *			microseconds. While that is to come, so is esp_ackq_resume()
 * @ops:		see there
 */
struct esp_ackq {
	spinlock_t			lock;	/* see above */
	struct list_head		esp_ack_queue;
	u32				qlen;
	atomic_t			outstanding;
	atomic_t			arrived;
	atomic_t			esp_recv_count;
	struct esp_policy		policy;
	struct esp_qctl			ctl;
	u32				until;
	const struct esp_ackq_ops	*ops;
};

/**
 * struct esp_grant - a socket's permission, its place in the queue
 * @link:	in esp_ack_queue
 * @queued:	parked; the queue holds a reference to the socket
 * @rcv_mem_pressure: no memory could be reserved
 * @expired:	tokens taken back while packets were missing, and not all of them
 *		given again (rule 17); 2: once more without a packet in between;
 *		under @lock while queued
 * @recv_announced: the sender has announced a transmission: counted in esp_recv_count
 * @granted_once:	and has got permission for it
 * @outstanding:	tokens: packets granted and not yet arrived
 * @recv_seq:	the socket's recv_seq, for those who don't own it; so
 * @ooo_pkts:	packets beyond it that came out of order
 * @edge:	first packet that the peer may not send, while @recv_announced
 * @token_start:	first packet that came under a token
 * @rcv_est:	largest truesize of a data packet seen: what a grant reserves for each
 */
struct esp_grant {
	struct list_head	link;
	u8			queued;
	u8			rcv_mem_pressure;
	u8			expired;
	u8			recv_announced;
	u8			granted_once;
	atomic_t		outstanding;
	u32			recv_seq;
	u32			ooo_pkts;
	u32			edge;
	u32			token_start;
	u32			rcv_est;
};

/**
 * esp_ackq_paced() - does the queue's head still wait for the pace?
 * @q:		queue
 * @now:	microseconds
 *
 * For arrivals, which come by hundreds meanwhile. An @until that is so long ago that
 * it looks as if it were to come counts for a millisecond.
 *
 * Return: true if a token that came back changes nothing
 */
static inline bool esp_ackq_paced(const struct esp_ackq *q, u64 now)
{
	return READ_ONCE(q->until) - (u32)now - 1 < ESP_PACE_MAX / 1000 &&
	       atomic_read(&q->outstanding) >= ESP_GRANT_LONE;
}

void esp_ackq_init(struct esp_ackq *q, const struct esp_policy *p,
		   const struct esp_ackq_ops *ops);
void esp_grant_init(struct esp_grant *g, u32 recv_seq);
bool esp_ackq_fast(struct esp_ackq *q, struct esp_grant *g);
void esp_ackq_park(struct esp_ackq *q, struct esp_grant *g);
bool esp_ackq_expired(struct esp_ackq *q, struct esp_grant *g, bool again);
void esp_ack_pump(struct esp_ackq *q);
void esp_ackq_resume(struct esp_ackq *q);
bool esp_ackq_remove(struct esp_ackq *q, struct esp_grant *g);
void esp_ackq_announced(struct esp_ackq *q, struct esp_grant *g, u32 recv_seq,
			u32 edge);
bool esp_ackq_arrived(struct esp_ackq *q, struct esp_grant *g, u32 seq,
		      u32 count);
bool esp_ackq_consumed(struct esp_ackq *q, struct esp_grant *g);
int esp_ackq_void(struct esp_ackq *q, struct esp_grant *g);
void esp_ackq_dry(struct esp_ackq *q);
void esp_ackq_ended(struct esp_ackq *q, struct esp_grant *g);
void esp_ackq_policy(struct esp_ackq *q, const struct esp_policy *p);

#endif /* _ESP_ACKQ_H */
