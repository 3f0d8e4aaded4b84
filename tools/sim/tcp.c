// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP's sender. A segment is taken for lost if one that was sent later has arrived (RACK, RFC
 * 8985). There are tail loss probes (RFC 8985), retransmission timeouts of at least 200 ms (RFC
 * 6298), and F-RTO for timeouts that were for nothing (RFC 5682). Timers fire at a jiffy:
 * Debian's kernels have 250 a second, the kernel of selftests/bench/incast.sh's rack 100.
 */
#include <stdlib.h>
#include "tcp_sim.h"

#define RTO_MIN		(200 * NS_PER_MS)
#define RTO_MAX		(120 * NS_PER_S)
#define SYN_RTO		NS_PER_S
#define PROBE_MIN	(2 * NS_PER_MS)
#define DUP_THRESH	3

/* Results of an ACK. */
struct news {
	u32 n;			/* segments that have arrived */
	u32 lost;		/* segments that are taken for lost now */
	bool advanced;		/* una has advanced */
	bool sacked;		/* a SACK block tells of new segments */
	bool again;		/* a segment that arrived in order had been retransmitted */
	bool original;		/* a segment before high that was not retransmitted has arrived */
	bool lost_again;	/* a retransmitted segment is taken for lost again */
	bool timer;		/* the timer is to be set anew */
	u64 rtt;		/* longest round trip of those in order; 0: none is valid */
	u64 sack_rtt;		/* longest round trip of those out of order; 0: none is valid */
};

static struct seg *seg_at(const struct tcp *t, u32 seq)
{
	return &t->seg[seq & (t->room - 1)];
}

/**
 * tcp_jiffy() - return the time between two looks of timers at the clock
 *
 * Return: nanoseconds
 */
u64 tcp_jiffy(void)
{
	return (cfg.rtt ? 10 : 4) * NS_PER_MS;
}

/* Offset of a host's jiffies. In the rack all hosts are in one kernel, and have the same. */
static u64 phase(const struct tcp *t, bool receiver)
{
	u64 host = receiver ? t->conn->dst : t->conn->src;

	return (cfg.rtt ? cfg.seed : host) * 0x9e3779b97f4a7c15ull % tcp_jiffy();
}

/**
 * tcp_jiffies() - return a host's number of jiffies so far
 * @t:		connection
 * @receiver:	true: the receiver's host; false: the sender's
 *
 * Return: the number
 */
u64 tcp_jiffies(const struct tcp *t, bool receiver)
{
	return (sim_now + phase(t, receiver)) / tcp_jiffy();
}

/**
 * tcp_tick() - compute when a timer fires: at the first jiffy after @n whole ones
 * @t:		connection
 * @receiver:	true: the receiver's host; false: the sender's
 * @n:		jiffies
 *
 * Return: time
 */
u64 tcp_tick(const struct tcp *t, bool receiver, u32 n)
{
	return (tcp_jiffies(t, receiver) + n + 1) * tcp_jiffy() - phase(t, receiver);
}

/**
 * tcp_due() - set or clear a deadline
 * @t:		connection
 * @which:	the deadline, DUE_*
 * @at:		its time; 0: clear it
 */
void tcp_due(struct tcp *t, int which, u64 at)
{
	t->due[which] = at;
	if (!at || (t->armed && t->armed <= at))
		return;
	t->armed = at;
	t->conn->refs++;
	event_at(at, EVENT_TCP, t);
}

/**
 * tcp_ecn() - do connections ask for ECN?
 *
 * Return: true for DCTCP, and for each protocol in the rack
 */
bool tcp_ecn(void)
{
	return cfg.proto == PROTO_DCTCP || cfg.rtt;
}

static u32 jiffies_of(u64 time)
{
	return (time + tcp_jiffy() - 1) / tcp_jiffy();
}

static u32 rto(const struct tcp *t)
{
	u64 dev = 4 * t->rttvar, v;

	v = t->srtt ? t->srtt + max(dev, RTO_MIN) : SYN_RTO;
	return jiffies_of(min(v << min(t->backoff, 10u), RTO_MAX));
}

