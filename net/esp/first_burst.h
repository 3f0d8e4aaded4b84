/* SPDX-License-Identifier: GPL-2.0-only */
/* Peers, and the pool of first bursts that they share (rule 21). */
#ifndef _ESP_FIRST_BURST_H
#define _ESP_FIRST_BURST_H

#include "esp.h"
#include "dev.h"
#include "link.h"

/**
 * struct esp_peer - another host, as a link sees it
 *
 * esp_link.lock guards all fields; @min_rtt and @gen are read without it.
 */
struct esp_peer {
	/** @node: in esp_link.peers */
	struct hlist_node	node;
	/** @link: link of the peer; the references of the sockets keep it alive */
	struct esp_link		*link;
	/** @mac: MAC address of the peer */
	u8			mac[ETH_ALEN];
	/** @socks: number of sockets that refer to the peer */
	u32			socks;
	/** @sockets: sockets on which the peer may begin a transmission, by esp_opt.peer_node */
	struct list_head	sockets;
	/** @own: the peer's share of the pool, packets, part of esp_link.given; 0: no @sockets */
	u32			own;
	/** @want: first burst advised to the peer from now on, packets; at most @own */
	u32			want;
	/** @gen: grows with every cut of @want */
	u32			gen;
	/** @behind: number of sockets that have not echoed the last cut (rule 21) */
	u32			behind;
	/** @min_rtt: smallest round trip of the last ten seconds (rule 22) */
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
