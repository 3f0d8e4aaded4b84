// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ACK queue: which sender may send next.
 *
 *   data, TXS, pressure lifted
 *            |
 *            v                                  while outstanding is below the budget
 *      esp_ackq_park --> struct esp_turns --> esp_ack_pump ---> ACK leaves
 *                                               ^
 *      arrivals, TXF, expiry, close: tokens ----+
 *
 * Turns go by host and length (turn.h). Hosts whose bucket has no room for a grant wait aside until
 * their packets arrive (budget.h, tokens.h). Under the seed's policy, esp_ack_queue takes the place
 * of struct esp_turns, and a single sender's grant leaves at once (esp_ackq_fast()).
 */
#include "ackq.h"
#include "tokens.h"

/* How often does a turn go by waiting time? */
static void ackq_order(struct esp_ackq *q, const struct esp_policy *p)
{
	q->turns.every = p->shortest_first ? ESP_TURN_FIFO : 1;
}

/**
 * esp_ackq_init() - Initialize an empty queue
 * @q:		queue
 * @p:		policy
 * @b:		budget of the link
 * @ops:	functions by which the queue reaches the sockets
 */
void esp_ackq_init(struct esp_ackq *q, const struct esp_policy *p, struct esp_budget *b,
		   const struct esp_ackq_ops *ops)
{
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->esp_ack_queue);
	esp_turns_init(&q->turns);
	esp_overdue_init(&q->overdue);
	q->leaves_at = INT_MAX;
	q->budget = b;
	q->qlen = 0;
	atomic_set(&q->outstanding, 0);
	atomic_set(&q->esp_recv_count, 0);
	q->policy = *p;
	ackq_order(q, p);
	q->until = 0;
	q->ops = ops;
}

/**
 * esp_grant_init() - Initialize a grant of no packets
 * @g:		grant of a socket that is being connected
 * @recv_seq:	first data packet expected
 */
void esp_grant_init(struct esp_grant *g, u32 recv_seq)
{
	INIT_LIST_HEAD(&g->turn.link);
	INIT_LIST_HEAD(&g->turn.in_class);
	g->host = NULL;
	g->end = recv_seq;
	g->window = 0;
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
	g->start = recv_seq;
	g->sole_from = recv_seq;
	g->ended = 0;
	g->each = 0;
	g->near = 0;
}

/* Does the budget decide? Otherwise the seed's policy does. Stable under the lock. */
static bool ackq_adaptive(const struct esp_ackq *q)
{
	return READ_ONCE(q->policy.adaptive);
}

/**
 * esp_ackq_forget() - Forget a host
 * @q:	queue
 * @h:	bucket of the host, without grants and tokens; the caller frees it
 */
void esp_ackq_forget(struct esp_ackq *q, struct esp_host *h)
{
	spin_lock_bh(&q->lock);
	esp_overdue_forget(&q->overdue, h);
	if (q->budget && q->budget->voter == h)
		q->budget->voter = NULL;
	spin_unlock_bh(&q->lock);
}

/*
 * Reserve @n tokens if the seed's policy lets a grant leave. @fast: the caller holds no lock
 * and has seen the queue empty; otherwise it holds the lock.
 */
static bool ackq_reserve(struct esp_ackq *q, u32 n, bool fast)
{
	int open = atomic_read(&q->outstanding);

	if (!fast)
		lockdep_assert_held(&q->lock);
	do {
		int count = atomic_read(&q->esp_recv_count);

		if (fast ? !esp_policy_fast(count) : !esp_policy_release(q->qlen, open, count))
			return false;
	} while (!atomic_try_cmpxchg(&q->outstanding, &open, open + n));
	return true;
}

/*
 * Is the sender on the same host, so that no port between the two drops packets? Then only memory
 * bounds its grants (rule 20). While packets are missing, they are like others.
 */
static bool ackq_near(const struct esp_ackq *q, const struct esp_grant *g)
{
	return ackq_adaptive(q) && esp_host_near(g->host) && !READ_ONCE(g->expired) &&
	       !READ_ONCE(g->ooo_pkts);
}

