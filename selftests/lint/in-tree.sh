#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Build net/esp inside a kernel tree, built in and as a module, without a warning
# (W=1). The tree consists of symbolic links to the cached source.
#
#	in-tree.sh [y|m]...

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"
[ $# != 0 ] || set -- y m

# With W=1 a script in Python checks the comments, too.
need gcc make flex bison bc libc6-dev python3
fetch_built uml
tree=$(mktemp -d "${TMPDIR:-/var/tmp}/esp-in-tree.XXXXXX")
trap 'rm -rf "$tree"' EXIT
cp -as "$SOURCE" "$tree/src"
"$SRC/tools/packaging/in-tree" "$tree/src" || exit 1

echo TAP version 13
echo 1..$#
n=0
for how; do
	n=$((n + 1))
	mkdir "$tree/$how"
	cp "$CACHE/kernels/uml/.config" "$tree/$how/.config"
	printf 'CONFIG_AF_ESP=%s\nCONFIG_AF_ESP_DIAG=%s\nCONFIG_ESP_KUNIT_TEST=y\n' $how $how >>"$tree/$how/.config"
	if { make -s -C "$tree/src" O="$tree/$how" ARCH=um olddefconfig &&
		grep -q "^CONFIG_AF_ESP_DIAG=$how" "$tree/$how/.config" &&
		make -s -C "$tree/src" O="$tree/$how" ARCH=um -j2 prepare &&
		make -s -C "$tree/src" O="$tree/$how" ARCH=um W=1 KCFLAGS=-Werror -j2 net/esp/ &&
		[ -s "$tree/$how/net/esp/af_esp.o" ] && [ -s "$tree/$how/net/esp/diag.o" ]; } >"$tree/log" 2>&1; then
		echo "ok $n builds in a kernel tree, CONFIG_AF_ESP=$how"
	else
		sed 's/^/# /' "$tree/log" | tail -30
		echo "not ok $n builds in a kernel tree, CONFIG_AF_ESP=$how"
	fi
done
