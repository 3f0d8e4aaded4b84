// SPDX-License-Identifier: BSD-3-Clause
/*
 * A message and its answer on a stream of AF_ESP, each of some packets, all of them in the first
 * burst. See Documentation/protocol.rst, rules 8 (the sender's timer), 17 (expiry) and 19 (gaps,
 * RRQ), and timers.rst. ACKs of complete messages are left out: the sender of a message knows at
 * once when it is complete.
 *
 * A fault of the handler is an answer, too: libam's NACK, on records, or the end of the connection.
 * Both are retransmitted until they arrive.
 */
#include <math.h>
#include "performability.h"

#define SLACK_US	100	/* ESP_SLACK_US: the sender's timer is late by that much */
#define REORDER_US	20
#define RECOVER		4	/* most packets retransmitted for an ACK after a timeout */

/* Members of struct machine that have another use here. */
#define TIMEOUTS(x)	((x)->iack)	/* in a row, without an answer */
#define RECOVERING(x)	((x)->isent)
#define GAP_ARMED(x)	((x)->down)
#define GAP_SEQ(x)	((x)->reason)

static unsigned int packets(const struct model *m, const struct machine *x)
{
	return x->phase ? m->packets_reply : m->packets_request;
}

static int sender(const struct machine *x)
{
	return x->phase ? TARGET : INITIATOR;
}

static double backed_off(double us, unsigned int times, double most_ms)
{
	double limit = 1000 * most_ms;

	us = ldexp(us, times < 31 ? times : 31);
	return us < limit ? us : limit;
}

static void arm_sender(const struct model *m, struct machine *x, struct effects *out)
{
	double us = (m->srtt > m->rto_min_us ? m->srtt : m->rto_min_us) + m->ack_delay_us;

	us = backed_off(backed_off(us, 0, m->rto_max_ms), x->retransmits, m->rto_max_ms) + SLACK_US;
	effect_timer(out, sender(x), TIMER_SENT, us);
}

static double rrq_time(const struct model *m, unsigned int times)
{
	return backed_off(m->srtt > m->rrq_min_us ? m->srtt : m->rrq_min_us, times, m->rrq_max_ms);
}

static void send_packet(struct machine *x, unsigned int i, struct effects *out)
{
	effect_frame(out, sender(x), x->phase ? MSG_BACK : MSG_DATA, i);
}

static void begin(const struct model *m, struct machine *x, unsigned int phase,
		  struct effects *out)
{
	unsigned int i;

	memset(x, 0, sizeof(*x));
	x->phase = phase;
	for (i = 0; i < packets(m, x); i++)
		send_packet(x, i, out);
	arm_sender(m, x, out);
}

/* First packet that the receiver lacks. */
static unsigned int recv_seq(const struct machine *x)
{
	return __builtin_ctz(~x->have);
}

static void complete(struct machine *x, struct effects *out)
{
	effect_stop(out, sender(x), TIMER_SENT);
	effect_stop(out, !sender(x), TIMER_GAP);
	effect_stop(out, !sender(x), TIMER_EXPIRY);
	if (x->phase)
		effect_other(out, OVER, INITIATOR);
	else
		effect_other(out, CHOOSE_LOOKUP, TARGET);
}

static void ask(struct machine *x, unsigned int end, struct effects *out)
{
	uint32_t missing = ((1u << end) - 1) & ~x->have;

	effect_frame(out, !sender(x), MSG_RRQ, missing | x->phase << 16);
}

/* Set the receiver's timers after a new packet: for a gap, and for packets still to come. */
static void watch(const struct model *m, struct machine *x, struct effects *out)
{
	double reorder = m->srtt / 4 > REORDER_US ? m->srtt / 4 : REORDER_US;
	unsigned int seq = recv_seq(x);

	if (x->high <= seq) {
		if (GAP_ARMED(x))
			effect_stop(out, !sender(x), TIMER_GAP);
		GAP_ARMED(x) = 0;
	} else if (!GAP_ARMED(x) || GAP_SEQ(x) != seq) {
		GAP_ARMED(x) = 1;
		GAP_SEQ(x) = seq;
		x->rrqs = 0;
		effect_timer(out, !sender(x), TIMER_GAP, reorder);
	}
	if (seq) {
		x->expired = 0;
		effect_timer(out, !sender(x), TIMER_EXPIRY, rrq_time(m, 0));
	}
}

