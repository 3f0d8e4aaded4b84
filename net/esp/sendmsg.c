// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving data from user-space (the seed's section of this name; rules 1,
 * 2, 4): slice the data into packets on the write queue, push while copying.
 *
 * The packets' order, and the time when they leave: write_queue.c.
 */
#include "esp.h"
#include "dev.h"
#include "memory.h"
#include "sendmsg.h"
#include "sock.h"
#include "write_queue.h"

/* Least number of packets that leave together while the writer still copies a message. */
#define ESP_PUSH	8

static bool send_state_allows(struct sock *sk)
{
	return (1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT);
}

/*
 * Allocate an empty buffer of packets with @size bytes of payload for the write queue, charged to
 * the socket.
 */
static struct sk_buff *esp_stream_alloc_skb(struct sock *sk, u32 linear, u32 size)
{
	struct esp_opt *esp = esp_sk(sk);
	unsigned int room = esp_dev_headroom(esp->dev) + ESP_HLEN_MAX;
	struct sk_buff *skb;

	skb = alloc_skb_fclone(room + linear, sk->sk_allocation);
	if (!skb)
		return NULL;
	if (!esp_mem_schedule(sk, NULL, skb->truesize)) {
		__kfree_skb(skb);
		return NULL;
	}
	skb_reserve(skb, room);
	memset(skb->cb, 0, sizeof(struct esp_tx_cb));
	ESP_TX(skb)->size = size;
	ESP_TX(skb)->linear = linear;
	ESP_TX(skb)->limit = linear ? size : esp_gso_limit(sk, size);
	if (!linear || esp_dev_checksums(esp->dev))
		skb->ip_summed = CHECKSUM_PARTIAL;	/* copy, don't sum */
	return skb;
}

/* Count the packets that appended bytes have added to the buffer at the tail. */
static void send_grow_tail(struct esp_opt *esp, struct sk_buff *skb)
{
	u32 segs = DIV_ROUND_UP(skb->len, ESP_TX(skb)->size);

	esp->snd.send_seq += segs - ESP_TX(skb)->segs;
	ESP_TX(skb)->segs = segs;
}

/*
 * Begin or continue a transmission; return the flags for the next new packet.
 * If unsent data is queued, clearing TXF on its last packet merges this write
 * into that transmission.
 */
static u8 send_announce(struct sock *sk)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_write_queue);
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (esp->snd.trans_announced)
		return 0;
	esp->snd.trans_announced = 1;
	if (sk->sk_send_head) {
		ESP_TX(tail)->flags &= ~ESP_TXF;
		return 0;
	}
	return ESP_TXS;
}

/*
 * Return the unsent buffer at the tail if it takes more bytes, or NULL. A buffer
 * that refers to the user's memory takes the bytes of one call only.
 */
static struct sk_buff *send_open_tail(struct sock *sk, struct ubuf_info *uarg)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_write_queue);
	struct esp_opt *esp = esp_sk(sk);

	if (!sk->sk_send_head || tail->len >= ESP_TX(tail)->limit ||
	    ESP_TX(tail)->full || ESP_TX(tail)->size > esp->mss ||
	    ESP_TX(tail)->size + ESP_LEFT_ROOM < esp->mss ||
	    skb_zcopy(tail) != uarg ||
	    (ESP_TX(tail)->flags & (ESP_EOR | ESP_FIN)))
		return NULL;
	return tail;
}

