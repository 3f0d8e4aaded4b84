// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ACK queue: who may send next.
 *
 *   data, TXS, pressure lifted
 *            |
 *            v        queue empty and open < Q: a reservation on @outstanding
 *      esp_ackq_fast ------------------------------------> ACK leaves
 *            | no                                             ^
 *            v                                                |
 *      esp_ackq_park --> esp_ack_queue --> esp_ack_pump ------+
 *                                             ^    while open < Q
 *      arrivals, TXF, expiry, close: tokens --+
 */
#include "ackq.h"

/**
 * esp_ackq_init() - an empty queue
 * @q:		queue
 * @p:		policy
 * @ops:	how it reaches the sockets
 */
void esp_ackq_init(struct esp_ackq *q, const struct esp_policy *p,
		   const struct esp_ackq_ops *ops)
{
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->esp_ack_queue);
	q->qlen = 0;
	atomic_set(&q->outstanding, 0);
	atomic_set(&q->arrived, 0);
	atomic_set(&q->esp_recv_count, 0);
	q->policy = *p;
	esp_qctl_init(&q->ctl, p);
	q->until = 0;
	q->ops = ops;
}

/**
 * esp_grant_init() - nothing granted
 * @g:		permission of a socket that is being connected
 * @recv_seq:	first data packet expected
 */
void esp_grant_init(struct esp_grant *g, u32 recv_seq)
{
	INIT_LIST_HEAD(&g->link);
	g->queued = 0;
	g->rcv_mem_pressure = 0;
	g->expired = 0;
	g->recv_announced = 0;
	g->granted_once = 0;
	atomic_set(&g->outstanding, 0);
	g->recv_seq = recv_seq;
	g->ooo_pkts = 0;
	g->edge = recv_seq;
	g->token_start = recv_seq;
}

/*
 * Reserve @n tokens if the policy lets permission leave. @fast: the caller
 * has no lock and has seen the queue empty; otherwise it holds the lock.
 */
static bool ackq_reserve(struct esp_ackq *q, u32 n, u64 now, bool fast)
{
	u32 budget = READ_ONCE(q->ctl.q);
	int open = atomic_read(&q->outstanding);

	do {
		int count = atomic_read(&q->esp_recv_count);

		if (READ_ONCE(q->policy.adaptive) && esp_qctl_pace(&q->ctl, open, count, now))
			return false;

		if (fast ? !esp_policy_fast(&q->policy, budget, open, count) :
			   !esp_policy_release(&q->policy, budget, q->qlen,
					       open, count))
			return false;
	} while (!atomic_try_cmpxchg(&q->outstanding, &open, open + n));
	return true;
}

/*
 * How much @g is to get. Alone is not who was the first of many, a moment ago,
 * to announce a transmission.
 */
static u32 grant_size(struct esp_ackq *q, struct esp_grant *g)
{
	int count = atomic_read(&q->esp_recv_count);

	return esp_policy_grant(&q->policy, &q->ctl,
				atomic_read(&q->outstanding),
				READ_ONCE(g->granted_once) ? count : max(count, 2));
}

/*
 * Move the edge of @g by up to @n packets, tokens for which the caller has
 * reserved. What isn't needed goes back. Returns false if no permission at
 * all can be given, for want of memory.
 */
static bool grant_extend(struct esp_ackq *q, struct esp_grant *g, u32 n)
{
	u32 recv_seq = READ_ONCE(g->recv_seq);
	u32 burst = READ_ONCE(q->policy.burst_length);
	u32 base = esp_after(recv_seq, g->edge) ? recv_seq : g->edge;
	u32 limit = q->ops->room(g, recv_seq);
	u32 edge, take, most, open;

	if (g->expired && base != recv_seq) {
		/*
		 * Say again what was said. Nothing new may leave until there
		 * is a token for all of that; esp_ackq_consumed() takes back
		 * those of packets that are here.
		 */
		open = atomic_read(&g->outstanding);
		take = base - recv_seq > open ? base - recv_seq - open : 0;
		most = g->expired > 1 ? 1 : n;
		if (take <= most)
			g->expired = 0;
		else
			take = most;
		WRITE_ONCE(g->token_start, recv_seq);
		goto out;
	}
	g->expired = 0;
	WRITE_ONCE(g->granted_once, 1);
	if (burst && esp_after(limit, recv_seq + burst))
		limit = recv_seq + burst;
	edge = base + n;
	if (esp_after(edge, limit))
		edge = limit;
	take = esp_after(edge, base) ? edge - base : 0;
	if (take > n)
		take = n;
	if (esp_before(g->edge, recv_seq))
		WRITE_ONCE(g->token_start, recv_seq);
	WRITE_ONCE(g->edge, base + take);
out:
	atomic_add(take, &g->outstanding);
	if (take < n)
		atomic_sub_return(n - take, &q->outstanding);
	esp_qctl_spend(&q->ctl, take, q->ops->now());
	return take || g->edge != recv_seq;
}

