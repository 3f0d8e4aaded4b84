/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations that the files of esp-performability share.
 *
 *	main.c		command line
 *	input.c		the file that describes a model
 *	machine.c	one request's protocol: libam's tables; esp.c: ESP's stream
 *	chain.c		its Markov reward chain: states, solution
 *	mva.c		the closed queueing network: mean value analysis, balance equations
 *	window.c	requests of one session, when handlers are late or crash
 *	predict.c	the prediction from all of these, and its sensitivity
 *	des.c		discrete-event simulation
 *	measure.c	libam itself, with faults, in simulated time; socket.c: over sockets
 *	output.c	text, JSON, pictures
 *
 * Times are in microseconds (double); in chains, where equal states must be equal, in picoseconds.
 */
#ifndef PERFORMABILITY_H
#define PERFORMABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "../am/internal.h"

enum { INITIATOR, TARGET, SIDES };

#define STREAM	((enum am_protocol_id)4)	/* AF_ESP, SOCK_STREAM */
#define MAX_PACKETS	4			/* of a message of a stream */

enum processors { ONE_PROCESSOR, ONE_PER_HOST, TWO_PER_HOST };

/* Kinds of frames, which differ in size. */
enum frame_kind { FRAME_REQUEST, FRAME_REPLY, FRAME_CONTROL, FRAME_KINDS };

/**
 * struct model - a model, as its file describes it
 *
 * It has the service times (us) of the components on a message's way, in the order of the way (seed
 * 4.4.3, table 4.1), and the probability with which each component loses a frame (4.4.2). Faults of
 * the application are those of a request's handler.
 */
struct model {
	const char	*file;
	unsigned int	lines;
	enum am_protocol_id protocol;
	double		window;			/* N: requests outstanding, 1 ... 256 */
	double		think;			/* time from a request's end to the next request */
	enum processors	processors;
	bool		fixed;			/* service times are fixed, not exponential */

	double		app_request, app_handler, app_reply;
	double		lib_send, lib_receive, kernel_send, kernel_receive;
	double		latency, byte;		/* network: time of a frame, and of each byte */
	double		lib_fail, kernel_fail, network_fail;
	double		ber;			/* bit error rate of the network */
	double		missing, late, crash, delay;	/* probabilities of a handler's faults */
	double		restart, delayed;	/* time of a restart; of a delay */
	double		frame[FRAME_KINDS];	/* bytes on the wire that errors can hit */

	/* libam's options */
	double		timeout_us, min_timeout_us, reply_timeout_us, handler_max_us;
	double		retries, reply_retries;
	double		grain;			/* timers fire at multiples of this time */
	/* sysctls of ESP, and the number of packets of a message */
	double		rto_min_us, rrq_min_us, ack_delay_us, rto_max_ms, rrq_max_ms, expiries;
	double		packets_request, packets_reply;

	double		mttf, mttr;		/* of a node, hours */

	/* not in the file: timeout for an acknowledgment, smoothed round trip */
	double		ack_timeout, srtt;
};

/* ---- input.c ---- */

enum key_kind { KEY_PROBABILITY, KEY_TIME, KEY_COUNT };

struct key {
	const char	*name;
	enum key_kind	kind;
	size_t		offset;
	double		low, high;
	double		preset;			/* default; NAN: none; -1: depends on protocol */
	const char	*component;		/* component for sensitivity; NULL: none */
};

extern const struct key keys[];
extern const unsigned int nkeys;

const struct key *key_find(const char *name);

static inline double *key_value(struct model *m, const struct key *k)
{
	return (double *)((char *)m + k->offset);
}

/* Print a message, after FILE:LINE: if they are given, and exit. */
_Noreturn void refuse(const char *file, unsigned int line, const char *format, ...);
void model_read(struct model *m, const char *path);
void model_set(struct model *m, const char *assignment);
void model_check(struct model *m);
/* Refuse a model that can't connect its hosts; for simulation, and measurement in memory. */
void model_check_connects(const struct model *m);
const char *protocol_name(enum am_protocol_id id);
double frame_loss(const struct model *m, enum frame_kind kind);
double frame_lost(const struct model *m, enum frame_kind kind);
enum frame_kind frame_kind(uint8_t msg);

