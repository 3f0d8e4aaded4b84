// SPDX-License-Identifier: BSD-3-Clause
/*
 * Datagram sockets: UDP, and EDP, the datagrams of AF_ESP; and names of endpoints as text. stream.c
 * uses the functions for AF_ESP's addresses, too.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/af_esp.h>
#include "../device.h"
#include "internal.h"

#define UDP_MTU		1472	/* largest datagram that Ethernet carries unfragmented */
#define BATCH		32	/* most frames that one system call takes */

_Static_assert(sizeof(struct sockaddr_in) == sizeof(((en_t *)0)->address), "a name's size");
_Static_assert(sizeof(struct sockaddr_esp) == sizeof(((en_t *)0)->address), "a name's size");

/* Parse a port: @text is a number up to its end. */
static int parse_port(const char *text, unsigned int *port)
{
	unsigned long n;
	char *end;

	if (*text < '0' || *text > '9')
		return AM_ERR_BAD_ARG;
	n = strtoul(text, &end, 10);
	if (*end || n > 65535)
		return AM_ERR_BAD_ARG;
	*port = n;
	return AM_OK;
}

/* "IP[:PORT]" */
int parse_udp(const char *text, struct sockaddr_in *a)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	unsigned int port = 0;
	char ip[INET_ADDRSTRLEN];

	if (n >= sizeof(ip) || (colon && parse_port(colon + 1, &port)))
		return AM_ERR_BAD_ARG;
	memcpy(ip, text, n);
	ip[n] = 0;
	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_port = htons(port);
	return inet_pton(AF_INET, ip, &a->sin_addr) == 1 ? AM_OK : AM_ERR_BAD_ARG;
}

/* "[MAC]%DEV[:PORT]" */
int parse_esp(const char *text, struct sockaddr_esp *a)
{
	const char *percent = strchr(text, '%'), *colon;
	unsigned int port = 0, mac[6], i;
	char dev[ALTIFNAMSIZ];
	int end = 0;
	size_t n;

	memset(a, 0, sizeof(*a));
	a->sesp_family = AF_ESP;
	if (!percent)
		return AM_ERR_BAD_ARG;
	if (percent != text) {
		if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &mac[0], &mac[1], &mac[2], &mac[3],
			   &mac[4], &mac[5], &end) != 6 || text + end != percent)
			return AM_ERR_BAD_ARG;
		for (i = 0; i < 6; i++)
			a->sesp_addr[i] = mac[i];
		a->sesp_halen = 6;
	}
	colon = strchr(percent, ':');
	n = colon ? (size_t)(colon - percent - 1) : strlen(percent + 1);
	if (!n || n >= sizeof(dev) || (colon && parse_port(colon + 1, &port)))
		return AM_ERR_BAD_ARG;
	memcpy(dev, percent + 1, n);
	dev[n] = 0;
	a->sesp_ifindex = device_index(dev);
	a->sesp_port = htons(port);
	return a->sesp_ifindex ? AM_OK : AM_ERR_SYSTEM;
}

int AM_NameFromString(const char *text, en_t *name)
{
	struct sockaddr_esp edp;
	struct sockaddr_in udp;
	int error;

	memset(name, 0, sizeof(*name));
	if (!strncmp(text, "udp:", 4) || !strncmp(text, "verbs:", 6)) {
		error = parse_udp(strchr(text, ':') + 1, &udp);
		if (error || !udp.sin_port)
			return error ? error : AM_ERR_BAD_ARG;
		name->kind = text[0] == 'u' ? AM_KIND_UDP : AM_KIND_VERBS;
		memcpy(name->address, &udp, sizeof(udp));
		return AM_OK;
	}
	if (!strncmp(text, "edp:", 4) || !strncmp(text, "esp:", 4)) {
		error = parse_esp(text + 4, &edp);
		if (error || !edp.sesp_port || !edp.sesp_halen)
			return error ? error : AM_ERR_BAD_ARG;
		name->kind = text[1] == 'd' ? AM_KIND_EDP : AM_KIND_ESP;
		memcpy(name->address, &edp, sizeof(edp));
		return AM_OK;
	}
	return AM_ERR_BAD_ARG;
}

