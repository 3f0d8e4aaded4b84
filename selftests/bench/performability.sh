#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Compare esp-performability with exact results, with its own simulation, and with libam in
# simulated time. Random numbers are the same in each run.
#
#	performability.sh [long]	crashes and late handlers with all three protocols

cd "${0%/*}/../.." || exit 1
# shellcheck source=selftests/harness/fetch.sh
. selftests/harness/fetch.sh
need gcc make libc6-dev pkgconf libgsl-dev gnuplot-nox
OUT=$PWD/build/performability
TOOL=$OUT/esp-performability
WORK=$(mktemp -d)
FAULTY=(nway ${1:+amvia amudp})
trap 'rm -rf "$WORK"' EXIT
number=0 status=0

make -s -C tools/performability O="$OUT" >"$WORK/make" 2>&1 || { cat "$WORK/make"; exit 1; }

# result TEXT STATUS
result()
{
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		sed 's/^/# /' "$WORK/out"
		echo "not ok $number - $1"
		status=1
	fi
}

cat >"$WORK/model" <<END
protocol	nway
service		fixed
application.request	2
application.handler	10
application.reply	1
library.send	3
library.receive	4
kernel.send	5
kernel.receive	6
network.latency	20
network.byte	0.008
END

cat >"$WORK/empty" <<END
protocol	nway
application.handler	0
library.send	0
library.receive	0
kernel.send	0
kernel.receive	0
network.latency	0
END

# solve ARGUMENT...: JSON to out.
solve() { "$TOOL" -j "$@" >"$WORK/out" 2>&1; }

# value NAME [SECTION]: print the value of NAME in out, the first one after SECTION.
value()
{
	awk -v name="\"$1\": " -v section="\"${2:-}" '
		!on { on = section == "\"" || index($0, section "\"") }
		on && (i = index($0, name)) { split(substr($0, i + length(name)), v, /[ ,}]/); print v[1]; exit }' "$WORK/out"
}

# near A B PART: they differ by no more than that part of B.
near() { awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { d = a - b; exit !(a != "" && b != "" && (d < 0 ? -d : d) <= part * b) }'; }

#
# Exact results
#

# Retries: up to k more, each after twice the time, until a request and its reply get through.
solve "$WORK/empty" network.latency=1000 network.fail=0.2 retries=5
near "$(value response_us)" "$(awk 'BEGIN {
	q = 1 - 0.8 * 0.8; t = 4000; late = 0
	for (i = 0; i <= 5; i++) { sum += q ^ i * (1 - q) * (2000 + late); p += q ^ i * (1 - q); late += t; t *= 2 }
	printf "%.12g", sum / p }')" 1e-9
result "geometric retries: response time" $?
near "$(value "NOT_ACKED, REQUEST_RTX_EXCEEDED")" "$(awk 'BEGIN { printf "%.12g", 0.36 ^ 6 }')" 1e-9
result "... and how often they are given up" $?

# Machines and a repairman: N customers, one exponential server, a delay between.
repairman=$(awk 'BEGIN { n = 6; s = 100; z = 300; p = 1
	for (i = 0; i <= n; i++) { sum += p; if (i) busy += p; p *= (n - i) * s / z }
	x = busy / sum / s; printf "%.12g", n / x }')
solve "$WORK/empty" application.handler=100 network.latency=150 window=6 -n 200000
near "$(value mva_us)" "$repairman" 1e-9
result "a closed M/M/1: mean value analysis" $?
near "$(value balance_us)" "$repairman" 1e-9
result "... balance equations" $?
near "$(value response_us simulation)" "$repairman" 0.01
result "... simulation" $?

# Nothing gets through: a request is sent k + 1 times.
for protocol in nway amvia amudp; do
	solve "$WORK/model" protocol=$protocol network.fail=1 retries=3
	near "$(value "NOT_ACKED, REQUEST_RTX_EXCEEDED")" 1 1e-12 && near "$(value frames)" 4 1e-12
	result "$protocol, no network: abandoned after 4 frames" $?
