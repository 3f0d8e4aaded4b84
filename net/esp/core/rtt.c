// SPDX-License-Identifier: GPL-2.0-only
/*
 * Round trips, measured with every frame. ts_ecr is the echoed clock plus the time for
 * which the peer held it: time in an ACK queue is in no sample (rule 13).
 */
#include "rtt.h"

/**
 * esp_min_rtt_sample() - Keep the smallest round trip of ten seconds
 * @m:		filter; zeroed: nothing measured yet
 * @rtt:	measurement
 * @now:	microseconds
 */
void esp_min_rtt_sample(struct esp_min_rtt *m, u32 rtt, u64 now)
{
	/* another processor may have read the clock earlier, and call later */
	if (m->since && (s64)(now - m->since) < 0)
		now = m->since;
	if (!m->since || now - m->since >= 2 * ESP_MIN_RTT_WINDOW_US) {
		WRITE_ONCE(m->cur, rtt);
		WRITE_ONCE(m->prev, rtt);
		WRITE_ONCE(m->since, now ? now : 1);
	} else if (now - m->since >= ESP_MIN_RTT_WINDOW_US) {
		WRITE_ONCE(m->prev, m->cur);
		WRITE_ONCE(m->cur, rtt);
		WRITE_ONCE(m->since, now);
	} else if (rtt < m->cur) {
		WRITE_ONCE(m->cur, rtt);
	}
}

static void rtt_sort(u32 *v, unsigned int n)
{
	unsigned int i, j;

	for (i = 1; i < n; i++) {
		u32 x = v[i];

		for (j = i; j && v[j - 1] > x; j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

/**
 * esp_rtt_round_add() - Collect samples, and give their median once a round trip
 * @r:		round
 * @rtt:	measurement
 * @srtt:	length of a round
 * @now:	microseconds
 * @median:	result
 *
 * Samples that are older than two round trips do not count.
 *
 * Return: true once in @srtt, with @median set
 */
bool esp_rtt_round_add(struct esp_rtt_round *r, u32 rtt, u32 srtt, u64 now,
		       u32 *median)
{
	if (esp_rtt_round_full(r, srtt, now))
		return false;
	if (now - r->start >= 2 * (u64)srtt)
		r->n = 0;
	if (r->n < ESP_RTT_SAMPLES)
		r->sample[r->n++] = rtt;
	if (now - r->start < srtt)
		return false;
	rtt_sort(r->sample, r->n);
	*median = r->sample[r->n / 2];
	r->n = 0;
	r->start = now;
	return true;
}
