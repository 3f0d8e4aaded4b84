#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# VLAN, bridge, bonding, macvlan, veth, loopback, and what happens to a
# connection when its device changes or leaves (state-machine.rst, "Devices"; rules
# 1, 9 and 12).
#
#	+------------+       +-------------------+       +------------+
#	| n0      v0 +-------+ p0     br0     p1 +-------+ v1      n1 |
#	|         w0 +---+   |  sw       p2      |   +---+ w1         |
#	+------------+   |   +---------+---------+   |   +------------+
#	                 |             |             |
#	                 |   +---------+---------+   |
#	                 |   | n2      v2        |   |
#	                 |   +-------------------+   |
#	                 +---------- veth -----------+

. "${0%/*}/../lib/lib.sh"

N=$(by_kernel 4M 256k 1M)	# a short transfer
LONG=$(by_kernel 4G 1G 4G)	# one that does not end by itself

# sysctl HOST NAME VALUE
sysctl() { in_host "$1" tee "/proc/sys/net/esp/$2" <<<"$3" >/dev/null; }
no_device() { ! ip -n "$1" link show "$2" >/dev/null 2>&1; }

# says FILE WORDS...: $TMP/FILE has one of WORDS.
says()
{
	local text words

	text=$(<"$TMP/$1")
	shift
	for words; do
		[[ $text != *"$words"* ]] || return 0
	done
	return 1
}

# both_end: the transfer ends at both ends, with an error.
both_end()
{
	ended && return 1
	says connect "stream connect:" && says listen "stream listen:"
}

# give_up_soon HOST: let a connection without answers end in two seconds, which is longer than a
# busy machine takes to answer.
give_up_soon()
{
	sysctl "$1" retries 20
	sysctl "$1" rto_max_ms 100
	sysctl "$1" syn_retries 2
}

patient()
{
	sysctl "$1" retries 60
	sysctl "$1" rto_max_ms 500
	sysctl "$1" syn_retries 9
}

# reset_cable: make w0 and w1 again.
reset_cable()
{
	ip -n n0 link delete w0 2>/dev/null
	cable n0 w0 n1 w1
}

# in_runs COMMAND...: meanwhile GSO packets leave n0, and come to n1.
in_runs()
{
	local out in

	out=$(stat n0 OutGsoFrames) in=$(stat n1 InGsoFrames)
	"$@" || return
	echo "OutGsoFrames $(($(stat n0 OutGsoFrames) - out)), InGsoFrames $(($(stat n1 InGsoFrames) - in))"
	counted n0 OutGsoFrames $((out + 3)) && counted n1 InGsoFrames $((in + 3))
}

# more_runs: wait until more GSO packets leave n0, and come to n1.
more_runs()
{
	local out in

	out=$(stat n0 OutGsoFrames) in=$(stat n1 InGsoFrames)
	until_true 60 counted n0 OutGsoFrames $((out + 3)) && until_true 60 counted n1 InGsoFrames $((in + 3))
}

# goes_on: the transfer goes on and ends well.
goes_on() { moves n1 5 && enough; }

idle=$(awk '$1 == "esp" { print $3 }' /proc/modules)
hosts 3
host sw
for i in 0 1 2; do
	cable "n$i" "v$i" sw "p$i"
done
cable n0 w0 n1 w1
for h in n0 n1; do
	sysctl $h rcvbuf 262144
done

#
# Kinds of devices
#

check "veth" transfer n0 w0 n1 w1 -n "$N"
sysctl n0 dev/w0/tx_checksum 1
check "veth, checksums of one end are left to it" transfer n0 w0 n1 w1 -n "$N"
sysctl n1 dev/w1/tx_checksum 1
check "veth, of both" transfer n0 w0 n1 w1 -n "$N"
sysctl n0 dev/w0/tx_checksum 0
sysctl n1 dev/w1/tx_checksum 0
check "loopback" transfer n0 lo n0 lo -n "$N"
check "own address" transfer n0 w0 n0 w0 -n "$N"

