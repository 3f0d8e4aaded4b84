// SPDX-License-Identifier: BSD-3-Clause
/*
 * The Markov reward chain of one request that has the network for itself. A state consists of the
 * two machines, their timers, and the frames on their way. An event leads from one state to the
 * next. A state has several successors if a frame can be lost, or a handler can fail. Service times
 * are fixed here. That does not change the mean, except where timers race.
 *
 * Let Q be the probabilities among transient states. I - Q is decomposed once (LU). The fundamental
 * matrix (I - Q)^-1 times the rewards of states is what a request gathers until it is absorbed
 * (Kemeny, Snell, Finite Markov Chains, ch. 3).
 */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_permutation.h>
#include <math.h>
#include <stdlib.h>
#include "performability.h"

#define PS		1e6		/* picoseconds in a us */
#define LONGEST		1e12		/* longest time, us; sums of it fit into picoseconds */
#define MAX_STATES	3000
#define MAX_PENDING	48
#define UNLIKELY	(1 / 1e7)	/* paths of a stream that are less likely are cut off */

enum pending_kind { FRAME, RESTART, TIMER };

struct pending {
	int64_t		at;
	uint8_t		kind, side, msg, zero;
	uint32_t	arg;
};

struct node {
	struct machine	x;
	uint32_t	n;		/* pending events */
	int64_t		busy[SIDES];	/* time for which each side is busy, ps from now */
	struct pending	q[MAX_PENDING];	/* pending events, in order of time */
};

struct edge {
	unsigned int	from, to;	/* to: state, or MAX_STATES + outcome */
	double		p, us;
};

/* Expected rewards of the step that leaves a state. */
struct reward {
	double		demand[STATIONS], ghost[STATIONS], visits[STATIONS];
	double		latency, frames;
};

struct builder {
	const struct model *m;
	struct node	*nodes;
	struct reward	*rewards;
	double		*likely;	/* probability of each state, by the first path found */
	unsigned int	n;
	unsigned int	*table;		/* hash table of indices + 1 */
	struct edge	*edges;
	unsigned int	nedges, edge_room;
	unsigned int	from;		/* state whose successors are being made */
	struct reward	*reward;	/* reward of that state */
	int64_t		now;		/* time of the event that leaves it, ps after its start */
};

#define TABLE	8192

static size_t node_size(const struct node *node)
{
	return offsetof(struct node, q) + node->n * sizeof(node->q[0]);
}

static unsigned int hash(const struct node *node)
{
	const uint8_t *p = (const uint8_t *)node;
	size_t i, n = node_size(node);
	uint32_t h = 2166136261u;

	for (i = 0; i < n; i++)
		h = (h ^ p[i]) * 16777619u;
	return h ^ h >> 15;
}

static void *grow(void *p, size_t size)
{
	p = realloc(p, size);
	if (!p)
		refuse(NULL, 0, "no memory");
	return p;
}

static unsigned int state(struct builder *b, const struct node *node, double likely)
{
	unsigned int h = hash(node) % TABLE;

	for (; b->table[h]; h = (h + 1) % TABLE) {
		const struct node *known = &b->nodes[b->table[h] - 1];

		if (known->n == node->n && !memcmp(known, node, node_size(node)))
			return b->table[h] - 1;
	}
	if (b->n == MAX_STATES)
		refuse(b->m->file, b->m->lines,
		       "the chain has more than %u states: fewer retries or packets", MAX_STATES);
	b->nodes[b->n] = *node;
	b->likely[b->n] = likely;
	b->table[h] = ++b->n;
	return b->n - 1;
}

static void edge(struct builder *b, unsigned int to, double p, double us)
{
	if (b->nedges == b->edge_room) {
		b->edge_room = b->edge_room ? 2 * b->edge_room : 1024;
		b->edges = grow(b->edges, b->edge_room * sizeof(*b->edges));
	}
	b->edges[b->nedges++] = (struct edge) { b->from, to, p, us };
}

static bool before(const struct pending *a, const struct pending *b)
{
	return a->at != b->at ? a->at < b->at :
	       a->kind != b->kind ? a->kind < b->kind :
	       a->side != b->side ? a->side < b->side :
	       a->msg != b->msg ? a->msg < b->msg : a->arg < b->arg;
}

