// SPDX-License-Identifier: BSD-3-Clause
/*
 * The protocols, each as two tables of rules by state and event: one for the initiator of a
 * request, one for its target. An event without a rule changes nothing.
 * Documentation/active-messages.rst has the same tables.
 */
#include "internal.h"

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

#define MAX_GAP	0x3fff	/* requests of one slot abandoned in a row, in one session */

#define ANY	0xff	/* state of a rule: all that have no earlier rule for the event */
#define KEEP	0xff	/* status of a rule: leave it as it is */

/* Short names, so that a rule is a line. */
#define S(name)	AM_STATE_##name
#define RULE(state, event, next, ...) { state, EV_##event, S(next), __VA_ARGS__ }
#define WAITING		AM_NOT_ACKED, AM_REQUEST_SENT
#define UNREACHABLE	AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED
#define NO_HANDLER	AM_ACK_NOT_FOUND, AM_REQUEST_SENT
#define NO_REPLY	AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT
#define PROCESSED	AM_ACKED, AM_PROCESSED
#define END		(DO_RELEASE | DO_FAIL)

/* Request and reply: the reply acknowledges. */
static const struct rule nway_initiator[] = {
	RULE(S(CREATED), TIMER, CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED, WAIT_ACK),
	RULE(S(CREATED), POST, SENT, WAITING, WAIT_ACK),
	RULE(S(SENT), TIMER, RESENT, WAITING, DO_SEND | WAIT_ACK),
	RULE(S(RESENT), TIMER, RESENT, WAITING, DO_SEND | WAIT_ACK),
	RULE(S(SENT), REPLY, DONE, PROCESSED, DO_RTT | DO_RELEASE | DO_RUN),
	RULE(S(RESENT), REPLY, DONE, PROCESSED, DO_RTT | DO_RELEASE | DO_RUN),
	RULE(ANY, NACK, ABANDONED, NO_HANDLER, END),
	RULE(ANY, GIVEN_UP, ABANDONED, NO_REPLY, END),
	RULE(ANY, SPENT, ABANDONED, UNREACHABLE, END),
	RULE(ANY, FORGOTTEN, ABANDONED, UNREACHABLE, END),
};

static const struct rule nway_target[] = {
	RULE(S(CREATED), REQUEST, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD, WAIT_HANDLER | DO_RUN),
	RULE(S(CREATED), NO_HANDLER, ABANDONED, AM_ERR_ACK, AM_NOT_PROCESSED, DO_NACK),
	RULE(S(SENT), DONE, DONE, AM_ACKED, AM_REPLY_SENT, DO_SEND),
	RULE(S(SENT), TIMER, ABANDONED, AM_NOT_ACKED, AM_REPLY_TIMEOUT, DO_NACK),
	RULE(S(SENT), LATE, ABANDONED, AM_NOT_ACKED, AM_HANDLER_TIMEOUT, DO_NACK),
	RULE(S(SENT), AGAIN, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD, WAIT_HANDLER | DO_RUN),
	RULE(S(SENT), DECLINED, ABANDONED, AM_NOT_ACKED, AM_DECLINED, DO_NACK),
	RULE(S(DONE), DUPLICATE, DONE, AM_ACKED, AM_REPLY_SENT, DO_SEND),
	RULE(S(ABANDONED), DUPLICATE, ABANDONED, KEEP, KEEP, DO_NACK),
};