/**
 * esp_ackq_due() - Is another grant due while the budget decides?
 * @q:	queue
 * @g:	grant with an announced transmission; the caller owns its socket
 *
 * That of a sender on the same host is due when half of what memory has room for has come: few
 * large grants cost less than many small ones.
 *
 * Return: true if so
 */
bool esp_ackq_due(const struct esp_ackq *q, struct esp_grant *g)
{
	u32 burst = READ_ONCE(q->policy.burst_length), recv_seq = READ_ONCE(g->recv_seq), most;

	if (!esp_ackq_wants(g) && !READ_ONCE(g->expired))
		return false;
	if (!ackq_near(q, g))
		return true;
	most = q->ops->room(g, recv_seq) - recv_seq;
	if (burst)
		most = min(most, burst);
	return atomic_read(&g->outstanding) <= (int)most / 2;
}

/**
 * esp_ackq_fast() - Give a grant at once if the queue is empty (rule 15)
 * @q:	queue
 * @g:	grant, not queued; the caller owns its socket
 *
 * Under the seed's policy. The budget's grants are queued, for the turns, but for those of a sender
 * on the same host: no port is between the two, so it waits for nobody.
 *
 * Return: true if the caller is to send the ACK; false if it is to queue the grant,
 * unless @g->rcv_mem_pressure tells that memory is short
 */
bool esp_ackq_fast(struct esp_ackq *q, struct esp_grant *g)
{
	bool near = ackq_near(q, g);
	u32 n = near ? esp_grant_want(g) : esp_policy_grant(&q->policy);
	bool ok;

	if (!near &&
	    (ackq_adaptive(q) || READ_ONCE(q->qlen) || !ackq_reserve(q, n, true)))
		return false;
	ok = esp_grant_extend(q, g, &n, near);
	if (!ok)
		WRITE_ONCE(g->rcv_mem_pressure, 1);
	/* a queued grant may have waited for tokens that esp_grant_extend() gave back */
	esp_ack_pump(q);
	return ok;
}

/*
 * May @g have more outstanding than the budget? It is the only one with an announced transmission,
 * and since it last began after a pause as much has come as a port has room for: those who began
 * with it have announced theirs. While packets are missing, or after a grant that did not come,
 * only the budget counts.
 */
static bool grant_sole(const struct esp_ackq *q, const struct esp_grant *g)
{
	return READ_ONCE(g->recv_seq) - g->sole_from >= ESP_PORT_FRAMES && !g->expired &&
	       !READ_ONCE(g->ooo_pkts) &&
	       esp_budget_limit(q->budget, atomic_read(&q->esp_recv_count)) >
	       READ_ONCE(q->budget->size);
}

/*
 * Packets that may be outstanding when @g has the next grant; @sole: grant_sole(). A sole sender's
 * own overdue packets count: nobody else waits for them.
 */
static int grant_limit(const struct esp_ackq *q, const struct esp_grant *g, bool sole)
{
	if (sole)
		return esp_budget_limit(q->budget, 1) + q->overdue.tokens -
		       g->host->overdue;
	return q->budget->size + q->overdue.tokens;
}

/*
 * Up to how many outstanding packets does a sole sender's grant leave? It waits until it can have
 * ESP_GRANT_MAX packets, as far as the link goes on meanwhile: a BDP is outstanding, or half of
 * @limit. If the sender's bucket or the receive buffer has less room in all than that, the grant
 * waits for half of that room. It has @n packets at least.
 */
