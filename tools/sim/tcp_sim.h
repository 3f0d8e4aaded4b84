/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of Linux's TCP (7.2), for comparison.
 *
 *   tcp.c          the sender: transmission, retransmission, and timers
 *   tcp_window.c   the congestion window: NewReno, CUBIC, DCTCP, and PRR
 *   tcp_recv.c     the receiver: its ACKs, and its window
 *
 * Sequence numbers count segments. These parts of TCP are left out: undoing a reduction that
 * was for nothing (except by F-RTO), pacing, small queues (TSQ), and Nagle's rule.
 */
#ifndef _ESP_SIM_TCP_H
#define _ESP_SIM_TCP_H

#include "sim.h"

#define TCP_MSS		(SIM_MTU - SIM_TCP_HEADER)
#define INIT_CWND	10
#define SACKS		4
#define SSTHRESH_NONE	0x7fffffff

enum { SEG_SACKED = 1, SEG_LOST = 2, SEG_AGAIN = 4 };

enum tcp_ca { CA_OPEN, CA_DISORDER, CA_CWR, CA_RECOVERY, CA_LOSS };

enum tcp_timer { TCP_RETRANS, TCP_PROBE, TCP_REORDER };

/* Deadlines: the sender's timer, a delayed ACK, and ACKs that were held back. */
enum { DUE_SEND, DUE_ACK, DUE_SACKS, DUES };

/* A segment that was sent and is not acknowledged. */
struct seg {
	u64 at;		/* when it was sent last */
	u16 len;	/* payload, bytes */
	u8 flags;	/* SEG_* */
};

/* The part of a window that CUBIC needs. */
struct tcp_cubic {
	u32 max;	/* window at the last loss */
	u32 origin;	/* window where the curve is flat */
	double k;	/* time from @epoch to @origin, seconds */
	u64 epoch;	/* start of the curve; 0: none */
	u64 time;	/* jiffy in which @cnt was computed */
	u32 cwnd;	/* window when @cnt was computed */
	u32 cnt;	/* segments to be acknowledged before the window grows by one */
	u32 reno;	/* window that NewReno would have */
	u32 acked;	/* segments acknowledged since @reno changed */
	u64 delay_min;	/* smallest round trip */
	bool found;	/* HyStart has ended slow start */
	u64 round;	/* HyStart: start of its round */
	u64 train;	/* HyStart: time of the last ACK of the train */
	u32 round_end;	/* HyStart: segment whose ACK ends the round */
	u64 round_rtt;	/* HyStart: smallest round trip in the round */
	u32 samples;	/* HyStart: round trips measured in the round, HYSTART_SAMPLES at most */
};

/* The receiver's end. */
struct tcp_recv {
	u32 next;	/* next segment expected */
	u32 told;	/* @next that the last ACK told */
	u16 *kept;	/* lengths of the segments that are here from @next on, a ring; 0: none */
	u32 room;	/* size of @kept */
	u32 out;	/* number of segments in @kept */
	struct { u32 from, to; } sacks[SACKS];	/* SACK blocks, the latest first; @to is after */
	u32 nsacks;	/* number of @sacks */
	u32 quick;	/* number of ACKs that are still sent at once */
	u64 last;	/* when data came last */
	bool delayed;	/* an ACK waits */
	u32 dups;	/* ACKs sent without progress since @next was @dups_at */
	u32 dups_at;	/* @next when @dups was 0 */
	u32 held;	/* ACKs held back */
	bool ce;	/* DCTCP: the last frame was marked */
	u32 tsecr;	/* ts_ecr of the last data, milliseconds */
	u64 handshake;	/* round trip of the handshake */
	u64 rtt;	/* round trip, as far as a receiver knows it; 0: not known */
	u32 rtt_seq;	/* segment whose arrival ends the round trip that is being measured */
	u64 rtt_at;	/* start of that round trip; 0: none */
	u64 window;	/* advertised window, bytes */
	u64 clamp;	/* upper bound of @window, bytes */
	u64 space;	/* bytes that were read in a round trip */
	u64 space_seq;	/* @bytes at the start of the present round trip */
	u64 space_at;	/* start of the present round trip */
	u64 bytes;	/* bytes read so far */
};

