// SPDX-License-Identifier: GPL-2.0-only
/*
 * Received data (rules 10, 14, 18-20): memory, order, gaps, and the ACK that the data
 * asks for.
 *
 *   esp_data_rcv      duplicate? granted? memory for it?
 *     |    \________ a gap: kept (ooo), RRQ later
 *   data_consume      sk_receive_queue; TXS, TXF, FIN act
 *     |
 *   esp_ack_consumed  grant, an ACK now, or soon
 */
#include "esp.h"
#include "ack_send.h"
#include "close.h"
#include "first_burst.h"
#include "grant.h"
#include "link.h"
#include "memory.h"
#include "output.h"
#include "rcv_coalesce.h"
#include "rcv_data.h"
#include "rcv_part.h"
#include "recvmsg.h"
#include "sock.h"
#include "timer.h"

/* Longest time for which reordering explains a gap: srtt / 4, microseconds (rule 19). */
static u32 gap_reorder_time(struct esp_opt *esp)
{
	return max_t(u32, esp_rtt_smooth(&esp->rtt) / 4, 20);
}

/* Advance recv_seq, after a transmission was begun or ended: frame_grant() relies on it. */
static void data_update_recv_seq(struct esp_opt *esp, u32 seq)
{
	WRITE_ONCE(esp->grant.recv_seq, seq);
	/* pairs with frame_fill() */
	smp_store_release(&esp->recv_seq, seq);
}

/* Change the state after the peer's FIN has been consumed. */
static void fin_rcv(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	esp->fin_rcvd = 1;
	esp_peer_leave(sk);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | RCV_SHUTDOWN);
	switch (sk->sk_state) {
	case TCP_ESTABLISHED:
		esp_set_state(sk, TCP_CLOSE_WAIT);
		break;
	case TCP_FIN_WAIT1:
		esp_set_state(sk, TCP_CLOSING);
		break;
	case TCP_FIN_WAIT2:
		esp_time_wait(sk);
		break;
	}
	sk->sk_state_change(sk);
	sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_IN);
}

/* Consume a FIN in order; @end: number after it. Not inline: it is rare. */
static noinline void fin_consume(struct sock *sk, u32 end, struct esp_consumed *c)
{
	struct esp_opt *esp = esp_sk(sk);

	if (esp->grant.recv_announced) {	/* its TXF never came */
		esp_ackq_leave(sk, true);
		WRITE_ONCE(esp->expiries, 0);
		c->at_once = true;
	}
	data_update_recv_seq(esp, end);
	fin_rcv(sk);
	c->at_once |= sk->sk_state != TCP_CLOSE_WAIT;
}

/* Consume packets in order (rule 18: TXS and TXF act here, once). */
static void data_consume(struct sock *sk, struct sk_buff *skb, struct esp_consumed *c)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	u32 end = esp_rx_end(skb), len = f->len - f->read;
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	u16 segs = f->segs;
	u8 flags = f->flags;

	if (unlikely(flags & ESP_FIN)) {
		consume_skb(skb);
		fin_consume(sk, end, c);
		return;
	}
	/* an empty packet has announced it, and the user may have written more since */
	if (g->recv_announced && (flags & ESP_TXS)) {
		if (f->opts & ESP_HAS(ESP_OPT_LEFT))
			esp_ackq_left(g, esp_frame_end(f));
		else if (!(flags & ESP_TXF))
			esp_left_far(esp, end);
	}
	if (!(flags & ESP_TXF) && !g->recv_announced) {
		/* without TXS: it was given up after too many expiries, and goes on */
		esp_announced(sk, end, f);
		c->begins = true;
		/* a first burst may be all that there is */
		c->ask = !READ_ONCE(esp->link->ackq.policy.adaptive) || esp_grant_due(esp);
	}
	c->later = f->later && esp->peer_later && esp->replies;
	if ((flags & ESP_TXF) && g->recv_announced) {
		esp_ackq_leave(sk, true);
		WRITE_ONCE(esp->expiries, 0);
		esp_peer_advise(sk);
		c->at_once = true;
		c->begins = false;
		c->ask = false;
	}
	/* an older peer tells no end: it is far away all the time */
	if (!esp->peer_left && g->recv_announced &&
	    (s32)(g->end - end) < U16_MAX / 2)
		esp_left_far(esp, end);
	/* charge it before another context may grant packets after it */
	esp_rcvq_append(sk, skb);
	data_update_recv_seq(esp, end);
	if (c->begins)
		esp_start_rrq_timer(esp);
	esp->data_us = esp->progress_us;	/* esp_ack_rcv() has read the clock */
	esp->stats.rx_packets += segs;
	esp->stats.rx_bytes += len;
	ESP_ADD_BH(esp->ns, InData, segs);
	esp->to_ack += segs;
	c->packets += segs;
	WRITE_ONCE(esp->rcv_records, esp->rcv_records + !!(flags & ESP_EOR));
	c->end |= !!(flags & (ESP_TXF | ESP_EOR));
	WRITE_ONCE(esp->rcv_bytes, esp->rcv_bytes + len);
	c->bytes = true;
}

