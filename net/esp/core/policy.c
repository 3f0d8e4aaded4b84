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
 * esp_policy_ask() - return the remaining grant at which a sender gets the next one
 * @p:		policy
 * @c:		control, with the budget
 * @count:	esp_recv_count
 *
 * A grant is due when half of the last one is left, so that the sender still has packets to
 * send when the next one comes. It is due earlier if what is left is no more than the sender's
 * share of the budget. So no sender has more than a share and a grant, and a sender that has
 * less catches up.
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
 * esp_qctl_wire_time() - compute the time that packets take on the wire
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
 * esp_qctl_pace() - compute how long a grant has to wait until the link keeps up
 * @c:		control
 * @open:	packets granted and not arrived
 * @count:	esp_recv_count
 * @now:	nanoseconds
 *
 * After a pause much of the budget is free. Packets that are all granted at once also arrive
 * at once. They do not fit into a port that holds less than the budget, because a long link
 * carries more than its port holds. So beyond ESP_GRANT_LONE outstanding packets, grants leave
 * hardly faster than frames came. There is no pace in two cases: while the budget grows fast,
 * because the rate of the link is not known yet, and without a wire.
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

/* Packets in 2^20 microseconds. */
static u32 rate_of(u32 packets, u64 us)
{
	us = clamp_t(u64, us, 1, ~0u);
	return min_t(u64, div_u64((u64)packets << 20, us), ESP_RATE_MAX);
}

/* Nothing can be told from what is being tried. A budget that was cut stays so. */
static void give_up(struct esp_qctl *c, const struct esp_policy *p)
{
	if (c->trial == ESP_TRY_MORE) {
		WRITE_ONCE(c->fast, 0);
		set_q(c, p, c->old_q);
	}
	c->trial = ESP_TRY_NOTHING;
	c->looks = 0;
}

/*
 * Is the link idle for more than a quarter of the time, by the packets that arrive from a
 * single sender? Then no queue waits for the link. A pause of the sender proves nothing. A
 * short time proves nothing either, because a sender whose own link is busy with other
 * receivers looks the same until its message ends: the link must have been idle for
 * ESP_IDLE_US. After twice that time, one look at a busy link does not count, because a host
 * that was late takes many packets at once.
 */
static bool link_idle(struct esp_qctl *c, bool lone, u64 now)
{
	u64 took = now - c->looked, ns = frame_time(c);

	lone = lone && ns;
	if (lone && ns * (c->total - c->seen) < 750 * took)
		c->idle = min_t(u64, c->idle + took, 2 * ESP_IDLE_US);
	else
		c->idle /= 2;
	return lone && c->idle >= ESP_IDLE_US;
}

/*
 * Are a lone sender's round trips uneven, and have been for some looks? Then they don't tell of
 * a queue that stands, but of a host that waits for its processor. From one look to the next
 * they change (jitter as of RFC 3550, A.8) by a fifth of their mean, which is well beyond the
 * smallest; afterwards by an eighth. A step from short ones to long ones is over before that.
 */
static bool uneven(struct esp_qctl *c, bool lone, u32 median, u32 min_rtt)
{
	bool was = c->uneven >= ESP_UNEVEN_LOOKS;
	u32 d;

	if (!lone || !c->mean) {
		c->mean = lone ? 16 * median : 0;
		c->before = median;
		c->jitter = 0;
		c->uneven = 0;
		return false;
	}
	d = max(median, c->before) - min(median, c->before);
	c->before = median;
	c->mean += median - c->mean / 16;
	c->jitter += d - c->jitter / 16;
	if ((was ? 8 : 5) * (u64)c->jitter < c->mean || c->mean / 16 < min_rtt + ESP_UNEVEN_US)
		c->uneven = 0;
	else if (!was)
		c->uneven++;
	return c->uneven >= ESP_UNEVEN_LOOKS;
}

/*
 * Reduce the budget to what it was before it grew for uneven round trips, because they are
 * uneven no more, packets were lost, or there is another sender.
 */
