# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by vm: obtains kernels, their build trees and QEMU.
#
#   $CACHE/deb        downloaded packages        $CACHE/src/linux  unpacked source
#   $CACHE/apt/SET    private package lists      $CACHE/qemu       QEMU, unpacked
#   $CACHE/roots/S    roots of Debian's releases, for packages
#   $CACHE/kernels/K  a kernel: build tree of a UML one, and of kcsan; of a stock
#                     one vmlinux, initramfs, lib/modules, root/ (to build modules in)
#
# Everything is made under a temporary name and then moved, so an interrupted
# run leaves nothing half done. A directory's .stamp names its version or sources.

CACHE=${ESP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/esp}
JOBS=$(nproc)

say() { echo "$@" >&2; }
die() { echo "vm: $*" >&2; exit 1; }

# at_end COMMANDS: run them when this shell ends, also when a signal ends it. Further signals do not
# interrupt them; make, for example, sends its own SIGTERM after the one to its process group.
at_end() {
	# shellcheck disable=SC2064
	trap "trap '' HUP INT TERM; $1" EXIT
	trap "trap '' HUP INT TERM; exit 130" HUP INT TERM
}

# need PACKAGE...: install the packages that are missing, from the machine's own suites.
need() {
	local p missing=()

	for p; do
		[ "$(dpkg-query -Wf '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
	done
	[ ${#missing[@]} = 0 ] && return
	say "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	exec 8>/run/lock/esp-apt.lock
	flock 8
	apt-get -qq -y -o DPkg::Lock::Timeout=300 --no-install-recommends install "${missing[@]}" >/dev/null 2>&1 ||
		{ apt-get -qq update && apt-get -qq -y -o DPkg::Lock::Timeout=300 --no-install-recommends install "${missing[@]}" >/dev/null; } ||
		die "cannot install ${missing[*]}"
	exec 8>&-
}

# use_ccache: put ccache before the compilers in $PATH, if it can be installed. Then a checkout
# need not compile again what another checkout has compiled.
use_ccache() {
	export CCACHE_DIR=$CACHE/ccache CCACHE_MAXSIZE=2G CCACHE_NOHASHDIR=1

	mkdir -p "$CCACHE_DIR" || return
	case :$PATH: in
	*:/usr/lib/ccache:*) return ;;
	esac
	(need ccache) && PATH=/usr/lib/ccache:$PATH
}

# ccache_in ROOT: do the same for the compiler of the Debian in that directory. It can run the
# machine's ccache if it is not older than the machine's Debian. The caller has to mount
# $CCACHE_DIR on /ccache.
ccache_in() {
	local cc f

	[ -d "$CCACHE_DIR" ] && [ -x /usr/bin/ccache ] || return
	mkdir -p "$1/usr/lib/ccache"
	for f in /usr/bin/ccache /usr/lib/x86_64-linux-gnu/libhiredis.so.*; do
		cp -u --parents "$f" "$1/" || return
	done
	for cc in "$1"/usr/bin/*gcc-[0-9]*; do
		ln -sf ../../bin/ccache "$1/usr/lib/ccache/${cc##*/}"
	done
	if chroot "$1" /usr/bin/ccache --version >/dev/null 2>&1; then
		mkdir -p "$1/ccache"
	else
		rm -rf "$1/ccache" "$1/usr/lib/ccache"
	fi
}

# make_in BUILD_TREE SOURCES ARGUMENT...: builds modules. Meanwhile the sources are mounted on one
# path for all checkouts, so that ccache recognizes equal files. Not where the machine refuses
# that, and not for gcov, which has to find the sources on their own path.
make_in() {
	local at=$CACHE/build-here

	if [[ " $* " = *" GCOV_PROFILE=y "* ]] || ! unshare -m true 2>/dev/null; then
		make -C "$1" M="$2" -j"$JOBS" "${@:3}" modules
		return
	fi
	mkdir -p "$at"
	unshare -m bash -c 'mount --bind "$2" "$3" && exec make -C "$1" M="$3" "${@:4}" modules' \
		- "$1" "$2" "$at" -j"$JOBS" "${@:3}" 2>&1 | sed "s,$at/,$2/,g"
	return "${PIPESTATUS[0]}"
}

# Takes a lock of the cache for the rest of the (sub)shell.
lock() {
	mkdir -p "$CACHE"/{apt,deb,src,kernels}
	exec 9>"$CACHE/.lock-$1"
	flock -n 9 || { say "waiting for another run that makes $1"; flock 9; }
}

# apt_set NAME SUITE...: package lists of other suites in a private apt state;
# sets the array APT to the options that select it.
apt_set() {
	local d=$CACHE/apt/$1 uri sec s key=/usr/share/keyrings/debian-archive-keyring.gpg
	shift

	APT=(-qq -o "Dir::Etc::sourcelist=$d/list" -o Dir::Etc::sourceparts=- -o "Dir::State::Lists=$d/lists"
		-o "Dir::State::status=$d/status" -o "Dir::Cache::archives=$d/archives" -o Dir::Cache::pkgcache=
		-o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root -o Acquire::Languages=none
		-o APT::Install-Recommends=false -o Debug::NoLocking=1)
	mkdir -p "$d/lists/partial" "$d/archives/partial"
	: >"$d/status"
	# Use the mirror of the machine itself.
	uri=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -1)
	sec=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian-Security' | head -1)
	if [ -z "$uri" ]; then
		# apt knows the origins only after it has read the lists once.
		[ -z "$UPDATED" ] || die "apt's configuration names no Debian mirror"
		apt-get -qq -o DPkg::Lock::Timeout=300 update >&2
		UPDATED=1
		apt_set "${d##*/}" "$@"
		return
	fi
	for s; do
		case $s in
		src:*) echo "deb-src [signed-by=$key] $uri ${s#src:} main" ;;
		*-security) [ -n "$sec" ] && echo "deb [signed-by=$key] $sec $s main" ;;
		*) echo "deb [signed-by=$key] $uri $s main" ;;
		esac
	done >"$d/list.new"
	if ! cmp -s "$d/list.new" "$d/list" || [ -z "$(find "$d/list" -mtime -1)" ]; then
		say "reading the package lists of $*"
		mv "$d/list.new" "$d/list"
		apt-get "${APT[@]}" update >&2 || { rm "$d/list"; die "cannot read the package lists of $*"; }
	fi
}

