// SPDX-License-Identifier: GPL-2.0-only
/*
 * The write queue: packets from their making to their acknowledgment, and which of them may
 * leave (seed: "Sending Data to the Receiver"; rules 3-8).
 *
 *   sk_write_queue:   oldest (una_seq) ... sent | sk_send_head ... newest
 *                     <---- unacknowledged ---->|<----- notsent ------>
 *
 * A buffer there holds a run of packets, as many as the device takes at once; it is cut
 * where a grant, a loss or Nagle's rule ends a run.
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
#include "memory.h"
#include "output.h"
#include "timer.h"
#include "write_queue.h"
#include "trace.h"

#define ESP_CORK_US	(5 * 1000)	/* longest that a packet is held back */
#define ESP_TOGETHER	32	/* packets that leave before softirqs may run */
#define ESP_HELD_SHIFT	3	/* after a HOLD the first probe waits 8 times as long */

/* Give a buffer, of one packet as yet, its number and its place. */
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

/* It is as large as it was before; its memory may be not. */
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
 * esp_split() - cut a buffer of the write queue
 * @sk:		socket; its owner calls
 * @skb:	buffer of more than @n packets; the first @n stay in it
 * @n:		packets
 *
 * A copy that is on its way keeps what it has. The memory must be had:
 * otherwise the socket is in debt, and pays next time.
 *
 * Return: the rest, behind @skb on the write queue; NULL: no memory, nothing
 * has happened
 */
struct sk_buff *esp_split(struct sock *sk, struct sk_buff *skb, u32 n)
{
	u32 at = n * ESP_TX(skb)->size, before = skb->truesize, linear = 0;
	unsigned int room = esp_dev_headroom(esp_sk(sk)->dev) + ESP_HLEN_MAX;
	struct sk_buff *rest;

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

	/* sums of a part are not known */
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

/* Move @n bytes of page fragments from the front of @next behind @skb. */
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

void esp_write_queue_unlink(struct sock *sk, struct sk_buff *skb)
{
	__skb_unlink(skb, &sk->sk_write_queue);
	sk_wmem_queued_add(sk, -skb->truesize);
	esp_mem_uncharge(sk, skb->truesize);
	__kfree_skb(skb);
}

/**
 * esp_fill_up() - let more packets leave with the next one
 * @sk:		socket; its owner calls
 * @skb:	sk_send_head
 * @most:	packets that may leave
 *
 * What permission has cut off an earlier run is short; the next one's front
 * goes with it.
 */
void esp_fill_up(struct sock *sk, struct sk_buff *skb, u32 most)
{
	struct esp_tx_cb *cb = ESP_TX(skb), *ncb;
	struct sk_buff *next;
	u32 n;

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

void esp_write_queue_purge(struct sock *sk)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&sk->sk_write_queue)))
		esp_write_queue_unlink(sk, skb);
	sk->sk_send_head = NULL;
	esp_sk(sk)->notsent = 0;
	esp_sk(sk)->unacked = 0;
}

/**
 * esp_clean_write_queue() - forget what has been acknowledged
 * @sk:	socket; its owner calls
 */
