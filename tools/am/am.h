/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active Messages over ESP datagrams or records, UDP, RDMA verbs, or memory. Endpoints send each
 * other requests and replies; each of these names its handler, the function that takes it.
 * Documentation/active-messages.rst explains it.
 *
 * An endpoint belongs to a bundle, a bundle to one thread at a time. Calls return AM_OK or an error
 * of enum am_error.
 */
#ifndef AM_H
#define AM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef struct am_bundle *eb_t;
typedef struct am_endpoint *ep_t;
typedef int handler_t;			/* 1 ... AM_HANDLERS - 1 */
typedef uint64_t tag_t;
typedef uint64_t am_handle_t;		/* of an entry of the send pool or the receive pool */

#define AM_HANDLERS	256
#define AM_MAX_ARGS	4
#define AM_MAX_MEDIUM	127		/* bytes of data */
#define AM_MAX_LONG	65536

enum am_error {
	AM_OK,
	AM_ERR_BAD_ARG,		/* no such index, handler, address ... */
	AM_ERR_RESOURCE,	/* no memory, or this endpoint's table of peers is full */
	AM_ERR_SYSTEM,		/* a system call failed, see errno */
	AM_ERR_IN_HANDLER,	/* a request's handler may only reply, a reply's may send nothing */
	AM_ERR_NO_REPLY,	/* the request has its reply, or was given up */
	AM_ERR_TOO_BIG,
	AM_ERR_NOT_MAPPED,
	AM_ERR_NETWORK,		/* the peer doesn't answer */
	AM_ERR_VERSION,		/* the peer speaks another version */
	AM_ERR_PROTOCOL,	/* the peer has another protocol */
	AM_ERR_TAG,		/* the peer has another tag */
	AM_ERR_FULL,		/* the peer's table of peers is full */
	AM_ERR_TIMEOUT,		/* the time that the call may wait is over */
	AM_ERR_AGAIN,		/* the connection is being made */
	AM_ERR_STALE,		/* the entry is in use for something else by now */
	AM_ERR_LOG_DAMAGED,	/* the log doesn't agree with its checksums, or with itself */
	AM_ERR_LOG_FOREIGN,	/* no log, or one of another version, endpoint or options */
	AM_ERR_NAME_INVALID,	/* not a name that can be registered */
	AM_ERR_NAME_UNKNOWN,	/* the name isn't registered */
	AM_ERR_NAME_TAKEN,	/* the name belongs to another host, or has another key */
	AM_ERR_NAME_FULL,	/* the name server has no room for more, or none for this host */
	AM_ERR_NAME_STORE,	/* the name server can't write its registry */
};

/* How the acknowledgment of a transfer stands. */
enum am_ack {
	AM_NOT_ACKED,
	AM_ACKED,
	AM_ACK_NOT_FOUND,	/* initiator: the peer has no such handler */
	AM_ERR_ACK,		/* target: there is no such handler */
	AM_REPLY_RTX_EXCEEDED,	/* acknowledged, but no reply came */
};

/* How the operation of a transfer stands. */
enum am_operation {
	AM_NOT_PROCESSED,
	AM_REQUEST_SENT,
	AM_REQUEST_PROCESSING,
	AM_PROCESSED,
	AM_REQUEST_RTX_EXCEEDED,
	AM_REQUEST_RECVD,
	AM_REPLY_NOT_SENT,
	AM_REPLY_SENT,
	AM_REPLY_TIMEOUT,	/* target: the handler put its reply off for too long */
	AM_HANDLER_TIMEOUT,	/* target: the handler took too long */
	AM_REPLY_LOST,		/* target: the reply was never acknowledged */
	AM_DECLINED,		/* target: not run after a restart */
};

enum am_transfer_state {
	AM_STATE_CREATED,	/* 0 */
	AM_STATE_SENT,		/* 1; target: received */
	AM_STATE_ACKED,		/* 2 */
	AM_STATE_DONE,		/* 3; target: replied */
	AM_STATE_ABANDONED,	/* 4 */
	AM_STATE_RESENT,	/* 0' */
	AM_STATE_RELEASED,	/* target: replied, and the initiator has acknowledged the reply */
};

