/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A socket, and the locks that guard its parts. Each .c file has a header of its name, which
 * declares what other files may use. A file includes and calls only files that stand before it
 * in the Makefile.
 *
 * Lock order:
 *   1. RTNL (notifiers), then esp_tell_mutex (dev_event.c)
 *   2. lock_sock / slock of a listener
 *   3. the same of its child (nested)
 *   4. one of these, never two: a bucket's (hash.c), esp_dev.lock, esp_link.lock, cookies.lock,
 *      esp_ackq.lock; esp_devq.lock, inside a queueing discipline's lock
 *   5. one of these, never two: esp_opt.timer_lock, that of a line of delayed ACKs
 *      (delayed_ack.c)
 * Sending (dev_queue_xmit) happens under 2 or 3 or without a lock, never under 4.
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
#include "core/tokens.h"
#include "netns.h"

#define ESP_MTU_MIN	128	/* smallest MTU of a device that carries ESP */
#define ESP_MSS_MIN	64	/* smallest payload that a peer may insist on */
#define ESP_GSO_MAX	65535	/* bytes of a GSO packet, header and payload */
#define ESP_SEQ_WINDOW	0xffff	/* grant's reach: packets ahead of recv_seq */
#define ESP_FORGOTTEN	3	/* timeouts in a row before asking if the peer has the connection */
#define ESP_RRQ_STEPS	16	/* buffers that an RRQ passes cost as much as a packet sent again */
#define ESP_RRQ_CREDIT	(64 * ESP_RRQ_STEPS)	/* for RRQs before any packet is acknowledged */
#define ESP_ACK_WAITS	1	/* esp_opt.ack_pending */
#define ESP_ACK_RIDES	2

/**
 * enum esp_timer - deadlines of a socket; see timer.c
 * @ESP_T_SEND:		retransmission, or probe while the sender waits for a grant
 * @ESP_T_RRQ:		expiry of a grant to the peer (the seed's RRQ timer)
 * @ESP_T_REORDER:	a gap lasts longer than reordering explains
 * @ESP_T_ACK:		an ACK has found no data to ride on, or was due too soon after another
 * @ESP_T_CONN:		handshake, end of an orphan, end of TIME_WAIT
 * @ESP_T_KEEP:		keepalive
 * @ESP_T_CORK:		end of holding back a packet that is not full; a FIN without memory
 * @ESP_T_TELL:		work left for the owner by another context: space was freed
 * @ESP_T_MAX:		number of deadlines
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

struct esp_devq;
struct esp_port;

/**
 * struct esp_opt - an ESP socket
 *
 * struct sock, and what the seed adds to it. Groups are in the order of use, so that a message
 * touches few cache lines ("make layout" prints offsets). A comment in front of each group names
 * the contexts that write it. "The owner" is the context that holds the socket's lock:
 * lock_sock(), or its spinlock while no process has it.
 */
struct esp_opt {
	/** @sk: the kernel's part; must be first */
	struct sock		sk;

	/*
	 * Connection: what each frame is built and checked with. The owner writes it, most of
	 * it before the socket can be found, and it is read without the lock from then on.
	 */

