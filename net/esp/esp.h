/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's own header: a socket, who may touch what of it, and what the files
 * give to each other. What a host has beside sockets is in host.h.
 *
 * Lock order:
 *   1. RTNL (notifiers), then esp_tell_mutex (dev.c)
 *   2. lock_sock / slock of a listener
 *   3. the same of its child (nested)
 *   4. one of, never two: a bucket's (hash.c), esp_dev.lock, esp_port.lock,
 *      esp_ackq.lock
 *   5. one of, never two: esp_opt.timer_lock, that of a line of delayed ACKs (timer.c)
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
#include "host.h"

#define ESP_MTU_MIN	128	/* smallest MTU of a device that carries ESP */
#define ESP_MSS_MIN	64	/* smallest payload that a peer may insist on */
#define ESP_GSO_MAX	65535	/* bytes of a super-packet, header and payload */
#define ESP_SEQ_WINDOW	0xffff	/* grant's reach: packets ahead of recv_seq */
#define ESP_SNDBUF	(1024 * 1024)	/* bytes with which a send buffer starts */
#define ESP_CHARGE	(256 * 1024)	/* bytes that are charged ahead */
#define ESP_CORK_US	(5 * 1000)	/* longest that a packet is held back */
#define ESP_MORE_RUN	32	/* packets for which a sender with more to come waits */
#define ESP_FORGOTTEN	3	/* timeouts in a row: does the peer know us still? */
#define ESP_ADVICE_TRIES 9	/* ACKs that tell a cut, in half a second */
#define ESP_SLACK_US	100	/* some deadlines may be so late */
#define ESP_WAIT_SLACK_US 2000	/* and TIME_WAIT's end so much */
#define ESP_ACK_WAITS	1	/* esp_opt.ack_pending */
#define ESP_ACK_RIDES	2
#define ESP_ACK_EARLY_US 250	/* a delayed ACK may leave so early, with others */
#define ESP_SLOT_US	(1000 * 1000)	/* of advice given in SYN|ACKs */
#define ESP_SHARE_US	(10 * 1000)	/* between two looks for who has more than a share */

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
 * @port:	has the ACK queue; from connecting until the socket is freed, or
 *		connect() has failed; reference
 * @sport:	local port, 0: none
 * @dport:	peer's port
 * @daddr:	peer's MAC address
 * @saddr:	own MAC address at the time of connecting
 * @echo:	client: the handshake's options go with every frame until the
 *		first reply
 * @reset:	closed with RST: answers every frame with another one
 * @advice_told: first burst that the peer was told
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
 * @copying:	calls of sendmsg that feed the write queue (rule 4)
 * @waiting:	those of them that wait for memory
 * @agreed_burst: the smaller burst_length of both sides in the handshake; 0: none
 * @feeding:	one of the former has filled a buffer and has more
 * @for_room:	who began to wait last waits for room on the write queue, not
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
 * @asked:	snd.send_next when an ACK was asked for, see esp_ask_for_ack()
 *
 * @grant:	permission given to the peer: recv_announced, edge, tokens,
 *		rcv_mem_pressure
 * @recv_seq:	next packet expected
 * @ack_seq:	last acknowledgment sent
 * @told_seq:	last one that went with permission from the ACK queue; at least
 * @rcv_bytes:	bytes on the receive queue
 * @ooo:	packets that came out of order, by number
 * @ooo_high:	behind the highest of them
 * @rcv_records: ends of records on the receive queue
 * @readers:	calls of recvmsg that wait
 * @reading:	a call of recvmsg copies from the head of the queue, unlocked
 * @rcv_discard: seqpacket: the rest of a record is to be thrown away
 * @any_room:	a probe, or a reader that waits, needs what room there is
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
 * @peer:	the other host, as long as @port; reference
 * @peer_node:	in esp_peer.sockets, under esp_port.lock
 * @bind_node:	in the table of bound ports
 * @dev_node:	in esp_dev.socks
 * @acceptq:	listener: children waiting for accept(), under its lock, with
 *		the reference of their creation; child: its place. accept() takes a
 *		child off, with the reference, and may put it back: put_back()
 * @place:	in its bucket: higher than of those behind it; see hash.c
 * @ifindex:	@dev's
 * @rto_high:	end of what was sent when the retransmission timer fired
 * @syn_since:	when the peer's SYN for a new connection came
 * @first_until: until then first bursts of others may come before the packets
 *		of this transmission
 * @told_at:	when @advice_told changed last, microseconds
 * @parked_at:	when the permission was parked
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
 * @advice_tries: times that @advice_told was told since
 *
 * Owned by whoever has the socket's lock, but for: what is fixed before the
 * socket can be found (ports, addresses, cookies); @grant (see ackq.h);
 * @recv_seq, @snd.send_next, @ts_recent and some more single words, which
 * esp_ack_send_other() reads; @parked_at and its sum, which whoever takes the
 * permission out of the queue writes; the timer, and the place in line (timer.c).
 */
