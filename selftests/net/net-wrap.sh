#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The numbers of packets go on at 0 after 2^32 - 1 ("Exactness" in protocol.rst). The test needs
# a build of the module whose connections all begin at most 64 packets before 0 (vm, variant
# "delays"). GSO packets and single packets cross 0, also with loss, duplicates and reordering.
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+
#
#	net-wrap.sh [long]	more transfers

. "${0%/*}/../lib/lib.sh"

TIMES=$(by_kernel 8 5 8)
[ "$1" != long ] || TIMES=20
SHORT=200k	# more packets than are left before 0, also as records

# numbers HOST: print the packets that its connection has received and its recv_seq, at one time.
numbers()
{
	in_host "$1" esp show -e |
		sed -n 's/.* recv_seq:\([0-9]*\) .* rx_packets:\([0-9]*\).*/\2 \1/p' | head -1
}

# crosses: the packet numbers of a transfer cross 0, over a link that loses nothing.
crosses()
{
	local h came before after

	slow_start n0 v0 n1 v1
	moves n0 200 && moves n1 200 || return
	# Stop both programs while their numbers are read.
	kill -STOP "$CONNECTOR" "$LISTENER"
	until_true 60 still || return
	for h in n0 n1; do
		read -r came after <<<"$(numbers $h)" && [ "$after" ] || return
		before=$(((came - after) & 0xffffffff))
		echo "$h: $before packets before 0, $after behind it"
		[ "$before" -le 64 ] && [ "$after" -lt 1000000 ] || return
	done
	kill -CONT "$CONNECTOR" "$LISTENER"
	enough
}

# still: no data arrive any more.
still()
{
	local came

	came=$(stat n0 InData) came+=$(stat n1 InData)
	sleep 0.2
	[ "$came" = "$(stat n0 InData)$(stat n1 InData)" ]
}

# short_ones [OPTION]: make many transfers, each across 0.
short_ones()
{
	local i

	for ((i = 0; i < TIMES; i++)); do
		transfer n0 v0 n1 v1 -n $SHORT -s $i "$@" >"$TMP/short" || { cat "$TMP/short"; return 1; }
	done
}

hosts 2
cable n0 v0 n1 v1
check "both directions go from 2^32 - 1 to 0" crosses
check "$TIMES transfers across it, super-packets" short_ones
ip0 link set v0 gso_max_segs 1
ip1 link set v1 gso_max_segs 1
check "... single packets" short_ones
for end in "n0 v0" "n1 v1"; do
	read -r h dev <<<"$end"
	in_host "$h" tc qdisc add dev "$dev" root netem limit 10000 delay 1ms reorder 25% loss 5% duplicate 5% || exit
done
check "... with loss, duplicates and reordering" short_ones
check "... records" short_ones -q -w 5000
for h in n0 n1; do
	for counter in InDuplicate InOutOfOrder OutRetrans; do
		check "$h: $counter counted" [ "$(stat "$h" $counter)" -gt 0 ]
	done
done
ip0 link set v0 gso_max_segs 65535
ip1 link set v1 gso_max_segs 65535
check "... super-packets that are lost" short_ones
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