/* Copy up to @n bytes into page fragments; return bytes or an error. */
static int send_copy_to_frags(struct sock *sk, struct sk_buff *skb,
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
	if (!esp_mem_schedule(sk, NULL, n))
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

/* Copy @n bytes into the linear part; checksum them if the device doesn't. */
static int send_copy_linear(struct sock *sk, struct sk_buff *skb,
			    struct msghdr *msg, int n)
{
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return skb_add_data_nocache(sk, skb, &msg->msg_iter, n);
	if (copy_from_iter_full(skb_put(skb, n), n, &msg->msg_iter))
		return 0;
	__skb_trim(skb, skb->len - n);
	return -EFAULT;
}

/*
 * Refer to up to @n bytes in the pages that splice() or sendfile() lends. The
 * lender may change the pages later, and a checksum computed now would be wrong.
 * So the checksum is computed when the packet leaves. If the pages change even after
 * that, the packet is retransmitted. Returns bytes or an error.
 */
static int send_lend_pages(struct sock *sk, struct sk_buff *skb, struct msghdr *msg,
			   int n)
{
	if (!esp_mem_schedule(sk, NULL, n))
		return -ENOMEM;
	skb->ip_summed = CHECKSUM_PARTIAL;
	n = skb_splice_from_iter(skb, &msg->msg_iter, n);
	if (n == -EMSGSIZE)
		return -ENOSPC;
	if (n > 0) {
		skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
		sk_wmem_queued_add(sk, n);
		sk_mem_charge(sk, n);
	}
	return n;
}

/*
 * Refer to up to @n bytes of the user's memory itself (MSG_ZEROCOPY). The user gets
 * a notice when the memory is no longer in use. Returns bytes or an error.
 */
static int send_lend_user(struct sock *sk, struct sk_buff *skb, struct msghdr *msg,
			  int n, struct ubuf_info *uarg)
{
	if (!esp_mem_schedule(sk, NULL, n))
		return -ENOMEM;
	skb->ip_summed = CHECKSUM_PARTIAL;	/* the user may change it later */
	n = esp_zerocopy_iter(sk, skb, msg, n, uarg);
	return n == -EMSGSIZE || n == -EEXIST ? -ENOSPC : n;
}

/* Append up to @n bytes to a packet's payload; return bytes or an error. */
static int send_append(struct sock *sk, struct sk_buff *skb, struct msghdr *msg,
		       int n, struct ubuf_info *uarg)
{
	int room = ESP_TX(skb)->linear - (int)skb->len;
	int err;

	if (room > 0) {
		n = min(n, room);
		err = send_copy_linear(sk, skb, msg, n);
		return err ? err : n;
	}
	if (uarg)
		return send_lend_user(sk, skb, msg, n, uarg);
	if (msg->msg_flags & MSG_SPLICE_PAGES)
		return send_lend_pages(sk, skb, msg, n);
	return send_copy_to_frags(sk, skb, msg, n);
}

/* Check the conditions for taking a byte from the user (rule 1); return 0 or an error. */
static int send_preconditions(struct sock *sk)
{
	if (sk->sk_err)
		return sock_error(sk);
	if ((sk->sk_shutdown & SEND_SHUTDOWN) || !send_state_allows(sk))
		return -EPIPE;
	return esp_dev_usable(esp_sk(sk)->dev);
}

/* May the writer go on? As send_preconditions(), but an error stays for the next call. */
static bool send_may_go_on(struct sock *sk)
{
	return !sk->sk_err && !(sk->sk_shutdown & SEND_SHUTDOWN) &&
	       send_state_allows(sk) && !esp_dev_usable(esp_sk(sk)->dev);
}

/* Remove the buffer at the tail if it is new and has got no byte. */
static void send_drop_empty_tail(struct sock *sk)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_write_queue);
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (!tail || tail->len || (ESP_TX(tail)->flags & ESP_FIN))
		return;
	if (ESP_TX(tail)->flags & ESP_TXS)
		esp->snd.trans_announced = 0;
	if (sk->sk_send_head == tail)
		sk->sk_send_head = NULL;
	esp->snd.send_seq--;
	esp_write_queue_unlink(sk, tail);
}

/* Wait for room on the write queue, and push the queued packets meanwhile. */
static int send_wait_memory(struct sock *sk, long *timeo)
{
	struct esp_opt *esp = esp_sk(sk);
	bool waits = *timeo;	/* a writer that doesn't has ended (rule 4) */
	int err;

	sock_owned_by_me(sk);
	send_drop_empty_tail(sk);
	esp->waits_for_queue = waits && !sk_stream_memory_free(sk);
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	esp->writers_asleep += waits;
	esp_push_frames(sk);
	if (waits)
		esp_ask_for_ack(sk);
	err = sk_stream_wait_memory(sk, timeo);
	esp->writers_asleep -= waits;
	esp->waits_for_queue = 0;
	if (waits && sk->sk_send_head)	/* ack_writer_sends(), whatever woke the writer */
		esp_push_frames(sk);
	return err ? err : send_preconditions(sk);
}

/*
 * Grow the send buffer, and return true if that made room. A buffer that is not
 * larger than needed stays in the processor's cache, so it starts small. It grows if
 * a quarter of it, or more, is outstanding: a writer is woken when a third is free, and
 * must run before the buffer is empty.
 */
