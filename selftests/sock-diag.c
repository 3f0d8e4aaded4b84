// SPDX-License-Identifier: GPL-2.0-only
/*
 * sock_diag: lists that don't fit into one message, while sockets come and go.
 */
#include <linux/esp_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <sys/resource.h>
#include "sock-hosts.h"

#define MANY	400	/* of each kind; a message takes a dozen or two */

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

static void list_begin(struct list *l, const struct host *h)
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

	enter(h);
	l->fd = MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
	l->left = 0;
	l->messages = 0;
	l->done = false;
	MUST(send(l->fd, &question, sizeof(question), 0));
}

/* The next one; *@more: it is the first of a message of the kernel's. NULL: no more. */
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

/* A socket that stays while a list is read, and how often it is in it. */
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

/* Of each kind one: many of one port, others of ports of their own, connections. */
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
	l = listener(B, SOCK_STREAM, PORT, 16);
	for (i = 0; i < 3 * MANY; i++) {
		/* one that stays between two that may not */
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

/* ... and those that stay, whatever comes and goes meanwhile. */
TEST_F_TIMEOUT(hosts, list_while_they_change, 300)
{
	list_while(_metadata, true);
}

TEST_HARNESS_MAIN