ip -n sw link add br0 type bridge || exit
for i in 0 1 2; do
	ip -n sw link set "p$i" master br0
done
ip -n sw link set br0 up
check "bridge, port 0 to 1" transfer n0 v0 n1 v1 -n "$N"
check "bridge, port 1 to 2" transfer n1 v1 n2 v2 -n "$N"
check "bridge, port 2 to 0" transfer n2 v2 n0 v0 -n "$N"
sysctl n2 syn_retries 1
check_fails "the bridge itself isn't enabled" "timed out" transfer n2 v2 sw br0 -n "$N"
sysctl n2 syn_retries 9
enable sw br0
check "the bridge itself" transfer n2 v2 sw br0 -n "$N"

ip0 link add link w0 name w0.5 type vlan id 5
ip1 link add link w1 name w1.5 type vlan id 5
ip0 link set w0.5 up
ip1 link set w1.5 up
enable n0 w0.5
enable n1 w1.5
check "VLAN, in super-packets" in_runs transfer n0 w0.5 n1 w1.5 -n "$N"
ip0 link delete w0.5
ip1 link delete w1.5

modprobe -q macvlan
ip1 link add m1 link w1 type macvlan mode bridge || exit
ip1 link add m2 link w1 type macvlan mode bridge
ip1 link set m2 netns n2
ip1 link set m1 up
ip2 link set m2 up
enable n1 m1
enable n2 m2
check "macvlan, from outside" transfer n0 w0 n1 m1 -n "$N"
check "macvlan, to its neighbour in another namespace" transfer n1 m1 n2 m2 -n "$N"
ip1 link delete m1
ip2 link delete m2

modprobe -q bonding max_bonds=0
ip0 link add bond0 type bond mode active-backup miimon 10 || exit
ip1 link add bond0 type bond mode active-backup miimon 10
cable n0 x0 n1 x1
for end in 0 1; do
	for slave in w x; do
		ip -n n$end link set $slave$end down
		ip -n n$end link set $slave$end master bond0
	done
	ip -n n$end link set bond0 type bond primary w$end
	ip -n n$end link set bond0 up
	enable n$end bond0
done
# A bond drops frames from a cable that it doesn't use, so both ends must use the same cable.
active() { ip -n "$1" -d link show bond0 | grep -q "active_slave $2 "; }
until_true 60 active n0 w0
until_true 60 active n1 w1
check "bonding, active-backup, in super-packets" in_runs transfer n0 bond0 n1 bond0 -n "$N"
slow_start n0 bond0 n1 bond0
check "... which are in use" more_runs
ip0 link set w0 down
check "... behind the change to the other cable, too" more_runs
check "bonding: a transfer survives the change" goes_on
ip0 link delete bond0
ip1 link delete bond0
ip0 link delete x0
reset_cable

#
# MTU (rule 9)
#

for mtu in 128 9000 65535 1500; do
	ip0 link set w0 mtu $mtu
	ip1 link set w1 mtu $mtu
	check "MTU $mtu" transfer n0 w0 n1 w1 -n "$([ $mtu = 128 ] && by_kernel 512k 16k 64k || echo "$N")"
done
ip0 link set w0 mtu 9000
check "MTU 9000 to 1500" transfer n0 w0 n1 w1 -n "$N"
ip0 link set w0 mtu 100
check_fails "MTU 100 is too small" "Message too long" transfer n0 w0 n1 w1 -n 1k
ip0 link set w0 mtu 1500

slow_start n0 w0 n1 w1
check "a transfer in super-packets" more_runs
ip0 link set w0 mtu 9000
ip1 link set w1 mtu 9000
check "... the MTU grows: there are more of them" more_runs
check "... and it goes on" goes_on

