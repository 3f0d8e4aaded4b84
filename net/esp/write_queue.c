// SPDX-License-Identifier: GPL-2.0-only
/*
 * The write queue holds each packet until it is acknowledged, and decides which packets may
 * leave (seed: "Sending Data to the Receiver"; rules 3-8).
 *
 *   sk_write_queue:   oldest (una_seq) ... sent | sk_send_head ... newest
 *                     <---- unacknowledged ---->|<----- notsent ------>
 *
 * A buffer holds one packet, or a GSO packet: consecutive packets, as many as the device
 * takes at once. It is split where a grant ends within it, where only a part of it was
 * lost, and where Nagle's rule holds its last packet back.
 *
 *   sendmsg   ACK   timers            RRQ, retransmission timer
 *       \      |    /                          |
 *      esp_push_frames                   esp_retransmit
 *              |                               |
 *     esp_push_one_frame -- esp_cwnd_test      |
 *              |                               |
 *              +-------> esp_skb_xmit <--------+       output.c
 */
#include "esp.h"
#include "dev.h"
#include "dev_queue.h"
#include "first_burst.h"
#include "memory.h"
#include "negotiate.h"
#include "output.h"
#include "timer.h"
#include "write_queue.h"
#include "trace.h"

#define ESP_CORK_US	(5 * 1000)	/* longest time for which a packet is held back, us */
#define ESP_OPENED_US	1000	/* time for which the handshake's first burst counts, us */
#define ESP_TELL_AFTER	4	/* packets after which a further frame is at most a quarter more */
#define ESP_TOGETHER	32	/* packets that leave before softirqs may run again */
#define ESP_DEVQ_RUN	64	/* turns in a row before other softirqs may run */
#define ESP_HELD_SHIFT	3	/* after a HOLD the first probe waits 8 times as long */
#define ESP_ACK_SURE	16	/* outstanding packets that bring an ACK, as a rule */

/**
 * esp_gso_limit() - Compute the most payload of a buffer of the write queue
 * @sk:		connection; its owner calls
 * @size:	payload of a packet, bytes
 *
 * A small message has no GSO packets, and a CRC allows none: the core can't compute one per packet.
 * A socket that paces itself has GSO packets of a millisecond at most, as with TCP, because the
 * queueing discipline sends each as a whole.
 *
 * Return: bytes, a multiple of @size
 */
u32 esp_gso_limit(struct sock *sk, u32 size)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 most;

	sock_owned_by_me(sk);
	if (esp->crc)
		return size;
	most = esp_dev_gso_bytes(esp->dev, size);
	if (likely(!esp_has_rate(sk)))
		return most;
	return min_t(unsigned long, most,
		     max(READ_ONCE(sk->sk_max_pacing_rate) >> 10, 1ul * size) / size * size);
}

/* Append a buffer of one packet to the write queue and give the packet its number. */
void esp_write_queue_append(struct sock *sk, struct sk_buff *skb, u8 flags)
{
	struct esp_opt *esp = esp_sk(sk);

	ESP_TX(skb)->seq = esp->snd.send_seq++;
	ESP_TX(skb)->segs = 1;
	ESP_TX(skb)->flags = flags;
	__skb_header_release(skb);	/* clones may write their own header */
	__skb_queue_tail(&sk->sk_write_queue, skb);
	sk_wmem_queued_add(sk, skb->truesize);
	sk_mem_charge(sk, skb->truesize);
	if (!sk->sk_send_head)
		sk->sk_send_head = skb;
}

/* Account for the change of truesize by skb_unclone(); @before: truesize before it. */
static void buffer_unshare(struct sock *sk, struct sk_buff *skb, unsigned int before)
{
	int more = skb->truesize - before;

	sk_wmem_queued_add(sk, more);
	if (more > 0)
		sk_mem_charge(sk, more);
	else
		esp_mem_uncharge(sk, -more);
}

/**
 * esp_split() - Split a buffer of the write queue
 * @sk:		socket; its owner calls
 * @skb:	buffer of more than @n packets; the first @n stay in it
 * @n:		packets
 *
 * A clone that the device still holds keeps its data. The rest is charged to the socket
 * even if that has no memory left: the socket is in debt then, until it asks for memory.
 *
 * Return: the rest, after @skb on the write queue; NULL: no memory, and @skb holds
 * what it held
 */
