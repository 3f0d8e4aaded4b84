/* SPDX-License-Identifier: GPL-2.0-only */
/* The fixture of tests that make their own sockets: two hosts. */
#ifndef SOCK_HOSTS_H
#define SOCK_HOSTS_H

#include "sock-lib.h"

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

#endif
