// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages: an endpoint's work with the log of a former life, and all that it must not do
 * before the program decides. Included by host-am.c, after am-log-disk.c.
 */

static uint8_t kept[200000];		/* a log as it was some time ago */
static size_t kept_size;

static void keep_log(void)
{
	kept_size = read_file(log_path, kept, sizeof(kept));
}

/* Open an end, at the same address in each life. */
static int open_at(int i, struct am_options o, const char *address)
{
	int error;

	o.address = address;
	o.faults.filter = o.faults.filter ? o.faults.filter : filter;
	error = AM_AllocateEndpointWith(bundle, &o, &ep[i], &name[i]);
	if (!error)
		set_handlers(i);
	return error;
}

/* Open both ends of a connection; @logged has the log. */
static int open_ends(const struct am_options *o, char address[2][40], int logged)
{
	struct am_options other = *o;
	int error;

	other.log = NULL;
	error = open_at(logged, *o, address[logged]);
	if (!error)
		error = open_at(!logged, other, address[!logged]);
	if (!error)
		error = AM_Map(ep[CALLER], 0, name[SERVER], 0);
	while (!error && ep[CALLER]->map[0]->hello != HELLO_DONE)
		AM_WaitSema(bundle);
	return error;
}

/* Send a frame from @from to the other end, past all filters. */
static void send_to_other(int from, struct wire w)
{
	uint8_t frame[200];

	ep[from]->transport.ops->send(&ep[from]->transport, &name[!from], frame,
				      wire_write(frame, &w));
}

/* Send the server's answer to the caller's request in slot 0. */
static void answer_by_hand(uint8_t type, uint16_t instance)
{
	struct wire w = {
		.type = type, .session = ep[SERVER]->peers[0].peer_session,
		.instance = instance,
	};

	if (type == WIRE_REPLY)
		w.size = WIRE_SHORT;
	w.handler = type == WIRE_REPLY ? ANSWER : type == WIRE_NACK ? WHY_HANDLER : 0;
	send_to_other(SERVER, w);
}

/*
 * An undecided request is left alone, whatever comes; after the decision it gets the reply that is
 * kept.
 */
TEST_F(log, undecided_request)
{
	struct am_state s, before;
	struct am_record r;
	unsigned int n;
	am_handle_t h;

	self->o.handler_max_us = 1000000000;
	ASSERT_EQ(AM_OK, open_ends(&self->o, self->address, CALLER));
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, 5));
	EXPECT_TRUE(REACHED(ran == 1 && seen[WIRE_REPLY]));
	AM_FreeEndpoint(ep[CALLER]);
	ASSERT_EQ(AM_OK, open_at(CALLER, self->o, self->address[CALLER]));
	ASSERT_EQ(1, AM_ListSent(ep[CALLER], &h, 1));
	before = state_of(CALLER, h);
	n = seen[WIRE_REQUEST];
	answer_by_hand(WIRE_ACK, before.instance);
	answer_by_hand(WIRE_NACK, before.instance);
	answer_by_hand(WIRE_REPLY, before.instance);
	EXPECT_TRUE(REACHED(stats(CALLER).frames_received == 3));
	EXPECT_EQ(3, stats(CALLER).late);
	EXPECT_EQ(0, answered);
	EXPECT_EQ(n, seen[WIRE_REQUEST]);
	EXPECT_EQ(0, seen[WIRE_FINAL]);
	ASSERT_EQ(AM_OK, AM_GetRecord(ep[CALLER], h, &r));
	s = r.state;
	EXPECT_EQ(0, memcmp(&before, &s, sizeof(s)));
	EXPECT_EQ(1, r.undecided);
	EXPECT_EQ(AM_OK, AM_Decide(ep[CALLER], h, AM_SEND_AGAIN));
	fate[WIRE_REPLY] = AM_PASS;
	EXPECT_STATE(CALLER, h, DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(1, answered);
	EXPECT_EQ(5, last[0]);
}

