// SPDX-License-Identifier: BSD-3-Clause
/*
 * Discrete-event simulation: the same machines as the chain's, but with queues at the stations,
 * random service times, N requests at once, and timers that race with them.
 */
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include "performability.h"

/* Jobs of a station. */
enum job_kind { ISSUE, AT_WIRE, AT_KERNEL, AT_PROCESS, TIMER_DUE, HELLO_DUE, RESTARTED };

struct job {
	struct job	*next;		/* next job in the station's queue */
	double		at;		/* when it comes to the station */
	unsigned long	order;		/* order of events with equal times */
	uint8_t		kind, side, msg;
	uint32_t	arg;
	unsigned int	customer, instance, generation;
};

struct server {
	struct job	*first, **last;
	bool		busy;
};

struct customer {
	struct machine	x;
	unsigned int	instance;
	bool		active, waiting;	/* has a request; waits for a connection */
	double		began, posted;
	unsigned int	timers[SIDES][MACHINE_TIMERS];	/* generations; odd: armed */
};

struct simulation {
	struct model	*m;		/* a copy, because the timeout is measured */
	double		srtt;
	gsl_rng		*rng;
	double		now;
	struct job	**heap;
	unsigned int	n, room;
	unsigned long	order;
	struct server	server[STATIONS];
	struct customer	*customers;
	struct sample	*sample;
	unsigned int	ended;
	bool		down;
	bool		unknown;	/* the target has crashed, and does not know the session */
	bool		greeting;	/* a new connection is being made */
	unsigned int	hellos;		/* HELLOs sent for it */
	unsigned int	hello;		/* number of HELLOs sent since the beginning */
};

