// SPDX-License-Identifier: GPL-2.0-only
/*
 * esp perf: options, server, client and its output.
 */
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "perf.h"

#define PORT_DEFAULT	":5201"

struct perf {
	const char *address;
	bool server;
	bool client;
	bool once;
	bool tcp;
	bool latency;
	bool histogram;
	bool reverse;
	bool verify;
	bool json;
	unsigned int interval;
	unsigned int streams;
	unsigned int seconds;
	__u64 bytes;
	size_t block;
};

static sem_t stream_done;

/* Write a number such as "12.3 G": four digits at most, powers of 1000. */
static const char *scaled(char *buf, size_t size, double v)
{
	static const char units[] = " KMGTP";
	const char *unit = units;

	while (v >= 1000 && unit[1]) {
		v /= 1000;
		unit++;
	}
	snprintf(buf, size, "%.*f %s%.1s", v < 10 ? 2 : v < 100 ? 1 : 0, v,
		 "", *unit == ' ' ? "" : unit);
	return buf;
}

static void print_rate(double from, double to, __u64 bytes)
{
	char amount[32], rate[32];

	printf("%6.1f -%6.1f s  %8sB  %8sbit/s", from, to,
	       scaled(amount, sizeof(amount), bytes),
	       scaled(rate, sizeof(rate),
		      to > from ? bytes * 8 / (to - from) : 0));
}

static int stream_fail(const struct stream *s, const char *who)
{
	error(0, s->err, "%s: %s", who, s->error);
	return s->err ? exit_code(s->err) : EXIT_IO;
}

/* The server: a thread for each connection. */

static const struct perf *serving;
static atomic_uint served;
static atomic_int served_code;

static void server_line(const struct stream *s, const char *who)
{
	static const char *const did[] = { "received", "sent", "echoed" };

	flockfile(stdout);
	printf("%s  ", who);
	print_rate(0, s->own.usec / 1e6, s->own.bytes);
	printf("  %s\n", did[s->hello.mode]);
	fflush(stdout);
	funlockfile(stdout);
}

static void *server_thread(void *arg)
{
	char who[ADDRESS_STRLEN];
	struct stream *s = arg;
	bool valid;

	address_of(s->fd, true, who);
	valid = hello_recv(s);
	if (!valid || !stream_run(s, false)) {
		served_code = stream_fail(s, who);
	} else if (s->own.bad) {
		error(0, 0, "%s: data differ at byte %llu", who,
		      s->own.bad - 1);
		served_code = EXIT_IO;
	} else {
		server_line(s, who);
	}
	close(s->fd);
	if (valid && serving->once &&
	    atomic_fetch_add(&served, 1) + 1 == s->hello.streams)
		exit(served_code);
	free(s);
	return NULL;
}

static void server(const struct perf *p, const struct address *addr)
{
	int fd = address_listen(addr, PERF_STREAMS);
	char buf[ADDRESS_STRLEN];
	pthread_attr_t attr;

	serving = p;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	printf("listening on %s\n", address_of(fd, false, buf));
	fflush(stdout);
	for (;;) {
		int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		struct stream *s;
		pthread_t thread;
		int err;

		if (conn < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			address_fail(addr, "cannot accept on");
		}
		s = calloc(1, sizeof(*s));
		if (!s)
			error(EXIT_IO, errno, "connection");
		s->fd = conn;
		err = pthread_create(&thread, &attr, server_thread, s);
		if (err)
			error(EXIT_IO, err, "thread");
	}
}

/* The client: a thread for each stream, while the main thread watches. */

static void *client_thread(void *arg)
{
	struct stream *s = arg;

	stream_run(s, true);
	sem_post(&stream_done);
	return NULL;
}

static __u64 bytes_done(struct stream *streams, unsigned int n)
{
	__u64 sum = 0;

	while (n--)
		sum += atomic_load(&streams[n].done);
	return sum;
}

