#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# am logp, am calibrate: over UDP on this host. The tests don't check how long anything takes, which
# depends on the other work of this host. They check that all is measured, that derived figures
# agree with the measured ones, and the messages about bad input.

cd "${0%/*}/../.." || exit 1
# shellcheck source=selftests/harness/fetch.sh
. selftests/harness/fetch.sh
need jq gnuplot-nox
WORK=$(mktemp -d)
# taken: a UDP socket of the machine has one of the four ports from PORT on.
taken()
{
	cat /proc/net/udp /proc/net/udp6 | grep -qiE "$(printf ':(%04X|%04X|%04X|%04X) ' \
		"$PORT" $((PORT + 1)) $((PORT + 2)) $((PORT + 3)))"
}
# Ports outside of the range that the system assigns by itself.
PORT=$((20000 + 4 * ($$ % 3000)))
while taken; do
	PORT=$((PORT + 4))
done
HERE=udp:127.0.0.1:$PORT
number=0 status=0
trap 'kill "$SERVER" 2>/dev/null; wait 2>/dev/null; rm -rf "$WORK"' EXIT

# check TEXT COMMAND...: ok if COMMAND succeeds; else show its output.
check()
{
	local text=$1
	shift

	number=$((number + 1))
	if "$@" >"$WORK/check" 2>&1; then
		echo "ok $number - $text"
	else
		sed 's/^/# /' "$WORK/check"
		echo "not ok $number - $text"
		status=1
	fi
}

# refused STATUS WORDS ARGUMENT...: am ends with STATUS, and prints WORDS.
refused()
{
	local want=$1 words=$2 got
	shift 2

	am "$@" >"$WORK/out" 2>&1
	got=$?
	cat "$WORK/out"
	[ $got = "$want" ] && grep -qF -e "$words" "$WORK/out"
}

# holds EXPRESSION: the expression of jq is true of the last run.
holds() { jq -e "$1" "$WORK/json"; }

check "no command" refused 2 "Usage: am"
check "an unknown command" refused 2 "there is no command 'lopg'" lopg
check "an unknown option" refused 2 "unrecognized option" logp --fast "$HERE"
check "no address" refused 2 "no address" logp
check "no address to calibrate" refused 2 "no address" calibrate
check "an unknown protocol" refused 2 "'tcp' is none of" logp -p nway,tcp "$HERE"
check "a protocol twice" refused 2 "there twice" logp -p nway,nway "$HERE"
check "no protocol" refused 2 "no protocol" logp -p , "$HERE"
check "too few rounds" refused 2 "is not a number from 6 to" logp -r 5 "$HERE"
check "no number" refused 2 "is not a number from" logp -n 1x "$HERE"
check "no credits" refused 2 "is not a number from" calibrate -n 0 "$HERE"
check "sizes that don't rise" refused 2 "sizes must rise" logp -z 100,10 "$HERE"
check "a size that is too large" refused 2 "is not a number from" logp -z 65537 "$HERE"
check "an address of no transport" refused 2 "is not an address" logp tcp:127.0.0.1
check "a port that isn't" refused 2 "is not an address" logp udp:127.0.0.1:65536
check "no ports behind it" refused 2 "no ports behind" logp -p nway udp:127.0.0.1:65535
check "a server at no address" refused 2 "no such address" logp --serve udp:127.0.0
check "a server's MAC address has colons" refused 1 "No such device" \
	logp --serve edp:02:00:00:00:00:01%nobody0
check "a server with a client's option" refused 2 "has no other options" logp --serve -r 7 "$HERE"
check "nobody there" refused 1 "no answer" logp -t 200 -p nway "$HERE"
check "nobody there, datagrams alone" refused 1 "no answer" logp -t 200 -p raw "$HERE"
check "nobody there to calibrate with" refused 1 "no answer" calibrate -t 200 "$HERE"
check "help" refused 0 "--protocol" logp --help

# With a real-time priority, where that is permitted, the server answers in time even if the
# processors are busy.
FIRST=(chrt -f 1)
"${FIRST[@]}" true 2>/dev/null || FIRST=()
"${FIRST[@]}" am logp --serve "$HERE" >"$WORK/serve" 2>&1 &
SERVER=$!
for ((i = 0; i < 200; i++)); do
	[ ! -s "$WORK/serve" ] || break
	sleep 0.05
done
check "the server says where it is" grep -qx "$HERE" "$WORK/serve"
check "a second one at the same address" refused 1 "in use" logp --serve "$HERE"

check "a run" sh -c "am logp -j -t 60000 -r 12 -n 4 -m 32 -z 0,127,1400,2000 --figures '$WORK' $HERE >'$WORK/json'"
check "... has every protocol" holds '[.layers[].protocol] == ["raw", "nway", "oneway", "amvia", "amudp"]'
check "... N" holds '[.layers[].credits] == [4, 4, 1, 4, 4]'
check "... the parameters" holds '[.layers[] | .o_s, .g, .RTT, .G | .median > 0] | all'
# Six rounds make a figure. In some rounds no reply may be here after a delay, because other
# processes kept the processors.
check "... o_r" holds 'any(.layers[]; .o_r.median != null)'
check "... L, where there is o_r" holds '[.layers[] | (.L.median == null) == (.o_r.median == null)] | all'
check "... by size" holds '[.layers[].sizes[] | .g.median > 0 and .o_s.median > 0] | all'
check "... intervals" holds '[.layers[] | .o_s, .g, .RTT, .G | .low <= .median and .median <= .high] | all'
check "... a round trip is longer than a send" holds '[.layers[] | .RTT.median > .o_s.low] | all'
check "... a signature, by delay" holds '[.layers[].signature | [.[].points | length] == [6, 5, 5, 5]] | all'
check "... costs by size, of what can be carried" \
	holds '[.layers[] | [.sizes[].bytes] == (if .protocol == "raw" then [0, 127, 1400] else [0, 127, 1400, 2000] end)] | all'
check "... datagrams one way" holds '.layers[0] | .one_way_small.median > 0 and .one_way_large.median > 0'
for name in signature signatures sizes; do
	check "... a figure, $name" sh -c "head -c 8 '$WORK/logp-$name.png' | grep -qa PNG"
done
check "a table" refused 0 "o_r_gap" logp -t 60000 -r 6 -n 4 -m 16 -z none -p raw,nway "$HERE"
check "... says what a protocol adds" grep -q 'nway .*longer than that of datagrams alone' "$WORK/out"
check "with no more messages than credits the gap isn't seen" \
	sh -c "am logp -j -t 60000 -r 6 -n 16 -m 16 -z none -p nway $HERE | jq -e '.layers[0] | .g.median == null and .gap_hidden == null and .o_s.median > 0'"

# The best rate of the powers of two, by which the answer is judged; those between are tried later.
# shellcheck disable=SC2016
BEST='.[0] | .credits as $n | (.trials | map(select(.credits as $c | [1, 2, 4, 8] | index($c)) | .rate.median) | max)'
check "a calibration" sh -c "am calibrate -j -t 60000 -r 6 -n 8 -m 64 $HERE >'$WORK/json'"
check "... tries N" holds '[.[0].trials[].credits] | contains([1, 2, 4, 8])'
check "... its answer is one of them" holds '.[0] | .credits as $n | any(.trials[]; .credits == $n)'
check "... nearly as good as the best" \
	holds "$BEST"' * 0.95 <= (.trials[] | select(.credits == $n) | .rate.median)'
check "... and fewer aren't" \
	holds "$BEST"' as $best | [.trials[] | select(.credits == $n - 1) | .rate.median < $best * 0.95] | all'
echo "1..$number"
exit $status
