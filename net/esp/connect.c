// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handshake.
 *
 *   client                                 listener (no state before the echo)
 *   SYN        cookie 0, own cookie C  -->
 *              <--  SYN|ACK  cookie C, own cookie S = hash(MACs, ports, device,
 *                            C, first burst, type, features, time),
 *                            grant = first burst
 *   connected
 *   ACK, data  cookie S, C, MSS, type, first burst  -->  S is right: a child
 *   (the echo, until the first reply; with a CRC it has no room for the type)
 *              <--  ACK                    connected, in the accept queue
 *
 * Each side's first packet number follows from its cookie (esp_isn()). So the
 * first frame of the echo that arrives makes the child, whichever it is.
 */
#include "esp.h"
#include "close.h"
#include "connect.h"
#include "cookie.h"
#include "crc.h"
#include "dev.h"
#include "first_burst.h"
#include "hash.h"
#include "memory.h"
#include "negotiate.h"
#include "output.h"
#include "sock.h"
#include "tcp.h"
#include "timer.h"

#define ESP_SYN_RTO_US		(20 * 1000)	/* of the first SYN; then doubled */
#define ESP_SYN_RTO_MAX_US	(1000 * 1000)
#define ESP_SYN_LARGE		3	/* SYNs of full size before small ones */
#define ESP_PROBE_MTU		16384
#define ESP_RESET_US		(10 * 1000)	/* interval of ESP_RESETS */
#define ESP_RESETS		100		/* most RSTs without a socket in it */

/* Set the fields that depend on the socket's own cookie; both sides do. */
static void conn_init_numbers(struct sock *sk)
{
	const struct esp_conf *conf = &esp_sk(sk)->ns->conf;
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	esp_window_init(&esp->snd, esp_isn(esp->cookie));
	esp->rrq_credit = ESP_RRQ_CREDIT;
	esp->rrq_una = esp->snd.una_seq;
	esp->snd.initial = esp->user_initial != -2 ? esp->user_initial :
			   READ_ONCE(conf->esp_initial_ack_burst_length);
	esp_set_burst(sk);
	esp->ts_off = esp_ts_offset(esp->cookie);
}

/* Note what the peer's frames may be sent, by the features that both ends have. */
static void conn_learn_features(struct esp_opt *esp, u8 features)
{
	esp->peer_parts = !!(features & ESP_FEATURE_PARTS);
	esp->peer_left = !!(features & ESP_FEATURE_LEFT);
	esp->peer_later = !!(features & ESP_FEATURE_LATER);
}

/* Set the fields that depend on the peer's handshake frame. */
static void conn_learn_peer(struct sock *sk, const struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	WRITE_ONCE(esp->peer_cookie, f->peer_cookie);
	esp->peer_mss = max_t(u32, f->mss, ESP_MSS_MIN);
	esp->agreed_burst = esp_own_burst(sk);
	if (f->opts & ESP_HAS(ESP_OPT_BURST))
		esp->agreed_burst = min_not_zero(esp->agreed_burst, f->burst);
	esp_set_burst(sk);
	esp->recv_seq = esp_isn(f->peer_cookie) + 1;
	esp->ack_seq = esp->recv_seq;
	esp->queue_acked_seq = esp->recv_seq;
	esp->ooo_high = esp->recv_seq;
	esp_grant_init(&esp->grant, esp->recv_seq);
	esp->grant.host = &esp->peer->host;
	esp->mss_told = esp_own_mss(esp->dev);
	esp->grant.rcv_est = SKB_TRUESIZE(esp->mss_told + ESP_HLEN_MAX);
	esp_update_mss(sk);
}

static void conn_start_timer(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	esp->conn_tries = 0;
	esp_timer_set(esp, ESP_T_CONN, esp_now() + ESP_SYN_RTO_US);
}

/*
 * Return the size to which a handshake's frames are padded, or 0. Rule 9: if the MTU
 * allows frames larger than every switch takes, they are padded to the MTU until
 * ESP_SYN_LARGE of them are lost. An MTU above ESP_PROBE_MTU isn't meant for switches.
 */
static int syn_probe_size(int mtu)
{
	return mtu > ETH_DATA_LEN && mtu <= ESP_PROBE_MTU ? mtu : 0;
}

