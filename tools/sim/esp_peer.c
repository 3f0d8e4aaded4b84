// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers, and the pool of first bursts that they share (rule 21). Stands for first_burst.c,
 * without its locks and references, and for esp_ack_tell_cut() of ack_send.c.
 */
#include <stdlib.h>
#include "esp_sim.h"

static struct peer **bucket(struct host *h, u32 other)
{
	return &h->peers[other % PEER_BUCKETS];
}

static struct peer *peer_find(struct host *h, u32 other)
{
	struct peer *peer = *bucket(h, other);

	while (peer && peer->other != other)
		peer = peer->next;
	return peer;
}

/* pool_taken() */
static u32 pool_taken(struct host *h)
{
	u64 now = sim_us();

	if (now - h->slot >= 2 * SLOT_US) {
		h->pending[0] = 0;
		h->pending[1] = 0;
		h->slot = now;
	} else if (now - h->slot >= SLOT_US) {
		h->pending[1] = h->pending[0];
		h->pending[0] = 0;
		h->slot = now;
	}
	return h->given + h->pending[0] + h->pending[1];
}

/* esp_link_handshake() */
u32 port_handshake(struct host *h, u32 other)
{
	struct peer *peer = peer_find(h, other);
	u32 n;

	if (peer && !list_empty(&peer->sockets))
		return peer->want;
	n = esp_advice_handshake(h->ackq.policy.first_pool, pool_taken(h));
	h->pending[0] += n;
	return n;
}

/* peer_settled() */
static void settled(struct host *h, struct peer *peer)
{
	if (peer->behind)
		return;
	h->given -= peer->own - peer->want;
	peer->own = peer->want;
}

/* peer_cut() */
static void cut(struct host *h, struct peer *peer, u32 n, u64 now)
{
	struct list_head *l;

	peer->want = n;
	peer->gen++;
	for (l = peer->sockets.next; l != &peer->sockets; l = l->next) {
		struct esp_sk *sk = container_of(l, struct esp_sk, peer_node);

		if (sk->client && sk->state == SK_OPENING) {
			sk->advice_gen = peer->gen;
			continue;
		}
		peer->behind++;
		timer_set(sk, T_TELL, now);
	}
	settled(h, peer);
}

/* share_out() */
static void share_out(struct host *h)
{
	u32 pool = h->ackq.policy.first_pool, share = pool / h->npeers;
	struct peer *peer;
	int i;

	if (pool_taken(h) < pool)
		return;
	for (i = 0; i < PEER_BUCKETS; i++)
		for (peer = h->peers[i]; peer; peer = peer->next)
			if (peer->want > share && !peer->behind)
				cut(h, peer, share, sim_us());
}

/* peer_starts() */
static void starts(struct host *h, struct peer *peer, const struct esp_sk *sk)
{
	u32 told = sk->advice_told;
	int i;

	for (i = 0; i < 2; i++) {
		u32 n = min(told, h->pending[i]);

		h->pending[i] -= n;
		told -= n;
	}
	peer->own = sk->advice_told;
	if (sk->client)
		peer->own = esp_advice_handshake(h->ackq.policy.first_pool,
						 pool_taken(h));
	peer->want = peer->own;
	h->given += peer->own;
	h->npeers++;
}

/* peer_rests() */
static void rests(struct host *h, struct peer *peer)
{
	h->given -= peer->own;
	peer->own = 0;
	peer->want = 0;
	h->npeers--;
}

/* esp_peer_get() */
void peer_get(struct esp_sk *sk)
{
	u32 other = sk->client ? sk->conn->dst : sk->conn->src;
	struct host *h = sk->host;
	struct peer *peer = peer_find(h, other);
	bool first;

	if (!peer) {
		peer = sim_alloc(sizeof(*peer));
		INIT_LIST_HEAD(&peer->sockets);
		peer->other = other;
		peer->next = *bucket(h, other);
		*bucket(h, other) = peer;
	}
	first = list_empty(&peer->sockets);
	if (first)
		starts(h, peer, sk);
	peer->socks++;
	list_add(&sk->peer_node, &peer->sockets);
	sk->advice_told = peer->want;
	sk->advice_gen = peer->gen;
	sk->peer = peer;
	if (first)
		share_out(h);
}