# large_frames OPTION...: start a transfer. A slow handshake makes packets small (rule 9), so try
# again until they are large.
large_frames()
{
	local i

	for ((i = 0; i < 5; i++)); do
		start n0 w0 n1 w1 -n $LONG -T 20 "$@"
		moves n1 || return
		! n0 esp show -e | grep -q "mss:8968" || return 0
		end $CONNECTOR
		end $LISTENER
	done
	return 1
}
check "a transfer of large frames" large_frames -b 0 -p 50
check "... in super-packets" more_runs
ip0 link set w0 mtu 1500
check "... the sender's MTU shrinks: it goes on" moves n1 500
check "... new packets are smaller" eval 'n0 esp show -e | grep -q "mss:1468"'
check "... and nothing is missing" enough
ip0 link set w0 mtu 9000
check "a transfer of large frames again" large_frames
# lose_large: the cable loses what is on its way to the host whose MTU shrinks. That may be one short
# packet, so try again until there is a longer one, by the mean length.
lose_large()
{
	local i timeouts numbers

	for ((i = 0; i < 50; i++)); do
		timeouts=$(stat n0 Timeouts)
		in_host n0 tc qdisc add dev w0 root netem loss 100% || return
		until_true 60 counted n0 Timeouts $((timeouts + 1)) || return
		numbers=$(n0 esp show -e | sed -n 's/.* una_seq:\([0-9]*\) send_next:\([0-9]*\) .* unacked:\([0-9]*\).*/\1 \2 \3/p')
		echo "lost: $numbers"
		awk '{ exit !(NF == 3 && $3 > 1468 * (($2 - $1 + 4294967296) % 4294967296)) }' <<<"$numbers" && return
		in_host n0 tc qdisc del dev w0 root || return
		moves n1 || return
	done
	return 1
}
check "... some of which are lost" lose_large
ip1 link set w1 mtu 1500
in_host n0 tc qdisc del dev w0 root
check "... the receiver's MTU shrinks: it goes on" moves n1 500
check "... what was lost comes in parts" until_true 60 counted n1 InParts 7
check "... new packets are smaller" eval 'n0 esp show -e | grep -q "mss:1468"'
check "... and nothing is missing" enough
ip1 link set w1 mtu 9000
check "a transfer of large frames once more" large_frames -b 0 -p 50
# Stop the reader, so that packets are queued.
kill -STOP $LISTENER
waiting() { n0 esp show | awk '$4 > 1000000 { found = 1 } END { exit !found }'; }
check "... whose writer waits" until_true 60 waiting
check "... no connection has ended" eval '! counted n0 AbortOnMTU 1'
ip0 link set w0 mtu 100
kill -CONT $LISTENER
check "... the MTU is too small for ESP: it ends" both_end
check "... with EMSGSIZE" says connect "Message too long"
check "... and the peer knows" says listen "reset by peer" "timed out"
check "... and it is counted" counted n0 AbortOnMTU 1
ip0 link set w0 mtu 1500
ip1 link set w1 mtu 1500
#
# Down and up, another address, another name, gone
#

give_up_soon n1
start n0 w0 n1 w1 -n $LONG
moves n1
ip0 link set w0 address 02:00:00:00:07:01
check "another MAC address: the transfer ends" both_end
check "... with ENETDOWN" says connect "Network is down"
check "... and the peer knows" says listen "reset by peer" "timed out"
check "a transfer with the new address" transfer n0 w0 n1 w1 -n "$N"
patient n1

# A bridge has the lowest address of its ports.
reset_cable
ip1 link set w1 address 02:00:00:00:07:50
ip1 link add br1 type bridge || exit
ip1 link set w1 master br1
ip1 link set br1 up
enable n1 br1
start n0 w0 n1 br1 -n $LONG
moves n1
kill -STOP $LISTENER
ip1 link add d1 address 02:00:00:00:07:01 type dummy
ip1 link set d1 master br1
check "a bridge gets another port, and its address: the peer knows" \
	until_true 20 says connect "reset by peer"
kill -CONT $LISTENER
check "... and the transfer ends" both_end
check "... with ENETDOWN here" says listen "Network is down"
ip1 link delete d1
ip1 link delete br1
reset_cable

