// SPDX-License-Identifier: GPL-2.0-only
/*
 * A model of TCP, for comparison: NewReno's and CUBIC's windows (RFC 5681, 9438), SACK,
 * losses found by what was sent later and has arrived (RFC 8985), a tail loss probe, a
 * retransmission timeout of 200 ms at least; and DCTCP (RFC 8257). Numbers count segments.
 * Each segment is acknowledged: none waits for a second one.
 */
#include <math.h>
#include <stdlib.h>
#include "sim.h"

#define TCP_MSS		(SIM_MTU - SIM_TCP_HEADER)
#define INIT_CWND	10
#define RTO_MIN		(200 * NS_PER_MS)
#define RTO_MAX		(120 * NS_PER_S)
#define SYN_RTO		NS_PER_S
#define PROBE_MIN	(8 * NS_PER_MS)		/* two jiffies at 250 Hz */
#define TICK		(4 * NS_PER_MS)		/* a jiffy at 250 Hz */
#define CUBIC_C		0.4
#define CUBIC_BETA	0.7
#define DCTCP_GAIN	(1.0 / 16)

enum { SEG_SACKED = 1, SEG_LOST = 2, SEG_AGAIN = 4 };

struct seg {
	u64 at;
	u16 len;
	u8 flags;
};

/**
 * struct tcp - both ends of a connection
 * @conn:	whose
 * @seg:	sent and not acknowledged, a ring
 * @room:	of @seg
 * @unsent:	bytes
 * @una:	first segment not acknowledged
 * @next:	next new one
 * @sacked:	segments beyond @una that have arrived
 * @lost:	believed lost, and not sent again
 * @recover:	end of what was sent when recovery began
 * @recovering:	until then
 * @cwnd:	window, segments
 * @ssthresh:	of slow start
 * @srtt:	smoothed round trip; 0: none yet
 * @rttvar:	its deviation
 * @min_rtt:	smallest
 * @backoff:	timeouts in a row
 * @due:	when the timer is to fire, 0: off
 * @armed:	when an event is going to look
 * @probing:	@due is a tail loss probe's
 * @probed:	one was sent since the last progress
 * @w_max:	CUBIC: window at the last loss
 * @epoch:	its start
 * @w_est:	what NewReno would have
 * @alpha:	DCTCP: share of marked segments
 * @acked:	since @alpha was last looked at
 * @marked:	likewise
 * @alpha_end:	when it is to be looked at again
 * @cut_end:	no further cut for marks before
 * @recv:	receiver: next expected
 * @kept:	lengths of what came out of order, a ring
 * @kept_room:	of it
 * @open:	handshake is over
 */
struct tcp {
	struct conn *conn;
	struct seg *seg;
	u32 room;
	u64 unsent;
	u32 una;
	u32 next;
	u32 sacked;
	u32 lost;
	u32 recover;
	bool recovering;
	double cwnd;
	double ssthresh;
	u64 srtt;
	u64 rttvar;
	u64 min_rtt;
	u32 backoff;
	u64 due;
	u64 armed;
	bool probing;
	bool probed;
	double w_max;
	u64 epoch;
	double w_est;
	double alpha;
	u32 acked;
	u32 marked;
	u32 alpha_end;
	u32 cut_end;
	u32 recv;
	u16 *kept;
	u32 kept_room;
	bool open;
};

static struct seg *seg_at(struct tcp *t, u32 seq)
{
	return &t->seg[seq & (t->room - 1)];
}

static void set_timer(struct tcp *t, u64 at)
{
	t->due = at;
	if (!at || (t->armed && t->armed <= at))
		return;
	t->armed = at;
	t->conn->refs++;
	event_at(at, EVENT_TCP, t);
}

/* Timers fire with a jiffy of their host, which have begun at different times. */
static u64 tick(const struct tcp *t, u64 at)
{
	u64 phase = cfg.rtt ? 0 : t->conn->src * 0x9e3779b97f4a7c15ull % TICK;

	return (at - phase + TICK - 1) / TICK * TICK + phase;
}

