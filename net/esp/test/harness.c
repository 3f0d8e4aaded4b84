// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets against sockets: the parts that the tests of connect.c and of later files share.
 * Included by suite.c.
 *
 *   the test, a peer by hand                              the module
 *      feed() ------> skb ------> esp_rcv() ------> socket <-- kernel_sendmsg()
 *      next() <----- fx.out <---- fx_xmit() <----- esp_dev_xmit()
 *
 * The device takes frames and keeps them in fx.out. Timers are slow unless a test changes
 * them, so that no frame leaves unasked.
 */

#define T_PORT		4660
#define T_PEER_PORT	50000
#define T_MSS		1000		/* payload of a packet that the peer takes, bytes */
#define T_BUDGET	16		/* budget of the device's link, packets */
#define T_BACKLOG	5		/* backlog of the listener */
#define T_COOKIE	0xc0ffee01u	/* cookie of the first connection */
#define T_ANSWER_MS	30000		/* longest wait for a frame that must come */
#define T_NEVER_US	1000000000	/* a delay longer than any wait of a test */

static struct {
	struct net_device	*dev;
	struct esp_dev		*ed;
	struct sk_buff_head	out;
	struct esp_conf		saved;
	struct socket		*listener;
	bool			paged;	/* payload comes in pages */
	bool			crc;	/* peers want a CRC */
	bool			parts;	/* peers take packets in parts */
	bool			left;	/* peers know ESP_OPT_LEFT */
	bool			later;	/* peers know ESP_GRANT_LATER */
	bool			queued;	/* the next device has a queue */
	int			type;	/* SOCK_STREAM or SOCK_SEQPACKET */
	atomic_t		refuse;	/* frames that the device does not take */
	atomic_t		takes;	/* frames that it takes before it stops; 0: it doesn't */
	struct page		*page;	/* pages for all payload; NULL: new ones for each frame */
	unsigned int		at;	/* offset in @page of the next payload */
	long			charged;	/* pages charged to all sockets before the test */
} fx;

/* A connection: the socket, and the peer by hand. */
struct t_conn {
	struct socket	*sock;
	struct esp_opt	*esp;
	u8		mac[ETH_ALEN];
	u16		port;		/* port of the peer */
	u32		cookie;		/* cookie of the peer, in frames from the socket */
	u32		their_cookie;	/* cookie of the socket, in frames to it */
	u32		seq;		/* number of the next packet to the socket */
	u32		ack;		/* number of the next packet expected from the socket */
	u32		ts;		/* last ts_val from the socket */
	u16		advice;		/* first burst that the socket advised */
	u16		grant;		/* grant in each data packet to the socket */
	bool		wish;		/* the peer wants a CRC */
	bool		parts;		/* the peer takes packets in parts */
	bool		left;		/* the peer knows ESP_OPT_LEFT */
	bool		later;		/* the peer knows ESP_GRANT_LATER */
	bool		crc;		/* both sides agreed on a CRC */
	bool		untimed;	/* ts_ecr is no valid sample, so that the budget stays */
};

/*
 * The device.
 */

static netdev_tx_t fx_xmit(struct sk_buff *skb, struct net_device *dev)
{
	if (skb->protocol == esp_ethertype && atomic_dec_if_positive(&fx.refuse) >= 0)
		return NETDEV_TX_BUSY;
	if (skb->protocol != esp_ethertype || skb_linearize(skb)) {
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	skb_orphan(skb);
	skb_queue_tail(&fx.out, skb);
	if (!atomic_dec_if_positive(&fx.takes))
		netif_stop_queue(dev);
	return NETDEV_TX_OK;
}

static const struct net_device_ops fx_ops = {
	.ndo_start_xmit		= fx_xmit,
	.ndo_set_mac_address	= eth_mac_addr,
};

static void fx_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &fx_ops;
	if (!fx.queued)
		dev->priv_flags |= IFF_NO_QUEUE;
	dev->needs_free_netdev = false;
	eth_hw_addr_random(dev);
}

