/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel names that the files of this folder use. In the kernel they come from its headers. A
 * single-threaded program in user space (unit test, fuzzer) gets them from
 * selftests/lib/pure-user.h.
 */
#ifndef _ESP_PURE_H
#define _ESP_PURE_H

#ifdef __KERNEL__

#include <linux/types.h>
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/spinlock.h>
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#else

#include "selftests/lib/pure-user.h"

#endif /* __KERNEL__ */

/* Sequence numbers wrap: a is before b if the distance is below 2^31. */
static inline bool esp_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

static inline bool esp_after(u32 a, u32 b)
{
	return esp_before(b, a);
}

#endif /* _ESP_PURE_H */
