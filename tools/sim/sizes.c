// SPDX-License-Identifier: GPL-2.0-only
/*
 * Published distributions of flow sizes, and percentiles of measured values.
 */
#include <stdlib.h>
#include "sim.h"

/* Sizes are distributed evenly between two points. */
static const struct workload workloads[] = {
	{
		.name = "websearch",
		.source = "Alizadeh et al., Data Center TCP, SIGCOMM 2010",
		.unit = 1460,
		.n = 12,
		.at = {
			{ 1, 0 }, { 6, 0.15 }, { 13, 0.2 }, { 19, 0.3 }, { 33, 0.4 }, { 53, 0.53 },
			{ 133, 0.6 }, { 667, 0.7 }, { 1333, 0.8 }, { 3333, 0.9 }, { 6667, 0.97 },
			{ 20000, 1 },
		},
	}, {
		.name = "datamining",
		.source = "Greenberg et al., VL2, SIGCOMM 2009; pFabric, SIGCOMM 2013",
		.unit = 1460,
		.n = 9,
		.at = {
			{ 1, 0 }, { 1, 0.5 }, { 2, 0.6 }, { 3, 0.7 }, { 7, 0.8 }, { 267, 0.9 },
			{ 2107, 0.95 }, { 66667, 0.99 }, { 666667, 1 },
		},
	}, {
		.name = "hadoop",
		.source = "Roy et al., Inside the Social Network's Network, SIGCOMM 2015",
		.unit = 1,
		.n = 20,
		.at = {
			{ 50, 0 }, { 100, 0.01 }, { 200, 0.02 }, { 300, 0.05 }, { 350, 0.15 },
			{ 400, 0.2 }, { 500, 0.3 }, { 600, 0.4 }, { 700, 0.5 }, { 1000, 0.6 },
			{ 2000, 0.67 }, { 7000, 0.7 }, { 30000, 0.72 }, { 50000, 0.82 },
			{ 80000, 0.87 }, { 120000, 0.9 }, { 300000, 0.95 }, { 1e6, 0.975 },
			{ 2e6, 0.99 }, { 1e7, 1 },
		},
	},
};

/**
 * workload_find() - find a distribution by its name
 * @name:	name
 *
 * Return: the distribution or NULL
 */
const struct workload *workload_find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(workloads); i++)
		if (!strcmp(workloads[i].name, name))
			return &workloads[i];
	return NULL;
}

/**
 * workload_mean() - compute the mean size of a flow
 * @w:	distribution
 *
 * Return: bytes
 */
double workload_mean(const struct workload *w)
{
	double sum = 0;
	u32 i;

	for (i = 1; i < w->n; i++)
		sum += (w->at[i].below - w->at[i - 1].below) *
		       (w->at[i].size + w->at[i - 1].size) / 2;
	return sum * w->unit;
}

/**
 * workload_draw() - draw the size of a flow
 * @w:	distribution
 *
 * Return: bytes, at least 1
 */
u64 workload_draw(const struct workload *w)
{
	double u = sim_uniform(), size;
	u32 i;

	for (i = 1; i < w->n - 1 && u >= w->at[i].below; i++)
		;
	size = w->at[i - 1].size + (w->at[i].size - w->at[i - 1].size) *
	       (u - w->at[i - 1].below) / (w->at[i].below - w->at[i - 1].below);
	return max_t(double, size * w->unit, 1);
}

/**
 * sample_add() - add a measured value
 * @s:	samples
 * @v:	value
 */
void sample_add(struct samples *s, double v)
{
	if (s->n == s->room) {
		double *more = sim_alloc(max_t(size_t, 2 * s->room, 1024) * sizeof(*more));

		if (s->n)
			memcpy(more, s->v, s->n * sizeof(*more));
		free(s->v);
		s->v = more;
		s->room = max_t(size_t, 2 * s->room, 1024);
	}
	s->v[s->n++] = v;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/**
 * sample_percentile() - find the value below which a share of all values lies
 * @s:	samples; sorted afterwards
 * @p:	share, 0 ... 1
 *
 * Return: the value; 0: there are none
 */
double sample_percentile(struct samples *s, double p)
{
	size_t i = p * s->n;

	if (!s->n)
		return 0;
	qsort(s->v, s->n, sizeof(*s->v), compare);
	return s->v[i < s->n ? i : s->n - 1];
}
