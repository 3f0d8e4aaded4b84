/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames that a host of the rack forges for a connection of its own. Include it after vt-rack.h. */
#ifndef VT_FORGE_H
#define VT_FORGE_H

#include <net/ethernet.h>
#include <netpacket/packet.h>
#include <linux/esp_wire.h>
#include "checksum.h"

#define FORGE_OPTS 8	/* room for options, bytes */

/* A packet socket, and a frame of the connection as a template. */
struct forger {
	int	fd;
	__u8	frame[ETH_HLEN + ESP_HLEN + FORGE_OPTS + MSS];
};

static inline struct esp_wire *forged(struct forger *f)
{
	return (void *)(f->frame + ETH_HLEN);
}

/* Open a packet socket at the sender of stream @s, and wait for a frame of it. */
static inline void learn(struct forger *f, struct stream *s, int sender)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
	};
	__be16 port = sockname(s->tx).sesp_port;
	struct esp_wire *h = forged(f);

	enter(&snd[sender]);
	a.sll_ifindex = if_nametoindex("e0");
	f->fd = MUST(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
	MUST(bind(f->fd, (struct sockaddr *)&a, sizeof(a)));
	s->want += 1000;
	PUMP(s->got == s->want, 10 * MS);
	do {
		MUST(recv(f->fd, f->frame, sizeof(f->frame), MSG_DONTWAIT));
	} while (memcmp(f->frame, rx.mac, 6) || !h->len || h->sport != port);
}

/*
 * Send a frame with @len bytes of payload, after @opts bytes of options that the template has. A full
 * queue may drop it.
 */
static inline void forge_frame(struct forger *f, __u32 seq, int flags, int opts, int len)
{
	struct esp_wire *h = forged(f);
	int n = ESP_HLEN + opts + len;

	h->ver_hlen = ESP_VERSION << 4 | (ESP_HLEN + opts) / 4;
	h->flags = ESP_ACK | flags;
	h->pkt_seq = htonl(seq);
	h->ts_val = htonl(ntohl(h->ts_val) + TICK_US);
	h->len = htons(len);
	h->csum = 0;
	h->csum = checksum(h, n);
	if (send(f->fd, f->frame, ETH_HLEN + n, 0) < 0 && errno != ENOBUFS)
		MUST(-1);
}

#endif
