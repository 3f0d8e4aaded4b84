#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The frames that the module drops, as dropwatch, perf and bpftrace see them: the kernel's event
# skb:kfree_skb has the reason that mib.rst names beside the counter, as often as the counter
# counts. A frame that was used is no drop.
#
#	+--------------------+             +--------------------+
#	| n0   frame send v0 +--- veth ----+ v1   listener   n1 |
#	+--------------------+             +--------------------+

. "${0%/*}/../lib/lib.sh"

TRACING=/sys/kernel/tracing
EVENT=$TRACING/events/skb/kfree_skb
STRANGER=02:00:00:00:66:01
LISTEN=900 DGRAM=901
hosts 2
watch n0 n1
cable n0 v0 n1 v1
V1=$(mac n1 v1)

check "there is the event" [ -d $EVENT ]

# newest NAME ELSE: print the reason NAME, or ELSE on a kernel that lacks NAME (compat.h).
newest() { if grep -q "\"$1\"" $EVENT/format; then echo "$1"; else echo "$2"; fi; }
BAD_SOURCE=$(newest MAC_INVALID_SOURCE UNICAST_IN_L2_MULTICAST)
OVERFLOW=$(newest TCP_LISTEN_OVERFLOW SOCKET_BACKLOG)

# traced COMMAND...: run it; write the drops of our EtherType to $TMP/trace. No event may be lost.
traced()
{
	local status

	echo 0 >$TRACING/tracing_on && echo >$TRACING/trace && echo 16384 >$TRACING/buffer_size_kb &&
		echo "protocol == $((0x88b5))" >$EVENT/filter && echo 1 >$EVENT/enable &&
		echo 1 >$TRACING/tracing_on || return
	"$@"
	status=$?
	echo 0 >$EVENT/enable
	cat $TRACING/trace >"$TMP/trace"
	grep -qE "entries-in-buffer/entries-written: ([0-9]+)/\1 " "$TMP/trace" && return $status
}

# reasons [TRACE]: print a reason per line, without the drops of n0, which gets answers to the
# stranger.
reasons() { sed -n '/OTHERHOST$/d; s/.*kfree_skb: .*reason: //p' "${1:-$TMP/trace}"; }
# drops REASON: print the number of drops with it.
drops() { reasons | grep -cx -- "$1"; }

# send COUNTER N: send the kinds of frames on stdin; wait until the counter is N.
send() { n0 frame send v0 "$V1" >/dev/null && until_true 60 counted n1 "$1" "$2"; }
told() { [ "$(reasons $TRACING/trace | wc -l)" -ge "$1" ]; }
# send_drops COUNTER N TOLD: also wait for TOLD events of drops.
send_drops() { send "$1" "$2" && until_true 60 told "$3"; }

# counted_as COUNTER REASON KIND: 3 frames of this kind count as COUNTER, and are dropped with
# REASON.
counted_as()
{
	local before

	before=$(stat n1 "$1")
	traced send_drops "$1" $((before + 3)) 3 <<<"src=$STRANGER sport=7 $3 count=3"
	echo "$1: $(($(stat n1 "$1") - before)), $(reasons | sort | uniq -c | tr -s ' \n' ' ')"
	[ $(($(stat n1 "$1") - before)) = 3 ] && [ "$(drops "$2")" = 3 ] && [ "$(reasons | wc -l)" = 3 ]
}

nsenter --net=/run/netns/n1 esp listen "%v1:$LISTEN" </dev/null >/dev/null &
ACCEPTOR=$!
nsenter --net=/run/netns/n1 esp listen -t dgram "%v1:$DGRAM" >/dev/null &
READER=$!
check "there are listeners" until_true 60 eval \
	'n1 esp show -l | grep -q ":$LISTEN\b" && n1 esp show -l | grep -q ":$DGRAM\b"'

while read -r counter reason kind; do
	check "$counter: $reason ($kind)" counted_as "$counter" "$reason" "$kind"
done <<END
InShort PKT_TOO_SMALL cut=20
InShort PKT_TOO_SMALL dport=$LISTEN len=9 payload=8
InVersion IP_INHDR version=2
InHeaderLength IP_INHDR hlen=7
InFlags IP_INHDR flags=0x05 hello=5
InOption IP_INHDR opts=0105000000000000
InPort IP_INHDR dport=0
InRange IP_INHDR flags=0x82 payload=3
InChecksum SKB_CSUM dport=$LISTEN csum=bad
InChecksum SKB_CSUM dport=$DGRAM flags=0 payload=20 csum=bad
InGroupSource $BAD_SOURCE src=03:00:00:00:66:01
InGroupSource UNICAST_IN_L2_MULTICAST dst=ff:ff:ff:ff:ff:ff
InNoSocket NO_SOCKET dport=77
InNoSocket NO_SOCKET dport=77 flags=1 hello=5
InNoSocket NO_SOCKET dport=77 flags=0 payload=20
CookieInvalid TCP_INVALID_SEQUENCE dport=$LISTEN cookie=1
END

