/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * espsim: many hosts, their switches, and what ESP or TCP does there.
 *
 *   workload.c   who sends what to whom, and when; completion times
 *      |
 *   esp_*.c, tcp.c, fluid.c      the protocols
 *      |
 *   net.c        ports: rate, buffer, drop, mark; leaf and spine
 *      |
 *   event.c      what happens next
 *
 * Times are nanoseconds of simulated time if nothing else is said. One thread.
 */
#ifndef _ESP_SIM_H
#define _ESP_SIM_H

#include "core/pure.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define NS_PER_US	1000ull
#define NS_PER_MS	(1000 * NS_PER_US)
#define NS_PER_S	(1000 * NS_PER_MS)

#define SIM_MTU		1500
#define SIM_FRAMING	38	/* Ethernet's header, FCS, preamble and gap, bytes */
#define SIM_FRAME_MIN	84	/* smallest frame with preamble and gap */
#define SIM_ESP_HEADER	32
#define SIM_TCP_HEADER	52	/* IP, TCP, timestamps */
#define SIM_RACK_CLOCK	256	/* to read the clock takes, in uml-virtual */

enum sim_proto {
	PROTO_ESP,
	PROTO_SEED,
	PROTO_NEWRENO,
	PROTO_CUBIC,
	PROTO_DCTCP,
	PROTO_IDEAL,
	PROTO_MAX,
};

enum sim_pattern {
	PATTERN_BLOCKS,		/* everybody a block to host 0, then the next round */
	PATTERN_FLOWS,		/* everybody without end to host 0 */
	PATTERN_LOAD,		/* a published workload's flows between all */
	PATTERN_MAX,
};

/**
 * struct sim_config - one run
 * @proto:	who is to send
 * @pattern:	what
 * @workload:	of PATTERN_LOAD, see workload_find()
 * @hosts:	their number, N
 * @senders:	hosts that send in the other patterns; the receiver is one more
 * @connected:	hosts connected to the receiver: those that do not send are idle
 * @per_leaf:	hosts at a leaf; 0: one switch for all
 * @spines:	spine switches; each leaf has an uplink to each
 * @rate:	of a host's link, Mbit/s
 * @uplink:	of a link between leaf and spine, Mbit/s
 * @buffer:	of a port, bytes
 * @mark:	backlog from which a port marks for DCTCP, bytes
 * @hop:	time on a link, and in the switch behind it
 * @rtt:	of the rack (per_leaf 0), as selftests/bench/incast.sh has it; 0: links as of a leaf
 * @spray:	each packet of a connection takes a spine of its own
 * @fair:	connections take turns in ESP's hosts, too
 * @load:	of the hosts' links, 0 ... 1
 * @block:	bytes
 * @rounds:	of blocks
 * @time:	during which flows begin, or are measured
 * @limit:	simulated time after which a run ends, whatever is unfinished
 * @seed:	of what is drawn
 * @loss:	share of frames lost at random on every link, 0 ... 1
 */
struct sim_config {
	enum sim_proto proto;
	enum sim_pattern pattern;
	const struct workload *workload;
	u32 hosts;
	u32 senders;
	u32 connected;
	u32 per_leaf;
	u32 spines;
	u32 rate;
	u32 uplink;
	u64 buffer;
	u64 mark;
	u64 hop;
	u64 rtt;
	bool spray;
	bool fair;
	double load;
	u64 block;
	u32 rounds;
	u64 time;
	u64 limit;
	u64 seed;
	double loss;
};

extern struct sim_config cfg;

/* event.c */
enum event_kind {
	EVENT_PACKET,
	EVENT_TIMER,
	EVENT_PACE,
	EVENT_TCP,
	EVENT_NIC,
	EVENT_APP,
	EVENT_MAX,
};

typedef void (*event_handler)(void *arg);

extern u64 sim_now;
extern u64 sim_events;

void event_at(u64 at, enum event_kind kind, void *arg);
bool event_run(const event_handler handler[EVENT_MAX]);
void *sim_alloc(size_t n);
u64 sim_random(void);
double sim_uniform(void);

static inline u64 sim_us(void)
{
	return sim_now / NS_PER_US;
}

/* net.c */
enum {
	PKT_SYN = 1, PKT_ACK = 2, PKT_TXS = 4, PKT_TXF = 8, PKT_RRQ = 16, PKT_ADVICE = 32,
	PKT_HELLO = 64, PKT_DSACK = 128, PKT_CWR = 256,
};

/**
 * struct packet - a frame
 * @next:	in the list of free ones
 * @conn:	whose it is
 * @seq:	ESP: pkt_seq; TCP: number of the segment
 * @ack:	next one expected
 * @ts_val:	clock of who sent it, microseconds
 * @ts_ecr:	echo
 * @bytes:	on the wire, with preamble and gap
 * @len:	payload
 * @grant:	ESP's field; TCP: window, segments
 * @advice:	option
 * @lag:	ns until it leaves its host
 * @src:	host
 * @dst:	host
 * @spine:	on its way
 * @flags:	PKT_*
 * @hop:	ports that it has passed
 * @to_server:	from who opened the connection
 * @ecn:	1: may be marked; 3: has been; TCP's ACK: 3: echoes that
 * @ranges:	valid ones of @r: of an RRQ, or SACK blocks
 * @r:		an RRQ's
 */
