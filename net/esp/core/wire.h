/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading and writing the header (include/uapi/linux/esp_wire.h). */
#ifndef _ESP_WIRE_H
#define _ESP_WIRE_H

#include "pure.h"
#ifdef __KERNEL__
#include <uapi/linux/esp_wire.h>
#else
#include <linux/esp_wire.h>
#endif

/**
 * enum esp_malformed - why a frame is dropped; each has a counter of its name
 * @ESP_WIRE_OK:	it isn't
 * @ESP_WIRE_SHORT:	ends before its header or payload does
 * @ESP_WIRE_VERSION:	unknown version
 * @ESP_WIRE_HLEN:	header length below the minimum
 * @ESP_WIRE_FLAGS:	flags that contradict each other, or the payload
 * @ESP_WIRE_OPTION:	an option overruns the header, is of the wrong length, there
 *			twice, at the wrong place, or missing in a SYN
 * @ESP_WIRE_PORT:	port 0
 * @ESP_WIRE_RANGE:	an RRQ that isn't one to three ranges
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

/* Options present in a frame: bits of esp_frame.opts. */
#define ESP_HAS(opt)	(1u << (opt))

#define ESP_CRC_AT	(ESP_HLEN + 2)	/* where the value of ESP_OPT_CRC is */
#define ESP_CRC_ROOM	8	/* which the option takes in a header, padded */

/* What the handshake's frames must carry. */
#define ESP_HAS_HELLO	(ESP_HAS(ESP_OPT_COOKIE) | ESP_HAS(ESP_OPT_MSS) | \
			 ESP_HAS(ESP_OPT_TYPE))

/**
 * struct esp_frame - a header in host order
 * @version:	of the header
 * @hlen:	header with options, bytes
 * @flags:	enum esp_wire_flags
 * @opts:	options present, bits of ESP_HAS()
 * @grant:	see struct esp_wire, as the following
 * @len:	payload
 * @sport:	stays big-endian, as in every address
 * @dport:	likewise
 * @cookie:	the addressee's
 * @pkt_seq:	packet number
 * @ack_seq:	next expected
 * @ts_val:	sender's clock
 * @ts_ecr:	echo
 * @peer_cookie: option: cookie that the sender chose
 * @mss:	option
 * @advice:	option
 * @burst:	option: burst_length
 * @to_ack:	option: packets_to_ack
 * @type:	option: socket type
 * @features:	option
 * @read:	not of the header: bytes of the payload that the user has taken, or
 *		that are another packet's; in a SYN the length of the frame,
 *		padding included
 * @segs:	not of the header, in data on its way to the user: packets that it
 *		stands for
 */
struct esp_frame {
	u8	version;
	u8	hlen;
	u8	flags;
	u8	opts;
	u16	grant;
	u16	len;
	__be16	sport;
	__be16	dport;
	u32	cookie;
	u32	pkt_seq;
	u32	ack_seq;
	u32	ts_val;
	u32	ts_ecr;
	u32	peer_cookie;
	union {
		u16	mss;
		u16	segs;
	};
	u16	advice;
	u16	burst;
	u16	to_ack;
	u8	type;
	u8	features;
	u16	read;
};

enum esp_malformed esp_wire_parse(const u8 *data, unsigned int avail,
				  unsigned int frame_len, struct esp_frame *f);
enum esp_malformed esp_wire_parse_options(const u8 *data, struct esp_frame *f);
unsigned int esp_wire_hlen_options(const struct esp_frame *f);
void esp_wire_build(u8 *data, const struct esp_frame *f);

/**
 * esp_wire_hlen() - length of the header that esp_wire_build() makes
 * @f:	only @f->opts is read
 *
 * Return: bytes, a multiple of four, at most ESP_HLEN_MAX
 */
static inline unsigned int esp_wire_hlen(const struct esp_frame *f)
{
	return f->opts ? esp_wire_hlen_options(f) : ESP_HLEN;
}

/* EDP: none of the reliable types' flags. */
static inline bool esp_frame_is_dgram(const struct esp_frame *f)
{
	return !f->flags;
}

/* An empty packet has no number of its own and never enters a write queue. */
static inline bool esp_frame_is_empty(const struct esp_frame *f)
{
	return (!f->len || (f->flags & ESP_RRQ)) &&
	       !(f->flags & (ESP_SYN | ESP_FIN));
}

/*
 * First packet number of the side that chose @cookie. Public on purpose: the
 * cookie is what keeps strangers out, and a stateless listener can work out
 * the number from any frame of the handshake's echo.
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
 * Offset of the clock on the wire of the side that chose @cookie. Likewise, so
 * that a listener's SYN|ACK and its child tell the same time.
 */
static inline u32 esp_ts_offset(u32 cookie)
{
	return esp_isn(~cookie);
}

#endif /* _ESP_WIRE_H */
