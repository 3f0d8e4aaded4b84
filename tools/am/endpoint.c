// SPDX-License-Identifier: BSD-3-Clause
/*
 * Endpoints and their peers: their names, and the connection to each.
 *
 * A connection carries the requests of one initiator. The initiator greets with a random number
 * (the nonce); the target answers with a session's number, which each request then has. So the
 * target tells these requests from a stranger's, and from those that the initiator sent before a
 * restart.
 */
#include <stdlib.h>
#include <sys/random.h>
#include "internal.h"

#define DEFAULT(field, value) do { if (!o->field) o->field = value; } while (0)

/*
 * Peers
 */

struct peer *peer_find(struct am_endpoint *ep, const en_t *name)
{
	unsigned int i;

	if (ep->last && name_equal(&ep->last->name, name))
		return ep->last;
	for (i = 0; i < ep->opt.peers; i++)
		if (ep->peers[i].used && name_equal(&ep->peers[i].name, name))
			return ep->last = &ep->peers[i];
	return NULL;
}

static void peer_drop(struct peer *p)
{
	struct am_endpoint *ep = p->ep;

	timer_stop(ep, &p->timer);
	peer_forget(p);
	free(p->out);
	free(p->instance);
	memset(p, 0, sizeof(*p));
	p->ep = ep;
	log_peer(p);
	p->timer.kind = TIMER_HELLO;
	if (ep->last == p)
		ep->last = NULL;
}

/* Are requests to the peer outstanding? */
static bool has_requests(const struct peer *p)
{
	unsigned int i;

	for (i = 0; i < p->credits; i++)
		if (p->out[i])
			return true;
	return false;
}

/*
 * Find a place for a new peer. A full table gives that of a peer without maps and outstanding
 * requests which has no connection, or was silent for idle_us; of several, the one that was silent
 * longest.
 */
static struct peer *peer_new(struct am_endpoint *ep, const en_t *name)
{
	struct peer *p, *place = NULL;
	unsigned int i;

	for (i = 0; i < ep->opt.peers; i++) {
		p = &ep->peers[i];
		if (!p->used) {
			place = p;
			break;
		}
		if (p->maps || has_requests(p))
			continue;
		/* A peer without maps has p->hello if the log has restored its connection. */
		if ((p->hello != HELLO_NONE || p->known) && now(ep) - p->heard < ep->opt.idle_us)
			continue;
		if (!place || p->heard < place->heard)
			place = p;
	}
	if (!place)
		return NULL;
	if (place->used)
		peer_drop(place);
	place->used = true;
	place->name = *name;
	place->heard = now(ep);
	return place;
}

/*
 * Connections
 */

/* Return a number that can't be guessed. */
static uint32_t secret(void)
{
	uint32_t x;

	if (getrandom(&x, sizeof(x), 0) != sizeof(x))
		abort();
	return x;
}

static void fail_requests(struct peer *p)
{
	struct am_endpoint *ep = p->ep;
	unsigned int i;

	for (i = 0; i < ep->opt.pool; i++)
		if (ep->pool[i].peer == p)
			request_step(&ep->pool[i], EV_FORGOTTEN, AM_CAUSE_RESTARTED);
}

void hello_send(struct peer *p)
{
	struct am_endpoint *ep = p->ep;
	struct wire w = {
		.type = WIRE_HELLO, .session = p->nonce, .slot = ep->opt.credits,
		.handler = ep->opt.protocol, .nargs = 2, .args = { p->tag >> 32, p->tag },
	};
	uint64_t us = ep->opt.timeout_us;

	if (p->hellos > ep->opt.retries) {
		hello_refused(p, AM_ERR_NETWORK);
		return;
	}
	frame_send(p, &w);
	now(ep);
	timer_arm(ep, &p->timer, us << (p->hellos < 6 ? p->hellos : 6));
	p->hellos++;
}

/* Begin a connection, or begin it anew. */
void hello_start(struct peer *p)
{
	p->hello = HELLO_SENT;
	p->hellos = 0;
	p->nonce = secret();
	fail_requests(p);
	log_peer(p);
	hello_send(p);
}

void hello_refused(struct peer *p, int error)
{
	timer_stop(p->ep, &p->timer);
	p->hello = HELLO_FAILED;
	p->error = error;
	p->ep->bundle->events++;
}

void session_lost(struct peer *p)
{
	hello_start(p);
	p->ep->bundle->events++;
}

