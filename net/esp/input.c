// SPDX-License-Identifier: GPL-2.0-only
/*
 * Input: a frame from the device to its socket.
 *
 *   esp_rcv           checks the frame, finds the socket
 *     |  \___ owner busy: backlog
 *   esp_do_rcv        CRC, if the connection has one; listener, handshake, or
 *   connected_rcv     RST, ACK (esp_ack_rcv), RRQ, empty, data (rcv_data.c)
 *     |
 *   write queue shrinks, frames leave
 */
#include <net/busy_poll.h>
#include "esp.h"
#include "ack_send.h"
#include "close.h"
#include "connect.h"
#include "crc.h"
#include "dev.h"
#include "dgram.h"
#include "hash.h"
#include "input.h"
#include "link.h"
#include "negotiate.h"
#include "offload.h"
#include "output.h"
#include "rcv_ack.h"
#include "rcv_data.h"
#include "sock.h"
#include "timer.h"

#define ESP_STALE_PROBES 3	/* unanswered probes before a SYN replaces a connection */
#define ESP_STALE_US	(100 * 1000)	/* least time from the first SYN to that */

static enum skb_drop_reason reset_rcv(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (f->pkt_seq != esp->recv_seq) {
		/*
		 * Genuine perhaps, but outdated. The probe asks the peer for a RST with the right
		 * number, even if the peer has forgotten the connection by now.
		 */
		ESP_INC_BH(esp->ns, InResetsIgnored);
		esp_send_probe(sk);
		return SKB_DROP_REASON_TCP_RESET;
	}
	ESP_INC_BH(esp->ns, InResets);
	switch (sk->sk_state) {
	case TCP_CLOSE_WAIT:
		esp_done(sk, -EPIPE);
		break;
	case TCP_TIME_WAIT:
	case TCP_LAST_ACK:
	case TCP_CLOSING:
		esp_done(sk, 0);
		break;
	default:
		esp_done(sk, esp->handshake_unconfirmed ? -ECONNREFUSED : -ECONNRESET);
	}
	return SKB_CONSUMED;
}

/*
 * Handle a SYN for an existing connection: the peer has forgotten the connection, or
 * an attacker forged the SYN. Probe the peer. If it remembers the connection it answers,
 * and the count starts over (esp_ack_rcv()). Otherwise make room for the new connection.
 */
static void stale_connection(struct sock *sk, struct esp_frame *f, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (f->peer_cookie == esp->peer_cookie)
		return;
	if (!esp->syn_probes)
		esp->syn_since = now;
	if (esp->syn_probes >= ESP_STALE_PROBES &&
	    now - esp->syn_since > ESP_STALE_US + 4 * esp_rto(esp)) {
		esp_done(sk, -ECONNRESET);
		return;
	}
	if (esp->syn_probes < ESP_STALE_PROBES)
		esp->syn_probes++;
	esp_send_probe(sk);
}

/*
 * Handle a SYN or a RST for a connection, or any frame for one that was reset. Not inline: it is
 * rare, and would cost each frame registers.
 */
static noinline enum skb_drop_reason unusual_rcv(struct sock *sk, struct esp_frame *f, u64 now)
{
	sock_owned_by_me(sk);
	if (f->flags & ESP_SYN) {
		if (!(f->flags & ESP_ACK)) {
			stale_connection(sk, f, now);
			return SKB_DROP_REASON_TCP_INVALID_SYN;
		}
		esp_ack_now(sk);	/* our echo was lost */
		return SKB_CONSUMED;
	}
	if (!esp_sk(sk)->rst_linger)
		return reset_rcv(sk, f);
	if (!(f->flags & ESP_RST))
		esp_send_reset(sk, f->ack_seq);
	return SKB_DROP_REASON_TCP_CLOSE;
}

