// SPDX-License-Identifier: GPL-2.0-only
/*
 * EDP: SOCK_DGRAM. A datagram is one unreliable frame, and EDP has ports of its own.
 */
#include <linux/filter.h>
#include <linux/module.h>
#include <net/busy_poll.h>
#include "esp.h"
#include "addr.h"
#include "close.h"
#include "dev.h"
#include "dgram.h"
#include "hash.h"
#include "link.h"
#include "output.h"
#include "recvmsg.h"
#include "sock.h"
#include "sockopt.h"

static int dgram_release(struct socket *sock)
{
	struct sock *sk = sock->sk;

	if (!sk)
		return 0;
	sock->sk = NULL;
	lock_sock(sk);
	esp_set_state(sk, TCP_CLOSE);
	esp_unhash(sk);
	sock_orphan(sk);
	release_sock(sk);
	skb_queue_purge(&sk->sk_receive_queue);
	local_bh_disable();
	bh_lock_sock(sk);
	esp_destroy(sk);
	bh_unlock_sock(sk);
	local_bh_enable();
	return 0;
}

/* Give a free port to a socket that sends or connects before bind(); its owner calls. */
static int dgram_autobind(struct sock *sk)
{
	int err;

	sock_owned_by_me(sk);
	if (esp_sk(sk)->sport)
		return 0;
	err = esp_bind_port(sk, 0);
	if (err)
		return err == -EADDRINUSE ? -EAGAIN : err;	/* as UDP's */
	return esp_hash(sk);
}

/* Forget the peer. Takes no struct socket, because close() may have detached it already. */
static void dgram_disconnect(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (esp->dev_auto) {	/* chosen by connect() */
		esp->dev_auto = 0;
		esp_dev_release(sk);
	}
	WRITE_ONCE(esp->dport, 0);
	esp_set_state(sk, TCP_CLOSE);
	sk->sk_socket->state = SS_UNCONNECTED;
}

/**
 * esp_dgram_kill() - fail the user's next call, and forget the peer (SOCK_DESTROY)
 * @sk:		EDP socket; the caller has a reference
 * @err:	for the user
 *
 * Return: 0; ENOENT: the socket has been closed
 */
int esp_dgram_kill(struct sock *sk, int err)
{
	int ret = -ENOENT;

	lock_sock(sk);
	if (!sock_flag(sk, SOCK_DEAD)) {
		WRITE_ONCE(sk->sk_err, err);
		dgram_disconnect(sk);
		sk_error_report(sk);
		ret = 0;
	}
	release_sock(sk);
	return ret;
}

/* An invalid address changes nothing; an address that can't be reached disconnects. */
static int dgram_connect(struct socket *sock, struct sockaddr_unsized *addr,
			 int len, int flags)
{
	struct sockaddr_esp *a = (struct sockaddr_esp *)addr;
	struct sock *sk = sock->sk;
	struct esp_opt *esp = esp_sk(sk);
	int err;

	if (len < (int)sizeof(addr->sa_family))
		return -EINVAL;
	lock_sock(sk);
	if (addr->sa_family == AF_UNSPEC) {
		dgram_disconnect(sk);
		err = 0;
		goto out;
	}
	err = esp_addr_check(a, len);
	if (err)
		goto out;
	err = -EACCES;
	if ((a->sesp_addr[0] & 1) && !sock_flag(sk, SOCK_BROADCAST))
		goto out;
	err = -EINVAL;
	if (!a->sesp_port)
		goto out;
	dgram_disconnect(sk);
	err = esp_connect_device(sk, a);
	if (err)
		goto out;
	err = dgram_autobind(sk);
	if (err) {
		dgram_disconnect(sk);
		goto out;
	}
	memcpy(esp->daddr, a->sesp_addr, ETH_ALEN);
	WRITE_ONCE(esp->dport, a->sesp_port);
	esp_set_state(sk, TCP_ESTABLISHED);
	sock->state = SS_CONNECTED;
out:
	release_sock(sk);
	return err;
}

