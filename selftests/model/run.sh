#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck disable=SC2086
#
# Check the models of the flow control with spin: rules 3, 4, 7, 8, 10, 11, 13-22 and
# the must-hold list; and the model of Active Messages. Documentation/model.rst
# explains them.
#
#	run.sh [PATTERN]	the configurations whose name matches
#	run.sh --trail		print the contents of literal-seed.txt

shopt -s extglob
HERE=$(cd "${0%/*}" && pwd)
HARNESS=$(cd "$HERE/../harness" && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"
need spin gcc libc6-dev

# NAME  MODEL  CHECK  RESULT  MACROS
#
# CHECK: safe    no assertion fails and no process is stuck
#        ends    there is no endless loop: every run ends (and, safe, ends well)
#        ltl     the formula, with weak fairness
#        short   safe, breadth first
#        ...+    with an optimizing compiler: there are many states
# RESULT: holds; fails: some property detects that a rule was taken away.
# Each search is complete, without bit-state hashing; with "fails" it ends at the first error.
X="-DS0=12 -DS1=12 -DS2=3"
LESS="-DS0=12 -DS1=12 -DS2=2"
ONE="-DS0=3 -DS1=3 -DS2=4"
WIDE="-DQ=4 -DGRANT=2 -DSOLE=6 -DWISH=3 -DEXPIRIES=2 -DGAPS=1 -DS0=13 -DA0=2"
TABLE="
quiet               esp  safe  holds   -DNOLOSS -DEXACT -DPROMPT $X
quiet               esp  ends  holds   $X
quiet-one           esp  safe  holds   -DNOLOSS -DEXACT -DPROMPT -DASKS $ONE
quiet-seed          esp  safe  holds   -DSEED -DBOUND=2 -DNOLOSS -DEXACT $X
quiet-fifo          esp  safe  holds   -DNOLOSS -DEXACT -DPROMPT -DEVERY=1 $X
quiet-memory        esp  safe  holds   -DNOLOSS -DEXACT -DMEM=2 -DS0=22 -DS2=11 -DA0=2
quiet-wide          esp  safe  holds   -DNOLOSS -DEXACT -DPROMPT -DGRANT=2 -DQ=4 -DSOLE=6 -DS0=22 -DS1=111 -DS2=3 -DA0=2 -DA1=0 -DA2=2
quiet-small         esp  safe  holds   -DNOLOSS -DEXACT -DPROMPT -DSMALL=1 -DS0=111 -DS1=22 -DS2=3 -DA0=0 -DA1=2
quiet-exact-seed    esp  safe  holds   -DSEED -DNOLOSS -DEXACT -DS0=22 -DS1=111 -DS2=3 -DA0=2 -DA1=0
quiet-busy          esp  safe  holds   -DNOLOSS -DN=2 -DBUSY=3 -DCAP=4 -DQ=4 -DCLAIMS -DA0=2 -DS0=14 -DS1=23
faults              esp  safe+ holds   -DFAULTS=2 -DDUPS $LESS
faults              esp  ends+ holds   -DFAULTS=1 -DDUPS $LESS
faults-seed         esp  safe+ holds   -DSEED -DBOUND=2 -DFAULTS=3 -DDUPS $LESS
faults-seed         esp  ends+ holds   -DSEED -DFAULTS=2 -DDUPS $LESS
faults-eager-seed   esp  safe+ holds   -DSEED -DP2A=1 -DFAULTS=2 -DDUPS $X
faults-wide         esp  safe+ holds   -DFAULTS=1 -DDUPS $WIDE -DS1=12 -DS2=2
faults-wide-seed    esp  safe+ holds   -DSEED -DFAULTS=2 -DDUPS -DBURST=3 -DEXPIRIES=2 -DGAPS=1 -DS0=13 -DA0=2
faults-2            esp  safe+ holds   -DN=2 -DFAULTS=2 -DDUPS -DS0=13 -DS1=113 -DA0=2 -DGRANT=2 -DQ=3 -DGAPS=1
faults-2            esp  ends+ holds   -DN=2 -DFAULTS=2 -DDUPS -DS0=22 -DS1=111 -DA0=2 -DA1=0
busy                esp  safe+ holds   -DN=2 -DFAULTS=1 -DBUSY=2 -DCAP=3 -DQ=4 -DPORT=4 -DCLAIMS -DA0=3 -DS0=14 -DS1=12
busy                esp  ends+ holds   -DN=2 -DFAULTS=1 -DBUSY=2 -DCAP=3 -DQ=4 -DPORT=4 -DCLAIMS -DA0=3 -DS0=14 -DS1=12
claims              esp  safe+ holds   -DN=2 -DFAULTS=2 -DPORT=1 -DSOLE=2 -DCLAIMS -DS0=13 -DS1=13 -DA0=3 -DA1=3
growth              esp  safe+ holds   -DN=2 -DFAULTS=2 -DDUPS -DS0=113 -DS1=22
growth              esp  ends+ holds   -DN=2 -DFAULTS=1 -DS0=113 -DS1=22
soon                esp  safe+ holds   -DSOON -DN=2 -DFAULTS=2 $X
soon-beyond         esp  safe+ holds   -DSOON -DN=2 -DFAULTS=1 -DS0=23 -DS1=113 -DA0=2
room                esp  safe  holds   -DQUEUED -DN=2 -DNOLOSS -DMEM=2 -DS0=22 -DS1=13 -DA1=0
late-acks           esp  safe+ holds   -DN=2 -DFAULTS=2 -DDUPS -DLATE -DRATE -DS0=12 -DS1=12
late-acks-seed      esp  safe+ holds   -DSEED -DFAULTS=2 -DDUPS -DLATE -DRATE $LESS
late-acks           esp  ends+ holds   -DN=2 -DFAULTS=2 -DDUPS -DLATE -DRATE -DS0=13 -DS1=12
late-small          esp  ends+ holds   -DN=2 -DFAULTS=2 -DDUPS -DLATE -DSMALL=3 -DA1=0 -DS0=211 -DS1=121
late-memory         esp  safe+ holds   -DN=2 -DFAULTS=2 -DDUPS -DLATE -DMEM=2 -DS0=12 -DS1=12
late-memory         esp  ends+ holds   -DN=2 -DFAULTS=1 -DDUPS -DLATE -DMEM=2 -DS0=22 -DS1=12
late-memory-seed    esp  ends+ holds   -DN=2 -DSEED -DFAULTS=1 -DDUPS -DLATE -DMEM=1 -DS0=22 -DS1=12
late-early          esp  safe+ holds   -DN=2 -DFAULTS=2 -DDUPS -DLATE -DSPURIOUS=1 -DS0=12 -DS1=12 -DA0=2
late-death          esp  ends+ holds   -DN=2 -DFAULTS=1 -DDUPS -DLATE -DDEATH -DGRANT=2 -DQ=3 -DS0=5 -DS1=12 -DA0=3
small               esp  safe+ holds   -DFAULTS=2 -DDUPS -DSMALL=6 -DA1=0 -DS0=3 -DS1=111 -DS2=11
memory              esp  safe+ holds   -DN=2 -DFAULTS=2 -DDUPS -DMEM=2 -DSOLE=4 -DWISH=3 $LESS
memory              esp  ends+ holds   -DN=2 -DFAULTS=1 -DMEM=2 -DS0=22 -DS1=13 -DA1=0
memory-seed         esp  safe+ holds   -DSEED -DFAULTS=1 -DMEM=1 -DS0=12
early-timeouts      esp  safe+ holds   -DFAULTS=1 -DSPURIOUS=1 $LESS
early-timeouts      esp  ends+ holds   -DN=2 -DFAULTS=1 -DSPURIOUS=1 $LESS
early-timeouts-seed esp  safe+ holds   -DSEED -DFAULTS=1 -DSPURIOUS=1 $LESS
sleep               esp  safe+ holds   -DFAULTS=1 -DSLEEP $LESS
sleep               esp  ends+ holds   -DN=2 -DFAULTS=1 -DSLEEP $X
sleep-seed          esp  safe+ holds   -DSEED -DFAULTS=1 -DSLEEP $LESS
death               esp  ends+ holds   -DDEATH -DS0=4 -DS1=12 -DS2=3
death-lossy         esp  safe+ holds   -DN=2 -DDEATH -DFAULTS=2 -DDUPS -DA0=2 -DS0=4 -DS1=12
death-lossy-seed    esp  safe+ holds   -DSEED -DDEATH -DFAULTS=1 -DDUPS -DA0=2 -DS0=4 -DS1=12 -DS2=3
parked              esp  ltl+  holds   -DLTL_PARKED -DPROBES -DFAULTS=1 $X
parked-ever         esp  ltl   fails   -DLTL_NEVER -DPROBES $X
done                esp  ltl+  holds   -DLTL_DONE -DPROBES -DN=2 -DFAULTS=1 -DS0=12 -DS1=12
done-seed           esp  ltl+  holds   -DLTL_DONE -DPROBES -DSEED -DFAULTS=1 $LESS

said                esp  safe+ holds   -DN=2 -DGRANT=2 -DFAULTS=3 -DDUPS -DS0=13
said-eager-seed     esp  safe  holds   -DSEED -DP2A=1 -DFAULTS=1 $X
said-again          esp  safe  holds   -DN=2 -DFAULTS=2 -DDUPS -DEXPIRIES=2 -DGRANT=2 -DS0=13

turns               turn ltl   holds   -DLTL_TURN -DN=4 -DHOSTS=3 -DSHORT=3 -DPASSED=4
turns-1             turn ltl   holds   -DLTL_TURN -DQ=1
turns-wide          turn ltl   holds   -DLTL_TURN -DN=4 -DHOSTS=3 -DSHORT=3 -DQ=4 -DCAP=3 -DGRANT=2 -DEVERY=4
turns-one-host      turn ltl   holds   -DLTL_TURN -DN=4 -DHOSTS=2 -DH2=0 -DH3=1 -DSHORT=3 -DQ=3 -DCAP=2
turns-busy          turn ltl   holds   -DLTL_TURN -DBUSY -DQ=4 -DCAP=3
turns-busy-4        turn safe  holds   -DBUSY -DN=4 -DHOSTS=3 -DSHORT=3 -DQ=4 -DCAP=3 -DGRANT=2
turns-sole          turn safe  holds   -DQ=4 -DSOLE=6 -DWISH=4 -DCAP=3 -DSHORT=3 -DFIRST=2
turns-overdue       turn ltl   holds   -DLTL_TURN -DOVERDUE -DSILENT=2
turns-overdue-any   turn safe  holds   -DOVERDUE -DANY_TIME

cpus-2              ackq safe  holds   -DPKTS=4 -DGRANT=2 -DQ=3 -DCAP=4
cpus-2-bucket       ackq safe  holds   -DPKTS=3 -DQ=2 -DCAP=1
cpus-2-shared       ackq safe  holds   -DSHARED -DPKTS=3 -DQ=2 -DCAP=1
cpus-2-sole         ackq safe  holds   -DPKTS=4 -DQ=2 -DSOLE=4 -DWISH=3 -DCAP=4
cpus-2-first        ackq safe  holds   -DPKTS=4 -DGRANT=2 -DQ=3 -DCAP=2 -DADV=2 -DSOLE=5 -DWISH=3
cpus-2-seed         ackq safe  holds   -DSEED -DPKTS=3 -DBURST=2 -DEAGER
cpus-2-first-seed   ackq safe  holds   -DSEED -DPKTS=4 -DBURST=2 -DEAGER -DADV=2
cpus-2-expiry       ackq safe+ holds   -DPKTS=2 -DGRANT=2 -DQ=2 -DCAP=4 -DEXPIRE=1 -DPROBE
cpus-3              ackq safe+ holds   -DN=3 -DPKTS=2 -DADV=1
cpus-3-shared       ackq safe+ holds   -DN=3 -DPKTS=2 -DADV=1 -DSHARED -DQ=2 -DCAP=1
cpus-3-seed         ackq safe+ holds   -DN=3 -DPKTS=1 -DSEED

am-one-bit          am   safe  holds   -DFAULTS=2 -DDUPS=2 -DEARLY=1
am-one-bit          am   ends  holds   -DFAULTS=2 -DDUPS=2 -DEARLY=2
am-one-bit-order    am   safe  fails   -DDUPS=1 -DOVERTAKEN=1
am-2                am   safe+ holds   -DN=2 -DMOD=8 -DWANT1=1 -DFAULTS=2 -DDUPS=1 -DOVERTAKEN=1 -DEARLY=1
am-2                am   ends+ holds   -DN=2 -DMOD=8 -DWANT1=1 -DFAULTS=1 -DDUPS=1 -DOVERTAKEN=1 -DEARLY=1
am-2-both           am   safe  holds   -DN=2 -DMOD=8 -DWANT1=2 -DFAULTS=1 -DDUPS=1
am-2-narrow         am   safe  holds   -DN=2 -DMOD=8 -DQLEN=1 -DFAULTS=1

literal-seed        literal-seed short fails
literal-seed-2      literal-seed safe  fails -DCOUNT_LAST
literal-seed-pump   literal-seed safe  holds -DPUMP
literal-seed-death  literal-seed safe  fails -DPUMP -DDEATH

break-watch         esp  safe  fails   -DBREAK_WATCH -DN=2 -DDEATH -DFAULTS=1 -DCLAIMS -DPORT=1 -DSOLE=2 -DA0=4 -DS0=4
break-first         esp  safe  fails   -DBREAK_FIRST -DN=2 -DNOLOSS -DQ=1 -DA0=2 -DS0=22 -DS1=3
break-return        esp  safe  fails   -DBREAK_RETURN -DSEED -DN=2 -DNOLOSS -DBURST=3 -DS1=21 -DA1=0
break-tokens        esp  safe  fails   -DBREAK_TOKENS -DN=2 -DEXACT -DA0=2 -DS0=13
break-expiry        esp  safe  fails   -DBREAK_EXPIRY -DN=2 -DDEATH
break-abandon       esp  ends  fails   -DBREAK_ABANDON -DN=2 -DDEATH
break-say-again     esp  safe  fails   -DBREAK_SAY_AGAIN -DSEED -DFAULTS=1
break-said-parked   esp  safe  fails   -DBREAK_SAID_PARKED -DN=2 -DGRANT=2 -DFAULTS=2 -DS0=13
break-said-all      esp  safe  fails   -DBREAK_SAID_ALL -DN=2 -DGRANT=2 -DFAULTS=2 -DS0=13
break-said-here     esp  safe  fails   -DBREAK_SAID_HERE -DN=2 -DGRANT=2 -DFAULTS=2 -DS0=13
break-void          esp  safe  fails   -DBREAK_VOID -DN=2
break-pump-void     esp  safe  fails   -DBREAK_PUMP_AFTER_VOID -DN=2 -DDEATH
break-pump-park     esp  safe  fails   -DBREAK_PUMP_AFTER_PARK -DSEED -DP2A=1
break-hold          esp  safe  fails   -DBREAK_HOLD -DN=2 -DPROBES -DA1=0
break-probe         esp  ends  fails   -DBREAK_PROBE -DN=2 -DSLEEP
break-probe-growth  esp  ends  fails   -DBREAK_PROBE -DN=2 -DFAULTS=1 -DS0=12 -DS1=12
break-dup-check     esp  safe  fails   -DBREAK_DUP_CHECK -DN=2 -DFAULTS=1 -DDUPS
break-txs-once      esp  safe  fails   -DBREAK_TXS_ONCE -DN=2 -DFAULTS=1 -DDUPS
break-more          esp  safe  fails   -DBREAK_MORE -DN=2 -DNOLOSS -DASKS -DS0=4 -DS1=3
break-stands-still  esp  safe  fails   -DBREAK_STANDS_STILL -DN=2 -DNOLOSS -DS1=11
break-grown         esp  safe  fails   -DBREAK_GROWN -DN=2 -DNOLOSS -DS0=12 -DS1=12
break-told-before   esp  safe  fails   -DBREAK_TOLD_BEFORE -DSOON -DN=2 -DFAULTS=1 -DS0=12 -DS1=12
break-beyond        esp  safe  fails   -DBREAK_BEYOND -DSOON -DN=2 -DFAULTS=1 -DS0=23 -DS1=113 -DA0=2
break-probe-told    esp  safe  fails   -DBREAK_PROBE_TOLD -DSOON -DN=2 -DNOLOSS -DS0=12 -DS1=12
break-room          esp  safe  fails   -DBREAK_ROOM -DQUEUED -DN=2 -DNOLOSS -DMEM=2 -DS0=22 -DS1=13 -DA1=0
break-claims        esp  safe  fails   -DBREAK_CLAIMS -DN=2 -DPORT=1 -DSOLE=2 -DCLAIMS -DS0=13 -DS1=13 -DA0=3 -DA1=3
break-fifo          turn ltl   fails   -DBREAK_FIFO -DLTL_TURN -DSHORT=3
break-turn-floor    turn ltl   fails   -DBREAK_FLOOR -DLTL_TURN -DBUSY
break-overdue       turn ltl   fails   -DBREAK_OVERDUE -DLTL_TURN -DOVERDUE -DSILENT=2
break-turn-ready    turn safe  fails   -DBREAK_READY -DCAP=1
break-bucket        turn safe  fails   -DBREAK_BUCKET -DCAP=1
break-turn-claims   turn safe  fails   -DBREAK_CLAIMS -DFIRST=2 -DSHORT=3
break-sole-leaves   turn safe  fails   -DBREAK_LEAVES_AT -DQ=4 -DSOLE=5 -DWISH=3 -DSHORT=1
break-gap           turn safe  fails   -DBREAK_GAP -DQ=4 -DSOLE=5 -DWISH=3 -DSHORT=1
break-one-read      ackq safe  fails   -DBREAK_ONE_READ -DPKTS=3 -DGRANT=2 -DQ=2
break-end-first     ackq safe  fails   -DBREAK_END_FIRST -DPKTS=2 -DGRANT=2 -DQ=2
break-trim-lock     ackq safe+ fails   -DBREAK_TRIM_LOCK -DPKTS=2 -DQ=2 -DEXPIRE=1 -DPROBE
break-park          ackq safe  fails   -DBREAK_PARK -DPKTS=3 -DQ=2 -DCAP=1
break-order         ackq safe  fails   -DBREAK_ORDER -DPKTS=3 -DQ=2 -DCAP=1
break-unknown       ackq safe  fails   -DBREAK_LEAVES_AT -DPKTS=4 -DGRANT=2 -DQ=3 -DCAP=4
break-retest        ackq safe  fails   -DBREAK_PUMP_AFTER_PARK
break-pump          ackq safe  fails   -DBREAK_PUMP_AFTER_VOID
break-am-poll       am   safe  fails   -DBREAK_POLL
break-am-stall      am   safe  fails   -DBREAK_STALL
break-am-duplicate  am   safe  fails   -DBREAK_DUPLICATE -DDUPS=1
break-am-instance   am   safe  fails   -DBREAK_INSTANCE -DDUPS=1
break-am-keep       am   ends  fails   -DBREAK_KEEP -DFAULTS=1
"

LIMIT=240	# seconds for one search
MEMORY=4000	# MiB
DEPTH=200000

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cp "$HERE"/*.pml "$WORK"
cd "$WORK" || exit 1

# search MODEL CHECK MACROS...: builds pan and runs it; the output goes to pan.out.
search()
{
	local model=$1 check=$2 cc flags optimize=-O0 collapse=
	shift 2

	[ "${check%+}" = "$check" ] || optimize=-O2
	case ${check%+} in
	safe) cc=-DSAFETY flags= ;;
	short) cc="-DSAFETY -DBFS" flags= ;;
	ends) cc=-DNP flags=-l ;;
	ltl) cc=-DNFAIR=3 flags="-a -f" ;;
	esac
	[ "$model" != ackq ] || collapse=-DCOLLAPSE
	rm -f pan pan.* ./*.trail
	spin -a "$@" "$model.pml" >pan.out 2>&1 || return
	gcc -w $optimize $collapse -DVECTORSZ=512 -DMEMLIM=$MEMORY $cc -o pan pan.c >>pan.out 2>&1 || return
	timeout $LIMIT ./pan -m$DEPTH $flags >pan.out 2>&1
}

# outcome: print how the last search ended.
outcome()
{
	if ! grep -q '^State-vector.*errors: ' pan.out || grep -qiE 'search not completed|max search depth too small|MEMLIM|out of memory|hash array|bit statespace' pan.out &&
		! grep -qE '^pan:.*(assertion violated|invalid end state|cycle)' pan.out; then
		echo incomplete
	elif grep -q 'errors: 0$' pan.out; then
		echo holds
	else
		echo fails
	fi
}

# trail MODEL: print the steps to the last error.
trail()
{
	spin -t -k ./*.trail "$1.pml" | sed '/^spin: warning/d'
}

# own_lines: keep the lines of a trail that the model prints, not spin.
own_lines() { sed '/^spin:/,$d; /^#/d' | tr -d ' \t'; }

[ $# -le 1 ] || { echo "run.sh [PATTERN | --trail]" >&2; exit 2; }
if [ "$1" = --trail ]; then
	search literal-seed short
	echo '# SPDX-License-Identifier: GPL-2.0-only'
	echo '# run.sh --trail: the shortest way to a stall (literal-seed.pml)'
	trail literal-seed
	exit
fi

echo TAP version 13
number=0 status=0
verdict()
{
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		sed 's/^/# /' pan.out | head -40
		echo "not ok $number - $2"
		status=1
	fi
}

# numbers: print pan's statistics of the last search.
numbers()
{
	local states depth time

	states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' pan.out)
	depth=$(sed -nE 's/.*depth reached ([0-9]+),.*/\1/p' pan.out)
	time=$(sed -nE 's/^pan: elapsed time ([0-9.e-]+) seconds/\1/p' pan.out)
	echo "($states states, depth $depth, $time s)"
}