done
solve "$WORK/model" network.ber=1e-4 frame.request=1000 frame.reply=1000 retries=0
near "$(value "ACKED, PROCESSED")" "$(awk 'BEGIN { printf "%.12g", exp(16000 * log(1 - 1e-4)) }')" 1e-9
result "bit errors lose frames" $?
solve "$WORK/model" node.mttf=999 node.mttr=1
near "$(value availability)" 0.998001 1e-9
result "availability of two nodes" $?

#
# Model, simulation and measurement compared
#

for protocol in nway amvia amudp; do
	solve "$WORK/model" protocol=$protocol network.fail=0.05 window=3
	near "$(value mva_us)" "$(value balance_us)" 1e-9
	result "$protocol: mean value analysis and balance equations" $?
	solve "$WORK/model" protocol=$protocol network.fail=0.05
	near "$(value chain_us)" "$(value mva_us)" 1e-9
	result "$protocol: one customer is the chain" $?
done

# agrees TEXT SAMPLE: within four standard errors, and 1 of 100000.
agrees()
{
	local interval
	interval=$(awk -v d="$(value deviation_us)" -v m="$(value response_us)" 'BEGIN { print 4 * d / sqrt(40000) / m + 1e-5 }')
	near "$(value response_us "$2")" "$(value response_us)" "$interval"
	result "$1" $?
}

# Faults of all components.
for faults in "network.fail=0" "network.fail=0.05" "network.fail=0.1" "kernel.fail=0.02 library.fail=0.01" "network.ber=5e-5" \
	"application.missing=0.05 network.fail=0.02" "application.delay=0.02 network.fail=0.02" \
	"application.crash=0.01 network.fail=0.02"; do
	for protocol in nway amvia amudp; do
		# shellcheck disable=SC2086
		solve -n 40000 -m 40000 "$WORK/model" protocol=$protocol $faults
		agrees "$protocol, $faults: simulation" simulation
		agrees "... libam" measured
	done
done
for messages in "packets.request=1" "packets.request=4" "packets.request=3 packets.reply=3"; do
	for loss in 0.02 0.1; do
		# shellcheck disable=SC2086
		solve -n 40000 "$WORK/model" protocol=esp $messages network.fail=$loss
		agrees "esp, $messages, loss $loss: simulation" simulation
	done
done

for fault in missing=0.05 delay=0.02 late=0.01 crash=0.01; do
	solve -n 40000 "$WORK/model" protocol=esp "application.$fault" network.fail=0.05
	agrees "esp, $fault: simulation" simulation
	near "$(value "ACKED, PROCESSED" simulation)" "$(awk -v p="$(value "ACKED, PROCESSED")" 'BEGIN { print 40000 * p }')" 0.005
	result "... and as many succeed" $?
done

# Connecting again costs throughput, and frames of the handshake are lost, too.
for fault in missing=0.05 "crash=0.01 application.restart=1000"; do
	# shellcheck disable=SC2086
	solve -n 400000 -m 400000 "$WORK/model" protocol=nway application.$fault network.fail=0.01
	near "$(value throughput simulation)" "$(value throughput measured)" 0.1
	result "nway, $fault: simulation and libam do as many a second" $?
	near "$(value throughput)" "$(value throughput simulation)" 0.1
	result "... and so does the model" $?
done

# Requests that wait for each other: approximated.
for protocol in nway amvia amudp; do
	for window in 4 16; do
		solve -m 40000 "$WORK/model" protocol=$protocol window=$window
		near "$(value response_us)" "$(value response_us measured)" 0.1
		result "$protocol, window $window: within a tenth of libam" $?
	done
done

# A process that crashes takes the other requests with it.
for protocol in "${FAULTY[@]}"; do
	solve -n 400000 -m 40000 "$WORK/model" protocol=$protocol window=4 application.crash=0.01 network.fail=0.01
	near "$(value "ACKED, PROCESSED" simulation)" "$(awk -v n="$(value "ACKED, PROCESSED" measured)" 'BEGIN { print 10 * n }')" 0.004 &&
		near "$(value throughput simulation)" "$(value throughput measured)" 0.2 &&
		near "$(value "ACKED, PROCESSED")" "$(awk -v n="$(value "ACKED, PROCESSED" simulation)" 'BEGIN { print n / 400000 }')" 0.004
	result "$protocol, window 4, crashes: simulation, libam and the model lose four requests each" $?
	near "$(value response_us)" "$(value response_us simulation)" 0.1
	result "... and those that live take as long" $?
	near "$(value throughput)" "$(value throughput simulation)" 0.12
	result "... as many a second" $?
