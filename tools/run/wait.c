// SPDX-License-Identifier: BSD-3-Clause
/*
 * A call that waits at a listener waits at the ESP listener beside it, too. For epoll, both have
 * the same event; poll() and select() wait for more descriptors than they were given.
 */
#include <stdlib.h>
#include "run.h"

#define FEW 256		/* most descriptors for which no memory is allocated */

/*
 * Return the slot of a listener for which epoll_ctl() was called; NULL: it is none. Programs change
 * the events of a connection with each message, so only what is added is looked at.
 */
static struct slot *listener_in_epoll(int op, int fd)
{
	struct slot *slot = run_slot(fd);

	if (op == EPOLL_CTL_ADD)
		return run_waits(fd);
	if (!slot || atomic_load(&slot->kind) != LISTENER)
		return NULL;
	return op == EPOLL_CTL_MOD ? run_waits(fd) : run_listener(fd);
}

PUBLIC int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int ret = REAL(epoll_ctl)(epfd, op, fd, event);
	struct slot *waits;
	int err = errno;

	if (ret)
		return ret;
	run_interest(epfd, op, fd, event);
	waits = listener_in_epoll(op, fd);
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
#define WORD_BITS	(8 * (int)sizeof(long))
#define WORDS(n)	(((n) + WORD_BITS - 1) / WORD_BITS)
#define FEW_WORDS	WORDS(FD_SETSIZE)

static bool in_set(const unsigned long *set, int fd)
{
	return set && (set[fd / WORD_BITS] >> fd % WORD_BITS & 1);
}

static void set_bit(unsigned long *set, int fd, bool on)
{
	unsigned long bit = 1ul << fd % WORD_BITS;

	set[fd / WORD_BITS] = on ? set[fd / WORD_BITS] | bit : set[fd / WORD_BITS] & ~bit;
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

	for (fd = 0; read && fd < n && fd < end; fd++) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };

		if (in_set((const unsigned long *)read, fd) && waits_for_input(&pfd))
			return true;
	}
	return false;
}

/* Return the ESP listener behind @fd, if the program waits for input there; or -1. */
static int hidden_behind(const unsigned long *read, int fd, bool sure)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct slot *slot;

	if (!in_set(read, fd) || !waits_for_input(&pfd))
		return -1;
	slot = waiting(fd, sure);
	return slot ? slot->hidden : -1;
}

/* Is a connection in the queue of this ESP listener? If the listener has ended, forget it. */
static bool has_connection(struct slot *slot)
{
	struct pollfd pfd = { .fd = slot->hidden, .events = POLLIN };

	if (REAL(poll)(&pfd, 1, 0) <= 0)
		return false;
	if (pfd.revents & (POLLERR | POLLHUP))
		run_end(slot);
	return pfd.revents & POLLIN;
}

/*
 * Move the events of ESP listeners to the program's listeners, in the set @read of @bits, which
 * select() has returned. Returns false if one belongs to a listener that the program doesn't have
 * any more.
 */
static bool move_events(int n, const unsigned long *user, unsigned long *read, int bits)
{
	bool fine = true;
	int fd, hidden;

	for (fd = 0; fd < n; fd++) {
		struct slot *slot = run_slot(fd);

		if (!in_set(user, fd) || !slot || atomic_load(&slot->kind) != LISTENER)
			continue;
		hidden = slot->hidden;
		if (hidden < 0 || hidden >= bits || !in_set(read, hidden))
			continue;
		set_bit(read, hidden, false);
		if (!run_listener(fd))
			fine = false;
		else if (has_connection(slot))
			set_bit(read, fd, true);
	}
	return fine;
}

/*
 * Call select() with @timeval, or pselect() with @timespec and @mask, with the ESP listeners in the
 * set of those that may be readable. As in poll_more(), events of ESP listeners that don't belong
 * to a listener any more don't count: the call goes on, select() for the time that the kernel has
 * left in @timeval. (Musl does not write it there. The call may take as long again then.)
 */
static int select_more(int n, fd_set *sets[3], struct timeval *timeval,
		       const struct timespec *timespec, const sigset_t *mask, bool is_pselect)
{
	unsigned long few[3][FEW_WORDS], *all[3] = { few[0], few[1], few[2] }, *many = NULL;
	const unsigned long *read = (unsigned long *)sets[0];
	int ret, got, err, i, fd, hidden, end, bits;
	bool sure = false, fine;
	struct timespec left;
	int64_t until = 0;

	if (timespec) {
		left = *timespec;
		until = end_of(timespec);
	}
	n = selected(n);
again:
	for (fd = 0, end = n; fd < n; fd++) {
		hidden = hidden_behind(read, fd, sure);
		if (hidden >= end)
			end = hidden + 1;
	}
	bits = WORDS(end) * WORD_BITS;
	free(many);
	many = NULL;
	if (WORDS(end) > FEW_WORDS) {
		many = calloc(3 * WORDS(end), sizeof(*many));
		if (!many)
			return -1;
	}
	for (i = 0; i < 3; i++) {
		all[i] = many ? many + i * WORDS(end) : few[i];
		memset(all[i], 0, bits / 8);
		if (sets[i])
			memcpy(all[i], sets[i], WORDS(n) * sizeof(long));
		for (fd = n; fd < WORDS(n) * WORD_BITS; fd++)
			set_bit(all[i], fd, false);
	}
	for (fd = 0; fd < n; fd++) {
		hidden = hidden_behind(read, fd, false);
		if (hidden >= 0 && hidden < bits)
			set_bit(all[0], hidden, true);
	}
	ret = is_pselect ?
	      REAL(pselect)(end, (fd_set *)all[0], (fd_set *)all[1], (fd_set *)all[2],
			    timespec ? &left : NULL, mask) :
	      REAL(select)(end, (fd_set *)all[0], (fd_set *)all[1], (fd_set *)all[2], timeval);
	/* another thread may have ended an ESP listener just now */
	fine = ret >= 0 || errno != EBADF;
	if (ret < 0 && (fine || sure))
		goto out;
	got = ret;
	if (ret >= 0) {
		fine = move_events(n, read, all[0], bits);
		/* not those of a listener that another thread has just shut down */
		for (fd = 0, ret = 0; fd < n; fd++) {
			if (!in_set(read, fd))
				set_bit(all[0], fd, false);
			ret += in_set(all[0], fd) + in_set(all[1], fd) + in_set(all[2], fd);
		}
	}
	if ((!fine && !sure) || (!ret && got)) {
		sure = true;
		if (timespec)
			left = left_until(until);
		goto again;
	}
	for (i = 0; i < 3; i++)
		for (fd = 0; sets[i] && fd < n; fd++)
			set_bit((unsigned long *)sets[i], fd, in_set(all[i], fd));
out:
	err = errno;
	free(many);
	errno = err;
	return ret;
}

PUBLIC int select(int n, fd_set *__restrict read, fd_set *__restrict write,
		  fd_set *__restrict except, struct timeval *__restrict timeout)
{
	fd_set *sets[3] = { read, write, except };

	if (!any_listener(n, read))
		return REAL(select)(n, read, write, except, timeout);
	return select_more(n, sets, timeout, NULL, NULL, false);
}

PUBLIC int pselect(int n, fd_set *__restrict read, fd_set *__restrict write,
		   fd_set *__restrict except, const struct timespec *__restrict timeout,
		   const sigset_t *__restrict mask)
{
	fd_set *sets[3] = { read, write, except };

	if (!any_listener(n, read))
		return REAL(pselect)(n, read, write, except, timeout, mask);
	return select_more(n, sets, NULL, timeout, mask, true);
}
