// SPDX-License-Identifier: BSD-3-Clause
/*
 * am calibrate: how many credits N the N-way protocol needs on a device, by an access method (seed
 * 001: to be found by experiment). It tries N = 1, 2, 4 ..., then numbers between the last that
 * isn't enough and the first that is.
 */
#include <stdlib.h>
#include <string.h>
#include "cmd.h"

/**
 * struct trial - the trial of one N
 * @rate:	requests answered in a second
 */
struct trial {
	unsigned int	credits;
	struct interval	rate;
	uint64_t	resent;
};

#define MAX_TRIALS	32

/**
 * struct search - the command line, and the trials at one address
 * @within:	percent of the best rate that may be lacking
 */
struct search {
	unsigned int	most, messages, rounds, within, timeout;
	size_t		size;
	bool		json;
	char		**addresses;
	struct trial	trials[MAX_TRIALS];
	unsigned int	ntrials;
};

static const struct argp_option options[] = {
	{ "most", 'n', "N", 0, "Credits that are tried, at most (256)", 0 },
	{ "messages", 'm', "M", 0, "Of a burst (1024)", 0 },
	{ "rounds", 'r', "R", 0, "Bursts for each N (11)", 0 },
	{ "size", 'z', "BYTES", 0, "Of data in a message (0)", 0 },
	{ "within", 'w', "PERCENT", 0, "Of the best rate that may be lacking (5)", 0 },
	{ "timeout", 't', "MS", 0, "That an answer may take, in milliseconds (5000)", 0 },
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct search *s = state->input;

	switch (key) {
	case 'n':
		s->most = parse_number(state, "N", arg, 1, MAX_CREDITS);
		break;
	case 'm':
		s->messages = parse_number(state, "M", arg, 2, MAX_MESSAGES);
		break;
	case 'r':
		s->rounds = parse_number(state, "R", arg, MIN_ROUNDS, MAX_ROUNDS);
		break;
	case 'z':
		s->size = parse_number(state, "BYTES", arg, 0, AM_MAX_LONG);
		break;
	case 'w':
		s->within = parse_number(state, "PERCENT", arg, 0, 99);
		break;
	case 't':
		s->timeout = parse_number(state, "MS", arg, 1, 3600000);
		break;
	case 'j':
		s->json = true;
		break;
	case ARGP_KEY_ARGS:
		s->addresses = state->argv + state->next;
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no address");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	options, parse, "ADDRESS...",
	"Find how many credits N-way needs with the server at each ADDRESS.\v" ADDRESSES,
	NULL, NULL, NULL
};

/* Send a burst. Returns the requests answered in a second. */
static double rate(struct layer *l, const struct search *s)
{
	double start = clock_ns();
	unsigned int i;

	for (i = 0; i < s->messages; i++)
		l->ops->request(l, s->size, 0);
	layer_drain(l);
	return s->messages * 1e9 / (clock_ns() - start);
}

/* Return the trial of @credits; make it if it wasn't made before. */
static const struct trial *try(struct search *s, const char *address, unsigned int credits)
{
	double samples[MAX_ROUNDS];
	struct trial *t = s->trials;
	struct layer l;
	unsigned int i;

	for (i = 0; i < s->ntrials; i++, t++)
		if (t->credits == credits)
			return t;
	if (s->ntrials == MAX_TRIALS)
		abort();
	layer_open(&l, address, WAY_NWAY, credits, s->timeout);
	rate(&l, s);
	for (i = 0; i < s->rounds; i++)
		samples[i] = rate(&l, s);
	*t = (struct trial) {
		.credits = credits, .rate = median_of(samples, s->rounds),
		.resent = layer_resent(&l),
	};
	layer_close(&l);
	s->ntrials++;
	return t;
}

/* Return the best rate of all trials, by which the answer is measured. */
static double best(const struct search *s)
{
	double most = 0;
	unsigned int i;

	for (i = 0; i < s->ntrials; i++)
		if (s->trials[i].rate.median > most)
			most = s->trials[i].rate.median;
	return most;
}

static unsigned int search(struct search *s, const char *address)
{
	unsigned int n, few = 0, enough;
	double need;

	s->ntrials = 0;
	for (n = 1; n < s->most; n *= 2)
		try(s, address, n);
	try(s, address, s->most);
	need = best(s) * (100 - s->within) / 100;
	for (n = 0; s->trials[n].rate.median < need; n++)
		few = s->trials[n].credits;
	enough = s->trials[n].credits;
	while (enough - few > 1) {
		n = (few + enough) / 2;
		if (try(s, address, n)->rate.median < need)
			few = n;
		else
			enough = n;
	}
	return enough;
}

static int by_credits(const void *a, const void *b)
{
	return (int)((const struct trial *)a)->credits - (int)((const struct trial *)b)->credits;
}

static void print(const struct search *s, const char *address, unsigned int credits)
{
	unsigned int i;

	printf("%s, %zu bytes\n%8s %12s %25s %8s\n", address, s->size, "N", "requests/s",
	       "95 % confidence", "resent");
	for (i = 0; i < s->ntrials; i++) {
		const struct trial *t = &s->trials[i];

		printf("%8u %12.0f %12.0f-%12.0f %8llu%s\n", t->credits, t->rate.median,
		       t->rate.low, t->rate.high, (unsigned long long)t->resent,
		       t->credits == credits ? "  <-" : "");
	}
	printf("N = %u: within %u %% of the best rate\n", credits, s->within);
	if (credits == s->most)
		printf("warning: more credits than were tried may do better\n");
}

static void print_json(const struct search *s, const char *address, unsigned int credits)
{
	unsigned int i;

	printf("{\"address\": \"%s\", \"bytes\": %zu, \"credits\": %u, ", address, s->size,
	       credits);
	printf("\"within\": %u, \"trials\": [", s->within);
	for (i = 0; i < s->ntrials; i++) {
		printf("%s{\"credits\": %u, ", i ? ", " : "", s->trials[i].credits);
		json_interval("rate", s->trials[i].rate, 1);
		printf(", \"resent\": %llu}", (unsigned long long)s->trials[i].resent);
	}
	printf("]}");
}

int cmd_calibrate(int argc, char **argv)
{
	struct search s = {
		.most = 256, .messages = 1024, .rounds = 11, .within = 5, .timeout = 5000,
	};
	unsigned int credits;
	char **a;

	argp_parse(&argp, argc, argv, 0, NULL, &s);
	if (s.json)
		puts("[");
	for (a = s.addresses; *a; a++) {
		credits = search(&s, *a);
		qsort(s.trials, s.ntrials, sizeof(*s.trials), by_credits);
		if (!s.json) {
			print(&s, *a, credits);
			continue;
		}
		print_json(&s, *a, credits);
		puts(a[1] ? "," : "");
	}
	if (s.json)
		puts("]");
	return EXIT_OK;
}
