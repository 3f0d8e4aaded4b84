// SPDX-License-Identifier: BSD-3-Clause
/*
 * The names of both ends of an ESP connection, as TCP would tell them. If the library doesn't know
 * a descriptor, it asks the kernel for the names: after exec(), or if the descriptor came in a
 * message of another process.
 */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <stddef.h>
#include <stdio.h>
#include "run.h"

bool run_is_esp(int fd)
{
	int family, err = errno;
	bool is = !sys_getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, sizeof(family)) &&
		  family == AF_ESP;

	errno = err;
	return is;
}

/* Make a name of an address. False: it is of another family, or too short. */
bool run_name_get(const struct sockaddr *sa, socklen_t len, struct name *name)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	memset(name, 0, sizeof(*name));
	if (len >= sizeof(*in) && sa->sa_family == AF_INET) {
		name->addr.s6_addr[10] = 0xff;
		name->addr.s6_addr[11] = 0xff;
		memcpy(&name->addr.s6_addr[12], &in->sin_addr, 4);
	} else if (len >= offsetof(struct sockaddr_in6, sin6_scope_id) &&
		   sa->sa_family == AF_INET6) {
		name->addr = in6->sin6_addr;
		if (len >= sizeof(*in6))
			name->scope = in6->sin6_scope_id;
	} else {
		return false;
	}
	name->family = sa->sa_family;
	return true;
}

/* Make an address of a name and a port, big-endian. Returns the address's length. */
socklen_t run_name_put(const struct name *name, in_port_t port, struct sockaddr_storage *sa)
{
	struct sockaddr_in6 *in6 = (void *)sa;
	struct sockaddr_in *in = (void *)sa;

	memset(sa, 0, sizeof(*sa));
	sa->ss_family = name->family;
	if (name->family == AF_INET) {
		in->sin_port = port;
		memcpy(&in->sin_addr, &name->addr.s6_addr[12], 4);
		return sizeof(*in);
	}
	in6->sin6_port = port;
	in6->sin6_addr = name->addr;
	in6->sin6_scope_id = name->scope;
	return sizeof(*in6);
}

const char *run_name_text(const struct name *name, in_port_t port, char *buf)
{
	char addr[INET6_ADDRSTRLEN];
	bool v4 = name->family == AF_INET || IN6_IS_ADDR_V4MAPPED(&name->addr);

	if (v4)
		inet_ntop(AF_INET, &name->addr.s6_addr[12], addr, sizeof(addr));
	else
		inet_ntop(AF_INET6, &name->addr, addr, sizeof(addr));
	snprintf(buf, NAME_STRLEN, v4 ? "%s:%u" : "[%s]:%u", addr, ntohs(port));
	return buf;
}

static uint32_t v4_of(const struct name *name)
{
	return ntohl(name->addr.s6_addr32[3]);
}

bool run_name_any(const struct name *name)
{
	if (IN6_IS_ADDR_V4MAPPED(&name->addr))
		return !v4_of(name);
	return IN6_IS_ADDR_UNSPECIFIED(&name->addr);
}

/* Is it an address of loopback? */
bool run_name_local(const struct name *name)
{
	if (IN6_IS_ADDR_V4MAPPED(&name->addr))
		return v4_of(name) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&name->addr);
}

/* Find the name of this host that a peer with that name uses. */
static void local_of(int ask, const struct name *peer, int ifindex, struct name *local)
{
	struct route route;

	memset(local, 0, sizeof(*local));
	if (!run_name_any(peer) && !run_route(ask, peer, NULL, ifindex, 0, 0, 0, &route))
		*local = route.source;
	local->family = peer->family;
}

/* Find the peer's name of a descriptor that the library doesn't remember. */
static void find_peer(const struct sockaddr_esp *esp, struct name *peer)
{
	memset(peer, 0, sizeof(*peer));
	run_name_of(-1, esp->sesp_addr, esp->sesp_ifindex, AF_INET, true, peer);
	peer->family = run_name_any(peer) || IN6_IS_ADDR_V4MAPPED(&peer->addr) ?
		       AF_INET : AF_INET6;
}

