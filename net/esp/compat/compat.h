/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Support for older kernels. The code is written for the newest one. probe.sh searches the
 * kernel's headers, and defines ESP_OLD_* for each interface that they lack.
 */
#ifndef _ESP_COMPAT_H
#define _ESP_COMPAT_H

#include <linux/file.h>
#include <linux/hrtimer.h>
#include <linux/uaccess.h>
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

#ifdef ESP_OLD_GET_FILE
/* The caller keeps the memory of *@f from being freed. */
static inline struct file *get_file_active(struct file **f)
{
	struct file *file = READ_ONCE(*f);

	return file && atomic_long_inc_not_zero(&file->f_count) ? file : NULL;
}
#endif

#ifdef ESP_OLD_RECEIVE_FD
/* A descriptor whose number can't be written stays open. */
static inline int esp_receive_fd(struct file *file, int __user *ufd, unsigned int flags)
{
	int fd = receive_fd(file, flags);

	return fd >= 0 && put_user(fd, ufd) ? -EFAULT : fd;
}

#define receive_fd	esp_receive_fd
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

#ifdef ESP_OLD_DROPS_INC
static inline void sk_drops_inc(struct sock *sk)
{
	atomic_inc(&sk->sk_drops);
}
#endif

#ifdef ESP_OLD_DELIVERY_TYPE
static inline void skb_set_delivery_type_by_clockid(struct sk_buff *skb, ktime_t kt,
						    clockid_t clockid)
{
	skb_set_delivery_time(skb, kt, clockid == CLOCK_MONOTONIC);
}
#endif

#ifdef ESP_OLD_GSO_IPV4
#define gso_ipv4_max_size	gso_max_size
#endif

/* Replace drop reasons that the kernel lacks by the next best ones. */
#ifdef ESP_OLD_DROP_ABORT_ON_DATA
#define SKB_DROP_REASON_TCP_ABORT_ON_DATA	SKB_DROP_REASON_TCP_CLOSE
#endif
#ifdef ESP_OLD_DROP_INVALID_SOURCE
#define SKB_DROP_REASON_MAC_INVALID_SOURCE	SKB_DROP_REASON_UNICAST_IN_L2_MULTICAST
#endif
#ifdef ESP_OLD_DROP_LISTEN_OVERFLOW
#define SKB_DROP_REASON_TCP_LISTEN_OVERFLOW	SKB_DROP_REASON_SOCKET_BACKLOG
#endif
#ifdef ESP_OLD_DROP_SOCKET_CLOSE
#define SKB_DROP_REASON_SOCKET_CLOSE		SKB_DROP_REASON_TCP_CLOSE
#endif
#ifdef ESP_OLD_DROP_BAD_GSO
#define SKB_DROP_REASON_SKB_BAD_GSO		SKB_DROP_REASON_SKB_GSO_SEG
#endif

#ifdef ESP_OLD_REASON_DROP
#define SKB_CONSUMED	SKB_NOT_DROPPED_YET

static inline void sk_skb_reason_drop(struct sock *sk, struct sk_buff *skb,
				      enum skb_drop_reason reason)
{
	if (reason == SKB_CONSUMED)
		consume_skb(skb);
	else
		kfree_skb_reason(skb, reason);
}
#endif

#ifdef ESP_OLD_ZEROCOPY
#define esp_zerocopy_alloc(sk, len)	msg_zerocopy_realloc(sk, len, NULL)
#define esp_zerocopy_iter(sk, skb, msg, n, uarg) \
	skb_zerocopy_iter_stream(sk, skb, msg, n, uarg)
#else
#define esp_zerocopy_alloc(sk, len)	msg_zerocopy_realloc(sk, len, NULL, false)
#define esp_zerocopy_iter(sk, skb, msg, n, uarg) \
	skb_zerocopy_iter_stream(sk, skb, msg, n, uarg, NULL)
#endif

#ifdef ESP_OLD_SENDPAGE
/* Internal flag of this module. Newer kernels clear it in flags from user space. */
#define MSG_SPLICE_PAGES	0x8000000

static inline void esp_user_flags(struct msghdr *msg)
{
	msg->msg_flags &= ~MSG_SPLICE_PAGES;
}

/* Append a single page, as esp_sendpage() passes it. */
static inline ssize_t skb_splice_from_iter(struct sk_buff *skb,
					   struct iov_iter *iter,
					   ssize_t size)
{
	const struct bio_vec *bv = iter->bvec;
	u32 offset = bv->bv_offset + iter->iov_offset;
	int i = skb_shinfo(skb)->nr_frags;

	size = min_t(ssize_t, size, bv->bv_len - iter->iov_offset);
	if (skb_can_coalesce(skb, i, bv->bv_page, offset)) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[i - 1], size);
	} else if (i < MAX_SKB_FRAGS) {
		get_page(bv->bv_page);
		skb_fill_page_desc(skb, i, bv->bv_page, offset, size);
	} else {
		return -EMSGSIZE;
	}
	skb->len += size;
	skb->data_len += size;
	skb->truesize += size;
	iov_iter_advance(iter, size);
	return size;
}
#else
#ifdef ESP_OLD_SPLICE_GFP
#define skb_splice_from_iter(skb, iter, size) \
	skb_splice_from_iter(skb, iter, size, GFP_KERNEL)
#endif

static inline void esp_user_flags(struct msghdr *msg)
{
}
#endif

#ifdef ESP_OLD_INET_FLAGS
#define inet_test_bit(nr, sk)	inet_test_bit_##nr(sk)
#define inet_test_bit_TRANSPARENT(sk) (inet_sk(sk)->transparent)
#endif

#endif /* _ESP_COMPAT_H */
