// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ACK queue's two policies, the budget that the adaptive one works with,
 * and the pool of first bursts.
 */
#include "policy.h"

/**
 * esp_policy_fast() - may permission leave without a look at the queue?
 * @p:		policy
 * @q:		budget Q
 * @open:	packets granted and not arrived
 * @count:	esp_recv_count
 *
 * The caller has seen the queue empty (rule 15).
 *
 * Return: true if so
 */
bool esp_policy_fast(const struct esp_policy *p, u32 q, int open, int count)
{
	if (!READ_ONCE(p->adaptive))
		return count <= 1;
	return open < (int)q;
}

/**
 * esp_policy_release() - must the queue's head leave now?
 * @p:		policy
 * @q:		budget Q
 * @qlen:	entries in the queue
 * @open:	packets granted and not arrived
 * @count:	esp_recv_count
 *
 * Seed: when the queue is as long as there are senders. Adaptive: while open
 * is below the budget. Both: an idle network never leaves anybody waiting.
 *
 * Return: true if so
 */
bool esp_policy_release(const struct esp_policy *p, u32 q, u32 qlen, int open,
			int count)
{
	if (!qlen)
		return false;
	if (!READ_ONCE(p->adaptive))
		return (int)qlen >= count || open <= 0;
	return open < (int)q;
}

/**
 * esp_policy_grant() - size of one grant
 * @p:		policy
 * @c:		control, with the budget
 * @open:	packets granted and not arrived
 * @count:	esp_recv_count
 *
 * A lone sender's are longer, so that super-packets stay large; without a wire, so
 * long that not each of them needs an ACK.
 *
 * Return: packets, at least 1
 */
u32 esp_policy_grant(const struct esp_policy *p, const struct esp_qctl *c, int open,
		     int count)
{
	u32 lone = READ_ONCE(c->lone), n, most = READ_ONCE(p->burst_length);

	if (!READ_ONCE(p->adaptive))
		return max(most, 1u);
	n = clamp_t(u32, READ_ONCE(c->q) / 4, ESP_GRANT_MIN, ESP_GRANT_MAX);
	if (esp_qctl_no_wire(c, count))
		lone = max_t(u32, lone, ESP_LONE_NO_WIRE);
	if (count <= 1 && open < (int)lone)
		n = max_t(u32, n, lone - max(open, 0));
	if (most)
		n = min(n, most);
	return n;
}

/**
 * esp_policy_ask() - when is more permission due?
 * @p:		policy
 * @c:		control, with the budget
 * @count:	esp_recv_count
 *
 * While half of the last grant is still on its way, so that there is something
 * to send when the next one comes; earlier, while it is less than the sender's
 * share of the budget. So nobody has more than a share and a grant, and whoever
 * has less catches up.
 *
 * Return: packets still permitted
 */
u32 esp_policy_ask(const struct esp_policy *p, const struct esp_qctl *c, int count)
{
	u32 share = READ_ONCE(c->q) / max(count, 1);

	return max(share, esp_policy_grant(p, c, 0, count) / 2);
}

/**
 * esp_qctl_init() - start with what a gigabit link's switch bears
 * @c:	control
 * @p:	policy
 */
void esp_qctl_init(struct esp_qctl *c, const struct esp_policy *p)
{
	memset(c, 0, sizeof(*c));
	c->q = clamp_t(u32, ESP_Q_START, p->q_min, p->q_max);
	c->fast = 1;
	c->lone = ESP_GRANT_LONE;
}

static void set_q(struct esp_qctl *c, const struct esp_policy *p, u32 q)
{
	WRITE_ONCE(c->q, clamp_t(u32, q, p->q_min, p->q_max));
	c->full = 0;
}

static u32 frame_time(const struct esp_qctl *c)
{
	return min(READ_ONCE(c->frame.cur), READ_ONCE(c->frame.prev));
}

