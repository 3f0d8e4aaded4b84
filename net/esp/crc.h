/* SPDX-License-Identifier: GPL-2.0-only */
/* CRC32c over a frame. */
#ifndef _ESP_CRC_H
#define _ESP_CRC_H

#include "esp.h"

void esp_crc_fill(struct sk_buff *skb);
bool esp_crc_right(struct sk_buff *skb);

#endif /* _ESP_CRC_H */
