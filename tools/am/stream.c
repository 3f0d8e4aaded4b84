// SPDX-License-Identifier: BSD-3-Clause
/*
 * Records of AF_ESP. Each side makes a connection for the frames that it sends; each frame is a
 * record. The first record of a connection is the port at which its maker listens; with the maker's
 * address this is the maker's name. Any process of that host can claim the port, so frames are sent
 * only by connections that this endpoint has made. A connection that ends loses the frames on their
 * way, as datagrams may be lost; the protocols retransmit them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/af_esp.h>
#include "internal.h"

#define BACKLOG		128
#define WAITING		16	/* most frames that wait while a connection is made */
#define EVENTS		16	/* most events of one look */
#define UNNAMED		64	/* most connections that have no name yet */

struct connection {
	struct connection *next;
	int		fd;
	en_t		name;		/* kind 0: the peer hasn't sent it */
	bool		own;		/* made here; others are only read */
	bool		making;		/* the peer hasn't answered */
	bool		dead;
	bool		full;		/* EPOLLOUT is watched: the queue was full */
	/* Data that wait: frames, and the rest of one. */
	unsigned int	nwaiting;
	size_t		len[WAITING];
	uint8_t		*waiting[WAITING];
	size_t		rest, rest_sent;
	uint8_t		*out;
	/* The beginning of a record whose end isn't here. */
	size_t		have;
	uint8_t		*in;
};

struct streams {
	int		listener;	/* -1: it has failed */
	struct connection *all;		/* the newest first */
};

static struct sockaddr_esp address_of(const en_t *name)
{
	struct sockaddr_esp a;

	memcpy(&a, name->address, sizeof(a));
	return a;
}

static bool watch(struct transport *t, int how, struct connection *c, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	return !epoll_ctl(t->fd, how, fd, &e);
}

/*
 * Unwatch and close. close() alone is not enough: if a forked process has the socket, too, it stays
 * watched.
 */
