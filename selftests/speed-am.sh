#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: two hosts and a cable; what messages cost by each transport and protocol (am logp),
# and how many credits they need (am calibrate).
#
#	speed-am.sh [-r ROUNDS] [-o DIR] COMMAND [ARGUMENT...]	logp or calibrate; ARGUMENTs are am's
#	speed-am.sh [-r ROUNDS] ucx	active messages of UCX over TCP (ucx_perftest), as JSON of logp
#	speed-am.sh
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+
#
# As a test, without a COMMAND: each transport is measured.

. "${0%/*}/lib.sh"

while getopts r:o: o; do
	case $o in
	r) ROUNDS=$OPTARG ;;
	o) FIGURES=$OPTARG ;;
	*) FINISHED=1; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

# Each transport, by each protocol that it has; a layer is a line.
measured()
{
	n0 am logp -j -t 60000 -r 6 -m 32 -z none "$EDP" "$ESP" "$UDP" >"$TMP/json" || return
	local t want='raw nway oneway amvia amudp ' got

	for t in edp esp udp; do
		got=$(sed -n "s/.*\"transport\": \"$t\", \"protocol\": \"\([a-z]*\)\".*/\1/p" "$TMP/json" |
			tr '\n' ' ')
		echo "$t: $got"
		# Records are no datagrams.
		if [ $t = esp ]; then
			[ "raw $got" = "$want" ]
		else
			[ "$got" = "$want" ]
		fi || return
	done
}

# ucx_figure FIELD DIVIDEND TEST OPTION...: FIELD of UCX's line of figures, in microseconds, of
# ROUNDS processes; with a DIVIDEND that by it. The median, and the intervals' ends as logp has them.
ucx_figure()
{
	local field=$1 dividend=$2 i
	shift 2

	for ((i = 0; i < ROUNDS; i++)); do
		nsenter --net=/run/netns/n1 ucx_perftest -E sleep >"$TMP/server" 2>&1 &
		until_true 60 listens || return
		n0 ucx_perftest 10.9.0.2 -E sleep -f -v -s 8 "$@" >"$TMP/client" || return
		wait $! || return
		tail -n 1 "$TMP/client" | cut -d, -f "$field"
	done | jq -s "sort | map(if $dividend == 0 then 2 * . else $dividend / . end) | sort |
		{ median: .[length / 2 | floor], low: .[0], high: .[-1] }"
}
listens() { n1 ss -Hltn 'sport = 13337' | grep -q .; }

# A round trip is two of UCX's latencies: it counts half of one.
ucx()
{
	local trip gap

	export UCX_TLS=tcp UCX_WARN_UNUSED_ENV_VARS=n
	trip=$(ucx_figure 2 0 -t ucp_am_lat -n 1000 -w 100) &&
		gap=$(ucx_figure 8 1000000 -t ucp_am_bw -O 16 -n 5000 -w 500) &&
		jq -nc --argjson RTT "$trip" --argjson g "$gap" \
			'{ layers: [{ transport: "tcp", protocol: "ucx", $g, $RTT }] }'
}

. "${0%/*}/am-hosts.sh"
am_hosts
if [ $# = 0 ]; then
	check "the server answers" am_serve
	check "each transport and protocol is measured" measured
	finish
fi
COMMAND=$1
shift
if [ "$COMMAND" = ucx ]; then
	FINISHED=1
	ucx
	exit
fi
am_serve || exit
FINISHED=1
n0 am "$COMMAND" ${ROUNDS:+-r "$ROUNDS"} ${FIGURES:+--figures "$FIGURES"} "$@" "$EDP" "$ESP" "$UDP"