struct packet {
	struct packet *next;
	struct conn *conn;
	u32 seq;
	u32 ack;
	u32 ts_val;
	u32 ts_ecr;
	u32 lag;
	u16 bytes;
	u16 len;
	u16 grant;
	u16 advice;
	u16 src;
	u16 dst;
	u16 spine;
	u16 flags;
	u8 hop;
	u8 to_server;
	u8 ecn;
	u8 ranges;
	struct {
		u16 offset;
		u16 count;
	} r[3];
};

/**
 * struct net_stats - what ports did
 * @drops:	frames: at hosts, on the way up, down from spines, at the last port
 * @lost:	at random
 * @marks:	frames
 * @most:	largest backlog of a last port, bytes
 * @host_most:	of a host's own
 */
struct net_stats {
	u64 drops[4];
	u64 lost;
	u64 marks;
	u64 most;
	u64 host_most;
};

extern struct net_stats net_stats;

void net_build(void);
struct packet *packet_new(struct conn *conn, bool to_server, u32 payload, u32 header);
void packet_send(struct packet *p);
void packet_arrives(void *arg);
void nic_ready(void *arg);
u64 net_ideal(u32 src, u32 dst, u64 bytes, u32 header);
u64 net_edge_backlog(u32 host);

/* workload.c */

/* Frames of one direction that wait at their host, TCP's; in turn with other connections'. */
struct turn {
	struct packet *first;
	struct packet *last;
	struct turn *next;
};

/**
 * struct conn - a connection, and what goes over it
 * @esp:	ends: who opened it, and sends; who was asked
 * @tcp:	both ends in one
 * @out:	frames that wait at their host: to who opened it, to who was asked
 * @refs:	packets on their way and timers
 * @id:		number
 * @src:	host that opened it
 * @dst:	host
 * @closed:	no more comes
 * @opened:	the application knows
 * @size:	bytes that were asked for so far
 * @got:	bytes in order at the receiver
 * @start:	when the present message began
 * @before:	@got when measuring began
 * @busy:	time of all messages
 */
struct conn {
	struct esp_sk *esp[2];
	struct tcp *tcp;
	struct turn out[2];
	u32 refs;
	u32 id;
	u16 src;
	u16 dst;
	bool closed;
	bool opened;
	u64 size;
	u64 got;
	u64 start;
	u64 before;
	u64 busy;
};

struct workload {
	const char *name;
	const char *source;
	double unit;
	u32 n;
	struct {
		double size;
		double below;
	} at[20];
};

const struct workload *workload_find(const char *name);
double workload_mean(const struct workload *w);
u64 workload_draw(const struct workload *w);
const char *workload_names(void);

void conn_opened(struct conn *c);
void conn_received(struct conn *c, u32 bytes);
void conn_acked(struct conn *c);
void conn_put(struct conn *c);
void workload_run(void);
void workload_report(bool json);

/* A bounded record of what was measured; percentiles. */
struct samples {
	double *v;
	size_t n;
	size_t room;
};

void sample_add(struct samples *s, double v);
double sample_percentile(struct samples *s, double p);

/* State that hosts keep, as the module would: now, and at most. */
struct sim_state {
	u32 socks;		/* all connected ones */
	u32 socks_most;
	u32 queue_most;		/* of one host's ACK queue */
	u32 host_socks_most;	/* of one host */
	u32 host_peers_most;
	u32 timewait_most;
	u64 bytes_most;		/* of one host */
	u64 again;		/* packets sent again */
	u64 timeouts;
	u64 rrqs;
	u64 empty;		/* frames without payload */
	u64 data;		/* and with it */
	u64 expiries;
	u64 ooo;
	u64 empty_txs;		/* announcements without data */
	u64 holds;
	u64 duplicate;		/* packets that had come already */
	u64 waits;		/* looks at hosts: somebody waits in the ACK queue, */
	u64 waits_idle;		/* and the last port has nothing to send */
};

extern struct sim_state state;

/* esp_*.c */
void esp_build(void);
void esp_open(struct conn *c);
void esp_write(struct conn *c, u64 bytes);
void esp_input(struct packet *p);
void esp_close(struct conn *c);
bool esp_all_acked(const struct conn *c);
void esp_free(struct conn *c);
void esp_timer(void *arg);
void esp_pace(void *arg);
void esp_look(void);

/* tcp.c */
void tcp_open(struct conn *c);
void tcp_write(struct conn *c, u64 bytes);
void tcp_input(struct packet *p);
bool tcp_all_acked(const struct conn *c);
void tcp_free(struct conn *c);
void tcp_timer(void *arg);

/* fluid.c */
u64 fluid_run(struct conn **conns, u32 n, u32 head, void (*done)(struct conn *c, u64 at));

#endif /* _ESP_SIM_H */
