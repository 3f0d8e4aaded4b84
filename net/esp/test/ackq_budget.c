// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of ackq.c while the budget decides: hosts that have some sockets, and overdue.c. Included
 * by suite.c, and in user space by selftests/unit/host-pure.c.
 */

/* The queue of ackq.c's tests, with a slower link. Sockets 0 and 1 are of one host. */
static void tb_init(void)
{
	int i;

	b_init(10000);
	t_init(&adaptive_policy, 0, 1000);
	t.now = bt.now;
	t.q.budget = &bt.b;
	for (i = 0; i < T_GRANTS; i++)
		t.g[i].host = &bt.h[i / 2];
	bt.b.base.v = 10 * US;
	bt.b.rtt.v = 10 * US;
	esp_budget_rate(&bt.b, 10000, 1500);	/* 9 + 4 + 8 packets */
}

/* A sender announces @len packets; the first one has come. */
static void tb_announce(int i, u32 len)
{
	t_left(i, len);
	t.now += MS;		/* the pace has no say */
	t_announce(i, 0);
}

static u32 tb_granted(int i)
{
	return t.g[i].edge - t.g[i].recv_seq;
}

/* A packet arrives, after the time of several: the pace has no say. */
static void tb_arrive(int i)
{
	t.now += US;		/* and one in t_arrive() */
	t_arrive(i);
}

/* Packets that the host of the sockets 0 and 1 may have outstanding. */
static u32 tb_limit(void)
{
	return esp_budget_limit(&bt.b, atomic_read(&t.q.esp_recv_count));
}

static void ackq_budget__one(struct kunit *test)
{
	u32 i;

	tb_init();
	tb_announce(0, 6);
	KUNIT_EXPECT_EQ(test, tb_granted(0), 5u);	/* not beyond what is left */
	KUNIT_EXPECT_EQ(test, t.q.qlen, 0u);
	tb_announce(2, 1000);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);	/* the budget */
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 5);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[1].outstanding), 16);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 1u);
	for (i = 0; i < 40; i++) {
		t.now += 10 * US;
		t_arrive(2);
		KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), 21 + (int)t.q.overdue.tokens);
		KUNIT_EXPECT_LE(test, atomic_read(&bt.h[1].outstanding), 17);
	}
	/* the link doesn't wait for ever for a host that sends nothing */
	KUNIT_EXPECT_EQ(test, bt.h[0].overdue, 5u);
	KUNIT_EXPECT_EQ(test, t.q.overdue.tokens, 5u);
	KUNIT_EXPECT_GE(test, tb_granted(2), 12u);
	t_end(2);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[1].outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 5);
}

/*
 * A sole sender that has sent as much as a port has room for has a GSO packet beyond the BDP, and
 * waits for a grant of that size.
 */
static void ackq_budget__sole(struct kunit *test)
{
	u32 i, limit, edge;

	tb_init();
	limit = 9 + 44 + 8;
	tb_announce(0, 1000);
	KUNIT_EXPECT_EQ(test, tb_granted(0), 21u);
	for (i = 0; i < 64; i++)
		tb_arrive(0);
	KUNIT_EXPECT_LE(test, tb_granted(0), limit);
	while (tb_granted(0) > limit - 44 + 1) {
		tb_arrive(0);
		KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), (int)limit);
	}
	tb_arrive(0);
	KUNIT_EXPECT_EQ(test, tb_granted(0), limit);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), (int)limit);
	/* while packets are missing, the budget counts again: their tokens are not back */
	t.g[0].ooo_pkts = 3;
	edge = t.g[0].edge;
	while (atomic_read(&t.q.outstanding) > 21) {
		tb_arrive(0);
		KUNIT_EXPECT_EQ(test, t.g[0].edge, edge);
	}
	for (i = 0; i < 16; i++) {
		tb_arrive(0);
		KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), 21);
	}
	KUNIT_EXPECT_GT(test, t.g[0].edge, edge);
	t.g[0].ooo_pkts = 0;
	KUNIT_EXPECT_EQ(test, tb_limit(), limit);
	/* so it does beside another one, and as long as both may begin together again */
	tb_announce(2, 1000);
	KUNIT_EXPECT_EQ(test, tb_limit(), 21u);
	t_end(2);
	esp_burst_size(&bt.b, false, 2, t.now);
	KUNIT_EXPECT_EQ(test, tb_limit(), 21u);
	for (i = 0; i < 2; i++) {	/* it goes on sending */
		t.now += 150 * MS;
		esp_ackq_rtt(&t.q, &t.g[0], 10, 10, t.now);
	}
	KUNIT_EXPECT_EQ(test, tb_limit(), limit);
	/* a transmission after a pause begins like the first one */
	while (tb_granted(0))
		tb_arrive(0);
	t_end(0);
	t.now += MS;
	tb_announce(0, 1000);
	for (i = 0; i < 60; i++) {
		tb_arrive(0);
		KUNIT_EXPECT_LE(test, atomic_read(&t.q.outstanding), 21);
	}
}

