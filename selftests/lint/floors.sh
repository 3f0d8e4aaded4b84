#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Find which file of net/esp includes and calls which other, by their text. No file may
# reach itself. A header belongs to the .c file of its name. Calls through function
# pointers (struct proto, esp_ackq_ops, the functions of timers) go to higher floors, and
# don't count. Each object that net/esp/Makefile names must have its source.
#
#	floors.sh	the check, as TAP
#	floors.sh -p	the floors: a line for each file with the files that it calls and
#			includes; files that need no others come first

cd "${0%/*}/../.." || exit 1
# shellcheck source=../harness/fetch.sh
. selftests/harness/fetch.sh
need universal-ctags

# Arrows that are allowed in a cycle: "FROM TO reason".
ALLOWED=$(
	cat <<'END'
END
)

# names: "FUNCTION FILE" of each function and macro with parameters that files share.
names()
{
	ctags -x --kinds-C=fd --_xformat='%{name} %{input} %K %S' net/esp/*.[ch] net/esp/core/*.[ch] |
		awk '($3 == "function" || $4 ~ /^\(/) && $1 ~ /^(sock_)?esp_/ { print $1, $2 }'
}

# code FILE: print it without comments and strings.
code()
{
	sed -E 's/"([^"\\]|\\.)*"/""/g' "$1" | awk '
		{ line = $0; out = ""
		  while (line != "") {
			if (inside) {
				end = index(line, "*/")
				if (!end) break
				line = substr(line, end + 2); inside = 0
			} else {
				start = index(line, "/*")
				if (!start) { out = out line; break }
				out = out substr(line, 1, start - 1) " "
				line = substr(line, start + 2); inside = 1
			}
		  }
		  print out }'
}

# arrows: print "FROM TO include|NAME"; file names without net/esp/ and suffix.
arrows()
{
	local file

	for file in net/esp/*.[ch] net/esp/core/*.[ch]; do
		[[ $file == *.mod.c ]] && continue
		code "$file" | grep -oE '\b(sock_)?esp_[a-z0-9_]+ ?\(' | tr -d ' (' | sort -u | sed "s,^,$file ,"
		sed -nE 's/^#include "([a-z_\/]+\.h)"/\1/p' "$file" | while read -r header; do
			case $file:$header in
			net/esp/core/*:selftests/*) ;;
			net/esp/core/*) echo "$file @net/esp/core/$header" ;;
			*) echo "$file @net/esp/$header" ;;
			esac
		done
	done | awk '
		function stem(f) { sub(/^net\/esp\//, "", f); sub(/\.[ch]$/, "", f); return f }
		NR == FNR { where[$1] = $2; next }
		{ to = substr($2, 1, 1) == "@" ? substr($2, 2) : $2 in where ? where[$2] : "" }
		to == "" || stem(to) == stem($1) { next }
		{ print stem($1), stem(to), substr($2, 1, 1) == "@" ? "include" : $2 }' <(names) -
}

ARROWS=$(arrows)
if [ "$1" = -p ]; then
	awk '{ print $1, $2 }' <<<"$ARROWS" | tsort | tac | while read -r file; do
		printf '%-20s %s\n' "$file" "$(awk -v f="$file" '$1 == f && !seen[$2]++ { printf "%s ", $2 }' <<<"$ARROWS")"
	done
	exit
fi

echo 1..4
status=0
n=$(wc -l <<<"$ARROWS")
if [ "$n" -gt 100 ]; then
	echo "ok 1 - $n arrows are found"
else
	echo "not ok 1 - only $n arrows are found"
	status=1
fi
# The module's own objects, esp.o and esp_diag.o, are linked from the others.
objects=$(grep '^esp[_a-z]*-' net/esp/Makefile | grep -oE '[a-z0-9_/]+\.o( |$)' | tr -d ' ')
missing=$(for object in $objects; do
	[ -e "net/esp/${object%.o}.c" ] || echo "$object"
done)
if [ -n "$objects" ] && [ -z "$missing" ]; then
	echo "ok 2 - each object of net/esp/Makefile has its source"
else
	echo "# without a source: ${missing//$'\n'/ }"
	echo "not ok 2 - each object of net/esp/Makefile has its source"
	status=1
fi
# Print each arrow that does not go to a file further up in the Makefile.
wrong=$(sed -n 's/^esp-y [:+]= //p' net/esp/Makefile | tr ' ' '\n' | sed 's/\.o$//' | awk '
	NR == FNR { place[$1] = NR; next }
	$1 in place && $2 in place && place[$1] <= place[$2] { print "# " $1 " needs " $2 ": " $3 }' - <(echo "$ARROWS"))
if [ -z "$wrong" ]; then
	echo "ok 3 - a file calls and includes only files that precede it in the Makefile"
else
	echo "$wrong"
	echo "not ok 3 - a file calls and includes only files that precede it in the Makefile"
	status=1
fi
cycle=$(awk 'NR == FNR { allowed[$1, $2]; next } !(($1, $2) in allowed) { print $1, $2 }' <(echo "$ALLOWED") - <<<"$ARROWS" |
	tsort 2>&1 >/dev/null | sed 's/^tsort: //')
if [ -z "$cycle" ]; then
	echo "ok 4 - no file of net/esp reaches itself by includes and calls"
	exit $status
fi
# Print each cycle that tsort lists after "input contains a loop:": a line for each file, and why.
awk '
	NR == FNR { why[$1, $2] = why[$1, $2] " " $3; next }
	/contains a loop/ { last = ""; print "# a cycle:"; next }
	{ if (last != "") print "#   " last " -> " $1 ":" why[last, $1]; last = $1 }' <(echo "$ARROWS") - <<<"$cycle"
echo "not ok 4 - no file of net/esp reaches itself by includes and calls"
exit 1
