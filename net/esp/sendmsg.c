// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving data from user-space (the seed's section of this name; rules 1,
 * 2, 4): slice it into packets on the write queue, push while copying.
 *
 *   sk_write_queue:   oldest (una_seq) ... sent | sk_send_head ... newest
 *                     <---- unacknowledged ---->|<----- notsent ------>
 */
#include "esp.h"

/* Packets that leave together while a message is copied. */
#define ESP_PUSH	8

static bool may_send(struct sock *sk)
{
	return (1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT);
}

/* An empty packet buffer for the write queue, charged to the socket. */
static struct sk_buff *esp_stream_alloc_skb(struct sock *sk, u32 linear)
{
	struct esp_opt *esp = esp_sk(sk);
	unsigned int room = esp_dev_headroom(esp->dev) + ESP_HLEN_MAX;
	struct sk_buff *skb;

	skb = alloc_skb_fclone(room + linear, sk->sk_allocation);
	if (!skb)
		return NULL;
	if (!sk_wmem_schedule(sk, skb->truesize)) {
		kfree_skb(skb);
		return NULL;
	}
	skb_reserve(skb, room);
	memset(skb->cb, 0, sizeof(struct esp_tx_cb));
	if (esp_dev_checksums(esp->dev))
		skb->ip_summed = CHECKSUM_PARTIAL;	/* copy, don't sum */
	return skb;
}

/* Give a packet its number and its place. */
static void enqueue(struct sock *sk, struct sk_buff *skb, u8 flags)
{
	struct esp_opt *esp = esp_sk(sk);

	ESP_TX(skb)->seq = esp->snd.send_seq++;
	ESP_TX(skb)->flags = flags;
	__skb_header_release(skb);	/* clones may write their own header */
	__skb_queue_tail(&sk->sk_write_queue, skb);
	sk_wmem_queued_add(sk, skb->truesize);
	sk_mem_charge(sk, skb->truesize);
	if (!sk->sk_send_head)
		sk->sk_send_head = skb;
}

static void unlink_and_free(struct sock *sk, struct sk_buff *skb)
{
	__skb_unlink(skb, &sk->sk_write_queue);
	sk_wmem_queued_add(sk, -skb->truesize);
	esp_mem_uncharge(sk, skb->truesize);
	__kfree_skb(skb);
}

void esp_write_queue_purge(struct sock *sk)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&sk->sk_write_queue)))
		unlink_and_free(sk, skb);
	sk->sk_send_head = NULL;
	esp_sk(sk)->notsent = 0;
	esp_sk(sk)->unacked = 0;
}

/**
 * esp_clean_write_queue() - forget what has been acknowledged
 * @sk:	socket; its owner calls
 */
void esp_clean_write_queue(struct sock *sk)
{
	u32 una = esp_sk(sk)->snd.una_seq;
	struct sk_buff *skb;

	while ((skb = skb_peek(&sk->sk_write_queue)) &&
	       esp_before(ESP_TX(skb)->seq, una)) {
		esp_sk(sk)->unacked -= skb->len;
		unlink_and_free(sk, skb);
	}
}

/*
 * Begin or go on with a transmission: the flags for the next new packet.
 * Where unsent data waits, clearing TXF on the last packet merges this write
 * into that transmission.
 */
static u8 announce(struct sock *sk)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_write_queue);
	struct esp_opt *esp = esp_sk(sk);

	if (esp->snd.trans_announced)
		return 0;
	esp->snd.trans_announced = 1;
	if (sk->sk_send_head) {
		ESP_TX(tail)->flags &= ~ESP_TXF;
		return 0;
	}
	return ESP_TXS;
}

/* The unsent packet at the tail that takes more bytes, or NULL. */
static struct sk_buff *open_tail(struct sock *sk)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_write_queue);
	struct esp_opt *esp = esp_sk(sk);

	if (!sk->sk_send_head || tail->len >= esp->mss || ESP_TX(tail)->full ||
	    (ESP_TX(tail)->flags & (ESP_EOR | ESP_FIN)))
		return NULL;
	return tail;
}

/* Copy up to @n bytes into page fragments; returns bytes or an error. */
static int copy_to_frags(struct sock *sk, struct sk_buff *skb,
			 struct msghdr *msg, int n)
{
	struct page_frag *pfrag = sk_page_frag(sk);
	int i = skb_shinfo(skb)->nr_frags;
	bool merge;
	int err;

