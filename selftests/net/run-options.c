// SPDX-License-Identifier: GPL-2.0-only
// LIBS: -lc
/*
 * For tests of "esp run": print what each socket option, ioctl and call of TCP does on a
 * connection. The lines with and without "esp run" are to be compared.
 *
 *	run-options serve ADDR PORT	accepts connections, and reads them to their end
 *	run-options ADDR PORT		connects to it, once for each line
 *	run-options connect N ADDR PORT	connects N times, and gets a byte back each time (bench/run.sh)
 *
 * A line has a name, and then what happened, without numbers that differ from run to run.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#define must(condition) do { if (!(condition)) err(1, "line %d: %s", __LINE__, #condition); } while (0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct addrinfo *where;

static const char *error(long ret)
{
	return ret < 0 ? strerrorname_np(errno) : "ok";
}

/*
 * Options
 */

enum show {
	VALUE,		/* the value is to be the same */
	THERE,		/* the value depends on the connection or its host */
	PRESENT,	/* the size is to be the same */
};

/* An option; its number comes from the headers, or from the kernel's where these are older. */
static const struct option {
	const char *name;
	int level;
	int number;
	enum show show;
	int val;		/* value to set */
	const void *data;	/* if it is no int */
	socklen_t size;
} options[] = {
#define INT(level, name, val)		{ #name, level, name, VALUE, val, NULL, 0 }
#define NEW(level, name, number, val)	{ #name, level, number, VALUE, val, NULL, 0 }
#define ANY(level, name, val)		{ #name, level, name, THERE, val, NULL, 0 }
#define DATA(level, name, show, ...)	{ #name, level, name, show, 0, &(__VA_ARGS__), sizeof(__VA_ARGS__) }
	INT(SOL_SOCKET, SO_DEBUG, 1),
	INT(SOL_SOCKET, SO_REUSEADDR, 1),
	INT(SOL_SOCKET, SO_TYPE, 1),
	INT(SOL_SOCKET, SO_ERROR, 1),
	INT(SOL_SOCKET, SO_DONTROUTE, 1),
	INT(SOL_SOCKET, SO_BROADCAST, 1),
	ANY(SOL_SOCKET, SO_SNDBUF, 100000),
	ANY(SOL_SOCKET, SO_RCVBUF, 100000),
	ANY(SOL_SOCKET, SO_SNDBUFFORCE, 100000),
	ANY(SOL_SOCKET, SO_RCVBUFFORCE, 100000),
	INT(SOL_SOCKET, SO_KEEPALIVE, 1),
	INT(SOL_SOCKET, SO_OOBINLINE, 1),
	INT(SOL_SOCKET, SO_NO_CHECK, 1),
	INT(SOL_SOCKET, SO_PRIORITY, 3),
	DATA(SOL_SOCKET, SO_LINGER, VALUE, (struct linger){ 1, 7 }),
	INT(SOL_SOCKET, SO_BSDCOMPAT, 1),
	INT(SOL_SOCKET, SO_REUSEPORT, 1),
	INT(SOL_SOCKET, SO_PASSCRED, 1),
	DATA(SOL_SOCKET, SO_PEERCRED, PRESENT, (struct { int id[3]; }){ { 0 } }),
	INT(SOL_SOCKET, SO_RCVLOWAT, 10),
	INT(SOL_SOCKET, SO_SNDLOWAT, 10),
	DATA(SOL_SOCKET, SO_RCVTIMEO, VALUE, (struct timeval){ 5, 0 }),
	DATA(SOL_SOCKET, SO_SNDTIMEO, VALUE, (struct timeval){ 5, 0 }),
	INT(SOL_SOCKET, SO_DETACH_FILTER, 0),
	DATA(SOL_SOCKET, SO_PEERNAME, PRESENT, (struct sockaddr_storage){ 0 }),
	INT(SOL_SOCKET, SO_TIMESTAMP, 1),
	INT(SOL_SOCKET, SO_ACCEPTCONN, 1),
	INT(SOL_SOCKET, SO_PASSSEC, 1),
	INT(SOL_SOCKET, SO_TIMESTAMPNS, 1),
	INT(SOL_SOCKET, SO_MARK, 5),
	INT(SOL_SOCKET, SO_TIMESTAMPING, 0x1f),
	INT(SOL_SOCKET, SO_PROTOCOL, 1),
	INT(SOL_SOCKET, SO_DOMAIN, 1),
	INT(SOL_SOCKET, SO_RXQ_OVFL, 1),
	INT(SOL_SOCKET, SO_WIFI_STATUS, 1),
	INT(SOL_SOCKET, SO_PEEK_OFF, 0),
	INT(SOL_SOCKET, SO_NOFCS, 1),
	INT(SOL_SOCKET, SO_LOCK_FILTER, 1),
	INT(SOL_SOCKET, SO_SELECT_ERR_QUEUE, 1),
	INT(SOL_SOCKET, SO_BUSY_POLL, 50),
	DATA(SOL_SOCKET, SO_MAX_PACING_RATE, VALUE, (unsigned long){ 1000000 }),
	INT(SOL_SOCKET, SO_BPF_EXTENSIONS, 1),
	ANY(SOL_SOCKET, SO_INCOMING_CPU, 1),
	INT(SOL_SOCKET, SO_CNX_ADVICE, 1),
	DATA(SOL_SOCKET, SO_MEMINFO, PRESENT, (struct { int v[9]; }){ { 0 } }),
	ANY(SOL_SOCKET, SO_INCOMING_NAPI_ID, 1),
	DATA(SOL_SOCKET, SO_COOKIE, THERE, (unsigned long){ 1 }),
	INT(SOL_SOCKET, SO_ZEROCOPY, 1),
	DATA(SOL_SOCKET, SO_TXTIME, VALUE, (struct { int v[2]; }){ { 1, 0 } }),
	DATA(SOL_SOCKET, SO_BINDTODEVICE, VALUE, ""),
	INT(SOL_SOCKET, SO_BINDTOIFINDEX, 0),
	NEW(SOL_SOCKET, SO_PREFER_BUSY_POLL, 69, 1),
	NEW(SOL_SOCKET, SO_BUSY_POLL_BUDGET, 70, 5),
	{ "SO_NETNS_COOKIE", SOL_SOCKET, 71, THERE, 0, &(unsigned long){ 1 }, sizeof(long) },
	NEW(SOL_SOCKET, SO_BUF_LOCK, 72, 3),
	NEW(SOL_SOCKET, SO_RESERVE_MEM, 73, 4096),
	NEW(SOL_SOCKET, SO_TXREHASH, 74, 1),
	NEW(SOL_SOCKET, SO_RCVMARK, 75, 1),
	NEW(SOL_SOCKET, SO_PASSPIDFD, 76, 1),
	NEW(SOL_SOCKET, SO_RCVPRIORITY, 82, 1),

	INT(IPPROTO_TCP, TCP_NODELAY, 1),
	ANY(IPPROTO_TCP, TCP_MAXSEG, 1000),
	INT(IPPROTO_TCP, TCP_CORK, 1),
	INT(IPPROTO_TCP, TCP_KEEPIDLE, 100),
	INT(IPPROTO_TCP, TCP_KEEPINTVL, 10),
	INT(IPPROTO_TCP, TCP_KEEPCNT, 3),
	INT(IPPROTO_TCP, TCP_SYNCNT, 3),
	INT(IPPROTO_TCP, TCP_LINGER2, 3),
	INT(IPPROTO_TCP, TCP_DEFER_ACCEPT, 3),
	ANY(IPPROTO_TCP, TCP_WINDOW_CLAMP, 100000),
	DATA(IPPROTO_TCP, TCP_INFO, PRESENT, (struct { char v[104]; }){ { 0 } }),
	INT(IPPROTO_TCP, TCP_QUICKACK, 0),
	DATA(IPPROTO_TCP, TCP_CONGESTION, VALUE, "reno"),
	DATA(IPPROTO_TCP, TCP_MD5SIG, PRESENT, (struct { char v[216]; }){ { 0 } }),
	INT(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1),
	INT(IPPROTO_TCP, TCP_THIN_DUPACK, 1),
	INT(IPPROTO_TCP, TCP_USER_TIMEOUT, 10000),
	INT(IPPROTO_TCP, TCP_REPAIR, 1),
	INT(IPPROTO_TCP, TCP_REPAIR_QUEUE, 1),
	ANY(IPPROTO_TCP, TCP_QUEUE_SEQ, 1),
	INT(IPPROTO_TCP, TCP_FASTOPEN, 1),
	ANY(IPPROTO_TCP, TCP_TIMESTAMP, 1),
	INT(IPPROTO_TCP, TCP_NOTSENT_LOWAT, 10000),
	DATA(IPPROTO_TCP, TCP_CC_INFO, PRESENT, (struct { char v[20]; }){ { 0 } }),
	INT(IPPROTO_TCP, TCP_SAVE_SYN, 1),
	DATA(IPPROTO_TCP, TCP_SAVED_SYN, PRESENT, (struct { char v[64]; }){ { 0 } }),
	INT(IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1),
	DATA(IPPROTO_TCP, TCP_ULP, VALUE, "tls"),
	DATA(IPPROTO_TCP, TCP_FASTOPEN_KEY, VALUE, (struct { char v[16]; }){ { 0 } }),
	INT(IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1),
	DATA(IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, PRESENT, (struct { char v[64]; }){ { 0 } }),
	INT(IPPROTO_TCP, TCP_INQ, 1),
	INT(IPPROTO_TCP, TCP_TX_DELAY, 0),
	NEW(IPPROTO_TCP, TCP_AO_INFO, 40, 0),
	NEW(IPPROTO_TCP, TCP_IS_MPTCP, 43, 0),
	NEW(IPPROTO_TCP, TCP_RTO_MAX_MS, 44, 60000),
	NEW(IPPROTO_TCP, TCP_RTO_MIN_US, 45, 100000),
	NEW(IPPROTO_TCP, TCP_DELACK_MAX_US, 46, 20000),

	INT(IPPROTO_IP, IP_TOS, 0x10),
	INT(IPPROTO_IP, IP_TTL, 7),
	INT(IPPROTO_IP, IP_HDRINCL, 1),
	DATA(IPPROTO_IP, IP_OPTIONS, PRESENT, (int){ 0x01010101 }),	/* NOP */
	INT(IPPROTO_IP, IP_ROUTER_ALERT, 1),
	INT(IPPROTO_IP, IP_RECVOPTS, 1),
	INT(IPPROTO_IP, IP_RETOPTS, 1),
	INT(IPPROTO_IP, IP_PKTINFO, 1),
	INT(IPPROTO_IP, IP_MTU_DISCOVER, 1),
	INT(IPPROTO_IP, IP_RECVERR, 1),
	INT(IPPROTO_IP, IP_RECVTTL, 1),
	INT(IPPROTO_IP, IP_RECVTOS, 1),
	ANY(IPPROTO_IP, IP_MTU, 1500),
	INT(IPPROTO_IP, IP_FREEBIND, 1),
	INT(IPPROTO_IP, IP_PASSSEC, 1),
	INT(IPPROTO_IP, IP_TRANSPARENT, 1),
	INT(IPPROTO_IP, IP_ORIGDSTADDR, 1),
	INT(IPPROTO_IP, IP_MINTTL, 3),
	INT(IPPROTO_IP, IP_NODEFRAG, 1),
	INT(IPPROTO_IP, IP_CHECKSUM, 1),
	INT(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1),
	INT(IPPROTO_IP, IP_RECVFRAGSIZE, 1),
	NEW(IPPROTO_IP, IP_RECVERR_RFC4884, 26, 1),
	INT(IPPROTO_IP, IP_MULTICAST_TTL, 3),
	INT(IPPROTO_IP, IP_MULTICAST_LOOP, 1),
	INT(IPPROTO_IP, IP_MULTICAST_ALL, 1),
	INT(IPPROTO_IP, IP_UNICAST_IF, 0),
	NEW(IPPROTO_IP, IP_LOCAL_PORT_RANGE, 51, 0),
	NEW(IPPROTO_IP, IP_PROTOCOL, 52, 0),

	INT(IPPROTO_IPV6, IPV6_V6ONLY, 1),
	INT(IPPROTO_IPV6, IPV6_TCLASS, 0x10),
	INT(IPPROTO_IPV6, IPV6_UNICAST_HOPS, 7),
	INT(IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 7),
	INT(IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1),
	INT(IPPROTO_IPV6, IPV6_MTU_DISCOVER, 1),
	ANY(IPPROTO_IPV6, IPV6_MTU, 1400),
	INT(IPPROTO_IPV6, IPV6_RECVERR, 1),
	INT(IPPROTO_IPV6, IPV6_RECVPKTINFO, 1),
	INT(IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1),
	INT(IPPROTO_IPV6, IPV6_RECVTCLASS, 1),
	INT(IPPROTO_IPV6, IPV6_RECVRTHDR, 1),
	INT(IPPROTO_IPV6, IPV6_RECVHOPOPTS, 1),
	INT(IPPROTO_IPV6, IPV6_RECVDSTOPTS, 1),
	INT(IPPROTO_IPV6, IPV6_RECVPATHMTU, 1),
	INT(IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 1),
	NEW(IPPROTO_IPV6, IPV6_FLOWINFO, 11, 1),
	NEW(IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 33, 1),
	INT(IPPROTO_IPV6, IPV6_DONTFRAG, 1),
	INT(IPPROTO_IPV6, IPV6_FREEBIND, 1),
	INT(IPPROTO_IPV6, IPV6_TRANSPARENT, 1),
	INT(IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, 1),
	INT(IPPROTO_IPV6, IPV6_MINHOPCOUNT, 3),
	INT(IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, 2),
	INT(IPPROTO_IPV6, IPV6_UNICAST_IF, 0),
	INT(IPPROTO_IPV6, IPV6_RECVFRAGSIZE, 1),
	INT(IPPROTO_IPV6, IPV6_CHECKSUM, 1),
	NEW(IPPROTO_IPV6, IPV6_RECVERR_RFC4884, 31, 1),
};

