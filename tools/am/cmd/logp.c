// SPDX-License-Identifier: BSD-3-Clause
/*
 * am logp: the cost of messages (seed 004, 3.4.2).
 *
 * A layer is measured in rounds; a round gives one sample of each figure. It has bursts of 1, 2, 4
 * ... requests, without a delay and with delays, and round trips. Only a burst's requests are
 * timed, not the replies that come after the last one. Derived figures are derived in each round.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cmd.h"

#define TRIPS		11	/* round trips of a sample */
#define SHORTEST	8	/* messages of the burst that shows o_s, at most the credits */
#define SIZE_BURST	64	/* messages of a burst that shows g(size), beyond the credits */
#define SIZE_DELAYED	5	/* messages of the burst that shows o_r(size) */
#define LONG		4	/* round trips after which a reply is here */
#define RATE_BURST	1000	/* datagrams one way */
#define POLLS		64	/* most polls for one reply */

static double clock_price;
static long processors;

/**
 * struct burst - the times of a burst
 * @cost:	ns for each message, without delays
 * @gap:	ns between messages, from when the credits were used up
 * @take:	ns of a poll that finds the reply to the last request: receiving it, and sending the
 *		protocol's answer to it; the median of those after delays that were long enough
 */
struct burst {
	double cost, gap, take;
};

/*
 * Wait for @ns. With one processor only, the delay is sleep, because the server may be on this host
 * and need it. The caller measures how long the delay was.
 */
static void delay_for(double ns)
{
	struct timespec t = { .tv_sec = ns / 1e9, .tv_nsec = fmod(ns, 1e9) };
	double end = clock_ns() + ns;

	if (processors == 1)
		nanosleep(&t, NULL);
	else
		while (clock_ns() < end)
			;
}

/* Take the replies that are here: one poll takes fewer frames than a large reply may have. */
static void take(struct layer *l)
{
	unsigned int i = 0;

	do
		l->ops->poll(l);
	while (l->outstanding && ++i < POLLS);
}

static struct burst burst(struct layer *l, unsigned int messages, double delay, size_t size,
			  size_t answer)
{
	double start, end, full = 0, before, waited = 0, takes[DELAYED];
	unsigned int i, n = 0;

	start = clock_ns();
	for (i = 0; i < messages; i++) {
		if (i && delay != 0) {
			before = clock_ns();
			delay_for(delay);
			end = clock_ns();
			waited += end - before + 2 * clock_price;
			take(l);
			if (!l->outstanding)
				takes[n++] = clock_ns() - end - clock_price;
		}
		if (i == l->credits)
			full = clock_ns();
		l->ops->request(l, size, answer);
	}
	end = clock_ns();
	layer_drain(l);
	return (struct burst) {
		.cost = (end - start - waited) / messages,
		.gap = full != 0 ? (end - full) / (messages - l->credits) : NAN,
		.take = n ? middle(takes, n) : NAN,
	};
}

/* Return the median of TRIPS round trips. */
static double round_trip(struct layer *l, size_t answer)
{
	double ns[TRIPS], start;
	int i;

	for (i = 0; i < TRIPS; i++) {
		start = clock_ns();
		l->ops->request(l, 0, answer);
		layer_drain(l);
		ns[i] = clock_ns() - start - clock_price;
		/* Do the remaining work, such as an acknowledgment. */
		l->ops->poll(l);
	}
	return middle(ns, TRIPS);
}

/* Return the receive overhead of one message, from the time of a poll (burst.take). */
static double o_r_of(const struct way_info *w, double take, double o_s)
{
	return (take - (w->own_sends - 1) * o_s) / w->own_receives;
}

/*
 * Return the receive overhead by the gap. The slower side of a three-way protocol receives two
 * messages or sends two, whichever takes longer.
 */
