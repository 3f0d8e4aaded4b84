#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that can't be had and buffers that can't be read, wherever the module
# asks for them: the kernel's fault injection, for calls with esp.ko on their
# stack. A stream stays intact, a call that fails says so, nothing is left over.

. "${0%/*}/lib.sh"

DEBUG=/sys/kernel/debug
MANY=1000000
mountpoint -q $DEBUG || mount -t debugfs none $DEBUG
[ -e $DEBUG/failslab/require-start ] || skip_all "this kernel injects no faults"
TEXT=$(</sys/module/esp/sections/.text)
SIZE=$(awk '$1 == "esp" { print $2 }' /proc/modules)

# inject FAULT PERCENT: from now on, in the module.
inject()
{
	local d=$DEBUG/$1

	echo 0 >"$d/verbose"
	echo "$TEXT" >"$d/require-start"
	printf '%#x\n' $((TEXT + SIZE)) >"$d/require-end"
	[ ! -e "$d/ignore-gfp-wait" ] || echo N >"$d/ignore-gfp-wait"
	[ ! -e "$d/min-order" ] || echo 0 >"$d/min-order"
	echo $MANY >"$d/times"
	echo "$2" >"$d/probability"
}

# heal: no more faults. Those that there were: $INJECTED.
heal()
{
	local d

	INJECTED=
	for d in failslab fail_page_alloc fail_usercopy fail_skb_realloc; do
		[ "$(<$DEBUG/$d/probability)" != 0 ] || continue
		echo 0 >$DEBUG/$d/probability
		INJECTED+=" $d=$((MANY - $(<$DEBUG/$d/times)))"
	done
}

# injected FAULT: there were some.
injected() { echo "$INJECTED"; grep -qE "\b$1=[1-9]" <<<"$INJECTED"; }

hosts 2
cable n0 v0 n1 v1

#
# Data
#

for type in "" -q; do
	start n0 v0 n1 v1 -F -n 4M -w 20000 $type
	moves n1 5
	inject failslab 2
	inject fail_page_alloc 20
	inject fail_usercopy 2
	check "stream ${type:+of records }intact without memory, in both directions" ended
	heal
	for fault in failslab fail_page_alloc fail_usercopy; do
		check "... $fault was injected" injected $fault
	done
done

# Whoever keeps a pointer into a packet while its head may move reads freed memory.
inject fail_skb_realloc 100
check "packets whose head moves whenever it may" transfer n0 v0 n1 v1 -n 256k
heal
check "... they did" injected fail_skb_realloc

#
# Connections
#

# attempt: a connection under faults; it works, or somebody says what failed.
attempt()
{
	start n0 v0 n1 v1 -F -n 20k -T 20
	wait $CONNECTOR
	local a=$?
	[ $a = 0 ] || kill $LISTENER 2>/dev/null
	wait $LISTENER 2>/dev/null
	[ $a != 0 ] || GOOD=$((GOOD + 1))
	cat "$TMP/connect" "$TMP/listen" >>"$TMP/said"
	[ $a = 0 ] || [ -s "$TMP/connect" ]
}

attempts()
{
	local i

	GOOD=0
	inject failslab 10
	inject fail_page_alloc 10
	for ((i = 0; i < 20; i++)); do
		attempt || return
	done
	heal
	echo "$GOOD of $i"
	[ $GOOD -gt 0 ]
}
check "connections: some come about, the others say why not" attempts
check "... failslab was injected" injected failslab
check "... no byte is wrong" [ "$(grep -c 'wrong byte' "$TMP/said")" = 0 ]
grep -v hash "$TMP/said" | sort | uniq -c | comment
check "no sockets are left" until_true 60 no_sockets n0 n1
check "and without faults all is well" transfer n0 v0 n1 v1 -n 256k

#
# Devices, namespaces
#

# tries COMMAND...: some work, some don't.
tries()
{
	local i good=0

	inject failslab 25
	for ((i = 0; i < 20; i++)); do
		! "$@" 2>>"$TMP/said" >&2 || good=$((good + 1))
	done
	heal
	echo "$good of $i"
	[ $good -gt 0 ] && [ $good -lt $i ] && injected failslab
}

new_device() { ip0 link add x0 type veth peer name x1 && ip0 link set x0 up && ip0 link delete x0; }
new_host() { ip netns add n9 && ip netns delete n9; }

check "devices that come" tries new_device
ip0 link delete x0 2>/dev/null
check "namespaces that come" tries new_host
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
