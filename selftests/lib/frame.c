// SPDX-License-Identifier: GPL-2.0-only
/*
 * Send forged frames, and watch frames on the wire, by AF_PACKET and so without
 * the module.
 *
 * Each line of "send"'s input is one kind of frame, a list of NAME=VALUE:
 *	src dst			MAC addresses (the device's own; DST)
 *	version hlen flags grant sport dport cookie seq ack len
 *				of the header, see linux/esp_wire.h
 *	hello=COOKIE		options of the handshake with this cookie, and
 *				the seq that belongs to it
 *	opts=HEX		options, literally
 *	payload=N		bytes after the header (len follows unless given)
 *	pad=N			bytes after the payload
 *	cut=N			the frame ends after N bytes of the header
 *	csum=bad
 *	count=N
 *	vary=SEED		each one with another src, sport and hello
 *	random=SEED		each one of random bytes, or with a header that
 *				is wrong in random ways
 * A word without "=" is a comment.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_packet.h>
#include <linux/af_esp.h>
#include <linux/esp_wire.h>
#include "checksum.h"

static const char usage_text[] =
"usage: frame send DEV DST        kinds of frames from stdin; prints their number\n"
"       frame watch DEV MAC       frames to this address, a line for each, until killed\n"
"       frame learn DEV PORT      one frame that comes in for PORT, as \"send\" wants it\n";

struct kind {
	struct ether_header eth;
	struct esp_wire h;
	unsigned int version, hlen, payload, pad, cut, count;
	uint8_t opts[ESP_OPT_MAX];
	unsigned int opts_len;
	uint32_t hello;
	int len_given, bad_csum, say_hello;
	uint64_t vary, random;
};

static int fd, ifindex;
static uint8_t own_mac[6], buf[65536];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "frame: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Return the first packet number that belongs to a cookie, as the module computes it. */
static uint32_t isn(uint32_t cookie)
{
	cookie ^= cookie >> 16;
	cookie *= 0x7feb352du;
	return cookie ^ cookie >> 15;
}

static void parse_mac(const char *s, uint8_t *mac)
{
	unsigned int m[6], i;

	if (sscanf(s, "%x:%x:%x:%x:%x:%x", m, m + 1, m + 2, m + 3, m + 4,
		   m + 5) != 6) {
		errno = EINVAL;
		die(s);
	}
	for (i = 0; i < 6; i++)
		mac[i] = m[i];
}

/* Open a device. @protocol: EtherType of the frames to receive; 0: none. */
static void open_device(const char *dev, unsigned int protocol)
{
	struct sockaddr_ll ll = { .sll_family = AF_PACKET };
	struct ifreq ifr = {};

	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd < 0)
		die("socket");
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev);
	if (ioctl(fd, SIOCGIFHWADDR, &ifr))
		die(dev);
	memcpy(own_mac, ifr.ifr_hwaddr.sa_data, 6);
	ifindex = if_nametoindex(dev);
	ll.sll_ifindex = ifindex;
	ll.sll_protocol = htons(protocol);
	if (bind(fd, (struct sockaddr *)&ll, sizeof(ll)))
		die("bind");
}

static unsigned int put_opt(uint8_t *p, uint8_t type, uint32_t value, int bytes)
{
	int i;

	p[0] = type;
	p[1] = 2 + bytes;
	for (i = 0; i < bytes; i++)
		p[2 + i] = value >> 8 * (bytes - 1 - i);
	return 2 + bytes;
}

static void put_hello(struct kind *k)
{
	uint8_t *p = k->opts;

	p += put_opt(p, ESP_OPT_COOKIE, k->hello, 4);
	p += put_opt(p, ESP_OPT_MSS, 1468, 2);
	p += put_opt(p, ESP_OPT_TYPE, SOCK_STREAM, 1);
	while ((p - k->opts) % 4)
		*p++ = ESP_OPT_END;
	k->opts_len = p - k->opts;
	k->h.pkt_seq = htonl(isn(k->hello));
}

