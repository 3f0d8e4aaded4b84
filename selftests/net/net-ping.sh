#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# esp ping: hosts with ESP answer, others don't; it finds the longest packet; and it leaves nothing.
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+

. "${0%/*}/../lib/lib.sh"

hosts 2
cable n0 v0 n1 v1
PEER=$(mac n1 v1)

# ping STATUS WORDS OPTION...: esp ping exits with STATUS and prints WORDS.
ping()
{
	local want=$1 words=$2 status
	shift 2

	in_host n0 esp ping "$@" >"$TMP/out" 2>&1
	status=$?
	cat "$TMP/out"
	[ $status = "$want" ] && grep -qE -e "$words" "$TMP/out"
}

# grew COUNTER N COMMAND...: meanwhile n1's counter grows by N.
grew()
{
	local counter=$1 n=$2 before
	shift 2

	before=$(stat n1 "$counter")
	"$@" || return
	[ $(($(stat n1 "$counter") - before)) = "$n" ]
}

# interrupted: after an interrupt esp ping prints the results so far.
interrupted()
{
	local pid

	rm "$TMP/out"	# the background process opens it at its own time
	nsenter --net=/run/netns/n0 env --default-signal=INT esp ping -i 86400 "$PEER%v0" >"$TMP/out" 2>&1 &
	pid=$!
	until_true 60 grep -qs seq=1 "$TMP/out" && kill -INT $pid && wait $pid
	local status=$?
	cat "$TMP/out"
	[ $status = 0 ] && grep -q "1 sent, 1 received" "$TMP/out"
}

check "five questions, five answers" grew OutResets 5 ping 0 "5 sent, 5 received" \
	-c 5 -i 0.01 -W 60 "$PEER%v0"
check "... a line for each" grep -q "64 bytes from $PEER%v0: seq=5 time=[0-9.]* ms" "$TMP/out"
check "... and round trips" grep -qE "= [0-9.]+/[0-9.]+/[0-9.]+/[0-9.]+ ms" "$TMP/out"
check "the result only" ping 0 "1 sent, 1 received" -q -c 1 -W 60 "$PEER%v0"
check "... is what it says" eval '! grep -q seq= "$TMP/out"'
check "as JSON" ping 0 '^\{"peer":"[^"]*","sent":2,"received":2,"rtt_us":\{"min":[0-9.]+,.*\}\}$' \
	-j -c 2 -i 0.01 -W 60 "$PEER%v0"
check "of 40 bytes" ping 0 "40 bytes from" -c 1 -W 60 -s 40 "$PEER%v0"
check "of 41 bytes" ping 0 "41 bytes from" -c 1 -W 60 -s 41 "$PEER%v0"
check "of 1500 bytes" ping 0 "1500 bytes from" -c 1 -W 60 -s 1500 "$PEER%v0"
check "no checksum was wrong" [ "$(stat n1 InChecksum)" = 0 ]
check "an interrupt ends it" interrupted
check "a deadline does" ping 0 "1 sent, 1 received" -i 86400 -w 10 "$PEER%v0"

# The longest packet. A veth lets a VLAN tag more through than its MTU.
check "the MTU" ping 0 "has 1500 bytes, the MTU of the device" -m -W 60 "$PEER%v0"
in_host n1 ip link set v1 mtu 1234
check "the peer's, if smaller" ping 0 "has 1238 bytes$" -m -W 60 "$PEER%v0"
check "... as JSON" ping 0 '"mtu":1238\}$' -jm -W 60 "$PEER%v0"
check "what is longer has no answer" ping 3 "1 sent, 0 received" -c 1 -s 1300 "$PEER%v0"
in_host n0 ip link set v0 mtu 65535
in_host n1 ip link set v1 mtu 65535
check "65535 bytes" ping 0 "has 65535 bytes" -m -W 60 "$PEER%v0"

# A listener is not told of pings, and does not change the answer.
nsenter --net=/run/netns/n1 esp listen :65535 </dev/null >"$TMP/heard" 2>&1 &
listener=$!
listens() { in_host n1 esp show -l | grep -q ":65535\b"; }
until_true 60 listens
check "a listener there answers as well" ping 0 "2 sent, 2 received" -c 2 -i 0.01 -W 60 "$PEER%v0"
check "... and goes on to listen" listens
kill $listener
wait $listener
check "no connection was made" [ "$(stat n1 PassiveOpens)" = 0 ]

# Hosts that do not answer.
in_host n0 tc qdisc add dev v0 root netem delay 200ms
check "answers that are late are none" ping 3 "3 sent, 0 received" -c 3 -i 0.1 -W 0.1 "$PEER%v0"
in_host n0 tc qdisc del dev v0 root
in_host n1 esp dev disable v1
check "a device without ESP" ping 3 "2 sent, 0 received" -c 2 -i 0.1 -W 0.1 "$PEER%v0"
in_host n1 esp dev enable v1
check "another host" ping 3 "1 sent, 0 received" -c 1 -W 0.1 "02:00:00:00:77:77%v0"
check "this host's own ESP isn't needed" eval \
	'in_host n0 esp dev disable v0 && ping 0 "1 sent, 1 received" -c 1 -W 60 "$PEER%v0"'
in_host n0 esp dev enable v0

# Alternative names of devices.
for ALT in left-port the-left-port-of-the-switch-on-the-second-floor; do
	in_host n0 ip link property add dev v0 altname $ALT
	check "a device by its alternative name $ALT" ping 0 "1 sent, 1 received" -c 1 -W 60 "$PEER%$ALT"
	in_host n0 esp dev disable $ALT
	check "... is disabled" [ "$(n0 sysctl -n net.esp.dev.v0.enable)" = 0 ]
	in_host n0 esp dev enable $ALT
	check "... and enabled" [ "$(n0 sysctl -n net.esp.dev.v0.enable)" = 1 ]
done
check "a name that is too long" ping 4 "no device" -c 1 "$PEER%$(printf %0128d 0)"

# Bad input.
check "without a host" ping 1 "which host" -c 1
check "two hosts" ping 1 "one host only" "$PEER%v0" "$PEER%v0"
check "without a device" ping 1 "by which device" "$PEER"
check "with a port" ping 1 "has no port" "$PEER%v0:5000"
check "no such device" ping 4 "no device" "$PEER%v7"
check "a device that isn't Ethernet's" ping 4 "not an Ethernet device" -c 1 "$PEER%lo"
check "a group" ping 1 "group address" -c 1 "ff:ff:ff:ff:ff:ff%v0"
check "no address" ping 1 "MAC" -c 1 "nobody-there%v0"
check "an interval of nothing" ping 1 "not from 0.001 to 86400 seconds" -i 0 "$PEER%v0"
check "... of no number" ping 1 "not from" -i nan "$PEER%v0"
check "too short" ping 1 "not from 40 to 65535" -s 39 "$PEER%v0"
in_host n0 ip link set v0 mtu 1500
check "longer than the device's" ping 1 "more than the 1500" -s 1501 "$PEER%v0"
in_host n0 ip link set v0 down
check "the device is down" ping 4 "Network is down" -c 1 "$PEER%v0"
in_host n0 ip link set v0 up
check "nobody may" eval '! nsenter --net=/run/netns/n0 setpriv --reuid=65534 \
	--regid=65534 --clear-groups --bounding-set=-all esp ping -c 1 "$PEER%v0" 2>"$TMP/out" &&
	grep -q CAP_NET_RAW "$TMP/out"'
finish
