/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ACK queue (seed: "Managing the ACK queue"; rules 11-17). Structures and locks: ackq_types.h.
 */
#ifndef _ESP_ACKQ_H
#define _ESP_ACKQ_H

#include "ackq_types.h"

/**
 * esp_ackq_paced() - Do the queued grants still wait for the pace?
 * @q:		queue
 * @now:	microseconds
 *
 * Packets that arrive ask this; hundreds come during one wait.
 *
 * Return: true if a token that came back changes nothing
 */
static inline bool esp_ackq_paced(const struct esp_ackq *q, u64 now)
{
	u32 until = READ_ONCE(q->until);

	return until && (s32)(until - (u32)now) > 0;
}

/**
 * esp_ackq_wants() - Has the sender packets that it may not send yet?
 * @g:	grant
 *
 * Return: true if a further grant is of use
 */
static inline bool esp_ackq_wants(const struct esp_grant *g)
{
	u32 edge = READ_ONCE(g->edge), recv_seq = READ_ONCE(g->recv_seq);

	return esp_before(esp_before(edge, recv_seq) ? recv_seq : edge, READ_ONCE(g->end));
}

void esp_ackq_left(struct esp_grant *g, u32 end);
void esp_ackq_init(struct esp_ackq *q, const struct esp_policy *p, struct esp_budget *b,
		   const struct esp_ackq_ops *ops);
void esp_grant_init(struct esp_grant *g, u32 recv_seq);
bool esp_ackq_due(const struct esp_ackq *q, struct esp_grant *g);
bool esp_ackq_fast(struct esp_ackq *q, struct esp_grant *g);
void esp_ackq_park(struct esp_ackq *q, struct esp_grant *g);
bool esp_ackq_expired(struct esp_ackq *q, struct esp_grant *g, bool again);
void esp_ack_pump(struct esp_ackq *q);
void esp_ackq_resume(struct esp_ackq *q);
bool esp_ackq_remove(struct esp_ackq *q, struct esp_grant *g);
void esp_ackq_announced(struct esp_ackq *q, struct esp_grant *g, u32 recv_seq,
			u32 edge);
bool esp_ackq_came(struct esp_ackq *q, struct esp_grant *g, u32 count, u32 bytes, bool busy,
		   u32 rtt, u64 now);
bool esp_ackq_rtt(struct esp_ackq *q, struct esp_grant *g, u32 least, u32 rtt, u64 now);
void esp_ackq_lost(struct esp_ackq *q, struct esp_grant *g);
void esp_ackq_gap(struct esp_ackq *q);
void esp_ackq_forget(struct esp_ackq *q, struct esp_host *h);
void esp_ackq_ended(struct esp_ackq *q, struct esp_grant *g);
void esp_ackq_policy(struct esp_ackq *q, const struct esp_policy *p);

#endif /* _ESP_ACKQ_H */
