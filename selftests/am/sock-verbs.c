// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -DPLUGINS='"."' -rdynamic -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
// SOURCES: tools/am/wire.c tools/am/crc.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/log.c tools/am/name.c tools/am/transport.c tools/am/mem.c tools/am/socket.c tools/am/stream.c tools/am/plugin.c
// LIBS: -libverbs -ldl
/*
 * Active Messages (am-tests.c) over RDMA verbs, between the two addresses of $AM_VERBS, which
 * net-verbs.sh gives to soft RoCE; $LD_LIBRARY_PATH has libam-verbs.so.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <netinet/udp.h>
#include "am-tests.c"

FIXTURE_VARIANT_ADD(am, verbs)
{
	.transport = "verbs",
};

static char ip[2][INET_ADDRSTRLEN];

static void place(int i, struct am_options *o)
{
	static char address[2][32];

	if (!ip[0][0] && sscanf(getenv("AM_VERBS"), "%15s %15s", ip[0], ip[1]) != 2)
		abort();
	snprintf(address[i], sizeof(address[i]), "verbs:%s", ip[i]);
	o->address = address[i];
}

static void stand(int i)
{
	(void)i;
}

static int try(const char *address)
{
	struct am_options o = { .address = address };
	int error;

	errno = 0;
	error = AM_AllocateEndpointWith(bundle, &o, &ep[SERVER], &name[SERVER]);
	if (!error)
		AM_FreeEndpoint(ep[SERVER]);
	return error;
}

/* Each error tells what is wrong. */
TEST_F(am, bad_address)
{
	char text[AM_NAME_LEN];
	en_t n;

	EXPECT_EQ(AM_ERR_BAD_ARG, try("verbs:"));
	EXPECT_EQ(AM_ERR_BAD_ARG, try("verbs:10.9.0"));
	EXPECT_EQ(AM_ERR_BAD_ARG, try("verbs:10.9.0.1:"));
	EXPECT_EQ(AM_ERR_BAD_ARG, try("verbs:10.9.0.1:65536"));
	EXPECT_EQ(AM_ERR_BAD_ARG, try("verbs:%v0"));
	/* An address of no RDMA device, of no device here, and none. */
	EXPECT_EQ(AM_ERR_SYSTEM, try("verbs:127.0.0.1"));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(AM_ERR_SYSTEM, try("verbs:10.99.0.1"));
	EXPECT_EQ(EADDRNOTAVAIL, errno);
	EXPECT_EQ(AM_ERR_SYSTEM, try("verbs:0.0.0.0"));
	EXPECT_EQ(ENODEV, errno);
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	ASSERT_EQ(AM_OK, AM_NameToString(&name[CALLER], text, sizeof(text)));
	EXPECT_EQ(AM_ERR_SYSTEM, try(text));
	EXPECT_EQ(EADDRINUSE, errno);
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_NameFromString("verbs:10.9.0.1", &n));
	/* A name of another transport. */
	ASSERT_EQ(AM_OK, AM_NameFromString("udp:10.9.0.1:4000", &n));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Map(ep[CALLER], 0, n, 0));
}

/* Frames are as large as the path takes, and none is larger. */
TEST_F(am, longest_frame)
{
	static uint8_t data[8192];
	struct transport *t;

	self->o.timeout_us = 1000000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	t = &ep[CALLER]->transport;
	EXPECT_EQ(1024, t->mtu);
	EXPECT_EQ(-1, t->ops->send(t, &name[SERVER], data, t->mtu + 1));
	EXPECT_EQ(-1, t->ops->send(t, &name[SERVER], data, sizeof(data)));
	ASSERT_EQ(0, t->ops->send(t, &name[SERVER], data, t->mtu));
	EXPECT_TRUE(REACHED(stats(SERVER).bad_length == 1));
	/* A frame may have no bytes at all. */
	ASSERT_EQ(0, t->ops->send(t, &name[SERVER], data, 0));
	EXPECT_TRUE(REACHED(stats(SERVER).bad_length == 2));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered));
	EXPECT_EQ(0, stats(CALLER).resent);
}