/* With a budget that is small, a sole sender's next grant leaves before all packets are here. */
static void ackq_budget__sole_small(struct kunit *test)
{
	u32 i, most, open, edge;

	for (most = 32; most <= 64; most += 32) {
		tb_init();
		esp_budget_limits(&bt.b, 8, most, 64);
		tb_announce(0, 1000);
		for (i = 0; i < 300; i++) {
			open = tb_granted(0);
			edge = t.g[0].edge;
			tb_arrive(0);
			KUNIT_EXPECT_TRUE(test, t.g[0].edge == edge || open > 10);
			KUNIT_EXPECT_LE(test, tb_granted(0), most);
		}
	}
}

/* A host that has ended its transmission, and holds back packets, stops no sole sender. */
static void ackq_budget__sole_waits(struct kunit *test)
{
	u32 i, looks;

	tb_init();
	tb_announce(0, 1000);
	for (i = 0; i < 64; i++)
		tb_arrive(0);
	atomic_add(25, &bt.h[1].outstanding);
	atomic_add(25, &t.q.outstanding);
	esp_overdue_granted(&t.q.overdue, &bt.h[1], 25, t.now + esp_budget_due(&bt.b));
	esp_ackq_gap(&t.q);	/* as such an announcement would */
	for (i = 0; i < 300; i++) {
		for (looks = 0; looks < 3 && !tb_granted(0); looks++) {
			t.now += t.later;
			esp_ackq_resume(&t.q);
		}
		KUNIT_EXPECT_GT(test, tb_granted(0), 0u);
		tb_arrive(0);
	}
	KUNIT_EXPECT_EQ(test, t.q.overdue.tokens, 25u);
	KUNIT_EXPECT_EQ(test, tb_granted(0) + 25, (u32)atomic_read(&t.q.outstanding));
}

/* A sole sender's grant waits for half of what memory has room for, at most. */
static void ackq_budget__sole_memory(struct kunit *test)
{
	u32 i;

	tb_init();
	tb_announce(0, 1000);
	for (i = 0; i < 64; i++)
		tb_arrive(0);
	t.room[0] = 30;
	while (tb_granted(0) > 16)
		tb_arrive(0);
	t.nsent = 0;
	tb_arrive(0);
	KUNIT_EXPECT_EQ(test, t.nsent, 1);
	KUNIT_EXPECT_EQ(test, tb_granted(0), 30u);
	/* this is not the budget's doing: the link may be able to carry more */
	KUNIT_EXPECT_EQ(test, bt.b.idle, t.now);
	/* without memory, it leaves when all that was granted is here, and says so */
	t.room[0] = 0;
	while (tb_granted(0))
		tb_arrive(0);
	KUNIT_EXPECT_EQ(test, t.g[0].rcv_mem_pressure, 1);
}

/*
 * Without a wire there is no port: only memory bounds a sender on the same host. It waits for no
 * other sender, and none waits for it.
 */
