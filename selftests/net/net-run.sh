#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck disable=SC2015,SC2016,SC2034,SC2154,SC2219,SC2317
#
# esp run: all ways in which programs wait and connect (run-calls.c) go over ESP, as the counters of
# both hosts prove. Where ESP is impossible, TCP carries the same.
#
#	net-run.sh [PART]...	calls, musl, options, fallback; silent (half a minute of waiting)

PARTS=" ${*:-calls musl options fallback} "
. "${0%/*}/../lib/run.sh"

CALLS=run-calls

#
# Calls
#

# call WAY SERVER_WAY ADDR LISTEN_ADDR [OWN PEER]: make a connection by ESP from n0, and one by TCP
# from n1 itself. Both ends report the same addresses; with OWN and PEER, the server of the first
# connection reports these.
call()
{
	local way=$1 server_way=$2 addr=$3 at=$4 self=$4 own=$3 peer=$6

	[ $# = 4 ] || own=$5
	case $at in
	0.0.0.0) self=127.0.0.1 ;;
	::) self=::1 ;;
	esac
	PORT=$((PORT + 1))
	: >"$LOG"
	serve $CALLS serve "$server_way" "$at" $PORT 2
	up $PORT && by_esp 200 run n0 $CALLS call "$way" "$addr" $PORT >"$TMP/call" &&
		run n1 $CALLS call "$way" "$self" $PORT >"$TMP/self" && wait $SERVER ||
		{ cat "$TMP/call" "$TMP/self" "$TMP/server"; down; return 1; }
	show "$TMP/call"
	# The own address of one end must be the peer address of the other.
	sed -i 's/::ffff://g' "$TMP/call" "$TMP/self" "$TMP/server"
	[ -z "$peer" ] || sed -i "s/.*\( [0-9]*\) $addr\( [0-9]*\)$/$peer\1 $own\2/" "$TMP/call"
	awk 'NR == FNR { pair[$3 " " $4 " " $1 " " $2] = 1; next } NF == 4 && !($0 in pair) { bad = 1; print "not told: " $0 }
		END { exit bad }' "$TMP/server" "$TMP/call" "$TMP/self" && told ": ESP" 2 || { cat "$TMP/server" "$LOG"; return 1; }
}

# call_by_tcp WAY WHY: the connection goes by TCP, and the log says why.
call_by_tcp()
{
	PORT=$((PORT + 1))
	: >"$LOG"
	serve run-calls serve accept 10.1.0.2 $PORT 1
	up $PORT && run n0 run-calls call "$1" 10.1.0.2 $PORT && wait $SERVER && told "to 10.1.0.2:$PORT: TCP, " && told "$2" && return
	down
	return 1
}

# A listener that is shut down, but not closed, accepts no connection by ESP or TCP.
shut_down()
{
	local status

	PORT=$((PORT + 1))
	: >"$LOG"
	serve run-calls serve shutdown 0.0.0.0 $PORT 1
	up $PORT && run n0 run-calls call block 10.1.0.2 $PORT && until_true 60 gone $PORT &&
		! in_tcp n1 $PORT && sleep 1 && kill -0 $SERVER
	status=$?
	[ $status = 0 ] || cat "$TMP/server"
	down
	return $status
}
gone() { ! listens "$1"; }

if part calls; then
	for way in accept flags poll ppoll select pselect wide vfork early earlier threads children; do
		check "a server that waits by $way" call block $way 10.1.0.2 0.0.0.0
	done
	# A pair costs as much as one of both.
	while read -r server way; do
		check "a server that waits by $server, a client that connects by $way" call "$way" "$server" 10.1.0.2 10.1.0.2
	done <<-END
		epoll nonblock
		edge epoll
		exclusive edge
		signals oneshot
		dup exclusive
		rebound two
		moved high
		handed bound
		message signals
		exec forked
	END
	check "a client in more epoll instances than are remembered: TCP" by_tcp call_by_tcp many "too many epoll instances"
	for way in dup dup2 fcntl; do
		check "a client with a copy of its socket by $way(): TCP" by_tcp call_by_tcp $way "its descriptor was copied"
	done
	check "a client that has closed the original" call moved accept 10.1.0.2 10.1.0.2
	check "a listener that is shut down" shut_down
	check "IPv6" call block accept fd01::2 fd01::2
	check "IPv6 to a listener for both kinds, which knows IPv4" call nonblock epoll fd01::2 :: 10.1.0.2 10.1.0.1
	check "IPv4 to a listener for both kinds" call block poll 10.1.0.2 ::
	check "IPv6 to a listener for both kinds, from exec()" call block exec fd01::2 :: 10.1.0.2 10.1.0.1