/**
 * esp_ackq_fast() - give permission at once, past an empty queue (rule 15)
 * @q:	queue
 * @g:	permission, not queued; the caller owns its socket
 *
 * Return: true if the caller is to send the ACK; false: park, unless
 * @g->rcv_mem_pressure tells that memory is what is short
 */
bool esp_ackq_fast(struct esp_ackq *q, struct esp_grant *g)
{
	u32 n = grant_size(q, g);
	bool ok;

	if (READ_ONCE(q->qlen) || !ackq_reserve(q, n, q->ops->now(), true))
		return false;
	ok = grant_extend(q, g, n);
	if (!ok)
		WRITE_ONCE(g->rcv_mem_pressure, 1);
	/* what grant_extend() gave back may have kept somebody in the queue */
	esp_ack_pump(q);
	return ok;
}

static void link_grant(struct esp_ackq *q, struct esp_grant *g)
{
	WRITE_ONCE(g->queued, 1);
	WRITE_ONCE(q->qlen, q->qlen + 1);
}

/**
 * esp_ackq_park() - put a permission into the queue
 * @q:		queue
 * @g:		permission, not queued; the caller owns its socket and gives the
 *		queue a reference
 *
 * The caller pumps next: a token may have come back in the meantime.
 */
void esp_ackq_park(struct esp_ackq *q, struct esp_grant *g)
{
	spin_lock_bh(&q->lock);
	list_add_tail(&g->link, &q->esp_ack_queue);
	link_grant(q, g);
	spin_unlock_bh(&q->lock);
	smp_mb();	/* qlen before open is read; pairs with ackq_tokens_back() */
}

/**
 * esp_ackq_expired() - permitted packets did not come: permit them again (rule 17)
 * @q:		queue
 * @g:		permission, without tokens; the caller owns its socket
 * @again:	nothing has come since it expired before
 *
 * It had its turn already, so it goes to the head, if it doesn't wait anyway.
 * Who was silent before, perhaps for ever, gets one token only: many who have
 * died together must not hold what the others could use. The caller pumps next.
 *
 * Return: true if it was not queued: the queue takes a reference
 */
bool esp_ackq_expired(struct esp_ackq *q, struct esp_grant *g, bool again)
{
	bool was;

	spin_lock_bh(&q->lock);
	was = g->queued;
	g->expired = again ? 2 : 1;
	if (!was) {
		list_add(&g->link, &q->esp_ack_queue);
		link_grant(q, g);
	}
	spin_unlock_bh(&q->lock);
	smp_mb();	/* as in esp_ackq_park() */
	return !was;
}

/* Has @g less than its share, even now? */
static bool grant_wants_more(struct esp_ackq *q, struct esp_grant *g)
{
	u32 left = g->edge - READ_ONCE(g->recv_seq);

	left -= min(left, READ_ONCE(g->ooo_pkts));
	/* who may be gone is not to take what others could use */
	return q->policy.adaptive && !g->expired &&
	       left < q->ctl.q / max(atomic_read(&q->esp_recv_count), 1);
}

static void unlink_grant(struct esp_ackq *q, struct esp_grant *g)
{
	list_del_init(&g->link);
	WRITE_ONCE(q->qlen, q->qlen - 1);
	/* the owner may touch @g again: all that was done to it before */
	smp_store_release(&g->queued, 0);
}

/*
 * The head has to wait. If not for packets, but only for the pace: how long,
 * nanoseconds.
 */
static u32 ackq_head_waits(struct esp_ackq *q, u64 now)
{
	int open = atomic_read(&q->outstanding);
	u32 wait;

	if (!q->qlen || !q->policy.adaptive)
		return 0;
	WRITE_ONCE(q->ctl.busy, 1);
	if (open >= (int)q->ctl.q) {
		WRITE_ONCE(q->ctl.limited, 1);
		return 0;
	}
	wait = esp_qctl_pace(&q->ctl, open, atomic_read(&q->esp_recv_count), now);
	WRITE_ONCE(q->until, (u32)div_u64(now + wait, 1000));
	/* a token that has come back since: at once */
	return max_t(u32, wait, 1);
}

