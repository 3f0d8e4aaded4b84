// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages between two endpoints, over the transport of the program that includes this.
 * Here: two endpoints with handlers, and a filter that drops frames or holds them up. The tests
 * themselves are in am-states.c, am-messages.c, am-lossy.c, am-errors.c and am-endpoints.c.
 *
 * The program defines the variants of the fixture, and place(i, options), which sets the address of
 * endpoint i.
 */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../tools/am/internal.h"
#undef ARRAY_SIZE
#include "kselftest_harness.h"

/* Seconds of a test: enough on a machine that is busy with other work. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#define FOREVER	100000			/* most waits of a test */
#define ECHO	1			/* the handlers, from here on */
#define ANSWER	2
#define LATER	3
#define SLOW	4
#define SILENT	5
#define UNKNOWN	99
#define HANDLER_MAX	20000		/* us; a handler that dawdles takes longer */
#define LONG_HANDLER	2000000		/* us; no handler takes as long, even on a machine that is busy */

enum { CALLER, SERVER };

static eb_t bundle;
static ep_t ep[2];
static en_t name[2];
static struct am_net *net;
static const char *transport;		/* the test's */
static uint8_t segment[2][AM_MAX_LONG];

/* Notes of the handlers. */
static unsigned int ran, answered;
static int last[AM_MAX_ARGS], last_size, last_refusal;
static void *later;
static am_handle_t received;

/* The filter's verdict, by type of frame. */
static enum am_verdict fate[WIRE_TYPES];
static unsigned int passing[WIRE_TYPES];	/* frames that pass first */
static unsigned int seen[WIRE_TYPES];
static uint16_t last_instance;

/* The linker gives these to callers of malloc() ...: after this many calls, one fails. */
static int allocations = -1;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size)
{
	return allocations >= 0 && !allocations-- ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allocations >= 0 && !allocations-- ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return allocations >= 0 && !allocations-- ? NULL : __real_realloc(p, size);
}

/* Is there memory that no pointer leads to? The compiler must help to tell. */
static int leaks(void)
{
#ifdef __SANITIZE_ADDRESS__
	return __lsan_do_recoverable_leak_check();
#else
	return 0;
#endif
}

static void place(int i, struct am_options *o);
/* Enter the host of endpoint i, which sends now and may make a socket. */
static void stand(int i);

static enum am_verdict filter(void *arg, uint8_t *frame, size_t len)
{
	unsigned int type = frame[1];

	(void)len;
	stand(arg != &ep[CALLER]);
	seen[type]++;
	if (type == WIRE_REQUEST)
		last_instance = frame[14] << 8 | frame[15];
	if (passing[type]) {
		passing[type]--;
		return AM_PASS;
	}
	return fate[type];
}

static void take_echo(void *token, int a, int b, int c, int d)
{
	ran++;
	AM_GetTokenHandle(token, &received);
	AM_Reply4(token, ANSWER, a, b, c, d);
}

static void take_echo_data(void *token, void *data, int n, int a, int b, int c, int d)
{
	(void)c;
	(void)d;
	ran++;
	AM_GetTokenHandle(token, &received);
	last_size = n;
	AM_ReplyI2(token, ANSWER, data, n, a, b);
}

static void take_echo_bulk(void *token, void *data, int n, int a, int b, int c, int d)
{
	(void)c;
	(void)d;
	ran++;
	last_size = n;
	AM_ReplyXfer2(token, 0, ANSWER, data, n, a, b);
}

static void take_answer(void *token, int a, int b, int c, int d)
{
	answered++;
	last[0] = a;
	last[1] = b;
	last[2] = c;
	last[3] = d;
	last_refusal = AM_Reply0(token, ECHO);
}

static void take_answer_data(void *token, void *data, int n, int a, int b, int c, int d)
{
	(void)data;
	last_size = n;
	take_answer(token, a, b, c, d);
}

static void take_later(void *token, int a, int b, int c, int d)
{
	(void)a; (void)b; (void)c; (void)d;
	ran++;
	AM_GetTokenHandle(token, &received);
	later = AM_Defer(token);
}

/* Let more time go by than a handler may take. */
static void dawdle(void)
{
	if (net)
		mem_advance(net, now(ep[SERVER]) + 2 * HANDLER_MAX);
	else
		usleep(2 * HANDLER_MAX);
}

static void take_slow(void *token, int a, int b, int c, int d)
{
	(void)a; (void)b; (void)c; (void)d;
	ran++;
	AM_GetTokenHandle(token, &received);
	dawdle();
}

