// SPDX-License-Identifier: BSD-3-Clause
/*
 * Listeners. When the program calls listen(), the library makes an ESP socket that stands for TCP's
 * listener (ESP_TCP_LISTENER). It listens from the moment when the program waits for connections by
 * a call that the library sees: accept(), poll(), select(), epoll_ctl(). A program that waits in
 * another way (io_uring) never has ESP connections, because it would not accept them: a peer that
 * tries gets an RST, and uses TCP.
 *
 * A TCP listener has one ESP listener, however many descriptors and processes have it. After fork()
 * they share it. After dup(), after exec(), or in a process that was given TCP's listener, the
 * library gets a descriptor of it from the kernel. So the process that accepts gets the connection.
 */
#include <limits.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include "run.h"

#define RETRY_MS	100	/* a blocking accept() looks at both queues in this interval */

atomic_int run_listeners;
static atomic_uint turn;

/* Return the number of a socket that no other one has; 0: it is none. */
uint64_t run_cookie(int fd)
{
	uint64_t cookie;

	if (sys_getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, sizeof(cookie)))
		return 0;
	return cookie;
}

static bool hides(const struct slot *slot)
{
	return slot->hidden >= 0 && run_cookie(slot->hidden) == slot->hidden_cookie;
}

/* Return the slot of a listener that has an ESP listener beside it; NULL: it has none. */
struct slot *run_listener(int fd)
{
	struct slot *slot = run_slot(fd);
	int err = errno;

	if (!slot || atomic_load(&slot->kind) != LISTENER)
		return NULL;
	if (run_cookie(fd) != slot->cookie || !hides(slot))
		slot = NULL;
	errno = err;
	return slot;
}

static int out_of_the_way(int fd)
{
	int high = sys_fcntl(fd, F_DUPFD_CLOEXEC, RUN_HIGH);

	if (high < 0)
		return fd;
	sys_close(fd);
	return high;
}

/* Return the device that the listener is restricted to; 0: none, -1: one without ESP. */
static int device_of(int fd, int ask, const struct name *local)
{
	char dev[IF_NAMESIZE] = "";
	int ifindex = 0;

	sys_getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &ifindex, sizeof(ifindex));
	if (!run_name_any(local))
		ifindex = run_ifindex_of(ask, local);
	else
		return ifindex;
	/* it can't be reached from other hosts, and must stay so */
	if (!ifindex || (if_indextoname(ifindex, dev) && !strcmp(dev, "lo")))
		return -1;
	return ifindex;
}

/*
 * Get the program's SO_RCVTIMEO when the library sees the listener first; 0 if it is the library's,
 * of another process (accept_bounded()). setsockopt() follows later changes.
 */
static struct timeval timeout_of(int fd)
{
	struct timeval t = { 0 };

	sys_getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	if (!t.tv_sec && t.tv_usec <= RETRY_MS * 1000)
		t.tv_usec = 0;
	return t;
}

/* The program's SO_RCVTIMEO in ms, for poll(); -1: none. */
static int timeout_ms(const struct slot *slot)
{
	int64_t ms = slot->timeo.tv_sec * 1000ll + slot->timeo.tv_usec / 1000;

	return ms && ms <= INT_MAX ? ms : -1;
}

static int bind_esp(int fd, int tcp, in_port_t port, int ifindex)
{
	struct sockaddr_esp esp = {
		.sesp_family = AF_ESP,
		.sesp_port = port,
		.sesp_ifindex = ifindex,
		.sesp_halen = ETH_ALEN,
	};
	int one = 1;

	sys_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (sys_setsockopt(fd, SOL_ESP, ESP_TCP_LISTENER, &tcp, sizeof(tcp)))
		return -1;
	return syscall(SYS_bind, fd, &esp, sizeof(esp));
}

/*
 * Get a descriptor of the ESP socket that listens for the TCP listener already; @any: any ESP
 * socket. Returns -1 if none listens.
 */
static int esp_of(int any, int tcp)
{
	return sys_getsockopt(any, SOL_ESP, ESP_TCP_LISTENER, &tcp, sizeof(tcp)) ? -1 : tcp;
}

/* Put another descriptor of an ESP listener in the place of the slot's, and close that. */
static void replace_hidden(struct slot *slot, int fd)
{
	int old, high = fd < 0 ? -1 : out_of_the_way(fd);

	if (high >= 0)
		slot->hidden_cookie = run_cookie(high);
	old = __atomic_exchange_n(&slot->hidden, high, __ATOMIC_SEQ_CST);
	if (old >= 0)
		sys_close(old);
}

