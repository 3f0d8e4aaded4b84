// SPDX-License-Identifier: GPL-2.0-only
/*
 * The budget of a receiving link, the buckets of its sending hosts, and first bursts.
 *
 *   budget = BDP + min(BDP / 2, 32) + 8 + grow		packets granted and not yet arrived
 *   a sole sender's: BDP + 44 + 8 + grow
 *
 *   BDP	rate of the link times base round trip
 *   + BDP / 2	a queue at the port, so that the link stays full while senders differ
 *   + 44	a GSO packet
 *   + 8	a host that is late
 *   + grow	what hosts and cards take longer than the wire; the link's use shows it
 *
 * All times are nanoseconds of one clock. A caller on another processor may have read it a
 * little earlier: since() takes a negative time for none.
 */
#include "budget.h"

static u64 since(u64 now, u64 then)
{
	return (s64)(now - then) > 0 ? now - then : 0;
}

/* Frames that the link carries in a time, ns; rounded up, and at most ESP_FRAMES_MAX. */
static u32 frames_in(const struct esp_budget *b, u64 ns)
{
	u32 frame = READ_ONCE(b->frame);
	u64 n = div_u64((min_t(u64, ns, ESP_STALE_NS) << 4) + frame - 1, frame);

	return min_t(u64, n, ESP_FRAMES_MAX);
}

/* Shortest time of a look, ns. */
static u64 look_time(const struct esp_budget *b)
{
	return clamp_t(u64, 2 * (u64)b->rtt.v, ESP_LOOK_NS, ESP_STALE_NS / 2);
}

/*
 * Compute the time of a full frame on a link that is full, 1/16 ns. A link whose rate is not told
 * is full if it carries what it carried at best. 0: unknown
 */
static u32 full_frame(const struct esp_budget *b)
{
	u32 told = READ_ONCE(b->told);

	return told ? told : esp_min_rtt_get(&b->fastest);
}

/* Packets that a sole sender may have outstanding: a GSO packet in the queue at the port. */
static u32 sole_size(const struct esp_budget *b)
{
	return min(READ_ONCE(b->bdp) + ESP_GRANT_MAX + ESP_SPARE + READ_ONCE(b->grow),
		   READ_ONCE(b->most));
}

/* Has there been one sender at a time only, for as long as a crest counts? */
static bool one_sends(const struct esp_budget *b)
{
	return max(READ_ONCE(b->begins.crest[0]), READ_ONCE(b->begins.crest[1])) <= 1;
}

/*
 * Time that the link takes for @n outstanding packets, as far as a port has room for them, ns. A
 * packet that took longer, and longer than any before, was delayed by another queue on the way, by
 * the host, or by a card.
 */
static u32 late_from(const struct esp_budget *b, u32 n)
{
	u64 frame = full_frame(b);

	if (!frame)
		frame = b->frame;
	return min_t(u64, n * frame >> 4, b->base.v + (ESP_PORT_FRAMES * frame >> 4));
}

/* Compute the budget anew, after a change of rate, base round trip or growth. */
static void budget_set(struct esp_budget *b)
{
	u32 size;

	WRITE_ONCE(b->bdp, max_t(u32, frames_in(b, b->base.v), 2));
	size = b->bdp + min_t(u32, b->bdp / 2, ESP_PORT_FRAMES / 2) + ESP_SPARE + b->grow;
	WRITE_ONCE(b->size, min(max(size, b->least), b->most));
	WRITE_ONCE(b->late[0], late_from(b, b->size));
	WRITE_ONCE(b->late[1], late_from(b, max(b->size, sole_size(b))));
}

/*
 * Choose the frame time that counts: that of the reported rate, or else the one that was measured.
 * The budget is larger than a BDP. So if the link is faster, the next measurement shows it.
 */
static void budget_set_frame(struct esp_budget *b)
{
	u32 measured = esp_min_rtt_get(&b->fastest);

	if (b->told)
		WRITE_ONCE(b->frame, b->told);
	else if (measured)
		WRITE_ONCE(b->frame, measured);
	budget_set(b);
}