fi
if part musl; then
	CALLS=run-calls-musl
	for way in accept poll select epoll threads signals exec; do
		check "musl: a server that waits by $way" call block $way 10.1.0.2 0.0.0.0
	done
	for way in nonblock epoll; do
		check "musl: a client that connects by $way" call $way accept 10.1.0.2 10.1.0.2
	done
	CALLS=run-calls
fi


#
# Options, ioctls and calls
#

# differences ADDR: print what differs by ESP from TCP: "WORD OPTION" if the option reads as 0 by
# ESP, or is refused with an error, else "NAME|BY TCP|BY ESP".
differences()
{
	local status

	: >"$LOG"
	serve run-options serve "$1" 5900
	up 5900 && n0 run-options "$1" 5900 >"$TMP/tcp" && run n0 run-options "$1" 5900 >"$TMP/esp" &&
		! told "5900: TCP, nothing"
	status=$?
	down
	[ $status = 0 ] || { tail "$TMP/tcp" "$TMP/esp" "$LOG" >&2; return 1; }
	awk -F ': ' '
		{ result = substr($0, length($1) + 3); option = $1; sub(/ before connect\(\)/, "", option) }
		NR == FNR { tcp[$1] = result; next }
		result == tcp[$1] { next }
		$1 ~ /^[A-Z]/ && result ~ /ok, 0$/ { print "0 " option; next }
		$1 ~ /^[A-Z]/ && result ~ /ENOPROTOOPT$/ { print "ENOPROTOOPT " option; next }
		$1 ~ /^[A-Z]/ && result ~ /EOPNOTSUPP/ { print "EOPNOTSUPP " option; next }
		{ print $1 "|" tcp[$1] "|" result }' "$TMP/tcp" "$TMP/esp"
}

# documented: print the tables of run.rst as differences() would.
documented()
{
	awk '/^Options$/ { on = 1 } /^Limits$/ { exit }
		!on { next }
		/^====/ { n++ }
		n == 3 && /^[A-Z0]+ / { word = $1 }
		n == 3 { while (match($0, /``[A-Z0-9_]+``/)) { print word " " substr($0, RSTART + 2, RLENGTH - 4); $0 = substr($0, RSTART + RLENGTH) } }
		n == 6 && NF && !/^====/ { gsub(/``/, ""); gsub(/   */, "|"); print }' "$SRC/Documentation/run.rst"
}

as_documented()
{
	differences 10.1.0.2 >"$TMP/differ4" && differences fd01::2 >"$TMP/differ6" &&
		sort -u "$TMP/differ4" "$TMP/differ6" >"$TMP/differ" && documented | sort >"$TMP/documented" &&
		[ -s "$TMP/documented" ] && diff "$TMP/documented" "$TMP/differ"
}

if part options; then
	check "options, ioctls and calls differ from TCP's as run.rst says" as_documented
fi

#
# TCP instead of ESP, and the reasons
#

# only_tcp_there: no server listens there by ESP.
only_tcp_there()
{
	: >"$LOG"
	tcp_server 6001 && run n0 run-calls call nonblock 10.1.0.2 6001 && wait $SERVER &&
		told "to 10.1.0.2:6001: TCP, nothing listens there by ESP"
}

# The kernel lets a user have one descriptor in epoll: TCP's listener, but not the hidden one.
one_watch()
{
	local most status

	most=$(cat /proc/sys/fs/epoll/max_user_watches)
	PORT=$((PORT + 1))
	: >"$LOG"
	echo 1 >/proc/sys/fs/epoll/max_user_watches
	serve run-calls serve epoll 10.1.0.2 $PORT 1
	until_true 60 told "is not in epoll: TCP" && run n0 run-calls call block 10.1.0.2 $PORT && wait $SERVER
	status=$?
	echo "$most" >/proc/sys/fs/epoll/max_user_watches
	[ $status = 0 ] || down
	return $status
}

