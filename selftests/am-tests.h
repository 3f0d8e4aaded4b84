/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Active Messages between two endpoints, over whichever transport the program has that includes
 * this: every state of each protocol, by frames that a filter drops or holds up; handlers counted
 * under loss; everything that a peer or a caller can do wrong.
 *
 * The program defines the variants of the fixture, and place(i, options): where endpoint i is.
 */
#ifndef AM_TESTS_H
#define AM_TESTS_H

#include <stdlib.h>
#include <unistd.h>
#include "../tools/am/internal.h"
#undef ARRAY_SIZE
#include "kselftest_harness.h"

#define FOREVER	100000			/* waits of a test that fails */
#define ECHO	1			/* handlers: */
#define ANSWER	2
#define LATER	3
#define SLOW	4
#define SILENT	5
#define UNKNOWN	99
#define HANDLER_MAX	20000		/* us */

enum { CALLER, SERVER };

static eb_t bundle;
static ep_t ep[2];
static en_t name[2];
static struct am_net *net;
static uint8_t segment[2][AM_MAX_LONG];

/* What the handlers saw. */
static unsigned int ran, answered;
static int last[AM_MAX_ARGS], last_size, last_refusal;
static void *later;
static am_handle_t received;

/* What happens to frames, by their type. */
static enum am_verdict fate[WIRE_TYPES];
static unsigned int passing[WIRE_TYPES];	/* so many first */
static unsigned int seen[WIRE_TYPES];
static uint16_t last_instance;

static void place(int i, struct am_options *o);

static enum am_verdict filter(void *arg, uint8_t *frame, size_t len)
{
	unsigned int type = frame[1];

	(void)arg;
	(void)len;
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

static void take_slow(void *token, int a, int b, int c, int d)
{
	(void)a; (void)b; (void)c; (void)d;
	ran++;
	AM_GetTokenHandle(token, &received);
	if (net)
		mem_advance(net, now(ep[SERVER]) + 2 * HANDLER_MAX);
	else
		usleep(2 * HANDLER_MAX);
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

/* An endpoint with all handlers. */
static int open_end(int i, struct am_options o)
{
	int error;

	place(i, &o);
	o.net = net;
	o.faults.filter = filter;
	error = AM_AllocateEndpointWith(bundle, &o, &ep[i], &name[i]);
	if (error)
		return error;
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
	return AM_OK;
}

/* Both ends of a connection of this protocol. */
static int open_both(struct am_options o)
{
	int error = open_end(CALLER, o);

	if (!error)
		error = open_end(SERVER, o);
	if (!error)
		error = AM_Map(ep[CALLER], 0, name[SERVER], 0);
	return error ? error : AM_Connect(ep[CALLER], 0, 1);
}

FIXTURE_SETUP(am)
{
	self->o = (struct am_options) {
		.retries = 3, .reply_retries = 2, .timeout_us = 5000,
		.reply_timeout_us = 5000, .handler_max_us = 10000000,
	};
	if (!strcmp(variant->transport, "mem"))
		net = AM_NewNet(64);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	AM_SetTimeout(bundle, 5);
}

FIXTURE_TEARDOWN(am)
{
	EXPECT_EQ(AM_OK, AM_FreeBundle(bundle));
	if (net)
		AM_FreeNet(net);
}

/* Polls and waits until it holds. */
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

/* The first entry of the server's receive pool. */
static am_handle_t first_received(void)
{
	am_handle_t h = 0;

	AM_ListReceived(ep[SERVER], &h, 1);
	return h;
}

/*
 * AMVIA: figure 3.2, the initiator's states
 */

TEST_F(am, amvia_initiator_0_1_2_3)
{
	am_handle_t h;

	self->o.protocol = AM_AMVIA;
	self->o.reply_timeout_us = 10000000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REQUEST] = AM_BLOCK;
	ASSERT_EQ(AM_OK, AM_Request2(ep[CALLER], 0, LATER, 1, 2));
	h = sent();
	EXPECT_NOW(CALLER, h, CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED);
	EXPECT_EQ(1, stats(CALLER).not_taken);
	fate[WIRE_REQUEST] = AM_PASS;
	fate[WIRE_ACK] = AM_BLOCK;
	EXPECT_STATE(CALLER, h, SENT, AM_NOT_ACKED, AM_REQUEST_SENT);
	fate[WIRE_ACK] = AM_PASS;
	EXPECT_STATE(CALLER, h, ACKED, AM_ACKED, AM_REQUEST_PROCESSING);
	ASSERT_NE(NULL, later);
	EXPECT_EQ(AM_OK, AM_Reply1(later, ANSWER, 7));
	EXPECT_STATE(CALLER, h, DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(1, answered);
	EXPECT_EQ(7, last[0]);
	EXPECT_EQ(AM_CAUSE_NONE, state_of(CALLER, h).cause);
}

/* 0': sent again; then the acknowledgment comes after all. */
TEST_F(am, amvia_initiator_timeout)
{
	am_handle_t h;

	self->o.protocol = AM_AMVIA;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REQUEST] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	h = sent();
	EXPECT_STATE(CALLER, h, RESENT, AM_NOT_ACKED, AM_REQUEST_SENT);
	EXPECT_EQ(0, ran);
	fate[WIRE_REQUEST] = AM_PASS;
	EXPECT_STATE(CALLER, h, DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(1, ran);
	EXPECT_LE(2, state_of(CALLER, h).sent);
}

TEST_F(am, amvia_initiator_no_handler)
{
	am_handle_t h;

	self->o.protocol = AM_AMVIA;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, UNKNOWN));
	h = sent();
	EXPECT_STATE(CALLER, h, ABANDONED, AM_ACK_NOT_FOUND, AM_REQUEST_SENT);
	EXPECT_EQ(AM_CAUSE_HANDLER, state_of(CALLER, h).cause);
	EXPECT_NOW(SERVER, first_received(), ABANDONED, AM_ERR_ACK, AM_NOT_PROCESSED);
	EXPECT_EQ(1, stats(SERVER).bad_handler);
	EXPECT_EQ(1, stats(CALLER).abandoned);
}

