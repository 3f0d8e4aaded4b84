// SPDX-License-Identifier: GPL-2.0-only
/* Socket options at level SOL_ESP, SIOCINQ and SIOCOUTQ. */
#include <asm/ioctls.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include "esp.h"
#include "dev.h"
#include "dev_queue.h"
#include "hash.h"
#include "link.h"
#include "negotiate.h"
#include "sockopt.h"
#include "tcp.h"
#include "timer.h"
#include "write_queue.h"

static bool sock_is_idle(struct sock *sk)
{
	return sk->sk_state == TCP_CLOSE;
}

static int opt_bounded(int v, int lo, int hi)
{
	return v < lo || v > hi ? -EINVAL : 0;
}

/* Set an unsigned field if @v is within bounds. */
static int opt_set_u32(u32 *field, int v, int lo, int hi)
{
	int err = opt_bounded(v, lo, hi);

	if (!err)
		*field = v;
	return err;
}

static void opt_push_now(struct sock *sk)
{
	if (sk->sk_send_head && sk->sk_state != TCP_CLOSE)
		esp_push_frames(sk);
}

static int opt_set(struct sock *sk, int name, int v)
{
	struct esp_opt *esp = esp_sk(sk);
	int err = 0;

	switch (name) {
	case ESP_MAXSEG:
		if (!sock_is_idle(sk))
			return -EISCONN;
		return opt_set_u32(&esp->user_mss, v, ESP_MSS_MIN, ESP_PAYLOAD_MAX);
	case ESP_NODELAY:
		esp->nodelay = !!v;
		opt_push_now(sk);
		break;
	case ESP_CORK:
		esp->cork = !!v;
		opt_push_now(sk);
		break;
	case ESP_USER_TIMEOUT:
		err = opt_set_u32(&esp->user_timeout_ms, v, 0, INT_MAX);
		if (!err && v && esp->deadline[ESP_T_SEND])
			esp_timer_set(esp, ESP_T_SEND, min(esp->deadline[ESP_T_SEND],
							   esp->waiting_since + 1000ull * v));
		break;
	case ESP_KEEPIDLE:
		err = opt_set_u32(&esp->keep_idle, v, 1, 32767);
		if (!err)
			esp_start_keepalive(sk);
		break;
	case ESP_KEEPINTVL:
		return opt_set_u32(&esp->keep_intvl, v, 1, 32767);
	case ESP_KEEPCNT:
		err = opt_bounded(v, 1, 127);
		if (!err)
			esp->keep_cnt = v;
		break;
	case ESP_BURST_LENGTH:
		err = opt_bounded(v, 0, ESP_SEQ_WINDOW);
		if (!err) {
			WRITE_ONCE(esp->user_burst, v);
			if (sk->sk_state == TCP_LISTEN)
				esp->late_cap = 1;
			esp_set_burst(sk);
		}
		break;
	case ESP_INITIAL_ACK_BURST_LENGTH:
		err = opt_bounded(v, -1, ESP_ADVICE_MAX);
		if (!err) {
			esp->user_initial = v;
			esp->snd.initial = v;
		}
		break;
	case ESP_PACKETS_TO_ACK:
		err = opt_bounded(v, 1, 64);
		if (!err)
			WRITE_ONCE(esp->user_to_ack, v);
		break;
	case ESP_ZEROCOPY:
		if (sk->sk_type == SOCK_DGRAM)
			return -EOPNOTSUPP;
		err = opt_bounded(v, 0, 1);
		if (!err)
			sock_valbool_flag(sk, SOCK_ZEROCOPY, v);
		break;
	case ESP_CRC32C:
		if (sk->sk_type == SOCK_DGRAM)
			return -EOPNOTSUPP;
		if (!sock_is_idle(sk))
			return -EISCONN;
		err = opt_bounded(v, 0, 1);
		if (!err)
			esp->user_crc = v;
		break;
	case ESP_TCP_LISTENER:
		if (sk->sk_type != SOCK_STREAM)
			return -EOPNOTSUPP;
		if (!sock_is_idle(sk) || esp->sport)
			return -EISCONN;
		return esp_tcp_set_listener(sk, v);
	case ESP_MTU:
	case ESP_STATS:
	case ESP_INFO:
	case ESP_RECVERR:
		return -ENOPROTOOPT;	/* not writable */
	default:
		return -ENOPROTOOPT;
	}
	return err;
}

