// SPDX-License-Identifier: GPL-2.0-only
/*
 * esp ping: round trips to a host, and the longest packet that reaches it.
 *
 * A question is a packet of a connection that doesn't exist: TXS | ACK, with the cookie that its
 * answer must carry. A host that speaks ESP on this device answers with RST, whether a socket
 * listens there or not, and remembers nothing.
 */
#include <arpa/inet.h>
#include <linux/esp_wire.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <math.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "esp.h"

#define COOKIE_LEN	6	/* of the option; two bytes of ESP_OPT_END follow */
#define HLEN		(ESP_HLEN + 8)
#define PORT		65535	/* port of the questions: as a rule nothing listens there */
#define TRIES		3	/* questions of each length with -m */
#define WAIT_US		50000	/* shortest wait for an answer with -m */
#define WAIT_TRIPS	8	/* longest round trips of a wait for an answer with -m */

struct ping {
	struct address peer;
	const char *target;
	__u64 count;
	double interval;
	double wait;
	double deadline;
	unsigned int size;
	bool mtu;
	bool quiet;
	bool json;

	int fd;
	unsigned int dev_mtu;
	unsigned char own[ETH_ALEN];
	__u32 cookie;
	__be16 port;
	struct sockaddr_ll to;
	unsigned char *packet;

	sigset_t unblocked;	/* mask while it waits */
	__u32 seq;		/* of the last question */
	__u64 sent;
	__u64 received;
	double asked;
	double min, max, sum, squares;
	unsigned int longest;
};

static int signals;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&signals, 1, __ATOMIC_RELAXED);
}

static bool interrupted(void)
{
	return __atomic_load_n(&signals, __ATOMIC_RELAXED);
}

/* Return microseconds. */
static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* Wait until the time, a signal or, with a descriptor, input. True: there is input. */
static bool wait_for(struct ping *p, int fd, double until)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	double left = until - now_us();
	struct timespec t = { 0 };

	if (left > 0) {
		t.tv_sec = left / 1e6;
		t.tv_nsec = (left - t.tv_sec * 1e6) * 1e3;
	}
	return ppoll(&pfd, 1, &t, &p->unblocked) > 0;
}

