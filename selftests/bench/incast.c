// SPDX-License-Identifier: GPL-2.0-only
// LIBS: -lmnl
/*
 * Many senders, one receiver, one port where they meet: make the traffic of
 * incast.sh, and measure the port's queue. All sockets belong to this one process,
 * each to the network namespace of its host, so that a round begins everywhere at
 * the same moment.
 *
 *   incast [OPTIONS] esp|cubic|dctcp blocks|flows|requests
 *
 *   blocks    every sender has a block of -k KiB at once; the next round
 *             begins when all are in
 *   flows     every sender sends all the time
 *   requests  64 bytes to the receiver and back, by one more host, beside flows
 *
 * Hosts are the namespaces s1 s2 ... and rx, each with a device e0; the port is
 * the device p0 of the namespace sw. Prints one object of JSON.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <net/if.h>
#include <poll.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include <linux/af_esp.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include "bench.h"

#define MAX_SENDERS	65
#define REQUEST		64
#define WIRE_OVERHEAD	(14 + 4 + 8 + 12)	/* Ethernet, FCS, preamble, gap */

static const char usage_text[] =
"usage: incast [OPTIONS] esp|cubic|dctcp blocks|flows|requests\n"
"  -n SENDERS    (16)           -k KIB       of a block (256)\n"
"  -r ROUNDS     of blocks (20) -t SECONDS   of flows and requests (1)\n"
"  -R MBIT       the port's rate (1000)\n"
"  -D US         round trip of the empty network (100)\n"
"  -B KIB        the port's buffer, for the record (128)\n"
"  -P POLICY     name of ESP's, for the record (adaptive)\n"
"  -i US         between looks at the port's queue (100)\n"
"  -p PORT       of the receiver (5000)\n"
"  -F TEXT       what netem does to frames, for the record\n"
"  -o FILE       the queue over time, for gnuplot\n"
"  -l FILE       how long blocks or requests took, microseconds, the shortest first\n";

static enum { ESP, CUBIC, DCTCP } proto;
static const char *policy = "adaptive", *faults = "", *queue_file, *latency_file;
static int nsenders = 16, rounds = 20, mbit = 1000, rtt_us = 100, buffer_kib = 128;
static int interval_us = 100, server_port = 5000;
static double seconds = 1;
static size_t block = 256 << 10;

/* One sender: both ends of its connection. */
static struct flow {
	int		tx, rx;
	size_t		left;		/* of the block, to be written */
	uint64_t	received;
	uint64_t	got_before;	/* when the measured time began */
	double		block_time;	/* sum over rounds */
	int		done;
} flows[MAX_SENDERS];

static char payload[256 << 10];

static void nap(double s)
{
	struct timespec t = { s, (s - (long)s) * 1e9 };

	nanosleep(&t, NULL);
}

static void enter(const char *host)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", host);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("namespace %s", host);
	close(fd);
}

/*
 * Percentiles
 */

struct samples {
	double	*v;
	size_t	n, room;
};

static void add(struct samples *s, double v)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->v = realloc(s->v, s->room * sizeof(*s->v));
		if (!s->v)
			die("memory");
	}
	s->v[s->n++] = v;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Return the smallest of the sorted samples that a share @p of them does not exceed. */
static double percentile(const struct samples *s, double p)
{
	size_t i = p * s->n;

	if (!s->n)
		return 0;
	return s->v[i < s->n ? i : s->n - 1];
}

/* Write the sorted samples to a file, a line each. */
static void save(const struct samples *s, const char *path)
{
	FILE *f = fopen(path, "w");
	size_t i;

	if (!f)
		die("%s", path);
	for (i = 0; i < s->n; i++)
		fprintf(f, "%.1f\n", s->v[i] * 1e6);
	if (fclose(f))
		die("%s", path);
}

/*
 * Sockets
 */

static struct sockaddr_storage server;
static socklen_t server_len;

static int new_socket(void)
{
	const char *cc = proto == DCTCP ? "dctcp" : "cubic";
	int fd = socket(proto == ESP ? AF_ESP : AF_INET, SOCK_STREAM, 0);
	int one = 1;

	if (fd < 0)
		die("socket");
	if (proto == ESP)
		return fd;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("%s", cc);
	return fd;
}

