// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of ackq.c and tokens.c, which follow those of policy.c. Included by suite.c, and in
 * user space by selftests/unit/host-pure.c.
 */

#define T_GRANTS	4

/* A queue, the grants of some sockets, and a record of the grants that leave. */
static struct {
	struct esp_ackq		q;
	struct esp_budget	b;
	struct esp_host		h[T_GRANTS];	/* one for each socket */
	struct esp_grant	g[T_GRANTS];
	u32			room[T_GRANTS];	/* packets that there is memory for */
	int			sent[16];	/* indices of the grants that left, in order */
	int			nsent;		/* number of grants that left */
	int			held[T_GRANTS];	/* times that a grant stayed queued */
	u64			now;		/* the clock, nanoseconds */
	u32			later;		/* time to the pump that was asked for, ns */
} t;

static u32 t_room(struct esp_grant *g, u32 recv_seq)
{
	return recv_seq + t.room[g - t.g];
}

static void t_send(struct esp_grant *g)
{
	if (t.nsent < (int)ARRAY_SIZE(t.sent))
		t.sent[t.nsent++] = g - t.g;
}

static void t_hold(struct esp_grant *g)
{
	t.held[g - t.g]++;
}

static void t_later(struct esp_ackq *q, u32 wait)
{
	t.later = q == &t.q ? wait : 0;
}

static u64 t_now(void)
{
	return t.now;
}

static const struct esp_ackq_ops t_ops = {
	.room	= t_room,
	.send	= t_send,
	.get	= t_hold,
	.later	= t_later,
	.now	= t_now,
};

/* A budget of @q packets; every socket has received up to @isn and announced nothing. */
static void t_init(const struct esp_policy *p, u32 q, u32 isn)
{
	int i;

	memset(&t, 0, sizeof(t));
	t.now = 1000 * 1000;
	esp_budget_init(&t.b, 100000, 1500);
	esp_budget_limits(&t.b, q, q, p->first_pool);
	esp_ackq_init(&t.q, p, &t.b, &t_ops);
	for (i = 0; i < T_GRANTS; i++) {
		esp_host_init(&t.h[i]);
		esp_grant_init(&t.g[i], isn);
		t.g[i].host = &t.h[i];
		esp_ackq_left(&t.g[i], isn + 10000);
		t.room[i] = 1000;
	}
}

/* The receiver consumed a TXS without a first burst: a grant is due. */
static bool t_announce(int i, u32 advice)
{
	t.g[i].recv_seq++;
	esp_ackq_announced(&t.q, &t.g[i], t.g[i].recv_seq,
			   t.g[i].recv_seq - 1 + advice);
	if (esp_ackq_fast(&t.q, &t.g[i]))
		return true;
	esp_ackq_park(&t.q, &t.g[i]);
	esp_ack_pump(&t.q);
	return false;
}

/* The next packet in order arrives. */
static void t_arrive(int i)
{
	u32 seq = t.g[i].recv_seq;
	bool pump;

	t.now += 1000;		/* the time of 8 frames: the pace has no say */
	pump = esp_tokens_arrived(&t.q, &t.g[i], seq, 1);
	t.g[i].recv_seq = seq + 1;
	if ((esp_tokens_consumed(&t.q, &t.g[i]) || pump) &&
	    !esp_ackq_paced(&t.q, t.now / 1000))
		esp_ack_pump(&t.q);
}

static void t_end(int i)
{
	esp_ackq_remove(&t.q, &t.g[i]);
	esp_tokens_void(&t.q, &t.g[i]);
	esp_ackq_ended(&t.q, &t.g[i]);
	esp_ack_pump(&t.q);
}

/* Tell that @n packets are left of the next transmission. */
static void t_left(int i, u32 n)
{
	t.g[i].end = t.g[i].recv_seq;
	esp_ackq_left(&t.g[i], t.g[i].recv_seq + n);
}

