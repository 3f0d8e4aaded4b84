// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wire format: one parser and one builder, which use no kernel services. The parser checks
 * every claim of a frame before other code relies on it.
 */
#include "wire.h"

static u16 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static u32 get32(const u8 *p)
{
	return (u32)get16(p) << 16 | get16(p + 2);
}

static void put16(u8 *p, u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void put32(u8 *p, u32 v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

/* Is this an ACK, with no flags but those that data may have? */
static bool is_ordinary(u8 fl)
{
	return (fl & ~(ESP_TXS | ESP_TXF | ESP_EOR)) == ESP_ACK;
}

static bool flags_valid(u8 fl)
{
	if (is_ordinary(fl) || !fl)
		return true;
	if (fl & ESP_SYN)	/* SYN or SYN|ACK, with no other flag */
		return !(fl & ~(ESP_SYN | ESP_ACK));
	if (fl & ESP_RST)
		return !(fl & ~(ESP_RST | ESP_ACK));
	if (!(fl & ESP_ACK))
		return false;
	if (fl & ESP_RRQ)
		return !(fl & ~(ESP_RRQ | ESP_ACK));
	if (fl & ESP_FIN)
		return !(fl & ~(ESP_FIN | ESP_ACK));
	return true;
}

static_assert(ESP_OPT_LEFT <= 11);	/* bits of esp_frame.opts */

/* Length of each option, with the bytes of its type and length. */
static const u8 option_len[] = {
	[ESP_OPT_COOKIE]	= 6,
	[ESP_OPT_MSS]		= 4,
	[ESP_OPT_TYPE]		= 3,
	[ESP_OPT_FEATURES]	= 3,
	[ESP_OPT_BURST]		= 6,
	[ESP_OPT_ADVICE]	= 4,
	[ESP_OPT_CRC]		= 6,
	[ESP_OPT_PART]		= 6,
	[ESP_OPT_LEFT]		= 6,
};

/* May the frame be a part of a packet? Only data is sent in parts, after the handshake. */
static bool part_valid(const struct esp_frame *f)
{
	return f->len && is_ordinary(f->flags) && (u32)f->part_at + f->len <= f->part_size;
}

/* May the frame have these options? Of BURST, PART and LEFT it has one at most. */
static bool options_valid(const struct esp_frame *f)
{
	u16 one = f->opts & (ESP_HAS(ESP_OPT_BURST) | ESP_HAS(ESP_OPT_PART) |
			     ESP_HAS(ESP_OPT_LEFT));

	if (one & (one - 1))
		return false;
	if (one & ESP_HAS(ESP_OPT_PART))
		return part_valid(f);
	return !(one & ESP_HAS(ESP_OPT_LEFT)) || is_ordinary(f->flags);
}

/**
 * esp_wire_parse_options() - read the options of a parsed header
 * @data:	header; @f->hlen bytes of it are readable
 * @f:		frame, to which the options are added
 *
 * The parser skips unknown options.
 *
 * Return: ESP_WIRE_OK or ESP_WIRE_OPTION
 */
enum esp_malformed esp_wire_parse_options(const u8 *data, struct esp_frame *f)
{
	unsigned int at = ESP_HLEN;

	f->opts = 0;
	while (at < f->hlen && data[at] != ESP_OPT_END) {
		unsigned int left = f->hlen - at;
		const u8 *v = data + at + 2;
		unsigned int len, kind;

		if (left < 2)
			return ESP_WIRE_OPTION;
		len = data[at + 1];
		if (len < 2 || len > left)
			return ESP_WIRE_OPTION;
		kind = data[at];
		at += len;
		if (kind >= sizeof(option_len))	/* unknown */
			continue;
		if (len != option_len[kind] || (f->opts & ESP_HAS(kind)))
			return ESP_WIRE_OPTION;
		f->opts |= ESP_HAS(kind);
		switch (kind) {
		case ESP_OPT_COOKIE:
			f->peer_cookie = get32(v);
			break;
		case ESP_OPT_BURST:
			f->burst = get16(v);
			f->to_ack = get16(v + 2);
			break;
		case ESP_OPT_MSS:
			f->mss = get16(v);
			break;
		case ESP_OPT_ADVICE:
			f->advice = get16(v);
			break;
		case ESP_OPT_TYPE:
			f->type = v[0];
			break;
		case ESP_OPT_FEATURES:
			f->features = v[0];
			break;
		case ESP_OPT_PART:
			f->part_at = get16(v);
			f->part_size = get16(v + 2);
			break;
		case ESP_OPT_LEFT:
			f->left = get16(v);
			f->first = get16(v + 2);
			break;
		case ESP_OPT_CRC:
			if (v != data + ESP_CRC_AT)
				return ESP_WIRE_OPTION;
			break;
		}
	}
	return options_valid(f) ? ESP_WIRE_OK : ESP_WIRE_OPTION;
}

/**
 * esp_wire_parse() - read and check a header
 * @data:	frame after its Ethernet header
 * @avail:	bytes readable at @data: the whole header with its options, if the frame is
 *		that long
 * @frame_len:	bytes in the frame, padding included
 * @f:		result. It is invalid if the frame must be dropped, except @f->version
 *		with ESP_WIRE_VERSION
 *
 * The caller checks checksum and CRC, because they cover the payload.
 *
 * Return: ESP_WIRE_OK, or the reason to drop the frame
 */
enum esp_malformed esp_wire_parse(const u8 *data, unsigned int avail,
				  unsigned int frame_len, struct esp_frame *f)
{
	enum esp_malformed bad;

	memset_startat(f, 0, peer_cookie);
	if (avail < ESP_HLEN || frame_len < ESP_HLEN)
		return ESP_WIRE_SHORT;
	f->version = data[0] >> 4;
	if (f->version != ESP_VERSION)
		return ESP_WIRE_VERSION;
	f->hlen = (data[0] & 15) * 4;
	if (f->hlen < ESP_HLEN)
		return ESP_WIRE_HLEN;
	f->flags = data[1];
	f->grant = get16(data + 2) & ESP_GRANT_MOST;
	f->busy = data[2] >> 7;
	f->later = data[2] >> 6 & 1;
	memcpy(&f->sport, data + 4, 2);
	memcpy(&f->dport, data + 6, 2);
	f->cookie = get32(data + 8);
	f->pkt_seq = get32(data + 12);
	f->ack_seq = get32(data + 16);
	f->ts_val = get32(data + 20);
	f->ts_ecr = get32(data + 24);
	f->len = get16(data + 28);
	if (f->hlen > avail || (unsigned int)f->hlen + f->len > frame_len)
		return ESP_WIRE_SHORT;
	if (!f->sport || !f->dport)
		return ESP_WIRE_PORT;
	if (!flags_valid(f->flags))
		return ESP_WIRE_FLAGS;
	if ((f->flags & (ESP_EOR | ESP_TXF)) && !f->len)
		return ESP_WIRE_FLAGS;
	f->opts = 0;
	if (is_ordinary(f->flags) && f->hlen == ESP_HLEN)
		return ESP_WIRE_OK;
	if (f->len && (f->flags & (ESP_SYN | ESP_FIN | ESP_RST)))
		return ESP_WIRE_FLAGS;
	if ((f->flags & ESP_RRQ) &&
	    (!f->len || f->len % 4 || f->len > 4 * ESP_RRQ_RANGES))
		return ESP_WIRE_RANGE;
	bad = esp_wire_parse_options(data, f);
	if (bad)
		return bad;
	if ((f->flags & ESP_SYN) && (f->opts & ESP_HAS_HELLO) != ESP_HAS_HELLO)
		return ESP_WIRE_OPTION;
	return ESP_WIRE_OK;
}

/* Compute esp_wire_hlen() for a header with options. */
unsigned int esp_wire_hlen_options(const struct esp_frame *f)
{
	unsigned int n = ESP_HLEN;

	if (f->opts & ESP_HAS(ESP_OPT_CRC))
		n += 6;
	if (f->opts & ESP_HAS(ESP_OPT_COOKIE))
		n += 6;
	if (f->opts & ESP_HAS(ESP_OPT_MSS))
		n += 4;
	if (f->opts & ESP_HAS(ESP_OPT_TYPE))
		n += 3;
	if (f->opts & ESP_HAS(ESP_OPT_FEATURES))
		n += 3;
	if (f->opts & ESP_HAS(ESP_OPT_BURST))
		n += 6;
	if (f->opts & ESP_HAS(ESP_OPT_ADVICE))
		n += 4;
	if (f->opts & (ESP_HAS(ESP_OPT_PART) | ESP_HAS(ESP_OPT_LEFT)))
		n += 6;
	return (n + 3) & ~3u;
}

static u8 *wire_put_option(u8 *p, u8 type, u8 len)
{
	p[0] = type;
	p[1] = len;
	return p + 2;
}

/**
 * esp_wire_build() - write a header
 * @data:	room for esp_wire_hlen(@f) bytes
 * @f:		header; the caller sets @f->version and @f->len. The header's length
 *		follows from @f->opts
 *
 * Checksum and CRC are written as zero. The caller fills them in.
 */
void esp_wire_build(u8 *data, const struct esp_frame *f)
{
	unsigned int hlen = esp_wire_hlen(f);
	u8 *p = data + ESP_HLEN;

	data[0] = f->version << 4 | hlen / 4;
	data[1] = f->flags;
	put16(data + 2, f->grant | f->busy << 15 | f->later << 14);
	memcpy(data + 4, &f->sport, 2);
	memcpy(data + 6, &f->dport, 2);
	put32(data + 8, f->cookie);
	put32(data + 12, f->pkt_seq);
	put32(data + 16, f->ack_seq);
	put32(data + 20, f->ts_val);
	put32(data + 24, f->ts_ecr);
	put16(data + 28, f->len);
	put16(data + 30, 0);

	if (!f->opts)
		return;
	if (f->opts & ESP_HAS(ESP_OPT_CRC)) {
		put32(wire_put_option(p, ESP_OPT_CRC, 6), 0);
		p += 6;
	}
	if (f->opts & ESP_HAS(ESP_OPT_COOKIE)) {
		put32(wire_put_option(p, ESP_OPT_COOKIE, 6), f->peer_cookie);
		p += 6;
	}
	if (f->opts & ESP_HAS(ESP_OPT_MSS)) {
		put16(wire_put_option(p, ESP_OPT_MSS, 4), f->mss);
		p += 4;
	}
	if (f->opts & ESP_HAS(ESP_OPT_TYPE)) {
		*wire_put_option(p, ESP_OPT_TYPE, 3) = f->type;
		p += 3;
	}
	if (f->opts & ESP_HAS(ESP_OPT_FEATURES)) {
		*wire_put_option(p, ESP_OPT_FEATURES, 3) = f->features;
		p += 3;
	}
	if (f->opts & ESP_HAS(ESP_OPT_BURST)) {
		put16(wire_put_option(p, ESP_OPT_BURST, 6), f->burst);
		put16(p + 4, f->to_ack);
		p += 6;
	}
	if (f->opts & ESP_HAS(ESP_OPT_ADVICE)) {
		put16(wire_put_option(p, ESP_OPT_ADVICE, 4), f->advice);
		p += 4;
	}
	if (f->opts & ESP_HAS(ESP_OPT_PART)) {
		put16(wire_put_option(p, ESP_OPT_PART, 6), f->part_at);
		put16(p + 4, f->part_size);
		p += 6;
	}
	if (f->opts & ESP_HAS(ESP_OPT_LEFT)) {
		put16(wire_put_option(p, ESP_OPT_LEFT, 6), f->left);
		put16(p + 4, f->first);
		p += 6;
	}
	while (p < data + hlen)
		*p++ = ESP_OPT_END;
}
