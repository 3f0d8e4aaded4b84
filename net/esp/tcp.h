/* SPDX-License-Identifier: GPL-2.0-only */
/* ESP in the place of a TCP connection. */
#ifndef _ESP_TCP_H
#define _ESP_TCP_H

#include <net/inet_sock.h>
#include <net/tcp_states.h>
#include "esp.h"

struct sock *esp_tcp_get(const struct net *net, int fd, int *err);
int esp_tcp_set_listener(struct sock *sk, int fd);
int esp_tcp_take_options(struct socket *sock, int fd);
int esp_tcp_set_dest(struct sock *sk, sockptr_t val, unsigned int len);
u16 esp_tcp_port(const struct sock *sk);
u32 esp_tcp_cookie(struct sock *sk, u32 cookie);
bool esp_tcp_signed(const struct sock *sk);
bool esp_tcp_accepts(const struct sock *sk, const struct net_device *dev, u64 name);

/*
 * Does a TCP socket listen at a port? A socket that listens is hashed; for a moment before that,
 * its state says so already. One that was closed may listen at another port later.
 */
static inline bool esp_tcp_listens(const struct sock *tcp, __be16 port)
{
	return READ_ONCE(tcp->sk_state) == TCP_LISTEN &&
	       !hlist_unhashed_lockless(&tcp->sk_node) &&
	       READ_ONCE(inet_sk(tcp)->inet_num) == ntohs(port);
}

/*
 * Does a bound socket stand for a TCP listener that has been closed since? Then it gets no frames,
 * and other sockets may have its port. Once one of them has it, this socket never gets it back,
 * even if TCP's listens again.
 */
static inline bool esp_tcp_gone(const struct sock *sk)
{
	const struct esp_opt *esp = esp_sk(sk);
	const struct sock *tcp = READ_ONCE(esp->tcp);

	return tcp && (READ_ONCE(esp->tcp_lost) || !esp_tcp_listens(tcp, READ_ONCE(esp->sport)));
}

/* Return the name of the IP address that a SYN with ESP_FEATURE_TCP asks for. */
static inline u64 esp_frame_name(const struct esp_frame *f)
{
	return (u64)f->ack_seq << 32 | f->ts_ecr;
}

#endif /* _ESP_TCP_H */