for end in "n0 w0 sender" "n1 w1 receiver"; do
	read -r h dev who <<<"$end"
	slow_start n0 w0 n1 w1 -D
	moves n1 5
	ip -n $h link set $dev down
	sleep 0.5
	ip -n $h link set $dev up
	check "a transfer survives the $who's device down and up" goes_on
done

slow_start n0 w0 n1 w1 -b 0
moves n1 5
sysctl n1 dev/w1/enable 0
check "frames on a disabled device are counted" until_true 60 counted n1 InDevDisabled 1
enable n1 w1
check "a transfer survives it" goes_on

# speed HOST DEV: print the speed of DEV's link as ESP knows it, and where it is from.
speed() { in_host "$1" awk -v dev="$2" '$1 == dev { print $9, $10 }' /proc/net/esp/dev; }
# is_json_speed MBIT FROM: "esp show -j dev" has them for w0.
is_json_speed() { in_host n0 esp show -j dev | grep -qF "{\"ifname\":\"w0\",\"enabled\":true,\"mbit\":$1,\"mbit_from\":\"$2\",\"gro\":"; }

# A fast machine has measured one.
read -r mbit from <<<"$(speed n0 w0)"
check "a veth's link does not tell a speed" eval '[ "$mbit $from" = "0 unknown" ] || [ "$from" = measured ]'
check "... and shown so" eval 'in_host n0 esp show dev | grep -qE "^w0 +yes +.*$from"'
check "... and in JSON" is_json_speed "$([ "$mbit" = 0 ] && echo null || echo "$mbit")" "$from"
sysctl n0 dev/w0/rate_mbit 2500
check "its administrator tells it" [ "$(speed n0 w0)" = "2500 set" ]
check "... and it is shown" eval 'in_host n0 esp show dev | grep -qE "^w0 +yes +2500 Mbit/s \(set\) +(yes|no) +(yes|no) +(-|0)$"'
check "... and in JSON" is_json_speed 2500 set

