// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loaded in front of libc (LD_PRELOAD) where time is simulated (uml-virtual). Work takes no time
 * there, so a rank that polls for messages would poll for ever. Open MPI, told to yield when idle,
 * calls sched_yield() each time that it found none. If none of the descriptors was ready that it
 * looked at by poll() or epoll_wait(), sched_yield() waits here until one is, a millisecond at
 * most. To a program there seems to be no end of processors.
 */
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <time.h>

#define MAX	256

static __thread struct pollfd seen[MAX], epolls[8];
static __thread nfds_t nseen, nepolls;
static __thread bool found;

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	static int (*next)(struct pollfd *fds, nfds_t n, int timeout);
	int ready;

	if (!next)
		next = (typeof(next))dlsym(RTLD_NEXT, "poll");
	if (timeout == 0 && n <= MAX) {
		for (nseen = 0; nseen < n; nseen++)
			seen[nseen] = fds[nseen];
	}
	ready = next(fds, n, timeout);
	found |= ready > 0;
	return ready;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	static int (*next)(int fd, struct epoll_event *events, int max, int timeout);
	nfds_t i = 0;
	int ready;

	if (!next)
		next = (typeof(next))dlsym(RTLD_NEXT, "epoll_wait");
	while (i < nepolls && epolls[i].fd != fd)
		i++;
	if (timeout == 0 && i == nepolls && i < sizeof(epolls) / sizeof(epolls[0]))
		epolls[nepolls++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	ready = next(fd, events, max, timeout);
	found |= ready > 0;
	return ready;
}

int sched_yield(void)
{
	struct pollfd all[MAX + sizeof(epolls) / sizeof(epolls[0])];
	struct timespec wait = { .tv_nsec = 1000000 };
	nfds_t n = 0;

	for (nfds_t i = 0; i < nseen; i++)
		all[n++] = seen[i];
	for (nfds_t i = 0; i < nepolls; i++)
		all[n++] = epolls[i];
	if (!found)
		ppoll(all, n, &wait, NULL);
	found = false;
	return 0;
}