static struct esp_conf *conf(void)
{
	return &esp_net(&init_net)->conf;
}

static struct esp_ackq *ackq(void)
{
	return &fx.ed->link->ackq;
}

static unsigned long mib(int item)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(esp_net(&init_net)->mib, cpu)->mibs[item];
	return sum;
}

/* Pages charged to all sockets, including those that a CPU has yet to add to the sum. */
static long charged(void)
{
	long n = atomic_long_read(&esp_memory_allocated);
	int cpu;

	for_each_possible_cpu(cpu)
		n += *per_cpu_ptr(esp_prot.per_cpu_fw_alloc, cpu);
	return n;
}

static int packet_init(struct kunit *test)
{
	int err;

	fx.paged = false;
	fx.crc = false;
	fx.parts = false;
	fx.type = SOCK_STREAM;
	fx.left = false;
	fx.later = false;
	atomic_set(&fx.refuse, 0);
	atomic_set(&fx.takes, 0);
	fx.page = NULL;
	fx.at = 0;
	fx.charged = charged();
	fx.saved = *conf();
	conf()->rto_min_us = T_NEVER_US;
	conf()->rrq_min_us = T_NEVER_US;
	conf()->rto_max_ms = 60000;
	conf()->rrq_max_ms = 60000;
	conf()->ack_delay_us = T_NEVER_US;
	conf()->q_min = T_BUDGET;
	conf()->q_max = T_BUDGET;
	skb_queue_head_init(&fx.out);
	fx.listener = NULL;
	fx.ed = NULL;

	fx.dev = alloc_netdev(0, "esptest%d", NET_NAME_UNKNOWN, fx_setup);
	KUNIT_ASSERT_NOT_NULL(test, fx.dev);
	err = register_netdev(fx.dev);
	if (err) {
		free_netdev(fx.dev);
		fx.dev = NULL;
	}
	KUNIT_ASSERT_EQ(test, err, 0);
	rtnl_lock();
	err = dev_open(fx.dev, NULL);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, err, 0);
	fx.ed = esp_dev_get(&init_net, fx.dev->ifindex);
	KUNIT_ASSERT_NOT_NULL(test, fx.ed);
	WRITE_ONCE(fx.ed->enabled, 1);
	/* no granted packet is overdue if a test stands still for less than four of these */
	ackq()->budget->rtt.v = ESP_STALE_NS;
	return 0;
}

/* Let the device leave. Its entry stays, because the test has a reference to it. */
static void lose_device(void)
{
	unregister_netdev(fx.dev);
	free_netdev(fx.dev);
	fx.dev = NULL;
}

static void packet_exit(struct kunit *test)
{
	if (fx.listener)
		sock_release(fx.listener);
	if (fx.ed) {
		int i;

		/* close() doesn't wait for the last ACK and TIME_WAIT: wait for them here */
		for (i = 0; i < 500 && (READ_ONCE(fx.ed->link->npeers) ||
					charged() != fx.charged); i++)
			usleep_range(1000, 2000);
		KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->outstanding), 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&ackq()->esp_recv_count), 0);
		KUNIT_EXPECT_EQ(test, ackq()->qlen, 0u);
		KUNIT_EXPECT_EQ(test, charged(), fx.charged);
		esp_dev_put(fx.ed);
	}
	if (fx.dev)
		lose_device();
	skb_queue_purge(&fx.out);
	*conf() = fx.saved;
}

/*
 * Frames to the module.
 */

static struct sk_buff *new_frame(const u8 *src, unsigned int len)
{
	struct sk_buff *skb = alloc_skb(ETH_HLEN + max(len, 46u) + 64, gfp_any());
	struct ethhdr *eth;

	if (!skb)
		return NULL;
	eth = skb_put(skb, ETH_HLEN);
	ether_addr_copy(eth->h_dest, fx.dev->dev_addr);
	ether_addr_copy(eth->h_source, src);
	eth->h_proto = esp_ethertype;
	return skb;
}

