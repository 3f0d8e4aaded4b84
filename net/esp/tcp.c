// SPDX-License-Identifier: GPL-2.0-only
/*
 * ESP in the place of a TCP connection, for programs that know TCP only (esp-run(1)).
 *
 * A TCP port belongs to the process that has its listener, and a client trusts in that. So an ESP
 * listener stands for a TCP port only if its process has the descriptor of TCP's listener
 * (ESP_TCP_LISTENER). A client that wants a TCP server names the IP address that it asks for
 * (ESP_TCP_DEST), in its SYN. Only a listener of that kind answers, and only if TCP's listener
 * would. The client takes no other answer.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inetdevice.h>
#include <linux/net.h>
#include <linux/tcp.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/tcp_states.h>
#include "esp.h"
#include "tcp.h"

/* Name an IPv4 address: itself. */
static u64 name_of_v4(__be32 addr)
{
	return ntohl(addr);
}

/* Name an IPv6 address: SipHash-2-4 with key 0. It differs from each IPv4 address's name. */
static u64 name_of_v6(const struct in6_addr *addr)
{
	static const siphash_key_t key;
	__be64 half[2];
	u64 name;

	if (ipv6_addr_v4mapped(addr))
		return name_of_v4(addr->s6_addr32[3]);
	memcpy(half, addr, sizeof(half));
	name = siphash_2u64(be64_to_cpu(half[0]), be64_to_cpu(half[1]), &key);
	return name >> 32 ? name : name | 1ull << 32;
}

static bool name_is_v4(u64 name)
{
	return !(name >> 32);
}

/* Has the device an IPv4 address of that name? RCU read side. */
static bool dev_has_v4(const struct net_device *dev, u64 name)
{
	const struct in_device *in = __in_dev_get_rcu(dev);
	const struct in_ifaddr *ifa;

	if (!in)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in)
		if (name_of_v4(ifa->ifa_local) == name)
			return true;
	return false;
}

/* Does a listener that is bound to an IPv4 address, or to any, accept at that of the name? */
static bool tcp_bound_v4(__be32 bound, u64 name)
{
	return name_is_v4(name) && (!bound || name_of_v4(bound) == name);
}

#if IS_ENABLED(CONFIG_IPV6)
/* Has the device an IPv6 address of that name? RCU read side. */
static bool dev_has_v6(const struct net_device *dev, u64 name)
{
	const struct inet6_dev *in6 = __in6_dev_get(dev);
	const struct inet6_ifaddr *ifa;

	if (!in6)
		return false;
	list_for_each_entry_rcu(ifa, &in6->addr_list, if_list)
		if (!(READ_ONCE(ifa->flags) & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) &&
		    name_of_v6(&ifa->addr) == name)
			return true;
	return false;
}

/* Is a TCP listener of IPv6 bound so that it accepts at the address of that name? */
static bool tcp_bound_v6(const struct sock *tcp, u64 name)
{
	if (ipv6_addr_v4mapped(&tcp->sk_v6_rcv_saddr))
		return tcp_bound_v4(tcp->sk_v6_rcv_saddr.s6_addr32[3], name);
	if (!ipv6_addr_any(&tcp->sk_v6_rcv_saddr))
		return name_of_v6(&tcp->sk_v6_rcv_saddr) == name;
	return !name_is_v4(name) || !ipv6_only_sock(tcp);
}
#else
static bool dev_has_v6(const struct net_device *dev, u64 name)
{
	return false;
}

static bool tcp_bound_v6(const struct sock *tcp, u64 name)
{
	return false;
}
#endif

/* Is a TCP listener bound to a device, or a VRF, by which frames of @dev don't come? */
static bool tcp_other_device(const struct sock *tcp, const struct net_device *dev)
{
	int vrf = l3mdev_master_ifindex_rcu(dev);

	return !inet_sk_bound_dev_eq(sock_net(tcp), READ_ONCE(tcp->sk_bound_dev_if),
				     vrf ? vrf : dev->ifindex, vrf ? dev->ifindex : 0);
}

/**
 * esp_tcp_accepts() - would TCP's listener accept a connection to an IP address?
 * @sk:		listener; it need not be locked
 * @dev:	device that received the SYN
 * @name:	name of the address: esp_frame_name()
 *
 * The address has to be the device's. A router that answers ARP for other hosts doesn't have their
 * addresses.
 *
 * Context: RCU read side.
 * Return: true if so
 */
bool esp_tcp_accepts(const struct sock *sk, const struct net_device *dev, u64 name)
{
	const struct sock *tcp = READ_ONCE(esp_sk(sk)->tcp);

	if (!tcp || esp_tcp_gone(sk) || tcp_other_device(tcp, dev))
		return false;
	if (tcp->sk_family == AF_INET ?
	    !tcp_bound_v4(READ_ONCE(inet_sk(tcp)->inet_rcv_saddr), name) :
	    !tcp_bound_v6(tcp, name))
		return false;
	return name_is_v4(name) ? dev_has_v4(dev, name) : dev_has_v6(dev, name);
}

