// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -fsanitize=address,undefined -fno-sanitize-recover=all
// SOURCES: net/esp/core/rtt.c net/esp/core/policy.c net/esp/core/turn.c net/esp/core/budget.c net/esp/core/overdue.c
/*
 * The ACK queue under random operations: rules 11, 12, 14-18, 20 and the
 * must-hold list.
 *
 *	host-ackq-fuzz [SEED | FILE]...	all seeds, or these, or bytes; one with its trace
 *
 * Sockets send transmissions to a receiver that decides by the real ackq.c, with tokens.c,
 * budget.c, turn.c and overdue.c, or by the seed's policy; a few lines here repeat the rest of
 * grant.c and rcv_data.c. Frames come in any order and get lost, grants expire, sockets
 * close, policies, budget and memory change. Senders lie about round trips, BUSY
 * and what they have left.
 *
 * Other processors: wherever ackq.c or tokens.c reads a shared word without its lock,
 * another socket's whole operation may run first (turn()). The invariants are
 * checked whenever nothing is half done.
 */
#include <stdarg.h>
#include "core/ackq.h"

#define RUNS		30000
#define HOLDS		"the ACK queue keeps its invariants"
#include "host-fuzz.h"

static void turn(void);
static bool locked;

#undef READ_ONCE
#define READ_ONCE(x)		(turn(), (x))
#undef smp_mb
#define smp_mb()		turn()	/* nothing to order here */
#undef spin_lock_bh
#define spin_lock_bh(l)		(turn(), (void)(l), locked = true)
#undef spin_unlock_bh
#define spin_unlock_bh(l)	((void)(l), locked = false, turn())
#define atomic_read(a)		(turn(), (atomic_read)(a))
#define atomic_try_cmpxchg(a, o, v) (turn(), (atomic_try_cmpxchg)(a, o, v))
#define atomic_sub_return(n, a)	(turn(), (atomic_sub_return)(n, a))
#define atomic_xchg(a, v)	(turn(), (atomic_xchg)(a, v))

#include "core/tokens.c"
#include "core/ackq.c"

#define SOCKS		8
#define RING		512	/* most packets of a socket that may be on the way */
#define STEPS		400
#define HOSTS		3	/* sending hosts */
#define EXPIRIES	5	/* net.esp.expiries */
#define TXS		1
#define TXF		2

enum where { UNSENT, FLIGHT, LOST, HERE };

/* A socket of the receiver and the sender at its other end. */
struct sk {
	struct esp_grant g;
	int	nr;
	bool	owned;		/* an operation on this socket is half done */
	int	refs;		/* references that the queue holds */
	u32	recv_seq;
	u32	advice;	/* first burst; a claim may exceed it */
	int	cap;		/* receive buffer, packets */
	int	unread;
	int	to_ack;
	int	expiries;
	bool	timer;		/* RRQ timer */
	u32	said;		/* grant.edge when no operation was half done */
	/* sender */
	u32	next;		/* first unsent */
	u32	end;		/* number after the last packet made */
	u32	edge;
	u8	at[RING];	/* enum where */
	u8	flags[RING];
};

static struct esp_ackq q;
static struct esp_budget budget;
static struct esp_host hosts[HOSTS];
static u32 max_cap[HOSTS];		/* largest bucket since the last invariants() */
static int old_out[HOSTS];		/* outstanding at the last invariants() */
static struct sk socks[SOCKS];
static struct sk *fifo[SOCKS];		/* the expected esp_ack_queue */
static int nfifo;
static int nsocks;
static int depth;			/* operations that are half done */
static bool smp;			/* turn() runs other sockets' operations */
static bool mixed;			/* the budget may decide; otherwise only the seed's policy */
static bool calm;			/* no more losses */
static u32 max_q;			/* largest budget since the last invariants() */
static int old_open, firsts;	/* outstanding at the last invariants(), first bursts since */
static bool new_policy;			/* the policy changed since the last invariants() */
static u64 clock_ns;
static bool pump_due;
static unsigned long ops_done, released, fast_done, turns;

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	complain(what);
	for (int i = 0; i < nsocks; i++) {
		struct sk *s = &socks[i];

		printf("# %d: open %d (near %u) edge %u tok_lo %u recv_seq %u", i,
		       s->g.outstanding.v, s->g.near, s->g.edge, s->g.token_start, s->recv_seq);
		printf(" next %u end %u sender's edge %u%s%s%s\n", s->next,
		       s->end, s->edge,
		       s->g.recv_announced ? " announced" : "",
		       s->g.queued ? " queued" : "",
		       s->g.rcv_mem_pressure ? " pressure" : "");
	}
	exit(1);
}

