#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Part of "make model-report": every figure and table of Documentation/performability.rst, from
# sweeps of the model, libam in memory, and libam and ESP on the uml-virtual kernel. All of them
# use simulated time, so they are the same in each run, whatever else the machine does. The
# exception are the faults on uml-virtual, which the kernel draws anew.
# build/performability/*.data have the raw data.

cd "${0%/*}/../.." || exit 1
# shellcheck source=selftests/harness/fetch.sh
. selftests/harness/fetch.sh
need gcc make libc6-dev pkgconf libgsl-dev gnuplot-nox
OUT=$PWD/build/performability
TOOL=$OUT/esp-performability
MODEL=tools/performability/models/cluster.model
DOC=Documentation
PROTOCOLS="nway amvia amudp esp"
REQUESTS=2000000

make -s -C tools/performability O="$OUT" || exit

#
# Raw data
#

# sweep NAME SWEEP SETTING...: the model of each protocol, to NAME-PROTOCOL.data.
sweep()
{
	local name=$1 sweep=$2 p
	shift 2

	for p in $PROTOCOLS; do
		[[ $p == esp && $sweep == application.[lcm]* ]] ||
			"$TOOL" -x "$sweep" "$MODEL" "protocol=$p" "$@" >"$OUT/$name-$p.data" || exit
	done
}
sweep network network.fail:0.0001:0.1:31:log
sweep kernel kernel.fail:0.0001:0.1:31:log
sweep library library.fail:0.0001:0.1:31:log
sweep late application.late:0.00001:0.01:31:log
sweep crash application.crash:0.00001:0.01:31:log
sweep delay application.delay:0.0001:0.1:31:log
sweep ber network.ber:1e-7:1e-4:31:log
sweep window window:1:64:22:log processors=two service=fixed network.fail=0.001

# Measure at fewer points.
for p in nway amvia amudp; do
	say "measuring $p"
	"$TOOL" -x network.ber:1e-6:1e-4:5:log -m $REQUESTS -n $REQUESTS "$MODEL" "protocol=$p" service=fixed >"$OUT/memory-$p.data" &&
		"$TOOL" -x network.fail:0.001:0.1:5:log -m $REQUESTS -n $REQUESTS "$MODEL" "protocol=$p" service=fixed >"$OUT/loss-$p.data" &&
		"$TOOL" -x window:1:64:7:log -m $REQUESTS -n $REQUESTS "$MODEL" "protocol=$p" processors=two service=fixed \
			network.fail=0.001 >"$OUT/requests-$p.data" || exit
	for f in missing=0.05 late=0.001 crash=0.01 delay=0.02; do
		for w in 1 4; do
			"$TOOL" -j -m $REQUESTS -n $REQUESTS "$MODEL" "protocol=$p" service=fixed "application.$f" \
				network.fail=0.01 window=$w >"$OUT/fault-$p-$f-$w.data" || exit
		done
	done
done
"$TOOL" -x network.fail:0.001:0.1:5:log -n $REQUESTS "$MODEL" protocol=esp service=fixed >"$OUT/loss-esp.data" || exit
say "measuring service times on 6.12"
selftests/harness/vm run 6.12 --icount --time 1500 -- selftests/bench/performability-times.sh 1000 >"$OUT/times.data" ||
	die "performability-times.sh failed, see build/performability/times.data"
say "measuring on uml-virtual"
# Keep the rows that an earlier, interrupted report has measured.
if [ -s "$OUT/sockets.data" ] && ! grep -q '^1\.\.' "$OUT/sockets.data"; then
	grep '^# result ' "$OUT/sockets.data" >"$OUT/sockets.done"
	say "going on after $(wc -l <"$OUT/sockets.done") rows"
else
	: >"$OUT/sockets.done"
fi
# The time limit is in the guest's seconds, which are simulated.
selftests/harness/vm run uml-virtual --time 40000 -- selftests/vt/vt-performability.sh 20000 "$OUT/sockets.done" >"$OUT/sockets.data"
measured=$?
grep -q '^1\.\.' "$OUT/sockets.data" ||
	die "vt-performability.sh did not end, see build/performability/sockets.data; another make model-report goes on there"
