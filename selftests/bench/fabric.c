// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many hosts that send to many at once: play a list of flows between the hosts of fabric.sh.
 *
 *   fabric [OPTIONS] esp|cubic|dctcp <FLOWS
 *
 * FLOWS is what "espsim --arrivals" prints, so that the simulator has the very same flows. Each
 * flow has a connection of its own: handshake, data, close. Hosts are the namespaces h0 h1 ...,
 * each with a device e0. All sockets belong to this one process. Prints one object of JSON, with
 * espsim's names.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <linux/af_esp.h>
#include "bench.h"

#define MAX_HOSTS	256
#define MTU		1500
#define WIRE_OVERHEAD	(14 + 4 + 8 + 12)	/* Ethernet, FCS, preamble, gap */
#define SERVER_PORT	5000
#define PIECE		(256 << 10)	/* most bytes of one call */
#define LOW_WATER	(32 << 10)	/* bytes for which a receiver waits, unless the flow ends */
#define SMALL		100000		/* flows below this size are small, bytes */
#define LARGE		1000000		/* flows from this size on are large, bytes */
#define NS		1000000000ull

static const char usage_text[] =
"usage: fabric [OPTIONS] esp|cubic|dctcp <FLOWS\n"
"  -N HOSTS      (16)           -R MBIT    rate of their links (10000)\n"
"  -t MS         in which flows begin (10)\n"
"  -L MS         after which the run ends, finished or not (1000 more)\n"
"  -j TEXT       members of the object that is printed, for the record\n";

static enum { ESP, CUBIC, DCTCP } proto;
static int nhosts = 16, mbit = 10000;
static double measured_ms = 10, limit_ms;

static struct host {
	int			netns;
	int			listener;
	struct sockaddr_storage	addr;
	socklen_t		len;
} hosts[MAX_HOSTS];

/* One flow. Its first four bytes are its number, by which the receiver knows it. */
static struct flow {
	uint64_t	at;		/* ns after the start */
	uint64_t	size;
	uint64_t	ideal;		/* ns */
	uint64_t	sent;
	uint64_t	got;
	uint64_t	took;		/* ns; 0: not finished */
	unsigned int	src;
	unsigned int	dst;
	int		tx;
} *flows;
static uint32_t nflows, begun, finished;

/* The receiving end of a connection, until its flow is known and after. */
static struct end {
	int		fd;
	uint32_t	number;
	uint32_t	have;	/* bytes of @number */
	int		low;	/* SO_RCVLOWAT */
} *ends;
static uint32_t nends;

enum kind { TIMER, LISTENER, SENDER, RECEIVER };

static int ep, timer;
static uint64_t start;
static uint64_t got, got_in_time;	/* payload received so far, and while flows begin */
static bool over, measured;	/* the run has ended; @got_in_time is complete */
static char buffer[PIECE];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

static void *grow(void *old, size_t n, size_t size)
{
	if (n & (n - 1))
		return old;
	old = realloc(old, (n ? 2 * n : 1) * size);
	if (!old)
		die("memory");
	return old;
}

static void read_flows(void)
{
	struct flow f = { .tx = -1 };
	int n;

	while ((n = scanf("%lu %u %u %lu %lu", &f.at, &f.src, &f.dst, &f.size, &f.ideal)) == 5) {
		if (f.src >= (unsigned int)nhosts || f.dst >= (unsigned int)nhosts ||
		    f.size < sizeof(uint32_t)) {
			errno = EINVAL;
			die("flow %u", nflows);
		}
		flows = grow(flows, nflows, sizeof(*flows));
		flows[nflows++] = f;
	}
	if (n != EOF || !nflows) {
		errno = EINVAL;
		die("flow %u", nflows);
	}
}

static void watch(int fd, uint32_t events, enum kind kind, uint32_t number)
{
	struct epoll_event ev = { .events = events, .data.u64 = (uint64_t)kind << 32 | number };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die("epoll_ctl");
}

static int new_socket(const struct host *h)
{
	const char *cc = proto == DCTCP ? "dctcp" : "cubic";
	int one = 1, fd;

	if (setns(h->netns, CLONE_NEWNET))
		die("setns");
	fd = socket(proto == ESP ? AF_ESP : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0)
		die("socket");
	if (proto != ESP &&
	    (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc)) ||
	     setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))))
		die("%s", cc);
	return fd;
}

