/* SPDX-License-Identifier: GPL-2.0-only */
/* Datagrams: EDP. */
#ifndef _ESP_DGRAM_H
#define _ESP_DGRAM_H

#include "esp.h"
#include "dev.h"

struct esp_dev;

extern const struct proto_ops esp_dgram_ops;
int esp_dgram_kill(struct sock *sk, int err);
void esp_dgram_rcv(struct net *net, struct esp_dev *ed, struct sk_buff *skb);

#endif /* _ESP_DGRAM_H */
