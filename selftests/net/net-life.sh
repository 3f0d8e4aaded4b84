#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Life and death under load: streams and records over three cables, while events strike a cable
# or a host at random moments, one after the other. A transfer that is not struck goes on and
# stays intact. A struck transfer goes on, too, or ends with an error that says why
# (state-machine.rst, "Devices"), and leaves nothing.
#
#	+----------------+       +---------------+
#	| n1     a0   b0 +-veth--+ b1         n2 |
#	+--------+-------+       +--------+------+
#	         |      +---------+       |
#	         +-veth-+ a1   c1 +--veth-+ c0 (n2)
#	                | n0      |
#	                +---------+
#
#	net-life.sh [ROUNDS [SEED]]	of all events; the first line names the seed

# shellcheck disable=SC2086
. "${0%/*}/../lib/lib.sh"

ROUNDS=${1:-1}
SEED=${2:-$((RANDOM * 32768 + RANDOM))}
LONGEST=$(by_kernel 400 1500 1500)	# longest time before an event, ms
PAUSE=$(by_kernel 700 1500 1500)	# longest duration of an event, ms
LAG=$(by_kernel 100 2000 500)		# pause of a reader now and then, ms
READS=("$(by_kernel 4000 4000 20000)" 40000)	# largest read of each second round, bytes
BUFFER=$(by_kernel 262144 65536 262144)	# buffers of each end, to be read in the end, bytes
RESET="Connection reset by peer|Broken pipe"
LATE="Connection timed out"
NO_DEVICE="Network is down|No such device|No route to host"
BESIDES="bytes came instead of [0-9]+|shutdown: Transport endpoint is not connected"

# The ends of each cable.
HOST0=(n1 n1 n2) DEV0=(a0 b0 c0)
HOST1=(n0 n2 n0) DEV1=(a1 b1 c1)

EVENTS=(down disable delete move mtu address namespace kill rmmod stop freeze clock)

