#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# All figures and tables of Documentation/datacentre.rst: the real rack (from bench-incast.sh,
# which this script runs if it has not run yet) and the simulated one, then the networks that only
# espsim can simulate.
# build/sim/report.json has the figures, Documentation/datacentre-tables.txt the tables.

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"
need gnuplot-nox jq gcc make libc6-dev
cd "$SRC" || exit
OUT=$SRC/build/sim
RACK=$SRC/build/incast.lines
LINES=$OUT/report.json
TABLES=$SRC/Documentation/datacentre-tables.txt
DATA=$OUT/plot
mkdir -p "$DATA"

[ -s "$RACK" ] || selftests/bench/bench-incast.sh || exit
make -s -C tools/sim O="$OUT" || exit
: >"$LINES"

# sim SET OPTION...: make a run and print its figures as a line.
sim()
{
	local set=$1
	shift

	"$OUT/espsim" -j "$@" | jq -c --arg set "$set" '. + { set: $set }' >>"$LINES"
	[ "${PIPESTATUS[0]}" = 0 ] || die "espsim $* failed"
}

# rows SET FILTER: apply FILTER to the array of all runs of SET; print the arrays that it yields
# as lines with tabs.
rows()
{
	jq -rs --arg set "$1" "
		def pct(d): . * 100 * pow(10; d) | round / pow(10; d);
		def by(p): map(select(.proto == p)) | .[0];
		def r(d): if . == null then \"--\" else . * pow(10; d) | round / pow(10; d) end;
		map(select(.set == \$set)) | ($2) | .[] | map(tostring) | @tsv" "$LINES"
}

# table NAME HEADINGS: rows from stdin, into datacentre-tables.txt.
table()
{
	{ printf '%s\n' "${2//|/$'\t'}"; cat; } | awk -F '\t' -v name="$1" '
		{ for (i = 1; i <= NF; i++) { cell[NR, i] = $i; if (length($i) > w[i]) w[i] = length($i) } n = NF > n ? NF : n }
		function line(i, s) { for (i = 1; i <= n; i++) { s = sprintf("%" w[i] "s", ""); gsub(/ /, "=", s); printf "%s%s", s, i < n ? "  " : "\n" } }
		END {
			print ".. begin " name "\n"
			line()
			for (r = 1; r <= NR; r++) {
				for (i = 1; i <= n; i++)
					printf "%-" w[i] "s%s", cell[r, i], i < n ? "  " : "\n"
				if (r == 1)
					line()
			}
			line()
			print "\n.. end " name "\n"
		}' | sed 's/ *$//' >>"$TABLES"
}

#
# Runs
#

say "the rack, simulated"
for p in esp seed cubic dctcp; do
	for n in 1 2 4 8 16 32 64; do
		for s in {1..20}; do
			sim rack -p $p -n $n -R 1000 -D 100 -r 10 -s $s
		done
	done
done
for p in esp seed cubic dctcp; do
	sim rack -p $p -f -n 1 -R 1000 -D 100 -t 500
	sim rack -p $p -f -n 16 -R 1000 -D 100 -t 500
done
sim rack -f -n 1 -R 1000 -D 500 -t 500
sim rack -f -n 16 -R 10000 -D 100 -t 100
for p in esp cubic dctcp; do
	for s in {1..20}; do
		sim rack -p $p -n 16 -R 10000 -D 100 -r 10 -s $s
	done
done

say "incast"
SENDERS="1 2 4 8 16 32 64 128 256 512 1000 2000 4095"
for n in $SENDERS; do
	for p in esp seed newreno cubic dctcp; do
		sim incast -p $p -n "$n" -r 3 --limit 30000
	done
	sim incast100 -p esp -n "$n" -r 3 -R 100000 -B 1024 --limit 30000
	sim incast100 -p dctcp -n "$n" -r 3 -R 100000 -B 1024 --limit 30000
done
say "idle connections"
for c in 8 32 64 128 512 2000 4095; do
	sim idle -n 8 --connected $c -b 16384 -r 20
