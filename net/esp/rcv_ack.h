/* SPDX-License-Identifier: GPL-2.0-only */
/* What a frame tells the sender. */
#ifndef _ESP_RCV_ACK_H
#define _ESP_RCV_ACK_H

#include "esp.h"

#define ESP_LATE_US	(1000 * 1000)	/* no frame is overtaken by more */

bool esp_ack_rcv(struct sock *sk, struct sk_buff *skb, u64 now, bool late);

/*
 * A frame sent after this one is here already: what this one says of
 * permission and advice is out of date.
 */
static inline bool esp_overtaken(const struct esp_opt *esp,
				 const struct esp_frame *f, u64 now)
{
	u64 ts = esp->ts_recent;

	return (u32)now - (u32)ts < ESP_LATE_US &&
	       esp_before(f->ts_val, (u32)(ts >> 32));
}

#endif /* _ESP_RCV_ACK_H */
