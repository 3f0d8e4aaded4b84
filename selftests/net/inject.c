// SPDX-License-Identifier: GPL-2.0-only
/*
 * Send forged frames beside a transfer. The frames that pass a device are the templates. The
 * forged frames leave by a packet socket or come in by a tap device, in shapes that only these
 * can make.
 *
 *   inject [-k] [-t TAP [-n | -f]] [-o OUT] [-r] DEV SEED COUNT
 *	-o OUT	the device by which they are sent (DEV)
 *	-r	from a ring (PACKET_TX_RING): the data after the header of Ethernet stay in
 *		memory that a later frame overwrites
 *	-t TAP	they come in by this existing tap device instead; -n: by NAPI; -f: by NAPI,
 *		and in fragments
 *	-k	knows: a forged frame may have the cookie of its connection. Without -k, a frame
 *		with the cookie is either an unchanged copy, or its checksum is wrong, so that
 *		it cannot harm a transfer
 *
 * SEED and N determine the N-th frame, but not its template.
 */
#include <errno.h>
#include <getopt.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/af_esp.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <linux/esp_wire.h>
#include "checksum.h"

#define FRAME_MAX	65000
#define KEPT		32	/* templates */
#define KEPT_LEN	2048
#define MSS		1468	/* of the devices' usual MTU */
#define TAGS		2
#define IOVS		8
#define MARK		0x1e5f	/* SO_MARK of forged frames */
#define SLOTS		8	/* of the ring */
#define SLOT_SIZE	(1 << 17)

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4	5
#endif

struct frame {
	struct virtio_net_hdr	vnet;
	struct ether_header	eth;
	uint16_t		tags[TAGS * 2];	/* VLAN tags, after the addresses */
	unsigned int		ntags;
	size_t			n;		/* bytes of data */
	union {
		struct esp_wire	h;
		uint8_t		data[FRAME_MAX];
	};
};

struct template {
	struct ether_header	eth;
	bool			whole;		/* as it was on the wire */
	size_t			n;
	union {
		struct esp_wire	h;
		uint8_t		data[KEPT_LEN];
	};
};

static struct template kept[KEPT];
static unsigned int nkept;
static struct frame f;
static bool knows, fragments, by_tap;
static uint8_t *ring;	/* NULL: none */
static unsigned int slot;	/* slot of the next frame, not yet modulo SLOTS */
static int capture_fd, out_fd;
static uint64_t state;
static unsigned long sent, refused, known;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* splitmix64 */
static uint32_t rnd(uint32_t n)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return n ? (z >> 32) % n : 0;
}

static bool one_in(uint32_t n)
{
	return !rnd(n);
}

static void noise(uint8_t *p, size_t n)
{
	while (n--)
		*p++ = rnd(256);
}

/*
 * Templates.
 */

static size_t covered(const struct esp_wire *h)
{
	return (h->ver_hlen & 15) * 4 + ntohs(h->len);
}

static void fix_checksum(struct esp_wire *h)
{
	h->csum = 0;
	h->csum = checksum(h, covered(h));
}

static bool checksum_good(const struct esp_wire *h, size_t n)
{
	return n >= ESP_HLEN && covered(h) <= n && !checksum(h, covered(h));
}

/* Keep a frame as a template; of a longer one, or a GSO packet, as much as fits. */
static void keep(const uint8_t *p, size_t n)
{
	struct template *t = &kept[nkept < KEPT ? nkept++ : rnd(KEPT)];
	size_t hlen;

	memcpy(&t->eth, p, sizeof(t->eth));
	t->n = n - sizeof(t->eth) < MSS + ESP_HLEN ? n - sizeof(t->eth) : MSS + ESP_HLEN;
	memcpy(t->data, p + sizeof(t->eth), t->n);
	t->whole = checksum_good(&t->h, t->n);
	hlen = (t->h.ver_hlen & 15) * 4;
	if (!t->whole && hlen <= t->n) {
		t->h.len = htons(t->n - hlen);
		fix_checksum(&t->h);
	}
}

