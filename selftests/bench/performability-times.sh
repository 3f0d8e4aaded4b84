#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest of Debian's kernel: measure the time of each component on a message's way (table 4.1
# of 004), by tracepoints and uprobes, of a request and its reply by libam between two hosts; and
# let esp-performability predict from these times. With --icount a microsecond is a thousand
# instructions.
#
#	performability-times.sh [REQUESTS]
#
# "# result" lines have a word of the model, its time for the request and for the reply. "# round"
# lines have a round trip of each protocol: measured, by the model with these words, and by its
# simulation.
#
# The cost of the events is measured, too: the round trip is timed without events, with
# tracepoints, and with uprobes as well. A tracepoint takes its timestamp before its work, a uprobe
# half way through.

. "${0%/*}/../lib/lib.sh"

REQUESTS=${1:-2000}
TRACING=/sys/kernel/tracing
TOOL=$BUILD/../performability/esp-performability
MODEL=$TMP/model

printf '%s\n' "protocol nway" "application.handler 0" "library.send 0" "library.receive 0" "kernel.send 0" "kernel.receive 0" \
	"network.latency 1" >"$MODEL"
hosts 2
cable n0 v0 n1 v1
ip0 addr add 10.0.0.1/24 dev v0
ip1 addr add 10.0.0.2/24 dev v1
MAC=$(mac n1 v1)

# events: those of tracepoints; of functions of the program.
POINTS="syscalls/sys_enter_sendto syscalls/sys_exit_recvfrom syscalls/sys_exit_recvmmsg net/net_dev_start_xmit net/netif_receive_skb"
PROBES="am_request am_reply serve_request take_reply"
for p in $PROBES; do
	echo "p:model/$p $(readlink -f "$TOOL"):0x$(nm "$TOOL" | sed -n "s/ [tT] $p$//p")" >>$TRACING/uprobe_events || exit
done

# switch 0|1 EVENT...
switch()
{
	local on=$1 e
	shift

	for e; do
		echo "$on" >"$TRACING/events/$e/enable" || exit
	done
}

# round_trip AT PEER [SETTING...]: print the median of REQUESTS round trips, in us.
round_trip()
{
	local at=$1 peer=$2
	shift 2

	n0 "$TOOL" -j -m "$REQUESTS" --at "$at" --peer "$peer" "$MODEL" "$@" >"$TMP/json" || exit
	sed -n 's/^  "measured".*"median_us": \([^,]*\),.*/\1/p' "$TMP/json"
}