struct sk_buff *esp_split(struct sock *sk, struct sk_buff *skb, u32 n)
{
	u32 at = n * ESP_TX(skb)->size, before = skb->truesize, linear = 0;
	unsigned int room = esp_dev_headroom(esp_sk(sk)->dev) + ESP_HLEN_MAX;
	struct sk_buff *rest;

	sock_owned_by_me(sk);
	if (WARN_ON_ONCE(!n || n >= ESP_TX(skb)->segs))
		return NULL;
	if (skb_headlen(skb) > at)
		linear = skb_headlen(skb) - at;
	rest = alloc_skb_fclone(room + linear, GFP_ATOMIC);
	if (!rest || skb_unclone(skb, GFP_ATOMIC)) {
		consume_skb(rest);
		ESP_INC(sock_net(sk), OutAllocFail);
		return NULL;
	}
	buffer_unshare(sk, skb, before);
	skb_reserve(rest, room);
	*ESP_TX(rest) = *ESP_TX(skb);
	ESP_TX(rest)->seq += n;
	ESP_TX(rest)->segs -= n;
	ESP_TX(rest)->linear = linear;
	ESP_TX(rest)->flags &= ~ESP_TXS;
	ESP_TX(rest)->acked -= min(ESP_TX(rest)->acked, at);
	ESP_TX(skb)->segs = n;
	ESP_TX(skb)->flags &= ESP_TXS;
	ESP_TX(skb)->acked = min(ESP_TX(skb)->acked, at);

	/* the checksum of a part is not known */
	skb->ip_summed = CHECKSUM_PARTIAL;
	rest->ip_summed = CHECKSUM_PARTIAL;
	skb_split(skb, rest, at);
	sk_wmem_queued_add(sk, rest->truesize);
	sk_mem_charge(sk, rest->truesize);
	skb->truesize -= rest->data_len;
	rest->truesize += rest->data_len;
	__skb_header_release(rest);
	__skb_queue_after(&sk->sk_write_queue, skb, rest);
	return rest;
}

/*
 * Has splitting made the write queue too large? As with TCP, it may take twice the send buffer.
 * The first buffer may be split always, so that its packets arrive in the end.
 */
static bool split_is_too_much(struct sock *sk, struct sk_buff *skb)
{
	if (skb == skb_peek(&sk->sk_write_queue) ||
	    sk->sk_wmem_queued >> 1 <= (s64)sk->sk_sndbuf + 2 * ESP_GSO_MAX)
		return false;
	ESP_INC(sock_net(sk), WqueueTooBig);
	return true;
}

/* Move @n bytes of page fragments from the front of @next to the end of @skb. */
static void buffer_move_frags(struct sk_buff *skb, struct sk_buff *next, u32 n)
{
	struct skb_shared_info *to = skb_shinfo(skb), *from = skb_shinfo(next);
	u32 i, left = n;

	for (i = 0; left; i++) {
		skb_frag_t *frag = &to->frags[to->nr_frags++];

		*frag = from->frags[i];
		if (skb_frag_size(frag) > left) {
			get_page(skb_frag_page(frag));
			skb_frag_size_set(frag, left);
			skb_frag_off_add(&from->frags[i], left);
			skb_frag_size_sub(&from->frags[i], left);
			break;
		}
		left -= skb_frag_size(frag);
	}
	from->nr_frags -= i;
	memmove(from->frags, from->frags + i,
		from->nr_frags * sizeof(from->frags[0]));
	to->flags |= from->flags & SKBFL_SHARED_FRAG;
	skb->len += n;
	skb->data_len += n;
	skb->truesize += n;
	next->len -= n;
	next->data_len -= n;
	next->truesize -= n;
}

/* Remove a buffer from the write queue and free it. */
void esp_write_queue_unlink(struct sock *sk, struct sk_buff *skb)
{
	__skb_unlink(skb, &sk->sk_write_queue);
	sk_wmem_queued_add(sk, -skb->truesize);
	esp_mem_uncharge(sk, skb->truesize);
	__kfree_skb(skb);
}

