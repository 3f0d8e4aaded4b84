// SPDX-License-Identifier: GPL-2.0-only
/*
 * Managing the ACK queue: its sockets' side (seed's section of this name;
 * rules 10-18, 20). The queue itself is in ackq.c.
 */
#include "esp.h"
#include "dev.h"
#include "first_burst.h"
#include "grant.h"
#include "link.h"
#include "memory.h"
#include "negotiate.h"
#include "output.h"
#include "timer.h"
#include "trace.h"

static struct esp_opt *grant_owner(struct esp_grant *g)
{
	return container_of(g, struct esp_opt, grant);
}

/*
 * What others are allowed to send may arrive first: how long that takes. Of
 * first bursts whose announcement is on its way nobody knows; they begin when
 * this one's does.
 */
static u32 grant_others_time(struct esp_opt *esp, u64 now)
{
	struct esp_ackq *q = &esp->link->ackq;
	int n = atomic_read(&q->outstanding) - atomic_read(&esp->grant.outstanding);
	s64 first = READ_ONCE(esp->first_until) - now;
	s64 known = n > 0 ? esp_qctl_wire_time(&q->ctl, n) : 0;

	return max(first, known);
}

/*
 * Time for granted packets to come: the RRQ timer's (rule 17). On a slow link,
 * or machine, it is some frames' time.
 */
static u32 grant_expiry_time(struct esp_opt *esp, u64 now)
{
	const struct esp_conf *conf = &esp->ns->conf;
	u32 hi = 1000 * READ_ONCE(conf->rto_max_ms);
	u32 lo = max_t(u32, READ_ONCE(conf->rrq_min_us),
		       esp_qctl_wire_time(&esp->link->ackq.ctl, ESP_EXTRA_FRAMES));
	u32 wait = esp_rtt_timeout(&esp->rtt, grant_others_time(esp, now), lo, hi);

	return esp_rtt_backoff(wait, READ_ONCE(esp->expiries), hi);
}

/*
 * Packets were permitted and did not come. A token for each is the rule; but
 * after an expiry it is a few at a time (esp_ackq_expired()), and when those
 * have come nobody else may watch over the rest.
 */
static bool grant_packets_due(struct esp_opt *esp)
{
	struct esp_grant *g = &esp->grant;

	return READ_ONCE(g->recv_announced) && !READ_ONCE(g->queued) &&
	       esp_after(READ_ONCE(g->edge), READ_ONCE(esp->recv_seq));
}

/**
 * esp_start_rrq_timer() - permission has left, or a first burst is on its way
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
 * How much room is worth telling of: a packet at a time, as the reader makes it,
 * would be an ACK for each. To whom had to stop, a quarter of the buffer: the
 * reader has the rest to read meanwhile. Any, to a probe, or if the reader waits
 * for more: it may want all of a message first. Records come in pieces only if
 * they must.
 */
static u32 grant_least_room(struct esp_opt *esp)
{
	u32 n = READ_ONCE(esp->sk.sk_rcvbuf) / 4 / READ_ONCE(esp->grant.rcv_est);

	if (esp->sk.sk_type == SOCK_SEQPACKET || !n ||
	    READ_ONCE(esp->advertise_any) || READ_ONCE(esp_memory_pressure))
		return 1;
	return READ_ONCE(esp->grant.rcv_mem_pressure) ? n :
	       min_t(u32, n, ESP_GRANT_MAX / 2);
}

/* Packets for which there is memory, beyond those that are permitted. */
static u32 grant_more_room(struct esp_opt *esp, u32 recv_seq)
{
	u32 n = esp_grant_room(esp) + READ_ONCE(esp->grant.ooo_pkts);
	u32 edge = READ_ONCE(esp->grant.edge);

	if (READ_ONCE(esp->grant.recv_announced) && esp_after(edge, recv_seq))
		n -= min(n, edge - recv_seq);
	return n < grant_least_room(esp) && READ_ONCE(esp->rcv_bytes) ? 0 : n;
}

/* Memory is reserved when permission is given (rule 20). */
static u32 grant_room(struct esp_grant *g, u32 recv_seq)
{
	struct esp_opt *esp = grant_owner(g);
	u32 edge = READ_ONCE(g->edge), n = grant_more_room(esp, recv_seq);

	if (esp_before(edge, recv_seq))
		edge = recv_seq;
	return min_t(u32, edge - recv_seq + n, ESP_SEQ_WINDOW) + recv_seq;
}

/*
 * Permission of a socket that isn't ours leaves the queue: its ACK has an
 * exit of its own, because nothing of that socket may be locked here. What is
 * read is fixed, or whole in one word; an ack_seq that is a moment old does
 * no harm.
 */