/**
 * esp_ack_pump() - release heads while the policy allows it
 * @q:	queue
 *
 * To be called after every change of open, budget, queue, policy, or of a
 * socket's or device's state (rule 14); not for packets that arrive while it would
 * release nothing (esp_ackq_paced()). May be called under a socket's lock:
 * what it sends for other sockets takes none of theirs.
 */
void esp_ack_pump(struct esp_ackq *q)
{
	while (READ_ONCE(q->qlen)) {
		struct esp_grant *g;
		u32 n, wait;

		/* as ackq_head_waits() would find; whoever changes that pumps */
		if (READ_ONCE(q->policy.adaptive) && READ_ONCE(q->ctl.limited) &&
		    READ_ONCE(q->ctl.busy) &&
		    atomic_read(&q->outstanding) >= (int)READ_ONCE(q->ctl.q))
			return;
		bool ok;
		int had;
		u64 now;

		spin_lock_bh(&q->lock);
		g = list_first_entry(&q->esp_ack_queue, struct esp_grant, link);
		n = q->qlen ? grant_size(q, g) : 0;
		now = q->ops->now();
		if (!n || !ackq_reserve(q, n, now, false)) {
			wait = ackq_head_waits(q, now);
			spin_unlock_bh(&q->lock);
			if (wait)
				q->ops->later(q, wait);
			return;
		}
		had = atomic_read(&g->outstanding);
		ok = grant_extend(q, g, n);
		if (!ok)
			WRITE_ONCE(g->rcv_mem_pressure, 1);
		if (atomic_read(&g->outstanding) > had && grant_wants_more(q, g)) {
			/* it would ask with its next packet: another turn */
			q->ops->get(g);
			list_move_tail(&g->link, &q->esp_ack_queue);
		} else {
			unlink_grant(q, g);
		}
		spin_unlock_bh(&q->lock);
		q->ops->send(g, true);
	}
}

/**
 * esp_ackq_resume() - the call that was asked for: esp_ackq_ops.later
 * @q:	queue
 *
 * The lock: who asks at this moment sees that it has come, or has its answer here.
 */
void esp_ackq_resume(struct esp_ackq *q)
{
	spin_lock_bh(&q->lock);
	WRITE_ONCE(q->until, (u32)div_u64(q->ops->now(), 1000));
	spin_unlock_bh(&q->lock);
	esp_ack_pump(q);
}

/**
 * esp_ackq_remove() - take a permission out of the queue
 * @q:	queue
 * @g:	permission; the caller owns its socket
 *
 * Return: true if it was there: the queue's reference is the caller's
 */
bool esp_ackq_remove(struct esp_ackq *q, struct esp_grant *g)
{
	bool was;

	spin_lock_bh(&q->lock);
	was = g->queued;
	if (was)
		unlink_grant(q, g);
	spin_unlock_bh(&q->lock);
	return was;
}

/**
 * esp_ackq_announced() - the sender has announced a transmission
 * @q:		queue
 * @g:		permission; the caller owns its socket
 * @recv_seq:	behind the packet that announced
 * @edge:	end of the first burst that the sender was advised
 *
 * The rest of that burst is on its way, and has its tokens: the others wait
 * for it. Some of it may be here, and some beyond it: esp_ackq_consumed() takes
 * back what is too much. The caller starts the RRQ timer, once recv_seq has moved.
 */
void esp_ackq_announced(struct esp_ackq *q, struct esp_grant *g, u32 recv_seq,
			u32 edge)
{
	u32 n;

	if (esp_before(edge, recv_seq))
		edge = recv_seq;
	g->granted_once = 0;
	g->expired = 0;
	g->token_start = recv_seq;
	WRITE_ONCE(g->edge, edge);
	smp_wmb();	/* the edge before the announcement; frame_grant() */
	WRITE_ONCE(g->recv_announced, 1);
	n = edge - recv_seq;
	atomic_add(n, &q->outstanding);
	atomic_add(n, &g->outstanding);
	atomic_inc(&q->esp_recv_count);
}

/**
 * esp_ackq_dry() - all that a sender was permitted has come, as one frame
 * @q:	queue
 *
 * Nobody had to wait, for nobody asked earlier: frames that come one by one
 * ask while half of them are on their way. The budget is what held it back.
 */
