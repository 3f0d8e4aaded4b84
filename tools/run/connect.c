// SPDX-License-Identifier: BSD-3-Clause
/*
 * connect() by ESP, if the peer is on the link and answers within run_wait_ms: then the program's
 * descriptor is the ESP socket. Else it is the TCP socket, as if nothing had been tried.
 */
#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include "run.h"

#define SILENT		8	/* silent hosts that are remembered */
#define SILENT_S	30	/* seconds for which a silent host is remembered */
#define DISCARD		9	/* port of RFC 863 */

/*
 * Entries: silent_key() | the low 16 bits of the second until which connect() doesn't wait for the
 * host again.
 */
static _Atomic uint64_t silent[SILENT];
static atomic_uint silent_next;

/*
 * Hash a host's MAC address, or its IP address if it has none, at a device. The low 16 bits are 0.
 */
static uint64_t silent_key(const void *addr, size_t len, int ifindex)
{
	uint64_t hash = 14695981039346656037u;	/* FNV-1a */
	const unsigned char *p = addr;

	hash = (hash ^ (uint32_t)ifindex) * 1099511628211u;
	while (len--)
		hash = (hash ^ *p++) * 1099511628211u;
	return hash & ~0xffffull;
}

static bool is_silent(uint64_t key)
{
	uint16_t now = now_ms() / 1000;
	size_t i;

	for (i = 0; i < SILENT; i++) {
		uint64_t s = atomic_load(&silent[i]);

		if (s && (s & ~0xffffull) == key && (uint16_t)((uint16_t)s - now) <= SILENT_S)
			return true;
	}
	return false;
}

static void remember_silent(uint64_t key)
{
	uint16_t until = now_ms() / 1000 + SILENT_S;

	atomic_store(&silent[atomic_fetch_add(&silent_next, 1) % SILENT], key | until);
}

/**
 * struct attempt - a connection that a program wants
 * @fd:		the program's TCP socket
 * @to:		the peer
 * @port:	the peer's port, big-endian
 * @from:	name that the socket is bound to; unspecified: the route's
 * @sport:	port that the socket is bound to, or 0
 * @route:	to the peer
 * @esp:	the peer's address
 * @err:	errno for the program if TCP is no alternative
 * @ask:	socket for questions about routes and neighbours
 */
struct attempt {
	int fd;
	struct name to;
	in_port_t port;
	struct name from;
	in_port_t sport;
	struct route route;
	struct sockaddr_esp esp;
	int err;
	int ask;
};

/* Is it a TCP socket that was not used yet? */
static bool is_fresh(int fd)
{
	struct tcp_info info;
	int protocol;

	memset(&info, 0, sizeof(info));
	return !sys_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, sizeof(info)) &&
	       info.tcpi_state == TCP_CLOSE &&
	       !sys_getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, sizeof(protocol)) &&
	       protocol == IPPROTO_TCP;
}

static const char *find_route(struct attempt *a)
{
	uint32_t mark = 0;
	int ifindex = 0;

	sys_getsockopt(a->fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
	sys_getsockopt(a->fd, SOL_SOCKET, SO_BINDTOIFINDEX, &ifindex, sizeof(ifindex));
	if (run_route(a->ask, &a->to, run_name_any(&a->from) ? NULL : &a->from, ifindex, mark,
		      a->sport, a->port, &a->route))
		return "no route";
	if (a->route.type == RTN_LOCAL)
		return "this host";
	if (a->route.type != RTN_UNICAST || !a->route.ifindex)
		return "no route";
	if (a->route.gateway)
		return "it is behind a router";
	if (!run_name_any(&a->from) && run_ifindex_of(a->ask, &a->from) != a->route.ifindex)
		return "bound to an address of another device";
	if (run_name_any(&a->from)) {
		int family = a->from.family;

		a->from = a->route.source;
		a->from.family = family;
	}
	return NULL;
}

/* Make the kernel ask for the MAC address of @a->to: send an empty datagram to the discard port. */
static bool knock(const struct attempt *a)
{
	struct sockaddr_storage sa;
	socklen_t len;
	int one = 1, fd;
	struct name to = a->to;

	to.family = IN6_IS_ADDR_V4MAPPED(&to.addr) ? AF_INET : AF_INET6;
	if (IN6_IS_ADDR_LINKLOCAL(&to.addr))
		to.scope = a->route.ifindex;
	len = run_name_put(&to, htons(DISCARD), &sa);
	fd = syscall(SYS_socket, to.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	/* the datagram goes no further than this link */
	if (to.family == AF_INET)
		sys_setsockopt(fd, IPPROTO_IP, IP_TTL, &one, sizeof(one));
	else
		sys_setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &one, sizeof(one));
	sys_setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &a->route.ifindex,
		       sizeof(a->route.ifindex));
	syscall(SYS_sendto, fd, "", 0, MSG_NOSIGNAL, &sa, len);
	sys_close(fd);
	return true;
}