static void esp_ack_send_other(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 told = READ_ONCE(esp->recv_seq);
	struct sk_buff *skb;

	skb = esp_skb_alloc_sk(sk, ESP_ACK, 0, READ_ONCE(esp->snd.send_next));
	if (!skb)
		return;		/* the RRQ timer will say it again */
	WRITE_ONCE(esp->queue_acked_seq, told);
	ESP_INC_NS(esp->ns, OutEmpty);
	esp_finish_frame(esp->dev, skb, skb->len, 0);
	esp_dev_xmit(skb, esp->dev, esp->daddr, esp->saddr);
}

/*
 * The time in the queue is over; whoever took the permission out counts it, perhaps
 * only when the owner has queued it again. So @parked_at is read first: it is never
 * ahead of the clock.
 */
static u64 grant_count_wait(struct esp_opt *esp)
{
	u64 since = READ_ONCE(esp->queued_at), now = esp_now();

	/* a time may be missing from the sum, no more */
	data_race(esp->stats.parked_us += now - since);
	WRITE_ONCE(esp->queued_at, now);	/* where it stays for another turn */
	return now - since;
}

static void grant_send(struct esp_grant *g, bool queued)
{
	struct esp_opt *esp = grant_owner(g);
	struct sock *sk = &esp->sk;
	u64 waited;

	if (READ_ONCE(g->rcv_mem_pressure)) {
		ESP_INC(sock_net(sk), MemPressure);
		smp_mb();	/* the flag before the test; esp_pressure_lifted() */
		if (esp_grant_room(esp))	/* read just now: probe myself */
			esp_timer_set(esp, ESP_T_TELL, esp_now());
		sk->sk_data_ready(sk);
	}
	ESP_INC_NS(esp->ns, GrantReleased);
	waited = grant_count_wait(esp);
	rcu_read_lock();	/* esp_connect_failed() waits before it takes the port */
	if (smp_load_acquire(&sk->sk_state) != TCP_CLOSE) {
		trace_esp_ack_release(sk, waited);
		esp_ack_send_other(sk);
		esp_start_rrq_timer(esp);
	}
	rcu_read_unlock();
	if (queued)
		sock_put(sk);
}

static void grant_get(struct esp_grant *g)
{
	sock_hold(&grant_owner(g)->sk);
}

static void link_pump_later(struct esp_ackq *q, u32 wait)
{
	struct esp_link *link = container_of(q, struct esp_link, ackq);

	if (!hrtimer_is_queued(&link->pace))
		hrtimer_start(&link->pace, ns_to_ktime(wait),
			      HRTIMER_MODE_REL_SOFT);
}

/**
 * esp_pace_timeout() - permission that waited for the link may leave
 * @timer:	struct esp_link.pace
 *
 * Return: HRTIMER_NORESTART
 */
enum hrtimer_restart esp_pace_timeout(struct hrtimer *timer)
{
	struct esp_link *link = container_of(timer, struct esp_link, pace);

	/* not queued any more: whoever asks from now on starts it anew */
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
 * esp_announced() - the peer has announced a transmission (rules 18, 21)
 * @sk:		socket; its owner calls
 * @recv_seq:	behind the packet that announced
 * @edge:	end of the first burst
 *
 * The caller starts the RRQ timer, once recv_seq has moved.
 */
void esp_announced(struct sock *sk, u32 recv_seq, u32 edge)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_ackq *q = &esp->link->ackq;
	u64 until = esp_now();

	if (READ_ONCE(esp->link->npeers) > 1)
		until += esp_qctl_wire_time(&q->ctl,
					    READ_ONCE(q->policy.first_pool));
	WRITE_ONCE(esp->first_until, until);
	esp_ackq_announced(q, &esp->grant, recv_seq, edge);
}

/* Of what the sender was permitted, so much may still come. */
u32 esp_grant_left(struct esp_opt *esp)
{
	u32 left = READ_ONCE(esp->grant.edge) - esp->recv_seq;

	return left - min(left, esp->grant.ooo_pkts);
}

/**
 * esp_grant_due() - is it time for more permission?
 * @esp:	socket with an announced transmission; its owner calls
 *
 * A gap is no reason to let the sender run dry: what came behind it doesn't
 * count as still to come.
 *
 * Return: true if so
 */
bool esp_grant_due(struct esp_opt *esp)
{
	struct esp_ackq *q = &esp->link->ackq;
	u32 left = esp_grant_left(esp);

	if (!READ_ONCE(q->policy.adaptive))
		return esp->to_ack >= esp_ack_each(&esp->sk);
	/* nearly always: more than anybody's share */
	if (left > esp_policy_ask_most(&q->ctl))
		return false;
	return left <= esp_policy_ask(&q->policy, &q->ctl,
				      atomic_read(&q->esp_recv_count));
}

