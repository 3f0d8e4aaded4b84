// SPDX-License-Identifier: GPL-2.0-only
/*
 * sock_diag: lists that don't fit into one message, while sockets come and go; and
 * SOCK_DESTROY of sockets in each state, by processes with and without the right.
 */
#include <linux/esp_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include "sock-hosts.h"
#include "sock-pair.h"

#define MANY	400	/* of each kind; a message takes a dozen or two */
#define NOBODY	65534

static __u64 cookie_of(int fd)
{
	socklen_t len = sizeof(__u64);
	__u64 cookie = 0;

	MUST(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len));
	return cookie;
}

static __u64 cookie_in(const struct esp_diag_msg *m)
{
	return m->cookie[0] | (__u64)m->cookie[1] << 32;
}

/* A list that is being read. */
struct list {
	int			fd;
	int			left;	/* bytes of @buf */
	struct nlmsghdr		*head;
	unsigned int		messages;
	bool			done;
	char			buf[8192] __attribute__((aligned(8)));
};

/* Ask for a list of the sockets in the present namespace. */
static void list_ask(struct list *l)
{
	struct {
		struct nlmsghdr		head;
		struct esp_diag_req	req;
	} question = {
		.head = {
			.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		},
		.req = { .sdiag_family = AF_ESP },
	};

	l->fd = MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
	l->left = 0;
	l->messages = 0;
	l->done = false;
	MUST(send(l->fd, &question, sizeof(question), 0));
}

static void list_begin(struct list *l, const struct host *h)
{
	enter(h);
	list_ask(l);
}

/*
 * Return the next socket of a list, NULL at the end. *@more: it is the first of a message of the
 * kernel.
 */
static const struct esp_diag_msg *list_next(struct list *l, bool *more)
{
	const struct esp_diag_msg *m;

	*more = false;
	while (!l->done) {
		if (!l->left || !NLMSG_OK(l->head, l->left)) {
			l->left = MUST(recv(l->fd, l->buf, sizeof(l->buf), 0));
			l->head = (void *)l->buf;
			l->messages++;
			*more = true;
			continue;
		}
		MUST(l->head->nlmsg_type == NLMSG_ERROR ? -1 : 0);
		if (l->head->nlmsg_type == NLMSG_DONE) {
			l->done = true;
			break;
		}
		m = NLMSG_DATA(l->head);
		l->head = NLMSG_NEXT(l->head, l->left);
		return m;
	}
	close(l->fd);
	return NULL;
}

/* Find the host's socket with this cookie. */
static bool find(const struct host *h, __u64 cookie, struct esp_diag_msg *found)
{
	const struct esp_diag_msg *m;
	static struct list l;
	bool here = false, more;

	list_begin(&l, h);
	while ((m = list_next(&l, &more))) {
		if (cookie_in(m) != cookie)
			continue;
		*found = *m;
		here = true;
	}
	return here;
}

static int state_of(const struct host *h, __u64 cookie)
{
	struct esp_diag_msg m;

	return find(h, cookie, &m) ? m.state : -1;
}

/* Read an attribute of a socket from a list; false: no such socket, or it has none. */
static bool attribute_of(struct list *l, __u64 cookie, int type, void *value, size_t len)
{
	const struct esp_diag_msg *m;
	bool here = false, more;

	while ((m = list_next(l, &more))) {
		const struct nlmsghdr *head = (const void *)((const char *)m - NLMSG_HDRLEN);
		struct rtattr *a = (void *)((char *)m + NLMSG_ALIGN(sizeof(*m)));
		int n = NLMSG_PAYLOAD(head, sizeof(*m));

		if (cookie_in(m) != cookie)
			continue;
		for (; RTA_OK(a, n); a = RTA_NEXT(a, n)) {
			if (a->rta_type != type || RTA_PAYLOAD(a) != len)
				continue;
			memcpy(value, RTA_DATA(a), len);
			here = true;
		}
	}
	return here;
}

/* Read a socket's timers, by ESP_DIAG_T_*. */
static bool timers_of(const struct host *h, __u64 cookie, __u64 *left)
{
	static struct list l;

	list_begin(&l, h);
	return attribute_of(&l, cookie, ESP_DIAG_TIMERS, left, ESP_DIAG_T_MAX * sizeof(*left));
}

