/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the files of libam:
 *
 *	request.c	AM_Request: a descriptor, a credit, then post
 *	input.c		frames that arrive
 *	reply.c		the target's side: handlers, replies
 *	engine.c	the protocols, as tables; the actions of their rules
 *	endpoint.c	endpoints, peers and their connections
 *	bundle.c	polling and waiting
 *	log.c		the transaction log: the state of all these, in a file
 *	name.c		questions to a name server; names.h: their messages
 *	wire.c		frames; crc.c: their checksum
 *	transport.c	faults; mem.c, socket.c, stream.c: transports
 *	plugin.c	loads verbs.c, a transport that is a library of its own
 */
#ifndef AM_INTERNAL_H
#define AM_INTERNAL_H

#include <stdbool.h>
#include <string.h>
#include "am.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- crc.c ---- */

/* A way to compute the checksum. prepare() returns false where the processor lacks it. */
struct crc_form {
	const char	*name;
	bool		(*prepare)(void);
	uint32_t	(*crc)(uint32_t c, const void *data, size_t n);
};

extern const struct crc_form crc_forms[];	/* the best first; the last has no name */
uint32_t crc32c(uint32_t c, const void *data, size_t n);

/* ---- wire.c ---- */

#define WIRE_VERSION	1
#define WIRE_HEADER	32
#define WIRE_MIN_PIECE	512		/* bytes of each piece of bulk data but the last */
#define WIRE_PIECES	(AM_MAX_LONG / WIRE_MIN_PIECE)
/* The smallest frame that a transport must carry. */
#define WIRE_MIN_MTU	(WIRE_HEADER + 4 * AM_MAX_ARGS + WIRE_MIN_PIECE)

enum wire_type {
	WIRE_HELLO = 1, WIRE_WELCOME, WIRE_REQUEST, WIRE_ACK, WIRE_NACK, WIRE_REPLY, WIRE_FINAL,
	WIRE_TYPES,
};

enum wire_size { WIRE_EMPTY, WIRE_SHORT, WIRE_MEDIUM, WIRE_BULK };

/* Reason of a refusal, in the handler field of a NACK. */
enum wire_reason {
	WHY_HANDLER = 1, WHY_SEGMENT, WHY_SESSION, WHY_GAVE_UP, WHY_LOST,
	WHY_VERSION, WHY_PROTOCOL, WHY_TAG, WHY_FULL,
};

/* A frame, taken apart. */
struct wire {
	uint8_t		type;
	uint8_t		size;
	uint8_t		nargs;
	uint32_t	session;
	uint16_t	slot;
	uint16_t	instance;
	uint16_t	handler;	/* HELLO: the protocol; NACK: the reason */
	uint32_t	total;		/* bytes of data, of all pieces */
	uint32_t	offset;		/* bulk: where in the segment the message begins */
	uint16_t	piece_size;
	uint16_t	piece;
	int32_t		args[AM_MAX_ARGS];
	uint8_t		*data;
	size_t		len;
};

enum wire_verdict { WIRE_GOOD, WIRE_LENGTH, WIRE_CHECKSUM, WIRE_OTHER_VERSION, WIRE_TYPE,
		    WIRE_FIELD };

size_t wire_write(uint8_t *frame, const struct wire *w);
enum wire_verdict wire_read(uint8_t *frame, size_t len, struct wire *w);
void wire_seal(uint8_t *frame, size_t len);

static inline unsigned int wire_pieces(const struct wire *w)
{
	return w->total ? (w->total + w->piece_size - 1) / w->piece_size : 1;
}

/* ---- transports ---- */

struct frame {
	en_t	from;
	size_t	len;		/* more than the room: the frame was truncated */
	uint8_t	*data;
};

struct transport;

struct transport_ops {
	int (*open)(struct transport *t, const struct am_options *o);
	void (*close)(struct transport *t);
	/* 0: taken, 1: not now, -1: an error. */
	int (*send)(struct transport *t, const en_t *to, const void *data, size_t len);
	/* Take up to @n frames that are here. Returns how many, or -1: an error. */
	int (*receive)(struct transport *t, struct frame *frames, int n, size_t room);
	uint64_t (*now)(struct transport *t);
	/* send()'s "not now" is about one peer: frames for others may be taken. */
	bool by_peer;
	/* Prepare for a sleep until fd is readable; NULL: not needed. True: don't sleep. */
	bool (*arm)(struct transport *t);
	/* Make @name as this transport gets it with a frame. */
	int (*normalize)(struct transport *t, en_t *name);
};

