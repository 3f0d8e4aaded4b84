// SPDX-License-Identifier: GPL-2.0-only
/*
 * GSO packets: consecutive packets that pass the stack as one frame.
 *
 *   one frame            header: number of the first packet, bytes of all,
 *   [header|1 2 3 ...]   flags of all; gso_size: bytes of each but the last
 *        |    ^
 *    gso |    | gro      TXS is the first packet's; TXF, EOR are the last packet's;
 *        v    |          the fields of the other direction are the same in each
 *   [header|1] [header|2] ...
 *
 * A device that takes GSO packets (veth, bridge, loopback ...) claims SKB_GSO_SCTP. This
 * type is segmented in software only, because no network card claims it. In front of a
 * network card, virtual or not, the core lets esp_gso_segment() segment the packet.
 */
#include <linux/delay.h>
#include <linux/if_vlan.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <net/gro.h>
#include "esp.h"
#include "dev.h"
#include "dev_queue.h"
#include "offload.h"

/*
 * After the EtherType the core assumes a transport header of 12 bytes for SKB_GSO_SCTP. So
 * the "transport header" is set 12 bytes before the end of the ESP header.
 */
#define ESP_GSO_TRANSPORT	(ESP_HLEN - 12)

/* GSO types that tunnels add, and types that make no difference here. */
#define ESP_GSO_AROUND	(SKB_GSO_DODGY | SKB_GSO_GRE | SKB_GSO_GRE_CSUM | \
			 SKB_GSO_IPXIP4 | SKB_GSO_IPXIP6 | \
			 SKB_GSO_UDP_TUNNEL | SKB_GSO_UDP_TUNNEL_CSUM | \
			 SKB_GSO_ESP)

#define ESP_GRO_WAIT_MS		500	/* longest wait for GRO at module exit */

/* Flags that a packet in a GSO packet may have. */
#define ESP_RUN_FLAGS		(ESP_ACK | ESP_TXS | ESP_TXF | ESP_EOR)

/*
 * Must the frame remain a packet of its own? GRO merges only frames that have no options,
 * have ESP_ACK, and have no flags but ESP_RUN_FLAGS.
 */
static bool frame_stands_alone(const struct esp_wire *h)
{
	return h->ver_hlen != (ESP_VERSION << 4 | ESP_HLEN / 4) ||
	       (h->flags & ~ESP_RUN_FLAGS) || !(h->flags & ESP_ACK);
}

/* Leave the checksum to the device or to esp_gso_segment(). */
static void gso_leave_checksum(struct sk_buff *skb, unsigned int offset)
{
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_headroom(skb) + offset;
	skb->csum_offset = offsetof(struct esp_wire, csum);
}

/**
 * esp_gso_mark() - mark a frame as a GSO packet, or as a single packet
 * @skb:	frame from the ESP header on, whose checksum is zero
 * @size:	payload of each packet but the last, bytes
 * @segs:	number of packets; 0 or 1: no GSO packet
 *
 * The function arranges for the checksum of a GSO packet. The caller has to fill in the
 * checksum of a single packet.
 */
void esp_gso_mark(struct sk_buff *skb, u16 size, u16 segs)
{
	struct skb_shared_info *info = skb_shinfo(skb);

	if (segs <= 1) {
		info->gso_size = 0;
		info->gso_segs = 0;
		info->gso_type = 0;
		return;
	}
	info->gso_size = size;
	info->gso_segs = segs;
	info->gso_type = SKB_GSO_SCTP;
	skb_set_transport_header(skb, ESP_GSO_TRANSPORT);
	gso_leave_checksum(skb, 0);
}

/**
 * esp_gso_valid() - may a GSO packet be one of ESP's?
 * @skb:	frame
 *
 * GSO packets are made on this machine, but not by this module alone: a packet socket or a
 * tun device can make frames of any kind. A tunnel may carry a GSO packet of ESP.
 *
 * Return: true if it may be
 */
bool esp_gso_valid(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);

	return (info->gso_type & ~ESP_GSO_AROUND) == SKB_GSO_SCTP &&
	       info->gso_size >= ESP_MSS_MIN && info->gso_size != GSO_BY_FRAGS;
}

/*
 * Is each frame of the list as long as skb_segment() assumes, and linear if skb_segment() is
 * to copy it? In any other list skb_segment() would mistake one frame for another.
 */
static bool gso_list_uniform(const struct sk_buff *skb, unsigned int first, bool sg)
{
	unsigned int size = skb_shinfo(skb)->gso_size, rest = skb->len;
	const struct sk_buff *iter;

	skb_walk_frags(skb, iter) {
		if (iter->len > size || (iter->len < size && iter->next) ||
		    skb_has_frag_list(iter) || (!sg && skb_is_nonlinear(iter)))
			return false;
		rest -= iter->len;
	}
	return rest == first;
}

