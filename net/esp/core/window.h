/* SPDX-License-Identifier: GPL-2.0-only */
/* The sender's window (seed: "Sending Data to the Receiver"; rules 2-4, 7). */
#ifndef _ESP_WINDOW_H
#define _ESP_WINDOW_H

#include "pure.h"

/* Rule 7: a transmission of one packet up to this size never waits. */
#define ESP_SMALL	256
#define ESP_ADVICE_MAX	64	/* rule 21: largest first burst that a receiver tells, packets */
#define ESP_FIRST_MAX	(ESP_ADVICE_MAX + 1)	/* rule 3: and the packet that announces */

/**
 * struct esp_window - what the sender may send; the socket's owner writes it
 */
struct esp_window {
	/** @una_seq: first packet sent and not acknowledged; equal to @send_next: none */
	u32	una_seq;
	/** @send_next: next packet to be sent for the first time */
	u32	send_next;
	/** @send_seq: number of the next packet to be made */
	u32	send_seq;
	/**
	 * @announce_seq: packet that announced the last transmission; does not move while
	 * that packet is unacknowledged (rule 3)
	 */
	u32	announce_seq;
	/** @edge: first packet that may not be sent; but see esp_window_limit() */
	u32	edge;
	/** @advice: first burst that the peer told last, packets (rule 21) */
	u16	advice;
	/** @burst_length: most packets that a grant allows; 0: no limit */
	u16	burst_length;
	/**
	 * @initial: esp_initial_ack_burst_length that the user has set for this socket,
	 * packets; -1: @advice counts
	 */
	s16	initial;
	/** @trans_announced: sendmsg() continues a transmission (seed: state tables) */
	u8	trans_announced;
	/** @in_trans: the last packet sent did not end its transmission (TXF) */
	u8	in_trans;
	/** @announcing: no ACK has answered the announcement yet */
	u8	announcing;
	/** @first: packets of the first burst, from @announce_seq on */
	u8	first;
	/**
	 * @begun: packets from @announce_seq to the one that began the last transmission sent;
	 * 0: that is the announced transmission, or nothing is announced
	 */
	u8	begun;
	/** @granted: a grant has set @edge; 0: @edge is the end of the first burst */
	u8	granted:1;
	/** @ended: the announced transmission's last packet (TXF) was sent */
	u8	ended:1;
	/**
	 * @sent_alone: the last buffer sent was a complete transmission. If it arrives in one
	 * piece, the receiver acknowledges it at once only when asked (rule 7)
	 */
	u8	sent_alone:1;
	/** @on_hold: the last ACK granted nothing (HOLD, rule 13) */
	u8	on_hold:1;
	/**
	 * @recovering: @una_seq has not reached the packets that were sent before the
	 * retransmission timer fired
	 */
	u8	recovering:1;
};

/* Result of esp_window_ack(), bits. */
#define ESP_ACK_INVALID		0x01	/* acknowledges packets that were never sent */
#define ESP_ACK_STALE		0x02	/* older than an ACK already taken */
#define ESP_ACK_PROGRESS	0x04	/* una_seq advanced */
#define ESP_ACK_OPENED		0x08	/* edge advanced */
#define ESP_ACK_CUT		0x10	/* first burst lowered: echo it (rule 21) */
#define ESP_ACK_HOLD		0x20	/* the grant is queued, or refused */

void esp_window_init(struct esp_window *w, u32 isn);
u32 esp_window_first_burst(const struct esp_window *w);
void esp_window_announce(struct esp_window *w, bool small);
unsigned int esp_window_ack(struct esp_window *w, u32 ack_seq, u16 grant);

/**
 * esp_window_may_announce() - Does announce_seq move with the next TXS?
 * @w:	window
 *
 * Return: false while the last announcement is unacknowledged (rule 3)
 */
static inline bool esp_window_may_announce(const struct esp_window *w)
{
	return !w->announcing;
}

/**
 * esp_window_sent() - Record that packets from send_next on were sent, for the first time
 * @w:		window
 * @n:		packets
 * @txs:	the first one began a transmission
 * @txf:	the last one ended its transmission
 */
static inline void esp_window_sent(struct esp_window *w, u32 n, bool txs, bool txf)
{
	if (txs)
		w->begun = w->announcing ? w->send_next - w->announce_seq : 0;
	WRITE_ONCE(w->send_next, w->send_next + n);
	w->in_trans = !txf;
	w->sent_alone = txs && txf;
	if (txf)
		w->ended = 1;
}

/**
 * esp_window_limit() - Compute the first packet that may not be sent yet
 * @w:		window
 *
 * While an announcement is unacknowledged, later transmissions share its first burst.
 * They do not share the grant that has come for it, because the end of the announced
 * transmission gives that back (rule 16).
 *
 * Return: its number
 */
static inline u32 esp_window_limit(const struct esp_window *w)
{
	if (w->announcing && w->granted && w->ended)
		return w->announce_seq + w->first;
	return w->edge;
}

/**
 * esp_window_test() - May the next packet be sent?
 * @w:		window
 *
 * The pure part of esp_cwnd_test().
 *
 * Return: true if it is before the limit
 */
static inline bool esp_window_test(const struct esp_window *w)
{
	return esp_before(w->send_next, esp_window_limit(w));
}

#endif /* _ESP_WINDOW_H */
