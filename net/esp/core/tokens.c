// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tokens: which packets may a sender and its host still send? See tokens.h.
 */
#include "tokens.h"

/**
 * esp_bucket_room() - Find how many packets a host may still get
 * @q:	queue
 * @h:	bucket of the host
 *
 * Return: the packets; 0 if the bucket is full
 */
u32 esp_bucket_room(struct esp_ackq *q, const struct esp_host *h)
{
	int room = esp_host_cap(q->budget, h, atomic_read(&q->esp_recv_count)) -
		   atomic_read(&h->outstanding);

	return max(room, 0);
}

/**
 * esp_bucket_allows() - May a host get a grant?
 * @q:	queue
 * @h:	bucket of the host
 * @n:	packets of the grant
 *
 * If nothing is on its way from the host, one grant is allowed, however small the bucket is.
 *
 * Return: true if so
 */
bool esp_bucket_allows(struct esp_ackq *q, const struct esp_host *h, u32 n)
{
	return atomic_read(&h->outstanding) <= 0 || esp_bucket_room(q, h) >= n;
}

/**
 * esp_bucket_full() - Has a bucket its largest size, so that a larger budget would enlarge it?
 * @q:	queue
 * @h:	bucket of a host
 *
 * Return: true if so
 */
bool esp_bucket_full(struct esp_ackq *q, const struct esp_host *h)
{
	int senders = atomic_read(&q->esp_recv_count);

	return !READ_ONCE(h->busy) &&
	       esp_host_cap(q->budget, h, senders) >= esp_host_most(q->budget, h, senders);
}

/**
 * esp_bucket_quantum() - Choose the size of a grant for a host
 * @q:	queue
 * @h:	bucket of the host
 * @n:	packets that another host would get
 *
 * A small bucket gets them in two parts at least, so that the host does not stand still while the
 * first one is on its way.
 *
 * Return: the size, packets, at least 1
 */
u32 esp_bucket_quantum(struct esp_ackq *q, const struct esp_host *h, u32 n)
{
	u32 cap = esp_host_cap(q->budget, h, atomic_read(&q->esp_recv_count));

	return min(n, max(cap / 2, 1u));
}

/**
 * esp_bucket_ready() - Let a parked host take part again, if its next grant may leave
 * @q:	queue; the caller holds its lock
 * @h:	bucket of the host
 *
 * Return: true if the host was parked, and takes part now
 */
bool esp_bucket_ready(struct esp_ackq *q, struct esp_host *h)
	__must_hold(&q->lock)
{
	struct esp_turn_grant *t;
	struct esp_grant *g;
	u32 n;

	lockdep_assert_held(&q->lock);
	if (!h->turn.parked)
		return false;
	if (esp_turn_fifo(&q->turns))
		t = list_first_entry(&h->turn.grants, struct esp_turn_grant, link);
	else
		t = list_first_entry(&h->turn.class[__ffs(h->turn.classes)], struct esp_turn_grant,
				     in_class);
	g = container_of(t, struct esp_grant, turn);
	n = min(esp_budget_quantum(q->budget), esp_grant_want(g));
	if (!esp_bucket_allows(q, h, esp_bucket_quantum(q, h, n)))
		return false;
	esp_turn_unpark(&q->turns, &h->turn);
	return true;
}

/**
 * esp_grant_tokens() - Add tokens to a socket and its host
 * @g:	grant of the socket
 * @n:	tokens; the caller adds them to those of the link, too
 */
void esp_grant_tokens(struct esp_grant *g, u32 n)
{
	atomic_add(n, &g->outstanding);
	atomic_add(n, &g->host->outstanding);
}

/**
 * esp_grant_extend() - Move the edge of a grant
 * @q:		queue
 * @g:		grant: a queued one, under the queue's lock, or one of the caller's socket
 * @n:		in: most packets; out: packets, as far as there is memory and the peer needs them
 * @near:	the sender is on the same host, and the link does not count its tokens. Otherwise
 *		the caller has added @n to those of the link, and what is not used goes back
 *
 * Return: false if no grant at all can be given, because memory is short
 */
