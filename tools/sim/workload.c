// SPDX-License-Identifier: GPL-2.0-only
/*
 * The messages between hosts, and their completion times: blocks and flows as those of
 * selftests/bench/incast.c, and flows of published sizes that begin as a Poisson process.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "sim.h"

#define REFILL		(16 << 20)	/* least bytes that a flow without end has to send */
#define SETTLE		(10 * NS_PER_MS)	/* pause between connecting and the first message */
#define INTERVAL	(100 * NS_PER_US)	/* between two looks at ports and queues */
#define SMALL		100000		/* flows below this size are small, bytes */
#define LARGE		1000000		/* flows from this size on are large, bytes */

struct sim_state state;

enum step { STEP_OPEN, STEP_ROUND, STEP_SENDER, STEP_ARRIVAL, STEP_MEASURE, STEP_LOOK, STEP_END };

static struct conn **conns;		/* to host 0, or all to all */
static u32 nconns, pending, rounds_done, starting;
static u64 began, ended;
static bool measuring, over;

static struct {
	u64 at;
	u64 size;
	u16 src;
	u16 dst;
} *arrivals;
static u32 narrivals, arrived, finished;
static u64 offered, got_in_time;

static struct samples times, slow[3], queue;

static u32 header(void)
{
	return cfg.proto <= PROTO_SEED ? SIM_ESP_HEADER : SIM_TCP_HEADER;
}

static bool is_esp(void)
{
	return cfg.proto <= PROTO_SEED;
}

static void step_at(u64 at, enum step step)
{
	event_at(at, EVENT_APP, (void *)(uintptr_t)step);
}

static struct conn *conn_open(u32 src, u32 dst)
{
	static u32 id;
	struct conn *c = sim_alloc(sizeof(*c));

	c->id = id++;
	c->src = src;
	c->dst = dst;
	c->start = sim_now;
	c->refs = 1;	/* dropped by conn_opened() */
	if (is_esp())
		esp_open(c);
	else if (cfg.proto == PROTO_SIRD)
		sird_open(c);
	else
		tcp_open(c);
	return c;
}

static void conn_write(struct conn *c, u64 bytes)
{
	c->size += bytes;
	if (is_esp())
		esp_write(c, bytes);
	else if (cfg.proto == PROTO_SIRD)
		sird_write(c, bytes);
	else
		tcp_write(c, bytes);
}

/**
 * conn_put() - drop a reference to a connection
 * @c:	connection; freed with the last reference, if it is closed
 */
void conn_put(struct conn *c)
{
	if (--c->refs || !c->closed)
		return;
	if (is_esp())
		esp_free(c);
	else if (cfg.proto == PROTO_SIRD)
		sird_free(c);
	else
		tcp_free(c);
	free(c);
}

/**
 * conn_opened() - go on after connect() has returned
 * @c:	connection
 */
void conn_opened(struct conn *c)
{
	c->opened = true;
	conn_put(c);
	if (cfg.pattern == PATTERN_LOAD)
		conn_write(c, c->before);
	else
		step_at(sim_now + (cfg.rtt ? cfg.rtt : 4 * cfg.hop), STEP_OPEN);
}

static void message_in(struct conn *c)
{
	double took = sim_now - c->start;
	u32 class;

	if (cfg.pattern == PATTERN_BLOCKS) {
		sample_add(&times, took);
		c->busy += took;
		if (!--pending)
			step_at(sim_now, STEP_ROUND);
		return;
	}
	class = (c->size >= SMALL) + (c->size >= LARGE);
	sample_add(&slow[class], took / net_ideal(c->src, c->dst, c->size, header()));
	sample_add(&times, took);
	if (++finished == narrivals)
		step_at(sim_now, STEP_END);
}

/**
 * conn_received() - read the bytes that a receiver has got in order
 * @c:		connection
 * @bytes:	number of bytes
 */
void conn_received(struct conn *c, u32 bytes)
{
	c->got += bytes;
	if (cfg.pattern == PATTERN_FLOWS) {
		if (c->size - c->got < REFILL)
			conn_write(c, REFILL);
		return;
	}
	if (cfg.pattern == PATTERN_LOAD && sim_now <= cfg.time)
		got_in_time += bytes;
	if (c->got == c->size)
		message_in(c);
}

