// SPDX-License-Identifier: GPL-2.0-only
// LIBS: -lpthread
/*
 * For tests of "esp run": use TCP in all ways in which programs wait and connect.
 *
 *	run-calls serve WAY ADDR PORT N		accepts N connections, returns their data
 *	run-calls call WAY ADDR PORT		connects, and compares the returned data
 *
 * Both print the connection's addresses with ports, "OWN PEER". A result that differs from TCP's
 * ends the program with a message.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES	300000

#define must(condition) do { if (!(condition)) err(1, "line %d: %s", __LINE__, #condition); } while (0)

union any {
	struct sockaddr sa;
	struct sockaddr_storage ss;
};

static void print_name(int fd, bool peer)
{
	socklen_t len = sizeof(union any);
	char host[64], port[8];
	union any a;

	must(!(peer ? getpeername : getsockname)(fd, &a.sa, &len));
	must(a.sa.sa_family == AF_INET ? len == sizeof(struct sockaddr_in) :
					 len == sizeof(struct sockaddr_in6));
	must(!getnameinfo(&a.sa, len, host, sizeof(host), port, sizeof(port),
			  NI_NUMERICHOST | NI_NUMERICSERV));
	printf("%s %s%s", host, port, peer ? "\n" : " ");
	fflush(stdout);
}

static int option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int v = -1;

	must(!getsockopt(fd, level, name, &v, &len) && len == sizeof(v));
	return v;
}

static void set(int fd, int level, int name, int v)
{
	must(!setsockopt(fd, level, name, &v, sizeof(v)));
}

/* Fail with the error of a connection that the peer has reset meanwhile. */
static void not_reset(int fd)
{
	errno = option(fd, SOL_SOCKET, SO_ERROR);
	must(!errno);
}

/* Read and set the options that programs use. */
static void options(int fd, int family)
{
	struct tcp_info info = { 0 };
	char text[64];
	socklen_t len = sizeof(info);

	must(option(fd, SOL_SOCKET, SO_DOMAIN) == family);
	must(option(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM);
	must(option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP);
	not_reset(fd);
	must(!option(fd, SOL_SOCKET, SO_ACCEPTCONN));
	must(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	not_reset(fd);
	must(info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
	must(info.tcpi_snd_mss > 0);
	set(fd, IPPROTO_TCP, TCP_NODELAY, 0);
	must(!option(fd, IPPROTO_TCP, TCP_NODELAY));
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	must(option(fd, IPPROTO_TCP, TCP_NODELAY));
	set(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 77);
	must(option(fd, IPPROTO_TCP, TCP_KEEPIDLE) == 77);
	if (family == AF_INET) {
		set(fd, IPPROTO_IP, IP_TOS, 0x10);
		len = sizeof(text);
		must(!getsockopt(fd, IPPROTO_IP, IP_OPTIONS, text, &len) && !len);
	} else {
		set(fd, IPPROTO_IPV6, IPV6_TCLASS, 0x10);
	}
	must(setsockopt(fd, IPPROTO_TCP, TCP_ULP, "nosuch", 6) && errno);
	len = sizeof(text);
	must(!getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, text, &len) && len);
}

static int make(const char *addr, const char *port, union any *a, socklen_t *len)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *info;
	int fd;

	must(!getaddrinfo(addr, port, &hints, &info));
	memcpy(a, info->ai_addr, info->ai_addrlen);
	*len = info->ai_addrlen;
	fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(fd >= 0);
	freeaddrinfo(info);
	return fd;
}

/*
 * Servers
 */

/* Return the bytes to the peer until it has shut down its direction. */
static void echo(int fd)
{
	char buf[65536];
	ssize_t n, at, sent;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n; at += sent) {
			sent = write(fd, buf + at, n - at);
			must(sent > 0);
		}
	}
	must(!n);
}

