#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck disable=SC2015,SC2016,SC2219,SC2317
#
# esp run: the TCP connections of unchanged third-party programs go over ESP, as the counters of
# both hosts prove. The programs' results are right. Where ESP is impossible, TCP carries the same.
# First all ways to wait and to connect (run-calls.c), then programs, then failures.
#
#	+-----------+           +-----------+           +-----------+
#	| n0     v0 +-- veth ---+ v1     n1 +-- veth ---+ v2     n2 |
#	+-----------+           +-----------+           +-----------+
#	  10.1.0.1    fd01::/64  .2      10.2.0.1       10.2.0.2, without ESP
#
#	net-run.sh [PART]...	calls, musl, programs, more (programs), database, fallback;
#				silent (half a minute of waiting); hardened (a kernel with seccomp)

. "${0%/*}/../lib/lib.sh"

PARTS=" ${*:-calls musl programs more database fallback} "
PORT=5000
CALLS=run-calls
LOG=$TMP/log
export HOME=$TMP

hosts 3
cable n0 v0 n1 v1
cable n1 w1 n2 v2
ip0 addr add 10.1.0.1/24 dev v0
ip1 addr add 10.1.0.2/24 dev v1
ip0 addr add fd01::1/64 dev v0 nodad
ip1 addr add fd01::2/64 dev v1 nodad
ip1 addr add 10.2.0.1/24 dev w1
ip2 addr add 10.2.0.2/24 dev v2
ip0 route add 10.2.0.0/24 via 10.1.0.2
ip2 route add default via 10.2.0.1
n1 sysctl -qw net.ipv4.ip_forward=1
n2 sysctl -qw net.esp.dev.v2.enable=0

#
# ESP or TCP
#

# segments HOST: print the TCP segments that it has sent to other hosts and to itself.
segments()
{
	in_host "$1" awk '/^Tcp: [0-9]/ { n = $12 } END { print n + 0 }' /proc/net/snmp
}

# carried HOST PACKETS SEGMENTS COMMAND...: the command succeeds. Meanwhile n0 and HOST send data
# packets of ESP and segments of TCP, in numbers for which PACKETS and SEGMENTS hold, such as
# ">= 1" or "== 0".
carried()
{
	local who=$1 packets=$2 segs=$3 esp tcp status
	shift 3

	esp=$(($(stat n0 OutData) + $(stat "$who" OutData)))
	tcp=$(($(segments n0) + $(segments "$who")))
	"$@"
	status=$?
	esp=$(($(stat n0 OutData) + $(stat "$who" OutData) - esp))
	tcp=$(($(segments n0) + $(segments "$who") - tcp))
	echo "$esp packets of ESP, $tcp segments of TCP"
	[ $status = 0 ] || { echo "status $status"; cat "$LOG" "$TMP/server"; return 1; }
	let "esp $packets" && let "tcp $segs"
}
by_esp() { carried n1 ">= $1" "== 0" "${@:2}"; }
by_tcp() { carried n1 "== 0" ">= 1" "$@"; }

# run HOST COMMAND...: run it with the library, which waits as long as a slow machine may take.
run()
{
	in_host "$1" esp run -l "$LOG" -w 20000 "${@:2}"
}

# The command for "&", without a shell function, because $! must be the program's process ID.
RUN=(esp run -l "$LOG" -w 20000)
# serve COMMAND...: run it on n1, in the background; sets SERVER. Its output is shown if a test
# fails.
serve()
{
	nsenter --net=/run/netns/n1 "${RUN[@]}" "$@" >"$TMP/server" 2>&1 &
	SERVER=$!
}

# told WORDS [N]: the log has at least N (1) lines with WORDS.
told() { [ "$(grep -cF -e "$1" "$LOG")" -ge "${2:-1}" ]; }
# up PORT: wait until a server listens there by ESP, too.
listens() { n1 esp show -l | grep -q ":$1\b"; }
up()
{
	until_true 100 listens "$1" && return
	cat "$TMP/server" "$LOG"
	return 1
} 2>/dev/null

# down: kill the server.
down()
{
	kill "$SERVER" 2>/dev/null
	wait "$SERVER"
	SERVER=
} 2>/dev/null