done

# A late handler holds up the others, which give up (N-way) or wait.
for protocol in "${FAULTY[@]}"; do
	solve -n 1000000 "$WORK/model" protocol=$protocol window=4 application.late=0.001 network.fail=0.01
	near "$(value response_us)" "$(value response_us simulation)" 0.1 &&
		near "$(value "ACKED, PROCESSED")" "$(awk -v n="$(value "ACKED, PROCESSED" simulation)" 'BEGIN { print n / 1000000 }')" 0.001
	result "$protocol, window 4, late handlers: within a tenth of the simulation" $?
done

# A state of the balance equations has the number of customers at each place: 256 exceed a byte.
solve "$WORK/empty" application.handler=100 network.latency=150 window=256
near "$(value balance_us)" "$(value mva_us)" 1e-9
result "256 customers" $?

# A derivative that is known: the network is passed twice.
solve -s "$WORK/model"
near "$(value derivative network.latency)" 2 1e-6
result "sensitivity to latency" $?
[ "$(value derivative application.missing)" = 0 ]
result "... and none to what changes nothing" $?
solve -s "$WORK/model" protocol=esp
near "$(value derivative network.latency)" 2 1e-6 && [ "$(value derivative application.crash)" = 0 ]
result "... of a stream" $?

# Without "retries" the protocol's default counts, whether the file or the command line names the
# protocol.
for setting in "" retries=10 retries=200; do
	# shellcheck disable=SC2086
	solve "$WORK/model" protocol=esp network.fail=1 $setting
	value frames
done >"$WORK/frames"
[ "$(sed -n 1p "$WORK/frames")" = "$(sed -n 3p "$WORK/frames")" ] &&
	[ "$(sed -n 1p "$WORK/frames")" != "$(sed -n 2p "$WORK/frames")" ]
result "a stream has 200 retries, also if the command line says that it is one" $?
"$TOOL" -x network.fail:0.001:0.1:3:log "$WORK/model" >"$WORK/out" 2>&1
awk 'NR > 1 && NF == 4 && $2 > last { last = $2; n++ } END { exit n != 3 }' "$WORK/out"
result "a sweep: three lines, each longer than the last" $?
"$TOOL" -n 1000 -m 1000 -x network.fail:0.001:0.1:3:log "$WORK/model" >"$WORK/out" 2>&1
"$TOOL" -n 1000 -m 1000 -x network.fail:0.01:0.1:2:log "$WORK/model" >"$WORK/second" 2>&1
[ "$(sed -n 3p "$WORK/out")" = "$(sed -n 2p "$WORK/second")" ] && awk 'NR == 2 { exit NF != 10 }' "$WORK/out"
result "... each as if it were alone" $?

#
# Bad input
#

# refused TEXT WORDS: of the file bad.
refused()
{
	"$TOOL" "$WORK/bad" >"$WORK/out" 2>&1
	[ $? = 1 ] && grep -qF "$WORK/bad:$2" "$WORK/out"
	result "refused: $1" $?
}

# bad LINE...: write the model with these lines after it, numbered from 12 on.
bad() { { cat "$WORK/model"; printf '%s\n' "$@"; } >"$WORK/bad"; }

bad "network.fail 1.5"; refused "a probability above 1" "12: network.fail: 1.5 is no probability"
bad "" "network.ber -0.1"; refused "one below 0" "13: network.ber: -0.1 is no probability"
bad "kernel.fail much"; refused "no number" '12: kernel.fail: "much" is no number'
bad "kernel.fail nan"; refused "not a number" '12: kernel.fail: "nan" is no number'
bad "window 0"; refused "no window" "12: window: 0 is not 1 to 256"
bad "retries 2.5"; refused "half a retry" "12: retries: 2.5 is no whole number"
bad "kernel.think 1"; refused "an unknown word" '12: unknown word "kernel.think"'
bad "kernel.fail"; refused "a word without a value" "12: kernel.fail: the value is missing"
bad "kernel.fail 0 0"; refused "two values" "12: kernel.fail: more than one value"
bad "kernel.send 1"; refused "a word twice" "12: kernel.send was told in line 8"
bad "timeout_us 0"; refused "no time between two attempts" "12: timeout_us: 0 is not 1 to 1e+10"
bad "think 1e11"; refused "a day" "12: think: 1e11 is not 0 to 1e+10"
bad "protocol tcp"; refused "another protocol" '12: no protocol "tcp"'
bad "application.late 0.6" "application.crash 0.6"
refused "faults of more than 1" "13: the probabilities of a handler's faults"
bad "$(printf '%600s' x)"; refused "a long line" "12: the line is too long"
for word in kernel.send network.latency application.handler; do
	grep -v "^$word" "$WORK/model" >"$WORK/bad"
	refused "no $word" "10: the service time $word is missing"
