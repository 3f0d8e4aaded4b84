#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Rule 12: each receiving lower device has one ACK queue, because VLANs and macvlans share
# its port. Rule 5: empty packets are a small share.
#
#	+----------------+            +----------------------+
#	| n0  v0.5       |            |         v1.5  m1  n1 |
#	|       v0 ------+--- veth ---+----- v1 -+----+      |
#	+----------------+            +----------------------+

. "${0%/*}/../lib/lib.sh"

N=$(by_kernel 32M 4M 4M)

# queue HOST DEV: print the device's queue: peers, senders, parked, open, budget ...
queue() { in_host "$1" awk -v dev="$2" '$1 == dev { $1 = $2 = ""; print }' /proc/net/esp/dev; }
peers() { in_host "$1" awk -v dev="$2" '$1 == dev { print $3 }' /proc/net/esp/dev; }

# shared HOST DEV DEV: both devices show the connection, because they have the same queue.
shared()
{
	queue "$1" "$2"
	queue "$1" "$3"
	[ "$(peers "$1" "$2")" = 1 ] && [ "$(peers "$1" "$3")" = 1 ]
}

hosts 2
cable n0 v0 n1 v1
modprobe -q 8021q
modprobe -q macvlan
ip0 link add link v0 name v0.5 up type vlan id 5 || exit
ip1 link add link v1 name v1.5 up type vlan id 5 || exit
ip1 link add m1 link v1 up type macvlan mode bridge || exit
n0 sysctl -qw net/esp/dev/v0.5/enable=1
n1 sysctl -qw net/esp/dev/v1.5/enable=1
n1 sysctl -qw net/esp/dev/m1/enable=1

start n0 v0.5 n1 v1.5 -n 1G -p 20
check "rule 12: data come in by the VLAN" moves n1
check "rule 12: a VLAN has its lower device's queue" shared n1 v1 v1.5
check "rule 12: and so has a macvlan" shared n1 v1 m1
check "rule 12: another device has not" [ "$(peers n1 lo)" = 0 ]
end $CONNECTOR
end $LISTENER

in=$(stat n1 InData) empty=$(stat n1 OutEmpty) late=$(stat n1 AckDelayed)
check "a transfer in one direction" transfer n0 v0 n1 v1 -n "$N" -b 0
in=$(($(stat n1 InData) - in)) empty=$(($(stat n1 OutEmpty) - empty)) late=$(($(stat n1 AckDelayed) - late))
echo "# $in data packets, $empty empty ones, $late of them by a timer"
# A machine that is slow or busy lets timers send more ACKs, so leave these out.
check "rule 5: empty packets are at most one for 4" [ $((4 * (empty - late))) -le "$in" ]
finish