/* Both ends of a connection. All fields but @recv are the sender's. */
struct tcp {
	struct conn *conn;
	struct seg *seg;	/* segments from @una to before @next, a ring */
	u32 room;		/* size of @seg */
	u64 unsent;		/* bytes that were never sent */
	u32 una;		/* first segment not acknowledged */
	u32 next;		/* next segment to be sent for the first time */
	u32 edge;		/* first segment beyond the receiver's window */
	u32 sacked;		/* segments from @una on that have arrived */
	u32 lost;		/* segments that are taken for lost and not yet retransmitted */
	enum tcp_ca ca;		/* state of congestion control */
	u32 high;		/* @next when that state began */
	u32 cwnd;		/* congestion window, segments */
	u32 cwnd_cnt;		/* segments acknowledged since @cwnd grew */
	u32 ssthresh;		/* threshold of slow start, segments */
	u32 prior;		/* PRR, F-RTO: @cwnd before the reduction */
	u32 prior_ssthresh;	/* F-RTO: @ssthresh before the timeout */
	u32 delivered;		/* PRR: segments that have arrived since the reduction began */
	u32 sent;		/* PRR: segments sent since then */
	bool limited;		/* the window has limited the sender */
	u32 out_most;		/* most segments outstanding since @usage was set */
	u32 usage;		/* @limited and @out_most hold until this segment is acknowledged */
	bool frto;		/* F-RTO: the timeout may have been for nothing */
	u32 probe_high;		/* @next when a tail loss probe was sent */
	bool probe_out;		/* a tail loss probe is not answered yet */
	bool probe_again;	/* the probe was a retransmission */
	u64 srtt;		/* smoothed round trip; 0: none yet */
	u64 rttvar;		/* deviation of the round trip */
	u64 min_rtt;		/* smallest round trip */
	u64 rack_at;		/* RACK: when the newest segment that has arrived was sent */
	u32 rack_seq;		/* RACK: number of that segment */
	u64 rack_rtt;		/* RACK: round trip of the last segment that has arrived */
	u32 ts_recent;		/* ts_val of the last ACK, microseconds */
	u64 sent_at;		/* when new data was sent last */
	u32 lag;		/* time until the next segment leaves */
	bool writing;		/* the rack's process writes: SIM_RACK_CLOCK for each segment */
	u32 backoff;		/* timeouts in a row */
	enum tcp_timer timer;	/* kind of the deadline DUE_SEND */
	u64 due[DUES];		/* deadlines; 0: off */
	u64 armed;		/* time of the pending event that looks at @due; 0: none */
	bool cwr;		/* the window was reduced, and the next new segment tells it */
	bool open;		/* the handshake is over */
	struct tcp_cubic cubic;
	double alpha;		/* DCTCP: share of marked segments */
	u32 acked;		/* DCTCP: segments acknowledged since @alpha was updated */
	u32 marked;		/* DCTCP: those of @acked whose ACK echoes a mark */
	u32 alpha_end;		/* DCTCP: segment whose ACK updates @alpha */
	struct tcp_recv recv;	/* the receiver's end */
};

static inline u32 tcp_in_flight(const struct tcp *t)
{
	return t->next - t->una - t->sacked - t->lost;
}

static inline bool tcp_in_slow_start(const struct tcp *t)
{
	return t->cwnd < t->ssthresh;
}

/* tcp.c */
bool tcp_ecn(void);
u64 tcp_jiffy(void);
u64 tcp_jiffies(const struct tcp *t, bool receiver);
u64 tcp_tick(const struct tcp *t, bool receiver, u32 n);
void tcp_due(struct tcp *t, int which, u64 at);

/* tcp_window.c */
bool tcp_is_limited(const struct tcp *t);
u32 tcp_ssthresh(struct tcp *t);
void tcp_reduce(struct tcp *t);
void tcp_reduced(struct tcp *t, u32 n, bool advanced, u32 lost);
void tcp_grow(struct tcp *t, u32 n);
void tcp_window_loss(struct tcp *t);
void tcp_window_idle(struct tcp *t, u64 idle);
void tcp_window_acked(struct tcp *t, u64 rtt);
void tcp_window_marks(struct tcp *t, u32 n, bool marked);

/* tcp_recv.c */
void tcp_recv_open(struct tcp *t);
void tcp_recv_data(struct tcp *t, struct packet *p);
void tcp_send_ack(struct tcp *t, bool duplicate);

#endif /* _ESP_SIM_TCP_H */
