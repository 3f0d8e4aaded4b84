// SPDX-License-Identifier: GPL-2.0-only
/*
 * espsim: the command line.
 */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "sim.h"

const char *argp_program_version = "espsim " VERSION;

struct sim_config cfg = {
	.per_leaf = 16,
	.rate = 10000,
	.buffer = 128 << 10,
	.hop = 1000,
	.load = 0.5,
	.block = 256 << 10,
	.rounds = 10,
	.seed = 1,
};

static bool json, arrivals;
static bool time_set, limit_set, mark_set, uplink_set, told_set;

enum { OPT_CONNECTED = 256, OPT_PER_LEAF, OPT_SPINES, OPT_UPLINK, OPT_HOP, OPT_MARK, OPT_SPRAY,
	OPT_ALLTOALL, OPT_SHUFFLE, OPT_TOLD, OPT_FIFO, OPT_HANDSHAKE, OPT_COALESCE, OPT_CPU,
	OPT_PAUSE, OPT_LIMIT, OPT_LOSS, OPT_LIST, OPT_ARRIVALS };

static const struct argp_option options[] = {
	{ .doc = "Protocol:" },
	{ "proto", 'p', "NAME", 0, "esp (default), seed, newreno, cubic, dctcp, sird, ideal", 0 },
	{ .doc = "Many to one, blocks unless --flows is given:" },
	{ "senders", 'n', "N", 0, "hosts that send (1 ... 4095)", 0 },
	{ "connected", OPT_CONNECTED, "N", 0, "hosts with a connection (default: senders)", 0 },
	{ "block", 'b', "BYTES", 0, "each sends one, the next when all are in (262144)", 0 },
	{ "rounds", 'r', "N", 0, "of blocks (10)", 0 },
	{ "flows", 'f', NULL, 0, "each sends without end", 0 },
	{ "alltoall", OPT_ALLTOALL, NULL, 0, "each sends a block to each of the others", 0 },
	{ "shuffle", OPT_SHUFFLE, NULL, 0, "... in a random order; else in step", 0 },
	{ .doc = "Between all hosts:" },
	{ "workload", 'w', "NAME", 0, "sizes of websearch, datamining or hadoop", 0 },
	{ "load", 'l', "SHARE", 0, "of the hosts' links (0.01 ... 1; 0.5)", 0 },
	{ .doc = "Network:" },
	{ "hosts", 'N', "N", 0, "in all (2 ... 4096; what is needed, or 64)", 0 },
	{ "per-leaf", OPT_PER_LEAF, "N", 0, "hosts at a leaf (16); 0: one switch", 0 },
	{ "spines", OPT_SPINES, "N", 0, "spine switches (1 ... 256; 4)", 0 },
	{ "rate", 'R', "MBIT", 0, "of a host's link, Mbit/s (10 ... 400000; 10000)", 0 },
	{ "uplink", OPT_UPLINK, "MBIT", 0, "of each of a leaf's (together its hosts')", 0 },
	{ "buffer", 'B', "KIB", 0, "of a port (2 ... 65536; 128)", 0 },
	{ "mark", OPT_MARK, "KIB", 0, "that marks DCTCP's frames (30; 96 beyond 1 Gbit/s)", 0 },
	{ "hop", OPT_HOP, "US", 0, "time on a link and in a switch (0.01 ... 10000; 1)", 0 },
	{ "rtt", 'D', "US", 0, "incast.sh's rack: one slow port, this round trip", 0 },
	{ "spray", OPT_SPRAY, NULL, 0, "each packet takes a spine of its own", 0 },
	{ "pause", OPT_PAUSE, NULL, 0, "a full port stops the one before it", 0 },
	{ "coalesce", OPT_COALESCE, "US", 0, "between two interrupts of a host's card (0)", 0 },
	{ "cpu", OPT_CPU, "US", 0, "that odd hosts need for a frame that they take in (0)", 0 },
	{ "told", OPT_TOLD, "MBIT", 0, "rate that ESP is told (that of --rate); 0: unknown", 0 },
	{ "fifo", OPT_FIFO, NULL, 0, "ESP's grants leave in turn (shortest_first 0)", 0 },
	{ "handshake", OPT_HANDSHAKE, NULL, 0, "SIRD: a round trip before each message", 0 },
	{ "loss", OPT_LOSS, "SHARE", 0, "of frames, at random, on each link (0 ... 0.5; 0)", 0 },
	{ .doc = "Run:" },
	{ "time", 't', "MS", 0, "in which flows begin, or are measured (10)", 0 },
	{ "limit", OPT_LIMIT, "MS", 0, "of simulated time (60 s; with -w 1 s after -t)", 0 },
	{ "seed", 's', "N", 0, "of what is drawn (1)", 0 },
	{ "json", 'j', NULL, 0, "one line of JSON", 0 },
	{ "arrivals", OPT_ARRIVALS, NULL, 0, "print the flows of -w, run nothing", 0 },
	{ "list", OPT_LIST, NULL, 0, "workloads, and where they are published", 0 },
	{}
};

