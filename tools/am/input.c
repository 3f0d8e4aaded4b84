// SPDX-License-Identifier: BSD-3-Clause
/*
 * Frames that arrive: they are checked, and given to the connection, request or reply that they are
 * about. Handlers are called from here.
 */
#include <errno.h>
#include "internal.h"

enum wire_reason handler_check(struct am_endpoint *ep, const struct wire *w)
{
	const struct handler *h;

	if (w->handler >= AM_HANDLERS)
		return WHY_HANDLER;
	if (log_too_big(ep, w->total))
		return WHY_SEGMENT;
	h = &ep->handlers[w->handler];
	switch (w->size) {
	case WIRE_SHORT:
		return h->brief ? 0 : WHY_HANDLER;
	case WIRE_MEDIUM:
		return h->medium ? 0 : WHY_HANDLER;
	default:
		if (!h->bulk)
			return WHY_HANDLER;
		return w->offset <= ep->seg_size && w->total <= ep->seg_size - w->offset ?
		       0 : WHY_SEGMENT;
	}
}

/*
 * Call a handler that handler_check() allows. Data of a medium message stay in the receive buffer.
 */
void call_handler(struct am_endpoint *ep, struct token *t, const struct wire *w)
{
	const struct handler *h = &ep->handlers[w->handler];
	const int32_t *a = w->args;

	ep->bundle->depth++;
	switch (w->size) {
	case WIRE_SHORT:
		h->brief(t, a[0], a[1], a[2], a[3]);
		break;
	case WIRE_MEDIUM:
		h->medium(t, w->data, w->total, a[0], a[1], a[2], a[3]);
		break;
	case WIRE_BULK:
		h->bulk(t, ep->seg + w->offset, w->total, a[0], a[1], a[2], a[3]);
		break;
	}
	ep->bundle->depth--;
	ep->bundle->events++;
}

/* Copy a piece of a bulk message to its place in the segment. True: all pieces are here. */
bool pieces_add(struct am_endpoint *ep, struct pieces *p, const struct wire *w)
{
	uint64_t bit = 1ull << w->piece % 64, *have = &p->have[w->piece / 64];

	if (!p->count) {
		memset(p, 0, sizeof(*p));
		p->total = w->total;
		p->offset = w->offset;
		p->size = w->piece_size;
		p->handler = w->handler;
	} else if (p->total != w->total || p->offset != w->offset || p->size != w->piece_size ||
		   p->handler != w->handler) {
		ep->stats.bad_field++;
		return false;
	}
	if (!(*have & bit)) {
		*have |= bit;
		p->count++;
		if (w->len)
			memcpy(ep->seg + w->offset + (size_t)w->piece * w->piece_size, w->data,
			       w->len);
	}
	/*
	 * If all were here before, the request was not acknowledged, and its last piece came again.
	 */
	return p->count == wire_pieces(w);
}

static void reply_take(struct peer *p, struct request *r, const struct wire *w)
{
	struct am_endpoint *ep = p->ep;
	struct token t = { .ep = ep, .peer = p };
	enum wire_reason why = w->size == WIRE_EMPTY ? 0 : handler_check(ep, w);

	if (w->size == WIRE_BULK && !why && !pieces_add(ep, &r->reply, w))
		return;
	if (!why)
		log_copy(ep, &r->answer, w);
	/* The request was processed, even if this endpoint has no handler for the reply. */
	if (!(request_step(r, EV_REPLY, AM_CAUSE_NONE) & DO_RUN))
		return;
	ep->stats.replies++;
	if (why == WHY_HANDLER) {
		ep->stats.bad_handler++;
		r->cause = AM_CAUSE_HANDLER;
	} else if (why) {
		ep->stats.bad_segment++;
		r->cause = AM_CAUSE_SEGMENT;
	} else if (w->size != WIRE_EMPTY) {
		call_handler(ep, &t, w);
	}
	r->handled = true;
	log_request(r);
}

static void nack_take(struct request *r, const struct wire *w)
{
	switch (w->handler) {
	case WHY_HANDLER:
		request_step(r, EV_NACK, AM_CAUSE_HANDLER);
		break;
	case WHY_SEGMENT:
		request_step(r, EV_NACK, AM_CAUSE_SEGMENT);
		break;
	case WHY_GAVE_UP:
		request_step(r, EV_GIVEN_UP, AM_CAUSE_SLOW);
		break;
	case WHY_LOST:
		request_step(r, EV_GIVEN_UP, AM_CAUSE_REPLY);
		break;
	}
}

