#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Malformed and forged frames beside a transfer. Each kind increments its counter and
# gets no answer. A flood of SYNs leaves nothing, because the listener keeps no
# half-open state. A stranger can't end a connection: a RST needs the cookie and
# pkt_seq == recv_seq.
#
#	+--------------------+             +--------------------+
#	| n0   stream     v0 +--- veth ----+ v1     stream   n1 |
#	|      frame send, as n0 or as a   |                    |
#	|      stranger; frame watch       |                    |
#	+--------------------+             +--------------------+

. "${0%/*}/../lib/lib.sh"

STRANGER=02:00:00:00:66:01
LISTEN=900	# something listens here
hosts 2
watch n0 n1
cable n0 v0 n1 v1
V1=$(mac n1 v1)

# learn: set LEARNED to the fields that all the connection's frames to n1 have, PORTS to the ports.
learn()
{
	LEARNED=$(n1 timeout 60 frame learn v1 "$PORT") || return
	PORTS=$(grep -o 'sport=[0-9]* dport=[0-9]*' <<<"$LEARNED")
}

n0 tee /proc/sys/net/esp/rcvbuf <<<262144 >/dev/null
n1 tee /proc/sys/net/esp/rcvbuf <<<262144 >/dev/null

# inject: send the kinds of frames on stdin; print how many were sent.
inject() { n0 frame send v0 "$V1"; }

# answers COMMAND...: run it, and write the frames that are sent to the stranger to $TMP/answers.
answers()
{
	local watcher

	# The command, too, waits for answers there, and must not find earlier ones.
	: >"$TMP/answers"

	nsenter --net=/run/netns/n0 frame watch v0 $STRANGER >"$TMP/answers" &
	watcher=$!
	until_true 60 grep -q watching "$TMP/answers"
	"$@"
	sleep 0.2
	end $watcher
	sed -i /watching/d "$TMP/answers"
}

# answered WORDS: such an answer has come.
answered() { grep -q "$1" "$TMP/answers"; }

# compare FILE: compare n1's counters since $TMP/before with FILE; lines NAME GOT WANTED.
compare()
{
	n1 cat /proc/net/esp/stat >"$TMP/after"
	awk 'FILENAME == ARGV[1] { want[$1] += 3; next }
		FILENAME == ARGV[2] { before[$1] = $2; next }
		$1 in want { print $1, $2 - before[$1], want[$1] }' \
		"$1" "$TMP/before" "$TMP/after" >"$TMP/counted"
}

# arrived FILE: all its frames have arrived.
arrived() { compare "$1" && awk '$2 < $3 { exit 1 }' "$TMP/counted"; }

# table FILE: each line is "COUNTER NAME=VALUE...". Sends each kind 3 times and compares n1's
# counters.
table()
{
	local name got want

	n1 cat /proc/net/esp/stat >"$TMP/before"
	sed "s/\$/ count=3/" "$1" | inject >/dev/null
	until_true 60 arrived "$1"
	# Wait for a second count of the same frame, which would be wrong.
	sleep 0.1
	compare "$1"
	while read -r name got want; do
		check "$name: all of them" [ "$got" = "$want" ]
	done <"$TMP/counted"
	check "the counters have their names" [ "$(wc -l <"$TMP/counted")" = "$(cut -d' ' -f1 "$1" | sort -u | wc -l)" ]
}

nsenter --net=/run/netns/n1 stream listen "%v1:$LISTEN" >/dev/null 2>&1 &

#
# Malformed
#

# The watcher works: a SYN with padding is answered.
valid()
{
	echo "src=$STRANGER flags=1 sport=7 dport=$LISTEN hello=99 pad=20" | inject >/dev/null
	until_true 60 answered "flags=0x3 .*sport=$LISTEN"
}
answers valid
check "a SYN with padding behind it gets a SYN|ACK" grep -q "flags=0x3 .*sport=$LISTEN" "$TMP/answers"

cat >"$TMP/malformed" <<END
InShort cut=1
InShort cut=31
InShort len=9 payload=8
InShort hlen=15
InShort cut=40 opts=0900000000000000000000000000
InVersion version=0
InVersion version=2
InVersion version=15 payload=100
InHeaderLength hlen=7
InHeaderLength hlen=1 payload=40
InFlags flags=0x03 payload=8 hello=5
InFlags flags=0x05 hello=5
InFlags flags=0x09 hello=5
InFlags flags=0x10
InFlags flags=0x0a payload=4
InFlags flags=0x06 payload=4
InFlags flags=0x16
InFlags flags=0x86 payload=4
InFlags flags=0x22
InFlags flags=0x42
InOption flags=1
InOption flags=1 opts=010600000005
InOption opts=0105000000000000
InOption opts=01ff000000000000
InOption opts=09010000
InOption opts=0204000002040000
InPort sport=0
InPort dport=0
InPort flags=0 sport=0 payload=10
InRange flags=0x82
InRange flags=0x82 payload=3
InRange flags=0x82 payload=16
InChecksum csum=bad
InChecksum csum=bad payload=200
InChecksum flags=1 hello=5 csum=bad
InChecksum flags=0 payload=20 csum=bad
InGroupSource src=03:00:00:00:66:01
InGroupSource src=ff:ff:ff:ff:ff:ff
InGroupSource dst=ff:ff:ff:ff:ff:ff
InGroupSource dst=01:00:5e:00:00:01 flags=1 hello=5
END
sed -E -e "s/^(\S+)/\1 src=$STRANGER dport=$LISTEN/" "$TMP/malformed" >"$TMP/strange"