/**
 * esp_fill_up() - Fill the next buffer to leave from the buffer after it
 * @sk:		socket; its owner calls
 * @skb:	sk_send_head
 * @most:	packets that may leave
 *
 * A buffer is short if it was split where a grant ended. The first packets of the next
 * buffer then leave in the same frame.
 */
void esp_fill_up(struct sock *sk, struct sk_buff *skb, u32 most)
{
	struct esp_tx_cb *cb = ESP_TX(skb), *ncb;
	struct sk_buff *next;
	u32 n;

	sock_owned_by_me(sk);
	if (skb_queue_is_last(&sk->sk_write_queue, skb) ||
	    (cb->flags & (ESP_TXF | ESP_EOR | ESP_FIN)))
		return;
	next = skb_queue_next(&sk->sk_write_queue, skb);
	ncb = ESP_TX(next);
	most = min(most, cb->limit / cb->size);
	if (most <= cb->segs || skb->len != cb->segs * cb->size ||
	    ncb->size != cb->size || (ncb->flags & (ESP_TXS | ESP_FIN)) ||
	    !next->len || skb_headlen(next) || skb_zcopy(skb) || skb_zcopy(next) ||
	    skb_shinfo(skb)->nr_frags + skb_shinfo(next)->nr_frags > MAX_SKB_FRAGS)
		return;

	n = min(most - cb->segs, ncb->segs);
	skb->ip_summed = CHECKSUM_PARTIAL;
	buffer_move_frags(skb, next, min(n * cb->size, next->len));
	cb->segs += n;
	ncb->segs -= n;
	ncb->seq += n;
	if (!ncb->segs) {
		cb->flags |= ncb->flags;
		cb->full |= ncb->full;
		esp_write_queue_unlink(sk, next);
	}
}

/* Free all buffers of the write queue. */
void esp_write_queue_purge(struct sock *sk)
{
	struct sk_buff *skb;

	esp_devq_leave(sk);
	while ((skb = skb_peek(&sk->sk_write_queue)))
		esp_write_queue_unlink(sk, skb);
	sk->sk_send_head = NULL;
	esp_sk(sk)->notsent = 0;
	esp_sk(sk)->unacked = 0;
}

/**
 * esp_clean_write_queue() - Remove acknowledged packets from the write queue
 * @sk:	socket; its owner calls
 */
void esp_clean_write_queue(struct sock *sk)
{
	u32 una = esp_sk(sk)->snd.una_seq;
	struct sk_buff *skb;

	sock_owned_by_me(sk);
	while ((skb = skb_peek(&sk->sk_write_queue)) &&
	       esp_before(ESP_TX(skb)->seq, una)) {
		struct esp_tx_cb *cb = ESP_TX(skb);
		u32 acked = cb->acked;

		if (esp_after(esp_tx_end(skb), una)) {
			cb->acked = (una - cb->seq) * cb->size;
			esp_sk(sk)->unacked -= cb->acked - acked;
			break;
		}
		esp_sk(sk)->unacked -= skb->len - acked;
		esp_write_queue_unlink(sk, skb);
	}
}

/**
 * esp_queue_fin() - Append the FIN to the write queue
 * @sk:	socket in a state that leads to a FIN; its owner calls
 *
 * Without memory for the FIN, ESP_T_CORK calls this again later, because the data before
 * the FIN must not be lost for it. The caller pushes the FIN.
 */
void esp_queue_fin(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	unsigned int room = esp_dev_headroom(esp->dev) + ESP_HLEN_MAX;
	struct sk_buff *skb;

	sock_owned_by_me(sk);
	skb = alloc_skb_fclone(room, gfp_any());
	if (!skb) {
		esp_timer_set(esp, ESP_T_CORK, esp_now() + ESP_CORK_US);
		return;
	}
	skb_reserve(skb, room);
	memset(skb->cb, 0, sizeof(struct esp_tx_cb));
	/*
	 * Charge the FIN without asking for memory, because each connection would take
	 * and return a page of all sockets' memory for it. A socket that has none left
	 * is in debt until the FIN is acknowledged.
	 */
	esp->fin_seq = esp->snd.send_seq;
	esp->fin_queued = 1;
	esp->more = 0;
	esp->cork = 0;
	esp_write_queue_append(sk, skb, ESP_FIN);
}

