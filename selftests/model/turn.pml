// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose turn it is while the budget decides: net/esp/core/turn.c, overdue.c, and the
 * parts of ackq.c and budget.c around them. Messages come without end.
 *
 *   socket i: a message begins, packets arrive, it ends		link: time passes
 *
 * Only numbers of packets count here; esp.pml has the packets. Socket 0 receives a long
 * message without end, the others short ones. Each step is a handler, with all grants
 * that it releases.
 *
 * Macros:
 *   N HOSTS H1 H2 H3  sockets, their sending hosts, the host of each; socket 0: host 0
 *   Q GRANT SLACK     budget, a grant by waiting time, the most by length
 *   SOLE WISH         packets that a sole sender may have, a grant that it waits for
 *   CAP               bucket of a host
 *   PORT              room for the first bursts that senders claim
 *   EVERY             one turn of so many goes by waiting time
 *   SHORT FIRST       packets of a short message; those of its first burst
 *   BUSY              packets may have BUSY, and then halve the bucket
 *   OVERDUE           packets that do not come are overdue after some time
 *   ANY_TIME          any packets may be so late
 *   SILENT            mask of hosts that send nothing of what they were granted
 *   PASSED            most grants of others while a grant is queued and not parked
 *   LTL_TURN          the long message gets its turn again and again
 *   BREAK_...         takes a rule away
 */

#ifndef N
#define N	3
#endif
#ifndef HOSTS
#define HOSTS	N
#endif
#ifndef H1
#define H1	1
#endif
#ifndef H2
#define H2	2
#endif
#ifndef H3
#define H3	1
#endif
#ifndef Q
#define Q	2
#endif
#ifndef GRANT
#define GRANT	1
#endif
#ifndef SLACK
#define SLACK	2
#endif
#ifndef SOLE
#define SOLE	(Q + 2)
#endif
#ifndef WISH
#define WISH	2
#endif
#ifndef CAP
#define CAP	Q
#endif
#ifndef PORT
#define PORT	Q
#endif
#ifndef EVERY
#define EVERY	3
#endif
#ifndef SHORT
#define SHORT	2
#endif
#ifndef FIRST
#define FIRST	1
#endif
#ifndef SILENT
#define SILENT	0
#endif

#define MIN(a, b)	((a) < (b) -> (a) : (b))
#define MAX(a, b)	((a) > (b) -> (a) : (b))
#define NONE		255
#define LARGEST		MAX(MAX(Q, PORT), SOLE)
#define HOST(i)		((i) == 0 -> 0 : ((i) == 1 -> H1 : ((i) == 2 -> H2 : H3)))
#define IS_SILENT(h)	((SILENT >> (h)) & 1)

/* struct esp_ackq, struct esp_budget */
byte open;		/* outstanding */
byte count;		/* esp_recv_count */
byte qlen;
byte leaves_at = NONE;
byte nth;		/* turns since the last one by waiting time */
bool later;		/* a grant waits for overdue packets: esp_ackq_resume() is called */
bool alone;		/* one sender has sent for some time: esp_grant.sole_from, one_sends() */
byte order[2 * HOSTS];	/* esp_turns.hosts: the first has waited longest; then the same */
byte nhosts;		/* hosts, as they came into the list of their class */

#define HOSTS_AT	0
#define CLASSES_AT	HOSTS

/* struct esp_host */
byte h_open[HOSTS];	/* outstanding */
byte h_best[HOSTS] = NONE;	/* class in which the host is; NONE: in none */
bool h_parked[HOSTS];
#ifdef BUSY
byte h_cap[HOSTS] = CAP;	/* busy_cap */
#endif
#ifdef OVERDUE
byte h_overdue[HOSTS];
byte h_newer[HOSTS];
byte overdue;		/* esp_overdue.tokens */
#else
#define overdue		0
#endif

/* struct esp_grant */
byte g_open[N];		/* outstanding */
byte g_want[N];		/* packets that the sender may not send yet */
bool g_ann[N];		/* recv_announced */
bool g_queued[N];
byte grants[N];		/* queued grants, the oldest first; those of a host in this order */

bool gap;		/* packets of socket 0 came out of order */
bool long_turn;		/* socket 0 got a grant in the last step */
bool short_turn;	/* another one did */
#ifdef PASSED
byte passed;		/* grants of others while that of socket 0 could have left */
#endif

hidden byte n, k, x, j, h, at, lim, wish, room, best, turns;
hidden byte stay, sole, pump, ready, gave_long, gave_short;

#define CLASS(i)	((i) == 0)
#define WANT(i)		((i) == 0 -> NONE : MAX(g_want[i], 1))
#define WANTS(i)	((i) == 0 || g_want[i] > 0)

/* esp_turn_fifo() */
#ifdef BREAK_FIFO
#define TURN_FIFO	false
#else
#define TURN_FIFO	(nth + 1 >= EVERY)
#endif

