/* SPDX-License-Identifier: GPL-2.0-only */
/* The write queue, and which of its packets may leave. */
#ifndef _ESP_WRITE_QUEUE_H
#define _ESP_WRITE_QUEUE_H

#include "esp.h"

#define ESP_MORE_RUN	32	/* packets that a writer with more data to come collects */

u32 esp_gso_limit(struct sock *sk, u32 size);
void esp_write_queue_append(struct sock *sk, struct sk_buff *skb, u8 flags);
struct sk_buff *esp_split(struct sock *sk, struct sk_buff *skb, u32 n);
void esp_write_queue_unlink(struct sock *sk, struct sk_buff *skb);
void esp_fill_up(struct sock *sk, struct sk_buff *skb, u32 most);
void esp_write_queue_purge(struct sock *sk);
void esp_clean_write_queue(struct sock *sk);
void esp_queue_fin(struct sock *sk);
bool esp_leaves_in_parts(struct sock *sk, const struct sk_buff *skb);
bool esp_resegment(struct sock *sk);
struct sk_buff *esp_retransmit(struct sock *sk, struct sk_buff *skb, u32 from,
			       u32 to);
bool esp_nagle_defer(struct sock *sk, struct sk_buff *skb);
void esp_arm_send(struct sock *sk, u64 now);
u32 esp_cwnd_test(struct sock *sk, struct sk_buff *skb);
u32 esp_push_one_frame(struct sock *sk);
void esp_push_frames(struct sock *sk);
void esp_ask_for_ack(struct sock *sk);
void esp_devq_turn(struct sock *sk);
enum hrtimer_restart esp_devq_turns(struct hrtimer *timer);

#endif /* _ESP_WRITE_QUEUE_H */
