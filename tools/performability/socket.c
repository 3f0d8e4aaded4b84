// SPDX-License-Identifier: BSD-3-Clause
/*
 * Measurement over sockets: libam over udp, edp and esp, or one message and its answer at a time on
 * a stream of AF_ESP. This program sets up no losses of the network; netem, for example, does.
 */
#include <errno.h>
#include <gsl/gsl_rng.h>
#include <linux/af_esp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "../device.h"
#include "performability.h"

#define ECHO		1
#define ANSWER		2
#define NOBODY		3
#define POOL		1024
#define MSS		1468
#define ESP_PORT	4999

struct call {
	bool		out;
	double		began;
	am_handle_t	handle;
};

static const struct model *model;
static struct sample *result;
static struct call calls[256];
static gsl_rng *rng;
static bool crashed;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void nap(double us)
{
	struct timespec t = { us / 1e6, (long)(us * 1e3) % 1000000000 };

	if (us > 0)
		nanosleep(&t, NULL);
}

static void must(int error, const char *what)
{
	if (error == AM_ERR_SYSTEM)
		refuse(NULL, 0, "%s: %s", what, strerror(errno));
	if (error)
		refuse(NULL, 0, "%s: %s", what, AM_ErrorName(error));
}

/* Draw a fault of the handler, as in the model's chain. */
static struct choice choose(void)
{
	struct choice c[4];
	unsigned int i, n = choices(model, CHOOSE_HANDLER, c);
	double u = gsl_rng_uniform(rng);

	for (i = 0; i < n - 1 && u >= c[i].p; i++)
		u -= c[i].p;
	return c[i];
}

/*
 * libam
 */

static void serve_request(void *token, int id, int a1, int a2, int a3)
{
	struct choice c = choose();

	(void)a1;
	(void)a2;
	(void)a3;
	if (c.in == IN_CRASHED)
		crashed = true;
	else
		nap(c.us);
	if (!crashed)
		AM_Reply1(token, ANSWER, id);
}

/* Drop all frames of a process that has crashed. */
static enum am_verdict filter(void *arg, uint8_t *frame, size_t len)
{
	(void)arg;
	(void)frame;
	(void)len;
	return crashed ? AM_DROP : AM_PASS;
}

static void ended(unsigned int id, enum outcome o)
{
	calls[id].out = false;
	sample_add(result, o, now_us() - calls[id].began);
}

static void take_reply(void *token, int id, int a1, int a2, int a3)
{
	(void)token;
	(void)a1;
	(void)a2;
	(void)a3;
	ended(id, SUCCESS);
}

static void on_return(ep_t ep, am_handle_t handle, const struct am_state *s, void *arg)
{
	unsigned int i;

	(void)ep;
	(void)arg;
	for (i = 0; i < model->window; i++)
		if (calls[i].out && calls[i].handle == handle)
			ended(i, s->ack == AM_ACK_NOT_FOUND ? NO_HANDLER_FOUND :
				 s->ack == AM_REPLY_RTX_EXCEEDED ? GAVE_UP_REPLY : GAVE_UP_REQUEST);
}

static ep_t open_endpoint(eb_t bundle, const char *address)
{
	struct am_options o = {
		.address = address, .protocol = model->protocol, .credits = model->window,
		.pool = POOL, .retries = model->retries, .reply_retries = model->reply_retries,
		.timeout_us = model->timeout_us, .min_timeout_us = model->min_timeout_us,
		.reply_timeout_us = model->reply_timeout_us,
		.handler_max_us = model->handler_max_us, .faults.filter = filter,
	};
	ep_t ep;
	en_t name;

	must(AM_AllocateEndpointWith(bundle, &o, &ep, &name), address);
	must(AM_SetHandler(ep, ECHO, serve_request), address);
	must(AM_SetHandler(ep, ANSWER, take_reply), address);
	must(AM_SetReturnHandler(ep, on_return, NULL), address);
	return ep;
}

static unsigned int finished(const struct sample *s)
{
	unsigned int n = 0, o;

	for (o = 0; o < OUTCOMES; o++)
		n += s->ended[o];
	return n;
}

static void connect_to(ep_t ep)
{
	int error, tries = 0;

	do
		error = AM_Connect(ep, 0, 1);
	while ((error == AM_ERR_TIMEOUT || error == AM_ERR_NETWORK) && ++tries < 100);
	must(error, "the peer");
}

static void am_measure(const char *at, const char *peer, unsigned int requests)
{
	struct am_stats stats;
	eb_t bundle;
	en_t name;
	ep_t ep;
	unsigned int i;
	double start;

	must(AM_AllocateBundle(AM_SEQ, &bundle), "libam");
	AM_SetTimeout(bundle, 1000);
	ep = open_endpoint(bundle, at);
	must(AM_NameFromString(peer, &name), peer);
	must(AM_Map(ep, 0, name, 0), peer);
	connect_to(ep);
	start = now_us();
	while (finished(result) < requests) {
		connect_to(ep);
		for (i = 0; i < model->window; i++) {
			bool missing = gsl_rng_uniform(rng) < model->missing;

			if (calls[i].out)
				continue;
			calls[i].out = true;
			calls[i].began = now_us();
			must(AM_Request1(ep, 0, missing ? NOBODY : ECHO, i), "request");
			must(AM_GetTransferHandle(ep, &calls[i].handle), "request");
		}
		if (AM_WaitSema(bundle) == AM_ERR_SYSTEM)
			refuse(NULL, 0, "%s: %s", at, strerror(errno));
	}
	result->time = now_us() - start;
	AM_GetStats(ep, &stats);
	result->frames = stats.frames_sent;
	AM_FreeBundle(bundle);
}