while read -r name model check result macros; do
	# shellcheck disable=SC2053
	[[ -z $name || $name != ${1:-*} ]] && continue
	intact=
	if [[ $macros = *-DBREAK_* ]]; then
		# It must fail because of BREAK_ and of nothing else, so it must hold without.
		search "$model" "$check" ${macros//-DBREAK_+([A-Z_])/}
		if [ "$(outcome)" != holds ]; then
			verdict 1 "$name: ${check%+} $(numbers): $(outcome) without it"
			continue
		fi
		intact=" (without it, $(numbers | sed 's/(\([^,]*\),.*/\1/'): holds)"
	fi
	search "$model" "$check" $macros
	what=$(outcome)
	text="$name: ${check%+} $(numbers)"
	case $result in
	holds) must=holds ;;
	fails) must="fails, as it must$intact" ;;
	esac
	if [ "$what" = "$result" ]; then
		verdict 0 "$text: $must"
	else
		verdict 1 "$text: $what"
	fi
	if [ "$name" = literal-seed ]; then
		diff <(own_lines <"$HERE/literal-seed.txt") <(trail literal-seed | own_lines) >pan.out
		verdict $? "literal-seed.txt shows the way to it"
	fi
done <<<"$TABLE"
[ $number -gt 0 ] || { echo "no configuration has the name $1" >&2; exit 2; }
echo "1..$number"
exit $status