static enum am_verdict log_at_request(void *arg, uint8_t *frame, size_t len)
{
	if (frame[1] == WIRE_REQUEST && !kept_size)
		keep_log();
	return filter(arg, frame, len);
}

/*
 * The process is killed while the request leaves: it is not known whether it did. A reply that
 * comes before the request is sent again doesn't count, but will be needed.
 */
TEST_F(log, reply_before_request)
{
	am_handle_t h;

	kept_size = 0;
	self->o.handler_max_us = 1000000000;
	self->o.faults.filter = log_at_request;
	ASSERT_EQ(AM_OK, open_ends(&self->o, self->address, CALLER));
	fate[WIRE_ACK] = AM_DROP;
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, 5));
	/* AMVIA's handler runs at once, too. */
	EXPECT_TRUE(REACHED(ran == 1 && seen[WIRE_REPLY]));
	AM_FreeEndpoint(ep[CALLER]);
	ASSERT_TRUE(write_file(log_path, kept, kept_size));
	ASSERT_EQ(AM_OK, open_at(CALLER, self->o, self->address[CALLER]));
	ASSERT_EQ(1, AM_ListSent(ep[CALLER], &h, 1));
	EXPECT_NOW(CALLER, h, CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED);
	fate[WIRE_REQUEST] = AM_BLOCK;
	EXPECT_EQ(AM_OK, AM_Decide(ep[CALLER], h, AM_SEND_AGAIN));
	answer_by_hand(WIRE_REPLY, state_of(CALLER, h).instance);
	EXPECT_TRUE(REACHED(stats(CALLER).late));
	EXPECT_EQ(0, answered);
	EXPECT_NOW(CALLER, h, CREATED, AM_NOT_ACKED, AM_NOT_PROCESSED);
	memset(fate, 0, sizeof(fate));
	EXPECT_STATE(CALLER, h, DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(1, ran);
	EXPECT_EQ(1, answered);
	EXPECT_EQ(5, last[0]);
}

/* A request that was received waits, too, however often it comes again. */
TEST_F(log, undecided_received)
{
	struct am_record r;
	am_handle_t h;

	self->o.handler_max_us = 1000000000;
	ASSERT_EQ(AM_OK, open_ends(&self->o, self->address, SERVER));
	/* AMVIA's handler has not even begun. */
	fate[WIRE_ACK] = AM_BLOCK;
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, LATER, 5));
	EXPECT_TRUE(REACHED(state_of(SERVER, first_received()).state == AM_STATE_SENT));
	EXPECT_EQ(variant->protocol == AM_AMVIA ? 0 : 1, ran);
	AM_FreeEndpoint(ep[SERVER]);
	memset(fate, 0, sizeof(fate));
	ran = 0;
	ASSERT_EQ(AM_OK, open_at(SERVER, self->o, self->address[SERVER]));
	ASSERT_EQ(1, AM_ListReceived(ep[SERVER], &h, 1));
	while (stats(SERVER).frames_received < 3) {
		send_to_other(CALLER, (struct wire) {
			.type = WIRE_REQUEST, .size = WIRE_SHORT, .handler = LATER, .nargs = 1,
			.args = { 5 }, .session = ep[CALLER]->map[0]->session,
		});
		AM_WaitSema(bundle);
	}
	EXPECT_EQ(0, ran);
	ASSERT_EQ(AM_OK, AM_GetRecord(ep[SERVER], h, &r));
	EXPECT_EQ(1, r.undecided);
	EXPECT_EQ(AM_STATE_SENT, r.state.state);
	EXPECT_EQ(AM_OK, AM_Decide(ep[SERVER], h, AM_RUN_AGAIN));
	EXPECT_EQ(1, ran);
	EXPECT_EQ(h, received);
	ASSERT_NE(NULL, later);
	EXPECT_EQ(AM_OK, AM_Reply1(later, ANSWER, 7));
	EXPECT_STATE(CALLER, sent(), DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(7, last[0]);
}

