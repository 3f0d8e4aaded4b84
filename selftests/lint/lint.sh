#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# lint.sh [checkpatch|sparse]: run the kernel's own checkers; print one line of TAP for each.

# sparse_file ARGUMENT... FILE: run sparse on a file, unless it is known to be clean.
sparse_file() {
	local out status state

	state=$({ echo "$SPARSE_STATE $*"; cat "${@: -1}"; } | sha256sum)
	! grep -qxF "$state" "$SPARSE_CLEAN" || return 0
	out=$(sparse -Wno-error "$@" 2>&1)
	status=$?
	if [ $status = 0 ] && [ -z "$out" ]; then
		echo "$state" >>"$SPARSE_CLEAN"
	else
		printf '%s\n' "$out" >&2
	fi
	return $status
}

# The kernel's build calls it so, in its own folder.
[ "$1" != sparse-file ] || {
	sparse_file "${@:2}"
	exit
}

HARNESS=$(cd "$(dirname "$0")/../harness" && pwd)
SRC=$(cd "$HARNESS/../.." && pwd)
. "$HARNESS/fetch.sh"
cd "$SRC" || exit
status=0

verdict() {
	if [ -s "$2" ]; then
		sed 's/^/# /' "$2"
		echo "not ok $1"
		status=1
	else
		echo "ok $1"
	fi
	rm -f "$2"
}

# findings PATTERN STATUS: copy the matching lines of $out.all to $out; if the checker itself failed
# without any, copy its last lines.
findings() {
	grep -aE "$1" "$out.all" >"$out" || [ "$2" = 0 ] ||
		{ tail -20 "$out.all"; echo "exit status $2"; } >"$out"
	rm "$out.all"
}

checkpatch() {
	local out status
	out=$(mktemp)

	need perl
	fetch_source
	# Ignored: counters are named as in /proc/net/snmp; a table has a list macro of its
	# own; old kernels' sysctl tables aren't const; checkpatch takes a function pointer
	# among the parameters for the function itself. The types of Active Messages are those
	# of its specification. Tracepoints have a form of their own.
	local ignore=FILE_PATH_CHANGES,CAMELCASE,CONST_STRUCT,OPEN_BRACE,COMPLEX_MACRO,MACRO_ARG_REUSE,MACRO_ARG_PRECEDENCE,MACRO_ARG_UNUSED,NEW_TYPEDEFS
	local check=(perl "$SOURCE/scripts/checkpatch.pl" --root="$SOURCE" --no-summary --strict --terse --show-types -f)

	# A clean file stays clean as long as it, checkpatch and this script don't change.
	local clean
	clean=$CACHE/checkpatch/$(cat "$SOURCE/scripts/checkpatch.pl" selftests/lint/lint.sh | sha256sum | cut -c 1-32)
	mkdir -p "${clean%/*}" && touch "$clean" || exit
	find net include tools selftests/bench/kbench selftests/delays -name '*.[ch]' ! -name '*.mod.c' -exec sha256sum {} + |
		grep -vFf "$clean" >"$out.new"
	cut -c 67- "$out.new" | grep -v /trace.h | tr '\n' '\0' |
		xargs -0r "${check[@]}" --ignore $ignore >"$out.all" 2>&1 &&
		if grep -q /trace.h "$out.new"; then
			"${check[@]}" --ignore $ignore,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT net/esp/trace.h >>"$out.all" 2>&1
		fi
	status=$?
	rm -f .checkpatch-camelcase.*
	[ $status != 0 ] || cut -c -64 "$out.new" >>"$clean"
	rm "$out.new"
	findings '^[^ ]+:[0-9]+: ' $status
	verdict checkpatch "$out"
}

sparse() {
	local out built
	out=$(mktemp)
	# The folder as a regular expression.
	# shellcheck disable=SC2016
	built=$(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$SRC/build/6.12/src/")

	need sparse
	# A clean file stays clean as long as it, the headers, the kernel, sparse, its arguments and
	# this script don't change. SPARSE_CLEAN has a line for each such state.
	SPARSE_CLEAN=$CACHE/sparse/clean
	mkdir -p "${SPARSE_CLEAN%/*}" && touch "$SPARSE_CLEAN" || exit
	SPARSE_STATE=$({
		command sparse --version
		cat selftests/lint/lint.sh "$CACHE/kernels/6.12/release"
		find net include selftests/bench/kbench selftests/delays -name '*.h' -exec cat {} +
	} | sha256sum)
	export SPARSE_CLEAN SPARSE_STATE
	# Debian 12's sparse is too old for Linux 7.
	"$HARNESS/vm" modules 6.12 || { echo "not ok sparse"; status=1; return; }
	# The module is compiled already: with the same flags, make only runs sparse on its files.
	# Findings in other files don't count.
	use_ccache
	(
		exec 9>"$SRC/build/6.12/.lock"
		flock 9
		make_in "$(echo "$CACHE"/kernels/6.12/root/usr/src/linux-headers-*-amd64)" "$SRC/build/6.12/src" W=1 C=2 \
			CONFIG_ESP_KBENCH=m KCFLAGS=-Werror CHECK="bash $SRC/selftests/lint/lint.sh sparse-file" 9>&-
	) >"$out.all" 2>&1
	findings "^$built.*: (warning|error)" $?
	sed -E -i "s,^$built,," "$out"
	verdict sparse "$out"
}

case $1 in
checkpatch | sparse) $1 ;;
'') checkpatch && sparse ;;
*) echo "lint.sh [checkpatch|sparse]" >&2; exit 2 ;;
esac
exit $status
