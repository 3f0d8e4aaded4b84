// SPDX-License-Identifier: GPL-2.0-only
/*
 * esp perf: one stream of a test, as client and as server.
 *
 * A function that returns false has set stream.error.
 */
#include <endian.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "perf.h"

__u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static bool fail(struct stream *s, const char *what, int err)
{
	s->error = what;
	s->err = err;
	return false;
}

static bool send_all(struct stream *s, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(s->fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(s, "sending", errno);
		p += n;
		len -= n;
	}
	return true;
}

/* Receive as recv() does, and note an error in the stream. */
static ssize_t recv_some(struct stream *s, void *buf, size_t len)
{
	ssize_t n;

	do {
		n = recv(s->fd, buf, len, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		fail(s, "receiving", errno);
	return n;
}

/* Receive @len bytes. Returns how many came before the end, -1 on error. */
static ssize_t recv_all(struct stream *s, void *buf, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv_some(s, (char *)buf + got, len - got);

		if (n < 0)
			return -1;
		if (!n)
			break;
		got += n;
	}
	return got;
}

static bool recv_exact(struct stream *s, void *buf, size_t len)
{
	ssize_t n = recv_all(s, buf, len);

	if (n >= 0 && (size_t)n < len)
		return fail(s, "the peer ended the test early", 0);
	return n >= 0;
}

static void swap_words(void *to, const void *from, size_t len)
{
	__u64 word;
	size_t i;

	for (i = 0; i < len; i += sizeof(word)) {
		memcpy(&word, (const char *)from + i, sizeof(word));
		word = htobe64(word);
		memcpy((char *)to + i, &word, sizeof(word));
	}
}

bool hello_send(struct stream *s)
{
	struct hello h;

	swap_words(&h, &s->hello, sizeof(h));
	return send_all(s, &h, sizeof(h));
}

bool hello_recv(struct stream *s)
{
	struct hello *h = &s->hello;

	if (!recv_exact(s, h, sizeof(*h)))
		return false;
	swap_words(h, h, sizeof(*h));
	if (h->magic != PERF_MAGIC || h->mode > PERF_LATENCY ||
	    !h->block || h->block > PERF_BLOCK_MAX ||
	    !h->streams || h->streams > PERF_STREAMS)
		return fail(s, "the client is not an 'esp perf' of this version", 0);
	return true;
}

/* Send the report, which is a side's last message. */
static bool report_send(struct stream *s)
{
	struct report r;

	swap_words(&r, &s->own, sizeof(r));
	if (!send_all(s, &r, sizeof(r)))
		return false;
	return !shutdown(s->fd, SHUT_WR) || fail(s, "shutdown", errno);
}

static bool report_recv(struct stream *s)
{
	if (!recv_exact(s, &s->peer, sizeof(s->peer)))
		return false;
	swap_words(&s->peer, &s->peer, sizeof(s->peer));
	return true;
}

static __u64 usec(struct timeval end, struct timeval start)
{
	return (end.tv_sec - start.tv_sec) * 1000000LL +
	       end.tv_usec - start.tv_usec;
}

/* Note the socket's counters; the peer's last acknowledgment may be missing. */
static void report_stats(struct stream *s)
{
	struct tcp_info tcp = { 0 };
	socklen_t len = sizeof(s->own.stats);

	if (!getsockopt(s->fd, SOL_ESP, ESP_STATS, &s->own.stats, &len))
		return;
	len = sizeof(tcp);
	if (!getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &tcp, &len))
		s->own.stats.retrans = tcp.tcpi_total_retrans;
}

static void report_end(struct stream *s)
{
	struct rusage now;

	getrusage(RUSAGE_THREAD, &now);
	s->own.bytes = s->off;
	s->own.usec = (now_ns() - s->start_ns) / 1000;
	s->own.user_usec = usec(now.ru_utime, s->usage.ru_utime);
	s->own.sys_usec = usec(now.ru_stime, s->usage.ru_stime);
	report_stats(s);
}

/* Return word @i of the pattern (splitmix64), so that any piece can be made. */
static __u64 pattern_word(__u64 seed, __u64 i)
{
	__u64 z = seed + (i + 1) * 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return htole64(z ^ z >> 31);
}

static void pattern_fill(char *buf, size_t len, __u64 seed, __u64 off)
{
	while (len) {
		__u64 word = pattern_word(seed, off / sizeof(word));
		size_t skip = off % sizeof(word), n = sizeof(word) - skip;

		if (n > len)
			n = len;
		memcpy(buf, (char *)&word + skip, n);
		buf += n;
		off += n;
		len -= n;
	}
}

/* Compare the data at s->off with the pattern, and move on. */
static void pattern_check(struct stream *s, const char *data, size_t len)
{
	char want[4096];

	while (len) {
		size_t n = len < sizeof(want) ? len : sizeof(want), i;

		if (s->hello.verify && !s->own.bad) {
			pattern_fill(want, n, s->hello.seed, s->off);
			for (i = 0; i < n && data[i] == want[i]; i++)
				;
			if (i < n)
				s->own.bad = s->off + i + 1;
		}
		data += n;
		len -= n;
		s->off += n;
	}
}

