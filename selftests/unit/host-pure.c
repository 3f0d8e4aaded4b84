// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -fsanitize=address,undefined -fno-sanitize-recover=all
// SOURCES: net/esp/core/wire.c net/esp/core/window.c net/esp/core/rtt.c net/esp/core/policy.c net/esp/core/turn.c net/esp/core/budget.c net/esp/core/overdue.c net/esp/core/tokens.c net/esp/core/ackq.c
/*
 * Run the KUnit tests of the files of pure decisions in user space, and compare
 * the documentation's frames with those of the tests. Must run in the project's
 * root.
 */
#include <stdio.h>
#include <stdlib.h>
#include "core/wire.h"
#include "core/window.h"
#include "core/rtt.h"
#include "core/policy.h"
#include "core/ackq.h"
#include "core/tokens.h"

/* As much of KUnit as the tests use. */
struct kunit {
	int failed;
};

struct kunit_case {
	const char *name;
	void (*run)(struct kunit *test);
};

#define KUNIT_CASE(f)		{ #f, f }
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))

#define EXPECT(test, a, op, b) do {					\
	__auto_type a_ = (a);						\
	__auto_type b_ = (b);						\
									\
	if (!(a_ op b_)) {						\
		printf("# %s:%d: expected %s " #op " %s: %lld, %lld\n",	\
		       __FILE__, __LINE__, #a, #b, (long long)a_,	\
		       (long long)b_);					\
		(test)->failed++;					\
	}								\
} while (0)

#define KUNIT_EXPECT_EQ(test, a, b)	EXPECT(test, a, ==, b)
#define KUNIT_EXPECT_LT(test, a, b)	EXPECT(test, a, <, b)
#define KUNIT_EXPECT_LE(test, a, b)	EXPECT(test, a, <=, b)
#define KUNIT_EXPECT_GT(test, a, b)	EXPECT(test, a, >, b)
#define KUNIT_EXPECT_GE(test, a, b)	EXPECT(test, a, >=, b)
#define KUNIT_EXPECT_TRUE(test, c)	EXPECT(test, !!(c), ==, true)
#define KUNIT_EXPECT_FALSE(test, c)	EXPECT(test, !!(c), ==, false)

#include "test/wire.c"
#include "test/window.c"
#include "test/rtt.c"
#include "test/policy.c"
#include "test/ackq.c"
#include "test/budget.c"
#include "test/turn.c"
#include "test/ackq_budget.c"

/* Read the bytes of a frame of the documentation; return how many there are. */
static unsigned int documented(const char *name, u8 *data, unsigned int room)
{
	FILE *f = fopen("Documentation/wire-example.txt", "r");
	char line[200], want[50];
	unsigned int n = 0, offset;
	bool on = false;

	if (!f)
		return 0;
	snprintf(want, sizeof(want), "# frame %s\n", name);
	while (fgets(line, sizeof(line), f)) {
		char *p = line;
		int used;

		if (!strncmp(line, "# frame ", 8))
			on = !strcmp(line, want);
		if (!on || sscanf(p, "%4x %n", &offset, &used) != 1)
			continue;
		if (offset != n) {
			printf("# %s: offset %04x, should be %04x\n", name,
			       offset, n);
			n = 0;
			break;
		}
		/* bytes have one space before them, the explanation two */
		for (p += 5; p[0] == ' ' && p[1] != ' '; p += 3) {
			if (n == room)
				break;
			data[n++] = strtoul(p + 1, NULL, 16);
		}
	}
	fclose(f);
	return n;
}

static void documentation__syn(struct kunit *test)
{
	u8 data[256];
	unsigned int n = documented("syn", data, sizeof(data));

	KUNIT_EXPECT_EQ(test, n, (unsigned int)sizeof(esp_example_syn));
	KUNIT_EXPECT_EQ(test, memcmp(data, esp_example_syn, n), 0);
}

static void documentation__data(struct kunit *test)
{
	u8 data[256];
	unsigned int n = documented("data", data, sizeof(data));

	KUNIT_EXPECT_EQ(test, n, (unsigned int)sizeof(esp_example_data));
	KUNIT_EXPECT_EQ(test, memcmp(data, esp_example_data, n), 0);
}

static struct kunit_case documentation_cases[] = {
	KUNIT_CASE(documentation__syn),
	KUNIT_CASE(documentation__data),
	{}
};

int main(void)
{
	static const struct kunit_case *const suites[] = {
		wire_cases, window_cases, rtt_cases, policy_cases,
		ackq_cases, budget_cases, turn_cases, ackq_budget_cases, documentation_cases,
	};
	const struct kunit_case *c;
	unsigned int i, n = 0;
	int failed = 0;

	for (i = 0; i < ARRAY_SIZE(suites); i++) {
		for (c = suites[i]; c->run; c++) {
			struct kunit test = { 0 };

			c->run(&test);
			printf("%sok %u - %s\n", test.failed ? "not " : "", ++n,
			       c->name);
			failed += test.failed;
		}
	}
	printf("1..%u\n", n);
	return !!failed;
}
