// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses: a socket's own, its peer's, and the device that they select.
 */
#include "esp.h"
#include "addr.h"
#include "dev.h"
#include "hash.h"
#include "link.h"
#include "tcp.h"

/**
 * esp_addr_check() - check that this is the address of an ESP socket
 * @a:		address
 * @len:	its length as the user gave it
 *
 * Return: 0, EINVAL or EAFNOSUPPORT
 */
int esp_addr_check(const struct sockaddr_esp *a, int len)
{
	if (len < (int)sizeof(*a))
		return -EINVAL;
	if (a->sesp_family != esp_family)
		return -EAFNOSUPPORT;
	if (a->sesp_halen && a->sesp_halen != ETH_ALEN)
		return -EINVAL;
	return 0;
}

void esp_addr_local(struct sock *sk, struct sockaddr_esp *a)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	memset(a, 0, sizeof(*a));
	a->sesp_family = esp_family;
	a->sesp_port = esp->sport;
	a->sesp_halen = ETH_ALEN;
	if (esp->dev) {
		u8 mac[ETH_ALEN];

		a->sesp_ifindex = esp->dev->ifindex;
		if (esp_dev_mac(esp->dev, mac))
			ether_addr_copy(mac, esp->saddr);
		memcpy(a->sesp_addr, mac, ETH_ALEN);
	}
}

void esp_addr_peer(struct sock *sk, struct sockaddr_esp *a)
{
	struct esp_opt *esp = esp_sk(sk);

	memset(a, 0, sizeof(*a));
	a->sesp_family = esp_family;
	a->sesp_port = esp->dport;
	a->sesp_halen = ETH_ALEN;
	memcpy(a->sesp_addr, esp->daddr, ETH_ALEN);
	if (esp->dev)
		a->sesp_ifindex = esp->dev->ifindex;
}

/* Link a socket that has no device to the one that bind() or connect() selects. */
static int sock_link_device(struct sock *sk, struct esp_dev *ed)
{
	sock_owned_by_me(sk);
	if (esp_dev_link(sk, ed)) {
		esp_dev_release(sk);
		return -ENODEV;
	}
	WRITE_ONCE(esp_sk(sk)->ifindex, ed->ifindex);
	return 0;
}

/**
 * esp_addr_device() - find the device by which a socket without one reaches an address
 * @sk:	socket
 * @a:	address
 *
 * It is the device of SO_BINDTODEVICE; else sesp_ifindex; if that is 0, the device of
 * esp_dev_only().
 *
 * Return: the entry, with a reference; ENODEV: the device that is named has left or cannot
 * carry ESP; EHOSTUNREACH: none is named, and there is none, or more than one
 */
struct esp_dev *esp_addr_device(struct sock *sk, const struct sockaddr_esp *a)
{
	int named = READ_ONCE(sk->sk_bound_dev_if) ? : a->sesp_ifindex;
	struct esp_dev *ed;

	ed = named ? esp_dev_get(sock_net(sk), named) : esp_dev_only(sock_net(sk));
	return ed ? ed : ERR_PTR(named ? -ENODEV : -EHOSTUNREACH);
}

/**
 * esp_connect_device() - link the socket to the device that leads to the peer
 * @sk:	socket; its owner calls
 * @a:	peer's address
 *
 * It is the bound device, or that of esp_addr_device().
 *
 * Return: 0, EHOSTUNREACH, ENETDOWN, ENODEV, EMSGSIZE (its MTU is too small)
 */
int esp_connect_device(struct sock *sk, const struct sockaddr_esp *a)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_dev *ed;
	int err;

	sock_owned_by_me(sk);
	if (esp->dev) {
		if (!esp_dev_mtu(esp->dev))
			return -ENODEV;
		if (esp_dev_mtu(esp->dev) < ESP_MTU_MIN)
			return -EMSGSIZE;
		return esp_dev_check(esp->dev);
	}
	ed = esp_addr_device(sk, a);
	if (IS_ERR(ed))
		return PTR_ERR(ed);
	if (esp_dev_mtu(ed) < ESP_MTU_MIN)
		err = -EMSGSIZE;
	else
		err = esp_dev_check(ed);
	if (err) {
		esp_dev_put(ed);
		return err;
	}
	err = sock_link_device(sk, ed);
	if (!err)
		esp->dev_auto = 1;
	return err;
}

int esp_bind(struct socket *sock, struct sockaddr_unsized *addr, int len)
{
	struct sockaddr_esp *a = (struct sockaddr_esp *)addr;
	struct sock *sk = sock->sk;
	struct esp_opt *esp = esp_sk(sk);
	struct net *net = sock_net(sk);
	bool linked = false;
	int err, bound;
	u16 port;

	err = esp_addr_check(a, len);
	if (err)
		return err;
	port = ntohs(a->sesp_port);

	lock_sock(sk);
	bound = sk->sk_bound_dev_if;
	err = -EACCES;
	/* a process with TCP's listener needs no permission for its port, and gets no other one */
	if (port && port < 1024 && !esp->tcp &&
	    !ns_capable(net->user_ns, CAP_NET_BIND_SERVICE))
		goto out;
	err = -EINVAL;
	if (sk->sk_state != TCP_CLOSE || esp->sport)
		goto out;
	err = -EADDRNOTAVAIL;
	if (esp->tcp && (!port || port != esp_tcp_port(sk)))
		goto out;
	if (a->sesp_ifindex && !esp->dev) {
		struct esp_dev *ed = esp_dev_get(net, a->sesp_ifindex);
		u8 mac[ETH_ALEN];

		err = -ENODEV;
		if (!ed)
			goto out;
		err = -EADDRNOTAVAIL;
		if (sk->sk_bound_dev_if &&
		    sk->sk_bound_dev_if != a->sesp_ifindex) {
			esp_dev_put(ed);
			goto out;
		}
		if (esp_dev_mac(ed, mac) ||
		    (!is_zero_ether_addr(a->sesp_addr) &&
		     !ether_addr_equal_unaligned(mac, a->sesp_addr))) {
			esp_dev_put(ed);
			goto out;
		}
		err = sock_link_device(sk, ed);
		if (err)
			goto out;
		linked = true;
		sk->sk_bound_dev_if = esp->ifindex;
	} else if (!a->sesp_ifindex && !is_zero_ether_addr(a->sesp_addr)) {
		err = -EADDRNOTAVAIL;
		goto out;
	}
	err = esp_bind_port(sk, a->sesp_port);
	if (!err && sk->sk_type == SOCK_DGRAM)
		err = esp_hash(sk);
	if (err && linked) {
		esp_dev_release(sk);
		sk->sk_bound_dev_if = bound;
	}
out:
	release_sock(sk);
	return err;
}
