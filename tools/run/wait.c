// SPDX-License-Identifier: BSD-3-Clause
/*
 * A call that waits at a listener waits at the ESP listener beside it, too. For epoll, both have
 * the same event; poll() and select() wait for more descriptors than they were given.
 */
#include <stdlib.h>
#include "run.h"

#define FEW 256		/* most descriptors for which no memory is allocated */

PUBLIC int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int ret = REAL(epoll_ctl)(epfd, op, fd, event);
	struct slot *waits;
	int err = errno;

	if (ret)
		return ret;
	run_interest(epfd, op, fd, event);
	waits = op == EPOLL_CTL_DEL ? run_listener(fd) : run_waits(fd);
	if (waits)
		run_epoll(waits, epfd, op, event);
	errno = err;
	return ret;
}

static bool waits_for_input(struct pollfd *pfd)
{
	struct slot *slot = run_slot(pfd->fd);

	/* an inherited listener is known from its first accept() on */
	return slot && (pfd->events & (POLLIN | POLLRDNORM)) &&
	       atomic_load(&slot->kind) == LISTENER;
}

/* Count the descriptors that may be listeners. */
static nfds_t listeners(struct pollfd *fds, nfds_t n)
{
	nfds_t i, count = 0;

	if (!atomic_load(&run_listeners))
		return 0;
	for (i = 0; i < n; i++)
		count += waits_for_input(&fds[i]);
	return count;
}

/*
 * Get a listener that the program waits at. The library believes its memory, because asking the
 * kernel takes two system calls. It asks when the ESP listener has an event, and then (@sure).
 */
static struct slot *waiting(int fd, bool sure)
{
	struct slot *slot = run_slot(fd);

	if (!sure && slot && atomic_load(&slot->kind) == LISTENER && slot->armed &&
	    slot->hidden >= 0)
		return slot;
	return run_waits(fd);
}

#define S_NS	1000000000ll

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * S_NS + t.tv_nsec;
}

/* Return the time at which a timeout is over; one of thirty years and more is never over. */
static int64_t end_of(const struct timespec *timeout)
{
	if (timeout->tv_sec < 0 || timeout->tv_sec > S_NS)
		return INT64_MAX;
	return now_ns() + timeout->tv_sec * S_NS + timeout->tv_nsec;
}

static struct timespec left_until(int64_t end)
{
	int64_t ns = end - now_ns();

	if (ns < 0)
		ns = 0;
	return (struct timespec){ ns / S_NS, ns % S_NS };
}

/* Add the ESP listeners behind the @n descriptors of @all. Returns the number of all. */
static nfds_t add_hidden(struct pollfd *all, nfds_t n, nfds_t most, bool sure)
{
	nfds_t i, end = n;

	for (i = 0; i < n && end < most; i++) {
		struct slot *slot = waits_for_input(&all[i]) ? waiting(all[i].fd, sure) : NULL;

		if (!slot)
			continue;
		all[end].fd = slot->hidden;
		all[end].events = all[i].events & (POLLIN | POLLRDNORM);
		end++;
	}
	return end;
}

/*
 * Call poll() with the ESP listeners after the program's own descriptors, in the order of the TCP
 * listeners. If the only events are those of ESP listeners that don't belong to a listener of the
 * program any more, the call goes on without these.
 */
static int poll_more(struct pollfd *fds, nfds_t n, nfds_t more, const struct timespec *timeout,
		     const sigset_t *mask)
{
	struct pollfd few[FEW], *all = few;
	bool sure = false, stale;
	struct timespec left;
	int64_t until = 0;
	nfds_t i, j, end;
	int ret, err, got;

	if (n + more > FEW) {
		all = calloc(n + more, sizeof(*all));
		if (!all)
			return -1;
	}
	if (timeout) {
		left = *timeout;
		until = end_of(timeout);
	}
again:
	stale = false;
	memcpy(all, fds, n * sizeof(*all));
	end = add_hidden(all, n, n + more, sure);
	ret = REAL(ppoll)(all, end, timeout ? &left : NULL, mask);
	if (ret < 0)
		goto out;
	for (i = 0, j = n, got = ret, ret = 0; i < n; i++) {
		struct slot *slot = run_slot(fds[i].fd);

		fds[i].revents = all[i].revents;
		if (j < end && waits_for_input(&fds[i]) && slot->hidden == all[j].fd) {
			if (all[j].revents && !run_listener(fds[i].fd)) {
				stale = true;
			} else {
				fds[i].revents |= all[j].revents & all[j].events;
				if (all[j].revents & (POLLERR | POLLHUP))
					run_end(slot);
				j++;
			}
		}
		ret += !!fds[i].revents;
	}
	/*
	 * The library's memory was out of date; or an ESP listener was ended, by this thread or
	 * another one, which is no event for the program.
	 */
	if ((stale && !sure) || (!ret && got)) {
		sure = true;
		if (timeout)
			left = left_until(until);
		goto again;
	}
out:
	err = errno;
	if (all != few)
		free(all);
	errno = err;
	return ret;
}

PUBLIC int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct timespec t = { timeout / 1000, timeout % 1000 * 1000000L };
	nfds_t more = listeners(fds, n);

	if (!more)
		return REAL(poll)(fds, n, timeout);
	return poll_more(fds, n, more, timeout < 0 ? NULL : &t, NULL);
}

PUBLIC int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask)
{
	nfds_t more = listeners(fds, n);

	if (!more)
		return REAL(ppoll)(fds, n, timeout, mask);
	return poll_more(fds, n, more, timeout, mask);
}

