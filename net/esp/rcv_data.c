// SPDX-License-Identifier: GPL-2.0-only
/*
 * Data that arrives (rules 10, 14, 18-20): memory, order, gaps, and which ACK it
 * asks for.
 *
 *   esp_data_rcv      here already? allowed? room for it?
 *     |    \________ a gap: kept (ooo), RRQ later
 *   consume           sk_receive_queue; TXS, TXF, FIN act
 *     |
 *   ack_consumed      permission, an ACK now, or soon
 */
#include "esp.h"

#define ESP_DUP_ACK_US	100	/* no answers to duplicates more often than this */

/**
 * esp_ack_now() - an ACK that needs no permission leaves at once (rule 10)
 * @sk:	socket; its owner calls
 *
 * Rate-limited: what comes too soon after the last one is delayed, not lost.
 */
void esp_ack_now(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 now = esp_now();

	if (now - esp->last_ack_us >= ESP_DUP_ACK_US) {
		esp_send_ack(sk);
		return;
	}
	WRITE_ONCE(esp->ack_pending, ESP_ACK_WAITS);
	esp_timer_set(esp, ESP_T_ACK, esp->last_ack_us + ESP_DUP_ACK_US);
}

/* By the socket's own hrtimer, @us after the frame that it is for, which esp_ack() has seen. */
static void ack_within(struct esp_opt *esp, u32 us)
{
	WRITE_ONCE(esp->ack_pending, ESP_ACK_WAITS);
	esp_timer_move(esp, ESP_T_ACK, esp->progress_us, us, ESP_SLACK_US);
}

/**
 * esp_ack_soon() - an ACK that may ride on what the user sends next
 * @sk:	socket; its owner calls
 * @us:	so long after the frame that it is for, which esp_ack() has seen, if that is
 *	longer than net.esp.ack_delay_us; 0: after that, or somewhat earlier, with others'
 */
void esp_ack_soon(struct sock *sk, u32 us)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 delay = READ_ONCE(esp->ns->conf.ack_delay_us);

	if (esp->ack_pending)
		return;
	if (us <= delay) {
		esp_ack_wait(esp, esp->progress_us + delay - esp_ack_early(delay));
		return;
	}
	ack_within(esp, us);
}

/*
 * The ACK of the peer's FIN rides on the user's own, which is likely to follow, and needs
 * the hrtimer, too: it need not be set again for that.
 */
static void ack_fin(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 us = READ_ONCE(esp->ns->conf.ack_delay_us);

	if (!us)
		esp_send_ack(sk);
	else if (!esp->ack_pending)
		ack_within(esp, us);
}

/* About when the sender takes it for lost, if its round trips are as ours. */
static u32 before_loss(struct sock *sk)
{
	const struct esp_conf *conf = &esp_sk(sk)->ns->conf;

	return max_t(u32, esp_rtt_smooth(&esp_sk(sk)->rtt),
		     READ_ONCE(conf->rto_min_us));
}

/**
 * esp_packets_to_ack() - after how many packets an ACK is due
 * @sk:	socket
 *
 * Return: the option's value, or the sysctl's
 */
u32 esp_packets_to_ack(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	return esp->user_to_ack ? esp->user_to_ack :
	       READ_ONCE(esp->ns->conf.esp_packets_to_ack);
}

/**
 * esp_ack_each() - after how many packets an ACK is due, for the sender's sake
 * @sk:	socket
 *
 * Return: esp_packets_to_ack(), or less: where the sender stops (ESP_BURST_LENGTH) it doesn't
 * ask for an ACK, unless it has lowered that since the handshake
 */
u32 esp_ack_each(struct sock *sk)
{
	return min_not_zero((u32)esp_sk(sk)->agreed_burst, esp_packets_to_ack(sk));
}

/* How long reordering explains a gap: srtt / 4 (rule 19). */
static u32 reorder_time(struct esp_opt *esp)
{
	return max_t(u32, esp_rtt_smooth(&esp->rtt) / 4, 20);
}

/* After what ends or announces a transmission: grant_now() relies on it. */
static void update_recv_seq(struct esp_opt *esp, u32 seq)
{
	WRITE_ONCE(esp->grant.recv_seq, seq);
	/* pairs with fill_frame() */
	smp_store_release(&esp->recv_seq, seq);
}