/* The target acknowledges before the handler runs. */
static const struct rule amvia_initiator[] = {
	RULE(S(CREATED), TIMER, CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED, WAIT_ACK),
	RULE(S(CREATED), POST, SENT, WAITING, WAIT_ACK),
	RULE(S(SENT), TIMER, RESENT, WAITING, DO_SEND | WAIT_ACK),
	RULE(S(RESENT), TIMER, RESENT, WAITING, DO_SEND | WAIT_ACK),
	RULE(S(SENT), ACK, ACKED, AM_ACKED, AM_REQUEST_PROCESSING, DO_RTT | WAIT_REPLY),
	RULE(S(RESENT), ACK, ACKED, AM_ACKED, AM_REQUEST_PROCESSING, DO_RTT | WAIT_REPLY),
	RULE(S(ACKED), TIMER, ACKED, AM_ACKED, AM_REQUEST_PROCESSING, DO_SEND | WAIT_REPLY),
	/* The reply came before the acknowledgment, or the acknowledgment was lost. */
	RULE(S(SENT), REPLY, DONE, PROCESSED, DO_RELEASE | DO_RUN),
	RULE(S(RESENT), REPLY, DONE, PROCESSED, DO_RELEASE | DO_RUN),
	RULE(S(ACKED), REPLY, DONE, PROCESSED, DO_RELEASE | DO_RUN),
	RULE(S(ACKED), SPENT, ABANDONED, NO_REPLY, END),
	RULE(S(ACKED), FORGOTTEN, ABANDONED, NO_REPLY, END),
	RULE(ANY, NACK, ABANDONED, NO_HANDLER, END),
	RULE(ANY, GIVEN_UP, ABANDONED, NO_REPLY, END),
	RULE(ANY, SPENT, ABANDONED, UNREACHABLE, END),
	RULE(ANY, FORGOTTEN, ABANDONED, UNREACHABLE, END),
};

static const struct rule amvia_target[] = {
	RULE(S(CREATED), REQUEST, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD, DO_ACK),
	/* The request came again, because the acknowledgment could not be sent. */
	RULE(S(SENT), REQUEST, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD, DO_ACK),
	RULE(S(CREATED), NO_HANDLER, ABANDONED, AM_ERR_ACK, AM_NOT_PROCESSED, DO_NACK),
	RULE(S(SENT), NO_HANDLER, ABANDONED, AM_ERR_ACK, AM_NOT_PROCESSED, DO_NACK),
	RULE(S(SENT), ACK_SENT, ACKED, AM_ACKED, AM_REPLY_NOT_SENT, WAIT_HANDLER | DO_RUN),
	RULE(S(ACKED), DUPLICATE, ACKED, AM_ACKED, AM_REPLY_NOT_SENT, DO_ACK),
	RULE(S(ACKED), DONE, DONE, AM_ACKED, AM_REPLY_SENT, DO_SEND),
	RULE(S(ACKED), TIMER, ABANDONED, AM_ACKED, AM_REPLY_TIMEOUT, DO_NACK),
	RULE(S(ACKED), LATE, ABANDONED, AM_ACKED, AM_HANDLER_TIMEOUT, DO_NACK),
	/* The initiator gets the acknowledgment when it retransmits the request. */
	RULE(S(SENT), AGAIN, ACKED, AM_ACKED, AM_REPLY_NOT_SENT, WAIT_HANDLER | DO_RUN),
	RULE(S(ACKED), AGAIN, ACKED, AM_ACKED, AM_REPLY_NOT_SENT, WAIT_HANDLER | DO_RUN),
	RULE(S(SENT), DECLINED, ABANDONED, AM_NOT_ACKED, AM_DECLINED, DO_NACK),
	RULE(S(ACKED), DECLINED, ABANDONED, AM_ACKED, AM_DECLINED, DO_NACK),
	RULE(S(DONE), DUPLICATE, DONE, AM_ACKED, AM_REPLY_SENT, DO_SEND),
	RULE(S(ABANDONED), DUPLICATE, ABANDONED, KEEP, KEEP, DO_NACK),
};

