#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Run tests with a module that waits at random places (delays/delays.c). A step that is late
# loses its race, which must make no difference.
#
#	races.sh [long]

. "${0%/*}/../lib/lib.sh"

PARAMETERS=/sys/module/delays/parameters
delays() { cat "$PARAMETERS/count"; }

# among_delays N COMMAND...: the command passes, and there were more than N delays.
among_delays()
{
	local from least=$1
	shift

	from=$(delays) || return
	"$@" || return
	echo "$(($(delays) - from)) delays"
	[ $(($(delays) - from)) -gt "$least" ]
}

if [ "$1" = long ]; then
	programs="sock-connection sock-listen sock-data sock-close sock-zerocopy sock-wait sock-options"
	programs+=" sock-seqpacket sock-dgram sock-many"
	seconds=60 rounds=3
else
	programs="sock-close sock-wait"
	seconds=8 rounds=0
fi
hosts 2
cable n0 v0 n1 v1
# A reader that misses the arrival of the last byte waits for ever.
check "a message there and back, $((500 * (rounds + 4))) times" among_delays 100 \
	timeout 100 speed -a n0:v0 -b n1:v1 -n $((500 * (rounds + 4))) esp pingpong
for h in $HOSTS; do
	ip netns delete "$h"
done
HOSTS=

for program in $programs; do
	check "$program" among_delays 100 "$program"
done
check "syscalls" among_delays 1000 syscalls -t $seconds
if [ $rounds != 0 ]; then
	for script in net-many.sh net-devices.sh "net-life.sh $rounds"; do
		# shellcheck disable=SC2086
		check "$script" among_delays 1000 selftests/net/$script
	done
fi
finish