/*
 * More frames come than there is room for, while the server doesn't poll: they are lost, and all
 * goes on.
 */
TEST_F(am, overrun)
{
	struct transport *t;
	unsigned int i, n = 0;

	self->o.credits = 1;
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	t = &ep[CALLER]->transport;
	for (i = 0; i < 100000 && n < 300; i++) {
		n += !t->ops->send(t, &name[SERVER], "?", 1);
		usleep(10);
	}
	ASSERT_EQ(300, n);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	EXPECT_LT(0, stats(SERVER).bad_length);
	EXPECT_GT(300, stats(SERVER).bad_length);
	EXPECT_EQ(0, stats(SERVER).receive_errors);
}

/* There are more peers than places, and none of these answers: the other peer is none the worse. */
TEST_F(am, full_table)
{
	struct transport *t;
	char text[AM_NAME_LEN];
	int i, round;
	en_t n;

	self->o.credits = 1;
	self->o.peers = 1;
	ASSERT_EQ(AM_OK, open_both(self->o));
	t = &ep[CALLER]->transport;
	for (round = 1; round <= 3; round++) {
		for (i = 0; i < 100; i++) {
			snprintf(text, sizeof(text), "verbs:%s:%d", ip[SERVER], 1 + i);
			ASSERT_EQ(AM_OK, AM_NameFromString(text, &n));
			ASSERT_EQ(0, t->ops->send(t, &n, "?", 1));
			/* One frame waits for the answer, no more. */
			ASSERT_EQ(1, t->ops->send(t, &n, "?", 1));
		}
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
		EXPECT_TRUE(REACHED(answered == round));
	}
	EXPECT_EQ(3, ran);
}

/*
 * Far more peers don't answer than there are buffers: other peers get theirs, and the silent ones
 * are forgotten in the end.
 */
TEST_F(am, silent_peers)
{
	struct transport *t;
	char text[AM_NAME_LEN];
	uint64_t end;
	en_t n;
	int i;

	self->o.credits = 1;
	self->o.peers = 2000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	t = &ep[CALLER]->transport;
	for (i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), "verbs:%s:%d", ip[SERVER], 1 + i);
		ASSERT_EQ(AM_OK, AM_NameFromString(text, &n));
		ASSERT_EQ(0, t->ops->send(t, &n, "?", 1));
	}
	ASSERT_EQ(1, t->ops->send(t, &n, "?", 1));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	end = t->ops->now(t) + 1500000;
	EXPECT_TRUE(REACHED(t->ops->now(t) > end));
	EXPECT_EQ(0, t->ops->send(t, &n, "?", 1));
}

/* An endpoint that was opened again has another queue pair: a peer that knows the old one asks. */
TEST_F(am, other_queue_pair)
{
	struct am_options o = self->o;
	char text[AM_NAME_LEN];

	o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(o));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	ASSERT_EQ(AM_OK, AM_NameToString(&name[SERVER], text, sizeof(text)));
	AM_FreeEndpoint(ep[SERVER]);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	o.address = text;
	ASSERT_EQ(AM_OK, AM_AllocateEndpointWith(bundle, &o, &ep[SERVER], &name[SERVER]));
	set_handlers(SERVER);
	/* The server has forgotten the connection. */
	EXPECT_STATE(CALLER, sent(), ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	EXPECT_EQ(AM_CAUSE_RESTARTED, state_of(CALLER, sent()).cause);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 2));
}

/* The device goes down with a frame in hand, and comes up again. */
TEST_F(am, link_down)
{
	self->o.retries = 1000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(0, system(getenv("AM_DOWN")));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(stats(CALLER).resent > 3));
	EXPECT_EQ(0, answered);
	ASSERT_EQ(0, system(getenv("AM_UP")));
	EXPECT_TRUE(REACHED(answered == 1));
	EXPECT_EQ(1, ran);
	EXPECT_EQ(0, stats(CALLER).receive_errors);
}

/*
 * The plugin finds this function instead of the library's. With device_fails it changes no state.
 */
static bool device_fails;