in_tcp() { in_host "$1" awk -v port="$(printf ':%04X$' "$2")" '$4 == "0A" && $2 ~ port { found = 1 } END { exit !found }' /proc/net/tcp; }

part() { [[ $PARTS = *" $1 "* ]]; }

# have PROGRAM...: all are installed; else their tests are skipped.
have()
{
	local p

	for p; do
		[ -n "$(type -P "$p")" ] && continue
		RESULTS=$((RESULTS + 1))
		echo "ok $RESULTS - $p # SKIP it can't be installed"
		return 1
	done
}

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
	cat "$TMP/call"
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
	for way in accept poll ppoll select pselect epoll early earlier edge exclusive threads children signals dup moved handed message exec; do
		check "a server that waits by $way" call block $way 10.1.0.2 0.0.0.0
	done
	for way in nonblock epoll edge oneshot exclusive two high bound; do
		check "a client that connects by $way" call $way accept 10.1.0.2 10.1.0.2
	done
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
# Programs
#

head -c 3000000 /dev/urandom >"$TMP/data"

# with PORT COMMAND...: run it when the server is up; then end the server.
with()
{
	local status

	up "$1" && "${@:2}"
	status=$?
	down
	[ $status = 0 ] || cat "$TMP/server"
	return $status
}

# program PACKETS NAME COMMAND...: test programs, with at least PACKETS packets of ESP.
program() { check "$2" by_esp "$1" "${@:3}"; }


iperf()
{
	serve iperf3 -s -p 5201
	with 5201 run n0 iperf3 -c 10.1.0.2 -p 5201 -n 20M "$@" >"$TMP/out" && grep receiver "$TMP/out"
}

redis()
{
	redis_client() { run n0 redis-cli -h 10.1.0.2 -p 6379 "$@"; }
	redis_calls()
	{
		redis_client -x set file <"$TMP/data" && redis_client get file | head -c 3000000 | cmp - "$TMP/data" &&
			run n0 redis-benchmark -h 10.1.0.2 -p 6379 -c 20 -n 4000 -t set,get -q | tr '\r' '\n' | grep "requests per second" &&
			redis_client client list | grep "addr=10.1.0.1:.* laddr=10.1.0.2:6379 "
	}
	# as its own user, who must be able to open the log
	chmod 755 "$TMP"
	touch "$LOG"
	chmod 666 "$LOG"
	nsenter --net=/run/netns/n1 setpriv --reuid=redis --regid=redis --clear-groups "${RUN[@]}" \
		redis-server --bind 0.0.0.0 --port 6379 --save '' --protected-mode no --dir / >"$TMP/server" 2>&1 &
	SERVER=$!
	with 6379 redis_calls
}

# nginx as a daemon, with two processes that accept.
web()
{
	local status

	mkdir -p "$TMP/www"
	cp "$TMP/data" "$TMP/www/"
	cat >"$TMP/nginx.conf" <<-END
		user root;
		worker_processes 2;
		pid $TMP/nginx.pid;
		error_log $TMP/nginx.log;
		events { }
		http {
			access_log $TMP/access.log;
			client_body_temp_path $TMP; proxy_temp_path $TMP; fastcgi_temp_path $TMP; uwsgi_temp_path $TMP; scgi_temp_path $TMP;
			server { listen 80; root $TMP/www; location / { allow 10.1.0.1; deny all; } }
		}
	END
	run n1 nginx -p "$TMP" -c "$TMP/nginx.conf" && up 80 &&
		run n0 curl -sf http://10.1.0.2/data | cmp - "$TMP/data" &&
		run n0 wrk --timeout 60s -t 2 -c 10 -d 2s http://10.1.0.2/data >"$TMP/wrk" && grep -A1 requests "$TMP/wrk" &&
		! grep -i "errors\|non-2xx" "$TMP/wrk" && grep -q "^10.1.0.1 " "$TMP/access.log"
	status=$?
	[ $status = 0 ] || cat "$TMP/nginx.log" "$TMP/wrk"
	kill "$(<"$TMP/nginx.pid")" && until_true 60 not_there "$TMP/nginx.pid" && return $status
}
not_there() { [ ! -e "$1" ]; }

