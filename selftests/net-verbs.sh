#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Active Messages over RDMA verbs: soft RoCE on both ends of a veth. All in one namespace, for soft
# RoCE before Linux 7 knows but the first; what is for the other end takes the cable all the same.
#
#	+----------------------------------------------+
#	| 10.9.0.1 rxe0 v0 +--- veth ----+ v1 rxe1 10.9.0.2 |
#	+----------------------------------------------+

. "${0%/*}/lib.sh"
export LD_LIBRARY_PATH=$BUILD AM_VERBS='10.9.0.1 10.9.0.2'

# A route goes with the link.
routes()
{
	ip route replace 10.9.0.2 dev v0 table 100 &&
		ip route replace 10.9.0.1 dev v1 table 101
}

cable_of_verbs()
{
	local m0 m1

	modprobe -a veth rdma_rxe || return
	sysctl -qw net.ipv4.conf.{all,default}.rp_filter=0 net.ipv4.conf.{all,default}.accept_local=1
	ip link add v0 type veth peer name v1 || return
	ip addr add 10.9.0.1/24 dev v0 && ip addr add 10.9.0.2/24 dev v1 || return
	ip link set v0 up && ip link set v1 up || return
	m0=$(</sys/class/net/v0/address) m1=$(</sys/class/net/v1/address)
	ip neigh replace 10.9.0.2 lladdr "$m1" dev v0 nud permanent || return
	ip neigh replace 10.9.0.1 lladdr "$m0" dev v1 nud permanent || return
	# What comes in is for this host; what leaves takes the cable.
	ip rule add pref 10 iif v0 lookup local && ip rule add pref 11 iif v1 lookup local || return
	ip rule add pref 20 to 10.9.0.2 lookup 100 && ip rule add pref 21 to 10.9.0.1 lookup 101 || return
	ip rule add pref 100 lookup local && ip rule del pref 0 && routes || return
	rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1
}

# sent DEVICE: frames.
sent() { cat "/sys/class/net/$1/statistics/tx_packets"; }

AM_DOWN='ip link set v1 down'
AM_UP="ip link set v1 up && $(declare -f routes | tr '\n' ' '); routes"
export AM_DOWN AM_UP

check "two devices and a cable" cable_of_verbs
rdma link
before=$(sent v0)
check "messages" sock-verbs
check "... took the cable" [ "$(sent v0)" -gt $((before + 10000)) ]
finish
