// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages with a log at both ends, which end and begin again while a reply is missing.
 * Included by sock-am.c and sock-verbs.c, whose between_lives() runs meanwhile.
 */

static void between_lives(void);

/* Open an end with a log, at a port of its own. */
static int open_logged(int i, struct am_options o, const char *dir)
{
	char address[40], path[64];
	int error;

	place(i, &o);
	snprintf(address, sizeof(address), "%s:4000", o.address);
	snprintf(path, sizeof(path), "%s/%d", dir, i);
	o.address = address;
	o.log = path;
	o.faults.filter = filter;
	o.faults.arg = &ep[i];
	error = AM_AllocateEndpointWith(bundle, &o, &ep[i], &name[i]);
	if (!error)
		set_handlers(i);
	return error;
}

TEST_F(am, log_lives)
{
	char dir[] = "/tmp/am-log.XXXXXX", path[64];
	struct am_record r;
	am_handle_t h;
	int i;

	ASSERT_NE(NULL, mkdtemp(dir));
	self->o.retries = 1000;
	self->o.pool = 4;
	self->o.peers = 1;
	self->o.log_data = AM_MAX_MEDIUM;
	ASSERT_EQ(AM_OK, open_logged(CALLER, self->o, dir));
	ASSERT_EQ(AM_OK, open_logged(SERVER, self->o, dir));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	ASSERT_EQ(AM_OK, AM_Connect(ep[CALLER], 0, 1));
	fate[WIRE_REPLY] = AM_DROP;
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, 7));
	EXPECT_TRUE(REACHED(seen[WIRE_REPLY]));
	AM_FreeEndpoint(ep[CALLER]);
	AM_FreeEndpoint(ep[SERVER]);
	between_lives();
	fate[WIRE_REPLY] = AM_PASS;
	ASSERT_EQ(AM_OK, open_logged(CALLER, self->o, dir));
	ASSERT_EQ(AM_OK, open_logged(SERVER, self->o, dir));
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
