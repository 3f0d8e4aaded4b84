// SPDX-License-Identifier: BSD-3-Clause
/*
 * N requests outstanding as customers of a closed queueing network: stations with one server each,
 * and a delay for what nobody waits in line for (timers, latency, think).
 */
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include "performability.h"

#define MAX_BALANCE	1500	/* states */

/*
 * Mean value analysis (Reiser, Lavenberg, 1980): who arrives finds what is there on average with
 * one customer less. @exact: service times are exponential, and all work is the requests' own.
 * Else the one in service has (1 + variation) / 2 of a service left; and what frames take that
 * nobody waits for (ACK, FINAL) makes the server so much slower. Both are approximations.
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
			/* No more than its server can do. */
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
 * The same network as a continuous-time Markov chain, for small ones: its states are how many
 * customers are where, and the balance equations say how likely each is. Ghosts are left out.
 */
struct balance {
	unsigned int	places;			/* the last one is the delay */
	unsigned int	window, n;
	double		rate[STATIONS + 1];	/* of each customer served */
	double		go[STATIONS + 1];	/* probability that it goes there */
	uint16_t	*states;		/* n of places */
};

/* All ways to have @left customers at @place and those behind it. */
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

/* Transposed generator; its last equation says that all is certain. */
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
	/* A delay of no time is passed too fast to be seen. */
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
