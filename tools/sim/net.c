// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports, and the paths of frames through them.
 *
 *   host --up--> leaf --up--> spine --down--> leaf --down--> host
 *
 * A port is a drop-tail queue. When a frame comes, the time at which it will leave is known, so
 * a frame is one event for each hop. Without leaves there is one switch. If a round trip is
 * given, too, the network is the rack of selftests/bench/incast.sh: only the port to host 0 is
 * slow, behind a token bucket, and each host's link to the switch takes half of the round trip.
 *
 * At a host, connections of TCP take turns. ESP gives the device a frame only while no more than
 * DEVICE_BYTES of data wait in its queue; empty frames pass those with data.
 *
 * With --pause, a port whose buffer is full stops the port that the frame came from until the
 * frame has room. Frames on their way then have room beyond the buffer.
 */
#include <stdlib.h>
#include "sim.h"

#define TBF_BURST	1600	/* tokens that a port of incast.sh can save, bytes */
#define TBF_BURST_FAST	4000	/* the same beyond 1 Gbit/s */

#define DEVICE_BYTES	3100	/* ESP's data in a device's queue from which it gets no more */

/* The sending end of a link. */
struct port {
	u64 free_at;	/* when all queued frames will have left, or the bucket will be full */
	u64 fs;		/* femtoseconds for a byte; 0: the port takes no time */
	u32 burst;	/* tokens that the bucket can save, as time; 0: no bucket */
	u64 limit;	/* longest wait of a frame, longer ones are dropped; 0: any */
	u64 mark;	/* wait from which frames are marked; 0: never */
	u64 delay;	/* delay of the link, and of the switch behind it */
	u8 where;	/* index of net_stats.drops */
};

/* A host's transmit queue: connections that have frames to send, in turn. */
struct nic {
	struct turn *first;	/* the connection whose turn it is */
	struct turn *last;	/* the connection whose turn comes last */
	struct port *up;	/* port of the host */
	bool busy;		/* a frame is being sent */
	struct turn empty;	/* ESP: frames without data */
	struct turn data;	/* ESP: frames with data */
	u32 bytes;		/* length of the frames in @data */
	u32 frames;		/* number of frames in @data */
	u64 irq;		/* when the card interrupts next */
	u64 cpu;		/* when the processor has taken in all frames */
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
		return;		/* a host drops no frame of its own */
	port->limit = wire_time(port->fs, cfg.buffer);
	if (cfg.proto == PROTO_DCTCP || cfg.proto == PROTO_SIRD)
		port->mark = wire_time(port->fs, cfg.mark);
}

/**
 * net_build() - make the ports for the configuration cfg
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
		/* the frame that is being sent is not one of pfifo's */
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

/* Choose a spine by the connection and the direction or, with --spray, at random. */
static u16 choose_spine(const struct packet *p)
{
	u64 h;

	if (cfg.spray)
		return sim_random() % cfg.spines;
	h = (p->conn->id * 2ull + p->to_server + 1) * 0x9e3779b97f4a7c15ull;
	return (h >> 32) * cfg.spines >> 32;
}

/**
 * packet_new() - make a frame of a connection
 * @conn:	connection; the frame holds a reference to it until it is freed
 * @to_server:	true: from the client to the server
 * @payload:	bytes
 * @header:	bytes
 *
 * Return: the frame; its other fields are zero
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

/* Queue a frame at a port; false: it is lost, and the caller frees it. */
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
	if (port->limit && wait + (port->burst ? 0 : tx) > port->limit && cfg.pause && p->from) {
		u64 until = sim_now + wait + tx - port->limit;

		p->from->free_at = max(p->from->free_at, until);
	} else if (port->limit && wait + (port->burst ? 0 : tx) > port->limit) {
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
	p->from = port;
	event_at(leaves_at + port->delay + p->lag, EVENT_PACKET, p);
	p->lag = 0;
	return true;
}

/* Return the next port on a frame's path; NULL: it has arrived. */
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

/* Does a frame that has arrived wait for the card's interrupt, and for the processor? */
static bool taken_later(struct nic *nic, struct packet *p)
{
	u64 at = sim_now;

	if (cfg.coalesce) {
		if (nic->irq <= sim_now)
			nic->irq = sim_now + cfg.coalesce;
		at = nic->irq;
	}
	if (cfg.cpu && p->dst % 2) {
		nic->cpu = max(nic->cpu, at) + cfg.cpu;
		at = nic->cpu;
	}
	p->taken = 1;
	if (at == sim_now)
		return false;
	event_at(at, EVENT_PACKET, p);
	return true;
}