/* Why a request failed. */
enum am_cause {
	AM_CAUSE_NONE,
	AM_CAUSE_NETWORK,	/* the network, or the node: nothing ever came back */
	AM_CAUSE_RESTARTED,	/* the peer has forgotten this connection */
	AM_CAUSE_HANDLER,	/* there is no such handler for messages of this size */
	AM_CAUSE_SEGMENT,	/* bulk data would go beyond the segment */
	AM_CAUSE_SLOW,		/* the handler takes too long */
	AM_CAUSE_REPLY,		/* the request was acknowledged, but no reply came */
	AM_CAUSE_DECIDED,	/* given up by AM_Decide() */
};

struct am_state {
	enum am_transfer_state	state;
	enum am_ack		ack;
	enum am_operation	operation;
	enum am_cause		cause;
	unsigned int		sent;		/* times that the request, or the reply, was sent */
	unsigned int		instance;
};

enum am_kind { AM_KIND_MEM = 1, AM_KIND_UDP, AM_KIND_EDP, AM_KIND_ESP, AM_KIND_VERBS };

/* Name of an endpoint: its address, as its own transport knows it. */
typedef struct {
	uint8_t		kind;
	uint8_t		address[16];	/* struct sockaddr_in, sockaddr_esp; number of a node */
} en_t;

#define AM_NAME_LEN	64		/* of AM_NameToString()'s text */

enum am_protocol_id {
	AM_NWAY		= 1,	/* request and reply; N = 1: one bit of instance number */
	AM_AMVIA	= 2,	/* request, acknowledgment, reply */
	AM_AMUDP	= 3,	/* request, reply, acknowledgment */
};

/* A filter's verdict on a frame, for tests. AM_BLOCK: the transport doesn't take the frame now. */
enum am_verdict { AM_PASS, AM_DROP, AM_BLOCK };

struct am_faults {
	uint32_t	seed;
	/* How many of 1000 frames that are sent suffer each fault. */
	unsigned int	drop, duplicate, corrupt, delay;
	/* Called for each frame before the faults; may change the frame. */
	enum am_verdict	(*filter)(void *arg, uint8_t *frame, size_t len);
	void		*arg;
	/* Called before and after each store to the log. */
	void		(*step)(void *arg);
};

struct am_net;			/* hosts in memory, with a clock of their own */

/* Zero means the default. */
struct am_options {
	const char		*address;	/* (edp|esp):%DEV[:PORT],
						 * (udp|verbs):IP[:PORT], mem
						 */
	struct am_net		*net;		/* for "mem" */
	enum am_protocol_id	protocol;	/* AM_NWAY */
	unsigned int		credits;	/* requests outstanding at each peer: N (16) */
	unsigned int		pool;		/* descriptors of the send pool: k (64) */
	unsigned int		peers;		/* size of the table of peers (64) */
	unsigned int		retries;	/* retransmissions before the acknowledgment (10) */
	unsigned int		reply_retries;	/* retransmissions after the acknowledgment (4) */
	unsigned int		timeout_us;	/* timeout before the first round trip (100,000) */
	unsigned int		min_timeout_us;	/* shortest timeout (2,000) */
	unsigned int		reply_timeout_us; /* from acknowledgment to reply (1,000,000) */
	unsigned int		handler_max_us;	/* time for a handler and its reply (1,000,000) */
	unsigned int		idle_us;	/* silence after which a full table gives a peer's
						 * place to another (60,000,000)
						 */
	const char		*log;		/* file of the transaction log (none) */
	unsigned int		log_data;	/* most bytes of a logged message (AM_MAX_LONG) */
	unsigned int		log_sync;	/* 1: each step of the log waits for the disk (0) */
	struct am_faults	faults;
};