static void say(const char *fmt, ...)
{
	va_list ap;

	if (!verbose)
		return;
	va_start(ap, fmt);
	printf("# %*s", 2 * depth, "");
	vprintf(fmt, ap);
	printf(" | open %d q %u queued %u count %d\n", q.outstanding.v, budget.size, q.qlen,
	       q.esp_recv_count.v);
	va_end(ap);
}

/* Does the budget decide? */
static bool by_budget(void)
{
	return q.policy.adaptive;
}

static struct sk *owner(struct esp_grant *g)
{
	return container_of(g, struct sk, g);
}

static void note_bounds(void)
{
	/* within an operation, a host may be the only one for a moment */
	for (int i = 0; i < HOSTS; i++)
		max_cap[i] = max3(max_cap[i], esp_host_cap(&budget, &hosts[i], 2),
				  esp_host_cap(&budget, &hosts[i], 1));
	for (int i = 0; i < HOSTS; i++)
		max_q = max3(max_q, budget.size + q.overdue.tokens,
			     esp_budget_limit(&budget, 1));
}

/*
 * Senders.
 */

static void sender_push(struct sk *s)
{
	for (; s->next != s->end && esp_before(s->next, s->edge); s->next++)
		s->at[s->next % RING] = !calm && !rnd(8) ? LOST : FLIGHT;
}

/* Send an ACK with ack_seq, and a grant or the first burst. It may get lost. */
static void ack_out(struct sk *s)
{
	u32 grant = s->g.recv_announced ?
		    (esp_after(s->g.edge, s->recv_seq) ?
		     s->g.edge - s->recv_seq : 0) : s->advice;

	s->to_ack = 0;
	if (!calm && !rnd(6))
		return;
	if (esp_after(s->recv_seq + grant, s->edge))
		s->edge = s->recv_seq + grant;
	sender_push(s);
}

static void rrq_out(struct sk *s)
{
	u32 seq;

	if (!calm && !rnd(6))
		return;
	for (seq = s->recv_seq; seq != s->next; seq++)
		if (s->at[seq % RING] == LOST)
			s->at[seq % RING] = FLIGHT;
}

/*
 * The receiver, as in grant.c and rcv_data.c.
 */

static u32 model_room(struct esp_grant *g, u32 recv_seq)
{
	struct sk *s = owner(g);
	int room;

	turn();		/* the fast path asks without the lock */
	room = s->cap - s->unread;
	return recv_seq + (room > 0 ? room : 0);
}

static bool packets_due(struct sk *s)
{
	return s->g.recv_announced && !s->g.queued &&
	       esp_after(s->g.edge, s->recv_seq);
}

static void start_rrq_timer(struct sk *s)
{
	if (s->g.outstanding.v || packets_due(s))
		s->timer = true;
}

/*
 * Take a socket out of the mirror of the queue. The mirror is complete only while no other
 * processor works in between.
 */
static void forget(struct sk *s)
{
	int i, n = 0;

	for (i = 0; i < nfifo; i++)
		if (fifo[i] != s)
			fifo[n++] = fifo[i];
	nfifo = n;
}

static void model_send(struct esp_grant *g)
{
	struct sk *s = owner(g);

	released++;
	check(smp || mixed || (nfifo && fifo[0] == s), "released out of turn (FIFO)");
	forget(s);
	check(s->refs > 0, "released without a reference");
	s->refs--;
	start_rrq_timer(s);
	ack_out(s);
	say("released %d", s->nr);
}

static void model_hold(struct esp_grant *g)
{
	check(g->queued, "another turn, but not queued");
	owner(g)->refs++;
}

