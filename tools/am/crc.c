// SPDX-License-Identifier: BSD-3-Clause
/*
 * CRC32C (RFC 3720, B.4), by the processor's own instruction if it has one, else by tables, eight
 * bytes a step.
 */
#include <endian.h>
#include "internal.h"

#ifdef __aarch64__
#include <sys/auxv.h>
#endif

#define CRC32C	0x82f63b78

static uint32_t tables[8][256];

/* Fill the tables: tables[i] has the effect of a byte that i bytes follow. */
static bool tables_make(void)
{
	uint32_t c;
	int i, j;

	for (i = 0; i < 256; i++) {
		c = i;
		for (j = 0; j < 8; j++)
			c = c & 1 ? c >> 1 ^ CRC32C : c >> 1;
		tables[0][i] = c;
	}
	for (i = 0; i < 256; i++)
		for (j = 1; j < 8; j++)
			tables[j][i] = tables[j - 1][i] >> 8 ^ tables[0][tables[j - 1][i] & 0xff];
	return true;
}

static uint32_t by_tables(uint32_t c, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t v;

	for (; n >= sizeof(v); n -= sizeof(v), p += sizeof(v)) {
		memcpy(&v, p, sizeof(v));
		v = le64toh(v) ^ c;
		c = tables[7][v & 0xff] ^ tables[6][v >> 8 & 0xff] ^
		    tables[5][v >> 16 & 0xff] ^ tables[4][v >> 24 & 0xff] ^
		    tables[3][v >> 32 & 0xff] ^ tables[2][v >> 40 & 0xff] ^
		    tables[1][v >> 48 & 0xff] ^ tables[0][v >> 56];
	}
	while (n--)
		c = c >> 8 ^ tables[0][(c ^ *p++) & 0xff];
	return c;
}

#if defined(__x86_64__)

#define INSTRUCTION	__attribute__((target("sse4.2")))
#define STEP64(c, v)	((c) = __builtin_ia32_crc32di(c, v))
#define STEP32(c, v)	((c) = __builtin_ia32_crc32si(c, v))
#define STEP8(c, v)	((c) = __builtin_ia32_crc32qi(c, v))

static bool has_instruction(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("sse4.2");
}

#elif defined(__aarch64__) && defined(__AARCH64EL__)

#define INSTRUCTION
#define ARM(letters, c, v) \
	asm(".arch_extension crc\n\tcrc32c" letters : "+r" (c) : "r" (v))
#define STEP64(c, v)	ARM("x %w0, %w0, %x1", c, v)
#define STEP32(c, v)	ARM("w %w0, %w0, %w1", c, v)
#define STEP8(c, v)	ARM("b %w0, %w0, %w1", c, v)

static bool has_instruction(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

#endif

#ifdef INSTRUCTION

INSTRUCTION static uint32_t by_instruction(uint32_t c, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t v;
	uint32_t w;

	for (; n >= sizeof(v); n -= sizeof(v), p += sizeof(v)) {
		memcpy(&v, p, sizeof(v));
		STEP64(c, v);
	}
	if (n >= sizeof(w)) {
		memcpy(&w, p, sizeof(w));
		STEP32(c, w);
		n -= sizeof(w);
		p += sizeof(w);
	}
	for (; n; n--, p++)
		STEP8(c, *p);
	return c;
}

#endif

const struct crc_form crc_forms[] = {
#ifdef INSTRUCTION
	{ "instruction", has_instruction, by_instruction },
#endif
	{ "tables", tables_make, by_tables },
	{ 0 }
};

static const struct crc_form *form = crc_forms;

__attribute__((constructor)) static void form_choose(void)
{
	while (!form->prepare())
		form++;
}

/* Continue the checksum @c over @data; the first @c is ~0. */
uint32_t crc32c(uint32_t c, const void *data, size_t n)
{
	return form->crc(c, data, n);
}