static int opt_set_tcp_dest(struct sock *sk, sockptr_t val, unsigned int len)
{
	if (sk->sk_type != SOCK_STREAM)
		return -EOPNOTSUPP;
	if (!sock_is_idle(sk))
		return -EISCONN;
	return esp_tcp_set_dest(sk, val, len);
}

/*
 * Refuse an option of the core that would have no effect on @sk: the core stores it for any
 * family. Values that switch one off are accepted, except for SO_TXTIME. Returns 0, EOPNOTSUPP
 * or EFAULT. Older kernels don't ask the family.
 */
static int opt_of_core(struct sock *sk, int name, sockptr_t val, unsigned int len)
{
	bool dgram = sk->sk_type == SOCK_DGRAM;
	union {
		int v;
		struct sock_txtime txtime;
	} u = {};

	if (len < sizeof(u.v))	/* the core refuses it */
		return 0;
	if (copy_from_sockptr(&u, val, min_t(unsigned int, len, sizeof(u))))
		return -EFAULT;
	switch (name) {
	case SO_REUSEPORT:
		return u.v ? -EOPNOTSUPP : 0;
	case SO_INCOMING_CPU:
		return u.v >= 0 ? -EOPNOTSUPP : 0;
	case SO_TXTIME:		/* EDP has no queue of errors */
		return dgram && !(u.txtime.flags & SOF_TXTIME_REPORT_ERRORS) ? 0 : -EOPNOTSUPP;
	case SO_RESERVE_MEM:	/* the receive queue's lock guards a datagram socket's memory */
		return dgram ? -EOPNOTSUPP : 0;
	case SO_TIMESTAMPING_OLD:
	case SO_TIMESTAMPING_NEW:
		/* datagrams have times of their arrival */
		if (dgram)
			u.v &= SOF_TIMESTAMPING_TX_RECORD_MASK;
		return u.v ? -EOPNOTSUPP : 0;
	case SO_TIMESTAMP_OLD:
	case SO_TIMESTAMP_NEW:
	case SO_TIMESTAMPNS_OLD:
	case SO_TIMESTAMPNS_NEW:
		return u.v && !dgram ? -EOPNOTSUPP : 0;
	case SO_ATTACH_FILTER:
	case SO_ATTACH_BPF:
		return dgram ? 0 : -EOPNOTSUPP;
	}
	return 0;
}

int esp_setsockopt(struct socket *sock, int level, int name, sockptr_t val,
		   unsigned int len)
{
	struct sock *sk = sock->sk;
	int err, v;

	if (level == SOL_SOCKET && name != SO_ZEROCOPY) {
		err = opt_of_core(sk, name, val, len);
		return err ? err : sock_setsockopt(sock, level, name, val, len);
	}
	if (level == SOL_SOCKET)
		name = ESP_ZEROCOPY;
	else if (level != SOL_ESP)
		return -ENOPROTOOPT;
	if (len < sizeof(v))
		return -EINVAL;
	if (copy_from_sockptr(&v, val, sizeof(v)))
		return -EFAULT;
	if (name == ESP_TCP_SOCKET)
		return esp_tcp_take_options(sock, v);
	lock_sock(sk);
	if (name == ESP_TCP_DEST)
		err = opt_set_tcp_dest(sk, val, len);
	else
		err = opt_set(sk, name, v);
	release_sock(sk);
	return err;
}

static u32 opt_or_conf(u32 own, int conf)
{
	return own ? own : conf;
}

/**
 * esp_get_info() - read the protocol state of a socket
 * @sk:		socket; its lock is held, or the lock of its bucket in the table of connections
 *		(sock_diag). With the latter, values may be of different moments
 * @info:	result
 */