/* Reset the state that an earlier connection of this socket has left. */
static void conn_forget(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	__skb_queue_purge(&sk->sk_receive_queue);
	esp_purge_ooo(esp);
	esp->fin_queued = 0;
	esp->fin_rcvd = 0;
	WRITE_ONCE(esp->rcv_bytes, 0);
	esp->rcv_records = 0;
	esp->rcv_discard = 0;
	esp->advertise_any = 0;
	esp->to_ack = 0;
	esp->ack_pending = 0;
	WRITE_ONCE(esp->retransmits, 0);
	esp->probes = 0;
	esp->probe_tries = 0;
	esp->keep_probes = 0;
	esp->syn_probes = 0;
	esp->expiries = 0;
	esp->rrqs = 0;
	esp->last_ack_us = 0;
	esp->sent_later = 0;
	esp->replies = 0;
	esp->data_us = 0;
	WRITE_ONCE(esp->crc, 0);
	esp->late_cap = 0;
	esp_grant_init(&esp->grant, 0);
}

/*
 * Set the cookie, and the hash by which a device's queue, and a scheduler that shares
 * a link, identify the connection. Strangers may learn some bits of the hash, so it must not
 * reveal the cookie.
 */
static void conn_set_cookie(struct sock *sk, u32 cookie)
{
	sock_owned_by_me(sk);
	esp_sk(sk)->cookie = cookie;
	WRITE_ONCE(sk->sk_txhash,
		   (u32)siphash_1u32(cookie, &esp_sk(sk)->ns->secret) ?: 1);
	WRITE_ONCE(sk->sk_hash, sk->sk_txhash);	/* fq tells a new socket at an old address by it */
}

/**
 * esp_connect_start() - start a connection, but leave the SYN to the caller
 * @sk:	socket with device, addresses and the peer's port; its owner calls. If it has no port
 *	of its own, it gets one that is free for this peer
 *
 * Return: 0 or what connect() is to return
 */
int esp_connect_start(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	int err;

	sock_owned_by_me(sk);
	do {
		conn_set_cookie(sk, get_random_u32());
	} while (!esp->cookie);
	esp->peer_cookie = 0;
	esp->peer_mss = 0;
	esp->agreed_burst = 0;
	esp->accepted = 0;
	esp->handshake_unconfirmed = 0;
	esp->burst_told = 0;
	esp->path_small = 0;
	esp->conn_tries = 0;
	conn_forget(sk);
	memset(&esp->rtt, 0, sizeof(esp->rtt));
	conn_init_numbers(sk);
	err = esp_peer_get(sk);
	if (err)
		return err;
	esp_update_mss(sk);
	esp_set_state(sk, TCP_SYN_SENT);
	err = esp->port ? esp_hash(sk) : esp_hash_any_port(sk);
	if (err) {
		esp_set_state(sk, TCP_CLOSE);
		return err;
	}
	ESP_INC(sock_net(sk), ActiveOpens);
	conn_start_timer(sk);
	return 0;
}

/**
 * esp_send_syn() - send a SYN
 * @sk:	socket; its lock is held
 */
void esp_send_syn(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	int pad = syn_probe_size(esp_dev_mtu(esp->dev));
	struct sk_buff *skb;

	sock_owned_by_me(sk);
	if (pad && esp->conn_tries >= ESP_SYN_LARGE)
		esp->path_small = 1;
	if (esp->path_small)
		pad = 0;
	skb = esp_skb_alloc_sk(sk, ESP_SYN, pad, esp_isn(esp->cookie));
	if (!skb)
		return;
	esp_finish_frame(esp->dev, skb, skb->len, 0);
	if (pad)
		skb_put_zero(skb, pad - skb->len);
	esp_dev_xmit(skb, esp->dev, esp->daddr, esp->saddr);
}

static void conn_established(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	esp_timer_clear(esp, ESP_T_CONN);
	esp->progress_us = esp_now();
	esp_set_state(sk, TCP_ESTABLISHED);
	sk->sk_state_change(sk);
	sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
	esp_start_keepalive(sk);
}

static void conn_remember_ts(struct esp_opt *esp, const struct esp_frame *f, u64 now)
{
	WRITE_ONCE(esp->ts_recent, (u64)f->ts_val << 32 | (u32)now);
}

static void conn_sample_rtt(struct esp_opt *esp, const struct esp_frame *f,
			    u64 now)
{
	u32 rtt = (u32)now + esp->ts_off - f->ts_ecr;

	if (rtt < ESP_RTT_MAX_US)
		esp_rtt_sample(&esp->rtt, rtt);
}

