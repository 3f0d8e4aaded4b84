// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports and the ways between them.
 *
 *   host --up--> leaf --up--> spine --down--> leaf --down--> host
 *
 * A port is a queue with one end: when a frame will have left it is known when it comes,
 * so a frame is one event a hop. Without leaves there is one switch; with a round trip
 * given it is the rack of selftests/bench/incast.sh: only the way down to a host is slow, behind
 * a token bucket, and half of the round trip is on each host's way up.
 *
 * In a host's own queue TCP's connections take turns. ESP's are one queue, as with pfifo_fast,
 * or take turns, too (--fair), as with fq_codel, which knows them by their sockets' hash.
 */
#include <stdlib.h>
#include "sim.h"

#define TBF_BURST	1600	/* tokens that incast.sh lets a port save, bytes */
#define TBF_BURST_FAST	4000	/* beyond 1 Gbit/s */

/**
 * struct port - the sending end of a link
 * @free_at:	when all that is queued will have left; with tokens: when the bucket would
 *		be full again
 * @fs:		femtoseconds for a byte; 0: takes no time
 * @burst:	tokens that can be saved, as time; 0: none, and a frame arrives whole
 * @limit:	longest wait that is queued, 0: any
 * @mark:	wait from which frames are marked, 0: never
 * @delay:	of the link and what is behind it
 * @where:	index of net_stats.drops
 */
struct port {
	u64 free_at;
	u64 fs;
	u32 burst;
	u64 limit;
	u64 mark;
	u64 delay;
	u8 where;
};

/**
 * struct nic - a host's connections that have frames to send, in turn
 * @first:	whose turn it is
 * @last:	who comes last
 * @up:		the port behind
 * @busy:	a frame is being sent
 */
struct nic {
	struct turn *first;
	struct turn *last;
	struct port *up;
	bool busy;
};

struct net_stats net_stats;

static struct nic *nics;
static struct port *host_up, *leaf_down, *leaf_up, *spine_down;
static u32 leaves;
static struct packet *free_packets;

static u64 wire_time(u64 fs, u64 bytes)
{
	return (bytes * fs + 500000) / 1000000;
}

static void port_init(struct port *port, u32 mbit, u64 delay, int where)
{
	port->fs = mbit ? 8000000000ull / mbit : 0;
	port->delay = delay;
	port->where = where;
	if (!where || !mbit)
		return;		/* a host keeps what it has to send */
	port->limit = wire_time(port->fs, cfg.buffer);
	if (cfg.proto == PROTO_DCTCP)
		port->mark = wire_time(port->fs, cfg.mark);
}

/**
 * net_build() - the ports, from cfg
 */
void net_build(void)
{
	bool rack = !cfg.per_leaf && cfg.rtt;
	u32 i, uplinks;

	leaves = cfg.per_leaf ? (cfg.hosts + cfg.per_leaf - 1) / cfg.per_leaf : 1;
	uplinks = leaves > 1 ? leaves * cfg.spines : 0;
	host_up = sim_alloc(cfg.hosts * sizeof(*host_up));
	nics = sim_alloc(cfg.hosts * sizeof(*nics));
	leaf_down = sim_alloc(cfg.hosts * sizeof(*leaf_down));
	leaf_up = sim_alloc((uplinks + 1) * sizeof(*leaf_up));
	spine_down = sim_alloc((uplinks + 1) * sizeof(*spine_down));
	for (i = 0; i < cfg.hosts; i++) {
		nics[i].up = &host_up[i];
		port_init(&host_up[i], rack ? 0 : cfg.rate, rack ? cfg.rtt / 2 : cfg.hop, 0);
		port_init(&leaf_down[i], rack && i ? 0 : cfg.rate, rack ? 0 : cfg.hop, 3);
	}
	if (rack) {
		/* of pfifo's frames none is the one that is being sent */
		u32 tokens = cfg.rate > 1000 ? TBF_BURST_FAST : TBF_BURST;

		leaf_down[0].burst = wire_time(leaf_down[0].fs, tokens);
		leaf_down[0].limit = cfg.buffer / 1514 *
				     wire_time(leaf_down[0].fs, SIM_MTU + SIM_FRAMING);
	}
	for (i = 0; i < uplinks; i++) {
		port_init(&leaf_up[i], cfg.uplink, cfg.hop, 1);
		port_init(&spine_down[i], cfg.uplink, cfg.hop, 2);
	}
}

static u32 leaf_of(u32 host)
{
	return cfg.per_leaf ? host / cfg.per_leaf : 0;
}

/* The way of a connection, each direction its own; or of each packet. */
static u16 choose_spine(const struct packet *p)
{
	u64 h;

	if (cfg.spray)
		return sim_random() % cfg.spines;
	h = (p->conn->id * 2ull + p->to_server + 1) * 0x9e3779b97f4a7c15ull;
	return (h >> 32) * cfg.spines >> 32;
}

/**
 * packet_new() - a frame of a connection
 * @conn:	connection; holds a reference until it has arrived
 * @to_server:	direction
 * @payload:	bytes
 * @header:	bytes
 *
 * Return: the frame, the rest of it zero
 */
struct packet *packet_new(struct conn *conn, bool to_server, u32 payload, u32 header)
{
	struct packet *p = free_packets;
	u32 bytes = payload + header + SIM_FRAMING;

	if (p)
		free_packets = p->next;
	else
		p = sim_alloc(sizeof(*p));
	memset(p, 0, sizeof(*p));
	p->conn = conn;
	conn->refs++;
	p->to_server = to_server;
	p->len = payload;
	p->bytes = max(bytes, SIM_FRAME_MIN);
	p->src = to_server ? conn->src : conn->dst;
	p->dst = to_server ? conn->dst : conn->src;
	if (payload)
		state.data++;
	else
		state.empty++;
	return p;
}

