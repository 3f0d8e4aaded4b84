// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ends of a connection: shutdown() and close(), FIN, RST, errors, and what
 * a dead socket gives back.
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
#include "sock.h"
#include "timer.h"
#include "write_queue.h"

/* A connect() that failed leaves the socket as it was before, but for its port. */
void esp_connect_failed(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sk->sk_disconnects++;	/* connect(), send(), recv() that waited */
	WRITE_ONCE(sk->sk_shutdown, 0);
	if (esp->peer_cookie)	/* permission may still be on its way out */
		synchronize_rcu();
	esp_peer_put(sk);
	WRITE_ONCE(esp->dport, 0);
	WRITE_ONCE(esp->crc, 0);	/* it may listen next, where each caller decides */
	if (esp->dev_auto) {
		esp->dev_auto = 0;
		esp_dev_release(sk);
	}
}

void esp_purge_ooo(struct esp_opt *esp)
{
	struct rb_node *n;

	while ((n = rb_first(&esp->ooo))) {
		struct sk_buff *skb = rb_to_skb(n);

		rb_erase(n, &esp->ooo);
		__kfree_skb(skb);
	}
	esp->grant.ooo_pkts = 0;
}

/*
 * The connection is over. @err (negative, 0: orderly) goes to the user; what
 * waits is woken. The socket stays until the user closes it.
 */
void esp_done(struct sock *sk, int err)
{
	struct esp_opt *esp = esp_sk(sk);

	if (sk->sk_state == TCP_SYN_SENT || sk->sk_state == TCP_SYN_RECV)
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
 * esp_destroy() - give up everything that a dead socket holds
 * @sk:	closed, and orphaned; its lock is held. The reference that its
 *	creation gave is dropped
 */
void esp_destroy(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (esp->destroyed)
		return;
	esp->destroyed = 1;
	esp_ackq_leave(sk, true);
	esp_timers_stop(sk);
	esp_unhash(sk);
	esp_unbind(sk);
	esp_dev_unlink(sk);
	esp_write_queue_purge(sk);
	esp_purge_ooo(esp);
	if (sk->sk_type != SOCK_DGRAM)	/* whose queue may still grow */
		sk_stream_kill_queues(sk);
	sock_put(sk);
}

/* Our direction is to be closed: the state that a FIN leads to, or 0. */
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

	if (!state)
		return;
	esp_set_state(sk, state);
	esp_queue_fin(sk);
	esp_push_frames(sk);
}

/**
 * esp_time_wait() - all is said and answered
 * @sk:	connection; its lock is held
 *
 * What still comes of it is to find it, for net.esp.time_wait_ms, or somewhat longer: nobody
 * waits for the end. Nor is the hrtimer to fire before that, for a deadline that is off.
 */
void esp_time_wait(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 at = esp_now() + 1000ull * READ_ONCE(esp->ns->conf.time_wait_ms);

	esp_set_state(sk, TCP_TIME_WAIT);
	esp_timer_set(esp, ESP_T_CONN, at);
	if (READ_ONCE(esp->timer_at) < at)
		esp_timer_follow(esp);
}

/**
 * esp_reset_peer() - tell the peer by RST that this is the end
 * @sk:	connection; its owner calls
 *
 * The number is of what has no ACK yet. A FIN, whose ACK takes its time (rule 10), is likely to
 * have come, but may be lost: where it alone has no ACK there is one RST for each.
 */
void esp_reset_peer(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 seq = esp->snd.una_seq;

	if (esp->fin_queued && seq == esp->fin_seq && seq != esp->snd.send_next)
		esp_send_reset(sk, esp->snd.send_next);
	esp_send_reset(sk, seq);
}

/**
 * esp_reset_and_linger() - tell the peer, and stay for a moment
 * @sk:	connection that nobody wants any more; its owner calls
 *
 * Stays to say it again with the number that the peer expects.
 */
void esp_reset_and_linger(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

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
 * esp_abort() - the connection can't go on; the peer is told
 * @sk:		connection; its owner calls
 * @err:	for the user, negative
 */
void esp_abort(struct sock *sk, int err)
{
	if (sk->sk_state == TCP_SYN_SENT || sk->sk_state == TCP_SYN_RECV ||
	    sk->sk_state == TCP_TIME_WAIT) {
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
 * esp_refuse() - nobody accepts a connection any more
 * @sk:	connection off the listener's queue, whose reference it takes
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
	release_sock(sk);
	sock_put(sk);
}

static void close_listener(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

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
	case TCP_SYN_RECV:
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

	if (sk->sk_state == TCP_CLOSE || sk->sk_state == TCP_TIME_WAIT)
		return false;
	return esp->rcv_bytes || esp->grant.ooo_pkts ||
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
	case TCP_SYN_RECV:
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

	/* the backlog is empty; the last word has whoever holds the lock */
	local_bh_disable();
	bh_lock_sock(sk);
	if (sk->sk_state == TCP_CLOSE && !esp->rst_linger)
		esp_destroy(sk);
	else
		esp_start_orphan_timer(sk);
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
 * Not beside the end of esp_close(), which doesn't mind who owns the socket; and
 * what has ended needs no end.
 */
static int kill_connection(struct sock *sk, int err)
{
	int ret = 0;

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
 * esp_kill() - SOCK_DESTROY: end a listener, or a connection by RST, as it stands
 * @sk:		socket; the caller has a reference
 * @err:	for the user
 *
 * Return: 0; ENOENT: it has ended
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
