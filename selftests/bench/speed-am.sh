#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest with two hosts and a cable: measure the cost of messages by each transport and
# protocol (am logp), and the credits that they need (am calibrate).
#
#	speed-am.sh [-r ROUNDS] [-o DIR] [-l RATE] COMMAND [ARGUMENT...]	logp or calibrate; ARGUMENTs are am's
#	speed-am.sh -a [-r ROUNDS] [-o DIR] logp [ARGUMENT...]	as JSON, with all that is here: also verbs
#			over a cable of their own, where there is soft RoCE, and UCX
#	speed-am.sh -l RATE rate	a test: N-way over EDP answers as fast as datagrams arrive one way
#	speed-am.sh [-r ROUNDS] ucx	active messages of UCX over TCP (ucx_perftest), as JSON of logp
#	speed-am.sh
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+
#
# The cable has the RATE, as tc(8) writes it. As a test, without a COMMAND: each transport is
# measured.

. "${0%/*}/../lib/lib.sh"

while getopts ar:o:l: o; do
	case $o in
	a) ALL=1 ;;
	r) ROUNDS=$OPTARG ;;
	o) FIGURES=$OPTARG ;;
	l) LINK=$OPTARG ;;
	*) FINISHED=1; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

# Check that each transport was measured by each of its protocols; a layer is a line.
measured()
{
	n0 am logp -j -t 60000 -r 6 -m 32 -z none "$EDP" "$ESP" "$UDP" >"$TMP/json" || return
	local t want='raw nway oneway amvia amudp ' got

	for t in edp esp udp; do
		got=$(sed -n "s/.*\"transport\": \"$t\", \"protocol\": \"\([a-z]*\)\".*/\1/p" "$TMP/json" |
			tr '\n' ' ')
		echo "$t: $got"
		# Records are not datagrams, so they have no raw layer.
		if [ $t = esp ]; then
			[ "raw $got" = "$want" ]
		else
			[ "$got" = "$want" ]
		fi || return
	done
}

# ucx_run OPTION...: write UCX's figures of one run to $TMP/client, as a line. UCX looks for devices
# in /sys; "ip netns exec" mounts the namespace's own /sys.
ucx_run()
{
	ip netns exec n1 ucx_perftest -E sleep >"$TMP/server" 2>&1 &
	until_true 60 listens &&
		ip netns exec n0 ucx_perftest 10.9.0.2 -E sleep -f -v -s 8 "$@" >"$TMP/client" 2>&1 && wait $!
}
listens() { n1 ss -Hltn 'sport = 13337' | grep -q .; }

# Print two figures in microseconds: median, smallest and largest of ROUNDS means. UCX's latency is
# half a round trip; its other figure is messages per second, without replies.
ucx()
{
	local i

	export UCX_TLS=tcp
	for ((i = 0; i < ${ROUNDS:-7}; i++)); do
		ucx_run -t ucp_am_lat -n 1000 -w 100 &&
			awk -F, 'END { print "{\"RTT\":" 2 * $4 "}" }' "$TMP/client" &&
			ucx_run -t ucp_am_bw -O 16 -n 5000 -w 500 &&
			awk -F, 'END { print "{\"g\":" 1e6 / $8 "}" }' "$TMP/client" || break
	done >"$TMP/figures"
	[ "$i" = "${ROUNDS:-7}" ] || { cat "$TMP/client" "$TMP/server" >&2; return 1; }
	jq -Msc 'def of($p): map(.[$p] // empty) | sort |
			{ median: .[length / 2 | floor], low: .[0], high: .[-1] };
		{ layers: [{ transport: "tcp", protocol: "ucx", g: of("g"), RTT: of("RTT") }] }' "$TMP/figures"
}

limited()
{
	local i

	for i in 0 1; do
		tc -n n$i qdisc add dev v$i root tbf rate "$LINK" burst 4000 limit 4000000 || return
	done
}

measure()
{
	n0 am "$COMMAND" ${ROUNDS:+-r "$ROUNDS"} ${FIGURES:+--figures "$FIGURES"} "$@" "$EDP" "$ESP" "$UDP"
}

# N-way requests of 1400 bytes are answered at 95 % of the rate of raw datagrams, at least.
at_the_rate()
{
	n0 am logp -j -t 60000 -r 6 -m 32 -z none -p raw "$EDP" >"$TMP/raw" &&
		n0 am calibrate -j -t 60000 -r 6 -n 4 -m 1024 -z 1400 "$EDP" >"$TMP/nway" || return
	{
		sed -n 's/.*"one_way_large": {"median": \([0-9.]*\).*/raw \1/p' "$TMP/raw"
		grep -o '"rate": {"median": [0-9.]*' "$TMP/nway" | sed 's/.*: /nway /'
	} | awk '$2 > rate[$1] { rate[$1] = $2 }
		END {
			print "datagrams " rate["raw"] ", answers " rate["nway"] " in a second"
			exit !(rate["raw"] && rate["nway"] >= 0.95 * rate["raw"])
		}'
}

. "${0%/*}/../am/am-hosts.sh"
am_hosts
[ -z "$LINK" ] || limited || exit
if [ $# = 0 ]; then
	check "the server answers" am_serve
	check "each transport and protocol is measured" measured
	finish
fi
if [ "$1" = rate ]; then
	check "the server answers" am_serve
	check "requests are answered at the rate of datagrams" at_the_rate
	finish
fi
COMMAND=$1
shift
if [ "$COMMAND" = ucx ]; then
	FINISHED=1
	ucx
	exit
fi
FINISHED=1
if [ -z "$ALL" ]; then
	am_serve && measure "$@"
	exit
fi
# One server after the other, so that no other one runs meanwhile.
am_serve && measure -j "$@" >"$TMP/all" || exit
kill $! && wait
if modprobe rdma_rxe 2>/dev/null; then
	cable_of_verbs && verbs_serve &&
		am "$COMMAND" -j ${ROUNDS:+-r "$ROUNDS"} "$@" "$VERBS" >>"$TMP/all" || exit
fi
ucx >>"$TMP/all" && jq -Msc 'first + { layers: map(.layers[]) }' "$TMP/all"
