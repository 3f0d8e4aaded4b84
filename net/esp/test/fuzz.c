// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random frames, as strangers or a broken peer might send them, to a socket in each state. The
 * frames come in all shapes in which a device or the core might hand them over. A run depends
 * on its seed and on the clock only. Included by suite.c, after harness.c.
 */
#include <linux/if_vlan.h>
#include <linux/moduleparam.h>
#include <linux/prandom.h>

#define T_FUZZ_FRAMES	100	/* frames for each socket */
#define T_FUZZ_LEN	4000	/* longest frame, bytes */
#define T_FUZZ_KEPT	8	/* frames that may come again */

static unsigned int fuzz_seed = 1;
module_param(fuzz_seed, uint, 0444);
MODULE_PARM_DESC(fuzz_seed, "KUnit: seed of the first socket that gets random frames");
static unsigned int fuzz_runs = 20;
module_param(fuzz_runs, uint, 0444);
MODULE_PARM_DESC(fuzz_runs, "KUnit: sockets in each state that get random frames");

enum t_state {
	T_LISTEN, T_SYN_SENT, T_CROSSED, T_ECHO, T_ESTABLISHED, T_FIN_WAIT1,
	T_FIN_WAIT2, T_CLOSING, T_CLOSE_WAIT, T_LAST_ACK, T_TIME_WAIT,
};

static struct {
	struct rnd_state	rnd;
	u32			seed;
	struct t_conn		c;
	struct sock		*sk;	/* NULL: there is only the listener */
	enum t_state		state;
	int			nr;	/* number of the peer */
	u32			refused;	/* frames refused as malformed or damaged */
	u32			taken;	/* frames not refused so */
	struct sk_buff		*kept[T_FUZZ_KEPT];
	u8			buf[T_FUZZ_LEN];
} fz;

static u32 rnd(u32 n)
{
	return n ? prandom_u32_state(&fz.rnd) % n : 0;
}

static bool one_in(u32 n)
{
	return !rnd(n);
}

/* Sum of the counters of frames that are refused as malformed or damaged. */
static unsigned long refused(void)
{
	return mib(ESP_MIB_InShort) + mib(ESP_MIB_InVersion) +
	       mib(ESP_MIB_InHeaderLength) + mib(ESP_MIB_InFlags) +
	       mib(ESP_MIB_InOption) + mib(ESP_MIB_InPort) + mib(ESP_MIB_InRange) +
	       mib(ESP_MIB_InChecksum) + mib(ESP_MIB_InCRC);
}

/*
 * States.
 */

/* Call connect(), with a wish for a CRC if @crc; @f: the SYN. */
static void fuzz_connect(struct kunit *test, struct t_conn *c, bool crc,
			 struct esp_frame *f)
{
	struct sockaddr_esp a = {
		.sesp_family	= esp_family,
		.sesp_port	= htons(c->port),
		.sesp_ifindex	= fx.dev->ifindex,
		.sesp_halen	= ETH_ALEN,
	};
	struct sk_buff *skb;

	ether_addr_copy(a.sesp_addr, c->mac);
	c->sock = new_socket(test, SOCK_STREAM);
	c->esp = esp_sk(c->sock->sk);
	c->esp->user_crc = crc;
	KUNIT_EXPECT_EQ(test, kernel_connect(c->sock, (struct sockaddr_unsized *)&a,
					     sizeof(a), O_NONBLOCK), -EINPROGRESS);
	skb = next_skb(T_ANSWER_MS);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	read_frame(test, skb, f, NULL);
	kfree_skb(skb);
	c->their_cookie = f->peer_cookie;
	c->ack = f->pkt_seq + 1;
	c->ts = f->ts_val;
}

static void fuzz_fin(struct kunit *test, struct t_conn *c, bool acks)
{
	c->ack = acks ? c->esp->snd.send_seq : c->esp->snd.una_seq;
	feed(test, c, ESP_FIN, c->esp->recv_seq, 0);
}

