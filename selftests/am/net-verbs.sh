#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Active Messages over RDMA verbs: soft RoCE on both ends of a veth. All is in one namespace,
# because soft RoCE before Linux 7 knows only the first one; packets to the other end take the cable
# all the same.
#
#	net-verbs.sh [OPTION...]		of sock-verbs, as -t NAME
#
#	+---------------------------------------------------+
#	| 10.9.0.1 rxe0 v0 +--- veth ----+ v1 rxe1 10.9.0.2 |
#	+---------------------------------------------------+

. "${0%/*}/../lib/lib.sh"
export AM_VERBS='10.9.0.1 10.9.0.2' AM_NAMED=verbs:10.9.0.2:4800

. "${0%/*}/am-hosts.sh"
export AM_DOWN='ip link set v0 down' AM_UP="ip link set v0 up && $ROUTES"
export AM_SLOW='tc qdisc add dev v0 root tbf rate 4mbit burst 2000 limit 1000000' AM_FAST='tc qdisc del dev v0 root'

# The device has sent all frames over the cable, except those that found none.
took_the_cable()
{
	local frames packets

	frames=$(</sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)
	packets=$(</sys/class/net/v0/statistics/tx_packets)
	echo "$frames frames, $packets packets"
	[ "$frames" -gt 10 ] && [ "$packets" -gt $((frames / 2)) ]
}

named_serve()
{
	am-named -f "$TMP/names" "$AM_NAMED" >"$TMP/named" 2>&1 &
	until_true 60 grep -x "$AM_NAMED" "$TMP/named"
}

measured()
{
	local got

	am logp -j -t 60000 -r 6 -m 32 -z 0,2000 "$VERBS" >"$TMP/json" || return
	got=$(sed -n 's/.*"transport": "verbs", "protocol": "\([a-z]*\)".*/\1/p' "$TMP/json" | tr '\n' ' ')
	echo "$got"
	[ "$got" = 'nway oneway amvia amudp ' ]
}

# messages [OPTION...]: run the tests; fail if an option names no test.
messages()
{
	sock-verbs "$@" | tee "$TMP/messages"
	[ "${PIPESTATUS[0]}" = 0 ] && grep -q '^ok ' "$TMP/messages"
}

check "two devices and a cable" cable_of_verbs
check_fails "without the library" "Can not access a needed shared library" \
	env -u LD_LIBRARY_PATH am logp --serve verbs:10.9.0.2
check_fails "without a device" "No such device" am logp --serve verbs:127.0.0.1
check_fails "nobody there" "no answer" am logp -t 200 -p nway verbs:10.9.0.2
check "the name server answers" named_serve
check "messages" messages "$@"
check "the server of am logp answers" verbs_serve
check "each protocol is measured" measured
check "all of it took the cable" took_the_cable
finish
