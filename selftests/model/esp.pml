// SPDX-License-Identifier: GPL-2.0-only
/*
 * ESP's flow control: N senders, one receiver with one ACK queue.
 *
 *   sender i                      the wire                 receiver
 *   sendmsg(), esp_push_frames()  data[i]: packets    net()        takes frames
 *   timer()   ESP_T_SEND          probe[i]: empty TXS rcv_timer()  RRQ, REORDER, ACK
 *   esp_ack()                     ACKs: arrive()      esp_data_rcv(), esp_empty_rcv()
 *
 * A handler of net/esp/ is one step: it runs under its socket's lock. ackq.pml
 * takes the queue's functions apart. Documentation/model.rst says what is
 * abstracted and why that is sound. Configurations: run.sh.
 *
 * Macros:
 *   N             senders
 *   S0 S1 S2      writes of each sender: the last digit is the number of packets of
 *                 its first write, the digit before that of its second, and so on
 *   A0 A1 A2      first burst of each sender (rule 21); their sum is F
 *   SMALL         mask of senders with packets of at most 256 bytes (rule 7)
 *   SEED          the seed's policy as implemented, else the adaptive one
 *   Q GRANT LONE  adaptive: budget, a grant, a single sender's grant
 *   BURST         seed's: burst_length
 *   P2A           packets_to_ack
 *   EXPIRIES      sysctl of this name (rule 17)
 *   GAPS          sysctl retries, as esp_gap_timeout() uses it
 *   FAULTS        frames that get lost, any frames in any direction
 *   DUPS          a fault may also double a data packet or probe
 *   LATE          a fault may also delay an ACK, or double it with a delay
 *   SPURIOUS      timeouts that come too early
 *   PROBES        probes are repeated whatever else happens
 *   RATE          ACKs that need no grant wait (rule 10, 100 us)
 *   MEM           packets that a receive buffer takes (rule 20); else unlimited
 *   DEATH, SLEEP  sender 0 dies at any moment; or stops, and later goes on
 *   NOLOSS        nothing may be taken for a loss; packets on the way are allowed
 *   EXACT         each granted packet that has not arrived has a token
 *   DRY           a gap is no reason for smaller grants
 *   TURN          no sender is passed twice
 *   BREAK_...     takes a mend away
 */

#ifndef N
#define N	3
#endif
#ifndef S0
#define S0	12
#endif
#ifndef S1
#define S1	2
#endif
#ifndef S2
#define S2	2
#endif
#ifndef A0
#define A0	1
#endif
#ifndef A1
#define A1	1
#endif
#ifndef A2
#define A2	0
#endif
#ifndef SMALL
#define SMALL	0
#endif
#ifndef Q
#define Q	2
#endif
#ifndef GRANT
#define GRANT	1
#endif
#ifndef LONE
#define LONE	2
#endif
#ifndef BURST
#define BURST	2
#endif
#ifndef P2A
#define P2A	2
#endif
#ifndef EXPIRIES
#define EXPIRIES 1
#endif
#ifndef GAPS
#define GAPS	0
#endif
#ifndef FAULTS
#define FAULTS	0
#endif
#ifndef SPURIOUS
#define SPURIOUS 0
#endif

#ifndef BOUND
#ifdef SEED
#define BOUND	(BURST * N)
#else
#define BOUND	(Q - 1 + GRANT > LONE -> Q - 1 + GRANT : LONE)
#endif
#endif

#define MAXP		5		/* packets of a sender */
#define BIT(s)		(1 << (s))
#define UPTO(a, b)	(BIT(b) - BIT(a))	/* packets a ... b - 1 */
#define BELOW(s)	(BIT(s) - 1)
#define OF3(i, a, b, c)	((i) == 0 -> (a) : ((i) == 1 -> (b) : (c)))
#define WSIZE(i, k)	((k) == 0 -> OF3(i, S0, S1, S2) % 10 : \
			 ((k) == 1 -> OF3(i, S0, S1, S2) / 10 % 10 : \
			  ((k) == 2 -> OF3(i, S0, S1, S2) / 100 : 0)))
#define ADV(i)		OF3(i, A0, A1, A2)
#define FIRST		(A0 + (N > 1 -> A1 : 0) + (N > 2 -> A2 : 0))
#define IS_SMALL(i)	((SMALL >> (i)) & 1)
#define ONES(m)		(((m) & 1) + (((m) >> 1) & 1) + (((m) >> 2) & 1) + \
			 (((m) >> 3) & 1) + (((m) >> 4) & 1))

/* Sender: struct esp_window and the state around it. */
byte s_wr[N];		/* writes done */
byte s_seq[N];		/* send_seq; the write queue ends here */
byte s_next[N];		/* send_next; sk_send_head if before send_seq */
byte s_una[N];		/* una_seq */
byte s_edge[N];		/* edge */
byte s_ann[N];		/* announce_seq, while announcing */
bool s_announcing[N];
bool s_granted[N];	/* since then an ACK opened the edge */
byte s_first[N];	/* edge before that: end of the first burst */
byte s_txs[N];		/* flags of the packets, masks */
byte s_txf[N];
byte s_rto[N];		/* rto_high while recovering, else 0 */
bool s_timer[N];	/* ESP_T_SEND */
bool s_tries[N];	/* probe_tries > 0 */
byte s_unans[N];	/* timeouts of probes in a row without any answer */
#ifdef MEM
byte s_cut[N];		/* how much the first burst was reduced */
#define S_ADV(i)	(ADV(i) - s_cut[i])
#else
#define S_ADV(i)	ADV(i)
#endif
bool s_up[N] = true;	/* neither dead nor asleep */

#define UNSENT(i)	(s_next[i] < s_seq[i])
#define ENDED(i)	(s_txf[i] & UPTO(s_ann[i], s_next[i]))
#define IN_TRANS(i)	(s_next[i] > 0 && !(s_txf[i] & BIT(s_next[i] - 1)))

