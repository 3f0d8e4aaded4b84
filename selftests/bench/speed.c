// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure the time and the cost of the same traffic over one protocol after
 * another, for speed.sh: between two namespaces of one machine (this process
 * and a child), or between two machines (one serves, see -L).
 *
 *   speed [OPTIONS] PROTO CASE
 *
 *   PROTO     esp, tcp, udp, packet (raw frames), tipc, sctp, unix
 *   bulk      one way, -n writes of -s bytes
 *   writev    one way, -n calls of -v buffers of -s bytes each
 *   sendfile  one way, -n calls of -s bytes, of a file in a directory (-f)
 *   file      the same without sendfile(): -n times -s bytes are read, and sent
 *   pingpong  -n times -s bytes there and back
 *   rr        -k connections, each with one request of -s bytes on its way; -n
 *             requests in all
 *   connect   -n times: connect, the server closes, close
 *   memory    kernel memory of one of -k connections, both ends, in bytes: idle,
 *             then with one unread message of -s bytes
 *
 * Prints lines "LABEL METRIC UNIT PROTO VALUE". A cycle is one of the
 * processor's time stamp counter, of this machine as a whole; with -I (QEMU's
 * icount, one processor) it is an instruction.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <asm/byteorder.h>
#include <linux/errqueue.h>
#include <linux/if_packet.h>
#include <linux/tipc.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
#include <linux/af_esp.h>
#include "bench.h"
#include "kernel-memory.h"

#define ETHERTYPE	0x88b6		/* IEEE 802, local experimental 2: 1 is ESP's */
#define UNIX_PATH	"/tmp/speed.socket"
#define SERVICE		18888		/* of TIPC */
#define CONTROL_PORT	5999
#define MOST		(1 << 20)	/* bytes of a call */

#ifndef SCTP_NODELAY
#define SCTP_NODELAY	3
#endif

static const char usage_text[] =
"usage: speed [OPTIONS] esp|tcp|udp|packet|tipc|sctp|unix\n"
"             bulk|writev|sendfile|file|pingpong|rr|connect|memory\n"
"       speed -b :DEV -L                 serve another machine\n"
"  -a NETNS:DEV  of this side            -s BYTES   of a message (64)\n"
"  -b NETNS:DEV  of the server           -n TIMES   (1000)\n"
"  -c ADDRESS    the server is there     -k CONNECTIONS (1)\n"
"  -l LABEL      for the output          -v BUFFERS (16)\n"
"  -d            one way: what comes is thrown away, not copied (esp, tcp)\n"
"  -f DIR        a file is there (/tmp)\n"
"  -z            bulk: MSG_ZEROCOPY (esp, tcp)\n"
"  -p            each end keeps to one processor: 0, and the server's 1\n"
"  -I            cycles are instructions\n"
"  -o FILE       pingpong: behind what is there, how long each took, microseconds\n"
"  -P FIFO       perf record is told there when to count, and answers in FIFO.ack\n"
"An empty NETNS is the present one.\n";

enum proto { ESP, TCP, UDP, PACKET, TIPC, SCTP, UNIX, PROTOS };
enum kind { BULK, WRITEV, SENDFILE, A_FILE, PINGPONG, RR, CONNECT, MEMORY, KINDS };

static const char *const proto_names[] = {
	"esp", "tcp", "udp", "packet", "tipc", "sctp", "unix"
};
static const char *const kind_names[] = {
	"bulk", "writev", "sendfile", "file", "pingpong", "rr", "connect", "memory"
};

/* The client's request; the server answers with its address. */
struct request {
	uint32_t	proto, kind, size, connections, buffers, port, discard;
	uint64_t	times;
};

struct answer {
	struct sockaddr_storage	addr;
	uint32_t		len;
};

static char *device;		/* of this side */
static const char *files = "/tmp";
static int control;
static char data[MOST];

static void read_all(int fd, void *p, size_t n)
{
	ssize_t got;

	for (; n; n -= got, p = (char *)p + got) {
		got = recv(fd, p, n, 0);
		if (!got)
			errno = ECONNRESET;
		if (got <= 0)
			die("read");
	}
}

