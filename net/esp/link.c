// SPDX-License-Identifier: GPL-2.0-only
/*
 * A link: the receiving side of a device, where frames congest (rule 12). Devices and
 * connected sockets hold it.
 */
#include "esp.h"
#include "link.h"

/**
 * esp_policy_get() - what a namespace's ACK queues are to follow
 * @net:	namespace
 * @p:		result
 *
 * The seed's policy needs a window: 64 packets where none is set.
 */
void esp_policy_get(struct net *net, struct esp_policy *p)
{
	const struct esp_conf *conf = &esp_net(net)->conf;

	p->adaptive = READ_ONCE(conf->adaptive);
	p->burst_length = READ_ONCE(conf->esp_burst_length);
	if (!p->adaptive && !p->burst_length)
		p->burst_length = 64;
	p->q_min = READ_ONCE(conf->q_min);
	p->q_max = max_t(u32, READ_ONCE(conf->q_max), p->q_min);
	p->first_pool = READ_ONCE(conf->first_burst_pool);
}

static void port_free(struct rcu_head *rcu)
{
	struct esp_port *port = container_of(rcu, struct esp_port, rcu);

	hrtimer_cancel(&port->pace);
	kfree(port);
}

/**
 * esp_port_put() - give a reference back
 * @port:	port
 */
void esp_port_put(struct esp_port *port)
{
	if (refcount_dec_and_test(&port->ref))
		call_rcu(&port->rcu, port_free);
}

/**
 * esp_port_alloc() - a port for a new device
 * @net:	its namespace
 * @ops:	how the ACK queue reaches the sockets
 * @pace:	function of the timer with which the ACK queue waits for the link
 *
 * Return: the port, with a reference; NULL: no memory
 */
struct esp_port *esp_port_alloc(struct net *net, const struct esp_ackq_ops *ops,
				enum hrtimer_restart (*pace)(struct hrtimer *timer))
{
	struct esp_port *port = kzalloc_obj(*port, GFP_KERNEL);
	struct esp_policy policy;

	if (!port)
		return NULL;
	refcount_set(&port->ref, 1);
	spin_lock_init(&port->lock);
	esp_policy_get(net, &policy);
	esp_ackq_init(&port->ackq, &policy, ops);
	hrtimer_setup(&port->pace, pace, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	return port;
}
