// SPDX-License-Identifier: GPL-2.0-only
/*
 * Output engine (seed: "Design of the ESP Output Engine", "Sending Data to
 * the Receiver").
 *
 *   sendmsg   ACK   timers            RRQ, retransmission timer
 *       \      |    /                          |
 *      esp_push_frames                         |
 *              |                               |
 *     esp_push_one_frame -- esp_cwnd_test      |
 *              |                               |
 *              +-------> esp_skb_xmit <--------+       write queue
 *   -----------------------------------------------------------------
 *     esp_send_ack, esp_send_probe,                    empty packets
 *     esp_send_reset --> esp_send_empty; esp_send_rrq
 *
 * ACKs that leave for another socket have their own exit: grant.c.
 */
#include "esp.h"
#include "trace.h"

#define ESP_TOGETHER	32	/* packets that leave before softirqs may run */

/*
 * What the peer may send beyond @recv_seq, or is advised to start with. That
 * the sender may take the one for the other, @recv_seq and what follows from
 * it belong together: whoever reads a recv_seq reads also that its
 * transmission has begun or ended (update_recv_seq()).
 */
static u16 grant_now(struct esp_opt *esp, u32 recv_seq)
{
	u32 edge;

	if (!READ_ONCE(esp->grant.recv_announced))
		return min_t(u32, READ_ONCE(esp->advice_told),
			     esp_grant_room(esp));
	smp_rmb();	/* pairs with esp_ackq_announced() */
	edge = READ_ONCE(esp->grant.edge);
	return esp_after(edge, recv_seq) ?
	       min_t(u32, edge - recv_seq, ESP_SEQ_WINDOW) : 0;
}

/* The echo of the last ts_val, plus the time for which it was held. */
static u32 ts_echo(struct esp_opt *esp, u32 now)
{
	u64 ts = READ_ONCE(esp->ts_recent);

	return (u32)(ts >> 32) + (now - (u32)ts);
}

/* Fill in what every frame of a connection carries. */
static void fill_frame(struct esp_opt *esp, struct esp_frame *f, u8 flags,
		       u16 len, u32 pkt_seq, u32 now)
{
	memset_startat(f, 0, peer_cookie);
	f->version = ESP_VERSION;
	f->flags = flags;
	f->opts = 0;
	f->sport = esp->sport;
	f->dport = esp->dport;
	f->cookie = esp->peer_cookie;
	f->pkt_seq = pkt_seq;
	f->ts_val = now + esp->ts_off;
	f->len = len;
	if (flags & ESP_ACK) {
		/* pairs with update_recv_seq() */
		f->ack_seq = smp_load_acquire(&esp->recv_seq);
		f->grant = grant_now(esp, f->ack_seq);
		f->ts_ecr = ts_echo(esp, now);
	} else {
		f->ack_seq = 0;
		f->grant = 0;
		f->ts_ecr = 0;
	}
	if ((flags & ESP_SYN) || READ_ONCE(esp->echo)) {
		if (flags == ESP_SYN)
			f->cookie = 0;
		esp_hello(&esp->sk, f);
	} else if ((!len && !(flags & ESP_RST)) ||
		   (READ_ONCE(esp->advice_echo) && len + 4u <= READ_ONCE(esp->mss))) {
		/*
		 * rule 21: a cut frees its share only when it is echoed. Empty
		 * packets are below Ethernet's smallest, with or without.
		 */
		f->opts = ESP_HAS(ESP_OPT_ADVICE);
		f->advice = READ_ONCE(esp->snd.advice);
		/* a question: who doesn't know us can say so (esp_reply_reset()) */
		if (!len && ((flags & ESP_TXS) ||
			     READ_ONCE(esp->probes) >= ESP_FORGOTTEN)) {
			f->opts |= ESP_HAS(ESP_OPT_COOKIE);
			f->peer_cookie = esp->cookie;
		}
	}
	if (READ_ONCE(esp->crc) && !(flags & (ESP_SYN | ESP_RST)))
		f->opts |= ESP_HAS(ESP_OPT_CRC);
}

/**
 * esp_skb_alloc_sk() - a packet that never enters the write queue
 * @sk:		socket, connected
 * @flags:	of the header
 * @payload:	bytes to be put behind the header (RRQ; SYN: padding)
 * @pkt_seq:	packet number
 *
 * Safe without the socket's lock while the caller holds a reference: reads
 * only what is fixed, or whole in one word.
 *
 * Return: the packet, header built, without checksum; NULL: no memory
 */
struct sk_buff *esp_skb_alloc_sk(struct sock *sk, u8 flags, u16 payload,
				 u32 pkt_seq)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_frame f;
	struct sk_buff *skb;
	unsigned int room;

	fill_frame(esp, &f, flags, flags & ESP_SYN ? 0 : payload, pkt_seq,
		   (u32)esp_now());
	room = esp_dev_headroom(esp->dev);
	skb = alloc_skb(room + ESP_HLEN_MAX + payload, GFP_ATOMIC);
	if (!skb) {
		ESP_INC(sock_net(sk), OutAllocFail);
		return NULL;
	}
	skb_reserve(skb, room);
	esp_wire_build(skb_put(skb, esp_wire_hlen(&f)), &f);
	esp_skb_classify(skb, sk);
	return skb;
}

