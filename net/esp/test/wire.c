// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of wire.c and of the layout. Included by suite.c, and in user space
 * by selftests/unit/host-pure.c.
 */
#include "wire_example.h"

/* Cookies of the example's two hosts. */
#define EXAMPLE_A	0xc0ffee01u
#define EXAMPLE_B	0x5eed0002u

static u16 csum_of(const u8 *data, unsigned int n)
{
	u32 sum = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		sum += i & 1 ? data[i] : data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The header is 32 bytes; no checksum at 6 or 16, where NICs look for one. */
static void wire_layout__offsets(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, sizeof(struct esp_wire), 32u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, ver_hlen), 0u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, flags), 1u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, grant), 2u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, sport), 4u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, dport), 6u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, cookie), 8u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, pkt_seq), 12u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, ack_seq), 16u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, ts_val), 20u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, ts_ecr), 24u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, len), 28u);
	KUNIT_EXPECT_EQ(test, offsetof(struct esp_wire, csum), 30u);
	KUNIT_EXPECT_EQ(test, sizeof(struct esp_wire_range), 4u);
}

/* wire.c writes each field where struct esp_wire has it. */
static void wire_build__as_struct(struct kunit *test)
{
	struct esp_frame f = {
		.version = 1, .flags = ESP_ACK | ESP_TXF, .grant = 0x1122, .busy = 1, .later = 1,
		.sport = cpu_to_be16(0x3344), .dport = cpu_to_be16(0x5566),
		.cookie = 0x778899aa, .pkt_seq = 0xbbccddee,
		.ack_seq = 0xff001122, .ts_val = 0x33445566,
		.ts_ecr = 0x778899ab, .len = 0xcdef,
	};
	struct esp_wire h;

	memset(&h, 0xff, sizeof(h));
	esp_wire_build((u8 *)&h, &f);
	KUNIT_EXPECT_EQ(test, h.ver_hlen, 0x18);
	KUNIT_EXPECT_EQ(test, h.flags, f.flags);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(h.grant), ESP_GRANT_BUSY | ESP_GRANT_LATER | 0x1122);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(h.sport), 0x3344);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(h.dport), 0x5566);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(h.cookie), 0x778899aau);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(h.pkt_seq), 0xbbccddeeu);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(h.ack_seq), 0xff001122u);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(h.ts_val), 0x33445566u);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(h.ts_ecr), 0x778899abu);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(h.len), 0xcdef);
	KUNIT_EXPECT_EQ(test, h.csum, 0);
}

/* Build a frame to be damaged: an ACK with 4 bytes of payload. */
static void plain_frame(u8 *data)
{
	struct esp_frame f = {
		.version = 1, .flags = ESP_ACK, .len = 4,
		.sport = cpu_to_be16(1), .dport = cpu_to_be16(2),
	};

	memset(data, 0, 64);
	esp_wire_build(data, &f);
}

/* BUSY and LATER are no part of the grant. */
static void wire_parse__grant_bits(struct kunit *test)
{
	static const u16 grants[] = { 0, 1, 0x1234, ESP_GRANT_MOST };
	unsigned int i, busy, later;
	struct esp_frame f;
	u8 d[64];

	for (i = 0; i < ARRAY_SIZE(grants); i++) {
		for (busy = 0; busy < 2; busy++) {
			for (later = 0; later < 2; later++) {
				plain_frame(d);
				d[2] = grants[i] >> 8 | busy << 7 | later << 6;
				d[3] = grants[i];
				KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 36, 36, &f),
						ESP_WIRE_OK);
				KUNIT_EXPECT_EQ(test, f.grant, grants[i]);
				KUNIT_EXPECT_EQ(test, (unsigned int)f.busy, busy);
				KUNIT_EXPECT_EQ(test, (unsigned int)f.later, later);
			}
		}
	}
}

static void example_syn_frame(struct esp_frame *f)
{
	*f = (struct esp_frame) {
		.version = 1, .hlen = 56, .flags = ESP_SYN,
		.opts = ESP_HAS_HELLO | ESP_HAS(ESP_OPT_FEATURES) |
			ESP_HAS(ESP_OPT_BURST),
		.sport = cpu_to_be16(50000), .dport = cpu_to_be16(4660),
		.pkt_seq = esp_isn(EXAMPLE_A), .ts_val = 1000000,
		.peer_cookie = EXAMPLE_A, .mss = 1468, .type = 1,
		.features = ESP_FEATURE_PARTS | ESP_FEATURE_LEFT | ESP_FEATURE_LATER,
		.to_ack = 8,
	};
}

