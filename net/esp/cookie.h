/* SPDX-License-Identifier: GPL-2.0-only */
/* The listener's cookies. */
#ifndef _ESP_COOKIE_H
#define _ESP_COOKIE_H

#include "esp.h"

u32 esp_cookie_slot(void);
u32 esp_listen_cookie(struct sock *sk, int ifindex, const struct ethhdr *eth,
		      const struct esp_frame *f, u16 advice, u8 features, u32 slot);
bool esp_cookie_used(u32 slot, u32 cookie, u32 peer_cookie);
bool esp_cookie_use(u32 slot, u32 cookie, u32 peer_cookie);
void esp_cookie_return(u32 slot, u32 cookie, u32 peer_cookie);
int esp_cookie_init(void);
void esp_cookie_exit(void);

#endif /* _ESP_COOKIE_H */
