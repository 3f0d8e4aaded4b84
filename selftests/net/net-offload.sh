#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# GSO packets (offload.c): they pass devices that take them as one frame, are segmented
# before other devices, and are coalesced again where a receiver does that. Both
# directions at once, every byte is compared.
#
#	n0 w0 ------------------------ w1 n1	and VLANs of these
#	n0 v0 --- p0 br0 p1 (sw) ----- v1 n1
#
#	net-offload.sh [all]	more ways to put in a VLAN's tag

. "${0%/*}/../lib/lib.sh"

N=$(by_kernel 8M 1M 1M)
ALL=$1

hosts 2
host sw
cable n0 w0 n1 w1
for i in 0 1; do
	cable "n$i" "v$i" sw "p$i"
done
ip -n sw link add br0 type bridge || exit
for i in 0 1; do
	ip -n sw link set "p$i" master br0
done
ip -n sw link set br0 up

# runs HOST COUNTER COMMAND...: print how much the counter grows during the command.
runs()
{
	local h=$1 c=$2 before
	shift 2
	before=$(stat "$h" "$c")
	"$@" || return
	echo "$(($(stat "$h" "$c") - before))"
}

# some, none COUNTER COMMAND...: meanwhile n0 counts GSO packets, or none.
some() { local n; n=$(runs n0 "$@") && echo "$1: $n" && [ "$n" -gt 8 ]; }
none() { local n; n=$(runs n0 "$@") && echo "$1: $n" && [ "$n" -eq 0 ]; }

direct() { transfer n0 w0 n1 w1 -n "$N" "$@" >/dev/null; }
bridged() { transfer n0 v0 n1 v1 -n "$N" "$@" >/dev/null; }

# at_least N COUNTER COMMAND...: meanwhile n0 counts at least N GSO packets.
at_least() { local n min=$1; shift; n=$(runs n0 "$@") && echo "$1: $n, $min expected" && [ "$n" -ge "$min" ]; }

# bytes SIZE: 8M is 8388608.
bytes() { echo $((${1%M} << 20)); }

# w, link OPTION...: set ethtool's, or the link's, options at both ends of the cable. queue
# COMMAND...: run tc qdisc there. A setting that fails ends the script, because a test without it
# would test nothing.
w() { local h; for h in 0 1; do in_host n$h ethtool -K w$h "$@" >/dev/null || exit; done; }
link() { local h; for h in 0 1; do ip -n n$h link set w$h "$@" || exit; done; }
queue() { local h cmd=$1; shift; for h in 0 1; do in_host n$h tc qdisc "$cmd" dev w$h "$@" || exit; done; }

check "veth takes super-packets" some OutGsoFrames direct
check "... and delivers them" some InGsoFrames direct
check "records end them" some InGsoFrames direct -q
ip -n n0 link set lo mtu 9000 || exit
check "loopback" some InGsoFrames eval 'transfer n0 lo n0 lo -n "$N" >/dev/null'
check "the own address" some InGsoFrames eval 'transfer n0 w0 n0 w0 -n "$N" >/dev/null'
check "a bridge forwards them" some InGsoFrames bridged

link gso_max_segs 1
check "gso_max_segs 1: none are made" none OutGsoFrames direct
# Seven packets of 1468 bytes, or six: many GSO packets instead of few.
link gso_max_segs 7
check "gso_max_segs 7" at_least $(($(bytes "$N") / (8 * 1468))) OutGsoFrames direct
link gso_max_segs 65535 gso_max_size 9000
check "gso_max_size 9000" at_least $(($(bytes "$N") / (8 * 1468))) OutGsoFrames direct
link gso_max_size 65536

w tx-sctp-segmentation off
check "taken apart in front of the device: they leave" some OutGsoFrames direct
check "... and none comes" none InGsoFrames direct
w tx off
check "... without the device's checksums" none InGsoFrames direct
w sg off
check "... nor fragments" none InGsoFrames direct
w tx on sg on
# A veth coalesces frames if the sender's device does not segment TCP.
w tso off gro on
check "coalesced by the receiver" some InGsoFrames direct
check "... with records" direct -q
link mtu 9000
check "... with MTU 9000" some InGsoFrames direct
link mtu 1500

# A bridge coalesces frames, and segments them for devices that don't take GSO packets.
for i in 0 1; do
	in_host n$i ethtool -K v$i tso off gro on tx-sctp-segmentation off >/dev/null &&
		in_host sw ethtool -K p$i tso off gro on tx-sctp-segmentation off >/dev/null || exit
done
check "a bridge coalesces, forwards and takes apart" some InGsoFrames bridged
for i in 0 1; do
	in_host n$i ethtool -K v$i gro off >/dev/null || exit
done
check "... for hosts that don't coalesce" none InGsoFrames bridged
w tso on gro off tx-sctp-segmentation on

# Queues that segment, lose or corrupt GSO packets.
queue add root tbf rate 1gbit burst 1520 limit 1000000
check "a token bucket smaller than they are takes them apart" none InGsoFrames direct
queue replace root netem limit 10000 delay 1ms reorder 25% loss 5% duplicate 5% corrupt 10%
check "whole runs are lost, doubled, late; corrupted ones are taken apart" \
	direct -w 30000
check "it was not a clean link" [ "$(stat n0 OutRetrans)" -gt 0 -a "$(stat n0 InChecksum)" -gt 0 ]
queue del root

