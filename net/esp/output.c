// SPDX-License-Identifier: GPL-2.0-only
/*
 * Output engine (seed: "Design of the ESP Output Engine", "Sending Data to
 * the Receiver").
 *
 *   write_queue.c ---> esp_skb_xmit                      packets of the write queue
 *   ------------------------------------------------------------------------
 *   esp_send_ack, esp_send_probe,                          empty packets
 *   esp_send_reset ---> esp_send_empty; esp_send_rrq
 *
 * A grant that another socket's context releases leaves by a path of its own: grant.c.
 */
#include "esp.h"
#include "crc.h"
#include "dev.h"
#include "dev_queue.h"
#include "first_burst.h"
#include "memory.h"
#include "negotiate.h"
#include "offload.h"
#include "output.h"
#include "timer.h"
#include "trace.h"

/*
 * The grant that a frame carries: packets that the peer may send from @recv_seq on, or
 * the advised first burst while no transmission is announced. Because the sender could take
 * one for the other, the grant must fit @recv_seq: a context that reads a recv_seq
 * also reads that its transmission has begun or ended (data_update_recv_seq()).
 */
static u16 frame_grant(struct esp_opt *esp, u32 recv_seq)
{
	u32 edge;

	if (!READ_ONCE(esp->grant.recv_announced))
		return min_t(u32, READ_ONCE(esp->burst_told),
			     esp_grant_room(esp));
	smp_rmb();	/* pairs with esp_ackq_announced() */
	edge = READ_ONCE(esp->grant.edge);
	return esp_after(edge, recv_seq) ?
	       min_t(u32, edge - recv_seq, ESP_GRANT_MOST) : 0;
}

/* Echo the newest ts_val, plus the time for which this end has held it. */
static u32 frame_ts_echo(struct esp_opt *esp, u32 now)
{
	u64 ts = READ_ONCE(esp->ts_recent);

	return (u32)(ts >> 32) + (now - (u32)ts);
}

/* Fill in the fields that every frame of a connection carries. */
static void frame_fill(struct esp_opt *esp, struct esp_frame *f, u8 flags,
		       u16 len, u32 pkt_seq, u32 now)
{
	memset_startat(f, 0, peer_cookie);
	f->version = ESP_VERSION;
	f->busy = len && esp->peer_left && esp_devq_link_busy(&esp->sk);
	f->later = 0;
	f->flags = flags;
	f->opts = 0;
	f->sport = esp->sport;
	f->dport = esp->dport;
	f->cookie = esp->peer_cookie;
	f->pkt_seq = pkt_seq;
	f->ts_val = now + esp->ts_off;
	f->len = len;
	if (flags & ESP_ACK) {
		/* pairs with data_update_recv_seq() */
		f->ack_seq = smp_load_acquire(&esp->recv_seq);
		f->grant = frame_grant(esp, f->ack_seq);
		f->ts_ecr = frame_ts_echo(esp, now);
	} else {
		f->ack_seq = 0;
		f->grant = 0;
		f->ts_ecr = 0;
	}
	if ((flags & ESP_SYN) || READ_ONCE(esp->handshake_unconfirmed)) {
		if (flags == ESP_SYN) {
			f->cookie = 0;
			f->ack_seq = esp->tcp_name >> 32;
			f->ts_ecr = (u32)esp->tcp_name;
		}
		esp_hello(&esp->sk, f);
	} else if (!len && !(flags & ESP_RST) &&
		   ((flags & ESP_TXS) || READ_ONCE(esp->probes) >= ESP_FORGOTTEN ||
		    READ_ONCE(esp->retransmits) >= ESP_FORGOTTEN)) {
		/*
		 * a peer that has lost the connection replies to the cookie: esp_reply_reset().
		 * Another one tells its MSS: esp_ack_asked()
		 */
		f->opts = ESP_HAS(ESP_OPT_COOKIE);
		f->peer_cookie = esp->cookie;
	}
	if (READ_ONCE(esp->crc) && !(flags & (ESP_SYN | ESP_RST)))
		f->opts |= ESP_HAS(ESP_OPT_CRC);
}