/* The wire. */
byte data[N];		/* data packets on their way, a mask */
byte probe[N];		/* empty TXS on their way, a mask of their numbers */
#ifdef LATE
bool late_on[N];	/* an ACK that is delayed */
byte late_seq[N];
byte late_grant[N];
byte late_rrq[N];
bool late_overtaken[N];	/* esp_overtaken(): a younger one has arrived */
#define LATE_ON(i)	late_on[i]
#else
#define LATE_ON(i)	false
#endif
byte faults = FAULTS;
byte spurious = SPURIOUS;
#if defined(DEATH) || defined(SLEEP)
bool struck;		/* sender 0 has died, or has slept */
#endif

/* Receiver: struct esp_opt and struct esp_grant of each socket. */
byte r_seq[N];		/* recv_seq: also the packets that the application got */
byte r_ooo[N];		/* kept out of order, a mask */
byte r_high[N];		/* ooo_high, 0: nothing missing */
byte r_edge[N];		/* edge */
byte r_lo[N];		/* tok_lo */
byte r_open[N];		/* open */
bool r_queued[N];
bool r_expired[N];
bool r_again[N];	/* r_expired is 2 */
bool r_begun[N];
bool r_ann[N];		/* recv_announced */
byte r_exp[N];		/* expiries in a row */
byte r_toack[N];	/* to_ack, counted up to P2A */
bool r_owe[N];		/* ack_seq != recv_seq */
bool t_ack[N];		/* ack_pending, ESP_T_ACK */
bool t_rrq[N];		/* ESP_T_RRQ */
bool t_gap[N];		/* ESP_T_REORDER */
byte r_gap[N];		/* gap_seq */
byte r_rrqs[N];
#ifdef MEM
byte r_unread[N];	/* packets on sk_receive_queue */
bool r_press[N];	/* rcv_mem_pressure */
#endif

/* The ACK queue: struct esp_ackq. */
byte q[N];
byte qlen;
byte open;
byte count;		/* esp_recv_count */
#ifdef TURN
byte passed[N];		/* mask of senders released since this one was parked */
#endif

#ifdef LTL_DONE
bool finished;
#endif

/* Choices for the next step. */
byte pick;		/* the frame that arrives, or the timer that fires */
byte way;		/* fate of the frame */
byte hit;		/* which of the step's ACKs a fault hits, and how: arrive() */

/* Within a step only. */
hidden byte most, n, base, lim, tmp, tmp2, j, k, ne, seq, late;
#define OUTS	8
hidden byte outs, out_to[OUTS], out_seq[OUTS], out_grant[OUTS], out_rrq[OUTS];
hidden byte progress, opened, sent, stop, pump, ask, at_once, due, answer, given, stay, turned;

/*
 * The policies.
 */

/* esp_policy_grant(), rule 14, or a grant of the adaptive policy */
#ifdef SEED
#define GRANT_SIZE(i)	BURST
#else
#define GRANT_SIZE(i)	(r_begun[i] && count <= 1 && LONE > open + GRANT -> LONE - open : GRANT)
#endif

/* esp_grant_due(), rules 10 and 14; does a socket stay queued after its turn? */
#define HERE(i)		ONES(r_ooo[i])
#ifdef SEED
#define DUE(i)		(r_toack[i] >= P2A)
#define WANTS_MORE(i)	false
#else
#define LEFT(i)		(r_edge[i] > r_seq[i] + HERE(i) -> r_edge[i] - r_seq[i] - HERE(i) : 0)
#define SHARE		(count > 1 -> Q / count : Q)
#define HALF		(count <= 1 && LONE > GRANT -> LONE / 2 : GRANT / 2)
#define DUE(i)		(r_edge[i] >= r_seq[i] && LEFT(i) <= (SHARE > HALF -> SHARE : HALF))
#define WANTS_MORE(i)	(!r_expired[i] && LEFT(i) < SHARE)
#endif

/* esp_policy_fast(), rules 14 and 15 */
#ifdef SEED
#define POLICY_FAST	(count <= 1)
#else
#define POLICY_FAST	(open < Q)
#endif

/* esp_policy_release(), rule 14 */
#ifdef SEED
#define POLICY_RELEASE	(qlen >= count || open == 0)
#else
#define POLICY_RELEASE	(open < Q)
#endif

/*
 * The sender.
 */

/* esp_arm_send(), rule 8 */
inline esp_arm_send(i)
{
	s_timer[i] = (s_una[i] != s_next[i] || UNSENT(i))
}

/*
 * esp_push_frames(), esp_push_one_frame(), rules 2 and 4; esp_cwnd_test(),
 * esp_window_announce(), esp_window_test(), rules 3, 7 and 21.
 */
inline esp_push_frames(i)
{
	sent = false;
	stop = false;
	do
	:: !UNSENT(i) || stop -> break
	:: else ->
		if
		:: s_next[i] == s_seq[i] - 1 ->
			s_txf[i] = s_txf[i] | BIT(s_next[i])
		:: else
		fi;
		if
#ifdef BREAK_STANDS_STILL
		:: (s_txs[i] & BIT(s_next[i])) ->
#else
		:: (s_txs[i] & BIT(s_next[i])) && !s_announcing[i] ->
#endif
			s_ann[i] = s_next[i];
			s_announcing[i] = true;
			s_granted[i] = false;
			s_first[i] = 0;
			n = S_ADV(i);
			if
			:: n == 0 && IS_SMALL(i) && (s_txf[i] & BIT(s_next[i])) -> n = 1
			:: else
			fi;
#ifndef BREAK_WAY
			if
			:: n > 0 ->
				base = s_next[i] - s_una[i];
				n = (n > base -> n - base : 1)
			:: else
			fi;
#endif
			s_edge[i] = s_next[i] + n;
			if
			:: s_edge[i] == s_next[i] ->
				/* esp_send_probe(), rule 21 */
				printf("  %d announces %d\n", i, s_next[i]);
				probe[i] = probe[i] | BIT(s_next[i]);
				stop = true
			:: else
			fi
		:: else
		fi;
#ifndef BREAK_RETURN
		if
		:: ENDED(i) && s_announcing[i] && s_granted[i] &&
		   s_next[i] >= s_first[i] -> stop = true
		:: else
		fi;
#endif
		if
		:: s_next[i] >= s_edge[i] -> stop = true
		:: else
		fi;
		if
		:: !stop ->
			data[i] = data[i] | BIT(s_next[i]);
			printf("  %d sends %d txs %d txf %d\n", i, s_next[i],
			       (s_txs[i] >> s_next[i]) & 1, (s_txf[i] >> s_next[i]) & 1);
			s_next[i]++;
			sent = true
		:: else
		fi
	od;
	if
	:: (sent || UNSENT(i)) && !s_timer[i] -> esp_arm_send(i)
	:: else
	fi
}