static void put(struct node *node, struct pending p)
{
	unsigned int i;

	if (node->n == MAX_PENDING)
		refuse(NULL, 0, "the chain has too many frames on their way");
	for (i = node->n++; i && before(&p, &node->q[i - 1]); i--)
		node->q[i] = node->q[i - 1];
	node->q[i] = p;
}

static void drop(struct node *node, unsigned int i)
{
	node->n--;
	memmove(&node->q[i], &node->q[i + 1], (node->n - i) * sizeof(node->q[0]));
}

static void drop_timer(struct node *node, uint8_t side, uint8_t id)
{
	unsigned int i;

	for (i = 0; i < node->n; i++)
		if (node->q[i].kind == TIMER && node->q[i].side == side && node->q[i].msg == id)
			drop(node, i--);
}

static int64_t ps(const struct model *m, double us)
{
	if (!(us <= LONGEST))
		refuse(m->file, m->lines, "%g us are too long", us);
	return llround(us * PS);
}

static void serve_at(struct builder *b, double *to, enum station s, double us)
{
	to[station_of(b->m, s)] += us;
}

/* Add a frame's service at each station that it reaches. @own: the request waits for the frame. */
static void account(struct builder *b, double p, const struct effect *e, bool own)
{
	const struct model *m = b->m;
	struct reward *r = b->reward;
	enum station process = e->side == INITIATOR ? PROCESS_I : PROCESS_T;
	enum station wire = e->side == INITIATOR ? WIRE_OUT : WIRE_BACK;
	enum station receive = e->side == INITIATOR ? RECEIVE_T : RECEIVE_I;
	enum station end = e->side == INITIATOR ? PROCESS_T : PROCESS_I;
	double *rest = own ? r->demand : r->ghost;
	enum frame_kind kind = frame_kind(e->msg);

	r->frames += p;
	serve_at(b, r->demand, process, p * (m->lib_send + (1 - m->lib_fail) * m->kernel_send));
	p *= (1 - m->lib_fail) * (1 - m->kernel_fail);
	serve_at(b, rest, wire, p * m->frame[kind] * m->byte);
	if (own)
		r->visits[wire] += p;
	p *= 1 - frame_loss(m, kind);
	if (own) {
		r->latency += p * m->latency;
		r->visits[station_of(m, receive)] += p;
	}
	serve_at(b, rest, receive, p * m->kernel_receive);
	p *= 1 - m->kernel_fail;
	serve_at(b, rest, end, p * m->lib_receive);
	if (own && station_of(m, end) != station_of(m, receive))
		r->visits[station_of(m, end)] += p;
}

/* Is effect @i the last one at its side, apart from timers? */
static bool last_frame(const struct effects *out, unsigned int i)
{
	while (++i < out->n)
		if (out->e[i].what != SET_TIMER && out->e[i].what != STOP_TIMER)
			return false;
	return true;
}

static void arrive(struct builder *b, struct node *node, const struct effect *e, int64_t cursor)
{
	const struct model *m = b->m;

	put(node, (struct pending) {
		.at = cursor + ps(m, m->frame[frame_kind(e->msg)] * m->byte + m->latency) +
		      (m->processors == TWO_PER_HOST ? ps(m, m->kernel_receive) : 0),
		.kind = FRAME, .side = !e->side, .msg = e->msg, .arg = e->arg,
	});
}

/*
 * Make the next state, with times relative to b->now. An event at a busy host gets the time at
 * which the host is no longer busy, so that states with frames that wait together are alike.
 */
static void settle(struct builder *b, const struct node *node, int side, int64_t cursor, double p)
{
	struct node next = *node;
	unsigned int i;

	if (!node->n)
		refuse(b->m->file, b->m->lines,
		       "the chain is singular: a request can wait for ever");
	next.busy[side] = cursor;
	for (i = 0; i < SIDES; i++)
		next.busy[i] = next.busy[i] > b->now ? next.busy[i] - b->now : 0;
	next.n = 0;
	for (i = 0; i < node->n; i++) {
		struct pending q = node->q[i];

		q.at -= b->now;
		if (q.kind != RESTART && q.at < next.busy[q.side])
			q.at = next.busy[q.side];
		put(&next, q);
	}
	edge(b, state(b, &next, p * b->likely[b->from]), p, b->now / PS);
}