sshd_for()
{
	mkdir -p /run/sshd
	[ -e "$TMP/key" ] || ssh-keygen -q -t ed25519 -N '' -f "$TMP/key" || return
	cp "$TMP/key.pub" "$TMP/authorized"
	chmod 600 "$TMP/key" "$TMP/authorized"
	cat >"$TMP/sshd_config" <<-END
		HostKey $TMP/key
		AuthorizedKeysFile $TMP/authorized
		StrictModes no
		UsePAM no
		PermitRootLogin yes
		PidFile none
		Subsystem sftp internal-sftp
	END
	printf '%s\n' "IdentityFile $TMP/key" "StrictHostKeyChecking no" "UserKnownHostsFile $TMP/known" \
		"LogLevel ERROR" "User root" >"$TMP/ssh_config"
	serve "$(type -P sshd)" -D -e -p 22 -f "$TMP/sshd_config"
	with 22 "$@"
}
secure_shell()
{
	SSH_CONFIG=(-F "$TMP/ssh_config")
	ssh_calls()
	{
		# sshd serves the connection in a process that it has executed, as another user.
		run n0 ssh "${SSH_CONFIG[@]}" 10.1.0.2 'echo $SSH_CONNECTION; cat' <"$TMP/data" >"$TMP/out" &&
			head -1 "$TMP/out" | grep -E '^10\.1\.0\.1 [0-9]+ 10\.1\.0\.2 22$' && tail -n +2 "$TMP/out" | cmp - "$TMP/data" &&
			run n0 scp -q "${SSH_CONFIG[@]}" "$TMP/data" 10.1.0.2:"$TMP/copy" && cmp "$TMP/data" "$TMP/copy" &&
			rm "$TMP/copy" &&
			run n0 rsync -a -e "ssh ${SSH_CONFIG[*]}" "$TMP/data" 10.1.0.2:"$TMP/copy" && cmp "$TMP/data" "$TMP/copy" &&
			rm "$TMP/copy"
	}
	sshd_for ssh_calls
}

rsync_daemon()
{
	printf '%s\n' "use chroot = no" "[files]" "path = $TMP/files" "read only = no" "uid = root" "gid = root" \
		"hosts allow = 10.1.0.1" >"$TMP/rsyncd.conf"
	mkdir -p "$TMP/files"
	rsync_calls()
	{
		run n0 rsync "$TMP/data" rsync://10.1.0.2:873/files/data && cmp "$TMP/data" "$TMP/files/data" &&
			run n0 rsync rsync://10.1.0.2:873/files/data "$TMP/copy" && cmp "$TMP/data" "$TMP/copy"
	}
	serve rsync --daemon --no-detach --config="$TMP/rsyncd.conf" --log-file=/dev/stdout
	with 873 rsync_calls
}

sockperf_tcp()
{
	serve sockperf server --tcp -p 11111
	with 11111 run n0 sockperf ping-pong --tcp -i 10.1.0.2 -p 11111 -t 2 --full-rtt >"$TMP/out" && grep -a "avg-rtt" "$TMP/out"
}

memory_cache()
{
	memcached_calls()
	{
		# its default configuration, which it would write to the home of root
		printf '%s\n' key "64 64 1" value "1024 1024 1" cmd "0 0.1" "1 0.9" >"$TMP/slap.cnf"
		mkdir -p "$TMP/got" && head -c 500000 "$TMP/data" >"$TMP/part" &&
			run n0 memccp --servers=10.1.0.2:11211 "$TMP/part" &&
			run n0 memccat --servers=10.1.0.2:11211 --file="$TMP/got/part" part && cmp "$TMP/part" "$TMP/got/part" &&
			run n0 memcaslap -F "$TMP/slap.cnf" -s 10.1.0.2:11211 -T 1 -c 4 -x 2000 >"$TMP/slap" && grep -E "TPS|get_misses" "$TMP/slap" &&
			grep -q "^get_misses: 0$" "$TMP/slap"
	}
	serve memcached -u root -l 0.0.0.0 -p 11211 -U 0
	with 11211 memcached_calls
}

