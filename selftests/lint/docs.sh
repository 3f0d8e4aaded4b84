#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck disable=SC2016,SC2231
#
# Compare Documentation/ with its manual pages, and README.md, with the code: the documentation has
# every name that users need, every name in it exists, and the numbers agree.

cd "${0%/*}/../.." || exit 1
shopt -s lastpipe	# verdict counts in this shell
export LC_ALL=C.UTF-8	# Lines are measured in characters.
# shellcheck source=selftests/harness/fetch.sh
. selftests/harness/fetch.sh
need mandoc python3-sphinx
DOC=Documentation
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
# shellcheck source=selftests/lint/verdict.sh
. selftests/lint/verdict.sh
# all_in FILE: each word of stdin must be in FILE, and there must be words.
all_in()
{
	local word n=0 text before after

	text=" $(<"$1") "
	while read -r word; do
		n=$((n + 1))
		before='[^A-Za-z0-9_]' after='[^A-Za-z0-9_]'
		[[ $text =~ $before"$word"$after ]] || echo "$1 lacks $word"
	done
	[ $n != 0 ] || echo "found no names for $1"
}

# defined FILE NAME: net/esp/FILE has a function, macro or KUnit case NAME.
declare -A DEFINED=()
while read -r file name; do
	DEFINED[$file:$name]=1
