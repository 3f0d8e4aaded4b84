// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue of events: a heap in which each node has four children. Events of the same moment
 * come in the order in which they were queued, so that each run with one seed is the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include "sim.h"

struct event {
	u64 at;
	u64 order;	/* number of the event, times EVENT_MAX, plus its kind */
	void *arg;
};

u64 sim_now;
u64 sim_events;

static struct event *heap;
static u32 used, room;
static u64 order;

/**
 * sim_alloc() - allocate zeroed memory
 * @n:	bytes
 *
 * Return: the memory, never NULL: the program ends if there is none
 */
void *sim_alloc(size_t n)
{
	void *p = calloc(1, n);

	if (!p) {
		fputs("espsim: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

static inline bool first(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

/**
 * event_at() - queue an event
 * @at:		time of the event, not before now
 * @kind:	selects the handler
 * @arg:	argument of the handler
 */
void event_at(u64 at, enum event_kind kind, void *arg)
{
	struct event e = { .at = at, .order = order++ * EVENT_MAX + kind, .arg = arg };
	u32 i;

	if (used == room) {
		room = room ? 2 * room : 4096;
		heap = realloc(heap, room * sizeof(*heap));
		if (!heap) {
			fputs("espsim: out of memory\n", stderr);
			exit(1);
		}
	}
	for (i = used++; i; i = (i - 1) / 4) {
		if (!first(&e, &heap[(i - 1) / 4]))
			break;
		heap[i] = heap[(i - 1) / 4];
	}
	heap[i] = e;
}

static void sift_down(struct event e)
{
	u32 i = 0, child, least, end;

	for (;;) {
		child = 4 * i + 1;
		if (child >= used)
			break;
		end = child + 4 < used ? child + 4 : used;
		for (least = child++; child < end; child++)
			if (first(&heap[child], &heap[least]))
				least = child;
		if (!first(&heap[least], &e))
			break;
		heap[i] = heap[least];
		i = least;
	}
	heap[i] = e;
}

/**
 * event_run() - advance the time to the next event, and call its handler
 * @handler:	handlers by kind
 *
 * Return: false if no event is left
 */
bool event_run(const event_handler handler[EVENT_MAX])
{
	struct event e;

	if (!used)
		return false;
	e = heap[0];
	used--;
	if (used)
		sift_down(heap[used]);
	sim_now = e.at;
	sim_events++;
	handler[e.order % EVENT_MAX](e.arg);
	return true;
}

/* xorshift64*: good enough for arrivals and sizes, and the same everywhere. */
u64 sim_random(void)
{
	static u64 x;

	if (!x)
		x = cfg.seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull;
	if (!x)
		x = 1;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	return x * 0x2545f4914f6cdd1dull;
}

/* Draw a number between 0 and 1, without these two. */
double sim_uniform(void)
{
	return ((sim_random() >> 11) + 0.5) / 9007199254740992.0;
}
