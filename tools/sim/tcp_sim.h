/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of Linux's TCP (7.2), for comparison.
 *
 *   tcp.c          the sender: what is sent, sent again, and when its timers fire
 *   tcp_window.c   how much may be on its way: NewReno, CUBIC, DCTCP, and PRR
 *   tcp_recv.c     the receiver: which ACKs it sends, and its window
 *
 * Numbers count segments. Left out: what undoes a reduction that was for nothing (but for
 * F-RTO's), pacing, small queues (TSQ), Nagle.
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

/* What are due: the sender's timer, a delayed ACK, and ACKs that were held back. */
enum { DUE_SEND, DUE_ACK, DUE_SACKS, DUES };

struct seg {
	u64 at;
	u16 len;
	u8 flags;
};

/**
 * struct tcp_cubic - CUBIC's part of a window
 * @max:	window at the last loss
 * @origin:	where the curve is flat
 * @k:		when it is there, seconds
 * @epoch:	its start; 0: none
 * @time:	jiffy in which @cnt was made
 * @cwnd:	window then
 * @cnt:	segments to be acknowledged for one more
 * @reno:	what NewReno would have
 * @acked:	since @reno changed
 * @delay_min:	smallest round trip
 * @found:	HyStart has ended slow start
 * @round:	HyStart: when its round began
 * @train:	last ACK of a train
 * @round_end:	segment that ends it
 * @round_rtt:	smallest of the round
 * @samples:	of it
 */
struct tcp_cubic {
	u32 max;
	u32 origin;
	double k;
	u64 epoch;
	u64 time;
	u32 cwnd;
	u32 cnt;
	u32 reno;
	u32 acked;
	u64 delay_min;
	bool found;
	u64 round;
	u64 train;
	u32 round_end;
	u64 round_rtt;
	u32 samples;
};

/**
 * struct tcp_recv - the receiver
 * @next:	next segment expected
 * @told:	what the last ACK said that is
 * @kept:	lengths of what came out of order, a ring
 * @room:	of it
 * @out:	segments in it
 * @sacks:	first segment of a block and the one after it, the latest first
 * @nsacks:	of them
 * @quick:	ACKs to be sent at once
 * @last:	when data came
 * @delayed:	an ACK waits
 * @dups:	ACKs without progress since @dups_at
 * @dups_at:	@next then
 * @held:	ACKs that were held back
 * @ce:		DCTCP: the last frame was marked
 * @tsecr:	echo of the last data
 * @handshake:	how long that took
 * @rtt:	round trip, as far as a receiver knows
 * @rtt_seq:	when this has come one more is over
 * @rtt_at:	since
 * @window:	bytes, as advertised
 * @clamp:	its bound
 * @space:	bytes that were read in a round trip
 * @space_seq:	@bytes when this one began
 * @space_at:	its time
 * @bytes:	read
 */
struct tcp_recv {
	u32 next;
	u32 told;
	u16 *kept;
	u32 room;
	u32 out;
	struct { u32 from, to; } sacks[SACKS];
	u32 nsacks;
	u32 quick;
	u64 last;
	bool delayed;
	u32 dups;
	u32 dups_at;
	u32 held;
	bool ce;
	u32 tsecr;
	u64 handshake;
	u64 rtt;
	u32 rtt_seq;
	u64 rtt_at;
	u64 window;
	u64 clamp;
	u64 space;
	u64 space_seq;
	u64 space_at;
	u64 bytes;
};

/**
 * struct tcp - both ends of a connection
 * @conn:	whose
 * @seg:	sent and not acknowledged, a ring
 * @room:	of @seg
 * @unsent:	bytes
 * @una:	first segment not acknowledged
 * @next:	next new one
 * @edge:	first one beyond the receiver's window
 * @sacked:	segments beyond @una that have arrived
 * @lost:	believed lost, and not sent again
 * @ca:		state
 * @high:	@next when that was entered
 * @cwnd:	window, segments
 * @cwnd_cnt:	acknowledged since it grew
 * @ssthresh:	of slow start
 * @prior:	PRR: window before; F-RTO: likewise
 * @prior_ssthresh:	F-RTO: likewise
 * @delivered:	PRR: since then
 * @sent:	PRR: since then
 * @limited:	the window was what held back
 * @out_most:	segments on their way at most, if it was not
 * @usage:	until this segment
 * @frto:	a timeout may have been for nothing
 * @probe_high:	@next when a tail loss probe was sent; @probe_out: it is out
 * @probe_again:	it was an old segment
 * @srtt:	smoothed round trip; 0: none yet
 * @rttvar:	its deviation
 * @min_rtt:	smallest
 * @rack_at:	when the latest one that has arrived was sent
 * @rack_seq:	its number
 * @rack_rtt:	how long it took
 * @ts_recent:	the clock of the ACK that came last
 * @sent_at:	when data was sent last
 * @lag:	ns until the next segment leaves
 * @writing:	in the rack: a process writes, each segment takes SIM_RACK_CLOCK
 * @backoff:	timeouts in a row
 * @timer:	what DUE_SEND is
 * @due:	when what is due, 0: off
 * @armed:	when an event is going to look
 * @cwr:	the window was reduced: the next new segment says so
 * @open:	handshake is over
 * @cubic:	CUBIC's
 * @alpha:	DCTCP: share of marked segments
 * @acked:	since @alpha was last looked at
 * @marked:	likewise
 * @alpha_end:	when it is to be looked at again
 * @recv:	the other end
 */
struct tcp {
	struct conn *conn;
	struct seg *seg;
	u32 room;
	u64 unsent;
	u32 una;
	u32 next;
	u32 edge;
	u32 sacked;
	u32 lost;
	enum tcp_ca ca;
	u32 high;
	u32 cwnd;
	u32 cwnd_cnt;
	u32 ssthresh;
	u32 prior;
	u32 prior_ssthresh;
	u32 delivered;
	u32 sent;
	bool limited;
	u32 out_most;
	u32 usage;
	bool frto;
	u32 probe_high;
	bool probe_out;
	bool probe_again;
	u64 srtt;
	u64 rttvar;
	u64 min_rtt;
	u64 rack_at;
	u32 rack_seq;
	u64 rack_rtt;
	u32 ts_recent;
	u64 sent_at;
	u32 lag;
	bool writing;
	u32 backoff;
	enum tcp_timer timer;
	u64 due[DUES];
	u64 armed;
	bool cwr;
	bool open;
	struct tcp_cubic cubic;
	double alpha;
	u32 acked;
	u32 marked;
	u32 alpha_end;
	struct tcp_recv recv;
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
