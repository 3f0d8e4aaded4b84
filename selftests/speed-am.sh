#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: two hosts and a cable; what messages cost by each transport and protocol (am logp),
# and how many credits they need (am calibrate).
#
#	speed-am.sh [-r ROUNDS] [-o DIR] [logp|calibrate] [ARGUMENT...]	ARGUMENTs are am's
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+
#
# A cable of uml-virtual has a rate and a length: vt-logp.sh.

. "${0%/*}/lib.sh"

while getopts r:o: o; do
	case $o in
	r) ROUNDS=$OPTARG ;;
	o) FIGURES=$OPTARG ;;
	*) FINISHED=1; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
COMMAND=${1:-logp}
shift

. "${0%/*}/am-hosts.sh"
am_hosts
am_serve || exit
FINISHED=1
n0 am "$COMMAND" ${ROUNDS:+-r "$ROUNDS"} ${FIGURES:+--figures "$FIGURES"} "$@" "$EDP" "$ESP" "$UDP"