static void serve(int fd)
{
	union any a;
	socklen_t len = sizeof(a);

	must(!getpeername(fd, &a.sa, &len));
	fcntl(fd, F_SETFL, 0);
	print_name(fd, false);
	print_name(fd, true);
	options(fd, a.sa.sa_family);
	echo(fd);
	must(!close(fd));
}

/* Accept a connection; the address of accept() must be that of getpeername(). */
static int take(int listener)
{
	union any a, b;
	socklen_t alen = sizeof(a), blen = sizeof(b);
	int fd;

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	fd = accept(listener, &a.sa, &alen);
	if (fd < 0)
		return fd;
	must(!getpeername(fd, &b.sa, &blen) && alen == blen && !memcmp(&a, &b, alen));
	return fd;
}

static void wait_poll(int fd)
{
	struct pollfd pfd[2] = { { .fd = -1 }, { .fd = fd, .events = POLLIN } };

	must(poll(pfd, 2, -1) == 1 && pfd[1].revents == POLLIN && !pfd[0].revents);
}

static void wait_ppoll(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	sigset_t none;

	sigemptyset(&none);
	must(ppoll(&pfd, 1, NULL, &none) == 1 && pfd.revents == POLLIN);
}

static void wait_select(int fd)
{
	struct timeval t = { 600, 0 };
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd, &in);
	FD_SET(1, &out);
	must(select(fd + 1, &in, NULL, NULL, &t) == 1 && FD_ISSET(fd, &in));
#ifdef __GLIBC__	/* musl's leaves it as it was */
	must(t.tv_sec < 600);
#endif
	/* select() must work for the other sets, too, while nothing comes */
	t = (struct timeval){ 0, 0 };
	must(select(fd + 1, NULL, &out, NULL, &t) == 1 && FD_ISSET(1, &out));
}

/*
 * Programs give select() the limit of descriptors. The set is smaller, and ends where the memory
 * ends: what is behind it must not be read.
 */
static void wait_wide(int fd)
{
	long page = sysconf(_SC_PAGESIZE);
	char *room = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	fd_set *set = (fd_set *)(room + page - sizeof(*set));

	must(room != MAP_FAILED && !mprotect(room + page, page, PROT_NONE));
	FD_SET(fd, set);
	must(select(1048576, set, NULL, NULL, NULL) == 1 && FD_ISSET(fd, set));
	must(!munmap(room, 2 * page));
}

static void wait_pselect(int fd)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	must(pselect(fd + 1, &in, NULL, NULL, NULL, NULL) == 1 && FD_ISSET(fd, &in));
}

static int epfd = -1;

static pid_t sharer;

/* A process that does nothing keeps all files open, so that they don't leave epoll by close(). */
static void share(void)
{
	sharer = fork();
	must(sharer >= 0);
	if (!sharer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		exit(0);
	}
}

static void wait_epoll(int fd)
{
	struct epoll_event e;

	must(epoll_wait(epfd, &e, 1, -1) == 1 && e.data.fd == fd);
	must(e.events == EPOLLIN || (e.events & EPOLLHUP));
}

static void epoll_for(int fd, unsigned int how)
{
	struct epoll_event e = { .events = EPOLLIN | how, .data.fd = fd };

	epfd = epoll_create1(EPOLL_CLOEXEC);
	must(epfd >= 0 && !epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e));
	if (how & EPOLLEXCLUSIVE)
		return;
	must(!epoll_ctl(epfd, EPOLL_CTL_DEL, fd, &e) && !epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &e));
	must(!epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &e));
}

static void *thread(void *arg)
{
	int fd = take(*(int *)arg);

	must(fd >= 0);
	serve(fd);
	return NULL;
}

static void serve_threads(int listener, int n)
{
	pthread_t threads[16];
	int i;

	for (i = 0; i < n; i++)
		must(!pthread_create(&threads[i], NULL, thread, &listener));
	for (i = 0; i < n; i++)
		must(!pthread_join(threads[i], NULL));
}

