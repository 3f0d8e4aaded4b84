// SPDX-License-Identifier: BSD-3-Clause
/*
 * The transaction log: the state of an endpoint's transfers and connections, in a file that is
 * mapped. internal.h has its layout.
 *
 * Each step is a commit: it writes the copy of an entry that isn't valid, then the word that makes
 * this copy the valid one. A process that is killed has made all stores before some instruction and
 * none after it, and the page cache keeps them; so only the compiler must keep their order. A
 * machine that fails has some of the stores on its disk, in any order; so with log_sync, msync()
 * comes before and after each word.
 *
 * Data have one place, which is written only while no valid copy refers to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"

#define ENTRY(body)	(sizeof(uint64_t) + 2 * sizeof(body))

struct am_log {
	int		fd;
	uint8_t		*map;
	uint64_t	size;
	uint32_t	id;
	/* Offsets in the file. */
	uint64_t	peers, slots, records, data;
};

struct log_slot {
	uint64_t	instance;	/* the next one */
};

_Static_assert(sizeof(struct log_header) == 60, "no holes");
_Static_assert(sizeof(struct log_peer) == 72, "no holes");
_Static_assert(sizeof(struct log_record) == 104, "no holes");

/*
 * Layout
 */

static uint64_t peer_at(const struct am_log *l, uint64_t peer)
{
	return l->peers + peer * ENTRY(struct log_peer);
}

static uint64_t slot_at(const struct am_endpoint *ep, uint64_t peer, unsigned int slot)
{
	return ep->log->slots + (peer * ep->opt.credits + slot) * ENTRY(struct log_slot);
}

static uint64_t record_at(const struct am_log *l, uint64_t record)
{
	return l->records + record * ENTRY(struct log_record);
}

static uint64_t received(const struct reply *r)
{
	const struct am_endpoint *ep = r->peer->ep;

	return ep->opt.pool + (uint64_t)(r->peer - ep->peers) * ep->opt.credits + r->slot;
}

/* Lay out the file. By the limits of the options, offsets are less than 2^45. */
static void lay_out(struct am_log *l, const struct am_options *o)
{
	uint64_t slots = (uint64_t)o->peers * o->credits, records = o->pool + slots;

	l->peers = (sizeof(struct log_header) + 7) & ~7ull;
	l->slots = l->peers + o->peers * ENTRY(struct log_peer);
	l->records = l->slots + slots * ENTRY(struct log_slot);
	l->data = l->records + records * ENTRY(struct log_record);
	l->size = l->data + records * 2 * o->log_data;
}

/* Set the places of a record's data. */
static void give_places(struct am_endpoint *ep, uint64_t record, struct am_message *request,
			struct am_message *reply)
{
	request->data = ep->log->map + ep->log->data + record * 2 * ep->opt.log_data;
	reply->data = request->data + ep->opt.log_data;
	request->room = ep->opt.log_data;
	reply->room = ep->opt.log_data;
	request->logged = true;
	reply->logged = true;
}

void log_places(struct reply *r)
{
	if (r->peer->ep->log)
		give_places(r->peer->ep, received(r), &r->request, &r->msg);
}

bool log_too_big(struct am_endpoint *ep, uint32_t total)
{
	return ep->log && total > ep->opt.log_data;
}

/*
 * Entries
 */

static void step(struct am_endpoint *ep)
{
	const struct am_faults *f = &ep->transport.faults;

	/* A process killed here has made the stores before this, and none after it. */
	atomic_signal_fence(memory_order_seq_cst);
	if (f->step)
		f->step(f->arg);
	atomic_signal_fence(memory_order_seq_cst);
}

static void to_disk(struct am_endpoint *ep, const void *start, size_t n)
{
	uintptr_t first = (uintptr_t)start & -(uintptr_t)sysconf(_SC_PAGESIZE);

	if (!ep->opt.log_sync || !msync((void *)first, (uintptr_t)start + n - first, MS_SYNC))
		return;
	ep->stats.log_errors++;
	ep->transport.error = errno;
}

static uint32_t entry_crc(const struct am_log *l, uint64_t at, uint32_t number, const void *body,
			  size_t n)
{
	uint32_t c = crc32c(~0u, &l->id, sizeof(l->id));

	c = crc32c(c, &at, sizeof(at));
	c = crc32c(c, &number, sizeof(number));
	return crc32c(c, body, n);
}