# A server that listens, but waits in a way that the library doesn't see, gets no connection by ESP.
not_waiting()
{
	: >"$LOG"
	serve /usr/bin/python3 -IS -c 'import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", 6002)); s.listen()
time.sleep(1000)'
	until_true 100 in_tcp n1 6002 && run n0 /usr/bin/python3 -IS -c 'import socket
socket.create_connection(("10.1.0.2", 6002))'
	local status=$?
	down
	[ $status = 0 ] && told "to 10.1.0.2:6002: TCP, nothing listens there by ESP"
}

TWICE='import socket
for i in 1, 2: socket.create_connection(("10.1.0.2", 6003)).close()'
# twice WHY...: two connections of one process go by TCP for these reasons.
twice()
{
	: >"$LOG"
	serve /usr/bin/python3 -IS -c 'import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", 6003)); s.listen()
for i in 1, 2: s.accept()'
	until_true 100 in_tcp n1 6003 && in_host n0 esp run -l "$LOG" -w 300 /usr/bin/python3 -IS -c "$TWICE"
	local status=$? why
	down
	[ $status = 0 ] || return
	for why; do
		told "to 10.1.0.2:6003: TCP, $why" || { cat "$LOG"; return 1; }
	done
}
routed()
{
	: >"$LOG"
	nsenter --net=/run/netns/n2 "${RUN[@]}" run-calls serve accept 0.0.0.0 6004 1 >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 60 in_tcp n2 6004 && run n0 run-calls call block 10.2.0.2 6004 && wait $SERVER &&
		told "to 10.2.0.2:6004: TCP, it is behind a router"
}

# The neighbour table has the MAC address of no host.
wrong_neighbour()
{
	local status

	: >"$LOG"
	ip0 neigh replace 10.1.0.2 lladdr 02:00:00:00:00:99 dev v0 nud permanent
	gives 2 "Connection timed out" in_host n0 esp run -l "$LOG" -w 300 run-calls call block 10.1.0.2 6005
	status=$?
	ip0 neigh del 10.1.0.2 dev v0
	[ $status = 0 ] && told "to 10.1.0.2:6005: TCP, it has not answered by ESP"
}
no_host()
{
	: >"$LOG"
	gives 2 "No route to host" in_host n0 esp run -l "$LOG" -w 300 run-calls call block 10.1.0.77 6005 &&
		told "to 10.1.0.77:6005: TCP, its MAC address is not known"
}
# A program that tries again and again must not wait for the MAC address each time.
no_host_again()
{
	: >"$LOG"
	in_host n0 esp run -l "$LOG" -w 300 /usr/bin/python3 -IS -c 'import socket
for i in 1, 2, 3:
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("10.1.0.78", 6005))' && told "its MAC address is not known" 1 && told "was not known lately, either" 2
}

# A program makes a socket in n2 and goes on in n0: the connection is one of n2, behind a router.
other_namespace()
{
	: >"$LOG"
	serve run-calls serve accept 0.0.0.0 6014 1
	up 6014 && run n0 /usr/bin/python3 -IS -c 'import ctypes, os, socket
def enter(name):
    assert not ctypes.CDLL(None).setns(os.open("/run/netns/" + name, os.O_RDONLY), 0)
enter("n2")
s = socket.socket()
enter("n0")
s.connect(("10.1.0.2", 6014))
print(s.getsockname())
assert s.getsockname()[0] == "10.2.0.2"
s.send(b"x"); s.shutdown(1)
while s.recv(9999): pass' && wait $SERVER &&
		told "to 10.1.0.2:6014: TCP, its socket is of another network namespace" && return
	down
	return 1
}

