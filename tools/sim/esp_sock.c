// SPDX-License-Identifier: GPL-2.0-only
/*
 * The beginning and the end of a connection, its input and its timers. Stands for connect.c,
 * input.c, timer.c, timeout.c and close.c.
 */
#include <stdlib.h>
#include "esp_sim.h"

#define ISN	1000

static struct host *hosts;

/* Record the number of a host's sockets and peers, and their memory, if it is a new maximum. */
static void account(struct host *h)
{
	u64 bytes = (u64)h->socks * BYTES_SOCK + (u64)h->npeers * BYTES_PEER;

	state.bytes_most = max(state.bytes_most, bytes);
	state.host_socks_most = max(state.host_socks_most, h->socks);
	state.host_peers_most = max(state.host_peers_most, h->npeers);
	state.timewait_most = max(state.timewait_most, h->timewait);
}

/**
 * esp_build() - make the hosts
 */
void esp_build(void)
{
	struct esp_policy p = {
		.adaptive = cfg.proto == PROTO_ESP,
		.shortest_first = !cfg.fifo,
		.burst_length = cfg.proto == PROTO_ESP ? 0 : 64,
	};
	u32 i;

	hosts = sim_alloc(cfg.hosts * sizeof(*hosts));
	for (i = 0; i < cfg.hosts; i++) {
		esp_budget_init(&hosts[i].budget, cfg.told, SIM_MTU);
		esp_ackq_init(&hosts[i].ackq, &p, &hosts[i].budget, &ackq_ops);
		INIT_LIST_HEAD(&hosts[i].ready);
		hosts[i].id = i;
	}
}

/* Return the host of a number. */
struct host *host_of(u32 id)
{
	return &hosts[id];
}

static u64 slack(int t)
{
	return t == T_SEND || t == T_ACK || t == T_CONN ? SLACK_US : 0;
}

/* esp_timer_arm(); the event holds a reference to the connection until it fires */
static void arm(struct esp_sk *sk, int t, u64 at)
{
	u64 now = sim_us();

	at += slack(t);
	if (at >= sk->timer_at)
		return;
	sk->timer_at = at;
	sk->conn->refs++;
	event_at((at > now ? at * NS_PER_US : sim_now), EVENT_TIMER, sk);
}

/* esp_timer_set() */
void timer_set(struct esp_sk *sk, int t, u64 at)
{
	sk->deadline[t] = at ? at : 1;
	arm(sk, t, sk->deadline[t]);
}

/* timeout_rearm(), esp_timer_earliest() */
static void rearm(struct esp_sk *sk)
{
	u64 late = ~0ull;
	int t, first = T_MAX;

	for (t = 0; t < T_MAX; t++) {
		u64 d = sk->deadline[t];

		if (d && d + slack(t) < late) {
			late = d + slack(t);
			first = t;
		}
	}
	if (first != T_MAX)
		arm(sk, first, sk->deadline[first]);
}

/* esp_done(), esp_destruct() */
static void closed(struct esp_sk *sk)
{
	sk->state = SK_CLOSED;
	memset(sk->deadline, 0, sizeof(sk->deadline));
	list_del_init(&sk->ready);
	count_unused(sk);
	ackq_leave(sk);
	peer_put(sk);
	sk->host->socks--;
	state.socks--;
}

/* esp_send_syn() */
static void send_syn(struct esp_sk *sk)
{
	struct packet *p = packet_new(sk->conn, true, 0, SIM_ESP_HEADER);

	p->flags = PKT_SYN;
	p->ts_val = sim_us();
	packet_send(p);
}

/* esp_conn_timeout() */
static void conn_timeout(struct esp_sk *sk)
{
	if (sk->state == SK_TIME_WAIT) {
		sk->host->timewait--;
		closed(sk);
		return;
	}
	if (sk->state != SK_OPENING && !sk->echo)
		return;
	sk->conn_tries++;
	if (sk->state == SK_OPENING)
		send_syn(sk);
	else
		send_ack(sk);
	timer_set(sk, T_CONN, sim_us() +
		  esp_rtt_backoff(SYN_RTO_US, sk->conn_tries, SYN_RTO_MAX_US));
}