static void set_timer(struct tcp *t, enum tcp_timer timer, u32 jiffies)
{
	t->timer = timer;
	tcp_due(t, DUE_SEND, tcp_tick(t, false, jiffies));
}

/* Time until the timeout of the oldest segment. */
static u64 rto_left(const struct tcp *t)
{
	u64 end = seg_at(t, t->una)->at + rto(t) * tcp_jiffy();

	return end > sim_now ? end - sim_now : 1;
}

static void rearm_rto(struct tcp *t)
{
	if (t->una == t->next)
		tcp_due(t, DUE_SEND, 0);
	else if (t->due[DUE_SEND] && t->timer != TCP_RETRANS)
		set_timer(t, TCP_RETRANS, jiffies_of(rto_left(t)));
	else
		set_timer(t, TCP_RETRANS, rto(t));
}

/* Schedule a tail loss probe, unless segments are taken for lost or arrive out of order. */
static bool schedule_probe(struct tcp *t, bool advancing)
{
	u64 wait = 2 * t->srtt + (t->next - t->una == 1 ? RTO_MIN : PROBE_MIN);

	if (t->ca != CA_OPEN && t->ca != CA_CWR)
		return false;
	set_timer(t, TCP_PROBE,
		  min(jiffies_of(wait), advancing ? rto(t) : jiffies_of(rto_left(t))));
	return true;
}

static void xmit(struct tcp *t, u32 seq)
{
	struct seg *s = seg_at(t, seq);
	struct packet *p = packet_new(t->conn, true, s->len, SIM_TCP_HEADER);

	s->at = sim_now + t->lag;
	p->seq = seq;
	p->lag = t->lag;
	p->ts_ecr = t->ts_recent;
	p->ecn = cfg.proto == PROTO_DCTCP || (tcp_ecn() && !(s->flags & SEG_AGAIN));
	if (t->cwr && !(s->flags & SEG_AGAIN)) {
		p->flags = PKT_CWR;
		t->cwr = false;
	}
	if (t->ca == CA_CWR || t->ca == CA_RECOVERY)
		t->sent++;
	packet_send(p);
}

static void again(struct tcp *t, u32 seq)
{
	struct seg *s = seg_at(t, seq);

	if (s->flags & SEG_LOST)
		t->lost--;
	s->flags = (s->flags & ~SEG_LOST) | SEG_AGAIN;
	state.again++;
	xmit(t, seq);
}

static void ring_grow(struct tcp *t)
{
	u32 need = t->next - t->una + 1, room = max(t->room, 16u), s;
	struct seg *old = t->seg;

	if (need <= t->room)
		return;
	while (room < need)
		room *= 2;
	t->seg = sim_alloc(room * sizeof(*t->seg));
	for (s = t->una; s != t->next; s++)
		t->seg[s & (room - 1)] = old[s & (t->room - 1)];
	t->room = room;
	free(old);
}

static void send_new(struct tcp *t)
{
	if (!tcp_in_flight(t))
		tcp_window_idle(t, sim_now - t->sent_at);
	ring_grow(t);
	*seg_at(t, t->next) = (struct seg) { .len = min_t(u64, t->unsent, TCP_MSS) };
	t->unsent -= seg_at(t, t->next)->len;
	t->sent_at = sim_now;
	t->next++;
	xmit(t, t->next - 1);
	if (t->next - t->una == 1 || (t->due[DUE_SEND] && t->timer == TCP_PROBE))
		rearm_rto(t);
}

static bool may_send_new(const struct tcp *t)
{
	return t->unsent && esp_before(t->next, t->edge);
}

/* Record after each burst whether the window has limited the sender. */
static void validate(struct tcp *t, bool limited)
{
	u32 out = t->next - t->una;

	if (esp_before(t->una, t->usage) && !limited && (t->limited || out <= t->out_most))
		return;
	t->limited = limited;
	t->out_most = out;
	t->usage = t->next;
}

static void push_new(struct tcp *t)
{
	u32 before = t->next;
	bool limited;

	while (tcp_in_flight(t) < t->cwnd && may_send_new(t)) {
		send_new(t);
		/* in the rack a process reads the clock for each segment */
		if (t->writing)
			t->lag += SIM_RACK_CLOCK;
	}
	t->lag = 0;
	limited = tcp_in_flight(t) >= t->cwnd;
	if (before != t->next || limited)
		validate(t, limited);
	if (before != t->next)
		schedule_probe(t, false);
}