static void am_serve(const char *at)
{
	eb_t bundle;
	ep_t ep;

	must(AM_AllocateBundle(AM_SEQ, &bundle), "libam");
	ep = open_endpoint(bundle, at);
	while (true) {
		if (AM_WaitSema(bundle) == AM_ERR_SYSTEM)
			refuse(NULL, 0, "%s: %s", at, strerror(errno));
		if (!crashed)
			continue;
		AM_FreeEndpoint(ep);
		nap(model->restart);
		crashed = false;
		ep = open_endpoint(bundle, at);
	}
}

/*
 * A stream
 */

static void esp_address(const char *text, struct sockaddr_esp *a, const char **dev)
{
	const char *percent = strchr(text, '%');
	unsigned char *mac = a->sesp_addr;

	memset(a, 0, sizeof(*a));
	a->sesp_family = AF_ESP;
	a->sesp_port = htons(ESP_PORT);
	if (percent) {
		*dev = percent + 1;
		a->sesp_ifindex = device_index(*dev);
		if (!a->sesp_ifindex)
			refuse(NULL, 0, "%s: %s", *dev, strerror(errno));
		return;
	}
	if (sscanf(text, "esp:%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3,
		   mac + 4, mac + 5) != 6)
		refuse(NULL, 0, "\"%s\" is neither esp:%%DEV nor esp:MAC", text);
	a->sesp_halen = 6;
}

static int esp_socket(void)
{
	int fd = socket(AF_ESP, SOCK_STREAM, 0);

	if (fd < 0)
		refuse(NULL, 0, "AF_ESP: %s", strerror(errno));
	return fd;
}

/* A message of one packet is a small one; all packets of others are full. */
static size_t message_size(double packets)
{
	return packets > 1 ? packets * MSS : 32;
}

static bool transfer(int fd, bool out, size_t size)
{
	static char data[MAX_PACKETS * MSS];
	size_t done = 0;
	ssize_t n;

	for (; done < size; done += n) {
		n = out ? send(fd, data + done, size - done, MSG_NOSIGNAL) :
			  recv(fd, data + done, size - done, 0);
		if (n <= 0)
			return false;
	}
	return true;
}

static void esp_measure(const char *at, const char *peer, unsigned int requests)
{
	struct sockaddr_esp here, there;
	const char *dev = NULL;
	int fd = esp_socket();
	double start, began;

	if (model->window > 1)
		refuse(NULL, 0, "on a stream one message at a time is measured: window=1");
	esp_address(at, &here, &dev);
	esp_address(peer, &there, &dev);
	there.sesp_ifindex = here.sesp_ifindex;
	if (connect(fd, (struct sockaddr *)&there, sizeof(there)))
		refuse(NULL, 0, "%s: %s", peer, strerror(errno));
	start = now_us();
	while (finished(result) < requests) {
		bool done;

		began = now_us();
		done = transfer(fd, true, message_size(model->packets_request)) &&
		       transfer(fd, false, message_size(model->packets_reply));
		sample_add(result, done ? SUCCESS : TIMED_OUT, now_us() - began);
		if (!done)
			refuse(NULL, 0, "%s: %s", peer, strerror(errno));
	}
	result->time = now_us() - start;
	close(fd);
}

static void esp_serve(const char *at)
{
	struct sockaddr_esp here;
	const char *dev;
	int listener = esp_socket(), fd;

	esp_address(at, &here, &dev);
	if (bind(listener, (struct sockaddr *)&here, sizeof(here)) || listen(listener, 8))
		refuse(NULL, 0, "%s: %s", at, strerror(errno));
	while (true) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			refuse(NULL, 0, "%s: %s", at, strerror(errno));
		while (transfer(fd, false, message_size(model->packets_request))) {
			nap(choose().us);
			if (!transfer(fd, true, message_size(model->packets_reply)))
				break;
		}
		close(fd);
	}
}

static bool is_stream(const char *at)
{
	if (model->protocol != STREAM)
		return false;
	if (strncmp(at, "esp:", 4))
		refuse(model->file, 0, "%s is not for the protocol esp", at);
	if (model->missing + model->late + model->crash > 0)
		refuse(model->file, 0,
		       "no handlers are missing, late or crash here: libam's do, protocol nway");
	return true;
}

void measure_socket(const struct model *m, const char *at, const char *peer,
		    unsigned int requests, struct sample *out)
{
	memset(out, 0, sizeof(*out));
	memset(calls, 0, sizeof(calls));
	model = m;
	result = out;
	rng = gsl_rng_alloc(gsl_rng_mt19937);
	if (is_stream(at))
		esp_measure(at, peer, requests);
	else
		am_measure(at, peer, requests);
	gsl_rng_free(rng);
}

void serve(const struct model *m, const char *at)
{
	model = m;
	rng = gsl_rng_alloc(gsl_rng_mt19937);
	if (is_stream(at))
		esp_serve(at);
	else
		am_serve(at);
}
