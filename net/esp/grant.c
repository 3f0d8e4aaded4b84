// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sockets' side of the ACK queue (the seed's section "Managing the ACK queue";
 * rules 10-18, 20). The queue itself is in core/ackq.c.
 */
#include "esp.h"
#include "dev.h"
#include "dev_queue.h"
#include "first_burst.h"
#include "grant.h"
#include "link.h"
#include "memory.h"
#include "negotiate.h"
#include "output.h"
#include "timer.h"
#include "trace.h"

#define ESP_LEAST_ROOM	16	/* packets; less free space is not advertised, as a rule */

static struct esp_opt *grant_owner(struct esp_grant *g)
{
	return container_of(g, struct esp_opt, grant);
}

/*
 * Time that packets of other senders may take if they arrive first, microseconds.
 * A first burst whose announcement is still on its way has no tokens yet. It is
 * taken to begin together with this sender's burst: esp_opt.first_until covers it.
 */
static u32 grant_others_time(struct esp_opt *esp, u64 now)
{
	struct esp_ackq *q = &esp->link->ackq;
	int n = atomic_read(&q->outstanding) + READ_ONCE(esp->grant.near) -
		atomic_read(&esp->grant.outstanding);
	s64 first = READ_ONCE(esp->first_until) - now;
	s64 known = n > 0 ? esp_link_wire_time(esp->link, n) : 0;

	return max(first, known);
}

/*
 * Timeout of the RRQ timer: the time that granted packets have to arrive (rule 17).
 * It is at least the time of ESP_SPARE frames, for a slow link or machine.
 */
static u32 grant_expiry_time(struct esp_opt *esp, u64 now)
{
	const struct esp_conf *conf = &esp->ns->conf;
	u32 hi = 1000 * READ_ONCE(conf->rrq_max_ms);
	u32 lo = max_t(u32, READ_ONCE(conf->rrq_min_us),
		       esp_link_wire_time(esp->link, ESP_SPARE));
	u32 wait = esp_rtt_timeout(&esp->rtt, grant_others_time(esp, now), lo, hi);

	return esp_rtt_backoff(wait, READ_ONCE(esp->expiries), hi);
}

/*
 * Are granted packets missing? As a rule each granted packet has a token. After an
 * expiry only a few packets at a time get one (esp_ackq_expired()). When these have
 * arrived, no token stands for the rest, but the RRQ timer must watch for it.
 */
static bool grant_packets_due(struct esp_opt *esp)
{
	struct esp_grant *g = &esp->grant;

	return READ_ONCE(g->recv_announced) && !READ_ONCE(g->queued) &&
	       esp_after(READ_ONCE(g->edge), READ_ONCE(esp->recv_seq));
}

/**
 * esp_start_rrq_timer() - Start the RRQ timer for a grant or a first burst
 * @esp:	socket; the caller owns it or holds a reference
 */
void esp_start_rrq_timer(struct esp_opt *esp)
{
	u32 wait;
	u64 now;

	if (!atomic_read(&esp->grant.outstanding) && !grant_packets_due(esp))
		return;
	now = esp_now();
	wait = grant_expiry_time(esp, now);
	WRITE_ONCE(esp->rrq_wait, wait);
	esp_timer_move(esp, ESP_T_RRQ, now, wait, 0);
}

/*
 * Smallest free space that is worth advertising, packets. The reader frees one packet
 * at a time; to advertise each would take an ACK for each. A sender that had to stop is
 * told of a quarter of the buffer: meanwhile the reader has the rest to read. A probe, or
 * a reader that waits for more, needs any free space: the reader may want a complete
 * message first. So does a seqpacket socket: its reader gets a record in pieces only if
 * there is no other way.
 */
static u32 grant_least_room(struct esp_opt *esp)
{
	u32 n = READ_ONCE(esp->sk.sk_rcvbuf) / 4 / READ_ONCE(esp->grant.rcv_est);

	if (esp->sk.sk_type == SOCK_SEQPACKET || !n ||
	    READ_ONCE(esp->advertise_any) || READ_ONCE(esp_memory_pressure))
		return 1;
	return READ_ONCE(esp->grant.rcv_mem_pressure) ? n :
	       min_t(u32, n, ESP_LEAST_ROOM);
}

