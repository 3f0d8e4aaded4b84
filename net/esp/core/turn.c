// SPDX-License-Identifier: GPL-2.0-only
/* Turns: which of the queued grants leaves next; see turn.h. */
#include "turn.h"

/**
 * esp_turns_init() - Initialize turns without hosts
 * @t:	turns
 */
void esp_turns_init(struct esp_turns *t)
{
	int i;

	memset(t, 0, sizeof(*t));
	t->every = ESP_TURN_FIFO;
	INIT_LIST_HEAD(&t->hosts);
	INIT_LIST_HEAD(&t->parked);
	for (i = 0; i < ESP_CLASSES; i++)
		INIT_LIST_HEAD(&t->class[i]);
}

/**
 * esp_turn_init() - Initialize a host without grants
 * @h:	host
 */
void esp_turn_init(struct esp_turn *h)
{
	int i;

	memset(h, 0, sizeof(*h));
	h->best = ESP_CLASSES;
	INIT_LIST_HEAD(&h->link);
	INIT_LIST_HEAD(&h->in_class);
	INIT_LIST_HEAD(&h->grants);
	for (i = 0; i < ESP_CLASSES; i++)
		INIT_LIST_HEAD(&h->class[i]);
}

/**
 * esp_turn_class() - Compute the class of a grant
 * @len:	length of the message, packets
 *
 * Return: 0 for less than 4 packets, 1 for less than 16, and so on
 */
u8 esp_turn_class(u32 len)
{
	u8 n;

	for (n = 0; n < ESP_CLASSES - 1 && len >= 4; n++)
		len /= 4;
	return n;
}

/* Remove a host from the list of its class. */
static void turn_leave_class(struct esp_turns *t, struct esp_turn *h)
{
	if (h->best == ESP_CLASSES)
		return;
	list_del_init(&h->in_class);
	if (list_empty(&t->class[h->best]))
		t->classes &= ~(1u << h->best);
	h->best = ESP_CLASSES;
}

/* Put a host into the lists in which it has to be. */
static void turn_place(struct esp_turns *t, struct esp_turn *h)
{
	u8 best = h->classes && !h->parked ? __ffs(h->classes) : ESP_CLASSES;

	bool waits = h->best == ESP_CLASSES;	/* it is not among @t->hosts */

	if (best == ESP_CLASSES) {
		turn_leave_class(t, h);
		if (h->classes)
			list_move_tail(&h->link, &t->parked);
		else
			list_del_init(&h->link);
		return;
	}
	if (best == h->best)
		return;
	turn_leave_class(t, h);
	h->best = best;
	list_add_tail(&h->in_class, &t->class[best]);
	t->classes |= 1u << best;
	if (waits)
		list_move_tail(&h->link, &t->hosts);
}

/**
 * esp_turn_add() - Queue a grant
 * @t:		turns
 * @h:		host of the grant
 * @g:		grant, not queued
 * @class:	see esp_turn_class()
 * @first:	before the other grants of the host; false: after them
 */
void esp_turn_add(struct esp_turns *t, struct esp_turn *h, struct esp_turn_grant *g, u8 class,
		  bool first)
{
	g->class = class;
	if (first) {
		list_add(&g->link, &h->grants);
		list_add(&g->in_class, &h->class[class]);
	} else {
		list_add_tail(&g->link, &h->grants);
		list_add_tail(&g->in_class, &h->class[class]);
	}
	h->classes |= 1u << class;
	turn_place(t, h);
}

/**
 * esp_turn_del() - Remove a grant
 * @t:	turns
 * @h:	host of the grant
 * @g:	grant, queued
 */
void esp_turn_del(struct esp_turns *t, struct esp_turn *h, struct esp_turn_grant *g)
{
	list_del_init(&g->link);
	list_del_init(&g->in_class);
	if (list_empty(&h->class[g->class]))
		h->classes &= ~(1u << g->class);
	turn_place(t, h);
	if (!h->classes)
		esp_turn_unpark(t, h);
}

/**
 * esp_turn_park() - Leave a host out until packets of it arrive
 * @t:		turns
 * @h:		host with a queued grant
 * @full:	a larger budget would let it have more
 */
void esp_turn_park(struct esp_turns *t, struct esp_turn *h, bool full)
{
	if (h->parked)
		return;
	h->full = full;
	t->full += full;
	WRITE_ONCE(h->parked, 1);
	turn_place(t, h);
}

/**
 * esp_turn_unpark() - Let a host take part again
 * @t:	turns
 * @h:	host
 */
void esp_turn_unpark(struct esp_turns *t, struct esp_turn *h)
{
	if (!h->parked)
		return;
	t->full -= h->full;
	h->full = 0;
	WRITE_ONCE(h->parked, 0);
	turn_place(t, h);
}

/**
 * esp_turn_host() - Find the host whose turn it is
 * @t:	turns
 *
 * Return: the host; NULL: none has a queued grant, or all that have are parked
 */
struct esp_turn *esp_turn_host(const struct esp_turns *t)
{
	if (!t->classes)
		return NULL;
	if (esp_turn_fifo(t))
		return list_first_entry(&t->hosts, struct esp_turn, link);
	return list_first_entry(&t->class[__ffs(t->classes)], struct esp_turn, in_class);
}

/**
 * esp_turn_any() - Find a host with a queued grant, even a parked one
 * @t:	turns
 *
 * Return: the host; NULL: there is none
 */
struct esp_turn *esp_turn_any(const struct esp_turns *t)
{
	if (!list_empty(&t->hosts))
		return list_first_entry(&t->hosts, struct esp_turn, link);
	if (!list_empty(&t->parked))
		return list_first_entry(&t->parked, struct esp_turn, link);
	return NULL;
}

/**
 * esp_turn_next() - Find the grant that leaves next
 * @t:	turns
 * @h:	host whose turn it is
 *
 * Return: the grant
 */
struct esp_turn_grant *esp_turn_next(const struct esp_turns *t, const struct esp_turn *h)
{
	if (esp_turn_fifo(t))
		return list_first_entry(&h->grants, struct esp_turn_grant, link);
	return list_first_entry(&h->class[h->best], struct esp_turn_grant, in_class);
}

/**
 * esp_turn_over() - Let the other hosts have their turn
 * @t:	turns
 * @h:	host that got a grant; it is behind the others, if it has another one queued
 * @n:	turns that the grant counts for, by its length; at least 1
 */
void esp_turn_over(struct esp_turns *t, struct esp_turn *h, u32 n)
{
	t->nth = esp_turn_fifo(t) ? 0 : t->nth + n;
	if (h->best == ESP_CLASSES)
		return;
	list_move_tail(&h->link, &t->hosts);
	list_move_tail(&h->in_class, &t->class[h->best]);
}
