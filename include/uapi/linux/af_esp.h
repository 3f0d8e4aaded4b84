/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The Ethernet Streaming Protocol's socket interface.
 *
 * IPsec's Encapsulating Security Payload is another protocol. Its kernel header is net/esp.h.
 */
#ifndef _UAPI_LINUX_AF_ESP_H
#define _UAPI_LINUX_AF_ESP_H

#include <linux/types.h>
#include <linux/socket.h>

/* Econet's number, which Linux freed in 3.5; see the module parameter "family". */
#ifndef AF_ESP
#define AF_ESP		19
#define PF_ESP		AF_ESP
#endif

/* IEEE 802 local experimental EtherType 1; see the module parameter "ethertype". */
#define ESP_ETHERTYPE	0x88b5

/**
 * struct sockaddr_esp - address of an ESP or EDP socket
 * @sesp_family:	AF_ESP
 * @sesp_port:		port, big-endian. bind(): 0 takes a free port; a port below
 *			1024 needs CAP_NET_BIND_SERVICE (else EACCES)
 * @sesp_ifindex:	device; 0: any (bind), or chosen by the rules of
 *			connect(), see esp(7)
 * @sesp_halen:		length of @sesp_addr: 6; 0 counts as 6, because programs of
 *			the original sockaddr_en set it; any other value is EINVAL
 * @sesp_addr:		MAC address of the peer; in bind() zero or the address
 *			of the device (else EADDRNOTAVAIL)
 * @sesp_zero:		zero
 *
 * The structure has 16 bytes, laid out as the original's sockaddr_en.
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
 *			64 ... 65503; to be set before connect() or listen()
 *			(else EISCONN). get: the value in force of a connected
 *			socket; of any other the value that was set, 0: none
 * @ESP_NODELAY:	(int, default 1) 0: hold back a packet that is not full
 *			while data is unacknowledged
 * @ESP_CORK:		(int, default 0) 1: hold back a packet that is not full
 *			until the option is cleared, but 5 ms at most
 * @ESP_USER_TIMEOUT:	(unsigned int) time for which sent data may stay
 *			unanswered before ETIMEDOUT, ms; 0: net.esp.retries decides
 * @ESP_KEEPIDLE:	(int) seconds of silence before the first keepalive
 *			probe, 1 ... 32767
 * @ESP_KEEPINTVL:	(int) seconds between probes, 1 ... 32767
 * @ESP_KEEPCNT:	(int) unanswered probes before ETIMEDOUT, 1 ... 127
 * @ESP_BURST_LENGTH:	(int) burst_length of this socket, packets,
 *			0 (no cap; adaptive policy only) ... 65535. A connection
 *			uses the smaller value of both ends. It may become smaller
 *			later, but not larger
 * @ESP_INITIAL_ACK_BURST_LENGTH: (int) packets that may follow the announcing
 *			packet before the first ACK, 0 ... 64; -1: the first burst
 *			that the peer advises
 * @ESP_PACKETS_TO_ACK:	(int) packets queued in order for each ACK, 1 ... 64
 * @ESP_ZEROCOPY:	(int, default 0) 1: a stream's sendmsg() with MSG_ZEROCOPY
 *			refers to the caller's memory instead of copying it. A
 *			message on the error queue tells that the memory is no
 *			longer used. Same as SO_ZEROCOPY, which kernels before 6.2
 *			refuse to this family
 * @ESP_CRC32C:		(int, default 0; stream, seqpacket) 1: each frame of the
 *			connection has a CRC32c, if one side sets the option. With a
 *			listener that does not know the option, the connection has
 *			none. A listener with the option refuses a client that does
 *			not know it. To be set before connect() or listen() (else
 *			EISCONN). get: the value in force of a connected socket; of
 *			any other the value that was set
 * @ESP_TCP_LISTENER:	(int; stream) descriptor of a TCP listener of the caller, which the
 *			socket is to stand for. To be set before bind() (else EISCONN), which
 *			then takes TCP's port only (else EADDRNOTAVAIL), and needs no permission
 *			for it. The socket answers clients with ESP_TCP_DEST while TCP's listener
 *			is open and has that address. EINVAL: no TCP listener; EALREADY: set before.
 *			get, on any socket: the value is the descriptor of a TCP listener. It is
 *			replaced by a new descriptor of the listening socket that stands for it
 *			(ENOENT: there is none)
 * @ESP_TCP_DEST:	(struct sockaddr_in or sockaddr_in6, set; stream) IP address of the TCP
 *			server that connect() wants: it fails with ECONNREFUSED unless a socket
 *			with ESP_TCP_LISTENER answers. The port doesn't count
 * @ESP_TCP_SOCKET:	(int, set; stream) descriptor of a TCP socket of the caller. The socket gets
 *			those of its options that ESP has. Neither may be connected (EISCONN).
 *			EOPNOTSUPP: TCP's has an option that a connection by ESP would lack
 *			(TCP_MD5SIG, SO_TIMESTAMPING, TCP_ULP ...); EPERM: one that the caller may
 *			not set; EINVAL: it is no TCP socket; EXDEV: it is of another network
 *			namespace
 * @ESP_RECVERR:	not an option, but the type of the control message that
 *			recvmsg() with MSG_ERRQUEUE returns: struct sock_extended_err
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
	ESP_TCP_LISTENER		= 17,
	ESP_TCP_DEST			= 18,
	ESP_TCP_SOCKET			= 19,
};

/**
 * struct esp_stats - counters of one socket, since its creation
 * @tx_packets:		data packets sent for the first time
 * @tx_bytes:		payload of @tx_packets, bytes
 * @rx_packets:		data packets queued in order
 * @rx_bytes:		payload of @rx_packets, bytes
 * @retrans:		data packets retransmitted
 * @rx_dup:		data packets that had been received before
 * @rx_ooo:		data packets received out of order and kept
 * @tx_empty:		empty packets sent; without RRQs, and without the ACKs by
 *			which the ACK queue releases a grant
 * @rx_empty:		empty packets received; including RRQs and all ACKs
 * @rrq_tx:		retransmission requests sent
 * @rrq_rx:		retransmission requests received
 * @timeouts:		expirations of the retransmission timer
 * @expiries:		grants that expired (RRQ timer)
 * @holds_rx:		HOLDs received
 * @parked:		number of grants of this socket that were queued in the ACK
 *			queue, without those that an expiry queued
 * @parked_us:		total time of grants in the ACK queue, microseconds
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

/* Bits of esp_info.flags: the seed's yes-or-no state, and more of the socket's. */
#define ESP_IF_TRANS_ANNOUNCED	0x01	/* trans_announced */
#define ESP_IF_RECV_ANNOUNCED	0x02	/* recv_announced */
#define ESP_IF_RCV_MEM_PRESSURE	0x04	/* rcv_mem_pressure */
#define ESP_IF_PARKED		0x08	/* the grant is queued in esp_ack_queue */
#define ESP_IF_HELD		0x10	/* the peer's last answer was a HOLD */
#define ESP_IF_ECHOING		0x20	/* the handshake is not yet confirmed */
#define ESP_IF_CRC32C		0x40	/* frames have a CRC32c */
#define ESP_IF_BUSY		0x80	/* the own link is busy: frames with data have BUSY */

