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
	grep -v "^Running as user" "$TMP/shark" | comment >&2
	return $status
}

# look FILE: what tshark, which takes long to start, tells of each frame, into $TMP/table.
look()
{
	local columns=(eth.src ethesp.len ethesp.flags.rrq ethesp.flags.fin ethesp.flags.syn
		ethesp.flags.eor ethesp.analysis.retransmission ethesp.analysis.missing
		ethesp.analysis.beyond ethesp.edge ethesp.malformed ethesp.checksum.good ethesp.crc
		ethesp.crc.good ethesp.analysis.rtt ethesp.reassembled ethesp.data)

	shark "$1" -T fields "${columns[@]/#/-e}" -E separator=, -E occurrence=f |
		sed 's/True/1/g; s/False/0/g' >"$TMP/table"
}

# table PROGRAM: awk, with these columns by name; "data" is a data packet of n0's.
table()
{
	awk -F, -v mine="$(mac n0 v0)" '
		{ src = $1; len = $2; rrq = $3; fin = $4; syn = $5; eor = $6; again = $7; missing = $8
		  beyond = $9; edge = $10; bad = $11; good = $12; crc = $13; crc_good = $14
		  rtt = $15; whole = $16; payload = $17
		  data = len > 0 && rrq == 0 && src == mine }'"$1" "$TMP/table"
}

# frames CONDITION: how many there are.
frames() { table "$1 { n++ } END { print n + 0 }"; }

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
	rm -f "$TMP/tcpdump"
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
look "$TMP/lossy.pcap"
numbered='(data || fin == 1 && src == mine)'

check "no frame is malformed" same frames "$(frames bad)" 0
check "each checksum is right" same frames "$(frames 'good == 1')" "$(wc -l <"$TMP/table")"
check "data packets are those that the sender counted" same packets \
	"$(frames "$numbered && !again")" "$(stat n0 OutData)"
again=$(frames "$numbered && again")
check "those sent again, too" same packets "$again" "$(stat n0 OutRetrans)"
check "there are some" [ "$again" -gt 0 ]
check "retransmission requests" same frames "$(frames 'rrq == 1 && src != mine')" "$(stat n0 InRRQ)"
check "nothing is missing that the sender beside it sent" same frames \
	"$(frames 'missing && src == mine')" 0
check "permission is told" [ "$(frames 'edge && src != mine')" -gt 0 ]
check "no packet is beyond it" same packets "$(frames beyond)" 0
table 'data && !again { printf "%s", toupper(payload) }' | basenc --base16 -di >"$TMP/shown"
check "the payloads that it shows are the bytes" cmp "$TMP/sent" "$TMP/shown"
# A round trip is of this capture's place: never negative, and some are there.
check "round trips are told" [ "$(frames 'rtt != "" && rtt >= 0 && rtt < 10')" -gt 10 ]
check "none is negative" same frames "$(frames 'rtt != "" && rtt < 0')" 0

#
# Transmissions, given to who is registered for the port
#

n2 tc qdisc del dev p0 root
n2 tc qdisc del dev p1 root
cat >"$TMP/whole.lua" <<-'END'
	local whole = Proto("whole", "What a subdissector is given")
	local bytes = ProtoField.bytes("whole.bytes", "Bytes")

	whole.fields = { bytes }
	function whole.dissector(tvb, pinfo, tree)
		tree:add(whole, tvb()):add(bytes, tvb())
		return tvb:len()
	end
	DissectorTable.get("ethesp.port"):add(79, whole)
END
head -c 100000 "$TMP/sent" >"$TMP/part"
capture "$TMP/whole.pcap"
n1 esp listen -w 60 "%v1:79" >"$TMP/received" &
LISTENER=$!
check "a transfer in transmissions of several packets" n0 esp connect -w 60 -b 8000 "$(mac n1 v1)%v0:79" <"$TMP/part"
wait $LISTENER
check "the capture is whole" captured
shark "$TMP/whole.pcap" -X "lua_script:$TMP/whole.lua" -T fields -e whole.bytes |
	awk 'length($1) { n++; printf "%s", toupper($1) } END { print n + 0 >"/dev/stderr" }' 2>"$TMP/pieces" |
	basenc --base16 -di >"$TMP/shown"
check "a subdissector is given all bytes, in order" cmp "$TMP/part" "$TMP/shown"
pieces=$(<"$TMP/pieces")
echo "# $pieces pieces"
check "... put together" [ "$pieces" -gt 0 -a "$pieces" -le 25 ]

#
# Records
#

capture "$TMP/records.pcap"
start n0 v0 n1 v1 -q -n 200k -b 0 -w 20000
check "records arrive" ended
check "the capture is whole" captured
look "$TMP/records.pcap"
check "put together they are all bytes" same bytes \
	"$(table 'eor == 1 && !again { n += whole != "" ? whole : len } END { print n + 0 }')" 204800

#
# With a CRC32c
#

capture "$TMP/crc.pcap"
start n0 v0 n1 v1 -C -n 50k
check "a transfer with a CRC" ended
check "the capture is whole" captured
look "$TMP/crc.pcap"
check "some frames have a CRC" [ "$(frames crc)" -gt 0 ]
check "each CRC is right" same frames "$(frames 'crc_good == 1')" "$(frames crc)"
check "all frames but SYNs have one" same frames "$(frames crc)" "$(frames 'syn == 0')"

#
# Not as they should be: the documentation's data frame with other bytes
#

cases=(
	'another version is no header|unknown version|s/^000e  18/000e  28/'
	'nor is one that is too short|below 32|s/^000e  18/000e  17/'
	'a length beyond the frame is told|ends before|s/^002a  00 05/002a  01 05/'
	'port 0 is told|port 0|s/^0012  12 34/0012  00 00/'
	'flags that contradict the payload are told|payload where|s/^000f  32/000f  03/'
	'an RRQ without ranges is told|ranges|s/^000f  32/000f  82/'
	'a wrong checksum is told|Checksum is wrong|s/68 65 6c/69 65 6c/'
	'an option that overruns is told|bad length|s/^000e  18/000e  19/; s/68 65 6c 6c 6f/02 09 6c 6c 68 65 6c 6c 6f/; s/00 00 00 00 00 00 00 00 00 /00 00 00 00 00 /'
)
for case in "${cases[@]}"; do
	sed '1,/frame data/d' "$SRC/Documentation/wire-example.txt" | sed "${case##*|}"
done >"$TMP/broken.txt"
text2pcap "$TMP/broken.txt" "$TMP/broken.pcap" >/dev/null 2>&1
shark "$TMP/broken.pcap" -T fields -e _ws.expert.message >"$TMP/said"
mapfile -t said <"$TMP/said"
for i in "${!cases[@]}"; do
	IFS='|' read -r text words _ <<<"${cases[i]}"
	check "$text" grep -F -- "$words" <<<"${said[i]}"
done
finish