int ibv_modify_qp(struct ibv_qp *q, struct ibv_qp_attr *a, int mask)
{
	static int (*real)(struct ibv_qp *q, struct ibv_qp_attr *a, int mask);

	if (device_fails)
		return EIO;
	if (!real)
		real = dlsym(RTLD_NEXT, "ibv_modify_qp");
	return real(q, a, mask);
}

/*
 * A queue pair has failed, and can't be reset: the call that waits returns the error, once, and
 * requests end.
 */
TEST_F(am, device_gone)
{
	int error, why, i;
	am_handle_t h;

	ASSERT_EQ(AM_OK, open_both(self->o));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	device_fails = true;
	ASSERT_EQ(0, system(getenv("AM_DOWN")));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	h = sent();
	error = AM_OK;
	for (i = 0; i < FOREVER && !error; i++) {
		error = AM_WaitSema(bundle);
		why = errno;
	}
	EXPECT_EQ(AM_ERR_SYSTEM, error);
	EXPECT_EQ(ENETDOWN, why);
	EXPECT_EQ(1, stats(CALLER).receive_errors);
	EXPECT_STATE(CALLER, h, ABANDONED, AM_NOT_ACKED, AM_REQUEST_RTX_EXCEEDED);
	EXPECT_EQ(AM_CAUSE_NETWORK, state_of(CALLER, h).cause);
	EXPECT_LT(0, stats(CALLER).send_errors);
	EXPECT_EQ(1, stats(CALLER).receive_errors);
	/* Other endpoints at the device don't notice, and one that is opened again is as new. */
	AM_FreeEndpoint(ep[CALLER]);
	device_fails = false;
	ASSERT_EQ(0, system(getenv("AM_UP")));
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	do
		error = AM_Connect(ep[CALLER], 0, 1);
	while (error == AM_ERR_NETWORK);
	ASSERT_EQ(AM_OK, error);
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 2));
}

/* When an endpoint closes, requests that the device has yet to send still leave. */
TEST_F(am, close_in_flight)
{
	unsigned int i, round;

	for (round = 1; round <= 20; round++) {
		ASSERT_EQ(AM_OK, open_both(self->o));
		ran = 0;
		for (i = 0; i < 16; i++)
			ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
		EXPECT_EQ(AM_OK, AM_FreeEndpoint(ep[CALLER]));
		EXPECT_TRUE(REACHED(ran == 16));
		EXPECT_EQ(AM_OK, AM_FreeEndpoint(ep[SERVER]));
	}
	/* An endpoint closes with a frame for a peer that doesn't answer. */
	ASSERT_EQ(AM_OK, open_both(self->o));
	AM_FreeEndpoint(ep[SERVER]);
	ASSERT_EQ(AM_OK, AM_Unmap(ep[CALLER], 0));
	ASSERT_EQ(AM_OK, AM_NameFromString("verbs:10.9.0.2:9", &name[SERVER]));
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	AM_Poll(bundle);
}

/*
 * Destroy a queue pair as cards do: frames that it has not sent yet are lost. Soft RoCE would wait
 * until all are sent.
 */
int ibv_destroy_qp(struct ibv_qp *q)
{
	static int (*real)(struct ibv_qp *q);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	if (!real)
		real = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	ibv_modify_qp(q, &a, IBV_QP_STATE);
	return real(q);
}

/*
 * Requests leave, too, if the device waits, because 65 of its frames are in the queue before the
 * cable.
 */
TEST_F(am, close_slow)
{
	unsigned int i;

	self->o.credits = 128;
	self->o.pool = 256;
	self->o.timeout_us = 10000000;
	self->o.min_timeout_us = 10000000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(0, system(getenv("AM_SLOW")));
	for (i = 0; i < 96; i++)
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_EQ(0, stats(CALLER).resent);
	EXPECT_EQ(AM_OK, AM_FreeEndpoint(ep[CALLER]));
	EXPECT_TRUE(REACHED(ran == 96));
	EXPECT_EQ(0, system(getenv("AM_FAST")));
}

/*
 * An endpoint that has frames with each poll answers questions, too: with one poll of 64 at least.
 */