/**
 * esp_budget_rate() - Set the rate of the link
 * @b:		budget
 * @mbit:	rate, Mbit/s, as ethtool or the administrator tells it; 0: unknown
 * @mtu:	MTU of the device, bytes; at most 65535
 *
 * While the rate is unknown, the fastest mean of ESP_METER_NS in the last ten seconds stands for
 * it, and 1 Gbit/s before anything was measured.
 */
void esp_budget_rate(struct esp_budget *b, u32 mbit, u32 mtu)
{
	u32 bytes = clamp_t(u32, mtu, 64, 65535) + ESP_FRAMING;
	u32 told = mbit ? clamp_t(u64, div_u64(bytes * 8000ull * 16, mbit), 1, ~0u) : 0;

	if (b->frame_bytes == bytes && b->told == told) {
		budget_set(b);
		return;
	}
	/* what was measured is a time of other frames, or of another link */
	memset(&b->fastest, 0, sizeof(b->fastest));
	memset(&b->meter, 0, sizeof(b->meter));
	b->frame_bytes = bytes;
	WRITE_ONCE(b->told, told);
	if (!told)
		WRITE_ONCE(b->frame, bytes * 8 * 16);
	budget_set_frame(b);
}

/**
 * esp_budget_limits() - Set the administrator's bounds
 * @b:		budget
 * @least:	lower bound of the budget, packets
 * @most:	upper bound, packets, at least 1; it has precedence
 * @pool:	packets of all first bursts together
 */
void esp_budget_limits(struct esp_budget *b, u32 least, u32 most, u32 pool)
{
	b->least = least;
	b->most = max_t(u32, most, 1);
	b->pool = pool;
	budget_set(b);
}

/**
 * esp_budget_init() - Begin with a guess of the base round trip
 * @b:		budget
 * @mbit:	see esp_budget_rate()
 * @mtu:	see esp_budget_rate()
 */
void esp_budget_init(struct esp_budget *b, u32 mbit, u32 mtu)
{
	memset(b, 0, sizeof(*b));
	b->base.v = ESP_BASE_NS;
	b->rtt.v = ESP_BASE_NS;
	b->begins.window = 1;
	b->most = ~0u;
	b->pool = ESP_PORT_FRAMES;
	esp_budget_rate(b, mbit, mtu);
}

/* Has the budget held senders back all the time since @then? */
static bool held_since(const struct esp_budget *b, u64 then)
{
	return (s64)(then - b->idle) > 0;
}

/*
 * Measure the rate: the mean over the running time, once that is long enough and enough frames
 * have come. Cards hand over at once what came in a part of a round trip, so a mean over 16 of
 * them is wrong by a sixteenth at most. A process that was held up handles at once what came in
 * much longer, so the slower one of two means counts. A link that carries fewer frames in
 * ESP_STALE_NS has paused. A mean that is slower than what the link is supposed to carry counts
 * only if the budget has held senders back all the time: otherwise they had no more to send.
 */
static void budget_meter(struct esp_budget *b, u64 now)
{
	u64 took = since(now, b->meter.since), frame, least;
	u32 bytes = atomic_read(&b->bytes), n = bytes - b->meter.bytes;
	u32 before = b->meter.frame;

	least = min_t(u64, max_t(u64, 16 * (u64)b->rtt.v, ESP_METER_NS), ESP_STALE_NS / 2);
	if (took < least ||
	    (took < ESP_STALE_NS &&
	     n < (took < ESP_STALE_NS / 10 ? ESP_SLACK_FRAMES : 2) * b->frame_bytes))
		return;
	b->meter.frame = 0;
	if (took < ESP_STALE_NS) {
		frame = clamp_t(u64, div_u64((took << 4) * b->frame_bytes, n), 1, ~0u);
		if (frame < b->frame || held_since(b, b->meter.since))
			b->meter.frame = frame;
		if (before && b->meter.frame) {
			esp_min_rtt_sample(&b->fastest, max_t(u64, frame, before),
					   div_u64(now, 1000));
			budget_set_frame(b);
		}
	}
	b->meter.since = now;
	b->meter.bytes = bytes;
}

/**
 * esp_budget_measured() - Tell the rate that was measured in the last ten seconds
 * @b:	budget; no lock is needed
 *
 * Return: Mbit/s; 0: none
 */