static bool send_grow_sndbuf(struct sock *sk)
{
	int most = READ_ONCE(esp_sk(sk)->ns->conf.sndbuf);

	sock_owned_by_me(sk);
	if ((sk->sk_userlocks & SOCK_SNDBUF_LOCK) || sk->sk_sndbuf >= most ||
	    esp_sk(sk)->unacked < esp_sk(sk)->notsent / 3 ||
	    atomic_long_read(&esp_memory_allocated) >= READ_ONCE(esp_mem[0]))
		return false;
	WRITE_ONCE(sk->sk_sndbuf, min(2 * sk->sk_sndbuf, most));
	return sk_stream_memory_free(sk);
}

/* Has the write queue room? A queue that is full may grow. */
static bool send_has_room(struct sock *sk)
{
	return sk_stream_memory_free(sk) || send_grow_sndbuf(sk);
}

/* Write into @skb, the buffer at the tail, or a new one if that is NULL; NULL: no memory. */
static struct sk_buff *send_use_tail(struct sock *sk, struct sk_buff *skb, size_t left)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 size = esp->mss;
	u8 flags;

	if (skb) {
		send_announce(sk);
		return skb;
	}
	/* packets that announce more than themselves need room for ESP_OPT_LEFT */
	if ((left > size || esp->more || esp->cork) && esp->peer_left &&
	    !esp->snd.trans_announced && !sk->sk_send_head &&
	    size >= ESP_MSS_MIN + ESP_LEFT_ROOM)
		size -= ESP_LEFT_ROOM;
	skb = esp_stream_alloc_skb(sk, left <= ESP_SMALL ? ESP_SMALL : 0, size);
	if (!skb)
		return NULL;
	flags = send_announce(sk);
	esp_write_queue_append(sk, skb, flags);
	return skb;
}

/* Return a buffer to write into: the one at the tail if it takes more, or a new one. */
static struct sk_buff *send_packet_for(struct sock *sk, size_t left,
				       struct ubuf_info *uarg)
{
	struct sk_buff *skb = send_open_tail(sk, uarg);

	sock_owned_by_me(sk);
	/* a new packet needs room, even one in an existing buffer */
	if ((!skb || !(skb->len % ESP_TX(skb)->size)) && !send_has_room(sk))
		return NULL;
	return send_use_tail(sk, skb, left);
}

/* Return how many bytes a buffer may take: at least the rest of its last packet. */
static u32 send_room_in(struct sock *sk, struct sk_buff *skb)
{
	struct esp_tx_cb *cb = ESP_TX(skb);
	int memory = READ_ONCE(sk->sk_sndbuf) - READ_ONCE(sk->sk_wmem_queued);
	u32 packet = cb->size - skb->len % cb->size;

	return min(cb->limit - skb->len, max_t(u32, packet, max(memory, 0)));
}

static int send_copy_message(struct sock *sk, struct msghdr *msg, long timeo,
			     struct ubuf_info *uarg)
{
	struct esp_opt *esp = esp_sk(sk);
	int copied = 0, n;

	sock_owned_by_me(sk);
	while (msg_data_left(msg)) {
		struct sk_buff *skb = send_packet_for(sk, msg_data_left(msg), uarg);

		if (!skb) {
			n = send_wait_memory(sk, &timeo);
			if (n)
				return copied ? copied : n;
			continue;
		}
		n = send_append(sk, skb, msg, min_t(size_t, msg_data_left(msg),
						    send_room_in(sk, skb)), uarg);
		if (n > 0) {
			send_grow_tail(esp, skb);
			esp->notsent += n;
			esp->to_copy -= n;
			copied += n;
			/* do_sendmsg() sends the last packets */
			if (msg_data_left(msg) && skb->len >= ESP_TX(skb)->limit &&
			    (esp->snd.una_seq == esp->snd.send_next ||
			     esp->snd.send_seq - esp->snd.send_next >= ESP_PUSH)) {
				/* a writer that doesn't wait may have to end here */
				esp->writer_has_more = timeo || sk_stream_memory_free(sk);
				esp_push_frames(sk);
				esp->writer_has_more = 0;
			}
			/* grants must not wait for the end of a long copy */
			if (sk_flush_backlog(sk) && !send_may_go_on(sk))
				return copied;
			continue;
		}
		if (n == -ENOSPC) {	/* no more fragments fit */
			ESP_TX(skb)->full = 1;
			continue;
		}
		if (n == -ENOMEM)
			n = send_wait_memory(sk, &timeo);
		else
			send_drop_empty_tail(sk);
		if (n)
			return copied ? copied : n;
	}
	return copied;
}

