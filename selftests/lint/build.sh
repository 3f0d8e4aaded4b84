#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh [KERNEL]: the tools and the module build in parallel, in a path with a space, for the
# headers of KERNEL (6.1 or 6.12; default 6.1), with the compiler that built the kernel. Fake
# programs report some version of clang, and a fake Makefile of a kernel prints the variables that
# it was given.

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
KERNEL=${1:-6.1}
. "$HARNESS/fetch.sh"
cd "$SRC" || exit
number=0 status=0
unset CC LLVM DESTDIR MAKEFLAGS
# Without optimization the tools build in half of the time.
export CFLAGS=-O0

check()
{
	number=$((number + 1))
	if "${@:2}" >"$WORK/log" 2>&1; then
		echo "ok $number - $1"
	else
		tail -30 "$WORK/log" | sed 's/^/# /'
		echo "not ok $number - $1"
		status=1
	fi
}

# copy DIR: copy the files that git knows, as they are here, into a repository of their own.
copy()
{
	mkdir -p "$1" && git ls-files -z | rsync -a --ignore-missing-args --from0 --files-from=- . "$1/" &&
		git -C "$1" init -q && git -C "$1" add -A
}

# quiet: the build printed no message about a fault that did not stop it.
# grep refuses to read the file that it writes to, so it does not write to the log.
quiet()
{
	grep -E 'warning:|jobserver unavailable|overriding recipe|Circular' "$WORK/log" >"$WORK/messages"
	[ $? = 1 ] || { cat "$WORK/messages"; return 1; }
}

builds() { make -j2 -C "$TREE" KDIR="$HEADERS" modules tools && [ -e "$TREE/net/esp/esp.ko" ] && quiet; }

again()
{
	touch "$TREE/net/esp/core/window.c"
	make -j2 -C "$TREE" KDIR="$HEADERS" && [ "$(grep -c ' CC \[M\] ' "$WORK/log")" = 1 ]
}

others()
{
	local d

	for d in tools/sim tools/performability Documentation/examples; do
		make -j2 -C "$TREE/$d" || return
	done
	make -j2 -C "$TREE/tools/btl_esp"
}

installs()
{
	local f root="$WORK/in stalled"

	make -j2 -C "$TREE" KDIR="$HEADERS" install DESTDIR="$root" || return
	for f in bin/esp lib/libam.a lib/esp/libesp-run.so sbin/esp-ackq bin/am share/man/man8/esp.8; do
		[ -e "$root/usr/local/$f" ] || return
	done
	[ "$(find "$root/lib/modules" -name 'esp*.ko*' | wc -l)" = 2 ]
}

# relative: install below a relative path, with a umask that lets only root read files.
relative()
{
	local root="$TREE/stage/re l"

	(umask 077 && make -C "$TREE" KDIR="$HEADERS" install DESTDIR="stage/re l") || return
	[ "$(find "$root" -name 'esp*.ko*' -o -name libam.a -o -name esp-ackq -o -name esp.conf | wc -l)" = 5 ] &&
		[ -z "$(find "$root" -type f -name 'libam*' ! -perm -444)" ] || return
	rm -r "$TREE/stage" && [ -z "$(find "$TREE" -name stage)" ]
}

# together: make goals that depend on each other in one command.
together()
{
	make -j2 -C "$TREE" KDIR="$HEADERS" clean modules tools install DESTDIR="$WORK/together" &&
		[ "$(find "$WORK/together" -name 'esp*.ko*' -o -name libam.a | wc -l)" = 3 ]
}

cleans()
{
	make -C "$TREE" clean && [ -z "$(git -C "$TREE" status --porcelain --ignored | grep '^!!' | grep -v __pycache__)" ] &&
		[ -z "$(ls "$TMPDIR")" ]
}

# clangs VERSION NAME...: make fake programs of these names that report this version.
clangs()
{
	local name

	rm -rf "$WORK/bin"
	mkdir "$WORK/bin" || return
	for name in "${@:2}"; do
		printf '#!/bin/sh\necho %s\n' "$1" >"$WORK/bin/$name" && chmod +x "$WORK/bin/$name" || return
	done
}

# kernel LINE...: write the configuration of the fake kernel.
kernel() { printf '%s\n' "$@" >"$WORK/kernel/include/config/auto.conf"; }

# given EXPECTED ARGUMENT...: the kernel's Makefile is given EXPECTED.
given()
{
	local out

	out=$(PATH=$WORK/bin:$CLEAN make -s --no-print-directory -C "$TREE" KDIR="$WORK/kernel" "${@:2}" modules) || return
	echo "given: $out"
	[ "$out" = "$1" ]
}