# Redirected: packets for w0 leave by v0, and come in as if by w1; v1 has w1's address.
passed() { in_host n1 ip -s link show v1 | awk '/RX:/ { getline; print $2 }'; }
ip -n n1 link set v1 address "$(mac n1 w1)" &&
	in_host n1 tc qdisc add dev v1 ingress &&
	in_host n1 tc filter add dev v1 ingress matchall action mirred ingress redirect dev w1 &&
	in_host n0 tc qdisc add dev w0 clsact &&
	in_host n0 tc filter add dev w0 egress matchall action mirred egress redirect dev v0 || exit
before=$(passed)
check "redirected by tc" some OutGsoFrames direct
check "... by the other way" [ "$(passed)" -gt $((before + 8)) ]
in_host n0 tc qdisc del dev w0 clsact || exit
in_host n1 tc qdisc del dev v1 ingress || exit

in_host n0 timeout 60 tcpdump -U -i w0 -w "$TMP/w0.pcap" -s 80 2>"$TMP/w0.log" &
in_host n1 timeout 60 tcpdump -U -i w1 -w "$TMP/w1.pcap" 2>"$TMP/w1.log" &
until_true 60 [ -s "$TMP/w0.pcap" -a -s "$TMP/w1.pcap" ] || exit
check "while packets are captured at both ends" some InGsoFrames direct
# A slow machine does not capture all packets, but one that is longer than a frame can be.
captured() { [ "$(wc -c <"$TMP/w0.pcap")" -gt 1000 ] && [ "$(wc -c <"$TMP/w1.pcap")" -gt 10000 ]; }
check "... captured they were" until_true 60 captured
kill %1 %2
wait

#
# Under VLAN tags: beside the frame, or inside it if a device can't insert them
#

T=$(by_kernel 4M 512k 1M)
OVER=''	# suffix of w0 and w1 in the names of the VLAN's devices
tagged() { transfer n0 w0$OVER n1 w1$OVER -n "$T" "$@" >/dev/null; }

# passes OUT IN COMMAND...: OUT and IN, "some" or "none": n0 sends and receives GSO packets, or not.
passes()
{
	local out in n want i=0 wants=("$1" "$2")
	shift 2
	out=$(stat n0 OutGsoFrames) in=$(stat n0 InGsoFrames)
	"$@" || return
	for n in $(($(stat n0 OutGsoFrames) - out)) $(($(stat n0 InGsoFrames) - in)); do
		want=${wants[i++]}
		echo "$n, $want expected"
		case $want in
		some) [ "$n" -gt 8 ] ;;
		none) [ "$n" -eq 0 ] ;;
		esac || return
	done
}

# vlan PARENT NAME OPTION...: make VLAN devices at both ends; PARENT and NAME are suffixes of w0
# and w1.
vlan()
{
	local h

	for h in 0 1; do
		ip -n n$h link add link "w$h$1" name "w$h$2" type vlan "${@:3}" &&
			ip -n n$h link set "w$h$2" up &&
			in_host n$h tee "/proc/sys/net/esp/dev/w$h$2/enable" <<<1 >/dev/null || exit
	done
}

# sums YES: 1: ESP leaves checksums to w0 and w1.
sums()
{
	local h

	for h in 0 1; do
		in_host n$h tee "/proc/sys/net/esp/dev/w$h/tx_checksum" <<<"$1" >/dev/null || exit
	done
}

# vlans TEXT: test each offload of w on and off, over the VLAN OVER.
vlans()
{
	check "$1: super-packets pass" passes some some tagged
	w tx-sctp-segmentation off
	check "... are taken apart below it" passes some none tagged
	sums 1
	check "... for a device that sums" passes some none tagged
	sums 0
	w tx off sg off
	check "... for one that does nothing" passes some none tagged
	w tx on sg on tso off gro on
	check "... and coalesced" passes some some tagged
	check "... with records" passes some some tagged -q
	w tso on gro off tx-sctp-segmentation on
}

vlan '' .5 id 5
vlan '' .6 id 6 reorder_hdr off
vlan '' .7 id 7 protocol 802.1ad
vlan .7 .7.8 id 8
# A frame of 1500 bytes has room for one tag only.
for h in 0 1; do
	ip -n n$h link set w$h.7.8 mtu 1496 || exit
done
own() { transfer n0 "w0$OVER" n0 "w0$OVER" -n "$T" >/dev/null; }
OVER=.5 check "a VLAN's device to its own address" passes some some own
OVER=.6 check "... which puts in its tags itself" passes some some own
inside() { w tx-vlan-hw-insert off tx-vlan-stag-hw-insert off; }
OVER=.5 vlans "VLAN, tags beside frames"
if [ -n "$ALL" ]; then
	OVER=.7.8 vlans "VLAN in a VLAN, tags beside frames"
	OVER=.6 vlans "VLAN, tags by the VLAN's device"
	inside
	OVER=.5 vlans "VLAN, tags inside frames"
else
	inside
fi
OVER=.7.8 vlans "VLAN in a VLAN, tags inside frames"

# Checksums are right when frames leave the VLAN's device; then netem corrupts some frames.
w tso off gro on
OVER=.5
for h in 0 1; do
	in_host n$h ethtool -K w$h.5 tx-sctp-segmentation off tx off sg off >/dev/null || exit
done
queue add root netem limit 10000 corrupt 5%
gone() { ! kill -0 $CONNECTOR && ! kill -0 $LISTENER; } 2>/dev/null
corrupted()
{
	start n0 w0.5 n1 w1.5 -n "$T"
	# An end that received corrupted data may wait for ever, so kill both in the end.
	until_true 90 gone || kill $CONNECTOR $LISTENER
	ended >/dev/null
}
check "of frames that a VLAN's device takes apart, corrupted ones are not coalesced" \
	passes some some corrupted
queue del root

check "no sockets are left" until_true 60 no_sockets n0 n1
finish