static void commit(struct am_endpoint *ep, uint64_t at, const void *body, size_t n)
{
	struct am_log *l = ep->log;
	uint64_t *word = (uint64_t *)(l->map + at);
	uint8_t *copies = (uint8_t *)(word + 1);
	uint32_t number = *word >> 32;

	if (!memcmp(copies + (number & 1) * n, body, n))
		return;
	number++;
	step(ep);
	memcpy(copies + (number & 1) * n, body, n);
	to_disk(ep, copies, 2 * n);
	step(ep);
	__atomic_store_n(word, (uint64_t)number << 32 | entry_crc(l, at, number, body, n),
			 __ATOMIC_RELAXED);
	to_disk(ep, word, sizeof(*word));
	step(ep);
}

/* Copy and check the valid copy: @body can't be changed by another process. */
static int load(const struct am_log *l, uint64_t at, void *body, size_t n)
{
	const uint8_t *entry = l->map + at;
	uint64_t word;

	memcpy(&word, entry, sizeof(word));
	memcpy(body, entry + sizeof(word) + (word >> 32 & 1) * n, n);
	return (uint32_t)word == entry_crc(l, at, word >> 32, body, n) ?
	       AM_OK : AM_ERR_LOG_DAMAGED;
}

/*
 * Steps
 */

void log_seal(struct am_endpoint *ep, struct am_message *m)
{
	if (!ep->log || !m->total)
		return;
	m->crc = crc32c(~0u, m->data, m->total);
	to_disk(ep, m->data, m->total);
	step(ep);
}

/* Copy a message that came to the log. The data of one in pieces are in the segment. */
void log_copy(struct am_endpoint *ep, struct am_message *m, const struct wire *w)
{
	if (!ep->log)
		return;
	m->size = w->size;
	m->handler = w->handler;
	m->nargs = w->nargs;
	memcpy(m->args, w->args, sizeof(m->args));
	m->total = w->total;
	m->offset = w->offset;
	if (w->total)
		memcpy(m->data, w->size == WIRE_BULK ? ep->seg + w->offset : w->data, w->total);
	log_seal(ep, m);
}

static void pack(struct log_message *to, const struct am_message *m)
{
	if (m->size == WIRE_EMPTY)
		return;
	to->size = m->size;
	to->nargs = m->nargs;
	to->handler = m->handler;
	to->total = m->total;
	to->offset = m->offset;
	to->crc = m->total ? m->crc : 0;
	memcpy(to->args, m->args, sizeof(to->args));
}

void log_request(struct request *r)
{
	struct am_endpoint *ep = r->ep;
	struct log_record rec;

	if (!ep->log)
		return;
	memset(&rec, 0, sizeof(rec));
	/* A forgotten entry keeps its serial, because the program may have its handle. */
	rec.serial = r->serial;
	if (r->known) {
		rec.known = 1;
		rec.state = r->state;
		rec.ack = r->ack;
		rec.operation = r->operation;
		rec.why = r->cause;
		rec.handled = r->handled;
		rec.slot = r->slot;
		rec.instance = r->instance;
		rec.session = r->session;
		rec.name = r->name;
		pack(&rec.request, &r->msg);
		pack(&rec.reply, &r->answer);
	}
	commit(ep, record_at(ep->log, r - ep->pool), &rec, sizeof(rec));
}

/* Forget an entry, before its place takes new data. */
void log_forget(struct request *r)
{
	if (!r->ep->log)
		return;
	r->known = false;
	log_request(r);
}

void log_reply(struct reply *r)
{
	struct am_endpoint *ep = r->peer->ep;
	struct log_record rec;

	if (!ep->log)
		return;
	memset(&rec, 0, sizeof(rec));
	if (r->known) {
		rec.known = 1;
		rec.state = r->state;
		rec.ack = r->ack;
		rec.operation = r->operation;
		rec.why = r->reason;
		rec.instance = r->instance;
		rec.serial = r->serial;
		pack(&rec.request, &r->request);
		pack(&rec.reply, &r->msg);
	}
	commit(ep, record_at(ep->log, received(r)), &rec, sizeof(rec));
}