/* Build a frame in buf; return its length. */
static size_t build(struct kind *k)
{
	uint8_t *p = buf + sizeof(k->eth);
	size_t hlen, covered, i;

	if (k->say_hello)
		put_hello(k);
	hlen = ESP_HLEN + k->opts_len;
	k->h.ver_hlen = k->version << 4 | (k->hlen ? k->hlen : hlen / 4);
	if (!k->len_given)
		k->h.len = htons(k->payload);
	k->h.csum = 0;
	memcpy(buf, &k->eth, sizeof(k->eth));
	memcpy(p, &k->h, ESP_HLEN);
	memcpy(p + ESP_HLEN, k->opts, k->opts_len);
	for (i = 0; i < k->payload + k->pad; i++)
		p[hlen + i] = 0xa0 + i;
	covered = hlen + k->payload;
	k->h.csum = checksum(p, covered) ^ (k->bad_csum ? 0x1000 : 0);
	memcpy(p, &k->h, ESP_HLEN);
	return sizeof(k->eth) + (k->cut ? k->cut : covered + k->pad);
}

/*
 * Build a random frame. Nine of ten frames have the header of the kind with some
 * fields changed, and a correct checksum; the others are noise.
 */
static size_t build_random(const struct kind *k)
{
	struct kind r = *k;
	uint64_t *s = &r.random, v = next_random(s);
	size_t n, i;

	if (v % 10 == 0) {
		n = (v >> 8) % 1500;
		memcpy(buf, &k->eth, sizeof(k->eth));
		for (i = 0; i < n; i++)
			buf[sizeof(k->eth) + i] = next_random(s);
		return sizeof(k->eth) + n;
	}
	r.h.flags = v >> 8;
	if (v & 0x10000)
		r.h.cookie = next_random(s);
	if (v & 0x20000)
		r.h.sport = next_random(s);
	if (v & 0x40000)
		r.h.dport = next_random(s);
	r.h.cookie ^= htonl(1 + (next_random(s) & 0xffff));
	r.h.pkt_seq = next_random(s);
	r.h.ack_seq = next_random(s);
	r.h.grant = next_random(s);
	r.payload = (v >> 32) % 4 ? (v >> 40) % 64 : (v >> 40) % 1400;
	if ((v >> 20) % 4 == 0) {
		r.opts_len = (v >> 22) % 8 * 4;
		if (r.opts_len > ESP_OPT_MAX)
			r.opts_len = ESP_OPT_MAX;
		for (i = 0; i < r.opts_len; i++)
			r.opts[i] = next_random(s) % 10;
	}
	if ((v >> 25) % 16 == 0)
		r.hlen = (v >> 29) % 16;
	if ((v >> 56) % 16 == 0) {
		r.h.len = next_random(s);
		r.len_given = 1;
	}
	return build(&r);
}

static void vary(struct kind *k)
{
	uint64_t v = next_random(&k->vary);

	memcpy(k->eth.ether_shost + 1, &v, 5);
	k->h.sport = htons(1024 + (v >> 40) % 60000);
	k->hello = next_random(&k->vary) | 1;
}

static int set(struct kind *k, const char *name, const char *value)
{
	uint32_t v = strtoul(value, NULL, 0);
	unsigned int i;

	if (!strcmp(name, "src")) {
		parse_mac(value, k->eth.ether_shost);
	} else if (!strcmp(name, "dst")) {
		parse_mac(value, k->eth.ether_dhost);
	} else if (!strcmp(name, "version")) {
		k->version = v;
	} else if (!strcmp(name, "hlen")) {
		k->hlen = v;
	} else if (!strcmp(name, "flags")) {
		k->h.flags = v;
	} else if (!strcmp(name, "grant")) {
		k->h.grant = htons(v);
	} else if (!strcmp(name, "sport")) {
		k->h.sport = htons(v);
	} else if (!strcmp(name, "dport")) {
		k->h.dport = htons(v);
	} else if (!strcmp(name, "cookie")) {
		k->h.cookie = htonl(v);
	} else if (!strcmp(name, "seq")) {
		k->h.pkt_seq = htonl(v);
	} else if (!strcmp(name, "ack")) {
		k->h.ack_seq = htonl(v);
	} else if (!strcmp(name, "len")) {
		k->h.len = htons(v);
		k->len_given = 1;
	} else if (!strcmp(name, "hello")) {
		k->hello = v;
		k->say_hello = 1;
	} else if (!strcmp(name, "opts")) {
		for (i = 0; i < ESP_OPT_MAX &&
		     sscanf(value + 2 * i, "%2hhx", &k->opts[i]) == 1; i++)
			;
		k->opts_len = i;
	} else if (!strcmp(name, "payload")) {
		k->payload = v;
	} else if (!strcmp(name, "pad")) {
		k->pad = v;
	} else if (!strcmp(name, "cut")) {
		k->cut = v;
	} else if (!strcmp(name, "csum")) {
		k->bad_csum = !strcmp(value, "bad");
	} else if (!strcmp(name, "count")) {
		k->count = v;
	} else if (!strcmp(name, "vary")) {
		k->vary = v;
		k->say_hello = 1;
	} else if (!strcmp(name, "random")) {
		k->random = v;
	} else {
		return -1;
	}
	return 0;
}

