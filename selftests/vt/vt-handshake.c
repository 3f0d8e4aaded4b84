// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handshake between hosts that are minutes apart. A listener keeps no state of a
 * client, so its cookie must still be good when it comes back. A cookie is good in its
 * slot of time (64 s) and in the next one. Needs simulated time.
 *
 *	A: va ---- variant->seconds ---> vb :B
 *	      <---- no time at all -----
 */
#include "sock-lib.h"

#define SEC	(1000 * 1000LL)
#define SLOT	(64 * SEC)

FIXTURE(apart) {
	int	l;	/* listener of B */
	int	fd;	/* of A, nonblocking */
};

FIXTURE_VARIANT(apart)
{
	int	seconds;	/* delay from A to B, until the cookie comes back */
	int	left;		/* seconds left of the slot in which the cookie is made */
	bool	good;
};

FIXTURE_VARIANT_ADD(apart, same_slot)
{
	.seconds = 3,
	.left = 5,
	.good = true,
};

FIXTURE_VARIANT_ADD(apart, next_slot)
{
	.seconds = 3,
	.left = 1,
	.good = true,
};

FIXTURE_VARIANT_ADD(apart, end_of_next_slot)
{
	.seconds = 63,
	.left = 1,
	.good = true,
};

FIXTURE_VARIANT_ADD(apart, slot_behind_it)
{
	.seconds = 67,
	.left = 1,
	.good = false,
};

FIXTURE_SETUP(apart)
{
	make_hosts();
	sysctl(A, "syn_retries", 250);
	self->l = listener(B, SOCK_STREAM, PORT, 1);
	self->fd = esp_socket(A, SOCK_STREAM);
	nonblock(self->fd, true);
	run("tc qdisc add dev va root netem delay %ds limit 10000", variant->seconds);
}

FIXTURE_TEARDOWN(apart)
{
	if (_metadata->exit_code != KSFT_PASS)
		dump_counters();
	EXPECT_TRUE(leave_hosts());
}

TEST_F_TIMEOUT(apart, cookie, 600)
{
	long long made;
	int fd[2] = { self->fd };

	/* connect so that the first SYN arrives @left seconds before the end of a slot */
	made = now_us() + variant->seconds * SEC;
	made += SLOT - made % SLOT - variant->left * SEC;
	nap_us(made - variant->seconds * SEC - now_us());
	EXPECT_ERRNO(EINPROGRESS, do_connect(self->fd, at(B, PORT)));
	EXPECT_EQ(POLLOUT, events(self->fd, POLLOUT, (variant->seconds + 1) * 1000) & POLLOUT);
	EXPECT_EQ(0, so_error(self->fd));
	/* A has the cookie; does B accept it from A? */
	EXPECT_EQ(variant->good ? POLLIN : 0,
		  events(self->l, POLLIN, (variant->seconds + 1) * 1000));
	EXPECT_EQ(variant->good, counter(B, "PassiveOpens"));
	EXPECT_EQ(variant->good, !counter(B, "CookieInvalid"));
	if (!variant->good) {
		EXPECT_EQ(ECONNREFUSED, so_error(self->fd));
		return;
	}
	fd[1] = MUST(accept(self->l, NULL, NULL));
	enter(A);
	run("tc qdisc del dev va root");
	EXPECT_TRUE(alive(fd));
}

TEST_HARNESS_MAIN
