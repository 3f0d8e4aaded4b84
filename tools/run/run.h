/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libesp-run.so: carries the TCP connections of an unchanged program over ESP.
 *
 * To connect: the descriptor becomes an ESP socket when connect() finds that the peer answers by
 * ESP; else it stays the TCP socket (connect.c).
 *
 * To listen: the descriptor stays TCP's listener. Beside it is an ESP listener, hidden at a high
 * number; a call that waits for the one waits for both (listen.c, wait.c).
 *
 * The library's memory of a descriptor is only a hint, because the program may close and copy
 * descriptors by calls that the library doesn't see. So it asks the kernel whether this still is
 * that socket. The exceptions are accept() and epoll_ctl(), which programs call with each message:
 * what was a connection is no listener, or else one of TCP only. The program may call from signal
 * handlers and from children of vfork(). So there are no locks, and a child of vfork() writes
 * nothing down. Memory is allocated only where poll() has very many descriptors; that of the
 * descriptors themselves is mapped (slot.c).
 *
 * Both glibc and musl load the same file, into the program and those that it starts. So it needs no
 * library but the C library, and of that only functions that both have, with structures that are
 * the same in both.
 */
#ifndef RUN_H
#define RUN_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <linux/af_esp.h>

#define PUBLIC __attribute__((visibility("default")))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The calls that the library replaces; CALL() is applied to each */
#define RUN_CALLS(CALL)							\
	CALL(accept4) CALL(close) CALL(connect) CALL(dup) CALL(dup2)	\
	CALL(dup3) CALL(epoll_ctl) CALL(execve) CALL(fcntl)		\
	CALL(fcntl64) CALL(getpeername) CALL(getsockname)		\
	CALL(getsockopt) CALL(listen) CALL(poll) CALL(ppoll)		\
	CALL(__poll_chk) CALL(__ppoll_chk) CALL(pselect) CALL(select)	\
	CALL(setsockopt) CALL(shutdown) CALL(socket)

#define RUN_CALL_NUMBER(name) RUN_##name,

enum run_call {
	RUN_CALLS(RUN_CALL_NUMBER)
	RUN_CALLS_NUMBER
};

/* Get the C library's own function; a cancellation point stays one. */
#define REAL(name) ((typeof(name) *)run_real(RUN_##name))

/*
 * The library's own descriptors begin here, if there are so many. The number is small, because the
 * kernel's table of descriptors is as large as the highest one, and fork() copies it. With this
 * number the table has 128 entries, the smallest number but that of a program with fewer than 64.
 * It is no round number, which a program may choose for a copy.
 */
#define RUN_HIGH 115
#define RUN_FDS 1048576	/* descriptors from this number on are not remembered */
#define RUN_CHUNK 512		/* descriptors that are remembered in one piece of memory */
#define RUN_EPOLLS 4		/* epoll instances that are remembered for a descriptor */

/**
 * struct name - an end of a connection as the program is to see it
 * @family:	AF_INET or AF_INET6; IPv4 in IPv6 is v4-mapped
 * @addr:	the address, IPv4's is v4-mapped
 * @scope:	device of a link-local address
 */
struct name {
	int family;
	struct in6_addr addr;
	uint32_t scope;
};

enum kind {
	UNKNOWN,
	LISTENER,	/* TCP's, with an ESP listener beside it */
	OTHER,		/* a listener without an ESP listener beside it */
	CONNECTED,	/* an ESP socket, whose names are known */
};

/**
 * struct interest - an epoll instance that a descriptor was added to
 * @epfd:	the instance, + 1; 0: none; -1: the event is being written
 * @event:	event that the descriptor was added with
 */
struct interest {
	_Atomic int epfd;
	struct epoll_event event;
};

/**
 * struct slot - the library's memory of a descriptor
 * @kind:	tells which of the members are valid
 * @cookie:	LISTENER: the socket's SO_COOKIE
 * @hidden:	LISTENER: descriptor of the ESP listener
 * @hidden_cookie: LISTENER: SO_COOKIE of the ESP listener
 * @backlog:	LISTENER: the argument of listen()
 * @armed:	LISTENER: the ESP socket listens; poll() and select() believe it until an event
 * @timeo:	LISTENER: the program's SO_RCVTIMEO
 * @accepts:	LISTENER: the process in which a thread has the lock of accept_bounded(); 0: none
 * @prefer:	LISTENER: preferred family of names
 * @esp:	CONNECTED: the peer's address
 * @sport:	CONNECTED, LISTENER: own port
 * @local:	CONNECTED: own name; LISTENER: the name that it is bound to
 * @peer:	CONNECTED: the peer's name
 * @interests:	epoll instances that the descriptor was added to
 * @more:	there are more of them
 * @tcp_only:	SO_COOKIE of a socket for which the program has set an option that an ESP socket
 *		would lack; 0: none. setsockopt() writes it
 * @copied:	the socket was copied, or is a copy, before it was connected or listened
 * @epoll:	the descriptor is, or was, an epoll instance
 */
