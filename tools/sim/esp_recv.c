// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiver. Stands for rcv_data.c, grant.c, ack_send.c and esp_send_rrq(). The reader reads
 * at once.
 */
#include <stdlib.h>
#include "esp_sim.h"

static struct esp_sk *owner(struct esp_grant *g)
{
	return container_of(g, struct esp_sk, grant);
}

static struct kept *kept_at(const struct esp_sk *sk, u32 seq)
{
	return &sk->kept[seq & (sk->kept_room - 1)];
}

static bool is_here(const struct esp_sk *sk, u32 seq)
{
	return seq - sk->recv_seq < sk->kept_room && kept_at(sk, seq)->here;
}

/* grant_others_time() */
static u32 others_time(struct esp_sk *sk, u64 now)
{
	struct esp_ackq *q = queue_of(sk);
	int n = atomic_read(&q->outstanding) - atomic_read(&sk->grant.outstanding);
	s64 first = sk->first_until - now;
	s64 known = n > 0 ? esp_budget_wire_time(&sk->host->budget, n) / 1000 : 0;

	return max(first, known);
}

/* grant_expiry_time() */
static u32 expiry_time(struct esp_sk *sk, u64 now)
{
	u32 lo = max_t(u64, RRQ_MIN_US, esp_budget_wire_time(&sk->host->budget, ESP_SPARE) / 1000);
	u32 wait = esp_rtt_timeout(&sk->rtt, others_time(sk, now), lo, RTO_MAX_US);

	return esp_rtt_backoff(wait, sk->expiries, RTO_MAX_US);
}

/* grant_packets_due() */
static bool packets_due(struct esp_sk *sk)
{
	return sk->grant.recv_announced && !sk->grant.queued &&
	       esp_after(sk->grant.edge, sk->recv_seq);
}

/* esp_start_rrq_timer() */
static void start_rrq_timer(struct esp_sk *sk)
{
	u64 now = sim_us();

	if (!atomic_read(&sk->grant.outstanding) && !packets_due(sk))
		return;
	sk->rrq_wait = expiry_time(sk, now);
	timer_set(sk, T_RRQ, now + sk->rrq_wait);
}

/* esp_grant_room(); only packets out of order stay in the buffer */
u32 grant_room_now(const struct esp_sk *sk)
{
	u32 used = sk->grant.ooo_pkts * TRUESIZE;

	return used < RCVBUF ? (RCVBUF - used) / TRUESIZE : 0;
}

/* grant_more_room(); with nothing to read, grant_least_room() does not count */
static u32 more_room(struct esp_sk *sk, u32 recv_seq)
{
	u32 n = grant_room_now(sk) + sk->grant.ooo_pkts, edge = sk->grant.edge;

	if (sk->grant.recv_announced && esp_after(edge, recv_seq))
		n -= min(n, edge - recv_seq);
	return n;
}

/* grant_room() */
static u32 grant_room(struct esp_grant *g, u32 recv_seq)
{
	u32 edge = g->edge, n = more_room(owner(g), recv_seq);

	if (esp_before(edge, recv_seq))
		edge = recv_seq;
	return min_t(u32, edge - recv_seq + n, SEQ_WINDOW) + recv_seq;
}

/* grant_send(), esp_ack_send_other() */
static void grant_send(struct esp_grant *g)
{
	struct esp_sk *sk = owner(g);

	if (sk->state == SK_CLOSED)
		return;
	sk->told_seq = sk->recv_seq;
	packet_send(frame(sk, 0, sk->snd.send_next, 0));
	start_rrq_timer(sk);
}

/* grant_get(); no reference is needed, because a socket is dequeued before it is freed */
static void grant_hold(struct esp_grant *g)
{
	(void)g;
}

/* link_pump_later() */
static void pump_later(struct esp_ackq *q, u32 wait)
{
	struct host *h = container_of(q, struct host, ackq);

	if (h->pace_at && h->pace_at <= sim_now + wait)
		return;
	h->pace_at = sim_now + wait;
	event_at(h->pace_at, EVENT_PACE, h);
}

/* esp_pace_timeout() */
void esp_pace(void *arg)
{
	struct host *h = arg;

	if (h->pace_at != sim_now)
		return;		/* an earlier call was asked for later on */
	h->pace_at = 0;
	esp_ackq_resume(&h->ackq);
}

static u64 now_ns(void)
{
	return sim_now;
}

