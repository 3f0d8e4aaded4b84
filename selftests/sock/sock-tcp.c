// SPDX-License-Identifier: GPL-2.0-only
/*
 * ESP in the place of TCP: ESP_TCP_LISTENER, ESP_TCP_DEST and ESP_TCP_SOCKET. A client that wants a TCP server gets
 * no other one, whoever has the port (run.rst, "Security").
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <netinet/tcp.h>
#include "sock-hosts.h"

#define TCP_PORT 1999

/* Give both hosts addresses of IPv4 and IPv6; B has two of each. */
static void number(void)
{
	enter(A);
	run("ip addr add 10.1.0.1/24 dev %s", A->dev);
	run("ip addr add fd01::1/64 dev %s nodad", A->dev);
	enter(B);
	run("ip link set lo up");
	run("ip addr add 10.1.0.2/24 dev %s", B->dev);
	run("ip addr add 10.1.0.3/24 dev %s", B->dev);
	run("ip addr add fd01::2/64 dev %s nodad", B->dev);
	run("ip addr add fd01::3/64 dev %s nodad", B->dev);
	run("ip addr add 10.9.0.2/24 dev lo");
}

/* The address of a text, at a port. Returns its length. */
static socklen_t ip(const char *text, int port, struct sockaddr_storage *sa)
{
	struct sockaddr_in6 *in6 = (void *)sa;
	struct sockaddr_in *in = (void *)sa;

	memset(sa, 0, sizeof(*sa));
	if (strchr(text, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		inet_pton(AF_INET6, text, &in6->sin6_addr);
		return sizeof(*in6);
	}
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	inet_pton(AF_INET, text, &in->sin_addr);
	return sizeof(*in);
}

static int tcp_listener(const char *addr, int port, bool only)
{
	struct sockaddr_storage sa;
	socklen_t len = ip(addr, port, &sa);
	int fd;

	enter(B);
	fd = MUST(socket(sa.ss_family, SOCK_STREAM, 0));
	if (sa.ss_family == AF_INET6)
		MUST(set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, only));
	MUST(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	MUST(bind(fd, (struct sockaddr *)&sa, len));
	MUST(listen(fd, 10));
	return fd;
}

/* Make an ESP listener that stands for the TCP listener @tcp. */
static int stand_in(int tcp, int port)
{
	int fd = esp_socket(B, SOCK_STREAM);

	MUST(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	MUST(set_int(fd, SOL_ESP, ESP_TCP_LISTENER, tcp));
	MUST(do_bind(fd, any(port)));
	MUST(listen(fd, 10));
	return fd;
}

static int set_dest(int fd, const char *addr)
{
	struct sockaddr_storage sa;
	socklen_t len = ip(addr, 0, &sa);

	return setsockopt(fd, SOL_ESP, ESP_TCP_DEST, &sa, len);
}

/* Connect to the TCP server of an address. Returns errno, or 0. */
static int want(const char *addr, int port)
{
	int fd = esp_socket(A, SOCK_STREAM), err = 0;

	MUST(set_dest(fd, addr));
	if (do_connect(fd, at(B, port)))
		err = errno;
	close(fd);
	return err;
}

/* Only a socket that stands for TCP's listener answers a client that wants a TCP server. */
TEST_F(hosts, plain_listener_is_no_server)
{
	int l, fd;

	number();
	l = listener(B, SOCK_STREAM, TCP_PORT, 1);
	EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", TCP_PORT));
	EXPECT_EQ(ECONNREFUSED, want("fd01::2", TCP_PORT));
	EXPECT_EQ(2, counter(B, "TcpMismatch"));
	/* although TCP's port has a listener, of another process */
	fd = tcp_listener("0.0.0.0", TCP_PORT, false);
	EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", TCP_PORT));
	close(l);
	l = stand_in(fd, TCP_PORT);
	EXPECT_EQ(0, want("10.1.0.2", TCP_PORT));
	/* a client that names no address asks for a MAC address, and gets its listener */
	fd = esp_socket(A, SOCK_STREAM);
	EXPECT_EQ(0, do_connect(fd, at(B, TCP_PORT)));
	EXPECT_EQ(0, events(l, 0, 0));
}

/* TCP's listener gets a key. From then on no client gets it by ESP, whatever it asks for. */
TEST_F(hosts, signatures)
{
	struct tcp_md5sig key = { .tcpm_keylen = 3, .tcpm_key = "key" };
	int tcp, l, fd;

	number();
	tcp = tcp_listener("0.0.0.0", TCP_PORT, false);
	l = stand_in(tcp, TCP_PORT);
	EXPECT_EQ(0, want("10.1.0.2", TCP_PORT));
	ip("10.1.0.1", 0, &key.tcpm_addr);
	if (setsockopt(tcp, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key)))
		SKIP(return, "the kernel has no TCP_MD5SIG");
	EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", TCP_PORT));
	fd = esp_socket(A, SOCK_STREAM);
	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd, at(B, TCP_PORT)));
	/* the key goes; who needed it yesterday may do so tomorrow */
	key.tcpm_keylen = 0;
	EXPECT_EQ(0, setsockopt(tcp, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key)));
	EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", TCP_PORT));
	/* the port is still the listener's */
	fd = esp_socket(B, SOCK_STREAM);
	EXPECT_TRUE(do_bind(fd, any(TCP_PORT)) || listen(fd, 1));
	EXPECT_EQ(EADDRINUSE, errno);
	close(l);
}