/* Read a socket's state as a process with or without CAP_NET_ADMIN learns it. */
static bool info_of(const struct host *h, __u64 cookie, bool right, struct esp_info *info)
{
	static struct list l;
	bool here;

	enter(h);
	MUST(seteuid(right ? 0 : NOBODY));
	list_ask(&l);
	here = attribute_of(&l, cookie, ESP_DIAG_INFO, info, sizeof(*info));
	MUST(seteuid(0));
	return here;
}

/* A socket that stays while a list is read, and how often the list has it. */
struct seen {
	__u64	cookie;
	int	times;
};

static int sighted(struct seen *s, int n, __u64 cookie)
{
	int i;

	for (i = 0; i < n; i++)
		if (s[i].cookie == cookie)
			return ++s[i].times;
	return 0;
}

static int dgram_at(const struct host *h, int port)
{
	int fd = esp_socket(h, SOCK_DGRAM);

	MUST(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	MUST(do_bind(fd, any(port)));
	return fd;
}

/* Make a socket: in turn one at the shared port, one at a port of its own, a connection. */
static int one_more(int i, int l)
{
	int fd;

	if (i % 3 == 0)
		return dgram_at(A, PORT);
	if (i % 3 == 1)
		return dgram_at(A, 0);
	fd = esp_socket(A, SOCK_STREAM);
	MUST(do_connect(fd, at(B, PORT)));
	close(MUST(accept(l, NULL, NULL)));
	return fd;
}

static void list_while(struct __test_metadata *_metadata, bool changes)
{
	static struct seen stays[3 * MANY];
	static int fd[3 * MANY], guest[3 * MANY];
	struct rlimit limit = { 9 * MANY, 9 * MANY };
	const struct esp_diag_msg *m;
	static struct list list;
	int l, i, unknown = 0, wrong = 0, gone = 0;
	bool more;

	MUST(setrlimit(RLIMIT_NOFILE, &limit));
	sysctl(B, "time_wait_ms", 1);
	sysctl(B, "fin_timeout_ms", 3600000);	/* A closes its sockets late */
	l = listener(B, SOCK_STREAM, PORT, 16);
	for (i = 0; i < 3 * MANY; i++) {
		/* a socket that stays between two that may not */
		guest[i] = one_more(i, l);
		fd[i] = one_more(i, l);
		stays[i] = (struct seen){ .cookie = cookie_of(fd[i]) };
	}
	list_begin(&list, A);
	while ((m = list_next(&list, &more))) {
		if (!sighted(stays, 3 * MANY, cookie_in(m)))
			unknown++;
		/* of each kind some go, and more come */
		for (i = 0; changes && more && gone < 3 * MANY && i < 9; i++) {
			close(guest[gone]);
			guest[gone] = one_more(gone + i % 2, l);
			gone++;
		}
	}
	EXPECT_LT(20U, list.messages);
	for (i = 0; i < 3 * MANY; i++)
		wrong += stays[i].times != 1;
	EXPECT_EQ(0, wrong);
	if (!changes) {
		EXPECT_EQ(3 * MANY, unknown);
	} else {
		EXPECT_LT(100, gone);
	}
	for (i = 0; i < 3 * MANY; i++) {
		close(fd[i]);
		close(guest[i]);
	}
	close(l);
}

/* A list of several messages has each socket, and each once. */
TEST_F_TIMEOUT(hosts, list_of_many, 300)
{
	list_while(_metadata, false);
}

/* ... and each socket that stays, whichever come and go meanwhile. */
TEST_F_TIMEOUT(hosts, list_while_they_change, 300)
{
	list_while(_metadata, true);
}

static int diag_socket(void)
{
	return MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
}

/* Ask the kernel by the netlink socket @nl to end a socket; return 0 or the error. */
static int kill_by(int nl, const struct esp_diag_kill *req, size_t len)
{
	struct {
		struct nlmsghdr		head;
		struct esp_diag_kill	req;
	} question = {
		.head = {
			.nlmsg_len = sizeof(question.head) + len,
			.nlmsg_type = SOCK_DESTROY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		},
		.req = *req,
	};
	struct {
		struct nlmsghdr		head;
		struct nlmsgerr		err;
		char			rest[256];
	} answer;

	MUST(send(nl, &question, sizeof(question.head) + len, 0));
	MUST(recv(nl, &answer, sizeof(answer), 0));
	MUST(answer.head.nlmsg_type == NLMSG_ERROR ? 0 : -1);
	return -answer.err.error;
}

static int kill_req(const struct esp_diag_kill *req)
{
	int nl = diag_socket(), err;

	err = kill_by(nl, req, sizeof(*req));
	close(nl);
	return err;
}

static struct esp_diag_kill req_for(const struct esp_diag_msg *m)
{
	return (struct esp_diag_kill) {
		.sdiag_family	= AF_ESP,
		.sdiag_type	= m->type,
		.cookie		= { m->cookie[0], m->cookie[1] },
		.src		= m->src,
		.dst		= m->dst,
	};
}

/* End the host's socket with this cookie, as a list names it; return 0, an error, or -1: none. */
static int kill_cookie(const struct host *h, __u64 cookie)
{
	struct esp_diag_kill req;
	struct esp_diag_msg m;

	if (!find(h, cookie, &m))
		return -1;
	req = req_for(&m);
	return kill_req(&req);
}

static int kill_fd(const struct host *h, int fd)
{
	return kill_cookie(h, cookie_of(fd));
}

/* Start a child that sleeps in the call, and exits with its error. */
#define SLEEPER(call) ({						\
	pid_t pid_ = MUST(fork());					\
									\
	if (!pid_)							\
		_exit((call) < 0 ? errno : 0);				\
	MUST(UNTIL(asleep(pid_)) ? 0 : -1);				\
	pid_;								\
})