/* Let the ACK queue's budget know of a frame with data. */
static void data_came(struct esp_opt *esp, const struct esp_frame *f, u64 now)
{
	u32 bytes = f->len + f->segs * (f->hlen + ESP_FRAMING);
	u32 rtt = (u32)now + esp->ts_off - f->ts_ecr;

	if (rtt >= ESP_RTT_MAX_US)
		rtt = 0;
	if (esp_ackq_came(&esp->link->ackq, &esp->grant, f->segs, bytes,
			  f->busy && esp->peer_left, rtt, 1000 * now))
		esp_ack_pump(&esp->link->ackq);
}

/*
 * Handle a frame with the right cookie, or a SYN, for a connection beyond the handshake.
 * The socket's lock is held. Consumes @skb.
 */
static void connected_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	enum skb_drop_reason reason = SKB_CONSUMED;
	struct esp_opt *esp = esp_sk(sk);
	u64 now = esp_now();
	bool late;

	sock_owned_by_me(sk);
	if (unlikely((f->flags & (ESP_SYN | ESP_RST)) || esp->rst_linger)) {
		reason = unusual_rcv(sk, f, now);
		goto out;
	}
	if (!esp_ack_valid(esp, f)) {
		ESP_INC_BH(esp->ns, InAckInvalid);
		reason = SKB_DROP_REASON_TCP_ACK_UNSENT_DATA;
		goto out;
	}
	if (unlikely(f->later && !esp->peer_later)) {	/* an older peer's grant has 15 bits */
		f->grant |= ESP_GRANT_LATER;
		f->later = 0;
	}
	sk_mark_napi_id(sk, skb);
	late = esp_overtaken(esp, f, now);
	if (!late)
		WRITE_ONCE(esp->ts_recent, (u64)f->ts_val << 32 | (u32)now);
	if (esp->handshake_unconfirmed) {
		WRITE_ONCE(esp->handshake_unconfirmed, 0);
		esp_timer_clear(esp, ESP_T_CONN);
		esp_start_orphan_timer(sk);
		esp_update_mss(sk);
	}
	if (unlikely(f->opts & ESP_HAS(ESP_OPT_MSS))) {
		esp_mss_rcv(sk, f->mss);
		if (sk->sk_state == TCP_CLOSE || esp->rst_linger)
			goto out;
	}
	esp_ack_rcv(sk, skb, now, late);
	if (sk->sk_state == TCP_CLOSE)
		goto out;
	if (esp_frame_is_empty(f)) {
		esp_empty_rcv(sk, f);
		goto out;
	}
	f->segs = skb_is_gso(skb) && f->len ?
		  DIV_ROUND_UP(f->len, skb_shinfo(skb)->gso_size) : 1;
	/* GRO chains the frames that it merges */
	esp_host_came_whole(esp->grant.host, f->segs > 1 && !skb_has_frag_list(skb) &&
			    skb_headlen(skb) == f->hlen, skb_has_frag_list(skb));
	data_came(esp, f, now);
	esp_data_rcv(sk, skb);
	return;
out:
	sk_skb_reason_drop(sk, skb, reason);
}

/* Handle an echo for a listener, whose lock is held. Not inline: it is rare. Consumes @skb. */
static noinline void listen_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct sock *child;

	sock_owned_by_me(sk);
	/* the backlog runs in process context, and other contexts reach the child */
	local_bh_disable();
	child = esp_listen_rcv(sk, skb);
	if (child) {
		__acquire(&child->sk_lock.slock);	/* for sparse: it comes locked */
		/* nobody owns it: its spinlock has been held since before others could find it */
		connected_rcv(child, skb);
		if (child->sk_state != TCP_CLOSE && !esp_sk(child)->last_ack_us)
			esp_send_ack(child);	/* the first reply */
		bh_unlock_sock(child);
		sock_put(child);
		sk->sk_data_ready(sk);
	}
	local_bh_enable();
}

/*
 * Does the frame satisfy the connection's CRC? If the connection has one, each frame must
 * carry it, except a SYN or a RST, which may be sent without a connection. A CRC that is
 * present must be right. The receiver believes no field under the CRC before this test.
 */