/* Bytes of a call: SCTP takes no message that is larger than its buffer. */
static size_t most = MOST;

static void write_all(int fd, const void *p, size_t n)
{
	ssize_t sent;

	for (; n; n -= sent, p = (const char *)p + sent) {
		sent = send(fd, p, n < most ? n : most, 0);
		if (sent < 0)
			die("write");
	}
}

/* Wait until both sides are here. */
static void meet(void)
{
	char c = 0;

	write_all(control, &c, 1);
	read_all(control, &c, 1);
}

#include "speed_sock.c"

/*
 * Server
 */

static int accepted(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		die("accept");
	return fd;
}

/*
 * Receive @bytes. @flags: with MSG_TRUNC a stream socket discards them; a unix socket copies
 * them all the same.
 */
static void take(int fd, uint64_t bytes, int flags)
{
	ssize_t n;

	while (bytes) {
		n = recv(fd, data, sizeof(data), flags);
		if (!n)
			errno = ECONNRESET;
		if (n <= 0)
			die("recv");
		if ((uint64_t)n > bytes) {
			errno = EPROTO;
			die("too much data");
		}
		bytes -= n;
	}
}

/* Send back a whole message. A stream may bring it in pieces. */
static void echo(int fd, const struct request *r)
{
	struct sockaddr_storage from;
	socklen_t len;
	ssize_t n;

	if (r->proto == PACKET) {
		len = sizeof(from);
		n = recvfrom(fd, data, r->size, 0, (struct sockaddr *)&from, &len);
		if (n < 0 || sendto(fd, data, n, 0, (struct sockaddr *)&from, len) != n)
			die("echo");
		return;
	}
	read_all(fd, data, r->size);
	write_all(fd, data, r->size);
}

/* Close with a RST, because sockets in TIME_WAIT would be counted the next time. */
static void abort_on_close(int fd)
{
	struct linger now = { .l_onoff = 1 };

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)))
		die("SO_LINGER");
}

/* Return the messages that warm up the path before the measurement: at least one a connection. */
static uint64_t warming(const struct request *r)
{
	uint64_t some = r->times / 8 + 1;

	return some > r->connections ? some : r->connections;
}

static void answer_many(int ep, uint64_t left, const struct request *r)
{
	struct epoll_event got[256];
	int n;

	while (left) {
		n = epoll_wait(ep, got, 256, -1);
		for (; n > 0 && left; left--)
			echo(got[--n].data.fd, r);
	}
}

static void serve_many(int listener, const struct request *r)
{
	int ep = epoll_create1(0), *fds = calloc(r->connections, sizeof(*fds));
	uint32_t i;

	for (i = 0; i < r->connections; i++) {
		struct epoll_event e = { .events = EPOLLIN };

		fds[i] = e.data.fd = accepted(listener);
		if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e))
			die("epoll_ctl");
	}
	meet();
	answer_many(ep, warming(r), r);
	meet();
	answer_many(ep, r->times, r);
	meet();
	for (i = 0; i < r->connections; i++)
		close(fds[i]);
	free(fds);
	close(ep);
}

static void serve_memory(int listener, const struct request *r)
{
	int *fds = calloc(r->connections, sizeof(*fds)), again;
	uint32_t i;

	for (again = 0; again < 2; again++) {
		meet();
		for (i = 0; i < r->connections; i++) {
			fds[i] = accepted(listener);
			abort_on_close(fds[i]);
		}
		meet();
		meet();
		for (i = 0; i < r->connections; i++)
			close(fds[i]);
		meet();
	}
	free(fds);
}

