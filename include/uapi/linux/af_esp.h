/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The Ethernet Streaming Protocol's socket interface.
 *
 * Not to be confused with IPsec's Encapsulating Security Payload, whose
 * kernel header is net/esp.h.
 */
#ifndef _UAPI_LINUX_AF_ESP_H
#define _UAPI_LINUX_AF_ESP_H

#include <linux/types.h>
#include <linux/socket.h>

/* Econet's number, which Linux freed in 3.5; module parameter "family". */
#ifndef AF_ESP
#define AF_ESP		19
#define PF_ESP		AF_ESP
#endif

/* IEEE 802 local experimental EtherType 1; module parameter "ethertype". */
#define ESP_ETHERTYPE	0x88b5

/**
 * struct sockaddr_esp - address of an ESP or EDP socket
 * @sesp_family:	AF_ESP
 * @sesp_port:		port, big-endian. bind(): 0 takes a free one; below
 *			1024 needs CAP_NET_BIND_SERVICE (else EACCES)
 * @sesp_ifindex:	device; 0: any (bind), or chosen by the rules of
 *			connect(), see esp(7)
 * @sesp_halen:		6, or 0 where @sesp_addr is meant to be read all the
 *			same (programs of the original sockaddr_en); anything
 *			else is EINVAL
 * @sesp_addr:		MAC address of the peer; in bind() zero or the
 *			device's own (else EADDRNOTAVAIL)
 * @sesp_zero:		zero
 *
 * 16 bytes, laid out as the original's sockaddr_en.
 */
struct sockaddr_esp {
	__kernel_sa_family_t	sesp_family;
	__be16			sesp_port;
	__u32			sesp_ifindex;
	__u8			sesp_halen;
	__u8			sesp_addr[6];
	__u8			sesp_zero;
};

/* Level for setsockopt() and getsockopt(); no other family uses it. */
#define SOL_ESP		0x4553

/**
 * enum esp_sockopt - socket options at level SOL_ESP
 * @ESP_MTU:		(int, get) largest payload of one frame on the socket's
 *			device, bytes; ENODEV while the socket has no device
 * @ESP_STATS:		(struct esp_stats, get) counters of this socket
 * @ESP_INFO:		(struct esp_info, get) protocol state
 * @ESP_MAXSEG:		(int) upper bound of the payload of a packet, bytes,
 *			64 ... 65503; set before connect() or listen()
 *			(else EISCONN); get: connected, the value in force; else
 *			what was set, 0: nothing
 * @ESP_NODELAY:	(int, default 1) 0: hold back a packet that is not full
 *			while data is unacknowledged
 * @ESP_CORK:		(int, default 0) 1: hold back a packet that is not full
 *			until the option is cleared, but 5 ms at most
 * @ESP_USER_TIMEOUT:	(unsigned int) ms for which sent data may stay
 *			unanswered before ETIMEDOUT; 0: net.esp.retries decides
 * @ESP_KEEPIDLE:	(int) seconds of silence before the first keepalive
 *			probe, 1 ... 32767
 * @ESP_KEEPINTVL:	(int) seconds between probes, 1 ... 32767
 * @ESP_KEEPCNT:	(int) unanswered probes before ETIMEDOUT, 1 ... 127
 * @ESP_BURST_LENGTH:	(int) burst_length of this socket, packets,
 *			0 (no cap; adaptive policy only) ... 65535. A connection
 *			has the smaller one of both ends, which may become smaller
 *			later, but not larger
 * @ESP_INITIAL_ACK_BURST_LENGTH: (int) packets that may follow the announcing
 *			one before the first ACK, 0 ... 64; -1: as the peer
 *			advises
 * @ESP_PACKETS_TO_ACK:	(int) packets queued in order for each ACK, 1 ... 64
 * @ESP_ZEROCOPY:	(int, default 0) 1: a stream's sendmsg() with MSG_ZEROCOPY
 *			refers to the caller's memory instead of copying it, and
 *			the error queue tells when it is no longer used. As
 *			SO_ZEROCOPY, which kernels before 6.2 refuse to this family
 * @ESP_CRC32C:		(int, default 0; stream, seqpacket) 1: each frame of the
 *			connection has a CRC32c; one side's wish is enough. A
 *			listener that doesn't know it has none; a caller that
 *			doesn't is refused by one that wants it. Set before connect()
 *			or listen() (else EISCONN); get: connected, what is in force;
 *			else what was set
 * @ESP_RECVERR:	no option: type of the control message, a struct
 *			sock_extended_err, that recvmsg() with MSG_ERRQUEUE returns
 */