struct esp_opt {
	struct sock		sk;

	/* Every frame; but for sent_at written when the socket is connected. */
	struct esp_net		*ns;
	struct esp_dev		*dev;
	struct esp_port		*port;
	__be16			sport;
	__be16			dport;
	u8			daddr[ETH_ALEN];
	u8			saddr[ETH_ALEN];
	u8			echo;
	u8			reset;
	u16			advice_told;
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
	u16			copying;
	u16			waiting;
	u16			agreed_burst;
	u8			feeding:1;
	u8			for_room:1;
	u8			idle_reads:6;
	u8			retransmits;
	u8			probes;
	u8			probe_tries;
	u8			keep_probes;
	u8			syn_probes;
	u32			rrq_wait;
	u64			progress_us;
	u32			to_ack;
	u32			asked;

	/* Receiving: each data packet, and recvmsg(). */
	struct esp_grant	grant;
	u32			recv_seq;
	u32			ack_seq;
	u32			told_seq;
	u32			rcv_bytes;
	struct rb_root		ooo;
	u32			ooo_high;
	u32			rcv_records;
	u16			readers;
	u8			reading;
	u8			rcv_discard;
	u8			any_room;
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
	u64			place;
	int			ifindex;
	u32			rto_high;
	u64			syn_since;
	u64			first_until;
	u64			told_at;
	u64			parked_at;
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

/* af_esp.c */
extern struct proto esp_prot;
extern struct proto esp_dgram_prot;
int esp_family_init(void);
struct sock *esp_sock_alloc(struct net *net, struct socket *sock, int type,
			    int kern, gfp_t gfp);
void esp_set_state(struct sock *sk, int state);
int esp_bind(struct socket *sock, struct sockaddr_unsized *addr, int len);
int esp_addr_check(const struct sockaddr_esp *a, int len);
int esp_connect_device(struct sock *sk, const struct sockaddr_esp *a);
void esp_addr_local(struct sock *sk, struct sockaddr_esp *a);
void esp_addr_peer(struct sock *sk, struct sockaddr_esp *a);

void esp_connect_failed(struct sock *sk);

/* close.c */
void esp_destroy(struct sock *sk);
void esp_done(struct sock *sk, int err);
void esp_abort(struct sock *sk, int err);
void esp_refuse(struct sock *sk);
void esp_reset_peer(struct sock *sk);
void esp_reset_and_linger(struct sock *sk);
void esp_time_wait(struct sock *sk);
void esp_purge_ooo(struct esp_opt *esp);
int esp_shutdown(struct socket *sock, int how);
int esp_release(struct socket *sock);
int esp_kill(struct sock *sk, int err);

/**
 * struct esp_walk - where a walk over the sockets has come to; zero: it begins
 * @bucket:	of listeners and EDP sockets, behind these of connections
 * @place:	in it: of the one that was visited last, 0: none
 */
struct esp_walk {
	unsigned int	bucket;
	u64		place;
};

/* hash.c */
int esp_hash_init(void);
void esp_hash_exit(void);
int esp_bind_port(struct sock *sk, __be16 port);
void esp_unbind(struct sock *sk);
void esp_bind_child(struct sock *child);
int esp_bind_listen(struct sock *sk);
int esp_hash(struct sock *sk);
void esp_unhash(struct sock *sk);
struct sock *esp_lookup(struct net *net, int ifindex, __be16 sport,
			__be16 dport, const u8 *mac);
struct sock *esp_lookup_listener(struct net *net, int ifindex, __be16 port);
struct sock *esp_next_dgram(struct net *net, int ifindex, __be16 port,
			    struct sock *prev);
void esp_for_each_sock(struct net *net, struct esp_walk *walk,
		       bool (*fn)(struct sock *sk, void *data), void *data);
struct sock *esp_find_sock(struct net *net, int type, const struct sockaddr_esp *src,
			   const struct sockaddr_esp *dst,
			   bool (*fn)(struct sock *sk, void *data), void *data);

/* dev.c */
int esp_dev_init(bool default_enable);
void esp_dev_exit(void);
struct esp_dev *esp_dev_rcu(const struct net_device *dev);
struct esp_dev *esp_dev_get(struct net *net, int ifindex);
struct esp_dev *esp_dev_only(struct net *net);
void esp_dev_put(struct esp_dev *ed);
int esp_dev_link(struct sock *sk, struct esp_dev *ed);
void esp_dev_unlink(struct sock *sk);
void esp_dev_release(struct sock *sk);
int esp_dev_mtu(struct esp_dev *ed);
int esp_dev_mac(struct esp_dev *ed, u8 *mac);
u32 esp_dev_gso_bytes(struct esp_dev *ed, u32 size);
int esp_dev_xmit(struct sk_buff *skb, struct esp_dev *ed, const u8 *daddr,
		 const u8 *saddr);
void esp_dev_policy(struct net *net);
void esp_dev_events_run(struct sock *sk);
void esp_dev_enabled(struct esp_dev *ed);
struct esp_port *esp_port_get(struct esp_dev *ed);

/**
 * esp_dev_usable() - can frames leave?
 * @ed:	device
 *
 * Return: 0; ENETDOWN: down, leaving, or not enabled for ESP
 */
static inline int esp_dev_usable(const struct esp_dev *ed)
{
	return READ_ONCE(ed->up) && READ_ONCE(ed->enabled) ? 0 : -ENETDOWN;
}

/* In front of the ESP header. */
static inline unsigned int esp_dev_headroom(const struct esp_dev *ed)
{
	return READ_ONCE(ed->headroom);
}

/**
 * esp_dev_checksums() - does the device compute checksums of what leaves?
 * @ed:	device
 *
 * Many a NIC that claims so knows TCP and UDP only, and a bridge may forward to
 * one: tx_checksum decides, which is off where frames may leave the machine.
 *
 * Return: true if so: CHECKSUM_PARTIAL
 */
static inline bool esp_dev_checksums(const struct esp_dev *ed)
{
	return READ_ONCE(ed->tx_checksum) && READ_ONCE(ed->sums);
}

/* first_burst.c */
struct esp_port *esp_port_alloc(struct net *net);
void esp_port_put(struct esp_port *port);
int esp_peer_get(struct sock *sk);
void esp_peer_put(struct sock *sk);
u16 esp_peer_advise(struct sock *sk);
void esp_peer_told(struct sock *sk);
bool esp_advice_changed(struct sock *sk);
bool esp_advice_low(struct sock *sk);
void esp_peer_echoed(struct sock *sk, const struct esp_frame *f, u64 now);
void esp_peer_tell(struct sock *sk);
void esp_peer_leave(struct sock *sk);
u32 esp_peer_rtt(struct sock *sk, u32 rtt, u64 now);
u16 esp_port_handshake(struct esp_dev *ed, const u8 *mac);

/* connect.c */
int esp_connect_start(struct sock *sk);
void esp_send_syn(struct sock *sk, u8 flags);
void esp_set_burst(struct sock *sk);
void esp_hello(struct sock *sk, struct esp_frame *f);
u32 esp_listen_cookie(struct sock *sk, int ifindex, const struct ethhdr *eth,
		      const struct esp_frame *f, u16 advice, bool crc, int age);
void esp_listen_rcv(struct sock *sk, struct sk_buff *skb);
void esp_handshake_rcv(struct sock *sk, struct sk_buff *skb);
void esp_reply_reset(struct net *net, struct esp_dev *ed, struct sk_buff *skb);
void esp_update_mss(struct sock *sk);
void esp_conn_timeout(struct sock *sk);

/* sendmsg.c */
int sock_esp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
void esp_queue_fin(struct sock *sk);
void esp_splice_eof(struct socket *sock);
#ifdef ESP_OLD_SENDPAGE
ssize_t esp_sendpage(struct socket *sock, struct page *page, int offset,
		     size_t size, int flags);
#endif
void esp_write_queue_purge(struct sock *sk);
struct sk_buff *esp_split(struct sock *sk, struct sk_buff *skb, u32 n);
void esp_ask_for_ack(struct sock *sk);
void esp_fill_up(struct sock *sk, struct sk_buff *skb, u32 most);
void esp_clean_write_queue(struct sock *sk);

/* output.c */
u32 esp_cwnd_test(struct sock *sk, struct sk_buff *skb);
u32 esp_push_one_frame(struct sock *sk);
void esp_push_frames(struct sock *sk);
int esp_skb_xmit(struct sock *sk, struct sk_buff *skb, bool again);

/**
 * esp_skb_classify() - what queueing disciplines and filters tell frames apart by
 * @skb:	frame
 * @sk:		its socket
 *
 * The flow dissector doesn't know the EtherType: without the socket's own hash all
 * connections would be one flow to fq and fq_codel, and one queue of a card.
 */
static inline void esp_skb_classify(struct sk_buff *skb, struct sock *sk)
{
	skb->priority = READ_ONCE(sk->sk_priority);
	skb->mark = READ_ONCE(sk->sk_mark);
	skb_set_hash_from_sk(skb, sk);
}

struct sk_buff *esp_skb_alloc_sk(struct sock *sk, u8 flags, u16 payload,
				 u32 pkt_seq);
void esp_finish_frame(struct esp_dev *ed, struct sk_buff *skb,
		      unsigned int len, __wsum rest);
void esp_send_empty(struct sock *sk, u8 flags, u32 pkt_seq);
void esp_send_ack(struct sock *sk);
void esp_send_rrq(struct sock *sk, u32 end);
void esp_send_reset(struct sock *sk, u32 pkt_seq);
void esp_send_probe(struct sock *sk);
bool esp_hold_back(struct sock *sk, struct sk_buff *skb);
struct sk_buff *esp_retransmit(struct sock *sk, struct sk_buff *skb, u32 from,
			       u32 to);

/* crc.c */
void esp_crc_fill(struct sk_buff *skb);
bool esp_crc_right(struct sk_buff *skb);

/* offload.c */
void esp_offload_init(void);
void esp_offload_exit(void);
void esp_gso_mark(struct sk_buff *skb, u16 size, u16 segs);
bool esp_gso_valid(const struct sk_buff *skb);

/* input.c */
int esp_rcv(struct sk_buff *skb, struct net_device *dev,
	    struct packet_type *pt, struct net_device *orig_dev);
int esp_backlog_rcv(struct sock *sk, struct sk_buff *skb);
void esp_connected_rcv(struct sock *sk, struct sk_buff *skb);

/* rcv_data.c */
void esp_ack_now(struct sock *sk);
void esp_ack_soon(struct sock *sk, u32 us);
u32 esp_packets_to_ack(struct sock *sk);
u32 esp_ack_each(struct sock *sk);
bool esp_permission_due(struct esp_opt *esp);
void esp_gap_seen(struct sock *sk, u32 end);
void esp_gap_timeout(struct sock *sk);
void esp_data_rcv(struct sock *sk, struct sk_buff *skb);

/* rcv_ack.c */
bool esp_ack(struct sock *sk, struct esp_frame *f, u64 now, bool late);
void esp_rrq_rcv(struct sock *sk, struct sk_buff *skb, u64 now);
void esp_fin_acked(struct sock *sk);

#define ESP_LATE_US	(1000 * 1000)	/* no frame is overtaken by more */

/*
 * A frame sent after this one is here already: what this one says of
 * permission and advice is out of date.
 */
static inline bool esp_overtaken(const struct esp_opt *esp,
				 const struct esp_frame *f, u64 now)
{
	u64 ts = esp->ts_recent;

	return (u32)now - (u32)ts < ESP_LATE_US &&
	       esp_before(f->ts_val, (u32)(ts >> 32));
}

/* grant.c */
extern const struct esp_ackq_ops esp_ackq_ops;
enum hrtimer_restart esp_pace_timeout(struct hrtimer *timer);
u32 esp_grant_room(struct esp_opt *esp);
void esp_start_rrq_timer(struct esp_opt *esp);
void esp_announced(struct sock *sk, u32 recv_seq, u32 edge);
void esp_enqueue_ack(struct sock *sk, bool answer, u32 packets);
void esp_expiry(struct sock *sk);
void esp_ackq_leave(struct sock *sk, bool void_tokens);
void esp_pressure_lifted(struct sock *sk);
void esp_any_room(struct sock *sk);

/* recvmsg.c */
int esp_copy_packet(struct sk_buff *skb, int off, struct msghdr *msg, int n);
int esp_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags);
ssize_t esp_splice_read(struct socket *sock, loff_t *ppos,
			struct pipe_inode_info *pipe, size_t len,
			unsigned int flags);