/* Client: handle a SYN|ACK, which has to carry our cookie. */
static enum skb_drop_reason syn_acked(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 now = esp_now();

	sock_owned_by_me(sk);
	if (f->cookie != esp->cookie || f->ack_seq != esp->snd.una_seq ||
	    f->pkt_seq != esp_isn(f->peer_cookie)) {
		ESP_INC(sock_net(sk), InCookie);
		return SKB_DROP_REASON_TCP_INVALID_SEQUENCE;
	}
	if (f->type != sk->sk_type) {
		ESP_INC(sock_net(sk), TypeMismatch);
		esp_done(sk, -ECONNREFUSED);
		return SKB_DROP_REASON_NO_SOCKET;
	}
	if (esp->tcp_name && !(f->features & ESP_FEATURE_TCP)) {
		ESP_INC(sock_net(sk), TcpMismatch);
		esp_done(sk, -ECONNREFUSED);
		return SKB_DROP_REASON_NO_SOCKET;
	}
	WRITE_ONCE(esp->crc, !!(f->features & ESP_FEATURE_CRC32C));
	conn_learn_features(esp, f->features);
	esp->handshake_unconfirmed = 1;
	esp->syn_advice = f->grant;
	esp->snd.advice = f->grant;
	esp->opened_at = now;
	conn_learn_peer(sk, f);
	conn_remember_ts(esp, f, now);
	conn_sample_rtt(esp, f, now);
	conn_established(sk);
	conn_start_timer(sk);
	esp_send_ack(sk);
	return SKB_CONSUMED;
}

/* Send a reply built without a connection's socket: a listener's SYN|ACK, or a RST. */
static void handshake_reply(struct net *net, struct esp_dev *ed, struct sk_buff *skb,
			    struct esp_frame *f, unsigned int pad)
{
	unsigned int room = esp_dev_headroom(ed), hlen = esp_wire_hlen(f);
	unsigned int len = max(hlen, pad);
	struct sk_buff *out = alloc_skb(room + len, GFP_ATOMIC);
	u8 *data;

	if (!out) {
		ESP_INC(net, OutAllocFail);
		return;
	}
	skb_reserve(out, room);
	data = skb_put(out, hlen);
	esp_wire_build(data, f);
	((struct esp_wire *)data)->csum =
		(__force u16)csum_fold(csum_partial(data, hlen, 0));
	skb_put_zero(out, len - hlen);
	esp_dev_xmit(out, ed, eth_hdr(skb)->h_source, NULL);
}

/*
 * Handle a SYN in SYN_SENT: both ends called connect(), and their SYNs crossed. Answer as a
 * listener does, and keep nothing, because whoever knows the ports can send a SYN. The peer's
 * SYN|ACK, or its echo, will connect, because they have our cookie.
 */
static enum skb_drop_reason syn_crossed(struct sock *sk, struct sk_buff *skb)
{
	struct esp_frame *in = &ESP_RX(skb)->f;
	struct esp_opt *esp = esp_sk(sk);
	struct esp_frame f = {
		.version	= ESP_VERSION,
		.flags		= ESP_SYN | ESP_ACK,
		.sport		= esp->sport,
		.dport		= esp->dport,
		.cookie		= in->peer_cookie,
		.pkt_seq	= esp_isn(esp->cookie),
		.ack_seq	= in->pkt_seq + 1,
		.ts_val		= (u32)esp_now() + esp->ts_off,
		.ts_ecr		= in->ts_val,
	};

	sock_owned_by_me(sk);
	if (!in->peer_cookie || in->pkt_seq != esp_isn(in->peer_cookie)) {
		ESP_INC(sock_net(sk), InCookie);
		return SKB_DROP_REASON_TCP_INVALID_SEQUENCE;
	}
	if (in->type != sk->sk_type) {
		ESP_INC(sock_net(sk), TypeMismatch);
		return SKB_DROP_REASON_NO_SOCKET;
	}
	/* a client with ESP_TCP_DEST takes no answer from another client */
	if (esp->tcp_name || (in->features & ESP_FEATURE_TCP)) {
		ESP_INC(sock_net(sk), TcpMismatch);
		return SKB_DROP_REASON_NO_SOCKET;
	}
	ESP_INC(sock_net(sk), SimultaneousOpens);
	esp_hello(sk, &f);
	f.features = esp_agree(f.features, in->features);
	f.grant = esp_link_handshake(esp->dev);
	handshake_reply(sock_net(sk), esp->dev, skb, &f,
			syn_probe_size(min_t(int, in->read, esp_dev_mtu(esp->dev))));
	return SKB_CONSUMED;
}

/*
 * Handle an echo in SYN_SENT: SYNs crossed, and our SYN|ACK has come to the peer, whose own was
 * lost. Returns 0 if the socket is connected now, or why the frame is dropped.
 */
