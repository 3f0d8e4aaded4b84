#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Rules 14, 21 and 22 where they matter: many senders, one receiver, a port of
# 128 KiB and 1 Gbit/s, in simulated time, so that every figure is exact.
# incast.sh describes the hosts.
#
#	vt-incast.sh [long]
#
# A frame costs the same processor time at each rate, so 10 Gbit/s is tested with "long" only.

. "${0%/*}/../lib/lib.sh"

RUNS=$TMP/runs
RAN=0	# calls of run
LONG=''
[ "$1" != long ] || LONG=1

run()
{
	rm -f "$RUNS"
	# incast.sh must not read the list of a loop that calls this function.
	bash "${0%/*}/../bench/incast.sh" -o "$RUNS" "$@" </dev/null >"$TMP/out" 2>&1
	local status=$?
	comment <"$TMP/out"
	[ $status = 0 ] || exit $status
	RAN=$((RAN + 1))
}

# holds PROTO WORKLOAD N NAME OPERATOR NUMBER: the comparison holds for the run's figure NAME.
holds()
{
	awk -v run="\"proto\": \"$1\".*\"workload\": \"$2\", \"n\": $3," -v name="\"$4\": " -v limit="$6" '
		$0 ~ run {
			split(substr($0, index($0, name) + length(name)), v, /[,}]/)
			print v[1]
			seen = 1
		}
		END { exit !(seen && v[1] '"$5"' limit) }' "$RUNS"
}

# blocks ROUNDS N: N senders send ROUNDS blocks each.
blocks()
{
	local n=$2

	run -N "$n" -r "$1" -w blocks -p esp
	check "blocks, $n senders: goodput of what the port lets through" holds esp blocks "$n" goodput_share '>=' 0.98
	# All first bursts, 64 packets, and the first grants, a budget of 32, meet at a port of 86
	# frames that sends 8 meanwhile: of 28,000 frames (32 senders, long) some may be dropped.
	check "... next to no frame is lost at the port" holds esp blocks "$n" port_drops '<=' 6
	check "... or sent again for nothing" holds esp blocks "$n" retransmits '<=' 6
	check "... fair" holds esp blocks "$n" jain '>=' 0.99
	check "... nobody is late" holds esp blocks "$n" fct_p99_ratio '<=' 1.05
}

# The first block begins with one packet, because the handshake is long ago: that costs a round trip.
blocks 5 1
rounds=2
[ -z "$LONG" ] || rounds=5
blocks $rounds 32
for n in ${LONG:+2 8 16}; do
	blocks 5 "$n"
done
# TCP loses frames at the same port.
run -N 8 -r 1 -w blocks -p cubic
check "TCP loses frames there" holds cubic blocks 8 port_drops '>' 100

N="2 16" t=0.1
[ -z "$LONG" ] || N="1 2 16" t=0.3
run -N "$N" -t $t -w flows -p esp
for n in $N; do
	check "flows, $n senders: goodput" holds esp flows "$n" goodput_share '>=' 0.98
	check "... no frame is lost at the port" holds esp flows "$n" port_drops == 0
	check "... or sent again for nothing" holds esp flows "$n" retransmits == 0
	check "... fair" holds esp flows "$n" jain '>=' 0.98
	check "... a short queue" holds esp flows "$n" queue_p50 '<=' 20
done

# From 100 Mbit/s and 2 ms to 10 Gbit/s and 500 us, where a port of 86 frames must not get the 406
# frames of a round trip at once. Now and then it does, at the start, which costs a part of so short
# a run.
links='1000:500:0.3:0.97'
[ -z "$LONG" ] || links+=' 100:2000:0.5:0.97 10000:20:0.1:0.97 10000:500:0.4:0.90'
for link in $links; do
	IFS=: read -r mbit us seconds min <<<"$link"
	run -N 1 -R "$mbit" -D "$us" -t "$seconds" -w flows -p esp
	check "$mbit Mbit/s, $us us: goodput" holds esp flows 1 goodput_share '>=' "$min"
done

# Cards that hold interrupts back make round trips longer, without a queue. MBIT US COALESCE N
# SECONDS.
while read -r mbit us held n seconds; do
	[ -n "$mbit" ] || continue
	run -N "$n" -R "$mbit" -D "$us" -C "$held" -t "$seconds" -w flows -p esp
	check "$mbit Mbit/s, interrupts $held us late, $n senders: goodput" holds esp flows "$n" goodput_share '>=' 0.75
	check "... next to no frame is lost at the port" holds esp flows "$n" port_drops '<=' 250
	check "... fair" holds esp flows "$n" jain '>=' 0.95
done <<-END
	1000 60 250 8 0.2
	$([ -z "$LONG" ] || printf '%s\n' "1000 60 250 1 0.3" "1000 60 100 8 0.3" "10000 20 50 1 0.3" "10000 20 50 8 0.3")
END

# Random loss, both ways: LOSS in percent, MIN the least share of goodput.
while read -r loss min; do
	[ -n "$loss" ] || continue
	run -N 1 -t 0.2 -w flows -p esp -X "loss $loss%"
	check "$loss % of all frames lost: goodput" holds esp flows 1 goodput_share '>=' "$min"
done <<-END
	1	0.95
	$([ -z "$LONG" ] || printf '%s\n' "0.1 0.98" "10 0.60" "30 0.05")
END

# Frames that overtake half a round trip: none are lost, and almost none are retransmitted.
run -N 1 -t 0.2 -w flows -p esp -X "reorder 5% 50%"
check "reordering: goodput" holds esp flows 1 goodput_share '>=' 0.98
check "... less than 1 % is sent again" holds esp flows 1 retransmits '<=' 160
# Five runs for the senders and reordering, one for each line of a list, and three for "long".
runs=8
[ -z "$LONG" ] || runs=21
check "all runs were made: $runs" [ $RAN = $runs ]
finish
