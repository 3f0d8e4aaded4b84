#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Forged frames of all shapes (inject.c) during transfers, over devices of different kinds.
# A sender that does not know a connection's cookie cannot harm the connection: the transfer
# stays intact. A sender that knows the cookie may end the connection, but no more than that.
# Each way in which a frame can be malformed occurs, and is counted.
#
#	net-inject.sh [SEED [FRAMES]]
#
#	+------------+                             +------------+
#	| n0      w0 +------------- veth ----------+ w1      n1 |
#	| d0 -^  /   |    +-------------------+    | \  ^- d1   |
#	|   w0.5     |    |        br0        |    |  w1.5, m1  |
#	|         v0 +----+ p0  t0 t1 t2   p1 +----+ v1         |
#	+------------+    | sw  taps          |    +------------+
#	                  +-------------------+

. "${0%/*}/../lib/lib.sh"

SEED=${1:-1} FRAMES=${2:-$(by_kernel 5000 500 1000)}
INJECTORS=''

# Nanoseconds for which a device holds frames back, so that it coalesces more of the transfer.
HOLD_NS=2000000
BRIDGE=02:00:00:00:07:77	# the bridge's own address, whatever ports it has

hosts 2
host sw
cable n0 w0 n1 w1
for i in 0 1; do
	cable "n$i" "v$i" sw "p$i"
	in_host n$i tee /proc/sys/net/esp/rcvbuf <<<262144 >/dev/null || exit
done
ip -n sw link add br0 address $BRIDGE type bridge || exit
for i in 0 1 2; do
	in_host sw ip tuntap add dev t$i mode tap || exit
done
for dev in p0 p1 t0 t1 t2; do
	ip -n sw link set $dev master br0 || exit
	ip -n sw link set $dev up
done
ip -n sw link set br0 up
in_host sw tee /proc/sys/net/esp/rcvbuf <<<262144 >/dev/null || exit
in_host sw tee /proc/sys/net/esp/dev/br0/enable <<<1 >/dev/null || exit
# Without learning, so that forged source addresses do not attract the transfer's frames.
for i in 0 1 2; do
	in_host sw bridge link set dev t$i learning off || exit
done

# inject HOST ARGUMENT...: starts to inject frames, with the next seed.
inject()
{
	nsenter --net="/run/netns/$1" inject "${@:2}" "$SEED" "$FRAMES" >"$TMP/inject.$SEED" 2>&1 &
	INJECTORS+=" $!:$SEED"
	SEED=$((SEED + 1))
}

# injected: waits until all have done so.
injected()
{
	local i status=0

	for i in $INJECTORS; do
		wait "${i%:*}" || status=1
		cat "$TMP/inject.${i#*:}"
	done
	INJECTORS=''
	return $status
}

# begin HOST DEV HOST DEV: starts a transfer that goes on, with pauses for other frames. It gives up
# when nothing has moved for PATIENCE seconds.
begin() { start "$@" -n 1000G -r 4000 -p 300 -T "$PATIENCE"; }
PATIENCE=120

# intact TEXT HOST: the transfer to HOST goes on, and ends intact.
intact()
{
	check "$1: frames from who knows no cookie" injected
	check "... the transfer goes on" moves "$2" 5
	check "... and is intact" enough
}

# w OPTION...: sets ethtool's options at both ends of the cable.
w()
{
	local i

	for i in 0 1; do
		in_host n$i ethtool -K w$i "$@" >/dev/null || exit
	done
}

direct()
{
	begin n0 w0 n1 w1
	inject n0 "$@" w0
	inject n1 "$@" w1
}

# bridged HOST DEV [OPTION]: injects by three taps: plain, with NAPI, and in fragments.
bridged()
{
	begin n0 v0 "$1" "$2"
	inject sw "${@:3}" -t t0 p0
	inject sw "${@:3}" -t t1 -n p0
	inject sw "${@:3}" -t t2 -f p0
}

#
# Without the cookie
#

direct
intact "veth" n1
direct -r
intact "... from rings" n1