static int dgram_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct sock *sk = sock->sk;
	int err = sizeof(struct sockaddr_esp);

	lock_sock(sk);
	if (!peer)
		esp_addr_local(sk, (struct sockaddr_esp *)addr);
	else if (sk->sk_state != TCP_ESTABLISHED)
		err = -ENOTCONN;
	else
		esp_addr_peer(sk, (struct sockaddr_esp *)addr);
	release_sock(sk);
	return err;
}

/* Return the device for a datagram, with a reference, or an error. */
static struct esp_dev *dgram_device(struct sock *sk, struct sockaddr_esp *a)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_dev *ed = esp->dev;
	int err;

	sock_owned_by_me(sk);
	if (ed) {
		refcount_inc(&ed->ref);
	} else {
		ed = esp_addr_device(sk, a);
		if (IS_ERR(ed))
			return ed;
	}
	err = esp_dev_check(ed);
	if (err) {
		esp_dev_put(ed);
		return ERR_PTR(err);
	}
	return ed;
}

static int dgram_send(struct sock *sk, struct esp_dev *ed, struct sockaddr_esp *a,
		      struct msghdr *msg, size_t len, const struct sockcm_cookie *cookie)
{
	struct esp_frame f = {
		.version	= ESP_VERSION,
		.sport		= esp_sk(sk)->sport,
		.dport		= a->sesp_port,
		.len		= len,
	};
	unsigned int room = esp_dev_headroom(ed) + ESP_HLEN;
	u8 mac[ETH_ALEN + 2] __aligned(2);
	struct sk_buff *skb;
	int err, mtu = esp_dev_mtu(ed);
	size_t paged = 0;

	memcpy(mac, a->sesp_addr, ETH_ALEN);
	if (!mtu)		/* the device has just left */
		return -ENETDOWN;
	if (len > ESP_PAYLOAD_MAX || (int)len > mtu - ESP_HLEN)
		return -EMSGSIZE;
	/* up to a page the payload follows the header, which costs both ends less than pages */
	if (room + len > SKB_MAX_ORDER(0, 0))
		paged = len;
	skb = sock_alloc_send_pskb(sk, room + len - paged, paged,
				   msg->msg_flags & MSG_DONTWAIT, &err, 0);
	if (!skb) {
		if (err == -ENOBUFS)
			ESP_INC(sock_net(sk), OutAllocFail);
		return err;
	}
	skb_reserve(skb, room);
	skb_put(skb, len - paged);
	skb->data_len = paged;
	skb->len += paged;
	err = skb_copy_datagram_from_iter(skb, 0, &msg->msg_iter, len);
	if (err) {
		consume_skb(skb);
		return err;
	}
	esp_wire_build(skb_push(skb, ESP_HLEN), &f);
	esp_finish_frame(ed, skb, skb->len, 0);
	esp_skb_classify(skb, sk);
	skb->mark = cookie->mark;
	if (cookie->transmit_time)	/* fq, etf */
		skb_set_delivery_type_by_clockid(skb, cookie->transmit_time, sk->sk_clockid);
#ifndef ESP_OLD_CMSG_PRIORITY
	skb->priority = cookie->priority;
#endif
	err = esp_dev_xmit(skb, ed, mac, NULL);
	if (err < 0)
		return err;
	ESP_INC(sock_net(sk), DgramOut);
	return len;
}

static int dgram_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct sockcm_cookie cookie;
	struct sockaddr_esp a;
	struct sock *sk = sock->sk;
	struct esp_dev *ed;
	int err;

	if (msg->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	err = esp_control(sk, msg, &cookie);
	if (err)
		return err;
	if (msg->msg_namelen) {
		err = esp_addr_check(msg->msg_name, msg->msg_namelen);
		if (err)
			return err;
		memcpy(&a, msg->msg_name, sizeof(a));
	}
	lock_sock(sk);
	if (!msg->msg_namelen) {
		err = -EDESTADDRREQ;
		if (sk->sk_state != TCP_ESTABLISHED)
			goto out;
		esp_addr_peer(sk, &a);
	}
	err = sock_error(sk);
	if (err)
		goto out;
	err = -EPIPE;
	if (sk->sk_shutdown & SEND_SHUTDOWN)
		goto out;
	err = -EINVAL;
	if (!a.sesp_port)
		goto out;
	err = -EACCES;
	if ((a.sesp_addr[0] & 1) && !sock_flag(sk, SOCK_BROADCAST))
		goto out;
	err = dgram_autobind(sk);
	if (err)
		goto out;
	ed = dgram_device(sk, &a);
	if (IS_ERR(ed)) {
		err = PTR_ERR(ed);
		goto out;
	}
	release_sock(sk);
	err = dgram_send(sk, ed, &a, msg, len, &cookie);
	esp_dev_put(ed);
	return err;
out:
	release_sock(sk);
	return err;
}