/* Is ESP_OPT_LEFT the only option of a header that is followed by its payload? */
static bool gso_has_left(const u8 *data, unsigned int hlen)
{
	return hlen == ESP_HLEN + ESP_LEFT_ROOM && data[ESP_HLEN] == ESP_OPT_LEFT;
}

/*
 * Remove ESP_OPT_LEFT from a segment, which has the first segment's header. The option is of use
 * once, and GRO merges packets without options only.
 */
static void gso_drop_left(struct sk_buff *skb)
{
	unsigned int n = skb_network_offset(skb) + ESP_HLEN;

	memmove(skb->data + ESP_LEFT_ROOM, skb->data, n);
	__skb_pull(skb, ESP_LEFT_ROOM);
	skb->mac_header += ESP_LEFT_ROOM;
	skb->network_header += ESP_LEFT_ROOM;
	((struct esp_wire *)skb_network_header(skb))->ver_hlen = ESP_VERSION << 4 | ESP_HLEN / 4;
}

/* Write the fields in which a segment's header differs from the copied one. */
static void gso_packet(struct sk_buff *skb, u32 pkt_seq, u8 clear,
		       bool by_device)
{
	unsigned int offset = skb_network_offset(skb);
	struct esp_wire *h = (struct esp_wire *)skb_network_header(skb);
	unsigned int hlen = (h->ver_hlen & 15) * 4;

	h->pkt_seq = htonl(pkt_seq);
	h->flags &= ~clear;
	h->len = htons(skb->len - offset - hlen);
	h->csum = 0;
	if (by_device) {
		gso_leave_checksum(skb, offset);
		return;
	}
	skb->ip_summed = CHECKSUM_NONE;
	h->csum = (__force u16)csum_fold(skb_checksum(skb, offset,
						      skb->len - offset, 0));
}

/*
 * Does the device compute checksums? Its feature flag is not reliable, so the entry of the
 * device decides, too: esp_dev_checksums().
 */
static bool gso_checksum_by_device(struct sk_buff *skb, netdev_features_t features)
{
	struct esp_dev *ed = esp_dev_rcu(skb->dev);

	return (features & NETIF_F_HW_CSUM) && ed && READ_ONCE(ed->tx_checksum);
}

/* Segment a GSO packet: the core's callback, under RCU. */
static struct sk_buff *esp_gso_segment(struct sk_buff *skb,
				       netdev_features_t features)
{
	struct sk_buff *segs, *seg;
	struct esp_wire *h;
	unsigned int hlen;
	bool by_device, sg, left;
	u32 pkt_seq;
	u8 flags;

	if (!esp_gso_valid(skb) || !pskb_may_pull(skb, ESP_HLEN))
		return ERR_PTR(-EINVAL);
	hlen = (skb->data[0] & 15) * 4;
	if (hlen < ESP_HLEN || !pskb_may_pull(skb, hlen))
		return ERR_PTR(-EINVAL);
	h = (struct esp_wire *)skb->data;
	/* skb_segment() would look for the first piece of an empty packet */
	if (skb->len != hlen + ntohs(h->len) || !h->len)
		return ERR_PTR(-EINVAL);
	pkt_seq = ntohl(h->pkt_seq);
	flags = h->flags;
	/* a tunnel's headers stand before each segment, and would have to move, too */
	left = gso_has_left(skb->data, hlen) &&
	       !(skb_shinfo(skb)->gso_type & ~(SKB_GSO_SCTP | SKB_GSO_DODGY));
	by_device = gso_checksum_by_device(skb, features);
	/* skb_segment() copies SKB_GSO_DODGY packets */
	sg = (features & NETIF_F_SG) &&
	     !(skb_shinfo(skb)->gso_type & SKB_GSO_DODGY);
	if (skb_has_frag_list(skb) &&
	    !gso_list_uniform(skb, hlen + skb_shinfo(skb)->gso_size, sg) &&
	    skb_linearize(skb))
		return ERR_PTR(-ENOMEM);

	__skb_pull(skb, hlen);
	/* skb_segment() must not compute checksums, or make GSO packets as segments */
	features |= NETIF_F_HW_CSUM;
	features &= ~(NETIF_F_GSO_PARTIAL | NETIF_F_GSO_SCTP);
	segs = skb_segment(skb, features);
	if (IS_ERR(segs))
		return segs;
	for (seg = segs; seg; seg = seg->next) {
		u8 clear = seg == segs ? 0 : ESP_TXS;

		if (seg->next)
			clear |= flags & (ESP_TXF | ESP_EOR);
		else
			esp_devq_move(skb, seg);
		if (left && seg != segs)
			gso_drop_left(seg);
		gso_packet(seg, pkt_seq++, clear, by_device);
	}
	return segs;
}

