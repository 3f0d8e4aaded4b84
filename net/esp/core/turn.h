/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns: which of the queued grants leaves next.
 *
 *   class 0:  host C, host A		messages of less than 4 packets
 *   class 1:  host B			of less than 16
 *   ...				and so on, a factor of four each
 *
 * A grant belongs to a class by the length of its message, and a host to the shortest class of
 * its grants. The first host of the shortest class is next, with its oldest grant of that class.
 * So a short message overtakes long ones, and messages of about the same length take turns to
 * their end. (Homa, SIGCOMM 2018, goes by the remaining length: the first one gets further
 * ahead.) Each eighth turn goes to the host that has waited longest, with its oldest grant. So a
 * long message gets an eighth of the turns, whatever short ones come.
 *
 * A host that may get nothing before packets of it arrive is parked: it takes no turns. Every
 * operation is O(1).
 *
 * Locks: the ACK queue's lock guards all of this.
 */
#ifndef _ESP_TURN_H
#define _ESP_TURN_H

#include "pure.h"

#define ESP_CLASSES		8	/* classes of length */
#define ESP_TURN_FIFO		8	/* one turn of these goes by waiting time */

/**
 * struct esp_turns - hosts with queued grants, of one ACK queue
 */
struct esp_turns {
	/** @hosts: hosts that are not parked; the one that has waited longest is the first */
	struct list_head	hosts;
	/** @parked: hosts with grants that are parked */
	struct list_head	parked;
	/** @class: those of @hosts, by the shortest class of their grants */
	struct list_head	class[ESP_CLASSES];
	/** @classes: classes with hosts, bits */
	u32			classes;
	/** @full: number of parked hosts with struct esp_turn.full */
	u32			full;
	/** @every: each turn of this number goes by waiting time: ESP_TURN_FIFO; 1: all do */
	u8			every;
	/** @nth: turns since the last one by waiting time; a long grant counts as several */
	u32			nth;
};

/**
 * struct esp_turn - the queued grants of one sending host, and its place among the hosts
 */
struct esp_turn {
	/** @link: in struct esp_turns.hosts, or in .parked; empty: without grants */
	struct list_head	link;
	/** @in_class: in struct esp_turns.class[@best] */
	struct list_head	in_class;
	/** @grants: queued grants, the oldest first */
	struct list_head	grants;
	/** @class: the same grants by class */
	struct list_head	class[ESP_CLASSES];
	/** @classes: classes with grants, bits */
	u8			classes;
	/** @best: class that @in_class is in; ESP_CLASSES: none */
	u8			best;
	/** @parked: the host is parked; read without the lock */
	u8			parked;
	/** @full: parked, and a larger budget would end that */
	u8			full;
};

/**
 * struct esp_turn_grant - a grant's place among those of its host
 */
struct esp_turn_grant {
	/** @link: in struct esp_turn.grants */
	struct list_head	link;
	/** @in_class: in struct esp_turn.class[@class] */
	struct list_head	in_class;
	/** @class: class by the length of the message */
	u8			class;
};

void esp_turns_init(struct esp_turns *t);
void esp_turn_init(struct esp_turn *h);
u8 esp_turn_class(u32 len);
void esp_turn_add(struct esp_turns *t, struct esp_turn *h, struct esp_turn_grant *g, u8 class,
		  bool first);
void esp_turn_del(struct esp_turns *t, struct esp_turn *h, struct esp_turn_grant *g);
void esp_turn_park(struct esp_turns *t, struct esp_turn *h, bool full);
void esp_turn_unpark(struct esp_turns *t, struct esp_turn *h);
struct esp_turn *esp_turn_host(const struct esp_turns *t);
struct esp_turn *esp_turn_any(const struct esp_turns *t);
struct esp_turn_grant *esp_turn_next(const struct esp_turns *t, const struct esp_turn *h);
void esp_turn_over(struct esp_turns *t, struct esp_turn *h, u32 n);

/**
 * esp_turn_fifo() - Does the next turn go by waiting time?
 * @t:	turns
 *
 * Return: true if so; false: by class
 */
static inline bool esp_turn_fifo(const struct esp_turns *t)
{
	return t->nth + 1 >= t->every;
}

#endif /* _ESP_TURN_H */
