# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by vm: pairs of guests, KUnit, and the runner of selftests/tests.

# pair K1 K2 [OPTION]... -- COMMAND...
pair() {
	local k1=$1 k2=$2
	[ $# -ge 2 ] || die "vm pair needs two kernels; see vm --help"
	shift 2
	options "$@"
	[ $# -gt $PARSED ] || die "no command (vm pair K1 K2 -- COMMAND...)"
	shift "$PARSED"
	need iputils-ping
	for k in "$k1" "$k2"; do
		case $k in
		uml* | kcsan) die "vm pair takes 6.1, 6.12 and 7" ;;
		esac
		known "$k"
		ready "$k"
	done
	run_pair "$k1" "$k2" "$(printf '%q ' "$@")"
}

# run_pair K1 K2 COMMAND: run it in both guests and print their output, a's lines after "a: ".
# Return the status of the first guest that failed.
run_pair() {
	local role k status=0 s

	mkdir -p "$SRC/build/log"
	PAIR=$(mktemp -d "$SRC/build/log/pair.XXXXXX")
	# The path of a socket must be short.
	SOCKETS=$(mktemp -d)
	at_end 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$PAIR" "$SOCKETS"'
	for role in a b; do
		k=$1
		[ $role = b ] && k=$2
		(
			test_begin() { :; }
			test_end() { :; }
			job "$k"
			at_end 'kill_guests; rm -rf "$JOB"'
			peer=b mac=1
			[ $role = b ] && peer=a mac=2
			setenv ROLE $role
			setenv PEER $peer
			setenv PAIR "$PAIR"
			setenv MAC "52:54:00:09:00:0$mac"
			setenv PEER_MAC "52:54:00:09:00:0$((3 - mac))"
			setenv IP 10.9.0.$mac
			setenv PEER_IP 10.9.0.$((3 - mac))
			NET=(-netdev "dgram,id=n,local.type=unix,local.path=$SOCKETS/$role,remote.type=unix,remote.path=$SOCKETS/$peer"
				-device "virtio-net-pci,netdev=n,mac=52:54:00:09:00:0$mac,romfile=")
			addtest run "$TIME" "$3"
			run_guest "$k" "show_role $role"
			[ -n "$SPLAT" ] && {
				echo "$role: the kernel complained: $SPLAT"
				grep -a -A30 -E "$SPLATS" "$JOB/splat" | head -40 | sed "s/^/$role: # /"
				[ "$STATUS" = 0 ] && STATUS=1
			}
			[ "$STATUS" = 0 ] || echo "$role: exit status $STATUS"
			cp "$JOB/console" "$SRC/build/log/console-pair-$role"
			echo "$STATUS" >"$PAIR/status.$role"
		) &
	done
	wait
	for role in a b; do
		s=$(cat "$PAIR/status.$role" 2>/dev/null || echo 255)
		[ "$status" = 0 ] && status=$s
	done
	return "$status"
}

show_role() { printf '%s: %s\n' "$1" "$2"; }

# kunit KERNEL [PARAMETER=VALUE]...: loads the build with the tests and prints a line of TAP for each
# case, from what KUnit left in debugfs.
kunit() {
	local command

	known "$1"
	VARIANT=kunit LOAD= PROGRAMS=none
	ready "$1"
	job "$1"
	setenv PARAMETERS "${*:2}"
	# A test that leaves something which holds the module is a failure, too.
	command='insmod $BUILD/esp.ko $PARAMETERS && cat /sys/kernel/debug/kunit/*/results || exit; '
	command+='rmmod esp || printf "    %s\n" "# Subtest: module" "not ok 1 unloads"'
	addtest kunit 300 "$command"
	at_end 'kill_guests; rm -rf "$JOB"'
	run_guest "$1" show_line >"$JOB/ktap"
	grep -aE '^ +# ' "$JOB/ktap"
	awk '/^ *# Subtest:/ { suite = $3 }
		/^    (not )?ok [0-9]+ / { sub(/^ +/, ""); sub(/ok [0-9]+ /, "ok " suite "."); print; n++ }
		END { if (!n) print "not ok no KUnit results" }' "$JOB/ktap" | tee "$JOB/tap"
	grep -q '^not ok' "$JOB/tap" && [ "$STATUS" = 0 ] && STATUS=1
	[ -z "$SPLAT" ] || {
		grep -a -A40 -E "$SPLATS" "$JOB/splat" | head -50 | sed 's/^/# /'
		echo "not ok kernel log: $SPLAT"
		STATUS=1
	}
	grep -q ^ok "$JOB/tap" || cat "$JOB/ktap"
	exit "$STATUS"
}

# patience SECONDS: how long a test may take that takes SECONDS on an idle machine. It ends tests that
# hang, and no other ones, however much other work the machine does.
patience() { echo $(($1 < 150 ? 600 : 4 * $1)); }

# known_targets LIST: end if it has a name that no test has for its target.
known_targets() {
	local t known targets

	known=$(awk '!/^(#|$)/ { print $2 }' "$SRC/selftests/tests" | tr , '\n' | sort -u)
	IFS=, read -ra targets <<<"$1"
	for t in "${targets[@]}"; do
		grep -qxF -e "$t" <<<"$known" || die "unknown kernel '$t'; KERNEL= takes some of ${known//$'\n'/,}"
	done
}

# no_test WANT KERNELS LONG ELSEWHERE: say that no test is chosen, and why, and end. LONG has the
# names of long tests that match, ELSEWHERE the targets of tests that match on other kernels only.
no_test() {
	local on

	[ -z "$3" ] || die "only long tests match TEST=$1${2:+ KERNEL=$2}, make check-long runs them:$3"
	[ -n "$4" ] || die "no test matches TEST=$1; selftests/tests has their names"
	on=$(tr ' ' '\n' <<<"$4" | sort -u | xargs)
	die "no test matches TEST=$1 KERNEL=$2; it runs on ${on// /, }"
}

# check [TEST=GLOB] [KERNEL=LIST] [long]
check() {
	local a more=() targets='' t want='*' kernels='' class=check beside='' most here long='' elsewhere=''

	for a; do
		case $a in
		TEST=*) want=${a#TEST=} ;;
		KERNEL=*) kernels=${a#KERNEL=} ;;
		long) class=long ;;
		*) die "vm check: unknown argument '$a'" ;;
		esac
	done
	known_targets "$kernels"
	# The workers close it, so that only this shell holds the lock.
	mkdir -p "$SRC/build"
	exec 7>"$SRC/build/.check"
	flock -n 7 || die "another \"make check\" is running in this checkout"
	PASSED=0 FAILED=0 SKIPPED=0
	LIST=$(mktemp)
	at_end 'kill_guests; kill $beside 2>/dev/null; rm -rf "$LIST" "$LIST".* "$JOB"'
	# Lines "TARGET NAME SECONDS COMMAND".
	[ "$VARIANT" != gcov ] || kunit_test >"$LIST"
	while read -r name on seconds c command; do
		case $name in
		'' | '#'*) continue ;;
		esac
		# shellcheck disable=SC2254
		case $name in
		$want) ;;
		*) continue ;;
		esac
		here=
		for t in ${on//,/ }; do
			case ,$kernels, in
			,, | *",$t,"*) here+=" $t" ;;
			esac
		done
		if [ -z "$here" ]; then
			elsewhere+=" ${on//,/ }"
			continue
		fi
		# Long tests run on top of the others, or when asked for by name.
		if [ "$c" != check ] && [ $class != long ] && [ "$want" != "$name" ]; then
			long+=" $name"
			continue
		fi
		for t in $here; do
			# those install packages, or build for the same roots
			[ "$t:$c" != host:long ] || t=host+alone
			echo "$t $name $seconds $command" >>"$LIST"
		done
	done <"$SRC/selftests/tests"
	[ -s "$LIST" ] || no_test "$want" "$kernels" "$long" "$elsewhere"
	targets=$(awk '!seen[$1]++ { print $1 }' "$LIST")
	if ! (programs); then
		FAILED=1
		echo "the test programs do not build"
	fi
	if { grep -q -e -mpi "$LIST" && ! (mpi); } || { grep -q -e -mpi5 "$LIST" && ! (mpi5); }; then
		FAILED=1
		echo "the programs for Open MPI do not build"
	fi
	if grep -q -e net-run "$LIST"; then
		grep -q -e net-run-more -e net-run-database "$LIST" && more=(more)
		(others "${more[@]}") || {
			FAILED=1
			echo "the programs for the tests of esp run can't be installed"
		}
	fi
	PROGRAMS=done
	rm -f "$SRC"/build/check-*.tap "$SRC/build/check.summary"
	mkdir -p "$SRC/build/log"
	# Fetch kernels and roots first, so that no test's time includes that.
	while read -r t; do
		t=${t%-delays}
		case $t in
		uml | uml-debug | uml-virtual | 6.1 | 6.12 | 7 | kcsan) (fetch "$t") >&2 </dev/null ;;
		bookworm | trixie) (fetch_root "$t") >&2 </dev/null ;;
		esac
	done < <(awk '$1 ~ "^host" { for (i = 4; i <= NF; i++) print $i; next } { print $1 }' "$LIST" | sort -u)
	for t in uml uml-virtual uml-debug 6.1 6.12 7 kcsan; do
		grep -qxF "$t" <<<"$targets" && (ready "$t") >&2
	done
	split
	# Run the longest targets first.
	for t in host uml-debug 6.1 7 uml uml-virtual 6.12 kcsan $(grep pair: <<<"$targets") \
		uml-delays uml-debug-delays; do
		awk -v target="$t" '{ t = $1; sub(/\+.*/, "", t) } t == target && !seen[$1]++ { print $1 }' "$LIST"
	done >"$LIST.queue"
	for t in $targets; do
		grep -qxF "$t" "$LIST.queue" || die "selftests/tests: unknown target '$t'"
	done
	# Tests wait for timers a third of their time, so run one more target at a time than there
	# are processors, if there is memory: a guest has 3 GiB at most.
	most=$(awk '$1 == "MemAvailable:" { print int($2 / 3000000) }' /proc/meminfo)
	for ((a = 0; a < 2 || (a <= JOBS && a < most); a++)); do
		worker $a
	done
	join
	# The failures once more, for who sees the end of the output only.
	[ ! -s "$LIST.failed" ] || {
		echo "Failed:"
		tail -n 18 "$LIST.failed" | cut -c -160
	}
	echo "$PASSED passed, $FAILED failed, $SKIPPED skipped" | tee "$SRC/build/check.summary"
	[ "$FAILED" = 0 ] && [ "$PASSED" != 0 ]
	exit
}