static void serve_one(const struct request *r)
{
	struct answer addr, any;
	uint64_t i, bytes;
	int l, fd, one = 1;

	own_address(r->proto, r->port, &addr, &any);
	l = new_socket(r->proto);
	/* a connection of an earlier server may be in TIME_WAIT */
	if (r->proto == TCP && setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		die("SO_REUSEADDR");
	if (bind(l, (struct sockaddr *)&any.addr, any.len))
		die("bind %s", proto_names[r->proto]);
	if (!datagrams(r->proto) && listen(l, 1024))
		die("listen");
	write_all(control, &addr, sizeof(addr));
	switch ((enum kind)r->kind) {
	case BULK:
	case WRITEV:
	case SENDFILE:
	case A_FILE:
		fd = accepted(l);
		bytes = (uint64_t)r->size * (r->kind == WRITEV ? r->buffers : 1);
		take(fd, bytes * (r->times / 8 + 1), r->discard ? MSG_TRUNC : 0);
		meet();
		take(fd, bytes * r->times, r->discard ? MSG_TRUNC : 0);
		meet();
		close(fd);
		break;
	case PINGPONG:
		fd = datagrams(r->proto) ? l : accepted(l);
		if (r->proto == UDP) {
			struct answer client;

			/* connected, as the other side is, because that costs less */
			client.len = sizeof(client.addr);
			if (recvfrom(fd, data, sizeof(data), MSG_PEEK,
				     (struct sockaddr *)&client.addr, &client.len) < 0 ||
			    connect(fd, (struct sockaddr *)&client.addr, client.len))
				die("connect");
		}
		for (i = 0; i < r->times + r->times / 8 + 1; i++)
			echo(fd, r);
		if (fd != l)
			close(fd);
		break;
	case RR:
		serve_many(l, r);
		break;
	case CONNECT:
		for (i = 0; i < r->times + r->times / 8 + 1; i++)
			close(accepted(l));
		break;
	case MEMORY:
		serve_memory(l, r);
		break;
	default:
		break;
	}
	close(l);
}

static void serve(void)
{
	struct request r;

	while (recv(control, &r, sizeof(r), MSG_WAITALL) == sizeof(r))
		serve_one(&r);
}

/*
 * Client
 */

static const char *label = "-", *cycle = "cycles", *there;
static struct request req = { .size = 64, .connections = 1, .buffers = 16, .times = 1000 };
static double started;
static uint64_t cycles;

static void result(const char *metric, const char *unit, double value)
{
	if (there && !strcmp(metric, "cost"))
		return;		/* the other machine's cycles are not known */
	printf("%s %s %s %s %.9g\n", label, metric, unit, proto_names[req.proto], value);
}

static const char *perf;		/* perf's control FIFO; NULL: no perf */

static void tell_perf(const char *what)
{
	static int fifo = -1, ack;
	char answer[8], path[256];

	if (!perf)
		return;
	if (fifo < 0) {
		snprintf(path, sizeof(path), "%s.ack", perf);
		fifo = open(perf, O_WRONLY);
		ack = open(path, O_RDONLY);
	}
	if (write(fifo, what, strlen(what)) < 0 || read(ack, answer, sizeof(answer)) < 3 ||
	    memcmp(answer, "ack", 3))
		die("perf");
}

/*
 * With perf, run a random number of instructions, up to the distance between two samples.
 * Without that, samples at equal distances would fall into step with work at equal distances,
 * and miss part of it. A random time would not help, because it would often end while perf
 * works, in step with it. split.awk leaves this function out.
 */
static __attribute__((noinline)) void wander(void)
{
	static uint32_t random = 1;
	uint32_t n;

	if (!perf)
		return;
	random = random * 1664525 + 1013904223;
	for (n = random >> 17; n; n--)
		asm volatile("");
}

static void begin(void)
{
	tell_perf("enable\n");
	started = now();
	cycles = __rdtsc();
}

static void end(void)
{
	cycles = __rdtsc() - cycles;
	started = now() - started;
	tell_perf("disable\n");
}

static uint64_t lent;		/* MSG_ZEROCOPY calls whose notice is still missing */
static bool zerocopy;

/* Take the notices that have come; wait until at most @most calls are without one. */
static void notices(int fd, uint64_t most)
{
	while (lent) {
		char space[256];
		struct msghdr m = { .msg_control = space, .msg_controllen = sizeof(space) };
		struct pollfd p = { .fd = fd };
		struct sock_extended_err *e;

		if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
			if (errno != EAGAIN)
				die("notice");
			if (lent <= most)
				return;
			poll(&p, 1, 1000);	/* POLLERR */
			continue;
		}
		e = (void *)CMSG_DATA(CMSG_FIRSTHDR(&m));
		if (e->ee_origin == SO_EE_ORIGIN_ZEROCOPY)
			lent -= e->ee_data - e->ee_info + 1;
	}
}

