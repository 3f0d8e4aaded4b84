/* SPDX-License-Identifier: GPL-2.0-only */
/* A memory cgroup, for programs that are alone on their machine; behind sock-lib.h. */
#ifndef MEMCG_H
#define MEMCG_H

#include <sys/mount.h>

#define ROOT	"/sys/fs/cgroup"
#define GROUP	ROOT "/esp"

static inline void write_text(const char *path, const char *text)
{
	int fd = MUST(open(path, O_WRONLY | O_CLOEXEC));

	MUST(write(fd, text, strlen(text)));
	close(fd);
}

/* This process is of the group, or of none. */
static inline void join_group(bool yes)
{
	write_text(yes ? GROUP "/cgroup.procs" : ROOT "/cgroup.procs", "0");
}

/* Returns false if the kernel has no such groups. */
static inline bool make_group(void)
{
	char line[256] = "";
	FILE *f;

	if (access(ROOT "/cgroup.controllers", F_OK))
		MUST(mount("none", ROOT, "cgroup2", 0, NULL));
	f = fopen(ROOT "/cgroup.controllers", "re");
	if (!f || !fgets(line, sizeof(line), f))
		MUST(-1);
	fclose(f);
	if (!strstr(line, "memory"))
		return false;
	write_text(ROOT "/cgroup.subtree_control", "+memory");
	MUST(mkdir(GROUP, 0700));
	return true;
}

/* The number behind a name, of what has lines of such. */
static inline long named(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char key[64];
	long n = -1, v;

	while (f && fscanf(f, "%63s %ld", key, &v) == 2)
		if (!strcmp(key, name))
			n = v;
	if (f)
		fclose(f);
	return n;
}

/* True when no process is in it any more; memory may still be charged to it. */
static inline bool remove_group(void)
{
	join_group(false);
	return UNTIL(!rmdir(GROUP));
}

#endif
