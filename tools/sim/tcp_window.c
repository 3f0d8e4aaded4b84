// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP's congestion windows, as Linux has them: NewReno (RFC 5681), CUBIC (RFC 9438) with
 * HyStart, DCTCP (RFC 8257). PRR (RFC 9937) reduces all of them.
 */
#include <math.h>
#include "tcp_sim.h"

#define CUBIC_C		0.4
#define CUBIC_BETA	0.7
#define DCTCP_GAIN	(1.0 / 16)
#define HYSTART_LOW	16			/* least window, segments */
#define HYSTART_TRAIN	(2 * NS_PER_MS)		/* longest time between two ACKs of a train */
#define HYSTART_CUSHION	NS_PER_MS		/* longest time allowed for GSO packets */
#define HYSTART_SAMPLES	8			/* round trips measured in a round */
#define HYSTART_DELAY	(4 * NS_PER_MS)		/* least queueing delay that ends slow start */
#define SUPER_PACKET	65536			/* largest GSO packet, bytes */

/**
 * tcp_is_limited() - has the window limited the sender?
 * @t:	connection
 *
 * Return: true if so
 */
bool tcp_is_limited(const struct tcp *t)
{
	return t->limited || (tcp_in_slow_start(t) && t->cwnd < 2 * t->out_most);
}

/**
 * tcp_ssthresh() - compute the window after a loss or a mark: half of it, or as CUBIC and DCTCP do
 * @t:	connection
 *
 * Return: segments
 */
u32 tcp_ssthresh(struct tcp *t)
{
	struct tcp_cubic *c = &t->cubic;

	if (cfg.proto == PROTO_DCTCP)
		return max(t->cwnd - (u32)(t->cwnd * t->alpha / 2), 2u);
	if (cfg.proto != PROTO_CUBIC)
		return max(t->cwnd / 2, 2u);
	c->epoch = 0;
	/* fast convergence */
	c->max = t->cwnd < c->max ? t->cwnd * (1 + CUBIC_BETA) / 2 : t->cwnd;
	return max((u32)(t->cwnd * CUBIC_BETA), 2u);
}

/**
 * tcp_reduce() - begin to reduce the window, until @t->high is acknowledged
 * @t:	connection
 */
void tcp_reduce(struct tcp *t)
{
	t->high = t->next;
	t->probe_out = false;
	t->cwnd_cnt = 0;
	t->prior = t->cwnd;
	t->delivered = 0;
	t->sent = 0;
	t->cwr = tcp_ecn();
	t->ssthresh = tcp_ssthresh(t);
}

/**
 * tcp_reduced() - set the window after an ACK by proportional rate reduction
 * @t:		connection
 * @n:		segments that have arrived
 * @advanced:	true: una has advanced
 * @lost:	segments that this ACK shows to be lost
 */
void tcp_reduced(struct tcp *t, u32 n, bool advanced, u32 lost)
{
	s32 delta = (s32)(t->ssthresh - tcp_in_flight(t)), count;

	if (!n)
		return;
	t->delivered += n;
	if (delta < 0) {
		count = ((u64)t->ssthresh * t->delivered + t->prior - 1) / t->prior;
		count -= t->sent;
	} else {
		count = max((s32)(t->delivered - t->sent), (s32)n);
		count = min(delta, count + (advanced && !lost));
	}
	count = max(count, t->sent ? 0 : 1);
	t->cwnd = tcp_in_flight(t) + count;
}

static void additive(struct tcp *t, u32 w, u32 n)
{
	if (t->cwnd_cnt >= w) {
		t->cwnd_cnt = 0;
		t->cwnd++;
	}
	t->cwnd_cnt += n;
	if (t->cwnd_cnt >= w) {
		t->cwnd += t->cwnd_cnt / w;
		t->cwnd_cnt %= w;
	}
}

/* Compute cnt by CUBIC's curve. */
static void curve(struct tcp *t)
{
	struct tcp_cubic *c = &t->cubic;
	double s;
	u32 target;

	if (!c->epoch) {
		c->epoch = sim_now;
		c->acked = 0;
		c->reno = t->cwnd;
		c->origin = max(c->max, t->cwnd);
		c->k = cbrt((c->origin - t->cwnd) / CUBIC_C);
	}
	s = (double)(sim_now - c->epoch + c->delay_min) / NS_PER_S - c->k;
	target = fmax(c->origin + trunc(CUBIC_C * s * s * s), 0);
	c->cnt = target > t->cwnd ? t->cwnd / (target - t->cwnd) : 100 * t->cwnd;
	if (!c->max)
		c->cnt = min(c->cnt, 20u);
}

