/* SPDX-License-Identifier: GPL-2.0-only */
/* From user space to the write queue. */
#ifndef _ESP_SENDMSG_H
#define _ESP_SENDMSG_H

#include "esp.h"

int sock_esp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
void esp_splice_eof(struct socket *sock);
#ifdef ESP_OLD_SENDPAGE
ssize_t esp_sendpage(struct socket *sock, struct page *page, int offset,
		     size_t size, int flags);
#endif

#endif /* _ESP_SENDMSG_H */
