/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * esp perf: the messages of client and server, and one test stream
 *
 *	throughput	client sends hello, data, report; server sends report
 *	reverse		client sends hello; server sends data, report
 *	latency		client sends hello, pings; server sends each of them
 *			back, and at the end report
 *
 * Each side ends its messages with a half-close.
 */
#ifndef PERF_H
#define PERF_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include "esp.h"

#define PERF_MAGIC	0x45535001
#define PERF_BLOCK_MAX	(16 << 20)
#define PERF_STREAMS	128

enum perf_mode {
	PERF_THROUGHPUT,
	PERF_REVERSE,
	PERF_LATENCY,
};

/*
 * Both structures are arrays of 64-bit words, big-endian on the wire.
 *
 * struct hello - first bytes of each connection
 * @magic:	PERF_MAGIC; its last byte is the version
 * @mode:	enum perf_mode
 * @verify:	the data are pattern(@seed) and the receiver compares them
 * @streams:	connections of this test
 * @block:	bytes of a write, or of a ping
 * @msec:	how long data is sent, if @bytes is 0
 * @bytes:	how much data is sent
 * @seed:	of the pattern; a different one for each stream
 */
struct hello {
	__u64 magic;
	__u64 mode;
	__u64 verify;
	__u64 streams;
	__u64 block;
	__u64 msec;
	__u64 bytes;
	__u64 seed;
};

/**
 * struct report - the results of one side
 * @bytes:	data sent or received
 * @usec:	time from the first byte to the last
 * @user_usec:	CPU time of the thread in user space
 * @sys_usec:	CPU time of the thread in the kernel
 * @bad:	1 + position of the first byte that differs; 0: none does
 * @stats:	counters of the socket; with TCP only retrans
 */
struct report {
	__u64 bytes;
	__u64 usec;
	__u64 user_usec;
	__u64 sys_usec;
	__u64 bad;
	struct esp_stats stats;
};

/* Round trips by duration: 128 buckets for each power of two, so a duration is exact to 1 %. */
#define HISTOGRAM_BITS	7
#define HISTOGRAM_SIZE	((64 - HISTOGRAM_BITS) << HISTOGRAM_BITS)

struct histogram {
	__u64 count;
	__u64 sum;
	__u64 min;
	__u64 max;
	__u64 bucket[HISTOGRAM_SIZE];
};

/**
 * struct stream - one connection of a test
 * @fd:		its socket
 * @hello:	the test, host byte order
 * @thread:	that runs it
 * @done:	bytes so far, for the main thread
 * @off:	bytes so far, for the pattern
 * @start_ns:	begin of the test
 * @usage:	CPU time used at @start_ns
 * @own:	results of this side
 * @peer:	results of the other side
 * @round_trips: latency, client
 * @buf:	a block, and a report
 * @error:	message why the stream failed, or NULL
 * @err:	errno of @error, or 0
 */
struct stream {
	int fd;
	struct hello hello;
	pthread_t thread;
	atomic_uint_fast64_t done;
	__u64 off;
	__u64 start_ns;
	struct rusage usage;
	struct report own;
	struct report peer;
	struct histogram *round_trips;
	char *buf;
	const char *error;
	int err;
};

__u64 now_ns(void);
bool hello_send(struct stream *s);
bool hello_recv(struct stream *s);
bool stream_run(struct stream *s, bool client);
void histogram_merge(struct histogram *to, const struct histogram *from);
__u64 histogram_least(unsigned int i);
__u64 histogram_quantile(const struct histogram *h, double q);

#endif /* PERF_H */
