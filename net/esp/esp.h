/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A socket, and which locks guard what of it. Each .c file has a header of its name with
 * what it gives to the others; a file includes and calls only those below it, in the order
 * of the Makefile.
 *
 * Lock order:
 *   1. RTNL (notifiers), then esp_tell_mutex (dev_event.c)
 *   2. lock_sock / slock of a listener
 *   3. the same of its child (nested)
 *   4. one of, never two: a bucket's (hash.c), esp_dev.lock, esp_link.lock,
 *      esp_ackq.lock
 *   5. one of, never two: esp_opt.timer_lock, that of a line of delayed ACKs (delayed_ack.c)
 * Sending (dev_queue_xmit) happens under 2 or 3 or without a lock, never
 * under 4.
 */
#ifndef _ESP_H
#define _ESP_H

#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/rbtree.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include <uapi/linux/af_esp.h>
#include "compat/compat.h"
#include "core/wire.h"
#include "core/window.h"
#include "core/rtt.h"
#include "core/ackq.h"
#include "netns.h"

#define ESP_MTU_MIN	128	/* smallest MTU of a device that carries ESP */
#define ESP_MSS_MIN	64	/* smallest payload that a peer may insist on */
#define ESP_GSO_MAX	65535	/* bytes of a super-packet, header and payload */
#define ESP_SEQ_WINDOW	0xffff	/* grant's reach: packets ahead of recv_seq */
#define ESP_FORGOTTEN	3	/* timeouts in a row: does the peer know us still? */
#define ESP_ACK_WAITS	1	/* esp_opt.ack_pending */
#define ESP_ACK_RIDES	2

/**
 * enum esp_timer - deadlines of a socket; see timer.c
 * @ESP_T_SEND:		retransmission, or probe while permission is awaited
 * @ESP_T_RRQ:		expiry of permission given (the seed's RRQ timer)
 * @ESP_T_REORDER:	a gap has lasted longer than reordering explains
 * @ESP_T_ACK:		an ACK found nothing to ride on, or came too soon
 * @ESP_T_CONN:		handshake, an orphan's end, TIME_WAIT
 * @ESP_T_KEEP:		keepalive
 * @ESP_T_CORK:		a packet was held back long enough
 * @ESP_T_TELL:		somebody who doesn't own the socket has found room, or cut its
 *			first burst; the latter is told again until it is echoed
 * @ESP_T_MAX:		their number
 */
enum esp_timer {
	ESP_T_SEND,
	ESP_T_RRQ,
	ESP_T_REORDER,
	ESP_T_ACK,
	ESP_T_CONN,
	ESP_T_KEEP,
	ESP_T_CORK,
	ESP_T_TELL,
	ESP_T_MAX,
};

