// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare
// LIBS: -libverbs
/*
 * Find the sender of a frame of RDMA verbs in the 40 bytes before the frame, whatever a device may
 * leave there. The tests need no device.
 */
#include "tools/am/verbs.c"
#undef ARRAY_SIZE
#include "kselftest_harness.h"

/* Seconds of a test: enough on a machine that is busy with other work. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120

static const uint8_t header[20] = {	/* its RFC 1071 checksum is right */
	0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 17, 0xb8, 0x61,
	192, 168, 0, 1, 192, 168, 0, 199,
};

FIXTURE(grh) {
	uint8_t bytes[GRH];
};

FIXTURE_SETUP(grh)
{
	memset(self->bytes, 0, sizeof(self->bytes));
}

FIXTURE_TEARDOWN(grh)
{
}

static void put_ipv4(uint8_t *grh)
{
	memcpy(grh + 20, header, sizeof(header));
}

static void put_mapped(uint8_t *grh)
{
	grh[0] = 0x60;
	memset(grh + 8, 0, 32);
	memset(grh + 18, 0xff, 2);
	memcpy(grh + 20, (uint8_t []){ 10, 9, 0, 1 }, 4);
}

#define EXPECT_SENDER(text) EXPECT_EQ(inet_addr(text), sender(self->bytes))

TEST_F(grh, ipv4)
{
	put_ipv4(self->bytes);
	EXPECT_SENDER("192.168.0.1");
}

/* Bytes of an earlier frame stay before the IPv4 header: the device does not write there. */
TEST_F(grh, ipv4_behind_leftovers)
{
	put_mapped(self->bytes);
	put_ipv4(self->bytes);
	EXPECT_SENDER("192.168.0.1");
}

TEST_F(grh, mapped)
{
	put_mapped(self->bytes);
	EXPECT_SENDER("10.9.0.1");
}

/* The sender's address begins as a header of IPv4 does. */
TEST_F(grh, mapped_like_ipv4)
{
	put_mapped(self->bytes);
	self->bytes[20] = 0x45;
	EXPECT_SENDER("69.9.0.1");
}

TEST_F(grh, nobody)
{
	EXPECT_EQ(0, sender(self->bytes));
	/* an IPv6 address that maps no IPv4 address; IPv4 with options, which no device leaves */
	put_mapped(self->bytes);
	self->bytes[9] = 1;
	EXPECT_EQ(0, sender(self->bytes));
	memset(self->bytes, 0, sizeof(self->bytes));
	put_ipv4(self->bytes);
	self->bytes[20] = 0x46;
	EXPECT_EQ(0, sender(self->bytes));
}

/* With one wrong bit, after bytes that look like IPv6, it is no IPv4 header: the sum shows that. */
TEST_F(grh, sum)
{
	unsigned int i, taken = 0;

	put_mapped(self->bytes);
	put_ipv4(self->bytes);
	for (i = 8; i < 8 * sizeof(header); i++) {
		self->bytes[20 + i / 8] ^= 1 << i % 8;
		taken += checksum_is_right(self->bytes + 20);
		self->bytes[20 + i / 8] ^= 1 << i % 8;
	}
	EXPECT_EQ(0, taken);
	EXPECT_TRUE(checksum_is_right(self->bytes + 20));
}

TEST_HARNESS_MAIN