/* Make a listener and set the server's address: its MAC, or its first IP address. */
static int new_listener(void)
{
	struct sockaddr_esp *e = (struct sockaddr_esp *)&server;
	struct sockaddr_in *i = (struct sockaddr_in *)&server;
	struct ifreq ifr = { .ifr_name = "e0" };
	int fd;

	enter("rx");
	fd = new_socket();
	if (proto == ESP) {
		if (ioctl(fd, SIOCGIFHWADDR, &ifr))
			die("e0");
		e->sesp_family = AF_ESP;
		e->sesp_port = htons(server_port);
		e->sesp_halen = 6;
		memcpy(e->sesp_addr, ifr.ifr_hwaddr.sa_data, 6);
		server_len = sizeof(*e);
	} else {
		if (ioctl(fd, SIOCGIFADDR, &ifr))
			die("e0");
		*i = *(struct sockaddr_in *)&ifr.ifr_addr;
		i->sin_port = htons(server_port);
		server_len = sizeof(*i);
	}
	if (proto == ESP) {
		struct sockaddr_esp any = { .sesp_family = AF_ESP, .sesp_port = htons(server_port) };

		if (bind(fd, (struct sockaddr *)&any, sizeof(any)))
			die("bind");
	} else if (bind(fd, (struct sockaddr *)&server, server_len)) {
		die("bind");
	}
	if (listen(fd, MAX_SENDERS))
		die("listen");
	return fd;
}

/*
 * Connect from host s@number; *rx is the receiver's end. Where every third frame is
 * lost, TCP's handshake fails once in a while, or its last ACK never comes. Then try
 * again, as programs do. ESP's handshake must not fail.
 */
static int new_connection(int listener, int number, int *rx)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	int fd, tries = 0;
	char host[16];

	snprintf(host, sizeof(host), "s%d", number);
	enter(host);
	for (;;) {
		fd = new_socket();
		if (!connect(fd, (struct sockaddr *)&server, server_len) &&
		    poll(&p, 1, 60000) == 1)
			break;
		if (proto == ESP || ++tries == 10)
			die("connect from %s", host);
		close(fd);
	}
	*rx = accept(listener, NULL, NULL);
	if (*rx < 0)
		die("accept");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	fcntl(*rx, F_SETFL, O_NONBLOCK);
	return fd;
}

/*
 * Threads: one writes for all senders, one reads for the receiver, one looks
 * at the port.
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_in = PTHREAD_COND_INITIALIZER;
static int tx_ep, rx_ep, pending;
static size_t quota;		/* of a block; 0: without end */
static double round_start;
static volatile int stop;
static struct samples fct;

/* Write until the socket is full or the block is out. */
static void write_some(struct flow *f)
{
	while (!quota || f->left) {
		size_t n = quota && f->left < sizeof(payload) ? f->left : sizeof(payload);
		ssize_t sent = send(f->tx, payload, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0)
			die("send");
		if (quota)
			f->left -= sent;
	}
}

static void *writer(void *arg)
{
	struct epoll_event got[MAX_SENDERS];
	int i, n;

	while (!stop) {
		n = epoll_wait(tx_ep, got, MAX_SENDERS, 100);
		for (i = 0; i < n; i++)
			write_some(got[i].data.ptr);
	}
	return arg;
}

static void read_some(struct flow *f)
{
	static char buf[256 << 10];
	ssize_t n;

	while ((n = recv(f->rx, buf, sizeof(buf), 0)) > 0) {
		f->received += n;
		if (!quota || f->done || f->received < quota)
			continue;
		if (f->received > quota) {
			errno = EPROTO;
			die("too much data");
		}
		f->done = 1;
		f->block_time += now() - round_start;
		add(&fct, now() - round_start);
		pthread_mutex_lock(&lock);
		if (!--pending)
			pthread_cond_signal(&all_in);
		pthread_mutex_unlock(&lock);
	}
	if (!n || errno != EAGAIN)
		die("recv");
}

static void *reader(void *arg)
{
	struct epoll_event got[MAX_SENDERS];
	int i, n;

	while (!stop) {
		n = epoll_wait(rx_ep, got, MAX_SENDERS, 100);
		for (i = 0; i < n; i++)
			read_some(got[i].data.ptr);
	}
	return arg;
}

static struct samples queue;
static uint32_t drops;
static int port_index, measuring;

static int stats_attr(const struct nlattr *a, void *arg)
{
	if (mnl_attr_get_type(a) == TCA_STATS_QUEUE)
		memcpy(arg, mnl_attr_get_payload(a), sizeof(struct gnet_stats_queue));
	return MNL_CB_OK;
}

