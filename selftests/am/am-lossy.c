// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages, each protocol, while frames are lost, doubled, garbled and late: each request
 * has its handler run as often as promised. That is once, and so is the reply's; with few retries,
 * requests are given up: of these the handler ran at most once, that of a reply never, and the
 * program was told once. Included by am-tests.c.
 *
 * $AM_REQUESTS: how many of each protocol.
 */

#define POOL		1024
#define STUCK_MS	60000		/* time in which no request changes: the test fails */

/* For each request: how often its handler ran, that of its reply, and how often it was given up. */
static struct counts {
	uint8_t	request, reply, given_up;
} *counts;
static unsigned int requests, wrong;
static unsigned int in_pool[POOL];	/* by entry of the send pool: its request */
static unsigned int given_up, causes[AM_CAUSE_DECIDED + 1];

/* Return the counts of request @a; its other arguments follow from @a, and are checked. */
static struct counts *counts_of(int a, int b, int c, int d)
{
	static struct counts nobody;

	if (a < 0 || (unsigned int)a >= requests || b != a * 3 || c || d) {
		wrong++;
		return &nobody;
	}
	return &counts[a];
}

static bool data_right(const uint8_t *data, int n, int a)
{
	int i;

	for (i = 0; i < n && data[i] == (uint8_t)(a + i); i++)
		;
	return i == n && n == a % (AM_MAX_MEDIUM + 1);
}

static void count_request(void *token, int a, int b, int c, int d)
{
	ran++;
	counts_of(a, b, c, d)->request++;
	AM_Reply2(token, ANSWER, a, b);
}

static void count_request_data(void *token, void *data, int n, int a, int b, int c, int d)
{
	ran++;
	counts_of(a, b, c, d)->request++;
	wrong += !data_right(data, n, a);
	AM_ReplyI2(token, ANSWER, data, n, a, b);
}

static void count_reply(void *token, int a, int b, int c, int d)
{
	(void)token;
	answered++;
	counts_of(a, b, c, d)->reply++;
}

static void count_reply_data(void *token, void *data, int n, int a, int b, int c, int d)
{
	wrong += !data_right(data, n, a);
	count_reply(token, a, b, c, d);
}

static void count_return(ep_t e, am_handle_t handle, const struct am_state *state, void *arg)
{
	(void)e; (void)arg;
	given_up++;
	counts[in_pool[handle >> 32]].given_up++;
	causes[state->cause]++;
}

static int request_counted(unsigned int i)
{
	uint8_t data[AM_MAX_MEDIUM];
	int j, error;

	for (j = 0; j < AM_MAX_MEDIUM; j++)
		data[j] = i + j;
	/* With few retries connections can't always be made at once. */
	do
		error = i % 4 ? AM_Request2(ep[CALLER], 0, ECHO, i, i * 3) :
				AM_RequestI2(ep[CALLER], 0, ECHO, data, i % (AM_MAX_MEDIUM + 1),
					     i, i * 3);
	while (error == AM_ERR_NETWORK);
	in_pool[sent() >> 32] = i;
	return error;
}

static void set_counting_handlers(int i)
{
	AM_SetHandler(ep[i], ECHO, count_request);
	AM_SetHandlerI(ep[i], ECHO, count_request_data);
	AM_SetHandler(ep[i], ANSWER, count_reply);
	AM_SetHandlerI(ep[i], ANSWER, count_reply_data);
	AM_SetReturnHandler(ep[i], count_return, NULL);
}

static int open_lossy(struct am_options o)
{
	int i, error;

	o.faults = (struct am_faults) { .drop = 50, .duplicate = 50, .corrupt = 50 };
	/* With one bit, late frames can't be told from the next ones. */
	o.faults.delay = o.credits == 1 ? 0 : 50;
	o.faults.seed = 1;
	AM_SetTimeout(bundle, STUCK_MS);
	for (error = open_both(o); error == AM_ERR_NETWORK; )
		error = AM_Connect(ep[CALLER], 0, 1);
	for (i = 0; !error && i < 2; i++)
		set_counting_handlers(i);
	return error;
}

/* Check the promise to each request. */
static void check_counts(struct __test_metadata *_metadata)
{
	unsigned int i, twice = 0, lost = 0, untold = 0, unasked = 0;
	const struct counts *c;

	for (i = 0; i < requests; i++) {
		c = &counts[i];
		twice += c->request > 1 || c->reply > 1 || c->given_up > 1;
		lost += c->reply && !c->request;
		untold += !c->reply && !c->given_up;
		unasked += c->reply && c->given_up;
	}
	EXPECT_EQ(0, twice);
	EXPECT_EQ(0, lost);
	EXPECT_EQ(0, untold);
	EXPECT_EQ(0, unasked);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(requests, answered + given_up);
	EXPECT_LE(answered, ran);
	EXPECT_GE(requests, ran);
}

