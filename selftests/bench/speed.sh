#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: the same traffic by ESP and by other protocols over the same cable, one after
# the other, round by round. Prints lines "CASE METRIC UNIT PROTO VALUE" (see speed.c), for
# bench-speed.sh.
#
#	speed.sh [-r ROUNDS] [-c CASES] cycles		two namespaces, two processors
#	speed.sh [-r ROUNDS] [-c CASES] instructions	the same on one (vm run --icount)
#	speed.sh [-r ROUNDS] [-c CASES] split		where these instructions go (split.awk)
#	speed.sh [-r ROUNDS] [-c CASES] memory		what a connection takes of the kernel's
#	speed.sh [-r ROUNDS] [-c CASES] pair		two machines (vm pair)
#
# CASES is a pattern of their names. With -q DIR the round-trip times of all messages go to
# DIR/CASE-PROTO.

. "${0%/*}/../lib/lib.sh"

ROUNDS=3 CASES='*' SAMPLES='' failed=0
while getopts r:c:q: o; do
	case $o in
	r) ROUNDS=$OPTARG ;;
	c) CASES=$OPTARG ;;
	q) SAMPLES=$OPTARG ;;
	*) FINISHED=1; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
INSTRUMENT=$1
OPTIONS=() FIRST=()

# modules: load TIPC's and SCTP's modules; UML has them where they were built.
modules()
{
	local m

	for m in lib/crypto/libcryptoutils net/ipv4/udp_tunnel net/ipv6/ip6_udp_tunnel net/tipc/tipc net/sctp/sctp; do
		if [[ $KERNEL = uml* ]]; then
			insmod "$CACHE/kernels/$KERNEL/$m.ko" 2>/dev/null
		else
			modprobe -aq "${m##*/}"
		fi
	done
	[ -d /sys/module/tipc ] && [ -d /sys/module/sctp ]
}


# A connection takes random numbers. Each costs 10,000 instructions until the kernel's generator
# is ready; a reader of /dev/random that waits for it makes it ready.
timeout 60 head -c 1 /dev/random >/dev/null || exit

#
# The two ends
#

case $INSTRUMENT in
cycles | instructions | split | memory)
	modules || exit
	hosts 2
	cable n0 v0 n1 v1
	ip0 addr add 10.9.0.1/24 dev v0
	ip1 addr add 10.9.0.2/24 dev v1
	ip -n n0 link set lo up
	for h in 0 1; do
		in_host n$h tipc node set addr 1.1.$((h + 1)) &&
			in_host n$h tipc bearer enable media eth device v$h || exit
	done
	insmod "$BUILD/kbench.ko" || exit
	# On ramfs the page cache is read as on a disk's file system, not as on tmpfs.
	mkdir /run/speed && mount -t ramfs ramfs /run/speed || exit
	OPTIONS=(-a n0:v0 -b n1:v1)
	if [ "$INSTRUMENT" = cycles ]; then
		OPTIONS+=(-p)
		FIRST=(taskset -c 0)
	else
		OPTIONS+=(-I)
	fi
	;;
pair)
	modules || exit
	tipc node set addr "1.1.$([ "$ROLE" = a ] && echo 1 || echo 2)" &&
		tipc bearer enable media eth device "$DEV" && esp dev enable "$DEV" || exit
	if [ "$ROLE" = b ]; then
		speed -b ":$DEV" -L &
		until_true $((ROUNDS * 600)) [ -e "$PAIR/over" ] || exit
		FINISHED=1
		exit 0
	fi
	OPTIONS=(-a ":$DEV" -c 10.9.0.2)
	;;
*)
	FINISHED=1
	echo "speed.sh cycles|instructions|split|memory|pair" >&2
	exit 2
	;;
esac

# links MTU on|off [on|off]: set the MTU, GSO packets on or off, and GRO on or off (default: off).
links()
{
	local end

	for end in 0 1; do
		ip -n n$end link set v$end mtu "$1" &&
			in_host n$end ethtool -K v$end tso "$2" gso "$2" \
				tx-sctp-segmentation "$2" gro "${3:-off}" || exit
	done
}

# checksums 0|1: 1: the device computes ESP's checksums, too.
checksums()
{
	local end

	for end in 0 1; do
		in_host n$end sysctl -qw net.esp.dev.v$end.tx_checksum="$1" || exit
	done
}