/* Announce a message of as many packets as the budget has, which gets them all. */
static void t_hog(int i)
{
	t_left(i, 1 + t.b.size);
	t_announce(i, 0);
	t.nsent = 0;
}

static int t_open(int i)
{
	return atomic_read(&t.g[i].outstanding);
}

static u32 t_allowed(int i)
{
	return t.g[i].edge - t.g[i].recv_seq;
}

/* Rule 15, the seed's policy: a single sender's grant leaves at once if the queue is empty. */
static void ackq_fast__empty_queue(struct kunit *test)
{
	static const u32 starts[] = { 100, 0xfffffff0u };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		t_init(&seed_policy, 128, starts[i]);
		KUNIT_EXPECT_TRUE(test, t_announce(0, 0));
		KUNIT_EXPECT_EQ(test, atomic_read(&t.q.esp_recv_count), 1);
		KUNIT_EXPECT_EQ(test, t_allowed(0), 64u);
		KUNIT_EXPECT_EQ(test, t_open(0), 64);
		KUNIT_EXPECT_EQ(test, atomic_read(&t.h[0].outstanding), 64);
		KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 64);
		/* the budget's grants are all queued, if only for a moment */
		t_init(&adaptive_policy, 64, starts[i]);
		KUNIT_EXPECT_FALSE(test, t_announce(0, 0));
		KUNIT_EXPECT_EQ(test, t_allowed(0), 64u);
		KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 64);
	}
}

/* Rule 15: no grant leaves at once past a queue, even if there is only one sender. */
static void ackq_fast__not_past_a_queue(struct kunit *test)
{
	t_init(&seed_policy, 8, 100);
	KUNIT_EXPECT_TRUE(test, t_announce(0, 0));
	KUNIT_EXPECT_FALSE(test, t_announce(1, 0));
	esp_ackq_ended(&t.q, &t.g[0]);	/* before a pump */
	KUNIT_EXPECT_FALSE(test, esp_ackq_fast(&t.q, &t.g[0]));
	KUNIT_EXPECT_EQ(test, t.nsent, 0);
	esp_ack_pump(&t.q);
	KUNIT_EXPECT_EQ(test, t.nsent, 1);
}

/* Rule 14: grants leave in turn, as far as the budget has room for them. */
static void ackq_pump__fifo(struct kunit *test)
{
	int i;

	t_init(&adaptive_policy, 8, 0xfffffffau);
	t_hog(2);
	KUNIT_EXPECT_EQ(test, t_open(2), 8);
	t_announce(3, 0);
	t_announce(0, 0);
	t_announce(1, 0);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 3u);
	t_arrive(2);
	KUNIT_EXPECT_EQ(test, t.nsent, 0);	/* a grant is of two packets */
	for (i = 1; i < 8; i++) {
		t_arrive(2);
		KUNIT_EXPECT_EQ(test, t.nsent, (i + 1) / 2);
		KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), 8);
	}
	KUNIT_EXPECT_EQ(test, t.sent[0], 3);
	KUNIT_EXPECT_EQ(test, t.sent[1], 0);
	KUNIT_EXPECT_EQ(test, t.sent[2], 1);
	KUNIT_EXPECT_EQ(test, t.sent[3], 3);
	KUNIT_EXPECT_EQ(test, t.held[3], 2);	/* another reference for the next turn */
	KUNIT_EXPECT_EQ(test, t.q.qlen, 3u);
}

