// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sysctls net.esp.* of a network namespace. Each has a range. A value out of range is
 * refused, and the log names the range.
 */
#include <linux/mm.h>
#include <linux/sysctl.h>
#include "esp.h"
#include "dev.h"
#include "dev_event.h"
#include "memory.h"
#include "negotiate.h"
#include "sock.h"
#include "sysctl.h"

static const struct esp_conf esp_defaults = {
	.esp_burst_length		= 0,
	.esp_initial_ack_burst_length	= -1,
	.esp_packets_to_ack		= 16,
	.adaptive			= 1,
	.shortest_first			= 1,
	.q_min				= 8,
	.q_max				= 4096,
	.first_burst_pool		= 64,
	.rto_min_us			= 1000,
	.rrq_min_us			= 300,
	.rto_max_ms			= 5000,
	.rrq_max_ms			= 500,
	.ack_delay_us			= 500,
	.syn_retries			= 20,
	.retries			= 200,
	.expiries			= 5,
	.probe_max_ms			= 500,
	.keepalive_time			= 7200,
	.keepalive_intvl		= 75,
	.keepalive_probes		= 9,
	.fin_timeout_ms			= 60000,
	.time_wait_ms			= 50,
	.rcvbuf				= 4 << 20,
	.sndbuf				= 4 << 20,
};

static int limit_0;
static int limit_1 = 1;
static int limit_minus_1 = -1;
static int limit_advice = ESP_ADVICE_MAX;
static int limit_64k = ESP_SEQ_WINDOW;
static int limit_250 = 250;
static int limit_second_us = 1000 * 1000;
static int limit_minute_ms = 60 * 1000;
static int limit_hour_ms = 3600 * 1000;
static int limit_keep = 32767;
static int limit_127 = 127;
static int limit_mbit = ESP_MBIT_MAX;
static int limit_buf_min = SOCK_MIN_RCVBUF;
static int limit_buf_max = 1 << 30;

/* Call proc_dointvec_minmax(), and log the range if it refuses the value. */
static int esp_range(ESP_CTL_CONST struct ctl_table *table, int write,
		     void *buffer, size_t *lenp, loff_t *ppos)
{
	int err = proc_dointvec_minmax(table, write, buffer, lenp, ppos);

	if (write && err == -EINVAL)
		pr_info_ratelimited("esp: net.esp.%s: range is %d ... %d\n",
				    table->procname, *(int *)table->extra1,
				    *(int *)table->extra2);
	return err;
}

/*
 * Set the size of a buffer. The administrator of a container may set no more than any user may
 * with SO_RCVBUF or SO_SNDBUF.
 */
static int esp_buffer_range(ESP_CTL_CONST struct ctl_table *table, int write,
			    void *buffer, size_t *lenp, loff_t *ppos)
{
	bool rcv = !strcmp(table->procname, "rcvbuf");
	int most = rcv ? READ_ONCE(sysctl_rmem_max) : READ_ONCE(sysctl_wmem_max);
	struct ctl_table own = *table;

	if (write && !capable(CAP_NET_ADMIN))
		own.extra2 = &most;
	return esp_range(&own, write, buffer, lenp, ppos);
}

static struct net *sysctl_table_net(const struct ctl_table *table);

/* Set a value of the policy, and apply it to all ACK queues of the namespace. */
static int esp_policy_range(ESP_CTL_CONST struct ctl_table *table, int write,
			    void *buffer, size_t *lenp, loff_t *ppos)
{
	int err = esp_range(table, write, buffer, lenp, ppos);

	if (write && !err)
		esp_dev_policy(sysctl_table_net(table));
	return err;
}

