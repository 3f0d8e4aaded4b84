// SPDX-License-Identifier: BSD-3-Clause
/*
 * RDMA verbs, the descendant of VIA. An endpoint is a queue pair of unreliable datagrams, with
 * registered memory from which frames are sent and into which they come. This is a library of its
 * own (plugin.c).
 *
 * The device numbers its queue pairs. So that an endpoint has a port, as with other transports, and
 * the kernel tells which process has it, there is a UDP socket at the same address. Peers ask there
 * for the number of the queue pair and for its key, without which the device takes no frame. Each
 * frame has its sender's port as immediate data; the sender's address is in the header that the
 * device puts before it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "internal.h"

#define GRH		40	/* bytes of header before each frame that came */
#define MAX_QUEUE	1024	/* most frames of a queue, unless there are more credits */
#define BATCH		32	/* most completions that one look takes */
#define GIDS		1024
#define SPARE		16	/* remotes that are no peers, but are answered */
#define ASK_US		10000	/* between questions to a remote that hasn't answered */
#define SILENT_US	100000	/* silence after which a remote that answered is asked again */
#define LOST_US		1000000	/* after which a remote that hasn't answered is forgotten */
#define BACK_OFF_US	100000	/* time without frames to a remote to which sending failed */
#define LOOK		16	/* polls without a frame for each look at the socket */
#define BUSY_LOOK	64	/* polls for each look at the socket, if frames come */
#define LINGER_MS	100	/* longest wait for frames that leave when an endpoint closes */

enum { QUESTION = 0x414d5131, ANSWER = 0x414d4131 };

/* A message at the UDP socket, in network order. */
struct talk {
	uint32_t	kind;
	uint32_t	nonce;		/* of the question */
	uint32_t	qpn, qkey;
};

struct remote {
	en_t		name;		/* kind 0: the entry is free */
	struct ibv_ah	*ah;		/* NULL: it hasn't answered */
	uint32_t	nonce, qpn, qkey;
	uint64_t	used, heard, asked, failed;
	unsigned int	flying;		/* frames that the device has */
	bool		keeps;		/* a frame waits until it answers */
	unsigned int	kept;		/* buffer of the frame that waits */
	size_t		len;
};

struct verbs {
	int			socket;
	struct ibv_context	*context;
	struct ibv_pd		*pd;
	struct ibv_comp_channel	*channel;
	struct ibv_cq		*received, *sent;
	struct ibv_qp		*qp;
	struct ibv_mr		*mr;
	uint8_t			port, gid;	/* of the device; index in its table */
	uint32_t		qkey;
	unsigned int		depth;		/* of both queues */
	uint8_t			*memory, *to_send;
	size_t			size, receive_size;
	bool			broken;		/* the queue pair has an error */
	bool			gone;		/* the device is gone */
	/* Buffers to send from. */
	unsigned int		*free, nfree;
	struct remote		**flying;	/* by buffer: its remote while the device has it */
	unsigned int		nflying;
	/* Buffers of frames that came; the next look gives them back: their handlers have run. */
	unsigned int		given[BATCH], ngiven;
	struct ibv_wc		here[BATCH];	/* found just before a sleep */
	int			nhere;
	unsigned int		idle, polls;
	unsigned int		asking;		/* remotes that haven't answered */
	unsigned int		keeping;	/* remotes that keep a frame */
	uint64_t		swept;
	struct remote		*remotes, *last;
	unsigned int		nremotes, most;
};

static uint8_t *send_buffer(struct transport *t, unsigned int i)
{
	return t->verbs->to_send + i * t->mtu;
}

static uint8_t *receive_buffer(struct verbs *v, unsigned int i)
{
	return v->memory + i * v->receive_size;
}

static struct sockaddr_in address_of(const en_t *name)
{
	struct sockaddr_in a;

	memcpy(&a, name->address, sizeof(a));
	return a;
}

static en_t name_of(uint32_t ip, uint16_t port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = ip, .sin_port = port,
	};
	en_t name = { .kind = AM_KIND_VERBS };

	memcpy(name.address, &a, sizeof(a));
	return name;
}

/* Map an IPv4 address to IPv6, as RoCE v2 has it. */
static union ibv_gid gid_of(const struct sockaddr_in *a)
{
	union ibv_gid g = { .raw = { [10] = 0xff, [11] = 0xff } };

	memcpy(&g.raw[12], &a->sin_addr, 4);
	return g;
}

/*
 * The queue pair
 */

