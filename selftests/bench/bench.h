/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers of the programs of "make bench". */
#ifndef SELFTESTS_BENCH_H
#define SELFTESTS_BENCH_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Print what failed, with the reason from errno, and exit. */
static inline _Noreturn void die(const char *what, ...)
{
	int err = errno;
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(err));
	exit(1);
}

/* Return the time in seconds. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

#endif
