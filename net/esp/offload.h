/* SPDX-License-Identifier: GPL-2.0-only */
/* GSO and GRO: one frame that stands for several packets. */
#ifndef _ESP_OFFLOAD_H
#define _ESP_OFFLOAD_H

#include "esp.h"

void esp_gso_mark(struct sk_buff *skb, u16 size, u16 segs);
bool esp_gso_valid(const struct sk_buff *skb);
void esp_offload_init(void);
void esp_offload_exit(void);

#endif /* _ESP_OFFLOAD_H */