[ $measured = 0 ] || say "a prediction is off by more than a tenth, see build/performability/sockets.data"

#
# Tables
#

value='function value(n) { split(substr($0, index($0, n) + length(n)), v, /[ ,}]/); return v[1] }'
error='function off(p, m) { return m ? sprintf("%+.1f %%", 100 * (p / m - 1)) : "" }'

# As in table 4.1: components and stages, then the round trip that the model predicts from them.
sed -n 's/^\(# \)*# \(result\|round\) /\2 /p' "$OUT/times.data" | awk "$error"'
	$1 == "result" { if (!($3 in seen)) { seen[$3]; words[++n] = $3 }; time[$2, $3] = sprintf("%9s %9s", $4, $5) }
	$1 == "round" { if (!($3 in seen)) { seen[$3]; protocols[++m] = $3 }; trip[$2, $3] = sprintf("%9.2f %9.2f %9s %9.2f %9s", $4, $5, off($5, $4), $6, off($6, $4)) }
	END {
		printf "%-22s %9s %9s   %9s %9s\n", "1000 instructions", "EDP", "EDP", "UDP", "UDP"
		printf "%-22s %9s %9s   %9s %9s\n", "component, stage", "request", "reply", "request", "reply"
		for (i = 1; i <= n; i++)
			if (words[i] != "sum") printf "%-22s %s   %s\n", words[i], time["edp", words[i]], time["udp", words[i]]
		printf "\n%-8s %-8s %9s %9s %9s %9s %9s\n", "over", "protocol", "measured", "model", "error", "simulated", "error"
		split("edp udp", over, " ")
		for (t = 1; t <= 2; t++)
			for (i = 1; i <= m; i++) printf "%-8s %-8s %s\n", over[t], protocols[i], trip[over[t], protocols[i]]
	}' | sed 's/ *$//' >$DOC/performability-times.txt

# As in table 4.2: error rate, measured, predicted.
table()
{
	local what=$1 name=$2 p

	printf '%-8s %12s %14s %10s %14s %9s %14s %9s\n' protocol "$what" "libam, us" "+-" "model, us" error "simulated, us" error
	for p in nway amvia amudp esp; do
		[ -e "$OUT/$name-$p.data" ] || continue
		awk -v protocol=$p "$error"'
			/^#/ { next }
			NF == 7 { printf "%-8s %12.4g %14s %10s %14.6g %9s %14.6g %9s\n", protocol, $1, "", "", $2, "", $5, off($2, $5); next }
			{ printf "%-8s %12.4g %14.6g %10.2g %14.6g %9s %14.6g %9s\n", protocol, $1, $8, $9, $2, off($2, $8), $5, off($2, $5) }' \
			"$OUT/$name-$p.data"
	done
}
{
	table "bit errors" memory
	echo
	table "frames lost" loss
	echo
	table "window" requests
} >$DOC/performability-memory.txt

# The application's faults, and the outcome of a request.
{
	printf '%-8s %-14s %6s %12s %12s %9s %13s %9s %10s %9s %13s\n' protocol fault window "libam, us" "model, us" error \
		"simulated, us" error "libam, ok" "model, ok" "simulated, ok"
	for p in nway amvia amudp; do
		for f in missing=0.05 late=0.001 crash=0.01 delay=0.02; do
			for w in 1 4; do
				awk -v name="$(printf '%-8s %-14s %6s' $p $f $w)" "$error$value"'
					function succeed() { return value("\"ACKED, PROCESSED\": ") / value("\"requests\": ") }
					/^  "response_us"/ { p = value("\"response_us\": ") }
					/^  "ends"/ { ok = value("\"ACKED, PROCESSED\": ") }
					/^  "simulation"/ { s = value("\"response_us\": "); sok = succeed() }
					/^  "measured"/ {
						m = value("\"response_us\": ")
						printf "%s %12.6g %12.6g %9s %13.6g %9s %10.5f %9.5f %13.5f\n",
							name, m, p, off(p, m), s, off(p, s), succeed(), ok, sok
					}' "$OUT/fault-$p-$f-$w.data"
			done
		done
	done
} >$DOC/performability-application.txt

