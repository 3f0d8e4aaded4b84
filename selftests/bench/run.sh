#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: what "esp run" costs a program whose connections stay TCP's (loopback), and what a
# relay ("esp proxy") costs beside direct use. Prints lines "CASE METRIC UNIT WAY VALUE". With
# "vm run --icount" a microsecond is 1,000 instructions.
#
#	run.sh [-r ROUNDS] costs	ways: plain, run
#	run.sh [-r ROUNDS] relay	ways: tcp, run (both ends by ESP), proxy (a relay on each host)

PARTS=''
. "${0%/*}/../lib/run.sh"

ROUNDS=3
while getopts r: o; do
	case $o in
	r) ROUNDS=$OPTARG ;;
	*) FINISHED=1; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

# print CASE METRIC UNIT WAY VALUE
print() { echo "$*"; }

die() { echo "$*" >&2; exit 1; }

#
# Costs
#

# by_plain COMMAND..., by_run COMMAND...: become the program, on n1.
by_plain() { exec nsenter --net=/run/netns/n1 "$@"; }
by_run() { exec nsenter --net=/run/netns/n1 esp run "$@"; }

# start WAY COMMAND...: sets SERVER.
start()
{
	"by_$1" "${@:2}" >"$TMP/server" 2>&1 &
	SERVER=$!
}

# sum FIELD FILE PID...: print the sum of a field of /proc/PID/FILE.
sum()
{
	local field=$1 file=$2 p
	shift 2

	for p; do
		cat "/proc/$p/$file"
	done | awk -v field="$field:" '$1 == field { n += $2 } END { print n }'
}

# state CASE WAY PID...: what a server's processes have.
state()
{
	local case=$1 way=$2 p n=0
	shift 2

	for p; do
		n=$((n + $(find "/proc/$p/fd" -mindepth 1 | wc -l)))
	done
	print "$case" descriptors number "$way" $n
	print "$case" table number "$way" "$(sum FDSize status "$@")"
	print "$case" memory KiB "$way" "$(sum Pss smaps_rollup "$@")"
	print "$case" pages KiB "$way" "$(sum VmPTE status "$@")"
}

# ticks PID...: print the processor time of servers and their children that have ended.
ticks()
{
	local p

	for p; do
		cat "/proc/$p/stat"
	done | awk '{ n += $14 + $15 + $16 + $17 } END { print n }'
}

# took CASE METRIC TIMES WAY "PID..." COMMAND...: print the servers' processor time of one of TIMES,
# which COMMAND causes.
took()
{
	local case=$1 metric=$2 times=$3 way=$4 pids=$5 begin
	shift 5

	# shellcheck disable=SC2086
	begin=$(ticks $pids)
	"$@" >"$TMP/took" 2>&1 || { cat "$TMP/took" "$TMP/server" >&2; die "$case, $way: failed"; }
	# shellcheck disable=SC2086
	print "$case" "$metric" us "$way" $((($(ticks $pids) - begin) * 1000000 / $(getconf CLK_TCK) / times))
}

# stop PORT: end the server, and wait until its port is free.
stop()
{
	kill "$SERVER" && wait "$SERVER"
	until_true 60 free "$1"
} 2>/dev/null
free() { ! in_tcp n1 "$1"; }

redis()
{
	local ask=(n1 redis-benchmark -h 127.0.0.1 -p 6379 -t get -q)

	start "$1" redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' --dir "$TMP"
	until_true 100 in_tcp n1 6379 || die "redis, $1: doesn't start"
	took warm-up time 1000 "$1" $SERVER "${ask[@]}" -c 10 -n 1000 >/dev/null
	state redis "$1" $SERVER
	took redis request 20000 "$1" $SERVER "${ask[@]}" -c 10 -n 20000
	stop 6379
}

web()
{
	local pids

	cat >"$TMP/nginx.conf" <<-END
		user root; worker_processes 2; daemon off; pid $TMP/nginx.pid; error_log $TMP/nginx.log;
		events { }
		http { access_log off;
			client_body_temp_path $TMP; proxy_temp_path $TMP; fastcgi_temp_path $TMP; uwsgi_temp_path $TMP; scgi_temp_path $TMP;
			server { listen 80; location / { return 200 "hello"; } } }
	END
	start "$1" nginx -p "$TMP" -c "$TMP/nginx.conf"
	until_true 100 in_tcp n1 80 && until_true 100 workers || die "nginx, $1: doesn't start"
	pids="$SERVER $(pgrep -P $SERVER | xargs)"
	took warm-up time 100 "$1" "$pids" get 100 >/dev/null
	# shellcheck disable=SC2086
	state nginx "$1" $pids
	took nginx request 4000 "$1" "$pids" get 4000
	stop 80
}
workers() { [ "$(pgrep -cP "$SERVER")" = 2 ]; }
# get N: a connection for each request
get() { n1 curl -sf -H 'Connection: close' -o /dev/null "http://127.0.0.1:80/[1-$1]"; }

