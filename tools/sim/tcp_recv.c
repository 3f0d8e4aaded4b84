// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP's receiver. It acknowledges every second segment. It acknowledges at once a segment that
 * is out of order or ends a gap, a short segment, and the first ones after a pause. The fourth
 * and later ACKs without progress are held back for a third of a round trip. An ACK has up to
 * three SACK blocks. The window is the payload that the buffer takes, and the buffer grows with
 * the bytes that are read in a round trip (DRS).
 */
#include <stdlib.h>
#include "tcp_sim.h"

#define QUICK_MOST	16
#define DELAYED_ACK	(40 * NS_PER_MS)
#define HELD_MOST	44
#define DUPS_AT_ONCE	3
#define RCVBUF		131072
#define RCVBUF_MOST	(32u << 20)
#define TRUESIZE	2304		/* memory of a full segment, bytes */
#define LOW_RTT		NS_PER_MS

static u64 window_of(u64 buffer)
{
	return buffer * TCP_MSS / TRUESIZE;
}

/**
 * tcp_recv_open() - initialize the receiver of a new connection
 * @t:	connection
 */
void tcp_recv_open(struct tcp *t)
{
	struct tcp_recv *r = &t->recv;

	r->window = 65535;
	r->clamp = window_of(RCVBUF);
	r->space = INIT_CWND * TCP_MSS;
	t->edge = r->window / TCP_MSS;
}

static void quick(struct tcp_recv *r, u32 most)
{
	r->quick = max(r->quick, min_t(u32, max_t(u64, r->window / (2 * TCP_MSS), 2), most));
}

/**
 * tcp_send_ack() - send an ACK, with window, echo of marks and SACK blocks
 * @t:		connection
 * @duplicate:	true: it answers a segment that had arrived before
 */
void tcp_send_ack(struct tcp *t, bool duplicate)
{
	struct tcp_recv *r = &t->recv;
	u32 n = min(r->nsacks + duplicate, 3u), options = n ? 4 + 8 * n : 0, i;
	struct packet *p = packet_new(t->conn, false, 0, SIM_TCP_HEADER + options);

	p->ack = r->next;
	p->ts_val = sim_us();
	p->grant = min(r->window / TCP_MSS, 65535ull);
	p->flags = duplicate ? PKT_DSACK : 0;
	p->ecn = r->ce ? 3 : 0;
	p->ranges = n - duplicate;
	for (i = 0; i < p->ranges; i++) {
		p->r[i].offset = r->sacks[i].from - r->next;
		p->r[i].count = r->sacks[i].to - r->sacks[i].from;
	}
	r->told = r->next;
	r->quick -= !!r->quick;
	r->held = 0;
	r->delayed = false;
	tcp_due(t, DUE_ACK, 0);
	tcp_due(t, DUE_SACKS, 0);
	packet_send(p);
}

/* Add a segment to the SACK blocks that it touches; the resulting block becomes the first. */
static void sack_add(struct tcp_recv *r, u32 seq)
{
	u32 from = seq, to = seq + 1, i, n = 0;

	for (i = 0; i < r->nsacks; i++) {
		if (esp_before(to, r->sacks[i].from) || esp_after(from, r->sacks[i].to)) {
			r->sacks[n++] = r->sacks[i];
			continue;
		}
		if (esp_before(r->sacks[i].from, from))
			from = r->sacks[i].from;
		if (esp_after(r->sacks[i].to, to))
			to = r->sacks[i].to;
	}
	n = min(n, SACKS - 1u);
	memmove(&r->sacks[1], &r->sacks[0], n * sizeof(r->sacks[0]));
	r->sacks[0].from = from;
	r->sacks[0].to = to;
	r->nsacks = n + 1;
}

static void sacks_passed(struct tcp_recv *r)
{
	u32 i, n = 0;

	for (i = 0; i < r->nsacks; i++)
		if (esp_after(r->sacks[i].to, r->next))
			r->sacks[n++] = r->sacks[i];
	r->nsacks = n;
}

static void rtt_sample(struct tcp_recv *r, u64 sample, bool by_window)
{
	if (!r->rtt || sample < r->rtt)
		r->rtt = sample;
	else if (!by_window)
		r->rtt += sample / 8 - r->rtt / 8;
}

/*
 * Measure round trips in two ways: by the echoed clock, in whole milliseconds, and by the time
 * in which a window of data comes.
 */
static void rtt_look(struct tcp *t, const struct packet *p)
{
	struct tcp_recv *r = &t->recv;
	u64 ms = sim_us() / 1000 - p->ts_ecr / 1000;

	if (p->ts_ecr && p->ts_ecr / 1000 != r->tsecr && p->len == TCP_MSS && ms)
		rtt_sample(r, ms * NS_PER_MS, false);
	r->tsecr = p->ts_ecr / 1000;
	if (r->rtt_at && esp_before(r->next, r->rtt_seq))
		return;
	if (r->rtt_at)
		rtt_sample(r, max(sim_now - r->rtt_at, NS_PER_US), true);
	r->rtt_seq = r->next + r->window / TCP_MSS;
	r->rtt_at = sim_now;
}

