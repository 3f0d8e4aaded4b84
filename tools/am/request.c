// SPDX-License-Identifier: BSD-3-Clause
/*
 * Sending: a request takes a descriptor of the send pool and a credit of its peer, and polls
 * until it has both.
 */
#include <stdarg.h>
#include <stdlib.h>
#include "internal.h"

/*
 * Frames
 */

/*
 * Send a frame to @to, which need not be a peer. Returns 0: sent, or lost like any other; 1: the
 * transport doesn't take it now.
 */
int answer_send(struct am_endpoint *ep, const en_t *to, struct wire *w)
{
	size_t len = wire_write(ep->out, w);

	switch (transport_send(&ep->transport, to, ep->out, len)) {
	case 0:
		ep->stats.frames_sent++;
		return 0;
	case 1:
		ep->stats.not_taken++;
		return 1;
	default:
		ep->stats.send_errors++;
		return 0;
	}
}

int frame_send(struct peer *p, struct wire *w)
{
	return answer_send(p->ep, &p->name, w);
}

/* Send all pieces of @m, or only the last one. Returns 1 if the transport took none. */
int message_send(struct peer *p, const struct am_message *m, struct wire *w, bool last_only)
{
	unsigned int count;

	w->size = m->size;
	w->handler = m->handler;
	w->nargs = m->nargs;
	memcpy(w->args, m->args, sizeof(w->args));
	w->total = m->total;
	w->data = m->data;
	w->len = m->total;
	if (m->size != WIRE_BULK)
		return frame_send(p, w);
	w->offset = m->offset;
	w->piece_size = p->ep->transport.mtu - WIRE_HEADER - 4 * m->nargs;
	count = wire_pieces(w);
	for (w->piece = last_only ? count - 1 : 0; w->piece < count; w->piece++) {
		size_t before = (size_t)w->piece * w->piece_size;

		w->data = m->data + before;
		w->len = m->total - before < w->piece_size ? m->total - before : w->piece_size;
		/* The pieces from here on count as lost, and are retransmitted. */
		if (frame_send(p, w))
			return !w->piece || last_only;
	}
	now(p->ep);
	return 0;
}

/* Check that a message is valid, and that its data fit into the log. */
int message_check(const struct am_message *m, handler_t handler, enum wire_size size, int offset,
		  const void *source, int nbytes, int nargs)
{
	if (!handler_valid(handler) || nargs < 0 || nargs > AM_MAX_ARGS ||
	    offset < 0 || nbytes < 0 || (nbytes && !source))
		return AM_ERR_BAD_ARG;
	if (nbytes > (size == WIRE_BULK ? AM_MAX_LONG : AM_MAX_MEDIUM) ||
	    (m->logged && (size_t)nbytes > m->room))
		return AM_ERR_TOO_BIG;
	return AM_OK;
}

/* Copy a message, so that the caller may reuse its memory at once. */
int message_fill(struct am_message *m, handler_t handler, enum wire_size size, int offset,
		 const void *source, int nbytes, int nargs, const int *args)
{
	size_t room = nbytes <= AM_MAX_MEDIUM ? AM_MAX_MEDIUM : nbytes;

	if (nbytes && m->room < room) {
		uint8_t *data = realloc(m->data, room);

		if (!data)
			return AM_ERR_RESOURCE;
		m->data = data;
		m->room = room;
	}
	m->handler = handler;
	m->size = size;
	m->offset = offset;
	m->total = nbytes;
	m->nargs = nargs;
	memset(m->args, 0, sizeof(m->args));
	if (nargs)
		memcpy(m->args, args, nargs * sizeof(*args));
	if (nbytes)
		memcpy(m->data, source, nbytes);
	return AM_OK;
}

void message_free(struct am_message *m)
{
	if (!m->logged)
		free(m->data);
}

/*
 * The send pool
 */

am_handle_t request_handle(const struct am_endpoint *ep, const struct request *r)
{
	return (am_handle_t)(r - ep->pool) << 32 | r->serial;
}

/*
 * Return the free entry that was used longest ago, so that the program can ask long for the state
 * of each request.
 */
static struct request *free_entry(struct am_endpoint *ep)
{
	unsigned int i;
	struct request *r;