static uint64_t mac_key(const struct attempt *a)
{
	return silent_key(a->esp.sesp_addr, ETH_ALEN, a->route.ifindex);
}

static const char *find_neighbour(struct attempt *a, int64_t until)
{
	uint64_t nobody = silent_key(&a->to.addr, sizeof(a->to.addr), a->route.ifindex);
	struct timespec pause = { .tv_nsec = 500000 };
	bool knocked = false;
	int state, err;

	for (;;) {
		err = run_neighbour(a->ask, &a->to, a->route.ifindex, a->esp.sesp_addr, &state);
		if (!err)
			break;
		if (err == -ENODEV)
			return "its device is no Ethernet";
		if (err != -EAGAIN && err != -ENOENT)
			return "its MAC address can't be asked for";
		if (!knocked) {
			if (!knock(a))
				return "its MAC address can't be asked for";
			/* don't wait: if the host is back, the next connect() finds it */
			if (is_silent(nobody))
				return "its MAC address was not known lately, either";
		}
		if ((knocked && (state & NUD_FAILED)) || now_ms() >= until) {
			remember_silent(nobody);
			return "its MAC address is not known";
		}
		knocked = true;
		syscall(SYS_nanosleep, &pause, NULL);
		if (pause.tv_nsec < 16000000)
			pause.tv_nsec *= 2;
	}
	/* knock, because no other IP packet makes the kernel verify the entry */
	if (!knocked && !(state & (NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP)))
		knock(a);
	if (a->esp.sesp_addr[0] & 1)
		return "its MAC address is a group's";
	if (is_silent(mac_key(a)))
		return "it has not answered by ESP lately";
	return NULL;
}

static const char *why(int err)
{
	switch (err) {
	case ENODEV:
	case ENETDOWN:
	case EHOSTUNREACH:
		return "the device is not enabled for ESP";
	case ECONNREFUSED:
		return "nothing listens there by ESP";
	case EPROTONOSUPPORT:
		return "it speaks another version of ESP";
	case ETIMEDOUT:
		return "it has not answered by ESP";
	case EADDRINUSE:
	case EADDRNOTAVAIL:
		return "the port is not free for ESP";
	case EACCES:
		return "the port is not permitted for ESP";
	case EMSGSIZE:
		return "the device's MTU is too small for ESP";
	case EOPNOTSUPP:
		return "it has an option that ESP lacks";
	case EPERM:
		return "it has an option that this process may not set";
	case ENOPROTOOPT:
		return "the kernel's ESP is older than esp run";
	default:
		return "no ESP socket can be had";
	}
}

/* Wait for the answer; @fd doesn't block. Returns 0 or -errno. */
static int wait_answer(int fd, int64_t until)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	int n, err;

	for (;;) {
		int64_t left = until - now_ms();
		struct timespec t = { left / 1000, left % 1000 * 1000000 };

		if (left <= 0)
			return -ETIMEDOUT;
		n = syscall(SYS_ppoll, &pfd, 1, &t, NULL, 8);
		if (n > 0)
			break;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	if (sys_getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, sizeof(err)))
		return -errno;
	return -err;
}

