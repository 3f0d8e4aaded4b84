// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses MAC%DEV:PORT, HOST:PORT if TCP is asked for, and their sockets.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../device.h"
#include "esp.h"

int exit_code(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return EXIT_REFUSED;
	case ETIMEDOUT:
		return EXIT_TIMEOUT;
	case ENODEV:
	case ENXIO:
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case EADDRNOTAVAIL:
		return EXIT_UNREACHABLE;
	case ECONNRESET:
	case EPIPE:
		return EXIT_RESET;
	default:
		return EXIT_IO;
	}
}

/* Return the user's remedy for an error of an ESP socket. */
static const char *hint(int err)
{
	switch (err) {
	case EAFNOSUPPORT:
		return "; load the kernel module: modprobe esp";
	case EACCES:
		return "; a port below 1024 needs CAP_NET_BIND_SERVICE";
	case EADDRINUSE:
		return "; 'esp show -a' tells by which socket";
	case EADDRNOTAVAIL:
		return "; only an address of the device itself can be bound";
	case EHOSTUNREACH:
		return "; name a device that is up: MAC%DEV:PORT";
	case ENETDOWN:
		return "; set the device up, and 'esp dev enable' it";
	case ECONNREFUSED:
		return "; nothing listens on that port";
	default:
		return "";
	}
}

/* End the program because of errno. */
void address_fail(const struct address *addr, const char *what)
{
	bool esp = addr->sa.sa_family == AF_ESP;
	char buf[ADDRESS_STRLEN];
	int err = errno;

	error(exit_code(err), 0, "%s %s: %s%s", what,
	      address_format(&addr->sa, buf), strerror(err),
	      esp ? hint(err) : "");
}

static bool parse_mac(const char *text, struct ether_addr *mac)
{
	int i;

	for (i = 0; text[i]; i++) {
		if (i % 3 == 2 ? text[i] != ':' :
				 !isxdigit((unsigned char)text[i]))
			return false;
	}
	return i == 17 && ether_aton_r(text, mac);
}

/* Cut ":PORT" off the end of @text. If its last colon belongs to a MAC address, it has no port. */
static unsigned int split_port(char *text, bool passive)
{
	char *colon = strrchr(text, ':'), *end;
	struct ether_addr mac;
	unsigned long port;

	if (!colon || strchr(colon, '%') || parse_mac(text, &mac))
		error(EXIT_USAGE, 0, "%s: no port; write %s", text,
		      passive ? "[%DEV]:PORT" : "MAC[%DEV]:PORT");
	*colon++ = '\0';
	port = strtoul(colon, &end, 10);
	if (!isdigit((unsigned char)*colon) || *end || port > 65535 ||
	    (!port && !passive))
		error(EXIT_USAGE, 0, "'%s' is not a port (%d to 65535)",
		      colon, passive ? 0 : 1);
	return port;
}

void address_parse(struct address *addr, const char *text, int type,
		   bool passive)
{
	char *host = strdupa(text), *dev;
	struct ether_addr mac;

	memset(addr, 0, sizeof(*addr));
	addr->type = type;
	addr->len = sizeof(addr->esp);
	addr->esp.sesp_family = AF_ESP;
	addr->esp.sesp_halen = ETH_ALEN;
	addr->esp.sesp_port = htons(split_port(host, passive));

	dev = strchr(host, '%');
	if (dev) {
		*dev++ = '\0';
		addr->esp.sesp_ifindex = device_index(dev);
		if (!addr->esp.sesp_ifindex)
			error(EXIT_UNREACHABLE, errno == ENODEV ? 0 : errno,
			      "there is no device '%s', see 'ip link'", dev);
	}

	if (passive && (!*host || !strcmp(host, "*")))
		return;
	if (!*host)
		error(EXIT_USAGE, 0, "%s: no MAC address; write MAC[%%DEV]:PORT",
		      text);
	if (strchr(host, ':')) {
		if (!parse_mac(host, &mac))
			error(EXIT_USAGE, 0,
			      "'%s' is not a MAC address; write it as 02:00:00:00:00:01, and a port behind it",
			      host);
	} else if (ether_hostton(host, &mac)) {
		error(EXIT_USAGE, 0, "'%s' is not a MAC address, nor is the name in /etc/ethers",
		      host);
	}
	if (type != SOCK_DGRAM && mac.ether_addr_octet[0] & 1)
		error(EXIT_USAGE, 0, "%s is a group address; only datagrams can be sent to one",
		      host);
	memcpy(addr->esp.sesp_addr, &mac, ETH_ALEN);
}

/* Parse a peer, or a part of its address: [MAC][%DEV][:PORT]. */
void address_parse_part(struct address *addr, const char *text)
{
	const char *dev = strchr(text, '%');
	struct ether_addr mac;
	bool port = dev ? !!strchr(dev, ':') : strchr(text, ':') && !parse_mac(text, &mac);
	char *whole;

	if (asprintf(&whole, "%s%s", text, port ? "" : ":0") < 0)
		error(EXIT_IO, errno, "memory");
	address_parse(addr, whole, SOCK_DGRAM, true);
	free(whole);
	if (!addr->esp.sesp_port && !addr->esp.sesp_ifindex && !addr->esp.sesp_addr[0] &&
	    !memcmp(addr->esp.sesp_addr, addr->esp.sesp_addr + 1, ETH_ALEN - 1))
		error(EXIT_USAGE, 0, "'%s' names nothing of a peer; write [MAC][%%DEV][:PORT]",
		      text);
}