	/* If replies take from the pool, too, half of it is theirs. */
	if (ep->protocol->pooled &&
	    (ep->requests >= ep->opt.pool / 2 || ep->stats.buffers >= ep->opt.pool))
		return NULL;
	for (i = 0; i < ep->opt.pool; i++) {
		r = &ep->pool[(ep->next_entry + i) % ep->opt.pool];
		if (!r->peer && !r->undecided) {
			ep->next_entry = (r - ep->pool + 1) % ep->opt.pool;
			return r;
		}
	}
	return NULL;
}

static int free_slot(const struct peer *p)
{
	unsigned int i;

	for (i = 0; i < p->credits; i++)
		if (!p->out[i])
			return i;
	return -1;
}

void request_release(struct request *r)
{
	struct peer *p = r->peer;
	struct am_endpoint *ep = p->ep;

	timer_stop(ep, &r->timer);
	unsent_forget(r);
	p->out[r->slot] = NULL;
	r->peer = NULL;
	r->undecided = false;
	ep->requests--;
	ep->stats.buffers--;
}

/*
 * Requests that the transport hasn't taken yet, in order. Each has a timer, like those that were
 * sent.
 */

static void unsent_add(struct request *r)
{
	struct am_endpoint *ep = r->peer->ep;

	now(ep);
	r->next_unsent = NULL;
	*ep->unsent_end = r;
	ep->unsent_end = &r->next_unsent;
	r->peer->unsent++;
	request_step(r, EV_TIMER, AM_CAUSE_NONE);
}

static void unsent_remove(struct am_endpoint *ep, struct request **link)
{
	struct request *r = *link;

	*link = r->next_unsent;
	if (!*link)
		ep->unsent_end = link;
	r->peer->unsent--;
}

void unsent_forget(struct request *r)
{
	struct am_endpoint *ep = r->peer->ep;
	struct request **link;

	if (!r->peer->unsent)
		return;
	for (link = &ep->unsent; *link && *link != r; link = &(*link)->next_unsent)
		;
	if (*link)
		unsent_remove(ep, link);
}

static bool post(struct request *r)
{
	struct wire w = {
		.type = WIRE_REQUEST, .session = r->session, .slot = r->slot,
		.instance = r->instance,
	};

	r->sent_at = now(r->peer->ep);
	if (message_send(r->peer, &r->msg, &w, false))
		return false;
	r->sent = 1;
	r->sent_all = 1;
	request_step(r, EV_POST, AM_CAUSE_NONE);
	return true;
}

/*
 * Send unsent requests, in one pass. After a refusal, skip that peer's others (by_peer), or stop.
 */
void unsent_look(struct am_endpoint *ep)
{
	struct request **link = &ep->unsent, *r;

	ep->pass++;
	while ((r = *link)) {
		if (r->peer->refused != ep->pass && post(r)) {
			unsent_remove(ep, link);
			continue;
		}
		if (!ep->transport.ops->by_peer)
			return;
		r->peer->refused = ep->pass;
		link = &r->next_unsent;
	}
}

/* Must a new request wait behind others? */
static bool must_wait(const struct peer *p)
{
	return p->ep->transport.ops->by_peer ? p->unsent : !!p->ep->unsent;
}

/* Continue with a request that the log restored, after AM_Decide(). */
void request_resume(struct request *r)
{
	r->undecided = false;
	if (r->state != AM_STATE_CREATED)
		request_step(r, EV_TIMER, AM_CAUSE_NONE);
	else if (must_wait(r->peer) || !post(r))
		unsent_add(r);
}

/*
 * Requests
 */

/*
 * Start a request in descriptor @r, with a credit, @slot. The caller has checked that no handler
 * runs.
 */
