/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets that come in parts (rule 9). */
#ifndef _ESP_RCV_PART_H
#define _ESP_RCV_PART_H

#include "esp.h"

struct sk_buff *esp_part_begin(const struct sk_buff *skb);
bool esp_part_add(struct sk_buff *whole, const struct sk_buff *skb);
struct sk_buff *esp_part_take(struct sock *sk);
void esp_part_forget(struct sock *sk);

#endif /* _ESP_RCV_PART_H */