/* A frame takes @ns on the wire: what a lone sender's grant is. */
static void frame_took(struct esp_qctl *c, u64 ns, u32 rtt, u64 now)
{
	esp_min_rtt_sample(&c->frame, clamp_t(u64, ns, 1, ESP_FRAME_NS_MAX), now);
	WRITE_ONCE(c->lone, rtt > ESP_LONE_RTT_US ? ESP_GRANT_LONE :
		   clamp_t(u32, ESP_LONE_NS / frame_time(c), ESP_GRANT_LONE,
			   ESP_LONE_MAX));
}

/**
 * esp_qctl_arrivals() - measure the time that a frame takes on the wire
 * @c:		control
 * @arrived:	packets that have arrived so far
 * @rtt:	a round trip, microseconds
 * @now:	microseconds
 *
 * To be called before each esp_qctl_sample(). While senders are held
 * back, packets arrive as fast as the link lets them; the shortest time of many
 * stretches is taken for that.
 */
void esp_qctl_arrivals(struct esp_qctl *c, u32 arrived, u32 rtt, u64 now)
{
	u64 pause = max_t(u64, 8 * ESP_STRETCH_US, 4 * (u64)rtt);
	u64 took = now - c->stretch;
	u32 n = arrived - c->arrived;

	c->total = arrived;
	if (c->busy && took < pause) {
		if (took < ESP_STRETCH_US || n < ESP_STRETCH_FRAMES)
			return;
		if (!READ_ONCE(c->no_wire))	/* memory is no link */
			frame_took(c, div_u64(1000 * took, n), rtt, now);
	}
	c->stretch = now;
	c->arrived = arrived;
}

/**
 * esp_qctl_wire_time() - how long packets take on the wire
 * @c:	control
 * @n:	packets, one after the other
 *
 * Return: microseconds
 */
u32 esp_qctl_wire_time(const struct esp_qctl *c, u32 n)
{
	u32 ns = frame_time(c);

	ns = ns ? min_t(u32, ns, ESP_FRAME_NS_MAX) : ESP_FRAME_NS;
	return div_u64((u64)min_t(u32, n, 4096) * ns, 1000);
}

/* Does the way hold less than it would have to? Packets were lost not long ago. */
static bool lossy(const struct esp_qctl *c, u64 now)
{
	u64 lost = READ_ONCE(c->lost);

	return lost && (s64)(now - lost) < (s64)ESP_LOSSY_US;
}

/*
 * How far permission may run ahead of the link, nanoseconds. Where a super-packet
 * takes less time than a timer is late, so much that nobody waits for timers; not
 * where packets are lost: what runs ahead comes to a port at once.
 */
static u32 pace_slack(const struct esp_qctl *c, u64 now)
{
	u32 frames = ESP_PACE_FRAMES * frame_time(c);

	return frames >= ESP_PACE_NS || lossy(c, div_u64(now, 1000)) ?
	       frames : ESP_PACE_NS;
}

/**
 * esp_qctl_pace() - may permission leave now, as far as the link keeps up?
 * @c:		control
 * @open:	packets granted and not arrived
 * @count:	esp_recv_count
 * @now:	nanoseconds
 *
 * After a pause much of the budget is free. Given at once, it would arrive at
 * once and not fit into a port that holds less than the budget: a link that is
 * long carries more than its port holds. So beyond ESP_GRANT_LONE packets
 * permission leaves hardly faster than frames came. Not while the budget is
 * growing fast: how fast the link is isn't known yet. Nor without a wire.
 *
 * Return: nanoseconds to wait; 0: it may
 */
u32 esp_qctl_pace(const struct esp_qctl *c, int open, int count, u64 now)
{
	s64 ahead = atomic64_read(&c->paced) - now;
	u32 slack;

	if (open < ESP_GRANT_LONE || READ_ONCE(c->fast) || ahead <= 0 ||
	    esp_qctl_no_wire(c, count))
		return 0;
	slack = pace_slack(c, now);
	if (ahead <= slack)
		return 0;
	return min_t(u64, ahead - slack, ESP_PACE_MAX);
}