/* Parse a host, which has no port: MAC%DEV. */
void address_parse_host(struct address *addr, const char *text)
{
	const char *dev = strchr(text, '%');
	char *whole;

	if (!dev)
		error(EXIT_USAGE, 0, "%s: by which device? write MAC%%DEV", text);
	if (strchr(dev, ':'))
		error(EXIT_USAGE, 0, "%s: a host has no port; write MAC%%DEV", text);
	if (asprintf(&whole, "%s:1", text) < 0)
		error(EXIT_IO, errno, "memory");
	address_parse(addr, whole, SOCK_STREAM, false);
	free(whole);
}

/* Parse HOST:PORT, [IPV6]:PORT or, to listen, :PORT. */
void address_parse_tcp(struct address *addr, const char *text, bool passive)
{
	struct addrinfo hints = {
		.ai_family = *text == '[' ? AF_INET6 : AF_INET,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = passive ? AI_PASSIVE : 0,
	};
	char *name = strdupa(text), port[8];
	struct addrinfo *info;
	int err;

	snprintf(port, sizeof(port), "%u", split_port(name, passive));
	if (*name == '[' && name[strlen(name) - 1] == ']') {
		name[strlen(name) - 1] = '\0';
		name++;
	}
	if (!*name && !passive)
		error(EXIT_USAGE, 0, "%s: no host; write HOST:PORT", text);
	if (!strcmp(name, "*"))
		*name = '\0';
	err = getaddrinfo(*name ? name : NULL, port, &hints, &info);
	if (err)
		error(EXIT_UNREACHABLE, 0, "%s: %s", name, gai_strerror(err));
	memset(addr, 0, sizeof(*addr));
	addr->type = SOCK_STREAM;
	addr->len = info->ai_addrlen;
	memcpy(&addr->storage, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
}

static int address_socket(const struct address *addr)
{
	int fd = socket(addr->sa.sa_family, addr->type | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0)
		address_fail(addr, "no socket for");
	if (addr->sa.sa_family != AF_ESP)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* Open a connected, blocking socket. @sport 0: any; @timeout_ms -1: the kernel's. */
int address_connect(const struct address *addr, unsigned int sport,
		    int timeout_ms)
{
	struct sockaddr_esp local = {
		.sesp_family = AF_ESP,
		.sesp_port = htons(sport),
		.sesp_halen = ETH_ALEN,
	};
	int fd = address_socket(addr), on = 1, err;
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(err);

	if (sport && bind(fd, (struct sockaddr *)&local, sizeof(local)))
		error(exit_code(errno), 0, "source port %u: %s%s", sport,
		      strerror(errno), hint(errno));
	if (addr->type == SOCK_DGRAM)
		setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));

	set_nonblock(fd, true);
	if (connect(fd, &addr->sa, addr->len)) {
		if (errno != EINPROGRESS)
			address_fail(addr, "cannot connect to");
		if (poll(&pfd, 1, timeout_ms) <= 0 ||
		    getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
			err = ETIMEDOUT;
		errno = err;
		if (err)
			address_fail(addr, "cannot connect to");
	}
	set_nonblock(fd, false);
	return fd;
}

/* Open a bound socket, which listens unless it is one for datagrams. */
int address_listen(const struct address *addr, int backlog)
{
	int fd = address_socket(addr), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &addr->sa, addr->len) ||
	    (addr->type != SOCK_DGRAM && listen(fd, backlog)))
		address_fail(addr, "cannot listen on");
	return fd;
}

/* Write an address into @buf, which holds ADDRESS_STRLEN. Returns @buf. */
const char *address_format(const struct sockaddr *sa, char *buf)
{
	const struct sockaddr_esp *esp = (const void *)sa;
	char host[INET6_ADDRSTRLEN] = "*", port[8] = "*", dev[24] = "";
	static const unsigned char any[ETH_ALEN];
	const unsigned char *a = esp->sesp_addr;

	if (sa->sa_family == AF_INET || sa->sa_family == AF_INET6) {
		bool v6 = sa->sa_family == AF_INET6;

		getnameinfo(sa, v6 ? sizeof(struct sockaddr_in6) :
				     sizeof(struct sockaddr_in),
			    host, sizeof(host), port, sizeof(port),
			    NI_NUMERICHOST | NI_NUMERICSERV);
		snprintf(buf, ADDRESS_STRLEN, v6 ? "[%s]:%s" : "%s:%s", host,
			 port);
		return buf;
	}

	if (memcmp(a, any, ETH_ALEN))
		snprintf(host, sizeof(host), "%02x:%02x:%02x:%02x:%02x:%02x",
			 a[0], a[1], a[2], a[3], a[4], a[5]);
	if (esp->sesp_ifindex) {
		dev[0] = '%';
		if (!if_indextoname(esp->sesp_ifindex, dev + 1))
			snprintf(dev, sizeof(dev), "%%if%u", esp->sesp_ifindex);
	}
	if (esp->sesp_port)
		snprintf(port, sizeof(port), "%u", ntohs(esp->sesp_port));
	snprintf(buf, ADDRESS_STRLEN, "%s%s:%s", host, dev, port);
	return buf;
}

/* Write a socket's own address, or its peer's. */
const char *address_of(int fd, bool peer, char *buf)
{
	struct address addr = { .len = sizeof(addr.storage) };

	if (peer ? getpeername(fd, &addr.sa, &addr.len) :
		   getsockname(fd, &addr.sa, &addr.len))
		memset(&addr, 0, sizeof(addr));
	return address_format(&addr.sa, buf);
}