python_http()
{
	cat >"$TMP/get.py" <<-'END'
		import asyncio, hashlib, sys, urllib.request
		url, path = sys.argv[1:]
		want = hashlib.sha256(open(path, "rb").read()).digest()
		assert hashlib.sha256(urllib.request.urlopen(url).read()).digest() == want
		async def get():
		    r, w = await asyncio.open_connection("10.1.0.2", 8000)
		    w.write(b"GET /data HTTP/1.0\r\n\r\n")
		    body = (await r.read()).split(b"\r\n\r\n", 1)[1]
		    assert hashlib.sha256(body).digest() == want
		    w.close()
		    return w.get_extra_info("peername")
		async def all():
		    for peer in await asyncio.gather(*[get() for i in range(4)]):
		        assert peer == ("10.1.0.2", 8000), peer
		asyncio.run(all())
	END
	serve /usr/bin/python3 -m http.server -d "$TMP/www" 8000
	with 8000 run n0 /usr/bin/python3 "$TMP/get.py" http://10.1.0.2:8000/data "$TMP/data" && grep -qF "10.1.0.1 - -" "$TMP/server"
}

# esp run refuses a program in Go. Without esp run, or started by another program, it uses TCP;
# through socat, ESP.
go_client()
{
	run n0 hey -n 20 -c 2 http://10.1.0.2:8000/data >"$TMP/out" 2>&1
	[ $? = 1 ] && grep -F "is a program in Go" "$TMP/out"
}
go_by_tcp()
{
	serve /usr/bin/python3 -m http.server -d "$TMP/www" 8000
	with 8000 "$@" hey -n 20 -c 2 http://10.1.0.2:8000/data >"$TMP/out" && grep -F '[200]	20 responses' "$TMP/out"
}
go_by_socat()
{
	local relay status

	serve /usr/bin/python3 -m http.server -d "$TMP/www" 8000
	nsenter --net=/run/netns/n0 "${RUN[@]}" socat TCP-LISTEN:8080,bind=127.0.0.1,fork,reuseaddr TCP:10.1.0.2:8000 2>"$TMP/socat" &
	relay=$!
	until_true 60 in_tcp n0 8080
	with 8000 n0 hey -n 20 -c 2 http://127.0.0.1:8080/data >"$TMP/out" && grep -F '[200]	20 responses' "$TMP/out"
	status=$?
	end $relay
	return $status
}

# A server without esp run listens on its host only; socat relays ESP connections to it.
server_by_socat()
{
	local server status

	nsenter --net=/run/netns/n1 /usr/bin/python3 -m http.server -b 127.0.0.1 -d "$TMP/www" 8001 2>/dev/null &
	server=$!
	serve socat TCP-LISTEN:8000,fork,reuseaddr TCP:127.0.0.1:8001
	until_true 60 in_tcp n1 8001 && with 8000 run n0 curl -sf http://10.1.0.2:8000/data | cmp - "$TMP/data"
	status=$?
	end $server
	return $status
}

mkdir -p "$TMP/www"
cp "$TMP/data" "$TMP/www/"
if part programs; then
	have iperf3 && program 400 "iperf3" iperf && program 400 "iperf3, two streams, from the server" iperf -R -P 2
	have nginx wrk curl && program 4000 "nginx, curl, wrk" web
	have rsync && program 4000 "rsync's daemon" rsync_daemon
	program 5000 "Python: http.server, urllib, asyncio" python_http
fi
if part more; then
	have redis-server redis-benchmark && program 4000 "redis, redis-benchmark" redis
	have sshd && program 6000 "OpenSSH: ssh, scp, rsync" secure_shell
	have sockperf && program 100 "sockperf" sockperf_tcp
	have memcached memccp memcaslap && program 2000 "memcached, memccp, memccat, memcaslap" memory_cache
	if have hey socat; then
		check "a program in Go is refused" go_client
		check "it goes by TCP" by_tcp go_by_tcp n0
		check "... also where another program starts it" by_tcp go_by_tcp run n0 env
		check "by way of socat, by ESP" carried n1 ">= 5000" ">= 100" go_by_socat
		check "by way of socat to a server, by ESP" carried n1 ">= 500" ">= 10" server_by_socat
	fi