slow_start n0 v0 n1 v1
learn
answers table "$TMP/strange"
check "none of them is answered" [ ! -s "$TMP/answers" ]
comment <"$TMP/answers"

# The same with the addresses and ports of the connection.
sed -E -e "s/^(\S+)/\1 $PORTS/" "$TMP/malformed" >"$TMP/spoofed"
table "$TMP/spoofed"
check "the transfer is intact" enough

# The host sends at most 100 RSTs in 10 ms.
version()
{
	local start from

	start=$(date +%s%N) from=$(stat n1 InVersion)
	echo "src=$STRANGER version=2 flags=1 dport=$LISTEN hello=7 count=3000" | inject >/dev/null
	check "3000 SYNs of another version come" until_true 60 counted n1 InVersion $((from + 3000))
	until_true 60 answered "flags=0xa .*cookie=0x7 "
	took=$((($(date +%s%N) - start) / 10000000))
}
answers version
check "a SYN of another version gets an RST" grep -q "flags=0xa .*cookie=0x7 " "$TMP/answers"
check "... not more than the limit lets through" [ "$(wc -l <"$TMP/answers")" -le $((100 * (took + 4))) ]

#
# Well-formed, but not of the connection
#

slow_start n0 v0 n1 v1
learn
for name in cookie seq ack; do
	declare $name=$(($(grep -o "\b$name=0x[0-9a-f]*" <<<"$LEARNED" | cut -d= -f2)))
done
far=$(((seq + 0x20000) & 0xffffffff))
cat >"$TMP/spoofed" <<END
InCookie $PORTS flags=2 cookie=$((cookie ^ 1)) seq=$seq ack=$ack
InCookie $PORTS flags=2 cookie=0 seq=$seq ack=$ack payload=100
InCookie $PORTS flags=6 cookie=$((cookie ^ 0x80000000)) seq=$seq ack=$ack
InCookie $PORTS flags=0x82 cookie=1 seq=$seq ack=$ack payload=4
InAckInvalid $PORTS flags=2 cookie=$cookie seq=$seq ack=$(((ack + 0x40000000) & 0xffffffff))
InAckInvalid $PORTS flags=2 cookie=$cookie seq=$seq ack=$(((ack + 0x100000) & 0xffffffff)) payload=9
InBeyondWindow $PORTS flags=2 cookie=$cookie seq=$far ack=$ack payload=50
InBeyondWindow $PORTS flags=6 cookie=$cookie seq=$far ack=$ack
InResetsIgnored $PORTS flags=8 cookie=$((cookie + 1)) seq=$seq
InResetsIgnored $PORTS flags=8 cookie=$cookie seq=$far
InResetsIgnored $PORTS flags=10 cookie=$cookie seq=$(((seq - 5000) & 0xffffffff)) ack=$ack
END
table "$TMP/spoofed"
check "the transfer is intact" enough
check "no connection was reset" [ "$(stat n1 InResets)" = 0 ]

#
# Floods
#

passive=$(stat n1 PassiveOpens)
sockets=$(n1 esp show -a | wc -l)
floods=$(by_kernel 10000 1000 10000)
slow_start n0 v0 n1 v1
moves n1 5
before=$(stat n1 InFrames)
echo "flags=1 dport=$LISTEN vary=1 count=$floods" | inject >/dev/null &
check "data comes meanwhile" moves n1 5
check "the flood has ended well" wait $!
check "... and come" until_true 60 counted n1 InFrames $((before + floods * 9 / 10))
check "$floods SYNs leave no sockets but those of the transfer" \
	[ "$(n1 esp show -a | wc -l)" -le $((sockets + 2)) ]
check "... nor connections" [ "$(stat n1 PassiveOpens)" = $((passive + 1)) ]
check "the transfer is intact" enough

garbage=$(by_kernel 100000 4000 20000)
slow_start n0 v0 n1 v1
learn
before=$(stat n1 InFrames)
inject <<END >/dev/null &
$PORTS $(grep -o 'cookie=0x[0-9a-f]*' <<<"$LEARNED") random=1 count=$((garbage / 2))
src=$STRANGER sport=5 dport=$LISTEN random=2 count=$((garbage / 2))
END
check "data comes meanwhile" moves n1 5
wait $!
check "$garbage random frames came" until_true 60 counted n1 InFrames $((before + garbage * 8 / 10))
check "the transfer is intact" enough
check "what listened still does" eval 'n1 esp show -l | grep -q ":$LISTEN\b"'
check "no connection was made of them" [ "$(stat n1 PassiveOpens)" = $((passive + 2)) ]
finish