static void hand_back(struct esp_qctl *c, const struct esp_policy *p)
{
	give_up(c, p);
	if (c->wire_q)
		c->wire_q = min(c->wire_q, c->even_q);
	if (c->saved)
		c->saved = min(c->saved, c->even_q);
	else
		set_q(c, p, min(c->q, c->even_q));
	c->even_q = 0;
	c->mean = 0;
}

/*
 * How fast packets come with this budget, if it is what holds senders back. A
 * pause of theirs says nothing. Returns whether the budget holds them back.
 */
static bool count_rate(struct esp_qctl *c, const struct esp_policy *p, u32 round,
		       bool limited, u64 now)
{
	u64 took = now - c->looked;
	u32 rate = rate_of(c->total - c->seen, took);

	/* packets on their way, by Little's law: about as many as there may be */
	if (((u64)rate * round) >> 20 >= c->q - c->q / 4)
		limited = true;
	c->seen = c->total;
	c->looked = now;
	if (!limited || (c->looks && 2 * took > 5 * (u64)round)) {
		give_up(c, p);
	} else if (c->looks && c->looks < ESP_LOOKS_MAX) {
		c->looks++;
		c->rate = rate_of(c->total - c->from, now - c->from_at);
	} else {
		c->looks = 1;
		c->from = c->total;
		c->from_at = now;
	}
	return limited;
}

/* A lone sender has that much on its way whatever the budget. */
static u32 may_fly(const struct esp_qctl *c, int count, u32 q)
{
	return count <= 1 ? max(q, READ_ONCE(c->lone)) : q;
}

/*
 * And if its frames arrive many at a time, so much: a whole grant leaves for what is
 * missing of the budget, however little that is.
 */
static u32 in_grants(const struct esp_qctl *c, const struct esp_policy *p, int count, u32 q)
{
	u32 n = clamp_t(u32, q / 4, ESP_GRANT_MIN, ESP_GRANT_MAX);
	u32 most = READ_ONCE(p->burst_length);

	if (count > 1)
		return q;
	if (most)
		n = min(n, most);
	return max(DIV_ROUND_UP(q, n) * n, READ_ONCE(c->lone));
}

/* The next larger budget worth trying: a quarter more on its way, in whole grants. */
static u32 more_budget(const struct esp_qctl *c, const struct esp_policy *p, int count, u32 q)
{
	u32 fly = in_grants(c, p, count, q), more = fly + fly / 4 + 1;

	if (count > 1)
		return more;
	if (more <= 4 * ESP_GRANT_MAX)
		return more - more % 4;		/* four grants */
	return (more + ESP_GRANT_MAX / 2) / ESP_GRANT_MAX * ESP_GRANT_MAX;
}

static void try_budget(struct esp_qctl *c, u8 what, u32 median, u32 extra)
{
	c->trial = what;
	c->old_q = c->q;
	c->old_fast = c->fast;
	c->old_rate = c->rate;
	c->old_rtt = median;
	c->old_extra = extra;
}

/* Round trips are too long: the budget that would make them short enough. */
static void cut(struct esp_qctl *c, const struct esp_policy *p, u32 median, u32 aim,
		u32 round, u64 now)
{
	u32 q = div_u64((u64)c->q * aim, median);

	WRITE_ONCE(c->fast, 0);
	set_q(c, p, max(q, c->q / 2));
	c->looks = 0;
	c->last = now + round;	/* before it shows */
}

static void not_again(struct esp_qctl *c, u32 round, u64 now)
{
	c->wait = min_t(u64, max_t(u64, 2 * c->wait, ESP_TRY_ROUNDS * (u64)round),
			ESP_TRY_MAX_US);
	c->next_try = now + c->wait;
}

/*
 * End a trial. A full link carries as much with a smaller budget, and no more with a larger
 * one. If it carried less with the smaller budget, or more with the larger one, round trips are
 * long because hosts and cards take many frames at a time, and not for a queue: @held is what
 * they may be longer by. After a cut it is at most @bound more than @extra, because the value
 * before the trial may be that of a sender whose shortest round trip was luck.
 */
