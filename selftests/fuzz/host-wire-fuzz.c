// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -fsanitize=address,undefined -fno-sanitize-recover=all
// SOURCES: net/esp/core/wire.c
/*
 * The parser of frames against random and mutated ones.
 *
 *	host-wire-fuzz [SEED | FILE]...		all seeds, or these, or bytes
 *
 * Each frame fills a buffer of its own size, so that ASan detects a read past its
 * end. If the parser accepts a frame, its fields must be consistent, and building
 * it again and parsing that must give the same fields.
 */
#include "core/wire.h"

#define FRAME	256	/* the longest */
#define RUNS	1000000
#define HOLDS	"frames are refused or understood"
#include "host-fuzz.h"

static unsigned long results[ESP_WIRE_RANGE + 1];

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	complain(what);
	exit(1);
}

/* Make a frame that the builder could have made. Return its length. */
static unsigned int valid_frame(u8 *data)
{
	static const u8 flags[] = {
		0, ESP_SYN, ESP_SYN | ESP_ACK, ESP_ACK, ESP_RST, ESP_RST | ESP_ACK,
		ESP_ACK | ESP_FIN, ESP_ACK | ESP_RRQ, ESP_ACK | ESP_TXS,
		ESP_ACK | ESP_TXS | ESP_TXF, ESP_ACK | ESP_TXF | ESP_EOR,
	};
	struct esp_frame f = {
		.version = ESP_VERSION, .flags = flags[rnd(sizeof(flags))],
		.grant = rnd(ESP_GRANT_MOST + 1), .busy = rnd(2), .later = rnd(2),
		.sport = 1 + rnd(65535), .dport = 1 + rnd(65535),
		.cookie = rnd(~0u), .pkt_seq = rnd(~0u), .ack_seq = rnd(~0u),
		.ts_val = rnd(~0u), .ts_ecr = rnd(~0u), .opts = rnd(2) ? rnd(512) : 0,
		.peer_cookie = rnd(~0u), .mss = rnd(65536), .advice = rnd(65536),
		.burst = rnd(65536), .to_ack = rnd(65536), .type = rnd(256),
		.features = rnd(256),
	};

	if (f.flags & ESP_SYN)
		f.opts |= ESP_HAS_HELLO;
	/* the header has no room for all options */
	if (f.opts & ESP_HAS(ESP_OPT_CRC))
		f.opts &= f.flags & ESP_SYN ? ~ESP_HAS(ESP_OPT_CRC) :
			  ~(ESP_HAS(ESP_OPT_TYPE) | ESP_HAS(ESP_OPT_FEATURES));
	if (f.flags & ESP_RRQ)
		f.len = 4 + 4 * rnd(3);
	else if (!(f.flags & (ESP_FIN | ESP_RST)))
		f.len = 1 + rnd(100);
	if (f.flags & ~(ESP_ACK | ESP_TXS | ESP_TXF | ESP_EOR) || !f.flags)
		f.opts &= ~ESP_HAS(ESP_OPT_PART);
	if (f.opts & ESP_HAS(ESP_OPT_PART)) {
		f.opts &= ESP_HAS(ESP_OPT_PART) | ESP_HAS(ESP_OPT_CRC) | ESP_HAS(ESP_OPT_ADVICE);
		f.part_at = rnd(2) ? rnd(1000) : 0;
		f.part_size = f.part_at + f.len + (rnd(2) ? rnd(1000) : 0);
	}
	/* BURST, PART and LEFT exclude each other */
	if (f.opts & ESP_HAS(ESP_OPT_BURST) || !(f.flags & ESP_ACK) ||
	    f.flags & ~(ESP_ACK | ESP_TXS | ESP_TXF | ESP_EOR))
		f.opts &= ~ESP_HAS(ESP_OPT_LEFT);
	if (f.opts & ESP_HAS(ESP_OPT_LEFT) && !(f.opts & ESP_HAS(ESP_OPT_PART))) {
		f.left = rnd(65536);
		f.first = rnd(65536);
	}
	esp_wire_build(data, &f);
	return esp_wire_hlen(&f) + f.len;
}

/* Make a frame that may be wrong in some way. Return its length. */
static unsigned int random_frame(u8 *frame)
{
	unsigned int len, i, n = rnd(8);

	len = valid_frame(frame);
	if (!rnd(8))
		for (i = 0; i < FRAME; i++)
			frame[i] = rnd(256);
	for (i = 0; i < n; i++)
		frame[rnd(2) ? rnd(64) : rnd(FRAME)] ^= rnd(2) ?
			1u << rnd(8) : rnd(256);
	if (!rnd(50))
		memset(frame + 4 + 2 * rnd(2), 0, 2);
	if (!rnd(4))
		len = rnd(len + 1);
	else if (!rnd(4))
		len += rnd(FRAME - len + 1);
	return len;
}

static void run(void)
{
	u8 frame[FRAME] = { 0 }, again[ESP_HLEN_MAX], *buf;
	bool guided = bytes, all = rnd(2);
	enum esp_malformed bad;
	struct esp_frame f, g;
	unsigned int len, avail;

	len = guided ? take_bytes(frame, FRAME) : random_frame(frame);
	/* readable: the whole frame, or no more than the longest header */
	avail = all ? len : min_t(unsigned int, len, ESP_HLEN_MAX);
	buf = malloc(avail ? avail : 1);
	memcpy(buf, frame, avail);

	bad = esp_wire_parse(buf, avail, len, &f);
	check(bad <= ESP_WIRE_RANGE, "a result that doesn't exist");
	results[bad]++;
	if (!bad) {
		check(f.version == ESP_VERSION && f.hlen >= ESP_HLEN &&
		      f.hlen <= ESP_HLEN_MAX && f.hlen <= avail &&
		      (unsigned int)f.hlen + f.len <= len, "lengths");
		check(f.sport && f.dport, "port 0");
		check(!(f.flags & ESP_SYN) ||
		      ((f.opts & ESP_HAS_HELLO) == ESP_HAS_HELLO && !f.len),
		      "a SYN without its options, or with data");
		check(!(f.flags & ESP_RRQ) || (f.len >= 4 && f.len <= 12 &&
					       !(f.len % 4)), "ranges");
		check(!(f.opts & ESP_HAS(ESP_OPT_PART)) ||
		      (f.len && (u32)f.part_at + f.len <= f.part_size), "a part beyond its packet");
		check(!(f.opts & ESP_HAS(ESP_OPT_LEFT)) ||
		      (esp_frame_end(&f) - f.pkt_seq <= 0xffff &&
		       !(f.opts & (ESP_HAS(ESP_OPT_PART) | ESP_HAS(ESP_OPT_BURST)))),
		      "an end that is far, or that shares its place");
		check(esp_wire_hlen(&f) <= f.hlen, "options grew");
		esp_wire_build(again, &f);
		check(!esp_wire_parse(again, esp_wire_hlen(&f),
				      esp_wire_hlen(&f) + f.len, &g),
		      "what was built again is refused");
		g.hlen = f.hlen;	/* the built header lacks the unknown options */
		check(!memcmp(&f, &g, sizeof(f)), "round trip");
	}
	free(buf);
}

static void report(void)
{
	for (unsigned int i = 0; i <= ESP_WIRE_RANGE; i++) {
		printf("# result %u: %lu\n", i, results[i]);
		check(results[i] > 100, "a result that never came");
	}
}