static void model_later(struct esp_ackq *a, u32 wait)
{
	check(wait && a->budget == &budget && mixed, "the seed's policy knows no pace");
	pump_due = true;
}

static u64 model_now(void)
{
	return clock_ns;
}

static const struct esp_ackq_ops model_ops = {
	.room	= model_room,
	.send	= model_send,
	.get	= model_hold,
	.later	= model_later,
	.now	= model_now,
};

static void note_parked(struct sk *s, bool head)
{
	if (smp || mixed)
		return;
	check(nfifo < nsocks, "queue longer than there are sockets");
	memmove(fifo + head, fifo, nfifo * sizeof(fifo[0]));
	fifo[head ? 0 : nfifo] = s;
	nfifo++;
}

static void park(struct sk *s)
{
	s->refs++;
	check(smp || s->refs == 1, "queued twice (rule 11)");
	note_parked(s, false);
	esp_ackq_park(&q, &s->g);
}

static bool unpark(struct sk *s)
{
	if (!esp_ackq_remove(&q, &s->g))
		return false;
	forget(s);
	s->refs--;
	return true;
}

static void enqueue_ack(struct sk *s, bool answer)
{
	struct esp_grant *g = &s->g;
	u32 before = q.qlen;

	s->to_ack = 0;
	if (READ_ONCE(g->queued)) {
		if (answer)
			ack_out(s);
		return;
	}
	if (esp_ackq_fast(&q, g)) {
		fast_done++;
		check(smp || by_budget() || !before, "fast path past a queue (rule 15)");
		start_rrq_timer(s);
		ack_out(s);
		return;
	}
	if (READ_ONCE(g->rcv_mem_pressure)) {
		esp_ack_pump(&q);
		if (answer)
			ack_out(s);
		return;
	}
	park(s);
	esp_ack_pump(&q);
	if (answer && READ_ONCE(g->queued))
		ack_out(s);
}

static void leave(struct sk *s)
{
	unpark(s);
	esp_tokens_void(&q, &s->g);
	esp_ackq_ended(&q, &s->g);
	s->timer = false;
	esp_ack_pump(&q);
}

static void expiry(struct sk *s)
{
	struct esp_grant *g = &s->g;

	s->timer = false;
	if (!esp_tokens_void(&q, g) && !packets_due(s))
		return;
	if (++s->expiries > EXPIRIES) {
		s->expiries = 0;
		leave(s);
		check(!g->recv_announced, "recv_announced outlives rule 17's end");
		return;
	}
	if (g->recv_announced && esp_after(g->edge, s->recv_seq)) {
		rrq_out(s);
		s->refs++;
		if (esp_ackq_expired(&q, g, s->expiries > 1))
			note_parked(s, true);
		else
			s->refs--;
	}
	esp_ack_pump(&q);
}

static void pressure_lifted(struct sk *s)
{
	if (!READ_ONCE(s->g.rcv_mem_pressure))
		return;
	if (s->cap - s->unread < min(s->cap / 8, 4) && s->unread)
		return;
	WRITE_ONCE(s->g.rcv_mem_pressure, 0);
	if (s->g.recv_announced)
		enqueue_ack(s, true);
	else
		ack_out(s);
}

/* The option LEFT, which may be wrong. */
static void tell_left(struct sk *s)
{
	esp_ackq_left(&s->g, s->end + (rnd(8) ? 0 : rnd(100)) - (rnd(16) ? 0 : rnd(100)));
}

struct consumed {
	bool ask, at_once;
};

static void consume(struct sk *s, u32 seq, struct consumed *c)
{
	u8 f = s->flags[seq % RING];

	s->unread++;
	s->g.ooo_pkts -= s->at[seq % RING] == HERE;
	s->at[seq % RING] = UNSENT;
	if (f == TXS)
		tell_left(s);
	if (f == TXS && !s->g.recv_announced) {
		esp_ackq_announced(&q, &s->g, seq + 1, seq + s->advice);
		firsts += s->g.outstanding.v;
		s->said = s->g.edge;
		c->ask = true;
	}
	if ((f & TXF) && s->g.recv_announced) {
		unpark(s);
		esp_tokens_void(&q, &s->g);
		esp_ackq_ended(&q, &s->g);
		s->timer = false;
		s->expiries = 0;
		esp_ack_pump(&q);
		c->at_once = true;
		c->ask = false;
	}
	WRITE_ONCE(s->g.recv_seq, seq + 1);
	s->recv_seq = seq + 1;
	start_rrq_timer(s);
	s->to_ack++;
}