void log_slot(struct peer *p, unsigned int slot)
{
	struct log_slot s = { .instance = p->instance[slot] };

	if (p->ep->log)
		commit(p->ep, slot_at(p->ep, p - p->ep->peers, slot), &s, sizeof(s));
}

void log_peer(struct peer *p)
{
	struct am_endpoint *ep = p->ep;
	struct log_peer rec;

	if (!ep->log)
		return;
	memset(&rec, 0, sizeof(rec));
	rec.serial = ep->serial;
	if (p->hello == HELLO_DONE) {
		rec.flags |= LOG_CONNECTED;
		rec.tag = p->tag;
		rec.session = p->session;
		rec.credits = p->credits;
	}
	if (p->known) {
		rec.flags |= LOG_KNOWN;
		rec.peer_nonce = p->peer_nonce;
		rec.peer_session = p->peer_session;
		rec.peer_credits = p->peer_credits;
	}
	if (p->offered) {
		rec.flags |= LOG_OFFERED;
		rec.offered_nonce = p->offered_nonce;
		rec.offered_session = p->offered_session;
		rec.offered_credits = p->offered_credits;
	}
	if (rec.flags)
		rec.name = p->name;
	commit(ep, peer_at(ep->log, p - ep->peers), &rec, sizeof(rec));
}

/*
 * Restoring: all that the file says is checked before it is believed, even if the checksum is
 * right.
 */

static int unpack(struct am_endpoint *ep, struct am_message *m, const struct log_message *from)
{
	static const struct log_message none;

	if (from->size == WIRE_EMPTY) {
		if (memcmp(from, &none, sizeof(none)))
			return AM_ERR_LOG_DAMAGED;
		m->size = WIRE_EMPTY;
		return AM_OK;
	}
	if (from->size > WIRE_BULK || from->nargs > AM_MAX_ARGS || !handler_valid(from->handler))
		return AM_ERR_LOG_DAMAGED;
	if (from->total > (from->size == WIRE_SHORT ? 0 : from->size == WIRE_MEDIUM ?
			   AM_MAX_MEDIUM : ep->opt.log_data))
		return AM_ERR_LOG_DAMAGED;
	if (from->crc != (from->total ? crc32c(~0u, m->data, from->total) : 0))
		return AM_ERR_LOG_DAMAGED;
	m->size = from->size;
	m->nargs = from->nargs;
	m->handler = from->handler;
	m->total = from->total;
	m->offset = from->offset;
	m->crc = from->crc;
	memcpy(m->args, from->args, sizeof(m->args));
	return AM_OK;
}

/* Note a serial of the log, so that no later handle is the same. */
static void serial_seen(struct am_endpoint *ep, uint32_t serial)
{
	if (serial > ep->serial)
		ep->serial = serial;
}

static int restore_reply(struct reply *r)
{
	struct am_endpoint *ep = r->peer->ep;
	struct log_record rec;
	int error = load(ep->log, record_at(ep->log, received(r)), &rec, sizeof(rec));

	if (error || !rec.known)
		return error;
	if (rec.why > WHY_LOST ||
	    !status_possible(ep->protocol->target, ep->protocol->ntarget, rec.state, rec.ack,
			     rec.operation))
		return AM_ERR_LOG_DAMAGED;
	error = unpack(ep, &r->request, &rec.request);
	if (!error)
		error = unpack(ep, &r->msg, &rec.reply);
	if (error)
		return error;
	serial_seen(ep, rec.serial);
	r->known = true;
	r->state = rec.state;
	r->ack = rec.ack;
	r->operation = rec.operation;
	r->reason = rec.why;
	r->instance = rec.instance;
	r->serial = rec.serial;
	r->undecided = rec.state == AM_STATE_SENT || rec.state == AM_STATE_ACKED;
	if (r->undecided && r->request.size == WIRE_EMPTY)
		return AM_ERR_LOG_DAMAGED;
	/* Its handler may have begun, so that a duplicate must not start it. */
	r->running = r->undecided;
	r->sent = rec.state == AM_STATE_DONE;
	r->buffer = r->undecided || rec.state == AM_STATE_DONE;
	ep->stats.buffers += r->buffer;
	/* Retransmit the reply until the initiator has acknowledged it. */
	if (ep->protocol->pooled && rec.state == AM_STATE_DONE)
		timer_arm(ep, &r->timer, ep->opt.timeout_us);
	return AM_OK;
}

