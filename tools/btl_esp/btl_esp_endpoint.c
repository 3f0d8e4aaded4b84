// SPDX-License-Identifier: BSD-3-Clause
/*
 * An endpoint is the connection of one module to its counterpart at a peer.
 *
 *	CLOSED -- first fragment --> CONNECTING --> GREETED -- WELCOME --> CONNECTED
 *	   |                            |              |                    ^  ^
 *	   |                            |           YIELD --> YIELDED ------+  |
 *	   +----- the peer's HELLO -----+---------- HELLO, and its name -------+
 *	                                            is the smaller one
 *
 * When both sides connect at once, the connection stays that the process with the smaller name
 * made. The process that accepts answers a HELLO: with WELCOME, or with YIELD if its own connection
 * stays. Fragments wait in the queue until CONNECTED.
 *
 * The last message of either side is BYE; an end without it is the peer's death.
 */
#include "btl_esp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_IOVS	64
#define BYE_TIMEOUT	1	/* seconds */

static int ready(struct mca_btl_esp_watch *watch, uint32_t events);

struct mca_btl_base_endpoint_t *mca_btl_esp_endpoint_new(struct mca_btl_esp_module *module,
							 struct mca_btl_esp_proc *proc)
{
	struct mca_btl_base_endpoint_t *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	OBJ_CONSTRUCT(&ep->super, opal_list_item_t);
	OBJ_CONSTRUCT(&ep->lock, opal_mutex_t);
	OBJ_CONSTRUCT(&ep->queue, opal_list_t);
	ep->watch.fd = -1;
	ep->watch.ready = ready;
	ep->state = ESP_CLOSED;
	ep->module = module;
	ep->proc = proc;
	ep->addr = &proc->modex->addrs[proc->match[module->index]];
	opal_list_append(&module->endpoints, &ep->super);
	return ep;
}

/* Wait until FD takes more, BYE_TIMEOUT at most; signals are blocked meanwhile. */
static bool wait_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	struct timespec time = { .tv_sec = BYE_TIMEOUT };
	sigset_t all;

	sigfillset(&all);
	return ppoll(&p, 1, &time, &all) == 1;
}

/* Give the queued fragments and BYE to the kernel. Each wait for room takes BYE_TIMEOUT at most. */
static void say_bye(struct mca_btl_base_endpoint_t *ep)
{
	static const struct mca_btl_esp_hdr bye = { .tag = ESP_TAG_BYE };
	struct iovec iov[ESP_FRAG_IOVS];
	struct mca_btl_esp_frag *frag;
	struct msghdr msg = { .msg_iov = iov };
	size_t sent = 0;
	ssize_t n;

	while (sent < sizeof(bye)) {
		frag = (struct mca_btl_esp_frag *)opal_list_get_first(&ep->queue);
		if (opal_list_is_empty(&ep->queue)) {
			iov[0] = (struct iovec){ (char *)&bye + sent, sizeof(bye) - sent };
			msg.msg_iovlen = 1;
		} else {
			msg.msg_iovlen = mca_btl_esp_frag_gather(frag, iov);
		}
		n = sendmsg(ep->watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN && wait_writable(ep->watch.fd))
			continue;
		if (n < 0)
			return;
		if (opal_list_is_empty(&ep->queue)) {
			sent += n;
			continue;
		}
		frag->sent += n;
		if (frag->sent < frag->total)
			continue;
		opal_list_remove_first(&ep->queue);
		mca_btl_esp_frag_sent(frag);
	}
}

/* Free an endpoint, with progress_lock held. */
void mca_btl_esp_endpoint_free(struct mca_btl_base_endpoint_t *ep)
{
	struct mca_btl_esp_proc *proc = ep->proc;
	struct mca_btl_esp_frag *frag;

	mca_btl_esp_proc_remove(ep);
	if (ep->state == ESP_CONNECTED)
		say_bye(ep);
	if (ep->watch.fd >= 0) {
		mca_btl_esp_unwatch(&ep->watch);
		close(ep->watch.fd);
	}
	while ((frag = (struct mca_btl_esp_frag *)opal_list_remove_first(&ep->queue))) {
		if (frag->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)
			mca_btl_esp_frag_put(frag);
	}
	free(ep->partial);
	OBJ_DESTRUCT(&ep->queue);
	OBJ_DESTRUCT(&ep->lock);
	OBJ_DESTRUCT(&ep->super);
	free(ep);
	mca_btl_esp_proc_put(proc);
}

