/* SPDX-License-Identifier: GPL-2.0-only */
/* Peers, and the pool of first bursts that they share (rule 21). */
#ifndef _ESP_FIRST_BURST_H
#define _ESP_FIRST_BURST_H

#include "esp.h"
#include "dev.h"
#include "link.h"

/**
 * struct esp_peer - another host, as a port sees it
 * @node:	in esp_link.peers
 * @link:	its port, which the sockets' references keep
 * @mac:	its address
 * @socks:	sockets that refer to it
 * @sockets:	those on which it may begin a transmission, esp_opt.peer_node
 * @own:	its share of the pool, counted in esp_link.given; 0 while there are none
 * @want:	what its sockets are advised from now on, at most @own
 * @gen:	grows with every cut of @want
 * @behind:	sockets that have not echoed the cut (rule 21)
 * @min_rtt:	of the last ten seconds (rule 22)
 *
 * Everything under esp_link.lock; @min_rtt is read without.
 */
struct esp_peer {
	struct hlist_node	node;
	struct esp_link		*link;
	u8			mac[ETH_ALEN];
	u32			socks;
	struct list_head	sockets;
	u32			own;
	u32			want;
	u32			gen;
	u32			behind;
	struct esp_min_rtt	min_rtt;
};

u16 esp_link_handshake(struct esp_dev *ed, const u8 *mac);
int esp_peer_get(struct sock *sk);
void esp_peer_leave(struct sock *sk);
void esp_peer_put(struct sock *sk);
u16 esp_peer_advise(struct sock *sk);
void esp_peer_told(struct sock *sk);
bool esp_advice_changed(struct sock *sk);
bool esp_advice_low(struct sock *sk);
void esp_peer_echoed(struct sock *sk, const struct esp_frame *f, u64 now);
void esp_peer_give_up(struct sock *sk);
u32 esp_peer_rtt(struct sock *sk, u32 rtt, u64 now);

#endif /* _ESP_FIRST_BURST_H */
