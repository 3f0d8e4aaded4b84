// SPDX-License-Identifier: GPL-2.0-only
/*
 * A stream in both directions at once, written and read in pieces of random
 * size. Each direction's bytes follow from its seed, so the reader knows the
 * bytes that must come and compares each.
 *
 *   stream [OPTIONS] listen [%DEV]:PORT
 *   stream [OPTIONS] connect MAC%DEV:PORT
 *
 * SIGUSR1: enough. The program writes no more, and accepts any number of bytes.
 *
 * Exit status: 0 both directions intact, 1 not, 2 usage, 3 no connection.
 */
#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/af_esp.h>

static uint64_t bytes = 1 << 20, back = UINT64_MAX;
static size_t write_max = 100000, read_max = 100000;
static uint64_t seed = 1;
static int family = AF_ESP, type = SOCK_STREAM, timeout = 120;
static int refusals = -1;	/* seconds */
static int pause_reader, quiet, bear_down, faults, crc;
static volatile sig_atomic_t enough;
static sem_t news;	/* posted after SIGUSR1, or when this end can write no more */

static const char usage_text[] =
"usage: stream [OPTIONS] listen [%DEV]:PORT | connect MAC%DEV:PORT\n"
"  -n BYTES     from the connecting to the listening end (1 MiB); k, M, G\n"
"  -b BYTES     in the other direction (the same)\n"
"  -w BYTES     largest write (100000)    -r BYTES  largest read (100000)\n"
"  -s SEED      of data and sizes (1)     -q        SOCK_SEQPACKET\n"
"  -T SECONDS   give up when nothing moves for so long (120)\n"
"  -c SECONDS   ... when connections are refused for so long (-T's)\n"
"  -p MS        the reader pauses so long every 64 reads\n"
"  -f FAMILY    number of the family (19) -Q        no report\n"
"  -D           try again while the device is down (ENETDOWN)\n"
"  -F           try again after EFAULT, ENOMEM and ENOBUFS\n"
"  -C           ESP_CRC32C, which the connection must have then\n";

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Fill @buf with the bytes at @at of a direction's stream, eight at a time. */
static void pattern(uint8_t *buf, size_t len, uint64_t dir, uint64_t at)
{
	size_t i = 0;

	while (i < len) {
		uint64_t state = seed * 1000003 + dir * 7919 + (at + i) / 8;
		uint64_t v = next_random(&state);
		unsigned int o = (at + i) % 8;

		while (o < 8 && i < len)
			buf[i++] = v >> 8 * o++;
	}
}

