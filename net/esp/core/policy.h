/* SPDX-License-Identifier: GPL-2.0-only */
/* Policies: which sender gets the next grant, and how large it is (rules 14, 21, 22). */
#ifndef _ESP_POLICY_H
#define _ESP_POLICY_H

#include "pure.h"
#include "rtt.h"

#define ESP_Q_START		32	/* budget before anything is known, packets */
#define ESP_GRANT_MIN		2	/* packets in one grant, rule 22 */
#define ESP_GRANT_MAX		32
#define ESP_GRANT_LONE		32	/* a lone sender's, with what is open, at least */
#define ESP_LONE_MAX		44	/* at most: a super-packet at MTU 1500 */
#define ESP_LONE_NS		(250 * 1000)	/* its time on a fast wire, nanoseconds */
#define ESP_LONE_RTT_US		400	/* of longer round trips the budget is the bound */
#define ESP_GROW_MAX		32	/* packets by which the budget grows at once */
#define ESP_EXTRA_US		50	/* queueing that is not yet congestion: at least */
#define ESP_EXTRA_LOSSY_US	35	/* after a loss: that, or less: */
#define ESP_EXTRA_LOSSY_FRAMES	64	/* so many frames on the wire, of 86 in 128 KiB, */
#define ESP_EXTRA_LEAST_US	10	/* but this at least, which hosts add themselves */
#define ESP_EXTRA_FRAMES	8	/* that, or so many frames on the wire */
#define ESP_Q_IDLE		128	/* budget that a lone sender may need on an idle link, */
#define ESP_IDLE_US		20000	/* if it is idle for so long */
#define ESP_Q_UNEVEN		256	/* and one whose round trips are uneven, */
#define ESP_UNEVEN_US		1000	/* and on the average so much above the smallest */
#define ESP_UNEVEN_LOOKS	8	/* at so many looks, one after the other */
#define ESP_FRAME_NS		12304	/* a frame's time on the wire: 1 Gbit/s, till it is known */
#define ESP_FRAME_NS_MAX	1000000
#define ESP_PACE_FRAMES		16	/* that permission may run ahead of the link */
#define ESP_PACE_NS		(50 * 1000)	/* or for so long, nanoseconds */
#define ESP_LOSSY_US		(10u * 1000 * 1000)	/* how long that is */
#define ESP_PACE_MAX		(1000 * 1000)	/* longest wait, nanoseconds */
#define ESP_STRETCH_US		1000	/* shortest over which frames are timed */
#define ESP_STRETCH_FRAMES	16
#define ESP_ROUND_US		10000	/* longest round beyond four of the shortest, */
#define ESP_ROUND_MAX_US	(500u * 1000)	/* and of all */
#define ESP_DRAIN_US		(5u * 1000 * 1000)	/* between empty queues */
#define ESP_DRAIN_MAX_US	(50u * 1000)		/* longest time that one takes */
#define ESP_RATE_MAX		1000000000u	/* packets in 2^20 microseconds */
#define ESP_TRY_LOOKS		6	/* round trips for which a budget is tried, */
#define ESP_LOOKS_MAX		64	/* and over which packets are counted at most */
#define ESP_TRY_US		500	/* what is tried must not look like a loss: least delay */
#define ESP_TRY_ROUNDS		64	/* until more is tried after that was in vain, */
#define ESP_TRY_MAX_US		(250u * 1000)	/* doubled each time, up to this */
#define ESP_ADVICE_HANDSHAKE	32	/* largest advice in a SYN|ACK */
#define ESP_ADVICE_MAX		64
#define ESP_WHOLE_AFTER		16	/* single packets between two whole super-packets */
#define ESP_NO_WIRE_RTT_US	50	/* longest round trip where there is no wire, */
#define ESP_NO_WIRE_US		500	/* and what processors may add to it */
#define ESP_ACK_RUNS		4	/* whole super-packets for each ACK, */
#define ESP_ACK_MOST		192	/* but no more packets than this */
#define ESP_LONE_NO_WIRE (2 * ESP_ACK_MOST) /* a lone sender's grant there */
#define ESP_ACK_SURE		16	/* those that bring one, as a rule */

