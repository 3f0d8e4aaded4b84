# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by vm: boots guests and follows what happens in them.

# Patterns of the kernel's complaints.
SPLATS='BUG:|WARNING:|KASAN|UBSAN|INFO: task .* blocked|INFO: rcu.* stall|rcu_.*detected stall'
SPLATS+='|possible (recursive|circular)|inconsistent lock state|suspicious RCU usage|bad unlock balance'
SPLATS+='|sleeping function|scheduling while atomic|refcount_t:|ref_tracker: .*@|ODEBUG|kmemleak: [0-9]+ new'
SPLATS+='|unregister_netdevice: waiting|Oops|Kernel panic|general protection|soft lockup|lockup detected'
SPLATS+='|trying to register non-static key|turning off the locking correctness'
SPLATS+='|kernel BUG|Unable to handle kernel|held lock|percpu ref .* <= 0|list_(add|del) corruption'

# job KERNEL: a new directory that tells a guest what to do.
job() {
	local k=$1 out

	out=$(builddir "$k")
	mkdir -p "$SRC/build/log"
	JOB=$(mktemp -d "$SRC/build/log/job.XXXXXX")
	: >"$JOB/tests"
	setenv SRC "$SRC"
	setenv CACHE "$CACHE"
	setenv KERNEL "$k"
	setenv BUILD "$out"
	setenv LOAD "$LOAD"
	setenv PATH "$out:$HARNESS:$SRC/tools/trace:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	case $k in
	uml*)
		setenv TTY tty0
		setenv SHARE hostfs
		;;
	kcsan)
		setenv TTY ttyS1
		setenv SHARE 9p
		;;
	*)
		setenv TTY ttyS1
		setenv SHARE 9p
		setenv MODULES "$CACHE/kernels/$k/lib/modules"
		setenv STOCK "veth tun bridge 8021q dummy sch_netem sch_tbf"
		;;
	esac
}

setenv() { printf 'export %s=%q\n' "$1" "$2" >>"$JOB/env"; }
addtest() { echo "$1 $2 $3" >>"$JOB/tests"; }

# boot KERNEL [SECONDS]: runs the guest of $JOB; its terminal is stdin and
# stdout, the kernel's log goes to $JOB/console.
boot() {
	local k=$CACHE/kernels/$1 limit=(exec timeout -s KILL "$2") in=null

	[ -n "$INTERACTIVE" ] && in=fd:0 limit=()
	# The per-processor caches of SLUB keep stale pointers to objects in use,
	# which hides leaks from kmemleak; a debugged slab has no such caches.
	[ "$1" = uml-debug ] && APPEND="slab_debug=F kasan_multi_shot $APPEND"
	[ "$1" = uml-virtual ] && APPEND="time-travel=inf-cpu $APPEND" MEM=4G	# for 64 hosts
	ulimit -c 0
	# UML's memory is a file, in /dev/shm unless that is small.
	[ "$(df -k --output=avail /dev/shm | tail -1)" -gt 4000000 ] || export TMPDIR=${TMPDIR:-/var/tmp}
	case $1 in
	uml*)
		"${limit[@]}" "$k/linux" mem="$MEM" ncpus="$SMP" seccomp=on rootfstype=hostfs rootflags=/ ro \
			init="$HARNESS/guest" ESPJOB="$JOB" con=null con0=$in,fd:1 con1=null,fd:2 console=tty1 \
			loglevel=7 panic=-1 $APPEND 2>"$JOB/console"
		;;
	*) boot_qemu "$1" "${NET[@]}" ;;
	esac
}

# run_guest KERNEL FUNCTION: boots $JOB and calls the function for each line of a test's output.
# It calls test_end NAME STATUS at the end of each test, and if the guest dies during a test.
# STATUS is the first status that is not 0, SPLAT the kernel's first line of complaint and
# $JOB/splat its log.
run_guest() {
	local try

	# An emulated machine hangs in its first second once in a while.
	for try in 1 2 3; do
		follow "$@"
		[ -e "$JOB/started" ] && return
		say "the guest ($1) did not start, attempt $try"
	done
}