bool esp_grant_extend(struct esp_ackq *q, struct esp_grant *g, u32 *n, bool near)
{
	u32 recv_seq = READ_ONCE(g->recv_seq);
	u32 burst = READ_ONCE(q->policy.burst_length);
	u32 base = esp_after(recv_seq, g->edge) ? recv_seq : g->edge;
	u32 limit = q->ops->room(g, recv_seq);
	u32 edge, take, most, open;

	if (g->expired && base != recv_seq) {
		/*
		 * Repeat the grant that expired. No new packet is granted until each packet of
		 * that grant has a token. esp_tokens_consumed() takes back the tokens of packets
		 * that are here.
		 */
		open = atomic_read(&g->outstanding);
		take = base - recv_seq > open ? base - recv_seq - open : 0;
		most = g->expired > 1 ? 1 : *n;
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
	edge = base + *n;
	if (esp_after(edge, limit))
		edge = limit;
	take = esp_after(edge, base) ? edge - base : 0;
	if (take > *n)
		take = *n;
	if (esp_before(g->edge, recv_seq))
		WRITE_ONCE(g->token_start, recv_seq);
	WRITE_ONCE(g->edge, base + take);
out:
	if (near) {
		WRITE_ONCE(g->near, g->near + take);
		atomic_add(take, &g->outstanding);
	} else {
		esp_grant_tokens(g, take);
		if (take < *n)
			atomic_sub_return(*n - take, &q->outstanding);
	}
	*n = take;
	return take || g->edge != recv_seq;
}

/*
 * Give @n tokens of @g back; it keeps @left. Those that the link counts come back first. Returns
 * true if a grant may leave now: the caller pumps.
 */
static bool tokens_back(struct esp_ackq *q, struct esp_grant *g, int n, int left)
{
	int near = min_t(int, g->near, left), open;
	struct esp_host *h = g->host;
	bool ready = false;

	n -= g->near - near;
	if (g->near != near)
		WRITE_ONCE(g->near, near);
	if (!n)
		return false;
	atomic_sub_return(n, &h->outstanding);	/* full barrier before parked is read */
	if (READ_ONCE(h->turn.parked)) {
		spin_lock_bh(&q->lock);
		ready = esp_bucket_ready(q, h);
		spin_unlock_bh(&q->lock);
	}
	/* full barrier before qlen and leaves_at are read */
	open = atomic_sub_return(n, &q->outstanding);
	return READ_ONCE(q->qlen) && (ready || open <= 0 || open <= READ_ONCE(q->leaves_at));
}

/**
 * esp_tokens_arrived() - Account for packets that have arrived for the first time
 * @q:		queue
 * @g:		grant; the caller owns its socket
 * @seq:	number of the first one
 * @count:	packets
 *
 * Return: true if the caller is to pump
 */
bool esp_tokens_arrived(struct esp_ackq *q, struct esp_grant *g, u32 seq, u32 count)
{
	u32 edge = READ_ONCE(g->edge), lo = READ_ONCE(g->token_start), end = seq + count;
	int n = atomic_read(&g->outstanding), take;

	if (esp_before(seq, lo))
		seq = lo;
	if (esp_after(end, edge))
		end = edge;
	if (!esp_before(seq, end))
		return false;	/* these packets had no tokens */
	do {
		take = min_t(int, n, end - seq);
		if (take <= 0)
			return false;
	} while (!atomic_try_cmpxchg(&g->outstanding, &n, n - take));
	return tokens_back(q, g, take, n - take);
}

/* Drop tokens of @g beyond the packets that can still come. Returns their number. */
static int grant_trim(struct esp_grant *g)
{
	u32 edge = READ_ONCE(g->edge);
	int left = esp_after(edge, g->recv_seq) ? edge - g->recv_seq : 0;
	int n = atomic_read(&g->outstanding);

	if (esp_after(g->recv_seq, g->token_start))
		g->token_start = g->recv_seq;	/* before the comparison wraps */
	if (n <= left)
		return 0;
	atomic_set(&g->outstanding, left);
	return n - left;
}

/**
 * esp_tokens_consumed() - Drop surplus tokens after recv_seq has advanced
 * @q:	queue
 * @g:	grant; the caller owns its socket
 *
 * Only packets before the edge can come under a token. There are more tokens than such
 * packets in two cases: an expired grant was repeated (rule 17) and some of its packets
 * were here; or the sender was ahead of its grant.
 *
 * Return: true if the caller is to pump
 */
bool esp_tokens_consumed(struct esp_ackq *q, struct esp_grant *g)
{
	int n;

	if (smp_load_acquire(&g->queued)) {	/* unlink_grant() */
		/* other contexts extend a queued grant */
		spin_lock_bh(&q->lock);
		n = grant_trim(g);
		spin_unlock_bh(&q->lock);
	} else {
		n = grant_trim(g);
	}
	return n && tokens_back(q, g, n, atomic_read(&g->outstanding));
}

/**
 * esp_tokens_void() - Take all tokens of a socket back (TXF, expiry, RST)
 * @q:	queue
 * @g:	grant; the caller owns its socket
 *
 * Return: number of tokens; the caller pumps
 */
int esp_tokens_void(struct esp_ackq *q, struct esp_grant *g)
{
	int n = atomic_xchg(&g->outstanding, 0);

	if (n)
		tokens_back(q, g, n, 0);
	return n;
}