static void run(struct builder *b, struct node at, const struct effects *out, unsigned int i,
		int side, int64_t cursor, double p);

static void choose(struct builder *b, const struct node *node, enum effect_kind what,
		   int64_t cursor, double p)
{
	const struct model *m = b->m;
	struct choice c[4];
	unsigned int i, n = choices(m, what, c);

	for (i = 0; i < n; i++) {
		struct effects out = { .n = 0 };
		struct node next = *node;
		int64_t until = cursor;

		if (c[i].p <= 0)
			continue;
		if (c[i].in == IN_CRASHED && m->protocol != STREAM) {
			put(&next, (struct pending) {
				.at = cursor + ps(m, c[i].us), .kind = RESTART, .side = TARGET,
			});
		} else {
			/* the request does not wait for the service of a late handler */
			until += ps(m, c[i].us);
			serve_at(b, c[i].in == IN_LATE ? b->reward->ghost : b->reward->demand,
				 PROCESS_T, p * c[i].p * c[i].us);
		}
		machine_step(m, &next.x, c[i].in, 0, 0, &out);
		run(b, next, &out, 0, TARGET, until, p * c[i].p);
	}
}

/* Follow each possible result of effect @i and those after it, at @side from @cursor on. */
static void run(struct builder *b, struct node at, const struct effects *out, unsigned int i,
		int side, int64_t cursor, double p)
{
	const struct model *m = b->m;
	struct node node = at;

	if (m->protocol == STREAM && p * b->likely[b->from] < UNLIKELY) {
		edge(b, MAX_STATES + TIMED_OUT, p, cursor / PS);
		return;
	}
	for (; i < out->n; i++) {
		const struct effect *e = &out->e[i];
		double q;

		switch (e->what) {
		case DO_FRAME:
			account(b, p, e, last_frame(out, i) && e->msg != MSG_ESP_ACK);
			cursor += ps(m, m->lib_send + m->kernel_send);
			q = frame_lost(m, frame_kind(e->msg));
			if (q < 1) {
				struct node next = node;

				arrive(b, &next, e, cursor);
				run(b, next, out, i + 1, side, cursor, p * (1 - q));
			}
			if (q <= 0)
				return;
			p *= q;
			break;
		case SET_TIMER:
			drop_timer(&node, e->side, e->msg);
			put(&node, (struct pending) {
				.at = cursor + ps(m, e->us), .kind = TIMER, .side = e->side,
				.msg = e->msg,
			});
			break;
		case STOP_TIMER:
			drop_timer(&node, e->side, e->msg);
			break;
		case CHOOSE_LOOKUP:
		case CHOOSE_HANDLER:
			choose(b, &node, e->what, cursor, p);
			return;
		case OVER:
			if (node.x.outcome == SUCCESS) {
				cursor += ps(m, m->app_reply);
				serve_at(b, b->reward->demand, PROCESS_I, p * m->app_reply);
			}
			edge(b, MAX_STATES + node.x.outcome, p, cursor / PS);
			return;
		}
	}
	settle(b, &node, side, cursor, p);
}

static void expand(struct builder *b, unsigned int i)
{
	struct node node = b->nodes[i];
	struct pending p = node.q[0];
	struct effects out = { .n = 0 };
	int64_t cursor = p.at > node.busy[p.side] ? p.at : node.busy[p.side];
	enum input in = p.kind == FRAME ? IN_FRAME : p.kind == TIMER ? IN_TIMER : IN_RESTARTED;

	b->from = i;
	b->now = p.at;
	b->reward = &b->rewards[i];
	drop(&node, 0);
	if (p.kind == FRAME)
		cursor += ps(b->m, b->m->lib_receive) +
			  (b->m->processors == TWO_PER_HOST ? 0 : ps(b->m, b->m->kernel_receive));
	machine_step(b->m, &node.x, in, p.msg, p.arg, &out);
	run(b, node, &out, 0, p.side, cursor, 1);
}

