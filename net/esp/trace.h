/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints (tracing.rst). A value that is expensive to compute is computed only while its
 * tracepoint is enabled: trace_NAME_enabled().
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM esp

#if !defined(_ESP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _ESP_TRACE_H

#include <linux/tracepoint.h>
#include "esp.h"
#include "link.h"

#ifndef ESP_TRACE_STATES
#define ESP_TRACE_STATES				\
	{ TCP_ESTABLISHED,	"ESTABLISHED" },	\
	{ TCP_SYN_SENT,		"SYN_SENT" },		\
	{ TCP_FIN_WAIT1,	"FIN_WAIT1" },		\
	{ TCP_FIN_WAIT2,	"FIN_WAIT2" },		\
	{ TCP_TIME_WAIT,	"TIME_WAIT" },		\
	{ TCP_CLOSE,		"CLOSE" },		\
	{ TCP_CLOSE_WAIT,	"CLOSE_WAIT" },		\
	{ TCP_LAST_ACK,		"LAST_ACK" },		\
	{ TCP_LISTEN,		"LISTEN" },		\
	{ TCP_CLOSING,		"CLOSING" }

#define ESP_TRACE_SOCK					\
	__field(const void *, skaddr)			\
	__field(int, ifindex)				\
	__field(u16, sport)				\
	__field(u16, dport)				\
	__array(u8, daddr, ETH_ALEN)

#define ESP_TRACE_FILL(sk) do {						\
	__entry->skaddr = sk;						\
	__entry->ifindex = esp_sk(sk)->ifindex;				\
	__entry->sport = ntohs(esp_sk(sk)->sport);			\
	__entry->dport = ntohs(esp_sk(sk)->dport);			\
	ether_addr_copy(__entry->daddr, esp_sk(sk)->daddr);		\
} while (0)

#define ESP_TRACE_FORMAT "skaddr=%p ifindex=%d sport=%u peer=%pM:%u "
#define ESP_TRACE_PRINT						\
	__entry->skaddr, __entry->ifindex, __entry->sport,	\
	__entry->daddr, __entry->dport
#endif

TRACE_DEFINE_ENUM(TCP_ESTABLISHED);
TRACE_DEFINE_ENUM(TCP_SYN_SENT);
TRACE_DEFINE_ENUM(TCP_FIN_WAIT1);
TRACE_DEFINE_ENUM(TCP_FIN_WAIT2);
TRACE_DEFINE_ENUM(TCP_TIME_WAIT);
TRACE_DEFINE_ENUM(TCP_CLOSE);
TRACE_DEFINE_ENUM(TCP_CLOSE_WAIT);
TRACE_DEFINE_ENUM(TCP_LAST_ACK);
TRACE_DEFINE_ENUM(TCP_LISTEN);
TRACE_DEFINE_ENUM(TCP_CLOSING);

/**
 * esp_state - a stream or seqpacket socket changes its state
 * @sk:	socket
 * @to:	new state, TCP_...
 */
TRACE_EVENT(esp_state,

	TP_PROTO(const struct sock *sk, int to),

	TP_ARGS(sk, to),

	TP_STRUCT__entry(
		ESP_TRACE_SOCK
		__field(int, from)
		__field(int, to)
	),

	TP_fast_assign(
		ESP_TRACE_FILL(sk);
		__entry->from = sk->sk_state;
		__entry->to = to;
	),

	TP_printk(ESP_TRACE_FORMAT "from=%s to=%s", ESP_TRACE_PRINT,
		  __print_symbolic(__entry->from, ESP_TRACE_STATES),
		  __print_symbolic(__entry->to, ESP_TRACE_STATES))
);

DECLARE_EVENT_CLASS(esp_packets,

	TP_PROTO(const struct sock *sk, u32 seq, u32 packets),

	TP_ARGS(sk, seq, packets),

	TP_STRUCT__entry(
		ESP_TRACE_SOCK
		__field(u32, seq)
		__field(u32, packets)
	),

	TP_fast_assign(
		ESP_TRACE_FILL(sk);
		__entry->seq = seq;
		__entry->packets = packets;
	),

	TP_printk(ESP_TRACE_FORMAT "seq=%u packets=%u", ESP_TRACE_PRINT,
		  __entry->seq, __entry->packets)
);

/**
 * esp_announce - the sender begins a transmission (TXS, rule 3)
 * @sk:		sender
 * @seq:	number of the announcing packet
 * @packets:	packets that the sender may send before the first ACK; 0: none. The sender
 *		then asks for a grant first, and begins the transmission a second time
 */
DEFINE_EVENT(esp_packets, esp_announce,
	TP_PROTO(const struct sock *sk, u32 seq, u32 packets),
	TP_ARGS(sk, seq, packets));

