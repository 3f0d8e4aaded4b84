// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages, with each protocol: messages of every size, an endpoint that is busy, and round
 * trips. Included by am-tests.c.
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

/* Messages of every size arrive, and the segments have their data. */
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

/*
 * Both endpoints ask each other at once, with fewer credits than requests: neither waits for ever.
 */
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

/* Sleep until a frame is here. */
static void wait_for_frame(struct transport *t)
{
	struct pollfd fd = { .fd = t->fd, .events = POLLIN };

	if (!t->ops->arm)
		poll(&fd, 1, -1);
	/* The sleep may end without a frame. */
	while (t->ops->arm && !t->ops->arm(t))
		poll(&fd, 1, 1);
}

/* Send a request whose reply arrives, and whose timer becomes due, before the caller looks. */
static int answered_unseen(void)
{
	int error = AM_Request0(ep[CALLER], 0, ECHO);

	while (!error && ran == answered)
		input(ep[SERVER]);
	if (error)
		return error;
	if (net) {
		mem_advance(net, ep[CALLER]->timers->at);
		return AM_OK;
	}
	wait_for_frame(&ep[CALLER]->transport);
	while (now(ep[CALLER]) < ep[CALLER]->timers->at)
		usleep(1000);
	return AM_OK;
}

/* A caller that was busy for long finds the reply that has arrived, and retransmits nothing. */
TEST_F(am, busy)
{
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, answered_unseen());
	ASSERT_EQ(AM_OK, AM_Poll(bundle));
	EXPECT_EQ(1, answered);
	EXPECT_EQ(0, stats(CALLER).resent);
	ASSERT_EQ(AM_OK, answered_unseen());
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_EQ(2, answered);
	EXPECT_EQ(0, stats(CALLER).resent);
}

/* One poll(2) can't ask for all endpoints: a frame for another one is seen soon, too. */
TEST_F(am, many_endpoints)
{
	struct transport *t;
	int i, tries = 10;
	uint64_t end;
	en_t first;

	if (net)
		return;		/* in memory nobody polls */
	for (i = 0; i < 70; i++) {
		ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
		if (!i)
			first = name[SERVER];
	}
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	t = &ep[CALLER]->transport;
	ASSERT_EQ(AM_OK, t->ops->normalize(t, &first));
	ASSERT_EQ(0, t->ops->send(t, &first, "?", 1));
	do {
		end = now(ep[CALLER]) + 1000000;
		ASSERT_EQ(AM_OK, wait_a_while(bundle, end, false));
	} while (now(ep[CALLER]) >= end && --tries);
	EXPECT_LT(0, tries);
}

/*
 * An endpoint that sends only large messages measures their round trip, for want of a better one.
 */
TEST_F(am, large_only)
{
	static uint8_t data[AM_MAX_LONG];
	struct peer *p;

	AM_SetTimeout(bundle, -1);
	self->o.timeout_us = 1000000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	p = ep[CALLER]->map[0];
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, sizeof(data)));
	EXPECT_TRUE(REACHED(answered == 1));
	EXPECT_LT(0, p->srtt);
	EXPECT_TRUE(p->srtt_large);
	passing[WIRE_REQUEST] = 1;
	fate[WIRE_REQUEST] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, sizeof(data)));
	fate[WIRE_REQUEST] = AM_PASS;
	EXPECT_TRUE(REACHED(answered == 2));
	EXPECT_LT(0, stats(CALLER).resent);
	/*
	 * The round trip of a small message takes the place of that; a large one doesn't change it
	 * again.
	 */
	p->srtt = 100000000;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 3));
	EXPECT_GT(100000000 * 7 / 8, p->srtt);
	p->srtt = 100000000;
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, sizeof(data)));
	EXPECT_TRUE(REACHED(answered == 4));
	EXPECT_EQ(100000000, p->srtt);
}