TEST_F(am, amvia_initiator_unreachable)
{
	am_handle_t h;

	self->o.protocol = AM_AMVIA;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REQUEST] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	h = sent();
	EXPECT_STATE(CALLER, h, ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	EXPECT_EQ(AM_CAUSE_NETWORK, state_of(CALLER, h).cause);
	EXPECT_EQ(1 + self->o.retries, seen[WIRE_REQUEST]);
}

/* Acknowledged, then silence. */
TEST_F(am, amvia_initiator_no_reply)
{
	am_handle_t h;

	self->o.protocol = AM_AMVIA;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	h = sent();
	EXPECT_STATE(CALLER, h, ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_EQ(AM_CAUSE_REPLY, state_of(CALLER, h).cause);
	EXPECT_EQ(1, ran);
	/* It was repeated, and the target kept its reply. */
	EXPECT_EQ(1 + self->o.reply_retries, seen[WIRE_REPLY]);
	EXPECT_EQ(self->o.reply_retries, stats(SERVER).replies_resent);
}

/* Acknowledged again and again: the handler is slow. */
TEST_F(am, amvia_initiator_slow_handler)
{
	am_handle_t h;

	self->o.protocol = AM_AMVIA;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	h = sent();
	EXPECT_STATE(CALLER, h, ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_EQ(AM_CAUSE_SLOW, state_of(CALLER, h).cause);
	EXPECT_EQ(1, ran);
	/* The target doesn't know, and its late reply disturbs nobody. */
	ASSERT_NE(NULL, later);
	EXPECT_EQ(AM_OK, AM_Reply0(later, ANSWER));
	EXPECT_TRUE(REACHED(stats(CALLER).late));
	EXPECT_EQ(0, answered);
}

/*
 * AMVIA: figure 3.3, the target's states
 */

/* 0 as long as pieces are missing. */
TEST_F(am, amvia_target_0)
{
	static uint8_t data[5000];

	self->o.protocol = AM_AMVIA;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	passing[WIRE_REQUEST] = 1;
	fate[WIRE_REQUEST] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, sizeof(data)));
	EXPECT_TRUE(REACHED(AM_ListReceived(ep[SERVER], NULL, 0) == 1));
	EXPECT_NOW(SERVER, first_received(), CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED);
	EXPECT_EQ(0, ran);
	fate[WIRE_REQUEST] = AM_PASS;
	EXPECT_STATE(SERVER, first_received(), DONE, AM_ACKED, AM_REPLY_SENT);
	EXPECT_EQ(1, ran);
}