/* Return the payload of the largest packet in a buffer, bytes. */
static u32 buffer_packet(const struct sk_buff *skb)
{
	return min_t(u32, skb->len, ESP_TX(skb)->size);
}

/* Has the buffer packets that the path does not take as a whole any more? */
static bool buffer_too_large(struct sock *sk, const struct sk_buff *skb)
{
	return buffer_packet(skb) > esp_sk(sk)->mss && buffer_packet(skb) > esp_packet_max(sk);
}

/**
 * esp_leaves_in_parts() - Does a buffer hold packets that are retransmitted in parts?
 * @sk:		socket; its owner calls
 * @skb:	buffer on the write queue
 *
 * To a peer that takes no parts they leave as they are: one that is lost does less harm.
 *
 * Return: true if so (rule 9)
 */
bool esp_leaves_in_parts(struct sock *sk, const struct sk_buff *skb)
{
	return buffer_too_large(sk, skb) && esp_sk(sk)->peer_parts;
}

/* Does the path take all packets of the write queue as they are? */
static bool write_queue_fits(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	int room = esp_dev_mtu(esp->dev) - (int)esp_data_hlen(esp);
	struct sk_buff *skb;

	room = min_t(int, room, esp_packet_max(sk));
	skb_queue_walk(&sk->sk_write_queue, skb)
		if ((int)buffer_packet(skb) > room)
			return false;
	return true;
}

/**
 * esp_resegment() - Let the write queue fit a path that takes smaller packets
 * @sk:	connection; its owner calls, after esp_update_mss()
 *
 * Rule 9: packets that were not sent are cut anew, and numbered anew. Those that were sent keep
 * their numbers and, if they are retransmitted, leave in parts.
 *
 * A peer that takes no parts, or an MTU that is too small for ESP, leaves the queue as it is.
 *
 * Return: true; false: the queue has a packet that can't be sent
 */
bool esp_resegment(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb = sk->sk_send_head;
	u32 seq = esp->snd.send_next;

	sock_owned_by_me(sk);
	if (!esp->peer_parts || esp_dev_mtu(esp->dev) < ESP_MTU_MIN)
		return write_queue_fits(sk);
	if (!skb)
		return true;
	skb_queue_walk_from(&sk->sk_write_queue, skb) {
		struct esp_tx_cb *cb = ESP_TX(skb);

		cb->seq = seq;
		if (buffer_too_large(sk, skb)) {
			cb->size = esp->mss;
			cb->segs = DIV_ROUND_UP(skb->len, cb->size);
			cb->limit = cb->linear ? cb->size : esp_gso_limit(sk, cb->size);
			skb->ip_summed = CHECKSUM_PARTIAL;
		}
		seq += cb->segs;
		if (cb->flags & ESP_FIN)
			esp->fin_seq = cb->seq;
	}
	esp->snd.send_seq = seq;
	return true;
}

/**
 * esp_retransmit() - Retransmit some packets of the write queue
 * @sk:		socket; its owner calls
 * @skb:	the buffer that holds them; its other packets are split off
 * @from:	number of the first one
 * @to:		number after the last one
 *
 * A buffer whose last frame is still in the device's queue is not lost, and not sent.
 *
 * Of packets that leave in parts (rule 9), only the oldest one of the queue is sent, because the
 * peer puts together only the next packet. The others count as lost.
 *
 * Return: the buffer that holds them now; NULL: no memory, nothing was sent
 */
struct sk_buff *esp_retransmit(struct sock *sk, struct sk_buff *skb, u32 from,
			       u32 to)
{
	bool parts = unlikely(esp_leaves_in_parts(sk, skb));

	sock_owned_by_me(sk);
	esp_sk(sk)->sent_later = 0;
	if (esp_devq_holds(sk, skb))
		return skb;
	if (parts) {
		if (from != esp_sk(sk)->snd.una_seq)
			return skb;
		to = from + 1;
	}
	if ((esp_after(from, ESP_TX(skb)->seq) || esp_before(to, esp_tx_end(skb))) &&
	    split_is_too_much(sk, skb))
		return NULL;
	if (esp_after(from, ESP_TX(skb)->seq)) {
		skb = esp_split(sk, skb, from - ESP_TX(skb)->seq);
		if (!skb)
			return NULL;
		esp_clean_write_queue(sk);	/* the part before @from may be acknowledged */
	}
	if (esp_before(to, esp_tx_end(skb)) &&
	    !esp_split(sk, skb, to - ESP_TX(skb)->seq))
		return NULL;
	if (!esp_sk(sk)->snd.on_hold)	/* the peer may have had no memory for it */
		WRITE_ONCE(esp_sk(sk)->peer->lossless, 0);
	if (parts)
		esp_send_in_parts(sk, skb);
	else
		esp_skb_xmit(sk, skb, true);
	return skb;
}