/* Make a socket in state fz.state, with data in both directions if the state allows data. */
static void fuzz_socket(struct kunit *test)
{
	struct t_conn *c = &fz.c;
	struct esp_frame f;
	u32 i;

	fx.crc = one_in(4);
	fx.parts = one_in(2);
	fx.left = one_in(2);
	conf()->fin_timeout_ms = 2000;	/* so that a closed socket ends while fuzz_end() waits */
	switch (fz.state) {
	case T_LISTEN:
		start_listener(test);
		new_conn(c, fz.nr);
		if (one_in(2))	/* its echo would make a connection */
			syn(test, c);
		else
			c->their_cookie = rnd(~0u);
		fz.sk = NULL;
		return;
	case T_SYN_SENT:
	case T_CROSSED:
	case T_ECHO:
		new_conn(c, fz.nr);
		fuzz_connect(test, c, fx.crc && one_in(2), &f);
		c->crc = fx.crc && fz.state != T_SYN_SENT;
		if (fz.state == T_CROSSED)
			feed_syn(test, c);
		if (fz.state == T_ECHO) {
			hello_frame(c, &f, ESP_SYN | ESP_ACK);
			f.grant = 4;
			feed_frame(test, c->mac, &f, NULL);
		}
		break;
	default:
		open_conn(test, c, fz.nr, 16);
		send_bytes(c, fz.buf, rnd(T_FUZZ_LEN), 0);
		for (i = rnd(4); i; i--)
			feed(test, c, one_in(2) ? ESP_TXS : 0, c->seq++, 1 + rnd(T_MSS));
		if (one_in(2) && fz.state == T_ESTABLISHED)
			feed(test, c, 0, c->seq + 1 + rnd(5), 1 + rnd(T_MSS));
	}
	fz.sk = c->sock->sk;
	sock_hold(fz.sk);
	if (fz.state == T_CLOSE_WAIT || fz.state == T_LAST_ACK)
		fuzz_fin(test, c, one_in(2));
	if (fz.state >= T_FIN_WAIT1 && fz.state != T_CLOSE_WAIT)
		kernel_sock_shutdown(c->sock, SHUT_WR);
	if (fz.state == T_CLOSING)
		fuzz_fin(test, c, false);
	if (fz.state == T_FIN_WAIT2 || fz.state == T_TIME_WAIT) {
		/* acknowledge all packets, of the first burst and of the grants after it */
		for (i = 0; i < 10; i++) {
			c->ack = c->esp->snd.send_seq;
			feed_ack(test, c, 16);
		}
	}
	if (fz.state == T_TIME_WAIT)
		fuzz_fin(test, c, true);
	c->ack = c->esp->snd.una_seq;
	if (fz.state > T_ESTABLISHED && one_in(3)) {
		sock_release(c->sock);
		c->sock = NULL;
	}
}

/*
 * Frames.
 */

static void fuzz_ranges(u8 *p, u32 n)
{
	struct esp_wire_range r;

	for (; n >= sizeof(r); n -= sizeof(r), p += sizeof(r)) {
		r.offset = htons(one_in(4) ? rnd(65536) : rnd(8));
		r.count = htons(one_in(4) ? rnd(65536) : rnd(4));
		memcpy(p, &r, sizeof(r));
	}
}

