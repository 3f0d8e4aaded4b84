/* SPDX-License-Identifier: GPL-2.0-only */
/* The tail of the receive queue. */
#ifndef _ESP_RCV_COALESCE_H
#define _ESP_RCV_COALESCE_H

#include "esp.h"

void esp_rcvq_append(struct sock *sk, struct sk_buff *skb);

#endif /* _ESP_RCV_COALESCE_H */