bool esp_readable_part(struct sock *sk);
int esp_set_rcvlowat(struct sock *sk, int val);

/**
 * esp_readable() - is there enough for a reader?
 * @sk:		socket; any context
 * @target:	bytes, SO_RCVLOWAT
 *
 * Return: true if a read need not wait
 */
static inline bool esp_readable(struct sock *sk, int target)
{
	u32 bytes = READ_ONCE(esp_sk(sk)->rcv_bytes);

	if (!bytes)
		return false;
	return (sk->sk_type != SOCK_SEQPACKET && (int)bytes >= target) ||
	       esp_readable_part(sk);
}

/* timer.c */
void esp_timer_init(struct sock *sk);
int esp_lines_init(struct esp_net *ns);
void esp_lines_exit(struct esp_net *ns);
void esp_line_up(struct esp_opt *esp, u64 at);
void esp_timer_set(struct esp_opt *esp, enum esp_timer t, u64 at);
void esp_timer_arm(struct esp_opt *esp, enum esp_timer t, u64 at);
void esp_timer_follow(struct esp_opt *esp);
void esp_timer_stop(struct sock *sk);
void esp_timers_run(struct sock *sk);
void esp_arm_send(struct sock *sk, u64 now);
u32 esp_rto(struct esp_opt *esp);
void esp_start_keepalive(struct sock *sk);
void esp_start_orphan_timer(struct sock *sk);