	/** @ns: state of the socket's namespace; set once */
	struct esp_net		*ns;
	/**
	 * @dev: device, with a reference until the socket is freed; NULL before bind() or connect()
	 */
	struct esp_dev		*dev;
	/**
	 * @link: where the device's frames congest, with the ACK queue; reference. Set from
	 * connect() until the socket is freed or connect() has failed, NULL otherwise
	 */
	struct esp_link		*link;
	/** @sport: local port; 0: none */
	__be16			sport;
	/** @dport: the peer's port; 0: not connected */
	__be16			dport;
	/** @daddr: the peer's MAC address */
	u8			daddr[ETH_ALEN];
	/** @saddr: own MAC address at the time of connecting */
	u8			saddr[ETH_ALEN];
	/**
	 * @handshake_unconfirmed: client: frames carry the handshake's options until the first
	 * reply
	 */
	u8			handshake_unconfirmed;
	/**
	 * @rst_linger: the connection was ended by RST; each frame of the peer is answered with an
	 * RST
	 */
	u8			rst_linger;
	/** @burst_told: first burst that the peer was told last, packets */
	u16			burst_told;
	/** @cookie: chosen by this end; in every frame to it; 0: none yet */
	u32			cookie;
	/** @peer_cookie: chosen by the peer; in every frame to the peer; 0: not known yet */
	u32			peer_cookie;
	/** @ts_off: what is added to the clock in frames, microseconds */
	u32			ts_off;
	/** @mss: payload of a full packet, bytes */
	u32			mss;
	/** @syn_advice: first burst that the peer's SYN|ACK advised, packets */
	u16			syn_advice;
	/** @fin_queued: the user's FIN has a number, @fin_seq */
	u8			fin_queued:1;
	/** @fin_rcvd: the peer's FIN has been consumed */
	u8			fin_rcvd:1;
	/** @nodelay: option ESP_NODELAY: Nagle's rule is off */
	u8			nodelay:1;
	/** @cork: option ESP_CORK: a packet that is not full waits */
	u8			cork:1;
	/** @more: the last sendmsg() had MSG_MORE */
	u8			more:1;
	/** @uncork: @cork and @more do not count at this moment */
	u8			uncork:1;
	/** @user_crc: option ESP_CRC32C as the user set it */
	u8			user_crc:1;
	/**
	 * @late_cap: the listener's burst_length was set after listen(), so that the peer may
	 * have been told another one, and @agreed_burst is not reliable
	 */
	u8			late_cap:1;
	/** @crc: agreed on in the handshake: each frame has a CRC32c */
	u8			crc;
	/** @sent_at: when a packet of the write queue was sent last, microseconds */
	u64			sent_at;

	/* Sending: the owner writes it, in sendmsg() and for each frame that acknowledges. */

	/**
	 * @snd: una_seq, send_next, send_seq, announce_seq, trans_announced and more of the seed's
	 */
	struct esp_window	snd;
	/** @notsent: bytes on the write queue that were never sent */
	u32			notsent;
	/** @unacked: bytes that were sent and are not acknowledged */
	u32			unacked;
	/** @to_copy: bytes that calls of sendmsg() have yet to put on the write queue */
	size_t			to_copy;
	/** @told_end: number after the last packet, as the peer was told: ESP_OPT_LEFT */
	u32			told_end;
	/** @told_before: the end that it knew before, while @told_growth */
	u32			told_before;
	/** @told_growth: the peer was told a new end, and has not permitted more than the old */
	u8			told_growth;
	/** @writers: calls of sendmsg() that feed the write queue (rule 4) */
	u16			writers;
	/** @writers_asleep: those of @writers that wait for memory */
	u16			writers_asleep;
	/**
	 * @agreed_burst: the smaller burst_length of both ends in the handshake, packets; 0: none
	 */
	u16			agreed_burst;
	/** @writer_has_more: a writer has filled a buffer and will append another one */
	u8			writer_has_more:1;
	/**
	 * @waits_for_queue: the newest sleeping writer waits for queue space, not for system memory
	 */
	u8			waits_for_queue:1;
	/** @idle_reads: receiving: reads left in which the reader does the work of its backlog */
	u8			idle_reads:6;
	/** @sent_later: the data packet that was sent last has ESP_GRANT_LATER */
	u8			sent_later:1;
	/** @replies: receiving: the last data were sent within ESP_LATER_US after @data_us */
	u8			replies:1;
	/** @retransmits: expirations of the retransmission timer in a row */
	u8			retransmits;
	/** @probes: timeouts and probes in a row without an answer */
	u8			probes;
	/** @probe_tries: probes since a grant came last; their interval doubles with it */
	u8			probe_tries;
	/** @keep_probes: keepalive probes in a row without an answer */
	u8			keep_probes;
	/** @syn_probes: probes without an answer since @syn_since */
	u8			syn_probes;
	/**
	 * @ack_requested_seq: snd.send_next when an ACK was last asked for, see esp_ask_for_ack()
	 */
	u32			ack_requested_seq;
	/** @progress_us: when the peer last answered, or sending started, microseconds */
	u64			progress_us;
	/**
	 * @waiting_since: when an ACK or a grant last brought the sender on, or data began to wait
	 * for one, microseconds; ESP_USER_TIMEOUT counts from here
	 */
	u64			waiting_since;

	/* Receiving: the owner writes it, for each data packet and in recvmsg(). */