static void receive(struct sk_buff *skb)
{
	skb->protocol = eth_type_trans(skb, fx.dev);
	skb_reset_network_header(skb);
	local_bh_disable();
	rcu_read_lock();
	esp_rcv(skb, fx.dev, NULL, fx.dev);
	rcu_read_unlock();
	local_bh_enable();
}

/* Feed a frame of @n bytes after the Ethernet header, unchanged. */
static void feed_raw(struct kunit *test, const u8 *src, const void *data,
		     unsigned int n)
{
	struct sk_buff *skb = new_frame(src, n);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_data(skb, data, n);
	receive(skb);
}

/*
 * Move the payload into a page. Such frames come from a device that splits header and
 * payload and, with @fx.page, from the segmentation of a GSO packet.
 */
static void page_payload(struct kunit *test, struct sk_buff *skb,
			 const u8 *payload, unsigned int len)
{
	struct page *page = fx.page;

	if (page)
		get_page(page);
	else
		page = alloc_pages(GFP_KERNEL | __GFP_COMP, get_order(len));
	KUNIT_ASSERT_NOT_NULL(test, page);
	memcpy(page_address(page) + fx.at, payload, len);
	skb_trim(skb, payload - skb->data);
	skb_add_rx_frag(skb, 0, page, fx.at, len, len);
	if (fx.page)
		fx.at += len;
}

