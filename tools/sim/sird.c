// SPDX-License-Identifier: GPL-2.0-only
/*
 * A model of SIRD, for comparison: Prasopoulos, Kosta, Bugnion and Kogias, SIRD: A Sender-Informed,
 * Receiver-Driven Datacenter Transport Protocol, NSDI 2025.
 *
 * A message of up to a BDP is sent at once, a longer one asks for credit. A receiver bounds its
 * outstanding credit by a global bucket (B), and that of each sending host by the smaller one of
 * two buckets. These follow marks as DCTCP's window does: one those of senders that have too much
 * credit (csn, from SThr on), one those of switches. The message with least left gets the next
 * credit, a little below the link's rate. A sender gives half of its link to the message with
 * least left, and half to all in turn. There is no connection; --handshake sends a frame there and
 * back before each message, as a connection does.
 *
 * B and SThr are 1.5 and 0.5 BDP, as in the paper's evaluation. These are the model's own: a
 * message of up to one BDP needs no credit, switches mark from --mark on, SIRD_GAIN, credit leaves
 * at 1/1.02 of the link's rate, and how losses are repaired: a credit names its packet, and a
 * message that has stood still for SIRD_RETRY gets its credit anew.
 */
#include <stdlib.h>
#include "sim.h"

#define SIRD_GLOBAL	150	/* B, % of the BDP */
#define SIRD_CSN	50	/* SThr, % of the BDP */
#define SIRD_GAIN	0.0625	/* of the averages of marks */
#define SIRD_RETRY	(2 * NS_PER_MS)
#define SIRD_QUEUE	64	/* credits of a message that its sender keeps */
#define MSS		(SIM_MTU - SIM_TCP_HEADER)

/* State of a sending host at a receiver. */
struct peer {
	u32 out;		/* credits outstanding */
	u32 came;		/* packets in this round */
	u32 marked[2];		/* those with csn, those with a switch's mark */
	double alpha[2];	/* averages of the shares of marks */
	double bucket[2];	/* credits that may be outstanding */
};

/* A message, at both ends. */
struct sird {
	struct conn *conn;
	u32 number;	/* number of the message on its connection */
	u64 bytes;	/* length */
	u32 n;		/* length, packets */
	u32 at[2];	/* index in sender's and receiver's set, from 1 on; 0: in none */
	u32 sent;	/* first packet that was never sent */
	u32 plain;	/* packets that may still be sent without credit */
	u32 queue[SIRD_QUEUE];	/* packets with credit, a ring */
	u32 head;	/* first entry of @queue */
	u32 queued;	/* number of entries of @queue */
	u8 *got;	/* 1 for each packet that is here */
	u32 missing;	/* number of packets that are not here */
	u32 credited;	/* first packet that has had no credit and is not here */
	u32 out;	/* credits outstanding */
	u64 last;	/* when the message moved last */
};

static struct host {
	struct {
		struct sird **m;
		u32 n, room;
	} set[2];	/* messages: that are being sent, that ask for credit */
	u32 turn;	/* number of packets sent */
	u32 credit;	/* credits that the messages have */
	u32 out;	/* credits outstanding */
	bool paced;	/* the time of a frame has not passed since the last credit */
	struct peer **peers;
} *hosts;

static u32 bdp;		/* frames */

static void join(struct host *h, int which, struct sird *m)
{
	u32 *n = &h->set[which].n, *room = &h->set[which].room;

	if (m->at[which])
		return;
	if (*n == *room) {
		*room = *room ? 2 * *room : 64;
		h->set[which].m = realloc(h->set[which].m, *room * sizeof(m));
		if (!h->set[which].m)
			exit(1);
	}
	h->set[which].m[(*n)++] = m;
	m->at[which] = *n;
}

static void leave(struct host *h, int which, struct sird *m)
{
	struct sird *last;

	if (!m->at[which])
		return;
	last = h->set[which].m[--h->set[which].n];
	h->set[which].m[m->at[which] - 1] = last;
	last->at[which] = m->at[which];
	m->at[which] = 0;
}

static struct peer *peer_of(const struct sird *m)
{
	struct peer **p = &hosts[m->conn->dst].peers[m->conn->src];