/* A list shows which timers run, and the time left. */
TEST_F(pair, list_timers)
{
	__u64 cookie = cookie_of(self->fd[0]);
	__u64 left[ESP_DIAG_T_MAX];

	ASSERT_TRUE(timers_of(A, cookie, left));
	EXPECT_EQ(ESP_DIAG_T_OFF, left[ESP_DIAG_T_KEEP]);
	EXPECT_EQ(ESP_DIAG_T_OFF, left[ESP_DIAG_T_CONN]);
	MUST(set_int(self->fd[0], SOL_ESP, ESP_KEEPIDLE, 7200));
	MUST(set_int(self->fd[0], SOL_SOCKET, SO_KEEPALIVE, 1));
	ASSERT_TRUE(timers_of(A, cookie, left));
	EXPECT_LT(5000000000ULL, left[ESP_DIAG_T_KEEP]);
	EXPECT_GE(7200000000ULL, left[ESP_DIAG_T_KEEP]);

	sysctl(A, "time_wait_ms", 60000);
	close(self->fd[0]);
	close(self->fd[1]);
	ASSERT_TRUE(UNTIL(state_of(A, cookie) == TCP_TIME_WAIT));
	ASSERT_TRUE(timers_of(A, cookie, left));
	EXPECT_EQ(ESP_DIAG_T_OFF, left[ESP_DIAG_T_SEND]);
	EXPECT_LT(20000000U, left[ESP_DIAG_T_CONN]);
	EXPECT_GE(60000000U, left[ESP_DIAG_T_CONN]);
	ASSERT_EQ(0, kill_cookie(A, cookie));
}

static bool no_numbers(const struct esp_info *i)
{
	return !(i->una_seq | i->send_next | i->send_seq | i->announce_seq | i->edge |
		 i->recv_seq | i->ack_seq | i->recv_edge);
}

/*
 * A process without the right learns how many packets a connection has sent, but not their
 * numbers, and nothing of a socket that has only its cookie yet.
 */
TEST_F(pair, list_hides_numbers)
{
	struct sockaddr_esp nowhere = at(B, PORT);
	struct esp_info i, real;
	int fd, l;

	ASSERT_EQ(5, send(self->fd[0], "abcde", 5, 0));
	ASSERT_EQ(POLLIN, events(self->fd[1], POLLIN, LONG) & POLLIN);
	ASSERT_TRUE(info_of(A, cookie_of(self->fd[0]), true, &real));
	ASSERT_TRUE(info_of(A, cookie_of(self->fd[0]), false, &i));
	EXPECT_EQ(2, i.send_next);	/* they count from 1 */
	EXPECT_EQ(1, i.recv_seq);
	EXPECT_EQ(real.send_next - real.announce_seq, i.send_next - i.announce_seq);
	EXPECT_NE(i.send_next, real.send_next);

	l = listener(A, SOCK_STREAM, PORT + 1, 1);
	fd = esp_socket(A, SOCK_STREAM);
	MUST(fcntl(fd, F_SETFL, O_NONBLOCK));
	nowhere.sesp_addr[5] ^= 0x55;
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd, nowhere));
	ASSERT_TRUE(info_of(A, cookie_of(l), false, &i));
	EXPECT_TRUE(no_numbers(&i));
	ASSERT_TRUE(info_of(A, cookie_of(fd), false, &i));
	EXPECT_EQ(TCP_SYN_SENT, i.state);
	EXPECT_TRUE(no_numbers(&i));
	ASSERT_TRUE(info_of(A, cookie_of(fd), true, &i));
	EXPECT_FALSE(no_numbers(&i));
	close(fd);
	close(l);
}

