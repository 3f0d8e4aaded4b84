// SPDX-License-Identifier: BSD-3-Clause
/*
 * Medians and their confidence; and the clock.
 */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include "cmd.h"

double clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Return the cost of reading the clock: the cheapest of some series. */
double clock_cost(void)
{
	double least = INFINITY, start;
	int i, j;

	for (i = 0; i < 20; i++) {
		start = clock_ns();
		for (j = 0; j < 10; j++)
			clock_ns();
		least = fmin(least, (clock_ns() - start) / (j + 1));
	}
	return least;
}

double middle(double *samples, size_t n)
{
	gsl_sort(samples, 1, n);
	return gsl_stats_median_from_sorted_data(samples, 1, n);
}

/**
 * median_of() - Estimate the median of the distribution that @samples are drawn from
 * @samples:	independent samples, of any distribution
 * @n:		their number, MAX_ROUNDS at most
 *
 * The k-th smallest and the k-th largest sample enclose the median, unless fewer than k samples are
 * on one side of it. The number on one side is binomial. k is the largest number for which that
 * happens in 5 % of all cases or less.
 *
 * Samples that are NAN are left out.
 *
 * Return: the median; NAN if there are less than MIN_ROUNDS samples.
 */
struct interval median_of(const double *samples, size_t n)
{
	struct interval none = { NAN, NAN, NAN };
	double sorted[MAX_ROUNDS];
	size_t i, k, m = 0;

	for (i = 0; i < n && i < MAX_ROUNDS; i++)
		if (!isnan(samples[i]))
			sorted[m++] = samples[i];
	n = m;
	if (n < MIN_ROUNDS)
		return none;
	gsl_sort(sorted, 1, n);
	for (k = 1; 2 * gsl_cdf_binomial_P(k, 0.5, n) <= 0.05; k++)
		;
	return (struct interval) {
		.median = gsl_stats_median_from_sorted_data(sorted, 1, n),
		.low = sorted[k - 1], .high = sorted[n - k],
	};
}
