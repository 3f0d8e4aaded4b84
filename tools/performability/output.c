// SPDX-License-Identifier: BSD-3-Clause
/*
 * Text, JSON, pictures.
 */
#include <errno.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>
#include "performability.h"

#define BATCHES	20

void sample_add(struct sample *s, enum outcome o, double us)
{
	s->ended[o]++;
	if (o != SUCCESS)
		return;
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 4096;
		s->us = realloc(s->us, s->room * sizeof(*s->us));
		if (!s->us)
			refuse(NULL, 0, "no memory");
	}
	s->us[s->n++] = us;
}

static unsigned int total(const struct sample *s)
{
	unsigned int n = 0, o;

	for (o = 0; o < OUTCOMES; o++)
		n += s->ended[o];
	return n;
}

/* Compute the error by batch means, because successive times depend on each other. Sorts @s. */
void estimate(struct sample *s, struct estimate *e)
{
	double batch[BATCHES];
	unsigned int i, size = s->n / BATCHES;

	memset(e, 0, sizeof(*e));
	e->success = (double)s->n / total(s);
	e->throughput = s->n / s->time * 1e6;
	if (!s->n)
		return;
	e->mean = gsl_stats_mean(s->us, 1, s->n);
	if (size) {
		for (i = 0; i < BATCHES; i++)
			batch[i] = gsl_stats_mean(s->us + i * size, 1, size);
		/* Student's t, 19 degrees of freedom */
		e->error = 2.093 * gsl_stats_sd(batch, 1, BATCHES) / sqrt(BATCHES);
	}
	gsl_sort(s->us, 1, s->n);
	e->median = gsl_stats_quantile_from_sorted_data(s->us, 1, s->n, 0.5);
	e->p99 = gsl_stats_quantile_from_sorted_data(s->us, 1, s->n, 0.99);
}

void print_text(const struct model *m, const struct prediction *p)
{
	unsigned int i;

	printf("%s, window %g\n\n", protocol_name(m->protocol), m->window);
	printf("response time      %14.6g us    of requests that succeed\n", p->response);
	printf("  alone            %14.6g us    standard deviation %.6g\n", p->chain.success,
	       p->chain.deviation);
	printf("throughput         %14.6g a second\n", p->throughput);
	printf("frames             %14.6g a request\n", p->chain.frames);
	if (m->protocol != STREAM)
		printf("timeout            %14.6g us    for an acknowledgment, the first time\n",
		       p->timeout);
	printf("availability       %14.9f\n\n", p->availability);
	printf("ends\n");
	for (i = 0; i < OUTCOMES; i++)
		if (i == SUCCESS || p->chain.p[i] > 0)
			printf("  %-36s %12.6g\n", outcome_names[i], p->chain.p[i]);
	printf("\nstation                           demand, us      residence  utilization\n");
	for (i = 0; i < STATIONS; i++)
		if (p->network.demand[i] + p->network.ghost[i] > 0)
			printf("  %-28s %14.6g %14.6g %12.6g\n", station_names[i],
			       p->network.demand[i], p->queues.residence[i],
			       p->queues.utilization[i]);
	printf("  %-28s %14.6g\n", "timers, latency", p->network.delay);
	printf("\nchain of %u states, %u iterations; exact mean value analysis %.9g us",
	       p->chain.states, p->iterations, p->mva.response);
	if (p->balanced)
		printf(", balance equations %.9g us", p->balance.response);
	printf("\n");
}

static void json_sample(const char *name, struct sample *s)
{
	struct estimate e;
	unsigned int o;

	estimate(s, &e);
	printf(",\n  \"%s\": { \"requests\": %u, \"response_us\": %.9g, \"error_us\": %.9g, ",
	       name, total(s), e.mean, e.error);
	printf("\"median_us\": %.9g, \"p99_us\": %.9g, \"throughput\": %.9g, \"ends\": {",
	       e.median, e.p99, e.throughput);
	for (o = 0; o < OUTCOMES; o++)
		printf("%s \"%s\": %u", o ? "," : "", outcome_names[o], s->ended[o]);
	printf(" } }");
}

