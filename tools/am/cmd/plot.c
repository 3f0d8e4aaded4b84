// SPDX-License-Identifier: BSD-3-Clause
/*
 * Pictures of am logp's results, by gnuplot, in the form of figures 3.9, 3.10 and 3.11 of 004.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "cmd.h"

#define US	1000.0		/* ns */

static void begin(FILE *f, const char *dir, const char *name, unsigned int height)
{
	fprintf(f, "set terminal pngcairo size 900,%u\n", height);
	fprintf(f, "set output '%s/%s.png'\n", dir, name);
}

static void curve_data(FILE *f, const char *block, const struct interval *cost, unsigned int n)
{
	unsigned int p;

	fprintf(f, "%s << EOD\n", block);
	for (p = 0; p < n; p++)
		if (!isnan(cost[p].median))
			fprintf(f, "%u %g %g %g\n", 1u << p, cost[p].median / US,
				cost[p].low / US, cost[p].high / US);
	fprintf(f, "EOD\n");
}

/* Draw a layer's message cost, a curve for each delay. */
static void signature(FILE *f, const struct result *r, unsigned int i)
{
	char block[32];
	unsigned int d;

	for (d = 0; d < DELAYS; d++) {
		snprintf(block, sizeof(block), "$s%u_%u", i, d);
		curve_data(f, block, r->cost[d], r->points);
	}
	fprintf(f, "set title '%s, %s, N = %u' noenhanced\nplot ", r->transport, r->protocol,
		r->credits);
	for (d = 0; d < DELAYS; d++)
		fprintf(f, "%s$s%u_%u using 1:2:3:4 with yerrorlines title 'delay %.4g us'",
			d ? ", " : "", i, d, r->delay[d] / US);
	fprintf(f, "\n");
}

/* Draw a line at @ns with its name, if that was measured; names take turns on both sides. */
static void level(FILE *f, unsigned int number, const char *name, double ns)
{
	if (isnan(ns))
		return;
	fprintf(f, "set label %u '%s = %.4g us' at graph %g, first %g offset 0,0.6 noenhanced\n",
		number, name, ns / US, number % 2 ? 0.3 : 0.6, ns / US);
	fprintf(f, "set arrow %u from graph 0, first %g to graph 1, first %g nohead dashtype %u\n",
		number, ns / US, ns / US, number + 1);
}

/* Figure 3.9: the parameters that a signature shows. */
static void explain(FILE *f, const char *dir, const struct result *r)
{
	begin(f, dir, "logp-signature", 500);
	level(f, 1, "o_s", r->o_s.median);
	level(f, 2, "g", r->gap.median);
	level(f, 3, "sender alone", r->own.median);
	signature(f, r, 0);
	fprintf(f, "unset label\nunset arrow\n");
}

/* Figure 3.10: the signatures measured. */
static void all_of_them(FILE *f, const char *dir, const struct result *r, unsigned int n)
{
	unsigned int i;

	begin(f, dir, "logp-signatures", 330 * ((n + 1) / 2));
	fprintf(f, "set multiplot layout %u,%u\n", (n + 1) / 2, n > 1 ? 2 : 1);
	for (i = 0; i < n; i++)
		signature(f, &r[i], i);
	fprintf(f, "unset multiplot\n");
}

/* Is there anything to draw of o_s, o_r or g? */
static bool measured(const struct result *r, unsigned int which)
{
	unsigned int j;

	for (j = 0; j < r->nsizes; j++) {
		const struct size_result *s = &r->size[j];

		if ((which == 0 ? s->o_s : which == 1 ? s->o_r : s->gap).median > 0)
			return true;
	}
	return false;
}

/* Figure 3.11: the cost to send as a function of size; and P-LogP's other parameters. */
static void by_size(FILE *f, const char *dir, const struct result *r, unsigned int n)
{
	static const char *const what[] = { "o_s", "o_r", "g" };
	unsigned int i, j, k, curves;

	begin(f, dir, "logp-sizes", 1000);
	for (i = 0; i < n; i++) {
		fprintf(f, "$z%u << EOD\n", i);
		for (j = 0; j < r[i].nsizes; j++)
			fprintf(f, "%zu %g %g %g\n", r[i].size[j].bytes,
				r[i].size[j].o_s.median / US, r[i].size[j].o_r.median / US,
				r[i].size[j].gap.median / US);
		fprintf(f, "EOD\n");
	}
	fprintf(f, "set multiplot layout 3,1\nset xlabel 'bytes'\nset logscale y\n");
	for (k = 0; k < ARRAY_SIZE(what); k++) {
		fprintf(f, "set title '%s' noenhanced\nset ylabel 'us a message'\n", what[k]);
		for (i = curves = 0; i < n; i++) {
			if (!measured(&r[i], k))
				continue;
			fprintf(f, "%s$z%u using ($1 < 16 ? 16 : $1):%u ",
				curves++ ? ", " : "plot ", i, k + 2);
			fprintf(f, "with linespoints title '%s %s'", r[i].transport,
				r[i].protocol);
		}
		fprintf(f, "\n");
	}
	fprintf(f, "unset multiplot\n");
}

void plot(const char *dir, const struct run *run, const struct result *r, unsigned int n)
{
	const struct result *first = r;
	FILE *f;
	int status;

	if (strpbrk(dir, "'\n"))
		error(EXIT_USAGE, 0, "%s: gnuplot can't write there", dir);
	f = popen("exec gnuplot", "w");
	if (!f)
		error(EXIT_FAILED, errno, "gnuplot");
	fprintf(f, "set grid\nset key left top\nset logscale x 2\n"
		"set xlabel 'M, messages of a burst'\n"
		"set ylabel 'us a message'\nset yrange [0:*]\n");
	/* Explain a layer rather than the datagrams that carry it. */
	if (n > 1 && !strcmp(r->protocol, "raw"))
		first++;
	explain(f, dir, first);
	all_of_them(f, dir, r, n);
	if (run->nsizes) {
		fprintf(f, "set yrange [*:*]\n");
		by_size(f, dir, r, n);
	}
	status = pclose(f);
	if (status)
		error(EXIT_FAILED, 0, "gnuplot failed, or is not there");
}