static struct sk_buff *ooo_first(struct esp_opt *esp)
{
	struct rb_node *n = rb_first(&esp->ooo);

	return n ? rb_to_skb(n) : NULL;
}

/* Consume packets that were kept out of order and are in order now. */
static void ooo_consume(struct sock *sk, struct esp_consumed *c)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb;

	while ((skb = ooo_first(esp)) &&
	       ESP_RX(skb)->f.pkt_seq == esp->recv_seq) {
		rb_erase(&skb->rbnode, &esp->ooo);
		RB_CLEAR_NODE(&skb->rbnode);
		skb->next = NULL;
		skb->prev = NULL;
		skb->dev = NULL;
		WRITE_ONCE(esp->grant.ooo_pkts,
			   esp->grant.ooo_pkts - ESP_RX(skb)->f.segs);
		/* the sender has waited for the missing packets */
		if (ESP_RX(skb)->f.flags & ESP_FIN)
			c->at_once = true;
		if (esp->fin_rcvd) {
			ESP_INC_BH(esp->ns, InAfterFin);
			data_update_recv_seq(esp, esp_rx_end(skb));
			sk_skb_reason_drop(sk, skb, SKB_DROP_REASON_TCP_CLOSE);
			continue;
		}
		data_consume(sk, skb, c);
		c->later = false;	/* one that was retransmitted has no LATER */
	}
}

/* Find the place of packets that are out of order; NULL: some of them are here already. */
static struct rb_node **ooo_place(struct esp_opt *esp, u32 seq, u32 end,
				  struct rb_node **parent)
{
	struct rb_node **p = &esp->ooo.rb_node;

	*parent = NULL;
	while (*p) {
		struct sk_buff *other = rb_to_skb(*p);

		*parent = *p;
		if (!esp_after(end, ESP_RX(other)->f.pkt_seq))
			p = &(*p)->rb_left;
		else if (!esp_before(seq, esp_rx_end(other)))
			p = &(*p)->rb_right;
		else
			return NULL;
	}
	return p;
}

/* Keep packets that are out of order; false: some of them are here already. */
static bool ooo_keep(struct esp_opt *esp, struct sk_buff *skb)
{
	u32 seq = ESP_RX(skb)->f.pkt_seq, end = esp_rx_end(skb);
	struct rb_node *parent, **p = ooo_place(esp, seq, end, &parent);
	u32 n;

	if (!p)
		return false;
	esp_set_owner_r(skb, &esp->sk);
	rb_link_node(&skb->rbnode, parent, p);
	rb_insert_color(&skb->rbnode, &esp->ooo);
	n = esp->grant.ooo_pkts;
	WRITE_ONCE(esp->grant.ooo_pkts, n + ESP_RX(skb)->f.segs);
	if (!n && esp->link)
		esp_ackq_gap(&esp->link->ackq);
	if (esp_after(end, esp->ooo_high))
		esp->ooo_high = end;
	return true;
}

/**
 * esp_gap_seen() - Ask for missing packets, unless they come soon (rule 19)
 * @sk:		socket; its owner calls
 * @end:	number after the last packet that should be here
 */