/**
 * conn_acked() - close a connection after an ACK, if its flow is complete
 * @c:	connection
 */
void conn_acked(struct conn *c)
{
	if (cfg.pattern != PATTERN_LOAD || c->closed || !c->opened || c->got != c->before)
		return;
	if (is_esp()) {
		if (esp_all_acked(c))
			esp_close(c);
	} else if (cfg.proto == PROTO_SIRD || tcp_all_acked(c)) {
		c->closed = true;
		state.socks -= 2;
	}
}

/* Open the next connection: one program opens them one after the other. */
static void open_next(void)
{
	if (nconns < cfg.connected) {
		u32 src = cfg.alltoall ? nconns % cfg.hosts : nconns + 1;
		u32 dst = cfg.alltoall ? (src + 1 + nconns / cfg.hosts) % cfg.hosts : 0;

		conns[nconns++] = conn_open(src, dst);
		return;
	}
	step_at(sim_now + SETTLE, cfg.pattern == PATTERN_BLOCKS ? STEP_ROUND : STEP_MEASURE);
}

/* Shuffle the senders before each round, because the first one at a port fares better. */
static void shuffle(void)
{
	u32 i, j;

	for (i = cfg.senders - 1; i; i--) {
		struct conn *c = conns[i];

		j = sim_random() % (i + 1);
		conns[i] = conns[j];
		conns[j] = c;
	}
}

/*
 * Let the next senders write. They write at once. In the rack one program writes for all
 * senders, one after the other, and reads the clock in between.
 */
static void start_sender(void)
{
	u64 frames;

	while (starting < cfg.senders) {
		frames = state.data;
		conn_write(conns[starting++], cfg.block);
		if (!cfg.rtt)
			continue;
		frames = is_esp() ? 0 : state.data - frames;
		step_at(sim_now + (1 + frames) * SIM_RACK_CLOCK, STEP_SENDER);
		return;
	}
}

static void start_round(void)
{
	u32 i;

	if (rounds_done == cfg.rounds) {
		ended = sim_now;
		over = true;
		return;
	}
	if (!rounds_done++) {
		began = sim_now;
		memset(&net_stats, 0, sizeof(net_stats));
		step_at(sim_now, STEP_LOOK);
	}
	if (cfg.alltoall ? cfg.shuffle : !cfg.rtt)
		shuffle();
	pending = cfg.senders;
	for (i = 0; i < cfg.senders; i++)
		conns[i]->start = sim_now;
	starting = 0;
	start_sender();
}

/* Start the flows, begin to measure a quarter of cfg.time later, and end after cfg.time. */
static void measure(void)
{
	u32 i;

	if (measuring) {
		ended = sim_now;
		over = true;
		return;
	}
	if (!began) {
		began = sim_now + cfg.time / 4;
		for (i = 0; i < cfg.senders; i++)
			conn_write(conns[i], REFILL);
		step_at(began, STEP_MEASURE);
		return;
	}
	measuring = true;
	memset(&net_stats, 0, sizeof(net_stats));
	for (i = 0; i < cfg.senders; i++)
		conns[i]->before = conns[i]->got;
	step_at(sim_now + cfg.time, STEP_MEASURE);
	step_at(sim_now, STEP_LOOK);
}

static void look(void)
{
	if (is_esp())
		esp_look();
	if (cfg.pattern == PATTERN_FLOWS)
		sample_add(&queue, (double)net_edge_backlog(0) / (SIM_MTU + SIM_FRAMING));
	step_at(sim_now + INTERVAL, STEP_LOOK);
}

/* Draw all flows before anything else, so that they are the same for each protocol. */
static void draw_arrivals(void)
{
	double mean = workload_mean(cfg.workload), at = 0, gap;
	u32 room = 1024;

	arrivals = sim_alloc(room * sizeof(*arrivals));
	/* the load is a share of what a link carries without headers as long as TCP's */
	gap = mean / (cfg.load * cfg.hosts * cfg.rate * 1e6 / 8 *
		      (SIM_MTU - SIM_TCP_HEADER) / (SIM_MTU + SIM_FRAMING)) * NS_PER_S;
	for (;;) {
		at -= gap * __builtin_log(sim_uniform());
		if (at >= cfg.time)
			break;
		if (narrivals == room) {
			room *= 2;
			arrivals = realloc(arrivals, room * sizeof(*arrivals));
			if (!arrivals)
				exit(1);
		}
		arrivals[narrivals].at = at;
		arrivals[narrivals].size = workload_draw(cfg.workload);
		arrivals[narrivals].src = sim_random() % cfg.hosts;
		arrivals[narrivals].dst = (arrivals[narrivals].src + 1 +
					   sim_random() % (cfg.hosts - 1)) % cfg.hosts;
		offered += arrivals[narrivals].size;
		narrivals++;
	}
}

