// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links, the hosts that are seen through them, and with how much those may
 * start (rules 12, 21). Connections come and go under the link's lock; packets
 * take it once in a round trip, and when a first burst changes.
 */
#include "esp.h"
#include "dev.h"
#include "dev_queue.h"
#include "first_burst.h"
#include "link.h"
#include "timer.h"

#define ESP_SLOT_US	(1000 * 1000)	/* of advice given in SYN|ACKs */
#define ESP_SHARE_US	(10 * 1000)	/* between two looks for who has more than a share */

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

/* Advice in SYN|ACKs that nobody took up is forgotten after a slot or two. */
static u32 pool_taken(struct esp_link *link)
{
	u64 now = esp_now();

	if (now - link->slot >= 2 * ESP_SLOT_US) {
		link->pending[0] = 0;
		link->pending[1] = 0;
		link->slot = now;
	} else if (now - link->slot >= ESP_SLOT_US) {
		link->pending[1] = link->pending[0];
		link->pending[0] = 0;
		link->slot = now;
	}
	return link->given + link->pending[0] + link->pending[1];
}

/**
 * esp_link_handshake() - compute the first burst to be advised in a SYN|ACK
 * @ed:		the listener's device
 * @mac:	MAC address of the client
 *
 * Return: packets
 */
u16 esp_link_handshake(struct esp_dev *ed, const u8 *mac)
{
	struct esp_link *link = esp_link_get(ed);
	struct esp_peer *peer;
	u32 n;

	spin_lock_bh(&link->lock);
	peer = peer_find(link, mac);
	if (peer && !list_empty(&peer->sockets)) {
		n = peer->want;
	} else {
		n = esp_advice_handshake(READ_ONCE(link->ackq.policy.first_pool),
					 pool_taken(link));
		link->pending[0] += n;
	}
	spin_unlock_bh(&link->lock);
	esp_link_put(link);
	return n;
}

/* All sockets have echoed the cut: its share is free. */
static void peer_settled(struct esp_peer *peer)
{
	if (peer->behind)
		return;
	peer->link->given -= peer->own - peer->want;
	peer->own = peer->want;
}

/*
 * A peer's sockets are to start with less. That is told at once, but not within
 * a transmission: until they have echoed it their share isn't free. Under the
 * link's lock.
 */
static void peer_cut(struct esp_peer *peer, u32 n, u64 now)
	__must_hold(&peer->link->lock)
{
	struct esp_opt *esp;

	lockdep_assert_held(&peer->link->lock);
	peer->want = n;
	WRITE_ONCE(peer->gen, peer->gen + 1);
	smp_mb();	/* gen before the deadlines; tell_timeout() */
	list_for_each_entry(esp, &peer->sockets, peer_node) {
		/* that connects, and has told nothing yet: esp_peer_told() */
		if (!esp->accepted && !READ_ONCE(esp->peer_cookie)) {
			WRITE_ONCE(esp->advice_gen, peer->gen);
			continue;
		}
		if (!peer->behind++)
			ESP_INC(sock_net(&esp->sk), AdviceCut);
		/* it may be in the list until it is destroyed, an RCU period later */
		if (!refcount_inc_not_zero(&esp->sk.sk_refcnt))
			continue;
		esp_timer_set(esp, ESP_T_TELL, now);
		sock_put(&esp->sk);
	}
	peer_settled(peer);
}

/*
 * Nothing is left for who comes next, or has less: whoever has more than a share
 * gives it up. Under the link's lock.
 */
static void share_out(struct esp_link *link)
	__must_hold(&link->lock)
{
	u32 pool = READ_ONCE(link->ackq.policy.first_pool);
	u32 share = pool / link->npeers;
	struct esp_peer *peer;
	int i;

	lockdep_assert_held(&link->lock);
	if (pool_taken(link) < pool)
		return;
	for (i = 0; i < ESP_PEER_BUCKETS; i++)
		hlist_for_each_entry(peer, &link->peers[i], node)
			if (peer->want > share && !peer->behind)
				peer_cut(peer, share, esp_now());
}

/*
 * A peer's first socket that may be sent first bursts, @esp: with the share that the
 * handshake's advice has taken already, or will. Under the link's lock.
 */
