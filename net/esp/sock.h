/* SPDX-License-Identifier: GPL-2.0-only */
/* A socket's creation, state and destruction. */
#ifndef _ESP_SOCK_H
#define _ESP_SOCK_H

#include "esp.h"

/* The two protocols, in af_esp.c because they name functions of all layers. */
extern struct proto esp_prot;
extern struct proto esp_dgram_prot;

void esp_set_state(struct sock *sk, int state);
extern int esp_max_orphans;

bool esp_orphan_refused(const struct sock *sk);
bool esp_orphans_crowd(void);
bool esp_orphan_waits_short(struct sock *sk);
void esp_orphan(struct sock *sk);
void esp_orphan_ended(struct sock *sk);
void esp_start_orphan_timer(struct sock *sk);
void esp_wait_orphans(void);
struct sock *esp_sock_alloc(struct net *net, struct socket *sock, int type,
			    int kern, gfp_t gfp);
int esp_control(struct sock *sk, struct msghdr *msg, struct sockcm_cookie *cookie);

#endif /* _ESP_SOCK_H */