static void arrive(struct sk *s, u32 seq)
{
	struct consumed c = {};
	bool pump;

	esp_host_came_whole(s->g.host, !rnd(3), !rnd(3));
	if (esp_ackq_came(&q, &s->g, 1, 1538, !rnd(3), rnd(4) ? rnd(100) : rnd(0), clock_ns))
		esp_ack_pump(&q);
	note_bounds();	/* a round may have enlarged the bucket */
	if (seq != s->recv_seq && !s->g.ooo_pkts++)
		esp_ackq_gap(&q);
	pump = esp_tokens_arrived(&q, &s->g, seq, 1);
	s->expiries = 0;
	if (seq != s->recv_seq) {
		s->at[seq % RING] = HERE;
		start_rrq_timer(s);
		if (pump)
			esp_ack_pump(&q);
		return;
	}
	start_rrq_timer(s);
	consume(s, seq, &c);
	while (s->recv_seq != s->next && s->at[s->recv_seq % RING] == HERE)
		consume(s, s->recv_seq, &c);
	if ((esp_tokens_consumed(&q, &s->g) || pump) && !esp_ackq_paced(&q, clock_ns / 1000))
		esp_ack_pump(&q);
	if (!s->g.recv_announced) {
		ack_out(s);
		return;
	}
	if (c.ask || !esp_after(READ_ONCE(s->g.edge), s->recv_seq))
		enqueue_ack(s, true);
	else if (by_budget() ? esp_ackq_due(&q, &s->g) : s->to_ack >= 4)
		enqueue_ack(s, false);
	if (c.at_once)
		ack_out(s);
}

/* The sender's timer: retransmit the oldest packet, or probe (rules 8, 13). */
static void send_timeout(struct sk *s)
{
	if (s->recv_seq != s->next) {
		if (s->at[s->recv_seq % RING] == LOST)
			s->at[s->recv_seq % RING] = FLIGHT;
		else
			ack_out(s);	/* the answer to a duplicate */
		return;
	}
	if (s->next == s->end)
		return;
	/* an empty TXS, as in esp_empty_rcv() */
	tell_left(s);
	if (!s->g.recv_announced) {
		esp_ackq_announced(&q, &s->g, s->recv_seq, s->recv_seq);
		s->said = s->g.edge;
	}
	pressure_lifted(s);
	if (esp_after(READ_ONCE(s->g.edge), s->recv_seq))
		ack_out(s);
	else
		enqueue_ack(s, true);
}

/*
 * Operations.
 */

static void sk_open(struct sk *s)
{
	u32 isn = rnd(3) ? rnd(0) : (u32)-rnd(64);	/* often close to a wrap */

	isn = rnd(2) ? (u32)-rnd(64) : isn;
	memset(s->at, 0, sizeof(s->at));
	s->recv_seq = isn;
	s->next = isn;
	s->end = isn;
	s->edge = isn;
	s->cap = 1 + rnd(100);
	s->unread = 0;
	s->to_ack = 0;
	s->expiries = 0;
	s->timer = false;
	s->advice = rnd(3) ? rnd(20) : 0;
	s->said = isn;
	esp_grant_init(&s->g, isn);
	s->g.host = &hosts[s->nr % HOSTS];
}

/* Begin a transmission of @n packets, if the one before has been sent. */
static void transmit(struct sk *s, u32 n)
{
	u32 first;

	if (s->next != s->end || s->end + n - s->recv_seq >= RING)
		return;
	for (u32 i = 0; i < n; i++) {
		s->at[(s->end + i) % RING] = UNSENT;
		s->flags[(s->end + i) % RING] = (i ? 0 : TXS) |
						(i == n - 1 ? TXF : 0);
	}
	first = n == 1 ? max(s->advice, 1u) : s->advice;
	s->end += n;
	s->edge = s->next + first;
	sender_push(s);
}

