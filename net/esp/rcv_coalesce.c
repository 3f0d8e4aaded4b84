// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tail of the receive queue. Packets are coalesced there: they take less memory, and
 * the reader needs less time.
 */
#include "esp.h"
#include "memory.h"
#include "rcv_coalesce.h"

/*
 * Extend @to's last fragment by a packet whose bytes lie after it in memory, as in a GSO
 * packet that was segmented on this machine. The reader then copies once for many packets.
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
 * Append a packet to the buffer at the tail: a buffer for each packet would take more
 * memory than the payload, and the reader more time. A buffer holds packets of one record
 * only, and at most a part of the receive buffer, because its memory is freed as a whole.
 */
static bool rcvq_coalesce(struct sock *sk, struct sk_buff *skb)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);
	struct esp_frame *f = &ESP_RX(skb)->f, *to;
	u32 front = f->hlen + f->read, len = f->len - f->read;
	bool stolen = false;
	int delta;
	u32 most;

	/* the packet's front, which was here already, may be in pages */
	if (!tail || skb_headlen(skb) < front)
		return false;
	to = &ESP_RX(tail)->f;
	most = min_t(u32, U16_MAX, (u32)READ_ONCE(sk->sk_rcvbuf) / 8);
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
	else	/* softirqs are off; many are freed at a time */
		napi_consume_skb(skb, 1);
	return true;
}

/*
 * Take apart the packets that GRO has chained, so that they are coalesced like others. A
 * chain stays as it is in these cases: its packets can't be coalesced, were kept out of
 * order, or are chained in another way; or another reader shares it. A packet socket has
 * a clone of the first buffer or, if that buffer had to be written to since, the same
 * list. Returns the packets after @skb; NULL: the chain stays as it is.
 */
static struct sk_buff *rcvq_unchain(struct sk_buff *skb)
{
	struct sk_buff *list = skb_shinfo(skb)->frag_list, *iter;
	struct esp_frame *f = &ESP_RX(skb)->f, own;
	u32 len = 0, truesize = 0, n = 0;

	if (!skb_is_gso(skb) || skb_cloned(skb) || skb->sk || f->read)
		return NULL;
	smp_rmb();	/* pskb_expand_head() refers to the list before it drops the old head */
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
	f->flags &= ~(ESP_TXF | ESP_EOR);	/* the last packet's */
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

/* Append packets to the receive queue. */
void esp_rcvq_append(struct sock *sk, struct sk_buff *skb)
{
	struct sk_buff *next = skb_has_frag_list(skb) ? rcvq_unchain(skb) : NULL;

	for (;;) {
		if (!rcvq_coalesce(sk, skb)) {
			skb->dev = NULL;
			if (!skb->sk)	/* an out-of-order packet was charged before */
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
