// SPDX-License-Identifier: BSD-3-Clause
/*
 * One request of libam's protocols, at both sides. The tables of tools/am/engine.c, which this
 * program contains, tell what the sides do. This file adds the numbers of retries and the timeouts.
 */
#include <math.h>
#include "performability.h"

const char *const outcome_names[OUTCOMES] = {
	"ACKED, PROCESSED", "NOT_ACKED, REQUEST_RTX_EXCEEDED", "ACK_NOT_FOUND, REQUEST_SENT",
	"REPLY_RTX_EXCEEDED, REQUEST_SENT", "ETIMEDOUT",
};

const char *const station_names[STATIONS] = {
	"initiator", "target", "initiator's kernel, receiving", "target's kernel, receiving",
	"wire to target", "wire to initiator",
};

enum station station_of(const struct model *m, enum station s)
{
	if (m->processors == TWO_PER_HOST || s >= WIRE_OUT)
		return s;
	if (m->processors == ONE_PROCESSOR)
		return PROCESS_I;
	return s == RECEIVE_I ? PROCESS_I : s == RECEIVE_T ? PROCESS_T : s;
}

static struct effect *add(struct effects *out, enum effect_kind what, int side)
{
	struct effect *e = &out->e[out->n++];

	if (out->n > ARRAY_SIZE(out->e))
		refuse(NULL, 0, "too much at once");
	*e = (struct effect) { .what = what, .side = side };
	return e;
}

void effect_frame(struct effects *out, int side, uint8_t msg, uint32_t arg)
{
	struct effect *e = add(out, DO_FRAME, side);

	e->msg = msg;
	e->arg = arg;
}

void effect_timer(struct effects *out, int side, enum timer_id t, double us)
{
	struct effect *e = add(out, SET_TIMER, side);

	e->msg = t;
	e->us = us;
}

void effect_stop(struct effects *out, int side, enum timer_id t)
{
	add(out, STOP_TIMER, side)->msg = t;
}

void effect_other(struct effects *out, enum effect_kind what, int side)
{
	add(out, what, side);
}

unsigned int choices(const struct model *m, enum effect_kind what, struct choice *c)
{
	unsigned int n = 0;

	if (what == CHOOSE_LOOKUP) {
		c[n++] = (struct choice) { 1 - m->missing, 0, IN_FOUND };
		if (m->missing > 0)
			c[n++] = (struct choice) { m->missing, 0, IN_MISSING };
		return n;
	}
	/* the model's probabilities are of all requests, these of requests with a handler */
	double found = 1 - m->missing;

	c[n++] = (struct choice) { 1, m->app_handler, IN_HANDLED };
	if (m->delay > 0)
		c[n++] = (struct choice) { m->delay / found, m->app_handler + m->delayed,
					   IN_HANDLED };
	if (m->late > 0)
		c[n++] = (struct choice) { m->late / found, m->handler_max_us + 1, IN_LATE };
	if (m->crash > 0)
		/* A stream ends with the process; only the next stream waits for the restart. */
		c[n++] = (struct choice) { m->crash / found, m->protocol == STREAM ? 0 : m->restart,
					   IN_CRASHED };
	while (--n)
		c[0].p -= c[n].p;
	return 1 + (m->delay > 0) + (m->late > 0) + (m->crash > 0);
}

static const struct rule *find(const struct rule *rules, unsigned int n, int state, int event)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (rules[i].event == event && (rules[i].state == state || rules[i].state == 0xff))
			return &rules[i];
	return NULL;
}

/*
 * As ack_timeout() of engine.c: the timeout doubles with each transmission. A timer fires at the
 * next multiple of its grain.
 */
static double backoff(const struct model *m, double us, unsigned int sent)
{
	us = ldexp(us, sent < 2 ? 0 : sent < 8 ? sent - 1 : 6);
	return m->grain > 0 ? ceil(us / m->grain) * m->grain : us;
}

static double late(const struct model *m, double us)
{
	return backoff(m, us, 1);
}

static enum outcome outcome_of(const struct machine *x)
{
	if (x->istate == AM_STATE_DONE)
		return SUCCESS;
	if (x->iack == AM_ACK_NOT_FOUND)
		return NO_HANDLER_FOUND;
	return x->iack == AM_REPLY_RTX_EXCEEDED ? GAVE_UP_REPLY : GAVE_UP_REQUEST;
}

/* As request_step(). */
static void initiator(const struct model *m, struct machine *x, enum event e, struct effects *out)
{
	const struct protocol *p = protocol_find(m->protocol);
	const struct rule *r = find(p->initiator, p->ninitiator, x->istate, e);

	if (!r)
		return;
	if (r->next == AM_STATE_ACKED && x->istate != AM_STATE_ACKED)
		x->isent = 1;
	x->istate = r->next;
	x->iack = r->ack;
	x->iop = r->operation;
	if (r->actions & DO_FINAL)
		effect_frame(out, INITIATOR, WIRE_FINAL, 0);
	if (r->actions & DO_SEND) {
		x->isent++;
		effect_frame(out, INITIATOR, WIRE_REQUEST, 0);
	}
	if (r->actions & WAIT_ACK)
		effect_timer(out, INITIATOR, TIMER_SENT, backoff(m, m->ack_timeout, x->isent));
	else if (r->actions & WAIT_REPLY)
		effect_timer(out, INITIATOR, TIMER_SENT, late(m, m->reply_timeout_us));
	else if (r->actions & WAIT_HANDLER)
		effect_timer(out, INITIATOR, TIMER_SENT, late(m, m->handler_max_us));
	if (r->actions & DO_RELEASE) {
		x->outcome = outcome_of(x);
		effect_stop(out, INITIATOR, TIMER_SENT);
		effect_other(out, OVER, INITIATOR);
	}
}