done < <(cd net/esp && find . -name '*.[ch]' -printf '%P\0' | xargs -0 awk '
	/^[a-z].*\(/ && !/;$/ {
		line = $0
		sub(/\(.*/, "", line)
		sub(/.*[ \t*]/, "", line)
		print FILENAME, line
	}
	/^#define / { name = $2; sub(/[^A-Za-z_0-9].*/, "", name); print FILENAME, name }')
defined() { [ -n "${DEFINED[$1:$2]}" ]; }

# The module's constants, the first one of each name; a variable of sysctl.c without a value is 0.
declare -A CONSTANT=()
while read -r name def; do
	[ -n "${CONSTANT[$name]}" ] || CONSTANT[$name]=$def
done < <(
	sed -nE 's/^#define[[:space:]]+([A-Za-z_0-9]+)[[:space:]]+([^/]*[^/[:space:]]).*/\1 \2/p
		s/^static int ([A-Za-z_0-9]+) = ([^;]*);/\1 \2/p' net/esp/*.[ch] net/esp/core/*.[ch]
	sed -nE 's/^static int ([A-Za-z_0-9]+);/\1 0/p' net/esp/sysctl.c
)

# value EXPRESSION: print the value of a C constant expression, with the headers' names.
value()
{
	local v=$1 name def

	while [[ $v =~ (^|[^A-Za-z_0-9])([A-Za-z_][A-Za-z_0-9]*) ]]; do
		name=${BASH_REMATCH[2]}
		def=${CONSTANT[$name]}
		[ -n "$def" ] || { echo "$v"; return; }
		v=${v//"$name"/($def)}
		v=${v//(SOCK_MIN_RCVBUF)/SOCK_MIN_RCVBUF}
		[ "$v" = SOCK_MIN_RCVBUF ] && { echo "$v"; return; }
	done
	echo $((v))
}

# sysctls: print lines "NAME FIELD LOW HIGH" of sysctl.c's table.
sysctls()
{
	tr '\n\t' '  ' <net/esp/sysctl.c |
		grep -oE 'ESP_CTL(_NAMED)?\(("?[a-z_0-9]+"?, *)+[a-z_0-9]+\)' |
		sed -E 's/ESP_CTL\(([a-z_]+),/(\1, \1,/; s/ESP_CTL_NAMED//; s/[(),"]/ /g' |
		awk '$1 != "field" && $1 != "name" { print $1, $2, $3, $4 }'
}

check_sysctls()
{
	local name field low high default row range n=0

	while read -r name field low high; do
		n=$((n + 1))
		default=$(value "$(sed -nE "s/^\t\.$field\t*[[:space:]]*= (.*),/\1/p" net/esp/sysctl.c)")
		range="$(value "$low") ... $(value "$high")"
		# A row may go on in the next line.
		row=$(grep -A1 -E "^$name +" $DOC/sysctl.rst | tr -s ' \n' '  ')
		case $row in
		"$name $default $range "*) ;;
		"$name $default $(value "$low") "*"... $(value "$high") "*) ;;
		*) echo "$name: default $default, range $range; sysctl.rst: ${row:-nothing}" ;;
		esac
		grep -q "\b$name\b" Documentation/man/esp.7 || echo "esp.7 lacks $name"
	done < <(sysctls)
	[ $n -gt 15 ] || echo "only $n sysctls found"
}
check_sysctls | verdict "sysctl.rst and esp.7 have every sysctl, with default and range"

# sysctl.rst must have no others.
grep -oE '^[a-z][a-z_]+  +[-0-9][0-9]* ' $DOC/sysctl.rst | awk '{ print $1 }' |
	grep -vxF -e default_enable -e family -f <(sysctls | awk '{ print $1 }') |
	verdict "sysctl.rst has no other"

# The tests' parameters are not for users.
find net/esp -name '*.c' ! -path '*/test/*' -exec sed -nE 's/^module_param(_named)?\(([a-z_]+),.*/\2/p' {} + | all_in $DOC/sysctl.rst |
	verdict "module parameters"

mibs() { sed -nE 's/^\tX\(([A-Za-z]+).*/\1/p' net/esp/mib.h; }
mibs | all_in $DOC/mib.rst | verdict "mib.rst has every counter"
grep -oE '^[A-Z][a-z]+[A-Za-z]+  ' $DOC/mib.rst | tr -d ' ' | grep -vxF -f <(mibs) |
	verdict "mib.rst has no other"
sed -nE 's/.*"# (device .*)\\n".*/\1/p' net/esp/proc.c | tr ' ' '\n' | all_in $DOC/mib.rst |
	verdict "mib.rst has the columns of /proc/net/esp/dev"

# Each member of struct esp_opt has a comment of its own, in front of it.
{
	members=$(sed -n '/^struct esp_opt {$/,/^};/p' net/esp/esp.h |
		sed -nE 's/^\t[a-z_].*[[:space:]*]([a-z_0-9]+)(\[[A-Za-z_0-9]+\]|:[0-9]+)?;.*/\1/p')
	[ "$(wc -l <<<"$members")" -gt 50 ] || echo "no members found"
	for member in $members; do
		echo "$member"
	done | awk 'NR == FNR { want[$1]; next }
		{ last[FNR] = $0 }
		match($0, /[ \t*][a-z_0-9]+(\[|:|;)/) && /^[ \t][a-z_]/ {
			name = substr($0, RSTART + 1, RLENGTH - 2)
			if (!(name in want))
				next
			for (i = FNR - 8; i <= FNR; i++)
				if (last[i] ~ "[*] @" name ": [@a-zA-Z]")
					delete want[name]
		}
		END { for (name in want) print "esp_opt." name " has no comment" }' - net/esp/esp.h
} | verdict "each member of struct esp_opt has a comment"

options() { sed -nE 's/^\t(ESP_[A-Z0-9_]+)\t*= [0-9]+,/\1/p' include/uapi/linux/af_esp.h; }
options | all_in $DOC/socket-api.rst | verdict "socket-api.rst has every option"
options | all_in Documentation/man/esp.7 | verdict "esp.7 has every option"
sed -nE 's/^ \* @([a-z_]+):.*/\1/p' <(sed -n '/^ \* struct esp_stats/,/\*\//p' include/uapi/linux/af_esp.h) |
	all_in Documentation/man/esp.7 | verdict "esp.7 has every member of struct esp_stats"

{
	sed -nE 's/^ \* @([A-Za-z_]+):\t.*/\1/p' include/uapi/linux/esp_diag.h |
		grep -vxE 'ESP_DIAG_(UNSPEC|T_MAX)'
	echo ESP_DIAG_T_OFF
} | all_in Documentation/man/esp_diag.7 | verdict "esp_diag.7 has every member, attribute and timer"

# No test compiles the description for syzkaller, so compare it with the headers: it must have all
# their names, and no others.
SYZ=tools/syzkaller/socket_esp.txt
{
	options
	sed -nE 's/^\t(ESP_[A-Z0-9_]+)\t*= (0x)?[0-9a-f]+,/\1/p' include/uapi/linux/esp_wire.h
} | all_in $SYZ | verdict "socket_esp.txt has every option and flag"
grep -v '^#' $SYZ | grep -owE '(AF|SOL)_ESP|ESP_[A-Z0-9_]+' | sort -u | grep -vxF \
	-f <(grep -ohwE '(AF|SOL)_ESP|ESP_[A-Z0-9_]+' include/uapi/linux/{af_esp,esp_wire}.h) |
	verdict "socket_esp.txt has no others"
# fields FILE STRUCT: print the members in order, with their bits if the text has them.
fields()
{
	sed -nE "/^(struct |type )?$2(\[.*\])? \{/,/^}/p" "$1" | sed -nE '
		s/^\t(__kernel_sa_family_t)\t+([a-z_]+);/\2 16/p
		s/^\t__(u|be)([0-9]+)\t+([a-z_]+)(\[[0-9]+\])?;/\3 \2/p
		s/^\t([a-z_]+)\t+([^#]*[[, ])?int(8|16|32)(be)?\b.*/\1 \3/p
		s/^\t([a-z_]+)\t+(mac_addr)$/\1 8/p
		s/^\t([a-z_]+)\t+(ifindex.*|esp_cookie|esp_seq)$/\1 32/p
		s/^\t([a-z_]+)\t+esp_port$/\1 16/p
		s/^\t([a-z_]+)\t+[A-Z_]+$/\1/p'
}
for struct in sockaddr_esp:af_esp.h esp_wire:esp_wire.h esp_wire_range:esp_wire.h; do
	fields "include/uapi/linux/${struct#*:}" "${struct%:*}" >"$WORK/header"
	fields $SYZ "${struct%:*}" >"$WORK/syz"
	[ -s "$WORK/header" ] || echo "no members of ${struct%:*} found"
	# Fields whose value the template leaves open have no bits there. Its options and payload,
	# at the end, are no members of the structure.
	awk 'NR == FNR { name[NR] = $1; bits[NR] = $2; next }
		FNR in name && ($1 != name[FNR] || ($2 && $2 != bits[FNR])) { print "not " name[FNR], bits[FNR] ": " $0 }
		END { if (FNR < length(name)) print "too few" }' "$WORK/header" "$WORK/syz" |
		sed "s/^/${struct%:*}: /"
done | verdict "socket_esp.txt has the members of the headers' structures"

# Wire format: the header's figure, flags, options.
sed -nE 's/^\t__(u8|be16|be32|u16)\t([a-z_]+);/\2/p' \
	<(sed -n '/^struct esp_wire {/,/^}/p' include/uapi/linux/esp_wire.h) | grep -v ver_hlen |
	all_in $DOC/wire-format.rst | verdict "wire-format.rst has every field"
{
	sed -nE 's/^\tESP_([A-Z]+)\t= (0x[0-9a-f]+),/\1 \2/p' include/uapi/linux/esp_wire.h |
		while read -r name bit; do
			grep -qE "^$name +$bit " $DOC/wire-format.rst || echo "flag $name $bit"
		done
	sed -nE 's/^\tESP_OPT_([A-Z]+)\t*= ([0-9]+),/\1 \2/p' include/uapi/linux/esp_wire.h |
		while read -r name type; do
			[ "$name" = END ] && continue
			length=$(sed -nE "s/^ \* @ESP_OPT_$name:\t+([0-9]+):.*/\1/p" include/uapi/linux/esp_wire.h)
			grep -qE "^$type +$name +$length " $DOC/wire-format.rst || echo "option $name $type $length"
		done
} | verdict "wire-format.rst has every flag and option, with its number"

sed -nE 's/^\t(ESP_T_[A-Z]+),/\1/p' net/esp/esp.h | grep -v MAX | all_in $DOC/timers.rst |
	verdict "timers.rst has every deadline"

sed -nE 's/^(TRACE_EVENT\(|DEFINE_EVENT\(esp_[a-z]+, )(esp_[a-z_]+),/\2/p' net/esp/trace.h | all_in $DOC/tracing.rst |
	verdict "tracing.rst has every tracepoint"
grep -ohE '\bstruct (esp_[a-z]+) \{' net/esp/{esp,netns,link,dev,first_burst,core/ackq}.h | awk '{ print $2 }' |
	grep -vE 'conf|_cb$|_ops$' | all_in $DOC/locking.rst | verdict "locking.rst has every structure"

# The seed's words, in code and index.
check_seed()
{
	local name

	for name in sk_send_head send_seq recv_seq ack_seq una_seq trans_announced recv_announced \
		announce_seq rcv_mem_pressure esp_recv_count esp_ack_queue esp_burst_length \
		esp_initial_ack_burst_length esp_packets_to_ack esp_skb_xmit esp_push_one_frame \
		esp_cwnd_test esp_enqueue_ack esp_skb_alloc_sk sock_esp_sendmsg esp_opt; do
		grep -qrw "$name" net/esp || echo "the code lacks $name"
		grep -qE "^(struct )?$name +" $DOC/seed-index.rst || echo "seed-index.rst lacks $name"
	done
	# Rows "name  file.c": the file defines it.
	sed -nE 's/^(sock_)?(esp_[a-z_]+|sk_[a-z_]+) +([a-z_/]+\.c) .*/\1\2 \3/p' $DOC/seed-index.rst |
		while read -r name file; do
			grep -qw "$name" "net/esp/$file" || echo "net/esp/$file lacks $name"
		done
}
check_seed | verdict "the seed's names are in code and seed-index.rst"

# protocol.rst: its rules, and the names that it cites.
check_rules()
{
	local n max=22

	for ((n = 1; n <= max; n++)); do
		grep -q "^.. _rule-$n:" $DOC/protocol.rst || echo "rule $n has no label"
		grep -q "^Rule $n: " $DOC/protocol.rst || echo "rule $n has no text"
		awk -v n=$n '$0 == ".. _rule-" n ":" { on = 1; next }
			/^\.\. _/ { on = 0 }
			on && /^  :(Code|Tests):/ { seen[$1] = 1 }
			END { if (!seen[":Code:"]) print "rule " n " names no code"
			      if (!seen[":Tests:"]) print "rule " n " names no test" }' $DOC/protocol.rst
	done
	grep -rnoiE 'rules? [0-9]+' net/esp selftests --include='*.[ch]' --include='*.sh' |
		awk -v max=$max '{ if ($NF > max || !$NF) print "no such rule: " $0 }'
}
check_rules | verdict "protocol.rst has rules 1 to 22, each with code and test; nobody cites another"

# cited PATTERN: print each ``file.c:name`` in the documentation whose file matches.
cited() { grep -ohE '``[a-z_/-]+\.[ch]:[a-z_0-9]+``' $DOC/*.rst | tr -d '`' | grep -E "^($1)" | sort -u; }
cited '[a-z_/]+\.' | while IFS=: read -r file name; do
	if [ ! -e "net/esp/$file" ]; then
		echo "there is no net/esp/$file"
	else
		defined "$file" "$name" || echo "net/esp/$file lacks $name"
	fi
done | verdict "functions that are cited exist ($(cited '[a-z_/]+\.' | wc -l))"

# way: print lines "DEPTH FUNCTION FILE" of data-flow.rst's lists.
way()
{
	sed -nE 's/^(   +)([a-z_]+) +((core\/)?[a-z_]+\.[ch])( .*)?$/\1 \2 \3/p' $DOC/data-flow.rst |
		awk '{ match($0, /^ */); print (RLENGTH - 4) / 2, $1, $2 }'
}

# body FILE FUNCTION: print the function's definition.
body() { sed -nE "/^([a-z].*[[:space:]*])?$2\(/,/^}/p" "net/esp/$1"; }

way | {
	declare -a caller file
	n=0
	while read -r depth name path; do
		n=$((n + 1))
		caller[depth]=$name file[depth]=$path
		[ -e "net/esp/$path" ] || { echo "there is no net/esp/$path"; continue; }
		defined "$path" "$name" || echo "net/esp/$path lacks $name"
		[ "$depth" = 0 ] ||
			body "${file[depth - 1]}" "${caller[depth - 1]}" | grep -qE "\b$name\(" ||
			echo "${caller[depth - 1]} does not call $name"
	done
	[ $n -gt 30 ] || echo "only $n functions found"
} | verdict "data-flow.rst's ways: each function is in its file, and called by the one above"

cited '(sock|host|net|vt)-' | while IFS=: read -r file name; do
	grep -qE "^(TEST(_F(_TIMEOUT)?)?|RECOVERS|ANNOUNCES_EMPTY)\((.*, )?$name[,)]" selftests/*/"$file" || echo "selftests/*/$file lacks $name"
done | verdict "tests that are cited exist"

# state_tests: print the tests in the table of Active Messages' states.
state_tests()
{
	awk '/^state  .*amvia/ { on = 1; next }
		on && /^[0-9a-z]/ {
			split("amvia_ nway_ amudp_", prefix)
			split("28 52 74", from); split("23 21 21", n)
			for (i in from) {
				name = substr($0, from[i], n[i])
				gsub(/ /, "", name)
				if (name)
					print prefix[i] name
			}
		}
		/^Those after/ { exit }' $DOC/active-messages.rst | sort -u
}
state_tests | while read -r name; do
	grep -q "^TEST_F(am, $name)" selftests/am/am-states.c || echo "selftests/am/am-states.c lacks $name"
done | verdict "each of Active Messages' states has a test ($(state_tests | wc -l))"

# Each function ``esp_...()`` that a page names is in the module.
grep -ohE '``(esp_|sock_esp_)[a-z_0-9]+\(' $DOC/*.rst | tr -d '`(' | sort -u | while read -r name; do
	grep -qrE "\b$name\(" net/esp || echo "there is no $name()"
done | verdict "functions of the module that are mentioned exist"

# tests: print the files that protocol.rst names as tests.
tests()
{
	sed -n '/^  :Tests:/,/^$/p' $DOC/protocol.rst | grep -oE '``[a-z0-9_/-]+\.(sh|c)' | tr -d '`' | sort -u
}

# Files.
{
	grep -ohP '(?<![\w/.])(selftests|net|include|tools|Documentation)/[\w./-]*\w' \
		README.md $DOC/*.rst | sort -u | while read -r file; do
		[ -e "$file" ] || echo "there is no $file"
	done
	grep -ohP '(?<![\w/.*-])[a-z-]+\.rst\b' README.md $DOC/*.rst net/esp/*.[ch] net/esp/*/*.[ch] | sort -u | while read -r file; do
		[ -e "$DOC/$file" ] || echo "there is no $DOC/$file"
	done
	for file in $DOC/*; do
		case $file in
		*index.rst | *.png | *README) continue ;;
		esac
		grep -q "${file##*/}" $DOC/index.rst || echo "index.rst lacks $file"
	done
	tests | while read -r file; do
		ls selftests/*/"$file" >/dev/null 2>&1 || [ -e "net/esp/$file" ] || echo "there is no $file"
	done
} | verdict "files that are named exist"

# readme_names FILE: print the names of files that a folder's README has: words with a suffix or a
# slash, and the words in front of two spaces. The build makes those in build/ and *.so, and the
# kernel has kselftest_harness.h.
readme_names()
{
	{
		grep -oE '[A-Za-z0-9_.*/-]+' "$1" | sed 's/[.]$//' | grep -E '[a-z*]\.([a-z]+|[1-8])$|[a-z.*]/[a-z*]?'
		sed -nE 's/^([^ ]+(, [^ ]+)*)  +[^ ].*/\1/p' "$1" | tr -s ', ' '\n'
	} | sort -u | grep -vE '^build/|\.so$|^kselftest_harness\.h$'
}