static void peer_starts(struct esp_peer *peer, const struct esp_opt *esp)
	__must_hold(&peer->link->lock)
{
	struct esp_link *link = peer->link;
	u32 told = esp->burst_told;
	int i;

	lockdep_assert_held(&peer->link->lock);
	for (i = 0; i < 2; i++) {
		u32 n = min(told, link->pending[i]);

		link->pending[i] -= n;
		told -= n;
	}
	peer->own = esp->burst_told;
	if (!esp->accepted)
		peer->own = esp_advice_handshake(READ_ONCE(link->ackq.policy.first_pool),
						 pool_taken(link));
	peer->want = peer->own;
	link->given += peer->own;
	WRITE_ONCE(link->npeers, link->npeers + 1);
}

/* The last of them has left: its share is free. Under the link's lock. */
static void peer_rests(struct esp_peer *peer)
	__must_hold(&peer->link->lock)
{
	struct esp_link *link = peer->link;

	lockdep_assert_held(&peer->link->lock);
	link->given -= peer->own;
	peer->own = 0;
	peer->want = 0;
	WRITE_ONCE(link->npeers, link->npeers - 1);
}

/**
 * esp_peer_get() - find or create the peer of a socket that is being connected
 * @sk:	socket with device and address; if it is accepted, burst_told is what the SYN|ACK
 *	gave the peer
 *
 * Return: 0 or ENOMEM
 */
int esp_peer_get(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_link *link;
	struct esp_peer *peer, *new;
	bool starts;

	new = kzalloc_obj(*new, GFP_ATOMIC);
	if (!new)
		return -ENOMEM;
	link = esp_link_get(esp->dev);
	spin_lock_bh(&link->lock);
	peer = peer_find(link, esp->daddr);
	if (!peer) {
		peer = new;
		new = NULL;
		peer->link = link;
		INIT_LIST_HEAD(&peer->sockets);
		ether_addr_copy(peer->mac, esp->daddr);
		hlist_add_head(&peer->node, peer_bucket(link, peer->mac));
	}
	starts = list_empty(&peer->sockets);
	if (starts)
		peer_starts(peer, esp);
	peer->socks++;
	list_add(&esp->peer_node, &peer->sockets);
	esp->burst_told = peer->want;
	esp->advice_gen = peer->gen;
	esp->link = link;
	esp->peer = peer;
	if (starts)
		share_out(link);
	spin_unlock_bh(&link->lock);
	kfree(new);
	esp_devq_attach(sk, link);
	return 0;
}

/* This socket is not what the cut waits for. Under the link's lock. */
static void peer_caught_up(struct esp_opt *esp)
	__must_hold(&esp->peer->link->lock)
{
	struct esp_peer *peer = esp->peer;

	lockdep_assert_held(&peer->link->lock);
	esp->advice_tries = 0;
	if (esp->advice_gen == peer->gen || list_empty(&esp->peer_node))
		return;
	WRITE_ONCE(esp->advice_gen, peer->gen);
	peer->behind--;
	peer_settled(peer);
}

/**
 * esp_peer_leave() - remove a socket on which the peer begins no transmission any more
 * @sk:	socket that is closed or reset, or has received the peer's FIN; its owner calls,
 *	or its destructor
 *
 * The socket keeps its reference to the peer. The peer loses its share when the last of its
 * sockets is removed.
 */
void esp_peer_leave(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (!esp->peer)
		return;
	spin_lock_bh(&esp->link->lock);
	if (!list_empty(&esp->peer_node)) {
		peer_caught_up(esp);
		list_del_init(&esp->peer_node);
		if (list_empty(&esp->peer->sockets))
			peer_rests(esp->peer);
	}
	spin_unlock_bh(&esp->link->lock);
}

void esp_peer_put(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_peer *peer = esp->peer;
	struct esp_link *link = esp->link;

	if (!peer)
		return;
	esp_peer_leave(sk);
	esp->peer = NULL;
	esp->link = NULL;
	spin_lock_bh(&link->lock);
	if (--peer->socks)
		peer = NULL;
	else
		hlist_del(&peer->node);
	spin_unlock_bh(&link->lock);
	kfree(peer);
	esp_link_put(link);
}

/* May the peer begin something on it? Only its owner's calls change that. */
static bool in_share(const struct esp_opt *esp)
{
	return !list_empty(&esp->peer_node);
}