/* sock_esp_sendmsg(), send_announce(), rules 1 and 2: a whole call is one step */
inline sendmsg(i)
{
	if
	:: UNSENT(i) -> s_txf[i] = s_txf[i] & ~BIT(s_seq[i] - 1)
	:: else -> s_txs[i] = s_txs[i] | BIT(s_seq[i])
	fi;
	s_seq[i] = s_seq[i] + WSIZE(i, s_wr[i]);
	assert(s_seq[i] <= MAXP);
	printf("%d writes %d packets\n", i, WSIZE(i, s_wr[i]));
	s_wr[i]++;
	s_txf[i] = s_txf[i] | BIT(s_seq[i] - 1);
	esp_push_frames(i)
}

/*
 * esp_ack() with esp_window_ack(), rules 3 and 21; ack_recover(), rule 8;
 * esp_rrq_rcv(), rule 19; then esp_push_frames().
 */
inline esp_ack(i, a, g, rrq, late)
{
	s_unans[i] = 0;
	assert(a <= s_next[i]);
	if
	:: a < s_una[i] || (late && a == s_una[i]) -> skip	/* ESP_ACK_STALE */
	:: else ->
		progress = (a != s_una[i]);
		opened = false;
		s_una[i] = a;
		if
		:: s_announcing[i] && a > s_ann[i] ->
			s_announcing[i] = false;
			/* window_announced_next() */
			n = s_next[i] - 1;
			do
			:: n > s_ann[i] && !(s_txs[i] & BIT(n)) -> n--
			:: else -> break
			od;
			if
			:: IN_TRANS(i) && n > s_ann[i] ->
				s_edge[i] = (s_granted[i] -> s_first[i] : s_edge[i]);
				if
				:: a <= n ->
					s_ann[i] = n;
					s_announcing[i] = true;
					s_granted[i] = false;
					s_first[i] = 0
				:: else
				fi
			:: else
			fi
		:: else
		fi;
		if
		:: a == s_next[i] && !IN_TRANS(i) && !s_announcing[i] ->
			printf("  %d idle, advice %d\n", i, g);
#ifdef MEM
			assert(g <= ADV(i));	/* a first burst, never a grant */
			s_cut[i] = ADV(i) - g
#else
			assert(g == ADV(i))
#endif
		:: s_announcing[i] && a < s_ann[i] -> skip	/* before it was announced */
		:: else ->
			if
			:: a + g > s_edge[i] ->
				if
				:: !s_granted[i] && s_announcing[i] -> s_first[i] = s_edge[i]
				:: else
				fi;
				s_edge[i] = a + g;
				s_granted[i] = true;
				opened = true
			:: else
			fi
		fi;
		if
		:: progress && s_rto[i] > a ->		/* ack_recover() */
			data[i] = data[i] | UPTO(a, s_rto[i])
		:: progress && s_rto[i] <= a -> s_rto[i] = 0
		:: else
		fi;
		if
		:: progress || opened ->
			s_tries[i] = false;
			esp_arm_send(i)
		:: else
		fi
	fi;
	data[i] = data[i] | (rrq & UPTO(s_una[i], s_next[i]));
	if
	:: UNSENT(i) -> esp_push_frames(i)
	:: else
	fi;
	/* not in the code: forget flags that can't matter any more */
	s_txs[i] = s_txs[i] & ~BELOW(s_una[i]);
	s_txf[i] = s_txf[i] & ~(BELOW(s_una[i]) >> 1);
	if
	:: !s_announcing[i] ->
		s_ann[i] = 0;
		s_granted[i] = false;
		s_first[i] = 0;
		if
		:: !UNSENT(i) && s_una[i] == s_next[i] && !IN_TRANS(i) ->
			s_edge[i] = s_next[i]
		:: else
		fi
	:: else
	fi
}

/* send_timeout(), rules 8 and 13 */
inline send_timeout(i)
{
	s_timer[i] = false;
	if
	:: s_una[i] != s_next[i] ->
		s_unans[i]++;
#ifdef NOLOSS
		assert(false);			/* rule 13: waiting is not loss */
#endif
		printf("%d times out, sends %d again\n", i, s_una[i]);
		s_rto[i] = s_next[i];
		data[i] = data[i] | BIT(s_una[i])
#ifdef BREAK_PROBE
	:: s_una[i] == s_next[i] && UNSENT(i) -> skip
#else
	:: s_una[i] == s_next[i] && UNSENT(i) ->
		s_unans[i]++;
		printf("%d probes %d\n", i, s_next[i]);
		s_tries[i] = true;
		probe[i] = probe[i] | BIT(s_next[i])	/* esp_send_probe() */
#endif
	:: else
	fi;
	/* send_gave_up(): only silence ends a connection */
	assert(s_unans[i] <= FAULTS + SPURIOUS + 2);
	esp_arm_send(i)
}

/*
 * The receiver.
 */

/* esp_grant_room(), rule 20: packets are all of one size */
#ifdef MEM
#define RMEM(i)		(r_unread[i] + HERE(i))
#define ROOM(i)		(RMEM(i) < MEM -> MEM - RMEM(i) : 0)
#define ADVICE_NOW(i)	(ADV(i) < ROOM(i) -> ADV(i) : ROOM(i))
#define PRESSURE(i)	r_press[i]
#else
#define ADVICE_NOW(i)	ADV(i)
#define PRESSURE(i)	false
#endif