void esp_get_info(struct sock *sk, struct esp_info *info)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	int open;

	memset(info, 0, sizeof(*info));
	info->state = sk->sk_state;
	info->flags = (esp->snd.trans_announced ? ESP_IF_TRANS_ANNOUNCED : 0) |
		      (g->recv_announced ? ESP_IF_RECV_ANNOUNCED : 0) |
		      (g->rcv_mem_pressure ? ESP_IF_RCV_MEM_PRESSURE : 0) |
		      (g->queued ? ESP_IF_PARKED : 0) |
		      (esp->snd.on_hold ? ESP_IF_HELD : 0) |
		      (esp->handshake_unconfirmed ? ESP_IF_ECHOING : 0) |
		      (esp->crc ? ESP_IF_CRC32C : 0) |
		      (esp->peer_left && esp_devq_is_busy(sk) ? ESP_IF_BUSY : 0);
	info->retransmits = esp->retransmits;
	info->probes = esp->probes;
	info->mss = esp->mss;
	info->peer_mss = esp->peer_mss;
	info->rtt_us = esp_rtt_smooth(&esp->rtt);
	info->rttvar_us = esp->rtt.rttvar4 >> 2;
	info->min_rtt_us = esp->min_rtt;
	info->rto_us = esp_rto(esp);
	info->una_seq = esp->snd.una_seq;
	info->send_next = esp->snd.send_next;
	info->send_seq = esp->snd.send_seq;
	info->announce_seq = esp->snd.announce_seq;
	info->edge = esp->snd.edge;
	info->recv_seq = esp->recv_seq;
	info->ack_seq = esp->ack_seq;
	info->recv_edge = g->recv_announced ? g->edge : esp->recv_seq;
	info->open = atomic_read(&g->outstanding);
	info->advice = esp->snd.advice;
	info->advice_given = esp->burst_told;
	info->notsent = esp->notsent;
	info->unacked = esp->unacked;
	info->stats = esp->stats;
	if (esp->peer_left && g->recv_announced)
		info->left = max_t(s32, READ_ONCE(g->end) - esp->recv_seq, 0);
	if (esp->peer_left && esp->snd.in_trans)
		info->left_told = max_t(s32, esp->told_end - esp->snd.una_seq, 0);
	info->bucket = esp_link_bucket(sk, &open);
	info->bucket_open = max(open, 0);
	if (info->bucket && READ_ONCE(g->host->bounded)) {
		/* its writers have the ACK queue's lock */
		info->bucket_busy = data_race(g->host->alpha) * 1000 / 1024;
	}
}
EXPORT_SYMBOL_GPL(esp_get_info);

static int opt_get_int(struct sock *sk, int name, int *v)
{
	struct esp_conf *conf = &esp_sk(sk)->ns->conf;
	struct esp_opt *esp = esp_sk(sk);

	switch (name) {
	case ESP_MTU:
		if (!esp->dev || !esp_dev_mtu(esp->dev))
			return -ENODEV;
		*v = esp_dev_mtu(esp->dev) - esp_data_hlen(esp);
		break;
	case ESP_MAXSEG:
		*v = esp->peer ? esp->mss : esp->user_mss;
		break;
	case ESP_NODELAY:
		*v = esp->nodelay;
		break;
	case ESP_CORK:
		*v = esp->cork;
		break;
	case ESP_ZEROCOPY:
		*v = sock_flag(sk, SOCK_ZEROCOPY);
		break;
	case ESP_CRC32C:
		*v = (1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT) ?
		     esp->user_crc : esp->crc;
		break;
	case ESP_USER_TIMEOUT:
		*v = esp->user_timeout_ms;
		break;
	case ESP_KEEPIDLE:
		*v = opt_or_conf(esp->keep_idle, READ_ONCE(conf->keepalive_time));
		break;
	case ESP_KEEPINTVL:
		*v = opt_or_conf(esp->keep_intvl, READ_ONCE(conf->keepalive_intvl));
		break;
	case ESP_KEEPCNT:
		*v = opt_or_conf(esp->keep_cnt, READ_ONCE(conf->keepalive_probes));
		break;
	case ESP_BURST_LENGTH:
		*v = esp->user_burst >= 0 ? esp->user_burst :
		     READ_ONCE(conf->esp_burst_length);
		break;
	case ESP_INITIAL_ACK_BURST_LENGTH:
		*v = esp->user_initial != -2 ? esp->user_initial :
		     READ_ONCE(conf->esp_initial_ack_burst_length);
		break;
	case ESP_PACKETS_TO_ACK:
		*v = esp_packets_to_ack(sk);
		break;
	default:
		return -ENOPROTOOPT;
	}
	return 0;
}

