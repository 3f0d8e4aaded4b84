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