struct am_stats {
	uint64_t	requests;		/* made */
	uint64_t	replies;		/* received, each counted once */
	uint64_t	abandoned;		/* requests */
	uint64_t	handlers_run;		/* of requests */
	uint64_t	frames_sent;
	uint64_t	frames_received;
	uint64_t	resent;		/* requests retransmitted */
	uint64_t	replies_resent;
	uint64_t	duplicates;		/* requests that came again */
	uint64_t	late;			/* frames about a finished transfer or greeting */
	uint64_t	stalls;		/* requests that waited for peer, credit or descriptor */
	uint64_t	not_taken;		/* frames that the transport didn't take */
	uint64_t	send_errors;
	uint64_t	receive_errors;	/* of the transport, as when the device has left */
	uint64_t	bad_length;		/* truncated, or of another length than they say */
	uint64_t	bad_checksum;
	uint64_t	bad_version;
	uint64_t	bad_type;
	uint64_t	bad_field;		/* frames with a value that no sender writes */
	uint64_t	bad_handler;		/* unknown, or for another size */
	uint64_t	bad_segment;
	uint64_t	bad_session;		/* of a stranger, or of an earlier connection */
	uint64_t	bad_tag;
	uint64_t	bad_protocol;
	uint64_t	peers_refused;	/* the table was full */
	uint64_t	no_buffer;		/* requests dropped for lack of a reply buffer */
	uint64_t	refused;		/* calls that a handler may not make */
	uint64_t	slow_handlers;
	uint64_t	log_errors;		/* the disk failed; see log_sync */
	uint64_t	buffers;		/* now in use: requests, replies kept */
	uint64_t	buffers_peak;
};

/*
 * Handlers. Arguments that were not sent are 0. @data is valid until the handler returns; bulk data
 * stay in the segment.
 */
typedef void (*am_short_t)(void *token, int a0, int a1, int a2, int a3);
typedef void (*am_data_t)(void *token, void *data, int nbytes, int a0, int a1, int a2, int a3);
/* Called for each request of the endpoint that was abandoned. */
typedef void (*am_return_t)(ep_t ep, am_handle_t handle, const struct am_state *state, void *arg);

/* Bundles */
enum { AM_SEQ };			/* one thread at a time */

int AM_AllocateBundle(int type, eb_t *bundle);
int AM_FreeBundle(eb_t bundle);		/* with its endpoints */
int AM_Poll(eb_t bundle);
/* Wait until a handler ran, a request changed state, or a connection was made, lost or refused. */
int AM_WaitSema(eb_t bundle);
int AM_SetTimeout(eb_t bundle, int ms);	/* for each call that waits; -1 (default): none */

/* Endpoints */
int AM_AllocateEndpoint(eb_t bundle, ep_t *ep, en_t *name);	/* at $AM_ADDRESS */
int AM_AllocateEndpointWith(eb_t bundle, const struct am_options *options, ep_t *ep, en_t *name);
int AM_FreeEndpoint(ep_t ep);
int AM_MoveEndpoint(ep_t ep, eb_t from, eb_t to);
int AM_SetTag(ep_t ep, tag_t tag);
int AM_GetTag(ep_t ep, tag_t *tag);
int AM_SetSeg(ep_t ep, void *address, size_t nbytes);
int AM_GetSeg(ep_t ep, void **address, size_t *nbytes);
int AM_SetHandler(ep_t ep, handler_t handler, am_short_t function);
int AM_SetHandlerI(ep_t ep, handler_t handler, am_data_t function);
int AM_SetHandlerXfer(ep_t ep, handler_t handler, am_data_t function);
int AM_SetReturnHandler(ep_t ep, am_return_t function, void *arg);
int AM_GetStats(ep_t ep, struct am_stats *stats);

/* Peers */
int AM_Map(ep_t ep, int index, en_t name, tag_t tag);
int AM_Unmap(ep_t ep, int index);
int AM_Connect(ep_t ep, int index, int wait);
int AM_GetTranslationName(ep_t ep, int index, en_t *name);
int AM_GetSourceEndpoint(void *token, en_t *name);
int AM_GetDestEndpoint(void *token, ep_t *ep);
int AM_NameFromString(const char *text, en_t *name);
int AM_NameToString(const en_t *name, char *text, size_t size);

/*
 * Calls to the name server, am-named, by which endpoints find each other. @server is its name;
 * NULL: that of $AM_NAME_SERVER. Each call waits for the answer, @ms milliseconds at most (-1:
 * without limit), and polls @ep's bundle meanwhile. Names are 1 to AM_MAX_NAME graphic characters
 * of ASCII.
 */