# used: send frames that are not dropped, but answered or queued.
used()
{
	send DgramIn 1 <<END
src=$STRANGER flags=1 sport=7 dport=$LISTEN hello=99
src=$STRANGER flags=0 sport=7 dport=$DGRAM payload=10
END
}
check "a SYN and a datagram that are used" traced used
check "... are no drops" [ "$(reasons | wc -l)" = 0 ]

# unexplained: print drops without a counter. On a busy machine frames are late: a retransmitted
# packet has come already, or a connection is gone. Each drop has its counter, except for frames
# that mib.rst lists under "none".
unexplained()
{
	reasons | sort | uniq -c | while read -r n reason; do
		case $reason in
		TCP_OLD_DATA | TCP_OFOMERGE) counter=InDuplicate none=2 ;;
		TCP_RESET) counter=InResetsIgnored none=0 ;;
		TCP_INVALID_SEQUENCE) counter=InCookie none=0 ;;
		NO_SOCKET) counter=InNoSocket none=0 ;;
		SOCKET_BACKLOG) counter=InBacklogDrop none=0 ;;
		TCP_CLOSE) counter='' none=2 ;;
		*) counter='' none=0 ;;
		esac
		told=0
		for h in n0 n1; do
			[ -z "$counter" ] || told=$((told + $(stat $h $counter) - $(value $h $counter)))
		done
		[ "$n" -le $((told + none)) ] || echo "$reason: $n, $counter: $told"
	done
}
value() { awk -v c="$2" '$1 == c { print $2 }' "$TMP/$1.before"; }
for h in n0 n1; do
	in_host $h cat /proc/net/esp/stat >"$TMP/$h.before"
done
check "a transfer" traced transfer n0 v0 n1 v1 -n 1M
reasons | sort | uniq -c | comment
check "... is no drops but of duplicates and of what comes late" [ -z "$(unexplained)" ]

# Stop the reader: the buffer fills.
kill -STOP $READER
echo "src=$STRANGER flags=0 sport=7 dport=$DGRAM payload=1400 count=4000" >"$TMP/many"
before=$(stat n1 DgramMemDrop) all=$(stat n1 DgramIn DgramMemDrop)
full() { n0 frame send v0 "$V1" <"$TMP/many" && until_true 60 queued && until_true 60 told $(($(stat n1 DgramMemDrop) - before)); }
queued() { [ $(($(stat n1 DgramIn DgramMemDrop) - all)) = 4000 ]; }
check "datagrams to a full buffer" traced full
n=$(($(stat n1 DgramMemDrop) - before))
check "DgramMemDrop: SOCKET_RCVBUFF" [ $n -gt 0 -a "$(drops SOCKET_RCVBUFF)" = $n ]
kill -CONT $READER

# Stop the process that accepts: the backlog fills, then SYNs are dropped.
kill -STOP $ACCEPTOR
mkfifo "$TMP/fifo" && exec 9<>"$TMP/fifo" || exit
for i in 1 2 3; do
	nsenter --net=/run/netns/n0 esp connect "$V1%v0:$LISTEN" <&9 >/dev/null 2>&1 &
done
overflow()
{
	local before

	before=$(stat n1 ListenOverflows)
	traced send_drops ListenOverflows $((before + 3)) 3 <<<"src=$STRANGER flags=1 sport=8 dport=$LISTEN hello=7 count=3"
	echo "ListenOverflows: $(($(stat n1 ListenOverflows) - before)), $(drops "$OVERFLOW")"
	# more than these three, if a client that could not connect still sends SYNs
	[ "$(drops "$OVERFLOW")" -ge 3 ] && [ "$(drops "$OVERFLOW")" -le $(($(stat n1 ListenOverflows) - before)) ]
}
check "a backlog fills" until_true 60 counted n1 ListenOverflows 1
check "ListenOverflows: $OVERFLOW" overflow
kill -CONT $ACCEPTOR

for pid in $(jobs -p); do
	end "$pid"
done
check "no sockets are left" until_true 60 no_sockets n0 n1

# A device that carries no ESP.
n1 tee /proc/sys/net/esp/dev/v1/enable <<<0 >/dev/null
check "InDevDisabled: UNHANDLED_PROTO" counted_as InDevDisabled UNHANDLED_PROTO dport=77
finish