void esp_gap_seen(struct sock *sk, u32 end)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (esp_after(end, esp->ooo_high))
		esp->ooo_high = end;
	if (esp->deadline[ESP_T_REORDER])
		return;
	esp->rrqs = 0;
	esp->gap_seq = esp->recv_seq;
	esp_timer_set(esp, ESP_T_REORDER, esp_now() + gap_reorder_time(esp));
}

/**
 * esp_gap_timeout() - Send an RRQ for a gap that reordering does not explain
 * @sk:	socket; its lock is held
 *
 * Repeated with backoff while nothing arrives at the gap's start.
 */
void esp_gap_timeout(struct sock *sk)
{
	const struct esp_conf *conf = &esp_sk(sk)->ns->conf;
	struct esp_opt *esp = esp_sk(sk);
	u32 hi = 1000 * READ_ONCE(conf->rrq_max_ms);
	u32 wait;

	sock_owned_by_me(sk);
	if (!esp_after(esp->ooo_high, esp->recv_seq))
		return;
	/* gap_seq is recv_seq: whoever moves that moves the deadline, too */
	if (!esp->rrqs && esp->link)
		esp_ackq_lost(&esp->link->ackq, &esp->grant);
	esp_send_rrq(sk, esp->ooo_high);
	if (++esp->rrqs > READ_ONCE(conf->retries)) {
		esp->rrqs = 0;	/* the peer is gone; a later frame starts anew */
		return;
	}
	wait = esp_rtt_timeout(&esp->rtt, 0, READ_ONCE(conf->rrq_min_us), hi);
	esp_timer_set(esp, ESP_T_REORDER, esp_now() +
		      esp_rtt_backoff(wait, esp->rrqs - 1, hi));
}

/*
 * Was the sender allowed to send this, by a grant or as a first burst? Packets of a first
 * burst count only while the buffer has space, because their bound moves with recv_seq.
 */
static bool data_was_allowed(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 last = f->pkt_seq + f->segs - 1;

	if (esp->grant.recv_announced &&
	    esp_before(last, READ_ONCE(esp->grant.edge)))
		return true;
	/* with nothing to read, the reader can't free space before it comes */
	if (last == esp->recv_seq && skb_queue_empty(&sk->sk_receive_queue))
		return true;
	return esp_before(last, esp->recv_seq + esp->burst_told) &&
	       atomic_read(&sk->sk_rmem_alloc) <
	       sk->sk_rcvbuf + (int)(ESP_ADVICE_MAX * esp->grant.rcv_est);
}

/*
 * Find memory for a data packet: a granted packet always gets some (rule 20). The packet
 * is charged when it is queued. Returns 0, or the reason why there is no memory.
 */
static __always_inline enum skb_drop_reason data_no_memory(struct sock *sk, struct sk_buff *skb)
{
	u32 size = skb_shinfo(skb)->gso_size, segs = ESP_RX(skb)->f.segs;
	struct esp_opt *esp = esp_sk(sk);
	enum skb_drop_reason reason = SKB_NOT_DROPPED_YET;
	u32 each = skb->truesize;

	if (!esp_mem_schedule(sk, skb, skb->truesize))
		reason = SKB_DROP_REASON_PROTO_MEM;
	else if (atomic_read(&sk->sk_rmem_alloc) > sk->sk_rcvbuf)
		reason = SKB_DROP_REASON_SOCKET_RCVBUFF;
	if (reason && !data_was_allowed(sk, &ESP_RX(skb)->f))
		return reason;
	if (size) {	/* and the packets that were here already */
		segs += ESP_RX(skb)->f.read / size;
		each = DIV_ROUND_UP(each, segs);
	}
	/* allowed beyond the limit: the socket is in debt, and later packets pay */
	if (each > esp->grant.rcv_est)
		WRITE_ONCE(esp->grant.rcv_est, each);
	return SKB_NOT_DROPPED_YET;
}

/*
 * Wake the reader if there was nothing to read before, and at the end of a message: a
 * reader that was woken need not be woken again for each packet. @told: there was
 * something to read before, and no message ends.
 */
static void data_wake_reader(struct sock *sk, bool told)
{
	struct esp_opt *esp = esp_sk(sk);

	if (esp->readers ||
	    (!told && esp_readable(sk, READ_ONCE(sk->sk_rcvlowat))))
		sk->sk_data_ready(sk);
}

