// SPDX-License-Identifier: BSD-3-Clause
/*
 * Questions to a name server. Each question has an endpoint of its own, on the host of the
 * caller's. So it takes no handler, index or log record of the caller's endpoint, and may use
 * another protocol. The server answers a repeated question as if it came once; so the library
 * repeats it as long as it may be unheard.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include "names.h"

#define ASK_AGAIN_US	20000

/* A question, and its answer. */
struct question {
	handler_t	handler;
	int		nbytes, port, lease;
	uint8_t		data[NAMES_KEY + AM_MAX_NAME];
	unsigned int	times;
	am_handle_t	handle;		/* 0: not asked now */
	bool		answered;
	int		code, found_port;
	uint8_t		host[NAME_HOST];
};

bool registered_name_valid(const char *name, size_t len)
{
	size_t i;

	if (!len || len > AM_MAX_NAME)
		return false;
	for (i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	return true;
}

static void take_answer(void *token, void *data, int n, int code, int port, int c, int d)
{
	struct token *t = token;
	struct question *q = t->ep->context;

	(void)c; (void)d;
	/* A stranger's request is no answer. */
	if (t->request || q->answered)
		return;
	q->answered = true;
	q->code = code;
	q->found_port = port;
	if (q->handler == NAMES_LOOKUP && code == NAMES_OK) {
		if (n == NAME_HOST)
			memcpy(q->host, data, n);
		else
			q->code = -1;
	}
}

static int open_own(ep_t ep, ep_t *own)
{
	struct am_options o = {
		.net = ep->transport.net, .credits = 2, .pool = 1, .peers = 1,
		.retries = 1000000, .timeout_us = ASK_AGAIN_US,
	};
	char text[AM_NAME_LEN], *colon, *percent;
	en_t name;
	int error = AM_NameToString(&ep->transport.name, text, sizeof(text));

	if (error)
		return error;
	/* Use any port of that address. */
	colon = strrchr(text, ':');
	*colon = 0;
	o.address = text;
	percent = strchr(text, '%');
	if (ep->transport.name.kind == AM_KIND_MEM) {
		o.address = "mem";
	} else if (percent) {
		memcpy(percent - 4, "edp:", 4);
		o.address = percent - 4;
	}
	return AM_AllocateEndpointWith(ep->bundle, &o, own, &name);
}

static int error_of(int code)
{
	static const int errors[] = {
		[NAMES_OK] = AM_OK, [NAMES_UNKNOWN] = AM_ERR_NAME_UNKNOWN,
		[NAMES_TAKEN] = AM_ERR_NAME_TAKEN, [NAMES_FULL] = AM_ERR_NAME_FULL,
		[NAMES_INVALID] = AM_ERR_NAME_INVALID, [NAMES_OTHER_VERSION] = AM_ERR_VERSION,
		[NAMES_STORE] = AM_ERR_NAME_STORE,
	};

	return code >= 0 && code < (int)ARRAY_SIZE(errors) ? errors[code] : AM_ERR_PROTOCOL;
}

/* Take the next step of a question. AM_ERR_AGAIN: it isn't answered yet. */
static int look(ep_t own, struct question *q)
{
	struct peer *p = own->map[0];
	struct am_state s;
	int error;

	if (q->answered) {
		/* An earlier request unregistered the name, but its answer was lost. */
		if (q->handler == NAMES_UNREGISTER && q->times > 1 && q->code == NAMES_UNKNOWN)
			return AM_OK;
		return error_of(q->code);
	}
	if (q->handle) {
		error = AM_GetTransferState(own, q->handle, &s);
		if (error || s.state == AM_STATE_DONE || s.cause == AM_CAUSE_HANDLER)
			return error ? error : AM_ERR_PROTOCOL;
		if (s.state != AM_STATE_ABANDONED)
			return AM_ERR_AGAIN;
		q->handle = 0;
	}
	if (p->hello == HELLO_FAILED)
		return p->error;
	if (p->hello != HELLO_DONE)
		return AM_ERR_AGAIN;
	error = AM_RequestI3(own, 0, q->handler, q->data, q->nbytes, NAMES_VERSION, q->port,
			     q->lease);
	if (error)
		return error;
	q->times++;
	AM_GetTransferHandle(own, &q->handle);
	return AM_ERR_AGAIN;
}

static int converse(ep_t own, struct question *q, int ms)
{
	uint64_t end = ms < 0 ? 0 : now(own) + ms * 1000ull, again = 0;
	int error, why = AM_ERR_TIMEOUT;

	while (true) {
		error = look(own, q);
		if (error != AM_ERR_AGAIN && error != AM_ERR_FULL)
			return error;
		if (error == AM_ERR_FULL)
			why = error;
		if (end && now(own) >= end)
			return why;
		/* The server's table of peers is full, but not for long. */
		if (error == AM_ERR_FULL && !again) {
			again = now(own) + ASK_AGAIN_US;
		} else if (error == AM_ERR_FULL && now(own) >= again) {
			again = 0;
			hello_start(own->map[0]);
		}
		if (progress(own->bundle))
			continue;
		error = wait_a_while(own->bundle, again && (!end || again < end) ? again : end,
				     !end && !again);
		if (error)
			return error;
	}
}

static int ask(ep_t ep, const en_t *server, struct question *q, int ms)
{
	const char *text = getenv("AM_NAME_SERVER");
	int error;
	en_t name;
	ep_t own;

	if (ep->bundle->depth) {
		ep->stats.refused++;
		return AM_ERR_IN_HANDLER;
	}
	if (!server) {
		error = text ? AM_NameFromString(text, &name) : AM_ERR_BAD_ARG;
		if (error)
			return error;
		server = &name;
	}
	error = open_own(ep, &own);
	if (error)
		return error;
	own->context = q;
	AM_SetHandlerI(own, NAMES_ANSWER, take_answer);
	error = AM_Map(own, 0, *server, NAMES_TAG);
	if (!error)
		error = converse(own, q, ms);
	AM_FreeEndpoint(own);
	return error;
}

static int add_name(struct question *q, const char *name)
{
	size_t len = strnlen(name, AM_MAX_NAME + 1);

	if (!registered_name_valid(name, len))
		return AM_ERR_NAME_INVALID;
	memcpy(q->data + q->nbytes, name, len);
	q->nbytes += len;
	return AM_OK;
}

static void add_key(struct question *q, uint64_t key)
{
	key = htobe64(key);
	memcpy(q->data, &key, NAMES_KEY);
	q->nbytes = NAMES_KEY;
}

int AM_Register(ep_t ep, const en_t *server, const char *name, uint64_t key, unsigned int lease,
		int ms)
{
	struct question q = { .handler = NAMES_REGISTER, .lease = lease };
	uint8_t host[NAME_HOST];
	uint32_t port;
	int error;

	name_split(&ep->transport.name, host, &port);
	q.port = port;
	add_key(&q, key);
	error = add_name(&q, name);
	return error ? error : ask(ep, server, &q, ms);
}

int AM_Unregister(ep_t ep, const en_t *server, const char *name, uint64_t key, int ms)
{
	struct question q = { .handler = NAMES_UNREGISTER };
	int error;

	add_key(&q, key);
	error = add_name(&q, name);
	return error ? error : ask(ep, server, &q, ms);
}

int AM_Lookup(ep_t ep, const en_t *server, const char *name, en_t *found, int ms)
{
	struct question q = { .handler = NAMES_LOOKUP };
	int error = add_name(&q, name);

	if (!error)
		error = ask(ep, server, &q, ms);
	if (!error)
		*found = name_join(&ep->transport.name, q.host, q.found_port);
	return error;
}
