#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck disable=SC2016,SC2317
#
# Test the Debian packages, in a root of that suite and without a network. Two builds, in two
# places, by two users, at two times, give the same bytes. lintian reports nothing. Installation
# makes DKMS build the module for the suite's kernel, and the installed programs work. After
# removal nothing is left. For KERNEL, if given, DKMS builds the module too, and a guest loads it.
#
#	packages.sh bookworm|trixie [KERNEL]	KERNEL: 6.1, 6.12, 7

# Use a mount namespace of its own, so that the mounts vanish with this process.
[ -n "$ESP_PACKAGES" ] || ESP_PACKAGES=1 exec unshare -m "$0" "$@"
SRC=$(cd "${0%/*}/../.." && pwd)
HARNESS=$SRC/selftests/harness
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"
SUITE=$1 KERNEL=$2 RELEASE=
OUT=$SRC/build/packages/$SUITE
number=0 status=0

# check TEXT COMMAND...: ok if the command succeeds; else print its output, too.
check()
{
	local text=$1 verdict=ok
	shift

	"$@" >"$WORK/check" 2>&1 </dev/null || verdict='not ok'
	number=$((number + 1))
	if [ "$verdict" != ok ]; then
		status=1
		tail -60 "$WORK/check" | sed 's/^/# /'
	fi
	echo "$verdict $number - $text"
}

# in_root [OPTION] COMMAND...: run it in the root; OPTION is for chroot.
in_root()
{
	local option=()

	case $1 in
	--*) option=("$1"); shift ;;
	esac
	unshare -n chroot "${option[@]}" "$ROOT" env -i LC_ALL=C.UTF-8 HOME=/tmp TERM=dumb \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

# make_root: mount the cached root, with all changes in memory.
make_root()
{
	mount -t tmpfs esp-packages "$WORK" && mkdir "$WORK"/{upper,work,root} &&
		mount -t overlay -o "lowerdir=$CACHE/roots/$SUITE,upperdir=$WORK/upper,workdir=$WORK/work" \
			esp-packages "$ROOT" &&
		mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" &&
		mount -t tmpfs tmp "$ROOT/tmp"
}

# add_headers: put KERNEL and its headers where apt would put them. Paths inside the headers are
# those of the cache, or for 7 those of the root, so both must work.
add_headers()
{
	local k=$CACHE/kernels/$KERNEL f

	mkdir -p "$ROOT$k" && mount --bind -o ro "$k" "$ROOT$k" || return
	cp -asn "$k/lib/modules/$RELEASE" "$ROOT/lib/modules/" || return
	for f in "$k"/root/usr/{src/linux-headers-,lib/linux-kbuild-}*; do
		[ -e "$ROOT${f#"$k/root"}" ] || ln -s "$f" "$ROOT${f#"$k/root"}" || return
	done
	ln -sfn "/usr/src/linux-headers-$RELEASE" "$ROOT/lib/modules/$RELEASE/build"
}

# copy FOLDER: copy the tracked files to it, in the root.
copy()
{
	mkdir -p "$ROOT$1" &&
		git -C "$SRC" ls-files -z | rsync -a --from0 --files-from=- "$SRC/" "$ROOT$1/"
}