/* Rule 14, the seed's policy: the head leaves when all senders' grants are queued. */
static void ackq_pump__seed(struct kunit *test)
{
	t_init(&seed_policy, 64, 100);
	KUNIT_EXPECT_TRUE(test, t_announce(0, 0));	/* alone: fast path */
	KUNIT_EXPECT_EQ(test, t_allowed(0), 64u);
	KUNIT_EXPECT_FALSE(test, t_announce(1, 0));
	KUNIT_EXPECT_EQ(test, t.nsent, 0);
	/* the first sender's next grant: two of two are queued */
	KUNIT_EXPECT_FALSE(test, esp_ackq_fast(&t.q, &t.g[0]));
	esp_ackq_park(&t.q, &t.g[0]);
	esp_ack_pump(&t.q);
	KUNIT_EXPECT_EQ(test, t.nsent, 1);
	KUNIT_EXPECT_EQ(test, t.sent[0], 1);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 1u);
	/* the other sender ends: one of one is queued */
	t_end(1);
	KUNIT_EXPECT_EQ(test, t.nsent, 2);
	KUNIT_EXPECT_EQ(test, t.sent[1], 0);
}

/* Under the seed's policy burst_length is the window itself. */
static void ackq_grant__seed_window(struct kunit *test)
{
	int i;

	t_init(&seed_policy, 64, 0xffffffc0u);
	t_announce(0, 10);
	KUNIT_EXPECT_EQ(test, t_allowed(0), 64u);
	for (i = 0; i < 20; i++)
		t_arrive(0);
	KUNIT_EXPECT_EQ(test, t_allowed(0), 44u);
	KUNIT_EXPECT_TRUE(test, esp_ackq_fast(&t.q, &t.g[0]));
	KUNIT_EXPECT_EQ(test, t_allowed(0), 64u);
}

/* Rule 14: the budget's grants add up; burst_length caps them. */
static void ackq_grant__adds_up_to_cap(struct kunit *test)
{
	struct esp_policy p = adaptive_policy;

	t_init(&p, 64, 100);
	t_announce(0, 4);
	KUNIT_EXPECT_EQ(test, t_allowed(0), 64u);
	KUNIT_EXPECT_EQ(test, t_open(0), 64);	/* the first burst too */
	KUNIT_EXPECT_GT(test, t.nsent, 1);

	p.burst_length = 40;
	t_init(&p, 64, 100);
	t_announce(0, 4);
	KUNIT_EXPECT_EQ(test, t_allowed(0), 40u);
	KUNIT_EXPECT_EQ(test, t_open(0), 40);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 40);
	KUNIT_EXPECT_FALSE(test, t.g[0].queued);
}

/* Rule 16: tokens come back when their packets arrive, in any order. */
static void ackq_arrived__any_order(struct kunit *test)
{
	u32 s;

	t_init(&adaptive_policy, 34, 100);
	t_announce(0, 3);
	s = t.g[0].recv_seq;	/* two packets of the first burst are still to come */
	KUNIT_EXPECT_EQ(test, t_open(0), 34);
	esp_tokens_arrived(&t.q, &t.g[0], s + 1, 1);		/* of the first burst */
	KUNIT_EXPECT_EQ(test, t_open(0), 33);
	esp_tokens_arrived(&t.q, &t.g[0], s + 20, 1);
	KUNIT_EXPECT_EQ(test, t_open(0), 32);
	esp_tokens_arrived(&t.q, &t.g[0], s + 2, 1);
	KUNIT_EXPECT_EQ(test, t_open(0), 31);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 31);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.h[0].outstanding), 31);
	esp_tokens_arrived(&t.q, &t.g[0], s - 1, 1);		/* consumed before */
	KUNIT_EXPECT_EQ(test, t_open(0), 31);
	esp_tokens_arrived(&t.q, &t.g[0], t.g[0].edge, 1);	/* not granted */
	KUNIT_EXPECT_EQ(test, t_open(0), 31);
}

/* Rules 16, 18: TXF voids the rest of a grant, and the queued grant of another socket leaves. */
static void ackq_ended__voids(struct kunit *test)
{
	t_init(&adaptive_policy, 8, 0xffffffffu);
	t_hog(0);
	t_announce(1, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.esp_recv_count), 2);
	KUNIT_EXPECT_EQ(test, t.nsent, 0);
	t_end(0);
	KUNIT_EXPECT_EQ(test, t_open(0), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.h[0].outstanding), 0);
	KUNIT_EXPECT_FALSE(test, t.g[0].recv_announced);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.esp_recv_count), 1);
	KUNIT_EXPECT_EQ(test, t.nsent, 1);
	KUNIT_EXPECT_EQ(test, t.sent[0], 1);
	KUNIT_EXPECT_EQ(test, t_open(1), 8);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 8);
	t_end(0);	/* a second end changes nothing */
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.esp_recv_count), 1);
}