static void example_data_frame(struct esp_frame *f)
{
	*f = (struct esp_frame) {
		.version = 1, .hlen = 32, .flags = ESP_ACK | ESP_TXS | ESP_TXF,
		.grant = 32, .len = 5,
		.sport = cpu_to_be16(4660), .dport = cpu_to_be16(50000),
		.cookie = EXAMPLE_A, .pkt_seq = esp_isn(EXAMPLE_B) + 1,
		.ack_seq = esp_isn(EXAMPLE_A) + 2, .ts_val = 3000000,
		.ts_ecr = 1000250,
	};
}

/* The documentation's example frames parse to the values that it gives. */
static void wire_parse__example(struct kunit *test)
{
	const u8 *syn = esp_example_syn + ESP_EXAMPLE_ETH;
	const u8 *data = esp_example_data + ESP_EXAMPLE_ETH;
	struct esp_frame f, want;

	example_syn_frame(&want);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(syn, 56, 56, &f), ESP_WIRE_OK);
	KUNIT_EXPECT_EQ(test, memcmp(&f, &want, sizeof(f)), 0);
	KUNIT_EXPECT_EQ(test, csum_of(syn, 56), 0xffff);

	/* a short frame comes padded: 46 bytes for 37 */
	example_data_frame(&want);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(data, 46, 46, &f), ESP_WIRE_OK);
	KUNIT_EXPECT_EQ(test, memcmp(&f, &want, sizeof(f)), 0);
	KUNIT_EXPECT_EQ(test, csum_of(data, 32 + 5), 0xffff);
	KUNIT_EXPECT_EQ(test, memcmp(data + 32, "hello", 5), 0);
}

/* The builder makes the example frames of the documentation. */
static void wire_build__example(struct kunit *test)
{
	u8 want[ESP_HLEN_MAX], got[ESP_HLEN_MAX] = { 0 };
	struct esp_frame f;

	example_syn_frame(&f);
	memcpy(want, esp_example_syn + ESP_EXAMPLE_ETH, 56);
	memset(want + 30, 0, 2);	/* the checksum is the caller's */
	KUNIT_EXPECT_EQ(test, esp_wire_hlen(&f), 56u);
	esp_wire_build(got, &f);
	KUNIT_EXPECT_EQ(test, memcmp(got, want, 56), 0);

	example_data_frame(&f);
	memcpy(want, esp_example_data + ESP_EXAMPLE_ETH, 32);
	memset(want + 30, 0, 2);
	KUNIT_EXPECT_EQ(test, esp_wire_hlen(&f), 32u);
	esp_wire_build(got, &f);
	KUNIT_EXPECT_EQ(test, memcmp(got, want, 32), 0);
}

/* A header with all options but the CRC has 60 bytes, without ADVICE 56. */
static void wire_build__options(struct kunit *test)
{
	u8 data[ESP_HLEN_MAX];
	struct esp_frame f, g;

	example_syn_frame(&f);
	KUNIT_EXPECT_EQ(test, esp_wire_hlen(&f), 56u);
	f.flags = ESP_ACK;
	f.opts |= ESP_HAS(ESP_OPT_ADVICE);
	f.advice = 31;
	f.burst = 0x1234;
	f.features = 0x80;
	f.hlen = 60;
	KUNIT_EXPECT_EQ(test, esp_wire_hlen(&f), (unsigned int)ESP_HLEN_MAX);
	esp_wire_build(data, &f);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(data, 60, 60, &g), ESP_WIRE_OK);
	KUNIT_EXPECT_EQ(test, memcmp(&f, &g, sizeof(f)), 0);
}

static int parse(const u8 *data, unsigned int len)
{
	struct esp_frame f;

	return esp_wire_parse(data, len, len, &f);
}