static int sole_leaves_at(struct esp_ackq *q, struct esp_grant *g, int limit, u32 n)
{
	u32 busy = min_t(u32, limit / 2, q->budget->bdp + ESP_SPARE);
	u32 wish = max(n, min_t(u32, ESP_GRANT_MAX, limit - busy));
	u32 recv_seq = READ_ONCE(g->recv_seq);
	u32 most = min(q->ops->room(g, recv_seq) - recv_seq, esp_host_cap(q->budget, g->host, 1));
	int others = atomic_read(&q->outstanding) - atomic_read(&g->host->outstanding);
	int at = (int)(most - min(wish, most / 2)) + max(others, 0);

	if (at >= limit - (int)wish)
		return limit - wish;
	q->budget->idle = q->ops->now();	/* it does not wait for the budget */
	return at;
}

/* Put @g among the grants of its host. A grant that has expired is one of the shortest. */
static void turn_add(struct esp_ackq *q, struct esp_grant *g, bool first)
{
	esp_turn_add(&q->turns, &g->host->turn, &g->turn, g->expired ? 0 : READ_ONCE(g->class),
		     first);
	esp_bucket_ready(q, g->host);
}

/* Queue @g at the head, or at the tail: among the grants of its host, if the budget decides. */
static void link_grant(struct esp_ackq *q, struct esp_grant *g, bool first)
	__must_hold(&q->lock)
{
	lockdep_assert_held(&q->lock);
	if (ackq_adaptive(q))
		turn_add(q, g, first);
	else if (first)
		list_add(&g->turn.link, &q->esp_ack_queue);
	else
		list_add_tail(&g->turn.link, &q->esp_ack_queue);
	WRITE_ONCE(g->queued, 1);
	WRITE_ONCE(q->qlen, q->qlen + 1);
}

/**
 * esp_ackq_park() - Queue a grant
 * @q:		queue
 * @g:		grant, not queued; the caller owns its socket and gives the
 *		queue a reference
 *
 * The caller pumps next: a token may have come back in the meantime.
 */
void esp_ackq_park(struct esp_ackq *q, struct esp_grant *g)
{
	spin_lock_bh(&q->lock);
	g->expired = min_t(u8, g->expired, 1);	/* something has come since */
	link_grant(q, g, false);
	spin_unlock_bh(&q->lock);
	smp_mb();	/* write qlen before outstanding is read; pairs with tokens_back() */
}

/**
 * esp_ackq_expired() - Queue a grant whose packets did not arrive (rule 17)
 * @q:		queue
 * @g:		grant, without tokens; the caller owns its socket
 * @again:	nothing has arrived since the expiry before
 *
 * The sender had its turn already, so the grant goes to the head, unless it is queued
 * anyway. A sender that was silent before, perhaps for ever, gets one token only: many
 * senders that have died together must not hold tokens that live ones could use. The
 * caller pumps next.
 *
 * Return: true if the grant was not queued: the queue takes a reference
 */
bool esp_ackq_expired(struct esp_ackq *q, struct esp_grant *g, bool again)
{
	bool was;

	spin_lock_bh(&q->lock);
	was = g->queued;
	g->expired = again ? 2 : 1;
	g->sole_from = READ_ONCE(g->recv_seq);
	if (!was)
		link_grant(q, g, true);
	spin_unlock_bh(&q->lock);
	smp_mb();	/* as in esp_ackq_park() */
	return !was;
}

static void unlink_grant(struct esp_ackq *q, struct esp_grant *g)
	__must_hold(&q->lock)
{
	lockdep_assert_held(&q->lock);
	if (ackq_adaptive(q))
		esp_turn_del(&q->turns, &g->host->turn, &g->turn);
	else
		list_del_init(&g->turn.link);
	WRITE_ONCE(q->qlen, q->qlen - 1);
	if (!q->qlen && ackq_adaptive(q))
		q->budget->idle = q->ops->now();
	/* the owner may write @g again: publish all writes to it before */
	smp_store_release(&g->queued, 0);
}

/*
 * Find the grant that leaves now, and its size. Hosts that may get no complete grant are parked
 * on the way. Each of them had been made ready by packets of it, so this is O(1) for a packet.
 * @wait: time until the link keeps up, nanoseconds; 0: the grant does not wait for that.
 */
