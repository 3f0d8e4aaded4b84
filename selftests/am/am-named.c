// SPDX-License-Identifier: GPL-2.0-only
/*
 * The name server of Active Messages, over the transport of the program that includes this:
 * questions and answers. am-named-files.c has the registry's file.
 *
 * The program defines the variants of the fixture, and place(i, options), which sets the address of
 * endpoint i.
 */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../tools/am/named.h"
#undef ARRAY_SIZE
#include "kselftest_harness.h"

/* Seconds of a test: enough on a machine that is busy with other work. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120

#define LONG_MS	60000			/* longer than any wait of a test */
#define KEY	0x123456789abcdef0ull
#define ECHO	1			/* handlers of the others' endpoints */
#define ANSWER	2
#define LOOK	3

enum { CALLER, SERVICE, OTHER, SERVER, ENDS };	/* OTHER is on another host than the first two */

static eb_t bundle;
static ep_t ep[ENDS];
static en_t name[ENDS];
static struct am_net *net;
static struct named named;
static uint64_t seconds;		/* the server's clock */
static char dir[32], path[64], part[64];
static unsigned int answered;
static int in_handler;

static void place(int i, struct am_options *o);

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

static uint64_t read_clock(void)
{
	return seconds;
}

static void take_echo(void *token, int a, int b, int c, int d)
{
	AM_Reply4(token, ANSWER, a, b, c, d);
}

static void take_answer(void *token, int a, int b, int c, int d)
{
	(void)token; (void)b; (void)c; (void)d;
	answered += a;
}

static void take_look(void *token, int a, int b, int c, int d)
{
	en_t found;

	(void)token; (void)a; (void)b; (void)c; (void)d;
	in_handler = AM_Lookup(ep[SERVICE], &name[SERVER], "a", &found, LONG_MS);
}

static int open_end(int i)
{
	struct am_options o = { .net = net };
	int error;

	place(i, &o);
	error = AM_AllocateEndpointWith(bundle, &o, &ep[i], &name[i]);
	if (error)
		return error;
	AM_SetHandler(ep[i], ECHO, take_echo);
	AM_SetHandler(ep[i], ANSWER, take_answer);
	AM_SetHandler(ep[i], LOOK, take_look);
	return AM_OK;
}

/* Open the server, and return to the caller's host. */
static int open_server(struct am_options o)
{
	int error;

	place(SERVER, &o);
	o.net = net;
	error = named_open(&named, bundle, &o, &ep[SERVER], &name[SERVER]);
	place(CALLER, &o);
	return error;
}

static int reg(int i, const char *text, uint64_t key, unsigned int lease)
{
	struct am_options o;

	/* Ask from that endpoint's host. */
	place(i, &o);
	return AM_Register(ep[i], &name[SERVER], text, key, lease, LONG_MS);
}

static int unreg(int i, const char *text, uint64_t key)
{
	struct am_options o;

	place(i, &o);
	return AM_Unregister(ep[i], &name[SERVER], text, key, LONG_MS);
}

static int look_up(const char *text, en_t *found)
{
	struct am_options o;

	place(CALLER, &o);
	return AM_Lookup(ep[CALLER], &name[SERVER], text, found, LONG_MS);
}

/* Does the name belong to that endpoint? */
static bool is_of(int i, const char *text)
{
	uint8_t host[2][NAME_HOST];
	uint32_t port[2];
	en_t found;

	if (look_up(text, &found))
		return false;
	name_split(&name[i], host[0], &port[0]);
	name_split(&found, host[1], &port[1]);
	return found.kind == name[i].kind && port[0] == port[1] &&
	       (net || !memcmp(host[0], host[1], NAME_HOST));
}

static struct am_stats stats(int i)
{
	struct am_stats s;

	AM_GetStats(ep[i], &s);
	return s;
}

FIXTURE(named) {
	struct am_options o;
};

FIXTURE_VARIANT(named) {
	const char *transport;
};

