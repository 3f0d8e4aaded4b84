// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the receive queue to user-space (the seed's last station of the data
 * flow).
 *
 * SOCK_SEQPACKET: one call returns bytes of one record, with MSG_EOR where it
 * ends. The call discards bytes that don't fit into the user's buffer (MSG_TRUNC).
 * A record larger than the receive buffer comes in pieces without MSG_EOR.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/wait_bit.h>
#include <net/busy_poll.h>
#include "esp.h"
#include "grant.h"
#include "memory.h"
#include "recvmsg.h"

#define ESP_COPY_LEAST	4096		/* bytes that are worth an unlocked copy */
#define ESP_COPY_MOST	(256 * 1024)	/* copied before their senders get more grants */
#define ESP_IDLE_READS	4		/* reads after a sleep in which the reader helps */

/* Is the end of the stream reached: will no more data arrive? */
static bool recv_at_end(struct sock *sk)
{
	/* pairs with esp_set_state() */
	int state = smp_load_acquire(&sk->sk_state);

	return (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) ||
	       state == TCP_CLOSE;
}

/* For esp_readable(): need a reader not wait, although its target is not reached? */
bool esp_readable_part(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (sk->sk_type == SOCK_SEQPACKET && READ_ONCE(esp->rcv_records))
		return true;
	return recv_at_end(sk) || READ_ONCE(esp->grant.rcv_mem_pressure);
}

/**
 * esp_set_rcvlowat() - set SO_RCVLOWAT
 * @sk:		socket; its owner calls, or a BPF program while the socket is being made
 * @val:	bytes
 *
 * Wakes the readers if the queued bytes reach the new mark.
 *
 * Return: 0
 */
int esp_set_rcvlowat(struct sock *sk, int val)
{
	if (sk->sk_state != TCP_CLOSE)
		sock_owned_by_me(sk);
	WRITE_ONCE(sk->sk_rcvlowat, val ? val : 1);
	if (esp_readable(sk, sk->sk_rcvlowat))
		sk->sk_data_ready(sk);
	return 0;
}

/* Copy @n bytes of a packet, from @off on, to the user; return 0 or an error. */
int esp_copy_packet(struct sk_buff *skb, int off, struct msghdr *msg, int n)
{
	int done;

	if (off + n > skb_headlen(skb))
		return skb_copy_datagram_msg(skb, off, msg, n);
	done = copy_to_iter(skb->data + off, n, &msg->msg_iter);
	if (done == n)
		return 0;
	iov_iter_revert(&msg->msg_iter, done);
	return -EFAULT;
}

/*
 * Drop a reference. Newer kernels let the CPU that allocated the packet free it, as they
 * do for TCP: its pages return to the pool of the next allocations, without a global lock.
 */
static void recv_free_skb(struct sk_buff *skb)
{
	if (!skb_is_nonlinear(skb) || skb_shared(skb)) {	/* recvq_detach() shares it */
		consume_skb(skb);
		return;
	}
	local_bh_disable();
	napi_consume_skb(skb, 1);
	local_bh_enable();
}

/* Take @n bytes off the packet at the head; return true if no byte is left in it. */
static bool recvq_take(struct sock *sk, struct sk_buff *skb, u32 n)
{
	struct esp_rx_cb *cb = ESP_RX(skb);
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	cb->f.read += n;
	WRITE_ONCE(esp->rcv_bytes, esp->rcv_bytes - n);
	if (cb->f.read < cb->f.len)
		return false;
	if (cb->f.flags & ESP_EOR)
		WRITE_ONCE(esp->rcv_records, esp->rcv_records - 1);
	__skb_unlink(skb, &sk->sk_receive_queue);
	recv_free_skb(skb);
	return true;
}

/* Discard the rest of a record that didn't fit into the reader's buffer. */
static void recvq_discard(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb;

	sock_owned_by_me(sk);
	if (!esp->rcv_discard)
		return;
	while (esp->rcv_discard && (skb = skb_peek(&sk->sk_receive_queue))) {
		if (ESP_RX(skb)->f.flags & ESP_EOR)
			WRITE_ONCE(esp->rcv_discard, 0);
		recvq_take(sk, skb, ESP_RX(skb)->f.len - ESP_RX(skb)->f.read);
	}
	esp_pressure_lifted(sk);
}

