#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Each kind of device that "ip link add" and the kernel's modules know: does it carry ESP, and does
# it count for a connect() that names no device? socket-api.rst, "Which devices carry ESP", says
# what is expected. A kind that its table lacks is a failure, a driver that the kernel lacks a skip.
#
#	+-----------------+               +-----------------+
#	| n0     d0 -- v0 +---- cable ----+ v1 -- d1     n1 |
#	|              w0 +---- cable ----+ w1              |
#	+-----------------+               +-----------------+
#
# d0 and d1 are the devices that are tried. Only some of them are above v0 and v1, or in a tunnel
# between these; and only hsr has w0 and w1.

. "${0%/*}/../lib/lib.sh"

TABLE=Documentation/socket-api.rst
N=256k		# a short transfer
STRANGER=02:00:00:00:99:99

# rows: print the table, a line for each mode of each kind: KIND ESP COUNTS MODE, "-" for no mode.
# A line of the table that begins with spaces goes on with the modes of the row before.
rows()
{
	awk '
	function flush() {
		n = split(modes == "" ? "-" : modes, mode, /, */)
		for (i = 1; kind != "" && i <= n; i++)
			print kind, esp, counts, mode[i]
	}
	function cell(i, text) {
		text = substr($0, from[i], from[i + 1] - from[i])
		gsub(/^ +| +$/, "", text)
		return text
	}
	/^\.\. table: / { table = $3 == "kinds"; lines = 0; next }
	table && /^=/ {
		lines++
		n = 0
		for (at = 1; match(substr($0, at), /=+/); at += RSTART + RLENGTH - 1)
			from[++n] = at + RSTART - 1
		next
	}
	table && lines == 2 {
		gsub(/`/, " ")
		if (/^[^ ]/) {
			flush()
			kind = cell(1); modes = cell(2); esp = cell(3); counts = cell(4)
		} else {
			modes = modes (modes ~ /,$/ ? " " : "") cell(2)
		}
	}
	END { flush() }' "$TABLE"
}

# known_to_ip: print the kinds that "ip link help" lists.
known_to_ip() { ip link help 2>&1 | tr '\n' ' ' | sed 's/.*TYPE := {//; s/}.*//; s/|/ /g' | xargs -n 1; }

# known_to_modules: print the kinds for which the kernel has a module.
known_to_modules() { sed -n 's/^alias rtnl-link-\([^ ]*\) .*/\1/p' "/lib/modules/$(uname -r)/modules.alias"; }

#
# How to make a pair of devices of each kind. These return 0 if there are d0 and d1, and else 1;
# then the text in $TMP/why is ip's.
#

# add END ARG...: make the device of one end, up.
add() { ip -n "n$1" link add "d$1" "${@:2}" 2>"$TMP/why" && ip -n "n$1" link set "d$1" up 2>"$TMP/why"; }

# both ARG...: make the devices of both ends. %l, %r: the last digit of this end's and of the
# other end's IP addresses; %i: number of this end.
both()
{
	local i arg args

	for i in 0 1; do
		args=()
		for arg; do
			arg=${arg//%l/$((i + 1))} arg=${arg//%r/$((2 - i))}
			args+=("${arg//%i/$i}")
		done
		add $i "${args[@]}" || return
	done
}

# port END DEV MASTER: make DEV a port of MASTER.
port()
{
	ip -n "n$1" link set "$2" down && ip -n "n$1" link set "$2" master "$3" &&
		ip -n "n$1" link set "$2" up
} 2>"$TMP/why"

# ports MASTER: v0 is a port of MASTER0, v1 is one of MASTER1.
ports() { port 0 v0 "${1}0" && port 1 v1 "${1}1"; }

V4=(local 10.9.0.%l remote 10.9.0.%r)
V6=(local fd09::%l remote fd09::%r)

make_batadv() { both type batadv && ports d; }
make_bond() { both type bond mode "$1" miimon 10 && ports d; }
make_bridge() { both type bridge && ports d; }
make_erspan() { both type erspan "${V4[@]}" seq key 1 erspan_ver 1 erspan 1; }
make_geneve() { both type geneve id 1 remote 10.9.0.%r; }
make_gre() { both type gre "${V4[@]}"; }
make_gretap() { both type gretap "${V4[@]}"; }
make_gtp() { both type gtp role sgsn; }
make_ip6erspan() { both type ip6erspan "${V6[@]}" seq key 1 erspan_ver 1 erspan 1; }
make_ip6gre() { both type ip6gre "${V6[@]}"; }
make_ip6gretap() { both type ip6gretap "${V6[@]}"; }
make_ip6tnl() { both type ip6tnl "${V6[@]}"; }
make_ipip() { both type ipip "${V4[@]}"; }
make_ipvlan() { both link v%i type ipvlan mode "$1"; }
make_ipvtap() { both link v%i type ipvtap mode "$1"; }
make_macvlan() { both link v%i type macvlan mode "$1" && macs_of_macvlan "$1"; }
make_macvtap() { both link v%i type macvtap mode "$1" && macs_of_macvlan "$1"; }
make_sit() { both type sit "${V4[@]}"; }
make_vlan() { both link v%i type vlan protocol "$1" id 5; }
make_vrf() { both type vrf table 5; }
make_vti() { both type vti "${V4[@]}" key 1; }
make_vti6() { both type vti6 "${V6[@]}" key 1; }
make_vxlan() { both type vxlan id 1 remote 10.9.0.%r dstport 4789; }
make_xfrm() { both type xfrm dev v%i if_id 1; }

# In this mode a macvlan takes frames of the peers that it is told.
macs_of_macvlan()
{
	[ "$1" = source ] || return 0
	ip0 link set d0 type macvlan macaddr add "$(mac n1 d1)"
	ip1 link set d1 type macvlan macaddr add "$(mac n0 d0)"
}

# Both ports of an HSR device have its address, because HSR puts a port's address into frames.
make_hsr()
{
	ip0 link set w0 address "$(mac n0 v0)" && ip1 link set w1 address "$(mac n1 v1)" &&
		both type hsr slave1 v%i slave2 w%i proto "$1"
}

make_macsec()
{
	local i other key=000102030405060708090a0b0c0d0e0f

	both link v%i type macsec encrypt on || return
	for i in 0 1; do
		other=$(mac n$((1 - i)) d$((1 - i)))
		ip -n n$i macsec add d$i tx sa 0 pn 1 on key 01 $key &&
			ip -n n$i macsec add d$i rx port 1 address "$other" &&
			ip -n n$i macsec add d$i rx port 1 address "$other" sa 0 pn 1 on key 01 $key || return
	done
}

make_netkit()
{
	case $1 in
	l2)
		ip link add d0 netns n0 type netkit mode l2 peer name d1 netns n1 2>"$TMP/why" || return
		;;
	# An ip that does not know the kind makes this one, and the kernel names its peer.
	l3)
		ip0 link add d0 type netkit 2>"$TMP/why" && ip0 link set nk0 netns n1 name d1 || return
		;;
	esac
	ip0 link set d0 up && ip1 link set d1 up
}

make_pair() { ip link add d0 netns n0 type "$1" peer name d1 netns n1 2>"$TMP/why" && ip0 link set d0 up && ip1 link set d1 up; }
make_veth() { make_pair veth; }
make_vxcan() { make_pair vxcan; }

# index HOST DEV: print the device's number.
index()
{
	local line

	line=$(ip -n "$1" -o link show "$2")
	echo "${line%%:*}"
}

make_team()
{
	local i

	both type team || return
	for i in 0 1; do
		in_host n$i teamnl d$i setoption mode "$1" 2>"$TMP/why" || return
	done
	# In this mode the kernel leaves addresses and the choice of the port to teamd, which is not here.
	[ "$1" != activebackup ] || for i in 0 1; do
		ip -n n$i link set v$i address "$(mac n$i d$i)" || return
	done
	ports d || return
	[ "$1" != activebackup ] || for i in 0 1; do
		in_host n$i teamnl d$i setoption activeport "$(index n$i v$i)" || return
	done
}

# forward END: an Ethernet between two taps, by a program at each.
forward()
{
	nsenter --net="/run/netns/n$1" socat "TUN,tun-name=d$1,tun-type=tap,iff-no-pi" \
		"UNIX-SENDTO:$TMP/tap$((1 - $1)),bind=$TMP/tap$1" </dev/null &
	FORWARDERS+=" $!"
}

make_tap()
{
	local i

	rm -f "$TMP"/tap?
	for i in 0 1; do
		ip -n n$i tuntap add d$i mode tap 2>"$TMP/why" && forward $i || return
	done
	until_true 60 [ -S "$TMP/tap0" ] && until_true 60 [ -S "$TMP/tap1" ] || return
	ip0 link set d0 up && ip1 link set d1 up
}
make_tun() { ip0 tuntap add d0 mode tun 2>"$TMP/why" && ip0 link set d0 up; }

# others need no more than their name
make_any() { both type "$1"; }
make_bond_slave() { make_bond active-backup && DEV0=v0 DEV1=v1; }
make_bridge_slave() { make_bridge && DEV0=v0 DEV1=v1; }
make_team_slave() { make_team activebackup && DEV0=v0 DEV1=v1; }

# make KIND MODE
make()
{
	if [ "$(type -t "make_$1")" = function ]; then
		"make_$1" "$2"
	else
		make_any "$1"
	fi
}

#
# Trials
#

# batch HOST LINE...: run these commands of ip; go on after one that fails.
batch() { printf '%s\n' "${@:2}" | ip -n "$1" -force -batch - >/dev/null 2>&1; }

# take_down: remove the devices of a trial, and the cables' state from it.
take_down()
{
	local i pid

	for pid in $FORWARDERS; do
		end "$pid"
	done
	FORWARDERS=
	for i in 0 1; do
		batch n$i "link delete d$i" "link set v$i up" "link set w$i up" \
			"addr replace fd09::$((i + 1))/64 dev v$i nodad"
	done
}
FORWARDERS=

# enabled HOST DEV 1|0: enable or disable the device, if ESP knows it.
enabled() { in_host "$1" tee "/proc/sys/net/esp/dev/$2/enable" <<<"$3" >/dev/null 2>&1; }

# refused ERROR ADDRESS: n0's connect() fails with this error.
refused()
{
	local text

	case $1 in
	EHOSTUNREACH) text="No route to host" ;;
	ENODEV) text="No such device" ;;
	ETIMEDOUT) text="Connection timed out" ;;
	*) echo "unknown error $1"; return 1 ;;
	esac
	! n0 esp connect "$2" </dev/null >"$TMP/refused" 2>&1 || { echo "connected to $2"; return 1; }
	cat "$TMP/refused"
	grep -qF "$text" "$TMP/refused"
}

# unanswered ADDRESS: n0's connect() gets no answer. It gives up after one repetition.
unanswered()
{
	local status

	n0 tee /proc/sys/net/esp/syn_retries <<<1 >/dev/null
	refused ETIMEDOUT "$1:$PORT"
	status=$?
	n0 tee /proc/sys/net/esp/syn_retries <<<20 >/dev/null
	return $status
}

# datagrams HOST DEV ADDRESS...: a datagram that n0 sends to each ADDRESS comes to this device.
# Datagrams may get lost, so n0 repeats them.
datagrams()
{
	local address status=0 listener

	nsenter --net="/run/netns/$1" esp listen -t dgram "%$2:$PORT" >"$TMP/datagrams" &
	listener=$!
	for address in "${@:3}"; do
		until_true 20 datagram "$address:$PORT" || { echo "no datagram came"; status=1; }
	done
	end $listener
	return $status
}
datagram()
{
	n0 esp connect -t dgram "$1" <<<"to $1" && sleep 0.02 && grep -qF "to $1" "$TMP/datagrams"
}

# try ESP COUNTS: $DEV0 does what the table's row says. All other devices are disabled.
try()
{
	local peer=$STRANGER

	enabled n0 "$DEV0" 1
	case $1 in
	yes)
		enabled n1 "$DEV1" 1
		peer=$(mac n1 "$DEV1")
		transfer n0 "$DEV0" n1 "$DEV1" -n $N || return
		if [ "$2" = yes ]; then
			datagrams n1 "$DEV1" "$peer%$DEV0" "$peer"
			return
		fi
		datagrams n1 "$DEV1" "$peer%$DEV0" || return
		;;
	here)
		peer=$(mac n0 "$DEV0")
		transfer n0 "$DEV0" n0 "$DEV0" -n $N && datagrams n0 "$DEV0" "$peer%$DEV0" || return
		unanswered "$STRANGER%$DEV0" || return
		;;
	ETIMEDOUT)
		enabled n1 "$DEV1" 1
		peer=$(mac n1 "$DEV1")
		unanswered "$peer%$DEV0" || return
		if [ "$2" = yes ]; then
			unanswered "$peer"
			return
		fi
		;;
	*)
		refused "$1" "$peer%$DEV0:$PORT" || return
		! n0 esp connect -t dgram "$peer%$DEV0:$PORT" <<<hello || { echo "a datagram left"; return 1; }
		;;
	esac
	[ "$2" = no ] && refused EHOSTUNREACH "$peer:$PORT"
}

# trial TEXT ESP COUNTS COMMAND...: the command makes the devices; $DEV0 does what ESP and COUNTS say.
trial()
{
	: >"$TMP/why"
	if "${@:4}"; then
		check "$1: ESP $2, counts $3" try "$2" "$3"
		enabled n0 v0 0
		enabled n1 v1 0
	else
		comment <"$TMP/why"
		if unknown; then
			ok "$1 # SKIP $(<"$TMP/why")"
		else
			not_ok "$1 can't be made"
		fi
	fi
	take_down
}

# unknown: the kernel has no driver for a device that can't be made, or ip does not know its modes.
unknown() { grep -q -e "Unknown device type" -e 'Garbage instead of arguments "mode' "$TMP/why"; }

# row KIND ESP COUNTS MODE
row()
{
	local mode=${4#-}

	DEV0=d0 DEV1=d1
	modprobe -q "rtnl-link-$1"
	if [ "$2" = - ]; then
		check "$1: ip makes none" not_made "$1" "$mode"
		take_down
	else
		trial "$1${mode:+ $mode}" "$2" "$3" make "$1" "$mode"
	fi
}

not_made() { ! make "$@"; }

# lower TEXT ESP COUNTS COMMAND...: the command makes a device above v0. Nothing is above v1.
lower()
{
	DEV0=v0 DEV1=v1
	trial "$@"
}
above() { add 0 link v0 type "$@"; }
vrf_port() { add 0 type vrf table 5 && port 0 v0 d0; }
batadv_port() { add 0 type batadv && port 0 v0 d0; }
hsr_port() { add 0 type hsr slave1 v0 slave2 w0 proto "$1"; }

# A macvtap whose tap a program has opened, this one.
open_macvtap()
{
	local number

	make_macvtap bridge || return
	number=$(ip netns exec n0 sh -c 'cat /sys/class/net/d0/tap*/dev') &&
		mknod "$TMP/tap" c "${number%:*}" "${number#*:}" && exec 7<>"$TMP/tap"
}

all_known()
{
	local kind missing=0

	for kind; do
		grep -q "^$kind " "$TMP/rows" || { echo "$kind"; missing=1; }
	done
	return $missing
}

rows >"$TMP/rows"
known_to_ip >"$TMP/kinds"
mapfile -t kinds <"$TMP/kinds"
check "the table has each of the ${#kinds[@]} kinds that ip knows" all_known "${kinds[@]}"
[ ${#kinds[@]} -gt 20 ] || not_ok "ip tells its kinds"
known_to_modules >"$TMP/kinds"
mapfile -t kinds <"$TMP/kinds"
check "... and each of the ${#kinds[@]} for which the kernel has a module" all_known "${kinds[@]}"
[ ${#kinds[@]} -gt 20 ] || not_ok "the kernel's modules tell their kinds"

hosts 2
for dev in v w; do
	cable n0 ${dev}0 n1 ${dev}1
	enabled n0 ${dev}0 0
	enabled n1 ${dev}1 0
done
for i in 0 1; do
	batch n$i "addr add 10.9.0.$((i + 1))/24 dev v$i"
done
take_down
while read -r kind esp counts mode <&3; do
	[ $# = 0 ] || [[ " $* " == *" $kind "* ]] || continue
	row "$kind" "$esp" "$counts" "$mode"
done 3<"$TMP/rows"

if [ $# = 0 ] || [[ " $* " == *" lower "* ]]; then
	lower "below a VLAN" yes yes above vlan id 5
	lower "below a MACsec device" yes yes above macsec
	lower "below an ipvlan" yes yes above ipvlan mode l2
	lower "below a macvlan" yes yes above macvlan mode bridge
	lower "below a macvlan that takes all frames" ENODEV no above macvlan mode passthru
	lower "a port of a VRF" yes yes vrf_port
	lower "a port of batman-adv" yes yes batadv_port
	# Newer kernels make the HSR device the master of its ports, by which the module knows them.
	hsr=(yes yes) prp=(ETIMEDOUT yes)
	if hsr_port 0 && ip0 -o link show v0 | grep -q " master d0 "; then
		hsr=(ENODEV no) prp=(ENODEV no)
	fi
	take_down
	lower "a port of HSR" "${hsr[@]}" hsr_port 0
	lower "a port of PRP" "${prp[@]}" hsr_port 1
	DEV0=d0 DEV1=d1
	trial "macvtap, opened by a program" ETIMEDOUT yes open_macvtap
	exec 7<&-
fi
finish