	if (!sk_page_frag_refill(sk, pfrag))
		return -ENOMEM;
	merge = skb_can_coalesce(skb, i, pfrag->page, pfrag->offset);
	if (!merge && i >= MAX_SKB_FRAGS)
		return -ENOSPC;
	n = min_t(int, n, pfrag->size - pfrag->offset);
	if (!sk_wmem_schedule(sk, n))
		return -ENOMEM;
	err = skb_copy_to_page_nocache(sk, &msg->msg_iter, skb, pfrag->page,
				       pfrag->offset, n);
	if (err)
		return err;
	if (merge) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[i - 1], n);
	} else {
		skb_fill_page_desc(skb, i, pfrag->page, pfrag->offset, n);
		page_ref_inc(pfrag->page);
	}
	pfrag->offset += n;
	return n;
}

/* Copy @n bytes into the packet itself; sum them, if the device doesn't. */
static int copy_linear(struct sock *sk, struct sk_buff *skb,
		       struct msghdr *msg, int n)
{
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return skb_add_data_nocache(sk, skb, &msg->msg_iter, n);
	if (copy_from_iter_full(skb_put(skb, n), n, &msg->msg_iter))
		return 0;
	__skb_trim(skb, skb->len - n);
	return -EFAULT;
}

/* Copy up to @n bytes behind a packet's payload; returns bytes or an error. */
static int append(struct sock *sk, struct sk_buff *skb, struct msghdr *msg,
		  int n)
{
	int tail = skb_shinfo(skb)->nr_frags ? 0 : skb_tailroom(skb);
	int err;

	/* one byte of a packet is in one place only: linear first */
	if (tail > 0 && skb->len < ESP_SMALL) {
		n = min(n, tail);
		err = copy_linear(sk, skb, msg, n);
		return err ? err : n;
	}
	return copy_to_frags(sk, skb, msg, n);
}

/* All that must be true before a byte is taken (rule 1). */
static int preconditions(struct sock *sk)
{
	if (sk->sk_err)
		return sock_error(sk);
	if ((sk->sk_shutdown & SEND_SHUTDOWN) || !may_send(sk))
		return -EPIPE;
	return esp_dev_usable(esp_sk(sk)->dev);
}

/* A packet that was begun and got no byte must not stay. */
static void drop_empty_tail(struct sock *sk)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_write_queue);
	struct esp_opt *esp = esp_sk(sk);

	if (!tail || tail->len || (ESP_TX(tail)->flags & ESP_FIN))
		return;
	if (ESP_TX(tail)->flags & ESP_TXS)
		esp->snd.trans_announced = 0;
	if (sk->sk_send_head == tail)
		sk->sk_send_head = NULL;
	esp->snd.send_seq--;
	unlink_and_free(sk, tail);
}

/* Wait for room on the write queue; what is there may go meanwhile. */
static int wait_memory(struct sock *sk, long *timeo)
{
	struct esp_opt *esp = esp_sk(sk);
	int err;

	drop_empty_tail(sk);
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	esp->waiting++;
	esp_push_frames(sk);
	err = sk_stream_wait_memory(sk, timeo);
	esp->waiting--;
	return err ? err : preconditions(sk);
}

/* A packet to write into: the open one at the tail, or a new one. */
static struct sk_buff *packet_for(struct sock *sk, size_t left)
{
	struct sk_buff *skb = open_tail(sk);
	u8 flags;

	if (skb) {
		announce(sk);
		return skb;
	}
	if (!sk_stream_memory_free(sk))
		return NULL;
	skb = esp_stream_alloc_skb(sk, left <= ESP_SMALL ? ESP_SMALL : 0);
	if (!skb)
		return NULL;
	flags = announce(sk);
	enqueue(sk, skb, flags);
	return skb;
}

static int copy_message(struct sock *sk, struct msghdr *msg, long timeo)
{
	struct esp_opt *esp = esp_sk(sk);
	int copied = 0, n;

	while (msg_data_left(msg)) {
		struct sk_buff *skb = packet_for(sk, msg_data_left(msg));

		if (!skb) {
			n = wait_memory(sk, &timeo);
			if (n)
				return copied ? copied : n;
			continue;
		}
		n = append(sk, skb, msg, min_t(size_t, msg_data_left(msg),
					       esp->mss - skb->len));
		if (n > 0) {
			esp->notsent += n;
			copied += n;
			/* what comes last does not leave before do_sendmsg() */
			if (msg_data_left(msg) &&
			    (esp->snd.una_seq == esp->snd.send_next ||
			     esp->snd.send_seq - esp->snd.send_next >= ESP_PUSH))
				esp_push_frames(sk);
			continue;
		}
		if (n == -ENOSPC) {	/* no more fragments fit */
			ESP_TX(skb)->full = 1;
			continue;
		}
		if (n == -ENOMEM)
			n = wait_memory(sk, &timeo);
		else
			drop_empty_tail(sk);
		if (n)
			return copied ? copied : n;
	}
	return copied;
}

