#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck disable=SC2015,SC2016,SC2034,SC2154,SC2219,SC2317
#
# esp run: the TCP connections of unchanged third-party programs go over ESP, as the counters of
# both hosts prove. The programs' results are right.
#
#	net-run-programs.sh [PART]...	programs, more (programs), database

PARTS=" ${*:-programs more database} "
. "${0%/*}/../lib/run.sh"

head -c 3000000 /dev/urandom >"$TMP/data"

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
web_conf()
{
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
}
web_get() { run n0 curl -sf http://10.1.0.2/data | cmp - "$TMP/data"; }
web_start() { web_conf && run n1 "$(type -P nginx)" -p "$TMP" -c "$TMP/nginx.conf" && up 80; }
# web_stop STATUS
web_stop()
{
	[ "$1" = 0 ] || cat "$TMP/nginx.log" "$TMP/wrk" "$LOG"
	pkill -f "nginx: master" && until_true 60 workers 0 && return "$1"
}
not_there() { [ ! -e "$1" ]; }
web()
{
	web_start && web_get && run n0 wrk --timeout 60s -t 2 -c 10 -d 2s http://10.1.0.2/data >"$TMP/wrk" &&
		grep -A1 requests "$TMP/wrk" && ! grep -i "errors\|non-2xx" "$TMP/wrk" && grep -q "^10.1.0.1 " "$TMP/access.log"
	web_stop $?
}

# A new binary takes over the listener (USR2), the old one ends, the new one reads its configuration
# again (HUP). nginx gives the new one an environment without LD_PRELOAD.
web_upgrade()
{
	local old

	web_start && web_get && old=$(<"$TMP/nginx.pid") && kill -USR2 "$old" &&
		until_true 60 is_there "$TMP/nginx.pid.oldbin" && until_true 60 workers 4 && web_get && kill -QUIT "$old" &&
		until_true 60 not_there "$TMP/nginx.pid.oldbin" && until_true 60 workers 2 && web_get && web_get &&
		old=$(pgrep -f "nginx: worker") && kill -HUP "$(<"$TMP/nginx.pid")" && until_true 60 reloaded "$old" &&
		web_get && web_get
	web_stop $?
}
# reloaded PIDS: nginx has two workers, which are none of these.
reloaded() { workers 2 && ! pgrep -f "nginx: worker" | grep -qxF "$1"; }
is_there() { [ -s "$1" ]; }
# workers N: nginx has N processes that accept.
workers() { [ "$(pgrep -fc 'nginx: worker process')" = "$1" ]; }

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

# asyncio, and copies of listeners and connections.
python_dup()
{
	cat >"$TMP/dup.py" <<-'END'
		import asyncio, os, socket, sys
		async def serve():
		    async def echo(r, w):
		        copy = socket.socket(fileno=os.dup(w.get_extra_info("socket").fileno()))
		        while data := await r.read(65536):
		            w.write(data)
		            await w.drain()
		        w.close()
		        copy.shutdown(socket.SHUT_WR)
		        copy.close()
		    first = socket.create_server(("0.0.0.0", 8010))
		    copy = first.dup()
		    first.close()
		    copy.setblocking(False)
		    server = await asyncio.start_server(echo, sock=copy)
		    await server.serve_forever()
		async def call(i):
		    s = socket.socket()
		    s.setblocking(False)
		    await asyncio.get_running_loop().sock_connect(s, ("10.1.0.2", 8010))
		    copy = s.dup()
		    if i % 2:
		        s.close()
		        s = copy
		    r, w = await asyncio.open_connection(sock=s)
		    data = bytes([i]) * 100000
		    w.write(data)
		    w.write_eof()
		    assert await r.read() == data
		    w.close()
		async def calls():
		    await asyncio.gather(*[call(i) for i in range(8)])
		asyncio.run(serve() if sys.argv[1] == "serve" else calls())
	END
	serve /usr/bin/python3 "$TMP/dup.py" serve
	with 8010 run n0 /usr/bin/python3 "$TMP/dup.py" call
}

# Each option that the help of iperf3 has.
iperf_options()
{
	local option text status=0

	iperf3 --help | grep -oE -- '--[a-z0-9-]{3,}' | sort -u >"$TMP/known"
	for option in "" "--format k" "--interval 0.5" "--pidfile $TMP/i.pid" "--file $TMP/data" "--affinity 0" \
		"--bind 10.1.0.1" "--verbose" "--json" "--logfile $TMP/i.log" "--forceflush" "--timestamps" "--debug" "--version" \
		"--help" "--connect-timeout 5000" "--bitrate 100M" "--pacing-timer 1000" "--bytes 500K" "--blockcount 5" \
		"--length 1000" "--cport 5300" "--parallel 2" "--reverse" "--bidir" "--window 100K" "--congestion cubic" \
		"--set-mss 1000" "--no-delay" "--version4" "--tos 16" "--dscp 8" "--zerocopy" "--omit 1 --time 1" "--title a" \
		"--extra-data b" "--get-server-output" "--udp-counters-64bit" "--repeating-payload" "--dont-fragment" \
		"--reverse --rcv-timeout 5000" "--snd-timeout 5000" "--bind-dev v0"; do
		read -r text _ <<<"$option"
		sed -i "/^$text\$/d" "$TMP/known"
		[[ $option = *" "*time* || $option = --b[yl]* ]] || option+=" --bytes 200K"
		: >"$LOG"
		# For --window, --set-mss and --no-delay the server listens anew, and waits only when the
		# client may have been refused.
		# shellcheck disable=SC2086
		iperf_once $option >"$TMP/out" 2>&1 &&
			{ [[ $option = --window* || $option = --set-mss* || $option = --no-delay* ]] || ! told "5201: TCP,"; } && continue
		echo "iperf3 $option: status $?"
		tail -5 "$TMP/out"
		status=1
	done
	# of the server; of UDP and SCTP; with passwords; with a route or kernel that isn't here
	sed -i -E '/^--(server|daemon|one-off|server-.*|idle-timeout|rcv-timeout|port|udp|sctp|xbind|nstreams|username|.*path|time-skew-.*|version6|flowlabel|fq-rate|time|client|use-pkcs1-padding)$/d' \
		"$TMP/known"
	[ ! -s "$TMP/known" ] || { echo "not tried: $(xargs <"$TMP/known")"; status=1; }
	return $status
}
iperf_once()
{
	local status

	serve iperf3 -s -p 5201 --one-off
	up 5201 && run n0 timeout 60 iperf3 -c 10.1.0.2 -p 5201 "$@"
	status=$?
	[[ $status != 0 || $* = *--version\ * || $* = *--help* ]] && kill $SERVER
	wait $SERVER
	return $status
}
# ... that ESP lacks: TCP carries the data.
iperf_paced()
{
	: >"$LOG"
	serve iperf3 -s -p 5201 --one-off
	up 5201 && run n0 iperf3 -c 10.1.0.2 -p 5201 --fq-rate 100M --bytes 200K && wait $SERVER &&
		told "to 10.1.0.2:5201: TCP, it has an option that ESP lacks"
}

# HAProxy is told to read its configuration again: a new process gets the listener from the old one,
# in a message.
haproxy_reload()
{
	local old status

	head -c 10000 "$TMP/data" | base64 >"$TMP/page"
	cat >"$TMP/haproxy.cfg" <<-END
		global
			stats socket $TMP/haproxy.sock mode 600 level admin expose-fd listeners
			log stderr local0
		defaults
			mode http
			timeout client 60s
			timeout server 60s
			timeout connect 60s
		frontend f
			bind 0.0.0.0:8085
			http-request return status 200 content-type text/plain file $TMP/page
	END
	serve haproxy -W -db -f "$TMP/haproxy.cfg"
	up 8085 && page_get && old=$(pgrep -P $SERVER) && kill -USR2 $SERVER && until_true 60 another "$old" &&
		page_get && page_get && page_get
	status=$?
	[ $status = 0 ] || cat "$TMP/server" "$LOG"
	down
	return $status
}
page_get() { run n0 curl -sf http://10.1.0.2:8085/ | cmp - "$TMP/page"; }
# another PID: the master has one worker, and that is another process.
another() { [ "$(pgrep -P $SERVER | wc -l)" = 1 ] && [ "$(pgrep -P $SERVER)" != "$1" ]; }

# A service gets its listener from the service manager, and leaves it as it was to the next one. The
# manager waits for the first connection itself, by TCP.
activated()
{
	local status

	: >"$LOG"
	nsenter --net=/run/netns/n1 systemd-socket-activate -l 0.0.0.0:8087 -E LD_LIBRARY_PATH "${RUN[@]}" \
		/usr/bin/python3 -c 'import socket
s = socket.socket(fileno=3)
for i in range(3):
    c = s.accept()[0]
    while data := c.recv(65536): c.sendall(data)
    c.close()
assert s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16) == bytes(16)' >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 60 in_tcp n1 8087 && run n0 run-calls call block 10.1.0.2 8087 && up 8087 &&
		run n0 run-calls call epoll 10.1.0.2 8087 && run n0 run-calls call block 10.1.0.2 8087 && wait $SERVER &&
		told "to 10.1.0.2:8087: TCP, nothing listens there by ESP" 1 && told "to 10.1.0.2:8087: ESP" 2
	status=$?
	[ $status = 0 ] || { cat "$TMP/server" "$LOG"; down; }
	return $status
}

node_js()
{
	cat >"$TMP/http.js" <<-'END'
		const http = require("http"), fs = require("fs"), crypto = require("crypto")
		const sum = b => crypto.createHash("sha256").update(b).digest("hex")
		const data = fs.readFileSync(process.argv[3])
		if (process.argv[2] == "serve")
			http.createServer((q, r) => { console.log("peer", q.socket.remoteAddress); r.end(data) }).listen(8020, "0.0.0.0")
		else for (let i = 0; i < 4; i++)
			http.get("http://10.1.0.2:8020/", r => {
				const parts = []
				r.on("data", p => parts.push(p))
				r.on("end", () => { if (sum(Buffer.concat(parts)) != sum(data)) process.exit(1) })
			})
	END
	serve node "$TMP/http.js" serve "$TMP/data"
	with 8020 run n0 node "$TMP/http.js" call "$TMP/data" && grep -q "^peer 10.1.0.1$" "$TMP/server"
}

java_http()
{
	cat >"$TMP/Http.java" <<-'END'
		import com.sun.net.httpserver.HttpServer;
		import java.net.*;
		import java.net.http.*;
		import java.nio.file.*;
		import java.util.Arrays;
		public class Http {
			public static void main(String[] args) throws Exception {
				byte[] data = Files.readAllBytes(Path.of(args[1]));
				if (args[0].equals("serve")) {
					HttpServer s = HttpServer.create(new InetSocketAddress("0.0.0.0", 8030), 0);
					s.createContext("/", e -> {
						System.out.println("peer " + e.getRemoteAddress().getAddress().getHostAddress());
						e.sendResponseHeaders(200, data.length);
						e.getResponseBody().write(data);
						e.close();
					});
					s.start();
					return;
				}
				URI uri = URI.create("http://10.1.0.2:8030/");
				byte[] got = HttpClient.newHttpClient().send(HttpRequest.newBuilder(uri).build(),
					HttpResponse.BodyHandlers.ofByteArray()).body();
				if (!Arrays.equals(got, data) || !Arrays.equals(uri.toURL().openStream().readAllBytes(), data))
					System.exit(1);
			}
		}
	END
	javac -d "$TMP/java" "$TMP/Http.java" || return
	serve java -Xmx64m -XX:+UseSerialGC -cp "$TMP/java" Http serve "$TMP/data"
	with 8030 run n0 java -Xmx64m -XX:+UseSerialGC -cp "$TMP/java" Http call "$TMP/data" && grep -q "^peer 10.1.0.1$" "$TMP/server"
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
	if have nginx=nginx-light wrk curl; then
		program 4000 "nginx, curl, wrk" web
		program 5000 "nginx: another binary takes over" web_upgrade
	fi
	have rsync && program 4000 "rsync's daemon" rsync_daemon
	program 5000 "Python: http.server, urllib, asyncio" python_http
	program 500 "Python: asyncio, with copies of sockets" python_dup
fi
if part more; then
	have redis-server redis-benchmark=redis-tools && program 4000 "redis, redis-benchmark" redis
	have sshd=openssh-server && program 6000 "OpenSSH: ssh, scp, rsync" secure_shell
	have sockperf && program 100 "sockperf" sockperf_tcp
	have memcached memccp=libmemcached-tools memcaslap=libmemcached-tools && program 2000 "memcached, memccp, memccat, memcaslap" memory_cache
	if have iperf3; then
		check "iperf3 with each option" carried n1 ">= 5000" ">= 0" iperf_options
		check "iperf3, paced by the kernel: TCP" carried n1 ">= 0" ">= 10" iperf_paced
	fi
	have haproxy curl && program 20 "HAProxy: another process takes over" haproxy_reload
	have systemd-socket-activate=systemd && check "a listener of the service manager" carried n1 ">= 200" ">= 10" activated
	have node=nodejs && program 4000 "Node: http" node_js
	have java=default-jdk-headless javac=default-jdk-headless && program 2000 "Java: HttpServer, HttpClient" java_http
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

# hardened COMMAND...: become it as systemd would with ProtectSystem=strict, ReadWritePaths= for the
# test's folder, NoNewPrivileges=, User=postgres and RestrictAddressFamilies= for those of Unix, IP,
# netlink and ESP.
hardened()
{
	local families

	families=$(seq 3 45 | grep -vx -e 10 -e 16 -e 19)
	# shellcheck disable=SC2086
	exec nsenter --net=/run/netns/n1 unshare -m --propagation private bash -c '
		mount --bind "$0" "$0" || exit
		while read -r _ _ _ _ at _; do
			case $at in
			/proc* | /sys* | /dev* | "$0") ;;
			*) mount -o remount,ro,bind "$at" || exit ;;
			esac
		done </proc/self/mountinfo
		exec "$@"' "$TMP" \
		setpriv --reuid=postgres --regid=postgres --clear-groups --no-new-privs \
		forbid $families -- "${RUN[@]}" "$@"
}
# refuses_writing: a service of that kind can't write elsewhere.
refuses_writing() { ! (hardened touch /tmp/nosuch) && (hardened touch "$TMP/db/there") && [ -e "$TMP/db/there" ]; }

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
	refuses_writing || return
	hardened "$bin/postgres" -D "$TMP/db/data" -k "$TMP/db" -c fsync=off -c listen_addresses=0.0.0.0 >"$TMP/server" 2>&1 &
	SERVER=$!
	with 5432 pg_calls
	status=$?
	cd "$SRC" || return
	return $status
}
if part database && have psql=postgresql pgbench=postgresql; then
	program 500 "PostgreSQL as a hardened service, psql, pgbench" postgres
fi
finish