static void wire_parse__short(struct kunit *test)
{
	struct esp_frame f;
	unsigned int n;
	u8 d[64];

	plain_frame(d);
	for (n = 0; n < 36; n++)
		KUNIT_EXPECT_EQ(test, parse(d, n), ESP_WIRE_SHORT);
	KUNIT_EXPECT_EQ(test, parse(d, 36), ESP_WIRE_OK);
	KUNIT_EXPECT_EQ(test, parse(d, 64), ESP_WIRE_OK);

	/* the header must be readable, the payload need not */
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 32, 36, &f), ESP_WIRE_OK);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 31, 36, &f), ESP_WIRE_SHORT);
	d[0] = 0x19;
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 32, 64, &f), ESP_WIRE_SHORT);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 40, 64, &f), ESP_WIRE_OK);

	d[28] = 0xff;	/* a length beyond the frame */
	d[29] = 0xff;
	KUNIT_EXPECT_EQ(test, parse(d, 64), ESP_WIRE_SHORT);
}

static void wire_parse__version(struct kunit *test)
{
	struct esp_frame f;
	unsigned int v;
	u8 d[64];

	plain_frame(d);
	for (v = 0; v < 16; v++) {
		d[0] = v << 4 | 8;
		KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 36, 36, &f),
				v == 1 ? ESP_WIRE_OK : ESP_WIRE_VERSION);
		KUNIT_EXPECT_EQ(test, (unsigned int)f.version, v);
	}
}

static void wire_parse__header_length(struct kunit *test)
{
	unsigned int words;
	u8 d[64];

	plain_frame(d);
	for (words = 0; words < 16; words++) {
		d[0] = 0x10 | words;
		KUNIT_EXPECT_EQ(test, parse(d, 64),
				words < 8 ? ESP_WIRE_HLEN : ESP_WIRE_OK);
	}
}

static void wire_parse__port_0(struct kunit *test)
{
	u8 d[64];

	plain_frame(d);
	d[5] = 0;
	KUNIT_EXPECT_EQ(test, parse(d, 36), ESP_WIRE_PORT);
	plain_frame(d);
	d[7] = 0;
	KUNIT_EXPECT_EQ(test, parse(d, 36), ESP_WIRE_PORT);
}

/* May these flags stand together, with @len bytes of payload? */
static bool flags_allowed(unsigned int fl, unsigned int len)
{
	switch (fl) {
	case 0:				/* datagram, even an empty one */
		return true;
	case ESP_SYN:
	case ESP_SYN | ESP_ACK:
	case ESP_FIN | ESP_ACK:
	case ESP_RST:
	case ESP_RST | ESP_ACK:
		return !len;
	case ESP_RRQ | ESP_ACK:		/* not empty: ranges */
		return true;
	}
	if ((fl & (ESP_SYN | ESP_FIN | ESP_RST | ESP_RRQ)) || !(fl & ESP_ACK))
		return false;
	return len || !(fl & (ESP_TXF | ESP_EOR));
}

static void wire_parse__flags(struct kunit *test)
{
	unsigned int fl, len;
	u8 d[64];
	int got;

	for (fl = 0; fl < 256; fl++) {
		for (len = 0; len <= 4; len += 4) {
			plain_frame(d);
			d[1] = fl;
			d[29] = len;
			got = parse(d, 36);
			if (!flags_allowed(fl, len))
				KUNIT_EXPECT_EQ(test, got, ESP_WIRE_FLAGS);
			else if (fl & ESP_SYN)	/* the options of a SYN are missing */
				KUNIT_EXPECT_EQ(test, got, ESP_WIRE_OPTION);
			else if ((fl & ESP_RRQ) && !len)
				KUNIT_EXPECT_EQ(test, got, ESP_WIRE_RANGE);
			else
				KUNIT_EXPECT_EQ(test, got, ESP_WIRE_OK);
		}
	}
}

static void wire_parse__range(struct kunit *test)
{
	unsigned int len;
	u8 d[64];

	for (len = 0; len < 32; len++) {
		plain_frame(d);
		d[1] = ESP_RRQ | ESP_ACK;
		d[29] = len;
		KUNIT_EXPECT_EQ(test, parse(d, 64),
				len && len <= 12 && !(len % 4) ? ESP_WIRE_OK :
				ESP_WIRE_RANGE);
	}
}

/* Put options into a header of @words words. */
static void with_options(u8 *d, unsigned int words, const u8 *opts, unsigned int n)
{
	plain_frame(d);
	d[0] = 0x10 | words;
	d[29] = 0;
	memcpy(d + 32, opts, n);
}

#define OPTIONS(d, words, ...) do {				\
	const u8 opts_[] = { __VA_ARGS__ };			\
								\
	with_options(d, words, opts_, sizeof(opts_));		\
} while (0)

