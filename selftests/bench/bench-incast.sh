#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Part of "make bench": ESP compared with TCP and DCTCP at the port where many senders meet,
# in simulated time. build/incast.json has the figures, which sim-report.sh uses, too;
# Documentation/*.png has the pictures. incast.sh describes the hosts and the port.
#
#	bench-incast.sh [--no-run]	only tables and pictures, from the last run's figures

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"

OUT=$SRC/build/incast.json
LINES=$SRC/build/incast.lines
QUEUES=$SRC/build/queues

cd "$SRC" || exit
need gnuplot-nox
mkdir -p "$QUEUES"

# incast MBIT OPTION...: in a guest with simulated time. ESP is told the links' rate, as a card does.
incast()
{
	local rate=$1
	shift

	say "incast.sh -R $rate $*"
	"$HARNESS/vm" run uml-virtual --time 3000 -- selftests/bench/incast.sh -o "$LINES" -R "$rate" \
		-T "$rate" "$@" >/dev/null || exit
}

# Run each case three times, and blocks five times because they vary most. Runs vary because
# addresses, ports and cookies are random, and because jiffies start at another value.
measure()
{
	: >"$LINES"
	for i in {1..5}; do
		incast 1000 -w blocks -N "1 2 4 8 16 32 64" -r 10
		incast 10000 -w blocks -N "1 2 4 8 16 32 64" -p "esp cubic dctcp"
		[ "$i" -le 3 ] || continue
		incast 1000 -w "flows requests" -N "1 16" -t 0.5
		for us in 20 500 2000; do
			incast 1000 -w flows -N 1 -D $us -t 0.5 -p "esp cubic dctcp"
		done
		incast 100 -w flows -N "1 16" -D 100 -t 0.5 -p "esp cubic dctcp"
		for us in 20 100 500; do
			incast 10000 -w flows -N 1 -D $us -t 0.2 -p "esp cubic dctcp"
		done
		incast 10000 -w flows -N "2 16" -t 0.1 -p "esp cubic dctcp"
		incast 25000 -w flows -N "1 16" -t 0.1 -p "esp cubic dctcp"
		for faults in "loss 0.1%" "loss 1%" "loss 10%" "loss 30%" "reorder 5% 50%"; do
			incast 1000 -w flows -N 1 -t 0.5 -p "esp cubic dctcp" -X "$faults"
		done
	done
	for us in 50 100 250; do
		incast 1000 -D 60 -C $us -w flows -N "1 8 32" -t 0.3 -p "esp cubic dctcp"
	done
	for us in 20 50 100 250; do
		incast 10000 -D 20 -C $us -w flows -N "1 8 32" -t 0.3 -p "esp cubic dctcp"
	done
	incast 1000 -w blocks -N 32 -r 2 -q "$QUEUES" -o /dev/null
	incast 1000 -w requests -N 16 -t 0.5 -q "$QUEUES" -o /dev/null
}

case $1 in
'') measure ;;
--no-run) [ -s "$LINES" ] || die "there are no figures yet" ;;
*) sed -n '/^#	bench-incast/s/^#	//p' "$0" >&2; exit 2 ;;
esac

{
	echo '['
	sed '$!s/$/,/' "$LINES"
	echo ']'
} >"$OUT"

