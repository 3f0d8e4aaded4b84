#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# words.sh [FILE...]: print the lines of comments and documentation that have one of a few
# pronouns for an actor, or a phrase as bare; the kernel-doc summaries that are no imperatives; and
# the comments of fields that lean on the field before. docs.sh fails on the output. Without FILE:
# the whole tree.

cd "${0%/*}/../.." || exit 1
files=("$@")
if [ $# = 0 ]; then
	patterns=('*.c' '*.h' '*.sh' '*.rst' '*.md' '*README' 'Documentation/man/*' '*Makefile' '*Kbuild'
		selftests/tests .ci/run)
	if [ -e .git ]; then
		list=$(git ls-files -- "${patterns[@]}") || exit
	else
		# A tarball.
		for pattern in "${patterns[@]}"; do
			paths+=(-o -path "./$pattern")
		done
		list=$(find . -path ./build -prune -o -type f \( -false "${paths[@]}" \) -print) || exit
	fi
	mapfile -t files <<<"$list"
	[ ${#files[@]} -ge 100 ] || { echo "words.sh: only ${#files[@]} files are found"; exit 1; }
fi

awk '
# In C only comments are text, in shell and make the part after "#", elsewhere each line.
function text(line,	n)
{
	if (kind == "doc")
		return line
	if (kind == "shell")
		return match(line, /(^|[[:space:]])# /) ? substr(line, RSTART + RLENGTH) : ""
	if (!within && !(n = index(line, "/*")))
		return ""
	if (!within)
		line = substr(line, n)
	within = !index(line, "*/")
	return line
}

function complain(what) { print FILENAME ":" FNR ": " what ": " $0 }

FNR == 1 {
	kind = FILENAME ~ /\.[ch]$/ ? "c" : FILENAME ~ /(\.rst|\.md|README)$|\/man\// ? "doc" : "shell"
	within = summary = 0
}

{
	words = text($0)
	# A heading, or a question, may begin with "What".
	if (words ~ /(^|[^A-Za-z"_-])(Who|Whoever|Whose|Whom|Nobody|Somebody|Others|Nor|Likewise)([^A-Za-z_]|$)/ ||
	    (words ~ /(^|[^A-Za-z"_-])What([^A-Za-z_]|$)/ && words !~ /\?/) ||
	    words ~ /(^|[^A-Za-z])(It is for|[Oo]f which)([^A-Za-z]|$)/ || words ~ /[,;] (nor|likewise|so many)([^a-z]|$)/)
		complain("opener")
}

# " * name() - Summary", then the function.
kind == "c" && words ~ /^ \* [a-z_0-9]+\(\) - / {
	summary = FNR ": " words
	split(words, w, / +- +/)
	split(tolower(w[2]), w, /[^a-z_-]/)
	verb = w[1]
}
kind == "c" && summary && !within && /^[a-z#].*[(]/ {
	question = verb ~ /^(is|are|was|were|has|have|may|can|must|does|do|did|should|will)$/
	if (question ? !/(^|[[:space:]])bool[[:space:]]/ : \
	    verb ~ /^(a|an|the|this|that|these|it|how|when|where|what|who|which|whether|if|so|all|each|no|nothing|something|first|last|half|from|in|of|on|to)$/ ||
	    (verb ~ /(s|ing|ed)$/ && verb !~ /^(pass|process|address|bypass|need|feed|embed|bring|ring|shed|speed|proceed)$/))
		print FILENAME ":" summary ": no imperative"
	summary = 0
}

kind == "c" && words ~ /^[[:space:]]*(\/\*\*?)?[[:space:]]*\*? ?@[a-z_0-9]+:.*([Ll]ikewise|so many|as above|ditto)/ { complain("field") }
' "${files[@]}"
