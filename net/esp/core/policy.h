/* SPDX-License-Identifier: GPL-2.0-only */
/* Settings of ACK queues, and the seed's policy (rules 14, 15). */
#ifndef _ESP_POLICY_H
#define _ESP_POLICY_H

#include "pure.h"

/**
 * struct esp_policy - what the administrator sets, per receiving device
 * @adaptive:		the budget decides (budget.h); 0: the seed's policy
 * @shortest_first:	adaptive: short messages have their turns first (turn.h); 0: who has
 *			waited longest
 * @burst_length:	adaptive: cap on a sender's permission, 0 none; seed's:
 *			the window
 * @q_min:		lower bound of the budget, packets
 * @q_max:		upper bound of the budget, packets
 * @first_pool:		F, packets of all senders' first bursts (rule 21)
 */
struct esp_policy {
	u8	adaptive;
	u8	shortest_first;
	u16	burst_length;
	u32	q_min;
	u32	q_max;
	u32	first_pool;
};

bool esp_policy_fast(int count);
bool esp_policy_release(u32 qlen, int open, int count);
u32 esp_policy_grant(const struct esp_policy *p);

#endif /* _ESP_POLICY_H */