TEST_F(am, asked_under_load)
{
	uint32_t talk[4] = { htonl(0x414d5131), 77 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), i, polls = 0, idle = 0;
	struct transport *t;
	bool told = false;
	uint64_t before;

	self->o.credits = 1;
	ASSERT_EQ(AM_OK, open_both(self->o));
	t = &ep[CALLER]->transport;
	/* A poll takes two frames, so there are always some. */
	for (i = 0; i < 40; i++)
		t->ops->send(t, &name[SERVER], "?", 1);
	usleep(100000);
	ASSERT_EQ(16, sendto(fd, talk, sizeof(talk), 0, (struct sockaddr *)name[SERVER].address,
			     sizeof(struct sockaddr_in)));
	while (!told && polls <= 64) {
		for (i = 0; i < 2; i++)
			t->ops->send(t, &name[SERVER], "?", 1);
		usleep(500);
		before = stats(SERVER).frames_received;
		input(ep[SERVER]);
		polls++;
		idle += stats(SERVER).frames_received == before;
		told = recv(fd, talk, sizeof(talk), 0) == sizeof(talk);
	}
	close(fd);
	TH_LOG("told: %d; %d polls, %d without frames", told, polls, idle);
	EXPECT_EQ(0, idle);
	EXPECT_TRUE(told);
	EXPECT_EQ(htonl(0x414d4131), talk[0]);
}

/* The name server of $AM_NAMED is a program on host 2; no host reaches itself by the cable. */
TEST_F(am, found_by_name)
{
	en_t named, found;

	ASSERT_EQ(AM_OK, AM_NameFromString(getenv("AM_NAMED"), &named));
	ASSERT_EQ(AM_OK, open_end(CALLER, self->o));
	ASSERT_EQ(AM_OK, open_end(SERVER, self->o));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Register(ep[CALLER], &named, "matrix/3", 5, 0, 20000));
	EXPECT_EQ(AM_ERR_NAME_TAKEN, AM_Register(ep[CALLER], &named, "matrix/3", 6, 0, 20000));
	ASSERT_EQ(AM_OK, AM_Lookup(ep[CALLER], &named, "matrix/3", &found, 20000));
	EXPECT_TRUE(name_equal(&found, &name[CALLER]));
	ASSERT_EQ(AM_OK, AM_Map(ep[SERVER], 0, found, 0));
	ASSERT_EQ(AM_OK, AM_Request0(ep[SERVER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	EXPECT_EQ(1, stats(CALLER).handlers_run);
	EXPECT_EQ(AM_OK, AM_Unregister(ep[CALLER], &named, "matrix/3", 5, 20000));
	EXPECT_EQ(AM_ERR_NAME_UNKNOWN, AM_Lookup(ep[CALLER], &named, "matrix/3", &found, 20000));
}

static void between_lives(void)
{
}

#include "am-log-lives.c"

/* Senders that are no endpoints */

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t buffer[128];

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid g = { .raw = { [10] = 0xff, [11] = 0xff } };

	inet_pton(AF_INET, text, &g.raw[12]);
	return g;
}

/* Open a queue pair at the caller's address. Returns that address's index. */
static int open_queue_pair(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_device **list = ibv_get_device_list(NULL);
	union ibv_gid g, want = gid_of(ip[CALLER]);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	int i, index = -1;

	for (i = 0; list && list[i] && index < 0; i++) {
		int k;

		context = ibv_open_device(list[i]);
		for (k = 0; context && index < 0 && !ibv_query_gid(context, 1, k, &g); k++)
			if (!memcmp(&g, &want, sizeof(g)))
				index = k;
	}
	if (index < 0)
		return -1;
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	if (!mr || !qp || ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_QKEY))
		return -1;
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE))
		return -1;
	a.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) ? -1 : index;
}

/*
 * Ask the UDP socket, which tells any host, for the number and the key of the server's queue pair.
 */
static bool ask(uint32_t *talk)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), i;
	bool told = false;

	talk[0] = htonl(0x414d5131);
	talk[1] = 77;
	sendto(fd, talk, 16, 0, (struct sockaddr *)name[SERVER].address, sizeof(struct sockaddr_in));
	for (i = 0; i < 1000 && !told; i++) {
		AM_WaitSema(bundle);
		AM_Poll(bundle);
		told = recv(fd, talk, 16, MSG_DONTWAIT) == 16;
	}
	close(fd);
	return told && talk[0] == htonl(0x414d4131) && talk[1] == 77;
}

