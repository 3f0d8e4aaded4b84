// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
// SOURCES: tools/am/wire.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/log.c tools/am/transport.c tools/am/mem.c tools/am/socket.c
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

/* The device leaves while the bundle waits, with nothing else to wait for. */
TEST_F(am, device_leaves)
{
	int error, why;
	pid_t pid;

	ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
	AM_SetTimeout(bundle, -1);
	pid = MUST(fork());
	if (!pid) {
		usleep(1000 * SHORT);
		enter(B);
		run("ip link del vb");
		_exit(0);
	}
	error = AM_WaitSema(bundle);
	why = errno;
	EXPECT_EQ(AM_ERR_SYSTEM, error);
	EXPECT_EQ(ENETDOWN, why);
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(1, stats(SERVER).receive_errors);
	/* Told once. */
	AM_SetTimeout(bundle, 5);
	EXPECT_EQ(AM_ERR_TIMEOUT, AM_WaitSema(bundle));
}

/* It left before the last reply: nobody receives the socket's error. */
TEST_F(am, device_left)
{
	int error, why;

	ASSERT_EQ(AM_OK, open_both(self->o));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	EXPECT_TRUE(REACHED(later));
	AM_FreeEndpoint(ep[CALLER]);
	enter(B);
	run("ip link del vb");
	EXPECT_EQ(AM_OK, AM_Reply0(later, ANSWER));
	EXPECT_EQ(1, stats(SERVER).send_errors);
	error = AM_WaitSema(bundle);
	why = errno;
	EXPECT_EQ(AM_ERR_SYSTEM, error);
	EXPECT_EQ(ENETDOWN, why);
	EXPECT_EQ(0, stats(SERVER).receive_errors);
}

TEST_HARNESS_MAIN