#define HELD	16		/* most frames that the fault "delay" holds */
#define FULL	16		/* transport.full's limit: ask for all there is room for */

struct transport {
	const struct transport_ops	*ops;
	en_t				name;
	size_t				mtu;
	int				fd;	/* to poll; -1: none (memory) */
	int				error;	/* errno for the next wait; 0: none, -1: reported */
	struct streams			*streams;
	struct verbs			*verbs;
	struct am_net			*net;
	unsigned int			node;	/* in net */
	unsigned int			ifindex;
	unsigned int			full;	/* looks in a row that got all they asked for */
	bool				unwatched; /* the listener, for lack of descriptors */
	struct am_faults		faults;
	uint32_t			random;
	struct held {
		en_t		to;
		size_t		len;
		unsigned int	polls;	/* until it leaves */
		uint8_t		*data;
	} held[HELD];
	unsigned int			nheld;
};

extern const struct transport_ops mem_ops, udp_ops, edp_ops, esp_ops;
/* In plugin.c, which loads libraries: a program without plugin.c has no verbs. */
extern const struct transport_ops verbs_ops;
#pragma weak verbs_ops

/* The symbol of a loaded library; made for the same struct transport. */
#define PLUGIN_VERSION	1
#define PLUGIN_SYMBOL	am_plugin

struct plugin {
	uint32_t		version;
	uint32_t		size;		/* of struct transport */
	struct transport_ops	ops;		/* now and normalize are set by plugin.c */
};

int transport_open(struct transport *t, const struct am_options *o);
void transport_close(struct transport *t);
int transport_send(struct transport *t, const en_t *to, uint8_t *data, size_t len);
int transport_receive(struct transport *t, struct frame *frames, int n, size_t room);
/* socket.c, for stream.c and plugin.c */
struct sockaddr_esp;
struct sockaddr_in;
int parse_udp(const char *text, struct sockaddr_in *a);
int same_kind(struct transport *t, en_t *name);
int parse_esp(const char *text, struct sockaddr_esp *a);
int esp_describe(struct transport *t, int fd, enum am_kind kind, struct sockaddr_esp *a);
void device_look(struct transport *t, int fd);
int name_normalize(struct transport *t, en_t *name, enum am_kind kind);
uint64_t monotonic(struct transport *t);

void mem_advance(struct am_net *net, uint64_t until);

/* Split a name in two: its host, and its endpoint at that host (port, or number of a node). */
#define NAME_HOST	8		/* bytes: an IPv4 or MAC address; memory: zeroes */

void name_split(const en_t *name, uint8_t *host, uint32_t *port);
/* @like: any name of the same transport, as this host knows it. */
en_t name_join(const en_t *like, const uint8_t *host, uint32_t port);

/* ---- state ---- */

enum timer_kind { TIMER_REQUEST, TIMER_REPLY, TIMER_HELLO };

/* In the endpoint's list while it is armed. */
struct timer {
	struct timer	*next, **link;
	uint64_t	at;
	enum timer_kind	kind;
};

struct am_message {
	uint8_t		size;
	uint8_t		nargs;
	uint16_t	handler;
	uint32_t	total;
	uint32_t	offset;
	int32_t		args[AM_MAX_ARGS];
	uint8_t		*data;
	size_t		room;		/* bytes allocated for data */
	bool		logged;		/* data are in the log, where they have a fixed place */
	uint32_t	crc;		/* of data in the log */
};

/* The pieces of a message that have come. */
struct pieces {
	uint64_t	have[WIRE_PIECES / 64];
	uint32_t	total, offset;
	uint16_t	size, count;	/* count: pieces that have come */
	uint16_t	handler;
};

