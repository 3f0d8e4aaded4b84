// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender. Stands for sendmsg.c, write_queue.c, output.c, rcv_ack.c and the sender's part of
 * timeout.c. The write queue is a count of unsent bytes, and a ring of the packets sent.
 */
#include <stdlib.h>
#include "esp_sim.h"

static struct sent *sent_at(struct esp_sk *sk, u32 seq)
{
	return &sk->sent[seq & (sk->sent_room - 1)];
}

static void sent_grow(struct esp_sk *sk)
{
	u32 need = sk->snd.send_next - sk->snd.una_seq + 1, room = max(sk->sent_room, 16u), s;
	struct sent *old = sk->sent;

	if (need <= sk->sent_room)
		return;
	while (room < need)
		room *= 2;
	sk->sent = sim_alloc(room * sizeof(*sk->sent));
	for (s = sk->snd.una_seq; s != sk->snd.send_next; s++)
		sk->sent[s & (room - 1)] = old[s & (sk->sent_room - 1)];
	sk->sent_room = room;
	free(old);
}

static u32 unsent_packets(const struct esp_sk *sk)
{
	return min_t(u64, (sk->unsent + ESP_MSS - 1) / ESP_MSS, 1u << 30);
}

/* Has the write queue grown beyond what LEFT has told? Far beyond the present, it can wait. */
static bool left_has_grown(const struct esp_sk *sk)
{
	return esp_after(sk->snd.send_next + unsent_packets(sk), sk->told_end) &&
	       (s32)(sk->told_end - sk->snd.send_next) < LEFT_MAX / 2;
}

/* frame_grant() */
static u16 grant_now(struct esp_sk *sk)
{
	u32 edge = sk->grant.edge;

	if (!sk->grant.recv_announced)
		return min_t(u32, sk->burst_told, grant_room_now(sk));
	return esp_after(edge, sk->recv_seq) ? min_t(u32, edge - sk->recv_seq, SEQ_WINDOW) : 0;
}

/* frame_fill(), esp_skb_alloc_sk() */
struct packet *frame(struct esp_sk *sk, u32 len, u32 seq, u8 flags)
{
	u32 now = sim_us();
	struct packet *p = packet_new(sk->conn, sk->client, len, SIM_ESP_HEADER);

	p->flags = flags | PKT_ACK;
	p->seq = seq;
	p->ts_val = now;
	p->ack = sk->recv_seq;
	p->grant = grant_now(sk);
	p->ts_ecr = sk->ts_val + (now - sk->ts_at);
	if (sk->echo) {
		p->flags |= PKT_HELLO;
		p->hello = sk->syn_burst;
	}
	if (flags & PKT_LEFT) {
		p->left = min(unsent_packets(sk), LEFT_MAX);
		p->burst = sk->snd.first;
		sk->told_end = seq + !!len + p->left;
	}
	return p;
}

/* frame_ack_left() */
void ack_left(struct esp_sk *sk)
{
	sk->ack_seq = sk->recv_seq;
	sk->ack_pending = 0;
	sk->to_ack = 0;
	timer_clear(sk, T_ACK);
}

/* esp_send_empty() */
void send_empty(struct esp_sk *sk, u8 flags, u32 seq)
{
	struct packet *p;

	if (!sk->grant.recv_announced)
		peer_advise(sk);
	p = frame(sk, 0, seq, flags);
	ack_left(sk);
	sk->last_ack_us = sim_us();
	packet_send(p);
}

/* esp_send_ack() */
void send_ack(struct esp_sk *sk)
{
	send_empty(sk, 0, sk->snd.send_next);
}

/* esp_send_probe() */
static void send_probe(struct esp_sk *sk)
{
	send_empty(sk, PKT_TXS | PKT_LEFT, sk->unsent ? sk->snd.send_next : sk->snd.send_next - 1);
}

/* Packets that the peer permits, and that were not sent yet. */
static u32 permitted(struct esp_sk *sk)
{
	u32 n = unsent_packets(sk), limit = esp_window_limit(&sk->snd);

	if (!n || sk->state != SK_OPEN)
		return 0;
	if (sk->txs && sk->txs_seq == sk->snd.send_next)
		return 1;
	return esp_before(sk->snd.send_next, limit) ? min(n, limit - sk->snd.send_next) : 0;
}

/* Update the number of packets that the host may send and has not sent. */
void count_unused(struct esp_sk *sk)
{
	u32 n = permitted(sk);

	sk->host->unused += n - sk->unused;
	sk->unused = n;
}

/* Is the host's own link what its packets wait for? See esp_budget_busy_from(). */
static bool still_busy(struct host *h)
{
	if (h->busy && h->unused + net_host_frames(h->id) <= esp_budget_busy_from(&h->budget) / 2)
		h->busy = false;
	return h->busy;
}