/* CRC32c, bit by bit. */
static u32 slow_crc32c(const u8 *data, u32 n)
{
	u32 crc = ~0, i;

	while (n--) {
		crc ^= *data++;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* CRC of a frame of @n bytes; its value and the checksum count as 0. */
static u32 crc_of(struct kunit *test, const u8 *frame, u32 n)
{
	u8 *copy = kmemdup(frame, n, GFP_KERNEL);
	u32 crc;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memset(copy + offsetof(struct esp_wire, csum), 0, 2);
	memset(copy + ESP_CRC_AT, 0, 4);
	crc = slow_crc32c(copy, n);
	kfree(copy);
	return crc;
}

static void put_crc(struct kunit *test, u8 *frame, u32 n)
{
	__be32 crc = htonl(crc_of(test, frame, n));

	memcpy(frame + ESP_CRC_AT, &crc, sizeof(crc));
}

static bool crc_right(struct kunit *test, const u8 *frame, u32 n)
{
	__be32 crc = htonl(crc_of(test, frame, n));

	return !memcmp(frame + ESP_CRC_AT, &crc, sizeof(crc));
}

/* Make the frame @f. Without @payload each byte of it is the low byte of the packet's number. */
static struct sk_buff *make_frame(struct kunit *test, const u8 *src, struct esp_frame *f,
				  const void *payload)
{
	unsigned int hlen = esp_wire_hlen(f), n = hlen + f->len;
	struct sk_buff *skb = new_frame(src, n);
	u8 *data;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	data = skb_put_zero(skb, max(n, 46u));	/* padded */
	esp_wire_build(data, f);
	if (payload)
		memcpy(data + hlen, payload, f->len);
	else
		memset(data + hlen, f->pkt_seq, f->len);
	if (f->opts & ESP_HAS(ESP_OPT_CRC))
		put_crc(test, data, n);
	((struct esp_wire *)data)->csum =
		(__force u16)csum_fold(csum_partial(data, n, 0));
	if (fx.paged && f->len)
		page_payload(test, skb, data + hlen, f->len);
	return skb;
}

static void feed_frame(struct kunit *test, const u8 *src, struct esp_frame *f,
		       const void *payload)
{
	receive(make_frame(test, src, f, payload));
}

static void conn_frame(struct t_conn *c, struct esp_frame *f, u8 flags, u32 seq,
		       u16 len)
{
	memset(f, 0, sizeof(*f));
	f->version = ESP_VERSION;
	f->flags = flags;
	f->sport = htons(c->port);
	f->dport = htons(T_PORT);
	f->cookie = c->their_cookie;
	f->pkt_seq = seq;
	f->ts_val = (u32)esp_now();
	f->len = len;
	if (c->crc && !(flags & (ESP_SYN | ESP_RST)))
		f->opts = ESP_HAS(ESP_OPT_CRC);
	if (flags & ESP_ACK) {
		f->ack_seq = c->ack;
		f->ts_ecr = c->ts - c->untimed * ESP_RTT_MAX_US;
	}
}

static void feed(struct kunit *test, struct t_conn *c, u8 flags, u32 seq, u16 len)
{
	struct esp_frame f;

	conn_frame(c, &f, flags | ESP_ACK, seq, len);
	f.grant = c->grant;
	feed_frame(test, c->mac, &f, NULL);
}

/* Feed an ACK of all packets before @c->ack, with a grant of @grant packets. */
static void feed_ack(struct kunit *test, struct t_conn *c, u16 grant)
{
	struct esp_frame f;

	conn_frame(c, &f, ESP_ACK, c->seq, 0);
	f.grant = grant;
	feed_frame(test, c->mac, &f, NULL);
}

/*
 * Frames of the module.
 */

/* Return the next frame that leaves within @ms, or NULL. */
static struct sk_buff *next_skb(unsigned int ms)
{
	u64 end = esp_now() + 1000ull * ms;
	struct sk_buff *skb;

	while (!(skb = skb_dequeue(&fx.out)) && esp_now() < end)
		usleep_range(50, 200);
	return skb;
}

/* Read a frame, and check what must hold for every frame. */
static void read_frame(struct kunit *test, struct sk_buff *skb,
		       struct esp_frame *f, u8 *payload)
{
	unsigned int n = skb->len - ETH_HLEN;
	const u8 *data = skb->data + ETH_HLEN;

	KUNIT_ASSERT_EQ(test, (int)esp_wire_parse(data, n, n, f), ESP_WIRE_OK);
	n = f->hlen + f->len;
	KUNIT_EXPECT_EQ(test, csum_fold(csum_partial(data, n, 0)), 0);
	if (f->opts & ESP_HAS(ESP_OPT_CRC))
		KUNIT_EXPECT_TRUE(test, crc_right(test, data, n));
	KUNIT_EXPECT_TRUE(test, ether_addr_equal(eth_hdr(skb)->h_source,
						 fx.dev->dev_addr));
	KUNIT_EXPECT_EQ(test, f->sport, htons(T_PORT));
	if (payload)
		memcpy(payload, data + f->hlen, min_t(u32, f->len, T_MSS));
}

/* Read the next frame with data, of any connection. */
static void next_with_data(struct kunit *test, struct esp_frame *f)
{
	struct sk_buff *skb;

	do {
		skb = next_skb(T_ANSWER_MS);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		read_frame(test, skb, f, NULL);
		kfree_skb(skb);
	} while (!f->len);
}

/* Expect a frame with these flags, and read it. */
static void next(struct kunit *test, struct t_conn *c, u8 flags,
		 struct esp_frame *f)
{
	struct sk_buff *skb = next_skb(T_ANSWER_MS);

	KUNIT_ASSERT_NOT_NULL_MSG(test, skb, "no frame, expected flags %#x",
				  flags);
	read_frame(test, skb, f, NULL);
	KUNIT_EXPECT_TRUE(test, ether_addr_equal(eth_hdr(skb)->h_dest, c->mac));
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, f->flags, flags);
	KUNIT_EXPECT_EQ(test, f->dport, htons(c->port));
	KUNIT_EXPECT_EQ(test, f->cookie, c->cookie);
	KUNIT_EXPECT_EQ(test, f->opts & ESP_HAS(ESP_OPT_CRC),
			c->crc && !(flags & (ESP_SYN | ESP_RST)) ? ESP_HAS(ESP_OPT_CRC) : 0);
	c->ts = f->ts_val;
}

/* Expect that no frame leaves within 3 ms. */
static void silence(struct kunit *test)
{
	struct sk_buff *skb = next_skb(3);
	struct esp_frame f;

	KUNIT_EXPECT_NULL(test, skb);
	if (!skb)
		return;
	read_frame(test, skb, &f, NULL);
	kunit_info(test, "flags %#x pkt_seq %u ack_seq %u grant %u len %u\n",
		   f.flags, f.pkt_seq, f.ack_seq, f.grant, f.len);
	kfree_skb(skb);
}

/*
 * Sockets and connections.
 */

static struct socket *new_socket(struct kunit *test, int type)
{
	struct sockaddr_esp a = {
		.sesp_family	= esp_family,
		.sesp_port	= htons(T_PORT),
		.sesp_ifindex	= fx.dev->ifindex,
		.sesp_halen	= ETH_ALEN,
	};
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, esp_family, type, 0,
					       &sock), 0);
	/* a connection that an earlier test did not accept may still linger */
	sock->sk->sk_reuse = SK_CAN_REUSE;
	KUNIT_ASSERT_EQ(test, kernel_bind(sock, (struct sockaddr_unsized *)&a,
					  sizeof(a)), 0);
	return sock;
}