static bool capture(void)
{
	uint8_t buf[KEPT_LEN];
	struct ether_header *eth = (struct ether_header *)buf;
	struct sockaddr_ll from = {};
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(capture_fd, buf, sizeof(buf), MSG_DONTWAIT, (struct sockaddr *)&from,
			     &len);

	if (n < 0 && errno != EAGAIN && errno != ENETDOWN)
		die("recv");
	/* keep frames that go in the direction of the forged ones */
	if (n >= (ssize_t)(sizeof(*eth) + ESP_HLEN) && eth->ether_type == htons(ESP_ETHERTYPE) &&
	    by_tap != (from.sll_pkttype == PACKET_OUTGOING))
		keep(buf, n);
	return n >= 0;
}

/*
 * Forgeries.
 */

static uint32_t other_seq(uint32_t seq)
{
	return htonl(ntohl(seq) + (one_in(4) ? rnd(~0u) : rnd(200) - 100));
}

static void some_fields(void)
{
	unsigned int i;

	for (i = 1 + rnd(3); i; i--) {
		switch (rnd(10)) {
		case 0:
			f.h.flags = rnd(256);
			break;
		case 1:
			f.h.grant = rnd(65536);
			break;
		case 2:
			f.h.sport = one_in(2) ? 0 : rnd(65536);
			break;
		case 3:
			f.h.dport = one_in(2) ? 0 : rnd(65536);
			break;
		case 4:
			f.h.cookie = rnd(~0u);
			break;
		case 5:
			f.h.pkt_seq = other_seq(f.h.pkt_seq);
			break;
		case 6:
			f.h.ack_seq = other_seq(f.h.ack_seq);
			break;
		case 7:
			f.h.ts_val = rnd(~0u);
			f.h.ts_ecr = rnd(~0u);
			break;
		case 8:
			f.h.len = htons(one_in(2) ? rnd(65536) : rnd(64));
			break;
		case 9:
			f.h.ver_hlen = one_in(2) ? rnd(256) : ESP_VERSION << 4 | rnd(16);
			break;
		}
	}
}

static uint8_t *put_opt(uint8_t *p, uint8_t type, uint8_t bytes)
{
	*p++ = type;
	*p++ = 2 + bytes;
	noise(p, bytes);
	return p + bytes;
}

/* Give the frame random options, or those of a handshake, and no payload. */
static void options(bool hello)
{
	unsigned int words = hello ? 4 : rnd(8);
	uint8_t *p = f.data + ESP_HLEN;

	memset(p, 0, ESP_OPT_MAX);
	if (hello) {
		p = put_opt(p, ESP_OPT_COOKIE, 4);
		p = put_opt(p, ESP_OPT_MSS, 2);
		p = put_opt(p, ESP_OPT_TYPE, 1);
		p[-1] = SOCK_STREAM;
	} else if (one_in(2)) {
		noise(p, ESP_OPT_MAX);
	} else {
		while (p < f.data + ESP_HLEN_MAX - 6)
			p = put_opt(p, rnd(10), rnd(5));
	}
	f.h.ver_hlen = ESP_VERSION << 4 | (ESP_HLEN / 4 + words);
	f.h.len = 0;
	f.n = ESP_HLEN + 4 * words;
}

static void other_state(void)
{
	static const uint8_t flags[] = {
		ESP_SYN, ESP_SYN | ESP_ACK, ESP_RST, ESP_RST | ESP_ACK, ESP_FIN | ESP_ACK,
		ESP_ACK, ESP_ACK | ESP_TXS, ESP_ACK | ESP_RRQ, 0,
	};

	f.h.flags = flags[rnd(sizeof(flags))];
	if ((f.h.flags & ESP_SYN) || one_in(8)) {
		options(true);
		if (f.h.flags == ESP_SYN)
			f.h.cookie = 0;
		return;
	}
	f.h.ver_hlen = ESP_VERSION << 4 | ESP_HLEN / 4;
	f.n = ESP_HLEN;
	if (f.h.flags & ESP_RRQ) {
		f.n += one_in(4) ? rnd(20) : 4 + 4 * rnd(3);
		noise(f.data + ESP_HLEN, f.n - ESP_HLEN);
	}
	f.h.len = htons(f.n - ESP_HLEN);
}

static void flip_bits(void)
{
	unsigned int i;

	for (i = 1 + rnd(3); i; i--)
		f.data[one_in(2) ? rnd(ESP_HLEN) : rnd(f.n)] ^= 1 << rnd(8);
}