static void unwatch(struct transport *t, int fd)
{
	epoll_ctl(t->fd, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
}

/*
 * Connections
 */

static struct connection *connection_new(struct transport *t, int fd, uint32_t events)
{
	struct connection *c = calloc(1, sizeof(*c));
	int on = 1;

	if (!c)
		return NULL;
	c->fd = fd;
	/* So that a peer that has vanished is noticed. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	c->out = malloc(t->mtu);
	c->in = malloc(t->mtu);
	if (!c->out || !c->in || !watch(t, EPOLL_CTL_ADD, c, fd, events)) {
		free(c->out);
		free(c->in);
		free(c);
		return NULL;
	}
	c->next = t->streams->all;
	t->streams->all = c;
	return c;
}

static void connection_free(struct transport *t, struct connection *c)
{
	struct connection **link;

	for (link = &t->streams->all; *link != c; link = &(*link)->next)
		;
	*link = c->next;
	while (c->nwaiting)
		free(c->waiting[--c->nwaiting]);
	unwatch(t, c->fd);
	free(c->out);
	free(c->in);
	free(c);
}

static void bury(struct transport *t)
{
	struct connection *c, *next;

	for (c = t->streams->all; c; c = next) {
		next = c->next;
		if (c->dead)
			connection_free(t, c);
	}
}

static struct connection *find(struct transport *t, const en_t *name, bool own)
{
	struct connection *c;

	for (c = t->streams->all; c; c = c->next)
		if (!c->dead && c->own == own && name_equal(&c->name, name))
			return c;
	return NULL;
}

/*
 * Send a frame. Returns 0: sent, or its rest is kept; 1: nothing now; -1: the connection is over.
 */
static int put(struct connection *c, const void *data, size_t len)
{
	ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
		return 1;
	if (n < 0) {
		c->dead = true;
		return -1;
	}
	c->rest = len - n;
	c->rest_sent = 0;
	memcpy(c->out, (const uint8_t *)data + n, c->rest);
	return 0;
}

static int put_rest(struct connection *c)
{
	ssize_t n;

	while (c->rest) {
		n = send(c->fd, c->out + c->rest_sent, c->rest, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
			return 1;
		if (n < 0) {
			c->dead = true;
			return -1;
		}
		c->rest_sent += n;
		c->rest -= n;
	}
	return 0;
}

/* Send the frames that waited for the connection. */
static int put_waiting(struct connection *c)
{
	unsigned int i;
	int r = 0;

	for (i = 0; i < c->nwaiting && !r; i++) {
		r = put_rest(c);
		if (!r)
			r = put(c, c->waiting[i], c->len[i]);
		if (!r)
			free(c->waiting[i]);
	}
	if (r)
		i--;
	c->nwaiting -= i;
	memmove(c->waiting, c->waiting + i, c->nwaiting * sizeof(*c->waiting));
	memmove(c->len, c->len + i, c->nwaiting * sizeof(*c->len));
	return r;
}

static int keep(struct connection *c, const void *data, size_t len)
{
	uint8_t *copy;

	if (c->nwaiting == WAITING)
		return 1;
	copy = malloc(len ? len : 1);
	if (!copy)
		return 1;
	memcpy(copy, data, len);
	c->waiting[c->nwaiting] = copy;
	c->len[c->nwaiting++] = len;
	return 0;
}

/* Send all that waits. Returns 0; 1: some still waits; -1: the connection is over. */
static int flush(struct transport *t, struct connection *c)
{
	int r = put_rest(c);

	if (!r)
		r = put_waiting(c);
	if (!r)
		r = put_rest(c);
	if (r >= 0 && c->full != r) {
		c->full = r;
		watch(t, EPOLL_CTL_MOD, c, c->fd, EPOLLIN | (c->full ? EPOLLOUT : 0));
	}
	return r;
}

/* Make a connection; its first record is this endpoint's port. */
static struct connection *make(struct transport *t, const en_t *to)
{
	struct sockaddr_esp own = address_of(&t->name), a = address_of(to);
	struct connection *c;
	int fd;

	fd = socket(AF_ESP, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) && errno != EINPROGRESS) {
		int e = errno;

		close(fd);
		errno = e;
		return NULL;
	}
	c = connection_new(t, fd, EPOLLIN | EPOLLOUT);
	if (!c) {
		close(fd);
		return NULL;
	}
	c->name = *to;
	c->own = true;
	c->making = true;
	if (keep(c, &own.sesp_port, sizeof(own.sesp_port))) {
		c->dead = true;
		return NULL;
	}
	return c;
}

static int send_stream(struct transport *t, const en_t *to, const void *data, size_t len)
{
	struct connection *c = find(t, to, true);
	int r;

	/* A record can't be empty: an empty frame is lost, which is of no use to a peer. */
	if (!len)
		return 0;
	if (!c)
		c = make(t, to);
	if (!c) {
		device_look(t, t->streams->listener);
		return -1;
	}
	if (c->making)
		return keep(c, data, len);
	r = flush(t, c);
	if (!r)
		r = put(c, data, len);
	if (!r && c->rest && flush(t, c) < 0)
		r = -1;
	if (r < 0)
		device_look(t, t->streams->listener);
	return r;
}

/* Receiving */

/* Give up the oldest connection without a name, if there are @most or more of them. */
static bool give_up_unnamed(struct transport *t, unsigned int most)
{
	struct connection *c, *oldest = NULL;
	unsigned int n = 0;

	for (c = t->streams->all; c; c = c->next) {
		if (c->dead || c->name.kind)
			continue;
		oldest = c;
		n++;
	}
	if (n < most)
		return false;
	oldest->dead = true;
	return true;
}

static void accept_all(struct transport *t)
{
	struct streams *s = t->streams;
	bool full;
	int fd;

	while (true) {
		fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			break;
		give_up_unnamed(t, UNNAMED);
		if (!connection_new(t, fd, EPOLLIN))
			close(fd);
	}
	full = errno != EAGAIN && errno != ECONNABORTED && errno != EINTR;
	if (full)
		give_up_unnamed(t, 1);
	/*
	 * Don't watch the listener while accept() fails: it would wake the caller again and again.
	 */
	if (full != t->unwatched && watch(t, EPOLL_CTL_MOD, NULL, s->listener, full ? 0 : EPOLLIN))
		t->unwatched = full;
}

/* Take the first record of a connection that the peer made. */
static void introduced(struct transport *t, struct connection *c, const uint8_t *data, size_t len)
{
	struct connection *older;
	struct sockaddr_esp a;
	socklen_t size = sizeof(a);
	en_t name = { .kind = AM_KIND_ESP };

	if (len != sizeof(a.sesp_port) || getpeername(c->fd, (struct sockaddr *)&a, &size)) {
		c->dead = true;
		return;
	}
	memcpy(&a.sesp_port, data, sizeof(a.sesp_port));
	a.sesp_ifindex = t->ifindex;
	a.sesp_halen = sizeof(a.sesp_addr);
	a.sesp_zero = 0;
	memcpy(name.address, &a, sizeof(a));
	older = find(t, &name, false);
	if (older)
		older->dead = true;
	c->name = name;
}

/* Receive a record into @f. Returns 1; 0: there is none. */
static int take(struct connection *c, struct frame *f, size_t room)
{
	struct iovec iov = { .iov_base = f->data + c->have, .iov_len = room - c->have };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	memcpy(f->data, c->in, c->have);
	n = recvmsg(c->fd, &m, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		c->dead = true;
		return 0;
	}
	f->len = c->have + n;
	if (m.msg_flags & MSG_TRUNC) {
		f->len = room + 1;
	} else if (!(m.msg_flags & MSG_EOR)) {
		memcpy(c->in, f->data, f->len);
		c->have = f->len;
		/* A record longer than the MTU is not libam's. */
		c->dead |= c->have == room;
		return 0;
	}
	c->have = 0;
	f->from = c->name;
	return 1;
}

/* Receive up to @n records of @c. */
static int take_all(struct transport *t, struct connection *c, struct frame *f, int n, size_t room)
{
	int i = 0;

	while (i < n && !c->dead && take(c, &f[i], room)) {
		if (c->name.kind)
			i++;
		else
			introduced(t, c, f[i].data, f[i].len);
	}
	return i;
}

static void made(struct transport *t, struct connection *c)
{
	socklen_t len = sizeof(int);
	int e = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &len) || e) {
		c->dead = true;
		return;
	}
	c->making = false;
	c->full = true;
	flush(t, c);
}