/* The initiator acknowledges the reply; requests and replies share one pool of buffers. */
static const struct rule amudp_initiator[] = {
	RULE(S(CREATED), TIMER, CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED, WAIT_HANDLER),
	RULE(S(CREATED), POST, SENT, WAITING, WAIT_HANDLER),
	RULE(S(SENT), TIMER, RESENT, WAITING, DO_SEND | WAIT_HANDLER),
	RULE(S(RESENT), TIMER, RESENT, WAITING, DO_SEND | WAIT_HANDLER),
	RULE(S(SENT), REPLY, DONE, PROCESSED, DO_RTT | DO_FINAL | DO_RELEASE | DO_RUN),
	RULE(S(RESENT), REPLY, DONE, PROCESSED, DO_RTT | DO_FINAL | DO_RELEASE | DO_RUN),
	RULE(ANY, NACK, ABANDONED, NO_HANDLER, END),
	RULE(ANY, GIVEN_UP, ABANDONED, NO_REPLY, END),
	RULE(ANY, SPENT, ABANDONED, UNREACHABLE, END),
	RULE(ANY, FORGOTTEN, ABANDONED, UNREACHABLE, END),
};

static const struct rule amudp_target[] = {
	RULE(S(CREATED), REQUEST, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD, WAIT_HANDLER | DO_RUN),
	RULE(S(CREATED), NO_HANDLER, ABANDONED, AM_ERR_ACK, AM_NOT_PROCESSED, DO_NACK | DO_RELEASE),
	RULE(S(SENT), DONE, DONE, AM_NOT_ACKED, AM_REPLY_SENT, DO_SEND | WAIT_ACK),
	RULE(S(SENT), TIMER, ABANDONED, AM_NOT_ACKED, AM_REPLY_TIMEOUT, DO_NACK | DO_RELEASE),
	RULE(S(SENT), LATE, ABANDONED, AM_NOT_ACKED, AM_HANDLER_TIMEOUT, DO_NACK | DO_RELEASE),
	RULE(S(SENT), AGAIN, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD, WAIT_HANDLER | DO_RUN),
	RULE(S(SENT), DECLINED, ABANDONED, AM_NOT_ACKED, AM_DECLINED, DO_NACK | DO_RELEASE),
	RULE(S(DONE), DUPLICATE, DONE, AM_NOT_ACKED, AM_REPLY_SENT, DO_SEND | WAIT_ACK),
	RULE(S(DONE), TIMER, DONE, AM_NOT_ACKED, AM_REPLY_SENT, DO_SEND | WAIT_ACK),
	RULE(S(DONE), FINAL, RELEASED, AM_ACKED, AM_REPLY_SENT, DO_RELEASE),
	RULE(S(DONE), SPENT, ABANDONED, AM_NOT_ACKED, AM_REPLY_LOST, DO_RELEASE),
	RULE(S(ABANDONED), DUPLICATE, ABANDONED, KEEP, KEEP, DO_NACK),
};

#define TABLES(name) .initiator = name##_initiator, .ninitiator = ARRAY_SIZE(name##_initiator), \
		     .target = name##_target, .ntarget = ARRAY_SIZE(name##_target)

static const struct protocol protocols[] = {
	{ .id = AM_NWAY, TABLES(nway) },
	{ .id = AM_AMVIA, TABLES(amvia) },
	{ .id = AM_AMUDP, TABLES(amudp), .pooled = true },
};

const struct protocol *protocol_find(enum am_protocol_id id)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(protocols); i++)
		if (protocols[i].id == id)
			return &protocols[i];
	return NULL;
}

static const struct rule *find(const struct rule *rules, unsigned int n, int state, int event)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (rules[i].event == event && (rules[i].state == state || rules[i].state == ANY))
			return &rules[i];
	return NULL;
}

/* Does a rule lead to this status, or is it the first one? */
bool status_possible(const struct rule *rules, unsigned int n, int state, int ack, int operation)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (rules[i].next == state && rules[i].ack == ack &&
		    rules[i].operation == operation && ack != KEEP)
			return true;
	return state == AM_STATE_CREATED && ack == AM_NOT_ACKED && operation == AM_NOT_PROCESSED;
}

/* Return twice the round trip, an eighth more for each 512 bytes, doubled with each timeout. */
static uint64_t ack_timeout(const struct peer *p, const struct am_message *m, unsigned int sent)
{
	const struct am_options *o = &p->ep->opt;
	uint64_t us = p->srtt ? 2 * p->srtt : o->timeout_us;

	if (us < o->min_timeout_us)
		us = o->min_timeout_us;
	us += us * (m->total / WIRE_MIN_PIECE) / 8;
	return us << (sent < 2 ? 0 : sent < 8 ? sent - 1 : 6);
}