/* esp_skb_xmit() */
static void xmit(struct esp_sk *sk, u32 seq, bool again)
{
	struct sent *s = sent_at(sk, seq);
	struct packet *p;

	s->us = sim_us();
	p = frame(sk, s->len, seq, s->flags);
	if (still_busy(sk->host))
		p->flags |= PKT_BUSY;
	ack_left(sk);
	if (again)
		state.again++;
	packet_send(p);
}

/* esp_cwnd_test(), for one packet */
static bool may_go(struct esp_sk *sk, u32 len, bool txs, bool txf)
{
	if (txs && esp_window_may_announce(&sk->snd)) {
		/* what the handshake told counts for a moment only: others may begin since */
		if (sk->opened_us && sim_us() - sk->opened_us > HANDSHAKE_US)
			sk->snd.advice = 0;
		esp_window_announce(&sk->snd, txf && len <= ESP_SMALL);
		if (sk->snd.edge == sk->snd.send_next) {
			state.empty_txs++;
			send_probe(sk);
			return false;
		}
	}
	return esp_window_test(&sk->snd);
}

/* esp_push_one_frame() */
static bool push_one_frame(struct esp_sk *sk)
{
	u32 seq = sk->snd.send_next, len;
	bool txs = sk->txs && sk->txs_seq == seq, tell, txf;

	if (!sk->unsent)
		return false;
	tell = txs ? sk->unsent > ESP_SMALL : left_has_grown(sk);
	len = min_t(u64, sk->unsent, ESP_MSS - (tell ? LEFT_BYTES : 0));
	txf = sk->unsent == len;
	if (txf)
		sk->trans_announced = 0;
	if (!may_go(sk, len, txs, txf))
		return false;
	sent_grow(sk);
	*sent_at(sk, seq) = (struct sent) {
		.len = len,
		.flags = (txs ? PKT_TXS : 0) | (txf ? PKT_TXF : 0) | (tell ? PKT_LEFT : 0),
	};
	if (txs)
		sk->txs = 0;
	sk->unsent -= len;
	esp_window_sent(&sk->snd, 1, txs, txf);
	sk->snd.send_seq = sk->snd.send_next;
	count_unused(sk);
	xmit(sk, seq, false);
	return true;
}

/* esp_rto() */
static u32 rto(struct esp_sk *sk)
{
	return esp_rtt_backoff(esp_rtt_timeout(&sk->rtt, ACK_DELAY_US, RTO_MIN_US, RTO_MAX_US),
			       sk->retransmits, RTO_MAX_US);
}

/* esp_arm_send() */
static void arm_send(struct esp_sk *sk, u64 now)
{
	u32 wait;

	if (sk->snd.una_seq != sk->snd.send_next) {
		wait = rto(sk);
	} else if (sk->unsent) {
		wait = esp_rtt_backoff(rto(sk), sk->probe_tries +
				       (sk->snd.on_hold ? HELD_SHIFT : 0), PROBE_MAX_US);
	} else {
		timer_clear(sk, T_SEND);
		return;
	}
	timer_set(sk, T_SEND, now + wait);
}

/**
 * esp_device_ready() - send packets, as long as the device takes them
 * @id:	number of the host
 *
 * Sockets take turns, a packet each.
 */
void esp_device_ready(u32 id)
{
	struct host *h = host_of(id);
	struct esp_sk *sk;
	bool idle;

	while (!list_empty(&h->ready) && net_host_room(id)) {
		sk = list_first_entry(&h->ready, struct esp_sk, ready);
		list_del_init(&sk->ready);
		idle = sk->snd.una_seq == sk->snd.send_next;
		if (!push_one_frame(sk))
			continue;
		list_add_tail(&sk->ready, &h->ready);
		if (idle || !sk->deadline[T_SEND]) {
			sk->progress_us = sim_us();
			arm_send(sk, sk->progress_us);
		}
	}
}

/* esp_push_frames() */
void push_frames(struct esp_sk *sk)
{
	if (sk->state != SK_OPEN || !sk->unsent)
		return;
	if (list_empty(&sk->ready))
		list_add_tail(&sk->ready, &sk->host->ready);
	esp_device_ready(sk->host->id);
	count_unused(sk);
	if (sk->unsent && !sk->deadline[T_SEND]) {
		sk->progress_us = sim_us();
		arm_send(sk, sk->progress_us);
	}
}

/* do_sendmsg(), send_announce(); each call takes all of its bytes */
void esp_write(struct conn *c, u64 bytes)
{
	struct esp_sk *sk = c->esp[0];

	if (!sk->trans_announced) {
		sk->trans_announced = 1;
		if (!sk->unsent) {
			sk->txs = 1;
			sk->txs_seq = sk->snd.send_next;
		}
	}
	sk->unsent += bytes;
	push_frames(sk);
}

