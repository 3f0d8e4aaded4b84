#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# ESP_CRC32C where frames are damaged: both directions at once, every byte is compared.
# The checksum, too, detects bits that flip on the way. Only the CRC detects damage between
# the computation of the CRC and that of the checksum.
#
#	+--------------+                  +--------------+
#	| n0        v0 +------- veth -----+ v1        n1 |
#	|     netem,   | ---------------> |              |
#	|     pedit    | <--------------- |   the same   |
#	+--------------+                  +--------------+

. "${0%/*}/../lib/lib.sh"

N=$(by_kernel 8M 1M 1M)

hosts 2
cable n0 v0 n1 v1

# damage COMMAND...: run tc COMMAND at both ends.
damage()
{
	local i cmd

	for i in 0 1; do
		cmd=("${@//DEV/v$i}")
		in_host n$i tc "${cmd[@]}" || exit
	done
}

# refused HOST: print how many frames the CRC refused, and how many the checksum refused.
refused() { echo "$(stat "$1" InCRC) $(stat "$1" InChecksum)"; }

# by_crc HOST BEFORE: since BEFORE the CRC has refused frames, and the checksum none.
by_crc()
{
	local before now
	read -ra before <<<"$2"
	read -ra now <<<"$(refused "$1")"
	echo "InCRC: $((now[0] - before[0])), InChecksum: $((now[1] - before[1]))"
	[ "${now[0]}" -gt "${before[0]}" ] && [ "${now[1]}" = "${before[1]}" ]
}

check "$N in both directions, with a CRC" transfer n0 v0 n1 v1 -C -n "$N"
check "records" transfer n0 v0 n1 v1 -C -q -n 1M
check "no super-packets" [ "$(stat n0 OutGsoFrames InGsoFrames)" = 0 ]

# Damage one bit of some frames, after the checksum was computed.
damage qdisc add dev DEV root netem limit 10000 delay 1ms loss 1% corrupt 2%
check "frames with a wrong bit" transfer n0 v0 n1 v1 -C -n "$N"
check "... records" transfer n0 v0 n1 v1 -C -q -n 1M -w 20000
for h in n0 n1; do
	check "$h: InChecksum counted" [ "$(stat $h InChecksum)" -gt 0 ]
done
damage qdisc del dev DEV root

# Damage one byte of every twentieth frame, before the checksum: with tx_checksum no checksum is
# computed within this machine. Without GSO packets, so that every twentieth packet is hit.
for i in 0 1; do
	in_host n$i tee /proc/sys/net/esp/dev/v$i/tx_checksum <<<1 >/dev/null || exit
	ip -n n$i link set v$i gso_max_segs 1 || exit
done
damage qdisc add dev DEV clsact
damage filter add dev DEV egress matchall action gact ok random determ pipe 20 \
	action pedit munge offset 120 u8 invert pipe action ok
check_fails "a byte before the checksum: nobody notices" "wrong byte" transfer n0 v0 n1 v1 -b 0 -n "$N"
before0=$(refused n0) before1=$(refused n1)
check "... with a CRC" transfer n0 v0 n1 v1 -C -n "$N"
check "n0: by the CRC alone" by_crc n0 "$before0"
check "n1: by the CRC alone" by_crc n1 "$before1"
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
