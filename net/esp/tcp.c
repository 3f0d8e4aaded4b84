// SPDX-License-Identifier: GPL-2.0-only
/*
 * ESP in the place of a TCP connection, for programs that know TCP only (esp-run(1)).
 *
 * A TCP port belongs to the process that has its listener, and a client trusts in that. So an ESP
 * listener stands for a TCP port only if its process has the descriptor of TCP's listener
 * (ESP_TCP_LISTENER). A client that wants a TCP server names the IP address that it asks for
 * (ESP_TCP_DEST), in its SYN. Only a listener of that kind answers, and only if TCP's listener
 * would. The client takes no other answer. Its socket, and the listener, get the options of TCP's
 * socket (ESP_TCP_SOCKET).
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
#include <net/tcp.h>
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

static bool sock_is_tcp(const struct sock *sk)
{
	return sk && (sk->sk_family == AF_INET || sk->sk_family == AF_INET6) &&
	       sk->sk_type == SOCK_STREAM && sk->sk_protocol == IPPROTO_TCP;
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
	if (sock_is_tcp(tcp) && net_eq(sock_net(tcp), net) &&
	    esp_tcp_listens(tcp, inet_sk(tcp)->inet_sport)) {
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

/* Has a TCP socket keys by which segments are signed, or had some? */
static bool tcp_is_signed(const struct sock *tcp)
{
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

	return tcp && tcp_is_signed(tcp);
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

/*
 * Has a TCP socket an option whose effect a connection by ESP would lack? Such an option may
 * protect the connection (keys, policies, filters), or the user waits for what it gives.
 */
static bool tcp_has_more(const struct sock *tcp)
{
	const struct tcp_sock *tp = tcp_sk(tcp);

	sock_owned_by_me(tcp);
#ifdef CONFIG_XFRM
	if (rcu_access_pointer(tcp->sk_policy[0]) || rcu_access_pointer(tcp->sk_policy[1]))
		return true;
#endif
	return tcp_is_signed(tcp) || rcu_access_pointer(tcp->sk_filter) ||
	       inet_csk(tcp)->icsk_ulp_ops || inet_test_bit(TRANSPARENT, tcp) ||
	       tp->repair || tp->save_syn || tp->recvmsg_inq ||
	       sock_flag(tcp, SOCK_RCVTSTAMP) || READ_ONCE(tcp->sk_tsflags) ||
	       sock_flag(tcp, SOCK_ZEROCOPY) || sock_flag(tcp, SOCK_TXTIME) ||
	       READ_ONCE(tcp->sk_peek_off) >= 0 || READ_ONCE(tcp->sk_reserved_mem) ||
	       READ_ONCE(tcp->sk_max_pacing_rate) != ~0UL;
}

/* Flags of a socket that are copied, see SO_* of their names. */
static const u8 tcp_flags[] = {
	SOCK_DBG, SOCK_LOCALROUTE, SOCK_BROADCAST, SOCK_URGINLINE, SOCK_RXQ_OVFL,
	SOCK_WIFI_STATUS, SOCK_NOFCS, SOCK_SELECT_ERR_QUEUE, SOCK_LINGER, SOCK_KEEPOPEN,
};

/* Give a socket the options of SOL_SOCKET that a TCP socket has. The caller owns both. */
static void take_core_options(struct sock *sk, const struct sock *tcp)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tcp_flags); i++)
		sock_valbool_flag(sk, tcp_flags[i], sock_flag(tcp, tcp_flags[i]));
	sk->sk_reuse = tcp->sk_reuse ? SK_CAN_REUSE : SK_NO_REUSE;
	sk->sk_no_check_tx = tcp->sk_no_check_tx;
	WRITE_ONCE(sk->sk_priority, READ_ONCE(tcp->sk_priority));
	WRITE_ONCE(sk->sk_mark, READ_ONCE(tcp->sk_mark));
	WRITE_ONCE(sk->sk_rcvlowat, READ_ONCE(tcp->sk_rcvlowat));
	WRITE_ONCE(sk->sk_rcvtimeo, READ_ONCE(tcp->sk_rcvtimeo));
	WRITE_ONCE(sk->sk_sndtimeo, READ_ONCE(tcp->sk_sndtimeo));
	WRITE_ONCE(sk->sk_lingertime, READ_ONCE(tcp->sk_lingertime));
#ifdef CONFIG_NET_RX_BUSY_POLL
	WRITE_ONCE(sk->sk_ll_usec, READ_ONCE(tcp->sk_ll_usec));
	WRITE_ONCE(sk->sk_prefer_busy_poll, READ_ONCE(tcp->sk_prefer_busy_poll));
	WRITE_ONCE(sk->sk_busy_poll_budget, READ_ONCE(tcp->sk_busy_poll_budget));