struct slot {
	_Atomic int kind;
	uint64_t cookie;
	uint64_t hidden_cookie;
	int hidden;
	int backlog;
	bool armed;
	struct timeval timeo;
	_Atomic pid_t accepts;
	int prefer;
	struct sockaddr_esp esp;
	in_port_t sport;
	struct name local;
	struct name peer;
	struct interest interests[RUN_EPOLLS];
	bool more;
	uint64_t tcp_only;
	bool copied;
	bool epoll;
};

/*
 * The library's large variables. They are mapped, so that the others fit into a page: each mapping
 * makes the program's fork() slower, and the kernel joins this one with a neighbour.
 */
struct memory {
	/* slots of RUN_CHUNK descriptors each; NULL: not used yet, MAP_FAILED: no memory */
	struct slot *_Atomic chunks[RUN_FDS / RUN_CHUNK];
	char kept[2 * PATH_MAX];	/* for execve() */
};

extern struct memory *_Atomic run_memory;	/* NULL: not used yet, MAP_FAILED: no memory */
extern atomic_int run_listeners;	/* the highest number of a LISTENER, + 1 */

/* Return the slot of a descriptor that the library has seen; else NULL, or an empty slot. */
static inline struct slot *run_slot(int fd)
{
	struct memory *memory = atomic_load(&run_memory);
	struct slot *chunk;

	if (fd < 0 || fd >= RUN_FDS || !memory || memory == MAP_FAILED)
		return NULL;
	chunk = atomic_load(&memory->chunks[fd / RUN_CHUNK]);
	return chunk && chunk != MAP_FAILED ? &chunk[fd % RUN_CHUNK] : NULL;
}

/* System calls that are no cancellation points. */
static inline int sys_getsockopt(int fd, int level, int name, void *val, socklen_t len)
{
	return syscall(SYS_getsockopt, fd, level, name, val, &len);
}

static inline int sys_setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	return syscall(SYS_setsockopt, fd, level, name, val, len);
}

static inline int sys_fcntl(int fd, int cmd, long arg)
{
	return syscall(SYS_fcntl, fd, cmd, arg);
}

static inline int sys_close(int fd)
{
	return syscall(SYS_close, fd);
}

static inline int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* slot.c */
struct memory *run_map_memory(void);
struct slot *run_slot_new(int fd);
void run_raise(atomic_int *highest, int fd);
void run_forget(int fd);
void run_unknown(int fd);
void run_interest(int epfd, int op, int fd, const struct epoll_event *event);
void run_leave_epolls(int fd);
void run_copies(int fd, int copy);
void run_mark_copies(int fd);
bool run_is_vfork_child(void);
bool run_has_copy(int fd);

/* log.c */
extern bool run_only;
extern bool run_logs;	/* a log is open; it saves the making of words that nobody reads */
extern int run_wait_ms;
void run_log(const char *format, ...);
void run_log_leave(int fd);
const char *run_error(void);
const char *run_no_socket(int family);

/* route.c */
struct route {
	int ifindex;
	unsigned int type;
	bool gateway;
	struct name source;
};

int run_netlink(void);
const char *run_ask(int tcp, int *fd);
int run_route(int fd, const struct name *to, const struct name *from, int ifindex, uint32_t mark,
	      in_port_t sport, in_port_t dport, struct route *route);
int run_neighbour(int fd, const struct name *to, int ifindex, unsigned char *mac, int *state);
bool run_name_of(int fd, const unsigned char *mac, int ifindex, int family, bool any,
		 struct name *name);
int run_ifindex_of(int fd, const struct name *name);

/* name.c */
#define NAME_STRLEN 64

bool run_is_esp(int fd);
bool run_name_get(const struct sockaddr *sa, socklen_t len, struct name *name);
socklen_t run_name_put(const struct name *name, in_port_t port, struct sockaddr_storage *sa);
const char *run_name_text(const struct name *name, in_port_t port, char *buf);
bool run_name_any(const struct name *name);
bool run_name_local(const struct name *name);
void run_name_accepted(int fd, const struct sockaddr_esp *peer, const struct slot *listener);

/* listen.c */
uint64_t run_cookie(int fd);
struct slot *run_listener(int fd);
struct slot *run_waits(int fd);
void run_copied(int fd, int copy);
void run_uncover(int fd);
void run_end(struct slot *slot);
void run_epoll(struct slot *slot, int epfd, int op, struct epoll_event *event);

int fcntl64(int fd, int cmd, ...);

/* wait.c: functions that programs call which were compiled with _FORTIFY_SOURCE */
int __poll_chk(struct pollfd *fds, unsigned long n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, unsigned long n, const struct timespec *timeout,
		const sigset_t *mask, size_t size);

/* real.c */
void *run_real(enum run_call call);

#endif /* RUN_H */
