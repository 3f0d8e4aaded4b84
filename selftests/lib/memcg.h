/* SPDX-License-Identifier: GPL-2.0-only */
/* A memory cgroup, for programs that are alone on their machine. Include it after sock-lib.h. */
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

/* Move this process into the group, or out of it. */
static inline void join_group(bool yes)
{
	write_text(yes ? GROUP "/cgroup.procs" : ROOT "/cgroup.procs", "0");
}

/*
 * Make the group, in the place of one that a test left which ended early. Return false if the kernel
 * has no memory cgroups.
 */
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
	MUST(UNTIL(!rmdir(GROUP) || errno == ENOENT) ? 0 : -1);
	MUST(mkdir(GROUP, 0700));
	return true;
}

/* Return the number after @name in a file of lines "NAME NUMBER". */
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

/*
 * Remove the group. Return true if that was possible, as no process is in it any more. Memory
 * may still be charged to it.
 */
static inline bool remove_group(void)
{
	join_group(false);
	return UNTIL(!rmdir(GROUP));
}

#endif