	/**
	 * @grant: what the peer was granted: recv_announced, edge, tokens, rcv_mem_pressure.
	 * While it is queued, the context that holds the ACK queue's lock writes it, see
	 * core/ackq_types.h
	 */
	struct esp_grant	grant;
	/** @data_us: when data last came in order, microseconds */
	u64			data_us;
	/** @to_ack: packets consumed since the last ACK */
	u32			to_ack;
	/** @recv_seq: number of the next packet expected; read without the lock */
	u32			recv_seq;
	/** @ack_seq: last acknowledgment that the owner sent */
	u32			ack_seq;
	/**
	 * @queue_acked_seq: last acknowledgment that left with a grant from the ACK queue, or later
	 */
	u32			queue_acked_seq;
	/** @rcv_bytes: bytes on the receive queue; read without the lock */
	u32			rcv_bytes;
	/** @ooo_high: number after the highest packet that came, or should be here */
	u32			ooo_high;
	/** @ooo: packets that came out of order, by number */
	struct rb_root		ooo;
	/** @part: packet @recv_seq as far as parts of it have come (rcv_part.c); NULL: none */
	struct sk_buff		*part;
	/** @rcv_records: ends of records on the receive queue */
	u32			rcv_records;
	/** @rrq_wait: time for which the RRQ timer was set last, microseconds */
	u32			rrq_wait;
	/** @readers: calls of recvmsg() that wait with the lock's knowledge */
	u16			readers;
	/**
	 * @reading: a call of recvmsg() copies packets that it took off the queue's head, unlocked
	 */
	u8			reading;
	/** @rcv_discard: seqpacket: the rest of the record at the head is to be thrown away */
	u8			rcv_discard;
	/**
	 * @advertise_any: advertise any free space, because a probe or a waiting reader needs it
	 */
	u8			advertise_any;
	/** @ack_pending: an ACK is due: ESP_ACK_RIDES, ESP_ACK_WAITS; 0: none */
	u8			ack_pending;
	/** @expiries: expired grants in a row */
	u8			expiries;
	/**
	 * @ts_recent: the newest ts_val (high half) and when it came (low half), microseconds;
	 * one word, so that contexts without the lock read it whole
	 */
	u64			ts_recent;
	/** @last_ack_us: when an empty packet was sent last, microseconds */
	u64			last_ack_us;

	/*
	 * Timers. Deadlines: the owner, ESP_T_RRQ and ESP_T_TELL also other contexts with a
	 * reference. The hrtimer: under @timer_lock. The place in line: under the line's lock.
	 */

	/** @rtt: smoothed round trip and its deviation */
	struct esp_rtt		rtt;
	/** @timer_at: when the hrtimer fires at the latest, microseconds; U64_MAX: not armed */
	u64			timer_at;
	/** @deadline: by enum esp_timer, microseconds of esp_now(); 0: off */
	u64			deadline[ESP_T_MAX];
	/** @ack_at: time by which @ack_node is sorted in the line, microseconds */
	u64			ack_at;
	/**
	 * @ack_line: line of delayed ACKs, which then holds a reference to the socket; NULL: in
	 * none
	 */
	struct ack_line		*ack_line;
	/** @ack_node: in ack_line.sockets */
	struct list_head	ack_node;
	/** @round: round trips of the running round, for the receiver's budget */
	struct esp_rtt_round	round;
	/**
	 * @min_rtt: smallest round trip to this peer as of the last round, microseconds; 0: none
	 */
	u32			min_rtt;
	/** @timer_by: deadline that the hrtimer was armed for, and processor: esp_timer_by() */
	u32			timer_by;

	/**
	 * @stats: counters of ESP_STATS; the context that dequeues the grant writes
	 * @stats.parked_us, too
	 */
	struct esp_stats	stats;

	/* Seldom used: few frames touch these fields, or none. */

