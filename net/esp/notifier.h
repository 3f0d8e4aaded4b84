/* SPDX-License-Identifier: GPL-2.0-only */
/* The notifier of network devices. */
#ifndef _ESP_NOTIFIER_H
#define _ESP_NOTIFIER_H

int esp_dev_init(bool default_enable);
void esp_dev_exit(void);

#endif /* _ESP_NOTIFIER_H */
