#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Capture transfers for dissector.sh: one through a switch that loses frames, transmissions of
# several packets, records, a transfer with a CRC32c, and GSO packets.
#
#	+----------------+     +------------------------+     +----------------+
#	| n0          v0 +-----+ p0  n2, a bridge    p1 +-----+ v1          n1 |
#	|   tcpdump      |     |     loses 3 %          |     |   tcpdump      |
#	+----------------+     +------------------------+     +----------------+
#
#	net-capture.sh DIRECTORY
#
# DIRECTORY gets the captures (*.pcap), the bytes (sent), and what the counters say (counted).

. "${0%/*}/../lib/lib.sh"

#
# A transfer with losses
#

hosts 3
cable n0 v0 n2 p0
cable n1 v1 n2 p1
ip2 link add bridge up type bridge
ip2 link set p0 master bridge
ip2 link set p1 master bridge
for host in n0 n1; do
	in_host $host ethtool -K v${host#n} gro off tso off gso off tx-sctp-segmentation off
done

# capture FILE [FILE]: capture the frames that pass v0, and v1, until "captured".
capture()
{
	local i=0 file

	CAPTURES=() BEFORE=()
	for file; do
		rm -f "$TMP/tcpdump$i"
		nsenter --net=/run/netns/n$i tcpdump -i v$i -B 65536 -U --immediate-mode \
			-w "$file" ether proto 0x88b5 2>"$TMP/tcpdump$i" &
		CAPTURES+=($!)
		until_true 60 grep -q "listening on" "$TMP/tcpdump$i"
		# Frames that came before the filter was set are counted, but not captured.
		until_true 60 counts "$i" >"$TMP/counts"
		BEFORE+=("$(awk '{ print $2 - $1 }' "$TMP/counts")")
		i=$((i + 1))
	done
}

# counts N: print the packets captured, received by the filter, and dropped so far.
counts()
{
	kill -USR1 "${CAPTURES[$1]}"
	sleep 0.1
	# "tcpdump: N packets captured, N packets received by filter, 0 packets dropped by kernel"
	tail -n 1 "$TMP/tcpdump$1" | awk '/ dropped by kernel$/ { print $2, $5, $10; ok = 1 } END { exit !ok }'
}

# caught_up N: tcpdump has written all packets that the kernel had for it.
caught_up() { counts "$1" | awk -v before="${BEFORE[$1]}" '{ ok = $2 - $1 == before && !$3 } END { exit !ok }'; }

# captured: wait until both hosts are silent and the files have all frames; stop capturing.
captured()
{
	local i status=0

	until_true 60 no_sockets n0 n1
	for i in "${!CAPTURES[@]}"; do
		until_true 60 caught_up "$i" || status=1
		kill -INT "${CAPTURES[i]}"
		wait "${CAPTURES[i]}"
		tail -n 3 "$TMP/tcpdump$i"
	done
	return $status
}

# receiver: start the receiver of the next transfer, $LISTENER, and wait until it listens.
receiver()
{
	n1 esp listen -w 60 "%v1:79" >"$TMP/received" &
	LISTENER=$!
	until_true 60 eval 'n1 esp show -l | grep -q ":79\b"'
}

n0 tee /proc/sys/net/esp/time_wait_ms <<<10 >/dev/null
n1 tee /proc/sys/net/esp/time_wait_ms <<<10 >/dev/null
n2 tc qdisc add dev p0 root netem loss 3%
n2 tc qdisc add dev p1 root netem loss 3%
head -c 3000000 /dev/urandom >"$TMP/sent"

capture "$TMP/lossy.pcap" "$TMP/behind.pcap"
receiver
check "a transfer that loses frames" n0 esp connect -w 60 "$(mac n1 v1)%v0:79" <"$TMP/sent"
wait $LISTENER
check "what was sent is what was received" cmp "$TMP/sent" "$TMP/received"
check "the capture is whole" captured
counted=$(echo "mine=$(mac n0 v0) out=$(stat n0 OutData) retrans=$(stat n0 OutRetrans) rrq=$(stat n0 InRRQ)")

#
# Transmissions of several packets
#

n2 tc qdisc del dev p0 root
n2 tc qdisc del dev p1 root
head -c 100000 "$TMP/sent" >"$TMP/part"
capture "$TMP/whole.pcap"
receiver
check "a transfer in transmissions of several packets" n0 esp connect -w 60 -b 8000 "$(mac n1 v1)%v0:79" <"$TMP/part"
wait $LISTENER
check "the capture is whole" captured

#
# Records
#

capture "$TMP/records.pcap"
start n0 v0 n1 v1 -q -n 200k -b 0 -w 20000
check "records arrive" ended
check "the capture is whole" captured

#
# With a CRC32c
#

capture "$TMP/crc.pcap"
start n0 v0 n1 v1 -C -n 50k
check "a transfer with a CRC" ended
check "the capture is whole" captured

#
# GSO packets: as they leave the sender, and as the receiver coalesces them
#

n0 ethtool -K v0 gso on tx-sctp-segmentation on || exit
n2 ethtool -K p1 tso off tx-sctp-segmentation off || exit
n1 ethtool -K v1 gro on || exit
out=$(stat n0 OutData)
head -c 1000000 "$TMP/sent" >"$TMP/part"
capture "$TMP/leave.pcap" "$TMP/come.pcap"
receiver
check "a transfer in super-packets" n0 esp connect -w 60 "$(mac n1 v1)%v0:79" <"$TMP/part"
wait $LISTENER
check "what was sent is what was received" cmp "$TMP/part" "$TMP/received"
check "the captures are whole" captured
out=$(($(stat n0 OutData) - out))
echo "$counted gso=$out" >"$TMP/counted"
check "the captures can be kept" cp "$TMP"/*.pcap "$TMP/sent" "$TMP/counted" "$1"
finish