# watch_start: end a guest that doesn't start. Its processor time decides, because a guest that gets
# little of it on a busy host takes long to start: three minutes of it are used up, or none was used
# for a minute.
watch_start() {
	local used=0 idle=0 now p

	# A run that was ended has removed $JOB, and another process may have the guest's number.
	while sleep 10 && [ -e "$JOB" ] && [ ! -e "$JOB/started" ]; do
		now=0
		for p in $(cat "/proc/$GUEST/task/$GUEST/children"); do
			now=$((now + $(ps -o cputimes= -p "$p")))
		done
		idle=$((now > used ? 0 : idle + 10))
		used=$now
		[ "$used" -lt 180 ] && [ $idle -lt 60 ] && continue
		kill_guests
		return
	done
}

follow() {
	local line seconds=60 name= taint=0 old=0 n watcher bye=

	# shellcheck disable=SC2034
	while read -r name n line; do
		seconds=$((seconds + n + 15))
	done <"$JOB/tests"
	: >"$JOB/console"
	STATUS= SPLAT= JUDGED= name=
	exec 4< <(boot "$1" $seconds </dev/null 2>&1)
	GUEST=$!
	watch_start </dev/null >/dev/null 2>&1 &
	watcher=$!
	while IFS= read -r line <&4 || [ -n "$line" ]; do
		line=${line%$'\r'}
		case $line in
		*'@@esp '*)
			[ -n "${line%%@@esp *}" ] && $2 "${line%%@@esp *}"
			line=${line#*@@esp }
			case $line in
			started)
				: >"$JOB/started"
				kill "$watcher" 2>/dev/null
				[ -z "$PIN" ] || pin_guest
				;;
			'begin '*)
				name=${line#begin }
				test_begin "$name"
				;;
			'end '*)
				read -r _ name n taint <<<"$line"
				[ "${STATUS:-0}" = 0 ] && STATUS=$n
				splat "$name"
				# The kernel may have complained before the test began, for example at boot.
				[ $((taint & ~old & 640)) != 0 ] && [ -z "$SPLAT" ] && SPLAT="tainted: $taint" &&
					cp "$JOB/console" "$JOB/splat"
				old=$taint
				test_end "$name" "$n"
				name=
				;;
			bye) bye=1 ;;
			'fatal '*) $2 "vm: ${line#fatal }" ;;
			esac
			;;
		*) $2 "$line" ;;
		esac
	done
	exec 4<&-
	kill "$watcher" 2>/dev/null
	cp "$JOB/console" "$SRC/build/log/console-$1"
	if [ -n "$name" ]; then
		# The guest died or was killed.
		splat "$name"
		[ -n "$SPLAT" ] || { SPLAT="the guest stopped or was killed"; tail -30 "$JOB/console" >"$JOB/splat"; }
		STATUS=255
		test_end "$name" 255
	elif [ -z "$STATUS" ]; then
		SPLAT="the guest did not start"
		tail -50 "$JOB/console" >"$JOB/splat"
		STATUS=255
	elif [ -z "$bye" ]; then
		SPLAT="the guest stopped between tests"
		tail -50 "$JOB/console" >"$JOB/splat"
		STATUS=255
		test_begin between
		test_end between 255
	fi
	if [ -z "$SPLAT" ]; then
		splat_between
		[ -z "$SPLAT" ] || { test_begin between; test_end between 0; }
	fi
}

# splat NAME: looks for complaints in the kernel's log of this test.
splat() {
	local i

	# The log may arrive a little later than the terminal's output.
	for i in 1 2 3 4 5 6 7 8 9 10; do
		ended "$1" && break
		kill -0 "$GUEST" 2>/dev/null || break
		sleep 0.1
	done
	# Without its end, the test's part of the log is judged by splat_between once more.
	! ended "$1" || JUDGED+=" $1"
	section "$1" | own_races >"$JOB/log"
	complaint
	[ -z "$i" ] || JUDGED+=" $1"
}

# ended NAME: the end of the test has come in the kernel's log.
ended() { grep -qE "esp: @@ end $1"$'\r?$' "$JOB/console"; }