/* Return the length of the record at the head, or of that part of it which is here. */
static int recvq_record_len(struct sock *sk)
{
	struct sk_buff *skb;
	int len = 0;

	sock_owned_by_me(sk);
	skb_queue_walk(&sk->sk_receive_queue, skb) {
		len += ESP_RX(skb)->f.len - ESP_RX(skb)->f.read;
		if (ESP_RX(skb)->f.flags & ESP_EOR)
			break;
	}
	return len;
}

/*
 * Move whole packets from the head of the queue to @list: at most @len bytes, no packet
 * after the first @most bytes, and no packet after the end of a record.
 */
static void recvq_detach(struct sock *sk, struct sk_buff_head *list, size_t len, u32 most)
{
	u32 left, n = 0;
	bool end = false;
	struct sk_buff *skb;

	sock_owned_by_me(sk);
	while (!end && n < most && (skb = skb_peek(&sk->sk_receive_queue))) {
		struct esp_frame *f = &ESP_RX(skb)->f;

		left = f->len - f->read;
		if (left > len - n)
			break;
		n += left;
		end = sk->sk_type == SOCK_SEQPACKET && (f->flags & ESP_EOR);
		skb_get(skb);
		recvq_take(sk, skb, left);
		skb_orphan(skb);
		f->read -= left;
		__skb_queue_tail(list, skb);
	}
}

/* Put detached packets back: the user's memory can't be written. */
static void recvq_put_back(struct sock *sk, struct sk_buff_head *list)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb;

	sock_owned_by_me(sk);
	while ((skb = __skb_dequeue_tail(list))) {
		struct esp_frame *f = &ESP_RX(skb)->f;

		esp_set_owner_r(skb, sk);
		if (f->flags & ESP_EOR)
			WRITE_ONCE(esp->rcv_records, esp->rcv_records + 1);
		WRITE_ONCE(esp->rcv_bytes, esp->rcv_bytes + f->len - f->read);
		__skb_queue_head(&sk->sk_receive_queue, skb);
	}
}

/*
 * Copy many bytes without the lock, so that arriving frames, and grants for the
 * sender, need not wait for it. But then the CPU that receives these frames has to
 * handle them, and on the same host that is the sender's CPU. So with @help, when the
 * reader has time, it keeps the lock while it copies a packet, and handles the frames of
 * the backlog afterwards. No other call reads until the copy ends: recv_wait_turn().
 * Returns bytes, 0 if there is no whole packet, or an error.
 */
static noinline_for_stack int recv_copy_much(struct sock *sk, struct msghdr *msg,
					     size_t len, bool *eor, bool help)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff_head list;
	int copied = 0, err = 0;
	u32 cookie = esp->cookie;
	struct sk_buff *skb;

	sock_owned_by_me(sk);
	__skb_queue_head_init(&list);
	recvq_detach(sk, &list, len, help ? 1 : ESP_COPY_MOST);
	if (skb_queue_empty(&list))
		return 0;
	WRITE_ONCE(esp->reading, 1);
	esp_pressure_lifted(sk);
	if (!help)
		release_sock(sk);
	while (!err && (skb = skb_peek(&list))) {
		struct esp_frame *f = &ESP_RX(skb)->f;

		err = esp_copy_packet(skb, f->hlen + f->read, msg, f->len - f->read);
		if (err)
			break;
		copied += f->len - f->read;
		*eor = sk->sk_type == SOCK_SEQPACKET && (f->flags & ESP_EOR);
		__skb_unlink(skb, &list);
		recv_free_skb(skb);
	}
	if (help)
		release_sock(sk);
	lock_sock(sk);
	if (esp->cookie != cookie)	/* the socket was reset, and connected anew */
		__skb_queue_purge(&list);
	if (!skb_queue_empty(&list)) {
		recvq_put_back(sk, &list);
		sk->sk_data_ready(sk);
	}
	WRITE_ONCE(esp->reading, 0);
	smp_mb();	/* the flag before the test for waiters: recv_wait_turn() */
	wake_up_var(&esp->reading);
	return copied ? copied : err;
}

/* Wait while another call copies from the head of the queue. */
static void recv_wait_turn(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	while (esp->reading) {
		release_sock(sk);
		wait_var_event(&esp->reading, !READ_ONCE(esp->reading));
		lock_sock(sk);
	}
}