/* frame_grant(), rules 14 and 21 */
#define GRANT_NOW(i)	(r_ann[i] -> (r_edge[i] > r_seq[i] -> r_edge[i] - r_seq[i] : 0) : \
			 ADVICE_NOW(i))

/*
 * Send a frame to sender i, with an RRQ or not. It is recorded as it leaves, and
 * arrives at the end of the step: arrive().
 */
inline emit(i, rrq)
{
	assert(outs < OUTS);
	out_to[outs] = i;
	out_seq[outs] = r_seq[i];
	out_grant[outs] = GRANT_NOW(i);
	out_rrq[outs] = rrq;
	outs++
}

/*
 * The frames of this step arrive, unless a fault hits one. hit is the number of a
 * lost frame; 4 + the number: it is delayed; 8 + the number: it comes, and later again.
 */
inline arrive()
{
	k = 0;
	do
	:: k < outs ->
		j = out_to[k];
		printf("  to %d: ack %d grant %d rrq %d\n", j, out_seq[k], out_grant[k],
		       out_rrq[k]);
		if
		:: s_up[j] ->
			ne++;
			late = false;
			if
			:: hit == ne && faults > 0 ->
				printf("  that is lost\n");
				faults--;
				late = true
#ifdef LATE
			:: hit > 4 && (hit & 3) == ne && !late_on[j] && faults > 0 ->
				faults--;
				printf("  that is delayed, or comes late once more\n");
				late_on[j] = true;
				late_seq[j] = out_seq[k];
				late_grant[j] = out_grant[k];
				late_rrq[j] = out_rrq[k];
				late_overtaken[j] = false;
				late = (hit < 8)
			:: else -> late_overtaken[j] = late_on[j]
#else
			:: else
#endif
			fi;
			if
			:: !late -> esp_ack(j, out_seq[k], out_grant[k], out_rrq[k], false)
			:: else
			fi
		:: else
		fi;
		out_to[k] = 0;
		out_seq[k] = 0;
		out_grant[k] = 0;
		out_rrq[k] = 0;
		k++
	:: else -> break
	od;
	outs = 0
}

/* esp_send_ack(), frame_ack_left() */
inline esp_send_ack(i)
{
	emit(i, 0);
	r_owe[i] = false;
	t_ack[i] = false;
	r_toack[i] = 0
}

/* esp_send_rrq(), rule 19: ask for the packets missing before end */
inline esp_send_rrq(i, end)
{
	lim = end;
	emit(i, UPTO(r_seq[i], lim) & ~r_ooo[i]);
	r_owe[i] = false;
	t_ack[i] = false;
	r_toack[i] = 0
}

/* esp_ack_now(), rule 10 */
inline esp_ack_now(i)
{
#ifdef RATE
	t_ack[i] = true
#else
	esp_send_ack(i)
#endif
}

/* send_hold(), rule 13 */
inline hold(i)
{
#ifndef BREAK_HOLD
	esp_send_ack(i)
#else
	skip
#endif
}

/* grant_extend(): n tokens are reserved; rules 14, 17 and 20 */
inline extend(i)
{
	base = (r_seq[i] > r_edge[i] -> r_seq[i] : r_edge[i]);
	if
#ifndef BREAK_SAY_AGAIN
	:: r_expired[i] && base != r_seq[i] ->
		lim = r_seq[i] + r_open[i];
#ifdef BREAK_SAID_HERE
		lim = lim + HERE(i);
#endif
		tmp = (base > lim -> base - lim : 0);
		most = (r_again[i] -> 1 : n);
		r_expired[i] = (tmp > most);
#ifdef BREAK_SAID_ALL
		r_expired[i] = false;
#endif
		tmp = (tmp < most -> tmp : most);
		r_again[i] = r_again[i] && r_expired[i];
		r_lo[i] = r_seq[i]
#endif
	:: else ->
		tmp = n;
		r_expired[i] = false;
		r_again[i] = false;
		r_begun[i] = true;
#ifdef SEED
		lim = r_seq[i] + BURST;
		if
		:: base + tmp > lim -> tmp = (lim > base -> lim - base : 0)
		:: else
		fi;
#endif
#ifdef MEM
		lim = r_seq[i] + ROOM(i) + HERE(i);	/* grant_room() */
		if
		:: base + tmp > lim -> tmp = (lim > base -> lim - base : 0)
		:: else
		fi;
#endif
		if
		:: r_edge[i] < r_seq[i] -> r_lo[i] = r_seq[i]
		:: else
		fi;
		r_edge[i] = base + tmp
	fi;
	r_open[i] = r_open[i] + tmp;
	open = open - (n - tmp);
	given = (tmp > 0 || r_edge[i] != r_seq[i]);
#ifdef MEM
	if
	:: !given -> r_press[i] = true
	:: else
	fi
#else
	assert(given)
#endif
}

/* The sockets that the RRQ timer watches. */
#ifndef BREAK_WATCH
#define WATCHED(i)	(r_open[i] > 0 || \
			 (r_ann[i] && !r_queued[i] && r_edge[i] > r_seq[i]))
#else
#define WATCHED(i)	(r_open[i] > 0)
#endif

/* start_rrq_timer(), rule 17 */
inline start_rrq_timer(i)
{
	if
	:: WATCHED(i) -> t_rrq[i] = true
	:: else
	fi
}

/* unlink_grant() of the queue's entry number x */
inline unlink_grant(x)
{
	r_queued[q[x]] = false;
	qlen--;
	k = x;
	do
	:: k < qlen -> q[k] = q[k + 1]; k++
	:: else -> break
	od;
	q[qlen] = 0;
	k = 0
}