/* Each child accepts one connection, the parent none. */
static void serve_children(int listener, int n)
{
	int i, status, fd;

	for (i = 0; i < n; i++) {
		if (fork())
			continue;
		fd = take(listener);
		must(fd >= 0);
		serve(fd);
		exit(0);
	}
	must(!close(listener));
	for (i = 0; i < n; i++)
		must(wait(&status) > 0 && !status);
}

static volatile sig_atomic_t signals;

static void on_signal(int sig)
{
	signals += !!sig;
}

/* Send SIGALRM each @us, or no more with 0; its handler has these flags. */
static void signal_each(int us, int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };
	struct itimerval t = { { 0, us }, { 0, us } };

	must(!sigaction(SIGALRM, &sa, NULL) && !setitimer(ITIMER_REAL, &t, NULL));
}

static void on_signal_once(int sig)
{
	on_signal(sig);
	signal(sig, SIG_DFL);
}

/* The handler's only signal must end accept(), although the handler is removed by then. */
static void interrupted_once(int listener, void (*handler)(int sig), int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };
	struct itimerval t = { .it_value = { 0, 300000 } };

	signals = 0;
	must(!sigaction(SIGALRM, &sa, NULL) && !setitimer(ITIMER_REAL, &t, NULL));
	must(take(listener) < 0 && errno == EINTR && signals == 1);
	must(!sigaction(SIGALRM, NULL, &sa) && sa.sa_handler == SIG_DFL);
}

/* A signal must interrupt accept() if its handler lacks SA_RESTART. */
static void serve_with_signals(int listener, int n)
{
	int fd, quiet = socket(AF_INET, SOCK_STREAM, 0);

	/* no client connects to this listener */
	must(quiet >= 0 && !listen(quiet, 1));
	signal_each(10000, 0);
	must(take(quiet) < 0 && errno == EINTR && signals);
	signal_each(0, 0);
	interrupted_once(quiet, on_signal, SA_RESETHAND);
	interrupted_once(quiet, on_signal_once, 0);
	must(!close(quiet));
	for (signals = 0; n; n--) {
		signal_each(1000, SA_RESTART);
		fd = take(listener);
		signal_each(0, SA_RESTART);
		must(fd >= 0);
		serve(fd);
	}
	/* at least one connection was not there at once, so accept() waited through signals */
	must(signals);
}

/*
 * Shut the listener down from another thread. That must wake the main thread and the child from
 * accept(), and no process may listen any more.
 */
static void *shut(void *arg)
{
	usleep(200000);
	must(!shutdown(*(int *)arg, SHUT_RDWR));
	return NULL;
}

static void serve_until_shut(int listener, int n)
{
	pthread_t thread;
	int fd, status;
	pid_t child;

	for (; n; n--) {
		fd = take(listener);
		must(fd >= 0);
		serve(fd);
	}
	child = fork();
	must(child >= 0);
	if (!child) {
		must(take(listener) < 0 && errno == EINVAL);
		exit(0);
	}
	must(!pthread_create(&thread, NULL, shut, &listener));
	must(take(listener) < 0 && errno == EINVAL);
	must(!pthread_join(thread, NULL));
	must(wait(&status) == child && !status);
	/* wait until the test has looked and kills this process */
	pause();
}

/* The connection lives on in another program, as sshd's does. */
static void serve_by_exec(int listener, char *self)
{
	char number[12], way[] = "inherited";
	char *args[] = { self, way, number, NULL };
	int status, fd = take(listener);

	must(fd >= 0);
	snprintf(number, sizeof(number), "%d", fd);
	if (!fork()) {
		must(!fcntl(fd, F_SETFD, 0));
		execv("/proc/self/exe", args);
		err(1, "exec");
	}
	must(!close(fd));
	must(wait(&status) > 0 && !status);
}

/*
 * Another program gets the listener by exec(), and accepts, as in nginx's upgrade. This process has
 * waited before, and keeps the listener.
 */