/* Build a frame that is probably valid in fz.buf; return its length. */
static u32 fuzz_valid(void)
{
	static const u8 flags[] = {
		ESP_SYN, ESP_SYN | ESP_ACK, ESP_ACK, ESP_ACK, ESP_RST, ESP_RST | ESP_ACK,
		ESP_ACK | ESP_FIN, ESP_ACK | ESP_RRQ, ESP_ACK | ESP_TXS, ESP_ACK | ESP_TXS,
		ESP_ACK | ESP_TXS | ESP_TXF, ESP_ACK | ESP_TXF | ESP_EOR, ESP_ACK, 0,
	};
	struct esp_opt *esp = fz.sk ? esp_sk(fz.sk) : NULL;
	struct t_conn *c = &fz.c;
	struct esp_frame f;
	u8 *payload;

	conn_frame(c, &f, flags[rnd(sizeof(flags))], c->seq, 0);
	if (esp && esp->recv_seq)
		f.pkt_seq = esp->recv_seq;
	f.pkt_seq += one_in(3) ? rnd(80) - 20 : 0;
	if (f.flags & ESP_SYN)
		f.pkt_seq = esp_isn(c->cookie);
	if (esp && esp->snd.una_seq)
		f.ack_seq = esp->snd.una_seq +
			    rnd(esp->snd.send_seq - esp->snd.una_seq + 2 + one_in(8));
	if (one_in(32))
		f.ack_seq = rnd(~0u);
	f.ts_val += rnd(2000) - 1000;
	f.ts_ecr = one_in(4) ? rnd(~0u) :
		   (u32)esp_now() + (esp ? esp->ts_off : 0) - rnd(2000);
	f.grant = rnd(one_in(4) ? ESP_GRANT_MOST + 1 : 64);
	if (!(f.flags & (ESP_SYN | ESP_FIN | ESP_RST)))
		f.len = one_in(3) ? 0 : 1 + rnd(one_in(4) ? T_FUZZ_LEN - ESP_HLEN_MAX - 1 : T_MSS);
	if (f.flags & ESP_RRQ)
		f.len = 4 + 4 * rnd(3);
	if ((f.flags & ESP_SYN) || one_in(16)) {
		add_hello(c, &f);
		if (!(f.opts & ESP_HAS(ESP_OPT_CRC)) && one_in(4)) {
			f.opts |= ESP_HAS(ESP_OPT_FEATURES);
			f.features = rnd(256);
		}
		f.mss = one_in(4) ? rnd(65536) : T_MSS;
		f.burst = rnd(65536);
		f.type = one_in(8) ? rnd(256) : SOCK_STREAM;
		if (f.flags == ESP_SYN)
			f.cookie = 0;
	}
	if (one_in(8)) {
		f.opts |= ESP_HAS(ESP_OPT_ADVICE);
		f.advice = rnd(100);
	}
	if (f.len && !(f.flags & ESP_RRQ) && !(f.opts & ESP_HAS(ESP_OPT_COOKIE)) && one_in(4)) {
		f.opts |= ESP_HAS(ESP_OPT_PART);
		f.part_at = one_in(2) ? 0 : rnd(2000);
		f.part_size = f.part_at + f.len + (one_in(2) ? 0 : rnd(4000));
	}
	f.busy = one_in(4);
	f.later = one_in(4);
	if (!(f.opts & (ESP_HAS(ESP_OPT_PART) | ESP_HAS(ESP_OPT_BURST))) && one_in(4)) {
		f.opts |= ESP_HAS(ESP_OPT_LEFT);
		f.left = one_in(4) ? rnd(65536) : f.pkt_seq + rnd(64);
		f.first = one_in(4) ? rnd(65536) : rnd(16);
	}
	if (!(f.opts & ESP_HAS(ESP_OPT_TYPE)) && one_in(32))
		f.opts ^= ESP_HAS(ESP_OPT_CRC);
	if (one_in(32))
		f.cookie = rnd(~0u);
	if (one_in(32))
		f.dport = htons(rnd(65536));
	if (one_in(32))
		f.sport = htons(rnd(65536));
	esp_wire_build(fz.buf, &f);
	payload = fz.buf + esp_wire_hlen(&f);
	if (f.flags & ESP_RRQ)
		fuzz_ranges(payload, f.len);
	else
		memset(payload, f.pkt_seq, f.len);
	return esp_wire_hlen(&f) + f.len;
}