# split: deal out a kernel's tests to several guests, TARGET, TARGET+2, TARGET+3 ..., so that they run
# beside each other; the host's likewise. A guest gets tests whose time limits add up to 20 minutes. Counts of coverage
# add up in one guest only.
split() {
	[ "$VARIANT" != gcov ] || return 0
	awk '$1 ~ /^(host\+alone|pair:.*)$/ { print; next }
		{
			t = $1
			if (sum[t] && sum[t] + $3 > 1200) {
				guests[t]++
				sum[t] = 0
			}
			sum[t] += $3
			if (guests[t])
				sub(/^[^ ]+/, t "+" guests[t] + 1)
			print
		}' "$LIST" >"$LIST.split"
	mv "$LIST.split" "$LIST"
}

# worker N: run one target of the queue after the other, in the background; "join" waits for it.
# A guest uses one processor most of the time.
worker() {
	local sum=$LIST.worker$1

	: >"$sum"
	(
		at_end 'kill_guests; [ -z "$RUNS" ] || kill -- "$RUNS" "-$RUNS" 2>/dev/null; rm -rf "$JOB"'
		PASSED=0 FAILED=0 SKIPPED=0 GUEST= FROM=0 TICKS=0 OTHERS= RUNS=
		while t=$(next); do
			target "$t"
		done
		echo "$PASSED $FAILED $SKIPPED" >"$sum"
	) 7>&- &
	beside+=" $!"
}

