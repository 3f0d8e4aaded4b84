// SPDX-License-Identifier: GPL-2.0-only
/* The tables of sockets. Included by suite.c, after harness.c. */

static bool count_sock(struct sock *sk, void *data)
{
	++*(int *)data;
	return true;
}

static int count_socks(void)
{
	struct esp_walk walk = {};
	int n = 0;

	esp_for_each_sock(&init_net, &walk, count_sock, &n);
	return n;
}

#define T_WALKED	60	/* sockets in a walk */
#define T_AT_ONCE	7	/* sockets in each part of a walk */

struct t_walk {
	int	room, calls, refused;
};

static bool walk_some(struct sock *sk, void *data)
{
	struct t_walk *w = data;

	w->calls++;
	if (w->room-- > 0)
		return true;
	w->refused++;
	return false;
}

/*
 * List sockets in parts. Each part goes on where the one before ended, and visits no socket
 * again. The sockets are first in many buckets, then in one.
 */
static void walk__goes_on(struct kunit *test)
{
	struct sockaddr_esp a = { .sesp_family = esp_family };
	int i, same, parts, before = count_socks();
	struct socket **socks;

	socks = kunit_kcalloc(test, T_WALKED, sizeof(*socks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, socks);
	for (same = 0; same < 2; same++) {
		struct esp_walk walk = {};
		struct t_walk w = {};

		for (i = 0; i < T_WALKED; i++) {
			KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, SOCK_DGRAM, 0,
							       &socks[i]), 0);
			socks[i]->sk->sk_reuse = SK_CAN_REUSE;
			a.sesp_port = same ? htons(T_PORT) : 0;
			KUNIT_ASSERT_EQ(test, kernel_bind(socks[i], (struct sockaddr_unsized *)&a,
							  sizeof(a)), 0);
		}
		for (parts = 0; parts == w.refused; parts++) {
			w.room = T_AT_ONCE;
			esp_for_each_sock(&init_net, &walk, walk_some, &w);
		}
		KUNIT_EXPECT_EQ(test, w.refused, (before + T_WALKED - 1) / T_AT_ONCE);
		KUNIT_EXPECT_EQ(test, w.calls, before + T_WALKED + w.refused);
		for (i = 0; i < T_WALKED; i++)
			sock_release(socks[i]);
	}
	KUNIT_EXPECT_EQ(test, count_socks(), before);
}

/* A frame to a group reaches all sockets of the port even if one is closed meanwhile. */
static void dgram__one_closes(struct kunit *test)
{
	struct socket *socks[3];
	struct sock *sk, *closed;
	int i, met = 0;

	for (i = 0; i < 3; i++)
		socks[i] = new_socket(test, SOCK_DGRAM);
	rcu_read_lock();
	closed = esp_next_dgram(&init_net, fx.dev->ifindex, htons(T_PORT), NULL);
	KUNIT_EXPECT_NOT_NULL(test, closed);
	if (closed)
		esp_unhash(closed);
	for (sk = closed; sk; sk = esp_next_dgram(&init_net, fx.dev->ifindex, htons(T_PORT), sk))
		met++;
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, met, 3);
	for (i = 0; i < 3; i++)
		sock_release(socks[i]);
}

static struct kunit_case hash_cases[] = {
	KUNIT_CASE(walk__goes_on),
	KUNIT_CASE(dgram__one_closes),
	{}
};