/* Arm the timer that a rule asks for, if any. */
static void arm(struct peer *p, struct timer *t, unsigned int actions, const struct am_message *m,
		unsigned int sent)
{
	const struct am_options *o = &p->ep->opt;

	if (actions & WAIT_ACK)
		timer_arm(p->ep, t, ack_timeout(p, m, sent));
	else if (actions & WAIT_REPLY)
		timer_arm(p->ep, t, o->reply_timeout_us);
	else if (actions & WAIT_HANDLER)
		timer_arm(p->ep, t, o->handler_max_us);
}

static void send_again(struct request *r)
{
	struct wire w = {
		.type = WIRE_REQUEST, .session = r->session, .slot = r->slot,
		.instance = r->instance,
	};

	r->sent++;
	r->sent_all++;
	r->peer->ep->stats.resent++;
	/* If it is acknowledged, the target has all pieces: the last one asks for the answer. */
	message_send(r->peer, &r->msg, &w, r->state == AM_STATE_ACKED);
}

void final_send(struct peer *p, uint16_t slot, uint16_t instance)
{
	struct wire w = {
		.type = WIRE_FINAL, .session = p->session, .slot = slot, .instance = instance,
	};

	frame_send(p, &w);
}

static void measure(struct request *r)
{
	bool large = r->msg.total > WIRE_MIN_PIECE;
	struct peer *p = r->peer;
	uint64_t us;

	/* After a retransmission it is unknown which copy was answered. */
	if (r->sent_all != 1)
		return;
	/* The round trip of a large message is too long for others, but better than none. */
	if (large && p->srtt && !p->srtt_large)
		return;
	us = p->ep->time - r->sent_at;
	p->srtt = p->srtt && p->srtt_large == large ? (7 * p->srtt + us) / 8 : us;
	p->srtt_large = large;
	if (!p->srtt)
		p->srtt = 1;
}

/* Tell the application of an abandoned request; the caller has released its entry. */
static void fail(struct request *r, struct peer *p)
{
	struct am_endpoint *ep = p->ep;
	struct am_state s;
	am_handle_t h = request_handle(ep, r);

	ep->stats.abandoned++;
	if (ep->returned) {
		AM_GetTransferState(ep, h, &s);
		ep->bundle->depth++;
		ep->returned(ep, h, &s, ep->returned_arg);
		ep->bundle->depth--;
	}
	/*
	 * With one bit, a late answer could be taken for the next request's. And after 2^15 numbers
	 * that the target hasn't seen, the next one would look old.
	 */
	if (p->hello == HELLO_DONE && (p->one_bit || (r->instance & MAX_GAP) == MAX_GAP))
		hello_start(p);
}

/* Follow the rule for an event. Returns its actions, 0 if there is no rule. */
unsigned int request_step(struct request *r, enum event e, uint8_t cause)
{
	struct peer *p = r->peer;
	const struct protocol *protocol = p->ep->protocol;
	const struct rule *rule;
	unsigned int a;

	rule = find(protocol->initiator, protocol->ninitiator, r->state, e);
	if (!rule)
		return 0;
	a = rule->actions;
	if (r->state != rule->next)
		p->ep->bundle->events++;
	if (rule->next == AM_STATE_ACKED && r->state != AM_STATE_ACKED)
		r->sent = 1;
	r->state = rule->next;
	r->ack = rule->ack;
	r->operation = rule->operation;
	r->cause = cause;
	log_request(r);
	if (a & DO_RTT)
		measure(r);
	if (a & DO_FINAL)
		final_send(p, r->slot, r->instance);
	if (a & DO_SEND)
		send_again(r);
	arm(p, &r->timer, a, &r->msg, r->sent);
	if (a & DO_RELEASE)
		request_release(r);
	if (a & DO_FAIL)
		fail(r, p);
	return a;
}