u32 esp_budget_measured(const struct esp_budget *b)
{
	u32 frame = esp_min_rtt_get(&b->fastest);

	return frame ? div_u64(READ_ONCE(b->frame_bytes) * 8000ull * 16, frame) : 0;
}

/**
 * esp_burst_window() - Compute the time within which first bursts meet at the port
 * @b:	budget; no lock is needed
 *
 * Return: ns
 */
u64 esp_burst_window(const struct esp_budget *b)
{
	u64 wire = esp_budget_wire_time(b, ESP_PORT_FRAMES);

	return 2 * max(2 * (u64)READ_ONCE(b->base.v), wire);
}

/*
 * Begin a new period if the running one is over: @v[1] is the value of the one before. Returns how
 * many have passed.
 */
static u32 age(u32 v[2], u64 *began, u64 period, u64 now)
{
	u64 t = since(now, *began);

	if (t < period)
		return 0;
	v[1] = t < 2 * period ? v[0] : 0;
	v[0] = 0;
	*began = now;
	return t < 2 * period ? 1 : 2;
}

static void begins_age(struct esp_budget *b, u64 now)
{
	struct esp_begins *s = &b->begins;
	u32 passed = age(s->n, &s->since, esp_burst_window(b), now);

	if (passed) {
		s->told[1] = passed < 2 ? s->told[0] : 0;
		s->told[0] = 0;
	}
	s->window += passed;
	age(s->crest, &s->crest_since, ESP_CREST_NS, now);
}

/**
 * esp_budget_look() - Judge the use of the link, and measure its rate
 * @b:		budget
 * @waits:	a grant waits for the budget or the pace, and for nothing else
 * @now:	ns
 *
 * To be called once a round trip of each connection with an announced transmission.
 *
 * If the link was not full while grants waited for nothing but the budget, no queue stood at the
 * port, and the budget may grow. By Little's law the link needs as many packets beyond the BDP as
 * it carries in the time by which round trips are longer than @base. The budget approaches that
 * by an eighth in each look. If the link was full, the same packets may only make the queue
 * longer, and the budget shrinks slowly. While the rate is only supposed, nothing changes.
 */
void esp_budget_look(struct esp_budget *b, bool waits, u64 now)
{
	u32 bytes = atomic_read(&b->bytes), n = bytes - b->look.bytes;
	u64 took = since(now, b->look.since), carried;
	u32 most, full;

	if (!waits)
		b->idle = now;
	begins_age(b, now);
	budget_meter(b, now);
	full = full_frame(b);
	if (took < look_time(b))
		return;
	if (full && held_since(b, b->look.since) && took < ESP_STALE_NS) {
		carried = div_u64((u64)n * full, b->frame_bytes) * 1000 >> 4;
		most = b->rtt.v > b->base.v ? frames_in(b, b->rtt.v - b->base.v) : 0;
		b->grow = min(b->grow, most);
		if (carried < 950 * took && (s64)(now - b->calm) >= 0)
			b->grow += DIV_ROUND_UP(most - b->grow, 8);
		else if (carried > 980 * took)
			b->grow -= DIV_ROUND_UP(b->grow, 32);
		budget_set(b);
	}
	b->look.since = now;
	b->look.bytes = bytes;
}

/* Move the median towards @x, unless that is close. */
static void vote(struct esp_median *m, u32 x)
{
	u32 near = m->v / 16 + 1;
	bool up = x > m->v;

	if (x <= m->v + near && x + near >= m->v)
		return;
	m->step = up == m->up ? clamp_t(u8, 2 * m->step, 1, 8) : 1;
	m->up = up;
	WRITE_ONCE(m->v, up ? min(x, m->v + near * m->step) : max(x, m->v - m->v / 16 * m->step));
}

/**
 * esp_budget_rtt() - Take the round trips to another host
 * @b:		budget
 * @h:		bucket of the host
 * @least:	smallest round trip to the host in ten seconds, microseconds
 * @rtt:	round trip now, microseconds
 * @senders:	connections with an announced transmission; 1: the host has the only one
 * @now:	ns
 *
 * To be called once a round trip of each connection, whichever end sends on it.
 *
 * A host votes once in a look. Its vote moves the link's value up or down by a step, which doubles
 * while votes agree. So the value becomes the median of the hosts that send (Ma, Muthukrishnan
 * and Sandler, "Frugal Streaming for Estimating Quantiles", 2013), and a host that lies moves it
 * no farther than one that tells the truth. A host that has been the only one for ESP_SOLE_NS sets
 * the values itself. A host that is known to be on this machine has no vote.
 */
