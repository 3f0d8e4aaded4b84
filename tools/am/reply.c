// SPDX-License-Identifier: BSD-3-Clause
/*
 * The target of requests: each of a peer's slots remembers the last instance number and the
 * reply to it, so that a handler runs once however often its request comes.
 */
#include <stdarg.h>
#include <stdlib.h>
#include "internal.h"

#define RECEIVED	0x8000000000000000ull	/* bit of a handle: an entry of the receive pool */

am_handle_t reply_handle(const struct reply *r)
{
	return RECEIVED | (am_handle_t)(r->peer - r->peer->ep->peers) << 48 |
	       (am_handle_t)r->slot << 32 | r->serial;
}

void reply_release(struct reply *r)
{
	timer_stop(r->peer->ep, &r->timer);
	if (r->buffer)
		r->peer->ep->stats.buffers--;
	r->buffer = false;
}

/* Prepare the slot for a new request; the state of the last one is needed no longer. */
static void begin(struct reply *r, uint16_t instance)
{
	struct am_endpoint *ep = r->peer->ep;

	reply_release(r);
	if (!++ep->serial)
		ep->serial = 1;
	r->serial = ep->serial;
	r->instance = instance;
	r->known = true;
	r->running = false;
	r->replied = false;
	r->sent = 0;
	r->state = AM_STATE_CREATED;
	r->ack = AM_NOT_ACKED;
	r->operation = AM_NOT_PROCESSED;
	r->undecided = false;
	r->pieces.count = 0;
	r->request.size = WIRE_EMPTY;
	r->msg.size = WIRE_EMPTY;
	log_reply(r);
}

/*
 * Take a buffer for the reply to a request that is all here. A request with missing pieces takes
 * none: it has no timer, so it would keep the buffer if its initiator has died.
 */
static bool take_buffer(struct reply *r)
{
	struct am_endpoint *ep = r->peer->ep;

	if (r->buffer)
		return true;
	if (ep->protocol->pooled && ep->stats.buffers >= ep->opt.pool) {
		ep->stats.no_buffer++;
		return false;
	}
	r->buffer = true;
	if (++ep->stats.buffers > ep->stats.buffers_peak)
		ep->stats.buffers_peak = ep->stats.buffers;
	return true;
}

/*
 * Send the reply when the handler has returned, or its deferred reply was made. @late is the event
 * if that took too long.
 */
static int finish(struct reply *r, enum event late)
{
	struct am_endpoint *ep = r->peer->ep;

	r->running = false;
	timer_stop(ep, &r->timer);
	if (ep->time - r->began > ep->opt.handler_max_us) {
		r->reason = WHY_GAVE_UP;
		ep->stats.slow_handlers++;
		reply_step(r, late);
		return AM_ERR_NO_REPLY;
	}
	/* Every request has a reply: an empty one if the handler made none. */
	if (!r->replied) {
		r->msg.size = WIRE_EMPTY;
		r->msg.handler = 0;
		r->msg.nargs = 0;
		r->msg.total = 0;
	}
	reply_step(r, EV_DONE);
	return AM_OK;
}

static void run(struct reply *r, const struct wire *w)
{
	struct am_endpoint *ep = r->peer->ep;
	struct token t = {
		.ep = ep, .peer = r->peer, .request = true, .slot = r->slot,
		.serial = r->serial, .handle = reply_handle(r),
	};

	r->running = true;
	r->began = ep->time;
	ep->stats.handlers_run++;
	call_handler(ep, &t, w);
	if (t.deferred)
		return;
	now(ep);
	finish(r, EV_LATE);
}

/* Run the handler of a request that the log restored, after AM_Decide(); @w NULL: decline it. */
void reply_resume(struct reply *r, const struct wire *w)
{
	r->undecided = false;
	r->running = false;
	r->reason = WHY_GAVE_UP;
	if (reply_step(r, w ? EV_AGAIN : EV_DECLINED) & DO_RUN)
		run(r, w);
}

/* Answer a request that came again. */
static void repeated(struct reply *r, const struct wire *w)
{
	struct am_endpoint *ep = r->peer->ep;

	/* Of a request's pieces only the last one asks for an answer. */
	if (w->size == WIRE_BULK && w->piece + 1u < wire_pieces(w))
		return;
	ep->stats.duplicates++;
	reply_step(r, EV_DUPLICATE);
}

static struct reply *in_slot(struct peer *p, const struct wire *w)
{
	struct am_endpoint *ep = p->ep;
	struct reply *r;
	int16_t age;