static void start_listener(struct kunit *test)
{
	if (fx.listener)
		return;
	fx.listener = new_socket(test, fx.type);
	KUNIT_ASSERT_EQ(test, kernel_listen(fx.listener, T_BACKLOG), 0);
}

static void new_conn(struct t_conn *c, int nr)
{
	static const u8 mac[ETH_ALEN] = { 2, 0, 0, 0, 0, 0x10 };
	static u32 cookie = T_COOKIE;	/* a listener takes the same one only once */

	memset(c, 0, sizeof(*c));
	ether_addr_copy(c->mac, mac);
	c->mac[5] += nr;
	c->port = T_PEER_PORT;
	c->cookie = cookie++;
	c->seq = esp_isn(c->cookie) + 1;
	c->wish = fx.crc;
	c->parts = fx.parts;
	c->left = fx.left;
	c->later = fx.later;
}

/* Add the options of a handshake's frame. */
static void add_hello(struct t_conn *c, struct esp_frame *f)
{
	f->opts &= ESP_HAS(ESP_OPT_CRC);
	if (!f->opts)
		f->opts = ESP_HAS(ESP_OPT_TYPE);
	f->opts |= ESP_HAS(ESP_OPT_COOKIE) | ESP_HAS(ESP_OPT_MSS) | ESP_HAS(ESP_OPT_BURST);
	f->features = (c->wish ? ESP_FEATURE_CRC32C : 0) | (c->parts ? ESP_FEATURE_PARTS : 0) |
		      (c->left ? ESP_FEATURE_LEFT : 0) | (c->later ? ESP_FEATURE_LATER : 0);
	if (f->flags & ESP_SYN ? f->features : (f->features & ~ESP_FEATURE_CRC32C) && !c->crc)
		f->opts |= ESP_HAS(ESP_OPT_FEATURES);
	f->peer_cookie = c->cookie;
	f->mss = T_MSS;
	f->type = fx.type;
	f->to_ack = 8;
}

/* Make a SYN or SYN|ACK of the peer. */
static void hello_frame(struct t_conn *c, struct esp_frame *f, u8 flags)
{
	conn_frame(c, f, flags, esp_isn(c->cookie), 0);
	add_hello(c, f);
}

static void feed_syn(struct kunit *test, struct t_conn *c)
{
	struct esp_frame f;

	hello_frame(c, &f, ESP_SYN);
	f.cookie = 0;
	feed_frame(test, c->mac, &f, NULL);
}

static void echo_frame(struct t_conn *c, struct esp_frame *f, u16 grant)
{
	conn_frame(c, f, ESP_ACK, c->seq, 0);
	add_hello(c, f);
	f->opts |= ESP_HAS(ESP_OPT_ADVICE);
	f->advice = c->advice;
	f->grant = grant;
}

