// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender's window. A packet may be sent while its number is before edge. Each ACK
 * moves edge to ack_seq + grant, never back. An announcement of a transmission sets edge
 * to the end of the first burst, because the end of the transmission before (TXF) gave
 * back the rest of its grant.
 */
#include "window.h"

/**
 * esp_window_init() - Initialize a window that begins after the handshake's SYN
 * @w:		window
 * @isn:	number of the SYN
 */
void esp_window_init(struct esp_window *w, u32 isn)
{
	w->una_seq = isn + 1;
	w->send_next = isn + 1;
	w->send_seq = isn + 1;
	w->announce_seq = isn;
	w->edge = isn + 1;
	w->trans_announced = 0;
	w->in_trans = 0;
	w->announcing = 0;
	w->granted = 0;
	w->first = 0;
	w->begun = 0;
	w->ended = 0;
	w->sent_alone = 0;
	w->on_hold = 0;
	w->recovering = 0;
}

/**
 * esp_window_first_burst() - Compute the packets allowed before the first ACK
 * @w:	window
 *
 * Rule 3: up to and including announce_seq + initial_ack_burst_length. The first burst
 * that the peer tells replaces that, unless the user has set it.
 *
 * Return: packets, the announcing one included; 0: announce by an empty TXS
 */
u32 esp_window_first_burst(const struct esp_window *w)
{
	u32 n = w->initial >= 0 ? (u32)w->initial + 1 : w->advice;

	n = min_t(u32, n, ESP_FIRST_MAX);
	return w->burst_length ? min_t(u32, n, w->burst_length) : n;
}

/**
 * esp_window_announce() - Announce a transmission with the packet send_next
 * @w:		window
 * @small:	it is a complete transmission of at most ESP_SMALL bytes (rule 7)
 *
 * Earlier packets that are still on their way have their own permission. If there are some, one
 * packet more does no harm, even if the peer tells no first burst.
 */
void esp_window_announce(struct esp_window *w, bool small)
{
	u32 n = esp_window_first_burst(w), way = w->send_next - w->una_seq;

	if (small)
		n = max_t(u32, n, 1);
	if (way)
		n = max_t(u32, n, 1);
	w->announce_seq = w->send_next;
	w->edge = w->send_next + n;
	w->first = n;
	w->announcing = 1;
	w->granted = 0;
	w->ended = 0;
	w->on_hold = 0;
}

/*
 * Make the transmission that is being sent the announced one. The announced transmission
 * has an answer; this one shares its first burst, and has none. It gets the rest of that
 * burst, and no grant.
 */
static void window_announced_next(struct esp_window *w, u32 limit)
{
	w->announce_seq += w->begun;
	w->first = limit - w->announce_seq;
	w->begun = 0;
	w->announcing = 1;
	w->granted = 0;
	w->ended = 0;
	w->on_hold = 0;
}

/**
 * esp_window_ack() - Take an acknowledgment
 * @w:		window
 * @ack_seq:	next packet that the peer expects
 * @grant:	packets from @ack_seq on that the peer grants
 *
 * @grant is the first burst that the peer tells if it knew no announcement. That is so while
 * nothing is announced and everything is acknowledged, and if all packets but those of an
 * announced first burst are. Then it counts for the next transmission. Otherwise it is a grant.
 * The exception is an answer to packets before the announcement, because the peer has voided that
 * grant.
 *
 * Return: ESP_ACK_* bits; with INVALID and STALE nothing changed
 */
unsigned int esp_window_ack(struct esp_window *w, u32 ack_seq, u16 grant)
{
	unsigned int res = 0;
	u32 edge;

	if (esp_after(ack_seq, w->send_next))
		return ESP_ACK_INVALID;
	if (esp_before(ack_seq, w->una_seq))
		return ESP_ACK_STALE;
	if (ack_seq != w->una_seq) {
		w->una_seq = ack_seq;
		res |= ESP_ACK_PROGRESS;
	}
	if (w->announcing && esp_after(ack_seq, w->announce_seq)) {
		u32 limit = esp_window_limit(w);

		w->announcing = 0;
		if (w->in_trans && w->begun) {
			w->edge = limit;
			if (!esp_after(ack_seq, w->announce_seq + w->begun))
				window_announced_next(w, limit);
		}
	}

	if (ack_seq == w->send_next && !w->in_trans && !w->announcing) {
		if (grant < w->advice)
			res |= ESP_ACK_CUT;
		WRITE_ONCE(w->advice, grant);
		w->on_hold = 0;
		return res;
	}
	if (w->announcing && !esp_after(ack_seq, w->announce_seq)) {
		if (esp_before(ack_seq, w->announce_seq))
			return res;
		if (w->first) {
			WRITE_ONCE(w->advice, grant);
			return res;
		}
	}
	if (!grant && !w->on_hold)
		res |= ESP_ACK_HOLD;
	w->on_hold = !grant;
	edge = ack_seq + (w->burst_length ? min(grant, w->burst_length) :
			  grant);
	if (esp_after(edge, w->edge)) {
		w->edge = edge;
		w->granted = 1;
		res |= ESP_ACK_OPENED;
	}
	return res;
}