TEST_F(am, amvia_target_1_2_3)
{
	am_handle_t h;

	self->o.protocol = AM_AMVIA;
	self->o.retries = 1000;
	self->o.reply_retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_ACK] = AM_BLOCK;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	EXPECT_TRUE(REACHED(AM_ListReceived(ep[SERVER], &h, 1) == 1));
	EXPECT_NOW(SERVER, h, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD);
	EXPECT_EQ(0, ran);
	fate[WIRE_ACK] = AM_PASS;
	EXPECT_STATE(SERVER, h, ACKED, AM_ACKED, AM_REPLY_NOT_SENT);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(h, received);
	/* A duplicate is acknowledged, and not handled. */
	EXPECT_TRUE(REACHED(stats(SERVER).duplicates));
	EXPECT_EQ(AM_OK, AM_Reply0(later, ANSWER));
	EXPECT_STATE(SERVER, h, DONE, AM_ACKED, AM_REPLY_SENT);
	EXPECT_TRUE(REACHED(answered));
	EXPECT_EQ(1, ran);
}

/* 4': the reply that was put off did not come in time. */
TEST_F(am, amvia_target_reply_timeout)
{
	self->o.protocol = AM_AMVIA;
	self->o.handler_max_us = HANDLER_MAX;
	self->o.reply_retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_EQ(AM_CAUSE_SLOW, state_of(CALLER, sent()).cause);
	EXPECT_NOW(SERVER, received, ABANDONED, AM_ACKED, AM_REPLY_TIMEOUT);
	ASSERT_NE(NULL, later);
	EXPECT_EQ(AM_ERR_NO_REPLY, AM_Reply0(later, ANSWER));
	EXPECT_EQ(0, answered);
}

/* 5: the handler did not return in time. */
TEST_F(am, amvia_target_handler_timeout)
{
	self->o.protocol = AM_AMVIA;
	self->o.handler_max_us = HANDLER_MAX;
	self->o.reply_timeout_us = 10000000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, SLOW));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_EQ(AM_CAUSE_SLOW, state_of(CALLER, sent()).cause);
	EXPECT_NOW(SERVER, received, ABANDONED, AM_ACKED, AM_HANDLER_TIMEOUT);
	EXPECT_EQ(1, stats(SERVER).slow_handlers);
}

/*
 * N-way
 */

/* A handler that doesn't reply: the library does. */
TEST_F(am, nway_empty_reply)
{
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, SILENT));
	EXPECT_NOW(CALLER, sent(), SENT, AM_NOT_ACKED, AM_REQUEST_SENT);
	EXPECT_STATE(CALLER, sent(), DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_NOW(SERVER, received, DONE, AM_ACKED, AM_REPLY_SENT);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(0, answered);
	EXPECT_EQ(1, stats(CALLER).replies);
}

/* A reply that was lost is sent again, by the request that is; the handler runs once. */
TEST_F(am, nway_stored_reply)
{
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request4(ep[CALLER], 0, ECHO, 1, -2, 3, -4));
	EXPECT_STATE(CALLER, sent(), RESENT, AM_NOT_ACKED, AM_REQUEST_SENT);
	EXPECT_TRUE(REACHED(stats(SERVER).replies_resent));
	EXPECT_EQ(0, answered);
	fate[WIRE_REPLY] = AM_PASS;
	EXPECT_STATE(CALLER, sent(), DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(1, answered);
	EXPECT_EQ(1, last[0]);
	EXPECT_EQ(-2, last[1]);
	EXPECT_EQ(-4, last[3]);
}

/* N requests without a reply; the next one waits for its buffer. */
TEST_F(am, nway_stall)
{
	int i;

	self->o.credits = 4;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REPLY] = AM_DROP;
	for (i = 0; i < 4; i++)
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_EQ(0, stats(CALLER).stalls);
	EXPECT_EQ(AM_ERR_TIMEOUT, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_EQ(1, stats(CALLER).stalls);
	fate[WIRE_REPLY] = AM_PASS;
	AM_SetTimeout(bundle, -1);
	EXPECT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 5));
	EXPECT_EQ(5, ran);
}

/* The seed's one-way protocol: one request at a time, numbered 0 and 1. */
TEST_F(am, oneway_bit)
{
	unsigned int i;

	self->o.credits = 1;
	ASSERT_EQ(AM_OK, open_both(self->o));
	for (i = 0; i < 6; i++) {
		ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, i));
		EXPECT_EQ(i % 2, last_instance);
		EXPECT_TRUE(REACHED(answered == i + 1));
		EXPECT_EQ((int)i, last[0]);
		/* The reply's buffer is the same, used again. */
		EXPECT_EQ(1, stats(SERVER).buffers);
	}
	EXPECT_EQ(6, ran);
}

