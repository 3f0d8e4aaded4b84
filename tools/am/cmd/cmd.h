/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am - measures Active Messages: am(1).
 *
 *	main.c		finds the command
 *	logp.c		am logp: its options, and the measurement of a layer
 *	calibrate.c	am calibrate: the credits that a device and an access method need
 *	serve.c		the server of both
 *	layer.c		requests to it by Active Messages
 *	raw.c		requests to it by datagrams alone
 *	stats.c		medians and their confidence
 *	report.c	table and JSON; plot.c: pictures
 */
#ifndef AM_CMD_H
#define AM_CMD_H

#include <argp.h>
#include <errno.h>
#include <error.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include "am.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define PORT		4600	/* of the server's raw datagrams; those of protocols follow */
#define MAX_CREDITS	1024
#define FRAME_OVERHEAD	36	/* bytes of a message's frame besides its data */
#define RAW_MAX		1400	/* bytes of data of a raw datagram, and of a message in one frame */
#define MAX_ROUNDS	1001
#define MIN_ROUNDS	6	/* with fewer, no interval has 95 % */
#define MAX_MESSAGES	65536

enum {
	EXIT_OK,
	EXIT_FAILED,		/* the network, the server, or a file */
	EXIT_USAGE,
};

/* Commands: argv[0] is "am NAME", the result an exit status. */
int cmd_logp(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);

/* ---- layers ---- */

enum way { WAY_RAW, WAY_NWAY, WAY_ONEWAY, WAY_AMVIA, WAY_AMUDP, WAYS };

/**
 * struct way_info - a protocol, as LogP sees it
 * @name:	in options and results
 * @port:	of the server, beyond PORT
 * @protocol:	of Active Messages; 0: raw datagrams
 * @trip_sends:	send overheads of the critical path of a round trip (004, 3.4.2: 3 of three-way
 *		protocols)
 * @gap_receives: receive overheads of the gap at the slower side (004, 3.4.2: g = o_s + 2 o_r;
 *		where o_s is longer, the slower side sends two instead: g = 2 o_s + o_r)
 * @own_sends:	messages that the initiator sends for a request
 * @own_receives: messages that the initiator receives for a request
 */
struct way_info {
	const char		*name;
	unsigned int		port;
	enum am_protocol_id	protocol;
	unsigned int		trip_sends, gap_receives, own_sends, own_receives;
};

extern const struct way_info ways[WAYS];

struct layer;

struct layer_ops {
	/* Send a request of @size bytes, for a reply of @answer bytes; wait for a credit. */
	void (*request)(struct layer *l, size_t size, size_t answer);
	/* Take the replies that are here. */
	void (*poll)(struct layer *l);
	/* Wait until a reply may be here, and take it. */
	void (*wait)(struct layer *l);
	void (*close)(struct layer *l);
};

/**
 * struct layer - requests to one server, by one transport and protocol
 * @transport:	its name, as at the beginning of an address
 * @address:	of the server, as the user wrote it
 * @credits:	requests that may be outstanding
 * @outstanding: requests that are outstanding
 * @lost:	raw datagrams that were not answered in time
 * @serial:	raw: number of the datagrams whose answers count now
 * @timeout:	milliseconds that an answer may take
 */
struct layer {
	const struct layer_ops	*ops;
	const struct way_info	*way;
	char			transport[8];
	const char		*address;
	unsigned int		credits, outstanding, lost, serial;
	int			timeout;
	/* Active Messages */
	eb_t			bundle;
	ep_t			ep;
	/* raw */
	int			fd;
	en_t			server;
};

/* These end the program with a message if the server can't be reached. */
void layer_open(struct layer *l, const char *address, enum way way, unsigned int credits,
		int timeout);
void layer_close(struct layer *l);
/* Wait until no request is outstanding. */
void layer_drain(struct layer *l);
/* Return the number of requests that were retransmitted (raw: never answered). */
uint64_t layer_resent(struct layer *l);
bool layer_carries(const struct layer *l, size_t size);
/* Does @address have datagrams of a socket? */
bool raw_can(const char *address);