static void hello_answer(struct am_endpoint *ep, const en_t *to, const struct wire *w,
			 enum wire_reason why)
{
	struct wire no = { .type = WIRE_NACK, .session = w->session, .handler = why };

	answer_send(ep, to, &no);
}

/* Answer a HELLO; @p is NULL if @from isn't in the table of peers yet. */
void hello_take(struct am_endpoint *ep, struct peer *p, const en_t *from, const struct wire *w)
{
	tag_t tag = (tag_t)(uint32_t)w->args[0] << 32 | (uint32_t)w->args[1];
	struct wire welcome = { .type = WIRE_WELCOME, .session = w->session, .nargs = 1 };

	if (w->nargs != 2 || !w->slot) {
		ep->stats.bad_field++;
		return;
	}
	if (w->handler != ep->opt.protocol) {
		ep->stats.bad_protocol++;
		hello_answer(ep, from, w, WHY_PROTOCOL);
		return;
	}
	if (tag != ep->tag) {
		ep->stats.bad_tag++;
		hello_answer(ep, from, w, WHY_TAG);
		return;
	}
	if (!p)
		p = peer_new(ep, from);
	if (!p) {
		ep->stats.peers_refused++;
		hello_answer(ep, from, w, WHY_FULL);
		return;
	}
	if (p->known && p->peer_nonce == w->session) {
		welcome.args[0] = p->peer_session;
		welcome.slot = p->peer_credits;
	} else {
		if (!p->offered || p->offered_nonce != w->session) {
			p->offered = true;
			p->offered_nonce = w->session;
			p->offered_session = secret();
			p->offered_credits = w->slot < ep->opt.credits ? w->slot : ep->opt.credits;
			log_peer(p);
		}
		welcome.args[0] = p->offered_session;
		welcome.slot = p->offered_credits;
	}
	frame_send(p, &welcome);
}

void welcome_take(struct peer *p, const struct wire *w)
{
	struct am_endpoint *ep = p->ep;
	uint16_t *instance;
	struct request **out;
	unsigned int i;

	if (p->hello != HELLO_SENT || w->session != p->nonce) {
		ep->stats.late++;
		return;
	}
	if (w->nargs != 1 || !w->slot || w->slot > ep->opt.credits) {
		ep->stats.bad_field++;
		return;
	}
	out = calloc(w->slot, sizeof(*out));
	instance = calloc(w->slot, sizeof(*instance));
	if (!out || !instance) {
		free(out);
		free(instance);
		hello_refused(p, AM_ERR_RESOURCE);
		return;
	}
	free(p->out);
	free(p->instance);
	p->out = out;
	p->instance = instance;
	p->credits = w->slot;
	p->session = w->args[0];
	p->one_bit = ep->opt.protocol == AM_NWAY && p->credits == 1;
	p->hello = HELLO_DONE;
	for (i = 0; i < p->credits; i++)
		log_slot(p, i);
	log_peer(p);
	timer_stop(ep, &p->timer);
	ep->bundle->events++;
}

int AM_Map(ep_t ep, int index, en_t name, tag_t tag)
{
	struct peer *p;

	if (ep->bundle->depth)
		return AM_ERR_IN_HANDLER;
	if (index < 0 || (unsigned int)index >= ep->opt.peers || ep->map[index] ||
	    ep->transport.ops->normalize(&ep->transport, &name))
		return AM_ERR_BAD_ARG;
	p = peer_find(ep, &name);
	if (!p)
		p = peer_new(ep, &name);
	if (!p)
		return AM_ERR_RESOURCE;
	/* A connection has one tag. */
	if (p->maps && p->tag != tag)
		return AM_ERR_BAD_ARG;
	ep->map[index] = p;
	/* The log may have restored the connection. */
	if (!p->maps++ && (p->hello != HELLO_DONE || p->tag != tag)) {
		p->tag = tag;
		hello_start(p);
	}
	return AM_OK;
}

int AM_Unmap(ep_t ep, int index)
{
	struct peer *p;
	unsigned int i;

	if (ep->bundle->depth)
		return AM_ERR_IN_HANDLER;
	if (index < 0 || (unsigned int)index >= ep->opt.peers)
		return AM_ERR_BAD_ARG;
	p = ep->map[index];
	if (!p)
		return AM_ERR_NOT_MAPPED;
	for (i = 0; p->maps == 1 && i < ep->opt.pool; i++)
		if (ep->pool[i].peer == p)
			return AM_ERR_AGAIN;
	ep->map[index] = NULL;
	if (--p->maps)
		return AM_OK;
	timer_stop(ep, &p->timer);
	p->hello = HELLO_NONE;
	log_peer(p);
	if (!p->known && !p->offered)
		peer_drop(p);
	return AM_OK;
}