/* Damage the frame in some cases; checksum and CRC are nearly always right. */
static u32 fuzz_mutate(struct kunit *test, u32 n)
{
	struct esp_wire *h = (struct esp_wire *)fz.buf;
	u32 i, sum;

	if (one_in(3))
		for (i = 1 + rnd(3); i; i--)
			fz.buf[rnd(min(n, 64u))] ^= one_in(2) ? 1 << rnd(8) : rnd(256);
	if (one_in(16))
		h->ver_hlen = ESP_VERSION << 4 | rnd(16);
	if (one_in(16))
		n = rnd(n + 1);
	if (one_in(8)) {
		i = rnd(min(64u, T_FUZZ_LEN - n));
		prandom_bytes_state(&fz.rnd, fz.buf + n, i);
		n += i;
	}
	if (n >= ESP_HLEN && !one_in(16)) {
		h->csum = 0;
		sum = min((h->ver_hlen & 15) * 4u + ntohs(h->len), n);
		if (sum >= ESP_HLEN + ESP_CRC_ROOM && fz.buf[ESP_HLEN] == ESP_OPT_CRC &&
		    !one_in(16))
			put_crc(test, fz.buf, sum);
		h->csum = (__force u16)csum_fold(csum_partial(h, sum, 0));
	}
	return n;
}

static bool fuzz_pages(struct sk_buff *skb, const u8 *data, u32 n)
{
	while (n && skb_shinfo(skb)->nr_frags < 5) {
		u32 part = skb_shinfo(skb)->nr_frags == 4 ? n : 1 + rnd(n);
		struct page *page = alloc_page(GFP_KERNEL);

		if (!page)
			return false;
		part = min_t(u32, part, PAGE_SIZE);
		memcpy(page_address(page), data, part);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, part, PAGE_SIZE);
		data += part;
		n -= part;
	}
	return !n;
}

static bool fuzz_list(struct sk_buff *skb, const u8 *data, u32 n)
{
	struct sk_buff **tail = &skb_shinfo(skb)->frag_list, *part;

	while (n) {
		u32 len = 1 + rnd(one_in(2) ? n : min_t(u32, n, T_MSS));

		part = alloc_skb(len, GFP_KERNEL);
		if (!part)
			return false;
		if (one_in(2)) {
			skb_put_data(part, data, len);
		} else if (!fuzz_pages(part, data, len)) {
			kfree_skb(part);
			return false;
		}
		*tail = part;
		tail = &part->next;
		skb->len += len;
		skb->data_len += len;
		skb->truesize += part->truesize;
		data += len;
		n -= len;
	}
	return true;
}

/* Make the frame a GSO packet, a valid one or not. */
static void fuzz_gso(struct sk_buff *skb)
{
	static const int types[] = {
		SKB_GSO_SCTP, SKB_GSO_SCTP, SKB_GSO_SCTP | SKB_GSO_DODGY,
		SKB_GSO_SCTP | SKB_GSO_PARTIAL, SKB_GSO_TCPV4, SKB_GSO_UDP_L4,
		SKB_GSO_FRAGLIST, 0,
	};
	struct skb_shared_info *info = skb_shinfo(skb);

	info->gso_size = one_in(2) ? T_MSS : one_in(8) ? rnd(65536) : 1 + rnd(2000);
	info->gso_type = types[rnd(ARRAY_SIZE(types))];
	info->gso_segs = one_in(4) ? rnd(65536) : DIV_ROUND_UP(skb->len, info->gso_size);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_headroom(skb) + ETH_HLEN;
	skb->csum_offset = offsetof(struct esp_wire, csum);
}

/* Make the next frame, in a random shape. */
static struct sk_buff *fuzz_skb(struct kunit *test)
{
	u32 n = fuzz_mutate(test, fuzz_valid()), linear;
	struct sk_buff *skb;
	bool ok = true;

