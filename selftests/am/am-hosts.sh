# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced after lib.sh: the hosts on which Active Messages are measured, n0 and, with the server,
# n1, and its addresses. And a cable for RDMA verbs (net-verbs.sh has a picture).

EDP='' ESP='' UDP='' VERBS=verbs:10.9.0.2:4700
export LD_LIBRARY_PATH=$BUILD

am_hosts()
{
	local i

	hosts 2
	for i in 0 1; do
		in_host n$i sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	done
	cable n0 v0 n1 v1
	for i in 0 1; do
		ip -n n$i addr add 10.9.0.$((i + 1))/24 dev v$i
		# As with UDP: no checksums are computed within a machine.
		in_host n$i sysctl -qw net.esp.dev.v$i.tx_checksum=1
	done
	EDP="edp:$(mac n1 v1)%v0" UDP=udp:10.9.0.2
	ESP="esp:${EDP#edp:}"
}

# am_serve: start the server, and return when it answers.
am_serve()
{
	rm -f "$TMP/serve"	# of a former server
	nsenter --net=/run/netns/n1 am logp --serve edp:%v1 esp:%v1 "$UDP" >"$TMP/serve" 2>&1 &
	until_true 60 counted_lines 3 "$TMP/serve"
}

# counted_lines N FILE: FILE has N lines at least.
counted_lines() { [ -e "$2" ] && [ "$(wc -l <"$2")" -ge "$1" ]; }

# The routes, which leave with the link.
ROUTES='ip route replace 10.9.0.2 dev v0 table 100 && ip route replace 10.9.0.1 dev v1 table 101'
cable_of_verbs()
{
	local i

	modprobe -a veth rdma_rxe || return
	sysctl -qw net.ipv4.conf.{all,default}.rp_filter=0 net.ipv4.conf.{all,default}.accept_local=1
	ip link add v0 type veth peer name v1 || return
	for i in 0 1; do
		ip addr add 10.9.0.$((i + 1))/24 dev v$i && ip link set v$i up &&
			ip neigh replace 10.9.0.$((2 - i)) dev v$i nud permanent \
				lladdr "$(<"/sys/class/net/v$((1 - i))/address")" || return
		# Packets that come in are for this host; packets that leave take the cable.
		ip rule add pref 1$i iif v$i lookup local &&
			ip rule add pref 2$i to 10.9.0.$((2 - i)) lookup 10$i &&
			ip route add unreachable 10.9.0.$((2 - i)) table 10$i metric 1000 || return
	done
	ip rule add pref 100 lookup local && ip rule del pref 0 && eval "$ROUTES" || return
	rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1
}

verbs_serve()
{
	rm -f "$TMP/serve-verbs"
	am logp --serve "$VERBS" >"$TMP/serve-verbs" 2>&1 &
	until_true 60 grep -qsx "$VERBS" "$TMP/serve-verbs"
}
