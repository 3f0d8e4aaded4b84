// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
// SOURCES: tools/am/wire.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/log.c tools/am/transport.c tools/am/mem.c tools/am/socket.c tools/am/stream.c
/*
 * Active Messages (am-tests.h) over EDP and over records of ESP, between two hosts.
 */
#include "am-tests.h"
#include "sock-lib.h"

FIXTURE_VARIANT_ADD(am, edp)
{
	.transport = "edp",
};

FIXTURE_VARIANT_ADD(am, esp)
{
	.transport = "esp",
};

static void place(int i, struct am_options *o)
{
	static char address[2][32];

	if (!hosts[0].ifindex)
		make_hosts();
	enter(&hosts[i]);
	snprintf(address[i], sizeof(address[i]), "%s:%%%s", transport, hosts[i].dev);
	o->address = address[i];
}

static void stand(int i)
{
	if (!strcmp(transport, "esp"))
		enter(&hosts[i]);
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

/* An end with a log, at a port of its own. */
static int open_logged(int i, struct am_options o, const char *dir)
{
	char address[32], path[64];

	enter(&hosts[i]);
	snprintf(address, sizeof(address), "%s:%%%s:4000", transport, hosts[i].dev);
	snprintf(path, sizeof(path), "%s/%d", dir, i);
	o.address = address;
	o.log = path;
	o.faults.filter = filter;
	o.faults.arg = &ep[i];
	if (AM_AllocateEndpointWith(bundle, &o, &ep[i], &name[i]))
		return -1;
	set_handlers(i);
	return 0;
}

/* Both machines start again, and their devices have other indices: the logs are theirs still. */
TEST_F(am, log_other_index)
{
	char dir[] = "/tmp/sock-am.XXXXXX", path[64];
	struct am_record r;
	am_handle_t h;
	int i;

	ASSERT_NE(NULL, mkdtemp(dir));
	make_hosts();
	self->o.retries = 1000;
	self->o.pool = 4;
	self->o.peers = 1;
	self->o.log_data = AM_MAX_MEDIUM;
	ASSERT_EQ(0, open_logged(CALLER, self->o, dir));
	ASSERT_EQ(0, open_logged(SERVER, self->o, dir));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	ASSERT_EQ(AM_OK, AM_Connect(ep[CALLER], 0, 1));
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, 7));
	EXPECT_TRUE(REACHED(seen[WIRE_REPLY]));
	AM_FreeEndpoint(ep[CALLER]);
	AM_FreeEndpoint(ep[SERVER]);
	enter(B);
	run("ip link del vb");
	A->ifindex += 10;
	B->ifindex += 10;
	make_dev("veth", A->dev);
	link_up(B, true);
	link_up(A, true);
	wait_running();
	fate[WIRE_REPLY] = AM_PASS;
	ASSERT_EQ(0, open_logged(CALLER, self->o, dir));
	ASSERT_EQ(0, open_logged(SERVER, self->o, dir));
	ASSERT_EQ(1, AM_ListSent(ep[CALLER], &h, 1));
	ASSERT_EQ(AM_OK, AM_GetRecord(ep[CALLER], h, &r));
	EXPECT_EQ(1, r.undecided);
	ASSERT_EQ(AM_OK, AM_Decide(ep[CALLER], h, AM_SEND_AGAIN));
	EXPECT_STATE(CALLER, h, DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(1, answered);
	EXPECT_EQ(7, last[0]);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		EXPECT_EQ(0, unlink(path));
	}
	EXPECT_EQ(0, rmdir(dir));
}

TEST_HARNESS_MAIN
