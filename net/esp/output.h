/* SPDX-License-Identifier: GPL-2.0-only */
/* Output engine: build and send the frames of a connection. */
#ifndef _ESP_OUTPUT_H
#define _ESP_OUTPUT_H

#include "esp.h"
#include "dev.h"

struct esp_dev;

struct sk_buff *esp_skb_alloc_sk(struct sock *sk, u8 flags, u16 payload,
				 u32 pkt_seq);
void esp_finish_frame(struct esp_dev *ed, struct sk_buff *skb,
		      unsigned int len, __wsum rest);
u32 esp_left_end(const struct esp_opt *esp);
int esp_skb_xmit(struct sock *sk, struct sk_buff *skb, bool again);
void esp_send_in_parts(struct sock *sk, struct sk_buff *skb);
void esp_send_empty(struct sock *sk, u8 flags, u32 pkt_seq);
void esp_send_ack(struct sock *sk);
void esp_send_mss(struct sock *sk);
void esp_send_left(struct sock *sk, u32 end);
void esp_send_probe(struct sock *sk);
void esp_send_reset(struct sock *sk, u32 pkt_seq);
void esp_send_rrq(struct sock *sk, u32 end);

/**
 * esp_skb_classify() - Set priority, mark and hash, for queueing disciplines and filters
 * @skb:	frame
 * @sk:		its socket
 *
 * The flow dissector does not know the EtherType. Without the socket's hash all connections
 * would be one flow to fq and fq_codel, and would share one queue of the device.
 */
static inline void esp_skb_classify(struct sk_buff *skb, struct sock *sk)
{
	skb->priority = READ_ONCE(sk->sk_priority);
	skb->mark = READ_ONCE(sk->sk_mark);
	skb_set_hash_from_sk(skb, sk);
}

#endif /* _ESP_OUTPUT_H */