static void wire_parse__options(struct kunit *test)
{
	struct esp_frame f;
	unsigned int len;
	u8 d[64];

	/* each known option has one valid length */
	for (len = 0; len < 16; len++) {
		int type;

		for (type = 1; type <= 9; type++) {
			static const u8 right[] = { 0, 6, 4, 3, 3, 6, 4, 6, 6, 6 };

			if (type == ESP_OPT_PART)	/* only with payload: wire_parse__part() */
				continue;
			OPTIONS(d, 15, type, len);
			KUNIT_EXPECT_EQ(test, parse(d, 60), len == right[type] ?
					ESP_WIRE_OK : ESP_WIRE_OPTION);
		}
	}
	/* an option twice */
	OPTIONS(d, 10, ESP_OPT_TYPE, 3, 1, ESP_OPT_TYPE, 3, 1);
	KUNIT_EXPECT_EQ(test, parse(d, 40), ESP_WIRE_OPTION);
	/* an option that overruns the header, but not the frame */
	OPTIONS(d, 9, ESP_OPT_COOKIE, 6, 1, 2, 3, 4);
	KUNIT_EXPECT_EQ(test, parse(d, 60), ESP_WIRE_OPTION);
	OPTIONS(d, 9, 99, 5);
	KUNIT_EXPECT_EQ(test, parse(d, 60), ESP_WIRE_OPTION);
	/* the header ends after the type */
	OPTIONS(d, 9, ESP_OPT_TYPE, 3, 1, 99);
	KUNIT_EXPECT_EQ(test, parse(d, 60), ESP_WIRE_OPTION);
	/* a length below 2, which would not advance the parser */
	OPTIONS(d, 9, 99, 0);
	KUNIT_EXPECT_EQ(test, parse(d, 60), ESP_WIRE_OPTION);
	OPTIONS(d, 9, 99, 1);
	KUNIT_EXPECT_EQ(test, parse(d, 60), ESP_WIRE_OPTION);
	/* END ends the options */
	OPTIONS(d, 9, ESP_OPT_END, ESP_OPT_TYPE, 200, 7);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 36, 36, &f), ESP_WIRE_OK);
	KUNIT_EXPECT_EQ(test, (u32)f.opts, 0);
}

/* The CRC is the first option, so that its value is always at the same place. */
static void wire_parse__crc_first(struct kunit *test)
{
	struct esp_frame f = {
		.version = 1, .flags = ESP_ACK, .sport = cpu_to_be16(1),
		.dport = cpu_to_be16(2), .peer_cookie = EXAMPLE_A, .mss = 1468, .advice = 7,
		.burst = 3, .to_ack = 8,
		.opts = ESP_HAS(ESP_OPT_CRC) | ESP_HAS(ESP_OPT_COOKIE) |
			ESP_HAS(ESP_OPT_MSS) | ESP_HAS(ESP_OPT_BURST) | ESP_HAS(ESP_OPT_ADVICE),
	}, g;
	u8 d[64];

	/* the handshake's echo with a CRC fills the header */
	KUNIT_EXPECT_EQ(test, esp_wire_hlen(&f), (unsigned int)ESP_HLEN_MAX);
	memset(d, 0xff, sizeof(d));
	esp_wire_build(d, &f);
	KUNIT_EXPECT_EQ(test, d[ESP_HLEN], ESP_OPT_CRC);
	KUNIT_EXPECT_EQ(test, d[ESP_HLEN + 1], 6);
	KUNIT_EXPECT_EQ(test, d[ESP_CRC_AT] | d[ESP_CRC_AT + 1] | d[ESP_CRC_AT + 2] |
			d[ESP_CRC_AT + 3], 0);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 60, 60, &g), ESP_WIRE_OK);
	f.hlen = 60;
	KUNIT_EXPECT_EQ(test, memcmp(&f, &g, sizeof(f)), 0);
	/* the CRC alone */
	f.opts = ESP_HAS(ESP_OPT_CRC);
	KUNIT_EXPECT_EQ(test, esp_wire_hlen(&f), (unsigned int)ESP_HLEN + ESP_CRC_ROOM);

	OPTIONS(d, 11, ESP_OPT_ADVICE, 4, 0, 1, ESP_OPT_CRC, 6, 1, 2, 3, 4);
	KUNIT_EXPECT_EQ(test, parse(d, 44), ESP_WIRE_OPTION);
	OPTIONS(d, 11, 99, 2, ESP_OPT_CRC, 6, 1, 2, 3, 4);
	KUNIT_EXPECT_EQ(test, parse(d, 44), ESP_WIRE_OPTION);
	OPTIONS(d, 11, ESP_OPT_CRC, 6, 1, 2, 3, 4, ESP_OPT_ADVICE, 4, 0, 1);
	KUNIT_EXPECT_EQ(test, parse(d, 44), ESP_WIRE_OK);
}