/* An entry of the send pool. */
struct request {
	struct timer	timer;
	struct am_endpoint *ep;
	struct peer	*peer;		/* NULL: the request is over */
	struct request	*next_unsent;
	uint32_t	serial;
	uint32_t	session;
	uint16_t	slot;
	uint16_t	instance;
	uint8_t		state, ack, operation, cause;
	bool		known;		/* the entry has been used */
	bool		echoed;		/* acknowledged again after a reply timeout */
	bool		undecided;	/* restored from the log; waits for AM_Decide() */
	bool		handled;	/* the reply's handler has returned */
	en_t		name;		/* the peer's; stays when the request is over */
	unsigned int	sent;		/* times sent; counts from 1 again when acknowledged */
	unsigned int	sent_all;	/* times sent altogether */
	uint64_t	sent_at;
	struct am_message	msg;
	struct am_message	answer;		/* the reply, for the log */
	struct pieces	reply;
};

/* An entry of the receive pool: the target's side of one instance of the protocol. */
struct reply {
	struct timer	timer;
	struct peer	*peer;
	uint32_t	serial;
	uint16_t	slot;
	uint16_t	instance;
	uint8_t		state, ack, operation, reason;
	bool		known;		/* the instance number is that of a request that came */
	bool		running;	/* its handler runs, or put the reply off */
	bool		buffer;		/* has a buffer for the reply; AMUDP: of the pool */
	bool		replied;
	bool		undecided;	/* restored from the log; waits for AM_Decide() */
	unsigned int	sent;
	uint64_t	began;
	struct am_message	request;	/* for the log */
	struct am_message	msg;
	struct pieces	pieces;
};

enum hello_state { HELLO_NONE, HELLO_SENT, HELLO_DONE, HELLO_FAILED };

struct peer {
	en_t		name;
	bool		used;
	unsigned int	maps;
	struct am_endpoint *ep;
	uint64_t	heard;
	/* As initiator */
	struct timer	timer;
	tag_t		tag;
	enum hello_state hello;
	int		error;
	unsigned int	hellos;
	uint32_t	nonce, session;
	unsigned int	credits;
	struct request	**out;		/* credits entries */
	uint16_t	*instance;
	uint64_t	srtt;		/* µs; 0: not measured */
	bool		srtt_large;	/* srtt is of large messages, for lack of others */
	bool		one_bit;	/* instance numbers have one bit */
	unsigned int	unsent;		/* requests that the transport hasn't taken */
	unsigned int	refused;	/* pass of the transport's last refusal */
	/* As target */
	bool		known, offered;
	bool		one_bit_in;	/* instance numbers of its requests have one bit */
	uint32_t	peer_nonce, peer_session;
	uint32_t	offered_nonce, offered_session;
	unsigned int	offered_credits, peer_credits;
	struct reply	*in;
};

struct handler {
	am_short_t	brief;
	am_data_t	medium, bulk;
};

struct protocol;

struct token {
	struct am_endpoint *ep;
	struct peer	*peer;
	bool		request;	/* the handler is that of a request */
	bool		deferred;
	uint16_t	slot;
	uint32_t	serial;
	am_handle_t	handle;
	struct token	*next;		/* in the endpoint's list of deferred tokens */
};

struct am_endpoint {
	struct am_bundle	*bundle;
	struct am_endpoint	*next;
	struct transport	transport;
	struct am_options	opt;
	const struct protocol	*protocol;
	struct handler		handlers[AM_HANDLERS];
	am_return_t		returned;
	void			*returned_arg;
	tag_t			tag;
	uint8_t			*seg;
	size_t			seg_size;
	struct peer		*peers;
	struct peer		**map;
	struct peer		*last;		/* the peer that was found last */
	struct request		*pool;
	unsigned int		next_entry;
	am_handle_t		last_handle;
	unsigned int		requests;	/* in flight */
	struct request		*unsent, **unsent_end;
	unsigned int		pass;		/* number of the last pass over unsent */
	uint64_t		time;		/* last reading of the clock, µs */
	struct timer		*timers, **timers_end;
	struct token		*deferred;
	uint32_t		serial;
	uint8_t			*buffers;	/* credits + 1, each of an MTU */
	struct frame		*frames;
	uint8_t			*out;		/* the frame being made */
	struct am_log		*log;		/* NULL: none */
	void			*context;	/* for the handlers of name.c, named.c */
	struct am_stats		stats;
};