const struct esp_ackq_ops ackq_ops = {
	.room	= grant_room,
	.send	= grant_send,
	.get	= grant_hold,
	.later	= pump_later,
	.now	= now_ns,
};

/* esp_announced(); @burst: packets of the first burst that come after @recv_seq */
static void announced(struct esp_sk *sk, u32 recv_seq, u32 burst)
{
	u32 left = esp_after(sk->grant.end, recv_seq) ? sk->grant.end - recv_seq : 0;

	sk->first_until = sim_us();
	if (sk->host->npeers > 1)
		sk->first_until += esp_budget_wire_time(&sk->host->budget, ESP_PORT_FRAMES) / 1000;
	esp_ackq_announced(queue_of(sk), &sk->grant, recv_seq, recv_seq + min(burst, left));
}

/* esp_grant_due() */
static bool permission_due(struct esp_sk *sk)
{
	return by_budget(sk) ? esp_ackq_wants(&sk->grant) : sk->to_ack >= PACKETS_TO_ACK;
}

/* esp_enqueue_ack() */
static void enqueue_ack(struct esp_sk *sk, bool answer)
{
	struct esp_grant *g = &sk->grant;
	struct esp_ackq *q = queue_of(sk);

	if (g->queued) {
		sk->to_ack = 0;
		if (answer)
			send_ack(sk);
		return;
	}
	if (!answer && !more_room(sk, sk->recv_seq)) {
		if (sk->to_ack >= PACKETS_TO_ACK)
			send_ack(sk);
		return;
	}
	sk->to_ack = 0;
	if (esp_ackq_fast(q, g)) {
		start_rrq_timer(sk);
		send_ack(sk);
		return;
	}
	esp_ackq_park(q, g);
	state.queue_most = max(state.queue_most, q->qlen);
	esp_ack_pump(q);
	if (answer && g->queued)
		send_ack(sk);
}

/* esp_ackq_leave() */
void ackq_leave(struct esp_sk *sk)
{
	struct esp_ackq *q = queue_of(sk);

	esp_ackq_remove(q, &sk->grant);
	esp_tokens_void(q, &sk->grant);
	esp_ackq_ended(q, &sk->grant);
	timer_clear(sk, T_RRQ);
	esp_ack_pump(q);
}

/* esp_send_rrq() */
static void send_rrq(struct esp_sk *sk, u32 end)
{
	u32 seq = sk->recv_seq, from;
	struct packet *p;
	int n = 0;

	if (esp_after(end, sk->recv_seq + SEQ_WINDOW))
		end = sk->recv_seq + SEQ_WINDOW;
	if (!esp_before(seq, end))
		return;
	p = frame(sk, 0, sk->snd.send_next, PKT_RRQ);
	while (n < 3 && esp_before(seq, end)) {
		for (from = seq; esp_before(seq, end) && !is_here(sk, seq); seq++)
			;
		if (seq != from) {
			p->r[n].offset = from - sk->recv_seq;
			p->r[n++].count = seq - from;
		}
		while (esp_before(seq, end) && is_here(sk, seq))
			seq++;
	}
	p->ranges = n;
	ack_left(sk);
	state.rrqs++;
	packet_send(p);
}

/* esp_expiry() */
void expiry(struct esp_sk *sk)
{
	struct esp_ackq *q = queue_of(sk);
	struct esp_grant *g = &sk->grant;

	if (!esp_tokens_void(q, g) && !packets_due(sk))
		return;
	state.expiries++;
	if (++sk->expiries > EXPIRIES) {
		sk->expiries = 0;
		ackq_leave(sk);
		return;
	}
	if (g->recv_announced && esp_after(g->edge, sk->recv_seq)) {
		send_rrq(sk, g->edge);
		esp_ackq_expired(q, g, sk->expiries > 1);
	}
	esp_ack_pump(q);
}

/* esp_ack_now() */
void ack_now(struct esp_sk *sk)
{
	if (sim_us() - sk->last_ack_us >= DUP_ACK_US) {
		send_ack(sk);
		return;
	}
	sk->ack_pending = 1;
	timer_set(sk, T_ACK, sk->last_ack_us + DUP_ACK_US);
}

/* esp_ack_soon() */
void ack_soon(struct esp_sk *sk, u32 us)
{
	if (sk->ack_pending)
		return;
	sk->ack_pending = 1;
	timer_set(sk, T_ACK, sk->progress_us + max(us, ACK_DELAY_US));
}

