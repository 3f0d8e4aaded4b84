// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a connection: shutdown() and close(), FIN, RST, errors, and the
 * release of a dead socket's resources.
 */
#include <linux/sched/signal.h>
#include "esp.h"
#include "close.h"
#include "delayed_ack.h"
#include "dev.h"
#include "first_burst.h"
#include "grant.h"
#include "hash.h"
#include "output.h"
#include "rcv_part.h"
#include "sock.h"
#include "timer.h"
#include "write_queue.h"

/* Restore the socket after a failed connect(); its owner calls. */
void esp_connect_failed(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	sk->sk_disconnects++;	/* ends connect(), send(), recv() that wait */
	WRITE_ONCE(sk->sk_shutdown, 0);
	if (esp->peer_cookie)	/* a grant may still be on its way out */
		synchronize_rcu();
	esp_peer_put(sk);
	esp_unshare(sk);
	WRITE_ONCE(esp->dport, 0);
	WRITE_ONCE(esp->crc, 0);	/* a listener lets each client decide */
	if (esp->dev_auto) {
		esp->dev_auto = 0;
		esp_dev_release(sk);
	}
}

void esp_purge_ooo(struct esp_opt *esp)
{
	struct rb_node *n;

	sock_owned_by_me(&esp->sk);
	while ((n = rb_first(&esp->ooo))) {
		struct sk_buff *skb = rb_to_skb(n);

		rb_erase(n, &esp->ooo);
		__kfree_skb(skb);
	}
	esp->grant.ooo_pkts = 0;
	if (esp->part)
		esp_part_forget(&esp->sk);
}

/*
 * End the connection. @err (negative, 0: orderly) goes to the user, and waiting
 * calls are woken. The socket stays until the user closes it. Its lock is held.
 */
void esp_done(struct sock *sk, int err)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (sk->sk_state == TCP_SYN_SENT)
		ESP_INC(sock_net(sk), AttemptFails);
	if (err)
		WRITE_ONCE(sk->sk_err, -err);
	esp_ackq_leave(sk, true);
	esp_peer_leave(sk);
	esp_timers_stop(sk);
	esp_unhash(sk);
	esp_set_state(sk, TCP_CLOSE);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	esp->rst_linger = 0;
	esp_write_queue_purge(sk);
	if (!sock_flag(sk, SOCK_DEAD)) {
		sk->sk_state_change(sk);
		if (err)
			sk_error_report(sk);
		return;
	}
	esp_destroy(sk);
}

/**
 * esp_destroy() - release everything that a dead socket holds
 * @sk:	closed, and orphaned; its lock is held. Drops the reference that its
 *	creation gave
 */
void esp_destroy(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (esp->destroyed)
		return;
	esp->destroyed = 1;
	esp_orphan_ended(sk);
	esp_ackq_leave(sk, true);
	esp_timers_stop(sk);
	esp_unhash(sk);
	esp_unbind(sk);
	esp_dev_unlink(sk);
	esp_write_queue_purge(sk);
	esp_purge_ooo(esp);
	if (sk->sk_type != SOCK_DGRAM)	/* a datagram socket's queue may still grow */
		sk_stream_kill_queues(sk);
	sock_put(sk);
}

/* Return the state to which sending a FIN leads, or 0. */
static int fin_next_state(struct sock *sk)
{
	switch (sk->sk_state) {
	case TCP_ESTABLISHED:
		return TCP_FIN_WAIT1;
	case TCP_CLOSE_WAIT:
		return TCP_LAST_ACK;
	}
	return 0;
}

static void send_fin(struct sock *sk)
{
	int state = fin_next_state(sk);

	sock_owned_by_me(sk);
	if (!state)
		return;
	esp_set_state(sk, state);
	esp_queue_fin(sk);
	esp_push_frames(sk);
}

/**
 * esp_time_wait() - enter TIME_WAIT, because both ends have closed and acknowledged
 * @sk:	connection; its lock is held
 *
 * Late frames of the connection find the socket for net.esp.time_wait_ms. It may stay somewhat
 * longer, because no call waits for its end. The hrtimer moves to that time, so that it doesn't
 * fire earlier for a deadline that is off.
 */