# A server that makes a process for each connection. The kernel's allocator of memory for each
# processor takes up to a hundred microseconds more or less for a process, which depends on the
# processes that there are: so measure with several numbers of them.
forks()
{
	local total=0 part i
	local -a idle=()

	for i in 1 2 3 4 5 6; do
		start "$1" socat TCP-LISTEN:8001,fork,reuseaddr PIPE
		until_true 100 in_tcp n1 8001 || die "fork server, $1: doesn't start"
		took warm-up time 1 "$1" $SERVER n1 run-options connect 100 127.0.0.1 8001 >/dev/null
		[ $i != 1 ] || state fork "$1" $SERVER
		part=$(took fork connection 1 "$1" $SERVER n1 run-options connect 300 127.0.0.1 8001) || exit
		total=$((total + ${part##*[!0-9]}))
		stop 8001
		sleep 1000 & idle+=($!)
	done
	# no other signal: before it becomes sleep, this shell's copy would clean up in its place
	kill -KILL "${idle[@]}" || die "fork server, $1: an idle process has ended"
	for i in "${idle[@]}"; do
		wait "$i"
		[ $? = 137 ] || die "fork server, $1: an idle process has ended"
	done
	print fork connection us "$1" $((total / 1800))
}

costs()
{
	local way

	ip -n n1 link set lo up
	for way in $1; do
		redis $way
		web $way
		forks $way
	done
}
#
# Relays
#

# relays: start them; sets RELAYS. A client finds the servers of 10.1.0.2 at 127.0.0.1.
relays()
{
	local mac p

	mac=$(mac n1 v1)
	RELAYS=()
	for p in 5201 11111; do
		nsenter --net=/run/netns/n1 esp proxy %v1:$p tcp:127.0.0.1:$p &
		RELAYS+=($!)
		nsenter --net=/run/netns/n0 esp proxy tcp:127.0.0.1:$p "$mac%v0:$p" &
		RELAYS+=($!)
	done
	until_true 60 in_tcp n0 5201 && until_true 60 in_tcp n0 11111 && until_true 60 listens 5201
}

# transfer WAY
transfer()
{
	local client=(nsenter --net=/run/netns/n0) server=(nsenter --net=/run/netns/n1) at=10.1.0.2 p

	case $1 in
	run)
		client+=(esp run --only -l "$LOG")
		server+=(esp run -l "$LOG")
		;;
	proxy)
		at=127.0.0.1
		relays || die "the relays don't start"
		;;
	esac
	"${server[@]}" iperf3 -4 -s -p 5201 >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 100 in_tcp n1 5201 && { [ "$1" != run ] || up 5201; } || die "iperf3, $1: doesn't start"
	"${client[@]}" iperf3 -c $at -p 5201 -t 2 -J >"$TMP/out" || { cat "$TMP/out" "$TMP/server" "$LOG" >&2; die "iperf3, $1: failed"; }
	print bulk rate Mbit/s "$1" "$(awk -F '[:,]' '/"bits_per_second"/ { v = $2 } END { printf "%.0f", v / 1e6 }' "$TMP/out")"
	stop 5201
	"${server[@]}" sockperf server --tcp -i 0.0.0.0 -p 11111 >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 100 in_tcp n1 11111 && { [ "$1" != run ] || up 11111; } || die "sockperf, $1: doesn't start"
	"${client[@]}" sockperf ping-pong --tcp -i $at -p 11111 -t 2 -m 64 --full-rtt >"$TMP/out" ||
		{ cat "$TMP/out" "$TMP/server" "$LOG" >&2; die "sockperf, $1: failed"; }
	print message round-trip us "$1" "$(grep -aoE 'avg-rtt=[0-9.]+' "$TMP/out" | cut -d = -f 2)"
	stop 11111
	if [ "$1" = proxy ]; then
		for p in "${RELAYS[@]}"; do
			end "$p"
		done
	fi
}

case $1 in
costs)
	for ((i = 0; i < ROUNDS; i++)); do
		((i % 2)) && costs "run plain" || costs "plain run"
	done
	;;
relay)
	ip -n n0 link set lo up
	ip -n n1 link set lo up
	for ((i = 0; i < ROUNDS; i++)); do
		WAYS=(tcp run proxy)
		for ((j = 0; j < 3; j++)); do
			transfer "${WAYS[(i + j) % 3]}"
		done
	done
	;;
*)
	FINISHED=1
	die "run.sh costs|relay"
	;;
esac
FINISHED=1