/**
 * struct esp_policy - what the administrator sets, per receiving device
 * @adaptive:		rule 22's budget; 0: the seed's policy
 * @burst_length:	adaptive: cap on a sender's permission, 0 none; seed's:
 *			the window
 * @q_min:		lower bound of the budget, packets
 * @q_max:		upper bound of the budget, packets
 * @first_pool:		F, packets of all senders' first bursts (rule 21)
 */
struct esp_policy {
	u8	adaptive;
	u16	burst_length;
	u32	q_min;
	u32	q_max;
	u32	first_pool;
};

/**
 * enum esp_try - what a budget is tried for
 * @ESP_TRY_NOTHING:	none is
 * @ESP_TRY_LESS:	do round trips become shorter, or does less come through?
 * @ESP_TRY_MORE:	does more come through?
 */
enum esp_try {
	ESP_TRY_NOTHING,
	ESP_TRY_LESS,
	ESP_TRY_MORE,
};

/**
 * struct esp_qctl - the budget Q and its control
 * @q:		packets that may be granted and not yet arrived
 * @limited:	it has held somebody back since the last round trip
 * @busy:	or esp_qctl_pace() has
 * @fast:	still growing fast
 * @whole:	not 0: super-packets come as they were made; counts packets between them
 * @no_wire:	and round trips are short, and there is one sender
 * @wire_q:	the budget when that began; 0: it hasn't
 * @lone:	a lone sender's grant, with what is open: as much as is worth a super-packet
 *		where the wire is fast, packets
 * @last:	when it was last looked at, microseconds
 * @lost:	when packets were lost last, microseconds; 0: never
 * @full:	since when it has held somebody back all the time; 0: it has not
 * @frame:	smallest time from one frame to the next over a stretch of
 *		arrivals, of the last ten seconds; nanoseconds
 * @stretch:	when that stretch began
 * @arrived:	packets that had arrived then
 * @total:	that have arrived so far
 * @seen:	that had when the budget was last looked at
 * @looked:	when that was, microseconds
 * @idle:	how long the link was idle since, microseconds; halved when it was not
 * @before:	round trips at the last look, microseconds
 * @mean:	of a lone sender's, 1/16 microseconds; 0: none yet
 * @jitter:	their mean difference from one to the next, 1/16 microseconds
 * @uneven:	looks in a row at which round trips were uneven; at most ESP_UNEVEN_LOOKS
 * @even_q:	the budget before it grew beyond ESP_Q_IDLE for that; 0: it has not
 * @looks:	how often it was since it changed; 0: what it changed doesn't show yet
 * @from:	packets that had arrived at the first of these
 * @from_at:	when that was
 * @rate:	packets in 2^20 microseconds since, if @looks is more than 1
 * @trial:	what is being tried, enum esp_try
 * @old_q:	the budget before
 * @old_fast:	@fast before
 * @old_rate:	@rate before
 * @old_rtt:	round trips before, microseconds
 * @old_extra:	round trips beyond the smallest before, microseconds
 * @held:	so much of that is no queue, but frames that are taken many at a time
 * @wait:	after a try in vain, microseconds
 * @next_try:	when the budget may be tried larger
 * @paced:	when the link will have carried all that was permitted, if it
 *		carries one after the other; nanoseconds
 * @drained:	when the queue was last made empty, to see the smallest round
 *		trip
 * @longest:	round trip since then, microseconds
 * @drain_us:	how long that takes
 * @saved:	the budget meanwhile, 0: not being made empty
 */