# A table: the median of each case, and its smallest and largest value.
awk -F '[:,] ' '
	function field(name,	i) {
		for (i = 1; i < NF; i++)
			if ($i ~ "\"" name "\"$")
				return $(i + 1)
	}
	function text(name) {
		return substr(field(name), 2, length(field(name)) - 2)
	}
	function show(v, key,	n, a, i, j, t) {
		n = split(v, a, " ")
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && a[j - 1] + 0 > a[j] + 0; j--) {
				t = a[j]; a[j] = a[j - 1]; a[j - 1] = t
			}
		return sprintf("%9s %-17s", a[int((n + 1) / 2)], "(" a[1] " ... " a[n] ")")
	}
	{
		gsub(/[{}]/, "")
		key = sprintf("%-8s %3d %5d Mbit/s %4d us %-23s %-5s %-8s", text("workload"), field("n"),
			field("rate_mbit"), field("rtt_us"), text("faults"), text("proto"), text("policy"))
		if (!(key in share))
			order[++keys] = key
		share[key] = share[key] " " field("goodput_share")
		drops[key] = drops[key] " " field("port_drops")
		again[key] = again[key] " " field("retransmits")
		jain[key] = jain[key] " " field("jain")
		ratio[key] = ratio[key] " " field("fct_p99_ratio")
		us[key] = us[key] " " field("fct_p99_us")
		queue[key] = queue[key] " " field("queue_p50")
	}
	END {
		print "goodput share, drops at the port, sent again, Jain, 99 % / ideal, 99 % us, median queue"
		for (i = 1; i <= keys; i++) {
			k = order[i]
			print k, show(share[k]), show(drops[k]), show(again[k]), show(jain[k]), show(ratio[k]),
				show(us[k]), show(queue[k])
		}
	}' "$LINES" | tee "$SRC/build/incast.txt"

# value NAME: lines "N VALUE", medians, of blocks at 1 Gbit/s and 100 us; POLICY and PROTO select.
value()
{
	sed -n "s/.*\"proto\": \"$PROTO\", \"policy\": \"$POLICY\", \"workload\": \"blocks\", \"n\": \([0-9]*\), \"rate_mbit\": 1000, .*\"$1\": \([0-9.]*\).*/\1 \2/p" "$LINES" |
		sort -k1,1n -k2,2n | awk '{ v[$1] = v[$1] " " $2; n[$1]++ }
			END { for (k in v) { split(v[k], a, " "); print k, a[int((n[k] + 1) / 2)] } }' | sort -n
}

for p in "esp adaptive" "esp seed" "cubic -" "dctcp -"; do
	read -r PROTO POLICY <<<"$p"
	for v in goodput_share fct_p99_ratio; do
		name=$PROTO-$POLICY
		value $v >"$QUEUES/$v-${name%--}"
	done
done
gnuplot <<END
set terminal pngcairo size 900,500
set key outside
set grid
set logscale x 2
set xlabel "senders"
set xtics (1, 2, 4, 8, 16, 32, 64)
set xrange [0.9:72]
set output "Documentation/incast-goodput.png"
set title "Blocks of 256 KiB to one receiver, 1 Gbit/s, port of 128 KiB, 100 us"
set ylabel "goodput, share of the attainable"
set yrange [0:1.05]
plot for [p in "esp-adaptive esp-seed cubic dctcp"] "$QUEUES/goodput_share-".p with linespoints title p
set output "Documentation/incast-completion.png"
set ylabel "99 % completion time / ideal"
set yrange [0.5:*]
set logscale y
plot for [p in "esp-adaptive esp-seed cubic dctcp"] "$QUEUES/fct_p99_ratio-".p with linespoints title p
unset logscale
set output "Documentation/incast-queue.png"
set title "Frames in the port's queue, 32 senders of 256 KiB, two rounds"
set xlabel "seconds"
set ylabel "frames"
set xtics auto
set xrange [0.008:0.16]
set yrange [0:90]
plot for [p in "esp seed cubic dctcp"] "$QUEUES/".p."-blocks-32" using 1:2 with lines title p
set output "Documentation/incast-latency.png"
set title "64 bytes there and back, beside 16 flows to the same port"
set xlabel "microseconds"
set ylabel "share that took no longer"
set xrange [90:*]
set yrange [0:1.02]
set logscale x
plot for [p in "esp seed cubic dctcp"] "$QUEUES/".p."-requests-16.us" using 1:(1) smooth cnormal linewidth 2 title p
END
tools/trace/esp-ackq -r "$QUEUES/esp-blocks-32.ackq" -g Documentation/incast-ackq.png >"$SRC/build/ackq.txt" || exit
tools/trace/esp-ackq -r "$QUEUES/esp-blocks-32.ackq" -c 100 >>"$SRC/build/ackq.txt" || exit
say "$(wc -l <"$LINES") runs in build/incast.json"