struct am_bundle {
	struct am_endpoint	*endpoints;
	int			timeout_ms;
	unsigned int		depth;		/* handlers that are running */
	uint64_t		events;
};

/* ---- engine.c ---- */

enum event {
	/* Initiator */
	EV_POST,	/* the transport took the request */
	EV_ACK, EV_NACK, EV_REPLY,
	EV_GIVEN_UP,	/* the peer said that no reply will come */
	EV_FORGOTTEN,	/* the peer doesn't know the session */
	/* Target */
	EV_REQUEST,	/* all of a request is here, and its handler was found */
	EV_NO_HANDLER,	/* the request can't be handled */
	EV_ACK_SENT,
	EV_DUPLICATE,	/* the request came again */
	EV_DONE,	/* the handler has returned, or its deferred reply was made */
	EV_LATE,	/* the handler has taken too long */
	EV_FINAL,
	EV_AGAIN,	/* the handler shall run after a restart */
	EV_DECLINED,	/* the handler shall not run after a restart */
	/* Both */
	EV_TIMER, EV_SPENT,	/* the timer is due; SPENT: and no retransmission is left */
};

/* Bits of a rule: what is done, in this order. */
enum {
	DO_RTT		= 1,
	DO_FINAL	= 2,
	DO_SEND		= 4,	/* the request; target: the reply */
	DO_ACK		= 8,
	DO_NACK		= 16,
	DO_RUN		= 32,
	WAIT_ACK	= 64,	/* twice the round trip, doubled with each retransmission */
	WAIT_REPLY	= 128,	/* reply_timeout_us */
	WAIT_HANDLER	= 256,	/* handler_max_us */
	DO_RELEASE	= 512,	/* buffer and credit */
	DO_FAIL		= 1024,	/* tell the application */
};

struct rule {
	uint8_t		state, event, next, ack, operation;
	uint16_t	actions;
};

struct protocol {
	enum am_protocol_id	id;
	bool			pooled;		/* replies take from the send pool, too */
	const struct rule	*initiator, *target;
	unsigned int		ninitiator, ntarget;
};

const struct protocol *protocol_find(enum am_protocol_id id);
bool status_possible(const struct rule *rules, unsigned int n, int state, int ack, int operation);
unsigned int request_step(struct request *r, enum event e, uint8_t cause);
unsigned int reply_step(struct reply *r, enum event e);
void timer_arm(struct am_endpoint *ep, struct timer *t, uint64_t us);
void timer_stop(struct am_endpoint *ep, struct timer *t);
void timers_look(struct am_endpoint *ep);
void final_send(struct peer *p, uint16_t slot, uint16_t instance);

/* ---- request.c ---- */

int message_check(const struct am_message *m, handler_t handler, enum wire_size size, int offset,
		  const void *source, int nbytes, int nargs);
int message_fill(struct am_message *m, handler_t handler, enum wire_size size, int offset,
		 const void *source, int nbytes, int nargs, const int *args);
int message_send(struct peer *p, const struct am_message *m, struct wire *w, bool last_only);
int frame_send(struct peer *p, struct wire *w);
int answer_send(struct am_endpoint *ep, const en_t *to, struct wire *w);
void unsent_look(struct am_endpoint *ep);
void unsent_forget(struct request *r);
void request_release(struct request *r);
void request_resume(struct request *r);
void message_free(struct am_message *m);
am_handle_t request_handle(const struct am_endpoint *ep, const struct request *r);

/* ---- input.c ---- */

bool input(struct am_endpoint *ep);
bool pieces_add(struct am_endpoint *ep, struct pieces *p, const struct wire *w);
void call_handler(struct am_endpoint *ep, struct token *t, const struct wire *w);
enum wire_reason handler_check(struct am_endpoint *ep, const struct wire *w);

/* ---- reply.c ---- */

void request_take(struct peer *p, struct wire *w);
void reply_release(struct reply *r);
void reply_resume(struct reply *r, const struct wire *w);
struct reply *replies_new(struct peer *p, unsigned int n);
void peer_forget(struct peer *p);
int handle_find(struct am_endpoint *ep, am_handle_t handle, struct request **q, struct reply **r);
am_handle_t reply_handle(const struct reply *r);