static struct esp_grant *turn_take(struct esp_ackq *q, u32 *n, u32 *wait)
	__must_hold(&q->lock)
{
	struct esp_budget *b = q->budget;
	int open = atomic_read(&q->outstanding), limit, at;
	u32 quantum = esp_budget_quantum(q->budget), room;
	struct esp_turn_grant *t;
	struct esp_host *h;
	struct esp_turn *th;
	struct esp_grant *g;
	u32 until, due;
	bool sole;
	u64 now;

	lockdep_assert_held(&q->lock);
	*wait = 0;
	while ((th = esp_turn_host(&q->turns))) {
		h = container_of(th, struct esp_host, turn);
		t = esp_turn_next(&q->turns, th);
		g = container_of(t, struct esp_grant, turn);
		*n = esp_bucket_quantum(q, h, min(quantum, esp_grant_want(g)));
		now = q->ops->now();
		due = esp_overdue_look(&q->overdue, now, esp_budget_due(b));
		sole = grant_sole(q, g);
		limit = grant_limit(q, g, sole);
		at = sole ? sole_leaves_at(q, g, limit, *n) : limit - (int)*n;
		if (open > 0 && open > at) {
			WRITE_ONCE(q->leaves_at, at);
			smp_mb();	/* pairs with tokens_back() */
			open = atomic_read(&q->outstanding);
			if (open <= 0 || open <= at)
				continue;
			/* a sole sender waits for no overdue packets but others' */
			*wait = sole && open <= atomic_read(&h->outstanding) ? 0 : due;
			return NULL;
		}
		*wait = esp_budget_wait(b, sole, now);
		if (*wait) {
			until = (u32)div_u64(now + *wait, 1000);
			WRITE_ONCE(q->until, until ? until : 1);
			return NULL;
		}
		if (esp_bucket_allows(q, h, *n))
			break;
		esp_turn_park(&q->turns, th, esp_bucket_full(q, h));
		smp_mb();	/* write parked before outstanding is read; tokens_back() */
		if (esp_bucket_allows(q, h, *n))
			esp_turn_unpark(&q->turns, th);
	}
	if (!th) {
		/* it is not the budget that grants wait for */
		if (!q->turns.full)
			b->idle = q->ops->now();
		return NULL;
	}
	/* a short message, or a sole host, gets all that it wants, as far as the budget goes */
	room = max_t(int, esp_bucket_room(q, h), 1);
	if ((!esp_turn_fifo(&q->turns) || th->link.next == th->link.prev) && limit > open)
		*n = max(*n, min3(esp_grant_want(g), (u32)(limit - open),
				  (u32)(sole ? ESP_GRANT_MAX : ESP_SLACK_FRAMES)));
	*n = min(*n, room);
	return g;
}

/* esp_ack_pump() while the budget decides. */
static void ackq_pump_turns(struct esp_ackq *q)
{
	struct esp_grant *g;
	u32 n, wait, turns;
	u64 now;

	while (READ_ONCE(q->qlen)) {
		spin_lock_bh(&q->lock);
		WRITE_ONCE(q->leaves_at, INT_MAX);
		g = turn_take(q, &n, &wait);
		if (!g) {
			spin_unlock_bh(&q->lock);
			if (wait)
				q->ops->later(q, wait);
			return;
		}
		turns = DIV_ROUND_UP(n, esp_budget_quantum(q->budget));
		atomic_add(n, &q->outstanding);
		if (!esp_grant_extend(q, g, &n, false))
			WRITE_ONCE(g->rcv_mem_pressure, 1);
		now = q->ops->now();
		esp_overdue_granted(&q->overdue, g->host, n, now + esp_budget_due(q->budget));
		esp_budget_spend(q->budget, n, READ_ONCE(g->each), now);
		/* after a second expiry there is one token, until its packet comes */
		if (n && g->expired < 2 && (g->expired || esp_ackq_wants(g)) &&
		    !ackq_near(q, g)) {
			/* it stays queued all the time: the owner must not queue it, too */
			q->ops->get(g);
			esp_turn_del(&q->turns, &g->host->turn, &g->turn);
			turn_add(q, g, false);
		} else {
			unlink_grant(q, g);
		}
		esp_turn_over(&q->turns, &g->host->turn, turns);
		spin_unlock_bh(&q->lock);
		q->ops->send(g);
	}
}