static void push_lost(struct tcp *t)
{
	u32 seq = t->una;

	if (t->ca != CA_RECOVERY && t->ca != CA_LOSS)
		return;
	for (; t->lost && tcp_in_flight(t) < t->cwnd; seq++) {
		if (!(seg_at(t, seq)->flags & SEG_LOST))
			continue;
		again(t, seq);
		if (seq == t->una)
			set_timer(t, TCP_RETRANS, rto(t));
	}
}

static void measured(struct tcp *t, u64 rtt)
{
	s64 err;

	t->min_rtt = t->min_rtt ? min(t->min_rtt, rtt) : rtt;
	if (!t->srtt) {
		t->srtt = rtt;
		t->rttvar = rtt / 2;
		return;
	}
	err = (s64)rtt - (s64)t->srtt;
	t->srtt += err / 8;
	t->rttvar += ((err < 0 ? -err : err) - (s64)t->rttvar) / 4;
}

/* RACK: record a segment that has arrived, if it was sent later than the recorded one. */
static void rack_advance(struct tcp *t, const struct seg *s, u32 seq)
{
	u64 rtt = sim_now - s->at;

	if ((s->flags & SEG_AGAIN) && rtt < t->min_rtt)
		return;
	t->rack_rtt = rtt;
	if (s->at > t->rack_at || (s->at == t->rack_at && esp_after(seq, t->rack_seq))) {
		t->rack_at = s->at;
		t->rack_seq = seq;
	}
}

static void arrived(struct tcp *t, u32 seq, struct news *w, bool in_order)
{
	struct seg *s = seg_at(t, seq);
	u64 rtt = sim_now - s->at;

	if (s->flags & SEG_LOST)
		t->lost--;
	if (s->flags & SEG_AGAIN) {
		w->again |= in_order;
	} else {
		w->original |= esp_before(seq, t->high);
		if (in_order)
			w->rtt = max(w->rtt, rtt);
		else
			w->sack_rtt = max(w->sack_rtt, rtt);
	}
	rack_advance(t, s, seq);
	s->flags = (s->flags & ~SEG_LOST) | SEG_SACKED;
	t->sacked++;
	w->n++;
}

/* Record the segments that have arrived according to an ACK. */
static void ack_tells(struct tcp *t, const struct packet *p, struct news *w)
{
	u32 i, seq, to;

	for (i = 0; i < p->ranges; i++) {
		seq = p->ack + p->r[i].offset;
		to = seq + p->r[i].count;
		for (; seq != to && esp_before(seq, t->next); seq++) {
			if (seg_at(t, seq)->flags & SEG_SACKED)
				continue;
			arrived(t, seq, w, false);
			w->sacked = true;
		}
	}
	w->advanced = p->ack != t->una;
	for (; t->una != p->ack; t->una++) {
		if (!(seg_at(t, t->una)->flags & SEG_SACKED))
			arrived(t, t->una, w, true);
		t->sacked--;
	}
	w->timer = w->advanced;
	if (w->again)
		w->rtt = 0;
	if (w->sack_rtt && !w->advanced && w->sack_rtt > sim_now - seg_at(t, t->una)->at)
		w->timer = true;
	if (w->rtt || w->sack_rtt) {
		measured(t, w->rtt ? w->rtt : w->sack_rtt);
		tcp_window_acked(t, w->rtt ? w->rtt : w->sack_rtt);
	}
	if (w->advanced)
		t->backoff = 0;
}

/*
 * RACK: mark segments as lost that were sent before the newest one that has arrived, if they
 * should have arrived by now. Returns the time until the others should, 0: there are none.
 */
