// SPDX-License-Identifier: GPL-2.0-only
/*
 * A socket's creation, state and destruction.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include "esp.h"
#include "dev.h"
#include "dev_queue.h"
#include "first_burst.h"
#include "memory.h"
#include "sock.h"
#include "timer.h"
#include "trace.h"

#define ESP_SNDBUF	(1024 * 1024)	/* initial size of a send buffer, bytes */

void esp_set_state(struct sock *sk, int state)
{
	trace_esp_state(sk, state);
	/* pairs with lock-free readers in poll and lookup */
	smp_store_release(&sk->sk_state, state);
}

#define ESP_ORPHAN		1	/* esp_opt.orphan: the module may be unloaded */
#define ESP_ORPHAN_PINS		2	/* the module must stay */
#define ESP_ORPHAN_TIMES	10	/* an orphan's longest life, in fin_timeout_ms */

/* Most orphans, of all namespaces: sysctl net.esp.max_orphans. */
int esp_max_orphans __read_mostly;

/* Sockets that esp_orphan() was called for, and that are not destructed yet. */
static atomic_t esp_orphans;
static atomic_t esp_orphan_memory;	/* orphans, also ended ones, whose memory is not free yet */

/**
 * esp_orphan_refused() - Must a connection be given up when it has no user?
 * @sk:	connection that is being closed, or closed already; its lock is held
 *
 * As with TCP: there are too many orphans, or all sockets together use too much memory and this
 * one has some.
 *
 * Return: true if it must
 */
bool esp_orphan_refused(const struct sock *sk)
{
	return atomic_read(&esp_orphans) > READ_ONCE(esp_max_orphans) ||
	       (sk->sk_wmem_queued > SOCK_MIN_SNDBUF &&
		atomic_long_read(&esp_memory_allocated) > READ_ONCE(esp_mem[2]));
}

/**
 * esp_orphans_crowd() - Are there more than half as many orphans as there may be?
 *
 * Then an orphan in FIN_WAIT2 or TIME_WAIT, which has nothing to lose, ends at once, so that those
 * that have data of their users find room.
 *
 * Return: true if there are
 */
bool esp_orphans_crowd(void)
{
	return atomic_read(&esp_orphans) > READ_ONCE(esp_max_orphans) / 2;
}

/**
 * esp_orphan_waits_short() - Must an orphan that only waits end at once? Count it
 * @sk:	orphan in FIN_WAIT2 or TIME_WAIT; its lock is held
 *
 * Return: esp_orphans_crowd()
 */
bool esp_orphan_waits_short(struct sock *sk)
{
	if (!esp_orphans_crowd())
		return false;
	ESP_INC(sock_net(sk), TimeWaitOverflow);
	return true;
}

/**
 * esp_orphan() - count a closed socket, and let it not keep the module from being unloaded
 * @sk:	socket without a user, which goes on until its peer knows; its lock is held
 *
 * At the module's exit, esp_end_orphans() ends it.
 */
void esp_orphan(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	if (esp->orphan)
		return;
	atomic_inc(&esp_orphans);
	atomic_inc(&esp_orphan_memory);
	esp->orphan = ESP_ORPHAN_PINS;
	/*
	 * A frame holds the socket as long as the device wants. One with data that are sent after
	 * this makes the module's exit wait.
	 */
	if (atomic_read(&sk->sk_zckey) || refcount_read(&sk->sk_wmem_alloc) != 1)
		return;
	esp->orphan = ESP_ORPHAN;
	module_put(THIS_MODULE);	/* sk_alloc() has taken it */
}

/**
 * esp_orphan_ended() - Count an orphan no more
 * @sk:	socket that ends; its lock is held
 *
 * Frames that a device keeps may hold its memory, but not the place of another orphan.
 */
void esp_orphan_ended(struct sock *sk)
{
	sock_owned_by_me(sk);
	if (esp_sk(sk)->orphan)
		atomic_dec(&esp_orphans);
}

/**
 * esp_start_orphan_timer() - limit the time for which a closed socket waits for its peer
 * @sk:	socket; its lock is held. Nothing happens while it has a user
 *
 * close() starts the time. Each progress after it, and FIN_WAIT2, start it anew, but an orphan
 * lives no longer than ESP_ORPHAN_TIMES that time: its peer could make progress packet by packet.
 */
void esp_start_orphan_timer(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u64 wait, now;

	sock_owned_by_me(sk);
	if (!esp->orphan)
		return;
	wait = 1000ull * READ_ONCE(esp->ns->conf.fin_timeout_ms);
	switch (sk->sk_state) {
	case TCP_TIME_WAIT:
		if (esp_orphan_waits_short(sk))
			esp_timer_set(esp, ESP_T_CONN, esp_now());
		break;
	case TCP_FIN_WAIT2:
		if (esp_orphan_waits_short(sk))
			wait = 0;
		fallthrough;
	case TCP_FIN_WAIT1:
	case TCP_CLOSING:
	case TCP_LAST_ACK:
		now = esp_now();
		if (!esp->orphaned_at)
			esp->orphaned_at = now;
		esp_timer_set(esp, ESP_T_CONN,
			      min(now + wait, esp->orphaned_at + ESP_ORPHAN_TIMES * wait));
		break;
	}
}

/**
 * esp_wait_orphans() - wait until the memory of all orphans is free
 *
 * Only for the module's exit, after all orphans have been ended. Contexts and timers that still
 * have a reference drop it soon, after rrq_max_ms at the latest.
 */