static int post_receives(struct verbs *v, const unsigned int *buffers, unsigned int n)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];
	unsigned int i;

	for (i = 0; i < n; i++) {
		/* Clear the version of IPv6; the device doesn't write there before IPv4. */
		*receive_buffer(v, buffers[i]) = 0;
		sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)receive_buffer(v, buffers[i]), .length = v->receive_size,
			.lkey = v->mr->lkey,
		};
		wr[i] = (struct ibv_recv_wr) {
			.wr_id = buffers[i], .next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i], .num_sge = 1,
		};
	}
	return n ? ibv_post_recv(v->qp, wr, &bad) : 0;
}

/* Let a queue pair that is new or reset receive and send. Returns an errno. */
static int bring_up(struct verbs *v)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = v->port, .qkey = v->qkey,
	};
	unsigned int i, n = 0, buffers[BATCH];
	int e;

	e = ibv_modify_qp(v->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	for (i = 0; i < v->depth && !e; i++) {
		buffers[n++] = i;
		if (n == BATCH || i + 1 == v->depth) {
			e = post_receives(v, buffers, n);
			n = 0;
		}
	}
	a.qp_state = IBV_QPS_RTR;
	if (!e)
		e = ibv_modify_qp(v->qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	if (!e)
		e = ibv_modify_qp(v->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return e;
}

/* Look once at frames that have left, and free their buffers. Returns how many. */
static int sent_look(struct transport *t)
{
	struct verbs *v = t->verbs;
	struct ibv_wc wc[BATCH];
	int i, n = ibv_poll_cq(v->sent, BATCH, wc);
	struct remote *r;

	if (n < 0)
		v->broken = true;
	for (i = 0; i < n; i++) {
		r = v->flying[wc[i].wr_id];
		if (wc[i].status != IBV_WC_SUCCESS)
			v->broken = true;
		if (!r)
			continue;
		/* This frame broke the queue pair; later ones fail with it. Ask its remote anew. */
		if (wc[i].status != IBV_WC_SUCCESS && wc[i].status != IBV_WC_WR_FLUSH_ERR) {
			r->failed = t->ops->now(t);
			r->heard = 0;
		}
		r->flying--;
		v->flying[wc[i].wr_id] = NULL;
		v->nflying--;
		v->free[v->nfree++] = wc[i].wr_id;
	}
	return n;
}

/* Reset a queue pair that failed, as without a route to a peer. Frames on their way are lost. */
static bool revive(struct transport *t)
{
	struct verbs *v = t->verbs;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc[BATCH];
	unsigned int i;

	while (sent_look(t) > 0)
		;
	if (ibv_modify_qp(v->qp, &a, IBV_QP_STATE))
		return false;
	while (ibv_poll_cq(v->received, BATCH, wc) > 0 || ibv_poll_cq(v->sent, BATCH, wc) > 0)
		;
	for (i = 0; i < v->depth; i++) {
		if (!v->flying[i])
			continue;
		v->flying[i]->flying = 0;
		v->flying[i] = NULL;
		v->free[v->nfree++] = i;
	}
	v->nflying = 0;
	v->ngiven = 0;
	v->nhere = 0;
	v->broken = false;
	return !bring_up(v);
}

static int post(struct transport *t, struct remote *r, unsigned int buffer, size_t len)
{
	struct sockaddr_in own = address_of(&t->name);
	struct verbs *v = t->verbs;
	struct ibv_sge sge = {
		.addr = (uintptr_t)send_buffer(t, buffer), .length = len, .lkey = v->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = buffer, .sg_list = &sge, .num_sge = len ? 1 : 0,
		.opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(ntohs(own.sin_port)),
		.wr.ud = { .ah = r->ah, .remote_qpn = r->qpn, .remote_qkey = r->qkey },
	}, *bad;
	int e = ibv_post_send(v->qp, &wr, &bad);

	if (!e) {
		v->flying[buffer] = r;
		v->nflying++;
		r->flying++;
		return 0;
	}
	v->free[v->nfree++] = buffer;
	if (e == ENOMEM)
		return 1;
	v->broken = true;
	return -1;
}

/*
 * Peers
 */

static void say(struct verbs *v, const struct sockaddr_in *to, const struct talk *talk)
{
	/* If it can't be sent, it is lost like any other. */
	sendto(v->socket, talk, sizeof(*talk), MSG_DONTWAIT, (const struct sockaddr *)to,
	       sizeof(*to));
}

static void ask(struct transport *t, struct remote *r, uint64_t pause)
{
	struct sockaddr_in to = address_of(&r->name);
	uint64_t now = t->ops->now(t);

	if (now - r->asked < pause)
		return;
	r->asked = now;
	say(t->verbs, &to, &(struct talk) { .kind = htonl(QUESTION), .nonce = r->nonce });
}

static void drop_kept(struct verbs *v, struct remote *r)
{
	if (!r->keeps)
		return;
	v->free[v->nfree++] = r->kept;
	r->keeps = false;
	v->keeping--;
}

static void forget(struct verbs *v, struct remote *r)
{
	drop_kept(v, r);
	if (r->ah)
		ibv_destroy_ah(r->ah);
	else if (r->name.kind)
		v->asking--;
	memset(r, 0, sizeof(*r));
}

static struct remote *find(struct verbs *v, const en_t *name)
{
	unsigned int i;

	if (v->last && name_equal(&v->last->name, name))
		return v->last;
	for (i = 0; i < v->nremotes; i++)
		if (name_equal(&v->remotes[i].name, name))
			return v->last = &v->remotes[i];
	return NULL;
}

/*
 * Forget remotes that don't answer. Any host can make such: with a frame that is answered, and that
 * claims a port where nothing answers. So they have LOST_US, and only a part of the buffers.
 */
static void sweep(struct transport *t)
{
	struct verbs *v = t->verbs;
	uint64_t now = t->ops->now(t);
	struct remote *r;

	if (!v->asking || now - v->swept < ASK_US)
		return;
	v->swept = now;
	for (r = v->remotes; r < v->remotes + v->nremotes; r++)
		if (r->name.kind && !r->ah && now - r->used > LOST_US)
			forget(v, r);
}

/* Make room for one more frame that is kept. */
static void make_room(struct verbs *v)
{
	struct remote *r, *oldest = NULL;

	if (!v->keeping || v->keeping < v->depth / 4)
		return;
	for (r = v->remotes; r < v->remotes + v->nremotes; r++)
		if (r->keeps && (!oldest || r->used < oldest->used))
			oldest = r;
	drop_kept(v, oldest);
}

/*
 * Find the remote of a name, or make one. A full table gives the place of a remote that hasn't
 * answered, else of any; of several, the one that was used longest ago. NULL: all have frames on
 * their way.
 */
static struct remote *find_or_make(struct transport *t, const en_t *name)
{
	struct verbs *v = t->verbs;
	struct remote *r = find(v, name), *other;

	if (r)
		return r;
	if (v->nremotes < v->most) {
		r = &v->remotes[v->nremotes++];
	} else {
		for (other = v->remotes; other < v->remotes + v->nremotes; other++)
			if (!other->flying && (!r || (!other->ah == !r->ah ?
						      other->used < r->used : !other->ah)))
				r = other;
		if (!r)
			return NULL;
		forget(v, r);
	}
	r->name = *name;
	r->heard = t->ops->now(t);
	if (getrandom(&r->nonce, sizeof(r->nonce), 0) != sizeof(r->nonce))
		abort();
	v->asking++;
	return v->last = r;
}

static void answered(struct transport *t, struct remote *r, const struct talk *talk)
{
	struct sockaddr_in a = address_of(&r->name);
	struct verbs *v = t->verbs;
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = v->port,
		.grh = { .dgid = gid_of(&a), .sgid_index = v->gid, .hop_limit = 64 },
	};
	struct ibv_ah *ah;

	r->heard = t->ops->now(t);
	r->qpn = ntohl(talk->qpn);
	r->qkey = ntohl(talk->qkey);
	/*
	 * The remote's MAC address may be another by now. Keep the old one while frames that use it
	 * leave.
	 */
	if (r->flying)
		return;
	ah = ibv_create_ah(v->pd, &attr);
	if (!ah)
		return;
	if (r->ah)
		ibv_destroy_ah(r->ah);
	else
		v->asking--;
	r->ah = ah;
	if (!r->keeps)
		return;
	r->keeps = false;
	v->keeping--;
	post(t, r, r->kept, r->len);
}

/* Take questions and answers. */
static void look(struct transport *t)
{
	struct verbs *v = t->verbs;
	struct sockaddr_in from;
	struct remote *r;
	struct talk talk;
	socklen_t len;
	en_t name;
	int i;

	for (i = 0; i < BATCH; i++) {
		len = sizeof(from);
		if (recvfrom(v->socket, &talk, sizeof(talk), MSG_DONTWAIT | MSG_TRUNC,
			     (struct sockaddr *)&from, &len) != sizeof(talk))
			return;
		switch (ntohl(talk.kind)) {
		case QUESTION:
			talk.kind = htonl(ANSWER);
			talk.qpn = htonl(v->qp->qp_num);
			talk.qkey = htonl(v->qkey);
			say(v, &from, &talk);
			break;
		case ANSWER:
			name = name_of(from.sin_addr.s_addr, from.sin_port);
			r = find(v, &name);
			if (r && r->nonce == talk.nonce)
				answered(t, r, &talk);
			break;
		}
	}
}

static int send_verbs(struct transport *t, const en_t *to, const void *data, size_t len)
{
	struct verbs *v = t->verbs;
	struct remote *r;
	unsigned int buffer;

	if (v->gone || len > t->mtu)
		return -1;
	if (v->nfree < BATCH)
		sent_look(t);
	r = find_or_make(t, to);
	if (!r) {
		sent_look(t);
		return 1;
	}
	r->used = t->ops->now(t);
	if (!r->ah) {
		ask(t, r, ASK_US);
		look(t);
	} else if (r->used - r->heard > SILENT_US) {
		/* It may be another program by now, with another queue pair. */
		ask(t, r, SILENT_US);
	}
	/* Drop it: another failure would again cost other remotes their frames. */
	if (r->failed && r->used - r->failed < BACK_OFF_US)
		return 0;
	if (!v->nfree || (!r->ah && r->keeps))
		return 1;
	buffer = v->free[--v->nfree];
	memcpy(send_buffer(t, buffer), data, len);
	if (r->ah)
		return post(t, r, buffer, len);
	make_room(v);
	r->keeps = true;
	r->kept = buffer;
	r->len = len;
	v->keeping++;
	return 0;
}

static bool checksum_is_right(const uint8_t *ip_header)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += ip_header[i] << 8 | ip_header[i + 1];
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/*
 * Return the IPv4 address in the header before a frame; 0: it has none. A header of IPv4 is in the
 * last 20 bytes, and the bytes before it may look like one of IPv6.
 */
static uint32_t sender(const uint8_t *grh)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool six = grh[0] >> 4 == 6;
	uint32_t ip = 0;

	if (grh[20] == 0x45 && (!six || checksum_is_right(grh + 20)))
		memcpy(&ip, grh + 32, sizeof(ip));
	else if (six && !memcmp(grh + 8, mapped, sizeof(mapped)))
		memcpy(&ip, grh + 20, sizeof(ip));
	return ip;
}

