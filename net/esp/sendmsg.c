// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving data from user-space (the seed's section of this name; rules 1,
 * 2, 4): slice it into packets on the write queue, push while copying.
 *
 *   sk_write_queue:   oldest (una_seq) ... sent | sk_send_head ... newest
 *                     <---- unacknowledged ---->|<----- notsent ------>
 *
 * A buffer there holds a run of packets, as many as the device takes at once;
 * it is cut where permission, loss or Nagle's rule ends a run.
 */
#include "esp.h"

/* Packets that leave together while a message is copied, at least. */
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
	if (!esp_mem_schedule(sk, NULL, skb->truesize)) {
		__kfree_skb(skb);
		return NULL;
	}
	skb_reserve(skb, room);
	memset(skb->cb, 0, sizeof(struct esp_tx_cb));
	ESP_TX(skb)->size = esp->mss;
	ESP_TX(skb)->linear = linear;
	/* a small message; and each packet has its own CRC, of which the core knows nothing */
	ESP_TX(skb)->limit = linear || esp->crc ? esp->mss :
			     esp_dev_gso_bytes(esp->dev, esp->mss);
	if (!linear || esp_dev_checksums(esp->dev))
		skb->ip_summed = CHECKSUM_PARTIAL;	/* copy, don't sum */
	return skb;
}

/* Give a buffer, of one packet as yet, its number and its place. */
static void enqueue(struct sock *sk, struct sk_buff *skb, u8 flags)
{
	struct esp_opt *esp = esp_sk(sk);

	ESP_TX(skb)->seq = esp->snd.send_seq++;
	ESP_TX(skb)->segs = 1;
	ESP_TX(skb)->flags = flags;
	__skb_header_release(skb);	/* clones may write their own header */
	__skb_queue_tail(&sk->sk_write_queue, skb);
	sk_wmem_queued_add(sk, skb->truesize);
	sk_mem_charge(sk, skb->truesize);
	if (!sk->sk_send_head)
		sk->sk_send_head = skb;
}

/* Bytes were put behind it, more packets perhaps. */
static void grow(struct esp_opt *esp, struct sk_buff *skb)
{
	u32 segs = DIV_ROUND_UP(skb->len, ESP_TX(skb)->size);

	esp->snd.send_seq += segs - ESP_TX(skb)->segs;
	ESP_TX(skb)->segs = segs;
}

/* It is as large as it was before; its memory may be not. */
static void unshare(struct sock *sk, struct sk_buff *skb, unsigned int before)
{
	int more = skb->truesize - before;

	sk_wmem_queued_add(sk, more);
	if (more > 0)
		sk_mem_charge(sk, more);
	else
		esp_mem_uncharge(sk, -more);
}

/**
 * esp_split() - cut a buffer of the write queue
 * @sk:		socket; its owner calls
 * @skb:	buffer of more than @n packets; the first @n stay in it
 * @n:		packets
 *
 * A copy that is on its way keeps what it has. The memory must be had:
 * otherwise the socket is in debt, and pays next time.
 *
 * Return: the rest, behind @skb on the write queue; NULL: no memory, nothing
 * has happened
 */
struct sk_buff *esp_split(struct sock *sk, struct sk_buff *skb, u32 n)
{
	u32 at = n * ESP_TX(skb)->size, before = skb->truesize, linear = 0;
	unsigned int room = esp_dev_headroom(esp_sk(sk)->dev) + ESP_HLEN_MAX;
	struct sk_buff *rest;

	if (skb_headlen(skb) > at)
		linear = skb_headlen(skb) - at;
	rest = alloc_skb_fclone(room + linear, GFP_ATOMIC);
	if (!rest || skb_unclone(skb, GFP_ATOMIC)) {
		consume_skb(rest);
		ESP_INC(sock_net(sk), OutAllocFail);
		return NULL;
	}
	unshare(sk, skb, before);
	skb_reserve(rest, room);
	*ESP_TX(rest) = *ESP_TX(skb);
	ESP_TX(rest)->seq += n;
	ESP_TX(rest)->segs -= n;
	ESP_TX(rest)->linear = linear;
	ESP_TX(rest)->flags &= ~ESP_TXS;
	ESP_TX(rest)->acked -= min(ESP_TX(rest)->acked, at);
	ESP_TX(skb)->segs = n;
	ESP_TX(skb)->flags &= ESP_TXS;
	ESP_TX(skb)->acked = min(ESP_TX(skb)->acked, at);

