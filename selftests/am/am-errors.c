// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages: faults of calls, peers and frames. Included by am-tests.c.
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
	/* The HELLO may have been sent again before there was an answer. */
	EXPECT_LE(1, stats(SERVER).bad_protocol);
	close_both();

	self->o.protocol = AM_NWAY;
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
	AM_SetTag(ep[SERVER], 1ull << 40);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 1));
	EXPECT_EQ(AM_ERR_AGAIN, AM_Connect(ep[CALLER], 0, 0));
	EXPECT_EQ(AM_ERR_TAG, AM_Connect(ep[CALLER], 0, 1));
	EXPECT_LE(1, stats(SERVER).bad_tag);
	/* In the other direction there is no tag. */
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

/* The table has one place, and two peers come. */
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
	/* a HELLO may be retransmitted */
	EXPECT_LE(1, s.peers_refused);
	EXPECT_GE(self->o.retries + 1, s.peers_refused);
	EXPECT_EQ(AM_ERR_RESOURCE, AM_Map(ep[SERVER], 0, n, 0));
}

/* Send a frame to the server by the caller's transport. */
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
	/* The answer to that frame is for no session of the caller. */
	EXPECT_TRUE(REACHED(stats(CALLER).bad_session == 1));
	EXPECT_EQ(0, ran);
	/* A good frame is handled. */
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

/* The peer speaks another version. */
TEST_F(am, other_version)
{
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
	ep[SERVER]->transport.faults.filter = other_version;
	/* The peer refuses in its own version; it does so, too, if this end has the old one. */
	fate[WIRE_HELLO] = AM_PASS;
	AM_SetTag(ep[SERVER], 5);
	stand(CALLER);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	stand(SERVER);
	ASSERT_EQ(AM_OK, AM_Map(ep[SERVER], 0, name[CALLER], 0));
	EXPECT_EQ(AM_ERR_VERSION, AM_Connect(ep[CALLER], 0, 1));
	EXPECT_LE(1, stats(CALLER).bad_version);
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

/* The target has lost its memory: a request that it was asked before may have run. */
TEST_F(am, restarted)
{
	int in_handler = AM_OK;

	/* Each request is sent once, however slow the machine is. */
	self->o.timeout_us = 10000000;
	self->o.min_timeout_us = 10000000;
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

/*
 * Each allocation fails in turn: the call returns the error, or the conversation goes on without
 * it.
 */
TEST_F(am, no_memory)
{
	int error, n, told = 0;
	uint8_t data[100] = {};

	AM_SetTimeout(bundle, -1);
	place(CALLER, &self->o);
	for (n = 0, allocations = -1; allocations < 0; n++) {
		answered = 0;
		allocations = n;
		error = open_both(self->o);
		if (!error)
			error = AM_RequestI0(ep[CALLER], 0, ECHO, data, sizeof(data));
		if (error) {
			EXPECT_EQ(AM_ERR_RESOURCE, error);
			told++;
		} else {
			EXPECT_STATE(CALLER, sent(), DONE, AM_ACKED, AM_PROCESSED);
		}
		while (bundle->endpoints)
			AM_FreeEndpoint(bundle->endpoints);
	}
	allocations = -1;
	/* This time there was enough. */
	EXPECT_EQ(1, answered);
	/*
	 * 7 of each endpoint, 2 of the connection, 1 of the request; a target's failure returns no
	 * error.
	 */
	EXPECT_LE(17, told);
	EXPECT_LT(told + 1, n);
	EXPECT_EQ(0, leaks());
}