/*
 * The peer's FIN has been consumed.
 */
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

/* What a run of packets consumed in order asks for. */
struct consumed {
	bool	bytes;		/* the reader has something to read */
	bool	ask;		/* a TXS: permission is due */
	bool	at_once;	/* TXF, most FINs: an ACK leaves now */
	bool	end;		/* TXF, EOR: of a message */
	u32	packets;	/* how many they were */
};

/*
 * A packet whose bytes lie behind those of @to's last fragment, as in a super-packet
 * that was taken apart on this machine: they become part of it. The reader then
 * copies once for many packets.
 */
static bool extend_fragment(struct sk_buff *to, struct sk_buff *skb, int *delta)
{
	const struct skb_shared_info *from = skb_shinfo(skb);
	int n = skb_shinfo(to)->nr_frags, len = skb->data_len;
	const skb_frag_t *frag = from->frags;
	struct page *page;

	if (!n || from->nr_frags != 1 || len != skb_frag_size(frag) ||
	    to->pp_recycle != skb->pp_recycle || skb_cloned(to) || skb_has_frag_list(to))
		return false;
	page = skb_frag_page(frag);
	if (!page || !skb_can_coalesce(to, n, page, skb_frag_off(frag)))
		return false;
	*delta = skb->truesize - SKB_TRUESIZE(skb_end_offset(skb));
	skb_frag_size_add(&skb_shinfo(to)->frags[n - 1], len);
	to->len += len;
	to->data_len += len;
	to->truesize += *delta;
	return true;
}

/*
 * Append to what waits at the tail: a buffer for each packet would take more
 * memory than the payload, and the reader more time. One record's only, and no
 * more than a part of what may wait: its memory is given back as a whole.
 */
static bool coalesce(struct sock *sk, struct sk_buff *skb)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);
	u32 most = min_t(u32, U16_MAX, (u32)READ_ONCE(sk->sk_rcvbuf) / 8);
	struct esp_frame *f = &ESP_RX(skb)->f, *to;
	u32 front = f->hlen + f->read, len = f->len - f->read;
	bool stolen = false;
	int delta;

	/* packets in front of it, which were here already, may be in pages */
	if (!tail || skb_headlen(skb) < front)
		return false;
	to = &ESP_RX(tail)->f;
	if ((to->flags & ESP_EOR) || to->len + len > most)
		return false;
	if (skb_headlen(skb) != front || !extend_fragment(tail, skb, &delta)) {
		__skb_pull(skb, front);
		if (!skb_try_coalesce(tail, skb, &stolen, &delta)) {
			__skb_push(skb, front);
			return false;
		}
	}
	atomic_add(delta, &sk->sk_rmem_alloc);
	sk_mem_charge(sk, delta);
	to->flags |= f->flags;
	to->len += len;
	to->segs += f->segs;
	if (stolen)
		kfree_skb_partial(skb, true);
	else	/* softirqs are off; many go back at a time */
		napi_consume_skb(skb, 1);
	return true;
}

/*
 * What GRO has chained is a packet each again, so that they are joined as others are. As it
 * is stays what can't be joined, what was ahead, or is chained in another way, and what
 * somebody else looks at: a packet socket has a copy of the first buffer, or, if that had to
 * be written to since, the same list. Returns those behind @skb.
 */
static struct sk_buff *unchain(struct sk_buff *skb)
{
	struct sk_buff *list = skb_shinfo(skb)->frag_list, *iter;
	struct esp_frame *f = &ESP_RX(skb)->f, own;
	u32 len = 0, truesize = 0, n = 0;

