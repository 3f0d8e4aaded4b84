#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Fuzzers with new seeds, until time is over. First the fuzzers of the decisions, on the host
# (fuzz-guided.sh, a quarter of the time). Then in turn random frames to sockets in each state
# (net/esp/test/fuzz.c), forged frames beside transfers (net-inject.sh) and random system calls
# (syscalls.c), on the kernel that detects wrong memory accesses; the calls also on the one with
# two processors. Each round prints the command that repeats it.
#
#	fuzz.sh [SECONDS]	(600; the last round is finished, six minutes and more)

VM=$(dirname "$0")/../harness/vm
end=$((SECONDS + ${1:-600}))
round=0

# try ARGUMENT...: run "vm" with these arguments; end the script if it finds a bug.
try()
{
	local out

	echo "$*"
	if out=$("$VM" "$@" </dev/null) && ! grep -q "^not ok" <<<"$out"; then
		return
	fi
	echo "$out" | grep -v "^ok"
	echo "found something; again: $VM $*"
	exit 1
}

"${0%/*}/fuzz-guided.sh" $((${1:-600} / 4)) || [ $? = 4 ] || exit 1
while [ $SECONDS -lt $end ]; do
	seed=$(($(od -An -N3 -tu4 /dev/urandom)))
	try kunit uml-debug "fuzz_seed=$seed" fuzz_runs=20
	try run uml-debug --time 900 -- selftests/net/net-inject.sh "$seed" 3000
	for kernel in uml-debug uml; do
		try run $kernel --time 400 -- syscalls -t 60 "$seed"
	done
	round=$((round + 1))
done
echo "$round rounds (20 sockets in each state, 3000 frames by each injector, two minutes of calls): nothing found"