# turn PROTO...: print the protocols in an order that begins with another one in each round.
turn()
{
	local k=$((i % $#))

	echo "${@:k + 1}" "${@:1:k}"
}

# run CASE "PROTO..." KIND OPTION...: run the case if its name matches CASES. If ESP or TCP fails,
# the script fails because there is nothing to compare. Other protocols may fail: SCTP hangs now
# and then, and has one figure less.
run()
{
	local case=$1 protos=$2 kind=$3 p options
	shift 3

	# shellcheck disable=SC2053
	[[ $case = $CASES ]] || return
	for p in $(turn $protos); do
		options=("${OPTIONS[@]}" -l "$case" ${SAMPLES:+-o "$SAMPLES/$case-$p"} "$@")
		if [ $p = lo ]; then
			options+=(-a n0:lo -b n0:lo tcp)
		else
			options+=($p)
		fi
		timeout 100 "${FIRST[@]}" speed "${options[@]}" "$kind" >"$TMP/speed" ||
			{ echo "$case $p failed" >&2; [[ $p = esp || $p = tcp ]] && failed=1; }
		awk -v p=$p '{ $4 = p; print }' "$TMP/speed"
	done
}

# kernel CASE "PROTO..." KIND BYTES TIMES: the same from kernel threads, without system
# calls (kbench.c).
kernel()
{
	local case=$1 protos=$2 kind=$3 size=$4 times=$5 p

	# shellcheck disable=SC2053
	[[ $case = $CASES ]] || return
	for p in $(turn $protos); do
		timeout 100 bash -c 'exec 3<>/sys/kernel/debug/kbench && echo "$1" >&3 && cat <&3' - \
			"$kind $p $size $times 4 v0 5 v1" 4</run/netns/n0 5</run/netns/n1 >"$TMP/kernel" ||
			{ echo "$case $p failed" >&2; failed=1; continue; }
		sed -e "/^#/d; s/^/$case /" -e "s/ cycles/ $([ "$INSTRUMENT" = cycles ] && echo cycles || echo instructions)/" "$TMP/kernel"
	done
}

# split CASE "PROTO..." KIND OPTION...: find the functions in which the instructions of a round
# trip or a byte run, by a sample every 50,021 instructions: 5,000 samples and more.
split()
{
	local case=$1 protos=$2 kind=$3 p cost
	shift 3

	# shellcheck disable=SC2053
	[[ $case = $CASES ]] || return
	for p in $protos; do
		: >"$TMP/perf.log"
		{
			# perf costs instructions itself, so the total is measured without it.
			cost=$(timeout 100 speed "${OPTIONS[@]}" "$@" "$p" "$kind" | grep " cost ") &&
				timeout 600 perf record -q -a -g -e cpu-clock -c 50021 -D -1 --control "fifo:$TMP/perf,$TMP/perf.ack" \
					-o "$TMP/perf.data" -- speed "${OPTIONS[@]}" -P "$TMP/perf" "$@" "$p" "$kind" >"$TMP/perf.log" 2>&1 &&
				perf script -i "$TMP/perf.data" -F comm,ip,sym,dso >"$TMP/perf.script" 2>>"$TMP/perf.log" &&
				awk -v name="$case" -v proto="$p" -v unit="$(cut -d " " -f 3 <<<"$cost")" -v cost="${cost##* }" \
					-f "${0%/*}/split.awk" "$TMP/perf.script"
		} || { cat "$TMP/perf.log" >&2; echo "$case $p failed" >&2; failed=1; }
	done
}

round()
{
	local size k

	links 1500 on
	run bulk-1500-gso "esp tcp sctp tipc lo unix" bulk -s 1048576 -n 512
	kernel kernel-bulk-1500-gso "esp tcp" bulk 1048576 512
	run sendfile "esp tcp lo unix" sendfile -f /run/speed -s 1048576 -n 512
	run file "esp tcp unix" file -f /run/speed -s 1048576 -n 512
	# The sender's side alone, because the reader's copy may take longest.
	run bulk-discard "esp tcp" bulk -d -s 1048576 -n 512
	run sendfile-discard "esp tcp" sendfile -f /run/speed -d -s 1048576 -n 512
	run file-discard "esp tcp" file -f /run/speed -d -s 1048576 -n 512
	links 1500 off
	run bulk-1500 "esp tcp sctp tipc" bulk -s 1048576 -n 256
	kernel kernel-bulk-1500 "esp tcp" bulk 1048576 256
	links 1500 off on
	run bulk-1500-gro "esp tcp sctp" bulk -s 1048576 -n 256
	links 9000 off
	run bulk-9000 "esp tcp sctp tipc" bulk -s 1048576 -n 512
	links 65535 off
	run bulk-65535 "esp tcp tipc" bulk -s 1048576 -n 512
	links 1500 on
	for size in 1 64 1024; do
		run pingpong-$size "esp tcp udp packet sctp tipc lo unix" pingpong -s $size -n 4000
		kernel kernel-pingpong-$size "esp tcp udp" pingpong $size 4000
	done
	run pingpong-16384 "esp tcp sctp tipc lo unix" pingpong -s 16384 -n 2000
	run pingpong-1048576 "esp tcp sctp tipc lo unix" pingpong -s 1048576 -n 100
	run rr-1 "esp tcp sctp tipc lo unix" rr -k 1 -n 8000
	# ESP's ACKs come later after 16,384 packets without a loss
	for k in 16 256; do
		run rr-$k "esp tcp sctp tipc lo unix" rr -k $k -n 100000
	done
	run rr-10000 "esp tcp sctp tipc lo unix" rr -k 10000 -n 40000
	run connect "esp tcp sctp tipc lo unix" connect -n 1000
	run writev-16x64 "esp tcp sctp tipc unix" writev -n 10000
}

# As with TCP, no checksums are computed within a machine.
[ "$INSTRUMENT" = pair ] || checksums 1
case $INSTRUMENT in
cycles)
	for ((i = 0; i < ROUNDS; i++)); do
		round
	done
	;;
instructions)
	# Warm up: the first transfer in a fresh machine pays for allocating its memory.
	timeout 100 speed "${OPTIONS[@]}" -s 1048576 -n 8 esp bulk >/dev/null &&
		timeout 100 speed "${OPTIONS[@]}" -s 1048576 -n 8 tcp bulk >/dev/null || exit
	for ((i = 0; i < ROUNDS; i++)); do
		links 1500 on
		run pingpong-64 "esp tcp udp packet sctp tipc lo unix" pingpong -n 500
		kernel kernel-pingpong-64 "esp tcp udp" pingpong 64 500
		run bulk-1500-gso "esp tcp sctp tipc lo unix" bulk -s 1048576 -n 16
		kernel kernel-bulk-1500-gso "esp tcp" bulk 1048576 16
		run sendfile "esp tcp lo unix" sendfile -f /run/speed -s 1048576 -n 16
		run file "esp tcp unix" file -f /run/speed -s 1048576 -n 16
		run connect "esp tcp sctp tipc lo unix" connect -n 2000
		run writev-16x64 "esp tcp sctp tipc unix" writev -n 500
		checksums 0
		run pingpong-64-summed "esp tcp" pingpong -n 500
		links 1500 off
		run bulk-1500-summed "esp tcp" bulk -s 1048576 -n 8
		checksums 1
		run bulk-1500 "esp tcp sctp tipc" bulk -s 1048576 -n 8
		kernel kernel-bulk-1500 "esp tcp" bulk 1048576 8
		links 1500 off on
		run bulk-1500-gro "esp tcp sctp" bulk -s 1048576 -n 8
	done
	;;