	if (!skb_is_gso(skb) || skb_cloned(skb) || skb->sk || f->read)
		return NULL;
	smp_rmb();	/* pskb_expand_head() takes the list's references before it lets go */
	skb_walk_frags(skb, iter) {
		if (!iter->len || (skb_headlen(iter) && !iter->head_frag) ||
		    skb_shared(iter) || skb_has_frag_list(iter) || skb_zcopy(iter) ||
		    iter->sk || iter->destructor)
			return NULL;
		len += iter->len;
		truesize += iter->truesize;
		n++;
	}
	if (n + 1 != f->segs || len >= f->len ||
	    skb->truesize < truesize + SKB_TRUESIZE(skb_end_offset(skb)) + skb->data_len - len)
		return NULL;
	f->segs = 1;
	own = *f;
	own.hlen = 0;
	f->flags &= ~(ESP_TXF | ESP_EOR);	/* the last one's */
	skb_walk_frags(skb, iter) {
		ESP_RX(iter)->f = own;
		ESP_RX(iter)->f.len = iter->len;
		if (iter->next)
			ESP_RX(iter)->f.flags = f->flags;
	}
	skb_shinfo(skb)->frag_list = NULL;
	skb->len -= len;
	skb->data_len -= len;
	skb->truesize -= truesize;
	f->len -= len;
	return list;
}

/* Behind what waits to be read. */
static void put(struct sock *sk, struct sk_buff *skb)
{
	struct sk_buff *next = skb_has_frag_list(skb) ? unchain(skb) : NULL;

	for (;;) {
		if (!coalesce(sk, skb)) {
			skb->dev = NULL;
			if (!skb->sk)	/* one that was ahead has been charged */
				esp_set_owner_r(skb, sk);
			__skb_queue_tail(&sk->sk_receive_queue, skb);
		}
		if (!next)
			break;
		skb = next;
		next = skb->next;
		skb_mark_not_on_list(skb);
	}
}

/* Take packets in order (rule 18: TXS and TXF act here, once). */
static void consume(struct sock *sk, struct sk_buff *skb, struct consumed *c)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	u32 seq = f->pkt_seq, end = esp_rx_end(skb), len = f->len - f->read;
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	u16 segs = f->segs;
	u8 flags = f->flags;

	if (flags & ESP_FIN) {
		consume_skb(skb);
		if (g->recv_announced) {	/* whose end never came */
			esp_ackq_leave(sk, true);
			WRITE_ONCE(esp->expiries, 0);
			c->at_once = true;
		}
		update_recv_seq(esp, end);
		fin_rcv(sk);
		c->at_once |= sk->sk_state != TCP_CLOSE_WAIT;
		return;
	}
	if (!(flags & ESP_TXF) && !g->recv_announced) {
		/* without TXS: given up after too many expiries, and goes on */
		esp_announced(sk, end, seq +
			      (flags & ESP_TXS ? esp->advice_told : 1));
		c->ask = true;
	}
	if ((flags & ESP_TXF) && g->recv_announced) {
		esp_ackq_leave(sk, true);
		WRITE_ONCE(esp->expiries, 0);
		esp_peer_advise(sk);
		c->at_once = true;
		c->ask = false;
	}
	/* charged before others may give permission for what is behind it */
	put(sk, skb);
	update_recv_seq(esp, end);
	if (c->ask)
		esp_start_rrq_timer(esp);
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

/* Packets kept out of order whose turn has come. */
static void consume_ooo(struct sock *sk, struct consumed *c)
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
		WRITE_ONCE(esp->grant.here,
			   esp->grant.here - ESP_RX(skb)->f.segs);
		/* its sender has waited for what was missing */
		if (ESP_RX(skb)->f.flags & ESP_FIN)
			c->at_once = true;
		if (esp->fin_rcvd) {
			ESP_INC(sock_net(sk), InAfterFin);
			update_recv_seq(esp, esp_rx_end(skb));
			sk_skb_reason_drop(sk, skb, SKB_DROP_REASON_TCP_CLOSE);
			continue;
		}
		consume(sk, skb, c);
	}
}

/* Where packets that are ahead belong; NULL: some of them are here already. */
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

/* Keep what is ahead; false: it is here already. */
static bool keep_ooo(struct esp_opt *esp, struct sk_buff *skb)
{
	u32 seq = ESP_RX(skb)->f.pkt_seq, end = esp_rx_end(skb);
	struct rb_node *parent, **p = ooo_place(esp, seq, end, &parent);

	if (!p)
		return false;
	esp_set_owner_r(skb, &esp->sk);
	rb_link_node(&skb->rbnode, parent, p);
	rb_insert_color(&skb->rbnode, &esp->ooo);
	WRITE_ONCE(esp->grant.here, esp->grant.here + ESP_RX(skb)->f.segs);
	if (esp_after(end, esp->ooo_high))
		esp->ooo_high = end;
	return true;
}