static int restore_connected(struct peer *p, const struct log_peer *rec)
{
	struct am_endpoint *ep = p->ep;
	struct log_slot s;
	unsigned int i;
	int error;

	if (!rec->credits || rec->credits > ep->opt.credits)
		return AM_ERR_LOG_DAMAGED;
	p->out = calloc(rec->credits, sizeof(*p->out));
	p->instance = calloc(rec->credits, sizeof(*p->instance));
	if (!p->out || !p->instance)
		return AM_ERR_RESOURCE;
	p->hello = HELLO_DONE;
	p->tag = rec->tag;
	p->session = rec->session;
	p->credits = rec->credits;
	p->one_bit = ep->opt.protocol == AM_NWAY && p->credits == 1;
	for (i = 0; i < p->credits; i++) {
		error = load(ep->log, slot_at(ep, p - ep->peers, i), &s, sizeof(s));
		if (error)
			return error;
		if (s.instance > UINT16_MAX)
			return AM_ERR_LOG_DAMAGED;
		p->instance[i] = s.instance;
	}
	return AM_OK;
}

static int restore_known(struct peer *p, const struct log_peer *rec)
{
	unsigned int i;
	int error = AM_OK;

	if (!rec->peer_credits || rec->peer_credits > p->ep->opt.credits)
		return AM_ERR_LOG_DAMAGED;
	p->in = replies_new(p, rec->peer_credits);
	if (!p->in)
		return AM_ERR_RESOURCE;
	p->known = true;
	p->peer_nonce = rec->peer_nonce;
	p->peer_session = rec->peer_session;
	p->peer_credits = rec->peer_credits;
	p->one_bit_in = p->ep->opt.protocol == AM_NWAY && p->peer_credits == 1;
	for (i = 0; !error && i < p->peer_credits; i++)
		error = restore_reply(&p->in[i]);
	return error;
}

static int restore_peer(struct peer *p)
{
	struct am_endpoint *ep = p->ep;
	struct log_peer rec;
	int error = load(ep->log, peer_at(ep->log, p - ep->peers), &rec, sizeof(rec));
	en_t name = rec.name;

	if (error)
		return error;
	serial_seen(ep, rec.serial);
	if (!rec.flags)
		return AM_OK;
	if (rec.flags > (LOG_CONNECTED | LOG_KNOWN | LOG_OFFERED) ||
	    ep->transport.ops->normalize(&ep->transport, &name) || peer_find(ep, &name))
		return AM_ERR_LOG_DAMAGED;
	p->used = true;
	p->name = name;
	p->heard = now(ep);
	if (rec.flags & LOG_CONNECTED)
		error = restore_connected(p, &rec);
	if (!error && rec.flags & LOG_KNOWN)
		error = restore_known(p, &rec);
	if (error || !(rec.flags & LOG_OFFERED))
		return error;
	if (!rec.offered_credits || rec.offered_credits > ep->opt.credits)
		return AM_ERR_LOG_DAMAGED;
	p->offered = true;
	p->offered_nonce = rec.offered_nonce;
	p->offered_session = rec.offered_session;
	p->offered_credits = rec.offered_credits;
	return AM_OK;
}

/* Give a request that isn't over its old slot. */
static int restore_slot(struct request *r)
{
	struct peer *p = peer_find(r->ep, &r->name);
	uint16_t mask, next;

	if (!p || p->hello != HELLO_DONE || p->session != r->session ||
	    r->slot >= p->credits || p->out[r->slot] || r->msg.size == WIRE_EMPTY)
		return AM_ERR_LOG_DAMAGED;
	mask = p->one_bit ? 1 : 0xffff;
	next = p->instance[r->slot];
	/* The process may have ended between the record and the slot's next number. */
	if (((r->instance ^ next) & mask) == 0)
		p->instance[r->slot]++;
	else if (((r->instance + 1) ^ next) & mask)
		return AM_ERR_LOG_DAMAGED;
	p->out[r->slot] = r;
	r->peer = p;
	r->ep->requests++;
	r->ep->stats.buffers++;
	return AM_OK;
}