static void ackq_budget__near(struct kunit *test)
{
	u32 base, i;

	tb_init();
	base = bt.b.base.v;
	tb_announce(2, 1000);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);	/* the budget */
	esp_host_came_whole(&bt.h[0], true, false);
	t.room[0] = 600;
	t_left(0, 2000);
	KUNIT_EXPECT_TRUE(test, t_announce(0, 0));
	KUNIT_EXPECT_EQ(test, tb_granted(0), 600u);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.g[0].outstanding), 600);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);
	/* the next one is due when half of the memory's packets have come */
	for (i = 0; i < 299; i++) {
		t_arrive(0);
		KUNIT_EXPECT_FALSE(test, esp_ackq_due(&t.q, &t.g[0]));
	}
	t_arrive(0);
	KUNIT_EXPECT_TRUE(test, esp_ackq_due(&t.q, &t.g[0]));
	KUNIT_EXPECT_TRUE(test, esp_ackq_fast(&t.q, &t.g[0]));
	KUNIT_EXPECT_EQ(test, tb_granted(0), 600u);
	KUNIT_EXPECT_EQ(test, t.g[0].near, 600u);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);
	/* its round trips are not the link's */
	esp_ackq_rtt(&t.q, &t.g[0], 1, 1, t.now + ESP_SOLE_NS);
	KUNIT_EXPECT_EQ(test, bt.b.base.v, base);
	KUNIT_EXPECT_EQ(test, bt.h[0].base, 1000u);
	/* without memory there is no grant */
	t.room[0] = 0;
	for (i = 0; i < 600; i++)
		t_arrive(0);
	KUNIT_EXPECT_TRUE(test, esp_ackq_due(&t.q, &t.g[0]));
	KUNIT_EXPECT_FALSE(test, esp_ackq_fast(&t.q, &t.g[0]));
	KUNIT_EXPECT_EQ(test, t.g[0].rcv_mem_pressure, 1);
	KUNIT_EXPECT_EQ(test, t.g[0].near, 0u);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);
	t_end(0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);
}

/* A sender ceases to be on the same host, and is again; tokens of both kinds come back. */
static void ackq_budget__near_no_more(struct kunit *test)
{
	u32 i;

	tb_init();
	t.room[0] = 600;
	tb_announce(0, 2000);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);
	KUNIT_EXPECT_EQ(test, t.g[0].queued, 1);
	esp_host_came_whole(&bt.h[0], true, false);
	/* it leaves the queue with the next grant */
	for (i = 0; i < 21 && t.g[0].queued; i++)
		tb_arrive(0);
	KUNIT_EXPECT_EQ(test, t.g[0].queued, 0);
	KUNIT_EXPECT_TRUE(test, esp_ackq_due(&t.q, &t.g[0]));
	KUNIT_EXPECT_TRUE(test, esp_ackq_fast(&t.q, &t.g[0]));
	KUNIT_EXPECT_EQ(test, atomic_read(&t.g[0].outstanding), 600);
	i = atomic_read(&t.q.outstanding);
	KUNIT_EXPECT_EQ(test, t.g[0].near, 600 - i);
	/* those that the link counts come back first */
	while (i--) {
		t_arrive(0);
		KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), (int)i);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 0);
	for (i = 0; i < ESP_NEAR_SINGLES; i++) {
		KUNIT_EXPECT_TRUE(test, esp_host_near(&bt.h[0]));
		esp_host_came_whole(&bt.h[0], false, false);
	}
	KUNIT_EXPECT_FALSE(test, esp_host_near(&bt.h[0]));
	KUNIT_EXPECT_FALSE(test, esp_ackq_fast(&t.q, &t.g[0]));
	esp_host_came_whole(&bt.h[0], true, false);
	KUNIT_EXPECT_TRUE(test, esp_host_near(&bt.h[0]));
	/* what GRO has merged was on a wire */
	esp_host_came_whole(&bt.h[0], false, true);
	KUNIT_EXPECT_FALSE(test, esp_host_near(&bt.h[0]));
	esp_host_came_whole(&bt.h[0], true, false);
	/* and a queue that has dropped packets is one, also when the bucket is full again */
	esp_budget_rtt(&bt.b, &bt.h[0], 10, 10, 2, t.now);
	b_came(0, false, 1000);
	esp_budget_lost(&bt.b, &bt.h[0], 40, t.now);
	bt.h[0].bounded = 0;
	KUNIT_EXPECT_FALSE(test, esp_host_near(&bt.h[0]));
	t_end(0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 0);
}

