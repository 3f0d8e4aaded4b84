// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests by Active Messages, and names.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/af_esp.h>
#include "cmd.h"

const struct way_info ways[WAYS] = {
	[WAY_RAW]    = { "raw", 0, 0, 2, 1, 1, 1 },
	[WAY_NWAY]   = { "nway", 1, AM_NWAY, 2, 1, 1, 1 },
	[WAY_ONEWAY] = { "oneway", 1, AM_NWAY, 2, 1, 1, 1 },
	[WAY_AMVIA]  = { "amvia", 2, AM_AMVIA, 3, 2, 1, 2 },
	[WAY_AMUDP]  = { "amudp", 3, AM_AMUDP, 3, 2, 2, 1 },
};

#define RETRIES	100000

static uint8_t data[AM_MAX_LONG], segment[AM_MAX_LONG];

/* The only layer that is open. */
static struct layer *current;

/*
 * Names
 */

static bool is_ip(const en_t *name)
{
	return name->kind == AM_KIND_UDP || name->kind == AM_KIND_VERBS;
}

unsigned int name_port(const en_t *name)
{
	struct sockaddr_esp esp;
	struct sockaddr_in in;

	if (is_ip(name)) {
		memcpy(&in, name->address, sizeof(in));
		return ntohs(in.sin_port);
	}
	memcpy(&esp, name->address, sizeof(esp));
	return ntohs(esp.sesp_port);
}

void name_set_port(en_t *name, unsigned int port)
{
	struct sockaddr_esp esp;
	struct sockaddr_in in;

	if (is_ip(name)) {
		memcpy(&in, name->address, sizeof(in));
		in.sin_port = htons(port);
		memcpy(name->address, &in, sizeof(in));
	} else {
		memcpy(&esp, name->address, sizeof(esp));
		esp.sesp_port = htons(port);
		memcpy(name->address, &esp, sizeof(esp));
	}
}

en_t name_of_server(const char *address, unsigned int port)
{
	char text[AM_NAME_LEN + 8];
	en_t name;
	int e;

	e = AM_NameFromString(address, &name);
	if (e == AM_ERR_BAD_ARG && strlen(address) < AM_NAME_LEN) {
		snprintf(text, sizeof(text), "%s:%u", address, PORT);
		e = AM_NameFromString(text, &name);
	}
	if (e == AM_ERR_SYSTEM)
		error(EXIT_FAILED, errno, "%s", address);
	if (e)
		error(EXIT_USAGE, 0, "%s is not an address of a server", address);
	if (name_port(&name) + port > 65535)
		error(EXIT_USAGE, 0, "%s: there are no ports behind this one", address);
	name_set_port(&name, name_port(&name) + port);
	return name;
}

/* Return the address from which packets to @address leave. */
static struct in_addr own_ip(const char *address)
{
	en_t name = name_of_server(address, 0);
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(a);

