/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The name server: registry.c has the names, and the file that keeps them; named.c answers
 * questions; am-named.c is the program.
 */
#ifndef AM_NAMED_H
#define AM_NAMED_H

#include "names.h"

#define REGISTRY_MAGIC		"AM names"
#define REGISTRY_VERSION	1
#define REGISTRY_MOST		16384

/* The file: struct registry_header, then a struct registry_record of each name. */
struct registry_header {
	char		magic[8];
	uint32_t	version;
	uint32_t	count;
	uint32_t	zero;
	uint32_t	crc;		/* of all of the file but this */
};

struct registry_record {
	char		name[AM_MAX_NAME + 1];	/* then zeroes */
	uint8_t		kind;			/* of transport */
	uint8_t		host[NAME_HOST];
	uint8_t		zero[3];
	uint32_t	port;
	uint32_t	lease;			/* seconds; 0: no end */
	uint32_t	zero2;
	uint64_t	key;
};

struct registry_entry {
	struct registry_record	r;
	uint64_t		end;		/* end of the lease; 0: none */
};

struct registry {
	const char		*path;
	int			fd;		/* of the file, locked; -1: there is none yet */
	unsigned int		n, room, most, most_of_host;
	struct registry_entry	*entries;
	bool			replaced;	/* the last save() has renamed a new file */
	bool			unsure;		/* the last change may not be on the disk */
	bool			stale;		/* the file has names whose lease is over */
	/* Called before and after each step to the file, for tests. */
	void			(*step)(void);
};

/* Counters for the administrator. */
struct named_stats {
	uint64_t	lookups;
	uint64_t	registered;	/* new names */
	uint64_t	renewed;	/* registrations that changed only the lease's end */
	uint64_t	replaced;	/* registrations by the owner that changed port or lease */
	uint64_t	unregistered;
	uint64_t	expired;
	uint64_t	unknown;	/* refused: the name isn't registered */
	uint64_t	taken;		/* refused: the name is another's */
	uint64_t	full;		/* refused: the registry is full */
	uint64_t	host_full;	/* refused: the host has too many names */
	uint64_t	invalid;	/* refused: the name or the port is invalid */
	uint64_t	bad_version;	/* refused: a message of another version */
	uint64_t	store_errors;	/* the disk failed */
};

struct named {
	struct registry		registry;
	struct named_stats	stats;
	uint64_t		(*now)(void);	/* seconds */
};

/*
 * Errors of registry_open(): AM_ERR_SYSTEM (errno; EWOULDBLOCK: another process has it),
 * AM_ERR_LOG_DAMAGED, AM_ERR_LOG_FOREIGN, AM_ERR_RESOURCE.
 */
int registry_open(struct registry *g, const char *path, uint64_t now);
void registry_close(struct registry *g);
struct registry_entry *registry_find(struct registry *g, uint8_t kind, const char *name,
				     uint64_t now);
/* Does the name of @e belong to the host and key of @r? */
bool registry_owns(const struct registry_record *r, const struct registry_entry *e);
enum names_code registry_set(struct registry *g, const struct registry_record *r, uint64_t now,
			     struct named_stats *stats);
enum names_code registry_settle(struct registry *g);
enum names_code registry_remove(struct registry *g, struct registry_entry *e);
void registry_look(struct registry *g, uint64_t now, struct named_stats *stats);

int named_open(struct named *s, eb_t bundle, const struct am_options *options, ep_t *ep,
	       en_t *name);

#endif /* AM_NAMED_H */