static inline void esp_timer_clear(struct esp_opt *esp, enum esp_timer t)
{
	WRITE_ONCE(esp->deadline[t], 0);
}

/* How much earlier than after @delay an ACK may leave, with others; microseconds. */
static inline u32 esp_ack_early(u32 delay)
{
	return min_t(u32, delay / 2, ESP_ACK_EARLY_US);
}

/*
 * What many sockets wait for may come together, in one interrupt. Not what others
 * wait for: permission that is given back, packets that are asked for again. For the
 * end of TIME_WAIT nobody waits.
 */
static inline u64 esp_timer_slack(const struct esp_opt *esp, enum esp_timer t)
{
	if (t == ESP_T_CONN && READ_ONCE(esp->sk.sk_state) == TCP_TIME_WAIT)
		return ESP_WAIT_SLACK_US;
	return t == ESP_T_SEND || t == ESP_T_ACK || t == ESP_T_CONN || t == ESP_T_KEEP ?
	       ESP_SLACK_US : 0;
}

static inline u32 esp_timer_by(enum esp_timer t)
{
	return raw_smp_processor_id() * ESP_T_MAX + t;
}

/**
 * esp_timer_move() - set a deadline that moves on with each frame
 * @esp:	socket; as for esp_timer_set()
 * @t:		which
 * @now:	microseconds
 * @wait:	microseconds from now
 * @slack:	esp_timer_slack()
 *
 * If the hrtimer is armed for it, and half of the time is over, it follows. Only where
 * it is armed: the other processor would get its interrupt all the same.
 */