/**
 * esp_finish_frame() - the checksum, over header and payload
 * @ed:		device by which it will leave
 * @skb:	frame from the ESP header on; its checksum is zero
 * @len:	bytes to be summed; even
 * @rest:	sum of those behind them
 *
 * Before it, the CRC, if the header has one.
 */
void esp_finish_frame(struct esp_dev *ed, struct sk_buff *skb,
		      unsigned int len, __wsum rest)
{
	struct esp_wire *h = (struct esp_wire *)skb->data;

	if ((h->ver_hlen & 15) > ESP_HLEN / 4 && skb->data[ESP_HLEN] == ESP_OPT_CRC)
		esp_crc_fill(skb);
	if (esp_dev_checksums(ed)) {
		skb->ip_summed = CHECKSUM_PARTIAL;
		skb->csum_start = skb_headroom(skb);
		skb->csum_offset = offsetof(struct esp_wire, csum);
		return;
	}
	skb->ip_summed = CHECKSUM_NONE;
	h->csum = (__force u16)csum_fold(skb_checksum(skb, 0, len, rest));
}

/* An ACK is leaving, on whatever frame: none is owed any more. */
static void ack_left(struct esp_opt *esp, u16 len)
{
	esp->ack_seq = esp->recv_seq;
	WRITE_ONCE(esp->ack_pending, 0);
	esp->to_ack = 0;
	if (len + 4u <= esp->mss)	/* the option went with it: fill_frame() */
		WRITE_ONCE(esp->advice_echo, 0);
	esp_timer_clear(esp, ESP_T_ACK);
}

/**
 * esp_skb_xmit() - send a buffer of the write queue
 * @sk:		socket; its owner calls
 * @skb:	buffer on the write queue; stays there
 * @again:	it has been sent before
 *
 * Return: 0, ENOMEM or ENETDOWN. Failing counts as sent: the retransmission
 * timer has the same cure for it as for a loss.
 */
