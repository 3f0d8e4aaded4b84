/* SPDX-License-Identifier: GPL-2.0-only */
/* Peers, and the first bursts that they are told (rule 21). */
#ifndef _ESP_FIRST_BURST_H
#define _ESP_FIRST_BURST_H

#include "esp.h"
#include "dev.h"
#include "link.h"

/*
 * Packets without a loss after which a packet gets ESP_GRANT_LATER. An ACK of its own costs both
 * hosts 2 to 3 us, ESP_LATER_US / ESP_LOSSLESS. So even if the next packet gets lost, and is
 * retransmitted that much later, it has cost no more than ACKs of all packets would have.
 */
#define ESP_LOSSLESS	16384

/**
 * struct esp_peer - another host, as a link sees it
 *
 * esp_link.lock guards all fields but @host and @lossless. @min_rtt is read without it.
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
	/** @begins: those of @socks on which the peer may begin a transmission */
	u32			begins;
	/**
	 * @lossless: packets that the peer has acknowledged since one was last retransmitted, up to
	 * ESP_LOSSLESS or a few more. The owners of its sockets write it without a lock. A count
	 * may get lost, a loss not
	 */
	u32			lossless;
	/** @min_rtt: smallest round trip of the last ten seconds (rule 22) */
	struct esp_min_rtt	min_rtt;
	/** @host: its bucket, which the ACK queue guards */
	struct esp_host		host;
};

u16 esp_link_burst(struct esp_link *link, bool handshake);
u16 esp_link_handshake(struct esp_dev *ed);
int esp_peer_get(struct sock *sk);
void esp_peer_leave(struct sock *sk);
void esp_peer_put(struct sock *sk);
void esp_peer_advise(struct sock *sk);
u32 esp_peer_rtt(struct sock *sk, u32 rtt, u64 now);

#endif /* _ESP_FIRST_BURST_H */
