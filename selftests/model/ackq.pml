// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ACK queue taken apart: net/esp/core/ackq.c, and the parts of grant.c and
 * rcv_data.c around it, with a processor for each receiving socket. Each access to
 * a word that another processor may write is a step of its own. Memory is
 * sequentially consistent, so the model does not test barriers.
 *
 * A socket receives one announced transmission of PKTS packets in order; the
 * last one has TXF. Its sender sends what it was granted, and does not probe
 * (but see PROBE): a forgotten sender stays parked, an invalid end state.
 *
 *   N           sockets
 *   SHARED      all sockets have one sending host; else each one has its own
 *   PKTS        packets of each transmission
 *   Q GRANT     budget, size of a grant
 *   CAP         bucket of a host
 *   SOLE        packets that a sole sender may have outstanding, and WISH those that its
 *               grant waits for
 *   ADV         first burst; its first packet announces. 0: an empty TXS does
 *   SEED BURST  the seed's policy as implemented, its window
 *   EAGER       seed's: packets_to_ack is 1; else ACKs are due when a grant is used up
 *   EXPIRE      grants that may expire though their packets come
 *   PROBE       senders probe
 *   BREAK_...   takes a mend away
 */

#ifndef N
#define N	2
#endif
#ifndef PKTS
#define PKTS	2
#endif
#ifndef Q
#define Q	1
#endif
#ifndef GRANT
#define GRANT	1
#endif
#ifndef CAP
#define CAP	Q
#endif
#ifndef SOLE
#define SOLE	Q
#endif
#ifndef WISH
#define WISH	GRANT
#endif
#ifndef BURST
#define BURST	1
#endif
#ifndef ADV
#define ADV	0
#endif
#ifndef EXPIRE
#define EXPIRE	0
#endif

#define MIN(a, b)	((a) < (b) -> (a) : (b))
#define MAX(a, b)	((a) > (b) -> (a) : (b))
#define NONE		255
#define me		_pid
#ifdef SHARED
#define HOSTS		1
#define HOST(g)		0
#else
#define HOSTS		N
#define HOST(g)		g
#endif
#ifdef SEED
#define SIZE		BURST
#define FAST(c)		((c) <= 1)
#define RELEASE(o, c)	(qlen >= (c) || (o) == 0)
#define BOUND		255		/* no bound but each window */
#else
#define SIZE		n
#define BOUND		MAX(Q, SOLE)
#endif

/* struct esp_ackq */
bool lock;
byte q[N];
byte qlen;
byte open;
byte count;		/* esp_recv_count */
byte leaves_at = NONE;

/* struct esp_host */
byte h_open[HOSTS];
bool h_parked[HOSTS];

/* struct esp_grant; recv_seq is also what was consumed */
byte g_open[N];
byte g_edge[N];
byte g_recv[N];
bool g_queued[N];
bool g_ann[N];
bool g_expired[N];
bool g_sole[N];		/* packets have come: it may be a sole sender */
bool t_rrq[N];

byte given[N] = ADV;	/* highest edge ever */
byte s_edge[N] = ADV;	/* edge as the sender knows it */
byte expire = EXPIRE;
byte over;		/* sockets that have received all */
byte running;		/* handlers */

hidden byte k;

#ifdef SEED
/* ackq_reserve() with esp_policy_fast() or esp_policy_release(), rules 14 and 15 */
inline reserve(fast)
{
	o = open;
	do
	:: c = count;
		if
		:: (fast && FAST(c)) || (!fast && RELEASE(o, c)) ->
			atomic {	/* atomic_try_cmpxchg() */
				if
				:: open == o ->
					open = o + SIZE;
					ok = true;
					break
				:: else -> o = open
				fi
			}
		:: else ->
			ok = false;
			break
		fi
	od;
	c = 0
}
#endif