/**
 * esp_gap_seen() - something is missing: ask, unless it comes soon (rule 19)
 * @sk:		socket; its owner calls
 * @end:	behind the last packet that should be here
 */
void esp_gap_seen(struct sock *sk, u32 end)
{
	struct esp_opt *esp = esp_sk(sk);

	if (esp_after(end, esp->ooo_high))
		esp->ooo_high = end;
	if (esp->deadline[ESP_T_REORDER])
		return;
	esp->rrqs = 0;
	esp->gap_seq = esp->recv_seq;
	esp_timer_set(esp, ESP_T_REORDER, esp_now() + reorder_time(esp));
}

/**
 * esp_gap_timeout() - a gap lasts longer than reordering explains: RRQ
 * @sk:	socket; its lock is held
 *
 * Repeated with backoff while nothing arrives at the gap's start.
 */
void esp_gap_timeout(struct sock *sk)
{
	const struct esp_conf *conf = &esp_sk(sk)->ns->conf;
	struct esp_opt *esp = esp_sk(sk);
	u32 hi = 1000 * READ_ONCE(conf->rto_max_ms);
	u32 wait;

	if (!esp_after(esp->ooo_high, esp->recv_seq))
		return;
	if (esp->gap_seq != esp->recv_seq) {
		/* it has moved: a new gap, with a delay of its own */
		esp->gap_seq = esp->recv_seq;
		esp->rrqs = 0;
	}
	if (!esp->rrqs && esp->port) {
		struct esp_ackq *q = &esp->port->ackq;

		spin_lock_bh(&q->lock);
		esp_qctl_loss(&q->ctl, &q->policy, esp_rtt_smooth(&esp->rtt),
			      esp_now());
		spin_unlock_bh(&q->lock);
	}
	esp_send_rrq(sk, esp->ooo_high);
	if (++esp->rrqs > READ_ONCE(conf->retries)) {
		esp->rrqs = 0;	/* nobody there; what comes later starts anew */
		return;
	}
	wait = esp_rtt_timeout(&esp->rtt, 0, READ_ONCE(conf->rrq_min_us), hi);
	esp_timer_set(esp, ESP_T_REORDER, esp_now() +
		      esp_rtt_backoff(wait, esp->rrqs - 1, hi));
}

/*
 * Was the sender allowed to send this? By a grant, or by the advice for its
 * first burst; of the latter no more than fits, for in number it is without end.
 */
static bool was_allowed(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 last = f->pkt_seq + f->segs - 1;

	if (esp->grant.recv_announced &&
	    esp_before(last, READ_ONCE(esp->grant.edge)))
		return true;
	/* with nothing to read, nobody can make room before it comes */
	if (last == esp->recv_seq && skb_queue_empty(&sk->sk_receive_queue))
		return true;
	return esp_before(last, esp->recv_seq + esp->advice_told) &&
	       atomic_read(&sk->sk_rmem_alloc) <
	       sk->sk_rcvbuf + (int)(ESP_ADVICE_MAX * esp->grant.rcv_est);
}

/*
 * Memory for a data packet: allowed ones always find some (rule 20). It is
 * charged where the packet is put. Returns 0, or why there is none.
 */
static enum skb_drop_reason no_memory_for(struct sock *sk, struct sk_buff *skb)
{
	u32 size = skb_shinfo(skb)->gso_size, segs = ESP_RX(skb)->f.segs;
	struct esp_opt *esp = esp_sk(sk);
	enum skb_drop_reason reason = SKB_NOT_DROPPED_YET;
	u32 each = skb->truesize;

	if (!esp_mem_schedule(sk, skb, skb->truesize))
		reason = SKB_DROP_REASON_PROTO_MEM;
	else if (atomic_read(&sk->sk_rmem_alloc) > sk->sk_rcvbuf)
		reason = SKB_DROP_REASON_SOCKET_RCVBUFF;
	if (reason && !was_allowed(sk, &ESP_RX(skb)->f))
		return reason;
	if (size) {	/* those that were here already, too */
		segs += ESP_RX(skb)->f.read / size;
		each = DIV_ROUND_UP(each, segs);
	}
	/* allowed but beyond the limit: in debt, which the next ones pay */
	if (each > esp->grant.rcv_est)
		WRITE_ONCE(esp->grant.rcv_est, each);
	return SKB_NOT_DROPPED_YET;
}