static struct esp_grant *first_grant(struct esp_ackq *q)
{
	return list_first_entry(&q->esp_ack_queue, struct esp_grant, turn.link);
}

/* esp_ack_pump() under the seed's policy. */
static void ackq_pump_seed(struct esp_ackq *q)
{
	struct esp_grant *g;
	u32 n;

	while (READ_ONCE(q->qlen)) {
		spin_lock_bh(&q->lock);
		n = esp_policy_grant(&q->policy);
		/* empty although grants are queued: the policy has changed just now */
		if (list_empty(&q->esp_ack_queue) || !ackq_reserve(q, n, false)) {
			spin_unlock_bh(&q->lock);
			return;
		}
		g = first_grant(q);
		if (!esp_grant_extend(q, g, &n, false))
			WRITE_ONCE(g->rcv_mem_pressure, 1);
		unlink_grant(q, g);
		spin_unlock_bh(&q->lock);
		q->ops->send(g);
	}
}

/**
 * esp_ack_pump() - Release heads of the queue while the policy allows it
 * @q:	queue
 *
 * To be called after every change of outstanding, budget, queue, policy, or of a
 * socket's or device's state (rule 14). The exception are packets that arrive while the
 * pump would release nothing (esp_ackq.leaves_at, esp_ackq_paced()). May be called under a
 * socket's lock: to send the grant of another socket takes only the timer lock of that one.
 */
void esp_ack_pump(struct esp_ackq *q)
{
	if (ackq_adaptive(q))
		ackq_pump_turns(q);
	else
		ackq_pump_seed(q);
}

/**
 * esp_ackq_resume() - Resume the queue when the time that esp_ackq_ops.later got is over
 * @q:	queue
 *
 * The lock serves a context that asks for a call at this moment: either it sees that
 * this call has come, or this call does its work.
 */
void esp_ackq_resume(struct esp_ackq *q)
{
	spin_lock_bh(&q->lock);
	WRITE_ONCE(q->until, 0);
	spin_unlock_bh(&q->lock);
	esp_ack_pump(q);
}

/**
 * esp_ackq_remove() - Take a grant out of the queue
 * @q:	queue
 * @g:	grant; the caller owns its socket
 *
 * Return: true if the grant was queued: the queue's reference is the caller's
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
 * esp_ackq_announced() - Begin a transmission that the sender has announced
 * @q:		queue
 * @g:		grant; the caller owns its socket
 * @recv_seq:	number after the packet that announced it
 * @edge:	end of the first burst that the sender was told
 *
 * The rest of that burst is on its way, and has its tokens: other senders wait for it.
 * Some of it may be here already, and packets beyond it, too: esp_tokens_consumed() takes
 * surplus tokens back. The caller starts the RRQ timer, once recv_seq has moved.
 */
