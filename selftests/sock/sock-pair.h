/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fixture of programs that test a connection from its beginning to its end:
 * the connection, a stream or PAIR_TYPE, and helpers.
 */
#ifndef SOCK_PAIR_H
#define SOCK_PAIR_H

#include "sock-lib.h"

#define MEGA (1024 * 1024)

#ifndef PAIR_TYPE
#define PAIR_TYPE SOCK_STREAM
#endif

FIXTURE(pair) {
	int fd[2];	/* at A, at B */
};

FIXTURE_SETUP(pair)
{
	make_hosts();
	make_pair(PAIR_TYPE, self->fd);
	impatient(self->fd[0]);
	impatient(self->fd[1]);
	signal(SIGPIPE, SIG_IGN);
}

FIXTURE_TEARDOWN(pair)
{
	if (_metadata->exit_code != KSFT_PASS)
		dump_counters();
	EXPECT_TRUE(leave_hosts());
}

static inline void buffers(int fd, int snd, int rcv)
{
	if (snd)
		MUST(set_int(fd, SOL_SOCKET, SO_SNDBUF, snd));
	if (rcv)
		MUST(set_int(fd, SOL_SOCKET, SO_RCVBUF, rcv));
}

static inline struct esp_stats stats(int fd)
{
	return get_info(fd).stats;
}

/* Wait until all data have been acknowledged. */
static inline bool drained(int fd)
{
	return UNTIL(!queued(fd, SIOCOUTQ));
}

/* Unanswered retries after which a sender gives up: two seconds' worth. */
#define RETRIES 20

static inline void give_up_soon(const struct host *h)
{
	sysctl(h, "retries", RETRIES);
	sysctl(h, "rto_min_us", 100000);
	sysctl(h, "rto_max_ms", 100);
	sysctl(h, "probe_max_ms", 100);
}

/* Return how often the host's senders have asked because no answer let them go on. */
static inline long tries(const struct host *h)
{
	return counter(h, "Probes") + counter(h, "Timeouts");
}

/* Wait until a sender has tried twice as often as it would without an answer. */
static inline bool tries_long(const struct host *h)
{
	long before = tries(h);

	return UNTIL(tries(h) > before + 2 * RETRIES);
}

#endif
