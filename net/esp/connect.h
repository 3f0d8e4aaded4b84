/* SPDX-License-Identifier: GPL-2.0-only */
/* The handshake. */
#ifndef _ESP_CONNECT_H
#define _ESP_CONNECT_H

#include "esp.h"
#include "dev.h"

struct esp_dev;

int esp_connect_start(struct sock *sk);
void esp_send_syn(struct sock *sk);
bool esp_handshake_rcv(struct sock *sk, struct sk_buff *skb);
void esp_reply_reset(struct net *net, struct esp_dev *ed, struct sk_buff *skb);
bool esp_listen_answer(struct sock *sk, struct esp_dev *ed, struct sk_buff *skb);
struct sock *esp_listen_rcv(struct sock *sk, struct sk_buff *skb);
void esp_conn_timeout(struct sock *sk);

#endif /* _ESP_CONNECT_H */