/* Take an answer to a request of this endpoint. */
static void answer_take(struct peer *p, const struct wire *w)
{
	struct am_endpoint *ep = p->ep;
	struct request *r;

	if (p->hello != HELLO_DONE || w->session != p->session) {
		ep->stats.bad_session++;
		return;
	}
	if (w->slot >= p->credits) {
		ep->stats.bad_field++;
		return;
	}
	if (w->type == WIRE_NACK && w->handler == WHY_SESSION) {
		session_lost(p);
		return;
	}
	r = p->out[w->slot];
	/* The request waits for AM_Decide(): sent again, it will be answered again. */
	if (r && r->undecided) {
		ep->stats.late++;
		return;
	}
	if (!r || r->instance != w->instance || r->state == AM_STATE_CREATED) {
		ep->stats.late++;
		/*
		 * The target keeps that reply until it gets FINAL. But the slot's request may need
		 * the reply yet: the log that restored it didn't know whether it had left.
		 */
		if (w->type == WIRE_REPLY && ep->protocol->pooled &&
		    !(r && r->instance == w->instance))
			final_send(p, w->slot, w->instance);
		return;
	}
	switch (w->type) {
	case WIRE_ACK:
		r->echoed = r->state == AM_STATE_ACKED && r->sent > 1;
		request_step(r, EV_ACK, AM_CAUSE_NONE);
		break;
	case WIRE_NACK:
		nack_take(r, w);
		break;
	case WIRE_REPLY:
		reply_take(p, r, w);
		break;
	}
}

/* Take the peer's refusal of a connection. */
static void refusal_take(struct peer *p, const struct wire *w, bool other_version)
{
	static const int errors[] = {
		[WHY_VERSION] = AM_ERR_VERSION, [WHY_PROTOCOL] = AM_ERR_PROTOCOL,
		[WHY_TAG] = AM_ERR_TAG, [WHY_FULL] = AM_ERR_FULL,
	};

	if (p->hello != HELLO_SENT || w->session != p->nonce)
		p->ep->stats.bad_session++;
	else if (other_version)
		hello_refused(p, AM_ERR_VERSION);
	else if (w->handler < ARRAY_SIZE(errors))
		hello_refused(p, errors[w->handler]);
	else
		p->ep->stats.bad_field++;
}

static void refuse(struct am_endpoint *ep, const en_t *to, const struct wire *w,
		   enum wire_reason why)
{
	struct wire no = {
		.type = WIRE_NACK, .session = w->session, .slot = w->slot,
		.instance = w->instance, .handler = why,
	};

	answer_send(ep, to, &no);
}

/* Take a request, or the FINAL by which its initiator acknowledges the reply. */
static void initiator_says(struct am_endpoint *ep, struct peer *p, const en_t *from,
			   struct wire *w)
{
	struct reply *r;

	if (!p || !((p->known && w->session == p->peer_session) ||
		    (p->offered && w->session == p->offered_session && w->type == WIRE_REQUEST))) {
		ep->stats.bad_session++;
		if (w->type == WIRE_REQUEST)
			refuse(ep, from, w, WHY_SESSION);
		return;
	}
	if (w->type == WIRE_REQUEST) {
		request_take(p, w);
		return;
	}
	if (w->slot >= p->peer_credits) {
		ep->stats.bad_field++;
		return;
	}
	r = &p->in[w->slot];
	if (r->known && r->instance == w->instance)
		reply_step(r, EV_FINAL);
	else
		ep->stats.late++;
}

static void frame_take(struct am_endpoint *ep, struct frame *f)
{
	struct wire w = { .type = 0 };
	struct peer *p = NULL;
	enum wire_verdict v;

	ep->stats.frames_received++;
	if (f->len > ep->transport.mtu)
		v = WIRE_LENGTH;
	else
		v = wire_read(f->data, f->len, &w);
	if (v == WIRE_GOOD || v == WIRE_OTHER_VERSION)
		p = peer_find(ep, &f->from);
	switch (v) {
	case WIRE_LENGTH:
		ep->stats.bad_length++;
		return;
	case WIRE_CHECKSUM:
		ep->stats.bad_checksum++;
		return;
	case WIRE_TYPE:
		ep->stats.bad_type++;
		return;
	case WIRE_FIELD:
		ep->stats.bad_field++;
		return;
	case WIRE_OTHER_VERSION:
		ep->stats.bad_version++;
		if (w.type == WIRE_HELLO)
			refuse(ep, &f->from, &w, WHY_VERSION);
		else if (p && w.type == WIRE_NACK)
			refusal_take(p, &w, true);
		return;
	case WIRE_GOOD:
		break;
	}
	if (p)
		p->heard = ep->time;
	switch (w.type) {
	case WIRE_HELLO:
		hello_take(ep, p, &f->from, &w);
		return;
	case WIRE_REQUEST:
	case WIRE_FINAL:
		initiator_says(ep, p, &f->from, &w);
		return;
	}
	if (!p)
		ep->stats.bad_session++;
	else if (w.type == WIRE_WELCOME)
		welcome_take(p, &w);
	else if (w.type == WIRE_NACK && w.handler >= WHY_VERSION)
		refusal_take(p, &w, false);
	else
		answer_take(p, &w);
}

/*
 * Take the frames that are here, at most one more than the credits. Returns whether there were any.
 */
bool input(struct am_endpoint *ep)
{
	uint64_t events = 0;
	int i, n = transport_receive(&ep->transport, ep->frames, ep->opt.credits + 1,
				     ep->transport.mtu);

	if (n < 0) {
		ep->transport.error = errno;
		ep->stats.receive_errors++;
	}
	for (i = 0; i < n; i++) {
		/* The last one's handler may have taken long. */
		if (!i || ep->bundle->events != events) {
			events = ep->bundle->events;
			now(ep);
		}
		frame_take(ep, &ep->frames[i]);
	}
	return n > 0;
}
