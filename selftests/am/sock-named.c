// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=fsync,--wrap=renameat2
// SOURCES: tools/am/wire.c tools/am/crc.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/log.c tools/am/name.c tools/am/transport.c tools/am/mem.c tools/am/socket.c tools/am/stream.c tools/am/registry.c tools/am/named.c
/*
 * The name server of Active Messages (am-named.c) over EDP, between two hosts. One of them has two
 * devices on that LAN.
 */
#include "am-named.c"
#include "am-named-files.c"
#include "sock-lib.h"

FIXTURE_VARIANT_ADD(named, edp)
{
	.transport = "edp",
};

/* Make a third host on A: a device on the same link, with another address. */
static void make_other(void)
{
	make_hosts();
	enter(A);
	run("modprobe -q macvlan; ip link add vc link va address 02:00:00:00:00:0c type macvlan");
	run("ip link set vc up && echo 1 >/proc/sys/net/esp/dev/vc/enable");
}

static void place(int i, struct am_options *o)
{
	if (!hosts[0].ifindex)
		make_other();
	enter(i == SERVER ? B : A);
	o->address = i == SERVER ? "edp:%vb:4000" : i == OTHER ? "edp:%vc" : "edp:%va";
}

TEST_HARNESS_MAIN
