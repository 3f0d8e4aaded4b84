/* SPDX-License-Identifier: GPL-2.0-only */
/* The device's queue: how much data waits in front of a device. */
#ifndef _ESP_DEV_QUEUE_H
#define _ESP_DEV_QUEUE_H

#include "esp.h"
#include "link.h"

void esp_devq_init(struct esp_devq *q, enum hrtimer_restart (*turns)(struct hrtimer *timer));
void esp_devq_attach(struct sock *sk, struct esp_link *link);
void esp_devq_detach(struct sock *sk);
u32 esp_devq_may_send(struct sock *sk, u32 n, u32 size, u32 most);
u32 esp_devq_held(const struct sock *sk);
bool esp_devq_holds(const struct sock *sk, const struct sk_buff *skb);
void esp_devq_own(struct sk_buff *skb, struct sock *sk);
void esp_devq_follow(struct sk_buff *skb, struct sock *sk);
void esp_devq_move(struct sk_buff *skb, struct sk_buff *last);
void esp_devq_refused(struct sock *sk);
void esp_devq_adapt(struct esp_devq *q, u32 left, u64 now);
void esp_devq_round(struct esp_devq *q);
struct sock *esp_devq_next(struct esp_devq *q);
void esp_devq_rest(struct esp_devq *q);
void esp_devq_leave(struct sock *sk);
void esp_devq_unused(struct sock *sk, u32 n);
void esp_devq_permitted(struct sock *sk);
bool esp_devq_is_busy(const struct sock *sk);
bool esp_devq_link_busy(struct sock *sk);

/* Does the socket wait for a frame of its own to be freed, or for its turn after that? */
static inline bool esp_devq_waits(const struct esp_opt *esp)
{
	return !list_empty(&esp->devq_node) || READ_ONCE(esp->devq_wants);
}

/* Does the socket have a rate (SO_MAX_PACING_RATE)? The core lets only TCP raise sk_pacing_rate. */
static inline bool esp_has_rate(const struct sock *sk)
{
	return READ_ONCE(sk->sk_max_pacing_rate) != ~0UL;
}

#endif /* _ESP_DEV_QUEUE_H */