static void serve_handed(int listener, int n, char *self)
{
	char number[12], count[12], way[] = "handed";
	char *args[] = { self, way, number, count, NULL };
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	int status;

	must(poll(&pfd, 1, 0) >= 0);
	snprintf(number, sizeof(number), "%d", listener);
	snprintf(count, sizeof(count), "%d", n);
	if (!fork()) {
		must(!fcntl(listener, F_SETFD, 0));
		execv("/proc/self/exe", args);
		err(1, "exec");
	}
	must(wait(&status) > 0 && !status);
}

static int pass[2] = { -1, -1 };	/* to the process that gets the listener */

/* Send the listener to a process, or receive it with @fd < 0. Returns the received one. */
static int pass_on(int fd)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char c = 0;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int got = -1;

	if (fd >= 0) {
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.hdr), &fd, sizeof(fd));
		must(sendmsg(pass[0], &msg, 0) == 1);
	} else {
		must(recvmsg(pass[1], &msg, 0) == 1);
		memcpy(&got, CMSG_DATA(&control.hdr), sizeof(got));
	}
	return got;
}

static void serve_all(const char *way, int listener, int n, char *self);

/* A process that was there before the listener is to serve. */
static void prepare_other(int n, char *self)
{
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pass));
	if (fork())
		return;
	serve_all("accept", pass_on(-1), n, self);
	exit(0);
}

static void serve_by_message(int listener)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	int status;

	must(poll(&pfd, 1, 0) >= 0);
	pass_on(listener);
	must(wait(&status) > 0 && !status);
}

/*
 * A pipe gets the number of a listener that was closed, and the new listener gets what that one had.
 * poll() must tell which of both has an event.
 */
static int rebound(int listener)
{
	socklen_t len = sizeof(union any);
	struct pollfd pfd[2] = { { .fd = listener, .events = POLLIN } };
	union any a;
	int p[2], again;

	must(!getsockname(listener, &a.sa, &len) && !close(listener));
	must(socket(a.sa.sa_family, SOCK_STREAM, 0) == listener && !listen(listener, 1));
	must(!poll(pfd, 1, 0) && !close(listener));
	must(!pipe(p) && p[0] == listener);
	again = socket(a.sa.sa_family, SOCK_STREAM, 0);
	must(again >= 0);
	set(again, SOL_SOCKET, SO_REUSEADDR, 1);
	must(!bind(again, &a.sa, len) && !listen(again, 16));
	pfd[1] = (struct pollfd){ .fd = again, .events = POLLIN };
	must(poll(pfd, 2, -1) == 1 && !pfd[0].revents && pfd[1].revents == POLLIN);
	return again;
}

/* A child of vfork() puts another listener on the number of this one, in its own table. */
static void copy_in_vfork(int listener)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int status, other = socket(AF_INET, SOCK_STREAM, 0);
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	pid_t child;

	must(other >= 0 && !bind(other, (struct sockaddr *)&loopback, sizeof(loopback)));
	must(!listen(other, 1) && poll(&pfd, 1, 0) >= 0);
	child = vfork();
	if (!child)
		_exit(dup2(other, listener) != listener);
	must(child > 0 && wait(&status) == child && !status && !close(other));
}

