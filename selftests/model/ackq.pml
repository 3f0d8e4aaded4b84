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
 *   PKTS        packets of each transmission
 *   Q GRANT     budget, size of a grant (adaptive)
 *   LONE        a single sender's grant, beyond the first one of a transmission
 *   ADV         first burst; its first packet announces. 0: an empty TXS does
 *   SEED BURST  the seed's policy as implemented, its window
 *   EAGER       packets_to_ack is 1; else ACKs are due when a grant is used up
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
#ifndef BURST
#define BURST	1
#endif
#ifndef ADV
#define ADV	0
#endif
#ifndef EXPIRE
#define EXPIRE	0
#endif

#define me		_pid
#ifdef SEED
#define SIZE		BURST
#define FAST(o, c)	((c) <= 1)
#define RELEASE(o, c)	(qlen >= (c) || (o) == 0)
#define BOUND		255		/* no bound but each window */
#else
#ifdef LONE
#define SIZE		n
#define LARGEST		LONE
#else
#define SIZE		GRANT
#define LARGEST		GRANT
#endif
#define FAST(o, c)	((o) < Q)
#define RELEASE(o, c)	((o) < Q)
#if ADV > 0
#define BOUND		(Q + LARGEST - 1 + N * (ADV - 1))
#else
#define BOUND		(Q + LARGEST - 1)
#endif
#endif

/* struct esp_ackq */
bool lock;
byte q[N];
byte qlen;
byte open;
byte count;		/* esp_recv_count */

/* struct esp_grant; recv_seq is also what was consumed */
byte g_open[N];
byte g_edge[N];
byte g_recv[N];
bool g_queued[N];
bool g_ann[N];
bool g_expired[N];
#ifdef LONE
bool g_begun[N];
#endif
bool t_rrq[N];

byte given[N] = ADV;	/* highest edge ever */
byte s_edge[N] = ADV;	/* edge as the sender knows it */
byte expire = EXPIRE;
byte over;		/* sockets that have received all */

hidden byte k;

/* Size of a grant: count and open may change meanwhile */
inline grant_size(g)
{
#ifdef LONE
	c = count;
	n = (g_begun[g] && c <= 1 && LONE > open + GRANT -> LONE - open : GRANT);
	c = 0
#else
	skip
#endif
}

/* ackq_reserve() with esp_policy_fast() or esp_policy_release(), rules 14 and 15 */
inline reserve(fast)
{
	o = open;
	do
	:: c = count;
		if
		:: (fast && FAST(o, c)) || (!fast && RELEASE(o, c)) ->
#ifdef BREAK_CMPXCHG
			open = open + SIZE;
			ok = true;
			break
#else
			atomic {	/* atomic_try_cmpxchg() */
				if
				:: open == o ->
					open = o + SIZE;
					ok = true;
					break
				:: else -> o = open
				fi
			}
#endif
		:: else ->
			ok = false;
			break
		fi
	od;
	c = 0
}

/* grant_extend(), rules 14 and 17; there is memory */
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
#ifdef LONE
		g_begun[g] = true;
#endif
#ifdef SEED
		t = (e + t <= r + BURST -> t : (r + BURST > e -> r + BURST - e : 0));
#endif
		d_step { given[g] = e + t; g_edge[g] = e + t }
	fi;
	g_open[g] = g_open[g] + t;
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

/* ackq_pump_turns(), rule 14: ok is true if g stays for another turn */
inline wants_more(g)
{
#ifndef SEED
	ok = (g_open[g] > had && !g_expired[g]);
	had = 0;
	if
	:: ok ->
		e = g_recv[g];
		c = count;
		d_step {
			ok = (g_edge[g] - e < (c > 1 -> Q / c : Q));
			c = 0;
			e = 0
		}
	:: else
	fi
#else
	d_step { ok = false; had = 0 }
#endif
}