	if (!*p) {
		*p = sim_alloc(sizeof(**p));
		(*p)->bucket[0] = bdp;
		(*p)->bucket[1] = bdp;
	}
	return *p;
}

static u64 frame_time(void)
{
	return (SIM_MTU + SIM_FRAMING) * 8000ull / cfg.rate;
}

/* Prepare all hosts. */
void sird_build(void)
{
	u64 rtt = net_ideal(0, cfg.hosts - 1, MSS, SIM_TCP_HEADER) +
		  net_ideal(cfg.hosts - 1, 0, 1, SIM_TCP_HEADER);
	u32 i;

	bdp = (rtt + frame_time() - 1) / frame_time();
	hosts = sim_alloc(cfg.hosts * sizeof(*hosts));
	for (i = 0; i < cfg.hosts; i++)
		hosts[i].peers = sim_alloc(cfg.hosts * sizeof(struct peer *));
}

static void send_control(struct sird *m, bool to_server, u32 seq, u16 flags)
{
	struct packet *p = packet_new(m->conn, to_server, 0, SIM_TCP_HEADER);

	p->seq = seq;
	p->ack = m->number;
	p->flags = flags;
	packet_send(p);
}

static void send_packet(struct host *h, struct sird *m)
{
	bool scheduled = !m->plain;
	struct packet *p;
	u32 seq;

	if (scheduled) {
		seq = m->queue[m->head++ % SIRD_QUEUE];
		m->queued--;
		h->credit--;
	} else {
		seq = m->n - m->plain--;
	}
	if (seq < m->sent)
		state.again++;
	m->sent = max(m->sent, seq + 1);
	p = packet_new(m->conn, true, min(m->bytes - (u64)seq * MSS, (u64)MSS), SIM_TCP_HEADER);
	p->seq = seq;
	p->ack = m->number;
	p->grant = scheduled;
	p->ecn = 1;
	if (100 * h->credit >= SIRD_CSN * bdp)
		p->flags |= PKT_BUSY;
	packet_send(p);
}

/* Send what the device of a host takes. */
void sird_device_ready(u32 host)
{
	struct host *h = &hosts[host];
	struct sird *m, *best;
	u32 i;

	while (net_host_room(host)) {
		best = NULL;
		for (i = 0; i < h->set[0].n; i++) {
			m = h->set[0].m[(h->turn / 2 + i) % h->set[0].n];
			if (!m->plain && !m->queued)
				continue;
			if (!best || m->n - m->sent < best->n - best->sent)
				best = m;
			if (h->turn % 2)
				break;
		}
		if (!best)
			return;
		h->turn++;
		send_packet(h, best);
	}
}

static void give_credit(struct host *h)
{
	struct sird *m, *best = NULL;
	struct peer *p;
	u32 i;

	if (h->paced || 100 * (h->out + 1) > SIRD_GLOBAL * bdp)
		return;
	for (i = 0; i < h->set[1].n; i++) {
		m = h->set[1].m[i];
		p = peer_of(m);
		while (m->credited < m->n && m->got[m->credited])
			m->credited++;
		if (m->credited < m->n && p->out < (u32)min(p->bucket[0], p->bucket[1]) &&
		    (!best || m->n - m->credited < best->n - best->credited))
			best = m;
	}
	if (!best)
		return;
	send_control(best, false, best->credited++, 0);
	best->out++;
	peer_of(best)->out++;
	h->out++;
	best->last = sim_now;
	h->paced = true;
	event_at(sim_now + frame_time() * 102 / 100, EVENT_PACE, h);
}

/* The time of a frame has passed since the last credit of a host. */
void sird_pace(void *arg)
{
	struct host *h = arg;

	h->paced = false;
	give_credit(h);
}

/* Take back a credit whose packet has come, and adapt the buckets once in a window. */
static void credit_used(struct host *h, struct sird *m, const struct packet *p)
{
	struct peer *peer = peer_of(m);
	int i;

	if (m->out) {
		m->out--;
		peer->out--;
		h->out--;
	}
	peer->marked[0] += !!(p->flags & PKT_BUSY);
	peer->marked[1] += p->ecn == 3;
	if (++peer->came < (u32)min(peer->bucket[0], peer->bucket[1]))
		return;
	for (i = 0; i < 2; i++) {
		peer->alpha[i] += SIRD_GAIN * ((double)peer->marked[i] / peer->came -
					       peer->alpha[i]);
		if (peer->marked[i])
			peer->bucket[i] = max(peer->bucket[i] * (1 - peer->alpha[i] / 2), 1.0);
		else
			peer->bucket[i] = min(peer->bucket[i] + 1, (double)bdp);
		peer->marked[i] = 0;
	}
	peer->came = 0;
}

