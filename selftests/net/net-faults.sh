#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory is refused, buffers can't be read and queues are full, wherever the module asks
# for them. A stream stays intact, a call that fails returns an error, and nothing is left
# over. The kernel's fault injection makes calls fail that have esp.ko on their stack;
# faults.c makes each such place of the module fail.
#
# The places are read from the module itself: all its calls of the kernel. faults.calls
# says which of them can fail.
#
#	net-faults.sh [long]	long: faults.c fails the requests of more scenarios, one by one
#	net-faults.sh suite [TEST]...	run sock-TEST under faults: results don't count; it
#				must leave nothing, and the kernel must not complain

. "${0%/*}/../lib/lib.sh"

DEBUG=/sys/kernel/debug
FAULTS="failslab fail_page_alloc fail_usercopy fail_skb_realloc"
MANY=1000000
mountpoint -q $DEBUG || mount -t debugfs none $DEBUG
TEXT=$(</sys/module/esp/sections/.text)
SIZE=$(awk '$1 == "esp" { print $2 }' /proc/modules)
LONG=$1

# inject FAULT PERCENT: inject it into the module from now on. The test ends if the kernel refuses.
inject()
{
	local d=$DEBUG/$1

	echo 0 >"$d/verbose"
	echo "$TEXT" >"$d/require-start"
	printf '%#x\n' $((TEXT + SIZE)) >"$d/require-end"
	[ ! -e "$d/ignore-gfp-wait" ] || echo N >"$d/ignore-gfp-wait"
	[ ! -e "$d/min-order" ] || echo 0 >"$d/min-order"
	echo $MANY >"$d/times"
	[ "$(<"$d/times")" = $MANY ] && [ $(($(<"$d/require-start"))) = $((TEXT)) ] &&
		echo "$2" >"$d/probability" && [ "$(<"$d/probability")" = "$2" ] && return
	echo "# $1 is not armed"
	exit 1
}

# heal: end all faults; INJECTED says how many there were.
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

# injecting N FAULT...: each fault has struck at least N times by now.
injecting()
{
	local d n=$1
	shift

	for d; do
		[ $((MANY - $(<"$DEBUG/$d/times"))) -ge "$n" ] || return
	done
}

# injected FAULT: the fault has struck.
injected() { echo "$INJECTED"; grep -qE "\b$1=[1-9]" <<<"$INJECTED"; }

[ "$1" != suite ] || [ $# != 1 ] ||
	set -- suite connection listen data close zerocopy wait address options seqpacket dgram crc
idle() { [ "$(awk '$1 == "esp" { print $3 }' /proc/modules)" = "$1" ]; }

# under_faults TEST: run it; most of it fails. It ends by itself, or timeout ends it.
under_faults()
{
	local process

	inject failslab 1
	inject fail_page_alloc 5
	inject fail_usercopy 1
	timeout -k 5 150 "sock-$1" >"$TMP/suite" 2>&1
	heal
	# Processes of a test that has failed may wait for ever.
	for process in /proc/[0-9]*; do
		! grep -qsx "sock-$1" "$process/comm" || kill -KILL "${process#/proc/}"
	done 2>/dev/null
	echo "passed $(grep -c ^ok "$TMP/suite"), failed $(grep -c "^not ok" "$TMP/suite"), injected:$INJECTED"
	[[ $INJECTED =~ failslab=[1-9] ]]
}

passes()
{
	"sock-$1" >"$TMP/suite" 2>&1 && return
	grep "^not ok" "$TMP/suite"
	return 1
}

if [ "$1" = suite ]; then
	users=$(awk '$1 == "esp" { print $3 }' /proc/modules)
	for test in "${@:2}"; do
		check "sock-$test under faults" under_faults $test
		check "... leaves nothing" until_true 60 idle "$users"
	done
	for test in "${@:2}"; do
		check "sock-$test without faults" passes $test
	done
	finish
fi

hosts 2
cable n0 v0 n1 v1

#
# Anywhere, any time
#

# A reader of records that gets EFAULT has lost one, so the calls that copy do not fail there.
for type in "" -q; do
	faults="failslab fail_page_alloc"
	[ -n "$type" ] || faults+=" fail_usercopy"
	# The transfer goes on until each fault has struck 20 times, which a fixed number of bytes
	# would not guarantee.
	start n0 v0 n1 v1 -F -n 1000G -w 20000 $type
	moves n1 5
	inject failslab 2
	inject fail_page_alloc 20
	[ -n "$type" ] || inject fail_usercopy 2
	# shellcheck disable=SC2086
	until_true 100 injecting 20 $faults
	check "stream ${type:+of records }intact without memory, in both directions" enough
	heal
	for fault in $faults; do
		check "... $fault was injected" injected $fault
	done
done

# Code that keeps a pointer into a packet while the packet's head moves reads freed memory.
inject fail_skb_realloc 100
check "packets whose head moves whenever it may" transfer n0 v0 n1 v1 -n 256k
heal
check "... they did" injected fail_skb_realloc

# attempt: make a connection under faults; it works, or its program says what failed.
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
	local i well=1

	GOOD=0
	inject failslab 10
	inject fail_page_alloc 10
	# Repeat until a connection was made and a fault has struck, which depends on chance.
	for ((i = 0; i < 8 || (i < 100 && !GOOD) || (i < 100 && $(<$DEBUG/failslab/times) == MANY); i++)); do
		attempt || well=
	done
	heal
	echo "$GOOD of $i"
	[ $well ] && [ $GOOD -gt 0 ]
}
check "connections: some come about, the others say why not" attempts
check "... failslab was injected" injected failslab
check "... no byte is wrong" [ "$(grep -c 'wrong byte' "$TMP/said")" = 0 ]
grep -v hash "$TMP/said" | sort | uniq -c | comment
check "no sockets are left" until_true 60 no_sockets n0 n1
check "and without faults all is well" transfer n0 v0 n1 v1 -n 256k