static void build(struct builder *b)
{
	struct effects out = { .n = 0 };
	struct node node;
	unsigned int i;

	b->nodes = grow(NULL, MAX_STATES * sizeof(*b->nodes));
	b->likely = grow(NULL, MAX_STATES * sizeof(*b->likely));
	b->rewards = calloc(MAX_STATES, sizeof(*b->rewards));
	b->table = calloc(TABLE, sizeof(*b->table));
	if (!b->rewards || !b->table)
		refuse(NULL, 0, "no memory");
	/* a request starts from state 0, which no other state equals */
	memset(&node, 0, sizeof(node));
	node.x.phase = 0xff;
	state(b, &node, 1);
	b->reward = &b->rewards[0];
	b->reward->demand[station_of(b->m, PROCESS_I)] = b->m->app_request;
	b->reward->visits[station_of(b->m, PROCESS_I)] = 1;
	memset(&node, 0, sizeof(node));
	machine_step(b->m, &node.x, IN_START, 0, 0, &out);
	run(b, node, &out, 0, INITIATOR, ps(b->m, b->m->app_request), 1);
	for (i = 1; i < b->n; i++)
		expand(b, i);
}

/* Solves (I - Q) x = r. */
struct solver {
	unsigned int	n;
	gsl_matrix	*lu;
	gsl_permutation	*order;
	gsl_vector	*r, *x;
};

static void destroy(struct builder *b)
{
	free(b->nodes);
	free(b->rewards);
	free(b->likely);
	free(b->table);
	free(b->edges);
}

static void decompose(struct builder *b, struct solver *s)
{
	unsigned int i;
	int sign;

	s->n = b->n;
	s->lu = gsl_matrix_calloc(b->n, b->n);
	s->order = gsl_permutation_alloc(b->n);
	s->r = gsl_vector_alloc(b->n);
	s->x = gsl_vector_alloc(b->n);
	gsl_matrix_set_identity(s->lu);
	for (i = 0; i < b->nedges; i++) {
		const struct edge *e = &b->edges[i];

		if (e->to < MAX_STATES)
			gsl_matrix_set(s->lu, e->from, e->to,
				       gsl_matrix_get(s->lu, e->from, e->to) - e->p);
	}
	gsl_linalg_LU_decomp(s->lu, s->order, &sign);
	for (i = 0; i < b->n; i++)
		if (fabs(gsl_matrix_get(s->lu, i, i)) < 1 / 1e13)
			refuse(b->m->file, b->m->lines,
			       "the chain is singular: a request may never end");
}

/* Solve for s->r, and return the value of state 0; @x, if not NULL, gets those of all states. */
static double solve(struct solver *s, double *x)
{
	gsl_linalg_LU_solve(s->lu, s->order, s->r, s->x);
	if (x)
		memcpy(x, gsl_vector_ptr(s->x, 0), s->n * sizeof(*x));
	return gsl_vector_get(s->x, 0);
}

/* Mean sum of member @offset of the rewards until a request is absorbed. */
static double gathered(struct builder *b, struct solver *s, size_t offset)
{
	unsigned int i;
	bool any = false;

	for (i = 0; i < b->n; i++) {
		double v = *(double *)((char *)&b->rewards[i] + offset);

		gsl_vector_set(s->r, i, v);
		any |= v != 0;
	}
	return any ? solve(s, NULL) : 0;
}

static double at(const double *x, unsigned int to, double absorbed)
{
	return to < MAX_STATES ? x[to] : to == MAX_STATES + SUCCESS ? absorbed : 0;
}

/* Compute mean and deviation of the time to success, of requests that succeed. */
static void moments(struct builder *b, struct solver *s, const double *success, struct chain *c)
{
	double *first = grow(NULL, b->n * sizeof(*first)), square;
	const struct edge *e, *end = b->edges + b->nedges;

	gsl_vector_set_zero(s->r);
	for (e = b->edges; e < end; e++)
		*gsl_vector_ptr(s->r, e->from) += e->p * e->us * at(success, e->to, 1);
	c->success = solve(s, first) / c->p[SUCCESS];
	gsl_vector_set_zero(s->r);
	for (e = b->edges; e < end; e++)
		*gsl_vector_ptr(s->r, e->from) += e->p * e->us *
			(e->us * at(success, e->to, 1) + 2 * at(first, e->to, 0));
	square = solve(s, NULL) / c->p[SUCCESS];
	c->deviation = sqrt(fmax(0, square - c->success * c->success));
	free(first);
}