/* esp_ack_pump(), unlink_grant(), grant_send(), rule 14 */
inline esp_ack_pump()
{
	do
	:: qlen == 0 -> break
	:: else ->
		atomic { !lock -> lock = true };
		if
		:: qlen == 0 -> ok = false
		:: else ->
			grant_size(q[0]);
			reserve(false)
		fi;
		if
		:: !ok ->
			lock = false;
			break
		:: else
		fi;
		assert(open <= BOUND);
		j = q[0];
		had = g_open[j];
		extend(j);
		wants_more(j);
		d_step {
			k = 0;
			do
			:: k + 1 < qlen -> q[k] = q[k + 1]; k++
			:: else -> break
			od;
			q[k] = (ok -> j : 0);
			k = 0;
			qlen = qlen - !ok
		}
		if
		:: !ok -> g_queued[j] = false
		:: else
		fi;
		d_step { lock = false; ok = false };
		esp_ack_send_other(j);
		start_rrq_timer(j);
		j = 0
	od;
	ok = false
}

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
		grant_size(me);
		if
		:: qlen == 0 -> reserve(true)
		:: else
		fi;
		if
		:: ok ->
			assert(open <= BOUND);
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
	fi
}

/* ackq_tokens_back(), rules 15 and 16 */
inline token_back(m)
{
	open = open - m;
	pump = pump || qlen > 0
}

/* esp_ackq_void(), rule 16 */
inline esp_ackq_void()
{
	d_step { t = g_open[me]; g_open[me] = 0 };
	if
	:: t > 0 -> token_back(t)
	:: else
	fi;
	t = 0
}

/* esp_ackq_leave(), esp_ackq_remove(), esp_ackq_ended(), rules 11 and 16 */
inline esp_ackq_leave()
{
	atomic { !lock -> lock = true };
	d_step {
		if
		:: g_queued[me] ->
			k = 0;
			do
			:: q[k] == me -> break
			:: else -> k++
			od;
			do
			:: k + 1 < qlen -> q[k] = q[k + 1]; k++
			:: else -> break
			od;
			q[k] = 0;
			k = 0;
			qlen--;
			g_queued[me] = false
		:: else
		fi
	}
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
	t = g_open[me];		/* esp_ackq_arrived() */
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
			token_back(1);
			break
		:: else
		fi
	od;
	start_rrq_timer(me);
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
	ok = g_queued[me];	/* esp_ackq_consumed() */
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
	:: t > 0 -> token_back(t)
	:: else
	fi;
	t = 0;
	if
	:: pump -> pump = false; esp_ack_pump()
	:: else
	fi;
	if
#ifdef EAGER
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

active [N] proctype socket()
{
	byte o, c, j, r, e, t, had;
#ifdef LONE
	byte n;
#endif
	bool ok, pump;

	/* a TXS, consumed in order: esp_ackq_announced() */
	g_ann[me] = true;
#if ADV > 0
	g_edge[me] = ADV;
	open = open + ADV - 1;
	g_open[me] = g_open[me] + ADV - 1;
	count++;
	g_recv[me] = 1;		/* data_consume() */
	start_rrq_timer(me);
#else
	count++;		/* esp_empty_rcv() */
#endif
	esp_enqueue_ack();
	do
	:: g_recv[me] == PKTS -> break
	:: atomic { g_recv[me] < PKTS && g_recv[me] < s_edge[me] -> skip };
		esp_data_rcv()
	:: atomic { expire > 0 && g_recv[me] < PKTS && t_rrq[me] && WATCHED(me) ->
		expire-- };
		esp_expiry()
#ifdef PROBE
	:: atomic { g_recv[me] < PKTS && g_recv[me] >= s_edge[me] &&
		t_rrq[me] && WATCHED(me) -> skip };
		esp_expiry()
	:: atomic { g_recv[me] < PKTS && g_recv[me] >= s_edge[me] && !g_queued[me] -> skip };
		if
		:: g_edge[me] > g_recv[me] -> arrive(me, g_recv[me], g_edge[me] - g_recv[me])
		:: else -> esp_enqueue_ack()
		fi
#endif
	od;
	skip;
	d_step {
		over++;
		if
		:: over == N -> assert(open == 0 && count == 0 && qlen == 0 &&
				       g_open[me] == 0)
		:: else
		fi
	}
}