/**
 * esp_qctl_spend() - permission leaves
 * @c:		control
 * @n:		packets
 * @now:	nanoseconds
 *
 * Two that leave at the same moment may both count from there.
 */
void esp_qctl_spend(struct esp_qctl *c, u32 n, u64 now)
{
	u64 frame = frame_time(c), from = atomic64_read(&c->paced);

	/* what was measured may have changed, and not all had to wait */
	from = clamp_t(u64, from, now, now + pace_slack(c, now));
	atomic64_set(&c->paced, from + div_u64(n * frame * 8, 9));
}

/*
 * Queueing that is not yet congestion, microseconds. Packets of a burst wait
 * for each other, half of it on the average. After a loss it is less than a small
 * port holds, however fast that is.
 */
static u32 extra_bound(const struct esp_qctl *c, const struct esp_policy *p,
		       int count, u64 now)
{
	u32 least = ESP_EXTRA_US;
	u32 frames = max_t(u32, ESP_EXTRA_FRAMES,
			   esp_policy_grant(p, c, 0, count) / 2);

	if (lossy(c, now))
		least = clamp_t(u32, esp_qctl_wire_time(c, ESP_EXTRA_LOSSY_FRAMES),
				ESP_EXTRA_LEAST_US, ESP_EXTRA_LOSSY_US);
	return max_t(u32, least, esp_qctl_wire_time(c, frames));
}

/*
 * Is the link idle for a quarter of the time, or more? Then nothing waits for it:
 * round trips are long because a host is slow to wake up, or takes frames many
 * at a time. Of a lone sender, which can tell by what arrives; a pause of its own
 * says nothing.
 */
static bool link_idle(struct esp_qctl *c, int count, u32 round, u64 now)
{
	u64 took = now - c->looked, ns = frame_time(c);
	u32 n = c->total - c->seen;

	c->seen = c->total;
	c->looked = now;
	return count <= 1 && ns && took < 4 * (u64)round + 2 * ESP_ROUND_US &&
	       ns * n < 750 * took;
}

/*
 * A queue that never empties hides the smallest round trip. So it is made to,
 * for two round trips. Returns true while that goes on.
 */
static bool drain(struct esp_qctl *c, const struct esp_policy *p, u32 median,
		  u64 now)
{
	if (c->saved) {
		if (now - c->drained < 2 * (u64)median)
			return true;
		set_q(c, p, c->saved);
		c->saved = 0;
		c->last = now;
		return true;
	}
	if (!c->drained || now - c->drained > 4 * (u64)ESP_DRAIN_US)
		c->drained = now;	/* it was idle */
	if (now - c->drained < ESP_DRAIN_US)
		return false;
	c->drained = now;
	c->saved = c->q;
	WRITE_ONCE(c->q, ESP_GRANT_MIN);
	return true;
}

/*
 * Is there no wire any more, or again one? What the budget was meanwhile says nothing
 * of that.
 */
static bool look_for_wire(struct esp_qctl *c, const struct esp_policy *p, int count,
			  u32 min_rtt, u64 now)
{
	bool none = READ_ONCE(c->whole) && count <= 1 && min_rtt <= ESP_NO_WIRE_RTT_US &&
		    !lossy(c, now);

	if (none && !c->wire_q) {
		c->wire_q = c->saved ? c->saved : c->q;
	} else if (!none && c->wire_q) {
		set_q(c, p, min(c->saved ? c->saved : c->q, c->wire_q));
		c->saved = 0;
		c->wire_q = 0;
	}
	WRITE_ONCE(c->no_wire, none);
	return none;
}

/**
 * esp_qctl_sample() - adapt the budget, once a round trip
 * @c:		control
 * @p:		policy
 * @count:	esp_recv_count
 * @median:	of the round's samples, microseconds
 * @min_rtt:	smallest round trip to this peer
 * @now:	microseconds
 *
 * Queueing shows as round trips above the smallest. Too much of it: the budget
 * that would have caused three quarters of the bound. Little: more, but only
 * if the budget held senders back for a whole round trip, so that what was
 * measured is its doing.
 */