/*
 * Do for the ESP listener what the program did for TCP's. If it can't be added (ENOSPC, ENOMEM), it
 * ends, because nobody would accept its connections.
 */
void run_epoll(struct slot *slot, int epfd, int op, struct epoll_event *event)
{
	if (!syscall(SYS_epoll_ctl, epfd, op, slot->hidden, event))
		return;
	if (op == EPOLL_CTL_MOD && errno == ENOENT &&
	    !syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_ADD, slot->hidden, event))
		return;
	if (op == EPOLL_CTL_DEL || errno == EEXIST)
		return;
	run_log("descriptor %d is not in epoll: TCP, %s", slot->hidden, run_error());
	run_end(slot);
}

/*
 * Add the ESP listener to the epoll instances that wait for TCP's already: the program has added
 * its socket before it listened. That the kernel has the socket there proves that the slot's memory
 * is not of an older descriptor. The probe's event is none, because a listener that was not there
 * must not be reported with an older descriptor's event.
 */
static void join_epolls(int fd, struct slot *slot)
{
	size_t i;

	for (i = 0; i < RUN_EPOLLS; i++) {
		int epfd = atomic_load(&slot->interests[i].epfd) - 1;
		struct epoll_event event = slot->interests[i].event, probe = { 0 };

		if (epfd < 0)
			continue;
		if (!syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_ADD, fd, &probe))
			syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_DEL, fd, &probe);
		else if (errno == EEXIST)
			run_epoll(slot, epfd, EPOLL_CTL_ADD, &event);
	}
}

/* Bind an ESP socket for the TCP listener @fd. False: it can have none. */
static bool bind_hidden(int fd, struct slot *slot, int backlog)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct name local;
	int hidden, shared, ifindex, protocol, ask, only = 0;
	char name[NAME_STRLEN];
	const char *text;
	in_port_t port;

	if (sys_getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, sizeof(protocol)) ||
	    protocol != IPPROTO_TCP || syscall(SYS_getsockname, fd, &own, &len) ||
	    !run_name_get((struct sockaddr *)&own, len, &local) || run_name_local(&local))
		return false;
	port = ((struct sockaddr_in *)&own)->sin_port;
	run_name_text(&local, port, name);
	if (slot->tcp_only && slot->tcp_only == run_cookie(fd)) {
		run_log("at %s: TCP, it has an option that ESP lacks", name);
		return false;
	}
	text = run_ask(fd, &ask);
	if (text) {		/* a peer's address could not be found */
		run_log("at %s: TCP, %s", name, text);
		return false;
	}
	ifindex = device_of(fd, ask, &local);
	sys_close(ask);
	if (ifindex < 0) {
		run_log("at %s: TCP, the address is no Ethernet device's", name);
		return false;
	}
	hidden = syscall(SYS_socket, AF_ESP, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (hidden < 0) {
		run_log("at %s: TCP, no ESP socket: %s", name, run_no_socket(AF_ESP));
		return false;
	}
	shared = esp_of(hidden, fd);
	if (shared < 0 && bind_esp(hidden, fd, port, ifindex)) {
		if (errno == EADDRINUSE)	/* another process was quicker, perhaps */
			shared = esp_of(hidden, fd);
		if (shared < 0) {
			run_log("at %s: TCP, no ESP socket: %s", name, run_error());
			goto fail;
		}
	}
	if (shared >= 0) {
		sys_close(hidden);
		hidden = shared;
	}
	hidden = out_of_the_way(hidden);
	if (run_listener(fd)) {		/* another thread was quicker */
		sys_close(hidden);
		return true;
	}
	slot->hidden = hidden;
	slot->cookie = run_cookie(fd);
	slot->hidden_cookie = run_cookie(hidden);
	if (!slot->cookie || !slot->hidden_cookie)
		goto fail;
	slot->backlog = backlog;
	slot->armed = shared >= 0;
	slot->timeo = timeout_of(fd);
	slot->local = local;
	slot->sport = port;
	sys_getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	if (!run_name_any(&local) && !IN6_IS_ADDR_V4MAPPED(&local.addr))
		only = 1;
	slot->prefer = only ? AF_INET6 : AF_INET;
	atomic_store(&slot->kind, LISTENER);
	run_raise(&run_listeners, fd);
	if (slot->armed)
		join_epolls(fd, slot);
	return true;
fail:
	if (hidden >= 0)
		sys_close(hidden);
	return false;
}

