/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of a connection. */
#ifndef _ESP_CLOSE_H
#define _ESP_CLOSE_H

#include "esp.h"

void esp_connect_failed(struct sock *sk);
void esp_purge_ooo(struct esp_opt *esp);
void esp_done(struct sock *sk, int err);
void esp_destroy(struct sock *sk);
void esp_time_wait(struct sock *sk);
void esp_reset_peer(struct sock *sk);
void esp_reset_and_linger(struct sock *sk);
void esp_abort(struct sock *sk, int err);
void esp_refuse(struct sock *sk);
void esp_end_orphans(void);
int esp_shutdown(struct socket *sock, int how);
int esp_release(struct socket *sock);
int esp_kill(struct sock *sk, int err);

#endif /* _ESP_CLOSE_H */
