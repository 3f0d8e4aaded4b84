# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced behind lib.sh: the hosts of those who measure Active Messages, n0 and, with the server,
# n1, and its addresses.

EDP='' ESP='' UDP=''

am_hosts()
{
	local i

	hosts 2
	for i in 0 1; do
		in_host n$i sysctl -qw net.ipv6.conf.default.disable_ipv6=1
	done
	cable n0 v0 n1 v1
	for i in 0 1; do
		ip -n n$i addr add 10.9.0.$((i + 1))/24 dev v$i
		# As UDP's are: nobody computes checksums within a machine.
		in_host n$i sysctl -qw net.esp.dev.v$i.tx_checksum=1
	done
	EDP="edp:$(mac n1 v1)%v0" UDP=udp:10.9.0.2
	ESP="esp:${EDP#edp:}"
}

# am_serve: returns when it answers.
am_serve()
{
	nsenter --net=/run/netns/n1 am logp --serve edp:%v1 esp:%v1 "$UDP" >"$TMP/serve" 2>&1 &
	until_true 60 counted_lines 3 "$TMP/serve"
}

# counted_lines N FILE: has as many at least.
counted_lines() { [ "$(wc -l <"$2")" -ge "$1" ]; }
