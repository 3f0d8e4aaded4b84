#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# "Must hold, whatever is lost, reordered, duplicated, delayed": both directions
# at once over a clean link, then over a link that does all of that in both
# directions.  Rules 8, 10, 17 and 19 repair it; every byte is compared.
#
#	+--------------+                  +--------------+
#	| n0        v0 +------- veth -----+ v1        n1 |
#	|        netem | ---------------> |              |
#	|              | <--------------- | netem        |
#	+--------------+                  +--------------+
#
#	net-lossy.sh [long]

. "${0%/*}/../lib/lib.sh"

hosts 2
cable n0 v0 n1 v1

if [ "$1" = long ]; then
	clean=$(by_kernel 1G 64M 32M)
	lossy=$(by_kernel 1G 64M 64M)
else
	clean=$(by_kernel 1G 64M 32M)
	lossy=$(by_kernel 64M 4M 4M)
fi

check "$clean in both directions, clean" transfer n0 v0 n1 v1 -n "$clean"
check "records, clean" transfer n0 v0 n1 v1 -q -n "$(by_kernel 64M 2M 4M)"

# Netem loses a frame at a time, so no GSO packets.
ip0 link set v0 gso_max_segs 1
ip1 link set v1 gso_max_segs 1
for end in "n0 v0" "n1 v1"; do
	read -r h dev <<<"$end"
	in_host "$h" tc qdisc add dev "$dev" root netem limit 10000 delay 1ms reorder 25% \
		loss 5% duplicate 5% corrupt 1% || exit
done
check "$lossy in both directions, with loss, duplicates, reordering and corruption" \
	transfer n0 v0 n1 v1 -n "$lossy"
check "records, with the same" transfer n0 v0 n1 v1 -q -n "$(by_kernel 8M 1M 1M)" -w 20000

# The counters prove that the link was not clean.
for h in n0 n1; do
	for counter in InChecksum InDuplicate InOutOfOrder OutRetrans; do
		check "$h: $counter counted" [ "$(stat $h $counter)" -gt 0 ]
	done
done
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
