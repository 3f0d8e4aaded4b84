#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The permissions of a process without privileges, and of the owner of a user namespace in a
# network namespace of its own: the table of Documentation/reliability.rst.

. "${0%/*}/../lib/lib.sh"

AS_NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all)
# nobody HOST COMMAND...: run it without capabilities.
nobody()
{
	local host=$1
	shift

	in_host "$host" "${AS_NOBODY[@]}" "$@"
}

# owner COMMAND...: run it in a user namespace, and in a network namespace that belongs to it.
owner() { nobody n0 unshare --user --map-root-user --net "$@"; }

hosts 2
cable n0 v0 n1 v1
chmod 755 "$TMP"

#
# Without privileges
#

check "nobody was made" [ "$(nobody n0 awk '/^CapEff/ { print $2 }' /proc/self/status)" = 0000000000000000 ]
nsenter --net=/run/netns/n1 "${AS_NOBODY[@]}" stream -n 1000G -r 4000 -p 50 listen %v1:2000 \
	>"$TMP/listen" 2>&1 &
LISTENER=$!
nsenter --net=/run/netns/n0 "${AS_NOBODY[@]}" stream -n 1000G -r 4000 -p 50 connect \
	"$(mac n1 v1)%v0:2000" >"$TMP/connect" 2>&1 &
CONNECTOR=$!
check "nobody connects, listens and sends" moves n1
check_fails "... listens below 1024: EACCES" "Permission denied" nobody n1 stream listen %v1:1023
check_fails "... sends frames: EPERM" "Operation not permitted" nobody n1 frame send v1 "$(mac n0 v0)"

for file in $(n1 find /proc/sys/net/esp /sys/module/esp/parameters -type f) ; do
	nobody n1 test -w "$file" && echo "$file"
done >"$TMP/writable"
check "... can't write sysctls or parameters" [ ! -s "$TMP/writable" ]
comment <"$TMP/writable"
check "... but reads sysctls" nobody n1 cat /proc/sys/net/esp/rto_min_us
check "... and counters" nobody n1 grep -q InFrames /proc/net/esp/stat
check_fails "... can't enable devices" "ermi" nobody n1 esp dev disable v1

# number NAME COMMAND...: print that number of the established socket, as the command shows it.
number()
{
	local name=$1
	shift

	"$@" esp show -e | sed -n "s/.* $name:\([0-9]*\).*/\1/p" | head -1
}
mine=$(number recv_seq nobody n1)
came=$(number rx_packets n1)
theirs=$(number recv_seq n1)
check "nobody sees sockets, but no numbers that tell a cookie" [ "$mine" -le $((came + 1)) ]
check "... who may see frames does" [ "$theirs" -gt $((came + 1)) ]
check "the transfer is intact" enough

#
# The owner of a namespace
#

check "who owns a network namespace sets its sysctls" owner bash -c \
	'echo 5 >/proc/sys/net/esp/retries && [ "$(</proc/sys/net/esp/retries)" = 5 ]'
# owner_sets NAME VALUE: who owns a namespace may set it.
owner_sets() { owner bash -c 'echo "$1" >"/proc/sys/net/esp/$0"' "$1" "$2"; }
for buffer in rcvbuf sndbuf; do
	most=$(</proc/sys/net/core/rmem_max)
	[ $buffer = rcvbuf ] || most=$(</proc/sys/net/core/wmem_max)
	check "... $buffer up to what any user may ask for" owner_sets $buffer "$most"
	check_fails "... and no more" "Invalid argument" owner_sets $buffer $((most + 1))
	check "... but who administers the host may" n1 tee /proc/sys/net/esp/$buffer <<<$((most + 1))
done
check "... and no others" [ "$(</proc/sys/net/esp/retries)" != 5 ]
check "... not the memory of all" owner test ! -e /proc/sys/net/esp/mem
check "... nor parameters" owner test ! -w /sys/module/esp/parameters/default_enable
check_fails "... has no way by a veth that isn't enabled" "Network is down" owner bash -c '
	ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up || exit 0
	stream connect 02:00:00:00:00:01%v0:2000 -n 1'
check "... listens below 1024 there" owner bash -c '
	ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up &&
		esp dev enable v0 v1 &&
		{ stream listen %v1:900 -n 64k & } &&
		for ((i = 0; i < 600; i++)); do
			! esp show -l | grep -q ":900\b" || exit 0
			kill -0 $! || exit
			sleep 0.05
		done
	exit 1'
check "... sees no sockets of others" [ "$(owner esp show -a | wc -l)" -le 1 ]
check_fails "... can't unload the module" "ermi" owner rmmod esp_diag
finish