#define AM_MAX_NAME	63

/*
 * Give @ep the name for @lease seconds (0: until it is unregistered). A later call from the same
 * host with the same @key gives the name to that call's endpoint: so a program renews a lease, or
 * has its name again after a restart.
 */
int AM_Register(ep_t ep, const en_t *server, const char *name, uint64_t key, unsigned int lease,
		int ms);
int AM_Unregister(ep_t ep, const en_t *server, const char *name, uint64_t key, int ms);
/* Find the endpoint of a name, on the same kind of transport as @ep; @found is for AM_Map(). */
int AM_Lookup(ep_t ep, const en_t *server, const char *name, en_t *found, int ms);

int AM_MaxShort(void);
int AM_MaxMedium(void);
int AM_MaxLong(void);

/* Messages: @nargs arguments, ints, follow. */
int am_request(ep_t ep, int index, handler_t handler, int nargs, ...);
int am_request_i(ep_t ep, int index, handler_t handler, const void *source, int nbytes, int nargs,
		 ...);
int am_request_xfer(ep_t ep, int index, handler_t handler, int offset, const void *source,
		    int nbytes, int nargs, ...);
int am_reply(void *token, handler_t handler, int nargs, ...);
int am_reply_i(void *token, handler_t handler, const void *source, int nbytes, int nargs, ...);
int am_reply_xfer(void *token, handler_t handler, int offset, const void *source, int nbytes,
		  int nargs, ...);

#define AM_Request0(ep, to, h)			am_request(ep, to, h, 0)
#define AM_Request1(ep, to, h, a)		am_request(ep, to, h, 1, (int)(a))
#define AM_Request2(ep, to, h, a, b)		am_request(ep, to, h, 2, (int)(a), (int)(b))
#define AM_Request3(ep, to, h, a, b, c)						\
	am_request(ep, to, h, 3, (int)(a), (int)(b), (int)(c))
#define AM_Request4(ep, to, h, a, b, c, d)						\
	am_request(ep, to, h, 4, (int)(a), (int)(b), (int)(c), (int)(d))

#define AM_RequestI0(ep, to, h, src, n)		am_request_i(ep, to, h, src, n, 0)
#define AM_RequestI1(ep, to, h, src, n, a)	am_request_i(ep, to, h, src, n, 1, (int)(a))
#define AM_RequestI2(ep, to, h, src, n, a, b)						\
	am_request_i(ep, to, h, src, n, 2, (int)(a), (int)(b))
#define AM_RequestI3(ep, to, h, src, n, a, b, c)					\
	am_request_i(ep, to, h, src, n, 3, (int)(a), (int)(b), (int)(c))
#define AM_RequestI4(ep, to, h, src, n, a, b, c, d)					\
	am_request_i(ep, to, h, src, n, 4, (int)(a), (int)(b), (int)(c), (int)(d))

#define AM_RequestXfer0(ep, to, off, h, src, n)	am_request_xfer(ep, to, h, off, src, n, 0)
#define AM_RequestXfer1(ep, to, off, h, src, n, a)					\
	am_request_xfer(ep, to, h, off, src, n, 1, (int)(a))
#define AM_RequestXfer2(ep, to, off, h, src, n, a, b)					\
	am_request_xfer(ep, to, h, off, src, n, 2, (int)(a), (int)(b))
#define AM_RequestXfer3(ep, to, off, h, src, n, a, b, c)				\
	am_request_xfer(ep, to, h, off, src, n, 3, (int)(a), (int)(b), (int)(c))
#define AM_RequestXfer4(ep, to, off, h, src, n, a, b, c, d)				\
	am_request_xfer(ep, to, h, off, src, n, 4, (int)(a), (int)(b), (int)(c), (int)(d))

#define AM_Reply0(token, h)			am_reply(token, h, 0)
#define AM_Reply1(token, h, a)			am_reply(token, h, 1, (int)(a))
#define AM_Reply2(token, h, a, b)		am_reply(token, h, 2, (int)(a), (int)(b))
#define AM_Reply3(token, h, a, b, c)							\
	am_reply(token, h, 3, (int)(a), (int)(b), (int)(c))