/* Send without a copy. The buffer may be lent again at once because its bytes never change. */
static void lend_all(int fd, const void *p, size_t n)
{
	ssize_t sent;

	for (; n; n -= sent, p = (const char *)p + sent) {
		sent = send(fd, p, n, MSG_ZEROCOPY);
		if (sent < 0 && errno == ENOBUFS && lent) {
			notices(fd, lent - 1);
			sent = 0;
			continue;
		}
		if (sent < 0)
			die("MSG_ZEROCOPY");
		lent++;
		notices(fd, ~0ull);
	}
}

static void put(int fd, int file, uint64_t times)
{
	struct iovec v[1024];
	off_t off;
	uint32_t i;
	ssize_t n;

	for (i = 0; i < req.buffers; i++) {
		v[i].iov_base = data;
		v[i].iov_len = req.size;
	}
	for (; times; times--) {
		wander();
		switch (req.kind) {
		case BULK:
			if (zerocopy)
				lend_all(fd, data, req.size);
			else
				write_all(fd, data, req.size);
			break;
		case WRITEV:
			n = writev(fd, v, req.buffers);
			if (n != (ssize_t)req.buffers * req.size)
				die("writev");
			break;
		case SENDFILE:
			for (off = 0; off < req.size;)
				if (sendfile(fd, file, &off, req.size - off) <= 0)
					die("sendfile");
			break;
		case A_FILE:
			if (pread(file, data, req.size, 0) != (ssize_t)req.size)
				die("pread");
			write_all(fd, data, req.size);
			break;
		}
	}
	notices(fd, 0);
}

static void one_way(struct answer *server)
{
	uint64_t bytes = (uint64_t)req.size * (req.kind == WRITEV ? req.buffers : 1) * req.times;
	int fd = to_server(req.proto, server), file = -1, one = 1;

	if (req.kind == SENDFILE || req.kind == A_FILE) {
		file = open(files, O_TMPFILE | O_RDWR, 0600);
		if (file < 0)
			die("%s", files);
		if (write(file, data, req.size) != (ssize_t)req.size)
			die("%s", files);
	}
	if (zerocopy && setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		die("SO_ZEROCOPY");
	put(fd, file, req.times / 8 + 1);
	meet();
	begin();
	put(fd, file, req.times);
	meet();
	end();
	result("rate", "Gbit/s", bytes * 8 / started / 1e9);
	result("cost", !strcmp(cycle, "cycles") ? "cycles/byte" : "instructions/byte",
	       (double)cycles / bytes);
	if (req.kind == WRITEV)
		result("cost", !strcmp(cycle, "cycles") ? "cycles/call" : "instructions/call",
		       (double)cycles / req.times);
	close(fd);
	if (file >= 0)
		close(file);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void ping(int fd, struct answer *server)
{
	if (req.proto == PACKET) {
		if (sendto(fd, data, req.size, 0, (struct sockaddr *)&server->addr, server->len) !=
		    (ssize_t)req.size || recv(fd, data, req.size, 0) < (ssize_t)req.size)
			die("ping");
		return;
	}
	write_all(fd, data, req.size);
	read_all(fd, data, req.size);
}

static const char *samples;

static void save(const double *took)
{
	FILE *f = fopen(samples, "a");
	uint64_t i;

	if (!f)
		die("%s", samples);
	for (i = 0; i < req.times; i++)
		fprintf(f, "%.2f\n", took[i]);
	if (fclose(f))
		die("%s", samples);
}

static void pingpong(struct answer *server)
{
	double *took = calloc(req.times, sizeof(*took)), t;
	int fd = to_server(req.proto, server);
	uint64_t i;

	for (i = 0; i < req.times / 8 + 1; i++)
		ping(fd, server);
	begin();
	t = now();
	for (i = 0; i < req.times; i++) {
		double u;

		wander();
		ping(fd, server);
		u = now();
		took[i] = (u - t) * 1e6;
		t = u;
	}
	end();
	qsort(took, req.times, sizeof(*took), compare);
	result("median", "us", took[req.times / 2]);
	result("p99", "us", took[req.times * 99 / 100]);
	result("cost", cycle, (double)cycles / req.times);
	if (samples)
		save(took);
	free(took);
	close(fd);
}

static void request_many(int ep, const int *fds, uint64_t times)
{
	struct epoll_event got[256];
	uint64_t sent = 0, in = 0;
	int n;

	for (; sent < req.connections && sent < times; sent++)
		write_all(fds[sent], data, req.size);
	while (in < times) {
		n = epoll_wait(ep, got, 256, -1);
		for (in += n; n > 0;) {
			int fd = got[--n].data.fd;

			read_all(fd, data, req.size);
			if (sent < times) {
				sent++;
				write_all(fd, data, req.size);
			}
		}
	}
}

static void request_response(struct answer *server)
{
	int ep = epoll_create1(0), *fds = calloc(req.connections, sizeof(*fds));
	uint32_t i;

	for (i = 0; i < req.connections; i++) {
		struct epoll_event e = { .events = EPOLLIN };

		fds[i] = e.data.fd = to_server(req.proto, server);
		if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e))
			die("epoll_ctl");
	}
	meet();
	request_many(ep, fds, warming(&req));
	meet();
	begin();
	request_many(ep, fds, req.times);
	end();
	meet();
	result("rate", "1/s", req.times / started);
	result("cost", cycle, (double)cycles / req.times);
	for (i = 0; i < req.connections; i++)
		close(fds[i]);
	free(fds);
	close(ep);
}