void esp_budget_rtt(struct esp_budget *b, struct esp_host *h, u32 least, u32 rtt, int senders,
		    u64 now)
{
	WRITE_ONCE(h->base, 1000 * clamp_t(u32, least, 1, ESP_STALE_NS / 1000));
	rtt = 1000 * clamp_t(u32, rtt, 1, ESP_STALE_NS / 1000);
	if (h->lost && since(now, h->lost) >= ESP_SOLE_NS)
		WRITE_ONCE(h->lost, 0);		/* the queue that it has shown may be gone */
	if (esp_host_near(h)) {			/* its packets pass no port */
		WRITE_ONCE(h->voted, now);
		return;
	}
	if (b->voter != h) {
		b->changed = b->voter ? now : 0;
		b->voter = h;
	}
	if (senders <= 1 && (!b->changed || since(now, b->changed) >= ESP_SOLE_NS)) {
		b->changed = 0;
		WRITE_ONCE(b->base.v, h->base);
		WRITE_ONCE(b->rtt.v, rtt);
		budget_set(b);
	} else if (since(now, h->voted) >= min_t(u64, look_time(b), ESP_VOTE_NS)) {
		WRITE_ONCE(h->voted, now);
		vote(&b->base, h->base);
		vote(&b->rtt, rtt);
		budget_set(b);
	}
}

/* Count rounds and marks of @h from now on, unless this is so already. */
static void host_bound(struct esp_host *h, u64 now)
{
	if (h->bounded)
		return;
	WRITE_ONCE(h->since, now);
	WRITE_ONCE(h->bounded, 1);
}

/**
 * esp_budget_lost() - React to packets that were lost on the way from a host
 * @b:			budget
 * @h:			bucket of the host
 * @outstanding:	packets granted and not arrived, of all hosts
 * @now:		ns
 *
 * A queue that drops packets is long. So a loss counts only if the packet that came after it was
 * late (as in TCP Veno, IEEE JSAC 2003); others are errors of the wire. If it counts, the bucket
 * of the host is halved, at most once a round trip. The growth of the budget is multiplied by 0.7,
 * and the budget does not grow for ESP_CALM_NS; both in proportion to the host's share of the
 * outstanding packets, and once in that time for each host.
 */
void esp_budget_lost(struct esp_budget *b, struct esp_host *h, int outstanding, u64 now)
{
	u32 most = esp_host_most(b, h, 2) * ESP_BUCKET_UNIT, all = max(outstanding, 1), share;

	if (!READ_ONCE(h->is_late))
		return;
	if (h->lost && since(now, h->lost) < max(b->rtt.v, h->base))
		return;
	WRITE_ONCE(h->lost, now);
	h->loss_cap = max_t(u32, min(h->loss_cap, most) / 2, ESP_BUCKET_UNIT);
	host_bound(h, now);
	if (h->slowed && since(now, h->slowed) < ESP_CALM_NS)
		return;
	h->slowed = now;
	share = clamp_t(u32, atomic_read(&h->outstanding), 1, all);
	b->grow -= min_t(u32, b->grow, DIV_ROUND_UP(div_u64(3ull * b->grow * share, all), 10));
	b->calm = max(b->calm, now + div_u64((u64)ESP_CALM_NS * share, all));
	budget_set(b);
}

/**
 * esp_budget_limit() - Compute the packets that may be granted and not yet arrived
 * @b:		budget; no lock is needed
 * @senders:	connections with an announced transmission
 *
 * A sole sender may have a whole GSO packet in the queue at the port: nobody else waits behind it,
 * and few large grants cost both hosts less than many small ones.
 *
 * Return: packets, at least the budget
 */
u32 esp_budget_limit(const struct esp_budget *b, int senders)
{
	u32 size = READ_ONCE(b->size);

	return senders > 1 || !one_sends(b) ? size : max(size, sole_size(b));
}