/* Choose one of the packets on the way. */
static bool some_flight(struct sk *s, u32 *seq)
{
	u32 n = 0;

	for (u32 i = s->recv_seq; i != s->next; i++)
		if (s->at[i % RING] == FLIGHT && !rnd(++n))
			*seq = i;
	return n;
}

static void set_policy(void)
{
	struct esp_policy p = {
		.adaptive	= mixed && rnd(2),
		.burst_length	= rnd(3) ? 0 : 1 + rnd(70),
		.q_min		= 1 + rnd(16),
		.shortest_first	= rnd(4) > 0,
	};

	p.q_max = p.q_min + rnd(200);
	if (!p.adaptive && !p.burst_length)
		p.burst_length = 64;	/* as esp_policy_get() */
	say("policy adaptive %d burst %u q %u..%u", p.adaptive, p.burst_length,
	    p.q_min, p.q_max);
	new_policy = true;
	esp_ackq_policy(&q, &p);
}

/* Round trips, losses and a new rate of the link. */
static void adapt(struct sk *s)
{
	u32 least = rnd(4) ? 1 + rnd(50) : rnd(0);

	if (rnd(3)) {
		clock_ns += rnd(50) ? rnd(1000000) : 250000000;
		esp_ackq_rtt(&q, &s->g, least, rnd(4) ? least + rnd(100) : rnd(0),
			     clock_ns);
	} else if (rnd(4)) {
		esp_ackq_lost(&q, &s->g);
	} else {
		spin_lock_bh(&q.lock);
		esp_budget_rate(&budget, rnd(3) ? 1 + rnd(100000) : 0, 1500);
		q.turns.every = 1 + rnd(9);
		spin_unlock_bh(&q.lock);
	}
	note_bounds();
	esp_ack_pump(&q);
}

static void one_op(void)
{
	struct sk *s = &socks[rnd(nsocks)];
	u32 seq = 0, op = rnd(100);

	clock_ns += rnd(2) ? rnd(20000) : 0;
	if (s->owned)
		return;
	s->owned = true;
	depth++;
	ops_done++;
	note_bounds();
	if (op < 55) {
		if (some_flight(s, &seq)) {
			say("%d: %u arrives at %u", s->nr, seq, s->recv_seq);
			arrive(s, seq);
		}
	} else if (op < 70) {
		u32 n = rnd(3) ? 1 + rnd(60) : 1;

		say("%d: transmits %u at %u, advice %u", s->nr, n, s->next,
		    s->advice);
		transmit(s, n);
	} else if (op < 78) {
		if (s->timer) {
			say("%d: expires", s->nr);
			expiry(s);
		}
	} else if (op < 84) {
		say("%d: sender's timer", s->nr);
		send_timeout(s);
	} else if (op < 92) {
		int n = rnd(40);

		s->unread -= min(s->unread, n);
		say("%d: reads, %d left", s->nr, s->unread);
		pressure_lifted(s);
	} else if (op < 94) {
		s->advice = rnd(3) ? rnd(20) : 0;
	} else if (op < 96) {
		say("%d: closes", s->nr);
		leave(s);
		sk_open(s);
	} else if (op < 97) {
		pump_due = false;
		clock_ns += rnd(1000000);
		esp_ackq_resume(&q);
	} else if (op < 98) {
		adapt(s);
	} else if (op == 98) {
		set_policy();
	}
	note_bounds();
	depth--;
	s->owned = false;
}

/* Let another processor run an operation. */
static void turn(void)
{
	if (!smp || locked || depth >= 3 || !depth || rnd(25))
		return;
	turns++;
	one_op();
}

/* Count the packets before the edge that have not arrived. */
static int missing(const struct sk *s)
{
	int n = 0;

	for (u32 seq = s->recv_seq; esp_before(seq, s->g.edge); seq++)
		n += esp_before(seq, s->next) ? s->at[seq % RING] != HERE : 1;
	return n;
}

