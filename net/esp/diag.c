// SPDX-License-Identifier: GPL-2.0-only
/* sock_diag for AF_ESP: "esp show" dumps sockets, and "esp kill" destroys one. */
#include <linux/module.h>
#include <linux/sock_diag.h>
#include <net/netlink.h>
#include <uapi/linux/esp_diag.h>
#include "esp.h"
#include "hash.h"
#include "link.h"
#include "sockopt.h"

struct walk {
	struct sk_buff			*skb;
	struct netlink_callback		*cb;
	const struct esp_diag_req	*req;
	bool				admin;
};

static bool diag_wanted(struct sock *sk, const struct esp_diag_req *req)
{
	if (req->sdiag_type && sk->sk_type != req->sdiag_type)
		return false;
	if (req->states && !(req->states & (1u << READ_ONCE(sk->sk_state))))
		return false;
	return !req->port || req->port == esp_sk(sk)->sport;
}

/*
 * Read the addresses without the socket's lock. They are fixed while the socket can be
 * found, except EDP's peer address, which may be a mix of two. The socket's device is not
 * accessed.
 */
static void diag_addresses(struct sock *sk, struct esp_diag_msg *m)
{
	struct esp_opt *esp = esp_sk(sk);

	m->src.sesp_family = sk->sk_family;
	m->src.sesp_port = READ_ONCE(esp->sport);
	m->src.sesp_halen = ETH_ALEN;
	m->src.sesp_ifindex = READ_ONCE(sk->sk_bound_dev_if);
	if (!m->src.sesp_ifindex && READ_ONCE(sk->sk_state) != TCP_LISTEN)
		m->src.sesp_ifindex = READ_ONCE(esp->ifindex);
	memcpy(m->src.sesp_addr, esp->saddr, ETH_ALEN);
	m->dst.sesp_port = READ_ONCE(esp->dport);
	if (!m->dst.sesp_port)
		return;
	m->dst.sesp_family = sk->sk_family;
	m->dst.sesp_halen = ETH_ALEN;
	m->dst.sesp_ifindex = READ_ONCE(esp->ifindex);
	data_race(memcpy(m->dst.sesp_addr, esp->daddr, ETH_ALEN));	/* EDP's may change */
}

/*
 * Count packets from 1. Their real numbers reveal the cookies (esp_isn()), with which a
 * stranger on the wire can end the connection or write into it. Callers that may see the
 * frames anyway (CAP_NET_ADMIN) get the real numbers. Before the numbers are set, all are
 * shown as 0, because the difference between a new cookie's and an old number would reveal
 * the cookie, too.
 */
static void diag_hide_numbers(const struct esp_opt *esp, u8 state, struct esp_info *info)
{
	u32 snd = esp_isn(esp->cookie), rcv = esp_isn(esp->peer_cookie);

	if ((1 << state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT)) {
		info->una_seq = 0;
		info->send_next = 0;
		info->send_seq = 0;
		info->announce_seq = 0;
		info->edge = 0;
		info->recv_seq = 0;
		info->ack_seq = 0;
		info->recv_edge = 0;
		return;
	}

	info->una_seq -= snd;
	info->send_next -= snd;
	info->send_seq -= snd;
	info->announce_seq -= snd;
	info->edge -= snd;
	info->recv_seq -= rcv;
	info->ack_seq -= rcv;
	info->recv_edge -= rcv;
}

static const enum esp_timer timers[ESP_DIAG_T_MAX] = {
	[ESP_DIAG_T_SEND]	= ESP_T_SEND,
	[ESP_DIAG_T_RRQ]	= ESP_T_RRQ,
	[ESP_DIAG_T_REORDER]	= ESP_T_REORDER,
	[ESP_DIAG_T_ACK]	= ESP_T_ACK,
	[ESP_DIAG_T_CONN]	= ESP_T_CONN,
	[ESP_DIAG_T_KEEP]	= ESP_T_KEEP,
	[ESP_DIAG_T_CORK]	= ESP_T_CORK,
	[ESP_DIAG_T_TELL]	= ESP_T_TELL,
};

static int diag_put_timers(struct sk_buff *skb, const struct esp_opt *esp)
{
	__u64 left[ESP_DIAG_T_MAX];
	u64 now = esp_now();
	int t;

	BUILD_BUG_ON(ARRAY_SIZE(timers) != ESP_T_MAX);
	for (t = 0; t < ESP_DIAG_T_MAX; t++) {
		u64 at = READ_ONCE(esp->deadline[timers[t]]);

		left[t] = !at ? ESP_DIAG_T_OFF : at <= now ? 0 : at - now;
	}
	return nla_put(skb, ESP_DIAG_TIMERS, sizeof(left), left);
}

