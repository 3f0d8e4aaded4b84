// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=msync,--wrap=fsync,--wrap=flock -fsanitize=address,undefined -fno-sanitize-recover=all
// SOURCES: tools/am/wire.c tools/am/crc.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/log.c tools/am/transport.c tools/am/mem.c tools/am/socket.c tools/am/stream.c
/*
 * Active Messages (am-tests.c) in memory, where time is simulated, and over UDP.
 */
#include <sys/socket.h>
#include "am-tests.c"
#include "am-log.c"
#include "am-log-files.c"
#include "am-log-disk.c"
#include "am-log-restart.c"

FIXTURE_VARIANT_ADD(am, mem)
{
	.transport = "mem",
};

FIXTURE_VARIANT_ADD(am, udp)
{
	.transport = "udp:127.0.0.1",
};

static void place(int i, struct am_options *o)
{
	(void)i;
	o->address = net ? "mem" : "udp:127.0.0.1";
}

static void stand(int i)
{
	(void)i;
}

/* There is room for all that the credits may bring, as far as the system permits. */
TEST(udp_receive_buffer)
{
	struct am_options o = { .credits = 16 };
	socklen_t len = sizeof(int);
	int have, most = 0;
	FILE *f;

	f = fopen("/proc/sys/net/core/rmem_max", "r");
	ASSERT_NE(NULL, f);
	ASSERT_EQ(1, fscanf(f, "%d", &most));
	fclose(f);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	ASSERT_EQ(AM_OK, open_end(SERVER, o));
	ASSERT_EQ(0, getsockopt(ep[SERVER]->transport.fd, SOL_SOCKET, SO_RCVBUF, &have, &len));
	TH_LOG("%d bytes, net.core.rmem_max is %d", have, most);
	if (most > 16 * AM_MAX_LONG)
		most = 16 * AM_MAX_LONG;
	EXPECT_LE(2 * most, have);
	EXPECT_EQ(AM_OK, AM_FreeBundle(bundle));
}

/* RFC 3720, B.4; the RFC writes the checksum's bytes in the order in which they are sent. */
TEST(crc32c_vectors)
{
	static const uint8_t command[48] = {
		0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02,
	};
	uint8_t rising[32], falling[32], zeros[32] = { 0 }, ones[32];
	const struct crc_form *f;
	int i;

	for (i = 0; i < 32; i++) {
		rising[i] = i;
		falling[i] = 31 - i;
		ones[i] = 0xff;
	}
	EXPECT_EQ(0xe3069283, ~crc32c(~0u, "123456789", 9));
	for (f = crc_forms; f->name; f++) {
		if (!f->prepare()) {
			TH_LOG("%s: not here", f->name);
			continue;
		}
		TH_LOG("%s", f->name);
		EXPECT_EQ(0x8a9136aa, ~f->crc(~0u, zeros, 32));
		EXPECT_EQ(0x62a8ab43, ~f->crc(~0u, ones, 32));
		EXPECT_EQ(0x46dd794e, ~f->crc(~0u, rising, 32));
		EXPECT_EQ(0x113fdb5c, ~f->crc(~0u, falling, 32));
		EXPECT_EQ(0xd9963a56, ~f->crc(~0u, command, 48));
	}
}

static uint32_t crc_by_bits(uint32_t c, const uint8_t *p, size_t n)
{
	int i;

	while (n--) {
		c ^= *p++;
		for (i = 0; i < 8; i++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78 : 0);
	}
	return c;
}

/* Each form, at each alignment, of each length; the bytes after that make no difference. */
TEST(crc32c_lengths)
{
	static uint8_t data[16 + 300] __attribute__((aligned(16)));
	const struct crc_form *f;
	uint32_t seed = 1, want;
	unsigned int i, at, n, wrong = 0;

	for (i = 0; i < sizeof(data); i++)
		data[i] = random_next(&seed);
	for (at = 0; at < 16; at++) {
		for (n = 0; n <= 300; n++) {
			uint32_t begin = random_next(&seed);
			uint8_t *copy = malloc(at + n);

			/* The copy has exactly this size, so that a read beyond it is found. */
			ASSERT_TRUE(copy || !(at + n));
			memcpy(copy + at, data + at, n);
			want = crc_by_bits(begin, data + at, n);
			wrong += crc32c(begin, copy + at, n) != want;
			for (f = crc_forms; f->name; f++)
				if (f->prepare())
					wrong += f->crc(begin, copy + at, n) != want;
			free(copy);
		}
	}
	EXPECT_EQ(0, wrong);
}

/*
 * The target sees none of many requests in a row: the next one must not seem older than the last.
 */
TEST(nway_gap)
{
	struct am_options o = { .retries = 1 };
	unsigned int i;

	net = AM_NewNet(64);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, open_both(o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	fate[WIRE_REQUEST] = AM_DROP;
	for (i = 0; i < 32768; i++) {
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
		EXPECT_STATE(CALLER, sent(), ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	}
	EXPECT_EQ(1, ran);
	fate[WIRE_REQUEST] = AM_PASS;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_STATE(CALLER, sent(), DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(2, ran);
	EXPECT_EQ(AM_OK, AM_FreeBundle(bundle));
	AM_FreeNet(net);
}

TEST_HARNESS_MAIN