static enum skb_drop_reason syn_echoed(struct sock *sk, struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct esp_opt *esp = esp_sk(sk);
	bool crc = f->opts & ESP_HAS(ESP_OPT_CRC);
	u8 must = ESP_HAS_HELLO & ~(crc ? ESP_HAS(ESP_OPT_TYPE) : 0);

	sock_owned_by_me(sk);
	/* a client with ESP_TCP_DEST sends no SYN|ACK: syn_crossed() */
	if (f->cookie != esp->cookie || (f->opts & must) != must ||
	    f->ack_seq != esp->snd.una_seq || esp->tcp_name) {
		ESP_INC(sock_net(sk), InCookie);
		return SKB_DROP_REASON_TCP_INVALID_SEQUENCE;
	}
	if (crc ? !esp_crc_right(skb) : esp->user_crc) {
		ESP_INC(sock_net(sk), InCRC);
		return SKB_DROP_REASON_SKB_CSUM;
	}
	WRITE_ONCE(esp->crc, crc);
	/* with a CRC the echo has no room to tell it */
	conn_learn_features(esp, crc ? 0 : f->features);
	conn_learn_peer(sk, f);
	conn_remember_ts(esp, f, esp_now());
	conn_established(sk);
	return SKB_NOT_DROPPED_YET;
}

/**
 * esp_handshake_rcv() - handle a frame for a socket in SYN_SENT
 * @sk:		socket; its lock is held
 * @skb:	frame; consumed unless the function returns true
 *
 * Return: true if the socket is connected now, and is to receive @skb
 */
bool esp_handshake_rcv(struct sock *sk, struct sk_buff *skb)
{
	enum skb_drop_reason reason = SKB_CONSUMED;
	struct esp_opt *esp = esp_sk(sk);
	struct esp_frame *f = &ESP_RX(skb)->f;

	sock_owned_by_me(sk);
	if (f->flags & ESP_RST) {
		if (f->cookie == esp->cookie && f->ack_seq == esp->snd.una_seq) {
			ESP_INC(sock_net(sk), InResets);
			esp_done(sk, f->version == ESP_VERSION ?
				 -ECONNREFUSED : -EPROTONOSUPPORT);
		} else {
			ESP_INC(sock_net(sk), InResetsIgnored);
			reason = SKB_DROP_REASON_TCP_RESET;
		}
	} else if (f->flags == (ESP_SYN | ESP_ACK)) {
		reason = syn_acked(sk, f);
	} else if (f->flags == ESP_SYN) {
		reason = syn_crossed(sk, skb);
	} else {
		reason = syn_echoed(sk, skb);
		if (!reason)
			return true;
	}
	sk_skb_reason_drop(sk, skb, reason);
	return false;
}

/* May a RST be sent? At most ESP_RESETS in ESP_RESET_US; a lost update allows one more. */
static bool reset_allowed(struct esp_net *en)
{
	u64 now = esp_now();

	if (now - READ_ONCE(en->reset_since) >= ESP_RESET_US) {
		WRITE_ONCE(en->reset_since, now);
		WRITE_ONCE(en->resets, 0);
	}
	if (READ_ONCE(en->resets) >= ESP_RESETS)
		return false;
	WRITE_ONCE(en->resets, en->resets + 1);
	return true;
}

/**
 * esp_reply_reset() - tell a peer by RST that there is no socket
 * @net:	namespace
 * @ed:		device
 * @skb:	its frame, parsed; must carry the peer's cookie
 */
void esp_reply_reset(struct net *net, struct esp_dev *ed, struct sk_buff *skb)
{
	struct esp_frame *in = &ESP_RX(skb)->f;
	struct esp_frame f = {
		.version	= ESP_VERSION,
		.flags		= ESP_RST | ESP_ACK,
		.sport		= in->dport,
		.dport		= in->sport,
		.cookie		= in->peer_cookie,
		.pkt_seq	= in->ack_seq,
		.ack_seq	= in->pkt_seq + !!(in->flags & ESP_SYN),
		.ts_ecr		= in->ts_val,
	};
	struct sock *sk;

	if ((in->flags & ESP_RST) || !(in->opts & ESP_HAS(ESP_OPT_COOKIE)))
		return;
	/*
	 * The sender of a SYN|ACK keeps nothing that a RST could end. But a forged SYN makes a
	 * connecting host send one to us, and would use our RST to refuse that host.
	 */
	if (in->flags == (ESP_SYN | ESP_ACK))
		return;
	/* check the CRC whatever socket the frame is for */
	if ((in->opts & ESP_HAS(ESP_OPT_CRC)) && !esp_crc_right(skb)) {
		ESP_INC(net, InCRC);
		return;
	}
	if (!reset_allowed(esp_net(net)))
		return;
	/* a socket that moved to another bucket may have led the first lookup astray */
	sk = esp_lookup(net, ed->ifindex, in->dport, in->sport, eth_hdr(skb)->h_source);
	if (sk) {
		sock_put(sk);
		return;
	}
	ESP_INC(net, OutResets);
	handshake_reply(net, ed, skb, &f, 0);
}