/* Is the frame's checksum correct? If it is, record the sum for the core, too. */
static bool gro_checksum(struct sk_buff *skb, unsigned int offset)
{
	__wsum sum;

	if (skb->ip_summed == CHECKSUM_PARTIAL)
		return true;	/* from this machine: frame_checksum_good() */
	if (offset)
		return !csum_fold(skb_checksum(skb, offset, skb->len - offset, 0));
	if (skb->ip_summed == CHECKSUM_COMPLETE && !csum_fold(skb->csum))
		return true;
	sum = skb_checksum(skb, 0, skb->len, 0);
	if (csum_fold(sum))
		return false;
	skb->csum = sum;
	skb->ip_summed = CHECKSUM_COMPLETE;
	return true;
}

static bool gro_same_connection(const struct esp_wire *a, const struct esp_wire *b)
{
	return a->sport == b->sport && a->dport == b->dport &&
	       a->cookie == b->cookie;
}

/*
 * GSO packets in GRO that wait for more frames. The count is too high if a device left
 * without completing its packets. No packet may wait when the module removes the callback,
 * because the core could not complete it.
 */
static atomic_t gro_runs;
static bool gro_off;

/* Append @skb, without its header, to @p. */
static void gro_chain(struct sk_buff *p, struct sk_buff *skb)
{
	if (NAPI_GRO_CB(p)->last == p)
		skb_shinfo(p)->frag_list = skb;
	else
		NAPI_GRO_CB(p)->last->next = skb;
	NAPI_GRO_CB(p)->last = skb;
	if (NAPI_GRO_CB(p)->count++ == 1)
		atomic_inc(&gro_runs);
	__skb_header_release(skb);
	p->data_len += skb->len;
	p->truesize += skb->truesize;
	p->len += skb->len;
	skb_shinfo(p)->flags |= skb_shinfo(skb)->flags & SKBFL_SHARED_FRAG;
	NAPI_GRO_CB(skb)->same_flow = 1;
}

/*
 * Append the frame @skb to @p if it continues where @p ends. @h is a copy of the frame's
 * header. @p takes over its fields of the other direction, because they are newer.
 */
static bool gro_append(struct sk_buff *p, struct sk_buff *skb,
		       unsigned int offset, const struct esp_wire *h)
{
	struct esp_wire *ph = (struct esp_wire *)(p->data + offset);
	u32 next = ntohl(ph->pkt_seq) + NAPI_GRO_CB(p)->count;

	if (ntohl(h->pkt_seq) != next || (h->flags & ESP_TXS) ||
	    esp_before(ntohl(h->ts_val), ntohl(ph->ts_val)) ||
	    (ph->flags & (ESP_TXF | ESP_EOR)) ||
	    ntohs(h->len) > skb_shinfo(p)->gso_size ||
	    (NAPI_GRO_CB(p)->count == 1 && READ_ONCE(gro_off)) ||
	    p->len + skb->len > ESP_GSO_MAX || p->pp_recycle != skb->pp_recycle ||
	    skb_zcopy(p) || skb_zcopy(skb))
		return false;
	if (!gro_checksum(skb, offset) ||
	    !pskb_may_pull(skb, offset + ESP_HLEN))
		return false;
	__skb_pull(skb, offset + ESP_HLEN);
	gro_chain(p, skb);
	ph->flags |= h->flags & (ESP_TXF | ESP_EOR);
	ph->grant = h->grant;
	ph->ack_seq = h->ack_seq;
	ph->ts_val = h->ts_val;
	ph->ts_ecr = h->ts_ecr;
	return true;
}

/* Key of the hashes that frames get; set once. */
static siphash_key_t gro_hash_key;

/*
 * Set the hash of a frame, by which RPS chooses a processor, and qdiscs behind a bridge a queue.
 * The core's dissector doesn't know the protocol: to both of them all frames would be one flow.
 * Returns false if the frame has the hash of a flow already, or must get none.
 */
static bool gro_set_hash(struct sk_buff *skb, const struct esp_wire *h)
{
	const u8 *mac = eth_hdr(skb)->h_source;
	u32 hash;

	if (skb->l4_hash || skb->sw_hash || skb->dev->type != ARPHRD_ETHER)
		return false;
	hash = siphash_3u32(get_unaligned((const u32 *)mac),
			    get_unaligned((const u16 *)(mac + sizeof(u32))),
			    (__force u32)h->sport << 16 | (__force u32)h->dport, &gro_hash_key);
	__skb_set_sw_hash(skb, hash ? hash : 1, true);
	return true;
}