static void client_watch(const struct perf *p, struct stream *streams)
{
	struct timespec next;
	unsigned int ended = 0, ticks = 0;
	__u64 last = 0;

	clock_gettime(CLOCK_MONOTONIC, &next);
	next.tv_sec += p->interval;
	while (ended < p->streams) {
		double from = (double)ticks * p->interval;
		double to = from + p->interval;
		__u64 sum;

		if (!(p->interval ?
		      sem_clockwait(&stream_done, CLOCK_MONOTONIC, &next) :
		      sem_wait(&stream_done))) {
			ended++;
			continue;
		}
		if (errno != ETIMEDOUT)
			continue;
		sum = bytes_done(streams, p->streams);
		if (p->json) {
			printf("%s{\"start\":%.0f,\"end\":%.0f,\"bytes\":%llu}",
			       ticks ? "," : "", from, to, sum - last);
		} else {
			print_rate(from, to, sum - last);
			printf(p->latency ? "  %llu round trips\n" :
					    "\n", (sum - last) / p->block);
			fflush(stdout);
		}
		last = sum;
		ticks++;
		next.tv_sec += p->interval;
	}
}

static void report_add(struct report *to, const struct report *from)
{
	const __u64 *add = (const __u64 *)&from->stats;
	__u64 *sum = (__u64 *)&to->stats;
	size_t i;

	to->bytes += from->bytes;
	if (from->usec > to->usec)
		to->usec = from->usec;
	to->user_usec += from->user_usec;
	to->sys_usec += from->sys_usec;
	for (i = 0; i < sizeof(to->stats) / sizeof(*sum); i++)
		sum[i] += add[i];
}

static void report_json(const struct perf *p, const char *who,
			const struct report *r)
{
	printf(",\"%s\":{\"bytes\":%llu,\"seconds\":%.6f,\"bits_per_second\":%.0f,",
	       who, r->bytes, r->usec / 1e6,
	       r->usec ? r->bytes * 8e6 / r->usec : 0);
	printf("\"cpu_user\":%.6f,\"cpu_system\":%.6f,\"stats\":{",
	       r->user_usec / 1e6, r->sys_usec / 1e6);
	if (p->tcp)
		printf("\"retrans\":%llu", r->stats.retrans);
	else
		print_stats(&r->stats, true);
	fputs("}}", stdout);
}

static void report_text(const struct perf *p, const char *who,
			const struct report *r)
{
	printf("%-9s", who);
	print_rate(0, r->usec / 1e6, r->bytes);
	printf("  CPU %.1f %% user, %.1f %% system, %llu retransmissions\n",
	       r->usec ? 100.0 * r->user_usec / r->usec : 0,
	       r->usec ? 100.0 * r->sys_usec / r->usec : 0,
	       r->stats.retrans);
	if (p->tcp)
		return;
	printf("%9s", "");
	print_stats(&r->stats, false);
	putchar('\n');
}