/* Packets that there is memory for, beyond those that are granted already. */
static u32 grant_more_room(struct esp_opt *esp, u32 recv_seq)
{
	u32 n = esp_grant_room(esp) + READ_ONCE(esp->grant.ooo_pkts);
	u32 edge = READ_ONCE(esp->grant.edge);

	if (READ_ONCE(esp->grant.recv_announced) && esp_after(edge, recv_seq))
		n -= min(n, edge - recv_seq);
	return n < grant_least_room(esp) && READ_ONCE(esp->rcv_bytes) ? 0 : n;
}

/* Reserve memory when a grant is given (rule 20); see esp_ackq_ops.room. */
static u32 grant_room(struct esp_grant *g, u32 recv_seq)
{
	struct esp_opt *esp = grant_owner(g);
	u32 edge = READ_ONCE(g->edge), n = grant_more_room(esp, recv_seq);

	if (esp_before(edge, recv_seq))
		edge = recv_seq;
	return min_t(u32, edge - recv_seq + n, ESP_GRANT_MOST) + recv_seq;
}

/*
 * Send the ACK of a grant that leaves the queue, for a socket that the caller does not
 * own. It has a path of its own because it must not lock anything of that socket. Each
 * field that it reads is constant, or one word. An ack_seq that is slightly out of date
 * does no harm.
 */
static void esp_ack_send_other(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 told = READ_ONCE(esp->recv_seq);
	struct sk_buff *skb;

	skb = esp_skb_alloc_sk(sk, ESP_ACK, 0, READ_ONCE(esp->snd.send_next));
	if (!skb)
		return;		/* the RRQ timer will repeat the grant */
	WRITE_ONCE(esp->queue_acked_seq, told);
	ESP_INC_NS(esp->ns, OutEmpty);
	esp_finish_frame(esp->dev, skb, skb->len, 0);
	esp_devq_follow(skb, sk);
	esp_dev_xmit(skb, esp->dev, esp->daddr, esp->saddr);
}

/*
 * Count the time that a grant was queued, and return it, microseconds. The context that
 * dequeues the grant calls, perhaps after the owner has queued it again. So @queued_at
 * is read before the clock: it is never later than the clock.
 */
static u64 grant_count_wait(struct esp_opt *esp)
{
	u64 since = READ_ONCE(esp->queued_at), now = esp_now();

	/* two updates at once may lose a time from the sum, no more */
	data_race(esp->stats.parked_us += now - since);
	WRITE_ONCE(esp->queued_at, now);	/* the grant may stay queued for another turn */
	return now - since;
}

static void grant_send(struct esp_grant *g)
{
	struct esp_opt *esp = grant_owner(g);
	struct sock *sk = &esp->sk;
	u64 waited;

	if (READ_ONCE(g->rcv_mem_pressure)) {
		ESP_INC(sock_net(sk), MemPressure);
		smp_mb();	/* flag before test; pairs with esp_pressure_lifted() */
		if (esp_grant_room(esp))	/* just freed: owner, look again */
			esp_timer_set(esp, ESP_T_TELL, esp_now());
		sk->sk_data_ready(sk);
	}
	ESP_INC_NS(esp->ns, GrantReleased);
	waited = grant_count_wait(esp);
	rcu_read_lock();	/* esp_connect_failed() waits for this before it drops the link */
	if (smp_load_acquire(&sk->sk_state) != TCP_CLOSE) {
		trace_esp_ack_release(sk, waited);
		esp_ack_send_other(sk);
		esp_start_rrq_timer(esp);
	}
	rcu_read_unlock();
	sock_put(sk);
}

/* A grant leaves, and is queued again at once; see esp_ackq_ops.get. */
static void grant_get(struct esp_grant *g)
{
	struct esp_opt *esp = grant_owner(g);

	sock_hold(&esp->sk);
	/* two updates at once may lose one of them, no more */
	data_race(esp->stats.parked++);
	ESP_INC_NS(esp->ns, GrantQueued);
	trace_esp_ack_park(&esp->sk);
}

