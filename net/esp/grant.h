/* SPDX-License-Identifier: GPL-2.0-only */
/* The sockets' side of the ACK queue. */
#ifndef _ESP_GRANT_H
#define _ESP_GRANT_H

#include "esp.h"

extern const struct esp_ackq_ops esp_ackq_ops;
void esp_start_rrq_timer(struct esp_opt *esp);
enum hrtimer_restart esp_pace_timeout(struct hrtimer *timer);
void esp_left_far(struct esp_opt *esp, u32 seq);
void esp_announced(struct sock *sk, u32 recv_seq, const struct esp_frame *f);
bool esp_grant_due(struct esp_opt *esp);
bool esp_grant_arrived(struct sock *sk, struct esp_frame *f);
void esp_enqueue_ack(struct sock *sk, bool answer, u32 packets);
void esp_ackq_leave(struct sock *sk, bool void_tokens);
void esp_expiry(struct sock *sk);
void esp_pressure_lifted(struct sock *sk);
void esp_any_room(struct sock *sk);

#endif /* _ESP_GRANT_H */
