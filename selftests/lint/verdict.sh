# SPDX-License-Identifier: GPL-2.0-only
#
# For scripts of this folder that compare texts: TAP from lists of faults. A script that sources this
# sets lastpipe, so that verdict counts in its shell.

# The sourcing script prints the plan and exits with $status.
# shellcheck disable=SC2034
number=0 status=0

# verdict TEXT: the test has failed if stdin lists faults, else passed.
verdict()
{
	local wrong
	wrong=$(cat)

	number=$((number + 1))
	if [ -n "$wrong" ]; then
		echo "# ${wrong//$'\n'/$'\n'# }"
		echo "not ok $number - $1"
		status=1
	else
		echo "ok $number - $1"
	fi
}