static double o_r_of_gap(const struct way_info *w, double gap, double o_s, double o_r)
{
	if (w->gap_receives == 2 && o_r < o_s)
		return gap - 2 * o_s;
	return (gap - o_s) / w->gap_receives;
}

static unsigned int shortest(const struct layer *l, unsigned int most)
{
	unsigned int n = l->credits < SHORTEST ? l->credits : SHORTEST;

	return n < most ? n : most;
}

/**
 * struct samples - the samples of one layer, of each round
 */
struct samples {
	double cost[DELAYS][MAX_POINTS][MAX_ROUNDS];
	double o_s[MAX_ROUNDS], o_r[MAX_ROUNDS], o_r_gap[MAX_ROUNDS], gap[MAX_ROUNDS];
	double own[MAX_ROUNDS], latency[MAX_ROUNDS], trip[MAX_ROUNDS], per_byte[MAX_ROUNDS];
	double size[MAX_SIZES][3][MAX_ROUNDS];
	double one_way[2][MAX_ROUNDS];
};

static void signature_round(struct layer *l, const struct run *run, struct result *res,
			    struct samples *s, unsigned int round)
{
	const struct way_info *w = l->way;
	unsigned int d, p;
	struct burst b = { NAN, NAN, NAN };

	s->trip[round] = round_trip(l, 0);
	s->o_s[round] = burst(l, shortest(l, run->messages), 0, 0, 0).cost;
	for (d = 0; d < DELAYS; d++) {
		for (p = 0; p < res->points; p++) {
			if (d && 1u << p > DELAYED)
				break;
			b = burst(l, 1u << p, res->delay[d], 0, 0);
			s->cost[d][p][round] = b.cost;
		}
		if (!d)
			s->gap[round] = b.gap;
	}
	s->own[round] = s->o_s[round] + b.take;
	s->o_r[round] = o_r_of(w, b.take, s->o_s[round]);
	s->o_r_gap[round] = o_r_of_gap(w, s->gap[round], s->o_s[round], s->o_r[round]);
	s->latency[round] = (s->trip[round] - w->trip_sends * s->o_s[round] -
			     2 * s->o_r[round]) / 2;
}

static void sizes_round(struct layer *l, const struct run *run, struct result *res,
			struct samples *s, unsigned int round)
{
	unsigned int i, n = shortest(l, run->messages);
	double o_s = s->o_s[round], delay;

	for (i = 0; i < res->nsizes; i++) {
		size_t size = res->size[i].bytes;

		s->size[i][0][round] = burst(l, n, 0, size, 0).cost;
		s->size[i][1][round] = burst(l, l->credits + SIZE_BURST, 0, size, 0).gap;
		delay = LONG * round_trip(l, size);
		s->size[i][2][round] = o_r_of(l->way, burst(l, SIZE_DELAYED, delay, 0, size).take,
					      o_s);
	}
	i = res->nsizes;
	s->per_byte[round] = i && res->size[i - 1].bytes ?
			     s->size[i - 1][1][round] / res->size[i - 1].bytes : NAN;
}

static void summarize(struct result *res, const struct samples *s, unsigned int rounds)
{
	unsigned int d, p, i;

	res->o_s = median_of(s->o_s, rounds);
	res->o_r = median_of(s->o_r, rounds);
	res->o_r_gap = median_of(s->o_r_gap, rounds);
	res->gap = median_of(s->gap, rounds);
	res->own = median_of(s->own, rounds);
	res->latency = median_of(s->latency, rounds);
	res->trip = median_of(s->trip, rounds);
	res->per_byte = median_of(s->per_byte, rounds);
	res->gap_hidden = res->gap.low <= res->own.high;
	for (d = 0; d < DELAYS; d++)
		for (p = 0; p < res->points; p++)
			res->cost[d][p] = median_of(s->cost[d][p], rounds);
	for (i = 0; i < res->nsizes; i++) {
		res->size[i].o_s = median_of(s->size[i][0], rounds);
		res->size[i].gap = median_of(s->size[i][1], rounds);
		res->size[i].o_r = median_of(s->size[i][2], rounds);
	}
	for (i = 0; i < 2; i++)
		res->one_way[i] = median_of(s->one_way[i], rounds);
}

