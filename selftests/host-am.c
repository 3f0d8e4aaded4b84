// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=msync -fsanitize=address,undefined -fno-sanitize-recover=all
// SOURCES: tools/am/wire.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/log.c tools/am/transport.c tools/am/mem.c tools/am/socket.c
/*
 * Active Messages (am-tests.h) in memory, where time is simulated, and over UDP.
 */
#include <sys/socket.h>
#include "am-tests.h"
#include "am-log.h"
#include "am-log-files.h"
#include "am-log-restart.h"

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

/* Room for what all credits may bring, as far as the system lets. */
TEST(udp_receive_buffer)
{
	struct am_options o = { .credits = 16 };
	socklen_t len = sizeof(int);
	int have, most = 0;
	FILE *f;

	f = fopen("/proc/sys/net/core/rmem_max", "r");
	ASSERT_NE(NULL, f);
	ASSERT_EQ(1, fscanf(f, "%d", &most));
	fclose(f);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	ASSERT_EQ(AM_OK, open_end(SERVER, o));
	ASSERT_EQ(0, getsockopt(ep[SERVER]->transport.fd, SOL_SOCKET, SO_RCVBUF, &have, &len));
	TH_LOG("%d bytes, net.core.rmem_max is %d", have, most);
	if (most > 16 * AM_MAX_LONG)
		most = 16 * AM_MAX_LONG;
	EXPECT_LE(2 * most, have);
	EXPECT_EQ(AM_OK, AM_FreeBundle(bundle));
}

TEST_HARNESS_MAIN