/* With one bit, the next request after one that was given up must not be taken for its twin. */
TEST_F(am, oneway_abandoned)
{
	self->o.credits = 1;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, 10));
	EXPECT_TRUE(REACHED(answered == 1));
	fate[WIRE_REQUEST] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, 11));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	fate[WIRE_REQUEST] = AM_PASS;
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, 12));
	EXPECT_TRUE(REACHED(answered == 2));
	EXPECT_EQ(12, last[0]);
	EXPECT_EQ(2, ran);
}

TEST_F(am, nway_unreachable)
{
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	EXPECT_EQ(AM_CAUSE_NETWORK, state_of(CALLER, sent()).cause);
	EXPECT_EQ(1, ran);
}

TEST_F(am, nway_no_handler)
{
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, UNKNOWN));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_ACK_NOT_FOUND, AM_REQUEST_SENT);
	EXPECT_NOW(SERVER, first_received(), ABANDONED, AM_ERR_ACK, AM_NOT_PROCESSED);
}

TEST_F(am, nway_reply_timeout)
{
	self->o.handler_max_us = HANDLER_MAX;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	EXPECT_TRUE(REACHED(ran));
	EXPECT_NOW(SERVER, received, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD);
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_NOW(SERVER, received, ABANDONED, AM_NOT_ACKED, AM_REPLY_TIMEOUT);
}

TEST_F(am, nway_handler_timeout)
{
	self->o.handler_max_us = HANDLER_MAX;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, SLOW));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_NOW(SERVER, received, ABANDONED, AM_NOT_ACKED, AM_HANDLER_TIMEOUT);
}

/*
 * AMUDP
 */

/* The reply's buffer is free when the initiator has said that it has the reply. */
TEST_F(am, amudp_released)
{
	self->o.protocol = AM_AMUDP;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_FINAL] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, 5));
	EXPECT_STATE(CALLER, sent(), DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_NOW(SERVER, received, DONE, AM_NOT_ACKED, AM_REPLY_SENT);
	EXPECT_EQ(1, stats(SERVER).buffers);
	/* The target asks by the reply; nothing is handled twice. */
	EXPECT_TRUE(REACHED(stats(SERVER).replies_resent));
	fate[WIRE_FINAL] = AM_PASS;
	EXPECT_STATE(SERVER, received, RELEASED, AM_ACKED, AM_REPLY_SENT);
	EXPECT_EQ(0, stats(SERVER).buffers);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(1, answered);
}

/* Nobody acknowledges the reply: it is given up, and so is the request that asks for it. */
TEST_F(am, amudp_reply_lost)
{
	self->o.protocol = AM_AMUDP;
	self->o.handler_max_us = 2000000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_STATE(SERVER, first_received(), ABANDONED, AM_NOT_ACKED, AM_REPLY_LOST);
	EXPECT_EQ(0, stats(SERVER).buffers);
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_EQ(AM_CAUSE_REPLY, state_of(CALLER, sent()).cause);
	EXPECT_EQ(1, ran);
}

TEST_F(am, amudp_timeouts)
{
	am_handle_t h;

	self->o.protocol = AM_AMUDP;
	self->o.handler_max_us = HANDLER_MAX;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REQUEST] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	h = sent();
	EXPECT_STATE(CALLER, h, RESENT, AM_NOT_ACKED, AM_REQUEST_SENT);
	EXPECT_STATE(CALLER, h, ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	fate[WIRE_REQUEST] = AM_PASS;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, UNKNOWN));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_ACK_NOT_FOUND, AM_REQUEST_SENT);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, SLOW));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_NOW(SERVER, received, ABANDONED, AM_NOT_ACKED, AM_HANDLER_TIMEOUT);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_NOW(SERVER, received, ABANDONED, AM_NOT_ACKED, AM_REPLY_TIMEOUT);
	EXPECT_EQ(0, stats(SERVER).buffers);
}

/* Half of the pool is for replies; who gets no buffer for one isn't handled, and asks again. */
TEST_F(am, amudp_pool)
{
	int i;

	self->o.protocol = AM_AMUDP;
	self->o.pool = 4;
	self->o.retries = 1000;
	self->o.handler_max_us = HANDLER_MAX;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_FINAL] = AM_DROP;
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
		EXPECT_TRUE(REACHED(answered == (unsigned int)i + 1));
	}
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	/* One of the slots may be used again by then; its reply is no longer needed. */
	EXPECT_TRUE(REACHED(answered == 5 || stats(SERVER).no_buffer));
	EXPECT_GE(4, stats(SERVER).buffers_peak);
	fate[WIRE_FINAL] = AM_PASS;
	EXPECT_TRUE(REACHED(answered == 5));
	EXPECT_EQ(5, ran);
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_EQ(AM_ERR_TIMEOUT, AM_Request0(ep[CALLER], 0, ECHO));
}

