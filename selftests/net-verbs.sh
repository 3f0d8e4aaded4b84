#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Active Messages over RDMA verbs: soft RoCE on both ends of a veth. All in one namespace, for soft
# RoCE before Linux 7 knows but the first; what is for the other end takes the cable all the same.
#
#	net-verbs.sh [OPTION...]		of sock-verbs, as -t NAME
#	net-verbs.sh logp [OPTION...]		of am logp: measures, and UDP likewise
#
#	+---------------------------------------------------+
#	| 10.9.0.1 rxe0 v0 +--- veth ----+ v1 rxe1 10.9.0.2 |
#	+---------------------------------------------------+

. "${0%/*}/lib.sh"
export LD_LIBRARY_PATH=$BUILD AM_VERBS='10.9.0.1 10.9.0.2' AM_NAMED=verbs:10.9.0.2:4800

# Routes go with the link; then there is none.
ROUTES='ip route replace 10.9.0.2 dev v0 table 100 && ip route replace 10.9.0.1 dev v1 table 101'
export AM_DOWN='ip link set v0 down' AM_UP="ip link set v0 up && $ROUTES"
export AM_SLOW='tc qdisc add dev v0 root tbf rate 4mbit burst 2000 limit 1000000' AM_FAST='tc qdisc del dev v0 root'

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
		# What comes in is for this host; what leaves takes the cable.
		ip rule add pref 1$i iif v$i lookup local &&
			ip rule add pref 2$i to 10.9.0.$((2 - i)) lookup 10$i &&
			ip route add unreachable 10.9.0.$((2 - i)) table 10$i metric 1000 || return
	done
	ip rule add pref 100 lookup local && ip rule del pref 0 && eval "$ROUTES" || return
	rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1
}

# All that the device has sent, but for what found no cable.
took_the_cable()
{
	local frames packets

	frames=$(</sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)
	packets=$(</sys/class/net/v0/statistics/tx_packets)
	echo "$frames frames, $packets packets"
	[ "$frames" -gt 10 ] && [ "$packets" -gt $((frames / 2)) ]
}

am_serve()
{
	am logp --serve udp:10.9.0.2 verbs:10.9.0.2:4700 >"$TMP/serve" 2>&1 &
	until_true 60 grep -x verbs:10.9.0.2:4700 "$TMP/serve"
}

named_serve()
{
	am-named -f "$TMP/names" "$AM_NAMED" >"$TMP/named" 2>&1 &
	until_true 60 grep -x "$AM_NAMED" "$TMP/named"
}

measured()
{
	local got

	am logp -j -t 60000 -r 6 -m 32 -z 0,2000 verbs:10.9.0.2:4700 >"$TMP/json" || return
	got=$(sed -n 's/.*"transport": "verbs", "protocol": "\([a-z]*\)".*/\1/p' "$TMP/json" | tr '\n' ' ')
	echo "$got"
	[ "$got" = 'nway oneway amvia amudp ' ]
}

# messages [OPTION...]: a name that no test has is no success.
messages()
{
	sock-verbs "$@" | tee "$TMP/messages"
	[ "${PIPESTATUS[0]}" = 0 ] && grep -q '^ok ' "$TMP/messages"
}

if [ "$1" = logp ]; then
	cable_of_verbs && am_serve >/dev/null || exit
	FINISHED=1
	am "$@" verbs:10.9.0.2:4700 udp:10.9.0.2
	exit
fi
check "two devices and a cable" cable_of_verbs
check_fails "without the library" "Can not access a needed shared library" \
	env -u LD_LIBRARY_PATH am logp --serve verbs:10.9.0.2
check_fails "without a device" "No such device" am logp --serve verbs:127.0.0.1
check_fails "nobody there" "no answer" am logp -t 200 -p nway verbs:10.9.0.2
check "the name server answers" named_serve
check "messages" messages "$@"
check "the server of am logp answers" am_serve
check "each protocol is measured" measured
check "all of it took the cable" took_the_cable
finish
