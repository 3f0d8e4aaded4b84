// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bounds on the packets in flight (rules 3, 20, 21): all senders begin at once, make
 * small writes without end, have grants in both directions, or send more than they
 * were granted.
 */
#include <linux/sock_diag.h>
#include <pthread.h>
#include <stdatomic.h>
#include "vt-rack.h"
#include "vt-forge.h"

/*
 * Rule 21: however many senders start in the same moment, their first bursts are at
 * most F packets, and fit into the port's buffer.
 */
TEST_F(rack, all_start_at_once)
{
	int i, r;

	connect_streams(snd, SENDERS, &rx);
	nap_us(100 * MS);
	for (r = 0; r < 4; r++) {
		long data = sent("OutData"), lost = drops();
		long empty = sent("AdviceEmpty");
		long long start = now_us();

		for (i = 0; i < SENDERS; i++) {
			st[i].want += 34 * MSS;	/* more than any first burst here */
			write_some(&st[i]);
		}
		/* no answer can have come by now */
		EXPECT_LT(now_us() - start, RTT_US);
		data = sent("OutData") - data;
		EXPECT_TRUE(PUMP(all_in(), SEC));
		lost = drops() - lost;
		printf("# round %d: first bursts of %ld, %ld empty TXS, %ld dropped, %lld us\n",
		       r, data, sent("AdviceEmpty") - empty, lost, now_us() - start);
		EXPECT_LE(data, FIRST_BURSTS);
		EXPECT_EQ(0, lost);
		PUMP(false, 5 * MS);
	}
	EXPECT_GE(parked_max, SENDERS / 2);
	EXPECT_ALL_WELL(SEC);
}

/*
 * Rule 3: announce_seq stands still while it is unacknowledged, so that small
 * writes without end push no more than one first burst.
 */
TEST_F(rack, small_writes_without_ack)
{
	struct stream *s = &st[0];
	struct esp_info was, is;
	int i, advice;
	long data;

	connect_streams(snd, 1, &rx);
	MUST(set_int(s->tx, SOL_ESP, ESP_NODELAY, 1));
	s->want = 3 * 65536;
	EXPECT_ALL_WELL(SEC);
	nap_us(10 * MS);
	advice = get_info(s->tx).advice;
	EXPECT_GE(advice, 1);
	data = sent("OutData");
	/* delay all frames from the receiver */
	enter(&rx);
	run("tc qdisc change dev e0 root netem limit 10000 delay 50ms");
	s->want += 100;
	write_some(s);
	was = get_info(s->tx);
	for (i = 0; i < 1000; i++) {
		s->want += 100;
		write_some(s);
		nap_us(40);
		is = get_info(s->tx);
		if (is.announce_seq != was.announce_seq)
			break;
	}
	EXPECT_EQ(1000, i);
	EXPECT_EQ(was.announce_seq, is.una_seq);
	data = sent("OutData") - data;
	printf("# 1000 writes, %ld packets, advice %d, %ld timeouts\n", data, advice,
	       sent("Timeouts"));
	EXPECT_GE(data, 2);
	EXPECT_LE(data, advice);
	enter(&rx);
	run("tc qdisc change dev e0 root netem limit 10000 delay %dus", RTT_US / 2);
	EXPECT_ALL_WELL(SEC);
	EXPECT_EQ(0, drops());
}

/*
 * Both directions between all pairs of four hosts: the ACKs that ride on data
 * carry what was granted, and no more.
 */
#define MESH 4

static struct {
	int		ports[MESH];
	atomic_bool	stop;
	int		samples;
	int		open;		/* most outstanding packets at a port */
	long long	start;
	int		first;		/* most beyond the recent budget and one grant */
	int		beyond;		/* most beyond those, 2 ms after the start */
	int		out_of_turn;	/* packets of a sender's edge beyond the receiver's */
	int		piggy;		/* looks at grants in both directions */
	int		compared;	/* comparisons of edges */
} mesh;

