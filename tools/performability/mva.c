// SPDX-License-Identifier: BSD-3-Clause
/*
 * N outstanding requests as customers of a closed queueing network. It has stations with one server
 * each, and a delay for the times without a queue (timers, latency, think).
 */
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include "performability.h"

#define MAX_BALANCE	1500	/* states */

/*
 * Mean value analysis (Reiser, Lavenberg, 1980): a customer that arrives finds the mean queue of a
 * network with one customer less. @exact: service times are exponential, and there are no ghosts.
 * Otherwise the customer in service has (1 + variation) / 2 of a service left, and frames that no
 * request waits for (ACK, FINAL) make the server slower by their share of its time. Both are
 * approximations.
 */
void mva_solve(const struct network *n, double think, unsigned int window, bool exact,
	       struct network_solution *s)
{
	double queue[STATIONS] = { 0 }, busy, ghost, left;
	unsigned int i, k;

	memset(s, 0, sizeof(*s));
	for (i = 1; i <= window; i++) {
		double before = s->throughput;

		s->response = n->delay;
		for (k = 0; k < STATIONS; k++) {
			ghost = exact ? 0 : n->ghost[k];
			busy = before * ghost;
			if (busy >= 1)
				refuse(n->model->file, n->model->lines,
				       "the network doesn't converge: %s can't do it all",
				       station_names[k]);
			left = exact ? 0 : before * n->demand[k] * (1 - n->variation[k]) / 2;
			s->residence[k] = n->demand[k] / (1 - busy) * (1 + queue[k] - left);
			s->response += s->residence[k];
		}
		if (!(s->response + think > 0))
			refuse(n->model->file, n->model->lines,
			       "the network doesn't converge: a request takes no time");
		s->throughput = i / (s->response + think);
		for (k = 0; k < STATIONS; k++) {
			/* no more than the station's server can do */
			busy = n->demand[k] + (exact ? 0 : n->ghost[k]);
			if (s->throughput * busy > 1)
				s->throughput = 1 / busy;
		}
		s->response = i / s->throughput - think;
		for (k = 0; k < STATIONS; k++)
			queue[k] = s->throughput * s->residence[k];
	}
	for (k = 0; k < STATIONS; k++)
		s->utilization[k] = s->throughput * (n->demand[k] + n->ghost[k]);
}

/*
 * The same network as a continuous-time Markov chain, if it is small. A state is the number of
 * customers at each place. The balance equations give the probability of each state. Ghosts are
 * left out.
 */
struct balance {
	unsigned int	places;			/* the last one is the delay */
	unsigned int	window, n;
	double		rate[STATIONS + 1];	/* rate at which a customer is served */
	double		go[STATIONS + 1];	/* probability that the next place is this one */
	uint16_t	*states;		/* n states, of places numbers each */
};

/* Add the states with @left customers at @place and the places after it; false: too many. */
static bool enumerate(struct balance *b, uint16_t *state, unsigned int place, unsigned int left)
{
	unsigned int i;

	if (place == b->places - 1) {
		state[place] = left;
		if (b->n == MAX_BALANCE)
			return false;
		memcpy(b->states + b->n++ * b->places, state,
		       b->places * sizeof(*state));
		return true;
	}
	for (i = 0; i <= left; i++) {
		state[place] = i;
		if (!enumerate(b, state, place + 1, left - i))
			return false;
	}
	return true;
}

static unsigned int find_state(const struct balance *b, const uint16_t *state)
{
	unsigned int i;

	for (i = 0; memcmp(b->states + i * b->places, state, b->places * sizeof(*state)); i++)
		;
	return i;
}

static double completes(const struct balance *b, const uint16_t *state, unsigned int place)
{
	if (place == b->places - 1)
		return state[place] * b->rate[place];
	return state[place] ? b->rate[place] : 0;
}

/* The transposed generator; its last equation is that the probabilities add up to 1. */
static gsl_matrix *generator(struct balance *b)
{
	gsl_matrix *g = gsl_matrix_calloc(b->n, b->n);
	unsigned int i, from, to, j;

	for (i = 0; i < b->n; i++) {
		uint16_t state[STATIONS + 1];

		memcpy(state, b->states + i * b->places, b->places * sizeof(*state));
		for (from = 0; from < b->places; from++) {
			double rate = completes(b, state, from);

			if (rate == 0)
				continue;
			for (to = 0; to < b->places; to++) {
				if (to == from || b->go[to] == 0)
					continue;
				state[from]--;
				state[to]++;
				j = find_state(b, state);
				state[to]--;
				state[from]++;
				*gsl_matrix_ptr(g, j, i) += rate * b->go[to];
				*gsl_matrix_ptr(g, i, i) -= rate * b->go[to];
			}
		}
	}
	for (i = 0; i < b->n; i++)
		gsl_matrix_set(g, b->n - 1, i, 1);
	return g;
}

static void steady_state(struct balance *b, gsl_vector *p)
{
	gsl_matrix *g = generator(b);
	gsl_permutation *order = gsl_permutation_alloc(b->n);
	gsl_vector *r = gsl_vector_calloc(b->n);
	int sign;

	gsl_vector_set(r, b->n - 1, 1);
	gsl_linalg_LU_decomp(g, order, &sign);
	gsl_linalg_LU_solve(g, order, r, p);
	gsl_matrix_free(g);
	gsl_permutation_free(order);
	gsl_vector_free(r);
}

bool balance_solve(const struct network *n, double think, unsigned int window,
		   struct network_solution *s)
{
	struct balance b = { .window = window };
	double visits = 1, through[STATIONS + 1] = { 0 };
	uint16_t state[STATIONS + 1];
	unsigned int k, i, place[STATIONS];
	gsl_vector *p;

	memset(s, 0, sizeof(*s));
	for (k = 0; k < STATIONS; k++) {
		if (n->demand[k] <= 0)
			continue;
		place[k] = b.places;
		b.go[b.places] = n->visits[k];
		b.rate[b.places++] = n->visits[k] / n->demand[k];
		visits += n->visits[k];
	}
	/* a delay of 0 would have an infinite rate */
	if (!b.places || n->delay + think <= 0)
		return false;
	b.rate[b.places] = 1 / (n->delay + think);
	b.go[b.places++] = 1;
	for (k = 0; k < b.places; k++)
		b.go[k] /= visits;
	b.states = malloc(MAX_BALANCE * b.places * sizeof(*b.states));
	if (!b.states || !enumerate(&b, state, 0, window)) {
		free(b.states);
		return false;
	}
	p = gsl_vector_alloc(b.n);
	steady_state(&b, p);
	for (i = 0; i < b.n; i++)
		for (k = 0; k < b.places; k++)
			through[k] += gsl_vector_get(p, i) *
				      completes(&b, b.states + i * b.places, k);
	s->throughput = through[b.places - 1];
	s->response = window / s->throughput - think;
	for (k = 0; k < STATIONS; k++) {
		if (n->demand[k] <= 0)
			continue;
		for (i = 0; i < b.n; i++)
			s->residence[k] += gsl_vector_get(p, i) *
					   b.states[i * b.places + place[k]] / s->throughput;
		s->utilization[k] = through[place[k]] / b.rate[place[k]];
	}
	gsl_vector_free(p);
	free(b.states);
	return true;
}
