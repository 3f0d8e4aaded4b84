// SPDX-License-Identifier: BSD-3-Clause
/*
 * The name server of Active Messages: am-named(8).
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "named.h"

#define DIRECTORY	"/var/lib/am-named"
#define MAX_ADDRESSES	16
#define LOOK_MS		1000

static struct named server = { .registry = { .fd = -1, .most = 1024, .most_of_host = 64 } };
static atomic_bool asked;

static const struct counter {
	const char	*name;
	size_t		offset;
} counters[] = {
#define COUNTER(name)	{ #name, offsetof(struct named_stats, name) }
	COUNTER(lookups), COUNTER(registered), COUNTER(renewed), COUNTER(replaced),
	COUNTER(unregistered), COUNTER(expired), COUNTER(unknown), COUNTER(taken), COUNTER(full),
	COUNTER(host_full), COUNTER(invalid), COUNTER(bad_version), COUNTER(store_errors),
#undef COUNTER
}, endpoint_counters[] = {
#define COUNTER(name)	{ #name, offsetof(struct am_stats, name) }
	COUNTER(handlers_run), COUNTER(frames_sent), COUNTER(frames_received),
	COUNTER(duplicates), COUNTER(not_taken), COUNTER(send_errors), COUNTER(receive_errors),
	COUNTER(bad_length), COUNTER(bad_checksum), COUNTER(bad_version), COUNTER(bad_type),
	COUNTER(bad_field), COUNTER(bad_handler), COUNTER(bad_segment), COUNTER(bad_session),
	COUNTER(bad_tag), COUNTER(bad_protocol), COUNTER(peers_refused),
#undef COUNTER
};

_Static_assert(ARRAY_SIZE(counters) == sizeof(struct named_stats) / 8, "a counter is missing");

static void usage(FILE *out)
{
	fputs("Usage: am-named [-f REGISTRY] [-n NAMES] [-m NAMES] ADDRESS...\n"
	      "       am-named [-f REGISTRY] -p | -d NAME\n"
	      "Keeps the names of Active Messages' endpoints, for those who ask at ADDRESS:\n"
	      "edp:%DEV[:PORT], esp:%DEV[:PORT], udp:IP[:PORT] or verbs:IP[:PORT]. See am-named(8).\n\n"
	      "  -f REGISTRY  file (" DIRECTORY "/registry)\n"
	      "  -n NAMES     most that are registered (1024)\n"
	      "  -m NAMES     most of one host (64)\n"
	      "  -p           print what is registered; no server may use the file\n"
	      "  -d NAME      take NAME from it; likewise\n"
	      "  -V, --version\n"
	      "  -h, --help   this text\n", out);
}

static uint64_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

static void show(const char *who, const struct counter *c, size_t n, const void *stats)
{
	uint64_t value;

	for (; n; n--, c++) {
		memcpy(&value, (const char *)stats + c->offset, sizeof(value));
		printf("%s %s %llu\n", who, c->name, (unsigned long long)value);
	}
}

static void on_signal(int signal)
{
	(void)signal;
	asked = true;
}

static int fail(const char *what, int error)
{
	const char *why = strerror(errno);

	switch (error) {
	case AM_ERR_SYSTEM:
		if (errno == EWOULDBLOCK)
			why = "another server uses it";
		break;
	case AM_ERR_LOG_DAMAGED:
		why = "it is damaged: length, checksum or contents are wrong";
		break;
	case AM_ERR_LOG_FOREIGN:
		why = "it is no registry, or of another version";
		break;
	case AM_ERR_BAD_ARG:
		why = "there is no such address";
		break;
	default:
		why = AM_ErrorName(error);
	}
	fprintf(stderr, "am-named: %s: %s\n", what, why);
	return 1;
}

static int print(const struct registry *g)
{
	static const char *const kinds[] = {
		[AM_KIND_MEM] = "mem", [AM_KIND_UDP] = "udp", [AM_KIND_EDP] = "edp",
		[AM_KIND_ESP] = "esp", [AM_KIND_VERBS] = "verbs",
	};
	const struct registry_record *r;
	unsigned int i;

	for (i = 0; i < g->n; i++) {
		const uint8_t *h = g->entries[i].r.host;

		r = &g->entries[i].r;
		printf("%s %s:", r->name, kinds[r->kind]);
		if (r->kind == AM_KIND_UDP || r->kind == AM_KIND_VERBS)
			printf("%u.%u.%u.%u", h[0], h[1], h[2], h[3]);
		else
			printf("%02x:%02x:%02x:%02x:%02x:%02x", h[0], h[1], h[2], h[3], h[4], h[5]);
		printf(":%u %u\n", r->port, r->lease);
	}
	return fflush(stdout) ? fail("stdout", AM_ERR_SYSTEM) : 0;
}

/* Remove a name from each transport that has it. */
static int delete(struct registry *g, const char *path, const char *name)
{
	struct registry_entry *e;
	int kind, found = 0;

	for (kind = AM_KIND_MEM; kind <= AM_KIND_VERBS; kind++) {
		e = registry_find(g, kind, name, 0);
		if (!e)
			continue;
		found = 1;
		if (registry_remove(g, e))
			return fail(path, AM_ERR_SYSTEM);
	}
	if (!found)
		fprintf(stderr, "am-named: %s isn't registered\n", name);
	return !found;
}

