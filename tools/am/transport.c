// SPDX-License-Identifier: BSD-3-Clause
/*
 * Between an endpoint and its transport: the choice of a transport, and faults for tests, the same
 * for all.
 */
#include <errno.h>
#include <stdlib.h>
#include "internal.h"

static bool chance(struct transport *t, unsigned int of_1000)
{
	return of_1000 && random_next(&t->random) % 1000 < of_1000;
}

/* Flip some bits, or cut off the end. */
static void corrupt(struct transport *t, uint8_t *data, size_t *len)
{
	unsigned int n = random_next(&t->random) % 4;
	uint32_t r;

	if (!n && *len)
		*len = random_next(&t->random) % *len;
	while (n--) {
		r = random_next(&t->random);
		data[r / 8 % *len] ^= 1 << r % 8;
	}
}

static bool hold(struct transport *t, const en_t *to, const uint8_t *data, size_t len)
{
	struct held *h = &t->held[t->nheld];

	if (t->nheld == HELD)
		return false;
	h->data = malloc(len ? len : 1);
	if (!h->data)
		return false;
	memcpy(h->data, data, len);
	h->to = *to;
	h->len = len;
	h->polls = 1 + random_next(&t->random) % 16;
	t->nheld++;
	return true;
}

static void held_leave(struct transport *t)
{
	unsigned int i = 0;
	struct held h;

	while (i < t->nheld) {
		if (--t->held[i].polls) {
			i++;
			continue;
		}
		h = t->held[i];
		t->held[i] = t->held[--t->nheld];
		t->ops->send(t, &h.to, h.data, h.len);
		free(h.data);
	}
}

/* Send a frame. Returns 0: taken, 1: not now, -1: an error. Faults may change @data. */
int transport_send(struct transport *t, const en_t *to, uint8_t *data, size_t len)
{
	const struct am_faults *f = &t->faults;

	switch (f->filter ? f->filter(f->arg, data, len) : AM_PASS) {
	case AM_DROP:
		return 0;
	case AM_BLOCK:
		return 1;
	case AM_PASS:
		break;
	}
	if (chance(t, f->drop))
		return 0;
	if (chance(t, f->duplicate))
		t->ops->send(t, to, data, len);
	if (chance(t, f->corrupt))
		corrupt(t, data, &len);
	if (chance(t, f->delay) && hold(t, to, data, len))
		return 0;
	return t->ops->send(t, to, data, len);
}

int transport_receive(struct transport *t, struct frame *frames, int n, size_t room)
{
	held_leave(t);
	return t->ops->receive(t, frames, n, room);
}

int transport_open(struct transport *t, const struct am_options *o)
{
	const char *a = o->address;
	int error;

	t->fd = -1;
	t->faults = o->faults;
	t->random = o->faults.seed ? o->faults.seed : 1;
	if (!a)
		return AM_ERR_BAD_ARG;
	if (!strcmp(a, "mem"))
		t->ops = &mem_ops;
	else if (!strncmp(a, "udp:", 4))
		t->ops = &udp_ops;
	else if (!strncmp(a, "edp:", 4))
		t->ops = &edp_ops;
	else if (!strncmp(a, "esp:", 4))
		t->ops = &esp_ops;
	else if (!strncmp(a, "verbs:", 6) && &verbs_ops)
		t->ops = &verbs_ops;
	else
		return AM_ERR_BAD_ARG;
	error = t->ops->open(t, o);
	if (!error && t->mtu < WIRE_MIN_MTU)
		error = AM_ERR_TOO_BIG;
	if (error)
		transport_close(t);
	return error;
}

void transport_close(struct transport *t)
{
	int error = errno;

	while (t->nheld)
		free(t->held[--t->nheld].data);
	t->ops->close(t);
	errno = error;
}
