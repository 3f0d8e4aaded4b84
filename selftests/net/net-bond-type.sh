#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A device that changes its type: a bond takes that of its first slave, and a tunnel's addresses have
# 16 bytes, not 6. It needs a kernel with bonds and tunnels (state-machine.rst, "Devices").
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+

. "${0%/*}/../lib/lib.sh"

N=256k		# a short transfer

carries_esp() { in_host n0 esp show dev | grep -q "^bond0 "; }
says_no_device()
{
	! in_host n0 esp connect "$PEER%bond0:2000" </dev/null 2>"$TMP/no" && grep "No such device" "$TMP/no"
}

hosts 2
cable n0 v0 n1 v1
PEER=$(mac n1 v1)
modprobe ip6_gre && modprobe bonding || exit

ip0 link add tunnel type ip6gre local fd00::1 remote fd00::2 || exit
ip0 link add bond0 type bond || exit
ip0 link set bond0 up
enable n0 bond0
ip0 link add link bond0 name bond0.5 type vlan id 5
check "a bond under a VLAN takes no tunnel" eval '! ip0 link set tunnel master bond0'
check "... and carries ESP as before" carries_esp
ip0 link delete bond0.5
check "a tunnel that can't be taken" eval '! ip0 link set tunnel master bond0'
ip0 link set bond0 up
check "... leaves it as it was" carries_esp
ip0 link delete bond0
ip0 link add bond0 type bond mode active-backup
ip0 link set bond0 up
enable n0 bond0
check "a tunnel that can be taken" ip0 link set tunnel master bond0
check "... ends ESP there" eval '! carries_esp'
check "... so nothing is sent by it" says_no_device
ip0 link set tunnel nomaster
ip0 link set v0 down
check "the bond takes an Ethernet device again" ip0 link set v0 master bond0
ip0 link set bond0 up
enable n0 bond0
check "... and carries ESP" transfer n0 bond0 n1 v1 -n "$N"
finish