/*
 * Make, or get, the ESP listener beside the TCP listener @fd. NULL: it can have none. That is
 * written down at the end only: else another thread would wait for TCP alone meanwhile.
 */
static struct slot *cover(int fd, int backlog)
{
	struct slot *slot = run_slot_new(fd);

	if (!slot) {
		run_log("descriptor %d listens: TCP, it can't be remembered", fd);
		return NULL;
	}
	/* the descriptor was another listener's, which was closed unseen */
	if (atomic_load(&slot->kind) == LISTENER && hides(slot) && run_cookie(fd) != slot->cookie)
		replace_hidden(slot, -1);
	if (bind_hidden(fd, slot, backlog))
		return slot;
	atomic_store(&slot->kind, OTHER);
	return NULL;
}

/* Let the ESP socket listen, because the program waits for connections. */
static bool arm(int fd, struct slot *slot)
{
	char name[NAME_STRLEN];
	in_port_t port = 0;
	struct sockaddr_esp own;
	socklen_t len = sizeof(own);
	int listens;

	if (slot->armed)
		return true;
	/* another process may have shut it down */
	if (sys_getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, sizeof(listens)) || !listens)
		return false;
	if (!syscall(SYS_getsockname, slot->hidden, &own, &len))
		port = own.sesp_port;
	run_name_text(&slot->local, port, name);
	if (sys_setsockopt(slot->hidden, SOL_ESP, ESP_TCP_SOCKET, &fd, sizeof(fd)) ||
	    /* an option that was copied may be the library's own */
	    sys_setsockopt(slot->hidden, SOL_SOCKET, SO_RCVTIMEO, &slot->timeo,
			   sizeof(slot->timeo)) ||
	    syscall(SYS_listen, slot->hidden, slot->backlog)) {
		listens = errno == EADDRINUSE ? esp_of(slot->hidden, fd) : -1;
		if (listens < 0) {
			run_log("at %s: TCP, no ESP listener: %s", name, run_error());
			replace_hidden(slot, -1);
			atomic_store(&slot->kind, OTHER);
			return false;
		}
		replace_hidden(slot, listens);	/* another process was quicker */
	} else {
		run_log("at %s: TCP and ESP", name);
	}
	slot->armed = true;
	join_epolls(fd, slot);
	return true;
}

/* Forget a listener whose descriptor is another socket's or file's now. */
static void forget_listener(struct slot *slot)
{
	int kind = LISTENER;

	if (atomic_load(&slot->kind) != LISTENER || run_is_vfork_child())
		return;
	if (hides(slot))
		replace_hidden(slot, -1);
	atomic_compare_exchange_strong(&slot->kind, &kind, UNKNOWN);
}

/* Return the slot of a listener that the program waits at. NULL: it is none, or of TCP only. */
struct slot *run_waits(int fd)
{
	struct slot *slot = run_slot_new(fd);
	int yes, err = errno;

	if (!slot)
		return NULL;
	switch (atomic_load(&slot->kind)) {
	case OTHER:
	case CONNECTED:
		return NULL;
	case LISTENER:
		if (run_listener(fd))
			break;
		__attribute__((fallthrough));	/* its ESP listener's descriptor is gone */
	default:	/* inherited, perhaps */
		if (sys_getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, sizeof(yes)) || !yes) {
			forget_listener(slot);
			slot = NULL;
		} else {
			slot = cover(fd, SOMAXCONN);
		}
	}
	if (slot && !arm(fd, slot))
		slot = NULL;
	errno = err;
	return slot;
}

/*
 * Close the ESP listener of a descriptor that the program closes, and forget the listener: a server
 * that forks closes it in each child, which then must not ask for it in each call that waits.
 */
void run_uncover(int fd)
{
	int kind = LISTENER;
	struct slot *slot;

	if (!atomic_load(&run_listeners))
		return;
	slot = run_listener(fd);
	if (!slot)
		return;
	if (run_is_vfork_child()) {
		sys_close(slot->hidden);	/* the parent keeps its own */
		return;
	}
	replace_hidden(slot, -1);
	atomic_compare_exchange_strong(&slot->kind, &kind, UNKNOWN);
}