/**
 * struct esp_opt - an ESP socket: struct sock and what the seed adds to it
 * @sk:		must be first
 * @ns:		its namespace's state, which esp_net() would look up
 * @dev:	device; set by bind() or connect(), holds a reference until the
 *		socket is freed
 * @link:	has the ACK queue; from connecting until the socket is freed, or
 *		connect() has failed; reference
 * @sport:	local port, 0: none
 * @dport:	peer's port
 * @daddr:	peer's MAC address
 * @saddr:	own MAC address at the time of connecting
 * @handshake_unconfirmed:	client: the handshake's options go with every frame until the
 *		first reply
 * @rst_linger:	closed with RST: answers every frame with another one
 * @burst_told: first burst that the peer was told
 * @cookie:	chosen by us, in every frame to us
 * @peer_cookie: chosen by the peer
 * @ts_off:	offset of our clock on the wire
 * @mss:	payload of a full packet
 * @syn_advice:	first burst that the peer's SYN|ACK advised
 * @fin_queued:	our FIN has its number
 * @fin_rcvd:	the peer's FIN has been consumed
 * @nodelay:	ESP_NODELAY
 * @cork:	ESP_CORK
 * @more:	the last sendmsg had MSG_MORE
 * @uncork:	neither @more nor @cork counts at this moment
 * @user_crc:	ESP_CRC32C as it was set
 * @late_cap:	a listener's burst_length was set after listen(); of its connection: the peer
 *		may have been told another one, so agreed_burst is not to be relied on
 * @crc:	agreed on in the handshake: frames have a CRC32c
 * @sent_at:	when a packet of the write queue was sent last
 *
 * @snd:	window: una_seq, send_next, send_seq, announce_seq,
 *		trans_announced (see struct esp_window)
 * @notsent:	bytes on the write queue never sent
 * @unacked:	bytes sent and unacknowledged
 * @writers:	calls of sendmsg that feed the write queue (rule 4)
 * @writers_asleep:	those of them that wait for memory
 * @agreed_burst: the smaller burst_length of both sides in the handshake; 0: none
 * @writer_has_more:	one of the former has filled a buffer and has more
 * @waits_for_queue:	who began to wait last waits for room on the write queue, not
 *		for the system's memory
 * @idle_reads:	reads that will help the sender's CPU, since one slept
 * @retransmits: expirations in a row
 * @probes:	unanswered probes in a row
 * @probe_tries: probes since permission last came, for their interval
 * @keep_probes: keepalive's, unanswered in a row
 * @syn_probes:	unanswered probes since @syn_since
 * @rrq_wait:	the RRQ timer's time when it was set last, microseconds
 * @progress_us: when the peer last answered, or sending started
 * @to_ack:	packets queued since the last ACK
 * @ack_requested_seq:	snd.send_next when an ACK was asked for, see esp_ask_for_ack()
 *
 * @grant:	permission given to the peer: recv_announced, edge, tokens,
 *		rcv_mem_pressure
 * @recv_seq:	next packet expected
 * @ack_seq:	last acknowledgment sent
 * @queue_acked_seq:	last one that went with permission from the ACK queue; at least
 * @rcv_bytes:	bytes on the receive queue
 * @ooo:	packets that came out of order, by number
 * @ooo_high:	behind the highest of them
 * @rcv_records: ends of records on the receive queue
 * @readers:	calls of recvmsg that wait
 * @reading:	a call of recvmsg copies from the head of the queue, unlocked
 * @rcv_discard: seqpacket: the rest of a record is to be thrown away
 * @advertise_any:	a probe, or a reader that waits, needs what room there is
 * @ack_pending: ACK due, waiting for data to carry it: ESP_ACK_RIDES in line (timer.c),
 *		ESP_ACK_WAITS by the socket's hrtimer
 * @advice_echo: we owe the peer an echo of its cut
 * @expiries:	of permission, in a row
 * @ts_recent:	ts_val (high half) and when it came (low half), one word so
 *		that those who don't own the socket read it whole
 * @last_ack_us: when an empty packet was sent last
 *
 * @rtt:	estimator
 * @timer_at:	when it fires at the latest, U64_MAX: it isn't armed
 * @deadline:	microseconds, 0: off
 * @ack_at:	its place in a line of delayed ACKs, by time; see timer.c
 * @ack_line:	that line, which holds a reference; NULL: none
 * @ack_node:	in its list
 * @round:	samples of this round trip
 * @min_rtt:	smallest to this peer, as of the last round
 * @timer_by:	the deadline that it was armed for, and the processor: esp_timer_by()
 * @stats:	ESP_STATS
 *
 * @timer:	one hrtimer for the deadlines; holds a reference while armed
 * @timer_lock:	guards arming; see timer.c
 * @timer_ref:	it holds a reference
 * @deferred:	the timer fired while the owner was busy
 * @dev_events:	what happened to the device in the meantime, ESP_EV_*
 * @rrqs:	RRQs for the present gap
 * @peer:	the other host, as long as @link; reference
 * @peer_node:	in esp_peer.sockets, under esp_link.lock
 * @bind_node:	in the table of bound ports
 * @dev_node:	in esp_dev.socks
 * @acceptq:	listener: children waiting for accept(), under its lock, with
 *		the reference of their creation; child: its place. accept() takes a
 *		child off, with the reference, and may put it back: put_back()
 * @walk_pos:	in its bucket: higher than of those behind it; see hash.c
 * @ifindex:	@dev's
 * @rto_high:	end of what was sent when the retransmission timer fired
 * @syn_since:	when the peer's SYN for a new connection came
 * @first_until: until then first bursts of others may come before the packets
 *		of this transmission
 * @burst_told_at:	when @burst_told changed last, microseconds
 * @queued_at:	when the permission was parked
 * @advice_gen:	esp_peer.gen that it has echoed
 * @fin_seq:	number of our FIN, once queued
 * @peer_mss:	the peer's limit
 * @user_mss:	ESP_MAXSEG, 0: none
 * @user_burst:	ESP_BURST_LENGTH, -1: the sysctl counts
 * @user_initial: ESP_INITIAL_ACK_BURST_LENGTH, -2: the sysctl counts
 * @user_to_ack: ESP_PACKETS_TO_ACK, 0: the sysctl counts
 * @user_timeout_ms: ESP_USER_TIMEOUT, 0: net.esp.retries counts
 * @keep_idle:	ESP_KEEPIDLE, 0: the sysctl counts; so the following
 * @keep_intvl:	ESP_KEEPINTVL
 * @gap_seq:	recv_seq when the present gap was seen
 * @keep_cnt:	ESP_KEEPCNT
 * @dev_auto:	@dev was chosen by connect()
 * @destroyed:	esp_destroy() has run
 * @accepted:	passively opened
 * @conn_tries:	SYNs or echoes sent again
 * @path_small:	large frames did not come through (rule 9)
 * @advice_tries: times that @burst_told was told since
 *
 * Owned by whoever has the socket's lock, but for: what is fixed before the
 * socket can be found (ports, addresses, cookies); @grant (see ackq.h);
 * @recv_seq, @snd.send_next, @ts_recent and some more single words, which
 * esp_ack_send_other() reads; @queued_at and its sum, which whoever takes the
 * permission out of the queue writes; the timer, and the place in line (timer.c).
 */
