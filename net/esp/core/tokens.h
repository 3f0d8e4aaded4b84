/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tokens: a token stands for a packet that a sender may send, and that has not arrived.
 *
 *   grant ---> tokens of the socket, of its host, and of the link (esp_grant_extend())
 *                 |
 *                 +--- their packets arrive (esp_tokens_arrived())
 *                 +--- these arrived before (esp_tokens_consumed())
 *                 +--- nobody expects them any more (esp_tokens_void())
 *
 * Each count is atomic, so that packets which arrive take no lock of the link. The bucket of a
 * host is the number of tokens that it may have (budget.h).
 */
#ifndef _ESP_TOKENS_H
#define _ESP_TOKENS_H

#include "ackq_types.h"

/**
 * esp_grant_want() - Find for how many packets the next grant may be
 * @g:	grant
 *
 * Return: the packets; at least 1, because a sender may ask again
 */
static inline u32 esp_grant_want(const struct esp_grant *g)
{
	u32 recv_seq = READ_ONCE(g->recv_seq), edge = READ_ONCE(g->edge), end = READ_ONCE(g->end);

	if (esp_before(edge, recv_seq) || g->expired)
		edge = recv_seq;
	return esp_before(edge, end) ? end - edge : 1;
}

u32 esp_bucket_room(struct esp_ackq *q, const struct esp_host *h);
bool esp_bucket_allows(struct esp_ackq *q, const struct esp_host *h, u32 n);
bool esp_bucket_full(struct esp_ackq *q, const struct esp_host *h);
u32 esp_bucket_quantum(struct esp_ackq *q, const struct esp_host *h, u32 n);
bool esp_bucket_ready(struct esp_ackq *q, struct esp_host *h);

void esp_grant_tokens(struct esp_grant *g, u32 n);
bool esp_grant_extend(struct esp_ackq *q, struct esp_grant *g, u32 *n, bool near);
bool esp_tokens_arrived(struct esp_ackq *q, struct esp_grant *g, u32 seq, u32 count);
bool esp_tokens_consumed(struct esp_ackq *q, struct esp_grant *g);
int esp_tokens_void(struct esp_ackq *q, struct esp_grant *g);

#endif /* _ESP_TOKENS_H */