/* Data on their way in both directions. */
TEST_F(pair, kill_established)
{
	long resets = counter(A, "OutResets");
	__u64 cookie = cookie_of(self->fd[0]);
	size_t n;
	char c;

	sysctl(A, "time_wait_ms", 60000);
	n = stuff(self->fd[0], 0);
	ASSERT_EQ(5, send(self->fd[1], "abcde", 5, 0));
	ASSERT_EQ(POLLIN, events(self->fd[0], POLLIN, LONG) & POLLIN);
	ASSERT_EQ(0, kill_cookie(A, cookie));
	EXPECT_EQ(POLLERR | POLLHUP, events(self->fd[0], POLLOUT, LONG) & (POLLERR | POLLHUP));
	EXPECT_ERRNO(ECONNABORTED, send(self->fd[0], &c, 1, MSG_NOSIGNAL));
	EXPECT_ERRNO(EPIPE, send(self->fd[0], &c, 1, MSG_NOSIGNAL));
	EXPECT_LT(resets, counter(A, "OutResets"));

	/* the peer reads the data that it has, and gets the error */
	EXPECT_TRUE(UNTIL(events(self->fd[1], 0, 0) & POLLERR));
	EXPECT_EQ(-ECONNRESET, read_stream(self->fd[1], 0, n));
	/* the second kill ends TIME_WAIT, too */
	EXPECT_EQ(TCP_TIME_WAIT, state_of(A, cookie));
	EXPECT_EQ(0, kill_cookie(A, cookie));
	EXPECT_EQ(-1, kill_cookie(A, cookie));
}

/* The receiver's end, with data in its queue, which can still be read, as with TCP. */
TEST_F(pair, kill_receiver)
{
	size_t n = stuff(self->fd[0], 0);
	char c;

	sysctl(B, "time_wait_ms", 60000);
	ASSERT_EQ(0, kill_fd(B, self->fd[1]));
	EXPECT_EQ(-ECONNABORTED, read_stream(self->fd[1], 0, n));
	EXPECT_TRUE(UNTIL(events(self->fd[0], 0, 0) & POLLERR));
	EXPECT_ERRNO(ECONNRESET, send(self->fd[0], &c, 1, MSG_NOSIGNAL));
	/* the second kill ends TIME_WAIT; the peer is gone, too */
	EXPECT_EQ(0, kill_fd(B, self->fd[1]));
	EXPECT_EQ(-1, state_of(A, cookie_of(self->fd[0])));
}

TEST_F(pair, kill_reader)
{
	pid_t pid;
	char c;

	pid = SLEEPER(recv(self->fd[0], &c, 1, 0));
	ASSERT_EQ(0, kill_fd(A, self->fd[0]));
	EXPECT_EQ(ECONNABORTED, reap(pid));
	EXPECT_ERRNO(ECONNRESET, recv(self->fd[1], &c, 1, 0));
}

TEST_F(pair, kill_writer)
{
	char buf[1000] = {};
	pid_t pid;

	stuff(self->fd[0], 0);
	pid = SLEEPER(send(self->fd[0], buf, sizeof(buf), MSG_NOSIGNAL));
	ASSERT_EQ(0, kill_fd(A, self->fd[0]));
	EXPECT_EQ(ECONNABORTED, reap(pid));
}

