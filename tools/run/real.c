// SPDX-License-Identifier: BSD-3-Clause
/*
 * The C library's own functions, behind the calls that this library replaces. All are looked up
 * when the library is loaded, because dlsym() is not for signal handlers, and children of fork()
 * would repeat it. A call that comes earlier, from another library's start, looks its own up.
 */
#include "run.h"

#define NAME(name) #name,

static const char *const names[] = { RUN_CALLS(NAME) };
static void *functions[RUN_CALLS_NUMBER];

/* Musl has no fcntl64(), and none with _chk: nobody calls these there. */
void *run_real(enum run_call call)
{
	if (!functions[call])
		functions[call] = dlsym(RTLD_NEXT, names[call]);
	return functions[call];
}

static void __attribute__((constructor)) look_up(void)
{
	int call, err = errno;

	for (call = 0; call < RUN_CALLS_NUMBER; call++)
		run_real(call);
	errno = err;
}