/* Answer a SYN for a listener, which isn't locked, and keep no state. */
static enum skb_drop_reason listen_syn(struct sock *sk, struct esp_dev *ed, struct sk_buff *skb)
{
	struct esp_frame *in = &ESP_RX(skb)->f;
	struct net *net = sock_net(sk);
	struct esp_frame f = {
		.version	= ESP_VERSION,
		.flags		= ESP_SYN | ESP_ACK,
		.sport		= in->dport,
		.dport		= in->sport,
		.cookie		= in->peer_cookie,
		.ack_seq	= in->pkt_seq + 1,
		.opts		= ESP_HAS_HELLO | ESP_HAS(ESP_OPT_FEATURES) |
				  ESP_HAS(ESP_OPT_BURST),
		.type		= sk->sk_type,
		.ts_ecr		= in->ts_val,
	};
	u8 own = ESP_FEATURES_KNOWN;

	/* its owner may set another option just now, in the same word */
	if (data_race(!esp_sk(sk)->user_crc))
		own &= ~ESP_FEATURE_CRC32C;
	f.features = esp_agree(own, in->features);
	if (!in->peer_cookie || in->pkt_seq != esp_isn(in->peer_cookie)) {
		ESP_INC(net, InCookie);
		return SKB_DROP_REASON_TCP_INVALID_SEQUENCE;
	}
	if (in->type != sk->sk_type) {
		ESP_INC(net, TypeMismatch);
		esp_reply_reset(net, ed, skb);
		return SKB_DROP_REASON_NO_SOCKET;
	}
	if ((in->features & ESP_FEATURE_TCP) &&
	    !esp_tcp_accepts(sk, skb->dev, esp_frame_name(in))) {
		ESP_INC(net, TcpMismatch);
		esp_reply_reset(net, ed, skb);
		return SKB_DROP_REASON_NO_SOCKET;
	}
	if (sk_acceptq_is_full(sk)) {
		ESP_INC(net, ListenOverflows);
		if (in->features & ESP_FEATURE_TCP)	/* TCP's queue may have room */
			esp_reply_reset(net, ed, skb);
		return SKB_DROP_REASON_TCP_LISTEN_OVERFLOW;
	}
	f.grant = esp_link_handshake(ed);
	f.peer_cookie = esp_listen_cookie(sk, ed->ifindex, eth_hdr(skb), in, f.grant, f.features,
					  esp_cookie_slot());
	f.pkt_seq = esp_isn(f.peer_cookie);
	f.ts_val = (u32)esp_now() + esp_ts_offset(f.peer_cookie);
	f.mss = esp_own_mss(ed);
	f.burst = esp_own_burst(sk);
	f.to_ack = esp_packets_to_ack(sk);
	/* as large as the peer's SYN, to probe this direction too; never larger */
	handshake_reply(net, ed, skb, &f,
			syn_probe_size(min_t(int, in->read, esp_dev_mtu(ed))));
	return SKB_CONSUMED;
}