FIXTURE_SETUP(named)
{
	int i;

	/* The timeouts suit a slow disk. */
	self->o = (struct am_options) {
		.credits = 2, .idle_us = 1000, .handler_max_us = 3600000000u,
	};
	snprintf(dir, sizeof(dir), "/tmp/am-named.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/registry", dir);
	snprintf(part, sizeof(part), "%s/registry.new", dir);
	if (!strcmp(variant->transport, "mem"))
		net = AM_NewNet(64);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	for (i = CALLER; i < SERVER; i++)
		ASSERT_EQ(AM_OK, open_end(i));
	named = (struct named) {
		.registry = { .fd = -1, .most = 8, .most_of_host = 4 }, .now = read_clock,
	};
	seconds = 1000;
	ASSERT_EQ(AM_OK, registry_open(&named.registry, path, seconds));
	ASSERT_EQ(AM_OK, open_server(self->o));
}

FIXTURE_TEARDOWN(named)
{
	EXPECT_EQ(AM_OK, AM_FreeBundle(bundle));
	if (net)
		AM_FreeNet(net);
	registry_close(&named.registry);
	unlink(path);
	unlink(part);
	EXPECT_EQ(0, rmdir(dir));
	EXPECT_EQ(0, leaks());
}

/* An endpoint that was found can be asked. */
TEST_F(named, found)
{
	en_t found;

	EXPECT_EQ(AM_ERR_NAME_UNKNOWN, look_up("echo", &found));
	EXPECT_EQ(1, named.stats.unknown);
	ASSERT_EQ(AM_OK, reg(SERVICE, "echo", KEY, 0));
	ASSERT_EQ(AM_OK, look_up("echo", &found));
	EXPECT_TRUE(is_of(SERVICE, "echo"));
	/* Only endpoints of this kind find it. */
	EXPECT_EQ(NULL, registry_find(&named.registry, name[SERVICE].kind % AM_KIND_ESP + 1, "echo",
				      seconds));
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, found, 0));
	ASSERT_EQ(AM_OK, AM_Connect(ep[CALLER], 0, 1));
	ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, 7));
	while (!answered)
		ASSERT_EQ(AM_OK, AM_WaitSema(bundle));
	EXPECT_EQ(7, answered);
	/* The questions left nothing in the endpoint that asked. */
	EXPECT_EQ(1, stats(CALLER).requests);
	EXPECT_EQ(AM_ERR_NOT_MAPPED, AM_Unmap(ep[CALLER], 1));
	EXPECT_EQ(AM_OK, unreg(SERVICE, "echo", KEY));
	EXPECT_EQ(AM_ERR_NAME_UNKNOWN, look_up("echo", &found));
	EXPECT_EQ(AM_ERR_NAME_UNKNOWN, unreg(SERVICE, "echo", KEY));
	EXPECT_EQ(1, named.stats.registered);
	EXPECT_EQ(1, named.stats.unregistered);
	EXPECT_EQ(2, named.stats.lookups);
	EXPECT_EQ(3, named.stats.unknown);
}

/* The owner of a name is a process on the same host that knows the key. */
TEST_F(named, taken)
{
	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
	EXPECT_EQ(AM_ERR_NAME_TAKEN, reg(CALLER, "a", KEY + 1, 0));
	EXPECT_EQ(AM_ERR_NAME_TAKEN, unreg(CALLER, "a", KEY + 1));
	EXPECT_EQ(2, named.stats.taken);
	EXPECT_TRUE(is_of(SERVICE, "a"));
	/* In memory all are on one host. */
	if (!net) {
		EXPECT_EQ(AM_ERR_NAME_TAKEN, reg(OTHER, "a", KEY, 0));
		EXPECT_EQ(AM_ERR_NAME_TAKEN, unreg(OTHER, "a", KEY));
		EXPECT_EQ(4, named.stats.taken);
		EXPECT_TRUE(is_of(SERVICE, "a"));
	}
	EXPECT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
	EXPECT_EQ(1, named.stats.renewed);
	/* The owner begins again, with another port. */
	EXPECT_EQ(AM_OK, reg(CALLER, "a", KEY, 0));
	EXPECT_EQ(1, named.stats.replaced);
	EXPECT_TRUE(is_of(CALLER, "a"));
	EXPECT_EQ(AM_OK, unreg(SERVICE, "a", KEY));
	EXPECT_EQ(AM_OK, reg(OTHER, "a", KEY + 1, 0));
	EXPECT_TRUE(is_of(OTHER, "a"));
}