/*
 * Is the reader faster than its sender? It is if it slept in this call, or in one of the
 * last ESP_IDLE_READS calls that found more than recv_small() takes.
 */
static bool reader_has_time(struct esp_opt *esp, bool slept)
{
	if (slept)
		esp->idle_reads = ESP_IDLE_READS;
	else if (esp->idle_reads)
		esp->idle_reads--;
	return esp->idle_reads;
}

/*
 * The user's memory can't be written, after @copied bytes: return the result of the read. A
 * record is lost then, as it is with AF_UNIX. @cookie: the connection that the bytes are of.
 */
static int recv_fault(struct sock *sk, u32 cookie, int copied, int err, int flags)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (sk->sk_type != SOCK_SEQPACKET)
		return copied ? copied : err;
	if (!(flags & MSG_PEEK) && esp->cookie == cookie) {
		WRITE_ONCE(esp->rcv_discard, 1);
		recvq_discard(sk);
	}
	return err;
}

/*
 * Copy queued data, up to @len bytes, and at most to the end of a record.
 * Returns bytes or an error; sets *@eor at the record's end.
 */
static int recv_copy_out(struct sock *sk, struct msghdr *msg, size_t len, int flags,
			 bool *eor, bool slept)
{
	bool record = sk->sk_type == SOCK_SEQPACKET;
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb, *next;
	bool much = len >= ESP_COPY_LEAST && !(flags & (MSG_PEEK | MSG_TRUNC));
	bool help = much && reader_has_time(esp, slept);
	u32 cookie = esp->cookie;
	int copied = 0, n;

	sock_owned_by_me(sk);
	while (much && len - copied >= ESP_COPY_LEAST &&
	       esp->rcv_bytes >= ESP_COPY_LEAST && !*eor) {
		if (esp->cookie != cookie)	/* the socket was connected anew */
			return copied;
		if (copied && (record ? fatal_signal_pending(current) :
					signal_pending(current))) {
			/* only a fatal signal cuts a record: no reader gets its rest */
			if (record)
				WRITE_ONCE(esp->rcv_discard, 1);
			return copied;
		}
		n = recv_copy_much(sk, msg, len - copied, eor,
				   help && esp->rcv_bytes < ESP_COPY_MOST);
		if (n < 0)
			return recv_fault(sk, cookie, copied, n, flags);
		if (!n)
			break;
		copied += n;
	}
	if (*eor || esp->cookie != cookie)
		return copied;
	for (skb = skb_peek(&sk->sk_receive_queue); skb && copied < len;
	     skb = next) {
		struct esp_rx_cb *cb = ESP_RX(skb);
		bool end;
		int err = 0;

		n = min_t(size_t, cb->f.len - cb->f.read, len - copied);
		end = record && (cb->f.flags & ESP_EOR) &&
		      cb->f.read + n == cb->f.len;
		if (!(flags & MSG_TRUNC) || record)
			err = esp_copy_packet(skb, cb->f.hlen + cb->f.read, msg, n);
		if (err)
			return recv_fault(sk, cookie, copied, err, flags);
		copied += n;
		next = skb_queue_is_last(&sk->sk_receive_queue, skb) ? NULL :
		       skb_queue_next(&sk->sk_receive_queue, skb);
		if (!(flags & MSG_PEEK))
			recvq_take(sk, skb, n);
		if (end) {
			*eor = true;
			break;
		}
	}
	return copied;
}

/*
 * Copy a single small packet that fits under the spinlock, because lock_sock() and
 * release_sock() would take it twice. The copy must not sleep there. If the user's memory
 * isn't present, and in all other cases, recv_locked() reads. Returns bytes, or 0.
 */
