#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# esp listen, esp connect: which descriptors they use, and that those of others stay as they are.
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+

. "${0%/*}/../lib/lib.sh"

hosts 2
cable n0 v0 n1 v1
PEER=$(mac n1 v1)%v0

# listen PORT [OPTION...]: start a listener on n1, with its input from $TMP/sent; sets LISTENER.
listen()
{
	local port=$1
	shift

	nsenter --net=/run/netns/n1 esp listen -w 60 "$@" ":$port" <"$TMP/sent" >"$TMP/got" 2>"$TMP/said" &
	LISTENER=$!
	until_true 60 listens "$port"
}
listens() { in_host n1 esp show -l | grep -q ":$1\b"; }

head -c 100000 /dev/urandom >"$TMP/sent"

# Without stdin the input is empty. The connection must not get its number: the peer would get its
# own bytes back.
no_stdin()
{
	listen 2001 && in_host n0 esp connect -w 60 "$PEER:2001" <&- >"$TMP/out" && wait $LISTENER &&
		cmp "$TMP/sent" "$TMP/out" && [ ! -s "$TMP/got" ]
}

# Without stdout the data can't be written, which is an error, and no signal.
no_stdout()
{
	listen 2002
	in_host n0 esp connect -w 60 "$PEER:2002" </dev/null >&- 2>"$TMP/err"
	local status=$?
	wait $LISTENER
	cat "$TMP/err"
	[ $status = 6 ] && grep -q "stdout: Bad file descriptor" "$TMP/err"
}

# A pipe that others share stays as it is, while the command runs and after it was killed.
blocks() { python3 -c 'import fcntl, os; exit(fcntl.fcntl(5, fcntl.F_GETFL) & os.O_NONBLOCK != 0)'; }
shared_pipe()
{
	local status

	mkfifo "$TMP/pipe" && exec 5<>"$TMP/pipe" || return
	nsenter --net=/run/netns/n1 esp listen -w 60 :2003 </dev/null >&5 &
	LISTENER=$!
	until_true 60 listens 2003 && echo word | in_host n0 esp connect -w 60 "$PEER:2003" &
	read -r -t 60 -u 5 word && [ "$word" = word ] && blocks
	status=$?
	wait $!
	kill -KILL $LISTENER 2>/dev/null
	wait $LISTENER
	blocks || status=1
	exec 5>&-
	return $status
}

check "without stdin, nothing is sent" no_stdin
check "without stdout, an error tells" no_stdout
check "a pipe that others share stays blocking" shared_pipe
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
