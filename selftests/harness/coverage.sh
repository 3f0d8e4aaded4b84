# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by vm: which lines and branches of net/esp the tests run.

# coverage [TEST=GLOB]: run all tests in one guest, where the counts add up. They include code
# that runs while the module is unloaded.
coverage() {
	local src status=0

	need gcovr gcc
	VARIANT=gcov APPEND=kunit.autorun=0
	(check KERNEL=uml-debug "$@") || status=1
	src=$(builddir uml-debug)/src
	[ -e "$src/net/esp/af_esp.gcda" ] || die "the guest left no counts"
	mkdir -p "$SRC/build/coverage"
	(
		cd "$src" &&
			gcovr --root . --filter net/esp/ --exclude 'net/esp/test/' --txt "$SRC/build/coverage/lines" \
				--csv "$SRC/build/coverage/files.csv" --html-details "$SRC/build/coverage/index.html" \
				--html-tab-size 8 net/esp
	) || die "gcovr failed"
	table <"$SRC/build/coverage/files.csv" >"$SRC/build/coverage.txt" || die "nothing was counted"
	cat "$SRC/build/coverage.txt"
	not_run "$src" <"$SRC/build/coverage/lines" >>"$SRC/build/coverage.txt"
	say "the lines that didn't run: build/coverage.txt, build/coverage/index.html"
	exit $status
}

# kunit_test: print its line for check's list. The KUnit tests do not run when the module is
# loaded, because other tests load it again and again.
kunit_test() {
	echo 'uml-debug kunit 100 for s in /sys/kernel/debug/kunit/*; do echo >$s/run && cat $s/results || exit; done'
}

# table: make a table from gcovr's CSV.
table() {
	awk -F, 'BEGIN { format = "%-22s %6s %6s %6s   %6s %6s %6s\n"
			 printf format, "", "lines", "run", "%", "branch", "taken", "%" }
		function row(name, n, of, b, bof) {
			printf format, name, of, n, sprintf("%.1f", of ? 100 * n / of : 100),
				bof, b, sprintf("%.1f", bof ? 100 * b / bof : 100)
		}
		NR > 1 { row($1, $3, $2, $6, $5); l += $3; lof += $2; b += $6; bof += $5 }
		END { row("all", l, lof, b, bof); exit !lof }'
}

# not_run SOURCES: print the lines that did not run, from gcovr's text, whose last column has
# their numbers, "12,14-16".
not_run() {
	local file lines range n

	while read -r file lines; do
		printf '\n%s\n' "$file"
		for range in ${lines//,/ }; do
			for ((n = ${range%-*}; n <= ${range#*-}; n++)); do
				printf '%5d  %s\n' "$n" "$(sed -n "${n}p" "$1/$file")"
			done
		done
	done < <(awk '/%/ && $NF ~ /^[0-9,-]+$/ { print $1, $NF }')
}