# deps_of PACKAGE PATTERN: print those packages that PACKAGE depends on and PATTERN matches.
deps_of() { apt-cache "${APT[@]}" depends "$1" | awk '/Depends:/ { print $2 }' | grep -E -- "$2"; }

# unpack DIR PACKAGE...: downloads packages (without dependencies) and unpacks them.
unpack() {
	local dir=$1 p tmp
	shift

	mkdir -p "$dir"
	tmp=$(mktemp -d "$CACHE/deb/XXXXXX")
	say "downloading $*"
	(cd "$tmp" && apt-get "${APT[@]}" download "$@" >&2) || { rm -r "$tmp"; die "cannot download $*"; }
	for p in "$tmp"/*.deb; do
		dpkg -x "$p" "$dir" || die "cannot unpack $p"
	done
	rm -r "$tmp"
}

# unpack_closure DIR PACKAGE...: do the same with all packages that they depend on.
unpack_closure() {
	local dir=$1 a p
	shift

	mkdir -p "$dir"
	a=$(printf '%s\n' "${APT[@]}" | sed -n 's/^Dir::Cache::archives=//p')
	say "downloading $* and what they depend on"
	apt-get "${APT[@]}" -y -d install "$@" >&2 || die "cannot download $*"
	# base-files first: it has the links from /bin, /lib to /usr.
	for p in "$a"/base-files_*.deb "$a"/*.deb; do
		[ ! -e "$p" ] || dpkg -x "$p" "$dir" || die "cannot unpack $p"
	done
	rm "$a"/*.deb
}

# Fetch the source of the UML kernels and of their tools: Linux 7.2, or the newest one in sid if
# sid has 7.2 no longer.
fetch_source() {
	local t=$CACHE/src/tmp p

	for SOURCE in "$CACHE"/src/linux-*; do
		[ -e "$SOURCE/.stamp" ] && { patch_source; return; }
	done
	(
		lock source
		need xz-utils make gcc
		apt_set sid sid
		p=linux-source-7.2
		apt-cache "${APT[@]}" show $p >/dev/null 2>&1 || p=$(deps_of linux-source '^linux-source-')
		rm -rf "$t" && mkdir -p "$t"
		unpack "$t/deb" "$p"
		say "unpacking $p"
		mkdir "$t/linux"
		tar -C "$t/linux" --strip-components=1 -xf "$t/deb/usr/src/$p.tar.xz" || die "cannot unpack $p"
		make -s -C "$t/linux" kernelversion >"$t/linux/.stamp" || exit
		rm -rf "$CACHE/src/${p/-source/}"
		mv "$t/linux" "$CACHE/src/${p/-source/}" && rm -rf "$t"
	) || exit
	fetch_source
}

# Apply the patch that makes stack traces of UML fast. It may not fit a newer Linux.
patch_source() {
	local p=$HARNESS/uml-stacktrace.patch

	cmp -s "$p" "$SOURCE/.patch" && return
	(
		lock source
		cmp -s "$p" "$SOURCE/.patch" && exit
		need patch
		if [ -e "$SOURCE/.patch" ]; then
			patch -s -R -p1 -d "$SOURCE" <"$SOURCE/.patch" && rm "$SOURCE/.patch" || exit
		fi
		if patch -s -f -p1 -d "$SOURCE" --dry-run <"$p" >/dev/null; then
			patch -s -f -p1 -d "$SOURCE" <"$p" && cp "$p" "$SOURCE/.patch"
		else
			say "${p##*/} doesn't fit Linux $(cat "$SOURCE/.stamp"): tests of uml-debug take several times as long"
		fi
	) || exit
}