/* esp_grant_extend(), rules 14 and 17; there is memory */
inline extend(g)
{
	r = g_recv[g];
	e = (r > g_edge[g] -> r : g_edge[g]);
	if
	:: g_expired[g] && e != r ->
		t = r + g_open[g];
		t = (e > t -> e - t : 0);
		if
		:: t <= SIZE -> g_expired[g] = false
		:: else -> t = SIZE
		fi
	:: else ->
		t = SIZE;
		g_expired[g] = false;
#ifdef SEED
		t = (e + t <= r + BURST -> t : (r + BURST > e -> r + BURST - e : 0));
#endif
		d_step { given[g] = e + t; g_edge[g] = e + t }
	fi;
	g_open[g] = g_open[g] + t;
	h_open[HOST(g)] = h_open[HOST(g)] + t;
	if
	:: t < SIZE -> open = open - (SIZE - t)
	:: else
	fi;
	d_step { e = 0; r = 0; t = 0 }
}

/* An ACK arrives at sender g. */
inline arrive(g, a, p)
{
	d_step {
		assert(a + p <= given[g] || p == 0);	/* no more than was granted */
		assert(a < PKTS || p == 0);		/* a grant is no first burst */
		if
		:: a + p > s_edge[g] -> s_edge[g] = a + p
		:: else
		fi
	}
}

/* esp_ack_send_other(), frame_grant(), frame_fill(), rule 6 */
inline esp_ack_send_other(g)
{
	r = g_recv[g];
	t = g_ann[g];
	if
	:: t ->
		e = g_edge[g];
		t = (e > r -> e - r : 0)
	:: else
	fi;
#ifdef BREAK_ONE_READ
	r = g_recv[g];		/* frame_fill() */
#endif
	arrive(g, r, t);
	d_step { e = 0; r = 0; t = 0 }
}

/* esp_start_rrq_timer(), rule 17 */
#define WATCHED(g)	(g_open[g] > 0 || (g_ann[g] && !g_queued[g] && g_edge[g] > g_recv[g]))

inline start_rrq_timer(g)
{
	if
	:: WATCHED(g) -> t_rrq[g] = true
	:: else
	fi
}

/* unlink_grant(); with stay, the grant is queued again at the tail */
inline unlink_grant(g, stay)
{
	d_step {
		k = 0;
		do
		:: q[k] == g -> break
		:: else -> k++
		od;
		do
		:: k + 1 < qlen -> q[k] = q[k + 1]; k++
		:: else -> break
		od;
		q[k] = (stay -> (g) : 0);
		k = 0;
		qlen = qlen - !stay
	}
	if
	:: !stay -> g_queued[g] = false
	:: else
	fi
}

#ifdef SEED

/* ackq_pump_seed(), rule 14 */
inline esp_ack_pump()
{
	do
	:: qlen == 0 -> break
	:: else ->
		atomic { !lock -> lock = true };
		if
		:: qlen == 0 -> ok = false
		:: else -> reserve(false)
		fi;
		if
		:: !ok ->
			lock = false;
			break
		:: else
		fi;
		j = q[0];
		extend(j);
		unlink_grant(j, false);
		d_step { lock = false; ok = false };
		esp_ack_send_other(j);
		start_rrq_timer(j);
		j = 0
	od;
	ok = false
}

#else

/* What a grant waits for, if it is not a sole sender's. */
#define LIMITED(g)	MIN(MIN(GRANT, MAX(CAP / 2, 1)), \
			    (MAX(g_edge[g], g_recv[g]) < PKTS -> PKTS - MAX(g_edge[g], g_recv[g]) : 1))

#define BUCKET_ROOM(h)	(HOST_CAP > h_open[h] -> HOST_CAP - h_open[h] : 0)
#define HOST_CAP	(count <= 1 -> MAX(CAP, SOLE) : CAP)

/* esp_bucket_allows(): each of the two tests is a read of its own */
inline bucket_allows(h, m)
{
	ok = (h_open[h] == 0);
	if
	:: !ok -> ok = (BUCKET_ROOM(h) >= m)
	:: else
	fi
}

/* Find the first grant in the queue whose host is not parked: j; NONE: there is none. */
inline turn_next()
{
	d_step {
		j = NONE;
		k = 0;
		do
		:: k < qlen && j == NONE ->
			if
			:: !h_parked[HOST(q[k])] -> j = q[k]
			:: else -> k++
			fi
		:: else -> break
		od;
		k = 0
	}
}