static void connections(struct answer *server, uint64_t times)
{
	int fd;

	for (; times; times--) {
		wander();
		fd = to_server(req.proto, server);
		/* TIPC reports every end of a connection by ECONNRESET */
		if (recv(fd, data, 1, 0) && errno != ECONNRESET)
			die("recv");
		close(fd);
	}
}

static void connect_rate(struct answer *server)
{
	connections(server, req.times / 8 + 1);
	begin();
	connections(server, req.times);
	end();
	result("rate", "1/s", req.times / started);
	result("cost", cycle, (double)cycles / req.times);
}

/*
 * Return the memory in use, once two measurements agree: RCU and work queues free memory
 * later.
 */
static double memory(void)
{
	double last, now = 0, near = 8192 + 8.0 * req.connections;
	int i;

	put_file("/proc/sys/vm/drop_caches", "3");
	for (i = 0; i < 50; i++) {
		usleep(300000);
		last = now;
		now = memory_now();
		if (i && now - last < near && last - now < near)
			return now;
	}
	errno = ETIMEDOUT;
	die("memory in use is not steady");
}

/*
 * The first pass allocates memory that stays: hash tables, tables of descriptors. After the
 * second pass all memory must be given back. With few connections a page more or less, which
 * belongs to no connection, changes the result.
 */
static void connection_memory(struct answer *server)
{
	int *fds = calloc(req.connections, sizeof(*fds)), again;
	double none = 0, idle = 0, busy = 0, stays = 0;
	uint32_t i;

	for (again = 0; again < 2; again++) {
		none = memory();
		meet();
		for (i = 0; i < req.connections; i++) {
			fds[i] = to_server(req.proto, server);
			abort_on_close(fds[i]);
		}
		meet();
		idle = memory();
		for (i = 0; i < req.connections; i++)
			write_all(fds[i], data, req.size);
		busy = memory();
		meet();
		for (i = 0; i < req.connections; i++)
			close(fds[i]);
		meet();
		stays = memory() - none;
	}
	free(fds);
	if (stays > 65536 && stays > (busy - none) / 20) {
		fprintf(stderr, "%.0f bytes stay of %.0f\n", stays, busy - none);
		exit(1);
	}
	result("idle", "bytes", (idle - none) / req.connections);
	result("busy", "bytes", (busy - none) / req.connections);
}