/* Copy the options that accept()ed sockets inherit, as TCP's do. */
static void child_inherit(struct sock *child, struct sock *sk)
{
	struct esp_opt *c = esp_sk(child), *l = esp_sk(sk);

	child->sk_rcvbuf = READ_ONCE(sk->sk_rcvbuf);
	child->sk_sndbuf = READ_ONCE(sk->sk_sndbuf);
	child->sk_userlocks = sk->sk_userlocks;
	child->sk_priority = READ_ONCE(sk->sk_priority);
	child->sk_mark = READ_ONCE(sk->sk_mark);
	child->sk_rcvlowat = READ_ONCE(sk->sk_rcvlowat);
	child->sk_rcvtimeo = READ_ONCE(sk->sk_rcvtimeo);
	child->sk_sndtimeo = READ_ONCE(sk->sk_sndtimeo);
	child->sk_lingertime = READ_ONCE(sk->sk_lingertime);
	child->sk_reuse = sk->sk_reuse;
	child->sk_uid = sk->sk_uid;
#ifdef CONFIG_NET_RX_BUSY_POLL
	child->sk_ll_usec = READ_ONCE(sk->sk_ll_usec);
	child->sk_prefer_busy_poll = READ_ONCE(sk->sk_prefer_busy_poll);
	child->sk_busy_poll_budget = READ_ONCE(sk->sk_busy_poll_budget);
#endif
	child->sk_max_pacing_rate = READ_ONCE(sk->sk_max_pacing_rate);
	child->sk_pacing_rate = READ_ONCE(sk->sk_pacing_rate);
	sock_valbool_flag(child, SOCK_LINGER, sock_flag(sk, SOCK_LINGER));
	sock_valbool_flag(child, SOCK_KEEPOPEN, sock_flag(sk, SOCK_KEEPOPEN));
	sock_valbool_flag(child, SOCK_ZEROCOPY, sock_flag(sk, SOCK_ZEROCOPY));
	c->user_mss = l->user_mss;
	c->nodelay = l->nodelay;
	c->cork = l->cork;
	c->user_crc = l->user_crc;
	c->user_burst = l->user_burst;
	c->late_cap = l->late_cap;
	c->user_initial = l->user_initial;
	c->user_to_ack = l->user_to_ack;
	c->user_timeout_ms = l->user_timeout_ms;
	c->keep_idle = l->keep_idle;
	c->keep_intvl = l->keep_intvl;
	c->keep_cnt = l->keep_cnt;
	security_sk_clone(sk, child);
}

/*
 * Make @child the connection of a genuine echo. The locks of the listener and of the
 * child are held; other contexts reach the child from esp_dev_link() on. Returns false if
 * the child was destroyed, except for the caller's reference.
 */
static bool child_make(struct sock *sk, struct sock *child, struct esp_dev *ed,
		       struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct esp_opt *esp = esp_sk(child);
	u8 mac[ETH_ALEN] __aligned(2);
	u64 now;

	sock_owned_by_me(child);
	sock_owned_by_me(sk);
	child_inherit(child, sk);
	esp->sport = f->dport;
	esp->dport = f->sport;
	ether_addr_copy(esp->daddr, eth_hdr(skb)->h_source);
	ether_addr_copy(esp->saddr, eth_hdr(skb)->h_dest);
	conn_set_cookie(child, f->cookie);
	esp->accepted = 1;
	esp->crc = !!(f->opts & ESP_HAS(ESP_OPT_CRC));
	conn_learn_features(esp, f->features);	/* listen_check_echo() */
	esp->burst_told = f->advice;
	refcount_inc(&ed->ref);
	esp->ifindex = ed->ifindex;
	child->sk_bound_dev_if = ed->ifindex;
	/* a device that left, or changed its address, just now can't tell the child */
	if (esp_dev_link(child, ed) || esp_dev_mac(ed, mac) ||
	    !ether_addr_equal(mac, esp->saddr))
		goto fail;
	esp_bind_child(child, sk);
	if (esp_peer_get(child))
		goto fail;
	conn_init_numbers(child);
	conn_learn_peer(child, f);
	esp->snd.advice = f->grant;
	now = esp_now();
	esp->opened_at = now;
	esp->ts_recent = (u64)f->ts_val << 32 | (u32)now;
	esp_set_state(child, TCP_ESTABLISHED);
	esp->progress_us = now;
	if (esp_hash(child))
		goto fail;
	return true;
fail:
	sock_set_flag(child, SOCK_DEAD);
	esp_set_state(child, TCP_CLOSE);
	esp_destroy(child);
	return false;
}

/*
 * The cookie of an echo has made a connection: tell a peer whose connection has ended meanwhile.
 * The listener is locked: the connection is made under that lock, and can be found now.
 */
static enum skb_drop_reason echo_again(struct net *net, struct esp_dev *ed, struct sk_buff *skb)
{
	struct sock *sk = esp_lookup(net, ed->ifindex, ESP_RX(skb)->f.dport,
				     ESP_RX(skb)->f.sport, eth_hdr(skb)->h_source);

	if (sk) {	/* the echo came twice while the listener was busy */
		sock_put(sk);
	} else {
		ESP_INC(net, CookieUsed);
		esp_reply_reset(net, ed, skb);
	}
	return SKB_DROP_REASON_TCP_OLD_DATA;
}

/*
 * Handle an echo whose cookie is used, for a listener that isn't locked. If another context has
 * locked it, that may be making the very connection, which nobody finds yet. The client gets no RST
 * then, and asks again: to wait for the lock is not for strangers.
 */
static enum skb_drop_reason echo_of_used(struct sock *sk, struct esp_dev *ed, struct sk_buff *skb)
{
	enum skb_drop_reason reason = SKB_DROP_REASON_TCP_OLD_DATA;