split)
	# Let perf see the addresses of the kernel.
	echo 0 >/proc/sys/kernel/kptr_restrict && echo -1 >/proc/sys/kernel/perf_event_paranoid || exit
	mkfifo "$TMP/perf" "$TMP/perf.ack" || exit
	links 1500 on
	split pingpong-64 "esp tcp udp packet" pingpong -n 20000
	split bulk-1500-gso "esp tcp" bulk -s 65536 -n 6144
	split sendfile "esp tcp" sendfile -f /run/speed -s 1048576 -n 448
	split connect "esp tcp" connect -n 8000
	links 1500 off
	split bulk-1500 "esp tcp" bulk -s 65536 -n 1536
	links 1500 off on
	split bulk-1500-gro "esp tcp" bulk -s 65536 -n 1536
	;;
memory)
	for ((i = 0; i < ROUNDS; i++)); do
		for k in 1 10 100 1000 10000; do
			run connections-$k "esp tcp unix" memory -k $k
		done
	done
	;;
pair)
	until_true 60 ping -qc 1 -W 1 10.9.0.2 >/dev/null || exit
	for ((i = 0; i < ROUNDS; i++)); do
		run bulk "esp tcp sctp tipc" bulk -s 1048576 -n 32
		run bulk-lent "esp tcp" bulk -z -s 1048576 -n 32
		run pingpong-64 "esp tcp udp packet sctp tipc" pingpong -n 1000
		run connect "esp tcp sctp tipc" connect -n 200
	done
	# Wait for the last FIN: the other machine needs answers until then.
	over() { [ "$(esp show -a | wc -l)" -le 1 ]; }
	until_true 60 over || exit
	: >"$PAIR/over"
	;;
esac
FINISHED=1
exit $failed
