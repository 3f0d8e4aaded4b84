/* SPDX-License-Identifier: GPL-2.0-only */
/* ACKs that may ride on a reply: the lines in which they wait. */
#ifndef _ESP_DELAYED_ACK_H
#define _ESP_DELAYED_ACK_H

#include "esp.h"
#include "timer.h"

#define ESP_ACK_EARLY_US 250	/* most by which a delayed ACK may be early, microseconds */

/*
 * A line: sockets of a namespace whose ACK may ride on a reply, in the order of ack_at. Each
 * processor has one. As a rule the ACK has ridden on a reply long before its time, and the
 * next one waits already. An hrtimer of each socket would be armed for each message, or fire
 * for nothing. So a socket stays in line after its ACK has left. From time to time
 * line_follow() moves the sockets at the head for which nothing is due yet to later places,
 * and the hrtimer with them. See timer.c.
 */
struct ack_line {
	spinlock_t		lock;		/* guards the line; see locking.rst */
	struct list_head	sockets;	/* list of esp_opt.ack_node, by ack_at */
	u64			follow;		/* time, us; an ACK due later calls line_follow() */
	struct hrtimer		timer;		/* for the first socket: esp_line_start() */
};

void esp_line_start(struct ack_line *line, u64 least) __must_hold(&line->lock);
void esp_timers_stop(struct sock *sk);
void esp_line_up(struct esp_opt *esp, u64 at);
int esp_lines_init(struct esp_net *ns, enum hrtimer_restart (*fn)(struct hrtimer *timer));
void esp_lines_exit(struct esp_net *ns);

/* How much earlier than after @delay an ACK may leave, with other sockets' ACKs; microseconds. */
static inline u32 esp_ack_early(u32 delay)
{
	return min_t(u32, delay / 2, ESP_ACK_EARLY_US);
}

/**
 * esp_ack_wait() - Set the deadline of an ACK that will ride on a reply, as a rule
 * @esp:	socket; its owner calls
 * @at:		microseconds of esp_now() from which on it may leave, with other sockets' ACKs
 *
 * The ACK leaves esp_ack_early() and ESP_SLACK_US after @at at the latest.
 */
static inline void esp_ack_wait(struct esp_opt *esp, u64 at)
{
	const struct ack_line *line;

	WRITE_ONCE(esp->ack_pending, ESP_ACK_RIDES);
	WRITE_ONCE(esp->deadline[ESP_T_ACK], at);
	smp_mb();	/* pairs with esp_line_timeout() and line_follow(): deadline first */
	line = READ_ONCE(esp->ack_line);
	if (!line || at < READ_ONCE(esp->ack_at) || at > READ_ONCE(line->follow))
		esp_line_up(esp, at);
}

#endif /* _ESP_DELAYED_ACK_H */