	linear = one_in(2) ? n : one_in(2) ? min_t(u32, n, ESP_HLEN) : rnd(n + 1);
	skb = new_frame(fz.c.mac, linear);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_data(skb, fz.buf, linear);
	if (linear < n)
		ok = one_in(2) ? fuzz_pages(skb, fz.buf + linear, n - linear) :
				 fuzz_list(skb, fz.buf + linear, n - linear);
	if (!ok) {
		kfree_skb(skb);
		return NULL;
	}
	/* a frame whose checksum is left to be computed has a linear header */
	if (linear >= ESP_HLEN && (n > fx.dev->mtu || one_in(8)))
		fuzz_gso(skb);
	else if (one_in(8))
		skb->ip_summed = one_in(2) ? CHECKSUM_UNNECESSARY : CHECKSUM_COMPLETE;
	if (skb->ip_summed == CHECKSUM_COMPLETE)
		skb->csum = one_in(2) ? 0 : (__force __wsum)rnd(~0u);
	if (one_in(16))
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), rnd(4096));
	if (one_in(32))
		skb->data[ETH_ALEN] |= 1;	/* source is a group address */
	return skb;
}

/* Segment a copy of a GSO packet, as in front of a device that takes none. */
static void fuzz_segment(struct sk_buff *skb)
{
	struct sk_buff *copy = pskb_copy(skb, GFP_KERNEL), *segs;

	if (!copy)
		return;
	segs = take_apart(copy, one_in(2) ? NETIF_F_SG : 0);
	if (!IS_ERR_OR_NULL(segs))
		kfree_skb_list(segs);
	kfree_skb(copy);
}

static void fuzz_feed(struct kunit *test)
{
	struct sk_buff **kept = &fz.kept[rnd(T_FUZZ_KEPT)], *skb, *other = NULL;
	unsigned long before;

	skb = *kept && one_in(8) ? pskb_copy(*kept, GFP_KERNEL) : fuzz_skb(test);
	if (!skb)
		return;
	if (skb_is_gso(skb) && one_in(2))
		fuzz_segment(skb);
	if (one_in(16)) {
		kfree_skb(*kept);
		*kept = pskb_copy(skb, GFP_KERNEL);
	}
	/* another reader has a clone or a reference */
	if (one_in(8))
		other = one_in(2) ? skb_clone(skb, GFP_KERNEL) : skb_get(skb);
	before = refused();
	receive(skb);
	kfree_skb(other);
	if (refused() == before)
		fz.taken++;
	else
		fz.refused++;
}

/* Expect that all frames that left are valid, and return their number. */
static u32 fuzz_answers(struct kunit *test)
{
	struct sk_buff *skb;
	struct esp_frame f;
	u32 n, count = 0;

	while ((skb = skb_dequeue(&fx.out))) {
		const u8 *data = skb->data + ETH_HLEN;

		n = skb->len - ETH_HLEN;
		KUNIT_EXPECT_EQ_MSG(test, (int)esp_wire_parse(data, n, n, &f),
				    ESP_WIRE_OK, "seed %u", fz.seed);
		n = min_t(u32, n, f.hlen + f.len);
		KUNIT_EXPECT_EQ_MSG(test, csum_fold(csum_partial(data, n, 0)), 0,
				    "seed %u", fz.seed);
		if (f.opts & ESP_HAS(ESP_OPT_CRC))
			KUNIT_EXPECT_TRUE_MSG(test, crc_right(test, data, n),
					      "seed %u", fz.seed);
		kfree_skb(skb);
		count++;
	}
	return count;
}

/* Expect that the socket's counts agree with its queues. */
static void fuzz_consistent(struct kunit *test)
{
	struct esp_opt *esp = esp_sk(fz.sk);
	struct sk_buff *skb;
	u32 bytes = 0, mem = 0;

	lock_sock(fz.sk);
	skb_queue_walk(&fz.sk->sk_receive_queue, skb) {
		bytes += ESP_RX(skb)->f.len - ESP_RX(skb)->f.read;
		mem += skb->truesize;
	}
	KUNIT_EXPECT_EQ_MSG(test, esp->rcv_bytes, bytes, "seed %u", fz.seed);
	KUNIT_EXPECT_GE_MSG(test, (u32)atomic_read(&fz.sk->sk_rmem_alloc), mem,
			    "seed %u", fz.seed);
	KUNIT_EXPECT_FALSE_MSG(test, esp_after(esp->snd.una_seq, esp->snd.send_seq),
			       "seed %u", fz.seed);
	release_sock(fz.sk);
}

