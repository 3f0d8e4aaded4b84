#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck disable=SC2086
#
# Would the tests catch a bug? Each patch in this folder plants one, and names in its first
# lines the test that has to catch it:
#
#	# Caught-by: host-NAME
#	# Caught-by: kunit KERNEL
#	# Caught-by: run KERNEL [OPTION]... -- COMMAND
#
# Without the patches the tests must pass first. Everything happens in a copy of the tree;
# build/log/mutants has the tests' output.
#
#	mutants.sh [PATTERN]	those whose names match
#	mutants.sh --check	check only that each patch applies, and names a test

SRC=$(cd "${0%/*}/../.." && pwd)
HARNESS=$SRC/selftests/harness
PATCHES=$SRC/selftests/mutants
# shellcheck source=selftests/harness/fetch.sh
. "$HARNESS/fetch.sh"
LIMIT=1200	# seconds; the harness stops a test that hangs much earlier
number=0 status=0 caught=0

# verdict ok|'not ok' TEXT
verdict()
{
	number=$((number + 1))
	echo "$1 $number - $2"
	[ "$1" = ok ] || status=1
}

name_of() { basename "$1" .patch; }
test_of() { sed -n 's/^# Caught-by: //p' "$1"; }

# plant DIRECTORY PATCH [OPTION]: apply the patch there; git must not look for a repository above.
plant() { (cd "$1" && GIT_CEILING_DIRECTORIES=${1%/*} git apply --whitespace=nowarn $3 "$2"); }

# program NAME: true if a folder of selftests/ has its source.
program() { ls "$SRC"/selftests/*/"$1.c" >/dev/null 2>&1; }

# known TEST: true if there is such a test.
known()
{
	set -- $1
	case "$1 $2" in
	host-*) [ $# = 1 ] && program "$1" ;;
	"kunit uml" | "kunit uml-debug") [ $# = 2 ] ;;
	"run uml" | "run uml-debug" | "run uml-virtual" | "run 6.1")
		while [ $# != 0 ] && [ "$1" != -- ]; do
			shift
		done
		[ -f "$SRC/$2" ] || program "$2"
		;;
	*) false ;;
	esac
}

# build TEST: build in the copy what the test needs, if the patch changed it.
build()
{
	set -- $1
	case $1 in
	host-*)
		fetch_source
		make -s -C "$COPY/selftests" LINUX="$SOURCE" "$COPY/build/selftests/$1"
		;;
	kunit) "$COPY/selftests/harness/vm" modules "$2" kunit ;;
	run)
		"$COPY/selftests/harness/vm" modules "$2" || return
		# Programs for the host take long to build, and this test runs none of them.
		[ ! -d "$COPY/build/selftests" ] || find "$COPY/build/selftests" -name "host-*" -exec touch {} +
		;;
	esac
}

# run_test TEST
run_test()
{
	set -- $1
	case $1 in
	host-*) timeout --foreground -k 30 $LIMIT "$COPY/build/selftests/$1" ;;
	*) timeout --foreground -k 30 $LIMIT "$COPY/selftests/harness/vm" "$@" ;;
	esac
}

# evidence LOG: print the first check that failed, or the first line of a complaint.
evidence()
{
	awk '/^not ok no KUnit results/ { next }	# the kernel died, a later line says why
		/the guest did not start/ { next }	# this line says nothing about the bug
		/^not ok/ || complaint { print; exit }
		/runtime error: |ERROR: AddressSanitizer/ { print; exit }
		/^vm: the kernel complained:/ { complaint = 1 }' "$1" | cut -c1-200
}

# try PATCH: plants it, runs its test, takes it away again.
try()
{
	local name test log start=$SECONDS result what

	name=$(name_of "$1")
	test=$(test_of "$1")
	log=$LOGS/$name.log
	if ! plant "$COPY" "$1" >"$log" 2>&1; then
		comment "$log"
		verdict 'not ok' "$name no longer applies"
		return
	fi
	if ! build "$test" >"$log" 2>&1; then
		comment "$log"
		verdict 'not ok' "$name does not build"
	else
		run_test "$test" >"$log" 2>&1 </dev/null
		result=$?
		what=$(evidence "$log")
		if [ $result = 0 ]; then
			verdict 'not ok' "$name SURVIVED $test"
		elif [ -z "$what" ]; then
			comment "$log"
			verdict 'not ok' "$name: $test ended with status $result, and without a word why"
		else
			verdict ok "$name caught by $test in $((SECONDS - start)) s: $what"
			caught=$((caught + 1))
		fi
	fi
	plant "$COPY" "$1" -R || die "cannot take $name away again"
}

comment() { tail -20 "$1" | sed 's/^/# /'; }

check_all()
{
	local p wrong

	for p in "$PATCHES"/*.patch; do
		wrong=$(plant "$SRC" "$p" --check 2>&1)
		known "$(test_of "$p")" || wrong+="there is no test '$(test_of "$p")'"
		[ -z "$wrong" ] || echo "# ${wrong//$'\n'/$'\n'# }"
		verdict "$([ -z "$wrong" ] || echo not\ )ok" "$(name_of "$p") can be planted"
	done
}

main()
{
	local p test tests=() chosen=()

	need git rsync
	echo TAP version 13
	if [ "$1" = --check ]; then
		check_all
		echo "1..$number"
		exit $status
	fi
	for p in "$PATCHES"/*.patch; do
		# shellcheck disable=SC2053
		[[ $(name_of "$p") = ${1:-*} ]] || continue
		test=$(test_of "$p")
		known "$test" || die "$(name_of "$p") names no test that there is: '$test'"
		chosen+=("$p")
		[[ " ${tests[*]/%/ |} " = *" $test | "* ]] || tests+=("$test")
	done
	[ ${#chosen[@]} != 0 ] || die "no mutant has the name $1"

	LOGS=$SRC/build/log/mutants
	mkdir -p "$LOGS"
	WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/esp-mutants.XXXXXX") || exit
	# shellcheck disable=SC2016
	at_end 'rm -rf "$WORK"'
	COPY=$WORK/tree
	git -C "$SRC" ls-files -z | rsync -a --from0 --files-from=- "$SRC/" "$COPY/" || exit
	for test in "${tests[@]}"; do
		if ! { build "$test" && run_test "$test"; } >"$LOGS/none.log" 2>&1 </dev/null; then
			comment "$LOGS/none.log"
			verdict 'not ok' "$test passes without any"
			echo "1..$number"
			exit 1
		fi
		verdict ok "$test passes without any"
	done
	for p in "${chosen[@]}"; do
		try "$p"
	done
	echo "1..$number"
	echo "# $caught of ${#chosen[@]} caught"
	exit $status
}

main "$@"
