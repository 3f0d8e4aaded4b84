/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * espsim: a simulation of ESP or TCP between many hosts and their switches.
 *
 *   workload.c   messages: sender, receiver, size, start; completion times
 *      |
 *   esp_*.c, tcp.c, fluid.c      the protocols
 *      |
 *   net.c        ports: rate, buffer, drop, mark; leaf and spine
 *      |
 *   event.c      the queue of events
 *
 * Times are nanoseconds of simulated time unless a comment says otherwise. One thread.
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
#define SIM_RACK_CLOCK	256	/* time to read the clock in uml-virtual, ns */

enum sim_proto {
	PROTO_ESP,
	PROTO_SEED,
	PROTO_NEWRENO,
	PROTO_CUBIC,
	PROTO_DCTCP,
	PROTO_SIRD,
	PROTO_IDEAL,
	PROTO_MAX,
};

enum sim_pattern {
	PATTERN_BLOCKS,		/* each sender sends a block to host 0, then comes the next round */
	PATTERN_FLOWS,		/* each sender sends to host 0 without end */
	PATTERN_LOAD,		/* flows of a published workload between all hosts */
	PATTERN_MAX,
};

/* One run. */
struct sim_config {
	enum sim_proto proto;		/* protocol of the senders */
	enum sim_pattern pattern;	/* pattern of their messages */
	const struct workload *workload; /* PATTERN_LOAD: sizes of flows, see workload_find() */
	u32 hosts;	/* number of hosts, N */
	u32 senders;	/* other patterns: hosts that send; the receiver is one more */
	u32 connected;	/* hosts connected to the receiver; those that do not send are idle */
	u32 per_leaf;	/* hosts at a leaf; 0: one switch for all hosts */
	u32 spines;	/* spine switches; each leaf has an uplink to each */
	u32 rate;	/* rate of a host's link, Mbit/s */
	u32 uplink;	/* rate of a link between leaf and spine, Mbit/s */
	u64 buffer;	/* buffer of a port, bytes */
	u64 mark;	/* backlog from which a port marks for DCTCP, bytes */
	u64 hop;	/* time on a link, and in the switch behind it */
	u64 rtt;	/* round trip of selftests/bench/incast.sh's rack; 0: links as of a leaf */
	bool spray;	/* each packet of a connection takes a spine of its own */
	double load;	/* share of the hosts' links that the flows take, 0 ... 1 */
	u64 block;	/* size of a block, bytes */
	u32 rounds;	/* number of rounds of blocks */
	u64 time;	/* time in which flows begin, or are measured */
	u64 limit;	/* simulated time after which the run ends, finished or not */
	u64 seed;	/* seed of all that is drawn at random */
	double loss;	/* share of frames lost at random on every link, 0 ... 1 */
	bool alltoall;	/* each of @senders hosts sends its blocks to all the others */
	bool shuffle;	/* @alltoall: each host sends its blocks in a random order */
	u32 told;	/* rate that ESP is told, Mbit/s; 0: unknown */
	bool handshake;	/* SIRD: a round trip before each message */
	bool fifo;	/* ESP's sysctl shortest_first is 0 */
	u64 coalesce;	/* time between two interrupts of a host's card; 0: one for each frame */
	u64 cpu;	/* time that a host of odd number needs for each frame that it takes in */
	bool pause;	/* a full port stops the port before it, and drops nothing */
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
	PKT_SYN = 1, PKT_ACK = 2, PKT_TXS = 4, PKT_TXF = 8, PKT_RRQ = 16, PKT_LEFT = 32,
	PKT_HELLO = 64, PKT_DSACK = 128, PKT_CWR = 256, PKT_BUSY = 512,
};

/* A frame. */
struct packet {
	struct packet *next;	/* next one in the list of free frames, or of a host's queue */
	struct conn *conn;	/* connection that it belongs to */
	u32 seq;	/* ESP: pkt_seq; TCP: number of the segment */
	u32 ack;	/* number of the next packet, or segment, that its sender expects */
	u32 ts_val;	/* clock of its sender, microseconds */
	u32 ts_ecr;	/* echo of the receiver's clock, microseconds */
	u32 lag;	/* time until it leaves its host */
	u16 bytes;	/* length on the wire, with preamble and gap */
	u16 len;	/* payload, bytes */
	u16 grant;	/* ESP: the field grant; TCP: window, segments */
	u16 hello;	/* ESP, PKT_HELLO: first burst that the SYN|ACK told */
	u16 left;	/* ESP, PKT_LEFT: packets that are left after this one */
	u16 burst;	/* ESP, PKT_LEFT: packets of the first burst */
	u16 src;	/* host that sends it */
	u16 dst;	/* host that receives it */
	u16 spine;	/* spine that it passes */
	u16 flags;	/* PKT_* */
	u8 hop;		/* number of ports that it has passed */
	u8 to_server;	/* 1: from the end that opened the connection */
	u8 ecn;		/* 1: may be marked; 3: marked; in TCP's ACK: 3: echo of a mark */
	u8 ranges;	/* number of valid @r */
	u8 taken;	/* the interrupt, or the processor, was waited for */
	struct port *from;	/* port that sent it last */
	struct {
		u16 offset;
		u16 count;
	} r[3];		/* ranges of an RRQ, or SACK blocks; offsets from @ack */
};