# refused TEXT [ARGUMENT...]: the build fails, and one line of its messages has TEXT.
refused()
{
	! PATH=$WORK/bin:$CLEAN make -C "$TREE" KDIR="$WORK/kernel" "${@:2}" modules &&
		[ "$(grep -c "$1" "$WORK/log")" = 1 ]
}

# not_built: "make install" of a source that is not built says so.
not_built() { ! make -C "$TREE" KDIR="$HEADERS" install DESTDIR="$WORK/none" && grep -q 'nothing is built' "$WORK/log"; }

# dkms GUESS: run the command of dkms.conf as DKMS does, with the guess that DKMS appends.
dkms()
{
	# shellcheck disable=SC2034
	local MAKE=() kernel_source_dir=$WORK/kernel out

	. "$SRC/debian/esp-dkms.dkms" && [ -n "${MAKE[0]}" ] || return
	out=$(cd "$TREE" && PATH=$WORK/bin:$CLEAN && eval "${MAKE[0]/#make/make -s -j2 KERNELRELEASE=1} $1") || return
	echo "$out"
	grep -qx 'LLVM=-19 CC=' <<<"$out"
}

compilers()
{
	local all='ld.lld llvm-ar llvm-nm llvm-objcopy' name clang=(CONFIG_CC_IS_CLANG=y CONFIG_CLANG_VERSION=190107 CONFIG_LD_IS_LLD=y)

	# A path without the machine's LLVM.
	CLEAN=$WORK/path
	mkdir -p "$CLEAN" "$WORK/kernel/include/config" || return
	for name in make sh dirname pwd grep sed find cp mktemp mkdir rm ln git uname; do
		ln -s "$(command -v "$name")" "$CLEAN/"
	done
	# shellcheck disable=SC2016
	printf 'modules:\n\t@echo "LLVM=$(LLVM) CC=$(filter-out cc,$(CC))"\n' >"$WORK/kernel/Makefile"

	kernel CONFIG_CC_IS_GCC=y CONFIG_CLANG_VERSION=0
	# shellcheck disable=SC2086
	clangs 19.1.7 clang $all
	check "a kernel of gcc is not built by clang" given 'LLVM= CC='
	kernel "${clang[@]}"
	check "a kernel of clang is" given 'LLVM=1 CC='
	mv "$WORK/kernel/include/config/auto.conf" "$WORK/kernel/.config"
	check "also if only .config says so" given 'LLVM=1 CC='
	kernel "${clang[@]}"
	check "the user's LLVM has precedence" given 'LLVM=-15 CC=' LLVM=-15
	check "in the environment too" env LLVM=-15 bash -c "$(declare -f given); TREE='$TREE' WORK='$WORK' CLEAN='$CLEAN' given 'LLVM=-15 CC='"
	check "the user's CC has precedence" given 'LLVM= CC=gcc-12' CC=gcc-12
	kernel "${clang[@]:0:2}"
	check "with another linker only the compiler is chosen" given 'LLVM= CC=clang'
	kernel "${clang[@]}"
	# shellcheck disable=SC2086
	clangs 19.1.7 $(printf '%s-19 ' clang $all)
	check "the version that built the kernel is found by its name" given 'LLVM=-19 CC='
	check "DKMS builds with it, whatever DKMS appends" dkms 'CC=clang LD=ld.lld'
	check "in DKMS 3.2 too" dkms LLVM=1
	clangs 19.1.7 clang-19
	check "a missing tool is named" refused 'ld.lld-19 is missing'
	clangs 19.1.7
	check "and a missing clang" refused 'clang is missing'
	check "missing headers are named" refused 'install linux-headers-' KDIR=/nonexistent
	check "O= is refused" refused 'O= is for the tools' O="$WORK"
}

main()
{
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/esp-build.XXXXXX") || exit
	at_end 'rm -rf "$WORK"'
	need gcc make git kmod rsync libc6-dev libelf-dev libgsl-dev libmnl-dev libopenmpi-dev pkgconf
	"$HARNESS/vm" fetch "$KERNEL" || exit
	HEADERS=$CACHE/kernels/$KERNEL/root/usr/src/linux-headers-$(cat "$CACHE/kernels/$KERNEL/release")
	TREE="$WORK/a b/esp"
	export TMPDIR=$WORK/tmp
	mkdir "$TMPDIR" && copy "$TREE" || exit

	echo TAP version 13
	compilers
	check "nothing is installed that is not built" not_built
	check "modules and tools build in a path with a space" builds
	check "only what changed is built again" again
	check "the other programs build" others
	check "all is installed, below a path with a space" installs
	check "... and below a relative path" relative
	check "goals are made in their order" together
	check "all is cleaned" cleans
	echo "1..$number"
	exit $status
}

main "$@"
