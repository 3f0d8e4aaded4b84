// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is done when a deadline is due. The deadlines are explained in timer.c.
 */
#include "esp.h"
#include "ack_send.h"
#include "close.h"
#include "connect.h"
#include "delayed_ack.h"
#include "grant.h"
#include "output.h"
#include "rcv_data.h"
#include "timeout.h"
#include "timer.h"
#include "write_queue.h"

#define LINE_RUN	64	/* ACKs in a row, then other softirqs have their turn */

/* Nobody answers: is it time to give up? */
static bool send_gave_up(struct sock *sk, u32 tries, u64 now)
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
		if (send_gave_up(sk, esp->probes + 1u, now))
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

static void keep_timeout(struct sock *sk, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 idle = esp_keep_idle(esp);

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

static void cork_timeout(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (((1 << sk->sk_state) & (TCPF_FIN_WAIT1 | TCPF_CLOSING |
				    TCPF_LAST_ACK)) && !esp->fin_queued) {
		esp_queue_fin(sk);	/* there was no memory for it */
		esp_push_frames(sk);
		return;
	}
	esp->uncork = 1;
	esp_push_frames(sk);
	esp->uncork = 0;
}

static void tell_timeout(struct sock *sk)
{
	smp_mb();	/* the deadline is off, before gen and pressure are read */
	esp_ack_tell_cut(sk);
	/* behind it, which may put off what grant_send() wants at once */
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

/* What was due is done: arm for the next. */
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
		timeout_fire(sk, t, now);
	}
	if (sk->sk_state != TCP_CLOSE)
		timeout_rearm(esp);
}

static void timeout_run_or_defer(struct sock *sk)
{
	bh_lock_sock(sk);
	if (!esp_owned(sk))
		esp_timers_run(sk);
	else
		WRITE_ONCE(esp_sk(sk)->deferred, 1);	/* esp_release_cb() */
	bh_unlock_sock(sk);
}

/* The turn of those in line whose time has come. */
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
		/* it may line up elsewhere at once */
		smp_store_release(&esp->ack_line, NULL);
		spin_unlock(&line->lock);
		smp_mb();	/* from here on a deadline lines up anew: esp_ack_wait() */
		if (READ_ONCE(esp->deadline[ESP_T_ACK]))
			timeout_run_or_defer(&esp->sk);
		sock_put(&esp->sk);
	}
	if (esp)	/* those that are due by now wait for the next softirq */
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
