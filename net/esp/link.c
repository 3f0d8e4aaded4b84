// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links: the receiving sides of devices, where frames congest (rule 12). Devices and
 * connected sockets hold references to a link.
 */
#include "esp.h"
#include "link.h"

/**
 * esp_policy_get() - read the policy for a namespace's ACK queues
 * @net:	namespace
 * @p:		result
 *
 * The seed's policy needs a window, which is 64 packets if burst_length is 0.
 */
void esp_policy_get(struct net *net, struct esp_policy *p)
{
	const struct esp_conf *conf = &esp_net(net)->conf;

	p->adaptive = READ_ONCE(conf->adaptive);
	p->shortest_first = READ_ONCE(conf->shortest_first);
	p->burst_length = READ_ONCE(conf->esp_burst_length);
	if (!p->adaptive && !p->burst_length)
		p->burst_length = 64;
	p->q_min = READ_ONCE(conf->q_min);
	p->q_max = max_t(u32, READ_ONCE(conf->q_max), p->q_min);
	p->first_pool = READ_ONCE(conf->first_burst_pool);
}

static void link_free(struct rcu_head *rcu)
{
	struct esp_link *link = container_of(rcu, struct esp_link, rcu);

	hrtimer_cancel(&link->pace);
	hrtimer_cancel(&link->devq.timer);
	kfree(link);
}

/**
 * esp_link_put() - drop a reference to a link
 * @link:	link
 */
void esp_link_put(struct esp_link *link)
{
	if (refcount_dec_and_test(&link->ref))
		call_rcu(&link->rcu, link_free);
}

/**
 * esp_link_bucket() - Read the bucket of a socket's sending host, for who watches
 * @sk:		socket; its lock is held, or the lock of its bucket in the table of connections,
 *		or the RCU read side as for a grant that leaves
 * @open:	result: packets of the host that are outstanding
 *
 * No other lock is needed: the values may be of different moments.
 *
 * Return: packets that the host may have outstanding; 0: no peer yet, or the seed's policy
 */
u32 esp_link_bucket(const struct sock *sk, int *open)
{
	const struct esp_host *h = READ_ONCE(esp_sk(sk)->grant.host);
	const struct esp_link *link = esp_sk(sk)->link;

	*open = 0;
	if (!h || !READ_ONCE(link->ackq.policy.adaptive))
		return 0;
	*open = atomic_read(&h->outstanding);
	/* its writers have the ACK queue's lock */
	return data_race(esp_host_cap(&link->budget, h, atomic_read(&link->ackq.esp_recv_count)));
}

/**
 * esp_link_rate() - set rate and frame length of a link
 * @link:	link
 * @mbit:	rate, Mbit/s; 0: unknown, and measured
 * @mtu:	MTU, bytes
 */
void esp_link_rate(struct esp_link *link, u32 mbit, u32 mtu)
{
	spin_lock_bh(&link->ackq.lock);
	esp_budget_rate(&link->budget, mbit, mtu);
	spin_unlock_bh(&link->ackq.lock);
	esp_ack_pump(&link->ackq);
}

/**
 * esp_link_alloc() - allocate a link for a new device
 * @net:	namespace of the device
 * @ops:	callbacks through which the ACK queue reaches the sockets
 * @pace:	function of the timer that wakes an ACK queue that waits for the link
 *
 * Return: the link, with a reference; NULL: out of memory
 */
struct esp_link *esp_link_alloc(struct net *net, const struct esp_ackq_ops *ops,
				enum hrtimer_restart (*pace)(struct hrtimer *timer))
{
	struct esp_link *link = kzalloc_obj(*link, GFP_KERNEL);
	struct esp_policy policy;

	if (!link)
		return NULL;
	refcount_set(&link->ref, 1);
	spin_lock_init(&link->lock);
	link->peer_seed = get_random_u32();
	esp_policy_get(net, &policy);
	esp_ackq_init(&link->ackq, &policy, &link->budget, ops);
	esp_budget_init(&link->budget, 0, ETH_DATA_LEN);
	esp_budget_limits(&link->budget, policy.q_min, policy.q_max, policy.first_pool);
	hrtimer_setup(&link->pace, pace, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	return link;
}