/* A lease that isn't renewed ends. */
TEST_F(named, lease)
{
	en_t found;

	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 10));
	seconds += 9;
	EXPECT_TRUE(is_of(SERVICE, "a"));
	EXPECT_EQ(AM_ERR_NAME_TAKEN, reg(OTHER, "a", 0, 10));
	EXPECT_EQ(AM_OK, reg(SERVICE, "a", KEY, 10));
	EXPECT_EQ(1, named.stats.renewed);
	seconds += 9;
	EXPECT_TRUE(is_of(SERVICE, "a"));
	seconds++;
	EXPECT_EQ(AM_ERR_NAME_UNKNOWN, look_up("a", &found));
	EXPECT_EQ(AM_ERR_NAME_UNKNOWN, unreg(SERVICE, "a", KEY));
	EXPECT_EQ(AM_OK, reg(OTHER, "a", 0, 0));
	EXPECT_EQ(1, named.stats.expired);
	EXPECT_EQ(AM_ERR_NAME_TAKEN, reg(SERVICE, "a", KEY, 10));
	seconds += 1000000;
	EXPECT_TRUE(is_of(OTHER, "a"));
	/* The name leaves the file, too. */
	EXPECT_EQ(AM_OK, reg(SERVICE, "b", KEY, 10));
	seconds += 10;
	registry_look(&named.registry, seconds, &named.stats);
	EXPECT_EQ(2, named.stats.expired);
	registry_close(&named.registry);
	ASSERT_EQ(AM_OK, registry_open(&named.registry, path, seconds));
	EXPECT_EQ(1, named.registry.n);
}

/* No room: for names of one host, and for all. */
TEST_F(named, full)
{
	char text[2] = "a";

	for (; text[0] < 'e'; text[0]++)
		EXPECT_EQ(AM_OK, reg(SERVICE, text, KEY, text[0] == 'a' ? 10 : 0));
	EXPECT_EQ(AM_ERR_NAME_FULL, reg(SERVICE, "e", KEY, 0));
	EXPECT_EQ(1, named.stats.host_full);
	/* A name that is there can be changed. */
	EXPECT_EQ(AM_OK, reg(SERVICE, "d", KEY, 1000));
	if (net)
		named.registry.most_of_host = 8;
	for (; text[0] < 'i'; text[0]++)
		EXPECT_EQ(AM_OK, reg(OTHER, text, KEY, 0));
	named.registry.most_of_host = 100;
	EXPECT_EQ(AM_ERR_NAME_FULL, reg(OTHER, "i", KEY, 0));
	EXPECT_EQ(1, named.stats.full);
	/* A name whose lease is over makes room. */
	seconds += 10;
	EXPECT_EQ(AM_OK, reg(OTHER, "i", KEY, 0));
	EXPECT_EQ(8, named.registry.n);
}

