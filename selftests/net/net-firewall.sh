#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The rules of Documentation/firewall.rst, read from there: frames that the page says pass
# do pass; frames that it says are dropped do not pass, and are counted.
#
#	n0 eth0 02:00:00:00:00:01 --- vnet0 -+
#	n1 eth0 02:00:00:00:00:02 --- vnet1 -+ br0 (sw)
#	n2 eth0 02:00:00:00:00:03 --- vnet2 -+

. "${0%/*}/../lib/lib.sh"

PAGE=$SRC/Documentation/firewall.rst
RUN=0 WORDS=0 SERVERS=()

# page HOST NAME [SED]: runs the block NAME of the page on the host.
page()
{
	block "$PAGE" "$2" | sed "${3:-}" >"$TMP/block"
	[ -s "$TMP/block" ] || return
	in_host "$1" bash -e "$TMP/block"
}

# ran HOST NAME...: runs the blocks, each as a test.
ran()
{
	RUN=$((RUN + 1))
	check "the page's rules are taken: $2" page "$@"
}

# serve HOST PORT [OPTION...]: listens in the background; $TMP/came gets the data.
serve()
{
	local host=$1 port=$2
	shift 2

	nsenter --net="/run/netns/$host" esp listen "$@" ":$port" >>"$TMP/came" 2>/dev/null &
	SERVERS+=($!)
	until_true 60 eval "in_host $host esp show -l | grep -q ':$port\\b'"
}

# say FROM TO PORT [OPTION...]: sends a new word.
say()
{
	local from=$1 to=$2 port=$3
	shift 3

	WORDS=$((WORDS + 1))
	in_host "$from" esp connect "$@" "$(mac "$to" "$DEV")%$DEV:$port" <<<"word$WORDS."
}
arrived() { grep -q "^word$WORDS\.$" "$TMP/came"; }

passes() { say "$@" -w 60 && until_true 60 arrived; }

# counter HOST NAME: print the counter of the rule with this comment; for tcN, of tc's filter with
# preference N.
counter()
{
	if [[ $2 = tc* ]]; then
		in_host "$1" tc -s filter show dev eth0 ingress pref "${2#tc}" |
			sed -nE 's/.*\(dropped ([0-9]+),.*/\1/p'
	else
		in_host "$1" nft list ruleset | sed -nE "s/.*counter packets ([0-9]+) .*comment \"$2\"/\1/p"
	fi
}
counts() { local now; now=$(counter "$1" "$2") && [ -n "$now" ] && [ "$now" -gt "$3" ]; }

# idle HOST: it has no connections, also none in TIME_WAIT.
idle() { ! in_host "$1" esp show -a | grep -qvE 'LISTEN|UNCONN|^Type'; }

# dropped RULE-HOST RULE FROM TO PORT: no connection is made, no frame arrives, and the rule has
# counted frames.
dropped()
{
	local host=$1 rule=$2 before frames
	shift 2

	until_true 60 idle "$1" && until_true 60 idle "$2" || return
	before=$(counter "$host" "$rule") frames=$(stat "$2" InFrames)
	say "$@" -w 1
	[ $? = 3 ] && counts "$host" "$rule" "$before" && [ "$(stat "$2" InFrames)" = "$frames" ]
}

# lost HOST RULE FROM TO PORT: a datagram is dropped. heard FROM TO PORT: a datagram arrives.
lost()
{
	local before in

	before=$(counter "$1" "$2") in=$(stat "$4" DgramIn)
	say "$3" "$4" "$5" -t dgram && counts "$1" "$2" "$before" && [ "$(stat "$4" DgramIn)" = "$in" ]
}
heard() { say "$@" -t dgram && until_true 60 arrived; }

# claims MAC: n2 uses that address in ARP, gets no answer, and the rule has counted that.
claims()
{
	local before

	before=$(counter sw address)
	ip2 link set eth0 address "$1" && ! n2 ping -c 1 -W 1 10.9.0.9 &&
		ip2 link set eth0 address 02:00:00:00:00:03 && counts sw address "$before"
}
# at_port PORT MAC: the bridge has learnt the address at this port.
at_port() { bridge -n sw fdb show br br0 | grep "^$2 dev $1 "; }

mtu() { ip -n "$1" -o link show "$2" | sed -n 's/.* mtu \([0-9]*\) .*/\1/p'; }
# pings MTU: n0 finds this MTU of the path to n1.
pings()
{
	in_host n0 esp ping -c 1 -w 60 -W 5 -m -j "$(mac n1 "$DEV")%$DEV" | tee "$TMP/ping" && grep -q "\"mtu\":$1\b" "$TMP/ping"
}
# other_key: n2 takes n0's address, and MACsec with another key: n1 counts invalid frames.
other_key()
{
	local status frames

	frames=$(stat n1 InFrames)
	ip2 link set eth0 address 02:00:00:00:00:01 && page n2 macsec 's/=0001/=ff01/' || return
	say n2 n1 5000 -w 1
	status=$?
	in_host n1 ip -s -j macsec show | tee "$TMP/macsec"
	ip2 link del macsec0
	ip2 link set eth0 address 02:00:00:00:00:03
	in_host n2 esp dev enable eth0
	[ $status = 3 ] && [ "$(stat n1 InFrames)" = "$frames" ] && grep -q '"InPktsNotValid":[1-9]' "$TMP/macsec"
}

