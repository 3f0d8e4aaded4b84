#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two machines with different kernels, over virtio: both speak the same protocol.
# Started in both by "vm pair", with ROLE, DEV and PEER_MAC.
#
#	+-------------------+             +-------------------+
#	| a            $DEV +-- virtio ---+ $DEV            b |
#	| stream listen     |             | stream connect    |
#	+-------------------+             +-------------------+

. "${0%/*}/../lib/lib.sh"

meet() { "$SRC/selftests/harness/barrier" "pair-$1"; }

# exchange OPTION...: transfer data over a connection from b to a.
exchange()
{
	PORT=$((PORT + 1))
	if [ "$ROLE" = a ]; then
		stream "$@" listen "%$DEV:$PORT"
	else
		stream "$@" connect "$PEER_MAC%$DEV:$PORT"
	fi
}

check "$ROLE: $DEV is enabled" esp dev enable "$DEV"
meet enabled || exit
check "$ROLE: 8M in both directions, clean, Linux $(uname -r)" exchange -n 8M
check "$ROLE: records, clean" exchange -q -n 1M
check "$ROLE: 1M in both directions, with a CRC" exchange -C -n 1M
# polled: print the frames that readers have taken from the device themselves.
polled()
{
	awk '$1 != "TcpExt:" { next }
		!n { for (i = 2; i <= NF; i++) if ($i == "BusyPollRxPackets") n = i; next }
		{ print $n }' /proc/net/netstat
}

# A reader polls until the answer comes, also on a busy machine: for a second at most.
sysctl -qw net.core.busy_read=1000000 || exit
before=$(polled)
if [ "$ROLE" = b ]; then
	speed -b ":$DEV" -L &
	server=$!
fi
meet busy || exit
[ "$ROLE" = b ] ||
	check "a: messages there and back, by readers that poll the device" speed -a ":$DEV" -c 10.9.0.2 -n 200 esp pingpong
meet polled || exit
[ "$ROLE" = a ] || kill "$server"
check "$ROLE: ... and take frames from it" [ "$(polled)" -gt "$((before + 20))" ]
sysctl -qw net.core.busy_read=0
tc qdisc add dev "$DEV" root netem limit 10000 delay 1ms reorder 25% loss 5% duplicate 5% corrupt 1% || exit
meet netem || exit
check "$ROLE: 2M in both directions, with loss, duplicates, reordering and corruption" exchange -n 2M
check "$ROLE: 1M, with a CRC" exchange -C -n 1M
check "$ROLE: packets were sent again" [ "$(awk '$1 == "OutRetrans" { print $2 }' /proc/net/esp/stat)" -gt 0 ]
meet done || exit
tc qdisc del dev "$DEV" root
finish