/**
 * workload_arrivals() - print the flows of the workload for others that play them
 *
 * A line for each: when it begins (nanoseconds), the number of its sender, that of its receiver,
 * its bytes, and its ideal time (nanoseconds), as net_ideal() has it.
 */
void workload_arrivals(void)
{
	u32 i;

	draw_arrivals();
	for (i = 0; i < narrivals; i++)
		printf("%" PRIu64 " %u %u %" PRIu64 " %" PRIu64 "\n", arrivals[i].at,
		       arrivals[i].src, arrivals[i].dst, arrivals[i].size,
		       net_ideal(arrivals[i].src, arrivals[i].dst, arrivals[i].size, header()));
}

static void arrive(void)
{
	struct conn *c = conn_open(arrivals[arrived].src, arrivals[arrived].dst);

	c->before = arrivals[arrived].size;
	if (++arrived < narrivals)
		step_at(arrivals[arrived].at, STEP_ARRIVAL);
}

static void step(void *arg)
{
	switch ((enum step)(uintptr_t)arg) {
	case STEP_OPEN:
		open_next();
		break;
	case STEP_ROUND:
		start_round();
		break;
	case STEP_SENDER:
		start_sender();
		break;
	case STEP_ARRIVAL:
		arrive();
		break;
	case STEP_MEASURE:
		measure();
		break;
	case STEP_LOOK:
		look();
		break;
	case STEP_END:
		ended = sim_now;
		over = true;
		break;
	}
}

static void fluid_done(struct conn *c, u64 at)
{
	sim_now = at;
	c->size = c->before;
	message_in(c);
}

static void run_fluid(void)
{
	struct conn **all = sim_alloc((narrivals + 1) * sizeof(*all));
	u32 i;

	for (i = 0; i < narrivals; i++) {
		all[i] = sim_alloc(sizeof(**all));
		all[i]->src = arrivals[i].src;
		all[i]->dst = arrivals[i].dst;
		all[i]->start = arrivals[i].at;
		all[i]->before = arrivals[i].size;
	}
	got_in_time = fluid_run(all, narrivals, header(), fluid_done);
	ended = sim_now;
	arrived = narrivals;
}

/**
 * workload_run() - run the simulation
 */
void workload_run(void)
{
	const event_handler handler[EVENT_MAX] = {
		[EVENT_PACKET]	= packet_arrives,
		[EVENT_TIMER]	= esp_timer,
		[EVENT_PACE]	= cfg.proto == PROTO_SIRD ? sird_pace : esp_pace,
		[EVENT_TCP]	= cfg.proto == PROTO_SIRD ? sird_timer : tcp_timer,
		[EVENT_NIC]	= nic_ready,
		[EVENT_APP]	= step,
	};

	if (is_esp())
		esp_build();
	if (cfg.proto == PROTO_SIRD)
		sird_build();
	if (cfg.pattern == PATTERN_LOAD) {
		draw_arrivals();
		if (!narrivals) {
			fputs("espsim: no flow begins in so short a time\n", stderr);
			exit(1);
		}
		if (cfg.proto == PROTO_IDEAL) {
			run_fluid();
			return;
		}
		step_at(arrivals[0].at, STEP_ARRIVAL);
		step_at(INTERVAL, STEP_LOOK);
	} else {
		conns = sim_alloc(cfg.connected * sizeof(*conns));
		step_at(0, STEP_OPEN);
	}
	while (!over && sim_now < cfg.limit && event_run(handler))
		;
	if (!over)
		ended = sim_now;
	/* not all connections are open, or the first round or the measurement has not begun */
	if (cfg.pattern != PATTERN_LOAD && (!began || ended <= began)) {
		fputs("espsim: the limit ends the run before anything is measured\n", stderr);
		exit(1);
	}
}

