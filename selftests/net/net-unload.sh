#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The module leaves at once if no program uses it: connections that still wait for their peers end
# then, with an RST where the peer may wait (locking.rst).
#
#	+-----------+             +-----------+
#	| n0     v0 +--- veth ----+ v1     n1 |
#	+-----------+             +-----------+

. "${0%/*}/../lib/lib.sh"

sysctl() { in_host "$1" tee "/proc/sys/net/esp/$2" <<<"$3" >/dev/null; }
in_state() { in_host "$1" esp show -a | grep -q "$2"; }
unloads() { rmmod esp_diag && rmmod esp; }
loads()
{
	insmod "$BUILD/esp.ko" && insmod "$BUILD/esp_diag.ko" || return
	enable n0 v0 && enable n1 v1 || return
	for h in n0 n1; do
		sysctl $h fin_timeout_ms 60000
		sysctl $h time_wait_ms 60000
	done
}

# resets: the RSTs that have come to n1.
resets()
{
	ip netns exec n1 tc -s filter show dev v1 ingress |
		awk '/Sent/ { n += $4 } END { print n + 0 }'
}

hosts 2
cable n0 v0 n1 v1
ip netns exec n1 tc qdisc add dev v1 clsact
ip netns exec n1 tc filter add dev v1 ingress protocol all u32 match u8 0x08 0x08 at 1 action pass || exit
unloads && loads || exit

check "a transfer" transfer n0 v0 n1 v1 -n 100k
check "... whose end is in TIME_WAIT" eval "in_state n0 TIME-WAIT || in_state n1 TIME-WAIT"
check "... and the module goes" unloads
check "... and comes back" loads

# Both programs are killed while the cable is cut, so that neither end knows of the other's.
stuck()
{
	start n0 v0 n1 v1 -n 1000G
	moves n1 || return
	ip netns exec n0 tc qdisc add dev v0 root netem loss 100%
	ip netns exec n1 tc qdisc add dev v1 root netem loss 100%
	end "$CONNECTOR"
	end "$LISTENER"
	until_true 60 in_state n0 FIN-WAIT-1
}
check "connections that can't end" stuck
ip netns exec n0 tc qdisc del dev v0 root
from=$(resets)
check "... do not keep the module" unloads
check "... and an RST came to the peer" [ "$(resets)" -gt "$from" ]
ip netns exec n1 tc qdisc del dev v1 root
check "... and it comes back" loads
check "a transfer again" transfer n0 v0 n1 v1 -n 100k

nsenter --net=/run/netns/n1 esp listen %v1:3000 >/dev/null &
until_true 60 in_state n1 LISTEN
check_fails "a program that uses it keeps it" "in use" eval 'rmmod esp_diag; rmmod esp'
insmod "$BUILD/esp_diag.ko"
end $!
finish
