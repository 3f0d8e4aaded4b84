// SPDX-License-Identifier: GPL-2.0-only
/*
 * The Ethernet Streaming Protocol: the family, and its sockets' calls.
 */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include "esp.h"
#include "addr.h"
#include "af_esp.h"
#include "close.h"
#include "connect.h"
#include "dev.h"
#include "dev_event.h"
#include "dgram.h"
#include "grant.h"
#include "hash.h"
#include "input.h"
#include "link.h"
#include "memory.h"
#include "recvmsg.h"
#include "sendmsg.h"
#include "sock.h"
#include "sockopt.h"
#include "timeout.h"
#include "timer.h"
#include "trace.h"
#include "write_queue.h"

static int esp_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct sock *sk = sock->sk;
	int err = sizeof(struct sockaddr_esp);

	lock_sock(sk);
	if (!peer)
		esp_addr_local(sk, (struct sockaddr_esp *)addr);
	else if (!esp_sk(sk)->dport || sk->sk_state == TCP_CLOSE ||
		 sk->sk_state == TCP_SYN_SENT)
		err = -ENOTCONN;
	else
		esp_addr_peer(sk, (struct sockaddr_esp *)addr);
	release_sock(sk);
	return err;
}

/*
 * The user's calls on connections.
 */

/* Does the attempt still wait for an answer, and has no other call ended it since? */
static bool connect_pending(struct sock *sk, int disconnects)
{
	return sk->sk_state == TCP_SYN_SENT && sk->sk_disconnects == disconnects;
}

