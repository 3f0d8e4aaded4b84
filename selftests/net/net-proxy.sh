#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# esp proxy: programs that know TCP only, without "esp run", reach each other over ESP, by a relay
# on each host.
#
#	+-------------------------+          +--------------------------+
#	| n0                   v0 +-- veth --+ v1                    n1 |
#	| client -TCP- esp proxy  |          |  esp proxy -TCP- server  |
#	+-------------------------+          +--------------------------+

. "${0%/*}/../lib/lib.sh"

hosts 2
cable n0 v0 n1 v1
MAC1=$(mac n1 v1)

# proxy HOST FROM TO [COMMAND]...: start a relay, by way of COMMAND; sets PROXY.
proxy()
{
	local host=$1 from=$2 to=$3
	shift 3

	nsenter --net="/run/netns/$host" "$@" esp proxy -v "$from" "$to" 2>>"$TMP/proxy" &
	PROXY=$!
}
in_tcp() { in_host "$1" awk -v port="$(printf ':%04X$' "$2")" '$4 == "0A" && $2 ~ port { found = 1 } END { exit !found }' /proc/net/tcp; }
by_esp() { n1 esp show -l | grep -q ":$1\b"; }

# server N: start the server, which accepts N connections; sets SERVER.
server()
{
	nsenter --net=/run/netns/n1 run-calls serve accept 127.0.0.1 8001 "$1" >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 60 in_tcp n1 8001
}

# carried N COMMAND...: the command succeeds, and ESP carries N packets at least.
carried()
{
	local n=$1 before status
	shift

	before=$(($(stat n0 OutData) + $(stat n1 OutData)))
	"$@"
	status=$?
	n=$(($(stat n0 OutData) + $(stat n1 OutData) - before - n))
	[ $status = 0 ] && [ "$n" -ge 0 ] && return
	cat "$TMP/proxy"
	return 1
}

call() { server 1 && n0 run-calls call "$1" 127.0.0.1 8080 && wait $SERVER; }

# at_once N: N clients at the same time.
at_once()
{
	local i clients=()

	server "$1" || return
	for ((i = 0; i < $1; i++)); do
		nsenter --net=/run/netns/n0 run-calls call block 127.0.0.1 8080 >"$TMP/client" 2>&1 &
		clients+=($!)
	done
	for i in "${clients[@]}"; do
		wait "$i" || { cat "$TMP/client"; return 1; }
	done
	wait $SERVER
}

LOST="reset by peer|Broken pipe|not connected|line [0-9]*: !n && at == BYTES"

# fails COMMAND...: the client's connection is reset, or ended early.
fails()
{
	"$@" >"$TMP/client" 2>&1
	local status=$?
	cat "$TMP/client"
	[ $status != 0 ] && grep -qE "$LOST" "$TMP/client"
}

# The server is killed when it has data that it didn't read, while the client waits for bytes.
killed()
{
	nsenter --net=/run/netns/n1 /usr/bin/python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 8001)); c = s.accept()[0]; c.recv(1)
print("has data", flush=True); time.sleep(1000)' >"$TMP/server" &
	SERVER=$!
	until_true 60 in_tcp n1 8001 || return
	nsenter --net=/run/netns/n0 run-calls call block 127.0.0.1 8080 >"$TMP/client" 2>&1 &
	until_true 60 grep -q "has data" "$TMP/server" || { kill -KILL $SERVER; return 1; }
	kill -KILL $SERVER
	! wait $! && cat "$TMP/client" && grep -qE "$LOST" "$TMP/client"
}
# Five clients at the same time. One after the other sends and ends.
five_wait()
{
	server 5 && n0 /usr/bin/python3 -c 'import socket
clients = [socket.create_connection(("127.0.0.1", 8080)) for i in range(5)]
for c in clients:
    c.sendall(b"x"); c.shutdown(socket.SHUT_WR)
    assert c.recv(9) == b"x" and c.recv(9) == b""
    c.close()' && wait $SERVER
}
refuses() { fails n0 run-calls call block 127.0.0.1 8080 && grep -q "can't connect: Connection refused" "$TMP/proxy"; }
none_left() { ! n0 esp show | grep -q . && ! n1 esp show | grep -q .; }

proxy n1 "%v1:5000" tcp:127.0.0.1:8001
SECOND=$PROXY
proxy n0 tcp:127.0.0.1:8080 "$MAC1%v0:5000"
check "the relays listen" eval 'until_true 60 in_tcp n0 8080 && until_true 60 by_esp 5000'
check "a connection, both ways" carried 400 call block
check "... whose client doesn't block" carried 400 call epoll
check "eight at once" carried 3200 at_once 8
check "nobody listens behind the relay: a reset" refuses
check "the server is killed: the client knows" killed
check "no relay keeps a connection" until_true 60 none_left
end $PROXY
# A relay of two connections needs twelve descriptors, besides its own six or so.
proxy n0 tcp:127.0.0.1:8080 "$MAC1%v0:5000" prlimit --nofile=20:20
until_true 60 in_tcp n0 8080
check "more connections than descriptors: they wait" five_wait
check "... and it says so" grep -q "has to wait: Too many open files" "$TMP/proxy"
end $PROXY
# The other way round, and through one relay only.
proxy n0 tcp:127.0.0.1:8080 tcp:127.0.0.1:8002
until_true 60 in_tcp n0 8080
check "from TCP to TCP, where nobody listens" fails n0 run-calls call block 127.0.0.1 8080
check_fails "no second address" "two addresses are needed" esp proxy tcp::8081
check_fails "an address that is taken" "Address already in use" in_host n0 esp proxy tcp:127.0.0.1:8080 "$MAC1%v0:1"
end $PROXY
# An administrator ends the listener by ESP. The relay must not wake up again and again.
ended() { n1 esp kill -l -p 5000 && ! wait $SECOND && grep "the listener was ended" "$TMP/proxy"; }
check "its listener is ended: the relay ends" ended
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