/* Call send_copy_message(), while esp_opt.to_copy has what is left to be copied. */
static int send_message(struct sock *sk, struct msghdr *msg, long timeo, struct ubuf_info *uarg)
{
	struct esp_opt *esp = esp_sk(sk);
	size_t len = msg_data_left(msg);
	int n;

	sock_owned_by_me(sk);
	esp->to_copy += len;
	n = send_copy_message(sk, msg, timeo, uarg);
	esp->to_copy -= len - max(n, 0);
	return n;
}

/* The end of the write queue before a record, to which a call that fails returns. */
struct send_mark {
	struct sk_buff		*tail;		/* last buffer, NULL: none */
	struct esp_tx_cb	cb;		/* what @tail holds */
	unsigned int		truesize, len, data_len;
	unsigned int		frags, last;	/* fragments, bytes of the last one */
	u32			send_seq, notsent;
	bool			all_sent;
	u8			announced;
};

static void send_mark(struct sock *sk, struct send_mark *m)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *tail = skb_peek_tail(&sk->sk_write_queue);

	m->all_sent = !sk->sk_send_head;
	m->send_seq = esp->snd.send_seq;
	m->notsent = esp->notsent;
	m->announced = esp->snd.trans_announced;
	m->tail = tail;
	if (m->all_sent)	/* the record begins with a new buffer */
		return;
	m->cb = *ESP_TX(tail);
	m->truesize = tail->truesize;
	m->len = tail->len;
	m->data_len = tail->data_len;
	m->frags = skb_shinfo(tail)->nr_frags;
	m->last = m->frags ? skb_frag_size(&skb_shinfo(tail)->frags[m->frags - 1]) : 0;
}

/* Take back what was written since send_mark(). The owner has not released the socket. */
static void send_roll_back(struct sock *sk, const struct send_mark *m)
{
	struct esp_opt *esp = esp_sk(sk);
	struct skb_shared_info *info;
	struct sk_buff *skb;

	sock_owned_by_me(sk);
	while ((skb = skb_peek_tail(&sk->sk_write_queue)) != m->tail)
		esp_write_queue_unlink(sk, skb);
	esp->snd.send_seq = m->send_seq;
	esp->snd.trans_announced = m->announced;
	esp->notsent = m->notsent;
	if (m->all_sent) {
		sk->sk_send_head = NULL;
		return;
	}
	*ESP_TX(skb) = m->cb;
	info = skb_shinfo(skb);
	while (info->nr_frags > m->frags)
		put_page(skb_frag_page(&info->frags[--info->nr_frags]));
	if (m->frags)
		skb_frag_size_set(&info->frags[m->frags - 1], m->last);
	skb_set_tail_pointer(skb, m->len - m->data_len);
	skb->len = m->len;
	skb->data_len = m->data_len;
	skb->ip_summed = CHECKSUM_PARTIAL;	/* the sum of what was taken back is in skb->csum */
	sk_wmem_queued_add(sk, (int)m->truesize - (int)skb->truesize);
	esp_mem_uncharge(sk, skb->truesize - m->truesize);
	skb->truesize = m->truesize;
}

/* Return the size of the longest record: the largest size that the write queue may have. */
static int send_record_max(struct sock *sk)
{
	int size = READ_ONCE(sk->sk_sndbuf);

	return sk->sk_userlocks & SOCK_SNDBUF_LOCK ? size :
	       max(size, READ_ONCE(esp_sk(sk)->ns->conf.sndbuf));
}

/*
 * Write a record; return 0 or an error. The writer does not wait, and nothing is sent. A peer
 * that asks for small packets makes a record take many times its bytes of memory: then
 * EMSGSIZE.
 */