	if (!spin_trylock(&sk->sk_lock.slock))
		return reason;
	if (!esp_owned(sk))
		reason = echo_again(sock_net(sk), ed, skb);
	spin_unlock(&sk->sk_lock.slock);
	return reason;
}

#define ECHO_SLOTS	0x7fff	/* bits of a slot that f->read holds */

/* Find the slot in which the listener gave a client its cookie. False: in none that counts. */
static bool echo_find_slot(struct sock *sk, struct esp_dev *ed, struct sk_buff *skb,
			   u8 features, u32 *slot)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	u32 now = esp_cookie_slot();

	for (*slot = now; now - *slot < 2; --*slot)
		if (f->cookie == esp_listen_cookie(sk, ed->ifindex, eth_hdr(skb), f, f->advice,
						   features, *slot))
			return true;
	return false;
}

/*
 * Find the features on which the client and the listener have agreed; the cookie stands for them,
 * too. The echo tells them, unless it has a CRC instead. False: it is not the listener's cookie.
 */
static bool echo_fits(struct sock *sk, struct esp_dev *ed, struct sk_buff *skb, u32 *slot)
{
	u8 all = ESP_FEATURES_KNOWN & ~ESP_FEATURE_CRC32C, without = 0;
	struct esp_frame *f = &ESP_RX(skb)->f;

	if (!(f->opts & ESP_HAS(ESP_OPT_CRC))) {
		f->features &= all;
		return echo_find_slot(sk, ed, skb, f->features, slot);
	}
	if (!esp_sk(sk)->tcp)
		all &= ~ESP_FEATURE_TCP;
	do {
		f->features = ESP_FEATURE_CRC32C | (all & ~without);
		if (echo_find_slot(sk, ed, skb, f->features, slot))
			return true;
		without = (without - all) & all;	/* the next subset */
	} while (without);
	return false;
}

/*
 * Is a frame that isn't a SYN an echo of the listener's cookie? If so, note the cookie's slot in
 * f->read and the features in f->features, and return 0; else why the frame is dropped. The
 * listener isn't locked.
 */
static enum skb_drop_reason listen_check_echo(struct sock *sk, struct esp_dev *ed,
					      struct sk_buff *skb)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct net *net = sock_net(sk);
	bool crc = f->opts & ESP_HAS(ESP_OPT_CRC);
	u8 must = ESP_HAS_HELLO | ESP_HAS(ESP_OPT_ADVICE);
	u32 slot;

	if (crc)
		must &= ~ESP_HAS(ESP_OPT_TYPE);
	if ((f->opts & must) != must || (f->flags & (ESP_RST | ESP_SYN)))
		goto bad;
	if (!echo_fits(sk, ed, skb, &slot))
		goto bad;
	if ((f->opts & ESP_HAS(ESP_OPT_TYPE)) && f->type != sk->sk_type)
		goto bad;
	if (crc && !esp_crc_right(skb)) {
		ESP_INC(net, InCRC);
		return SKB_DROP_REASON_SKB_CSUM;
	}
	/* the copy of an echo, or one that finds no room, needs no lock either */
	if (esp_cookie_used(slot, f->cookie, f->peer_cookie))
		return echo_of_used(sk, ed, skb);
	if (sk_acceptq_is_full(sk)) {
		ESP_INC(net, ListenOverflows);
		return SKB_DROP_REASON_TCP_LISTEN_OVERFLOW;
	}
	f->read = 1 + (slot & ECHO_SLOTS);
	return SKB_NOT_DROPPED_YET;
bad:
	ESP_INC(net, CookieInvalid);
	esp_reply_reset(net, ed, skb);
	return SKB_DROP_REASON_TCP_INVALID_SEQUENCE;
}

/**
 * esp_listen_answer() - handle a frame for a listener that makes no connection
 * @sk:		listener; it need not be locked, so that strangers can't keep its users waiting
 * @ed:		device that received the frame
 * @skb:	frame; consumed if it is no echo
 *
 * Context: softirq, RCU read side.
 * Return: true if @skb was consumed; false: it is an echo, for esp_listen_rcv()
 */
bool esp_listen_answer(struct sock *sk, struct esp_dev *ed, struct sk_buff *skb)
{
	enum skb_drop_reason reason;

	if (ESP_RX(skb)->f.flags == ESP_SYN)
		reason = listen_syn(sk, ed, skb);
	else
		reason = listen_check_echo(sk, ed, skb);
	if (reason)
		sk_skb_reason_drop(sk, skb, reason);
	return reason;
}