/* ---- machine.c, esp.c ---- */

/* Frames of ESP; those of libam are in enum wire_type. */
enum { MSG_DATA = WIRE_TYPES, MSG_BACK, MSG_ESP_ACK, MSG_RRQ };

enum timer_id { TIMER_SENT, TIMER_REPLIED, TIMER_GAP, TIMER_EXPIRY, MACHINE_TIMERS };

/* Inputs of a machine. */
enum input {
	IN_START,
	IN_FRAME,		/* a frame of a kind, with an argument */
	IN_TIMER,
	/* results of a choice: */
	IN_FOUND, IN_MISSING,	/* the handler exists, or does not */
	IN_HANDLED, IN_LATE, IN_CRASHED,
	IN_RESTARTED,
	IN_FORGOTTEN,		/* a NACK has told that the session is over */
};

/* Effects of an input, which come in order. */
enum effect_kind { DO_FRAME, SET_TIMER, STOP_TIMER, CHOOSE_LOOKUP, CHOOSE_HANDLER, OVER };

struct effect {
	uint8_t		what;
	uint8_t		side;		/* side that acts */
	uint8_t		msg;		/* kind of frame, or timer */
	uint32_t	arg;		/* argument of the frame */
	double		us;		/* time of the timer */
};

struct effects {
	unsigned int	n;
	struct effect	e[64];
};

/**
 * struct machine - one request, at both sides
 *
 * The states are those of Documentation/active-messages.rst. The structure has no padding, because
 * chain.c compares it as bytes.
 */
struct machine {
	uint8_t		istate, iack, iop, isent;
	uint8_t		tstate, tsent, reason, down;
	uint8_t		forgotten, outcome, phase, retransmits;
	uint8_t		rrqs, expired, una, high;
	uint32_t	have;		/* packets of the present message that are here, bits */
};

/* How a request ends. */
enum outcome {
	SUCCESS,
	GAVE_UP_REQUEST,	/* NOT_ACKED, REQUEST_RTX_EXCEEDED */
	NO_HANDLER_FOUND,	/* ACK_NOT_FOUND, REQUEST_SENT */
	GAVE_UP_REPLY,		/* REPLY_RTX_EXCEEDED, REQUEST_SENT */
	TIMED_OUT,		/* a stream's ETIMEDOUT */
	OUTCOMES,
};

extern const char *const outcome_names[OUTCOMES];

struct choice {
	double		p;		/* probability */
	double		us;		/* time that it takes; IN_CRASHED: time of the restart */
	enum input	in;
};

/* Fill in the possible results of CHOOSE_LOOKUP or CHOOSE_HANDLER; return their number. */
unsigned int choices(const struct model *m, enum effect_kind what, struct choice *c);

void machine_step(const struct model *m, struct machine *x, enum input in, uint8_t msg,
		  uint32_t arg, struct effects *out);
void stream_step(const struct model *m, struct machine *x, enum input in, uint8_t msg,
		 uint32_t arg, struct effects *out);
void effect_frame(struct effects *out, int side, uint8_t msg, uint32_t arg);
void effect_timer(struct effects *out, int side, enum timer_id t, double us);
void effect_stop(struct effects *out, int side, enum timer_id t);
void effect_other(struct effects *out, enum effect_kind what, int side);

/* ---- stations ---- */

/*
 * Stations: the process of each host (application, library, sending side of the kernel), the
 * receiving side of each host's kernel, and the wire in each direction. Stations that share a
 * processor count as one: station_of().
 */
enum station { PROCESS_I, PROCESS_T, RECEIVE_I, RECEIVE_T, WIRE_OUT, WIRE_BACK, STATIONS };

extern const char *const station_names[STATIONS];

enum station station_of(const struct model *m, enum station s);

/* ---- chain.c ---- */

/* Solution of a request's Markov reward chain; times in us. */
struct chain {
	unsigned int	states;			/* number of transient states */
	double		p[OUTCOMES];		/* probability of each outcome */
	/* time to any outcome; time to success, and its standard deviation */
	double		mean, success, deviation;
	/* at each station: service that the request waits for, other service, visits */
	double		demand[STATIONS], ghost[STATIONS], visits[STATIONS];
	double		latency, frames;	/* network's time without service; frames sent */
};

