#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Many hosts, one switch: flows of published sizes between all of them, in simulated time.
#
#	h0 e0 ---- q0 --+
#	h1 e0 ---- q1 --+-- sw: bridge
#	...        ... -+
#
# Each host's device and each of the switch's ports sends -R Mbit/s. A port has a buffer of 128
# KiB, the bytes of 86 full frames, and drops what is more; with DCTCP it marks. A host has
# fq_codel, as Debian's have. espsim draws the flows, so that it can play the same ones.
#
#	fabric.sh [-R MBIT] [-D US] [-N HOSTS] [-p LIST of protocols] [-w WORKLOAD] [-l LOAD]
#		[-t MS] [-s LIST of seeds] [-o FILE]
#
# -D is the round trip of the empty network without the frames' own time. Flows begin for -t ms.
# Protocols: esp, cubic, dctcp. Prints lines of JSON, one a run, with espsim's names, and appends
# them to -o FILE.

. "${0%/*}/../lib/lib.sh"

MBIT=10000 RTT=20 N=16 PROTOS="esp cubic dctcp" WORKLOAD=websearch LOAD=0.6 TIME=50 SEEDS=1
OUT=/dev/null
usage() { sed -n '/^#	fabric.sh/,/^# them/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while getopts R:D:N:p:w:l:t:s:o: o; do
	case $o in
	R) MBIT=$OPTARG ;;
	D) RTT=$OPTARG ;;
	N) N=$OPTARG ;;
	p) PROTOS=$OPTARG ;;
	w) WORKLOAD=$OPTARG ;;
	l) LOAD=$OPTARG ;;
	t) TIME=$OPTARG ;;
	s) SEEDS=$OPTARG ;;
	o) OUT=$OPTARG ;;
	*) FINISHED=1; usage ;;
	esac
done
ESPSIM=$SRC/build/sim/espsim
FRAMES=86
QUEUED=''	# there are queues of a run before
BURST=$((MBIT > 1000 ? 4000 : 1600))	# bytes of the token buckets
# DCTCP's usual thresholds, frames: 20 at 1 Gbit/s, 65 at 10.
MARK=$((MBIT > 1000 ? 65 : 20))
# A token bucket sends a frame at once and waits then, so the frames' time on the two links of
# their way is a part of the delay. An ACK has almost none: a frame's time for each direction.
DELAY=$((RTT / 2 + (1538 * 8 + MBIT / 2) / MBIT))	# us

# Build the hosts and the switch. All know each other's addresses, so that nobody asks.
build()
{
	local i j

	# IPv6 is off, because its frames for new links would queue at ports, too.
	host sw
	in_host sw sysctl -qw net.ipv6.conf.{default,all}.disable_ipv6=1 &&
		ip -n sw link add br0 type bridge mcast_snooping 0 && ip -n sw link set br0 up || exit
	for ((i = 0; i < N; i++)); do
		HOSTS+=" h$i"
		echo "netns add h$i"
		echo "link add e0 netns h$i address 02:00:00:00:01:$(printf %02x "$i") type veth peer name q$i netns sw"
	done | ip -batch - || exit
	for ((i = 0; i < N; i++)); do
		echo "link set q$i up gso_max_segs 1 master br0"
	done | ip -n sw -batch - || exit
	for ((i = 0; i < N; i++)); do
		echo "fdb add 02:00:00:00:01:$(printf %02x "$i") dev q$i master static"
	done | bridge -n sw -batch - || exit
	for ((i = 0; i < N; i++)); do
		in_host "h$i" sysctl -qw net.ipv6.conf.{default,all}.disable_ipv6=1 net.ipv4.tcp_ecn=1 \
			net.ipv4.tcp_no_metrics_save=1 || exit
		{
			echo "link set lo up"
			echo "link set e0 up gso_max_segs 1"
			echo "addr add 10.0.0.$((i + 1))/24 dev e0"
			for ((j = 0; j < N; j++)); do
				[ $j = $i ] || echo "neigh add 10.0.0.$((j + 1)) lladdr 02:00:00:00:01:$(printf %02x "$j") dev e0 nud permanent"
			done
		} | ip -n "h$i" -batch - || exit
		[ ! -e /proc/sys/net/esp ] || in_host "h$i" sysctl -qw net.esp.dev.e0.enable=1 \
			net.esp.dev.e0.rate_mbit="$MBIT" || exit
	done
	[ ! -e /proc/sys/net/esp ] || for ((i = 0; i < N; i++)); do
		echo "net.esp.dev.q$i.enable=1"
	done | in_host sw sysctl -q -p - || exit
}

