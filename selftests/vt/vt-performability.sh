#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Compare esp-performability's predictions with real kernels: libam over UDP and ESP's datagrams
# and records, and a stream of ESP, between two hosts 1 ms apart (there and back), with faults. In
# simulated time computing takes no time, so a message takes only the time of the cable and timers.
#
#	vt-performability.sh [REQUESTS [DONE]]
#
# DONE has the lines "# result" of an interrupted run: their figures are checked, but not measured
# again.

. "${0%/*}/../lib/lib.sh"

REQUESTS=${1:-3000}
DONE=${2:-/dev/null}
TOOL=$BUILD/../performability/esp-performability
MODEL=$TMP/model

cat >"$MODEL" <<END
protocol	nway
service		fixed
application.handler	0
library.send	0
library.receive	0
kernel.send	0
kernel.receive	0
network.latency	500
frame.request	74
frame.reply	74
frame.control	74
timer.grain	1000
END

hosts 2
cable n0 v0 n1 v1
ip0 addr add 10.0.0.1/24 dev v0
ip1 addr add 10.0.0.2/24 dev v1
MAC=$(mac n1 v1)

# faults NETEM INGRESS: set netem's faults both ways; the receiving kernel drops one of INGRESS
# frames.
faults()
{
	# Delete the queues, because "tc change" keeps options that aren't named.
	n0 tc qdisc del dev v0 root 2>/dev/null
	n1 tc qdisc del dev v1 root 2>/dev/null
	# shellcheck disable=SC2086
	n0 tc qdisc add dev v0 root netem delay 500us limit 10000 $1
	# shellcheck disable=SC2086
	n1 tc qdisc add dev v1 root netem delay 500us limit 10000 $1
	n0 tc qdisc del dev v0 clsact 2>/dev/null
	n1 tc qdisc del dev v1 clsact 2>/dev/null
	[ -n "$2" ] || return
	n0 tc qdisc add dev v0 clsact
	n1 tc qdisc add dev v1 clsact
	n0 tc filter add dev v0 ingress matchall action pass random netrand drop "$2"
	n1 tc filter add dev v1 ingress matchall action pass random netrand drop "$2"
}

# measure TRANSPORT PROTOCOL FAULT SETTING...: sets line.
measure()
{
	local transport=$1 protocol=$2 fault=$3 at peer server
	shift 3

	case $transport in
	udp) at=udp:10.0.0.1 peer=udp:10.0.0.2:4000 server=$peer ;;
	edp) at=edp:%v0 peer=edp:$MAC%v0:4000 server=edp:%v1:4000 ;;
	rec) at=esp:%v0 peer=esp:$MAC%v0:4000 server=esp:%v1:4000 ;;
	esp) at=esp:%v0 peer=esp:$MAC server=esp:%v1 ;;
	esac
	# Start it without a shell function, because $! must be the program's process ID.
	nsenter --net=/run/netns/n1 "$TOOL" --serve "$server" "$MODEL" "protocol=$protocol" "$@" &
	local pid=$!
	sleep 0.1
	n0 "$TOOL" -j -m "$REQUESTS" --at "$at" --peer "$peer" "$MODEL" "protocol=$protocol" "$@" >"$TMP/json" 2>&1
	end $pid
	# Records: ESP retransmits lost packets, as on a stream. But no data go back on their
	# connection, so ACKs wait, and the round trip that the timeout is computed from has that
	# delay (500), too.
	[ "$transport" != rec ] || "$TOOL" -j "$MODEL" protocol=esp esp.ack_delay_us=1000 "$@" >>"$TMP/json"
	line=$(awk -v name="$transport $protocol $fault" '
		function value(n) { split(substr($0, index($0, n) + length(n)), v, /[ ,}]/); return v[1] }
		/^  "response_us"/ { predicted = value("\"response_us\": ") }
		/^  "ends"/ { succeed = value("\"ACKED, PROCESSED\": ") }
		/^  "measured"/ {
			measured = value("\"response_us\": ")
			error = value("\"error_us\": ")
			ok = value("\"ACKED, PROCESSED\": ") / value("\"requests\": ")
		}
		END { if (measured) printf "%s %.6g %.3g %.6g %.6g %.6g\n", name, measured, error, predicted, ok, succeed }' "$TMP/json")
	[ -n "$line" ] || comment <"$TMP/json"
}

# run TRANSPORT PROTOCOL FAULT SETTING...: the measured time is within a tenth of the prediction.
run()
{
	local line

	line=$(sed -n "s/^# result \($1 $2 $3 .*\)/\1/p" "$DONE")
	[ -n "$line" ] || measure "$@"
	echo "# result $line"
	# shellcheck disable=SC2086
	check "$1, $2, $3: within a tenth, or the error of the measurement" close_to $line
	# shellcheck disable=SC2086
	check "... and as many succeed, within two of 100" as_many $line
}

# close_to TRANSPORT PROTOCOL FAULT MEASURED ERROR PREDICTED ...
close_to() { awk -v m="$4" -v e="$5" -v p="$6" 'BEGIN { d = m - p; d = d < 0 ? -d : d; exit !(m && (d <= 0.1 * m || d <= 1.5 * e)) }'; }

# as_many TRANSPORT PROTOCOL FAULT MEASURED ERROR PREDICTED SUCCESS PREDICTED
as_many() { awk -v s="$7" -v p="$8" 'BEGIN { d = s - p; exit !(s && d <= 0.02 && d >= -0.02) }'; }

transports="udp:nway edp:nway edp:amvia edp:amudp rec:nway esp:esp"
for loss in 0 0.01 0.05 0.1; do
	faults "loss $(awk -v l=$loss 'BEGIN { print 100 * l }')%" ''
	for t in $transports; do
		run "${t%:*}" "${t#*:}" "loss=$loss" "network.fail=$loss"
	done
done
# Corrupt frames as often as one bit of a frame's 74 bytes is wrong.
for ber in 1e-5 1e-4; do
	faults "corrupt $(awk -v b=$ber 'BEGIN { print 100 * (1 - exp(592 * log(1 - b))) }')%" ''
	for t in $transports; do
		run "${t%:*}" "${t#*:}" "ber=$ber" "network.ber=$ber"
	done
done
faults '' 20
for t in $transports; do
	run "${t%:*}" "${t#*:}" kernel=0.05 network.fail=0.05
done
faults 'loss 2%' ''
for f in missing=0.05 delay=0.02 late=0.002 crash=0.01; do
	for t in udp:nway edp:nway edp:amvia edp:amudp rec:nway; do
		run "${t%:*}" "${t#*:}" "$f" "application.$f" network.fail=0.02
	done
done
finish