	if (w->slot >= p->peer_credits || (p->one_bit_in && w->instance > 1)) {
		ep->stats.bad_field++;
		return NULL;
	}
	r = &p->in[w->slot];
	age = w->instance - r->instance;
	if (!r->known || (p->one_bit_in ? age != 0 : age > 0)) {
		begin(r, w->instance);
		return r;
	}
	if (age < 0) {
		ep->stats.late++;
		return NULL;
	}
	if (r->state == AM_STATE_CREATED || (r->state == AM_STATE_SENT && !r->running))
		return r;
	repeated(r, w);
	return NULL;
}

struct reply *replies_new(struct peer *p, unsigned int n)
{
	struct reply *in = calloc(n, sizeof(*in));
	unsigned int i;

	for (i = 0; in && i < n; i++) {
		in[i].peer = p;
		in[i].slot = i;
		in[i].timer.kind = TIMER_REPLY;
		log_places(&in[i]);
	}
	return in;
}

/* Take over the offered connection, which the initiator uses now, and forget the last one. */
static bool promote(struct peer *p)
{
	unsigned int i;
	struct reply *in = replies_new(p, p->offered_credits);

	if (!in)
		return false;
	peer_forget(p);
	log_peer(p);
	p->in = in;
	p->known = true;
	p->offered = false;
	p->peer_nonce = p->offered_nonce;
	p->peer_session = p->offered_session;
	p->peer_credits = p->offered_credits;
	p->one_bit_in = p->ep->protocol->id == AM_NWAY && p->peer_credits == 1;
	for (i = 0; i < p->peer_credits; i++)
		log_reply(&in[i]);
	log_peer(p);
	return true;
}

void peer_forget(struct peer *p)
{
	unsigned int i;

	for (i = 0; p->in && i < p->peer_credits; i++) {
		reply_release(&p->in[i]);
		message_free(&p->in[i].msg);
	}
	free(p->in);
	p->in = NULL;
	p->known = false;
	p->peer_credits = 0;
}

void request_take(struct peer *p, struct wire *w)
{
	struct am_endpoint *ep = p->ep;
	enum wire_reason why;
	struct reply *r;

	if (p->offered && w->session == p->offered_session && !promote(p))
		return;
	r = in_slot(p, w);
	if (!r)
		return;
	why = handler_check(ep, w);
	if (why) {
		if (why == WHY_HANDLER)
			ep->stats.bad_handler++;
		else
			ep->stats.bad_segment++;
		r->reason = why;
		reply_step(r, EV_NO_HANDLER);
		return;
	}
	if (w->size == WIRE_BULK && !pieces_add(ep, &r->pieces, w))
		return;
	if (!take_buffer(r))
		return;
	if (r->state == AM_STATE_CREATED)
		log_copy(ep, &r->request, w);
	if (reply_step(r, EV_REQUEST) & DO_RUN)
		run(r, w);
}

/*
 * Replies
 */

/* Return a token's entry; NULL if it waits for no reply any more. */
static struct reply *token_reply(const struct token *t)
{
	struct reply *r;

	if (t->slot >= t->peer->peer_credits)
		return NULL;
	r = &t->peer->in[t->slot];
	return r->serial == t->serial && r->running && !r->replied ? r : NULL;
}

static void token_free(struct token *t)
{
	struct token **link;

	for (link = &t->ep->deferred; *link != t; link = &(*link)->next)
		;
	*link = t->next;
	free(t);
}

static int reply(struct token *t, handler_t handler, enum wire_size size, int offset,
		 const void *source, int nbytes, int nargs, va_list list)
{
	int args[AM_MAX_ARGS], i, error;
	struct reply *r;

	if (nargs < 0 || nargs > AM_MAX_ARGS)
		return AM_ERR_BAD_ARG;
	for (i = 0; i < nargs; i++)
		args[i] = va_arg(list, int);
	if (!t->request || (t->deferred && t->ep->bundle->depth)) {
		t->ep->stats.refused++;
		return AM_ERR_IN_HANDLER;
	}
	r = token_reply(t);
	if (!r) {
		if (t->deferred)
			token_free(t);
		return AM_ERR_NO_REPLY;
	}
	error = message_check(&r->msg, handler, size, offset, source, nbytes, nargs);
	if (!error)
		error = message_fill(&r->msg, handler, size, offset, source, nbytes, nargs, args);
	if (error)
		return error;
	log_seal(t->ep, &r->msg);
	r->replied = true;
	if (!t->deferred)
		return AM_OK;
	now(t->ep);
	token_free(t);
	return finish(r, EV_TIMER);
}