static void tried(struct esp_qctl *c, const struct esp_policy *p, int count, u32 median,
		  u32 extra, u32 bound, u32 round, u64 now)
{
	u32 before = may_fly(c, count, c->old_q), after = may_fly(c, count, c->q);
	bool more = c->trial == ESP_TRY_MORE;
	u64 mid;

	/* half of what was taken away, a quarter of what was added */
	if (more) {
		before = in_grants(c, p, count, c->old_q);
		after = in_grants(c, p, count, c->q);
		mid = div_u64((u64)c->old_rate * (3 * before + after), 4 * before);
	} else {
		mid = div_u64((u64)c->old_rate * (before + after), 2 * before);
	}

	if (more && c->rate < mid) {
		give_up(c, p);
		not_again(c, round, now);
	} else if (more || (c->rate < mid && after < before - before / 8)) {
		/* round trips were long for a reason that lasts, and that is not the budget */
		if (more)
			c->held = max(c->held, c->old_extra);
		else if ((u64)median * 2 * before > (u64)c->old_rtt * (before + after))
			c->held = max(c->held, min(c->old_extra, extra + bound));
		c->wait /= 2;
		WRITE_ONCE(c->fast, more ? 0 : c->old_fast);
		if (!more)
			set_q(c, p, c->old_q);
	}
	c->trial = ESP_TRY_NOTHING;
	c->looks = 0;
}

/*
 * A queue that never empties hides the smallest round trip. So it is made to, for two of the
 * longest round trips: what was granted to the farthest sender is still to arrive. Returns
 * true while that goes on. Another processor may have read the clock earlier, and come later.
 */
