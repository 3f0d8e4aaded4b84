/* SPDX-License-Identifier: GPL-2.0-only */
/* The sysctls net.esp.* */
#ifndef _ESP_SYSCTL_H
#define _ESP_SYSCTL_H

#include "esp.h"
#include "dev.h"

struct esp_dev;

int esp_sysctl_net_init(struct net *net);
void esp_sysctl_net_exit(struct net *net);
int esp_sysctl_dev_init(struct net *net, struct esp_dev *ed, const char *name);
void esp_sysctl_dev_exit(struct esp_dev *ed);

#endif /* _ESP_SYSCTL_H */