/* The peer has not received the FIN; or has received it; or has sent one of its own. */
TEST_F(pair, kill_after_shutdown)
{
	__u64 cookie = cookie_of(self->fd[0]);
	int fd[2];
	char c;

	sysctl(A, "retries", 100);
	link_up(B, false);
	ASSERT_EQ(0, shutdown(self->fd[0], SHUT_WR));
	ASSERT_EQ(TCP_FIN_WAIT1, state_of(A, cookie));
	ASSERT_EQ(0, kill_cookie(A, cookie));
	EXPECT_ERRNO(ECONNABORTED, recv(self->fd[0], &c, 1, 0));
	/* the RST is lost; the answer to the next frame ends the peer */
	link_up(B, true);
	wait_running();
	ASSERT_EQ(1, send(self->fd[1], "x", 1, 0));
	EXPECT_ERRNO(ECONNRESET, recv(self->fd[1], &c, 1, 0));

	make_pair(SOCK_STREAM, fd);
	ASSERT_EQ(0, shutdown(fd[0], SHUT_WR));
	cookie = cookie_of(fd[0]);
	ASSERT_TRUE(UNTIL(state_of(A, cookie) == TCP_FIN_WAIT2));
	ASSERT_EQ(0, recv(fd[1], &c, 1, 0));
	ASSERT_EQ(0, kill_cookie(A, cookie));
	EXPECT_ERRNO(ECONNABORTED, recv(fd[0], &c, 1, 0));
	EXPECT_TRUE(UNTIL(events(fd[1], 0, 0) & POLLERR));
	EXPECT_EQ(0, recv(fd[1], &c, 1, 0));
	EXPECT_EQ(EPIPE, get_int(fd[1], SOL_SOCKET, SO_ERROR));

	make_pair(SOCK_STREAM, fd);
	ASSERT_EQ(0, shutdown(fd[0], SHUT_WR));
	ASSERT_EQ(0, recv(fd[1], &c, 1, 0));
	ASSERT_EQ(TCP_CLOSE_WAIT, state_of(B, cookie_of(fd[1])));
	ASSERT_EQ(0, kill_fd(B, fd[1]));
	EXPECT_ERRNO(ECONNABORTED, send(fd[1], &c, 1, MSG_NOSIGNAL));
	EXPECT_ERRNO(ECONNRESET, recv(fd[0], &c, 1, 0));
}

/* A killed orphan ends after TIME_WAIT; a second kill ends it at once. */
TEST_F(pair, kill_orphan)
{
	__u64 cookie = cookie_of(self->fd[0]);
	char c;

	sysctl(A, "time_wait_ms", 60000);
	close(self->fd[0]);
	ASSERT_TRUE(UNTIL(state_of(A, cookie) == TCP_FIN_WAIT2));
	ASSERT_EQ(0, kill_cookie(A, cookie));
	EXPECT_TRUE(UNTIL(events(self->fd[1], 0, 0) & POLLERR));
	EXPECT_EQ(0, recv(self->fd[1], &c, 1, 0));
	EXPECT_EQ(EPIPE, get_int(self->fd[1], SOL_SOCKET, SO_ERROR));
	EXPECT_EQ(TCP_TIME_WAIT, state_of(A, cookie));
	EXPECT_EQ(0, kill_cookie(A, cookie));
	EXPECT_EQ(0, inuse(A));
}

/* Both ends have closed: kill ends TIME_WAIT at once, and the socket gets no error. */
TEST_F(pair, kill_time_wait)
{
	__u64 cookie = cookie_of(self->fd[0]);
	int fd[2];
	char c;

	sysctl(A, "time_wait_ms", 60000);
	close(self->fd[0]);
	ASSERT_EQ(0, recv(self->fd[1], &c, 1, 0));
	close(self->fd[1]);
	ASSERT_TRUE(UNTIL(state_of(A, cookie) == TCP_TIME_WAIT));
	ASSERT_EQ(0, kill_cookie(A, cookie));
	EXPECT_EQ(0, inuse(A));

	make_pair(SOCK_STREAM, fd);
	ASSERT_EQ(0, shutdown(fd[0], SHUT_WR));
	ASSERT_EQ(0, recv(fd[1], &c, 1, 0));
	ASSERT_EQ(0, shutdown(fd[1], SHUT_WR));
	cookie = cookie_of(fd[0]);
	ASSERT_TRUE(UNTIL(state_of(A, cookie) == TCP_TIME_WAIT));
	ASSERT_EQ(0, kill_cookie(A, cookie));
	EXPECT_EQ(-1, state_of(A, cookie));
	EXPECT_EQ(0, recv(fd[0], &c, 1, 0));
	EXPECT_EQ(0, so_error(fd[0]));
}