void esp_time_wait(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 at = esp_now();

	if (!esp->orphan || !esp_orphan_waits_short(sk))
		at += 1000ull * READ_ONCE(esp->ns->conf.time_wait_ms);
	esp_set_state(sk, TCP_TIME_WAIT);
	esp_timer_set(esp, ESP_T_CONN, at);
	if (READ_ONCE(esp->timer_at) < at)
		esp_timer_follow(esp);
}

/**
 * esp_reset_peer() - tell the peer by RST that the connection has ended
 * @sk:	connection; its owner calls
 *
 * The RST's number is the first without an ACK. A FIN, whose ACK takes its time (rule 10), has
 * probably arrived, but may be lost. So if the FIN alone has no ACK, send one RST for each case.
 */
void esp_reset_peer(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 seq = esp->snd.una_seq;

	sock_owned_by_me(sk);
	if (esp->fin_queued && seq == esp->fin_seq && seq != esp->snd.send_next)
		esp_send_reset(sk, esp->snd.send_next);
	esp_send_reset(sk, seq);
}

/**
 * esp_reset_and_linger() - give a connection up by RST, and stay for a moment
 * @sk:	connection; its owner calls
 *
 * The socket stays to repeat the RST with the number that the peer expects.
 */
void esp_reset_and_linger(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	esp_ackq_leave(sk, false);
	esp_peer_leave(sk);
	esp_reset_peer(sk);
	esp_timers_stop(sk);
	esp_write_queue_purge(sk);
	esp->rst_linger = 1;
	WRITE_ONCE(esp->handshake_unconfirmed, 0);
	esp_time_wait(sk);
	esp_start_rrq_timer(esp);	/* for its tokens (rule 16) */
}

/**
 * esp_abort() - abort a connection that can't go on, and tell the peer
 * @sk:		connection; its owner calls
 * @err:	for the user, negative
 */
void esp_abort(struct sock *sk, int err)
{
	sock_owned_by_me(sk);
	if (sk->sk_state == TCP_SYN_SENT || sk->sk_state == TCP_TIME_WAIT) {
		esp_done(sk, err);
		return;
	}
	WRITE_ONCE(sk->sk_err, -err);
	esp_reset_and_linger(sk);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	sk->sk_state_change(sk);
	sk_error_report(sk);
}

/**
 * esp_refuse() - give up a connection that no accept() will take
 * @sk:	connection off the listener's queue; takes over the queue's reference
 */
void esp_refuse(struct sock *sk)
{
	sock_hold(sk);
	lock_sock_nested(sk, SINGLE_DEPTH_NESTING);
	sock_orphan(sk);
	if (sk->sk_state == TCP_CLOSE)
		esp_destroy(sk);
	else
		esp_reset_and_linger(sk);
	if (!esp_sk(sk)->destroyed) {
		esp_orphan(sk);
		esp_start_orphan_timer(sk);
	}
	release_sock(sk);
	sock_put(sk);
}

static void close_listener(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	esp_unhash(sk);
	esp_set_state(sk, TCP_CLOSE);
	while (!list_empty(&esp->acceptq)) {
		struct esp_opt *child = list_first_entry(&esp->acceptq,
							 struct esp_opt, acceptq);

		list_del_init(&child->acceptq);
		sk_acceptq_removed(sk);
		esp_refuse(&child->sk);
	}
}

int esp_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	int err = 0;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	how++;
	lock_sock(sk);
	switch (sk->sk_state) {
	case TCP_CLOSE:
		err = -ENOTCONN;
		break;
	case TCP_SYN_SENT:
		esp_done(sk, 0);
		esp_connect_failed(sk);
		sock->state = SS_UNCONNECTED;
		break;
	case TCP_LISTEN:
		if (!(how & RCV_SHUTDOWN))
			break;
		/* accept() ends with EINVAL, as TCP's */
		close_listener(sk);
		sk->sk_state_change(sk);
		break;
	default:
		WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | how);
		if (how & SEND_SHUTDOWN)
			send_fin(sk);
		sk->sk_state_change(sk);
	}
	release_sock(sk);
	return err;
}

static bool close_sends_reset(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (sk->sk_state == TCP_CLOSE || sk->sk_state == TCP_TIME_WAIT)
		return false;
	return esp->rcv_bytes || esp->grant.ooo_pkts || esp->part ||
	       (sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime);
}