static u64 rto(const struct tcp *t)
{
	u64 dev = 4 * t->rttvar, v;

	if (!t->srtt)
		v = SYN_RTO;
	else
		v = t->srtt + max(dev, RTO_MIN);
	v <<= min(t->backoff, 10u);
	return min(v, RTO_MAX);
}

/* The timer as things stand: a probe first, if nothing is known to be lost. */
static void rearm(struct tcp *t)
{
	u64 wait = rto(t);

	t->probing = false;
	if (t->una == t->next) {
		t->due = 0;
		return;
	}
	if (!t->recovering && !t->probed && !t->backoff && t->srtt) {
		u64 probe = 2 * t->srtt + (t->next - t->una == 1 ? RTO_MIN : PROBE_MIN);

		t->probing = probe < wait;
		wait = min(wait, probe);
	}
	set_timer(t, tick(t, sim_now + wait));
}

static void xmit(struct tcp *t, u32 seq)
{
	struct seg *s = seg_at(t, seq);
	struct packet *p = packet_new(t->conn, true, s->len, SIM_TCP_HEADER);

	s->at = sim_now;
	p->seq = seq;
	p->ts_val = sim_us();
	p->ecn = cfg.proto == PROTO_DCTCP;
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

static void send_new(struct tcp *t)
{
	u32 need = t->next - t->una + 1, room = max(t->room, 16u), s;
	struct seg *old = t->seg;

	if (need > t->room) {
		while (room < need)
			room *= 2;
		t->seg = sim_alloc(room * sizeof(*t->seg));
		for (s = t->una; s != t->next; s++)
			t->seg[s & (room - 1)] = old[s & (t->room - 1)];
		t->room = room;
		free(old);
	}
	*seg_at(t, t->next) = (struct seg) { .len = min_t(u64, t->unsent, TCP_MSS) };
	t->unsent -= seg_at(t, t->next)->len;
	xmit(t, t->next++);
}

static u32 in_flight(const struct tcp *t)
{
	return t->next - t->una - t->sacked - t->lost;
}

static void push(struct tcp *t)
{
	bool idle = t->una == t->next;
	u32 seq = t->una;

	if (!t->open)
		return;
	while (in_flight(t) < (u32)t->cwnd) {
		if (t->lost) {
			while (!(seg_at(t, seq)->flags & SEG_LOST))
				seq++;
			again(t, seq);
		} else if (t->unsent) {
			send_new(t);
		} else {
			break;
		}
	}
	if (idle && t->una != t->next)
		rearm(t);
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

/* The window after a loss. */
static void cut(struct tcp *t)
{
	double beta = cfg.proto == PROTO_CUBIC ? CUBIC_BETA : 0.5;

	/* fast convergence */
	t->w_max = t->cwnd < t->w_max ? t->cwnd * (1 + CUBIC_BETA) / 2 : t->cwnd;
	t->epoch = 0;
	t->ssthresh = fmax(t->cwnd * beta, 2);
}

static void cubic_grow(struct tcp *t)
{
	double k, s, target;

	if (!t->epoch) {
		t->epoch = sim_now;
		t->w_est = t->cwnd;
		t->w_max = fmax(t->w_max, t->cwnd);
	}
	k = cbrt(t->w_max * (1 - CUBIC_BETA) / CUBIC_C);
	s = (double)(sim_now - t->epoch + t->min_rtt) / NS_PER_S;
	target = t->w_max + CUBIC_C * pow(s - k, 3);
	t->w_est += 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA) / t->cwnd;
	target = fmax(target, t->w_est);
	if (target > t->cwnd)
		t->cwnd += fmin((target - t->cwnd) / t->cwnd, 0.5);
}

/* So many segments were delivered, while the window was what held back. */
static void grow(struct tcp *t, u32 n)
{
	for (; n && t->cwnd < t->ssthresh; n--)
		t->cwnd++;
	for (; n; n--) {
		if (cfg.proto == PROTO_CUBIC)
			cubic_grow(t);
		else
			t->cwnd += 1 / t->cwnd;
	}
}

/* Marks that came back: once a window, as much as their share says. */
static void dctcp(struct tcp *t, u32 n, bool marked)
{
	t->acked += n;
	if (marked)
		t->marked += n;
	if (!esp_before(t->una, t->alpha_end) && t->acked) {
		t->alpha += DCTCP_GAIN * ((double)t->marked / t->acked - t->alpha);
		t->alpha_end = t->next;
		t->acked = 0;
		t->marked = 0;
	}
	if (marked && !t->recovering && !esp_before(t->una, t->cut_end)) {
		t->cwnd = fmax(t->cwnd * (1 - t->alpha / 2), 2);
		t->ssthresh = t->cwnd;
		t->cut_end = t->next;
	}
}

/* What was sent before something that has arrived, and has not come itself. */
static void find_lost(struct tcp *t, u64 sent_at)
{
	u64 slack = t->sacked >= 3 ? 0 : t->min_rtt / 4;
	u32 seq, left = t->sacked;

	for (seq = t->una; left && seq != t->next; seq++) {
		struct seg *s = seg_at(t, seq);

		if (s->flags & SEG_SACKED) {
			left--;
		} else if (!(s->flags & SEG_LOST) && s->at + slack < sent_at) {
			s->flags |= SEG_LOST;
			t->lost++;
		}
	}
	if (t->lost && !t->recovering) {
		t->recovering = true;
		t->recover = t->next;
		cut(t);
		t->cwnd = t->ssthresh;
	}
}

static void forget(struct tcp *t, u32 ack)
{
	for (; t->una != ack; t->una++) {
		struct seg *s = seg_at(t, t->una);

		t->sacked -= !!(s->flags & SEG_SACKED);
		t->lost -= !!(s->flags & SEG_LOST);
	}
}

static void ack_in(struct tcp *t, struct packet *p)
{
	u32 before = in_flight(t), n = 0;
	bool limited = before >= (u32)t->cwnd || (t->cwnd < t->ssthresh && t->cwnd < 2 * before);
	u64 sent_at = 0;

	if (esp_after(p->ack, t->next) || esp_before(p->ack, t->una))
		return;
	if (!esp_before(p->seq, t->una) && esp_before(p->seq, t->next)) {
		struct seg *s = seg_at(t, p->seq);

		sent_at = s->at;
		if (!(s->flags & SEG_SACKED)) {
			if (s->flags & SEG_LOST)
				t->lost--;
			s->flags = (s->flags & ~SEG_LOST) | SEG_SACKED;
			t->sacked++;
			n++;
		}
	}
	measured(t, sim_now - p->ts_ecr * NS_PER_US);
	if (p->ack != t->una) {
		n = max(n, p->ack - t->una);
		forget(t, p->ack);
		t->backoff = 0;
		t->probed = false;
	}
	if (t->recovering && !esp_before(t->una, t->recover))
		t->recovering = false;
	if (cfg.proto == PROTO_DCTCP)
		dctcp(t, n, p->ecn == 3);
	if (t->sacked && sent_at)
		find_lost(t, sent_at);
	/* slow start goes on in recovery after a timeout */
	if (n && limited && (!t->recovering || t->cwnd < t->ssthresh))
		grow(t, n);
	if (n)
		rearm(t);
	push(t);
	conn_acked(t->conn);
}

static void timeout(struct tcp *t)
{
	u32 seq;

	if (t->probing) {
		t->probed = true;
		if (t->unsent)
			send_new(t);
		else
			again(t, t->next - 1);
		rearm(t);
		return;
	}
	state.timeouts++;
	cut(t);
	t->cwnd = 1;
	t->backoff++;
	t->recovering = true;
	t->recover = t->next;
	for (seq = t->una; seq != t->next; seq++) {
		struct seg *s = seg_at(t, seq);

		if (!(s->flags & (SEG_SACKED | SEG_LOST))) {
			s->flags |= SEG_LOST;
			t->lost++;
		}
	}
	rearm(t);
	push(t);
}

static void send_syn(struct tcp *t)
{
	struct packet *p = packet_new(t->conn, true, 0, SIM_TCP_HEADER);

	p->flags = PKT_SYN;
	p->ts_val = sim_us();
	packet_send(p);
	set_timer(t, tick(t, sim_now + rto(t)));
}

/**
 * tcp_timer() - an event of a connection's timer
 * @arg:	struct tcp
 */
void tcp_timer(void *arg)
{
	struct tcp *t = arg;

	if (sim_now >= t->armed) {
		t->armed = 0;
		if (!t->due || t->conn->closed) {
			t->due = 0;
		} else if (t->due > sim_now) {
			set_timer(t, t->due);
		} else if (!t->open) {
			t->backoff++;
			send_syn(t);
		} else {
			timeout(t);
		}
	}
	conn_put(t->conn);
}

/**
 * tcp_open() - connect
 * @c:	connection
 */
void tcp_open(struct conn *c)
{
	struct tcp *t = sim_alloc(sizeof(*t));

	c->tcp = t;
	t->conn = c;
	t->cwnd = INIT_CWND;
	t->ssthresh = 1e9;
	t->alpha = 1;
	state.socks += 2;
	state.socks_most = max(state.socks_most, state.socks);
	send_syn(t);
}

/**
 * tcp_write() - bytes to be sent
 * @c:		connection
 * @bytes:	how many
 */
void tcp_write(struct conn *c, u64 bytes)
{
	c->tcp->unsent += bytes;
	push(c->tcp);
}

static void answer(struct tcp *t, struct packet *p, u8 flags)
{
	struct packet *a = packet_new(t->conn, false, 0, SIM_TCP_HEADER);

	a->flags = flags;
	a->seq = p->seq;
	a->ack = t->recv;
	a->ts_ecr = p->ts_val;
	a->ecn = p->ecn == 3 ? 3 : 0;
	packet_send(a);
}

static void data_in(struct tcp *t, struct packet *p)
{
	u32 need = p->seq - t->recv + 1, room = max(t->kept_room, 16u), s;
	u16 *old = t->kept, *k;

	if (esp_before(p->seq, t->recv)) {
		state.duplicate++;
		return;
	}
	if (need > t->kept_room) {
		while (room < need)
			room *= 2;
		t->kept = sim_alloc(room * sizeof(*t->kept));
		for (s = t->recv; s != t->recv + t->kept_room; s++)
			t->kept[s & (room - 1)] = old[s & (t->kept_room - 1)];
		t->kept_room = room;
		free(old);
	}
	k = &t->kept[p->seq & (t->kept_room - 1)];
	state.duplicate += *k != 0;
	state.ooo += p->seq != t->recv;
	*k = p->len;
	for (;;) {
		k = &t->kept[t->recv & (t->kept_room - 1)];
		if (!*k)
			break;
		t->recv++;
		conn_received(t->conn, *k);
		*k = 0;
	}
}

/**
 * tcp_input() - a frame has come
 * @p:	frame; stays the caller's
 */
void tcp_input(struct packet *p)
{
	struct tcp *t = p->conn->tcp;

	if (p->conn->closed)
		return;
	if (p->to_server) {
		if (!(p->flags & PKT_SYN))
			data_in(t, p);
		answer(t, p, p->flags);
		return;
	}
	if (!(p->flags & PKT_SYN)) {
		ack_in(t, p);
		return;
	}
	if (t->open)
		return;
	t->open = true;
	t->due = 0;
	t->backoff = 0;
	measured(t, sim_now - p->ts_ecr * NS_PER_US);
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
 * tcp_free() - a connection that nothing refers to
 * @c:	connection
 */
void tcp_free(struct conn *c)
{
	free(c->tcp->seg);
	free(c->tcp->kept);
	free(c->tcp);
}
