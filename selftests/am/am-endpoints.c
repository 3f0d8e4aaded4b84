// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages: endpoints, their options and segments, and bundles.
 * Included by am-tests.c.
 */

/* The default of each option is as am.h says. */
TEST_F(am, defaults)
{
	const struct am_options *o;

	self->o = (struct am_options) { .protocol = 0 };
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	o = &ep[CALLER]->opt;
	EXPECT_EQ(AM_NWAY, o->protocol);
	EXPECT_EQ(16, o->credits);
	EXPECT_EQ(64, o->pool);
	EXPECT_EQ(64, o->peers);
	EXPECT_EQ(10, o->retries);
	EXPECT_EQ(4, o->reply_retries);
	EXPECT_EQ(100000, o->timeout_us);
	EXPECT_EQ(2000, o->min_timeout_us);
	EXPECT_EQ(1000000, o->reply_timeout_us);
	EXPECT_EQ(1000000, o->handler_max_us);
	EXPECT_EQ(60000000, o->idle_us);
}

TEST_F(am, bad_options)
{
	struct am_options bad[] = {
		{ .protocol = AM_AMUDP + 1 }, { .credits = 4097 }, { .pool = 65537 },
		{ .peers = 32768 }, { .protocol = AM_AMUDP, .pool = 1 },
	}, o = { .address = "tcp:127.0.0.1" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(AM_ERR_BAD_ARG, open_end(CALLER, bad[i]));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_AllocateEndpointWith(bundle, &o, &ep[CALLER], &name[CALLER]));
	o.address = "mem";
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_AllocateEndpointWith(bundle, &o, &ep[CALLER], &name[CALLER]));
	EXPECT_EQ(NULL, bundle->endpoints);
}

/*
 * Without options the environment has the address; "mem" doesn't work there, because it has no
 * network.
 */
TEST_F(am, environment)
{
	char text[AM_NAME_LEN];
	en_t again;

	unsetenv("AM_ADDRESS");
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_AllocateEndpoint(bundle, &ep[CALLER], &name[CALLER]));
	place(CALLER, &self->o);
	setenv("AM_ADDRESS", self->o.address, 1);
	if (net) {
		EXPECT_EQ(AM_ERR_BAD_ARG, AM_AllocateEndpoint(bundle, &ep[CALLER], &name[CALLER]));
		return;
	}
	ASSERT_EQ(AM_OK, AM_AllocateEndpoint(bundle, &ep[CALLER], &name[CALLER]));
	ASSERT_EQ(AM_OK, AM_NameToString(&name[CALLER], text, sizeof(text)));
	EXPECT_EQ(0, strncmp(text, self->o.address, 4));
	ASSERT_EQ(AM_OK, AM_NameFromString(text, &again));
	EXPECT_TRUE(name_equal(&name[CALLER], &again));
}

/* No request is retransmitted before min_timeout_us, however short the round trip is. */
TEST_F(am, min_timeout)
{
	uint64_t start;

	self->o.min_timeout_us = 50000;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	fate[WIRE_REQUEST] = AM_DROP;
	start = now(ep[CALLER]);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_STATE(CALLER, sent(), RESENT, AM_NOT_ACKED, AM_REQUEST_SENT);
	EXPECT_LE(50000, now(ep[CALLER]) - start);
}

/* In a full table, a peer that has been silent for idle_us makes place. */
TEST_F(am, idle_peer)
{
	ep_t third;
	en_t n;

	self->o.peers = 1;
	self->o.idle_us = HANDLER_MAX;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered));
	dawdle();
	AM_SetTimeout(bundle, -1);
	place(CALLER, &self->o);
	self->o.net = net;
	ASSERT_EQ(AM_OK, AM_AllocateEndpointWith(bundle, &self->o, &third, &n));
	ASSERT_EQ(AM_OK, AM_Map(third, 0, name[SERVER], 0));
	EXPECT_EQ(AM_OK, AM_Connect(third, 0, 1));
	EXPECT_EQ(0, stats(SERVER).peers_refused);
}

/* The segment and the tag are those that were set; bulk data go to their offset in the segment. */
TEST_F(am, segment_and_tag)
{
	uint8_t data[40], *part = segment[SERVER] + 100;
	void *address;
	size_t size;
	tag_t tag;

	memset(data, 7, sizeof(data));
	ASSERT_EQ(AM_OK, open_both(self->o));
	EXPECT_EQ(AM_OK, AM_GetSeg(ep[SERVER], &address, &size));
	EXPECT_EQ((void *)segment[SERVER], address);
	EXPECT_EQ(sizeof(segment[SERVER]), size);
	EXPECT_EQ(AM_OK, AM_SetSeg(ep[SERVER], part, 50));
	EXPECT_EQ(AM_OK, AM_GetSeg(ep[SERVER], &address, &size));
	EXPECT_EQ((void *)part, address);
	EXPECT_EQ(50, size);
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[CALLER], 0, 10, ECHO, data, sizeof(data)));
	EXPECT_TRUE(REACHED(answered));
	EXPECT_EQ(0, memcmp(part + 10, data, sizeof(data)));
	EXPECT_EQ(0, part[9]);
	EXPECT_EQ(0, part[50]);
	EXPECT_EQ(AM_OK, AM_SetTag(ep[SERVER], 1ull << 40));
	EXPECT_EQ(AM_OK, AM_GetTag(ep[SERVER], &tag));
	EXPECT_EQ(1ull << 40, tag);
}

static int moved;

static void take_and_move(void *token, int a, int b, int c, int d)
{
	(void)token; (void)a; (void)b; (void)c; (void)d;
	ran++;
	moved = AM_MoveEndpoint(ep[SERVER], ep[SERVER]->bundle, ep[CALLER]->bundle);
}

/* An endpoint that was moved is polled by its new bundle only. */
TEST_F(am, move)
{
	uint64_t before;
	eb_t other;
	int i;

	ASSERT_EQ(AM_OK, open_both(self->o));
	AM_SetHandler(ep[SERVER], SILENT, take_and_move);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &other));
	AM_SetTimeout(other, -1);
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_MoveEndpoint(ep[SERVER], other, bundle));
	EXPECT_EQ(AM_OK, AM_MoveEndpoint(ep[SERVER], bundle, other));
	before = stats(SERVER).frames_received;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, SILENT));
	for (i = 0; i < 100; i++)
		AM_Poll(bundle);
	EXPECT_EQ(before, stats(SERVER).frames_received);
	while (!ran)
		ASSERT_EQ(AM_OK, AM_WaitSema(other));
	EXPECT_EQ(AM_ERR_IN_HANDLER, moved);
	EXPECT_STATE(CALLER, sent(), DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(AM_OK, AM_FreeBundle(other));
}
