// SPDX-License-Identifier: GPL-2.0-only
/*
 * ACKs that may ride on a reply. Each processor has a line of the namespace's sockets whose
 * ACK waits for a reply. See struct ack_line.
 */
#include "esp.h"
#include "delayed_ack.h"
#include "timer.h"

#define LINE_STEPS	8	/* sockets passed in search of a place, from the end */
#define LINE_MOVES	32	/* sockets that line_follow() moves at a time */

/* Arm the line's hrtimer for the first socket, but not before @least. Under the line's lock. */
void esp_line_start(struct ack_line *line, u64 least)
	__must_hold(&line->lock)
{
	struct esp_opt *esp = list_first_entry(&line->sockets, struct esp_opt, ack_node);
	u32 delay = READ_ONCE(esp->ns->conf.ack_delay_us), early = esp_ack_early(delay);
	u64 at = max(esp->ack_at, least);

	lockdep_assert_held(&line->lock);
	WRITE_ONCE(line->follow, at + delay / 2);
	hrtimer_start_range_ns(&line->timer, ns_to_ktime(at * NSEC_PER_USEC),
			       (u64)(ESP_SLACK_US + early) * NSEC_PER_USEC,
			       HRTIMER_MODE_ABS_SOFT);
}

/*
 * Find the place for time @at: the entry after which the socket is to stand. The search
 * begins at the end of the line, because most sockets wait equally long. NULL: the place is
 * not near the end. Under the line's lock.
 */
static struct list_head *line_place(struct ack_line *line, u64 at)
	__must_hold(&line->lock)
{
	struct list_head *p;
	int steps = 0;

	lockdep_assert_held(&line->lock);
	list_for_each_prev(p, &line->sockets) {
		if (list_entry(p, struct esp_opt, ack_node)->ack_at <= at)
			break;
		if (++steps > LINE_STEPS)
			return NULL;
	}
	return p;
}

/*
 * Put a socket that is in no line into this processor's line. Its owner calls. False: no place
 * near the end.
 */
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

/* Take a socket out of its line. Its owner calls. */
static void line_leave(struct esp_opt *esp)
{
	struct ack_line *line = READ_ONCE(esp->ack_line);
	bool put = false;

	if (!line)
		return;
	spin_lock_bh(&line->lock);
	if (esp->ack_line) {		/* unless its turn has come meanwhile */
		list_del(&esp->ack_node);
		WRITE_ONCE(esp->ack_line, NULL);
		put = true;
	}
	spin_unlock_bh(&line->lock);
	if (put)
		__sock_put(&esp->sk);	/* the caller has a reference of its own */
}

/**
 * esp_timers_stop() - Clear all deadlines of a socket and take it out of its line
 * @sk:	socket; its owner calls
 */
void esp_timers_stop(struct sock *sk)
{
	esp_timer_cancel(sk);
	line_leave(esp_sk(sk));
}

/* When is the ACK due that a socket in line waits with? 0: with none; it may have the hrtimer. */
static u64 line_deadline(const struct esp_opt *esp)
{
	u64 d = READ_ONCE(esp->deadline[ESP_T_ACK]);

	return READ_ONCE(esp->ack_pending) == ESP_ACK_RIDES ? d : 0;
}

/*
 * Move sockets from the head of the line to later places. The caller has found that half of
 * the first socket's time is over, or more, so that its ACK has left, as a rule. A socket
 * moves if no ACK is due at its place. Its new place is that of the ACK that waits now, or
 * @at, where the ACK of a message received now would stand. So the hrtimer does not fire for
 * nothing. A socket that has received nothing for @wait, since it came to its place, does
 * not move: the hrtimer takes it out of the line. If the first socket does not move, the
 * next attempt is half of @wait after @at.
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
		d = line_deadline(esp);
		if (d ? d <= was : was >= at || READ_ONCE(esp->progress_us) + wait <= was)
			break;
		WRITE_ONCE(esp->ack_at, d ? d : at);
		smp_mb();	/* pairs with esp_ack_wait(): ack_at first */
		d = line_deadline(esp);
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
 * esp_line_up() - Join a line, move the line on, or arm the hrtimer
 * @esp:	socket; its owner calls
 * @at:		microseconds of esp_now()
 *
 * The rare part of esp_ack_wait(), which has set the deadline. Takes the line's lock, and
 * takes a reference for the line if the socket joins it. A socket without a place in time
 * takes its own hrtimer, by esp_timer_set().
 */
void esp_line_up(struct esp_opt *esp, u64 at)
{
	u32 delay = READ_ONCE(esp->ns->conf.ack_delay_us), early = esp_ack_early(delay);
	struct ack_line *line = READ_ONCE(esp->ack_line);

	if (line ? !esp_in_line(esp, at) : !line_up(esp, at)) {
		WRITE_ONCE(esp->ack_pending, ESP_ACK_WAITS);
		esp_timer_set(esp, ESP_T_ACK, at + early);
	} else if (line && line == raw_cpu_ptr(esp->ns->ack_lines)) {
		/* an idle socket's next ACK may be timed by an older clock reading */
		line_follow(line, at - min(early, ESP_SLACK_US) / 2, delay - early);
	}
}

/**
 * esp_lines_init() - Allocate the lines of delayed ACKs
 * @ns:	namespace that has no socket yet
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
 * esp_lines_exit() - Free the lines of delayed ACKs
 * @ns:	namespace that has no socket any more; so its lines are empty
 */
void esp_lines_exit(struct esp_net *ns)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu_ptr(ns->ack_lines, cpu)->timer);
	free_percpu(ns->ack_lines);
}
