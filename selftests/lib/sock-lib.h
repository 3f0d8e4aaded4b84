/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The common part of the programs sock-*.c and vt-*.c: two hosts, each a network
 * namespace, with an Ethernet between them, and short functions for sockets.
 *
 *	host A: va 02:00:00:00:00:0a ---veth--- vb 02:00:00:00:00:0b :host B
 *
 * A socket belongs to the namespace in which it was made, so one process is
 * client and server at once. Functions return the system call's result and leave
 * its errno. A function whose failure is worth no test ends the program when it
 * fails.
 */
#ifndef SOCK_LIB_H
#define SOCK_LIB_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/af_esp.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include "kselftest_harness.h"

/* Seconds of a test: enough on an emulated machine that is busy with other work. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#define PORT		2000	/* the servers' port */
#define SHORT		50	/* ms after which nothing more happens */
#define LONG		60000	/* ms within which an expected event happens */

struct host {
	int		ns;
	unsigned int	ifindex;
	char		dev[IFNAMSIZ];
	__u8		mac[6];
};

static struct host hosts[2];
#define A (&hosts[0])
#define B (&hosts[1])

/* End the program if @expr fails: a condition of the test, not the tested property. */
#define MUST(expr) ({							\
	typeof(expr) must_ = (expr);					\
	if (must_ < 0) {						\
		printf("# %s:%d: %s: %s\n", __FILE__, __LINE__, #expr,	\
		       strerror(errno));				\
		exit(KSFT_FAIL);					\
	}								\
	must_;								\
})

/* Expect that @call fails with the errno @number; 0: that it succeeds. */
#define EXPECT_ERRNO(number, call) do {					\
	long ret_ = (call);						\
	int err_ = ret_ < 0 ? errno : 0;				\
									\
	EXPECT_EQ(number, err_)						\
		TH_LOG("%s: %s", #call, strerror(err_));		\
} while (0)

static inline long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static inline long long now_ms(void)
{
	return now_us() / 1000;
}

static inline void nap_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000L };

	nanosleep(&t, NULL);
}

/* Wait until @cond holds, LONG at most. */
#define UNTIL(cond) ({							\
	long long end_ = now_ms() + LONG;				\
	bool ok_;							\
									\
	while (!(ok_ = (cond)) && now_ms() < end_)			\
		usleep(1000);						\
	ok_;								\
})