/*
 * Is the grant whose turn it is held back without a reason? A grant that could be smaller now,
 * because packets beyond it have come, waits for the next packet. A sole sender's waits until it
 * can be large; after a gap the next packet pumps, and shows whether it can.
 */
static bool turn_was_due(int open)
{
	struct esp_turn *t = esp_turn_host(&q.turns);
	u32 n = esp_budget_quantum(&budget);

	check(q.leaves_at >= 0, "a grant waits for more than can come");
	if (q.esp_recv_count.v <= 1 && open > 0 &&
	    (open > q.leaves_at || q.leaves_at == INT_MAX))
		return false;
	return t && !pump_due && (open <= 0 || open + n <= budget.size) &&
	       esp_bucket_allows(&q, container_of(t, struct esp_host, turn), n);
}

/* The invariants of hosts and budget. */
static void host_invariants(int open)
{
	u32 full = 0, overdue = 0, i, j;

	for (i = 0; i < HOSTS; i++) {
		struct esp_host *h = &hosts[i];
		u32 grants = 0, classes = 0;
		int out = 0;

		for (j = i; j < (u32)nsocks; j += HOSTS) {
			out += socks[j].g.outstanding.v - socks[j].g.near;
			grants += socks[j].g.queued;
			if (socks[j].g.queued && by_budget())
				classes |= 1u << socks[j].g.turn.class;
		}
		check(h->outstanding.v == out, "outstanding is not the sum over a host's sockets");
		check(smp || new_policy || !by_budget() || out <= old_out[i] ||
		      out <= (int)max_cap[i],
		      "a host got more than its bucket");
		old_out[i] = out;
		max_cap[i] = 0;
		check(h->turn.classes == classes, "classes of a host's grants");
		check(!h->turn.parked || (grants && out > 0), "a host is parked for ever");
		check(list_empty(&h->turn.link) == !classes, "a host is not among those that wait");
		full += h->turn.full;
		overdue += h->overdue;
		check(!h->overdue || !list_empty(&h->hold), "overdue tokens that nobody looks at");
	}
	check(q.overdue.tokens == overdue, "overdue is not the sum over the hosts");
	check(q.turns.full == full, "number of parked hosts with a full bucket");
	check(budget.size >= min(budget.bdp + budget.grow + ESP_SPARE, budget.most) &&
	      budget.size >= min(budget.least, budget.most) && budget.size <= budget.most,
	      "size of the budget");
	check(!by_budget() || !turn_was_due(open), "a grant was due");
}

/*
 * The must-hold list.
 */
static void invariants(void)
{
	struct list_head *l = q.esp_ack_queue.next;
	int open = 0, count = 0, queued = 0, i;

	note_bounds();
	for (i = 0; i < nsocks; i++) {
		struct sk *s = &socks[i];
		u32 left = esp_after(s->g.edge, s->recv_seq) ?
			   s->g.edge - s->recv_seq : 0;

		check(s->g.outstanding.v >= 0, "negative tokens");
		if (left && esp_after(s->g.edge, s->said)) {
			check((int)left + s->unread <= s->cap,
			      "permission without memory (rule 20)");
			check(!q.policy.burst_length || new_policy ||
			      left <= q.policy.burst_length,
			      "permission beyond burst_length (rule 14)");
		}
		s->said = s->g.edge;
		check((int)s->g.near <= s->g.outstanding.v, "more tokens of the same host than tokens");
		open += s->g.outstanding.v - s->g.near;
		count += s->g.recv_announced;
		queued += s->g.queued;
		check(s->refs == s->g.queued, "references and queue differ");
		check(!s->g.outstanding.v || s->timer, "tokens without a timer");
		check(!packets_due(s) || s->timer,
		      "permission that no timer watches (rule 17)");
		check(!s->g.outstanding.v || s->g.recv_announced,
		      "tokens without a transmission");
		check(!s->g.queued || s->g.recv_announced,
		      "queued without a transmission");
		check((u32)s->g.outstanding.v <= left,
		      "more tokens than packets that can still come");
		/* if the budget decides, a first burst has tokens as far as the bucket goes */
		check(mixed || s->g.expired || !s->g.recv_announced ||
		      s->g.outstanding.v >= missing(s),
		      "permitted, missing, and without a token");
	}
	check(q.outstanding.v == open, "open is not the sum over the sockets");
	check(q.esp_recv_count.v == count, "esp_recv_count leaks");
	check((int)q.qlen == queued, "length of the queue");
	check(smp || mixed || nfifo == queued, "an entry lost");
	for (i = 0; i < nfifo; i++, l = l->next)
		check(container_of(l, struct esp_grant, turn.link) == &fifo[i]->g,
		      "order of the queue");
	check(!q.until || pump_due, "the queue waits for the pace, and no pump is due");
	check(!q.qlen || open > 0 || (mixed && pump_due),
	      "queue not empty and open = 0 (liveness)");
	host_invariants(open);
	check(by_budget() || !esp_policy_release(q.qlen, open, count), "a release was due");
	check(!by_budget() || new_policy || open <= old_open + firsts || open <= (int)max_q + firsts,
	      "outstanding > budget + first bursts (bound)");
	old_open = open;
	firsts = 0;
	new_policy = false;
	max_q = 0;
	note_bounds();
}