static void measure(void)
{
	struct answer server;

	req.port = 1024 + (unsigned int)(now() * 1000) % 30000;
	write_all(control, &req, sizeof(req));
	read_all(control, &server, sizeof(server));
	localize(req.proto, &server.addr);
	switch ((enum kind)req.kind) {
	case PINGPONG:
		pingpong(&server);
		break;
	case RR:
		request_response(&server);
		break;
	case CONNECT:
		connect_rate(&server);
		break;
	case MEMORY:
		connection_memory(&server);
		break;
	default:
		one_way(&server);
	}
}

/*
 * Namespaces and processors
 */

/* Enter the network namespace and choose the device of @where, "NETNS:DEV". */
static void enter(char *where)
{
	char path[64], *colon = strchr(where, ':');
	int fd;

	if (!colon) {
		fputs(usage_text, stderr);
		exit(2);
	}
	*colon = 0;
	device = colon + 1;
	if (!*where)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", where);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("namespace %s", where);
	close(fd);
}

/*
 * Bind this process, and those that it starts, to a processor. In User-Mode Linux, start this
 * program on processor 0 and a server on 1: each process has another process on the host, which
 * stays on the processor where it was made ("vm run --pin").
 */
static void keep_to(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("processor %d", processor);
}

static _Noreturn void serve_network(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(CONTROL_PORT) };
	int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(l, (struct sockaddr *)&any, sizeof(any)) || listen(l, 1))
		die("control connection");
	for (;;) {
		control = accepted(l);
		setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		serve();
		close(control);
	}
}

static void connect_control(const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(CONTROL_PORT) };
	int one = 1, i;

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		die("%s", address);
	for (i = 0; i < 100; i++) {
		control = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(control, (struct sockaddr *)&to, sizeof(to))) {
			setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			return;
		}
		close(control);
		usleep(100000);
	}
	die("%s", address);
}

static uint32_t which(const char *name, const char *const *names, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return i;
	fputs(usage_text, stderr);
	exit(2);
}

int main(int argc, char **argv)
{
	char *a = NULL, *b = NULL;
	int c, pair[2], listening = 0, pinned = 0;

	while ((c = getopt(argc, argv, "a:b:c:l:s:n:k:v:o:P:f:dpzIL")) != -1) {
		switch (c) {
		case 'a': a = optarg; break;
		case 'b': b = optarg; break;
		case 'c': there = optarg; break;
		case 'l': label = optarg; break;
		case 's': req.size = atoi(optarg); break;
		case 'n': req.times = atoll(optarg); break;
		case 'k': req.connections = atoi(optarg); break;
		case 'v': req.buffers = atoi(optarg); break;
		case 'o': samples = optarg; break;
		case 'P': perf = optarg; break;
		case 'f': files = optarg; break;
		case 'd': req.discard = 1; break;
		case 'z': zerocopy = true; break;
		case 'p': pinned = 1; break;
		case 'I': cycle = "instructions"; break;
		case 'L': listening = 1; break;
		default: fputs(usage_text, stderr); return 2;
		}
	}
	signal(SIGPIPE, SIG_IGN);
	if (listening && b) {
		enter(b);
		serve_network();
	}
	if (optind + 2 != argc || !a || (!b && !there) || !req.size || req.size > MOST ||
	    !req.times || !req.connections || !req.buffers || req.buffers > 1024) {
		fputs(usage_text, stderr);
		return 2;
	}
	req.proto = which(argv[optind], proto_names, PROTOS);
	req.kind = which(argv[optind + 1], kind_names, KINDS);
	if (there) {
		connect_control(there);
	} else {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
			die("socketpair");
		if (pinned)
			keep_to(1);
		c = fork();
		if (c < 0)
			die("fork");
		if (c && pinned)
			keep_to(0);
		control = pair[!c];
		close(pair[!!c]);
		if (!c) {
			enter(b);
			serve();
			return 0;
		}
	}
	enter(a);
	measure();
	return 0;
}