/* Packets that arrive pump when a grant may leave, and not before. */
static void ackq_budget__leaves_at(struct kunit *test)
{
	bool pump;
	int most;

	tb_init();
	most = 21 - esp_budget_quantum(&bt.b);
	atomic_set(&t.q.esp_recv_count, 1);
	tb_announce(0, 1000);
	tb_announce(2, 1000);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 21);
	do {
		pump = esp_tokens_arrived(&t.q, &t.g[2], t.g[2].recv_seq++, 1);
		KUNIT_EXPECT_EQ(test, pump, atomic_read(&t.q.outstanding) <= most);
	} while (!pump);
	/* a packet that is missing may have been what the grant waited for */
	esp_ack_pump(&t.q);
	t.g[2].ooo_pkts = 1;
	esp_ackq_gap(&t.q);
	KUNIT_EXPECT_TRUE(test, esp_tokens_arrived(&t.q, &t.g[2], t.g[2].recv_seq++, 1));
}

/* A host whose bucket is empty waits aside, and others get what it may not have. */
static void ackq_budget__park(struct kunit *test)
{
	tb_init();
	bt.h[0].busy_cap = 4 * ESP_BUCKET_UNIT;
	atomic_set(&t.q.esp_recv_count, 1);	/* another one, so that buckets count */
	tb_announce(0, 100);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 4);
	KUNIT_EXPECT_TRUE(test, bt.h[0].turn.parked);
	tb_announce(1, 100);			/* of the same host */
	KUNIT_EXPECT_EQ(test, tb_granted(1), 0u);
	tb_announce(2, 3);			/* of another one */
	KUNIT_EXPECT_EQ(test, tb_granted(2), 2u);
	t_arrive(0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 3);	/* no complete grant yet */
	t_arrive(0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 4);
	KUNIT_EXPECT_EQ(test, tb_granted(1), 0u);
	t_arrive(0);
	t_arrive(0);
	KUNIT_EXPECT_EQ(test, tb_granted(1), 2u);		/* in turn */
	/* the end of a transmission gives its packets to the other one */
	t_end(0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 4);
	KUNIT_EXPECT_EQ(test, tb_granted(1), 4u);
	t_end(1);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 0);
	KUNIT_EXPECT_FALSE(test, bt.h[0].turn.parked);
}

/* A first burst counts as far as the host's bucket has room. */
static void ackq_budget__first_burst(struct kunit *test)
{
	tb_init();
	atomic_set(&t.q.esp_recv_count, 1);
	t_left(0, 1000);
	t.g[0].recv_seq++;
	esp_ackq_announced(&t.q, &t.g[0], t.g[0].recv_seq, t.g[0].recv_seq + 64);
	KUNIT_EXPECT_EQ(test, tb_granted(0), 64u);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 17);
	t.g[1].recv_seq++;
	esp_ackq_announced(&t.q, &t.g[1], t.g[1].recv_seq, t.g[1].recv_seq + 64);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 17);
	t_end(0);
	t_end(1);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 0);
}

/* Grants that expire, again and again, leave the host one token. */
static void ackq_budget__expired(struct kunit *test)
{
	u32 i;

	tb_init();
	atomic_set(&t.q.esp_recv_count, 1);
	tb_announce(0, 100);
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 16);
	for (i = 0; i < 6; i++) {
		t.now += 10 * MS;
		esp_tokens_void(&t.q, &t.g[0]);
		esp_ackq_expired(&t.q, &t.g[0], i);
		esp_ack_pump(&t.q);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[0].outstanding), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 1);
	/* silence is no sign of a queue: the host may have been busy with other things */
	KUNIT_EXPECT_GE(test, esp_host_cap(&bt.b, &bt.h[0], 1), bt.b.size);
}

/* The class follows a message that grows, and not one that comes to its end. */
static void ackq_budget__class(struct kunit *test)
{
	tb_init();
	tb_announce(0, 10);
	KUNIT_EXPECT_EQ(test, t.g[0].class, 1);
	t_arrive(0);
	esp_ackq_left(&t.g[0], t.g[0].recv_seq + 5);	/* no more than before */
	KUNIT_EXPECT_EQ(test, t.g[0].class, 1);
	esp_ackq_left(&t.g[0], t.g[0].recv_seq + 300);
	KUNIT_EXPECT_EQ(test, t.g[0].class, 4);
	KUNIT_EXPECT_TRUE(test, esp_ackq_wants(&t.g[0]));
}

