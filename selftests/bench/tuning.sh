#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: the figures of Documentation/tuning.rst, and MACsec's of firewall.rst. No test.
#
#	tuning.sh cost [ROUNDS]		instructions, in one processor (vm run --icount)
#	tuning.sh spread [RUNS]		what RPS, fq and fq_codel make of 16 connections,
#					two processors
#
#	n0 eth0 02:00:00:00:00:01 --- 02:00:00:00:00:02 eth0 n1

. "${0%/*}/../lib/lib.sh"

TIMES=${2:-3}
PAGE=$SRC/Documentation/firewall.rst
DEV=eth0
BULK=(-s 1048576 -n 8 esp bulk)
MESSAGE=(-n 500 esp pingpong)

# both COMMAND...: in both hosts.
both() { local h; for h in 0 1; do in_host n$h "$@" || exit; done; }

# link_up: wait until the link is up. A card's link is down for a moment after each change, and
# the card loses frames that come in that moment.
link_up()
{
	until_true 30 eval '[ "$(ip netns exec n0 cat /sys/class/net/eth0/operstate)" = up ]' &&
		until_true 30 eval '[ "$(ip netns exec n1 cat /sys/class/net/eth0/operstate)" = up ]' || exit
	sleep 1
}

# device MTU [FEATURE on|off]...
device()
{
	both ip link set eth0 mtu "$1"
	[ $# = 1 ] || both ethtool -K eth0 "${@:2}"
	link_up
}
split() { device "$1" tso off gso off tx-sctp-segmentation off gro off; }
whole() { device "$1" tso on gso on tx-sctp-segmentation on gro off; }
checksums() { both sysctl -qw net.esp.dev.eth0.tx_checksum="$1"; }

# cost LABEL OPTION...: print the cost of both ends.
cost() { timeout 300 speed -a n0:$DEV -b n1:$DEV -I -l "$@" | grep " cost " || exit; }

# page NAME [SED]: run the block NAME of firewall.rst.
page()
{
	block "$PAGE" "$1" | sed "${2:-}" >"$TMP/page"
	[ -s "$TMP/page" ] || exit
}

costs()
{
	local q n

	split 1500
	cost byte "${BULK[@]}"
	both ethtool -K eth0 gro on
	cost byte,gro "${BULK[@]}"
	split 9000
	cost byte,9000 "${BULK[@]}"
	split 1500
	checksums 0
	cost byte,checksums "${BULK[@]}"
	checksums 1
	for n in 1 64; do
		both sysctl -qw net.esp.packets_to_ack=$n
		cost byte,packets_to_ack=$n "${BULK[@]}"
	done
	both sysctl -qw net.esp.packets_to_ack=16
	whole 1500
	cost byte,super-packets "${BULK[@]}"

	cost message "${MESSAGE[@]}"
	both ethtool -K eth0 gro on
	cost message,gro "${MESSAGE[@]}"
	both ethtool -K eth0 gro off
	for q in pfifo_fast fq_codel fq; do
		both tc qdisc replace dev eth0 root $q
		cost message,$q "${MESSAGE[@]}"
	done
	both tc qdisc del dev eth0 root
	page host 's/5000-5009/1024-65535/'
	both bash -e "$TMP/page"
	cost message,firewall "${MESSAGE[@]}"
	both nft flush ruleset

	# tx_checksum as it is from the start.
	checksums 0
	split 1500
	cost message,checksums "${MESSAGE[@]}"
	page macsec
	n0 bash -e "$TMP/page" || exit
	page macsec 's/:02 /:01 /; s/:02$/:01/'
	n1 bash -e "$TMP/page" || exit
	DEV=macsec0
	cost message,macsec "${MESSAGE[@]}"
	cost byte,macsec "${BULK[@]}"
	DEV=eth0
	both ip link del macsec0
	both esp dev enable eth0
	checksums 1
}

# send esp|tcp BYTES: by 16 connections.
send()
{
	case $1 in
	esp) n0 esp perf -c "$(mac n1 eth0)%eth0:5201" -P 16 -n "$2" -i 0 ;;
	tcp) n0 esp perf --tcp -c 10.9.0.2:5201 -P 16 -n "$2" -i 0 ;;
	esac >/dev/null || exit
}

