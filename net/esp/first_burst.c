// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links, the hosts that are seen through them, and with how much those may
 * start (rules 12, 21). Connections come and go under the link's lock.
 */
#include "esp.h"
#include "dev.h"
#include "dev_queue.h"
#include "first_burst.h"
#include "link.h"

static struct hlist_head *peer_bucket(struct esp_link *link, const u8 *mac)
{
	return &link->peers[esp_peer_hash(link->peer_seed, mac)];
}

static struct esp_peer *peer_find(struct esp_link *link, const u8 *mac)
{
	struct esp_peer *peer;

	hlist_for_each_entry(peer, peer_bucket(link, mac), node)
		if (ether_addr_equal_unaligned(peer->mac, mac))
			return peer;
	return NULL;
}

/* Compute a first burst; see esp_burst_size(). */
u16 esp_link_burst(struct esp_link *link, bool handshake)
{
	struct esp_ackq *q = &link->ackq;
	u64 now = q->ops->now();
	u32 n;

	spin_lock_bh(&q->lock);
	n = esp_burst_size(&link->budget, handshake, atomic_read(&q->esp_recv_count), now);
	spin_unlock_bh(&q->lock);
	return n;
}

/**
 * esp_link_handshake() - compute the first burst to be advised in a SYN|ACK
 * @ed:		the listener's device
 *
 * Return: packets
 */
u16 esp_link_handshake(struct esp_dev *ed)
{
	struct esp_link *link = esp_link_get(ed);
	u16 n = esp_link_burst(link, true);

	esp_link_put(link);
	return n;
}

/**
 * esp_peer_get() - find or create the peer of a socket that is being connected
 * @sk:	socket with device and address
 *
 * Return: 0 or ENOMEM
 */
int esp_peer_get(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_link *link;
	struct esp_peer *peer, *new;

	new = kzalloc_obj(*new, GFP_ATOMIC);
	if (!new)
		return -ENOMEM;
	esp_host_init(&new->host);
	link = esp_link_get(esp->dev);
	spin_lock_bh(&link->lock);
	peer = peer_find(link, esp->daddr);
	if (!peer) {
		peer = new;
		new = NULL;
		peer->link = link;
		ether_addr_copy(peer->mac, esp->daddr);
		hlist_add_head(&peer->node, peer_bucket(link, peer->mac));
	}
	if (!peer->begins++)
		WRITE_ONCE(link->npeers, link->npeers + 1);
	peer->socks++;
	esp->may_begin = 1;
	esp->link = link;
	esp->peer = peer;
	spin_unlock_bh(&link->lock);
	kfree(new);
	esp_devq_attach(sk, link);
	return 0;
}

/**
 * esp_peer_leave() - remove a socket on which the peer begins no transmission any more
 * @sk:	socket that is closed or reset, or has received the peer's FIN; its owner calls,
 *	or its destructor
 *
 * The socket keeps its reference to the peer.
 */
void esp_peer_leave(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_link *link = esp->link;

	if (!esp->peer || !esp->may_begin)
		return;
	esp->may_begin = 0;
	spin_lock_bh(&link->lock);
	if (!--esp->peer->begins)
		WRITE_ONCE(link->npeers, link->npeers - 1);
	spin_unlock_bh(&link->lock);
}

void esp_peer_put(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_peer *peer = esp->peer;
	struct esp_link *link = esp->link;

	if (!peer)
		return;
	esp_peer_leave(sk);
	WARN_ON_ONCE(esp->grant.queued || atomic_read(&esp->grant.outstanding));
	esp->grant.host = NULL;
	esp->peer = NULL;
	esp->link = NULL;
	spin_lock_bh(&link->lock);
	if (--peer->socks)
		peer = NULL;
	else
		hlist_del(&peer->node);
	spin_unlock_bh(&link->lock);
	if (peer)
		esp_ackq_forget(&link->ackq, &peer->host);
	kfree(peer);
	esp_link_put(link);
}

/**
 * esp_peer_advise() - compute the first burst that an ACK tells while nothing is announced
 * @sk:	socket; its owner calls
 */
void esp_peer_advise(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u16 n = 0;

	sock_owned_by_me(sk);
	if (esp->peer && esp->may_begin)
		n = esp_link_burst(esp->link, false);
	WRITE_ONCE(esp->burst_told, n);
}

/**
 * esp_peer_rtt() - add a round's smallest round trip to the filter of its peer
 * @sk:		socket
 * @rtt:	microseconds
 * @now:	microseconds
 *
 * Return: smallest one to this peer in ten seconds
 */
u32 esp_peer_rtt(struct sock *sk, u32 rtt, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_min_rtt *m;

	if (!esp->peer)
		return rtt;
	m = &esp->peer->min_rtt;
	if (esp_min_rtt_changes(m, rtt, now)) {
		spin_lock_bh(&esp->link->lock);
		esp_min_rtt_sample(m, rtt, now);
		spin_unlock_bh(&esp->link->lock);
	}
	return esp_min_rtt_get(m);
}
