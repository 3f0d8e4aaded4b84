// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timers. Each socket has one hrtimer (softirq) for all its deadlines. A delayed ACK waits
 * in a processor's line instead; the line has an hrtimer for all its sockets:
 *
 *   ESP_T_SEND	   sender    armed while packets are outstanding, or data wait for
 *			     a grant; fires a retransmission of the oldest
 *			     packet (rule 8), or a probe (rule 13). Off while
 *			     everything sent is acknowledged and no data wait.
 *   ESP_T_RRQ	   receiver  armed when a grant leaves, or when the peer announces
 *			     a transmission; fires when granted packets did not
 *			     come (rule 17)
 *   ESP_T_REORDER receiver  armed by a gap; fires an RRQ (rule 19)
 *   ESP_T_ACK	   receiver  armed by data whose ACK may ride on a reply, and by an
 *			     ACK that is due too soon after another
 *   ESP_T_CONN	   both	     handshake; a closed socket whose peer takes no data or
 *			     doesn't close; TIME_WAIT
 *   ESP_T_KEEP	   both	     keepalive
 *   ESP_T_CORK	   sender    armed when ESP_CORK or MSG_MORE holds a packet back, or
 *			     a FIN found no memory; sends the packet, or queues
 *			     the FIN
 *   ESP_T_TELL	   receiver  armed by the context that releases the socket's grant from
 *			     the ACK queue and finds memory free again
 *
 * The context that holds the socket's lock sets deadlines. A context that holds only a
 * reference may set ESP_T_RRQ and ESP_T_TELL. For this reason ESP_T_TELL is cleared only
 * where it fires, before its handler reads why it was set, and by esp_timer_cancel(),
 * when the connection ends.
 * A deadline that no other host waits for may be 100 us late, so that the deadlines of many
 * sockets share an interrupt. The end of TIME_WAIT may be 2 ms late.
 * A deadline that may be as late as the hrtimer, or later, costs only a store: the
 * hrtimer fires early, finds nothing due and is armed anew.
 *
 * The hrtimer holds a reference to the socket while it is armed or running
 * (timer_ref, under timer_lock). The line holds a reference while the socket is in it
 * (ack_line, under the line's lock).
 */
#include "esp.h"
#include "timer.h"

/* Arm the hrtimer for @at. Under timer_lock; the caller has taken the hrtimer's reference. */
static void timer_start(struct esp_opt *esp, enum esp_timer t, u64 at)
	__must_hold(&esp->timer_lock)
{
	u64 slack = esp_timer_slack(esp, t);

	lockdep_assert_held(&esp->timer_lock);
	WRITE_ONCE(esp->timer_by, esp_timer_by(t));
	WRITE_ONCE(esp->timer_at, at + slack);
	hrtimer_start_range_ns(&esp->timer, ns_to_ktime(at * NSEC_PER_USEC),
			       slack * NSEC_PER_USEC, HRTIMER_MODE_ABS_SOFT);
}

/**
 * esp_timer_arm() - Arm the hrtimer unless it fires in time anyway
 * @esp:	socket; as for esp_timer_set()
 * @t:		the deadline that @at belongs to
 * @at:		microseconds of esp_now()
 *
 * Takes timer_lock. Takes a reference for the hrtimer, unless it has one already.
 */
void esp_timer_arm(struct esp_opt *esp, enum esp_timer t, u64 at)
{
	spin_lock_bh(&esp->timer_lock);
	if (at + esp_timer_slack(esp, t) < esp->timer_at) {
		if (!esp->timer_ref) {
			esp->timer_ref = 1;
			sock_hold(&esp->sk);
		}
		timer_start(esp, t, at);
	}
	spin_unlock_bh(&esp->timer_lock);
}

/**
 * esp_timer_set() - Set a deadline
 * @esp:	socket; its owner calls; for ESP_T_RRQ and ESP_T_TELL a reference is enough
 * @t:		the deadline
 * @at:		microseconds of esp_now()
 */
void esp_timer_set(struct esp_opt *esp, enum esp_timer t, u64 at)
{
	if (!at)
		at = 1;
	WRITE_ONCE(esp->deadline[t], at);
	smp_mb();	/* pairs with timer_fn(): deadline before timer_at */
	if (at + esp_timer_slack(esp, t) < READ_ONCE(esp->timer_at))
		esp_timer_arm(esp, t, at);
}

/* Find the deadline that bears least delay, and its time @at; ESP_T_MAX: none is set. */
enum esp_timer esp_timer_earliest(struct esp_opt *esp, u64 *at)
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
 * esp_timer_follow() - Arm the hrtimer for the deadline that is first now
 * @esp:	socket; as for esp_timer_set()
 *
 * The deadline for which the hrtimer was armed has moved on since. Arming anew costs less
 * than an interrupt that finds nothing due. Takes timer_lock.
 */
void esp_timer_follow(struct esp_opt *esp)
{
	enum esp_timer t;
	u64 at;

	spin_lock_bh(&esp->timer_lock);
	if (esp->timer_at != U64_MAX) {		/* it is armed, with a reference */
		WRITE_ONCE(esp->timer_at, U64_MAX);
		smp_mb();	/* a deadline set from here on arms, as in timer_fn() */
		t = esp_timer_earliest(esp, &at);
		if (t != ESP_T_MAX)
			timer_start(esp, t, at);
	}
	spin_unlock_bh(&esp->timer_lock);
}

/**
 * esp_timer_cancel() - Clear all deadlines and cancel the hrtimer
 * @sk:	socket; its owner calls
 */
void esp_timer_cancel(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	bool put = false;
	int t;

	for (t = 0; t < ESP_T_MAX; t++)
		WRITE_ONCE(esp->deadline[t], 0);
	spin_lock_bh(&esp->timer_lock);
	/* an hrtimer that is running, and is not armed again, drops its reference itself */
	if (esp->timer_ref && hrtimer_is_queued(&esp->timer)) {
		if (hrtimer_try_to_cancel(&esp->timer) == 1) {
			esp->timer_ref = 0;
			WRITE_ONCE(esp->timer_at, U64_MAX);
			put = true;
		} else if (hrtimer_is_queued(&esp->timer)) {
			/*
			 * It is running, and was armed meanwhile, perhaps for a
			 * minute. Let it fire at once, to drop its reference.
			 */
			hrtimer_start(&esp->timer, 0, HRTIMER_MODE_ABS_SOFT);
		}
	}
	spin_unlock_bh(&esp->timer_lock);
	if (put)
		__sock_put(sk);	/* the caller has a reference of its own */
}

/**
 * esp_rto() - Compute the present retransmission timeout
 * @esp:	socket
 *
 * Return: microseconds
 */
u32 esp_rto(struct esp_opt *esp)
{
	bool later = esp->sent_later && esp->snd.una_seq != esp->snd.send_next;
	const struct esp_conf *conf = &esp->ns->conf;
	u32 hi = 1000 * READ_ONCE(conf->rto_max_ms);

	return esp_rtt_backoff(esp_rtt_timeout(&esp->rtt,
					       READ_ONCE(conf->ack_delay_us) +
					       (later ? ESP_LATER_US : 0),
					       READ_ONCE(conf->rto_min_us), hi),
			       esp->retransmits, hi);
}

/* Idle time before keepalive probes, microseconds: the option, or else the sysctl of its name. */
u64 esp_keep_idle(struct esp_opt *esp)
{
	u32 conf = READ_ONCE(esp->ns->conf.keepalive_time);

	return 1000000ull * (esp->keep_idle ? esp->keep_idle : conf);
}

/**
 * esp_start_keepalive() - Start the keepalive deadline, or stop it without SO_KEEPALIVE
 * @sk:	socket; its owner calls
 */
void esp_start_keepalive(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (sock_flag(sk, SOCK_KEEPOPEN) && esp->peer &&
	    ((1 << sk->sk_state) & ~(TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT)))
		esp_timer_set(esp, ESP_T_KEEP, esp_now() + esp_keep_idle(esp));
	else
		esp_timer_clear(esp, ESP_T_KEEP);
}
