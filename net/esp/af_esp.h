/* SPDX-License-Identifier: GPL-2.0-only */
/* The address family. */
#ifndef _ESP_AF_ESP_H
#define _ESP_AF_ESP_H

#include "esp.h"

int esp_family_init(void);

#endif /* _ESP_AF_ESP_H */
