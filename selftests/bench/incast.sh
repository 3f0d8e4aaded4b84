#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Many senders, one receiver.
#
#	s1 e0 --+
#	s2 e0 --+-- sw: bridge -- p0 ------------- e0 rx
#	... e0 -+        rate, drop-tail of 128 KiB
#
# The port p0 is the bottleneck: -R Mbit/s, a buffer of 86 frames of 1514 bytes,
# no GSO packets. Half of the round trip -D is spent on the senders' cables,
# half on the way back from the receiver. With DCTCP the port marks.
#
#	incast.sh [-R MBIT] [-D US] [-N LIST of senders] [-p LIST of protocols]
#		[-w LIST of workloads] [-r ROUNDS] [-t SECONDS] [-q DIR] [-X FAULTS] [-C US]
#		[-T MBIT] [-k KIB]
#
# DIR gets the data of the pictures: PROTOCOL-WORKLOAD-N, the port's queue over time; the same name
# with .us, the times of blocks or requests; and with .ackq, the events of ESP's ACK queue.
# FAULTS are arguments of netem for all cables, both ways: -X "loss 1%".
# With -C US the hosts' cards hold interrupts back for US microseconds after a frame, and the
# senders' cables carry -R Mbit/s, too. With -T MBIT ESP is told that rate of the links; veth's
# own figure is not believed, so it measures the rate otherwise. Blocks have -k KiB (256).
#
# Protocols: esp (adaptive), seed (ESP with the seed's policy), cubic, dctcp.
# Prints lines of JSON, one a run, and appends them to -o FILE.

. "${0%/*}/../lib/lib.sh"

MBIT=1000 RTT=100 SENDERS="1 2 4 8 16 32 64" PROTOS="esp seed cubic dctcp" WORKLOADS="blocks"
ROUNDS=10 TIME=0.5 BUFFER=128 QUEUES='' OUT=/dev/null FAULTS='' COALESCE='' POLICY='' TOLD='' KIB=256
usage() { sed -n '/^#	incast.sh/,/^# Prints/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while getopts R:D:N:p:w:r:t:q:o:B:X:C:T:k: o; do
	case $o in
	R) MBIT=$OPTARG ;;
	D) RTT=$OPTARG ;;
	N) SENDERS=$OPTARG ;;
	p) PROTOS=$OPTARG ;;
	w) WORKLOADS=$OPTARG ;;
	r) ROUNDS=$OPTARG ;;
	t) TIME=$OPTARG ;;
	q) QUEUES=$OPTARG ;;
	o) OUT=$OPTARG ;;
	B) BUFFER=$OPTARG ;;
	X) FAULTS=$OPTARG ;;
	C) COALESCE=$OPTARG ;;
	T) TOLD=$OPTARG ;;
	k) KIB=$OPTARG ;;
	*) FINISHED=1; usage ;;
	esac
done
FRAMES=$((BUFFER * 1024 / 1514))
# Burst of the token bucket. Where timers are real they are late, so it holds the bytes of a
# millisecond there.
BURST=$([ "$KERNEL" = uml-virtual ] && echo $((MBIT > 10000 ? 16000 : MBIT > 1000 ? 4000 : 1600)) || echo $((MBIT * 1000 / 8)))

# The port marks when more than about an eighth of a round trip at DCTCP's
# usual thresholds waits: 20 frames at 1 Gbit/s, 65 at 10.
mark=$((MBIT > 1000 ? 65 : 20))

# port PROTO: set the queue of p0. FCS, preamble and gap count for the rate.
port()
{
	tc -n sw qdisc delete dev p0 root 2>/dev/null
	tc -n sw qdisc add dev p0 root handle 1: tbf rate "${MBIT}mbit" overhead 24 burst "$BURST" \
		limit $((BUFFER * 1024)) || exit
	if [ "$1" = dctcp ]; then
		tc -n sw qdisc add dev p0 parent 1:1 handle 2: red limit $((FRAMES * 1514)) \
			min $((mark * 1514)) max $((mark * 1514 + 1514)) avpkt 1514 burst $((mark + 1)) \
			probability 1 ecn bandwidth "${MBIT}mbit" || exit
	else
		tc -n sw qdisc add dev p0 parent 1:1 handle 2: pfifo limit "$FRAMES" || exit
	fi
}