static int recv_small(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	struct esp_opt *esp = esp_sk(sk);
	bool slow, done = false, lifted = false;
	u32 n = READ_ONCE(esp->rcv_bytes);
	struct sk_buff *skb;

	if (!n || n > ESP_SMALL || n > len || sk->sk_type != SOCK_STREAM ||
	    (flags & (MSG_PEEK | MSG_TRUNC)) ||
	    n < sock_rcvlowat(sk, flags & MSG_WAITALL, len))
		return 0;
	slow = lock_sock_fast(sk);
	skb = skb_peek(&sk->sk_receive_queue);
	/* copies from fragments may sleep in older kernels */
	if (skb && !skb_is_nonlinear(skb) && !esp->reading &&
	    ESP_RX(skb)->f.len - ESP_RX(skb)->f.read == n) {
		struct esp_frame *f = &ESP_RX(skb)->f;

		pagefault_disable();
		done = !esp_copy_packet(skb, f->hlen + f->read, msg, n);
		pagefault_enable();
		if (done) {
			recvq_take(sk, skb, n);
			smp_mb();	/* free before the flag is read: esp_pressure_lifted() */
			lifted = READ_ONCE(esp->grant.rcv_mem_pressure);
		}
	}
	unlock_sock_fast(sk, slow);
	if (lifted) {	/* sends frames: not under the spinlock */
		lock_sock(sk);
		esp_pressure_lifted(sk);
		release_sock(sk);
	}
	return done ? n : 0;
}

/* Return the result of a read that finds no data: an error, 0: end of stream, 1: wait. */
static int recv_ending(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (esp->fin_rcvd)	/* the end of the data comes before any error, as with TCP */
		return 0;
	if (sk->sk_err)
		return sock_error(sk);
	if (sk->sk_shutdown & RCV_SHUTDOWN)
		return 0;
	if (sk->sk_state == TCP_CLOSE || sk->sk_state == TCP_LISTEN)
		return esp->peer ? 0 : -ENOTCONN;
	return 1;
}

static int recv_wait_data(struct sock *sk, long *timeo)
{
	int n;

	sock_owned_by_me(sk);
	if (!*timeo)
		return -EAGAIN;
	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	if (esp_sk(sk)->rcv_bytes)
		esp_any_room(sk);
	esp_sk(sk)->readers++;
	n = sk_wait_data(sk, timeo, skb_peek_tail(&sk->sk_receive_queue));
	esp_sk(sk)->readers--;
	return min(n, 0);	/* EPIPE: later data is another connection's */
}

/* Is there neither data nor a reason to end the read? */
static bool recv_silent(struct sock *sk)
{
	return !esp_readable(sk, 1) && !READ_ONCE(sk->sk_err) && !recv_at_end(sk) &&
	       READ_ONCE(sk->sk_state) != TCP_LISTEN;
}

/*
 * Wait for the first byte before the socket is locked: otherwise the reader has to
 * lock it twice. The caller finds out under the lock why the wait has ended. Don't wait
 * here if data_wake_reader() must know of the reader, or if the data that comes may be
 * another connection's. Returns true if the reader slept.
 */
static bool recv_wait_unlocked(struct sock *sk, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	bool slept = false;

	if (READ_ONCE(esp_sk(sk)->rcv_bytes) || !*timeo ||
	    READ_ONCE(sk->sk_state) == TCP_SYN_SENT ||
	    READ_ONCE(sk->sk_rcvlowat) > 1 ||
	    READ_ONCE(esp_sk(sk)->rcv_discard))
		return false;
	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	smp_mb();	/* enter the queue before recv_silent(); pairs with wq_has_sleeper() */
	while (*timeo && recv_silent(sk) && !signal_pending(current)) {
		*timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, *timeo);
		slept = true;
	}
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	return slept;
}

static int recv_locked(struct sock *sk, struct msghdr *msg, size_t len,
		       int flags, long timeo, bool slept)
{
	int target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);
	bool record = sk->sk_type == SOCK_SEQPACKET, eor = false;
	struct esp_opt *esp = esp_sk(sk);
	size_t room = msg_data_left(msg);
	int copied = 0, whole = 0, err;

	sock_owned_by_me(sk);
	for (;;) {
		recv_wait_turn(sk);
		recvq_discard(sk);
		if (flags & MSG_PEEK) {	/* peek from the start again */
			iov_iter_revert(&msg->msg_iter,
					room - msg_data_left(msg));
			copied = 0;
		}
		if (esp_readable(sk, 1)) {
			if (record && (flags & MSG_TRUNC))
				whole = recvq_record_len(sk);
			err = recv_copy_out(sk, msg, len - copied, flags, &eor, slept);
			if (err < 0)
				return copied ? copied : err;
			copied += err;
			if (!(flags & MSG_PEEK))
				esp_pressure_lifted(sk);
			if (record)
				break;
		}
		if (copied && (copied >= target || copied == len))
			break;
		if (!len && !record && esp->rcv_bytes)
			break;
		if (copied && sk->sk_err)
			break;		/* the next call returns it */
		err = recv_ending(sk);
		if (err <= 0) {
			if (!copied)
				return err;
			break;
		}
		err = recv_wait_data(sk, &timeo);
		if (err) {
			if (!copied)
				return err;
			break;
		}
		slept = true;
	}
	if (!record)
		return copied;
	if (eor) {
		msg->msg_flags |= MSG_EOR;
	} else if (copied == len && esp->rcv_bytes) {
		msg->msg_flags |= MSG_TRUNC;
		if (!(flags & MSG_PEEK)) {
			WRITE_ONCE(esp->rcv_discard, 1);
			recvq_discard(sk);
		}
	}
	return max(copied, whole);
}

