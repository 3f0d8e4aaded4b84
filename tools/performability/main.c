// SPDX-License-Identifier: BSD-3-Clause
/*
 * esp-performability: the cost of faults for a messaging protocol. See
 * Documentation/man/esp-performability.1.
 */
#include <argp.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdlib.h>
#include "performability.h"

const char *argp_program_version = "esp-performability " VERSION;

struct sweep {
	const struct key *key;
	double		from, to;
	unsigned int	points;
	bool		log;
};

struct arguments {
	const char	*file, *png, *at, *peer, *serve;
	char		**settings;
	unsigned int	nsettings;
	unsigned int	simulate, measure;
	unsigned long	seed;
	bool		json, sensitivity;
	struct sweep	sweep;
};

enum { AT = 256, PEER, SERVE };

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "print JSON", 0 },
	{ "sensitivity", 's', NULL, 0, "derivative and elasticity of the response time", 0 },
	{ "simulate", 'n', "REQUESTS", 0, "simulate so many, too", 0 },
	{ "measure", 'm', "REQUESTS", 0, "have libam make so many, too", 0 },
	{ "seed", 'r', "NUMBER", 0, "of the random numbers (1)", 0 },
	{ "sweep", 'x', "WORD:FROM:TO:POINTS[:log]", 0, "a line for each of these values", 0 },
	{ "png", 'p', "FILE", 0, "draw what --sweep prints, by gnuplot", 0 },
	{ "at", AT, "ADDRESS", 0, "measure from here: udp:IP, edp:%DEV or esp:%DEV", 0 },
	{ "peer", PEER, "ADDRESS", 0, "... to there, where --serve is", 0 },
	{ "serve", SERVE, "ADDRESS", 0, "answer who measures, until killed", 0 },
	{ 0 }
};

static unsigned long number(struct argp_state *state, const char *text, unsigned long most)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !v || v > most)
		argp_error(state, "\"%s\" is not 1 to %lu", text, most);
	return v;
}

static void sweep_read(struct argp_state *state, struct sweep *s, const char *text)
{
	char word[64], log[8] = "", more[2];
	int n = sscanf(text, "%63[^:]:%lf:%lf:%u:%7s%1s", word, &s->from, &s->to, &s->points, log,
		       more);

	if (n < 4 || n > 5 || (n == 5 && strcmp(log, "log")))
		argp_error(state, "\"%s\" is no WORD:FROM:TO:POINTS[:log]", text);
	s->key = key_find(word);
	s->log = n == 5;
	if (!s->key)
		argp_error(state, "--sweep: unknown word \"%s\"", word);
	if (s->points < 2 || s->points > 10000)
		argp_error(state, "--sweep: %u points are not 2 to 10000", s->points);
	if (!(s->from >= s->key->low && s->to <= s->key->high && s->from < s->to))
		argp_error(state, "--sweep: %s goes from %g to %g", word, s->key->low,
			   s->key->high);
	if (s->log && s->from <= 0)
		argp_error(state, "--sweep: log begins above 0");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 's':
		a->sensitivity = true;
		break;
	case 'n':
		a->simulate = number(state, arg, 100000000);
		break;
	case 'm':
		a->measure = number(state, arg, 100000000);
		break;
	case 'r':
		a->seed = number(state, arg, 0xffffffff);
		break;
	case 'x':
		sweep_read(state, &a->sweep, arg);
		break;
	case 'p':
		a->png = arg;
		break;
	case AT:
		a->at = arg;
		break;
	case PEER:
		a->peer = arg;
		break;
	case SERVE:
		a->serve = arg;
		break;
	case ARGP_KEY_ARGS:
		a->file = state->argv[state->next];
		a->settings = state->argv + state->next + 1;
		a->nsettings = state->argc - state->next - 1;
		break;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		break;
	case ARGP_KEY_END:
		if (!a->at != !a->peer || (a->at && !a->measure))
			argp_error(state, "--measure, --at and --peer belong together");
		if (a->png && !a->sweep.key)
			argp_error(state, "--png draws what --sweep prints");
		if (a->sweep.key && (a->json || a->sensitivity))
			argp_error(state, "--sweep prints lines only");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void take(const struct arguments *a, const struct model *m, struct sample *s)
{
	if (a->at)
		measure_socket(m, a->at, a->peer, a->measure, s);
	else
		measure(m, a->measure, a->seed, s);
}

static void one(const struct arguments *a, struct model *m)
{
	struct sensitivity s[64];
	struct sample des = { 0 }, real = { 0 };
	struct prediction p;
	unsigned int n = 0;

	predict(m, &p);
	if (a->sensitivity)
		n = sensitivities(m, s);
	if (a->simulate)
		simulate(m, a->simulate, a->seed, &des);
	if (a->measure)
		take(a, m, &real);
	if (a->json) {
		print_json(m, &p, s, n, a->simulate ? &des : NULL, a->measure ? &real : NULL);
	} else {
		print_text(m, &p);
		if (n)
			print_sensitivity(s, n);
		if (a->simulate)
			print_sample("simulated", &des, &p);
		if (a->measure)
			print_sample("measured", &real, &p);
	}
	free(des.us);
	free(real.us);
}

static void sample_columns(FILE *f, struct sample *s)
{
	struct estimate e;

	estimate(s, &e);
	fprintf(f, " %.8g %.4g %.8g", e.mean, e.error, e.success);
	free(s->us);
}

static void sweep(const struct arguments *a, const struct model *base)
{
	const struct sweep *x = &a->sweep;
	char *data;
	size_t size;
	FILE *f = open_memstream(&data, &size);
	unsigned int i;

	fprintf(f, "# %s: value, response time (us), throughput (a second), success%s%s\n",
		x->key->name, a->simulate ? "; simulated response time, +-, success" : "",
		a->measure ? "; measured response time, +-, success" : "");
	for (i = 0; i < x->points; i++) {
		double t = (double)i / (x->points - 1), v;
		struct model m = *base;
		struct prediction p;
		struct sample s;

		v = x->log ? x->from * pow(x->to / x->from, t) : x->from + t * (x->to - x->from);
		*key_value(&m, x->key) = x->key->kind == KEY_COUNT ? round(v) : v;
		model_check(&m);
		predict(&m, &p);
		fprintf(f, "%.8g %.8g %.8g %.8g", *key_value(&m, x->key), p.response, p.throughput,
			p.success);
		if (a->simulate) {
			simulate(&m, a->simulate, a->seed, &s);
			sample_columns(f, &s);
		}
		if (a->measure) {
			take(a, &m, &s);
			sample_columns(f, &s);
		}
		fputc('\n', f);
	}
	fclose(f);
	if (a->png)
		plot(a->png, data, base, x->key->name, x->log);
	fputs(data, stdout);
	free(data);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse, .args_doc = "FILE [WORD=VALUE...]",
		.doc = "Predicts what faults cost messages.\vesp-performability(1) explains FILE.",
	};
	struct arguments a = { .seed = 1 };
	struct model m;
	unsigned int i;

	argp_parse(&argp, argc, argv, 0, NULL, &a);
	gsl_set_error_handler_off();
	model_read(&m, a.file);
	for (i = 0; i < a.nsettings; i++)
		model_set(&m, a.settings[i]);
	model_check(&m);
	if (a.serve)
		serve(&m, a.serve);
	else if (a.sweep.key)
		sweep(&a, &m);
	else
		one(&a, &m);
	if (fflush(stdout) || ferror(stdout))
		refuse(NULL, 0, "the output can't be written");
	return 0;
}
