// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages: every state of each protocol, by name.
 * Included by am-tests.c.
 */

/*
 * AMVIA: figure 3.2, the initiator's states
 */

TEST_F(am, amvia_initiator_0_1_2_3)
{
	am_handle_t h;

	self->o.protocol = AM_AMVIA;
	self->o.reply_timeout_us = 10000000;
	/* The test must see state 1 before it is over, however slow the machine is. */
	self->o.timeout_us = 500000;
	self->o.min_timeout_us = 500000;
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

/* 0': the request is retransmitted; then it is acknowledged after all. */
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

/* The states of both ends. */
TEST_F(am, amvia_no_handler)
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

/* The request is acknowledged, then nothing comes. */
TEST_F(am, amvia_initiator_no_reply)
{
	am_handle_t h;

	self->o.protocol = AM_AMVIA;
	/*
	 * Only the reply's timeout acts, and the reply that it asks for is here in time on a slow
	 * machine, too.
	 */
	self->o.timeout_us = 10000000;
	self->o.min_timeout_us = 10000000;
	self->o.reply_timeout_us = 200000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	h = sent();
	EXPECT_STATE(CALLER, h, ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_EQ(AM_CAUSE_REPLY, state_of(CALLER, h).cause);
	EXPECT_EQ(1, ran);
	/* The request was retransmitted, and the target kept its reply. */
	EXPECT_EQ(1 + self->o.reply_retries, seen[WIRE_REPLY]);
	EXPECT_EQ(self->o.reply_retries, stats(SERVER).replies_resent);
}

/* The request is acknowledged again and again: its handler is slow. */
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
	/* The target doesn't know that, and its late reply has no effect. */
	ASSERT_NE(NULL, later);
	EXPECT_EQ(AM_OK, AM_Reply0(later, ANSWER));
	EXPECT_TRUE(REACHED(stats(CALLER).late));
	EXPECT_EQ(0, answered);
}

/*
 * AMVIA: figure 3.3, the target's states
 */

/* The target is in state 0 as long as pieces are missing. @ack is that of a reply that was sent. */
static void target_0(struct __test_metadata *_metadata, struct am_options o, int ack)
{
	static uint8_t data[5000];

	o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(o));
	passing[WIRE_REQUEST] = 1;
	fate[WIRE_REQUEST] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, sizeof(data)));
	EXPECT_TRUE(REACHED(AM_ListReceived(ep[SERVER], NULL, 0) == 1));
	EXPECT_NOW(SERVER, first_received(), CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED);
	EXPECT_EQ(0, ran);
	fate[WIRE_REQUEST] = AM_PASS;
	EXPECT_STATE(SERVER, first_received(), DONE, ack, AM_REPLY_SENT);
}

TEST_F(am, amvia_target_0)
{
	self->o.protocol = AM_AMVIA;
	target_0(_metadata, self->o, AM_ACKED);
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

/* 4': the deferred reply did not come in time. */
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

/* Protocols without an acknowledgment of the request: created, sent, answered. */
static void initiator_0_1_3(struct __test_metadata *_metadata, struct am_options o)
{
	am_handle_t h;

	o.timeout_us = 10000000;
	o.min_timeout_us = 10000000;
	ASSERT_EQ(AM_OK, open_both(o));
	fate[WIRE_REQUEST] = AM_BLOCK;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	h = sent();
	EXPECT_NOW(CALLER, h, CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED);
	EXPECT_EQ(1, stats(CALLER).not_taken);
	fate[WIRE_REQUEST] = AM_PASS;
	EXPECT_STATE(CALLER, h, SENT, AM_NOT_ACKED, AM_REQUEST_SENT);
	EXPECT_TRUE(REACHED(later));
	EXPECT_NOW(CALLER, h, SENT, AM_NOT_ACKED, AM_REQUEST_SENT);
	EXPECT_EQ(AM_OK, AM_Reply0(later, ANSWER));
	EXPECT_STATE(CALLER, h, DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(1, answered);
	EXPECT_EQ(0, stats(CALLER).resent);
}

/* The target's states in these protocols. @ack is that of a reply that was sent. */
static void target_0_1_3(struct __test_metadata *_metadata, struct am_options o, int ack)
{
	fate[WIRE_FINAL] = AM_DROP;
	target_0(_metadata, o, ack);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	EXPECT_TRUE(REACHED(later));
	EXPECT_NOW(SERVER, received, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD);
	EXPECT_EQ(AM_OK, AM_Reply0(later, ANSWER));
	EXPECT_NOW(SERVER, received, DONE, ack, AM_REPLY_SENT);
	EXPECT_EQ(2, ran);
}

TEST_F(am, nway_initiator_0_1_3)
{
	initiator_0_1_3(_metadata, self->o);
}

TEST_F(am, nway_target_0_1_3)
{
	target_0_1_3(_metadata, self->o, AM_ACKED);
}

/* If the handler doesn't reply, the library does. */
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

/* A reply that was lost is retransmitted when the request is; the handler runs once. */
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

/* N requests have no reply; the next one waits for a credit. */
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
		/* The reply uses the same buffer again. */
		EXPECT_EQ(1, stats(SERVER).buffers);
	}
	EXPECT_EQ(6, ran);
}

