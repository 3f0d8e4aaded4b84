#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Sysctls and module parameters: a value out of range is refused, and the log names
# the range (sysctl.rst).  The module works with another family and EtherType.
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+

. "${0%/*}/../lib/lib.sh"

# logged WORDS: the kernel's log says it since the last "forget".
logged() { dmesg | sed "1,/$MARK/d" | grep -qF -e "$1"; }
forget()
{
	MARK="net-params: $RESULTS"
	echo "$MARK" >/dev/kmsg
}

# write NAME VALUE
write() { n0 tee "/proc/sys/net/esp/$1" <<<"$2" >/dev/null; }

# refuses NAME VALUE: the sysctl refuses it with EINVAL, and keeps its value.
refuses()
{
	local old

	old=$(n0 cat "/proc/sys/net/esp/$1")
	LC_ALL=C write "$1" "$2" 2>"$TMP/error" && return 1
	grep "Invalid argument" "$TMP/error" && [ "$(n0 cat "/proc/sys/net/esp/$1")" = "$old" ]
}

# takes NAME VALUE
takes() { write "$1" "$2" && [ "$(n0 cat "/proc/sys/net/esp/$1")" = "$2" ]; }

hosts 2
cable n0 v0 n1 v1

forget
for ranged in "packets_to_ack 0 1 64" "packets_to_ack 65 1 64" "adaptive 2 0 1" \
	"initial_ack_burst_length -2 -1 64"; do
	read -r name value low high <<<"$ranged"
	check "$name $value is refused" refuses $name $value
	check "... the log has the range" logged "net.esp.$name: range is $low ... $high"
	check "$name $low is taken" takes $name $low
	check "$name $high is taken" takes $name $high
done
# all_refuse VALUE: all sysctls refuse it; one process tries them.
all_refuse()
{
	n0 env LC_ALL=C bash -c 'cd /proc/sys/net/esp
		for f in * dev/*/enable; do
			[ -f "$f" ] && [ $f != mem ] || continue
			old=$(<$f)
			bad=$(echo '"$1"' 2>&1 >$f) && echo "$f took '"$1"'"
			[[ $bad = *"Invalid argument"* ]] && [ "$(<$f)" = "$old" ] || { echo "$f: $bad"; exit 1; }
			n=$((n + 1))
		done
		[ $n -gt 20 ]'
}
check "none takes -2" all_refuse -2
check "none takes 2147483647" all_refuse 2147483647
check "each namespace has its own" [ "$(n1 cat /proc/sys/net/esp/packets_to_ack)" != 64 ]

# loads PARAMETER...
loads() { insmod "$BUILD/esp.ko" "$@"; }

cleanup_hosts()
{
	for h in $HOSTS; do
		ip netns delete $h
	done
	HOSTS=
}
cleanup_hosts
check "the module leaves" until_true 60 eval 'rmmod esp_diag 2>/dev/null; rmmod esp'
for bad in "family=0 family=0 is out of range" "family=1000 family=1000 is out of range" \
	"ethertype=0x5ff ethertype=0x5ff is out of range" "ethertype=0x10000 ethertype=0x10000 is out of range" \
	"ethertype=0x0800 ethertype=0x800 is assigned" "ethertype=0x8100 ethertype=0x8100 is assigned" \
	"family=2 family 2 is taken"; do
	forget
	check_fails "${bad%% *} is refused" "" loads "${bad%% *}"
	check "... the log says why" logged "esp: ${bad#* }"
done
check_fails "family=two is refused" "Invalid" loads family=two

check "family=28 ethertype=0x88b6 is taken" loads family=28 ethertype=0x88b6
hosts 2
cable n0 v0 n1 v1
check "... and works" transfer n0 v0 n1 v1 -f 28 -n 64k
check_fails "... but not the number it had" "not supported" transfer n0 v0 n1 v1 -n 64k
cleanup_hosts
check "it leaves again" until_true 60 rmmod esp
check "default_enable=1 is taken" loads default_enable=1
hosts 1
ip0 link add br0 type bridge
check "... and enables a bridge" [ "$(n0 cat /proc/sys/net/esp/dev/br0/enable)" = 1 ]
cleanup_hosts
check "it leaves once more" until_true 60 rmmod esp
check "the module is back as it was" eval 'loads && insmod "$BUILD/esp_diag.ko"'
finish
