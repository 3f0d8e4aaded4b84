#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck disable=SC2015,SC2016,SC2034,SC2154,SC2219,SC2317
#
# esp run: a service manager forbids the program what ESP needs. TCP carries its connections, and the
# log and "esp run --check" say why. It needs a kernel with seccomp.

. "${0%/*}/../lib/run.sh"

AF_ESP=19 AF_NETLINK=16

# forbidden WHY FAMILY...: of these families the program has no sockets. A client and a server go by
# TCP, and the log has WHY for each.
forbidden()
{
	local why=$1
	shift

	: >"$LOG"
	nsenter --net=/run/netns/n1 forbid "$@" -- "${RUN[@]}" run-calls serve accept 0.0.0.0 6030 1 >"$TMP/server" 2>&1 &
	SERVER=$!
	until_true 60 in_tcp n1 6030 && in_host n0 forbid "$@" -- esp run -l "$LOG" run-calls call block 10.1.0.2 6030 &&
		wait $SERVER && told "to 10.1.0.2:6030: TCP, $why" && grep -q "at 0.0.0.0:6030: TCP, .*$why" "$LOG" && return
	down
	return 1
}

# checks STATUS WORDS COMMAND...: the command, which is esp run --check, says WORDS.
checks()
{
	local want=$1 words=$2 status
	shift 2

	in_host n0 "$@" >"$TMP/out"
	status=$?
	cat "$TMP/out"
	[ $status = "$want" ] && grep -q -e "$words" "$TMP/out"
}
all_is_well() { checks 0 "^ok: a device" esp run --check -l "$LOG" run-calls && ! grep "^no" "$TMP/out"; }

# no_exec: nothing may be executed in the file of the library.
no_exec()
{
	local library
	library=$(dirname "$(type -P esp)")/libesp-run.so

	checks 1 "^no: .*libesp-run.so: nothing may be executed there" unshare -m --propagation private bash -c '
		mount --bind "$0" "$0" && mount -o remount,bind,noexec "$0" && exec "$@"' \
		"$library" esp run --check run-calls
}

# A server demands signed segments (TCP_MD5SIG, 14) after it listens by ESP. A client that signs
# connects by TCP. One that doesn't can't connect.
SIGNED='import os, socket, struct, sys, time
def sign(s, addr): s.setsockopt(socket.IPPROTO_TCP, 14, struct.pack("<HH4s120xBBHi80s", 2, 0, socket.inet_aton(addr), 0, 0, 3, 0, b"key"))
s = socket.socket()
if sys.argv[1] == "server":
    s.bind(("", 6031)); s.listen(); s.settimeout(0)
    try: s.accept()
    except BlockingIOError: pass
    open(sys.argv[2] + "/waits", "w")
    while not os.path.exists(sys.argv[2] + "/go"): time.sleep(0.01)
    sign(s, "10.1.0.1"); print("signs", flush=True); s.settimeout(None); c = s.accept()[0]; c.send(c.recv(9))
else:
    if sys.argv[1] == "signs": sign(s, "10.1.0.2")
    s.settimeout(int(sys.argv[2])); s.connect(("10.1.0.2", 6031)); s.send(b"hello"); assert s.recv(9) == b"hello"'
signed()
{
	: >"$LOG"
	serve /usr/bin/python3 -c "$SIGNED" server "$TMP"
	until_true 60 [ -e "$TMP/waits" ] && listens 6031 && touch "$TMP/go" && until_true 60 grep -q signs "$TMP/server" && ! run n0 /usr/bin/python3 -c "$SIGNED" plain 2 2>"$TMP/out" &&
		grep -q "timed out" "$TMP/out" && run n0 /usr/bin/python3 -c "$SIGNED" signs 60 && wait $SERVER &&
		told "to 10.1.0.2:6031: TCP, nothing listens there by ESP" && told "to 10.1.0.2:6031: TCP, it has an option that ESP lacks" &&
		return
	cat "$TMP/out" "$TMP/server" "$LOG"
	down
	return 1
}

check "a server that demands signatures gets clients by TCP only" by_tcp signed
check "nothing is forbidden" all_is_well
check "AF_ESP is forbidden: TCP, and the log says so" by_tcp forbidden "AF_ESP is not permitted here" $AF_ESP
check "... and AF_NETLINK" by_tcp forbidden "AF_NETLINK is not permitted here" $AF_NETLINK
check "esp run --check says so" checks 1 "^no: sockets of ESP: not permitted.*AF_ECONET" \
	forbid $AF_ESP -- esp run --check run-calls
check "... of AF_NETLINK" checks 1 "^no: questions.*AF_NETLINK" forbid $AF_NETLINK -- esp run --check run-calls
check "... of a library that may not be executed" no_exec
check "... of a static program" checks 1 "^no: .*ldconfig.*: is linked statically" esp run --check ldconfig
check "... of a log that can't be written" checks 1 "^no: /nosuch/log: No such file" esp run --check -l /nosuch/log run-calls
check "... of a device" disabled n0 v0 checks 1 "^no: a device that carries ESP: none is enabled" \
	esp run --check run-calls
finish