/*
 * Has a packet that waits come by the same link as a frame? The core has compared the two, but
 * before the frame had its hash, so that they were different.
 */
static bool gro_same_link(const struct sk_buff *p, const struct sk_buff *skb)
{
	return p->sw_hash && p->hash == skb->hash && p->dev == skb->dev &&
	       !p->slow_gro && !skb->slow_gro &&
	       skb_vlan_tag_present(p) == skb_vlan_tag_present(skb) &&
	       (!skb_vlan_tag_present(p) ||
		(p->vlan_proto == skb->vlan_proto && p->vlan_tci == skb->vlan_tci)) &&
	       !skb_metadata_differs(p, skb) &&
	       !compare_ether_header(skb_mac_header(p), skb_mac_header(skb));
}

/*
 * Merge a received frame with a packet that waits, let it wait, or let it pass. @head has
 * the packets of the same device and source address that wait. A frame that ends a GSO
 * packet, or cannot be part of one, does not wait. The packet that waits for the same
 * connection is delivered first.
 */
static struct sk_buff *esp_gro_receive(struct list_head *head,
				       struct sk_buff *skb)
{
	unsigned int offset = skb_gro_offset(skb);
	struct sk_buff *p, *kept = NULL;
	struct esp_wire *at, h;
	bool full, hashed;

	NAPI_GRO_CB(skb)->flush = 1;
	at = skb_gro_header(skb, offset + ESP_HLEN, offset);
	if (!at)
		return NULL;
	h = *at;
	/* what is in a tunnel, or after a VLAN tag, has the hash of that, or none */
	hashed = !offset && gro_set_hash(skb, &h);
	list_for_each_entry(p, head, list) {
		if (hashed)
			NAPI_GRO_CB(p)->same_flow = gro_same_link(p, skb);
		if (!NAPI_GRO_CB(p)->same_flow)
			continue;
		if (gro_same_connection((struct esp_wire *)(p->data + offset), &h))
			kept = p;
		else
			NAPI_GRO_CB(p)->same_flow = 0;
	}
	if (frame_stands_alone(&h) || skb_is_gso(skb) || skb_has_frag_list(skb) ||
	    skb->destructor ||
	    ntohs(h.len) < ESP_MSS_MIN ||
	    skb->len - offset != ESP_HLEN + ntohs(h.len))
		return kept;

	skb_gro_pull(skb, ESP_HLEN);	/* for gso_size */
	full = !(h.flags & (ESP_TXF | ESP_EOR));
	if (kept && gro_append(kept, skb, offset, &h)) {
		if (!full || ntohs(h.len) < skb_shinfo(kept)->gso_size)
			return kept;
		return NULL;
	}
	/* it may become the first packet of a GSO packet */
	if (full && !READ_ONCE(gro_off) && gro_checksum(skb, offset))
		NAPI_GRO_CB(skb)->flush = 0;
	return kept;
}

static int esp_gro_complete(struct sk_buff *skb, int offset)
{
	struct esp_wire *h = (struct esp_wire *)(skb->data + offset);

	h->len = htons(skb->len - offset - ESP_HLEN);
	h->csum = 0;
	skb_shinfo(skb)->gso_segs = NAPI_GRO_CB(skb)->count;
	skb_shinfo(skb)->gso_type = SKB_GSO_SCTP;
	skb_set_transport_header(skb, offset + ESP_GSO_TRANSPORT);
	gso_leave_checksum(skb, offset);
	atomic_dec(&gro_runs);
	return 0;
}

static struct packet_offload esp_offload = {
	.callbacks = {
		.gso_segment	= esp_gso_segment,
		.gro_receive	= esp_gro_receive,
		.gro_complete	= esp_gro_complete,
	},
};

/**
 * esp_offload_init() - register GSO and GRO for the EtherType
 */
void esp_offload_init(void)
{
	esp_offload.type = esp_ethertype;
	get_random_bytes(&gro_hash_key, sizeof(gro_hash_key));
	dev_add_offload(&esp_offload);
}

/**
 * esp_offload_exit() - unregister GSO and GRO
 *
 * The core completes the packets that wait in GRO at the end of their device's poll, or a
 * little later (gro_flush_timeout). It never completes those of a device that has left.
 */
void esp_offload_exit(void)
{
	int ms;

	WRITE_ONCE(gro_off, true);
	synchronize_net();
	for (ms = 0; atomic_read(&gro_runs) && ms < ESP_GRO_WAIT_MS; ms += 20)
		msleep(20);
	dev_remove_offload(&esp_offload);
}