static int diag_fill(struct walk *w, struct sock *sk)
{
	struct esp_diag_msg *m;
	struct nlmsghdr *nlh;
	struct esp_info info;

	nlh = nlmsg_put(w->skb, NETLINK_CB(w->cb->skb).portid,
			w->cb->nlh->nlmsg_seq, SOCK_DIAG_BY_FAMILY, sizeof(*m),
			NLM_F_MULTI);
	if (!nlh)
		return -EMSGSIZE;
	m = nlmsg_data(nlh);
	memset(m, 0, sizeof(*m));
	m->family = sk->sk_family;
	m->type = sk->sk_type;
	m->state = smp_load_acquire(&sk->sk_state);	/* esp_set_state() */
	m->uid = from_kuid_munged(sk_user_ns(NETLINK_CB(w->cb->skb).sk),
				  READ_ONCE(sk->sk_uid));
	m->ino = sock_i_ino(sk);
	if (m->state == TCP_LISTEN) {
		m->rqueue = READ_ONCE(sk->sk_ack_backlog);
		m->wqueue = READ_ONCE(sk->sk_max_ack_backlog);
	} else if (sk->sk_type == SOCK_DGRAM) {
		m->rqueue = sk_rmem_alloc_get(sk);
		m->wqueue = sk_wmem_alloc_get(sk);
	} else {
		m->rqueue = READ_ONCE(esp_sk(sk)->rcv_bytes);
		/* the two values may be of different moments */
		m->wqueue = data_race(esp_sk(sk)->notsent + esp_sk(sk)->unacked);
	}
	sock_diag_save_cookie(sk, m->cookie);
	diag_addresses(sk, m);
	if (sk->sk_type != SOCK_DGRAM) {
		/* the values may be of different moments */
		data_race(({ esp_get_info(sk, &info); 0; }));
		if (!w->admin)
			diag_hide_numbers(esp_sk(sk), m->state, &info);
		if (nla_put(w->skb, ESP_DIAG_INFO, sizeof(info), &info) ||
		    diag_put_timers(w->skb, esp_sk(sk)))
			goto full;
	}
	if (sock_diag_put_meminfo(sk, w->skb, ESP_DIAG_MEMINFO))
		goto full;
	nlmsg_end(w->skb, nlh);
	return 0;
full:
	nlmsg_cancel(w->skb, nlh);
	return -EMSGSIZE;
}

static bool diag_visit(struct sock *sk, void *data)
{
	struct walk *w = data;

	return !diag_wanted(sk, w->req) || !diag_fill(w, sk);
}

static int esp_diag_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct walk w = {
		.skb	= skb,
		.cb	= cb,
		.req	= nlmsg_data(cb->nlh),
		.admin	= netlink_net_capable(cb->skb, CAP_NET_ADMIN),
	};

	BUILD_BUG_ON(sizeof(struct esp_walk) > sizeof(cb->ctx));
	esp_for_each_sock(sock_net(skb->sk), (struct esp_walk *)cb->ctx, diag_visit, &w);
	return skb->len;
}

static int esp_diag_handler_dump(struct sk_buff *skb, struct nlmsghdr *nlh)
{
	if (nlmsg_len(nlh) < (int)sizeof(struct esp_diag_req))
		return -EINVAL;
	if (nlh->nlmsg_flags & NLM_F_DUMP) {
		struct netlink_dump_control c = {
			.dump	= esp_diag_dump,
		};

		return netlink_dump_start(sock_net(skb->sk)->diag_nlsk, skb,
					  nlh, &c);
	}
	return -EOPNOTSUPP;
}

struct quarry {
	const __u32	*cookie;
	int		err;
};

static bool diag_cookie_fits(struct sock *sk, void *data)
{
	struct quarry *q = data;

	q->err = sock_diag_check_cookie(sk, q->cookie);
	return !q->err;
}

static int esp_diag_handler_destroy(struct sk_buff *skb, struct nlmsghdr *nlh)
{
	const struct esp_diag_kill *req = nlmsg_data(nlh);
	struct quarry q = { .err = -ENOENT };
	struct sock *sk;

	if (nlmsg_len(nlh) < (int)sizeof(*req))
		return -EINVAL;
	/*
	 * This checks the process that opened the netlink socket, too. It comes before the
	 * search, so that a caller without the capability does not learn which sockets exist.
	 */
	if (!netlink_net_capable(skb, CAP_NET_ADMIN))
		return -EPERM;
	q.cookie = req->cookie;
	sk = esp_find_sock(sock_net(skb->sk), req->sdiag_type, &req->src, &req->dst,
			   diag_cookie_fits, &q);
	if (!sk)
		return q.err;
	q.err = sock_diag_destroy(sk, ECONNABORTED);
	sock_put(sk);
	return q.err;
}

static struct sock_diag_handler esp_diag_handler = {
	.owner		= THIS_MODULE,
	.dump		= esp_diag_handler_dump,
	.destroy	= esp_diag_handler_destroy,
};

static int __init esp_diag_init(void)
{
	esp_diag_handler.family = esp_family;
	return sock_diag_register(&esp_diag_handler);
}

static void __exit esp_diag_exit(void)
{
	sock_diag_unregister(&esp_diag_handler);
}

module_init(esp_diag_init);
module_exit(esp_diag_exit);

MODULE_DESCRIPTION("Ethernet Streaming Protocol: socket monitoring");
MODULE_LICENSE("GPL");
MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_NETLINK, NETLINK_SOCK_DIAG, PF_ESP);