static void link_pump_later(struct esp_ackq *q, u32 wait)
{
	struct esp_link *link = container_of(q, struct esp_link, ackq);

	if (hrtimer_is_queued(&link->pace) &&
	    ktime_to_ns(hrtimer_get_remaining(&link->pace)) <= wait)
		return;
	spin_lock_bh(&link->lock);	/* another context may ask for an earlier call */
	if (!hrtimer_is_queued(&link->pace) ||
	    ktime_to_ns(hrtimer_get_remaining(&link->pace)) > wait)
		hrtimer_start(&link->pace, ns_to_ktime(wait), HRTIMER_MODE_REL_SOFT);
	spin_unlock_bh(&link->lock);
}

/**
 * esp_pace_timeout() - Release grants that waited for the link
 * @timer:	struct esp_link.pace
 *
 * Return: HRTIMER_NORESTART
 */
enum hrtimer_restart esp_pace_timeout(struct hrtimer *timer)
{
	struct esp_link *link = container_of(timer, struct esp_link, pace);

	/* the timer is not queued now: link_pump_later() can start it again */
	esp_ackq_resume(&link->ackq);
	return HRTIMER_NORESTART;
}

const struct esp_ackq_ops esp_ackq_ops = {
	.room	= grant_room,
	.send	= grant_send,
	.get	= grant_get,
	.later	= link_pump_later,
	.now	= ktime_get_ns,
};

/**
 * esp_left_far() - Take the data of a peer that does not tell their end to be long
 * @esp:	socket; its owner calls
 * @seq:	number of a packet of these data
 */
void esp_left_far(struct esp_opt *esp, u32 seq)
{
	esp_ackq_left(&esp->grant, seq + U16_MAX);
}

/**
 * esp_announced() - Begin a transmission that the peer has announced (rules 18, 21)
 * @sk:		socket; its owner calls
 * @recv_seq:	number after the packet that announced it
 * @f:		frame that announced it. With ESP_OPT_LEFT it tells the end of the data, and the
 *		first burst; otherwise the latter is what the peer was told. Without payload, none
 *		follows
 *
 * A first burst gets memory as far as there is some, and as much as one beyond: who announces
 * again and again, and never waits for a grant, does not get more.
 *
 * The caller starts the RRQ timer, once recv_seq has moved.
 */
void esp_announced(struct sock *sk, u32 recv_seq, const struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);
	int room = sk->sk_rcvbuf - atomic_read(&sk->sk_rmem_alloc);
	u64 until = esp_now();
	u32 first, edge, pool;

	sock_owned_by_me(sk);
	if (f->opts & ESP_HAS(ESP_OPT_LEFT)) {
		esp_ackq_left(&esp->grant, esp_frame_end(f));
		first = min_t(u32, f->first, ESP_ADVICE_MAX);
	} else {
		esp_left_far(esp, recv_seq);
		first = f->flags & ESP_TXS ? esp->burst_told : 1;
	}
	if (!f->len)
		first = 0;
	first = min_t(u32, first, max(room / (int)esp->grant.rcv_est + ESP_ADVICE_MAX, 0));
	edge = f->pkt_seq + first;
	if (esp_after(edge, esp->grant.end))
		edge = esp->grant.end;
	pool = READ_ONCE(esp->link->ackq.policy.first_pool);
	if (READ_ONCE(esp->link->npeers) > 1)
		until += esp_link_wire_time(esp->link, pool);
	WRITE_ONCE(esp->first_until, until);
	esp_ackq_announced(&esp->link->ackq, &esp->grant, recv_seq, edge);
}

/**
 * esp_grant_due() - Is another grant due?
 * @esp:	socket with an announced transmission; its owner calls
 *
 * A gap is no reason to let the sender run out of its grant: packets that arrived after
 * the gap do not count as outstanding.
 *
 * Return: true if so
 */
bool esp_grant_due(struct esp_opt *esp)
{
	struct esp_ackq *q = &esp->link->ackq;

	sock_owned_by_me(&esp->sk);
	if (!READ_ONCE(q->policy.adaptive))
		return esp->to_ack >= esp_ack_each(&esp->sk);
	return esp_ackq_due(q, &esp->grant);
}

