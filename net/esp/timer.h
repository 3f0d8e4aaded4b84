/* SPDX-License-Identifier: GPL-2.0-only */
/* Deadlines of a socket: set, move, clear. timeout.c has the handlers. */
#ifndef _ESP_TIMER_H
#define _ESP_TIMER_H

#include "esp.h"

#define ESP_SLACK_US	100	/* slack allowed on ordinary deadlines, microseconds */
#define ESP_WAIT_SLACK_US 2000	/* slack allowed on the end of TIME_WAIT, microseconds */

void esp_timer_arm(struct esp_opt *esp, enum esp_timer t, u64 at);
void esp_timer_set(struct esp_opt *esp, enum esp_timer t, u64 at);
enum esp_timer esp_timer_earliest(struct esp_opt *esp, u64 *at);
void esp_timer_follow(struct esp_opt *esp);
void esp_timer_cancel(struct sock *sk);
u32 esp_rto(struct esp_opt *esp);
u64 esp_keep_idle(struct esp_opt *esp);
void esp_start_keepalive(struct sock *sk);

static inline void esp_timer_clear(struct esp_opt *esp, enum esp_timer t)
{
	WRITE_ONCE(esp->deadline[t], 0);
}

/* Does the socket's turn in the line come in time for the deadline @at of ESP_T_ACK? */
static inline bool esp_in_line(const struct esp_opt *esp, u64 at)
{
	return READ_ONCE(esp->ack_line) && READ_ONCE(esp->ack_at) <= at;
}

/*
 * How late a deadline may be, microseconds. With slack, the deadlines of many sockets share
 * an interrupt. A deadline that other hosts wait for has no slack: it frees granted tokens,
 * or requests missing packets. The end of TIME_WAIT has the most, because nothing waits
 * for it.
 */
static inline u64 esp_timer_slack(const struct esp_opt *esp, enum esp_timer t)
{
	if (t == ESP_T_CONN && READ_ONCE(esp->sk.sk_state) == TCP_TIME_WAIT)
		return ESP_WAIT_SLACK_US;
	return t == ESP_T_SEND || t == ESP_T_ACK || t == ESP_T_CONN || t == ESP_T_KEEP ?
	       ESP_SLACK_US : 0;
}

/* This processor and the deadline @t in one word, for esp_opt.timer_by. */
static inline u32 esp_timer_by(enum esp_timer t)
{
	return raw_smp_processor_id() * ESP_T_MAX + t;
}

/**
 * esp_timer_move() - Set a deadline that moves on with each frame
 * @esp:	socket; as for esp_timer_set()
 * @t:		the deadline
 * @now:	microseconds of esp_now()
 * @wait:	microseconds from @now to the deadline
 * @slack:	esp_timer_slack() of @t
 *
 * The hrtimer follows the deadline if it is armed for it, and half of the time is over. It
 * follows only on the processor that armed it, because a move by another processor
 * does not save the first one's interrupt.
 */
static inline void esp_timer_move(struct esp_opt *esp, enum esp_timer t, u64 now, u32 wait,
				  u32 slack)
{
	u64 armed;

	WRITE_ONCE(esp->deadline[t], now + wait);
	smp_mb();	/* as in esp_timer_set() */
	armed = READ_ONCE(esp->timer_at);
	if (now + wait + slack < armed)
		esp_timer_arm(esp, t, now + wait);
	else if (armed < now + (wait + slack) / 2 && READ_ONCE(esp->timer_by) == esp_timer_by(t))
		esp_timer_follow(esp);
}

#endif /* _ESP_TIMER_H */