/* esp_host_cap(), esp_host_most(), esp_bucket_room(), esp_bucket_allows(), esp_bucket_quantum() */
#define HOST_MOST	(count <= 1 && alone -> MAX(Q, SOLE) : CAP)
#ifdef BUSY
#define HOST_CAP(h)	(h_cap[h] < CAP -> h_cap[h] : HOST_MOST)
#else
#define HOST_CAP(h)	HOST_MOST
#endif
#define BUCKET_ROOM(h)	(HOST_CAP(h) > h_open[h] -> HOST_CAP(h) - h_open[h] : 0)
#ifdef BREAK_BUCKET
#define ALLOWS(h, n)	true
#elif defined(BREAK_FLOOR)
#define ALLOWS(h, n)	(BUCKET_ROOM(h) >= (n))
#else
#define ALLOWS(h, n)	(h_open[h] == 0 || BUCKET_ROOM(h) >= (n))
#endif
#define QUANTUM(i)	MIN(MIN(GRANT, WANT(i)), MAX(HOST_CAP(HOST(i)) / 2, 1))

/* Remove host h from the list that begins at o. */
inline list_del(o, h)
{
	x = 0;
	do
	:: order[o + x] == h -> break
	:: else -> x++
	od;
	do
	:: x + 1 < nhosts -> order[o + x] = order[o + x + 1]; x++
	:: else -> break
	od
}

/* turn_place(): put host h into the lists in which it has to be */
inline turn_place(h)
{
	best = NONE;
	k = 0;
	do
	:: k < qlen ->
		if
		:: HOST(grants[k]) == h && !h_parked[h] && CLASS(grants[k]) < best ->
			best = CLASS(grants[k])
		:: else
		fi;
		k++
	:: else -> break
	od;
	if
	:: best == h_best[h] -> skip
	:: best != h_best[h] && h_best[h] == NONE ->
		order[nhosts] = h;
		order[CLASSES_AT + nhosts] = h;
		nhosts++
	:: best != h_best[h] && h_best[h] != NONE && best != NONE ->
		list_del(CLASSES_AT, h);
		order[CLASSES_AT + nhosts - 1] = h
	:: else ->
		list_del(HOSTS_AT, h);
		list_del(CLASSES_AT, h);
		nhosts--;
		order[nhosts] = 0;
		order[CLASSES_AT + nhosts] = 0
	fi;
	h_best[h] = best
}

/* esp_bucket_ready(), esp_turn_unpark(): j is the next grant of host h */
inline bucket_ready(h)
{
	ready = false;
	if
	:: h_parked[h] ->
		k = 0;
		j = NONE;
		do
		:: k < qlen ->
			if
			:: HOST(grants[k]) == h &&
			   (j == NONE || (!TURN_FIFO && CLASS(grants[k]) < CLASS(j))) ->
				j = grants[k]
			:: else
			fi;
			k++
		:: else -> break
		od;
		if
		:: ALLOWS(h, QUANTUM(j)) ->
			h_parked[h] = false;
			turn_place(h);
			ready = true
		:: else
		fi
	:: else
	fi
}

/* link_grant(), esp_turn_add() */
inline link_grant(i)
{
	grants[qlen] = i;
	qlen++;
	g_queued[i] = true;
	turn_place(HOST(i))
}

/* unlink_grant(), esp_turn_del() */
inline unlink_grant(i)
{
	k = 0;
	do
	:: grants[k] == i -> break
	:: else -> k++
	od;
	do
	:: k + 1 < qlen -> grants[k] = grants[k + 1]; k++
	:: else -> break
	od;
	qlen--;
	grants[qlen] = 0;
	g_queued[i] = false;
	turn_place(HOST(i));
	ready = false;
	k = 0;
	do
	:: k < qlen -> ready = ready || HOST(grants[k]) == HOST(i); k++
	:: else -> break
	od;
	h_parked[HOST(i)] = h_parked[HOST(i)] && ready
}

/* esp_turn_host(), esp_turn_next(): host h and grant j; NONE: there is none */
inline turn_next()
{
	h = NONE;
	k = 0;
	do
	:: k < nhosts ->
		if
		:: TURN_FIFO && h == NONE -> h = order[k]
		:: !TURN_FIFO && (h == NONE || h_best[order[CLASSES_AT + k]] < h_best[h]) ->
			h = order[CLASSES_AT + k]
		:: else
		fi;
		k++
	:: else -> break
	od;
	j = NONE;
	k = 0;
	do
	:: k < qlen && h != NONE ->
		if
		:: HOST(grants[k]) == h &&
		   (j == NONE || (!TURN_FIFO && CLASS(grants[k]) < CLASS(j))) -> j = grants[k]
		:: else
		fi;
		k++
	:: else -> break
	od
}

