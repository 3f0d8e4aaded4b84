/* SPDX-License-Identifier: GPL-2.0-only */
/* Received data: order, memory, and gaps. */
#ifndef _ESP_RCV_DATA_H
#define _ESP_RCV_DATA_H

#include "esp.h"

void esp_gap_seen(struct sock *sk, u32 end);
void esp_gap_timeout(struct sock *sk);
void esp_data_rcv(struct sock *sk, struct sk_buff *skb);
void esp_empty_rcv(struct sock *sk, struct esp_frame *f);

#endif /* _ESP_RCV_DATA_H */
