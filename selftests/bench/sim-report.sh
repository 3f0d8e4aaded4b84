#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# All figures, tables and pictures of espsim in Documentation/datacentre.rst. build/sim/report.json
# has the figures, a line for each run; Documentation/datacentre-tables.txt has the tables.
#
#	sim-report.sh [--no-run]	only tables and pictures, from the last run's figures

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"
need gnuplot-nox jq gcc make libc6-dev
cd "$SRC" || exit
export OUT=$SRC/build/sim
LINES=$OUT/report.json
TABLES=$SRC/Documentation/datacentre-tables.txt
DATA=$OUT/plot
LOADS="0.4 0.6 0.8"
WORKLOADS="websearch:100 hadoop:25 datamining:200"

# sim SET OPTION...: have a run made.
sim()
{
	echo "$@"
}

# seeds N SET OPTION...: the same with seeds 1 ... N.
seeds()
{
	local n=$1 s
	shift

	for ((s = 1; s <= n; s++)); do
		sim "$@" -s $s
	done
}

# one NUMBER SET OPTION...: make a run.
one()
{
	local number=$1 set=$2
	shift 2

	"$OUT/espsim" -j "$@" | sed "s/^{/{\"set\": \"$set\", /" >"$OUT/runs/$number"
	[ "${PIPESTATUS[0]}" = 0 ] || { echo "espsim $* failed" >&2; return 255; }
}