/*
 * Handle an echo, esp_listen_answer(), for a listener. Returns the new connection as
 * esp_listen_rcv() does; NULL: @skb was dropped.
 */
static struct sock *listen_echo(struct sock *sk, struct esp_dev *ed, struct sk_buff *skb)
{
	enum skb_drop_reason reason = SKB_DROP_REASON_TCP_OLD_DATA;
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct net *net = sock_net(sk);
	u32 now = esp_cookie_slot();
	u32 slot = now - ((now - (f->read - 1)) & ECHO_SLOTS);
	struct sock *child;

	sock_owned_by_me(sk);
	/* the frame may have been for a connection of this socket, before it became a listener */
	if (!f->read || (f->flags & ESP_SYN)) {
		ESP_INC(net, CookieInvalid);
		reason = SKB_DROP_REASON_TCP_INVALID_SEQUENCE;
		goto drop;
	}
	f->read = 0;
	if (sk_acceptq_is_full(sk)) {
		ESP_INC(net, ListenOverflows);
		reason = SKB_DROP_REASON_TCP_LISTEN_OVERFLOW;
		goto drop;
	}
	if (!esp_cookie_use(slot, f->cookie, f->peer_cookie)) {
		reason = echo_again(net, ed, skb);
		goto drop;
	}
	reason = SKB_DROP_REASON_NOMEM;
	child = esp_sock_alloc(net, NULL, sk->sk_type, 0, GFP_ATOMIC);
	if (!child)
		goto fail;
	esp_mem_nobodys(child);
	sock_hold(child);
	bh_lock_sock_nested(child);
	if (!child_make(sk, child, ed, skb)) {
		bh_unlock_sock(child);
		sock_put(child);
		goto fail;
	}
	ESP_INC_BH(esp_net(net), PassiveOpens);
	list_add_tail(&esp_sk(child)->acceptq, &esp_sk(sk)->acceptq);
	sk_acceptq_added(sk);

	esp_start_keepalive(child);
	__release(&child->sk_lock.slock);	/* for sparse: the caller unlocks it */
	return child;
fail:
	ESP_INC(net, OutAllocFail);
	esp_cookie_return(slot, f->cookie, f->peer_cookie);
drop:
	sk_skb_reason_drop(sk, skb, reason);
	return NULL;
}

/**
 * esp_listen_rcv() - make a connection of an echo
 * @sk:		listener; its lock is held, softirqs are off
 * @skb:	echo, esp_listen_answer(); consumed, unless there is a new connection
 *
 * Return: the new connection whose first frame is @skb, in the accept queue, with its
 * spinlock held and a reference for the caller; or NULL
 */
struct sock *esp_listen_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct sock *child = NULL;
	struct esp_dev *ed;

	sock_owned_by_me(sk);
	rcu_read_lock();
	ed = esp_dev_get(sock_net(sk), skb->skb_iif);
	if (ed) {
		child = listen_echo(sk, ed, skb);
		esp_dev_put(ed);
	} else {
		sk_skb_reason_drop(sk, skb, SKB_DROP_REASON_DEV_READY);
	}
	rcu_read_unlock();
	return child;
}

/**
 * esp_conn_timeout() - handle the timeout of a handshake, an orphan or TIME_WAIT
 * @sk:	socket; its lock is held
 */
void esp_conn_timeout(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct net *net = sock_net(sk);
	bool opening = sk->sk_state == TCP_SYN_SENT;

	sock_owned_by_me(sk);
	if (!opening && !esp->handshake_unconfirmed) {
		if (sk->sk_state == TCP_TIME_WAIT ||
		    (sk->sk_state == TCP_FIN_WAIT2 && esp->orphan && esp_orphans_crowd())) {
			esp_done(sk, 0);
		} else if (sock_flag(sk, SOCK_DEAD)) {
			ESP_INC(net, AbortOnTimeout);
			esp_reset_and_linger(sk);
		}
		return;
	}
	if (esp->conn_tries++ >= READ_ONCE(esp_net(net)->conf.syn_retries)) {
		ESP_INC(net, AbortOnTimeout);
		esp_done(sk, -ETIMEDOUT);
		return;
	}
	ESP_INC(net, SynRetrans);
	if (opening)
		esp_send_syn(sk);
	else
		esp_send_ack(sk);
	esp_timer_set(esp, ESP_T_CONN, esp_now() +
		      esp_rtt_backoff(ESP_SYN_RTO_US, esp->conn_tries,
				      ESP_SYN_RTO_MAX_US));
}