/* Make a frame of a completion. False: it is none. */
static bool take(struct transport *t, const struct ibv_wc *wc, struct frame *f)
{
	uint8_t *data = receive_buffer(t->verbs, wc->wr_id);
	uint32_t port = ntohl(wc->imm_data), ip;
	struct remote *r;

	if (!(wc->wc_flags & IBV_WC_GRH) || !(wc->wc_flags & IBV_WC_WITH_IMM) ||
	    wc->byte_len < GRH || !port || port > 65535)
		return false;
	ip = sender(data);
	if (!ip)
		return false;
	f->from = name_of(ip, htons(port));
	f->data = data + GRH;
	f->len = wc->byte_len - GRH;
	r = find(t->verbs, &f->from);
	if (r && r->qpn == wc->src_qp)
		r->heard = t->ops->now(t);
	return true;
}

/* Give up the device: it wakes no sleeper any more. */
static void give_up(struct transport *t)
{
	struct verbs *v = t->verbs;

	v->gone = true;
	epoll_ctl(t->fd, EPOLL_CTL_DEL, v->channel->fd, NULL);
	epoll_ctl(t->fd, EPOLL_CTL_DEL, v->socket, NULL);
}

static int receive_verbs(struct transport *t, struct frame *frames, int n, size_t room)
{
	struct verbs *v = t->verbs;
	struct ibv_wc wc[BATCH];
	int i, got = 0, came;
	bool good = false;

	(void)room;
	if (v->gone)
		return 0;
	if (n > BATCH)
		n = BATCH;
	/*
	 * The handlers of these frames have returned. If the queue pair is broken, revive() gives
	 * all buffers.
	 */
	if (!v->broken && post_receives(v, v->given, v->ngiven))
		v->broken = true;
	v->ngiven = 0;
	sent_look(t);
	if (v->nhere) {
		came = v->nhere < n ? v->nhere : n;
		memcpy(wc, v->here, came * sizeof(*wc));
		v->nhere -= came;
		memmove(v->here, v->here + came, v->nhere * sizeof(*wc));
	} else {
		came = ibv_poll_cq(v->received, n, wc);
	}
	v->broken |= came < 0;
	for (i = 0; i < came; i++) {
		v->given[v->ngiven++] = wc[i].wr_id;
		if (wc[i].status != IBV_WC_SUCCESS) {
			v->broken = true;
			continue;
		}
		good = true;
		if (take(t, &wc[i], &frames[got]))
			got++;
	}
	/*
	 * Not while frames are here that came before: revive() gives their buffers to the device.
	 */
	if (v->broken && !good && !revive(t)) {
		give_up(t);
		errno = ENETDOWN;
		return -1;
	}
	v->polls++;
	if (came > 0)
		v->idle = 0;
	if (v->polls % BUSY_LOOK == 0 || (came <= 0 && (v->asking || v->idle++ % LOOK == 0))) {
		look(t);
		sweep(t);
	}
	return got;
}

