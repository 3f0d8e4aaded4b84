// SPDX-License-Identifier: BSD-3-Clause
/*
 * The prediction. A request's chain gives its visits to stations, and the cost of timers. The
 * network gives the time for which N requests wait for each other. The round trip follows from
 * both, and the timers depend on it. So all of this is repeated until the round trip is constant.
 */
#include <gsl/gsl_deriv.h>
#include <gsl/gsl_errno.h>
#include <math.h>
#include "performability.h"

#define ITERATIONS	100
#define PRECISION	(1 / 1e9)

/* Time of one frame from process to process, if each station takes @slower times its service. */
static double way(const struct model *m, int from, enum frame_kind kind, const double *slower)
{
	enum station process[SIDES] = { station_of(m, PROCESS_I), station_of(m, PROCESS_T) };
	enum station receive = station_of(m, from == INITIATOR ? RECEIVE_T : RECEIVE_I);
	enum station wire = from == INITIATOR ? WIRE_OUT : WIRE_BACK;

	return (m->lib_send + m->kernel_send) * slower[process[from]] +
	       m->frame[kind] * m->byte * slower[wire] + m->latency +
	       m->kernel_receive * slower[receive] + m->lib_receive * slower[process[!from]];
}

/* The round trip that DO_RTT of engine.c measures, or the kernel on a stream. */
static double round_trip(const struct model *m, const double *slower)
{
	double us = way(m, INITIATOR, FRAME_REQUEST, slower);

	if (m->protocol == STREAM)
		return m->frame[FRAME_REQUEST] * m->byte + m->frame[FRAME_REPLY] * m->byte +
		       2 * (m->latency + m->kernel_receive);
	if (m->protocol == AM_AMVIA)
		return us + way(m, TARGET, FRAME_CONTROL, slower);
	return us + way(m, TARGET, FRAME_REPLY, slower) +
	       (m->app_handler + m->delay * m->delayed) * slower[station_of(m, PROCESS_T)];
}

/*
 * A new connection: endpoint.c calls hello_send() until both frames come through. The timeout is
 * timeout_us, doubled each time up to 64 times that. It does not depend on round trips.
 */
double handshake_us(const struct model *m)
{
	double slower[STATIONS], pass = 1 - frame_lost(m, FRAME_CONTROL), fail = 1 - pass * pass;
	double us, wait = m->timeout_us, again = fail;
	unsigned int k;

	for (k = 0; k < STATIONS; k++)
		slower[k] = 1;
	us = way(m, INITIATOR, FRAME_CONTROL, slower) + way(m, TARGET, FRAME_CONTROL, slower);
	for (k = 0; k < m->retries; k++) {
		us += again * wait;
		again *= fail;
		if (k < 6)
			wait *= 2;
	}
	return us;
}

/*
 * Mean number of handshakes after a request, with a window of 1: see fail() of engine.c and
 * session_lost() of endpoint.c.
 */
static double handshakes(const struct model *m, const struct chain *c)
{
	if (m->protocol == STREAM)
		return 0;
	return m->protocol == AM_NWAY ? 1 - c->p[SUCCESS] : m->crash;
}

/*
 * Squared coefficient of variation of a service time: (sum of squares) / (square of sum) for a sum
 * of exponential times, 0 for fixed times.
 */
static double variation(const struct model *m, enum station s)
{
	double t[] = { m->kernel_receive, m->lib_receive, m->lib_send, m->kernel_send,
		       s == PROCESS_I ? m->app_request : m->app_handler }, sum = 0, squares = 0;
	unsigned int i;

	if (m->fixed)
		return 0;
	if (s != PROCESS_I && s != PROCESS_T)
		return 1;
	for (i = m->processors == TWO_PER_HOST; i < ARRAY_SIZE(t); i++) {
		sum += t[i];
		squares += t[i] * t[i];
	}
	return sum > 0 ? squares / (sum * sum) : 1;
}

void network_of(const struct model *m, const struct chain *c, struct network *n)
{
	unsigned int k;

	n->model = m;
	n->delay = c->mean;
	for (k = 0; k < STATIONS; k++) {
		n->demand[k] = c->demand[k];
		n->ghost[k] = c->ghost[k];
		n->visits[k] = c->visits[k] > 0 ? c->visits[k] : 1;
		n->variation[k] = variation(m, k);
		n->delay -= c->demand[k];
	}
	/* packets that are on their way together may be served at the same time */
	if (n->delay < 0)
		n->delay = 0;
}