/* Make the frame longer than its length field says, or than its device takes. */
static void grow(size_t most)
{
	size_t more = rnd(one_in(2) ? 64 : most - f.n);

	noise(f.data + f.n, more < 256 ? more : 256);
	f.n += more;
	if (one_in(2))
		f.h.len = htons(f.n - ESP_HLEN);
}

/* Replace an address of the connection, perhaps by a group's. */
static void other_addresses(void)
{
	static const uint8_t groups[][6] = {
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		{ 1, 0, 0x5e, 0, 0, 1 },
		{ 3, 0, 0, 0, 0, 9 },
	};
	uint8_t *mac = one_in(2) ? f.eth.ether_shost : f.eth.ether_dhost;

	if (one_in(2)) {
		memcpy(mac, groups[rnd(3)], 6);
	} else {
		noise(mac, 6);
		mac[0] = 2;
	}
}

/* Add VLAN tags. VLAN 0 is the device itself, VLAN 5 may be; frames of others are not for it. */
static void tag(void)
{
	unsigned int i, vlan;

	f.ntags = 1 + rnd(TAGS);
	for (i = 0; i < f.ntags; i++) {
		f.tags[2 * i] = htons(one_in(4) ? 0x88a8 : 0x8100);
		vlan = one_in(2) ? 0 : one_in(2) ? 5 : rnd(4096);
		f.tags[2 * i + 1] = htons(rnd(8) << 13 | vlan);
	}
}

/* Set the virtio header, as for a device that computes checksums, or from a guest. */
static void shape(void)
{
	static const uint8_t types[] = {
		VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN,
		VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP, VIRTIO_NET_HDR_GSO_UDP_L4,
	};
	struct virtio_net_hdr *v = &f.vnet;
	uint16_t sum = one_in(8) ? rnd(65536) : offsetof(struct esp_wire, csum);

	if (one_in(2)) {
		v->gso_type = one_in(16) ? rnd(256) : types[rnd(sizeof(types))];
		v->gso_size = one_in(2) ? MSS : one_in(2) ? rnd(65536) : rnd(100);
		/* a GSO packet of this type needs the checksum at this offset */
		if (!one_in(8))
			sum = v->gso_type == VIRTIO_NET_HDR_GSO_UDP_L4 ? 6 : 16;
		if (!one_in(4))
			grow(FRAME_MAX - 100);
	}
	if (v->gso_type || !one_in(3)) {
		v->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		/* the core refuses an offset below 20 */
		v->csum_start = one_in(8) ? rnd(65536) : 20 + rnd(60);
		v->csum_offset = sum;
	} else if (one_in(2)) {
		v->flags = VIRTIO_NET_HDR_F_DATA_VALID;
	}
	/* only with this length the bytes after the first page are fragments */
	v->hdr_len = one_in(8) ? rnd(65536) : rnd(one_in(2) ? 80 : f.n);
}

/* Unless cookies are known (-k), change a frame that could pass for one of the connection. */
static void forget(const struct template *t)
{
	bool left = f.vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;

	if (f.h.cookie != t->h.cookie || (!left && !checksum_good(&f.h, f.n)))
		return;
	if (knows) {
		known++;
		return;
	}
	f.h.cookie ^= htonl(1 + rnd(~0u));
	if (covered(&f.h) <= f.n)
		fix_checksum(&f.h);
}

static void forge(const struct template *t)
{
	bool again = false;

	memset(&f, 0, offsetof(struct frame, data));
	f.eth = t->eth;
	f.n = t->n;
	memcpy(f.data, t->data, t->n);
	switch (rnd(9)) {
	case 0:
		again = t->whole;
		break;
	case 1:
	case 2:
		some_fields();
		break;
	case 3:
		options(false);
		break;
	case 4:
		other_state();
		break;
	case 5:
		flip_bits();
		break;
	case 6:
		f.n = rnd(f.n + 1);
		break;
	case 7:
		grow(one_in(4) ? FRAME_MAX - 100 : 9000);
		break;
	case 8:
		f.n = rnd(MSS);
		noise(f.data, f.n);
		break;
	}
	if (one_in(6))
		other_addresses();
	if (one_in(6))
		tag();
	if (again)
		return;
	if (one_in(4))
		shape();
	if (!one_in(4) && f.n >= ESP_HLEN && covered(&f.h) <= f.n)
		fix_checksum(&f.h);
	forget(t);
}