static uint64_t fnv(uint64_t h, const uint8_t *p, size_t n)
{
	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/*
 * May a failed call be tried again? A call with a timeout ends with EINTR when the process is
 * stopped and continued (signal(7)). -D: a device that is down may come back. -F: a failure
 * may be an injected fault.
 */
static int try_again(double *since)
{
	if (errno == EINTR)
		return 1;
	if (faults && (errno == EFAULT || errno == ENOMEM || errno == ENOBUFS))
		return 1;
	if (!bear_down || errno != ENETDOWN)
		return 0;
	if (!*since)
		*since = seconds();
	if (seconds() - *since > timeout)
		return 0;
	usleep(20000);
	return 1;
}

static void no_more(int sig)
{
	enough = sig;
	sem_post(&news);
}

/* Wait for SIGUSR1. The other end may get its signal first, and so end its data before that. */
static int told_enough(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout;
	if (!enough)
		sem_timedwait(&news, &until);
	return enough;
}

struct half {
	int		fd;
	uint64_t	dir;
	uint64_t	total;
	uint64_t	done;
	uint64_t	hash;
	int		failed;
	char		why[160];
};

static void *writer(void *arg)
{
	uint64_t rnd = seed ^ 0x1234, len, pos;
	struct half *h = arg;
	uint8_t *buf = malloc(write_max);
	double since = 0;

	rnd += h->dir;
	h->hash = 0xcbf29ce484222325ull;
	while (h->done < h->total && !enough) {
		/* three quarters of the pieces are small */
		len = next_random(&rnd);
		len = len % 4 ? len % 2000 : len;
		len = 1 + len % write_max;
		if (len > h->total - h->done)
			len = h->total - h->done;
		pattern(buf, len, h->dir, h->done);
		for (pos = 0; pos < len;) {
			ssize_t n = send(h->fd, buf + pos, len - pos, MSG_NOSIGNAL);

			if (n < 0 && try_again(&since))
				continue;
			since = 0;
			if (n <= 0) {
				snprintf(h->why, sizeof(h->why), "send at %llu: %s",
					 (unsigned long long)h->done + pos,
					 strerror(errno));
				h->failed = 1;
				goto out;
			}
			pos += n;
		}
		h->hash = fnv(h->hash, buf, len);
		h->done += len;
	}
	while (shutdown(h->fd, SHUT_WR)) {
		if (try_again(&since))
			continue;
		snprintf(h->why, sizeof(h->why), "shutdown: %s", strerror(errno));
		h->failed = 1;
		break;
	}
out:
	if (h->failed)
		sem_post(&news);
	free(buf);
	return NULL;
}

static void *reader(void *arg)
{
	uint64_t rnd = seed ^ 0x777, reads = 0;
	struct half *h = arg;
	uint8_t *buf = malloc(read_max), *want = malloc(read_max);
	double since = 0;

	rnd += h->dir;
	h->hash = 0xcbf29ce484222325ull;
	for (;;) {
		size_t len = next_random(&rnd);
		ssize_t n;

		len = len % 4 ? len % 5000 : len;
		len = 1 + len % read_max;
		if (type == SOCK_SEQPACKET)
			len = read_max;
		n = recv(h->fd, buf, len, 0);
		if (n < 0 && try_again(&since))
			continue;
		since = 0;
		if (n < 0) {
			snprintf(h->why, sizeof(h->why), "recv at %llu: %s",
				 (unsigned long long)h->done, strerror(errno));
			h->failed = 1;
			break;
		}
		if (!n)
			break;
		pattern(want, n, h->dir, h->done);
		if (memcmp(buf, want, n)) {
			ssize_t i = 0;

			while (buf[i] == want[i])
				i++;
			snprintf(h->why, sizeof(h->why),
				 "wrong byte at %llu: %02x instead of %02x",
				 (unsigned long long)h->done + i, buf[i], want[i]);
			h->failed = 1;
			break;
		}
		h->hash = fnv(h->hash, buf, n);
		h->done += n;
		if (pause_reader && ++reads % 64 == 0 && !enough)
			usleep(1000 * pause_reader);
	}
	if (!h->failed && h->done != h->total && !told_enough()) {
		snprintf(h->why, sizeof(h->why), "%llu bytes came instead of %llu",
			 (unsigned long long)h->done,
			 (unsigned long long)h->total);
		h->failed = 1;
	}
	free(buf);
	free(want);
	return NULL;
}

static uint64_t number(const char *s)
{
	char *end;
	uint64_t v = strtoull(s, &end, 0);

	switch (*end) {
	case 'G':
		v <<= 10;	/* fall through */
	case 'M':
		v <<= 10;	/* fall through */
	case 'k':
		v <<= 10;
	}
	return v;
}

static int address(const char *s, struct sockaddr_esp *a)
{
	const char *dev = strchr(s, '%'), *colon = strrchr(s, ':');
	unsigned int m[6];
	char name[IFNAMSIZ] = "";
	int i;

	memset(a, 0, sizeof(*a));
	a->sesp_family = family;
	a->sesp_halen = 6;
	if (!colon)
		return -1;
	a->sesp_port = htons(atoi(colon + 1));
	if (dev) {
		snprintf(name, sizeof(name), "%.*s", (int)(colon - dev - 1), dev + 1);
		a->sesp_ifindex = if_nametoindex(name);
		if (!a->sesp_ifindex)
			return -1;
	}
	if (sscanf(s, "%x:%x:%x:%x:%x:%x", m, m + 1, m + 2, m + 3, m + 4,
		   m + 5) == 6)
		for (i = 0; i < 6; i++)
			a->sesp_addr[i] = m[i];
	return 0;
}

static int make_connection(int listening, const struct sockaddr_esp *a)
{
	int fd = socket(family, type, 0), lfd, one = 1;
	double end;

	if (fd < 0) {
		perror("socket");
		return -1;
	}
	if (crc && setsockopt(fd, SOL_ESP, ESP_CRC32C, &one, sizeof(one))) {
		perror("ESP_CRC32C");
		return -1;
	}
	if (listening) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (struct sockaddr *)a, sizeof(*a)) || listen(fd, 1)) {
			perror("listen");
			return -1;
		}
		lfd = fd;
		fd = accept(lfd, NULL, NULL);
		if (fd < 0)
			perror("accept");
		close(lfd);
		return fd;
	}
	end = seconds() + (refusals < 0 ? timeout : refusals);
	for (;;) {
		if (!connect(fd, (struct sockaddr *)a, sizeof(*a)))
			return fd;
		if (errno != ECONNREFUSED && !(bear_down && errno == ENETDOWN))
			break;
		if (seconds() >= end)
			break;
		usleep(100000);	/* the other end may be about to listen */
	}
	perror("connect");
	return -1;
}

