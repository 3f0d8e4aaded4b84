#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Tracepoints (tracing.rst): each event comes as often as its counter counts, and has the right
# fields.
#
#	+----+                             +----+
#	| n0 | v0 --- veth, loss --- v1    | n1 |	n1 receives from several
#	+----+                             +----+

. "${0%/*}/../lib/lib.sh"

TRACING=/sys/kernel/tracing
EVENTS=$TRACING/events/esp
SENDERS=8

hosts 2
cable n0 v0 n1 v1

check "there are tracepoints" [ -d "$EVENTS" ]
# perf and trace-cmd do not know the names of the kernel's enumerators.
no_enumerators() { ! grep "TCP_" "$EVENTS/esp_state/format"; }
check "... whose states are numbers, with names" no_enumerators

# traced COMMAND...: run it and write all events to $TMP/trace. No event may be lost.
traced()
{
	local status

	# This clock orders the events of all processors.
	echo 0 >$TRACING/tracing_on && echo counter >$TRACING/trace_clock && echo >$TRACING/trace && echo 65536 >$TRACING/buffer_size_kb &&
		echo 1 >$EVENTS/enable && echo 1 >$TRACING/tracing_on || return
	"$@"
	status=$?
	echo 0 >$EVENTS/enable
	cat $TRACING/trace >"$TMP/trace"
	grep "entries-in-buffer" "$TMP/trace"
	grep -qE "entries-in-buffer/entries-written: ([0-9]+)/\1 " "$TMP/trace" && return $status
}

# events NAME [TEXT]: print the number of events, with TEXT.
events() { grep "esp_$1: " "$TMP/trace" | grep -c -- "$2"; }

# packets NAME: print the sum of these events' packets.
packets() { awk -v name="esp_$1:" '{ for (i = 1; i < NF; i++) if ($i == name) { sub(/.*packets=/, ""); n += $0 } } END { print n + 0 }' "$TMP/trace"; }

# as_often TEXT EVENTS COUNTER: the counter of both hosts agrees with the number of events.
as_often()
{
	local n=0 h

	for h in n0 n1; do
		n=$((n + $(stat $h "$3")))
	done
	echo "# $3: $n, $1: $2"
	check "$1: as often as $3 counts" [ "$2" = $n -a $n -gt 0 ]
}

# Trace until the last socket is gone: a socket whose FIN was lost retransmits it after its process
# has ended.
many()
{
	local i pids='' status=0

	for ((i = 0; i < SENDERS; i++)); do
		TMP=$TMP/$i launch $i || return
		pids+=" $CONNECTOR $LISTENER"
	done
	for i in $pids; do
		wait $i || status=1
	done
	until_true 60 no_sockets n0 n1 || { echo "sockets are left"; status=1; }
	return $status
}
launch()
{
	mkdir -p "$TMP"
	start n0 v0 n1 v1 -n 1M -p 1
}

for i in 0 1; do
	in_host n$i tc qdisc add dev v$i root netem limit 10000 delay 1ms loss 1% || exit
	ip -n n$i link set v$i gso_max_segs 1 || exit
done
check "$SENDERS transfers with 1 % loss" traced many

as_often "packets sent again" "$(packets again)" OutRetrans
as_often "questions for missing packets" "$(events rrq_out)" OutRRQ
as_often "questions that arrive" "$(events rrq_in)" InRRQ
as_often "waits for permission" "$(events ack_park)" GrantQueued

# Count the grants that have left. Those of sockets that were closed meanwhile do not leave.
released=$(events ack_release) all=$(($(stat n0 GrantReleased) + $(stat n1 GrantReleased)))
echo "# GrantReleased: $all, released: $released"
check "permission that leaves" [ "$released" -gt 0 -a "$released" -le $all ]
check "... some has waited" [ "$(events ack_release "waited=0us")" -lt "$released" ]

# A wait ends with a grant or without. For one wait a socket may have several turns.
each_ends()
{
	awk '
		match($0, /esp_ack_(park|release|leave): /) {
			what = substr($0, RSTART + 8, RLENGTH - 10)
			match($0, /sport=[0-9]+ peer=[0-9a-f:]+/)
			sk = substr($0, RSTART, RLENGTH)
			if (what == "park")
				parked[sk]++
			else
				ended[sk]++
			if (what == "leave")
				left++
		}
		END {
			for (sk in parked) {
				n++
				if (ended[sk] < parked[sk]) {
					print sk ": " parked[sk] " waits, " ended[sk] " ends"
					bad = 1
				}
			}
			print n " have waited, " left + 0 " times to no end"
			exit bad || !n
		}' "$TMP/trace"
}
check "... each wait ends" each_ends

check "listeners: one each" [ "$(events state "from=CLOSE to=LISTEN")" = $SENDERS ]
# A connection that is tried before the other end listens is refused, and tried again.
refused=$(events state "from=SYN_SENT to=CLOSE")
check "connections ask: one each" [ "$(events state "from=CLOSE to=SYN_SENT")" = $((SENDERS + refused)) ]
check "... and come about" [ "$(events state "from=SYN_SENT to=ESTABLISHED")" = $SENDERS ]
check "... at the other end" [ "$(events state "from=CLOSE to=ESTABLISHED")" = $SENDERS ]
# A connection's transmissions: each that is announced ends, both ways.
of_each()
{
	awk '
		match($0, /esp_(announce|finish): /) {
			what = substr($0, RSTART + 4, RLENGTH - 6)
			# another socket may have the same address in memory later
			match($0, /sport=[0-9]+ peer=[0-9a-f:]+/)
			sk = substr($0, RSTART, RLENGTH)
			sub(/.* seq=/, "")
			if (what == "finish") {
				open[sk] = 0
			} else {
				# the same transmission: an empty packet announced it first
				if (open[sk] && at[sk] != $1) {
					print sk ": begins at " $1 ", but " at[sk] " goes on"
					status = 1
				}
				open[sk] = 1
				at[sk] = $1
			}
			seen[sk] = 1
		}
		END {
			for (sk in seen)
				n++
			print n " senders"
			for (sk in open)
				if (open[sk])
					exit 1
			exit status || n != 2 * senders
		}' senders=$SENDERS "$TMP/trace"
}
check "each transmission that begins ends before the next" of_each
finish
