/* SPDX-License-Identifier: GPL-2.0-only */
/* What happens to a device, and its sockets' consequences. */
#ifndef _ESP_DEV_EVENT_H
#define _ESP_DEV_EVENT_H

#include "esp.h"
#include "dev.h"

/* What can happen to a socket's device. */
#define ESP_EV_LOST	0x01	/* it has left */
#define ESP_EV_MAC	0x02	/* it has another address */
#define ESP_EV_MTU	0x04
#define ESP_EV_UP	0x08	/* it can be used again */

struct esp_dev;

void esp_dev_events_run(struct sock *sk);
void esp_dev_tell(struct esp_dev *ed, u8 event);
void esp_dev_enabled(struct esp_dev *ed);
void esp_dev_policy(struct net *net);

#endif /* _ESP_DEV_EVENT_H */