# build N: the rack. A process takes long to start on UML, so few do much.
build()
{
	local i h enable=()

	for ((i = 1; i <= $1; i++)); do
		HOSTS+=" s$i"
		echo "netns add s$i"
		echo "link add e0 netns s$i type veth peer name q$i netns sw"
		[ ! -e /proc/sys/net/esp ] || enable+=("net.esp.dev.q$i.enable=1")
	done >"$TMP/links"
	host sw rx
	# IPv6 is off, because its frames for new links would queue at the port, too.
	in_host sw sysctl -qw net.ipv6.conf.{default,all}.disable_ipv6=1
	in_host rx sysctl -qw net.ipv6.conf.{default,all}.disable_ipv6=1 net.ipv4.tcp_ecn=1
	ip -n sw link add br0 type bridge
	ip -n sw link set br0 up
	cable rx e0 sw p0
	ip -n sw link set p0 master br0
	ip -n rx addr add 10.0.0.1/16 dev e0
	ip -n rx link set e0 gso_max_segs 1
	in_host rx tc qdisc add dev e0 root netem limit 100000 delay $((RTT / 2))us $FAULTS
	ip -batch "$TMP/links" || exit
	[ ${#enable[@]} = 0 ] || in_host sw sysctl -qw "${enable[@]}" || exit
	for ((i = 1; i <= $1; i++)); do
		printf 'link set q%d up master br0\n' $i
	done >"$TMP/ports"
	ip -n sw -batch "$TMP/ports" || exit
	for ((i = 1; i <= $1; i++)); do
		h=s$i
		in_host "$h" sysctl -qw net.ipv6.conf.{default,all}.disable_ipv6=1 net.ipv4.tcp_ecn=1 \
			${enable:+net.esp.dev.e0.enable=1} || exit
		ip -n "$h" -batch - <<-END || exit
			link set lo up
			link set e0 up gso_max_segs 1
			addr add 10.0.$((1 + i / 250)).$((1 + i % 250))/16 dev e0
		END
		in_host "$h" tc qdisc add dev e0 root netem limit 100000 delay $((RTT / 2))us \
			${COALESCE:+rate "${MBIT}mbit" 24} $FAULTS
	done
	[ -z "$COALESCE" ] || for h in $HOSTS; do
		[ "$h" = sw ] || coalesce "$h"
	done
}

# coalesce HOST: let its card announce frames up to COALESCE microseconds later, all at once.
coalesce()
{
	ip -n "$1" link add ifb0 type ifb && ip -n "$1" link set ifb0 up &&
		tc -n "$1" qdisc add dev ifb0 root netem limit 100000 slot "${COALESCE}us" "${COALESCE}us" &&
		tc -n "$1" qdisc add dev e0 handle ffff: ingress &&
		tc -n "$1" filter add dev e0 parent ffff: matchall action mirred egress redirect dev ifb0 || exit
}

# policy 0|1: set ESP's policy in all hosts.
policy()
{
	local h

	[ "$1" != "$POLICY" ] || return 0
	POLICY=$1
	for h in $HOSTS; do
		in_host "$h" sysctl -qw net.esp.adaptive="$1"
		[ -z "$TOLD" ] || [ "$h" = sw ] ||
			in_host "$h" sysctl -qw net.esp.dev.e0.rate_mbit="$TOLD"
	done
}

most=0 failed=0
for n in $SENDERS; do
	most=$((n > most ? n : most))
done
build $((most + 1))
for workload in $WORKLOADS; do
	for n in $SENDERS; do
		for p in $PROTOS; do
			case $p in
			esp) name=adaptive proto=esp; policy 1 ;;
			seed) name=seed proto=esp; policy 0 ;;
			*) name=- proto=$p ;;
			esac
			port "$proto"
			PORT=$((PORT + 1))
			watch=()
			[ -z "$QUEUES" ] || [ "$proto" != esp ] ||
				watch=("$SRC/tools/trace/esp-ackq" -o "$QUEUES/$p-$workload-$n.ackq")
			"${watch[@]}" incast -n "$n" -k "$KIB" -r "$ROUNDS" -t "$TIME" -R "$MBIT" -D "$RTT" -B "$BUFFER" -P "$name" -p $PORT -F "$FAULTS${COALESCE:+interrupts $COALESCE us late}" \
				${QUEUES:+-o "$QUEUES/$p-$workload-$n" -l "$QUEUES/$p-$workload-$n.us"} "$proto" "$workload" >"$TMP/run" ||
				{ echo "$p $workload $n failed" >&2; failed=1; }
			grep '^{' "$TMP/run" | tee -a "$OUT"
			sleep 1
		done
	done
done
until_true 60 no_sockets $HOSTS || { echo "sockets are left" >&2; failed=1; }
FINISHED=1
exit $failed
