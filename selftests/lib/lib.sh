# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced by net-*.sh: TAP, network namespaces n0, n1 … as hosts, cables between
# them, and transfers.  Runs in a guest only: it owns all namespaces there.
#
#	. "${0%/*}/../lib/lib.sh"
#	hosts 2
#	cable n0 v0 n1 v1
#	check "what is said to hold" COMMAND...
#	finish

RESULTS=0 FAILURES=0 HOSTS='' PORT=1024 FINISHED=
declare -A WATCHER=()
TMP=$(mktemp -d)

cleanup()
{
	local status=$? pid host

	trap - EXIT
	for pid in $(jobs -p) "${WATCHER[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	[ -z "$HOSTS" ] || for host in $HOSTS; do	# a test may have deleted some
		[ ! -e "/run/netns/$host" ] || echo "netns delete $host"
	done | ip -force -batch - || status=1
	rm -rf "$TMP"
	if [ -z "$FINISHED" ]; then
		echo "Bail out! ${0##*/} ended early, status $status"
		[ "$status" != 0 ] || status=1
	fi
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

#
# Results
#

# comment: from stdin, as TAP.
comment() { sed 's/^/# /'; }

# show FILE: the same with a file. A process takes longer to start on UML than this.
show()
{
	local lines

	[ -s "$1" ] || return 0
	mapfile -t lines <"$1"
	printf '# %s\n' "${lines[@]}"
}

# took: the time since the result before, as TAP.
took()
{
	local now=${EPOCHREALTIME/[.,]/}

	echo "# after $(((now - LAST) / 1000)) ms"
	LAST=$now
}
LAST=${EPOCHREALTIME/[.,]/}

ok()
{
	RESULTS=$((RESULTS + 1))
	took
	echo "ok $RESULTS - $1"
}

# not_ok TEXT: print the result; after the first failure also the state of all hosts.
not_ok()
{
	RESULTS=$((RESULTS + 1))
	FAILURES=$((FAILURES + 1))
	took
	echo "not ok $RESULTS - $1"
	[ $FAILURES -gt 1 ] || dump
}

# check TEXT COMMAND...: ok if the command succeeds; shows its output.
check()
{
	local text=$1 status
	shift

	"$@" >"$TMP/check" 2>&1
	status=$?
	show "$TMP/check"
	if [ $status = 0 ]; then
		ok "$text"
	else
		not_ok "$text"
	fi
}

# check_fails TEXT WORDS COMMAND...: ok if the command fails and its output has WORDS.
check_fails()
{
	local text=$1 words=$2
	shift 2

	if "$@" >"$TMP/check" 2>&1; then
		echo "# succeeded: $*"
	elif grep -qF -e "$words" "$TMP/check"; then
		ok "$text"
		return
	fi
	show "$TMP/check"
	not_ok "$text"
}

# finish: print the plan and exit with the result of all checks.
finish()
{
	FINISHED=1
	echo "1..$RESULTS"
	[ $RESULTS -gt 0 ] && [ $FAILURES = 0 ]
	exit
}

# dump: print the hosts' counters and sockets; without hosts those of the machine.
dump()
{
	local host

	[ -n "$HOSTS" ] || dump_with timeout 10
	for host in $HOSTS; do
		[ -e "/run/netns/$host" ] || continue
		echo "# --- $host"
		dump_with timeout 10 ip netns exec "$host"
	done
}

dump_with()
{
	{
		"$@" cat /proc/net/esp/dev
		"$@" esp show -z stats
		"$@" esp show -a -e | head -40
		"$@" ip -br link
	} 2>&1 | comment
}

# by_kernel UML DEBUG STOCK: print the argument for this kernel.
by_kernel()
{
	case $KERNEL in
	uml) echo "$1" ;;
	uml-debug) echo "$2" ;;
	*) echo "$3" ;;
	esac
}

#
# Hosts and cables
#

# host NAME...: make new hosts.
host()
{
	local h

	for h; do
		ip netns add "$h" || exit
		ip -n "$h" link set lo up
		HOSTS+=" $h"
	done
}

# hosts N: make the hosts n0, n1 …; the functions below have the same names.
hosts()
{
	local i

	for ((i = 0; i < $1; i++)); do
		host "n$i"
	done
}

in_host()
{
	local host=$1
	shift

	nsenter --net="/run/netns/$host" "$@"
}
n0() { in_host n0 "$@"; }
n1() { in_host n1 "$@"; }
n2() { in_host n2 "$@"; }
ip0() { ip -n n0 "$@"; }
ip1() { ip -n n1 "$@"; }
ip2() { ip -n n2 "$@"; }

# enable HOST DEV: the device carries ESP.
enable() { in_host "$1" tee "/proc/sys/net/esp/dev/$2/enable" <<<1 >/dev/null; }

# cable HOST DEV HOST DEV: make a veth between them and set it up, for ESP if the module is there.
cable()
{
	ip link add "$2" netns "$1" type veth peer name "$4" netns "$3" || exit
	[ ! -e /proc/sys/net/esp ] || { enable "$1" "$2" && enable "$3" "$4"; } || exit
	ip -n "$1" link set "$2" up
	ip -n "$3" link set "$4" up
}

