#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# esp-ackq (tools/trace): the timeline has all events that the counters count, whether they come by
# tracefs, perf or bpftrace. esp-ackq reports input that it cannot draw.
#
#	+----+                       +----+
#	| n0 | v0 ---- veth ---- v1  | n1 |	n1 receives from several
#	+----+                       +----+

. "${0%/*}/../lib/lib.sh"

SENDERS=6

hosts 2
cable n0 v0 n1 v1
in_host n1 esp perf -s %v1:5201 >/dev/null 2>&1 &
# A small budget and a delay make senders wait for grants.
n1 sysctl -qw net.esp.q_max=8
in_host n0 tc qdisc add dev v0 root netem limit 10000 delay 1ms && ip0 link set v0 gso_max_segs 1 || exit
listens() { n1 esp show -l | grep -q :5201; }
until_true 60 listens || exit

TRANSFER=(nsenter --net=/run/netns/n0 esp perf -i 0 -n 1M -P $SENDERS -l 1M -c "$(mac n1 v1)%v0:5201")

# both COUNTER: print the sum over both hosts: their devices have the same number, so events of
# both count.
both() { echo $(($(stat n0 "$1") + $(stat n1 "$1"))); }

# counted COMMAND...: run it; set PARKED and RELEASED to the counts meanwhile; return its status.
counted()
{
	local status

	PARKED=$(both GrantQueued) RELEASED=$(both GrantReleased)
	"$@"
	status=$?
	until_true 60 no_connections
	PARKED=$(($(both GrantQueued) - PARKED)) RELEASED=$(($(both GrantReleased) - RELEASED))
	echo "counters: $PARKED parked, $RELEASED let go; status $status"
	return $status
}
no_connections() { [ "$(n0 esp show | wc -l)" -le 1 ]; }

# said WORDS: print the number before these words in the summary.
said() { sed -n "s/.* \([0-9]*\) $1.*/\1/p" "$TMP/drawn" | head -1; }

