#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Many connections between two hosts, with a byte there and back on each (rule 7: a
# small request never waits for a grant, however many there are). Measures the memory
# of an idle connection, and checks that nothing is left.
#
#	+-----------------+             +----------------+
#	| n0           v0 +--- veth ----+ v1          n1 |
#	| 20000 connect() |             | one listener   |
#	+-----------------+             +----------------+

. "${0%/*}/../lib/lib.sh"

N=$(by_kernel 20000 2000 5000)
hosts 2
cable n0 v0 n1 v1

# used: print the memory in use, in bytes, without memory that can be reclaimed at once.
used()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk '{ v[$1] = $2 } END { print (v["MemTotal:"] - v["MemFree:"] - v["Cached:"]) * 1024 }' /proc/meminfo
}
established() { [ "$(in_host "$1" esp show | grep -c ESTAB)" = "$N" ]; }
says_idle() { grep -q idle "$TMP/client" && grep -q idle "$TMP/server"; }
over() { ! kill -0 $client 2>/dev/null || says_idle; }

REFERENCES=$(</sys/module/esp/refcnt)
# The first transfer allocates memory that stays.
transfer n0 v0 n1 v1 -n 64k >/dev/null
before=$(used)
: >"$TMP/client"
nsenter --net=/run/netns/n1 many listen %v1:2000 "$N" >"$TMP/server" 2>&1 &
server=$!
until_true 60 eval 'n1 esp show -l | grep -q ":2000\b"'
start=$(date +%s%N)
nsenter --net=/run/netns/n0 many connect "$(mac n1 v1)%v0:2000" "$N" >"$TMP/client" 2>&1 &
client=$!
until_true 200 over
check "$N connections, a byte there and back on each" until_true 60 says_idle
comment <"$TMP/client" | grep -v idle
echo "# in $((($(date +%s%N) - start) / 1000000)) ms"
echo "# bytes per idle connection: $((($(used) - before) / N / 2)) (one end of it, with its file)"
grep -E "^(ESP|sock_inode_cache) " /proc/slabinfo | comment
check "all are connected at the client" established n0
check "all are connected at the server" established n1
check "no SYN was lost" [ "$(stat n0 AttemptFails)" = 0 ]
check "nobody had to wait" [ "$(stat n0 HoldsReceived)" = 0 ]
kill $client $server
wait $client
check "the client saw no error" [ $? = 0 ]
wait $server
check "the server saw no error" [ $? = 0 ]
check "no sockets are left" until_true 60 no_sockets n0 n1
unused() { [ "$(</sys/module/esp/refcnt)" = "$REFERENCES" ]; }
check "none that is not seen, either" until_true 60 unused
check "a transfer works as before" transfer n0 v0 n1 v1 -n 1M
finish