static bool sock_crc_fits(struct sock *sk, struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct esp_opt *esp = esp_sk(sk);

	if (likely(!esp->crc))
		return true;
	if (f->opts & ESP_HAS(ESP_OPT_CRC) ? esp_crc_right(skb) :
	    f->flags & (ESP_SYN | ESP_RST))
		return true;
	ESP_INC_BH(esp->ns, InCRC);
	return false;
}

/* May this frame be for this connection? The connection's cookies are fixed. */
static bool sock_cookie_fits(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);

	return f->flags == ESP_SYN || f->cookie == esp->cookie;
}

static inline void esp_do_rcv(struct sock *sk, struct sk_buff *skb)
{
	sock_owned_by_me(sk);
	if (!sock_crc_fits(sk, skb)) {
		sk_skb_reason_drop(sk, skb, SKB_DROP_REASON_SKB_CSUM);
		return;
	}
	switch (sk->sk_state) {
	case TCP_CLOSE:
		sk_skb_reason_drop(sk, skb, SKB_DROP_REASON_TCP_CLOSE);
		break;
	case TCP_LISTEN:
		listen_rcv(sk, skb);
		break;
	case TCP_SYN_SENT:
		if (!esp_handshake_rcv(sk, skb))
			break;
		connected_rcv(sk, skb);
		if (sk->sk_state != TCP_CLOSE && !esp_sk(sk)->last_ack_us)
			esp_send_ack(sk);	/* the first reply */
		break;
	default:
		/* the frame may have been for the listener that this socket was */
		if (unlikely(!sock_cookie_fits(sk, &ESP_RX(skb)->f))) {
			ESP_INC_BH(esp_sk(sk)->ns, InCookie);
			sk_skb_reason_drop(sk, skb, SKB_DROP_REASON_TCP_INVALID_SEQUENCE);
			break;
		}
		connected_rcv(sk, skb);
	}
}

int esp_backlog_rcv(struct sock *sk, struct sk_buff *skb)
{
	local_bh_disable();	/* as without a backlog */
	esp_do_rcv(sk, skb);
	local_bh_enable();
	return 0;
}

/*
 * Return the backlog's limit in bytes. While the owner works on a backlog, all of it still
 * counts, and the frames taken from it count in the receive queue too: twice the buffer.
 */
static u32 backlog_limit(struct sock *sk)
{
	return min_t(u64, 2ull * READ_ONCE(sk->sk_rcvbuf) + READ_ONCE(sk->sk_sndbuf) + 65536,
		     INT_MAX);
}

/* Hand a frame to the socket, or to its backlog. Takes over the caller's reference. */
static void sock_deliver(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	bh_lock_sock(sk);
	if (!esp_owned(sk)) {
		esp_do_rcv(sk, skb);
	} else if (sk_add_backlog(sk, skb, backlog_limit(sk))) {
		ESP_INC(net, InBacklogDrop);
		sk_skb_reason_drop(sk, skb, SKB_DROP_REASON_SOCKET_BACKLOG);
	}
	bh_unlock_sock(sk);
	sock_put(sk);
}

static const int malformed_mib[] = {
	[ESP_WIRE_SHORT]	= ESP_MIB_InShort,
	[ESP_WIRE_VERSION]	= ESP_MIB_InVersion,
	[ESP_WIRE_HLEN]		= ESP_MIB_InHeaderLength,
	[ESP_WIRE_FLAGS]	= ESP_MIB_InFlags,
	[ESP_WIRE_OPTION]	= ESP_MIB_InOption,
	[ESP_WIRE_PORT]		= ESP_MIB_InPort,
	[ESP_WIRE_RANGE]	= ESP_MIB_InRange,
};

/*
 * Is a frame of an unknown version a SYN or a RST? Take the fields that find a socket
 * and answer a SYN to be where this version has them. A SYN gets one rate-limited RST,
 * and a socket whose own SYN gets such a RST ends with EPROTONOSUPPORT.
 */
