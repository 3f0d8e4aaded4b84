// SPDX-License-Identifier: BSD-3-Clause
/*
 * am logp --serve: at each address an endpoint of each protocol, and raw datagrams. Each has a
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

#define MAX_SERVICES	64
#define PEERS		4096	/* each layer that is measured is one, and stays a while */

/**
 * struct service - one of the server's processes
 * @address:	what the user wrote
 * @bundle:	NULL: raw datagrams, of @fd
 */
struct service {
	const char	*address;
	eb_t		bundle;
	int		fd;
};

static struct service services[MAX_SERVICES];
static unsigned int nservices;

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

static struct service *add(const char *address)
{
	if (nservices == MAX_SERVICES)
		error(EXIT_USAGE, 0, "these are more addresses than %d",
		      MAX_SERVICES / (WAYS - 1));
	services[nservices].address = address;
	services[nservices].fd = -1;
	return &services[nservices++];
}

/* Its name is the address that the first got, with another port. */
static void add_protocol(const char *address, const char *text, enum am_protocol_id protocol,
			 en_t *name)
{
	struct am_options o = {
		.address = text, .protocol = protocol, .credits = MAX_CREDITS,
		.pool = 2 * MAX_CREDITS, .peers = PEERS,
	};
	struct service *s = add(address);
	ep_t ep;
	int e;

	e = AM_AllocateBundle(AM_SEQ, &s->bundle);
	if (!e)
		e = AM_AllocateEndpointWith(s->bundle, &o, &ep, name);
	if (e)
		fail(text, e);
	AM_SetSeg(ep, segment, sizeof(segment));
	AM_SetHandler(ep, TAKE, on_request);
	AM_SetHandlerI(ep, TAKE, on_data);
	AM_SetHandlerXfer(ep, TAKE, on_data);
}

static void puts_name(const char *address, const en_t *name)
{
	char text[AM_NAME_LEN];

	if (AM_NameToString(name, text, sizeof(text)))
		fail(address, AM_ERR_SYSTEM);
	puts(text);
}

/* @address without a port has PORT, which is that of raw datagrams. */
static void open_address(const char *address)
{
	char host[AM_NAME_LEN], text[AM_NAME_LEN + 8];
	const char *percent = strchr(address, '%');
	/* A MAC address has colons, too. */
	const char *colon = percent ? strchr(percent, ':') : strrchr(address, ':');
	unsigned int port = PORT, way;
	struct service *s;
	char *end;
	en_t name;

	/* Of "udp:IP" it is the first one. */
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
		add_protocol(address, text, ways[way].protocol, &name);
	}
	name_set_port(&name, port);
	puts_name(address, &name);
	/* Records are no datagrams. */
	if (name.kind == AM_KIND_ESP)
		return;
	s = add(address);
	s->fd = raw_socket(&name);
	if (s->fd < 0)
		error(EXIT_FAILED, errno, "%s", address);
}

static void run(const struct service *s)
{
	if (s->bundle) {
		while (!AM_WaitSema(s->bundle))
			;
	} else {
		raw_serve(s->fd);
	}
	error(EXIT_FAILED, errno, "%s", s->address);
}

int serve(char **addresses)
{
	struct sched_param none = { 0 };
	pid_t parent = getpid();
	unsigned int i;
	int status;

	for (; *addresses; addresses++)
		open_address(*addresses);
	/* Where client and server share a processor, it doesn't break into a burst. */
	sched_setscheduler(0, SCHED_BATCH, &none);
	if (fflush(stdout))
		error(EXIT_FAILED, errno, "stdout");
	for (i = 0; i < nservices; i++) {
		switch (fork()) {
		case -1:
			error(EXIT_FAILED, errno, "fork");
			break;
		case 0:
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(EXIT_FAILED);
			run(&services[i]);
		}
	}
	/* None ends unless something is wrong, and it has said what. */
	wait(&status);
	return EXIT_FAILED;
}