struct esp_opt {
	struct sock		sk;

	/* Every frame; but for sent_at written when the socket is connected. */
	struct esp_net		*ns;
	struct esp_dev		*dev;
	struct esp_link		*link;
	__be16			sport;
	__be16			dport;
	u8			daddr[ETH_ALEN];
	u8			saddr[ETH_ALEN];
	u8			handshake_unconfirmed;
	u8			rst_linger;
	u16			burst_told;
	u32			cookie;
	u32			peer_cookie;
	u32			ts_off;
	u32			mss;
	u16			syn_advice;
	u8			fin_queued:1;
	u8			fin_rcvd:1;
	u8			nodelay:1;
	u8			cork:1;
	u8			more:1;
	u8			uncork:1;
	u8			user_crc:1;
	u8			late_cap:1;
	u8			crc;
	u64			sent_at;

	/* Sending: sendmsg(), and each frame that acknowledges. */
	struct esp_window	snd;
	u32			notsent;
	u32			unacked;
	u16			writers;
	u16			writers_asleep;
	u16			agreed_burst;
	u8			writer_has_more:1;
	u8			waits_for_queue:1;
	u8			idle_reads:6;
	u8			retransmits;
	u8			probes;
	u8			probe_tries;
	u8			keep_probes;
	u8			syn_probes;
	u32			rrq_wait;
	u64			progress_us;
	u32			to_ack;
	u32			ack_requested_seq;

	/* Receiving: each data packet, and recvmsg(). */
	struct esp_grant	grant;
	u32			recv_seq;
	u32			ack_seq;
	u32			queue_acked_seq;
	u32			rcv_bytes;
	struct rb_root		ooo;
	u32			ooo_high;
	u32			rcv_records;
	u16			readers;
	u8			reading;
	u8			rcv_discard;
	u8			advertise_any;
	u8			ack_pending;
	u8			advice_echo;
	u8			expiries;
	u64			ts_recent;
	u64			last_ack_us;