# built FOLDER: list the packages that were built there, and their source.
built() { (cd "$ROOT$1/.." && ls ./*.deb ./*.dsc ./*.tar.*); }

build_first() { copy /build/esp && in_root sh -c 'cd /build/esp && dpkg-buildpackage -us -uc'; }

# build_again: build as another user, in another place, time zone and locale.
build_again()
{
	copy /srv/a/longer/path/esp && in_root chown -R nobody /srv &&
		in_root --userspec=nobody:nogroup TZ=Asia/Tokyo LC_ALL=C DEB_BUILD_OPTIONS=parallel=1 \
			sh -c 'umask 002; cd /srv/a/longer/path/esp &&
				exec faketime "2031-02-03 04:05:06" dpkg-buildpackage -us -uc'
}

same()
{
	local f n=0

	cmp <(built /build/esp) <(built /srv/a/longer/path/esp) || return
	for f in $(built /build/esp); do
		cmp "$ROOT/build/$f" "$ROOT/srv/a/longer/path/$f" || return
		n=$((n + 1))
	done
	[ "$n" -ge 5 ]
}

# lint: run lintian. The suite's lintian may know an older Policy, or a newer.
lint()
{
	in_root sh -c 'lintian --allow-root -EI --pedantic --suppress-tags out-of-date-standards-version \
		--fail-on error,warning,info,pedantic,experimental /build/*.changes'
}

# licences: each file's SPDX line agrees with debian/copyright, where the last matching pattern
# counts.
licences()
{
	local file id want i n=0 patterns=() said=()

	while read -r file id; do
		patterns+=("$file") said+=("$id")
	done < <(awk '/^Files:/ { $1 = ""; files = $0; next } /^ / && files { files = files $0 }
		/^Copyright:/ { n = split(files, f); files = "" }
		/^License:/ { $1 = ""; for (i = 1; i <= n; i++) print f[i] $0; n = 0 }' "$SRC/debian/copyright")
	while IFS=: read -r file id; do
		id=${id#*SPDX-License-Identifier: } id=${id% \*/} id=${id% -->} want=
		for i in "${!patterns[@]}"; do
			# shellcheck disable=SC2053
			[[ $file != ${patterns[i]} ]] || want=${said[i]}
		done
		case "$id, $want" in
		'GPL-2.0-only, GPL-2' | 'BSD-3-Clause, BSD-3-Clause') n=$((n + 1)) ;;
		'GPL-2.0-only WITH Linux-syscall-note, GPL-2 with Linux-syscall-note exception') n=$((n + 1)) ;;
		*) echo "$file: $id; debian/copyright: $want"; return 1 ;;
		esac
	done < <(cd "$SRC" && git ls-files -z ':!LICENSES' |
		xargs -0 grep -m1 -E '^(#|//|/\*|--|\.\.|\.\\"|<!--) SPDX-License-Identifier:')
	[ "$n" -gt 100 ]
}

versions()
{
	local want
	want=$(in_root dpkg-parsechangelog -l /build/esp/debian/changelog -S Version)

	in_root esp --version | grep -F "$want" && in_root pkg-config --modversion libam | grep -xF "$want"
}

# files: list the files of the root, but those that any package changes.
files()
{
	(cd "$ROOT" && find . -xdev -regextype egrep \
		-regex '\./(build|srv|tmp|proc|dev|run|var/(cache|log|lib/(apt|dpkg)))' -prune -o \
		! -path './*lib/modules/*/modules.*' ! -path './var/lib/dkms/mok.*' -print | sort)
}

# apt warns that its own user cannot read the packages.
apt() { in_root apt-get -y -q -o APT::Sandbox::User=root "$@"; }

# module RELEASE NAME: print the module as the kernel loads it, without compression.
module()
{
	local f
	f=$(echo "$ROOT/lib/modules/$1/updates/dkms/$2".ko*)

	case $f in
	*.xz) xz -dc "$f" ;;
	*.zst) zstd -qdc "$f" ;;
	*.ko) cat "$f" ;;
	*) return 1 ;;
	esac
}

# installed RELEASE
installed()
{
	module "$1" esp >/dev/null && module "$1" esp_diag >/dev/null &&
		in_root dkms status esp -k "$1" | grep -E '^esp[/,].*: installed$' &&
		[ "$(in_root modinfo -k "$1" -F vermagic esp | cut -d' ' -f1)" = "$1" ] &&
		[ "$(in_root modprobe -S "$1" -R net-pf-19)" = esp ]
}

