// SPDX-License-Identifier: BSD-3-Clause
/*
 * N requests of one session. A crash of the target ends all of them, and all of them wait for a
 * late handler. A request that waits for a timer causes neither. So the states count requests that
 * wait.
 *
 * There are two scales of time. A request that loses nothing takes some round trips (quick). All
 * requests that wait for long take the same time D. It is longer than the time for which the others
 * go on until one of them waits, crashes or is late. In these states, a requests go on, and each of
 * them ends at the rate X(a) / a:
 *
 *	A(a)	The other N - a requests wait. Each one that begins to wait leads to A(a - 1).
 *	A(0)	All requests wait. After D the first one goes on: B(1, 1).
 *	B(r, a)	r requests have come back, and a of them go on. The next one comes back at the
 *		rate at which it had begun to wait: N - r requests went on then. When all have
 *		come back, A(a) follows.
 *
 * A crash, or a late handler, ends this, and A(N) follows. There are no cycles on the way from A(N)
 * or A(0) to the next A(N) or A(0), because each state leads to later states only.
 */
#include <math.h>
#include <stdlib.h>
#include "performability.h"

/* Probabilities of what happens next to a request that goes on. */
struct fate {
	double		quick, slow, fail, late, crash;
};

struct window {
	const struct model *m;
	unsigned int	n;
	double		*rate;		/* X(a) */
	double		quick_us, least;	/* time of quick requests; without any wait */
	double		slow_us;	/* D: time of requests that wait for long */
	double		give_up;	/* time until a request without answers gives up */
	double		down;		/* time from a crash until all requests have ended */
	double		down_alone;	/* the same if only one request was not waiting */
	struct fate	fate;
};

/* Expected sums from a state on, until the session ends or all requests wait. */
struct gain {
	double		good, us;	/* successes without long waits; their times */
	double		came, back;	/* requests that began a long wait; that came back */
	double		fail, time;	/* failures; time */
	double		waits;		/* probability that all wait */
};

static void add(struct gain *to, double p, const struct gain *g)
{
	to->good += p * g->good;
	to->us += p * g->us;
	to->came += p * g->came;
	to->back += p * g->back;
	to->fail += p * g->fail;
	to->time += p * g->time;
	to->waits += p * g->waits;
}

static void succeed(struct gain *g, double n, double us)
{
	g->good += n;
	g->us += n * us;
}

/* Time of a request that goes on beside a - 1 others. */
static double takes(const struct window *w, unsigned int a)
{
	return a / w->rate[a] - w->m->think;
}

/*
 * Add the effects of a late handler, which holds the process for H. Requests that go on get no
 * answer. They wait, or give up, and then the next requests wait in their place. A request that
 * waits for a timer waits for the rest of H, too.
 */
static void held(const struct window *w, unsigned int a, struct gain *g)
{
	double h = w->m->handler_max_us, times = floor(h / w->give_up), d = w->slow_us, longer;
	unsigned int others = w->n - a;

	/* a request that waits for a timer gets no ACK either, and gives up, too */
	if (times > 0 && d < w->give_up) {
		a = w->n;
		others = 0;
	}

	g->fail += 1;
	g->time += h;
	if (times > 0) {
		g->fail += a - 1 + (times - 1) * a;
		succeed(g, a, takes(w, a) + h - times * w->give_up);
	} else {
		succeed(g, a - 1, takes(w, a) + h);
	}
	longer = d > h ? h * h / (2 * d) : h - d / 2;
	succeed(g, others, d + longer);
}

/* Add the effects of what happens to one of @a requests that go on, except those of a long wait. */
static void over(const struct window *w, unsigned int a, double p, struct gain *g)
{
	const struct fate *f = &w->fate;
	struct gain end = { 0 };

	held(w, a, &end);
	add(g, p * f->late, &end);
	g->fail += p * (f->crash * w->n + f->fail);
	g->time += p * f->crash * (a > 1 ? w->down : w->down_alone);
	g->came += p * f->slow;
	succeed(g, p * f->quick, takes(w, a));
}

/* Scale the sums of one stay in a state, which another stay follows with probability @stays. */
static void leave(struct gain *g, double stays)
{
	g->good /= 1 - stays;
	g->us /= 1 - stays;
	g->came /= 1 - stays;
	g->back /= 1 - stays;
	g->fail /= 1 - stays;
	g->time /= 1 - stays;
	g->waits /= 1 - stays;
}

static void solve_a(const struct window *w, struct gain *A)
{
	const struct fate *f = &w->fate;
	unsigned int a;

	A[0] = (struct gain) { .waits = 1 };
	for (a = 1; a <= w->n; a++) {
		A[a] = (struct gain) { .time = 1 / w->rate[a] };
		over(w, a, 1, &A[a]);
		add(&A[a], f->slow, &A[a - 1]);
		leave(&A[a], f->quick + f->fail);
	}
}

/* Return the sums from A(0) on: after D, B(1, 1) follows. */
static struct gain solve_b(const struct window *w, const struct gain *A)
{
	const struct fate *f = &w->fate;
	struct gain *B = calloc(w->n + 2, sizeof(*B)), *next = calloc(w->n + 2, sizeof(*B)), g;
	double comes, x, one = f->slow + f->crash + f->late;
	unsigned int r, a;

	if (!B || !next)
		refuse(NULL, 0, "no memory");
	memcpy(next, A, (w->n + 1) * sizeof(*A));
	for (r = w->n - 1; r >= 1; r--) {
		comes = w->rate[w->n - r] * one;
		for (a = 0; a <= r; a++) {
			x = comes + w->rate[a];
			B[a] = (struct gain) { .time = 1 / x };
			B[a].back += comes / x;
			add(&B[a], comes / x, &next[a + 1]);
			if (!a)
				continue;
			over(w, a, w->rate[a] / x, &B[a]);
			add(&B[a], w->rate[a] / x * f->slow, &B[a - 1]);
			leave(&B[a], w->rate[a] / x * (f->quick + f->fail));
		}
		memcpy(next, B, (w->n + 1) * sizeof(*B));
	}
	g = next[1];
	g.back++;
	g.time += w->slow_us;
	free(B);
	free(next);
	return g;
}