/**
 * esp_left_end() - Compute the number after the last packet that the user has given
 * @esp:	connection; its owner calls
 *
 * Return: the number; what sendmsg() has yet to copy counts, in full packets
 */
u32 esp_left_end(const struct esp_opt *esp)
{
	u32 more = min_t(size_t, esp->to_copy, U32_MAX / 2);

	return esp->snd.send_seq + DIV_ROUND_UP(more, esp->mss);
}

/*
 * Tell by ESP_OPT_LEFT that the last packet is before @end, or what the peer was told already,
 * and how many packets of the first burst leave from this one on. @packet: payload of the largest
 * packet of the frame, bytes. The option must leave room for that. In the handshake's echo it
 * takes the place of BURST, which says nothing there if this end has no cap.
 */
static void frame_tell_left(struct esp_opt *esp, struct esp_frame *f, u32 packet, u32 end)
{
	u16 opts = f->opts | ESP_HAS(ESP_OPT_LEFT);
	u32 first = esp->snd.announce_seq + esp->snd.first;

	struct esp_frame with = { .opts = opts };
	bool room;

	sock_owned_by_me(&esp->sk);
	if (!esp->peer_left)
		return;
	if (f->opts & ESP_HAS(ESP_OPT_BURST)) {
		opts &= ~ESP_HAS(ESP_OPT_BURST);
		room = !f->burst;
	} else {
		room = packet + esp_wire_hlen(&with) <= esp->mss + esp_data_hlen(esp);
	}
	/* without the option, the peer takes the end to be as far away as it could tell */
	if (!room || esp_after(end, f->pkt_seq + U16_MAX))
		end = f->pkt_seq + U16_MAX;
	if (esp_after(esp->told_end, end))
		end = esp->told_end;
	esp->told_end = end;
	if (!room)
		return;
	f->opts = opts;
	f->left = end;
	f->first = 0;
	if (esp->snd.announcing && esp_after(first, f->pkt_seq))
		f->first = min_t(u32, first - f->pkt_seq, ESP_FIRST_MAX);
}

/* Allocate a frame with the header @f, and with room for @payload bytes after it. */
static struct sk_buff *frame_alloc(struct sock *sk, const struct esp_frame *f, u16 payload)
{
	unsigned int room = esp_dev_headroom(esp_sk(sk)->dev);
	struct sk_buff *skb;

	skb = alloc_skb(room + ESP_HLEN_MAX + payload, GFP_ATOMIC);
	if (!skb) {
		ESP_INC(sock_net(sk), OutAllocFail);
		return NULL;
	}
	skb_reserve(skb, room);
	esp_wire_build(skb_put(skb, esp_wire_hlen(f)), f);
	esp_skb_classify(skb, sk);
	return skb;
}

/**
 * esp_skb_alloc_sk() - Allocate a packet that never enters the write queue
 * @sk:		socket, connected
 * @flags:	of the header
 * @payload:	bytes that the caller puts after the header (RRQ; SYN: padding)
 * @pkt_seq:	packet number
 *
 * Needs no lock of the socket while the caller holds a reference, because it reads only
 * fields that are fixed, or that are whole in one word.
 *
 * Return: the packet, header built, without checksum; NULL: no memory
 */
struct sk_buff *esp_skb_alloc_sk(struct sock *sk, u8 flags, u16 payload,
				 u32 pkt_seq)
{
	struct esp_frame f;

	frame_fill(esp_sk(sk), &f, flags, flags & ESP_SYN ? 0 : payload, pkt_seq,
		   (u32)esp_now());
	return frame_alloc(sk, &f, payload);
}

/**
 * esp_finish_frame() - Fill in the checksum over header and payload
 * @ed:		device by which it will leave
 * @skb:	frame from the ESP header on; its checksum is zero
 * @len:	bytes to be summed; even
 * @rest:	sum of the bytes after them
 *
 * Fills in the CRC before the checksum, if the header has one.
 */