/* timeout_fire() */
static void fire(struct esp_sk *sk, int t, u64 now)
{
	switch (t) {
	case T_SEND:
		send_timeout(sk, now);
		break;
	case T_RRQ:
		expiry(sk);
		break;
	case T_REORDER:
		gap_timeout(sk);
		break;
	case T_ACK:
		if (sk->ack_pending)
			send_ack(sk);
		break;
	case T_CONN:
		conn_timeout(sk);
		break;
	}
}

/**
 * esp_timer() - run the deadlines of a socket that are due: timer_fn(), esp_timers_run()
 * @arg:	socket
 */
void esp_timer(void *arg)
{
	struct esp_sk *sk = arg;
	u64 now = sim_us();
	int t;

	if (now >= sk->timer_at) {
		sk->timer_at = ~0ull;
		for (t = 0; t < T_MAX && sk->state != SK_CLOSED; t++) {
			u64 at = sk->deadline[t];

			if (!at || at > now)
				continue;
			sk->deadline[t] = 0;
			fire(sk, t, now);
		}
		if (sk->state != SK_CLOSED)
			rearm(sk);
	}
	conn_put(sk->conn);
}

/* esp_sock_alloc(), conn_init_numbers() */
static struct esp_sk *new_sock(struct conn *c, bool client)
{
	struct esp_sk *sk = sim_alloc(sizeof(*sk));

	sk->conn = c;
	sk->client = client;
	sk->host = &hosts[client ? c->src : c->dst];
	sk->timer_at = ~0ull;
	INIT_LIST_HEAD(&sk->ready);
	sk->snd.initial = -1;
	esp_window_init(&sk->snd, ISN);
	esp_grant_init(&sk->grant, ISN + 1);
	sk->grant.rcv_est = TRUESIZE;
	sk->recv_seq = ISN + 1;
	sk->ack_seq = ISN + 1;
	sk->told_seq = ISN + 1;
	sk->told_end = ISN + 1;
	sk->ooo_high = ISN + 1;
	sk->gap_seq = ISN + 1;
	sk->host->socks++;
	state.socks++;
	state.socks_most = max(state.socks_most, state.socks);
	c->esp[!client] = sk;
	return sk;
}

/**
 * esp_open() - begin to connect: esp_connect_start()
 * @c:	connection
 */
void esp_open(struct conn *c)
{
	struct esp_sk *sk = new_sock(c, true);

	peer_get(sk);
	account(sk->host);
	send_syn(sk);
	timer_set(sk, T_CONN, sim_us() + SYN_RTO_US);
}

/* listen_syn(); the listener keeps nothing until the echo */
static void answer_syn(struct conn *c, struct packet *syn)
{
	struct packet *p = packet_new(c, false, 0, SIM_ESP_HEADER);

	p->flags = PKT_SYN | PKT_ACK;
	p->grant = peer_handshake(&hosts[c->dst]);
	p->ts_val = sim_us();
	p->ts_ecr = syn->ts_val;
	packet_send(p);
}

/* conn_remember_ts() */
static void remember_ts(struct esp_sk *sk, struct packet *p)
{
	sk->ts_val = p->ts_val;
	sk->ts_at = sim_us();
}

/* syn_acked() */
static void syn_acked(struct esp_sk *sk, struct packet *p)
{
	if (sk->state != SK_OPENING)
		return;
	sk->echo = 1;
	sk->syn_burst = p->grant;
	sk->snd.advice = p->grant;
	sk->burst_told = peer_handshake(sk->host);
	sk->opened_us = sim_us();
	remember_ts(sk, p);
	esp_rtt_sample(&sk->rtt, sim_us() - p->ts_ecr);
	sk->progress_us = sim_us();
	sk->state = SK_OPEN;
	sk->conn_tries = 0;
	timer_set(sk, T_CONN, sim_us() + SYN_RTO_US);
	send_ack(sk);
	conn_opened(sk->conn);
}

/* listen_echo(), child_make() */
static struct esp_sk *make_child(struct conn *c, struct packet *p)
{
	struct esp_sk *sk = new_sock(c, false);

