#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# "make demo": a demonstration of ESP in User-Mode Linux.  Two network namespaces
# stand for two hosts; ESP and TCP use the same cable between them.
#
#	+----------------------+               +----------------------+
#	| n0    v0  10.9.0.1   +---- veth -----+   10.9.0.2  v1    n1 |
#	| random | tee | esp   | ------------> | esp | sha256sum      |
#	|     sha256sum        |               |                      |
#	+----------------------+               +----------------------+
#
# The results are in build/demo.json too.

BYTES=1G	# or as much as goes in LIMIT seconds
LIMIT=40
SECONDS_EACH=4
FAR=$(($(nproc) - 1))
OUT=${SRC:-.}/build/demo.json
TMP=$(mktemp -d)

die()
{
	echo "demo: $*" >&2
	exit 1
}
# Each host has a processor of its own; its programs run there from their start on (speed.rst).
n0() { ip netns exec n0 taskset -c 0 "$@"; }
n1() { ip netns exec n1 taskset -c "$FAR" "$@"; }

cleanup()
{
	# shellcheck disable=SC2046
	kill $(jobs -p) 2>/dev/null
	wait 2>/dev/null
	ip netns delete n0
	ip netns delete n1
	rm -rf "$TMP"
}

# said FILE PART NAME: print a number of esp perf's JSON.
said() { sed -n 's/.*"'"$2"'":{[^}]*"'"$3"'":\([0-9.]*\).*/\1/p' "$TMP/$1"; }

counter() { n1 awk -v name="$1" '$1 == name { print $2 }' /proc/net/esp/stat; }

# measure NAME OPTION...: run esp perf with n1's server, by its ESP address or its TCP address.
measure()
{
	local name=$1
	shift

	n0 esp perf -j -i 0 -t "$SECONDS_EACH" "$@" >"$TMP/$name" || die "esp perf $* failed"
}

# print NAME ESP TCP
print() { printf '  %-34s %10s %10s\n' "$1" "$2" "$3"; }

# distribution ESP TCP: draw the distribution of round-trip times in two files of esp perf's JSON.
# Times that less than one in a thousand round trips took are left out.
distribution()
{
	awk -v esp="$1" -v tcp="$2" '
		{
			if (!match($0, /"histogram_us":[^}]*/))
				next
			n = split(substr($0, RSTART + 15, RLENGTH - 15), v, /[],[]+/)
			for (i = 2; i + 1 <= n; i += 2) {
				part = int(4 * log(v[i] + 0.001) / log(2))
				count[FILENAME, part] += v[i + 1]
				sum[FILENAME] += v[i + 1]
				if (!parts++)
					most = least = part
				if (part > most)
					most = part
				if (part < least)
					least = part
			}
		}
		function share(file) { return sum[file] ? 100 * count[file, part] / sum[file] : 0 }
		function bar(percent,   s) {
			while (percent > 0) {
				s = s "#"
				percent -= 4
			}
			return s
		}
		END {
			for (part = least; parts && part <= most; part++)
				if (share(esp) >= 0.1 || share(tcp) >= 0.1)
					printf "  %7.1f ... %7.1f us  %5.1f %% %-26s %5.1f %% %s\n", 2 ^ (part / 4),
						2 ^ ((part + 1) / 4), share(esp), bar(share(esp)), share(tcp), bar(share(tcp))
		}' "$1" "$2"
}

# Gbit/s from bit/s.
giga() { awk -v v="$1" 'BEGIN { printf "%.3f", v / 1e9 }'; }

ip netns add n0 && ip netns add n1 || die "no namespaces"
trap cleanup EXIT
ip link add v0 netns n0 type veth peer name v1 netns n1 || die "no veth"
ip -n n0 addr add 10.9.0.1/24 dev v0
ip -n n1 addr add 10.9.0.2/24 dev v1
ip -n n0 link set v0 up
ip -n n1 link set v1 up
n0 esp dev enable v0 && n1 esp dev enable v1 || die "the devices can't be enabled"
peer=$(ip -n n1 -br link show v1 | awk '{ print $3 }')

echo
echo "  The Ethernet Streaming Protocol, Linux $(uname -r) on $(nproc) processors (User-Mode Linux)."
echo "  Two hosts, an Ethernet cable between them (veth, MTU $(n0 cat /sys/class/net/v0/mtu)), no IP."
echo
echo "  there\$ esp dev enable v1"
echo "  here\$  esp dev enable v0"
echo "  there\$ esp listen :5000 | sha256sum"
echo "  here\$  timeout $LIMIT head -c $BYTES /dev/urandom | esp connect $peer%v0:5000"

