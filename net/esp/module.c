// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: its parameters, its state of each namespace, and the registrations that
 * precede the first socket.
 */
#include <linux/init.h>
#include <linux/module.h>
#include "esp.h"
#include "af_esp.h"
#include "close.h"
#include "cookie.h"
#include "delayed_ack.h"
#include "hash.h"
#include "input.h"
#include "memory.h"
#include "notifier.h"
#include "offload.h"
#include "proc.h"
#include "sock.h"
#include "sysctl.h"
#include "timeout.h"

int esp_family = AF_ESP;
EXPORT_SYMBOL_GPL(esp_family);
module_param_named(family, esp_family, int, 0444);
MODULE_PARM_DESC(family, "socket family, 1 ... 45 (default 19; autoload works for the default only)");

static int ethertype = ESP_ETHERTYPE;
module_param(ethertype, int, 0444);
MODULE_PARM_DESC(ethertype, "EtherType, 0x0600 ... 0xffff (default 0x88b5); numbers assigned to others are refused");

static bool default_enable;
module_param(default_enable, bool, 0444);
MODULE_PARM_DESC(default_enable, "carry ESP on every Ethernet device from the start (default: on dummy and loopback only)");

__be16 esp_ethertype;
unsigned int esp_net_id;

static struct packet_type esp_packet_type __read_mostly = {
	.func	= esp_rcv,
};

static int __net_init esp_net_init(struct net *net)
{
	int err;

	esp_net(net)->net = net;
	get_random_bytes(&esp_net(net)->secret, sizeof(siphash_key_t));
	err = esp_proc_net_init(net);
	if (err)
		return err;
	err = esp_lines_init(esp_net(net), esp_line_timeout);
	if (err)
		goto out_proc;
	err = esp_sysctl_net_init(net);
	if (err)
		goto out_lines;
	return 0;

out_lines:
	esp_lines_exit(esp_net(net));
out_proc:
	esp_proc_net_exit(net);
	return err;
}

static void __net_exit esp_net_exit(struct net *net)
{
	esp_sysctl_net_exit(net);
	esp_lines_exit(esp_net(net));
	esp_proc_net_exit(net);
}

static struct pernet_operations esp_net_ops = {
	.init	= esp_net_init,
	.exit	= esp_net_exit,
	.id	= &esp_net_id,
	.size	= sizeof(struct esp_net),
};

/* EtherTypes assigned to other protocols, whose frames the module would take. */
static const u16 esp_assigned[] = {
	0x0800, 0x0806, 0x0842, 0x22f0, 0x22f3, 0x6003, 0x8035, 0x809b, 0x80f3,
	0x8100, 0x8137, 0x86dd, 0x8808, 0x8809, 0x8847, 0x8848, 0x8863, 0x8864,
	0x886d, 0x888e, 0x8892, 0x889a, 0x88a2, 0x88a4, 0x88a8, 0x88ab, 0x88ca,
	0x88cc, 0x88cd, 0x88e1, 0x88e3, 0x88e5, 0x88e7, 0x88f7, 0x88f8, 0x88fb,
	0x8902, 0x8906, 0x8914, 0x8915, 0x891d, 0x893a, 0x892f, 0x9000, 0x9100,
};

static int __init check_params(void)
{
	int i;

	if (esp_family < 1 || esp_family >= NPROTO) {
		pr_err("esp: family=%d is out of range 1 ... %d\n", esp_family,
		       NPROTO - 1);
		return -EINVAL;
	}
	if (ethertype < ETH_P_802_3_MIN || ethertype > 0xffff) {
		pr_err("esp: ethertype=%#x is out of range 0x0600 ... 0xffff\n",
		       ethertype);
		return -EINVAL;
	}
	for (i = 0; i < ARRAY_SIZE(esp_assigned); i++) {
		if (ethertype == esp_assigned[i]) {
			pr_err("esp: ethertype=%#x is assigned to another protocol\n",
			       ethertype);
			return -EINVAL;
		}
	}
	esp_ethertype = htons(ethertype);
	return 0;
}

static int __init esp_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct sockaddr_esp) != 16);
	BUILD_BUG_ON(sizeof(struct esp_wire) != ESP_HLEN);
	BUILD_BUG_ON(sizeof(struct esp_rx_cb) > sizeof_field(struct sk_buff, cb));
	BUILD_BUG_ON(sizeof(struct esp_tx_cb) > sizeof_field(struct sk_buff, cb));

	err = check_params();
	if (err)
		return err;
	err = percpu_counter_init(&esp_sockets_allocated, 0, GFP_KERNEL);
	if (err)
		return err;
	err = esp_hash_init();
	if (err)
		goto out_counter;
	err = esp_cookie_init();
	if (err)
		goto out_hash;
	err = proto_register(&esp_prot, 1);
	if (err)
		goto out_cookie;
	err = proto_register(&esp_dgram_prot, 1);
	if (err)
		goto out_proto;
	err = register_pernet_subsys(&esp_net_ops);
	if (err)
		goto out_dgram;
	err = esp_dev_init(default_enable);
	if (err)
		goto out_net;

	err = esp_family_init();
	if (err) {
		pr_err("esp: family %d is taken; choose another with family=\n",
		       esp_family);
		goto out_dev;
	}
	esp_offload_init();
	esp_packet_type.type = esp_ethertype;
	dev_add_pack(&esp_packet_type);
	return 0;

out_dev:
	esp_dev_exit();
out_net:
	unregister_pernet_subsys(&esp_net_ops);
out_dgram:
	proto_unregister(&esp_dgram_prot);
out_proto:
	proto_unregister(&esp_prot);
out_cookie:
	esp_cookie_exit();
out_hash:
	esp_hash_exit();
out_counter:
	percpu_counter_destroy(&esp_sockets_allocated);
	return err;
}

static void __exit esp_exit(void)
{
	sock_unregister(esp_family);
	esp_end_orphans();
	dev_remove_pack(&esp_packet_type);
	esp_offload_exit();
	esp_dev_exit();
	unregister_pernet_subsys(&esp_net_ops);
	rcu_barrier();	/* for callbacks that free sockets */
	rcu_barrier();	/* for callbacks that free the links of these sockets */
	proto_unregister(&esp_dgram_prot);
	proto_unregister(&esp_prot);
	esp_cookie_exit();
	esp_hash_exit();
	percpu_counter_destroy(&esp_sockets_allocated);
}

module_init(esp_init);
module_exit(esp_exit);

MODULE_DESCRIPTION("Ethernet Streaming Protocol");
MODULE_LICENSE("GPL");
MODULE_ALIAS_NETPROTO(PF_ESP);