void esp_finish_frame(struct esp_dev *ed, struct sk_buff *skb,
		      unsigned int len, __wsum rest)
{
	struct esp_wire *h = (struct esp_wire *)skb->data;

	if ((h->ver_hlen & 15) > ESP_HLEN / 4 && skb->data[ESP_HLEN] == ESP_OPT_CRC)
		esp_crc_fill(skb);
	if (esp_dev_checksums(ed)) {
		skb->ip_summed = CHECKSUM_PARTIAL;
		skb->csum_start = skb_headroom(skb);
		skb->csum_offset = offsetof(struct esp_wire, csum);
		return;
	}
	skb->ip_summed = CHECKSUM_NONE;
	h->csum = (__force u16)csum_fold(skb_checksum(skb, 0, len, rest));
}

/* Note that an ACK leaves, on a frame of any kind: none is due any more. */
static void frame_ack_left(struct esp_opt *esp)
{
	esp->ack_seq = esp->recv_seq;
	WRITE_ONCE(esp->ack_pending, 0);
	esp->to_ack = 0;
	esp_timer_clear(esp, ESP_T_ACK);
}

/*
 * Is a packet a whole transmission, and the only one that the socket has? Of such packets one at
 * most is in the device's queue, until the peer has it. So it need not count there, which saves 1 %
 * of a small message's cost.
 */
static bool packet_is_alone(const struct sock *sk, const struct sk_buff *skb)
{
	return (ESP_TX(skb)->flags & ESP_TXF) && ESP_TX(skb)->segs == 1 &&
	       skb_queue_len(&sk->sk_write_queue) == 1 && !esp_has_rate(sk);
}

/* Is there time for a retransmission ESP_LATER_US later, before the user or a sysctl ends it? */
static bool loss_may_wait(const struct esp_opt *esp)
{
	u32 least = 4 * ESP_LATER_US / USEC_PER_MSEC;

	return (!esp->user_timeout_ms || esp->user_timeout_ms >= least) &&
	       READ_ONCE(esp->ns->conf.rto_max_ms) >= (int)least;
}

/*
 * May the ACK of a packet come later, because losses are rare? The users must take turns, or else
 * no data would bring it: data have come since @before, when a packet was sent last. It must be a
 * whole transmission, because others have their ACK at once. Nagle's rule waits for each ACK, and a
 * writer for space on the write queue.
 */
static bool packet_waits(struct sock *sk, const struct sk_buff *skb, u64 before)
{
	const struct esp_opt *esp = esp_sk(sk);

	return esp->peer_later && READ_ONCE(esp->peer->lossless) >= ESP_LOSSLESS &&
	       esp->data_us >= before &&
	       !(~ESP_TX(skb)->flags & (ESP_TXS | ESP_TXF)) && ESP_TX(skb)->segs == 1 &&
	       esp->nodelay && sk_stream_is_writeable(sk) && loss_may_wait(esp);
}

/* Hand a frame with payload to the device, and let it keep its socket until it has left. */
static int owned_xmit(struct sock *sk, struct sk_buff *skb)
{
	struct esp_opt *esp = esp_sk(sk);
	int err;

	esp_devq_own(skb, sk);
	err = esp_dev_xmit(skb, esp->dev, esp->daddr, esp->saddr);
	if (unlikely(err > 0))
		esp_devq_refused(sk);
	return min(err, 0);
}

/**
 * esp_skb_xmit() - Send a buffer of the write queue
 * @sk:		socket; its owner calls
 * @skb:	buffer on the write queue; stays there
 * @again:	true if this is a retransmission
 *
 * Return: 0, ENOMEM or ENETDOWN. A failure counts as sent, because the retransmission
 * timer repairs it as it repairs a loss.
 */
