// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit: the protocol's decisions, and its packets. The tests of wire.c,
 * window.c, rtt.c, policy.c, ackq.c, turn.c, budget.c and overdue.c run in user space, too
 * (selftests/unit/host-pure.c).
 */
#include <kunit/test.h>
#include <linux/crc32c.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/net.h>
#include <linux/rtnetlink.h>
#include <linux/sort.h>
#include <net/addrconf.h>
#include <net/gro.h>
#include <net/hotdata.h>
#include "../esp.h"
#include "../ack_send.h"
#include "../addr.h"
#include "../af_esp.h"
#include "../close.h"
#include "../connect.h"
#include "../cookie.h"
#include "../crc.h"
#include "../delayed_ack.h"
#include "../dev.h"
#include "../dev_event.h"
#include "../dev_queue.h"
#include "../dgram.h"
#include "../first_burst.h"
#include "../grant.h"
#include "../hash.h"
#include "../input.h"
#include "../link.h"
#include "../memory.h"
#include "../negotiate.h"
#include "../notifier.h"
#include "../offload.h"
#include "../output.h"
#include "../rcv_ack.h"
#include "../rcv_coalesce.h"
#include "../rcv_data.h"
#include "../rcv_part.h"
#include "../recvmsg.h"
#include "../sendmsg.h"
#include "../sock.h"
#include "../sockopt.h"
#include "../sysctl.h"
#include "../tcp.h"
#include "../timeout.h"
#include "../timer.h"
#include "../write_queue.h"

#include "wire.c"
#include "window.c"
#include "rtt.c"
#include "policy.c"
#include "ackq.c"
#include "budget.c"
#include "turn.c"
#include "ackq_budget.c"
#include "harness.c"
#include "hash.c"
#include "listen.c"
#include "connect.c"
#include "tcp.c"
#include "input.c"
#include "close.c"
#include "rcv_data.c"
#include "grant.c"
#include "first_burst.c"
#include "output.c"
#include "left.c"
#include "timeout.c"
#include "rcv_ack.c"
#include "later.c"
#include "timer.c"
#include "offload.c"
#include "gro.c"
#include "fuzz.c"
#include "crc.c"
#include "parts.c"
#include "dev_queue.c"
#include "dev.c"
#include "nomem.c"
#include "recvmsg.c"

static struct kunit_suite esp_wire_suite = {
	.name		= "esp_wire",
	.test_cases	= wire_cases,
};

static struct kunit_suite esp_window_suite = {
	.name		= "esp_window",
	.test_cases	= window_cases,
};

static struct kunit_suite esp_rtt_suite = {
	.name		= "esp_rtt",
	.test_cases	= rtt_cases,
};

static struct kunit_suite esp_policy_suite = {
	.name		= "esp_policy",
	.test_cases	= policy_cases,
};

static struct kunit_suite esp_ackq_suite = {
	.name		= "esp_ackq",
	.test_cases	= ackq_cases,
};

static struct kunit_suite esp_budget_suite = {
	.name		= "esp_budget",
	.test_cases	= budget_cases,
};

static struct kunit_suite esp_turn_suite = {
	.name		= "esp_turn",
	.test_cases	= turn_cases,
};

static struct kunit_suite esp_ackq_budget_suite = {
	.name		= "esp_ackq_budget",
	.test_cases	= ackq_budget_cases,
};

/* Suites of tests with packets. Each test gets a new device. */
#define PACKET_SUITE(what)				\
static struct kunit_suite esp_##what##_suite = {	\
	.name		= "esp_" #what,			\
	.init		= packet_init,			\
	.exit		= packet_exit,			\
	.test_cases	= what##_cases,			\
}

PACKET_SUITE(hash);
PACKET_SUITE(listen);
PACKET_SUITE(connect);
PACKET_SUITE(tcp);
PACKET_SUITE(input);
PACKET_SUITE(close);
PACKET_SUITE(receive);
PACKET_SUITE(permission);
PACKET_SUITE(burst);
PACKET_SUITE(send);
PACKET_SUITE(left);
PACKET_SUITE(timeout);
PACKET_SUITE(ack);
PACKET_SUITE(later);
PACKET_SUITE(timer);
PACKET_SUITE(offload);
PACKET_SUITE(gro);
PACKET_SUITE(fuzz);
PACKET_SUITE(crc);
PACKET_SUITE(parts);
PACKET_SUITE(nomem);
PACKET_SUITE(read);
PACKET_SUITE(noqueue);
PACKET_SUITE(choice);

static struct kunit_suite esp_queue_suite = {
	.name		= "esp_queue",
	.init		= queue_init,
	.exit		= packet_exit,
	.test_cases	= queue_cases,
};

kunit_test_suites(&esp_wire_suite, &esp_window_suite, &esp_rtt_suite,
		  &esp_policy_suite,
		  &esp_ackq_suite, &esp_budget_suite, &esp_turn_suite,
		  &esp_ackq_budget_suite, &esp_hash_suite,
		  &esp_listen_suite, &esp_connect_suite, &esp_tcp_suite,
		  &esp_input_suite, &esp_close_suite, &esp_receive_suite, &esp_permission_suite,
		  &esp_burst_suite, &esp_send_suite, &esp_left_suite, &esp_timeout_suite,
		  &esp_ack_suite, &esp_later_suite, &esp_timer_suite, &esp_offload_suite,
		  &esp_gro_suite, &esp_fuzz_suite, &esp_crc_suite, &esp_parts_suite,
		  &esp_nomem_suite, &esp_read_suite, &esp_noqueue_suite, &esp_queue_suite,
		  &esp_choice_suite);