/**
 * esp_budget_quantum() - Compute the size of a grant
 * @b:	budget
 *
 * Return: packets, ESP_GRANT_MIN ... ESP_GRANT_MAX, and at most the budget
 */
u32 esp_budget_quantum(const struct esp_budget *b)
{
	u32 size = READ_ONCE(b->size);

	return min_t(u32, clamp_t(u32, size / 8, ESP_GRANT_MIN, ESP_GRANT_MAX), size);
}

/**
 * esp_budget_wire_time() - Compute the time that frames take on the link
 * @b:	budget
 * @n:	full frames
 *
 * Return: ns
 */
u64 esp_budget_wire_time(const struct esp_budget *b, u32 n)
{
	return (u64)n * READ_ONCE(b->frame) >> 4;
}

/*
 * Frames by which grants may run ahead of the link. A card that holds frames back hands over many
 * at once, and their tokens come back at once; the budget has grown for that time. A sole sender
 * may have as many grants at once: its own link paces it, and a port has room for their packets.
 * Those of several senders would meet at the port, beside its queue.
 */
static u32 frames_ahead(const struct esp_budget *b, bool sole)
{
	return ESP_SLACK_FRAMES + (sole ? min_t(u32, b->grow, ESP_PORT_FRAMES) : 0);
}

/**
 * esp_budget_wait() - Compute how long the next grant has to wait until the link keeps up
 * @b:		budget
 * @sole:	there is a sole sender
 * @now:	ns
 *
 * Return: ns; 0: it need not wait
 */
u32 esp_budget_wait(const struct esp_budget *b, bool sole, u64 now)
{
	u64 slack = max_t(u64, esp_budget_wire_time(b, frames_ahead(b, sole)),
			  ESP_SLACK_NS);

	return min_t(u64, since(b->paced, now + slack), ESP_STALE_NS);
}

/**
 * esp_budget_due() - Compute for how long the link waits for granted packets
 * @b:	budget
 *
 * A host decides itself when it sends. So a time of the link counts here, and none that hosts
 * report alone.
 *
 * Return: ns
 */
u64 esp_budget_due(const struct esp_budget *b)
{
	return 4 * (u64)max(b->rtt.v, b->base.v) +
	       max_t(u64, esp_budget_wire_time(b, b->size), ESP_LOOK_NS);
}

/**
 * esp_budget_spend() - Account for a grant in the pace
 * @b:		budget
 * @n:		packets
 * @each:	length of a packet with framing, bytes: the mean of this sender's; 0: unknown
 * @now:	ns
 *
 * There is no debt beyond a budget: what was granted and did not come is forgotten.
 *
 * The pace is 1.1 times the rate that was told, or the fastest rate that was measured, if that is
 * higher. So the queue at the port fills again after the link was idle, and a rate that is reported
 * too low does not confirm itself. A rate that was only measured paces nothing: it would keep the
 * link from being faster than before. The budget alone bounds the queue then.
 */
void esp_budget_spend(struct esp_budget *b, u32 n, u32 each, u64 now)
{
	u32 frame = b->told, measured = esp_min_rtt_get(&b->fastest);
	u64 most;

	if (!frame)
		return;
	most = now + esp_budget_wire_time(b, b->size + ESP_SLACK_FRAMES);
	if (b->fastest.since)
		frame = min(frame, measured);
	frame -= frame / 11;
	if ((s64)(b->paced - now) < 0)
		b->paced = now;
	if (each && each < b->frame_bytes)
		frame = div_u64((u64)frame * each, b->frame_bytes);
	b->paced = min(b->paced + ((u64)n * frame >> 4), most);
}

/**
 * esp_budget_busy_from() - Compute the unused permission from which a host is busy
 * @b:	budget of the host's own link, for the rate and for round trips
 *
 * A sender sets BUSY while the packets that receivers permit and that it could not send yet
 * exceed this; it clears BUSY at half of it (SThr of SIRD). A host that sends to this one, and
 * reports short round trips, does not lower it beyond ESP_BASE_NS.
 *
 * Return: packets
 */
u32 esp_budget_busy_from(const struct esp_budget *b)
{
	u32 n = frames_in(b, max3(READ_ONCE(b->rtt.v), READ_ONCE(b->base.v), (u32)ESP_BASE_NS));

	return max_t(u32, n - n / 4, 2);
}