static int qdisc(const struct nlmsghdr *h, void *arg)
{
	const struct tcmsg *t = mnl_nlmsg_get_payload(h);
	const struct nlattr *a;

	if (t->tcm_ifindex != port_index || t->tcm_parent != TC_H_ROOT)
		return MNL_CB_OK;
	mnl_attr_for_each(a, h, sizeof(*t))
		if (mnl_attr_get_type(a) == TCA_STATS2)
			mnl_attr_parse_nested(a, stats_attr, arg);
	return MNL_CB_OK;
}

/* Read the queue statistics of the port's qdisc. */
static struct gnet_stats_queue look(struct mnl_socket *nl)
{
	char buf[32768];
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct gnet_stats_queue s = {};
	struct tcmsg *t;
	int n, res;

	h->nlmsg_type = RTM_GETQDISC;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	t = mnl_nlmsg_put_extra_header(h, sizeof(*t));
	t->tcm_family = AF_UNSPEC;
	t->tcm_ifindex = port_index;
	if (mnl_socket_sendto(nl, h, h->nlmsg_len) < 0)
		die("netlink");
	do {
		n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		res = n < 0 ? -1 : mnl_cb_run(buf, n, 0, 0, qdisc, &s);
	} while (res > 0);
	if (res < 0)
		die("netlink");
	return s;
}

static void *watcher(void *arg)
{
	FILE *f = queue_file ? fopen(queue_file, "w") : NULL;
	struct gnet_stats_queue s, first = {};
	struct mnl_socket *nl;
	double start = now();
	int begun = 0;

	enter("sw");
	port_index = if_nametoindex("p0");
	nl = mnl_socket_open(NETLINK_ROUTE);
	if (!port_index || !nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID))
		die("the port");
	while (!stop) {
		s = look(nl);
		if (f)
			fprintf(f, "%.6f %u %u\n", now() - start, s.qlen, s.drops);
		if (measuring && !begun) {
			first = s;
			begun = 1;
		}
		if (measuring)
			add(&queue, s.qlen);
		nap(interval_us / 1e6);
	}
	s = look(nl);
	drops = s.drops - first.drops;
	if (f)
		fclose(f);
	mnl_socket_close(nl);
	return arg;
}

/*
 * Workloads
 */

static void watch(int ep, int fd, uint32_t events, struct flow *f)
{
	struct epoll_event ev = { .events = events, .data.ptr = f };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die("epoll_ctl");
}

static void run_blocks(void)
{
	int r, i;

	measuring = 1;
	for (r = 0; r < rounds; r++) {
		for (i = 0; i < nsenders; i++) {
			flows[i].received = 0;
			flows[i].done = 0;
			flows[i].left = block;
		}
		pending = nsenders;
		round_start = now();
		for (i = 0; i < nsenders; i++) {
			struct epoll_event ev = { .events = EPOLLOUT | EPOLLET,
						  .data.ptr = &flows[i] };

			/* makes epoll report again that there is room */
			if (epoll_ctl(tx_ep, EPOLL_CTL_MOD, flows[i].tx, &ev))
				die("epoll_ctl");
		}
		pthread_mutex_lock(&lock);
		while (pending)
			pthread_cond_wait(&all_in, &lock);
		pthread_mutex_unlock(&lock);
	}
}

static void run_flows(void)
{
	int i;

	nap(seconds / 4);	/* to get going */
	for (i = 0; i < nsenders; i++)
		flows[i].got_before = flows[i].received;
	measuring = 1;
	nap(seconds);
}

static int ask_tx, ask_rx;

static void *echo(void *arg)
{
	char buf[REQUEST];

	while (recv(ask_rx, buf, REQUEST, MSG_WAITALL) == REQUEST)
		if (send(ask_rx, buf, REQUEST, MSG_NOSIGNAL) != REQUEST)
			break;
	return arg;
}

static void request(struct samples *s)
{
	char buf[REQUEST] = "";
	double start = now();

	if (send(ask_tx, buf, REQUEST, MSG_NOSIGNAL) != REQUEST ||
	    recv(ask_tx, buf, REQUEST, MSG_WAITALL) != REQUEST)
		die("request");
	add(s, now() - start);
}