/*
 * Make a descriptor of the socket that stands for the TCP listener @fd, in whichever process that
 * socket was made: a process with TCP's listener may accept its connections. Writes the descriptor
 * to @val. Returns 0; EBADF, ENOTSOCK, EINVAL: @fd is no TCP listener; ENOENT: no socket stands for
 * it; or an error of receive_fd().
 */
static int opt_get_tcp_listener(struct net *net, int fd, int __user *val)
{
	struct file *file = NULL;
	struct sock *tcp, *sk;
	int err;

	tcp = esp_tcp_get(net, fd, &err);
	if (!tcp)
		return err;
	sk = esp_lookup_tcp(tcp);
	sock_put(tcp);
	if (!sk)
		return -ENOENT;
	lock_sock(sk);	/* it keeps the file, which may be closing, from being freed */
	if (sk->sk_state == TCP_LISTEN && sk->sk_socket)
		file = get_file_active(&sk->sk_socket->file);
	release_sock(sk);
	sock_put(sk);
	if (!file)
		return -ENOENT;
	err = receive_fd(file, val, O_CLOEXEC);
	fput(file);
	return min(err, 0);
}

int esp_getsockopt(struct socket *sock, int level, int name,
		   char __user *val, int __user *optlen)
{
	struct sock *sk = sock->sk;
	struct esp_info info;
	void *from = &info;
	int v, len, size, err = 0;

	if (level != SOL_ESP)
		return -ENOPROTOOPT;
	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	if (name == ESP_TCP_LISTENER) {
		if (len != sizeof(v))
			return -EINVAL;
		if (get_user(v, (int __user *)val))
			return -EFAULT;
		return opt_get_tcp_listener(sock_net(sk), v, (int __user *)val);
	}
	lock_sock(sk);
	switch (name) {
	case ESP_STATS:
		info.stats = esp_sk(sk)->stats;
		from = &info.stats;
		size = sizeof(info.stats);
		break;
	case ESP_INFO:
		esp_get_info(sk, &info);
		size = sizeof(info);
		break;
	default:
		err = opt_get_int(sk, name, &v);
		from = &v;
		size = sizeof(v);
	}
	release_sock(sk);
	if (err)
		return err;
	len = min(len, size);
	if (put_user(len, optlen) || copy_to_user(val, from, len))
		return -EFAULT;
	return 0;
}

static int ioctl_queued_in(struct sock *sk)
{
	struct sk_buff *skb;
	int n = 0;

	if (sk->sk_type != SOCK_DGRAM)
		return esp_sk(sk)->rcv_bytes;
	spin_lock_bh(&sk->sk_receive_queue.lock);
	skb = skb_peek(&sk->sk_receive_queue);
	if (skb)
		n = ESP_RX(skb)->f.len;
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	return n;
}

/**
 * esp_ioctl() - handle SIOCINQ, SIOCOUTQ and SIOCOUTQNSD
 * @sock:	socket
 * @cmd:	SIOCINQ: bytes to be read (EDP: of the next datagram); SIOCOUTQ:
 *		bytes not yet acknowledged; SIOCOUTQNSD: bytes not yet sent
 * @arg:	address of the result, int *
 *
 * The core handles the ioctls of interfaces.
 *
 * Return: 0, EINVAL (listening), EFAULT, ENOIOCTLCMD
 */
int esp_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct sock *sk = sock->sk;
	int n, err = 0;

	lock_sock(sk);
	if (sk->sk_state == TCP_LISTEN)
		err = -EINVAL;
	switch (cmd) {
	case SIOCINQ:
		n = ioctl_queued_in(sk);
		break;
	case SIOCOUTQ:
		n = sk->sk_type == SOCK_DGRAM ? sk_wmem_alloc_get(sk) :
		    esp_sk(sk)->notsent + esp_sk(sk)->unacked;
		break;
	case SIOCOUTQNSD:
		n = esp_sk(sk)->notsent;
		break;
	default:
		err = -ENOIOCTLCMD;
	}
	release_sock(sk);
	return err ? err : put_user(n, (int __user *)arg);
}