static void dgram_source(struct sk_buff *skb, struct sockaddr_esp *a)
{
	memset(a, 0, sizeof(*a));
	a->sesp_family = esp_family;
	a->sesp_port = ESP_RX(skb)->f.sport;
	a->sesp_ifindex = skb->skb_iif;
	a->sesp_halen = ETH_ALEN;
	memcpy(a->sesp_addr, eth_hdr(skb)->h_source, ETH_ALEN);
}

/*
 * Dequeue the next datagram, as skb_recv_datagram() does, in the frequent case: no MSG_PEEK, no
 * error to report, and no wait. skb_recv_datagram() handles the other cases.
 */
static struct sk_buff *dgram_next(struct sock *sk, int flags, int *err)
{
	struct sk_buff_head *queue = &sk->sk_receive_queue;
	struct sk_buff *skb;

	if ((flags & MSG_PEEK) || READ_ONCE(sk->sk_err))
		return skb_recv_datagram(sk, flags, err);
	if (!skb_queue_empty_lockless(queue)) {
		skb = skb_dequeue(queue);
		if (skb)
			return skb;
	}
	if (!(flags & MSG_DONTWAIT) || sk_can_busy_loop(sk))
		return skb_recv_datagram(sk, flags, err);
	*err = -EAGAIN;
	return NULL;
}

static int dgram_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
			 int flags)
{
	struct sock *sk = sock->sk;
	struct sk_buff *skb;
	int err, n;

	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (flags & MSG_ERRQUEUE)	/* the queue is always empty */
		return -EAGAIN;
	skb = dgram_next(sk, flags, &err);
	if (!skb)
		return err;
	/* a socket filter may have truncated the frame, even within the header */
	n = clamp_t(int, skb->len - ESP_RX(skb)->f.hlen, 0, ESP_RX(skb)->f.len);
	if (n > (int)len) {
		msg->msg_flags |= MSG_TRUNC;
		err = esp_copy_packet(skb, ESP_RX(skb)->f.hlen, msg, len);
		n = flags & MSG_TRUNC ? n : (int)len;
	} else {
		err = esp_copy_packet(skb, ESP_RX(skb)->f.hlen, msg, n);
	}
	if (!err && msg->msg_name) {
		dgram_source(skb, msg->msg_name);
		msg->msg_namelen = sizeof(struct sockaddr_esp);
	}
	if (!err)
		sock_recv_cmsgs(msg, sk, skb);
	skb_free_datagram(sk, skb);
	return err ? err : n;
}

static int dgram_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	int err = 0;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	lock_sock(sk);
	/* wake waiting readers, connected or not */
	if (sk->sk_state != TCP_ESTABLISHED)
		err = -ENOTCONN;
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | (how + 1));
	sk->sk_state_change(sk);
	release_sock(sk);
	return err;
}

/* Does the socket take the frame? A connected one takes only its peer's frames. */
static bool dgram_wanted(struct sock *sk, struct sk_buff *skb)
{
	struct esp_opt *esp = esp_sk(sk);

	if (READ_ONCE(sk->sk_state) != TCP_ESTABLISHED)
		return true;
	if (READ_ONCE(esp->dport) != ESP_RX(skb)->f.sport)
		return false;
	/* while connect() changes the peer: the new one, the old one, or none */
	return data_race(ether_addr_equal_unaligned(esp->daddr, eth_hdr(skb)->h_source));
}

/*
 * Received datagrams are charged to the socket, its cgroup, and all sockets together
 * (net.esp.mem). A frame comes without the socket's lock, so the receive queue's lock guards
 * sk_forward_alloc, as UDP does it.
 */
static void dgram_rfree(struct sk_buff *skb)
{
	struct sock *sk = skb->sk;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	atomic_sub(skb->truesize, &sk->sk_rmem_alloc);
	sk_mem_uncharge(sk, skb->truesize);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}

