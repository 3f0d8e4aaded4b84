// SPDX-License-Identifier: BSD-3-Clause
/*
 * Frames: 32 bytes of header in network order, arguments, data. All versions have the same first
 * eight bytes, and the same checksum over all.
 *
 *	 0	version, type, length of the frame
 *	 4	CRC32C of the frame with this field 0
 *	 8	session
 *	12	slot, instance number
 *	16	size, number of arguments, handler
 *	20	bytes of data of the whole message
 *	24	its offset in the segment
 *	28	bytes of a piece, number of this piece
 */
#include <arpa/inet.h>
#include "internal.h"

/* Compute a frame's checksum; its own field counts as 0. */
static uint32_t frame_crc(uint8_t *frame, size_t len)
{
	uint32_t was, c;

	memcpy(&was, frame + 4, sizeof(was));
	memset(frame + 4, 0, sizeof(was));
	c = ~crc32c(~0u, frame, len);
	memcpy(frame + 4, &was, sizeof(was));
	return c;
}

static void put16(uint8_t *p, uint16_t v)
{
	v = htons(v);
	memcpy(p, &v, 2);
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, 4);
}

static uint16_t get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

/* Write length and checksum of a frame that is otherwise ready. */
void wire_seal(uint8_t *frame, size_t len)
{
	put16(frame + 2, len);
	put32(frame + 4, frame_crc(frame, len));
}

/* Write a frame. Returns its length. */
size_t wire_write(uint8_t *frame, const struct wire *w)
{
	uint8_t *p = frame + WIRE_HEADER;
	int i;

	frame[0] = WIRE_VERSION;
	frame[1] = w->type;
	put32(frame + 8, w->session);
	put16(frame + 12, w->slot);
	put16(frame + 14, w->instance);
	frame[16] = w->size;
	frame[17] = w->nargs;
	put16(frame + 18, w->handler);
	put32(frame + 20, w->total);
	put32(frame + 24, w->offset);
	put16(frame + 28, w->piece_size);
	put16(frame + 30, w->piece);
	for (i = 0; i < w->nargs; i++, p += 4)
		put32(p, w->args[i]);
	if (w->len)
		memcpy(p, w->data, w->len);
	wire_seal(frame, p + w->len - frame);
	return p + w->len - frame;
}

/* Are the fields such as a sender writes? Later code relies on what they say of the frame. */
static bool fields_right(const struct wire *w)
{
	uint32_t before;

	if (w->type != WIRE_REQUEST && w->type != WIRE_REPLY)
		return w->size == WIRE_EMPTY && !w->total && !w->len;
	if (w->size != WIRE_BULK && (w->offset || w->piece_size || w->piece || w->len != w->total))
		return false;
	switch (w->size) {
	case WIRE_EMPTY:
		return w->type == WIRE_REPLY && !w->nargs && !w->total && !w->handler;
	case WIRE_SHORT:
		return w->handler && !w->total;
	case WIRE_MEDIUM:
		return w->handler && w->total <= AM_MAX_MEDIUM;
	case WIRE_BULK:
		if (!w->handler || w->total > AM_MAX_LONG || w->piece_size < WIRE_MIN_PIECE ||
		    w->piece >= wire_pieces(w))
			return false;
		before = (uint32_t)w->piece * w->piece_size;
		return w->len == (w->total - before < w->piece_size ?
				  w->total - before : w->piece_size);
	}
	return false;
}

enum wire_verdict wire_read(uint8_t *frame, size_t len, struct wire *w)
{
	uint8_t *p = frame + WIRE_HEADER;
	int i;

	if (len < WIRE_HEADER || get16(frame + 2) != len)
		return WIRE_LENGTH;
	if (get32(frame + 4) != frame_crc(frame, len))
		return WIRE_CHECKSUM;
	w->type = frame[1];
	w->session = get32(frame + 8);
	if (frame[0] != WIRE_VERSION)
		return WIRE_OTHER_VERSION;
	if (!w->type || w->type >= WIRE_TYPES)
		return WIRE_TYPE;
	w->slot = get16(frame + 12);
	w->instance = get16(frame + 14);
	w->size = frame[16];
	w->nargs = frame[17];
	w->handler = get16(frame + 18);
	w->total = get32(frame + 20);
	w->offset = get32(frame + 24);
	w->piece_size = get16(frame + 28);
	w->piece = get16(frame + 30);
	if (w->nargs > AM_MAX_ARGS || len < WIRE_HEADER + 4u * w->nargs)
		return WIRE_FIELD;
	for (i = 0; i < AM_MAX_ARGS; i++)
		w->args[i] = i < w->nargs ? get32(p + 4 * i) : 0;
	w->data = p + 4 * w->nargs;
	w->len = frame + len - w->data;
	return fields_right(w) ? WIRE_GOOD : WIRE_FIELD;
}