# offloads_shown: GRO, VLAN offload and the mask of RPS, as ethtool and sysfs have them. A kernel
# for one processor has no RPS.
offloads_shown()
{
	nsenter --net=/run/netns/n0 unshare -m bash -c '
		rps=/sys/class/net/w0/queues/rx-0/rps_cpus text=- json=null
		mount -t sysfs none /sys && ethtool -K w0 gro on rxvlan off || exit
		[ ! -e $rps ] || { text=1 json=\"1\"; echo 1 >$rps; }
		esp show dev | grep -qE "^w0 .* yes +no +$text$" && ethtool -K w0 gro off &&
			esp show -j dev | grep -q "\"w0\",.*\"gro\":false,\"rx_vlan_offload\":false,\"rps_cpus\":$json}"
		status=$?
		ethtool -K w0 rxvlan on
		[ ! -e $rps ] || echo 0 >$rps
		exit $status'
}
check "offloads and RPS are shown" offloads_shown
for value in -1 10000001 99999999999999999999 nonsense ""; do
	check "a speed of '$value' is refused, or changes nothing" eval '! sysctl n0 dev/w0/rate_mbit "$value" ||
		[ -z "$value" ]'
done 2>/dev/null
check "... and the speed stays" [ "$(speed n0 w0)" = "2500 set" ]
ip0 link add link w0 name w0.7 up type vlan id 7
check "a VLAN has its lower device's speed" [ "$(speed n0 w0.7)" = "2500 set" ]
check_fails "... and does not set it" "not supported" n0 tee /proc/sys/net/esp/dev/w0.7/rate_mbit <<<10
sysctl n0 dev/w0/rate_mbit 10000000
check "the VLAN follows" [ "$(speed n0 w0.7)" = "10000000 set" ]
ip0 link add m0 link w0 netns n2 type macvlan mode bridge
check_fails "a macvlan in another namespace does not set it" "not supported" \
	in_host n2 tee /proc/sys/net/esp/dev/m0/rate_mbit <<<1
check "... nor does its end change it" eval 'ip -n n2 link delete m0 && [ "$(speed n0 w0)" = "10000000 set" ]'
ip0 link delete w0.7
slow_start n0 w0 n1 w1 -b 0
moves n1 5
for value in 1 10000000 0; do
	sysctl n0 dev/w0/rate_mbit $value
	sysctl n1 dev/w1/rate_mbit $value
done
check "a transfer survives changes of the speed" goes_on
read -r mbit from <<<"$(speed n0 w0)"
check "by itself again" eval '[ "$mbit $from" = "0 unknown" ] || [ "$from" = measured ]'

sysctl n0 dev/w0/enable 0
check_fails "no connection from a disabled device" "Network is down" transfer n0 w0 n1 w1 -n 1k
check "disabled, and off the list" eval 'in_host n0 esp show dev | grep -w w0 | grep -qwE "0|no|disabled|off"'
ip0 link set w0 down
ip0 link set w0 name new
ip0 link set new up
check "renamed: the sysctl moves, and keeps its value" [ "$(n0 cat /proc/sys/net/esp/dev/new/enable)" = 0 ]
check "renamed: the old one is gone" n0 test ! -e /proc/sys/net/esp/dev/w0
enable n0 new
check "a transfer with the new name" transfer n0 new n1 w1 -n "$N"

give_up_soon n1
start n0 new n1 w1 -n $LONG
moves n1
ip0 link set new netns n2
check "moved to another namespace: the transfer ends" both_end
check "... with ENETDOWN" says connect "Network is down"
ip2 link set new up
check "... where it carries no ESP" [ "$(in_host n2 cat /proc/sys/net/esp/dev/new/enable)" = 0 ]
enable n2 new
check "... and a new one works from there" transfer n2 new n1 w1 -n "$N"
ip2 link delete new

patient n1
reset_cable
start n0 w0 n1 w1 -n $LONG
moves n1
ip0 link delete w0
check "deleted: the transfer ends" both_end
check "... with ENETDOWN here" says connect "Network is down"
check "... and there" says listen "Network is down"
check "... and it is counted" counted n0 AbortOnDevice 1

#
# Frames for other hosts
#

reset_cable
ip1 link set w1 promisc on
slow_start n0 w0 n1 w1
moves n1 5
sysctl n0 syn_retries 1
before=$(stat n1 InNoSocket InCookie CookieInvalid)
check_fails "a promiscuous device takes no frames for other hosts" "timed out" \
	n0 stream -n 1k connect "02:00:00:00:07:99%w0:$PORT"
# Compare before the transfer ends, because its last frames may come to a closed socket.
check "... which meet no socket" [ "$(stat n1 InNoSocket InCookie CookieInvalid)" = "$before" ]
check "... while its own go on" goes_on

#
# A namespace leaves
#

start n0 w0 n1 w1 -n $LONG
moves n1
ip netns delete n1
HOSTS=${HOSTS/ n1/}
end $LISTENER
check "a namespace leaves during a transfer: its device is gone" until_true 60 no_device n0 w0
ended >/dev/null 2>&1
comment <"$TMP/connect"
# EPIPE, if all data had been read and a FIN came first
check "... and the transfer ends" says connect "Network is down" "reset by peer" "Broken pipe"

# The peer answers but reads nothing. The orphaned socket must not wait for ever.
host n1
cable n0 w0 n1 w1
sysctl n1 fin_timeout_ms 500
give_up_soon n1
start n1 w1 n0 w0 -n $LONG -b 0
moves n0
kill -STOP $LISTENER
sleep 1
ip netns delete n1
HOSTS=${HOSTS/ n1/}
end $CONNECTOR
check "a namespace leaves whose data nobody reads" until_true 60 no_device n0 w0
end $LISTENER

for h in $HOSTS; do
	ip netns delete "$h"
done
HOSTS=
unused() { [ "$(awk '$1 == "esp" { print $3 }' /proc/modules)" = "$idle" ]; }
check "nobody uses the module any more" until_true 60 unused
check "the module goes" eval 'rmmod esp_diag && rmmod esp'
check "the module comes back" eval 'insmod "$BUILD/esp.ko" && insmod "$BUILD/esp_diag.ko"'
finish