int esp_skb_xmit(struct sock *sk, struct sk_buff *skb, bool again)
{
	struct esp_tx_cb *cb = ESP_TX(skb);
	struct esp_opt *esp = esp_sk(sk);
	struct net *net = sock_net(sk);
	u64 before = esp->sent_at;
	struct esp_frame f;
	struct sk_buff *out;

	sock_owned_by_me(sk);
	esp->sent_at = esp_now();
	cb->sent_us = (u32)esp->sent_at;
	if (skb_cloned(skb))	/* the device still holds an earlier clone */
		out = pskb_copy(skb, GFP_ATOMIC);
	else
		out = skb_clone(skb, GFP_ATOMIC);
	if (!out) {
		ESP_INC(net, OutAllocFail);
		return -ENOMEM;
	}
	frame_fill(esp, &f, cb->flags | ESP_ACK, skb->len, cb->seq, cb->sent_us);
	f.later = !again && packet_waits(sk, skb, before);
	esp->sent_later = f.later;
	/* a single packet that is a whole transmission needs no LEFT */
	if ((cb->flags & ESP_TXS) && !((cb->flags & ESP_TXF) && cb->segs == 1)) {
		if (!again) {
			esp->told_end = cb->seq;
			esp->told_growth = 0;
		}
		/* the peer may have the packet, and would not look at this one */
		frame_tell_left(esp, &f, min_t(u32, skb->len, cb->size),
				again ? cb->seq : esp_left_end(esp));
	}
	if (skb_cow_head(out, esp_dev_headroom(esp->dev) + ESP_HLEN_MAX)) {
		kfree_skb_reason(out, SKB_DROP_REASON_NOMEM);
		ESP_INC(net, OutAllocFail);
		return -ENOMEM;
	}
	esp_wire_build(skb_push(out, esp_wire_hlen(&f)), &f);
	if (cb->segs > 1 || skb_is_gso(out))
		esp_gso_mark(out, cb->size, cb->segs);
	if (cb->segs > 1)
		;	/* each packet gets its checksum when the GSO packet is segmented */
	else if (skb->ip_summed == CHECKSUM_NONE)	/* computed while copying */
		esp_finish_frame(esp->dev, out, esp_wire_hlen(&f), skb->csum);
	else
		esp_finish_frame(esp->dev, out, out->len, 0);
	esp_skb_classify(out, sk);
	frame_ack_left(esp);
	if (again) {
		trace_esp_again(sk, cb->seq, cb->segs);
		cb->retrans = 1;
		esp->stats.retrans += cb->segs;
		ESP_ADD(net, OutRetrans, cb->segs);
	} else {
		if (trace_esp_finish_enabled() && (cb->flags & ESP_TXF))
			trace_esp_finish(sk, cb->seq, cb->segs);
		esp->stats.tx_packets += cb->segs;
		esp->stats.tx_bytes += skb->len;
		ESP_ADD_NS(esp->ns, OutData, cb->segs);
		esp->replies = esp->sent_at - esp->data_us < ESP_LATER_US;
	}
	if (!skb->len || (!again && packet_is_alone(sk, skb))) {	/* a FIN, or small */
		esp_devq_follow(out, sk);
		return min(esp_dev_xmit(out, esp->dev, esp->daddr, esp->saddr), 0);
	}
	return owned_xmit(sk, out);
}

/* Send the bytes @at to before @at + @len of the packet in a buffer; 0 or ENOMEM. */
static int part_xmit(struct sock *sk, struct sk_buff *skb, u32 at, u32 len)
{
	struct esp_tx_cb *cb = ESP_TX(skb);
	struct esp_opt *esp = esp_sk(sk);
	struct esp_frame f;
	struct sk_buff *out;

	frame_fill(esp, &f, cb->flags | ESP_ACK, len, cb->seq, (u32)esp_now());
	f.opts |= ESP_HAS(ESP_OPT_PART);
	f.part_at = at;
	f.part_size = skb->len;
	out = frame_alloc(sk, &f, len);
	if (!out)
		return -ENOMEM;
	if (skb_copy_bits(skb, at, skb_put(out, len), len)) {
		kfree_skb_reason(out, SKB_DROP_REASON_NOMEM);
		return -ENOMEM;
	}
	frame_ack_left(esp);
	ESP_INC(sock_net(sk), OutParts);
	esp_finish_frame(esp->dev, out, out->len, 0);
	owned_xmit(sk, out);
	return 0;
}