runs()
{
	local p n b l w u c

	for w in $WORKLOADS; do
		for l in $LOADS; do
			for p in esp dctcp cubic ideal; do
				seeds 10 load -w "${w%:*}" -N 64 -l "$l" -t "${w#*:}" -p $p
			done
		done
	done
	for w in $WORKLOADS; do
		for l in $LOADS; do
			seeds 10 sird -w "${w%:*}" -N 64 -l "$l" -t "${w#*:}" -p sird
			seeds 10 sird -w "${w%:*}" -N 64 -l "$l" -t "${w#*:}" -p sird --handshake
		done
		seeds 10 turns -w "${w%:*}" -N 64 -l 0.8 -t "${w#*:}" --fifo
	done
	for p in esp dctcp cubic; do
		for b in 8192 65536; do
			for n in 16:20 64:10; do
				sim alltoall --alltoall -n ${n%:*} -b $b -r ${n#*:} -p $p
				seeds 10 alltoall --alltoall --shuffle -n ${n%:*} -b $b -r ${n#*:} -p $p
			done
		done
		for n in 1 2 4 8 16 32 64 128 256 512 1000 2000 4095; do
			seeds 10 incast -n $n -r 3 --limit 30000 -p $p
		done
		for c in 0 50 100 200; do
			for n in 1 4 16; do
				sim cards -f -n $n -t 100 --coalesce $c -p $p
			done
			sim cards --alltoall -n 16 -b 65536 -r 20 --coalesce $c -p $p
			seeds 10 cards -w websearch -N 64 -l 0.6 -t 20 --coalesce $c -p $p
		done
		for c in 1 2; do
			seeds 10 hosts -w websearch -N 64 -l 0.4 -t 20 --cpu $c -p $p
		done
		seeds 10 hosts -w websearch -N 64 -l 0.8 -t 20 --pause -p $p
		for l in 0.001 0.005 0.01; do
			seeds 10 loss -f -n 1 -t 50 -D 100 --loss $l -p $p
			seeds 10 loss -f -n 16 -t 50 -D 100 --loss $l -p $p
		done
	done
	for p in esp dctcp cubic ideal; do
		for u in 40000:0.4 20000:0.4 10000:0.2 10000:0.4; do
			seeds 10 core -w websearch -N 64 -l ${u#*:} -t 20 --uplink ${u%:*} -p $p
			[ $p = ideal ] ||
				seeds 10 core -w websearch -N 64 -l ${u#*:} -t 20 --uplink ${u%:*} --spray -p $p
		done
	done
	for n in 7000 8000 9000 10000 12500 15000 20000 0; do
		seeds 10 told -w websearch -N 64 -l 0.6 -t 20 --told $n
		seeds 10 told -n 16 -r 20 --told $n
	done
	for p in esp dctcp; do
		for n in 10000 25000 40000 100000; do
			for b in 64 128 256 1024; do
				sim buffer -f -n 32 -R $n -B $b -t 20 -p $p
			done
		done
		for n in 1 16 64 256 1000 4095; do
			seeds 3 fast -n $n -r 3 -R 100000 -B 1024 --limit 30000 -p $p
		done
		for u in 0.5 1 5 20 50; do
			sim hop -f -n 64 --hop $u -t 100 -p $p
			seeds 3 hop -n 64 --hop $u -r 10 -p $p
		done
		for n in 16 64 256 1024 4096; do
			seeds 3 scale -w hadoop -N $n -t 2 -p $p
		done
	done
}

case $1 in
'')
	make -s -C tools/sim O="$OUT" || exit
	rm -rf "$OUT/runs"
	mkdir -p "$OUT/runs"
	export -f one
	runs >"$OUT/jobs"
	say "$(wc -l <"$OUT/jobs") runs"
	nl -ba -nrz -w6 "$OUT/jobs" | xargs -P "$(nproc)" -L 1 bash -c 'one "$@"' one || exit
	cat "$OUT"/runs/* >"$LINES"
	rm -r "$OUT/runs"
	;;
--no-run) [ -s "$LINES" ] || die "there are no figures yet" ;;
*) sed -n '/^#	sim-report/s/^#	//p' "$0" >&2; exit 2 ;;
esac
mkdir -p "$DATA"

#
# Tables
#

# rows SET FILTER: apply FILTER to the array of all runs of SET; print the arrays that it yields
# as lines with tabs.
rows()
{
	jq -rs --arg set "$1" '
		def r(d): . * pow(10; d) | round / pow(10; d);
		# three digits or so
		def short: if . == null then "--" elif . >= 99.95 then r(0) elif . >= 9.995 then r(1) else r(2) end;
		def median: sort | if length == 0 then null else (.[length / 2 | floor] + .[(length - 1) / 2 | floor]) / 2 end;
		# an array of values: the median, and the range if there is one
		def range(f): if length == 0 then "--" else [median, min, max] | map(f) |
			if .[1] == .[2] then .[0] else "\(.[0]) (\(.[1]) ... \(.[2]))" end end;
		def span: range(short);
		def of(p): map(select(.proto == p));
		def lost: (.drops_up + .drops_core + .drops_edge) / .frames_data;
		# bytes that came while flows began, as a share of those offered
		def carried: .goodput_share / .offered_share;
		def ideals: of("ideal") | map({ key: "\(.workload) \(.load) \(.uplink_mbit) \(.seed)", value: carried }) | from_entries;
		# the same, percent of the ideal network, for each seed
		def share(p; i): of(p) | map(carried / i["\(.workload) \(.load) \(.uplink_mbit) \(.seed)"] * 100);
		# f for each seed, over that of DCTCP
		def ratio(f): (of("dctcp") | map({ key: "\(.seed)", value: f }) | from_entries) as $d |
			of("esp") | map(f / $d["\(.seed)"]);
		# the group of runs whose median of f is largest, or smallest
		def named(f): map({ name: "\(.[0].workload) \(.[0].load)", v: f } | .m = (.v | median));
		def worst(f): named(f) | max_by(.m);
		def least(f): named(f) | min_by(.m);
		def cell: "\(.v | span), \(.name)";
		map(select(.set == $set or $set == "all")) | '"$2"' | map(tostring) | @tsv' "$LINES"
}

# table NAME HEADINGS: print rows from stdin as a table.
table()
{
	{ printf '%s\n' "${2//|/$'\t'}"; cat; } | awk -F '\t' -v name="$1" -f selftests/bench/table.awk
}

# goals: the goals and what was measured, one a line.
goals()
{
	local w most

	for w in websearch:10 hadoop:17 datamining:17; do
		most=${w#*:}
		rows load "map(select(.workload == \"${w%:*}\")) | group_by(.load) |
			(worst(of(\"esp\") | map(.small_p99)) |
			[\"${w%:*}, 99 % of small flows\", \"at most $most\", cell, .m <= $most]),
			(worst(ratio(.small_p99)) | [\"... over DCTCP's\", \"at most 0.5\", cell, .m <= 0.5])"
	done
	rows load 'ideals as $i | group_by([.workload, .load]) |
		(least(share("esp"; $i)) | ["goodput, % of the ideal", "at least 98.5", cell, .m >= 98.5]),
		(worst(of("esp") | map(lost * 1e6)) | ["frames lost of a million", "at most 50", cell, .m <= 50]),
		(worst(ratio(.large_p99)) | ["99 % of large flows, over DCTCP'"'"'s", "at most 1.2", cell, .m <= 1.2])'
	rows alltoall 'of("esp") | map(select(.shuffle == 0)) | sort_by([.hosts, .block]) | .[] |
		(if .hosts > 16 then 0.88 elif .block > 8192 then 0.95 else 0.93 end) as $least |
		["\(.hosts) hosts all to all, \(.block / 1024) KiB", "at least \($least)", .goodput_share, .goodput_share >= $least]'
	rows cards 'of("esp") | map(select(.pattern == "flows" and .coalesce_us > 0)) | group_by(.senders) | .[] | min_by(.goodput_share) |
		["cards hold back, \(.senders) sender\(if .senders > 1 then "s" else "" end)", "at least 0.95",
		 "\(.goodput_share) (\(.coalesce_us) us)", .goodput_share >= 0.95]'
	rows core 'map(select(.uplink_mbit == 10000 and .load == 0.4 and .spray == 0)) |
		["core of 4:1, goodput over DCTCP'"'"'s", "at least 1", (ratio(carried) | span), (ratio(carried) | median >= 1)],
		["core of 4:1, frames lost over DCTCP'"'"'s", "at most 1", (ratio(lost) | span), (ratio(lost) | median <= 1)]'
	rows told 'map(select(.pattern == "load")) |
		(map(select(.told_mbit == 10000) | { key: "\(.seed)", value: carried }) | from_entries) as $right |
		map(select(.told_mbit >= 7000)) | group_by(.told_mbit) | map(map(carried / $right["\(.seed)"])) |
		["rate told 70 ... 200 %, goodput over that with 100 %", "at least 0.95", (min_by(median) | span), (map(median) | min >= 0.95)]'
}

{
	printf '.. SPDX-License-Identifier: GPL-2.0-only\n.. made by sim-report.sh\n\n'
	goals | sed 's/true$/yes/; s/false$/**no**/' | table goals "goal||worst case|met"
	for class in small large; do
		rows load 'group_by([.workload, .load]) | .[] | [.[0].workload, .[0].load] + (. as $g | ["esp", "dctcp", "cubic", "ideal"] |
			map(. as $p | $g | of($p) | map(.'$class'_p99) | span))' |
			table $class "workload|load|ESP|DCTCP|CUBIC|ideal"
	done
	rows load 'group_by([.workload, .load]) | .[] | [.[0].workload, .[0].load] + (. as $g | ["esp", "dctcp", "cubic", "ideal"] |
		map(. as $p | $g | of($p) | map(.small_p50) | span))' |
		table median "workload|load|ESP|DCTCP|CUBIC|ideal"
	rows load 'ideals as $i | group_by([.workload, .load]) | .[] | [.[0].workload, .[0].load] + (. as $g | ["esp", "dctcp", "cubic"] |
		map(. as $p | $g | (share($p; $i) | range(r(1))), (of($p) | map(lost * 1e6) | median | r(0))))' |
		table load "workload|load|ESP, % of ideal|lost|DCTCP|lost|CUBIC|lost"
	rows all 'map(select(.set == "load" or .set == "turns") | select(.load == 0.8)) | ideals as $i |
		map(select(.proto == "esp")) | group_by([.workload, .set]) | .[] |
		[.[0].workload, (if .[0].set == "turns" then "first in, first out" else "shortest first" end),
		(map(.small_p50) | median | short), (map(.small_p99) | span), (map(.large_p99) | span), (share("esp"; $i) | range(r(1)))]' |
		table turns "workload|turns|small, 50 %|99 %|large, 99 %|% of the ideal"
	rows all 'map(select(.set == "load" or .set == "sird")) | ideals as $i | group_by([.workload, .load]) | .[] |
		. as $g | of("esp") as $e | (of("sird") | map(select(.handshake == 0))) as $s | (of("sird") | map(select(.handshake == 1))) as $h |
		[.[0].workload, .[0].load] + ([$e, $h, $s] | map(map(.small_p99) | span)) +
		([$e, $h] | map((share("esp", "sird"; $i) | median | r(1))))+
		([$e, $h] | map(map(.buffer_most / 1024) | max | r(0)))' |
		table sird "workload|load|ESP, 99 %|SIRD, handshake|SIRD|ESP, % of ideal|SIRD|ESP, KiB|SIRD"
	rows alltoall 'group_by([.hosts, .block, .shuffle]) | .[] |
		[.[0].hosts, "\(.[0].block / 1024) KiB", if .[0].shuffle == 1 then "random" else "in step" end] +
		(. as $g | ["esp", "dctcp", "cubic"] | map(. as $p | $g | of($p) | map(.goodput_share) | range(r(3))))' |
		table alltoall "hosts|block|order|ESP|DCTCP|CUBIC"
	rows incast 'group_by(.senders) | .[] | [.[0].senders] + (. as $g | ["esp", "dctcp", "cubic"] |
		map(. as $p | $g | of($p) | (map(.goodput_share) | range(r(3))), (map(lost * 100) | median | r(2)), (map(.fct_p99_ratio) | median | r(2))))' |
		table incast "senders|ESP, share|lost, %|99 %|DCTCP|lost|99 %|CUBIC|lost|99 %"
	rows cards 'group_by(.coalesce_us) | .[] | [.[0].coalesce_us] + (. as $g | ["esp", "dctcp"] | map(. as $p | $g | of($p) |
		(sort_by(.senders) | map(select(.pattern == "flows") | "\(.goodput_share | r(3))") | join(", ")),
		(map(select(.alltoall == 1) | .goodput_share)[0] | r(3)), (map(select(.pattern == "load") | .small_p99) | span)))' |
		table cards "us|ESP, 1, 4, 16 flows|all to all|websearch|DCTCP, flows|all to all|websearch"
	rows hosts 'group_by([.cpu_us, .pause]) | .[] | [if .[0].pause == 1 then "pause frames, load 0.8" else "\(.[0].cpu_us) us a frame, load 0.4" end] +
		(. as $g | ["esp", "dctcp", "cubic"] | map(. as $p | $g | of($p) |
		(map(carried * 100) | median | r(1)), (map(.small_p99) | span)))' |
		table hosts "hosts|ESP, % carried|99 %|DCTCP|99 %|CUBIC|99 %"
	rows loss 'group_by([.senders, .loss]) | .[] | [.[0].senders, "\(.[0].loss * 100) %"] + (. as $g | ["esp", "dctcp", "cubic"] |
		map(. as $p | $g | of($p) | map(.goodput_share) | range(r(3))))' |
		table loss "senders|lost at random|ESP|DCTCP|CUBIC"
	rows core 'ideals as $i | group_by([-.uplink_mbit, .load]) | .[] | . as $all | (map(.spray) | unique[]) as $spray | ($all | of("ideal") + map(select(.spray == $spray and .proto != "ideal"))) |
		["\(40000 / .[0].uplink_mbit):1, load \(.[0].load)", (if $spray == 1 then "packet" else "flow" end)] +
		(. as $g | ["esp", "dctcp", "cubic"] | map(. as $p | $g | (share($p; $i) | median | r(1)),
		(of($p) | "\(map(.small_p99) | median | short), \(map(.large_p99) | median | short)", (map(lost * 1e6) | median | r(0)))))' |
		table core "core|ways by|ESP, %|99 %|lost|DCTCP|99 %|lost|CUBIC|99 %|lost"
	rows told 'group_by([.told_mbit == 0, .told_mbit]) | .[] | [(if .[0].told_mbit > 0 then "\(.[0].told_mbit / 100) %" else "unknown" end)] +
		(map(select(.pattern == "load")) | [(map(carried * 100) | range(r(1))), (map(.small_p99) | span), (map(lost * 1e6) | median | r(0))]) +
		(map(select(.pattern == "blocks")) | [map(.goodput_share) | range(r(3))])' |
		table told "rate told|websearch, % carried|99 % of small|lost|16 senders, share"
	rows buffer 'group_by(.buffer_kib) | .[] | [.[0].buffer_kib] + (. as $g | ["esp", "dctcp"] | map(. as $p | $g | of($p) | sort_by(.rate_mbit) |
		map("\(.goodput_share | r(3)), \(lost * 100 | r(2))")) | add)' |
		table buffer "KiB|ESP, 10 Gbit/s|25|40|100|DCTCP, 10|25|40|100"
	rows hop 'group_by(.hop_us) | .[] | [(.[0].hop_us * 8)] + (. as $g | ["esp", "dctcp"] | map(. as $p | $g | of($p) |
		(map(select(.pattern == "flows"))[0] | (.goodput_share | r(3)), .drops_edge + .drops_core + .drops_up),
		(map(select(.pattern == "blocks") | .goodput_share) | range(r(3)))))' |
		table hop "round trip, us|ESP, 64 flows|lost|64 blocks|DCTCP, 64 flows|lost|64 blocks"
	rows fast 'group_by(.senders) | .[] | [.[0].senders] + (. as $g | ["esp", "dctcp"] | map(. as $p | $g | of($p) |
		(map(.goodput_share) | range(r(3))), (map(lost * 100) | median | r(2))))' |
		table fast "senders|ESP, share|lost, %|DCTCP, share|lost, %"
	rows scale 'group_by(.hosts) | .[] | of("esp") as $e | of("dctcp") as $d | [.[0].hosts, ($e | map(.small_p99) | span), ($d | map(.small_p99) | span),
		($e | map(lost * 1e6) | median | r(0)), ($d | map(lost * 1e6) | median | r(0)),
		($e | map(.queue_most) | max), ($e | map(.host_socks_most) | max), ($e | map(.host_bytes_most / 1024) | max | r(0)), ($e | map(.frames_empty / .frames_data * 100) | median | r(0))]' |
		table scale "hosts|ESP, 99 %|DCTCP|lost, ESP|DCTCP|queue|sockets|KiB|empty, %"
} >"$TABLES" || exit