/* Charge a frame to the socket and queue it; 0, or why it has to be dropped. */
static enum skb_drop_reason dgram_enqueue(struct sock *sk, struct sk_buff *skb)
{
	struct sk_buff_head *queue = &sk->sk_receive_queue;

	if (atomic_read(&sk->sk_rmem_alloc) >= READ_ONCE(sk->sk_rcvbuf))
		return SKB_DROP_REASON_SOCKET_RCVBUFF;
	spin_lock_bh(&queue->lock);
	if (!sk_rmem_schedule(sk, skb, skb->truesize)) {
		spin_unlock_bh(&queue->lock);
		return SKB_DROP_REASON_PROTO_MEM;
	}
	skb->dev = NULL;
	skb->sk = sk;
	skb->destructor = dgram_rfree;
	atomic_add(skb->truesize, &sk->sk_rmem_alloc);
	sk_mem_charge(sk, skb->truesize);
	sock_skb_set_dropcount(sk, skb);
	__skb_queue_tail(queue, skb);
	spin_unlock_bh(&queue->lock);
	if (!sock_flag(sk, SOCK_DEAD))
		sk->sk_data_ready(sk);
	return SKB_NOT_DROPPED_YET;
}

/* Queue a frame to a socket. Consumes @skb. */
static void dgram_queue_to(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	enum skb_drop_reason reason;

	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) {
		reason = SKB_DROP_REASON_SOCKET_CLOSE;
	} else if (sk_filter(sk, skb)) {
		reason = SKB_DROP_REASON_SOCKET_FILTER;
	} else {
		reason = dgram_enqueue(sk, skb);
		if (reason)
			sk_drops_inc(sk);
	}
	if (reason) {
		ESP_INC(net, DgramMemDrop);
		sk_skb_reason_drop(sk, skb, reason);
	} else {
		ESP_INC(net, DgramIn);
	}
}

/* Queue a copy of a group's frame to one of its sockets. */
static enum skb_drop_reason dgram_queue_copy(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	struct sk_buff *copy = skb_clone(skb, GFP_ATOMIC);

	if (!copy) {
		ESP_INC(net, DgramMemDrop);
		return SKB_DROP_REASON_NOMEM;
	}
	dgram_queue_to(net, sk, copy);
	return SKB_CONSUMED;
}

/**
 * esp_dgram_rcv() - deliver a datagram
 * @net:	namespace
 * @ed:		device
 * @skb:	frame, checked; consumed. A group's frame goes to every socket of the
 *		port that takes it (dgram_wanted()), another frame to the first one
 *
 * Context: softirq, RCU read side.
 */
void esp_dgram_rcv(struct net *net, struct esp_dev *ed, struct sk_buff *skb)
{
	enum skb_drop_reason reason = SKB_DROP_REASON_NO_SOCKET;
	__be16 port = ESP_RX(skb)->f.dport;
	struct sock *sk = NULL;

	while ((sk = esp_next_dgram(net, ed->ifindex, port, sk))) {
		if (!dgram_wanted(sk, skb))
			continue;
		if (skb->pkt_type == PACKET_HOST) {
			dgram_queue_to(net, sk, skb);
			return;
		}
		if (reason == SKB_CONSUMED)
			dgram_queue_copy(net, sk, skb);
		else
			reason = dgram_queue_copy(net, sk, skb);
	}
	if (reason == SKB_DROP_REASON_NO_SOCKET)
		ESP_INC(net, InNoSocket);
	sk_skb_reason_drop(NULL, skb, reason);
}

const struct proto_ops esp_dgram_ops = {
	.owner		= THIS_MODULE,
	.release	= dgram_release,
	.bind		= esp_bind,
	.connect	= dgram_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= sock_no_accept,
	.getname	= dgram_getname,
	.poll		= datagram_poll,
	.ioctl		= esp_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= sock_no_listen,
	.shutdown	= dgram_shutdown,
	.setsockopt	= esp_setsockopt,
	.getsockopt	= esp_getsockopt,
	.sendmsg	= dgram_sendmsg,
	.recvmsg	= dgram_recvmsg,
	.mmap		= sock_no_mmap,
};
