#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Part of "make bench": programs that people run, by TCP and by "esp run" (programs.sh), in
# User-Mode Linux with two processors. build/programs.json has the medians of all rounds,
# build/programs.txt the table: first what is slower by ESP than by TCP, the worst first.

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"

OUT=$SRC/build/programs
cd "$SRC" || exit
need iperf3 nginx-light wrk redis-server redis-tools memcached libmemcached-tools postgresql sockperf rsync openssh-server openssh-client
"$HARNESS/vm" programs || exit
say "programs"
"$HARNESS/vm" run uml --pin --mem 4G --time 3000 -- selftests/bench/programs.sh -r "${ROUNDS:-5}" >"$OUT.log" ||
	{ tail -20 "$OUT.log" >&2; exit 1; }
sed -nE '/^[a-z]+[-a-zA-Z0-9]* [a-z0-9]+ [^ ]+ [a-z]+ [-0-9.e+]+$/p' "$OUT.log" >"$OUT.lines"
awk -v json="$OUT.json" -f selftests/bench/bench.awk "$OUT.lines" >"$OUT.all" || exit
# Where less is better, the ratio is turned round for the order.
{
	head -1 "$OUT.all"
	sed 1d "$OUT.all" | awk '{
		ratio = 1
		for (i = 4; i <= NF; i++)
			if ($i ~ /^\(/)
				ratio = $(i - 1)
		printf "%.4f\t%s\n", $3 == "us" ? 1 / ratio : ratio, $0
	}' | sort -n | cut -f 2-
} >"$OUT.txt"
cat "$OUT.txt"