/* Lose nothing any more: every packet that was made must arrive. */
static void drain(void)
{
	u32 seq, idle = 0;

	calm = true;
	while (idle < 4) {
		bool moved = false, left = false;

		for (int i = 0; i < nsocks; i++) {
			struct sk *s = &socks[i];

			s->owned = true;
			depth++;
			s->unread = 0;
			pressure_lifted(s);
			while (some_flight(s, &seq)) {
				arrive(s, seq);
				s->unread = 0;
				moved = true;
			}
			depth--;
			s->owned = false;
			invariants();
		}
		for (int i = 0; i < nsocks; i++) {
			struct sk *s = &socks[i];

			left |= s->recv_seq != s->end;
			if (moved)
				continue;
			s->owned = true;
			depth++;
			if (s->timer)
				expiry(s);
			if (s->recv_seq != s->end)
				send_timeout(s);
			depth--;
			s->owned = false;
			invariants();
		}
		if (!left)
			return;
		if (pump_due) {
			pump_due = false;
			clock_ns += ESP_STALE_NS;
			depth++;
			esp_ackq_resume(&q);
			depth--;
			moved = true;
		}
		idle = moved ? 0 : idle + 1;
	}
	check(false, "deadlock: data left and nothing moves (liveness)");
}

static void run(void)
{
	struct esp_policy p = { .q_min = 8, .q_max = 4096, .first_pool = 64 };

	calm = false;
	clock_ns = 1;
	pump_due = false;
	smp = false;
	mixed = bytes ? rnd(2) : seed / 2 % 2;
	nfifo = 0;
	old_open = 0;
	firsts = 0;
	nsocks = 1 + rnd(SOCKS);
	esp_budget_init(&budget, rnd(4) ? 10000 : 0, 1500);
	esp_ackq_init(&q, &p, &budget, &model_ops);
	for (int i = 0; i < HOSTS; i++) {
		esp_host_init(&hosts[i]);
		max_cap[i] = 0;
		old_out[i] = 0;
	}
	for (int i = 0; i < nsocks; i++) {
		memset(&socks[i], 0, sizeof(socks[i]));
		socks[i].nr = i;
		sk_open(&socks[i]);
	}
	depth = 1;
	set_policy();
	note_bounds();
	depth = 0;
	smp = bytes ? rnd(2) : seed % 2;
	for (int i = 0; i < STEPS && more(); i++) {
		one_op();
		invariants();
	}
	drain();
	smp = false;
	for (int i = 0; i < nsocks; i++)
		leave(&socks[i]);
	invariants();
	check(!q.outstanding.v && !q.qlen && !q.esp_recv_count.v, "leak at the end");
	check(!q.turns.classes && list_empty(&q.turns.parked), "a host is left at the end");
}

static void report(void)
{
	printf("# %lu operations, %lu amid another, %lu past the queue, %lu released\n",
	       ops_done, turns, fast_done, released);
}