void esp_clean_write_queue(struct sock *sk)
{
	u32 una = esp_sk(sk)->snd.una_seq;
	struct sk_buff *skb;

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
 * esp_queue_fin() - no more data: the FIN follows what is on the write queue
 * @sk:	socket in a state that leads to one; its owner calls
 *
 * Without memory it is tried again later: what was sent before must not be lost
 * for it. The caller pushes it.
 */
void esp_queue_fin(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	unsigned int room = esp_dev_headroom(esp->dev) + ESP_HLEN_MAX;
	struct sk_buff *skb;

	skb = alloc_skb_fclone(room, gfp_any());
	if (!skb) {
		esp_timer_set(esp, ESP_T_CORK, esp_now() + ESP_CORK_US);
		return;
	}
	skb_reserve(skb, room);
	memset(skb->cb, 0, sizeof(struct esp_tx_cb));
	/*
	 * No memory is asked for, which would be a page for all sockets, twice a
	 * connection: one that has none left is in debt till the FIN is acknowledged.
	 */
	esp->fin_seq = esp->snd.send_seq;
	esp->fin_queued = 1;
	esp->more = 0;
	esp->cork = 0;
	esp_write_queue_append(sk, skb, ESP_FIN);
}

/**
 * esp_retransmit() - send some packets of the write queue again
 * @sk:		socket; its owner calls
 * @skb:	the buffer that they are in; others of it are cut off
 * @from:	the first one
 * @to:		behind the last one
 *
 * Return: the buffer in which they are now; NULL: no memory, nothing was sent
 */
struct sk_buff *esp_retransmit(struct sock *sk, struct sk_buff *skb, u32 from,
			       u32 to)
{
	if (esp_after(from, ESP_TX(skb)->seq)) {
		skb = esp_split(sk, skb, from - ESP_TX(skb)->seq);
		if (!skb)
			return NULL;
		esp_clean_write_queue(sk);	/* of what was cut off */
	}
	if (esp_before(to, esp_tx_end(skb)) &&
	    !esp_split(sk, skb, to - ESP_TX(skb)->seq))
		return NULL;
	esp_skb_xmit(sk, skb, true);
	return skb;
}

/*
 * Nagle, cork, MSG_MORE: a packet that is not full may have to wait. Asked of
 * the last one of a buffer.
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

/* Nothing but a packet that may have to wait is unsent. */
bool esp_nagle_defer(struct sock *sk, struct sk_buff *skb)
{
	return ESP_TX(skb)->segs == 1 && nagle_defer(sk, skb);
}

/**
 * esp_arm_send() - the sender's timer, as things stand
 * @sk:		socket; its owner calls
 * @now:	microseconds
 */
void esp_arm_send(struct sock *sk, u64 now)
{
	const struct esp_conf *conf = &esp_sk(sk)->ns->conf;
	struct esp_opt *esp = esp_sk(sk);
	u32 wait;

	if (esp->snd.una_seq != esp->snd.send_next) {
		wait = esp_rto(esp);
	} else if (sk->sk_send_head && !esp_nagle_defer(sk, sk->sk_send_head)) {
		/* the answer may be lost; but a HOLD says that it takes time */
		wait = esp_rtt_backoff(esp_rto(esp), esp->probe_tries +
				       (esp->snd.on_hold ? ESP_HELD_SHIFT : 0),
				       1000 * READ_ONCE(conf->probe_max_ms));
	} else {
		esp_timer_clear(esp, ESP_T_SEND);
		return;
	}
	esp_timer_move(esp, ESP_T_SEND, now, wait, ESP_SLACK_US);
}

/* A whole transmission in one small packet (rule 7). */
static bool buffer_is_small(struct sk_buff *skb)
{
	return (ESP_TX(skb)->flags & (ESP_TXS | ESP_TXF)) == (ESP_TXS | ESP_TXF) &&
	       skb->len <= ESP_SMALL && ESP_TX(skb)->segs == 1;
}

/**
 * esp_cwnd_test() - which packets may be sent for the first time?
 * @sk:		socket; its owner calls
 * @skb:	sk_send_head
 *
 * A FIN takes no room at the receiver and is not held back.
 *
 * Return: so many of @skb
 */
u32 esp_cwnd_test(struct sock *sk, struct sk_buff *skb)
{
	struct esp_opt *esp = esp_sk(sk);

	if (ESP_TX(skb)->flags & ESP_FIN)
		return 1;
	if ((ESP_TX(skb)->flags & ESP_TXS) && esp_window_may_announce(&esp->snd)) {
		esp_window_announce(&esp->snd, buffer_is_small(skb));
		if (trace_esp_announce_enabled())
			trace_esp_announce(sk, ESP_TX(skb)->seq,
					   esp->snd.edge - esp->snd.send_next);
		if (esp->snd.edge == esp->snd.send_next) {
			/* advised to start with nothing: ask first (rule 21) */
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
 * While a sendmsg is copying, the last packet stays: it may have to carry
 * TXF. But if that call has more to put behind it, or waits for the memory of
 * this very buffer, it goes.
 */
static bool writer_more_follows(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	return esp->writer_has_more || (esp->writers_asleep == esp->writers &&
					skb_queue_len(&sk->sk_write_queue) == 1);
}

/**
 * esp_push_one_frame() - send the packets at sk_send_head that may go
 * @sk:	socket; its owner calls
 *
 * Rule 4: the last packet gets TXF before it leaves, unless a sendmsg is
 * still copying; then the next write announces anew.
 * Of a sender that has said that more comes a few packets wait, as the last
 * one does, but only for the answer to those on their way.
 *
 * Return: how many have been sent, as one frame
 */
u32 esp_push_one_frame(struct sock *sk)
{
	struct sk_buff *skb = sk->sk_send_head;
	struct esp_opt *esp = esp_sk(sk);
	struct esp_tx_cb *cb;
	u32 n, limit;

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
	if (n)
		n = min(n, esp_cwnd_test(sk, skb));
	if (!n || (n < cb->segs && !esp_split(sk, skb, n)))
		return 0;
	sk->sk_send_head = skb_queue_is_last(&sk->sk_write_queue, skb) ?
			   NULL : skb_queue_next(&sk->sk_write_queue, skb);
	esp->notsent -= skb->len;
	esp->unacked += skb->len;
	esp_window_sent(&esp->snd, n, cb->flags & ESP_TXS,
			cb->flags & (ESP_TXF | ESP_FIN));
	esp_skb_xmit(sk, skb, false);
	return n;
}

/**
 * esp_push_frames() - send what may go, and see to it that a timer watches
 * @sk:	socket; its owner calls
 */
void esp_push_frames(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	bool idle = esp->snd.una_seq == esp->snd.send_next;
	bool sent = false, one_frame;
	u32 n, one;

	if (sk->sk_state == TCP_SYN_SENT || sk->sk_state == TCP_SYN_RECV)
		return;
	do {
		one_frame = sk->sk_send_head && ESP_TX(sk->sk_send_head)->segs == 1 &&
			    !(ESP_TX(sk->sk_send_head)->flags & ESP_FIN) &&
			    skb_queue_is_last(&sk->sk_write_queue, sk->sk_send_head);
		/* who is on this machine gets them together, and a FIN when all is done for it */
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
	/* what runs while everything is acknowledged is a probe's, and longer */
	if ((sent && idle) ||
	    ((sent || sk->sk_send_head) && !esp->deadline[ESP_T_SEND])) {
		esp->progress_us = sent ? esp->sent_at : esp_now();
		esp_arm_send(sk, esp->progress_us);
	}
}

/* Is there something that only an ACK can set going, and no permission? */
static bool sender_needs_ack(struct sock *sk)
{
	struct sk_buff *skb = sk->sk_send_head;
	struct esp_opt *esp = esp_sk(sk);

	/* at the agreed cap an ACK is due (esp_ack_each()); the receiver knows of no other */
	if (skb && esp->snd.burst_length &&
	    (esp->snd.burst_length != esp->agreed_burst || esp->late_cap) &&
	    esp->snd.send_next - esp->snd.una_seq >= esp->snd.burst_length)
		return true;
	/* what is on its way asks for nothing, and was all that may go unasked (rule 3) */
	if (skb && esp->snd.sent_alone && esp->snd.announcing && esp->snd.first &&
	    !esp_window_test(&esp->snd) && esp->snd.announce_seq != esp->snd.send_next &&
	    !esp_nagle_defer(sk, skb))
		return true;
	if (skb && (ESP_TX(skb)->segs > 1 ||
		    !skb_queue_is_last(&sk->sk_write_queue, skb)))
		return false;
	/* Nagle's rule: whoever has said that more comes has a timer */
	if (skb && !esp->cork && !esp->more && esp_nagle_defer(sk, skb) &&
	    esp->snd.send_next - esp->snd.una_seq > ESP_ACK_SURE)
		return true;
	/* room on the write queue */
	return sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/**
 * esp_ask_for_ack() - the sender can't go on without an ACK
 * @sk:	socket; its owner calls, when all that may be sent has been
 *
 * Of the packets that are on their way none may be due, as far as the receiver
 * knows. Once: if the question or its answer is lost, the receiver has a timer.
 */
void esp_ask_for_ack(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 n = esp->snd.send_next - esp->snd.una_seq;

	if (!n || n > ESP_ACK_MOST || esp->ack_requested_seq == esp->snd.send_next ||
	    !sender_needs_ack(sk))
		return;
	esp->ack_requested_seq = esp->snd.send_next;
	if (esp->snd.in_trans)
		esp_send_probe(sk);
	else	/* nothing is in progress, and nothing to be announced by this */
		esp_send_empty(sk, ESP_TXS, esp->snd.una_seq - 1);
}
