#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Part of "make bench": Active Messages (speed-am.sh), measured by two instruments:
#
#	am		icount: Debian's 6.12 and both hosts in one processor, which counts
#			instructions: a nanosecond is one
#	am-uml		uml: native speed, two processors; its pictures in build/speed-am
#
# With RDMA verbs where there is soft RoCE (icount); and with UCX, whose active messages go over
# TCP: its round trip, and its gap between messages without replies.
#
# The cases are added to build/bench.json (bench.awk); build/bench-am.txt has the tables.

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"

OUT=$SRC/build/bench
DATA=$SRC/build/speed-am
cd "$SRC" || exit
need gnuplot-nox jq ucx-utils
mkdir -p "$DATA"

# measure INSTRUMENT VM-ARGUMENT...: in a guest; its JSON.
measure()
{
	local instrument=$1
	shift

	say "$instrument: ${*: -2}"
	"$HARNESS/vm" "$@" >"$DATA/$instrument.json" || { cat "$DATA/$instrument.json" >&2; exit 1; }
}

# lines INSTRUMENT: "CASE METRIC UNIT PROTO VALUE", ESP's of both its transports.
lines()
{
	jq -r --arg at "$1" '.layers[] | . as $l |
		({ edp: ["", "esp"], esp: ["records-", "esp"], udp: ["", "udp"], verbs: ["", "verbs"],
			tcp: ["", "ucx"] }
			[.transport]) as [$case, $by] |
		("o_s", "o_r", "g", "L", "RTT") as $p | select($l[$p].median != null) |
		[$at + "/" + $case + (.protocol | sub("ucx"; "nway")), $p, "us", $by, ($l[$p].median | tostring)] | join(" ")' \
		"$DATA/$1.json"
}

measure am run 6.12 --icount --time 5000 -- selftests/bench/speed-am.sh -a -r 7 logp -m 256
measure am-uml run uml --time 3000 -- selftests/bench/speed-am.sh -a -r 21 -o "$DATA" logp
{
	lines am
	lines am-uml
} >"$DATA/lines" || exit
{
	[ ! -e "$OUT.lines" ] || grep -v '^am' "$OUT.lines"
	cat "$DATA/lines"
} >"$OUT.lines.new"
mv "$OUT.lines.new" "$OUT.lines" || exit
awk -v json="$OUT.json" -f selftests/bench/bench.awk "$OUT.lines" >"$OUT.txt" || exit
jq -r '.layers[] | [.transport, .protocol, (.o_s, .o_r, .g, .L, .RTT, .G | .median // "-" |
	tostring)] | join("\t")' "$DATA"/am{,-uml}.json | tee "$OUT-am.txt"
say "$(wc -l <"$DATA/lines") figures in build/bench.json"