/* Compute X(a), without faults. */
static void rates(struct window *w, const struct model *clean, const struct chain *c)
{
	struct network_solution q;
	struct network net;
	unsigned int a;

	network_of(clean, c, &net);
	w->rate[0] = 0;
	net.delay += w->quick_us - w->least;
	for (a = 1; a <= w->n; a++) {
		mva_solve(&net, clean->think, a, false, &q);
		w->rate[a] = q.throughput;
	}
}

/* Return the sums of a session, from its beginning to its end. */
static struct gain session(const struct window *w)
{
	struct gain *A = calloc(w->n + 1, sizeof(*A)), again, g;

	if (!A)
		refuse(NULL, 0, "no memory");
	solve_a(w, A);
	g = A[w->n];
	if (g.waits > 0) {
		again = solve_b(w, A);
		add(&g, g.waits / (1 - again.waits), &again);
	}
	free(A);
	return g;
}

/*
 * Find the limit beyond which a wait is long: the time for which the other requests go on. Repeat
 * until that holds for the waits beyond the limit, because a request that waits for less comes back
 * meanwhile. Returns the rate at which the other requests crash the process.
 */
static double find_slow(struct window *w, const struct model *m, double cycle, struct waits *waits)
{
	double one = w->n / w->rate[w->n], ends = w->m->crash + w->m->late, limit, last;
	double hazard = w->m->crash * (w->n - 1) / cycle;
	int i;

	chain_waits(m, INFINITY, 1.01 * w->least, 0, waits);
	limit = one / (waits->any + ends);
	for (i = 0; i < 10; i++) {
		last = limit;
		chain_waits(m, w->least + limit, 1.01 * w->least, hazard, waits);
		limit = fmax(limit, one / (waits->slow + ends));
		if (limit < 1.01 * last || waits->slow_us > 2 * limit)
			break;
	}
	return hazard;
}

/*
 * Find the times from a crash until requests have ended. Frames to a process that is down are lost.
 * A request without answers learns of the crash after the restart.
 */
static void find_down(struct window *w, const struct model *clean)
{
	struct model m = *clean;
	struct chain c;

	m.crash = 1;
	m.delay = 0;
	chain_solve(&m, &c);
	w->down_alone = c.mean;
	w->down = c.mean;
	/* AMVIA: a request with an ACK waits for the reply; others retransmit, as with N-way */
	if (m.protocol == AM_AMVIA) {
		m.protocol = AM_NWAY;
		chain_solve(&m, &c);
		w->down = c.mean;
		m.protocol = AM_AMVIA;
	}
	m.crash = 0;
	m.network_fail = 1;
	chain_solve(&m, &c);
	w->give_up = c.mean;
	w->down += handshake_us(w->m);
	w->down_alone += handshake_us(w->m);
}

void session_solve(const struct model *m, struct session *s)
{
	struct window w = { .m = m, .n = m->window };
	struct waits waits, longest;
	struct prediction base;
	struct model own = *m, clean;
	struct fate *f = &w.fate;
	double hazard, rest = 1 - m->crash - m->late, part = 0, short_us, lives, longer = 0;
	struct chain c;
	struct gain g;

	w.rate = calloc(w.n + 1, sizeof(*w.rate));
	if (!w.rate)
		refuse(NULL, 0, "no memory");
	/* Timeouts follow from the round trips of requests that are answered. */
	own.late = 0;
	own.crash = 0;
	predict(&own, &base);
	clean = own;
	clean.lib_fail = 0;
	clean.kernel_fail = 0;
	clean.network_fail = 0;
	clean.ber = 0;
	clean.missing = 0;
	chain_solve(&clean, &c);
	w.least = c.success;
	w.quick_us = c.success;
	rates(&w, &clean, &c);
	find_down(&w, &clean);
	hazard = find_slow(&w, &own, base.chain.mean + m->think, &waits);
	w.quick_us = waits.quick_us;
	w.slow_us = waits.slow_us;
	rates(&w, &clean, &c);

	*f = (struct fate) {
		.quick = rest * waits.quick, .slow = rest * waits.slow, .fail = rest * waits.fail,
		.late = m->late, .crash = m->crash,
	};
	g = session(&w);
	lives = g.came > 0 ? g.back / g.came : 0;
	short_us = waits.slow_us;
	/* Requests that wait longer than the mean see the others wait and come back. */
	if (waits.slow > 0)
		chain_waits(&own, 1.05 * waits.slow_us, 1.01 * w.least, hazard, &longest);
	if (waits.slow > 0 && longest.slow > 0) {
		struct window l = w;
		struct gain h;

		part = longest.slow / waits.slow;
		short_us = (waits.slow_us - part * longest.slow_us) / (1 - part);
		l.slow_us = longest.slow_us;
		l.fate.slow = rest * longest.slow;
		l.fate.quick = f->quick + f->slow - l.fate.slow;
		h = session(&l);
		longer = h.came > 0 ? h.back / h.came : 0;
	}
	succeed(&g, g.came * (1 - part) * lives, short_us);
	if (part > 0)
		succeed(&g, g.came * part * longer, longest.slow_us);
	s->timeout = own.ack_timeout;
	s->response = g.us / g.good;
	s->throughput = g.good / g.time * 1e6;
	s->success = g.good / (g.good + g.fail);
	free(w.rate);
}
