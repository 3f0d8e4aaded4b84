// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers: the other hosts as a link sees them, with a bucket and the smallest round trip of each,
 * and the first bursts that they are told (rule 21). Stands for first_burst.c.
 */
#include <stdlib.h>
#include "esp_sim.h"

static struct peer **bucket(struct host *h, u32 other)
{
	return &h->peers[other % PEER_BUCKETS];
}

/* esp_peer_get() */
void peer_get(struct esp_sk *sk)
{
	u32 other = sk->client ? sk->conn->dst : sk->conn->src;
	struct host *h = sk->host;
	struct peer *peer = *bucket(h, other);

	while (peer && peer->other != other)
		peer = peer->next;
	if (!peer) {
		peer = sim_alloc(sizeof(*peer));
		esp_host_init(&peer->host);
		peer->other = other;
		peer->next = *bucket(h, other);
		*bucket(h, other) = peer;
		h->npeers++;
	}
	peer->socks++;
	sk->peer = peer;
	sk->grant.host = &peer->host;
}

/* esp_peer_put(), called when the socket is freed */
void peer_put(struct esp_sk *sk)
{
	struct peer *peer = sk->peer, **p;
	struct host *h = sk->host;

	sk->peer = NULL;
	sk->grant.host = NULL;
	if (--peer->socks)
		return;
	for (p = bucket(h, peer->other); *p != peer; p = &(*p)->next)
		;
	*p = peer->next;
	h->npeers--;
	esp_ackq_forget(&h->ackq, &peer->host);
	free(peer);
}

/* esp_peer_advise(), for a socket on which nothing is announced */
void peer_advise(struct esp_sk *sk)
{
	u32 senders = atomic_read(&queue_of(sk)->esp_recv_count);

	sk->burst_told = esp_burst_size(&sk->host->budget, false, senders, sim_now);
}

/* esp_link_handshake() */
u32 peer_handshake(struct host *h)
{
	return esp_burst_size(&h->budget, true, atomic_read(&h->ackq.esp_recv_count), sim_now);
}

/* esp_peer_rtt() */
u32 peer_rtt(struct esp_sk *sk, u32 rtt, u64 now)
{
	struct esp_min_rtt *m = &sk->peer->min_rtt;

	if (esp_min_rtt_changes(m, rtt, now))
		esp_min_rtt_sample(m, rtt, now);
	return esp_min_rtt_get(m);
}