#define ESP_CTL(field, lo, hi, handler)	\
	ESP_CTL_NAMED(#field, field, lo, hi, handler)

#define ESP_CTL_NAMED(name, field, lo, hi, handler)	\
	{						\
		.procname	= name,			\
		.data		= &((struct esp_conf *)0)->field, \
		.maxlen		= sizeof(int),		\
		.mode		= 0644,			\
		.proc_handler	= handler,		\
		.extra1		= &(lo),		\
		.extra2		= &(hi),		\
	}

static const struct ctl_table esp_table[] = {
	ESP_CTL_NAMED("burst_length", esp_burst_length, limit_0, limit_64k, esp_policy_range),
	ESP_CTL_NAMED("initial_ack_burst_length", esp_initial_ack_burst_length,
		      limit_minus_1, limit_advice, esp_range),
	ESP_CTL_NAMED("packets_to_ack", esp_packets_to_ack, limit_1, limit_advice, esp_range),
	ESP_CTL(adaptive, limit_0, limit_1, esp_policy_range),
	ESP_CTL(shortest_first, limit_0, limit_1, esp_policy_range),
	ESP_CTL(q_min, limit_1, limit_64k, esp_policy_range),
	ESP_CTL(q_max, limit_1, limit_64k, esp_policy_range),
	ESP_CTL(first_burst_pool, limit_0, limit_64k, esp_policy_range),
	ESP_CTL(rto_min_us, limit_1, limit_second_us, esp_range),
	ESP_CTL(rrq_min_us, limit_1, limit_second_us, esp_range),
	ESP_CTL(rto_max_ms, limit_1, limit_minute_ms, esp_range),
	ESP_CTL(rrq_max_ms, limit_1, limit_minute_ms, esp_range),
	ESP_CTL(ack_delay_us, limit_0, limit_second_us, esp_range),
	ESP_CTL(syn_retries, limit_0, limit_250, esp_range),
	ESP_CTL(retries, limit_1, limit_250, esp_range),
	ESP_CTL(expiries, limit_1, limit_250, esp_range),
	ESP_CTL(probe_max_ms, limit_1, limit_minute_ms, esp_range),
	ESP_CTL(keepalive_time, limit_1, limit_keep, esp_range),
	ESP_CTL(keepalive_intvl, limit_1, limit_keep, esp_range),
	ESP_CTL(keepalive_probes, limit_1, limit_127, esp_range),
	ESP_CTL(fin_timeout_ms, limit_1, limit_hour_ms, esp_range),
	ESP_CTL(time_wait_ms, limit_1, limit_minute_ms, esp_range),
	ESP_CTL(rcvbuf, limit_buf_min, limit_buf_max, esp_buffer_range),
	ESP_CTL(sndbuf, limit_buf_min, limit_buf_max, esp_buffer_range),
};

/* Find the namespace to whose configuration @table's data belongs. */
static struct net *sysctl_table_net(const struct ctl_table *table)
{
	struct esp_conf *conf;
	size_t i = 0;

	while (strcmp(esp_table[i].procname, table->procname))
		i++;
	conf = (void *)((char *)table->data - (unsigned long)esp_table[i].data);
	return container_of(conf, struct esp_net, conf)->net;
}

/* Those of the host, in the initial namespace. */
static const struct ctl_table esp_host_table[] = {
	{
		.procname	= "mem",
		.data		= esp_mem,
		.maxlen		= sizeof(esp_mem),
		.mode		= 0644,
		.proc_handler	= proc_doulongvec_minmax,
	}, {
		.procname	= "max_orphans",
		.data		= &esp_max_orphans,
		.maxlen		= sizeof(esp_max_orphans),
		.mode		= 0644,
		.proc_handler	= esp_range,
		.extra1		= &limit_0,
		.extra2		= &limit_buf_max,
	},
};

static void sysctl_init_mem(void)
{
	unsigned long limit = max(nr_free_buffer_pages() / 16, 128UL);

	esp_mem[0] = limit / 4 * 3;
	esp_mem[1] = limit;
	esp_mem[2] = esp_mem[0] * 2;
}

int esp_sysctl_net_init(struct net *net)
{
	struct esp_net *en = esp_net(net);
	size_t n = ARRAY_SIZE(esp_table);
	struct ctl_table *table;
	size_t i;

	en->conf = esp_defaults;
	/* one entry more for the end mark that older kernels need */
	table = kcalloc(n + ARRAY_SIZE(esp_host_table) + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	memcpy(table, esp_table, sizeof(esp_table));
	for (i = 0; i < n; i++)
		table[i].data = (char *)&en->conf + (unsigned long)table[i].data;
	if (net_eq(net, &init_net)) {
		sysctl_init_mem();
		memcpy(table + n, esp_host_table, sizeof(esp_host_table));
		n += ARRAY_SIZE(esp_host_table);
	}
	en->table = table;
	en->ctl = register_net_sysctl_sz(net, "net/esp", table, n);
	if (!en->ctl) {
		kfree(table);
		return -ENOMEM;
	}
	return 0;
}

void esp_sysctl_net_exit(struct net *net)
{
	struct esp_net *en = esp_net(net);

	unregister_net_sysctl_table(en->ctl);
	kfree(en->table);
}

static int esp_enable(ESP_CTL_CONST struct ctl_table *table, int write,
		      void *buffer, size_t *lenp, loff_t *ppos)
{
	int err = esp_range(table, write, buffer, lenp, ppos);

	if (write && !err)
		esp_dev_enabled(container_of((int *)table->data, struct esp_dev,
					     enabled));
	return err;
}

/* Set the speed of a device's link. A device that has a lower device's link keeps 0. */
static int esp_rate(ESP_CTL_CONST struct ctl_table *table, int write,
		    void *buffer, size_t *lenp, loff_t *ppos)
{
	struct esp_dev *ed = container_of((int *)table->data, struct esp_dev, rate_mbit);
	struct ctl_table own = *table;
	int mbit = READ_ONCE(ed->rate_mbit);
	int err;

	own.data = &mbit;
	err = esp_range(&own, write, buffer, lenp, ppos);
	if (!write || err)
		return err;
	err = esp_dev_set_mbit(ed, mbit);
	if (!err)
		WRITE_ONCE(ed->rate_mbit, mbit);
	return err;
}

/**
 * esp_sysctl_dev_init() - register the sysctls net.esp.dev.NAME
 * @net:	namespace of the device
 * @ed:		device
 * @name:	name of the device
 *
 * Return: 0 or ENOMEM
 */
int esp_sysctl_dev_init(struct net *net, struct esp_dev *ed, const char *name)
{
	struct ctl_table *t;

	/* one entry more for the end mark that older kernels need */
	t = kcalloc(4, sizeof(*t), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	snprintf(ed->name, sizeof(ed->name), "net/esp/dev/%s", name);
	t[0].procname = "enable";
	t[0].data = &ed->enabled;
	t[0].maxlen = sizeof(int);
	t[0].mode = 0644;
	t[0].proc_handler = esp_enable;
	t[0].extra1 = &limit_0;
	t[0].extra2 = &limit_1;
	t[1] = t[0];
	t[1].procname = "tx_checksum";
	t[1].data = &ed->tx_checksum;
	t[1].proc_handler = esp_range;
	t[2] = t[0];
	t[2].procname = "rate_mbit";
	t[2].data = &ed->rate_mbit;
	t[2].proc_handler = esp_rate;
	t[2].extra2 = &limit_mbit;
	ed->table = t;
	ed->ctl = register_net_sysctl_sz(net, ed->name, t, 3);
	if (!ed->ctl) {
		kfree(t);
		ed->table = NULL;
		return -ENOMEM;
	}
	return 0;
}

void esp_sysctl_dev_exit(struct esp_dev *ed)
{
	if (!ed->ctl)
		return;
	unregister_net_sysctl_table(ed->ctl);
	kfree(ed->table);
	ed->ctl = NULL;
	ed->table = NULL;
}
