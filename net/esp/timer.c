// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers. Each socket has one hrtimer (softirq) for all its deadlines, and those of
 * delayed ACKs wait in a processor's line, which has another one:
 *
 *   ESP_T_SEND	   sender    armed while something sent is unacknowledged, or
 *			     permission is awaited; fires a retransmission of
 *			     the oldest packet (rule 8), or a probe (rule 13).
 *			     Stops while everything sent is acknowledged and
 *			     nothing waits.
 *   ESP_T_RRQ	   receiver  armed when permission leaves or a transmission is
 *			     announced; fires when granted packets did not come
 *			     (rule 17)
 *   ESP_T_REORDER receiver  armed by a gap; fires an RRQ (rule 19)
 *   ESP_T_ACK	   receiver  armed by data whose ACK may ride on a reply, and by an
 *			     ACK that came too soon after another
 *   ESP_T_CONN	   both	     handshake; a closed socket whose peer takes no data or
 *			     doesn't close; TIME_WAIT
 *   ESP_T_KEEP	   both	     keepalive
 *   ESP_T_CORK	   sender    armed when ESP_CORK or MSG_MORE holds a packet back, or
 *			     a FIN found no memory; lets it go
 *   ESP_T_TELL	   receiver  armed by who cuts its first burst (rule 21), and by who
 *			     finds memory while its permission leaves the ACK queue
 *
 * Deadlines are set by whoever holds the socket's lock; ESP_T_RRQ and ESP_T_TELL
 * also by others, who hold a reference. So ESP_T_TELL is cleared only where it
 * fires, before what it is about is looked at.
 * Those that nobody else waits for may be 100 us late, together with others', and the
 * end of TIME_WAIT 2 ms.
 * Setting one that may be as late as the hrtimer, or later, costs a store: the
 * hrtimer fires early, finds nothing due and is armed anew.
 *
 * The hrtimer holds a reference to the socket while it is armed or running
 * (timer_ref, under timer_lock). So does the line while the socket is in it (ack_line,
 * under the line's lock).
 */
#include "esp.h"

#define ESP_HELD_SHIFT	3	/* after a HOLD the first probe waits 8 times as long */
#define LINE_STEPS	8	/* a place is looked for among so many, from the end */
#define LINE_RUN	64	/* ACKs in a row, then other softirqs have their turn */
#define LINE_MOVES	32	/* at a time */

/* Under timer_lock, and who calls has taken the reference. */
static void start(struct esp_opt *esp, enum esp_timer t, u64 at)
{
	u64 slack = esp_timer_slack(esp, t);

	WRITE_ONCE(esp->timer_by, esp_timer_by(t));
	WRITE_ONCE(esp->timer_at, at + slack);
	hrtimer_start_range_ns(&esp->timer, ns_to_ktime(at * NSEC_PER_USEC),
			       slack * NSEC_PER_USEC, HRTIMER_MODE_ABS_SOFT);
}

/**
 * esp_timer_arm() - arm the hrtimer unless it fires in time anyway
 * @esp:	socket; as for esp_timer_set()
 * @t:		whose deadline it is
 * @at:		microseconds
 *
 * Takes timer_lock, and a reference with it.
 */
void esp_timer_arm(struct esp_opt *esp, enum esp_timer t, u64 at)
{
	spin_lock_bh(&esp->timer_lock);
	if (at + esp_timer_slack(esp, t) < esp->timer_at) {
		if (!esp->timer_ref) {
			esp->timer_ref = 1;
			sock_hold(&esp->sk);
		}
		start(esp, t, at);
	}
	spin_unlock_bh(&esp->timer_lock);
}

/**
 * esp_timer_set() - set a deadline
 * @esp:	socket; the caller owns it or holds a reference (ESP_T_RRQ, ESP_T_TELL)
 * @t:		which
 * @at:		microseconds of esp_now()
 */
void esp_timer_set(struct esp_opt *esp, enum esp_timer t, u64 at)
{
	if (!at)
		at = 1;
	WRITE_ONCE(esp->deadline[t], at);
	smp_mb();	/* pairs with rearm(): deadline before timer_at */
	if (at + esp_timer_slack(esp, t) < READ_ONCE(esp->timer_at))
		esp_timer_arm(esp, t, at);
}

/* For the first in line, but not before @least. Its lock is held. */
static void line_start(struct ack_line *line, u64 least)
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
			line_start(line, 0);
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
		line_start(line, 0);
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

/* The deadline that bears least delay; ESP_T_MAX: none. */
static enum esp_timer earliest(struct esp_opt *esp, u64 *at)
{
	enum esp_timer t, first = ESP_T_MAX;
	u64 late = U64_MAX;

	for (t = 0; t < ESP_T_MAX; t++) {
		u64 d = READ_ONCE(esp->deadline[t]);

		if (t == ESP_T_ACK && READ_ONCE(esp->ack_pending) == ESP_ACK_RIDES &&
		    esp_in_line(esp, d))
			continue;
		if (d && d + esp_timer_slack(esp, t) < late) {
			late = d + esp_timer_slack(esp, t);
			*at = d;
			first = t;
		}
	}
	return first;
}

/**
 * esp_timer_follow() - arm the hrtimer for what is due first by now
 * @esp:	socket; as for esp_timer_set()
 *
 * The deadline that it was armed for has moved on since. This costs less than an
 * interrupt that finds nothing due. Takes timer_lock.
 */
void esp_timer_follow(struct esp_opt *esp)
{
	enum esp_timer t;
	u64 at;

	spin_lock_bh(&esp->timer_lock);
	if (esp->timer_at != U64_MAX) {		/* it is armed, with a reference */
		WRITE_ONCE(esp->timer_at, U64_MAX);
		smp_mb();	/* what is set from here on arms, as in timer_fn() */
		t = earliest(esp, &at);
		if (t != ESP_T_MAX)
			start(esp, t, at);
	}
	spin_unlock_bh(&esp->timer_lock);
}

/* What was due is done: arm for the next. */
static void rearm(struct esp_opt *esp)
{
	enum esp_timer t;
	u64 at;

	at = READ_ONCE(esp->deadline[ESP_T_ACK]);
	if (at && esp->ack_pending == ESP_ACK_RIDES)
		esp_ack_wait(esp, at);
	t = earliest(esp, &at);
	if (t != ESP_T_MAX)
		esp_timer_arm(esp, t, at);
}

/**
 * esp_timer_stop() - no deadline counts any more
 * @sk:	socket; its owner calls
 */
void esp_timer_stop(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	bool put = false;
	int t;

	for (t = 0; t < ESP_T_MAX; t++)
		WRITE_ONCE(esp->deadline[t], 0);
	line_leave(esp);
	spin_lock_bh(&esp->timer_lock);
	/* one that runs, and will not run again, gives its reference back itself */
	if (esp->timer_ref && hrtimer_is_queued(&esp->timer)) {
		if (hrtimer_try_to_cancel(&esp->timer) == 1) {
			esp->timer_ref = 0;
			WRITE_ONCE(esp->timer_at, U64_MAX);
			put = true;
		} else if (hrtimer_is_queued(&esp->timer)) {
			/*
			 * It is running, and has been armed meanwhile, perhaps
			 * for a minute: at once then, that it gives it back.
			 */
			hrtimer_start(&esp->timer, 0, HRTIMER_MODE_ABS_SOFT);
		}
	}
	spin_unlock_bh(&esp->timer_lock);
	if (put)
		__sock_put(sk);	/* the caller has a reference of its own */
}

/**
 * esp_rto() - retransmission timeout in force
 * @esp:	socket
 *
 * Return: microseconds
 */
u32 esp_rto(struct esp_opt *esp)
{
	const struct esp_conf *conf = &esp->ns->conf;
	u32 hi = 1000 * READ_ONCE(conf->rto_max_ms);

	return esp_rtt_backoff(esp_rtt_timeout(&esp->rtt,
					       READ_ONCE(conf->ack_delay_us),
					       READ_ONCE(conf->rto_min_us), hi),
			       esp->retransmits, hi);
}

/**
 * esp_arm_send() - the sender's timer, as things stand
 * @sk:		socket; its owner calls
 * @now:	microseconds
 */
void esp_arm_send(struct sock *sk, u64 now)
{
	const struct esp_conf *conf = &esp_sk(sk)->ns->conf;
	struct esp_opt *esp = esp_sk(sk);
	u32 wait;

	if (esp->snd.una_seq != esp->snd.send_next) {
		wait = esp_rto(esp);
	} else if (sk->sk_send_head && !esp_hold_back(sk, sk->sk_send_head)) {
		/* the answer may be lost; but a HOLD says that it takes time */
		wait = esp_rtt_backoff(esp_rto(esp), esp->probe_tries +
				       (esp->snd.held ? ESP_HELD_SHIFT : 0),
				       1000 * READ_ONCE(conf->probe_max_ms));
	} else {
		esp_timer_clear(esp, ESP_T_SEND);
		return;
	}
	esp_timer_move(esp, ESP_T_SEND, now, wait, ESP_SLACK_US);
}

/* Nobody answers: is it time to give up? */
static bool gave_up(struct sock *sk, u32 tries, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 limit = READ_ONCE(esp_sk(sk)->ns->conf.retries);

	if (esp->user_timeout_ms ?
	    now - esp->progress_us < 1000ull * esp->user_timeout_ms :
	    tries <= limit)
		return false;
	ESP_INC(sock_net(sk), AbortOnTimeout);
	esp_reset_peer(sk);	/* if it lives after all */
	esp_done(sk, -ETIMEDOUT);
	return true;
}

static void send_timeout(struct sock *sk, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb = skb_peek(&sk->sk_write_queue);

	if (skb && esp->snd.una_seq != esp->snd.send_next) {
		if (gave_up(sk, esp->probes + 1u, now))
			return;
		if (esp->probes < 255)
			WRITE_ONCE(esp->probes, esp->probes + 1);
		if (esp->retransmits < 255)
			esp->retransmits++;
		esp->stats.timeouts++;
		ESP_INC(sock_net(sk), Timeouts);
		esp->rto_high = esp->snd.send_next;
		esp->snd.recovering = 1;
		esp_retransmit(sk, skb, esp->snd.una_seq,
			       esp->snd.una_seq + 1);
		if (esp->probes >= ESP_FORGOTTEN)
			esp_send_ack(sk);	/* with a cookie: a question */
	} else if (sk->sk_send_head) {
		if (gave_up(sk, esp->probes + 1u, now))
			return;
		if (esp->probes < 255)
			WRITE_ONCE(esp->probes, esp->probes + 1);
		if (esp->probe_tries < 16)
			esp->probe_tries++;
		ESP_INC(sock_net(sk), Probes);
		esp_send_probe(sk);
	}
	esp_arm_send(sk, now);
}

/* An option, or the sysctl of its name: in microseconds, and a count. */
static u64 keep_idle(struct esp_opt *esp)
{
	u32 conf = READ_ONCE(esp->ns->conf.keepalive_time);

	return 1000000ull * (esp->keep_idle ? esp->keep_idle : conf);
}

static u64 keep_intvl(struct esp_opt *esp)
{
	u32 conf = READ_ONCE(esp->ns->conf.keepalive_intvl);

	return 1000000ull * (esp->keep_intvl ? esp->keep_intvl : conf);
}

static u32 keep_cnt(struct esp_opt *esp)
{
	u32 conf = READ_ONCE(esp->ns->conf.keepalive_probes);

	return esp->keep_cnt ? esp->keep_cnt : conf;
}

/**
 * esp_start_keepalive() - SO_KEEPALIVE was set, or the connection opened
 * @sk:	socket; its owner calls
 */
void esp_start_keepalive(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (sock_flag(sk, SOCK_KEEPOPEN) && esp->peer &&
	    ((1 << sk->sk_state) & ~(TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT |
				     TCPF_SYN_RECV)))
		esp_timer_set(esp, ESP_T_KEEP, esp_now() + keep_idle(esp));
	else
		esp_timer_clear(esp, ESP_T_KEEP);
}

static void keep_timeout(struct sock *sk, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 idle = keep_idle(esp);

	if (!sock_flag(sk, SOCK_KEEPOPEN) || sk->sk_state == TCP_CLOSE)
		return;
	if (esp->snd.una_seq != esp->snd.send_next || sk->sk_send_head) {
		/* the sender's own timer watches */
		esp_timer_set(esp, ESP_T_KEEP, now + idle);
		return;
	}
	if (now - esp->progress_us < idle && !esp->keep_probes) {
		esp_timer_set(esp, ESP_T_KEEP, esp->progress_us + idle);
		return;
	}
	if (esp->keep_probes >= keep_cnt(esp)) {
		ESP_INC(sock_net(sk), AbortOnTimeout);
		esp_done(sk, -ETIMEDOUT);
		return;
	}
	esp->keep_probes++;
	ESP_INC(sock_net(sk), KeepaliveProbes);
	esp_send_probe(sk);
	esp_timer_set(esp, ESP_T_KEEP, now + keep_intvl(esp));
}

/**
 * esp_start_orphan_timer() - give a closed socket's peer time
 * @sk:	socket; its lock is held. Nothing happens while it has a user
 *
 * Started by close(), by each progress after it, and with FIN_WAIT2.
 */
void esp_start_orphan_timer(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (sock_flag(sk, SOCK_DEAD) &&
	    ((1 << sk->sk_state) & (TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2 |
				    TCPF_CLOSING | TCPF_LAST_ACK)))
		esp_timer_set(esp, ESP_T_CONN, esp_now() +
			      1000ull * READ_ONCE(esp->ns->conf.fin_timeout_ms));
}

static void cork_timeout(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (((1 << sk->sk_state) & (TCPF_FIN_WAIT1 | TCPF_CLOSING |
				    TCPF_LAST_ACK)) && !esp->fin_queued) {
		esp_queue_fin(sk);	/* there was no memory for it */
		return;
	}
	esp->uncork = 1;
	esp_push_frames(sk);
	esp->uncork = 0;
}

static void tell_timeout(struct sock *sk)
{
	smp_mb();	/* the deadline is off, before gen and pressure are read */
	esp_peer_tell(sk);
	/* behind it, which may put off what grant_send() wants at once */
	esp_pressure_lifted(sk);
}

static void ack_timeout(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (!esp->ack_pending)
		return;
	ESP_INC(sock_net(sk), AckDelayed);
	esp_send_ack(sk);
	if (esp->ack_pending)	/* no memory for it: soon once more */
		esp_timer_set(esp, ESP_T_ACK, esp_now() + USEC_PER_MSEC);
}

static void fire(struct sock *sk, enum esp_timer t, u64 now)
{
	switch (t) {
	case ESP_T_SEND:
		send_timeout(sk, now);
		break;
	case ESP_T_RRQ:
		esp_expiry(sk);
		break;
	case ESP_T_REORDER:
		esp_gap_timeout(sk);
		break;
	case ESP_T_ACK:
		ack_timeout(sk);
		break;
	case ESP_T_CONN:
		esp_conn_timeout(sk);
		break;
	case ESP_T_KEEP:
		keep_timeout(sk, now);
		break;
	case ESP_T_CORK:
		cork_timeout(sk);
		break;
	case ESP_T_TELL:
		tell_timeout(sk);
		break;
	case ESP_T_MAX:
		break;
	}
}

/**
 * esp_timers_run() - do what is due, arm for the next
 * @sk:	socket; its lock is held and nobody else owns it
 */
void esp_timers_run(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 now = esp_now();
	int t;

	WRITE_ONCE(esp->deferred, 0);
	for (t = 0; t < ESP_T_MAX && sk->sk_state != TCP_CLOSE; t++) {
		u64 at = READ_ONCE(esp->deadline[t]);

		if (!at || at > now)
			continue;
		WRITE_ONCE(esp->deadline[t], 0);
		fire(sk, t, now);
	}
	if (sk->sk_state != TCP_CLOSE)
		rearm(esp);
}

static void run_or_defer(struct sock *sk)
{
	bh_lock_sock(sk);
	if (!esp_owned(sk))
		esp_timers_run(sk);
	else
		WRITE_ONCE(esp_sk(sk)->deferred, 1);	/* esp_release_cb() */
	bh_unlock_sock(sk);
}

/* The turn of those in line whose time has come. */
static enum hrtimer_restart line_fn(struct hrtimer *timer)
{
	struct ack_line *line = container_of(timer, struct ack_line, timer);
	u64 now = esp_now();
	struct esp_opt *esp;
	int i;

	for (i = 0;; i++) {
		spin_lock(&line->lock);
		esp = list_first_entry_or_null(&line->sockets, struct esp_opt, ack_node);
		if (!esp || esp->ack_at > now || i == LINE_RUN)
			break;
		list_del(&esp->ack_node);
		/* it may line up elsewhere at once */
		smp_store_release(&esp->ack_line, NULL);
		spin_unlock(&line->lock);
		smp_mb();	/* from here on a deadline lines up anew: esp_ack_wait() */
		if (READ_ONCE(esp->deadline[ESP_T_ACK]))
			run_or_defer(&esp->sk);
		sock_put(&esp->sk);
	}
	if (esp)	/* those that are due by now wait for the next softirq */
		line_start(line, i == LINE_RUN ? esp_now() + 1 : 0);
	spin_unlock(&line->lock);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart timer_fn(struct hrtimer *timer)
{
	struct esp_opt *esp = container_of(timer, struct esp_opt, timer);
	struct sock *sk = &esp->sk;
	bool put = false;

	spin_lock(&esp->timer_lock);
	WRITE_ONCE(esp->timer_at, U64_MAX);
	spin_unlock(&esp->timer_lock);
	smp_mb();	/* from here on a deadline arms anew: esp_timer_set() */

	run_or_defer(sk);

	spin_lock(&esp->timer_lock);
	if (esp->timer_ref && !hrtimer_is_queued(timer)) {
		esp->timer_ref = 0;
		put = true;
	}
	spin_unlock(&esp->timer_lock);
	if (put)
		sock_put(sk);
	return HRTIMER_NORESTART;
}

void esp_timer_init(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	spin_lock_init(&esp->timer_lock);
	esp->timer_at = U64_MAX;
	hrtimer_setup(&esp->timer, timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
}

/**
 * esp_lines_init() - the lines of delayed ACKs
 * @ns:	namespace, without a socket as yet
 *
 * Return: 0 or ENOMEM
 */
int esp_lines_init(struct esp_net *ns)
{
	int cpu;

	ns->ack_lines = alloc_percpu(struct ack_line);
	if (!ns->ack_lines)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct ack_line *line = per_cpu_ptr(ns->ack_lines, cpu);

		spin_lock_init(&line->lock);
		INIT_LIST_HEAD(&line->sockets);
		hrtimer_setup(&line->timer, line_fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
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