static void run_requests(void)
{
	double end;
	int i;

	nap(seconds / 4);
	for (i = 0; i < nsenders; i++)
		flows[i].got_before = flows[i].received;
	measuring = 1;
	for (end = now() + seconds; now() < end;) {
		request(&fct);
		nap(0.0002);
	}
}

/* RetransSegs of /proc/net/snmp: a line of names, a line of numbers. */
static long tcp_retransmits(FILE *f)
{
	char names[1024], numbers[1024], *n, *v, *ns, *vs;

	while (fgets(names, sizeof(names), f) && fgets(numbers, sizeof(numbers), f)) {
		if (strncmp(names, "Tcp:", 4))
			continue;
		n = strtok_r(names, " ", &ns);
		v = strtok_r(numbers, " ", &vs);
		while (n && v) {
			if (!strcmp(n, "RetransSegs"))
				return atol(v);
			n = strtok_r(NULL, " ", &ns);
			v = strtok_r(NULL, " ", &vs);
		}
	}
	return 0;
}

static long esp_retransmits(FILE *f)
{
	char key[64];
	long v;

	while (fscanf(f, "%63s %ld", key, &v) == 2)
		if (!strcmp(key, "OutRetrans"))
			return v;
	return 0;
}

/* Return the packets that the senders have retransmitted so far. */
static long retransmits(void)
{
	char host[16];
	long sum = 0;
	FILE *f;
	int i;

	for (i = 1; i <= nsenders; i++) {
		snprintf(host, sizeof(host), "s%d", i);
		enter(host);
		f = fopen(proto == ESP ? "/proc/thread-self/net/esp/stat" :
			  "/proc/thread-self/net/snmp", "r");
		if (!f)
			die("counters");
		sum += proto == ESP ? esp_retransmits(f) : tcp_retransmits(f);
		fclose(f);
	}
	return sum;
}

/* Read the processor time so far, total and idle, in jiffies, from /proc/stat. */
static void processors(double *all, double *idle)
{
	FILE *f = fopen("/proc/stat", "r");
	double v;
	int i;

	*all = 0;
	*idle = 0;
	if (!f || fscanf(f, "cpu") == EOF)
		die("/proc/stat");
	for (i = 0; i < 8 && fscanf(f, "%lf", &v) == 1; i++) {
		*all += v;
		if (i == 3 || i == 4)
			*idle += v;
	}
	fclose(f);
}

/* Return the payload rate of the link, without the overhead of Ethernet and headers. */
static double attainable(void)
{
	double headers = proto == ESP ? 32 : 52;

	return mbit * 1e6 / 8 * (1500 - headers) / (1500 + WIRE_OVERHEAD);
}