# A daemon leaves the pipe that was its standard error, so that nobody waits for its end.
daemon_leaves()
{
	local pid

	pid=$(timeout 60 nsenter --net=/run/netns/n0 esp run -v /usr/bin/python3 -IS -c 'import os, sys, time
if os.fork(): os._exit(0)
print(os.getpid(), flush=True)
for fd in 0, 1, 2: os.dup2(os.open("/dev/null", os.O_RDWR), fd)
time.sleep(20)' 2>&1 | cat) && kill "$pid"
}

# The server does not find the client's IP address either, if n0 has not sent it an ARP request.
unknown_peer()
{
	local status

	: >"$LOG"
	ip0 neigh replace 10.1.0.2 lladdr "$(mac n1 v1)" dev v0 nud permanent
	serve run-calls serve accept 10.1.0.2 6006 1
	up 6006 && ip1 neigh flush dev v1 && ip1 link set v1 arp off &&
		run n0 run-calls call block 10.1.0.2 6006 && wait $SERVER && cat "$TMP/server" &&
		grep -q "^10.1.0.2 6006 0.0.0.0 " "$TMP/server"
	status=$?
	ip1 link set v1 arp on
	ip0 neigh del 10.1.0.2 dev v0
	return $status
}
# An entry that the administrator made comes before what was heard.
pinned_peer()
{
	: >"$LOG"
	ip1 neigh replace 10.1.0.9 lladdr "$(mac n0 v0)" dev v1 nud permanent
	serve run-calls serve accept 0.0.0.0 6007 1
	up 6007 && run n0 run-calls call block 10.1.0.2 6007 && wait $SERVER &&
		grep -q "^10.1.0.2 6007 10.1.0.9 " "$TMP/server"
	local status=$?
	ip1 neigh del 10.1.0.9 dev v1
	return $status
}

# The server is killed when it has data that it didn't read: a reset. (Without data, the client
# would see the end of the stream.) Further below, the cable is cut.
killed_peer()
{
	: >"$LOG"
	serve /usr/bin/python3 -IS -c 'import socket, time
s = socket.create_server(("", 6008)); c = s.accept()[0]; c.recv(1)
print("has data", flush=True); time.sleep(1000)'
	up 6008 || return
	nsenter --net=/run/netns/n0 "${RUN[@]}" run-calls call block 10.1.0.2 6008 >"$TMP/out" 2>&1 &
	until_true 60 grep -q "has data" "$TMP/server" && kill -KILL $SERVER && ! wait $! &&
		cat "$TMP/out" && grep -qE "Connection reset by peer|Broken pipe" "$TMP/out" &&
		told "from 10.1.0.1:" && told "to 10.1.0.2:6008: ESP"
}
cut_off()
{
	local retries status

	retries=$(n0 sysctl -n net.esp.retries)
	: >"$LOG"
	n0 sysctl -qw net.esp.retries=2
	serve /usr/bin/python3 -IS -c 'import socket
s = socket.create_server(("", 6009)); c = s.accept()[0]
while c.recv(65536): pass'
	up 6009 || return
	nsenter --net=/run/netns/n0 "${RUN[@]}" /usr/bin/python3 -IS -c 'import socket
s = socket.create_connection(("10.1.0.2", 6009))
while 1: s.send(bytes(1000))' >"$TMP/out" 2>&1 &
	CLIENT=$!
	until_true 60 told "from 10.1.0.1:" && tc -n n0 qdisc add dev v0 root netem loss 100% && ! wait $CLIENT &&
		grep "TimeoutError: .*Connection timed out" "$TMP/out"
	status=$?
	tc -n n0 qdisc del dev v0 root
	down
	n0 sysctl -qw net.esp.retries="$retries"
	return $status
}

# The administrator ends the ESP listener. The server goes on by TCP, and does not wake up again and
# again because of the dead listener.
ended_listener()
{
	PORT=$((PORT + 1))
	: >"$LOG"
	serve run-calls serve "$1" 0.0.0.0 $PORT 1
	up $PORT && n1 esp kill -l -p $PORT && run n0 run-calls call block 10.1.0.2 $PORT && wait $SERVER &&
		told "to 10.1.0.2:$PORT: TCP, nothing listens there by ESP" || { cat "$TMP/server"; down; return 1; }
}

only()
{
	: >"$LOG"
	tcp_server 6010 && gives 2 "Connection refused" run_only n0 run-calls call block 10.1.0.2 6010 &&
		told "to 10.1.0.2:6010: not by ESP" && gives 2 "No route to host" run_only n0 run-calls call block 10.2.0.2 6010
	local status=$?
	down
	return $status
}
run_only() { in_host "$1" esp run --only -l "$LOG" -w 20000 "${@:2}"; }

# comes_back WORDS [COMMAND...]: a program tries to connect again and again. Without TCP (--only),
# no TCP packet makes the kernel ask for the host. The log has WORDS for later attempts.
comes_back()
{
	local words=$1 status
	shift

	: >"$LOG"
	serve run-calls serve accept 10.1.0.2 6013 1
	up 6013 && n0 ping -c 1 -q 10.1.0.2 && tc -n n1 qdisc add dev v1 root netem loss 100% && "$@" || return
	nsenter --net=/run/netns/n0 esp run --only -l "$LOG" -w 2000 /usr/bin/python3 -IS -c 'import socket, time
for i in range(300):
    s = socket.socket()
    if not s.connect_ex(("10.1.0.2", 6013)): break
    time.sleep(0.2)
s.send(b"hello"); s.shutdown(1); assert s.recv(9) == b"hello"' >"$TMP/out" 2>&1 &
	CLIENT=$!
	until_true 60 told "not by ESP, $words"
	status=$?
	tc -n n1 qdisc del dev v1 root
	[ $status = 0 ] && wait $CLIENT && wait $SERVER && told "to 10.1.0.2:6013: ESP" && ! told ": TCP,"
	status=$?
	cat "$TMP/out"
	kill $CLIENT 2>/dev/null
	down
	return $status
}

# A listener that other hosts cannot reach does not listen by ESP.
on_loopback()
{
	: >"$LOG"
	serve run-calls serve accept 127.0.0.1 6011 1
	until_true 60 in_tcp n1 6011 && ! listens 6011 && run n1 run-calls call block 127.0.0.1 6011 && wait $SERVER || return
	! told "ESP"
}

# A client never talks to a server that TCP would not have given it.
# nobody_listens PORT: another user's process listens there by ESP; sets NOBODY.
nobody_listens()
{
	nsenter --net=/run/netns/n1 setpriv --reuid=65534 --regid=65534 --clear-groups esp listen -k ":$1" >"$TMP/nobody" &
	NOBODY=$!
	until_true 60 listens "$1"
}

# gone_to_server PORT: the client's data is the server's, and nobody's process has none.
gone_to_server()
{
	run n0 run-calls call block 10.1.0.2 "$1" && wait $SERVER && [ ! -s "$TMP/nobody" ] &&
		told "to 10.1.0.2:$1: TCP, nothing listens there by ESP"
	local status=$?
	end $NOBODY
	return $status
}

port_of_others()
{
	: >"$LOG"
	tcp_server 6020 && nobody_listens 6020 && gone_to_server 6020
}

# The server is run so, but another user had the port before, by ESP.
port_taken()
{
	: >"$LOG"
	nobody_listens 6021 || return
	serve run-calls serve accept 0.0.0.0 6021 1
	until_true 60 told "at 0.0.0.0:6021: TCP, no ESP socket" && gone_to_server 6021
}

# ... or takes it when the server's ESP listener has been ended.
port_after_kill()
{
	: >"$LOG"
	serve run-calls serve accept 0.0.0.0 6022 1
	up 6022 && n1 esp kill -l -p 6022 && nobody_listens 6022 && gone_to_server 6022
}

# at_other WANT: a server listens at 10.1.0.2 only. By WANT the client does not get it.
at_other()
{
	: >"$LOG"
	serve run-calls serve accept 10.1.0.2 6023 1
	up 6023 && gives 2 "Connection refused" run n0 run-calls call block "$1" 6023 &&
		told "6023: TCP, nothing listens there by ESP"
	local status=$?
	down
	return $status
}

# Two servers on one port, each at an address of its own; the second one goes by TCP.
two_servers()
{
	local second status

	: >"$LOG"
	serve run-calls serve accept 10.1.0.2 6024 1
	nsenter --net=/run/netns/n1 run-calls serve accept 10.1.0.3 6024 1 >"$TMP/second" 2>&1 &
	second=$!
	up 6024 && until_true 60 in_tcp n1 6024 0300010A && run n0 run-calls call block 10.1.0.3 6024 && wait $second &&
		grep -q "^10.1.0.3 6024" "$TMP/second" && run n0 run-calls call block 10.1.0.2 6024 && wait $SERVER &&
		grep -q "^10.1.0.2 6024" "$TMP/server" && told "to 10.1.0.3:6024: TCP" && told "to 10.1.0.2:6024: ESP"
	status=$?
	[ $status = 0 ] || cat "$TMP/second" "$LOG"
	return $status
}

# A socket with an option that an ESP socket would lack stays TCP's.
STAMPED='import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, 29, 1); s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 16)
if sys.argv[1] == "n0":
    s.connect(("10.1.0.2", 6027)); s.send(b"x" * 1000); s.shutdown(1)
    while s.recv(9999): pass
else:
    s.bind(("", 6027)); s.listen(); c = s.accept()[0]
    while c.send(c.recv(9999)): pass'
# lacking HOST: that host has such a socket.
lacking()
{
	: >"$LOG"
	if [ "$1" = n0 ]; then
		serve run-calls serve accept 0.0.0.0 6027 1
		up 6027 && run n0 /usr/bin/python3 -IS -c "$STAMPED" n0 && wait $SERVER &&
			told "to 10.1.0.2:6027: TCP, it has an option that ESP lacks"
	else
		serve /usr/bin/python3 -IS -c "$STAMPED" n1
		until_true 60 in_tcp n1 6027 && run n0 run-calls call block 10.1.0.2 6027 && wait $SERVER &&
			told "at 0.0.0.0:6027: TCP, it has an option that ESP lacks" && told "to 10.1.0.2:6027: TCP, nothing listens"
	fi && return
	down
	return 1
}
# The option is set by a copy of the socket, which is closed then.
lacking_copy()
{
	: >"$LOG"
	serve run-calls serve accept 0.0.0.0 6029 1
	up 6029 && run n0 /usr/bin/python3 -IS -c 'import socket
s = socket.socket(); c = s.dup(); c.setsockopt(socket.SOL_SOCKET, 29, 1); c.setsockopt(socket.IPPROTO_TCP, 37, 1); c.close()
s.connect(("10.1.0.2", 6029)); s.send(b"x"); s.shutdown(1)
while s.recv(9999): pass' && wait $SERVER && told "to 10.1.0.2:6029: TCP, it has an option that ESP lacks" && return
	down
	return 1
}
# Two processes share the listener. One sets the option; the other one gets its client by TCP.
lacking_later()
{
	: >"$LOG"
	serve /usr/bin/python3 -IS -c 'import select, socket
s = socket.socket(); s.bind(("", 6028)); s.listen(); s.settimeout(0)
try: s.accept()
except BlockingIOError: pass
open("'"$TMP/waits"'", "w")
import os, time
while not os.path.exists("'"$TMP/go"'"): time.sleep(0.01)
if not os.fork():
    s.setsockopt(socket.SOL_SOCKET, 29, 1); os._exit(0)
os.wait()
select.select([s], [], []); c = s.accept()[0]; c.settimeout(None)
while c.send(c.recv(9999)): pass'
	until_true 60 [ -e "$TMP/waits" ] && listens 6028 && touch "$TMP/go" && until_true 60 gone 6028 &&
		run n0 run-calls call block 10.1.0.2 6028 && wait $SERVER && return
	down
	return 1
}

# A full queue sends a client to TCP at once, and the host is not taken for silent.
full_queue()
{
	: >"$LOG"
	serve /usr/bin/python3 -IS -c 'import select, socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", 6025)); s.listen(0)
select.select([s], [], []); time.sleep(1000)'
	until_true 100 in_tcp n1 6025 && up 6025 && serve_second && run n0 /usr/bin/python3 -IS -c 'import socket, time
def one(port):
    s = socket.socket(); s.setblocking(False); s.connect_ex(("10.1.0.2", port)); return s
a = [one(6025) for i in range(4)]
one(6026)' && told "to 10.1.0.2:6025: TCP, nothing listens there by ESP" && told "to 10.1.0.2:6026: ESP"
	local status=$?
	kill $SECOND
	down
	return $status
}
serve_second()
{
	nsenter --net=/run/netns/n1 "${RUN[@]}" run-calls serve accept 0.0.0.0 6026 2 >/dev/null 2>&1 &
	SECOND=$!
	up 6026
}

# The descriptors that the library adds have small numbers, however many a process may have.
small_numbers()
{
	(
		ulimit -n 1048576 && run n0 /usr/bin/python3 -IS -c 'import os
n = max(map(int, os.listdir("/proc/self/fd")))
print(n)
assert 3 < n < 256'
	)
}

# A library that is in LD_PRELOAD already stays first.
stays_first() { LD_PRELOAD=libm.so.6 run n0 env | grep "^LD_PRELOAD=libm.so.6:.*libesp-run.so$"; }

# A script without an interpreter is the shell's.
bare_script()
{
	echo 'echo "$0 got $*"' >"$TMP/script" && chmod +x "$TMP/script" &&
		run n0 "$TMP/script" a "b c" | grep -x "$TMP/script got a b c"
}

# refuses WORDS PROGRAM...: esp run refuses the program, and says why.
refuses() { gives 1 "$1" esp run "${@:2}"; }
set_user_id()
{
	cp "$(type -P true)" "$TMP/suid" && chown nobody "$TMP/suid" && chmod u+s "$TMP/suid" || return
	gives 1 "gains privileges" esp run "$TMP/suid"
}

if part fallback; then
	n0 sysctl -qw net.ipv4.tcp_syn_retries=1
	check "the server isn't run so: TCP, at once" by_tcp only_tcp_there
	check "it waits in a way that is not seen: TCP, at once" by_tcp not_waiting
	check "its ESP listener doesn't fit into epoll: TCP" by_tcp one_watch
	check "it doesn't answer by ESP: TCP, the next time at once" disabled n1 v1 by_tcp twice \
		"it has not answered by ESP" "it has not answered by ESP lately"
	check "the own device isn't enabled: TCP" disabled n0 v0 by_tcp twice "the device is not enabled for ESP"
	check "behind a router: TCP" carried n2 "== 0" ">= 1" routed
	check "a wrong MAC address: TCP, which finds nobody either" by_tcp wrong_neighbour
	# the kernel gives the address up before TCP gives the connection up
	n0 sysctl -qw net.ipv4.neigh.v0.retrans_time_ms=200
	check "no such host" no_host
	check "... again, at once" no_host_again
	check "a socket of another namespace: TCP" by_tcp other_namespace
	check "a daemon leaves standard error" daemon_leaves
	check "a peer whose address is not known has none" by_esp 100 unknown_peer
	check "an entry by hand says who a peer is" by_esp 100 pinned_peer
	check "the server is killed" killed_peer
	check "the cable is cut" cut_off
	for way in accept poll select epoll shared; do
		check "the ESP listener is ended, while $way waits: TCP" by_tcp ended_listener $way
	done
	check "with --only, nothing goes by TCP" only
	check "... a host that was not there is found again" by_esp 1 comes_back \
		"its MAC address was not known lately, either" ip0 neigh flush dev v0
	ip1 addr add 10.1.0.3/24 dev v1
	check "another user's ESP listener on a server's port gets nothing" by_tcp port_of_others
	check "... one that was there first" by_tcp port_taken
	check "... one that came when the server's was ended" by_tcp port_after_kill
	check "a server at one address doesn't answer for another one" at_other 10.1.0.3
	check "... nor one of IPv4 for IPv6" at_other fd01::2
	check "two servers on a port: each gets its clients" carried n1 ">= 100" ">= 1" two_servers
	check "a full queue: TCP, and the host isn't silent" full_queue
	check "a listener on loopback is not to be reached by ESP" on_loopback
	check "the library's descriptors have small numbers" small_numbers
	check "libraries in LD_PRELOAD stay first" stays_first
	check "a script without an interpreter" bare_script
	check "a static program is refused" refuses "linked statically" ldconfig
	check "... one that there isn't" refuses "there is no such program" nosuch
	check "... one that gains privileges" set_user_id
	check "a client with an option that ESP lacks: TCP" by_tcp lacking n0
	check "... which a copy of its socket has set" by_tcp lacking_copy
	check "... a server" by_tcp lacking n1
	check "... a server that listens already" by_tcp lacking_later
	check "no sockets are left" until_true 60 no_sockets n0 n1 n2
fi

no_module()
{
	local status

	rmmod esp_diag esp || return
	by_tcp_alone
	status=$?
	insmod "$BUILD/esp.ko" && insmod "$BUILD/esp_diag.ko" && return $status
}
by_tcp_alone()
{
	: >"$LOG"
	serve run-calls serve epoll 0.0.0.0 6012 1
	until_true 60 in_tcp n1 6012 && run n0 run-calls call epoll 10.1.0.2 6012 && wait $SERVER &&
		told "at 0.0.0.0:6012: TCP, no ESP socket" && told "to 10.1.0.2:6012: TCP, the kernel has no ESP here"
}
if part silent; then
	check "a host that was silent is found again, after 30 seconds" by_esp 1 comes_back \
		"it has not answered by ESP lately"
fi
if part fallback; then
	check "the module isn't loaded: TCP" no_module
fi
finish
