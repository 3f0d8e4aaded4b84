// SPDX-License-Identifier: GPL-2.0-only
/*
 * What sockets use is charged to the memory cgroup of who made or accepted them, as it
 * is for TCP.
 */
#include "sock-hosts.h"
#include "memcg.h"

#define MUCH	(512 * 1024)	/* that waits to be read */
#define TIMES	16

/* The number behind a name, of what has lines of such. */
static long named(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	char key[64];
	long n = -1, v;

	while (f && fscanf(f, "%63s %ld", key, &v) == 2)
		if (!strcmp(key, name))
			n = v;
	if (f)
		fclose(f);
	return n;
}

/* The kernel sums it up every two seconds. */
static long charged(void)
{
	return MUST(named(GROUP "/memory.stat", "sock"));
}

/* Pages of all sockets. */
static long of_all(void)
{
	FILE *f = fopen("/proc/net/protocols", "r");
	char line[256];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "ESP ", 4))
			sscanf(line, "ESP %*s %*s %ld", &n);
	if (f)
		fclose(f);
	return MUST(n);
}

/* A connection that waits in the accept queue of @l, with MUCH to be read. */
static int waits(int l)
{
	static char buf[MUCH];
	int fd = esp_socket(A, SOCK_STREAM);

	MUST(do_connect(fd, at(B, PORT)));
	fill(buf, 0, MUCH);
	MUST(send(fd, buf, MUCH, 0) == MUCH ? 0 : -1);
	MUST(UNTIL(!queued(fd, SIOCOUTQ)) ? 0 : -1);
	MUST(events(l, POLLIN, LONG) ? 0 : -1);
	return fd;
}

FIXTURE(memcg) {
};

FIXTURE_SETUP(memcg)
{
	ASSERT_TRUE(make_group());
	make_hosts();
}

FIXTURE_TEARDOWN(memcg)
{
	if (_metadata->exit_code != KSFT_PASS)
		dump_counters();
	EXPECT_TRUE(leave_hosts());
	EXPECT_TRUE(UNTIL(charged() == 0));
	EXPECT_TRUE(remove_group());
}

/* Whoever accepts has what came before that, and what comes then. */
TEST_F(memcg, accepted)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2];

	fd[0] = waits(l);
	join_group(true);
	EXPECT_EQ(0, charged());
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_TRUE(UNTIL(charged() >= MUCH));
	EXPECT_GE(4 * MUCH, charged());

	EXPECT_EQ(0, write_stream(fd[0], MUCH, MUCH));
	EXPECT_TRUE(UNTIL(!queued(fd[0], SIOCOUTQ)));
	EXPECT_TRUE(UNTIL(charged() >= 2 * MUCH));
	EXPECT_EQ(0, read_stream(fd[1], 0, 2 * MUCH));
}

/* For all sockets it stays charged once, as it was; processors count some pages apart. */
TEST_F(memcg, of_all_sockets)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2], i;
	long before = of_all();

	join_group(true);
	for (i = 0; i < TIMES; i++) {
		fd[0] = waits(l);
		fd[1] = MUST(accept(l, NULL, NULL));
		EXPECT_EQ(0, read_stream(fd[1], 0, MUCH));
		close(fd[0]);
		close(fd[1]);
	}
	EXPECT_GT(TIMES * MUCH / 4096 / 2, labs(of_all() - before));
}

/* Whose group has no limit pays nothing for others. */
TEST_F(memcg, nobodys)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2];

	fd[0] = waits(l);
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_EQ(0, charged());
	join_group(true);
	EXPECT_EQ(0, write_stream(fd[0], MUCH, MUCH));
	EXPECT_EQ(0, read_stream(fd[1], 0, 2 * MUCH));
	EXPECT_EQ(0, charged());
}

/* A socket() is charged to who made it. */
TEST_F(memcg, made)
{
	int l, fd;

	l = listener(B, SOCK_STREAM, PORT, 1);
	join_group(true);
	fd = esp_socket(A, SOCK_STREAM);
	MUST(do_connect(fd, at(B, PORT)));
	link_up(B, false);
	EXPECT_EQ(0, write_stream(fd, 0, MUCH));
	EXPECT_TRUE(UNTIL(charged() >= MUCH));
}

/* Who may have no more can't accept; the connection waits until that is possible. */
TEST_F(memcg, limit)
{
	int l = listener(B, SOCK_STREAM, PORT, 1), fd[2];
	char text[32];

	write_text("/proc/self/oom_score_adj", "-1000");
	fd[0] = waits(l);
	join_group(true);
	snprintf(text, sizeof(text), "%ld", MUCH / 2L);
	if (!access(GROUP "/memory.swap.max", F_OK))
		write_text(GROUP "/memory.swap.max", "0");
	write_text(GROUP "/memory.max", text);
	EXPECT_ERRNO(ENOMEM, accept(l, NULL, NULL));
	EXPECT_ERRNO(ENOMEM, accept(l, NULL, NULL));
	EXPECT_GT(MUCH / 2, charged());
	write_text(GROUP "/memory.max", "max");
	fd[1] = MUST(accept(l, NULL, NULL));
	EXPECT_TRUE(UNTIL(charged() >= MUCH));
	EXPECT_EQ(0, read_stream(fd[1], 0, MUCH));
	EXPECT_TRUE(alive(fd));
}

TEST_HARNESS_MAIN