/**
 * esp_tcp_get() - find the TCP listener of a descriptor
 * @net:	namespace in which it has to be
 * @fd:		descriptor of the current process
 * @err:	set if there is none: EBADF, ENOTSOCK, EINVAL (no TCP listener of @net)
 *
 * Return: TCP's socket, with a reference; NULL: see @err
 */
struct sock *esp_tcp_get(const struct net *net, int fd, int *err)
{
	struct socket *sock = sockfd_lookup(fd, err);
	struct sock *tcp;

	if (!sock)
		return NULL;
	tcp = sock->sk;
	if (tcp && (tcp->sk_family == AF_INET || tcp->sk_family == AF_INET6) &&
	    tcp->sk_type == SOCK_STREAM && tcp->sk_protocol == IPPROTO_TCP &&
	    net_eq(sock_net(tcp), net) && esp_tcp_listens(tcp, inet_sk(tcp)->inet_sport)) {
		sock_hold(tcp);
	} else {
		*err = -EINVAL;
		tcp = NULL;
	}
	sockfd_put(sock);
	return tcp;
}

/**
 * esp_tcp_set_listener() - let a socket stand for a TCP listener (ESP_TCP_LISTENER)
 * @sk:	stream socket that is neither bound nor connected; its owner calls
 * @fd:	the caller's descriptor of the TCP listener
 *
 * The socket keeps a reference to TCP's socket until it is freed, but doesn't keep it open.
 *
 * Return: 0; EALREADY: the option was set before; or an error of esp_tcp_get()
 */
int esp_tcp_set_listener(struct sock *sk, int fd)
{
	struct esp_opt *esp = esp_sk(sk);
	struct sock *tcp;
	int err;

	sock_owned_by_me(sk);
	if (esp->tcp)
		return -EALREADY;
	tcp = esp_tcp_get(sock_net(sk), fd, &err);
	if (!tcp)
		return err;
	WRITE_ONCE(esp->tcp, tcp);
	return 0;
}

/**
 * esp_tcp_port() - get the port of the TCP listener that a socket stands for
 * @sk:	socket
 *
 * Return: port, in host order; 0: it stands for none
 */
u16 esp_tcp_port(const struct sock *sk)
{
	const struct sock *tcp = esp_sk(sk)->tcp;

	return tcp && esp_tcp_listens(tcp, inet_sk(tcp)->inet_sport) ? inet_sk(tcp)->inet_num : 0;
}

/**
 * esp_tcp_signed() - does a socket stand for a TCP listener that demands signed segments?
 * @sk:	listener; it need not be locked
 *
 * It does if TCP's listener has keys (RFC 2385, RFC 5925), or had some. ESP signs nothing, so no
 * client may get round the signatures by ESP, whatever it asks for.
 *
 * Context: RCU read side.
 * Return: true if so
 */
bool esp_tcp_signed(const struct sock *sk)
{
	const struct sock *tcp = READ_ONCE(esp_sk(sk)->tcp);

	if (!tcp)
		return false;
#ifdef CONFIG_TCP_MD5SIG
	if (rcu_access_pointer(tcp_sk(tcp)->md5sig_info))
		return true;
#endif
#ifdef CONFIG_TCP_AO
	if (rcu_access_pointer(tcp_sk(tcp)->ao_info))
		return true;
#endif
	return false;
}

/**
 * esp_tcp_cookie() - tie the cookie of a handshake to TCP's listener
 * @sk:		listener
 * @cookie:	esp_listen_cookie() without it
 *
 * So an echo makes a connection of the same TCP listener's only, whatever socket has the port by
 * then.
 *
 * Return: the cookie; one that nobody can guess if the socket stands for no open TCP listener
 */
u32 esp_tcp_cookie(struct sock *sk, u32 cookie)
{
	const struct sock *tcp = READ_ONCE(esp_sk(sk)->tcp);

	if (!tcp || esp_tcp_gone(sk))
		return get_random_u32();
	return siphash_2u64(cookie, (unsigned long)tcp, &esp_sk(sk)->ns->secret);
}

/**
 * esp_tcp_set_dest() - name the address of the TCP server that a client wants (ESP_TCP_DEST)
 * @sk:		stream socket that is not connected; its owner calls
 * @val:	struct sockaddr_in or sockaddr_in6; the port doesn't count
 * @len:	bytes
 *
 * Return: 0, EINVAL, EFAULT, EAFNOSUPPORT
 */
int esp_tcp_set_dest(struct sock *sk, sockptr_t val, unsigned int len)
{
	union {
		struct sockaddr		sa;
		struct sockaddr_in	in;
		struct sockaddr_in6	in6;
	} a = {};
	u64 name = 0;

	sock_owned_by_me(sk);
	if (len < sizeof(a.in))
		return -EINVAL;
	if (copy_from_sockptr(&a, val, min_t(unsigned int, len, sizeof(a))))
		return -EFAULT;
	if (a.sa.sa_family != AF_INET && a.sa.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (a.sa.sa_family == AF_INET)
		name = name_of_v4(a.in.sin_addr.s_addr);
	else if (len >= offsetofend(struct sockaddr_in6, sin6_addr))
		name = name_of_v6(&a.in6.sin6_addr);
	if (!name)
		return -EINVAL;
	esp_sk(sk)->tcp_name = name;
	return 0;
}
