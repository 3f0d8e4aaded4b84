// SPDX-License-Identifier: GPL-2.0-only
/*
 * The notifier of network devices, which come, change and leave. RTNL is held at
 * each event that the module handles.
 *
 * The module holds no reference to a struct net_device. The notifier clears esp_dev.dev at
 * NETDEV_UNREGISTER, and the core then waits for RCU readers. So a device can leave at any
 * point.
 */
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include "esp.h"
#include "dev.h"
#include "dev_event.h"
#include "dev_queue.h"
#include "grant.h"
#include "link.h"
#include "notifier.h"
#include "sysctl.h"
#include "write_queue.h"

static bool esp_default_enable;

/* Was @dev made by the rtnetlink driver @kind? */
static bool dev_is_kind(const struct net_device *dev, const char *kind)
{
	return dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, kind);
}

/* Do all frames of @dev stay on this machine, whatever the device is connected to? */
static bool dev_stays_here(const struct net_device *dev)
{
	return (dev->flags & IFF_LOOPBACK) || dev_is_kind(dev, "dummy");
}

/*
 * Do frames of ESP come in by @dev if a peer sends them? A VRF and an ipvlan get IP packets only,
 * and an ifb what tc redirects to it. The core has a flag for a VRF, and none for the others. A
 * netkit in mode L3 has no address, so no peer can name it.
 */
static bool dev_receives(const struct net_device *dev)
{
	return !netif_is_l3_master(dev) && !dev_is_kind(dev, "ipvlan") &&
	       !dev_is_kind(dev, "ipvtap") && !dev_is_kind(dev, "ifb") &&
	       ((dev->flags & IFF_LOOPBACK) || !is_zero_ether_addr(dev->dev_addr));
}

/*
 * Asks for speeds. In the notifier itself, the core may hold the instance lock of the device or of
 * a lower device, which asking takes.
 */
static void speed_work_fn(struct work_struct *work)
{
	rtnl_lock();
	esp_dev_read_speeds();
	rtnl_unlock();
}

static DECLARE_WORK(speed_work, speed_work_fn);

static struct esp_dev *dev_find(const struct net_device *dev)
{
	struct esp_dev *ed;

	rcu_read_lock();
	ed = esp_dev_rcu(dev);
	rcu_read_unlock();
	return ed;
}

static int speed_changed(struct net_device *dev, struct netdev_nested_priv *priv)
{
	struct esp_dev *ed = dev_find(dev);

	if (ed) {
		ed->speed_stale = true;
		schedule_work(&speed_work);
	}
	return 0;
}

/* Have the speed of @dev asked for, and that of the bonds and bridges above it. */
static void dev_ask_speed(struct net_device *dev)
{
	struct netdev_nested_priv priv = {};

	speed_changed(dev, &priv);
	rcu_read_lock();
	netdev_walk_all_upper_dev_rcu(dev, speed_changed, &priv);
	rcu_read_unlock();
}

/*
 * Let a VLAN or macvlan share the link of its lower device, because their frames congest
 * there (rule 12).
 */
static void dev_find_link(struct esp_dev *ed, struct net_device *dev)
{
	struct list_head *iter = dev->adj_list.lower.next;
	struct net_device *lower;
	struct esp_link *old;
	struct esp_dev *led;

	if (!is_vlan_dev(dev) && !netif_is_macvlan(dev))
		return;
	lower = netdev_lower_get_next(dev, &iter);
	led = lower ? dev_find(lower) : NULL;
	if (!led)
		return;
	spin_lock_bh(&ed->lock);
	old = ed->link;
	/* pairs with esp_dev_mbit(), which takes no lock */
	smp_store_release(&ed->link, led->link);
	ed->own_link = false;
	refcount_inc(&ed->link->ref);
	spin_unlock_bh(&ed->lock);
	esp_link_put(old);
}

static int dev_register(struct net_device *dev)
{
	struct esp_dev *ed;

	if (!esp_dev_fits(dev) || !dev_receives(dev) || dev_find(dev))
		return 0;
	ed = kzalloc_obj(*ed, GFP_KERNEL);
	if (!ed)
		return -ENOMEM;
	ed->link = esp_link_alloc(dev_net(dev), &esp_ackq_ops, esp_pace_timeout);
	if (!ed->link) {
		kfree(ed);
		return -ENOMEM;
	}
	esp_devq_init(&ed->link->devq, esp_devq_turns);
	ed->own_link = true;
	refcount_set(&ed->ref, 1);
	spin_lock_init(&ed->lock);
	INIT_LIST_HEAD(&ed->socks);
	ed->ifindex = dev->ifindex;
	ed->ns = esp_net(dev_net(dev));
	ed->up = !!(dev->flags & IFF_UP);
	esp_dev_update_headroom(ed, dev);
	esp_dev_features(ed, dev);
	ed->local = dev_stays_here(dev);
	/* no frame leaves the machine by these: no administrator has to enable them */
	ed->enabled = esp_default_enable || ed->local;
	ed->tx_checksum = ed->local;
	rcu_assign_pointer(ed->dev, dev);
	dev_find_link(ed, dev);
	esp_dev_apply_rate(ed);
	esp_dev_add(ed, dev);
	dev_ask_speed(dev);
	if (esp_sysctl_dev_init(dev_net(dev), ed, dev->name))
		netdev_warn(dev, "no sysctl net.esp.dev.%s: out of memory\n",
			    dev->name);
	return 0;
}