static int connect_esp(struct attempt *a, int fd, int64_t until)
{
	struct sockaddr_esp local = { .sesp_family = AF_ESP, .sesp_halen = ETH_ALEN };
	struct sockaddr_storage dest;
	struct name to = a->to;
	socklen_t len;
	int err;

	if (sys_setsockopt(fd, SOL_ESP, ESP_TCP_SOCKET, &a->fd, sizeof(a->fd)))
		return -errno;
	to.family = IN6_IS_ADDR_V4MAPPED(&to.addr) ? AF_INET : AF_INET6;
	len = run_name_put(&to, a->port, &dest);
	if (sys_setsockopt(fd, SOL_ESP, ESP_TCP_DEST, &dest, len))
		return -errno;
	local.sesp_port = a->sport;
	if (a->sport && syscall(SYS_bind, fd, &local, sizeof(local)))
		return -errno;
	a->esp.sesp_family = AF_ESP;
	a->esp.sesp_halen = ETH_ALEN;
	a->esp.sesp_port = a->port;
	a->esp.sesp_ifindex = a->route.ifindex;
	if (!syscall(SYS_connect, fd, &a->esp, sizeof(a->esp)))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	err = wait_answer(fd, until);
	if (err == -ETIMEDOUT)
		remember_silent(mac_key(a));
	return err;
}

/* Why can't the ESP socket take the place of the TCP socket? NULL: it can. */
static const char *why_not_replaced(const struct slot *slot, int fd)
{
	if (!slot)
		return fd < RUN_FDS ? "there is no memory for its descriptor" :
				      "its descriptor's number is too high";
	if (slot->tcp_only && slot->tcp_only == run_cookie(fd))
		return "it has an option that ESP lacks";
	if (slot->more)
		return "it is in too many epoll instances";
	if (run_has_copy(fd))
		return "its descriptor was copied";
	return NULL;
}

/* Copy who gets the signals of O_ASYNC, and which signal. */
static void copy_owner(int from, int to)
{
	struct f_owner_ex owner;
	int sig = sys_fcntl(from, F_GETSIG, 0);

	if (!sys_fcntl(from, F_GETOWN_EX, (long)&owner) && owner.pid)
		sys_fcntl(to, F_SETOWN_EX, (long)&owner);
	if (sig > 0)
		sys_fcntl(to, F_SETSIG, sig);
}

/*
 * Make the TCP socket's descriptor that of the ESP socket, in all epoll instances too. Returns
 * NULL, or why it can't be: another thread may have added or copied it meanwhile.
 */
static const char *put_in_place(struct attempt *a, int fd)
{
	static const char fails[] = "its descriptor can't be replaced";
	int flags = fcntl(a->fd, F_GETFL), fdflags = fcntl(a->fd, F_GETFD);
	struct epoll_event events[RUN_EPOLLS];
	struct slot *slot = run_slot(a->fd);
	int i, ret, epfds[RUN_EPOLLS];
	const char *text = why_not_replaced(slot, a->fd);
	struct sockaddr_esp own;
	socklen_t len = sizeof(own);

	if (text)
		return text;
	copy_owner(a->fd, fd);
	if (flags < 0 || fdflags < 0 || syscall(SYS_getsockname, fd, &own, &len))
		return fails;
	flags &= O_NONBLOCK | O_ASYNC;
	if (flags != O_NONBLOCK && sys_fcntl(fd, F_SETFL, flags))	/* as it was made */
		return fails;
	for (i = 0; i < RUN_EPOLLS; i++) {
		epfds[i] = atomic_load(&slot->interests[i].epfd) - 1;
		events[i] = slot->interests[i].event;
		/* fails if the descriptor isn't in that epoll instance now */
		if (epfds[i] >= 0 &&
		    syscall(SYS_epoll_ctl, epfds[i], EPOLL_CTL_DEL, a->fd, &events[i]))
			epfds[i] = -1;
	}
	atomic_store(&slot->kind, UNKNOWN);
	ret = syscall(SYS_dup3, fd, a->fd, fdflags & FD_CLOEXEC ? O_CLOEXEC : 0);
	for (i = 0; i < RUN_EPOLLS; i++) {
		if (epfds[i] >= 0 &&
		    syscall(SYS_epoll_ctl, epfds[i], EPOLL_CTL_ADD, a->fd, &events[i]))
			run_log("descriptor %d can't be added to epoll again: %s", a->fd,
				run_error());
	}
	if (ret < 0)
		return fails;
	slot->esp = a->esp;
	slot->sport = own.sesp_port;
	slot->local = a->from;
	slot->peer = a->to;
	atomic_store(&slot->kind, CONNECTED);
	return NULL;
}