#define STATES	200

static struct moment {
	uint8_t		*file;
	size_t		size;
	uint32_t	serial;		/* the highest that a handle had */
} moments[STATES];

static unsigned int nmoments;
static uint32_t given;

static void keep_moment(void *arg)
{
	struct moment *m = &moments[nmoments];

	(void)arg;
	if (nmoments == STATES)
		return;
	m->file = malloc(200000);
	m->size = m->file ? read_file(log_path, m->file, 200000) : 0;
	m->serial = given;
	nmoments += !!m->size;
}

/* Restore the log as it was at a step. */
static bool back_to(const struct moment *m)
{
	bool ok = write_file(log_path, m->file, m->size);

	free(m->file);
	return ok;
}

static void request_by_hand(uint32_t session, uint16_t slot, uint16_t instance)
{
	send_to_other(CALLER, (struct wire) {
		.type = WIRE_REQUEST, .size = WIRE_SHORT, .handler = ECHO, .session = session,
		.slot = slot, .instance = instance,
	});
}

/*
 * The first request of a new session: killed at any step, the target either knows the requests that
 * it handled in the old session, or refuses all of them; and it takes no request of the new one for
 * an old one.
 */
TEST_F(log, new_session)
{
	uint32_t old, new;
	unsigned int i;

	ASSERT_EQ(AM_OK, open_ends(&self->o, self->address, SERVER));
	old = ep[CALLER]->map[0]->session;
	/* Two requests at once, in both slots if there are two. */
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 2));
	ASSERT_EQ(AM_OK, AM_Unmap(ep[CALLER], 0));
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	ASSERT_EQ(AM_OK, AM_Connect(ep[CALLER], 0, 1));
	new = ep[CALLER]->map[0]->session;
	ep[SERVER]->transport.faults.step = keep_moment;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 3));
	AM_FreeEndpoint(ep[SERVER]);
	TH_LOG("%u states", nmoments);
	/*
	 * The steps: the old session is gone, the slots' records, the new session, the request's
	 * own.
	 */
	EXPECT_LE(3 * (3 + variant->credits), nmoments);
	AM_SetTimeout(bundle, 5);
	/* A FINAL of another session would be counted like an old request. */
	fate[WIRE_FINAL] = AM_DROP;
	for (i = 0; i < nmoments; i++) {
		ran = 0;
		ASSERT_TRUE(back_to(&moments[i]));
		ASSERT_EQ(AM_OK, open_at(SERVER, self->o, self->address[SERVER]));
		/* The last request that each slot had. */
		request_by_hand(old, 0, variant->credits == 1);
		if (variant->credits > 1)
			request_by_hand(old, 1, 0);
		EXPECT_TRUE(REACHED(ran || stats(SERVER).duplicates +
				    stats(SERVER).bad_session == variant->credits));
		EXPECT_EQ(0, ran)
			TH_LOG("state %u", i);
		if (variant->credits > 1) {
			request_by_hand(new, 1, 0);
			EXPECT_TRUE(REACHED(ran || stats(SERVER).duplicates +
					    stats(SERVER).bad_session > variant->credits));
			EXPECT_EQ(1, ran)
				TH_LOG("state %u", i);
		}
		AM_FreeEndpoint(ep[SERVER]);
	}
}

/* A number that was given is never given again, at whichever step the process was killed. */
TEST_F(log, numbers)
{
	unsigned int i;

	self->o.pool = variant->protocol == AM_AMUDP ? 2 : 1;
	ASSERT_EQ(AM_OK, open_ends(&self->o, self->address, CALLER));
	ep[CALLER]->transport.faults.step = keep_moment;
	AM_SetTimeout(bundle, -1);
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
		given = (uint32_t)sent();
		EXPECT_TRUE(REACHED(answered == i));
	}
	AM_FreeEndpoint(ep[CALLER]);
	EXPECT_EQ(3, given);
	TH_LOG("%u states", nmoments);
	for (i = 0; i < nmoments; i++) {
		ASSERT_TRUE(back_to(&moments[i]));
		ASSERT_EQ(AM_OK, open_at(CALLER, self->o, self->address[CALLER]));
		EXPECT_LE(moments[i].serial, ep[CALLER]->serial)
			TH_LOG("state %u", i);
		AM_FreeEndpoint(ep[CALLER]);
	}
}