static __u16 checksum(const unsigned char *p, size_t n)
{
	__u32 sum = 0;

	for (; n > 1; p += 2, n -= 2) {
		sum += p[0] << 8 | p[1];
		sum = (sum & 0xffff) + (sum >> 16);
	}
	if (n)
		sum += *p << 8;
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Let only RSTs for our port pass. */
static void set_filter(struct ping *p)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct esp_wire, dport)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(p->port), 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct esp_wire, flags)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ESP_RST, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, ESP_HLEN_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { ARRAY_SIZE(code), code };

	if (setsockopt(p->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		error(EXIT_IO, errno, "filter");
}

static void open_socket(struct ping *p)
{
	unsigned int ifindex = p->peer.esp.sesp_ifindex;
	struct sockaddr_ll own = { 0 };
	socklen_t len = sizeof(own);
	struct ifreq ifr = { 0 };

	/* protocol 0: it receives nothing before there is a filter */
	p->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		error(EXIT_IO, 0, "packet socket: %s%s", strerror(errno),
		      errno == EPERM ? "; this needs CAP_NET_RAW" : "");
	if (getrandom(&p->cookie, sizeof(p->cookie), 0) != sizeof(p->cookie) ||
	    getrandom(&p->port, sizeof(p->port), 0) != sizeof(p->port))
		error(EXIT_IO, errno, "random numbers");
	p->port |= htons(0x8000);
	set_filter(p);

	p->to.sll_family = AF_PACKET;
	p->to.sll_protocol = htons(ESP_ETHERTYPE);
	p->to.sll_ifindex = ifindex;
	if (bind(p->fd, (struct sockaddr *)&p->to, sizeof(p->to)) ||
	    getsockname(p->fd, (struct sockaddr *)&own, &len) ||
	    !if_indextoname(ifindex, ifr.ifr_name) ||
	    ioctl(p->fd, SIOCGIFMTU, &ifr))
		error(exit_code(errno), errno, "%s", p->target);
	if (own.sll_hatype != ARPHRD_ETHER)
		error(EXIT_UNREACHABLE, 0, "%s is not an Ethernet device", ifr.ifr_name);
	memcpy(p->own, own.sll_addr, ETH_ALEN);
	p->to.sll_halen = ETH_ALEN;
	memcpy(p->to.sll_addr, p->peer.esp.sesp_addr, ETH_ALEN);

	p->dev_mtu = ifr.ifr_mtu < 65535 ? ifr.ifr_mtu : 65535;
	if (!p->size)
		p->size = 64;
	if (p->size > p->dev_mtu)
		error(EXIT_USAGE, 0, "%u bytes are more than the %u of %s", p->size,
		      p->dev_mtu, ifr.ifr_name);
	p->packet = calloc(1, 65536);
	if (!p->packet)
		error(EXIT_IO, errno, "memory");
}

/* Send a question of @size bytes. */
static void ask(struct ping *p, unsigned int size)
{
	struct esp_wire *h = (struct esp_wire *)p->packet;
	unsigned char *option = p->packet + ESP_HLEN;

	h->ver_hlen = ESP_VERSION << 4 | HLEN / 4;
	h->flags = ESP_ACK | ESP_TXS;
	h->sport = p->port;
	h->dport = htons(PORT);
	h->pkt_seq = htonl(++p->seq);
	h->ts_val = htonl(ntohl(p->cookie) ^ p->seq);
	h->len = htons(size - HLEN);
	h->csum = 0;
	option[0] = ESP_OPT_COOKIE;
	option[1] = COOKIE_LEN;
	memcpy(option + 2, &p->cookie, sizeof(p->cookie));
	h->csum = htons(checksum(p->packet, size));

	p->asked = now_us();
	p->sent++;
	if (sendto(p->fd, p->packet, size, 0, (struct sockaddr *)&p->to,
		   sizeof(p->to)) < 0 && errno != ENOBUFS && errno != EINTR)
		error(exit_code(errno), 0, "cannot send to %s: %s", p->target,
		      strerror(errno));
}

/* Is it the answer to the last question? That to an earlier one is late. */
static bool is_answer(struct ping *p, const struct esp_wire *h,
		      const struct sockaddr_ll *from)
{
	return h->ver_hlen >> 4 == ESP_VERSION &&
	       from->sll_pkttype == PACKET_HOST &&
	       !memcmp(from->sll_addr, p->to.sll_addr, ETH_ALEN) &&
	       h->sport == htons(PORT) && h->cookie == p->cookie &&
	       ntohl(h->ack_seq) == p->seq &&
	       ntohl(h->ts_ecr) == (ntohl(p->cookie) ^ p->seq);
}

/* Return the microseconds from question to answer, or -1 if there is none until @until. */
static double answer(struct ping *p, double until)
{
	struct sockaddr_ll from;
	struct esp_wire h;

	while (wait_for(p, p->fd, until)) {
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(p->fd, &h, sizeof(h), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &len);
		double now = now_us();

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			error(exit_code(errno), 0, "%s: %s", p->target, strerror(errno));
		if (n == sizeof(h) && is_answer(p, &h, &from))
			return now - p->asked;
	}
	return -1;
}

/* Ask a question and receive its answer; @until bounds both. */
static bool round_trip(struct ping *p, unsigned int size, double until)
{
	double us;

	ask(p, size);
	us = answer(p, until);
	if (us < 0)
		return false;
	if (!p->received || us < p->min)
		p->min = us;
	if (us > p->max)
		p->max = us;
	p->received++;
	p->sum += us;
	p->squares += us * us;
	if (!p->quiet && !p->json)
		printf("%u bytes from %s: seq=%u time=%.3f ms\n", size, p->target,
		       p->seq, us / 1e3);
	return true;
}

/* Do packets of this length arrive? */
static bool fits(struct ping *p, unsigned int size)
{
	double wait = WAIT_TRIPS * p->max;
	int i;

	for (i = 0; i < TRIES && !interrupted(); i++) {
		if (round_trip(p, size, now_us() + (wait > WAIT_US ? wait : WAIT_US)))
			return true;
	}
	return false;
}

/* Find the longest packet, after an answer to a short one: halve what is left each time. */
static void find_mtu(struct ping *p)
{
	unsigned int low = p->size, high = p->dev_mtu + 1, try = p->dev_mtu;

	while (low + 1 < high && !interrupted()) {
		if (fits(p, try))
			low = try;
		else if (!interrupted())
			high = try;
		try = (low + high) / 2;
	}
	if (!interrupted())
		p->longest = low;
}

static void exchange(struct ping *p)
{
	double end = p->deadline ? now_us() + p->deadline * 1e6 : INFINITY;
	__u64 n;

	for (n = 0; (!p->count || n < p->count) && !interrupted(); n++) {
		double next = now_us() + p->interval * 1e6;

		if (round_trip(p, p->size, fmin(now_us() + p->wait * 1e6, end)) && p->mtu) {
			find_mtu(p);
			return;
		}
		fflush(stdout);
		if (n + 1 == p->count || next >= end)
			break;
		wait_for(p, -1, next);
	}
}

static void print_result(struct ping *p)
{
	double mean = p->received ? p->sum / p->received : 0;
	double spread = p->received ? sqrt(fmax(0, p->squares / p->received - mean * mean)) : 0;

	if (p->json) {
		printf("{\"peer\":");
		json_string(p->target);
		printf(",\"sent\":%llu,\"received\":%llu", p->sent, p->received);
		if (p->received)
			printf(",\"rtt_us\":{\"min\":%.1f,\"avg\":%.1f,\"max\":%.1f,\"mdev\":%.1f}",
			       p->min, mean, p->max, spread);
		if (p->longest)
			printf(",\"mtu\":%u", p->longest);
		puts("}");
		return;
	}
	printf("\n--- %s ---\n%llu sent, %llu received\n", p->target, p->sent, p->received);
	if (p->received)
		printf("round trip min/avg/max/mdev = %.3f/%.3f/%.3f/%.3f ms\n",
		       p->min / 1e3, mean / 1e3, p->max / 1e3, spread / 1e3);
	if (p->longest)
		printf("the longest packet that gets there has %u bytes%s\n", p->longest,
		       p->longest == p->dev_mtu ? ", the MTU of the device" : "");
}

static double parse_seconds(struct argp_state *state, const char *arg, const char *what,
			    double min)
{
	double v;
	char *end;

	errno = 0;
	v = strtod(arg, &end);
	if (end == arg || *end || errno || !(v >= min && v <= 86400))
		argp_error(state, "%s '%s' is not from %g to 86400 seconds", what, arg, min);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ping *p = state->input;

	switch (key) {
	case 'c':
		p->count = parse_number(state, arg, "count", 1, 1u << 31);
		break;
	case 'i':
		p->interval = parse_seconds(state, arg, "interval", 0.001);
		break;
	case 'W':
		p->wait = parse_seconds(state, arg, "wait", 0.001);
		break;
	case 'w':
		p->deadline = parse_seconds(state, arg, "deadline", 0.001);
		break;
	case 's':
		p->size = parse_number(state, arg, "size", HLEN, 65535);
		break;
	case 'm':
		p->mtu = true;
		break;
	case 'q':
		p->quiet = true;
		break;
	case 'j':
		p->json = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one host only");
		p->target = arg;
		break;
	case ARGP_KEY_END:
		if (!p->target)
			argp_error(state, "which host? write MAC%%DEV");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option options[] = {
	{ "count", 'c', "N", 0, "End after N questions", 0 },
	{ "interval", 'i', "SECONDS", 0, "Between two questions: 1", 0 },
	{ "wait", 'W', "SECONDS", 0, "How long an answer may take: 1", 0 },
	{ "deadline", 'w', "SECONDS", 0, "End after that time", 0 },
	{ "size", 's', "BYTES", 0, "Length of a question, its header included: 64", 0 },
	{ "mtu", 'm', NULL, 0, "Find the longest packet that gets there, and end", 0 },
	{ "quiet", 'q', NULL, 0, "The result only", 0 },
	{ "json", 'j', NULL, 0, "The result only, as JSON", 0 },
	{ 0 }
};

int cmd_ping(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "MAC%DEV",
		"Asks a host whether it has ESP: round trips, and with -m the MTU on the way there.",
		NULL, NULL, NULL
	};
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t ending;
	struct ping p = { .interval = 1, .wait = 1 };

	argp_parse(&argp, argc, argv, 0, NULL, &p);
	address_parse_host(&p.peer, p.target);
	open_socket(&p);
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigprocmask(SIG_BLOCK, &ending, &p.unblocked);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (!p.quiet && !p.json)
		printf("%s from %02x:%02x:%02x:%02x:%02x:%02x, %u bytes\n", p.target, p.own[0],
		       p.own[1], p.own[2], p.own[3], p.own[4], p.own[5], p.size);
	exchange(&p);
	print_result(&p);
	free(p.packet);
	close(p.fd);
	return p.received ? EXIT_OK : EXIT_TIMEOUT;
}