/* Has data come for a socket that the user has closed? */
static inline bool data_unwanted(struct sock *sk, struct esp_frame *f)
{
	return unlikely(sock_flag(sk, SOCK_DEAD)) && f->len;
}

/* Reset a connection that gets data which nobody will read. */
static void data_abort(struct sock *sk)
{
	ESP_INC_BH(esp_sk(sk)->ns, AbortOnData);
	esp_reset_and_linger(sk);
}

/* There is no memory for data. The sender learns it, and the reader, who may wait for more. */
static void data_refused(struct sock *sk)
{
	ESP_INC_BH(esp_sk(sk)->ns, InMemDrop);
	WRITE_ONCE(esp_sk(sk)->grant.rcv_mem_pressure, 1);
	sk->sk_data_ready(sk);
	esp_ack_now(sk);
}

static void data_duplicate(struct sock *sk, u32 n)
{
	esp_sk(sk)->stats.rx_dup += n;
	ESP_ADD_BH(esp_sk(sk)->ns, InDuplicate, n);
	esp_ack_now(sk);
}

/* Cut off the first @n packets of a GSO packet, which are here already. */
static void data_trim_front(struct sk_buff *skb, u32 n)
{
	struct esp_frame *f = &ESP_RX(skb)->f;

	f->pkt_seq += n;
	f->segs -= n;
	f->read += n * skb_shinfo(skb)->gso_size;
	f->flags &= ~ESP_TXS;
}

/*
 * Copy @n bytes of a GSO packet into memory of their own: a packet that is kept, and
 * charged, must not keep the memory of the other packets.
 */
static struct sk_buff *data_copy_part(struct sk_buff *skb, u32 at, u32 n)
{
	struct sk_buff *part = alloc_skb(n, GFP_ATOMIC);

	if (!part)
		return NULL;
	*ESP_RX(part) = *ESP_RX(skb);
	if (!skb_copy_bits(skb, at, skb_put(part, n), n))
		return part;
	consume_skb(part);
	return NULL;
}

/* Receive each packet of a GSO packet that can't be taken as a whole. */
static void data_one_by_one(struct sock *sk, struct sk_buff *skb)
{
	enum skb_drop_reason reason = SKB_CONSUMED;
	struct esp_frame all = ESP_RX(skb)->f;
	u32 i, size = skb_shinfo(skb)->gso_size;
	struct esp_opt *esp = esp_sk(sk);

	for (i = 0; i < all.segs; i++) {
		u32 at = all.read + i * size, n = min(all.len - at, size);
		struct sk_buff *one = data_copy_part(skb, all.hlen + at, n);
		struct esp_frame *f;

		if (!one) {	/* the remaining packets count as lost */
			ESP_ADD_BH(esp->ns, InMemDrop, all.segs - i);
			reason = SKB_DROP_REASON_NOMEM;
			break;
		}
		f = &ESP_RX(one)->f;
		f->segs = 1;
		f->pkt_seq += i;
		f->hlen = 0;
		f->read = 0;
		f->len = n;
		if (i)
			f->flags &= ~ESP_TXS;
		if (i < all.segs - 1u)
			f->flags &= ~(ESP_TXF | ESP_EOR);
		esp_data_rcv(sk, one);
		if (sk->sk_state == TCP_CLOSE || esp->rst_linger)
			break;
	}
	sk_skb_reason_drop(sk, skb, reason);
}

/*
 * Take a part of a packet (rule 9). The sender retransmits packets in parts from the oldest one
 * on, so only the next packet is put together. Parts of others are dropped, and retransmitted
 * when their turn has come. Consumes @skb. Returns the packet once it is complete, or a frame to be
 * refused as if it were whole.
 */