static void fuzz_end(struct kunit *test)
{
	struct t_conn *c = &fz.c;
	struct esp_frame f;
	u32 i;

	for (i = 0; i < T_FUZZ_KEPT; i++) {
		kfree_skb(fz.kept[i]);
		fz.kept[i] = NULL;
	}
	if (fz.sk && one_in(2)) {
		conn_frame(c, &f, ESP_RST | ESP_ACK, esp_sk(fz.sk)->recv_seq, 0);
		f.ack_seq = esp_sk(fz.sk)->snd.una_seq;
		feed_frame(test, c->mac, &f, NULL);
	}
	if (c->sock)
		sock_release(c->sock);
	if (fx.listener)
		sock_release(fx.listener);
	fx.listener = NULL;
	/* a change of the device's address ends sockets that linger */
	rtnl_lock();
	call_netdevice_notifiers(NETDEV_CHANGEADDR, fx.dev);
	rtnl_unlock();
	if (fz.sk) {
		EVENTUALLY(test, refcount_read(&fz.sk->sk_refcnt) == 1);
		sock_put(fz.sk);
	}
	EVENTUALLY(test, !READ_ONCE(fx.ed->link->npeers));
	skb_queue_purge(&fx.out);
}

/* Use the socket as a program does, at random. */
static void fuzz_user(struct t_conn *c)
{
	u8 buf[256];

	if (one_in(4))
		recv_bytes(c, buf, sizeof(buf));
	if (one_in(16))
		send_bytes(c, fz.buf, rnd(T_FUZZ_LEN), one_in(2) ? MSG_MORE : 0);
	if (one_in(200))
		kernel_sock_shutdown(c->sock, rnd(3));
}

static void fuzz(struct kunit *test, enum t_state state)
{
	u32 i, k, answers;

	fz.refused = 0;
	fz.taken = 0;
	for (k = 0; k < fuzz_runs; k++) {
		fz.seed = fuzz_seed + k;
		fz.state = state;
		fz.nr = k % 200;	/* connections of other peers may linger */
		prandom_seed_state(&fz.rnd, (u64)fz.seed << 8 | state);
		fuzz_socket(test);
		skb_queue_purge(&fx.out);
		answers = 0;
		for (i = 0; i < T_FUZZ_FRAMES; i++) {
			fuzz_feed(test);
			answers += fuzz_answers(test);
			if (fz.sk)
				fuzz_consistent(test);
			if (fz.c.sock)
				fuzz_user(&fz.c);
		}
		/* no amplification; a connection also sends data, and asks, on its own */
		KUNIT_EXPECT_LE_MSG(test, answers, (fz.sk ? 3 : 1) * T_FUZZ_FRAMES + 20,
				    "seed %u", fz.seed);
		fuzz_end(test);
	}
	/* enough frames were malformed, and enough were not */
	KUNIT_EXPECT_GT(test, fz.taken, fuzz_runs * T_FUZZ_FRAMES / 5);
	KUNIT_EXPECT_GT(test, fz.refused, fuzz_runs * T_FUZZ_FRAMES / 10);
	kunit_info(test, "%u frames taken, %u refused\n", fz.taken, fz.refused);
}

#define FUZZ_STATE(name, state)				\
static void fuzz__##name(struct kunit *test)		\
{							\
	fuzz(test, state);				\
}