# rps: print each processor's interrupts for RPS, and its frames, so far.
rps()
{
	local -a f

	while read -ra f; do
		echo $((16#${f[9]})) $((16#${f[0]}))
	done </proc/net/softnet_stat
}

# rps_of PROTO: print the share of each processor.
rps_of()
{
	rps >"$TMP/before"
	send "$1" 16K
	rps | paste "$TMP/before" - | awk -v what="rps $1" '{ print what, "processor", NR - 1, "interrupts", $3 - $1, "frames", $4 - $2 }'
}

# flows_of QDISC PROTO: count the flows before a link of 20 Mbit/s. fq counts all its flows,
# fq_codel shows those that wait.
flows_of()
{
	local sender n most=0

	n0 tc qdisc add dev eth0 root handle 1: tbf rate 20mbit burst 70000 limit 10000000 &&
		n0 tc qdisc add dev eth0 parent 1:1 handle 2: "$1" || exit
	send "$2" 64K &
	sender=$!
	while kill -0 $sender 2>/dev/null; do
		n=$(n0 tc class show dev eth0 | grep -c "fq_codel 2:[1-9a-f]")
		most=$((n > most ? n : most))
	done
	wait $sender || exit
	echo "$1 $2 at most $most classes, $(n0 tc -s qdisc show dev eth0 |
		awk '$1 == "qdisc" { on = $3 == "2:" } on' | grep -oE 'dropped [0-9]+|flows [0-9]+ \(' | tr '\n' ' ')"
	n0 tc qdisc del dev eth0 root
}

# cards DRIVER: the two of vm's --card.
cards()
{
	local i d

	modprobe "$1" || exit
	for i in 0 1; do
		d=$(ip -br link | awk -v mac="02:00:00:00:00:0$((i + 1))" '$3 == mac { print $1 }')
		ip link set "$d" netns n$i name eth0 && ip -n n$i link set eth0 up || exit
	done
	link_up
	both esp dev enable eth0
}

# all LABEL OPTION...: print all figures, not only the cost.
all() { timeout 300 speed -a n0:$DEV -b n1:$DEV -I -l "$@" || exit; }

# interrupts: of both cards so far.
interrupts() { awk '/eth0/ { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n }' /proc/interrupts; }

coalescing()
{
	local us before proto

	for us in 0 10 20 50 100 250 3; do
		both ethtool -C eth0 rx-usecs $us
		for proto in esp tcp; do
			all message,$us -n 500 $proto pingpong
			before=$(interrupts)
			all byte,$us -s 1048576 -n 32 $proto bulk
			echo "byte,$us interrupts - $proto $(($(interrupts) - before))"
		done
	done
	both ethtool -C eth0 rx-usecs 0
	both ethtool -K eth0 gro off
	all byte,0,no-gro -s 1048576 -n 32 esp bulk
	both ethtool -K eth0 gro on
	split 1500
	both ethtool -K eth0 gro on
	all byte,0,no-tso -s 1048576 -n 32 tcp bulk
	device 9000 tso on gso on tx-sctp-segmentation on
	for proto in esp tcp; do
		all byte,0,9000 -s 1048576 -n 32 $proto bulk
	done
	device 1500
	sysctl -qw net.core.busy_read=50 || exit
	all message,0,busy "${MESSAGE[@]}"
	both ethtool -C eth0 rx-usecs 50
	all message,50,busy "${MESSAGE[@]}"
	sysctl -qw net.core.busy_read=0
}

# lost: frames for which the card of n1 had no place.
lost() { n1 ethtool -S eth0 | awk '/pkts rx OOB/ { n += $NF } END { print n }'; }

rings()
{
	local size before proto

	for size in 32 64 128 256 512 1024 4096; do
		n1 ethtool -G eth0 rx $size || exit
		link_up
		for proto in esp tcp; do
			before=$(lost)
			all byte,$size -s 1048576 -n 32 $proto bulk
			echo "byte,$size lost packets $proto $(($(lost) - before))"
		done
	done
}

# queues_of PROTO
queues_of()
{
	n1 ethtool -S eth0 | grep -E 'rx_queue_[0-9]+_packets' >"$TMP/before"
	send "$1" 256K
	n1 ethtool -S eth0 | grep -E 'rx_queue_[0-9]+_packets' | paste "$TMP/before" - |
		awk -v proto="$1" '{ print "queue", proto, $3, $4 - $2 }'
}

# servers: of esp and TCP, in n1.
servers()
{
	local option

	for option in '' --tcp; do
		nsenter --net=/run/netns/n1 esp perf -s $option >/dev/null 2>&1 &
	done
	until_true 30 eval "n1 esp show -l | grep -q ':5201\b'" &&
		until_true 30 eval "n1 grep -q ':1451 ' /proc/net/tcp /proc/net/tcp6" || exit
}

hosts 2
case $1 in
coalescing | queues) cards igb ;;
rings) cards vmxnet3 ;;
*) cable n0 eth0 n1 eth0 ;;
esac
for i in 0 1; do
	ip -n n$i link set eth0 address "02:00:00:00:00:0$((i + 1))" || exit
	ip -n n$i addr add 10.9.0.$((i + 1))/24 dev eth0 || exit
done
case $1 in
coalescing | rings)
	for ((r = 0; r < TIMES; r++)); do
		$1
	done
	;;
queues)
	servers
	for ((r = 0; r < TIMES; r++)); do
		queues_of esp
		queues_of tcp
	done
	;;
cost)
	checksums 1
	# Warm up: the first transfer pays for allocating the memory.
	cost first "${BULK[@]}" >/dev/null
	for ((r = 0; r < TIMES; r++)); do
		costs
	done
	;;
spread)
	servers
	for ((r = 0; r < TIMES; r++)); do
		ip netns exec n1 sh -c 'echo 3 >/sys/class/net/eth0/queues/rx-0/rps_cpus' || exit
		for proto in esp tcp; do
			rps_of $proto
		done
		ip netns exec n1 sh -c 'echo 0 >/sys/class/net/eth0/queues/rx-0/rps_cpus' || exit
		for q in fq fq_codel; do
			for proto in esp tcp; do
				flows_of $q $proto
			done
		done
	done
	;;
*)
	echo "tuning.sh cost|spread|coalescing|rings|queues [TIMES]" >&2
	FINISHED=1
	exit 2
	;;
esac
FINISHED=1
exit 0