	/** @timer: one for all deadlines; holds a reference to the socket while armed or running */
	struct hrtimer		timer;
	/** @timer_lock: guards @timer, @timer_at, @timer_by and @timer_ref */
	spinlock_t		timer_lock;	/* see @timer_lock */
	/** @timer_ref: the hrtimer holds a reference */
	u8			timer_ref;
	/**
	 * @deferred: the hrtimer, or that of the line, fired while a process owned the socket;
	 * esp_release_cb() runs the deadlines
	 */
	u8			deferred;
	/** @dev_events: what happened to the device meanwhile, ESP_EV_*; under the spinlock */
	u8			dev_events;
	/** @rrqs: RRQs sent for the present gap */
	u8			rrqs;
	/** @peer: the other host, for as long as @link; reference */
	struct esp_peer		*peer;
	/** @may_begin: the peer may begin a transmission, and esp_peer.begins counts the socket */
	u8			may_begin;
	/** @port: entry of @sport, NULL: none; the owner writes it */
	struct esp_port		*port;
	/** @bind_node: in esp_port.owners, if @port_use says so; under the bucket's lock */
	struct hlist_node	bind_node;
	/** @dev_node: in esp_dev.socks; under esp_dev.lock */
	struct list_head	dev_node;
	/**
	 * @devq_node: in esp_devq.ready, which then holds a reference to the socket; under
	 * esp_devq.lock
	 */
	struct list_head	devq_node;
	/**
	 * @devq: the device's queue in which its frames count, with a reference to the link; NULL:
	 * no connection yet. It changes only while no frame is there
	 */
	struct esp_devq		*devq;
	/** @devq_frames: frames there that count for esp_devq.busy */
	atomic_t		devq_frames;
	/** @devq_paced: frames with payload there that don't, because fq paces the socket */
	atomic_t		devq_paced;
	/** @devq_unused: packets of the socket that esp_devq.unused counts; owner */
	u32			devq_unused;
	/** @devq_unit: unit of the queue's limit, bytes; the owner writes it before devq_wants */
	u32			devq_unit;
	/**
	 * @devq_wants: the socket waits for one of its frames to be freed; the context that frees
	 * it writes it, too
	 */
	u8			devq_wants;
	/**
	 * @devq_deferred: the turn came while a process owned the socket; esp_release_cb() sends
	 */
	u8			devq_deferred;
	/**
	 * @acceptq: listener: connections that wait for accept(), each with the reference of its
	 * creation; connection: its place there. The listener's owner writes it
	 */
	struct list_head	acceptq;
	/** @walk_pos: position in its hash bucket, higher than that of the sockets after it */
	u64			walk_pos;
	/** @ifindex: index of @dev */
	int			ifindex;
	/** @rto_high: snd.send_next when the retransmission timer fired */
	u32			rto_high;
	/** @rrq_credit: what RRQs may still cost, as of the last one; see rrq_credit() */
	u32			rrq_credit;
	/** @rrq_una: snd.una_seq at the last RRQ */
	u32			rrq_una;
	/** @orphaned_at: when the time of a closed socket began, microseconds; 0: not yet */
	u64			orphaned_at;
	/** @syn_since: when the peer's first SYN for another connection came, microseconds */
	u64			syn_since;
	/**
	 * @first_until: until when first bursts of other hosts may arrive before this peer's
	 * packets, microseconds
	 */
	u64			first_until;
	/**
	 * @opened_at: when the handshake told the first burst, microseconds; 0: data have been
	 * acknowledged since
	 */
	u64			opened_at;
	/**
	 * @queued_at: when the grant was queued, microseconds; the context that dequeues it
	 * writes it, too
	 */
	u64			queued_at;
	/** @fin_seq: number of the user's FIN, once @fin_queued */
	u32			fin_seq;
	/** @gap_seq: @recv_seq when the present gap was seen */
	u32			gap_seq;
	/** @peer_mss: payload of a packet that the peer takes, bytes; 0: not known yet */
	u32			peer_mss;
	/** @port_use: ESP_PORT_OWNED, ESP_PORT_SHARED or ESP_PORT_STRICT, if @port is set */
	u8			port_use;
	/** @tcp_lost: @tcp was closed, and others may have @sport since; under the bucket's lock */
	bool			tcp_lost;
	/** @dev_auto: connect() chose @dev, and gives it back if it fails */
	u8			dev_auto;
	/** @destroyed: esp_destroy() has run */
	u8			destroyed;
	/** @orphan: esp_orphan() has counted the socket, ESP_ORPHAN*; 0: it may have a user */
	u8			orphan;
	/** @accepted: a listener made this connection */
	u8			accepted;
	/** @conn_tries: SYNs or echoes retransmitted */
	u8			conn_tries;
	/**
	 * @path_small: large frames of the handshake were lost: packets of Ethernet's size (rule 9)
	 */
	u8			path_small;
	/** @peer_parts: the peer takes packets in parts (rule 9) */
	u8			peer_parts;
	/** @peer_left: the peer knows ESP_OPT_LEFT and ESP_GRANT_BUSY */
	u8			peer_left;
	/** @peer_later: the peer knows ESP_GRANT_LATER */
	u8			peer_later;
	/** @mss_told: payload that this end's device takes, as the peer was told last, bytes */
	u16			mss_told;