#endif
	/* TCP chooses the size of a buffer that the user has not set */
	if (tcp->sk_userlocks & SOCK_SNDBUF_LOCK)
		WRITE_ONCE(sk->sk_sndbuf, READ_ONCE(tcp->sk_sndbuf));
	if (tcp->sk_userlocks & SOCK_RCVBUF_LOCK)
		WRITE_ONCE(sk->sk_rcvbuf, READ_ONCE(tcp->sk_rcvbuf));
	sk->sk_userlocks |= tcp->sk_userlocks & (SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK);
}

/* Give a socket the options of TCP's own level. Nagle's rule is no option here, but a default. */
static void take_tcp_options(struct esp_opt *esp, const struct sock *tcp)
{
	const struct tcp_sock *tp = tcp_sk(tcp);

	esp->cork = !!(tp->nonagle & TCP_NAGLE_CORK);
	esp->keep_idle = READ_ONCE(tp->keepalive_time) / HZ;
	esp->keep_intvl = READ_ONCE(tp->keepalive_intvl) / HZ;
	esp->keep_cnt = READ_ONCE(tp->keepalive_probes);
	esp->user_timeout_ms = READ_ONCE(inet_csk(tcp)->icsk_user_timeout);
}

/* Does a socket poll longer, or in another way, than another one? */
static bool sock_more_polling(const struct sock *a, const struct sock *b)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	return READ_ONCE(a->sk_ll_usec) > READ_ONCE(b->sk_ll_usec) ||
	       READ_ONCE(a->sk_prefer_busy_poll) > READ_ONCE(b->sk_prefer_busy_poll) ||
	       READ_ONCE(a->sk_busy_poll_budget) > READ_ONCE(b->sk_busy_poll_budget);
#else
	return false;
#endif
}

/*
 * Has a TCP socket an option that the caller may not set, although he has the socket? Its maker may
 * have given it away, with one mark for one connection.
 */
static bool tcp_is_privileged(const struct sock *sk, const struct sock *tcp)
{
	struct user_namespace *ns = sock_net(sk)->user_ns;
	u32 priority = READ_ONCE(tcp->sk_priority);

	if ((READ_ONCE(tcp->sk_mark) != READ_ONCE(sk->sk_mark) || priority > TC_PRIO_INTERACTIVE) &&
	    !ns_capable(ns, CAP_NET_RAW) && !ns_capable(ns, CAP_NET_ADMIN))
		return true;
	return (sock_flag(tcp, SOCK_DBG) || sock_more_polling(tcp, sk) ||
		((tcp->sk_userlocks & SOCK_SNDBUF_LOCK) &&
		 READ_ONCE(tcp->sk_sndbuf) / 2 > READ_ONCE(sysctl_wmem_max)) ||
		((tcp->sk_userlocks & SOCK_RCVBUF_LOCK) &&
		 READ_ONCE(tcp->sk_rcvbuf) / 2 > READ_ONCE(sysctl_rmem_max))) &&
	       !ns_capable(ns, CAP_NET_ADMIN);
}

static int take_options(struct sock *sk, const struct sock *tcp)
{
	sock_owned_by_me(sk);
	if ((1 << sk->sk_state | 1 << tcp->sk_state) & ~(TCPF_CLOSE | TCPF_LISTEN))
		return -EISCONN;
	if (tcp_is_privileged(sk, tcp))
		return -EPERM;
	if (tcp_has_more(tcp))
		return -EOPNOTSUPP;
	take_core_options(sk, tcp);
	take_tcp_options(esp_sk(sk), tcp);
	return 0;
}

/**
 * esp_tcp_take_options() - take the options of a TCP socket (ESP_TCP_SOCKET)
 * @sock:	socket that is not connected
 * @fd:		the caller's descriptor of a TCP socket
 *
 * Takes the lock of TCP's socket, then that of @sock.
 *
 * Return: 0; EBADF, ENOTSOCK; EINVAL: no TCP socket; EXDEV: another namespace's; EISCONN: one of
 * the two is connected; EPERM: TCP's has a mark, a priority or a size of a buffer that the caller
 * may not set; EOPNOTSUPP: @sock is no stream socket, or TCP's has an option that ESP lacks
 */
int esp_tcp_take_options(struct socket *sock, int fd)
{
	struct sock *sk = sock->sk, *tcp;
	struct socket *from;
	int err;

	if (sk->sk_type != SOCK_STREAM)
		return -EOPNOTSUPP;
	from = sockfd_lookup(fd, &err);
	if (!from)
		return err;
	tcp = from->sk;
	if (!sock_is_tcp(tcp)) {
		err = -EINVAL;
	} else if (!net_eq(sock_net(tcp), sock_net(sk))) {
		err = -EXDEV;
	} else {
		lock_sock(tcp);
		lock_sock(sk);
		err = take_options(sk, tcp);
		release_sock(sk);
		release_sock(tcp);
	}
	sockfd_put(from);
	return err;
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