static void host_open(int number)
{
	struct host *h = &hosts[number];
	struct sockaddr_esp *e = (struct sockaddr_esp *)&h->addr;
	struct sockaddr_in *i = (struct sockaddr_in *)&h->addr;
	struct ifreq ifr = { .ifr_name = "e0" };
	char path[64];

	snprintf(path, sizeof(path), "/run/netns/h%d", number);
	h->netns = open(path, O_RDONLY);
	if (h->netns < 0)
		die("%s", path);
	h->listener = new_socket(h);
	if (ioctl(h->listener, proto == ESP ? SIOCGIFHWADDR : SIOCGIFADDR, &ifr))
		die("e0 of h%d", number);
	if (proto == ESP) {
		e->sesp_family = AF_ESP;
		e->sesp_port = htons(SERVER_PORT);
		h->len = sizeof(*e);
		if (bind(h->listener, (struct sockaddr *)e, h->len))
			die("bind");
		e->sesp_halen = 6;
		memcpy(e->sesp_addr, ifr.ifr_hwaddr.sa_data, 6);
	} else {
		*i = *(struct sockaddr_in *)&ifr.ifr_addr;
		i->sin_port = htons(SERVER_PORT);
		h->len = sizeof(*i);
		if (bind(h->listener, (struct sockaddr *)i, h->len))
			die("bind");
	}
	if (listen(h->listener, 1024))
		die("listen");
	watch(h->listener, EPOLLIN | EPOLLET, LISTENER, number);
}

static void begin(uint32_t number)
{
	struct flow *f = &flows[number];
	const struct host *to = &hosts[f->dst];

	f->tx = new_socket(&hosts[f->src]);
	if (connect(f->tx, (const struct sockaddr *)&to->addr, to->len) && errno != EINPROGRESS)
		die("connect");
	watch(f->tx, EPOLLOUT | EPOLLET, SENDER, number);
}

/*
 * Begin the flows whose time has come, and set the timer for the next one, for the end of their
 * time, or for the end of all. Only here and when a flow ends, the clock is read: in simulated
 * time each reading takes a fifth of a frame's time.
 */
static void begin_due(void)
{
	uint64_t until = measured_ms * 1e6, limit = limit_ms * 1e6, now, next, expirations;
	struct itimerspec when = {};

	if (read(timer, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
		die("timer");
	now = now_ns() - start;
	while (begun < nflows && (int64_t)(now - flows[begun].at) >= 0)
		begin(begun++);
	if (!measured && (int64_t)(now - until) >= 0) {
		got_in_time = got;
		measured = true;
	}
	over = (int64_t)(now - limit) >= 0;
	next = start + (begun < nflows ? flows[begun].at : measured ? limit : until);
	when.it_value.tv_sec = next / NS;
	when.it_value.tv_nsec = next % NS;
	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL))
		die("timer");
}

