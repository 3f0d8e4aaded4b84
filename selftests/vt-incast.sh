#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Rules 14, 21 and 22 where they matter: many senders, one receiver, a port of
# 128 KiB and 1 Gbit/s, in simulated time, so that every figure is exact. For
# the hosts see incast.sh.

. "${0%/*}/lib.sh"

RUNS=$TMP/runs

run()
{
	bash "${0%/*}/incast.sh" -o "$RUNS" "$@" >"$TMP/out" 2>&1
	comment <"$TMP/out"
}

# holds PROTO WORKLOAD N NAME OPERATOR NUMBER: the figure of that run is so.
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

N="2 8 16 32"
run -N "$N" -r 5 -w blocks -p "esp cubic"
for n in $N; do
	check "blocks, $n senders: goodput of what the port lets through" holds esp blocks "$n" goodput_share '>=' 0.98
	# The first round may: first bursts have not been shared out anew yet.
	check "... next to no frame is lost at the port" holds esp blocks "$n" port_drops '<=' 4
	check "... fair" holds esp blocks "$n" jain '>=' 0.98
	check "... nobody is late" holds esp blocks "$n" fct_p99_ratio '<=' 1.05
done
# The port is one that TCP has trouble with.
check "TCP loses frames there" holds cubic blocks 32 port_drops '>' 100

N="1 2 16"
run -N "$N" -t 0.3 -w flows -p esp
for n in $N; do
	check "flows, $n senders: goodput" holds esp flows "$n" goodput_share '>=' 0.98
	check "... no frame is lost at the port" holds esp flows "$n" port_drops == 0
	check "... fair" holds esp flows "$n" jain '>=' 0.98
	check "... a short queue" holds esp flows "$n" queue_p50 '<=' 20
done
finish