static ssize_t splice_locked(struct sock *sk, struct pipe_inode_info *pipe,
			     size_t len, unsigned int flags, long timeo)
{
	ssize_t spliced = 0;
	int n;

	sock_owned_by_me(sk);
	while (len) {
		struct sk_buff *skb;
		struct esp_frame *f;
		bool end;

		recv_wait_turn(sk);
		recvq_discard(sk);
		if (!esp_readable(sk, 1)) {
			n = spliced ? 0 : recv_ending(sk);
			if (n > 0)
				n = recv_wait_data(sk, &timeo);
			else
				break;
			if (n)
				break;
			continue;
		}
		skb = skb_peek(&sk->sk_receive_queue);
		f = &ESP_RX(skb)->f;
		n = skb_splice_bits(skb, sk, f->hlen + f->read, pipe,
				    min_t(size_t, len, f->len - f->read), flags);
		if (!n)		/* 0 would mean the end of the stream */
			n = -ENOMEM;
		if (n < 0)
			break;
		end = sk->sk_type == SOCK_SEQPACKET && (f->flags & ESP_EOR) &&
		      f->read + n == f->len;
		recvq_take(sk, skb, n);
		esp_pressure_lifted(sk);
		spliced += n;
		len -= n;
		if (end)
			break;
	}
	return spliced ? spliced : n;
}

/**
 * esp_splice_read() - splice from a stream or seqpacket socket into a pipe
 * @sock:	socket
 * @ppos:	must be 0
 * @pipe:	pipe, which gets the received pages themselves
 * @len:	bytes, not 0
 * @flags:	SPLICE_F_*
 *
 * Return: bytes, of one record at most; ENOMEM; otherwise as from esp_recvmsg()
 */
ssize_t esp_splice_read(struct socket *sock, loff_t *ppos,
			struct pipe_inode_info *pipe, size_t len,
			unsigned int flags)
{
	struct sock *sk = sock->sk;
	ssize_t res;

	if (*ppos)
		return -ESPIPE;
	if (!len)
		return 0;
	lock_sock(sk);
	res = splice_locked(sk, pipe, len, flags,
			    sock_rcvtimeo(sk, sock->file->f_flags & O_NONBLOCK));
	release_sock(sk);
	return res;
}

/**
 * esp_recvmsg() - receive from a stream or seqpacket socket
 * @sock:	socket
 * @msg:	buffers
 * @len:	their size
 * @flags:	MSG_PEEK, MSG_DONTWAIT, MSG_WAITALL, MSG_TRUNC (stream: discard
 *		the bytes; seqpacket: return the whole length), MSG_ERRQUEUE
 *		(notices of MSG_ZEROCOPY)
 *
 * Return: bytes; 0 at the end of the stream; ENOTCONN, ECONNRESET, ETIMEDOUT,
 * ENETDOWN, EAGAIN, EINTR, EFAULT, EOPNOTSUPP
 */
int esp_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	bool slept;
	int err;

	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (flags & MSG_ERRQUEUE)
		return sock_recv_errqueue(sk, msg, len, SOL_ESP, ESP_RECVERR);
	if (sk_can_busy_loop(sk) && READ_ONCE(sk->sk_state) == TCP_ESTABLISHED &&
	    skb_queue_empty_lockless(&sk->sk_receive_queue))
		sk_busy_loop(sk, flags & MSG_DONTWAIT);
	slept = recv_wait_unlocked(sk, &timeo);
	err = recv_small(sk, msg, len, flags);
	if (err)
		return err;
	lock_sock(sk);
	err = recv_locked(sk, msg, len, flags, timeo, slept);
	release_sock(sk);
	return err;
}