static int answer(struct reply *r, enum wire_type type)
{
	struct wire w = {
		.type = type, .session = r->peer->peer_session, .slot = r->slot,
		.instance = r->instance, .handler = type == WIRE_NACK ? r->reason : 0,
	};

	if (type != WIRE_REPLY)
		return frame_send(r->peer, &w);
	if (r->sent++)
		r->peer->ep->stats.replies_resent++;
	return message_send(r->peer, &r->msg, &w, false);
}

/* Follow the rule for an event, and the one after an ACK. Returns the actions of both. */
unsigned int reply_step(struct reply *r, enum event e)
{
	struct peer *p = r->peer;
	const struct protocol *protocol = p->ep->protocol;
	const struct rule *rule;
	unsigned int a;

	rule = find(protocol->target, protocol->ntarget, r->state, e);
	if (!rule)
		return 0;
	a = rule->actions;
	r->state = rule->next;
	if (rule->ack != KEEP) {
		r->ack = rule->ack;
		r->operation = rule->operation;
	}
	log_reply(r);
	if (a & DO_SEND)
		answer(r, WIRE_REPLY);
	arm(p, &r->timer, a, &r->msg, r->sent);
	if (a & DO_NACK)
		answer(r, WIRE_NACK);
	if (a & DO_RELEASE)
		reply_release(r);
	if (a & DO_ACK && !answer(r, WIRE_ACK))
		a |= reply_step(r, EV_ACK_SENT);
	return a;
}

/* Timers: armed ones are in a list; each look takes one of them. */

void timer_stop(struct am_endpoint *ep, struct timer *t)
{
	if (!t->link)
		return;
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	else
		ep->timers_end = t->link;
	t->link = NULL;
}

static void append(struct am_endpoint *ep, struct timer *t)
{
	t->next = NULL;
	t->link = ep->timers_end;
	*t->link = t;
	ep->timers_end = &t->next;
}

void timer_arm(struct am_endpoint *ep, struct timer *t, uint64_t us)
{
	timer_stop(ep, t);
	t->at = ep->time + us;
	append(ep, t);
}

static void request_timer(struct request *r)
{
	const struct am_options *o = &r->peer->ep->opt;

	/* The transport hasn't taken the request: the time counts as if it had been lost. */
	if (r->state == AM_STATE_CREATED)
		r->sent++;
	if (r->state == AM_STATE_ACKED && r->sent > o->reply_retries)
		request_step(r, EV_SPENT, r->echoed ? AM_CAUSE_SLOW : AM_CAUSE_REPLY);
	else if (r->state != AM_STATE_ACKED && r->sent > o->retries)
		request_step(r, EV_SPENT, AM_CAUSE_NETWORK);
	else
		request_step(r, EV_TIMER, AM_CAUSE_NONE);
}

static void reply_timer(struct reply *r)
{
	if (r->state == AM_STATE_DONE) {
		r->reason = WHY_LOST;
		reply_step(r, r->sent > r->peer->ep->opt.retries ? EV_SPENT : EV_TIMER);
	} else {
		r->reason = WHY_GAVE_UP;
		r->running = false;
		r->peer->ep->stats.slow_handlers++;
		reply_step(r, EV_TIMER);
	}
}

void timers_look(struct am_endpoint *ep)
{
	struct timer *t = ep->timers;

	if (!t)
		return;
	/* The last look may have left frames, among them the one that the timer waits for. */
	if (ep->transport.full && t->at <= now(ep)) {
		ep->transport.full = FULL;
		input(ep);
		t = ep->timers;
		if (!t)
			return;
	}
	timer_stop(ep, t);
	if (t->at > now(ep)) {
		append(ep, t);
		return;
	}
	switch (t->kind) {
	case TIMER_REQUEST:
		request_timer(container_of(t, struct request, timer));
		break;
	case TIMER_REPLY:
		reply_timer(container_of(t, struct reply, timer));
		break;
	case TIMER_HELLO:
		hello_send(container_of(t, struct peer, timer));
		break;
	}
}
