/* SPDX-License-Identifier: GPL-2.0-only */
/* The sender's side of the peer's frames. */
#ifndef _ESP_RCV_ACK_H
#define _ESP_RCV_ACK_H

#include "esp.h"

#define ESP_LATE_US	(1000 * 1000)	/* longest time by which a frame is overtaken */

void esp_ack_rcv(struct sock *sk, struct sk_buff *skb, u64 now, bool late);
void esp_mss_rcv(struct sock *sk, u16 mss);

/* Has everything been sent that this frame acknowledges? Nothing else of it is believed if not. */
static inline bool esp_ack_valid(const struct esp_opt *esp, const struct esp_frame *f)
{
	return !esp_after(f->ack_seq, esp->snd.send_next);
}

/*
 * Is a frame that was sent after this one here already? Then the grant and the first
 * burst that this frame tells are out of date.
 */
static inline bool esp_overtaken(const struct esp_opt *esp,
				 const struct esp_frame *f, u64 now)
{
	u64 ts = esp->ts_recent;

	return (u32)now - (u32)ts < ESP_LATE_US &&
	       esp_before(f->ts_val, (u32)(ts >> 32));
}

#endif /* _ESP_RCV_ACK_H */