/* A record is one thing: another writer's must be whole before ours begins. */
static int wait_turn(struct sock *sk, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	add_wait_queue(sk_sleep(sk), &wait);
	while (esp_sk(sk)->copying && !err) {
		if (!*timeo) {
			err = -EAGAIN;
		} else if (signal_pending(current)) {
			err = sock_intr_errno(*timeo);
		} else {
			release_sock(sk);
			*timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, *timeo);
			lock_sock(sk);
			err = preconditions(sk);
		}
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

static int do_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
{
	bool record = sk->sk_type == SOCK_SEQPACKET;
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *tail;
	int n;

	sk_clear_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	if (sk->sk_state == TCP_SYN_SENT || sk->sk_state == TCP_SYN_RECV) {
		n = sk_stream_wait_connect(sk, &timeo);
		if (n)
			return n;
	}
	n = preconditions(sk);
	if (n)
		return n;
	if (!len)	/* an empty record could not be told from the end */
		return record ? -EINVAL : 0;

	if (record) {
		n = wait_turn(sk, &timeo);
		if (n)
			return n;
	}
	esp->more = !!(msg->msg_flags & MSG_MORE);
	esp->copying++;
	n = copy_message(sk, msg, timeo);
	esp->copying--;
	if (record)
		wake_up_interruptible(sk_sleep(sk));	/* wait_turn() */

	if (!sk->sk_send_head)
		return n;
	tail = skb_peek_tail(&sk->sk_write_queue);
	if (ESP_TX(tail)->flags & ESP_FIN)
		return n;
	if (!msg_data_left(msg) &&
	    (record ? !esp->more : !!(msg->msg_flags & MSG_EOR)))
		ESP_TX(tail)->flags |= ESP_EOR;
	if (!esp->copying) {
		ESP_TX(tail)->flags |= ESP_TXF;
		esp->snd.trans_announced = 0;
	}
	esp_push_frames(sk);
	return n;
}

/**
 * sock_esp_sendmsg() - sendmsg of stream and seqpacket sockets
 * @sock:	socket
 * @msg:	any number of buffers; flags MSG_DONTWAIT, MSG_MORE, MSG_NOSIGNAL,
 *		MSG_EOR
 * @len:	bytes in them
 *
 * Return: bytes taken, or EPIPE, ECONNRESET, ETIMEDOUT, ENETDOWN, EMSGSIZE,
 * EAGAIN, EINTR, EFAULT, EOPNOTSUPP, EISCONN (an address), EINVAL (an empty
 * record)
 */
int sock_esp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;
	int err;

	if (msg->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (msg->msg_name && sk->sk_state == TCP_ESTABLISHED &&
	    msg->msg_namelen)
		return -EISCONN;
	lock_sock(sk);
	err = do_sendmsg(sk, msg, len);
	if (err < 0)
		err = sk_stream_error(sk, msg->msg_flags, err);
	release_sock(sk);
	return err;
}

/**
 * esp_splice_eof() - sendfile() has come to the end of its file
 * @sock:	socket
 *
 * The MSG_MORE of the last piece does not count.
 */
void esp_splice_eof(struct socket *sock)
{
	struct sock *sk = sock->sk;

	lock_sock(sk);
	esp_sk(sk)->more = 0;
	if (sk->sk_send_head)
		esp_push_frames(sk);
	release_sock(sk);
}

/**
 * esp_queue_fin() - no more data: the FIN follows what is on the write queue
 * @sk:	socket in a state that leads to one; its owner calls
 *
 * Without memory it is tried again later: what was sent before must not be lost
 * for it.
 */
void esp_queue_fin(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	unsigned int room = esp_dev_headroom(esp->dev) + ESP_HLEN_MAX;
	struct sk_buff *skb;

	skb = alloc_skb_fclone(room, gfp_any());
	if (!skb) {
		esp_timer_set(esp, ESP_T_CORK, esp_now() + ESP_CORK_US);
		return;
	}
	skb_reserve(skb, room);
	memset(skb->cb, 0, sizeof(struct esp_tx_cb));
	/* must be had: otherwise the socket is in debt, and pays next time */
	if (!sk_wmem_schedule(sk, skb->truesize))
		net_dbg_ratelimited("esp: a FIN beyond the limit of memory\n");
	esp->fin_seq = esp->snd.send_seq;
	esp->fin_queued = 1;
	esp->more = 0;
	esp->cork = 0;
	enqueue(sk, skb, ESP_FIN);
	esp_push_frames(sk);
}
