#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Short jobs of Open MPI over ESP, again and again, on a switch of four hosts; each host loses 1 %
# of its frames. The jobs are in turns collective operations of 2, 3 or 4 ranks, and messages of all
# kinds between two ranks; they compare each number. None fails, none hangs, and each has lost
# frames.
#
#	net-mpi-loss.sh [JOBS [PERCENT]]

. "${0%/*}/../lib/lib.sh"
. "${0%/*}/hosts.sh"

JOBS=${1:-200} PERCENT=${2:-1}
failed=0 hung=0 spared=0 sent=0 lost=0 least='' most=0

mpi_hosts 4
mpi_switch 4
for i in 0 1 2 3; do
	# netem takes single frames.
	in_host n$i ip link set v$i gso_max_segs 1
	in_host n$i tc qdisc add dev v$i root netem limit 10000 loss "$PERCENT%" || exit
done

# frames: print the frames that netem has sent, and lost, of all hosts.
frames()
{
	local i

	for i in 0 1 2 3; do
		in_host n$i tc -s qdisc show dev v$i
	done | awk '$1 == "Sent" { sent += $4; lost += $7 + 0 } END { print sent + 0, lost + 0 }'
}

# retransmitted: print the packets that all hosts have retransmitted.
retransmitted()
{
	local i n=0

	for i in 0 1 2 3; do
		n=$((n + $(stat n$i OutRetrans)))
	done
	echo $n
}

# run TEXT COMMAND...: run COMMAND, and count how it ends.
run()
{
	local text=$1 status before after
	shift

	read -ra before <<<"$(frames)"
	"$@" >"$TMP/run" 2>&1
	status=$?
	read -ra after <<<"$(frames)"
	after=($((after[0] - before[0])) $((after[1] - before[1])))
	sent=$((sent + after[0])) lost=$((lost + after[1]))
	[ "${after[1]}" -gt 0 ] || spared=$((spared + 1))
	[ "${after[1]}" -le "$most" ] || most=${after[1]}
	[ -n "$least" ] && [ "$least" -le "${after[1]}" ] || least=${after[1]}
	case $status in
	0) return ;;
	124 | 137) hung=$((hung + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
	echo "# $text: status $status; ${after[0]} frames sent, ${after[1]} lost"
	comment <"$TMP/run"
	[ $((failed + hung)) -gt 1 ] || dump
}

for ((r = 0; r < JOBS; r++)); do
	ranks=$((2 + r % 3))
	if [ $((r % 2)) = 0 ]; then
		run "$r: collective operations, $ranks ranks" mpi $ranks "$MPI/coll" 20 $((r + 100))
	else
		run "$r: messages" two mpi 2 "$MPI/p2p" 1
	fi
	[ $((r % 10)) != 9 ] ||
		echo "# $((r + 1)) jobs: $failed failed, $hung hung, $lost frames lost, $SECONDS s"
done

again=$(retransmitted)
echo "# $JOBS jobs: $failed failed, $hung hung; $sent frames sent, $lost lost," \
	"$least to $most of a job; $again packets sent again"
check "no job fails" [ $failed = 0 ]
check "no job hangs" [ $hung = 0 ]
check "each job has lost frames" [ $spared = 0 ]
check "packets were sent again" [ "$again" -gt 0 ]
check "no sockets are left" until_true 60 no_sockets n0 n1 n2 n3
finish
