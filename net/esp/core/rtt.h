/* SPDX-License-Identifier: GPL-2.0-only */
/* Round trips and timeouts (rules 8, 13, 17, 22). Microseconds throughout. */
#ifndef _ESP_RTT_H
#define _ESP_RTT_H

#include "pure.h"

#define ESP_RTT_MAX_US		(30u * 1000 * 1000)	/* a larger sample is invalid */
#define ESP_MIN_RTT_WINDOW_US	(5u * 1000 * 1000)	/* half of rule 22's window */

/**
 * struct esp_rtt - measured round trips of one connection; the socket's owner writes it
 */
struct esp_rtt {
	/** @srtt8: smoothed round trip, 1/8 microseconds; 0: nothing measured yet */
	u32	srtt8;
	/** @rttvar4: mean deviation, 1/4 microseconds */
	u32	rttvar4;
};

/**
 * struct esp_min_rtt - smallest round trip of the last ten seconds
 */
struct esp_min_rtt {
	/** @cur: smallest of the running half, microseconds */
	u32	cur;
	/** @prev: smallest of the half before, microseconds */
	u32	prev;
	/** @since: start of the running half, microseconds; 0: nothing measured yet */
	u64	since;
};

/**
 * struct esp_rtt_round - the shortest and the longest round trip of a running round
 */
struct esp_rtt_round {
	/** @start: start of the round, microseconds */
	u64	start;
	/** @least: shortest one, microseconds; valid unless @most is 0 */
	u32	least;
	/** @most: longest one, microseconds; 0: none so far */
	u32	most;
};

void esp_min_rtt_sample(struct esp_min_rtt *m, u32 rtt, u64 now);

/**
 * esp_rtt_sample() - Add a measurement to the smoothed round trip (RFC 6298, section 2)
 * @r:		estimator
 * @rtt:	measured round trip; 0 counts as 1
 */
static inline void esp_rtt_sample(struct esp_rtt *r, u32 rtt)
{
	s32 err;

	rtt = clamp_t(u32, rtt, 1, ESP_RTT_MAX_US);
	if (!r->srtt8) {
		WRITE_ONCE(r->rttvar4, rtt << 1);
		WRITE_ONCE(r->srtt8, rtt << 3);
		return;
	}
	err = (s32)rtt - (s32)(r->srtt8 >> 3);
	WRITE_ONCE(r->srtt8, r->srtt8 + err);
	if (err < 0)
		err = -err;
	WRITE_ONCE(r->rttvar4, r->rttvar4 + err - (s32)(r->rttvar4 >> 2));
}

static inline u32 esp_rtt_smooth(const struct esp_rtt *r)
{
	return r->srtt8 >> 3;
}

/**
 * esp_rtt_round_add() - Add a measurement to the running round
 * @r:		round
 * @rtt:	measured round trip, microseconds; 0 counts as 1
 * @srtt:	length of a round, microseconds
 * @now:	microseconds
 *
 * After a pause of ESP_MIN_RTT_WINDOW_US the older measurements of the round do not count.
 *
 * Return: true if the round is over: the caller takes what it needs and begins the next one
 */
static inline bool esp_rtt_round_add(struct esp_rtt_round *r, u32 rtt, u32 srtt, u64 now)
{
	rtt = max(rtt, 1u);
	if (now - r->start >= ESP_MIN_RTT_WINDOW_US)
		r->most = 0;
	if (!r->most || rtt < r->least)
		r->least = rtt;
	r->most = max(r->most, rtt);
	return now - r->start >= srtt;
}

/**
 * esp_rtt_round_begin() - Begin a round
 * @r:		round
 * @now:	microseconds
 */
static inline void esp_rtt_round_begin(struct esp_rtt_round *r, u64 now)
{
	r->start = now;
	r->most = 0;
}

static inline u32 esp_min_rtt_get(const struct esp_min_rtt *m)
{
	u32 cur = READ_ONCE(m->cur), prev = READ_ONCE(m->prev);

	return min(cur, prev);
}

/*
 * Would esp_min_rtt_sample() change anything? To a caller without the lock, true means
 * perhaps.
 */
static inline bool esp_min_rtt_changes(const struct esp_min_rtt *m, u32 rtt,
				       u64 now)
{
	u64 since = READ_ONCE(m->since);

	return !since || now - since >= ESP_MIN_RTT_WINDOW_US ||
	       rtt < READ_ONCE(m->cur);
}

/**
 * esp_rtt_timeout() - Compute a timeout: srtt + 4 rttvar + @extra, within bounds
 * @r:		estimator
 * @extra:	delay that the peer may add (ACK delay, a burst on the wire)
 * @lo:		floor
 * @hi:		ceiling
 *
 * On an even path, rttvar goes to zero. A queue that gets longer by half is no loss, so the
 * variation counts as half of srtt at least.
 *
 * Return: microseconds; before the first measurement ten times the floor
 */
static inline u32 esp_rtt_timeout(const struct esp_rtt *r, u32 extra, u32 lo, u32 hi)
{
	u32 srtt8 = READ_ONCE(r->srtt8);
	u64 t = srtt8 ? (u64)(srtt8 >> 3) + max(READ_ONCE(r->rttvar4), srtt8 >> 4) : 10ull * lo;

	t = max_t(u64, t, lo) + extra;
	return min_t(u64, t, hi);
}

/**
 * esp_rtt_backoff() - Double a timeout @n times, up to @hi
 * @timeout:	first timeout
 * @n:		expirations so far
 * @hi:		ceiling
 *
 * Return: microseconds
 */
static inline u32 esp_rtt_backoff(u32 timeout, unsigned int n, u32 hi)
{
	u64 t = (u64)timeout << min_t(unsigned int, n, 31);

	return min_t(u64, t, hi);
}

#endif /* _ESP_RTT_H */