/*
 * All protocols
 */

static const enum am_protocol_id protocols[] = { AM_NWAY, AM_AMVIA, AM_AMUDP };

static void close_both(void)
{
	AM_FreeEndpoint(ep[CALLER]);
	AM_FreeEndpoint(ep[SERVER]);
	ran = 0;
	answered = 0;
	memset(fate, 0, sizeof(fate));
}

/* Every size, and what lies in the segments after it. */
TEST_F(am, sizes)
{
	static const int bulk[] = { 0, 1, 511, 512, 1400, 1436, 1437, 5000, AM_MAX_LONG };
	static uint8_t data[AM_MAX_LONG + 1];
	unsigned int i, j, n;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i * 7 + i / 256;
	self->o.retries = 1000;
	self->o.reply_retries = 1000;
	AM_SetTimeout(bundle, -1);
	for (i = 0; i < 3; i++) {
		self->o.protocol = protocols[i];
		ASSERT_EQ(AM_OK, open_both(self->o));
		for (n = 0; n <= AM_MAX_MEDIUM; n += 1 + n / 3) {
			ASSERT_EQ(AM_OK, AM_RequestI2(ep[CALLER], 0, ECHO, data, n, 1, n));
			EXPECT_TRUE(REACHED(answered == 1));
			EXPECT_EQ((int)n, last_size);
			EXPECT_EQ((int)n, last[1]);
			answered = 0;
		}
		EXPECT_EQ(AM_ERR_TOO_BIG, AM_RequestI0(ep[CALLER], 0, ECHO, data,
						       AM_MAX_MEDIUM + 1));
		for (j = 0; j < ARRAY_SIZE(bulk); j++) {
			memset(segment, 0, sizeof(segment));
			ASSERT_EQ(AM_OK, AM_RequestXfer1(ep[CALLER], 0, 0, ECHO, data, bulk[j],
							 j));
			EXPECT_TRUE(REACHED(answered == 1));
			EXPECT_EQ(bulk[j], last_size);
			EXPECT_EQ(0, memcmp(segment[SERVER], data, bulk[j]));
			EXPECT_EQ(0, memcmp(segment[CALLER], data, bulk[j]));
			answered = 0;
		}
		EXPECT_EQ(AM_ERR_TOO_BIG, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data,
							  AM_MAX_LONG + 1));
		close_both();
	}
}

/* Of each request: how often its handler ran, and that of its reply. */
static uint8_t *request_ran, *reply_ran;
static unsigned int wrong;

static void count_request(void *token, int a, int b, int c, int d)
{
	(void)c; (void)d;
	ran++;
	request_ran[a]++;
	AM_Reply2(token, ANSWER, a, b);
}

static void count_request_data(void *token, void *data, int n, int a, int b, int c, int d)
{
	const uint8_t *p = data;
	int i;

	(void)c; (void)d;
	ran++;
	request_ran[a]++;
	for (i = 0; i < n; i++)
		wrong += p[i] != (uint8_t)(a + i);
	AM_ReplyI2(token, ANSWER, data, n, a, b);
}

static void count_reply(void *token, int a, int b, int c, int d)
{
	(void)token; (void)b; (void)c; (void)d;
	answered++;
	reply_ran[a]++;
}

static void count_reply_data(void *token, void *data, int n, int a, int b, int c, int d)
{
	const uint8_t *p = data;
	int i;

	for (i = 0; i < n; i++)
		wrong += p[i] != (uint8_t)(a + i);
	count_reply(token, a, b, c, d);
}