	/* Options: the owner writes them, in setsockopt(). */

	/**
	 * @tcp: ESP_TCP_LISTENER: TCP's listener, with a reference until the socket is freed; NULL:
	 * none. Set once
	 */
	struct sock		*tcp;
	/** @tcp_name: ESP_TCP_DEST: name of the IP address that connect() asks for; 0: none */
	u64			tcp_name;
	/** @user_mss: ESP_MAXSEG, bytes; 0: not set */
	u32			user_mss;
	/** @user_burst: ESP_BURST_LENGTH, packets; -1: the sysctl counts */
	int			user_burst;
	/** @user_initial: ESP_INITIAL_ACK_BURST_LENGTH, packets; -2: the sysctl counts */
	s16			user_initial;
	/** @user_to_ack: ESP_PACKETS_TO_ACK, packets; 0: the sysctl counts */
	s16			user_to_ack;
	/** @user_timeout_ms: ESP_USER_TIMEOUT, milliseconds; 0: net.esp.retries counts */
	u32			user_timeout_ms;
	/** @keep_idle: ESP_KEEPIDLE, seconds; 0: the sysctl counts */
	u32			keep_idle;
	/** @keep_intvl: ESP_KEEPINTVL, seconds; 0: the sysctl counts */
	u32			keep_intvl;
	/** @keep_cnt: ESP_KEEPCNT, probes; 0: the sysctl counts */
	u8			keep_cnt;
};

static inline struct esp_opt *esp_sk(const struct sock *sk)
{
	return (struct esp_opt *)sk;
}

/* Length of a data packet's header without options other than the CRC, bytes. */
static inline unsigned int esp_data_hlen(const struct esp_opt *esp)
{
	return ESP_HLEN + (READ_ONCE(esp->crc) ? ESP_CRC_ROOM : 0);
}

/**
 * struct esp_tx_cb - a buffer on the write queue: one packet, or consecutive packets
 *
 * A buffer never holds both packets that were sent and packets that were not. The socket's
 * owner writes all fields.
 */
struct esp_tx_cb {
	/** @seq: number of the first packet */
	u32	seq;
	/** @sent_us: when the buffer was sent last, low half of esp_now() */
	u32	sent_us;
	/** @limit: most payload that the buffer takes, bytes */
	u32	limit;
	/** @acked: bytes at the front that are acknowledged, while not all are */
	u32	acked;
	/** @size: payload of each packet but the last, bytes */
	u16	size;
	/** @segs: number of packets */
	u16	segs;
	/** @linear: payload that is copied into the linear part; the rest is in pages; bytes */
	u16	linear;
	/** @flags: TXS of the first packet; TXF, EOR and FIN of the last; fixed once sent */
	u8	flags;
	/** @retrans: the buffer was retransmitted */
	u8	retrans;
	/** @full: no more page fragments fit */
	u8	full;
};

#define ESP_TX(skb)	((struct esp_tx_cb *)(skb)->cb)

/* Control block of a received frame. */
struct esp_rx_cb {
	struct esp_frame f;
};

#define ESP_RX(skb)	((struct esp_rx_cb *)(skb)->cb)

/* Number after the last packet of a buffer. */
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

/*
 * No data race: the caller holds the spinlock, so lock_sock()'s compare-and-exchange fails, or
 * owns the socket itself.
 */
static inline bool esp_owned(const struct sock *sk)
{
	return data_race(sock_owned_by_user(sk));	/* see above */
}

/* module.c */
extern int esp_family;
extern __be16 esp_ethertype;

#endif /* _ESP_H */