	/* sums of a part are not known */
	skb->ip_summed = CHECKSUM_PARTIAL;
	rest->ip_summed = CHECKSUM_PARTIAL;
	skb_split(skb, rest, at);
	sk_wmem_queued_add(sk, rest->truesize);
	sk_mem_charge(sk, rest->truesize);
	skb->truesize -= rest->data_len;
	rest->truesize += rest->data_len;
	__skb_header_release(rest);
	__skb_queue_after(&sk->sk_write_queue, skb, rest);
	return rest;
}

/* Move @n bytes of page fragments from the front of @next behind @skb. */
static void move_frags(struct sk_buff *skb, struct sk_buff *next, u32 n)
{
	struct skb_shared_info *to = skb_shinfo(skb), *from = skb_shinfo(next);
	u32 i, left = n;

	for (i = 0; left; i++) {
		skb_frag_t *frag = &to->frags[to->nr_frags++];

		*frag = from->frags[i];
		if (skb_frag_size(frag) > left) {
			get_page(skb_frag_page(frag));
			skb_frag_size_set(frag, left);
			skb_frag_off_add(&from->frags[i], left);
			skb_frag_size_sub(&from->frags[i], left);
			break;
		}
		left -= skb_frag_size(frag);
	}
	from->nr_frags -= i;
	memmove(from->frags, from->frags + i,
		from->nr_frags * sizeof(from->frags[0]));
	to->flags |= from->flags & SKBFL_SHARED_FRAG;
	skb->len += n;
	skb->data_len += n;
	skb->truesize += n;
	next->len -= n;
	next->data_len -= n;
	next->truesize -= n;
}

static void unlink_and_free(struct sock *sk, struct sk_buff *skb)
{
	__skb_unlink(skb, &sk->sk_write_queue);
	sk_wmem_queued_add(sk, -skb->truesize);
	esp_mem_uncharge(sk, skb->truesize);
	__kfree_skb(skb);
}

/**
 * esp_fill_up() - let more packets leave with the next one
 * @sk:		socket; its owner calls
 * @skb:	sk_send_head
 * @most:	packets that may leave
 *
 * What permission has cut off an earlier run is short; the next one's front
 * goes with it.
 */