# signed RELEASE: DKMS's key has signed both modules. After a module follow the signature, 8 bytes,
# the signature's length, and a line of text.
signed()
{
	local m=$WORK/signed name size length

	in_root openssl x509 -inform DER -in /var/lib/dkms/mok.pub -out /tmp/mok.pem || return
	for name in esp esp_diag; do
		[ "$(in_root modinfo -k "$1" -F signer "$name")" = "DKMS module signing key" ] || return
		module "$1" "$name" >"$m" || return
		size=$(stat -c %s "$m")
		[ "$(tail -c 28 "$m")" = '~Module signature appended~' ] || return
		length=$((16#$(tail -c 32 "$m" | head -c 4 | od -An -tx1 | tr -d ' ')))
		head -c $((size - 40)) "$m" | tail -c "$length" >"$ROOT/tmp/signature"
		head -c $((size - 40 - length)) "$m" >"$ROOT/tmp/module"
		in_root openssl cms -verify -binary -inform DER -in /tmp/signature -content /tmp/module \
			-certfile /tmp/mok.pem -nointern -noverify -out /dev/null || return
	done
}

# overridden: modprobe finds the module although a distribution has disabled its family number
# (tools/packaging/modprobe.d).
overridden()
{
	local found conf=$ROOT/usr/lib/modprobe.d/turned-off.conf

	echo 'alias net-pf-19 off' >"$conf"
	found=$(in_root modprobe -S "${RELEASE:-$STOCK}" -R net-pf-19)
	rm "$conf"
	grep -x esp <<<"$found"
}

completes()
{
	in_root bash -c '. /usr/share/bash-completion/bash_completion && _completion_loader esp
		COMP_WORDS=(esp dev en) COMP_CWORD=2; _esp && echo "${COMPREPLY[*]}"' | grep -x enable
}

# pages: libesp-dev has the manual pages of section 3, esp-performability has its own, esp-utils
# has the others.
pages()
{
	local f package

	for f in "$SRC"/Documentation/man/*.[1-8]; do
		package=esp-utils
		[ "${f##*.}" != 3 ] || package=libesp-dev
		[ "${f##*/}" != esp-performability.1 ] || package=esp-performability
		in_root dpkg -L "$package" | grep -x "/usr/share/man/man${f##*.}/${f##*/}.gz" || return
	done
}

# enables DEV: once the unit is enabled for DEV, systemd starts it when the device appears.
enables()
{
	local unit device

	unit=esp@$(in_root systemd-escape "$1").service
	device=$(in_root systemd-escape -p --suffix=device "/sys/subsystem/net/devices/$1")
	in_root systemctl enable "$unit" &&
		[ -L "$ROOT/etc/systemd/system/$device.wants/$unit" ] && in_root systemctl disable "$unit"
}

unit()
{
	in_root systemd-analyze verify /usr/lib/systemd/system/esp@.service && enables eth1 && enables br-lan
}

# for_musl: musl's dynamic linker, too, finds all symbols of the library that "esp run" preloads.
for_musl() { /lib/ld-musl-*.so.1 --list "$ROOT"/usr/lib/*/esp/libesp-run.so; }

# dissects: tshark finds the dissector in its folder of plugins, whichever Lua it has.
dissects()
{
	cp "$SRC/Documentation/wire-example.txt" "$ROOT/tmp/" &&
		in_root sh -c 'cd /tmp && text2pcap -q wire-example.txt example.pcap && tshark -r example.pcap \
			-o ethesp.checksum:TRUE -T fields -e ethesp.srcport -e ethesp.ts_val' >"$WORK/fields" &&
		diff "$WORK/fields" <(printf '50000\t1000000\n4660\t3000000\n')
}

compiles()
{
	in_root sh -c 'cd /tmp && for f in /usr/share/doc/libesp-dev/examples/*.c; do
		cc -Wall -Wextra -Werror -o example $f || exit; done'
	cat >"$ROOT/tmp/am.c" <<-'PROGRAM'
		#include <am.h>
		int main(void)
		{
			eb_t bundle;

			return AM_AllocateBundle(AM_SEQ, &bundle) != AM_OK || AM_FreeBundle(bundle) != AM_OK;
		}
	PROGRAM
	# shellcheck disable=SC2016
	in_root sh -c 'cd /tmp && cc -Wall -Werror -o am am.c $(pkg-config --cflags --libs libam) && ./am'
}

# guest: in the guest, load the module that DKMS has built and run the unit's commands; then try to
# load it while the kernel requires a signature.
guest()
{
	local dir=$1 unit=$1/esp@.service m listening

	loads()
	{
		for m in $(modinfo -F depends "$dir/esp.ko" | tr , ' ') inet_diag; do
			modprobe -aq "$m" || return
		done
		insmod "$dir/esp.ko" && insmod "$dir/esp_diag.ko" && grep '^ESP ' /proc/net/protocols
	}
	does()
	{
		local command
		command=$(sed -n "s/^$1=-\?//p" "$unit")
		# shellcheck disable=SC2086
		${command//%I/d0} && grep -x "$2" /proc/sys/net/esp/dev/d0/enable
	}
	carries()
	{
		esp listen -w 60 %lo:5000 >"$WORK/out" &
		seq 100000 >"$WORK/in"
		while listening=$(esp show -l) && [ -z "$listening" ]; do
			kill -0 $! || return
			sleep 0.1
		done
		esp connect -w 60 00:00:00:00:00:00%lo:5000 <"$WORK/in" && wait $! && cmp "$WORK/in" "$WORK/out"
	}
	# refused MESSAGE: the kernel refuses the module, and its log says why.
	refused() { ! insmod "$dir/esp.ko" && dmesg | grep "$1"; }
	check "the module that DKMS built loads on $(uname -r)" loads
	ip link add d0 type dummy
	check "ExecStop of esp@.service disables a device" does ExecStop 0
	check "ExecStart enables one" does ExecStart 1
	check "data are carried" carries
	check "the modules unload" rmmod esp_diag esp
	mount -t securityfs securityfs /sys/kernel/security
	echo integrity >/sys/kernel/security/lockdown
	check "a kernel in lockdown wants DKMS's key" refused 'unsigned module loading is restricted'
	echo 1 >/sys/module/module/parameters/sig_enforce
	check "as does one that enforces signatures" refused 'module with unavailable key is rejected'
	echo "1..$number"
	exit $status
}

# keep: copy the packages to build/packages.
keep()
{
	local f

	rm -rf "$OUT"
	mkdir -p "$OUT" || exit
	for f in $(built /build/esp); do
		cp "$ROOT/build/$f" "$OUT/" || exit
	done
}

# in_guest: run the guest, and add its results to these.
in_guest()
{
	local line n=0 ended

	mkdir "$OUT/guest" || exit
	module "$RELEASE" esp >"$OUT/guest/esp.ko"
	module "$RELEASE" esp_diag >"$OUT/guest/esp_diag.ko"
	cp "$ROOT/usr/lib/systemd/system/esp@.service" "$OUT/guest/"
	"$HARNESS/vm" run "$KERNEL" --no-module --time 200 -- selftests/lint/packages.sh --guest "$OUT/guest" \
		>"$WORK/guest" 2>&1 </dev/null
	ended=$?
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			number=$((number + 1)) n=$((n + 1))
			[ "${line%% *}" = ok ] || status=1
			echo "${line%%[0-9]*}$number - ${line#* - }"
			;;
		'1..'*) ;;
		*) echo "# ${line#\# }" ;;
		esac
	done <"$WORK/guest"
	check "the guest has told its results" [ $n = 7 ]
	check "and has ended well, without a complaint of its kernel" [ $ended = 0 ]
}

main()
{
	[ "$SUITE" != --guest ] || TMPDIR=/tmp
	WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/esp-packages.XXXXXX") || exit
	ROOT=$WORK/root
	at_end 'umount -Rl "$WORK" 2>/dev/null; rm -rf --one-file-system "$WORK"'
	[ "$SUITE" != --guest ] || guest "$2"
	need git musl rsync xz-utils zstd
	fetch_root "$SUITE"
	make_root || die "cannot make a root of Debian $SUITE"
	if [ -n "$KERNEL" ]; then
		"$HARNESS/vm" fetch "$KERNEL" || exit
		RELEASE=$(cat "$CACHE/kernels/$KERNEL/release")
		add_headers || die "cannot use the headers of $KERNEL"
	fi
	STOCK=$(find "$CACHE/roots/$SUITE/lib/modules" -mindepth 1 -maxdepth 1 -printf '%f\n')

	echo TAP version 13
	check "packages build" build_first
	check "elsewhere, at another time and by another user too" build_again
	check "and have the same bytes" same
	check "lintian finds nothing" lint
	check "debian/copyright agrees with the files" licences
	files >"$WORK/before"
	# shellcheck disable=SC2046
	check "they can be installed" apt install \
		$(built /build/esp | grep '\.deb$' | grep -v dbgsym | sed 's,^\.,/build,')
	for release in $STOCK $RELEASE; do
		check "DKMS has built the modules for $release" installed "$release"
		check "and signed them for $release" signed "$release"
	done
	check "the module is found where its family is turned off" overridden
	check "the version is that of debian/changelog" versions
	check "the shell completes esp's words" completes
	check "each manual page is in its package" pages
	check "systemd's unit is right, and can be enabled" unit
	check "tshark reads frames of ESP" dissects
	check "programs compile with libesp-dev" compiles
	check "musl can load the library of esp run" for_musl
	keep
	[ -z "$KERNEL" ] || in_guest
	check "they can be removed" apt purge esp-dkms esp-utils esp-performability \
		libesp-dev esp-am-verbs
	files >"$WORK/after"
	check "and nothing is left" diff "$WORK/before" "$WORK/after"
	echo "1..$number"
	exit $status
}

main "$@"