static void write_some(uint32_t number)
{
	struct flow *f = &flows[number];
	ssize_t n;

	if (f->tx < 0)
		return;
	while (f->sent < f->size) {
		uint64_t left = f->size - f->sent;

		if (f->sent < sizeof(number)) {
			if (f->sent) {
				errno = EPROTO;
				die("a part of four bytes was taken");
			}
			memcpy(buffer, &number, sizeof(number));
		}
		n = send(f->tx, buffer, left < PIECE ? left : PIECE, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("send, flow %u", number);
		f->sent += n;
	}
	close(f->tx);
	f->tx = -1;
}

static void accept_some(int host)
{
	int fd;

	while ((fd = accept4(hosts[host].listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		ends = grow(ends, nends, sizeof(*ends));
		ends[nends] = (struct end) { .fd = fd };
		watch(fd, EPOLLIN | EPOLLET, RECEIVER, nends++);
	}
	if (errno != EAGAIN)
		die("accept");
}

static void got_bytes(struct end *e, size_t n)
{
	struct flow *f;
	uint64_t left;
	size_t i;
	int low;

	for (i = 0; i < n && e->have < sizeof(e->number); i++)
		((char *)&e->number)[e->have++] = buffer[i];
	if (e->have < sizeof(e->number))
		return;
	if (e->number >= begun) {
		errno = EPROTO;
		die("flow %u comes", e->number);
	}
	f = &flows[e->number];
	if (!f->got)
		f->got = e->have - i;	/* bytes of the number that came before */
	f->got += n;
	got += n;
	if (f->got > f->size) {
		errno = EPROTO;
		die("flow %u has too many bytes", e->number);
	}
	if (f->got == f->size) {
		f->took = now_ns() - start - f->at;
		finished++;
	}
	left = f->size - f->got;
	low = left > LOW_WATER ? LOW_WATER : left ? left : 1;
	if (low != e->low && setsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low)))
		die("SO_RCVLOWAT");
	e->low = low;
}

static void read_some(uint32_t number)
{
	struct end *e = &ends[number];
	ssize_t n;

	if (e->fd < 0)
		return;
	while ((n = recv(e->fd, buffer, sizeof(buffer), 0)) > 0)
		got_bytes(e, n);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		die("recv, flow %u", e->number);
	close(e->fd);
	e->fd = -1;
}

static void play(void)
{
	struct epoll_event events[256];
	int i, n;

	start = now_ns() + NS / 100;
	begin_due();
	while (finished < nflows && !over) {
		n = epoll_wait(ep, events, 256, -1);
		if (n < 0)
			die("epoll_wait");
		for (i = 0; i < n; i++) {
			uint32_t number = events[i].data.u64;

			switch ((enum kind)(events[i].data.u64 >> 32)) {
			case TIMER:
				begin_due();
				break;
			case LISTENER:
				accept_some(number);
				break;
			case SENDER:
				write_some(number);
				break;
			case RECEIVER:
				read_some(number);
				break;
			}
		}
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * Print median and 99 % of the sizes from @least on and below @most: time over ideal time. A flow that
 * has not ended counts as if it ended with the run.
 */
static void print_class(const char *name, uint64_t least, uint64_t most)
{
	double *v = calloc(nflows, sizeof(*v));
	uint32_t n = 0, i;

	if (!v)
		die("memory");
	for (i = 0; i < nflows; i++) {
		double took = flows[i].took ? flows[i].took : limit_ms * 1e6 - flows[i].at;

		if (flows[i].size >= least && flows[i].size < most)
			v[n++] = took / flows[i].ideal;
	}
	qsort(v, n, sizeof(*v), compare);
	printf(", \"%s_n\": %u, \"%s_p50\": %.3f, \"%s_p99\": %.3f", name, n, name,
	       n ? v[n / 2] : 0, name, n ? v[(uint32_t)(n * 0.99)] : 0);
	free(v);
}

static void report(const char *name, const char *more)
{
	int header = proto == ESP ? 32 : 52;
	double attainable = mbit * 1e6 / 8 * (MTU - header) / (MTU + WIRE_OVERHEAD);
	double all = attainable * nhosts * measured_ms / 1000;
	uint64_t offered = 0, frames = 0;
	uint32_t i;

	for (i = 0; i < nflows; i++) {
		offered += flows[i].size;
		frames += (flows[i].size + MTU - header - 1) / (MTU - header);
	}
	printf("{\"proto\": \"%s\", %s, \"hosts\": %d, \"rate_mbit\": %d, \"goodput_share\": %.4f, "
	       "\"offered_share\": %.4f, \"flows\": %u, \"finished\": %u, \"frames_data\": %lu",
	       name, more, nhosts, mbit, got_in_time / all, offered / all, nflows, finished, frames);
	print_class("small", 0, SMALL);
	print_class("middle", SMALL, LARGE);
	print_class("large", LARGE, UINT64_MAX);
	puts("}");
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "esp", "cubic", "dctcp" };
	struct rlimit files = { 1 << 17, 1 << 17 };
	const char *more = "\"pattern\": \"load\"";
	int c;

	while ((c = getopt(argc, argv, "N:R:t:L:j:")) != -1) {
		switch (c) {
		case 'N':
			nhosts = atoi(optarg);
			break;
		case 'R':
			mbit = atoi(optarg);
			break;
		case 't':
			measured_ms = atof(optarg);
			break;
		case 'L':
			limit_ms = atof(optarg);
			break;
		case 'j':
			more = optarg;
			break;
		default:
			fputs(usage_text, stderr);
			return 2;
		}
	}
	for (proto = ESP; proto <= DCTCP && optind + 1 == argc; proto++)
		if (!strcmp(argv[optind], names[proto]))
			break;
	if (optind + 1 != argc || proto > DCTCP || nhosts < 2 || nhosts > MAX_HOSTS ||
	    mbit <= 0 || measured_ms <= 0) {
		fputs(usage_text, stderr);
		return 2;
	}
	if (!limit_ms)
		limit_ms = measured_ms + 1000;
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit");
	read_flows();
	ep = epoll_create1(0);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	if (ep < 0 || timer < 0)
		die("epoll");
	watch(timer, EPOLLIN, TIMER, 0);
	for (c = 0; c < nhosts; c++)
		host_open(c);
	play();
	if (!measured)
		got_in_time = got;
	report(names[proto], more);
	return 0;
}
