#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Find which file of net/esp includes and calls which other, by their text. No file may
# reach itself. A header belongs to the .c file of its name. Calls through function
# pointers (struct proto, esp_ackq_ops, the functions of timers) go to higher floors, and
# don't count. Each object that net/esp/Makefile names must have its source, and each source its
# object. A file of core/ includes headers of core/ only.
#
#	floors.sh	the check, as TAP
#	floors.sh -p	the floors: a line for each file with the files that it calls and
#			includes; files that need no others come first

cd "${0%/*}/../.." || exit 1
shopt -s lastpipe	# verdict counts in this shell
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

# includes FILE: print the path of each header that the file includes by #include "HEADER", or
# "?HEADER" if it is neither in the file's folder nor in the project's.
includes()
{
	local header path

	sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]+)".*/\1/p' "$1" | while read -r header; do
		path="?$header"
		[ ! -e "$header" ] || path=$header
		[ ! -e "${1%/*}/$header" ] || path=$(realpath --relative-to=. "${1%/*}/$header")
		echo "$path"
	done
}

# arrows: print "FROM TO include|NAME"; file names without net/esp/ and suffix.
arrows()
{
	local file

	for file in net/esp/*.[ch] net/esp/core/*.[ch]; do
		[[ $file == *.mod.c ]] && continue
		code "$file" | grep -oE '\b(sock_)?esp_[a-z0-9_]+ ?\(' | tr -d ' (' | sort -u | sed "s,^,$file ,"
		sed "s,^,$file @," <(includes "$file")
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

# shellcheck source=selftests/lint/verdict.sh
. selftests/lint/verdict.sh
echo 1..5
n=$(wc -l <<<"$ARROWS")
{ [ "$n" -gt 100 ] || echo "only $n arrows are found"; } | verdict "arrows are found"

# The module's own objects, esp.o and esp_diag.o, are linked from the others.
objects=$(grep '^esp[_a-z]*-' net/esp/Makefile | grep -oE '[a-z0-9_/]+\.o( |$)' | tr -d ' ')
{
	for object in $objects; do
		[ -e "net/esp/${object%.o}.c" ] || echo "$object has no source"
	done
	for file in net/esp/*.c net/esp/core/*.c; do
		object=${file#net/esp/}
		[[ $file == *.mod.c ]] || grep -qxF "${object%.c}.o" <<<"$objects" || echo "$file is not compiled"
	done
} | verdict "each object of net/esp/Makefile has its source, and each source its object"

awk '$2 ~ /^\?/ { print $1 " includes " substr($2, 2) ", which is not there"; next }
	$1 ~ /^core\// && $2 !~ /^core\// && $3 == "include" && $1 " " $2 != "core/pure selftests/lib/pure-user" {
		print $1 " includes " $2 ", which is not in core/"
	}' <<<"$ARROWS" | verdict "each header is found, and core/ includes headers of core/ only"

# Print each arrow that does not go to a file further up in the Makefile.
sed -n 's/^esp-y [:+]= //p' net/esp/Makefile | tr ' ' '\n' | sed 's/\.o$//' | awk '
	NR == FNR { place[$1] = NR; next }
	$1 in place && $2 in place && place[$1] <= place[$2] { print $1 " needs " $2 ": " $3 }' - <(echo "$ARROWS") |
	verdict "a file calls and includes only files that precede it in the Makefile"

cycle=$(awk 'NR == FNR { allowed[$1, $2]; next } !(($1, $2) in allowed) { print $1, $2 }' <(echo "$ALLOWED") - <<<"$ARROWS" |
	tsort 2>&1 >/dev/null | sed 's/^tsort: //')
# Print each cycle that tsort lists after "input contains a loop:": a line for each file, and why.
awk '
	NR == FNR { why[$1, $2] = why[$1, $2] " " $3; next }
	/contains a loop/ { last = ""; print "a cycle:"; next }
	last != "" { print "  " last " -> " $1 ":" why[last, $1] }
	{ last = $1 }' <(echo "$ARROWS") - <<<"$cycle" |
	verdict "no file of net/esp reaches itself by includes and calls"
exit $status