# KCSAN watches the module, and the kernel's code for sockets, packets and devices. The rest of
# the kernel stays fast, because at most its barriers are instrumented.
# shellcheck disable=SC2016
KCSAN=(ARCH=x86_64 'KCSAN_SANITIZE=$(if $(filter net net/core net/packet drivers/net,$(obj)),y,n)'
	'KCSAN_INSTRUMENT_BARRIERS=$(if $(filter kernel/locking kernel/rcu kernel/sched kernel/time lib mm,$(obj)),y,n)')

# fetch_built uml|uml-debug|uml-virtual|kcsan: builds a kernel, in place, so that a changed
# configuration rebuilds only what it touches.
fetch_built() {
	local k=$CACHE/kernels/$1 fragment=("$HARNESS/uml-lean.config") stamp args=(ARCH=um) goals=()

	[ "$1" = uml ] || fragment+=("$HARNESS/$1.config")
	[ "$1" != kcsan ] || args=("${KCSAN[@]}") goals=(vmlinux modules)
	cat "${fragment[@]}" >/dev/null || exit
	fetch_source
	stamp="$(cat "$SOURCE/.stamp") $({
		cat "${fragment[@]}" | grep ^CONFIG
		[ "$1" != kcsan ] || printf '%s\n' "${args[@]}"
		[ "$1" != uml-debug ] || cat "$SOURCE/.patch" 2>/dev/null
	} | sha256sum | cut -c1-16)"
	[ "$(cat "$k/.stamp" 2>/dev/null)" = "$stamp" ] && return
	(
		lock "$1"
		[ "$(cat "$k/.stamp" 2>/dev/null)" = "$stamp" ] && exit
		need gcc make flex bison bc libc6-dev libelf-dev
		mkdir -p "$k" && rm -f "$k/.stamp"
		cat "${fragment[@]}" >"$k/fragment"
		say "building $1 (Linux $stamp), up to 10 minutes; log: $k/make.log"
		{
			make -C "$SOURCE" O="$k" "${args[@]}" KCONFIG_ALLCONFIG="$k/fragment" allnoconfig &&
				make -C "$SOURCE" O="$k" "${args[@]}" -j"$JOBS" "${goals[@]}"
		} >"$k/make.log" 2>&1 </dev/null &
		while sleep 2; kill -0 $! 2>/dev/null; do
			[ $((SECONDS % 30)) -lt 2 ] && say "  $(find "$k" -name '*.o' | wc -l) objects"
		done
		wait $! || { tail -20 "$k/make.log" >&2; die "the build of $1 failed"; }
		echo "$stamp" >"$k/.stamp"
	) || exit
}

