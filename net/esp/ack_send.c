// SPDX-License-Identifier: GPL-2.0-only
/*
 * When an ACK leaves (rules 6, 10, 14): at once, with a grant, on a reply, or after a delay.
 */
#include "esp.h"
#include "ack_send.h"
#include "delayed_ack.h"
#include "first_burst.h"
#include "grant.h"
#include "link.h"
#include "memory.h"
#include "negotiate.h"
#include "output.h"
#include "timer.h"

#define ESP_DUP_ACK_US	100	/* shortest time between ACKs for duplicates, microseconds */

/**
 * esp_ack_now() - Send an ACK that needs no grant, at once (rule 10)
 * @sk:	socket; its owner calls
 *
 * Rate-limited: an ACK too soon after the last one is delayed, not lost.
 */
void esp_ack_now(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 now = esp_now();

	sock_owned_by_me(sk);
	if (now - esp->last_ack_us >= ESP_DUP_ACK_US) {
		esp_send_ack(sk);
		return;
	}
	WRITE_ONCE(esp->ack_pending, ESP_ACK_WAITS);
	esp_timer_set(esp, ESP_T_ACK, esp->last_ack_us + ESP_DUP_ACK_US);
}

/* Does an ACK leave at @at, or before? One that may wait for ESP_LATER_US is no reason to wait. */
static bool ack_leaves_by(const struct esp_opt *esp, u64 at)
{
	return esp->ack_pending && READ_ONCE(esp->deadline[ESP_T_ACK]) <= at;
}

/* Arm the socket's own hrtimer, @us after the frame to be acknowledged (esp_ack_rcv()). */
static void ack_within(struct esp_opt *esp, u32 us)
{
	WRITE_ONCE(esp->ack_pending, ESP_ACK_WAITS);
	esp_timer_move(esp, ESP_T_ACK, esp->progress_us, us, ESP_SLACK_US);
}

/**
 * esp_ack_soon() - Schedule an ACK that may ride on the user's next data
 * @sk:	socket; its owner calls
 * @us:	delay after the frame to be acknowledged, which esp_ack_rcv() has seen,
 *	microseconds, if longer than net.esp.ack_delay_us; 0: after that sysctl's delay,
 *	or somewhat earlier, together with the ACKs of other sockets
 */
void esp_ack_soon(struct sock *sk, u32 us)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 delay = READ_ONCE(esp->ns->conf.ack_delay_us);

	if (ack_leaves_by(esp, esp->progress_us + max(us, delay)))
		return;
	if (us <= delay) {
		esp_ack_wait(esp, esp->progress_us + delay - esp_ack_early(delay));
		return;
	}
	ack_within(esp, us);
}

/*
 * Schedule the ACK of the peer's FIN. It rides on the user's own FIN, which is likely to
 * follow. That FIN needs the hrtimer, too: the timer need not be armed again for it.
 */
static void ack_fin(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 us = READ_ONCE(esp->ns->conf.ack_delay_us);

	if (!us)
		esp_send_ack(sk);
	else if (!ack_leaves_by(esp, esp->progress_us + us))
		ack_within(esp, us);
}

/*
 * Half of the time after which the sender takes a packet for lost, if its round trips are like
 * ours. The other half is for the packet's and the ACK's way, and for the sender's own queue.
 */
static u32 ack_before_loss(struct sock *sk)
{
	const struct esp_conf *conf = &esp_sk(sk)->ns->conf;

	return max_t(u32, esp_rtt_smooth(&esp_sk(sk)->rtt),
		     READ_ONCE(conf->rto_min_us)) / 2;
}

/* Note what a grant has acknowledged that left from the ACK queue. */
static void ack_note_queue(struct esp_opt *esp)
{
	u32 told = READ_ONCE(esp->queue_acked_seq);

	/* an acknowledgment of 2^31 packets ago is after both */
	if (!esp_after(told, esp->ack_seq) || esp_after(told, esp->recv_seq))
		return;
	esp->ack_seq = told;
	esp->to_ack = esp->recv_seq - told;
}

/*
 * Packets after which a sender that needs no more permission gets an ACK. On the same host an ACK
 * costs as much as the data of several GSO packets. The next grant is one, or a timer sends it, and
 * a sender that can't go on asks.
 */
static u32 ack_when_granted(struct esp_opt *esp, u32 each)
{
	if (READ_ONCE(esp->user_to_ack) || esp->agreed_burst || !esp_host_near(esp->grant.host))
		return each;
	return ESP_FRAMES_MAX;
}

/* Send or schedule the ACK that the packets just consumed ask for (rules 10, 14). */
void esp_ack_consumed(struct sock *sk, struct esp_consumed *c)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	u32 n = esp_ack_each(sk);

	if (sk->sk_state == TCP_CLOSE)
		return;
	ack_note_queue(esp);
	if (g->recv_announced) {
		bool waits = !esp_after(READ_ONCE(g->edge), esp->recv_seq);

		if (c->ask || (waits && !READ_ONCE(esp->link->ackq.policy.adaptive)))
			esp_enqueue_ack(sk, true, c->packets);
		else if (esp_grant_due(esp))
			esp_enqueue_ack(sk, waits && !READ_ONCE(g->queued), c->packets);
		else if (esp->to_ack >= ack_when_granted(esp, n))
			esp_send_ack(sk);
		ack_note_queue(esp);
		if (esp->ack_seq != esp->recv_seq)
			esp_ack_soon(sk, ack_before_loss(sk));
		if (c->at_once && esp->ack_seq != esp->recv_seq)
			esp_ack_now(sk);
		return;
	}
	if (c->at_once)
		esp_send_ack(sk);
	else if (esp->to_ack >= n)
		esp_ack_now(sk);
	else if (sk->sk_state == TCP_CLOSE_WAIT)
		ack_fin(sk);
	else if (c->bytes)
		esp_ack_soon(sk, c->later && READ_ONCE(esp->ns->conf.ack_delay_us) ?
			     ESP_LATER_US : 0);
}

/**
 * esp_ack_asked() - Answer a peer that asks about the connection
 * @sk:	socket; its owner calls
 *
 * The answer carries the size of packets that this end's device takes (rule 9). It is rate-limited
 * like esp_ack_now().
 */
void esp_ack_asked(struct sock *sk)
{
	if (esp_now() - esp_sk(sk)->last_ack_us >= ESP_DUP_ACK_US)
		esp_send_mss(sk);
	else
		esp_ack_now(sk);
}

/* Send an ACK at once if packets have none yet: the sender may wait for it. */
void esp_ack_answer(struct sock *sk)
{
	if (esp_sk(sk)->to_ack)
		esp_send_ack(sk);
	else
		esp_ack_now(sk);
}

void esp_ack_timeout(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (!esp->ack_pending)
		return;
	ESP_INC(sock_net(sk), AckDelayed);
	esp->replies = 0;
	esp_send_ack(sk);
	if (esp->ack_pending)	/* no memory for the ACK: try again soon */
		esp_timer_set(esp, ESP_T_ACK, esp_now() + USEC_PER_MSEC);
}