/* As reply_step(). The target has made no requests, and so has measured no round trip. */
static void target(const struct model *m, struct machine *x, enum event e, struct effects *out)
{
	const struct protocol *p = protocol_find(m->protocol);
	const struct rule *r = find(p->target, p->ntarget, x->tstate, e);

	if (!r)
		return;
	x->tstate = r->next;
	if (r->actions & DO_SEND)
		effect_frame(out, TARGET, WIRE_REPLY, 0);
	/* the number of transmissions matters only while the target waits for an ACK */
	if (r->actions & WAIT_ACK && x->tsent < 255)
		x->tsent++;
	if (r->actions & WAIT_ACK)
		effect_timer(out, TARGET, TIMER_REPLIED, backoff(m, m->timeout_us, x->tsent));
	if (r->actions & DO_NACK)
		effect_frame(out, TARGET, WIRE_NACK, x->reason);
	if (r->actions & DO_RELEASE)
		effect_stop(out, TARGET, TIMER_REPLIED);
	if (r->actions & DO_ACK) {
		effect_frame(out, TARGET, WIRE_ACK, 0);
		target(m, x, EV_ACK_SENT, out);
	}
	if (r->actions & DO_RUN)
		effect_other(out, CHOOSE_HANDLER, TARGET);
}

static void at_target(const struct model *m, struct machine *x, uint8_t msg, struct effects *out)
{
	if (x->down)
		return;
	if (x->forgotten) {
		if (msg == WIRE_REQUEST)
			effect_frame(out, TARGET, WIRE_NACK, WHY_SESSION);
	} else if (msg == WIRE_FINAL) {
		target(m, x, EV_FINAL, out);
	} else if (x->tstate == AM_STATE_CREATED) {
		effect_other(out, CHOOSE_LOOKUP, TARGET);
	} else {
		target(m, x, EV_DUPLICATE, out);
	}
}

static void at_initiator(const struct model *m, struct machine *x, uint8_t msg, uint32_t why,
			 struct effects *out)
{
	switch (msg) {
	case WIRE_ACK:
		initiator(m, x, EV_ACK, out);
		break;
	case WIRE_REPLY:
		initiator(m, x, EV_REPLY, out);
		break;
	case WIRE_NACK:
		if (why == WHY_SESSION)
			initiator(m, x, EV_FORGOTTEN, out);
		else
			initiator(m, x, why == WHY_HANDLER ? EV_NACK : EV_GIVEN_UP, out);
		break;
	}
}

/* As request_timer() and reply_timer(). */
static void timer(const struct model *m, struct machine *x, enum timer_id t, struct effects *out)
{
	if (t == TIMER_REPLIED) {
		x->reason = WHY_LOST;
		target(m, x, x->tsent > m->retries ? EV_SPENT : EV_TIMER, out);
	} else if (x->isent > (x->istate == AM_STATE_ACKED ? m->reply_retries : m->retries)) {
		initiator(m, x, EV_SPENT, out);
	} else {
		initiator(m, x, EV_TIMER, out);
	}
}

void machine_step(const struct model *m, struct machine *x, enum input in, uint8_t msg,
		  uint32_t arg, struct effects *out)
{
	if (m->protocol == STREAM) {
		stream_step(m, x, in, msg, arg, out);
		return;
	}
	switch (in) {
	case IN_START:
		memset(x, 0, sizeof(*x));
		x->isent = 1;
		effect_frame(out, INITIATOR, WIRE_REQUEST, 0);
		initiator(m, x, EV_POST, out);
		break;
	case IN_FRAME:
		if (msg == WIRE_REQUEST || msg == WIRE_FINAL)
			at_target(m, x, msg, out);
		else
			at_initiator(m, x, msg, arg, out);
		break;
	case IN_TIMER:
		timer(m, x, msg, out);
		break;
	case IN_FOUND:
		target(m, x, EV_REQUEST, out);
		break;
	case IN_MISSING:
		x->reason = WHY_HANDLER;
		target(m, x, EV_NO_HANDLER, out);
		break;
	case IN_HANDLED:
		target(m, x, EV_DONE, out);
		break;
	case IN_LATE:
		x->reason = WHY_GAVE_UP;
		target(m, x, EV_LATE, out);
		break;
	case IN_CRASHED:
		x->down = 1;
		x->forgotten = 1;
		break;
	case IN_RESTARTED:
		x->down = 0;
		break;
	case IN_FORGOTTEN:
		initiator(m, x, EV_FORGOTTEN, out);
		break;
	}
}
