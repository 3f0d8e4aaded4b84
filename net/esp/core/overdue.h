/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Overdue packets: granted, not arrived, and no longer waited for.
 *
 * A host that has not sent for too long what it was granted keeps the tokens in its bucket, and
 * others may have as many more. So a host that holds back its packets takes the link from nobody
 * else, however long its round trips are by its own word.
 *
 * Locks: the ACK queue's lock guards all of this.
 */
#ifndef _ESP_OVERDUE_H
#define _ESP_OVERDUE_H

#include "pure.h"
#include "budget.h"

/**
 * struct esp_overdue - overdue packets of one ACK queue
 */
struct esp_overdue {
	/** @holders: hosts with outstanding packets, in the order in which they are looked at */
	struct list_head	holders;
	/** @tokens: sum of esp_host.overdue */
	u32			tokens;
};

void esp_overdue_init(struct esp_overdue *o);
void esp_overdue_granted(struct esp_overdue *o, struct esp_host *h, u32 n, u64 due);
u32 esp_overdue_look(struct esp_overdue *o, u64 now, u64 patience);
void esp_overdue_forget(struct esp_overdue *o, struct esp_host *h);

#endif /* _ESP_OVERDUE_H */