/* A connection on which nothing is announced does not set the base of another one's link. */
static void ackq_budget__idle_peer(struct kunit *test)
{
	tb_init();
	tb_announce(0, 1000);
	esp_ackq_rtt(&t.q, &t.g[0], 10, 12, t.now);
	KUNIT_EXPECT_EQ(test, bt.b.base.v, 10 * US);
	esp_ackq_rtt(&t.q, &t.g[2], 40000, 40000, t.now);
	KUNIT_EXPECT_LE(test, bt.b.base.v, 20 * US);
	esp_ackq_rtt(&t.q, &t.g[0], 10, 12, t.now);
	KUNIT_EXPECT_LE(test, bt.b.base.v, 20 * US);
}

/* A host that is alone sets the base, but not after others: a lie in their pause would stay. */
static void ackq_budget__sole_peer(struct kunit *test)
{
	int i;

	tb_init();
	for (i = 0; i < 100; i++) {
		t.now += MS;
		esp_ackq_rtt(&t.q, &t.g[0], 10, 12, t.now);
	}
	tb_announce(2, 1000);
	for (i = 0; i < 3; i++)
		esp_ackq_rtt(&t.q, &t.g[2], 40000, 40000, t.now);
	KUNIT_EXPECT_LE(test, bt.b.base.v, 20 * US);
	t.now += 11000 * MS;
	esp_ackq_rtt(&t.q, &t.g[2], 40, 40, t.now);
	KUNIT_EXPECT_EQ(test, bt.b.base.v, 40 * US);
}

/*
 * The policy changes while grants of hosts that take turns, and of one that is parked, are queued.
 * None is lost, and each one leaves.
 */
static void ackq_budget__switch(struct kunit *test)
{
	struct esp_policy p = seed_policy;
	int i, round, queued;

	tb_init();
	bt.h[0].loss_cap = 2 * ESP_BUCKET_UNIT;
	for (i = 0; i < T_GRANTS; i++)
		tb_announce(i, 1000);
	KUNIT_EXPECT_TRUE(test, bt.h[0].turn.parked);
	queued = t.q.qlen;
	KUNIT_EXPECT_GE(test, queued, 3);
	for (round = 0; round < 4; round++) {
		p.adaptive = round & 1;
		p.q_min = 1;
		p.q_max = 4096;
		p.burst_length = 8;
		esp_ackq_policy(&t.q, &p);
		KUNIT_EXPECT_EQ(test, !t.q.turns.classes && list_empty(&t.q.turns.parked),
				!p.adaptive || !t.q.qlen);
		KUNIT_EXPECT_EQ(test, list_empty(&t.q.esp_ack_queue), p.adaptive || !t.q.qlen);
		for (i = 0, queued = 0; i < T_GRANTS; i++)
			queued += t.g[i].queued;
		KUNIT_EXPECT_EQ(test, t.q.qlen, (u32)queued);
		for (i = 0; i < T_GRANTS; i++) {
			t.now += MS;
			if (atomic_read(&t.g[i].outstanding))
				t_arrive(i);
			esp_ackq_resume(&t.q);
		}
	}
	for (i = 0; i < T_GRANTS; i++)
		t_end(i);
	KUNIT_EXPECT_EQ(test, t.q.qlen, 0u);
	KUNIT_EXPECT_EQ(test, atomic_read(&t.q.outstanding), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, atomic_read(&bt.h[i].outstanding), 0);
}

static struct kunit_case ackq_budget_cases[] = {
	KUNIT_CASE(ackq_budget__switch),
	KUNIT_CASE(ackq_budget__one),
	KUNIT_CASE(ackq_budget__sole),
	KUNIT_CASE(ackq_budget__sole_small),
	KUNIT_CASE(ackq_budget__sole_waits),
	KUNIT_CASE(ackq_budget__sole_memory),
	KUNIT_CASE(ackq_budget__near),
	KUNIT_CASE(ackq_budget__near_no_more),
	KUNIT_CASE(ackq_budget__leaves_at),
	KUNIT_CASE(ackq_budget__park),
	KUNIT_CASE(ackq_budget__first_burst),
	KUNIT_CASE(ackq_budget__expired),
	KUNIT_CASE(ackq_budget__class),
	KUNIT_CASE(ackq_budget__idle_peer),
	KUNIT_CASE(ackq_budget__sole_peer),
	{}
};
