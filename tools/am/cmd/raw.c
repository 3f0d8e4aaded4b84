// SPDX-License-Identifier: BSD-3-Clause
/*
 * Datagrams alone, as large as a message's frame: an echo with as many outstanding as there are
 * credits, and a count of those that arrive one way. The difference of the round trips is the work
 * of Active Messages.
 */
#include <endian.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/af_esp.h>
#include "cmd.h"

#define TRIES	50		/* tries of a question that isn't answered */

enum raw_kind { RAW_ECHO = 1, RAW_COUNT, RAW_REPORT, RAW_ANSWER };

/**
 * struct raw - the beginning of each datagram, there in network order
 * @kind:	enum raw_kind
 * @answer:	bytes of data that the reply to RAW_ECHO shall have
 * @serial:	of the burst (RAW_COUNT, RAW_REPORT), or of the layer (RAW_ECHO); an answer has its
 *		question's
 * @count:	datagrams of that burst that came
 * @ns:		between the first and the last of them
 */
struct raw {
	uint32_t	kind, answer, serial, count;
	uint64_t	ns;
};

_Static_assert(sizeof(struct raw) <= FRAME_OVERHEAD, "it fits into an empty message");

static uint32_t bursts;

static void swap(struct raw *r)
{
	r->kind = htobe32(r->kind);
	r->answer = htobe32(r->answer);
	r->serial = htobe32(r->serial);
	r->count = htobe32(r->count);
	r->ns = htobe64(r->ns);
}

bool raw_can(const char *address)
{
	return !strncmp(address, "udp:", 4) || !strncmp(address, "edp:", 4);
}

int raw_socket(const en_t *name)
{
	int family = name->kind == AM_KIND_UDP ? AF_INET : AF_ESP;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)name->address, sizeof(name->address))) {
		int e = errno;

		close(fd);
		errno = e;
		return -1;
	}
	return fd;
}

/* Receive a datagram if one is here; else return 0. */
static ssize_t take(int fd, void *buf, size_t n, void *from, socklen_t *len)
{
	ssize_t got = recvfrom(fd, buf, n, MSG_DONTWAIT, from, len);

	return got < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED) ? 0 : got;
}

/*
 * The server
 */

struct count {
	uint32_t	serial, count;
	double		first, last;
};

/* Answer a datagram of @n bytes, in @buf. Returns the answer's length; 0: none. */
static size_t answer_to(uint8_t *buf, size_t n, struct count *c)
{
	struct raw r;
	size_t len;

	if (n < sizeof(r))
		return 0;
	memcpy(&r, buf, sizeof(r));
	swap(&r);
	switch (r.kind) {
	case RAW_ECHO:
		len = FRAME_OVERHEAD + (r.answer <= RAW_MAX ? r.answer : RAW_MAX);
		break;
	case RAW_COUNT:
		if (c->serial != r.serial)
			*c = (struct count) { .serial = r.serial, .first = clock_ns() };
		c->count++;
		c->last = clock_ns();
		return 0;
	case RAW_REPORT:
		if (c->serial != r.serial)
			return 0;
		len = FRAME_OVERHEAD;
		r.count = c->count;
		r.ns = c->last - c->first;
		break;
	default:
		return 0;
	}
	r.kind = RAW_ANSWER;
	swap(&r);
	memcpy(buf, &r, sizeof(r));
	return len;
}

void raw_serve(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	static uint8_t buf[FRAME_OVERHEAD + RAW_MAX];
	struct sockaddr_storage from;
	struct count c = { 0 };
	socklen_t len;
	ssize_t n;

	while (true) {
		len = sizeof(from);
		n = take(fd, buf, sizeof(buf), &from, &len);
		if (n < 0)
			return;
		if (!n) {
			poll(&p, 1, -1);
			continue;
		}
		n = answer_to(buf, n, &c);
		/* If it can't be sent, it is lost like any other. */
		if (n)
			sendto(fd, buf, n, 0, (struct sockaddr *)&from, len);
	}
}

/*
 * The client
 */