hosts 3
host sw
DEV=eth0
for i in 0 1 2; do
	cable "n$i" eth0 sw "vnet$i"
	ip -n "n$i" link set eth0 address "02:00:00:00:00:0$((i + 1))" || exit
done
ip -n sw link add br0 type bridge || exit
for i in 0 1 2; do
	ip -n sw link set "vnet$i" master br0
done
ip -n sw link set br0 up

for port in 5000 5001 6000; do
	serve n1 $port -k || exit
done
serve n0 5000 -k && serve n2 5000 -k && serve n1 5002 -t dgram || exit
check "without rules all connect" eval \
	'passes n0 n1 5000 && passes n0 n1 6000 && passes n2 n1 5000 && passes n1 n2 5000 && passes n1 n0 5000'
check "... and datagrams arrive" until_true 60 heard n0 n1 5002

ran n1 host
check "a known host reaches a port of the range" passes n0 n1 5000
check "... its last one that is served" passes n0 n1 5001
check "... no other" dropped n1 port n0 n1 6000
check "a stranger reaches none" dropped n1 stranger n2 n1 5000
check "datagrams are dropped" lost n1 datagram n0 n1 5002
check "this host reaches a known one" passes n1 n0 5000
check "... and sends nothing to another" dropped n1 leaves n1 n2 5000
n0 frame send eth0 "$(mac n1 eth0)" <<<"flags=1 sport=2000 dport=5009 hello=7 count=10000" >/dev/null
check "more SYNs than the limit are dropped" counts n1 rate 0
check "... who goes on asking gets in" passes n0 n1 5000

# In these frames the EtherType comes after a VLAN tag.
modprobe -q 8021q
for i in 0 1; do
	ip -n n$i link add link eth0 eth0.5 up type vlan id 5 || exit
	in_host n$i sysctl -qw net/esp/dev/eth0.5/enable=1
done
DEV=eth0.5
check "in a VLAN, a port of the range" passes n0 n1 5000
check "... no other" dropped n1 port n0 n1 6000
DEV=eth0
n1 nft flush ruleset

ran n1 client
check "a client connects" passes n1 n0 5000
check "... and is not connected to" dropped n1 opens n0 n1 5000
n1 nft flush ruleset

ran n1 tc
check "tc drops an address" dropped n1 tc1 n2 n1 5000
check "... not another" passes n0 n1 5000
check "... a port" dropped n1 tc2 n0 n1 5001
check "... not another" passes n0 n1 6000
check "... nor connections from there" passes n1 n0 5000
DEV=eth0.5
check "... nor what is in a VLAN, as the page says" passes n0 n1 5001
DEV=eth0
n1 tc qdisc del dev eth0 clsact

ran sw bridge
check "a bridge lets pass what has its port's address" passes n0 n1 5000
check "... in both directions" passes n1 n0 5000
check "... not what comes by another port" dropped sw port n2 n1 5000
ip0 link set eth0 address 02:00:00:00:00:02
ip1 link set eth0 address 02:00:00:00:00:01
check "... nor with another's address" dropped sw address n0 n1 5000
ip0 link set eth0 address 02:00:00:00:00:01
ip1 link set eth0 address 02:00:00:00:00:02
for i in 0 1 2; do
	ip -n "n$i" addr add "10.9.0.$((i + 1))/24" dev eth0 || exit
done
check "IPv4 passes" eval 'n0 ping -c 1 -w 30 10.9.0.3 && n1 ping -c 1 -w 30 10.9.0.3'
check "... not with another's address" claims 02:00:00:00:00:02
check "... which the bridge has where it was" at_port vnet1 02:00:00:00:00:02
in_host sw nft flush ruleset

ran n0 macsec
check "... and by the peer, exchanged" page n1 macsec 's/:02 /:01 /; s/:02$/:01/'
in=$(stat n1 InFrames) clear=$(stat n1 InDevDisabled)
DEV=macsec0
check "its MTU is 32 less, as the page says" [ "$(mtu n0 macsec0)" = $(($(mtu n0 eth0) - 32)) ]
check "... and packets of this length get there" pings $(($(mtu n0 eth0) - 32))
check "ESP passes by MACsec" passes n0 n1 5000
check "... and nothing of it in the clear" [ "$(stat n1 InDevDisabled)" = "$clear" ]
check "... by that device only" [ "$(stat n1 InFrames)" -gt "$in" ]
check "who has another key reaches nobody" other_key
DEV=eth0
check "a stranger reaches nobody" eval 'say n2 n1 5000 -w 1; [ $? = 3 ]'
all_ran()
{
	[ "$RUN" = "$(grep -c '^\.\. block: ' "$PAGE")" ] && [ "$RUN" = "$(grep -c '^::$' "$PAGE")" ]
}
check "each of the page's blocks has run" all_ran
for server in "${SERVERS[@]}"; do
	end "$server"
done
finish
