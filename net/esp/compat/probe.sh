#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Print -DESP_OLD_* for each interface that the kernel's headers, in the
# folder $1/include, have in an older form. The script searches the headers
# instead of comparing versions, because distributions carry backports.
inc=$1/include

lacks() {	# lacks FILE TEXT NAME
	grep -qs -- "$2" "$inc/$1" || printf -- '-D%s ' "$3"
}

lacks linux/net.h sockaddr_unsized ESP_OLD_SOCKADDR
lacks linux/skbuff.h skb_splice_from_iter ESP_OLD_SENDPAGE
lacks linux/skbuff.h 'ssize_t maxsize);' ESP_OLD_SPLICE_GFP
lacks linux/fs.h get_file_active ESP_OLD_GET_FILE
lacks linux/file.h 'int receive_fd(struct file \*file, int __user' ESP_OLD_RECEIVE_FD
lacks linux/net.h proto_accept_arg ESP_OLD_ACCEPT
lacks linux/hrtimer.h 'hrtimer_setup(' ESP_OLD_HRTIMER
lacks net/net_namespace.h register_net_sysctl_sz ESP_OLD_SYSCTL_SZ
lacks linux/sysctl.h 'typedef int proc_handler(const struct' ESP_OLD_CTL_CONST
lacks net/sock.h 'sk_forward_alloc_add(' ESP_OLD_FORWARD_ALLOC
lacks net/sock.h 'sk_drops_inc(' ESP_OLD_DROPS_INC
lacks linux/skbuff.h skb_set_delivery_type_by_clockid ESP_OLD_DELIVERY_TYPE
lacks linux/netdevice.h gso_ipv4_max_size ESP_OLD_GSO_IPV4
lacks linux/net.h SOCK_CUSTOM_SOCKOPT ESP_OLD_SOCKOPT
lacks net/sock.h 'u32 priority;' ESP_OLD_CMSG_PRIORITY
lacks linux/skbuff.h 'struct ubuf_info \*uarg, bool devmem);' ESP_OLD_ZEROCOPY
lacks net/dropreason-core.h SKB_DROP_REASON_TCP_ABORT_ON_DATA ESP_OLD_DROP_ABORT_ON_DATA
lacks net/dropreason-core.h SKB_DROP_REASON_MAC_INVALID_SOURCE ESP_OLD_DROP_INVALID_SOURCE
lacks net/dropreason-core.h SKB_DROP_REASON_TCP_LISTEN_OVERFLOW ESP_OLD_DROP_LISTEN_OVERFLOW
lacks net/dropreason-core.h SKB_DROP_REASON_SOCKET_CLOSE ESP_OLD_DROP_SOCKET_CLOSE
lacks net/dropreason-core.h SKB_DROP_REASON_SKB_BAD_GSO ESP_OLD_DROP_BAD_GSO
lacks linux/skbuff.h sk_skb_reason_drop ESP_OLD_REASON_DROP
lacks net/inet_sock.h 'INET_FLAGS_TRANSPARENT' ESP_OLD_INET_FLAGS