/* Payload that a host's link can carry, bytes a second. */
static double attainable(void)
{
	return cfg.rate * 1e6 / 8 * (SIM_MTU - header()) / (SIM_MTU + SIM_FRAMING);
}

/* Blocks that a host receives in a round. */
static u32 blocks_in(void)
{
	return cfg.alltoall ? cfg.hosts - 1 : cfg.senders;
}

/* Goodput as a share of what the receiver's link, or the links of all hosts, can carry. */
static double goodput_share(void)
{
	double took = (double)(ended - began) / NS_PER_S, bytes = 0, ideal;
	u32 i;

	if (cfg.pattern == PATTERN_LOAD)
		return got_in_time / (attainable() * cfg.hosts * cfg.time / NS_PER_S);
	if (cfg.pattern == PATTERN_FLOWS) {
		for (i = 0; i < cfg.senders; i++)
			bytes += conns[i]->got - conns[i]->before;
		return bytes / took / attainable();
	}
	/* a round takes at least the time of its bytes on the link, and the shortest path's */
	ideal = blocks_in() * (double)cfg.block / attainable();
	ideal += (!cfg.per_leaf && cfg.rtt ? cfg.rtt / 2 :
		  net_ideal(1, 0, 1, header())) / (double)NS_PER_S;
	if (!over) {
		/* some rounds did not end: count the bytes that came */
		for (i = 0; i < cfg.senders; i++)
			bytes += conns[i]->got;
		return bytes / attainable() / took;
	}
	return cfg.rounds * ideal / took;
}

static double jain(void)
{
	double sum = 0, squares = 0, x;
	u32 i;

	for (i = 0; i < cfg.senders; i++) {
		x = cfg.pattern == PATTERN_FLOWS ? (double)(conns[i]->got - conns[i]->before) :
		    conns[i]->busy ? 1e12 / conns[i]->busy : 0;
		sum += x;
		squares += x * x;
	}
	return squares > 0 ? sum * sum / cfg.senders / squares : 0;
}

static double ideal_block(void)
{
	return blocks_in() * (double)cfg.block / attainable() * NS_PER_S +
	       (!cfg.per_leaf && cfg.rtt ? cfg.rtt / 2 : 0);
}

static const char *const proto_names[] = {
	"esp", "seed", "newreno", "cubic", "dctcp", "sird", "ideal",
};

static const char *const pattern_names[] = { "blocks", "flows", "load" };

struct field {
	const char *name;
	double value;
	int digits;
};