#define AM_Reply4(token, h, a, b, c, d)							\
	am_reply(token, h, 4, (int)(a), (int)(b), (int)(c), (int)(d))

#define AM_ReplyI0(token, h, src, n)		am_reply_i(token, h, src, n, 0)
#define AM_ReplyI1(token, h, src, n, a)		am_reply_i(token, h, src, n, 1, (int)(a))
#define AM_ReplyI2(token, h, src, n, a, b)						\
	am_reply_i(token, h, src, n, 2, (int)(a), (int)(b))
#define AM_ReplyI3(token, h, src, n, a, b, c)						\
	am_reply_i(token, h, src, n, 3, (int)(a), (int)(b), (int)(c))
#define AM_ReplyI4(token, h, src, n, a, b, c, d)					\
	am_reply_i(token, h, src, n, 4, (int)(a), (int)(b), (int)(c), (int)(d))

#define AM_ReplyXfer0(token, off, h, src, n)	am_reply_xfer(token, h, off, src, n, 0)
#define AM_ReplyXfer1(token, off, h, src, n, a)						\
	am_reply_xfer(token, h, off, src, n, 1, (int)(a))
#define AM_ReplyXfer2(token, off, h, src, n, a, b)					\
	am_reply_xfer(token, h, off, src, n, 2, (int)(a), (int)(b))
#define AM_ReplyXfer3(token, off, h, src, n, a, b, c)					\
	am_reply_xfer(token, h, off, src, n, 3, (int)(a), (int)(b), (int)(c))
#define AM_ReplyXfer4(token, off, h, src, n, a, b, c, d)				\
	am_reply_xfer(token, h, off, src, n, 4, (int)(a), (int)(b), (int)(c), (int)(d))

/*
 * Put the reply off, in the handler of a request; the program replies later, outside of handlers,
 * with the token returned. NULL: there is no memory, or this is no request that waits for a reply.
 * The token is freed by a reply that returns AM_OK or AM_ERR_NO_REPLY (handler_max_us is over), and
 * with the endpoint; after other errors it is still valid.
 */
void *AM_Defer(void *token);

/* Transfers */
int AM_GetTransferHandle(ep_t ep, am_handle_t *handle);	/* of the last request */
int AM_GetTokenHandle(void *token, am_handle_t *handle);
int AM_GetTransferState(ep_t ep, am_handle_t handle, struct am_state *state);
/* Return the number of known entries of the send or receive pool, and the first @n handles. */
int AM_ListSent(ep_t ep, am_handle_t *handles, int n);
int AM_ListReceived(ep_t ep, am_handle_t *handles, int n);

/*
 * The transaction log. The handle of an entry is its record's number, also after a restart.
 * Pointers to data are valid until the entry is used again.
 */
struct am_packet {
	handler_t	handler;	/* 0: none */
	int		nargs;
	int		args[AM_MAX_ARGS];
	size_t		offset, nbytes;
	const void	*data;
};

struct am_record {
	en_t			peer;
	struct am_state		state;
	struct am_packet	request;
	struct am_packet	reply;
	int			undecided;	/* waits for AM_Decide() since the restart */
};

enum am_decision {
	AM_GIVE_UP,
	AM_SEND_AGAIN,		/* send a request, with its old instance number */
	AM_RUN_AGAIN,		/* run the handler of a request received, or of a reply */
};

int AM_GetRecord(ep_t ep, am_handle_t handle, struct am_record *record);
int AM_Decide(ep_t ep, am_handle_t handle, enum am_decision decision);

const char *AM_ErrorName(int error);
const char *AM_AckName(int ack);
const char *AM_OperationName(int operation);
const char *AM_CauseName(int cause);

/* A network in memory. Its clock advances only when an endpoint polls or waits. */
struct am_net *AM_NewNet(unsigned int queue);	/* most frames that wait at each host */
void AM_FreeNet(struct am_net *net);		/* after its endpoints */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* AM_H */
