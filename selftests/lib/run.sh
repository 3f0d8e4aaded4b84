# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck shell=bash
# shellcheck disable=SC2015,SC2034,SC2154,SC2219,SC2317
#
# For tests of "esp run", which source it: three hosts, programs that are run so on the first two,
# and what carried their data.
#
#	+-----------+           +-----------+           +-----------+
#	| n0     v0 +-- veth ---+ v1     n1 +-- veth ---+ v2     n2 |
#	+-----------+           +-----------+           +-----------+
#	  10.1.0.1    fd01::/64  .2      10.2.0.1       10.2.0.2, without ESP
#
. "${0%/*}/../lib/lib.sh"

PORT=5000
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
watch n0 n1 n2

#
# ESP or TCP
#

# count HOST...: set ESP and SEGMENTS to the data packets of ESP and the segments of TCP that the hosts
# have sent, to other hosts and to themselves.
count()
{
	local h lines line words STAT

	ESP=0 SEGMENTS=0
	for h; do
		read_stat "$h" OutData || return
		ESP=$((ESP + STAT))
		mapfile -t lines <"/proc/${WATCHER[$h]}/net/snmp"
		for line in "${lines[@]}"; do
			[[ $line = "Tcp: "[0-9]* ]] || continue
			read -ra words <<<"$line"
			SEGMENTS=$((SEGMENTS + words[11]))
		done
	done
}

# carried HOST PACKETS SEGMENTS COMMAND...: the command succeeds. Meanwhile n0 and HOST send data
# packets of ESP and segments of TCP, in numbers for which PACKETS and SEGMENTS hold, such as
# ">= 1" or "== 0".
carried()
{
	local who=$1 packets=$2 segs=$3 esp tcp status
	shift 3

	count n0 "$who" || return
	esp=$ESP tcp=$SEGMENTS
	"$@"
	status=$?
	count n0 "$who" || return
	esp=$((ESP - esp)) tcp=$((SEGMENTS - tcp))
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
told()
{
	local lines line n=0

	mapfile -t lines <"$LOG"
	for line in "${lines[@]}"; do
		[[ $line != *"$1"* ]] || n=$((n + 1))
	done
	[ $n -ge "${2:-1}" ]
}

# up PORT: wait until a server listens there by ESP, too.
listens()
{
	n1 esp show -l >"$TMP/listens" && [[ " $(<"$TMP/listens") " =~ :$1[^0-9] ]]
}
up()
{
	until_true 100 in_tcp n1 "$1" && until_true 100 listens "$1" && return
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

# in_tcp HOST PORT [ADDRESS]: a server listens there by TCP, at this address as /proc/net/tcp has it.
in_tcp()
{
	local lines line words at

	printf -v at %s:%04X "${3:-*}" "$2"
	mapfile -t lines <"/proc/${WATCHER[$1]}/net/tcp"
	[ -n "$3" ] || mapfile -t -O "${#lines[@]}" lines <"/proc/${WATCHER[$1]}/net/tcp6"
	for line in "${lines[@]}"; do
		read -ra words <<<"$line"
		# shellcheck disable=SC2053
		[ "${words[3]}" != 0A ] || [[ ${words[1]} != $at ]] || return 0
	done
	return 1
}

part() { [[ $PARTS = *" $1 "* ]]; }

# have PROGRAM[=PACKAGE]...: all are there. The tests of a program are skipped if this Debian doesn't
# have its package, which has the program's name if none is given. Any other program that is missing
# is a failure.
have()
{
	local p package

	for p; do
		package=${p#*=}
		p=${p%=*}
		[ -n "$(type -P "$p")" ] && continue
		if grep -qxF -e "$package" "$SRC/build/unavailable"; then
			RESULTS=$((RESULTS + 1))
			echo "ok $RESULTS - $p # SKIP this Debian doesn't have $package"
		else
			check "$p is installed" false
		fi
		return 1
	done
}

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

# tcp_server PORT: start a server without esp run.
tcp_server()
{
	nsenter --net=/run/netns/n1 run-calls serve accept 0.0.0.0 "$1" 1 >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 60 in_tcp n1 "$1"
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