/* Close the listener, which has failed. Returns the reason, or 0 if it was reported. */
static int listener_failed(struct transport *t)
{
	socklen_t len = sizeof(int);
	int e = 0;

	getsockopt(t->streams->listener, SOL_SOCKET, SO_ERROR, &e, &len);
	unwatch(t, t->streams->listener);
	t->streams->listener = -1;
	/* Report it once. */
	if (t->error)
		return 0;
	return e ? e : ENETDOWN;
}

static int receive_stream(struct transport *t, struct frame *frames, int n, size_t room)
{
	struct epoll_event e[EVENTS];
	struct connection *c;
	int i, events, got = 0, failed = 0;

	bury(t);
	events = epoll_wait(t->fd, e, EVENTS, 0);
	if (events < 0)
		return errno == EINTR ? 0 : -1;
	for (i = 0; i < events; i++) {
		c = e[i].data.ptr;
		if (!c && e[i].events & (EPOLLERR | EPOLLHUP)) {
			failed = listener_failed(t);
			continue;
		}
		if (!c) {
			accept_all(t);
			continue;
		}
		if (c->dead)
			continue;
		if (c->making && e[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			made(t, c);
		else if (c->full && e[i].events & EPOLLOUT)
			flush(t, c);
		if (!c->making && !c->dead && got < n)
			got += take_all(t, c, frames + got, n - got, room);
	}
	bury(t);
	if (t->unwatched && t->streams->listener >= 0)
		accept_all(t);
	if (!failed)
		return got;
	/* Frames come first; the next call that waits is told of the failure. */
	if (got) {
		t->error = failed;
		return got;
	}
	errno = failed;
	return -1;
}

/*
 * The transport
 */

static void close_stream(struct transport *t)
{
	if (t->streams) {
		while (t->streams->all)
			connection_free(t, t->streams->all);
		if (t->streams->listener >= 0)
			unwatch(t, t->streams->listener);
		free(t->streams);
		t->streams = NULL;
	}
	if (t->fd >= 0)
		close(t->fd);
}

static int esp_open(struct transport *t, const struct am_options *o)
{
	struct sockaddr_esp a;
	socklen_t len = sizeof(a);
	int error = parse_esp(o->address + 4, &a), on = 1, fd;

	if (error)
		return error;
	t->streams = calloc(1, sizeof(*t->streams));
	if (!t->streams)
		return AM_ERR_RESOURCE;
	t->fd = epoll_create1(EPOLL_CLOEXEC);
	fd = socket(AF_ESP, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	t->streams->listener = fd;
	/* A program that is started again may have connections in TIME_WAIT. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (t->fd < 0 || fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
	    listen(fd, BACKLOG) || getsockname(fd, (struct sockaddr *)&a, &len) ||
	    !watch(t, EPOLL_CTL_ADD, NULL, fd, EPOLLIN))
		return AM_ERR_SYSTEM;
	return esp_describe(t, fd, AM_KIND_ESP, &a);
}

static int esp_normalize(struct transport *t, en_t *name)
{
	return name_normalize(t, name, AM_KIND_ESP);
}

const struct transport_ops esp_ops = {
	.open = esp_open,
	.close = close_stream,
	.send = send_stream,
	.receive = receive_stream,
	.now = monotonic,
	.normalize = esp_normalize,
	.by_peer = true,
};