/*
 * Sending.
 */

/* Put the frame into the ring's next slot, once the earlier frame has left the slot. */
static ssize_t ring_send(const struct iovec *iov, int n)
{
	struct tpacket2_hdr *t = (void *)(ring + slot % SLOTS * SLOT_SIZE);
	uint8_t *p = (uint8_t *)t + TPACKET2_HDRLEN - sizeof(struct sockaddr_ll);
	struct pollfd full = { .fd = out_fd, .events = POLLOUT };
	int i;

	while (__atomic_load_n(&t->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE)
		if (!poll(&full, 1, 60000)) {
			errno = ETIMEDOUT;
			die("ring");
		}
	t->tp_len = 0;
	for (i = 0; i < n; i++) {
		memcpy(p + t->tp_len, iov[i].iov_base, iov[i].iov_len);
		t->tp_len += iov[i].iov_len;
	}
	__atomic_store_n(&t->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
	i = send(out_fd, NULL, 0, MSG_DONTWAIT);
	if (i >= 0)
		slot++;
	else	/* the kernel stays at this slot, and would send the frame again */
		__atomic_store_n(&t->tp_status, TP_STATUS_AVAILABLE, __ATOMIC_RELEASE);
	return i;
}

static void send_frame(void)
{
	size_t left = f.n, skip = 0, part;
	struct ether_header eth = f.eth;
	uint16_t types[TAGS * 2 + 1];
	struct iovec iov[IOVS] = {
		{ &f.vnet, sizeof(f.vnet) }, { &eth, 12 }, { types, 4 * f.ntags + 2 },
	};
	uint8_t linear[sizeof(eth) + sizeof(f.tags) + ESP_HLEN_MAX];
	int n = 3;

	memcpy(types, f.tags, 4 * f.ntags);
	types[2 * f.ntags] = eth.ether_type;
	if (fragments) {
		/* the first piece will be the linear part */
		part = rnd(ESP_HLEN_MAX);
		skip = part < left ? part : left;
		memcpy(linear, &eth, 12);
		memcpy(linear + 12, types, iov[2].iov_len);
		memcpy(linear + 12 + iov[2].iov_len, f.data, skip);
		iov[1] = (struct iovec){ linear, 12 + iov[2].iov_len + skip };
		left -= skip;
		n = 2;
	}
	while (left && n < IOVS) {
		part = left;
		if (fragments)	/* a page at most, each */
			part = left < 4096 ? left : 4096;
		if (fragments && n < IOVS - 1)
			part = 1 + rnd(part);
		iov[n++] = (struct iovec){ f.data + skip, part };
		skip += part;
		left -= part;
	}
	if ((ring ? ring_send(iov, n) : writev(out_fd, iov, n)) >= 0)
		sent++;
	else if (errno == EINVAL || errno == EMSGSIZE || errno == ENOBUFS || errno == ENOMEM ||
		 errno == EBUSY)
		refused++;
	else
		die("send");
}

/*
 * Send a row of frames with consecutive numbers, which GRO coalesces. GRO does not coalesce a frame
 * that a packet socket or a tap device owns, but such frames meet the GSO packets of the transfer;
 * the copies that tc's mirred makes have no owner.
 */
static unsigned int send_run(const struct template *t)
{
	unsigned int i, n = 2 + rnd(20), size = 64 + rnd(MSS - 63), odd = rnd(2 * n);
	uint32_t seq = ntohl(t->h.pkt_seq), cookie;

	memset(&f, 0, offsetof(struct frame, data));
	f.eth = t->eth;
	memcpy(f.data, t->data, t->n);
	f.h.ver_hlen = ESP_VERSION << 4 | ESP_HLEN / 4;
	f.h.flags = ESP_ACK;
	f.h.len = 0;
	f.n = ESP_HLEN;
	fix_checksum(&f.h);
	forget(t);
	cookie = f.h.cookie;
	for (i = 0; i < n; i++) {
		f.h.flags = ESP_ACK | (i == n - 1 && one_in(2) ? ESP_TXF : 0);
		f.h.cookie = cookie;
		f.h.pkt_seq = htonl(seq + i);
		f.n = ESP_HLEN + (i == n - 1 || i == odd ? 1 + rnd(size) : size);
		f.h.len = htons(f.n - ESP_HLEN);
		noise(f.data + ESP_HLEN, 16);
		fix_checksum(&f.h);
		send_frame();
	}
	return n;
}

/*
 * Devices.
 */

static int packet_socket(const char *dev, int protocol)
{
	struct sockaddr_ll ll = {
		.sll_family	= AF_PACKET,
		.sll_protocol	= htons(protocol),
		.sll_ifindex	= if_nametoindex(dev),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0 || !ll.sll_ifindex || bind(fd, (struct sockaddr *)&ll, sizeof(ll)))
		die(dev);
	return fd;
}

/* Open the socket that receives templates; it ignores frames that this program has sent. */
static void open_capture(const char *dev)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_MARK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, ~0u),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
	int room = 30000;	/* a short queue, so that the next templates are new frames */

	capture_fd = packet_socket(dev, ETH_P_ALL);
	if (setsockopt(capture_fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) ||
	    setsockopt(capture_fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		die(dev);
}

static void open_out(const char *dev)
{
	int on = 1, mark = MARK;

	out_fd = packet_socket(dev, 0);
	if (setsockopt(out_fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(out_fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)))
		die(dev);
}

static void open_ring(void)
{
	struct tpacket_req req = {
		.tp_block_size	= SLOT_SIZE,
		.tp_block_nr	= SLOTS,
		.tp_frame_size	= SLOT_SIZE,
		.tp_frame_nr	= SLOTS,
	};
	int version = TPACKET_V2;

	if (setsockopt(out_fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(out_fd, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req)))
		die("ring");
	ring = mmap(NULL, SLOTS * SLOT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, out_fd, 0);
	if (ring == MAP_FAILED)
		die("ring");
}

static void open_tap(const char *tap, int flags)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | flags };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", tap);
	out_fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (out_fd < 0 || ioctl(out_fd, TUNSETIFF, &ifr))
		die(tap);
}