static int restore_request(struct request *r)
{
	struct am_endpoint *ep = r->ep;
	struct log_record rec;
	int error = load(ep->log, record_at(ep->log, r - ep->pool), &rec, sizeof(rec));

	if (error)
		return error;
	serial_seen(ep, rec.serial);
	if (!rec.known)
		return AM_OK;
	if (rec.why > AM_CAUSE_DECIDED || rec.handled > 1 ||
	    !status_possible(ep->protocol->initiator, ep->protocol->ninitiator, rec.state,
			     rec.ack, rec.operation) ||
	    ep->transport.ops->normalize(&ep->transport, &rec.name))
		return AM_ERR_LOG_DAMAGED;
	error = unpack(ep, &r->msg, &rec.request);
	if (!error)
		error = unpack(ep, &r->answer, &rec.reply);
	if (error)
		return error;
	r->known = true;
	r->state = rec.state;
	r->ack = rec.ack;
	r->operation = rec.operation;
	r->cause = rec.why;
	r->handled = rec.handled;
	r->slot = rec.slot;
	r->instance = rec.instance;
	r->serial = rec.serial;
	r->session = rec.session;
	r->name = rec.name;
	r->timer.kind = TIMER_REQUEST;
	r->sent = rec.state != AM_STATE_CREATED;
	r->sent_all = r->sent;
	r->undecided = rec.state == AM_STATE_DONE ? !rec.handled : rec.state != AM_STATE_ABANDONED;
	if (rec.state == AM_STATE_DONE || rec.state == AM_STATE_ABANDONED)
		return AM_OK;
	return restore_slot(r);
}

static int restore(struct am_endpoint *ep)
{
	unsigned int i, j;
	int error = AM_OK;

	for (i = 0; !error && i < ep->opt.peers; i++)
		error = restore_peer(&ep->peers[i]);
	for (i = 0; !error && i < ep->opt.pool; i++)
		error = restore_request(&ep->pool[i]);
	if (error)
		return error;
	ep->stats.buffers_peak = ep->stats.buffers;
	for (i = 0; i < ep->opt.peers; i++) {
		struct peer *p = &ep->peers[i];

		/* With one bit, a late answer could be taken for the next request's. */
		if (p->hello == HELLO_DONE && p->one_bit && !p->out[0])
			p->hello = HELLO_NONE;
		for (j = 0; p->hello == HELLO_DONE && j < p->credits; j++)
			log_slot(p, j);
		log_peer(p);
	}
	return AM_OK;
}

/*
 * Files
 */

static void make_header(const struct am_endpoint *ep, uint32_t id, struct log_header *h)
{
	memset(h, 0, sizeof(*h));
	memcpy(h->magic, LOG_MAGIC, sizeof(LOG_MAGIC));
	h->version = LOG_VERSION;
	h->id = id;
	h->protocol = ep->opt.protocol;
	h->credits = ep->opt.credits;
	h->pool = ep->opt.pool;
	h->peers = ep->opt.peers;
	h->data = ep->opt.log_data;
	h->name = ep->transport.name;
	h->crc = crc32c(~0u, h, offsetof(struct log_header, crc));
}