int esp_skb_xmit(struct sock *sk, struct sk_buff *skb, bool again)
{
	struct esp_tx_cb *cb = ESP_TX(skb);
	struct esp_opt *esp = esp_sk(sk);
	struct net *net = sock_net(sk);
	struct esp_frame f;
	struct sk_buff *out;

	esp->sent_at = esp_now();
	cb->sent_us = (u32)esp->sent_at;
	if (skb_cloned(skb))	/* an earlier copy is still on its way */
		out = pskb_copy(skb, GFP_ATOMIC);
	else
		out = skb_clone(skb, GFP_ATOMIC);
	if (!out) {
		ESP_INC(net, OutAllocFail);
		return -ENOMEM;
	}
	skb_orphan(out);
	fill_frame(esp, &f, cb->flags | ESP_ACK, skb->len, cb->seq, cb->sent_us);
	if (skb_cow_head(out, esp_dev_headroom(esp->dev) + ESP_HLEN_MAX)) {
		kfree_skb_reason(out, SKB_DROP_REASON_NOMEM);
		ESP_INC(net, OutAllocFail);
		return -ENOMEM;
	}
	esp_wire_build(skb_push(out, esp_wire_hlen(&f)), &f);
	if (cb->segs > 1 || skb_is_gso(out))
		esp_gso_mark(out, cb->size, cb->segs);
	if (cb->segs > 1)
		;	/* each packet's when they are taken apart */
	else if (skb->ip_summed == CHECKSUM_NONE)	/* computed while copying */
		esp_finish_frame(esp->dev, out, esp_wire_hlen(&f), skb->csum);
	else
		esp_finish_frame(esp->dev, out, out->len, 0);
	esp_skb_classify(out, sk);
	ack_left(esp, skb->len);
	if (again) {
		trace_esp_again(sk, cb->seq, cb->segs);
		cb->retrans = 1;
		esp->stats.retrans += cb->segs;
		ESP_ADD(net, OutRetrans, cb->segs);
	} else {
		if (trace_esp_finish_enabled() && (cb->flags & ESP_TXF))
			trace_esp_finish(sk, cb->seq, cb->segs);
		esp->stats.tx_packets += cb->segs;
		esp->stats.tx_bytes += skb->len;
		ESP_ADD_NS(esp->ns, OutData, cb->segs);
	}
	return esp_dev_xmit(out, esp->dev, esp->daddr, esp->saddr);
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

/* A whole transmission in one small packet (rule 7). */
static bool is_small(struct sk_buff *skb)
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
		esp_window_announce(&esp->snd, is_small(skb));
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
 * Nagle, cork, MSG_MORE: a packet that is not full may have to wait. Asked of
 * the last one of a buffer.
 */
static bool hold_back(struct sock *sk, struct sk_buff *skb)
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
bool esp_hold_back(struct sock *sk, struct sk_buff *skb)
{
	return ESP_TX(skb)->segs == 1 && hold_back(sk, skb);
}

/*
 * While a sendmsg is copying, the last packet stays: it may have to carry
 * TXF. But if that call has more to put behind it, or waits for the memory of
 * this very buffer, it goes.
 */
static bool more_follows(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	return esp->feeding || (esp->waiting == esp->copying &&
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
	if (hold_back(sk, skb)) {
		n--;
		if (n < ESP_MORE_RUN && (esp->cork || esp->more) && !esp->uncork &&
		    esp->snd.una_seq != esp->snd.send_next)
			n = 0;
	} else if (skb_queue_is_last(&sk->sk_write_queue, skb) &&
		   !(cb->flags & ESP_FIN)) {
		if (!esp->copying) {
			cb->flags |= ESP_TXF;
			esp->snd.trans_announced = 0;
		} else if (!more_follows(sk)) {
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

/**
 * esp_send_empty() - build and send an empty packet
 * @sk:		socket; its owner calls
 * @flags:	beside ACK
 * @pkt_seq:	packet number
 */
void esp_send_empty(struct sock *sk, u8 flags, u32 pkt_seq)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb;

	if (esp_advice_changed(sk)) {
		esp_peer_advise(sk);
		if (!READ_ONCE(esp->deadline[ESP_T_TELL]))
			esp_timer_set(esp, ESP_T_TELL, esp_now() + 1000);
	} else if (esp->to_ack && esp_advice_low(sk)) {
		esp_peer_advise(sk);
	}
	skb = esp_skb_alloc_sk(sk, flags | ESP_ACK, 0, pkt_seq);
	if (!skb)
		return;
	ack_left(esp, 0);
	esp->last_ack_us = esp_now();
	esp->stats.tx_empty++;
	ESP_INC_NS(esp->ns, OutEmpty);
	esp_finish_frame(esp->dev, skb, skb->len, 0);
	esp_dev_xmit(skb, esp->dev, esp->daddr, esp->saddr);
}

/* What has arrived, and the permission as it stands. */
void esp_send_ack(struct sock *sk)
{
	esp_send_empty(sk, 0, esp_sk(sk)->snd.send_next);
}

/**
 * esp_send_probe() - ask how things stand; every TXS is answered at once
 * @sk:	socket; its owner calls
 *
 * While there is data to announce, this announces it (again).
 */
void esp_send_probe(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (sk->sk_send_head)
		esp_send_empty(sk, ESP_TXS, esp->snd.send_next);
	else
		esp_send_empty(sk, ESP_TXS, esp->snd.send_next - 1);
}

/**
 * esp_send_reset() - the connection is gone
 * @sk:		socket
 * @pkt_seq:	what the peer expects next, as far as we know
 */
void esp_send_reset(struct sock *sk, u32 pkt_seq)
{
	ESP_INC(sock_net(sk), OutResets);
	esp_send_empty(sk, ESP_RST, pkt_seq);
}

static u32 put_range(__be16 *p, u32 ack_seq, u32 from, u32 to)
{
	p[0] = htons(from - ack_seq);
	p[1] = htons(to - from);
	return 1;
}

/**
 * esp_send_rrq() - name the packets that are missing (rule 19)
 * @sk:		socket; its owner calls
 * @end:	behind the last packet that should be here
 */
void esp_send_rrq(struct sock *sk, u32 end)
{
	struct esp_opt *esp = esp_sk(sk);
	__be16 r[2 * ESP_RRQ_RANGES];
	u32 next = esp->recv_seq;
	struct sk_buff *skb;
	struct rb_node *n;
	u32 count = 0;

	if (esp_after(end, esp->recv_seq + ESP_SEQ_WINDOW))
		end = esp->recv_seq + ESP_SEQ_WINDOW;
	for (n = rb_first(&esp->ooo); n && count < ESP_RRQ_RANGES; n = rb_next(n)) {
		u32 seq = ESP_RX(rb_to_skb(n))->f.pkt_seq;

		if (!esp_before(seq, end))
			break;
		if (seq != next)
			count += put_range(r + 2 * count, esp->recv_seq, next, seq);
		next = esp_rx_end(rb_to_skb(n));
	}
	if (count < ESP_RRQ_RANGES && esp_before(next, end))
		count += put_range(r + 2 * count, esp->recv_seq, next, end);
	if (!count)
		return;
	skb = esp_skb_alloc_sk(sk, ESP_ACK | ESP_RRQ, 4 * count,
			       esp->snd.send_next);
	if (!skb)
		return;
	skb_put_data(skb, r, 4 * count);
	ack_left(esp, 0);
	esp->stats.rrq_tx++;
	ESP_INC(sock_net(sk), OutRRQ);
	trace_esp_rrq_out(sk, esp->recv_seq + ntohs(r[0]), count);
	esp_finish_frame(esp->dev, skb, skb->len, 0);
	esp_dev_xmit(skb, esp->dev, esp->daddr, esp->saddr);
}
