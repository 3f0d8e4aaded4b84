// SPDX-License-Identifier: BSD-3-Clause
/*
 * The names that are registered, and the file that keeps them. A change is a new file, which is on
 * the disk before it is renamed to the old one. So whenever the process is killed, or the power
 * fails, there is a whole file, and it has all that was answered.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "named.h"

_Static_assert(sizeof(struct registry_header) == 24, "no holes");
_Static_assert(sizeof(struct registry_record) == 96, "no holes");

static void step(struct registry *g)
{
	if (g->step)
		g->step();
}

static uint32_t file_crc(const struct registry_header *h, const struct registry_record *r)
{
	uint32_t c = crc32c(~0u, h, offsetof(struct registry_header, crc));

	return crc32c(c, r, h->count * sizeof(*r));
}

/*
 * Writing
 */

static int write_all(int fd, const void *data, size_t n)
{
	const char *p = data;
	ssize_t done;

	for (; n; n -= done, p += done) {
		done = write(fd, p, n);
		if (done < 0 && errno == EINTR)
			done = 0;
		if (done < 0)
			return AM_ERR_SYSTEM;
	}
	return AM_OK;
}

static int write_records(struct registry *g, int fd)
{
	struct registry_header h = { .version = REGISTRY_VERSION, .count = g->n };
	struct registry_record *r = calloc(g->n + 1, sizeof(*r));
	unsigned int i;
	int error;

	if (!r)
		return AM_ERR_RESOURCE;
	for (i = 0; i < g->n; i++)
		r[i] = g->entries[i].r;
	memcpy(h.magic, REGISTRY_MAGIC, sizeof(h.magic));
	h.crc = file_crc(&h, r);
	error = write_all(fd, &h, sizeof(h));
	step(g);
	if (!error)
		error = write_all(fd, r, g->n * sizeof(*r));
	free(r);
	return error;
}

/*
 * Check that the locked file still has the name. If it was removed, another server that makes a new
 * one needs PATH.new, which is locked as well; so the answer holds until PATH.new is renamed.
 */
static int still_named(struct registry *g)
{
	struct stat st, named;

	if (!fstat(g->fd, &st) && !stat(g->path, &named) && st.st_dev == named.st_dev &&
	    st.st_ino == named.st_ino)
		return AM_OK;
	errno = ESTALE;
	return AM_ERR_SYSTEM;
}

/*
 * Write all names to a new file, and rename it. After an error the old file is there, or ->unsure
 * is set.
 */
static int save(struct registry *g)
{
	int fd, error, why;
	char *part;

	g->replaced = false;
	if (asprintf(&part, "%s.new", g->path) < 0)
		return AM_ERR_RESOURCE;
	step(g);
	error = file_open_part(part, &fd);
	if (error) {
		if (fd >= 0)
			close(fd);
		free(part);
		return error;
	}
	step(g);
	error = write_records(g, fd);
	step(g);
	if (!error && fsync(fd))
		error = AM_ERR_SYSTEM;
	step(g);
	if (!error && g->fd >= 0)
		error = still_named(g);
	/* If there was no file, another server may have made one by now. */
	if (!error && renameat2(AT_FDCWD, part, AT_FDCWD, g->path,
				g->fd < 0 ? RENAME_NOREPLACE : 0))
		error = AM_ERR_SYSTEM;
	if (error) {
		why = errno;
		unlink(part);
		close(fd);
		free(part);
		errno = why;
		return error;
	}
	free(part);
	/* The new file was locked before another server could find it. */
	if (g->fd >= 0)
		close(g->fd);
	g->fd = fd;
	g->replaced = true;
	step(g);
	g->stale = false;
	g->unsure = true;
	error = file_sync_name(g->path);
	g->unsure = error;
	step(g);
	return error;
}

/*
 * Reading: all that the file says is checked before it is believed, even if the checksum is right.
 */