/* Allocate the file's blocks, so that no store fails for want of them, and map it. */
static int map_file(struct am_log *l)
{
	if (l->size > SIZE_MAX || (off_t)l->size < 0)
		return AM_ERR_BAD_ARG;
	errno = posix_fallocate(l->fd, 0, l->size);
	if (errno)
		return AM_ERR_SYSTEM;
	l->map = mmap(NULL, l->size, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (l->map != MAP_FAILED)
		return AM_OK;
	l->map = NULL;
	return AM_ERR_SYSTEM;
}

/* Write the log of an endpoint without peers and transfers. */
static int fill(struct am_endpoint *ep)
{
	struct am_log *l = ep->log;
	static const struct log_record none;
	struct log_header h;
	uint64_t at, size;

	if (getrandom(&l->id, sizeof(l->id), 0) != sizeof(l->id))
		return AM_ERR_SYSTEM;
	for (at = l->peers; at < l->data; at += sizeof(uint64_t) + 2 * size) {
		size = at < l->slots ? sizeof(struct log_peer) : at < l->records ?
		       sizeof(struct log_slot) : sizeof(struct log_record);
		*(uint64_t *)(l->map + at) = entry_crc(l, at, 0, &none, size);
	}
	make_header(ep, l->id, &h);
	memcpy(l->map, &h, sizeof(h));
	return ep->opt.log_sync && msync(l->map, l->size, MS_SYNC) ? AM_ERR_SYSTEM : AM_OK;
}

int file_sync_name(const char *path)
{
	char *copy = strdup(path);
	int fd, error = AM_OK;

	if (!copy)
		return AM_ERR_RESOURCE;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		error = AM_ERR_SYSTEM;
	if (fd >= 0)
		close(fd);
	free(copy);
	return error;
}

int file_open_part(const char *part, int *fd)
{
	struct stat st, named;

	*fd = open(part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) || fstat(*fd, &st))
		return AM_ERR_SYSTEM;
	/* Another process may have renamed it before it was locked here, and uses it now. */
	if (lstat(part, &named) || st.st_dev != named.st_dev || st.st_ino != named.st_ino) {
		errno = EWOULDBLOCK;
		return AM_ERR_SYSTEM;
	}
	/* Refuse a link, or another user's file. */
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid()) {
		errno = EEXIST;
		return AM_ERR_SYSTEM;
	}
	return fchmod(*fd, 0600) || ftruncate(*fd, 0) ? AM_ERR_SYSTEM : AM_OK;
}

/* Create the log by another name first, so that there is a whole log or none. */
static int create(struct am_endpoint *ep, const char *path)
{
	struct am_log *l = ep->log;
	int error, why;
	char *part;

	if (asprintf(&part, "%s.new", path) < 0)
		return AM_ERR_RESOURCE;
	error = file_open_part(part, &l->fd);
	if (error)
		goto out;
	step(ep);
	error = map_file(l);
	if (!error)
		error = fill(ep);
	step(ep);
	if (!error && renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE))
		error = AM_ERR_SYSTEM;
	if (error) {
		why = errno;
		unlink(part);
		errno = why;
	} else if (ep->opt.log_sync) {
		error = file_sync_name(path);
	}
	step(ep);
out:
	free(part);
	return error;
}

static int open_old(struct am_endpoint *ep, const char *path)
{
	struct am_log *l = ep->log;
	struct log_header h, mine;
	struct stat st;
	int error;

	if (flock(l->fd, LOCK_EX | LOCK_NB) || fstat(l->fd, &st))
		return AM_ERR_SYSTEM;
	if (!S_ISREG(st.st_mode))
		return AM_ERR_LOG_FOREIGN;
	if (pread(l->fd, &h, sizeof(h), 0) != sizeof(h))
		return AM_ERR_LOG_DAMAGED;
	if (memcmp(h.magic, LOG_MAGIC, sizeof(LOG_MAGIC)) || h.version != LOG_VERSION)
		return AM_ERR_LOG_FOREIGN;
	if (h.crc != crc32c(~0u, &h, offsetof(struct log_header, crc)))
		return AM_ERR_LOG_DAMAGED;
	make_header(ep, h.id, &mine);
	if (ep->transport.ops->normalize(&ep->transport, &h.name) ||
	    memcmp(&h, &mine, offsetof(struct log_header, crc)))
		return AM_ERR_LOG_FOREIGN;
	if (st.st_size < 0 || (uint64_t)st.st_size != l->size)
		return AM_ERR_LOG_DAMAGED;
	l->id = h.id;
	error = map_file(l);
	if (error || !ep->opt.log_sync)
		return error;
	/* Sync what is believed from now on: its writer may have been killed before it did. */
	return msync(l->map, l->size, MS_SYNC) ? AM_ERR_SYSTEM : file_sync_name(path);
}

int log_open(struct am_endpoint *ep, const char *path)
{
	struct am_log *l = calloc(1, sizeof(*l));
	bool old = true;
	unsigned int i;
	int error;

	if (!l)
		return AM_ERR_RESOURCE;
	lay_out(l, &ep->opt);
	ep->log = l;
	l->fd = open(path, O_RDWR | O_CLOEXEC);
	if (l->fd >= 0) {
		error = open_old(ep, path);
	} else if (errno == ENOENT) {
		old = false;
		error = create(ep, path);
	} else {
		error = AM_ERR_SYSTEM;
	}
	if (error)
		return error;
	for (i = 0; i < ep->opt.pool; i++)
		give_places(ep, i, &ep->pool[i].msg, &ep->pool[i].answer);
	return old ? restore(ep) : AM_OK;
}

