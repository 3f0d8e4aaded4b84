// SPDX-License-Identifier: GPL-2.0-only
/* Timeouts of the sender, probes, keepalive: rules 8, 13. Included by suite.c, after harness.c. */

/* Rule 13: a HOLD stops the sender, which sends probes. The HOLD is no loss. */
static void send__hold_then_probe(struct kunit *test)
{
	unsigned long holds = mib(ESP_MIB_HoldsReceived);
	u8 *buf = pattern(test);
	struct esp_frame f;
	struct t_conn c;
	u32 s;
	int i;

	conf()->rto_min_us = 2000;
	conf()->ack_delay_us = 0;
	conf()->probe_max_ms = 5;
	conf()->retries = 3;
	open_conn(test, &c, 0, 1);
	s = c.ack;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 5 * T_MSS, 0), 5 * T_MSS);
	expect_packets(test, &c, s, s + 4, s, s + 1);
	c.ack = s + 1;
	feed_ack(test, &c, 0);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_HoldsReceived), holds + 1);
	/* more often than retries: probes that are answered don't count */
	for (i = 0; i < 10; i++) {
		next(test, &c, ESP_ACK | ESP_TXS, &f);
		KUNIT_EXPECT_EQ(test, f.len, 0);
		KUNIT_EXPECT_EQ(test, f.pkt_seq, s + 1);
		feed_ack(test, &c, 0);
	}
	KUNIT_EXPECT_EQ(test, c.esp->stats.timeouts, 0ull);
	KUNIT_EXPECT_EQ(test, c.esp->stats.retrans, 0ull);
	skb_queue_purge(&fx.out);
	feed_ack(test, &c, 10);
	do {
		next(test, &c, ESP_ACK, &f);
	} while (!f.len);
	KUNIT_EXPECT_EQ(test, f.pkt_seq, s + 1);
	close_conn(test, &c);
}

/* Rule 13: probes without an answer end the connection with ETIMEDOUT. */
static void send__unanswered_probes_end(struct kunit *test)
{
	u8 *buf = pattern(test);
	struct t_conn c;

	conf()->rto_min_us = 1000;
	conf()->ack_delay_us = 0;
	conf()->probe_max_ms = 2;
	conf()->retries = 3;
	open_conn(test, &c, 0, 0);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 5 * T_MSS, 0), 5 * T_MSS);
	EVENTUALLY(test, READ_ONCE(c.sock->sk->sk_state) == TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 1, MSG_NOSIGNAL), -ETIMEDOUT);
	close_conn(test, &c);
}

/* Rule 8: the sender's timer retransmits the oldest packet. */
static void send__timeout_sends_again(struct kunit *test)
{
	struct esp_frame f, again;
	u8 *buf = pattern(test);
	struct t_conn c;

	conf()->rto_min_us = 2000;
	conf()->ack_delay_us = 0;
	open_conn(test, &c, 0, 4);
	KUNIT_EXPECT_EQ(test, send_bytes(&c, buf, 3 * T_MSS, 0), 3 * T_MSS);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	next(test, &c, ESP_ACK, &again);
	next(test, &c, ESP_ACK | ESP_TXF, &again);
	next(test, &c, ESP_ACK | ESP_TXS, &again);	/* the oldest packet */
	KUNIT_EXPECT_EQ(test, again.pkt_seq, f.pkt_seq);
	KUNIT_EXPECT_EQ(test, again.len, f.len);
	KUNIT_EXPECT_GE(test, again.ts_val - f.ts_val, 2000u);	/* a new ts_val */
	KUNIT_EXPECT_GE(test, c.esp->stats.timeouts, 1ull);
	c.ack += 3;
	feed_ack(test, &c, 4);
	skb_queue_purge(&fx.out);
	KUNIT_EXPECT_EQ(test, c.esp->deadline[ESP_T_SEND], 0ull);
	close_conn(test, &c);
}

/* Let the connection look idle for two hours, and keepalive be due now. */
static u64 idle_for_long(struct t_conn *c)
{
	u64 now = esp_now();

	lock_sock(c->sock->sk);
	c->esp->progress_us = now - 2 * 3600ull * 1000 * 1000;
	esp_timer_set(c->esp, ESP_T_KEEP, now);
	release_sock(c->sock->sk);
	return now;
}

