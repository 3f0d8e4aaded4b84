/* SPDX-License-Identifier: GPL-2.0-only */
/* Parser and builder of the header (include/uapi/linux/esp_wire.h). */
#ifndef _ESP_WIRE_H
#define _ESP_WIRE_H

#include "pure.h"
#ifdef __KERNEL__
#include <uapi/linux/esp_wire.h>
#else
#include <linux/esp_wire.h>
#endif

/**
 * enum esp_malformed - reasons to drop a frame; each has a counter of its name
 * @ESP_WIRE_OK:	the frame is valid
 * @ESP_WIRE_SHORT:	the frame ends before its header or payload does
 * @ESP_WIRE_VERSION:	unknown version
 * @ESP_WIRE_HLEN:	header length below the minimum
 * @ESP_WIRE_FLAGS:	flags contradict each other, or the payload
 * @ESP_WIRE_OPTION:	an option overruns the header, has the wrong length, is there
 *			twice, is at the wrong place, or is missing in a SYN
 * @ESP_WIRE_PORT:	port 0
 * @ESP_WIRE_RANGE:	the payload of an RRQ is not one to three ranges
 */
enum esp_malformed {
	ESP_WIRE_OK,
	ESP_WIRE_SHORT,
	ESP_WIRE_VERSION,
	ESP_WIRE_HLEN,
	ESP_WIRE_FLAGS,
	ESP_WIRE_OPTION,
	ESP_WIRE_PORT,
	ESP_WIRE_RANGE,
};

/* Options present in a frame: bits of esp_frame.opts. ESP_OPT_END has none. */
#define ESP_HAS(opt)	(1u << ((opt) - 1))

#define ESP_CRC_AT	(ESP_HLEN + 2)	/* offset of the value of ESP_OPT_CRC in the header */
#define ESP_CRC_ROOM	8	/* bytes of ESP_OPT_CRC in the header, padding included */
#define ESP_PART_ROOM	12	/* bytes of ESP_OPT_PART and ESP_OPT_ADVICE, padding included */
#define ESP_LEFT_ROOM	8	/* bytes of ESP_OPT_LEFT, padding included */

/* Options that the handshake's frames must carry. */
#define ESP_HAS_HELLO	(ESP_HAS(ESP_OPT_COOKIE) | ESP_HAS(ESP_OPT_MSS) | \
			 ESP_HAS(ESP_OPT_TYPE))

/**
 * struct esp_frame - a header in host order, with two fields for the receive queue
 *
 * @sport and @dport stay big-endian, as in every address.
 */
struct esp_frame {
	/** @hlen: length of the header with options, bytes */
	u8	hlen;
	/** @flags: enum esp_wire_flags */
	u8	flags;
	/** @version: version of the header */
	u16	version:4;
	/** @busy: ESP_GRANT_BUSY: the own link of the sender of the frame is busy */
	u16	busy:1;
	/** @later: ESP_GRANT_LATER: the ACK of the packet may wait for ESP_LATER_US */
	u16	later:1;
	/** @opts: options present, bits of ESP_HAS() */
	u16	opts:10;
	/** @grant: packets after @ack_seq that the addressee may send, see struct esp_wire */
	u16	grant;
	/** @len: payload, bytes */
	u16	len;
	/** @sport: source port, big-endian */
	__be16	sport;
	/** @dport: destination port, big-endian */
	__be16	dport;
	/** @cookie: cookie that the addressee chose */
	u32	cookie;
	/** @pkt_seq: number of the packet */
	u32	pkt_seq;
	/** @ack_seq: number of the next packet that the sender of the frame expects */
	u32	ack_seq;
	/** @ts_val: clock of the sender of the frame, microseconds */
	u32	ts_val;
	/** @ts_ecr: echo of the addressee's clock, microseconds, see struct esp_wire */
	u32	ts_ecr;
	/** @peer_cookie: ESP_OPT_COOKIE: cookie that the sender of the frame chose */
	u32	peer_cookie;
	union {
		/** @mss: ESP_OPT_MSS, bytes */
		u16	mss;
		/** @segs: receive queue: number of packets that the buffer stands for */
		u16	segs;
	};
	/** @advice: ESP_OPT_ADVICE, packets */
	u16	advice;
	union {
		/** @burst: ESP_OPT_BURST: burst_length, packets */
		u16	burst;
		/** @part_at: ESP_OPT_PART: offset of the payload in the packet, bytes */
		u16	part_at;
		/** @left: ESP_OPT_LEFT: low half of the number after the last packet */
		u16	left;
	};
	union {
		/** @to_ack: ESP_OPT_BURST: packets_to_ack */
		u16	to_ack;
		/** @part_size: ESP_OPT_PART: length of the packet, bytes */
		u16	part_size;
		/** @first: ESP_OPT_LEFT: packets of the first burst, from this one on */
		u16	first;
	};
	/** @type: ESP_OPT_TYPE: socket type */
	u8	type;
	/** @features: ESP_OPT_FEATURES: ESP_FEATURE_* */
	u8	features;
	/**
	 * @read: receive queue: bytes of the payload that the user has taken, or that belong to
	 * another packet; in a SYN: length of the frame, padding included; in the echo of a
	 * listener's cookie: 1 + the low bits of the cookie's slot
	 */
	u16	read;
};

enum esp_malformed esp_wire_parse(const u8 *data, unsigned int avail,
				  unsigned int frame_len, struct esp_frame *f);
enum esp_malformed esp_wire_parse_options(const u8 *data, struct esp_frame *f);
unsigned int esp_wire_hlen_options(const struct esp_frame *f);
void esp_wire_build(u8 *data, const struct esp_frame *f);

/**
 * esp_wire_hlen() - compute the length of the header that esp_wire_build() writes
 * @f:	only @f->opts is read
 *
 * Return: bytes, a multiple of four, at most ESP_HLEN_MAX
 */
static inline unsigned int esp_wire_hlen(const struct esp_frame *f)
{
	return f->opts ? esp_wire_hlen_options(f) : ESP_HLEN;
}

/* Compute the number after the last packet that the sender of the frame has, by ESP_OPT_LEFT. */
static inline u32 esp_frame_end(const struct esp_frame *f)
{
	return f->pkt_seq + (u16)(f->left - f->pkt_seq);
}

/* Is this an EDP datagram, without any flag of the reliable types? */
static inline bool esp_frame_is_dgram(const struct esp_frame *f)
{
	return !f->flags;
}

/* Is this an empty packet, which has no number of its own and never enters a write queue? */
static inline bool esp_frame_is_empty(const struct esp_frame *f)
{
	return (!f->len || (f->flags & ESP_RRQ)) &&
	       !(f->flags & (ESP_SYN | ESP_FIN));
}

/*
 * Compute the first packet number of the side that chose @cookie. The function is public on
 * purpose: the cookie keeps strangers out, and a stateless listener can compute the number
 * from any frame of the handshake's echo.
 */
static inline u32 esp_isn(u32 cookie)
{
	cookie ^= cookie >> 16;
	cookie *= 0x7feb352du;
	cookie ^= cookie >> 15;
#ifdef ESP_NEAR_WRAP	/* for tests: the numbers of every connection wrap soon */
	return -2 - (cookie % (ESP_NEAR_WRAP - 2));
#endif
	return cookie;
}

/*
 * Compute the offset of the clock on the wire of the side that chose @cookie. It depends on
 * the cookie alone, so that a listener's SYN|ACK and its child connection tell the same time.
 */
static inline u32 esp_ts_offset(u32 cookie)
{
	return esp_isn(~cookie);
}

#endif /* _ESP_WIRE_H */
