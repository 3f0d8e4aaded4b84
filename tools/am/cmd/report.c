// SPDX-License-Identifier: BSD-3-Clause
/*
 * Results of am logp: a table in the form of 004's table 3.1, and JSON.
 */
#include <math.h>
#include <string.h>
#include "cmd.h"

#define US	1000.0		/* ns */

static const struct parameter {
	const char	*name;
	size_t		offset;
	double		unit;
} parameters[] = {
	{ "o_s", offsetof(struct result, o_s), US },
	{ "o_r", offsetof(struct result, o_r), US },
	{ "o_r_gap", offsetof(struct result, o_r_gap), US },
	{ "g", offsetof(struct result, gap), US },
	{ "L", offsetof(struct result, latency), US },
	{ "RTT", offsetof(struct result, trip), US },
	{ "G", offsetof(struct result, per_byte), 1 },
};

static struct interval value(const struct result *r, const struct parameter *p)
{
	struct interval i;

	memcpy(&i, (const char *)r + p->offset, sizeof(i));
	return i;
}

/* Return the result of raw datagrams to the same address; NULL: they were not measured. */
static const struct result *raw_of(const struct result *r, const struct result *all,
				   unsigned int n)
{
	for (; n; n--, all++)
		if (!strcmp(all->protocol, "raw") && !strcmp(all->address, r->address))
			return all;
	return NULL;
}

static const struct size_result *size_of(const struct result *r, size_t bytes)
{
	unsigned int i;

	for (i = 0; i < r->nsizes; i++)
		if (r->size[i].bytes == bytes)
			return &r->size[i];
	return NULL;
}

/*
 * The table
 */

static void print_value(double v)
{
	if (isnan(v))
		printf(" %11s", "-");
	else
		printf(" %11.*f", fabs(v) < 100 ? 3 : 1, v);
}

static void print_range(struct interval i, double unit)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*f-%.*f", fabs(i.high / unit) < 100 ? 2 : 0, i.low / unit,
		 fabs(i.high / unit) < 100 ? 2 : 0, i.high / unit);
	printf(" %11s", isnan(i.low) ? "" : text);
}

static void print_parameters(const struct result *r)
{
	size_t i;

	printf("%-6s %-8s", r->transport, r->protocol);
	for (i = 0; i < ARRAY_SIZE(parameters); i++)
		print_value(value(r, &parameters[i]).median / parameters[i].unit);
	printf(" %7llu\n%15s", (unsigned long long)r->resent, "");
	for (i = 0; i < ARRAY_SIZE(parameters); i++)
		print_range(value(r, &parameters[i]), parameters[i].unit);
	puts("");
}

/* Print what the layer adds to the datagrams that carry it. */
static void print_overhead(const struct result *r, const struct result *raw)
{
	static const size_t bytes[] = { 0, RAW_MAX };
	size_t i;

	printf("%-6s %-8s RTT is %.3f us longer than that of datagrams alone (%.1f %%)\n",
	       r->transport, r->protocol, (r->trip.median - raw->trip.median) / US,
	       100 * (r->trip.median / raw->trip.median - 1));
	for (i = 0; i < ARRAY_SIZE(bytes); i++) {
		const struct size_result *s = size_of(r, bytes[i]);

		if (!s || isnan(s->gap.median) || isnan(raw->one_way[i].median))
			continue;
		printf("%15s %4zu bytes, one way: %.0f a second, datagrams alone %.0f (%.1f %%)\n",
		       "", bytes[i], 1e9 / s->gap.median, raw->one_way[i].median,
		       100e9 / s->gap.median / raw->one_way[i].median);
	}
}

static void print_warnings(const struct result *r)
{
	if (r->gap_hidden)
		printf("%-6s %-8s warning: the sender never waits: g is its own work, and no gap\n",
		       r->transport, r->protocol);
	if (r->resent)
		printf("%-6s %-8s warning: %llu requests were sent again or lost\n", r->transport,
		       r->protocol, (unsigned long long)r->resent);
}

static void print_head(const struct run *run)
{
	unsigned int j;

	printf("Microseconds, G in ns for each byte; medians of %u rounds, below: 95 %% sure;\n",
	       run->rounds);
	printf("%u requests outstanding at most, %ld processors here.\n\n", run->credits,
	       run->processors);
	printf("%15s", "");
	for (j = 0; j < ARRAY_SIZE(parameters); j++)
		printf(" %11s", parameters[j].name);
	printf(" %7s\n", "resent");
}