static int send_as(struct ibv_ah *ah, uint32_t qpn, uint32_t key, int port)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)buffer, .length = sizeof(buffer), .lkey = mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = port < 0 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, .imm_data = htonl(port),
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = key },
	};
	int e = ibv_post_send(qp, &wr, &bad);
	struct ibv_wc wc;

	while (!e && !ibv_poll_cq(cq, 1, &wc))
		usleep(100);
	return e ? e : wc.status;
}

/* Without the key no frame comes in; a datagram without a sender's port is no frame. */
TEST_F(am, strangers)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	unsigned int i, frames;
	struct ibv_ah *ah;
	uint32_t talk[4];
	int index;

	self->o.credits = 1;
	/* Each frame is sent once, however slow the machine is. */
	self->o.timeout_us = 10000000;
	self->o.min_timeout_us = 10000000;
	ASSERT_EQ(AM_OK, open_both(self->o));
	index = open_queue_pair();
	ASSERT_LE(0, index);
	attr.grh.dgid = gid_of(ip[SERVER]);
	attr.grh.sgid_index = index;
	attr.grh.hop_limit = 1;
	ah = ibv_create_ah(pd, &attr);
	ASSERT_NE(NULL, ah);
	ASSERT_TRUE(ask(talk));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 1));
	frames = stats(SERVER).frames_received;
	/* Send more of each than there are buffers. */
	for (i = 0; i < 100; i++) {
		EXPECT_EQ(0, send_as(ah, ntohl(talk[2]), ntohl(talk[3]) ^ 1, 4000));
		EXPECT_EQ(0, send_as(ah, ntohl(talk[2]), ntohl(talk[3]), -1));
		EXPECT_EQ(0, send_as(ah, ntohl(talk[2]), ntohl(talk[3]), 0));
		EXPECT_EQ(0, send_as(ah, ntohl(talk[2]), ntohl(talk[3]), 65536));
		AM_Poll(bundle);
	}
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 2));
	EXPECT_EQ(frames + 1, stats(SERVER).frames_received);
	/* This is a frame, but not the library's. */
	EXPECT_EQ(0, send_as(ah, ntohl(talk[2]), ntohl(talk[3]), 4000));
	EXPECT_TRUE(REACHED(stats(SERVER).bad_length + stats(SERVER).bad_checksum == 1));
	ibv_destroy_ah(ah);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
}

/* An answer comes from the right host and port, but to a question that was not asked. */
TEST_F(am, wrong_answer)
{
	struct {
		struct udphdr	udp;
		uint32_t	talk[4];
	} p = { .talk = { htonl(0x414d4131), 1, htonl(99), htonl(99) } };
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_UDP), i;
	struct sockaddr_in from, to;
	size_t n;

	ASSERT_EQ(AM_OK, open_both(self->o));
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	ASSERT_TRUE(REACHED(answered == 1));
	memcpy(&from, name[SERVER].address, sizeof(from));
	memcpy(&to, name[CALLER].address, sizeof(to));
	p.udp.source = from.sin_port;
	p.udp.dest = to.sin_port;
	from.sin_port = 0;
	to.sin_port = 0;
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&from, sizeof(from)));
	for (i = 0; i < 100; i++) {
		n = sizeof(p.udp) + (i % 2 ? sizeof(p.talk) : i % sizeof(p.talk));
		p.udp.len = htons(n);
		EXPECT_EQ((ssize_t)n, sendto(fd, &p, n, 0, (struct sockaddr *)&to, sizeof(to)));
		AM_WaitSema(bundle);
	}
	close(fd);
	i = stats(CALLER).resent;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	EXPECT_TRUE(REACHED(answered == 2));
	/* If the answer counted, frames would go to a queue pair that isn't there for SILENT_US. */
	EXPECT_GE(2 + i, stats(CALLER).resent);
}

TEST_HARNESS_MAIN
