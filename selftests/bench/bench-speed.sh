#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Part of "make bench": ESP compared with other protocols (speed.sh), measured by three
# instruments:
#
#	uml	native speed, two processors: rates, latency
#	icount	Debian's 6.12, emulated: instructions, which do not vary, and memory
#	virtio	two machines of that kind, and an Ethernet between them
#
# build/bench.json has the medians of all rounds, build/bench.txt the table,
# build/bench-split.txt where the instructions go (split.awk), Documentation/speed-*.png
# the pictures; see bench.awk.
# The cases "kernel-" make no system calls (kbench.c).

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"

OUT=$SRC/build/bench
DATA=$SRC/build/speed
cd "$SRC" || exit
need gnuplot-nox ethtool linux-perf
rm -rf "$DATA/us"
mkdir -p "$DATA/us"
: >"$OUT.lines"

# measure INSTRUMENT VM-ARGUMENT...
measure()
{
	local instrument=$1
	shift

	say "$instrument"
	"$HARNESS/vm" "$@" >"$DATA/$instrument" || { cat "$DATA/$instrument" >&2; exit 1; }
	sed -nE "s,^(a: )?([a-z]+[-a-z0-9]* [a-z0-9]+ [^ ]+ [a-z]+ [-0-9.e+]+)$,$instrument/\2,p" "$DATA/$instrument" >>"$OUT.lines"
}

measure icount run 6.12 --icount --mem 2G --time 600 -- selftests/bench/speed.sh -r 3 -q "$DATA/us" instructions
# The guest's clock leaps while the guest waits for the host, so the time limit is long.
measure split run 6.12 --icount --mem 2G --time 3000 -- selftests/bench/speed.sh split
# A connection takes the same memory in each run. The second round proves that.
measure memory run 6.12 --icount --mem 2G --time 3000 -- selftests/bench/speed.sh -r 2 memory
measure virtio pair 6.12 6.12 --time 900 -- selftests/bench/speed.sh -r 5 pair
measure uml run uml --pin --mem 4G --time 1800 -- selftests/bench/speed.sh -r "${ROUNDS:-5}" cycles

# The layers become cases of build/bench.json, and a table of their own.
awk '$1 == "split" && $5 == "layer" { print "icount/split-" $2, $6, $3, $4, $7 }' "$DATA/split" >>"$OUT.lines"
awk '
	$1 != "split" { next }
	$2 != name {
		name = $2
		cases[++ncases] = name
		unit[name] = $3
	}
	!((name, $4) in seen) {
		seen[name, $4] = 1
		protos[name] = protos[name] " " $4
	}
	$5 == "layer" {
		if (!((name, $6) in known)) {
			known[name, $6] = 1
			layers[name] = layers[name] " " $6
		}
		value[name, $4, $6] = $7
	}
	$5 == "function" {
		functions[name, $4] = functions[name, $4] sprintf("  %10.5g  %-40s %s\n", $7, $6, $8)
	}
	END {
		for (c = 1; c <= ncases; c++) {
			name = cases[c]
			printf "%s%-24s", (c > 1 ? "\n" : ""), name
			np = split(protos[name], p, " ")
			for (i = 1; i <= np; i++)
				printf " %10s", p[i]
			print "  " unit[name]
			nl = split(layers[name], l, " ")
			for (j = 1; j <= nl; j++) {
				printf "%-24s", l[j]
				for (i = 1; i <= np; i++) {
					printf " %10.5g", value[name, p[i], l[j]]
					sum[name, i] += value[name, p[i], l[j]]
				}
				print ""
			}
			printf "%-24s", "sum"
			for (i = 1; i <= np; i++)
				printf " %10.5g", sum[name, i]
			print ""
			for (i = 1; i <= np; i++)
				printf "\n%s, %s, %s:\n%s", name, p[i], unit[name], functions[name, p[i]]
		}
	}' "$DATA/split" >"$OUT-split.txt" || exit

