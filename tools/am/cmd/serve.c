// SPDX-License-Identifier: BSD-3-Clause
/*
 * am logp --serve: an endpoint of each protocol at each address, and raw datagrams. Each has a
 * process of its own, so that none looks at the others' sockets.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cmd.h"

#define PEERS		4096	/* each measured layer is a peer, and stays a while */

static uint8_t segment[AM_MAX_LONG], data[AM_MAX_LONG];

static void on_request(void *token, int size, int b, int c, int d)
{
	(void)b; (void)c; (void)d;
	if (size <= 0 || size > AM_MAX_LONG)
		AM_Reply1(token, ANSWER, 0);
	else if (size <= AM_MAX_MEDIUM)
		AM_ReplyI1(token, ANSWER, data, size, 0);
	else
		AM_ReplyXfer1(token, 0, ANSWER, data, size, 0);
}

static void on_data(void *token, void *source, int n, int size, int b, int c, int d)
{
	(void)source; (void)n;
	on_request(token, size, b, c, d);
}

static void fail(const char *address, int e)
{
	if (e == AM_ERR_SYSTEM)
		error(EXIT_FAILED, errno, "%s", address);
	error(e == AM_ERR_BAD_ARG ? EXIT_USAGE : EXIT_FAILED, 0, "%s: %s", address,
	      error_words(e));
}

/**
 * struct opened - the message of a service that has begun, or failed to
 * @error:	of Active Messages
 * @why:	errno
 */
struct opened {
	int	error, why;
	en_t	name;
};

static int open_protocol(const char *text, enum am_protocol_id protocol, eb_t *bundle, en_t *name)
{
	struct am_options o = {
		.address = text, .protocol = protocol, .credits = MAX_CREDITS,
		.pool = 2 * MAX_CREDITS, .peers = PEERS,
	};
	ep_t ep;
	int e;

	e = AM_AllocateBundle(AM_SEQ, bundle);
	if (!e)
		e = AM_AllocateEndpointWith(*bundle, &o, &ep, name);
	if (e)
		return e;
	AM_SetSeg(ep, segment, sizeof(segment));
	AM_SetHandler(ep, TAKE, on_request);
	AM_SetHandlerI(ep, TAKE, on_data);
	AM_SetHandlerXfer(ep, TAKE, on_data);
	return AM_OK;
}

/* Run a service in its process, which opens its endpoint, because it can't use a parent's. */
static void run(const char *address, const char *text, enum am_protocol_id protocol, int out)
{
	struct opened o = { 0 };
	eb_t bundle;
	int fd = -1;

	if (protocol) {
		o.error = open_protocol(text, protocol, &bundle, &o.name);
	} else {
		o.error = AM_NameFromString(text, &o.name);
		if (!o.error)
			fd = raw_socket(&o.name);
		if (fd < 0)
			o.error = AM_ERR_SYSTEM;
	}
	o.why = errno;
	if (write(out, &o, sizeof(o)) != sizeof(o) || o.error)
		_exit(EXIT_FAILED);
	close(out);
	if (protocol) {
		while (!AM_WaitSema(bundle))
			;
	} else {
		raw_serve(fd);
	}
	error(EXIT_FAILED, errno, "%s", address);
}

/* Begin a service, and return when it answers. @protocol 0: raw datagrams. */
static void begin(const char *address, const char *text, enum am_protocol_id protocol, en_t *name)
{
	pid_t parent = getpid();
	struct opened o;
	int p[2];

	if (pipe(p))
		error(EXIT_FAILED, errno, "pipe");
	switch (fork()) {
	case -1:
		error(EXIT_FAILED, errno, "fork");
		break;
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILED);
		close(p[0]);
		run(address, text, protocol, p[1]);
	}
	close(p[1]);
	if (read(p[0], &o, sizeof(o)) != sizeof(o))
		error(EXIT_FAILED, 0, "%s: the server has ended", text);
	close(p[0]);
	errno = o.why;
	if (o.error)
		fail(text, o.error);
	*name = o.name;
}

static void puts_name(const char *address, const en_t *name)
{
	char text[AM_NAME_LEN];

	if (AM_NameToString(name, text, sizeof(text)))
		fail(address, AM_ERR_SYSTEM);
	puts(text);
	/* Don't let a later process print it again. */
	if (fflush(stdout))
		error(EXIT_FAILED, errno, "stdout");
}

/* Open the services at @address, which has PORT if it has no port: that of raw datagrams. */
static void open_address(const char *address)
{
	char host[AM_NAME_LEN], text[AM_NAME_LEN + 8];
	const char *percent = strchr(address, '%');
	/* A MAC address has colons, too. */
	const char *colon = percent ? strchr(percent, ':') : strrchr(address, ':');
	unsigned int port = PORT, way;
	char *end;
	en_t name;

	/* The first colon isn't that of a port, but that of "udp:IP". */
	if (colon && colon != strchr(address, ':')) {
		port = strtoul(colon + 1, &end, 10);
		if (end == colon + 1 || *end || !port || port + WAYS > 65536)
			fail(address, AM_ERR_BAD_ARG);
	} else {
		colon = address + strlen(address);
	}
	if (colon - address >= (long)sizeof(host))
		fail(address, AM_ERR_BAD_ARG);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
	for (way = WAY_NWAY; way < WAYS; way++) {
		if (way == WAY_ONEWAY)
			continue;
		snprintf(text, sizeof(text), "%s:%u", host, port + ways[way].port);
		begin(address, text, ways[way].protocol, &name);
	}
	name_set_port(&name, port);
	if (raw_can(address)) {
		if (AM_NameToString(&name, text, sizeof(text)))
			fail(address, AM_ERR_SYSTEM);
		begin(address, text, 0, &name);
	}
	puts_name(address, &name);
}

int serve(char **addresses)
{
	struct sched_param none = { 0 };
	int status;

	/* Don't break into a burst of a client on the same processor, unless chrt(1) wants that. */
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_BATCH, &none);
	for (; *addresses; addresses++)
		open_address(*addresses);
	/* A service ends only if something is wrong, and it has printed what. */
	wait(&status);
	return EXIT_FAILED;
}