/* A call that fails removes no record. */
TEST_F(log, refused_call)
{
	static uint8_t data[5000];
	am_handle_t h;

	self->o.pool = variant->protocol == AM_AMUDP ? 2 : 1;
	ASSERT_EQ(AM_OK, open_ends(&self->o, self->address, CALLER));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	h = sent();
	EXPECT_TRUE(REACHED(answered));
	EXPECT_EQ(AM_ERR_TOO_BIG, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, 4097));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Request0(ep[CALLER], 0, AM_HANDLERS));
	EXPECT_NOW(CALLER, h, DONE, AM_ACKED, AM_PROCESSED);
}

/*
 * In a full table the place of a connection that isn't mapped again is free when the peer is idle.
 */
TEST_F(log, idle_connection)
{
	struct am_options o = self->o;
	en_t third;

	ASSERT_EQ(AM_OK, AM_NameFromString("udp:127.0.0.1:9", &third));
	ASSERT_EQ(AM_OK, open_ends(&self->o, self->address, CALLER));
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	AM_FreeEndpoint(ep[CALLER]);
	o.idle_us = HANDLER_MAX;
	ASSERT_EQ(AM_OK, open_at(CALLER, o, self->address[CALLER]));
	dawdle();
	/* The peer has a request that waits. */
	EXPECT_EQ(AM_ERR_RESOURCE, AM_Map(ep[CALLER], 0, third, 0));
	memset(fate, 0, sizeof(fate));
	EXPECT_EQ(AM_OK, AM_Decide(ep[CALLER], 1, AM_SEND_AGAIN));
	EXPECT_STATE(CALLER, 1, DONE, AM_ACKED, AM_PROCESSED);
	AM_FreeEndpoint(ep[CALLER]);
	/* A connection of one bit has begun anew. */
	ASSERT_EQ(AM_OK, open_at(CALLER, self->o, self->address[CALLER]));
	EXPECT_EQ(variant->credits == 1 ? AM_OK : AM_ERR_RESOURCE,
		  AM_Map(ep[CALLER], 0, third, 0));
	AM_FreeEndpoint(ep[CALLER]);
	if (variant->credits == 1)
		return;
	ASSERT_EQ(AM_OK, open_at(CALLER, o, self->address[CALLER]));
	dawdle();
	EXPECT_EQ(AM_OK, AM_Map(ep[CALLER], 0, third, 0));
}

/*
 * Each allocation of a restart fails in turn: the call returns the error, and the log is as it was.
 */
TEST_F(log, restart_no_memory)
{
	int error, n, told = 0;
	uint32_t says;

	ASSERT_EQ(AM_OK, make_log(&self->o));
	ASSERT_EQ(AM_OK, open_own(&self->o));
	says = digest();
	AM_FreeEndpoint(ep[CALLER]);
	for (n = 0, allocations = -1; allocations < 0; n++) {
		allocations = n;
		error = open_own(&self->o);
		if (error) {
			EXPECT_EQ(AM_ERR_RESOURCE, error);
			told++;
			continue;
		}
		EXPECT_EQ(says, digest());
		AM_FreeEndpoint(ep[CALLER]);
	}
	allocations = -1;
	/* 7 of the endpoint, that of the log, 3 of the peer. */
	EXPECT_LE(11, told);
	EXPECT_EQ(told + 1, n);
	EXPECT_EQ(0, leaks());
}