static noinline_for_stack bool frame_other_version(struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	u8 version = f->version, copy[ESP_HLEN_MAX];
	unsigned int n = min_t(unsigned int, skb->len, sizeof(copy));

	if (skb_copy_bits(skb, 0, copy, n))
		return false;
	copy[0] = ESP_VERSION << 4 | (copy[0] & 15);
	if (esp_wire_parse(copy, n, skb->len, f))
		return false;
	f->version = version;
	return f->flags == ESP_SYN || (f->flags & ESP_RST);
}

/*
 * Is the checksum right? A frame whose checksum a sender on the same host left to the
 * device has not been on a wire. A NIC's sum of the whole frame helps. A NIC's word that
 * the frame is good doesn't, because the NIC doesn't know ESP.
 */
static bool frame_checksum_good(struct sk_buff *skb)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		return true;
	if (skb->ip_summed == CHECKSUM_COMPLETE && !csum_fold(skb->csum))
		return true;
	return !csum_fold(skb_checksum(skb, 0, skb->len, 0));
}

/* Parse and check the header; return why to drop the frame, which is counted, or 0. */
static enum skb_drop_reason frame_malformed(struct net *net, struct esp_dev *ed,
					    struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	enum esp_malformed bad = ESP_WIRE_SHORT;
	unsigned int hlen;

	if (pskb_may_pull(skb, ESP_HLEN)) {
		hlen = clamp_t(unsigned int, (skb->data[0] & 15) * 4, ESP_HLEN,
			       ESP_HLEN_MAX);
		if (pskb_may_pull(skb, hlen))
			bad = esp_wire_parse(skb->data, skb_headlen(skb),
					     skb->len, f);
	}
	if (bad) {
		SNMP_INC_STATS(esp_net(net)->mib, malformed_mib[bad]);
		if (bad == ESP_WIRE_SHORT)
			return SKB_DROP_REASON_PKT_TOO_SMALL;
		if (bad != ESP_WIRE_VERSION || !frame_other_version(skb))
			return SKB_DROP_REASON_IP_INHDR;
	}
	if (skb_is_gso(skb) && !esp_gso_valid(skb)) {
		ESP_INC(net, InBadGso);
		return SKB_DROP_REASON_SKB_BAD_GSO;
	}
	if (f->flags & ESP_SYN)
		f->read = min_t(unsigned int, skb->len, U16_MAX);
	if (pskb_trim_rcsum(skb, f->hlen + f->len))
		return SKB_DROP_REASON_NOMEM;
	if (!frame_checksum_good(skb)) {
		ESP_INC(net, InChecksum);
		return SKB_DROP_REASON_SKB_CSUM;
	}
	if (is_multicast_ether_addr(eth_hdr(skb)->h_source)) {
		ESP_INC(net, InGroupSource);
		return SKB_DROP_REASON_MAC_INVALID_SOURCE;
	}
	if (skb->pkt_type != PACKET_HOST && !esp_frame_is_dgram(f)) {
		ESP_INC(net, InGroupSource);
		return SKB_DROP_REASON_UNICAST_IN_L2_MULTICAST;
	}
	if (f->version != ESP_VERSION && f->flags == ESP_SYN) {
		esp_reply_reset(net, ed, skb);
		return SKB_DROP_REASON_IP_INHDR;
	}
	return SKB_NOT_DROPPED_YET;
}

/*
 * End a connection in TIME_WAIT, and return true, if a SYN of a new one has come. Both
 * ends have received everything, and the peer has forgotten the old connection.
 */
static bool time_wait_over(struct sock *sk, struct esp_frame *f)
{
	bool over = false;

	if (f->flags != ESP_SYN || READ_ONCE(sk->sk_state) != TCP_TIME_WAIT)
		return false;
	bh_lock_sock(sk);
	if (!esp_owned(sk) && sk->sk_state == TCP_TIME_WAIT &&
	    f->peer_cookie != esp_sk(sk)->peer_cookie) {
		esp_done(sk, 0);
		over = true;
	}
	bh_unlock_sock(sk);
	return over;
}

