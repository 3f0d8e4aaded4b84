#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: two hosts and a cable; what messages cost by each transport and protocol (am logp),
# and how many credits they need (am calibrate).
#
#	speed-am.sh [-r ROUNDS] [-o DIR] COMMAND [ARGUMENT...]	logp or calibrate; ARGUMENTs are am's
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

. "${0%/*}/am-hosts.sh"
am_hosts
if [ $# = 0 ]; then
	check "the server answers" am_serve
	check "each transport and protocol is measured" measured
	finish
fi
COMMAND=$1
shift
am_serve || exit
FINISHED=1
n0 am "$COMMAND" ${ROUNDS:+-r "$ROUNDS"} ${FIGURES:+--figures "$FIGURES"} "$@" "$EDP" "$ESP" "$UDP"