# A name is of the README's folder or the one above, of the project's, or of the documentation; a
# program's name can stand for its source.
find Documentation net selftests tools -name README | while read -r file; do
	readme_names "$file" | while read -r name; do
		for found in "${file%README}"{"$name","$name.c","../$name"} "$name" "$DOC/$name"; do
			! compgen -G "$found" >/dev/null || continue 2
		done
		echo "$file: there is no $name"
	done
done | verdict "files that the folders' READMEs name exist"

# selftests/tests must run each of these tests.
tests | grep -v '^test/' | while read -r file; do
	name=${file%.*}
	grep -qE "(^|[[:space:]/])$name(\.sh)?([[:space:]]|$)" selftests/tests || echo "selftests/tests lacks $file"
done | verdict "tests that protocol.rst names are run"

make -s -C $DOC/examples O="$WORK" CFLAGS='-O2 -Wall -Wextra -Werror' 2>&1 | verdict "the examples compile"

# The program in README.md compiles.
{
	printf '#include <%s>\n' arpa/inet.h net/if.h sys/socket.h linux/af_esp.h
	echo 'int main(void) {'
	sed -n '/^```c$/,/^```$/p' README.md | grep -v '^```'
	echo 'return 0; }'
} >"$WORK/readme.c"
${CC:-cc} -Wall -Wextra -Werror -Iinclude/uapi -o "$WORK/readme" "$WORK/readme.c" 2>&1 |
	verdict "README's program compiles"

