/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Wire format of the Ethernet Streaming Protocol: the single source of the layout.
 * Documentation/wire-format.rst shows it by an example in hex.
 */
#ifndef _UAPI_LINUX_ESP_WIRE_H
#define _UAPI_LINUX_ESP_WIRE_H

#include <linux/types.h>

#define ESP_VERSION		1
#define ESP_HLEN		32	/* header without options, bytes */
#define ESP_HLEN_MAX		60	/* largest header with options, bytes */
#define ESP_OPT_MAX		(ESP_HLEN_MAX - ESP_HLEN)
#define ESP_PAYLOAD_MAX		(65535 - ESP_HLEN)

/**
 * enum esp_wire_flags - bits of esp_wire.flags
 * @ESP_SYN:	opens a connection; takes a pkt_seq; has options
 * @ESP_ACK:	cookie, ack_seq, grant and ts_ecr are valid
 * @ESP_FIN:	end of the sender's data; takes a pkt_seq; no payload
 * @ESP_RST:	the connection does not exist any more
 * @ESP_TXS:	start of a transmission, which it announces; on an empty packet also
 *		the sender's probe, which the receiver answers at once
 * @ESP_TXF:	end of a transmission
 * @ESP_EOR:	end of a record (SOCK_SEQPACKET)
 * @ESP_RRQ:	retransmission request; the payload is struct esp_wire_range[]
 *
 * A frame with none of these is an EDP datagram.
 */
enum esp_wire_flags {
	ESP_SYN	= 0x01,
	ESP_ACK	= 0x02,
	ESP_FIN	= 0x04,
	ESP_RST	= 0x08,
	ESP_TXS	= 0x10,
	ESP_TXF	= 0x20,
	ESP_EOR	= 0x40,
	ESP_RRQ	= 0x80,
};

/**
 * struct esp_wire - the header, after the Ethernet header, big-endian
 * @ver_hlen:	version (high four bits), header length in 32-bit words
 * @flags:	enum esp_wire_flags
 * @grant:	packets beyond @ack_seq that the addressee may send, at most ESP_GRANT_MOST;
 *		0: HOLD: its packets are received, but it has to wait. While the
 *		addressee has announced no transmission: its first burst, packets. In a
 *		packet with payload, ESP_GRANT_BUSY and ESP_GRANT_LATER may be set, too
 * @sport:	source port
 * @dport:	destination port
 * @cookie:	cookie that the addressee chose; 0 in SYN and in a datagram
 * @pkt_seq:	number of this packet; in an empty packet the number of the next
 *		packet to be sent
 * @ack_seq:	number of the next packet that the sender expects
 * @ts_val:	the sender's clock, microseconds, read anew for every frame
 * @ts_ecr:	the last ts_val that came from the addressee, plus the
 *		microseconds for which it was held
 * @len:	payload, bytes; the frame may be longer (padding)
 * @csum:	internet checksum over header, options and payload
 */
struct esp_wire {
	__u8	ver_hlen;
	__u8	flags;
	__be16	grant;
	__be16	sport;
	__be16	dport;
	__be32	cookie;
	__be32	pkt_seq;
	__be32	ack_seq;
	__be32	ts_val;
	__be32	ts_ecr;
	__be16	len;
	__u16	csum;
};

#define ESP_GRANT_MOST	0x3fff	/* largest grant, packets */
/* Bit of esp_wire.grant: the sender's own link is busy. Only with ESP_FEATURE_LEFT. */
#define ESP_GRANT_BUSY	0x8000
/*
 * Bit of esp_wire.grant, with ESP_TXS and ESP_TXF: the sender does not take the packet for lost
 * before ESP_LATER_US are over, so its ACK may wait that long for data to ride on. Only with
 * ESP_FEATURE_LATER.
 */
#define ESP_GRANT_LATER	0x4000
#define ESP_LATER_US	40000	/* longest time that an ACK waits after ESP_GRANT_LATER, us */

/**
 * enum esp_wire_opt - options: type, length (with these two bytes), value
 * @ESP_OPT_END:	padding, no length; ends the options
 * @ESP_OPT_COOKIE:	6: cookie that the sender chose for frames to itself. In a
 *			packet without payload: the addressee has to answer, with
 *			RST if there is no connection
 * @ESP_OPT_MSS:	4: largest payload that the sender takes, bytes
 * @ESP_OPT_TYPE:	3: SOCK_STREAM (1) or SOCK_SEQPACKET (5)
 * @ESP_OPT_FEATURES:	3: mask of the features that the sender wants, ESP_FEATURE_*; in
 *			SYN|ACK: mask of those that both sides agree on
 * @ESP_OPT_BURST:	6: the sender's burst_length, which caps the addressee's, too, and
 *			its packets_to_ack
 * @ESP_OPT_ADVICE:	4: echo of the first burst that the addressee advised to the
 *			sender (rule 21)
 * @ESP_OPT_CRC:	6: CRC32c over header, options and payload, with this value
 *			and the checksum as 0; always the first option
 * @ESP_OPT_PART:	6: the payload is a part of the packet: offset of its first byte in
 *			the packet, and length of the packet, bytes. All parts have the
 *			packet's number and its flags
 * @ESP_OPT_LEFT:	6: where the data end that the sender has to send, and its first
 *			burst: low half of the number after the last packet, and the packets
 *			from this one on that leave before the first ACK
 */
enum esp_wire_opt {
	ESP_OPT_END		= 0,
	ESP_OPT_COOKIE		= 1,
	ESP_OPT_MSS		= 2,
	ESP_OPT_TYPE		= 3,
	ESP_OPT_FEATURES	= 4,
	ESP_OPT_BURST		= 5,
	ESP_OPT_ADVICE		= 6,
	ESP_OPT_CRC		= 7,
	ESP_OPT_PART		= 8,
	ESP_OPT_LEFT		= 9,
};

/* Bit of ESP_OPT_FEATURES: each frame except SYN, SYN|ACK and RST has ESP_OPT_CRC. */
#define ESP_FEATURE_CRC32C	0x01
/* Bit of ESP_OPT_FEATURES: the sender takes packets in parts, ESP_OPT_PART. */
#define ESP_FEATURE_PARTS	0x02
/*
 * Bit of ESP_OPT_FEATURES: in a SYN, the client wants the TCP server of the IP address whose name
 * the SYN has in ack_seq (high half) and ts_ecr (low half). An IPv4 address is its own name, and
 * the name of an IPv6 address is its SipHash-2-4 with key 0. In SYN|ACK: such a server answers.
 */
#define ESP_FEATURE_TCP		0x04
/* Bit of ESP_OPT_FEATURES: the sender knows ESP_OPT_LEFT and ESP_GRANT_BUSY. */
#define ESP_FEATURE_LEFT	0x08
/* Bit of ESP_OPT_FEATURES: the sender knows ESP_GRANT_LATER. */
#define ESP_FEATURE_LATER	0x10

/**
 * struct esp_wire_range - consecutive packets that an RRQ asks for
 * @offset:	offset of the first packet from ack_seq
 * @count:	number of packets, not 0
 */
struct esp_wire_range {
	__be16	offset;
	__be16	count;
};

#define ESP_RRQ_RANGES	3	/* most ranges in one RRQ */

#endif /* _UAPI_LINUX_ESP_WIRE_H */