/* Each kind of TCP listener answers for the addresses for which TCP answers. */
TEST_F(hosts, addresses)
{
	static const char * const to[] = {
		"10.1.0.2", "10.1.0.3", "10.1.0.9", "10.9.0.2", "127.0.0.1",
		"fd01::2", "fd01::3", "fd01::9", "::1", "::ffff:10.1.0.2",
	};
	static const struct {
		const char	*at;
		bool		only;	/* IPV6_V6ONLY */
		const char	*answers;	/* y: of to[] */
	} t[] = {
		{ "0.0.0.0",	false,	"yy.......y" },
		{ "10.1.0.2",	false,	"y........y" },
		{ "10.1.0.3",	false,	".y........" },
		{ "127.0.0.1",	false,	".........." },
		{ "::",		false,	"yy...yy..y" },
		{ "::",		true,	".....yy..." },
		{ "fd01::2",	true,	".....y...." },
		{ "::ffff:10.1.0.2", false, "y........y" },
		{ "::ffff:0.0.0.0", false, "yy.......y" },
	};
	unsigned int i, j;

	number();
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		int tcp = tcp_listener(t[i].at, TCP_PORT, t[i].only);
		int l = stand_in(tcp, TCP_PORT);

		for (j = 0; j < ARRAY_SIZE(to); j++)
			EXPECT_EQ(t[i].answers[j] == 'y' ? 0 : ECONNREFUSED,
				  want(to[j], TCP_PORT))
				TH_LOG("at %s, to %s", t[i].at, to[j]);
		close(l);
		close(tcp);
	}
}

/* The ESP listener answers nobody once TCP's is closed, and keeps nobody from the port. */
TEST_F(hosts, tcp_closed)
{
	int tcp, l, again;

	number();
	tcp = tcp_listener("0.0.0.0", TCP_PORT, false);
	l = stand_in(tcp, TCP_PORT);
	EXPECT_EQ(0, want("10.1.0.2", TCP_PORT));
	EXPECT_EQ(0, shutdown(tcp, SHUT_RD));
	EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", TCP_PORT));
	close(tcp);
	tcp = tcp_listener("0.0.0.0", TCP_PORT, false);
	EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", TCP_PORT));
	again = stand_in(tcp, TCP_PORT);
	EXPECT_EQ(0, want("10.1.0.2", TCP_PORT));
	EXPECT_EQ(POLLIN, events(again, POLLIN, LONG));
	EXPECT_EQ(0, close(l));
	EXPECT_EQ(0, want("10.1.0.2", TCP_PORT));
}

