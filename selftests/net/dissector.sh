#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Test tools/wireshark/esp.lua: the frames of the documentation field by field; captures that
# net-capture.sh takes in a guest, where the dissector must agree with the sender's counters and
# give back the bytes, also out of order and with gaps; and malformed frames. Runs on the host,
# because tshark takes long to start in a guest.
#
#	dissector.sh KERNEL

SRC=$(cd "$(dirname "$0")/../.." && pwd)
. "$SRC/selftests/lib/lib.sh"
# shellcheck source=selftests/harness/fetch.sh
. "$SRC/selftests/harness/fetch.sh"
need tshark
CAPTURES=$SRC/build/captures
LUA=$SRC/tools/wireshark/esp.lua

# shark FILE OPTION...: tshark with the dissector, and without the user's preferences.
shark()
{
	HOME=$TMP tshark -n -X "lua_script:$LUA" -o ethesp.checksum:TRUE -r "$@" 2>"$TMP/shark"
	local status=$?

	# Hide the warning that it runs as root.
	grep -v "^Running as user" "$TMP/shark" | comment >&2
	return $status
}

# look FILE: write tshark's fields of each frame to $TMP/table, once because tshark starts slowly.
look()
{
	local columns=(eth.src ethesp.len ethesp.flags.rrq ethesp.flags.fin ethesp.flags.syn
		ethesp.flags.eor ethesp.analysis.retransmission ethesp.analysis.missing
		ethesp.analysis.beyond ethesp.edge ethesp.malformed ethesp.checksum.good ethesp.crc
		ethesp.crc.good ethesp.analysis.rtt ethesp.reassembled ethesp.data)

	shark "$1" -T fields "${columns[@]/#/-e}" -E separator=, -E occurrence=f |
		sed 's/True/1/g; s/False/0/g' >"$TMP/table"
}

# table PROGRAM: run awk with these columns by name; "data" means a data packet from n0.
table()
{
	awk -F, -v mine="$mine" '
		{ src = $1; len = $2; rrq = $3; fin = $4; syn = $5; eor = $6; again = $7; missing = $8
		  beyond = $9; edge = $10; bad = $11; good = $12; crc = $13; crc_good = $14
		  rtt = $15; whole = $16; payload = $17
		  data = len > 0 && rrq == 0 && src == mine }'"$1" "$TMP/table"
}

# frames CONDITION: print the number of frames for which it holds.
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

rm -rf "$CAPTURES"
mkdir -p "$CAPTURES"
"$SRC/selftests/harness/vm" run "$1" --time 300 -- selftests/net/net-capture.sh "$CAPTURES" |
	sed -E 's/^((not )?ok) [0-9]+/\1/'
check "the guest has the captures" [ "${PIPESTATUS[0]}" = 0 ]
read -ra facts <"$CAPTURES/counted" || exit
for fact in "${facts[@]}"; do
	declare "$fact"
done
head -c 100000 "$CAPTURES/sent" >"$TMP/part"
look "$CAPTURES/lossy.pcap"
numbered='(data || fin == 1 && src == mine)'

check "no frame is malformed" same frames "$(frames bad)" 0
check "each checksum is right" same frames "$(frames 'good == 1')" "$(wc -l <"$TMP/table")"
check "data packets are those that the sender counted" same packets \
	"$(frames "$numbered && !again")" "$out"
again=$(frames "$numbered && again")
check "those sent again, too" same packets "$again" "$retrans"
check "there are some" [ "$again" -gt 0 ]
check "retransmission requests" same frames "$(frames 'rrq == 1 && src != mine')" "$rrq"
check "nothing is missing that the sender beside it sent" same frames \
	"$(frames 'missing && src == mine')" 0
check "permission is told" [ "$(frames 'edge && src != mine')" -gt 0 ]
check "no packet is beyond it" same packets "$(frames beyond)" 0
table 'data && !again { printf "%s", toupper(payload) }' | basenc --base16 -di >"$TMP/shown"
check "the payloads that it shows are the bytes" cmp "$CAPTURES/sent" "$TMP/shown"
# The dissector measures round trips at the place of the capture. Some exist, none is negative.
check "round trips are told" [ "$(frames 'rtt != "" && rtt >= 0 && rtt < 10')" -gt 10 ]
check "none is negative" same frames "$(frames 'rtt != "" && rtt < 0')" 0