static int parse_number(const char *text, unsigned int most, unsigned int *n)
{
	unsigned long x;
	char *end;

	errno = 0;
	x = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || !x || x > most) {
		fprintf(stderr, "am-named: %s: not a number from 1 to %u\n", text, most);
		return 1;
	}
	*n = x;
	return 0;
}

static int serve(eb_t bundle, char **addresses, int n)
{
	/*
	 * A client that is silent for 0.1 s may lose its place to another; if it comes back, it
	 * asks again.
	 */
	struct am_options o = {
		.credits = 2, .peers = 1024, .idle_us = 100000, .handler_max_us = 3600000000u,
	};
	struct sigaction usr1 = { .sa_handler = on_signal };
	char text[MAX_ADDRESSES][AM_NAME_LEN];
	int i, error, devices[AM_KIND_VERBS + 1] = { 0 };
	uint64_t looked = server.now();
	struct am_stats stats;
	ep_t ep[MAX_ADDRESSES];
	en_t name;

	for (i = 0; i < n; i++) {
		o.address = addresses[i];
		error = !strcmp(o.address, "mem") ? AM_ERR_BAD_ARG :
			named_open(&server, bundle, &o, &ep[i], &name);
		if (!error)
			error = AM_NameToString(&name, text[i], sizeof(text[i]));
		if (error)
			return fail(addresses[i], error);
		devices[name.kind]++;
	}
	if (devices[AM_KIND_EDP] > 1 || devices[AM_KIND_ESP] > 1) {
		fputs("am-named: only one device of edp, or esp: what it leads to is one LAN\n",
		      stderr);
		return 1;
	}
	sigaction(SIGUSR1, &usr1, NULL);
	for (i = 0; i < n; i++)
		printf("%s\n", text[i]);
	if (fflush(stdout))
		return fail("stdout", AM_ERR_SYSTEM);
	AM_SetTimeout(bundle, LOOK_MS);
	while (true) {
		error = AM_WaitSema(bundle);
		if (error && error != AM_ERR_TIMEOUT)
			return fail("endpoints", error);
		if (looked != server.now()) {
			looked = server.now();
			registry_look(&server.registry, looked, &server.stats);
		}
		if (!atomic_exchange(&asked, false))
			continue;
		printf("names %u\n", server.registry.n);
		show("names", counters, ARRAY_SIZE(counters), &server.stats);
		for (i = 0; i < n; i++) {
			AM_GetStats(ep[i], &stats);
			show(text[i], endpoint_counters, ARRAY_SIZE(endpoint_counters), &stats);
		}
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	const char *path = NULL, *unwanted = NULL;
	struct registry *g = &server.registry;
	bool printing = false;
	int c, error, code;
	eb_t bundle;

	while ((c = getopt_long(argc, argv, "f:n:m:pd:Vh", names, NULL)) != -1) {
		switch (c) {
		case 'f':
			path = optarg;
			break;
		case 'n':
			if (parse_number(optarg, REGISTRY_MOST, &g->most))
				return 2;
			break;
		case 'm':
			if (parse_number(optarg, REGISTRY_MOST, &g->most_of_host))
				return 2;
			break;
		case 'p':
			printing = true;
			break;
		case 'd':
			unwanted = optarg;
			break;
		case 'V':
			puts("am-named " VERSION);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	argv += optind;
	argc -= optind;
	if (printing + !!unwanted + !!argc != 1 || argc > MAX_ADDRESSES) {
		usage(stderr);
		return 2;
	}
	if (!path) {
		path = DIRECTORY "/registry";
		if (argc && mkdir(DIRECTORY, 0755) && errno != EEXIST)
			return fail(DIRECTORY, AM_ERR_SYSTEM);
	}
	if (!argc && access(path, F_OK))
		return fail(path, AM_ERR_SYSTEM);
	/* Clients are told of the disk's errors, which don't end the server. */
	signal(SIGXFSZ, SIG_IGN);
	/* A closed stdout doesn't end the server, either. */
	signal(SIGPIPE, SIG_IGN);
	server.now = seconds;
	error = registry_open(g, path, seconds());
	if (error)
		return fail(path, error);
	if (printing) {
		code = print(g);
	} else if (unwanted) {
		code = delete(g, path, unwanted);
	} else {
		error = AM_AllocateBundle(AM_SEQ, &bundle);
		if (error)
			return fail("bundle", error);
		code = serve(bundle, argv, argc);
		AM_FreeBundle(bundle);
	}
	registry_close(g);
	return code;
}