/* Of what the sender was permitted, so much may still come. */
static u32 still_permitted(struct esp_opt *esp)
{
	u32 left = READ_ONCE(esp->grant.edge) - esp->recv_seq;

	return left - min(left, esp->grant.here);
}

/**
 * esp_permission_due() - is it time for more permission?
 * @esp:	socket with an announced transmission; its owner calls
 *
 * A gap is no reason to let the sender run dry: what came behind it doesn't
 * count as still to come.
 *
 * Return: true if so
 */
bool esp_permission_due(struct esp_opt *esp)
{
	struct esp_ackq *q = &esp->port->ackq;
	u32 left = still_permitted(esp);

	if (!READ_ONCE(q->policy.adaptive))
		return esp->to_ack >= esp_ack_each(&esp->sk);
	/* nearly always: more than anybody's share */
	if (left > esp_policy_ask_most(&q->ctl))
		return false;
	return left <= esp_policy_ask(&q->policy, &q->ctl,
				      atomic_read(&q->esp_recv_count));
}

/*
 * Is an ACK due after @n packets, and no permission, which would carry it, to be
 * asked for within as many? The latter of a lone sender, which hardly waits for it;
 * if nobody has set @n for this socket; and not if the sender may be no further
 * ahead of its last ACK, or asks for it (esp_ask_for_ack()), by then.
 */
static bool ack_due(struct esp_opt *esp, u32 n)
{
	struct esp_ackq *q = &esp->port->ackq;

	if (esp->to_ack < n || READ_ONCE(esp->grant.queued))
		return false;
	return esp->to_ack >= 2 * n || esp->user_to_ack || esp->agreed_burst ||
	       2 * n > ESP_ADVICE_MAX || !READ_ONCE(q->policy.adaptive) ||
	       atomic_read(&q->esp_recv_count) > 1 ||
	       still_permitted(esp) > esp_policy_ask(&q->policy, &q->ctl, 1) + n;
}

/*
 * A lone sender that has much left asks only with an ACK that is due anyway where its
 * share is more than there is memory for: each packet would ask for the next. And
 * where there is no wire, on which packets that come together may be too many.
 */
static bool asks_later(struct esp_opt *esp, u32 n)
{
	struct esp_ackq *q = &esp->port->ackq;
	int count = atomic_read(&q->esp_recv_count);

	return esp->to_ack < n && count <= 1 &&
	       still_permitted(esp) > 2 * ESP_LONE_MAX &&
	       (esp_qctl_no_wire(&q->ctl, count) ||
		esp_grant_room(esp) < READ_ONCE(q->ctl.q));
}

/*
 * After how many packets is an ACK due? A super-packet may hold more than
 * packets_to_ack; where there is no wire, and much is still permitted, one ACK is
 * enough for some of them. The sender asks if it can't wait: esp_ask_for_ack().
 */
static u32 ack_after(struct esp_opt *esp, u32 packets)
{
	struct esp_ackq *q = &esp->port->ackq;
	u32 n = esp_ack_each(&esp->sk);

	if (packets <= n || esp->user_to_ack || esp->agreed_burst ||
	    !esp_qctl_no_wire(&q->ctl, atomic_read(&q->esp_recv_count)))
		return n;
	packets = min_t(u32, ESP_ACK_RUNS * packets, ESP_ACK_MOST);
	return max(n, min(packets, still_permitted(esp) / 2));
}

