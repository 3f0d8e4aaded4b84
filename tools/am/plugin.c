// SPDX-License-Identifier: BSD-3-Clause
/*
 * RDMA verbs: the transport itself (verbs.c) is libam-verbs.so, which is loaded for the first
 * address that needs it, so that other programs don't need libibverbs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include "internal.h"

#define STRING(x)	#x
#define NAME(x)		STRING(x)

static struct plugin *load(void)
{
	static struct plugin *loaded;
	struct plugin *p = loaded;
	void *lib;

	if (p)
		return p;
	/* First by LD_LIBRARY_PATH, for a library that isn't installed. */
	lib = dlopen("libam-verbs.so", RTLD_NOW);
	if (!lib)
		lib = dlopen(PLUGINS "/libam-verbs.so", RTLD_NOW);
	p = lib ? dlsym(lib, NAME(PLUGIN_SYMBOL)) : NULL;
	if (!p) {
		errno = ELIBACC;
		return NULL;
	}
	if (p->version != PLUGIN_VERSION || p->size != sizeof(struct transport)) {
		errno = ELIBBAD;
		return NULL;
	}
	p->ops.now = monotonic;
	p->ops.normalize = same_kind;
	return loaded = p;
}

static int open_verbs(struct transport *t, const struct am_options *o)
{
	struct sockaddr_in a;
	struct plugin *p;
	int error = parse_udp(strchr(o->address, ':') + 1, &a);

	if (error)
		return error;
	p = load();
	if (!p)
		return AM_ERR_SYSTEM;
	t->name.kind = AM_KIND_VERBS;
	memcpy(t->name.address, &a, sizeof(a));
	t->ops = &p->ops;
	return t->ops->open(t, o);
}

static void close_nothing(struct transport *t)
{
	(void)t;
}

/* The operations until the library is loaded. */
const struct transport_ops verbs_ops = {
	.open = open_verbs,
	.close = close_nothing,
};