# section NAME: print the test's part of the kernel's log.
section() {
	awk -v name="$1" '{ sub(/\r$/, "") }
		(i = index($0, "esp: @@ ")) { on = substr($0, i + 8) == "begin " name; next } on' "$JOB/console"
}

# splat_between: after the guest has ended, look for complaints outside of the tests' parts of the
# log that were judged: while modules were loaded, between tests, and after the last one.
splat_between() {
	local i

	awk -v judged="$JUDGED " '{ sub(/\r$/, "") }
		(i = index($0, "esp: @@ ")) {
			split(substr($0, i + 8), mark, " ")
			on = mark[1] != "begin" || !index(judged, " " mark[2] " ")
			next
		}
		on' "$JOB/console" | own_races >"$JOB/log"
	complaint
}

# complaint: set i to the first line of $JOB/log with a complaint, and SPLAT if it is the first one.
complaint() {
	i=$(grep -aEm1 "$SPLATS" "$JOB/log")
	[ -n "$i" ] && [ -z "$SPLAT" ] && { SPLAT=$i; cp "$JOB/log" "$JOB/splat"; }
}

# own_races: removes KCSAN's reports that name no function of the module, because these tests do
# not judge other parts of the kernel.
own_races() { sed '/BUG: KCSAN: /{/\[esp/!d}'; }

test_begin() { :; }
test_end() { :; }
NET=()
show_line() { printf '%s\n' "$1"; }
# timeout leads the guest in a process group of its own; UML makes another group.
kill_guests() {
	local p

	[ -n "$GUEST" ] || return
	for p in $(cat "/proc/$GUEST/task/$GUEST/children" 2>/dev/null); do
		kill -KILL -- "$p" "-$p" 2>/dev/null
	done
	kill -KILL -- "-$GUEST" 2>/dev/null
}

# Bind each processor of User-Mode Linux, which is a thread, to a processor of the host. Each
# process of the guest has another process on the host, which stays on the host's processor
# where it was made (speed.c).
pin_guest() {
	local linux t n=0

	read -r linux _ <"/proc/$GUEST/task/$GUEST/children"
	for t in $(find "/proc/$linux/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -n); do
		taskset -pc $((n++ % $(nproc))) "$t" >/dev/null || say "vm: no processor of its own for $t"
	done
	[ "$n" -ge "$SMP" ] || say "vm: the guest's processors are not found, and keep to none"
}

# boot_qemu KERNEL [OPTION...]: boot the guest in QEMU.
boot_qemu() {
	local k=$CACHE/kernels/$1 stdio=(-serial stdio) accel=tcg,thread=multi
	local initrd=(-initrd "$k/initramfs.cpio")

	if [ "$1" = kcsan ]; then
		initrd=()
		APPEND="kcsan.skip_watch=100 kcsan.udelay_interrupt=80 root=root rootfstype=9p rootflags=trans=virtio,msize=512000,cache=loose ro init=$HARNESS/guest $APPEND"
	fi
	shift
	[ -n "$INTERACTIVE" ] && stdio=(-serial mon:stdio)
	[ "$ESP_KVM" = 1 ] && accel=kvm
	if [ -n "$ICOUNT" ]; then
		accel="tcg,thread=single -icount shift=0,sleep=off -rtc clock=vm"
		APPEND="nokaslr $APPEND"
	fi
	fetch_qemu
	# An emulated processor may not run for a while, so be patient before calling that a lockup.
	APPEND="watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120 $APPEND"
	# shellcheck disable=SC2086
	"${limit[@]}" "${QEMU[@]}" -M pc -nodefaults -no-reboot -display none -accel $accel -smp "$SMP" -m "$MEM" \
		-kernel "$k/vmlinux" "${initrd[@]}" \
		-append "console=ttyS0 loglevel=5 panic=-1 ESPINIT=$HARNESS/guest ESPJOB=$JOB $APPEND" \
		-serial "file:$JOB/console" "${stdio[@]}" \
		-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=root,mount_tag=root \
		-fsdev local,id=build,path="$SRC/build",security_model=none,multidevs=remap \
		-device virtio-9p-pci,fsdev=build,mount_tag=build "$@"
}