/**
 * struct esp_info - protocol state of one socket
 * @state:		TCP_ESTABLISHED and so on, by TCP's numbers
 * @flags:		ESP_IF_*
 * @retransmits:	expirations of the retransmission timer in a row
 * @probes:		unanswered probes in a row
 * @mss:		payload of a full packet, bytes
 * @peer_mss:		largest payload that the peer accepts, bytes
 * @rtt_us:		smoothed round trip, microseconds
 * @rttvar_us:		mean deviation of the round trip, microseconds
 * @min_rtt_us:		smallest round trip to this peer in ten seconds, microseconds
 * @rto_us:		retransmission timeout in force, microseconds
 * @una_seq:		number of the first packet sent and not acknowledged
 * @send_next:		number of the next packet to be sent for the first time
 * @send_seq:		number of the next packet to be made
 * @announce_seq:	number of the last announcing packet
 * @edge:		number of the first packet that this socket may not send
 * @recv_seq:		number of the next packet expected
 * @ack_seq:		last acknowledgment sent
 * @recv_edge:		number of the first packet that the peer may not send
 * @open:		packets granted to the peer and not yet arrived
 * @advice:		first burst that the peer advised to this socket, packets
 * @advice_given:	first burst that this socket advised to the peer, packets
 * @notsent:		bytes on the write queue not yet sent
 * @unacked:		bytes sent and unacknowledged
 * @pad:		zero
 * @stats:		counters of ESP_STATS
 * @left:		packets that the peer has told of (option LEFT) and that have not come
 * @left_told:		packets that the peer was told of and has not acknowledged
 * @bucket:		packets that all connections of the peer's host may have outstanding to
 *			this link; 0: not connected, or net.esp.adaptive is 0
 * @bucket_open:	packets of @bucket that are outstanding
 * @bucket_busy:	share of the host's packets with BUSY, moving average, in 1/1000; 0: the
 *			host has not told BUSY since its bucket was last full
 *
 * A kernel that does not know the last members gives a shorter structure.
 *
 * Without CAP_NET_ADMIN, sock_diag numbers packets from 1, because their real numbers reveal
 * the connection's cookies.
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
	__u32	left;
	__u32	left_told;
	__u32	bucket;
	__u32	bucket_open;
	__u32	bucket_busy;
	__u32	pad2;
};

#endif /* _UAPI_LINUX_AF_ESP_H */