void esp_ackq_dry(struct esp_ackq *q)
{
	if (READ_ONCE(q->ctl.limited))
		return;
	spin_lock_bh(&q->lock);
	WRITE_ONCE(q->ctl.limited, 1);
	spin_unlock_bh(&q->lock);
}

/* Tokens are back; the caller pumps if anybody waits. */
static bool ackq_tokens_back(struct esp_ackq *q, int n)
{
	atomic_sub_return(n, &q->outstanding);	/* full barrier before qlen */
	return READ_ONCE(q->qlen);
}

/**
 * esp_ackq_arrived() - packets have arrived for the first time
 * @q:		queue
 * @g:		permission; the caller owns its socket
 * @seq:	the first one's number
 * @count:	how many
 *
 * Return: true if the caller is to pump
 */
bool esp_ackq_arrived(struct esp_ackq *q, struct esp_grant *g, u32 seq,
		      u32 count)
{
	u32 edge = READ_ONCE(g->edge), lo = READ_ONCE(g->token_start), end = seq + count;
	int n = atomic_read(&g->outstanding), take;

	atomic_add(count, &q->arrived);
	if (esp_before(seq, lo))
		seq = lo;
	if (esp_after(end, edge))
		end = edge;
	if (!esp_before(seq, end))
		return false;	/* they had none */
	do {
		take = min_t(int, n, end - seq);
		if (take <= 0)
			return false;
	} while (!atomic_try_cmpxchg(&g->outstanding, &n, n - take));
	return ackq_tokens_back(q, take);
}

/* No more tokens than packets that can still come. Returns how many were. */
static int grant_trim(struct esp_grant *g)
{
	u32 edge = READ_ONCE(g->edge);
	int left = esp_after(edge, g->recv_seq) ? edge - g->recv_seq : 0;
	int n = atomic_read(&g->outstanding);

	if (esp_after(g->recv_seq, g->token_start))
		g->token_start = g->recv_seq;	/* before it wraps */
	if (n <= left)
		return 0;
	atomic_set(&g->outstanding, left);
	return n - left;
}

/**
 * esp_ackq_consumed() - recv_seq has advanced
 * @q:	queue
 * @g:	permission; the caller owns its socket
 *
 * No more packets can come under a token than lie before the edge. There are
 * more tokens if a permission was said again (rule 17) of which some packets
 * were here, or if the sender was ahead of it.
 *
 * Return: true if the caller is to pump
 */
bool esp_ackq_consumed(struct esp_ackq *q, struct esp_grant *g)
{
	int n;

	if (smp_load_acquire(&g->queued)) {	/* unlink_grant() */
		/* others give it permission */
		spin_lock_bh(&q->lock);
		n = grant_trim(g);
		spin_unlock_bh(&q->lock);
	} else {
		n = grant_trim(g);
	}
	return n && ackq_tokens_back(q, n);
}

/**
 * esp_ackq_void() - take all tokens of a socket back (TXF, expiry, RST)
 * @q:	queue
 * @g:	permission; the caller owns its socket
 *
 * Return: how many there were; the caller pumps
 */
int esp_ackq_void(struct esp_ackq *q, struct esp_grant *g)
{
	int n = atomic_xchg(&g->outstanding, 0);

	if (n)
		ackq_tokens_back(q, n);
	return n;
}

/**
 * esp_ackq_ended() - the announced transmission is over: TXF, or given up
 * @q:	queue
 * @g:	permission, not queued; the caller owns its socket, and pumps
 */
void esp_ackq_ended(struct esp_ackq *q, struct esp_grant *g)
{
	if (!g->recv_announced)
		return;
	WRITE_ONCE(g->recv_announced, 0);
	atomic_dec(&q->esp_recv_count);
	smp_mb();	/* the count before qlen */
}

/**
 * esp_ackq_policy() - an administrator changes the policy
 * @q:	queue
 * @p:	policy
 */
void esp_ackq_policy(struct esp_ackq *q, const struct esp_policy *p)
{
	spin_lock_bh(&q->lock);
	q->policy.q_min = p->q_min;
	q->policy.q_max = p->q_max;
	/* these are read without the lock, too */
	WRITE_ONCE(q->policy.adaptive, p->adaptive);
	WRITE_ONCE(q->policy.burst_length, p->burst_length);
	WRITE_ONCE(q->policy.first_pool, p->first_pool);
	WRITE_ONCE(q->ctl.q, clamp_t(u32, q->ctl.q, p->q_min, p->q_max));
	spin_unlock_bh(&q->lock);
	esp_ack_pump(q);
}