static void latency_print(const struct perf *p, const struct histogram *h)
{
	static const struct {
		const char *name;
		double q;
	} quantiles[] = {
		{ "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 },
		{ "p99.9", 0.999 },
	};
	const char *format = p->json ? ",\"%s\":%.3f" : "  %s %.1f";
	size_t i;

	printf(p->json ? ",\"latency_us\":{\"count\":%llu" :
			 "%llu round trips, us:", h->count);
	printf(format, "min", h->min / 1e3);
	printf(format, "avg", h->count ? h->sum / 1e3 / h->count : 0);
	for (i = 0; i < ARRAY_SIZE(quantiles); i++)
		printf(format, quantiles[i].name,
		       histogram_quantile(h, quantiles[i].q) / 1e3);
	printf(format, "max", h->max / 1e3);
	putchar(p->json ? '}' : '\n');
}

#define PARTS	4	/* lines of text for a power of two */
#define BAR	50	/* characters of the longest bar */

/* Print the bar of @count round trips that took @from to @to ns; the longest bar is of @most. */
static void histogram_line(__u64 from, __u64 to, __u64 count, __u64 most)
{
	int bar = (count * BAR + most - 1) / most;

	printf("%12.1f ... %10.1f us %10llu  %.*s\n", from / 1e3, to / 1e3, count, bar,
	       "##################################################");
}

/* Print how many round trips took how long. */
static void histogram_text(const struct histogram *h)
{
	enum { N = HISTOGRAM_SIZE * PARTS >> HISTOGRAM_BITS, EACH = HISTOGRAM_SIZE / N };
	static __u64 count[N];
	unsigned int i, first = N, last = 0;
	__u64 most = 1;

	for (i = 0; i < HISTOGRAM_SIZE; i++)
		count[i / EACH] += h->bucket[i];
	for (i = 0; i < N; i++) {
		if (!count[i])
			continue;
		if (first == N)
			first = i;
		last = i;
		if (count[i] > most)
			most = count[i];
	}
	for (i = first; i < N && i <= last; i++)
		histogram_line(histogram_least(i * EACH), histogram_least((i + 1) * EACH),
			       count[i], most);
}

/* Print pairs: a bucket's least duration, and its number of round trips; without empty buckets. */
static void histogram_json(const struct histogram *h)
{
	const char *sep = "";
	unsigned int i;

	fputs(",\"histogram_us\":[", stdout);
	for (i = 0; i < HISTOGRAM_SIZE; i++) {
		if (!h->bucket[i])
			continue;
		printf("%s[%.3f,%llu]", sep, histogram_least(i) / 1e3, h->bucket[i]);
		sep = ",";
	}
	putchar(']');
}

/* Sum the streams up. Returns the exit code. */
static int client_result(const struct perf *p, struct stream *streams)
{
	const char *own = p->latency ? "client" :
			  p->reverse ? "receiver" : "sender";
	const char *other = p->latency ? "server" :
			    p->reverse ? "sender" : "receiver";
	void (*print)(const struct perf *p, const char *who,
		      const struct report *r) =
		p->json ? report_json : report_text;
	struct report sum_own = { 0 }, sum_peer = { 0 };
	struct histogram *h = streams[0].round_trips;
	int code = EXIT_OK;
	unsigned int i;

	for (i = 0; i < p->streams; i++) {
		struct stream *s = &streams[i];
		__u64 bad = s->own.bad ? s->own.bad : s->peer.bad;

		if (s->error) {
			code = stream_fail(s, p->address);
		} else if (bad) {
			error(0, 0, "%s: data differ at byte %llu",
			      p->address, bad - 1);
			code = EXIT_IO;
		}
		report_add(&sum_own, &s->own);
		report_add(&sum_peer, &s->peer);
		if (i && h)
			histogram_merge(h, s->round_trips);
	}
	if (p->json)
		putchar(']');
	print(p, own, &sum_own);
	print(p, other, &sum_peer);
	if (h)
		latency_print(p, h);
	if (h && p->histogram)
		(p->json ? histogram_json : histogram_text)(h);
	if (p->json)
		puts("}");
	return code;
}

static void client_header(const struct perf *p, int fd)
{
	const char *mode = p->latency ? "latency" :
			   p->reverse ? "reverse" : "throughput";
	char local[ADDRESS_STRLEN], peer[ADDRESS_STRLEN];

	address_of(fd, false, local);
	address_of(fd, true, peer);
	if (!p->json) {
		printf("connected to %s from %s, %s, streams: %u, block: %zu bytes\n",
		       peer, local, mode, p->streams, p->block);
		fflush(stdout);
		return;
	}
	printf("{\"protocol\":\"%s\",\"local\":", p->tcp ? "tcp" : "esp");
	json_string(local);
	fputs(",\"peer\":", stdout);
	json_string(peer);
	printf(",\"mode\":\"%s\",\"streams\":%u,\"block\":%zu,\"verify\":%s,\"intervals\":[",
	       mode, p->streams, p->block, p->verify ? "true" : "false");
}

static int client(const struct perf *p, const struct address *addr)
{
	struct stream *streams = calloc(p->streams, sizeof(*streams));
	struct hello hello = {
		.magic = PERF_MAGIC,
		.mode = p->latency ? PERF_LATENCY :
			p->reverse ? PERF_REVERSE : PERF_THROUGHPUT,
		.verify = p->verify,
		.streams = p->streams,
		.block = p->block,
		.msec = p->seconds * 1000,
		.bytes = p->bytes,
	};
	unsigned int i;
	int code, err;

	if (!streams)
		error(EXIT_IO, errno, "streams");
	if (getrandom(&hello.seed, sizeof(hello.seed), 0) < 0)
		error(EXIT_IO, errno, "getrandom");
	sem_init(&stream_done, 0, 0);
	for (i = 0; i < p->streams; i++) {
		struct stream *s = &streams[i];

		s->fd = address_connect(addr, 0, -1);
		s->hello = hello;
		s->hello.seed += i;
		if (p->latency) {
			s->round_trips = calloc(1, sizeof(*s->round_trips));
			if (!s->round_trips)
				error(EXIT_IO, errno, "histogram");
		}
		if (!hello_send(s))
			exit(stream_fail(s, p->address));
	}
	client_header(p, streams[0].fd);
	for (i = 0; i < p->streams; i++) {
		err = pthread_create(&streams[i].thread, NULL, client_thread,
				     &streams[i]);
		if (err)
			error(EXIT_IO, err, "thread");
	}
	client_watch(p, streams);
	for (i = 0; i < p->streams; i++) {
		pthread_join(streams[i].thread, NULL);
		close(streams[i].fd);
	}
	code = client_result(p, streams);
	for (i = 0; i < p->streams; i++)
		free(streams[i].round_trips);
	free(streams);
	return code;
}

enum {
	OPT_HISTOGRAM = 256,
	OPT_LATENCY,
	OPT_TCP,
	OPT_VERIFY,
};

static const struct argp_option options[] = {
	{ "server", 's', NULL, 0, "serve tests on ADDRESS (" PORT_DEFAULT ")", 0 },
	{ "one-off", '1', NULL, 0, "serve one test, then exit", 0 },
	{ "tcp", OPT_TCP, NULL, 0, "use TCP, with TCP_NODELAY; ADDRESS is HOST:PORT", 0 },
	{ "client", 'c', "ADDRESS", 0, "run a test with the server there", 1 },
	{ "time", 't', "SECONDS", 0, "for how long (10)", 1 },
	{ "bytes", 'n', "SIZE", 0, "how much each stream transfers, instead of a time", 1 },
	{ "length", 'l', "SIZE", 0, "bytes of a write (128K) or of a ping (64)", 1 },
	{ "parallel", 'P', "NUMBER", 0, "streams at the same time (1)", 1 },
	{ "reverse", 'R', NULL, 0, "the server sends", 1 },
	{ "latency", OPT_LATENCY, NULL, 0, "ping-pong, one message at a time", 1 },
	{ "histogram", OPT_HISTOGRAM, NULL, 0, "with --latency: how many took how long", 1 },
	{ "verify", OPT_VERIFY, NULL, 0, "compare each byte that arrives", 1 },
	{ "interval", 'i', "SECONDS", 0, "between progress lines, 0: none (1)", 1 },
	{ "json", 'j', NULL, 0, "result as JSON", 1 },
	{ NULL, 0, NULL, 0, NULL, 0 }
};

static void check(struct perf *p, struct argp_state *state)
{
	if (p->server == p->client)
		argp_error(state, "either -s or -c ADDRESS is needed");
	if (p->latency && p->reverse)
		argp_error(state, "--latency measures both ways, leave -R out");
	if (p->histogram && !p->latency)
		argp_error(state, "--histogram is of --latency");
	if (p->once && p->client)
		argp_error(state, "-1 is for the server");
	if (!p->address)
		p->address = PORT_DEFAULT;
	if (!p->block)
		p->block = p->latency ? 64 : 131072;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct perf *p = state->input;

	switch (key) {
	case 's':
		p->server = true;
		break;
	case '1':
		p->once = true;
		break;
	case OPT_TCP:
		p->tcp = true;
		break;
	case 'c':
		p->client = true;
		p->address = arg;
		break;
	case 't':
		p->seconds = parse_number(state, arg, "time", 1, 4000000);
		break;
	case 'n':
		p->bytes = parse_size(state, arg, "number of bytes",
				      INT64_MAX);
		break;
	case 'l':
		p->block = parse_size(state, arg, "length", PERF_BLOCK_MAX);
		break;
	case 'P':
		p->streams = parse_number(state, arg, "number of streams", 1,
					  PERF_STREAMS);
		break;
	case 'R':
		p->reverse = true;
		break;
	case OPT_LATENCY:
		p->latency = true;
		break;
	case OPT_HISTOGRAM:
		p->histogram = true;
		break;
	case OPT_VERIFY:
		p->verify = true;
		break;
	case 'i':
		p->interval = parse_number(state, arg, "interval", 0, 86400);
		break;
	case 'j':
		p->json = true;
		break;
	case ARGP_KEY_ARG:
		if (p->address || !p->server)
			argp_error(state, "'%s' is too much", arg);
		p->address = arg;
		break;
	case ARGP_KEY_END:
		check(p, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_perf(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "-s [ADDRESS]\n-c ADDRESS",
		"Measures throughput and latency between a server and a client.",
		NULL, NULL, NULL
	};
	struct perf p = { .interval = 1, .streams = 1, .seconds = 10 };
	struct address addr;

	argp_parse(&argp, argc, argv, 0, NULL, &p);
	if (p.tcp)
		address_parse_tcp(&addr, p.address, p.server);
	else
		address_parse(&addr, p.address, SOCK_STREAM, p.server);
	if (!p.server)
		return client(&p, &addr);
	server(&p, &addr);
	return EXIT_OK;
}