static int start(struct am_endpoint *ep, struct peer *p, struct request *r, int slot,
		 handler_t handler, enum wire_size size, int offset, const void *source,
		 int nbytes, int nargs, const int *args)
{
	int error;

	error = message_check(&r->msg, handler, size, offset, source, nbytes, nargs);
	if (error)
		return error;
	log_forget(r);
	error = message_fill(&r->msg, handler, size, offset, source, nbytes, nargs, args);
	if (error)
		return error;
	log_seal(ep, &r->msg);
	r->peer = p;
	r->name = p->name;
	r->slot = slot;
	r->session = p->session;
	r->instance = p->instance[slot]++;
	if (p->one_bit)
		r->instance &= 1;
	if (!++ep->serial)
		ep->serial = 1;
	r->serial = ep->serial;
	r->state = AM_STATE_CREATED;
	r->ack = AM_NOT_ACKED;
	r->operation = AM_NOT_PROCESSED;
	r->cause = AM_CAUSE_NONE;
	r->known = true;
	r->echoed = false;
	r->handled = false;
	r->answer.size = WIRE_EMPTY;
	r->sent = 0;
	r->sent_all = 0;
	r->reply.count = 0;
	r->timer.kind = TIMER_REQUEST;
	p->out[slot] = r;
	ep->requests++;
	ep->stats.requests++;
	if (++ep->stats.buffers > ep->stats.buffers_peak)
		ep->stats.buffers_peak = ep->stats.buffers;
	ep->last_handle = request_handle(ep, r);
	/* The packet is in the log before it leaves. */
	log_request(r);
	log_slot(p, slot);
	if (must_wait(p) || !post(r))
		unsent_add(r);
	return AM_OK;
}

static int request(ep_t ep, int index, handler_t handler, enum wire_size size, int offset,
		   const void *source, int nbytes, int nargs, va_list list)
{
	struct request *r;
	int args[AM_MAX_ARGS], i, slot, error;
	uint64_t end = 0;
	bool stalled = false;
	struct peer *p;

	if (nargs < 0 || nargs > AM_MAX_ARGS)
		return AM_ERR_BAD_ARG;
	for (i = 0; i < nargs; i++)
		args[i] = va_arg(list, int);
	if (ep->bundle->depth) {
		ep->stats.refused++;
		return AM_ERR_IN_HANDLER;
	}
	if (index < 0 || (unsigned int)index >= ep->opt.peers)
		return AM_ERR_BAD_ARG;
	p = ep->map[index];
	if (!p)
		return AM_ERR_NOT_MAPPED;
	/*
	 * Each operation looks at one timer, and before it at frames: the one that it waits for may
	 * be here.
	 */
	if (ep->timers && ep->timers->at <= now(ep))
		input(ep);
	timers_look(ep);
	if (p->hello == HELLO_FAILED)
		hello_start(p);
	while (true) {
		if (p->hello == HELLO_DONE) {
			slot = free_slot(p);
			r = slot < 0 ? NULL : free_entry(ep);
			if (r)
				break;
		} else if (p->hello == HELLO_FAILED) {
			return p->error;
		}
		if (!stalled) {
			stalled = true;
			ep->stats.stalls++;
			if (ep->bundle->timeout_ms >= 0)
				end = now(ep) + ep->bundle->timeout_ms * 1000ull;
		} else if (end && now(ep) >= end) {
			return AM_ERR_TIMEOUT;
		}
		if (progress(ep->bundle))
			continue;
		error = wait_a_while(ep->bundle, end, !end);
		if (error)
			return error;
	}
	return start(ep, p, r, slot, handler, size, offset, source, nbytes, nargs, args);
}

int am_request(ep_t ep, int index, handler_t handler, int nargs, ...)
{
	va_list args;
	int error;

	va_start(args, nargs);
	error = request(ep, index, handler, WIRE_SHORT, 0, NULL, 0, nargs, args);
	va_end(args);
	return error;
}

int am_request_i(ep_t ep, int index, handler_t handler, const void *source, int nbytes, int nargs,
		 ...)
{
	va_list args;
	int error;

	va_start(args, nargs);
	error = request(ep, index, handler, WIRE_MEDIUM, 0, source, nbytes, nargs, args);
	va_end(args);
	return error;
}

int am_request_xfer(ep_t ep, int index, handler_t handler, int offset, const void *source,
		    int nbytes, int nargs, ...)
{
	va_list args;
	int error;

	va_start(args, nargs);
	error = request(ep, index, handler, WIRE_BULK, offset, source, nbytes, nargs, args);
	va_end(args);
	return error;
}
