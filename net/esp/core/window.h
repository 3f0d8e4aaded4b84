/* SPDX-License-Identifier: GPL-2.0-only */
/* The sender's window (seed: "Sending Data to the Receiver"; rules 2-4, 7). */
#ifndef _ESP_WINDOW_H
#define _ESP_WINDOW_H

#include "pure.h"

/* Rule 7: a transmission of one packet up to this size never waits. */
#define ESP_SMALL	256
#define ESP_FIRST_MAX	65	/* rules 3, 21: ESP_ADVICE_MAX, and the packet that announces */

/**
 * struct esp_window - what the sender may send; the socket's owner writes it
 * @una_seq:		first packet sent and not acknowledged (or send_next)
 * @send_next:		next packet to be sent for the first time
 * @send_seq:		number of the next packet to be made
 * @announce_seq:	packet that announced the last transmission; stands
 *			still while it is unacknowledged (rule 3)
 * @edge:		first packet that may not be sent, but see esp_window_limit()
 * @advice:		first burst that the peer advises, packets (rule 21)
 * @burst_length:	cap on what a grant opens, packets; 0: none
 * @initial:		esp_initial_ack_burst_length where the user fixed it for
 *			this socket; -1: the peer's advice counts
 * @trans_announced:	sendmsg goes on with a transmission (seed: state tables)
 * @in_trans:		the last packet sent did not end its transmission (TXF)
 * @begun:		packets from @announce_seq to the one that began the last transmission
 *			sent; 0: that is the announced one, or nothing is announced
 * @announcing:		no ACK has answered the announcement yet
 * @granted:		@edge is by permission, not the end of the first burst
 * @first:		packets from @announce_seq on that are the first burst
 * @ended:		the announced transmission's last packet (TXF) was sent
 * @sent_alone:		the last buffer sent was a transmission of its own, which if it comes
 *			in one piece nothing but a question has acknowledged at once (rule 7)
 * @on_hold:		the last ACK gave no permission (HOLD, rule 13)
 * @recovering:		@una_seq has not reached what was sent when the retransmission timer
 *			fired
 */
struct esp_window {
	u32	una_seq;
	u32	send_next;
	u32	send_seq;
	u32	announce_seq;
	u32	edge;
	u16	advice;
	u16	burst_length;
	s16	initial;
	u8	trans_announced;
	u8	in_trans;
	u8	announcing;
	u8	first;
	u8	begun;
	u8	granted:1;
	u8	ended:1;
	u8	sent_alone:1;
	u8	on_hold:1;
	u8	recovering:1;
};

/* Result of esp_window_ack(), bits. */
#define ESP_ACK_INVALID		0x01	/* acknowledges what was never sent */
#define ESP_ACK_STALE		0x02	/* older than one already taken */
#define ESP_ACK_PROGRESS	0x04	/* una_seq advanced */
#define ESP_ACK_OPENED		0x08	/* edge advanced */
#define ESP_ACK_CUT		0x10	/* advice lowered: echo it (rule 21) */
#define ESP_ACK_HOLD		0x20	/* permission is parked, or refused */

void esp_window_init(struct esp_window *w, u32 isn);
u32 esp_window_first_burst(const struct esp_window *w);
void esp_window_announce(struct esp_window *w, bool small);
unsigned int esp_window_ack(struct esp_window *w, u32 ack_seq, u16 grant);

/**
 * esp_window_may_announce() - does announce_seq move with the next TXS?
 * @w:	window
 *
 * Return: false while the last announcement is unacknowledged (rule 3)
 */
static inline bool esp_window_may_announce(const struct esp_window *w)
{
	return !w->announcing;
}

/**
 * esp_window_sent() - packets from send_next on were sent for the first time
 * @w:		window
 * @n:		how many
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
 * esp_window_limit() - the first packet that may not be sent yet
 * @w:		window
 *
 * While an announcement is unacknowledged, the transmissions behind it share
 * its first burst; but not the permission that has come for it, which its end
 * gives back (rule 16).
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
 * esp_window_test() - may the next packet be sent?
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