static struct sk_buff *data_part(struct sock *sk, struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct esp_opt *esp = esp_sk(sk);
	enum skb_drop_reason reason;

	reason = SKB_DROP_REASON_TCP_OFO_QUEUE_PRUNE;
	if (f->segs > 1) {	/* only this host makes such a frame, and ESP doesn't */
		ESP_INC_BH(esp->ns, InPartDrop);
		goto drop;
	}
	if (f->pkt_seq - esp->recv_seq >= ESP_SEQ_WINDOW || esp->fin_rcvd)
		return skb;
	if (f->pkt_seq == esp->recv_seq && !esp->part && !f->part_at) {
		struct sk_buff *whole;

		if (data_unwanted(sk, f)) {
			data_abort(sk);
			reason = SKB_DROP_REASON_TCP_ABORT_ON_DATA;
			goto drop;
		}
		whole = esp_part_begin(skb);
		reason = whole ? data_no_memory(sk, whole) : SKB_DROP_REASON_NOMEM;
		if (reason) {
			consume_skb(whole);
			data_refused(sk);
			goto drop;
		}
		esp_set_owner_r(whole, sk);
		esp->part = whole;
	}
	if (f->pkt_seq == esp->recv_seq && esp->part && esp_part_add(esp->part, skb)) {
		ESP_INC_BH(esp->ns, InParts);
		consume_skb(skb);
		return esp_part_take(sk);
	}
	reason = SKB_DROP_REASON_TCP_OFO_QUEUE_PRUNE;
	ESP_INC_BH(esp->ns, InPartDrop);
	esp_gap_seen(sk, f->pkt_seq + 1);
drop:
	sk_skb_reason_drop(sk, skb, reason);
	return NULL;
}

/* Is a grant due that is not queued? */
static bool grant_lacks(struct esp_opt *esp)
{
	return !READ_ONCE(esp->grant.queued) && esp_grant_due(esp);
}

/**
 * esp_data_rcv() - Receive packets with a number: data, or one FIN
 * @sk:		socket of a connection; its lock is held
 * @skb:	frame, f.segs set; consumed
 */
void esp_data_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct esp_opt *esp = esp_sk(sk);
	enum skb_drop_reason reason;
	struct esp_consumed c = {};
	struct rb_node *parent;
	bool pump, told;
	u32 seq;

	sock_owned_by_me(sk);
	if (unlikely(f->opts & ESP_HAS(ESP_OPT_PART))) {
		skb = data_part(sk, skb);
		if (!skb)
			return;
		f = &ESP_RX(skb)->f;
	}
	if (esp_before(f->pkt_seq, esp->recv_seq)) {
		u32 n = esp->recv_seq - f->pkt_seq;

		data_duplicate(sk, min_t(u32, n, f->segs));
		reason = SKB_DROP_REASON_TCP_OLD_DATA;
		if (n >= f->segs)
			goto drop;
		data_trim_front(skb, n);
	} else if (f->pkt_seq - esp->recv_seq + f->segs - 1 >= ESP_SEQ_WINDOW) {
		ESP_INC_BH(esp->ns, InBeyondWindow);
		reason = SKB_DROP_REASON_TCP_OVERWINDOW;
		goto drop;
	}
	seq = f->pkt_seq;
	if (esp->fin_rcvd) {
		ESP_INC_BH(esp->ns, InAfterFin);
		reason = SKB_DROP_REASON_TCP_CLOSE;
		goto drop;
	}
	if (data_unwanted(sk, f)) {
		data_abort(sk);
		reason = SKB_DROP_REASON_TCP_ABORT_ON_DATA;
		goto drop;
	}
	reason = SKB_NOT_DROPPED_YET;
	if (!(f->flags & ESP_FIN) || seq != esp->recv_seq)	/* a FIN in order is not kept */
		reason = data_no_memory(sk, skb);
	if (f->segs > 1 && (reason || (esp->grant.ooo_pkts &&
				       !ooo_place(esp, seq, esp_rx_end(skb), &parent)))) {
		data_one_by_one(sk, skb);
		return;
	}
	if (reason) {
		data_refused(sk);
		goto drop;
	}
	if (seq != esp->recv_seq) {
		if (!ooo_keep(esp, skb)) {
			data_duplicate(sk, 1);
			reason = SKB_DROP_REASON_TCP_OFOMERGE;
			goto drop;
		}
		esp->stats.rx_ooo += f->segs;
		ESP_ADD_BH(esp->ns, InOutOfOrder, f->segs);
		pump = esp_grant_arrived(sk, f);
		esp_gap_seen(sk, seq);
		if (pump && !esp_ackq_paced(&esp->link->ackq, esp->progress_us))
			esp_ack_pump(&esp->link->ackq);
		if (esp->grant.recv_announced && !READ_ONCE(esp->grant.queued) &&
		    esp_grant_due(esp))
			esp_enqueue_ack(sk, false, f->segs);
		if (esp->ack_seq != esp->recv_seq)
			esp_ack_now(sk);
		return;
	}
	pump = esp_grant_arrived(sk, f);
	told = esp->rcv_bytes &&
	       esp_readable(sk, READ_ONCE(sk->sk_rcvlowat));
	data_consume(sk, skb, &c);
	if (unlikely(esp->part))	/* the packet has come as a whole meanwhile */
		esp_part_forget(sk);
	if (esp->grant.ooo_pkts)
		ooo_consume(sk, &c);
	if ((esp_tokens_consumed(&esp->link->ackq, &esp->grant) || pump) &&
	    !esp_ackq_paced(&esp->link->ackq, esp->progress_us))
		esp_ack_pump(&esp->link->ackq);
	if (!esp_after(esp->ooo_high, esp->recv_seq)) {
		esp->ooo_high = esp->recv_seq;
		esp_timer_clear(esp, ESP_T_REORDER);
	} else if (esp->gap_seq != esp->recv_seq &&
		   esp->deadline[ESP_T_REORDER]) {
		esp->gap_seq = esp->recv_seq;
		esp->rrqs = 0;
		esp_timer_set(esp, ESP_T_REORDER,
			      esp_now() + gap_reorder_time(esp));
	}
	if (c.bytes)
		data_wake_reader(sk, told && !c.end);
	esp_ack_consumed(sk, &c);
	return;
