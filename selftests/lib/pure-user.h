/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few names of the kernel that net/esp's files of pure decisions use, for
 * single-threaded programs in user space.
 */
#ifndef _ESP_PURE_USER_H
#define _ESP_PURE_USER_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <arpa/inet.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define be16_to_cpu(x)		ntohs(x)
#define be32_to_cpu(x)		ntohl(x)
#define cpu_to_be16(x)		htons(x)
#define cpu_to_be32(x)		htonl(x)
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#define smp_mb()		do { } while (0)
#define smp_rmb()		do { } while (0)
#define smp_wmb()		do { } while (0)
#define smp_load_acquire(p)	READ_ONCE(*(p))
#define smp_store_release(p, v)	(*(p) = (v))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define min3(a, b, c)		min(min(a, b), c)
#define max3(a, b, c)		max(max(a, b), c)
#define min_t(t, a, b)		min((t)(a), (t)(b))
#define max_t(t, a, b)		max((t)(a), (t)(b))
#define clamp_t(t, v, lo, hi)	min_t(t, max_t(t, v, lo), hi)
#define div_u64(n, d)		((uint64_t)(n) / (uint32_t)(d))
#define __ffs(x)		((unsigned long)__builtin_ctzl(x))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define memset_startat(p, v, m)	\
	memset(&(p)->m, v, sizeof(*(p)) - offsetof(__typeof__(*(p)), m))
#define container_of(p, t, m)	((t *)((char *)(p) - offsetof(t, m)))

typedef struct { int unused; } spinlock_t;
#define spin_lock_init(l)	((void)(l))
#define spin_lock_bh(l)		((void)(l))
#define spin_unlock_bh(l)	((void)(l))
#define lockdep_assert_held(l)	((void)(l))
#define __must_hold(l)

typedef struct { int v; } atomic_t;
static inline void atomic_set(atomic_t *a, int v) { a->v = v; }
static inline int atomic_read(const atomic_t *a) { return a->v; }
static inline void atomic_add(int n, atomic_t *a) { a->v += n; }
static inline void atomic_inc(atomic_t *a) { a->v++; }
static inline void atomic_dec(atomic_t *a) { a->v--; }
static inline int atomic_sub_return(int n, atomic_t *a) { return a->v -= n; }
static inline int atomic_xchg(atomic_t *a, int v)
{
	int old = a->v;

	a->v = v;
	return old;
}

static inline bool atomic_try_cmpxchg(atomic_t *a, int *old, int v)
{
	if (a->v != *old) {
		*old = a->v;
		return false;
	}
	a->v = v;
	return true;
}

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l;
	l->prev = l;
}

static inline void list_add(struct list_head *n, struct list_head *h)
{
	n->next = h->next;
	n->prev = h;
	h->next->prev = n;
	h->next = n;
}

static inline void list_add_tail(struct list_head *n, struct list_head *h)
{
	list_add(n, h->prev);
}

static inline void list_del_init(struct list_head *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
	INIT_LIST_HEAD(e);
}

static inline void list_move_tail(struct list_head *e, struct list_head *h)
{
	list_del_init(e);
	list_add_tail(e, h);
}

static inline bool list_empty(const struct list_head *h)
{
	return h->next == h;
}

#define list_first_entry(h, t, m)	container_of((h)->next, t, m)

#endif /* _ESP_PURE_USER_H */
