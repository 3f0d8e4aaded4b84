/* SPDX-License-Identifier: GPL-2.0-only */
/* The fixture of tests that make their own sockets: two hosts. */
#ifndef SOCK_HOSTS_H
#define SOCK_HOSTS_H

#include "sock-lib.h"

/* Delay all frames by that many ms: longer than a busy machine stops between two calls. */
#define SLOW_LINK 3000

FIXTURE(hosts) {
};

FIXTURE_SETUP(hosts)
{
	make_hosts();
}

FIXTURE_TEARDOWN(hosts)
{
	if (_metadata->exit_code != KSFT_PASS)
		dump_counters();
	EXPECT_TRUE(leave_hosts());
}

/* Make the link so slow that SYNs cross if each side calls connect() now. */
static inline void slow_link(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		enter(&hosts[i]);
		run("tc qdisc add dev %s root netem delay %dms", hosts[i].dev, SLOW_LINK);
	}
}

/* Wait until @n SYNs or more have crossed at each host, and make the link fast again. */
static inline bool crossed(int n)
{
	bool ok = UNTIL(counter(A, "SimultaneousOpens") >= n &&
			counter(B, "SimultaneousOpens") >= n);
	int i;

	for (i = 0; i < 2; i++) {
		enter(&hosts[i]);
		run("tc qdisc del dev %s root", hosts[i].dev);
	}
	return ok;
}

#endif
