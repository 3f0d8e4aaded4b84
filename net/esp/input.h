/* SPDX-License-Identifier: GPL-2.0-only */
/* A frame from the device to its socket. */
#ifndef _ESP_INPUT_H
#define _ESP_INPUT_H

#include "esp.h"

int esp_backlog_rcv(struct sock *sk, struct sk_buff *skb);
int esp_rcv(struct sk_buff *skb, struct net_device *dev,
	    struct packet_type *pt, struct net_device *orig_dev);

#endif /* _ESP_INPUT_H */
