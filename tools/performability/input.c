// SPDX-License-Identifier: BSD-3-Clause
/*
 * The file that describes a model. It has lines "WORD VALUE"; "#" begins a comment.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include "performability.h"

#define LONGEST		1e10		/* longest time in a model, us */

#define KEY(name, kind, field, low, high, preset, component) \
	{ name, kind, offsetof(struct model, field), low, high, preset, component }
#define TIME(name, field, preset, component) \
	KEY(name, KEY_TIME, field, 0, LONGEST, preset, component)
#define PROBABILITY(name, field, component) \
	KEY(name, KEY_PROBABILITY, field, 0, 1, 0, component)
#define COUNT(name, field, low, high, preset) \
	KEY(name, KEY_COUNT, field, low, high, preset, NULL)

/* The man page has the same table. */
const struct key keys[] = {
	TIME("application.request", app_request, 0, "application"),
	TIME("application.handler", app_handler, NAN, "application"),
	TIME("application.reply", app_reply, 0, "application"),
	TIME("library.send", lib_send, NAN, "library"),
	TIME("library.receive", lib_receive, NAN, "library"),
	TIME("kernel.send", kernel_send, NAN, "kernel"),
	TIME("kernel.receive", kernel_receive, NAN, "kernel"),
	TIME("network.latency", latency, NAN, "network"),
	KEY("network.byte", KEY_TIME, byte, 0, 1e4, 0, "network"),
	PROBABILITY("library.fail", lib_fail, "library"),
	PROBABILITY("kernel.fail", kernel_fail, "kernel"),
	PROBABILITY("network.fail", network_fail, "network"),
	PROBABILITY("network.ber", ber, "network"),
	PROBABILITY("application.missing", missing, "application"),
	PROBABILITY("application.late", late, "application"),
	PROBABILITY("application.crash", crash, "application"),
	PROBABILITY("application.delay", delay, "application"),
	TIME("application.restart", restart, 100000, NULL),
	TIME("application.delayed", delayed, 10000, NULL),
	COUNT("frame.request", frame[FRAME_REQUEST], 1, 65536, 74),
	COUNT("frame.reply", frame[FRAME_REPLY], 1, 65536, 74),
	COUNT("frame.control", frame[FRAME_CONTROL], 1, 65536, 74),
	COUNT("window", window, 1, 256, 1),
	TIME("think", think, 0, NULL),
	KEY("timeout_us", KEY_TIME, timeout_us, 1, LONGEST, 100000, NULL),
	TIME("min_timeout_us", min_timeout_us, 2000, NULL),
	TIME("reply_timeout_us", reply_timeout_us, 1000000, NULL),
	TIME("handler_max_us", handler_max_us, 1000000, NULL),
	COUNT("retries", retries, 0, 250, -1),
	COUNT("reply_retries", reply_retries, 0, 250, 4),
	TIME("timer.grain", grain, 0, NULL),
	TIME("esp.rto_min_us", rto_min_us, 1000, NULL),
	TIME("esp.rrq_min_us", rrq_min_us, 300, NULL),
	TIME("esp.ack_delay_us", ack_delay_us, 500, NULL),
	COUNT("esp.rto_max_ms", rto_max_ms, 1, 60000, 5000),
	COUNT("esp.rrq_max_ms", rrq_max_ms, 1, 60000, 500),
	COUNT("esp.expiries", expiries, 1, 250, 5),
	COUNT("packets.request", packets_request, 1, MAX_PACKETS, 1),
	COUNT("packets.reply", packets_reply, 1, MAX_PACKETS, 1),
	KEY("node.mttf", KEY_TIME, mttf, 1 / 1e9, 1e9, 1e9, NULL),
	KEY("node.mttr", KEY_TIME, mttr, 0, 1e9, 0, NULL),
};

const unsigned int nkeys = ARRAY_SIZE(keys);

static const char *const protocols[] = {
	[AM_NWAY] = "nway", [AM_AMVIA] = "amvia", [AM_AMUDP] = "amudp", [STREAM] = "esp",
};

const char *protocol_name(enum am_protocol_id id)
{
	return protocols[id];
}

const struct key *key_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < nkeys; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

