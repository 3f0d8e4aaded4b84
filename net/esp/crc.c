// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC32c over a frame, from one CPU to the other: option CRC, which the handshake
 * agrees on (ESP_CRC32C). It covers what the internet checksum does, with its own
 * value and that checksum as 0, so that what fills in the latter does no harm.
 */
#include <linux/crc32c.h>
#include "esp.h"
#include "crc.h"

/* Of a frame from the ESP header on, without padding; its header is linear. */
static u32 frame_crc(struct sk_buff *skb)
{
	unsigned int hlen = (skb->data[0] & 15) * 4, done = 0, n;
	u8 header[ESP_HLEN_MAX];
	struct skb_seq_state st;
	const u8 *data;
	u32 crc;

	memcpy(header, skb->data, hlen);
	memset(header + offsetof(struct esp_wire, csum), 0, 2);
	memset(header + ESP_CRC_AT, 0, sizeof(crc));
	crc = crc32c(~0, header, hlen);
	skb_prepare_seq_read(skb, hlen, skb->len, &st);
	while ((n = skb_seq_read(done, &data, &st))) {
		crc = crc32c(crc, data, n);
		done += n;
	}
	return ~crc;
}

/**
 * esp_crc_fill() - write the CRC into a frame
 * @skb:	frame from the ESP header on, which is complete but for CRC and checksum
 */
void esp_crc_fill(struct sk_buff *skb)
{
	__be32 crc = htonl(frame_crc(skb));

	memcpy(skb->data + ESP_CRC_AT, &crc, sizeof(crc));
}

/**
 * esp_crc_right() - is the CRC of a received frame what it must be?
 * @skb:	frame with option CRC, parsed and trimmed
 *
 * Return: true if so
 */
bool esp_crc_right(struct sk_buff *skb)
{
	__be32 crc;

	memcpy(&crc, skb->data + ESP_CRC_AT, sizeof(crc));
	return crc == htonl(frame_crc(skb));
}
