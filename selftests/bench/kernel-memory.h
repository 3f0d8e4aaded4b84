/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory the kernel uses: memory_now().
 */
#ifndef SELFTESTS_KERNEL_MEMORY_H
#define SELFTESTS_KERNEL_MEMORY_H

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

/* Add up the numbers that lines of a file have, in a format of scanf(). */
static double sum_of(const char *path, const char *format)
{
	char line[256];
	double sum = 0;
	FILE *f = fopen(path, "r");
	int lines = 0;
	long n;

	if (!f)
		die("%s", path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, format, &n) == 1) {
			sum += n;
			lines++;
		}
	fclose(f);
	if (!lines) {
		errno = EPROTO;
		die("%s: %s", path, format);
	}
	return sum;
}

static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("%s", path);
	close(fd);
}

/*
 * Return the bytes that objects of the slab take, less the bytes of the slabs themselves.
 * The unused rest of a slab is divided among its objects.
 */
static double slab_objects(void)
{
	double page = sysconf(_SC_PAGESIZE), bytes = 0;
	static int *shrink, caches;
	long used, per_slab, pages, slabs;
	char line[256];
	glob_t paths;
	FILE *f;
	int i, lines = 0;

	if (!caches) {
		/* Kept open, as each open() takes memory too. */
		if (glob("/sys/kernel/slab/*/shrink", 0, NULL, &paths))
			die("/sys/kernel/slab");
		shrink = calloc(paths.gl_pathc, sizeof(*shrink));
		for (; caches < (int)paths.gl_pathc; caches++) {
			shrink[caches] = open(paths.gl_pathv[caches], O_WRONLY);
			if (shrink[caches] < 0)
				die("%s", paths.gl_pathv[caches]);
		}
		globfree(&paths);
	}
	/* Free objects that processors keep would count as used. */
	for (i = 0; i < caches; i++)
		if (pwrite(shrink[i], "1", 1, 0) != 1)
			die("shrink");
	f = fopen("/proc/slabinfo", "r");
	if (!f)
		die("/proc/slabinfo");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %ld %*d %*d %ld %ld : tunables %*d %*d %*d : slabdata %*d %ld",
			   &used, &per_slab, &pages, &slabs) == 4) {
			bytes += (double)used / per_slab * pages * page - (double)slabs * pages * page;
			lines++;
		}
	fclose(f);
	if (!lines) {
		errno = EPROTO;
		die("/proc/slabinfo");
	}
	return bytes;
}

/*
 * Return the bytes of memory that the kernel uses: all pages that are neither free nor a
 * process's or a file's. Pages that processors keep count as free. Of slabs only the objects
 * in use count, because the free room in slabs differs from run to run.
 */
static double memory_now(void)
{
	double objects = slab_objects(), used;

	put_file("/proc/sys/vm/stat_refresh", "1");
	used = sum_of("/proc/meminfo", "MemTotal: %ld") - sum_of("/proc/meminfo", "MemFree: %ld") -
	       sum_of("/proc/meminfo", "Cached: %ld") - sum_of("/proc/meminfo", "Buffers: %ld") -
	       sum_of("/proc/meminfo", "AnonPages: %ld");
	return objects + used * 1024 -
	       sum_of("/proc/zoneinfo", " count: %ld") * sysconf(_SC_PAGESIZE);
}

#endif