/* Keepalive sends no probe while data is outstanding: the sender's timer watches that. */
static void keepalive__data_on_its_way(struct kunit *test)
{
	unsigned long probes = mib(ESP_MIB_KeepaliveProbes);
	struct esp_frame f;
	struct t_conn c;
	u64 due;

	open_conn(test, &c, 0, 4);
	sock_set_keepalive(c.sock->sk);
	c.esp->keep_idle = 3600;
	KUNIT_EXPECT_EQ(test, send_bytes(&c, "x", 1, 0), 1);
	next(test, &c, ESP_ACK | ESP_TXS | ESP_TXF, &f);
	due = idle_for_long(&c);
	EVENTUALLY(test, READ_ONCE(c.esp->deadline[ESP_T_KEEP]) > due);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_KeepaliveProbes), probes);
	silence(test);
	c.ack++;
	feed_ack(test, &c, 4);
	idle_for_long(&c);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_KeepaliveProbes), probes + 1);
	close_conn(test, &c);
}

/* Keepalive, when it is switched off meanwhile, and with a time limit of the user's. */
static void keepalive__ends(struct kunit *test)
{
	unsigned long probes = mib(ESP_MIB_KeepaliveProbes), ended = mib(ESP_MIB_AbortOnTimeout);
	struct esp_frame f;
	struct t_conn c;

	open_conn(test, &c, 0, 4);
	idle_for_long(&c);	/* the option is off */
	EVENTUALLY(test, !READ_ONCE(c.esp->deadline[ESP_T_KEEP]));
	sock_set_keepalive(c.sock->sk);
	c.esp->keep_idle = 3600;
	c.esp->keep_intvl = 3600;
	c.esp->user_timeout_ms = 3 * 3600 * 1000;
	idle_for_long(&c);
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_KeepaliveProbes), probes + 1);
	idle_for_long(&c);	/* two hours: the limit is three */
	next(test, &c, ESP_ACK | ESP_TXS, &f);
	KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
	c.esp->user_timeout_ms = 3600 * 1000;
	idle_for_long(&c);
	EVENTUALLY(test, READ_ONCE(c.sock->sk->sk_state) == TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, sock_error(c.sock->sk), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, mib(ESP_MIB_AbortOnTimeout), ended + 1);
	sock_release(c.sock);
	silence(test);
}

/* The numbers of timeouts and probes in a row don't wrap. */
static void send__counts_stop(struct kunit *test)
{
	unsigned long timeouts = mib(ESP_MIB_Timeouts), probes = mib(ESP_MIB_Probes);
	struct t_conn c;
	int i;

	conf()->rto_min_us = 1000;
	conf()->rto_max_ms = 1;
	conf()->probe_max_ms = 1;
	conf()->ack_delay_us = 0;
	conf()->retries = 1000;
	for (i = 0; i < 2; i++) {
		open_conn(test, &c, i, i ? 0 : 4);	/* packets, or a question for a grant */
		KUNIT_EXPECT_EQ(test, send_bytes(&c, pattern(test), T_MSS, 0), T_MSS);
		lock_sock(c.sock->sk);
		WRITE_ONCE(c.esp->retransmits, 254);
		WRITE_ONCE(c.esp->probes, 254);
		release_sock(c.sock->sk);
		if (i)
			EVENTUALLY(test, mib(ESP_MIB_Probes) > probes + 3);
		else
			EVENTUALLY(test, mib(ESP_MIB_Timeouts) > timeouts + 3);
		KUNIT_EXPECT_EQ(test, c.esp->probes, 255);
		KUNIT_EXPECT_EQ(test, c.esp->retransmits, i ? 254 : 255);
		KUNIT_EXPECT_EQ(test, c.sock->sk->sk_state, TCP_ESTABLISHED);
		close_conn(test, &c);
	}
}

static struct kunit_case timeout_cases[] = {
	KUNIT_CASE(send__hold_then_probe),
	KUNIT_CASE(send__unanswered_probes_end),
	KUNIT_CASE(send__timeout_sends_again),
	KUNIT_CASE(send__counts_stop),
	KUNIT_CASE(keepalive__data_on_its_way),
	KUNIT_CASE(keepalive__ends),
	{}
};