/* Return the bytes to be sent now; 0: the test is over. */
static size_t next_block(const struct stream *s)
{
	const struct hello *h = &s->hello;

	if (!h->bytes)
		return now_ns() - s->start_ns < h->msec * 1000000 ? h->block : 0;
	if (s->off >= h->bytes)
		return 0;
	return h->bytes - s->off < h->block ? h->bytes - s->off : h->block;
}

static bool data_send(struct stream *s)
{
	size_t n;

	pattern_fill(s->buf, s->hello.block, s->hello.seed, 0);
	while ((n = next_block(s))) {
		if (s->hello.verify)
			pattern_fill(s->buf, n, s->hello.seed, s->off);
		if (!send_all(s, s->buf, n))
			return false;
		s->off += n;
		atomic_store(&s->done, s->off);
	}
	report_end(s);
	return report_send(s);
}

/*
 * Receive data up to the end of the stream. The last bytes are the sender's report, so the bytes of
 * a report are always held back from the check.
 */
static bool data_recv(struct stream *s)
{
	const size_t tail = sizeof(struct report);
	size_t held = 0;
	ssize_t n;

	while ((n = recv_some(s, s->buf + held, s->hello.block)) > 0) {
		held += n;
		if (held <= tail)
			continue;
		pattern_check(s, s->buf, held - tail);
		memmove(s->buf, s->buf + held - tail, tail);
		held = tail;
		atomic_store(&s->done, s->off);
	}
	if (n < 0)
		return false;
	if (held < tail)
		return fail(s, "the peer ended the test early", 0);
	swap_words(&s->peer, s->buf, tail);
	report_end(s);
	if (s->peer.bytes != s->off)
		return fail(s, "not all data that was sent has come", 0);
	return true;
}

static unsigned int histogram_index(__u64 v)
{
	unsigned int shift;

	if (v < 2 << HISTOGRAM_BITS)
		return v;
	shift = 63 - HISTOGRAM_BITS - __builtin_clzll(v);
	return (shift << HISTOGRAM_BITS) + (v >> shift);
}

/* Return the least value of bucket @i: the inverse of histogram_index(). */
__u64 histogram_least(unsigned int i)
{
	unsigned int shift;

	if (i < 2 << HISTOGRAM_BITS)
		return i;
	shift = (i >> HISTOGRAM_BITS) - 1;
	return (__u64)(i - (shift << HISTOGRAM_BITS)) << shift;
}

/* Return the middle of bucket @i. */
static __u64 histogram_value(unsigned int i)
{
	return histogram_least(i) + (histogram_least(i + 1) - histogram_least(i)) / 2;
}

static void histogram_add(struct histogram *h, __u64 v)
{
	if (!h->count || v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->count++;
	h->sum += v;
	h->bucket[histogram_index(v)]++;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	unsigned int i;

	if (!from->count)
		return;
	if (!to->count || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->sum += from->sum;
	for (i = 0; i < HISTOGRAM_SIZE; i++)
		to->bucket[i] += from->bucket[i];
}

__u64 histogram_quantile(const struct histogram *h, double q)
{
	__u64 left = q * h->count, v;
	unsigned int i = 0;

	while (i < HISTOGRAM_SIZE - 1 && left >= h->bucket[i])
		left -= h->bucket[i++];
	v = histogram_value(i);
	return v < h->min ? h->min : v > h->max ? h->max : v;
}

static bool ping_client(struct stream *s)
{
	const size_t len = s->hello.block;

	pattern_fill(s->buf, len, s->hello.seed, 0);
	while (next_block(s)) {
		__u64 sent;

		if (s->hello.verify)
			pattern_fill(s->buf, len, s->hello.seed, s->off);
		sent = now_ns();
		if (!send_all(s, s->buf, len) || !recv_exact(s, s->buf, len))
			return false;
		histogram_add(s->round_trips, now_ns() - sent);
		pattern_check(s, s->buf, len);
		atomic_store(&s->done, s->off);
	}
	report_end(s);
	if (shutdown(s->fd, SHUT_WR))
		return fail(s, "shutdown", errno);
	return report_recv(s);
}

static bool ping_server(struct stream *s)
{
	const ssize_t len = s->hello.block;
	ssize_t n;

	while ((n = recv_all(s, s->buf, len)) == len) {
		if (!send_all(s, s->buf, len))
			return false;
		s->off += len;
	}
	if (n < 0)
		return false;
	report_end(s);
	return report_send(s);
}

static bool stream_test(struct stream *s, bool client)
{
	if (s->hello.mode == PERF_LATENCY)
		return client ? ping_client(s) : ping_server(s);
	if (s->hello.mode == (client ? PERF_REVERSE : PERF_THROUGHPUT))
		return data_recv(s) && (client || report_send(s));
	if (!data_send(s))
		return false;
	if (!client)
		return true;
	if (!report_recv(s))
		return false;
	/* By now all is acknowledged and counted. */
	report_stats(s);
	return true;
}

/* Run the stream to its end, after the hello. */
bool stream_run(struct stream *s, bool client)
{
	bool ok;

	s->buf = malloc(s->hello.block + sizeof(struct report));
	if (!s->buf)
		return fail(s, "buffer", errno);
	s->start_ns = now_ns();
	getrusage(RUSAGE_THREAD, &s->usage);
	ok = stream_test(s, client);
	free(s->buf);
	return ok;
}