# Print the medians of the twelve intervals of a round trip, and of its events, from undisturbed
# round trips only.
intervals()
{
	awk -v transport="$1" -v plain="$2" -v points="$3" -v all="$4" '
		function label(s) {
			if (s ~ / am_request: /) return "request"
			if (s ~ / am_reply: /) return "reply"
			if (s ~ / serve_request: /) return "handler"
			if (s ~ / take_reply: /) return "end"
			if (s ~ / sys_sendto\(/) return "send"
			if (s ~ / sys_recvm?m?[a-z]+ -> 0x[0-9a-f]+$/ && $NF !~ /^0x(0|f+[0-9a-f][0-9a-f]?)$/) return "received"
			if (s ~ / net_dev_start_xmit: dev=v[01]/) return "wire"
			if (s ~ / netif_receive_skb: dev=v[01]/) return "kernel"
			return ""
		}
		# An interval shorter than the cost of its events counts as 0.
		function row(word, a, b) {
			for (i = 1; i <= 12; i++) if (us[i] < 0) us[i] = 0
			if (a == b) printf "# result %s %s %.2f\n", transport, word, us[a]
			else printf "# result %s %s %.2f %.2f\n", transport, word, us[a], us[b]
			printf "%s %.3f\n", word, (us[a] + us[b]) / 2
		}
		function median(i, n, j, k, t, v) {
			n = 0
			for (j = 1; j <= trips; j++) v[++n] = took[j, i]
			for (j = 2; j <= n; j++) {
				t = v[j]
				for (k = j - 1; k && v[k] > t; k--) v[k + 1] = v[k]
				v[k + 1] = t
			}
			return v[int((n + 1) / 2)]
		}
		BEGIN {
			split("request send wire kernel received handler reply send wire kernel received end request", want, " ")
			at = 1
		}
		/^#/ { next }
		{
			match($0, /\[[0-9]+\] [^ ]+ +[0-9]+: /)
			split(substr($0, RSTART, RLENGTH), f, " ")
			time = f[3] + 0
			name = label($0)
			count++
			if (name == "") { others++; next }
			if (name != want[at]) { at = name == "request" ? 2 : 1; begin = time; last = time; others = 0; count = 1; n = 0; next }
			if (at > 1) { gap[at - 1] = time - last; beside[at - 1] = others }
			last = time
			others = 0
			if (at == 13) {
				trips++
				for (i = 1; i <= 12; i++) { took[trips, i] = gap[i]; took[trips, "o" i] = beside[i] }
				took[trips, "n"] = count - 1
				count = 1
				at = 2
			} else {
				at++
			}
		}
		END {
			if (trips < 100) { print "too few round trips: " trips + 0; exit 1 }
			events = median("n")
			point = (points - plain) / (events - 4)
			probe = (all - points) / 4
			split("1 0 0 0 0 1 1 0 0 0 0 1 1", uprobe, " ")
			for (i = 1; i <= 12; i++) {
				us[i] = median(i) / 1000 - (uprobe[i] ? probe / 2 : point) - (uprobe[i + 1] ? probe / 2 : 0) - median("o" i) * point
				sum += us[i]
			}
			printf "# %s: %d round trips of %d events; %.2f us without, %.2f with tracepoints, %.2f with uprobes: %.3f, %.3f each\n",
				transport, trips, events, plain, points, all, point, probe
			row("application.handler", 6, 6)
			row("application.reply", 12, 12)
			row("library.send", 1, 7)
			row("library.receive", 5, 11)
			row("kernel.send", 2, 8)
			row("kernel.receive", 4, 10)
			row("network.latency", 3, 9)
			printf "# result %s sum %.2f of %.2f\n", transport, sum, plain
		}' "$TMP/trace"
}

# serve SERVER PROTOCOL: sets pid.
serve()
{
	nsenter --net=/run/netns/n1 "$TOOL" --serve "$1" "$MODEL" "protocol=$2" &
	pid=$!
	sleep 0.5
}

# times TRANSPORT AT PEER SERVER
times()
{
	local transport=$1 at=$2 peer=$3 server=$4 plain points all pid p

	serve "$server" nway
	round_trip "$at" "$peer" >/dev/null
	plain=$(round_trip "$at" "$peer")
	echo x86-tsc >$TRACING/trace_clock && echo 65536 >$TRACING/buffer_size_kb && echo >$TRACING/trace && echo 1 >$TRACING/tracing_on || exit
	# shellcheck disable=SC2086
	switch 1 $POINTS
	points=$(round_trip "$at" "$peer")
	switch 1 model
	echo >$TRACING/trace
	all=$(round_trip "$at" "$peer")
	echo 0 >$TRACING/tracing_on
	# shellcheck disable=SC2086
	switch 0 model $POINTS
	end "$pid"
	cat $TRACING/trace >"$TMP/trace"
	check "$transport: service times" intervals "$transport" "$plain" "$points" "$all"
	{ printf 'protocol nway\nprocessors one\nservice fixed\n'; cat "$TMP/check"; } >"$TMP/made"
	for p in nway amvia amudp; do
		serve "$server" "$p"
		plain=$(round_trip "$at" "$peer" protocol=$p)
		end "$pid"
		"$TOOL" -j -n 1000 "$TMP/made" "protocol=$p" >"$TMP/json" || exit
		echo "# round $transport $p $plain $(sed -n 's/^  "response_us": \(.*\),/\1/p; s/^  "simulation".*"response_us": \([^,]*\),.*/\1/p' "$TMP/json" | tr '\n' ' ')"
	done
}

times edp edp:%v0 "edp:$MAC%v0:4000" edp:%v1:4000
times udp udp:10.0.0.1 udp:10.0.0.2:4000 udp:10.0.0.2:4000
finish