TEST_F(hosts, kill_connecting)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd = esp_socket(A, SOCK_STREAM);
	struct sockaddr_esp to = at(B, PORT);
	pid_t pid;

	sysctl(A, "syn_retries", 100);
	link_up(B, false);
	nonblock(fd, true);
	EXPECT_ERRNO(EINPROGRESS, do_connect(fd, to));
	ASSERT_EQ(TCP_SYN_SENT, state_of(A, cookie_of(fd)));
	ASSERT_EQ(0, kill_fd(A, fd));
	EXPECT_EQ(ECONNABORTED, so_error(fd));

	nonblock(fd, false);
	close(fd);
	fd = esp_socket(A, SOCK_STREAM);
	pid = SLEEPER(do_connect(fd, to));
	ASSERT_EQ(0, kill_fd(A, fd));
	EXPECT_EQ(ECONNABORTED, reap(pid));
	/* the socket is as after a connect() that failed */
	link_up(B, true);
	wait_running();
	EXPECT_EQ(0, do_connect(fd, to));
	close(l);
}

TEST_F(hosts, kill_listener)
{
	int l = listener(B, SOCK_STREAM, PORT, 4), fd[5], i, n;
	struct esp_diag_msg m;
	pid_t pid;

	for (i = 0; i < 5; i++) {
		fd[i] = esp_socket(A, SOCK_STREAM);
		MUST(do_connect(fd[i], at(B, PORT)));
		MUST(send(fd[i], "x", 1, 0));
	}
	/* the queue is full: one more than the backlog */
	ASSERT_TRUE(UNTIL(find(B, cookie_of(l), &m) && m.rqueue == 5));
	ASSERT_EQ(0, kill_fd(B, l));
	for (i = n = 0; i < 5; i++) {
		EXPECT_TRUE(UNTIL(events(fd[i], 0, 0) & POLLERR));
		n += so_error(fd[i]) == ECONNRESET;
		close(fd[i]);
	}
	EXPECT_EQ(5, n);
	EXPECT_EQ(POLLERR | POLLHUP, events(l, POLLIN, LONG) & (POLLERR | POLLHUP));
	EXPECT_ERRNO(EINVAL, accept(l, NULL, NULL));
	EXPECT_EQ(ECONNABORTED, so_error(l));
	EXPECT_EQ(-1, state_of(B, cookie_of(l)));
	fd[0] = esp_socket(A, SOCK_STREAM);
	EXPECT_ERRNO(ECONNREFUSED, do_connect(fd[0], at(B, PORT)));

	/* it may listen again; a process that waits in accept() gets an error */
	ASSERT_EQ(0, listen(l, 4));
	ASSERT_EQ(0, do_connect(fd[0], at(B, PORT)));
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_TRUE(alive(fd));
	pid = SLEEPER(accept(l, NULL, NULL));
	ASSERT_EQ(0, kill_fd(B, l));
	EXPECT_EQ(EINVAL, reap(pid));
	EXPECT_TRUE(alive(fd));
	EXPECT_EQ(ECONNABORTED, so_error(l));
}

/* A connection that is not accepted yet. */
TEST_F(hosts, kill_unaccepted)
{
	int l = listener(B, SOCK_STREAM, PORT, 4), fd[2];
	const struct esp_diag_msg *m;
	struct esp_diag_kill req = {};
	static struct list list;
	bool more;
	char c;

	fd[0] = esp_socket(A, SOCK_STREAM);
	ASSERT_EQ(0, do_connect(fd[0], at(B, PORT)));
	ASSERT_TRUE(UNTIL(events(l, POLLIN, 0)));
	list_begin(&list, B);
	while ((m = list_next(&list, &more)))
		if (m->state == TCP_ESTABLISHED)
			req = req_for(m);
	ASSERT_EQ(0, kill_req(&req));
	EXPECT_ERRNO(ECONNRESET, recv(fd[0], &c, 1, 0));
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_ERRNO(ECONNABORTED, recv(fd[1], &c, 1, 0));
}