/* A TCP socket that is closed and listens again, at another port, has no claim to the first one. */
TEST_F(hosts, listens_elsewhere)
{
	struct sockaddr_storage sa;
	socklen_t len = ip("0.0.0.0", 0, &sa);
	int tcp, l, port, others;

	number();
	enter(B);
	tcp = MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(tcp, (struct sockaddr *)&sa, len));	/* the kernel chooses, and doesn't keep it */
	MUST(listen(tcp, 1));
	MUST(getsockname(tcp, (struct sockaddr *)&sa, &len));
	port = ntohs(((struct sockaddr_in *)&sa)->sin_port);
	l = stand_in(tcp, port);
	EXPECT_EQ(0, want("10.1.0.2", port));
	MUST(shutdown(tcp, SHUT_RDWR));
	others = tcp_listener("0.0.0.0", port, false);
	len = ip("0.0.0.0", port == 4000 ? 4001 : 4000, &sa);
	MUST(bind(tcp, (struct sockaddr *)&sa, len));
	MUST(listen(tcp, 1));
	EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", port));
	stand_in(others, port);
	EXPECT_EQ(0, want("10.1.0.2", port));
	close(l);
}

/* A port that another socket has got meanwhile doesn't come back with TCP's listener. */
TEST_F(hosts, listens_again)
{
	int tcp, l, fd;

	number();
	tcp = tcp_listener("0.0.0.0", TCP_PORT, false);
	l = esp_socket(B, SOCK_STREAM);
	MUST(set_int(l, SOL_ESP, ESP_TCP_LISTENER, tcp));
	MUST(do_bind(l, (struct sockaddr_esp){ .sesp_family = AF_ESP, .sesp_port = htons(TCP_PORT),
					       .sesp_ifindex = B->ifindex }));
	MUST(listen(l, 10));
	MUST(shutdown(tcp, SHUT_RDWR));
	fd = listener(B, SOCK_STREAM, TCP_PORT, 10);
	MUST(listen(tcp, 10));
	EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", TCP_PORT));
	EXPECT_EQ(0, do_connect(esp_socket(A, SOCK_STREAM), at(B, TCP_PORT)));
	EXPECT_EQ(POLLIN, events(fd, POLLIN, LONG));
	EXPECT_EQ(0, events(l, POLLIN, 0));
}

/* A TCP listener that is bound to a device gets nothing by others. */
TEST_F(hosts, bound_device)
{
	static const char * const dev[] = { "lo", NULL };
	unsigned int i;

	number();
	for (i = 0; i < ARRAY_SIZE(dev); i++) {
		const char *name = dev[i] ? dev[i] : B->dev;
		int tcp = tcp_listener("0.0.0.0", TCP_PORT, false), l;

		MUST(setsockopt(tcp, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name)));
		l = stand_in(tcp, TCP_PORT);
		EXPECT_EQ(dev[i] ? ECONNREFUSED : 0, want("10.1.0.2", TCP_PORT));
		close(l);
		close(tcp);
	}
}