/* peer_caught_up() */
static void caught_up(struct esp_sk *sk)
{
	struct peer *peer = sk->peer;

	sk->advice_tries = 0;
	if (sk->advice_gen == peer->gen || list_empty(&sk->peer_node))
		return;
	sk->advice_gen = peer->gen;
	peer->behind--;
	settled(sk->host, peer);
}

/* esp_peer_leave() */
void peer_leave(struct esp_sk *sk)
{
	if (list_empty(&sk->peer_node))
		return;
	caught_up(sk);
	list_del_init(&sk->peer_node);
	if (list_empty(&sk->peer->sockets))
		rests(sk->host, sk->peer);
}

/* esp_peer_put(), called when the socket is freed */
void peer_put(struct esp_sk *sk)
{
	struct peer *peer = sk->peer, **p;
	struct host *h = sk->host;

	peer_leave(sk);
	sk->peer = NULL;
	if (--peer->socks)
		return;
	for (p = bucket(h, peer->other); *p != peer; p = &(*p)->next)
		;
	*p = peer->next;
	free(peer);
}

static bool in_share(const struct esp_sk *sk)
{
	return !list_empty(&sk->peer_node);
}

/* esp_peer_advise() */
u16 peer_advise(struct esp_sk *sk)
{
	struct peer *peer = sk->peer;
	struct host *h = sk->host;
	u32 pool = h->ackq.policy.first_pool, n;

	if (!in_share(sk))
		return 0;
	n = esp_advice_connected(pool, pool_taken(h), peer->own, h->npeers);
	if (n > peer->want && !peer->behind) {
		h->given += n - peer->own;
		peer->own = n;
		peer->want = n;
	} else if (n < peer->want && !peer->behind) {
		cut(h, peer, n, sim_us());
	}
	n = peer->want;
	if (2 * n < min_t(u32, ESP_ADVICE_MAX, pool / h->npeers) &&
	    sim_us() - h->shared >= SHARE_US) {
		h->shared = sim_us();
		share_out(h);
	}
	if (sk->advice_told != n) {
		sk->advice_told = n;
		sk->told_at = sim_us();
	}
	return n;
}

/* esp_peer_told() */
void peer_told(struct esp_sk *sk)
{
	sk->advice_told = sk->peer->want;
}

/* esp_advice_changed() */
bool advice_changed(const struct esp_sk *sk)
{
	return sk->peer && sk->advice_gen != sk->peer->gen && in_share(sk) &&
	       !sk->grant.recv_announced && sk->state != SK_OPENING;
}

/* esp_advice_low() */
bool advice_low(const struct esp_sk *sk)
{
	const struct host *h = sk->host;

	if (!sk->peer || !in_share(sk) || sk->grant.recv_announced || sk->state == SK_OPENING)
		return false;
	return 2 * sk->advice_told <
	       min_t(u32, ESP_ADVICE_MAX, h->ackq.policy.first_pool / h->npeers);
}

/* esp_peer_echoed() */
void peer_echoed(struct esp_sk *sk, const struct packet *p, u64 now)
{
	struct peer *peer = sk->peer;
	u32 rtt = (u32)now - p->ts_ecr;

	if (!peer || sk->advice_gen == peer->gen)
		return;
	if (rtt < ESP_RTT_MAX_US && now - sk->told_at < rtt)
		return;
	if (sk->advice_told <= peer->want && p->advice <= peer->want)
		caught_up(sk);
}

/* esp_ack_tell_cut() */
void peer_tell(struct esp_sk *sk)
{
	if (!advice_changed(sk))
		return;
	if (sk->advice_tries >= ADVICE_TRIES) {
		caught_up(sk);
		return;
	}
	if (!sk->advice_tries)
		send_ack(sk);
	else
		send_empty(sk, PKT_TXS, sk->snd.send_next - 1);
	timer_set(sk, T_TELL, sim_us() + (1000u << sk->advice_tries++));
}

/* esp_peer_rtt() */
u32 peer_rtt(struct esp_sk *sk, u32 rtt, u64 now)
{
	struct esp_min_rtt *m = &sk->peer->min_rtt;

	if (esp_min_rtt_changes(m, rtt, now))
		esp_min_rtt_sample(m, rtt, now);
	return esp_min_rtt_get(m);
}
