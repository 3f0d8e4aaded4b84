/* SPDX-License-Identifier: GPL-2.0-only */
/* A network namespace: sysctls, counters, and what its sockets share. */
#ifndef _ESP_NETNS_H
#define _ESP_NETNS_H

#include <linux/siphash.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "mib.h"

/**
 * struct esp_conf - sysctls of a namespace, see Documentation/sysctl.rst
 * @esp_burst_length: cap on a sender's permission, packets; 0: by policy
 * @esp_initial_ack_burst_length: packets behind the announcing one before the
 *			first ACK; -1: as the peer advises
 * @esp_packets_to_ack: packets queued in order for each ACK
 * @adaptive:		1: rule 22's policy; 0: the seed's
 * @q_min:		bounds of the adaptive budget, packets
 * @q_max:		likewise
 * @first_burst_pool:	F of rule 21, packets
 * @rto_min_us:		floor of the sender's retransmission timeout
 * @rrq_min_us:		floor of the receiver's RRQ timer
 * @rto_max_ms:		ceiling of both
 * @ack_delay_us:	how long an ACK waits for data to ride on
 * @syn_retries:	SYNs sent again before ETIMEDOUT
 * @retries:		unanswered retransmissions or probes before ETIMEDOUT
 * @expiries:		expired permissions in a row before a transmission is
 *			given up (rule 17)
 * @probe_max_ms:	longest interval between probes
 * @keepalive_time:	seconds
 * @keepalive_intvl:	seconds
 * @keepalive_probes:	count
 * @fin_timeout_ms:	life of a closed socket while its peer takes no data, or
 *			doesn't close
 * @time_wait_ms:	how long a closed connection answers the last FIN
 * @rcvbuf:		default SO_RCVBUF, bytes
 * @sndbuf:		largest SO_SNDBUF that a socket grows to by itself, bytes
 */
struct esp_conf {
	int	esp_burst_length;
	int	esp_initial_ack_burst_length;
	int	esp_packets_to_ack;
	int	adaptive;
	int	q_min;
	int	q_max;
	int	first_burst_pool;
	int	rto_min_us;
	int	rrq_min_us;
	int	rto_max_ms;
	int	ack_delay_us;
	int	syn_retries;
	int	retries;
	int	expiries;
	int	probe_max_ms;
	int	keepalive_time;
	int	keepalive_intvl;
	int	keepalive_probes;
	int	fin_timeout_ms;
	int	time_wait_ms;
	int	rcvbuf;
	int	sndbuf;
};

struct ack_line;

/**
 * struct esp_net - state of a network namespace
 * @conf:	sysctls; written by their handlers, read anywhere
 * @mib:	counters
 * @secret:	of the handshake's cookies, and of what a flow is known by
 * @net:	the namespace
 * @ctl:	sysctls
 * @table:	their table
 * @ack_lines:	of delayed ACKs, one per processor; see timer.c
 * @reset_since: rate limit of RSTs to strangers: start of its interval,
 *		microseconds
 * @resets:	sent in it
 */
struct esp_net {
	struct esp_conf			conf;
	DEFINE_SNMP_STAT(struct esp_mib, mib);
	siphash_key_t			secret;
	struct net			*net;
	struct ctl_table_header		*ctl;
	struct ctl_table		*table;
	struct ack_line __percpu	*ack_lines;
	u64				reset_since;
	u32				resets;
};

extern unsigned int esp_net_id;

static inline struct esp_net *esp_net(const struct net *net)
{
	return net_generic(net, esp_net_id);
}

/*
 * One more, or @n; any context. Where a processor's counters need more than an
 * add, each costs two changes of its interrupts; not with softirqs off.
 */
#define ESP_ADD_NS(ns, name, n)	do {					\
	if (in_softirq())						\
		ESP_ADD_BH(ns, name, n);				\
	else								\
		SNMP_ADD_STATS((ns)->mib, ESP_MIB_##name, n);		\
} while (0)
#define ESP_INC_NS(ns, name)	ESP_ADD_NS(ns, name, 1)
#define ESP_ADD(net, name, n)	\
	SNMP_ADD_STATS(esp_net(net)->mib, ESP_MIB_##name, n)
#define ESP_INC(net, name)	ESP_ADD(net, name, 1)
/* The caller knows that softirqs are off. */
#define ESP_ADD_BH(ns, name, n)	\
	__SNMP_ADD_STATS((ns)->mib, ESP_MIB_##name, n)
#define ESP_INC_BH(ns, name)	ESP_ADD_BH(ns, name, 1)

#endif /* _ESP_NETNS_H */