static void parse_line(struct kind *k, char *line)
{
	char *word, *value, *rest;

	for (word = strtok_r(line, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest)) {
		value = strchr(word, '=');
		if (!value)
			continue;
		*value++ = 0;
		if (set(k, word, value)) {
			errno = EINVAL;
			die(word);
		}
	}
}

static void send_kind(struct kind *k)
{
	struct sockaddr_ll ll = {
		.sll_family	= AF_PACKET,
		.sll_ifindex	= ifindex,
		.sll_protocol	= htons(ESP_ETHERTYPE),
		.sll_halen	= 6,
	};
	unsigned int i;
	size_t n;

	for (i = 0; i < k->count; i++) {
		if (k->vary)
			vary(k);
		if (k->random) {
			next_random(&k->random);
			n = build_random(k);
		} else {
			n = build(k);
		}
		memcpy(ll.sll_addr, k->eth.ether_dhost, 6);
		while (sendto(fd, buf, n, 0, (struct sockaddr *)&ll,
			      sizeof(ll)) < 0) {
			if (errno != ENOBUFS)
				die("send");
			usleep(100);
		}
	}
}

static void do_send(const char *dst)
{
	unsigned long sent = 0;
	char line[512];

	while (fgets(line, sizeof(line), stdin)) {
		struct kind k = { .version = ESP_VERSION, .count = 1 };

		memcpy(k.eth.ether_shost, own_mac, 6);
		parse_mac(dst, k.eth.ether_dhost);
		k.eth.ether_type = htons(ESP_ETHERTYPE);
		k.h.sport = htons(4000);
		k.h.dport = htons(4001);
		k.h.flags = ESP_ACK;
		parse_line(&k, line);
		send_kind(&k);
		sent += k.count;
	}
	printf("%lu\n", sent);
}

static void print_frame(const struct esp_wire *h)
{
	printf("flags=%#x grant=%u sport=%u dport=%u cookie=%#x seq=%#x ack=%#x len=%u\n",
	       h->flags, ntohs(h->grant), ntohs(h->sport), ntohs(h->dport),
	       ntohl(h->cookie), ntohl(h->pkt_seq), ntohl(h->ack_seq),
	       ntohs(h->len));
	fflush(stdout);
}

/* Return the next frame on the device; skip frames shorter than a header. */
static const struct esp_wire *next_frame(void)
{
	static struct esp_wire h;
	ssize_t n;

	do {
		n = recv(fd, buf, sizeof(buf), 0);
		if (n < 0 && errno != ENETDOWN && errno != EINTR)
			die("recv");
	} while (n < (ssize_t)(sizeof(struct ether_header) + ESP_HLEN));
	memcpy(&h, buf + sizeof(struct ether_header), sizeof(h));
	return &h;
}

static void watch(const char *to)
{
	uint8_t mac[6];

	parse_mac(to, mac);
	puts("watching");
	fflush(stdout);
	for (;;) {
		const struct esp_wire *h = next_frame();

		if (!memcmp(buf, mac, 6))
			print_frame(h);
	}
}

static void learn(unsigned int port)
{
	const struct esp_wire *h;

	do {
		h = next_frame();
	} while (ntohs(h->dport) != port || (h->flags & ESP_SYN) ||
		 memcmp(buf, own_mac, 6));
	print_frame(h);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fputs(usage_text, stderr);
		return 2;
	}
	open_device(argv[2], strcmp(argv[1], "send") ? ESP_ETHERTYPE : 0);
	if (!strcmp(argv[1], "send")) {
		do_send(argv[3]);
	} else if (!strcmp(argv[1], "watch")) {
		watch(argv[3]);
	} else if (!strcmp(argv[1], "learn")) {
		learn(atoi(argv[3]));
	} else {
		fputs(usage_text, stderr);
		return 2;
	}
	return 0;
}
