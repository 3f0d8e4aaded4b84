#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: Open MPI over ESP beside Open MPI over TCP, on the same cables, in
# turns. Prints a table: microseconds of each, the medians of all turns, and
# TCP's by ESP's. build/mpi/bench.txt has it, too.
#
#	selftests/harness/vm run uml --time 1200 -- selftests/bench-mpi.sh [TURNS]
#
# Latency and streams between two hosts; collective operations of 8 ranks on four,
# behind a switch whose ports have a gigabit and 128 KiB.

. "${0%/*}/lib.sh"
. "${0%/*}/mpi/hosts.sh"

TURNS=${1:-3}

mpi_hosts 4
mpi_switch 4
for i in 0 1 2 3; do
	ip -n n$i addr add 10.9.0.$((i + 1))/24 dev v$i
	# As TCP's are: nobody computes checksums within a machine.
	in_host n$i sysctl -qw net.esp.dev.v$i.tx_checksum=1
done

# jobs_of RANKS: by each, lines "esp|tcp CASE BYTES MICROSECONDS".
jobs_of()
{
	local ranks=$1 by

	for by in esp tcp; do
		launch "$ranks" --mca btl $by,self --mca btl_tcp_if_include 10.9.0.0/24 \
			"$MPI/bench" 5 >"$TMP/out" 2>&1 || { cat "$TMP/out"; exit 1; }
		sed -nE "s/^([a-z]+ [0-9]+ [0-9.]+)$/$by \1/p" "$TMP/out" >>"$TMP/lines"
	done
}

for ((t = 0; t < TURNS; t++)); do
	MPI_HOSTS=n0,n1 jobs_of 2
done
for i in 0 1 2 3; do
	in_host switch tc qdisc add dev s$i root tbf rate 1gbit burst 16k limit 128k || exit
done
for ((t = 0; t < TURNS; t++)); do
	jobs_of 8
done

sort -k2,2 -k3,3n -k1,1 -k4,4g "$TMP/lines" | awk '
	BEGIN { printf "%-10s %8s %12s %12s %8s\n", "case", "bytes", "ESP us", "TCP us", "TCP/ESP" }
	{
		if ($2 " " $3 != key) { row(); key = $2 " " $3; name = $2; bytes = $3; delete n }
		value[$1, ++n[$1]] = $4
	}
	function median(by) { return value[by, int((n[by] + 1) / 2)] }
	function row() {
		if (key != "")
			printf "%-10s %8d %12.1f %12.1f %8.2f\n", name, bytes, median("esp"), median("tcp"),
				median("tcp") / median("esp")
	}
	END { row() }' | tee "$MPI/bench.txt"
check "all was measured" [ "$(wc -l <"$MPI/bench.txt")" = 36 ]
finish
