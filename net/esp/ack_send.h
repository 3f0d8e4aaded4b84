/* SPDX-License-Identifier: GPL-2.0-only */
/* When an ACK leaves. */
#ifndef _ESP_ACK_SEND_H
#define _ESP_ACK_SEND_H

#include "esp.h"

/* The ACK that packets consumed in order ask for. */
struct esp_consumed {
	bool	bytes;		/* the reader has something to read */
	bool	begins;		/* TXS: a transmission has begun */
	bool	ask;		/* TXS: a grant is due */
	bool	at_once;	/* TXF, most FINs: an ACK leaves now */
	bool	later;		/* ESP_GRANT_LATER: the ACK may wait for data */
	bool	end;		/* end of a message: TXF or EOR */
	u32	packets;	/* number of packets */
};

void esp_ack_now(struct sock *sk);
void esp_ack_soon(struct sock *sk, u32 us);
void esp_ack_consumed(struct sock *sk, struct esp_consumed *c);
void esp_ack_asked(struct sock *sk);
void esp_ack_answer(struct sock *sk);
void esp_ack_timeout(struct sock *sk);

#endif /* _ESP_ACK_SEND_H */