/* esp_ack_pump(), grant_send(), esp_ack_send_other(), rules 6 and 14 */
inline esp_ack_pump()
{
	do
	:: qlen > 0 && POLICY_RELEASE ->
		j = q[0];
		n = GRANT_SIZE(j);
		open = open + n;
		extend(j);
		printf("  %d released, edge %d, open %d\n", j, r_edge[j], open);
		stay = (tmp > 0 && WANTS_MORE(j));
		turned = (turned & ~BIT(j)) | (tmp > 0 -> BIT(j) : 0);
#ifdef BREAK_MORE
		stay = false;
#endif
#ifdef BREAK_TAIL
		if
		:: !stay -> unlink_grant(0)
		:: else
		fi;
#else
		unlink_grant(0);
		if
		:: stay ->
			q[qlen] = j;
			qlen++;
			r_queued[j] = true
		:: else
		fi;
#endif
#ifdef TURN
		passed[j] = 0;
		do
		:: k < N ->
			if
			:: r_queued[k] && k != j ->
				assert(!(passed[k] & BIT(j)));
				passed[k] = passed[k] | BIT(j)
			:: else
			fi;
			k++
		:: else -> break
		od;
		k = 0;
#endif
		emit(j, 0);
		start_rrq_timer(j)
	:: else -> break
	od
}

/* esp_ackq_park(), rules 11 and 17 */
inline esp_ackq_park(i, head)
{
	if
	:: head ->
		k = qlen;
		do
		:: k > 0 -> q[k] = q[k - 1]; k--
		:: else -> break
		od;
		q[0] = i
	:: else -> q[qlen] = i
	fi;
	qlen++;
#ifdef TURN
	passed[i] = 0;
#endif
	printf("  %d parked, queue %d, open %d count %d\n", i, qlen, open, count);
	r_queued[i] = true
}

/* esp_enqueue_ack(), esp_ackq_fast(), rules 10, 11, 13 and 15 */
inline esp_enqueue_ack(i, answer)
{
	r_toack[i] = 0;
	if
	:: r_queued[i] ->
		if
		:: answer -> hold(i)
		:: else
		fi
	:: !r_queued[i] && qlen == 0 && POLICY_FAST ->
		n = GRANT_SIZE(i);
		open = open + n;
		extend(i);
		printf("  %d at once, edge %d, open %d\n", i, r_edge[i], open);
		/* esp_ackq_fast() pumps here: no socket is queued */
		if
		:: given ->
			start_rrq_timer(i);
			esp_send_ack(i)
		:: !given && answer -> hold(i)
		:: else
		fi
	:: else ->
		stop = PRESSURE(i);	/* nothing can be given: not parked */
		if
#ifdef BREAK_TURN
		:: !stop -> esp_ackq_park(i, true)
#else
		:: !stop -> esp_ackq_park(i, false)
#endif
		:: else
		fi;
#ifndef BREAK_PUMP_AFTER_PARK
		esp_ack_pump();
#endif
		if
		:: answer && (stop || r_queued[i]) -> hold(i)
		:: else
		fi
	fi
}

#ifdef MEM
/* esp_pressure_lifted(), rule 20 */
inline esp_pressure_lifted(i)
{
	if
	:: r_press[i] && (ROOM(i) > 0 || r_unread[i] == 0) ->
		r_press[i] = false;
		if
		:: r_ann[i] -> esp_enqueue_ack(i, true)
		:: else -> esp_send_ack(i)
		fi
	:: else
	fi
}

/* The application reads a packet: recvmsg.c */
inline recvmsg(i)
{
	printf("%d reads a packet\n", i);
	r_unread[i]--;
	esp_pressure_lifted(i)
}

/* ack_timeout() */
inline ack_timeout(i)
{
	esp_pressure_lifted(i);
	if
	:: t_ack[i] -> esp_send_ack(i)
	:: else
	fi
}

/* charge(), data_was_allowed(), rule 20 */
#define ALLOWED(i, s)	(RMEM(i) <= MEM || (r_ann[i] && s < r_edge[i]) || s < r_seq[i] + ADV(i))
#else
#define ack_timeout(i)	esp_send_ack(i)
#define ALLOWED(i, s)	true
#endif

/* esp_ackq_void(), rule 16 */
inline esp_ackq_void(i)
{
	open = open - r_open[i];
	r_open[i] = 0
}

/* esp_ackq_announced(), rules 16 and 18: the rest of the first burst has tokens */
inline esp_ackq_announced(i, edge)
{
	r_ann[i] = true;
	r_begun[i] = false;
	r_expired[i] = false;
	r_again[i] = false;
	r_edge[i] = (edge < r_seq[i] -> r_seq[i] : edge);
	r_lo[i] = r_seq[i];
	tmp = r_edge[i] - r_seq[i];
#ifndef BREAK_FIRST
	r_open[i] = r_open[i] + tmp;
	open = open + tmp;
#endif
	count++
}

/* esp_ackq_leave(void), esp_ackq_ended(), rules 11, 16 and 18 */
inline esp_ackq_leave(i)
{
	if
	:: r_queued[i] ->
		base = 0;
		do
		:: q[base] == i -> break
		:: else -> base++
		od;
		unlink_grant(base)
	:: else
	fi;
#ifndef BREAK_VOID
	esp_ackq_void(i);
#endif
	if
	:: r_ann[i] ->
		r_ann[i] = false;
		r_edge[i] = r_seq[i];
		count--
	:: else
	fi;
	t_rrq[i] = false;
#ifndef BREAK_PUMP_AFTER_VOID
	esp_ack_pump()
#endif
}