done
say "rates, buffers, distances"
for r in 10000 25000 40000 100000; do
	for b in 64 128 256 512 1024; do
		sim buffer -n 32 -f -R $r -B $b -t 50
	done
done
for h in 0.5 1 5 20 50; do
	sim hop -n 64 -f -R 10000 --hop $h -t 100
	sim hop -n 64 -R 10000 --hop $h -r 10
done
say "workloads"
for l in 0.2 0.4 0.6; do
	for p in esp cubic dctcp ideal; do
		sim load -w websearch -N 64 -l $l -t 100 -p $p
		sim load -w datamining -N 64 -l $l -t 200 -p $p
		sim load -w hadoop -N 64 -l $l -t 25 -p $p
	done
done
say "more hosts"
for n in 16 64 256 1024 4096; do
	sim scale -w hadoop -N $n -t 2
	sim scale -w hadoop -N $n -t 2 -p dctcp
done
for t in 5 10 20 40; do
	sim timewait -w hadoop -N 256 -t $t
done
say "the core"
for u in 40000 20000 10000; do
	for p in esp cubic dctcp; do
		sim core -w websearch -N 64 -l 0.4 -t 20 --uplink $u -p $p
		sim core -w websearch -N 64 -l 0.4 -t 20 --uplink $u --spray -p $p
	done
done

#
# Tables
#

printf '.. SPDX-License-Identifier: GPL-2.0-only\n.. made by sim-report.sh\n\n' >"$TABLES"
jq -rn --slurpfile real "$RACK" --slurpfile sim "$LINES" '
	def key: [.p, .workload, .n, .rate_mbit, .rtt_us] | join(" ");
	def digits(d): . * pow(10; d) | round / pow(10; d);
	def mean: add / length;
	# the mean of several runs, and half of its 95 % interval
	def share: map(.goodput_share) | mean as $m | "\($m | digits(3))" + if length < 2 then "" else
		" +- \(map((. - $m) * (. - $m)) | add / (length - 1) / length | sqrt * 2 | digits(3))" end;
	def of(f; d): map(f) | if .[0] == null then "--" else mean | digits(d) end;
	($real | map(select(.faults == "") | .p = (if .policy == "seed" then "seed" else .proto end)) |
		group_by(key) | map({ key: (.[0] | key), value: . }) | from_entries) as $r |
	$sim | map(select(.set == "rack") | .workload = .pattern | .n = .senders | .rtt_us = (.rtt_us | round) | .p = .proto) |
	group_by([.p, .workload, .rate_mbit, .rtt_us, .n]) | .[] | . as $s | ($r[.[0] | key] // halt_error) as $t |
	[ .[0].p, .[0].workload, .[0].n, "\(.[0].rate_mbit / 1000) Gbit/s, \(.[0].rtt_us) us", ($t | share), ($s | share),
	  "\((($s | map(.goodput_share) | mean) / ($t | map(.goodput_share) | mean) - 1) * 100 | digits(1)) %",
	  ($t | of(.port_drops; 0)), ($s | of(.drops_edge; 0)), ($t | of(.fct_p99_ratio; 2)), ($s | of(.fct_p99_ratio; 2)) ] |
	map(tostring) | @tsv' |
	table rack "protocol|load|N|rack|share|simulated|deviation|drops|simulated|99 % / ideal|simulated"

rows incast 'group_by(.senders) | map([.[0].senders] + (. as $g | ["esp", "seed", "newreno", "cubic", "dctcp"] |
	map(. as $p | $g | by($p) | .goodput_share | r(3))))' |
	table share "senders|ESP|seed's|NewReno|CUBIC|DCTCP"
rows incast 'group_by(.senders) | map([.[0].senders] + (. as $g | ["esp", "seed", "newreno", "cubic", "dctcp"] |
	map(. as $p | $g | by($p) | (.drops_core + .drops_edge + .drops_up) / .frames_data | pct(2))))' |
	table drops "senders|ESP|seed's|NewReno|CUBIC|DCTCP"