void esp_wait_orphans(void)
{
	while (atomic_read(&esp_orphan_memory)) {
		usleep_range(1000, 2000);
		rcu_barrier();	/* for callbacks that free sockets */
	}
}

static void esp_destruct(struct sock *sk)
{
	if (esp_sk(sk)->orphan == ESP_ORPHAN)
		__module_get(THIS_MODULE);	/* the core puts it after this function */
	__skb_queue_purge(&sk->sk_receive_queue);
	__skb_queue_purge(&sk->sk_error_queue);
	sk_mem_reclaim_final(sk);
	WARN_ON_ONCE(atomic_read(&sk->sk_rmem_alloc));
	WARN_ON_ONCE(sk->sk_wmem_queued);
	WARN_ON_ONCE(sk->sk_forward_alloc);
	if (sk->sk_type != SOCK_DGRAM)
		sk_sockets_allocated_dec(sk);
	esp_devq_detach(sk);
	esp_peer_put(sk);
	esp_dev_release(sk);
	if (esp_sk(sk)->tcp)
		sock_put(esp_sk(sk)->tcp);
	if (sk->sk_frag.page) {
		put_page(sk->sk_frag.page);
		sk->sk_frag.page = NULL;
	}
	if (esp_sk(sk)->orphan)
		atomic_dec(&esp_orphan_memory);
}

/* Wake the writers that wait, because ACKs have freed room on the write queue. */
static void esp_write_space(struct sock *sk)
{
	struct socket *sock = sk->sk_socket;
	struct socket_wq *wq;

	if (!sock || !test_bit(SOCK_NOSPACE, &sock->flags) ||
	    !sk_stream_is_writeable(sk))
		return;
	clear_bit(SOCK_NOSPACE, &sock->flags);
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
					   EPOLLWRBAND);
	if (wq && wq->fasync_list && !(sk->sk_shutdown & SEND_SHUTDOWN))
		sock_wake_async(wq, SOCK_WAKE_SPACE, POLL_OUT);
	rcu_read_unlock();
}

/**
 * esp_sock_alloc() - allocate a socket, neither bound nor connected
 * @net:	namespace
 * @sock:	the user's socket, NULL: none yet
 * @type:	SOCK_STREAM, SOCK_SEQPACKET or SOCK_DGRAM
 * @kern:	nonzero if it is the kernel's own
 * @gfp:	allocation flags
 *
 * Return: the socket with one reference, or NULL
 */
struct sock *esp_sock_alloc(struct net *net, struct socket *sock, int type,
			    int kern, gfp_t gfp)
{
	const struct esp_conf *conf = &esp_net(net)->conf;
	struct esp_opt *esp;
	struct sock *sk;

	sk = sk_alloc(net, esp_family, gfp,
		      type == SOCK_DGRAM ? &esp_dgram_prot : &esp_prot, kern);
	if (!sk)
		return NULL;
	sock_init_data(sock, sk);
	sk->sk_type = type;
	sk->sk_destruct = esp_destruct;
	sk->sk_backlog_rcv = sk->sk_prot->backlog_rcv;
	if (type != SOCK_DGRAM)
		sk->sk_write_space = esp_write_space;
	if (type != SOCK_DGRAM) {	/* EDP has the default of all datagram sockets */
		sk->sk_rcvbuf = READ_ONCE(conf->rcvbuf);
		/* send_grow_sndbuf() enlarges it */
		sk->sk_sndbuf = min(READ_ONCE(conf->sndbuf), ESP_SNDBUF);
	}
	sk->sk_state = TCP_CLOSE;
	if (type == SOCK_DGRAM)		/* conn_set_cookie() sets a connection's */
		sk_set_txhash(sk);
	sock_set_flag(sk, SOCK_RCU_FREE);
	if (type != SOCK_DGRAM) {
		sk_sockets_allocated_inc(sk);
		/* sock_wfree() must not call esp_write_space(), because it has no lock */
		sock_set_flag(sk, SOCK_USE_WRITE_QUEUE);
	}

	esp = esp_sk(sk);
	esp->ns = esp_net(net);
	INIT_HLIST_NODE(&esp->bind_node);
	INIT_LIST_HEAD(&esp->dev_node);
	INIT_LIST_HEAD(&esp->acceptq);
	INIT_LIST_HEAD(&esp->devq_node);
	esp->ooo = RB_ROOT;
	esp->nodelay = 1;
	esp->user_burst = -1;
	esp->user_initial = -2;
	esp_grant_init(&esp->grant, 0);
	sk->sk_prot->init(sk);
	return sk;
}

/**
 * esp_control() - take the control messages of sendmsg()
 * @sk:		socket
 * @msg:	message
 * @cookie:	result: mark and priority of the datagram. A stream has the socket's only
 *
 * The core knows which messages of SOL_SOCKET there are; as with TCP and UDP, those of other
 * levels have no effect.
 *
 * Return: 0, EINVAL, EPERM; EOPNOTSUPP: a notice of the departure (SCM_TIMESTAMPING), or its time
 * (SCM_TXTIME) on a stream
 */
int esp_control(struct sock *sk, struct msghdr *msg, struct sockcm_cookie *cookie)
{
	u32 asked;
	int err;

	sockcm_init(cookie, sk);
	cookie->mark = READ_ONCE(sk->sk_mark);	/* older kernels leave it 0 */
	if (!msg->msg_controllen)
		return 0;
	asked = cookie->tsflags;
	err = sock_cmsg_send(sk, msg, cookie);
	if (!err && (cookie->tsflags != asked ||
		     (cookie->transmit_time && sk->sk_type != SOCK_DGRAM)))
		err = -EOPNOTSUPP;
	return err;
}