static void no_samples(struct samples *s)
{
	double *v = (double *)s;
	size_t i;

	for (i = 0; i < sizeof(*s) / sizeof(*v); i++)
		v[i] = NAN;
}

static void measure(struct layer *l, const struct run *run, struct result *res, struct samples *s)
{
	/* Shorter than a round trip, about as long, and surely longer. */
	static const double trips[DELAYS] = { 0, 0.5, 1, LONG };
	unsigned int i, d;
	double trip;

	snprintf(res->transport, sizeof(res->transport), "%s", l->transport);
	res->address = l->address;
	res->protocol = l->way->name;
	res->credits = l->credits;
	for (i = 0; i < run->nsizes; i++)
		if (layer_carries(l, run->sizes[i]))
			res->size[res->nsizes++].bytes = run->sizes[i];
	while (res->points < MAX_POINTS && 1u << res->points <= run->messages)
		res->points++;
	no_samples(s);
	burst(l, run->messages, 0, 0, 0);
	trip = round_trip(l, 0);
	for (d = 0; d < DELAYS; d++)
		res->delay[d] = trips[d] * trip;
	for (i = 0; i < run->rounds; i++) {
		signature_round(l, run, res, s, i);
		sizes_round(l, run, res, s, i);
		if (l->way->protocol)
			continue;
		s->one_way[0][i] = raw_rate(l, 0, RATE_BURST);
		s->one_way[1][i] = raw_rate(l, RAW_MAX, RATE_BURST);
	}
	res->resent = layer_resent(l);
	summarize(res, s, run->rounds);
}

/*
 * Options
 */

enum { OPT_FIGURES = 256 };

/**
 * struct args - the command line
 * @ways:	protocols, in the order in which they were asked for
 */
struct args {
	struct run	run;
	enum way	ways[WAYS];
	unsigned int	nways;
	unsigned int	timeout;
	const char	*figures;
	char		**addresses;
	bool		serve, json, client_option;
};

static const struct argp_option options[] = {
	{ "serve", 's', NULL, 0, "Answer to measurements at each ADDRESS, until it is killed", 0 },
	{ "protocol", 'p', "LIST", 0,
	  "Of raw, nway, oneway, amvia, amudp, with commas; all if not given", 0 },
	{ "credits", 'n', "N", 0, "Requests that may be outstanding (16)", 0 },
	{ "messages", 'm', "M", 0, "Of the longest burst (1024)", 0 },
	{ "rounds", 'r', "R", 0, "Samples of each figure (21)", 0 },
	{ "sizes", 'z', "LIST", 0,
	  "Bytes of messages of which the overheads are measured, too; 'none' for none", 0 },
	{ "timeout", 't', "MS", 0, "That an answer may take, in milliseconds (5000)", 0 },
	{ "figures", OPT_FIGURES, "DIR", 0, "Draw them there, as PNG, by gnuplot", 0 },
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ 0 }
};

static void parse_protocols(struct argp_state *state, struct args *a, char *list)
{
	char *name, *rest = NULL;
	unsigned int w, i;

	for (name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		for (w = 0; w < WAYS && strcmp(ways[w].name, name); w++)
			;
		if (w == WAYS)
			argp_error(state, "'%s' is none of raw, nway, oneway, amvia and amudp",
				   name);
		for (i = 0; i < a->nways; i++)
			if (a->ways[i] == w)
				argp_error(state, "protocol '%s' is there twice", name);
		a->ways[a->nways++] = w;
	}
	if (!a->nways)
		argp_error(state, "no protocol");
}

