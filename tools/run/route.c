// SPDX-License-Identifier: BSD-3-Clause
/*
 * Questions to the kernel's tables: the device that leads to an address, the MAC address of a name,
 * and the name of a MAC address.
 */
#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include "run.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define ROOM 8192	/* bytes that the kernel fills at most */

struct request {
	struct nlmsghdr nlh;
	char room[256];
};

static bool is_v4(const struct name *name)
{
	return IN6_IS_ADDR_V4MAPPED(&name->addr);
}

static int af(const struct name *name)
{
	return is_v4(name) ? AF_INET : AF_INET6;
}

static size_t addr_len(const struct name *name)
{
	return is_v4(name) ? 4 : 16;
}

static const void *addr_of(const struct name *name)
{
	return is_v4(name) ? &name->addr.s6_addr[12] : &name->addr.s6_addr[0];
}

/* Add an attribute. The room of a struct request is enough for all questions. */
static void put(struct nlmsghdr *nlh, int type, const void *data, size_t len)
{
	struct rtattr *attr = (void *)nlh + NLMSG_ALIGN(nlh->nlmsg_len);

	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(len);
	memcpy(RTA_DATA(attr), data, len);
	nlh->nlmsg_len = NLMSG_ALIGN(nlh->nlmsg_len) + RTA_ALIGN(attr->rta_len);
}

static void put_u32(struct nlmsghdr *nlh, int type, uint32_t value)
{
	put(nlh, type, &value, sizeof(value));
}

static void put_addr(struct nlmsghdr *nlh, int type, const struct name *name)
{
	put(nlh, type, addr_of(name), addr_len(name));
}

static void take_addr(struct name *name, int family, const struct rtattr *attr)
{
	const void *data = RTA_DATA(attr);

	memset(&name->addr, 0, sizeof(name->addr));
	if (family == AF_INET) {
		name->addr.s6_addr[10] = 0xff;
		name->addr.s6_addr[11] = 0xff;
		memcpy(&name->addr.s6_addr[12], data, 4);
	} else {
		memcpy(&name->addr, data, 16);
	}
}

static bool addr_fits(int family, const struct rtattr *attr)
{
	return attr && (family == AF_INET || family == AF_INET6) &&
	       RTA_PAYLOAD(attr) == (family == AF_INET ? 4 : 16);
}

static void *prepare(struct request *r, int type, int flags, size_t extra)
{
	memset(r, 0, sizeof(*r));
	r->nlh.nlmsg_len = NLMSG_LENGTH(extra);
	r->nlh.nlmsg_type = type;
	r->nlh.nlmsg_flags = NLM_F_REQUEST | flags;
	r->nlh.nlmsg_seq = 1;
	return NLMSG_DATA(&r->nlh);
}

#define ATTRS (RTA_MAX + 1)	/* NDA_MAX and IFA_MAX are less */

/* Find the attributes after a message's header of @extra bytes, by type. */
static void attributes(const struct nlmsghdr *nlh, size_t extra, const struct rtattr **attrs)
{
	const struct rtattr *attr = NLMSG_DATA(nlh) + NLMSG_ALIGN(extra);
	int left = nlh->nlmsg_len - NLMSG_SPACE(extra);

	memset(attrs, 0, ATTRS * sizeof(*attrs));
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if ((attr->rta_type & NLA_TYPE_MASK) < ATTRS)
			attrs[attr->rta_type & NLA_TYPE_MASK] = attr;
	}
}

static uint32_t u32_of(const struct rtattr *attr)
{
	uint32_t value;

	memcpy(&value, RTA_DATA(attr), sizeof(value));
	return value;
}

