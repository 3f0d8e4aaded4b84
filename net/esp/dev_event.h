/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of a device, and the reactions of its sockets. */
#ifndef _ESP_DEV_EVENT_H
#define _ESP_DEV_EVENT_H

#include "esp.h"
#include "dev.h"

/* Events of a socket's device: bits of esp_opt.dev_events. */
#define ESP_EV_LOST	0x01	/* the device has left */
#define ESP_EV_MAC	0x02	/* the device has another MAC address */
#define ESP_EV_MTU	0x04	/* the device has another MTU */
#define ESP_EV_UP	0x08	/* the device may be usable again */

struct esp_dev;

void esp_packet_max_changed(struct sock *sk);
void esp_dev_events_run(struct sock *sk);
void esp_dev_tell(struct esp_dev *ed, u8 event);
void esp_dev_enabled(struct esp_dev *ed);
void esp_dev_policy(struct net *net);

#endif /* _ESP_DEV_EVENT_H */