#
# Transmissions, given to the subdissector that is registered for the port
#

cat >"$TMP/whole.lua" <<-'END'
	local whole = Proto("whole", "What a subdissector is given")
	local bytes = ProtoField.bytes("whole.bytes", "Bytes")
	local text = ProtoField.string("whole.text", "Text")

	whole.fields = { bytes, text }
	function whole.dissector(tvb, pinfo, tree)
		tree:add(whole, tvb()):add(bytes, tvb())
		tree:add(text, tvb())
		return tvb:len()
	end
	DissectorTable.get("ethesp.port"):add(79, whole)
END
# given FILE [OPTION...]: write the bytes that the subdissector is given to $TMP/shown, and the
# pieces as lines of hexadecimal digits to $TMP/pieces.
given()
{
	shark "$@" -X "lua_script:$TMP/whole.lua" -T fields -e whole.bytes -E separator=/t |
		tr ',a-f' '\nA-F' | grep . >"$TMP/pieces"
	basenc --base16 -di <"$TMP/pieces" >"$TMP/shown"
}

# After the losses, retransmitted packets come out of order.
given "$CAPTURES/behind.pcap"
check "behind the losses a subdissector is given all bytes, in order" cmp "$CAPTURES/sent" "$TMP/shown"
missing=$(shark "$CAPTURES/behind.pcap" -Y ethesp.analysis.missing | wc -l)
check "... and packets were missing at first" [ "$missing" -gt 0 ]

given "$CAPTURES/whole.pcap"
check "a subdissector is given all bytes, in order" cmp "$TMP/part" "$TMP/shown"
pieces=$(wc -l <"$TMP/pieces")
echo "# $pieces pieces"
check "... put together" [ "$pieces" -gt 0 -a "$pieces" -le 25 ]

# The same capture without a frame in the middle, as if tcpdump had missed it.
lost=$(shark "$CAPTURES/whole.pcap" -Y "ethesp.len > 0 && eth.src == $mine" -T fields -e frame.number |
	sed -n 20p)
shark "$CAPTURES/whole.pcap" -Y "frame.number == $lost" -T fields -e ethesp.data | tr a-f A-F >"$TMP/lost"
editcap "$CAPTURES/whole.pcap" "$TMP/hole.pcap" "$lost"
given "$TMP/hole.pcap"
basenc --base16 -w 0 "$TMP/part" | sed "s/$(<"$TMP/lost")//" | basenc --base16 -d >"$TMP/rest"
check "of a capture without one frame it is given all other bytes" cmp "$TMP/rest" "$TMP/shown"

