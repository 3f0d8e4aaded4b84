#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Random frames to sockets in each state (net/esp/fuzz_test.c), in the kernel that
# notices wrong memory accesses, with new seeds until time is over. Each round
# prints the seed with which it is repeated.
#
#	fuzz.sh [SECONDS]	(600)

VM=$(dirname "$0")/harness/vm
end=$((SECONDS + ${1:-600}))
round=0
while [ $SECONDS -lt $end ]; do
	seed=$(od -An -N3 -tu4 /dev/urandom)
	set -- kunit uml-debug "fuzz_seed=$((seed))" fuzz_runs=100
	echo "$*"
	out=$("$VM" "$@") && ! grep '^not ok' <<<"$out" || {
		echo "$out" | grep -v '^ok'
		echo "found something; again: $VM $*"
		exit 1
	}
	round=$((round + 1))
done
echo "$round rounds of 100 sockets in each state: nothing found"