/* Check that there were faults, and that the library's checksum found each garbled frame. */
static void check_faults(struct __test_metadata *_metadata)
{
	struct am_stats a = stats(CALLER), b = stats(SERVER);
	unsigned long cut = a.bad_length + b.bad_length;
	unsigned long garbled = a.bad_checksum + b.bad_checksum;
	unsigned long frames = a.frames_received + b.frames_received;

	TH_LOG("%u requests: handlers run %u, replies %u, given up %u (network %u, reply %u, slow %u)",
	       requests, ran, answered, given_up, causes[AM_CAUSE_NETWORK], causes[AM_CAUSE_REPLY],
	       causes[AM_CAUSE_SLOW]);
	TH_LOG("%lu frames came: %lu bad checksums, %lu cut; requests: %lu sent again, %lu duplicates",
	       frames, garbled, cut, (unsigned long)a.resent, (unsigned long)b.duplicates);
	EXPECT_EQ(ran, b.handlers_run);
	EXPECT_EQ(answered, a.replies);
	EXPECT_EQ(given_up, a.abandoned);
	EXPECT_LT(0, a.resent);
	EXPECT_LT(0, b.duplicates);
	EXPECT_LT(frames / 100, garbled + cut);
	EXPECT_EQ(0, a.bad_version + a.bad_type + a.bad_field + a.bad_handler);
	EXPECT_EQ(0, b.bad_version + b.bad_type + b.bad_field + b.bad_handler);
}

/* Make @n requests of all sizes but the largest. */
static void run_some(struct __test_metadata *_metadata, struct am_options o, unsigned int n)
{
	int error = AM_OK;
	unsigned int i;

	requests = n;
	given_up = 0;
	memset(causes, 0, sizeof(causes));
	counts = calloc(n, sizeof(*counts));
	ASSERT_NE(NULL, counts);
	ASSERT_EQ(AM_OK, open_lossy(o));
	for (i = 0; i < n; i++) {
		ASSERT_EQ(AM_OK, request_counted(i));
		if (n > 100000 && i % (n / 10) == 0)
			TH_LOG("%u of %u", i, n);
	}
	while (!error && answered + given_up < n)
		error = AM_WaitSema(bundle);
	ASSERT_EQ(AM_OK, error);
	/* Frames that are still on their way must run no handler. */
	AM_SetTimeout(bundle, 50);
	while (AM_WaitSema(bundle) == AM_OK)
		;
	check_counts(_metadata);
	check_faults(_metadata);
	close_both();
	free(counts);
}

static void run_lossy(struct __test_metadata *_metadata, struct am_options o)
{
	const char *s = getenv("AM_REQUESTS");
	unsigned int n = s ? strtoul(s, NULL, 10) : net ? 100000 : 2000;

	o.timeout_us = 2000;
	o.pool = POOL;
	if (o.protocol == AM_AMUDP)
		o.handler_max_us = net ? 5000 : 100000;
	if (!net && o.protocol == AM_AMUDP)
		o.credits = 256;	/* each lost frame takes handler_max_us */
	if (!net && o.credits == 1)
		o.min_timeout_us = 200;
	o.retries = 1000;
	o.reply_retries = 1000;
	run_some(_metadata, o, n - n / 10);
	/* If a process stands still for longer than a handler may take, the handler was slow. */
	EXPECT_EQ(given_up, causes[AM_CAUSE_SLOW]);
	if (net)	/* where time is the test's own */
		EXPECT_EQ(0, given_up);
	o.retries = 1;
	o.reply_retries = 1;
	run_some(_metadata, o, n / 10);
	EXPECT_LE(n / 10000, given_up);
}

TEST_F_TIMEOUT(am, lossy_nway, 3000)
{
	run_lossy(_metadata, self->o);
}

TEST_F_TIMEOUT(am, lossy_oneway, 3000)
{
	self->o.credits = 1;
	run_lossy(_metadata, self->o);
}

TEST_F_TIMEOUT(am, lossy_amvia, 3000)
{
	self->o.protocol = AM_AMVIA;
	run_lossy(_metadata, self->o);
}

TEST_F_TIMEOUT(am, lossy_amudp, 3000)
{
	self->o.protocol = AM_AMUDP;
	run_lossy(_metadata, self->o);
}