void refuse(const char *file, unsigned int line, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("esp-performability: ", stderr);
	if (file)
		fprintf(stderr, "%s:", file);
	if (line)
		fprintf(stderr, "%u:", line);
	if (file || line)
		fputc(' ', stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* Return the index of @value in @words; -1: it is not there. */
static int word_index(const char *value, const char *const *words, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (words[i] && !strcmp(words[i], value))
			return i;
	return -1;
}

static bool set_word(struct model *m, const char *word, const char *value, unsigned int line)
{
	static const char *const processors[] = { "one", "host", "two" };
	static const char *const services[] = { "exponential", "fixed" };
	int i;

	if (!strcmp(word, "protocol")) {
		i = word_index(value, protocols, ARRAY_SIZE(protocols));
		if (i < 0)
			refuse(m->file, line, "no protocol \"%s\": nway, amvia, amudp or esp",
			       value);
		m->protocol = i;
	} else if (!strcmp(word, "processors")) {
		i = word_index(value, processors, ARRAY_SIZE(processors));
		if (i < 0)
			refuse(m->file, line, "processors \"%s\": one, host or two", value);
		m->processors = i;
	} else if (!strcmp(word, "service")) {
		i = word_index(value, services, ARRAY_SIZE(services));
		if (i < 0)
			refuse(m->file, line, "service \"%s\": exponential or fixed", value);
		m->fixed = i;
	} else {
		return false;
	}
	return true;
}

static void set(struct model *m, const char *word, const char *value, unsigned int line)
{
	const struct key *k;
	char *end;
	double v;

	if (set_word(m, word, value, line))
		return;
	k = key_find(word);
	if (!k)
		refuse(m->file, line, "unknown word \"%s\"", word);
	errno = 0;
	v = strtod(value, &end);
	if (end == value || *end || !isfinite(v))
		refuse(m->file, line, "%s: \"%s\" is no number", word, value);
	if (k->kind == KEY_PROBABILITY && (v < 0 || v > 1))
		refuse(m->file, line, "%s: %s is no probability, 0 to 1", word, value);
	if (v < k->low || v > k->high)
		refuse(m->file, line, "%s: %s is not %g to %g", word, value, k->low, k->high);
	if (k->kind == KEY_COUNT && v != floor(v))
		refuse(m->file, line, "%s: %s is no whole number", word, value);
	*key_value(m, k) = v;
}

/* Check the conditions on several lines, once all are read. */
void model_check(struct model *m)
{
	unsigned int line = m->lines, i;

	if (m->retries < 0)
		m->retries = m->protocol == STREAM ? 200 : 10;

	if (!m->protocol)
		refuse(m->file, line, "the protocol is missing");
	for (i = 0; i < nkeys; i++)
		if (isnan(*key_value(m, &keys[i])))
			refuse(m->file, line, "the service time %s is missing", keys[i].name);
	if (m->missing + m->late + m->crash + m->delay > 1)
		refuse(m->file, line, "the probabilities of a handler's faults are more than 1");
	if (m->protocol == STREAM && m->window > 1 && m->late + m->crash > 0)
		refuse(m->file, line, "late or crashing handlers of a stream: window=1");
	if (m->protocol != STREAM && (m->packets_request > 1 || m->packets_reply > 1))
		refuse(m->file, line, "messages of more than one packet are for the protocol esp");
	if (m->app_handler + m->delayed > m->handler_max_us && m->delay > 0)
		refuse(m->file, line, "a handler that is delayed takes more than handler_max_us");
}

void model_read(struct model *m, const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "r") : stdin;
	unsigned int line = 0, i, at[ARRAY_SIZE(keys)] = { 0 };
	char text[512];
	const struct key *k;

	memset(m, 0, sizeof(*m));
	m->file = strcmp(path, "-") ? path : "stdin";
	m->processors = ONE_PER_HOST;
	for (i = 0; i < nkeys; i++)
		*key_value(m, &keys[i]) = keys[i].preset;
	if (!f)
		refuse(path, 0, "%s", strerror(errno));
	while (fgets(text, sizeof(text), f)) {
		char *word, *value, *rest;

		line++;
		if (!strchr(text, '\n') && !feof(f))
			refuse(m->file, line, "the line is too long");
		text[strcspn(text, "#\n")] = 0;
		word = strtok_r(text, " \t\r", &rest);
		if (!word)
			continue;
		value = strtok_r(NULL, " \t\r", &rest);
		if (!value)
			refuse(m->file, line, "%s: the value is missing", word);
		if (strtok_r(NULL, " \t\r", &rest))
			refuse(m->file, line, "%s: more than one value", word);
		k = key_find(word);
		if (k && at[k - keys])
			refuse(m->file, line, "%s was told in line %u", word, at[k - keys]);
		set(m, word, value, line);
		if (k)
			at[k - keys] = line;
	}
	if (ferror(f))
		refuse(m->file, 0, "%s", strerror(errno));
	if (f != stdin)
		fclose(f);
	m->lines = line ? line : 1;
}

/* Set a word by WORD=VALUE of the command line. */
void model_set(struct model *m, const char *assignment)
{
	const char *file = m->file, *equal = strchr(assignment, '=');
	char word[64];

	if (!equal || (size_t)(equal - assignment) >= sizeof(word))
		refuse(NULL, 0, "\"%s\" is no WORD=VALUE", assignment);
	memcpy(word, assignment, equal - assignment);
	word[equal - assignment] = 0;
	m->file = "command line";
	set(m, word, equal + 1, 0);
	m->file = file;
}

enum frame_kind frame_kind(uint8_t msg)
{
	switch (msg) {
	case WIRE_REQUEST:
	case MSG_DATA:
		return FRAME_REQUEST;
	case WIRE_REPLY:
	case MSG_BACK:
		return FRAME_REPLY;
	}
	return FRAME_CONTROL;
}

/* Refuse a model in which almost no frame arrives: libam would repeat its handshake for ever. */
void model_check_connects(const struct model *m)
{
	if (m->protocol != STREAM && frame_lost(m, FRAME_CONTROL) > 0.999999)
		refuse(m->file, 0, "nothing gets through: no connection");
}

/* Probability that the network loses a frame, or that a bit of the frame is wrong. */
double frame_loss(const struct model *m, enum frame_kind kind)
{
	return 1 - (1 - m->network_fail) * exp(8 * m->frame[kind] * log1p(-m->ber));
}

/* Probability that a frame is lost anywhere between two applications. */
double frame_lost(const struct model *m, enum frame_kind kind)
{
	double pass = (1 - m->lib_fail) * (1 - m->kernel_fail);

	return 1 - pass * pass * (1 - frame_loss(m, kind));
}