for page in Documentation/man/*.[1-8]; do
	mandoc -T lint -W warning "$page" 2>&1
done | verdict "manual pages"

{
	sed -nE 's/^(int |void \*?|const char \*|struct am_net \*)((AM|am)_[A-Za-z_]+)\(.*/\2/p' tools/am/am.h
	sed -nE '/^enum am_(error|cause) \{/,/^};/s/^\t(AM_[A-Z_]+),.*/\1/p' tools/am/am.h
	sed -n '/^struct am_options {/,/^};/p' tools/am/am.h |
		sed -nE 's/^\t[a-z].*[[:space:]*]([a-z_]+);.*/\1/p'
} | all_in Documentation/man/am.3 | verdict "am.3 has every call, error, cause and option"

sed -n '/^#include <stdio.h>$/,/^\.EE$/{/^\.EE$/d; s/\\e/\\/g; p}' Documentation/man/am.3 >"$WORK/am.c"
{
	${CC:-cc} -Wall -Werror -D_GNU_SOURCE -Iinclude/uapi -Itools/am -DPLUGINS='"."' -o "$WORK/am" \
		"$WORK/am.c" tools/am/[!av]*.c 2>&1 && diff <(echo 42) <(timeout 60 "$WORK/am" 2>&1)
} | verdict "am.3's program adds"

sphinx-build -q -n -C -b html $DOC "$WORK/html" 2>&1 | verdict "reStructuredText, by Sphinx"

{ selftests/lint/words.sh 2>&1 || echo "words.sh: exit status $?"; } |
	verdict "none of a few pronouns stands for an actor; each summary is an imperative"

grep -nE '.{101}' $DOC/*.rst | cut -c1-80 | verdict "no line is longer than 100"

echo "1..$number"
exit $status