/**
 * esp_send_in_parts() - Retransmit a packet that the path does not take as a whole any more
 * @sk:		socket; its owner calls. The peer takes parts: peer_parts
 * @skb:	buffer on the write queue with this packet alone; stays there
 *
 * Rule 9: the packet keeps its number, because the peer may have it. A part that can't be sent now
 * counts as lost. A frame of the handshake has no room for the option.
 */
void esp_send_in_parts(struct sock *sk, struct sk_buff *skb)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_tx_cb *cb = ESP_TX(skb);
	u32 most = esp_packet_max(sk) - ESP_PART_ROOM, at;

	sock_owned_by_me(sk);
	esp->sent_at = esp_now();
	cb->sent_us = (u32)esp->sent_at;
	if (READ_ONCE(esp->handshake_unconfirmed))
		return;
	/* each part is in a page, which there is */
	most = min_t(u32, most, SKB_MAX_ORDER(esp_dev_headroom(esp->dev) + ESP_HLEN_MAX, 0));
	for (at = 0; at < skb->len; at += most)
		if (part_xmit(sk, skb, at, min(most, skb->len - at)))
			return;
	trace_esp_again(sk, cb->seq, 1);
	cb->retrans = 1;
	esp->stats.retrans++;
	ESP_INC(sock_net(sk), OutRetrans);
}

/* Send an empty packet that is not an RRQ; 0 or ENETDOWN. */
static int empty_xmit(struct sock *sk, struct sk_buff *skb)
{
	struct esp_opt *esp = esp_sk(sk);

	frame_ack_left(esp);
	esp->last_ack_us = esp_now();
	esp->stats.tx_empty++;
	ESP_INC_NS(esp->ns, OutEmpty);
	esp_finish_frame(esp->dev, skb, skb->len, 0);
	esp_devq_follow(skb, sk);
	return min(esp_dev_xmit(skb, esp->dev, esp->daddr, esp->saddr), 0);
}

/*
 * Note that the peer is told a new end of the transmission, and that it knew the end @was. The
 * packet that tells it may be lost, or come after packets with higher numbers.
 */
static void left_grown(struct esp_opt *esp, u32 was)
{
	if (!esp->told_growth)
		esp->told_before = was;
	esp->told_growth = 1;
}

/**
 * esp_send_empty() - Build and send an empty packet
 * @sk:		socket; its owner calls
 * @flags:	flags of the header, beside ACK
 * @pkt_seq:	packet number
 */
void esp_send_empty(struct sock *sk, u8 flags, u32 pkt_seq)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 was = esp->told_end;
	struct sk_buff *skb;
	struct esp_frame f;

	sock_owned_by_me(sk);
	if (!esp->grant.recv_announced)
		esp_peer_advise(sk);
	frame_fill(esp, &f, flags | ESP_ACK, 0, pkt_seq, (u32)esp_now());
	if ((flags & ESP_TXS) && sk->sk_send_head) {
		frame_tell_left(esp, &f, 0, esp_left_end(esp));
		if (esp->snd.in_trans && esp_after(esp->told_end, was))
			left_grown(esp, was);
	}
	skb = frame_alloc(sk, &f, 0);
	if (skb)
		empty_xmit(sk, skb);
}

/* Send an ACK of the data that have arrived, with the present grant. */
void esp_send_ack(struct sock *sk)
{
	esp_send_empty(sk, 0, esp_sk(sk)->snd.send_next);
}

/**
 * esp_send_mss() - Tell the peer how large packets the device takes, beside an ACK
 * @sk:	connection beyond the handshake; its owner calls
 *
 * Rule 9: the peer adopts a size that is smaller than what it knows.
 */
void esp_send_mss(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sk_buff *skb;
	struct esp_frame f;

	sock_owned_by_me(sk);
	frame_fill(esp, &f, ESP_ACK, 0, esp->snd.send_next, (u32)esp_now());
	f.opts |= ESP_HAS(ESP_OPT_MSS);
	f.mss = esp_own_mss(esp->dev);
	skb = frame_alloc(sk, &f, 0);
	if (skb && !empty_xmit(sk, skb))
		esp->mss_told = f.mss;
}