/*
 * Does the last packet of @skb have to wait, because it is not full? Nagle's rule, ESP_CORK
 * and MSG_MORE hold such a packet back.
 */
static bool nagle_defer(struct sock *sk, struct sk_buff *skb)
{
	struct esp_opt *esp = esp_sk(sk);

	if (skb->len >= ESP_TX(skb)->segs * ESP_TX(skb)->size ||
	    !skb_queue_is_last(&sk->sk_write_queue, skb) ||
	    (ESP_TX(skb)->flags & (ESP_FIN | ESP_EOR)))
		return false;
	if ((esp->cork || esp->more) && !esp->uncork) {
		if (!esp->deadline[ESP_T_CORK])
			esp_timer_set(esp, ESP_T_CORK, esp_now() + ESP_CORK_US);
		return true;
	}
	return !esp->nodelay && esp->snd.una_seq != esp->snd.send_next;
}

/* Is @skb, at sk_send_head, a single packet that has to wait for more data or an ACK? */
bool esp_nagle_defer(struct sock *sk, struct sk_buff *skb)
{
	return ESP_TX(skb)->segs == 1 && nagle_defer(sk, skb);
}

/*
 * Longest interval to the next probe, microseconds. A peer that doesn't answer is asked more and
 * more seldom, up to rto_max_ms, as for an ACK.
 */
static u32 probe_most(struct esp_opt *esp)
{
	u32 lo = READ_ONCE(esp->ns->conf.probe_max_ms);
	u32 hi = READ_ONCE(esp->ns->conf.rto_max_ms);

	return esp_rtt_backoff(1000 * lo, esp->probes ? esp->probes - 1 : 0, 1000 * max(lo, hi));
}

/**
 * esp_arm_send() - Arm the sender's timer, or stop it if there is nothing to wait for
 * @sk:		socket; its owner calls
 * @now:	microseconds of esp_now()
 */
void esp_arm_send(struct sock *sk, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 left;
	u32 wait;

	sock_owned_by_me(sk);
	if (esp->snd.una_seq != esp->snd.send_next) {
		wait = esp_rto(esp);
	} else if (sk->sk_send_head && !esp_nagle_defer(sk, sk->sk_send_head)) {
		/* the reply may be lost; after a HOLD the grant takes time */
		wait = esp_rtt_backoff(esp_rto(esp), esp->probe_tries +
				       (esp->snd.on_hold && !esp->told_growth ?
					ESP_HELD_SHIFT : 0),
				       probe_most(esp));
	} else {
		esp_timer_clear(esp, ESP_T_SEND);
		return;
	}
	if (esp->user_timeout_ms) {	/* its end is no later than the user has asked for */
		left = esp->waiting_since + 1000ull * esp->user_timeout_ms;
		wait = clamp_t(u64, left > now ? left - now : 1, 1, wait);
	}
	esp_timer_move(esp, ESP_T_SEND, now, wait, ESP_SLACK_US);
}

/* Is @skb a whole transmission in one small packet (rule 7)? */
static bool buffer_is_small(struct sk_buff *skb)
{
	return (ESP_TX(skb)->flags & (ESP_TXS | ESP_TXF)) == (ESP_TXS | ESP_TXF) &&
	       skb->len <= ESP_SMALL && ESP_TX(skb)->segs == 1;
}

/**
 * esp_cwnd_test() - Count the packets that may be sent for the first time
 * @sk:		socket; its owner calls
 * @skb:	sk_send_head
 *
 * Announces the transmission that begins with @skb, if that is possible. A FIN takes no
 * memory at the receiver and is not held back.
 *
 * Return: number of packets, from the first one of @skb on
 */
