/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of stream and seqpacket sockets. */
#ifndef _ESP_MEMORY_H
#define _ESP_MEMORY_H

#include "esp.h"

extern long esp_mem[3];
extern atomic_long_t esp_memory_allocated;
extern struct percpu_counter esp_sockets_allocated;
extern unsigned long esp_memory_pressure;

void esp_mem_uncharge(struct sock *sk, int size);
bool esp_mem_charge_more(struct sock *sk, struct sk_buff *skb, int size);
void esp_set_owner_r(struct sk_buff *skb, struct sock *sk);
void esp_mem_nobodys(struct sock *sk);
bool esp_mem_accept(struct sock *sk);
u32 esp_grant_room(struct esp_opt *esp);

/**
 * esp_mem_schedule() - May a socket use more memory?
 * @sk:		socket; its owner calls
 * @skb:	packet that the socket has received; NULL: the socket sends
 * @size:	bytes
 *
 * Return: true if so
 */
static inline bool esp_mem_schedule(struct sock *sk, struct sk_buff *skb, int size)
{
	sock_owned_by_me(sk);
	return size <= sk->sk_forward_alloc || esp_mem_charge_more(sk, skb, size);
}

#endif /* _ESP_MEMORY_H */
