/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses, and the devices that they select. */
#ifndef _ESP_ADDR_H
#define _ESP_ADDR_H

#include "esp.h"

int esp_addr_check(const struct sockaddr_esp *a, int len);
void esp_addr_local(struct sock *sk, struct sockaddr_esp *a);
void esp_addr_peer(struct sock *sk, struct sockaddr_esp *a);
struct esp_dev *esp_addr_device(struct sock *sk, const struct sockaddr_esp *a);
int esp_connect_device(struct sock *sk, const struct sockaddr_esp *a);
int esp_bind(struct socket *sock, struct sockaddr_unsized *addr, int len);

#endif /* _ESP_ADDR_H */