w tso off gro on tx-sctp-segmentation off
for i in 0 1; do
	ip -n n$i link set w$i mtu 9000 || exit
	ip netns exec n$i sh -c "echo $HOLD_NS >/sys/class/net/w$i/gro_flush_timeout" || exit
done
direct
intact "veth that takes no super-packets and coalesces, MTU 9000" n1
w tx off sg off
direct
intact "... nor fragments, nor computes checksums" n1
for i in 0 1; do
	ip -n n$i link set w$i mtu 1500 || exit
done
w tx on sg on

# The copy of a frame that leaves by a dummy device has no owner, so GRO coalesces it.
for i in 0 1; do
	ip -n n$i link add d$i type dummy || exit
	ip -n n$i link set d$i up
	in_host n$i tc qdisc add dev d$i clsact &&
		in_host n$i tc filter add dev d$i egress matchall action mirred egress mirror dev w$i || exit
done
mirrored()
{
	begin n0 w0 n1 w1
	inject n0 "$@" -o d0 w0
	inject n1 "$@" -o d1 -r w1
}
mirrored
intact "veth that coalesces forged frames, too" n1
w tso on tx-sctp-segmentation on

for i in 0 1; do
	ip -n n$i link add link w$i name w$i.5 type vlan id 5 || exit
	ip -n n$i link set w$i.5 up
	in_host n$i tee "/proc/sys/net/esp/dev/w$i.5/enable" <<<1 >/dev/null || exit
done
begin n0 w0.5 n1 w1.5
inject n0 w0.5
inject n0 -o w0 w0.5
inject n1 w1.5
intact "VLAN" n1

modprobe -q macvlan
ip1 link add m1 link w1 type macvlan mode bridge || exit
ip1 link set m1 up
n1 tee /proc/sys/net/esp/dev/m1/enable <<<1 >/dev/null || exit
begin n0 w0 n1 m1
inject n0 w0
inject n1 m1
intact "macvlan" n1

bridged sw br0
intact "bridge, from taps" sw
for i in 0 1; do
	in_host sw ethtool -K p$i tx-sctp-segmentation off sg off >/dev/null || exit
done
bridged n1 v1
intact "... on to devices that take no super-packets" n1

# sum COUNTER: of all hosts
sum() { echo $(($(stat n0 "$1") + $(stat n1 "$1") + $(stat sw "$1"))); }
# A client that comes before the listener is refused by an RST, and tries again.
check "no connection was reset" [ "$(sum InResets)" = "$(sum AttemptFails)" ]

#
# With the cookie
#

# ends: the transfer ends, well or not, and leaves no sockets.
ends()
{
	injected || return
	enough >/dev/null
	until_true 60 no_sockets n0 n1 sw
}

for h in n0 n1 sw; do
	in_host $h tee /proc/sys/net/esp/fin_timeout_ms <<<1000 >/dev/null || exit
	in_host $h tee /proc/sys/net/esp/rto_max_ms <<<100 >/dev/null || exit
	in_host $h tee /proc/sys/net/esp/retries <<<10 >/dev/null || exit
done
# If both ends have got forged data, both stop to read, and none can write any more.
PATIENCE=15
for ((round = 1; round <= 2; round++)); do
	direct -k
	check "frames from who knows the cookie: nothing is left, $round" ends
	w tso off tx-sctp-segmentation off
	mirrored -k
	check "... coalesced" ends
	w tso on tx-sctp-segmentation on
	bridged sw br0 -k
	check "... from taps" ends
done

for h in n0 n1 sw; do
	in_host $h cat /proc/net/esp/stat
done | awk '{ n[$1] += $2 } END { for (name in n) print name, n[name] }' >"$TMP/counted"
for name in InShort InVersion InHeaderLength InFlags InOption InPort InRange InBadGso InChecksum \
	InGroupSource InNoSocket InCookie InAckInvalid InDuplicate InResetsIgnored; do
	n=$(grep "^$name " "$TMP/counted")
	check "$n, counted" [ "${n#* }" -gt 0 ]
done
finish
