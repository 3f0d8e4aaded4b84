/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * sock_diag of the Ethernet Streaming Protocol (module esp_diag).
 */
#ifndef _UAPI_LINUX_ESP_DIAG_H
#define _UAPI_LINUX_ESP_DIAG_H

#include <linux/types.h>
#include <linux/af_esp.h>

/**
 * struct esp_diag_req - payload of a SOCK_DIAG_BY_FAMILY dump request
 * @sdiag_family:	AF_ESP
 * @sdiag_type:		SOCK_STREAM, SOCK_SEQPACKET or SOCK_DGRAM; 0: all
 * @pad:		zero
 * @states:		mask of 1 << TCP state; 0: all
 * @port:		local port, big-endian; 0: all
 * @pad2:		zero
 */
struct esp_diag_req {
	__u8	sdiag_family;
	__u8	sdiag_type;
	__u16	pad;
	__u32	states;
	__be16	port;
	__u16	pad2;
};

/**
 * struct esp_diag_kill - payload of a SOCK_DESTROY request, which CAP_NET_ADMIN may send
 * @sdiag_family:	AF_ESP
 * @sdiag_type:		SOCK_STREAM, SOCK_SEQPACKET or SOCK_DGRAM
 * @pad:		zero
 * @cookie:		cookie of the socket, as in struct esp_diag_msg; ~0, ~0: any socket
 *			with these addresses
 * @src:		local address, as in struct esp_diag_msg; its port counts
 * @dst:		peer's address, as in struct esp_diag_msg; zero: the socket has no peer
 *
 * The answer's error is EPERM, ENOENT (no such socket, or it has ended) or ESTALE (all
 * sockets with these addresses have other cookies).
 */
struct esp_diag_kill {
	__u8	sdiag_family;
	__u8	sdiag_type;
	__u16	pad;
	__u32	cookie[2];
	struct sockaddr_esp src;
	struct sockaddr_esp dst;
};

/**
 * struct esp_diag_msg - one socket of the dump (SOCK_DIAG_BY_FAMILY, multipart)
 * @family:	AF_ESP
 * @type:	socket type
 * @state:	TCP_ESTABLISHED and so on, by TCP's numbers
 * @pad:	zero
 * @uid:	user ID of the owner
 * @ino:	inode of the socket; 0: no process has it open
 * @rqueue:	bytes that can be read; listening: connections to be accepted;
 *		SOCK_DGRAM: memory that received datagrams take, bytes
 * @wqueue:	bytes not yet acknowledged; listening: the backlog; SOCK_DGRAM:
 *		memory that outgoing datagrams take, bytes
 * @cookie:	identifies the socket
 * @src:	local address; its MAC address is set for connections, else zero
 * @dst:	peer's address (getpeername), zero if there is none
 *
 * Attributes ESP_DIAG_* follow.
 */
struct esp_diag_msg {
	__u8	family;
	__u8	type;
	__u8	state;
	__u8	pad;
	__u32	uid;
	__u32	ino;
	__u32	rqueue;
	__u32	wqueue;
	__u32	cookie[2];
	struct sockaddr_esp src;
	struct sockaddr_esp dst;
};

/**
 * enum esp_diag_attr - attributes after struct esp_diag_msg
 * @ESP_DIAG_UNSPEC:	unused
 * @ESP_DIAG_INFO:	struct esp_info (not for SOCK_DGRAM)
 * @ESP_DIAG_MEMINFO:	__u32 array by SK_MEMINFO_*
 * @ESP_DIAG_TIMERS:	__u64 array by ESP_DIAG_T_*, aligned to 4 bytes: microseconds until the
 *			timer fires; 0: the timer is late; ESP_DIAG_T_OFF: the timer is off
 *			(not for SOCK_DGRAM)
 */
enum esp_diag_attr {
	ESP_DIAG_UNSPEC,
	ESP_DIAG_INFO,
	ESP_DIAG_MEMINFO,
	ESP_DIAG_TIMERS,
};

#define ESP_DIAG_T_OFF	0xffffffffffffffffULL

/**
 * enum esp_diag_timer - timers of a socket
 * @ESP_DIAG_T_SEND:	retransmission, or probe while the sender waits for a grant
 * @ESP_DIAG_T_RRQ:	expiry of a grant: the receiver asks for the granted packets
 * @ESP_DIAG_T_REORDER:	a gap lasts longer than reordering explains
 * @ESP_DIAG_T_ACK:	delayed ACK, which waits for data to carry it
 * @ESP_DIAG_T_CONN:	handshake, end of an orphan, end of TIME_WAIT
 * @ESP_DIAG_T_KEEP:	keepalive
 * @ESP_DIAG_T_CORK:	end of holding back a packet that is not full
 * @ESP_DIAG_T_TELL:	news for the peer: free space, or a changed first burst
 * @ESP_DIAG_T_MAX:	number of timers
 */
enum esp_diag_timer {
	ESP_DIAG_T_SEND,
	ESP_DIAG_T_RRQ,
	ESP_DIAG_T_REORDER,
	ESP_DIAG_T_ACK,
	ESP_DIAG_T_CONN,
	ESP_DIAG_T_KEEP,
	ESP_DIAG_T_CORK,
	ESP_DIAG_T_TELL,
	ESP_DIAG_T_MAX,
};

#endif /* _UAPI_LINUX_ESP_DIAG_H */