/* A wrong call returns an error before the server is asked. */
TEST_F(named, calls_refused)
{
	char text[AM_MAX_NAME + 2];
	uint64_t before = stats(SERVER).frames_received;
	en_t found, wrong = name[SERVER];

	memset(text, 'x', sizeof(text));
	text[AM_MAX_NAME + 1] = 0;
	EXPECT_EQ(AM_ERR_NAME_INVALID, reg(SERVICE, text, KEY, 0));
	EXPECT_EQ(AM_ERR_NAME_INVALID, look_up("", &found));
	EXPECT_EQ(AM_ERR_NAME_INVALID, look_up("a b", &found));
	EXPECT_EQ(AM_ERR_NAME_INVALID, unreg(SERVICE, "a\n", KEY));
	EXPECT_EQ(AM_ERR_NAME_INVALID, look_up("\177", &found));
	EXPECT_EQ(AM_ERR_NAME_INVALID, look_up("\303\244", &found));
	unsetenv("AM_NAME_SERVER");
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Lookup(ep[CALLER], NULL, "a", &found, LONG_MS));
	wrong.kind = 0;
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Lookup(ep[CALLER], &wrong, "a", &found, LONG_MS));
	EXPECT_EQ(before, stats(SERVER).frames_received);
	/* The longest name is valid. */
	text[AM_MAX_NAME] = 0;
	EXPECT_EQ(AM_OK, reg(SERVICE, text, KEY, 0));
	EXPECT_TRUE(is_of(SERVICE, text));
	/* A handler may not call it. */
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVICE], 0));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, LOOK));
	while (!in_handler)
		ASSERT_EQ(AM_OK, AM_WaitSema(bundle));
	EXPECT_EQ(AM_ERR_IN_HANDLER, in_handler);
	EXPECT_EQ(1, stats(SERVICE).refused);
}

/* The environment has the server's name. */
TEST_F(named, environment)
{
	char text[AM_NAME_LEN];
	uint8_t host[NAME_HOST];
	en_t found, server;
	uint32_t port;

	/* The server's name as the caller's host has it; memory's network has no name there. */
	name_split(&name[SERVER], host, &port);
	server = name_join(&name[CALLER], host, port);
	ASSERT_EQ(AM_OK, AM_NameToString(&server, text, sizeof(text)));
	setenv("AM_NAME_SERVER", text, 1);
	EXPECT_EQ(net ? AM_ERR_BAD_ARG : AM_ERR_NAME_UNKNOWN,
		  AM_Lookup(ep[CALLER], NULL, "a", &found, LONG_MS));
}

/* Questions of a program that doesn't use this library. */
static int code, answer_size;

static void take_code(void *token, void *data, int n, int a, int b, int c, int d)
{
	(void)token; (void)data; (void)b; (void)c; (void)d;
	code = a;
	answer_size = n;
}

static int say(handler_t handler, const void *data, int n, int version, int port)
{
	int error = AM_RequestI2(ep[CALLER], 1, handler, data, n, version, port);

	for (code = -1; !error && code < 0;)
		error = AM_WaitSema(bundle);
	return error ? -error : code;
}