# frame_text PORT HOST NUMBER FLAGS ACK PAYLOAD: print a frame as text2pcap(1) reads it. A SYN
# announces an MSS of 4 bytes; its PAYLOAD is the type of the socket.
frame_text()
{
	local macs=(02:00:00:00:00:0a 02:00:00:00:00:0b) ports=("$1" 79) options='' payload=$6
	local text

	[ "$2" = a ] || macs=("${macs[1]}" "${macs[0]}") ports=(79 "$1")
	[ "$payload" != - ] || payload=''
	[ "$4" != 01 ] || options=020400040303${payload}00 payload=''
	printf -v text '%s%s88b51%x%s0020%04x%04x%08x%08x%08x%016x%04x0000%s' \
		"${macs[1]}" "${macs[0]}" $((8 + ${#options} / 8)) "$4" "${ports[@]}" 0 "$3" "$5" 0 \
		${#payload} "$options"
	text=${text//:/}$(printf %s "$payload" | basenc --base16)
	sed 's/../ &/g; s/^/0000 /' <<<"$text"
}

# Flags: 01 SYN, 02 ACK, 10 TXS, 20 TXF, 40 EOR. The column before the text: bytes that the
# subdissector is given in this frame.
cat >"$TMP/crafted" <<-END
	1 b 500 02 100 -    -	a packet that comes again fills the gap
	1 a 100 12 500 one- -
	1 a 102 02 500 tri- -
	1 a 103 22 500 four -
	1 a 104 32 500 five -
	1 a 101 02 500 two- one-two-tri-four,five
	2 b 500 02 100 -    -	one that is acknowledged is not waited for
	2 a 100 12 500 one- -
	2 a 102 02 500 tri- -
	2 a 103 22 500 four -
	2 a 104 32 500 five -
	2 b 500 02 105 -    -
	2 a 105 32 500 six. one-,tri-four,five,six.
	3 b 500 02 100 -    -	nor is one that was acknowledged before
	3 a 100 12 500 one- -
	3 b 500 02 102 -    -
	3 a 102 22 500 tri. one-,tri.
	4 a 99  01 0   01   -	super-packets that overlap
	4 b 500 02 100 -    -
	4 a 101 22 500 two-tri-four,f -
	4 a 100 12 500 one-two- one-two-tri-four,f
	4 a 102 02 500 tri- -
	5 a 99  01 0   05   -	what is left of a record is no message
	5 a 100 52 500 one. one.
	5 b 500 02 101 -    -
	5 a 102 42 500 tri. -
	5 b 500 02 103 -    -
	5 a 103 12 500 four -
	5 a 104 62 500 five fourfive
	6 a 100 32 500 one. one.	where nobody is seen to acknowledge, nothing waits
	6 a 102 32 500 tri. tri.
END
while read -r port host number flags ack payload _; do
	frame_text "$port" "$host" "$number" "$flags" "$ack" "$payload"
done <"$TMP/crafted" | text2pcap - "$TMP/crafted.pcap" >/dev/null 2>&1
shark "$TMP/crafted.pcap" -X "lua_script:$TMP/whole.lua" -T fields -e whole.text -e _ws.expert.message \
	>"$TMP/shown"
# Each line has the expected bytes, then the bytes given.
cut -f 1 "$TMP/crafted" >"$TMP/wanted"
cut -f 1 "$TMP/shown" | sed 's/^$/-/' | paste -d ' ' "$TMP/wanted" - >"$TMP/told"
while IFS=$'\t' read -r frame text; do
	[ -n "$text" ] || continue
	check "$text" awk -v port="${frame%% *}" '$1 == port { n++; print }
		$1 == port && $7 != $8 { bad = 1 } END { exit bad || !n }' "$TMP/told"
done <"$TMP/crafted"
check "each gap is told of" same gaps "$(grep -c "previous packets not captured" "$TMP/shown")" 6

#
# Records
#

look "$CAPTURES/records.pcap"
check "put together they are all bytes" same bytes \
	"$(table 'eor == 1 && !again { n += whole != "" ? whole : len } END { print n + 0 }')" 204800

#
# With a CRC32c
#

look "$CAPTURES/crc.pcap"
check "some frames have a CRC" [ "$(frames crc)" -gt 0 ]
check "each CRC is right" same frames "$(frames 'crc_good == 1')" "$(frames crc)"
check "all frames but SYNs have one" same frames "$(frames crc)" "$(frames 'syn == 0')"

#
# GSO packets: as they leave the sender, and as the receiver coalesces them
#

head -c 1000000 "$CAPTURES/sent" >"$TMP/part"
for end in leave come; do
	look "$CAPTURES/$end.pcap"
	runs=$(frames 'data && len > 1468')
	echo "# $runs super-packets"
	check "as they $end: some are longer than a frame" [ "$runs" -gt 8 ]
	check "... none is malformed" same frames "$(frames bad)" 0
	sum='src == mine && !again { n += data ? int((len + 1467) / 1468) : fin } END { print n }'
	check "... each has as many packets as were sent in it" same packets "$(table "$sum")" "$gso"
	check "... none is missing between them" same frames "$(frames 'missing && src == mine')" 0
	check "... nor beyond permission" same frames "$(frames 'beyond && src == mine')" 0
	table 'data && !again { printf "%s", toupper(payload) }' | basenc --base16 -di >"$TMP/shown"
	check "... the payloads are the bytes" cmp "$TMP/part" "$TMP/shown"
	given "$CAPTURES/$end.pcap"
	check "... of which a subdissector is given all, in order" cmp "$TMP/part" "$TMP/shown"
done

#
# Malformed: the documentation's data frame with other bytes
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
