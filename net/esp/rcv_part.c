// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets that come in parts (rule 9): the sender's MTU, or this end's, has shrunk below packets
 * that the sender numbered before.
 *
 * One packet at a time is put together: recv_seq, from its first byte on. Its memory is charged as
 * a whole when its first part comes, so a peer that sends many small parts takes no more of it.
 */
#include "esp.h"
#include "rcv_part.h"

/**
 * esp_part_begin() - Make a packet for its parts, with none of them in it
 * @skb:	a part of it
 *
 * Context: softirqs are off.
 * Return: the packet, empty, with its header in ESP_RX(); NULL: no memory
 */
struct sk_buff *esp_part_begin(const struct sk_buff *skb)
{
	u32 size = ESP_RX(skb)->f.part_size;
	struct sk_buff *whole;
	int err;

	whole = alloc_skb_with_frags(0, size, 0, &err, GFP_ATOMIC);
	if (!whole)
		return NULL;
	whole->len = size;
	whole->data_len = size;
	*ESP_RX(whole) = *ESP_RX(skb);
	ESP_RX(whole)->f.opts = 0;
	ESP_RX(whole)->f.hlen = 0;
	ESP_RX(whole)->f.segs = 1;
	ESP_RX(whole)->f.len = size;
	ESP_RX(whole)->f.read = 0;	/* bytes that have come */
	return whole;
}

/* Copy @n bytes of @skb from @from on into the pages of @whole at @at. */
static bool part_copy(struct sk_buff *whole, u32 at, const struct sk_buff *skb, u32 from, u32 n)
{
	const skb_frag_t *frag = skb_shinfo(whole)->frags;

	while (at >= skb_frag_size(frag))
		at -= skb_frag_size(frag++);
	while (n) {
		u32 here = min_t(u32, n, skb_frag_size(frag) - at);

		if (skb_copy_bits(skb, from, skb_frag_address(frag) + at, here))
			return false;
		from += here;
		n -= here;
		at = 0;
		frag++;
	}
	return true;
}

/**
 * esp_part_add() - Add a part to a packet
 * @whole:	packet, as esp_part_begin() made it
 * @skb:	a part of the same packet
 *
 * The peer may cut the packet anew before it retransmits it. So the beginning of the part may be
 * here already.
 *
 * Return: true if all of the part is here now; false: bytes before it are missing, or it is a part
 * of a packet of another size
 */
bool esp_part_add(struct sk_buff *whole, const struct sk_buff *skb)
{
	const struct esp_frame *f = &ESP_RX(skb)->f;
	struct esp_frame *w = &ESP_RX(whole)->f;
	u32 end = f->part_at + f->len;

	if (f->part_size != w->len || f->part_at > w->read)
		return false;
	if (end <= w->read)
		return true;
	if (!part_copy(whole, w->read, skb, f->hlen + w->read - f->part_at, end - w->read))
		return false;
	w->read = end;
	return true;
}

/**
 * esp_part_take() - Take the packet that is put together, if it is complete
 * @sk:	connection with such a packet; its owner calls
 *
 * Return: the packet, charged to nobody, as it comes from a device; NULL: parts of it are missing
 */
struct sk_buff *esp_part_take(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *whole = esp->part;

	sock_owned_by_me(sk);
	if (ESP_RX(whole)->f.read < ESP_RX(whole)->f.len)
		return NULL;
	ESP_RX(whole)->f.read = 0;
	esp->part = NULL;
	skb_orphan(whole);
	return whole;
}

/**
 * esp_part_forget() - Drop the parts of a packet
 * @sk:	connection; its owner calls
 */
void esp_part_forget(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	__kfree_skb(esp->part);
	esp->part = NULL;
}
