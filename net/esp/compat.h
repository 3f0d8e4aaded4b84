/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Older kernels. The code is written for the newest one; probe.sh looks into
 * the kernel's headers and defines ESP_OLD_* for what they lack.
 */
#ifndef _ESP_COMPAT_H
#define _ESP_COMPAT_H

#include <linux/hrtimer.h>
#include <net/sock.h>

#ifdef ESP_OLD_SOCKADDR
#define sockaddr_unsized	sockaddr
#endif

#ifdef ESP_OLD_ACCEPT
struct proto_accept_arg {
	int	flags;
	int	err;
	int	is_empty;
	bool	kern;
};
#endif

#ifdef ESP_OLD_HRTIMER
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

#ifdef ESP_OLD_SYSCTL_SZ
#define register_net_sysctl_sz(net, path, table, n) \
	register_net_sysctl(net, path, table)
#endif

#ifdef ESP_OLD_CTL_CONST
#define ESP_CTL_CONST
#else
#define ESP_CTL_CONST		const
#endif

#ifndef kzalloc_obj
#define kzalloc_obj(what, gfp)	kzalloc(sizeof(what), gfp)
#endif

#ifdef ESP_OLD_FORWARD_ALLOC
static inline void sk_forward_alloc_add(struct sock *sk, int val)
{
	sk->sk_forward_alloc += val;
}
#endif

#ifdef ESP_OLD_GSO_IPV4
#define gso_ipv4_max_size	gso_max_size
#endif

#endif /* _ESP_COMPAT_H */