rows incast 'group_by(.senders) | map([.[0].senders] + (. as $g | ["esp", "seed", "newreno", "cubic", "dctcp"] |
	map(. as $p | $g | by($p) | "\(.fct_p50_ratio | r(2)), \(.fct_p99_ratio | r(2))")))' |
	table completion "senders|ESP|seed's|NewReno|CUBIC|DCTCP"
rows incast 'map(select(.proto == "esp")) | map([.senders, .queue_most, .host_socks_most, .host_peers_most,
	(.host_bytes_most / 1024 | r(1)), (.empty_txs / .senders / 3 | r(2)), (.holds / .senders / 3 | r(1)),
	(.frames_empty / .frames_data | pct(1)), .expiries])' |
	table state "senders|queue entries|sockets|peers|KiB|empty TXS a block|HOLDs a block|empty frames, %|expiries"
rows incast100 'group_by(.senders) | map((. as $g | [$g[0].senders] + (["esp", "dctcp"] | map(. as $p | $g | by($p) |
	[(.goodput_share | r(3)), .drops_core + .drops_edge, (.fct_p99_ratio | r(2))]) | add)))' |
	table fast "senders|ESP, share|drops|99 %|DCTCP, share|drops|99 %"
rows idle 'map([.connected, (.empty_txs / .senders / 20 | r(2)), (.fct_p50_us | r(0)), (.fct_p99_us | r(0)), .drops_edge])' |
	table idle "connected|empty TXS a message|median, us|99 %, us|drops"
rows buffer 'group_by(.buffer_kib) | map([.[0].buffer_kib] + map("\(.goodput_share | r(3)), \(.drops_edge / .frames_data | pct(2)) %"))' |
	table buffer "KiB|10 Gbit/s|25|40|100"
rows hop 'group_by(.hop_us) | map([(.[0].hop_us * 8), (map(select(.pattern == "flows"))[0] | .goodput_share | r(3)),
	(map(select(.pattern == "flows"))[0] | .drops_edge), (map(select(.pattern == "blocks"))[0] | .goodput_share | r(3)),
	(map(select(.pattern == "blocks"))[0] | .fct_p99_ratio | r(2))])' |
	table hop "round trip, us|64 flows, share|drops|64 blocks, share|99 % / ideal"
for class in small large; do
	rows load 'group_by([.workload, .load]) | map([.[0].workload, .[0].load] + (. as $g | ["esp", "cubic", "dctcp", "ideal"] |
		map(. as $p | $g | by($p) | "\(.'$class'_p50 | r(1)), \(.'$class'_p99 | r(1))")))' |
		table $class "workload|load|ESP|CUBIC|DCTCP|ideal"
done
rows load 'group_by([.workload, .load]) | map([.[0].workload, .[0].load] + (. as $g | ["esp", "cubic", "dctcp", "ideal"] |
	map(. as $p | $g | by($p) | .goodput_share | r(3))) + [(by("esp") | .waits_idle / ([.waits, 1] | max) | pct(0))] +
	(. as $g | ["esp", "cubic", "dctcp"] | map(. as $p | $g | by($p) | (.drops_up + .drops_core + .drops_edge) / .frames_data * 1e6 | r(0))))' |
	table load "workload|load|ESP|CUBIC|DCTCP|ideal|idle, %|lost, ESP|CUBIC|DCTCP"
rows scale 'group_by([.workload, .hosts]) | map(by("esp") as $e | by("dctcp") as $d | [$e.workload, $e.hosts, $e.flows,
	($e.goodput_share | r(3)), ($d.goodput_share | r(3)), "\($e.small_p50 | r(1)), \($e.small_p99 | r(1))",
	"\($d.small_p50 | r(1)), \($d.small_p99 | r(1))", (($e.drops_up + $e.drops_core + $e.drops_edge) / $e.frames_data * 1e6 | r(0)),
	(($d.drops_up + $d.drops_core + $d.drops_edge) / $d.frames_data * 1e6 | r(0)),
	$e.queue_most, $e.host_socks_most, ($e.host_bytes_most / 1024 | r(0))])' |
	table scale "workload|hosts|flows|ESP, share|DCTCP|ESP, small|DCTCP|lost of 10^6|DCTCP|queue|sockets|KiB"