/* Find the socket of a frame of the reliable types. Consumes @skb. */
static void esp_stream_rcv(struct net *net, struct esp_dev *ed,
			   struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct sock *sk;

	sk = esp_lookup(net, ed->ifindex, f->dport, f->sport,
			eth_hdr(skb)->h_source);
	if (sk && time_wait_over(sk, f)) {
		sock_put(sk);
		sk = NULL;
	}
	if (sk) {
		if (sock_cookie_fits(sk, f)) {
			sock_deliver(net, sk, skb);
			return;
		}
		if (f->flags & ESP_RST) {
			ESP_INC(net, InResetsIgnored);
			sk_skb_reason_drop(sk, skb, SKB_DROP_REASON_TCP_RESET);
		} else {
			ESP_INC(net, InCookie);
			sk_skb_reason_drop(sk, skb, SKB_DROP_REASON_TCP_INVALID_SEQUENCE);
		}
		sock_put(sk);
		return;
	}
	sk = esp_lookup_listener(net, ed->ifindex, f->dport);
	if (sk) {
		if (esp_listen_answer(sk, ed, skb))
			sock_put(sk);
		else
			sock_deliver(net, sk, skb);
		return;
	}
	ESP_INC(net, InNoSocket);
	esp_reply_reset(net, ed, skb);
	sk_skb_reason_drop(NULL, skb, SKB_DROP_REASON_NO_SOCKET);
}

/**
 * esp_rcv() - receive a frame, as the packet handler of the EtherType
 * @skb:	frame; its data begins after the Ethernet header
 * @dev:	device that received it
 * @pt:		packet type of ESP
 * @orig_dev:	lowest device
 *
 * Context: softirq, RCU read side.
 * Return: NET_RX_SUCCESS or NET_RX_DROP
 */
int esp_rcv(struct sk_buff *skb, struct net_device *dev,
	    struct packet_type *pt, struct net_device *orig_dev)
{
	enum skb_drop_reason reason = SKB_DROP_REASON_OTHERHOST;
	struct net *net = dev_net(dev);
	struct esp_dev *ed;

	if (skb->pkt_type == PACKET_OTHERHOST || skb->pkt_type == PACKET_LOOPBACK)
		goto drop;
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return NET_RX_DROP;
	skb_clear_delivery_time(skb);	/* a sender on the same host has set it (SO_TXTIME) */
	/* copy the memory that a sender on the same host has lent */
	if (skb_orphan_frags_rx(skb, GFP_ATOMIC)) {
		ESP_INC(net, InMemDrop);
		reason = SKB_DROP_REASON_NOMEM;
		goto drop;
	}
	ed = esp_dev_rcu(dev);
	if (!ed || !READ_ONCE(ed->enabled)) {
		ESP_INC(net, InDevDisabled);
		reason = SKB_DROP_REASON_UNHANDLED_PROTO;
		goto drop;
	}
	if (skb_is_gso(skb)) {
		ESP_ADD_BH(ed->ns, InFrames,
			   max_t(u32, skb_shinfo(skb)->gso_segs, 1));
		ESP_INC_BH(ed->ns, InGsoFrames);
	} else {
		ESP_INC_BH(ed->ns, InFrames);
	}
	skb_orphan(skb);
	skb->skb_iif = dev->ifindex;
	reason = frame_malformed(net, ed, skb);
	if (reason)
		goto drop;
	if (esp_frame_is_dgram(&ESP_RX(skb)->f))
		esp_dgram_rcv(net, ed, skb);
	else
		esp_stream_rcv(net, ed, skb);
	return NET_RX_SUCCESS;
drop:
	sk_skb_reason_drop(NULL, skb, reason);
	return NET_RX_DROP;
}