/*
 * Let the device tell of the next frame. True: don't sleep, because one came before that, or the
 * queue pair is broken.
 */
static bool arm_verbs(struct transport *t)
{
	struct verbs *v = t->verbs;
	struct ibv_cq *cq;
	void *none;

	if (v->gone)
		return false;
	if (v->broken || v->nhere)
		return true;
	/* The UDP socket may be what ends the sleep: then the next poll looks at it. */
	v->idle = 0;
	while (!ibv_get_cq_event(v->channel, &cq, &none))
		ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(v->received, 0)) {
		v->broken = true;
		return true;
	}
	v->nhere = ibv_poll_cq(v->received, BATCH, v->here);
	if (v->nhere >= 0)
		return v->nhere;
	v->nhere = 0;
	v->broken = true;
	return true;
}

/*
 * The transport
 */

static void close_verbs(struct transport *t)
{
	struct verbs *v = t->verbs;
	unsigned int i;

	if (!v)
		return;
	for (i = 0; v->nflying && !v->broken && i < LINGER_MS; i++) {
		while (sent_look(t) > 0)
			;
		if (v->nflying)
			usleep(1000);
	}
	if (v->qp)
		ibv_destroy_qp(v->qp);
	for (i = 0; i < v->nremotes; i++)
		if (v->remotes[i].ah)
			ibv_destroy_ah(v->remotes[i].ah);
	if (v->sent)
		ibv_destroy_cq(v->sent);
	if (v->received)
		ibv_destroy_cq(v->received);
	if (v->channel)
		ibv_destroy_comp_channel(v->channel);
	if (v->mr)
		ibv_dereg_mr(v->mr);
	if (v->pd)
		ibv_dealloc_pd(v->pd);
	if (v->context)
		ibv_close_device(v->context);
	if (v->socket >= 0)
		close(v->socket);
	if (t->fd >= 0)
		close(t->fd);
	if (v->memory)
		munmap(v->memory, v->size);
	free(v->flying);
	free(v->free);
	free(v->remotes);
	free(v);
	t->verbs = NULL;
}

