/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a host has beside its sockets: a namespace's state, devices, the ports where
 * frames congest, and the hosts that are heard there. Lock order: esp.h.
 */
#ifndef _ESP_HOST_H
#define _ESP_HOST_H

#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/siphash.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "core/ackq.h"
#include "mib.h"
#include "core/policy.h"
#include "core/rtt.h"

#define ESP_PEER_BUCKETS 64

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

/**
 * struct esp_port - a receiving lower device: where frames congest (rule 12)
 * @ref:	esp_dev and connected sockets hold it
 * @ackq:	the ACK queue
 * @lock:	guards what follows, but for @pace; taken when connections come, go
 *		or end a transmission, and once in a round trip, not for each packet
 * @peers:	struct esp_peer by MAC address
 * @npeers:	how many of them may begin a transmission
 * @given:	packets of first bursts that peers may send (rule 21)
 * @pending:	likewise, advised in SYN|ACKs that were not yet echoed; of this
 *		slot and of the one before
 * @slot:	start of this slot, microseconds
 * @shared:	when those who had more than a share were last told so, microseconds
 * @pace:	calls esp_ack_pump() when the link has carried what was permitted;
 *		holds no reference, canceled before @rcu frees the port
 * @rcu:	the end
 *
 * Lives as long as a device or a socket refers to it.
 */
struct esp_port {
	refcount_t		ref;
	struct esp_ackq		ackq;
	spinlock_t		lock;	/* see @lock */
	struct hlist_head	peers[ESP_PEER_BUCKETS];
	u32			npeers;
	u32			given;
	u32			pending[2];
	u64			slot;
	u64			shared;
	struct hrtimer		pace;
	struct rcu_head		rcu;
};

/**
 * struct esp_peer - another host, as a port sees it
 * @node:	in esp_port.peers
 * @port:	its port, which the sockets' references keep
 * @mac:	its address
 * @socks:	sockets that refer to it
 * @sockets:	those on which it may begin a transmission, esp_opt.peer_node
 * @own:	its share of the pool, counted in esp_port.given; 0 while there are none
 * @want:	what its sockets are advised from now on, at most @own
 * @gen:	grows with every cut of @want
 * @behind:	sockets that have not echoed the cut (rule 21)
 * @min_rtt:	of the last ten seconds (rule 22)
 *
 * Everything under esp_port.lock; @min_rtt is read without.
 */
struct esp_peer {
	struct hlist_node	node;
	struct esp_port		*port;
	u8			mac[ETH_ALEN];
	u32			socks;
	struct list_head	sockets;
	u32			own;
	u32			want;
	u32			gen;
	u32			behind;
	struct esp_min_rtt	min_rtt;
};

/**
 * struct esp_dev - an Ethernet device
 * @ref:	the table (until the device leaves) and sockets hold it
 * @node:	in the table, RCU
 * @dev:	NULL once the device is leaving; read under RCU, never held
 * @ifindex:	stays
 * @enabled:	carries ESP
 * @tx_checksum: checksums are left to the device, if it says it can
 * @up:		it is up, as its notifier says
 * @ns:		its namespace's state; for who has seen @dev
 * @headroom:	what its headers need, as of the last frame; if it is too little
 *		by now, esp_dev_xmit() makes room
 * @sums:	it computes checksums of what leaves, as its notifier says; if it
 *		doesn't when a frame leaves, the kernel does
 * @whole:	it takes super-packets as they are, as no network adapter does
 * @lock:	guards @port's replacement and @socks
 * @port:	the receiving lower device's; sockets take a reference of their
 *		own when they are connected
 * @own_port:	@port is this device's, not a lower one's
 * @socks:	sockets bound to or connected over it, esp_opt.dev_node
 * @ctl:	net.esp.dev.NAME
 * @table:	its table
 * @name:	path of @ctl
 * @rcu:	for kfree_rcu
 */
struct esp_dev {
	refcount_t		ref;
	struct hlist_node	node;
	struct net_device __rcu	*dev;
	int			ifindex;
	int			enabled;
	int			tx_checksum;
	struct esp_net		*ns;
	unsigned int		headroom;
	bool			up;
	bool			sums;
	bool			whole;
	spinlock_t		lock;	/* see @lock */
	struct esp_port		*port;
	bool			own_port;
	struct list_head	socks;
	struct ctl_table_header	*ctl;
	struct ctl_table	*table;
	char			name[sizeof("net/esp/dev/") + IFNAMSIZ];
	struct rcu_head		rcu;
};

#endif /* _ESP_HOST_H */