/* Does the process or thread sleep? It makes only one call that can sleep. */
static inline bool asleep(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

static inline void enter(const struct host *h)
{
	MUST(setns(h->ns, CLONE_NEWNET));
}

static inline void run(const char *format, ...)
{
	char cmd[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(cmd, sizeof(cmd), format, args);
	va_end(args);
	if (system(cmd)) {
		printf("# failed: %s\n", cmd);
		exit(KSFT_FAIL);
	}
}

/* Set an interface up or down. */
static inline void dev_up(const struct host *h, const char *name, bool up)
{
	struct ifreq ifr = {};
	int fd;

	enter(h);
	fd = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", name);
	MUST(ioctl(fd, SIOCGIFFLAGS, &ifr));
	if (up)
		ifr.ifr_flags |= IFF_UP;
	else
		ifr.ifr_flags &= ~IFF_UP;
	MUST(ioctl(fd, SIOCSIFFLAGS, &ifr));
	close(fd);
}

/* Set a host's device up or down. While it is down, nothing arrives there. */
static inline void link_up(const struct host *h, bool up)
{
	dev_up(h, h->dev, up);
}

/* Set a host's sysctl net.esp.NAME. */
static inline void sysctl(const struct host *h, const char *name, int value)
{
	char path[128];
	int fd;

	enter(h);
	snprintf(path, sizeof(path), "/proc/sys/net/esp/%s", name);
	fd = MUST(open(path, O_WRONLY));
	MUST(dprintf(fd, "%d\n", value));
	close(fd);
}

/* Let a connection that only this end still knows end soon, even without an answer. */
static inline void forget_soon(const struct host *h)
{
	sysctl(h, "retries", 3);
	sysctl(h, "rto_max_ms", 20);
}

static inline int read_sysctl(const struct host *h, const char *name)
{
	char path[128];
	int value = -99;
	FILE *f;

	enter(h);
	snprintf(path, sizeof(path), "/proc/sys/net/esp/%s", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%d", &value) != 1) {
		printf("# cannot read %s\n", path);
		exit(KSFT_FAIL);
	}
	fclose(f);
	return value;
}

/* Return a counter of /proc/net/esp/stat. */
static inline long counter(const struct host *h, const char *name)
{
	char key[64];
	long n = -1, v;
	FILE *f;

	enter(h);
	f = fopen("/proc/thread-self/net/esp/stat", "r");
	while (f && fscanf(f, "%63s %ld", key, &v) == 2)
		if (!strcmp(key, name))
			n = v;
	if (f)
		fclose(f);
	if (n < 0) {
		printf("# not in /proc/net/esp/stat: %s\n", name);
		exit(KSFT_FAIL);
	}
	return n;
}

/* Print the counters that are not 0, for the log of a failed test. */
static inline void dump_host(const struct host *h, const char *name)
{
	char key[64];
	FILE *f;
	long v;

	enter(h);
	printf("# %s:", name);
	f = fopen("/proc/thread-self/net/esp/stat", "r");
	while (f && fscanf(f, "%63s %ld", key, &v) == 2)
		if (v)
			printf(" %s %ld", key, v);
	if (f)
		fclose(f);
	printf("\n");
}

static inline void dump_counters(void)
{
	dump_host(A, "host A");
	dump_host(B, "host B");
}

/* MUST() ends the program before the fixture can print the counters. */
static inline void dump_at_exit(int status, void *unused)
{
	if (status == KSFT_FAIL)
		dump_counters();
}

/* Count the sockets that frames can find, from /proc/net/protocols. */
static inline long inuse(const struct host *h)
{
	char line[256];
	long n = -1;
	FILE *f;

	enter(h);
	f = fopen("/proc/thread-self/net/protocols", "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "ESP ", 4))
			sscanf(line, "ESP %*s %ld", &n);
	if (f)
		fclose(f);
	MUST(n);
	return n;
}

static inline void make_host(struct host *h, const char *dev, int last)
{
	MUST(unshare(CLONE_NEWNET));
	h->ns = MUST(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
	snprintf(h->dev, IFNAMSIZ, "%s", dev);
	h->mac[0] = 2;
	h->mac[5] = last;
	dev_up(h, "lo", true);
}

/* A netlink message being built. A nested attribute is closed by a pointer to its start. */
struct message {
	struct nlmsghdr		head;
	struct ifinfomsg	info;
	char			attrs[256];
};

static inline struct nlattr *put_attr(struct message *m, int type,
				      const void *data, int len)
{
	struct nlattr *a = (void *)m + NLMSG_ALIGN(m->head.nlmsg_len);

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((void *)a + NLA_HDRLEN, data, len);
	m->head.nlmsg_len = (void *)a + NLA_ALIGN(a->nla_len) - (void *)m;
	return a;
}

static inline void end_nest(struct message *m, struct nlattr *a)
{
	a->nla_len = (void *)m + m->head.nlmsg_len - (void *)a;
}

static inline void put_dev(struct message *m, const struct host *h,
			   const char *name)
{
	put_attr(m, IFLA_IFNAME, name, strlen(name) + 1);
	if (!strcmp(name, h->dev))
		put_attr(m, IFLA_ADDRESS, h->mac, sizeof(h->mac));
}

/* Send a request in this namespace; the answer goes to @buf. */
static inline void ask(struct message *m, void *buf, size_t len)
{
	struct nlmsghdr *head = buf;
	struct nlmsgerr *err = NLMSG_DATA(head);
	int fd;

	fd = MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	MUST(send(fd, m, m->head.nlmsg_len, 0));
	MUST(recv(fd, buf, len, 0));
	close(fd);
	if (head->nlmsg_type != NLMSG_ERROR)
		return;
	errno = -err->error;
	MUST(err->error);
}

/* Let the device carry ESP, which only loopback and dummy do by themselves. */
static inline void enable(const struct host *h)
{
	char name[sizeof("dev//enable") + IFNAMSIZ];

	snprintf(name, sizeof(name), "dev/%s/enable", h->dev);
	sysctl(h, name, 1);
}

/*
 * Make an interface of host A; a veth's other end is the device of B. Netlink,
 * because starting ip takes longer than most tests.
 */
static inline void make_dev(const char *kind, const char *name)
{
	struct message m = {
		.head.nlmsg_len = NLMSG_LENGTH(sizeof(m.info)),
		.head.nlmsg_type = RTM_NEWLINK,
		.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK,
	};
	struct ifinfomsg there = { .ifi_index = B->ifindex };
	struct nlattr *link, *data, *peer;
	char answer[1024];

	enter(A);
	if (!strcmp(kind, "veth"))
		m.info.ifi_index = A->ifindex;
	put_dev(&m, A, name);
	link = put_attr(&m, IFLA_LINKINFO, "", 0);
	put_attr(&m, IFLA_INFO_KIND, kind, strlen(kind));
	if (!strcmp(kind, "veth")) {
		data = put_attr(&m, IFLA_INFO_DATA, "", 0);
		peer = put_attr(&m, VETH_INFO_PEER, &there, sizeof(there));
		put_dev(&m, B, B->dev);
		put_attr(&m, IFLA_NET_NS_FD, &B->ns, sizeof(B->ns));
		end_nest(&m, peer);
		end_nest(&m, data);
	}
	end_nest(&m, link);
	ask(&m, answer, sizeof(answer));
	if (!strcmp(kind, "veth")) {
		enable(B);
		enable(A);
	}
}

/* Has the kernel noticed that there is a carrier? */
static inline bool running(const struct host *h)
{
	struct message m = {
		.head.nlmsg_len = NLMSG_LENGTH(sizeof(m.info)),
		.head.nlmsg_type = RTM_GETLINK,
		.head.nlmsg_flags = NLM_F_REQUEST,
		.info.ifi_index = h->ifindex,
	};
	static char answer[16384];
	struct nlmsghdr *head = (void *)answer;
	struct rtattr *a;
	int left;

	enter(h);
	ask(&m, answer, sizeof(answer));
	left = head->nlmsg_len - NLMSG_LENGTH(sizeof(m.info));
	for (a = IFLA_RTA(NLMSG_DATA(head)); RTA_OK(a, left);
	     a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_OPERSTATE)
			return *(__u8 *)RTA_DATA(a) == 6;	/* UP */
	return false;
}

/* Wait until the devices run: until then their queues drop all frames. */
static inline void wait_running(void)
{
	MUST(UNTIL(running(A) && running(B)) ? 0 : -1);
	/* the kernel holds RTNL until the queues work; this call waits for RTNL */
	link_up(A, true);
}

/*
 * Make both hosts and the link between them; leave the process on A. The devices
 * get different indices, because the kernel notices a carrier late if the two
 * ends of a veth have the same one.
 */
static inline void make_hosts(void)
{
	on_exit(dump_at_exit, NULL);
	make_host(B, "vb", 0x0b);
	make_host(A, "va", 0x0a);
	A->ifindex = 10;
	B->ifindex = 11;
	make_dev("veth", A->dev);
	link_up(B, true);
	link_up(A, true);
	wait_running();
}

/* Close all sockets of this process. */
static inline void close_all(void)
{
	int fd;

	for (fd = 3; fd < 256; fd++)
		if (fd != A->ns && fd != B->ns)
			close(fd);
}

/*
 * End a test: close all sockets with the link up. Return true if no connection
 * outlives that.
 */
static inline bool leave_hosts(void)
{
	sysctl(A, "time_wait_ms", 1);
	sysctl(B, "time_wait_ms", 1);
	link_up(A, true);
	link_up(B, true);
	close_all();
	return UNTIL(inuse(A) + inuse(B) == 0);
}

static inline int esp_socket(const struct host *h, int type)
{
	enter(h);
	return MUST(socket(AF_ESP, type | SOCK_CLOEXEC, 0));
}

static inline struct sockaddr_esp any(int port)
{
	return (struct sockaddr_esp) {
		.sesp_family = AF_ESP,
		.sesp_port = htons(port),
		.sesp_halen = 6,
	};
}

static inline struct sockaddr_esp at(const struct host *h, int port)
{
	struct sockaddr_esp a = any(port);

	memcpy(a.sesp_addr, h->mac, 6);
	return a;
}

static inline int do_bind(int fd, struct sockaddr_esp a)
{
	return bind(fd, (struct sockaddr *)&a, sizeof(a));
}

static inline int do_connect(int fd, struct sockaddr_esp a)
{
	return connect(fd, (struct sockaddr *)&a, sizeof(a));
}

static inline int do_sendto(int fd, const void *buf, size_t n, int flags,
			    struct sockaddr_esp a)
{
	return sendto(fd, buf, n, flags, (struct sockaddr *)&a, sizeof(a));
}

static inline struct sockaddr_esp sockname(int fd)
{
	struct sockaddr_esp a = {};
	socklen_t len = sizeof(a);

	MUST(getsockname(fd, (struct sockaddr *)&a, &len));
	return a;
}

static inline int peername(int fd, struct sockaddr_esp *a)
{
	socklen_t len = sizeof(*a);

	memset(a, 0, sizeof(*a));
	return getpeername(fd, (struct sockaddr *)a, &len);
}

static inline int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

/* Return an option that is an int; negative: error. */
static inline int get_int(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	if (getsockopt(fd, level, name, &value, &len))
		return -errno;
	return value;
}

static inline int so_error(int fd)
{
	return get_int(fd, SOL_SOCKET, SO_ERROR);
}

static inline void set_timeo(int fd, int name, int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };

	MUST(setsockopt(fd, SOL_SOCKET, name, &t, sizeof(t)));
}

static inline void nonblock(int fd, bool on)
{
	int flags = MUST(fcntl(fd, F_GETFL));

	MUST(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

/* Wait for events; return those that have happened. */
static inline int events(int fd, int want, int ms)
{
	struct pollfd p = { .fd = fd, .events = want };

	MUST(poll(&p, 1, ms));
	return p.revents;
}

static inline struct esp_info get_info(int fd)
{
	struct esp_info info = {};
	socklen_t len = sizeof(info);

	MUST(getsockopt(fd, SOL_ESP, ESP_INFO, &info, &len));
	return info;
}

static inline int queued(int fd, int what)
{
	int n = -1;

	MUST(ioctl(fd, what, &n));
	return n;
}

static inline int listener(const struct host *h, int type, int port, int backlog)
{
	int fd = esp_socket(h, type);

	MUST(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	MUST(do_bind(fd, any(port)));
	MUST(listen(fd, backlog));
	return fd;
}

/* Make a connection from A (fd[0]) to B (fd[1]) through the listener @l. */
static inline void connect_through(int l, int type, int fd[2])
{
	fd[0] = esp_socket(A, type);
	MUST(do_connect(fd[0], at(B, PORT)));
	fd[1] = MUST(accept4(l, NULL, NULL, SOCK_CLOEXEC));
}

static inline void linger(int fd, int seconds)
{
	struct linger l = { 1, seconds };

	MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
}

static inline void make_pair(int type, int fd[2])
{
	int l = listener(B, type, PORT, 1);

	connect_through(l, type, fd);
	close(l);
}

/* Return the byte at a position of the test stream. */
static inline __u8 byte_at(size_t pos)
{
	return pos * 7 + (pos >> 8) * 13 + (pos >> 16) * 3;
}

static inline void fill(void *buf, size_t pos, size_t n)
{
	__u8 *p = buf;
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = byte_at(pos + i);
}

/* Make a file of the first @n bytes of the test stream. */
static inline int stream_file(size_t n)
{
	int fd = MUST(open("/tmp", O_TMPFILE | O_RDWR, 0600));
	char *buf = malloc(n);

	fill(buf, 0, n);
	MUST(pwrite(fd, buf, n, 0));
	free(buf);
	return fd;
}

/* Are these the bytes at @pos of the test stream? */
static inline bool right(const void *buf, size_t pos, size_t n)
{
	const __u8 *p = buf;
	size_t i;

	for (i = 0; i < n; i++) {
		if (p[i] == byte_at(pos + i))
			continue;
		printf("# byte %zu is %#x, not %#x\n", pos + i, p[i],
		       byte_at(pos + i));
		return false;
	}
	return true;
}

#define CHUNK 65536

/*
 * Read @n bytes that begin at @pos of the stream and check them.
 * Return 0, an error, -EPIPE for an early end, -EBADMSG for wrong bytes.
 */
static inline int read_stream(int fd, size_t pos, size_t n)
{
	static __u8 buf[CHUNK];
	size_t end = pos + n;

	while (pos < end) {
		size_t want = end - pos < CHUNK ? end - pos : CHUNK;
		ssize_t got = recv(fd, buf, want, 0);

		if (got < 0)
			return -errno;
		if (!got)
			return -EPIPE;
		if (!right(buf, pos, got))
			return -EBADMSG;
		pos += got;
	}
	return 0;
}

static inline int write_stream(int fd, size_t pos, size_t n)
{
	static __u8 buf[CHUNK];
	size_t end = pos + n;

	while (pos < end) {
		size_t want = end - pos < CHUNK ? end - pos : CHUNK;
		ssize_t put;

		fill(buf, pos, want);
		put = send(fd, buf, want, MSG_NOSIGNAL);
		if (put < 0)
			return -errno;
		pos += put;
	}
	return 0;
}

/* Can data be written? Or is nothing in flight, so that no ACK frees queue space? */
static inline bool writable_or_idle(int fd)
{
	return events(fd, POLLOUT, 0) || queued(fd, SIOCOUTQ) == queued(fd, SIOCOUTQNSD);
}

/*
 * Wait until queue space can become free no more, or is free. Packets in flight may arrive
 * and free it. The receiver reports its free space when a probe asks (rule 20).
 */
static inline void settle(int fd)
{
	__u64 answers;

	UNTIL(writable_or_idle(fd));
	answers = get_info(fd).stats.rx_empty;
	UNTIL(events(fd, POLLOUT, 0) || get_info(fd).stats.rx_empty > answers);
	UNTIL(writable_or_idle(fd));
}

/* Write without waiting until the socket takes no more; return the bytes written. */
static inline size_t stuff(int fd, size_t pos)
{
	static __u8 buf[CHUNK];
	bool again = false;
	size_t start = pos;

	for (;;) {
		ssize_t put;

		fill(buf, pos, CHUNK);
		put = send(fd, buf, CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (put > 0) {
			pos += put;
			again = false;
			continue;
		}
		if (errno != EAGAIN)
			MUST(put);
		if (again)
			return pos - start;
		settle(fd);
		again = true;
	}
}

/*
 * Move @n bytes from one end to the other, both in this process. Return 0, an
 * error as read_stream() does, or -ETIMEDOUT if nothing moves for LONG.
 */
static inline int transfer(int from, int to, size_t n)
{
	static __u8 out[CHUNK], in[CHUNK];
	size_t sent = 0, got = 0;

	while (got < n) {
		struct pollfd p[2] = {
			{ .fd = sent < n ? from : -1, .events = POLLOUT },
			{ .fd = to, .events = POLLIN },
		};
		size_t want;
		ssize_t r;

		if (!MUST(poll(p, 2, LONG)))
			return -ETIMEDOUT;
		if (p[0].revents) {
			want = n - sent < CHUNK ? n - sent : CHUNK;
			fill(out, sent, want);
			r = send(from, out, want, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (r < 0 && errno != EAGAIN)
				return -errno;
			sent += r > 0 ? r : 0;
		}
		if (p[1].revents) {
			r = recv(to, in, CHUNK, MSG_DONTWAIT);
			if (r < 0 && errno != EAGAIN)
				return -errno;
			if (!r)
				return -EPIPE;
			if (r > 0 && !right(in, got, r))
				return -EBADMSG;
			got += r > 0 ? r : 0;
		}
	}
	return 0;
}

/* Is the connection alive in both directions? */
static inline bool alive(int fd[2])
{
	return !transfer(fd[0], fd[1], 3000) && !transfer(fd[1], fd[0], 3000);
}

static int alarms;

static inline void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* Let no call wait for ever, so that a test that fails says where. */
static inline void impatient(int fd)
{
	set_timeo(fd, SO_RCVTIMEO, LONG);
	set_timeo(fd, SO_SNDTIMEO, LONG);
}

/* Wait for a child; return its exit status, or -1 if it was killed. */
static inline int reap(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Count the process's SIGALRM in alarms; @restart: calls go on after it. */
static inline void on_alarm_count(bool restart)
{
	struct sigaction sa = {
		.sa_handler = on_alarm,
		.sa_flags = restart ? SA_RESTART : 0,
	};

	sigaction(SIGALRM, &sa, NULL);
}

static inline void *send_alarm(void *tid)
{
	if (UNTIL(asleep((pid_t)(long)tid)))
		syscall(SYS_tgkill, getpid(), (pid_t)(long)tid, SIGALRM);
	return NULL;
}

/* Interrupt the next call of this thread as soon as it sleeps; @restart: it goes on after that. */
static inline void alarm_in_call(bool restart)
{
	long tid = syscall(SYS_gettid);
	pthread_t t;

	on_alarm_count(restart);
	MUST(-pthread_create(&t, NULL, send_alarm, (void *)tid));
	pthread_detach(t);
}

/* In a child: interrupt the parent's call, which goes on and sleeps again. */
static inline void interrupt_parent(void)
{
	pid_t parent = getppid();

	MUST(UNTIL(asleep(parent)) ? 0 : -1);
	kill(parent, SIGALRM);
	MUST(UNTIL(asleep(parent)) ? 0 : -1);
}

#endif