/* Write what getsockopt() says to @text. */
static void get(int fd, const struct option *o, char *text, size_t size)
{
	unsigned char val[256] = { 0 };
	socklen_t len = o->data ? o->size : sizeof(int);
	int v;

	if (o->data && o->show != VALUE)
		memcpy(val, o->data, o->size);
	else if (o->data && len < sizeof(int) * 4)
		len = sizeof(int) * 4;
	if (getsockopt(fd, o->level, o->number, val, &len)) {
		snprintf(text, size, "%s", error(-1));
		return;
	}
	memcpy(&v, val, sizeof(v));
	if (o->show == THERE)
		snprintf(text, size, "a value");
	else if (o->show == PRESENT)
		snprintf(text, size, "%u bytes", len);
	else if (len == sizeof(v))
		snprintf(text, size, "%d", v);
	else if (val[0] >= 'a' && val[0] <= 'z')
		snprintf(text, size, "%s", (char *)val);
	else
		for (size_t i = 0; i < len && i < 24 && 2 * i + 2 < size; i++)
			sprintf(text + 2 * i, "%02x", val[i]);
	if (!len)
		snprintf(text, size, "0 bytes");
}

static int set(int fd, const struct option *o)
{
	if (o->data)
		return setsockopt(fd, o->level, o->number, o->data, o->size);
	return setsockopt(fd, o->level, o->number, &o->val, sizeof(o->val));
}

