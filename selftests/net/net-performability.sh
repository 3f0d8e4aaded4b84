#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# esp-performability's prediction where a sending kernel loses frames: the kernel's fault injection
# makes some of 100 allocations of the module fail. libam runs over ESP's datagrams between two
# hosts 20 ms apart (there and back). Time is real, so the response time without faults is measured.
#
#	net-performability.sh [REQUESTS]

. "${0%/*}/../lib/lib.sh"

REQUESTS=${1:-1000}
TOOL=$BUILD/../performability/esp-performability
MODEL=$TMP/model
FAILSLAB=/sys/kernel/debug/failslab
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug

cat >"$MODEL" <<END
protocol	nway
service		fixed
application.handler	0
library.send	0
library.receive	0
kernel.send	0
kernel.receive	0
network.latency	10000
timer.grain	1000
END

hosts 2
cable n0 v0 n1 v1
n0 tc qdisc add dev v0 root netem delay 10ms limit 10000
n1 tc qdisc add dev v1 root netem delay 10ms limit 10000
PEER=edp:$(mac n1 v1)%v0:4000

# fail PERCENT: makes that share of the module's allocations fail.
fail()
{
	local text

	text=$(</sys/module/esp/sections/.text)
	echo 0 >$FAILSLAB/verbose
	echo N >$FAILSLAB/ignore-gfp-wait
	echo "$text" >$FAILSLAB/require-start
	printf '%#x\n' $((text + $(awk '$1 == "esp" { print $2 }' /proc/modules))) >$FAILSLAB/require-end
	echo 1000000 >$FAILSLAB/times
	echo "$1" >$FAILSLAB/probability
}

# measure REQUESTS SETTING...: writes JSON to $TMP/json.
measure()
{
	local n=$1
	shift

	n0 "$TOOL" -j -m "$n" --at edp:%v0 --peer "$PEER" "$MODEL" "$@" >"$TMP/json"
}

# value NAME SECTION: print the first value of NAME after SECTION.
value()
{
	awk -v name="\"$1\": " -v section="\"$2\"" '
		{ on = on || index($0, section) }
		on && (i = index($0, name)) { split(substr($0, i + length(name)), v, /[ ,}]/); print v[1]; exit }' "$TMP/json"
}

# replies: print the replies sent, and those that failed.
replies() { echo "$(stat n1 DgramOut) $(stat n1 OutAllocFail)"; }

nsenter --net=/run/netns/n1 "$TOOL" --serve edp:%v1:4000 "$MODEL" &
SERVER=$!
sleep 0.5
measure 100
check "without faults" [ "$(value "ACKED, PROCESSED" measured)" = 100 ]
LATENCY=$(awk -v us="$(value response_us measured)" 'BEGIN { print us / 2 }')

# predicted PERCENT: the measured time is within a tenth of the prediction, or within the error of
# the measurement. Each frame asks for two pieces of memory. libam gets an error for a request that
# could not be sent, and tries again after a millisecond. A request that is sent again after a
# timeout, and a reply, are lost as in the model. So the first attempt is lost with q, all others
# with 1 - (1 - q)^2.
predicted()
{
	local sent failed sent2 failed2 lost

	read -r sent failed <<<"$(replies)"
	fail "$1"
	measure "$REQUESTS"
	fail 0
	read -r sent2 failed2 <<<"$(replies)"
	lost=$(awk -v out=$((sent2 - sent)) -v lost=$((failed2 - failed)) 'BEGIN { print lost / (out + lost) }')
	n0 "$TOOL" -j "$MODEL" network.latency="$LATENCY" network.fail="$lost" >"$TMP/predicted"
	awk -v p="$1" -v q="$lost" -v m="$(value response_us measured)" -v e="$(value error_us measured)" \
		-v least="$LATENCY" -v us="$(sed -n 's/^  "response_us": \([0-9.]*\).*/\1/p' "$TMP/predicted")" 'BEGIN {
			p /= 100
			us = 2 * least + (us - 2 * least) / (2 - q)
			printf "result edp nway failslab=%g %g +- %g predicted %g; replies lost %g of %g\n",
				p, m, e, us, q, 1 - (1 - p) ^ 2
			d = m - us; d = d < 0 ? -d : d
			exit !(q >= p && q <= 3 * p && (d <= 0.1 * m || d <= 1.5 * e)) }'
}

for percent in 3 10; do
	check "$percent of 100 allocations fail: within a tenth of the prediction" predicted $percent
done
end $SERVER
finish