# next: takes the first target off the queue.
next() {
	local t

	exec 9>"$LIST.lock"
	flock 9
	read -r t <"$LIST.queue" || return
	sed -i 1d "$LIST.queue"
	echo "$t"
}

join() {
	local p f s sum

	# shellcheck disable=SC2086
	wait $beside
	beside=
	for sum in "$LIST".worker*; do
		if read -r p f s <"$sum"; then
			PASSED=$((PASSED + p)) FAILED=$((FAILED + f)) SKIPPED=$((SKIPPED + s))
		else
			FAILED=$((FAILED + 1))
		fi
	done
}

# target NAME: run its tests.
target() {
	TARGET=$1
	TAP=$SRC/build/check-${1//:/-}.tap
	LOGS=$SRC/build/log/${1//:/-}
	TAPNO=0
	mkdir -p "$LOGS"
	echo 'TAP version 13' >"$TAP"
	case $1 in
	host*) check_host ;;
	pair:*) check_pair ;;
	*) check_guest ;;
	esac
	echo "1..$TAPNO" >>"$TAP"
}

# processor: sets TICKS, the processor time in units of 10 ms that the guest has used on the host;
# without a guest, that of the programs that this process has waited for. OTHERS is the latter at the
# last call with a guest that ran.
processor() {
	local of now

	read -ra of <"/proc/$BASHPID/stat"
	if [ -z "$GUEST" ]; then
		TICKS=$((of[15] + of[16]))
		return
	fi
	now=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v guest="$GUEST" '
		{
			pid = $1
			sub(/.*\) /, "")
			parent[pid] = $2
			ticks[pid] = $12 + $13 + $14 + $15
		}
		END {
			for (pid in parent) {
				for (p = pid; p in parent && p != guest; p = parent[p])
					;
				if (p == guest)
					n += ticks[pid]
			}
			print n + 0
		}')
	if [ "$now" != 0 ]; then
		OTHERS=$((of[15] + of[16]))
	elif [ -n "$OTHERS" ]; then
		# A guest that has ended has no entries any more; this process has waited for it.
		now=$((of[15] + of[16] - OTHERS))
		OTHERS=
	fi
	[ "$now" -le "$TICKS" ] || TICKS=$now
}