/* Remember @copy as a copy of @fd. A listener's copy has its own descriptor of the ESP listener. */
void run_copied(int fd, int copy)
{
	struct slot *from = run_slot_new(fd), *to = run_slot_new(copy);
	int kind, err = errno;

	if (!from || !to || run_is_vfork_child())
		return;
	kind = atomic_load(&from->kind);
	if (kind == LISTENER && !run_listener(fd))
		kind = UNKNOWN;		/* another socket has its number now */
	if (kind == UNKNOWN) {
		run_copies(fd, copy);
		return;
	}
	*to = *from;
	run_forget(copy);
	if (kind == LISTENER) {
		run_raise(&run_listeners, copy);
		to->hidden = hides(from) ? sys_fcntl(from->hidden, F_DUPFD_CLOEXEC, RUN_HIGH) : -1;
		errno = err;
	}
}

PUBLIC int listen(int fd, int backlog)
{
	int ret = REAL(listen)(fd, backlog);
	struct slot *slot;
	int err = errno;

	if (ret)
		return ret;
	slot = run_listener(fd);
	if (slot) {
		slot->backlog = backlog;
		if (slot->armed)
			syscall(SYS_listen, slot->hidden, backlog);
	} else if (!run_is_esp(fd)) {
		cover(fd, backlog);
	}
	errno = err;
	return ret;
}

/*
 * Close an ESP listener that a process has shut down, or whose device has left; TCP's goes on
 * alone.
 */
void run_end(struct slot *slot)
{
	int kind = LISTENER, hidden = __atomic_exchange_n(&slot->hidden, -1, __ATOMIC_SEQ_CST);

	/* another thread was quicker, or has closed it, and the number is another socket's */
	if (hidden < 0 || run_cookie(hidden) != slot->hidden_cookie)
		return;
	run_leave_epolls(hidden);
	sys_close(hidden);
	atomic_compare_exchange_strong(&slot->kind, &kind, OTHER);
}

/* Accept the next ESP connection. Returns -1 and errno if there is none: EAGAIN. */
static int accept_esp(struct slot *slot, struct sockaddr_storage *sa, socklen_t *len, int flags)
{
	struct sockaddr_esp peer;
	socklen_t peer_len = sizeof(peer);
	char name[NAME_STRLEN];
	struct name from = { .family = slot->local.family };
	int fd = syscall(SYS_accept4, slot->hidden, &peer, &peer_len, flags);

	if (fd < 0) {
		switch (errno) {
		case EMFILE:
		case ENFILE:
		case ENOMEM:
		case ENOBUFS:
		case EAGAIN:
		case EINTR:
			return -1;
		}
		run_end(slot);
		errno = EAGAIN;
		return -1;
	}
	run_name_accepted(fd, &peer, slot);
	if (run_slot(fd))
		from = run_slot(fd)->peer;
	*len = run_name_put(&from, peer.sesp_port, sa);
	if (run_logs)
		run_log("from %s: ESP%s", run_name_text(&from, peer.sesp_port, name),
			run_name_any(&from) ? ", its address is not known" : "");
	return fd;
}

static bool try_lock(int fd, struct slot *slot)
{
	pid_t self = getpid(), holder = atomic_load(&slot->accepts);
	struct flock lock = { .l_type = F_WRLCK };

	/* a holder that is another process was copied by fork() */
	if (holder == self || !atomic_compare_exchange_strong(&slot->accepts, &holder, self))
		return false;
	if (!sys_fcntl(fd, F_SETLK, (long)&lock) || (errno != EAGAIN && errno != EACCES))
		return true;
	atomic_store(&slot->accepts, 0);
	return false;
}

/*
 * Let one accept_bounded() of a listener run at a time, in all threads and processes that share it:
 * if another one took the timeout back too early, this one would wait at TCP's queue only. The
 * kernel takes the lock from a process that ends. After RETRY_MS it is ignored: a signal handler
 * may have left the call, or may be what waits here.
 */
static void lock(int fd, struct slot *slot)
{
	int64_t until = 0;

	while (!try_lock(fd, slot)) {
		if (!until)
			until = now_ms() + RETRY_MS;
		else if (now_ms() > until)
			break;
		REAL(poll)(NULL, 0, 1);
	}
}

static void unlock(int fd, struct slot *slot)
{
	struct flock lock = { .l_type = F_UNLCK };

	sys_fcntl(fd, F_SETLK, (long)&lock);
	atomic_store(&slot->accepts, 0);
}