static double number(struct argp_state *s, const char *what, const char *arg, double least,
		     double most, bool whole)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(arg, &end);
	if (end == arg || *end || errno || !isfinite(v) || (whole && v != floor(v)))
		argp_error(s, "%s: '%s' is no %snumber", what, arg, whole ? "whole " : "");
	if (v < least || v > most)
		argp_error(s, "%s: %s is not within %g ... %g", what, arg, least, most);
	return v;
}

static enum sim_proto find_proto(struct argp_state *s, const char *arg)
{
	static const char *const names[] = {
		"esp", "seed", "newreno", "cubic", "dctcp", "sird", "ideal",
	};
	int i;

	for (i = 0; i < PROTO_MAX; i++)
		if (!strcmp(arg, names[i]))
			return i;
	argp_error(s, "protocol '%s' is unknown", arg);
	return 0;
}

/* Compute defaults that depend on other options, and refuse combinations that make no sense. */
static void complete(struct argp_state *s)
{
	bool load = cfg.pattern == PATTERN_LOAD;

	if (load && cfg.senders)
		argp_error(s, "--workload has no --senders");
	if (load && cfg.rtt)
		argp_error(s, "--workload has no --rtt: use --hop");
	if (!load && !cfg.senders)
		argp_error(s, "one of --senders and --workload must be given");
	if (!load && arrivals)
		argp_error(s, "--arrivals is for --workload");
	if (!load && cfg.proto == PROTO_IDEAL)
		argp_error(s, "the ideal is for --workload");
	if (cfg.handshake && cfg.proto != PROTO_SIRD)
		argp_error(s, "--handshake is for SIRD");
	if (cfg.proto == PROTO_SIRD && (cfg.rtt || cfg.pattern == PATTERN_FLOWS))
		argp_error(s, "SIRD has no --rtt and no --flows");
	if (cfg.rtt)
		cfg.per_leaf = 0;
	if (!cfg.connected)
		cfg.connected = cfg.senders;
	if (cfg.connected < cfg.senders)
		argp_error(s, "%u senders, but %u connected", cfg.senders, cfg.connected);
	if (cfg.shuffle && !cfg.alltoall)
		argp_error(s, "--shuffle is for --alltoall");
	if (cfg.alltoall) {
		if (cfg.pattern != PATTERN_BLOCKS || cfg.rtt)
			argp_error(s, "--alltoall has no --flows, --workload and --rtt");
		if (cfg.senders < 2 || cfg.senders > 1024)
			argp_error(s, "--alltoall is for 2 ... 1024 hosts");
		cfg.hosts = cfg.senders;
		cfg.senders *= cfg.hosts - 1;
		cfg.connected = cfg.senders;
	}
	if (!cfg.hosts)
		cfg.hosts = load ? 64 : cfg.connected + 1;
	if (!load && !cfg.alltoall && cfg.hosts < cfg.connected + 1)
		argp_error(s, "%u hosts are too few for %u connections", cfg.hosts, cfg.connected);
	if (cfg.proto == PROTO_IDEAL && cfg.hosts > 256)
		argp_error(s, "the ideal takes too long for more than 256 hosts");
	if (cfg.proto == PROTO_SIRD && cfg.hosts > 1024)
		argp_error(s, "SIRD is for 1024 hosts at most");
	if (!cfg.spines)
		cfg.spines = 4;
	if (!uplink_set)
		cfg.uplink = max((u64)cfg.rate * cfg.per_leaf / cfg.spines, 1ull);
	if (!mark_set)
		cfg.mark = (cfg.rate > 1000 ? 65 : 20) * 1514;
	if (!told_set)
		cfg.told = cfg.rate;
	if (!time_set)
		cfg.time = 10 * NS_PER_MS;
	if (!limit_set)
		cfg.limit = load ? cfg.time + NS_PER_S : 60 * NS_PER_S;
}

