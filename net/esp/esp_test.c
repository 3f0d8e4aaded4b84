// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: the protocol's decisions and its packets. */
#include <kunit/test.h>
#include "esp.h"

static void seq__wraps(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, esp_before(0xffffffffu, 0));
	KUNIT_EXPECT_FALSE(test, esp_before(0, 0xffffffffu));
}

static struct kunit_case esp_cases[] = {
	KUNIT_CASE(seq__wraps),
	{}
};

static struct kunit_suite esp_suite = {
	.name		= "esp",
	.test_cases	= esp_cases,
};

kunit_test_suite(esp_suite);
