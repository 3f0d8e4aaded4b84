// SPDX-License-Identifier: BSD-3-Clause
/*
 * Bundles: polling and waiting; and the names of the values of the library's enums.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include "internal.h"

#define MAX_WAIT_US	1000000		/* longest sleep between two looks */

int AM_AllocateBundle(int type, eb_t *bundle)
{
	if (type != AM_SEQ)
		return AM_ERR_BAD_ARG;
	*bundle = calloc(1, sizeof(**bundle));
	if (!*bundle)
		return AM_ERR_RESOURCE;
	(*bundle)->timeout_ms = -1;
	return AM_OK;
}

int AM_FreeBundle(eb_t bundle)
{
	if (bundle->depth)
		return AM_ERR_IN_HANDLER;
	while (bundle->endpoints)
		AM_FreeEndpoint(bundle->endpoints);
	free(bundle);
	return AM_OK;
}

int AM_SetTimeout(eb_t bundle, int ms)
{
	bundle->timeout_ms = ms;
	return AM_OK;
}

/*
 * Look once at each endpoint: at unsent requests, at frames, then at a timer, because the frame
 * that the timer waits for may be here. Returns whether anything happened.
 */
bool progress(struct am_bundle *bundle)
{
	uint64_t events = bundle->events;
	struct am_endpoint *ep;
	bool any = false;

	for (ep = bundle->endpoints; ep; ep = ep->next) {
		unsent_look(ep);
		any |= input(ep);
		timers_look(ep);
	}
	return any || bundle->events != events;
}

int AM_Poll(eb_t bundle)
{
	if (bundle->depth)
		return AM_ERR_IN_HANDLER;
	progress(bundle);
	return AM_OK;
}

/*
 * Return when there is work even if no frame comes; UINT64_MAX: never. @start is the last reading
 * of the clock, which progress() took if a timer is armed.
 */
static uint64_t deadline(struct am_bundle *bundle, uint64_t *start)
{
	uint64_t at = UINT64_MAX;
	struct am_endpoint *ep;
	struct timer *t;

	*start = 0;
	for (ep = bundle->endpoints; ep; ep = ep->next) {
		/* No event tells when the transport takes frames: look again soon. */
		if ((ep->unsent || ep->transport.nheld) && at > now(ep) + 1000)
			at = now(ep) + (ep->transport.fd < 0 ? 1 : 1000);
		/* No event tells when a descriptor is free. */
		if (ep->transport.unwatched && at > now(ep) + MAX_WAIT_US)
			at = now(ep) + MAX_WAIT_US;
		for (t = ep->timers; t; t = t->next)
			if (at > t->at)
				at = t->at;
		if (*start < ep->time)
			*start = ep->time;
	}
	return at;
}

/* Has a transport failed? Each failure is reported once, to the first call that waits. */
static bool failed(struct am_bundle *bundle)
{
	struct am_endpoint *ep;

	for (ep = bundle->endpoints; ep && ep->transport.error <= 0; ep = ep->next)
		;
	if (!ep)
		return false;
	errno = ep->transport.error;
	ep->transport.error = -1;
	return true;
}

/*
 * Sleep until a frame is here, a timer is due, or @end has come (unless @forever). The caller has
 * called progress(), and read the clock if there is an end.
 */