# Lines "NAME SECONDS COMMAND" of the target.
tests_of() { awk -v t="$TARGET" '$1 == t { sub(/^[^ ]+ /, ""); print }' "$LIST"; }

check_host() {
	local name seconds command status start

	export SRC BUILD=$SRC/build/selftests KERNEL=host SOURCE
	while read -r name seconds command <&5; do
		start=$SECONDS
		processor
		FROM=$TICKS
		# In the background, because a trap runs only after a command in the foreground. timeout
		# leads a process group of its own.
		(cd "$SRC" && PATH=$BUILD:$SRC/build/tools:$SRC/build/am:$PATH exec timeout -k 5 \
			"$(patience "$seconds")" \
			bash -c "$command") >"$LOGS/$name.log" 2>&1 </dev/null 5<&- &
		RUNS=$!
		wait "$RUNS"
		status=$?
		RUNS=
		processor
		verdict "$name" $status $((SECONDS - start)) "$LOGS/$name.log" ''
	done 5< <(tests_of)
}

check_pair() {
	local name seconds command status k1 k2 start

	IFS=: read -r _ k1 k2 <<<"$TARGET"
	need iputils-ping
	if ! (ready "$k1" && ready "$k2") >&2; then
		result 'not ok' build "the module does not build"
		return
	fi
	while read -r name seconds command <&5; do
		start=$SECONDS
		processor
		FROM=$TICKS
		TIME=$(patience "$seconds")
		# In the background, because a trap runs only after a command in the foreground.
		(run_pair "$k1" "$k2" "$command") >"$LOGS/$name.log" 2>&1 5<&- &
		RUNS=$!
		wait "$RUNS"
		status=$?
		RUNS=
		processor
		sed -E 's/^[ab]: (ok|not ok|1\.\.)/\1/' "$LOGS/$name.log" >"$LOGS/$name.out"
		verdict "$name" $status $((SECONDS - start)) "$LOGS/$name.out" ''
		rm "$LOGS/$name.out"
	done 5< <(tests_of)
}

# All tests of a target share a guest. After a test that hung or crashed it, a new one boots.
check_guest() {
	local left name seconds command start before kernel=${TARGET%+*}

	case $kernel in
	*-delays)
		kernel=${kernel%-delays}
		# shellcheck disable=SC2034
		local VARIANT=delays LOAD="delays $LOAD"
		;;
	esac
	if ! (ready "$kernel") >&2; then
		result 'not ok' build "the module does not build"
		say "$TARGET: the module does not build"
		return
	fi
	result ok build ''
	left=$(tests_of)
	while [ -n "$left" ]; do
		before=$left
		TICKS=0 OTHERS=
		job "$kernel"
		while read -r name seconds command; do
			addtest "$name" "$(patience "$seconds")" "$command"
		done <<<"$left"
		CURRENT=$LOGS/boot.log
		: >"$CURRENT"
		START=$SECONDS
		test_begin() {
			CURRENT=$LOGS/$1.log
			: >"$CURRENT"
			START=$SECONDS
			processor
			FROM=$TICKS
		}
		test_end() {
			processor
			verdict "$1" "$2" $((SECONDS - START)) "$CURRENT" "$SPLAT"
			SPLAT=
			left=$(grep -v "^$1 " <<<"$left")
		}
		run_guest "$kernel" keep_line
		GUEST=
		cp "$JOB/console" "$LOGS/console"
		if [ "$left" = "$before" ]; then
			FROM=0 TICKS=0
			while read -r name seconds command; do
				cp "$JOB/splat" "$LOGS/$name.log"
				verdict "$name" 255 0 "$LOGS/$name.log" "$SPLAT"
			done <<<"$left"
			left=
		fi
		rm -rf "$JOB"
	done
}

