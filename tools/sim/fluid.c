// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ideal network. Flows are fluid, and have max-min fair rates at each moment (progressive
 * filling). There is no handshake, no queue and no loss. All uplinks of a leaf count as one
 * link, as if flows were spread over them evenly.
 */
#include <stdlib.h>
#include "sim.h"

struct flow {
	struct conn *conn;
	double left;	/* bytes still to be sent, as on the wire */
	double rate;	/* bytes in a nanosecond */
	u32 link[4];
	u32 links;
};

static double *room;		/* capacity of each link that no flow has got yet */
static u32 *users;		/* flows on each link that have no rate yet */
static double *capacity;
static u32 nlinks;
static struct flow *active;
static u32 nactive, active_room;

static void build(void)
{
	u32 leaves = cfg.per_leaf ? (cfg.hosts + cfg.per_leaf - 1) / cfg.per_leaf : 1, i;
	double host = cfg.rate / 8000.0, up = cfg.uplink / 8000.0 * cfg.spines;

	nlinks = 2 * cfg.hosts + 2 * leaves;
	room = sim_alloc(nlinks * sizeof(*room));
	users = sim_alloc(nlinks * sizeof(*users));
	capacity = sim_alloc(nlinks * sizeof(*capacity));
	for (i = 0; i < nlinks; i++)
		capacity[i] = i < 2 * cfg.hosts ? host : up;
}

static void add(struct conn *c, u32 head)
{
	u32 from = cfg.per_leaf ? c->src / cfg.per_leaf : 0;
	u32 to = cfg.per_leaf ? c->dst / cfg.per_leaf : 0;
	u64 mss = SIM_MTU - head, packets = (c->before + mss - 1) / mss;
	struct flow *f;

	if (nactive == active_room) {
		active_room = active_room ? 2 * active_room : 256;
		active = realloc(active, active_room * sizeof(*active));
		if (!active)
			exit(1);
	}
	f = &active[nactive++];
	f->conn = c;
	f->left = c->before + packets * (head + SIM_FRAMING);
	f->links = 2;
	f->link[0] = c->src;
	f->link[1] = cfg.hosts + c->dst;
	if (from != to) {
		f->link[f->links++] = 2 * cfg.hosts + 2 * from;
		f->link[f->links++] = 2 * cfg.hosts + 2 * to + 1;
	}
}

/*
 * Give every flow its rate. In each step, find the link with the smallest share for each flow
 * without a rate, and give these flows that share.
 */
static void share_out(void)
{
	u32 unset = nactive, i, j, worst;

	memcpy(room, capacity, nlinks * sizeof(*room));
	memset(users, 0, nlinks * sizeof(*users));
	for (i = 0; i < nactive; i++) {
		active[i].rate = -1;
		for (j = 0; j < active[i].links; j++)
			users[active[i].link[j]]++;
	}
	while (unset) {
		double least = 0;

		for (i = 0, worst = nlinks; i < nlinks; i++)
			if (users[i] && (worst == nlinks || room[i] / users[i] < least)) {
				worst = i;
				least = room[i] / users[i];
			}
		for (i = 0; i < nactive; i++) {
			struct flow *f = &active[i];
			bool uses = false;

			for (j = 0; j < f->links; j++)
				uses |= f->link[j] == worst;
			if (f->rate >= 0 || !uses)
				continue;
			f->rate = least;
			unset--;
			for (j = 0; j < f->links; j++) {
				room[f->link[j]] -= least;
				users[f->link[j]]--;
			}
		}
	}
}

/* Time from the end of sending to the arrival of the last packet. */
static u64 active_tail(const struct conn *c, u32 head)
{
	u64 mss = SIM_MTU - head, packets = (c->before + mss - 1) / mss;

	return net_ideal(c->src, c->dst, c->before, head) -
	       (c->before + packets * (head + SIM_FRAMING)) * 8000 / cfg.rate;
}

static u32 next_to_end(double *in)
{
	u32 i, first = nactive;

	for (i = 0; i < nactive; i++) {
		double t = active[i].left / active[i].rate;

		if (first == nactive || t < *in) {
			first = i;
			*in = t;
		}
	}
	return first;
}

/**
 * fluid_run() - simulate all flows
 * @conns:	flows: src, dst, start and before (the size) are set; sorted by start
 * @n:		number of flows
 * @head:	header of a packet, bytes
 * @done:	called for each flow that ends, with the time at which its last packet arrives
 *
 * Return: payload bytes that came within cfg.time
 */
u64 fluid_run(struct conn **conns, u32 n, u32 head, void (*done)(struct conn *c, u64 at))
{
	double now = 0, in_time = 0, in = 0, payload = SIM_MTU - head;
	u32 begun = 0, i, first;

	build();
	while ((begun < n || nactive) && now < cfg.limit) {
		double until;

		share_out();
		first = next_to_end(&in);
		until = first < nactive ? now + in : 1e300;
		if (begun < n && conns[begun]->start <= until) {
			until = conns[begun]->start;
			first = nactive;
		}
		for (i = 0; i < nactive; i++) {
			double moved = active[i].rate * (until - now);

			active[i].left -= moved;
			if (until <= cfg.time)
				in_time += moved * payload / (SIM_MTU + SIM_FRAMING);
		}
		now = until;
		if (first < nactive) {
			struct conn *c = active[first].conn;

			active[first] = active[--nactive];
			done(c, now + active_tail(c, head));
		} else {
			add(conns[begun++], head);
		}
	}
	return in_time;
}