/* Decide which ACK the packets just consumed ask for (rules 10, 14). */
static void ack_consumed(struct sock *sk, struct consumed *c)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	u32 n = ack_after(esp, c->packets);
	u32 told = READ_ONCE(esp->told_seq);

	if (sk->sk_state == TCP_CLOSE)
		return;
	/* one of 2^31 packets ago is behind both */
	if (esp_after(told, esp->ack_seq) && !esp_after(told, esp->recv_seq)) {
		esp->ack_seq = told;
		esp->to_ack = esp->recv_seq - told;
	}
	if (g->recv_announced) {
		u32 left = READ_ONCE(g->edge) - esp->recv_seq;

		/* a run's permission is due when its first packet leaves */
		if ((s32)left <= 0 && c->packets > 1)
			esp_ackq_dry(&esp->port->ackq);
		if (c->ask || (s32)left <= 0)
			esp_enqueue_ack(sk, true, c->packets);
		else if (esp_permission_due(esp) && !asks_later(esp, n))
			esp_enqueue_ack(sk, false, c->packets);
		else if (ack_due(esp, n))
			esp_send_ack(sk);
		if (esp->ack_seq != esp->recv_seq)
			esp_ack_soon(sk, before_loss(sk));
		if (c->at_once && esp->ack_seq != esp->recv_seq)
			esp_ack_now(sk);
		return;
	}
	if (c->at_once)
		esp_send_ack(sk);
	else if (esp->to_ack >= n)
		esp_ack_now(sk);
	else if (sk->sk_state == TCP_CLOSE_WAIT)
		ack_fin(sk);
	else if (c->bytes)
		esp_ack_soon(sk, 0);
}

/*
 * Once for what there was nothing to read before, and at the end of a message:
 * whoever has been told need not be told again with each packet. @told: there
 * was something.
 */
static void wake_reader(struct sock *sk, bool told)
{
	struct esp_opt *esp = esp_sk(sk);

	if (esp->readers ||
	    (!told && esp_readable(sk, READ_ONCE(sk->sk_rcvlowat))))
		sk->sk_data_ready(sk);
}

/* Data for a socket that nobody reads any more: tell the sender. */
static bool nobody_reads(struct sock *sk, struct esp_frame *f)
{
	if (!f->len || !sock_flag(sk, SOCK_DEAD))
		return false;
	ESP_INC(sock_net(sk), AbortOnData);
	esp_reset_and_linger(sk);
	return true;
}

/*
 * Granted packets have come. While others are on their way, each gives them
 * the time of the RRQ timer anew: the burst's time on the wire. But a first
 * burst must be here when all that were to come are, if others wait for it.
 * After an expiry the time was backed off: the first one ends that.
 * Returns true if the caller is to pump.
 */
static bool tokens_arrived(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);
	bool pump = esp_ackq_arrived(&esp->port->ackq, &esp->grant, f->pkt_seq,
				     f->segs);
	bool anew = esp->expiries;

	WRITE_ONCE(esp->expiries, 0);
	if ((READ_ONCE(esp->grant.recv_announced) || atomic_read(&esp->grant.open)) &&
	    (READ_ONCE(esp->grant.begun) || READ_ONCE(esp->port->npeers) == 1) &&
	    (anew || READ_ONCE(esp->deadline[ESP_T_RRQ]) < esp->progress_us +
	     READ_ONCE(esp->rrq_wait) - READ_ONCE(esp->rrq_wait) / 8))
		esp_start_rrq_timer(esp);
	return pump;
}

static void duplicate(struct sock *sk, u32 n)
{
	esp_sk(sk)->stats.rx_dup += n;
	ESP_ADD(sock_net(sk), InDuplicate, n);
	esp_ack_now(sk);
}

/* The first @n packets of a super-packet are here already. */
static void trim_front(struct sk_buff *skb, u32 n)
{
	struct esp_frame *f = &ESP_RX(skb)->f;

	f->pkt_seq += n;
	f->segs -= n;
	f->read += n * skb_shinfo(skb)->gso_size;
	f->flags &= ~ESP_TXS;
}

/*
 * @n bytes of a super-packet, in memory of their own: for one packet that is
 * kept, and charged, the others are not to stay.
 */
static struct sk_buff *copy_part(struct sk_buff *skb, u32 at, u32 n)
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

