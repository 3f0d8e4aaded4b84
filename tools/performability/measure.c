// SPDX-License-Identifier: BSD-3-Clause
/*
 * Measurement of libam itself, with two endpoints on a network in memory. The network has the
 * service times and the faults of the model. Each host has a clock, which its work advances. The
 * host whose next event comes first is polled. Bits that are wrong are flipped in the frames.
 */
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include "performability.h"

#define ECHO		1
#define ANSWER		2
#define NOBODY		3
#define MAX_FRAME	2048
#define POOL		1024

struct arrival {
	struct arrival	*next;
	double		at;
	size_t		len;
	uint8_t		data[MAX_FRAME];
};

struct call {
	bool		out;
	double		ready, began;
	am_handle_t	handle;
};

/* Static, because handlers and transports get no pointer to them. */
static const struct model *model;
static struct sample *result;
static gsl_rng *rng;
static ep_t ends[SIDES];
static eb_t bundles[SIDES];
static en_t names[SIDES];
static double clocks[SIDES], kernel_free[SIDES], wire_free[SIDES];
static struct arrival *inbox[SIDES];
static struct call calls[256];
static bool crashed;
static double back_at;

static double *clock_of(int side)
{
	return &clocks[model->processors == ONE_PROCESSOR ? 0 : side];
}

static double service(double mean)
{
	return model->fixed || mean <= 0 ? mean : gsl_ran_exponential(rng, mean);
}

static bool happens(double p)
{
	return p > 0 && gsl_rng_uniform(rng) < p;
}

/*
 * The transport
 */

/* Flip bits at random; false: one is outside of libam's frame, where the card would find it. */
static bool garble(uint8_t *data, size_t len, double bytes)
{
	unsigned int n = gsl_ran_binomial(rng, model->ber, 8 * bytes);
	bool inside = true;

	while (n--) {
		unsigned long bit = gsl_rng_uniform_int(rng, 8 * bytes);

		if (bit / 8 < len)
			data[bit / 8] ^= 1 << bit % 8;
		else
			inside = false;
	}
	return inside;
}

static void deliver(int to, struct arrival *a)
{
	struct arrival **link;

	for (link = &inbox[to]; *link && (*link)->at <= a->at; link = &(*link)->next)
		;
	a->next = *link;
	*link = a;
}

static int sim_send(struct transport *t, const en_t *name, const void *data, size_t len)
{
	int side = t->node, to = !side;
	double *now = clock_of(side), bytes;
	struct arrival *a;
	enum frame_kind kind = frame_kind(((const uint8_t *)data)[1]);

	(void)name;
	if (crashed && side == TARGET)
		return 0;
	result->frames++;
	*now += service(model->lib_send);
	if (happens(model->lib_fail))
		return 0;
	*now += service(model->kernel_send);
	if (happens(model->kernel_fail))
		return 0;
	bytes = model->frame[kind];
	wire_free[side] = fmax(wire_free[side], *now) + service(bytes * model->byte);
	a = malloc(sizeof(*a));
	if (!a || len > sizeof(a->data))
		refuse(NULL, 0, "no memory");
	memcpy(a->data, data, len);
	a->len = len;
	a->at = wire_free[side] + model->latency;
	if (happens(model->network_fail) || !garble(a->data, len, bytes)) {
		free(a);
		return 0;
	}
	if (model->processors == TWO_PER_HOST) {
		kernel_free[to] = fmax(kernel_free[to], a->at) + service(model->kernel_receive);
		a->at = kernel_free[to];
	}
	deliver(to, a);
	return 0;
}

static int sim_receive(struct transport *t, struct frame *frames, int n, size_t room)
{
	int side = t->node;
	double *now = clock_of(side);
	struct arrival *a = inbox[side];
	bool lost;

	if (!n || !a || a->at > *now)
		return 0;
	inbox[side] = a->next;
	if (model->processors != TWO_PER_HOST)
		*now += service(model->kernel_receive);
	lost = happens(model->kernel_fail);
	if (!lost) {
		*now += service(model->lib_receive);
		lost = happens(model->lib_fail);
	}
	if (!lost) {
		frames[0].from = names[!side];
		frames[0].len = a->len;
		memcpy(frames[0].data, a->data, a->len < room ? a->len : room);
	}
	free(a);
	return !lost;
}

static uint64_t sim_now(struct transport *t)
{
	return *clock_of(t->node) + 1;
}

static int sim_normalize(struct transport *t, en_t *name)
{
	(void)t;
	(void)name;
	return AM_OK;
}

static void sim_close(struct transport *t)
{
	(void)t;
}

static const struct transport_ops sim_ops = {
	.close = sim_close, .send = sim_send, .receive = sim_receive, .now = sim_now,
	.normalize = sim_normalize,
};

/*
 * Handlers
 */

static void on_request(void *token, int id, int a1, int a2, int a3)
{
	struct choice c[4];
	unsigned int i, n = choices(model, CHOOSE_HANDLER, c);
	double u = gsl_rng_uniform(rng), *now = clock_of(TARGET);

	(void)a1;
	(void)a2;
	(void)a3;
	for (i = 0; i < n - 1 && u >= c[i].p; i++)
		u -= c[i].p;
	if (c[i].in == IN_CRASHED) {
		crashed = true;
		back_at = *now + c[i].us;
		return;
	}
	*now += c[i].in == IN_LATE ? c[i].us + 1 : service(c[i].us);
	AM_Reply1(token, ANSWER, id);
}

static void ended(unsigned int id, enum outcome o)
{
	double now = *clock_of(INITIATOR);

	calls[id].out = false;
	calls[id].ready = now + (model->think > 0 ? gsl_ran_exponential(rng, model->think) : 0);
	sample_add(result, o, now - calls[id].began);
}

