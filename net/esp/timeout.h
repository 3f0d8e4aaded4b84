/* SPDX-License-Identifier: GPL-2.0-only */
/* Handlers of deadlines that are due. */
#ifndef _ESP_TIMEOUT_H
#define _ESP_TIMEOUT_H

#include "esp.h"

void esp_timers_run(struct sock *sk);
enum hrtimer_restart esp_line_timeout(struct hrtimer *timer);
void esp_timer_init(struct sock *sk);

#endif /* _ESP_TIMEOUT_H */