static u64 find_lost(struct tcp *t, struct news *w)
{
	bool sure = t->ca >= CA_RECOVERY || t->sacked >= DUP_THRESH;
	u64 slack = sure ? 0 : min(t->min_rtt / 4, t->srtt / 8), wait = 0;
	u32 seq;

	for (seq = t->una; seq != t->next; seq++) {
		struct seg *s = seg_at(t, seq);
		u64 end = s->at + t->rack_rtt + slack;

		if (s->flags & (SEG_SACKED | SEG_LOST))
			continue;
		if (s->at > t->rack_at || (s->at == t->rack_at && !esp_before(seq, t->rack_seq)))
			continue;
		if (end > sim_now) {
			wait = max(wait, end - sim_now);
			continue;
		}
		w->lost_again |= !!(s->flags & SEG_AGAIN);
		s->flags |= SEG_LOST;
		t->lost++;
		w->lost++;
	}
	return wait;
}

static void identify_lost(struct tcp *t, struct news *w)
{
	u64 wait = w->n ? find_lost(t, w) : 0;

	if (!wait)
		return;
	set_timer(t, TCP_REORDER, jiffies_of(wait + PROBE_MIN));
	w->timer = false;
}

static void enter_recovery(struct tcp *t)
{
	if (t->ca != CA_CWR) {
		tcp_reduce(t);
		/* DCTCP halves the window after a loss, whatever the share of marks */
		if (cfg.proto == PROTO_DCTCP)
			t->ssthresh = max(t->prior / 2, 2u);
	} else if (cfg.proto == PROTO_DCTCP) {
		t->ssthresh = max(t->cwnd / 2, 2u);
	}
	t->ca = CA_RECOVERY;
}

/* Process an ACK after a timeout; true: send new data before lost segments (F-RTO). */
static bool process_loss(struct tcp *t, const struct news *w)
{
	bool over = !esp_before(t->una, t->high);
	u32 seq;

	if (t->frto && w->original) {
		for (seq = t->una; seq != t->next; seq++)
			seg_at(t, seq)->flags &= ~SEG_LOST;
		t->lost = 0;
		t->cwnd = max(t->cwnd, t->prior);
		t->ssthresh = max(t->ssthresh, t->prior_ssthresh);
		t->ca = CA_OPEN;
		return false;
	}
	if (t->frto && esp_after(t->next, t->high)) {
		if (w->sacked || !w->advanced)
			t->frto = false;
	} else if (t->frto && w->advanced && !over) {
		t->high = t->next;
		if (may_send_new(t))
			return true;
		t->frto = false;
	}
	if (over)
		t->ca = CA_OPEN;
	return false;
}

/*
 * Process an ACK that does not simply advance una, or that comes while the state is not
 * CA_OPEN. Returns true if new data goes before lost segments.
 */
static bool alert(struct tcp *t, struct news *w, bool marked)
{
	bool new_first = false;

	if (t->ca != CA_OPEN && !esp_before(t->una, t->high)) {
		if (t->ca == CA_CWR && t->una != t->high) {
			t->cwnd = t->ssthresh;
			t->ca = CA_OPEN;
		} else if (t->ca == CA_RECOVERY) {
			t->cwnd = t->ssthresh;
			t->ca = CA_OPEN;
		}
	}
	if (t->ca == CA_LOSS) {
		new_first = process_loss(t, w);
		identify_lost(t, w);
		if (t->ca == CA_LOSS && !w->lost_again)
			return new_first;
	} else {
		identify_lost(t, w);
		if (t->ca == CA_RECOVERY)
			return false;
	}
	if (t->lost) {
		enter_recovery(t);
		return false;
	}
	if (marked && t->ca < CA_CWR) {
		tcp_reduce(t);
		t->ca = CA_CWR;
	} else if (t->ca < CA_CWR) {
		t->ca = t->sacked ? CA_DISORDER : CA_OPEN;
		t->high = t->next;
	}
	return false;
}

/* Find out by an ACK whether a tail loss probe has repaired a loss. */
static void probe_answered(struct tcp *t, const struct packet *p, const struct news *w)
{
	if (esp_before(p->ack, t->probe_high))
		return;
	if (!t->probe_again || (p->flags & PKT_DSACK)) {
		t->probe_out = false;
	} else if (esp_after(p->ack, t->probe_high)) {
		tcp_reduce(t);
		t->cwnd = t->ssthresh;
		t->ca = t->sacked || t->lost ? CA_DISORDER : CA_OPEN;
	} else if (!w->advanced && !w->sacked) {
		t->probe_out = false;
	}
}