/*
 * Accept, but wait for RETRY_MS at most: a process without the library may have been quicker. A
 * process that shares the listener sees the library's timeout for this time only. A connection that
 * comes meanwhile inherits it, and is given the program's.
 */
static int accept_bounded(int fd, struct slot *slot, struct sockaddr_storage *sa, socklen_t *len,
			  int flags)
{
	struct timeval own = slot->timeo, bound = { .tv_usec = RETRY_MS * 1000 };
	struct pollfd queue = { .fd = fd, .events = POLLIN };
	struct timespec none = { 0 };
	int child = -1, err = EAGAIN;

	lock(fd, slot);
	/* no cancellation point, which would keep the lock */
	if (syscall(SYS_ppoll, &queue, 1, &none, NULL, 8)) {
		sys_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
		child = syscall(SYS_accept4, fd, sa, len, flags);
		err = errno;
		sys_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &own, sizeof(own));
	}
	unlock(fd, slot);
	if (child >= 0)
		sys_setsockopt(child, SOL_SOCKET, SO_RCVTIMEO, &own, sizeof(own));
	errno = err;
	return child;
}

static int accept_tcp(int fd, struct slot *slot, struct sockaddr_storage *sa, socklen_t *len,
		      int flags, bool blocks)
{
	char text[NAME_STRLEN];
	struct name name;
	int child;

	*len = sizeof(*sa);
	child = blocks ? accept_bounded(fd, slot, sa, len, flags) :
			 syscall(SYS_accept4, fd, sa, len, flags);
	if (child < 0)
		return -1;
	if (run_logs && run_name_get((struct sockaddr *)sa, *len, &name))
		run_log("from %s: TCP",
			run_name_text(&name, ((struct sockaddr_in *)sa)->sin_port, text));
	return child;
}

/*
 * Must a signal end accept()? After a handler with SA_RESTART the kernel restarts accept(), but not
 * poll(). Which handler it was is not known: if one is without SA_RESTART, the program must be
 * told. The caller asks before and after it waits in poll(): a handler may be gone once it ran
 * (SA_RESETHAND), or may have been set meanwhile. One that is gone is not noticed if it ran in
 * accept_bounded(), which waits only if a process without the library took the connection.
 */
static bool interrupts(int timeout)
{
	int sig, err = errno;
	struct sigaction sa;

	if (timeout >= 0)
		return true;
	for (sig = 1; sig < NSIG; sig++) {
		if (!sigaction(sig, NULL, &sa) && sa.sa_handler != SIG_DFL &&
		    sa.sa_handler != SIG_IGN && !(sa.sa_flags & SA_RESTART))
			break;
	}
	errno = err;
	return sig < NSIG;
}

/* The queues of a listener, for poll() */
enum { TCP, ESP, QUEUES };

/*
 * Wait until a queue has a connection or an error. The kernel makes a file before accept() looks
 * into a queue, so asking first costs less than an accept() in vain.
 */
static int poll_queues(struct pollfd *queues, int fd, const struct slot *slot, int timeout)
{
	queues[TCP] = (struct pollfd){ .fd = fd, .events = POLLIN };
	queues[ESP] = (struct pollfd){ .fd = slot->hidden, .events = POLLIN };
	return REAL(poll)(queues, QUEUES, timeout);
}

/* Accept from a queue with an event. If both have one, each is the first one in turns. */
static int accept_either(struct pollfd *queues, struct slot *slot, struct sockaddr_storage *sa,
			 socklen_t *len, int flags, bool blocks)
{
	int i, child, first = TCP;

	if (queues[TCP].revents && queues[ESP].revents)
		first = atomic_fetch_add(&turn, 1) % QUEUES;
	for (i = 0; i < QUEUES; i++) {
		struct pollfd *queue = &queues[i ^ first];

		if (!queue->revents)
			continue;
		child = queue == &queues[ESP] ? accept_esp(slot, sa, len, flags) :
			accept_tcp(queue->fd, slot, sa, len, flags, blocks);
		if (child >= 0 || errno != EAGAIN)
			return child;
	}
	errno = EAGAIN;
	return -1;
}