PUBLIC int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	if (size / sizeof(*fds) < n)
		return REAL(__poll_chk)(fds, n, timeout, size);
	return poll(fds, n, timeout);
}

PUBLIC int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask, size_t size)
{
	if (size / sizeof(*fds) < n)
		return REAL(__ppoll_chk)(fds, n, timeout, mask, size);
	return ppoll(fds, n, timeout, mask);
}

/* A set of select() may have more bits than FD_SETSIZE, if the program made it so large. */
static bool in_set(const fd_set *set, int fd)
{
	return set && (((const unsigned long *)set)[fd / (8 * sizeof(long))] >>
		       fd % (8 * sizeof(long)) & 1);
}

static void set_bit(fd_set *set, int fd, bool on)
{
	unsigned long *word = (unsigned long *)set + fd / (8 * sizeof(long));
	unsigned long bit = 1ul << fd % (8 * sizeof(long));

	*word = on ? *word | bit : *word & ~bit;
}

/*
 * Return the number of descriptors that the kernel's select() looks at: it ignores those which the
 * process's table has no entries for. Programs give it a limit, getdtablesize(), and sets with
 * FD_SETSIZE bits.
 */
static int selected(int n)
{
	static const char name[] = "\nFDSize:\t";
	char text[1024], *at;
	ssize_t len = 0;
	int fd, size = 0;

	if (n <= FD_SETSIZE)
		return n;
	fd = syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = syscall(SYS_read, fd, text, sizeof(text) - 1);
		sys_close(fd);
	}
	text[len > 0 ? len : 0] = '\0';
	at = strstr(text, name);
	for (at = at ? at + strlen(name) : text; *at >= '0' && *at <= '9' && size < n; at++)
		size = 10 * size + *at - '0';
	if (!size)
		size = FD_SETSIZE;
	return size < n ? size : n;
}

static bool any_listener(int n, const fd_set *read)
{
	int fd, end = atomic_load(&run_listeners);

	if (!read)
		return false;
	for (fd = 0; fd < n && fd < end; fd++) {
		struct slot *slot = run_slot(fd);

		if (in_set(read, fd) && slot && atomic_load(&slot->kind) == LISTENER)
			return true;
	}
	return false;
}

/* The events that the kernel's select() takes for readable and for writable. */
#define SELECT_IN	(POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR)
#define SELECT_OUT	(POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR)

/* Do select() by poll(), and ignore events that poll() reports without being asked. */
static int select_by_poll(int n, fd_set *read, fd_set *write, fd_set *except,
			  const struct timespec *timeout, const sigset_t *mask)
{
	struct pollfd few[FEW], *fds = few;
	int fd, i, used = 0, ret, err;

	n = selected(n);
	if (n > FEW) {
		fds = calloc(n, sizeof(*fds));
		if (!fds)
			return -1;
	}
	for (fd = 0; fd < n; fd++) {
		short events = (in_set(read, fd) ? POLLIN | POLLRDNORM | POLLRDBAND : 0) |
			       (in_set(write, fd) ? POLLOUT | POLLWRNORM | POLLWRBAND : 0) |
			       (in_set(except, fd) ? POLLPRI : 0);

		if (events)
			fds[used++] = (struct pollfd){ .fd = fd, .events = events };
	}
	ret = poll_more(fds, used, listeners(fds, used), timeout, mask);
	for (i = 0; ret > 0 && i < used; i++) {
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			ret = -1;
		}
	}
	if (ret < 0)
		goto out;
	for (i = 0, ret = 0; i < used; i++) {
		short got = fds[i].revents;

		fd = fds[i].fd;
		if (in_set(read, fd)) {
			set_bit(read, fd, got & SELECT_IN);
			ret += !!(got & SELECT_IN);
		}
		if (in_set(write, fd)) {
			set_bit(write, fd, got & SELECT_OUT);
			ret += !!(got & SELECT_OUT);
		}
		if (in_set(except, fd)) {
			set_bit(except, fd, got & POLLPRI);
			ret += !!(got & POLLPRI);
		}
	}
out:
	err = errno;
	if (fds != few)
		free(fds);
	errno = err;
	return ret;
}

PUBLIC int select(int n, fd_set *__restrict read, fd_set *__restrict write,
		  fd_set *__restrict except, struct timeval *__restrict timeout)
{
	struct timespec t;
	int64_t end, left;
	int ret, err;

	if (!any_listener(n, read) || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return REAL(select)(n, read, write, except, timeout);
	if (!timeout)
		return select_by_poll(n, read, write, except, NULL, NULL);
	t = (struct timespec){ timeout->tv_sec + timeout->tv_usec / 1000000,
			       timeout->tv_usec % 1000000 * 1000 };
	end = now_ms() + t.tv_sec * 1000 + t.tv_nsec / 1000000;
	ret = select_by_poll(n, read, write, except, &t, NULL);
	err = errno;
	/* Linux's select() leaves the remaining time there */
	left = end - now_ms();
	if (left < 0 || !ret)
		left = 0;
	timeout->tv_sec = left / 1000;
	timeout->tv_usec = left % 1000 * 1000;
	errno = err;
	return ret;
}

PUBLIC int pselect(int n, fd_set *__restrict read, fd_set *__restrict write,
		   fd_set *__restrict except, const struct timespec *__restrict timeout,
		   const sigset_t *__restrict mask)
{
	if (!any_listener(n, read))
		return REAL(pselect)(n, read, write, except, timeout, mask);
	return select_by_poll(n, read, write, except, timeout, mask);
}