static long connect_wait(struct sock *sk, int disconnects, long timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	sock_owned_by_me(sk);
	add_wait_queue(sk_sleep(sk), &wait);
	sk->sk_write_pending++;
	while (connect_pending(sk, disconnects)) {
		release_sock(sk);
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
		lock_sock(sk);
		if (signal_pending(current) || !timeo)
			break;
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	sk->sk_write_pending--;
	return timeo;
}

static int connect_start(struct sock *sk, struct sockaddr_esp *a)
{
	struct esp_opt *esp = esp_sk(sk);
	u8 mac[ETH_ALEN + 2] __aligned(2);
	int err;

	sock_owned_by_me(sk);
	memcpy(mac, a->sesp_addr, ETH_ALEN);
	if (!a->sesp_port)
		return -EADDRNOTAVAIL;
	if (is_multicast_ether_addr(mac))
		return -ENETUNREACH;
	err = esp_connect_device(sk, a);
	if (err)
		return err;
	err = esp_dev_mac(esp->dev, esp->saddr);
	if (err)
		return err;
	if (is_zero_ether_addr(mac) && !is_zero_ether_addr(esp->saddr))
		return -EADDRNOTAVAIL;
	WRITE_ONCE(esp->dport, a->sesp_port);
	ether_addr_copy(esp->daddr, mac);
	return esp_connect_start(sk);
}

/*
 * Send the SYN while the socket has no owner. The answer of a peer on the same host comes
 * before this returns, and would have to wait in the backlog of an owned socket.
 */
static void connect_send_syn(struct sock *sk)
{
	bool slow;

	sock_owned_by_me(sk);
	release_sock(sk);
	slow = lock_sock_fast(sk);
	if (sk->sk_state == TCP_SYN_SENT)
		esp_send_syn(sk);
	unlock_sock_fast(sk, slow);
	lock_sock(sk);
}

static int esp_stream_connect(struct socket *sock, struct sockaddr_unsized *addr,
			      int len, int flags)
{
	struct sockaddr_esp a;
	struct sock *sk = sock->sk;
	int disconnects;
	long timeo;
	int err;

	if (len < (int)sizeof(addr->sa_family))
		return -EINVAL;
	err = esp_addr_check((struct sockaddr_esp *)addr, len);
	if (err)
		return err;
	memcpy(&a, addr, sizeof(a));

	lock_sock(sk);
	disconnects = sk->sk_disconnects;
	switch (sock->state) {
	case SS_CONNECTED:
		err = -EISCONN;
		goto out;
	case SS_CONNECTING:
		err = -EALREADY;
		if (sk->sk_state == TCP_SYN_SENT)
			break;
		err = 0;
		break;
	default:
		err = -EISCONN;
		if (sk->sk_state != TCP_CLOSE)
			goto out;
		err = connect_start(sk, &a);
		if (err) {
			esp_connect_failed(sk);
			goto out;
		}
		sock->state = SS_CONNECTING;
		connect_send_syn(sk);
		err = -EINPROGRESS;
		if (flags & O_NONBLOCK)
			goto out;
	}
	timeo = sock_sndtimeo(sk, flags & O_NONBLOCK);
	if (connect_pending(sk, disconnects)) {
		if (!timeo)
			goto out;
		timeo = connect_wait(sk, disconnects, timeo);
		if (connect_pending(sk, disconnects)) {
			if (signal_pending(current))
				err = sock_intr_errno(timeo);
			goto out;
		}
	}
	/* another call ended this attempt: the socket's state is that call's, not ours */
	if (sk->sk_disconnects != disconnects) {
		err = -ECONNABORTED;
		goto out;
	}
	if (sk->sk_state == TCP_CLOSE) {
		err = sock_error(sk) ? : -ECONNABORTED;
		sock->state = SS_UNCONNECTED;
		esp_connect_failed(sk);
		goto out;
	}
	sock->state = SS_CONNECTED;
	err = 0;
out:
	release_sock(sk);
	return err;
}

static int esp_listen(struct socket *sock, int backlog)
{
	struct sock *sk = sock->sk;
	int err = -EINVAL;

	lock_sock(sk);
	if (sock->state != SS_UNCONNECTED)
		goto out;
	if (sk->sk_state == TCP_LISTEN) {
		WRITE_ONCE(sk->sk_max_ack_backlog, backlog);
		err = 0;
		goto out;
	}
	if (sk->sk_state != TCP_CLOSE)
		goto out;
	if (!esp_sk(sk)->sport) {
		if (esp_sk(sk)->tcp)	/* it is to have TCP's port */
			goto out;
		err = esp_bind_port(sk, 0);
		if (err)
			goto out;
	}
	WRITE_ONCE(sk->sk_max_ack_backlog, backlog);
	sk->sk_ack_backlog = 0;
	err = esp_bind_listen(sk);
	if (!err)
		err = esp_hash(sk);
out:
	release_sock(sk);
	return err;
}

static struct sock *accept_one(struct sock *sk, long timeo, int *err)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct esp_opt *esp = esp_sk(sk), *child;

	sock_owned_by_me(sk);
	add_wait_queue_exclusive(sk_sleep(sk), &wait);
	for (;;) {
		*err = -EINVAL;
		if (sk->sk_state != TCP_LISTEN)
			break;
		*err = sock_error(sk);
		if (*err)
			break;
		if (!list_empty(&esp->acceptq))
			break;
		*err = -EAGAIN;
		if (!timeo)
			break;
		*err = sock_intr_errno(timeo);
		if (signal_pending(current))
			break;
		release_sock(sk);
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
		lock_sock(sk);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	if (*err)
		return NULL;
	child = list_first_entry(&esp->acceptq, struct esp_opt, acceptq);
	list_del_init(&child->acceptq);
	sk_acceptq_removed(sk);
	return &child->sk;
}

/* Return a connection after a failed accept(), so that the next accept() takes it. */
static void accept_put_back(struct sock *sk, struct sock *child)
{
	bool listens;

	lock_sock(sk);
	listens = sk->sk_state == TCP_LISTEN;
	if (listens) {
		list_add(&esp_sk(child)->acceptq, &esp_sk(sk)->acceptq);
		sk_acceptq_added(sk);
		sk->sk_data_ready(sk);	/* other calls may wait */
	}
	release_sock(sk);
	if (!listens)
		esp_refuse(child);
}

/* Let esp_setsockopt() see the core's options, and io_uring lend the user's memory. */
static void socket_flags(struct socket *sock)
{
#ifndef ESP_OLD_SOCKOPT
	set_bit(SOCK_CUSTOM_SOCKOPT, &sock->flags);
#endif
	if (sock->type != SOCK_DGRAM)
		set_bit(SOCK_SUPPORT_ZC, &sock->flags);
}

static int accept_child(struct socket *sock, struct socket *newsock, int flags)
{
	struct sock *sk = sock->sk, *child;
	int err;

	lock_sock(sk);
	child = accept_one(sk, sock_rcvtimeo(sk, flags & O_NONBLOCK), &err);
	release_sock(sk);
	if (!child)
		return err;
	lock_sock(child);	/* not the listener: a cgroup at its limit may take long */
	if (!esp_mem_accept(child)) {
		release_sock(child);
		accept_put_back(sk, child);
		return -ENOMEM;
	}
	sock_graft(child, newsock);
	newsock->state = SS_CONNECTED;
	socket_flags(newsock);
	release_sock(child);
	return 0;
}

#ifdef ESP_OLD_ACCEPT
static int esp_accept(struct socket *sock, struct socket *newsock, int flags,
		      bool kern)
{
	return accept_child(sock, newsock, flags);
}
#else
static int esp_accept(struct socket *sock, struct socket *newsock,
		      struct proto_accept_arg *arg)
{
	return accept_child(sock, newsock, arg->flags);
}
#endif

static __poll_t esp_poll(struct file *file, struct socket *sock,
			 struct poll_table_struct *wait)
{
	struct sock *sk = sock->sk;
	__poll_t mask = 0;
	u8 shutdown;
	int state;

	sock_poll_wait(file, sock, wait);
	/* pairs with esp_set_state() */
	state = smp_load_acquire(&sk->sk_state);
	if (state == TCP_LISTEN)
		return (list_empty_careful(&esp_sk(sk)->acceptq) ? 0 :
			EPOLLIN | EPOLLRDNORM) |
		       (READ_ONCE(sk->sk_err) ? EPOLLERR : 0);

	shutdown = READ_ONCE(sk->sk_shutdown);
	if (shutdown == SHUTDOWN_MASK || state == TCP_CLOSE)
		mask |= EPOLLHUP;
	if (shutdown & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (state != TCP_SYN_SENT) {
		if (esp_readable(sk, sock_rcvlowat(sk, 0, INT_MAX)))
			mask |= EPOLLIN | EPOLLRDNORM;
		if (shutdown & SEND_SHUTDOWN) {
			mask |= EPOLLOUT | EPOLLWRNORM;
		} else if (sk_stream_is_writeable(sk)) {
			mask |= EPOLLOUT | EPOLLWRNORM;
		} else {
			sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
			set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
			/* SOCK_NOSPACE before the test: esp_write_space() */
			smp_mb__after_atomic();
			if (sk_stream_is_writeable(sk))
				mask |= EPOLLOUT | EPOLLWRNORM;
		}
	}
	/* the error is written before the state: esp_done() */
	smp_rmb();
	if (READ_ONCE(sk->sk_err) ||
	    !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	return mask;
}

static int esp_init_sock(struct sock *sk)
{
	esp_timer_init(sk);
	return 0;
}

static void esp_release_cb(struct sock *sk)
{
	sock_owned_by_me(sk);
	if (READ_ONCE(esp_sk(sk)->dev_events))
		esp_dev_events_run(sk);
	if (READ_ONCE(esp_sk(sk)->deferred))
		esp_timers_run(sk);
	if (READ_ONCE(esp_sk(sk)->devq_deferred))
		esp_devq_turn(sk);
	/* the backlog's frames counted twice: esp_grant_room() */
	if (READ_ONCE(esp_sk(sk)->grant.rcv_mem_pressure) &&
	    sk->sk_state != TCP_CLOSE && esp_grant_room(esp_sk(sk)))
		esp_pressure_lifted(sk);
}

static void esp_keepalive(struct sock *sk, int on)
{
	/* the core calls this before SOCK_KEEPOPEN changes */
	sock_valbool_flag(sk, SOCK_KEEPOPEN, on);
	/* a BPF program may set options of a socket that is being made, without its lock */
	if (sk->sk_state != TCP_CLOSE)
		esp_start_keepalive(sk);
}

static void esp_enter_memory_pressure(struct sock *sk)
{
	WRITE_ONCE(esp_memory_pressure, 1);
}

static void esp_leave_memory_pressure(struct sock *sk)
{
	WRITE_ONCE(esp_memory_pressure, 0);
}

static bool esp_stream_memory_free(const struct sock *sk, int wake)
{
	return true;
}

static DEFINE_PER_CPU(int, esp_fw_alloc);

/* Bytes that each socket may use even if all sockets together use too many. */
static int esp_buf_min = SOCK_MIN_RCVBUF;

struct proto esp_prot = {
	.name			= "ESP",
	.owner			= THIS_MODULE,
	.obj_size		= sizeof(struct esp_opt),
	.init			= esp_init_sock,
	.release_cb		= esp_release_cb,
	.keepalive		= esp_keepalive,
	.diag_destroy		= esp_kill,
	.backlog_rcv		= esp_backlog_rcv,
	.stream_memory_free	= esp_stream_memory_free,
	.enter_memory_pressure	= esp_enter_memory_pressure,
	.leave_memory_pressure	= esp_leave_memory_pressure,
	.memory_allocated	= &esp_memory_allocated,
	.per_cpu_fw_alloc	= &esp_fw_alloc,
	.sockets_allocated	= &esp_sockets_allocated,
	.memory_pressure	= &esp_memory_pressure,
	.sysctl_mem		= esp_mem,
	.sysctl_wmem		= &esp_buf_min,
	.sysctl_rmem		= &esp_buf_min,
	.max_header		= LL_MAX_HEADER + ESP_HLEN_MAX,
	.no_autobind		= true,
};

/* Datagrams that wait to be read are charged: dgram_enqueue(). */
struct proto esp_dgram_prot = {
	.name			= "EDP",
	.owner			= THIS_MODULE,
	.obj_size		= sizeof(struct esp_opt),
	.init			= esp_init_sock,
	.release_cb		= esp_release_cb,
	.diag_destroy		= esp_dgram_kill,
	.memory_allocated	= &esp_memory_allocated,
	.per_cpu_fw_alloc	= &esp_fw_alloc,
	.sysctl_mem		= esp_mem,
	.sysctl_wmem		= &esp_buf_min,
	.sysctl_rmem		= &esp_buf_min,
	.max_header		= LL_MAX_HEADER + ESP_HLEN,
	.no_autobind		= true,
};

static const struct proto_ops esp_stream_ops = {
	.owner		= THIS_MODULE,
	.release	= esp_release,
	.bind		= esp_bind,
	.connect	= esp_stream_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= esp_accept,
	.getname	= esp_getname,
	.poll		= esp_poll,
	.ioctl		= esp_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= esp_listen,
	.shutdown	= esp_shutdown,
	.setsockopt	= esp_setsockopt,
	.getsockopt	= esp_getsockopt,
	.sendmsg	= sock_esp_sendmsg,
#ifdef ESP_OLD_SENDPAGE
	.sendpage	= esp_sendpage,
#else
	.splice_eof	= esp_splice_eof,
#endif
	.recvmsg	= esp_recvmsg,
	.splice_read	= esp_splice_read,
	.set_rcvlowat	= esp_set_rcvlowat,
	.mmap		= sock_no_mmap,
};

static struct proto_ops esp_stream_ops_f __ro_after_init;
static struct proto_ops esp_dgram_ops_f __ro_after_init;

static int esp_create(struct net *net, struct socket *sock, int protocol,
		      int kern)
{
	struct sock *sk;

	if (protocol)
		return -EPROTONOSUPPORT;
	switch (sock->type) {
	case SOCK_STREAM:
	case SOCK_SEQPACKET:
		sock->ops = &esp_stream_ops_f;
		break;
	case SOCK_DGRAM:
		sock->ops = &esp_dgram_ops_f;
		break;
	default:
		return -ESOCKTNOSUPPORT;
	}
	socket_flags(sock);
	sk = esp_sock_alloc(net, sock, sock->type, kern, GFP_KERNEL);
	return sk ? 0 : -ENOBUFS;
}

static struct net_proto_family esp_family_ops __ro_after_init = {
	.create	= esp_create,
	.owner	= THIS_MODULE,
};

/**
 * esp_family_init() - register the address family, so that users can create sockets
 *
 * Return: 0 or a negative errno, -EEXIST: the family's number is taken
 */
int __init esp_family_init(void)
{
	esp_stream_ops_f = esp_stream_ops;
	esp_stream_ops_f.family = esp_family;
	esp_dgram_ops_f = esp_dgram_ops;
	esp_dgram_ops_f.family = esp_family;
	esp_family_ops.family = esp_family;
	return sock_register(&esp_family_ops);
}