static int new_socket(void)
{
	int fd = socket(where->ai_family, SOCK_STREAM, 0);

	must(fd >= 0);
	return fd;
}

static int connected(void)
{
	int fd = new_socket();

	must(!connect(fd, where->ai_addr, where->ai_addrlen));
	return fd;
}

static void try_option(const struct option *o)
{
	char was[64], is[64];
	const char *done;
	int fd;

	alarm(100);	/* ends a test that hangs */
	fd = connected();
	get(fd, o, was, sizeof(was));
	done = error(set(fd, o));
	get(fd, o, is, sizeof(is));
	printf("%s: %s, set: %s, %s\n", o->name, was, done, is);
	close(fd);

	fd = new_socket();
	done = error(set(fd, o));
	if (connect(fd, where->ai_addr, where->ai_addrlen))
		snprintf(is, sizeof(is), "connect(): %s", error(-1));
	else
		get(fd, o, is, sizeof(is));
	printf("%s before connect(): %s, %s\n", o->name, done, is);
	close(fd);
}

/*
 * Calls
 */

/* Tell the peer to return the bytes, and wait until all are there. */
static void ask(int fd, int n)
{
	int there = 0;

	for (int i = 0; i < n; i++)
		must(send(fd, "x", 1, 0) == 1);
	while (there < n)
		must(!ioctl(fd, FIONREAD, &there) && !usleep(1000));
}