void esp_ackq_announced(struct esp_ackq *q, struct esp_grant *g, u32 recv_seq,
			u32 edge)
{
	int room;
	u64 now;
	u32 n;

	if (esp_before(edge, recv_seq))
		edge = recv_seq;
	g->granted_once = 0;
	g->expired = 0;
	g->start = recv_seq;
	g->class = esp_turn_class(esp_after(g->end, recv_seq) ? g->end - recv_seq : 0);
	g->token_start = recv_seq;
	WRITE_ONCE(g->edge, edge);
	smp_wmb();	/* write the edge before recv_announced; pairs with frame_grant() */
	WRITE_ONCE(g->recv_announced, 1);
	n = edge - recv_seq;
	atomic_inc(&q->esp_recv_count);
	if (ackq_adaptive(q)) {
		/*
		 * A first burst that a host claims counts as far as its bucket has room, and all
		 * such claims together as far as the budget or a port has.
		 */
		spin_lock_bh(&q->lock);
		room = max_t(u32, q->budget->size, ESP_PORT_FRAMES) - atomic_read(&q->outstanding);
		n = min3(n, esp_bucket_room(q, g->host), (u32)max(room, 0));
		now = q->ops->now();
		esp_burst_begins(q->budget, &g->window, now);
		if (now - g->ended > esp_burst_window(q->budget))
			g->sole_from = recv_seq;	/* others may begin together with it */
		WRITE_ONCE(q->leaves_at, INT_MAX);	/* a sole sender is none any more */
		esp_overdue_granted(&q->overdue, g->host, n, now + esp_budget_due(q->budget));
		atomic_add(n, &q->outstanding);
		esp_grant_tokens(g, n);
		spin_unlock_bh(&q->lock);
		return;
	}
	atomic_add(n, &q->outstanding);
	esp_grant_tokens(g, n);
}

/**
 * esp_ackq_left() - Take what a sender tells to be left (option LEFT)
 * @g:		grant; the caller owns its socket
 * @end:	number after the last packet on the sender's write queue
 *
 * The end moves only away; what is told before the announcement, because that was lost, counts,
 * too. The class goes by the whole length, so that it only rises, and transmissions of the same
 * length take turns to their end.
 */
void esp_ackq_left(struct esp_grant *g, u32 end)
{
	u8 class;

	if (!esp_after(end, g->end))
		return;
	WRITE_ONCE(g->end, end);
	if (!g->recv_announced)
		return;
	class = esp_turn_class(end - g->start);
	if (class > g->class)
		WRITE_ONCE(g->class, class);
}

/**
 * esp_ackq_gap() - Take note that packets of a sender are missing
 * @q:	queue
 *
 * A sender with a gap is no sole one (esp_grant.ooo_pkts, which the caller has written). So the
 * caller's esp_tokens_arrived() for the packet after the gap asks it to pump.
 */
void esp_ackq_gap(struct esp_ackq *q)
{
	spin_lock_bh(&q->lock);
	WRITE_ONCE(q->leaves_at, INT_MAX);
	spin_unlock_bh(&q->lock);
}

/**
 * esp_ackq_came() - Count data packets, for the budget
 * @q:		queue
 * @g:		grant; the caller owns its socket
 * @count:	packets, new ones and duplicates
 * @bytes:	their length, with framing
 * @busy:	they have BUSY
 * @rtt:	round trip that they tell, microseconds; 0: none
 * @now:	nanoseconds
 *
 * Return: true if the caller is to pump
 */
bool esp_ackq_came(struct esp_ackq *q, struct esp_grant *g, u32 count, u32 bytes, bool busy,
		   u32 rtt, u64 now)
{
	struct esp_host *h = g->host;
	u32 bytes_each;
	bool ready;

	if (!ackq_adaptive(q))
		return false;
	bytes_each = bytes / max(count, 1u);
	if (READ_ONCE(g->each) != bytes_each)
		WRITE_ONCE(g->each, g->each ? (7 * g->each + bytes_each) / 8 : bytes_each);
	if (!ackq_near(q, g))	/* the link has not carried them */
		atomic_add(bytes, &q->budget->bytes);
	if (!esp_host_came(q->budget, h, count, busy, rtt, now))
		return false;
	spin_lock_bh(&q->lock);
	esp_host_round(q->budget, h, now);
	ready = esp_bucket_ready(q, h);
	spin_unlock_bh(&q->lock);
	return ready;
}

/* Does a grant wait for the budget, and for nothing else? */
static bool ackq_holds(const struct esp_ackq *q)
{
	return esp_turn_host(&q->turns) || q->turns.full;
}

/**
 * esp_ackq_rtt() - Adapt the budget of a link, once a round trip of each connection
 * @q:		queue
 * @g:		grant; the caller owns its socket
 * @least:	see esp_budget_rtt()
 * @rtt:	see esp_budget_rtt()
 * @now:	nanoseconds
 *
 * Return: true if the caller is to pump
 */