/* Remember an accepted connection. Its peer's name is of the listener's family. */
void run_name_accepted(int fd, const struct sockaddr_esp *esp, const struct slot *listener)
{
	struct slot *slot = run_slot_new(fd);
	int ask;

	if (!slot)
		return;
	run_forget(fd);
	atomic_store(&slot->kind, UNKNOWN);
	slot->esp = *esp;
	slot->sport = listener->sport;
	memset(&slot->peer, 0, sizeof(slot->peer));
	ask = run_netlink();
	run_name_of(ask, esp->sesp_addr, esp->sesp_ifindex, listener->prefer,
		    listener->local.family == AF_INET6, &slot->peer);
	slot->peer.family = listener->local.family;
	if (run_name_any(&listener->local))
		local_of(ask, &slot->peer, esp->sesp_ifindex, &slot->local);
	else
		slot->local = listener->local;
	if (ask >= 0)
		sys_close(ask);
	atomic_store(&slot->kind, CONNECTED);
}

static bool same_esp(const struct sockaddr_esp *a, const struct sockaddr_esp *b)
{
	return a->sesp_port == b->sesp_port && a->sesp_ifindex == b->sesp_ifindex &&
	       !memcmp(a->sesp_addr, b->sesp_addr, ETH_ALEN);
}

/* Find both names of an ESP socket: the slot's if that remembers this socket. */
static void names_of(int fd, struct name *local, struct name *peer)
{
	struct sockaddr_esp esp = { 0 }, own = { 0 };
	struct slot *slot = run_slot(fd);
	socklen_t len = sizeof(esp);
	int err = errno;

	memset(local, 0, sizeof(*local));
	memset(peer, 0, sizeof(*peer));
	local->family = AF_INET;
	peer->family = AF_INET;
	if (syscall(SYS_getsockname, fd, &own, &len))
		goto out;
	len = sizeof(esp);
	if (syscall(SYS_getpeername, fd, &esp, &len)) {
		/* the socket is not connected any more */
		if (slot && atomic_load(&slot->kind) == CONNECTED && slot->sport == own.sesp_port) {
			*local = slot->local;
			*peer = slot->peer;
		}
		goto out;
	}
	if (slot && atomic_load(&slot->kind) == CONNECTED && slot->sport == own.sesp_port &&
	    same_esp(&slot->esp, &esp)) {
		*local = slot->local;
		*peer = slot->peer;
	} else {
		find_peer(&esp, peer);
		local_of(-1, peer, esp.sesp_ifindex, local);
	}
out:
	errno = err;
}

/* Copy an address into the program's buffer, which has room for *@len bytes. */
static void give(const struct sockaddr_storage *sa, socklen_t real, void *buf, socklen_t *len)
{
	memcpy(buf, sa, *len < real ? *len : real);
	*len = real;
}

static int give_name(int fd, bool peer, struct sockaddr_storage *sa, socklen_t real,
		     struct sockaddr *buf, socklen_t *len)
{
	if (sa->ss_family == AF_ESP) {
		in_port_t port = ((struct sockaddr_esp *)sa)->sesp_port;
		struct name names[2];

		names_of(fd, &names[0], &names[1]);
		real = run_name_put(&names[peer], port, sa);
	}
	give(sa, real, buf, len);
	return 0;
}

PUBLIC int getsockname(int fd, struct sockaddr *__restrict addr, socklen_t *__restrict len)
{
	struct sockaddr_storage sa;
	socklen_t real = sizeof(sa);

	if (!addr || !len || (int)*len < 0)
		return REAL(getsockname)(fd, addr, len);
	if (syscall(SYS_getsockname, fd, &sa, &real))
		return -1;
	return give_name(fd, false, &sa, real, addr, len);
}

PUBLIC int getpeername(int fd, struct sockaddr *__restrict addr, socklen_t *__restrict len)
{
	struct sockaddr_storage sa;
	socklen_t real = sizeof(sa);

	if (!addr || !len || (int)*len < 0)
		return REAL(getpeername)(fd, addr, len);
	if (syscall(SYS_getpeername, fd, &sa, &real))
		return -1;
	return give_name(fd, true, &sa, real, addr, len);
}