static int send_append_record(struct sock *sk, struct msghdr *msg)
{
	s64 most = sk->sk_wmem_queued + 2ll * send_record_max(sk);
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	while (msg_data_left(msg)) {
		size_t left = msg_data_left(msg);
		struct sk_buff *skb = send_use_tail(sk, send_open_tail(sk, NULL), left);
		int n;

		if (!skb)
			return -ENOMEM;
		if (sk->sk_wmem_queued > most)
			return -EMSGSIZE;
		n = send_append(sk, skb, msg,
				min_t(size_t, left, ESP_TX(skb)->limit - skb->len), NULL);
		if (n > 0) {
			send_grow_tail(esp, skb);
			esp->notsent += n;
		} else if (n == -ENOSPC) {
			ESP_TX(skb)->full = 1;	/* no more fragments fit */
		} else {
			return n;
		}
	}
	return 0;
}

/*
 * Write a whole record, or nothing. As with AF_UNIX, a queue that has any room takes all of
 * it. If there is no memory, wait for the queue to shrink. A queue that is empty can't: then
 * ENOBUFS.
 */
static int send_copy_record(struct sock *sk, struct msghdr *msg, long timeo)
{
	size_t len = msg_data_left(msg);
	struct send_mark mark;
	int err;

	sock_owned_by_me(sk);
	if (len > (size_t)send_record_max(sk))
		return -EMSGSIZE;
	for (;;) {
		while (!send_has_room(sk)) {
			err = send_wait_memory(sk, &timeo);
			if (err)
				return err;
		}
		send_mark(sk, &mark);
		err = send_append_record(sk, msg);
		if (!err)
			return len;
		send_roll_back(sk, &mark);
		iov_iter_revert(&msg->msg_iter, len - msg_data_left(msg));
		if (err == -ENOMEM && !mark.tail)
			err = -ENOBUFS;
		if (err == -ENOMEM)
			err = send_wait_memory(sk, &timeo);
		if (err)
			return err;
	}
}

/*
 * MSG_ZEROCOPY: set *@uarg to the record of the notice that the user's memory is no
 * longer in use, or leave it NULL if the user wants none. Calls are numbered in the
 * order in which they begin to take data, so wait for room first.
 */
static int zerocopy_begin(struct sock *sk, struct msghdr *msg, size_t len, long *timeo,
			  struct ubuf_info **uarg)
{
	int err;

	sock_owned_by_me(sk);
	if (!(msg->msg_flags & MSG_ZEROCOPY))
		return 0;
	*uarg = msg->msg_ubuf;		/* io_uring */
	if (*uarg || !sock_flag(sk, SOCK_ZEROCOPY))
		return 0;
	while (!send_has_room(sk)) {
		err = send_wait_memory(sk, timeo);
		if (err)
			return err;
	}
	*uarg = esp_zerocopy_alloc(sk, len);
	return *uarg ? 0 : -ENOBUFS;
}

/*
 * End the call. If it took nothing, return its number. If another writer got the
 * next number while the call waited for memory, the number can't be returned: then the
 * user gets a notice for this call too.
 */
static void zerocopy_end(struct sock *sk, struct ubuf_info *uarg, bool taken)
{
	sock_owned_by_me(sk);
	if (!taken && atomic_read(&sk->sk_zckey) == uarg_to_msgzc(uarg)->id + 1) {
		net_zcopy_put_abort(uarg, true);
		return;
	}
	if (!taken)
		uarg_to_msgzc(uarg)->zerocopy = 0;
	net_zcopy_put(uarg);
}

/* Return @uarg if the call is to lend its memory; records and small messages are copied. */
static struct ubuf_info *zerocopy_lends(struct sock *sk, struct msghdr *msg,
					size_t len, struct ubuf_info *uarg)
{
	if (!uarg || (sk->sk_type == SOCK_STREAM && len > ESP_SMALL))
		return uarg;
	if (!msg->msg_ubuf)
		uarg_to_msgzc(uarg)->zerocopy = 0;
	return NULL;
}

