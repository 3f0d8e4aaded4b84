/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The budget of a receiving link, and the bucket of each sending host.
 *
 * The link's rate is known, so the packets that must be on their way are known, too: rate times
 * base round trip. Senders whose own link is busy say so (SIRD, NSDI 2025). The use of the link
 * shows how much longer hosts and cards take than the wire.
 *
 * Trust: round trips, BUSY and losses are claims of a peer. They set the bucket of that peer.
 * They move values of the link only as one vote among those of all hosts (esp_budget_rtt()), or
 * in proportion to the peer's share of the outstanding packets (esp_budget_lost()).
 *
 * Locks: the ACK queue's lock guards both structures. The exceptions are atomic counters, and
 * words that are read without the lock, once, by READ_ONCE().
 */
#ifndef _ESP_BUDGET_H
#define _ESP_BUDGET_H

#include "pure.h"
#include "rtt.h"
#include "turn.h"

#define ESP_FRAMING		38	/* header, FCS, preamble and gap of Ethernet, bytes */
#define ESP_PORT_FRAMES		64	/* frames for which a port of 128 KiB has room */
#define ESP_SPARE		8	/* frames beyond the BDP, for a host that is late */
#define ESP_SLACK_FRAMES	16	/* frames by which grants may run ahead, at least */
#define ESP_SLACK_NS		20000	/* the same as time: timers are late by that */
#define ESP_BASE_NS		50000	/* base round trip before any was measured */
#define ESP_LOOK_NS		100000	/* shortest time to measure the use of the link */
#define ESP_METER_NS		500000	/* shortest time to measure its rate */
#define ESP_STALE_NS		50000000	/* longest measurement, and round trip */
#define ESP_FRAMES_MAX		1000000	/* largest BDP, packets */
#define ESP_CALM_NS		10000000	/* after a loss, caution for this time */
#define ESP_CREST_NS		100000000	/* half of the time that a crest counts */
#define ESP_BURST_LEAST		16	/* packets of a first burst, if the pool has room */
#define ESP_GRANT_MAX		44	/* packets in one grant: a GSO packet at an MTU of 1500 */
#define ESP_GRANT_MIN		2	/* packets in one grant, unless the budget is smaller */
#define ESP_NEAR_SINGLES	16	/* single packets between GSO packets of a near host */
#define ESP_BUSY_LEAST		6	/* packets that a busy host may have outstanding */
#define ESP_ROUND_NS		20000	/* shortest round of a host */
#define ESP_VOTE_NS		1000000	/* longest time between two votes of a host */
#define ESP_SOLE_NS		10000000000ull	/* a host is the only one, or lossless, after it */
#define ESP_BUCKET_UNIT		256	/* buckets are kept in these parts of a packet */

/**
 * struct esp_median - a running median of what hosts report
 */
struct esp_median {
	/** @v: the median; a guess until hosts report. Read without the lock */
	u32	v;
	/** @step: @v moves by this part at the next vote of the same direction: 1/16 ... 8/16 */
	u8	step;
	/** @up: the last vote was for a larger value */
	u8	up;
};

/**
 * struct esp_begins - how many connections begin a transmission at the same time
 *
 * Each value is kept for the running period and for the one before.
 */
struct esp_begins {
	/** @since: start of the running window, ns; see burst_window() */
	u64	since;
	/** @crest_since: start of the running half of the time that a crest counts, ns */
	u64	crest_since;
	/** @window: number of the running window */
	u32	window;
	/** @n: connections with a beginning: last in the running window, or in the one before */
	u32	n[2];
	/** @told: packets that handshakes have told: in the running window, and the one before */
	u32	told[2];
	/**
	 * @crest: largest sum of @n, or of senders: in the running half, and the one before.
	 * Read without the lock
	 */
	u32	crest[2];
};

/**
 * struct esp_budget - the packets that may be granted and not yet arrived, of one link
 */