/*
 * Report that the connection can't be made, or is lost. The caller doesn't hold the endpoint's
 * lock.
 */
static int fail(struct mca_btl_base_endpoint_t *ep, const char *what, int error)
{
	const uint8_t *m = ep->addr->mac;
	char mac[18], *text;

	OPAL_THREAD_LOCK(&ep->lock);
	if (ep->state == ESP_FAILED || ep->state == ESP_ENDED) {
		OPAL_THREAD_UNLOCK(&ep->lock);
		return OPAL_ERR_UNREACH;
	}
	ep->state = ESP_FAILED;
	if (ep->watch.fd >= 0)
		mca_btl_esp_unwatch(&ep->watch);
	OPAL_THREAD_UNLOCK(&ep->lock);

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
		 m[5]);
	if (asprintf(&text, "btl:esp: %s: %s rank %u on host %s (%s, %s) through %s: %s",
		     opal_process_info.nodename, what, (unsigned int)ep->proc->name.vpid,
		     opal_get_proc_hostname(ep->proc->opal), ep->addr->label, mac,
		     ep->module->iface.name,
		     error ? strerror(error) : "the peer's process is gone") < 0)
		return OPAL_ERR_OUT_OF_RESOURCE;
	mca_btl_esp_give_up(ep->module, ep->proc->opal, text);
	free(text);
	return OPAL_ERR_UNREACH;
}

/* Begin to connect, with ep->lock held. Returns 0 or an errno. */
static int start_connect(struct mca_btl_base_endpoint_t *ep)
{
	struct sockaddr_esp addr = {
		.sesp_family	= AF_ESP,
		.sesp_port	= ep->addr->port,
		.sesp_ifindex	= ep->module->iface.ifindex,
		.sesp_halen	= 6,
	};
	int fd = socket(AF_ESP, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	memcpy(addr.sesp_addr, ep->addr->mac, sizeof(addr.sesp_addr));
	ep->watch.fd = fd;
	ep->state = ESP_CONNECTING;
	if (mca_btl_esp_setup_socket(fd) ||
	    (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) && errno != EINPROGRESS))
		return errno;
	return mca_btl_esp_watch(&ep->watch, EPOLLIN | EPOLLOUT);
}

int mca_btl_esp_ident_send(int fd, enum mca_btl_esp_say say, uint64_t key)
{
	struct mca_btl_esp_ident ident = {
		.magic	= ESP_MAGIC,
		.version = ESP_VERSION,
		.order	= ESP_ORDER,
		.say	= say,
		.key	= key,
		.name	= OPAL_PROC_MY_NAME,
	};
	ssize_t n = send(fd, &ident, sizeof(ident), MSG_DONTWAIT | MSG_NOSIGNAL);

	/* The first bytes of a connection always find room. */
	return n == sizeof(ident) ? 0 : n < 0 ? errno : ENOBUFS;
}

bool mca_btl_esp_ident_ok(const struct mca_btl_esp_ident *ident)
{
	return ident->magic == ESP_MAGIC && ident->version == ESP_VERSION &&
	       ident->order == ESP_ORDER;
}