fi

#
# A database
#

as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
postgres()
{
	local bin status
	bin=$(echo /usr/lib/postgresql/*/bin)

	chmod 755 "$TMP"
	touch "$LOG"
	chmod 666 "$LOG"
	mkdir -m 700 "$TMP/db"
	chown postgres "$TMP/db"
	cd "$TMP/db" || return
	as_postgres "$bin/initdb" -N -A trust -D "$TMP/db/data" >"$TMP/initdb" 2>&1 || { tail "$TMP/initdb"; return 1; }
	echo "host all all 10.1.0.1/32 trust" >"$TMP/db/data/pg_hba.conf"
	pg_calls()
	{
		[ "$(run n0 psql -h 10.1.0.2 -U postgres -Atc 'select inet_client_addr()')" = 10.1.0.1 ] &&
			run n0 pgbench -h 10.1.0.2 -U postgres -i -q postgres 2>&1 | tail -1 &&
			run n0 pgbench -h 10.1.0.2 -U postgres -c 4 -j 2 -t 25 postgres >"$TMP/out" &&
			grep "actually processed: 100/100" "$TMP/out"
	}
	nsenter --net=/run/netns/n1 setpriv --reuid=postgres --regid=postgres --clear-groups "${RUN[@]}" \
		"$bin/postgres" -D "$TMP/db/data" -k "$TMP/db" -c fsync=off -c listen_addresses=0.0.0.0 >"$TMP/server" 2>&1 &
	SERVER=$!
	with 5432 pg_calls
	status=$?
	cd "$SRC" || return
	return $status
}
if part database && have psql pgbench; then
	program 500 "PostgreSQL, psql, pgbench" postgres
fi

#
# TCP instead of ESP, and the reasons
#

# tcp_server PORT: start a server without esp run.
tcp_server()
{
	nsenter --net=/run/netns/n1 run-calls serve accept 0.0.0.0 "$1" 1 >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 60 in_tcp n1 "$1"
}

# only_tcp_there: no server listens there by ESP.
only_tcp_there()
{
	: >"$LOG"
	tcp_server 6001 && run n0 run-calls call nonblock 10.1.0.2 6001 && wait $SERVER &&
		told "to 10.1.0.2:6001: TCP, nothing listens there by ESP"
}

# A server that listens, but waits in a way that the library doesn't see, gets no connection by ESP.
not_waiting()
{
	: >"$LOG"
	serve /usr/bin/python3 -c 'import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", 6002)); s.listen()
time.sleep(1000)'
	until_true 100 in_tcp n1 6002 && run n0 /usr/bin/python3 -c 'import socket
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
	serve /usr/bin/python3 -c 'import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", 6003)); s.listen()
for i in 1, 2: s.accept()'
	until_true 100 in_tcp n1 6003 && in_host n0 esp run -l "$LOG" -w 300 /usr/bin/python3 -c "$TWICE"
	local status=$? why
	down
	[ $status = 0 ] || return
	for why; do
		told "to 10.1.0.2:6003: TCP, $why" || { cat "$LOG"; return 1; }
	done
}
# disabled HOST DEV COMMAND...
disabled()
{
	local status host=$1 dev=$2
	shift 2

	in_host "$host" sysctl -qw "net.esp.dev.$dev.enable=0"
	"$@"
	status=$?
	in_host "$host" sysctl -qw "net.esp.dev.$dev.enable=1"
	return $status
}

routed()
{
	: >"$LOG"
	nsenter --net=/run/netns/n2 "${RUN[@]}" run-calls serve accept 0.0.0.0 6004 1 >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 60 in_tcp n2 6004 && run n0 run-calls call block 10.2.0.2 6004 && wait $SERVER &&
		told "to 10.2.0.2:6004: TCP, it is behind a router"
}

# fails_with STATUS WORDS COMMAND...
fails_with()
{
	local want=$1 words=$2 status
	shift 2

	"$@" >"$TMP/out" 2>&1
	status=$?
	cat "$TMP/out"
	[ $status = "$want" ] && grep -qF -e "$words" "$TMP/out"
}

# The neighbour table has the MAC address of no host.
wrong_neighbour()
{
	local status

	: >"$LOG"
	ip0 neigh replace 10.1.0.2 lladdr 02:00:00:00:00:99 dev v0 nud permanent
	fails_with 2 "Connection timed out" in_host n0 esp run -l "$LOG" -w 300 run-calls call block 10.1.0.2 6005
	status=$?
	ip0 neigh del 10.1.0.2 dev v0
	[ $status = 0 ] && told "to 10.1.0.2:6005: TCP, it has not answered by ESP"
}
no_host()
{
	: >"$LOG"
	fails_with 2 "No route to host" in_host n0 esp run -l "$LOG" -w 300 run-calls call block 10.1.0.77 6005 &&
		told "to 10.1.0.77:6005: TCP, its MAC address is not known"
}
# A program that tries again and again must not wait for the MAC address each time.
no_host_again()
{
	: >"$LOG"
	in_host n0 esp run -l "$LOG" -w 300 /usr/bin/python3 -c 'import socket
for i in 1, 2, 3:
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("10.1.0.78", 6005))' && told "its MAC address is not known" 1 && told "was not known lately, either" 2
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

# The server is killed; further below, the cable is cut.
killed_peer()
{
	: >"$LOG"
	serve /usr/bin/python3 -c 'import socket, time
s = socket.create_server(("", 6008)); c = s.accept()[0]; c.recv(1); time.sleep(1000)'
	up 6008 || return
	nsenter --net=/run/netns/n0 "${RUN[@]}" run-calls call block 10.1.0.2 6008 >"$TMP/out" 2>&1 &
	until_true 60 told "from 10.1.0.1:" && kill -KILL $SERVER && ! wait $! && cat "$TMP/out" &&
		grep -qE "Connection reset by peer|Broken pipe" "$TMP/out" && told "to 10.1.0.2:6008: ESP"
}
cut_off()
{
	local retries status

	retries=$(n0 sysctl -n net.esp.retries)
	: >"$LOG"
	n0 sysctl -qw net.esp.retries=2
	serve /usr/bin/python3 -c 'import socket
s = socket.create_server(("", 6009)); c = s.accept()[0]
while c.recv(65536): pass'
	up 6009 || return
	nsenter --net=/run/netns/n0 "${RUN[@]}" /usr/bin/python3 -c 'import socket
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
	tcp_server 6010 && fails_with 2 "Connection refused" run_only n0 run-calls call block 10.1.0.2 6010 &&
		told "to 10.1.0.2:6010: not by ESP" && fails_with 2 "No route to host" run_only n0 run-calls call block 10.2.0.2 6010
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
	nsenter --net=/run/netns/n0 esp run --only -l "$LOG" -w 2000 /usr/bin/python3 -c 'import socket, time
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
	up 6023 && fails_with 2 "Connection refused" run n0 run-calls call block "$1" 6023 &&
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
	up 6024 && until_true 60 in_tcp_at n1 0300010A 6024 && run n0 run-calls call block 10.1.0.3 6024 && wait $second &&
		grep -q "^10.1.0.3 6024" "$TMP/second" && run n0 run-calls call block 10.1.0.2 6024 && wait $SERVER &&
		grep -q "^10.1.0.2 6024" "$TMP/server" && told "to 10.1.0.3:6024: TCP" && told "to 10.1.0.2:6024: ESP"
	status=$?
	[ $status = 0 ] || cat "$TMP/second" "$LOG"
	return $status
}
in_tcp_at() { in_host "$1" awk -v at="$2:$(printf %04X "$3")" '$4 == "0A" && $2 == at { found = 1 } END { exit !found }' /proc/net/tcp; }

# A full queue sends a client to TCP at once, and the host is not taken for silent.
full_queue()
{
	: >"$LOG"
	serve /usr/bin/python3 -c 'import select, socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", 6025)); s.listen(0)
select.select([s], [], []); time.sleep(1000)'
	until_true 100 in_tcp n1 6025 && up 6025 && serve_second && run n0 /usr/bin/python3 -c 'import socket, time
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
		ulimit -n 1048576 && run n0 /usr/bin/python3 -c 'import os
n = max(map(int, os.listdir("/proc/self/fd")))
print(n)
assert 3 < n < 1024'
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
refuses() { fails_with 1 "$1" esp run "${@:2}"; }
set_user_id()
{
	cp "$(type -P true)" "$TMP/suid" && chown nobody "$TMP/suid" && chmod u+s "$TMP/suid" || return
	fails_with 1 "gains privileges" esp run "$TMP/suid"
}

if part fallback; then
	n0 sysctl -qw net.ipv4.tcp_syn_retries=1
	check "the server isn't run so: TCP, at once" by_tcp only_tcp_there
	check "it waits in a way that is not seen: TCP, at once" by_tcp not_waiting
	check "it doesn't answer by ESP: TCP, the next time at once" disabled n1 v1 by_tcp twice \
		"it has not answered by ESP" "it has not answered by ESP lately"
	check "the own device isn't enabled: TCP" disabled n0 v0 by_tcp twice "the device is not enabled for ESP"
	check "behind a router: TCP" carried n2 "== 0" ">= 1" routed
	check "a wrong MAC address: TCP, which finds nobody either" by_tcp wrong_neighbour
	# the kernel gives the address up before TCP gives the connection up
	n0 sysctl -qw net.ipv4.neigh.v0.retrans_time_ms=200
	check "no such host" no_host
	check "... again, at once" no_host_again
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
	check "no sockets are left" until_true 60 no_sockets n0 n1 n2
fi

#
# Restrictions of a service manager
#

AF_ESP=19 AF_NETLINK=16

# forbidden WHY FAMILY...: of these families the program has no sockets. A client and a server go by
# TCP, and the log has WHY for each.
forbidden()
{
	local why=$1
	shift

	: >"$LOG"
	nsenter --net=/run/netns/n1 forbid "$@" -- "${RUN[@]}" run-calls serve accept 0.0.0.0 6030 1 >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 60 in_tcp n1 6030 && in_host n0 forbid "$@" -- esp run -l "$LOG" run-calls call block 10.1.0.2 6030 &&
		wait $SERVER && told "to 10.1.0.2:6030: TCP, $why" && grep -q "at 0.0.0.0:6030: TCP, .*$why" "$LOG" && return
	down
	return 1
}

# checks STATUS WORDS COMMAND...: the command, which is esp run --check, says WORDS.
checks()
{
	local want=$1 words=$2 status
	shift 2

	in_host n0 "$@" >"$TMP/out"
	status=$?
	cat "$TMP/out"
	[ $status = "$want" ] && grep -q -e "$words" "$TMP/out"
}
all_is_well() { checks 0 "^ok: a device" esp run --check -l "$LOG" run-calls && ! grep "^no" "$TMP/out"; }

# no_exec: nothing may be executed in the file of the library.
no_exec()
{
	local library
	library=$(dirname "$(type -P esp)")/libesp-run.so

	checks 1 "^no: .*libesp-run.so: nothing may be executed there" unshare -m --propagation private bash -c '
		mount --bind "$0" "$0" && mount -o remount,bind,noexec "$0" && exec "$@"' \
		"$library" esp run --check run-calls
}

if part hardened; then
	check "nothing is forbidden" all_is_well
	check "AF_ESP is forbidden: TCP, and the log says so" by_tcp forbidden "AF_ESP is not permitted here" $AF_ESP
	check "... and AF_NETLINK" by_tcp forbidden "AF_NETLINK is not permitted here" $AF_NETLINK
	check "esp run --check says so" checks 1 "^no: sockets of ESP: not permitted.*AF_ECONET" \
		forbid $AF_ESP -- esp run --check run-calls
	check "... of AF_NETLINK" checks 1 "^no: questions.*AF_NETLINK" forbid $AF_NETLINK -- esp run --check run-calls
	check "... of a library that may not be executed" no_exec
	check "... of a static program" checks 1 "^no: .*ldconfig.*: is linked statically" esp run --check ldconfig
	check "... of a log that can't be written" checks 1 "^no: /nosuch/log: No such file" esp run --check -l /nosuch/log run-calls
	check "... of a device" disabled n0 v0 checks 1 "^no: a device that carries ESP: none is enabled" \
		esp run --check run-calls
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
