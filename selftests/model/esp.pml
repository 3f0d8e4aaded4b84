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
 * Each sender is a host of its own. turn.pml has several connections of a host.
 *
 * Macros:
 *   N             senders
 *   S0 S1 S2      writes of each sender: the last digit is the number of packets of
 *                 its first write, the digit before that of its second, and so on
 *   A0 A1 A2      first burst that each sender is told (rule 21)
 *   SMALL         mask of senders with packets of at most 256 bytes (rule 7)
 *   SEED          the seed's policy as implemented; else the budget decides
 *   Q             the budget
 *   GRANT SLACK   a grant by waiting time, and the most by length
 *   SOLE WISH     packets that a sole sender may have outstanding, and a grant that it
 *                 waits for
 *   CAP           bucket of a host
 *   BUSY          packets that may have BUSY, each of which halves a bucket
 *   PORT          room for the first bursts that senders claim
 *   LONG EVERY    packets of a long message; one of so many turns goes by waiting time
 *   TELL          packets of a transmission after which growth is told
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
 *   ASKS          a sender that wants more is queued all the time
 *   QUEUED        it is queued when it has used its grant, in spite of MEM
 *   CLAIMS        first bursts may be claimed for which there are no tokens
 *   PROMPT        a grant leaves with the next packet, unless it has to wait
 *   SOON          a sender on hold that the receiver does not know to wait asks soon
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
#ifndef SLACK
#define SLACK	2
#endif
#ifndef SOLE
#define SOLE	(Q + 1)
#endif
#ifndef WISH
#define WISH	2
#endif
#ifndef CAP
#define CAP	Q
#endif
#ifndef PORT
#define PORT	(Q + FIRST)
#endif
#ifndef LONG
#define LONG	3
#endif
#ifndef EVERY
#define EVERY	2
#endif
#ifndef TELL
#define TELL	2
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
#define BOUND	MAX(MAX(Q, PORT), SOLE)
#endif
#endif

#ifdef BREAK_BEYOND
#define BEYOND		0
#else
#define BEYOND		1		/* packets that a peer permits beyond the end that it knows */
#endif

#define MAXP		5		/* packets of a sender */
#define FAR		15		/* an end that is not told */
#define NONE		255
#define MIN(a, b)	((a) < (b) -> (a) : (b))
#define MAX(a, b)	((a) > (b) -> (a) : (b))
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
byte s_first[N];	/* end of the first burst, while announcing */
byte s_told[N];		/* told_end */
#ifdef SOON
bool s_hold[N];		/* on_hold */
bool s_grown[N];	/* told_growth */
byte s_before[N];	/* told_before */
#endif
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
byte data_left[N * MAXP];	/* LEFT of a packet with TXS: end, end of the first burst */
byte probe_left[N * MAXP];	/* LEFT of an empty TXS: end */
byte grow_end[N];	/* an empty packet that tells growth is on its way: end, 0: none */
byte grow_seq[N];	/* and its number */
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
#define EMPTY(i)	(data[i] == 0 && probe[i] == 0 && grow_end[i] == 0 && !LATE_ON(i))
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
byte r_lo[N];		/* token_start */
byte r_open[N];		/* outstanding, also that of the host */
byte r_end[N];		/* end */
byte r_start[N];	/* start */
bool r_class[N];	/* class: a long message */
bool r_turn[N];		/* turn.class, while queued */
bool r_queued[N];
bool r_aside[N];	/* turn.parked: the host waits for its packets */
byte r_expired[N];
bool r_sole[N];		/* it has got a grant, and may be a sole sender: sole_from */
#ifdef BUSY
byte r_cap[N] = CAP;	/* busy_cap */
byte busy = BUSY;
#endif
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
byte open;		/* outstanding */
byte count;		/* esp_recv_count */
#ifndef SEED
byte leaves_at = NONE;
byte nth;		/* turns since the last one by waiting time */
#else
#define leaves_at	NONE
#endif

#ifdef LTL_DONE
bool finished;
#endif

/* Choices for the next step. */
byte pick;		/* the frame that arrives, or the timer that fires */
byte way;		/* fate of the frame */
bool mark;		/* the packet has BUSY */
byte hit;		/* which of the step's ACKs a fault hits, and how: arrive() */

/* Within a step only. */
hidden byte most, n, base, lim, tmp, j, k, ne, seq, late, at, edge, x, turns, told_end, told_seq;
#define OUTS	8
hidden byte outs, out_to[OUTS], out_seq[OUTS], out_grant[OUTS], out_rrq[OUTS];
hidden byte progress, opened, grew, sent, stop, pump, ask, at_once, due, answer, given, stay, sole, ready;