static void serve_all(const char *way, int listener, int n, char *self)
{
	static const struct {
		const char *way;
		void (*wait)(int fd);
		unsigned int epoll;
	} ways[] = {
		{ "accept",	NULL, 0 },
		{ "poll",	wait_poll, 0 },
		{ "ppoll",	wait_ppoll, 0 },
		{ "select",	wait_select, 0 },
		{ "pselect",	wait_pselect, 0 },
		{ "wide",	wait_wide, 0 },
		{ "epoll",	wait_epoll, 0 },
		{ "edge",	wait_epoll, EPOLLET },
		{ "exclusive",	wait_epoll, EPOLLEXCLUSIVE },
		{ "shared",	wait_epoll, 0 },
	};
	int fd, nothing = 0;
	bool waits = false;	/* it is in an epoll instance already */
	size_t i;

	if (!strcmp(way, "threads"))
		return serve_threads(listener, n);
	if (!strcmp(way, "children"))
		return serve_children(listener, n);
	if (!strcmp(way, "signals"))
		return serve_with_signals(listener, n);
	if (!strcmp(way, "shutdown"))
		return serve_until_shut(listener, n);
	if (!strcmp(way, "handed"))
		return serve_handed(listener, n, self);
	if (!strcmp(way, "message"))
		return serve_by_message(listener);
	if (!strcmp(way, "early") || !strcmp(way, "earlier")) {
		must(!fcntl(listener, F_SETFL, O_NONBLOCK));
		fd = take(listener);
		must(fd >= 0 || errno == EAGAIN);
		if (fd >= 0) {
			serve(fd);
			n--;
		}
		way = "epoll";
		waits = true;
	}
	if (!strcmp(way, "moved")) {	/* the copy waits already when the original is closed */
		fd = fcntl(listener, F_DUPFD, 50);
		must(fd >= 50 && !fcntl(fd, F_SETFL, O_NONBLOCK));
		epoll_for(fd, 0);
		must(!close(listener));
		listener = fd;
		way = "epoll";
		waits = true;
	}
	if (!strcmp(way, "rebound")) {
		listener = rebound(listener);
		way = "poll";
	}
	if (!strcmp(way, "flags")) {	/* they are wrong; musl's accept4() ignores that */
		must(accept4(listener, NULL, NULL, 1) < 0 && errno == EINVAL);
		way = "accept";
	}
	if (!strcmp(way, "vfork")) {
		copy_in_vfork(listener);
		way = "poll";
	}
	if (!strcmp(way, "dup")) {
		must(dup2(listener, 40) == 40);
		listener = 40;
		way = "poll";
	}
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(way, ways[i].way))
			break;
	}
	if (i == sizeof(ways) / sizeof(ways[0])) {
		must(!strcmp(way, "exec"));
		while (n--)
			serve_by_exec(listener, self);
		return;
	}
	if (ways[i].wait)
		must(!fcntl(listener, F_SETFL, O_NONBLOCK));
	if (ways[i].wait == wait_epoll && !waits)
		epoll_for(listener, ways[i].epoll);
	if (!strcmp(way, "shared"))
		share();
	while (n) {
		if (ways[i].wait)
			ways[i].wait(listener);
		/* an edge is reported once, so accept all connections */
		while ((fd = take(listener)) >= 0) {
			serve(fd);
			if (!--n)
				goto out;
			if (!ways[i].wait)
				break;
		}
		must(fd >= 0 || errno == EAGAIN);
		/* the process must not be woken for nothing again and again */
		must(nothing++ < 20);
	}
out:
	if (sharer > 0)
		kill(sharer, SIGKILL);
}

static void server(char **argv)
{
	int listener, first, n = atoi(argv[5]);
	socklen_t len;
	union any a;

	if (!strcmp(argv[2], "message"))
		prepare_other(n, argv[0]);
	listener = make(argv[3], argv[4], &a, &len);
	set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!strcmp(argv[2], "early") || !strcmp(argv[2], "earlier"))	/* as Boost.Asio does */
		epoll_for(listener, 0);
	if (!strcmp(argv[2], "earlier")) {	/* in two instances; it waits by the first one */
		first = epfd;
		epoll_for(listener, 0);
		epfd = first;
	}
	must(!bind(listener, &a.sa, len) && !listen(listener, 16));
	must(option(listener, SOL_SOCKET, SO_ACCEPTCONN));
	must(option(listener, SOL_SOCKET, SO_DOMAIN) == a.sa.sa_family);
	serve_all(argv[2], listener, n, argv[0]);
	close(listener);
}

/*
 * Clients
 */