static bool record_valid(const struct registry_record *r)
{
	static const char none[AM_MAX_NAME + 1];
	size_t len = strnlen(r->name, sizeof(r->name));

	return registered_name_valid(r->name, len) &&
	       !memcmp(r->name + len, none, sizeof(r->name) - len) &&
	       r->kind >= AM_KIND_MEM && r->kind <= AM_KIND_VERBS &&
	       (r->kind == AM_KIND_MEM || (r->port && r->port <= 65535)) &&
	       !r->zero[0] && !r->zero[1] && !r->zero[2] && !r->zero2;
}

static int read_all(int fd, void *data, size_t n)
{
	char *p = data;
	ssize_t done;

	for (; n; n -= done, p += done) {
		done = read(fd, p, n);
		if (done < 0 && errno == EINTR)
			done = 0;
		else if (done <= 0)
			return done ? AM_ERR_SYSTEM : AM_ERR_LOG_DAMAGED;
	}
	return AM_OK;
}

static struct registry_entry *find(struct registry *g, uint8_t kind, const char *name)
{
	unsigned int i;

	for (i = 0; i < g->n; i++)
		if (g->entries[i].r.kind == kind && !strcmp(g->entries[i].r.name, name))
			return &g->entries[i];
	return NULL;
}

static uint64_t lease_end(const struct registry_record *r, uint64_t now)
{
	return r->lease ? now + r->lease : 0;
}

static int make_room(struct registry *g, unsigned int room)
{
	struct registry_entry *entries;

	if (room <= g->room)
		return AM_OK;
	entries = realloc(g->entries, room * sizeof(*entries));
	if (!entries)
		return AM_ERR_RESOURCE;
	g->entries = entries;
	g->room = room;
	return AM_OK;
}

/*
 * Take the records. All leases begin anew, because none could be renewed while the server was away.
 */
static int take_records(struct registry *g, const struct registry_record *r, unsigned int n,
			uint64_t now)
{
	int error = make_room(g, n);

	for (; !error && n; n--, r++) {
		if (!record_valid(r) || find(g, r->kind, r->name))
			return AM_ERR_LOG_DAMAGED;
		g->entries[g->n++] = (struct registry_entry) { *r, lease_end(r, now) };
	}
	return error;
}

static int load(struct registry *g, uint64_t now)
{
	struct registry_record *r;
	struct registry_header h;
	struct stat st, named;
	int error;

	if (flock(g->fd, LOCK_EX | LOCK_NB) || fstat(g->fd, &st))
		return AM_ERR_SYSTEM;
	/* The server that uses the file may have replaced it before it was locked here. */
	if (stat(g->path, &named) || st.st_dev != named.st_dev || st.st_ino != named.st_ino) {
		errno = EWOULDBLOCK;
		return AM_ERR_SYSTEM;
	}
	if (!S_ISREG(st.st_mode))
		return AM_ERR_LOG_FOREIGN;
	error = read_all(g->fd, &h, sizeof(h));
	if (error)
		return error;
	if (memcmp(h.magic, REGISTRY_MAGIC, sizeof(h.magic)) || h.version != REGISTRY_VERSION)
		return AM_ERR_LOG_FOREIGN;
	if (h.count > REGISTRY_MOST ||
	    (uint64_t)st.st_size != sizeof(h) + h.count * sizeof(*r))
		return AM_ERR_LOG_DAMAGED;
	r = calloc(h.count + 1, sizeof(*r));
	if (!r)
		return AM_ERR_RESOURCE;
	error = read_all(g->fd, r, h.count * sizeof(*r));
	if (!error && (h.crc != file_crc(&h, r) || h.zero))
		error = AM_ERR_LOG_DAMAGED;
	if (!error)
		error = take_records(g, r, h.count, now);
	free(r);
	/* Its writer may have been killed before the name was on the disk. */
	return error ? error : file_sync_name(g->path);
}