/**
 * esp_peer_advise() - compute the first burst for an ACK on an idle connection
 * @sk:	socket; its owner calls
 *
 * Raises count at once. A cut frees its share only when every socket of the
 * peer has echoed it.
 *
 * Return: packets; 0 when the peer begins nothing any more
 */
u16 esp_peer_advise(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_peer *peer = esp->peer;
	struct esp_link *link = esp->link;
	u32 pool, n;
	u64 now;

	if (!peer || !in_share(esp))
		return 0;
	spin_lock_bh(&link->lock);
	pool = READ_ONCE(link->ackq.policy.first_pool);
	n = esp_advice_connected(pool, pool_taken(link), peer->own, link->npeers);
	if (n > peer->want && !peer->behind) {
		link->given += n - peer->own;
		peer->own = n;
		peer->want = n;
	} else if (n < peer->want && !peer->behind) {
		peer_cut(peer, n, esp_now());
	}
	n = peer->want;
	if (2 * n < min_t(u32, ESP_ADVICE_MAX, pool / link->npeers)) {
		now = esp_now();
		if (now - link->shared >= ESP_SHARE_US) {
			link->shared = now;
			share_out(link);
		}
	}
	spin_unlock_bh(&link->lock);
	if (esp->burst_told != n) {
		WRITE_ONCE(esp->burst_told, n);
		esp->burst_told_at = esp_now();
	}
	return n;
}

/**
 * esp_peer_told() - set the first burst that a peer is told first, once its cookie is known
 * @sk:	socket; its owner calls
 */
void esp_peer_told(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	spin_lock_bh(&esp->link->lock);
	esp->burst_told = esp->peer->want;
	spin_unlock_bh(&esp->link->lock);
}

/**
 * esp_advice_changed() - is the peer to be told a shorter first burst?
 * @sk:	socket; its owner calls
 *
 * Return: true if so, and if an ACK tells it
 */
bool esp_advice_changed(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	return esp->peer && READ_ONCE(esp->advice_gen) != READ_ONCE(esp->peer->gen) &&
	       in_share(esp) && !esp->grant.recv_announced && sk->sk_state != TCP_SYN_SENT;
}

/**
 * esp_advice_low() - has the peer less than half a share?
 * @sk:	socket; its owner calls
 *
 * So it may stay after the handshake if it only sends small messages, which end no
 * transmission that permission was given for.
 *
 * Return: true if so, and if an ACK can tell it more
 */
bool esp_advice_low(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_link *link = esp->link;

	sock_owned_by_me(sk);
	if (!esp->peer || !in_share(esp) || esp->grant.recv_announced ||
	    sk->sk_state == TCP_SYN_SENT)
		return false;
	return 2 * esp->burst_told < min_t(u32, ESP_ADVICE_MAX,
					   READ_ONCE(link->ackq.policy.first_pool) /
					   READ_ONCE(link->npeers));
}

/**
 * esp_peer_echoed() - take the peer's echo of its first burst
 * @sk:		socket; its owner calls
 * @f:		frame with ESP_OPT_ADVICE. It counts only if it was sent after the cut was told,
 *		because an older frame may echo a value as small from before a raise
 * @now:	microseconds
 */
void esp_peer_echoed(struct sock *sk, const struct esp_frame *f, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 rtt = (u32)now + esp->ts_off - f->ts_ecr;
	struct esp_peer *peer = esp->peer;

	sock_owned_by_me(sk);
	if (!peer || !in_share(esp) || READ_ONCE(esp->advice_gen) == READ_ONCE(peer->gen))
		return;
	if (rtt < ESP_RTT_MAX_US && now - esp->burst_told_at < rtt)
		return;
	spin_lock_bh(&esp->link->lock);
	if (esp->burst_told <= peer->want && f->advice <= peer->want)
		peer_caught_up(esp);
	spin_unlock_bh(&esp->link->lock);
}

/**
 * esp_peer_give_up() - wait no longer for the peer's echo of a cut on this socket
 * @sk:	socket; its owner calls
 */
void esp_peer_give_up(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	spin_lock_bh(&esp->link->lock);
	peer_caught_up(esp);
	spin_unlock_bh(&esp->link->lock);
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