static long number(int fd, unsigned long request)
{
	int v = -1;

	return ioctl(fd, request, &v) ? -1 : v;
}

static long inq(int fd) { ask(fd, 3); return number(fd, SIOCINQ); }
static long outq(int fd) { ask(fd, 3); while (number(fd, SIOCOUTQ) > 0) usleep(1000); return number(fd, SIOCOUTQ); }
static long outqnsd(int fd) { ask(fd, 3); return number(fd, SIOCOUTQNSD); }
static long atmark(int fd) { ask(fd, 3); return number(fd, SIOCATMARK); }
static long siocgstamp(int fd) { struct timeval t; ask(fd, 1); return ioctl(fd, SIOCGSTAMP_OLD, &t); }
static long fionbio(int fd) { int on = 1; return ioctl(fd, FIONBIO, &on) ?: recv(fd, &on, 1, 0); }
static long fioasync(int fd) { int on = 1; return ioctl(fd, FIOASYNC, &on); }
static long spgrp(int fd) { int pid = getpid(); return ioctl(fd, SIOCSPGRP, &pid) ?: number(fd, SIOCGPGRP) == pid; }
static long setown(int fd) { return fcntl(fd, F_SETOWN, getpid()) ?: fcntl(fd, F_GETOWN) == getpid(); }
static long tiocoutq(int fd) { return number(fd, TIOCOUTQ); }
static long gifconf(int fd) { struct { int len; void *buf; } c = { 0, NULL }; return ioctl(fd, SIOCGIFCONF, &c); }
static long nosuch(int fd) { return number(fd, 0x12345678); }