/* Write; TCP ignores an address in sendto(). */
static void *writer(void *arg)
{
	socklen_t len = sizeof(union any);
	char *data = malloc(BYTES);
	int fd = *(int *)arg;
	size_t at = 0, i;
	union any a;
	ssize_t n;

	must(data && !getpeername(fd, &a.sa, &len));
	for (i = 0; i < BYTES; i++)
		data[i] = i * i >> 3;
	for (i = 0; at < BYTES; i++, at += n) {
		struct iovec iov = { data + at, BYTES - at < 10000 ? BYTES - at : 10000 };
		struct msghdr msg = { .msg_name = &a, .msg_namelen = len, .msg_iov = &iov,
				      .msg_iovlen = 1 };

		if (i % 2)
			n = sendto(fd, iov.iov_base, iov.iov_len, MSG_NOSIGNAL, &a.sa, len);
		else
			n = sendmsg(fd, &msg, MSG_NOSIGNAL);
		must(n > 0);
	}
	must(!shutdown(fd, SHUT_WR));
	free(data);
	return NULL;
}

static void compare(int fd)
{
	pthread_t thread;
	size_t at = 0;
	char buf[4096];
	ssize_t n, i;

	must(!pthread_create(&thread, NULL, writer, &fd));
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		for (i = 0; i < n; i++, at++)
			must(buf[i] == (char)(at * at >> 3));
	}
	/* A socket tells an error once: if the writer was told, it says so, and this is the end. */
	must(n >= 0);
	must(!pthread_join(thread, NULL));
	errno = 0;
	must(at == BYTES);
}

#define EPOLLS	5
#define HIGH	16400

/* Ways to connect by epoll: in how many instances the socket is before, and how. */
static const struct by_epoll {
	const char *way;
	int n;
	unsigned int how;
} by_epoll[] = {
	{ "epoll",	1, 0 },
	{ "edge",	1, EPOLLET },
	{ "oneshot",	1, EPOLLONESHOT },
	{ "exclusive",	1, EPOLLEXCLUSIVE },
	{ "two",	2, 0 },
	{ "many",	EPOLLS, 0 },
	{ "high",	1, 0 },
};

static int epfds[EPOLLS];

static void add_to_epolls(int fd, const struct by_epoll *by)
{
	struct epoll_event e = { .events = EPOLLOUT | by->how };
	int i;

	for (i = 0; i < by->n; i++) {
		e.data.fd = 1000 + fd + i;
		epfds[i] = epoll_create1(0);
		must(epfds[i] >= 0 && !epoll_ctl(epfds[i], EPOLL_CTL_ADD, fd, &e));
	}
}

/* Each instance must report the socket, with the data that it was given. */
static void wait_writable(int fd, const struct by_epoll *by)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	struct epoll_event e;
	int i;

	if (!by)
		must(poll(&pfd, 1, -1) == 1 && (pfd.revents & POLLOUT));
	for (i = 0; by && i < by->n; i++) {
		must(epoll_wait(epfds[i], &e, 1, -1) == 1 && e.data.fd == 1000 + fd + i);
		must(e.events & EPOLLOUT);
	}
}

/* Use the lower descriptors, so that the socket has a number of HIGH at least. */
static void use_low(void)
{
	struct rlimit limit = { HIGH + 100, HIGH + 100 };
	int fd;

	must(!setrlimit(RLIMIT_NOFILE, &limit));
	do {
		fd = dup(0);
		must(fd >= 0);
	} while (fd < HIGH);
}

/*
 * Go on in a child of fork(), which has a child of vfork() first. Then a socket, whose number the
 * client's gets, is in more epoll instances than are remembered. That must be forgotten.
 */
static void fork_first(void)
{
	int i, status, fd = socket(AF_INET, SOCK_STREAM, 0);
	struct epoll_event e = { .events = EPOLLIN };
	pid_t child = fork();

	must(fd >= 0 && child >= 0);
	if (child) {
		must(wait(&status) == child);
		exit(!!status);
	}
	child = vfork();
	if (!child)
		_exit(dup2(fd, 40) != 40 || close(fd) || socket(AF_INET, SOCK_STREAM, 0) != fd);
	must(child > 0 && wait(&status) == child && !status);
	for (i = 0; i < EPOLLS; i++)
		must(!epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, fd, &e));
	must(!close(fd));
}