/* Only data has parts, which don't reach beyond their packet. */
static void wire_parse__part(struct kunit *test)
{
	static const u8 other[] = { 0, ESP_ACK | ESP_RRQ, ESP_ACK | ESP_FIN, ESP_ACK | ESP_RST };
	struct esp_frame f = {
		.version = 1, .flags = ESP_ACK | ESP_TXS, .sport = cpu_to_be16(1),
		.dport = cpu_to_be16(2), .len = 4, .advice = 7,
		.part_at = 60000, .part_size = 60004,
		.opts = ESP_HAS(ESP_OPT_CRC) | ESP_HAS(ESP_OPT_ADVICE) | ESP_HAS(ESP_OPT_PART),
	}, g;
	unsigned int i;
	u8 d[64] = {};

	KUNIT_EXPECT_EQ(test, esp_wire_hlen(&f), ESP_HLEN + 4u + ESP_PART_ROOM);
	esp_wire_build(d, &f);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 52, 52, &g), ESP_WIRE_OK);
	f.hlen = 48;
	KUNIT_EXPECT_EQ(test, memcmp(&f, &g, sizeof(f)), 0);
	f.part_size--;
	esp_wire_build(d, &f);
	KUNIT_EXPECT_EQ(test, parse(d, 52), ESP_WIRE_OPTION);
	f.part_at = 65535;
	f.part_size = 3;	/* a sum that does not fit 16 bits */
	esp_wire_build(d, &f);
	KUNIT_EXPECT_EQ(test, parse(d, 52), ESP_WIRE_OPTION);
	f.part_at = 0;
	f.part_size = 4;
	for (i = 0; i < sizeof(other); i++) {
		f.flags = other[i];
		f.len = other[i] & (ESP_FIN | ESP_RST) ? 0 : 4;
		esp_wire_build(d, &f);
		KUNIT_EXPECT_EQ(test, parse(d, 52), ESP_WIRE_OPTION);
	}
	OPTIONS(d, 11, ESP_OPT_PART, 6, 0, 0, 0, 4, ESP_OPT_BURST, 6, 0, 0, 0, 4);
	KUNIT_EXPECT_EQ(test, parse(d, 44), ESP_WIRE_OPTION);
	OPTIONS(d, 11, ESP_OPT_BURST, 6, 0, 0, 0, 4, ESP_OPT_PART, 6, 0, 0, 0, 4);
	KUNIT_EXPECT_EQ(test, parse(d, 44), ESP_WIRE_OPTION);
}

/* Data and empty packets have LEFT. It stands for a number that is near the packet's own. */
static void wire_parse__left(struct kunit *test)
{
	static const u8 other[] = { ESP_ACK | ESP_RRQ, ESP_ACK | ESP_FIN, ESP_ACK | ESP_RST, 0 };
	struct esp_frame f = {
		.version = 1, .flags = ESP_ACK | ESP_TXS, .sport = cpu_to_be16(1),
		.dport = cpu_to_be16(2), .pkt_seq = 0xfffffff0, .left = 0x20, .first = 9,
		.opts = ESP_HAS(ESP_OPT_LEFT),
	}, g;
	unsigned int i;
	u8 d[64] = {};

	KUNIT_EXPECT_EQ(test, esp_wire_hlen(&f), (unsigned int)ESP_HLEN + ESP_LEFT_ROOM);
	esp_wire_build(d, &f);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 40, 40, &g), ESP_WIRE_OK);
	f.hlen = 40;
	KUNIT_EXPECT_EQ(test, memcmp(&f, &g, sizeof(f)), 0);
	KUNIT_EXPECT_EQ(test, esp_frame_end(&g), 0x20u);
	g.left = 0xffef;	/* as far as it can be */
	KUNIT_EXPECT_EQ(test, esp_frame_end(&g), g.pkt_seq + 0xffff);
	g.left = 0xfff0;
	KUNIT_EXPECT_EQ(test, esp_frame_end(&g), g.pkt_seq);
	for (i = 0; i < sizeof(other); i++) {
		f.flags = other[i];
		f.len = other[i] & ESP_RRQ ? 4 : 0;
		esp_wire_build(d, &f);
		KUNIT_EXPECT_EQ(test, parse(d, 44), ESP_WIRE_OPTION);
	}
	/* it has the place of BURST and PART */
	OPTIONS(d, 11, ESP_OPT_LEFT, 6, 0, 0, 0, 4, ESP_OPT_BURST, 6, 0, 0, 0, 4);
	KUNIT_EXPECT_EQ(test, parse(d, 44), ESP_WIRE_OPTION);
	OPTIONS(d, 11, ESP_OPT_PART, 6, 0, 0, 0, 4, ESP_OPT_LEFT, 6, 0, 0, 0, 4);
	d[29] = 4;
	KUNIT_EXPECT_EQ(test, parse(d, 48), ESP_WIRE_OPTION);
}