static _Noreturn void usage(void)
{
	fputs("usage: inject [-k] [-t TAP [-n | -f]] [-o OUT] [-r] DEV SEED COUNT\n", stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *tap = NULL, *out = NULL;
	bool from_ring = false;
	int c, flags = 0;
	unsigned long i, count, seed;

	while ((c = getopt(argc, argv, "knfrt:o:")) != -1) {
		switch (c) {
		case 'k':
			knows = true;
			break;
		case 'n':
			flags = IFF_NAPI;
			break;
		case 'f':
			flags = IFF_NAPI | IFF_NAPI_FRAGS;
			fragments = true;
			break;
		case 'r':
			from_ring = true;
			break;
		case 't':
			tap = optarg;
			break;
		case 'o':
			out = optarg;
			break;
		default:
			usage();
		}
	}
	if (optind + 3 != argc)
		usage();
	seed = strtoul(argv[optind + 1], NULL, 0);
	count = strtoul(argv[optind + 2], NULL, 0);
	open_capture(argv[optind]);
	by_tap = tap;
	if (tap)
		open_tap(tap, flags);
	else
		open_out(out ?: argv[optind]);
	if (from_ring)
		open_ring();
	while (!nkept) {
		struct pollfd p = { .fd = capture_fd, .events = POLLIN };

		if (!poll(&p, 1, 60000)) {
			errno = ETIMEDOUT;
			die("no frame to begin with");
		}
		capture();
	}
	for (i = 0; i < count;) {
		state = (uint64_t)seed << 32 | i;
		for (c = 0; c < KEPT && capture(); c++)
			;
		if (one_in(20)) {
			i += send_run(&kept[rnd(nkept)]);
			continue;
		}
		forge(&kept[rnd(nkept)]);
		send_frame();
		i++;
	}
	printf("inject: seed %lu: %lu frames, %lu more refused, %lu knew a cookie\n", seed, sent,
	       refused, known);
	return 0;
}
