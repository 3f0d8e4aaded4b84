#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Part of "make bench": the module between 16 hosts that send to each other, beside TCP with DCTCP
# and CUBIC of the same kernel, in simulated time; and espsim with the very same flows.
# fabric.sh describes the hosts and the switch. build/fabric.json has the figures,
# Documentation/fabric-tables.txt the tables.
#
#	bench-fabric.sh [--no-run]	only the tables, from the last run's figures

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"

LINES=$SRC/build/fabric.json
TABLES=$SRC/Documentation/fabric-tables.txt
PROTOS="esp dctcp cubic" SEEDS="1 2 3 4 5"

cd "$SRC" || exit
need jq
"$HARNESS/vm" programs || exit

# case_of WORKLOAD LOAD MBIT US MS: let both play the same flows.
case_of()
{
	local p s

	say "$1, load $2, $3 Mbit/s"
	"$HARNESS/vm" run uml-virtual --time 3000 -- selftests/bench/fabric.sh -w "$1" -l "$2" -R "$3" \
		-D "$4" -t "$5" -p "$PROTOS" -s "$SEEDS" | grep '^{' | jq -c '. + { by: "module" }' >>"$LINES"
	[ "${PIPESTATUS[*]}" = "0 0 0" ] || die "fabric.sh failed"
	for s in $SEEDS; do
		for p in $PROTOS; do
			build/sim/espsim -j -p "$p" -w "$1" -l "$2" -t "$5" -N 16 -R "$3" -s "$s" --per-leaf 0 \
				--hop "$(awk "BEGIN { print $4 / 4 }")" | jq -c '. + { by: "espsim" }' >>"$LINES"
			[ "${PIPESTATUS[*]}" = "0 0" ] || die "espsim failed"
		done
	done
}

case $1 in
'')
	: >"$LINES"
	for load in 0.4 0.6 0.8; do
		case_of websearch $load 10000 20 60
		case_of websearch $load 1000 100 600
		case_of hadoop $load 1000 100 100
	done
	case_of datamining 0.6 10000 20 150
	;;
--no-run) [ -s "$LINES" ] || die "there are no figures yet" ;;
*) sed -n '/^#	bench-fabric/s/^#	//p' "$0" >&2; exit 2 ;;
esac

# rows FILTER: the filter gets the runs of a case, $esp, $dctcp and $cubic of BY, and yields cells.
rows()
{
	jq -rs --arg by "$1" '
		def digits(d): . * pow(10; d) | round / pow(10; d);
		def median: sort | .[(length - 1) / 2 | floor];
		def of(f): map(f) | median | if . >= 100 then digits(0) else digits(1) end;
		def short: if . >= 100 then digits(0) else digits(1) end;
		def range(f): map(f) | "\(median | short) (\(min | short) ... \(max | short))";
		def lost: 1e6 * (map(.drops_edge) | add) / (map(.frames_data) | add) | digits(0);
		def used: 100 * (map(.goodput_share) | add) / (map(.offered_share) | add) | digits(1);
		def p(name): map(select(.proto == name));
		map(select(.by == "module" or $by == "both")) | group_by([.workload != "websearch", .workload, -.rate_mbit, .load])[] |
		("\(.[0].workload) \(.[0].load), \(.[0].rate_mbit / 1000) Gbit/s") as $name | [$name] + ('"$2"') | map(tostring) | @tsv' "$LINES"
}

# table NAME HEADINGS: add rows from stdin to the tables.
table()
{
	{ printf '%s\n' "${2//|/$'\t'}"; cat; } | awk -F '\t' -v name="$1" -f selftests/bench/table.awk >>"$TABLES"
}

printf '.. SPDX-License-Identifier: GPL-2.0-only\n.. made by bench-fabric.sh\n\n' >"$TABLES"
rows module '["esp", "dctcp", "cubic"] as $all | . as $runs | $all | map(. as $name | $runs | p($name)) |
	[(.[] | of(.small_p50)), (.[] | range(.small_p99))]' |
	table small "flows|ESP 50 %|DCTCP 50 %|CUBIC 50 %|ESP 99 %|DCTCP 99 %|CUBIC 99 %"
rows module '["esp", "dctcp", "cubic"] as $all | . as $runs | $all | map(. as $name | $runs | p($name)) |
	[(.[] | of(.large_p50)), (.[] | of(.large_p99))]' |
	table large "flows|ESP 50 %|DCTCP 50 %|CUBIC 50 %|ESP 99 %|DCTCP 99 %|CUBIC 99 %"
rows module '["esp", "dctcp", "cubic"] as $all | . as $runs | $all | map(. as $name | $runs | p($name)) |
	[(.[] | used), (.[] | lost), (.[] | map(.flows - .finished) | add)]' |
	table load "flows|ESP in time|DCTCP in time|CUBIC in time|ESP lost|DCTCP lost|CUBIC lost|ESP open|DCTCP open|CUBIC open"
rows both '. as $runs | ["esp", "dctcp"] | map(. as $name | $runs | p($name) |
	(map(select(.by == "module"))) as $real | (map(select(.by == "espsim"))) as $sim |
	def ratio(f): ($sim | map(f) | median) / ($real | map(f) | median) | digits(2);
	[ratio(.goodput_share), ratio(.small_p50), ratio(.small_p99), ratio(.large_p50), ratio(.large_p99)] +
	(if $name == "esp" then [] else ["\($real | lost)", "\($sim | lost)"] end)) | add' |
	table espsim "flows|ESP in time|small 50 %|small 99 %|large 50 %|large 99 %|DCTCP in time|small 50 %|small 99 %|large 50 %|large 99 %|lost, module|lost, espsim"
say "$(wc -l <"$LINES") runs in build/fabric.json"
