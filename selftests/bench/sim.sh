#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# espsim, the simulator of many hosts (tools/sim): it refuses senseless options, gives the
# same figures in each run, loses no byte, and agrees with the real rack (vt-incast.sh).
#
#	sim.sh [long]

HERE=$(cd "${0%/*}" && pwd)
SRC=$(cd "$HERE/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HERE/../harness/fetch.sh"
need gcc make libc6-dev jq
cd "$SRC" || exit 1
OUT=$SRC/build/sim
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
number=0 status=0

# verdict TEXT STATUS: print the result, and $WORK/said if the test failed.
verdict()
{
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		sed 's/^/# /' "$WORK/said"
		echo "not ok $number - $1"
		status=1
	fi
}

# refused WORDS OPTION...: the run fails and says so.
refused()
{
	local words=$1
	shift

	"$OUT/espsim" "$@" >"$WORK/said" 2>&1
	[ $? = 64 ] && grep -qF -e "$words" "$WORK/said"
	verdict "$* is refused" $?
}

# holds TEXT FILTER OPTION...: of the run's figures FILTER is true.
holds()
{
	local text=$1 filter=$2
	shift 2

	"$OUT/espsim" -j "$@" >"$WORK/said" 2>&1 && jq -e "$filter" <"$WORK/said" >/dev/null
	verdict "$text" $?
}

# same OPTION...: two runs' figures are the same.
same()
{
	"$OUT/espsim" "$@" >"$WORK/one" && "$OUT/espsim" "$@" >"$WORK/two" &&
		diff "$WORK/one" "$WORK/two" >"$WORK/said"
	verdict "$* twice is the same" $?
}

make -s -C tools/sim O="$OUT" >"$WORK/said" 2>&1
verdict "espsim builds" $?
! grep -q warning "$WORK/said"
verdict "... without a warning" $?

refused "one of --senders and --workload" -R 1000
refused "'many' is no whole number" -n many
refused "'1.5' is no whole number" -n 1.5
refused "0 is not within 1 ... 4095" -n 0
refused "4096 is not within 1 ... 4095" -n 4096
refused "5000 is not within 2 ... 4096" -w hadoop -N 5000
refused "4 hosts are too few" -n 8 -N 4
refused "8 senders, but 4 connected" -n 8 --connected 4
refused "5 is not within 10 ... 400000" -n 8 -R 5
refused "nan' is no" -n 8 -R nan
refused "1 is not within 2 ... 65536" -n 8 -B 1
refused "'' is no number" -n 8 -D ''
refused "-1 is not within" -n 8 --hop -1
refused "1.5 is not within 0.01 ... 1" -w hadoop -l 1.5
refused "0.9 is not within 0 ... 0.5" -n 8 --loss 0.9
refused "'video' is unknown" -w video
refused "'quic' is unknown" -n 8 -p quic
refused "has no --senders" -w hadoop -n 8
refused "has no --rtt" -w hadoop -D 100
refused "has no --flows" --alltoall -n 8 -f
refused "is for 2 ... 1024 hosts" --alltoall -n 1025
refused "--shuffle is for --alltoall" -n 8 --shuffle
refused "--handshake is for SIRD" -n 8 --handshake
refused "SIRD has no --rtt and no --flows" -n 8 -f -p sird
refused "SIRD is for 1024 hosts at most" -w hadoop -N 1025 -p sird
refused "the ideal is for --workload" -n 8 -p ideal
refused "too long for more than 256" -w hadoop -N 512 -p ideal
refused "Too many arguments" -n 8 16
refused "0 is not within 1 ... 256" -n 8 --spines 0
refused "0 is not within 1 ... 1e+06" -n 8 -r 0

# too_short OPTION...: the run ends before a measurement, and espsim says so.
too_short()
{
	"$OUT/espsim" "$@" >"$WORK/said" 2>&1
	[ $? = 1 ] && grep -qF "the limit ends the run before anything is measured" "$WORK/said"
	verdict "$*: too short is told" $?
}
for p in esp cubic; do
	too_short -n 8 --limit 0.01 -p $p
	too_short -n 64 -D 1000000 -p $p
	too_short -n 8 -f --limit 1 -p $p
	too_short -n 8 -f --limit 11 -p $p
done

for p in esp seed newreno cubic dctcp sird ideal; do
	same -w hadoop -N 32 -t 1 -p $p
done
same -n 32 -R 1000 -D 100 -r 2
"$OUT/espsim" -w hadoop -N 32 -t 1 -s 2 >"$WORK/two"
"$OUT/espsim" -w hadoop -N 32 -t 1 -s 1 | cmp -s - "$WORK/two"
[ $? = 1 ]
verdict "another seed is another run" $?

# The same limits as vt-incast.sh has for the real rack. A single sender begins each round before
# the last ACK has come, and waits half a round trip for a first burst.
for n in 1 2 8 16 32; do
	holds "rack, $n senders: as the module" '.goodput_share >= (if .senders == 1 then 0.975 else 0.98 end) and .goodput_share <= 1.01 and
		.drops_edge <= 2 and .retransmits <= 2 and .jain >= 0.99 and .fct_p99_ratio <= 1.05' \
		-n $n -R 1000 -D 100 -r 5
done
holds "... a lone sender of TCP fills the port" '.goodput_share > 0.99 and .timeouts == 0' -n 1 -R 1000 -D 100 -p cubic
holds "... a probe finds tails that are lost" '.goodput_share > 0.8 and .timeouts == 0 and .retransmits > 500' \
	-n 8 -R 1000 -D 100 -p cubic
holds "... of 32 some wait for a timeout in each round" '.goodput_share > 0.2 and .goodput_share < 0.4 and .timeouts > 50' \
	-n 32 -R 1000 -D 100 -p cubic
holds "... of 64 with DCTCP, too" '.goodput_share > 0.45 and .goodput_share < 0.8 and .timeouts > 20' \
	-n 64 -R 1000 -D 100 -p dctcp
holds "... where TCP loses frames" '.drops_edge > 100 and .goodput_share < 0.9' -n 32 -R 1000 -D 100 -r 5 -p cubic
holds "... and waits for timeouts" '.timeouts > 10' -n 32 -R 1000 -D 100 -r 5 -p newreno
holds "... and DCTCP is marked" '.marks > 100' -n 32 -R 1000 -D 100 -r 5 -p dctcp
holds "... and the seed's policy overruns the port" '.drops_edge > 1000 and .goodput_share > 0.8' \
	-n 32 -R 1000 -D 100 -r 5 -p seed
for loss in 0.001:0.98 0.01:0.95 0.1:0.4; do
	holds "rack, ${loss%:*} of frames lost: goodput" ".goodput_share >= ${loss#*:} and .lost > 0" \
		-n 1 -f -R 1000 -D 100 -t 300 --loss "${loss%:*}"
done

holds "300 Gbit/s: no more than the link can take" '.goodput_share > 0.9 and .goodput_share <= 1.005' -n 16 -f -R 300000 -B 65536 -t 5

# Every flow ends, none sooner than is possible. Each byte arrives once because a flow cannot
# receive more than its size.
for p in esp seed newreno cubic dctcp sird ideal; do
	holds "hadoop's flows, $p: all end, none before it can" \
		'.finished == .flows and .flows > 100 and .small_p50 >= 1 and .goodput_share <= .offered_share' \
		-w hadoop -N 64 -t 2 -p $p
done
for p in esp dctcp; do
	holds "$p: packets that overtake each other" '.finished == .flows and .out_of_order > 10' \
		-w websearch -N 64 -t 4 -l 0.8 --uplink 8000 --spray -p $p
	holds "$p: a narrow core" '.finished == .flows and .drops_up + .drops_core > 0' \
		-w websearch -N 64 -t 4 -l 0.8 --uplink 5000 -p $p
done
holds "esp: few frames in the queue of a device" '.finished == .flows and .host_queue_most < 5000' -w websearch -N 64 -t 4
holds "64 hosts, all to all: no port is overrun" '.goodput_share > 0.85 and .drops_edge == 0' --alltoall -n 64 -b 65536 -r 2
holds "... in a random order" '.goodput_share > 0.85 and .drops_edge == 0 and .shuffle == 1' \
	--alltoall --shuffle -n 64 -b 65536 -r 2
holds "sird: no port is overrun" '.goodput_share > 0.9 and .drops_edge == 0 and .timeouts == 0' -n 64 -r 3 -p sird
holds "sird: a message that stands still gets its credit anew" '.finished == .flows and .timeouts > 0' \
	-w hadoop -N 32 -t 1 -p sird --loss 0.0005
for loss in 0.001 0.005; do
	holds "10 Gbit/s, $loss of frames lost: no queue, no caution" '.goodput_share > 0.95' -n 1 -f -D 100 -t 50 --loss $loss
done
holds "cards that hold frames back for 100 us" '.goodput_share > 0.9 and .drops_edge == 0' -n 16 -f -t 20 --coalesce 100
holds "... and a single flow" '.goodput_share > 0.95 and .drops_edge == 0' -n 1 -f -t 50 --coalesce 100
holds "a rate that is told too low" '.goodput_share > 0.95' -n 16 -r 20 --told 7000
holds "turns first in, first out" '.finished == .flows and .fifo == 1' -w hadoop -N 64 -t 2 --fifo
holds "pause frames: nothing is lost" '.finished == .flows and .drops_edge + .drops_core + .drops_up == 0' \
	-w websearch -N 64 -t 4 -l 0.8 --pause
holds "slow processors at half of the hosts" '.finished == .flows' -w websearch -N 64 -t 4 -l 0.3 --cpu 2
holds "1000 senders: no port is overrun" '.rounds_done == 2 and .goodput_share > 0.95 and .drops_edge < 100 and
	.queue_most <= 1000 and .host_socks_most == 1000' -n 1000 -r 2
holds "beyond first_burst_pool hosts are advised to ask first" '.empty_txs >= 8 and .empty_txs <= 24' \
	-n 8 --connected 1000 -r 3
holds "the end of simulated time ends a run" '.simulated_ms < 25 and .rounds_done < 1000' -n 8 -r 1000 --limit 20

# Run the same under ASan and UBSan.
make -s -C tools/sim O="$OUT/san" CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" \
	LDFLAGS="-fsanitize=address,undefined" >"$WORK/said" 2>&1
verdict "espsim builds with sanitizers" $?
for args in "-n 32 -R 1000 -D 100 -r 2" "-n 8 --connected 100 -r 2 -p seed" "-w hadoop -N 32 -t 1" \
	"-w hadoop -N 32 -t 1 -p cubic --loss 0.01" "-w hadoop -N 32 -t 1 --spray --loss 0.01" \
	"--alltoall -n 8 -b 8192 -r 2 --coalesce 50" "-w websearch -N 32 -t 1 --pause --cpu 1 --told 0" \
	"-w hadoop -N 32 -t 1 -p sird --loss 0.001" "--alltoall -n 8 -r 2 -p sird --handshake" \
	"-n 4 -f -t 2 -p dctcp" "-w hadoop -N 32 -t 1 -p ideal"; do
	# shellcheck disable=SC2086
	ASAN_OPTIONS=detect_leaks=0 "$OUT/san/espsim" $args >"$WORK/said" 2>&1
	verdict "no error in $args" $?
done

if [ "$1" = long ]; then
	for hosts in 1024 4096; do
		for w in websearch hadoop; do
			holds "$hosts hosts, $w" '.finished == .flows' -w $w -N $hosts -t 2
		done
	done
	holds "4095 senders" '.rounds_done == 1 and .drops_edge < 100' -n 4095 -r 1
fi

echo "1..$number"
exit $status