static char buf[1000];

static long dontwait(int fd) { return recv(fd, buf, 1, MSG_DONTWAIT); }
static long peek(int fd) { ask(fd, 3); return recv(fd, buf, 9, MSG_PEEK) * 10 + recv(fd, buf, 9, 0); }
static long waitall(int fd) { ask(fd, 3); return recv(fd, buf, 3, MSG_WAITALL); }
static long trunc_it(int fd) { ask(fd, 9); return recv(fd, NULL, 5, MSG_TRUNC) * 10 + recv(fd, buf, 9, 0); }
static long peek_trunc(int fd) { ask(fd, 9); return recv(fd, NULL, 5, MSG_TRUNC | MSG_PEEK); }
static long recv_oob(int fd) { return recv(fd, buf, 1, MSG_OOB); }
static long send_oob(int fd) { return send(fd, "x", 1, MSG_OOB); }
static long errqueue(int fd) { return recv(fd, buf, 1, MSG_ERRQUEUE); }
static long send_more(int fd) { return send(fd, "x", 1, MSG_MORE) + send(fd, "x", 1, 0); }
static long send_eor(int fd) { return send(fd, "x", 1, MSG_EOR); }
static long confirm(int fd) { return send(fd, "x", 1, MSG_CONFIRM); }
static long dontroute(int fd) { return send(fd, "x", 1, MSG_DONTROUTE); }
static long fastopen(int fd) { return sendto(fd, "x", 1, MSG_FASTOPEN, where->ai_addr, where->ai_addrlen); }
static long to_peer(int fd) { return sendto(fd, "x", 1, 0, where->ai_addr, where->ai_addrlen); }
static long zerocopy(int fd) { return send(fd, "x", 1, MSG_ZEROCOPY); }
static long send_nothing(int fd) { return send(fd, "", 0, 0); }
static long send_null(int fd) { return send(fd, NULL, 1, 0); }
static long recv_null(int fd) { ask(fd, 1); return recv(fd, NULL, 1, 0); }
static long recv_nothing(int fd) { ask(fd, 1); return recv(fd, buf, 0, 0); }
static long recv_from(int fd) { struct sockaddr_storage a; socklen_t n = sizeof(a); ask(fd, 1); return recvfrom(fd, buf, 1, 0, (void *)&a, &n) * 100 + n; }
static long connect_again(int fd) { return connect(fd, where->ai_addr, where->ai_addrlen); }
static long connect_short(int fd) { return connect(fd, where->ai_addr, 4); }
static long bind_connected(int fd) { struct sockaddr_storage a = { .ss_family = where->ai_family }; return bind(fd, (void *)&a, where->ai_addrlen); }
static long listen_connected(int fd) { return listen(fd, 1); }
static long accept_connected(int fd) { return accept(fd, NULL, NULL); }
static long after_shutdown_wr(int fd) { return shutdown(fd, SHUT_WR) ?: send(fd, "x", 1, MSG_NOSIGNAL); }
static long after_shutdown_rd(int fd) { return shutdown(fd, SHUT_RD) ?: recv(fd, buf, 1, 0); }
static long rdhup(int fd) { struct pollfd p = { fd, POLLIN | POLLOUT | POLLRDHUP, 0 }; shutdown(fd, SHUT_WR); recv(fd, buf, 1, 0); return poll(&p, 1, -1) * 100000 + p.revents; }
static long shutdown_twice(int fd) { return shutdown(fd, SHUT_RDWR) ?: shutdown(fd, SHUT_RDWR) ?: 0; }
static long shutdown_bad(int fd) { return shutdown(fd, 7); }
static long short_name(int fd) { struct sockaddr_storage a; socklen_t n = 2; return getpeername(fd, (void *)&a, &n) ?: (long)n; }
static long bad_length(int fd) { int v; socklen_t n = -1; return getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, &n); }
static long one_byte(int fd) { char v = 1; return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, 1); }
static long one_byte_get(int fd) { char v = 1; socklen_t n = 1; return getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, &n) ?: (long)n; }
static long bad_address(int fd) { return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, NULL, sizeof(int)); }
static long bad_level(int fd) { int v = 1; return setsockopt(fd, 200, 1, &v, sizeof(v)); }
static long udp_level(int fd) { int v = 1; return setsockopt(fd, IPPROTO_UDP, 1, &v, sizeof(v)); }
static long lseek_it(int fd) { return lseek(fd, 0, SEEK_SET); }
static long pread_it(int fd) { return pread(fd, buf, 1, 0); }
static long mmap_it(int fd) { return mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0; }
static long fsync_it(int fd) { return fsync(fd); }
static long ftruncate_it(int fd) { return ftruncate(fd, 0); }