int am_reply(void *token, handler_t handler, int nargs, ...)
{
	va_list args;
	int error;

	va_start(args, nargs);
	error = reply(token, handler, WIRE_SHORT, 0, NULL, 0, nargs, args);
	va_end(args);
	return error;
}

int am_reply_i(void *token, handler_t handler, const void *source, int nbytes, int nargs, ...)
{
	va_list args;
	int error;

	va_start(args, nargs);
	error = reply(token, handler, WIRE_MEDIUM, 0, source, nbytes, nargs, args);
	va_end(args);
	return error;
}

int am_reply_xfer(void *token, handler_t handler, int offset, const void *source, int nbytes,
		  int nargs, ...)
{
	va_list args;
	int error;

	va_start(args, nargs);
	error = reply(token, handler, WIRE_BULK, offset, source, nbytes, nargs, args);
	va_end(args);
	return error;
}

void *AM_Defer(void *token)
{
	struct token *t = token, *later;

	if (!t->request || t->deferred || !token_reply(t))
		return NULL;
	later = malloc(sizeof(*later));
	if (!later)
		return NULL;
	t->deferred = true;
	*later = *t;
	later->next = t->ep->deferred;
	t->ep->deferred = later;
	return later;
}

int AM_GetTokenHandle(void *token, am_handle_t *handle)
{
	struct token *t = token;

	if (!t->request)
		return AM_ERR_BAD_ARG;
	*handle = t->handle;
	return AM_OK;
}

int AM_GetSourceEndpoint(void *token, en_t *name)
{
	*name = ((struct token *)token)->peer->name;
	return AM_OK;
}

int AM_GetDestEndpoint(void *token, ep_t *ep)
{
	*ep = ((struct token *)token)->ep;
	return AM_OK;
}

/*
 * States
 */

/* Find the entry of a handle: @q of the send pool, or @r of the receive pool; the other is NULL. */
int handle_find(struct am_endpoint *ep, am_handle_t handle, struct request **q, struct reply **r)
{
	unsigned int entry = handle >> 32, slot = handle >> 32 & 0xffff;
	unsigned int peer = handle >> 48 & 0x7fff;
	uint32_t serial = handle;

	*q = NULL;
	*r = NULL;
	if (handle & RECEIVED) {
		if (peer >= ep->opt.peers)
			return AM_ERR_BAD_ARG;
		if (slot >= ep->peers[peer].peer_credits)
			return AM_ERR_STALE;
		*r = &ep->peers[peer].in[slot];
		return (*r)->known && (*r)->serial == serial ? AM_OK : AM_ERR_STALE;
	}
	if (entry >= ep->opt.pool)
		return AM_ERR_BAD_ARG;
	*q = &ep->pool[entry];
	return (*q)->known && (*q)->serial == serial ? AM_OK : AM_ERR_STALE;
}

int AM_GetTransferState(ep_t ep, am_handle_t handle, struct am_state *state)
{
	struct request *q;
	struct reply *r;
	int error = handle_find(ep, handle, &q, &r);

	if (error)
		return error;
	if (r) {
		*state = (struct am_state) {
			.state = r->state, .ack = r->ack, .operation = r->operation,
			.sent = r->sent, .instance = r->instance,
		};
		return AM_OK;
	}
	*state = (struct am_state) {
		.state = q->state, .ack = q->ack, .operation = q->operation, .cause = q->cause,
		.sent = q->sent_all, .instance = q->instance,
	};
	return AM_OK;
}

int AM_GetTransferHandle(ep_t ep, am_handle_t *handle)
{
	if (!ep->last_handle)
		return AM_ERR_BAD_ARG;
	*handle = ep->last_handle;
	return AM_OK;
}

int AM_ListSent(ep_t ep, am_handle_t *handles, int n)
{
	unsigned int i;
	int found = 0;

	for (i = 0; i < ep->opt.pool; i++) {
		if (!ep->pool[i].known)
			continue;
		if (found < n)
			handles[found] = request_handle(ep, &ep->pool[i]);
		found++;
	}
	return found;
}

int AM_ListReceived(ep_t ep, am_handle_t *handles, int n)
{
	unsigned int i, j;
	int found = 0;

	for (i = 0; i < ep->opt.peers; i++) {
		for (j = 0; j < ep->peers[i].peer_credits; j++) {
			if (!ep->peers[i].in[j].known)
				continue;
			if (found < n)
				handles[found] = reply_handle(&ep->peers[i].in[j]);
			found++;
		}
	}
	return found;
}