static void parse_sizes(struct argp_state *state, struct run *run, char *list)
{
	char *size, *rest = NULL;

	run->nsizes = 0;
	if (!strcmp(list, "none"))
		return;
	for (size = strtok_r(list, ",", &rest); size; size = strtok_r(NULL, ",", &rest)) {
		if (run->nsizes == MAX_SIZES)
			argp_error(state, "these are more sizes than %d", MAX_SIZES);
		run->sizes[run->nsizes] = parse_number(state, "size", size, 0, AM_MAX_LONG);
		if (run->nsizes && run->sizes[run->nsizes] <= run->sizes[run->nsizes - 1])
			argp_error(state, "sizes must rise");
		run->nsizes++;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	if (key == ARGP_KEY_ARGS) {
		a->addresses = state->argv + state->next;
		return 0;
	}
	if (key != 's' && (key == OPT_FIGURES || (key > 0 && key < 128)))
		a->client_option = true;
	switch (key) {
	case 's':
		a->serve = true;
		break;
	case 'p':
		a->nways = 0;
		parse_protocols(state, a, arg);
		break;
	case 'n':
		a->run.credits = parse_number(state, "N", arg, 1, MAX_CREDITS);
		break;
	case 'm':
		a->run.messages = parse_number(state, "M", arg, 2, MAX_MESSAGES);
		break;
	case 'r':
		a->run.rounds = parse_number(state, "R", arg, MIN_ROUNDS, MAX_ROUNDS);
		break;
	case 'z':
		parse_sizes(state, &a->run, arg);
		break;
	case 't':
		a->timeout = parse_number(state, "MS", arg, 1, 3600000);
		break;
	case OPT_FIGURES:
		a->figures = arg;
		break;
	case 'j':
		a->json = true;
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no address");
		break;
	case ARGP_KEY_END:
		if (a->serve && a->client_option)
			argp_error(state, "--serve has no other options");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	options, parse, "ADDRESS...",
	"Measure what messages to the server at each ADDRESS cost, by LogP.\v" ADDRESSES,
	NULL, NULL, NULL
};

int cmd_logp(int argc, char **argv)
{
	static const size_t sizes[] = {
		0, 32, 64, 127, 256, 512, 1024, 1400, 4096, 16384, 65536,
	};
	struct args a = {
		.run = { .credits = 16, .rounds = 21, .messages = 1024 },
		.ways = { WAY_RAW, WAY_NWAY, WAY_ONEWAY, WAY_AMVIA, WAY_AMUDP }, .nways = WAYS,
		.timeout = 5000,
	};
	unsigned int n = 0, w, addresses = 0;
	struct samples *samples;
	struct result *results;
	struct layer l;

	memcpy(a.run.sizes, sizes, sizeof(sizes));
	a.run.nsizes = ARRAY_SIZE(sizes);
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (a.serve)
		return serve(a.addresses);
	processors = sysconf(_SC_NPROCESSORS_ONLN);
	a.run.processors = processors;
	clock_price = clock_cost();
	while (a.addresses[addresses])
		addresses++;
	results = calloc(addresses * a.nways, sizeof(*results));
	samples = malloc(sizeof(*samples));
	if (!results || !samples)
		error(EXIT_FAILED, errno, "results");
	for (; *a.addresses; a.addresses++) {
		for (w = 0; w < a.nways; w++) {
			if (a.ways[w] == WAY_RAW && !raw_can(*a.addresses))
				continue;
			layer_open(&l, *a.addresses, a.ways[w], a.run.credits, a.timeout);
			measure(&l, &a.run, &results[n], samples);
			layer_close(&l);
			if (!a.json)
				report_layer(&a.run, results, n);
			n++;
		}
	}
	if (!n)
		error(EXIT_USAGE, 0, "esp: and verbs: have no datagrams");
	if (a.json)
		report_json(&a.run, results, n);
	else
		report_end(&a.run, results, n);
	if (a.figures)
		plot(a.figures, &a.run, results, n);
	free(samples);
	free(results);
	return EXIT_OK;
}