static long sendfile_it(int fd)
{
	int file = open("/proc/self/exe", O_RDONLY);
	long n = sendfile(fd, file, NULL, 700);

	close(file);
	return n;
}

static long splice_it(int fd)
{
	long n;
	int p[2];

	must(!pipe(p));
	ask(fd, 5);
	n = splice(fd, NULL, p[1], NULL, 5, 0);
	if (n > 0)
		n = n * 10 + splice(p[0], NULL, fd, NULL, 5, 0);
	close(p[0]);
	close(p[1]);
	return n;
}

static long vectors(int fd)
{
	struct iovec v[2] = { { buf, 2 }, { buf + 2, 3 } };

	return writev(fd, v, 2) * 10 + readv(fd, v, 2);
}

static long messages(int fd)
{
	struct iovec v = { buf, 2 };
	struct mmsghdr m[2] = { { .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } }, { .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } } };
	long n = sendmmsg(fd, m, 2, 0) * 10;

	while (number(fd, FIONREAD) < 4)
		usleep(1000);
	return n + recvmmsg(fd, m, 2, 0, NULL);
}

static long recv_flags(int fd)
{
	char control[100];
	struct iovec v = { buf, 2 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };

	ask(fd, 3);
	return recvmsg(fd, &m, 0) * 10000 + m.msg_controllen * 100 + m.msg_flags;
}

static long unconnected(int fd, long (*call)(int fd))
{
	int other = new_socket();
	long ret = call(other);

	(void)fd;
	close(other);
	return ret;
}

static long read_it(int fd) { return recv(fd, buf, 1, 0); }
static long write_it(int fd) { return send(fd, "x", 1, MSG_NOSIGNAL); }
static long read_unconnected(int fd) { return unconnected(fd, read_it); }
static long write_unconnected(int fd) { return unconnected(fd, write_it); }

/* A connection ends, and the socket connects again. */
static long reconnect(int fd)
{
	struct sockaddr a = { .sa_family = AF_UNSPEC };

	if (connect(fd, &a, sizeof(a)) || connect(fd, where->ai_addr, where->ai_addrlen))
		return -1;
	return send(fd, "x", 1, 0);
}