#
# A full queue, which is not injected
#

n0 tc qdisc add dev v0 root netem delay 3ms limit 1
# overflow: transfers until a packet finds the queue full.
overflow()
{
	local i

	for ((i = 0; i < 10; i++)); do
		transfer n0 v0 n1 v1 -n 256k || return
		! counted n0 OutDiscards 1 || return 0
	done
}
check "the device's queue is too short: what it drops comes again" overflow
check "... it dropped" counted n0 OutDiscards 1
n0 tc qdisc delete dev v0 root

check "no sockets are left" until_true 60 no_sockets n0 n1

#
# The places
#

MODULE=$BUILD/esp.ko

# calls: list the module's calls of the kernel, from the debugging information: SECTION OFFSET
# CALLEE. OFFSET is the return address.
calls()
{
	readelf --debug-dump=info "$MODULE" 2>/dev/null | awk \
		-v kernel=" $(nm -u "$MODULE" | awk '{ print $2 }' | tr '\n' ' ')" \
		-v init=" $(objdump -t "$MODULE" | awk '$4 == ".init.text" { print $NF }' | tr '\n' ' ')" '
		/^ <[0-9a-f]+><[0-9a-f]+>: Abbrev/ {
			split($1, part, /[<>]+/)
			die = part[3]
			if (part[2] == 1)
				outer = die
			function_ = $NF == "(DW_TAG_subprogram)"
			next
		}
		{ gsub(/<0x|>/, "", $NF) }
		function_ && $2 == "DW_AT_name" { name[die] = $NF }
		function_ && $2 == "DW_AT_abstract_origin:" { origin[die] = $NF }
		$2 == "DW_AT_call_return_pc:" { n++; pc[n] = $NF; within[n] = outer; at = die }
		$2 == "DW_AT_call_origin" && die == at { callee[n] = $NF }
		END {
			for (i = 1; i <= n; i++) {
				f = within[i] in origin ? origin[within[i]] : within[i]
				c = name[callee[i]]
				if (c != "" && index(kernel, " " c " "))
					print index(init, " " name[f] " ") ? ".init.text" : ".text", pc[i], c
			}
		}' | sort
}

# classified: list the calls that can fail: SECTION OFFSET CLASS TIMES CALLEE. $TMP/unknown gets
# names that faults.calls doesn't have, $TMP/uncalled its names of functions that can fail and
# are not called.
classified()
{
	nm -u "$MODULE" | awk -v unknown="$TMP/unknown" -v uncalled="$TMP/uncalled" '
		# Convert a pattern of the shell into one of awk.
		function pattern(p) { gsub(/\*/, ".*", p); return "^" p "$" }
		function known(name,	i) {
			if (name in class)
				return 1
			for (i = 1; i <= n; i++)
				if (name ~ patterns[i])
					return 1
			return 0
		}
		FILENAME ~ /faults.calls$/ {
			first = $1 ~ /^(memory|told|user)$/ ? 3 : 2
			for (i = first; i <= NF && $1 !~ /^#/; i++) {
				class[$i] = $1
				times[$i] = first == 3 ? $2 : 0
				if ($i ~ /\*/)
					patterns[++n] = pattern($i)
			}
			next
		}
		FILENAME == "-" {
			if (!known($2))
				print $2 >unknown
			next
		}
		$3 in class && class[$3] != "none" {
			called[$3] = 1
			print $1, $2, class[$3], times[$3], $3
		}
		END {
			for (c in class)
				if (class[c] != "none" && !(c in called))
					print c >uncalled
		}' "${0%/*}/faults.calls" - "$TMP/calls"
}