/* Close the log, and leave the file as it is. */
void log_close(struct am_endpoint *ep)
{
	struct am_log *l = ep->log;
	int error = errno;

	if (!l)
		return;
	ep->log = NULL;
	if (l->map)
		munmap(l->map, l->size);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
	errno = error;
}

/*
 * After a restart
 */

static void describe(struct am_packet *to, const struct am_message *m)
{
	memset(to, 0, sizeof(*to));
	if (m->size == WIRE_EMPTY)
		return;
	to->handler = m->handler;
	to->nargs = m->nargs;
	memcpy(to->args, m->args, sizeof(to->args));
	to->offset = m->size == WIRE_BULK ? m->offset : 0;
	to->nbytes = m->total;
	to->data = m->total ? m->data : NULL;
}

int AM_GetRecord(ep_t ep, am_handle_t handle, struct am_record *record)
{
	struct request *q;
	struct reply *r;
	int error = AM_GetTransferState(ep, handle, &record->state);

	if (!ep->log)
		return AM_ERR_BAD_ARG;
	if (error)
		return error;
	handle_find(ep, handle, &q, &r);
	record->peer = q ? q->name : r->peer->name;
	record->undecided = q ? q->undecided : r->undecided;
	describe(&record->request, q ? &q->msg : &r->request);
	describe(&record->reply, q ? &q->answer : &r->msg);
	return AM_OK;
}

/*
 * Set @w to the message, as if it came now. @brief has room for data that a handler may write to.
 */
static int again(struct am_endpoint *ep, const struct am_message *m, struct wire *w,
		 uint8_t *brief)
{
	w->size = m->size;
	w->nargs = m->nargs;
	w->handler = m->handler;
	w->total = m->total;
	w->offset = m->offset;
	memcpy(w->args, m->args, sizeof(w->args));
	w->data = brief;
	if (handler_check(ep, w))
		return AM_ERR_BAD_ARG;
	if (m->total)
		memcpy(m->size == WIRE_BULK ? ep->seg + m->offset : brief, m->data, m->total);
	return AM_OK;
}

/* Decide about a request that isn't over. */
static int decide_request(struct request *q, enum am_decision decision)
{
	switch (decision) {
	case AM_GIVE_UP:
		request_step(q, EV_SPENT, AM_CAUSE_DECIDED);
		return AM_OK;
	case AM_SEND_AGAIN:
		request_resume(q);
		return AM_OK;
	default:
		return AM_ERR_BAD_ARG;
	}
}

int AM_Decide(ep_t ep, am_handle_t handle, enum am_decision decision)
{
	uint8_t brief[AM_MAX_MEDIUM];
	const struct am_message *m;
	struct request *q;
	struct reply *r;
	struct wire w;
	int error;

	if (ep->bundle->depth) {
		ep->stats.refused++;
		return AM_ERR_IN_HANDLER;
	}
	error = handle_find(ep, handle, &q, &r);
	if (error)
		return error;
	if (!(q ? q->undecided : r->undecided))
		return AM_ERR_BAD_ARG;
	now(ep);
	if (q && q->peer)
		return decide_request(q, decision);
	m = q ? &q->answer : &r->request;
	if (decision == AM_RUN_AGAIN && m->size != WIRE_EMPTY)
		error = again(ep, m, &w, brief);
	else if (decision != AM_GIVE_UP && decision != AM_RUN_AGAIN)
		error = AM_ERR_BAD_ARG;
	if (error)
		return error;
	if (r) {
		reply_resume(r, decision == AM_RUN_AGAIN ? &w : NULL);
		return AM_OK;
	}
	if (decision == AM_RUN_AGAIN && m->size != WIRE_EMPTY) {
		struct peer p = { .ep = ep, .name = q->name };
		struct token t = { .ep = ep, .peer = &p };

		call_handler(ep, &t, &w);
	}
	q->undecided = false;
	q->handled = true;
	log_request(q);
	return AM_OK;
}
