#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One sender to eight receivers over a device that is slower than they take the data, and whose
# queue is short: the data wait in the sockets instead (tuning.rst), so that nothing is dropped there.
# Each receiver gets its share. Small messages don't wait behind more data than one GSO packet's.
#
#	+---------+                  +-----+   +---------+
#	| n0   v0 +------ tbf -------+     +---+ v1   n1 |
#	+---------+   slow, short    |     |   +---------+
#	                             | br0 |      ...
#	                             |     |   +---------+
#	                             |  sw +---+ v8   n8 |
#	                             +-----+   +---------+

. "${0%/*}/../lib/lib.sh"

N=8
SECONDS_LONG=2

hosts $((N + 1))
host sw
ip -n sw link add br0 up type bridge || exit
for ((i = 0; i <= N; i++)); do
	ip -n "n$i" link add "v$i" type veth peer name "p$i" netns sw || exit
	ip -n "n$i" link set "v$i" up
	ip -n sw link set "p$i" master br0 up
	enable "n$i" "v$i"
done

drops() { n0 tc -s qdisc show dev v0 | sed -nE 's/.*dropped ([0-9]+).*/\1/p' | head -1; }

# all: send to all receivers for some seconds; bytes that each got are in BYTES, and the number of
# programs that failed, or found other bytes than were sent, in BROKEN.
all()
{
	local i pids=() listeners=()

	BYTES=() BROKEN=0
	for ((i = 1; i <= N; i++)); do
		nsenter --net="/run/netns/n$i" stream -n 1000G -b 0 listen "%v$i:$((5000 + ROUND))" >"$TMP/l$i" 2>&1 &
		listeners+=($!)
	done
	for ((i = 1; i <= N; i++)); do
		nsenter --net=/run/netns/n0 stream -n 1000G -b 0 connect \
			"$(mac "n$i" "v$i")%v0:$((5000 + ROUND))" >"$TMP/c$i" 2>&1 &
		pids+=($!)
	done
	sleep $SECONDS_LONG
	kill -USR1 "${pids[@]}" "${listeners[@]}" 2>/dev/null
	for i in "${pids[@]}" "${listeners[@]}"; do
		wait "$i" || BROKEN=$((BROKEN + 1))
	done
	for ((i = 1; i <= N; i++)); do
		BYTES+=("$(sed -nE 's/.*received ([0-9]+) .*/\1/p' "$TMP/l$i" | tail -1)")
	done
	ROUND=$((ROUND + 1))
	echo "# bytes: ${BYTES[*]}"
}
ROUND=0

# shared TIMES: no receiver got more than TIMES the bytes of another.
shared()
{
	printf '%s\n' "${BYTES[@]}" | sort -n | awk -v times="$1" -v n=$N '
		NR == 1 { least = $1 }
		END { exit !(NR == n && least > 0 && $1 <= times * least) }'
}

# few: at most one packet of a hundred was retransmitted.
few() { [ $((100 * RETRANS)) -le "$DATA" ]; }

# short SEGMENTS MBIT QUEUE WHAT: GSO packets of so many segments, a device so fast, and room for
# so many bytes in its queue.
short()
{
	local discards

	ip -n n0 link set v0 gso_max_segs "$1"
	n0 tc qdisc replace dev v0 root tbf rate "$2mbit" burst 3100 limit "$3" || exit
	discards=$(stat n0 OutDiscards) RETRANS=$(stat n0 OutRetrans) DATA=$(stat n0 OutData)
	all
	RETRANS=$(($(stat n0 OutRetrans) - RETRANS)) DATA=$(($(stat n0 OutData) - DATA))
	echo "# of $DATA packets $RETRANS were retransmitted, $(drops) dropped"
	check "$2 Mbit/s, $4: nothing is dropped in the sender's own queue" [ "$(drops)" = 0 ]
	check "... or refused" [ "$(($(stat n0 OutDiscards) - discards))" = 0 ]
	check "... and hardly anything is retransmitted" few
	check "... and all receivers get their share" shared 2
	check "... of the bytes that were sent" [ "$BROKEN" = 0 ]
	n0 tc qdisc del dev v0 root
}

# watch: print how many bytes wait in the queue, again and again.
watch()
{
	while sleep 0.005; do
		n0 tc -j -s qdisc show dev v0 | sed -nE 's/.*"backlog":([0-9]+).*/\1/p'
	done
}

# beside: 200 messages there and back beside a stream to another host: how long they took is in
# MS, and the most bytes that waited in the queue are in MOST.
beside()
{
	local server watcher start

	n0 tc qdisc replace dev v0 root tbf rate 100mbit burst 3100 limit 1000000 || exit
	ip -n n0 address add 10.0.0.1/24 dev v0
	ip -n n2 address add 10.0.0.2/24 dev v2
	nsenter --net=/run/netns/n2 speed -b :v2 -L >"$TMP/server" 2>&1 &
	server=$!
	start n0 v0 n1 v1 -n 1000G -b 0
	watch >"$TMP/watch" &
	watcher=$!
	sleep 0.5
	start=${EPOCHREALTIME/[.,]/}
	check "messages go there and back beside a stream" \
		n0 speed -a :v0 -c 10.0.0.2 -n 200 esp pingpong
	MS=$(((${EPOCHREALTIME/[.,]/} - start) / 1000))
	end $watcher
	check "... which gets to its end" enough
	end $server
	MOST=$(sort -n "$TMP/watch" | tail -1)
	echo "# $MS ms; of $(wc -l <"$TMP/watch") times, at most $MOST bytes waited"
	n0 tc qdisc del dev v0 root
}

short 1 100 36000 "room for 24 frames"
short 65535 100 250000 "room for three GSO packets"
short 1 10 36000 "room for 24 frames"
short 65535 10 250000 "room for three GSO packets"
beside
check "... and the queue was looked at meanwhile" [ "$(wc -l <"$TMP/watch")" -ge 20 ]
check "... and while a GSO packet of the stream waits, its next one doesn't" [ "$MOST" -le 100000 ]
check "... nor do messages wait for more than that" [ "$MS" -le 3000 ]
finish