/* Rule 11: closing takes a grant out of the queue, with the queue's reference. */
static void ackq_remove__closing(struct kunit *test)
{
	t_init(&adaptive_policy, 8, 100);
	t_hog(0);
	t_announce(1, 0);
	t_announce(2, 0);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 2u);
	KUNIT_EXPECT_TRUE(test, esp_ackq_remove(&t.q, &t.g[1]));
	KUNIT_EXPECT_FALSE(test, esp_ackq_remove(&t.q, &t.g[1]));
	KUNIT_EXPECT_FALSE(test, esp_ackq_remove(&t.q, &t.g[0]));
	esp_ackq_ended(&t.q, &t.g[1]);
	t_end(0);
	KUNIT_EXPECT_EQ(test, t.nsent, 1);
	KUNIT_EXPECT_EQ(test, t.sent[0], 2);
	KUNIT_EXPECT_EQ(test, t.held[2], 1);
	t_end(2);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 0u);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.esp_recv_count), 0);
}

/* Rule 17: an expired grant loses its tokens, goes to the head, and is repeated. */
static void ackq_park__expired(struct kunit *test)
{
	u32 edge;

	t_init(&adaptive_policy, 8, 0xfffffff0u);
	t_hog(0);
	t_announce(1, 0);
	t_announce(2, 0);
	edge = t.g[0].edge;
	KUNIT_EXPECT_EQ(test, esp_tokens_void(&t.q, &t.g[0]), 8);
	KUNIT_EXPECT_EQ(test, esp_tokens_void(&t.q, &t.g[0]), 0);
	esp_budget_limits(&t.b, 4, 4, 64);
	KUNIT_EXPECT_TRUE(test, esp_ackq_expired(&t.q, &t.g[0], false));
	esp_ack_pump(&t.q);
	KUNIT_EXPECT_EQ(test, t.sent[0], 0);	/* before 1 and 2 */
	KUNIT_EXPECT_EQ(test, t.g[0].edge, edge);
	KUNIT_EXPECT_EQ(test, t_open(0), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 4);
	/* no new packet is granted before all of the old ones have tokens again */
	KUNIT_EXPECT_TRUE(test, t.g[0].expired);
	KUNIT_EXPECT_TRUE(test, t.g[0].queued);
	KUNIT_EXPECT_FALSE(test, esp_ackq_expired(&t.q, &t.g[0], false));
	esp_budget_limits(&t.b, 16, 16, 64);
	esp_ack_pump(&t.q);
	KUNIT_EXPECT_FALSE(test, t.g[0].expired);
	KUNIT_EXPECT_FALSE(test, t.g[0].queued);
	KUNIT_EXPECT_EQ(test, t.g[0].edge, edge);
	KUNIT_EXPECT_EQ(test, t_open(0), 8);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 16);
}

/* A grant is repeated while some of its packets are here: their tokens must not stay. */
static void ackq_consumed__no_phantom_tokens(struct kunit *test)
{
	u32 s, i;

	t_init(&adaptive_policy, 32, 100);
	t_hog(0);
	s = t.g[0].recv_seq;
	for (i = 1; i < 32; i++)	/* all packets but the first */
		esp_tokens_arrived(&t.q, &t.g[0], s + i, 1);
	KUNIT_EXPECT_EQ(test, esp_tokens_void(&t.q, &t.g[0]), 1);
	KUNIT_EXPECT_TRUE(test, esp_ackq_expired(&t.q, &t.g[0], false));
	esp_ack_pump(&t.q);
	KUNIT_EXPECT_EQ(test, t_open(0), 32);
	esp_tokens_arrived(&t.q, &t.g[0], s, 1);
	t.g[0].recv_seq = s + 32;
	esp_tokens_consumed(&t.q, &t.g[0]);
	KUNIT_EXPECT_EQ(test, t_open(0), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.h[0].outstanding), 0);
}

