// SPDX-License-Identifier: GPL-2.0-only
/*
 * ACKs that may ride on a reply: the sockets of a namespace that wait for it, one line per
 * processor. See struct ack_line.
 */
#include "esp.h"
#include "delayed_ack.h"
#include "timer.h"

#define LINE_STEPS	8	/* a place is looked for among so many, from the end */
#define LINE_MOVES	32	/* at a time */

/* For the first in line, but not before @least. Its lock is held. */
void esp_line_start(struct ack_line *line, u64 least)
{
	struct esp_opt *esp = list_first_entry(&line->sockets, struct esp_opt, ack_node);
	u32 delay = READ_ONCE(esp->ns->conf.ack_delay_us), early = esp_ack_early(delay);
	u64 at = max(esp->ack_at, least);

	WRITE_ONCE(line->follow, at + delay / 2);
	hrtimer_start_range_ns(&line->timer, ns_to_ktime(at * NSEC_PER_USEC),
			       (u64)(ESP_SLACK_US + early) * NSEC_PER_USEC,
			       HRTIMER_MODE_ABS_SOFT);
}

/*
 * Behind whom to stand with @at, from the end of the line, for most wait equally long.
 * NULL: not near there. Its lock is held.
 */
static struct list_head *line_place(struct ack_line *line, u64 at)
{
	struct list_head *p;
	int steps = 0;

	list_for_each_prev(p, &line->sockets) {
		if (list_entry(p, struct esp_opt, ack_node)->ack_at <= at)
			break;
		if (++steps > LINE_STEPS)
			return NULL;
	}
	return p;
}

/* To this processor's line. The caller owns the socket, which is in none. False: no place. */
static bool line_up(struct esp_opt *esp, u64 at)
{
	struct ack_line *line;
	struct list_head *p;

	local_bh_disable();
	line = this_cpu_ptr(esp->ns->ack_lines);
	spin_lock(&line->lock);
	p = line_place(line, at);
	if (p) {
		sock_hold(&esp->sk);
		WRITE_ONCE(esp->ack_at, at);
		list_add(&esp->ack_node, p);
		WRITE_ONCE(esp->ack_line, line);
		if (p == &line->sockets)
			esp_line_start(line, 0);
	}
	spin_unlock(&line->lock);
	local_bh_enable();
	return p;
}

/* Nobody is in line for this socket any more. Its owner calls. */
static void line_leave(struct esp_opt *esp)
{
	struct ack_line *line = READ_ONCE(esp->ack_line);
	bool put = false;

	if (!line)
		return;
	spin_lock_bh(&line->lock);
	if (esp->ack_line) {		/* its turn has not come meanwhile */
		list_del(&esp->ack_node);
		WRITE_ONCE(esp->ack_line, NULL);
		put = true;
	}
	spin_unlock_bh(&line->lock);
	if (put)
		__sock_put(&esp->sk);	/* the caller has a reference of its own */
}

/**
 * esp_timers_stop() - clear all deadlines of a socket, and take it out of its line
 * @sk:	socket; its owner calls
 */
void esp_timers_stop(struct sock *sk)
{
	esp_timer_cancel(sk);
	line_leave(esp_sk(sk));
}

/*
 * The first should have had its ACK by now, as a rule: half of the time is over, or more.
 * Those at the head for whom nothing is due stand behind others then, for what they wait
 * for now, or would, at @at, if a message came: no interrupt for nothing. Who had none since
 * he came here, for @wait, is left to the hrtimer, which sends him away. If the first stays,
 * it is tried again half of that later.
 */
static void line_follow(struct ack_line *line, u64 at, u32 wait)
{
	struct list_head *p;
	struct esp_opt *esp;
	int i;

	spin_lock_bh(&line->lock);
	for (i = 0; i < LINE_MOVES; i++) {
		u64 was, d;

		esp = list_first_entry_or_null(&line->sockets, struct esp_opt, ack_node);
		if (!esp)
			break;
		was = esp->ack_at;
		d = READ_ONCE(esp->deadline[ESP_T_ACK]);
		if (d ? d <= was : was >= at || READ_ONCE(esp->progress_us) + wait <= was)
			break;
		WRITE_ONCE(esp->ack_at, d ? d : at);
		smp_mb();	/* pairs with esp_ack_wait(): ack_at first */
		d = READ_ONCE(esp->deadline[ESP_T_ACK]);
		if (d && d <= was) {
			WRITE_ONCE(esp->ack_at, was);
			break;
		}
		if (d && d < esp->ack_at)
			WRITE_ONCE(esp->ack_at, d);
		list_del(&esp->ack_node);
		p = line_place(line, esp->ack_at);
		if (!p) {
			WRITE_ONCE(esp->ack_at, was);
			list_add(&esp->ack_node, &line->sockets);
			break;
		}
		list_add(&esp->ack_node, p);
	}
	if (i && !list_empty(&line->sockets))
		esp_line_start(line, 0);
	else
		WRITE_ONCE(line->follow, at + wait / 2);
	spin_unlock_bh(&line->lock);
}

/**
 * esp_line_up() - what esp_ack_wait() does beside setting the deadline, as a rule rarely
 * @esp:	socket; its owner calls
 * @at:		microseconds of esp_now()
 *
 * Takes the line's lock, and a reference with it, or does what esp_timer_set() does.
 */
void esp_line_up(struct esp_opt *esp, u64 at)
{
	u32 delay = READ_ONCE(esp->ns->conf.ack_delay_us), early = esp_ack_early(delay);
	struct ack_line *line = READ_ONCE(esp->ack_line);

	if (line ? !esp_in_line(esp, at) : !line_up(esp, at)) {
		WRITE_ONCE(esp->ack_pending, ESP_ACK_WAITS);
		esp_timer_set(esp, ESP_T_ACK, at + early);
	} else if (line && line == raw_cpu_ptr(esp->ns->ack_lines)) {
		/* an idle one's next may be by an older look at the clock */
		line_follow(line, at - min(early, ESP_SLACK_US) / 2, delay - early);
	}
}

/**
 * esp_lines_init() - the lines of delayed ACKs
 * @ns:	namespace, without a socket as yet
 * @fn:	function of the lines' timers
 *
 * Return: 0 or ENOMEM
 */
int esp_lines_init(struct esp_net *ns, enum hrtimer_restart (*fn)(struct hrtimer *timer))
{
	int cpu;

	ns->ack_lines = alloc_percpu(struct ack_line);
	if (!ns->ack_lines)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct ack_line *line = per_cpu_ptr(ns->ack_lines, cpu);

		spin_lock_init(&line->lock);
		INIT_LIST_HEAD(&line->sockets);
		hrtimer_setup(&line->timer, fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	}
	return 0;
}

/**
 * esp_lines_exit() - no socket is left, hence nobody in line
 * @ns:	namespace
 */
void esp_lines_exit(struct esp_net *ns)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu_ptr(ns->ack_lines, cpu)->timer);
	free_percpu(ns->ack_lines);
}