/* A process with TCP's listener gets the ESP listener beside it, and accepts its connections. */
TEST_F(hosts, shared)
{
	int tcp, l, other, fd, copy, more;

	number();
	tcp = tcp_listener("0.0.0.0", TCP_PORT, false);
	other = esp_socket(B, SOCK_SEQPACKET);	/* any ESP socket will do */
	copy = tcp;
	EXPECT_ERRNO(ENOENT, getsockopt(other, SOL_ESP, ESP_TCP_LISTENER, &copy, &(socklen_t){ 4 }));
	l = stand_in(tcp, TCP_PORT);
	copy = dup(tcp);
	ASSERT_EQ(0, getsockopt(other, SOL_ESP, ESP_TCP_LISTENER, &copy, &(socklen_t){ 4 }));
	EXPECT_TRUE(fcntl(copy, F_GETFD) & FD_CLOEXEC);
	EXPECT_NE(l, copy);
	fd = esp_socket(A, SOCK_STREAM);
	ASSERT_EQ(0, set_dest(fd, "10.1.0.2"));
	ASSERT_EQ(0, do_connect(fd, at(B, TCP_PORT)));
	fd = accept(copy, NULL, NULL);
	EXPECT_LE(0, fd);
	close(fd);
	/* it lives until the last descriptor is closed */
	close(l);
	EXPECT_EQ(0, want("10.1.0.2", TCP_PORT));
	/* a second one would take connections that nobody accepts */
	enter(B);
	more = esp_socket(B, SOCK_STREAM);
	MUST(set_int(more, SOL_SOCKET, SO_REUSEADDR, 1));
	EXPECT_EQ(0, set_int(more, SOL_ESP, ESP_TCP_LISTENER, tcp));
	EXPECT_ERRNO(EADDRINUSE, do_bind(more, any(TCP_PORT)));
	close(copy);
	EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", TCP_PORT));
	copy = tcp;
	EXPECT_ERRNO(ENOENT, getsockopt(other, SOL_ESP, ESP_TCP_LISTENER, &copy, &(socklen_t){ 4 }));
	/* what is no TCP listener has none */
	copy = more;
	EXPECT_ERRNO(EINVAL, getsockopt(other, SOL_ESP, ESP_TCP_LISTENER, &copy, &(socklen_t){ 4 }));
	copy = -1;
	EXPECT_ERRNO(EBADF, getsockopt(other, SOL_ESP, ESP_TCP_LISTENER, &copy, &(socklen_t){ 4 }));
	copy = STDIN_FILENO;
	EXPECT_ERRNO(ENOTSOCK, getsockopt(other, SOL_ESP, ESP_TCP_LISTENER, &copy, &(socklen_t){ 4 }));
}

/* A full backlog refuses a client that can go by TCP, and keeps others waiting. */
TEST_F(hosts, full_backlog)
{
	int tcp, l, i, fd;

	number();
	tcp = tcp_listener("0.0.0.0", TCP_PORT, false);
	l = stand_in(tcp, TCP_PORT);
	ASSERT_EQ(0, listen(l, 0));
	fd = esp_socket(A, SOCK_STREAM);
	ASSERT_EQ(0, set_dest(fd, "10.1.0.2"));
	ASSERT_EQ(0, do_connect(fd, at(B, TCP_PORT)));
	ASSERT_TRUE(UNTIL(counter(B, "PassiveOpens") == 1));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(ECONNREFUSED, want("10.1.0.2", TCP_PORT));
	EXPECT_LE(3, counter(B, "ListenOverflows"));
	EXPECT_LE(0, accept(l, NULL, NULL));
	EXPECT_EQ(0, want("10.1.0.2", TCP_PORT));
}

/* As nobody: a port below 1024 only with TCP's listener, and no other than TCP's. */
static int nobody(int tcp)
{
	int fd;

	enter(B);
	MUST(setresgid(65534, 65534, 65534));
	MUST(setresuid(65534, 65534, 65534));
	fd = MUST(socket(AF_ESP, SOCK_STREAM, 0));
	if (!do_bind(fd, any(80)) || errno != EACCES)
		return 1;
	if (set_int(fd, SOL_ESP, ESP_TCP_LISTENER, tcp))
		return 2;
	if (!do_bind(fd, any(81)) || errno != EADDRNOTAVAIL)
		return 3;
	if (!do_bind(fd, any(0)) || errno != EADDRNOTAVAIL)
		return 4;
	if (!listen(fd, 1) || errno != EINVAL)
		return 5;
	return do_bind(fd, any(80)) || listen(fd, 1) ? 6 : 0;
}

TEST_F(hosts, privileged_port)
{
	int tcp = tcp_listener("0.0.0.0", 80, false);
	pid_t pid = MUST(fork());

	if (!pid)
		_exit(nobody(tcp));
	EXPECT_EQ(0, reap(pid));
}