# mac HOST DEV
mac()
{
	local line

	line=$(ip -n "$1" -o link show "$2")
	line=${line##*link/}
	line=${line#* }
	echo "${line%% *}"
}

# watch HOST...: keep a process in each host, so that this shell reads its files of /proc/net without
# starting another one, as /proc/${WATCHER[HOST]}/net. Such a host cannot be deleted before the end.
watch()
{
	local h

	for h; do
		nsenter --net="/run/netns/$h" sleep infinity &
		WATCHER[$h]=$!
		disown	# "wait" waits for the others
	done
	for h; do
		until_true 60 entered "$h" || exit
	done
}
entered() { [ "/proc/${WATCHER[$1]}/ns/net" -ef "/run/netns/$1" ]; }

# read_stat HOST COUNTER...: set STAT to the sum of the counters of a host with a watcher; fail if one
# of them is unknown.
read_stat()
{
	local lines line name

	mapfile -t lines <"/proc/${WATCHER[$1]}/net/esp/stat"
	shift
	STAT=0
	for name; do
		for line in "${lines[@]}"; do
			[[ $line = "$name"[[:blank:]]* ]] || continue
			STAT=$((STAT + ${line##*[[:blank:]]}))
			continue 2
		done
		echo "stat: unknown counter $name" >&2
		return 1
	done
}

# stat HOST COUNTER...: print the sum of the counters; fail if one of them is unknown.
stat()
{
	local host=$1 STAT

	if [ -n "${WATCHER[$host]}" ]; then
		read_stat "$@" && echo "$STAT"
		return
	fi
	shift
	in_host "$host" awk -v names="$*" '
		BEGIN { split(names, list); for (i in list) want[list[i]] }
		$1 in want { n += $2; delete want[$1] }
		END {
			for (name in want) {
				print "stat: unknown counter " name >"/dev/stderr"
				unknown = 1
			}
			if (unknown)
				exit 1
			print n + 0
		}' /proc/net/esp/stat
}

# until_true SECONDS COMMAND...: tries again until the command succeeds or time is up.
until_true()
{
	local end=$((SECONDS + $1))
	shift

	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# no_sockets HOST...: the hosts have no ESP sockets, and no listeners.
no_sockets()
{
	local h out

	for h; do
		out=$(in_host "$h" esp show -a) && [ -z "$out" ] || return 1
	done
}

# block PAGE NAME: print the commands after ".. block: NAME" on the page.
block()
{
	awk -v name="$2" '/^\.\. block: / { on = $3 == name; next } on && /^    / { print substr($0, 5) }
		on && /^[^ :]/ { on = 0 }' "$1"
}

#
# Transfers
#

# start HOST DEV HOST DEV [OPTION...]: run "stream" between the hosts, in both directions. The
# first host connects. "ended" waits for the end.
start()
{
	local a=$1 adev=$2 b=$3 bdev=$4
	shift 4

	PORT=$((PORT + 1))
	# Start the programs without a shell function, because $! must be the program's process ID.
	nsenter --net="/run/netns/$b" stream "$@" listen "%$bdev:$PORT" >"$TMP/listen" 2>&1 &
	LISTENER=$!
	nsenter --net="/run/netns/$a" stream "$@" connect "$(mac "$b" "$bdev")%$adev:$PORT" >"$TMP/connect" 2>&1 &
	CONNECTOR=$!
}

# moves HOST [PACKETS]: that many more packets (20) come in within a minute.
moves()
{
	local from

	from=$(stat "$1" InData)
	until_true 60 counted "$1" InData $((from + ${2:-20}))
}

# counted HOST COUNTER N: the counter is at least N.
counted()
{
	local STAT

	if [ -n "${WATCHER[$1]}" ]; then
		read_stat "$1" "$2" && [ "$STAT" -ge "$3" ]
	else
		[ "$(stat "$1" "$2")" -ge "$3" ]
	fi
}

# ended: waits for both ends of the transfer; succeeds if both did, and received the bytes sent.
ended()
{
	local a b

	wait $CONNECTOR
	a=$?
	# A listener to which no connection came would wait for ever.
	[ $a != 3 ] || kill $LISTENER 2>/dev/null
	wait $LISTENER
	b=$?
	printf '%s\n' "$(<"$TMP/connect")" "$(<"$TMP/listen")"
	[ $a = 0 ] && [ $b = 0 ] && same_hashes "$TMP/connect" "$TMP/listen"
}

# slow_start HOST DEV HOST DEV [OPTION...]: start a transfer that goes on until "enough". Its
# readers are slow, so that at any moment most of the written bytes wait at the sender.
slow_start() { start "$@" -n 1000G -r 4000 -p 50; }

# enough: stop writing, and wait until all bytes have come.
enough()
{
	kill -USR1 $CONNECTOR $LISTENER 2>/dev/null
	ended
}

# end PROCESS: kill it, without a message of the shell.
end()
{
	kill -KILL "$1"
	wait "$1"
} 2>/dev/null

# gives STATUS WORDS COMMAND...: its exit status is STATUS, and it prints WORDS.
gives()
{
	local want=$1 words=$2 status
	shift 2

	"$@" >"$TMP/out" 2>&1
	status=$?
	cat "$TMP/out"
	[ $status = "$want" ] && grep -qF -e "$words" "$TMP/out"
}

# same_hashes FILE FILE: each end received the bytes that the other one sent, by their last lines:
# "connect: sent N hash H received N hash H in S s".
same_hashes()
{
	local a b

	mapfile -t a <"$1"
	mapfile -t b <"$2"
	read -ra a <<<"${a[-1]}"
	read -ra b <<<"${b[-1]}"
	[ "${a[3]}" = hash ] && [ "${a[2]} ${a[4]}" = "${b[6]} ${b[8]}" ] &&
		[ "${a[6]} ${a[8]}" = "${b[2]} ${b[4]}" ]
}

# transfer HOST DEV HOST DEV [OPTION...]
transfer()
{
	start "$@"
	ended
}
