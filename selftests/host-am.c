// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=msync,--wrap=fsync,--wrap=flock -fsanitize=address,undefined -fno-sanitize-recover=all
// SOURCES: tools/am/wire.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/log.c tools/am/transport.c tools/am/mem.c tools/am/socket.c tools/am/stream.c
/*
 * Active Messages (am-tests.h) in memory, where time is simulated, and over UDP.
 */
#include <sys/socket.h>
#include "am-tests.h"
#include "am-log.h"
#include "am-log-files.h"
#include "am-log-disk.h"
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

static void stand(int i)
{
	(void)i;
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

/* So many in a row that the target never sees: the next one must not seem older than the last. */
TEST(nway_gap)
{
	struct am_options o = { .retries = 1 };
	unsigned int i;

	net = AM_NewNet(64);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, open_both(o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	fate[WIRE_REQUEST] = AM_DROP;
	for (i = 0; i < 32768; i++) {
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
		EXPECT_STATE(CALLER, sent(), ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	}
	EXPECT_EQ(1, ran);
	fate[WIRE_REQUEST] = AM_PASS;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_STATE(CALLER, sent(), DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(2, ran);
	EXPECT_EQ(AM_OK, AM_FreeBundle(bundle));
	AM_FreeNet(net);
}

TEST_HARNESS_MAIN