static double jain(const double *x, int n)
{
	double sum = 0, squares = 0;
	int i;

	for (i = 0; i < n; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	return squares ? sum * sum / n / squares : 0;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "esp", "cubic", "dctcp" };
	double bytes = 0, rate[MAX_SENDERS], start, took, ideal, share, cpu[2], cpu_idle[2];
	struct samples idle = {};
	pthread_t wt, rt, qt, et;
	const char *workload;
	long again;
	int c, i, listener;

	while ((c = getopt(argc, argv, "n:k:r:t:R:D:B:P:i:o:l:p:F:")) != -1) {
		switch (c) {
		case 'n':
			nsenders = atoi(optarg);
			break;
		case 'k':
			block = atoi(optarg) * 1024ul;
			break;
		case 'r':
			rounds = atoi(optarg);
			break;
		case 't':
			seconds = atof(optarg);
			break;
		case 'R':
			mbit = atoi(optarg);
			break;
		case 'D':
			rtt_us = atoi(optarg);
			break;
		case 'B':
			buffer_kib = atoi(optarg);
			break;
		case 'P':
			policy = optarg;
			break;
		case 'F':
			faults = optarg;
			break;
		case 'i':
			interval_us = atoi(optarg);
			break;
		case 'p':
			server_port = atoi(optarg);
			break;
		case 'o':
			queue_file = optarg;
			break;
		case 'l':
			latency_file = optarg;
			break;
		default:
			goto usage;
		}
	}
	if (optind + 2 != argc || nsenders < 1 || nsenders >= MAX_SENDERS ||
	    !block || rounds < 1 || mbit < 1 || interval_us < 1)
		goto usage;
	for (i = 0; i < 3; i++)
		if (!strcmp(argv[optind], names[i]))
			break;
	if (i == 3)
		goto usage;
	proto = i;
	workload = argv[optind + 1];
	quota = strcmp(workload, "blocks") ? 0 : block;
	if (quota == 0 && strcmp(workload, "flows") && strcmp(workload, "requests"))
		goto usage;

	listener = new_listener();
	tx_ep = epoll_create1(0);
	rx_ep = epoll_create1(0);
	for (i = 0; i < nsenders; i++)
		flows[i].tx = new_connection(listener, i + 1, &flows[i].rx);
	if (!strcmp(workload, "requests")) {
		ask_tx = new_connection(listener, nsenders + 1, &ask_rx);
		fcntl(ask_tx, F_SETFL, 0);
		fcntl(ask_rx, F_SETFL, 0);
		pthread_create(&et, NULL, echo, NULL);
		for (i = 0; i < 20; i++)
			request(&idle);
	}
	for (i = 0; i < nsenders; i++) {
		watch(rx_ep, flows[i].rx, EPOLLIN, &flows[i]);
		watch(tx_ep, flows[i].tx, EPOLLOUT | EPOLLET, &flows[i]);
	}
	again = retransmits();
	processors(&cpu[0], &cpu_idle[0]);
	start = now();
	pthread_create(&qt, NULL, watcher, NULL);
	pthread_create(&rt, NULL, reader, NULL);
	pthread_create(&wt, NULL, writer, NULL);
	if (quota) {
		nap(0.01);
		start = now();
		run_blocks();
		took = now() - start;
	} else if (!strcmp(workload, "flows")) {
		run_flows();
		took = seconds;
	} else {
		start = now() + seconds / 4;
		run_requests();
		took = now() - start;
	}

	for (i = 0; i < nsenders; i++) {
		if (quota) {
			rate[i] = rounds * (double)block / flows[i].block_time;
			bytes += rounds * (double)block;
		} else {
			rate[i] = flows[i].received - flows[i].got_before;
			bytes += rate[i];
		}
	}
	processors(&cpu[1], &cpu_idle[1]);
	stop = 1;
	pthread_join(qt, NULL);
	again = retransmits() - again;

	/* No round can be shorter than its bytes on the wire, and half a round trip. */
	ideal = nsenders * (double)block / attainable() + rtt_us / 2e6;
	share = quota ? rounds * ideal / took : bytes / took / attainable();
	if (!quota) {
		qsort(idle.v, idle.n, sizeof(*idle.v), compare);
		ideal = percentile(&idle, 0.5);
	}
	qsort(fct.v, fct.n, sizeof(*fct.v), compare);
	if (latency_file)
		save(&fct, latency_file);
	qsort(queue.v, queue.n, sizeof(*queue.v), compare);
	printf("{\"proto\": \"%s\", \"policy\": \"%s\", \"workload\": \"%s\", \"n\": %d, \"rate_mbit\": %d, \"rtt_us\": %d, "
	       "\"buffer_kib\": %d, \"faults\": \"%s\", \"goodput_share\": %.4f, \"port_drops\": %u, \"retransmits\": %ld, \"jain\": %.4f, ",
	       argv[optind], proto == ESP ? policy : "-", workload, nsenders, mbit, rtt_us, buffer_kib, faults, share,
	       drops, again, jain(rate, nsenders));
	if (fct.n)
		printf("\"fct_p50_ratio\": %.3f, \"fct_p99_ratio\": %.3f, \"fct_max_ratio\": %.3f, \"fct_p99_us\": %.1f, ",
		       percentile(&fct, 0.5) / ideal, percentile(&fct, 0.99) / ideal,
		       percentile(&fct, 1) / ideal, percentile(&fct, 0.99) * 1e6);
	else
		printf("\"fct_p50_ratio\": null, \"fct_p99_ratio\": null, \"fct_max_ratio\": null, \"fct_p99_us\": null, ");
	printf("\"queue_p50\": %.0f, \"queue_p99\": %.0f, \"queue_max\": %.0f, \"cpu_idle\": %.2f}\n",
	       percentile(&queue, 0.5), percentile(&queue, 0.99), percentile(&queue, 1),
	       cpu[1] > cpu[0] ? (cpu_idle[1] - cpu_idle[0]) / (cpu[1] - cpu[0]) : 1);
	fflush(stdout);
	_exit(0);	/* the threads sleep in their calls */
usage:
	fputs(usage_text, stderr);
	return 2;
}