/**
 * esp_finish - the sender sends the last packet of a transmission (TXF, rule 4) for the first
 * time
 * @sk:		sender
 * @seq:	number of the first packet in the same buffer
 * @packets:	packets in this buffer
 */
DEFINE_EVENT(esp_packets, esp_finish,
	TP_PROTO(const struct sock *sk, u32 seq, u32 packets),
	TP_ARGS(sk, seq, packets));

/**
 * esp_again - the sender retransmits packets (rule 19)
 * @sk:		sender
 * @seq:	number of the first packet
 * @packets:	number of packets
 */
DEFINE_EVENT(esp_packets, esp_again,
	TP_PROTO(const struct sock *sk, u32 seq, u32 packets),
	TP_ARGS(sk, seq, packets));

/**
 * esp_rrq_out - the receiver sends an RRQ for missing packets (rule 19)
 * @sk:		receiver
 * @seq:	number of the first missing packet
 * @packets:	number of ranges in the RRQ
 */
DEFINE_EVENT(esp_packets, esp_rrq_out,
	TP_PROTO(const struct sock *sk, u32 seq, u32 packets),
	TP_ARGS(sk, seq, packets));

/**
 * esp_rrq_in - the sender receives an RRQ for packets that its peer misses
 * @sk:		sender
 * @seq:	number of the first missing packet
 * @packets:	number of ranges in the RRQ
 */
DEFINE_EVENT(esp_packets, esp_rrq_in,
	TP_PROTO(const struct sock *sk, u32 seq, u32 packets),
	TP_ARGS(sk, seq, packets));

/**
 * esp_ack_park - the receiver's grant is queued in the ACK queue (rule 11)
 * @sk:	receiver
 */
TRACE_EVENT(esp_ack_park,

	TP_PROTO(const struct sock *sk),

	TP_ARGS(sk),

	TP_STRUCT__entry(
		ESP_TRACE_SOCK
		__field(u32, queued)
		__field(int, open)
		__field(u32, budget)
		__field(int, bucket_open)
		__field(u32, bucket)
	),

	TP_fast_assign(
		ESP_TRACE_FILL(sk);
		__entry->queued = READ_ONCE(esp_sk(sk)->link->ackq.qlen);
		__entry->open = atomic_read(&esp_sk(sk)->link->ackq.outstanding);
		__entry->budget = READ_ONCE(esp_sk(sk)->link->budget.size);
		__entry->bucket = esp_link_bucket(sk, &__entry->bucket_open);
	),

	TP_printk(ESP_TRACE_FORMAT "queued=%u open=%d budget=%u bucket_open=%d bucket=%u",
		  ESP_TRACE_PRINT, __entry->queued, __entry->open, __entry->budget,
		  __entry->bucket_open, __entry->bucket)
);

DECLARE_EVENT_CLASS(esp_waited,

	TP_PROTO(const struct sock *sk, u64 waited),

	TP_ARGS(sk, waited),

	TP_STRUCT__entry(
		ESP_TRACE_SOCK
		__field(u64, waited)
		__field(u32, edge)
		__field(u32, queued)
		__field(int, open)
		__field(u32, budget)
		__field(int, bucket_open)
		__field(u32, bucket)
	),

	TP_fast_assign(
		ESP_TRACE_FILL(sk);
		__entry->waited = waited;
		__entry->edge = READ_ONCE(esp_sk(sk)->grant.edge);
		__entry->queued = READ_ONCE(esp_sk(sk)->link->ackq.qlen);
		__entry->open = atomic_read(&esp_sk(sk)->link->ackq.outstanding);
		__entry->budget = READ_ONCE(esp_sk(sk)->link->budget.size);
		__entry->bucket = esp_link_bucket(sk, &__entry->bucket_open);
	),

	TP_printk(ESP_TRACE_FORMAT
		  "waited=%lluus edge=%u queued=%u open=%d budget=%u bucket_open=%d bucket=%u",
		  ESP_TRACE_PRINT, __entry->waited, __entry->edge, __entry->queued,
		  __entry->open, __entry->budget, __entry->bucket_open, __entry->bucket)
);

/**
 * esp_ack_release - the ACK queue releases the receiver's grant, which is sent (rule 12)
 * @sk:		receiver
 * @waited:	time in the queue, microseconds
 */
DEFINE_EVENT(esp_waited, esp_ack_release,
	TP_PROTO(const struct sock *sk, u64 waited),
	TP_ARGS(sk, waited));

/**
 * esp_ack_leave - the receiver's grant leaves the ACK queue without being sent, because the
 * peer's transmission or the connection has ended
 * @sk:		receiver
 * @waited:	time in the queue, microseconds
 */
DEFINE_EVENT(esp_waited, esp_ack_leave,
	TP_PROTO(const struct sock *sk, u64 waited),
	TP_ARGS(sk, waited));

#endif /* _ESP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
