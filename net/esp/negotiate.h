/* SPDX-License-Identifier: GPL-2.0-only */
/* Values that both ends agree on in the handshake. */
#ifndef _ESP_NEGOTIATE_H
#define _ESP_NEGOTIATE_H

#include "esp.h"
#include "dev.h"

/* The features of this version, ESP_FEATURE_*. */
#define ESP_FEATURES_KNOWN	(ESP_FEATURE_CRC32C | ESP_FEATURE_PARTS | ESP_FEATURE_TCP | \
				 ESP_FEATURE_LEFT | ESP_FEATURE_LATER)

struct esp_dev;

u32 esp_packet_max(struct sock *sk);
void esp_update_mss(struct sock *sk);
u16 esp_own_mss(struct esp_dev *ed);
u16 esp_own_burst(struct sock *sk);
void esp_set_burst(struct sock *sk);
u32 esp_packets_to_ack(struct sock *sk);
u32 esp_ack_each(struct sock *sk);
u8 esp_agree(u8 own, u8 peers);
void esp_hello(struct sock *sk, struct esp_frame *f);

#endif /* _ESP_NEGOTIATE_H */