static void cubic(struct tcp *t, u32 n)
{
	struct tcp_cubic *c = &t->cubic;
	u64 now = tcp_jiffies(t, false);
	u32 friendly = t->cwnd * 15 / 8;

	c->acked += n;
	if (c->cwnd == t->cwnd && (now - c->time) * tcp_jiffy() <= NS_PER_S / 32)
		return;
	if (!c->epoch || now != c->time) {
		c->cwnd = t->cwnd;
		c->time = now;
		curve(t);
	}
	while (c->acked > friendly) {
		c->acked -= friendly;
		c->reno++;
	}
	if (c->reno > t->cwnd)
		c->cnt = min(c->cnt, t->cwnd / (c->reno - t->cwnd));
	c->cnt = max(c->cnt, 2u);
}

/**
 * tcp_grow() - let the window grow after segments have arrived
 * @t:	connection
 * @n:	number of segments
 */
void tcp_grow(struct tcp *t, u32 n)
{
	if (!tcp_is_limited(t))
		return;
	if (tcp_in_slow_start(t)) {
		u32 to = min(t->cwnd + n, t->ssthresh);

		n -= to - t->cwnd;
		t->cwnd = to;
		if (!n)
			return;
	}
	if (cfg.proto == PROTO_CUBIC) {
		cubic(t, n);
		additive(t, t->cubic.cnt, n);
	} else {
		additive(t, t->cwnd, n);
	}
}

static void hystart_round(struct tcp *t)
{
	struct tcp_cubic *c = &t->cubic;

	c->round = sim_now;
	c->train = sim_now;
	c->round_end = t->next;
	c->round_rtt = ~0ull;
	c->samples = 0;
}

/**
 * tcp_window_loss() - reset CUBIC and HyStart after a timeout
 * @t:	connection
 */
void tcp_window_loss(struct tcp *t)
{
	t->cubic = (struct tcp_cubic) { .cnt = 1 };
	hystart_round(t);
}

/**
 * tcp_window_idle() - shift CUBIC's curve by a pause without outstanding segments
 * @t:		connection
 * @idle:	time since new data was sent last
 */
void tcp_window_idle(struct tcp *t, u64 idle)
{
	struct tcp_cubic *c = &t->cubic;

	if (c->epoch)
		c->epoch = min(c->epoch + idle, sim_now);
}

/*
 * HyStart: end slow start when a train of ACKs takes half of the smallest round trip, or when
 * round trips show a queue.
 */
static void hystart(struct tcp *t, u64 rtt)
{
	struct tcp_cubic *c = &t->cubic;
	u64 way = c->delay_min;

	if (esp_after(t->una, c->round_end))
		hystart_round(t);
	if (t->cwnd < HYSTART_LOW)
		return;
	if (sim_now - c->train <= HYSTART_TRAIN) {
		/* the time of four GSO packets at twice the present rate */
		double pace = 2.0 * t->cwnd * TCP_MSS / t->srtt;

		c->train = sim_now;
		way += min((u64)(4 * SUPER_PACKET / pace), HYSTART_CUSHION);
		c->found = sim_now - c->round > way / 2;
	}
	c->round_rtt = min(c->round_rtt, rtt);
	if (c->samples < HYSTART_SAMPLES)
		c->samples++;
	else if (c->round_rtt > c->delay_min + max(HYSTART_DELAY, c->delay_min / 8))
		c->found = true;
	if (c->found)
		t->ssthresh = t->cwnd;
}

/**
 * tcp_window_acked() - take a round trip for CUBIC and HyStart
 * @t:		connection
 * @rtt:	the round trip
 */
void tcp_window_acked(struct tcp *t, u64 rtt)
{
	struct tcp_cubic *c = &t->cubic;

	if (cfg.proto != PROTO_CUBIC || (c->epoch && sim_now - c->epoch < NS_PER_S))
		return;
	if (!c->delay_min || rtt < c->delay_min)
		c->delay_min = rtt;
	if (!c->found && tcp_in_slow_start(t))
		hystart(t, rtt);
}

/**
 * tcp_window_marks() - DCTCP: update the share of marked segments, once in a window
 * @t:		connection
 * @n:		segments that have arrived
 * @marked:	true: the ACK echoes a mark
 */
void tcp_window_marks(struct tcp *t, u32 n, bool marked)
{
	if (cfg.proto != PROTO_DCTCP)
		return;
	t->acked += n;
	if (marked)
		t->marked += n;
	if (esp_before(t->una, t->alpha_end))
		return;
	t->alpha -= DCTCP_GAIN * t->alpha;
	if (t->acked)
		t->alpha += DCTCP_GAIN * t->marked / t->acked;
	t->alpha_end = t->next;
	t->acked = 0;
	t->marked = 0;
}