/* Send HELLO, when connect() has ended. */
static int connected(struct mca_btl_base_endpoint_t *ep)
{
	int error = 0;
	socklen_t size = sizeof(error);

	OPAL_THREAD_LOCK(&ep->lock);
	if (getsockopt(ep->watch.fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	if (!error)
		error = mca_btl_esp_ident_send(ep->watch.fd, ESP_HELLO, ep->proc->modex->key);
	if (!error) {
		ep->state = ESP_GREETED;
		error = mca_btl_esp_watch(&ep->watch, EPOLLIN);
	}
	OPAL_THREAD_UNLOCK(&ep->lock);
	if (error)
		fail(ep, "cannot connect to", error);
	return 0;
}

/* Receive the answer to HELLO. */
static int answered(struct mca_btl_base_endpoint_t *ep)
{
	ssize_t n = recv(ep->watch.fd, ep->head.bytes + ep->head_have,
			 sizeof(ep->head.ident) - ep->head_have, MSG_DONTWAIT);
	int error = 0;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0) {
		fail(ep, "cannot connect to", n ? errno : ECONNRESET);
		return 0;
	}
	ep->head_have += n;
	if (ep->head_have < sizeof(ep->head.ident))
		return 0;
	ep->head_have = 0;
	if (!mca_btl_esp_ident_ok(&ep->head.ident)) {
		fail(ep, "cannot connect to", EPROTO);
		return 0;
	}

	OPAL_THREAD_LOCK(&ep->lock);
	if (ep->head.ident.say == ESP_WELCOME) {
		ep->state = ESP_CONNECTED;
		if (!opal_list_is_empty(&ep->queue))
			error = mca_btl_esp_watch(&ep->watch, EPOLLIN | EPOLLOUT);
	} else {
		mca_btl_esp_unwatch(&ep->watch);
		close(ep->watch.fd);
		ep->watch.fd = -1;
		ep->state = ESP_YIELDED;
	}
	OPAL_THREAD_UNLOCK(&ep->lock);
	if (error)
		fail(ep, "cannot connect to", error);
	return 1;
}

static bool smaller(opal_process_name_t a, opal_process_name_t b)
{
	return a.jobid != b.jobid ? a.jobid < b.jobid : a.vpid < b.vpid;
}

/* Take the peer's connection FD, whose HELLO has come, or answer with YIELD and close it. */
void mca_btl_esp_endpoint_accept(struct mca_btl_base_endpoint_t *ep, int fd)
{
	bool take;
	int error = 0;

	OPAL_THREAD_LOCK(&ep->lock);
	switch (ep->state) {
	case ESP_CLOSED:
	case ESP_YIELDED:
		take = true;
		break;
	case ESP_CONNECTING:
	case ESP_GREETED:
		take = smaller(ep->proc->name, OPAL_PROC_MY_NAME);
		break;
	default:
		take = false;
	}
	if (take) {
		if (ep->watch.fd >= 0) {
			mca_btl_esp_unwatch(&ep->watch);
			close(ep->watch.fd);
		}
		ep->watch.fd = fd;
		ep->head_have = 0;
		ep->state = ESP_CONNECTED;
		error = mca_btl_esp_ident_send(fd, ESP_WELCOME, 0);
		if (!error)
			error = mca_btl_esp_watch(&ep->watch, opal_list_is_empty(&ep->queue) ?
						  EPOLLIN : EPOLLIN | EPOLLOUT);
	} else {
		/* A peer that has closed this connection doesn't need the answer. */
		mca_btl_esp_ident_send(fd, ESP_YIELD, 0);
		close(fd);
	}
	OPAL_THREAD_UNLOCK(&ep->lock);
	if (error)
		fail(ep, "lost the connection with", error);
}

/*
 * Sending
 */

/*
 * Send as much of the queue as the socket takes, with ep->lock held. Fragments that are sent go to
 * DONE. Returns 0 or an errno.
 */
static int send_queue(struct mca_btl_base_endpoint_t *ep, opal_list_t *done)
{
	struct iovec iov[MAX_IOVS];

	while (!opal_list_is_empty(&ep->queue)) {
		struct msghdr msg = { .msg_iov = iov };
		struct mca_btl_esp_frag *frag;
		size_t asked = 0;
		ssize_t n, left;

		OPAL_LIST_FOREACH(frag, &ep->queue, struct mca_btl_esp_frag) {
			if (msg.msg_iovlen + ESP_FRAG_IOVS > MAX_IOVS)
				break;
			msg.msg_iovlen += mca_btl_esp_frag_gather(frag, iov + msg.msg_iovlen);
			asked += frag->total - frag->sent;
		}
		n = sendmsg(ep->watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN ? 0 : errno;
		for (left = n; left > 0; ) {
			size_t part;

			frag = (struct mca_btl_esp_frag *)opal_list_get_first(&ep->queue);
			part = frag->total - frag->sent;
			if (part > (size_t)left)
				part = left;
			frag->sent += part;
			left -= part;
			if (frag->sent == frag->total) {
				opal_list_remove_first(&ep->queue);
				opal_list_append(done, &frag->base.super.super);
			}
		}
		if ((size_t)n < asked)
			return 0;
	}
	return 0;
}

/* Send more of the queue, because the socket has room. */
static int writable(struct mca_btl_base_endpoint_t *ep)
{
	struct mca_btl_esp_frag *frag;
	opal_list_t done;
	int error, n = 0;

	OBJ_CONSTRUCT(&done, opal_list_t);
	OPAL_THREAD_LOCK(&ep->lock);
	error = send_queue(ep, &done);
	if (!error && opal_list_is_empty(&ep->queue))
		error = mca_btl_esp_watch(&ep->watch, EPOLLIN);
	OPAL_THREAD_UNLOCK(&ep->lock);

	while ((frag = (struct mca_btl_esp_frag *)opal_list_remove_first(&done))) {
		mca_btl_esp_frag_sent(frag);
		n++;
	}
	OBJ_DESTRUCT(&done);
	if (error)
		fail(ep, "lost the connection with", error);
	return n;
}

/* Queue FRAG, with ep->lock held. Returns 0, or an errno: FRAG is still the caller's. */
static int enqueue(struct mca_btl_base_endpoint_t *ep, struct mca_btl_esp_frag *frag)
{
	int error = 0;

	if (ep->state == ESP_CLOSED)
		error = start_connect(ep);
	else if (ep->state == ESP_CONNECTED)
		error = mca_btl_esp_watch(&ep->watch, EPOLLIN | EPOLLOUT);
	if (!error)
		opal_list_append(&ep->queue, &frag->base.super.super);
	return error;
}

/*
 * Send FRAG. As btl_send(), returns 1 if the kernel has it all, OPAL_SUCCESS if it waits in the
 * queue.
 */
int mca_btl_esp_endpoint_send(struct mca_btl_base_endpoint_t *ep, struct mca_btl_esp_frag *frag)
{
	struct iovec iov[ESP_FRAG_IOVS];
	struct msghdr msg = { .msg_iov = iov };
	const char *what = "lost the connection with";
	int error;
	ssize_t n;

	OPAL_THREAD_LOCK(&ep->lock);
	if (ep->state == ESP_FAILED || ep->state == ESP_ENDED) {
		OPAL_THREAD_UNLOCK(&ep->lock);
		return OPAL_ERR_UNREACH;
	}
	if (ep->state == ESP_CONNECTED && opal_list_is_empty(&ep->queue)) {
		msg.msg_iovlen = mca_btl_esp_frag_gather(frag, iov);
		n = sendmsg(ep->watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0)
			frag->sent = n;
		if (frag->sent == frag->total) {
			OPAL_THREAD_UNLOCK(&ep->lock);
			mca_btl_esp_frag_sent(frag);
			return 1;
		}
		if (n < 0 && errno != EAGAIN) {
			error = errno;
			OPAL_THREAD_UNLOCK(&ep->lock);
			return fail(ep, what, error);
		}
	}
	/* The caller has returned by the time FRAG is sent: the callback tells the PML. */
	frag->base.des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
	if (ep->state == ESP_CLOSED)
		what = "cannot connect to";
	error = enqueue(ep, frag);
	OPAL_THREAD_UNLOCK(&ep->lock);
	if (error)
		return fail(ep, what, error);
	return OPAL_SUCCESS;
}

/* Copy IOV into FRAG. */
static void copy_rest(struct mca_btl_esp_frag *frag, const struct iovec *iov, int count)
{
	char *to = (char *)frag->buffer;

	for (int i = 0; i < count; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/*
 * Send SIZE bytes at once from where they are, ESP_FRAG_SMALL at most. If the socket takes only a
 * part, a fragment has the rest. OPAL_ERR_RESOURCE_BUSY: nothing was sent.
 */
int mca_btl_esp_endpoint_sendi(struct mca_btl_base_endpoint_t *ep, struct iovec *iov, int count,
			       size_t size, uint8_t tag)
{
	struct mca_btl_esp_hdr hdr = { .size = size, .tag = tag };
	size_t total = sizeof(hdr) + ESP_PADDED(size);
	struct iovec all[4] = { { &hdr, sizeof(hdr) } };
	struct msghdr msg = { .msg_iov = all };
	struct mca_btl_esp_frag *frag;
	int error, n = 1;
	ssize_t sent;

	OPAL_THREAD_LOCK(&ep->lock);
	if (ep->state != ESP_CONNECTED || !opal_list_is_empty(&ep->queue))
		goto busy;
	for (int i = 0; i < count; i++)
		all[n++] = iov[i];
	if (total > sizeof(hdr) + size)
		all[n++] = (struct iovec){ (void *)mca_btl_esp_padding,
					   total - sizeof(hdr) - size };
	msg.msg_iovlen = n;
	sent = sendmsg(ep->watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent == (ssize_t)total) {
		OPAL_THREAD_UNLOCK(&ep->lock);
		return OPAL_SUCCESS;
	}
	/* The PML sends by a descriptor then, which finds the error again and reports it. */
	if (sent < 0)
		goto busy;

	frag = mca_btl_esp_frag_get(size);
	if (frag) {
		copy_rest(frag, iov, count);
		frag->ep = ep;
		frag->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
		mca_btl_esp_frag_start(frag, tag);
		frag->sent = sent;
		error = enqueue(ep, frag);
		if (error)
			mca_btl_esp_frag_put(frag);
	} else {
		error = ENOMEM;
	}
	OPAL_THREAD_UNLOCK(&ep->lock);
	return error ? fail(ep, "lost the connection with", error) : OPAL_SUCCESS;
busy:
	OPAL_THREAD_UNLOCK(&ep->lock);
	return OPAL_ERR_RESOURCE_BUSY;
}

/*
 * Receiving
 */

/*
 * Begin to receive the bytes after HDR into the user's memory. The PML has told the peer where;
 * that isn't known here. So the peer is believed, as by btl/tcp, except for impossible values.
 */
static bool begin_put(struct mca_btl_base_endpoint_t *ep, const struct mca_btl_esp_hdr *hdr)
{
	const struct mca_btl_esp_put *put = (const struct mca_btl_esp_put *)(hdr + 1);

	if (hdr->size != sizeof(*put) || put->address > UINTPTR_MAX ||
	    put->size > SSIZE_MAX - 8 || put->size > UINTPTR_MAX - put->address)
		return false;
	ep->rest[0] = (struct iovec){ (void *)(uintptr_t)put->address, put->size };
	ep->rest[1] = (struct iovec){ ep->padding, ESP_PADDED(put->size) - put->size };
	return true;
}

/* Deliver a whole fragment to the PML. False: it is none. */
static bool deliver(struct mca_btl_base_endpoint_t *ep, const struct mca_btl_esp_hdr *hdr)
{
	mca_btl_base_module_t *btl = &ep->module->super;
	mca_btl_active_message_callback_t *cb = &mca_btl_base_active_message_trigger[hdr->tag];
	mca_btl_base_segment_t segment = {
		.seg_addr.pval	= (void *)(hdr + 1),
		.seg_len	= hdr->size,
	};
	ESP_RECEIVED des = {
		.des_segments		= &segment,
		.des_segment_count	= 1,
	};

	if (hdr->tag == ESP_TAG_PUT)
		return begin_put(ep, hdr);
	if (!cb->cbfunc)
		return false;
#if OPAL_MAJOR_VERSION < 5
	cb->cbfunc(btl, hdr->tag, &des, cb->cbdata);
#else
	des.endpoint = ep;
	des.tag = hdr->tag;
	des.cbdata = cb->cbdata;
	cb->cbfunc(btl, &des);
#endif
	return true;
}

static bool header_ok(struct mca_btl_base_endpoint_t *ep, const struct mca_btl_esp_hdr *hdr)
{
	return hdr->tag < MCA_BTL_TAG_MAX && hdr->size <= ep->proc->modex->max_frag;
}

/* Note that the peer has sent BYE. */
static void ended(struct mca_btl_base_endpoint_t *ep)
{
	OPAL_THREAD_LOCK(&ep->lock);
	ep->state = ESP_ENDED;
	mca_btl_esp_unwatch(&ep->watch);
	OPAL_THREAD_UNLOCK(&ep->lock);
}

/* Move ep->rest by GOT bytes that have come. Returns the number of those beyond it. */
static size_t advance(struct mca_btl_base_endpoint_t *ep, size_t got)
{
	for (size_t i = 0; i < ARRAY_SIZE(ep->rest); i++) {
		struct iovec *rest = &ep->rest[i];
		size_t part = got < rest->iov_len ? got : rest->iov_len;

		rest->iov_base = (char *)rest->iov_base + part;
		rest->iov_len -= part;
		got -= part;
	}
	return got;
}

static bool awaits_rest(const struct mca_btl_base_endpoint_t *ep)
{
	return ep->rest[0].iov_len || ep->rest[1].iov_len;
}

/*
 * Copy the part of a put that came with its header, of the SIZE bytes at FROM. Returns its length.
 */
static size_t copy_put(struct mca_btl_base_endpoint_t *ep, const char *from, size_t size)
{
	size_t part = size < ep->rest[0].iov_len ? size : ep->rest[0].iov_len;

	memcpy(ep->rest[0].iov_base, from, part);
	return size - advance(ep, size);
}

/*
 * Deliver the whole fragments of the SIZE bytes at BUFFER, and keep the rest: the beginning of a
 * header in ep->head, that of a fragment in ep->partial, that of a put where it belongs. Returns
 * the number of fragments, or -1.
 */
static int parse(struct mca_btl_base_endpoint_t *ep, char *buffer, size_t size)
{
	int n = 0;

	for (;;) {
		struct mca_btl_esp_hdr *hdr;
		size_t total;

		if (awaits_rest(ep)) {
			size_t part = copy_put(ep, buffer, size);

			buffer += part;
			size -= part;
		}
		if (size < sizeof(*hdr))
			break;
		hdr = (struct mca_btl_esp_hdr *)buffer;
		total = sizeof(*hdr) + ESP_PADDED(hdr->size);
		if (!header_ok(ep, hdr))
			return -1;
		if (hdr->tag == ESP_TAG_BYE) {
			ended(ep);
			return n + 1;
		}
		if (size < total) {
			ep->partial = malloc(total);
			if (!ep->partial)
				return -1;
			memcpy(ep->partial, buffer, size);
			ep->rest[0] = (struct iovec){ ep->partial + size, total - size };
			return n;
		}
		if (!deliver(ep, hdr))
			return -1;
		n++;
		buffer += total;
		size -= total;
	}
	memcpy(ep->head.bytes, buffer, size);
	ep->head_have = size;
	return n;
}

static int receive(struct mca_btl_base_endpoint_t *ep)
{
	char *buffer = mca_btl_esp_component.recv_buffer;
	size_t kept = ep->head_have;	/* 0 if a rest is awaited */
	struct iovec iov[3] = { ep->rest[0], ep->rest[1],
				{ buffer + kept, ESP_RECV_BUFFER - kept } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };
	int n = 0, more;
	ssize_t got;
	bool ok;

	if (!awaits_rest(ep)) {
		memcpy(buffer, ep->head.bytes, kept);
		msg.msg_iov += 2;
		msg.msg_iovlen = 1;
	}
	got = recvmsg(ep->watch.fd, &msg, MSG_DONTWAIT);
	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got <= 0) {
		fail(ep, "lost the connection with", got ? errno : 0);
		return 0;
	}
	ep->head_have = 0;
	got = kept + advance(ep, got);
	if (awaits_rest(ep))
		return 0;
	if (ep->partial) {
		char *whole = ep->partial;

		ep->partial = NULL;
		ok = deliver(ep, (struct mca_btl_esp_hdr *)whole);
		free(whole);
		if (!ok)
			goto bad;
		n++;
	}
	more = parse(ep, buffer, got);
	if (more >= 0)
		return n + more;
bad:
	fail(ep, "lost the connection with", EPROTO);
	return n;
}

static int ready(struct mca_btl_esp_watch *watch, uint32_t events)
{
	struct mca_btl_base_endpoint_t *ep = container_of(watch, struct mca_btl_base_endpoint_t,
							  watch);
	int n = 0;

	/* Only the holder of progress_lock ends these states; any thread may set FAILED. */
	switch (ep->state) {
	case ESP_CONNECTING:
		return connected(ep);
	case ESP_GREETED:
		return answered(ep);
	case ESP_CONNECTED:
		if (events & EPOLLOUT)
			n = writable(ep);
		if ((events & ~EPOLLOUT) && ep->state == ESP_CONNECTED)
			n += receive(ep);
		return n;
	default:
		return 0;
	}
}