/* Make a socket for questions. Returns a negative value if there is none. */
int run_netlink(void)
{
	return syscall(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

/* Receive a datagram of the kernel's answer; ignore those of other processes. */
static int receive(int fd, char *buf)
{
	struct sockaddr_nl from;
	struct iovec iov = { buf, ROOM };
	struct msghdr msg = { .msg_name = &from, .msg_iov = &iov, .msg_iovlen = 1 };
	int n;

	do {
		msg.msg_namelen = sizeof(from);
		n = syscall(SYS_recvmsg, fd, &msg, 0);
	} while ((n < 0 && errno == EINTR) || (n >= 0 && from.nl_pid));
	return n;
}

/*
 * Ask the kernel by @fd, or by a socket of its own, @fd -1. @each gets the messages of the answer
 * until it returns other than 0, which it does for a single message only: then the socket has no
 * more of this answer.
 */
static int ask(int fd, struct request *r, int (*each)(const struct nlmsghdr *nlh, void *data),
	       void *data)
{
	int own = fd < 0 ? run_netlink() : -1;
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	union {
		struct nlmsghdr nlh;
		char data[ROOM];
	} buf;
	struct nlmsghdr *nlh;
	int n, err = 0;

	if (fd < 0)
		fd = own;
	if (fd < 0)
		return -errno;
	if (syscall(SYS_sendto, fd, &r->nlh, r->nlh.nlmsg_len, 0, &kernel, sizeof(kernel)) < 0)
		goto fail;
	for (;;) {
		n = receive(fd, buf.data);
		if (n < 0)
			goto fail;
		for (nlh = &buf.nlh; NLMSG_OK(nlh, n); nlh = NLMSG_NEXT(nlh, n)) {
			if (nlh->nlmsg_type == NLMSG_ERROR) {
				err = ((struct nlmsgerr *)NLMSG_DATA(nlh))->error;
				goto out;
			}
			if (nlh->nlmsg_type == NLMSG_DONE)
				goto out;
			err = each(nlh, data);
			if (err || !(nlh->nlmsg_flags & NLM_F_MULTI))
				goto out;
		}
	}
fail:
	err = -errno;
out:
	if (own >= 0)
		sys_close(own);
	return err;
}

/*
 * Make a socket for questions about the network that the TCP socket @tcp is in. Returns NULL, or
 * why the program can't ask: then *@fd is -1. A socket stays in the namespace in which it was made,
 * wherever setns() takes the program.
 */
const char *run_ask(int tcp, int *fd)
{
	uint64_t here = 0, there = 0;

	*fd = run_netlink();
	if (*fd < 0)
		return run_no_socket(AF_NETLINK);
	sys_getsockopt(*fd, SOL_SOCKET, SO_NETNS_COOKIE, &here, sizeof(here));
	sys_getsockopt(tcp, SOL_SOCKET, SO_NETNS_COOKIE, &there, sizeof(there));
	if (here == there)
		return NULL;
	sys_close(*fd);
	*fd = -1;
	return "its socket is of another network namespace";
}

static int take_route(const struct nlmsghdr *nlh, void *data)
{
	const struct rtmsg *rt = NLMSG_DATA(nlh);
	const struct rtattr *attrs[ATTRS];
	struct route *route = data;

	if (nlh->nlmsg_type != RTM_NEWROUTE)
		return -EINVAL;
	attributes(nlh, sizeof(*rt), attrs);
	route->type = rt->rtm_type;
	route->gateway = attrs[RTA_GATEWAY] || attrs[RTA_VIA] || attrs[RTA_ENCAP];
	if (attrs[RTA_OIF])
		route->ifindex = u32_of(attrs[RTA_OIF]);
	if (addr_fits(rt->rtm_family, attrs[RTA_PREFSRC]))
		take_addr(&route->source, rt->rtm_family, attrs[RTA_PREFSRC]);
	return 0;
}

/*
 * Ask by @fd, see ask(), for the route to @to from the source @from, NULL: any, through the device
 * @ifindex, 0: any. With @dport it is TCP's from @sport, 0: any, because rules for routes may ask
 * for these. Returns 0 or -errno.
 */
int run_route(int fd, const struct name *to, const struct name *from, int ifindex, uint32_t mark,
	      in_port_t sport, in_port_t dport, struct route *route)
{
	uint8_t tcp = IPPROTO_TCP;
	struct request r;
	struct rtmsg *rt = prepare(&r, RTM_GETROUTE, 0, sizeof(*rt));

	memset(route, 0, sizeof(*route));
	rt->rtm_family = af(to);
	rt->rtm_dst_len = 8 * addr_len(to);
	put_addr(&r.nlh, RTA_DST, to);
	if (from) {
		rt->rtm_src_len = rt->rtm_dst_len;
		put_addr(&r.nlh, RTA_SRC, from);
	}
	if (!ifindex)
		ifindex = to->scope;
	if (ifindex)
		put_u32(&r.nlh, RTA_OIF, ifindex);
	if (mark)
		put_u32(&r.nlh, RTA_MARK, mark);
	if (dport) {
		put(&r.nlh, RTA_IP_PROTO, &tcp, sizeof(tcp));
		put(&r.nlh, RTA_DPORT, &dport, sizeof(dport));
	}
	if (sport)
		put(&r.nlh, RTA_SPORT, &sport, sizeof(sport));
	return ask(fd, &r, take_route, route);
}

struct entry {
	unsigned char mac[ETH_ALEN];
	int state;
};

static int take_entry(const struct nlmsghdr *nlh, void *data)
{
	const struct ndmsg *nd = NLMSG_DATA(nlh);
	const struct rtattr *attrs[ATTRS];
	struct entry *e = data;

	if (nlh->nlmsg_type != RTM_NEWNEIGH)
		return -EINVAL;
	attributes(nlh, sizeof(*nd), attrs);
	e->state = nd->ndm_state;
	if (!(nd->ndm_state & (NUD_INCOMPLETE | NUD_FAILED)) && attrs[NDA_LLADDR]) {
		if (RTA_PAYLOAD(attrs[NDA_LLADDR]) != ETH_ALEN)
			return -ENODEV;
		memcpy(e->mac, RTA_DATA(attrs[NDA_LLADDR]), ETH_ALEN);
		return 0;
	}
	return -EAGAIN;
}

/*
 * Ask by @fd for a neighbour's MAC address. Returns 0: @mac is right as far as the kernel knows;
 * -EAGAIN, -ENOENT: not yet.
 */
int run_neighbour(int fd, const struct name *to, int ifindex, unsigned char *mac, int *state)
{
	struct request r;
	struct ndmsg *nd = prepare(&r, RTM_GETNEIGH, 0, sizeof(*nd));
	struct entry e = { .state = 0 };
	int err;

	nd->ndm_family = af(to);
	nd->ndm_ifindex = ifindex;
	put_addr(&r.nlh, NDA_DST, to);
	err = ask(fd, &r, take_entry, &e);
	*state = e.state;
	if (!err)
		memcpy(mac, e.mac, ETH_ALEN);
	return err;
}

struct search {
	const unsigned char *mac;
	int ifindex;
	int family;		/* preferred */
	struct name *name;
	bool found;
	unsigned int rank;	/* rank of the name that was found: the larger the better */
	unsigned int age;	/* age of the name that was found: less is better at equal rank */
};

/*
 * Keep the best entry: one that an administrator made comes first, then one of the family, then one
 * that isn't link-local.
 */
static int compare_entry(const struct nlmsghdr *nlh, void *data)
{
	const struct ndmsg *nd = NLMSG_DATA(nlh);
	const struct rtattr *attrs[ATTRS];
	unsigned int rank = 1, age = ~0u;
	struct search *s = data;
	struct name name = { 0 };

	if (nlh->nlmsg_type != RTM_NEWNEIGH || nd->ndm_ifindex != s->ifindex ||
	    !(nd->ndm_state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT)))
		return 0;
	attributes(nlh, sizeof(*nd), attrs);
	if (!addr_fits(nd->ndm_family, attrs[NDA_DST]) || !attrs[NDA_LLADDR] ||
	    RTA_PAYLOAD(attrs[NDA_LLADDR]) != ETH_ALEN ||
	    memcmp(RTA_DATA(attrs[NDA_LLADDR]), s->mac, ETH_ALEN))
		return 0;
	take_addr(&name, nd->ndm_family, attrs[NDA_DST]);
	if (IN6_IS_ADDR_LINKLOCAL(&name.addr))
		name.scope = s->ifindex;
	else
		rank += 1;
	if (nd->ndm_family == s->family)
		rank += 2;
	if (nd->ndm_state & NUD_PERMANENT)
		rank += 4;
	if (attrs[NDA_CACHEINFO] &&
	    RTA_PAYLOAD(attrs[NDA_CACHEINFO]) >= sizeof(struct nda_cacheinfo))
		age = ((struct nda_cacheinfo *)RTA_DATA(attrs[NDA_CACHEINFO]))
			->ndm_confirmed;
	if (s->found && (rank < s->rank || (rank == s->rank && age >= s->age)))
		return 0;
	s->found = true;
	s->rank = rank;
	s->age = age;
	*s->name = name;
	return 0;
}

/*
 * Ask by @fd for the name of the host with @mac: of @family if there is one, else with @any of the
 * other. False: the kernel knows none.
 */
bool run_name_of(int fd, const unsigned char *mac, int ifindex, int family, bool any,
		 struct name *name)
{
	struct search s = { .mac = mac, .ifindex = ifindex, .family = family, .name = name };
	struct request r;
	struct ndmsg *nd = prepare(&r, RTM_GETNEIGH, NLM_F_DUMP, sizeof(*nd));

	nd->ndm_family = any ? AF_UNSPEC : family;
	put_u32(&r.nlh, NDA_IFINDEX, ifindex);
	return !ask(fd, &r, compare_entry, &s) && s.found;
}

struct holder {
	const struct name *name;
	int ifindex;
};

static int compare_addr(const struct nlmsghdr *nlh, void *data)
{
	const struct ifaddrmsg *ifa = NLMSG_DATA(nlh);
	const struct rtattr *attrs[ATTRS], *addr;
	struct holder *h = data;
	struct name name = { 0 };

	if (nlh->nlmsg_type != RTM_NEWADDR)
		return 0;
	attributes(nlh, sizeof(*ifa), attrs);
	addr = attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS];
	if (!addr_fits(ifa->ifa_family, addr))
		return 0;
	take_addr(&name, ifa->ifa_family, addr);
	if (IN6_ARE_ADDR_EQUAL(&name.addr, &h->name->addr) &&
	    (!h->name->scope || h->name->scope == ifa->ifa_index))
		h->ifindex = ifa->ifa_index;
	return 0;
}

/* Ask by @fd for the device that has this address of the host. Returns its number, or 0. */
int run_ifindex_of(int fd, const struct name *name)
{
	struct holder h = { .name = name };
	struct request r;
	struct ifaddrmsg *ifa = prepare(&r, RTM_GETADDR, NLM_F_DUMP, sizeof(*ifa));

	ifa->ifa_family = af(name);
	return ask(fd, &r, compare_addr, &h) ? 0 : h.ifindex;
}