/**
 * esp_host_init() - Initialize the bucket of a host that has sent nothing
 * @h:	bucket
 */
void esp_host_init(struct esp_host *h)
{
	memset(h, 0, sizeof(*h));
	h->busy_cap = ~0u;
	h->loss_cap = ~0u;
	INIT_LIST_HEAD(&h->hold);
	esp_turn_init(&h->turn);
}

/**
 * esp_host_came() - Take note of data packets of a host
 * @b:		budget
 * @h:		bucket; no lock is needed
 * @n:		packets
 * @busy:	they have BUSY
 * @rtt:	round trip that they tell, microseconds; 0: none
 * @now:	ns
 *
 * Return: true if a round trip is over: the caller calls esp_host_round(), with the lock
 */
bool esp_host_came(const struct esp_budget *b, struct esp_host *h, u32 n, bool busy, u32 rtt,
		   u64 now)
{
	u32 base = READ_ONCE(h->base);
	bool late = base && 1000 * (u64)rtt > max(base, READ_ONCE(b->late[one_sends(b)]));

	if (READ_ONCE(h->busy) != busy)
		WRITE_ONCE(h->busy, busy);
	if (READ_ONCE(h->is_late) != late)
		WRITE_ONCE(h->is_late, late);
	if (!READ_ONCE(h->bounded) && !busy)
		return false;
	atomic_add(n, &h->came);
	if (busy)
		atomic_add(n, &h->marked);
	if (late)
		atomic_add(n, &h->late);
	return !READ_ONCE(h->bounded) || since(now, READ_ONCE(h->since)) >=
	       max3(base, READ_ONCE(b->rtt.v) / 4, (u32)ESP_ROUND_NS);
}

/* A bucket that no signal has bounded yet begins at the largest size. */
static void bucket_add(u32 *cap, u32 most)
{
	if (*cap < most)
		*cap += ESP_BUCKET_UNIT;
}

/**
 * esp_host_round() - Adapt the bucket of a host, once a round trip
 * @b:		budget
 * @h:		bucket
 * @now:	ns
 *
 * The first BUSY begins the first round. The rule is that of DCTCP (RFC 8257, section 3.3), with
 * BUSY as the mark: alpha/2 of the bucket is taken if a packet of the round had BUSY; otherwise it
 * grows by one packet, until it is as large as a sole sender's may be. Then the host is as one
 * without a signal: nothing is counted.
 * It keeps ESP_BUSY_LEAST, so that busy hosts, too, are seldom without a packet for a link that
 * is idle. The bucket for losses knows a queue that has overflowed: for ESP_CALM_NS after a loss,
 * late packets are the marks. So that queue does not have to overflow each time.
 */
void esp_host_round(const struct esp_budget *b, struct esp_host *h, u64 now)
{
	u32 most = esp_host_most(b, h, 2) * ESP_BUCKET_UNIT;
	u32 sole = esp_host_most(b, h, 1) * ESP_BUCKET_UNIT;
	u32 came, marked, late;

	if (!h->bounded) {
		host_bound(h, now);
		return;
	}
	came = atomic_xchg(&h->came, 0);
	marked = atomic_xchg(&h->marked, 0);
	late = atomic_xchg(&h->late, 0);
	WRITE_ONCE(h->since, now);
	if (!came)
		return;
	marked = min(marked, came);
	h->alpha += (u32)div_u64(1024ull * marked, came) / 8 - h->alpha / 8;
	if (marked) {
		h->busy_cap = min(h->busy_cap, most);
		h->busy_cap -= (u64)h->busy_cap * h->alpha / 2048;
		h->busy_cap = max_t(u32, h->busy_cap, ESP_BUSY_LEAST * ESP_BUCKET_UNIT);
	} else {
		bucket_add(&h->busy_cap, sole);
	}
	if (late && h->lost && since(now, h->lost) < ESP_CALM_NS) {
		h->loss_cap -= div_u64((u64)h->loss_cap * min(late, came), 2 * came);
		h->loss_cap = max_t(u32, h->loss_cap, ESP_BUCKET_UNIT);
	} else {
		bucket_add(&h->loss_cap, sole);
	}
	if (!marked && h->alpha < 8 && min(h->busy_cap, h->loss_cap) >= sole) {
		h->alpha = 0;
		h->busy_cap = ~0u;
		h->loss_cap = ~0u;
		WRITE_ONCE(h->bounded, 0);
	}
}