/* send_timeout() */
void send_timeout(struct esp_sk *sk, u64 now)
{
	if (sk->snd.una_seq != sk->snd.send_next) {
		if (sk->probes < 255)
			sk->probes++;
		if (sk->retransmits < 255)
			sk->retransmits++;
		state.timeouts++;
		sk->rto_high = sk->snd.send_next;
		sk->snd.recovering = 1;
		xmit(sk, sk->snd.una_seq, true);
	} else if (sk->unsent && list_empty(&sk->ready)) {
		if (sk->probes < 255)
			sk->probes++;
		if (sk->probe_tries < 16)
			sk->probe_tries++;
		send_probe(sk);
	}
	arm_send(sk, now);
}

/* ack_take_rtt(), ack_round_over() */
static void take_rtt(struct esp_sk *sk, struct packet *p, u64 now)
{
	u32 rtt = (u32)now - p->ts_ecr, least;

	if (rtt >= ESP_RTT_MAX_US)
		return;
	esp_rtt_sample(&sk->rtt, rtt);
	if (!esp_rtt_round_add(&sk->round, rtt, esp_rtt_smooth(&sk->rtt), now))
		return;
	least = peer_rtt(sk, sk->round.least, now);
	if (!by_budget(sk))
		esp_budget_rtt(&sk->host->budget, &sk->peer->host, least, sk->round.most,
			       queue_of(sk)->esp_recv_count.v, sim_now);
	else if (esp_ackq_rtt(queue_of(sk), &sk->grant, least, sk->round.most, sim_now))
		esp_ack_pump(queue_of(sk));
	esp_rtt_round_begin(&sk->round, now);
}

/* ack_proof_time() */
static u32 proof_time(struct esp_sk *sk, struct packet *p, u32 now)
{
	u32 rtt = now - p->ts_ecr;

	return rtt < ESP_RTT_MAX_US ? rtt : esp_rtt_smooth(&sk->rtt);
}

/* ack_recover() */
static void recover(struct esp_sk *sk, struct packet *p, u32 now)
{
	u32 proof = proof_time(sk, p, now), seq = sk->snd.una_seq, n;

	for (n = 0; n < 4 && esp_before(seq, sk->rto_high); n++, seq++) {
		if (now - sent_at(sk, seq)->us < proof)
			break;
		xmit(sk, seq, true);
	}
}

/* ack_take() */
bool ack_rcv(struct esp_sk *sk, struct packet *p, u64 now, bool late)
{
	u32 unused = sk->host->unused;
	bool held = sk->snd.on_hold;
	unsigned int res;

	res = late && p->ack == sk->snd.una_seq ? ESP_ACK_STALE :
	      esp_window_ack(&sk->snd, p->ack, p->grant);
	if (res & ESP_ACK_INVALID)
		return false;
	if (res & ESP_ACK_PROGRESS)
		sk->opened_us = 0;
	take_rtt(sk, p, now);
	sk->progress_us = now;
	sk->probes = 0;
	if (res & ESP_ACK_STALE)
		return true;
	/* new permission has come before that of before is used */
	if ((res & ESP_ACK_OPENED) && unused + net_host_frames(sk->host->id) >
	    esp_budget_busy_from(&sk->host->budget))
		sk->host->busy = true;
	count_unused(sk);
	if (res & ESP_ACK_HOLD)
		state.holds++;
	if (res & ESP_ACK_PROGRESS) {
		sk->retransmits = 0;
		if (sk->snd.recovering) {
			if (esp_before(sk->snd.una_seq, sk->rto_high))
				recover(sk, p, now);
			else
				sk->snd.recovering = 0;
		}
	}
	if (res & (ESP_ACK_PROGRESS | ESP_ACK_OPENED)) {
		sk->probe_tries = 0;
		arm_send(sk, now);
	}
	if (held && !sk->snd.on_hold && sk->retransmits && sk->snd.una_seq != sk->snd.send_next) {
		sk->retransmits = 0;
		timer_set(sk, T_SEND, now);
	}
	return true;
}

/* rrq_rcv() */
void rrq_rcv(struct esp_sk *sk, struct packet *p, u64 now)
{
	u32 proof = proof_time(sk, p, now);
	int i;

	for (i = 0; i < p->ranges; i++) {
		u32 from = p->ack + p->r[i].offset, to = from + p->r[i].count;

		if (esp_before(from, sk->snd.una_seq))
			from = sk->snd.una_seq;
		if (esp_after(to, sk->snd.send_next))
			to = sk->snd.send_next;
		for (; esp_before(from, to); from++)
			if ((u32)now - sent_at(sk, from)->us >= proof)
				xmit(sk, from, true);
	}
}
