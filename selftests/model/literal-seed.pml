// SPDX-License-Identifier: GPL-2.0-only
/*
 * The seed's flow control as its text has it, without the mends of rules 13 to
 * 18: an ACK is the grant. It leaves at once while esp_recv_count <= 1. Otherwise
 * it is queued, and then the head of the queue leaves if the queue is now as long
 * as esp_recv_count. Nothing else ever takes an ACK out.
 *
 * This stalls. run.sh expects an invalid end state; literal-seed.txt is the
 * shortest way to it, model.rst explains it.
 *
 * Nothing is lost and packets arrive in order. So a sender that has got an ACK
 * sends, and an RRQ timer ("the last thing to do prior to sending out this ACK")
 * has nothing to ask for. The sender's retransmission timer runs while packets
 * are unacknowledged; a duplicate is not one of the seed's four occasions for an
 * ACK.
 *
 *   N           senders, each with one transmission of PKTS packets
 *   BURST       esp_burst_length
 *   INITIAL     esp_initial_ack_burst_length
 *   RETRIES     retransmissions without an answer, then a sender gives up
 *   COUNT_LAST  TXF: the ACK is queued before esp_recv_count falls
 *   PUMP        a mend: when esp_recv_count falls, heads leave as long as the
 *               queue is not shorter
 *   DEATH       sender 0 may die at any moment
 */

#ifndef N
#define N	3
#endif
#ifndef PKTS
#define PKTS	3
#endif
#ifndef BURST
#define BURST	2
#endif
#ifndef INITIAL
#define INITIAL	0
#endif
#ifndef RETRIES
#define RETRIES	1
#endif

#define QMAX	8
#define me	_pid

/* Senders; announce_seq is 0, packet 0 has TXS, packet PKTS - 1 has TXF. */
bool started[N];
byte send_next[N];
byte una_seq[N];
byte tries[N];
bool dead[N];

byte wire[N];		/* packets on their way: recv_seq ... recv_seq + wire - 1 */
byte again[N];		/* the same for retransmissions of una_seq */

/* Receiver. */
byte recv_seq[N];
byte esp_recv_count;
byte q_sock[QMAX];	/* esp_ack_queue: a packet for each ACK */
byte q_ack[QMAX];	/* its ack_seq, of the time when it was built */
byte qlen;

byte i, k, a;		/* within a step only */

/* esp_cwnd_test(), esp_push_one_frame(): "Sending Data to the Receiver" */
#define MAY_SEND(s)	(una_seq[s] > 0 -> send_next[s] < una_seq[s] + BURST : \
			 send_next[s] <= INITIAL)

inline push(s)
{
	do
	:: !dead[s] && send_next[s] < PKTS && MAY_SEND(s) ->
		printf("sender %d sends packet %d\n", s, send_next[s]);
		send_next[s]++;
		wire[s]++
	:: else -> break
	od
}

/* The ACK arrives at once, and opens the window. */
inline send_ack(s, ack)
{
	printf("    ACK %d to sender %d\n", ack, s);
	if
	:: ack > una_seq[s] ->
		una_seq[s] = ack;
		tries[s] = 0
	:: else
	fi;
	push(s)
}

inline dequeue()
{
	i = q_sock[0];
	a = q_ack[0];
	qlen--;
	k = 0;
	do
	:: k < qlen ->
		q_sock[k] = q_sock[k + 1];
		q_ack[k] = q_ack[k + 1];
		k++
	:: else -> break
	od;
	q_sock[k] = 0;
	q_ack[k] = 0;
	printf("    the queue's head leaves; %d left\n", qlen);
	send_ack(i, a)
}

/* "Enqueuing an ACK" */
inline esp_enqueue_ack(s)
{
	if
	:: esp_recv_count <= 1 ->
		printf("    esp_recv_count %d: at once\n", esp_recv_count);
		send_ack(s, recv_seq[s])
	:: else ->
		assert(qlen < QMAX);
		q_sock[qlen] = s;
		q_ack[qlen] = recv_seq[s];
		qlen++;
		printf("    queued; queue %d, esp_recv_count %d\n", qlen, esp_recv_count);
		if
		:: qlen >= esp_recv_count -> dequeue()
		:: else
		fi
	fi
}

inline txf()
{
	esp_recv_count--;
	printf("    TXF: esp_recv_count %d\n", esp_recv_count)
}

/* "Received data was successfully inserted", "A TXS-flagged packet was received" */
inline receive(s)
{
	printf("packet %d of sender %d arrives\n", recv_seq[s], s);
	wire[s]--;
	if
	:: recv_seq[s] == 0 ->
		esp_recv_count++;
		printf("    TXS: esp_recv_count %d\n", esp_recv_count)
	:: else
	fi;
	recv_seq[s]++;
#ifdef COUNT_LAST
	esp_enqueue_ack(s);
	if
	:: recv_seq[s] == PKTS -> txf()
	:: else
	fi
#else
	if
	:: recv_seq[s] == PKTS -> txf()
	:: else
	fi;
	esp_enqueue_ack(s)
#endif
#ifdef PUMP
	;
	do
	:: qlen > 0 && qlen >= esp_recv_count -> dequeue()
	:: else -> break
	od
#endif
}

/* The socket makes progress by itself; a slower timer fires when this is false. */
#define BUSY(s)		(wire[s] > 0 || again[s] > 0 || (!started[s] && !dead[s]))
#if N == 2
#define ANY_BUSY	(BUSY(0) || BUSY(1))
#else
#define ANY_BUSY	(BUSY(0) || BUSY(1) || BUSY(2))
#endif

active [N] proctype sender()
{
	do
	:: una_seq[me] == PKTS || (dead[me] && wire[me] + again[me] == 0) -> break
	:: d_step { !started[me] && !dead[me] ->
		started[me] = true;
		push(me);
		i = 0; k = 0; a = 0 }
	:: d_step { wire[me] > 0 ->
		receive(me);
		i = 0; k = 0; a = 0 }
	:: d_step { again[me] > 0 ->
		again[me]--;
		printf("packet %d of sender %d arrives again: dropped\n", una_seq[me], me) }
	:: d_step { una_seq[me] < send_next[me] && tries[me] < RETRIES && !dead[me] && !ANY_BUSY ->
		tries[me]++;
		again[me]++;
		printf("sender %d waits too long, sends packet %d again\n", me, una_seq[me]) }
#ifdef DEATH
	:: d_step { me == 0 && !dead[0] ->
		dead[0] = true;
		printf("sender 0 dies\n") }
#endif
	od
}