lay() { cable ${HOST0[$1]} ${DEV0[$1]} ${HOST1[$1]} ${DEV1[$1]}; }
msleep() { sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

# chance N: sets DRAWN to a random number below N. Not in a subshell, where the seed's sequence
# would not advance.
chance() { DRAWN=$(((RANDOM << 15 | RANDOM) % $1)); }

# listens PID: the program handles SIGUSR1 by now, or has ended.
listens()
{
	! kill -0 $1 2>/dev/null ||
		{ [ "$(</proc/$1/comm)" = stream ] && grep -q '^SigCgt:.*[2367abef]..$' /proc/$1/status; }
} 2>/dev/null

#
# Transfers: two over each cable, 2 * C and 2 * C + 1.
#

launch()
{
	local c t option="-c 5 $1"	# no one listens any more where an event has struck

	CONNECTORS=() LISTENERS=() PORTS=()
	for t in 0 1 2 3 4 5; do
		c=$((t / 2))
		mkdir -p "$TMP/$t"
		# The two transfers of a cable connect in opposite directions.
		if [ $((t % 2)) = 0 ]; then
			TMP=$TMP/$t slow_start ${HOST0[c]} ${DEV0[c]} ${HOST1[c]} ${DEV1[c]} -r "${READS[round % 2]}" -p "$LAG" $option
		else
			TMP=$TMP/$t slow_start ${HOST1[c]} ${DEV1[c]} ${HOST0[c]} ${DEV0[c]} -q -w 20000 -p "$LAG" $option
		fi
		CONNECTORS+=("$CONNECTOR") LISTENERS+=("$LISTENER") PORTS+=("$PORT")
	done
}

# nobody_came T: its connector has ended, and its listener still waits for a connection.
nobody_came()
{
	local h=${HOST1[$1 / 2]}

	[ $(($1 % 2)) = 0 ] || h=${HOST0[$1 / 2]}
	! kill -0 ${CONNECTORS[$1]} 2>/dev/null && [ -e "/run/netns/$h" ] &&
		in_host $h esp show -l | grep -q ":${PORTS[$1]}\b"
}

# join T: waits for both ends; sets A and B to their status.
join()
{
	wait ${CONNECTORS[$1]}
	A=$?
	[ $A = 0 ] || ! nobody_came $1 || kill ${LISTENERS[$1]}
	wait ${LISTENERS[$1]}
	B=$?
} 2>/dev/null

intact() { [ $A = 0 ] && [ $B = 0 ] && same_hashes "$TMP/$1/connect" "$TMP/$1/listen"; }

# died FILE STATUS ERRORS: the test has killed the program, or it ended well, or it reported at
# least one of ERRORS and no others, except that data are missing or shutdown() came too late.
died()
{
	local lines=$TMP/lines errors=$3

	[ $2 != 137 ] && [ $2 != 143 ] || return 0
	[ $2 != 0 ] || return 0		# this end saw no error
	grep -v "^[a-z]*: sent" "$1" >"$lines"
	grep -qE "($errors)$" "$lines" && ! grep -qvE "($errors|$BESIDES)$" "$lines"
}

# judge T: the transfer has ended as it must.
judge()
{
	local file connect=$ERRORS listen=$ERRORS

	# The struck end has its own errors.
	if [ $(($1 % 2)) = $END ]; then
		connect=$NEAR
	else
		listen=$NEAR
	fi
	join $1
	if intact $1; then
		WELL=$((WELL + 1))
		return
	fi
	case " $STRUCK " in *" $1 "*)
		if [ -n "$ERRORS" ] && died "$TMP/$1/connect" $A "$connect" &&
			died "$TMP/$1/listen" $B "$listen" && [ $A$B != 00 ]; then
			DEAD=$((DEAD + 1))
			for file in connect listen; do
				grep -v "^[a-z]*: sent" "$TMP/$1/$file"
			done | sed "s/^/$EVENT: /; s/ at [0-9]*:/:/; s/[0-9]* bytes/bytes/; s/[0-9]*$//" >>"$TMP/deaths"
			return
		fi
	esac
	echo "transfer $1, struck: $STRUCK; status $A $B"
	cat "$TMP/$1/connect" "$TMP/$1/listen"
	return 1
}

# all_end: ends all transfers; each must have ended as it must.
all_end()
{
	local t wrong=0

	for t in "${!CONNECTORS[@]}"; do
		kill -USR1 ${CONNECTORS[t]} ${LISTENERS[t]} 2>/dev/null
	done
	for t in "${!CONNECTORS[@]}"; do
		judge $t || wrong=1
	done
	return $wrong
}

#
# Events: EVENT strikes end 0 or 1 (END) of cable C, that is $H $D; the host at the
# other end is $PH. N is a number drawn for it. Each leaves everything as it was before.
#

sysctl() { in_host "$1" tee "/proc/sys/net/esp/$2" <<<"$3" >/dev/null; }
no_device() { ! ip -n "$1" link show "$2" >/dev/null 2>&1; }

# born HOST: makes a host that soon forgets closed connections.
born()
{
	host $1
	sysctl $1 fin_timeout_ms 5000
	sysctl $1 syn_retries 8	# four seconds
	sysctl $1 rcvbuf $BUFFER
	sysctl $1 sndbuf $BUFFER
}

# hasty: the host at the other end gives up connections in four seconds, if the struck host is gone.
hasty()
{
	sysctl $PH retries 40
	sysctl $PH rto_max_ms 100
	sysctl $PH probe_max_ms 100
}

patient()
{
	sysctl $PH retries 60
	sysctl $PH rto_max_ms 500
	sysctl $PH probe_max_ms 500
}

