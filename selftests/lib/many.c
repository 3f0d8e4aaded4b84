// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many connections at a time, a byte there and back on each.
 *
 *   many listen %DEV:PORT NUMBER		echoes
 *   many connect MAC%DEV:PORT NUMBER
 *
 * Both print "idle" when every connection has done that, and keep the connections
 * open until SIGTERM. Exit status: 0 if all went well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <linux/af_esp.h>

static _Noreturn void die(const char *what, int n)
{
	fprintf(stderr, "many: %s, connection %d: %s\n", what, n, strerror(errno));
	exit(1);
}

static void idle(void)
{
	sigset_t set;
	int sig;

	puts("idle");
	fflush(stdout);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwait(&set, &sig);
}

static void echo(int fd, int n)
{
	char c;

	if (recv(fd, &c, 1, MSG_DONTWAIT) != 1)
		die("recv", n);
	if (send(fd, &c, 1, MSG_NOSIGNAL) != 1)
		die("send", n);
}

static void serve(const struct sockaddr_esp *a, int number)
{
	int lfd = socket(AF_ESP, SOCK_STREAM, 0), ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN }, got[64];
	int accepted = 0, echoed = 0, n, i, fd;

	if (bind(lfd, (struct sockaddr *)a, sizeof(*a)) || listen(lfd, 4096))
		die("listen", 0);
	ev.data.fd = lfd;
	epoll_ctl(ep, EPOLL_CTL_ADD, lfd, &ev);
	while (echoed < number) {
		n = epoll_wait(ep, got, 64, 120000);
		if (n <= 0)
			die("epoll_wait", echoed);
		for (i = 0; i < n; i++) {
			if (got[i].data.fd != lfd) {
				echo(got[i].data.fd, echoed++);
				continue;
			}
			fd = accept(lfd, NULL, NULL);
			if (fd < 0)
				die("accept", accepted);
			accepted++;
			ev.data.fd = fd;
			if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
				die("epoll_ctl", accepted);
		}
	}
	close(ep);
	idle();
}

static void ask(const struct sockaddr_esp *a, int number)
{
	struct timeval tv = { .tv_sec = 120 };
	int *fd = calloc(number, sizeof(*fd)), i;
	char c;

	for (i = 0; i < number; i++) {
		fd[i] = socket(AF_ESP, SOCK_STREAM, 0);
		if (fd[i] < 0)
			die("socket", i);
		if (connect(fd[i], (struct sockaddr *)a, sizeof(*a)))
			die("connect", i);
		setsockopt(fd[i], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	}
	for (i = 0; i < number; i++) {
		c = i;
		if (send(fd[i], &c, 1, MSG_NOSIGNAL) != 1)
			die("send", i);
	}
	for (i = 0; i < number; i++) {
		if (recv(fd[i], &c, 1, 0) != 1)
			die("recv", i);
		if (c != (char)i) {
			errno = EBADMSG;
			die("recv", i);
		}
	}
	idle();
}

int main(int argc, char **argv)
{
	struct sockaddr_esp a = { .sesp_family = AF_ESP, .sesp_halen = 6 };
	struct rlimit limit = { .rlim_cur = 65536, .rlim_max = 65536 };
	char name[IFNAMSIZ + 1] = "";
	unsigned int m[6], port, i;
	sigset_t set;
	char *dev;

	if (argc != 4) {
		fputs("usage: many listen %DEV:PORT NUMBER | connect MAC%DEV:PORT NUMBER\n",
		      stderr);
		return 2;
	}
	dev = strchr(argv[2], '%');
	if (!dev || sscanf(dev, "%%%16[^:]:%u", name, &port) != 2)
		die(argv[2], 0);
	a.sesp_port = htons(port);
	a.sesp_ifindex = if_nametoindex(name);
	if (sscanf(argv[2], "%x:%x:%x:%x:%x:%x", m, m + 1, m + 2, m + 3, m + 4,
		   m + 5) == 6)
		for (i = 0; i < 6; i++)
			a.sesp_addr[i] = m[i];
	setrlimit(RLIMIT_NOFILE, &limit);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!strcmp(argv[1], "listen"))
		serve(&a, atoi(argv[3]));
	else
		ask(&a, atoi(argv[3]));
	return 0;
}
