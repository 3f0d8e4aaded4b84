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

#define ESP_ADVICE_TRIES 9	/* ACKs that tell the peer of a cut, in half a second */
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

	if (esp->ack_pending)
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
	else if (!esp->ack_pending)
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

/*
 * Is an ACK due after @n packets? The exception is a grant that is to be asked for within
 * another @n packets, because it carries an ACK. This holds for a single sender, which
 * hardly waits for its grant. It does not hold if the user has set @n for this socket, if
 * a burst_length bounds how far the sender gets ahead of its last ACK, or if the sender
 * asks for an ACK by then (esp_ask_for_ack()).
 */
static bool ack_due(struct esp_opt *esp, u32 n)
{
	struct esp_ackq *q = &esp->link->ackq;

	if (esp->to_ack < n || READ_ONCE(esp->grant.queued))
		return false;
	return esp->to_ack >= 2 * n || esp->user_to_ack || esp->agreed_burst ||
	       2 * n > ESP_ADVICE_MAX || !READ_ONCE(q->policy.adaptive) ||
	       atomic_read(&q->esp_recv_count) > 1 ||
	       esp_grant_left(esp) > esp_policy_ask(&q->policy, &q->ctl, 1) + n;
}

/*
 * Does the request for a grant wait until an ACK is due anyway? It does for a single
 * sender that has much left, in two cases. Either its share is more than there is memory
 * for: each packet would ask for the next one. Or the sender is on the same host: there
 * is no wire on which packets that come together may be too many.
 */
static bool ack_asks_later(struct esp_opt *esp, u32 n)
{
	struct esp_ackq *q = &esp->link->ackq;
	int count = atomic_read(&q->esp_recv_count);

	return esp->to_ack < n && count <= 1 &&
	       esp_grant_left(esp) > 2 * ESP_LONE_MAX &&
	       (esp_qctl_no_wire(&q->ctl, count) ||
		esp_grant_room(esp) < READ_ONCE(q->ctl.q));
}

/*
 * After how many packets is an ACK due? A GSO packet may hold more than packets_to_ack.
 * A sender on the same host that has much of its grant left gets one ACK for several GSO
 * packets. It asks for an ACK if it can't wait: esp_ask_for_ack().
 */
static u32 ack_after(struct esp_opt *esp, u32 packets)
{
	struct esp_ackq *q = &esp->link->ackq;
	u32 n = esp_ack_each(&esp->sk);

	if (packets <= n || esp->user_to_ack || esp->agreed_burst ||
	    !esp_qctl_no_wire(&q->ctl, atomic_read(&q->esp_recv_count)))
		return n;
	packets = min_t(u32, ESP_ACK_RUNS * packets, ESP_ACK_MOST);
	return max(n, min(packets, esp_grant_left(esp) / 2));
}

/* Send or schedule the ACK that the packets just consumed ask for (rules 10, 14). */
void esp_ack_consumed(struct sock *sk, struct esp_consumed *c)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	u32 n = ack_after(esp, c->packets);
	u32 told = READ_ONCE(esp->queue_acked_seq);

	if (sk->sk_state == TCP_CLOSE)
		return;
	/* an acknowledgment of 2^31 packets ago is after both */
	if (esp_after(told, esp->ack_seq) && !esp_after(told, esp->recv_seq)) {
		esp->ack_seq = told;
		esp->to_ack = esp->recv_seq - told;
	}
	if (g->recv_announced) {
		u32 left = READ_ONCE(g->edge) - esp->recv_seq;

		/* the next grant is due when a GSO packet's first packet leaves */
		if ((s32)left <= 0 && c->packets > 1)
			esp_ackq_dry(&esp->link->ackq);
		if (c->ask || (s32)left <= 0)
			esp_enqueue_ack(sk, true, c->packets);
		else if (esp_grant_due(esp) && !ack_asks_later(esp, n))
			esp_enqueue_ack(sk, false, c->packets);
		else if (ack_due(esp, n))
			esp_send_ack(sk);
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
		esp_ack_soon(sk, 0);
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
	esp_send_ack(sk);
	if (esp->ack_pending)	/* no memory for the ACK: try again soon */
		esp_timer_set(esp, ESP_T_ACK, esp_now() + USEC_PER_MSEC);
}

/**
 * esp_ack_tell_cut() - Tell the peer that its first burst was cut (rule 21)
 * @sk:	socket; its owner calls
 *
 * The deadline ESP_T_TELL repeats this, with backoff, until the peer echoes the cut. A
 * host that doesn't answer for half a second won't begin a transmission either: its share
 * goes to other hosts.
 */
void esp_ack_tell_cut(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (!esp_advice_changed(sk))
		return;
	if (esp->advice_tries >= ESP_ADVICE_TRIES) {
		esp_peer_give_up(sk);
		return;
	}
	if (!esp->advice_tries)
		esp_send_ack(sk);
	else	/* the peer echoes no cut that it knows: ask, as keepalive does */
		esp_send_empty(sk, ESP_TXS, esp->snd.send_next - 1);
	esp_timer_set(esp, ESP_T_TELL, esp_now() + (1000u << esp->advice_tries++));
}