void chain_solve(const struct model *m, struct chain *c);

/**
 * struct waits - probabilities of a request's waits, and their mean times
 * @any:	probability that the request takes longer than the least time
 * @quick:	probability that it succeeds within a limit, and its session does not end before
 * @quick_us:	mean time of requests that succeed within the limit
 * @slow:	probability that it succeeds after the limit
 * @slow_us:	mean time of requests that succeed after the limit
 * @fail:	probability that it fails
 */
struct waits {
	double		any, quick, quick_us, slow, slow_us, fail;
};

void chain_waits(const struct model *m, double limit, double least, double hazard, struct waits *w);

/* ---- mva.c ---- */

struct network {
	const struct model *model;
	double		demand[STATIONS], ghost[STATIONS], visits[STATIONS];
	double		variation[STATIONS];	/* squared coefficient of variation of service */
	double		delay;			/* time without a server: timers, latency */
};

struct network_solution {
	double		throughput;		/* requests in a us */
	double		residence[STATIONS];	/* time at each station, with waiting */
	double		response;		/* response time, without think */
	double		utilization[STATIONS];
};

void mva_solve(const struct network *n, double think, unsigned int window, bool exact,
	       struct network_solution *s);
/* Solve the balance equations; false: too many states, no station, or no delay. */
bool balance_solve(const struct network *n, double think, unsigned int window,
		   struct network_solution *s);

/* ---- window.c ---- */

struct session {
	double		response, throughput, success, timeout;
};

/* Solve a session of N requests whose handlers are late or crash. */
void session_solve(const struct model *m, struct session *s);
void network_of(const struct model *m, const struct chain *c, struct network *n);

/* ---- predict.c ---- */

/* Mean time to make a connection, with lost frames. */
double handshake_us(const struct model *m);

struct prediction {
	struct chain	chain;
	struct network	network;
	struct network_solution queues;		/* approximated, for response and throughput */
	struct network_solution mva, balance;	/* exact, of the network without ghosts */
	bool		balanced;
	double		timeout;		/* first timeout for an acknowledgment, us */
	double		response;		/* response time of requests that succeed, us */
	double		throughput;		/* successes a second */
	double		success;
	double		availability;
	unsigned int	iterations;
};

void predict(struct model *m, struct prediction *p);

struct sensitivity {
	const struct key *key;
	double		value, derivative, elasticity;
};

/*
 * Compute the sensitivity of the response time to each key that has a component; return the number
 * of these keys.
 */
unsigned int sensitivities(const struct model *m, struct sensitivity *s);

/* ---- des.c, measure.c, socket.c ---- */

/* Times of requests, and their outcomes. */
struct sample {
	double		*us;			/* times of requests that succeeded */
	unsigned int	n, room;
	unsigned int	ended[OUTCOMES];	/* number of requests by outcome */
	double		time;			/* time of the whole run, us */
	unsigned long long frames;		/* frames sent */
};

void sample_add(struct sample *s, enum outcome o, double us);

void simulate(const struct model *m, unsigned int requests, unsigned long seed, struct sample *s);
void measure(const struct model *m, unsigned int requests, unsigned long seed, struct sample *s);
void measure_socket(const struct model *m, const char *at, const char *peer,
		    unsigned int requests, struct sample *s);
void serve(const struct model *m, const char *at);

/* ---- output.c ---- */

struct estimate {
	double		mean, error;		/* error: half of the 95 % interval */
	double		median, p99;
	double		throughput, success;
};

void estimate(struct sample *s, struct estimate *e);
void print_text(const struct model *m, const struct prediction *p);
void print_json(const struct model *m, const struct prediction *p,
		const struct sensitivity *s, unsigned int n, struct sample *des,
		struct sample *real);
void print_sensitivity(const struct sensitivity *s, unsigned int n);
void print_sample(const char *what, struct sample *s, const struct prediction *p);
void plot(const char *png, const char *data, const struct model *m, const char *key, bool log);

#endif /* PERFORMABILITY_H */