static void list_workloads(void)
{
	static const char *const names[] = { "websearch", "datamining", "hadoop" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		const struct workload *w = workload_find(names[i]);

		printf("%-12s mean %9.0f bytes  %s\n", w->name, workload_mean(w), w->source);
	}
}

static error_t option(int key, char *arg, struct argp_state *s)
{
	switch (key) {
	case 'p':
		cfg.proto = find_proto(s, arg);
		break;
	case 'n':
		cfg.senders = number(s, "senders", arg, 1, 4095, true);
		break;
	case OPT_CONNECTED:
		cfg.connected = number(s, "connected", arg, 1, 4095, true);
		break;
	case 'b':
		cfg.block = number(s, "block", arg, 1, 1 << 30, true);
		break;
	case 'r':
		cfg.rounds = number(s, "rounds", arg, 1, 1e6, true);
		break;
	case 'f':
		cfg.pattern = PATTERN_FLOWS;
		break;
	case 'w':
		cfg.pattern = PATTERN_LOAD;
		cfg.workload = workload_find(arg);
		if (!cfg.workload)
			argp_error(s, "workload '%s' is unknown; see --list", arg);
		break;
	case 'l':
		cfg.load = number(s, "load", arg, 0.01, 1, false);
		break;
	case 'N':
		cfg.hosts = number(s, "hosts", arg, 2, 4096, true);
		break;
	case OPT_PER_LEAF:
		cfg.per_leaf = number(s, "per-leaf", arg, 0, 4096, true);
		break;
	case OPT_SPINES:
		cfg.spines = number(s, "spines", arg, 1, 256, true);
		break;
	case 'R':
		cfg.rate = number(s, "rate", arg, 10, 400000, true);
		break;
	case OPT_UPLINK:
		cfg.uplink = number(s, "uplink", arg, 10, 1600000, true);
		uplink_set = true;
		break;
	case 'B':
		cfg.buffer = 1024 * number(s, "buffer", arg, 2, 65536, false);
		break;
	case OPT_MARK:
		cfg.mark = 1024 * number(s, "mark", arg, 1, 65536, false);
		mark_set = true;
		break;
	case OPT_HOP:
		cfg.hop = 1000 * number(s, "hop", arg, 0.01, 10000, false);
		break;
	case 'D':
		cfg.rtt = 1000 * number(s, "rtt", arg, 1, 1e6, false);
		break;
	case OPT_SPRAY:
		cfg.spray = true;
		break;
	case OPT_ALLTOALL:
		cfg.alltoall = true;
		break;
	case OPT_SHUFFLE:
		cfg.shuffle = true;
		break;
	case OPT_TOLD:
		cfg.told = number(s, "told", arg, 0, 400000, true);
		told_set = true;
		break;
	case OPT_HANDSHAKE:
		cfg.handshake = true;
		break;
	case OPT_FIFO:
		cfg.fifo = true;
		break;
	case OPT_COALESCE:
		cfg.coalesce = NS_PER_US * number(s, "coalesce", arg, 0, 10000, false);
		break;
	case OPT_CPU:
		cfg.cpu = NS_PER_US * number(s, "cpu", arg, 0, 10000, false);
		break;
	case OPT_PAUSE:
		cfg.pause = true;
		break;
	case OPT_LOSS:
		cfg.loss = number(s, "loss", arg, 0, 0.5, false);
		break;
	case 't':
		cfg.time = NS_PER_MS * number(s, "time", arg, 0.01, 1e6, false);
		time_set = true;
		break;
	case OPT_LIMIT:
		cfg.limit = NS_PER_MS * number(s, "limit", arg, 0.01, 1e7, false);
		limit_set = true;
		break;
	case 's':
		cfg.seed = number(s, "seed", arg, 0, 1e15, true);
		break;
	case 'j':
		json = true;
		break;
	case OPT_ARRIVALS:
		arrivals = true;
		break;
	case OPT_LIST:
		list_workloads();
		exit(0);
	case ARGP_KEY_END:
		complete(s);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = option,
		.doc = "Many hosts, with ESP's flow control as the module decides, or TCP's.",
	};

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	net_build();
	if (arrivals) {
		workload_arrivals();
		return 0;
	}
	workload_run();
	workload_report(json);
	return 0;
}