	if (fd < 0 || connect(fd, (const struct sockaddr *)name.address, len) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		error(EXIT_FAILED, errno, "%s", address);
	close(fd);
	return a.sin_addr;
}

void own_address(const char *address, char *own, size_t size)
{
	const char *percent = strchr(address, '%');

	/* An RDMA device is found by its address. */
	if (!strncmp(address, "verbs:", 6))
		snprintf(own, size, "verbs:%s", inet_ntoa(own_ip(address)));
	else if (percent)
		snprintf(own, size, "%.4s%.*s", address, 1 + (int)strcspn(percent + 1, ":"),
			 percent);
	else
		snprintf(own, size, "%.4s0.0.0.0", address);
}

/*
 * Active Messages
 */

static void on_answer(void *token, int a, int b, int c, int d)
{
	(void)token; (void)a; (void)b; (void)c; (void)d;
	current->outstanding--;
}

static void on_data(void *token, void *source, int n, int a, int b, int c, int d)
{
	(void)source; (void)n;
	on_answer(token, a, b, c, d);
}

static void on_return(ep_t ep, am_handle_t handle, const struct am_state *state, void *arg)
{
	struct layer *l = arg;

	(void)ep; (void)handle;
	error(EXIT_FAILED, 0, "%s %s: a request failed: %s", l->address, l->way->name,
	      AM_CauseName(state->cause));
}

const char *error_words(int e)
{
	switch (e) {
	case AM_ERR_BAD_ARG:
		return "there is no such address";
	case AM_ERR_RESOURCE:
		return "no memory";
	case AM_ERR_TOO_BIG:
		return "the device's frames are too small";
	case AM_ERR_NETWORK:
	case AM_ERR_TIMEOUT:
		return "no answer; is 'am logp --serve' running there?";
	case AM_ERR_VERSION:
		return "the server speaks another version";
	case AM_ERR_PROTOCOL:
	case AM_ERR_TAG:
		return "who answers there is not 'am logp --serve'";
	case AM_ERR_FULL:
		return "the server has no place for another peer";
	default:
		return AM_ErrorName(e);
	}
}

static void check(struct layer *l, const char *what, int e)
{
	if (!e)
		return;
	error(EXIT_FAILED, e == AM_ERR_SYSTEM ? errno : 0, "%s %s: %s%s%s", l->address,
	      l->way->name, what, e == AM_ERR_SYSTEM ? "" : ": ",
	      e == AM_ERR_SYSTEM ? "" : error_words(e));
}

static void am_layer_request(struct layer *l, size_t size, size_t answer)
{
	int e, n = size;

	l->outstanding++;
	if (!n)
		e = AM_Request1(l->ep, 0, TAKE, answer);
	else if (n <= AM_MAX_MEDIUM)
		e = AM_RequestI1(l->ep, 0, TAKE, data, n, answer);
	else
		e = AM_RequestXfer1(l->ep, 0, 0, TAKE, data, n, answer);
	check(l, "request", e);
}

static void am_layer_poll(struct layer *l)
{
	AM_Poll(l->bundle);
}

static void am_layer_wait(struct layer *l)
{
	check(l, "reply", AM_WaitSema(l->bundle));
}

static void am_layer_close(struct layer *l)
{
	AM_FreeBundle(l->bundle);
}

static const struct layer_ops am_ops = {
	.request = am_layer_request,
	.poll = am_layer_poll,
	.wait = am_layer_wait,
	.close = am_layer_close,
};

static void am_open(struct layer *l)
{
	char own[AM_NAME_LEN];
	struct am_options o = {
		.address = own, .protocol = l->way->protocol, .credits = l->credits,
		/* AMUDP's replies take from the pool, too. */
		.pool = 2 * l->credits + 2,
		.peers = 1,
		/* The timeout alone limits how long an answer may take. */
		.retries = RETRIES, .reply_retries = RETRIES,
	};
	en_t name;

	own_address(l->address, own, sizeof(own));
	check(l, "bundle", AM_AllocateBundle(AM_SEQ, &l->bundle));
	AM_SetTimeout(l->bundle, l->timeout);
	check(l, own, AM_AllocateEndpointWith(l->bundle, &o, &l->ep, &name));
	AM_SetSeg(l->ep, segment, sizeof(segment));
	AM_SetHandler(l->ep, ANSWER, on_answer);
	AM_SetHandlerI(l->ep, ANSWER, on_data);
	AM_SetHandlerXfer(l->ep, ANSWER, on_data);
	AM_SetReturnHandler(l->ep, on_return, l);
	check(l, "peer", AM_Map(l->ep, 0, l->server, 0));
	check(l, "connection", AM_Connect(l->ep, 0, 1));
}

void layer_open(struct layer *l, const char *address, enum way way, unsigned int credits,
		int timeout)
{
	*l = (struct layer) {
		.way = &ways[way], .address = address, .timeout = timeout, .fd = -1,
		.credits = way == WAY_ONEWAY ? 1 : credits,
	};
	l->server = name_of_server(address, l->way->port);
	snprintf(l->transport, sizeof(l->transport), "%.*s", (int)strcspn(address, ":"), address);
	current = l;
	if (way == WAY_RAW) {
		raw_open(l);
	} else {
		l->ops = &am_ops;
		am_open(l);
	}
}

void layer_close(struct layer *l)
{
	l->ops->close(l);
}

void layer_drain(struct layer *l)
{
	while (l->outstanding)
		l->ops->wait(l);
}

uint64_t layer_resent(struct layer *l)
{
	struct am_stats s;

	if (!l->ep)
		return l->lost;
	AM_GetStats(l->ep, &s);
	return s.resent;
}

bool layer_carries(const struct layer *l, size_t size)
{
	return l->ep || size <= RAW_MAX;
}