static void dev_unregister(struct net_device *dev)
{
	struct esp_dev *ed = dev_find(dev);

	if (!ed)
		return;
	hash_del_rcu(&ed->node);
	rcu_assign_pointer(ed->dev, NULL);
	WRITE_ONCE(ed->up, false);
	esp_sysctl_dev_exit(ed);
	/* readers find the device under RCU; esp_dev_link() checks ed->dev again */
	synchronize_net();
	esp_dev_tell(ed, ESP_EV_LOST);
	esp_dev_put(ed);
}

static int dev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct esp_dev *ed;

	ASSERT_RTNL();
	switch (event) {
	case NETDEV_REGISTER:
		return notifier_from_errno(dev_register(dev));
	case NETDEV_POST_TYPE_CHANGE:
		/* nobody looks at an error any more */
		if (dev_register(dev))
			netdev_warn(dev, "ESP can't use the device: out of memory\n");
		return NOTIFY_DONE;
	/* The device's addresses and headers change: as if it left, and another one came. */
	case NETDEV_PRE_TYPE_CHANGE:
	case NETDEV_UNREGISTER:
		dev_unregister(dev);
		return NOTIFY_DONE;
	}
	if (event == NETDEV_CHANGEUPPER) {
		struct netdev_notifier_changeupper_info *info = ptr;

		ed = info->linking ? dev_find(info->upper_dev) : NULL;
		if (ed)
			dev_find_link(ed, info->upper_dev);
		dev_ask_speed(info->upper_dev);
		return NOTIFY_DONE;
	}
	/*
	 * A bond that fails to take a tunnel becomes Ethernet again without an event of its own.
	 * A device may get its first address after it was registered.
	 */
	if ((event == NETDEV_UP || event == NETDEV_CHANGEADDR) &&
	    dev->reg_state == NETREG_REGISTERED && dev_register(dev))
		netdev_warn(dev, "ESP can't use the device: out of memory\n");
	if (event == NETDEV_UP || event == NETDEV_CHANGE)
		dev_ask_speed(dev);
	ed = dev_find(dev);
	if (!ed)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_CHANGE:
		esp_dev_apply_rate(ed);
		break;
	case NETDEV_UP:
		WRITE_ONCE(ed->up, true);
		esp_dev_apply_rate(ed);
		esp_dev_enabled(ed);
		break;
	case NETDEV_DOWN:
		WRITE_ONCE(ed->up, false);
		break;
	case NETDEV_FEAT_CHANGE:
		esp_dev_features(ed, dev);
		break;
	case NETDEV_CHANGEMTU:
		esp_dev_apply_rate(ed);
		esp_dev_tell(ed, ESP_EV_MTU);
		break;
	case NETDEV_CHANGEADDR:
		esp_dev_tell(ed, ESP_EV_MAC);
		break;
	case NETDEV_CHANGENAME:
		esp_sysctl_dev_exit(ed);
		esp_sysctl_dev_init(dev_net(dev), ed, dev->name);
		break;
	}
	return NOTIFY_DONE;
}

/* Notifiers of other modules may refuse a change of type. This one comes after them. */
static struct notifier_block dev_notifier = {
	.notifier_call	= dev_event,
	.priority	= INT_MIN,
};

/* No device has an entry any more: wait for what they have left behind. */
static void dev_wait(void)
{
	cancel_work_sync(&speed_work);
	rcu_barrier();
}

int esp_dev_init(bool default_enable)
{
	int err;

	esp_default_enable = default_enable;
	err = register_netdevice_notifier(&dev_notifier);
	if (err)		/* some devices may have had an entry before */
		dev_wait();
	return err;
}

void esp_dev_exit(void)
{
	/* calls dev_event() with NETDEV_UNREGISTER for every device */
	unregister_netdevice_notifier(&dev_notifier);
	dev_wait();
}
