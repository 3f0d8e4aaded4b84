#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: programs that people run, by TCP and by "esp run", in turns. Prints lines
# "CASE METRIC UNIT PROTO VALUE" for bench-programs.sh, where PROTO is tcp, esp ("esp run" at both
# ends) or native (a program of this project that does the same by AF_ESP).
#
#	programs.sh [-r ROUNDS] [-c CASES]
#
# CASES is a pattern of their names.

PARTS=''
. "${0%/*}/../lib/run.sh"

ROUNDS=3 CASES='*' SECONDS_LONG=2
while getopts r:c: o; do
	case $o in
	r) ROUNDS=$OPTARG ;;
	c) CASES=$OPTARG ;;
	*) FINISHED=1; exit 2 ;;
	esac
done

die()
{
	echo "$*" >&2
	tail -20 "$TMP/server" "$TMP/out" >&2
	[ ! -e "$LOG" ] || tail -5 "$LOG" >&2
	exit 1
}

# wanted CASE: its name matches CASES.
wanted()
{
	# shellcheck disable=SC2053
	[[ $1 = $CASES ]]
}

# at HOST PROTO COMMAND...: become the command on this host, by "esp run" if PROTO is esp. Clients
# and servers have a processor each, as the wake-ups of a scheduler that moves them vary more than
# what is measured.
at()
{
	local host=$1 run=()

	[ "$2" != esp ] || run=(esp run -l "$LOG" -w 20000)
	exec nsenter --net="/run/netns/$host" taskset -c "${host#n}" "${run[@]}" "${@:3}"
}

# server PROTO PORT COMMAND...: start a server on n1 and wait for it; sets SERVER.
server()
{
	at n1 "$1" "${@:3}" >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 100 in_tcp n1 "$2" && { [ "$1" != esp ] || until_true 100 listens "$2"; } || die "$3, $1: doesn't start"
}

# stop PORT [SIGNAL]: end the server, which must still run and end by no other signal, and wait until
# its port is free.
stop()
{
	local signal=${2:-TERM} status

	kill "-$signal" "$SERVER" || die "the server of port $1 has ended by itself"
	{ wait "$SERVER"; status=$?; } 2>/dev/null	# the shell's word that it was killed
	[ $status -le 128 ] || [ $status = $((128 + $(kill -l "$signal"))) ] ||
		die "the server of port $1 has crashed: status $status"
	[ -z "$1" ] || until_true 60 free "$1" || die "the server of port $1 doesn't end"
}
free() { ! in_tcp n1 "$1"; }

# client PROTO COMMAND...: run a client on n0; its output is in $TMP/out. All of its data goes the
# way that PROTO says.
client()
{
	local proto=$1 esp segments

	count n0 n1
	esp=$ESP segments=$SEGMENTS
	(at n0 "$@") >"$TMP/out" 2>&1 || die "$2, $proto: failed"
	count n0 n1
	case $proto in
	esp | native) [ "$SEGMENTS" = "$segments" ] || die "$2, $proto: some of it went by TCP" ;;
	tcp) [ "$ESP" = "$esp" ] || die "$2, $proto: some of it went by ESP" ;;
	esac
}

# value CASE METRIC UNIT PROTO VALUE
value()
{
	[ -n "$5" ] || die "$1, $4: no $2"
	echo "$*"
}

#
# Programs: each function takes PROTO
#

iperf()
{
	local case streams options

	server "$1" 5201 iperf3 -s -p 5201
	while read -r case streams options; do
		wanted "$case" || continue
		# shellcheck disable=SC2086
		client "$1" iperf3 -c 10.1.0.2 -p 5201 -P "$streams" -t $SECONDS_LONG -J $options
		value "$case" rate Gbit/s "$1" "$(awk -F '[:,]' '/"sum_received"/ { on = 1 }
			on && /"bits_per_second"/ { printf "%.2f", $2 / 1e9; exit }' "$TMP/out")"
	done <<-END
		iperf3-1 1
		iperf3-4 4
		iperf3-8 8
		iperf3-1-back 1 -R
		iperf3-4-back 4 -R
		iperf3-8-back 8 -R
	END
	stop 5201
}