/* Values and states that both options refuse. */
TEST_F(hosts, arguments)
{
	int tcp, fd, udp, out, i;
	struct sockaddr_storage sa = { .ss_family = AF_UNIX };
	int p[2];

	number();
	tcp = tcp_listener("0.0.0.0", TCP_PORT, false);
	udp = MUST(socket(AF_INET, SOCK_DGRAM, 0));
	out = MUST(socket(AF_INET, SOCK_STREAM, 0));
	fd = esp_socket(B, SOCK_STREAM);
	EXPECT_ERRNO(EBADF, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, -1));
	EXPECT_ERRNO(ENOTSOCK, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, STDIN_FILENO));
	EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, udp));
	EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, out));
	EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, fd));
	EXPECT_EQ(0, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, tcp));
	EXPECT_ERRNO(EALREADY, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, tcp));
	/* the listener of another namespace is of other addresses */
	fd = esp_socket(A, SOCK_STREAM);
	EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, tcp));
	ASSERT_EQ(0, do_bind(fd, any(TCP_PORT)));
	EXPECT_ERRNO(EISCONN, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, tcp));
	for (i = 0; i < 2; i++) {
		fd = esp_socket(B, i ? SOCK_DGRAM : SOCK_SEQPACKET);
		EXPECT_ERRNO(EOPNOTSUPP, set_int(fd, SOL_ESP, ESP_TCP_LISTENER, tcp));
		EXPECT_ERRNO(EOPNOTSUPP, set_dest(fd, "10.1.0.1"));
	}
	fd = esp_socket(A, SOCK_STREAM);
	EXPECT_ERRNO(EINVAL, set_dest(fd, "0.0.0.0"));
	EXPECT_ERRNO(EAFNOSUPPORT, setsockopt(fd, SOL_ESP, ESP_TCP_DEST, &sa, sizeof(sa)));
	ip("10.1.0.2", 0, &sa);
	EXPECT_ERRNO(EINVAL, setsockopt(fd, SOL_ESP, ESP_TCP_DEST, &sa, 8));
	ip("fd01::2", 0, &sa);
	EXPECT_ERRNO(EINVAL, setsockopt(fd, SOL_ESP, ESP_TCP_DEST, &sa, sizeof(struct sockaddr_in)));
	EXPECT_ERRNO(EFAULT, setsockopt(fd, SOL_ESP, ESP_TCP_DEST, (void *)1, sizeof(sa)));
	make_pair(SOCK_STREAM, p);
	EXPECT_ERRNO(EISCONN, set_dest(p[0], "10.1.0.2"));
	EXPECT_ERRNO(EISCONN, set_int(p[0], SOL_ESP, ESP_TCP_LISTENER, tcp));
}

/* The agreement holds with a CRC, whose echo has no room to tell it. */
TEST_F(hosts, with_crc)
{
	int tcp, l, fd, child;
	char c = 0;

	number();
	tcp = tcp_listener("0.0.0.0", TCP_PORT, false);
	l = stand_in(tcp, TCP_PORT);
	fd = esp_socket(A, SOCK_STREAM);
	ASSERT_EQ(0, set_int(fd, SOL_ESP, ESP_CRC32C, 1));
	ASSERT_EQ(0, set_dest(fd, "10.1.0.2"));
	ASSERT_EQ(0, do_connect(fd, at(B, TCP_PORT)));
	child = accept(l, NULL, NULL);
	ASSERT_LE(0, child);
	EXPECT_EQ(1, get_int(child, SOL_ESP, ESP_CRC32C));
	EXPECT_EQ(1, send(fd, "x", 1, 0));
	EXPECT_EQ(1, recv(child, &c, 1, 0));
	EXPECT_EQ('x', c);
}

static const struct {
	int level, name, esp_level, esp_name, value;
} taken[] = {
	{ SOL_SOCKET, SO_REUSEADDR, SOL_SOCKET, SO_REUSEADDR, 1 },
	{ SOL_SOCKET, SO_PRIORITY, SOL_SOCKET, SO_PRIORITY, 3 },
	{ SOL_SOCKET, SO_MARK, SOL_SOCKET, SO_MARK, 7 },
	{ SOL_SOCKET, SO_RCVLOWAT, SOL_SOCKET, SO_RCVLOWAT, 5 },
	{ SOL_SOCKET, SO_KEEPALIVE, SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ SOL_SOCKET, SO_BROADCAST, SOL_SOCKET, SO_BROADCAST, 1 },
	{ SOL_SOCKET, SO_OOBINLINE, SOL_SOCKET, SO_OOBINLINE, 1 },
	{ SOL_SOCKET, SO_DONTROUTE, SOL_SOCKET, SO_DONTROUTE, 1 },
	{ SOL_SOCKET, SO_NO_CHECK, SOL_SOCKET, SO_NO_CHECK, 1 },
	{ IPPROTO_TCP, TCP_CORK, SOL_ESP, ESP_CORK, 1 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, SOL_ESP, ESP_KEEPIDLE, 77 },
	{ IPPROTO_TCP, TCP_KEEPINTVL, SOL_ESP, ESP_KEEPINTVL, 8 },
	{ IPPROTO_TCP, TCP_KEEPCNT, SOL_ESP, ESP_KEEPCNT, 3 },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, SOL_ESP, ESP_USER_TIMEOUT, 1234 },
};