rows timewait 'map([(.simulated_ms | r(0)), .host_peers_most, .timewait_most, (.empty_txs / .flows | pct(1)), "\(.small_p50 | r(1)), \(.small_p99 | r(1))"])' |
	table timewait "ms|peers|in TIME_WAIT|empty TXS, % of flows|small flows"
rows core 'group_by([-.uplink_mbit, .spray]) | map([(160000 / .[0].uplink_mbit / 4 | tostring + ":1"), (if .[0].spray == 1 then "packet" else "flow" end)] +
	(. as $g | ["esp", "cubic", "dctcp"] | map(. as $p | $g | by($p) |
	[(.goodput_share | r(3)), "\(.small_p99 | r(0)), \(.large_p99 | r(0))", ((.drops_up + .drops_core) / .frames_data * 1e6 | r(0)),
	(.duplicates / .frames_data * 1e6 | r(0))]) | add))' |
	table core "core|ways by|ESP, share|99 %|lost|twice|CUBIC, share|99 %|lost|twice|DCTCP, share|99 %|lost|twice"

#
# Pictures
#

for p in esp seed newreno cubic dctcp; do
	rows incast "map(select(.proto == \"$p\")) | map([.senders, .goodput_share, .fct_p99_ratio,
		(.drops_up + .drops_core + .drops_edge) / .frames_data * 100 + 0.0001, .queue_most // 0, (.host_bytes_most // 0) / 1024])" >"$DATA/$p"
done
for w in websearch datamining hadoop; do
	for p in esp cubic dctcp ideal; do
		rows load "group_by(.load) | map(map(select(.workload == \"$w\")) | by(\"$p\")) | map([.load, .small_p50, .small_p99, .large_p50, .large_p99])" >"$DATA/$w-$p"
	done
done
gnuplot <<END || exit
set terminal pngcairo size 900,500
set grid
set key outside
set logscale x 2
set xrange [0.9:4600]
set xlabel "senders"
all = "esp seed newreno cubic dctcp"
set output "Documentation/datacentre-goodput.png"
set title "Blocks of 256 KiB to one receiver, leaves and spines of 10 Gbit/s, ports of 128 KiB"
set ylabel "goodput, share of the attainable"
set yrange [0:1.05]
plot for [p in all] "$DATA/".p using 1:2 with linespoints title p
set output "Documentation/datacentre-drops.png"
set ylabel "frames lost, % of those sent (0.0001: none)"
set logscale y
set yrange [0.00005:100]
plot for [p in all] "$DATA/".p using 1:4 with linespoints title p
set output "Documentation/datacentre-incast.png"
set ylabel "99 % completion time / ideal"
set yrange [0.5:*]
plot for [p in all] "$DATA/".p using 1:3 with linespoints title p
set output "Documentation/datacentre-state.png"
set title "State of the receiver, ESP"
set ylabel "entries in the ACK queue; KiB of sockets and peers"
set yrange [0.5:*]
plot "$DATA/esp" using 1:5 with linespoints title "entries", "" using 1:6 with linespoints title "KiB"
unset logscale
set xrange [0.15:0.65]
set xlabel "load of the hosts' links" offset 0,0.7
set ylabel "completion time / that of an empty network"
set logscale y
set yrange [0.9:*]
set key outside bottom center horizontal
some = "esp cubic dctcp ideal"
do for [w in "websearch datamining hadoop"] {
	set terminal pngcairo size 1000,520
	set output "Documentation/datacentre-".w.".png"
	set multiplot layout 1,2
	set title w.": below 100 kB"
	plot for [p in some] "$DATA/".w."-".p using 1:3 with linespoints title p." 99 %", \
		for [p in "esp dctcp"] "$DATA/".w."-".p using 1:2 with lines dashtype 2 title p." median"
	set title w.": 1 MB and more"
	plot for [p in some] "$DATA/".w."-".p using 1:5 with linespoints title p." 99 %", \
		for [p in "esp dctcp"] "$DATA/".w."-".p using 1:4 with lines dashtype 2 title p." median"
	unset multiplot
}
END
say "$(wc -l <"$LINES") runs in build/sim/report.json"