/*
 * Granted packets have come. While others are on their way, each gives them
 * the time of the RRQ timer anew: the burst's time on the wire. But a first
 * burst must be here when all that were to come are, if others wait for it.
 * After an expiry the time was backed off: the first one ends that.
 * Returns true if the caller is to pump.
 */
bool esp_grant_arrived(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);
	bool pump = esp_ackq_arrived(&esp->link->ackq, &esp->grant, f->pkt_seq,
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
	ESP_INC_NS(esp_sk(sk)->ns, HoldsSent);
	esp_send_ack(sk);
}

/**
 * esp_enqueue_ack() - permission is due
 * @sk:		socket with an announced transmission; its owner calls
 * @answer:	the sender waits for an answer (TXS, probe, or all that it was
 *		allowed has come): if the permission is parked, it gets a HOLD
 * @packets:	that came together: so many times, one by one, they would have
 *		asked
 */
void esp_enqueue_ack(struct sock *sk, bool answer, u32 packets)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	struct esp_ackq *q = &esp->link->ackq;
	u32 edge;

	if (esp_dev_usable(esp->dev))
		return;		/* no point while the device is down */
	if (smp_load_acquire(&g->queued)) {	/* unlink_grant() */
		esp->to_ack = 0;
		/* merged into the cause that is queued already (rule 11) */
		if (answer)
			send_hold(sk);
		return;
	}
	/* the reader tells when it has made room: esp_pressure_lifted() */
	if (!answer && !grant_more_room(esp, esp->recv_seq)) {
		if (esp->to_ack >= esp_ack_each(sk))
			esp_send_ack(sk);
		return;
	}
	esp->to_ack = 0;
	if (esp_ackq_fast(q, g)) {
		ESP_INC_NS(esp->ns, GrantFast);
		/* the others' requests, while something comes of them */
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
		/* nothing can be given until recvmsg() makes room (rule 20) */
		ESP_INC(sock_net(sk), MemPressure);
		sk->sk_data_ready(sk);	/* for it won't get more before it reads */
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
	esp_ackq_park(q, g);
	esp_ack_pump(q);
	if (answer && READ_ONCE(g->queued))
		send_hold(sk);
}

/**
 * esp_ackq_leave() - the socket wants no permission given any more
 * @sk:		socket, closing; its owner calls
 * @void_tokens: nothing more can come; otherwise the tokens of packets on
 *		their way stay for a moment (rule 16)
 */
void esp_ackq_leave(struct sock *sk, bool void_tokens)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_ackq *q;
	u64 waited;

	if (!esp->link)
		return;
	q = &esp->link->ackq;
	if (esp_ackq_remove(q, &esp->grant)) {
		waited = grant_count_wait(esp);
		trace_esp_ack_leave(sk, waited);
		__sock_put(sk);
	}
	if (void_tokens)
		esp_ackq_void(q, &esp->grant);
	esp_ackq_ended(q, &esp->grant);
	esp_timer_clear(esp, ESP_T_RRQ);
	esp_ack_pump(q);
}

/**
 * esp_expiry() - granted packets did not come (rule 17)
 * @sk:	socket; its lock is held
 *
 * Take the tokens back, ask for what is missing, queue up at the head. Too
 * often in a row: the sender is gone, or has stopped without a word.
 */
void esp_expiry(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;
	struct net *net = sock_net(sk);
	struct esp_ackq *q;
	u32 edge;

	if (!esp->link || (!esp_ackq_void(&esp->link->ackq, g) &&
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
		sk_mem_reclaim(sk);	/* what was charged ahead */
		if (esp_advice_changed(sk))	/* could not be told until now */
			esp_timer_set(esp, ESP_T_TELL, esp_now());
		return;
	}
	edge = READ_ONCE(g->edge);	/* it may be queued */
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
 * esp_pressure_lifted() - there is room again: recvmsg() made it, or a backlog is over
 * @sk:	socket; its owner calls
 *
 * The end of rcv_mem_pressure is a cause for an ACK; but not for every byte.
 */
void esp_pressure_lifted(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_grant *g = &esp->grant;

	smp_mb();	/* what was freed, before the flag; grant_send() */
	if (!READ_ONCE(g->rcv_mem_pressure) || !esp->link)
		return;
	if (esp->rcv_bytes && !grant_more_room(esp, esp->recv_seq))
		return;
	/* not between the flag and the end of queueing: esp_ack_pump() */
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
 * esp_any_room() - somebody can't wait until much room is made
 * @sk:	socket; its owner calls
 */
void esp_any_room(struct sock *sk)
{
	if (!READ_ONCE(esp_sk(sk)->grant.rcv_mem_pressure))
		return;
	WRITE_ONCE(esp_sk(sk)->advertise_any, 1);
	esp_pressure_lifted(sk);
}