static bool fin_unacked(struct sock *sk)
{
	return sk->sk_state == TCP_FIN_WAIT1 || sk->sk_state == TCP_CLOSING ||
	       sk->sk_state == TCP_LAST_ACK;
}

static void close_wait(struct sock *sk, long timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	sock_owned_by_me(sk);
	add_wait_queue(sk_sleep(sk), &wait);
	while (fin_unacked(sk) && timeo && !signal_pending(current)) {
		release_sock(sk);
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
		lock_sock(sk);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
}

static void esp_close(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	bool reset;

	lock_sock(sk);
	reset = close_sends_reset(sk);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	__skb_queue_purge(&sk->sk_receive_queue);
	WRITE_ONCE(esp->rcv_bytes, 0);

	switch (sk->sk_state) {
	case TCP_LISTEN:
		close_listener(sk);
		break;
	case TCP_SYN_SENT:
		esp_done(sk, 0);
		break;
	case TCP_CLOSE:
	case TCP_TIME_WAIT:
		break;
	default:
		if (reset) {
			esp_reset_and_linger(sk);
			break;
		}
		send_fin(sk);
		if (sock_flag(sk, SOCK_LINGER) &&
		    !(current->flags & PF_EXITING))
			close_wait(sk, sk->sk_lingertime);
	}

	sock_hold(sk);
	sock_orphan(sk);
	release_sock(sk);

	/* the backlog is empty; from here the holder of the spinlock decides */
	local_bh_disable();
	bh_lock_sock(sk);
	if (sk->sk_state == TCP_CLOSE && !esp->rst_linger) {
		esp_destroy(sk);
	} else {
		if (sk->sk_state != TCP_TIME_WAIT && esp_orphan_refused(sk)) {
			ESP_INC(sock_net(sk), AbortOnMemory);
			esp_reset_and_linger(sk);
		}
		esp_orphan(sk);
		esp_start_orphan_timer(sk);
	}
	bh_unlock_sock(sk);
	local_bh_enable();
	sock_put(sk);
}

int esp_release(struct socket *sock)
{
	struct sock *sk = sock->sk;

	if (!sk)
		return 0;
	sock->sk = NULL;
	esp_close(sk);
	return 0;
}

/*
 * End a connection by RST. The spinlock excludes the end of esp_close(), which doesn't
 * check for an owner. Returns 0; ENOENT: the connection has ended already. The socket's
 * owner calls.
 */
static int kill_connection(struct sock *sk, int err)
{
	int ret = 0;

	sock_owned_by_me(sk);
	local_bh_disable();
	bh_lock_sock(sk);
	if (sk->sk_state == TCP_CLOSE)
		ret = -ENOENT;
	else if (sk->sk_state == TCP_TIME_WAIT)
		esp_done(sk, 0);
	else
		esp_abort(sk, -err);
	bh_unlock_sock(sk);
	local_bh_enable();
	return ret;
}

/**
 * esp_kill() - end a listener, or a connection by RST, at once (SOCK_DESTROY)
 * @sk:		socket; the caller has a reference
 * @err:	for the user
 *
 * Return: 0; ENOENT: the connection has ended already
 */
int esp_kill(struct sock *sk, int err)
{
	int ret = 0;

	lock_sock(sk);
	if (sk->sk_state == TCP_LISTEN) {
		WRITE_ONCE(sk->sk_err, err);
		close_listener(sk);
		sk->sk_state_change(sk);
		sk_error_report(sk);
	} else {
		ret = kill_connection(sk, err);
	}
	release_sock(sk);
	return ret;
}

/**
 * esp_end_orphans() - end all connections at the module's exit
 *
 * They have no users. A peer that may wait for this end gets an RST.
 */
void esp_end_orphans(void)
{
	unsigned int bucket = 0;
	struct sock *sk;

	while ((sk = esp_next_conn(&bucket))) {
		lock_sock(sk);
		if (sk->sk_state != TCP_TIME_WAIT && sk->sk_state != TCP_CLOSE)
			esp_reset_peer(sk);
		if (sk->sk_state != TCP_CLOSE)
			esp_done(sk, 0);
		release_sock(sk);
		sock_put(sk);
	}
	esp_wait_orphans();
}
