#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Floods from strangers, each frame with another MAC address and port: SYNs, forged
# echoes of SYN|ACKs, data, ACKs, retransmission requests and RSTs, to a listener and to
# closed ports. They take no memory. Each frame causes at most one frame of its size (a
# SYN|ACK has 8 bytes more than the smallest SYN). Connections go on, and honest clients
# can connect. The remaining throughput is measured where computing takes no time
# (uml-virtual).
#
#	n0   stream  e0 ----+
#	             200 Mbit/s
#	                sw: bridge ---- 200 Mbit/s, e0   n1   listener
#	             20 Mbit/s
#	n2   frame   e0 ----+
#
#	net-flood.sh [FRAMES]	more than 100000: at 1 Gbit/s, the flood at 100 Mbit/s

. "${0%/*}/../lib/lib.sh"

LISTEN=900
FLOOD=${1:-20000}
rate=200mbit stranger_rate=20mbit N=2000
[ "$FLOOD" -le 100000 ] || rate=1gbit stranger_rate=100mbit N=$((FLOOD / 50))
hosts 3
host sw
watch n1
ip -n sw link add br0 type bridge
ip -n sw link set br0 up
for i in 0 1 2; do
	cable n$i e0 sw p$i
	ip -n sw link set p$i master br0
	in_host n$i sysctl -qw net.ipv6.conf.e0.disable_ipv6=1
	ip -n n$i link set e0 gso_max_segs 1
done
shape() { in_host "$1" tc qdisc add dev "$2" root tbf rate "$3" burst 4000 limit 10000000 overhead 24; }
# Without learning, because the bridge would remember all the strangers' addresses.
ip -n sw link set p2 type bridge_slave learning off
shape n0 e0 $rate
# The transfer goes both ways, and would know no limit on the way back.
shape n1 e0 $rate
shape n2 e0 $stranger_rate
in_host sw tc qdisc add dev p1 root tbf rate $rate burst 4000 limit 131072 overhead 24
V1=$(mac n1 e0)
nsenter --net=/run/netns/n1 stream listen "%e0:$LISTEN" >/dev/null 2>&1 &
server=$!
until_true 60 eval "n1 esp show -l | grep -q ':$LISTEN\b'"

flood() { n2 frame send e0 "$V1" >/dev/null; }
# bytes FIELD: print the bytes of n1's device so far; 2: received, 10: sent.
bytes() { n1 awk -v f="$1" '$1 == "e0:" { print $f }' /proc/net/dev; }
sockets() { awk '$1 == "ESP" { print $2 }' /proc/slabinfo; }
# used: print the memory in use, in KiB, without memory that can be reclaimed at once.
used()
{
	echo 3 >/proc/sys/vm/drop_caches
	awk '{ v[$1] = $2 } END { print v["MemTotal:"] - v["MemFree:"] - v["Cached:"] }' /proc/meminfo
}
# handshakes: print the frames that n1 has received and that belong to no connection.
handshakes() { echo $(($(stat n1 InFrames) - $(stat n1 InData InEmpty))); }
# received SECONDS: print the data packets that n1 receives in that time.
received()
{
	local from

	from=$(stat n1 InData)
	sleep "$1"
	echo $(($(stat n1 InData) - from))
}

# honest N: make a transfer beside the other one.
honest()
{
	mkdir "$TMP/$1"
	(
		TMP=$TMP/$1 PORT=$((PORT + $1))
		transfer n0 e0 n1 e0 -n 1k
	)
}

# The first transfer allocates memory that stays.
transfer n0 e0 n1 e0 -n 64k >/dev/null

#
# SYNs, beside an established connection
#

start n0 e0 n1 e0 -n 1000G
moves n1 100
calm=$(received 0.3)
before=$(used)
had=$(sockets)
passive=$(stat n1 PassiveOpens)
out=$(stat n1 OutFrames)
came=$(handshakes)
echo "flags=1 dport=$LISTEN vary=1 count=$FLOOD" | flood &
flooder=$!
until_true 60 eval '[ $(handshakes) -ge $((came + 1000)) ]'
beset=$(received 0.3)
kill -0 $flooder && still=1
echo "# packets in 0.3 s: $calm, $beset during the flood"
check "data comes during the flood" moves n1 100
if [ "$KERNEL" = uml-virtual ]; then
	check "the flood was on meanwhile" [ "$still" = 1 ]
	check "the connection keeps four fifths of its throughput" [ $((beset * 5)) -ge $((calm * 4)) ]
fi
for i in 1 2 3; do
	check "who is honest gets in, $i" honest $i
done
check "the flood has ended well" wait $flooder
all_came() { [ $(($(handshakes) - came)) -ge $((FLOOD * 9 / 10)) ]; }
check "... and come" until_true 60 all_came
check "$FLOOD SYNs leave no socket" [ "$(sockets)" -le $((had + 8)) ]
check "... nor connections" [ "$(stat n1 PassiveOpens)" = $((passive + 3)) ]
after=$(used)
echo "# memory in use: $before KiB before, $after after"
# KASAN keeps freed memory for a while.
[ "$KERNEL" = uml-debug ] || check "... nor memory, 4 MiB at most" [ $((after - before)) -le 4096 ]
echo "# frames of n1 meanwhile: $(($(stat n1 OutFrames) - out))"
check "the established connection is intact" enough

#
# Frames to closed ports, and forged frames
#

had=$(sockets)
passive=$(stat n1 PassiveOpens)
for kind in "flags=1" "flags=2" "flags=2 payload=100" "flags=6 payload=100" "flags=0x82 payload=4" "flags=8" \
	"flags=10"; do
	for port in $LISTEN 7; do
		from=$(stat n1 InFrames) rx=$(bytes 2) tx=$(bytes 10) resets=$(stat n1 OutResets)
		began=$(date +%s%N)
		echo "$kind dport=$port vary=$((port + 1)) count=$N" | flood
		check "$kind to port $port: the frames come" until_true 60 counted n1 InFrames $((from + N * 9 / 10))
		rx=$(($(bytes 2) - rx)) tx=$(($(bytes 10) - tx)) resets=$(($(stat n1 OutResets) - resets))
		took=$((($(date +%s%N) - began) / 10000000))
		check "... $tx bytes for $rx" [ $tx -le $((rx * 70 / 62 + 2000)) ]
		check "... $resets RSTs, at most 100 in 10 ms" [ $resets -le $((100 * (took + 2))) ]
	done
done
check "no connection was made of them" [ "$(stat n1 PassiveOpens)" = "$passive" ]
check "... no socket" [ "$(sockets)" -le $((had + 8)) ]
check "a transfer works as before" transfer n0 e0 n1 e0 -n 1M
end $server
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
