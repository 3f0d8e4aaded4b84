// SPDX-License-Identifier: BSD-3-Clause
/*
 * execve() of a server's own file: it replaces itself by a newer version, which gets its listener.
 * nginx gives the new program another environment, which lacks the library. So the variables of
 * "esp run" are added again.
 */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "run.h"

#define ENV_MAX 1000	/* variables for which the stack surely has room */

static const char *const names[] = {
	"LD_PRELOAD", "ESP_RUN_LOG", "ESP_RUN_WAIT", "ESP_RUN_ONLY",
};

static const char *kept[ARRAY_SIZE(names)];	/* "NAME=VALUE", or NULL */
static const char *own;		/* the program's file */

/* Keep copies: programs write over their environment. */
static void __attribute__((constructor)) keep(void)
{
	int err = errno;
	struct memory *memory = run_map_memory();
	const char *val;
	char *at, *end;
	ssize_t n;
	size_t i;

	if (!memory)
		return;
	at = memory->kept;
	end = at + sizeof(memory->kept);
	n = readlink("/proc/self/exe", at, PATH_MAX - 1);
	if (n > 0) {
		own = at;
		at += n + 1;
	}
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		val = secure_getenv(names[i]);
		n = val ? snprintf(at, end - at, "%s=%s", names[i], val) : end - at;
		if (n >= end - at)
			continue;
		kept[i] = at;
		at += n + 1;
	}
	errno = err;
}

static bool is_own(const char *path)
{
	struct stat a, b;

	return own && !stat(path, &a) && !stat(own, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static bool has(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++) {
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return true;
	}
	return false;
}

/* The caller may be a child of vfork(): nothing is written but its own stack. */
PUBLIC int execve(const char *path, char *const argv[], char *const envp[])
{
	size_t i, n = 0;
	char **env;

	while (envp && envp[n])
		n++;
	if (!envp || n > ENV_MAX || !atomic_load(&run_listeners) || has(envp, names[0]) ||
	    !is_own(path))
		return REAL(execve)(path, argv, envp);
	env = alloca((n + ARRAY_SIZE(names) + 1) * sizeof(*env));
	memcpy(env, envp, n * sizeof(*env));
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (kept[i] && !has(envp, names[i]))
			env[n++] = (char *)kept[i];
	}
	env[n] = NULL;
	return REAL(execve)(path, argv, env);
}