# struck_end: the struck transfers of this cable end before it is laid anew.
struck_end()
{
	local t

	for t in $STRUCK; do
		until_true 60 struck_ended $t || return
	done
}
struck_ended()
{
	! kill -0 ${CONNECTORS[$1]} 2>/dev/null &&
		{ ! kill -0 ${LISTENERS[$1]} 2>/dev/null || nobody_came $1; }
}

event_down()
{
	ip -n $H link set $D down
	msleep $((N % PAUSE))
	ip -n $H link set $D up
}

event_disable()
{
	sysctl $H dev/$D/enable 0
	msleep $((N % PAUSE))
	sysctl $H dev/$D/enable 1
}

event_delete()
{
	ip -n $H link delete $D || return
	struck_end || return
	lay $C
}

event_move()
{
	hasty
	ip -n $H link set $D netns limbo || return
	struck_end || return
	ip -n limbo link delete $D || return
	lay $C
	patient
}

event_mtu()
{
	hasty
	ip -n $H link set $D mtu $((128 + N % 9000))
	msleep $((N % PAUSE))
	ip -n $H link set $D mtu 1500
}

event_address()
{
	hasty
	ip -n $H link set $D address "$(printf 02:00:00:%02x:%02x:01 $((N >> 8 & 255)) $((N & 255)))"
}

# The event ends the host's processes, too, because they keep the namespace. So it strikes the
# host's other cable as well.
event_namespace()
{
	local t c

	ip netns pids $H | xargs -r kill -KILL
	ip netns delete $H || return
	HOSTS=${HOSTS/ $H/}
	for c in 0 1 2; do
		[ ${HOST0[c]} != $H ] || until_true 60 no_device ${HOST1[c]} ${DEV1[c]} || return
		[ ${HOST1[c]} != $H ] || until_true 60 no_device ${HOST0[c]} ${DEV0[c]} || return
	done
	struck_end || return
	born $H
	for c in 0 1 2; do
		[ ${HOST0[c]} != $H ] && [ ${HOST1[c]} != $H ] || lay $c
	done
}

event_kill()
{
	for t in $STRUCK; do
		if [ $END = 0 ]; then
			kill -KILL ${CONNECTORS[t]}
		else
			kill -KILL ${LISTENERS[t]}
		fi
	done
	struck_end
}

event_rmmod()
{
	local error status

	# esp_diag uses the module, so without it only sockets can make the kernel refuse.
	rmmod esp_diag || return
	error=$(LC_ALL=C unload esp)
	status=$?
	insmod "$BUILD/esp_diag.ko" && [ $status = 1 ] && [ "$error" = "Resource temporarily unavailable" ]
}

# A process is stopped, as in a debugger.
event_stop()
{
	for t in $STRUCK; do
		kill -STOP ${LISTENERS[t]}
	done
	msleep $((N % PAUSE))
	for t in $STRUCK; do
		kill -CONT ${LISTENERS[t]}
	done
}

# A host is cut off, like a closed laptop: no frame leaves or reaches it.
event_freeze()
{
	each_end tc qdisc add dev DEV root netem loss 100% || return
	msleep $((N % (2 * PAUSE)))
	each_end tc qdisc delete dev DEV root
}

# each_end COMMAND...: run it at both ends of all cables of H, with the device for DEV.
each_end()
{
	local c

	for c in 0 1 2; do
		[ ${HOST0[c]} = $H ] || [ ${HOST1[c]} = $H ] || continue
		in_host ${HOST0[c]} "${@/#DEV/${DEV0[c]}}" && in_host ${HOST1[c]} "${@/#DEV/${DEV1[c]}}" || return
	done
}

# The date changes, but not the time since the machine's start. SECONDS follows the date, so it is
# not used here.
event_clock()
{
	local by=$((N % 2 ? N : -N)) now from i

	now=$(date +%s)
	from=$(stat n0 InData)
	date -s @$((now + by)) >/dev/null || return
	for ((i = 0; i < 600; i++)); do
		counted n0 InData $((from + 50)) && break
		sleep 0.05
	done
	date -s @$(($(date +%s) - by)) >/dev/null
	[ $i -lt 600 ] && [ $(($(date +%s) - now)) -ge 0 ]
}