void esp_fill_up(struct sock *sk, struct sk_buff *skb, u32 most)
{
	struct esp_tx_cb *cb = ESP_TX(skb), *ncb;
	struct sk_buff *next;
	u32 n;

	if (skb_queue_is_last(&sk->sk_write_queue, skb) ||
	    (cb->flags & (ESP_TXF | ESP_EOR | ESP_FIN)))
		return;
	next = skb_queue_next(&sk->sk_write_queue, skb);
	ncb = ESP_TX(next);
	most = min(most, cb->limit / cb->size);
	if (most <= cb->segs || skb->len != cb->segs * cb->size ||
	    ncb->size != cb->size || (ncb->flags & (ESP_TXS | ESP_FIN)) ||
	    !next->len || skb_headlen(next) || skb_zcopy(skb) || skb_zcopy(next) ||
	    skb_shinfo(skb)->nr_frags + skb_shinfo(next)->nr_frags > MAX_SKB_FRAGS)
		return;

	n = min(most - cb->segs, ncb->segs);
	skb->ip_summed = CHECKSUM_PARTIAL;
	move_frags(skb, next, min(n * cb->size, next->len));
	cb->segs += n;
	ncb->segs -= n;
	ncb->seq += n;
	if (!ncb->segs) {
		cb->flags |= ncb->flags;
		cb->full |= ncb->full;
		unlink_and_free(sk, next);
	}
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
		struct esp_tx_cb *cb = ESP_TX(skb);
		u32 acked = cb->acked;

		if (esp_after(esp_tx_end(skb), una)) {
			cb->acked = (una - cb->seq) * cb->size;
			esp_sk(sk)->unacked -= cb->acked - acked;
			break;
		}
		esp_sk(sk)->unacked -= skb->len - acked;
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

/*
 * The unsent buffer at the tail that takes more bytes, or NULL. What refers to
 * the user's memory is one call's.
 */
static struct sk_buff *open_tail(struct sock *sk, struct ubuf_info *uarg)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_write_queue);
	struct esp_opt *esp = esp_sk(sk);

	if (!sk->sk_send_head || tail->len >= ESP_TX(tail)->limit ||
	    ESP_TX(tail)->full || ESP_TX(tail)->size != esp->mss ||
	    skb_zcopy(tail) != uarg ||
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

/*
 * Refer to up to @n bytes in the pages that splice() or sendfile() lends. They
 * may change on their way: then the checksum is wrong, and the packet is sent
 * again. So it is not computed before it leaves. Returns bytes or an error.
 */
static int lend_pages(struct sock *sk, struct sk_buff *skb, struct msghdr *msg,
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
 * Refer to up to @n bytes of the user's memory itself, who is told when it is no
 * longer used (MSG_ZEROCOPY). Returns bytes or an error.
 */
static int lend_user(struct sock *sk, struct sk_buff *skb, struct msghdr *msg,
		     int n, struct ubuf_info *uarg)
{
	if (!esp_mem_schedule(sk, NULL, n))
		return -ENOMEM;
	skb->ip_summed = CHECKSUM_PARTIAL;	/* it may change on its way */
	n = esp_zerocopy_iter(sk, skb, msg, n, uarg);
	return n == -EMSGSIZE || n == -EEXIST ? -ENOSPC : n;
}

/* Put up to @n bytes behind a packet's payload; returns bytes or an error. */
static int append(struct sock *sk, struct sk_buff *skb, struct msghdr *msg,
		  int n, struct ubuf_info *uarg)
{
	int room = ESP_TX(skb)->linear - (int)skb->len;
	int err;

	if (room > 0) {
		n = min(n, room);
		err = copy_linear(sk, skb, msg, n);
		return err ? err : n;
	}
	if (uarg)
		return lend_user(sk, skb, msg, n, uarg);
	if (msg->msg_flags & MSG_SPLICE_PAGES)
		return lend_pages(sk, skb, msg, n);
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

/* The same, but an error stays for the next call. */
static bool may_go_on(struct sock *sk)
{
	return !sk->sk_err && !(sk->sk_shutdown & SEND_SHUTDOWN) &&
	       may_send(sk) && !esp_dev_usable(esp_sk(sk)->dev);
}

/* A buffer that was begun and got no byte must not stay. */
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

/* Is there something that only an ACK can set going, and no permission? */
static bool needs_ack(struct sock *sk)
{
	struct sk_buff *skb = sk->sk_send_head;
	struct esp_opt *esp = esp_sk(sk);

	/* at the agreed cap an ACK is due (esp_ack_each()); the receiver knows of no other */
	if (skb && esp->snd.burst_length &&
	    (esp->snd.burst_length != esp->agreed_burst || esp->late_cap) &&
	    esp->snd.send_next - esp->snd.una_seq >= esp->snd.burst_length)
		return true;
	/* what is on its way asks for nothing, and was all that may go unasked (rule 3) */
	if (skb && esp->snd.whole && esp->snd.announcing && esp->snd.first &&
	    !esp_window_test(&esp->snd) && esp->snd.announce_seq != esp->snd.send_next &&
	    !esp_hold_back(sk, skb))
		return true;
	if (skb && (ESP_TX(skb)->segs > 1 ||
		    !skb_queue_is_last(&sk->sk_write_queue, skb)))
		return false;
	/* Nagle's rule: whoever has said that more comes has a timer */
	if (skb && !esp->cork && !esp->more && esp_hold_back(sk, skb) &&
	    esp->snd.send_next - esp->snd.una_seq > ESP_ACK_SURE)
		return true;
	/* room on the write queue */
	return sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/**
 * esp_ask_for_ack() - the sender can't go on without an ACK
 * @sk:	socket; its owner calls, when all that may be sent has been
 *
 * Of the packets that are on their way none may be due, as far as the receiver
 * knows. Once: if the question or its answer is lost, the receiver has a timer.
 */
void esp_ask_for_ack(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 n = esp->snd.send_next - esp->snd.una_seq;

	if (!n || n > ESP_ACK_MOST || esp->asked == esp->snd.send_next ||
	    !needs_ack(sk))
		return;
	esp->asked = esp->snd.send_next;
	if (esp->snd.in_trans)
		esp_send_probe(sk);
	else	/* nothing is in progress, and nothing to be announced by this */
		esp_send_empty(sk, ESP_TXS, esp->snd.una_seq - 1);
}

/* Wait for room on the write queue; what is there may go meanwhile. */
static int wait_memory(struct sock *sk, long *timeo)
{
	struct esp_opt *esp = esp_sk(sk);
	bool waits = *timeo;	/* who doesn't has come to its end (rule 4) */
	int err;

	drop_empty_tail(sk);
	esp->for_room = waits && !sk_stream_memory_free(sk);
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	esp->waiting += waits;
	esp_push_frames(sk);
	if (waits)
		esp_ask_for_ack(sk);
	err = sk_stream_wait_memory(sk, timeo);
	esp->waiting -= waits;
	esp->for_room = 0;
	if (waits && sk->sk_send_head)	/* writer_sends(); whatever woke us */
		esp_push_frames(sk);
	return err ? err : preconditions(sk);
}

/*
 * A send buffer that is not larger than needed stays in the processor's cache.
 * So it starts small, and grows if a quarter of it, or more, is on its way: who
 * is woken when a third is free must come before it is empty.
 */
static bool grow_sndbuf(struct sock *sk)
{
	int most = READ_ONCE(esp_sk(sk)->ns->conf.sndbuf);

	if ((sk->sk_userlocks & SOCK_SNDBUF_LOCK) || sk->sk_sndbuf >= most ||
	    esp_sk(sk)->unacked < esp_sk(sk)->notsent / 3 ||
	    atomic_long_read(&esp_memory_allocated) >= READ_ONCE(esp_mem[0]))
		return false;
	WRITE_ONCE(sk->sk_sndbuf, min(2 * sk->sk_sndbuf, most));
	return sk_stream_memory_free(sk);
}

/* A buffer to write into: the open one at the tail, or a new one. */
static struct sk_buff *packet_for(struct sock *sk, size_t left,
				  struct ubuf_info *uarg)
{
	struct sk_buff *skb = open_tail(sk, uarg);
	u8 flags;

	/* a new packet needs room, be it in an old buffer */
	if ((!skb || !(skb->len % ESP_TX(skb)->size)) &&
	    !sk_stream_memory_free(sk) && !grow_sndbuf(sk))
		return NULL;
	if (skb) {
		announce(sk);
		return skb;
	}
	skb = esp_stream_alloc_skb(sk, left <= ESP_SMALL ? ESP_SMALL : 0);
	if (!skb)
		return NULL;
	flags = announce(sk);
	enqueue(sk, skb, flags);
	return skb;
}

/* Bytes that may be put into a buffer, its packet's at least. */
static u32 room_in(struct sock *sk, struct sk_buff *skb)
{
	struct esp_tx_cb *cb = ESP_TX(skb);
	int memory = READ_ONCE(sk->sk_sndbuf) - READ_ONCE(sk->sk_wmem_queued);
	u32 packet = cb->size - skb->len % cb->size;

	return min(cb->limit - skb->len, max_t(u32, packet, max(memory, 0)));
}

static int copy_message(struct sock *sk, struct msghdr *msg, long timeo,
			struct ubuf_info *uarg)
{
	struct esp_opt *esp = esp_sk(sk);
	int copied = 0, n;

	while (msg_data_left(msg)) {
		struct sk_buff *skb = packet_for(sk, msg_data_left(msg), uarg);

		if (!skb) {
			n = wait_memory(sk, &timeo);
			if (n)
				return copied ? copied : n;
			continue;
		}
		n = append(sk, skb, msg, min_t(size_t, msg_data_left(msg),
					       room_in(sk, skb)), uarg);
		if (n > 0) {
			grow(esp, skb);
			esp->notsent += n;
			copied += n;
			/* what comes last does not leave before do_sendmsg() */
			if (msg_data_left(msg) && skb->len >= ESP_TX(skb)->limit &&
			    (esp->snd.una_seq == esp->snd.send_next ||
			     esp->snd.send_seq - esp->snd.send_next >= ESP_PUSH)) {
				/* who doesn't wait may have to end here */
				esp->feeding = timeo || sk_stream_memory_free(sk);
				esp_push_frames(sk);
				esp->feeding = 0;
			}
			/* permission doesn't wait for the end of a long copy */
			if (sk_flush_backlog(sk) && !may_go_on(sk))
				return copied;
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

/*
 * MSG_ZEROCOPY: whom to tell when the user's memory is no longer used; *@uarg
 * is NULL if nobody wants to know. Calls are numbered in the order in which they
 * begin to take: not before there is room.
 */
static int zerocopy(struct sock *sk, struct msghdr *msg, size_t len, long *timeo,
		    struct ubuf_info **uarg)
{
	int err;

	if (!(msg->msg_flags & MSG_ZEROCOPY))
		return 0;
	*uarg = msg->msg_ubuf;		/* io_uring */
	if (*uarg || !sock_flag(sk, SOCK_ZEROCOPY))
		return 0;
	while (!sk_stream_memory_free(sk) && !grow_sndbuf(sk)) {
		err = wait_memory(sk, timeo);
		if (err)
			return err;
	}
	*uarg = esp_zerocopy_alloc(sk, len);
	return *uarg ? 0 : -ENOBUFS;
}

/*
 * The call ends. If it took nothing its number is given back, but not if another
 * writer has had the next one while it waited for memory: it is told of, then.
 */
static void zerocopy_end(struct sock *sk, struct ubuf_info *uarg, bool taken)
{
	if (!taken && atomic_read(&sk->sk_zckey) == uarg_to_msgzc(uarg)->id + 1) {
		net_zcopy_put_abort(uarg, true);
		return;
	}
	if (!taken)
		uarg_to_msgzc(uarg)->zerocopy = 0;
	net_zcopy_put(uarg);
}

/* Records, and what is small, are copied all the same. */
static struct ubuf_info *zerocopy_lends(struct sock *sk, struct msghdr *msg,
					size_t len, struct ubuf_info *uarg)
{
	if (!uarg || (sk->sk_type == SOCK_STREAM && len > ESP_SMALL))
		return uarg;
	if (!msg->msg_ubuf)
		uarg_to_msgzc(uarg)->zerocopy = 0;
	return NULL;
}

/* A record is one thing: another writer's must be whole before ours begins. */
static int wait_turn(struct sock *sk, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int disconnects = sk->sk_disconnects, err = 0;

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
			err = sk->sk_disconnects != disconnects ? -EPIPE : preconditions(sk);
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
	struct ubuf_info *uarg = NULL;
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
	n = zerocopy(sk, msg, len, &timeo, &uarg);
	if (!n)
		n = copy_message(sk, msg, timeo, zerocopy_lends(sk, msg, len, uarg));
	esp->copying--;
	if (record)
		wake_up_interruptible(sk_sleep(sk));	/* wait_turn() */
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
	if (!esp->copying) {
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
 * sock_esp_sendmsg() - sendmsg of stream and seqpacket sockets
 * @sock:	socket
 * @msg:	any number of buffers; flags MSG_DONTWAIT, MSG_MORE, MSG_NOSIGNAL,
 *		MSG_EOR, MSG_ZEROCOPY (with ESP_ZEROCOPY or SO_ZEROCOPY)
 * @len:	bytes in them
 *
 * Return: bytes taken, or EPIPE, ECONNRESET, ETIMEDOUT, ENETDOWN, EMSGSIZE,
 * EAGAIN, EINTR, EFAULT, EOPNOTSUPP, EISCONN (an address), EINVAL (an empty
 * record), ENOBUFS (MSG_ZEROCOPY: no memory, or no more may be locked)
 */
int sock_esp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sock *sk = sock->sk;

	esp_user_flags(msg);
	if (msg->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (msg->msg_name && sk->sk_state == TCP_ESTABLISHED &&
	    msg->msg_namelen)
		return -EISCONN;
	return locked_sendmsg(sk, msg, len);
}

#ifdef ESP_OLD_SENDPAGE
/**
 * esp_sendpage() - splice() and sendfile() of older kernels
 * @sock:	socket
 * @page:	page
 * @offset:	first byte
 * @size:	bytes
 * @flags:	as of sock_esp_sendmsg()
 *
 * Return: bytes taken, or an error as of sock_esp_sendmsg()
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
	if (sk->sk_send_head)
		esp_ask_for_ack(sk);
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
	/*
	 * No memory is asked for, which would be a page for all sockets, twice a
	 * connection: one that has none left is in debt till the FIN is acknowledged.
	 */
	esp->fin_seq = esp->snd.send_seq;
	esp->fin_queued = 1;
	esp->more = 0;
	esp->cork = 0;
	enqueue(sk, skb, ESP_FIN);
	esp_push_frames(sk);
}