/**
 * esp_host_most() - Compute the largest bucket that a host may have
 * @b:		budget
 * @h:		bucket of the host
 * @senders:	connections with an announced transmission
 *
 * A host's base round trip counts up to twice the link's.
 *
 * Return: packets, at least 2
 */
u32 esp_host_most(const struct esp_budget *b, const struct esp_host *h, int senders)
{
	u32 base = h->base ? min_t(u32, h->base, 2 * b->base.v) : b->base.v;

	if (senders <= 1)
		return esp_budget_limit(b, senders);
	return max_t(u32, frames_in(b, base), 2) + ESP_SPARE + b->grow;
}

/**
 * esp_host_cap() - Compute the packets that a host may have outstanding
 * @b:		budget
 * @h:		bucket of the host
 * @senders:	connections with an announced transmission
 *
 * Return: packets, at least 1
 */
u32 esp_host_cap(const struct esp_budget *b, const struct esp_host *h, int senders)
{
	u32 cap = min(h->busy_cap, h->loss_cap) / ESP_BUCKET_UNIT;

	return clamp_t(u32, cap, 1, esp_host_most(b, h, senders));
}

/**
 * esp_burst_begins() - Count the beginning of a transmission
 * @b:		budget
 * @window:	window in which the connection began its last transmission, 0 before its first;
 *		written here. A connection counts once: its transmissions come one after another
 * @now:	ns
 */
void esp_burst_begins(struct esp_budget *b, u32 *window, u64 now)
{
	struct esp_begins *s = &b->begins;

	begins_age(b, now);
	if (*window == s->window)
		return;
	if (*window && *window + 1 == s->window && s->n[1])
		s->n[1]--;
	*window = s->window;
	s->n[0]++;
	s->crest[0] = max(s->crest[0], s->n[0] + s->n[1]);
}

/**
 * esp_burst_size() - Compute the first burst that a sender is told
 * @b:		budget
 * @handshake:	the sender begins at once, or asks again: only what begins now counts.
 *		Otherwise it may begin later, together with all that have begun together lately
 * @senders:	connections with an announced transmission. Those that send for a long time may
 *		end, and begin again, together
 * @now:	ns
 *
 * All first bursts together fit into @b->pool, and so into a port (ESP_PORT_FRAMES). None is longer
 * than a BDP and the packet that announces it, because then the first grant has arrived, or than
 * ESP_BURST_LEAST: messages of a packet each get no grant, and an ACK for so many only
 * (packets_to_ack). Handshakes tell half of what those of the same time have left, because others
 * may follow; but always a packet.
 *
 * Return: packets, 0 ... ESP_PORT_FRAMES; 0: announce by an empty TXS
 */
u32 esp_burst_size(struct esp_budget *b, bool handshake, u32 senders, u64 now)
{
	u32 pool = min_t(u32, b->pool, ESP_PORT_FRAMES), n, told;
	struct esp_begins *s = &b->begins;

	begins_age(b, now);
	s->crest[0] = max(s->crest[0], senders);
	if (!handshake)
		return esp_burst_now(b);
	n = min(b->bdp + 1, pool / max(s->n[0] + s->n[1], 1u));
	told = min(s->told[0] + s->told[1], pool);
	n = min(n, max((pool - told) / 2, 1u));
	s->told[0] += n;
	return n;
}

/**
 * esp_burst_now() - Tell the first burst that esp_burst_size() would compute, without a handshake
 * @b:	budget; no lock is needed
 *
 * Return: packets
 */
u32 esp_burst_now(const struct esp_budget *b)
{
	const struct esp_begins *s = &b->begins;
	u32 n = max3(READ_ONCE(s->crest[0]), READ_ONCE(s->crest[1]), 1u);

	return min(max_t(u32, READ_ONCE(b->bdp) + 1, ESP_BURST_LEAST),
		   min_t(u32, READ_ONCE(b->pool), ESP_PORT_FRAMES) / n);
}