keep_line() { printf '%s\n' "$1" >>"$CURRENT"; }

# result ok|'not ok'|skip NAME TEXT: counts and writes one line.
result() {
	TAPNO=$((TAPNO + 1))
	case $1 in
	ok) PASSED=$((PASSED + 1)); echo "ok $TAPNO - $2${3:+: $3}" ;;
	skip) SKIPPED=$((SKIPPED + 1)); echo "ok $TAPNO - $2 # SKIP $3" ;;
	*) FAILED=$((FAILED + 1)); echo "not ok $TAPNO - $2${3:+: $3}" ;;
	esac >>"$TAP"
}

# verdict NAME STATUS SECONDS OUTPUT SPLAT: count the results of one test, and print a line for
# the user.
verdict() {
	local name=$1 status=$2 out=$4 kind text n=0 plan=0 p=$PASSED f=$FAILED s=$SKIPPED mark=ok

	sed 's/^/# /' "$out" >>"$TAP"
	while IFS=$'\t' read -r kind text; do
		case $kind in
		plan) plan=$((plan + text)) ;;
		*) result "$kind" "$name" "$text"; n=$((n + 1)) ;;
		esac
	done < <(awk '
		/^1\.\.[0-9]+/ { sub(/^1\.\./, ""); if ($0 ~ /SKIP/) print "skip\t" $0; else print "plan\t" $1 + 0 }
		/^(not )?ok( |$)/ {
			kind = /^ok/ ? "ok" : "not ok"
			sub(/^(not )?ok *[0-9]* *-? */, "")
			if (match($0, / *# *SKIP */)) {
				kind = "skip"
				$0 = substr($0, 1, RSTART - 1) " " substr($0, RSTART + RLENGTH)
			}
			print kind "\t" $0
		}' "$out")
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		result 'not ok' "$name" "timed out"
	elif [ $n = 0 ] && [ "$status" = 4 ]; then
		result skip "$name" "$(tail -1 "$out")"
	elif [ $n = 0 ] && [ "$status" = 0 ]; then
		result ok "$name" ''
	elif [ "$status" != 0 ] && [ "$status" != 4 ] && [ "$FAILED" = "$f" ]; then
		result 'not ok' "$name" "exit status $status"
	elif [ $plan -gt $n ]; then
		result 'not ok' "$name" "$n results of $plan"
	fi
	[ -n "$5" ] && {
		result 'not ok' "$name" "kernel log: $5"
		grep -a -A40 -E "$SPLATS" "$JOB/splat" | head -60 | sed 's/^/# /' | tee -a "$TAP" >>"$out"
	}
	[ "$SKIPPED" = "$s" ] || [ $((PASSED - p)) != 0 ] || mark=skipped
	[ "$FAILED" = "$f" ] || mark=FAILED
	printf '%-14s %-28s %-8s %3d ok %3d failed %3d skipped %4d s, %3d s of processor\n' "$TARGET" "$name" "$mark" \
		$((PASSED - p)) $((FAILED - f)) $((SKIPPED - s)) "$3" $(((TICKS - FROM) / 100))
	[ "$FAILED" = "$f" ] || {
		{
			echo "    $TARGET $name, exit status $status${5:+, the kernel complained: $5}"
			# Expectations that failed: kselftest's harness words them FILE.c:LINE:TEST: ...
			grep -a -m 6 -E '^# *[a-z0-9_-]+\.[ch]:[0-9]+:' "$out"
			grep -a -m 3 -B 2 -A 3 '^not ok' "$out" || tail -n 6 "$out"
		} >>"$LIST.failed"
		grep -a '^not ok' "$out" | head -20 | sed 's/^/    /'
		# A test explains a failure in the lines before or after it.
		grep -a -m 3 -B 12 -A 12 '^not ok' "$out" | head -60 | sed 's/^/    > /'
		[ "$status" = 0 ] || echo "    exit status $status"
		[ -z "$5" ] || echo "    the kernel complained: $5"
		tail -n 25 "$out" | sed 's/^/    | /'
		echo "    the whole output: build/log/${TARGET//:/-}/$name.log"
	}
}