/* Open the device that has the address, with RoCE v2. */
static bool open_device(struct verbs *v, const struct sockaddr_in *a)
{
	union ibv_gid want = gid_of(a);
	struct ibv_gid_entry g[GIDS];
	struct ibv_device **list;
	int i, k, n;

	list = ibv_get_device_list(NULL);
	for (i = 0; list && list[i] && !v->context; i++) {
		v->context = ibv_open_device(list[i]);
		n = v->context ? ibv_query_gid_table(v->context, g, GIDS, 0) : 0;
		for (k = 0; k < n; k++)
			if (g[k].gid_type == IBV_GID_TYPE_ROCE_V2 &&
			    !memcmp(&g[k].gid, &want, sizeof(want)))
				break;
		if (k < n) {
			v->port = g[k].port_num;
			v->gid = g[k].gid_index;
		} else if (v->context) {
			ibv_close_device(v->context);
			v->context = NULL;
		}
	}
	if (list)
		ibv_free_device_list(list);
	if (!v->context)
		errno = ENODEV;
	return v->context;
}

/*
 * Set the MTU, and the queues' depth: a message from each credit of a peer, if that isn't too much,
 * and one more frame.
 */
static bool measure(struct transport *t, const struct am_options *o)
{
	struct verbs *v = t->verbs;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	unsigned int pieces;
	int e;

	e = ibv_query_device(v->context, &device);
	if (!e)
		e = ibv_query_port(v->context, v->port, &port);
	if (e) {
		errno = e;
		return false;
	}
	t->mtu = 128 << port.active_mtu;
	pieces = AM_MAX_LONG / (t->mtu - WIRE_HEADER) + 1;
	v->depth = o->credits * pieces;
	if (v->depth > MAX_QUEUE)
		v->depth = o->credits > MAX_QUEUE ? o->credits : MAX_QUEUE;
	v->depth++;
	if (v->depth > (unsigned int)device.max_qp_wr)
		v->depth = device.max_qp_wr;
	return true;
}