static const char *attempt_asking(struct attempt *a)
{
	int64_t until = now_ms() + run_wait_ms;
	struct slot *slot = run_slot_new(a->fd);
	const char *text;
	int fd;

	text = find_route(a);
	if (text)
		return text;
	text = why_not_replaced(slot, a->fd);
	if (text)
		return text;
	fd = syscall(SYS_socket, AF_ESP, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	a->err = ENETUNREACH;
	if (fd < 0)
		return run_no_socket(AF_ESP);
	a->err = EHOSTUNREACH;
	text = find_neighbour(a, until);
	if (!text) {
		a->err = -connect_esp(a, fd, until);
		if (a->err)
			text = why(a->err);
		else
			text = put_in_place(a, fd);
		if (text && !a->err)
			a->err = EHOSTUNREACH;
	}
	sys_close(fd);
	return text;
}

/* Try to connect by ESP. Returns NULL, or why it isn't connected. */
static const char *attempt(struct attempt *a)
{
	const char *text;

	a->err = EHOSTUNREACH;
	text = run_ask(a->fd, &a->ask);
	if (text)
		return text;
	text = attempt_asking(a);
	sys_close(a->ask);
	return text;
}

static bool wants_esp(struct attempt *a, int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage own;
	socklen_t own_len = sizeof(own);

	memset(a, 0, sizeof(*a));
	a->fd = fd;
	if (!addr || !run_name_get(addr, len, &a->to) || run_name_any(&a->to) ||
	    run_name_local(&a->to) || !is_fresh(fd) ||
	    syscall(SYS_getsockname, fd, &own, &own_len) ||
	    !run_name_get((struct sockaddr *)&own, own_len, &a->from) ||
	    (a->from.family == AF_INET && a->to.family != AF_INET))
		return false;
	a->to.family = a->from.family;
	a->port = ((const struct sockaddr_in *)addr)->sin_port;
	a->sport = ((struct sockaddr_in *)&own)->sin_port;
	return a->port;
}

PUBLIC int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	char name[NAME_STRLEN];
	struct attempt a;
	const char *text;
	int err = errno;

	if (!addr || len < sizeof(addr->sa_family) ||
	    (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
		return REAL(connect)(fd, addr, len);
	if (!wants_esp(&a, fd, addr, len)) {
		if (run_is_esp(fd)) {
			errno = EISCONN;
			return -1;
		}
		errno = err;
		return REAL(connect)(fd, addr, len);
	}
	text = attempt(&a);
	run_name_text(&a.to, a.port, name);
	if (!text) {
		run_log("to %s: ESP", name);
		errno = err;
		return 0;
	}
	if (run_only && a.route.type != RTN_LOCAL) {
		run_log("to %s: not by ESP, %s", name, text);
		errno = a.err;
		return -1;
	}
	run_log("to %s: TCP, %s", name, text);
	errno = err;
	return REAL(connect)(fd, addr, len);
}
