// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer that doesn't answer for long: how long a connection waits with the defaults, and how soon
 * it goes on. TCP's with its defaults ends after 924.6 s (tcp_retries2). Needs simulated time.
 */
#include "sock-lib.h"

#define SEC	(1000 * 1000LL)
#define LINE	16		/* bytes */

FIXTURE(cut) {
	int	fd[2];		/* of A, of B */
};

FIXTURE_VARIANT(cut)
{
	bool	stuffed;	/* the reader has stopped, so the sender waits for a grant */
};

FIXTURE_VARIANT_ADD(cut, unacknowledged)
{
	.stuffed = false,
};

FIXTURE_VARIANT_ADD(cut, waits_for_grant)
{
	.stuffed = true,
};

FIXTURE_SETUP(cut)
{
	make_hosts();
	make_pair(SOCK_STREAM, self->fd);
}

FIXTURE_TEARDOWN(cut)
{
	if (_metadata->exit_code != KSFT_PASS)
		dump_counters();
	EXPECT_TRUE(leave_hosts());
}

/* Take the cable out, or put it in. No device notices: there is a switch on each side. */
static void cable(bool out)
{
	enter(A);
	run("tc qdisc %s dev va root netem%s", out ? "add" : "del", out ? " loss 100%" : "");
	enter(B);
	run("tc qdisc %s dev vb root netem%s", out ? "add" : "del", out ? " loss 100%" : "");
}

/* The sender gives up no earlier than TCP's does, and not much later. */
TEST_F_TIMEOUT(cut, for_ever, 1200)
{
	long long start, took;

	nonblock(self->fd[0], true);
	if (variant->stuffed)
		stuff(self->fd[0], 0);
	cable(true);
	start = now_us();
	if (!variant->stuffed)
		EXPECT_EQ(LINE, send(self->fd[0], "0123456789abcde\n", LINE, 0));
	EXPECT_EQ(0, events(self->fd[0], POLLERR, 924 * 1000) & POLLERR);
	EXPECT_EQ(POLLERR, events(self->fd[0], POLLERR, 76 * 1000) & POLLERR);
	took = now_us() - start;
	TH_LOG("gave up after %lld s", took / SEC);
	EXPECT_EQ(ETIMEDOUT, so_error(self->fd[0]));
	cable(false);
}

/* A line a second while the cable is out for 50 s; nothing is lost, and all is there 5 s later. */
static void lines(struct __test_metadata *_metadata, int fd[2])
{
	char line[LINE + 1], got[LINE];
	int i, n = 0;

	for (i = 0; i < 65; i++) {
		if (i == 5 || i == 55)
			cable(i == 5);
		snprintf(line, sizeof(line), "line %10d\n", i);
		EXPECT_EQ(LINE, send(fd[0], line, LINE, 0));
		nap_us(SEC);
		while (n <= i && (events(fd[1], POLLIN, 0) & POLLIN)) {
			snprintf(line, sizeof(line), "line %10d\n", n++);
			EXPECT_EQ(LINE, recv(fd[1], got, LINE, MSG_WAITALL));
			EXPECT_EQ(0, memcmp(line, got, LINE));
		}
		if (i < 5 || i >= 60) {
			EXPECT_EQ(i + 1, n);
		} else if (i < 55) {
			EXPECT_EQ(5, n);
		}
	}
}

/* The reader has stopped, and goes on when the cable has been out for 50 s. */
static void stopped(struct __test_metadata *_metadata, int fd[2])
{
	size_t n = stuff(fd[0], 0);
	long long start;

	cable(true);
	nap_us(50 * SEC);
	cable(false);
	start = now_us();
	EXPECT_EQ(0, read_stream(fd[1], 0, n));
	EXPECT_LE(now_us() - start, 6 * SEC);
}

TEST_F_TIMEOUT(cut, for_50_seconds, 600)
{
	if (variant->stuffed)
		stopped(_metadata, self->fd);
	else
		lines(_metadata, self->fd);
	EXPECT_EQ(0, so_error(self->fd[0]));
	EXPECT_EQ(0, counter(A, "AbortOnTimeout"));
	EXPECT_TRUE(alive(self->fd));
}

TEST_HARNESS_MAIN