int wait_a_while(struct am_bundle *bundle, uint64_t end, bool forever)
{
	uint64_t start, until = deadline(bundle, &start);
	struct pollfd fds[64];
	struct am_endpoint *ep;
	int n = 0, ms;

	if (failed(bundle))
		return AM_ERR_SYSTEM;
	if (!forever && until > end)
		until = end;
	for (ep = bundle->endpoints; ep; ep = ep->next) {
		if (ep->transport.fd < 0) {
			/* No other process can send a frame to a network in memory. */
			if (until == UINT64_MAX)
				return AM_ERR_TIMEOUT;
			mem_advance(ep->transport.net, until);
			return AM_OK;
		}
		if (n == (int)ARRAY_SIZE(fds))
			break;
		if (ep->transport.ops->arm && ep->transport.ops->arm(&ep->transport))
			return AM_OK;
		fds[n++] = (struct pollfd) { .fd = ep->transport.fd, .events = POLLIN };
	}
	if (until <= start)
		return AM_OK;
	if (until != UINT64_MAX && until - start > MAX_WAIT_US)
		until = start + MAX_WAIT_US;
	ms = until == UINT64_MAX ? -1 : (int)((until - start + 999) / 1000);
	/* There are more endpoints than fds: look at the rest in 1 ms. */
	if (ep)
		ms = 1;
	if (poll(fds, n, ms) < 0 && errno != EINTR)
		return AM_ERR_SYSTEM;
	return AM_OK;
}

int AM_WaitSema(eb_t bundle)
{
	uint64_t events = bundle->events, end = 0;
	int error;

	if (bundle->depth)
		return AM_ERR_IN_HANDLER;
	if (!bundle->endpoints)
		return AM_ERR_BAD_ARG;
	if (bundle->timeout_ms >= 0)
		end = now(bundle->endpoints) + bundle->timeout_ms * 1000ull;
	while (true) {
		bool any = progress(bundle);

		if (bundle->events != events)
			return AM_OK;
		if (end && now(bundle->endpoints) >= end)
			return AM_ERR_TIMEOUT;
		if (any)
			continue;
		error = wait_a_while(bundle, end, !end);
		if (error)
			return error;
	}
}

/*
 * Names
 */

static const char *name_of(const char *const *names, int n, int i)
{
	return i >= 0 && i < n && names[i] ? names[i] : "?";
}

const char *AM_ErrorName(int error)
{
	static const char *const names[] = {
		"OK", "BAD_ARG", "RESOURCE", "SYSTEM", "IN_HANDLER", "NO_REPLY", "TOO_BIG",
		"NOT_MAPPED", "NETWORK", "VERSION", "PROTOCOL", "TAG", "FULL", "TIMEOUT", "AGAIN",
		"STALE", "LOG_DAMAGED", "LOG_FOREIGN", "NAME_INVALID", "NAME_UNKNOWN", "NAME_TAKEN",
		"NAME_FULL", "NAME_STORE",
	};

	_Static_assert(ARRAY_SIZE(names) == AM_ERR_NAME_STORE + 1, "a name is missing");
	return name_of(names, ARRAY_SIZE(names), error);
}

const char *AM_AckName(int ack)
{
	static const char *const names[] = {
		"NOT_ACKED", "ACKED", "ACK_NOT_FOUND", "ERR_ACK", "REPLY_RTX_EXCEEDED",
	};

	_Static_assert(ARRAY_SIZE(names) == AM_REPLY_RTX_EXCEEDED + 1, "a name is missing");
	return name_of(names, ARRAY_SIZE(names), ack);
}

const char *AM_OperationName(int operation)
{
	static const char *const names[] = {
		"NOT_PROCESSED", "REQUEST_SENT", "REQUEST_PROCESSING", "PROCESSED",
		"REQUEST_RTX_EXCEEDED", "REQUEST_RECVD", "REPLY_NOT_SENT", "REPLY_SENT",
		"REPLY_TIMEOUT", "HANDLER_TIMEOUT", "REPLY_LOST", "DECLINED",
	};

	_Static_assert(ARRAY_SIZE(names) == AM_DECLINED + 1, "a name is missing");
	return name_of(names, ARRAY_SIZE(names), operation);
}

const char *AM_CauseName(int cause)
{
	static const char *const names[] = {
		"none", "network or node", "peer restarted", "no such handler",
		"beyond the segment", "slow handler", "no reply", "given up after a restart",
	};

	_Static_assert(ARRAY_SIZE(names) == AM_CAUSE_DECIDED + 1, "a name is missing");
	return name_of(names, ARRAY_SIZE(names), cause);
}