void esp_qctl_sample(struct esp_qctl *c, const struct esp_policy *p,
		     int count, u32 median, u32 min_rtt, u64 now)
{
	u32 extra = median > min_rtt ? median - min_rtt : 0;
	u32 bound, q = c->q;
	/* one sample, whatever a peer claims, holds nobody up for long */
	u32 round = min_t(u64, median, 4 * (u64)min_rtt + ESP_ROUND_US);
	u8 limited = c->limited;
	bool idle;

	bound = look_for_wire(c, p, count, min_rtt, now) ? ESP_NO_WIRE_US :
		extra_bound(c, p, count, now);
	if (drain(c, p, round, now)) {
		link_idle(c, count, round, now);
		return;
	}
	if ((s64)(now - c->last) < (s64)round)
		return;
	c->last = now;
	WRITE_ONCE(c->limited, 0);
	WRITE_ONCE(c->busy, 0);
	idle = link_idle(c, count, round, now) && q <= ESP_Q_IDLE;
	if (extra > bound && !idle) {
		WRITE_ONCE(c->fast, 0);
		q = div_u64((u64)q * (min_rtt + bound * 3 / 4), median);
		set_q(c, p, max(q, c->q / 2));
		c->last = now + round;	/* before it shows */
	} else if (!limited) {
		c->full = 0;
	} else if (!c->full) {
		c->full = now;
	} else if (c->fast && extra <= bound / 2) {
		set_q(c, p, q + min_t(u32, q, ESP_GROW_MAX));
	} else if (extra <= bound * 7 / 8) {
		WRITE_ONCE(c->fast, 0);
		set_q(c, p, q + q / 16 + 1);
	} else if (idle) {
		WRITE_ONCE(c->fast, 0);
		set_q(c, p, min_t(u32, q + q / 4 + 1, ESP_Q_IDLE));
	}
}

/**
 * esp_qctl_loss() - packets were lost: budget × 0.7, once a round trip
 * @c:		control
 * @p:		policy
 * @srtt:	round trip, microseconds
 * @now:	microseconds
 */
void esp_qctl_loss(struct esp_qctl *c, const struct esp_policy *p, u32 srtt,
		   u64 now)
{
	WRITE_ONCE(c->lost, now);
	WRITE_ONCE(c->no_wire, 0);	/* what loses packets is one, or as good as one */
	if ((s64)(now - c->last) < (s64)srtt || c->saved)
		return;
	c->last = now;
	WRITE_ONCE(c->fast, 0);
	set_q(c, p, c->q * 7 / 10);
}

/**
 * esp_advice_handshake() - first burst for a new peer (rule 21)
 * @pool:	F
 * @given:	packets that others may start with already
 *
 * Return: packets: the largest power of two up to half of what is left, at most
 * 32; 1 if one is left
 */
u32 esp_advice_handshake(u32 pool, u32 given)
{
	u32 half = pool > given ? (pool - given) / 2 : 0;
	u32 n = 1;

	if (!half)
		return pool > given;
	while (n * 2 <= half && n < ESP_ADVICE_HANDSHAKE)
		n *= 2;
	return n;
}

/**
 * esp_advice_connected() - first burst of a connected peer (rule 21)
 * @pool:	F
 * @given:	packets that all peers may start with, @own included
 * @own:	this peer's share of that
 * @peers:	connected peers, this one included
 *
 * Return: packets: an equal share, but no raise beyond what is left
 */
u32 esp_advice_connected(u32 pool, u32 given, u32 own, u32 peers)
{
	u32 n = min_t(u32, ESP_ADVICE_MAX, pool / max_t(u32, peers, 1));
	u32 left = pool > given ? pool - given : 0;

	return n > own ? min_t(u32, n, own + left) : n;
}