struct esp_budget {
	/** @told: time of a full frame at the rate that the device reports, 1/16 ns; 0: unknown */
	u32			told;
	/** @fastest: shortest mean time of a full frame that was measured, 1/16 ns */
	struct esp_min_rtt	fastest;
	/** @frame: time of a full frame at the rate that counts, 1/16 ns; never 0 */
	u32			frame;
	/** @frame_bytes: length of a full frame with framing, bytes; never 0 */
	u32			frame_bytes;
	/** @base: round trip without queues: median of the hosts' smallest ones, ns */
	struct esp_median	base;
	/** @rtt: round trip as it is now: median of the hosts' ones, ns */
	struct esp_median	rtt;
	/** @bdp: frames that the link carries in @base; read without the lock */
	u32			bdp;
	/** @size: the budget, packets; read without the lock */
	u32			size;
	/**
	 * @late: round trip beyond which a queue that is not the link's has delayed a packet, ns:
	 * while several hosts send, and while one does. Read without the lock
	 */
	u32			late[2];
	/** @grow: part of @size that the link's use has shown to be needed, packets */
	u32			grow;
	/** @least: lower bound of @size that the administrator has set, packets */
	u32			least;
	/** @most: upper bound, packets; it has precedence */
	u32			most;
	/** @pool: packets of all first bursts together, as the administrator has set it */
	u32			pool;
	/** @idle: when the budget has last held nobody back, ns */
	u64			idle;
	/** @bytes: bytes that have arrived, with framing; atomic, wraps */
	atomic_t		bytes;
	/** @look: the running look: when it began, ns, and @bytes at that time */
	struct { u64 since; u32 bytes; } look;
	/**
	 * @meter: the running measurement of the rate: when it began, ns, and @bytes then; time of
	 * a full frame in the one before, 1/16 ns, 0: none
	 */
	struct { u64 since; u32 bytes; u32 frame; } meter;
	/** @voter: the host that has voted last, or has set @base and @rtt */
	const struct esp_host	*voter;
	/** @changed: when another host than before voted, ns */
	u64			changed;
	/** @calm: time until which a loss keeps the budget from growing, ns */
	u64			calm;
	/** @paced: when the link will have carried all that was granted, ns */
	u64			paced;
	/** @begins: transmissions that begin together, for first bursts */
	struct esp_begins	begins;
};

/**
 * struct esp_host - the outstanding packets that one sending host may have, at one link
 *
 * All connections of that host share it.
 */
struct esp_host {
	/** @outstanding: packets granted to the host and not yet arrived; atomic */
	atomic_t		outstanding;
	/** @came: data packets that have come in the running round; atomic */
	atomic_t		came;
	/** @marked: packets of @came with BUSY; atomic */
	atomic_t		marked;
	/** @late: packets of @came that a queue on the way has delayed; atomic */
	atomic_t		late;
	/** @since: start of the running round, ns */
	u64			since;
	/** @slowed: when a loss last stopped the growth of the budget, ns; 0: never */
	u64			slowed;
	/** @overdue: packets of @outstanding that the link no longer waits for */
	u32			overdue;
	/** @newer: packets of @outstanding that were granted after the last look at @overdue */
	u32			newer;
	/** @due: time of the next look at @overdue, ns */
	u64			due;
	/** @hold: in esp_overdue.holders; empty: not there */
	struct list_head	hold;
	/** @voted: when the host voted last, ns; see esp_budget_rtt() */
	u64			voted;
	/** @lost: when packets were last lost in a queue on the way, ns; 0: not in ESP_SOLE_NS */
	u64			lost;
	/** @base: smallest round trip of the host, ns; 0: unknown. Read without the lock */
	u32			base;
	/** @alpha: share of packets with BUSY, moving average, 1/1024 (RFC 8257) */
	u32			alpha;
	/** @busy_cap: bound while the host's own link is busy, 1/ESP_BUCKET_UNIT packets */
	u32			busy_cap;
	/** @loss_cap: bound after losses in queues on the way, 1/ESP_BUCKET_UNIT packets */
	u32			loss_cap;
	/** @busy: the newest data packet had BUSY; written without the lock */
	u8			busy;
	/** @bounded: BUSY or a loss has bounded the bucket; rounds are counted until it is full */
	u8			bounded;
	/**
	 * @near: not 0: GSO packets come as the host made them; counts down the packets between
	 * them. Written without the lock
	 */
	u8			near;
	/** @is_late: a queue on the way has delayed the newest packet; written without the lock */
	u8			is_late;
	/** @turn: queued grants of the host, and its place among the hosts */
	struct esp_turn		turn;
};

