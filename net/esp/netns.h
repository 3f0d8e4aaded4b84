/* SPDX-License-Identifier: GPL-2.0-only */
/* A network namespace: sysctls, counters and the state that its sockets share. */
#ifndef _ESP_NETNS_H
#define _ESP_NETNS_H

#include <linux/siphash.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "mib.h"

/**
 * struct esp_conf - sysctls of a namespace, see Documentation/sysctl.rst
 *
 * The handlers of the sysctls write the fields. They are read without a lock.
 */
struct esp_conf {
	/** @esp_burst_length: cap on a grant, packets beyond the last ACK; 0: the policy decides */
	int	esp_burst_length;
	/**
	 * @esp_initial_ack_burst_length: packets after the announcing one that a sender may send
	 * before the first ACK; -1: the first burst that the peer advises
	 */
	int	esp_initial_ack_burst_length;
	/** @esp_packets_to_ack: packets queued in order for each ACK */
	int	esp_packets_to_ack;
	/** @adaptive: policy of the ACK queue; 1: adaptive budget (rule 22); 0: the seed's */
	int	adaptive;
	/** @shortest_first: short messages have their turns first; 0: who has waited longest */
	int	shortest_first;
	/** @q_min: lower bound of the adaptive budget, packets */
	int	q_min;
	/** @q_max: upper bound of the adaptive budget, packets; below @q_min it counts as @q_min */
	int	q_max;
	/** @first_burst_pool: first bursts of all peers together: F of rule 21, packets */
	int	first_burst_pool;
	/** @rto_min_us: lower bound of the sender's retransmission timeout, microseconds */
	int	rto_min_us;
	/** @rrq_min_us: lower bound of the receiver's RRQ timer, microseconds */
	int	rrq_min_us;
	/** @rto_max_ms: upper bound of the retransmission timeout, milliseconds */
	int	rto_max_ms;
	/** @rrq_max_ms: upper bound of the receiver's RRQ timer, milliseconds */
	int	rrq_max_ms;
	/** @ack_delay_us: longest time that an ACK waits for data to carry it, microseconds */
	int	ack_delay_us;
	/** @syn_retries: retransmissions of a SYN before ETIMEDOUT */
	int	syn_retries;
	/** @retries: unanswered retransmissions or probes before ETIMEDOUT */
	int	retries;
	/** @expiries: expired grants in a row before a transmission is abandoned (rule 17) */
	int	expiries;
	/**
	 * @probe_max_ms: longest interval between a waiting sender's probes while they are
	 * answered, milliseconds
	 */
	int	probe_max_ms;
	/** @keepalive_time: silence before the first keepalive probe, seconds */
	int	keepalive_time;
	/** @keepalive_intvl: interval between keepalive probes, seconds */
	int	keepalive_intvl;
	/** @keepalive_probes: unanswered keepalive probes before ETIMEDOUT */
	int	keepalive_probes;
	/**
	 * @fin_timeout_ms: life of a closed socket while its peer takes no data, or does not
	 * close, milliseconds; ten times that in all
	 */
	int	fin_timeout_ms;
	/** @time_wait_ms: how long a closed connection answers the last FIN, milliseconds */
	int	time_wait_ms;
	/** @rcvbuf: SO_RCVBUF of new sockets, bytes */
	int	rcvbuf;
	/** @sndbuf: largest send buffer to which a socket grows by itself, bytes */
	int	sndbuf;
};

struct ack_line;

/**
 * struct esp_net - state of a network namespace
 */
struct esp_net {
	/** @conf: sysctls */
	struct esp_conf			conf;
	/** @mib: counters, for each processor */
	DEFINE_SNMP_STAT(struct esp_mib, mib);
	/** @secret: key of the handshake's cookies and of the flows' hashes; set once */
	siphash_key_t			secret;
	/** @net: the namespace; set once */
	struct net			*net;
	/** @ctl: registration of the sysctls net.esp.* */
	struct ctl_table_header		*ctl;
	/** @table: table of @ctl */
	struct ctl_table		*table;
	/** @ack_lines: lines of delayed ACKs, one for each processor; see delayed_ack.c */
	struct ack_line __percpu	*ack_lines;
	/** @reset_since: start of the present interval of the limit on RSTs, microseconds */
	u64				reset_since;
	/** @resets: RSTs to strangers in this interval */
	u32				resets;
};

extern unsigned int esp_net_id;

static inline struct esp_net *esp_net(const struct net *net)
{
	return net_generic(net, esp_net_id);
}

/*
 * Add @n to a counter, in any context. On processors that cannot add to a counter in one
 * instruction, SNMP_ADD_STATS() disables interrupts and enables them again.
 * __SNMP_ADD_STATS() does not need that, because softirqs are off.
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
/* Add @n to a counter; the caller has switched softirqs off. */
#define ESP_ADD_BH(ns, name, n)	\
	__SNMP_ADD_STATS((ns)->mib, ESP_MIB_##name, n)
#define ESP_INC_BH(ns, name)	ESP_ADD_BH(ns, name, 1)

#endif /* _ESP_NETNS_H */