/*
 * Account for granted packets that have arrived. While more are on their way, each
 * arrival restarts the RRQ timer: its timeout is the burst's time on the wire. The
 * exception is a first burst while there are other peers, because they wait for it: it
 * must be here when all first bursts are due. After an expiry the timeout was backed off;
 * the first arrival ends that. Returns true if the caller must pump.
 */
bool esp_grant_arrived(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);
	bool pump = esp_tokens_arrived(&esp->link->ackq, &esp->grant, f->pkt_seq,
				     f->segs);
	bool anew = esp->expiries;

	WRITE_ONCE(esp->expiries, 0);
	if ((READ_ONCE(esp->grant.recv_announced) || atomic_read(&esp->grant.outstanding)) &&
	    (READ_ONCE(esp->grant.granted_once) || READ_ONCE(esp->link->npeers) == 1) &&
	    (anew || READ_ONCE(esp->deadline[ESP_T_RRQ]) < esp->progress_us +
	     READ_ONCE(esp->rrq_wait) - READ_ONCE(esp->rrq_wait) / 8))
		esp_start_rrq_timer(esp);
	return pump;
}

static void send_hold(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (!esp_after(READ_ONCE(esp->grant.edge), esp->recv_seq))
		ESP_INC_NS(esp->ns, HoldsSent);
	esp_send_ack(sk);
}

/**
 * esp_enqueue_ack() - Send a grant that is due, or queue it
 * @sk:		socket with an announced transmission; its owner calls
 * @answer:	the sender waits for a reply (TXS, probe, or all that it was granted
 *		has arrived): if the grant is queued, the sender gets a HOLD at once
 * @packets:	packets that arrived together: one by one, each would have asked
 */
void esp_enqueue_ack(struct sock *sk, bool answer, u32 packets)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	struct esp_ackq *q = &esp->link->ackq;
	u32 edge;

	sock_owned_by_me(sk);
	if (esp_dev_usable(esp->dev))
		return;		/* the device is down: no ACK can leave */
	if (smp_load_acquire(&g->queued)) {	/* unlink_grant() */
		esp->to_ack = 0;
		/* the queued grant serves this cause, too (rule 11) */
		if (answer)
			send_hold(sk);
		return;
	}
	/*
	 * Without room, a sender that can still go on needs no grant now. The grant of a sender
	 * that cannot is tried, so that rcv_mem_pressure is set: esp_pressure_lifted() tells that
	 * sender when there is room.
	 */
	if (!answer && !grant_more_room(esp, esp->recv_seq) &&
	    (esp_after(READ_ONCE(g->edge), esp->recv_seq) || READ_ONCE(g->rcv_mem_pressure))) {
		if (esp->to_ack >= esp_ack_each(sk))
			esp_send_ack(sk);
		return;
	}
	esp->to_ack = 0;
	if (esp_ackq_fast(q, g)) {
		ESP_INC_NS(esp->ns, GrantFast);
		/* requests of the other packets, while each yields a grant */
		while (packets-- > 1 && esp_grant_due(esp)) {
			edge = READ_ONCE(g->edge);
			if (!esp_ackq_fast(q, g) || READ_ONCE(g->edge) == edge)
				break;
		}
		esp_start_rrq_timer(esp);
		esp_send_ack(sk);
		return;
	}
	if (READ_ONCE(g->rcv_mem_pressure)) {
		/* no grant until recvmsg() has freed space (rule 20) */
		ESP_INC(sock_net(sk), MemPressure);
		sk->sk_data_ready(sk);	/* the reader gets no more before it reads */
		esp_ack_pump(q);
		if (answer)
			send_hold(sk);
		return;
	}
	WRITE_ONCE(esp->queued_at, esp_now());
	esp->stats.parked++;
	ESP_INC_NS(esp->ns, GrantQueued);
	trace_esp_ack_park(sk);
	sock_hold(sk);
	edge = READ_ONCE(g->edge);
	esp_ackq_park(q, g);
	esp_ack_pump(q);
	if (answer && READ_ONCE(g->queued) && READ_ONCE(g->edge) == edge)
		send_hold(sk);
}