static bool allocate(struct transport *t, const struct am_options *o)
{
	struct verbs *v = t->verbs;
	unsigned int i;

	v->most = o->peers + SPARE;
	v->remotes = calloc(v->most, sizeof(*v->remotes));
	v->free = calloc(v->depth, sizeof(*v->free));
	v->flying = calloc(v->depth, sizeof(*v->flying));
	if (!v->remotes || !v->free || !v->flying)
		return false;
	for (i = 0; i < v->depth; i++)
		v->free[v->nfree++] = i;
	v->receive_size = GRH + t->mtu;
	v->size = v->depth * (v->receive_size + t->mtu);
	v->memory = mmap(NULL, v->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (v->memory == MAP_FAILED)
		v->memory = NULL;
	else
		v->to_send = receive_buffer(v, v->depth);
	return v->memory;
}

static bool open_queues(struct transport *t)
{
	struct verbs *v = t->verbs;
	struct ibv_qp_init_attr a = {
		.qp_type = IBV_QPT_UD,
		.cap = {
			.max_send_wr = v->depth, .max_recv_wr = v->depth,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	int e;

	v->pd = ibv_alloc_pd(v->context);
	if (v->pd)
		v->mr = ibv_reg_mr(v->pd, v->memory, v->size, IBV_ACCESS_LOCAL_WRITE);
	v->channel = ibv_create_comp_channel(v->context);
	if (!v->mr || !v->channel)
		return false;
	fcntl(v->channel->fd, F_SETFL, fcntl(v->channel->fd, F_GETFL) | O_NONBLOCK);
	v->received = ibv_create_cq(v->context, v->depth, NULL, v->channel, 0);
	v->sent = ibv_create_cq(v->context, v->depth, NULL, NULL, 0);
	a.recv_cq = v->received;
	a.send_cq = v->sent;
	if (v->received && v->sent)
		v->qp = ibv_create_qp(v->pd, &a);
	if (!v->qp)
		return false;
	e = bring_up(v);
	errno = e;
	return !e;
}

static bool watch(struct transport *t, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return !epoll_ctl(t->fd, EPOLL_CTL_ADD, fd, &e);
}

static int open_verbs(struct transport *t, const struct am_options *o)
{
	struct sockaddr_in a = address_of(&t->name);
	socklen_t len = sizeof(a);
	struct verbs *v;

	v = calloc(1, sizeof(*v));
	if (!v)
		return AM_ERR_RESOURCE;
	t->verbs = v;
	v->socket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (v->socket < 0 || bind(v->socket, (struct sockaddr *)&a, len) ||
	    getsockname(v->socket, (struct sockaddr *)&a, &len))
		return AM_ERR_SYSTEM;
	t->name = name_of(a.sin_addr.s_addr, a.sin_port);
	if (getrandom(&v->qkey, sizeof(v->qkey), 0) != sizeof(v->qkey))
		return AM_ERR_SYSTEM;
	/* Keys with the highest bit are the kernel's own. */
	v->qkey &= 0x7fffffff;
	if (!open_device(v, &a) || !measure(t, o))
		return AM_ERR_SYSTEM;
	if (t->mtu < WIRE_MIN_MTU)
		return AM_ERR_TOO_BIG;
	if (!allocate(t, o))
		return AM_ERR_RESOURCE;
	t->fd = epoll_create1(EPOLL_CLOEXEC);
	if (!open_queues(t) || t->fd < 0 || !watch(t, v->channel->fd) || !watch(t, v->socket))
		return AM_ERR_SYSTEM;
	return AM_OK;
}

struct plugin PLUGIN_SYMBOL __attribute__((visibility("default"))) = {
	.version = PLUGIN_VERSION,
	.size = sizeof(struct transport),
	.ops = {
		.open = open_verbs,
		.close = close_verbs,
		.send = send_verbs,
		.receive = receive_verbs,
		.arm = arm_verbs,
		.by_peer = true,
	},
};