static inline void esp_timer_move(struct esp_opt *esp, enum esp_timer t, u64 now, u32 wait,
				  u32 slack)
{
	u64 armed;

	WRITE_ONCE(esp->deadline[t], now + wait);
	smp_mb();	/* as in esp_timer_set() */
	armed = READ_ONCE(esp->timer_at);
	if (now + wait + slack < armed)
		esp_timer_arm(esp, t, now + wait);
	else if (armed < now + (wait + slack) / 2 && READ_ONCE(esp->timer_by) == esp_timer_by(t))
		esp_timer_follow(esp);
}

/*
 * Sockets of a namespace whose ACK may ride on a reply, by ack_at: one line per processor.
 * As a rule the ACK has ridden long before, and the next one waits. An hrtimer each would
 * be armed, or fire for nothing, for each message. So whoever is in line stays there;
 * line_follow() moves those at its head on from time to time, for whom nothing is due yet,
 * and the hrtimer with them. See timer.c.
 */
struct ack_line {
	spinlock_t		lock;		/* guards the line; see locking.rst */
	struct list_head	sockets;	/* esp_opt.ack_node */
	u64			follow;		/* when someone waits until then, or longer */
	struct hrtimer		timer;		/* for the first; see line_start() */
};

/* Its turn in line comes in time for this deadline of ESP_T_ACK. */
static inline bool esp_in_line(const struct esp_opt *esp, u64 at)
{
	return READ_ONCE(esp->ack_line) && READ_ONCE(esp->ack_at) <= at;
}