/* turn_take(), grant_sole(), grant_limit(), sole_leaves_at() */
inline turn_take()
{
	n = QUANTUM(j);
	sole = (count <= 1 && alone && !(j == 0 && gap));
	lim = (sole -> LARGEST : Q) + overdue;
#ifdef OVERDUE
	if
	:: sole -> lim = lim - h_overdue[h]
	:: else
	fi;
#endif
	at = lim - n;
	if
	:: sole ->
		wish = MAX(n, MIN(WISH, lim - lim / 2));
		room = HOST_CAP(h);
		at = MIN(lim - wish, room - MIN(wish, room / 2) + open - h_open[h])
	:: else
	fi
}

/* esp_overdue_granted() */
inline overdue_granted(h, n)
{
#ifdef OVERDUE
	h_newer[h] = MIN(h_newer[h] + n, LARGEST + CAP)
#else
	skip
#endif
}

/* ackq_pump_turns() */
inline esp_ack_pump()
{
	do
	:: qlen == 0 -> break
	:: else ->
		leaves_at = NONE;
		turn_next();
		if
		:: j == NONE -> break
		:: else
		fi;
		turn_take();
		if
		:: open > 0 && open > at ->
			leaves_at = at;
			later = (!sole || open > h_open[h]);
			break
		:: !(open > 0 && open > at) && !ALLOWS(h, n) ->
			h_parked[h] = true;
			turn_place(h)
		:: else ->
			room = MAX(BUCKET_ROOM(h), 1);
			if
			:: (!TURN_FIFO || nhosts == 1) && lim > open ->
				wish = MIN(WANT(j), lim - open);
				n = MAX(n, MIN(wish, (sole -> WISH : SLACK)))
			:: else
			fi;
			n = MIN(n, room);
			turns = (n + GRANT - 1) / GRANT;
			printf("  socket %d gets %d\n", j, n);
			open = open + n;
			h_open[h] = h_open[h] + n;
			g_open[j] = g_open[j] + n;
			g_want[j] = (g_want[j] > n -> g_want[j] - n : 0);
			assert(open <= lim);		/* no grant exceeds the budget, */
			assert(h_open[h] <= MAX(HOST_CAP(h), 1));	/* or the bucket */
			overdue_granted(h, n);
			gave_long = gave_long || j == 0;
			gave_short = gave_short || j != 0;
#ifdef PASSED
			passed = (j == 0 -> 0 : passed + (g_queued[0] && !h_parked[0]));
			assert(passed <= PASSED);
#endif
			stay = WANTS(j);
			unlink_grant(j);
			if
			:: stay -> link_grant(j)
			:: else
			fi;
			nth = (TURN_FIFO -> 0 : MIN(nth + turns, EVERY - 1));
			if
			:: h_best[h] != NONE ->		/* esp_turn_over() */
				list_del(HOSTS_AT, h);
				order[nhosts - 1] = h;
				list_del(CLASSES_AT, h);
				order[CLASSES_AT + nhosts - 1] = h
			:: else
			fi
		fi
	od
}

/* tokens_back() */
inline tokens_back(i, m)
{
	g_open[i] = g_open[i] - m;
	h_open[HOST(i)] = h_open[HOST(i)] - m;
	ready = false;
#ifndef BREAK_READY
	bucket_ready(HOST(i));
#endif
	open = open - m;
	pump = pump || (qlen > 0 && (ready || open == 0 || open <= leaves_at))
}

/* esp_ackq_announced(): m packets of a first burst are claimed */
inline announced(i, m)
{
	g_ann[i] = true;
	count++;
	n = m;
#ifndef BREAK_CLAIMS
	room = MAX(Q, PORT);
	room = (room > open -> room - open : 0);
	n = MIN(MIN(n, BUCKET_ROOM(HOST(i))), room);
#endif
	if
	:: count > 1 -> alone = false
	:: else
	fi;
#ifndef BREAK_LEAVES_AT
	leaves_at = NONE;
#endif
	overdue_granted(HOST(i), n);
	open = open + n;
	h_open[HOST(i)] = h_open[HOST(i)] + n;
	g_open[i] = g_open[i] + n
}