/* esp_expiry(), rule 17 */
inline esp_expiry(i)
{
	t_rrq[i] = false;
	printf("%d: %d tokens expire\n", i, r_open[i]);
#ifdef NOLOSS
	assert(false);
#endif
	if
	:: WATCHED(i) ->
#ifndef BREAK_EXPIRY
		esp_ackq_void(i);
#endif
		r_exp[i]++;
		if
#ifdef BREAK_ABANDON
		:: r_exp[i] > EXPIRIES && false ->
#else
		:: r_exp[i] > EXPIRIES ->
#endif
			r_exp[i] = 0;
			esp_ackq_leave(i)
		:: else ->
#ifdef BREAK_ABANDON
			r_exp[i] = 0;
#endif
			if
			:: r_ann[i] && r_edge[i] > r_seq[i] ->
				esp_send_rrq(i, r_edge[i]);
#ifdef BREAK_SAID_PARKED
				r_expired[i] = (r_expired[i] || !r_queued[i]);
#else
				r_expired[i] = true;
#endif
				r_again[i] = (r_exp[i] > 1);
				if
				:: !r_queued[i] ->
					esp_ackq_park(i, true)
				:: else
				fi
			:: else
			fi;
#ifndef BREAK_PUMP_AFTER_VOID
			esp_ack_pump()
#endif
		fi
	:: else
	fi
}

/* esp_gap_seen(), rule 19 */
inline gap_seen(i, end)
{
	if
	:: end > r_high[i] -> r_high[i] = end
	:: else
	fi;
	if
	:: !t_gap[i] ->
		t_gap[i] = true;
		r_rrqs[i] = 0;
		r_gap[i] = r_seq[i]
	:: else
	fi
}

/* esp_gap_timeout(), rule 19 */
inline esp_gap_timeout(i)
{
	printf("%d: the gap at %d lasts\n", i, r_seq[i]);
	t_gap[i] = false;
	if
	:: r_high[i] > r_seq[i] ->
		if
		:: r_gap[i] != r_seq[i] ->
			r_gap[i] = r_seq[i];
			r_rrqs[i] = 0
		:: else
		fi;
		esp_send_rrq(i, r_high[i]);
		r_rrqs[i]++;
		if
		:: r_rrqs[i] > GAPS -> r_rrqs[i] = 0
		:: else -> t_gap[i] = true
		fi
	:: else
	fi
}

/* token_arrived(), esp_ackq_arrived(), rules 16 and 17 */
inline token_arrived(i, s)
{
	if
#ifndef BREAK_TOKENS
	:: s >= r_lo[i] && s < r_edge[i] && r_open[i] > 0 ->
#else
	:: s >= r_lo[i] && r_open[i] > 0 ->
#endif
		r_open[i]--;
		open--;
		pump = (qlen > 0)
	:: else
	fi;
	r_exp[i] = 0;
	start_rrq_timer(i)
}

/* data_consume(), rules 10 and 18; the application gets the packet */
inline consume(i, s)
{
	r_seq[i] = s + 1;
	r_owe[i] = true;
#ifdef MEM
	r_unread[i]++;
#endif
	if
	:: !(s_txf[i] & BIT(s)) && !r_ann[i] ->
		/* without TXS: a sender that was given up after expiries goes on (rule 17) */
		if
		:: s_txs[i] & BIT(s) -> lim = s + ADV(i)
		:: else -> lim = s + 1
		fi;
		esp_ackq_announced(i, lim);
		start_rrq_timer(i);
		ask = true
	:: (s_txf[i] & BIT(s)) && r_ann[i] ->
		esp_ackq_leave(i);
		r_exp[i] = 0;
		at_once = true;
		ask = false
	:: else
	fi;
	if
	:: r_toack[i] < P2A -> r_toack[i]++
	:: else
	fi
}

/* ack_consumed(), rules 7, 10 and 14; esp_data_rcv() enqueues */
inline ack_consumed(i)
{
	if
	:: r_ann[i] ->
		answer = (ask || r_edge[i] <= r_seq[i]);
		due = (answer || DUE(i));
		if
		:: !due && r_toack[i] >= P2A && !r_queued[i] -> esp_send_ack(i)
		:: else
		fi
	:: !r_ann[i] && at_once -> esp_send_ack(i)
	:: !r_ann[i] && !at_once ->
		if
		:: r_toack[i] >= P2A -> esp_ack_now(i)
		:: else -> t_ack[i] = true	/* esp_ack_soon() */
		fi
	fi
}

/* esp_data_rcv(), rules 10, 16, 18 and 19 */
inline esp_data_rcv(i, s)
{
	pump = false;
	ask = false;
	at_once = false;
	due = false;
	answer = false;
#ifdef BREAK_TXS_ONCE
	if
	:: (s_txs[i] & BIT(s)) && !(s_txf[i] & BIT(s)) && s != r_seq[i] -> count++
	:: else
	fi;
#endif
	if
#ifndef BREAK_DUP_CHECK
	:: s < r_seq[i] -> esp_ack_now(i)
#endif
#ifdef MEM
	:: s >= r_seq[i] && !ALLOWED(i, s) ->
		printf("%d: no memory for %d\n", i, s);
#ifdef NOLOSS
		assert(false);		/* granted packets are taken */
#endif
		r_press[i] = true;
		esp_ack_now(i)
#endif
	:: s > r_seq[i] && ALLOWED(i, s) && (r_ooo[i] & BIT(s)) -> esp_ack_now(i)
	:: s > r_seq[i] && ALLOWED(i, s) && !(r_ooo[i] & BIT(s)) ->
		r_ooo[i] = r_ooo[i] | BIT(s);		/* ooo_keep() */
		if
		:: s + 1 > r_high[i] -> r_high[i] = s + 1
		:: else
		fi;
		token_arrived(i, s);
		gap_seen(i, s);
		if
		:: pump -> esp_ack_pump()
		:: else
		fi;
#ifndef BREAK_DRY
		due = (r_ann[i] && !r_queued[i] && DUE(i));
#endif
		at_once = true
	:: else ->
		assert(s == r_seq[i]);			/* each once, in order */
		token_arrived(i, s);
		r_ooo[i] = r_ooo[i] | BIT(s);
		do
		:: r_ooo[i] & BIT(r_seq[i]) ->		/* data_consume(), ooo_consume() */
			r_ooo[i] = r_ooo[i] & ~BIT(r_seq[i]);
			seq = r_seq[i];
			consume(i, seq)
		:: else -> break
		od;
		/* esp_ackq_consumed(), rule 16 */
		lim = (r_edge[i] > r_seq[i] -> r_edge[i] - r_seq[i] : 0);
		if
#ifdef BREAK_VOID
		:: r_open[i] > lim && false ->
#else
		:: r_open[i] > lim ->
#endif
			open = open - (r_open[i] - lim);
			r_open[i] = lim;
			pump = pump || qlen > 0
		:: else
		fi;
		if
		:: pump -> esp_ack_pump()
		:: else
		fi;
		if
		:: r_high[i] <= r_seq[i] ->
			r_high[i] = 0;
			t_gap[i] = false
		:: r_high[i] > r_seq[i] && r_gap[i] != r_seq[i] && t_gap[i] ->
			r_gap[i] = r_seq[i];
			r_rrqs[i] = 0
		:: else
		fi;
		ack_consumed(i)
	fi;
	if
	:: due -> esp_enqueue_ack(i, answer)
	:: else
	fi;
	if
	:: at_once && r_owe[i] -> esp_ack_now(i)
	:: else
	fi
}