int main(int argc, char **argv)
{
	struct half out = {}, in = {};
	pthread_t wt, rt;
	struct sockaddr_esp a;
	struct timeval tv;
	sigset_t set;
	double start;
	socklen_t len = sizeof(crc);
	int c, listening, fd;

	while ((c = getopt(argc, argv, "n:b:w:r:s:qT:c:p:f:QDFC")) != -1) {
		switch (c) {
		case 'n':
			bytes = number(optarg);
			break;
		case 'b':
			back = number(optarg);
			break;
		case 'w':
			write_max = number(optarg);
			break;
		case 'r':
			read_max = number(optarg);
			break;
		case 's':
			seed = number(optarg);
			break;
		case 'q':
			type = SOCK_SEQPACKET;
			break;
		case 'T':
			timeout = atoi(optarg);
			break;
		case 'c':
			refusals = atoi(optarg);
			break;
		case 'p':
			pause_reader = atoi(optarg);
			break;
		case 'f':
			family = atoi(optarg);
			break;
		case 'D':
			bear_down = 1;
			break;
		case 'F':
			faults = 1;
			break;
		case 'C':
			crc = 1;
			break;
		case 'Q':
			quiet = 1;
			break;
		default:
			fputs(usage_text, stderr);
			return 2;
		}
	}
	if (optind + 2 != argc || address(argv[optind + 1], &a) || !write_max ||
	    !read_max) {
		fputs(usage_text, stderr);
		return 2;
	}
	if (type == SOCK_SEQPACKET && read_max < write_max)
		read_max = write_max;
	if (back == UINT64_MAX)
		back = bytes;
	sem_init(&news, 0, 0);
	signal(SIGUSR1, no_more);
	listening = !strcmp(argv[optind], "listen");
	fd = make_connection(listening, &a);
	if (fd < 0)
		return 3;
	if (crc && (getsockopt(fd, SOL_ESP, ESP_CRC32C, &crc, &len) || !crc)) {
		fprintf(stderr, "stream %s: no CRC\n", argv[optind]);
		return 1;
	}
	tv.tv_sec = timeout;
	tv.tv_usec = 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));

	out.fd = fd;
	in.fd = fd;
	out.dir = listening;
	in.dir = !listening;
	out.total = listening ? back : bytes;
	in.total = listening ? bytes : back;
	start = seconds();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);	/* signals interrupt no thread */
	pthread_create(&wt, NULL, writer, &out);
	pthread_create(&rt, NULL, reader, &in);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_join(wt, NULL);
	pthread_join(rt, NULL);
	close(fd);
	if (out.failed)
		fprintf(stderr, "stream %s: %s\n", argv[optind], out.why);
	if (in.failed)
		fprintf(stderr, "stream %s: %s\n", argv[optind], in.why);
	if (!quiet)
		printf("%s: sent %llu hash %016llx received %llu hash %016llx in %.3f s\n",
		       argv[optind], (unsigned long long)out.done,
		       (unsigned long long)out.hash, (unsigned long long)in.done,
		       (unsigned long long)in.hash, seconds() - start);
	return out.failed || in.failed;
}
