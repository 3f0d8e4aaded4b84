#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tools/wireshark/esp.lua against captures: the frames of the documentation field by
# field; a transfer through a switch that loses frames, of which the dissector must tell
# what the sender's counters tell, and give back the bytes; records put together; and
# frames that are not what they should be.
#
#	+----------------+     +------------------------+     +----------------+
#	| n0          v0 +-----+ p0  n2, a bridge    p1 +-----+ v1          n1 |
#	|   tcpdump      |     |     loses 3 %          |     |                |
#	+----------------+     +------------------------+     +----------------+

. "${0%/*}/lib.sh"

LUA=$SRC/tools/wireshark/esp.lua
export HOME=$TMP	# no preferences of anybody's
# shark FILE OPTION...
shark()
{
	tshark -n -X "lua_script:$LUA" -o ethesp.checksum:TRUE -r "$@" 2>"$TMP/shark"
	local status=$?

	# That it is root's is no news.
	grep -v "^Running as user" "$TMP/shark" | comment
	return $status
}

# frames FILE FILTER: how many there are.
frames() { shark "$1" -Y "$2" -T fields -e frame.number | wc -l; }

# same WHAT A B
same() { echo "$1: $2, $3"; [ "$2" = "$3" ]; }

#
# The frames of Documentation/wire-example.txt
#

text2pcap "$SRC/Documentation/wire-example.txt" "$TMP/example.pcap" >/dev/null 2>&1
fields=(flags srcport dstport cookie pkt_seq ack_seq grant ts_val ts_ecr len option.cookie
	option.mss option.type option.packets_to_ack data checksum.good)
check "the documentation's frames are read as they are explained" same fields "$(
	shark "$TMP/example.pcap" -T fields "${fields[@]/#/-eethesp.}" -E separator=' ' | sed 's/True$/1/')" \
"0x01 50000 4660 0x00000000 3871217113 0 0 1000000 0 0 0xc0ffee01 1468 1 8  1
0x32 4660 50000 0xc0ffee01 2328313488 3871217115 32 3000000 1000250 5     68656c6c6f 1"

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

# capture FILE: what passes v0, until "captured".
capture()
{
	nsenter --net=/run/netns/n0 tcpdump -i v0 -B 65536 -U --immediate-mode -w "$1" \
		ether proto 0x88b5 2>"$TMP/tcpdump" &
	CAPTURE=$!
	until_true 20 grep -q "listening on" "$TMP/tcpdump"
}

# captured FILE: both hosts are silent, and all that passed is in it.
captured()
{
	until_true 20 no_sockets n0 n1
	kill -INT $CAPTURE
	wait $CAPTURE
	grep -E "captured|dropped" "$TMP/tcpdump" | comment
	grep -q "^0 packets dropped by kernel" "$TMP/tcpdump"
}

n0 tee /proc/sys/net/esp/time_wait_ms <<<10 >/dev/null
n1 tee /proc/sys/net/esp/time_wait_ms <<<10 >/dev/null
n2 tc qdisc add dev p0 root netem loss 3%
n2 tc qdisc add dev p1 root netem loss 3%
head -c 3000000 /dev/urandom >"$TMP/sent"

capture "$TMP/lossy.pcap"
n1 esp listen -w 60 "%v1:77" >"$TMP/received" &
LISTENER=$!
check "a transfer that loses frames" n0 esp connect -w 60 "$(mac n1 v1)%v0:77" <"$TMP/sent"
wait $LISTENER
check "what was sent is what was received" cmp "$TMP/sent" "$TMP/received"
check "the capture is whole" captured
FROM="eth.src == $(mac n0 v0)" TO="eth.dst == $(mac n0 v0)"
data="ethesp.len > 0 && ethesp.flags.rrq == 0 && $FROM"
numbered="($data || ethesp.flags.fin == 1 && $FROM)"

check "no frame is malformed" same frames "$(frames "$TMP/lossy.pcap" ethesp.malformed)" 0
check "each checksum is right" same frames \
	"$(frames "$TMP/lossy.pcap" "ethesp.checksum.good == 0 || !ethesp.checksum.good")" 0
check "data packets are those that the sender counted" same packets \
	"$(frames "$TMP/lossy.pcap" "$numbered && !ethesp.analysis.retransmission")" "$(stat n0 OutData)"
