// SPDX-License-Identifier: GPL-2.0-only
/* The seed's policy: which sender gets the next grant, and how large it is (rules 14, 15). */
#include "policy.h"

/**
 * esp_policy_fast() - May permission leave without a look at the queue?
 * @count:	esp_recv_count
 *
 * The caller has seen the queue empty (rule 15).
 *
 * Return: true if so
 */
bool esp_policy_fast(int count)
{
	return count <= 1;
}

/**
 * esp_policy_release() - Must the queue's head leave now?
 * @qlen:	entries in the queue
 * @open:	packets granted and not arrived
 * @count:	esp_recv_count
 *
 * It must when the queue is as long as there are senders, and when nothing is on its way
 * that could bring the next cause.
 *
 * Return: true if so
 */
bool esp_policy_release(u32 qlen, int open, int count)
{
	return qlen && ((int)qlen >= count || open <= 0);
}

/**
 * esp_policy_grant() - Compute the size of one grant
 * @p:	policy
 *
 * Return: packets, at least 1
 */
u32 esp_policy_grant(const struct esp_policy *p)
{
	return max_t(u32, READ_ONCE(p->burst_length), 1);
}