int AM_NameToString(const en_t *name, char *text, size_t size)
{
	char ip[INET_ADDRSTRLEN], dev[IFNAMSIZ];
	struct sockaddr_esp edp;
	struct sockaddr_in udp;
	unsigned int node;
	const __u8 *m;
	int n;

	switch (name->kind) {
	case AM_KIND_MEM:
		memcpy(&node, name->address, sizeof(node));
		n = snprintf(text, size, "mem:%u", node);
		break;
	case AM_KIND_UDP:
	case AM_KIND_VERBS:
		memcpy(&udp, name->address, sizeof(udp));
		inet_ntop(AF_INET, &udp.sin_addr, ip, sizeof(ip));
		n = snprintf(text, size, "%s:%s:%u", name->kind == AM_KIND_UDP ? "udp" : "verbs",
			     ip, ntohs(udp.sin_port));
		break;
	case AM_KIND_EDP:
	case AM_KIND_ESP:
		memcpy(&edp, name->address, sizeof(edp));
		m = edp.sesp_addr;
		if (!if_indextoname(edp.sesp_ifindex, dev))
			return AM_ERR_SYSTEM;
		n = snprintf(text, size, "%s:%02x:%02x:%02x:%02x:%02x:%02x%%%s:%u",
			     name->kind == AM_KIND_EDP ? "edp" : "esp", m[0], m[1], m[2], m[3],
			     m[4], m[5], dev, ntohs(edp.sesp_port));
		break;
	default:
		return AM_ERR_BAD_ARG;
	}
	return n >= 0 && (size_t)n < size ? AM_OK : AM_ERR_TOO_BIG;
}

void name_split(const en_t *name, uint8_t *host, uint32_t *port)
{
	struct sockaddr_esp edp;
	struct sockaddr_in udp;
	unsigned int node;

	memset(host, 0, NAME_HOST);
	switch (name->kind) {
	case AM_KIND_UDP:
	case AM_KIND_VERBS:
		memcpy(&udp, name->address, sizeof(udp));
		memcpy(host, &udp.sin_addr, sizeof(udp.sin_addr));
		*port = ntohs(udp.sin_port);
		break;
	case AM_KIND_EDP:
	case AM_KIND_ESP:
		memcpy(&edp, name->address, sizeof(edp));
		memcpy(host, edp.sesp_addr, 6);
		*port = ntohs(edp.sesp_port);
		break;
	default:
		memcpy(&node, name->address, sizeof(node));
		*port = node;
	}
}

en_t name_join(const en_t *like, const uint8_t *host, uint32_t port)
{
	en_t name = *like;
	struct sockaddr_esp edp;
	struct sockaddr_in udp;
	unsigned int node = port;

	switch (name.kind) {
	case AM_KIND_UDP:
	case AM_KIND_VERBS:
		memcpy(&udp, name.address, sizeof(udp));
		memcpy(&udp.sin_addr, host, sizeof(udp.sin_addr));
		udp.sin_port = htons(port);
		memcpy(name.address, &udp, sizeof(udp));
		break;
	case AM_KIND_EDP:
	case AM_KIND_ESP:
		memcpy(&edp, name.address, sizeof(edp));
		memcpy(edp.sesp_addr, host, 6);
		edp.sesp_port = htons(port);
		memcpy(name.address, &edp, sizeof(edp));
		break;
	default:
		memcpy(name.address, &node, sizeof(node));
	}
	return name;
}

/* Open a socket bound to @a, which becomes the address that it has. */
static int open_socket(struct transport *t, int family, void *a)
{
	socklen_t len = sizeof(t->name.address);

	t->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (t->fd < 0 || bind(t->fd, a, len) || getsockname(t->fd, a, &len))
		return AM_ERR_SYSTEM;
	return AM_OK;
}

static void close_socket(struct transport *t)
{
	if (t->fd >= 0)
		close(t->fd);
}

/*
 * Make room for all that a peer may send at once. The kernel doubles the number, for its own needs
 * of each frame, and keeps it below net.core.rmem_max. Frames that don't fit are lost and
 * retransmitted.
 */
static int make_room(int fd, const struct am_options *o)
{
	int want = o->credits * AM_MAX_LONG, have;
	socklen_t len = sizeof(have);

	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &have, &len) ||
	    (have / 2 < want && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want))))
		return AM_ERR_SYSTEM;
	return AM_OK;
}

static int udp_open(struct transport *t, const struct am_options *o)
{
	struct sockaddr_in a;
	int error = parse_udp(o->address + 4, &a);

	if (!error)
		error = open_socket(t, AF_INET, &a);
	if (!error)
		error = make_room(t->fd, o);
	if (error)
		return error;
	t->mtu = UDP_MTU;
	t->name.kind = AM_KIND_UDP;
	memcpy(t->name.address, &a, sizeof(a));
	return AM_OK;
}

/* Set the MTU and the name of @t, whose socket @fd of AF_ESP is bound to @a. */
int esp_describe(struct transport *t, int fd, enum am_kind kind, struct sockaddr_esp *a)
{
	socklen_t len = sizeof(int);
	struct ifreq ifr;
	int mtu;

	memset(&ifr, 0, sizeof(ifr));
	if (getsockopt(fd, SOL_ESP, ESP_MTU, &mtu, &len) ||
	    !if_indextoname(a->sesp_ifindex, ifr.ifr_name) || ioctl(fd, SIOCGIFHWADDR, &ifr))
		return AM_ERR_SYSTEM;
	t->mtu = mtu < 65535 ? mtu : 65535;
	t->ifindex = a->sesp_ifindex;
	a->sesp_halen = 6;
	memcpy(a->sesp_addr, ifr.ifr_hwaddr.sa_data, 6);
	t->name.kind = kind;
	memcpy(t->name.address, a, sizeof(*a));
	return AM_OK;
}