static int do_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
{
	bool record = sk->sk_type == SOCK_SEQPACKET;
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *tail;
	struct ubuf_info *uarg = NULL;
	int n;

	sock_owned_by_me(sk);
	sk_clear_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	if (sk->sk_state == TCP_SYN_SENT) {
		n = sk_stream_wait_connect(sk, &timeo);
		if (n)
			return n;
	}
	n = send_preconditions(sk);
	if (n)
		return n;
	if (!len)	/* a reader would take an empty record for the end */
		return record ? -EINVAL : 0;

	esp->more = !!(msg->msg_flags & MSG_MORE);
	esp->writers++;
	n = zerocopy_begin(sk, msg, len, &timeo, &uarg);
	if (!n) {
		struct ubuf_info *lent = zerocopy_lends(sk, msg, len, uarg);

		n = record ? send_copy_record(sk, msg, timeo) :
			     send_message(sk, msg, timeo, lent);
	}
	esp->writers--;
	esp->more = !!(msg->msg_flags & MSG_MORE);	/* another call may have changed it */
	if (uarg && !msg->msg_ubuf)
		zerocopy_end(sk, uarg, n > 0);

	if (!sk->sk_send_head)
		return n;
	tail = skb_peek_tail(&sk->sk_write_queue);
	if (ESP_TX(tail)->flags & ESP_FIN)
		return n;
	if (!msg_data_left(msg) &&
	    (record ? !esp->more : !!(msg->msg_flags & MSG_EOR)))
		ESP_TX(tail)->flags |= ESP_EOR;
	if (!esp->writers) {
		ESP_TX(tail)->flags |= ESP_TXF;
		esp->snd.trans_announced = 0;
	}
	esp_push_frames(sk);
	if (sk->sk_send_head)
		esp_ask_for_ack(sk);
	return n;
}

static int locked_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
{
	int err;

	lock_sock(sk);
	err = do_sendmsg(sk, msg, len);
	if (err < 0)
		err = sk_stream_error(sk, msg->msg_flags, err);
	release_sock(sk);
	return err;
}

/**
 * sock_esp_sendmsg() - send on a stream or seqpacket socket
 * @sock:	socket
 * @msg:	any number of buffers; flags MSG_DONTWAIT, MSG_MORE, MSG_NOSIGNAL,
 *		MSG_EOR, MSG_ZEROCOPY (with ESP_ZEROCOPY or SO_ZEROCOPY). An address is
 *		ignored, as TCP does it: the peer is known
 * @len:	bytes in them
 *
 * A record is taken whole, or not at all.
 *
 * Return: bytes taken, or EPIPE, ECONNRESET, ETIMEDOUT, ENETDOWN, EMSGSIZE (also a record
 * larger than the send buffer can be), EAGAIN, EINTR, EFAULT, EOPNOTSUPP, EINVAL (an empty
 * record), ENOBUFS (no memory for a record, or for a notice of MSG_ZEROCOPY, or no more may be
 * locked)
 */
int sock_esp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;

	esp_user_flags(msg);
	if (msg->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (msg->msg_controllen) {
		struct sockcm_cookie cookie;
		int err = esp_control(sk, msg, &cookie);

		if (err)
			return err;
	}
	return locked_sendmsg(sk, msg, len);
}

#ifdef ESP_OLD_SENDPAGE
/**
 * esp_sendpage() - send a page of splice() or sendfile(), in older kernels
 * @sock:	socket
 * @page:	page
 * @offset:	first byte
 * @size:	bytes
 * @flags:	as for sock_esp_sendmsg()
 *
 * Return: bytes taken, or an error as from sock_esp_sendmsg()
 */
ssize_t esp_sendpage(struct socket *sock, struct page *page, int offset,
		     size_t size, int flags)
{
	struct bio_vec bv = {
		.bv_page	= page,
		.bv_offset	= offset,
		.bv_len		= size,
	};
	struct msghdr msg = { .msg_flags = flags };

	if (flags & MSG_SENDPAGE_NOTLAST)
		msg.msg_flags |= MSG_MORE;
	if (sendpage_ok(page))
		msg.msg_flags |= MSG_SPLICE_PAGES;
	iov_iter_bvec(&msg.msg_iter, WRITE, &bv, 1, size);
	return locked_sendmsg(sock->sk, &msg, size);
}
#endif

/**
 * esp_splice_eof() - send the rest when sendfile() reaches the end of its file
 * @sock:	socket
 *
 * Cancels the MSG_MORE of the last piece.
 */
void esp_splice_eof(struct socket *sock)
{
	struct sock *sk = sock->sk;

	lock_sock(sk);
	esp_sk(sk)->more = 0;
	if (sk->sk_send_head)
		esp_push_frames(sk);
	if (sk->sk_send_head)
		esp_ask_for_ack(sk);
	release_sock(sk);
}