static void packet_free(struct packet *p)
{
	struct conn *c = p->conn;

	p->next = free_packets;
	free_packets = p;
	conn_put(c);
}

/* Queue a frame at a port; false: it is lost there. */
static bool port_send(struct port *port, struct packet *p)
{
	u64 tx = wire_time(port->fs, p->bytes), wait, leaves_at;

	if (cfg.loss > 0 && sim_uniform() < cfg.loss) {
		net_stats.lost++;
		return false;
	}
	if (port->burst) {
		s64 at = (s64)(port->free_at + tx) - port->burst;

		leaves_at = at > (s64)sim_now ? (u64)at : sim_now;
		wait = leaves_at - sim_now;
	} else {
		wait = port->free_at > sim_now ? port->free_at - sim_now : 0;
		leaves_at = sim_now + wait + tx;
	}
	if (port->limit && wait + (port->burst ? 0 : tx) > port->limit) {
		net_stats.drops[port->where]++;
		return false;
	}
	if (port->mark && (p->ecn & 1) && wait > port->mark) {
		p->ecn = 3;
		net_stats.marks++;
	}
	if (wait && (port->where == 3 || !port->where)) {
		u64 bytes = wait * 1000000 / port->fs, *most;

		most = port->where ? &net_stats.most : &net_stats.host_most;
		*most = max(*most, bytes);
	}
	port->free_at = (port->free_at > sim_now ? port->free_at : sim_now);
	if (port->burst && port->free_at < leaves_at)
		port->free_at = leaves_at;
	port->free_at += tx;
	event_at(leaves_at + port->delay + p->lag, EVENT_PACKET, p);
	p->lag = 0;
	return true;
}

/* The next port of a frame's way, NULL: it is there. */
static struct port *next_port(struct packet *p)
{
	u32 from = leaf_of(p->src), to = leaf_of(p->dst);

	switch (p->hop++) {
	case 0:
		return &host_up[p->src];
	case 1:
		if (from == to)
			break;
		p->spine = choose_spine(p);
		return &leaf_up[from * cfg.spines + p->spine];
	case 2:
		if (from == to)
			return NULL;
		return &spine_down[to * cfg.spines + p->spine];
	case 3:
		break;
	default:
		return NULL;
	}
	return &leaf_down[p->dst];
}

/**
 * packet_arrives() - a frame is at the end of a link
 * @arg:	frame
 */
void packet_arrives(void *arg)
{
	struct packet *p = arg;
	struct port *port = next_port(p);

	if (port && port_send(port, p))
		return;
	if (!port) {
		if (cfg.proto <= PROTO_SEED)
			esp_input(p);
		else
			tcp_input(p);
	}
	packet_free(p);
}

static void nic_enqueue(struct nic *nic, struct turn *t)
{
	t->next = NULL;
	if (nic->first)
		nic->last->next = t;
	else
		nic->first = t;
	nic->last = t;
}

/**
 * nic_ready() - a host can send its next frame
 * @arg:	struct nic
 */
void nic_ready(void *arg)
{
	struct nic *nic = arg;
	struct turn *t = nic->first;
	struct packet *p;

	nic->busy = t;
	if (!t)
		return;
	nic->first = t->next;
	p = t->first;
	t->first = p->next;
	if (t->first)
		nic_enqueue(nic, t);
	event_at(sim_now + wire_time(nic->up->fs, p->bytes), EVENT_NIC, nic);
	if (!port_send(nic->up, p))
		packet_free(p);
}

/**
 * packet_send() - a host sends a frame
 * @p:	frame; no longer the caller's
 */
void packet_send(struct packet *p)
{
	struct port *port = next_port(p);
	struct nic *nic = &nics[p->src];
	struct turn *t = &p->conn->out[p->to_server];

	if ((cfg.proto <= PROTO_SEED && !cfg.fair) || !port->fs) {
		if (!port_send(port, p))
			packet_free(p);
		return;
	}
	p->next = NULL;
	if (t->first) {
		t->last->next = p;
	} else {
		t->first = p;
		nic_enqueue(nic, t);
	}
	t->last = p;
	if (!nic->busy)
		nic_ready(nic);
}

/**
 * net_ideal() - the shortest time in which bytes can be there, if nobody else sends
 * @src:	host
 * @dst:	host
 * @bytes:	payload
 * @header:	of each packet, bytes
 *
 * Return: from the first frame's start to the last one's arrival
 */
u64 net_ideal(u32 src, u32 dst, u64 bytes, u32 header)
{
	u32 mss = SIM_MTU - header, hops = leaf_of(src) == leaf_of(dst) ? 2 : 4;
	u64 n = (bytes + mss - 1) / mss, wire = bytes + n * (header + SIM_FRAMING);
	u32 last = min(bytes, mss) + header + SIM_FRAMING;
	u64 t;

	if (!cfg.per_leaf && cfg.rtt)
		return wire_time(leaf_down[0].fs, wire) + cfg.rtt / 2;
	t = wire_time(host_up[0].fs, wire) + hops * cfg.hop;
	t += wire_time(leaf_down[0].fs, last);
	if (hops == 4)
		t += 2 * wire_time(leaf_up[0].fs, last);
	return t;
}

/**
 * net_edge_backlog() - bytes that wait in the last port to a host
 * @host:	its number
 *
 * Return: bytes, with what is being sent
 */
u64 net_edge_backlog(u32 host)
{
	struct port *port = &leaf_down[host];

	return port->free_at > sim_now && port->fs ?
	       (port->free_at - sim_now) * 1000000 / port->fs : 0;
}
