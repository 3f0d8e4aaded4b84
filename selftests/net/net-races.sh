#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Many transfers into one host at a time, so that its processors send grants for each
# other's sockets, while other processes list the sockets and change the policy. The test
# needs a kernel that looks for data races (kcsan).
#
#	+----------------+             +------------------+
#	| n0          v0 +--- veth ----+ v1            n1 |
#	| writers        |             | readers, esp show|
#	+----------------+             +------------------+

. "${0%/*}/../lib/lib.sh"

N=${1:-6}
hosts 2
cable n0 v0 n1 v1
MAC=$(mac n1 v1)
for ((i = 0; i < N; i++)); do
	n1 stream -n 2M listen "%v1:$((2000 + i))" >"$TMP/listen.$i" 2>&1 &
	LISTENERS[i]=$!
done
intact()
{
	wait "${CONNECTORS[$1]}" && wait "${LISTENERS[$1]}" && same_hashes "$TMP/connect.$1" "$TMP/listen.$1"
}
listens() { [ "$(n1 esp show -l | grep -c ':20')" = "$N" ]; }
check "$N listen" until_true 60 listens
for ((i = 0; i < N; i++)); do
	n0 stream -n 2M connect "$MAC%v0:$((2000 + i))" >"$TMP/connect.$i" 2>&1 &
	CONNECTORS[i]=$!
done
for ((i = 0; i < 20; i++)); do
	n1 sysctl -qw net.esp.adaptive=$((i % 2)) || exit
	n1 esp show -e >"$TMP/show" || exit
done
n1 sysctl -qw net.esp.adaptive=1
for ((i = 0; i < N; i++)); do
	check "transfer $i is intact" intact "$i"
done
check "permission was parked" [ "$(stat n1 GrantQueued)" -gt 0 ]
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
