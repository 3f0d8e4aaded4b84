// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handlers of deadlines that are due. timer.c explains the deadlines.
 */
#include "esp.h"
#include "ack_send.h"
#include "close.h"
#include "connect.h"
#include "delayed_ack.h"
#include "dev_queue.h"
#include "grant.h"
#include "output.h"
#include "rcv_data.h"
#include "sock.h"
#include "timeout.h"
#include "timer.h"
#include "write_queue.h"

#define LINE_RUN	64	/* ACKs in a row before other softirqs have their turn */

/* The peer does not answer: is it time to give up? If so, end the connection. */
static bool send_gave_up(struct sock *sk, u32 tries, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 limit = READ_ONCE(esp_sk(sk)->ns->conf.retries);

	if (esp->user_timeout_ms ?
	    now - esp->waiting_since < 1000ull * esp->user_timeout_ms :
	    tries <= limit)
		return false;
	ESP_INC(sock_net(sk), AbortOnTimeout);
	esp_reset_peer(sk);	/* in case the peer is alive */
	esp_done(sk, -ETIMEDOUT);
	return true;
}

static void send_timeout(struct sock *sk, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb = skb_peek(&sk->sk_write_queue);

	if (esp->orphan && esp_orphan_refused(sk)) {
		ESP_INC(sock_net(sk), AbortOnMemory);
		esp_reset_and_linger(sk);
		return;
	}
	if (skb && esp->snd.una_seq != esp->snd.send_next) {
		if (send_gave_up(sk, esp->probes + 1u, now))
			return;
		if (esp->probes < 255)
			WRITE_ONCE(esp->probes, esp->probes + 1);
		if (esp->retransmits < 255)
			WRITE_ONCE(esp->retransmits, esp->retransmits + 1);
		esp->sent_later = 0;
		esp->stats.timeouts++;
		ESP_INC(sock_net(sk), Timeouts);
		if (esp_devq_held(sk)) {	/* the peer may wait for what the device has */
			/* first: data that wait must not begin the user's timeout anew */
			esp_arm_send(sk, now);
			esp_push_frames(sk);
			return;
		}
		esp->rto_high = esp->snd.send_next;
		esp->snd.recovering = 1;
		esp_retransmit(sk, skb, esp->snd.una_seq,
			       esp->snd.una_seq + 1);
		/* its cookie asks about the connection, and how large packets may be */
		if (esp->retransmits >= ESP_FORGOTTEN)
			esp_send_ack(sk);
	} else if (sk->sk_send_head) {
		if (send_gave_up(sk, esp->probes + 1u, now))
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

/* Is the peer gone? ESP_USER_TIMEOUT replaces the number of probes, as with TCP. */
static bool keep_gave_up(struct esp_opt *esp, u64 now)
{
	if (esp->user_timeout_ms)
		return esp->keep_probes &&
		       now - esp->progress_us >= 1000ull * esp->user_timeout_ms;
	return esp->keep_probes >= keep_cnt(esp);
}

static void keep_timeout(struct sock *sk, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 idle = esp_keep_idle(esp);

	if (!sock_flag(sk, SOCK_KEEPOPEN) || sk->sk_state == TCP_CLOSE)
		return;
	if (esp->snd.una_seq != esp->snd.send_next || sk->sk_send_head) {
		/* ESP_T_SEND finds out whether the peer is alive */
		esp_timer_set(esp, ESP_T_KEEP, now + idle);
		return;
	}
	if (now - esp->progress_us < idle && !esp->keep_probes) {
		esp_timer_set(esp, ESP_T_KEEP, esp->progress_us + idle);
		return;
	}
	if (keep_gave_up(esp, now)) {
		ESP_INC(sock_net(sk), AbortOnTimeout);
		esp_done(sk, -ETIMEDOUT);
		return;
	}
	esp->keep_probes++;
	ESP_INC(sock_net(sk), KeepaliveProbes);
	esp_send_probe(sk);
	esp_timer_set(esp, ESP_T_KEEP, now + keep_intvl(esp));
}

static void cork_timeout(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (((1 << sk->sk_state) & (TCPF_FIN_WAIT1 | TCPF_CLOSING |
				    TCPF_LAST_ACK)) && !esp->fin_queued) {
		esp_queue_fin(sk);	/* there was no memory for the FIN */
		esp_push_frames(sk);
		return;
	}
	esp->uncork = 1;
	esp_push_frames(sk);
	esp->uncork = 0;
}

static void tell_timeout(struct sock *sk)
{
	smp_mb();	/* the deadline is off, before the pressure is read */
	esp_pressure_lifted(sk);
}

static void timeout_fire(struct sock *sk, enum esp_timer t, u64 now)
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
		esp_ack_timeout(sk);
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

/* Arm for the next deadline, after the handlers have run. */
static void timeout_rearm(struct esp_opt *esp)
{
	enum esp_timer t;
	u64 at;

	at = READ_ONCE(esp->deadline[ESP_T_ACK]);
	if (at && esp->ack_pending == ESP_ACK_RIDES)
		esp_ack_wait(esp, at);
	t = esp_timer_earliest(esp, &at);
	if (t != ESP_T_MAX)
		esp_timer_arm(esp, t, at);
}

/**
 * esp_timers_run() - Handle the deadlines that are due and arm for the next
 * @sk:	socket; its lock is held, and no process owns it but the caller
 */
void esp_timers_run(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 now = esp_now();
	int t;

	sock_owned_by_me(sk);
	WRITE_ONCE(esp->deferred, 0);
	for (t = 0; t < ESP_T_MAX && sk->sk_state != TCP_CLOSE; t++) {
		u64 at = READ_ONCE(esp->deadline[t]);

		if (!at || at > now)
			continue;
		WRITE_ONCE(esp->deadline[t], 0);
		timeout_fire(sk, t, now);
	}
	if (sk->sk_state != TCP_CLOSE)
		timeout_rearm(esp);
}

/* Handle the deadlines, or leave that to the process that owns the socket. */
static void timeout_run_or_defer(struct sock *sk)
{
	bh_lock_sock(sk);
	if (!esp_owned(sk))
		esp_timers_run(sk);
	else
		WRITE_ONCE(esp_sk(sk)->deferred, 1);	/* esp_release_cb() */
	bh_unlock_sock(sk);
}

/* A line's hrtimer: take out the sockets whose time has come, and send the ACKs that are due. */
enum hrtimer_restart esp_line_timeout(struct hrtimer *timer)
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
		/* from here on the socket may join another line */
		smp_store_release(&esp->ack_line, NULL);
		spin_unlock(&line->lock);
		smp_mb();	/* from here on a deadline joins a line anew: esp_ack_wait() */
		if (READ_ONCE(esp->deadline[ESP_T_ACK]))
			timeout_run_or_defer(&esp->sk);
		sock_put(&esp->sk);
	}
	if (esp)	/* sockets that are due by now wait for the next softirq */
		esp_line_start(line, i == LINE_RUN ? esp_now() + 1 : 0);
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

	timeout_run_or_defer(sk);

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
