#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that can't be had and buffers that can't be read, wherever the module
# asks for them: the kernel's fault injection, for calls with esp.ko on their
# stack. A stream stays intact, a call that fails says so, nothing is left over.

. "${0%/*}/lib.sh"

DEBUG=/sys/kernel/debug
FAULTS="failslab fail_page_alloc fail_usercopy fail_skb_realloc"
MANY=1000000
mountpoint -q $DEBUG || mount -t debugfs none $DEBUG
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
	for d in $FAULTS; do
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
	start n0 v0 n1 v1 -F -n 16M -w 20000 $type
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

# nth N COMMAND...: the Nth thing in the module that may fail does. The count is
# the task's: COMMAND may not fork.
nth() { (echo "$1" >/proc/self/fail-nth && shift && exec "$@") >>"$TMP/said" 2>&1; }

# each UNDO COMMAND...: COMMAND with a failure at each place in turn, and then
# without. It says so, or the kernel did without (a page where it asked for more).
each()
{
	local undo=$1 n fault refused=0

	shift
	for ((n = 1; n < 1000; n++)); do
		for fault in $FAULTS; do
			inject $fault 0
		done
		if nth $n "$@"; then
			$undo || return
		else
			refused=$((refused + 1))
		fi
		for fault in $FAULTS; do
			[ "$(<$DEBUG/$fault/times)" = $MANY ] || continue 2
		done
		break
	done
	echo "$((n - 1)) places, $refused refusals"
	[ $refused -gt 0 ] && [ $n -lt 1000 ] && "$@" && $undo
}

check "devices that come" each "ip -n n0 link delete x0" \
	ip -n n0 link add x0 up type veth peer name x1
check "namespaces that come" each "ip netns delete n9" ip netns add n9
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