FUZZ_STATE(listen, T_LISTEN)
FUZZ_STATE(syn_sent, T_SYN_SENT)
FUZZ_STATE(crossed, T_CROSSED)
FUZZ_STATE(echo, T_ECHO)
FUZZ_STATE(established, T_ESTABLISHED)
FUZZ_STATE(fin_wait1, T_FIN_WAIT1)
FUZZ_STATE(fin_wait2, T_FIN_WAIT2)
FUZZ_STATE(closing, T_CLOSING)
FUZZ_STATE(close_wait, T_CLOSE_WAIT)
FUZZ_STATE(last_ack, T_LAST_ACK)
FUZZ_STATE(time_wait, T_TIME_WAIT)

/*
 * Bits that flip.
 */

/* Build a data frame in fz.buf; return its length. */
static u32 flip_frame(struct t_conn *c)
{
	struct esp_wire *h = (struct esp_wire *)fz.buf;
	struct esp_frame f;

	conn_frame(c, &f, ESP_ACK | ESP_TXS | ESP_TXF, c->seq, 100);
	esp_wire_build(fz.buf, &f);
	prandom_bytes_state(&fz.rnd, fz.buf + ESP_HLEN, f.len);
	h->csum = (__force u16)csum_fold(csum_partial(h, ESP_HLEN + f.len, 0));
	return ESP_HLEN + f.len;
}

/* Flip each bit of a frame: the checksum or the checks of the header find each flip. */
static void flip__every_bit(struct kunit *test)
{
	unsigned long before = refused();
	struct t_conn c;
	u32 i, n;

	prandom_seed_state(&fz.rnd, 1);
	open_conn(test, &c, 0, 4);
	n = flip_frame(&c);
	for (i = 0; i < 8 * n; i++) {
		fz.buf[i / 8] ^= 1 << i % 8;
		feed_raw(test, c.mac, fz.buf, n);
		fz.buf[i / 8] ^= 1 << i % 8;
		KUNIT_EXPECT_EQ_MSG(test, refused(), before + i + 1, "bit %u", i);
	}
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq);
	silence(test);
	feed_raw(test, c.mac, fz.buf, n);
	KUNIT_EXPECT_EQ(test, c.esp->recv_seq, c.seq + 1);
	KUNIT_EXPECT_EQ(test, refused(), before + 8 * n);
	close_conn(test, &c);
}

/*
 * Flip two bits. A sum of 16-bit words misses two bits of one column that flip in opposite
 * directions, which is one pair in 32.
 */
static void flip__two_bits(struct kunit *test)
{
	u32 i, n, a, b, missed = 0, tries = 100000;
	struct t_conn c;

	prandom_seed_state(&fz.rnd, 2);
	new_conn(&c, 0);
	n = flip_frame(&c);
	for (i = 0; i < tries; i++) {
		a = rnd(8 * n);
		do {
			b = rnd(8 * n);
		} while (b == a);
		fz.buf[a / 8] ^= 1 << a % 8;
		fz.buf[b / 8] ^= 1 << b % 8;
		missed += !csum_fold(csum_partial(fz.buf, n, 0));
		fz.buf[a / 8] ^= 1 << a % 8;
		fz.buf[b / 8] ^= 1 << b % 8;
	}
	kunit_info(test, "%u of %u missed\n", missed, tries);
	KUNIT_EXPECT_GT(test, missed, tries / 40);
	KUNIT_EXPECT_LT(test, missed, tries / 25);
}

static struct kunit_case fuzz_cases[] = {
	KUNIT_CASE(fuzz__listen),
	KUNIT_CASE(fuzz__syn_sent),
	KUNIT_CASE(fuzz__crossed),
	KUNIT_CASE(fuzz__echo),
	KUNIT_CASE(fuzz__established),
	KUNIT_CASE(fuzz__fin_wait1),
	KUNIT_CASE(fuzz__fin_wait2),
	KUNIT_CASE(fuzz__closing),
	KUNIT_CASE(fuzz__close_wait),
	KUNIT_CASE(fuzz__last_ack),
	KUNIT_CASE(fuzz__time_wait),
	KUNIT_CASE(flip__every_bit),
	KUNIT_CASE(flip__two_bits),
	{}
};