static void ack_in(struct tcp *t, struct packet *p)
{
	bool marked = p->ecn == 3, new_first = false;
	struct news w = {};

	if (esp_after(p->ack, t->next) || esp_before(p->ack, t->una))
		return;
	t->ts_recent = p->ts_val;
	if (esp_after(p->ack + p->grant, t->edge))
		t->edge = p->ack + p->grant;
	if (t->una == t->next)
		return;
	ack_tells(t, p, &w);
	tcp_window_marks(t, w.n, marked);
	if (t->probe_out)
		probe_answered(t, p, &w);
	if (t->ca != CA_OPEN || !w.advanced || w.sacked || marked)
		new_first = alert(t, &w, marked);
	if (w.timer && !schedule_probe(t, true))
		rearm_rto(t);
	if (t->una == t->next)
		tcp_due(t, DUE_SEND, 0);
	if (t->ca == CA_CWR || t->ca == CA_RECOVERY)
		tcp_reduced(t, w.n, w.advanced, w.lost);
	else if (w.advanced)
		tcp_grow(t, w.n);
	if (new_first)
		push_new(t);
	else
		push_lost(t);
	push_new(t);
	conn_acked(t->conn);
}

static void probe(struct tcp *t)
{
	u32 before = t->next;

	if (!t->probe_out) {
		t->probe_again = false;
		if (may_send_new(t)) {
			send_new(t);
		} else if (!t->unsent) {
			again(t, t->next - 1);
			t->probe_again = true;
		}
		t->probe_out = t->probe_again || t->next != before;
		t->probe_high = t->next;
	}
	set_timer(t, TCP_RETRANS, t->probe_out ? rto(t) : jiffies_of(rto_left(t)));
}

/* RACK's timer: mark segments as lost that did not arrive in the time left for reordering. */
static void reorder(struct tcp *t)
{
	struct news w = {};
	u32 before = tcp_in_flight(t);

	find_lost(t, &w);
	if (before != tcp_in_flight(t)) {
		if (t->ca != CA_RECOVERY) {
			enter_recovery(t);
			tcp_reduced(t, 1, false, w.lost);
		}
		push_lost(t);
	}
	if (!t->due[DUE_SEND])
		set_timer(t, TCP_RETRANS, jiffies_of(rto_left(t)));
}

static void timeout(struct tcp *t)
{
	bool anew = t->ca < CA_RECOVERY;
	u32 seq;

	state.timeouts++;
	for (seq = t->una; seq != t->next; seq++) {
		struct seg *s = seg_at(t, seq);

		if ((s->flags & (SEG_SACKED | SEG_LOST)) ||
		    (seq != t->una && s->at + t->rack_rtt > sim_now))
			continue;
		s->flags |= SEG_LOST;
		t->lost++;
	}
	/* reduce ssthresh once in a window */
	if (t->ca <= CA_DISORDER || !esp_after(t->high, t->una) ||
	    (t->ca == CA_LOSS && !t->backoff)) {
		t->prior_ssthresh = t->ssthresh;
		t->prior = t->cwnd;
		t->ssthresh = tcp_ssthresh(t);
		if (cfg.proto == PROTO_DCTCP)
			t->ssthresh = max(t->cwnd / 2, 2u);
	}
	tcp_window_loss(t);
	t->cwr = tcp_ecn();
	t->cwnd = tcp_in_flight(t) + 1;
	t->cwnd_cnt = 0;
	t->ca = CA_LOSS;
	t->high = t->next;
	t->probe_out = false;
	t->frto = anew || t->backoff;
	again(t, t->una);
	t->backoff++;
	set_timer(t, TCP_RETRANS, rto(t));
}

static void send_syn(struct tcp *t)
{
	struct packet *p = packet_new(t->conn, true, 0, SIM_TCP_HEADER);

	p->flags = PKT_SYN;
	p->ts_val = sim_us();
	packet_send(p);
	set_timer(t, TCP_RETRANS, rto(t));
}