# named: add the function and line in the sources to each call.
named()
{
	local section

	for section in .init.text .text; do
		awk -v s=$section '$1 == s' "$TMP/classified" >"$TMP/of"
		# The call precedes its return address.
		while read -r _ at _; do
			printf '%#x\n' $((at - 1))
		done <"$TMP/of" | addr2line -e "$MODULE" -j $section -a -f -i | awk '
			/^0x/ { if (NR > 1) print f, line; ours = 0; next }
			{
				name = $1
				getline
				if (ours)
					next
				ours = $1 ~ /\/net\/esp\//
				f = name
				line = $1
				sub(/.*\//, "", line)
			}
			END { print f, line }' | paste -d' ' "$TMP/of" -
	done
}

if nm -u "$MODULE" | grep -q ' kunit_'; then
	ok "each call fails # SKIP those of the tests in the module would, too"
	finish
fi
: >"$TMP/unknown"
: >"$TMP/uncalled"
calls >"$TMP/calls"
classified >"$TMP/classified"
named >"$TMP/places"

#
# The places that fail
#

# Places that never fail: FUNCTION CALLEE WHY.
NEVER='
skb_do_copy_data_nocache _copy_from_iter_nocache	sk_route_caps, a device of TCP, is never set
esp_proc_net_init pcpu_alloc_noprof	there is always some left here; it asks for none
esp_lines_init pcpu_alloc_noprof	the same
esp_dev_xmit pskb_expand_head	a device wants more headroom between two frames; none does here
esp_gro_receive __pskb_pull_tail	a header in pieces, shared: no device leaves such to GRO
gro_append __pskb_pull_tail	the same
esp_gso_segment __pskb_pull_tail	a header in pieces; frames chained by GRO, of unequal size
'

# nothing_in FILE: the file is empty; print it.
nothing_in() { cat "$1"; [ ! -s "$1" ]; }

# faulty [-a]: make all places fail that the scenarios of faults.c reach.
faulty()
{
	local m

	for m in esp esp_diag; do
		objcopy --strip-debug "$BUILD/$m.ko" "$TMP/$m.ko" || return
	done
	awk '$3 ~ /^(memory|told|user)$/ { print $1, $2, $4, $7, $6, $5 }' "$TMP/places" |
		faults "$@" "$TMP" | tee "$TMP/faults"
	[ "${PIPESTATUS[1]}" = 0 ]
}

# never: list places that never failed and are not in NEVER, and places in NEVER that failed. A
# line of NEVER, or a call, may stand for several places.
never()
{
	awk '
		FILENAME == "-" { if (NF) { never[$1 " " $2] = 1; line[++lines] = $0 } next }
		FILENAME ~ /places$/ { if ($3 == "told") told[$7 " " $6 " " $5] = 1; next }
		$1 != "site" { next }
		{
			sub(/:$/, "", $4)
			p = $2 " " $3 " " $4
			place[p] = $3 " " $4
			if ($NF != "never" && !(p in told && $NF == "told"))
				failed[p] = 1
		}
		END {
			for (p in place) {
				all++
				if (p in failed)
					n++
				else
					unfailed[place[p]] = 1
				if ((p in failed) == (place[p] in never)) {
					print (p in failed ? "does fail: " : "never fails: ") p
					status = 1
				}
			}
			for (p in never) {
				if (!(p in unfailed)) {
					print "no such call, or it fails: " p
					status = 1
				}
			}
			for (i = 1; i <= lines; i++)
				print "never: " line[i]
			print n + 0 " of " all + 0 " calls that need memory, or the user'\''s, have failed"
			exit status || !all
		}' - "$TMP/places" "$TMP/faults" <<<"$NEVER"
}

check "faults.calls knows all that the module calls" nothing_in "$TMP/unknown"
check "... and all that it says can fail is called" nothing_in "$TMP/uncalled"
check "each call fails, says so, and works when it is tried again" faulty ${LONG:+-a}
check "no call of the module that can fail never does" never
finish
