// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -fsanitize=address,undefined -fno-sanitize-recover=all
// SOURCES: tools/am/wire.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/transport.c tools/am/mem.c tools/am/socket.c
/*
 * Active Messages (am-tests.h) in memory, where time is simulated, and over UDP.
 */
#include "am-tests.h"

FIXTURE_VARIANT_ADD(am, mem)
{
	.transport = "mem",
};

FIXTURE_VARIANT_ADD(am, udp)
{
	.transport = "udp:127.0.0.1",
};

static void place(int i, struct am_options *o)
{
	(void)i;
	o->address = net ? "mem" : "udp:127.0.0.1";
}

TEST_HARNESS_MAIN