static void take_silent(void *token, int a, int b, int c, int d)
{
	(void)a; (void)b; (void)c; (void)d;
	ran++;
	AM_GetTokenHandle(token, &received);
}

FIXTURE(am) {
	struct am_options o;
};

FIXTURE_VARIANT(am) {
	const char *transport;
};

static void set_handlers(int i)
{
	AM_SetSeg(ep[i], segment[i], sizeof(segment[i]));
	AM_SetHandler(ep[i], ECHO, take_echo);
	AM_SetHandlerI(ep[i], ECHO, take_echo_data);
	AM_SetHandlerXfer(ep[i], ECHO, take_echo_bulk);
	AM_SetHandler(ep[i], ANSWER, take_answer);
	AM_SetHandlerI(ep[i], ANSWER, take_answer_data);
	AM_SetHandlerXfer(ep[i], ANSWER, take_answer_data);
	AM_SetHandler(ep[i], LATER, take_later);
	AM_SetHandler(ep[i], SLOW, take_slow);
	AM_SetHandler(ep[i], SILENT, take_silent);
}

/* Open an endpoint with all handlers. */
static int open_end(int i, struct am_options o)
{
	int error;

	place(i, &o);
	o.net = net;
	o.faults.filter = filter;
	o.faults.arg = &ep[i];
	error = AM_AllocateEndpointWith(bundle, &o, &ep[i], &name[i]);
	if (error)
		return error;
	set_handlers(i);
	return AM_OK;
}

#define CONNECTS	1000	/* calls that wait for a connection */

/* Wait for a connection by several calls, because one is not enough on a machine that is busy. */
static int connect_patiently(void)
{
	int error, i = 0;

	do
		error = AM_Connect(ep[CALLER], 0, 1);
	while (error == AM_ERR_TIMEOUT && ++i < CONNECTS);
	return error;
}

/* Open both ends of a connection of this protocol. */
static int open_both(struct am_options o)
{
	int error = open_end(CALLER, o);

	if (!error)
		error = open_end(SERVER, o);
	if (!error)
		error = AM_Map(ep[CALLER], 0, name[SERVER], 0);
	return error ? error : connect_patiently();
}

FIXTURE_SETUP(am)
{
	self->o = (struct am_options) {
		.retries = 3, .reply_retries = 2, .timeout_us = 5000,
		.reply_timeout_us = 5000, .handler_max_us = 10000000,
	};
	transport = variant->transport;
	if (!strcmp(transport, "mem"))
		net = AM_NewNet(64);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	AM_SetTimeout(bundle, 30);
}

FIXTURE_TEARDOWN(am)
{
	EXPECT_EQ(AM_OK, AM_FreeBundle(bundle));
	if (net)
		AM_FreeNet(net);
}

/* Poll and wait until the condition holds. */
#define REACHED(cond) ({						\
	int n_ = FOREVER;						\
	bool ok_;							\
									\
	while (!(ok_ = (cond)) && n_--)					\
		AM_WaitSema(bundle);					\
	ok_;								\
})

static struct am_state state_of(int i, am_handle_t h)
{
	struct am_state s;

	if (AM_GetTransferState(ep[i], h, &s))
		memset(&s, 0xff, sizeof(s));
	return s;
}

static bool is(int i, am_handle_t h, int state, int ack, int operation)
{
	struct am_state s = state_of(i, h);

	return (int)s.state == state && (int)s.ack == ack && (int)s.operation == operation;
}

#define EXPECT_STATE(i, h, st, ak, op)			\
	EXPECT_TRUE(REACHED(is(i, h, AM_STATE_##st, ak, op)))	\
		TH_LOG("state %d %s %s", state_of(i, h).state,		\
		       AM_AckName(state_of(i, h).ack),			\
		       AM_OperationName(state_of(i, h).operation))
#define EXPECT_NOW(i, h, st, ak, op)				\
	EXPECT_TRUE(is(i, h, AM_STATE_##st, ak, op))

static am_handle_t sent(void)
{
	am_handle_t h = 0;

	AM_GetTransferHandle(ep[CALLER], &h);
	return h;
}

static struct am_stats stats(int i)
{
	struct am_stats s;

	AM_GetStats(ep[i], &s);
	return s;
}

/* Return the first entry of the server's receive pool. */
static am_handle_t first_received(void)
{
	am_handle_t h = 0;

	AM_ListReceived(ep[SERVER], &h, 1);
	return h;
}

#include "am-states.c"
#include "am-messages.c"
#include "am-lossy.c"
#include "am-errors.c"
#include "am-endpoints.c"