TEST_F(named, strangers)
{
	static const char long_name[AM_MAX_MEDIUM] = { [0 ... AM_MAX_MEDIUM - 1] = 'x' };
	const char *keyed = "12345678a";
	struct am_state s;
	am_handle_t h;

	AM_SetHandlerI(ep[CALLER], NAMES_ANSWER, take_code);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 1, name[SERVER], NAMES_TAG));
	EXPECT_EQ(NAMES_OTHER_VERSION, say(NAMES_REGISTER, keyed, 9, NAMES_VERSION + 1, 5));
	EXPECT_EQ(NAMES_OTHER_VERSION, say(NAMES_UNREGISTER, keyed, 9, 0, 0));
	EXPECT_EQ(NAMES_OTHER_VERSION, say(NAMES_LOOKUP, "a", 1, -1, 0));
	EXPECT_EQ(3, named.stats.bad_version);
	EXPECT_EQ(NAMES_INVALID, say(NAMES_REGISTER, NULL, 0, NAMES_VERSION, 5));
	EXPECT_EQ(NAMES_INVALID, say(NAMES_REGISTER, keyed, 8, NAMES_VERSION, 5));
	EXPECT_EQ(NAMES_INVALID, say(NAMES_UNREGISTER, keyed, 7, NAMES_VERSION, 5));
	EXPECT_EQ(NAMES_INVALID, say(NAMES_LOOKUP, NULL, 0, NAMES_VERSION, 0));
	EXPECT_EQ(NAMES_INVALID, say(NAMES_LOOKUP, "a\0b", 3, NAMES_VERSION, 0));
	EXPECT_EQ(NAMES_INVALID, say(NAMES_LOOKUP, long_name, AM_MAX_NAME + 1, NAMES_VERSION, 0));
	EXPECT_EQ(NAMES_INVALID, say(NAMES_REGISTER, long_name, AM_MAX_MEDIUM, NAMES_VERSION, 5));
	EXPECT_EQ(7, named.stats.invalid);
	if (!net) {
		EXPECT_EQ(NAMES_INVALID, say(NAMES_REGISTER, keyed, 9, NAMES_VERSION, 0));
		EXPECT_EQ(NAMES_INVALID, say(NAMES_REGISTER, keyed, 9, NAMES_VERSION, 65536));
		EXPECT_EQ(NAMES_INVALID, say(NAMES_REGISTER, keyed, 9, NAMES_VERSION, -1));
	}
	/* Another handler, or another size. */
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 1, NAMES_LOOKUP));
	AM_GetTransferHandle(ep[CALLER], &h);
	do {
		ASSERT_EQ(AM_OK, AM_WaitSema(bundle));
		ASSERT_EQ(AM_OK, AM_GetTransferState(ep[CALLER], h, &s));
	} while (s.state != AM_STATE_ABANDONED);
	EXPECT_EQ(AM_CAUSE_HANDLER, s.cause);
	EXPECT_EQ(1, stats(SERVER).bad_handler);
	EXPECT_EQ(0, named.registry.n);
	EXPECT_EQ(NAMES_OK, say(NAMES_REGISTER, keyed, 9, NAMES_VERSION, 5));
	EXPECT_EQ(1, named.registry.n);
	EXPECT_EQ(NAMES_OK, say(NAMES_LOOKUP, "a", 1, NAMES_VERSION, 0));
	EXPECT_EQ(NAME_HOST, answer_size);
}

/* An endpoint that is no name server. */
TEST_F(named, no_server)
{
	en_t found;

	EXPECT_EQ(AM_ERR_TAG, AM_Lookup(ep[CALLER], &name[SERVICE], "a", &found, LONG_MS));
	EXPECT_EQ(1, stats(SERVICE).bad_tag);
	AM_SetTag(ep[SERVICE], NAMES_TAG);
	EXPECT_EQ(AM_ERR_PROTOCOL, AM_Lookup(ep[CALLER], &name[SERVICE], "a", &found, LONG_MS));
	EXPECT_EQ(1, stats(SERVICE).bad_handler);
	/* The library's version is right. */
	EXPECT_EQ(0, stats(SERVER).bad_version);
}

/* A filter changes the server's answer. */
static int new_code;

static enum am_verdict change_answer(void *arg, uint8_t *frame, size_t len)
{
	(void)arg;
	if (frame[1] != WIRE_REPLY)
		return AM_PASS;
	/* the first argument */
	frame[WIRE_HEADER + 3] = new_code;
	wire_seal(frame, len);
	return AM_PASS;
}

static enum am_verdict other_version(void *arg, uint8_t *frame, size_t len)
{
	(void)arg;
	frame[0] = WIRE_VERSION + 1;
	wire_seal(frame, len);
	return AM_PASS;
}

/* The server is newer. */
TEST_F(named, other_server)
{
	en_t found;

	ep[SERVER]->transport.faults.filter = change_answer;
	new_code = NAMES_OTHER_VERSION;
	EXPECT_EQ(AM_ERR_VERSION, look_up("a", &found));
	new_code = NAMES_STORE + 1;
	EXPECT_EQ(AM_ERR_PROTOCOL, look_up("a", &found));
	new_code = 255;
	EXPECT_EQ(AM_ERR_PROTOCOL, look_up("a", &found));
	/* The name is found, but the answer has no host. */
	new_code = NAMES_OK;
	EXPECT_EQ(AM_ERR_PROTOCOL, look_up("a", &found));
	ep[SERVER]->transport.faults.filter = other_version;
	AM_SetTag(ep[SERVER], 5);
	EXPECT_EQ(AM_ERR_VERSION, look_up("a", &found));
}