/* A super-packet can't be taken as a whole: one after the other, then. */
static void one_by_one(struct sock *sk, struct sk_buff *skb)
{
	enum skb_drop_reason reason = SKB_CONSUMED;
	struct esp_frame all = ESP_RX(skb)->f;
	u32 i, size = skb_shinfo(skb)->gso_size;
	struct esp_opt *esp = esp_sk(sk);

	for (i = 0; i < all.segs; i++) {
		u32 at = all.read + i * size, n = min(all.len - at, size);
		struct sk_buff *one = copy_part(skb, all.hlen + at, n);
		struct esp_frame *f;

		if (!one) {	/* the rest is as good as lost */
			ESP_ADD(sock_net(sk), InMemDrop, all.segs - i);
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
		if (sk->sk_state == TCP_CLOSE || esp->reset)
			break;
	}
	sk_skb_reason_drop(sk, skb, reason);
}

/**
 * esp_data_rcv() - packets with a number: data, or one FIN
 * @sk:		socket of a connection; its lock is held
 * @skb:	frame, f.segs set; consumed
 */
void esp_data_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct esp_opt *esp = esp_sk(sk);
	enum skb_drop_reason reason;
	struct net *net = sock_net(sk);
	struct consumed c = {};
	struct rb_node *parent;
	bool pump, told;
	u32 seq;

	if (esp_before(f->pkt_seq, esp->recv_seq)) {
		u32 n = esp->recv_seq - f->pkt_seq;

		duplicate(sk, min_t(u32, n, f->segs));
		reason = SKB_DROP_REASON_TCP_OLD_DATA;
		if (n >= f->segs)
			goto drop;
		trim_front(skb, n);
	}
	seq = f->pkt_seq;
	if (seq + f->segs - 1 - esp->recv_seq >= ESP_SEQ_WINDOW) {
		ESP_INC(net, InBeyondWindow);
		reason = SKB_DROP_REASON_TCP_OVERWINDOW;
		goto drop;
	}
	if (esp->fin_rcvd) {
		ESP_INC(net, InAfterFin);
		reason = SKB_DROP_REASON_TCP_CLOSE;
		goto drop;
	}
	reason = SKB_DROP_REASON_TCP_ABORT_ON_DATA;
	if (nobody_reads(sk, f))
		goto drop;
	reason = SKB_NOT_DROPPED_YET;
	if (!(f->flags & ESP_FIN) || seq != esp->recv_seq)	/* that one is not kept */
		reason = no_memory_for(sk, skb);
	if (f->segs > 1 && (reason || (esp->grant.here &&
				       !ooo_place(esp, seq, esp_rx_end(skb), &parent)))) {
		one_by_one(sk, skb);
		return;
	}
	if (reason) {
		ESP_INC(net, InMemDrop);
		WRITE_ONCE(esp->grant.rcv_mem_pressure, 1);
		sk->sk_data_ready(sk);
		esp_ack_now(sk);
		goto drop;
	}
	if (seq != esp->recv_seq) {
		if (!keep_ooo(esp, skb)) {
			duplicate(sk, 1);
			reason = SKB_DROP_REASON_TCP_OFOMERGE;
			goto drop;
		}
		esp->stats.rx_ooo += f->segs;
		ESP_ADD(net, InOutOfOrder, f->segs);
		pump = tokens_arrived(sk, f);
		esp_gap_seen(sk, seq);
		if (pump)
			esp_ack_pump(&esp->port->ackq);
		if (esp->grant.recv_announced && !READ_ONCE(esp->grant.queued) &&
		    esp_permission_due(esp))
			esp_enqueue_ack(sk, false, f->segs);
		if (esp->ack_seq != esp->recv_seq)
			esp_ack_now(sk);
		return;
	}
	pump = tokens_arrived(sk, f);
	told = esp->rcv_bytes &&
	       esp_readable(sk, READ_ONCE(sk->sk_rcvlowat));
	consume(sk, skb, &c);
	if (esp->grant.here)
		consume_ooo(sk, &c);
	if ((esp_ackq_consumed(&esp->port->ackq, &esp->grant) || pump) &&
	    !esp_ackq_paced(&esp->port->ackq, esp->progress_us))
		esp_ack_pump(&esp->port->ackq);
	if (!esp_after(esp->ooo_high, esp->recv_seq)) {
		esp->ooo_high = esp->recv_seq;
		esp_timer_clear(esp, ESP_T_REORDER);
	} else if (esp->gap_seq != esp->recv_seq &&
		   esp->deadline[ESP_T_REORDER]) {
		esp->gap_seq = esp->recv_seq;
		esp->rrqs = 0;
		esp_timer_set(esp, ESP_T_REORDER,
			      esp_now() + reorder_time(esp));
	}
	if (c.bytes)
		wake_reader(sk, told && !c.end);
	ack_consumed(sk, &c);
	return;
drop:
	sk_skb_reason_drop(sk, skb, reason);
}