/**
 * packet_arrives() - pass a frame at the end of a link to the next port, or to its host
 * @arg:	frame
 */
void packet_arrives(void *arg)
{
	struct packet *p = arg;
	struct port *port = p->taken ? NULL : next_port(p);

	if (port && port_send(port, p))
		return;
	if (!port && !p->taken && taken_later(&nics[p->dst], p))
		return;
	if (!port) {
		if (cfg.proto == PROTO_SIRD)
			sird_input(p);
		else if (cfg.proto <= PROTO_SEED)
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

static struct packet *turn_pop(struct turn *t)
{
	struct packet *p = t->first;

	if (p)
		t->first = p->next;
	return p;
}

static void turn_push(struct turn *t, struct packet *p)
{
	p->next = NULL;
	if (t->first)
		t->last->next = p;
	else
		t->first = p;
	t->last = p;
}

/* Choose the next frame of a host; NULL: there is none. */
static struct packet *nic_next(struct nic *nic)
{
	struct turn *t = nic->first;
	struct packet *p;

	if (t) {
		nic->first = t->next;
		p = turn_pop(t);
		if (t->first)
			nic_enqueue(nic, t);
		return p;
	}
	p = turn_pop(&nic->empty);
	if (p)
		return p;
	p = turn_pop(&nic->data);
	if (p) {
		nic->bytes -= p->bytes;
		nic->frames--;
	}
	return p;
}

/**
 * nic_ready() - send the next frame of a host
 * @arg:	struct nic
 */
void nic_ready(void *arg)
{
	struct nic *nic = arg;
	struct packet *p;

	p = nic_next(nic);
	nic->busy = p;
	if (!p)
		return;
	event_at(sim_now + wire_time(nic->up->fs, p->bytes), EVENT_NIC, nic);
	if (!port_send(nic->up, p))
		packet_free(p);
	if (cfg.proto <= PROTO_SEED)
		esp_device_ready(nic - nics);
	else if (cfg.proto == PROTO_SIRD)
		sird_device_ready(nic - nics);
}

/**
 * net_host_room() - may ESP give the device of a host another packet?
 * @host:	number of the host
 *
 * Return: true if so
 */
bool net_host_room(u32 host)
{
	return !nics[host].up->fs || nics[host].bytes < DEVICE_BYTES;
}

/**
 * net_host_frames() - count ESP's data frames in the queue of a device
 * @host:	number of the host
 *
 * Return: frames
 */
u32 net_host_frames(u32 host)
{
	return nics[host].frames;
}

/**
 * packet_send() - send a frame from its host
 * @p:	frame; consumed
 */
void packet_send(struct packet *p)
{
	struct port *port = next_port(p);
	struct nic *nic = &nics[p->src];
	struct turn *t = &p->conn->out[p->to_server];

	if (!port->fs) {
		if (!port_send(port, p))
			packet_free(p);
		return;
	}
	if (cfg.proto > PROTO_SEED && cfg.proto != PROTO_SIRD) {
		if (!t->first)
			nic_enqueue(nic, t);
		turn_push(t, p);
	} else if (p->len) {
		turn_push(&nic->data, p);
		nic->bytes += p->bytes;
		nic->frames++;
		net_stats.host_most = max(net_stats.host_most, nic->bytes);
	} else {
		turn_push(&nic->empty, p);
	}
	if (!nic->busy)
		nic_ready(nic);
}

/**
 * net_ideal() - compute the shortest time of a message on a network without other traffic
 * @src:	sending host
 * @dst:	receiving host
 * @bytes:	payload of the message
 * @header:	header of each packet, bytes
 *
 * Return: time from the start of the first frame to the arrival of the last one
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
 * net_edge_backlog() - compute the backlog of the port to a host
 * @host:	number of the host
 *
 * Return: bytes, including the frame that is being sent
 */
u64 net_edge_backlog(u32 host)
{
	struct port *port = &leaf_down[host];

	return port->free_at > sim_now && port->fs ?
	       (port->free_at - sim_now) * 1000000 / port->fs : 0;
}