/*
 * The policies.
 */

/* esp_grant_room(), grant_more_room(), rule 20: packets are all of one size */
#define HERE(i)		ONES(r_ooo[i])
#define LEFT(i)		(r_edge[i] > r_seq[i] -> r_edge[i] - r_seq[i] : 0)
#ifdef MEM
#define RMEM(i)		(r_unread[i] + HERE(i))
#define ROOM(i)		(RMEM(i) < MEM -> MEM - RMEM(i) : 0)
#define TAKES(i)	(ROOM(i) + HERE(i))
#define MORE_ROOM(i)	(TAKES(i) > LEFT(i) * r_ann[i] -> TAKES(i) - LEFT(i) * r_ann[i] : 0)
#define ADVICE_NOW(i)	(ADV(i) < ROOM(i) -> ADV(i) : ROOM(i))
#define PRESSURE(i)	r_press[i]
#else
#define TAKES(i)	NONE
#define MORE_ROOM(i)	NONE
#define ADVICE_NOW(i)	ADV(i)
#define PRESSURE(i)	false
#endif

#ifdef SEED

/* esp_policy_fast(), esp_policy_release(), esp_grant_due(), rules 10, 14 and 15 */
#define POLICY_FAST	(count <= 1)
#define POLICY_RELEASE	(qlen >= count || open == 0)
#define DUE(i)		(r_toack[i] >= P2A)

#else

/* esp_ackq_wants(), esp_grant_due(), esp_grant_want(), rule 14 */
#define WANTS(i)	(MAX(r_edge[i], r_seq[i]) < r_end[i])
#define DUE(i)		(WANTS(i) || r_expired[i])
#define WANT_FROM(i)	(r_edge[i] < r_seq[i] || r_expired[i] -> r_seq[i] : r_edge[i])
#define WANT(i)		(WANT_FROM(i) < r_end[i] -> r_end[i] - WANT_FROM(i) : 1)

/* esp_turn_class(), esp_turn_fifo() */
#define CLASS(n)	((n) >= LONG)
#define TURN_FIFO	(nth + 1 >= EVERY)

/* grant_sole() */
#define SOLE_NOW(i)	(SOLE > Q && count <= 1 && r_sole[i] && !r_expired[i] && r_ooo[i] == 0)

/* esp_host_cap(), esp_bucket_room(), esp_bucket_allows(), esp_bucket_quantum() */
#define HOST_MOST	(count <= 1 -> MAX(SOLE, Q) : CAP)
#ifdef BUSY
#define HOST_CAP(i)	(r_cap[i] < CAP && r_cap[i] < HOST_MOST -> r_cap[i] : HOST_MOST)
#else
#define HOST_CAP(i)	HOST_MOST
#endif
#define BUCKET_ROOM(i)	(HOST_CAP(i) > r_open[i] -> HOST_CAP(i) - r_open[i] : 0)
#define BUCKET_ALLOWS(i, n)	(r_open[i] == 0 || BUCKET_ROOM(i) >= (n))
#define QUANTUM(i)	MIN(MIN(GRANT, WANT(i)), MAX(HOST_CAP(i) / 2, 1))

#endif

/*
 * The sender.
 */

/* esp_arm_send(), rule 8 */
inline esp_arm_send(i)
{
	s_timer[i] = (s_una[i] != s_next[i] || UNSENT(i))
}

/* frame_tell_left(), rule 21: the end of the first burst, as packet x tells it */
#define BURST_END(i, x)	(s_announcing[i] && s_first[i] > (x) -> s_first[i] : (x))

/* told_growth, told_before */
inline growth_told(i)
{
#ifdef SOON
	if
	:: !s_grown[i] -> s_before[i] = s_told[i]
	:: else
	fi;
	s_grown[i] = true
#else
	skip
#endif
}

/* esp_send_probe(), rules 13 and 21 */
inline esp_send_probe(i)
{
#ifndef BREAK_PROBE_TOLD
	if
	:: IN_TRANS(i) && s_seq[i] > s_told[i] -> growth_told(i)
	:: else
	fi;
#endif
	s_told[i] = MAX(s_told[i], s_seq[i]);
	probe[i] = probe[i] | BIT(s_next[i]);
	probe_left[i * MAXP + s_next[i]] = s_told[i]
}

