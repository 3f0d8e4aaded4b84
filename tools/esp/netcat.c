// SPDX-License-Identifier: GPL-2.0-only
/*
 * esp listen, esp connect: stdin and stdout over a connection.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "esp.h"

#define BUFFER_DEFAULT	65536
#define BUFFER_MAX	(16 << 20)

struct options {
	bool keep;
	bool verbose;
	int type;
	int timeout_ms;
	size_t buffer;
	unsigned int sport;
	const char *address;
};

/**
 * struct flow - one direction of a connection
 * @in:		where data comes from
 * @out:	where it goes
 * @open:	@in has not ended
 * @start:	first byte in @buf not written yet
 * @len:	bytes in @buf not written yet
 * @size:	of @buf
 * @total:	bytes written
 * @buf:	bytes read from @in
 */
struct flow {
	int in;
	int out;
	bool open;
	size_t start;
	size_t len;
	size_t size;
	unsigned long long total;
	char *buf;
};

static bool again(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static bool flow_init(struct flow *flow, int in, int out, size_t size)
{
	*flow = (struct flow){ .in = in, .out = out, .open = in >= 0,
			       .size = size, .buf = malloc(size) };
	return flow->buf;
}

static int flow_fill(struct flow *flow, int type)
{
	ssize_t n = read(flow->in, flow->buf, flow->size);

	if (n < 0)
		return again() ? 0 : errno;
	/* An empty datagram doesn't end the input. */
	if (!n && (type != SOCK_DGRAM || flow->in == STDIN_FILENO))
		flow->open = false;
	flow->start = 0;
	flow->len = n;
	return 0;
}

static bool stdout_is_socket;
static bool stdout_blocks;	/* a pipe that can't be opened anew, for lack of /proc */

/* Write to stdout what can be written at once. */
static ssize_t write_stdout(const char *from, size_t len)
{
	if (stdout_is_socket)
		return send(STDOUT_FILENO, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* poll() has told that there is room for so much */
	if (stdout_blocks && len > PIPE_BUF)
		len = PIPE_BUF;
	return write(STDOUT_FILENO, from, len);
}

static int flow_drain(struct flow *flow, int type)
{
	/* The bytes of one read() are a record. */
	int flags = MSG_NOSIGNAL | (type == SOCK_SEQPACKET ? MSG_EOR : 0);
	const char *from = flow->buf + flow->start;
	ssize_t n;

	if (flow->out == STDOUT_FILENO)
		n = write_stdout(from, flow->len);
	else
		n = send(flow->out, from, flow->len, flags);
	if (n < 0)
		return again() ? 0 : errno;
	flow->start += n;
	flow->len -= n;
	flow->total += n;
	return 0;
}

static int fail(const char *what, int err)
{
	error(0, err, "%s", what);
	return exit_code(err);
}

/* Read or write once. @pfd is of the input or, while data waits, of the output. */
static int flow_run(struct flow *flow, const struct pollfd *pfd, int type)
{
	bool drain = flow->len;
	int fd = drain ? flow->out : flow->in, err;

	if (!pfd->revents)
		return EXIT_OK;
	err = drain ? flow_drain(flow, type) : flow_fill(flow, type);
	if (!err)
		return EXIT_OK;
	if (fd > STDOUT_FILENO)
		return fail("connection", err);
	fail(fd == STDIN_FILENO ? "stdin" : "stdout", err);
	return EXIT_IO;
}

static void flow_poll(const struct flow *flow, struct pollfd *pfd)
{
	pfd->fd = flow->len ? flow->out : flow->open ? flow->in : -1;
	pfd->events = flow->len ? POLLOUT : POLLIN;
}

/*
 * Writing to stdout must not block: a pipe that isn't emptied must not keep data from going the
 * other way. Other processes may share the pipe as it is open, with its flags, so this one opens it
 * anew. To a socket each write says so: write_stdout().
 */
static void stdout_nonblock(void)
{
	struct stat st;
	int fd;

	if (fstat(STDOUT_FILENO, &st))
		return;
	stdout_is_socket = S_ISSOCK(st.st_mode);
	if (!S_ISFIFO(st.st_mode))
		return;
	fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		dup2(fd, STDOUT_FILENO);
		close(fd);
	} else {
		stdout_blocks = true;
	}
}

/*
 * Carry data both ways until both have ended. Returns an exit code.
 *
 * A connection that serves one of many (-k) ends with the peer's data, because stdin may go on for
 * ever.
 */
static int relay(int sock, int in, const struct options *o)
{
	struct flow up, down;
	bool shut = in < 0;
	int code = EXIT_OK;

	set_nonblock(sock, true);
	if (!flow_init(&up, in, sock, o->buffer) ||
	    !flow_init(&down, sock, STDOUT_FILENO, o->buffer))
		error(EXIT_IO, errno, "buffer of %zu bytes", o->buffer);

	while (code == EXIT_OK) {
		struct pollfd pfd[3];
		bool silence;
		int n;

		if (!up.open && !up.len && !shut) {
			/* A datagram socket can't tell its peer that the data have ended. */
			if (o->type == SOCK_DGRAM && o->timeout_ms < 0)
				break;
			if (o->type != SOCK_DGRAM && shutdown(sock, SHUT_WR))
				code = fail("connection", errno);
			shut = true;
		}
		if (!down.open && !down.len) {
			if (shut || o->keep)
				break;
			close(STDOUT_FILENO);
		}

		flow_poll(&up, &pfd[0]);
		flow_poll(&down, &pfd[1]);
		/* Notice a reset also while stdin is silent. */
		pfd[2] = (struct pollfd){ .fd = down.open ? -1 : sock };
		n = poll(pfd, 3, o->timeout_ms);
		if (n < 0 && errno != EINTR)
			error(EXIT_IO, errno, "poll");
		if (n < 0)
			continue;
		silence = !n;
		if (silence && o->type == SOCK_DGRAM && shut && in >= 0)
			break;
		if (silence) {
			code = fail("connection", ETIMEDOUT);
			break;
		}
		code = flow_run(&up, &pfd[0], o->type);
		if (code == EXIT_OK)
			code = flow_run(&down, &pfd[1], o->type);
		if (code == EXIT_OK && pfd[2].revents && !down.open && !shut)
			code = fail("connection", ECONNRESET);
	}

	if (o->verbose)
		fprintf(stderr, "%llu bytes sent, %llu bytes received\n",
			up.total, down.total);
	free(up.buf);
	free(down.buf);
	close(sock);
	return code;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'k':
		o->keep = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	case 'b':
		o->buffer = parse_size(state, arg, "buffer size", BUFFER_MAX);
		break;
	case 'p':
		o->sport = parse_number(state, arg, "port", 1, 65535);
		break;
	case 'w':
		o->timeout_ms = 1000 * parse_number(state, arg, "timeout", 1,
						    1000000);
		break;
	case 't':
		if (!strcmp(arg, "stream"))
			o->type = SOCK_STREAM;
		else if (!strcmp(arg, "seqpacket"))
			o->type = SOCK_SEQPACKET;
		else if (!strcmp(arg, "dgram"))
			o->type = SOCK_DGRAM;
		else
			argp_error(state, "type '%s' is none of stream, seqpacket and dgram",
				   arg);
		break;
	case ARGP_KEY_ARG:
		if (o->address)
			argp_error(state, "more than one address");
		o->address = arg;
		break;
	case ARGP_KEY_END:
		if (!o->address)
			argp_error(state, "the address is missing");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option listen_options[] = {
	{ "buffer", 'b', "SIZE", 0, "read and write SIZE bytes at most (64K)", 0 },
	{ "keep", 'k', NULL, 0, "take one connection after the other", 0 },
	{ "type", 't', "TYPE", 0, "stream (default), seqpacket or dgram", 0 },
	{ "verbose", 'v', NULL, 0, "tell of connections on stderr", 0 },
	{ "timeout", 'w', "SECONDS", 0, "give up after so long a silence", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 }
};

static const struct argp_option connect_options[] = {
	{ "buffer", 'b', "SIZE", 0, "read and write SIZE bytes at most (64K)", 0 },
	{ "port", 'p', "PORT", 0, "connect from this port", 0 },
	{ "type", 't', "TYPE", 0, "stream (default), seqpacket or dgram", 0 },
	{ "verbose", 'v', NULL, 0, "tell of the connection on stderr", 0 },
	{ "timeout", 'w', "SECONDS", 0, "give up after so long a silence", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 }
};

static void options_init(struct options *o)
{
	*o = (struct options){ .type = SOCK_STREAM, .timeout_ms = -1,
			       .buffer = BUFFER_DEFAULT };
	setvbuf(stderr, NULL, _IOLBF, 0);
}

int cmd_listen(int argc, char **argv)
{
	static const struct argp argp = {
		listen_options, parse, "[%DEV]:PORT",
		"Waits for a connection, then copies stdin to it and what it brings to stdout.",
		NULL, NULL, NULL
	};
	char buf[ADDRESS_STRLEN];
	struct address addr;
	struct options o;
	int fd, code = EXIT_OK;

	options_init(&o);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	address_parse(&addr, o.address, o.type, true);
	fd = address_listen(&addr, o.keep ? 128 : 1);
	if (o.verbose)
		fprintf(stderr, "listening on %s\n", address_of(fd, false, buf));
	stdout_nonblock();
	if (o.type == SOCK_DGRAM)
		return relay(fd, -1, &o);

	do {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		int conn;

		if (poll(&pfd, 1, o.timeout_ms) == 0)
			error(EXIT_TIMEOUT, 0, "no connection came");
		conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (conn < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			address_fail(&addr, "cannot accept on");
		}
		if (o.verbose)
			fprintf(stderr, "connection from %s\n",
				address_of(conn, true, buf));
		if (!o.keep)
			close(fd);
		code = relay(conn, STDIN_FILENO, &o);
	} while (o.keep);
	return code;
}

int cmd_connect(int argc, char **argv)
{
	static const struct argp argp = {
		connect_options, parse, "MAC[%DEV]:PORT",
		"Connects to MAC on DEV, then copies stdin to the connection and what it brings to stdout.",
		NULL, NULL, NULL
	};
	char buf[ADDRESS_STRLEN], local[ADDRESS_STRLEN];
	struct address addr;
	struct options o;
	int fd, mtu;
	socklen_t len = sizeof(mtu);

	options_init(&o);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	address_parse(&addr, o.address, o.type, false);
	fd = address_connect(&addr, o.sport, o.timeout_ms);
	if (o.verbose)
		fprintf(stderr, "connected to %s from %s\n",
			address_of(fd, true, buf), address_of(fd, false, local));
	/* A datagram can't be larger than a frame. */
	if (o.type == SOCK_DGRAM &&
	    !getsockopt(fd, SOL_ESP, ESP_MTU, &mtu, &len) &&
	    (size_t)mtu < o.buffer)
		o.buffer = mtu;
	stdout_nonblock();
	return relay(fd, STDIN_FILENO, &o);
}