/* @n requests of all sizes but the largest; frames are lost, doubled, garbled and late. */
static void run_lossy(struct __test_metadata *_metadata, struct am_options o, unsigned int n)
{
	unsigned int i, twice = 0, never = 0;
	uint8_t data[AM_MAX_MEDIUM];
	struct am_stats a, b;
	int j;

	request_ran = calloc(n, 1);
	reply_ran = calloc(n, 1);
	ASSERT_NE(NULL, request_ran);
	ASSERT_NE(NULL, reply_ran);
	o.retries = 1000;
	o.reply_retries = 1000;
	o.timeout_us = 2000;
	if (o.protocol == AM_AMUDP)
		o.handler_max_us = net ? 5000 : 1000000;
	o.faults = (struct am_faults) { .drop = 50, .duplicate = 50, .corrupt = 50 };
	/* One bit can't tell what is late from what is next. */
	o.faults.delay = o.credits == 1 ? 0 : 50;
	o.faults.seed = 1;
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, open_both(o));
	for (i = 0; i < 2; i++) {
		AM_SetHandler(ep[i], ECHO, count_request);
		AM_SetHandlerI(ep[i], ECHO, count_request_data);
		AM_SetHandler(ep[i], ANSWER, count_reply);
		AM_SetHandlerI(ep[i], ANSWER, count_reply_data);
	}
	for (i = 0; i < n; i++) {
		if (i % 4) {
			ASSERT_EQ(AM_OK, AM_Request2(ep[CALLER], 0, ECHO, i, i * 3));
			continue;
		}
		for (j = 0; j < AM_MAX_MEDIUM; j++)
			data[j] = i + j;
		ASSERT_EQ(AM_OK, AM_RequestI2(ep[CALLER], 0, ECHO, data, i % 128, i, 0));
	}
	EXPECT_TRUE(REACHED(answered >= n));
	for (i = 0; i < n; i++) {
		twice += request_ran[i] > 1 || reply_ran[i] > 1;
		never += !request_ran[i] || !reply_ran[i];
	}
	a = stats(CALLER);
	b = stats(SERVER);
	TH_LOG("protocol %d, N %u: %u requests, %lu resent, %lu duplicates, %lu bad checksums, %lu cut",
	       o.protocol, o.credits ? o.credits : 16, n, (unsigned long)a.resent,
	       (unsigned long)b.duplicates, (unsigned long)(a.bad_checksum + b.bad_checksum),
	       (unsigned long)(a.bad_length + b.bad_length));
	EXPECT_EQ(0, twice);
	EXPECT_EQ(0, never);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(n, ran);
	EXPECT_EQ(n, answered);
	EXPECT_EQ(n, a.replies);
	EXPECT_EQ(n, b.handlers_run);
	EXPECT_EQ(0, a.abandoned);
	/* The faults were there. */
	EXPECT_LT(0, a.resent);
	EXPECT_LT(0, b.duplicates);
	EXPECT_LT(0, a.bad_checksum);
	EXPECT_LT(0, b.bad_length);
	close_both();
	free(request_ran);
	free(reply_ran);
}

/* $AM_REQUESTS of each protocol. */
static unsigned int lossy_requests(const char *transport)
{
	const char *n = getenv("AM_REQUESTS");

	return n ? strtoul(n, NULL, 10) : strcmp(transport, "mem") ? 2000 : 100000;
}

TEST_F_TIMEOUT(am, lossy_nway, 3000)
{
	run_lossy(_metadata, self->o, lossy_requests(variant->transport));
}

TEST_F_TIMEOUT(am, lossy_oneway, 3000)
{
	self->o.credits = 1;
	run_lossy(_metadata, self->o, lossy_requests(variant->transport));
}

TEST_F_TIMEOUT(am, lossy_amvia, 3000)
{
	self->o.protocol = AM_AMVIA;
	run_lossy(_metadata, self->o, lossy_requests(variant->transport));
}

TEST_F_TIMEOUT(am, lossy_amudp, 3000)
{
	self->o.protocol = AM_AMUDP;
	/* Where time is real, each frame that is lost takes a second. */
	run_lossy(_metadata, self->o, lossy_requests(variant->transport) / (net ? 1 : 4));
}

/* Both ask each other at once, with fewer credits than requests: neither waits for ever. */
TEST_F(am, both_ask)
{
	unsigned int i, j;

	self->o.retries = 1000;
	self->o.reply_retries = 1000;
	self->o.credits = 2;
	AM_SetTimeout(bundle, -1);
	for (i = 0; i < 3; i++) {
		self->o.protocol = protocols[i];
		self->o.pool = 4;
		ASSERT_EQ(AM_OK, open_both(self->o));
		ASSERT_EQ(AM_OK, AM_Map(ep[SERVER], 0, name[CALLER], 0));
		for (j = 0; j < 500; j++)
			ASSERT_EQ(AM_OK, AM_Request0(ep[j % 2], 0, ECHO));
		EXPECT_TRUE(REACHED(answered == 500));
		EXPECT_EQ(500, ran);
		close_both();
	}
}

/*
 * What can be wrong
 */