enum esp_sockopt {
	ESP_MTU				= 1,
	ESP_STATS			= 2,
	ESP_INFO			= 3,
	ESP_MAXSEG			= 4,
	ESP_NODELAY			= 5,
	ESP_CORK			= 6,
	ESP_USER_TIMEOUT		= 7,
	ESP_KEEPIDLE			= 8,
	ESP_KEEPINTVL			= 9,
	ESP_KEEPCNT			= 10,
	ESP_BURST_LENGTH		= 11,
	ESP_INITIAL_ACK_BURST_LENGTH	= 12,
	ESP_PACKETS_TO_ACK		= 13,
	ESP_ZEROCOPY			= 14,
	ESP_RECVERR			= 15,
	ESP_CRC32C			= 16,
};

/**
 * struct esp_stats - counters of one socket, since its creation
 * @tx_packets:		data packets sent for the first time
 * @tx_bytes:		their payload
 * @rx_packets:		data packets queued in order
 * @rx_bytes:		their payload
 * @retrans:		data packets sent again
 * @rx_dup:		data packets that were here already
 * @rx_ooo:		data packets that came out of order and were kept
 * @tx_empty:		empty packets sent; without RRQs, and without the ACKs by
 *			which the ACK queue releases permission
 * @rx_empty:		empty packets received; with both
 * @rrq_tx:		retransmission requests sent
 * @rrq_rx:		retransmission requests received
 * @timeouts:		expirations of the retransmission timer
 * @expiries:		permissions that expired (RRQ timer)
 * @holds_rx:		HOLDs received
 * @parked:		times that this socket's permission was parked (not: expired)
 * @parked_us:		and for how long altogether, microseconds
 */
struct esp_stats {
	__u64	tx_packets;
	__u64	tx_bytes;
	__u64	rx_packets;
	__u64	rx_bytes;
	__u64	retrans;
	__u64	rx_dup;
	__u64	rx_ooo;
	__u64	tx_empty;
	__u64	rx_empty;
	__u64	rrq_tx;
	__u64	rrq_rx;
	__u64	timeouts;
	__u64	expiries;
	__u64	holds_rx;
	__u64	parked;
	__u64	parked_us;
};

/* Bits of esp_info.flags: the seed's yes-or-no state, and who is parked. */
#define ESP_IF_TRANS_ANNOUNCED	0x01	/* trans_announced */
#define ESP_IF_RECV_ANNOUNCED	0x02	/* recv_announced */
#define ESP_IF_RCV_MEM_PRESSURE	0x04	/* rcv_mem_pressure */
#define ESP_IF_PARKED		0x08	/* in esp_ack_queue */
#define ESP_IF_HELD		0x10	/* the peer's last answer was a HOLD */
#define ESP_IF_ECHOING		0x20	/* handshake not yet confirmed */
#define ESP_IF_CRC32C		0x40	/* frames have a CRC32c */

/**
 * struct esp_info - protocol state of one socket
 * @state:		TCP_ESTABLISHED and so on, by TCP's numbers
 * @flags:		ESP_IF_*
 * @retransmits:	expirations in a row, unanswered
 * @probes:		unanswered probes
 * @mss:		payload of a full packet, bytes
 * @peer_mss:		what the peer said of its own
 * @rtt_us:		smoothed round trip
 * @rttvar_us:		its mean deviation
 * @min_rtt_us:		smallest of the last ten seconds to this peer
 * @rto_us:		retransmission timeout in force
 * @una_seq:		first sent and unacknowledged packet
 * @send_next:		next packet to be sent for the first time
 * @send_seq:		number of the next packet to be made
 * @announce_seq:	last announcing packet
 * @edge:		first packet that may not be sent
 * @recv_seq:		next packet expected
 * @ack_seq:		last acknowledgment sent
 * @recv_edge:		first packet that the peer may not send
 * @open:		packets granted to the peer that have not arrived
 * @advice:		first burst that the peer advised, packets
 * @advice_given:	first burst that the peer was advised, packets
 * @notsent:		bytes on the write queue not yet sent
 * @unacked:		bytes sent and unacknowledged
 * @pad:		zero
 * @stats:		counters
 *
 * From sock_diag without CAP_NET_ADMIN packets are numbered from 1, since their numbers
 * tell the connection's cookies.
 */
struct esp_info {
	__u8	state;
	__u8	flags;
	__u8	retransmits;
	__u8	probes;
	__u32	mss;
	__u32	peer_mss;
	__u32	rtt_us;
	__u32	rttvar_us;
	__u32	min_rtt_us;
	__u32	rto_us;
	__u32	una_seq;
	__u32	send_next;
	__u32	send_seq;
	__u32	announce_seq;
	__u32	edge;
	__u32	recv_seq;
	__u32	ack_seq;
	__u32	recv_edge;
	__u32	open;
	__u32	advice;
	__u32	advice_given;
	__u32	notsent;
	__u32	unacked;
	__u32	pad;
	struct esp_stats stats;
};

#endif /* _UAPI_LINUX_AF_ESP_H */
