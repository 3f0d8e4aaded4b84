// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tail of the receive queue: packets are joined there, so that they take less memory,
 * and the reader less time.
 */
#include "esp.h"
#include "memory.h"
#include "rcv_coalesce.h"

/*
 * A packet whose bytes lie behind those of @to's last fragment, as in a super-packet
 * that was taken apart on this machine: they become part of it. The reader then
 * copies once for many packets.
 */
static bool rcvq_extend_fragment(struct sk_buff *to, struct sk_buff *skb, int *delta)
{
	const struct skb_shared_info *from = skb_shinfo(skb);
	int n = skb_shinfo(to)->nr_frags, len = skb->data_len;
	const skb_frag_t *frag = from->frags;
	struct page *page;

	if (!n || from->nr_frags != 1 || len != skb_frag_size(frag) ||
	    to->pp_recycle != skb->pp_recycle || skb_cloned(to) || skb_has_frag_list(to))
		return false;
	page = skb_frag_page(frag);
	if (!page || !skb_can_coalesce(to, n, page, skb_frag_off(frag)))
		return false;
	*delta = skb->truesize - SKB_TRUESIZE(skb_end_offset(skb));
	skb_frag_size_add(&skb_shinfo(to)->frags[n - 1], len);
	to->len += len;
	to->data_len += len;
	to->truesize += *delta;
	return true;
}

/*
 * Append to what waits at the tail: a buffer for each packet would take more
 * memory than the payload, and the reader more time. One record's only, and no
 * more than a part of what may wait: its memory is given back as a whole.
 */
static bool rcvq_coalesce(struct sock *sk, struct sk_buff *skb)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);
	u32 most = min_t(u32, U16_MAX, (u32)READ_ONCE(sk->sk_rcvbuf) / 8);
	struct esp_frame *f = &ESP_RX(skb)->f, *to;
	u32 front = f->hlen + f->read, len = f->len - f->read;
	bool stolen = false;
	int delta;

	/* packets in front of it, which were here already, may be in pages */
	if (!tail || skb_headlen(skb) < front)
		return false;
	to = &ESP_RX(tail)->f;
	if ((to->flags & ESP_EOR) || to->len + len > most)
		return false;
	if (skb_headlen(skb) != front || !rcvq_extend_fragment(tail, skb, &delta)) {
		__skb_pull(skb, front);
		if (!skb_try_coalesce(tail, skb, &stolen, &delta)) {
			__skb_push(skb, front);
			return false;
		}
	}
	atomic_add(delta, &sk->sk_rmem_alloc);
	sk_mem_charge(sk, delta);
	to->flags |= f->flags;
	to->len += len;
	to->segs += f->segs;
	if (stolen)
		kfree_skb_partial(skb, true);
	else	/* softirqs are off; many go back at a time */
		napi_consume_skb(skb, 1);
	return true;
}

/*
 * What GRO has chained is a packet each again, so that they are joined as others are. As it
 * is stays what can't be joined, what was ahead, or is chained in another way, and what
 * somebody else looks at: a packet socket has a copy of the first buffer, or, if that had to
 * be written to since, the same list. Returns those behind @skb.
 */
static struct sk_buff *rcvq_unchain(struct sk_buff *skb)
{
	struct sk_buff *list = skb_shinfo(skb)->frag_list, *iter;
	struct esp_frame *f = &ESP_RX(skb)->f, own;
	u32 len = 0, truesize = 0, n = 0;

	if (!skb_is_gso(skb) || skb_cloned(skb) || skb->sk || f->read)
		return NULL;
	smp_rmb();	/* pskb_expand_head() takes the list's references before it lets go */
	skb_walk_frags(skb, iter) {
		if (!iter->len || (skb_headlen(iter) && !iter->head_frag) ||
		    skb_shared(iter) || skb_has_frag_list(iter) || skb_zcopy(iter) ||
		    iter->sk || iter->destructor)
			return NULL;
		len += iter->len;
		truesize += iter->truesize;
		n++;
	}
	if (n + 1 != f->segs || len >= f->len ||
	    skb->truesize < truesize + SKB_TRUESIZE(skb_end_offset(skb)) + skb->data_len - len)
		return NULL;
	f->segs = 1;
	own = *f;
	own.hlen = 0;
	f->flags &= ~(ESP_TXF | ESP_EOR);	/* the last one's */
	skb_walk_frags(skb, iter) {
		ESP_RX(iter)->f = own;
		ESP_RX(iter)->f.len = iter->len;
		if (iter->next)
			ESP_RX(iter)->f.flags = f->flags;
	}
	skb_shinfo(skb)->frag_list = NULL;
	skb->len -= len;
	skb->data_len -= len;
	skb->truesize -= truesize;
	f->len -= len;
	return list;
}

/* Behind what waits to be read. */
void esp_rcvq_append(struct sock *sk, struct sk_buff *skb)
{
	struct sk_buff *next = skb_has_frag_list(skb) ? rcvq_unchain(skb) : NULL;

	for (;;) {
		if (!rcvq_coalesce(sk, skb)) {
			skb->dev = NULL;
			if (!skb->sk)	/* one that was ahead has been charged */
				esp_set_owner_r(skb, sk);
			__skb_queue_tail(&sk->sk_receive_queue, skb);
		}
		if (!next)
			break;
		skb = next;
		next = skb->next;
		skb_mark_not_on_list(skb);
	}
}
