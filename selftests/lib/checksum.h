/* SPDX-License-Identifier: GPL-2.0-only */
/* The Internet checksum of a forged frame's header and data. */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include <arpa/inet.h>
#include <stddef.h>
#include <linux/types.h>

static inline __u16 checksum(const void *data, size_t n)
{
	const __u8 *p = data;
	__u32 sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += i % 2 ? p[i] : p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum);
}

#endif