struct esp_qctl {
	u32			q;
	u8			limited;
	u8			busy;
	u8			fast;
	u8			whole;
	u8			no_wire;
	u32			lone;
	u32			wire_q;
	u64			last;
	u64			lost;
	u64			full;
	struct esp_min_rtt	frame;
	u64			stretch;
	u32			arrived;
	u32			total;
	u32			seen;
	u64			looked;
	u32			idle;
	u32			before;
	u32			mean;
	u32			jitter;
	u32			even_q;
	u8			uneven;
	u8			looks;
	u8			trial;
	u8			old_fast;
	u32			from;
	u64			from_at;
	u32			rate;
	u32			old_q;
	u32			old_rate;
	u32			old_rtt;
	u32			old_extra;
	u32			held;
	u32			wait;
	u64			next_try;
	atomic64_t		paced;
	u64			drained;
	u32			longest;
	u32			drain_us;
	u32			saved;
};

/**
 * esp_qctl_came() - note that a frame with data has arrived
 * @c:		control
 * @whole:	a super-packet as its sender made it
 * @chained:	one that GRO made
 *
 * The former comes from this machine: nothing that has been on a wire is one, and the
 * latter has been. Of singles nothing is known.
 */
static inline void esp_qctl_came(struct esp_qctl *c, bool whole, bool chained)
{
	u8 n = READ_ONCE(c->whole);

	if (whole ? n == ESP_WHOLE_AFTER : !n)
		return;
	n = whole ? ESP_WHOLE_AFTER : chained ? 0 : n - 1;
	WRITE_ONCE(c->whole, n);
	if (!n)
		WRITE_ONCE(c->no_wire, 0);
}

/**
 * esp_qctl_no_wire() - does nobody but a lone sender on this machine send?
 * @c:		control
 * @count:	esp_recv_count
 *
 * Then hardly a port can overflow, and what makes round trips longer is mostly that
 * processors are busy. But a queueing discipline may be on the way.
 *
 * Return: true if so
 */
static inline bool esp_qctl_no_wire(const struct esp_qctl *c, int count)
{
	return count <= 1 && READ_ONCE(c->no_wire);
}

/* The policies differ in these two functions and in esp_policy_grant(). */
bool esp_policy_fast(const struct esp_policy *p, u32 q, int open, int count);
bool esp_policy_release(const struct esp_policy *p, u32 q, u32 qlen, int open,
			int count);

u32 esp_policy_grant(const struct esp_policy *p, const struct esp_qctl *c, int open,
		     int count);
u32 esp_policy_ask(const struct esp_policy *p, const struct esp_qctl *c, int count);

/**
 * esp_policy_ask_most() - return the upper bound of esp_policy_ask() for any number of senders
 * @c:	control, with the budget
 *
 * Return: packets
 */
static inline u32 esp_policy_ask_most(const struct esp_qctl *c)
{
	u32 grant = READ_ONCE(c->no_wire) ? ESP_LONE_NO_WIRE : max(ESP_GRANT_MAX, ESP_LONE_MAX);

	return max(READ_ONCE(c->q), grant / 2);
}

void esp_qctl_init(struct esp_qctl *c, const struct esp_policy *p);
u32 esp_qctl_wire_time(const struct esp_qctl *c, u32 n);
u32 esp_qctl_pace(const struct esp_qctl *c, int open, int count, u64 now);
void esp_qctl_spend(struct esp_qctl *c, u32 n, u64 now);
void esp_qctl_arrivals(struct esp_qctl *c, u32 arrived, u32 rtt, u64 now);
void esp_qctl_sample(struct esp_qctl *c, const struct esp_policy *p,
		     int count, u32 median, u32 min_rtt, u64 now);
void esp_qctl_loss(struct esp_qctl *c, const struct esp_policy *p, u32 srtt,
		   u64 now);
u32 esp_advice_handshake(u32 pool, u32 given);
u32 esp_advice_connected(u32 pool, u32 given, u32 own, u32 peers);

#endif /* _ESP_POLICY_H */