#
# Pictures
#

for p in esp dctcp cubic ideal; do
	for w in $WORKLOADS; do
		rows load "group_by(.load) | .[] | map(select(.workload == \"${w%:*}\" and .proto == \"$p\")) |
			[.[0].load] + (map(.small_p99) | [median, min, max]) + (map(.large_p99) | [median, min, max])" >"$DATA/${w%:*}-$p"
	done
	[ $p = ideal ] || rows incast "group_by(.senders) | .[] | of(\"$p\") | [.[0].senders] +
		(map(.goodput_share) | [median, min, max]) + (map(.fct_p99_ratio) | [median, min, max])" >"$DATA/incast-$p"
done
gnuplot <<END || exit
set terminal pngcairo size 1200,800
set output "Documentation/datacentre-load.png"
set multiplot layout 2,3
set grid
set logscale y
set xlabel "load"
set xrange [0.35:0.85]
set xtics (0.4, 0.6, 0.8)
all = "esp dctcp cubic ideal"
unset key
set ylabel "99 % completion time / empty network"
set yrange [0.9:6000]
do for [w in "websearch hadoop datamining"] {
	set title w.", below 100 kB"
	plot for [p in all] "$DATA/".w."-".p using 1:2:3:4 with yerrorlines title p
}
set yrange [0.9:400]
set key bottom right
do for [w in "websearch hadoop datamining"] {
	set title w.", 1 MB and more"
	plot for [p in all] "$DATA/".w."-".p using 1:5:6:7 with yerrorlines title p
	unset key
}
unset multiplot
set terminal pngcairo size 1000,420
set output "Documentation/datacentre-incast.png"
set multiplot layout 1,2
set logscale x 2
set xrange [0.9:4600]
set xtics auto
set xtics (1, 4, 16, 64, 256, 1000, 4095)
set xlabel "senders"
set key right center
unset logscale y
set yrange [0:1.05]
set title "Blocks of 256 KiB to one receiver, 10 Gbit/s, 128 KiB"
set ylabel "goodput, share of the attainable"
plot for [p in "esp dctcp cubic"] "$DATA/incast-".p using 1:2:3:4 with yerrorlines title p
unset key
set logscale y
set yrange [0.5:200]
set title " "
set ylabel "99 % completion time / ideal"
plot for [p in "esp dctcp cubic"] "$DATA/incast-".p using 1:5:6:7 with yerrorlines title p
END
say "$(wc -l <"$LINES") runs in build/sim/report.json"