done
grep -v ^protocol "$WORK/model" >"$WORK/bad"
refused "no protocol" "10: the protocol is missing"
: >"$WORK/bad"
refused "an empty file" "1: the protocol is missing"
sed s/nway/amudp/ "$WORK/model" >"$WORK/bad"
printf 'retries 250\nnetwork.fail 0.1\n' >>"$WORK/bad"
refused "a chain of too many states" "13: the chain has more than"
sed 's/^\([^p].*[	 ]\)[0-9.]*$/\10/' "$WORK/model" >"$WORK/bad"
refused "a network that doesn't converge" "11: the network doesn't converge: a request takes no time"
"$TOOL" "$WORK/nothing" >"$WORK/out" 2>&1
[ $? = 1 ] && grep -q "No such file" "$WORK/out"
result "refused: no file" $?
"$TOOL" "$WORK/model" network.fail=2 >"$WORK/out" 2>&1
[ $? = 1 ] && grep -qF "command line: network.fail: 2 is no probability" "$WORK/out"
result "refused: the same on the command line" $?
"$TOOL" "$WORK/model" network.byte=1e12 >"$WORK/out" 2>&1
[ $? = 1 ] && grep -qF "command line: network.byte: 1e12 is not 0 to 10000" "$WORK/out"
result "refused: a byte of a week" $?
"$TOOL" "$WORK/model" network.latency=1e10 network.fail=0.1 >"$WORK/out" 2>&1
[ $? = 1 ] && grep -q "model:11: .* us are too long" "$WORK/out"
result "refused: timeouts of weeks" $?
for option in -n -m; do
	timeout 10 "$TOOL" $option 10 "$WORK/model" network.fail=1 >"$WORK/out" 2>&1
	[ $? = 1 ] && grep -q "nothing gets through: no connection" "$WORK/out"
	result "refused: $option without a network" $?
done
"$TOOL" -x application.missing:0.5:1:6 "$WORK/model" application.crash=0.4 >"$WORK/out" 2>&1
[ $? = 1 ] && grep -q "the probabilities of a handler's faults are more than 1" "$WORK/out"
result "refused: a sweep to what a file may not have" $?
"$TOOL" -p "$WORK/png" -x window:1:4:4 "$WORK/model" >"$WORK/out" 2>&1
[ $? = 0 ] && [ "$(head -c 4 "$WORK/png" | tail -c 3)" = PNG ]
result "a picture" $?
"$TOOL" -p "$WORK/none/x" -x window:1:4:4 "$WORK/model" >"$WORK/out" 2>&1
[ $? = 1 ] && grep -qaF "gnuplot has failed" "$WORK/out" && ! grep -qa PNG "$WORK/out"
result "refused: a picture that can't be written" $?
for option in "-n 0" "-x network.fail:0:2:3" "-x none:0:1:3" "-x network.fail:0:1:3:log" "-p x" "--at udp:127.0.0.1"; do
	# shellcheck disable=SC2086
	"$TOOL" $option "$WORK/model" >"$WORK/out" 2>&1
	[ $? = 64 ]
	result "refused: option $option" $?
done

# The manual has every word.
for word in $(sed -nE 's/^\t(KEY|TIME|PROBABILITY|COUNT)\("([a-z_.]+)",.*/\2/p' tools/performability/input.c); do
	grep -q "$word" Documentation/man/esp-performability.1 || echo "esp-performability.1 lacks $word"
done >"$WORK/out"
[ ! -s "$WORK/out" ]
result "the manual has every word" $?

echo "1..$number"
exit $status