TEST_F(am, calls_refused)
{
	struct am_state s;
	en_t n;

	ASSERT_EQ(AM_OK, open_both(self->o));
	EXPECT_EQ(AM_ERR_NOT_MAPPED, AM_Request0(ep[CALLER], 1, ECHO));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Request0(ep[CALLER], -1, ECHO));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Request0(ep[CALLER], 64, ECHO));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Request0(ep[CALLER], 0, 0));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Request0(ep[CALLER], 0, AM_HANDLERS));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_RequestI0(ep[CALLER], 0, ECHO, &s, -1));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_RequestXfer0(ep[CALLER], 0, -1, ECHO, &s, 1));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_SetHandler(ep[CALLER], AM_HANDLERS, NULL));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	EXPECT_EQ(AM_ERR_NOT_MAPPED, AM_Unmap(ep[CALLER], 5));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_GetTransferState(ep[CALLER], 1ull << 40, &s));
	EXPECT_EQ(AM_ERR_STALE, AM_GetTransferState(ep[CALLER], 12345, &s));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_NameFromString("udp:1.2.3:4", &n));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_NameFromString("udp:1.2.3.4:65536", &n));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_NameFromString("edp:00:11:22:33:44%lo:1", &n));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_NameFromString("tcp:1.2.3.4:5", &n));
	EXPECT_EQ(AM_OK, AM_NameFromString("udp:1.2.3.4:5", &n));
	/* Reply handlers can't send. */
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered));
	EXPECT_EQ(AM_ERR_IN_HANDLER, last_refusal);
	EXPECT_EQ(1, stats(CALLER).refused);
}

/* The segment ends before the data. */
TEST_F(am, beyond_segment)
{
	uint8_t data[100] = {};

	ASSERT_EQ(AM_OK, open_both(self->o));
	AM_SetSeg(ep[SERVER], segment[SERVER], 50);
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, 51));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_ACK_NOT_FOUND, AM_REQUEST_SENT);
	EXPECT_EQ(AM_CAUSE_SEGMENT, state_of(CALLER, sent()).cause);
	EXPECT_EQ(1, stats(SERVER).bad_segment);
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 51, ECHO, data, 0));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_ACK_NOT_FOUND, AM_REQUEST_SENT);
	EXPECT_EQ(0, ran);
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, 50));
	EXPECT_STATE(CALLER, sent(), DONE, AM_ACKED, AM_PROCESSED);
}

TEST_F(am, connection_refused)
{
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	self->o.protocol = AM_AMVIA;
	ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	EXPECT_EQ(AM_ERR_PROTOCOL, AM_Connect(ep[CALLER], 0, 1));
	EXPECT_EQ(1, stats(SERVER).bad_protocol);
	close_both();

	self->o.protocol = AM_NWAY;
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
	AM_SetTag(ep[SERVER], 1ull << 40);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 1));
	EXPECT_EQ(AM_ERR_AGAIN, AM_Connect(ep[CALLER], 0, 0));
	EXPECT_EQ(AM_ERR_TAG, AM_Connect(ep[CALLER], 0, 1));
	EXPECT_EQ(1, stats(SERVER).bad_tag);
	/* The other way there is no tag. */
	ASSERT_EQ(AM_OK, AM_Map(ep[SERVER], 0, name[CALLER], 0));
	EXPECT_EQ(AM_OK, AM_Connect(ep[SERVER], 0, 1));
	EXPECT_EQ(AM_OK, AM_Unmap(ep[CALLER], 0));
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 1ull << 40));
	EXPECT_EQ(AM_OK, AM_Connect(ep[CALLER], 0, 1));
	close_both();

	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
	fate[WIRE_WELCOME] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	EXPECT_EQ(AM_ERR_NETWORK, AM_Connect(ep[CALLER], 0, 1));
	EXPECT_EQ(AM_ERR_NETWORK, AM_Request0(ep[CALLER], 0, ECHO));
	fate[WIRE_WELCOME] = AM_PASS;
	EXPECT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
}

/* A table of one, and two who come. */
TEST_F(am, table_full)
{
	struct am_stats s;
	ep_t third;
	en_t n;

	self->o.peers = 1;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered));
	AM_SetTimeout(bundle, -1);
	place(CALLER, &self->o);
	self->o.net = net;
	ASSERT_EQ(AM_OK, AM_AllocateEndpointWith(bundle, &self->o, &third, &n));
	ASSERT_EQ(AM_OK, AM_Map(third, 0, name[SERVER], 0));
	EXPECT_EQ(AM_ERR_FULL, AM_Connect(third, 0, 1));
	AM_GetStats(ep[SERVER], &s);
	EXPECT_EQ(1, s.peers_refused);
	EXPECT_EQ(AM_ERR_RESOURCE, AM_Map(ep[SERVER], 0, n, 0));
}

