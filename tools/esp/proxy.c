// SPDX-License-Identifier: GPL-2.0-only
/*
 * esp proxy: a relay between TCP and ESP, for programs that libesp-run.so can't be loaded into.
 *
 *	client --TCP-- proxy --ESP-- proxy --TCP-- server
 *
 * Bytes go from socket to socket through a pipe for each direction, by splice(), and are not
 * copied into this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "esp.h"

#define EVENTS		64
#define TURNS		16	/* pipes full of data before other relays have their turn */
#define PIECE		65536	/* most bytes of a splice() */
#define BACKLOG		1024
#define EDGES		(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

struct request {
	const char *from;
	const char *to;
	bool verbose;
};

struct relay;

/**
 * struct end - one of the two sockets of a relay, and the direction that begins there
 * @relay:	the relay; NULL: the listener
 * @fd:		the socket; -1: closed
 * @pipe:	bytes that have come from the socket and not left by the other one
 * @held:	their number
 * @ended:	no more come
 * @shut:	the other socket was told so
 */
struct end {
	struct relay *relay;
	int fd;
	int pipe[2];
	size_t held;
	bool ended;
	bool shut;
};

/**
 * struct relay - two connections; the bytes of either go to the other one
 * @end:	accepted; connected
 * @connecting:	the second one is not there yet
 * @dead:	closed; freed when the events at hand are done
 * @next:	next one of a list
 */
struct relay {
	struct end end[2];
	bool connecting;
	bool dead;
	struct relay *next;
};

/**
 * struct proxy - what all relays share
 * @epfd:	epoll instance
 * @to:		where to connect to
 * @listener:	for connections
 * @paused:	the listener is out of epoll, because there were no more descriptors
 * @spare:	a relay for the next client; NULL: none
 * @dead:	relays to be freed
 * @verbose:	tell of each
 */
struct proxy {
	int epfd;
	struct address to;
	struct end listener;
	bool paused;
	struct relay *spare;
	struct relay *dead;
	bool verbose;
};

static void parse_end(struct address *addr, const char *text, bool passive)
{
	if (!strncmp(text, "tcp:", 4))
		address_parse_tcp(addr, text + 4, passive);
	else
		address_parse(addr, text, SOCK_STREAM, passive);
}

static void tell(const struct proxy *p, const struct relay *r, const char *what, int err)
{
	char from[ADDRESS_STRLEN], to[ADDRESS_STRLEN];

	if (!p->verbose && !err)
		return;
	error(0, 0, "from %s to %s: %s%s%s", address_of(r->end[0].fd, true, from),
	      address_format(&p->to.sa, to), what, err ? ": " : "", err ? strerror(err) : "");
}

static bool watch(struct proxy *p, int op, struct end *e, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = e };

	return !epoll_ctl(p->epfd, op, e->fd, &event);
}