static void data(const struct model *m, struct machine *x, unsigned int phase, unsigned int i,
		 struct effects *out)
{
	bool known = phase != x->phase || x->have & 1u << i;

	if (!known) {
		x->have |= 1u << i;
		if (x->high <= i)
			x->high = i + 1;
		if (recv_seq(x) == packets(m, x)) {
			complete(x, out);
			return;
		}
		watch(m, x, out);
	}
	/* only these ACKs make the sender do something; others are left out */
	if (phase == x->phase && RECOVERING(x))
		effect_frame(out, !sender(x), MSG_ESP_ACK, recv_seq(x) | x->phase << 16);
}

static void advance(struct machine *x, unsigned int ack)
{
	TIMEOUTS(x) = 0;
	if (ack > x->una) {
		x->una = ack;
		x->retransmits = 0;
	}
}

static void answered(const struct model *m, struct machine *x, uint8_t msg, uint32_t arg,
		     struct effects *out)
{
	unsigned int i, n = 0;

	if (arg >> 16 != x->phase)
		return;
	arg &= 0xffff;
	if (msg == MSG_RRQ) {
		advance(x, __builtin_ctz(arg));
		for (i = 0; i < packets(m, x); i++)
			if (arg & 1u << i)
				send_packet(x, i, out);
	} else {
		advance(x, arg);
		for (i = x->una; RECOVERING(x) && i < packets(m, x) && n < RECOVER; i++, n++)
			send_packet(x, i, out);
	}
	arm_sender(m, x, out);
}

static void timer(const struct model *m, struct machine *x, enum timer_id t, struct effects *out)
{
	switch (t) {
	case TIMER_SENT:
		if (++TIMEOUTS(x) > m->retries) {
			x->outcome = TIMED_OUT;
			effect_other(out, OVER, INITIATOR);
			return;
		}
		x->retransmits++;
		RECOVERING(x) = 1;
		send_packet(x, x->una, out);
		arm_sender(m, x, out);
		break;
	case TIMER_GAP:
		ask(x, x->high, out);
		if (++x->rrqs > m->retries)
			GAP_ARMED(x) = 0;
		else
			effect_timer(out, !sender(x), TIMER_GAP, rrq_time(m, x->rrqs - 1));
		break;
	default:
		if (++x->expired > m->expiries)
			return;
		ask(x, packets(m, x), out);
		effect_timer(out, !sender(x), TIMER_EXPIRY, rrq_time(m, x->expired));
		break;
	}
}

static void answer(const struct model *m, struct machine *x, enum outcome o, struct effects *out)
{
	begin(m, x, 1, out);
	x->outcome = o;
}

void stream_step(const struct model *m, struct machine *x, enum input in, uint8_t msg,
		 uint32_t arg, struct effects *out)
{
	switch (in) {
	case IN_START:
		begin(m, x, 0, out);
		break;
	case IN_FOUND:
		effect_other(out, CHOOSE_HANDLER, TARGET);
		break;
	case IN_MISSING:
		answer(m, x, NO_HANDLER_FOUND, out);
		break;
	case IN_HANDLED:
		answer(m, x, SUCCESS, out);
		break;
	case IN_LATE:
		answer(m, x, GAVE_UP_REPLY, out);
		break;
	case IN_CRASHED:
		answer(m, x, GAVE_UP_REQUEST, out);
		break;
	case IN_TIMER:
		timer(m, x, msg, out);
		break;
	case IN_FRAME:
		if (msg == MSG_DATA || msg == MSG_BACK)
			data(m, x, msg == MSG_BACK, arg, out);
		else
			answered(m, x, msg, arg, out);
		break;
	default:
		break;
	}
}
