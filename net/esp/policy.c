// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ACK queue's two policies, the budget that the adaptive one works with,
 * and the pool of first bursts.
 */
#include "policy.h"

/**
 * esp_policy_fast() - may permission leave without a look at the queue?
 * @p:		policy
 * @q:		budget Q
 * @open:	packets granted and not arrived
 * @count:	esp_recv_count
 *
 * The caller has seen the queue empty (rule 15).
 *
 * Return: true if so
 */
bool esp_policy_fast(const struct esp_policy *p, u32 q, int open, int count)
{
	if (!p->adaptive)
		return count <= 1;
	return open < (int)q;
}

/**
 * esp_policy_release() - must the queue's head leave now?
 * @p:		policy
 * @q:		budget Q
 * @qlen:	entries in the queue
 * @open:	packets granted and not arrived
 * @count:	esp_recv_count
 *
 * Seed: when the queue is as long as there are senders. Adaptive: while open
 * is below the budget. Both: an idle network never leaves anybody waiting.
 *
 * Return: true if so
 */
bool esp_policy_release(const struct esp_policy *p, u32 q, u32 qlen, int open,
			int count)
{
	if (!qlen)
		return false;
	if (!p->adaptive)
		return (int)qlen >= count || open <= 0;
	return open < (int)q;
}

/**
 * esp_policy_grant() - size of one grant
 * @p:		policy
 * @q:		budget Q
 * @count:	esp_recv_count
 *
 * Return: packets, at least 1
 */
u32 esp_policy_grant(const struct esp_policy *p, u32 q, int count)
{
	u32 n;

	if (!p->adaptive)
		return max_t(u32, p->burst_length, 1);
	n = clamp_t(u32, q / 4, ESP_GRANT_MIN, ESP_GRANT_MAX);
	if (count <= 1)
		n = max_t(u32, n, ESP_GRANT_LONE);
	if (p->burst_length)
		n = min_t(u32, n, p->burst_length);
	return n;
}

/**
 * esp_qctl_init() - start with what suits a gigabit link
 * @c:	control
 * @p:	policy
 */
void esp_qctl_init(struct esp_qctl *c, const struct esp_policy *p)
{
	c->q = clamp_t(u32, 64, p->q_min, p->q_max);
	c->last = 0;
	c->limited = 0;
	c->fast = 1;
}

/**
 * esp_qctl_sample() - adapt the budget, once a round trip
 * @c:		control
 * @p:		policy
 * @median:	of the round's samples, microseconds
 * @min_rtt:	smallest round trip to this peer
 * @now:	microseconds
 *
 * Queueing shows as round trips above the smallest. Grows only if the budget
 * was what held the senders back.
 */
void esp_qctl_sample(struct esp_qctl *c, const struct esp_policy *p,
		     u32 median, u32 min_rtt, u64 now)
{
	u32 extra = median > min_rtt ? median - min_rtt : 0;
	u32 bound = max_t(u32, ESP_EXTRA_US, min_rtt / 2);
	u32 q = c->q;

	if (now - c->last < median)
		return;
	c->last = now;
	if (extra > bound) {
		c->fast = 0;
		q -= q / 8;
	} else if (!c->limited) {
		return;
	} else if (c->fast && extra <= bound / 2) {
		q *= 2;
	} else if (extra <= bound / 2) {
		c->fast = 0;
		q += q / 16 + 1;
	}
	c->limited = 0;
	WRITE_ONCE(c->q, clamp_t(u32, q, p->q_min, p->q_max));
}

/**
 * esp_qctl_loss() - packets were lost: budget × 0.7, once a round trip
 * @c:		control
 * @p:		policy
 * @srtt:	round trip, microseconds
 * @now:	microseconds
 */
void esp_qctl_loss(struct esp_qctl *c, const struct esp_policy *p, u32 srtt,
		   u64 now)
{
	if (now - c->last < srtt)
		return;
	c->last = now;
	c->fast = 0;
	WRITE_ONCE(c->q, clamp_t(u32, c->q * 7 / 10, p->q_min, p->q_max));
}

/**
 * esp_advice_handshake() - first burst for a new peer (rule 21)
 * @pool:	F
 * @given:	packets that others may start with already
 *
 * Return: packets: the power of two below half of what is left, up to 32
 */
u32 esp_advice_handshake(u32 pool, u32 given)
{
	u32 half = pool > given ? (pool - given) / 2 : 0;
	u32 n = 1;

	if (!half)
		return pool > given;
	while (n * 2 <= half && n < ESP_ADVICE_HANDSHAKE)
		n *= 2;
	return n;
}

/**
 * esp_advice_connected() - first burst of a connected peer (rule 21)
 * @pool:	F
 * @given:	packets that all peers may start with, @own included
 * @own:	this peer's share of that
 * @peers:	connected peers, this one included
 *
 * Return: packets: an equal share, but no raise beyond what is left
 */
u32 esp_advice_connected(u32 pool, u32 given, u32 own, u32 peers)
{
	u32 n = min_t(u32, ESP_ADVICE_MAX, pool / max_t(u32, peers, 1));
	u32 left = pool > given ? pool - given : 0;

	return n > own ? min_t(u32, n, own + left) : n;
}
