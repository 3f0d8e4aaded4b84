// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
// SOURCES: tools/am/wire.c tools/am/crc.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/log.c tools/am/transport.c tools/am/mem.c tools/am/socket.c tools/am/stream.c
/*
 * Active Messages (am-tests.c) over EDP and over records of ESP, between two hosts.
 */
#include <sys/resource.h>
#include "am-tests.c"
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
	/* The failure is reported once. */
	AM_SetTimeout(bundle, 5);
	EXPECT_EQ(AM_ERR_TIMEOUT, AM_WaitSema(bundle));
}

/* The device left before the last reply: no receive call takes the socket's error. */
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

/*
 * Records: connections
 */

/* Connect sockets of host B to the caller's endpoint; they send nothing. */
static void connect_silent(int *fd, int n)
{
	struct sockaddr_esp a;
	int i;

	memcpy(&a, name[CALLER].address, sizeof(a));
	a.sesp_ifindex = B->ifindex;
	for (i = 0; i < n; i++) {
		fd[i] = esp_socket(B, SOCK_SEQPACKET);
		MUST(do_connect(fd[i], a));
		AM_Poll(bundle);
	}
}

static bool over(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN;
}

FIXTURE(records) {
	struct am_options o;
};

FIXTURE_SETUP(records)
{
	self->o = (struct am_options) {
		.credits = 64, .pool = 256, .retries = 3, .timeout_us = 5000,
	};
	transport = "esp";
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	AM_SetTimeout(bundle, 30);
}

FIXTURE_TEARDOWN(records)
{
	EXPECT_EQ(AM_OK, AM_FreeBundle(bundle));
}

/* A peer that doesn't read holds up its own requests; they end like those that are lost. */
TEST_F(records, unread_peer)
{
	static uint8_t data[AM_MAX_LONG];
	am_handle_t h;
	ep_t unread;
	eb_t other;
	en_t n;
	int i;

	ASSERT_EQ(AM_OK, open_both(self->o));
	place(SERVER, &self->o);
	self->o.faults.filter = filter;
	self->o.faults.arg = &unread;
	ASSERT_EQ(AM_OK, AM_AllocateEndpointWith(bundle, &self->o, &unread, &n));
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 1, n, 0));
	enter(A);
	EXPECT_TRUE(REACHED(AM_Connect(ep[CALLER], 1, 0) != AM_ERR_AGAIN));
	ASSERT_EQ(AM_OK, AM_Connect(ep[CALLER], 1, 0));
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &other));
	ASSERT_EQ(AM_OK, AM_MoveEndpoint(unread, bundle, other));
	for (i = 0; i < 64 && !is(CALLER, sent(), AM_STATE_CREATED, AM_NOT_ACKED,
				  AM_NOT_PROCESSED); i++)
		ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 1, 0, ECHO, data, sizeof(data)));
	EXPECT_LT(0, stats(CALLER).not_taken);
	h = sent();
	EXPECT_NOW(CALLER, h, CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	EXPECT_EQ(1, ran);
	EXPECT_STATE(CALLER, h, ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	EXPECT_EQ(AM_CAUSE_NETWORK, state_of(CALLER, h).cause);
	EXPECT_EQ(AM_OK, AM_FreeBundle(other));
}

/* A stranger that claims the server's name gets none of the server's frames. */
TEST_F(records, name_claimed)
{
	struct sockaddr_esp a;
	int fd, i;
	char c;

	ASSERT_EQ(AM_OK, open_both(self->o));
	connect_silent(&fd, 1);
	memcpy(&a, name[SERVER].address, sizeof(a));
	EXPECT_EQ((int)sizeof(a.sesp_port), send(fd, &a.sesp_port, sizeof(a.sesp_port), 0));
	nap_us(1000 * SHORT);
	for (i = 0; i < 10; i++)
		AM_Poll(bundle);
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
		EXPECT_TRUE(REACHED((int)answered == i));
	}
	EXPECT_EQ(3, ran);
	EXPECT_GT(1, recv(fd, &c, 1, MSG_DONTWAIT));
}

/*
 * An endpoint that is opened again gets its address, though its old connections are in TIME_WAIT.
 */
TEST_F(records, begun_again)
{
	const struct sockaddr_esp *a = (const struct sockaddr_esp *)name[SERVER].address;
	char address[32];
	en_t n;
	int i;

	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	place(SERVER, &self->o);
	snprintf(address, sizeof(address), "%s:%d", self->o.address, ntohs(a->sesp_port));
	self->o.address = address;
	self->o.faults.filter = filter;
	self->o.faults.arg = &ep[SERVER];
	EXPECT_EQ(AM_OK, AM_FreeEndpoint(ep[SERVER]));
	ASSERT_EQ(AM_OK, AM_AllocateEndpointWith(bundle, &self->o, &ep[SERVER], &n));
	EXPECT_EQ(0, memcmp(&n, &name[SERVER], sizeof(n)));
	set_handlers(SERVER);
	/* The first request is of a session that the server doesn't know any more. */
	for (i = 0; i < 3 && answered == 1; i++) {
		ASSERT_EQ(AM_OK, connect_patiently());
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
		EXPECT_TRUE(REACHED(answered == 2 ||
				    state_of(CALLER, sent()).state == AM_STATE_ABANDONED));
	}
	EXPECT_EQ(2, answered);
}

/* Of connections without a name, 64 stay. */
TEST_F(records, silent)
{
	int fd[70], i, n = 0;

	ASSERT_EQ(AM_OK, open_both(self->o));
	connect_silent(fd, ARRAY_SIZE(fd));
	EXPECT_TRUE(REACHED(over(fd[5])));
	for (i = 0; i < (int)ARRAY_SIZE(fd); i++)
		n += over(fd[i]);
	EXPECT_EQ(6, n);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered));
}

/*
 * No descriptor is free: a call that waits sleeps, old connections work, and the next one is
 * accepted later.
 */
TEST_F(records, no_descriptor)
{
	struct rlimit old, few;
	struct sockaddr_esp a;
	int fd, i;

	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	fd = esp_socket(B, SOCK_SEQPACKET);
	memcpy(&a, name[CALLER].address, sizeof(a));
	a.sesp_ifindex = B->ifindex;
	MUST(getrlimit(RLIMIT_NOFILE, &old));
	few = old;
	few.rlim_cur = fd + 1;
	MUST(setrlimit(RLIMIT_NOFILE, &few));
	MUST(do_connect(fd, a));
	for (i = 0; i < 10 && AM_WaitSema(bundle) != AM_ERR_TIMEOUT; i++)
		;
	EXPECT_LT(i, 10);
	EXPECT_EQ(0, events(ep[CALLER]->transport.fd, POLLIN, 0));
	EXPECT_FALSE(over(fd));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 2));
	MUST(setrlimit(RLIMIT_NOFILE, &old));
	AM_Poll(bundle);
	/* The record is too long to be a port, so the endpoint that accepts ends the connection. */
	EXPECT_EQ(3, send(fd, "abc", 3, 0));
	EXPECT_TRUE(REACHED(over(fd)));
}

/*
 * Both machines start again, and their devices have other indices: the logs still belong to them.
 */
static void between_lives(void)
{
	enter(B);
	run("ip link del vb");
	A->ifindex += 10;
	B->ifindex += 10;
	make_dev("veth", A->dev);
	link_up(B, true);
	link_up(A, true);
	wait_running();
}

#include "am-log-lives.c"

TEST_HARNESS_MAIN
