/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables to find sockets. */
#ifndef _ESP_HASH_H
#define _ESP_HASH_H

#include "esp.h"

/**
 * struct esp_walk - position of a walk over the sockets; all zero: the start
 */
struct esp_walk {
	/** @bucket: index; buckets of listeners and EDP sockets, then those of connections */
	unsigned int	bucket;
	/** @pos: walk_pos of the socket that was visited last in the bucket, 0: none */
	u64		pos;
};

int esp_bind_port(struct sock *sk, __be16 port);
int esp_bind_listen(struct sock *sk);
void esp_bind_child(struct sock *child, struct sock *sk);
void esp_unbind(struct sock *sk);
void esp_unshare(struct sock *sk);
int esp_hash(struct sock *sk);
int esp_hash_any_port(struct sock *sk);
void esp_unhash(struct sock *sk);
struct sock *esp_lookup(struct net *net, int ifindex, __be16 sport,
			__be16 dport, const u8 *mac);
struct sock *esp_next_conn(unsigned int *bucket);
struct sock *esp_lookup_listener(struct net *net, int ifindex, __be16 port);
struct sock *esp_lookup_tcp(const struct sock *tcp);
struct sock *esp_next_dgram(struct net *net, int ifindex, __be16 port,
			    struct sock *prev);
void esp_for_each_sock(struct net *net, struct esp_walk *walk,
		       bool (*fn)(struct sock *sk, void *data), void *data);
struct sock *esp_find_sock(struct net *net, int type, const struct sockaddr_esp *src,
			   const struct sockaddr_esp *dst,
			   bool (*fn)(struct sock *sk, void *data), void *data);
int esp_hash_init(void);
void esp_hash_exit(void);

#endif /* _ESP_HASH_H */