void print_json(const struct model *m, const struct prediction *p, const struct sensitivity *s,
		unsigned int n, struct sample *des, struct sample *real)
{
	unsigned int i;

	printf("{\n  \"protocol\": \"%s\",\n  \"window\": %g,\n", protocol_name(m->protocol),
	       m->window);
	printf("  \"response_us\": %.9g,\n  \"deviation_us\": %.9g,\n", p->response,
	       p->chain.deviation);
	printf("  \"throughput\": %.9g,\n  \"frames\": %.9g,\n", p->throughput,
	       p->chain.frames);
	printf("  \"timeout_us\": %.9g,\n  \"availability\": %.12g,\n", p->timeout,
	       p->availability);
	printf("  \"states\": %u,\n  \"chain_us\": %.12g,\n  \"mva_us\": %.12g,\n",
	       p->chain.states, p->chain.mean, p->mva.response);
	if (p->balanced)
		printf("  \"balance_us\": %.12g,\n", p->balance.response);
	printf("  \"ends\": {");
	for (i = 0; i < OUTCOMES; i++)
		printf("%s \"%s\": %.12g", i ? "," : "", outcome_names[i], p->chain.p[i]);
	printf(" },\n  \"stations\": {");
	for (i = 0; i < STATIONS; i++) {
		printf("%s\n    \"%s\": { \"demand_us\": %.9g, ", i ? "," : "", station_names[i],
		       p->network.demand[i]);
		printf("\"residence_us\": %.9g, \"utilization\": %.9g }",
		       p->queues.residence[i], p->queues.utilization[i]);
	}
	printf("\n  }");
	if (n) {
		printf(",\n  \"sensitivity\": {");
		for (i = 0; i < n; i++) {
			printf("%s\n    \"%s\": { \"component\": \"%s\", \"value\": %.9g, ",
			       i ? "," : "", s[i].key->name, s[i].key->component, s[i].value);
			printf("\"derivative\": %.9g, \"elasticity\": %.9g }", s[i].derivative,
			       s[i].elasticity);
		}
		printf("\n  }");
	}
	if (des)
		json_sample("simulation", des);
	if (real)
		json_sample("measured", real);
	printf("\n}\n");
}

void print_sensitivity(const struct sensitivity *s, unsigned int n)
{
	unsigned int i;

	printf("\n%-12s %-22s %12s %16s %12s\n", "component", "word", "value", "derivative, us",
	       "elasticity");
	for (i = 0; i < n; i++)
		printf("%-12s %-22s %12.6g %16.6g %12.4g\n", s[i].key->component, s[i].key->name,
		       s[i].value, s[i].derivative, s[i].elasticity);
}

void print_sample(const char *what, struct sample *s, const struct prediction *p)
{
	struct estimate e;
	unsigned int o;

	estimate(s, &e);
	printf("\n%s: %u requests, %.6g us +- %.2g, median %.6g, 99 %% %.6g; %.6g a second\n",
	       what, total(s), e.mean, e.error, e.median, e.p99, e.throughput);
	printf("  predicted %.6g us: %+.2f %%\n", p->response,
	       e.mean > 0 ? 100 * (p->response / e.mean - 1) : 0);
	for (o = 0; o < OUTCOMES; o++)
		if (s->ended[o] || p->chain.p[o] > 0)
			printf("  %-36s %10.6f  predicted %.6f\n", outcome_names[o],
			       (double)s->ended[o] / total(s), p->chain.p[o]);
}

/* Draw @data: lines "x response ...", as --sweep prints them. */
void plot(const char *png, const char *data, const struct model *m, const char *key, bool log)
{
	/* gnuplot would draw on the standard output if it could not open the file */
	FILE *f = popen("gnuplot >/dev/null", "w");

	if (!f)
		refuse(NULL, 0, "gnuplot: %s", strerror(errno));
	fprintf(f, "set terminal pngcairo size 800,500\nset output \"%s\"\n", png);
	fprintf(f, "set grid\nunset key\nset ylabel \"response time, us\"\n");
	fprintf(f, "set xlabel \"%s\" noenhanced\n", key);
	fprintf(f, "set title \"%s, window %g\"\n%s", protocol_name(m->protocol), m->window,
		log ? "set logscale x\n" : "");
	fprintf(f, "$data << END\n%sEND\nplot $data using 1:2 with linespoints\n", data);
	if (pclose(f))
		refuse(NULL, 0, "gnuplot has failed");
}