u32 esp_cwnd_test(struct sock *sk, struct sk_buff *skb)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (ESP_TX(skb)->flags & ESP_FIN)
		return 1;
	if ((ESP_TX(skb)->flags & ESP_TXS) && esp_window_may_announce(&esp->snd)) {
		/*
		 * The first burst that the handshake told counts for a moment, because other
		 * senders may have begun since. After that it is one packet.
		 */
		if (esp->snd.advice > 1 && esp->opened_at &&
		    esp_now() - esp->opened_at > ESP_OPENED_US)
			WRITE_ONCE(esp->snd.advice, 1);
		esp_window_announce(&esp->snd, buffer_is_small(skb));
		esp->told_end = esp->snd.send_next;
		esp->told_growth = 0;
		if (trace_esp_announce_enabled())
			trace_esp_announce(sk, ESP_TX(skb)->seq,
					   esp->snd.edge - esp->snd.send_next);
		if (esp->snd.edge == esp->snd.send_next) {
			/* the advised first burst is empty: ask first (rule 21) */
			ESP_INC(sock_net(sk), AdviceEmpty);
			esp_send_probe(sk);
			return 0;
		}
	}
	if (!esp_window_test(&esp->snd))
		return 0;
	return min_t(u32, ESP_TX(skb)->segs,
		     esp_window_limit(&esp->snd) - ESP_TX(skb)->seq);
}

/*
 * May the last packet leave while a sendmsg() is still copying? As a rule it stays, because
 * it may have to carry TXF. It leaves if the writer has more data to append after it, or if
 * all writers wait for memory and this is the only buffer.
 */
static bool writer_more_follows(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	return esp->writer_has_more || (esp->writers_asleep == esp->writers &&
					skb_queue_len(&sk->sk_write_queue) == 1);
}

/* Count the packets at the head of a buffer that may leave at most, if the device takes them. */
static u32 window_room(struct esp_opt *esp, const struct esp_tx_cb *cb)
{
	if ((cb->flags & ESP_TXS) && esp_window_may_announce(&esp->snd))
		return max(esp_window_first_burst(&esp->snd), 1u);
	return esp_window_test(&esp->snd) ? esp_window_limit(&esp->snd) - cb->seq : 0;
}

/* How many of the first @n packets of a buffer may the device have now, as one frame? */
static u32 devq_may_send(struct sock *sk, struct sk_buff *skb, u32 n)
{
	u32 size = ESP_TX(skb)->size;

	if (likely(n == 1 && refcount_read(&sk->sk_wmem_alloc) == 1 && !esp_sk(sk)->devq_wants))
		return 1;	/* nothing of the socket is in the queue */
	return esp_devq_may_send(sk, n, size, esp_gso_limit(sk, size));
}

/**
 * esp_push_one_frame() - Send the packets at sk_send_head that may leave
 * @sk:	socket; its owner calls
 *
 * Rule 4: the last packet gets TXF before it leaves; the next write announces anew then.
 * The exception is a sendmsg() that is still copying.
 * If the writer has said that more data comes, fewer than ESP_MORE_RUN packets wait as the
 * last one does. They wait only while other packets are outstanding.
 *
 * Return: number of packets sent, as one frame
 */