/* A frame as the caller's transport would send it, to the server. */
static void forge(uint8_t *frame, size_t len)
{
	ep[CALLER]->transport.ops->send(&ep[CALLER]->transport, &ep[CALLER]->map[0]->name, frame,
					len);
}

/* Each bad frame is counted by its fault, and does nothing. */
TEST_F(am, bad_frames)
{
	struct wire w = {
		.type = WIRE_REQUEST, .size = WIRE_SHORT, .handler = ECHO, .nargs = 1,
	};
	uint8_t frame[100];
	size_t len;

	ASSERT_EQ(AM_OK, open_both(self->o));
	w.session = ep[CALLER]->map[0]->session;
	len = wire_write(frame, &w);
	forge(frame, len - 1);
	EXPECT_TRUE(REACHED(stats(SERVER).bad_length == 1));
	forge(frame, 3);
	EXPECT_TRUE(REACHED(stats(SERVER).bad_length == 2));
	frame[len - 1] ^= 1;
	forge(frame, len);
	EXPECT_TRUE(REACHED(stats(SERVER).bad_checksum == 1));
	frame[0]++;
	wire_seal(frame, len);
	forge(frame, len);
	EXPECT_TRUE(REACHED(stats(SERVER).bad_version == 1));
	frame[0]--;
	frame[1] = WIRE_TYPES;
	wire_seal(frame, len);
	forge(frame, len);
	EXPECT_TRUE(REACHED(stats(SERVER).bad_type == 1));
	w.size = WIRE_BULK;
	w.total = 10;
	forge(frame, wire_write(frame, &w));
	EXPECT_TRUE(REACHED(stats(SERVER).bad_field == 1));
	w.size = WIRE_SHORT;
	w.total = 0;
	w.slot = 1000;
	forge(frame, wire_write(frame, &w));
	EXPECT_TRUE(REACHED(stats(SERVER).bad_field == 2));
	w.slot = 0;
	w.session ^= 1;
	forge(frame, wire_write(frame, &w));
	EXPECT_TRUE(REACHED(stats(SERVER).bad_session == 1));
	/* The answer to that is none to the caller's session. */
	EXPECT_TRUE(REACHED(stats(CALLER).bad_session == 1));
	EXPECT_EQ(0, ran);
	/* And a good one. */
	w.session ^= 1;
	forge(frame, wire_write(frame, &w));
	EXPECT_TRUE(REACHED(ran == 1));
}

static enum am_verdict other_version(void *arg, uint8_t *frame, size_t len)
{
	(void)arg;
	frame[0] = WIRE_VERSION + 1;
	wire_seal(frame, len);
	return AM_PASS;
}

/* A peer of another version. */
TEST_F(am, other_version)
{
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
	ep[SERVER]->transport.faults.filter = other_version;
	/* It refuses in its own version; so it does where ours is the old one. */
	fate[WIRE_HELLO] = AM_PASS;
	AM_SetTag(ep[SERVER], 5);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	EXPECT_EQ(AM_ERR_VERSION, AM_Connect(ep[CALLER], 0, 1));
	EXPECT_EQ(1, stats(CALLER).bad_version);
	ASSERT_EQ(AM_OK, AM_Map(ep[SERVER], 0, name[CALLER], 0));
	EXPECT_EQ(AM_ERR_VERSION, AM_Connect(ep[SERVER], 0, 1));
	EXPECT_LE(2, stats(CALLER).bad_version);
}

static am_handle_t returned;
static struct am_state returned_state;

static void on_return(ep_t e, am_handle_t handle, const struct am_state *state, void *arg)
{
	(void)e;
	returned = handle;
	returned_state = *state;
	*(int *)arg = AM_Request0(e, 0, ECHO);
}

/* The target has lost its memory: what it was asked before may have run. */
TEST_F(am, restarted)
{
	int in_handler = AM_OK;

	ASSERT_EQ(AM_OK, open_both(self->o));
	AM_SetTimeout(bundle, -1);
	AM_SetReturnHandler(ep[CALLER], on_return, &in_handler);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	peer_forget(&ep[SERVER]->peers[0]);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	EXPECT_EQ(AM_CAUSE_RESTARTED, state_of(CALLER, sent()).cause);
	EXPECT_EQ(sent(), returned);
	EXPECT_EQ(AM_STATE_ABANDONED, returned_state.state);
	EXPECT_EQ(AM_ERR_IN_HANDLER, in_handler);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(1, stats(SERVER).bad_session);
	/* The next one finds a new connection. */
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 2));
}

#endif