void chain_solve(const struct model *m, struct chain *c)
{
	struct builder b = { .m = m };
	struct solver s;
	double *success;
	unsigned int i, o;

	memset(c, 0, sizeof(*c));
	build(&b);
	decompose(&b, &s);
	c->states = b.n;
	success = grow(NULL, b.n * sizeof(*success));
	for (o = OUTCOMES; o--; ) {	/* SUCCESS comes last, so that @success is its solution */
		gsl_vector_set_zero(s.r);
		for (i = 0; i < b.nedges; i++)
			if (b.edges[i].to == MAX_STATES + o)
				*gsl_vector_ptr(s.r, b.edges[i].from) += b.edges[i].p;
		c->p[o] = solve(&s, success);
	}
	gsl_vector_set_zero(s.r);
	for (i = 0; i < b.nedges; i++)
		*gsl_vector_ptr(s.r, b.edges[i].from) += b.edges[i].p * b.edges[i].us;
	c->mean = solve(&s, NULL);
	if (c->p[SUCCESS] > 0)
		moments(&b, &s, success, c);
	for (i = 0; i < STATIONS; i++) {
		size_t at = i * sizeof(double);

		c->demand[i] = gathered(&b, &s, offsetof(struct reward, demand) + at);
		c->ghost[i] = gathered(&b, &s, offsetof(struct reward, ghost) + at);
		c->visits[i] = gathered(&b, &s, offsetof(struct reward, visits) + at);
	}
	c->latency = gathered(&b, &s, offsetof(struct reward, latency));
	c->frames = gathered(&b, &s, offsetof(struct reward, frames));
	gsl_matrix_free(s.lu);
	gsl_permutation_free(s.order);
	gsl_vector_free(s.r);
	gsl_vector_free(s.x);
	free(success);
	destroy(&b);
}

/* A walk along all paths, which fills in struct waits. */
struct walk {
	const struct builder *b;
	const unsigned int *first;	/* first edge of each state; edges are in order of states */
	double		limit, least, hazard;
	struct waits	*w;
};

static void walk(const struct walk *k, unsigned int at, double p, double us)
{
	unsigned int i;

	for (i = k->first[at]; i < k->first[at + 1]; i++) {
		const struct edge *e = &k->b->edges[i];
		double q = p * e->p, t = us + e->us, lives;

		if (q < UNLIKELY)
			continue;
		if (e->to < MAX_STATES) {
			walk(k, e->to, q, t);
			continue;
		}
		if (t > k->least)
			k->w->any += q;
		if (e->to != MAX_STATES + SUCCESS) {
			k->w->fail += q;
		} else if (t > k->limit) {
			k->w->slow += q;
			k->w->slow_us += q * t;
		} else {
			lives = exp(-k->hazard * fmax(0, t - k->least));
			k->w->quick += q * lives;
			k->w->quick_us += q * lives * t;
		}
	}
}

void chain_waits(const struct model *m, double limit, double least, double hazard, struct waits *w)
{
	struct builder b = { .m = m };
	unsigned int *first, i;
	struct walk k = { .b = &b, .limit = limit, .least = least, .hazard = hazard, .w = w };

	memset(w, 0, sizeof(*w));
	build(&b);
	first = calloc(b.n + 2, sizeof(*first));
	if (!first)
		refuse(NULL, 0, "no memory");
	for (i = 0; i < b.nedges; i++)
		first[b.edges[i].from + 1]++;
	for (i = 0; i < b.n; i++)
		first[i + 1] += first[i];
	k.first = first;
	walk(&k, 0, 1, 0);
	if (w->slow > 0)
		w->slow_us /= w->slow;
	if (w->quick > 0)
		w->quick_us /= w->quick;
	free(first);
	destroy(&b);
}