/* turn_take(), rule 14: o is what was outstanding; ok if grant j leaves, n is its size */
inline turn_take()
{
#ifndef BREAK_LEAVES_AT
	leaves_at = NONE;
#endif
	o = open;
	do
	:: turn_next();
		if
		:: j == NONE ->
			ok = false;
			break
		:: else
		fi;
		r = g_recv[j];
		d_step {	/* esp_grant_want(): others write one word of it */
			e = (g_edge[j] < r || g_expired[j] -> r : g_edge[j]);
			n = MIN(GRANT, (e < PKTS -> PKTS - e : 1));
			n = MIN(n, MAX(CAP / 2, 1));
			t = (e < PKTS -> PKTS - e : 1);
			e = 0;
			r = 0
		}
		c = count;
		d_step {	/* grant_sole(), grant_limit(), sole_leaves_at() */
			sole = (SOLE > Q && c <= 1 && g_sole[j] && !g_expired[j]);
			lim = (sole -> SOLE : Q);
			at = lim - (sole -> MAX(WISH, n) : n);
			c = 0
		}
		if
		:: o > 0 && o > at ->
			leaves_at = at;
#ifndef BREAK_LEAVES_AT
			o = open;
#endif
			if
			:: o > 0 && o > at ->
				ok = false;
				break
			:: else
			fi
		:: else ->
			bucket_allows(HOST(j), n);
			if
			:: ok -> break
			:: else
			fi;
			h_parked[HOST(j)] = true;
#ifndef BREAK_PARK
			bucket_allows(HOST(j), n);
			if
			:: ok -> h_parked[HOST(j)] = false
			:: else
			fi
#endif
		fi
	od;
	if
	:: ok ->
		e = MAX(BUCKET_ROOM(HOST(j)), 1);
		d_step {
			n = (sole && lim > o -> MAX(n, MIN(t, MIN(lim - o, WISH))) : n);
			n = MIN(n, e);
			e = 0
		}
	:: else
	fi;
	d_step { t = 0; at = 0; lim = 0; sole = 0; o = 0 }
}

/* ackq_pump_turns(), grant_send(), rule 14 */
inline esp_ack_pump()
{
	do
	:: qlen == 0 -> break
	:: else ->
		atomic { !lock -> lock = true };
		turn_take();
		if
		:: !ok ->
			lock = false;
			break
		:: else
		fi;
		open = open + n;
		assert(open <= BOUND);
		t = g_open[j];
		extend(j);
		e = g_recv[j];
		d_step {	/* n and the edge are this context's; esp_ackq_wants() reads recv_seq */
			ok = (g_expired[j] || MAX(g_edge[j], e) < PKTS);
			e = 0;
			t = 0
		}
		unlink_grant(j, ok);
		d_step { lock = false; ok = false; n = 0 };
		esp_ack_send_other(j);
		start_rrq_timer(j);
		j = 0
	od;
	ok = false;
	d_step { j = 0; n = 0 }
}

#endif

/* esp_ackq_park(), rules 11 and 15 */
inline esp_ackq_park()
{
	atomic { !lock -> lock = true };
	q[qlen] = me;
	g_queued[me] = true;
	qlen++;
	lock = false
}

/* esp_ackq_expired(), rule 17 */
inline esp_ackq_expired()
{
	atomic { !lock -> lock = true };
	g_expired[me] = true;
	if
	:: !g_queued[me] ->
		d_step {
			k = qlen;
			do
			:: k > 0 -> q[k] = q[k - 1]; k--
			:: else -> break
			od;
			q[0] = me
		}
		g_queued[me] = true;
		qlen++
	:: else
	fi;
	lock = false
}

/* esp_enqueue_ack(), esp_ackq_fast(), rules 10, 11 and 15 */
inline esp_enqueue_ack()
{
	if
	:: g_queued[me] -> skip		/* merged */
	:: else ->
		ok = false;
#ifdef SEED
		if
		:: qlen == 0 -> reserve(true)
		:: else
		fi;
		if
		:: ok ->
			extend(me);
			esp_ack_pump();
			start_rrq_timer(me);
			arrive(me, g_recv[me], g_edge[me] - g_recv[me])
		:: else ->
			esp_ackq_park();
#ifndef BREAK_PUMP_AFTER_PARK
			esp_ack_pump()
#endif
		fi
#else
		esp_ackq_park();
#ifndef BREAK_PUMP_AFTER_PARK
		esp_ack_pump()
#endif
#endif
	fi
}