drop:
	sk_skb_reason_drop(sk, skb, reason);
}

/* Receive an empty packet: a probe, or a hint how far the peer has sent. */
void esp_empty_rcv(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 seq = f->pkt_seq;
	/*
	 * The handshake's echo again, because our first reply was lost, or a question of a sender
	 * whose packets don't arrive: they may be too large for this end's device.
	 */
	bool asked = f->opts & ESP_HAS(ESP_OPT_COOKIE);
	u32 end = READ_ONCE(esp->grant.end);
	bool grown = false;

	esp->stats.rx_empty++;
	ESP_INC_BH(esp->ns, InEmpty);
	if ((f->opts & ESP_HAS(ESP_OPT_LEFT)) && !esp->fin_rcvd &&
	    seq - esp->recv_seq < ESP_SEQ_WINDOW) {
		esp_ackq_left(&esp->grant, esp_frame_end(f));
		grown = esp->grant.end != end && esp->grant.recv_announced &&
			READ_ONCE(esp->link->ackq.policy.adaptive) && grant_lacks(esp);
	}
	if (esp_after(seq, esp->recv_seq) &&
	    seq - esp->recv_seq < ESP_SEQ_WINDOW) {
		esp_gap_seen(sk, seq);
		if (f->flags & ESP_TXS)
			esp_ack_now(sk);
		else if (asked)
			esp_ack_asked(sk);
		if (grown)
			esp_enqueue_ack(sk, false, 1);
		return;
	}
	if (!(f->flags & ESP_TXS)) {
		if (asked)
			esp_ack_asked(sk);
		if (grown)
			esp_enqueue_ack(sk, false, 1);
		return;
	}
	if (seq != esp->recv_seq || esp->fin_rcvd) {
		esp_ack_answer(sk);	/* keepalive */
		return;
	}
	if (!esp->grant.recv_announced)
		esp_announced(sk, seq, f);
	else if (!(f->opts & ESP_HAS(ESP_OPT_LEFT)))
		esp_left_far(esp, seq);
	esp_any_room(sk);
	/* esp_any_room() may have queued the grant */
	if (esp_after(READ_ONCE(esp->grant.edge), esp->recv_seq) && !(grown && grant_lacks(esp)))
		esp_ack_answer(sk);	/* the reply was lost: repeat it */
	else
		esp_enqueue_ack(sk, true, 1);
}