TEST_F(hosts, kill_dgram)
{
	int fd = dgram_at(B, PORT), other = dgram_at(B, PORT), from = esp_socket(A, SOCK_DGRAM);
	struct sockaddr_esp a;
	pid_t pid;
	char c;

	ASSERT_EQ(0, do_bind(from, any(PORT + 1)));
	ASSERT_EQ(0, do_connect(fd, at(A, PORT + 1)));
	impatient(fd);
	pid = SLEEPER(recv(fd, &c, 1, 0));
	ASSERT_EQ(0, kill_fd(B, fd));
	EXPECT_EQ(ECONNABORTED, reap(pid));
	EXPECT_EQ(0, so_error(fd));
	EXPECT_EQ(0, so_error(other));
	EXPECT_ERRNO(ENOTCONN, peername(fd, &a));
	EXPECT_ERRNO(EDESTADDRREQ, send(fd, &c, 1, 0));
	ASSERT_EQ(0, kill_fd(B, fd));
	EXPECT_ERRNO(ECONNABORTED, do_sendto(fd, &c, 1, 0, at(A, PORT + 1)));
	/* it still works, without a peer */
	close(other);
	ASSERT_EQ(1, do_sendto(from, "x", 1, 0, at(B, PORT)));
	EXPECT_EQ(1, recv(fd, &c, 1, 0));
}

/* The address belongs to another socket by now, or to none, or differs in one part. */
TEST_F(pair, kill_which)
{
	struct esp_diag_kill req, bad;
	int nl, old = self->fd[0], port = ntohs(sockname(old).sesp_port);
	struct esp_diag_msg m;
	int l, fd;

	ASSERT_TRUE(find(A, cookie_of(old), &m));
	req = req_for(&m);
	sysctl(A, "time_wait_ms", 1);
	linger(old, 0);
	close(old);
	ASSERT_TRUE(UNTIL(!inuse(A)));
	ASSERT_EQ(ENOENT, kill_req(&req));
	close(self->fd[1]);
	l = listener(B, SOCK_STREAM, PORT, 1);
	fd = esp_socket(A, SOCK_STREAM);
	ASSERT_EQ(0, do_bind(fd, any(port)));
	ASSERT_EQ(0, do_connect(fd, at(B, PORT)));
	self->fd[0] = fd;
	self->fd[1] = MUST(accept(l, NULL, NULL));
	enter(A);
	EXPECT_EQ(ESTALE, kill_req(&req));
	EXPECT_TRUE(alive(self->fd));

	ASSERT_TRUE(find(A, cookie_of(fd), &m));
	req = req_for(&m);
	bad = req;
	bad.sdiag_type = SOCK_SEQPACKET;
	EXPECT_EQ(ENOENT, kill_req(&bad));
	bad = req;
	bad.src.sesp_port++;
	EXPECT_EQ(ENOENT, kill_req(&bad));
	bad = req;
	bad.dst.sesp_port++;
	EXPECT_EQ(ENOENT, kill_req(&bad));
	bad = req;
	bad.dst.sesp_addr[5]++;
	EXPECT_EQ(ENOENT, kill_req(&bad));
	bad = req;
	bad.dst.sesp_ifindex++;
	EXPECT_EQ(ENOENT, kill_req(&bad));
	bad = req;
	bad.dst = (struct sockaddr_esp){};
	EXPECT_EQ(ENOENT, kill_req(&bad));
	nl = diag_socket();
	EXPECT_EQ(EINVAL, kill_by(nl, &req, sizeof(req) - 4));
	/* another host's */
	enter(B);
	EXPECT_EQ(ENOENT, kill_req(&req));
	EXPECT_TRUE(alive(self->fd));
	enter(A);
	bad = req;
	bad.cookie[0] = ~0;
	EXPECT_EQ(ESTALE, kill_req(&bad));
	bad.cookie[1] = ~0;
	EXPECT_EQ(0, kill_req(&bad));
	EXPECT_EQ(ECONNABORTED, so_error(fd));
	close(nl);
	close(l);
}