/* gap_reorder_time() */
static u32 reorder_time(struct esp_sk *sk)
{
	return max_t(u32, esp_rtt_smooth(&sk->rtt) / 4, 20);
}

/* esp_gap_seen() */
static void gap_seen(struct esp_sk *sk, u32 end)
{
	if (esp_after(end, sk->ooo_high))
		sk->ooo_high = end;
	if (sk->deadline[T_REORDER])
		return;
	sk->rrqs = 0;
	sk->gap_seq = sk->recv_seq;
	timer_set(sk, T_REORDER, sim_us() + reorder_time(sk));
}

/* esp_gap_timeout() */
void gap_timeout(struct esp_sk *sk)
{
	u32 wait;

	if (!esp_after(sk->ooo_high, sk->recv_seq))
		return;
	if (sk->gap_seq != sk->recv_seq) {
		sk->gap_seq = sk->recv_seq;
		sk->rrqs = 0;
	}
	if (!sk->rrqs && by_budget(sk))
		esp_ackq_lost(queue_of(sk), &sk->grant);
	send_rrq(sk, sk->ooo_high);
	if (++sk->rrqs > RETRIES) {
		sk->rrqs = 0;
		return;
	}
	wait = esp_rtt_timeout(&sk->rtt, 0, RRQ_MIN_US, RTO_MAX_US);
	timer_set(sk, T_REORDER, sim_us() + esp_rtt_backoff(wait, sk->rrqs - 1, RTO_MAX_US));
}

/* struct esp_consumed as bits: the ACK that consumed packets ask for. */
#define ASK_PERMISSION	1	/* ask: a grant is due */
#define ASK_AT_ONCE	2	/* at_once: an ACK leaves now */

/* data_consume(), for a packet in order */
static u32 consume(struct esp_sk *sk, u8 flags, u32 len, u32 ask)
{
	u32 seq = sk->recv_seq, end = seq + 1;

	if (!(flags & PKT_TXF) && !sk->grant.recv_announced) {
		announced(sk, end, flags & PKT_TXS && sk->first_burst ? sk->first_burst - 1 : 0);
		ask |= ASK_PERMISSION;
	}
	if ((flags & PKT_TXF) && sk->grant.recv_announced) {
		ackq_leave(sk);
		sk->expiries = 0;
		peer_advise(sk);
		ask = ASK_AT_ONCE;
	}
	sk->grant.recv_seq = end;
	sk->recv_seq = end;
	if (ask & ASK_PERMISSION)
		start_rrq_timer(sk);
	sk->to_ack++;
	conn_received(sk->conn, len);
	return ask;
}

static void kept_grow(struct esp_sk *sk, u32 need)
{
	u32 room = max(sk->kept_room, 16u), s;
	struct kept *old = sk->kept;

	if (need <= sk->kept_room)
		return;
	while (room < need)
		room *= 2;
	sk->kept = sim_alloc(room * sizeof(*sk->kept));
	for (s = sk->recv_seq; s != sk->recv_seq + sk->kept_room; s++)
		sk->kept[s & (room - 1)] = old[s & (sk->kept_room - 1)];
	sk->kept_room = room;
	free(old);
}

/* ooo_keep(); false: the packet is here already */
static bool keep_ooo(struct esp_sk *sk, struct packet *p)
{
	struct kept *k;

	kept_grow(sk, p->seq - sk->recv_seq + 1);
	k = kept_at(sk, p->seq);
	if (k->here)
		return false;
	k->here = 1;
	k->len = p->len;
	k->flags = p->flags;
	if (!sk->grant.ooo_pkts++)
		esp_ackq_gap(queue_of(sk));
	if (esp_after(p->seq + 1, sk->ooo_high))
		sk->ooo_high = p->seq + 1;
	return true;
}

/* ooo_consume() */
static u32 consume_ooo(struct esp_sk *sk, u32 ask)
{
	while (sk->grant.ooo_pkts && is_here(sk, sk->recv_seq)) {
		struct kept *k = kept_at(sk, sk->recv_seq);

		k->here = 0;
		sk->grant.ooo_pkts--;
		ask = consume(sk, k->flags, k->len, ask);
	}
	return ask;
}

/* ack_due() */
static bool ack_due(struct esp_sk *sk)
{
	return sk->to_ack >= PACKETS_TO_ACK && !sk->grant.queued;
}

