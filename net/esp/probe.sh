#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Prints -DESP_OLD_* for each interface that the kernel's headers, in the
# folder $1/include, have in an older form. Looks, doesn't compare versions:
# distributions carry backports.
inc=$1/include

lacks() {	# lacks FILE TEXT NAME
	grep -q -- "$2" "$inc/$1" || printf -- '-D%s ' "$3"
}

lacks linux/net.h sockaddr_unsized ESP_OLD_SOCKADDR
lacks linux/skbuff.h skb_splice_from_iter ESP_OLD_SENDPAGE
lacks linux/skbuff.h 'ssize_t maxsize);' ESP_OLD_SPLICE_GFP
lacks linux/net.h proto_accept_arg ESP_OLD_ACCEPT
lacks linux/hrtimer.h 'hrtimer_setup(' ESP_OLD_HRTIMER
lacks net/net_namespace.h register_net_sysctl_sz ESP_OLD_SYSCTL_SZ
lacks linux/sysctl.h 'typedef int proc_handler(const struct' ESP_OLD_CTL_CONST
lacks net/sock.h 'sk_forward_alloc_add(' ESP_OLD_FORWARD_ALLOC
lacks linux/netdevice.h gso_ipv4_max_size ESP_OLD_GSO_IPV4
lacks linux/net.h SOCK_CUSTOM_SOCKOPT ESP_OLD_SOCKOPT
lacks linux/skbuff.h 'struct ubuf_info \*uarg, bool devmem);' ESP_OLD_ZEROCOPY
