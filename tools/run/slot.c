// SPDX-License-Identifier: BSD-3-Clause
/*
 * The library's memory of descriptors: a table in chunks, which are mapped when a descriptor of
 * theirs is used. So a program pays for the numbers that it uses.
 */
#include "run.h"

_Static_assert(!(RUN_FDS % RUN_CHUNK), "the table has only whole chunks");

struct memory *_Atomic run_memory;
static atomic_int epolls;	/* the highest number of an epoll instance, + 1 */
static atomic_int copies;	/* the highest number of a copied descriptor, + 1 */
static _Atomic pid_t *owner;	/* the process whose memory this is */

/* The caller is the only thread. */
static void own_memory(void)
{
	if (owner)
		atomic_store_explicit(owner, getpid(), memory_order_relaxed);
}

/*
 * Let each child of fork() own its memory at once: else its own first child, of vfork(), would seem
 * to be the owner. glibc has pthread_atfork() only in programs, musl only by this name.
 */
static void follow_forks(void)
{
	int (*glibc)(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);
	int (*musl)(void (*prepare)(void), void (*parent)(void), void (*child)(void));

	glibc = (typeof(glibc))dlsym(RTLD_DEFAULT, "__register_atfork");
	if (glibc) {
		glibc(NULL, NULL, own_memory, NULL);
		return;
	}
	musl = (typeof(musl))dlsym(RTLD_DEFAULT, "pthread_atfork");
	if (musl)
		musl(NULL, NULL, own_memory);
}

/*
 * A child of vfork() has its parent's memory, but descriptors of its own. Make a page that a child
 * of fork() finds empty.
 */
static void __attribute__((constructor)) find_owner(void)
{
	int err = errno;
	void *page = mmap(NULL, sizeof(*owner), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED && !madvise(page, sizeof(*owner), MADV_WIPEONFORK)) {
		owner = page;
		own_memory();
		follow_forks();
	}
	errno = err;
}

bool run_is_vfork_child(void)
{
	pid_t none = 0, self = getpid();

	return owner && !atomic_compare_exchange_strong(owner, &none, self) && none != self;
}

void run_raise(atomic_int *highest, int fd)
{
	int now = atomic_load(highest);

	while (now <= fd && !atomic_compare_exchange_weak(highest, &now, fd + 1))
		;
}

/* Return the library's memory; NULL: there is none. */
struct memory *run_map_memory(void)
{
	struct memory *memory = atomic_load(&run_memory), *other = NULL;
	int err = errno;

	if (!memory) {
		memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		errno = err;
		if (!atomic_compare_exchange_strong(&run_memory, &other, memory)) {
			if (memory != MAP_FAILED)
				munmap(memory, sizeof(*memory));
			memory = other;
		}
	}
	return memory == MAP_FAILED ? NULL : memory;
}

/* Return the slot of @fd. NULL: the number is too high, or there is no memory for its chunk. */
struct slot *run_slot_new(int fd)
{
	struct slot *slot = run_slot(fd), *chunk, *other = NULL;
	size_t size = RUN_CHUNK * sizeof(*chunk);
	struct memory *memory;
	int err = errno;

	if (slot || fd < 0 || fd >= RUN_FDS)
		return slot;
	memory = run_map_memory();
	if (!memory || atomic_load(&memory->chunks[fd / RUN_CHUNK]))
		return run_slot(fd);
	chunk = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = err;
	/* one that can't be mapped now stays so: its descriptors may have been added to epoll */
	if (!atomic_compare_exchange_strong(&memory->chunks[fd / RUN_CHUNK], &other, chunk) &&
	    chunk != MAP_FAILED)
		munmap(chunk, size);
	return run_slot(fd);
}

/* Does the slot remember what was done with a socket before it was connected, or listened? */
static bool remembers(const struct slot *slot)
{
	size_t i;

	for (i = 0; i < RUN_EPOLLS; i++) {
		if (atomic_load(&slot->interests[i].epfd))
			return true;
	}
	return slot->more || slot->copied;
}

/* Forget what was done with another socket of this number, unless that is the parent's. */
void run_forget(int fd)
{
	struct slot *slot = run_slot(fd);
	size_t i;

	if (!slot || !remembers(slot) || run_is_vfork_child())
		return;
	for (i = 0; i < RUN_EPOLLS; i++)
		atomic_store(&slot->interests[i].epfd, 0);
	slot->more = false;
	slot->copied = false;
}

/* Forget which kind of socket has this number, unless that is the parent's. */
void run_unknown(int fd)
{
	struct slot *slot = run_slot(fd);

	if (slot && atomic_load(&slot->kind) != UNKNOWN && !run_is_vfork_child())
		atomic_store(&slot->kind, UNKNOWN);
}

PUBLIC int socket(int domain, int type, int protocol)
{
	int fd = REAL(socket)(domain, type, protocol);
	struct slot *slot = run_slot(fd);

	/* a listener that was closed unseen has a descriptor to close, which listen() does */
	if (slot && atomic_load(&slot->kind) != LISTENER)
		run_unknown(fd);
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

static bool new_interest(struct slot *slot, int epfd, const struct epoll_event *event)
{
	size_t i;
	int none;

	for (i = 0; i < RUN_EPOLLS; i++) {
		none = 0;
		if (!atomic_compare_exchange_strong(&slot->interests[i].epfd, &none, -1))
			continue;
		slot->interests[i].event = *event;
		atomic_store(&slot->interests[i].epfd, epfd);
		return true;
	}
	return false;
}

/* Remember that epoll_ctl() has done this. */
void run_interest(int epfd, int op, int fd, const struct epoll_event *event)
{
	struct slot *slot, *instance = run_slot_new(epfd);
	struct interest *interest;

	if (instance && !instance->epoll)
		instance->epoll = true;
	run_raise(&epolls, epfd);
	slot = op == EPOLL_CTL_DEL ? run_slot(fd) : run_slot_new(fd);
	if (!slot)
		return;
	interest = find_interest(slot, epfd + 1);
	if (op == EPOLL_CTL_DEL) {
		if (interest)
			atomic_store(&interest->epfd, 0);
		return;
	}
	if (interest)
		interest->event = *event;
	else if (!new_interest(slot, epfd + 1, event))
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

/* Remember two numbers of a new socket, of an epoll instance, or of anything else. */
void run_copies(int fd, int copy)
{
	struct slot *from = run_slot(fd), *to = run_slot(copy);

	run_forget(copy);
	if (atomic_load(&to->kind) != LISTENER)
		atomic_store(&to->kind, UNKNOWN);
	from->copied = true;
	to->copied = true;
	to->tcp_only = from->tcp_only;
	run_raise(&copies, fd > copy ? fd : copy);
	if (from->epoll) {
		to->epoll = true;
		run_raise(&epolls, copy);
	}
}

/* Does the process have the same socket by another number? */
bool run_has_copy(int fd)
{
	struct slot *slot = run_slot(fd);
	uint64_t cookie;
	int other;

	if (!slot || !slot->copied)
		return false;
	cookie = run_cookie(fd);
	for (other = 0; other < atomic_load(&copies); other++) {
		slot = run_slot(other);
		if (slot && slot->copied && other != fd && run_cookie(other) == cookie)
			return true;
	}
	return false;
}

/* Copy slot.tcp_only to the other numbers of the same socket. */
void run_mark_copies(int fd)
{
	uint64_t cookie = run_slot(fd)->tcp_only;
	int other;

	for (other = 0; other < atomic_load(&copies); other++) {
		struct slot *slot = run_slot(other);

		if (slot && slot->copied && run_cookie(other) == cookie)
			slot->tcp_only = cookie;
	}
}