void esp_budget_init(struct esp_budget *b, u32 mbit, u32 mtu);
void esp_budget_rate(struct esp_budget *b, u32 mbit, u32 mtu);
void esp_budget_limits(struct esp_budget *b, u32 least, u32 most, u32 pool);
void esp_budget_rtt(struct esp_budget *b, struct esp_host *h, u32 least, u32 rtt, int senders,
		    u64 now);
void esp_budget_look(struct esp_budget *b, bool waits, u64 now);
void esp_budget_lost(struct esp_budget *b, struct esp_host *h, int outstanding, u64 now);
u32 esp_budget_limit(const struct esp_budget *b, int senders);
u32 esp_budget_quantum(const struct esp_budget *b);
u64 esp_budget_wire_time(const struct esp_budget *b, u32 n);
u32 esp_budget_wait(const struct esp_budget *b, bool sole, u64 now);
void esp_budget_spend(struct esp_budget *b, u32 n, u32 each, u64 now);
u64 esp_budget_due(const struct esp_budget *b);
u32 esp_budget_busy_from(const struct esp_budget *b);

/**
 * esp_host_came_whole() - Note in which form a frame with data has come
 * @h:		bucket; no lock is needed
 * @whole:	it is a GSO packet as its sender made it
 * @merged:	it is one that GRO made
 *
 * No frame that was on a wire is the former, so its sender is on this machine; the latter was on
 * a wire. Of single packets nothing is known.
 */
static inline void esp_host_came_whole(struct esp_host *h, bool whole, bool merged)
{
	u8 near = READ_ONCE(h->near);

	if (whole ? near == ESP_NEAR_SINGLES : !near)
		return;
	WRITE_ONCE(h->near, whole ? ESP_NEAR_SINGLES : merged ? 0 : near - 1);
}

/**
 * esp_host_near() - Is a host on this machine, so that no port between the two drops packets?
 * @h:	bucket; no lock is needed
 *
 * A loss that counts (esp_budget_lost()) has shown a queue between the two, for ESP_SOLE_NS.
 *
 * Return: true if so; false, too, after BUSY, until the bucket is full again
 */
static inline bool esp_host_near(const struct esp_host *h)
{
	return READ_ONCE(h->near) && !READ_ONCE(h->bounded) && !READ_ONCE(h->lost);
}

u64 esp_burst_window(const struct esp_budget *b);
void esp_host_init(struct esp_host *h);
bool esp_host_came(const struct esp_budget *b, struct esp_host *h, u32 n, bool busy, u32 rtt,
		   u64 now);
void esp_host_round(const struct esp_budget *b, struct esp_host *h, u64 now);
u32 esp_host_most(const struct esp_budget *b, const struct esp_host *h, int senders);
u32 esp_host_cap(const struct esp_budget *b, const struct esp_host *h, int senders);

void esp_burst_begins(struct esp_budget *b, u32 *window, u64 now);
u32 esp_burst_size(struct esp_budget *b, bool handshake, u32 senders, u64 now);
u32 esp_budget_measured(const struct esp_budget *b);
u32 esp_burst_now(const struct esp_budget *b);

#endif /* _ESP_BUDGET_H */