static void send_due(struct tcp *t)
{
	t->due[DUE_SEND] = 0;
	if (!t->open) {
		t->backoff++;
		send_syn(t);
		return;
	}
	if (t->una == t->next)
		return;
	if (t->timer == TCP_PROBE)
		probe(t);
	else if (t->timer == TCP_REORDER)
		reorder(t);
	else
		timeout(t);
}

/**
 * tcp_timer() - handle the deadlines of a connection that are due
 * @arg:	struct tcp
 */
void tcp_timer(void *arg)
{
	struct tcp *t = arg;
	int i;

	if (sim_now >= t->armed)
		t->armed = 0;
	if (!t->conn->closed) {
		if (t->due[DUE_SEND] && t->due[DUE_SEND] <= sim_now)
			send_due(t);
		if ((t->due[DUE_ACK] && t->due[DUE_ACK] <= sim_now) ||
		    (t->due[DUE_SACKS] && t->due[DUE_SACKS] <= sim_now))
			tcp_send_ack(t, false);
		for (i = 0; i < DUES; i++)
			tcp_due(t, i, t->due[i]);
	}
	conn_put(t->conn);
}

/**
 * tcp_open() - begin to connect
 * @c:	connection
 */
void tcp_open(struct conn *c)
{
	struct tcp *t = sim_alloc(sizeof(*t));

	c->tcp = t;
	t->conn = c;
	t->cwnd = INIT_CWND;
	t->ssthresh = SSTHRESH_NONE;
	t->alpha = 1;
	tcp_recv_open(t);
	state.socks += 2;
	state.socks_most = max(state.socks_most, state.socks);
	send_syn(t);
}

/* Reduce the window after a pause that was longer than a timeout (slow start after idle). */
static void restart(struct tcp *t)
{
	u64 one = rto(t) * tcp_jiffy(), idle = sim_now - t->sent_at;
	u32 least = min(t->cwnd, INIT_CWND);

	if (!t->sent_at || t->una != t->next || idle <= one)
		return;
	t->ssthresh = max(t->ssthresh, t->cwnd / 2 + t->cwnd / 4);
	while (idle >= 2 * one && t->cwnd > least) {
		idle -= one;
		t->cwnd /= 2;
	}
	t->cwnd = max(t->cwnd, least);
}

/**
 * tcp_write() - append bytes to the data to be sent
 * @c:		connection
 * @bytes:	number of bytes
 */
void tcp_write(struct conn *c, u64 bytes)
{
	struct tcp *t = c->tcp;

	restart(t);
	t->unsent += bytes;
	t->writing = cfg.rtt;
	if (t->open)
		push_new(t);
	t->writing = false;
}

/**
 * tcp_input() - receive a frame
 * @p:	frame; the caller frees it
 */
void tcp_input(struct packet *p)
{
	struct tcp *t = p->conn->tcp;
	struct packet *a;

	if (p->conn->closed)
		return;
	if (p->to_server) {
		if (!(p->flags & PKT_SYN)) {
			tcp_recv_data(t, p);
			return;
		}
		a = packet_new(t->conn, false, 0, SIM_TCP_HEADER);
		a->flags = PKT_SYN;
		a->ts_ecr = p->ts_val;
		packet_send(a);
		return;
	}
	if (!(p->flags & PKT_SYN)) {
		ack_in(t, p);
		return;
	}
	if (t->open)
		return;
	t->open = true;
	t->due[DUE_SEND] = 0;
	t->backoff = 0;
	measured(t, max(sim_now - p->ts_ecr * NS_PER_US, NS_PER_US));
	t->recv.handshake = t->srtt;
	conn_opened(t->conn);
}

/**
 * tcp_all_acked() - has the sender nothing left to do?
 * @c:	connection
 *
 * Return: true if so
 */
bool tcp_all_acked(const struct conn *c)
{
	return !c->tcp->unsent && c->tcp->una == c->tcp->next;
}

/**
 * tcp_free() - free both ends of a connection that nothing refers to
 * @c:	connection
 */
void tcp_free(struct conn *c)
{
	free(c->tcp->seg);
	free(c->tcp->recv.kept);
	free(c->tcp);
}
