// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages, the N-way protocol (seed 001): tools/am/engine.c's tables, request.c, reply.c
 * and input.c, between two hosts, each of which makes requests to the other. In one step a host
 * takes a frame, posts a request, or sends a request again.
 *
 * A host takes a frame at any time, also while it waits for a credit. The transport has room for
 * QLEN frames each way; a reply that finds no room is lost. A request is sent again when no frame
 * of it is on the way and no frame waits at this host (EARLY: or before that).
 *
 *   N           slots: requests outstanding, 1 or 2
 *   WANT        requests of each host, or WANT1 of the second
 *   MOD         instance numbers: 2, the seed's one bit, or more
 *   QLEN        frames on their way to a host
 *   FAULTS      frames that get lost
 *   DUPS        frames that come twice
 *   OVERTAKEN   frames that others overtake
 *   EARLY       timeouts that come too early
 *   BREAK_...   takes a rule away
 */

#ifndef N
#define N	1
#endif
#ifndef WANT
#define WANT	3
#endif
#ifndef WANT1
#define WANT1	WANT
#endif
#ifndef MOD
#define MOD	2
#endif
#ifndef QLEN
#define QLEN	2
#endif
#ifndef FAULTS
#define FAULTS	0
#endif
#ifndef DUPS
#define DUPS	0
#endif
#ifndef OVERTAKEN
#define OVERTAKEN	0
#endif
#ifndef EARLY
#define EARLY	0
#endif

#define me		_pid
#define peer		(1 - me)
#define wanted		(me -> WANT1 : WANT)
#define out		(me * N + s)
#define in		(me * N + slot)
#define AGE		((instance - last[in] + MOD) % MOD)

mtype = { REQUEST, REPLY };

/* Frames on the way to each host: slot, instance, and the number of the request, for the checks. */
chan net[2] = [QLEN] of { mtype, byte, byte, byte };

byte faults = FAULTS, dups = DUPS, overtaken = OVERTAKEN, early = EARLY;

/* As initiator: variables of a host, and of each of its slots. */
byte made[2], waiting[2];
bit busy[2 * N];
byte next[2 * N], id[2 * N];

/* As target: the last instance, and its reply. */
bit known[2 * N], stored[2 * N];
byte last[2 * N];

/* How often the handler of each host's request ran, and the handler of its reply. */
byte ran[2 * WANT], answered[2 * WANT];

#define FINISHED (made[0] == WANT && made[1] == WANT1 && waiting[0] + waiting[1] == 0 && \
		  len(net[0]) + len(net[1]) == 0)

inline reply(to)
{
	if
	:: nfull(net[to]) -> net[to]!REPLY, slot, instance, which
	:: full(net[to])
	fi
}

inline handle()
{
	ran[peer * WANT + which]++;
	assert(ran[peer * WANT + which] == 1);
	known[in] = 1;
	last[in] = instance;
#ifdef BREAK_KEEP
	stored[in] = 0;
#else
	stored[in] = 1;
#endif
	reply(peer)
}

/* reply.c:in_slot() */
inline take_request()
{
	if
#if MOD == 2
	:: !known[in] || AGE != 0 -> handle()
#else
	:: !known[in] || (AGE > 0 && AGE < MOD / 2) -> handle()
	:: known[in] && AGE >= MOD / 2
#endif
#ifdef BREAK_DUPLICATE
	:: known[in] && AGE == 0 -> handle()
#else
	:: known[in] && AGE == 0 ->
		if
		:: stored[in] -> reply(peer)
		:: else
		fi
#endif
	fi
}

/* input.c:answer_take(); a reply to an older instance is late. */
inline take_reply()
{
	if
#ifdef BREAK_INSTANCE
	:: busy[in] ->
#else
	:: busy[in] && instance == (next[in] + MOD - 1) % MOD ->
#endif
		assert(which == id[in] && ran[me * WANT + which] == 1);
		answered[me * WANT + which]++;
		assert(answered[me * WANT + which] == 1);
		busy[in] = 0;
		waiting[me]--
	:: else
	fi
}

/* A request takes slot s. */
inline post()
{
#ifdef BREAK_STALL
	if
	:: busy[out]
	:: else -> waiting[me]++
	fi;
#else
	waiting[me]++;
#endif
	busy[out] = 1;
	id[out] = made[me];
	net[peer]!REQUEST, s, next[out], made[me];
	next[out] = (next[out] + 1) % MOD;
	made[me]++
}

#ifdef BREAK_STALL
#define FREE(k)		(made[me] < wanted && nfull(net[peer]))
#else
#define FREE(k)		(made[me] < wanted && nfull(net[peer]) && !busy[me * N + k])
#endif
#define BUSY(k)		(busy[me * N + k] && nfull(net[peer]))
#define STALE(k)	(BUSY(k) && empty(net[me]) && !(net[peer]??[REQUEST, k, _, _]))

inline again()
{
	net[peer]!REQUEST, s, (next[out] + MOD - 1) % MOD, id[out]
}

inline take()
{
	if
	:: type == REQUEST -> take_request()
	:: type == REPLY -> take_reply()
	fi
}

active [2] proctype host()
{
	mtype type;
	byte slot, instance, which, s;

	do
	/* A frame comes, gets lost, or comes twice, */
#ifdef BREAK_POLL
	:: atomic { (waiting[me] < N || made[me] == wanted || net[me]?[REPLY, _, _, _]) ->
		    net[me]?type, slot, instance, which; take(); slot = 0; instance = 0; which = 0 }
#else
	:: atomic { net[me]?type, slot, instance, which -> take(); slot = 0; instance = 0; which = 0 }
#endif
	:: atomic { faults > 0 && nempty(net[me]) -> faults--; net[me]?type, slot, instance, which;
		    slot = 0; instance = 0; which = 0 }
	:: atomic { dups > 0 && nempty(net[me]) -> dups--; net[me]?<type, slot, instance, which>;
		    take(); slot = 0; instance = 0; which = 0 }
	/* or after later frames. */
	:: atomic { overtaken > 0 && len(net[me]) > 1 -> overtaken--;
		    net[me]?type, slot, instance, which; net[me]!type, slot, instance, which;
		    slot = 0; instance = 0; which = 0 }
	/* A request takes a slot; a request is stale; or it seems to be. */
	:: atomic { FREE(0) -> post() }
	:: atomic { STALE(0) -> again() }
	:: atomic { early > 0 && BUSY(0) -> early--; again() }
#if N == 2
	:: atomic { FREE(1) -> s = 1; post(); s = 0 }
	:: atomic { STALE(1) -> s = 1; again(); s = 0 }
	:: atomic { early > 0 && BUSY(1) -> early--; s = 1; again(); s = 0 }
#endif
	:: atomic { FINISHED -> break }
	od
}