mkfifo "$TMP/sent" "$TMP/received"
sha256sum <"$TMP/sent" >"$TMP/here" &
hashers=$!
wc -c <"$TMP/received" >"$TMP/bytes" &
hashers+=" $!"
n1 esp listen %v1:5000 </dev/null | tee "$TMP/received" | sha256sum >"$TMP/there" &
hashers+=" $!"
for ((i = 0; i < 100; i++)); do
	n1 esp show -l 2>/dev/null | grep -q :5000 && break
	sleep 0.05
done
start=$(date +%s%N)
timeout $LIMIT head -c $BYTES /dev/urandom | tee "$TMP/sent" | n0 esp connect "$peer%v0:5000" >/dev/null ||
	die "the transfer failed"
# shellcheck disable=SC2086
wait $hashers
took=$((($(date +%s%N) - start) / 1000000))
read -r here _ <"$TMP/here"
read -r there _ <"$TMP/there"
read -r bytes <"$TMP/bytes"
equal=false
[ -n "$here" ] && [ "$here" = "$there" ] && [ "$bytes" -gt 0 ] && equal=true

echo
printf '  sent      %s\n' "$here"
printf '  received  %s  (%d bytes, %d.%d s, with making and hashing them)\n' "$there" "$bytes" \
	$((took / 1000)) $((took % 1000 / 100))
[ $equal = true ] || die "the data are not what was sent"
echo
echo "  The same bytes.  Now against the clock, then TCP over the same cable ..."

ip netns exec n1 taskset -c "$FAR" esp perf -s %v1:5201 >/dev/null &
ip netns exec n1 taskset -c "$FAR" esp perf -s --tcp 10.9.0.2:5201 >/dev/null &
sleep 0.5
in_order=$(counter InData) empty=$(counter OutEmpty) fast=$(counter GrantFast) parked=$(counter GrantQueued)
again=$(n0 awk '$1 == "OutRetrans" { print $2 }' /proc/net/esp/stat)
measure esp -c "$peer%v0:5201"
in_order=$(($(counter InData) - in_order)) empty=$(($(counter OutEmpty) - empty))
fast=$(($(counter GrantFast) - fast)) parked=$(($(counter GrantQueued) - parked))
again=$(($(n0 awk '$1 == "OutRetrans" { print $2 }' /proc/net/esp/stat) - again))
measure tcp -c 10.9.0.2:5201 --tcp
measure esp-rtt -c "$peer%v0:5201" --latency --histogram
measure tcp-rtt -c 10.9.0.2:5201 --tcp --latency --histogram

esp_rate=$(giga "$(said esp receiver bits_per_second)")
tcp_rate=$(giga "$(said tcp receiver bits_per_second)")
esp_rtt=$(said esp-rtt latency_us p50)
tcp_rtt=$(said tcp-rtt latency_us p50)
[ -n "$esp_rtt" ] && [ -n "$tcp_rtt" ] || die "no round trips"

echo
print "" ESP TCP
print "one stream, Gbit/s" "$esp_rate" "$tcp_rate"
print "64 bytes there and back, us, median" "$esp_rtt" "$tcp_rtt"
print "                           99 %" "$(said esp-rtt latency_us p99)" "$(said tcp-rtt latency_us p99)"
echo
awk -v data="$in_order" -v empty="$empty" -v fast="$fast" -v parked="$parked" -v again="$again" 'BEGIN {
	printf "  %d data packets in ESP'\''s stream: %d sent again; the receiver answered with %d\n", data, again, empty
	printf "  empty ones, one for %.0f.  It gave permission %d times at once, and %d times\n", data / (empty ? empty : 1), fast, parked
	printf "  from the ACK queue.\n"
}'

echo
echo "  How many of the round trips took how long:"
echo
printf '%33s%35s\n' ESP TCP
distribution "$TMP/esp-rtt" "$TMP/tcp-rtt"

# With the delay senders wait for grants long enough to be seen.
echo
echo "  Six senders at once, on a cable that takes a millisecond: who waits when in the receiver's ACK queue"
echo
n0 tc qdisc add dev v0 root netem limit 10000 delay 1ms && ip -n n0 link set v0 gso_max_segs 1 &&
	esp-ackq -c 100 ip netns exec n0 esp perf -i 0 -j -n 4M -l 4M -P 6 -c "$peer%v0:5201" >"$TMP/queue" ||
	die "the ACK queue cannot be watched"
sed -n '/^ACK queue/,/^open/s/^/  /p' "$TMP/queue"
waits=$(sed -n 's/^ACK queue.* \([0-9]*\) let go.*/\1/p' "$TMP/queue")

cat >"$OUT" <<END
{"hash_equal": $equal, "bytes": $bytes, "kernel": "$(uname -r)", "esp": {"gbit_s": $esp_rate, "rtt_us": $esp_rtt}, "tcp": {"gbit_s": $tcp_rate, "rtt_us": $tcp_rtt}, "ack_queue": {"let_go": ${waits:-0}}}
END
echo
echo "  hash_equal: $equal; all of it is in build/demo.json"