/* ---- endpoint.c ---- */

void hello_start(struct peer *p);
void hello_send(struct peer *p);
void hello_take(struct am_endpoint *ep, struct peer *p, const en_t *from, const struct wire *w);
void welcome_take(struct peer *p, const struct wire *w);
void session_lost(struct peer *p);
void hello_refused(struct peer *p, int error);
struct peer *peer_find(struct am_endpoint *ep, const en_t *name);

/* ---- log.c ---- */

#define LOG_MAGIC	"AM log"
#define LOG_VERSION	1

/*
 * The file has a struct log_header; a struct log_peer for each peer; the next instance for each
 * credit of each peer; a struct log_record for each entry of the send pool, and for each credit of
 * each peer; then the data of each record, log_data bytes for the request and as many for the
 * reply.
 *
 * All but header and data are entries: a word, then two copies of the structure. The word has a
 * number, whose lowest bit tells which copy is valid, and that copy's CRC. It is written by one
 * store, so there is a whole copy whenever the process ends.
 */
struct log_header {
	char		magic[8];
	uint32_t	version;
	uint32_t	id;		/* random; every entry's CRC covers it */
	uint32_t	protocol, credits, pool, peers, data;
	en_t		name;
	uint8_t		zero[3];
	uint32_t	crc;
};

#define LOG_CONNECTED	1	/* as initiator */
#define LOG_KNOWN	2	/* as target */
#define LOG_OFFERED	4

struct log_peer {
	en_t		name;
	uint8_t		zero[3];
	uint32_t	flags;
	uint32_t	serial;		/* the last one that the endpoint gave */
	uint32_t	session;
	tag_t		tag;
	uint32_t	credits;
	uint32_t	peer_nonce, peer_session, peer_credits;
	uint32_t	offered_nonce, offered_session, offered_credits;
	uint32_t	zero2;
};

struct log_message {
	uint8_t		size, nargs;
	uint16_t	handler;
	uint32_t	total, offset, crc;
	int32_t		args[AM_MAX_ARGS];
};

struct log_record {
	uint8_t		known;
	uint8_t		state, ack, operation;
	uint8_t		why;		/* cause; target: reason */
	uint8_t		handled;
	uint16_t	slot, instance;
	uint16_t	zero;
	uint32_t	serial, session;
	struct log_message request, reply;
	en_t		name;		/* the peer's; send pool only */
	uint8_t		zero2[3];
};

int log_open(struct am_endpoint *ep, const char *path);
void log_close(struct am_endpoint *ep);
void log_peer(struct peer *p);
void log_slot(struct peer *p, unsigned int slot);
void log_request(struct request *r);
void log_reply(struct reply *r);
void log_forget(struct request *r);
void log_seal(struct am_endpoint *ep, struct am_message *m);
void log_copy(struct am_endpoint *ep, struct am_message *m, const struct wire *w);
bool log_too_big(struct am_endpoint *ep, uint32_t total);
void log_places(struct reply *r);

/* Write the name @path to the disk. */
int file_sync_name(const char *path);
/* Open a file to be renamed: new, or left by a process that was killed; locked and empty. */
int file_open_part(const char *part, int *fd);

/* ---- name.c ---- */

bool registered_name_valid(const char *name, size_t len);

/* ---- bundle.c ---- */

bool progress(struct am_bundle *bundle);
int wait_a_while(struct am_bundle *bundle, uint64_t end, bool forever);

/* Read the clock. Code that runs no longer than a frame takes uses ep->time of an earlier call. */
static inline uint64_t now(struct am_endpoint *ep)
{
	return ep->time = ep->transport.ops->now(&ep->transport);
}

static inline bool handler_valid(handler_t handler)
{
	return handler >= 1 && handler < AM_HANDLERS;
}

static inline bool name_equal(const en_t *a, const en_t *b)
{
	return a->kind == b->kind && !memcmp(a->address, b->address, sizeof(a->address));
}

/* xorshift; never 0. */
static inline uint32_t random_next(uint32_t *state)
{
	uint32_t x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return *state = x;
}

#endif /* AM_INTERNAL_H */
