#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: Open MPI over ESP compared with Open MPI over TCP, on the same cables, in turns.
# Prints lines "CASE METRIC UNIT PROTO VALUE", for bench-mpi.sh.
#
#	speed-mpi.sh [-r TURNS] pair		uml: two hosts and a cable, a rank on each: latency,
#						streams, NetPIPE, HPCC's b_eff
#	speed-mpi.sh [-r TURNS] [-n RANKS] ports	uml-virtual: as many hosts with a rank each,
#						on a switch: collective operations, b_eff
#
#	+----+ v0 -- s0 +--------+
#	| n0 |          | switch |	Each device sends at 1 Gbit/s, a host's 10 us late; a port
#	+----+ v1 -- s1 |        |	of the switch has a buffer of 128 KiB, drop-tail.
#	  n1 ...        +--------+

. "${0%/*}/../lib/lib.sh"
. "${0%/*}/../mpi/hosts.sh"

TURNS=3 RANKS=16
while getopts r:n: o; do
	case $o in
	r) TURNS=$OPTARG ;;
	n) RANKS=$OPTARG ;;
	*) FINISHED=1; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
OPTIONS=()

# by esp|tcp RANKS PROGRAM...
by()
{
	local btl=$1 ranks=$2
	shift 2

	launch "$ranks" --mca btl "$btl,self" --mca btl_tcp_if_include 10.9.0.0/24 --wdir "$TMP" \
		"${OPTIONS[@]}" "$@" >"$TMP/out" 2>&1 && return
	cat "$TMP/out" >&2
	exit 1
}

# cases CASE: read "CASE BYTES MICROSECONDS" of bench.c. For small messages in a row print the rate
# of messages, for large ones the rate of bytes.
cases()
{
	awk -v at="$1" -v by="$2" '
		$1 !~ /^(latency|stream|allreduce|alltoall|bcast|gather)$/ || NF != 3 { next }
		$1 != "stream" { print $1 at "-" $2, "median us", by, $3; next }
		$2 <= 1024 { print "messages" at "-" $2, "rate 1/s", by, 1e6 / $3; next }
		{ print "stream" at "-" $2, "rate MB/s", by, $2 / $3 }' "$TMP/out"
}

# P Q: HPCC's ranks, in a rectangle.
hpcc()
{
	# N; the numbers of processes P, Q.
	sed "6s/^[0-9]*/200/; 11s/^[0-9]*/$2/; 12s/^[0-9]*/$3/" \
		/usr/share/doc/hpcc/examples/_hpccinf.txt >"$TMP/hpccinf.txt" || exit
	rm -f "$TMP/hpccoutf.txt"
	by "$1" $(($2 * $3)) hpcc
	grep -q '^Success=1' "$TMP/hpccoutf.txt" && ! grep FAILED "$TMP/hpccoutf.txt" >&2 || exit
	# HPCC's figures of b_eff: the latency of 8 bytes, and the bandwidth per process of
	# 2,000,000 bytes.
	awk -F = -v at="$4" -v by="$1" '
		function out(name, metric, unit, value) { print "beff" at "-" name, metric, unit, by, value }
		$1 == "AvgPingPongLatency_usec" { out("pingpong", "median", "us", $2) }
		$1 == "NaturallyOrderedRingLatency_usec" { out("ring", "median", "us", $2) }
		$1 == "RandomlyOrderedRingLatency_usec" { out("random", "median", "us", $2) }
		$1 == "AvgPingPongBandwidth_GBytes" { out("pingpong", "rate", "MB/s", $2 * 1000) }
		$1 == "NaturallyOrderedRingBandwidth_GBytes" { out("ring", "rate", "MB/s", $2 * 1000) }
		$1 == "RandomlyOrderedRingBandwidth_GBytes" { out("random", "rate", "MB/s", $2 * 1000) }' \
		"$TMP/hpccoutf.txt"
}

# Bytes, Mbit/s, seconds of one way.
netpipe()
{
	by "$1" 2 NPopenmpi -o "$TMP/netpipe" -p 0 -u 4194304
	awk -v by="$1" '
		{ print "netpipe-" $1, "rate Mbit/s", by, $2; print "netpipe-" $1, "median us", by, $3 * 1e6 }' \
		"$TMP/netpipe"
}

# A rank of its own on each host, which all have addresses for TCP.
rack()
{
	local i

	mpi_hosts "$1"
	mpi_switch "$1"
	for ((i = 0; i < $1; i++)); do
		ip -n n$i addr add 10.9.0.$((i + 1))/24 dev v$i
		# As with TCP, no checksums are computed within a machine.
		in_host n$i sysctl -qw net.esp.dev.v$i.tx_checksum=1
	done
}

case $1 in
pair)
	rack 2
	for ((t = 0; t < TURNS; t++)); do
		for p in esp tcp; do
			by $p 2 "$MPI/bench" 9 20
			cases '' $p
		done
		for p in esp tcp; do
			netpipe $p
		done
		for p in esp tcp; do
			hpcc $p 1 2 ''
		done
	done
	;;
ports)
	rack "$RANKS"
	OPTIONS=(-x "LD_PRELOAD=$MPI/nap.so")
	# Preamble, gap and FCS count for the rate; 86 frames of 1514 bytes are 128 KiB.
	for ((i = 0; i < RANKS; i++)); do
		ip -n n$i link set v$i gso_max_segs 1
		tc -n n$i qdisc add dev v$i root netem limit 100000 delay 10us rate 1gbit 24 &&
			tc -n switch qdisc add dev s$i root handle 1: tbf rate 1gbit overhead 24 burst 1600 \
				limit 128k &&
			tc -n switch qdisc add dev s$i parent 1:1 handle 2: pfifo limit 86 || exit
	done
	# In the first second after boot MPI_Wtime() says 0.
	sleep 2
	for ((t = 0; t < TURNS; t++)); do
		for p in esp tcp; do
			by $p "$RANKS" "$MPI/bench" 5 2
			cases "-$RANKS" $p
		done
	done
	;;
*)
	FINISHED=1
	exit 2
	;;
esac
until_true 60 no_sockets $HOSTS || { echo "sockets are left" >&2; exit 1; }
FINISHED=1
