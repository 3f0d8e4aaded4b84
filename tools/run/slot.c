// SPDX-License-Identifier: BSD-3-Clause
/*
 * The library's memory of descriptors: a table in chunks, which are mapped when a descriptor of
 * theirs is used. So a program pays for the numbers that it uses.
 */
#include "run.h"

_Static_assert(!(RUN_FDS % RUN_CHUNK), "the table has only whole chunks");

struct slot *_Atomic run_chunks[RUN_FDS / RUN_CHUNK];
static atomic_int epolls;	/* the highest number of an epoll instance, + 1 */

/* Return the slot of @fd. NULL: the number is too high, or there is no memory for its chunk. */
struct slot *run_slot_new(int fd)
{
	struct slot *slot = run_slot(fd), *chunk, *other = NULL;
	size_t size = RUN_CHUNK * sizeof(*chunk);
	int err = errno;

	if (slot || fd < 0 || fd >= RUN_FDS || atomic_load(&run_chunks[fd / RUN_CHUNK]))
		return slot;
	chunk = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = err;
	/* one that can't be mapped now stays so: its descriptors may have been added to epoll */
	if (!atomic_compare_exchange_strong(&run_chunks[fd / RUN_CHUNK], &other, chunk) &&
	    chunk != MAP_FAILED)
		munmap(chunk, size);
	return run_slot(fd);
}

/* Forget what was done with another socket of this number. */
void run_forget(int fd)
{
	struct slot *slot = run_slot(fd);
	size_t i;

	if (!slot)
		return;
	for (i = 0; i < RUN_EPOLLS; i++)
		atomic_store(&slot->interests[i].epfd, 0);
	slot->more = false;
	slot->copied = false;
}

PUBLIC int socket(int domain, int type, int protocol)
{
	int fd = REAL(socket)(domain, type, protocol);
	struct slot *slot = run_slot(fd);

	/* a listener that was closed unseen has a descriptor to close, which listen() does */
	if (slot && atomic_load(&slot->kind) != LISTENER)
		atomic_store(&slot->kind, UNKNOWN);
	run_forget(fd);
	return fd;
}

static struct interest *find_interest(struct slot *slot, int epfd)
{
	size_t i;

	for (i = 0; i < RUN_EPOLLS; i++) {
		if (atomic_load(&slot->interests[i].epfd) == epfd)
			return &slot->interests[i];
	}
	return NULL;
}

static struct interest *new_interest(struct slot *slot, int epfd)
{
	size_t i;
	int none;

	for (i = 0; i < RUN_EPOLLS; i++) {
		none = 0;
		if (atomic_compare_exchange_strong(&slot->interests[i].epfd, &none, epfd))
			return &slot->interests[i];
	}
	return NULL;
}

/* Remember that epoll_ctl() has done this. */
void run_interest(int epfd, int op, int fd, const struct epoll_event *event)
{
	struct slot *slot, *instance = run_slot_new(epfd);
	struct interest *interest;
	int highest = atomic_load(&epolls);

	if (instance)
		instance->epoll = true;
	while (highest <= epfd && !atomic_compare_exchange_weak(&epolls, &highest, epfd + 1))
		;
	slot = op == EPOLL_CTL_DEL ? run_slot(fd) : run_slot_new(fd);
	if (!slot)
		return;
	interest = find_interest(slot, epfd + 1);
	if (op == EPOLL_CTL_DEL) {
		if (interest)
			atomic_store(&interest->epfd, 0);
		return;
	}
	if (!interest)
		interest = new_interest(slot, epfd + 1);
	if (interest)
		interest->event = *event;
	else
		slot->more = true;
}

/* Remove a descriptor of the library from all epoll instances. */
void run_leave_epolls(int fd)
{
	struct epoll_event event = { 0 };
	int epfd, err = errno;

	for (epfd = 0; epfd < atomic_load(&epolls); epfd++) {
		struct slot *slot = run_slot(epfd);

		if (slot && slot->epoll)
			syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_DEL, fd, &event);
	}
	errno = err;
}