static void look_at_edges(void)
{
	int i;

	for (i = 0; i < nst; i++) {
		struct esp_info tx = get_info(st[i].tx), to = get_info(st[i].rx);
		int n;

		if (!(to.flags & ESP_IF_RECV_ANNOUNCED))
			continue;
		mesh.piggy += !!(tx.flags & ESP_IF_RECV_ANNOUNCED);
		/* compare only after its announcement was answered */
		if ((__s32)(tx.una_seq - tx.announce_seq) <= 0)
			continue;
		mesh.compared++;
		n = tx.edge - to.recv_edge;
		if (n > mesh.out_of_turn)
			mesh.out_of_turn = n;
	}
}

static void *watch_mesh(void *arg)
{
	int q[MESH][40] = {}, i, k;

	while (!mesh.stop) {
		for (i = 0; i < MESH; i++) {
			struct port p = read_port(mesh.ports[i]);
			int budget = 0, grant;

			q[i][mesh.samples % 40] = p.budget;
			for (k = 0; k < 40; k++)
				if (q[i][k] > budget)
					budget = q[i][k];
			grant = p.senders > 1 && budget / 4 < GRANT_MAX ? budget / 4 : GRANT_MAX;
			if (p.open > mesh.open)
				mesh.open = p.open;
			k = p.open - budget - grant;
			if (k > mesh.first)
				mesh.first = k;
			if (k > mesh.beyond && now_us() - mesh.start > 2 * MS)
				mesh.beyond = k;
			if (p.parked > parked_max)
				parked_max = p.parked;
		}
		look_at_edges();
		mesh.samples++;
		nap_us(TICK_US);
	}
	return arg;
}

static bool mesh_quiet(void)
{
	int i;

	for (i = 0; i < MESH; i++) {
		struct port p = read_port(mesh.ports[i]);

		if (p.senders || p.parked || p.open)
			return false;
	}
	return true;
}

/* @twice: each host connects to every other; else only to those after it. */
static void mesh_traffic(struct __test_metadata *_metadata, bool twice)
{
	char name[IFNAMSIZ];
	pthread_t watcher;
	long long took;
	long lost = 0;
	int i, k, n;

	for (i = 0; i < MESH; i++) {
		snprintf(name, sizeof(name), "q%d", i);
		limit_port(name, 1000);
		mesh.ports[i] = open_ports(&snd[i]);
	}
	for (i = 0; i < MESH; i++)
		for (k = twice ? 0 : i + 1; k < MESH; k++)
			if (i != k)
				connect_streams(&snd[i], 1, &snd[k]);
	n = nst;
	for (i = 0; i < n; i++) {
		/* the other direction */
		st[n + i].tx = st[i].rx;
		st[n + i].rx = st[i].tx;
	}
	nst = 2 * n;
	nap_us(10 * MS);
	for (i = 0; i < nst; i++)
		st[i].want = 256 << 10;
	mesh.start = now_us();
	pthread_create(&watcher, NULL, watch_mesh, NULL);
	EXPECT_TRUE(PUMP(all_in(), SEC));
	took = now_us() - mesh.start;
	EXPECT_TRUE(no_errors());
	EXPECT_TRUE(PUMP(mesh_quiet(), 100 * MS));
	mesh.stop = true;
	pthread_join(watcher, NULL);
	for (i = 0; i < MESH; i++) {
		snprintf(name, sizeof(name), "q%d", i);
		lost += drops_at(name);
		enter(&sw);
		run("tc qdisc del dev %s root", name);
	}
	printf("# all in after %lld us, %ld dropped; open %d at most, parked %d\n", took, lost,
	       mesh.open, parked_max);
	printf("# %d looks: %d beyond the bound, first bursts %d; edge %d out of turn (%d looks)\n",
	       mesh.samples, mesh.beyond, mesh.first, mesh.out_of_turn, mesh.compared);
	EXPECT_GE(mesh.samples, 100);
	EXPECT_GE(mesh.piggy, 100);
	EXPECT_GE(mesh.compared, 100);
	EXPECT_GE(parked_max, 2);
	EXPECT_LE(mesh.first, FIRST_BURSTS);
	EXPECT_LE(mesh.beyond, 0);
	EXPECT_LE(mesh.out_of_turn, 0);
	if (!twice)	/* else each host has two first bursts (protocol.rst, "Decisions") */
		EXPECT_EQ(0, lost);
	nst = n;	/* so that each socket is closed once */
}