static void syn(struct kunit *test, struct t_conn *c)
{
	struct esp_frame f;

	feed_syn(test, c);
	next(test, c, ESP_SYN | ESP_ACK, &f);
	c->their_cookie = f.peer_cookie;
	c->ack = esp_isn(f.peer_cookie) + 1;
	c->advice = f.grant;
	c->crc = f.features & ESP_FEATURE_CRC32C;
}

/* Start a listener, which answers the SYN of a connection's peer. */
static void begin_handshake(struct kunit *test, struct t_conn *c)
{
	start_listener(test);
	new_conn(c, 0);
	syn(test, c);
}

/* Take the connection that an echo has made, and whose ACK @f leaves. */
static void take_conn(struct kunit *test, struct t_conn *c, struct esp_frame *f)
{
	next(test, c, ESP_ACK, f);
	KUNIT_ASSERT_EQ(test, kernel_accept(fx.listener, &c->sock, O_NONBLOCK), 0);
	c->esp = esp_sk(c->sock->sk);
}

/* Feed the peer's echo @f, which makes the connection, and accept it. */
static void accept_conn(struct kunit *test, struct t_conn *c, struct esp_frame *f)
{
	feed_frame(test, c->mac, f, NULL);
	take_conn(test, c, f);
	c->esp->opened_at = 0;	/* what the handshake told counts, however slow the test is */
}

/* Connect peer @nr to the listener. The peer advises a first burst of @advice packets. */
static void open_conn(struct kunit *test, struct t_conn *c, int nr, u16 advice)
{
	struct esp_frame f;

	start_listener(test);
	new_conn(c, nr);
	syn(test, c);
	echo_frame(c, &f, advice);
	c->grant = advice;
	accept_conn(test, c, &f);
	silence(test);
}

/* End the connection by an RST, so that nothing of it stays. */
static void close_conn(struct kunit *test, struct t_conn *c)
{
	struct esp_frame f;

	conn_frame(c, &f, ESP_RST | ESP_ACK, c->esp->recv_seq, 0);
	f.ack_seq = c->esp->snd.una_seq;
	feed_frame(test, c->mac, &f, NULL);
	sock_release(c->sock);
	c->sock = NULL;
	skb_queue_purge(&fx.out);
}

/* Let the device take GSO packets, or not. */
static void takes_super_packets(bool on)
{
	netdev_features_t f = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_GSO_SCTP;

	if (on)
		fx.dev->features |= f;
	else
		fx.dev->features &= ~f;
}

static int send_bytes(struct t_conn *c, const void *data, size_t len, int flags)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | flags };
	struct kvec vec = { .iov_base = (void *)data, .iov_len = len };

	return kernel_sendmsg(c->sock, &msg, &vec, 1, len);
}

static int recv_bytes(struct t_conn *c, void *data, size_t len)
{
	struct msghdr msg = {};
	struct kvec vec = { .iov_base = data, .iov_len = len };

	return kernel_recvmsg(c->sock, &msg, &vec, 1, len, MSG_DONTWAIT);
}

/* Read @n packets of @len bytes whose numbers start at @seq. */
static void expect_data(struct kunit *test, struct t_conn *c, u32 seq,
			unsigned int n, unsigned int len)
{
	u8 *buf = kunit_kzalloc(test, n * len + 1, GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_EQ(test, recv_bytes(c, buf, n * len + 1), (int)(n * len));
	for (i = 0; i < n * len; i++)
		if (buf[i] != (u8)(seq + i / len))
			break;
	KUNIT_EXPECT_EQ(test, i, n * len);
}

/* Expect that @cond becomes true within a minute, because of a timer. */
#define EVENTUALLY(test, cond) do {					\
	u64 end_ = esp_now() + 60000000;					\
	bool done_;							\
									\
	while (!(done_ = (cond)) && esp_now() < end_)			\
		usleep_range(500, 1000);				\
	KUNIT_EXPECT_TRUE_MSG(test, done_, "%s", #cond);		\
} while (0)