/* The process needs CAP_NET_ADMIN, and needed it when it opened the netlink socket. */
TEST_F(pair, kill_privilege)
{
	struct esp_diag_kill req;
	struct esp_diag_msg m;
	pid_t pid;
	int nl;

	ASSERT_TRUE(find(A, cookie_of(self->fd[0]), &m));
	req = req_for(&m);
	pid = MUST(fork());
	if (!pid) {
		MUST(setresuid(NOBODY, NOBODY, NOBODY));
		_exit(kill_req(&req));
	}
	EXPECT_EQ(EPERM, reap(pid));
	MUST(seteuid(NOBODY));
	nl = diag_socket();
	MUST(seteuid(0));
	EXPECT_EQ(EPERM, kill_by(nl, &req, sizeof(req)));
	/* a process without it does not learn which sockets exist */
	pid = MUST(fork());
	if (!pid) {
		MUST(setresuid(NOBODY, NOBODY, NOBODY));
		req.src.sesp_port++;
		_exit(kill_req(&req));
	}
	EXPECT_EQ(EPERM, reap(pid));
	EXPECT_TRUE(alive(self->fd));
	enter(A);
	EXPECT_EQ(0, kill_req(&req));
	close(nl);
}

/* The owner of a network namespace may end sockets there, and only there. */
TEST_F(pair, kill_owner)
{
	struct esp_diag_kill req;
	struct esp_diag_msg m;
	pid_t pid;
	int nl;

	ASSERT_TRUE(find(A, cookie_of(self->fd[0]), &m));
	req = req_for(&m);
	nl = diag_socket();
	pid = MUST(fork());
	if (!pid) {
		struct host own = {};
		int fd;

		MUST(setresuid(NOBODY, NOBODY, NOBODY));
		MUST(prctl(PR_SET_DUMPABLE, 1));
		MUST(unshare(CLONE_NEWUSER | CLONE_NEWNET));
		if (kill_by(nl, &req, sizeof(req)) != EPERM)
			_exit(1);
		if (kill_req(&req) != ENOENT)
			_exit(2);
		own.ns = MUST(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
		fd = dgram_at(&own, PORT);
		if (kill_fd(&own, fd))
			_exit(3);
		_exit(so_error(fd) == ECONNABORTED ? 0 : 4);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_TRUE(alive(self->fd));
	close(nl);
}

/* Kill sockets while their process, and the peer's, makes, uses and closes them. */
TEST_F_TIMEOUT(hosts, kill_races, 300)
{
	int l = listener(B, SOCK_STREAM, PORT, 16), fd[2], i, n = 0;
	int killed = 0, wrong = 0;
	long resets = counter(A, "OutResets") + counter(B, "OutResets");
	const struct esp_diag_msg *m;
	long long end = now_ms() + 60000;
	static struct list list;
	pid_t pid[3];
	bool more;

	signal(SIGPIPE, SIG_IGN);
	sysctl(A, "time_wait_ms", 1);
	sysctl(B, "time_wait_ms", 1);
	forget_soon(A);
	forget_soon(B);
	set_timeo(l, SO_RCVTIMEO, SHORT);
	for (i = 0; i < 3; i++) {
		pid[i] = MUST(fork());
		if (pid[i])
			continue;
		for (;; n++) {
			char buf[20000];

			if (i == 2) {
				fd[0] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
				if (fd[0] < 0 && errno == EINVAL)
					listen(l, 16);
				if (fd[0] < 0)
					continue;
			} else {
				fd[0] = esp_socket(A, SOCK_STREAM);
				impatient(fd[0]);
				do_connect(fd[0], at(B, PORT));
			}
			if (n % 3 == 2)
				linger(fd[0], n % 2);
			send(fd[0], buf, sizeof(buf), MSG_DONTWAIT);
			if (n % 3)
				shutdown(fd[0], SHUT_WR);
			if (n % 2)
				recv(fd[0], buf, sizeof(buf), 0);
			close(fd[0]);
		}
	}
	for (i = 0; killed < 1000 && (killed < 50 || now_ms() < end); i++) {
		list_begin(&list, i % 2 ? A : B);
		while ((m = list_next(&list, &more))) {
			struct esp_diag_kill req = req_for(m);
			int err;

			if (m->state == TCP_LISTEN && i % 16)
				continue;
			err = kill_req(&req);
			killed += !err;
			wrong += err && err != ENOENT && err != ESTALE;
		}
	}
	for (i = 0; i < 3; i++) {
		MUST(kill(pid[i], SIGKILL));
		reap(pid[i]);
	}
	EXPECT_EQ(0, wrong);
	EXPECT_LE(50, killed);
	EXPECT_LT(resets, counter(A, "OutResets") + counter(B, "OutResets"));
}

TEST_HARNESS_MAIN