/* Counters of all ports. */
struct net_stats {
	u64 drops[4];	/* frames dropped: at hosts, leaf to spine, spine to leaf, leaf to host */
	u64 lost;	/* frames lost at random */
	u64 marks;	/* frames marked */
	u64 most;	/* largest backlog of a port to a host, bytes */
	u64 host_most;	/* largest backlog of a host's own port, bytes */
};

extern struct net_stats net_stats;

void net_build(void);
struct packet *packet_new(struct conn *conn, bool to_server, u32 payload, u32 header);
void packet_send(struct packet *p);
void packet_arrives(void *arg);
void nic_ready(void *arg);
u64 net_ideal(u32 src, u32 dst, u64 bytes, u32 header);
u64 net_edge_backlog(u32 host);
bool net_host_room(u32 host);
u32 net_host_frames(u32 host);

/* workload.c */

/* Frames of one connection and direction that wait at their host for the connection's turn. */
struct turn {
	struct packet *first;
	struct packet *last;
	struct turn *next;
};

/* A connection, and the message on it. */
struct conn {
	struct esp_sk *esp[2];	/* ESP: the client's end, which sends, and the server's */
	struct tcp *tcp;	/* TCP: both ends */
	struct sird *sird;	/* SIRD: both ends */
	struct turn out[2];	/* frames that wait at their host: to the client, to the server */
	u32 refs;	/* packets on their way, pending events, and connect() */
	u32 id;		/* number of the connection */
	u16 src;	/* host of the client */
	u16 dst;	/* host of the server */
	bool closed;	/* the connection has ended */
	bool opened;	/* connect() has returned */
	u64 size;	/* bytes written so far */
	u64 got;	/* bytes that the receiver has got in order */
	u64 start;	/* when the present message began */
	u64 before;	/* flows without end: @got when measuring began; load: bytes of the flow */
	u64 busy;	/* sum of the completion times of all messages */
};

/* A distribution of flow sizes. */
struct workload {
	const char *name;
	const char *source;	/* where it is published */
	double unit;		/* bytes in a unit of at[].size */
	u32 n;			/* number of points @at */
	struct {
		double size;	/* size of a flow, units */
		double below;	/* share of the flows up to this size */
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
void workload_arrivals(void);
void workload_report(bool json);

/* Measured values, for percentiles. */
struct samples {
	double *v;	/* the values */
	size_t n;	/* their number */
	size_t room;	/* number of values that @v has memory for */
};

void sample_add(struct samples *s, double v);
double sample_percentile(struct samples *s, double p);

/* Counters of all hosts, and the state that the module would keep there. */
struct sim_state {
	u32 socks;		/* connected sockets of all hosts now */
	u32 socks_most;		/* largest @socks */
	u32 queue_most;		/* longest ACK queue of a host */
	u32 host_socks_most;	/* most sockets of a host */
	u32 host_peers_most;	/* most peers of a host */
	u32 timewait_most;	/* most sockets of a host in TIME_WAIT */
	u64 bytes_most;		/* most memory of a host's sockets and peers, bytes */
	u64 again;		/* packets retransmitted */
	u64 timeouts;		/* expirations of retransmission timers */
	u64 rrqs;		/* RRQs sent */
	u64 empty;		/* frames without payload */
	u64 data;		/* frames with payload */
	u64 expiries;		/* grants that expired */
	u64 ooo;		/* packets received out of order and kept */
	u64 empty_txs;		/* announcements without data */
	u64 holds;		/* HOLDs received */
	u64 duplicate;		/* packets received before */
	u64 waits;		/* looks at which a host's ACK queue was not empty */
	u64 waits_idle;		/* looks of these at which the port to the host had no frame */
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
void esp_device_ready(u32 host);

/* tcp.c */
void tcp_open(struct conn *c);
void tcp_write(struct conn *c, u64 bytes);
void tcp_input(struct packet *p);
bool tcp_all_acked(const struct conn *c);
void tcp_free(struct conn *c);
void tcp_timer(void *arg);

/* sird.c */
void sird_build(void);
void sird_open(struct conn *c);
void sird_write(struct conn *c, u64 bytes);
void sird_input(struct packet *p);
void sird_timer(void *arg);
void sird_pace(void *arg);
void sird_device_ready(u32 host);
void sird_free(struct conn *c);

/* fluid.c */
u64 fluid_run(struct conn **conns, u32 n, u32 head, void (*done)(struct conn *c, u64 at));

#endif /* _ESP_SIM_H */
