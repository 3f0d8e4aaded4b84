// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
// SOURCES: tools/am/wire.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/transport.c tools/am/mem.c tools/am/socket.c
/*
 * Active Messages (am-tests.h) over EDP, between two hosts.
 */
#include "am-tests.h"
#include "sock-lib.h"

FIXTURE_VARIANT_ADD(am, edp)
{
	.transport = "edp",
};

static void place(int i, struct am_options *o)
{
	static char address[2][32];

	if (!hosts[0].ifindex)
		make_hosts();
	enter(&hosts[i]);
	snprintf(address[i], sizeof(address[i]), "edp:%%%s", hosts[i].dev);
	o->address = address[i];
}

TEST_HARNESS_MAIN