/* Let the buffer grow: @bytes were read in a round trip, and some may be out of order. */
static void buffer_grow(struct tcp_recv *r, u64 bytes)
{
	u64 was = r->space, want = 2 * bytes, more;

	r->space = bytes;
	if (r->rtt < LOW_RTT)
		more = want * r->rtt / LOW_RTT;
	else
		more = 2 * want * (bytes - was) / was;
	want += more;
	if (r->nsacks) {
		u32 i, last = r->sacks[0].to;

		for (i = 1; i < r->nsacks; i++)
			if (esp_after(r->sacks[i].to, last))
				last = r->sacks[i].to;
		want += (u64)(last - r->next) * TCP_MSS;
	}
	r->clamp = max(r->clamp, min(want, window_of(RCVBUF_MOST)));
}

static void was_read(struct tcp_recv *r, u32 bytes)
{
	u64 copied;

	r->bytes += bytes;
	if (!r->rtt || sim_now - r->space_at < r->rtt)
		return;
	copied = r->bytes - r->space_seq;
	if (copied > r->space)
		buffer_grow(r, copied);
	r->space_seq = r->bytes;
	r->space_at = sim_now;
}

static void window_grow(struct tcp_recv *r, u32 len)
{
	if (len < 128 || r->window >= r->clamp)
		return;
	r->window = min(r->window + 2 * TCP_MSS, r->clamp);
	r->quick |= 1;
}

/*
 * DCTCP: an ACK tells either that all segments were marked, or that none was. So a change sends
 * the delayed ACK, and returns true: this segment is acknowledged at once, too.
 */
static bool mark_seen(struct tcp *t, bool marked)
{
	struct tcp_recv *r = &t->recv;

	if (marked == r->ce)
		return false;
	if (r->delayed)
		tcp_send_ack(t, false);
	r->ce = marked;
	return true;
}

static void kept_grow(struct tcp_recv *r, u32 need)
{
	u32 room = max(r->room, 16u), s;
	u16 *old = r->kept;

	if (need <= r->room)
		return;
	while (room < need)
		room *= 2;
	r->kept = sim_alloc(room * sizeof(*r->kept));
	for (s = r->next; s != r->next + r->room; s++)
		r->kept[s & (room - 1)] = old[s & (r->room - 1)];
	r->room = room;
	free(old);
}

/* Consume the segments that are in order now. */
static void consume(struct tcp *t)
{
	struct tcp_recv *r = &t->recv;
	u16 *k;

	while (*(k = &r->kept[r->next & (r->room - 1)])) {
		u32 len = *k;

		*k = 0;
		r->next++;
		r->out--;
		was_read(r, len);
		conn_received(t->conn, len);
	}
	if (r->nsacks)
		sacks_passed(r);
}

/* Send an ACK, delay it, or hold it back. */
static void ack_check(struct tcp *t, bool now)
{
	struct tcp_recv *r = &t->recv;
	u64 wait;

	if (now || r->quick || r->next - r->told > 1) {
		tcp_send_ack(t, false);
		return;
	}
	if (!r->out) {
		r->delayed = true;
		if (!t->due[DUE_ACK])
			tcp_due(t, DUE_ACK, tcp_tick(t, true, DELAYED_ACK / tcp_jiffy()));
		return;
	}
	if (r->dups_at != r->next) {
		r->dups_at = r->next;
		r->dups = 0;
	}
	if (r->dups < DUPS_AT_ONCE || r->held >= HELD_MOST) {
		r->dups++;
		tcp_send_ack(t, false);
		return;
	}
	wait = r->rtt && r->rtt < r->handshake ? r->rtt : r->handshake;
	if (!r->held++)
		tcp_due(t, DUE_SACKS, sim_now + min(wait * 33 / 100, NS_PER_MS));
}

/**
 * tcp_recv_data() - receive a segment
 * @t:	connection
 * @p:	frame
 */
void tcp_recv_data(struct tcp *t, struct packet *p)
{
	struct tcp_recv *r = &t->recv;
	bool gap = r->out, now;
	u16 *k;

	if (!r->last || sim_now - r->last > 200 * NS_PER_MS + tcp_jiffy())
		quick(r, QUICK_MOST);
	r->last = sim_now;
	/* a frame without ECT was retransmitted: the sender's window may be small */
	if (tcp_ecn() && !p->ecn)
		quick(r, 2);
	now = mark_seen(t, p->ecn == 3) || p->len < TCP_MSS || (p->flags & PKT_CWR);
	if (!esp_before(p->seq, r->next))
		kept_grow(r, p->seq - r->next + 1);
	if (esp_before(p->seq, r->next) || r->kept[p->seq & (r->room - 1)]) {
		state.duplicate++;
		quick(r, QUICK_MOST);
		tcp_send_ack(t, true);
		return;
	}
	k = &r->kept[p->seq & (r->room - 1)];
	*k = p->len;
	r->out++;
	if (p->seq != r->next) {
		state.ooo++;
		sack_add(r, p->seq);
		window_grow(r, p->len);
		buffer_grow(r, r->space);
		ack_check(t, now);
		return;
	}
	rtt_look(t, p);
	window_grow(r, p->len);
	consume(t);
	ack_check(t, now || (gap && !r->out));
}
