// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers on the command line; text and JSON.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "esp.h"

/* The members of struct esp_stats, all of them 64-bit words. */
static const char *const stats_names[] = {
	"tx_packets", "tx_bytes", "rx_packets", "rx_bytes", "retrans",
	"rx_dup", "rx_ooo", "tx_empty", "rx_empty", "rrq_tx", "rrq_rx",
	"timeouts", "expiries", "holds_rx", "parked", "parked_us",
};

static_assert(sizeof(struct esp_stats) ==
	       ARRAY_SIZE(stats_names) * sizeof(__u64), "a name is missing");

/* Print counters: as text only those that are not zero, as JSON the members of an object. */
void print_stats(const struct esp_stats *stats, bool json)
{
	const __u64 *v = (const __u64 *)stats;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(stats_names); i++) {
		if (json)
			printf("%s\"%s\":%llu", i ? "," : "", stats_names[i],
			       v[i]);
		else if (v[i])
			printf(" %s:%llu", stats_names[i], v[i]);
	}
}

void json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < ' ')
			printf("\\u%04x", *text);
		else
			putchar(*text);
	}
	putchar('"');
}

void set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0)
		fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK :
					flags & ~O_NONBLOCK);
}

/* Parse as strtoull() does, but take digits only; set *end as that does. */
static __u64 digits(const char *arg, char **end)
{
	*end = (char *)arg;
	if (*arg < '0' || *arg > '9')
		return 0;
	errno = 0;
	return strtoull(arg, end, 10);
}

__u64 parse_number(struct argp_state *state, const char *arg, const char *what,
		   __u64 min, __u64 max)
{
	char *end;
	__u64 n = digits(arg, &end);

	if (end == arg || *end || errno || n < min || n > max)
		argp_error(state, "%s '%s' is not from %llu to %llu", what, arg,
			   min, max);
	return n;
}

/* Parse a number of bytes, not 0, that K, M or G (powers of 1024) may follow. */
__u64 parse_size(struct argp_state *state, const char *arg, const char *what,
		 __u64 max)
{
	static const char units[] = "KMGkmg";
	char *end;
	__u64 n = digits(arg, &end);
	const char *unit = end != arg && *end ? strchr(units, *end) : NULL;
	unsigned int shift = 0;

	if (unit) {
		shift = 10 * ((unit - units) % 3 + 1);
		end++;
	}
	if (end == arg || *end || errno || !n || n > max >> shift)
		argp_error(state, "%s '%s' is not from 1 to %llu bytes (K, M, G may follow)",
			   what, arg, max);
	return n << shift;
}