/* write_queue_tell_growth(), esp_send_left(), rule 21 */
inline tell_growth(i)
{
	if
	:: s_seq[i] <= s_told[i] ||
	   (s_edge[i] < s_told[i] && s_next[i] - s_ann[i] < TELL) -> skip
	:: else ->
		printf("  %d tells that it goes on to %d\n", i, s_seq[i]);
		growth_told(i);
		s_told[i] = s_seq[i] + s_seq[i] - s_una[i];
		grow_end[i] = s_told[i];
		grow_seq[i] = s_next[i]
	fi
}

/*
 * esp_push_frames(), esp_push_one_frame(), rules 2 and 4; esp_cwnd_test(),
 * esp_window_announce(), esp_window_limit(), rules 3, 7 and 21.
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
			n = S_ADV(i);
			if
			:: n == 0 && (s_next[i] != s_una[i] ||
				      (IS_SMALL(i) && (s_txf[i] & BIT(s_next[i])))) -> n = 1
			:: else
			fi;
			s_edge[i] = s_next[i] + n;
			s_first[i] = s_edge[i];
			s_told[i] = s_next[i];
#ifdef SOON
			s_hold[i] = false;
#endif
			if
			:: n == 0 ->
				printf("  %d announces %d\n", i, s_next[i]);
				esp_send_probe(i);
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
			if
			:: (s_txs[i] & ~s_txf[i] & BIT(s_next[i])) ->
				s_told[i] = s_seq[i];
				data_left[i * MAXP + s_next[i]] =
					16 * s_told[i] + BURST_END(i, s_next[i])
			:: else
			fi;
			s_next[i]++;
			sent = true
		:: else
		fi
	od;
	if
	:: UNSENT(i) && IN_TRANS(i) -> tell_growth(i)
	:: else
	fi;
	if
	:: (sent || UNSENT(i)) && !s_timer[i] -> esp_arm_send(i)
	:: else
	fi
}

/* esp_retransmit(): a packet that is here keeps what it told */
inline esp_retransmit(i, mask)
{
	tmp = mask;
	data[i] = data[i] | tmp;
	x = 0;
	tmp = tmp & s_txs[i] & ~s_txf[i] & ~r_ooo[i] & ~BELOW(r_seq[i]);
	do
	:: tmp == 0 -> break
	:: else ->
		if
		:: tmp & BIT(x) ->
			tmp = tmp & ~BIT(x);
			s_told[i] = MAX(s_told[i], x);
			data_left[i * MAXP + x] = 16 * s_told[i] + BURST_END(i, x)
		:: else
		fi;
		x++
	od;
	x = 0
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
 * ack_take() with esp_window_ack(), rules 3 and 21; ack_recover(), rule 8;
 * rrq_rcv(), rule 19; then esp_push_frames().
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
			lim = (ENDED(i) && s_granted[i] -> s_first[i] : s_edge[i]);
			s_announcing[i] = false;
			/* window_announced_next() */
			n = s_next[i] - 1;
			do
			:: n > s_ann[i] && !(s_txs[i] & BIT(n)) -> n--
			:: else -> break
			od;
			if
			:: IN_TRANS(i) && n > s_ann[i] ->
				s_edge[i] = lim;
				if
				:: a <= n ->
					s_ann[i] = n;
					s_announcing[i] = true;
					s_granted[i] = false;
					s_first[i] = lim;
#ifdef SOON
					s_hold[i] = false
#endif
				:: else
				fi
			:: else
			fi
		:: else
		fi;
		if
		:: a == s_next[i] && !IN_TRANS(i) && !s_announcing[i] ->
			printf("  %d idle, first burst %d\n", i, g);
#ifdef SOON
			s_hold[i] = false;
#endif
#ifdef MEM
			assert(g <= ADV(i));	/* a first burst, never a grant */
			s_cut[i] = ADV(i) - g
#else
			assert(g == ADV(i))
#endif
		:: s_announcing[i] && (a < s_ann[i] || (a == s_ann[i] && s_first[i] > a)) ->
			skip		/* before it was announced */
		:: else ->
#ifdef SOON
			s_hold[i] = (g == 0);
#endif
			if
			:: a + g > s_edge[i] ->
				s_edge[i] = a + g;
				s_granted[i] = true;
				opened = true
			:: else
			fi
		fi;
#ifdef SOON
		if
#ifdef BREAK_TOLD_BEFORE
		:: opened -> s_grown[i] = false
#else
		:: opened && (s_edge[i] > s_before[i] + BEYOND || s_edge[i] >= s_told[i]) ->
			s_grown[i] = false
#endif
		:: else
		fi;
#endif
		if
		:: progress && s_rto[i] > a ->		/* ack_recover() */
			esp_retransmit(i, UPTO(a, s_rto[i]))
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
	esp_retransmit(i, rrq & UPTO(s_una[i], s_next[i]));
	if
	:: UNSENT(i) -> esp_push_frames(i)
	:: else
	fi;
	/* not in the code: forget what can't matter any more */
	s_txs[i] = s_txs[i] & ~BELOW(s_una[i]);
	s_txf[i] = s_txf[i] & ~(BELOW(s_una[i]) >> 1);
	if
	:: !s_announcing[i] ->
		s_granted[i] = false;
		s_first[i] = 0;
		if
		:: !IN_TRANS(i) -> s_ann[i] = 0
		:: else
		fi;
		if
		:: !UNSENT(i) && s_una[i] == s_next[i] && !IN_TRANS(i) ->
			s_edge[i] = s_next[i];
			s_told[i] = 0;
#ifdef SOON
			s_before[i] = 0;
			s_grown[i] = false
#endif
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
		esp_retransmit(i, BIT(s_una[i]))
#ifdef BREAK_PROBE
	:: s_una[i] == s_next[i] && UNSENT(i) -> skip
#else
	:: s_una[i] == s_next[i] && UNSENT(i) ->
		s_unans[i]++;
		printf("%d probes %d\n", i, s_next[i]);
		s_tries[i] = true;
		esp_send_probe(i)
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

/* esp_grant_extend(): n tokens are reserved; rules 14, 17 and 20 */
inline extend(i)
{
	base = MAX(r_seq[i], r_edge[i]);
	if
#ifndef BREAK_SAY_AGAIN
	:: r_expired[i] && base != r_seq[i] ->
		lim = r_seq[i] + r_open[i];
#ifdef BREAK_SAID_HERE
		lim = lim + HERE(i);
#endif
		tmp = (base > lim -> base - lim : 0);
		most = (r_expired[i] > 1 -> 1 : n);
#ifdef BREAK_SAID_ALL
		r_expired[i] = 0;
#endif
		if
		:: tmp <= most -> r_expired[i] = 0
		:: else -> tmp = most
		fi;
		r_lo[i] = r_seq[i]
#endif
	:: else ->
		tmp = n;
		r_expired[i] = 0;
		r_sole[i] = true;
#ifdef SEED
		lim = r_seq[i] + BURST;
		if
		:: base + tmp > lim -> tmp = (lim > base -> lim - base : 0)
		:: else
		fi;
#endif
#ifdef MEM
		lim = r_seq[i] + LEFT(i) + MORE_ROOM(i);	/* grant_room() */
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

/* Put sender i at the head or the tail of the queue. */
inline enter(i, head)
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
	r_queued[i] = true
}

/* unlink_grant() */
inline unlink_grant(i)
{
	k = 0;
	do
	:: q[k] == i -> break
	:: else -> k++
	od;
	qlen--;
	do
	:: k < qlen -> q[k] = q[k + 1]; k++
	:: else -> break
	od;
	q[qlen] = 0;
	k = 0;
	r_queued[i] = false;
	r_aside[i] = false;
	r_turn[i] = false
}

#ifdef SEED

/* link_grant() */
#define link_grant(i, head)	enter(i, head)
#define bucket_ready(i)		ready = false

/* ackq_pump_seed(), rules 6 and 14 */
inline esp_ack_pump()
{
	do
	:: qlen > 0 && POLICY_RELEASE ->
		j = q[0];
		n = BURST;
		open = open + n;
		extend(j);
		printf("  %d released, edge %d, open %d\n", j, r_edge[j], open);
		unlink_grant(j);
		emit(j, 0);
		start_rrq_timer(j)
	:: else -> break
	od
}

#else

/* turn_add(): the host of a grant that has expired is one of the shortest class, too */
inline link_grant(i, head)
{
	enter(i, false);
	r_turn[i] = r_class[i] && !r_expired[i]
}

/* esp_bucket_ready(), esp_turn_unpark(), rule 14 */
inline bucket_ready(i)
{
	ready = false;
	if
	:: r_aside[i] && BUCKET_ALLOWS(i, QUANTUM(i)) ->
		stay = r_turn[i];
		unlink_grant(i);
		enter(i, false);
		r_turn[i] = stay;
		ready = true
	:: else
	fi
}

/* esp_turn_host(): j is the sender whose turn it is; N: none. k counts those that wait. */
inline turn_host()
{
	j = N;
	base = 0;
	k = 0;
	do
	:: base < qlen ->
		if
		:: !r_aside[q[base]] ->
			k++;
			if
			:: j == N || (!TURN_FIFO && r_turn[j] && !r_turn[q[base]]) -> j = q[base]
			:: else
			fi
		:: else
		fi;
		base++
	:: else -> break
	od;
	base = 0
}

/* turn_take(), grant_limit(), sole_leaves_at(): may sender j have n packets now? */
inline turn_take()
{
	n = QUANTUM(j);
	sole = SOLE_NOW(j);
	lim = (sole -> SOLE : Q);
	at = lim - n;
	if
	:: sole ->
		tmp = MAX(n, MIN(WISH, lim - lim / 2));
		most = MIN(HOST_CAP(j), LEFT(j) + MORE_ROOM(j));
		at = most - MIN(tmp, most / 2) + open - r_open[j];
		at = MIN(at, lim - tmp)
	:: else
	fi
}

/* ackq_pump_turns(), rules 6 and 14 */
inline esp_ack_pump()
{
	do
	:: qlen == 0 -> break
	:: else ->
		leaves_at = NONE;
		turn_host();
		if
		:: j == N -> break
		:: else
		fi;
		turn_take();
		if
		:: open > 0 && open > at ->
			leaves_at = at;
			break
		:: !(open > 0 && open > at) && !BUCKET_ALLOWS(j, n) ->
			printf("  %d waits for its packets\n", j);
			r_aside[j] = true
		:: else ->
			most = MAX(BUCKET_ROOM(j), 1);
			if
			:: (!TURN_FIFO || k == 1) && lim > open ->
				tmp = MIN(WANT(j), lim - open);
				n = MAX(n, MIN(tmp, (sole -> WISH : SLACK)))
			:: else
			fi;
			n = MIN(n, most);
			turns = (n + GRANT - 1) / GRANT;
			open = open + n;
			assert(open <= lim);	/* no grant exceeds the budget */
			extend(j);
			printf("  %d released, edge %d, open %d\n", j, r_edge[j], open);
			stay = (tmp > 0 && r_expired[j] < 2 && (r_expired[j] || WANTS(j)));
#ifdef BREAK_MORE
			stay = false;
#endif
			unlink_grant(j);
			if
			:: stay -> link_grant(j, false)
			:: else
			fi;
			nth = (TURN_FIFO -> 0 : MIN(nth + turns, EVERY - 1));
			emit(j, 0);
			start_rrq_timer(j)
		fi
	od;
	k = 0
}

#endif

/* esp_ackq_park(), rule 11 */
inline esp_ackq_park(i)
{
	r_expired[i] = MIN(r_expired[i], 1);
	link_grant(i, false);
	printf("  %d parked, queue %d, open %d count %d\n", i, qlen, open, count)
}

#ifdef BREAK_ROOM
#define CAN_GO_ON(i)	true
#else
#define CAN_GO_ON(i)	(r_edge[i] > r_seq[i] || PRESSURE(i))
#endif

/* esp_enqueue_ack(), esp_ackq_fast(), rules 10, 11, 13 and 15 */
inline esp_enqueue_ack(i, answer)
{
	if
	:: r_queued[i] ->
		r_toack[i] = 0;
		if
		:: answer -> hold(i)
		:: else
		fi
	:: !r_queued[i] && !answer && MORE_ROOM(i) == 0 && CAN_GO_ON(i) ->
		if
		:: r_toack[i] >= P2A -> esp_send_ack(i)
		:: else
		fi
#ifdef SEED
	:: !r_queued[i] && (answer || MORE_ROOM(i) > 0 || !CAN_GO_ON(i)) && qlen == 0 && POLICY_FAST ->
		r_toack[i] = 0;
		n = BURST;
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
#endif
	:: else ->
		r_toack[i] = 0;
		stop = PRESSURE(i);	/* nothing can be given: not parked */
		edge = r_edge[i];
		if
		:: !stop -> esp_ackq_park(i)
		:: else
		fi;
#ifndef BREAK_PUMP_AFTER_PARK
		esp_ack_pump();
#endif
		if
		:: answer && (stop || (r_queued[i] && r_edge[i] == edge)) -> hold(i)
		:: else
		fi
	fi
}

#ifdef MEM
/* esp_pressure_lifted(), rule 20 */
inline esp_pressure_lifted(i)
{
	if
	:: r_press[i] && (MORE_ROOM(i) > 0 || r_unread[i] == 0) ->
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
#define ALLOWED(i, s)	(RMEM(i) <= MEM || (r_ann[i] && s < r_edge[i]) || \
			 (s == r_seq[i] && r_unread[i] == 0) || s < r_seq[i] + ADV(i))
#else
#define ack_timeout(i)	esp_send_ack(i)
#define ALLOWED(i, s)	true
#endif

/* tokens_back(): r_open has fallen by m; rules 14 and 16 */
inline tokens_back(i, m)
{
	bucket_ready(i);
	open = open - m;
	pump = pump || (qlen > 0 && (ready || open == 0 || open <= leaves_at))
}

/* esp_tokens_void(), rule 16 */
inline esp_ackq_void(i)
{
	tmp = r_open[i];
	r_open[i] = 0;
	tokens_back(i, tmp)
}

/* esp_announced(), esp_ackq_announced(), rules 16, 18 and 21: first burst up to lim */
inline esp_ackq_announced(i, seq, lim)
{
	r_ann[i] = true;
	r_expired[i] = 0;
	edge = MIN(lim, r_end[i]);
	r_edge[i] = MAX(edge, seq);
	r_lo[i] = seq;
	r_start[i] = seq;
	tmp = r_edge[i] - seq;
	count++;
#ifndef SEED
	r_class[i] = CLASS(r_end[i] - seq);
#ifndef BREAK_CLAIMS
	at = MAX(Q, PORT);
	at = (at > open -> at - open : 0);
	tmp = MIN(MIN(tmp, BUCKET_ROOM(i)), at);
#endif
	leaves_at = NONE;
#endif
#ifndef BREAK_FIRST
	r_open[i] = r_open[i] + tmp;
	open = open + tmp;
#endif
	at = 0
}

/* esp_ackq_left(), rules 14 and 21 */
inline esp_ackq_left(i, e)
{
	if
	:: e > r_end[i] ->
		r_end[i] = e;
#ifndef SEED
		r_class[i] = r_class[i] || (r_ann[i] && CLASS(e - r_start[i]))
#endif
	:: else
	fi
}

/* esp_ackq_leave(void), esp_ackq_ended(), rules 11, 16 and 18 */
inline esp_ackq_leave(i)
{
	if
	:: r_queued[i] -> unlink_grant(i)
	:: else
	fi;
#ifndef BREAK_VOID
	esp_ackq_void(i);
#endif
	if
	:: r_ann[i] ->
		r_ann[i] = false;
		r_edge[i] = r_seq[i];
		r_end[i] = r_seq[i];
		r_class[i] = false;
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
				/* esp_ackq_expired() */
#ifdef BREAK_SAID_PARKED
				if
				:: !r_queued[i] -> r_expired[i] = (r_exp[i] > 1 -> 2 : 1)
				:: else
				fi;
#else
				r_expired[i] = (r_exp[i] > 1 -> 2 : 1);
#endif
				r_sole[i] = false;
				if
				:: !r_queued[i] -> link_grant(i, true)
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

/* esp_grant_arrived(), esp_tokens_arrived(), rules 16 and 17 */
inline token_arrived(i, s)
{
#ifdef BUSY
	/* esp_ackq_came(), esp_host_round(): a round for each packet */
	if
	:: mark ->
		busy--;
		r_cap[i] = MAX(r_cap[i] / 2, 1)
	:: !mark && r_cap[i] < CAP -> r_cap[i]++
	:: else
	fi;
	bucket_ready(i);
	pump = pump || ready;
#endif
	if
#ifndef BREAK_TOKENS
	:: s >= r_lo[i] && s < r_edge[i] && r_open[i] > 0 ->
#else
	:: s >= r_lo[i] && r_open[i] > 0 ->
#endif
		r_open[i]--;
		tokens_back(i, 1)
	:: else
	fi;
	r_exp[i] = 0;
	start_rrq_timer(i)
}

#define LEFT_END(i, s)		(data_left[i * MAXP + s] / 16)
#define LEFT_BURST(i, s)	(data_left[i * MAXP + s] % 16)

/* data_consume(), rules 10 and 18; the application gets the packet */
inline consume(i, s)
{
	r_seq[i] = s + 1;
	r_owe[i] = true;
#ifdef MEM
	r_unread[i]++;
#endif
	if
	:: (s_txs[i] & ~s_txf[i] & BIT(s)) -> esp_ackq_left(i, LEFT_END(i, s))
	:: else
	fi;
	if
	:: !(s_txf[i] & BIT(s)) && !r_ann[i] ->
		/* without TXS: a sender that was given up after expiries goes on (rule 17) */
		if
		:: s_txs[i] & BIT(s) -> esp_ackq_announced(i, s + 1, LEFT_BURST(i, s))
		:: else ->
			r_end[i] = FAR;		/* esp_left_far() */
			esp_ackq_announced(i, s + 1, s + 1)
		fi;
		start_rrq_timer(i);
#ifdef SEED
		ask = true
#else
		ask = DUE(i)
#endif
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

/* esp_ack_consumed(), rules 7, 10 and 14; esp_data_rcv() enqueues */
inline ack_consumed(i)
{
	if
	:: r_ann[i] ->
#ifdef SEED
		answer = (ask || r_edge[i] <= r_seq[i]);
		due = (answer || DUE(i));
#else
		answer = (ask || (r_edge[i] <= r_seq[i] && !r_queued[i]));
		due = (ask || DUE(i));
#endif
		if
		:: !due && r_toack[i] >= P2A -> esp_send_ack(i)
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
#ifndef SEED
		leaves_at = NONE;			/* esp_ackq_gap() */
#endif
		token_arrived(i, s);
		gap_seen(i, s);
		if
		:: pump -> esp_ack_pump()
		:: else
		fi;
		due = (r_ann[i] && !r_queued[i] && DUE(i));
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
		/* esp_tokens_consumed(), rule 16 */
		lim = LEFT(i);
		if
#ifdef BREAK_VOID
		:: r_open[i] > lim && false ->
#else
		:: r_open[i] > lim ->
#endif
			tmp = r_open[i] - lim;
			r_open[i] = lim;
			tokens_back(i, tmp)
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
}

/* esp_empty_rcv() of an empty packet that tells growth, rule 21 */
inline growth_rcv(i)
{
	if
	:: told_seq >= r_seq[i] ->
		grew = (told_end > r_end[i]);
		esp_ackq_left(i, told_end);
#if !defined(SEED) && !defined(BREAK_GROWN)
		due = (grew && r_ann[i] && !r_queued[i] && DUE(i));
#endif
		if
		:: told_seq > r_seq[i] -> gap_seen(i, told_seq)
		:: else
		fi
	:: else
	fi
}

/* esp_empty_rcv() of a probe, rules 10, 13 and 21 */
inline esp_empty_rcv(i, s)
{
	if
	:: s < r_seq[i] -> esp_ack_now(i)
	:: else ->
		grew = (probe_left[i * MAXP + s] > r_end[i]);
		esp_ackq_left(i, probe_left[i * MAXP + s]);
#ifndef SEED
		due = (grew && r_ann[i] && !r_queued[i] && DUE(i));
#endif
		if
		:: s > r_seq[i] ->
			gap_seen(i, s);
			esp_ack_now(i)
		:: else ->
			if
			:: !r_ann[i] -> esp_ackq_announced(i, s, s)
			:: else
			fi;
#ifdef MEM
			esp_pressure_lifted(i);
#endif
#ifndef SEED
			due = (due && !r_queued[i] && DUE(i));
#endif
			due = (due || r_edge[i] <= r_seq[i]);
			answer = true;
			if
			:: !due -> esp_ack_now(i)	/* the answer was lost, so send it again */
			:: else
			fi
		fi
	fi
}

/* The end of these handlers: a grant is due, or an ACK. */
inline rcv_end(i)
{
	if
	:: due -> esp_enqueue_ack(i, answer)
	:: else
	fi;
	if
	:: at_once && r_owe[i] -> esp_ack_now(i)
	:: r_ann[i] && r_owe[i] && !at_once -> t_ack[i] = true	/* esp_ack_soon() */
	:: else
	fi;
	due = false;
	answer = false;
	at_once = false
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
		assert(r_open[j] == 0 || r_open[j] <= r_edge[j] - r_seq[j]);
#ifndef CLAIMS
		/* granted packets that have not arrived are counted, or no more is granted */
		assert(!r_ann[j] || r_expired[j] || r_edge[j] <= r_seq[j] ||
		       ONES(UPTO(r_seq[j], r_edge[j]) & ~r_ooo[j]) <= r_open[j]);
#endif
#ifndef SEED
		assert(r_open[j] <= MAX(CAP, SOLE));	/* the bucket */
		assert(!r_aside[j] || r_open[j] > 0);	/* packets will end that */
		/* a sender that wants more is queued, or its packets will queue it */
#ifdef ASKS
		assert(!r_ann[j] || r_queued[j] || !WANTS(j) || r_expired[j] > 1);
#endif
#if !defined(MEM) || defined(QUEUED)
		assert(!r_ann[j] || r_queued[j] || !WANTS(j) || r_edge[j] > r_seq[j] ||
		       PRESSURE(j));
#endif
#endif
#ifdef EXACT
		/* each granted packet that has not arrived has a token */
		lim = MAX(r_lo[j], r_seq[j]);
		assert(!r_ann[j] || r_edge[j] <= lim ||
		       ONES(UPTO(lim, r_edge[j]) & ~r_ooo[j]) <= r_open[j]);
#endif
#ifdef NOLOSS
		/* packets on the way have tokens, or belong to a first burst */
		lim = (r_ann[j] -> r_edge[j] : r_seq[j]);
#ifndef CLAIMS
		assert(ONES(data[j] & BELOW(lim)) <= r_open[j]);
#endif
		assert(ONES(data[j] & ~BELOW(lim)) <= MAX(2 * ADV(j), 2) - 1);
#endif
#ifdef SOON
		/* a sender on hold is queued or watched, or has told growth and asks soon */
		assert(!s_hold[j] || s_grown[j] || !UNSENT(j) || s_una[j] < s_next[j] ||
		       !EMPTY(j) || r_queued[j] || WATCHED(j) || PRESSURE(j));
#endif
		if
		:: !WATCHED(j) -> t_rrq[j] = false
		:: else
		fi;
		/* not in the code: forget what can't matter any more */
		if
		:: !t_gap[j] -> r_gap[j] = 0; r_rrqs[j] = 0
		:: else
		fi;
		if
		:: !r_ann[j] -> r_start[j] = 0; r_lo[j] = 0
		:: else
		fi;
		k = 0;
		do
		:: k < MAXP ->
			if
			:: !((data[j] | r_ooo[j]) & BIT(k)) -> data_left[j * MAXP + k] = 0
			:: else
			fi;
			if
			:: !(probe[j] & BIT(k)) -> probe_left[j * MAXP + k] = 0
			:: else
			fi;
			k++
		:: else -> break
		od;
		j++
	:: else -> break
	od;
	assert(open == n);
	assert(count == tmp);				/* esp_recv_count can't leak */
	assert(open <= BOUND);
#ifdef SEED
	assert(qlen == 0 || (open > 0 && !POLICY_RELEASE));	/* liveness */
#else
	assert(qlen == 0 || open > 0);
#ifdef PROMPT
	/* no grant is due, or it leaves with the next packet */
	turn_host();
	if
	:: qlen > 0 && j < N ->
		turn_take();
		assert(open > at || sole || leaves_at == NONE)
	:: else
	fi;
#endif
	if
	:: qlen == 0 -> leaves_at = NONE
	:: else
	fi;
#endif
	n = 0;
	turns = 0;
	tmp = 0;
	base = 0;
	lim = 0;
	at = 0;
	edge = 0;
	most = 0;
	stay = 0;
	j = 0;
	k = 0;
	ne = 0;
	seq = 0;
	hit = 0;
	way = 0;
	mark = 0;
	pick = 0
}

/*
 * Events.
 */

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
#define GROWTH	16	/* pick: an empty packet that tells growth */

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
	:: atomic { data[i] + probe[i] + grow_end[i] > 0 ->
		if
		:: data[i] > 0 -> which(data[i])
		:: probe[i] > 0 -> which(probe[i]); pick = pick + PROBE
		:: grow_end[i] > 0 -> pick = GROWTH
		fi;
		fate();
#ifdef BUSY
		if
		:: mark = false
		:: pick < PROBE && busy > 0 -> mark = true
		fi;
#endif
		if
		:: way != is_lost -> plan()
		:: else
		fi;
		d_step {
			if
			:: pick < PROBE -> printf("%d: packet %d %e\n", i, pick, way)
			:: pick >= PROBE && pick < GROWTH ->
				printf("%d: probe %d %e\n", i, pick - PROBE, way)
			:: else -> printf("%d: end %d %e\n", i, grow_end[i], way)
			fi;
			if
			:: way != arrives -> faults--
			:: else
			fi;
			if
			:: way != arrives_and_stays && pick < PROBE -> data[i] = data[i] & ~BIT(pick)
			:: way != arrives_and_stays && pick >= PROBE && pick < GROWTH ->
				probe[i] = probe[i] & ~BIT(pick - PROBE)
			:: else
			fi;
			told_end = grow_end[i];
			told_seq = grow_seq[i];
			if
			:: way != arrives_and_stays && pick == GROWTH ->
				grow_end[i] = 0;
				grow_seq[i] = 0
			:: else
			fi;
			if
			:: way != is_lost && pick < PROBE -> esp_data_rcv(i, pick)
			:: way != is_lost && pick >= PROBE && pick < GROWTH ->
				pick = pick - PROBE;
				esp_empty_rcv(i, pick)
			:: way != is_lost && pick == GROWTH -> growth_rcv(i)
			:: else
			fi }
		d_step {
			rcv_end(i);
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
