// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC32c over a frame, from one host's CPU to the other's: option CRC, which the handshake
 * agrees on (ESP_CRC32C). It covers the same bytes as the internet checksum. Its own value
 * and that checksum count as 0, so that a device may fill in the checksum later.
 */
#include <linux/crc32c.h>
#include "esp.h"
#include "crc.h"

/*
 * Compute the CRC of a frame that begins with the ESP header and has no padding. The header
 * is linear.
 */
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
 * @skb:	frame from the ESP header on, complete except for CRC and checksum
 */
void esp_crc_fill(struct sk_buff *skb)
{
	__be32 crc = htonl(frame_crc(skb));

	memcpy(skb->data + ESP_CRC_AT, &crc, sizeof(crc));
}

/**
 * esp_crc_right() - is the CRC of a received frame correct?
 * @skb:	frame with option CRC, parsed and trimmed
 *
 * Return: true if it is correct
 */
bool esp_crc_right(struct sk_buff *skb)
{
	__be32 crc;

	memcpy(&crc, skb->data + ESP_CRC_AT, sizeof(crc));
	return crc == htonl(frame_crc(skb));
}
