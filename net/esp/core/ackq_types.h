/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ACK queue of a link, and the grant of a socket (rules 11-17). Functions: ackq.h for the
 * queue, tokens.h for what is granted.
 *
 * Locks: @lock guards esp_ack_queue and every queued entry. An entry that is
 * not queued belongs to its socket's owner. The tokens (@outstanding of both
 * structures, and of struct esp_host) are atomic, so that arrivals take no shared lock.
 * Order: socket's lock, then @lock; nothing is taken inside @lock.
 */
#ifndef _ESP_ACKQ_TYPES_H
#define _ESP_ACKQ_TYPES_H

#include "pure.h"
#include "policy.h"
#include "budget.h"
#include "overdue.h"

struct esp_grant;
struct esp_ackq;

/**
 * struct esp_ackq_ops - functions by which the queue reaches the sockets
 */
struct esp_ackq_ops {
	/**
	 * @room: number after the last packet that memory can be reserved for (rule 20).
	 * Called with the queue's lock for a socket that the caller doesn't own, and without
	 * it for the caller's own (esp_ackq_fast())
	 */
	u32	(*room)(struct esp_grant *g, u32 recv_seq);
	/**
	 * @send: send a grant: build the ACK with the ack_seq of this moment and start the
	 * RRQ timer. It takes over the reference that the queue held. Called without the queue's
	 * lock
	 */
	void	(*send)(struct esp_grant *g);
	/**
	 * @get: take another reference for the queue, for a grant that leaves and stays
	 * queued. Called with the queue's lock
	 */
	void	(*get)(struct esp_grant *g);
	/**
	 * @later: call esp_ackq_resume() after @wait nanoseconds, unless an earlier call is
	 * due. Called without the queue's lock
	 */
	void	(*later)(struct esp_ackq *q, u32 wait);
	/** @now: the time, nanoseconds */
	u64	(*now)(void);
};

/**
 * struct esp_ackq - the queue of one receiving device
 */
struct esp_ackq {
	/** @lock: guards @esp_ack_queue and every queued grant; see the top of this file */
	spinlock_t			lock;	/* see above */
	/** @esp_ack_queue: queued grants, struct esp_grant.turn.link; not while @policy.adaptive */
	struct list_head		esp_ack_queue;
	/** @turns: hosts with queued grants; only while @policy.adaptive */
	struct esp_turns		turns;
	/** @overdue: tokens that nobody waits for, if @policy.adaptive; under @lock */
	struct esp_overdue		overdue;
	/**
	 * @leaves_at: packets that arrive pump only if no more than these are outstanding then,
	 * because the next grant leaves no earlier; INT_MAX: unknown. Written under @lock
	 */
	int				leaves_at;
	/** @budget: budget of the link, which decides while @policy.adaptive. Set once */
	struct esp_budget		*budget;
	/** @qlen: number of queued grants; written under @lock, read anywhere */
	u32				qlen;
	/** @outstanding: packets granted and not yet arrived, of all sockets; atomic */
	atomic_t			outstanding;
	/** @esp_recv_count: sockets with an announced transmission; atomic */
	atomic_t			esp_recv_count;
	/** @policy: policy of the device's namespace; written under @lock */
	struct esp_policy		policy;
	/**
	 * @until: time until which grants wait for the pace, low half of the clock, microseconds;
	 * 0: they don't. While it is not 0, a call of esp_ackq_resume() is due. Written under @lock
	 */
	u32				until;
	/** @ops: functions by which the queue reaches the sockets; set once */
	const struct esp_ackq_ops	*ops;
};

/**
 * struct esp_grant - a socket's grant, and its place in the queue
 *
 * The socket's owner writes it; while the grant is queued, under the queue's lock. The
 * exceptions are @outstanding, which is atomic, and @recv_seq, @ooo_pkts, @rcv_est and
 * @rcv_mem_pressure, which the owner writes without that lock.
 */
struct esp_grant {
	/** @turn: in esp_ack_queue, or among the grants of @host */
	struct esp_turn_grant	turn;
	/** @host: the sending host; NULL: not connected */
	struct esp_host		*host;
	/** @queued: the grant is queued; the queue holds a reference to the socket */
	u8			queued;
	/** @rcv_mem_pressure: no memory could be reserved; the owner may set it unlocked */
	u8			rcv_mem_pressure;
	/**
	 * @expired: tokens were taken back while packets were missing, and not all of them
	 * were given again (rule 17). 2: it expired again, without a packet in between; 0:
	 * no. Written under the queue's lock while queued
	 */
	u8			expired;
	/** @recv_announced: the sender has announced a transmission: counted in esp_recv_count */
	u8			recv_announced;
	/** @granted_once: the announced transmission has got a grant */
	u8			granted_once;
	/** @outstanding: tokens: packets granted and not yet arrived */
	atomic_t		outstanding;
	/** @recv_seq: copy of the socket's recv_seq, for contexts that don't own the socket */
	u32			recv_seq;
	/** @ooo_pkts: packets after @recv_seq that came out of order */
	u32			ooo_pkts;
	/** @edge: first packet that the peer may not send, while @recv_announced */
	u32			edge;
	/**
	 * @end: number after the last packet that the sender has told of (option LEFT); no grant
	 * goes beyond it while the budget decides
	 */
	u32			end;
	/** @start: number after the packet that announced the transmission */
	u32			start;
	/** @sole_from: packets from this number on make it a sole sender; see grant_sole() */
	u32			sole_from;
	/** @ended: when the last announced transmission ended, ns; 0: there was none */
	u64			ended;
	/**
	 * @near: tokens of @outstanding that were given while the sender was on the same host: the
	 * link and the host's bucket don't count them. Only the socket's owner writes it
	 */
	u32			near;
	/** @each: mean length of the sender's data packets with framing, bytes; 0: none came */
	u32			each;
	/** @class: class of the announced transmission, by its length; see turn.h */
	u8			class;
	/** @window: window of the last beginning, see esp_burst_begins(); 0: none yet */
	u32			window;
	/** @token_start: first packet that came under a token */
	u32			token_start;
	/** @rcv_est: largest truesize of a data packet seen, bytes: a grant reserves it for each */
	u32			rcv_est;
};

#endif /* _ESP_ACKQ_TYPES_H */