int registry_open(struct registry *g, const char *path, uint64_t now)
{
	int error, why;

	g->path = path;
	g->n = 0;
	g->room = 0;
	g->entries = NULL;
	g->unsure = false;
	g->stale = false;
	error = make_room(g, g->most);
	if (error)
		return error;
	g->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (g->fd >= 0)
		error = load(g, now);
	else
		error = errno == ENOENT ? save(g) : AM_ERR_SYSTEM;
	why = errno;
	if (error)
		registry_close(g);
	errno = why;
	return error;
}

void registry_close(struct registry *g)
{
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
	free(g->entries);
	g->entries = NULL;
	g->n = 0;
	g->room = 0;
}

/*
 * Names
 */

static bool over(const struct registry_entry *e, uint64_t now)
{
	return e->end && now >= e->end;
}

struct registry_entry *registry_find(struct registry *g, uint8_t kind, const char *name,
				     uint64_t now)
{
	struct registry_entry *e = find(g, kind, name);

	return e && !over(e, now) ? e : NULL;
}

static unsigned int of_host(const struct registry *g, const struct registry_record *r)
{
	unsigned int i, n = 0;

	for (i = 0; i < g->n; i++)
		n += g->entries[i].r.kind == r->kind &&
		     !memcmp(g->entries[i].r.host, r->host, sizeof(r->host));
	return n;
}

/* Remove the names whose lease is over; they leave the file with the next change. */
static void drop(struct registry *g, uint64_t now, struct named_stats *stats)
{
	unsigned int i, n = 0, was = g->n;

	for (i = 0; i < was; i++)
		if (!over(&g->entries[i], now))
			g->entries[n++] = g->entries[i];
	g->n = n;
	g->stale |= n < was;
	stats->expired += was - n;
}

bool registry_owns(const struct registry_record *r, const struct registry_entry *e)
{
	return !memcmp(e->r.host, r->host, sizeof(r->host)) && e->r.key == r->key;
}

static enum names_code add(struct registry *g, const struct registry_record *r, uint64_t now,
			   struct named_stats *stats)
{
	if (g->n >= g->most) {
		stats->full++;
		return NAMES_FULL;
	}
	if (of_host(g, r) >= g->most_of_host) {
		stats->host_full++;
		return NAMES_FULL;
	}
	g->entries[g->n++] = (struct registry_entry) { *r, lease_end(r, now) };
	if (save(g)) {
		/* If the file was replaced, the name is in it, but perhaps not on the disk. */
		if (!g->replaced)
			g->n--;
		stats->store_errors++;
		return NAMES_STORE;
	}
	stats->registered++;
	return NAMES_OK;
}

enum names_code registry_set(struct registry *g, const struct registry_record *r, uint64_t now,
			     struct named_stats *stats)
{
	struct registry_entry *e, old;

	drop(g, now, stats);
	e = find(g, r->kind, r->name);
	if (!e)
		return add(g, r, now, stats);
	if (!registry_owns(r, e)) {
		stats->taken++;
		return NAMES_TAKEN;
	}
	old = *e;
	e->end = lease_end(r, now);
	if (!memcmp(&e->r, r, sizeof(*r)) && !g->unsure) {
		stats->renewed++;
		return NAMES_OK;
	}
	e->r = *r;
	if (save(g)) {
		if (!g->replaced)
			*e = old;
		stats->store_errors++;
		return NAMES_STORE;
	}
	stats->replaced++;
	return NAMES_OK;
}

/* Make sure that earlier changes are on the disk. */
enum names_code registry_settle(struct registry *g)
{
	return g->unsure && save(g) ? NAMES_STORE : NAMES_OK;
}

enum names_code registry_remove(struct registry *g, struct registry_entry *e)
{
	struct registry_entry old = *e;

	*e = g->entries[--g->n];
	if (!save(g))
		return NAMES_OK;
	if (!g->replaced) {
		g->entries[g->n++] = *e;
		*e = old;
	}
	return NAMES_STORE;
}

/* Write the file if leases are over, or if a change may not be on the disk. Called regularly. */
void registry_look(struct registry *g, uint64_t now, struct named_stats *stats)
{
	drop(g, now, stats);
	if ((g->stale || g->unsure) && save(g))
		stats->store_errors++;
}