static void client(char **argv)
{
	const struct by_epoll *by = NULL;
	bool block = !strcmp(argv[2], "block");
	int fd, flags, error, copy = -1;
	union any a, own;
	socklen_t len, own_len = sizeof(own);
	size_t i;

	for (i = 0; i < sizeof(by_epoll) / sizeof(by_epoll[0]); i++) {
		if (!strcmp(argv[2], by_epoll[i].way))
			by = &by_epoll[i];
	}
	if (!strcmp(argv[2], "high"))
		use_low();
	if (!strcmp(argv[2], "forked")) {
		fork_first();
		block = true;
	}
	alarm(100);
	fd = make(argv[3], argv[4], &a, &len);

	if (!strcmp(argv[2], "bound")) {
		memset(&own, 0, sizeof(own));
		own.sa.sa_family = a.sa.sa_family;
		must(!bind(fd, &own.sa, len) && !getsockname(fd, &own.sa, &own_len));
		block = true;
	}
	must(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 500, 0 },
			 sizeof(struct timeval)));
	if (!strcmp(argv[2], "signals")) {
		must(!fcntl(fd, F_SETOWN, getpid()) && !fcntl(fd, F_SETSIG, SIGURG));
		must(!fcntl(fd, F_SETFL, O_ASYNC));
		block = true;
	}
	if (!block)
		must(!fcntl(fd, F_SETFL, O_NONBLOCK));
	if (by)
		add_to_epolls(fd, by);
	if (!strcmp(argv[2], "dup"))
		copy = dup(fd);
	else if (!strcmp(argv[2], "dup2"))
		copy = dup2(fd, 100);
	else if (!strcmp(argv[2], "fcntl"))
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	if (!strcmp(argv[2], "moved")) {
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 100);
		must(copy >= 100 && !close(fd));
		fd = copy;
		copy = -1;
	}
	if (connect(fd, &a.sa, len)) {
		if (block || errno != EINPROGRESS)
			err(2, "connect");
		wait_writable(fd, by);
		error = option(fd, SOL_SOCKET, SO_ERROR);
		if (error) {
			errno = error;
			err(2, "connect");
		}
	} else if (!block) {
		wait_writable(fd, by);
	}
	must(!connect(fd, &a.sa, len) || errno == EISCONN);
	if (copy >= 0) {	/* it is connected, too */
		own_len = sizeof(own);
		must(!getpeername(copy, &own.sa, &own_len) && !close(copy));
	}
	flags = fcntl(fd, F_GETFL);
	must(block == !(flags & O_NONBLOCK) && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	if (!strcmp(argv[2], "signals"))
		must((flags & O_ASYNC) && fcntl(fd, F_GETOWN) == getpid() &&
		     fcntl(fd, F_GETSIG) == SIGURG);
	must(!fcntl(fd, F_SETFL, 0));
	print_name(fd, false);
	print_name(fd, true);
	if (!strcmp(argv[2], "bound")) {
		union any now;

		len = sizeof(now);
		must(!getsockname(fd, &now.sa, &len));
		must(((struct sockaddr_in *)&now)->sin_port ==
		     ((struct sockaddr_in *)&own)->sin_port);
	}
	options(fd, a.sa.sa_family);
	compare(fd);
	must(sendto(fd, "", 1, MSG_NOSIGNAL, &a.sa, len) < 0 && errno == EPIPE);
	must(!close(fd));
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "serve"))
		server(argv);
	else if (argc == 5 && !strcmp(argv[1], "call"))
		client(argv);
	else if (argc == 3 && !strcmp(argv[1], "inherited"))
		serve(atoi(argv[2]));
	else if (argc == 4 && !strcmp(argv[1], "handed"))
		serve_all("accept", atoi(argv[2]), atoi(argv[3]), argv[0]);
	else
		errx(1, "see its first lines");
	return 0;
}
