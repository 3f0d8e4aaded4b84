/* SPDX-License-Identifier: GPL-2.0-only */
/* /proc/net/esp: counters, devices and the present state of their ACK queues. */
#ifndef _ESP_PROC_H
#define _ESP_PROC_H

struct net;

int esp_proc_net_init(struct net *net);
void esp_proc_net_exit(struct net *net);

#endif /* _ESP_PROC_H */