int AM_Connect(ep_t ep, int index, int wait)
{
	uint64_t end = 0;
	struct peer *p;
	int error;

	if (ep->bundle->depth)
		return AM_ERR_IN_HANDLER;
	if (index < 0 || (unsigned int)index >= ep->opt.peers)
		return AM_ERR_BAD_ARG;
	p = ep->map[index];
	if (!p)
		return AM_ERR_NOT_MAPPED;
	/* A caller that waits wants another try; one that polls is told of the failure. */
	if (p->hello == HELLO_FAILED && wait)
		hello_start(p);
	if (ep->bundle->timeout_ms >= 0)
		end = now(ep) + ep->bundle->timeout_ms * 1000ull;
	while (p->hello == HELLO_SENT) {
		if (!wait)
			return AM_ERR_AGAIN;
		if (end && now(ep) >= end)
			return AM_ERR_TIMEOUT;
		if (progress(ep->bundle))
			continue;
		error = wait_a_while(ep->bundle, end, !end);
		if (error)
			return error;
	}
	return p->hello == HELLO_DONE ? AM_OK : p->error;
}

int AM_GetTranslationName(ep_t ep, int index, en_t *name)
{
	if (index < 0 || (unsigned int)index >= ep->opt.peers)
		return AM_ERR_BAD_ARG;
	if (!ep->map[index])
		return AM_ERR_NOT_MAPPED;
	*name = ep->map[index]->name;
	return AM_OK;
}

/*
 * Endpoints
 */

static void set_defaults(struct am_options *o)
{
	DEFAULT(protocol, AM_NWAY);
	DEFAULT(credits, 16);
	DEFAULT(pool, 64);
	DEFAULT(peers, 64);
	DEFAULT(retries, 10);
	DEFAULT(reply_retries, 4);
	DEFAULT(timeout_us, 100000);
	DEFAULT(min_timeout_us, 2000);
	DEFAULT(reply_timeout_us, 1000000);
	DEFAULT(handler_max_us, 1000000);
	DEFAULT(idle_us, 60000000);
	DEFAULT(log_data, AM_MAX_LONG);
}

/* Free all that was allocated. */
static void destroy(struct am_endpoint *ep)
{
	struct token *t;
	unsigned int i;

	log_close(ep);
	for (i = 0; ep->peers && i < ep->opt.peers; i++)
		peer_drop(&ep->peers[i]);
	for (i = 0; ep->pool && i < ep->opt.pool; i++)
		message_free(&ep->pool[i].msg);
	while ((t = ep->deferred)) {
		ep->deferred = t->next;
		free(t);
	}
	free(ep->peers);
	free(ep->map);
	free(ep->pool);
	free(ep->buffers);
	free(ep->frames);
	free(ep->out);
	free(ep);
}

/* Allocate memory; the transport is open, so its MTU is known. */
static bool allocate(struct am_endpoint *ep)
{
	const struct am_options *o = &ep->opt;
	size_t mtu = ep->transport.mtu;
	unsigned int i;

	ep->peers = calloc(o->peers, sizeof(*ep->peers));
	for (i = 0; ep->peers && i < o->peers; i++) {
		ep->peers[i].ep = ep;
		ep->peers[i].timer.kind = TIMER_HELLO;
	}
	ep->map = calloc(o->peers, sizeof(*ep->map));
	ep->pool = calloc(o->pool, sizeof(*ep->pool));
	for (i = 0; ep->pool && i < o->pool; i++)
		ep->pool[i].ep = ep;
	ep->frames = calloc(o->credits + 1, sizeof(*ep->frames));
	ep->buffers = malloc((o->credits + 1) * mtu);
	ep->out = malloc(mtu);
	if (!ep->peers || !ep->map || !ep->pool || !ep->frames || !ep->buffers || !ep->out)
		return false;
	for (i = 0; i <= o->credits; i++)
		ep->frames[i].data = ep->buffers + i * mtu;
	return true;
}