# strike EVENT: draws its place and time, sets the errors that it may cause, and runs it.
strike()
{
	local t c moment option=

	EVENT=$1 STRUCK='' ERRORS=''
	chance 3
	C=$DRAWN
	chance 2
	END=$DRAWN
	chance $LONGEST
	moment=$DRAWN
	chance 100000000
	N=$DRAWN
	# n0 stays, because the test watches the others from there.
	[ $EVENT != namespace ] || [ $C = 1 ] || END=0
	if [ $END = 0 ]; then
		H=${HOST0[C]} D=${DEV0[C]} PH=${HOST1[C]}
	else
		H=${HOST1[C]} D=${DEV1[C]} PH=${HOST0[C]}
	fi
	STRUCK="$((2 * C)) $((2 * C + 1))" NEAR=
	case $EVENT in
	down | disable) option=-D ;;
	delete | move | address)
		ERRORS="$NO_DEVICE|$RESET|$LATE|Connection refused"
		NEAR="$NO_DEVICE|Broken pipe"	# this end knows the reason
		;;
	mtu) ERRORS="Message too long|$RESET|$LATE" ;;
	kill) ERRORS="$RESET|Connection refused" ;;
	namespace)
		ERRORS="$NO_DEVICE|$RESET|$LATE|Connection refused"
		STRUCK=''
		for t in 0 1 2 3 4 5; do
			c=$((t / 2))
			[ ${HOST0[c]} != $H ] && [ ${HOST1[c]} != $H ] || STRUCK+="$t "
		done
		;;
	esac
	NEAR=${NEAR:-$ERRORS}
	echo "# $EVENT at $H $D after $moment ms, $N"
	launch $option
	for t in "${CONNECTORS[@]}" "${LISTENERS[@]}"; do
		until_true 60 listens $t || echo "# $t does not start"
	done
	msleep $moment
	check "$EVENT" event_$EVENT
	WELL=0 DEAD=0
	check "... $STRUCK struck, all end as they must" all_end
	patient
	echo "# intact: $WELL, with an error: $DEAD"
	check "... and leave nothing" until_true 60 nothing_left
}

inuse() { [ "$(in_host $1 awk '$1 == "ESP" { print $3 }' /proc/net/protocols)" = 0 ]; }
nothing_left()
{
	local h

	for h in n0 n1 n2 limbo; do
		no_sockets $h && inuse $h || return
	done
	[ "$(</sys/module/esp/refcnt)" = $REFERENCES ]
}

echo "# seed $SEED"
RANDOM=$SEED
idle=$(awk '$1 == "esp" { print $3 }' /proc/modules)
for host in n0 n1 n2 limbo; do
	born $host
done
for C in 0 1 2; do
	lay $C
done
REFERENCES=$(</sys/module/esp/refcnt)
: >"$TMP/deaths"
for ((round = 0; round < ROUNDS; round++)); do
	left=("${EVENTS[@]}")
	while [ ${#left[@]} != 0 ]; do
		chance ${#left[@]}
		event=${left[DRAWN]}
		unset "left[DRAWN]"
		left=("${left[@]}")
		strike $event
	done
done
echo "# what the struck ones said, and how often:"
sort "$TMP/deaths" | uniq -c | comment

for h in $HOSTS; do
	ip netns delete $h
done
HOSTS=
unused() { [ "$(awk '$1 == "esp" { print $3 }' /proc/modules)" = "$idle" ]; }
check "nobody uses the module any more" until_true 60 unused
check "the module goes" eval 'rmmod esp_diag && rmmod esp'
check "the module comes back" eval 'insmod "$BUILD/esp.ko" && insmod "$BUILD/esp_diag.ko"'
finish