/* esp_empty_rcv() of a probe, rules 10, 13 and 21 */
inline esp_empty_rcv(i, s)
{
	if
	:: s > r_seq[i] ->
		gap_seen(i, s);
		esp_ack_now(i)
	:: s < r_seq[i] -> esp_ack_now(i)
	:: else ->
		if
		:: !r_ann[i] -> esp_ackq_announced(i, s)
		:: else
		fi;
#ifdef MEM
		esp_pressure_lifted(i);
#endif
		if
		:: r_edge[i] > r_seq[i] ->
			esp_ack_now(i)	/* the answer was lost, so send it again */
		:: else -> esp_enqueue_ack(i, true)
		fi
	fi
}

/*
 * Check the properties that must hold whenever no handler runs.
 */
inline check()
{
	n = 0;
	tmp = 0;
	base = 0;
	j = 0;
	do
	:: j < N ->
		n = n + r_open[j];
		tmp = tmp + r_ann[j];
		assert(!WATCHED(j) || t_rrq[j]);	/* each token has a timer */
		assert(r_open[j] == 0 || r_edge[j] > r_seq[j]);
#ifdef MEM
		assert(!r_press[j] || ROOM(j) == 0);
#endif
		assert(r_open[j] == 0 || r_open[j] <= r_edge[j] - r_seq[j]);
		/* granted packets that have not arrived are counted, or no more is granted */
		assert(!r_ann[j] || r_expired[j] || r_edge[j] <= r_seq[j] ||
		       ONES(UPTO(r_seq[j], r_edge[j]) & ~r_ooo[j]) <= r_open[j]);
#ifndef SEED
		/* a released sender waits for more, or has its share */
		assert(!(turned & BIT(j)) || !r_ann[j] || r_queued[j] || r_expired[j] ||
		       LEFT(j) >= SHARE);
#endif
#ifdef DRY
		/* a sender that does not wait has packets granted that have not arrived */
		assert(!r_ann[j] || r_queued[j] || LEFT(j) >= (GRANT < Q / N -> GRANT : Q / N));
#endif
#ifdef EXACT
		/* each granted packet that has not arrived has a token */
		lim = (r_lo[j] > r_seq[j] -> r_lo[j] : r_seq[j]);
		assert(!r_ann[j] || r_edge[j] <= lim ||
		       ONES(UPTO(lim, r_edge[j]) & ~r_ooo[j]) <= r_open[j]);
#endif
#ifdef NOLOSS
		/* packets on the way have tokens, except for a part of one first burst that
		   is not yet announced */
		lim = r_open[j];
		if
		:: s_announcing[j] && s_ann[j] >= r_seq[j] ->
			tmp2 = (S_ADV(j) > 0 -> S_ADV(j) : IS_SMALL(j));
			lim = (tmp2 > lim + 1 -> tmp2 : lim + (tmp2 > 0))
		:: else
		fi;
		assert(ONES(data[j]) <= lim);
#endif
		if
		:: !WATCHED(j) -> t_rrq[j] = false
		:: else
		fi;
		if
		:: !t_gap[j] -> r_gap[j] = 0; r_rrqs[j] = 0
		:: else
		fi;
		if
		:: !r_ann[j] && r_open[j] == 0 -> r_lo[j] = 0; r_begun[j] = false
		:: else
		fi;
		j++
	:: else -> break
	od;
	assert(open == n);
	assert(count == tmp);				/* esp_recv_count can't leak */
	assert(open <= BOUND + FIRST);
	assert(qlen == 0 || (open > 0 && !POLICY_RELEASE));	/* liveness */
	n = 0;
	tmp = 0;
	tmp2 = 0;
	turned = 0;
	base = 0;
	lim = 0;
	j = 0;
	k = 0;
	ne = 0;
	seq = 0;
	hit = 0;
	way = 0;
	pick = 0
}

/*
 * Events.
 */

#define EMPTY(i)	(data[i] == 0 && probe[i] == 0 && !LATE_ON(i))
#ifdef MEM
#define UNREAD(i)	r_unread[i]
#else
#define UNREAD(i)	0
#endif
#define REPEATED(i)	(s_una[i] == s_next[i] && s_tries[i])
#define AT_REST(i)	(EMPTY(i) && !t_ack[i] && !t_rrq[i] && !t_gap[i] && \
			 (!s_timer[i] || !s_up[i] || REPEATED(i)) && UNREAD(i) == 0)
#if N == 1
#define ALL_AT_REST	AT_REST(0)
#elif N == 2
#define ALL_AT_REST	(AT_REST(0) && AT_REST(1))
#else
#define ALL_AT_REST	(AT_REST(0) && AT_REST(1) && AT_REST(2))
#endif
#ifdef PROBES
#define MAY_REPEAT	true
#else
#define MAY_REPEAT	ALL_AT_REST
#endif