bool esp_ackq_rtt(struct esp_ackq *q, struct esp_grant *g, u32 least, u32 rtt, u64 now)
{
	bool announced = READ_ONCE(g->recv_announced);

	if (!ackq_adaptive(q) ||
	    (!announced && (s64)(now - READ_ONCE(g->host->voted) - ESP_LOOK_NS) < 0))
		return false;
	spin_lock_bh(&q->lock);
	if (announced) {
		esp_budget_rtt(q->budget, g->host, least, rtt, atomic_read(&q->esp_recv_count),
			       now);
		esp_budget_look(q->budget, ackq_holds(q), now);
	} else {
		/* whatever is announced comes from other connections */
		esp_budget_rtt(q->budget, g->host, least, rtt, 2, now);
	}
	spin_unlock_bh(&q->lock);
	return true;
}

/**
 * esp_ackq_lost() - Adapt budget and bucket after packets were lost
 * @q:	queue
 * @g:	grant; the caller owns its socket
 */
void esp_ackq_lost(struct esp_ackq *q, struct esp_grant *g)
{
	if (!ackq_adaptive(q))
		return;
	spin_lock_bh(&q->lock);
	esp_budget_lost(q->budget, g->host, atomic_read(&q->outstanding), q->ops->now());
	spin_unlock_bh(&q->lock);
}

/**
 * esp_ackq_ended() - End the announced transmission: TXF came, or it is given up
 * @q:	queue
 * @g:	grant, not queued; the caller owns its socket, and pumps
 */
void esp_ackq_ended(struct esp_ackq *q, struct esp_grant *g)
{
	if (!g->recv_announced)
		return;
	WRITE_ONCE(g->recv_announced, 0);
	WRITE_ONCE(g->end, g->recv_seq);
	g->ended = q->ops->now();
	atomic_dec(&q->esp_recv_count);
	smp_mb();	/* write the count before qlen is read */
}

/* Let queued grants wait as the other policy has it; @adaptive: the budget decides from now on. */
static void ackq_switch(struct esp_ackq *q, bool adaptive)
	__must_hold(&q->lock)
{
	struct esp_turn_grant *t;
	struct esp_turn *h;

	lockdep_assert_held(&q->lock);
	WRITE_ONCE(q->policy.adaptive, adaptive);
	WRITE_ONCE(q->until, 0);
	WRITE_ONCE(q->leaves_at, INT_MAX);
	if (adaptive) {
		while (!list_empty(&q->esp_ack_queue)) {
			struct esp_grant *g = first_grant(q);

			list_del_init(&g->turn.link);
			turn_add(q, g, false);
		}
		return;
	}
	while ((h = esp_turn_any(&q->turns))) {
		t = list_first_entry(&h->grants, struct esp_turn_grant, link);
		esp_turn_del(&q->turns, h, t);
		list_add_tail(&t->link, &q->esp_ack_queue);
	}
}

/**
 * esp_ackq_policy() - Set the policy that an administrator has changed
 * @q:	queue
 * @p:	policy
 */
void esp_ackq_policy(struct esp_ackq *q, const struct esp_policy *p)
{
	spin_lock_bh(&q->lock);
	esp_budget_limits(q->budget, p->q_min, p->q_max, p->first_pool);
	if (p->adaptive != q->policy.adaptive)
		ackq_switch(q, p->adaptive);
	ackq_order(q, p);
	q->policy.shortest_first = p->shortest_first;
	q->policy.q_min = p->q_min;
	q->policy.q_max = p->q_max;
	/* contexts without the lock read these, too */
	WRITE_ONCE(q->policy.burst_length, p->burst_length);
	WRITE_ONCE(q->policy.first_pool, p->first_pool);
	spin_unlock_bh(&q->lock);
	smp_mb();	/* write the policy before outstanding is read; tokens_back() */
	esp_ack_pump(q);
}