/* Rule 20: without memory there is no grant; the tokens go back, the next grant leaves. */
static void ackq_fast__no_memory(struct kunit *test)
{
	t_init(&seed_policy, 20, 100);
	t.room[0] = 0;
	t.g[0].recv_seq++;
	esp_ackq_announced(&t.q, &t.g[0], t.g[0].recv_seq, 0);
	KUNIT_EXPECT_EQ(test, t_allowed(0), 0u);
	KUNIT_EXPECT_FALSE(test, esp_ackq_fast(&t.q, &t.g[0]));
	KUNIT_EXPECT_TRUE(test, t.g[0].rcv_mem_pressure);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 0);
	t.room[0] = 5;
	KUNIT_EXPECT_TRUE(test, esp_ackq_fast(&t.q, &t.g[0]));
	KUNIT_EXPECT_EQ(test, t_allowed(0), 5u);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 5);
}

static void ackq_pump__no_memory(struct kunit *test)
{
	t_init(&adaptive_policy, 8, 100);
	t_hog(0);
	t.room[1] = 0;
	t_announce(1, 0);
	t_left(2, 5);
	t_announce(2, 0);
	t_end(0);
	/* the HOLD of the one socket, the grant of the other */
	KUNIT_EXPECT_EQ(test, t.nsent, 2);
	KUNIT_EXPECT_TRUE(test, t.g[1].rcv_mem_pressure);
	KUNIT_EXPECT_EQ(test, t_allowed(1), 0u);
	KUNIT_EXPECT_EQ(test, t_open(2), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 4);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 0u);
}

/* Bound: outstanding never exceeds the budget, for any number of senders. */
static void ackq__bound(struct kunit *test)
{
	int i, j;

	t_init(&adaptive_policy, 20, 0xffffff00u);
	for (i = 0; i < T_GRANTS; i++)
		t_announce(i, 0);
	for (j = 0; j < 200; j++) {
		for (i = 0; i < T_GRANTS; i++) {
			if (t_open(i))
				t_arrive(i);
			KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), 20);
			KUNIT_EXPECT_GE(test, atomic_read(&t.q.outstanding), 18);
		}
		t.nsent = 0;
	}
	KUNIT_EXPECT_EQ(test, t.q.qlen, (u32)T_GRANTS);
}

/* Rule 14: a socket that wants more after its turn gets another, at the tail. */
static void ackq_pump__another_turn(struct kunit *test)
{
	struct esp_policy p = adaptive_policy;

	p.shortest_first = 0;
	t_init(&p, 8, 100);
	t_hog(0);
	t_announce(1, 0);
	t_announce(2, 0);
	t_end(0);	/* 8 packets for two sockets: 2 + 2 each */
	KUNIT_EXPECT_EQ(test, t.nsent, 4);
	KUNIT_EXPECT_EQ(test, t.sent[0], 1);
	KUNIT_EXPECT_EQ(test, t.sent[1], 2);
	KUNIT_EXPECT_EQ(test, t.sent[2], 1);
	KUNIT_EXPECT_EQ(test, t.sent[3], 2);
	KUNIT_EXPECT_EQ(test, t_open(1), 4);
	KUNIT_EXPECT_EQ(test, t_open(2), 4);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 2u);
	KUNIT_EXPECT_EQ(test, t.held[1] + t.held[2], 4);
}

