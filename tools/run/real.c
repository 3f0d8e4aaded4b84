// SPDX-License-Identifier: BSD-3-Clause
/*
 * The C library's own functions, behind the calls that this library replaces.
 */
#include "run.h"

struct run_real run_real;

static void __attribute__((constructor)) look_up(void)
{
	int err = errno;

#define X(name) (void)REAL(name);
	RUN_CALLS(X)
#undef X
	errno = err;
}