static bool earlier(const struct job *a, const struct job *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void schedule(struct simulation *s, struct job job)
{
	struct job *j = malloc(sizeof(*j));
	unsigned int i;

	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 256;
		s->heap = realloc(s->heap, s->room * sizeof(*s->heap));
	}
	if (!j || !s->heap)
		refuse(NULL, 0, "no memory");
	*j = job;
	j->order = s->order++;
	for (i = s->n++; i && earlier(j, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = j;
}

static struct job *next_job(struct simulation *s)
{
	struct job *first = s->heap[0], *last = s->heap[--s->n];
	unsigned int i = 0, child;

	while ((child = 2 * i + 1) < s->n) {
		if (child + 1 < s->n && earlier(s->heap[child + 1], s->heap[child]))
			child++;
		if (!earlier(s->heap[child], last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return first;
}

static double service(struct simulation *s, double mean)
{
	return s->m->fixed || mean <= 0 ? mean : gsl_ran_exponential(s->rng, mean);
}

static bool happens(struct simulation *s, double p)
{
	return p > 0 && gsl_rng_uniform(s->rng) < p;
}

static int process_of(int side)
{
	return side == INITIATOR ? PROCESS_I : PROCESS_T;
}

static void arm(struct simulation *s, struct customer *c, const struct effect *e, double at)
{
	unsigned int *generation = &c->timers[e->side][e->msg];

	*generation = (*generation | 1) + 2;
	schedule(s, (struct job) {
		.at = at, .kind = TIMER_DUE, .side = e->side, .msg = e->msg,
		.customer = c - s->customers, .instance = c->instance, .generation = *generation,
	});
}

/* Send a frame; return the time at which the sender is done with it. */
static double send(struct simulation *s, struct customer *c, unsigned int instance,
		   const struct effect *e, double at)
{
	const struct model *m = s->m;

	s->sample->frames++;
	at += service(s, m->lib_send);
	if (happens(s, m->lib_fail))
		return at;
	at += service(s, m->kernel_send);
	if (!happens(s, m->kernel_fail))
		schedule(s, (struct job) {
			.at = at, .kind = AT_WIRE, .side = e->side, .msg = e->msg, .arg = e->arg,
			.customer = c - s->customers, .instance = instance,
		});
	return at;
}

/* Send a HELLO, as hello_send() of libam. */
static double hello(struct simulation *s, double at)
{
	struct effect e = { .what = DO_FRAME, .side = INITIATOR, .msg = WIRE_HELLO };

	at = send(s, s->customers, 0, &e, at);
	schedule(s, (struct job) {
		.at = at + ldexp(s->m->timeout_us, s->hellos < 6 ? s->hellos : 6),
		.kind = HELLO_DUE, .generation = ++s->hello,
	});
	s->hellos++;
	return at;
}

/* Begin to make a new connection, unless one is being made. */
static double greet(struct simulation *s, double at)
{
	if (s->greeting)
		return at;
	s->greeting = true;
	s->hellos = 0;
	return hello(s, at);
}

static double welcome(struct simulation *s, double at)
{
	unsigned int i;

	if (!s->greeting)
		return at;
	s->greeting = false;
	s->unknown = false;
	for (i = 0; i < s->m->window; i++) {
		if (!s->customers[i].waiting)
			continue;
		s->customers[i].waiting = false;
		schedule(s, (struct job) { .at = at, .kind = ISSUE, .customer = i });
	}
	return at;
}

static double over(struct simulation *s, struct customer *c, double at)
{
	if (c->x.outcome == SUCCESS)
		at += service(s, s->m->app_reply);
	sample_add(s->sample, c->x.outcome, at - c->began);
	s->ended++;
	c->instance++;
	c->active = false;
	memset(c->timers, 0, sizeof(c->timers));
	schedule(s, (struct job) {
		.at = at + (s->m->think > 0 ? gsl_ran_exponential(s->rng, s->m->think) : 0),
		.kind = ISSUE, .customer = c - s->customers, .instance = c->instance,
	});
	/* one bit of instance number can't tell late frames from those of the next request */
	if (c->x.outcome != SUCCESS && s->m->protocol == AM_NWAY && s->m->window == 1)
		return greet(s, at);
	return at;
}

static double apply(struct simulation *s, struct customer *c, const struct effects *out,
		    double at);

/* The target's process has crashed: it forgets the session's requests, and its timers are gone. */
static void forget(struct simulation *s)
{
	unsigned int i, t;

	for (i = 0; i < s->m->window; i++) {
		s->customers[i].x.forgotten = 1;
		s->customers[i].x.down = 1;
		for (t = 0; t < MACHINE_TIMERS; t++)
			s->customers[i].timers[TARGET][t] &= ~1u;
	}
}

static double choose(struct simulation *s, struct customer *c, enum effect_kind what, double at)
{
	struct choice choice[4];
	unsigned int i, n = choices(s->m, what, choice);
	struct effects out = { .n = 0 };
	double u = gsl_rng_uniform(s->rng);

	for (i = 0; i < n - 1 && u >= choice[i].p; i++)
		u -= choice[i].p;
	if (choice[i].in == IN_CRASHED && s->m->protocol != STREAM) {
		s->down = true;
		s->unknown = true;
		forget(s);
		schedule(s, (struct job) { .at = at + choice[i].us, .kind = RESTARTED });
	} else {
		at += choice[i].in == IN_LATE ? choice[i].us : service(s, choice[i].us);
	}
	machine_step(s->m, &c->x, choice[i].in, 0, 0, &out);
	return apply(s, c, &out, at);
}

static double apply(struct simulation *s, struct customer *c, const struct effects *out, double at)
{
	unsigned int i;

	for (i = 0; i < out->n; i++) {
		const struct effect *e = &out->e[i];

		switch (e->what) {
		case DO_FRAME:
			at = send(s, c, c->instance, e, at);
			break;
		case SET_TIMER:
			arm(s, c, e, at + e->us);
			break;
		case STOP_TIMER:
			c->timers[e->side][e->msg] &= ~1u;
			break;
		case CHOOSE_LOOKUP:
		case CHOOSE_HANDLER:
			return choose(s, c, e->what, at);
		case OVER:
			return over(s, c, at);
		}
	}
	return at;
}

/* The target has forgotten the session: end all of its requests. */
static double forgotten(struct simulation *s, double at)
{
	unsigned int i;

	at = greet(s, at);
	for (i = 0; i < s->m->window; i++) {
		struct customer *c = &s->customers[i];
		struct effects out = { .n = 0 };

		if (!c->x.forgotten || !c->active)
			continue;
		machine_step(s->m, &c->x, IN_FORGOTTEN, 0, 0, &out);
		at = apply(s, c, &out, at);
	}
	return at;
}

/* Handle a frame of a request that is over. With AMUDP, a reply is answered by FINAL. */
static double stale(struct simulation *s, struct customer *c, const struct job *j, double at)
{
	struct effect final = { .what = DO_FRAME, .side = INITIATOR, .msg = WIRE_FINAL };

	if (s->m->protocol == AM_AMUDP && j->msg == WIRE_REPLY)
		return send(s, c, j->instance, &final, at);
	return at;
}

static double issue(struct simulation *s, struct customer *c)
{
	struct effects out = { .n = 0 };

	if (s->greeting) {
		c->waiting = true;
		return s->now;
	}
	c->began = s->now;
	c->active = true;
	machine_step(s->m, &c->x, IN_START, 0, 0, &out);
	/* the initiator does not know of a crash */
	c->x.down = s->down;
	c->x.forgotten = s->unknown;
	c->posted = s->now + service(s, s->m->app_request);
	return apply(s, c, &out, c->posted);
}

/* Measure round trips of requests that were sent once, as measure() of engine.c. */
static void round_trip(struct simulation *s, const struct customer *c, uint8_t msg, double at)
{
	uint8_t measured = s->m->protocol == AM_AMVIA ? WIRE_ACK : WIRE_REPLY;

	if (msg != measured || c->x.istate != AM_STATE_SENT)
		return;
	s->srtt = s->srtt > 0 ? (7 * s->srtt + at - c->posted) / 8 : at - c->posted;
	s->m->ack_timeout = fmax(2 * s->srtt, s->m->min_timeout_us);
}

/* Handle a frame that libam has received. */
static double take(struct simulation *s, struct customer *c, const struct job *j, double at)
{
	struct effect answer = { .what = DO_FRAME, .side = TARGET, .msg = WIRE_WELCOME };
	struct effects out = { .n = 0 };

	if (s->m->protocol != STREAM && j->msg == WIRE_HELLO)
		return s->down ? at : send(s, c, 0, &answer, at);
	if (s->m->protocol != STREAM && j->msg == WIRE_WELCOME)
		return welcome(s, at);
	if (j->instance != c->instance)
		return stale(s, c, j, at);
	if (j->msg == WIRE_NACK && j->arg == WHY_SESSION)
		return forgotten(s, at);
	if (s->m->protocol != STREAM)
		round_trip(s, c, j->msg, at);
	machine_step(s->m, &c->x, IN_FRAME, j->msg, j->arg, &out);
	return apply(s, c, &out, at);
}

/* Perform a job; return the time at which it ends. */
static double perform(struct simulation *s, const struct job *j)
{
	const struct model *m = s->m;
	struct customer *c = &s->customers[j->customer];
	struct effects out = { .n = 0 };
	struct job next = *j;
	double at = s->now;

	switch (j->kind) {
	case ISSUE:
		return issue(s, c);
	case AT_WIRE:
		at += service(s, m->frame[frame_kind(j->msg)] * m->byte);
		if (happens(s, frame_loss(m, frame_kind(j->msg))))
			return at;
		next.kind = AT_KERNEL;
		next.side = !j->side;
		next.at = at + m->latency;
		schedule(s, next);
		return at;
	case AT_KERNEL:
		at += service(s, m->kernel_receive);
		if (happens(s, m->kernel_fail))
			return at;
		next.kind = AT_PROCESS;
		next.at = at;
		schedule(s, next);
		return at;
	case AT_PROCESS:
		at += service(s, m->lib_receive);
		return happens(s, m->lib_fail) ? at : take(s, c, j, at);
	case HELLO_DUE:
		return s->greeting && j->generation == s->hello ? hello(s, at) : at;
	default:
		if (j->instance != c->instance || j->generation != c->timers[j->side][j->msg])
			return at;
		c->timers[j->side][j->msg] &= ~1u;
		machine_step(m, &c->x, IN_TIMER, j->msg, 0, &out);
		return apply(s, c, &out, at);
	}
}

static enum station place(const struct simulation *s, const struct job *j)
{
	switch (j->kind) {
	case AT_WIRE:
		return j->side == INITIATOR ? WIRE_OUT : WIRE_BACK;
	case AT_KERNEL:
		return station_of(s->m, j->side == INITIATOR ? RECEIVE_I : RECEIVE_T);
	default:
		return station_of(s->m, process_of(j->side));
	}
}

/* Kind of an event that is no job: a server is free again. */
#define FREED	0x80

static void start(struct simulation *s, enum station k)
{
	struct server *v = &s->server[k];
	struct job *j = v->first;

	v->first = j->next;
	if (!v->first)
		v->last = &v->first;
	v->busy = true;
	schedule(s, (struct job) { .at = perform(s, j), .kind = FREED, .side = k });
	free(j);
}

static void restarted(struct simulation *s)
{
	unsigned int i;

	s->down = false;
	for (i = 0; i < s->m->window; i++)
		s->customers[i].x.down = 0;
}

static void event(struct simulation *s)
{
	struct job *j = next_job(s);
	struct server *v;

	s->now = j->at;
	if (j->kind == RESTARTED || j->kind == FREED) {
		if (j->kind == RESTARTED) {
			restarted(s);
		} else {
			v = &s->server[j->side];
			v->busy = false;
			if (v->first)
				start(s, j->side);
		}
		free(j);
		return;
	}
	v = &s->server[place(s, j)];
	j->next = NULL;
	*v->last = j;
	v->last = &j->next;
	if (!v->busy)
		start(s, v - s->server);
}

void simulate(const struct model *m, unsigned int requests, unsigned long seed, struct sample *out)
{
	struct model own = *m;
	struct simulation s = { .m = &own, .sample = out };
	unsigned int i;

	model_check_connects(m);
	memset(out, 0, sizeof(*out));
	own.ack_timeout = fmax(m->timeout_us, m->min_timeout_us);
	s.rng = gsl_rng_alloc(gsl_rng_mt19937);
	gsl_rng_set(s.rng, seed);
	s.customers = calloc(m->window, sizeof(*s.customers));
	if (!s.customers)
		refuse(NULL, 0, "no memory");
	for (i = 0; i < STATIONS; i++)
		s.server[i].last = &s.server[i].first;
	for (i = 0; i < m->window; i++)
		schedule(&s, (struct job) { .kind = ISSUE, .customer = i });
	while (s.ended < requests)
		event(&s);
	out->time = s.now;
	while (s.n)
		free(next_job(&s));
	for (i = 0; i < STATIONS; i++)
		while (s.server[i].first) {
			struct job *j = s.server[i].first;

			s.server[i].first = j->next;
			free(j);
		}
	free(s.heap);
	free(s.customers);
	gsl_rng_free(s.rng);
}