# ports PROTO: new queues at hosts and ports, with counters that are 0.
ports()
{
	local i queue="bfifo limit $((FRAMES * 1514))"

	[ "$1" != dctcp ] || queue="red limit $((FRAMES * 1514)) min $((MARK * 1514)) \
max $((MARK * 1514 + 1514)) avpkt 1514 burst $((MARK + 1)) probability 1 ecn bandwidth ${MBIT}mbit"
	for ((i = 0; i < N; i++)); do
		[ -z "$QUEUED" ] || { tc -n "h$i" qdisc delete dev e0 root &&
			tc -n sw qdisc delete dev "q$i" root; } >&2 || exit
		echo "qdisc add dev q$i root handle 1: netem limit 100000 delay ${DELAY}us"
		echo "qdisc add dev q$i parent 1:1 handle 2: tbf rate ${MBIT}mbit overhead 24 burst $BURST limit $((FRAMES * 1538))"
		echo "qdisc add dev q$i parent 2:1 handle 3: $queue"
	done >"$TMP/ports" || exit
	tc -n sw -batch "$TMP/ports" || exit
	QUEUED=1
	for ((i = 0; i < N; i++)); do
		printf '%s\n' "qdisc add dev e0 root handle 1: tbf rate ${MBIT}mbit overhead 24 burst $BURST limit 100000000" \
			"qdisc add dev e0 parent 1:1 handle 2: fq_codel" | tc -n "h$i" -batch - || exit
	done
}

# dropped HOST KIND: frames that the queues of this kind have dropped; fails if there are none.
dropped()
{
	tc -n "$1" -s qdisc show | awk -v kind="$2" '
		$1 == "qdisc" { mine = $2 == kind }
		mine && match($0, /dropped [0-9]+/) {
			sum += substr($0, RSTART + 8, RLENGTH - 8)
			seen = 1
		}
		END { print sum + 0; exit !seen }'
}

failed=0
build
for seed in $SEEDS; do
	for p in $PROTOS; do
		"$ESPSIM" --arrivals -p "$p" -w "$WORKLOAD" -l "$LOAD" -t "$TIME" -s "$seed" -N "$N" \
			-R "$MBIT" --per-leaf 0 --hop "$(awk "BEGIN { print $RTT / 4 }")" >"$TMP/flows" || exit
		ports "$p"
		fabric -N "$N" -R "$MBIT" -t "$TIME" \
			-j "\"workload\": \"$WORKLOAD\", \"load\": $LOAD, \"seed\": $seed, \"rtt_us\": $RTT" \
			"$p" <"$TMP/flows" >"$TMP/run" || { echo "$p $WORKLOAD $LOAD failed" >&2; failed=1; }
		drops=$(dropped sw netem) || exit
		host_drops=0
		for ((i = 0; i < N; i++)); do
			n=$(dropped "h$i" tbf) || exit
			host_drops=$((host_drops + n))
		done
		sed "s/}$/, \"drops_edge\": $drops, \"drops_host\": $host_drops}/" "$TMP/run" | tee -a "$OUT"
		sleep 1
	done
done
until_true 60 no_sockets $HOSTS || { echo "sockets are left" >&2; failed=1; }
FINISHED=1
exit $failed