	/* Clocks. */
	struct esp_rtt		rtt;
	u64			timer_at;
	u64			deadline[ESP_T_MAX];
	u64			ack_at;
	struct ack_line		*ack_line;
	struct list_head	ack_node;
	struct esp_rtt_round	round;
	u32			min_rtt;
	u32			timer_by;
	struct esp_stats	stats;

	/* What few frames touch, if any. */
	struct hrtimer		timer;
	spinlock_t		timer_lock;	/* see @timer_lock */
	u8			timer_ref;
	u8			deferred;
	u8			dev_events;
	u8			rrqs;
	struct esp_peer		*peer;
	struct list_head	peer_node;
	struct hlist_node	bind_node;
	struct list_head	dev_node;
	struct list_head	acceptq;
	u64			walk_pos;
	int			ifindex;
	u32			rto_high;
	u64			syn_since;
	u64			first_until;
	u64			burst_told_at;
	u64			queued_at;
	u32			advice_gen;
	u32			fin_seq;
	u32			peer_mss;
	u32			user_mss;
	int			user_burst;
	s16			user_initial;
	s16			user_to_ack;
	u32			user_timeout_ms;
	u32			keep_idle;
	u32			keep_intvl;
	u32			gap_seq;
	u8			keep_cnt;
	u8			dev_auto;
	u8			destroyed;
	u8			accepted;
	u8			conn_tries;
	u8			path_small;
	u8			advice_tries;
};

static inline struct esp_opt *esp_sk(const struct sock *sk)
{
	return (struct esp_opt *)sk;
}

/* Header of a data packet, as long as there is nothing to say beside it. */
static inline unsigned int esp_data_hlen(const struct esp_opt *esp)
{
	return ESP_HLEN + (READ_ONCE(esp->crc) ? ESP_CRC_ROOM : 0);
}

/**
 * struct esp_tx_cb - a buffer on the write queue: a packet, or a run of them
 * @seq:	the first one's number
 * @sent_us:	low half of the clock, when last sent
 * @limit:	most bytes that it takes
 * @acked:	bytes at its front that are acknowledged, while not all are
 * @size:	payload of each packet but the last
 * @segs:	packets
 * @linear:	the first bytes, so many, are for the linear part
 * @flags:	TXS: the first one's; TXF, EOR, FIN: the last one's; frozen once
 *		sent
 * @retrans:	sent more than once
 * @full:	no more fragments fit
 *
 * What has been sent and what has not are never in one buffer.
 */
struct esp_tx_cb {
	u32	seq;
	u32	sent_us;
	u32	limit;
	u32	acked;
	u16	size;
	u16	segs;
	u16	linear;
	u8	flags;
	u8	retrans;
	u8	full;
};

#define ESP_TX(skb)	((struct esp_tx_cb *)(skb)->cb)

/* Control block of a received frame. */
struct esp_rx_cb {
	struct esp_frame f;
};

#define ESP_RX(skb)	((struct esp_rx_cb *)(skb)->cb)

/* Behind the last packet of a buffer. */
static inline u32 esp_tx_end(const struct sk_buff *skb)
{
	return ESP_TX(skb)->seq + ESP_TX(skb)->segs;
}

static inline u32 esp_rx_end(const struct sk_buff *skb)
{
	return ESP_RX(skb)->f.pkt_seq + ESP_RX(skb)->f.segs;
}

static inline u64 esp_now(void)
{
	return ktime_to_us(ktime_get());
}

/* Under the spinlock, with which lock_sock()'s attempt fails: that is no data race. */
static inline bool esp_owned(const struct sock *sk)
{
	return data_race(sock_owned_by_user(sk));	/* see above */
}

/* module.c */
extern int esp_family;
extern __be16 esp_ethertype;

#endif /* _ESP_H */
