/* SPDX-License-Identifier: GPL-2.0-only */
/* ACKs that may ride on a reply. */
#ifndef _ESP_DELAYED_ACK_H
#define _ESP_DELAYED_ACK_H

#include "esp.h"
#include "timer.h"

#define ESP_ACK_EARLY_US 250	/* a delayed ACK may leave so early, with others */

/*
 * Sockets of a namespace whose ACK may ride on a reply, by ack_at: one line per processor.
 * As a rule the ACK has ridden long before, and the next one waits. An hrtimer each would
 * be armed, or fire for nothing, for each message. So whoever is in line stays there;
 * line_follow() moves those at its head on from time to time, for whom nothing is due yet,
 * and the hrtimer with them. See timer.c.
 */
struct ack_line {
	spinlock_t		lock;		/* guards the line; see locking.rst */
	struct list_head	sockets;	/* esp_opt.ack_node */
	u64			follow;		/* when someone waits until then, or longer */
	struct hrtimer		timer;		/* for the first; see line_start() */
};

void esp_line_start(struct ack_line *line, u64 least);
void esp_timers_stop(struct sock *sk);
void esp_line_up(struct esp_opt *esp, u64 at);
int esp_lines_init(struct esp_net *ns, enum hrtimer_restart (*fn)(struct hrtimer *timer));
void esp_lines_exit(struct esp_net *ns);

/* How much earlier than after @delay an ACK may leave, with others; microseconds. */
static inline u32 esp_ack_early(u32 delay)
{
	return min_t(u32, delay / 2, ESP_ACK_EARLY_US);
}

/**
 * esp_ack_wait() - set the deadline of an ACK that will ride on a reply, as a rule
 * @esp:	socket; its owner calls
 * @at:		microseconds of esp_now(): from then on it may leave, with others'
 *
 * It leaves esp_ack_early() and ESP_SLACK_US later, at most.
 */
static inline void esp_ack_wait(struct esp_opt *esp, u64 at)
{
	const struct ack_line *line;

	WRITE_ONCE(esp->ack_pending, ESP_ACK_RIDES);
	WRITE_ONCE(esp->deadline[ESP_T_ACK], at);
	smp_mb();	/* pairs with line_fn() and line_follow(): deadline first */
	line = READ_ONCE(esp->ack_line);
	if (!line || at < READ_ONCE(esp->ack_at) || at > READ_ONCE(line->follow))
		esp_line_up(esp, at);
}

#endif /* _ESP_DELAYED_ACK_H */
