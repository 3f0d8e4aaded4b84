#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Flows of a published workload between 16 hosts at one switch, in simulated time: the module
# loses nothing, lets small flows past large ones, and does what espsim says. fabric.sh describes
# the hosts.

. "${0%/*}/../lib/lib.sh"

OPTIONS=(-w websearch -l 0.6 -t 30 -s 1)

# holds NAME OPERATOR NUMBER: the comparison holds for the figure of the module.
holds()
{
	awk -v name="\"$1\": " -v limit="$3" '
		split(substr($0, index($0, name) + length(name)), v, /[,}]/) {
			print v[1]
			seen = index($0, name)
		}
		END { exit !(seen && v[1] '"$2"' limit) }' "$TMP/module"
}

# near NAME PERCENT: the figures of module and espsim differ by PERCENT of espsim's at most.
near()
{
	awk -v name="\"$1\": " -v percent="$2" '
		index($0, name) {
			split(substr($0, index($0, name) + length(name)), v, /[,}]/)
			figure[++n] = v[1]
		}
		END {
			print "module " figure[1] ", espsim " figure[2]
			off = figure[1] > figure[2] ? figure[1] - figure[2] : figure[2] - figure[1]
			exit !(n == 2 && 100 * off <= percent * figure[2])
		}' "$TMP/module" "$TMP/espsim"
}

"$SRC/build/sim/espsim" -j "${OPTIONS[@]}" -N 16 --per-leaf 0 --hop 5 >"$TMP/espsim" || exit
bash "${0%/*}/../bench/fabric.sh" "${OPTIONS[@]}" -D 20 -p esp >"$TMP/module" 2>"$TMP/errors" ||
	{ comment <"$TMP/errors"; exit 1; }
comment <"$TMP/module"
flows=$("$SRC/build/sim/espsim" --arrivals "${OPTIONS[@]}" -N 16 | wc -l)
check "all $flows flows end" holds finished == "$flows"
check "no frame is lost at a port" holds drops_edge == 0
check "... or at a host" holds drops_host == 0
check "goodput as in espsim" near goodput_share 3
check "small flows: the median as in espsim" near small_p50 15
check "... 99 % take less than ten times the least" holds small_p99 '<' 10
check "large flows: the median as in espsim" near large_p50 15
check "... 99 %, the longest two, roughly" near large_p99 30
finish