/* All written data were read and acknowledged. */
#ifdef DEATH
#define DEAD(i)		((i) == 0 && struck)
#else
#define DEAD(i)		false
#endif
#define SERVED(i)	(DEAD(i) || (WSIZE(i, s_wr[i]) == 0 && s_una[i] == s_seq[i]))
#define DONE1(i)	(SERVED(i) && AT_REST(i) && !(s_timer[i] && s_up[i]))
#if N == 1
#define ALL_DONE	DONE1(0)
#elif N == 2
#define ALL_DONE	(DONE1(0) && DONE1(1))
#else
#define ALL_DONE	(DONE1(0) && DONE1(1) && DONE1(2))
#endif
#define DONE		(ALL_DONE && open == 0 && count == 0 && qlen == 0)

/* A fault may hit one of the ACKs of this step: arrive(). */
inline plan()
{
	if
	:: hit = 0
	:: faults > 0 -> hit = 1
	:: faults > 0 -> hit = 2
	:: faults > 0 -> hit = 3
#ifdef LATE
	:: faults > 0 -> hit = 5
	:: faults > 0 -> hit = 6
	:: faults > 0 -> hit = 9
	:: faults > 0 -> hit = 10
#endif
	fi
}

/* The frame of this step arrives; or gets lost; or arrives now and again later. */
mtype = { arrives, is_lost, arrives_and_stays };

inline fate()
{
	if
	:: way = arrives
	:: faults > 0 -> way = is_lost
#ifdef DUPS
	:: faults > 0 -> way = arrives_and_stays
#endif
	fi
}

/* Any of them: the wire may change their order. */
inline which(set)
{
	if
	:: (set) & 1 -> pick = 0
	:: (set) & 2 -> pick = 1
	:: (set) & 4 -> pick = 2
	:: (set) & 8 -> pick = 3
	:: (set) & 16 -> pick = 4
	fi
}

#define i	(_pid % N)
#define PROBE	8	/* pick: an empty TXS with the number pick - PROBE */

active [N] proctype net()
{
	do
#ifdef LTL_DONE
	:: atomic { DONE -> finished = true; break }
#else
	:: DONE -> break
#endif
	:: d_step { s_up[i] && WSIZE(i, s_wr[i]) > 0 ->
		sendmsg(i); check() }
	:: atomic { data[i] + probe[i] > 0 ->
		if
		:: data[i] > 0 -> which(data[i])
		:: probe[i] > 0 -> which(probe[i]); pick = pick + PROBE
		fi;
		fate();
		if
		:: way != is_lost -> plan()
		:: else
		fi;
		d_step {
			if
			:: pick < PROBE -> printf("%d: packet %d %e\n", i, pick, way)
			:: else -> printf("%d: probe %d %e\n", i, pick - PROBE, way)
			fi;
			if
			:: way != arrives -> faults--
			:: else
			fi;
			if
			:: way != arrives_and_stays && pick < PROBE -> data[i] = data[i] & ~BIT(pick)
			:: way != arrives_and_stays && pick >= PROBE ->
				probe[i] = probe[i] & ~BIT(pick - PROBE)
			:: else
			fi;
			if
			:: way != is_lost && pick < PROBE -> esp_data_rcv(i, pick)
			:: way != is_lost && pick >= PROBE ->
				pick = pick - PROBE;
				esp_empty_rcv(i, pick)
			:: else
			fi;
			arrive();
			check() } }
#ifdef LATE
	:: d_step { late_on[i] ->
		late_on[i] = false;
		printf("%d: late ack %d grant %d, overtaken %d\n", i, late_seq[i],
		       late_grant[i], late_overtaken[i]);
		esp_ack(i, late_seq[i], late_grant[i], late_rrq[i], late_overtaken[i]);
		late_seq[i] = 0;
		late_grant[i] = 0;
		late_rrq[i] = 0;
		late_overtaken[i] = false;
		check() }
#endif
#if defined(DEATH) || defined(SLEEP)
	:: d_step { i == 0 && !struck ->
		printf("0 stops\n");
		struck = true;
		s_up[0] = false }
#endif
#ifdef SLEEP
	:: d_step { i == 0 && !s_up[0] ->
		printf("0 goes on\n");
		s_up[0] = true }
#endif
	od
}

#define SEND_WAITS(i)	(EMPTY(i) && !t_ack[i] && (!REPEATED(i) || MAY_REPEAT))

active [N] proctype timer()
{
	do
	:: DONE -> break
	:: d_step { s_timer[i] && s_up[i] && (SEND_WAITS(i) || spurious > 0) ->
		if
		:: !SEND_WAITS(i) -> spurious--
		:: else
		fi;
		send_timeout(i);
		check() }
	od
}

#define RRQ_WAITS(i)	EMPTY(i)
#define GAP_WAITS(i)	((data[i] & UPTO(r_seq[i], r_high[i]) & ~r_ooo[i]) == 0)

active [N] proctype rcv_timer()
{
	do
	:: DONE -> break
	:: atomic {
		if
		:: t_rrq[i] && (RRQ_WAITS(i) || spurious > 0) -> pick = 0
		:: t_gap[i] && (GAP_WAITS(i) || spurious > 0) -> pick = 1
		:: t_ack[i] -> pick = 2
#ifdef MEM
		:: r_unread[i] > 0 -> pick = 3	/* this one is the application */
#endif
		fi;
		plan();
		d_step {
			if
			:: (pick == 0 && !RRQ_WAITS(i)) || (pick == 1 && !GAP_WAITS(i)) ->
				spurious--
			:: else
			fi;
			if
			:: pick == 0 -> esp_expiry(i)
			:: pick == 1 -> esp_gap_timeout(i)
			:: pick == 2 -> ack_timeout(i)
#ifdef MEM
			:: pick == 3 -> recvmsg(i)
#endif
			fi;
			arrive();
			check() } }
	od
}

/* Liveness where probes may go round for ever; with weak fairness. */
#ifdef LTL_PARKED
ltl parked { [] (r_queued[0] -> <> !r_queued[0]) }
#endif
#ifdef LTL_NEVER
ltl nobody { [] !r_queued[0] }
#endif
#ifdef LTL_DONE
ltl done { <> finished }
#endif
