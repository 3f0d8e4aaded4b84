// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/net/esp/stat: counters. /proc/net/esp/dev: devices and the present state of their
 * ACK queues.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/ip.h>
#include "esp.h"
#include "proc.h"
#include "dev.h"
#include "first_burst.h"
#include "link.h"
#include "mib.h"

static const struct {
	const char	*name;
	int		item;
} esp_mib_names[] = {
#define ESP_MIB_NAME(n)	{ #n, ESP_MIB_##n },
	ESP_MIBS(ESP_MIB_NAME)
#undef ESP_MIB_NAME
};

/*
 * Names in the previous release. They are printed, too, until the next release, after a line that
 * begins with "#".
 */
static const struct {
	const char	*name;
	int		item;
} esp_mib_old_names[] = {
	{ "InRuns",	 ESP_MIB_InGsoFrames },
	{ "OutRuns",	 ESP_MIB_OutGsoFrames },
	{ "InGSO",	 ESP_MIB_InBadGso },
	{ "AckFast",	 ESP_MIB_GrantFast },
	{ "AckParked",	 ESP_MIB_GrantQueued },
	{ "AckReleased", ESP_MIB_GrantReleased },
};

static unsigned long mib_fold(struct net *net, int item)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(esp_net(net)->mib, cpu)->mibs[item];
	return sum;
}

static int stat_show(struct seq_file *seq, void *v)
{
	struct net *net = seq->private;
	int i;

	for (i = 0; i < ARRAY_SIZE(esp_mib_names); i++)
		seq_printf(seq, "%s %lu\n", esp_mib_names[i].name,
			   mib_fold(net, esp_mib_names[i].item));
	seq_puts(seq, "# old names, until the next release\n");
	for (i = 0; i < ARRAY_SIZE(esp_mib_old_names); i++)
		seq_printf(seq, "%s %lu\n", esp_mib_old_names[i].name,
			   mib_fold(net, esp_mib_old_names[i].item));
	return 0;
}

/* Read the speed of a link, Mbit/s, and where it is from; 0: not known. */
static u32 link_mbit(const struct esp_link *link, const char **from)
{
	u32 mbit = READ_ONCE(link->set_mbit);

	*from = "set";
	if (mbit)
		return mbit;
	mbit = READ_ONCE(link->ethtool_mbit);
	*from = "ethtool";
	if (mbit)
		return mbit;
	mbit = esp_budget_measured(&link->budget);
	*from = mbit ? "measured" : "unknown";
	return mbit;
}

static int dev_show(struct seq_file *seq, void *v)
{
	struct net *net = seq->private;
	struct net_device *dev;

	seq_puts(seq, "# device enabled peers esp_recv_count parked open budget first_bursts mbit mbit_from\n");
	rcu_read_lock();
	for_each_netdev_rcu(net, dev) {
		struct esp_dev *ed = esp_dev_rcu(dev);
		struct esp_link *link;
		struct esp_ackq *q;
		const char *from;
		u32 mbit;

		if (!ed)
			continue;
		link = esp_link_get(ed);
		q = &link->ackq;
		mbit = link_mbit(link, &from);
		seq_printf(seq, "%s %d %u %d %u %d %u %u %u %s\n", dev->name,
			   READ_ONCE(ed->enabled), READ_ONCE(link->npeers),
			   atomic_read(&q->esp_recv_count), READ_ONCE(q->qlen),
			   atomic_read(&q->outstanding), READ_ONCE(link->budget.size),
			   esp_burst_now(&link->budget), mbit, from);
		esp_link_put(link);
	}
	rcu_read_unlock();
	return 0;
}

int esp_proc_net_init(struct net *net)
{
	struct esp_net *en = esp_net(net);
	struct proc_dir_entry *dir;

	en->mib = alloc_percpu(struct esp_mib);
	if (!en->mib)
		return -ENOMEM;
	dir = proc_net_mkdir(net, "esp", net->proc_net);
	if (!dir)
		goto fail;
	if (!proc_create_net_single("stat", 0444, dir, stat_show, NULL) ||
	    !proc_create_net_single("dev", 0444, dir, dev_show, NULL)) {
		remove_proc_subtree("esp", net->proc_net);
		goto fail;
	}
	return 0;
fail:
	free_percpu(en->mib);
	return -ENOMEM;
}

void esp_proc_net_exit(struct net *net)
{
	remove_proc_subtree("esp", net->proc_net);
	free_percpu(esp_net(net)->mib);
}