static void on_reply(void *token, int id, int a1, int a2, int a3)
{
	(void)token;
	(void)a1;
	(void)a2;
	(void)a3;
	*clock_of(INITIATOR) += service(model->app_reply);
	ended(id, SUCCESS);
}

static void on_return(ep_t ep, am_handle_t handle, const struct am_state *s, void *arg)
{
	unsigned int i;

	(void)ep;
	(void)arg;
	for (i = 0; i < model->window; i++)
		if (calls[i].out && calls[i].handle == handle)
			ended(i, s->ack == AM_ACK_NOT_FOUND ? NO_HANDLER_FOUND :
				 s->ack == AM_REPLY_RTX_EXCEEDED ? GAVE_UP_REPLY : GAVE_UP_REQUEST);
}

/*
 * Both hosts
 */

static void must(int error)
{
	if (error)
		refuse(NULL, 0, "libam: %s", AM_ErrorName(error));
}

static void open_end(int side, struct am_net *net)
{
	struct am_options o = {
		.address = "mem", .net = net, .protocol = model->protocol,
		.credits = model->window, .pool = POOL, .retries = model->retries,
		.reply_retries = model->reply_retries, .timeout_us = model->timeout_us,
		.min_timeout_us = model->min_timeout_us,
		.reply_timeout_us = model->reply_timeout_us,
		.handler_max_us = model->handler_max_us,
	};
	struct transport *t;

	must(AM_AllocateEndpointWith(bundles[side], &o, &ends[side], &names[side]));
	t = &ends[side]->transport;
	t->ops = &sim_ops;
	t->node = side;
	memcpy(t->name.address, &t->node, sizeof(t->node));
	names[side] = t->name;
	must(AM_SetHandler(ends[side], ECHO, on_request));
	must(AM_SetHandler(ends[side], ANSWER, on_reply));
	must(AM_SetReturnHandler(ends[side], on_return, NULL));
}

/* Time of a host's next event. */
static double next_event(int side)
{
	double at = inbox[side] ? inbox[side]->at : INFINITY;
	const struct timer *t;
	unsigned int i;

	if (side == TARGET && crashed)
		return fmax(back_at, *clock_of(side));
	for (t = ends[side]->timers; t; t = t->next)
		at = fmin(at, t->at - 1.0);
	if (side == INITIATOR && ends[side]->map[0]->hello == HELLO_FAILED)
		at = 0;
	for (i = 0; side == INITIATOR && i < model->window; i++)
		if (!calls[i].out && ends[side]->map[0]->hello == HELLO_DONE)
			at = fmin(at, calls[i].ready);
	return fmax(at, *clock_of(side));
}

static void restart(struct am_net *net)
{
	struct arrival *a;

	must(AM_FreeEndpoint(ends[TARGET]));
	while (inbox[TARGET] && inbox[TARGET]->at <= back_at) {
		a = inbox[TARGET];
		inbox[TARGET] = a->next;
		free(a);
	}
	crashed = false;
	open_end(TARGET, net);
}

static void issue(void)
{
	ep_t ep = ends[INITIATOR];
	double *now = clock_of(INITIATOR);
	unsigned int i;

	for (i = 0; i < model->window && ep->map[0]->hello == HELLO_DONE; i++) {
		if (calls[i].out || calls[i].ready > *now)
			continue;
		calls[i].out = true;
		calls[i].began = *now;
		*now += service(model->app_request);
		must(AM_Request1(ep, 0, happens(model->missing) ? NOBODY : ECHO, i));
		must(AM_GetTransferHandle(ep, &calls[i].handle));
	}
	if (ep->map[0]->hello == HELLO_FAILED)
		hello_start(ep->map[0]);
}

static void step(struct am_net *net)
{
	double at[SIDES] = { next_event(INITIATOR), next_event(TARGET) };
	int side = at[TARGET] < at[INITIATOR];

	if (isinf(at[side]))
		refuse(NULL, 0, "libam waits for ever");
	*clock_of(side) = at[side];
	if (side == TARGET && crashed) {
		restart(net);
		return;
	}
	must(AM_Poll(bundles[side]));
	if (side == INITIATOR)
		issue();
}

void measure(const struct model *m, unsigned int requests, unsigned long seed, struct sample *out)
{
	struct am_net *net = AM_NewNet(1);
	struct arrival *a;
	unsigned int n, o;
	int side;

	if (m->protocol == STREAM)
		refuse(m->file, 0, "libam has no streams: esp is for sockets (--at)");
	model_check_connects(m);
	memset(out, 0, sizeof(*out));
	memset(clocks, 0, sizeof(clocks));
	memset(kernel_free, 0, sizeof(kernel_free));
	memset(wire_free, 0, sizeof(wire_free));
	memset(calls, 0, sizeof(calls));
	crashed = false;
	model = m;
	result = out;
	rng = gsl_rng_alloc(gsl_rng_mt19937);
	gsl_rng_set(rng, seed);
	for (side = 0; side < SIDES; side++) {
		must(AM_AllocateBundle(AM_SEQ, &bundles[side]));
		open_end(side, net);
	}
	must(AM_Map(ends[INITIATOR], 0, names[TARGET], 0));
	do {
		step(net);
		for (n = 0, o = 0; o < OUTCOMES; o++)
			n += out->ended[o];
	} while (n < requests);
	out->time = *clock_of(INITIATOR);
	for (side = 0; side < SIDES; side++) {
		while ((a = inbox[side])) {
			inbox[side] = a->next;
			free(a);
		}
		AM_FreeBundle(bundles[side]);
	}
	AM_FreeNet(net);
	gsl_rng_free(rng);
}
