# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by vm: obtains kernels, their build trees and QEMU.
#
#   $CACHE/deb        downloaded packages        $CACHE/src/linux  unpacked source
#   $CACHE/apt/SET    private package lists      $CACHE/qemu       QEMU, unpacked
#   $CACHE/kernels/K  a kernel: build tree of a UML one; of a stock one
#                     vmlinux, initramfs, lib/modules, root/ (to build modules in)
#
# Everything is made under a temporary name and then moved, so an interrupted
# run leaves nothing half done; a directory's .stamp says what it was made of.

CACHE=${ESP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/esp}
JOBS=$(nproc)

say() { echo "$@" >&2; }
die() { echo "vm: $*" >&2; exit 1; }

# Installs what is missing of the named packages, from the machine's own suites.
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
	apt-get -qq -y --no-install-recommends install "${missing[@]}" >/dev/null 2>&1 ||
		{ apt-get -qq update && apt-get -qq -y --no-install-recommends install "${missing[@]}" >/dev/null; } ||
		die "cannot install ${missing[*]}"
	exec 8>&-
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
	# The mirror is the one that the machine itself uses.
	uri=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -1)
	sec=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Label: Debian-Security' | head -1)
	[ -n "$uri" ] || uri=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 debian)
	for s; do
		case $s in
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

# Names of the packages that a package depends on, of those matching a pattern.
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

# unpack_closure DIR PACKAGE...: the same with all that they depend on.
unpack_closure() {
	local dir=$1 a
	shift

	mkdir -p "$dir"
	a=$(printf '%s\n' "${APT[@]}" | sed -n 's/^Dir::Cache::archives=//p')
	say "downloading $* and what they depend on"
	apt-get "${APT[@]}" -y -d install "$@" >&2 || die "cannot download $*"
	for p in "$a"/*.deb; do
		dpkg -x "$p" "$dir" || die "cannot unpack $p"
	done
	rm "$a"/*.deb
}

# The source of the UML kernels and of the tools that come with it: Linux 7.2,
# or the newest that sid has when that is gone.
fetch_source() {
	local t=$CACHE/src/tmp p

	for SOURCE in "$CACHE"/src/linux-*; do
		[ -e "$SOURCE/.stamp" ] && return
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

# fetch_uml uml|uml-debug: builds a User-Mode Linux, in place, so that a changed
# configuration rebuilds only what it touches.
fetch_uml() {
	local k=$CACHE/kernels/$1 fragment=("$HARNESS/uml-lean.config") stamp

	[ "$1" = uml-debug ] && fragment+=("$HARNESS/uml-debug.config")
	fetch_source
	stamp="$(cat "$SOURCE/.stamp") $(cat "${fragment[@]}" | grep ^CONFIG | sha256sum | cut -c1-16)"
	[ "$(cat "$k/.stamp" 2>/dev/null)" = "$stamp" ] && return
	(
		lock "$1"
		[ "$(cat "$k/.stamp" 2>/dev/null)" = "$stamp" ] && exit
		need gcc make flex bison bc libc6-dev
		mkdir -p "$k" && rm -f "$k/.stamp"
		cat "${fragment[@]}" >"$k/fragment"
		say "building $1 (Linux $stamp), up to 10 minutes; log: $k/make.log"
		{
			make -C "$SOURCE" O="$k" ARCH=um KCONFIG_ALLCONFIG="$k/fragment" allnoconfig &&
				make -C "$SOURCE" O="$k" ARCH=um -j"$JOBS"
		} >"$k/make.log" 2>&1 </dev/null &
		while sleep 2; kill -0 $! 2>/dev/null; do
			[ $((SECONDS % 30)) -lt 2 ] && say "  $(find "$k" -name '*.o' | wc -l) objects"
		done
		wait $! || { tail -20 "$k/make.log" >&2; die "the build of $1 failed"; }
		echo "$stamp" >"$k/.stamp"
	) || exit
}
