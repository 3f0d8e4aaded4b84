#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The fuzzers of pure decisions, host-*-fuzz.c, guided by coverage: clang's libFuzzer changes
# the bytes from which a run takes its choices, and keeps those that reach new code. It begins
# with selftests/fuzz/corpus, and with build/corpus, where it puts its own findings.
#
#	fuzz-guided.sh [SECONDS]	(60, for all together)
#	fuzz-guided.sh merge		add files that reach more from build/corpus to
#					selftests/fuzz/corpus

cd "${0%/*}/../.." || exit
# shellcheck source=selftests/harness/fetch.sh
. selftests/harness/fetch.sh
OUT=build/guided
LEN=300		# bytes, the longest

skip() { echo "no coverage-guided fuzzing: $1"; exit 4; }

# guided TARGET OPTION... DIRECTORY...
guided()
{
	local t=$1
	shift
	"$OUT/$t" -max_len=$LEN "-artifact_prefix=build/corpus/found-$t-" "$@"
}

mkdir -p $OUT
(need clang libclang-rt-dev libc6-dev) || skip "clang can't be installed"
echo 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return !p && n; }' >$OUT/probe.c
clang -fsanitize=fuzzer,address,undefined -o $OUT/probe $OUT/probe.c 2>$OUT/log ||
	skip "$(head -1 $OUT/log)"

for t in wire window ackq; do
	kept=selftests/fuzz/corpus/$t found=build/corpus/$t
	mkdir -p "$kept" "$found"
	read -ra sources < <(sed -n 's|^// SOURCES: ||p' "selftests/fuzz/host-$t-fuzz.c")
	clang -D_GNU_SOURCE -DGUIDED -Iinclude/uapi -I. -Inet/esp -O1 -g -Wno-unused-function \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-o "$OUT/$t" "selftests/fuzz/host-$t-fuzz.c" "${sources[@]}" || exit 1
	if [ "$1" = merge ]; then
		guided $t -merge=1 -use_counters=0 "$kept" "$found" || exit
		continue
	fi
	if ! guided $t -max_total_time=$((${1:-60} / 3 + 1)) -print_final_stats=1 "$found" "$kept" >$OUT/log 2>&1; then
		tail -50 $OUT/log
		echo "found something; again: build/selftests/host-$t-fuzz FILE, as named above"
		exit 1
	fi
	echo "$t: $(awk '/number_of_executed_units/ { print $2 }' $OUT/log) runs," \
		"$(grep -o 'cov: [0-9]*' $OUT/log | tail -1 | tr -dc 0-9) edges: nothing found"
done
