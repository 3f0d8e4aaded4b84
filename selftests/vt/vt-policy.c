// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiver's policy (rule 14): the seed's, and the sysctls that change it
 * while senders have grants and wait for grants.
 */
#include "vt-rack.h"

/*
 * Rule 14: with the seed's policy, too, no sender waits for ever, whether another one
 * ends, is not read or is cut off; but it may wait until the receiver gives that one up.
 */
TEST_F(rack, seed_policy)
{
	long long start, bytes, had[STREAMS];
	int i;

	sysctl(&rx, "burst_length", 8);
	sysctl(&rx, "adaptive", 0);
	connect_streams(snd, 4, &rx);
	MUST(set_int(st[0].rx, SOL_SOCKET, SO_RCVBUF, 131072));
	keep_busy(0, 4);
	EXPECT_EQ(4, port().senders);
	EXPECT_GE(parked_max, 2);

	st[0].stopped = true;
	EXPECT_TRUE(PUMP(flag(st[0].rx, ESP_IF_RCV_MEM_PRESSURE), 50 * MS));
	bytes = received(1);
	reset_gaps();
	PUMP(false, 20 * MS);
	printf("# one does not read: others %.1f %% of the link, waited for %lld us\n",
	       100 * (received(1) - bytes) / capacity(1000, 20 * MS), longest_gap(1));
	EXPECT_LE(longest_gap(1), 3 * (2 * RTT_US + 8 * FRAME_NS(1000) / 1000));
	st[0].stopped = false;
	for (i = 0; i < 4; i++)
		had[i] = st[i].got;
	EXPECT_TRUE(PUMP(all_moved(had), 10 * MS));

	PUMP(false, 10 * MS);
	set_cable(0, false);
	start = now_us();
	bytes = received(1);
	reset_gaps();
	EXPECT_TRUE(PUMP(counter(&rx, "ExpiryAbandoned") == 1, SEC));
	printf("# one is cut off: others %.1f %% of the link, waited for %lld us\n",
	       100 * (received(1) - bytes) / capacity(1000, now_us() - start), longest_gap(1));
	/* the queue stays shorter than the number of senders, until the last expiry */
	EXPECT_LE(longest_gap(1), 100 * MS);
	EXPECT_EQ(3, port().senders);
	bytes = received(1);
	PUMP(false, 20 * MS);
	printf("# given up after %lld us: others %.1f %%\n", now_us() - start - 20 * MS,
	       100 * (received(1) - bytes) / capacity(1000, 20 * MS));
	set_cable(0, true);
	for (i = 0; i < 4; i++)
		had[i] = st[i].got;
	EXPECT_TRUE(PUMP(all_moved(had), SEC));

	/* one after the other ends, while others are parked */
	for (i = 0; i < 4; i++) {
		st[i].want = st[i].sent;
		EXPECT_TRUE(PUMP(st[i].got == st[i].want, SEC));
		EXPECT_TRUE(PUMP(port().senders == 3 - i, 10 * MS));
	}
	EXPECT_ALL_WELL(SEC);
	EXPECT_EQ(0, drops());
}

/* Rule 14: the pump runs after each change of a sysctl; here no other event runs it. */
TEST_F(rack, sysctl_releases)
{
	long long start;

	sysctl(&rx, "q_max", 8);
	sysctl(&rx, "rrq_min_us", 500 * MS);
	sysctl(&rx, "rto_min_us", 500 * MS);
	connect_streams(snd, 2, &rx);
	keep_busy(0, 1);
	set_cable(0, false);
	nap_us(RTT_US);
	EXPECT_GE(port().open, 8);
	st[1].want = 200 * MSS;
	EXPECT_TRUE(PUMP(flag(st[1].rx, ESP_IF_PARKED), MS));
	start = now_us();
	sysctl(&rx, "q_max", 4096);
	sysctl(&rx, "q_min", 64);
	EXPECT_LT(0, tokens(st[1].rx));
	EXPECT_TRUE(PUMP(st[1].got == st[1].want, 100 * MS));
	printf("# the other has sent all after %lld us\n", now_us() - start);
	EXPECT_EQ(0, counter(&rx, "Expiries"));
	set_cable(0, true);
	sysctl(&rx, "rrq_min_us", MS);
	sysctl(&rx, "rto_min_us", MS);
	enough();
	EXPECT_ALL_WELL(2 * SEC);
}

/*
 * Rule 14: policy and limits change in any order, also while packets are in
 * flight.
 */
TEST_F(rack, sysctls_change)
{
	static const struct {
		const char	*name;
		int		value;
	} steps[] = {
		{ "q_min", 1 }, { "q_max", 1 }, { "q_max", 4096 }, { "q_max", 1 },
		{ "burst_length", 1 }, { "q_max", 4096 }, { "burst_length", 3 },
		{ "packets_to_ack", 1 }, { "burst_length", 0 }, { "packets_to_ack", 64 },
		{ "burst_length", 4 }, { "adaptive", 0 }, { "adaptive", 1 },
		{ "burst_length", 1 }, { "adaptive", 0 }, { "packets_to_ack", 16 },
		{ "burst_length", 64 }, { "adaptive", 1 }, { "burst_length", 0 },
		{ "adaptive", 0 }, { "first_burst_pool", 0 }, { "adaptive", 1 },
		{ "first_burst_pool", 64 }, { "q_min", 8 },
	};
	int i, changes = 0, parked = 0, most = ARRAY_SIZE(steps);

	connect_streams(snd, 16, &rx);
	for (i = 0; i < 16; i++)
		st[i].want = 800000 + 1000 * i;
	PUMP(false, 2 * MS);
	/* make each change twice, in different states, while there is traffic */
	while (!all_in() && changes < 2 * most) {
		PUMP(port().parked > 0 || all_in(), 5 * MS);
		parked += port().parked > 0;
		sysctl(&rx, steps[changes % most].name, steps[changes % most].value);
		changes++;
		PUMP(all_in(), MS);
	}
	printf("# %d changes, %d of them while somebody was parked\n", changes, parked);
	EXPECT_GE(changes, most);
	EXPECT_GE(parked, changes * 3 / 4);
	EXPECT_ALL_WELL(5 * SEC);
	EXPECT_EQ(0, counter(&rx, "ExpiryAbandoned"));
}

int main(int argc, char **argv)
{
	return rack_main(argc, argv);
}