again=$(frames "$TMP/lossy.pcap" "$numbered && ethesp.analysis.retransmission")
check "those sent again, too" same packets "$again" "$(stat n0 OutRetrans)"
check "there are some" [ "$again" -gt 0 ]
check "retransmission requests" same frames \
	"$(frames "$TMP/lossy.pcap" "ethesp.rrq && $TO")" "$(stat n0 InRRQ)"
check "nothing is missing that the sender beside it sent" \
	[ "$(frames "$TMP/lossy.pcap" "ethesp.analysis.missing && $FROM")" = 0 ]
check "permission is told" [ "$(frames "$TMP/lossy.pcap" "ethesp.edge && $TO")" -gt 0 ]
check "no packet is beyond it" same packets \
	"$(frames "$TMP/lossy.pcap" ethesp.analysis.beyond)" 0
shark "$TMP/lossy.pcap" -Y "$data && !ethesp.analysis.retransmission" -T fields -e ethesp.data |
	tr -d '\n' | tr a-f A-F | basenc --base16 -di >"$TMP/shown"
check "the payloads that it shows are the bytes" cmp "$TMP/sent" "$TMP/shown"
# A round trip is of this capture's place: never negative, and some are there.
check "round trips are told" [ "$(shark "$TMP/lossy.pcap" -Y ethesp.analysis.rtt -T fields \
	-e ethesp.analysis.rtt | awk '$1 >= 0 && $1 < 10 { n++ } $1 < 0 { bad++ }
	END { print (n > 10 && !bad) ? "good" : "bad" }')" = good ]

#
# Records
#

n2 tc qdisc del dev p0 root
n2 tc qdisc del dev p1 root
capture "$TMP/records.pcap"
start n0 v0 n1 v1 -q -n 200k -b 0 -w 20000
check "records arrive" ended
check "the capture is whole" captured
bytes=$(shark "$TMP/records.pcap" -Y "ethesp.flags.eor == 1 && !ethesp.analysis.retransmission" \
	-T fields -e ethesp.reassembled -e ethesp.len |
	awk -F'\t' '{ n += $1 != "" ? $1 : $2 } END { print n + 0 }')
check "put together they are all bytes" same bytes "$bytes" 204800

#
# With a CRC32c
#

capture "$TMP/crc.pcap"
start n0 v0 n1 v1 -C -n 50k
check "a transfer with a CRC" ended
check "the capture is whole" captured
crcs=$(frames "$TMP/crc.pcap" "ethesp.crc.good == 1")
check "each CRC is right" same frames "$crcs" "$(frames "$TMP/crc.pcap" ethesp.crc)"
check "all frames but SYNs have one" same frames "$crcs" \
	"$(frames "$TMP/crc.pcap" "ethesp && ethesp.flags.syn == 0")"

#
# Not as they should be
#

# says WORDS SED: of the documentation's data frame with other bytes.
says()
{
	sed '1,/frame data/d' "$SRC/Documentation/wire-example.txt" | sed "$2" >"$TMP/broken.txt"
	text2pcap "$TMP/broken.txt" "$TMP/broken.pcap" >/dev/null 2>&1
	shark "$TMP/broken.pcap" -T fields -e _ws.expert.message -e _ws.col.Info >"$TMP/said"
	grep -q -- "$1" "$TMP/said" || { cat "$TMP/said"; false; }
}

check "another version is no header" says "unknown version" 's/^000e  18/000e  28/'
check "nor is one that is too short" says "below 32" 's/^000e  18/000e  17/'
check "a length beyond the frame is told" says "ends before" 's/^002a  00 05/002a  01 05/'
check "port 0 is told" says "port 0" 's/^0012  12 34/0012  00 00/'
check "flags that contradict the payload are told" says "payload where" 's/^000f  32/000f  03/'
check "an RRQ without ranges is told" says "ranges" 's/^000f  32/000f  82/'
check "a wrong checksum is told" says "Checksum is wrong" 's/68 65 6c/69 65 6c/'
check "an option that overruns is told" says "bad length" 's/^000e  18/000e  19/
	s/68 65 6c 6c 6f/02 09 6c 6c 68 65 6c 6c 6f/; s/00 00 00 00 00 00 00 00 00 /00 00 00 00 00 /'
finish