/* Frames that are cut, garbled or forged are counted, and do nothing. */
TEST_F(named, bad_frames)
{
	struct wire w = {
		.type = WIRE_REQUEST, .size = WIRE_MEDIUM, .handler = NAMES_REGISTER, .nargs = 3,
		.args = { NAMES_VERSION, 5, 0 }, .total = 9, .len = 9,
		.data = (uint8_t *)"12345678a",
	};
	struct transport *t = &ep[CALLER]->transport;
	uint8_t frame[200];
	size_t len;

	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 1, name[SERVER], NAMES_TAG));
	ASSERT_EQ(AM_OK, AM_Connect(ep[CALLER], 1, 1));
	w.session = ep[CALLER]->map[1]->session;
#define FORGE(n, counter) ({							\
	uint64_t before_ = stats(SERVER).counter;				\
										\
	t->ops->send(t, &ep[CALLER]->map[1]->name, frame, n);			\
	while (stats(SERVER).counter == before_)				\
		AM_Poll(bundle);						\
})
	len = wire_write(frame, &w);
	FORGE(len - 1, bad_length);
	FORGE(31, bad_length);
	FORGE(1, bad_length);
	frame[len - 1] ^= 1;
	FORGE(len, bad_checksum);
	frame[0]++;
	wire_seal(frame, len);
	FORGE(len, bad_version);
	frame[0]--;
	frame[1] = WIRE_TYPES;
	wire_seal(frame, len);
	FORGE(len, bad_type);
	w.total++;
	FORGE(wire_write(frame, &w), bad_field);
	w.total--;
	w.session++;
	FORGE(wire_write(frame, &w), bad_session);
	w.session--;
	EXPECT_EQ(0, named.registry.n);
	EXPECT_EQ(0, stats(SERVER).handlers_run);
	/* A good frame is handled. */
	FORGE(wire_write(frame, &w), handlers_run);
	EXPECT_EQ(1, named.registry.n);
}

/* The server doesn't answer at first, and then it does. */
TEST_F(named, away)
{
	en_t found;

	AM_FreeEndpoint(ep[SERVER]);
	EXPECT_EQ(AM_ERR_TIMEOUT, AM_Lookup(ep[CALLER], &name[SERVER], "a", &found, 50));
	EXPECT_EQ(AM_ERR_TIMEOUT, AM_Register(ep[CALLER], &name[SERVER], "a", KEY, 0, 50));
	EXPECT_EQ(AM_ERR_TIMEOUT, AM_Unregister(ep[CALLER], &name[SERVER], "a", KEY, 50));
	EXPECT_EQ(AM_ERR_TIMEOUT, AM_Lookup(ep[CALLER], &name[SERVER], "a", &found, 0));
	ASSERT_EQ(AM_OK, open_server(self->o));
	EXPECT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
	EXPECT_TRUE(is_of(SERVICE, "a"));
}

/* The server forgets the connection: the question is repeated, and answered once. */
static enum am_verdict forget(void *arg, uint8_t *frame, size_t len)
{
	unsigned int i;

	(void)len;
	if (frame[1] != WIRE_REPLY || !*(int *)arg)
		return AM_PASS;
	--*(int *)arg;
	for (i = 0; i < ep[SERVER]->opt.peers; i++)
		ep[SERVER]->peers[i].peer_session ^= 1;
	return AM_DROP;
}