u32 esp_push_one_frame(struct sock *sk)
{
	struct sk_buff *skb = sk->sk_send_head;
	struct esp_opt *esp = esp_sk(sk);
	struct esp_tx_cb *cb;
	u32 n, limit;

	sock_owned_by_me(sk);
	if (!skb)
		return 0;
	cb = ESP_TX(skb);
	limit = esp_window_limit(&esp->snd);
	if (!(cb->flags & ESP_TXS) && esp_after(limit, esp_tx_end(skb)))
		esp_fill_up(sk, skb, limit - cb->seq);
	n = cb->segs;
	if (nagle_defer(sk, skb)) {
		n--;
		if (n < ESP_MORE_RUN && (esp->cork || esp->more) && !esp->uncork &&
		    esp->snd.una_seq != esp->snd.send_next)
			n = 0;
	} else if (skb_queue_is_last(&sk->sk_write_queue, skb) &&
		   !(cb->flags & ESP_FIN)) {
		if (!esp->writers) {
			cb->flags |= ESP_TXF;
			esp->snd.trans_announced = 0;
		} else if (!writer_more_follows(sk)) {
			n--;
		}
	}
	if (unlikely(skb->len > cb->limit))	/* a buffer that was resegmented */
		n = min(n, max(cb->limit / cb->size, 1u));
	/* the device comes first: an announcement must leave with a packet */
	if (n && skb->len)
		n = min(n, window_room(esp, cb));
	if (n && skb->len)
		n = devq_may_send(sk, skb, n);
	if (n)
		n = min(n, esp_cwnd_test(sk, skb));
	if (!n || (n < cb->segs && (split_is_too_much(sk, skb) || !esp_split(sk, skb, n))))
		return 0;
	sk->sk_send_head = skb_queue_is_last(&sk->sk_write_queue, skb) ?
			   NULL : skb_queue_next(&sk->sk_write_queue, skb);
	esp->notsent -= skb->len;
	esp->unacked += skb->len;
	if (unlikely(esp->devq_unused))
		esp_devq_unused(sk, esp->devq_unused - min(esp->devq_unused, n));
	esp_window_sent(&esp->snd, n, cb->flags & ESP_TXS,
			cb->flags & (ESP_TXF | ESP_FIN));
	esp_skb_xmit(sk, skb, false);
	return n;
}

/*
 * Tell the peer that the write queue has grown: after the first packets of the transmission, or
 * once the peer permits all that it knows of. If many begin together, their first bursts are
 * short, and a further frame of each would meet them at the peer's port. The peer is told of as
 * much again as is on the queue. So a user who goes on writing costs few such packets, and the
 * peer may grant too much, until the transmission ends.
 */
static void write_queue_tell_growth(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 end = esp_left_end(esp);

	if (!esp_after(end, esp->told_end) ||
	    (esp_before(esp->snd.edge, esp->told_end) &&
	     esp->snd.send_next - esp->snd.announce_seq < ESP_TELL_AFTER) ||
	    (s32)(esp->told_end - esp->snd.send_next) >= U16_MAX / 2)
		return;
	esp_send_left(sk, end + (end - esp->snd.una_seq));
}

/* Count the packets that the peer permits and that wait for the device. */
static u32 write_queue_unused(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 limit = esp_window_limit(&esp->snd);

	if (!sk->sk_send_head || !esp_devq_waits(esp) || !esp_after(limit, esp->snd.send_next))
		return 0;
	return min(limit - esp->snd.send_next, DIV_ROUND_UP(esp->notsent, esp->mss));
}

/**
 * esp_push_frames() - Send all packets that may leave and arm the sender's timer
 * @sk:	socket; its owner calls
 */
void esp_push_frames(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	bool idle = esp->snd.una_seq == esp->snd.send_next, later = esp->sent_later;
	bool sent = false, one_frame;
	u32 n, one;

	sock_owned_by_me(sk);
	if (sk->sk_state == TCP_SYN_SENT)
		return;
	do {
		one_frame = sk->sk_send_head && ESP_TX(sk->sk_send_head)->segs == 1 &&
			    !(ESP_TX(sk->sk_send_head)->flags & ESP_FIN) &&
			    skb_queue_is_last(&sk->sk_write_queue, sk->sk_send_head);
		/*
		 * A receiver on the same host gets the packets together, and a FIN after the
		 * sender has done all its work for it.
		 */
		if (!one_frame)
			local_bh_disable();
		for (n = 0; n < ESP_TOGETHER && sk->sk_send_head; n += one) {
			one = esp_push_one_frame(sk);
			if (!one)
				break;
			sent = true;
		}
		if (!one_frame)
			local_bh_enable();
	} while (n >= ESP_TOGETHER);
	if (sk->sk_send_head && esp->peer_left && esp->snd.in_trans)
		write_queue_tell_growth(sk);
	if (unlikely(esp->devq_unused || esp_devq_waits(esp)) && esp->devq)
		esp_devq_unused(sk, write_queue_unused(sk));
	/* a deadline set while everything was acknowledged is a probe's, which is later */
	if ((sent && idle) ||
	    ((sent || sk->sk_send_head) && !esp->deadline[ESP_T_SEND])) {
		esp->progress_us = sent ? esp->sent_at : esp_now();
		esp->waiting_since = esp->progress_us;
		esp_arm_send(sk, esp->progress_us);
	} else if (sent && later && !esp->sent_later) {
		esp_arm_send(sk, esp->sent_at);	/* this one is taken for lost earlier */
	}
}