# esp perf, which writes 128 KiB at a time as iperf3 does
iperf_native()
{
	wanted iperf3-1 || return
	at n1 native esp perf -s %v1:5202 >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 100 listens 5202 || die "esp perf doesn't start"
	client native esp perf -t $SECONDS_LONG -l 128K -j -c "$(mac n1 v1)%v0:5202"
	value iperf3-1 rate Gbit/s native "$(awk -F '[:,}]' '{ for (i = 1; i < NF; i++) if ($i ~ /"bits_per_second"/) v = $(i + 1) }
		END { if (v) printf "%.2f", v / 1e9 }' "$TMP/out")"
	stop ''
}

web()
{
	local case file connections options

	mkdir -p "$TMP/www"
	head -c 1024 /dev/urandom >"$TMP/www/1k"
	head -c 1048576 /dev/urandom >"$TMP/www/1m"
	cat >"$TMP/nginx.conf" <<-END
		user root; worker_processes 1; daemon off; pid $TMP/nginx.pid; error_log $TMP/nginx.log;
		events { worker_connections 4096; }
		http { access_log off; sendfile on; keepalive_requests 1000000000;
			client_body_temp_path $TMP; proxy_temp_path $TMP; fastcgi_temp_path $TMP; uwsgi_temp_path $TMP; scgi_temp_path $TMP;
			server { listen 80; root $TMP/www; } }
	END
	server "$1" 80 nginx -p "$TMP" -c "$TMP/nginx.conf"
	while read -r case file connections options; do
		wanted "$case" || continue
		# shellcheck disable=SC2086
		client "$1" wrk --timeout 60s -t 1 -c "$connections" -d ${SECONDS_LONG}s ${options:+-H "$options"} "http://10.1.0.2/$file"
		! grep -i "errors\|non-2xx" "$TMP/out" || die "$case, $1: errors"
		value "$case" rate requests/s "$1" "$(awk '/^Requests\/sec:/ { print $2 }' "$TMP/out")"
	done <<-END
		nginx-1k-kept 1k 8
		nginx-1k-closed 1k 8 Connection: close
		nginx-1m-kept 1m 8
		nginx-1m-closed 1m 8 Connection: close
	END
	stop 80
}

redis()
{
	local case options

	server "$1" 6379 redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' --dir "$TMP"
	while read -r case options; do
		wanted "$case" || continue
		# shellcheck disable=SC2086
		client "$1" redis-benchmark -h 10.1.0.2 -p 6379 --csv -t set,get $options
		for c in SET GET; do
			value "$case-$c" rate requests/s "$1" "$(awk -F '"' -v c=$c '$2 == c { print $4 }' "$TMP/out")"
		done
	done <<-END
		redis-1 -c 1 -n 20000
		redis-50 -c 50 -n 50000
		redis-200 -c 200 -n 50000
		redis-50-pipeline -c 50 -n 400000 -P 16
	END
	stop 6379
}

memcache()
{
	wanted memcached || return
	printf '%s\n' key "64 64 1" value "1024 1024 1" cmd "0 0.1" "1 0.9" >"$TMP/slap.cnf"
	server "$1" 11211 memcached -u root -l 0.0.0.0 -p 11211 -U 0 -t 1
	client "$1" memcaslap -F "$TMP/slap.cnf" -s 10.1.0.2:11211 -T 1 -c 16 -t ${SECONDS_LONG}s
	value memcached rate operations/s "$1" "$(sed -n 's/.* TPS: \([0-9]*\).*/\1/p' "$TMP/out" | tail -1)"
	stop 11211
}