/**
 * esp_ackq_leave() - End the transmission: take the socket off the ACK queue
 * @sk:		socket; its owner calls
 * @void_tokens: true: no more packets can come; false: the tokens of packets on
 *		their way stay for a moment (rule 16)
 */
void esp_ackq_leave(struct sock *sk, bool void_tokens)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_ackq *q;
	u64 waited;

	sock_owned_by_me(sk);
	if (!esp->link)
		return;
	q = &esp->link->ackq;
	if (esp_ackq_remove(q, &esp->grant)) {
		waited = grant_count_wait(esp);
		trace_esp_ack_leave(sk, waited);
		__sock_put(sk);
	}
	if (void_tokens)
		esp_tokens_void(q, &esp->grant);
	esp_ackq_ended(q, &esp->grant);
	esp_timer_clear(esp, ESP_T_RRQ);
	esp_ack_pump(q);
}

/**
 * esp_expiry() - Handle granted packets that did not arrive (rule 17)
 * @sk:	socket; its lock is held
 *
 * Take the tokens back, ask for the missing packets, and queue the grant at the head.
 * After too many expiries in a row, the sender is gone or has stopped without notice.
 */
void esp_expiry(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	struct net *net = sock_net(sk);
	struct esp_ackq *q;
	u32 edge;

	sock_owned_by_me(sk);
	if (!esp->link || (!esp_tokens_void(&esp->link->ackq, g) &&
			   !grant_packets_due(esp)))
		return;
	q = &esp->link->ackq;
	esp->stats.expiries++;
	ESP_INC(net, Expiries);
	WRITE_ONCE(esp->expiries, esp->expiries + 1);
	if (esp->expiries > READ_ONCE(esp_net(net)->conf.expiries)) {
		WRITE_ONCE(esp->expiries, 0);
		ESP_INC(net, ExpiryAbandoned);
		esp_ackq_leave(sk, true);
		sk_mem_reclaim(sk);	/* memory that was charged ahead */
		return;
	}
	edge = READ_ONCE(g->edge);	/* the grant may be queued */
	if (g->recv_announced && esp_after(edge, esp->recv_seq)) {
		esp_send_rrq(sk, edge);
		if (!smp_load_acquire(&g->queued))	/* unlink_grant() */
			WRITE_ONCE(esp->queued_at, esp_now());
		sock_hold(sk);
		if (!esp_ackq_expired(q, g, esp->expiries > 1))
			__sock_put(sk);
	}
	esp_ack_pump(q);
}

/**
 * esp_pressure_lifted() - Advertise free space after memory pressure
 * @sk:	socket; its owner calls
 *
 * Either recvmsg() has freed space, or a backlog is over. The end of rcv_mem_pressure
 * is a cause for an ACK, but not every freed byte is: grant_least_room().
 */
void esp_pressure_lifted(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;

	sock_owned_by_me(sk);
	smp_mb();	/* free space before the flag is read; pairs with grant_send() */
	if (!READ_ONCE(g->rcv_mem_pressure) || !esp->link)
		return;
	if (esp->rcv_bytes && !grant_more_room(esp, esp->recv_seq))
		return;
	/* not while esp_ack_pump() has set the flag and not yet dequeued the grant */
	spin_lock_bh(&esp->link->ackq.lock);
	WRITE_ONCE(g->rcv_mem_pressure, 0);
	spin_unlock_bh(&esp->link->ackq.lock);
	if (g->recv_announced)
		esp_enqueue_ack(sk, true, 1);
	else
		esp_send_ack(sk);
	WRITE_ONCE(esp->advertise_any, 0);
}

/**
 * esp_any_room() - Advertise any free space, for a probe or a waiting reader
 * @sk:	socket; its owner calls
 */
void esp_any_room(struct sock *sk)
{
	sock_owned_by_me(sk);
	if (!READ_ONCE(esp_sk(sk)->grant.rcv_mem_pressure))
		return;
	WRITE_ONCE(esp_sk(sk)->advertise_any, 1);
	esp_pressure_lifted(sk);
}