/* A socket takes the options of a TCP socket, and what the user of that has not set stays. */
TEST_F(hosts, takes_options)
{
	struct linger linger = { 1, 9 }, l = { 0 };
	struct timeval wait = { 3, 0 }, t = { 0 };
	int plain, tcp, fd, sndbuf, i;
	socklen_t len = sizeof(t);

	enter(A);
	plain = MUST(socket(AF_INET6, SOCK_STREAM, 0));
	tcp = MUST(socket(AF_INET, SOCK_STREAM, 0));
	for (i = 0; i < (int)ARRAY_SIZE(taken); i++)
		ASSERT_EQ(0, set_int(tcp, taken[i].level, taken[i].name, taken[i].value)) {
			TH_LOG("option %d", i);
		}
	MUST(setsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	MUST(setsockopt(tcp, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)));
	MUST(set_int(tcp, SOL_SOCKET, SO_RCVBUF, 50000));
	fd = esp_socket(A, SOCK_STREAM);
	sndbuf = get_int(fd, SOL_SOCKET, SO_SNDBUF);
	ASSERT_EQ(0, set_int(fd, SOL_ESP, ESP_TCP_SOCKET, tcp));
	for (i = 0; i < (int)ARRAY_SIZE(taken); i++)
		EXPECT_EQ(taken[i].value, get_int(fd, taken[i].esp_level, taken[i].esp_name)) {
			TH_LOG("option %d", i);
		}
	MUST(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, &len));
	EXPECT_EQ(wait.tv_sec, t.tv_sec);
	len = sizeof(l);
	MUST(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &len));
	EXPECT_EQ(1, l.l_onoff);
	EXPECT_EQ(9, l.l_linger);
	EXPECT_EQ(100000, get_int(fd, SOL_SOCKET, SO_RCVBUF));
	EXPECT_EQ(sndbuf, get_int(fd, SOL_SOCKET, SO_SNDBUF));
	EXPECT_EQ(1, get_int(fd, SOL_ESP, ESP_NODELAY));
	/* options that are off are taken, too, and the defaults are ESP's */
	ASSERT_EQ(0, set_int(fd, SOL_ESP, ESP_TCP_SOCKET, plain));
	EXPECT_EQ(0, get_int(fd, SOL_ESP, ESP_CORK));
	EXPECT_EQ(0, get_int(fd, SOL_SOCKET, SO_MARK));
	EXPECT_EQ(0, get_int(fd, SOL_SOCKET, SO_KEEPALIVE));
	EXPECT_EQ(get_int(esp_socket(A, SOCK_STREAM), SOL_ESP, ESP_KEEPIDLE),
		  get_int(fd, SOL_ESP, ESP_KEEPIDLE));
}

static const struct {
	int level, name, value;
} lacking[] = {
	{ SOL_SOCKET, SO_TIMESTAMP, 1 },
	{ SOL_SOCKET, SO_TIMESTAMPNS, 1 },
	{ SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_SOFTWARE },
	{ SOL_SOCKET, SO_ZEROCOPY, 1 },
	{ SOL_SOCKET, SO_PEEK_OFF, 0 },
	{ SOL_SOCKET, SO_MAX_PACING_RATE, 1000000 },
	{ IPPROTO_TCP, TCP_SAVE_SYN, 1 },
	{ IPPROTO_TCP, TCP_INQ, 1 },
	{ IPPROTO_TCP, TCP_REPAIR, 1 },
	{ IPPROTO_IP, IP_TRANSPARENT, 1 },
};