static void send_one(struct layer *l, enum raw_kind kind, size_t size, size_t answer)
{
	static uint8_t buf[FRAME_OVERHEAD + RAW_MAX];
	struct raw r = {
		.kind = kind, .answer = answer, .serial = kind == RAW_ECHO ? l->serial : bursts,
	};

	swap(&r);
	memcpy(buf, &r, sizeof(r));
	if (sendto(l->fd, buf, FRAME_OVERHEAD + size, 0, (struct sockaddr *)l->server.address,
		   sizeof(l->server.address)) < 0 && errno != ENOBUFS && errno != ECONNREFUSED)
		error(EXIT_FAILED, errno, "%s raw", l->address);
}

/* Receive an answer. False: there was none. */
static bool receive_one(struct layer *l, struct raw *r)
{
	static uint8_t buf[FRAME_OVERHEAD + RAW_MAX];
	ssize_t n = take(l->fd, buf, sizeof(buf), NULL, NULL);

	if (n < 0)
		error(EXIT_FAILED, errno, "%s raw", l->address);
	memset(r, 0, sizeof(*r));
	if (n >= (ssize_t)sizeof(*r))
		memcpy(r, buf, sizeof(*r));
	swap(r);
	return n;
}

static bool sleep_until_here(struct layer *l, int ms)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

static void raw_poll(struct layer *l)
{
	struct raw r;

	while (receive_one(l, &r))
		if (r.kind == RAW_ANSWER && r.serial == l->serial && l->outstanding)
			l->outstanding--;
}

static void raw_wait(struct layer *l)
{
	unsigned int before = l->outstanding;

	raw_poll(l);
	if (l->outstanding != before)
		return;
	/* Nothing retransmits a datagram. A new serial keeps late answers from counting. */
	if (!sleep_until_here(l, l->timeout)) {
		l->lost += l->outstanding;
		l->outstanding = 0;
		l->serial++;
		return;
	}
	raw_poll(l);
}

static void raw_request(struct layer *l, size_t size, size_t answer)
{
	while (l->outstanding >= l->credits)
		raw_wait(l);
	send_one(l, RAW_ECHO, size, answer);
	l->outstanding++;
}

static void raw_close(struct layer *l)
{
	close(l->fd);
}

static const struct layer_ops raw_ops = {
	.request = raw_request,
	.poll = raw_poll,
	.wait = raw_wait,
	.close = raw_close,
};

void raw_open(struct layer *l)
{
	en_t own = l->server;
	struct raw r;
	int tries;

	l->ops = &raw_ops;
	if (own.kind == AM_KIND_UDP) {
		memset(own.address, 0, sizeof(own.address));
		((struct sockaddr *)own.address)->sa_family = AF_INET;
	} else {
		struct sockaddr_esp a;

		memcpy(&a, own.address, sizeof(a));
		memset(a.sesp_addr, 0, sizeof(a.sesp_addr));
		a.sesp_halen = 0;
		a.sesp_port = 0;
		memcpy(own.address, &a, sizeof(a));
	}
	l->fd = raw_socket(&own);
	if (l->fd < 0)
		error(EXIT_FAILED, errno, "%s raw", l->address);
	for (tries = 0; tries < TRIES; tries++) {
		l->serial++;
		send_one(l, RAW_ECHO, 0, 0);
		if (sleep_until_here(l, l->timeout / TRIES + 1) && receive_one(l, &r) &&
		    r.kind == RAW_ANSWER && r.serial == l->serial)
			return;
	}
	error(EXIT_FAILED, 0, "%s raw: no answer; is 'am logp --serve' running there?", l->address);
}

/* A sender that is faster than the receiver loses the datagrams that this has no room for. */
double raw_rate(struct layer *l, size_t size, unsigned int n)
{
	unsigned int i;
	struct raw r;
	int tries;

	raw_poll(l);
	bursts = bursts ? bursts + 1 : (uint32_t)time(NULL) ^ (uint32_t)getpid() << 16;
	for (i = 0; i < n; i++)
		send_one(l, RAW_COUNT, size, 0);
	for (tries = 0; tries < TRIES; tries++) {
		send_one(l, RAW_REPORT, 0, 0);
		if (!sleep_until_here(l, l->timeout / TRIES + 1))
			continue;
		while (receive_one(l, &r))
			if (r.kind == RAW_ANSWER && r.serial == bursts && r.count > 1 && r.ns)
				return (r.count - 1) * 1e9 / r.ns;
	}
	return NAN;
}