void report_layer(const struct run *run, const struct result *r, unsigned int i)
{
	if (!i)
		print_head(run);
	print_parameters(&r[i]);
	fflush(stdout);
}

void report_end(const struct run *run, const struct result *r, unsigned int n)
{
	const struct result *raw;
	unsigned int i, j;

	puts("");
	for (i = 0; i < n; i++) {
		raw = raw_of(&r[i], r, n);
		if (raw && raw != &r[i])
			print_overhead(&r[i], raw);
	}
	for (i = 0; i < n; i++)
		print_warnings(&r[i]);
	if (!run->nsizes)
		return;
	printf("\n%15s %11s %11s %11s %11s\n", "", "bytes", "o_s", "o_r", "g");
	for (i = 0; i < n; i++) {
		for (j = 0; j < r[i].nsizes; j++) {
			const struct size_result *s = &r[i].size[j];

			printf("%-6s %-8s %11zu", r[i].transport, r[i].protocol, s->bytes);
			print_value(s->o_s.median / US);
			print_value(s->o_r.median / US);
			print_value(s->gap.median / US);
			puts("");
		}
	}
}

/*
 * JSON: one layer a line
 */

static void json_number(const char *name, double v)
{
	if (!isfinite(v))
		printf("\"%s\": null", name);
	else
		printf("\"%s\": %.6g", name, v);
}

void json_interval(const char *name, struct interval i, double unit)
{
	printf("\"%s\": {", name);
	json_number("median", i.median / unit);
	printf(", ");
	json_number("low", i.low / unit);
	printf(", ");
	json_number("high", i.high / unit);
	printf("}");
}

static void json_signature(const struct result *r)
{
	unsigned int d, p, n;

	printf("\"signature\": [");
	for (d = 0; d < DELAYS; d++) {
		printf("%s{\"delay\": %.6g, \"points\": [", d ? ", " : "", r->delay[d] / US);
		for (p = n = 0; p < r->points; p++) {
			if (isnan(r->cost[d][p].median))
				continue;
			printf("%s{\"messages\": %u, ", n++ ? ", " : "", 1u << p);
			json_interval("cost", r->cost[d][p], US);
			printf("}");
		}
		printf("]}");
	}
	printf("]");
}

static void json_layer(const struct result *r)
{
	unsigned int i;

	printf("{\"transport\": \"%s\", \"protocol\": \"%s\", \"credits\": %u, ", r->transport,
	       r->protocol, r->credits);
	for (i = 0; i < ARRAY_SIZE(parameters); i++) {
		json_interval(parameters[i].name, value(r, &parameters[i]), parameters[i].unit);
		printf(", ");
	}
	printf("\"gap_hidden\": %s, \"resent\": %llu, ",
	       isnan(r->gap.low) || isnan(r->own.high) ? "null" : r->gap_hidden ? "true" : "false",
	       (unsigned long long)r->resent);
	json_interval("one_way_small", r->one_way[0], 1);
	printf(", ");
	json_interval("one_way_large", r->one_way[1], 1);
	printf(", ");
	json_signature(r);
	printf(", \"sizes\": [");
	for (i = 0; i < r->nsizes; i++) {
		printf("%s{\"bytes\": %zu, ", i ? ", " : "", r->size[i].bytes);
		json_interval("o_s", r->size[i].o_s, US);
		printf(", ");
		json_interval("o_r", r->size[i].o_r, US);
		printf(", ");
		json_interval("g", r->size[i].gap, US);
		printf("}");
	}
	printf("]}");
}

void report_json(const struct run *run, const struct result *r, unsigned int n)
{
	unsigned int i;

	printf("{\"unit\": \"us\", \"unit_G\": \"ns/byte\", \"unit_one_way\": \"1/s\", ");
	printf("\"confidence\": 0.95, \"rounds\": %u, \"processors\": %ld, \"layers\": [\n",
	       run->rounds, run->processors);
	for (i = 0; i < n; i++) {
		json_layer(&r[i]);
		puts(i + 1 < n ? "," : "");
	}
	puts("]}");
}