static void wire_parse__unknown_option_skipped(struct kunit *test)
{
	struct esp_frame f;
	u8 d[64];

	OPTIONS(d, 11, 99, 2, 200, 5, 1, 2, 3, ESP_OPT_ADVICE, 4, 0x12, 0x34);
	KUNIT_EXPECT_EQ(test, (int)esp_wire_parse(d, 44, 44, &f), ESP_WIRE_OK);
	KUNIT_EXPECT_EQ(test, (u32)f.opts, ESP_HAS(ESP_OPT_ADVICE));
	KUNIT_EXPECT_EQ(test, f.advice, 0x1234);
}

/* SYN and SYN|ACK are refused without cookie, MSS or type. */
static void wire_parse__hello_incomplete(struct kunit *test)
{
	static const u8 needed[] = { ESP_OPT_COOKIE, ESP_OPT_MSS, ESP_OPT_TYPE };
	unsigned int i, ack;
	struct esp_frame f;
	u8 d[64];

	for (ack = 0; ack <= ESP_ACK; ack += ESP_ACK) {
		for (i = 0; i < sizeof(needed); i++) {
			example_syn_frame(&f);
			f.flags |= ack;
			esp_wire_build(d, &f);
			KUNIT_EXPECT_EQ(test, parse(d, 56), ESP_WIRE_OK);
			f.opts &= ~ESP_HAS(needed[i]);
			esp_wire_build(d, &f);
			KUNIT_EXPECT_EQ(test, parse(d, 56), ESP_WIRE_OPTION);
		}
	}
}

static void wire_frame__kinds(struct kunit *test)
{
	static const struct {
		u8	flags;
		u16	len;
		bool	dgram, empty;
	} kinds[] = {
		{ 0, 10, true, false },
		{ ESP_SYN, 0, false, false },
		{ ESP_ACK | ESP_FIN, 0, false, false },
		{ ESP_ACK, 0, false, true },
		{ ESP_ACK | ESP_TXS, 0, false, true },
		{ ESP_ACK | ESP_RRQ, 8, false, true },
		{ ESP_ACK | ESP_TXS, 1, false, false },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct esp_frame f = {
			.flags = kinds[i].flags,
			.len = kinds[i].len,
		};

		KUNIT_EXPECT_EQ(test, esp_frame_is_dgram(&f), kinds[i].dgram);
		if (!kinds[i].dgram)
			KUNIT_EXPECT_EQ(test, esp_frame_is_empty(&f),
					kinds[i].empty);
	}
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(wire_layout__offsets),
	KUNIT_CASE(wire_build__as_struct),
	KUNIT_CASE(wire_parse__grant_bits),
	KUNIT_CASE(wire_parse__example),
	KUNIT_CASE(wire_build__example),
	KUNIT_CASE(wire_build__options),
	KUNIT_CASE(wire_parse__short),
	KUNIT_CASE(wire_parse__version),
	KUNIT_CASE(wire_parse__header_length),
	KUNIT_CASE(wire_parse__port_0),
	KUNIT_CASE(wire_parse__flags),
	KUNIT_CASE(wire_parse__range),
	KUNIT_CASE(wire_parse__options),
	KUNIT_CASE(wire_parse__crc_first),
	KUNIT_CASE(wire_parse__part),
	KUNIT_CASE(wire_parse__left),
	KUNIT_CASE(wire_parse__unknown_option_skipped),
	KUNIT_CASE(wire_parse__hello_incomplete),
	KUNIT_CASE(wire_frame__kinds),
	{}
};