/* Rule 22: grants leave no faster than the link carries them; a pump is due while they wait. */
static void ackq_pump__pace(struct kunit *test)
{
	u32 wait;
	u64 now;

	t_init(&adaptive_policy, 200, 100);
	esp_budget_rate(&t.b, 10000, 1500);
	t_announce(0, 0);
	KUNIT_EXPECT_EQ(test, t.nsent, 1);
	KUNIT_EXPECT_EQ(test, t_open(0), 25);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 1u);
	/* the time of 25 frames at 11/10 of the rate, less 20 us */
	KUNIT_EXPECT_EQ(test, t.later, 7964u);
	/* so arrivals need not pump */
	now = t.now / 1000;
	KUNIT_EXPECT_TRUE(test, esp_ackq_paced(&t.q, now));
	KUNIT_EXPECT_TRUE(test, esp_ackq_paced(&t.q, now + 6));
	KUNIT_EXPECT_FALSE(test, esp_ackq_paced(&t.q, now + 7));
	t.now += 4000;		/* a pump that comes too early */
	esp_ackq_resume(&t.q);
	KUNIT_EXPECT_EQ(test, t.nsent, 1);
	KUNIT_EXPECT_EQ(test, t.later, 3964u);
	KUNIT_EXPECT_TRUE(test, esp_ackq_paced(&t.q, now + 6));
	wait = t.later;
	/* with this budget the grant waits for tokens: the next arrival must pump */
	esp_budget_limits(&t.b, 25, 25, 64);
	esp_ackq_resume(&t.q);
	KUNIT_EXPECT_FALSE(test, esp_ackq_paced(&t.q, now));
	KUNIT_EXPECT_GT(test, t.later, 100000u);	/* or they are overdue */
	esp_budget_limits(&t.b, 200, 200, 64);
	t.now += wait;
	esp_ackq_resume(&t.q);
	KUNIT_EXPECT_EQ(test, t.nsent, 2);
	KUNIT_EXPECT_EQ(test, t_open(0), 50);
	/* the seed's policy knows no pace */
	KUNIT_EXPECT_TRUE(test, esp_ackq_paced(&t.q, t.now / 1000));
	esp_ackq_policy(&t.q, &seed_policy);
	KUNIT_EXPECT_FALSE(test, esp_ackq_paced(&t.q, t.now / 1000));
}

/* Rule 14: a change of the policy releases the grants that it allows. */
static void ackq_policy__change_pumps(struct kunit *test)
{
	struct esp_policy p = adaptive_policy;

	t_init(&p, 8, 100);
	t_hog(0);
	t_announce(1, 0);
	KUNIT_EXPECT_EQ(test, t.nsent, 0);
	p.q_min = 100;
	p.q_max = 100;
	esp_ackq_policy(&t.q, &p);
	KUNIT_EXPECT_EQ(test, t.b.size, 100u);
	KUNIT_EXPECT_GT(test, t.nsent, 0);
	KUNIT_EXPECT_EQ(test, t_open(1), 92);
}

static struct kunit_case ackq_cases[] = {
	KUNIT_CASE(ackq_fast__empty_queue),
	KUNIT_CASE(ackq_fast__not_past_a_queue),
	KUNIT_CASE(ackq_pump__fifo),
	KUNIT_CASE(ackq_pump__seed),
	KUNIT_CASE(ackq_grant__seed_window),
	KUNIT_CASE(ackq_grant__adds_up_to_cap),
	KUNIT_CASE(ackq_arrived__any_order),
	KUNIT_CASE(ackq_ended__voids),
	KUNIT_CASE(ackq_remove__closing),
	KUNIT_CASE(ackq_park__expired),
	KUNIT_CASE(ackq_consumed__no_phantom_tokens),
	KUNIT_CASE(ackq_fast__no_memory),
	KUNIT_CASE(ackq_pump__no_memory),
	KUNIT_CASE(ackq__bound),
	KUNIT_CASE(ackq_pump__another_turn),
	KUNIT_CASE(ackq_pump__pace),
	KUNIT_CASE(ackq_policy__change_pumps),
	{}
};