/* It takes none if one would have no effect, and of no other socket. */
TEST_F(hosts, refuses_options)
{
	struct sock_filter code = { BPF_RET | BPF_K, 0, 0, ~0u };
	struct sock_fprog filter = { 1, &code };
	int tcp, fd, pid, i, p[2];

	enter(A);
	fd = esp_socket(A, SOCK_STREAM);
	for (i = 0; i < (int)ARRAY_SIZE(lacking); i++) {
		tcp = MUST(socket(AF_INET, SOCK_STREAM, 0));
		MUST(set_int(tcp, SOL_SOCKET, SO_MARK, 7));
		/* a kernel may lack it */
		if (set_int(tcp, lacking[i].level, lacking[i].name, lacking[i].value)) {
			TH_LOG("option %d: %s", i, strerror(errno));
			continue;
		}
		EXPECT_EQ(-1, set_int(fd, SOL_ESP, ESP_TCP_SOCKET, tcp)) {
			TH_LOG("option %d", i);
		}
		EXPECT_EQ(EOPNOTSUPP, errno);
		EXPECT_EQ(0, get_int(fd, SOL_SOCKET, SO_MARK));
		close(tcp);
	}
	tcp = MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(setsockopt(tcp, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)));
	EXPECT_ERRNO(EOPNOTSUPP, set_int(fd, SOL_ESP, ESP_TCP_SOCKET, tcp));
	MUST(setsockopt(tcp, SOL_SOCKET, SO_DETACH_FILTER, &i, sizeof(i)));
	EXPECT_EQ(0, set_int(fd, SOL_ESP, ESP_TCP_SOCKET, tcp));
	EXPECT_ERRNO(EBADF, set_int(fd, SOL_ESP, ESP_TCP_SOCKET, -1));
	EXPECT_ERRNO(ENOTSOCK, set_int(fd, SOL_ESP, ESP_TCP_SOCKET, STDIN_FILENO));
	EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, ESP_TCP_SOCKET, fd));
	EXPECT_ERRNO(EINVAL, set_int(fd, SOL_ESP, ESP_TCP_SOCKET,
				     MUST(socket(AF_INET, SOCK_DGRAM, 0))));
	EXPECT_ERRNO(EXDEV, set_int(esp_socket(B, SOCK_STREAM), SOL_ESP, ESP_TCP_SOCKET, tcp));
	EXPECT_ERRNO(EOPNOTSUPP, set_int(esp_socket(A, SOCK_DGRAM), SOL_ESP, ESP_TCP_SOCKET, tcp));
	make_pair(SOCK_STREAM, p);
	EXPECT_ERRNO(EXDEV, set_int(p[1], SOL_ESP, ESP_TCP_SOCKET, tcp));
	EXPECT_ERRNO(EISCONN, set_int(p[0], SOL_ESP, ESP_TCP_SOCKET, tcp));
	/* another process may have let it listen already */
	fd = listener(A, SOCK_STREAM, TCP_PORT, 5);
	EXPECT_EQ(0, set_int(fd, SOL_ESP, ESP_TCP_SOCKET, tcp));
	/* a socket that is given away gives no more than one connection its mark */
	MUST(set_int(tcp, SOL_SOCKET, SO_MARK, 7));
	fd = esp_socket(A, SOCK_STREAM);
	pid = MUST(fork());
	if (!pid) {
		MUST(setuid(65534));
		_exit(set_int(fd, SOL_ESP, ESP_TCP_SOCKET, tcp) != -1 || errno != EPERM);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(0, get_int(fd, SOL_SOCKET, SO_MARK));
	MUST(set_int(tcp, SOL_SOCKET, SO_MARK, 0));
	pid = MUST(fork());
	if (!pid) {
		MUST(setuid(65534));
		_exit(set_int(fd, SOL_ESP, ESP_TCP_SOCKET, tcp));
	}
	EXPECT_EQ(0, reap(pid));
}

TEST_HARNESS_MAIN