static const struct {
	const char *name;
	long (*call)(int fd);
} calls[] = {
	{ "ioctl(SIOCINQ)", inq },
	{ "ioctl(SIOCOUTQ)", outq },
	{ "ioctl(SIOCOUTQNSD)", outqnsd },
	{ "ioctl(TIOCOUTQ)", tiocoutq },
	{ "ioctl(SIOCATMARK)", atmark },
	{ "ioctl(SIOCGSTAMP)", siocgstamp },
	{ "ioctl(FIONBIO)", fionbio },
	{ "ioctl(FIOASYNC)", fioasync },
	{ "ioctl(SIOCSPGRP)", spgrp },
	{ "ioctl(SIOCGIFCONF)", gifconf },
	{ "ioctl() without such a request", nosuch },
	{ "fcntl(F_SETOWN)", setown },
	{ "recv(MSG_DONTWAIT)", dontwait },
	{ "recv(MSG_PEEK)", peek },
	{ "recv(MSG_WAITALL)", waitall },
	{ "recv(MSG_TRUNC)", trunc_it },
	{ "recv(MSG_TRUNC | MSG_PEEK)", peek_trunc },
	{ "recv(MSG_OOB)", recv_oob },
	{ "recv(MSG_ERRQUEUE)", errqueue },
	{ "recv() to a bad address", recv_null },
	{ "recv() of no byte", recv_nothing },
	{ "recvfrom()", recv_from },
	{ "recvmsg()", recv_flags },
	{ "send(MSG_OOB)", send_oob },
	{ "send(MSG_MORE)", send_more },
	{ "send(MSG_EOR)", send_eor },
	{ "send(MSG_CONFIRM)", confirm },
	{ "send(MSG_DONTROUTE)", dontroute },
	{ "send(MSG_ZEROCOPY) without SO_ZEROCOPY", zerocopy },
	{ "sendto(MSG_FASTOPEN)", fastopen },
	{ "sendto() with the peer's address", to_peer },
	{ "send() of no byte", send_nothing },
	{ "send() from a bad address", send_null },
	{ "connect(), connected", connect_again },
	{ "connect() with a short address", connect_short },
	{ "connect(AF_UNSPEC), connect()", reconnect },
	{ "bind(), connected", bind_connected },
	{ "listen(), connected", listen_connected },
	{ "accept(), connected", accept_connected },
	{ "send() after shutdown(SHUT_WR)", after_shutdown_wr },
	{ "recv() after shutdown(SHUT_RD)", after_shutdown_rd },
	{ "poll() after both have shut down", rdhup },
	{ "shutdown() twice", shutdown_twice },
	{ "shutdown(7)", shutdown_bad },
	{ "getpeername() with a short length", short_name },
	{ "getsockopt() with length -1", bad_length },
	{ "setsockopt() with length 1", one_byte },
	{ "getsockopt() with length 1", one_byte_get },
	{ "setsockopt() from a bad address", bad_address },
	{ "setsockopt() of level 200", bad_level },
	{ "setsockopt() of level IPPROTO_UDP", udp_level },
	{ "recv(), not connected", read_unconnected },
	{ "send(), not connected", write_unconnected },
	{ "lseek()", lseek_it },
	{ "pread()", pread_it },
	{ "mmap()", mmap_it },
	{ "fsync()", fsync_it },
	{ "ftruncate()", ftruncate_it },
	{ "sendfile()", sendfile_it },
	{ "splice()", splice_it },
	{ "writev(), readv()", vectors },
	{ "sendmmsg(), recvmmsg()", messages },
};

static void try_call(const char *name, long (*call)(int fd))
{
	int fd = connected();
	long ret;

	alarm(100);
	ret = call(fd);

	if (ret < 0)
		printf("%s: %s\n", name, error(ret));
	else
		printf("%s: %ld\n", name, ret);
	close(fd);
}

/* Return the bytes to the peer until it ends; each connection has its process. */
static void serve(void)
{
	int fd, s = new_socket(), on = 1;
	ssize_t n;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(!bind(s, where->ai_addr, where->ai_addrlen) && !listen(s, SOMAXCONN));
	while ((fd = accept(s, NULL, NULL)) >= 0) {
		if (!fork()) {
			close(s);
			while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
				send(fd, buf, n, MSG_NOSIGNAL);
			_exit(0);
		}
		close(fd);
	}
	err(1, "accept()");
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	bool server = argc == 4;
	long n = argc == 5 ? atol(argv[2]) : 0;
	size_t i;

	if (argc < 3 || getaddrinfo(argv[argc - 2], argv[argc - 1], &hints, &where))
		errx(1, "usage: run-options [serve | connect N] ADDR PORT");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN);
	signal(SIGURG, SIG_IGN);
	if (server) {
		signal(SIGCHLD, SIG_IGN);
		serve();
	}
	while (n-- > 0) {
		int fd = connected();

		/* wait for the answer: who polls wakes at the same place of each connection */
		must(send(fd, "x", 1, 0) == 1 && recv(fd, buf, 1, 0) == 1);
		close(fd);
		if (!n)
			return 0;
	}
	for (i = 0; i < ARRAY_SIZE(options); i++)
		try_option(&options[i]);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		try_call(calls[i].name, calls[i].call);
	return 0;
}