/* Receive a frame; the caller frees it. */
void sird_input(struct packet *p)
{
	struct sird *m = p->conn->sird;
	struct host *to = &hosts[p->to_server ? p->conn->dst : p->conn->src];

	if (p->conn->closed || p->ack != m->number)
		return;
	m->last = sim_now;
	if (p->flags & PKT_SYN) {
		if (p->to_server)
			send_control(m, false, 0, PKT_SYN);
		else
			conn_opened(m->conn);
	} else if (!p->to_server && (p->flags & PKT_TXF)) {
		leave(to, 0, m);
		to->credit -= m->queued;
		m->queued = 0;
		conn_acked(m->conn);
	} else if (!p->to_server) {
		if (!m->at[0] || m->queued == SIRD_QUEUE)
			return;
		m->queue[(m->head + m->queued++) % SIRD_QUEUE] = p->seq;
		to->credit++;
		sird_device_ready(m->conn->src);
	} else {
		if (p->grant)
			credit_used(to, m, p);
		if (m->missing && m->credited < m->n)
			join(to, 1, m);
		if (p->len && m->got[p->seq]) {
			state.duplicate++;
		} else if (p->len) {
			m->got[p->seq] = 1;
			if (!--m->missing) {
				peer_of(m)->out -= m->out;
				to->out -= m->out;
				m->out = 0;
				leave(to, 1, m);
				send_control(m, false, 0, PKT_TXF);
			}
			conn_received(m->conn, p->len);
		}
		give_credit(to);
	}
}

/* Begin, or look whether a message stands still: then its credit is given anew. */
void sird_timer(void *arg)
{
	struct sird *m = arg;
	struct conn *c = m->conn;

	if (!c->opened && cfg.handshake) {
		send_control(m, true, 0, PKT_SYN);
		c->refs++;
		event_at(sim_now + SIRD_RETRY, EVENT_TCP, m);
	} else if (!c->opened) {
		conn_opened(c);
	} else if (!c->closed && m->missing) {
		if (sim_now - m->last >= SIRD_RETRY && (m->out || !m->at[1])) {
			state.timeouts++;
			peer_of(m)->out -= m->out;
			hosts[c->dst].out -= m->out;
			m->out = 0;
			m->credited = 0;
			send_control(m, true, 0, 0);
		}
		c->refs++;
		event_at(sim_now + SIRD_RETRY, EVENT_TCP, m);
	}
	conn_put(c);
}

/* Prepare to send messages from one host to another. */
void sird_open(struct conn *c)
{
	c->sird = sim_alloc(sizeof(*c->sird));
	c->sird->conn = c;
	state.socks += 2;
	c->refs++;
	event_at(sim_now, EVENT_TCP, c->sird);
}

/* Send a message; the one before has arrived. */
void sird_write(struct conn *c, u64 bytes)
{
	struct sird *m = c->sird;

	leave(&hosts[c->src], 0, m);
	hosts[c->src].credit -= m->queued;
	m->queued = 0;
	m->number++;
	m->bytes = bytes;
	m->n = (bytes + MSS - 1) / MSS;
	m->missing = m->n;
	m->sent = 0;
	m->plain = m->n > bdp ? 0 : m->n;
	m->credited = m->plain;
	m->last = sim_now;
	free(m->got);
	m->got = sim_alloc(m->n);
	c->refs++;
	event_at(sim_now + SIRD_RETRY, EVENT_TCP, m);
	join(&hosts[c->src], 0, m);
	if (!m->plain)
		send_control(m, true, 0, 0);
	sird_device_ready(c->src);
}

/* Free a message that nothing refers to. */
void sird_free(struct conn *c)
{
	free(c->sird->got);
	free(c->sird);
}