/* What must hold whenever no handler runs. */
inline check()
{
	n = 0;
	k = 0;
	do
	:: k < HOSTS ->
		x = 0;
		j = 0;
		do
		:: j < N ->
			if
			:: HOST(j) == k -> x = x + g_open[j]
			:: else
			fi;
			j++
		:: else -> break
		od;
		assert(x == h_open[k]);			/* tokens of each host */
		assert(h_open[k] <= MAX(CAP, SOLE));
		assert(!h_parked[k] || h_open[k] > 0);	/* its packets will end that */
		n = n + x;
		k++
	:: else -> break
	od;
	assert(n == open);				/* and of the port */
#ifndef ANY_TIME
	assert(open <= LARGEST + overdue);
#endif
	assert(qlen == 0 || open > 0);
	turn_next();
	if
	:: j != NONE ->
		turn_take();
		/* no grant is due, or it leaves with the next packet */
		assert(open > at || sole || leaves_at == NONE || !ALLOWS(h, n))
	:: else -> leaves_at = NONE
	fi;
	if
	:: qlen == 0 -> leaves_at = NONE; later = false
	:: else
	fi;
	long_turn = gave_long;
	short_turn = gave_short;
	gave_long = 0; gave_short = 0;
	n = 0; k = 0; x = 0; j = 0; h = 0; at = 0; lim = 0; wish = 0; room = 0; best = 0;
	turns = 0; stay = 0; sole = 0; pump = 0; ready = 0
}

/* Have all packets come that were granted before the last look? Silent hosts don't count. */
#ifdef OVERDUE
#define ON_TIME(h)	((h) >= HOSTS || IS_SILENT(h) || h_open[h] <= h_newer[h])
#define ALL_ON_TIME	(ON_TIME(0) && ON_TIME(1) && (HOSTS < 3 || ON_TIME(2 % HOSTS)) && \
			 (HOSTS < 4 || ON_TIME(3 % HOSTS)))
#endif

#define i	(_pid % N)

active [N] proctype socket()
{
	do
	:: d_step { i == 0 && !g_ann[i] ->
		announced(i, 0);
		link_grant(i);
		esp_ack_pump();
		check() }
	:: d_step { i > 0 && !g_ann[i] ->
		printf("socket %d: a message begins\n", i);
		announced(i, FIRST);
		g_want[i] = SHORT - FIRST;
		if
		:: WANTS(i) ->
			link_grant(i);
			esp_ack_pump()
		:: else
		fi;
		check() }
	:: d_step { g_open[i] > 0 && !IS_SILENT(HOST(i)) ->
		printf("socket %d: a packet\n", i);
		tokens_back(i, 1);
		if
		:: pump -> esp_ack_pump()
		:: else
		fi;
		check() }
	:: d_step { i == 0 && g_open[i] > 0 && !gap ->
		printf("socket %d: a packet out of order\n", i);
		gap = true;
#ifndef BREAK_GAP
		leaves_at = NONE;	/* esp_ackq_gap() */
#endif
		tokens_back(i, 1);
		if
		:: pump -> esp_ack_pump()
		:: else
		fi;
		check() }
	:: d_step { i == 0 && gap -> gap = false; check() }
#ifdef BUSY
	:: d_step { g_open[i] > 0 && !IS_SILENT(HOST(i)) ->
		printf("socket %d: a packet, busy\n", i);
		h_cap[HOST(i)] = h_cap[HOST(i)] / 2;
#ifndef BREAK_FLOOR
		h_cap[HOST(i)] = MAX(h_cap[HOST(i)], 1);
#endif
		tokens_back(i, 1);
		if
		:: pump -> esp_ack_pump()
		:: else
		fi;
		check() }
	:: d_step { h_cap[HOST(i)] < CAP && g_open[i] > 0 && !IS_SILENT(HOST(i)) ->
		printf("socket %d: a round without BUSY\n", i);
		h_cap[HOST(i)]++;
		bucket_ready(HOST(i));
		if
		:: ready -> esp_ack_pump()
		:: else
		fi;
		check() }
#endif
	:: d_step { i > 0 && g_ann[i] && !WANTS(i) && !IS_SILENT(HOST(i)) ->
		printf("socket %d: its message ends\n", i);
		if
		:: g_queued[i] -> unlink_grant(i)
		:: else
		fi;
		n = g_open[i];
		tokens_back(i, n);
		g_ann[i] = false;
		count--;
		esp_ack_pump();
		check() }
	od
}

active proctype link()
{
	do
	:: d_step { count <= 1 && !alone -> alone = true; check() }
#ifdef OVERDUE
#ifdef ANY_TIME
	:: d_step { later ->
#else
	:: d_step { later && ALL_ON_TIME ->
#endif
		/* esp_overdue_look(): all hosts are due; then esp_ackq_resume() */
		later = false;
		k = 0;
		overdue = 0;
		do
		:: k < HOSTS ->
			h_overdue[k] = h_open[k] - MIN(h_open[k], h_newer[k]);
			h_newer[k] = 0;
			overdue = overdue + h_overdue[k];
			k++
		:: else -> break
		od;
#ifdef BREAK_OVERDUE
		h_overdue[0] = 0; h_overdue[1] = 0; overdue = 0;
#endif
		printf("%d packets are overdue\n", overdue);
		esp_ack_pump();
		check() }
#endif
	od
}

#ifdef LTL_TURN
ltl turn { [] <> long_turn && [] <> short_turn }
#endif
