/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An ESP socket without the kernel: the part of struct esp_opt that grants, timers and losses
 * need. net/esp/core/{window,ackq,turn,budget,policy,rtt}.c make the decisions. The functions
 * here stand for the module's functions between them. A comment names the function that each
 * stands for.
 *
 * Some parts of the module are left out, because they change nothing here: GSO packets (frames
 * come one by one), Nagle's rule, cork and records (all packets of a message but the last are
 * full), memory pressure (readers read at once), keepalive, RST, and the frames of FIN (see
 * esp_close()).
 */
#ifndef _ESP_SIM_ESP_H
#define _ESP_SIM_ESP_H

#include "core/window.h"
#include "core/ackq.h"
#include "core/tokens.h"
#include "sim.h"

/* Defaults of sysctl.c, and constants of the files named. */
#define PACKETS_TO_ACK	16
#define RTO_MIN_US	1000
#define RRQ_MIN_US	300
#define RTO_MAX_US	500000u
#define ACK_DELAY_US	500
#define PROBE_MAX_US	500000u
#define EXPIRIES	5
#define RETRIES		60
#define TIME_WAIT_US	50000
#define RCVBUF		(4u << 20)
#define SEQ_WINDOW	0xffff		/* esp.h */
#define PEER_BUCKETS	64
#define LATE_US		(1000 * 1000)
#define SYN_RTO_US	(20 * 1000)	/* connect.c */
#define SYN_RTO_MAX_US	(1000 * 1000)
#define DUP_ACK_US	100		/* ack_send.c */
#define HELD_SHIFT	3		/* write_queue.c */
#define SLACK_US	100		/* timer.h */
#define LEFT_MAX	0xffff
#define LEFT_BYTES	8		/* length of the option LEFT */
#define HANDSHAKE_US	1000		/* for which a handshake's first burst counts */
#define TRUESIZE	2304		/* memory of a full frame's buffer, bytes */

#define ESP_MSS		(SIM_MTU - SIM_ESP_HEADER)

/* Sizes of the module's structures, bytes, by pahole: "make layout". */
#define BYTES_SOCK	1552
#define BYTES_PEER	96

enum { T_SEND, T_RRQ, T_REORDER, T_ACK, T_CONN, T_MAX };

enum { SK_OPENING, SK_OPEN, SK_TIME_WAIT, SK_CLOSED };

/* struct esp_peer */
struct peer {
	struct peer *next;
	struct esp_host host;
	struct esp_min_rtt min_rtt;
	u32 other;
	u32 socks;
};

/* struct esp_link: each host has one */
struct host {
	struct esp_ackq ackq;
	struct esp_budget budget;
	struct peer *peers[PEER_BUCKETS];
	u32 npeers;
	u64 pace_at;	/* when the pump is called, ns; 0: never */
	struct list_head ready;	/* sockets that wait for the device, in turn */
	u32 unused;	/* packets that receivers permit, and that were not sent yet */
	bool busy;	/* BUSY is set in packets */
	u32 id;
	u32 socks;
	u32 timewait;
	u64 queued;	/* packets on write queues, and kept out of order */
};

/* A packet that was sent and is not acknowledged. */
struct sent {
	u32 us;
	u16 len;
	u8 flags;
};

/* A packet that is still to come, or is here out of order. */
struct kept {
	u16 len;
	u8 flags;
	u8 here;
};

/*
 * struct esp_opt; see there. Some fields have other names here: echo is handshake_unconfirmed
 * there, unsent notsent, told_seq queue_acked_seq, and ts_val with ts_at ts_recent.
 */
struct esp_sk {
	struct esp_grant grant;
	struct conn *conn;
	struct host *host;
	struct peer *peer;
	u8 state;
	u8 client;
	u8 echo;
	u8 trans_announced;
	u16 syn_burst;
	u16 burst_told;		/* first burst that the peer was told last */
	u16 first_burst;	/* first burst of the announcement that has come last */

	struct esp_window snd;
	u64 unsent;		/* bytes on the write queue that were never sent */
	struct list_head ready;	/* in struct host.ready */
	u32 told_end;		/* number after the last packet that LEFT has told */
	u32 unused;		/* this socket's part of struct host.unused */
	u64 opened_us;		/* when the handshake told the first burst; 0: another ACK did */
	u32 txs_seq;		/* packet that begins a transmission, if txs */
	u8 txs;
	struct sent *sent;
	u32 sent_room;
	u8 retransmits;
	u8 probes;
	u8 probe_tries;
	u8 conn_tries;
	u32 rto_high;
	u64 progress_us;

	u32 recv_seq;
	u32 ack_seq;
	u32 told_seq;
	u32 to_ack;
	struct kept *kept;
	u32 kept_room;
	u32 ooo_high;
	u32 gap_seq;
	u8 ack_pending;
	u8 expiries;
	u8 rrqs;
	u32 ts_val;		/* newest ts_val of the peer */
	u32 ts_at;
	u32 rrq_wait;
	u64 last_ack_us;
	u64 first_until;

	struct esp_rtt rtt;
	struct esp_rtt_round round;
	u64 deadline[T_MAX];
	u64 timer_at;
};

/* esp_peer.c */
void peer_get(struct esp_sk *sk);
void peer_put(struct esp_sk *sk);
void peer_advise(struct esp_sk *sk);
u32 peer_handshake(struct host *h);
u32 peer_rtt(struct esp_sk *sk, u32 rtt, u64 now);

/* esp_sock.c: connections, input, timers */
void timer_set(struct esp_sk *sk, int t, u64 at);
struct host *host_of(u32 id);

/* esp_send.c */
struct packet *frame(struct esp_sk *sk, u32 len, u32 seq, u8 flags);
void push_frames(struct esp_sk *sk);
void count_unused(struct esp_sk *sk);
void send_empty(struct esp_sk *sk, u8 flags, u32 seq);
void send_ack(struct esp_sk *sk);
void send_timeout(struct esp_sk *sk, u64 now);
bool ack_rcv(struct esp_sk *sk, struct packet *p, u64 now, bool late);
void rrq_rcv(struct esp_sk *sk, struct packet *p, u64 now);
void ack_left(struct esp_sk *sk);

/* esp_recv.c */
extern const struct esp_ackq_ops ackq_ops;
void data_rcv(struct esp_sk *sk, struct packet *p);
void empty_rcv(struct esp_sk *sk, struct packet *p);
void ack_now(struct esp_sk *sk);
void ack_soon(struct esp_sk *sk, u32 us);
void ackq_leave(struct esp_sk *sk);
void expiry(struct esp_sk *sk);
void gap_timeout(struct esp_sk *sk);
u32 grant_room_now(const struct esp_sk *sk);

/* Does the budget decide? Otherwise the policy is the seed's. */
static inline bool by_budget(const struct esp_sk *sk)
{
	return sk->host->ackq.policy.adaptive;
}

static inline struct esp_ackq *queue_of(struct esp_sk *sk)
{
	return &sk->host->ackq;
}

static inline void timer_clear(struct esp_sk *sk, int t)
{
	sk->deadline[t] = 0;
}

#endif /* _ESP_SIM_ESP_H */
