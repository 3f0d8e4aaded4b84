/* SPDX-License-Identifier: GPL-2.0-only */
/* From the receive queue to user space. */
#ifndef _ESP_RECVMSG_H
#define _ESP_RECVMSG_H

#include "esp.h"

bool esp_readable_part(struct sock *sk);
int esp_set_rcvlowat(struct sock *sk, int val);
int esp_copy_packet(struct sk_buff *skb, int off, struct msghdr *msg, int n);
ssize_t esp_splice_read(struct socket *sock, loff_t *ppos,
			struct pipe_inode_info *pipe, size_t len,
			unsigned int flags);
int esp_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags);

/**
 * esp_readable() - is there enough data for a reader?
 * @sk:		socket; any context
 * @target:	bytes, SO_RCVLOWAT
 *
 * Return: true if a read need not wait
 */
static inline bool esp_readable(struct sock *sk, int target)
{
	u32 bytes = READ_ONCE(esp_sk(sk)->rcv_bytes);

	if (!bytes)
		return false;
	return (sk->sk_type != SOCK_SEQPACKET && (int)bytes >= target) ||
	       esp_readable_part(sk);
}

#endif /* _ESP_RECVMSG_H */