postgres()
{
	local bin

	wanted pgbench || return
	bin=$(echo /usr/lib/postgresql/*/bin)
	chmod 755 "$TMP"
	if [ ! -d "$TMP/db" ]; then
		mkdir "$TMP/db" && chown postgres "$TMP/db"
		setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/initdb" -N -A trust -D "$TMP/db/data" >"$TMP/out" 2>&1 ||
			die "initdb failed"
		echo "host all all 10.1.0.1/32 trust" >"$TMP/db/data/pg_hba.conf"
	fi
	touch "$LOG"
	chmod 666 "$LOG"
	server "$1" 5432 setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/postgres" -D "$TMP/db/data" -k "$TMP/db" \
		-c fsync=off -c listen_addresses=0.0.0.0
	client "$1" pgbench -h 10.1.0.2 -U postgres -i -q postgres
	client "$1" pgbench -h 10.1.0.2 -U postgres -S -c 8 -j 1 -T $SECONDS_LONG postgres
	value pgbench rate transactions/s "$1" "$(sed -n 's/^tps = \([0-9.]*\) .*/\1/p' "$TMP/out")"
	stop 5432 INT
}

latency()
{
	wanted sockperf || return
	server "$1" 11111 sockperf server --tcp -i 0.0.0.0 -p 11111
	client "$1" sockperf ping-pong --tcp -i 10.1.0.2 -p 11111 -t $SECONDS_LONG -m 64 --full-rtt
	value sockperf median us "$1" "$(sed -nE 's/.*percentile 50.000 = *([0-9.]+).*/\1/p' "$TMP/out")"
	value sockperf p99 us "$1" "$(sed -nE 's/.*percentile 99.000 = *([0-9.]+).*/\1/p' "$TMP/out")"
	stop 11111
}

# copy CASE PROTO COMMAND...: print the rate at which the command copies $TMP/www/big.
copy()
{
	local case=$1 begin

	wanted "$case" || return
	rm -f "$TMP/files/big"
	begin=$EPOCHREALTIME
	client "${@:2}"
	cmp "$TMP/www/big" "$TMP/files/big" || die "$case, $2: other data"
	value "$case" rate MB/s "$2" "$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", 67.108864 / (b - a) }')"
}

files()
{
	mkdir -p "$TMP/www" "$TMP/files" /run/sshd
	[ -e "$TMP/www/big" ] || head -c 64M /dev/urandom >"$TMP/www/big"
	printf '%s\n' "use chroot = no" "[files]" "path = $TMP/files" "read only = no" "uid = root" "gid = root" >"$TMP/rsyncd.conf"
	server "$1" 873 rsync --daemon --no-detach --config="$TMP/rsyncd.conf" --log-file=/dev/stdout
	copy rsync "$1" rsync -W "$TMP/www/big" rsync://10.1.0.2:873/files/big
	stop 873
	[ -e "$TMP/key" ] || ssh-keygen -q -t ed25519 -N '' -f "$TMP/key" || die "ssh-keygen failed"
	cp "$TMP/key.pub" "$TMP/authorized"
	chmod 600 "$TMP/key" "$TMP/authorized"
	printf '%s\n' "HostKey $TMP/key" "AuthorizedKeysFile $TMP/authorized" "StrictModes no" "UsePAM no" "PermitRootLogin yes" \
		"PidFile none" "Subsystem sftp internal-sftp" >"$TMP/sshd_config"
	printf '%s\n' "IdentityFile $TMP/key" "StrictHostKeyChecking no" "UserKnownHostsFile $TMP/known" \
		"LogLevel ERROR" "User root" >"$TMP/ssh_config"
	server "$1" 22 "$(type -P sshd)" -D -e -p 22 -f "$TMP/sshd_config"
	copy scp "$1" scp -q -F "$TMP/ssh_config" "$TMP/www/big" 10.1.0.2:"$TMP/files/big"
	stop 22
}

# any CASE...: at least one of them is wanted.
any()
{
	local c

	for c; do
		! wanted "$c" || return 0
	done
	return 1
}

round()
{
	local p

	for p in $1; do
		if any iperf3-1 iperf3-4 iperf3-8 iperf3-1-back iperf3-4-back iperf3-8-back; then
			iperf "$p"
		fi
		! any nginx-1k-kept nginx-1k-closed nginx-1m-kept nginx-1m-closed || web "$p"
		! any redis-1 redis-50 redis-200 redis-50-pipeline || redis "$p"
		memcache "$p"
		postgres "$p"
		latency "$p"
		! any rsync scp || files "$p"
	done
	iperf_native
}

for ((i = 0; i < ROUNDS; i++)); do
	((i % 2)) && round "tcp esp" || round "esp tcp"
done
FINISHED=1