void raw_open(struct layer *l);
/* Send @n datagrams of @size bytes without a pause. Returns those that arrive in a second. */
double raw_rate(struct layer *l, size_t size, unsigned int n);
/* Serve raw datagrams; return if the network fails. */
void raw_serve(int fd);
int raw_socket(const en_t *name);

/* Return the words for an error of Active Messages. */
const char *error_words(int e);

en_t name_of_server(const char *address, unsigned int port);
void name_set_port(en_t *name, unsigned int port);
unsigned int name_port(const en_t *name);
/* Write the transport and the device of @address, for an endpoint of this host. */
void own_address(const char *address, char *own, size_t size);

/* Handlers of the server; the first argument is the size of the reply. */
#define TAKE	1
#define ANSWER	2

int serve(char **addresses);

/* ---- time ---- */

/* Return nanoseconds. */
double clock_ns(void);
double clock_cost(void);

/* ---- statistics ---- */

/**
 * struct interval - a median with the order statistics that enclose it with 95 % confidence
 *
 * NAN: it was not measured, or not often enough.
 */
struct interval {
	double median, low, high;
};

struct interval median_of(const double *samples, size_t n);
double middle(double *samples, size_t n);

/* ---- results of logp ---- */

#define MAX_POINTS	20		/* bursts of 1, 2, 4 ... messages */
#define DELAYS		4
#define MAX_SIZES	32
#define DELAYED		16		/* most messages of a burst with delays */

/**
 * struct size_result - P-LogP: the parameters that depend on the size of a message
 * @bytes:	of data
 * @o_s:	send overhead, in ns as all times
 * @o_r:	receive overhead, of replies of that size
 * @gap:	between such requests, in the steady state
 */
struct size_result {
	size_t		bytes;
	struct interval	o_s, o_r, gap;
};

/**
 * struct result - the parameters of a layer
 * @o_s:	send overhead: a short burst's cost for each message
 * @o_r:	receive overhead, by delays
 * @o_r_gap:	receive overhead, from g = o_s + 2 o_r or its substitute: o_r_of_gap()
 * @gap:	between requests of a long burst, in the steady state
 * @own:	work of the initiator itself for a request
 * @latency:	L, from the round trip
 * @trip:	the round trip
 * @per_byte:	G, ns: the gap of the largest message by its size
 * @gap_hidden:	the sender never waits, so @gap shows only its own work; unknown if @gap or @own
 *		is unknown
 * @cost:	message cost by delay and length of burst
 * @delay:	ns
 * @points:	lengths of bursts, powers of two
 * @one_way:	of raw datagrams: those that arrive in a second, without data and of RAW_MAX bytes
 */
struct result {
	char			transport[8];
	const char		*address, *protocol;
	unsigned int		credits;
	struct interval		o_s, o_r, o_r_gap, gap, own, latency, trip, per_byte;
	bool			gap_hidden;
	unsigned int		points;
	double			delay[DELAYS];
	struct interval		cost[DELAYS][MAX_POINTS];
	unsigned int		nsizes;
	struct size_result	size[MAX_SIZES];
	struct interval		one_way[2];
	uint64_t		resent;
};

/**
 * struct run - the measurements that the user asked for
 * @rounds:	samples of each figure
 * @messages:	of the longest burst
 */
struct run {
	unsigned int	credits, rounds, messages;
	size_t		sizes[MAX_SIZES];
	unsigned int	nsizes;
	long		processors;
};

/* Print the table: layer @i of those that are measured so far; after the last one, the remarks. */
void report_layer(const struct run *run, const struct result *r, unsigned int i);
void report_end(const struct run *run, const struct result *r, unsigned int n);
void report_json(const struct run *run, const struct result *r, unsigned int n);
void json_interval(const char *name, struct interval i, double unit);
/* Draw figures in @dir, by gnuplot. */
void plot(const char *dir, const struct run *run, const struct result *r, unsigned int n);

/* ---- options ---- */

#define ADDRESSES \
	"ADDRESS: udp:IP[:PORT], verbs:IP[:PORT], edp:[MAC]%DEV[:PORT] or esp:[MAC]%DEV[:PORT]. " \
	"See am(1)."

/* Return the number from @low to @high in @text, or end the program. */
unsigned int parse_number(struct argp_state *state, const char *what, const char *text,
			  unsigned int low, unsigned int high);

#endif