/**
 * esp_ack_wait() - set the deadline of an ACK that will ride on a reply, as a rule
 * @esp:	socket; its owner calls
 * @at:		microseconds of esp_now(): from then on it may leave, with others'
 *
 * It leaves esp_ack_early() and ESP_SLACK_US later, at most.
 */
static inline void esp_ack_wait(struct esp_opt *esp, u64 at)
{
	const struct ack_line *line;

	WRITE_ONCE(esp->ack_pending, ESP_ACK_RIDES);
	WRITE_ONCE(esp->deadline[ESP_T_ACK], at);
	smp_mb();	/* pairs with line_fn() and line_follow(): deadline first */
	line = READ_ONCE(esp->ack_line);
	if (!line || at < READ_ONCE(esp->ack_at) || at > READ_ONCE(line->follow))
		esp_line_up(esp, at);
}

/* sockopt.c */
int esp_setsockopt(struct socket *sock, int level, int name, sockptr_t val,
		   unsigned int len);
int esp_getsockopt(struct socket *sock, int level, int name,
		   char __user *val, int __user *len);
void esp_get_info(struct sock *sk, struct esp_info *info);
int esp_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);

/* dgram.c */
extern const struct proto_ops esp_dgram_ops;
int esp_dgram_kill(struct sock *sk, int err);
void esp_dgram_rcv(struct net *net, struct esp_dev *ed, struct sk_buff *skb);

/* memory.c */
void esp_mem_uncharge(struct sock *sk, int size);
void esp_set_owner_r(struct sk_buff *skb, struct sock *sk);
bool esp_mem_charge_more(struct sock *sk, struct sk_buff *skb, int size);
void esp_mem_nobodys(struct sock *sk);
bool esp_mem_accept(struct sock *sk);

/**
 * esp_mem_schedule() - may a socket use memory?
 * @sk:		socket; its owner calls
 * @skb:	packet that it has received; NULL: it sends
 * @size:	bytes
 *
 * Return: true if so
 */
static inline bool esp_mem_schedule(struct sock *sk, struct sk_buff *skb, int size)
{
	return size <= sk->sk_forward_alloc || esp_mem_charge_more(sk, skb, size);
}

/* sysctl.c */
int esp_sysctl_net_init(struct net *net);
void esp_sysctl_net_exit(struct net *net);
int esp_sysctl_dev_init(struct net *net, struct esp_dev *ed, const char *name);
void esp_sysctl_dev_exit(struct esp_dev *ed);
void esp_policy_get(struct net *net, struct esp_policy *p);
extern long esp_mem[3];
extern atomic_long_t esp_memory_allocated;
extern struct percpu_counter esp_sockets_allocated;
extern unsigned long esp_memory_pressure;

/* mib.c */
int esp_mib_net_init(struct net *net);
void esp_mib_net_exit(struct net *net);

#endif /* _ESP_H */