static int edp_open(struct transport *t, const struct am_options *o)
{
	struct sockaddr_esp a;
	int error = parse_esp(o->address + 4, &a);

	if (!error)
		error = open_socket(t, AF_ESP, &a);
	return error ? error : esp_describe(t, t->fd, AM_KIND_EDP, &a);
}

/*
 * Set ->error if the device has left. The socket reports that only once, perhaps to the call that
 * has just failed.
 */
void device_look(struct transport *t, int fd)
{
	struct ifreq ifr = { .ifr_ifindex = t->ifindex };

	if (!t->error && t->ifindex && ioctl(fd, SIOCGIFNAME, &ifr) && errno == ENODEV)
		t->error = ENETDOWN;
}

static int send_socket(struct transport *t, const en_t *to, const void *data, size_t len)
{
	struct sockaddr_storage a;

	memcpy(&a, to->address, sizeof(to->address));
	if (sendto(t->fd, data, len, 0, (struct sockaddr *)&a, sizeof(to->address)) >= 0)
		return 0;
	if (errno == EAGAIN || errno == ENOBUFS)
		return 1;
	device_look(t, t->fd);
	return -1;
}

/* Receive a datagram. Returns 1; 0: there is none; -1: an error. */
static int receive_one(struct transport *t, struct frame *f, size_t room)
{
	socklen_t len = sizeof(f->from.address);
	ssize_t n = recvfrom(t->fd, f->data, room, MSG_DONTWAIT | MSG_TRUNC,
			     (struct sockaddr *)f->from.address, &len);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	f->len = n;
	return 1;
}

static int receive_some(struct transport *t, struct frame *frames, int n, size_t room)
{
	struct mmsghdr m[BATCH];
	struct iovec iov[BATCH];
	int i;

	memset(m, 0, n * sizeof(*m));
	for (i = 0; i < n; i++) {
		iov[i].iov_base = frames[i].data;
		iov[i].iov_len = room;
		m[i].msg_hdr.msg_name = frames[i].from.address;
		m[i].msg_hdr.msg_namelen = sizeof(frames[i].from.address);
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(t->fd, m, n, MSG_DONTWAIT | MSG_TRUNC, NULL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	for (i = 0; i < n; i++)
		frames[i].len = m[i].msg_len;
	return n;
}

/*
 * After a datagram there is seldom another, and asking costs nearly as much as receiving. So ask
 * for one at first; then for one, two, four ... as long as all that were asked for are here.
 */
static int receive_socket(struct transport *t, struct frame *frames, int n, size_t room)
{
	int i, got, most = n < BATCH ? n : BATCH;

	n = t->full ? 1 << (t->full - 1) : 1;
	if (n > most)
		n = most;
	for (i = 0; i < n; i++)
		frames[i].from = (en_t) { .kind = t->name.kind };
	got = n == 1 ? receive_one(t, frames, room) : receive_some(t, frames, n, room);
	if (got < n)
		t->full = 0;
	else if (t->full < FULL)
		t->full++;
	return got;
}

uint64_t monotonic(struct transport *t)
{
	struct timespec now;

	(void)t;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

/* Check a name's kind, where a name is the same on all hosts. */
int same_kind(struct transport *t, en_t *name)
{
	return name->kind == t->name.kind ? AM_OK : AM_ERR_BAD_ARG;
}

/* Set the device of a name: another host's name of itself has that host's own. */
int name_normalize(struct transport *t, en_t *name, enum am_kind kind)
{
	struct sockaddr_esp a;

	if (name->kind != kind)
		return AM_ERR_BAD_ARG;
	memcpy(&a, name->address, sizeof(a));
	a.sesp_ifindex = t->ifindex;
	a.sesp_halen = 6;
	memcpy(name->address, &a, sizeof(a));
	return AM_OK;
}

static int edp_normalize(struct transport *t, en_t *name)
{
	return name_normalize(t, name, AM_KIND_EDP);
}

const struct transport_ops udp_ops = {
	.open = udp_open,
	.close = close_socket,
	.send = send_socket,
	.receive = receive_socket,
	.now = monotonic,
	.normalize = same_kind,
};

const struct transport_ops edp_ops = {
	.open = edp_open,
	.close = close_socket,
	.send = send_socket,
	.receive = receive_socket,
	.now = monotonic,
	.normalize = edp_normalize,
};
