// SPDX-License-Identifier: BSD-3-Clause
/*
 * The name server's handlers. A name belongs to the host that registered it, and there to programs
 * that know its key. The handshake of the connection has shown which host a request came from.
 */
#include <endian.h>
#include "named.h"

static struct named *server_of(void *token)
{
	return ((struct token *)token)->ep->context;
}

static void answer(void *token, enum names_code code)
{
	AM_ReplyI2(token, NAMES_ANSWER, NULL, 0, code, 0);
}

/* Check the version, before anything else. */
static bool version_right(struct named *s, void *token, int version)
{
	if (version == NAMES_VERSION)
		return true;
	s->stats.bad_version++;
	answer(token, NAMES_OTHER_VERSION);
	return false;
}

/* Set @r to a message's host and the name in it. */
static bool take_record(struct named *s, void *token, const void *name, int len,
			struct registry_record *r)
{
	uint32_t port;
	en_t from;

	memset(r, 0, sizeof(*r));
	if (len < 0 || !registered_name_valid(name, len)) {
		s->stats.invalid++;
		answer(token, NAMES_INVALID);
		return false;
	}
	memcpy(r->name, name, len);
	AM_GetSourceEndpoint(token, &from);
	r->kind = from.kind;
	name_split(&from, r->host, &port);
	return true;
}

static bool take_keyed(struct named *s, void *token, uint8_t *data, int n,
		       struct registry_record *r)
{
	if (!take_record(s, token, data + NAMES_KEY, n - NAMES_KEY, r))
		return false;
	memcpy(&r->key, data, NAMES_KEY);
	r->key = be64toh(r->key);
	return true;
}

static void take_register(void *token, void *data, int n, int version, int port, int lease, int d)
{
	struct named *s = server_of(token);
	struct registry_record r;

	(void)d;
	if (!version_right(s, token, version) || !take_keyed(s, token, data, n, &r))
		return;
	if (r.kind != AM_KIND_MEM && (port < 1 || port > 65535)) {
		s->stats.invalid++;
		answer(token, NAMES_INVALID);
		return;
	}
	r.port = port;
	r.lease = lease;
	answer(token, registry_set(&s->registry, &r, s->now(), &s->stats));
}

static void take_unregister(void *token, void *data, int n, int version, int b, int c, int d)
{
	struct named *s = server_of(token);
	struct registry_entry *e;
	struct registry_record r;
	enum names_code code;

	(void)b; (void)c; (void)d;
	if (!version_right(s, token, version) || !take_keyed(s, token, data, n, &r))
		return;
	e = registry_find(&s->registry, r.kind, r.name, s->now());
	if (!e) {
		/* The name may have been removed from memory, but not from the file. */
		code = registry_settle(&s->registry);
		if (code == NAMES_OK) {
			s->stats.unknown++;
			code = NAMES_UNKNOWN;
		} else {
			s->stats.store_errors++;
		}
	} else if (!registry_owns(&r, e)) {
		s->stats.taken++;
		code = NAMES_TAKEN;
	} else {
		code = registry_remove(&s->registry, e);
		if (code == NAMES_OK)
			s->stats.unregistered++;
		else
			s->stats.store_errors++;
	}
	answer(token, code);
}

static void take_lookup(void *token, void *data, int n, int version, int b, int c, int d)
{
	struct named *s = server_of(token);
	struct registry_entry *e;
	struct registry_record r;

	(void)b; (void)c; (void)d;
	if (!version_right(s, token, version) || !take_record(s, token, data, n, &r))
		return;
	e = registry_find(&s->registry, r.kind, r.name, s->now());
	if (!e) {
		s->stats.unknown++;
		answer(token, NAMES_UNKNOWN);
		return;
	}
	s->stats.lookups++;
	AM_ReplyI2(token, NAMES_ANSWER, e->r.host, NAME_HOST, NAMES_OK, e->r.port);
}

/* Open an endpoint that answers. */
int named_open(struct named *s, eb_t bundle, const struct am_options *options, ep_t *ep,
	       en_t *name)
{
	int error = AM_AllocateEndpointWith(bundle, options, ep, name);

	if (error)
		return error;
	(*ep)->context = s;
	AM_SetTag(*ep, NAMES_TAG);
	AM_SetHandlerI(*ep, NAMES_REGISTER, take_register);
	AM_SetHandlerI(*ep, NAMES_UNREGISTER, take_unregister);
	AM_SetHandlerI(*ep, NAMES_LOOKUP, take_lookup);
	return AM_OK;
}