/* esp_bucket_ready(), with the lock: ok if the host takes part again */
inline bucket_ready(h)
{
#ifdef SEED
	ok = false
#else
	ok = false;
	if
	:: h_parked[h] ->
		c = MAX(MIN(GRANT, CAP / 2), 1);
		bucket_allows(h, c);
		c = 0;
		if
		:: ok -> h_parked[h] = false
		:: else
		fi
	:: else
	fi
#endif
}

/* tokens_back(), rules 14 and 16 */
inline tokens_back(m)
{
#ifdef BREAK_ORDER
	ok = h_parked[HOST(me)];
	h_open[HOST(me)] = h_open[HOST(me)] - m;
#else
	h_open[HOST(me)] = h_open[HOST(me)] - m;
	ok = h_parked[HOST(me)];
#endif
	if
	:: ok ->
		atomic { !lock -> lock = true };
		bucket_ready(HOST(me));
		lock = false
	:: else
	fi;
	d_step {
		open = open - m;
		o = open
	}
	if
	:: qlen > 0 -> pump = pump || ok || o == 0 || o <= leaves_at
	:: else
	fi;
	d_step { ok = false; o = 0 }
}

/* esp_tokens_void(), rule 16 */
inline esp_ackq_void()
{
	d_step { t = g_open[me]; g_open[me] = 0 };
	if
	:: t > 0 -> tokens_back(t)
	:: else
	fi;
	t = 0
}

/* esp_ackq_leave(), esp_ackq_remove(), esp_ackq_ended(), rules 11 and 16 */
inline esp_ackq_leave()
{
	atomic { !lock -> lock = true };
	if
	:: g_queued[me] ->
		unlink_grant(me, false);
		d_step {	/* esp_turn_del(): a host without grants is not parked */
			k = 0;
			do
			:: k < qlen && HOST(q[k]) != HOST(me) -> k++
			:: else -> break
			od;
			h_parked[HOST(me)] = h_parked[HOST(me)] && k < qlen;
			k = 0
		}
	:: else
	fi;
	lock = false;
	esp_ackq_void();
	g_ann[me] = false;
	g_edge[me] = g_recv[me];
	count--;
	t_rrq[me] = false;
#ifndef BREAK_PUMP_AFTER_VOID
	esp_ack_pump();
#endif
	pump = false
}

/* esp_data_rcv(), token_arrived(), data_consume(), ack_consumed(), rules 10 and 16 */
inline esp_data_rcv()
{
	t = g_open[me];		/* esp_tokens_arrived() */
	do
	:: t == 0 -> break
	:: else ->
		atomic {	/* atomic_try_cmpxchg() */
			if
			:: g_open[me] == t ->
				g_open[me] = t - 1;
				t = 255
			:: else -> t = g_open[me]
			fi
		}
		if
		:: t == 255 ->
			t = 0;
			tokens_back(1);
			break
		:: else
		fi
	od;
	start_rrq_timer(me);
	g_sole[me] = true;
#ifndef BREAK_END_FIRST
	if
	:: g_recv[me] == PKTS - 1 -> esp_ackq_leave()
	:: else
	fi;
#endif
	g_recv[me]++;
#ifdef BREAK_END_FIRST
	if
	:: g_recv[me] == PKTS -> esp_ackq_leave()
	:: else
	fi;
#endif
	ok = g_queued[me];	/* esp_tokens_consumed() */
#ifdef BREAK_TRIM_LOCK
	ok = false;
#endif
	if
	:: ok -> atomic { !lock -> lock = true }
	:: else
	fi;
	e = (g_edge[me] > g_recv[me] -> g_edge[me] - g_recv[me] : 0);
	t = g_open[me];		/* grant_trim() */
	if
	:: t > e ->
		g_open[me] = e;
		t = t - e
	:: else -> t = 0
	fi;
	if
	:: ok -> lock = false
	:: else
	fi;
	d_step { ok = false; e = 0 }
	if
	:: t > 0 -> tokens_back(t)
	:: else
	fi;
	t = 0;
	if
	:: pump -> pump = false; esp_ack_pump()
	:: else
	fi;
	if
#ifndef SEED
	:: g_ann[me] && (g_expired[me] || MAX(g_edge[me], g_recv[me]) < PKTS) -> esp_enqueue_ack()
#elif defined(EAGER)
	:: g_ann[me] -> esp_enqueue_ack()
#else
	:: g_ann[me] && g_edge[me] <= g_recv[me] -> esp_enqueue_ack()
#endif
	:: else
	fi
}