/**
 * esp_send_left() - Tell the peer that the write queue has grown, beside an ACK
 * @sk:		connection; its owner calls
 * @end:	number after the last packet, or one beyond it, see esp_frame_end()
 */
void esp_send_left(struct sock *sk, u32 end)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 was = esp->told_end;
	struct sk_buff *skb;
	struct esp_frame f;

	sock_owned_by_me(sk);
	frame_fill(esp, &f, ESP_ACK, 0, esp->snd.send_next, (u32)esp_now());
	frame_tell_left(esp, &f, 0, end);
	skb = frame_alloc(sk, &f, 0);
	if (!skb || empty_xmit(sk, skb)) {
		esp->told_end = was;
		return;
	}
	left_grown(esp, was);
}

/**
 * esp_send_probe() - Ask the peer for an ACK; it answers every TXS at once
 * @sk:	socket; its owner calls
 *
 * While there is data to announce, the probe announces it (again).
 */
void esp_send_probe(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (sk->sk_send_head)
		esp_send_empty(sk, ESP_TXS, esp->snd.send_next);
	else
		esp_send_empty(sk, ESP_TXS, esp->snd.send_next - 1);
}

/**
 * esp_send_reset() - Tell the peer that the connection is gone
 * @sk:		socket
 * @pkt_seq:	number that the peer expects next, as far as this end knows
 */
void esp_send_reset(struct sock *sk, u32 pkt_seq)
{
	ESP_INC(sock_net(sk), OutResets);
	esp_send_empty(sk, ESP_RST, pkt_seq);
}

/* Write the range of missing packets from @from to before @to; returns the number of ranges. */
static u32 rrq_put_range(__be16 *p, u32 ack_seq, u32 from, u32 to)
{
	p[0] = htons(from - ack_seq);
	p[1] = htons(to - from);
	return 1;
}

/**
 * esp_send_rrq() - Request the packets that are missing (rule 19)
 * @sk:		socket; its owner calls
 * @end:	number after the last packet that should have arrived
 */
void esp_send_rrq(struct sock *sk, u32 end)
{
	struct esp_opt *esp = esp_sk(sk);
	__be16 r[2 * ESP_RRQ_RANGES];
	u32 next = esp->recv_seq;
	struct esp_frame f;
	struct sk_buff *skb;
	struct rb_node *n;
	u32 count = 0;

	sock_owned_by_me(sk);
	if (esp_after(end, esp->recv_seq + ESP_SEQ_WINDOW))
		end = esp->recv_seq + ESP_SEQ_WINDOW;
	for (n = rb_first(&esp->ooo); n && count < ESP_RRQ_RANGES; n = rb_next(n)) {
		u32 seq = ESP_RX(rb_to_skb(n))->f.pkt_seq;

		if (!esp_before(seq, end))
			break;
		if (seq != next)
			count += rrq_put_range(r + 2 * count, esp->recv_seq, next, seq);
		next = esp_rx_end(rb_to_skb(n));
	}
	if (count < ESP_RRQ_RANGES && esp_before(next, end))
		count += rrq_put_range(r + 2 * count, esp->recv_seq, next, end);
	if (!count)
		return;
	frame_fill(esp, &f, ESP_ACK | ESP_RRQ, 4 * count, esp->snd.send_next, (u32)esp_now());
	if (esp->rrqs) {	/* what was requested has not come: was it too large? */
		f.opts |= ESP_HAS(ESP_OPT_MSS);
		f.mss = esp_own_mss(esp->dev);
	}
	skb = frame_alloc(sk, &f, 4 * count);
	if (!skb)
		return;
	skb_put_data(skb, r, 4 * count);
	frame_ack_left(esp);
	esp->stats.rrq_tx++;
	ESP_INC(sock_net(sk), OutRRQ);
	trace_esp_rrq_out(sk, esp->recv_seq + ntohs(r[0]), count);
	esp_finish_frame(esp->dev, skb, skb->len, 0);
	esp_devq_follow(skb, sk);
	esp_dev_xmit(skb, esp->dev, esp->daddr, esp->saddr);
}