/* esp_ack_consumed() */
static void ack_consumed(struct esp_sk *sk, u32 ask)
{
	struct esp_grant *g = &sk->grant;

	if (esp_after(sk->told_seq, sk->ack_seq) && !esp_after(sk->told_seq, sk->recv_seq)) {
		sk->ack_seq = sk->told_seq;
		sk->to_ack = sk->recv_seq - sk->told_seq;
	}
	if (g->recv_announced) {
		s32 ahead = g->edge - sk->recv_seq;

		if ((ask & ASK_PERMISSION) || (ahead <= 0 && !by_budget(sk)))
			enqueue_ack(sk, true);
		else if (permission_due(sk))
			enqueue_ack(sk, false);
		else if (ack_due(sk))
			send_ack(sk);
		if (sk->ack_seq != sk->recv_seq)
			ack_soon(sk, 0);
		if ((ask & ASK_AT_ONCE) && sk->ack_seq != sk->recv_seq)
			ack_now(sk);
		return;
	}
	if (ask & ASK_AT_ONCE)
		send_ack(sk);
	else if (sk->to_ack >= PACKETS_TO_ACK)
		ack_now(sk);
	else
		ack_soon(sk, 0);
}

/* esp_grant_arrived() */
static bool tokens_arrived(struct esp_sk *sk, u32 seq)
{
	bool pump = esp_tokens_arrived(queue_of(sk), &sk->grant, seq, 1), anew = sk->expiries;

	sk->expiries = 0;
	if ((sk->grant.granted_once || sk->host->npeers == 1) &&
	    (anew || sk->deadline[T_RRQ] < sk->progress_us + sk->rrq_wait - sk->rrq_wait / 8))
		start_rrq_timer(sk);
	return pump;
}

/* data_duplicate() */
static void duplicate(struct esp_sk *sk)
{
	state.duplicate++;
	ack_now(sk);
}

/* The part of esp_data_rcv() for a packet out of order. */
static void ahead_rcv(struct esp_sk *sk, struct packet *p)
{
	bool pump;

	if (!keep_ooo(sk, p)) {
		duplicate(sk);
		return;
	}
	state.ooo++;
	pump = tokens_arrived(sk, p->seq);
	gap_seen(sk, p->seq);
	if (pump)
		esp_ack_pump(queue_of(sk));
	if (sk->grant.recv_announced && !sk->grant.queued && permission_due(sk))
		enqueue_ack(sk, false);
	if (sk->ack_seq != sk->recv_seq)
		ack_now(sk);
}

/* esp_data_rcv() */
void data_rcv(struct esp_sk *sk, struct packet *p)
{
	struct esp_ackq *q = queue_of(sk);
	bool pump;
	u32 ask;

	if (esp_before(p->seq, sk->recv_seq)) {
		duplicate(sk);
		return;
	}
	if (p->seq - sk->recv_seq >= SEQ_WINDOW)
		return;
	if (p->seq != sk->recv_seq) {
		ahead_rcv(sk, p);
		return;
	}
	pump = tokens_arrived(sk, p->seq);
	ask = consume_ooo(sk, consume(sk, p->flags, p->len, 0));
	if (esp_tokens_consumed(q, &sk->grant) || pump)
		esp_ack_pump(q);
	if (!esp_after(sk->ooo_high, sk->recv_seq)) {
		sk->ooo_high = sk->recv_seq;
		timer_clear(sk, T_REORDER);
	} else if (sk->gap_seq != sk->recv_seq && sk->deadline[T_REORDER]) {
		sk->gap_seq = sk->recv_seq;
		sk->rrqs = 0;
		timer_set(sk, T_REORDER, sim_us() + reorder_time(sk));
	}
	ack_consumed(sk, ask);
}

/* esp_ack_answer() */
static void answer_probe(struct esp_sk *sk)
{
	if (sk->to_ack)
		send_ack(sk);
	else
		ack_now(sk);
}

/* esp_empty_rcv() */
void empty_rcv(struct esp_sk *sk, struct packet *p)
{
	if (esp_after(p->seq, sk->recv_seq) && p->seq - sk->recv_seq < SEQ_WINDOW) {
		gap_seen(sk, p->seq);
		if (p->flags & PKT_TXS)
			ack_now(sk);
		return;
	}
	if (!(p->flags & PKT_TXS))
		return;
	if (p->seq != sk->recv_seq) {
		answer_probe(sk);
		return;
	}
	if (!sk->grant.recv_announced)
		announced(sk, p->seq, 0);
	if (esp_after(sk->grant.edge, sk->recv_seq))
		answer_probe(sk);
	else
		enqueue_ack(sk, true);
}
