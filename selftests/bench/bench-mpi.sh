#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Part of "make bench": Open MPI over ESP compared with Open MPI over TCP (speed-mpi.sh),
# measured by two instruments:
#
#	mpi		uml: native speed, two processors, a rank on each of two hosts
#	mpi-ports	uml-virtual: time is simulated; 8 and 16 ranks, 1 Gbit/s, ports of 128 KiB
#
# Its cases are added to build/bench.json (bench.awk); build/bench-mpi.txt is the table,
# Documentation/openmpi-*.png are the pictures.

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"

OUT=$SRC/build/bench
DATA=$SRC/build/speed-mpi
cd "$SRC" || exit
need gnuplot-nox
mkdir -p "$DATA"

# measure INSTRUMENT VM-ARGUMENT...: in a guest; lines.
measure()
{
	local instrument=$1
	shift

	say "$instrument: ${*: -3}"
	"$HARNESS/vm" "$@" >"$DATA/out" || { cat "$DATA/out" >&2; exit 1; }
	sed -nE "s,^([a-z]+[-a-z0-9]* [a-z]+ [^ ]+ [a-z]+ [-0-9.e+]+)$,$instrument/\1,p" "$DATA/out" >>"$DATA/lines"
}

: >"$DATA/lines"
measure mpi run uml --mem 2G --time 1800 -- selftests/bench/speed-mpi.sh -r "${ROUNDS:-5}" pair
measure mpi-ports run uml-virtual --time 3000 -- selftests/bench/speed-mpi.sh -n 8 ports
measure mpi-ports run uml-virtual --time 3000 -- selftests/bench/speed-mpi.sh -n 16 ports

awk -v json=/dev/null -f selftests/bench/bench.awk "$DATA/lines" >"$OUT-mpi.txt" || exit
cat "$OUT-mpi.txt"
{
	[ ! -e "$OUT.lines" ] || grep -v '^mpi' "$OUT.lines"
	cat "$DATA/lines"
} >"$OUT.lines.new"
mv "$OUT.lines.new" "$OUT.lines" || exit
awk -v json="$OUT.json" -f selftests/bench/bench.awk "$OUT.lines" >"$OUT.txt" || exit

# points CASE METRIC PROTO: lines "BYTES VALUE", medians.
points()
{
	awk -v "name=$1-" -v metric="$2" -v by="$3" '
		index($1, name) == 1 && $1 ~ /-[0-9]+$/ && $2 == metric && $4 == by {
			bytes = substr($1, length(name) + 1)
			if (bytes !~ /-/)
				v[bytes] = v[bytes] " " $5
		}
		END {
			for (bytes in v) {
				n = split(v[bytes], a, " ")
				for (i = 2; i <= n; i++)
					for (j = i; j > 1 && a[j - 1] + 0 > a[j] + 0; j--) {
						t = a[j]; a[j] = a[j - 1]; a[j - 1] = t
					}
				print bytes, a[int((n + 1) / 2)]
			}
		}' "$DATA/lines" | sort -n
}

for p in esp tcp; do
	points mpi/netpipe median $p >"$DATA/netpipe-us-$p"
	points mpi/netpipe rate $p >"$DATA/netpipe-rate-$p"
	for c in allreduce alltoall bcast gather; do
		points mpi-ports/$c-8 median $p >"$DATA/$c-8-$p"
		points mpi-ports/$c-16 median $p >"$DATA/$c-16-$p"
	done
done
gnuplot <<END || exit
set terminal pngcairo size 900,900
set grid
set key left top
set logscale xy
set xlabel "bytes"
set output "Documentation/openmpi-netpipe.png"
set multiplot layout 2,1
set title "NetPIPE by Open MPI, User-Mode Linux, two processors, veth"
set ylabel "one way, us"
plot for [p in "esp tcp"] "$DATA/netpipe-us-".p with lines title p
unset title
set ylabel "Mbit/s"
plot for [p in "esp tcp"] "$DATA/netpipe-rate-".p with lines title p
unset multiplot
set output "Documentation/openmpi-collectives.png"
set multiplot layout 2,2 title "Collective operations, 1 Gbit/s, ports of 128 KiB: us"
unset ylabel
set xtics (1, 64, 1024, 8192, 65536)
set xrange [0.8:131072]
do for [what in "allreduce alltoall bcast gather"] {
	set title what
	plot for [p in "esp tcp"] for [n in "8 16"] "$DATA/".what."-".n."-".p with linespoints title p.", ".n
}
unset multiplot
END
say "$(wc -l <"$DATA/lines") figures in build/bench.json"