# Fetch QEMU 10 with all its libraries. Its own loader runs it, so that it does not depend on the
# machine's libraries.
fetch_qemu() {
	local q=$CACHE/qemu

	QEMU=("$q/lib64/ld-linux-x86-64.so.2" --library-path "$q/usr/lib/x86_64-linux-gnu:$q/lib/x86_64-linux-gnu"
		"$q/usr/bin/qemu-system-x86_64" -L "$q/usr/share/qemu" -L "$q/usr/share/seabios")
	[ -e "$q/.stamp" ] && return
	(
		lock qemu
		[ -e "$q/.stamp" ] && exit
		apt_set backports bookworm bookworm-backports
		APT+=(-t bookworm-backports)
		rm -rf "$q.new"
		unpack_closure "$q.new" qemu-system-x86
		echo 10 >"$q.new/.stamp"
		rm -rf "$q" && mv "$q.new" "$q"
	) || exit
}

# fetch_stock 6.1|6.12|7: a kernel of Debian's with its modules and headers, and
# an initramfs that mounts the host's root over 9p.
fetch_stock() {
	local k=$CACHE/kernels/$1 new=$CACHE/kernels/$1.new v n m

	[ -e "$k/.stamp" ] && return
	fetch_source
	(
		lock "$1"
		[ -e "$k/.stamp" ] && exit
		need busybox-static cpio kmod binutils file zstd xz-utils pahole
		case $1 in
		6.1) apt_set 6.1 bookworm bookworm-security ;;
		6.12) apt_set 6.12 bookworm-backports ;;
		7) newest_7 ;;
		esac
		rm -rf "$new" && mkdir -p "$new/root"
		v=$(deps_of linux-image-amd64 '^linux-image-[0-9]') && v=${v#linux-image-}
		[ -n "$v" ] || die "no linux-image for $1"
		# shellcheck disable=SC2046
		unpack "$new/image" "linux-image-$v" $(deps_of "linux-image-$v" '^linux-(binary|modules)-[0-9]')
		if [ "$1" = 7 ]; then
			# Its build tools need a newer C library, so unpack a small root.
			unpack_closure "$new/root" base-files linux-headers-"$v" binutils make dash bash coreutils sed grep \
				mawk findutils diffutils perl-base kmod
			ln -sf mawk "$new/root/usr/bin/awk"
			ln -sf dash "$new/root/usr/bin/sh"
			mkdir -p "$new/root"/{proc,dev,tmp,src}
		else
			# shellcheck disable=SC2046
			unpack "$new/root" "linux-headers-$v" $(deps_of "linux-headers-$v" '^linux-(headers|kbuild)-')
			grep -rlI --include=Makefile --include=.kernelvariables /usr/src "$new/root/usr/src/linux-headers-$v" |
				xargs sed -i "s|/usr/src/|$k/root/usr/src/|"
		fi
		say "preparing Linux $v"
		"$SOURCE/scripts/extract-vmlinux" "$(find "$new/image" -name 'vmlinuz*')" >"$new/vmlinux" || exit
		[ -d "$new/image/lib" ] || ln -s usr/lib "$new/image/lib"
		mkdir -p "$new/lib" && mv "$new/image/lib/modules" "$new/lib/" || exit
		depmod -b "$new" "$v" 2>/dev/null
		# The initramfs: busybox, the modules for 9p over virtio, one script.
		mkdir -p "$new/initramfs"/{bin,root,dev,m}
		cp /bin/busybox "$new/initramfs/bin/"
		n=10
		for m in virtio_pci 9pnet_virtio 9p; do
			# A module that modprobe does not find is built into the kernel.
			modprobe -q -d "$new" -S "$v" --show-depends "$m"
		done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r m; do
			n=$((n + 1))
			case $m in
			*.xz) xz -dc "$m" ;;
			*.zst) zstd -qdc "$m" ;;
			*) cat "$m" ;;
			esac >"$new/initramfs/m/$n.ko"
		done
		cat >"$new/initramfs/init" <<-'END'
			#!/bin/busybox sh
			for m in /m/*.ko; do /bin/busybox insmod $m; done
			/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose root /root
			/bin/busybox mount -t devtmpfs dev /root/dev
			exec /bin/busybox switch_root /root "$ESPINIT"
		END
		chmod +x "$new/initramfs/init"
		(cd "$new/initramfs" && find . | cpio -o -H newc --quiet) >"$new/initramfs.cpio" || exit
		rm -rf "$new/image" "$new/initramfs"
		echo "$v" >"$new/release"
		echo "$v" >"$new/.stamp"
		rm -rf "$k" && mv "$new" "$k"
	) || exit
}

# Selects the suite with the newest 7.x.
newest_7() {
	local s sid bpo

	apt_set sid sid
	sid=$(apt-cache "${APT[@]}" show linux-image-amd64 | sed -n 's/^Version: //p' | head -1)
	apt_set 7bpo trixie-backports
	bpo=$(apt-cache "${APT[@]}" show linux-image-amd64 | sed -n 's/^Version: //p' | head -1)
	if dpkg --compare-versions "$bpo" gt "$sid"; then
		apt_set 7 trixie trixie-backports
		APT+=(-t trixie-backports)
	else
		apt_set sid sid
	fi
}

# fetch_root SUITE: make a small Debian of that suite, in $CACHE/roots/SUITE, with the tools that
# build, check and install packages. trixie-mpi: with Open MPI 5.0 instead.
fetch_root() {
	local r=$CACHE/roots/$1 suite=${1%-mpi} sources=() stamp include

	include=build-essential,debhelper,dh-dkms,dkms,faketime,libgsl-dev,libibverbs-dev,libmnl-dev,lintian,linux-headers-amd64,pkgconf
	include+=,bash-completion,pahole,systemd,tshark
	if [ "$suite" != "$1" ]; then
		sources=("src:$suite")
		include=gcc,libc6-dev,make,iproute2,hostname,openmpi-bin,libopenmpi-dev,slurmctld,slurmd,slurm-client
	fi
	stamp=$(sha256sum <<<"$include")
	[ "$(cat "$r.stamp" 2>/dev/null)" = "$stamp" ] && return
	(
		lock "$1"
		[ "$(cat "$r.stamp" 2>/dev/null)" = "$stamp" ] && exit
		need mmdebstrap
		apt_set "$1" "$suite" "$suite-security" "${sources[@]}"
		say "making a root of Debian $1"
		mkdir -p "$CACHE/roots"
		rm -rf "$r" "$r.new" "$r.stamp"
		mmdebstrap --quiet --mode=root --variant=apt --include="$include" \
			--aptopt='APT::Install-Recommends "false"' "$suite" "$r.new" "$CACHE/apt/$1/list" >&2 ||
			die "cannot make a root of Debian $1"
		[ "$suite" = "$1" ] || complete_mpi "$r.new"
		mv "$r.new" "$r" && echo "$stamp" >"$r.stamp"
	) || exit
}

# complete_mpi ROOT: add the headers of Open MPI 5.0 that its libopenmpi-dev lacks, and the file
# on which a guest mounts the names of its hosts.
complete_mpi() {
	local to=$1/usr/lib/x86_64-linux-gnu/openmpi/include/openmpi tmp

	need xz-utils
	tmp=$(mktemp -d "$CACHE/deb/XXXXXX")
	say "downloading the source of openmpi"
	(cd "$tmp" && apt-get "${APT[@]}" source --download-only openmpi >&2 &&
		tar --strip-components=1 --wildcards -C "$to" -xf openmpi_*.orig.tar.* \
			'*/opal/mca/threads/pthreads/*.h') ||
		die "cannot get the headers of Open MPI"
	rm -r "$tmp"
	touch "$1/etc/hosts"
}