static int accept_blocking(int fd, struct slot *slot, struct sockaddr_storage *sa, socklen_t *len,
			   int flags)
{
	int child, n, timeout = timeout_ms(slot), left = timeout;
	int64_t end = timeout < 0 ? 0 : now_ms() + timeout;
	struct pollfd queues[QUEUES];
	bool told = false;

	for (;; left = timeout < 0 ? -1 : end - now_ms()) {
		n = poll_queues(queues, fd, slot, 0);
		if (!n && (timeout < 0 || left > 0)) {
			told = interrupts(timeout);
			n = poll_queues(queues, fd, slot, left);
		}
		if (n < 0) {
			if (errno != EINTR || told || interrupts(timeout))
				return -1;
			continue;
		}
		if (!n) {
			errno = EAGAIN;
			return -1;
		}
		child = accept_either(queues, slot, sa, len, flags, true);
		if (child >= 0 || (errno != EAGAIN && errno != EINTR))
			return child;
		if (errno == EINTR && (told || interrupts(timeout)))
			return -1;
	}
}

PUBLIC int accept4(int fd, struct sockaddr *__restrict addr, socklen_t *__restrict len, int flags)
{
	struct slot *slot = run_waits(fd);
	struct sockaddr_storage sa;
	struct pollfd queues[QUEUES];
	socklen_t real = sizeof(sa);
	int child, how, err = errno;

	if (!slot || (addr && (!len || (int)*len < 0)) || flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return REAL(accept4)(fd, addr, len, flags);
	how = sys_fcntl(fd, F_GETFL, 0);
	if (how < 0 || !(how & O_NONBLOCK)) {
		child = accept_blocking(fd, slot, &sa, &real, flags);
	} else {
		if (poll_queues(queues, fd, slot, 0) < 0) {	/* EINTR: accept() has none */
			queues[TCP].revents = POLLIN;
			queues[ESP].revents = POLLIN;
		}
		child = accept_either(queues, slot, &sa, &real, flags, false);
	}
	if (child < 0)
		return -1;
	if (addr) {
		memcpy(addr, &sa, *len < real ? *len : real);
		*len = real;
	}
	errno = err;
	return child;
}

PUBLIC int accept(int fd, struct sockaddr *__restrict addr, socklen_t *__restrict len)
{
	return accept4(fd, addr, len, 0);
}

/* Programs end a listener by this call, too: it wakes the waiters in all processes. */
PUBLIC int shutdown(int fd, int how)
{
	int ret = REAL(shutdown)(fd, how), err = errno;
	struct slot *slot;

	if (!ret && how != SHUT_WR && atomic_load(&run_listeners)) {
		slot = run_listener(fd);
		if (slot) {
			syscall(SYS_shutdown, slot->hidden, SHUT_RD);
			run_end(slot);
		}
	}
	errno = err;
	return ret;
}

PUBLIC int close(int fd)
{
	struct slot *slot = run_slot(fd);

	run_uncover(fd);
	if (slot && atomic_load(&slot->kind) == CONNECTED)
		run_unknown(fd);
	return REAL(close)(fd);
}

PUBLIC int dup(int fd)
{
	int copy = REAL(dup)(fd);

	if (copy >= 0)
		run_copied(fd, copy);
	return copy;
}

/* The descriptor @copy becomes a copy of @fd. */
static void leave(int fd, int copy)
{
	int err = errno;

	if (fd != copy && sys_fcntl(fd, F_GETFD, 0) >= 0) {
		run_uncover(copy);
		run_log_leave(copy);
	}
	errno = err;
}

PUBLIC int dup2(int fd, int copy)
{
	leave(fd, copy);
	if (REAL(dup2)(fd, copy) < 0)
		return -1;
	if (fd != copy)
		run_copied(fd, copy);
	return copy;
}

PUBLIC int dup3(int fd, int copy, int flags)
{
	leave(fd, copy);
	if (REAL(dup3)(fd, copy, flags) < 0)
		return -1;
	run_copied(fd, copy);
	return copy;
}

/* fcntl() copies descriptors, too. Each command's argument has at most a pointer's size. */
static int copied_by_fcntl(int fd, int cmd, int copy)
{
	if (copy >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC))
		run_copied(fd, copy);
	return copy;
}

PUBLIC int fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return copied_by_fcntl(fd, cmd, REAL(fcntl)(fd, cmd, arg));
}

/* glibc's name for it in programs with 64-bit offsets; musl has none */
PUBLIC int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return copied_by_fcntl(fd, cmd, REAL(fcntl64)(fd, cmd, arg));
}