static double node_availability(const struct model *m)
{
	return m->mttf / (m->mttf + m->mttr);
}

void predict(struct model *m, struct prediction *p)
{
	double slower[STATIONS], rtt, last;
	unsigned int k;

	memset(p, 0, sizeof(*p));
	for (k = 0; k < STATIONS; k++)
		slower[k] = 1;
	rtt = round_trip(m, slower);
	do {
		if (p->iterations++ == ITERATIONS)
			refuse(m->file, m->lines,
			       "the chain doesn't converge: in step %u %g us", ITERATIONS, rtt);
		last = rtt;
		m->srtt = rtt;
		m->ack_timeout = fmax(2 * rtt, m->min_timeout_us);
		chain_solve(m, &p->chain);
		network_of(m, &p->chain, &p->network);
		mva_solve(&p->network, m->think, m->window, false, &p->queues);
		for (k = 0; k < STATIONS; k++)
			slower[k] = p->network.demand[k] > 0 ?
				    p->queues.residence[k] / p->network.demand[k] : 1;
		rtt = round_trip(m, slower);
	} while (fabs(rtt - last) > PRECISION * last);
	mva_solve(&p->network, m->think, m->window, true, &p->mva);
	p->balanced = balance_solve(&p->network, m->think, m->window, &p->balance);
	p->timeout = m->ack_timeout;
	p->success = p->chain.p[SUCCESS];
	p->response = p->chain.success;
	if (m->window > 1)
		p->response += p->queues.response - p->chain.mean;
	p->throughput = p->queues.throughput * p->success * 1e6;
	if (m->window <= 1)
		p->throughput = 1e6 * p->success /
			(1 / p->queues.throughput + handshakes(m, &p->chain) * handshake_us(m));
	p->availability = p->success * node_availability(m) * node_availability(m);
	if (m->window > 1 && m->late + m->crash > 0) {
		struct session s;

		session_solve(m, &s);
		for (k = 0; k < STATIONS; k++)
			p->queues.utilization[k] = s.throughput / s.success / 1e6 *
				(p->network.demand[k] + p->network.ghost[k]);
		p->success = s.success;
		/* requests that fail together with others get no answer */
		p->chain.p[GAVE_UP_REQUEST] += p->chain.p[SUCCESS] - s.success;
		p->chain.p[SUCCESS] = s.success;
		p->response = s.response;
		p->throughput = s.throughput;
		p->timeout = s.timeout;
		p->availability = p->success * node_availability(m) * node_availability(m);
	}
}

/*
 * Sensitivity
 */

struct variable {
	const struct model *model;
	const struct key *key;
};

static double response_at(double x, void *arg)
{
	const struct variable *v = arg;
	struct model m = *v->model;
	struct prediction p;

	*key_value(&m, v->key) = x;
	predict(&m, &p);
	return p.response;
}

unsigned int sensitivities(const struct model *m, struct sensitivity *s)
{
	struct model at = *m;
	struct prediction p;
	unsigned int i, n = 0;

	predict(&at, &p);
	for (i = 0; i < nkeys; i++) {
		struct variable v = { m, &keys[i] };
		gsl_function f = { response_at, &v };
		double x = *key_value(&at, &keys[i]), h, error;

		if (!keys[i].component)
			continue;
		s[n] = (struct sensitivity) { .key = &keys[i], .value = x };
		h = keys[i].kind == KEY_TIME ? fmax(x / 1000, 0.01) :
		    !strcmp(keys[i].name, "network.ber") ? 1 / 1e8 : 0.0001;
		if (x + h > keys[i].high)
			gsl_deriv_backward(&f, x, h, &s[n].derivative, &error);
		else if (x < h)
			gsl_deriv_forward(&f, x, h, &s[n].derivative, &error);
		else
			gsl_deriv_central(&f, x, h, &s[n].derivative, &error);
		/* a derivative below the precision of the iteration is noise */
		error = fmax(error, PRECISION * p.response / h);
		if (fabs(s[n].derivative) <= error)
			s[n].derivative = 0;
		s[n].elasticity = p.response > 0 ? s[n].derivative * x / p.response : 0;
		n++;
	}
	return n;
}