	sk->burst_told = p->hello;
	sk->opened_us = sim_us();
	peer_get(sk);
	account(sk->host);
	sk->snd.advice = p->grant;
	sk->state = SK_OPEN;
	sk->progress_us = sim_us();
	return sk;
}

/* connected_rcv(), esp_ack_rcv() */
static void connected_rcv(struct esp_sk *sk, struct packet *p)
{
	bool late = (u32)sim_us() - sk->ts_at < LATE_US && esp_before(p->ts_val, sk->ts_val);

	if (!late)
		remember_ts(sk, p);
	if (sk->echo) {
		sk->echo = 0;
		timer_clear(sk, T_CONN);
	}
	if (p->flags & PKT_LEFT)
		esp_ackq_left(&sk->grant, p->seq + !!p->len + p->left);
	if (!ack_rcv(sk, p, sim_us(), late))
		return;
	if (p->flags & PKT_RRQ)
		rrq_rcv(sk, p, sim_us());
	if (sk->unsent)
		push_frames(sk);
	if (sk->client)
		conn_acked(sk->conn);
	if (sk->state != SK_OPEN)
		return;
	if (!p->len) {
		if (!(p->flags & PKT_RRQ))
			empty_rcv(sk, p);
		return;
	}
	if (p->flags & PKT_TXS)
		sk->first_burst = min_t(u32, p->burst, ESP_PORT_FRAMES);
	if (esp_ackq_came(queue_of(sk), &sk->grant, 1, p->bytes, p->flags & PKT_BUSY,
			  (u32)sim_us() - p->ts_ecr, sim_now))
		esp_ack_pump(queue_of(sk));
	data_rcv(sk, p);
}

/**
 * esp_input() - receive a frame: esp_rcv(), esp_do_rcv()
 * @p:	frame; the caller frees it
 */
void esp_input(struct packet *p)
{
	struct esp_sk *sk = p->conn->esp[p->to_server];

	if (p->conn->closed && (!sk || sk->state != SK_OPEN))
		return;
	if (p->flags & PKT_SYN) {
		if (p->to_server)
			answer_syn(p->conn, p);
		else
			syn_acked(sk, p);
		return;
	}
	if (!sk) {
		sk = make_child(p->conn, p);
		remember_ts(sk, p);
	}
	if (sk->state == SK_OPEN)
		connected_rcv(sk, p);
}

/**
 * esp_close() - close both ends of a connection on which all data is acknowledged
 * @c:	connection
 *
 * Stands for the exchange of FINs, which flow control does not touch. The server's end is gone
 * at once (LAST_ACK). The client's end stays for TIME_WAIT, and so does its reference to the
 * peer (esp_destruct()).
 */
void esp_close(struct conn *c)
{
	struct esp_sk *sk = c->esp[0];

	if (c->closed)
		return;
	c->closed = true;
	closed(c->esp[1]);
	ackq_leave(sk);
	list_del_init(&sk->ready);
	memset(sk->deadline, 0, sizeof(sk->deadline));
	sk->state = SK_TIME_WAIT;
	sk->host->timewait++;
	account(sk->host);
	timer_set(sk, T_CONN, sim_us() + TIME_WAIT_US);
}

/**
 * esp_all_acked() - has the sender nothing left to do?
 * @c:	connection
 *
 * Return: true if so
 */
bool esp_all_acked(const struct conn *c)
{
	const struct esp_sk *sk = c->esp[0];

	return !sk->unsent && sk->snd.una_seq == sk->snd.send_next;
}

/**
 * esp_free() - free the ends of a connection that nothing refers to
 * @c:	connection
 */
void esp_free(struct conn *c)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!c->esp[i])
			continue;
		free(c->esp[i]->sent);
		free(c->esp[i]->kept);
		free(c->esp[i]);
	}
}

/**
 * esp_look() - count the hosts with a queued grant, and those of them whose port is idle
 */
void esp_look(void)
{
	u32 i;

	for (i = 0; i < cfg.hosts; i++) {
		if (!hosts[i].ackq.qlen)
			continue;
		state.waits++;
		state.waits_idle += !net_edge_backlog(i);
	}
}
