#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# esp kill: it ends the sockets that esp show lists with the same options, and no others; and only
# for users that may do so.
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+

. "${0%/*}/../lib/lib.sh"

AS_NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all)

hosts 2
cable n0 v0 n1 v1
PEER=$(mac n1 v1)

# lists PORT...: the last command lists the sockets with these ports, and no others.
lists()
{
	local ports

	ports=$(awk 'NR > 1 { sub(/.*:/, "", $5); print $5 }' "$TMP/out" | sort | xargs)
	[ "$ports" = "$*" ]
}

# ports HOST: print the local ports of its connections. listens HOST PORT: it listens there.
ports() { in_host "$1" esp show | awk 'NR > 1 { sub(/.*:/, "", $5); print $5 }' | sort | xargs; }
listens() { in_host "$1" esp show -l | grep -q ":$2\b"; }

# connect PORT [TYPE]: makes a connection from that port of n0 to the same port of n1, which stays.
connect()
{
	nsenter --net=/run/netns/n1 esp listen -t "${2:-stream}" ":$1" <&8 >/dev/null 2>&1 &
	LISTEN[$1]=$!
	until_true 60 listens n1 "$1"
	nsenter --net=/run/netns/n0 esp connect -p "$1" -t "${2:-stream}" "$PEER%v0:$1" <&8 >/dev/null 2>&1 &
	CONNECT[$1]=$!
}

# ended_with PORT STATUS STATUS: the connecting program and the listening one end so.
ended_with()
{
	local here there

	wait "${CONNECT[$1]}"
	here=$?
	wait "${LISTEN[$1]}"
	there=$?
	echo "connect $here, listen $there"
	[ $here = "$2" ] && [ $there = "$3" ]
}

# Standard input that doesn't end.
mkfifo "$TMP/fifo"
exec 8<>"$TMP/fifo"
connect 2001
connect 2002
connect 2003 seqpacket
connect 2004
connect 2005
all() { [ "$(ports n0)" = "2001 2002 2003 2004 2005" ] && [ "$(ports n1)" = "$(ports n0)" ]; }
check "five connections" until_true 60 all

check "without a choice nothing is ended" gives 1 "which sockets?" n0 esp kill
check "... nor with all states" gives 1 "which sockets?" n0 esp kill -a
check "... nor with a peer of which nothing is said" gives 1 "names nothing" n0 esp kill -P ''
check "a socket that isn't there" gives 4 "no such socket" n0 esp kill -p 2999
check "... nor its peer" gives 4 "no such socket" n0 esp kill -P "$(mac n0 v0)"
check "... nor a listening one" gives 4 "no such socket" n0 esp kill -l
check "nobody may" gives 6 CAP_NET_ADMIN nsenter --net=/run/netns/n0 "${AS_NOBODY[@]}" esp kill -p 2001
check "... nor the owner of another namespace" gives 4 "no such socket" nsenter --net=/run/netns/n0 \
	"${AS_NOBODY[@]}" unshare --user --map-root-user --net esp kill -a -p 2001
check "all live" all

check "by port" gives 0 ESTAB n0 esp kill -p 2001
check "... and it is shown" lists 2001
check "... both ends hear of it" ended_with 2001 6 5
check "by type" gives 0 seqpkt n0 esp kill -t seqpacket
check "... and it is shown" lists 2003
check "... both ends hear of it" ended_with 2003 6 5
sk=$(n1 esp show -e -p 2002 | sed -n 's/.* sk:\([0-9a-f]*\).*/\1/p')
check "by number, at the other end" gives 0 ESTAB n1 esp kill -k "$sk"
check "... and it is shown" lists 2002
check "... both ends hear of it" ended_with 2002 5 6
check "not what only one of two options means" gives 4 "no such socket" n0 esp kill -p 2004 -P :2005
check "two are left" [ "$(ports n0)" = "2004 2005" ]
check "as JSON" gives 0 '"local":' n0 esp kill -j -P "$PEER%v0:2005"
check "by the peer's address" gives 0 ESTAB n0 esp kill -P "$PEER"
check "... and it is shown" lists 2004
check "both ends hear of it" ended_with 2004 6 5

nsenter --net=/run/netns/n1 esp listen :2006 <&8 >/dev/null 2>&1 &
LISTEN[2006]=$!
check "a listener" until_true 60 listens n1 2006
check "... is ended" gives 0 LISTEN n1 esp kill -l -p 2006
check "... and shown" lists 2006
wait "${LISTEN[2006]}"
check "... and ends" [ $? = 6 ]
exec 8>&-

# timers FORM COMMAND...: the command shows a timer of this form.
timers()
{
	local form=$1
	shift

	"$@" | tee "$TMP/out"
	grep -qE "$form" "$TMP/out"
}
n0 sysctl -qw net.esp.time_wait_ms=60000
n1 sysctl -qw net.esp.time_wait_ms=60000
nsenter --net=/run/netns/n1 esp listen :2007 </dev/null >/dev/null 2>&1 &
until_true 60 listens n1 2007
check "a connection that ends by itself" n0 esp connect "$PEER%v0:2007" </dev/null
wait $!
both() { n0 esp show -a "$@" && n1 esp show -a "$@"; }
check "its last timer is shown" timers 'timers:\(conn,[1-5][0-9]{4}\.[0-9]{3}ms\)' both -e
check "... as JSON" timers '"timers_us":\{"conn":[1-5][0-9]{7}\}' both -e -j
check "a state that there isn't" gives 1 "'time' is no state" n0 esp show -S estab,time
check "a peer without a port" gives 1 "no port; write MAC[%DEV]:PORT" n0 esp connect "$PEER%v0"
check "... and without a device" gives 1 "no port; write MAC[%DEV]:PORT" n0 esp connect "$PEER"
check "an address to listen on, without a port" gives 1 "no port; write [%DEV]:PORT" n1 esp listen "$PEER"

# Old names of counters follow a line that begins with "#", and are not shown.
shown() { n1 esp show stats "$@" | tr , '\n' | wc -l; }
counters=$(n1 sed '/^#/,$d' /proc/net/esp/stat | wc -l)
check "each counter is shown once" [ "$counters" -gt 50 -a "$(shown)" = "$counters" ]
check "... as JSON" [ "$(shown -j)" = "$counters" ]
none() { both "$@" >"$TMP/out" && [ ! -s "$TMP/out" ]; }
check "none is in these" none -S close-wait,ESTAB
check "by state" timers TIME-WAIT both -S fin-wait-2,time-wait
over() { n0 esp kill -S time-wait || n1 esp kill -S time-wait; }
check "... and ended" gives 0 TIME-WAIT over
finish