# drawn: $TMP/drawn agrees with the counters. A grant whose socket is closed before it leaves has
# no event.
drawn()
{
	local go left

	cat "$TMP/drawn"
	go=$(said "let go") left=$(said "have left")
	[ -n "$go" ] && [ "$go" -gt 50 ] && [ "$go" -le "$RELEASED" ] && [ "$go" -ge $((RELEASED - SENDERS)) ] &&
		[ $((go + left)) -ge "$PARKED" ] && [ "$(said "still wait")" = 0 ] &&
		[ "$(awk '/^microseconds/ { on = 1; next } on { sub(/^ *[0-9]+ (\.\.\. [0-9]+)?/, ""); n += $1 } END { print n }' \
			"$TMP/drawn")" = $((go + left)) ]
}
# rows: there is a line for each sender, all have the same length, and their waits add up.
rows()
{
	awk -v all=$(($(said "let go") + $(said "have left"))) -v senders=$SENDERS '
		/ > 5201 / { rows++; waits += $4 }
		/\|$/ { if (!len) len = length($0); if (length($0) != len) bad = 1 }
		/^waiting/ { w = 1 }
		/^open/ { o = 1 }
		END { exit !(rows >= senders && waits == all && w && o && !bad && len == 100) }' "$TMP/drawn"
}
# picture FILE: it has PNG's signature, and is larger than an empty picture.
picture() { [ "$(head -c 8 "$1" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] && [ "$(wc -c <"$1")" -gt 10000 ]; }

check "a transfer of $SENDERS, watched" counted esp-ackq -b 32768 -o "$TMP/events" -g "$TMP/picture.png" "${TRANSFER[@]}"
check "a picture" picture "$TMP/picture.png"
esp-ackq -r "$TMP/events" -c 100 >"$TMP/drawn"
check "the text has what the counters count" drawn
check "a line for each sender" rows
no_instances() { [ -z "$(ls /sys/kernel/tracing/instances)" ]; }
check "tracing is over" no_instances
esp-ackq -r - -p 5201 <"$TMP/events" >"$TMP/drawn"
check "its port's are all" drawn
check "it ends after a time" gives 1 "nobody asked this host" esp-ackq -t 1
failed() { esp-ackq "$@"; [ $? = 7 ]; }
check "the command's status is its own" failed bash -c "nsenter --net=/run/netns/n0 esp perf -i 0 -n 1M -P 4 -c $(mac n1 v1)%v0:5201; exit 7"

by_perf()
{
	counted perf record -k mono -a -e 'esp:esp_ack_*' -o "$TMP/perf.data" -- "${TRANSFER[@]}" &&
		perf script -i "$TMP/perf.data" >"$TMP/perf" && esp-ackq -r "$TMP/perf" -c 100 >"$TMP/drawn" && drawn && rows
}

# by_bpf: esp-ackq.bt prints a line for each interval, and the waits of each sender.
begun() { grep -q "at most" "$TMP/bpf"; }
# printed: the lines have all grants that were parked, and their ends.
printed()
{
	awk -v parked="$PARKED" '$1 ~ /^[0-9]+$/ { p += $2; ends += $3 + $4 }
		END { exit !(p == parked && ends >= parked) }' "$TMP/bpf"
}
by_bpf()
{
	esp-ackq.bt >"$TMP/bpf" 2>&1 &
	BPF=$!
	until_true 60 begun && counted "${TRANSFER[@]}" && until_true 60 printed && sleep 1 && kill -INT $BPF && wait $BPF
	cat "$TMP/bpf"
	awk -v parked="$PARKED" -v released="$RELEASED" -v senders=$SENDERS -v cpus="$(nproc)" '
		$1 ~ /^[0-9]+$/ { p += $2; r += $3; l += $4; if (!/#/ && $2 > cpus) bad = 1 }
		/^@waited_us/ { n++ }
		/^\[/ { sub(/.*[\])]/, ""); waits += $1 }
		/WARNING|ERROR/ { bad = 1 }
		END {
			print p " parked, " r " let go, " l " left, " waits " of " n " senders"
			exit !(p == parked && r <= released && r >= released - senders && waits == r + l && n >= senders && !bad)
		}' "$TMP/bpf"
}
case $KERNEL in
uml*) ;;
*)
	check "the same by perf" by_perf
	check "the same by bpftrace, as it happens" by_bpf
	;;
esac

# Forged events: esp-ackq leaves out lines that are not in the kernel's form, and runs nothing
# from them.
cat >"$TMP/hostile" <<END
a-1 [000] ..... 5.000100: esp_ack_park: skaddr=1 ifindex=2 sport=1 peer=02:00:00:00:00:01:7 queued=0 open=0 budget=8
esp_ack_park:-1 [000] ..... 5.000200: esp_ack_park: skaddr=1 ifindex=2 sport=1 peer=02:00:00:00:00:02:7 queued=1 open=0 budget=8
a esp_ack_park: 1 [000] 5.000201: esp:esp_ack_release: skaddr=1 ifindex=2 sport=1 peer=02:00:00:00:00:01:7 waited=101us edge=1 queued=1 open=8 budget=8
a esp_ack_park: 1 [000] 5.000205: sched:sched_switch: prev_comm=a esp_ack_park: ifindex=2
a-1 [000] ..... 5.000300: esp_ack_release: skaddr=1 ifindex=2 sport=1 peer=02:00:00:00:00:02:7 waited=100us edge=1 queued=0 open=8 budget=8 bucket_open=3 bucket=6
a-1 [000] ..... 5.000301: esp_ack_release: skaddr=1 ifindex=2 sport=1 waited=9us
a-1 [000] ..... 5.000302: esp_ack_release: skaddr=1 ifindex=2 sport=1 peer=\`touch\$IFS$TMP/run\` waited=9us edge=1 queued=0 open=0 budget=8
a-1 [000] ..... 5.000303: esp_ack_release: skaddr=1 ifindex=2 sport=1 peer=02:00:00:00:00:02:7 waited=1e999us edge=1 queued=0 open=0 budget=8
a-1 [000] ..... 5.000304: esp_ack_release: skaddr=1 ifindex=2 sport=1 peer=02:00:00:00:00:02:7 waited=1e300us edge=1 queued=0 open=0 budget=8
a-1 [000] ..... 5.000304: esp_ack_release: skaddr=1 ifindex=2 sport=1 peer=02:00:00:00:00:02:7 waited=9us edge=1 queued=0 open=0 budget=8 bucket_open=3 bucket=-6
a-1 [000] ..... 5.000305: esp_ack_release: skaddr=1 ifindex=2\`id\` sport=1 peer=02:00:00:00:00:02:7 waited=9us edge=1 queued=0 open=0 budget=8
END
hostile()
{
	timeout 60 esp-ackq -r "$TMP/hostile" "$@" >"$TMP/out" 2>&1 || { cat "$TMP/out"; return 1; }
	cat "$TMP/out"
	grep -q ": 0.000200 s, 2 let go, 0 have left, 0 still wait, senders: 2$" "$TMP/out" &&
		[ "$(tail -1 "$TMP/out")" = "esp-ackq: 6 lines are not as the kernel writes them: left out" ] && [ ! -e "$TMP/run" ]
}
waits_exact()
{
	hostile && grep -q "^02:00:00:00:00:01:7 > 1  *1 *101 *101 *-  |" "$TMP/out" &&
		grep -q "^02:00:00:00:00:02:7 > 1  *1 *100 *100 *6  |" "$TMP/out"
}
hostile_picture() { hostile -g "$1" && picture "$1"; }
no_pipe() ( cd "$TMP" && hostile_picture "|touch run" )
check "events that are none of the kernel's are left out" waits_exact
check "... and run nothing" hostile_picture "$TMP/\`touch run\`.png"
check "a picture's name is a file's only" no_pipe

head -20 "$TMP/events" | sed 's/ [0-9]*\.[0-9]*: esp/ 1234: esp/' >"$TMP/counter"
check "events without a time are refused" gives 1 "no time in seconds" esp-ackq -r "$TMP/counter"
check "nothing is told as that" gives 1 "nobody asked" esp-ackq -r /dev/null
check "a file that isn't there" gives 1 "No such file" esp-ackq -r "$TMP/nosuch"
check "an option that there isn't" gives 2 "no option -z" esp-ackq -z
check "... without its value" gives 2 "needs a value" esp-ackq -g
check "... with a wrong one" gives 2 "not a number" esp-ackq -t 0
check "a device that there isn't" gives 1 "no such device" esp-ackq -d nosuch
# Copy esp-ackq, because it may be below a directory which only root may enter.
cp "$SRC/tools/trace/esp-ackq" "$TMP/" && chmod 755 "$TMP" || exit
check "who isn't root" gives 1 "only root" setpriv --reuid=65534 --clear-groups "$TMP/esp-ackq" -t 1
finish