/* With one bit, the request after an abandoned one must not be taken for its twin. */
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
	self->o.handler_max_us = LONG_HANDLER;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	EXPECT_TRUE(REACHED(ran));
	EXPECT_NOW(SERVER, received, SENT, AM_NOT_ACKED, AM_REQUEST_RECVD);
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_NOW(SERVER, received, ABANDONED, AM_NOT_ACKED, AM_REPLY_TIMEOUT);
}

/* The reply came too late, and no poll has looked at the time. */
TEST_F(am, nway_late_reply)
{
	self->o.handler_max_us = HANDLER_MAX;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	EXPECT_TRUE(REACHED(ran));
	ASSERT_NE(NULL, later);
	dawdle();
	EXPECT_EQ(AM_ERR_NO_REPLY, AM_Reply0(later, ANSWER));
	EXPECT_NOW(SERVER, received, ABANDONED, AM_NOT_ACKED, AM_REPLY_TIMEOUT);
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_EQ(AM_CAUSE_SLOW, state_of(CALLER, sent()).cause);
	EXPECT_EQ(0, answered);
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

TEST_F(am, amudp_initiator_0_1_3)
{
	self->o.protocol = AM_AMUDP;
	initiator_0_1_3(_metadata, self->o);
}

TEST_F(am, amudp_target_0_1_3)
{
	self->o.protocol = AM_AMUDP;
	target_0_1_3(_metadata, self->o, AM_NOT_ACKED);
}

/* The reply's buffer is free when the initiator has acknowledged the reply. */
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
	/* The target retransmits the reply; nothing is handled twice. */
	EXPECT_TRUE(REACHED(stats(SERVER).replies_resent));
	fate[WIRE_FINAL] = AM_PASS;
	EXPECT_STATE(SERVER, received, RELEASED, AM_ACKED, AM_REPLY_SENT);
	EXPECT_EQ(0, stats(SERVER).buffers);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(1, answered);
}

/*
 * The reply is never acknowledged: the target gives it up, and refuses the request that asks for
 * it.
 */
TEST_F(am, amudp_reply_lost)
{
	self->o.protocol = AM_AMUDP;
	self->o.handler_max_us = LONG_HANDLER;
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
	EXPECT_NOW(SERVER, first_received(), ABANDONED, AM_ERR_ACK, AM_NOT_PROCESSED);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, SLOW));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_NOW(SERVER, received, ABANDONED, AM_NOT_ACKED, AM_HANDLER_TIMEOUT);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LATER));
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_REPLY_RTX_EXCEEDED, AM_REQUEST_SENT);
	EXPECT_NOW(SERVER, received, ABANDONED, AM_NOT_ACKED, AM_REPLY_TIMEOUT);
	EXPECT_EQ(0, stats(SERVER).buffers);
}

/*
 * Half of the pool is for replies. A request without a buffer for its reply isn't handled; it comes
 * again.
 */
TEST_F(am, amudp_pool)
{
	int i;

	self->o.protocol = AM_AMUDP;
	self->o.pool = 4;
	self->o.retries = 1000;
	self->o.handler_max_us = LONG_HANDLER;
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

/* Requests with missing pieces, perhaps for ever, keep no buffer from the others. */
TEST_F(am, amudp_pool_bulk)
{
	static uint8_t data[5000];
	int i;

	self->o.protocol = AM_AMUDP;
	self->o.retries = 1000;
	self->o.handler_max_us = LONG_HANDLER;
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	self->o.pool = 2;
	ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	ASSERT_EQ(AM_OK, connect_patiently());
	fate[WIRE_REQUEST] = AM_DROP;
	for (i = 0; i < 2; i++) {
		passing[WIRE_REQUEST] = 1;
		ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, sizeof(data)));
	}
	EXPECT_TRUE(REACHED(AM_ListReceived(ep[SERVER], NULL, 0) == 2));
	EXPECT_EQ(0, stats(SERVER).buffers);
	passing[WIRE_REQUEST] = 1;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	EXPECT_EQ(0, stats(SERVER).no_buffer);
	/* Now the pieces come, and the replies wait, because their acknowledgment is lost. */
	fate[WIRE_FINAL] = AM_DROP;
	fate[WIRE_REQUEST] = AM_PASS;
	EXPECT_TRUE(REACHED(answered == 3));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 4));
	EXPECT_EQ(4, ran);
	EXPECT_GE(2, stats(SERVER).buffers_peak);
}