TEST_F(named, forgotten)
{
	int times = 1;

	ep[SERVER]->transport.faults.filter = forget;
	ep[SERVER]->transport.faults.arg = &times;
	EXPECT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
	EXPECT_EQ(1, named.stats.registered);
	EXPECT_EQ(1, named.stats.renewed);
	times = 1;
	EXPECT_EQ(AM_OK, unreg(SERVICE, "a", KEY));
	EXPECT_EQ(1, named.stats.unregistered);
	EXPECT_EQ(1, named.stats.unknown);
}

/* Frames are lost, doubled, garbled and late. */
TEST_F_TIMEOUT(named, lossy, 120)
{
	char text[2] = "a";

	ep[SERVER]->transport.faults = (struct am_faults) {
		.seed = 1, .drop = 200, .duplicate = 200, .corrupt = 200, .delay = 200,
	};
	for (; text[0] < 'e'; text[0]++) {
		ASSERT_EQ(AM_OK, reg(SERVICE, text, KEY, 0));
		ASSERT_TRUE(is_of(SERVICE, text));
		ASSERT_EQ(AM_OK, unreg(SERVICE, text, KEY));
	}
	EXPECT_EQ(4, named.stats.registered);
	EXPECT_EQ(4, named.stats.unregistered);
	EXPECT_EQ(0, named.registry.n);
}

/* At the third refusal the server gets a free place. */
static enum am_verdict third_time(void *arg, uint8_t *frame, size_t len)
{
	(void)arg;
	(void)frame;
	(void)len;
	if (stats(SERVER).peers_refused == 3)
		ep[SERVER]->opt.idle_us = 1000;
	return AM_PASS;
}

/* The server's table of peers is full, and later it isn't. */
TEST_F(named, busy)
{
	en_t found;
	int error;

	AM_FreeEndpoint(ep[SERVER]);
	self->o.peers = 1;
	self->o.idle_us = 1000000000;
	ASSERT_EQ(AM_OK, open_server(self->o));
	AM_SetHandlerI(ep[CALLER], NAMES_ANSWER, take_code);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 1, name[SERVER], NAMES_TAG));
	EXPECT_EQ(NAMES_UNKNOWN, say(NAMES_LOOKUP, "a", 1, NAMES_VERSION, 0));
	do
		error = AM_Lookup(ep[CALLER], &name[SERVER], "a", &found, 100);
	while (error == AM_ERR_TIMEOUT);
	EXPECT_EQ(AM_ERR_FULL, error);
	ep[SERVER]->stats.peers_refused = 0;
	ep[SERVER]->transport.faults.filter = third_time;
	EXPECT_EQ(AM_ERR_NAME_UNKNOWN, look_up("a", &found));
	EXPECT_LE(3, stats(SERVER).peers_refused);
}

/* Each allocation fails in turn: the call returns the error, and nothing is lost. */
TEST_F(named, no_memory)
{
	int error, n, told = 0, stored = 0;
	bool there;
	en_t found;

	for (n = 0, allocations = -1; allocations < 0; n++) {
		allocations = n;
		error = reg(SERVICE, "a", KEY, n + 1);
		if (error == AM_ERR_NAME_STORE)
			stored++;
		else if (error == AM_ERR_RESOURCE)
			told++;
		else
			EXPECT_EQ(AM_OK, error);
		if (allocations >= 0)
			break;
		/*
		 * If an allocation of the C library fails, too, the file may be there, but its name
		 * not surely.
		 */
		there = error == AM_OK || named.registry.unsure;
		EXPECT_EQ(there, is_of(SERVICE, "a"));
		EXPECT_EQ(there ? AM_OK : AM_ERR_NAME_UNKNOWN, unreg(SERVICE, "a", KEY));
	}
	allocations = -1;
	/*
	 * The endpoint's allocations, and the connection's; the server's copy of the file's
	 * contents.
	 */
	EXPECT_LE(9, told);
	EXPECT_LE(1, stored);
	EXPECT_EQ(stored, named.stats.store_errors);
	EXPECT_EQ(AM_OK, look_up("a", &found));
}