/* Close both sockets; @reset: by a reset, because bytes are missing. */
static void close_sockets(struct relay *r, bool reset)
{
	struct linger now = { .l_onoff = 1 };
	int i;

	for (i = 0; i < 2; i++) {
		if (r->end[i].fd >= 0) {
			if (reset)
				setsockopt(r->end[i].fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
			close(r->end[i].fd);
		}
		if (r->end[i].pipe[0] >= 0) {
			close(r->end[i].pipe[0]);
			close(r->end[i].pipe[1]);
		}
	}
}

static void close_relay(struct proxy *p, struct relay *r, bool reset)
{
	close_sockets(r, reset);
	r->dead = true;
	r->next = p->dead;
	p->dead = r;
	/* there are descriptors again */
	if (p->paused && watch(p, EPOLL_CTL_ADD, &p->listener, EPOLLIN))
		p->paused = false;
}

static bool again(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/*
 * Move bytes from @e to @other until neither goes on. Returns 1 if they would go on, 0 if not, -1
 * if the relay can't.
 */
static int move_bytes(struct end *e, struct end *other)
{
	bool moved = true;
	ssize_t n;
	int turn;

	for (turn = 0; moved && turn < TURNS; turn++) {
		moved = false;
		if (!e->ended && e->held < PIECE) {
			n = splice(e->fd, NULL, e->pipe[1], NULL, PIECE - e->held,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
			if (n < 0 && !again())
				return -1;
			e->ended = !n;
			if (n > 0) {
				e->held += n;
				moved = true;
			}
		}
		if (e->held) {
			n = splice(e->pipe[0], NULL, other->fd, NULL, e->held,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
			if (n < 0 && !again())
				return -1;
			if (n > 0) {
				e->held -= n;
				moved = true;
			}
		}
	}
	if (e->ended && !e->held && !e->shut) {
		shutdown(other->fd, SHUT_WR);
		e->shut = true;
	}
	return moved;
}

/* An event came for one of the relay's sockets. */
static void serve(struct proxy *p, struct relay *r)
{
	struct address peer = { .len = sizeof(peer.storage) };
	socklen_t len = sizeof(int);
	int i, goes_on, err = 0;

	if (r->connecting) {
		if (getsockopt(r->end[1].fd, SOL_SOCKET, SO_ERROR, &err, &len))
			err = errno;
		if (err) {
			tell(p, r, "can't connect", err);
			close_relay(p, r, true);
			return;
		}
		if (getpeername(r->end[1].fd, &peer.sa, &peer.len))
			return;		/* not yet */
		r->connecting = false;
		tell(p, r, "connected", 0);
	}
	for (i = 0; i < 2; i++) {
		goes_on = move_bytes(&r->end[i], &r->end[!i]);
		if (goes_on < 0) {
			tell(p, r, "ended", errno);
			close_relay(p, r, true);
			return;
		}
		/* the edge has been used up, so ask for it again */
		if (goes_on)
			watch(p, EPOLL_CTL_MOD, &r->end[i], EDGES);
	}
	if (r->end[0].shut && r->end[1].shut) {
		tell(p, r, "ended", 0);
		close_relay(p, r, false);
	}
}

/*
 * Make a relay with all that it needs but the client, so that a client waits in the listener's
 * queue while there is not enough. Returns false and errno.
 */
static bool prepare(struct proxy *p)
{
	struct relay *r = p->spare;
	int i;

	if (r)
		return true;
	r = calloc(1, sizeof(*r));
	if (!r)
		return false;
	for (i = 0; i < 2; i++)
		r->end[i] = (struct end){ .relay = r, .fd = -1, .pipe = { -1, -1 } };
	r->end[1].fd = socket(p->to.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (r->end[1].fd >= 0 && !pipe2(r->end[0].pipe, O_NONBLOCK | O_CLOEXEC) &&
	    !pipe2(r->end[1].pipe, O_NONBLOCK | O_CLOEXEC)) {
		p->spare = r;
		return true;
	}
	i = errno;
	close_sockets(r, false);
	free(r);
	errno = i;
	return false;
}

/* Begin a connection for the client of a relay. Returns false and errno. */
static bool begin(struct proxy *p, struct relay *r)
{
	int i, on = 1;

	for (i = 0; i < 2; i++) {	/* ESP sends at once anyway */
		setsockopt(r->end[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(r->end[i].fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	}
	if (connect(r->end[1].fd, &p->to.sa, p->to.len) && errno != EINPROGRESS)
		return false;
	r->connecting = true;
	return watch(p, EPOLL_CTL_ADD, &r->end[0], EDGES) &&
	       watch(p, EPOLL_CTL_ADD, &r->end[1], EDGES);
}

static bool listens(int fd)
{
	int err = errno, yes = 0;
	socklen_t len = sizeof(yes);

	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len);
	errno = err;
	return yes;
}

/* Accept connections, and begin one for each. */
static void take(struct proxy *p)
{
	struct relay *r;
	int fd;

	while (prepare(p) &&
	       (fd = accept4(p->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		r = p->spare;
		p->spare = NULL;
		r->end[0].fd = fd;
		if (!begin(p, r)) {
			tell(p, r, "can't connect", errno);
			close_relay(p, r, true);
		}
	}
	/* wait until a relay ends, instead of being woken again and again */
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		error(0, errno, "a connection has to wait");
		p->paused = !epoll_ctl(p->epfd, EPOLL_CTL_DEL, p->listener.fd, NULL);
		return;
	}
	/* an administrator or its device has ended it; TCP reports errors of clients here, too */
	if (errno != EAGAIN && errno != EINTR && !listens(p->listener.fd))
		error(EXIT_IO, 0, "the listener was ended");
}

static void run(struct proxy *p)
{
	struct epoll_event events[EVENTS];
	int i, n;

	for (;;) {
		n = epoll_wait(p->epfd, events, EVENTS, p->paused ? 1000 : -1);
		if (n < 0 && errno != EINTR)
			error(EXIT_IO, errno, "epoll_wait");
		for (i = 0; i < n; i++) {
			struct end *e = events[i].data.ptr;

			if (!e->relay)
				take(p);
			else if (!e->relay->dead)
				serve(p, e->relay);
		}
		if (p->paused && !n && watch(p, EPOLL_CTL_ADD, &p->listener, EPOLLIN))
			p->paused = false;
		while (p->dead) {
			struct relay *r = p->dead;

			p->dead = r->next;
			free(r);
		}
	}
}

static const struct argp_option options[] = {
	{ "verbose", 'v', NULL, 0, "Tell of each connection on standard error", 0 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct request *r = state->input;

	switch (key) {
	case 'v':
		r->verbose = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			r->from = arg;
		else if (state->arg_num == 1)
			r->to = arg;
		else
			argp_error(state, "two addresses only: FROM and TO");
		break;
	case ARGP_KEY_END:
		if (!r->to)
			argp_error(state, "two addresses are needed: FROM and TO");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_proxy(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "FROM TO",
		"Listens at FROM and relays connections to TO: ESP addresses, or tcp:HOST:PORT.",
		NULL, NULL, NULL
	};
	struct request r = { 0 };
	struct rlimit limit;
	struct address from;
	struct proxy p = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &r);
	parse_end(&from, r.from, true);
	parse_end(&p.to, r.to, false);
	p.verbose = r.verbose;
	/* each connection takes six descriptors */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	signal(SIGPIPE, SIG_IGN);
	p.listener.fd = address_listen(&from, BACKLOG);
	set_nonblock(p.listener.fd, true);
	p.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (p.epfd < 0 || !watch(&p, EPOLL_CTL_ADD, &p.listener, EPOLLIN))
		error(EXIT_IO, errno, "epoll");
	run(&p);
	return EXIT_OK;
}