/* Does the sender wait for an ACK that it does not get with a grant? */
static bool sender_needs_ack(struct sock *sk)
{
	struct sk_buff *skb = sk->sk_send_head;
	struct esp_opt *esp = esp_sk(sk);

	/* the receiver sends an ACK at the agreed cap (esp_ack_each()), and knows no other cap */
	if (skb && esp->snd.burst_length &&
	    (esp->snd.burst_length != esp->agreed_burst || esp->late_cap) &&
	    esp->snd.send_next - esp->snd.una_seq >= esp->snd.burst_length)
		return true;
	/* the outstanding packets request no ACK, and no more may leave without one (rule 3) */
	if (skb && esp->snd.sent_alone && esp->snd.announcing && esp->snd.first &&
	    !esp_window_test(&esp->snd) && esp->snd.announce_seq != esp->snd.send_next &&
	    !esp_nagle_defer(sk, skb))
		return true;
	if (skb && (ESP_TX(skb)->segs > 1 ||
		    !skb_queue_is_last(&sk->sk_write_queue, skb)))
		return false;
	/* Nagle's rule waits for the ACK; ESP_CORK and MSG_MORE have a timer */
	if (skb && !esp->cork && !esp->more && esp_nagle_defer(sk, skb) &&
	    esp->snd.send_next - esp->snd.una_seq > ESP_ACK_SURE)
		return true;
	/* a writer waits for space on the write queue */
	return sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/**
 * esp_ask_for_ack() - Request an ACK if the sender cannot go on without one
 * @sk:	socket; its owner calls, after all packets that may leave have left
 *
 * The receiver may see no reason for an ACK of the outstanding packets. The sender asks
 * once: if the request or the ACK is lost, the receiver has a timer.
 */
void esp_ask_for_ack(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 n = esp->snd.send_next - esp->snd.una_seq;

	sock_owned_by_me(sk);
	if (esp_devq_waits(esp))	/* the device lets the sender go on */
		return;
	if (!n || esp->ack_requested_seq == esp->snd.send_next ||
	    !sender_needs_ack(sk))
		return;
	esp->ack_requested_seq = esp->snd.send_next;
	if (esp->snd.in_trans)
		esp_send_probe(sk);
	else	/* no transmission is in progress, and this must announce none */
		esp_send_empty(sk, ESP_TXS, esp->snd.una_seq - 1);
}

/**
 * esp_devq_turn() - Let a socket send that has waited for its frames in the device's queue
 * @sk:	socket whose turn it is; its owner calls
 */
void esp_devq_turn(struct sock *sk)
{
	sock_owned_by_me(sk);
	WRITE_ONCE(esp_sk(sk)->devq_deferred, 0);
	if (sk->sk_state == TCP_CLOSE)
		return;
	esp_push_frames(sk);
	esp_ask_for_ack(sk);
}

/**
 * esp_devq_turns() - Give turns to sockets, in softirq
 * @timer:	timer of a device's queue
 *
 * A process that owns a socket sends when it releases it. The other sockets don't wait for it.
 *
 * Return: HRTIMER_NORESTART; the timer may have been started again
 */
enum hrtimer_restart esp_devq_turns(struct hrtimer *timer)
{
	struct esp_devq *q = container_of(timer, struct esp_devq, timer);
	struct sock *sk;
	int i;

	esp_devq_round(q);
	for (i = 0; i < ESP_DEVQ_RUN; i++) {
		sk = esp_devq_next(q);
		if (!sk)
			break;
		bh_lock_sock(sk);
		if (!esp_owned(sk))
			esp_devq_turn(sk);
		else
			WRITE_ONCE(esp_sk(sk)->devq_deferred, 1);	/* esp_release_cb() */
		bh_unlock_sock(sk);
		sock_put(sk);
	}
	esp_devq_rest(q);
	return HRTIMER_NORESTART;
}