awk -v json="$OUT.json" -f selftests/bench/bench.awk "$OUT.lines" >"$OUT.txt" || exit
cat "$OUT.txt"

# points PROTO: "BYTES MICROSECONDS" of ping-pong.
points()
{
	awk -v proto="$1" -F '[ /-]' '$1 == "uml" && $2 == "pingpong" && $4 == "median" && $6 == proto {
		print $3, $7 }' "$OUT.lines" | sort -n | awk '
		$1 != last { if (n) print last, v[int((n + 1) / 2)]; n = 0; last = $1 }
		{ v[++n] = $2; for (i = n; i > 1 && v[i - 1] > v[i]; i--) { t = v[i]; v[i] = v[i - 1]; v[i - 1] = t } }
		END { if (n) print last, v[int((n + 1) / 2)] }'
}

for p in esp tcp udp packet sctp tipc lo unix; do
	points $p >"$DATA/pingpong-$p"
done
# column CASE METRIC: lines "PROTO VALUE".
column()
{
	awk -v key="$1 $2" '$1 " " $2 == key { v[$4] = v[$4] " " $5 }
		END {
			n = split("esp tcp udp packet sctp tipc lo unix", p, " ")
			for (i = 1; i <= n; i++) {
				m = split(v[p[i]], a, " ")
				for (j = 2; j <= m; j++)
					for (k = j; k > 1 && a[k - 1] + 0 > a[k] + 0; k--) {
						t = a[k]; a[k] = a[k - 1]; a[k - 1] = t
					}
				if (m)
					print p[i], a[int((m + 1) / 2)]
			}
		}' "$OUT.lines"
}
column icount/pingpong-64 cost >"$DATA/instructions-message"
column icount/bulk-1500 cost >"$DATA/instructions-byte"
column uml/bulk-1500-gso rate >"$DATA/rate-gso"
column uml/bulk-1500 rate >"$DATA/rate"
gnuplot <<END || exit
set terminal pngcairo size 900,500
set grid
set key left top
set output "Documentation/speed-latency.png"
set title "There and back, User-Mode Linux, two processors, veth"
set xlabel "bytes"
set ylabel "median, us"
set logscale xy
plot for [p in "esp tcp udp packet sctp tipc lo unix"] "$DATA/pingpong-".p with linespoints title p
unset logscale
set output "Documentation/speed-instructions.png"
set terminal pngcairo size 900,900
set multiplot layout 2,1
set style fill solid 0.5
set boxwidth 0.6
set yrange [0:*]
unset key
set xlabel ""
set title "64 bytes there and back, Linux 6.12, veth"
set ylabel "instructions"
plot "$DATA/instructions-message" using 0:2:xtic(1) with boxes
set title "One way, MTU 1500, without super-packets"
set ylabel "instructions a byte"
plot "$DATA/instructions-byte" using 0:2:xtic(1) with boxes
unset multiplot
set output "Documentation/speed-bulk.png"
set multiplot layout 2,1
set title "One way, 1 MiB writes, User-Mode Linux, veth, with super-packets where the protocol has them"
set ylabel "Gbit/s"
plot "$DATA/rate-gso" using 0:2:xtic(1) with boxes
set title "The same without"
plot "$DATA/rate" using 0:2:xtic(1) with boxes
unset multiplot
set terminal pngcairo size 900,500
set output "Documentation/speed-distribution.png"
set title "64 bytes there and back, Linux 6.12, veth, one processor that takes 1 ns for an instruction"
set xlabel "us"
set ylabel "share that took no longer"
set xrange [10:100]
set yrange [0:1.02]
set key bottom right
set logscale x
plot for [p in "esp tcp udp packet sctp tipc lo unix"] "$DATA/us/pingpong-64-".p using 1:(1) smooth cnormal linewidth 2 title p
END
say "$(wc -l <"$OUT.lines") figures in build/bench.json"
