/* SPDX-License-Identifier: GPL-2.0-only */
/* Socket options, struct esp_info and ioctl(). */
#ifndef _ESP_SOCKOPT_H
#define _ESP_SOCKOPT_H

#include "esp.h"

int esp_setsockopt(struct socket *sock, int level, int name, sockptr_t val,
		   unsigned int len);
void esp_get_info(struct sock *sk, struct esp_info *info);
int esp_getsockopt(struct socket *sock, int level, int name,
		   char __user *val, int __user *optlen);
int esp_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);

#endif /* _ESP_SOCKOPT_H */