static u32 fields(struct field *f)
{
	static const char *const classes[3][3] = {
		{ "small_n", "small_p50", "small_p99" },
		{ "middle_n", "middle_p50", "middle_p99" },
		{ "large_n", "large_p50", "large_p99" },
	};
	double all = attainable() * cfg.hosts * cfg.time / NS_PER_S;
	u32 n = 0, i;

#define FIELD(what, v, d)	(f[n++] = (struct field) { what, v, d })
	FIELD("goodput_share", goodput_share(), 4);
	FIELD("drops_up", net_stats.drops[1], 0);
	FIELD("drops_core", net_stats.drops[2], 0);
	FIELD("drops_edge", net_stats.drops[3], 0);
	FIELD("lost", net_stats.lost, 0);
	FIELD("marks", net_stats.marks, 0);
	FIELD("buffer_most", net_stats.most, 0);
	FIELD("host_queue_most", net_stats.host_most, 0);
	FIELD("retransmits", state.again, 0);
	FIELD("duplicates", state.duplicate, 0);
	FIELD("out_of_order", state.ooo, 0);
	FIELD("timeouts", state.timeouts, 0);
	if (cfg.pattern == PATTERN_LOAD) {
		FIELD("flows", narrivals, 0);
		FIELD("finished", finished, 0);
		FIELD("offered_share", offered / all, 4);
		for (i = 0; i < 3; i++) {
			FIELD(classes[i][0], slow[i].n, 0);
			FIELD(classes[i][1], sample_percentile(&slow[i], 0.5), 3);
			FIELD(classes[i][2], sample_percentile(&slow[i], 0.99), 3);
		}
		FIELD("fct_p50_us", sample_percentile(&times, 0.5) / NS_PER_US, 1);
		FIELD("fct_p99_us", sample_percentile(&times, 0.99) / NS_PER_US, 1);
	} else {
		FIELD("jain", jain(), 4);
	}
	if (cfg.pattern == PATTERN_BLOCKS) {
		FIELD("rounds_done", over ? cfg.rounds : rounds_done - 1, 0);
		FIELD("fct_p50_ratio", sample_percentile(&times, 0.5) / ideal_block(), 3);
		FIELD("fct_p99_ratio", sample_percentile(&times, 0.99) / ideal_block(), 3);
		FIELD("fct_p50_us", sample_percentile(&times, 0.5) / NS_PER_US, 1);
		FIELD("fct_p99_us", sample_percentile(&times, 0.99) / NS_PER_US, 1);
	} else if (cfg.pattern == PATTERN_FLOWS) {
		FIELD("queue_p50", sample_percentile(&queue, 0.5), 0);
		FIELD("queue_p99", sample_percentile(&queue, 0.99), 0);
	}
	if (is_esp()) {
		FIELD("rrqs", state.rrqs, 0);
		FIELD("expiries", state.expiries, 0);
		FIELD("empty_txs", state.empty_txs, 0);
		FIELD("holds", state.holds, 0);
		FIELD("waits", state.waits, 0);
		FIELD("waits_idle", state.waits_idle, 0);
		FIELD("queue_most", state.queue_most, 0);
		FIELD("host_socks_most", state.host_socks_most, 0);
		FIELD("host_peers_most", state.host_peers_most, 0);
		FIELD("timewait_most", state.timewait_most, 0);
		FIELD("host_bytes_most", state.bytes_most, 0);
	}
	FIELD("frames_data", state.data, 0);
	FIELD("frames_empty", state.empty, 0);
	FIELD("simulated_ms", (double)sim_now / NS_PER_MS, 3);
	FIELD("events", sim_events, 0);
#undef FIELD
	return n;
}

static void put(const struct field *f, u32 n, bool json)
{
	u32 i;

	for (i = 0; i < n; i++)
		printf(json ? ", \"%s\": %.*f" : "%-16s %.*f\n", f[i].name, f[i].digits,
		       f[i].value);
}

/**
 * workload_report() - print the results
 * @json:	print one JSON object on one line, with the options
 */
void workload_report(bool json)
{
	const struct field options[] = {
		{ "hosts", cfg.hosts, 0 },
		{ "senders", cfg.senders, 0 },
		{ "connected", cfg.connected, 0 },
		{ "per_leaf", cfg.per_leaf, 0 },
		{ "spines", cfg.spines, 0 },
		{ "rate_mbit", cfg.rate, 0 },
		{ "uplink_mbit", cfg.uplink, 0 },
		{ "buffer_kib", (double)cfg.buffer / 1024, 0 },
		{ "rtt_us", (double)cfg.rtt / NS_PER_US, 1 },
		{ "hop_us", (double)cfg.hop / NS_PER_US, 3 },
		{ "spray", cfg.spray, 0 },
		{ "alltoall", cfg.alltoall, 0 },
		{ "shuffle", cfg.shuffle, 0 },
		{ "coalesce_us", (double)cfg.coalesce / NS_PER_US, 1 },
		{ "told_mbit", cfg.told, 0 },
		{ "fifo", cfg.fifo, 0 },
		{ "handshake", cfg.handshake, 0 },
		{ "cpu_us", (double)cfg.cpu / NS_PER_US, 1 },
		{ "pause", cfg.pause, 0 },
		{ "loss", cfg.loss, 4 },
		{ "load", cfg.load, 2 },
		{ "block", cfg.block, 0 },
		{ "seed", cfg.seed, 0 },
	};
	struct field f[64];
	u32 n = fields(f);

	if (json) {
		printf("{\"proto\": \"%s\", \"pattern\": \"%s\", \"workload\": \"%s\"",
		       proto_names[cfg.proto], pattern_names[cfg.pattern],
		       cfg.workload ? cfg.workload->name : "-");
		put(options, ARRAY_SIZE(options), true);
	}
	put(f, n, json);
	if (json)
		puts("}");
}