static bool drain(struct esp_qctl *c, const struct esp_policy *p, u32 round, u64 now)
{
	s64 since = now - c->drained;

	if (c->saved) {
		if (since < c->drain_us)
			return true;
		set_q(c, p, c->saved);
		c->saved = 0;
		c->last = now;
		c->looked = now;	/* no pause of the sender's */
		c->seen = c->total;
		return true;
	}
	c->longest = max(c->longest, round);
	if (!c->drained || since > 4 * (s64)ESP_DRAIN_US) {
		c->drained = now;	/* it was idle */
		c->held = 0;
		return false;
	}
	if (since < ESP_DRAIN_US)
		return false;
	c->drained = now;
	c->drain_us = min(2 * c->longest, ESP_DRAIN_MAX_US);
	c->longest = 0;
	c->saved = c->q;
	c->held = 0;
	c->looks = 0;
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

	if (none != !!c->wire_q) {
		give_up(c, p);
		c->held = 0;
	}
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
 * measured is its doing. But round trips also grow where a card holds its interrupts
 * back. So each cut is on trial: if less comes through then, it is taken back, and what
 * the round trips had too much of isn't counted any more (@held). From then on they
 * don't tell when the link is full: the budget grows while that brings more through.
 */
void esp_qctl_sample(struct esp_qctl *c, const struct esp_policy *p,
		     int count, u32 median, u32 min_rtt, u64 now)
{
	/* one sample, whatever a peer claims, holds nobody up for long */
	u32 round = min_t(u64, median, min_t(u64, 4 * (u64)min_rtt + ESP_ROUND_US,
					     ESP_ROUND_MAX_US));
	u32 extra = median > min_rtt ? median - min_rtt : 0, over;
	bool none = look_for_wire(c, p, count, min_rtt, now), may_try, idle, holds, lone;
	u32 bound = none ? ESP_NO_WIRE_US : extra_bound(c, p, count, now);
	u32 floor, more, most, q;
	u8 limited = c->limited;

	if (count > 1 && c->even_q)
		hand_back(c, p);
	if (!c->trial && drain(c, p, round, now))
		return;
	if ((s64)(now - c->last) < (s64)round)
		return;
	c->last = now;
	WRITE_ONCE(c->limited, 0);
	WRITE_ONCE(c->busy, 0);
	/* what comes after a pause says nothing */
	lone = count <= 1 && now - c->looked < 4 * (u64)round + 2 * ESP_ROUND_US;
	idle = link_idle(c, lone, now);
	holds = count_rate(c, p, round, limited, now);
	most = uneven(c, lone, median, min_rtt) && !lossy(c, now) ? ESP_Q_UNEVEN : ESP_Q_IDLE;
	if (!c->trial && c->q <= c->even_q)
		c->even_q = 0;		/* it has been cut */
	if (c->even_q && most == ESP_Q_IDLE) {
		hand_back(c, p);
		c->last = now + round;	/* before it shows */
		return;
	}
	q = c->q;
	idle = idle && q <= most;
	over = extra - min(extra, c->held);
	floor = max(p->q_min, may_fly(c, count, 0));
	if (c->trial) {
		/* only what is a good deal smaller shows */
		if (c->trial == ESP_TRY_LESS && over > bound && q > floor &&
		    (q > c->old_q - c->old_q / 4 || over > 4 * bound))
			cut(c, p, median, min_rtt + c->held + bound * 3 / 4, round, now);
		else if (c->looks > ESP_TRY_LOOKS)
			tried(c, p, count, median, extra, bound, round, now);
		return;
	}
	more = more_budget(c, p, count, max(q, floor));
	may_try = !none && max(q, floor) < p->q_max &&
		  esp_qctl_wire_time(c, in_grants(c, p, count, more) -
				     in_grants(c, p, count, max(q, floor))) <= ESP_TRY_US;
	if (over > bound && idle && q < most) {
		/* no try is needed to see that it is no queue */
		c->full = 0;
		WRITE_ONCE(c->fast, 0);
		if (limited || (holds && q >= floor)) {
			set_q(c, p, min_t(u32, q + q / 4 + 1, most));
			if (c->q > ESP_Q_IDLE && !c->even_q)
				c->even_q = max_t(u32, q, ESP_Q_IDLE);
			c->looks = 0;
		}
	} else if (over > bound && over <= 4 * bound && c->looks == 1 && q > floor && !none) {
		c->full = 0;	/* another look, to compare with */
	} else if (over > bound && !idle && q > p->q_min) {
		if (c->looks > 1 && q > floor && !none)
			try_budget(c, ESP_TRY_LESS, median, extra);
		cut(c, p, median, min_rtt + c->held + bound * 3 / 4, round, now);
	} else if (may_try && (over > bound || (c->held && !lossy(c, now)))) {
		c->full = 0;
		if (c->looks <= ESP_TRY_LOOKS || now < c->next_try)
			return;
		try_budget(c, ESP_TRY_MORE, median, extra);
		WRITE_ONCE(c->fast, 1);		/* no pace */
		set_q(c, p, more);
		c->looks = 0;
		c->last = now + round;
	} else if (!limited || over > bound) {
		c->full = 0;
	} else if (!c->full) {
		c->full = now;
	} else if (c->fast && over <= bound / 2) {
		set_q(c, p, q + min_t(u32, q, ESP_GROW_MAX));
	} else if (over <= bound * 7 / 8) {
		WRITE_ONCE(c->fast, 0);
		/* slowly where it can't be seen that it is too large, before it is lost */
		set_q(c, p, q + q / (c->held && count > 1 ? 64 : 16) + 1);
	}
}

/**
 * esp_qctl_loss() - multiply the budget by 0.7 after a loss, once a round trip
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
	c->next_try = max(c->next_try, now + min_t(u64, ESP_TRY_ROUNDS * (u64)srtt,
						   ESP_TRY_MAX_US));
	if (c->trial) {
		WRITE_ONCE(c->fast, 0);
		give_up(c, p);
	}
	if ((s64)(now - c->last) < (s64)srtt || c->saved)
		return;
	c->last = now;
	c->looks = 0;
	WRITE_ONCE(c->fast, 0);
	set_q(c, p, c->q * 7 / 10);
}

/**
 * esp_advice_handshake() - compute the first burst of a new peer (rule 21)
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
 * esp_advice_connected() - compute the first burst of a connected peer (rule 21)
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