{
	printf '%-6s %-8s %-14s %14s %10s %14s %9s\n' over protocol fault "measured, us" "+-" "model, us" error
	sed -n 's/^# result //p' "$OUT/sockets.data" | awk "$error"'
		{ printf "%-6s %-8s %-14s %14.6g %10.2g %14.6g %9s\n", $1, $2, $3, $4, $5, $6, off($6, $4) }'
} >$DOC/performability-sockets.txt

{
	for p in $PROTOCOLS; do
		echo "$p, one frame of 1000 lost"
		"$TOOL" -s "$MODEL" protocol=$p network.fail=0.001 | sed -n '/^component/,$p'
		echo
	done
} >$DOC/performability-sensitivity.txt

#
# Figures
#

# figure NAME XLABEL TITLE [POINTS]: lines show the model, points the measurement.
figure()
{
	local name=$1 x=$2 title=$3 points=$4 p plots=()

	for p in $PROTOCOLS; do
		[ ! -e "$OUT/$name-$p.data" ] || plots+=("'$OUT/$name-$p.data' using 1:2 with lines lw 2 title '$p'")
		[ -z "$points" ] || [ "$p" = esp ] ||
			plots+=("'$OUT/$points-$p.data' using 1:8:9 with yerrorbars pt 7 title '$p, libam'")
	done
	gnuplot <<-END
		set terminal pngcairo size 900,500
		set output "$DOC/performability-$name.png"
		set title "$title"
		set xlabel "$x"
		set ylabel "response time, us"
		set logscale xy
		set autoscale xfix
		set format x "%g"
		set grid
		set key outside
		plot $(IFS=,; echo "${plots[*]}")
	END
}
figure network "probability that card, wire or switch lose a frame" "Faults of the network" loss &&
	figure kernel "probability that a kernel loses a frame" "Faults of the kernel" &&
	figure library "probability that a library loses a frame" "Faults of the library" &&
	figure delay "probability that a handler takes 10 ms more" "Faults of the application" &&
	figure window "requests outstanding" "Requests that wait for each other; one frame of 1000 lost" requests || exit

# A picture for each protocol, as in figure 4.14.
gnuplot <<END || exit
set terminal pngcairo size 1000,900
set output "$DOC/performability-ber.png"
set multiplot layout 2,2
set xlabel "bit error rate"
set ylabel "response time, us"
set logscale xy
set format x "%g"
set xrange [1e-7:1e-4]
set grid
set key left top
do for [p in "amvia amudp nway"] {
	set title p
	plot "$OUT/ber-".p.".data" using 1:2 with lines lw 2 title "model", \
		"$OUT/memory-".p.".data" using 1:8:9 with yerrorbars pt 7 title "libam", \
		"" using 1:5:6 with yerrorbars pt 6 title "simulated"
}
set title "a stream of ESP"
plot "$OUT/ber-esp.data" using 1:2 with lines lw 2 title "model"
END

# Of requests that end well the late and the crashed say little; of those that are done, all.
gnuplot <<END || exit
set terminal pngcairo size 1000,900
set output "$DOC/performability-throughput.png"
set multiplot layout 2,2
set ylabel "requests a second"
set xlabel "probability"
set logscale xy
set grid
set key left bottom
set format x "%g"
set xrange [0.0001:0.1]
do for [what in "network kernel library"] {
	set title "Faults of the ".what.": a frame is lost"
	plot for [p in "$PROTOCOLS"] "$OUT/".what."-".p.".data" using 1:3 with lines lw 2 title p
}
set xrange [0.00001:0.01]
set title "Faults of the application: late, or its process ends"
plot for [p in "nway amvia amudp"] "$OUT/late-".p.".data" using 1:3 with lines lw 2 title p.", late", \
	for [p in "nway amvia amudp"] "$OUT/crash-".p.".data" using 1:3 with lines lw 2 dt 2 title p.", crash"
END
ls -l $DOC/performability*.png $DOC/performability*.txt