TEST_F(rack, both_ways_everywhere)
{
	mesh_traffic(_metadata, true);
}

TEST_F(rack, both_ways_once)
{
	mesh_traffic(_metadata, false);
}

/*
 * Rule 20: a sender that sends far more than it may gains nothing: the memory of
 * the receiving socket is bounded, and the other senders keep the link.
 */
static int memory(int fd)
{
	__u32 m[SK_MEMINFO_VARS] = {};
	socklen_t len = sizeof(m);

	MUST(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, m, &len));
	return m[SK_MEMINFO_RMEM_ALLOC];
}

TEST_F(rack, window_ignored)
{
	int most = 0, rcvbuf, allowance = 65 * 2304;
	__u32 seq, start;
	long long began;
	long long honest;
	static struct forger f;
	int i;

	connect_streams(snd, 2, &rx);
	MUST(set_int(st[0].rx, SOL_SOCKET, SO_RCVBUF, 131072));
	rcvbuf = get_int(st[0].rx, SOL_SOCKET, SO_RCVBUF);
	learn(&f, &st[0], 0);
	st[0].stopped = true;
	keep_busy(1, 2);
	honest = st[1].got;
	reset_gaps();
	seq = ntohl(forged(&f)->pkt_seq) + 1;
	start = seq;
	began = now_us();
	for (i = 0; i < 1200; i++) {
		int kind = i / 400;

		/* numbers in a row; every second one; anywhere */
		forge_frame(&f, seq, !i ? ESP_TXS : 0, 0, MSS);
		seq = kind == 0 ? seq + 1 : kind == 1 ? seq + 2 : start + i * 977;
		step();
		if (memory(st[0].rx) > most)
			most = memory(st[0].rx);
	}
	honest = st[1].got - honest;
	printf("# rmem %d at most, rcvbuf %d; dropped %ld, beyond window %ld\n", most, rcvbuf,
	       counter(&rx, "InMemDrop"), counter(&rx, "InBeyondWindow"));
	printf("# forged frames: %.1f %% of the link; honest: %.1f %%, waited for %lld us\n",
	       100 * 1200.0 * MSS / capacity(1000, now_us() - began),
	       100 * honest / capacity(1000, now_us() - began), longest_gap(1));
	EXPECT_LE(most, rcvbuf + allowance);
	EXPECT_GE(most, rcvbuf / 2);
	EXPECT_GE(counter(&rx, "InMemDrop"), 300);
	EXPECT_GE(counter(&rx, "InBeyondWindow"), 300);
	EXPECT_LE(queued(st[0].rx, SIOCINQ), rcvbuf + allowance);
	EXPECT_GE(honest, 0.9 * (capacity(1000, now_us() - began) - 1200.0 * MSS));
	/* the sender's grants expire; a receiver that does not read gives no more */
	EXPECT_TRUE(PUMP(!tokens(st[0].rx) && !flag(st[0].rx, ESP_IF_PARKED), 100 * MS));
	close(f.fd);
	close(st[0].rx);
	close(st[0].tx);
	EXPECT_TRUE(PUMP(port().senders == 1, 100 * MS));
	st[0] = (struct stream){ .tx = -1, .rx = -1 };
	enough();
	EXPECT_ALL_WELL(SEC);
}

int main(int argc, char **argv)
{
	return rack_main(argc, argv);
}