/* esp_expiry(), rule 17; the receiver never gives the sender up */
inline esp_expiry()
{
	t_rrq[me] = false;
	if
	:: WATCHED(me) ->
		esp_ackq_void();
		if
		:: g_edge[me] > g_recv[me] -> esp_ackq_expired()
		:: else
		fi;
		esp_ack_pump()
	:: else
	fi;
	pump = false
}

/* A handler begins; it ends. While none runs, no grant is due, or the next packet brings it. */
inline begins()
{
	running++
}

inline ends()
{
#ifdef SEED
	running--
#else
	d_step {
		running--;
		if
		:: running == 0 && !lock && qlen > 0 ->
			turn_next();
			assert(j == NONE || leaves_at == NONE || SOLE > Q || g_expired[j] ||
			       (open > 0 && open > Q - LIMITED(j)));
			j = 0
		:: else
		fi
	}
#endif
}

active [N] proctype socket()
{
	byte o, c, j, r, e, t;
#ifndef SEED
	byte n, at, lim;
	bool sole;
#endif
	bool ok, pump;

	begins();
	/* a TXS, consumed in order: esp_ackq_announced() */
#if ADV > 0
	g_edge[me] = ADV;
#endif
	g_ann[me] = true;
	count++;
#ifdef SEED
#if ADV > 0
	open = open + ADV - 1;
	h_open[me] = h_open[me] + ADV - 1;
	g_open[me] = g_open[me] + ADV - 1;
#endif
#else
	atomic { !lock -> lock = true };
#if ADV > 0
	o = open;
	t = MIN(ADV - 1, BUCKET_ROOM(HOST(me)));
	d_step { t = MIN(t, (Q > o -> Q - o : 0)); o = 0 }
#endif
	leaves_at = NONE;
#if ADV > 0
	open = open + t;
	assert(open <= BOUND);
	h_open[HOST(me)] = h_open[HOST(me)] + t;
	g_open[me] = g_open[me] + t;
	t = 0;
#endif
	lock = false;
#endif
#if ADV > 0
	g_recv[me] = 1;		/* data_consume() */
	start_rrq_timer(me);
#endif
#if ADV >= PKTS && !defined(SEED)
	skip;			/* a first burst is all that there is */
#else
	esp_enqueue_ack();
#endif
	ends();
	do
	:: g_recv[me] == PKTS -> break
	:: atomic { g_recv[me] < PKTS && g_recv[me] < s_edge[me] -> begins() };
		esp_data_rcv();
		ends()
	:: atomic { expire > 0 && g_recv[me] < PKTS && t_rrq[me] && WATCHED(me) ->
		expire--;
		begins() };
		esp_expiry();
		ends()
#ifdef PROBE
	:: atomic { g_recv[me] < PKTS && g_recv[me] >= s_edge[me] &&
		t_rrq[me] && WATCHED(me) -> begins() };
		esp_expiry();
		ends()
	:: atomic { g_recv[me] < PKTS && g_recv[me] >= s_edge[me] && !g_queued[me] -> begins() };
		if
		:: g_edge[me] > g_recv[me] -> arrive(me, g_recv[me], g_edge[me] - g_recv[me])
		:: else -> esp_enqueue_ack()
		fi;
		ends()
#endif
	od;
	skip;
	d_step {
		over++;
		if
		:: over == N -> assert(open == 0 && count == 0 && qlen == 0 &&
				       g_open[me] == 0 && h_open[HOST(me)] == 0)
		:: else
		fi
	}
}