int AM_AllocateEndpointWith(eb_t bundle, const struct am_options *options, ep_t *endp, en_t *name)
{
	struct am_endpoint *ep;
	int error;

	if (bundle->depth)
		return AM_ERR_IN_HANDLER;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return AM_ERR_RESOURCE;
	ep->bundle = bundle;
	ep->opt = *options;
	set_defaults(&ep->opt);
	ep->protocol = protocol_find(ep->opt.protocol);
	ep->unsent_end = &ep->unsent;
	ep->timers_end = &ep->timers;
	if (!ep->protocol || ep->opt.credits > 4096 || ep->opt.peers > 32767 ||
	    ep->opt.pool > 65536 || ep->opt.log_data > AM_MAX_LONG ||
	    ep->opt.log_data < AM_MAX_MEDIUM || (ep->protocol->pooled && ep->opt.pool < 2)) {
		free(ep);
		return AM_ERR_BAD_ARG;
	}
	error = transport_open(&ep->transport, &ep->opt);
	if (error) {
		free(ep);
		return error;
	}
	/* These strings are the caller's. */
	ep->opt.address = NULL;
	ep->opt.log = NULL;
	error = allocate(ep) ? AM_OK : AM_ERR_RESOURCE;
	if (!error && options->log)
		error = log_open(ep, options->log);
	if (error) {
		transport_close(&ep->transport);
		destroy(ep);
		return error;
	}
	ep->next = bundle->endpoints;
	bundle->endpoints = ep;
	*endp = ep;
	*name = ep->transport.name;
	return AM_OK;
}

int AM_AllocateEndpoint(eb_t bundle, ep_t *ep, en_t *name)
{
	struct am_options o = { .address = getenv("AM_ADDRESS") };

	return AM_AllocateEndpointWith(bundle, &o, ep, name);
}

static void unlink_endpoint(struct am_endpoint *ep)
{
	struct am_endpoint **link;

	for (link = &ep->bundle->endpoints; *link != ep; link = &(*link)->next)
		;
	*link = ep->next;
}

int AM_FreeEndpoint(ep_t ep)
{
	if (ep->bundle->depth)
		return AM_ERR_IN_HANDLER;
	unlink_endpoint(ep);
	transport_close(&ep->transport);
	destroy(ep);
	return AM_OK;
}

int AM_MoveEndpoint(ep_t ep, eb_t from, eb_t to)
{
	if (ep->bundle != from)
		return AM_ERR_BAD_ARG;
	if (from->depth || to->depth)
		return AM_ERR_IN_HANDLER;
	unlink_endpoint(ep);
	ep->bundle = to;
	ep->next = to->endpoints;
	to->endpoints = ep;
	return AM_OK;
}

int AM_SetTag(ep_t ep, tag_t tag)
{
	ep->tag = tag;
	return AM_OK;
}

int AM_GetTag(ep_t ep, tag_t *tag)
{
	*tag = ep->tag;
	return AM_OK;
}

int AM_SetSeg(ep_t ep, void *address, size_t nbytes)
{
	ep->seg = address;
	ep->seg_size = nbytes;
	return AM_OK;
}

int AM_GetSeg(ep_t ep, void **address, size_t *nbytes)
{
	*address = ep->seg;
	*nbytes = ep->seg_size;
	return AM_OK;
}

int AM_SetHandler(ep_t ep, handler_t handler, am_short_t function)
{
	if (!handler_valid(handler))
		return AM_ERR_BAD_ARG;
	ep->handlers[handler].brief = function;
	return AM_OK;
}

int AM_SetHandlerI(ep_t ep, handler_t handler, am_data_t function)
{
	if (!handler_valid(handler))
		return AM_ERR_BAD_ARG;
	ep->handlers[handler].medium = function;
	return AM_OK;
}

int AM_SetHandlerXfer(ep_t ep, handler_t handler, am_data_t function)
{
	if (!handler_valid(handler))
		return AM_ERR_BAD_ARG;
	ep->handlers[handler].bulk = function;
	return AM_OK;
}

int AM_SetReturnHandler(ep_t ep, am_return_t function, void *arg)
{
	ep->returned = function;
	ep->returned_arg = arg;
	return AM_OK;
}

int AM_GetStats(ep_t ep, struct am_stats *stats)
{
	*stats = ep->stats;
	return AM_OK;
}

int AM_MaxShort(void)
{
	return AM_MAX_ARGS;
}

int AM_MaxMedium(void)
{
	return AM_MAX_MEDIUM;
}

int AM_MaxLong(void)
{
	return AM_MAX_LONG;
}
