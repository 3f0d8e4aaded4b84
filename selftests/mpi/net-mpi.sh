#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Open MPI over ESP (tools/btl_esp): NetPIPE, HPCC, and programs that compare every
# number, between namespaces as hosts; with two cables, with 1 % loss, with ranks
# that die or lie, with cables that are cut, and with all mistakes of a user.
#
#	+----+ v0 -- +--------+ -- v2 +----+
#	| n0 |       | switch |       | n2 |
#	+----+ v1 -- +--------+ -- v3 +----+	and between n0 and n1 a cable w0 -- w1
#	  n1                            n3
#
#	net-mpi.sh [short | long]
#
# Each job takes seconds to start, so without "long" only the most important ones run; "short" runs
# three of them, for machines that are emulated.

. "${0%/*}/../lib/lib.sh"
. "${0%/*}/hosts.sh"

rounds=$(by_kernel 4 3 2)
long='' repetitions=1
[ "$1" != long ] || long=1 repetitions=${2:-200} rounds=$(by_kernel 10 3 2)

# more TEXT COMMAND...: check, with "long" only.
more() { [ -z "$long" ] || check "$@"; }

mpi_hosts 4
mpi_switch 4
cable n0 w0 n1 w1
ip0 link set w0 down
ip1 link set w1 down

check "the component and its parameters are listed" listed

#
# Programs
#

check "NetPIPE, by ESP" carries n0 100 two mpi 2 NPopenmpi -o /dev/null -n 10 -u 300000

run_hpcc()
{
	# N; the numbers of processes P, Q.
	sed '6s/^[0-9]*/200/; 11s/^[0-9]*/1/; 12s/^[0-9]*/2/' \
		/usr/share/doc/hpcc/examples/_hpccinf.txt >"$TMP/hpccinf.txt" || return
	carries n0 100 two mpi 2 --wdir "$TMP" hpcc || return
	grep -q '^Success=1' "$TMP/hpccoutf.txt" && ! grep -n FAILED "$TMP/hpccoutf.txt"
}
more "HPCC, by ESP" run_hpcc

collective() { carries n1 100 mpi "$1" "$MPI/coll" "$rounds" "$1"; }
check "collective operations, 4 ranks" collective 4

# The rank's parent lives on, so that only its peer notices.
printf "%s\n" "#!/bin/bash" '"$@"' "sleep 1000" >"$TMP/outlive"
chmod +x "$TMP/outlive"
killed() { dies "rank 1 on host n1 (v1, $(mac n1 v1)) through v0" two mpi 2 "$TMP/outlive" "$MPI/die" kill; }
if [ "$1" = short ]; then
	check "a killed rank ends the job, and its peer says so" killed
	check "no sockets are left" until_true 60 no_sockets n0 n1 n2 n3
	finish
fi
more "... 2 ranks" collective 2
more "... 8 ranks" collective 8
more "messages, 2 ranks" carries n1 100 two mpi 2 "$MPI/p2p" 2
more "messages, 8 ranks" mpi 8 "$MPI/p2p" 1
more "messages of several threads, 4 ranks" mpi 4 "$MPI/p2p" threads 1
more "messages in small pieces, few at a time" two mpi 2 --mca btl_esp_eager_limit 1024 \
	--mca btl_esp_rndv_eager_limit 600 --mca btl_esp_max_send_size 3000 --mca btl_esp_free_list_max 4 \
	--mca btl_esp_sndbuf 8192 --mca btl_esp_rcvbuf 8192 "$MPI/p2p" 1
more "... and put" two mpi 2 --mca btl_esp_rdma_pipeline_frag_size 600 --mca btl_esp_sndbuf 8192 \
	--mca btl_esp_rcvbuf 8192 "$MPI/p2p" 1
more "messages whose first burst the user has set" two mpi 2 --mca btl_esp_first_burst 8 "$MPI/p2p" 1
more "two links, one interface" two mpi 2 --mca btl_esp_links 2 "$MPI/p2p" threads 1
chosen() { two mpi 2 --mca btl_base_verbose 1 NPopenmpi -o /dev/null -n 1 -u 100 2>&1 | grep "Using esp btl for send to .* on node n1"; }
more "Open MPI says that it uses it" chosen

#
# Two cables
#

ip0 link set w0 up
ip1 link set w1 up
both()
{
	local v w

	v=$(bytes n0 v0) w=$(bytes n0 w0)
	two mpi 2 "$@" "$MPI/p2p" 1 || return
	v=$(($(bytes n0 v0) - v)) w=$(($(bytes n0 w0) - w))
	echo "v0 $v bytes, w0 $w bytes"
	[ $v -gt 1000000 ] && [ $w -gt 1000000 ]
}
# Their names differ at both ends, so they are connected in their order.
ip0 link property add dev mg altname the-management-network
ip1 link property add dev mg altname the-management-network
more "two cables carry both" both --mca btl_esp_if_exclude the-management-network
# In their order w0 would be connected with v1, which it doesn't reach; n0 has no v1, and says so.
ip0 link property add dev w0 altname the-second-port-of-host-0
more "interfaces by their labels" both --mca btl_esp_if_include the-second-port-of-host-0=b,v0=a,v1=a,w1=b
ip0 link set w0 down
ip1 link set w1 down

#
# Two BTLs
#

# n0 has no TCP. n1 receives by ESP, and coll/adapt's callback sends on to n2, which TCP reaches,
# too; TCP is preferred. With this seed the operation begins at n0.
cat >"$TMP/n0-only-esp" <<-'END'
	#!/bin/bash
	[ "$(hostname)" != n0 ] || export OMPI_MCA_btl=esp,self
	exec "$@"
END
chmod +x "$TMP/n0-only-esp"
preferred()
{
	MPI_HOSTS=n0,n1,n2 carries n0 1 launch 3 --mca btl esp,tcp,self --mca btl_esp_exclusivity 50 \
		--mca btl_tcp_if_include 10.9.0.0/24 --mca coll_adapt_priority 100 \
		--mca coll_adapt_bcast_algorithm 4 "$TMP/n0-only-esp" "$MPI/coll" 1 8
}
ip1 addr add 10.9.0.2/24 dev v1
ip2 addr add 10.9.0.3/24 dev v2
more "a peer that ESP reaches, but another BTL is preferred" preferred
ip1 addr flush dev v1
ip2 addr flush dev v2

#
# Loss
#

for i in 0 1 2 3; do
	in_host n$i ip link set v$i gso_max_segs 1
	in_host n$i tc qdisc add dev v$i root netem loss 1% || exit
done
check "collective operations with 1 % loss, 4 ranks" mpi 4 "$MPI/coll" 10 100
more "messages with 1 % loss" two mpi 2 "$MPI/p2p" 1
check "... some were sent again" [ "$(stat n0 OutRetrans)" -gt 0 ]
for i in 0 1 2 3; do
	in_host n$i tc qdisc del dev v$i root
done

#
# Ends
#

check "a killed rank ends the job, and its peer says so" killed

# midst RANK WORDS: the rank is killed while a long message is on its way.
midst() { dies "$2" two mpi 2 "$TMP/outlive" "$MPI/die" midst "$1" && grep -q "in the midst" "$TMP/dies"; }
more "who sends a long message is killed in its midst" midst 1 "rank 1 on host n1 (v1, $(mac n1 v1)) through v0"
more "who receives one" midst 0 "rank 0 on host n0 (v0, $(mac n0 v0)) through v1"

# lies KIND COMMAND...: rank 1 lies, see mpi/lie.c.
lies() { "${@:2}" two mpi 2 "${OPTIONS[@]}" -x LIE="$1" -x LD_PRELOAD="$MPI/lie.so" "$MPI/p2p" 1; }
OPTIONS=()
refused="lost the connection with rank 1 on host n1 (v1, $(mac n1 v1)) through v0: Protocol error"
nothing()
{
	lies nothing >"$TMP/lies" 2>&1 && grep "a put of nothing is sent" "$TMP/lies" && return
	cat "$TMP/lies"
	return 1
}
more "a put of no bytes" nothing
check "a put that says less than follows" lies short dies "$refused"
OPTIONS=(--mca btl_esp_flags "send,inplace")
more "... but the user wants none" lies short
OPTIONS=()
more "... whose header has another length" lies header dies "$refused"
more "... of more than there can be" lies huge dies "$refused"
more "... beyond the end of memory" lies wrap dies "$refused"
more "another version in the first words of a connection" \
	lies version dies "cannot connect to rank 1 on host n1 (v1, $(mac n1 v1)) through v0: Protocol error"

touch "$TMP/files"
more "a rank that can have no more files ends it" \
	dies "n1: cannot accept connections through v1: Too many open files" \
	two mpi 2 "$MPI/die" files "$TMP/files"

# Start JOB, which goes on until the cable is cut.
rounds_go_on()
{
	rm -f "$TMP/job"	# of a former job
	two mpi 2 "$MPI/die" >"$TMP/job" 2>&1 &
	JOB=$!
	until_true 60 grep -qs "rounds go on" "$TMP/job" && connections n0 1 && return
	cat "$TMP/job"
	n0 esp show
	return 1
}
connections() { [ "$(in_host "$1" esp show | grep -c ESTAB)" = "$2" ]; }

# With two ranks and one interface, 66 connections may be silent.
strangers()
{
	local to before i status pid pids=()

	to=$(mac n1 v1)%v2:$(n1 esp show -l | awk '$2 == "LISTEN" { sub(/.*:/, "", $5); print $5 }')
	before=$(stat n1 PassiveOpens)
	mkfifo "$TMP/silent"
	exec 9<>"$TMP/silent"
	for ((i = 0; i < 80; i++)); do
		nsenter --net=/run/netns/n2 esp connect "$to" <&9 2>"$TMP/stranger" &
		pids+=($!)
	done
	exec 9>&-
	until_true 60 counted n1 PassiveOpens $((before + 80)) && until_true 60 connections n1 67 &&
		moves n0 100
	status=$?
	n1 esp show | grep -c ESTAB
	for pid in "${pids[@]}"; do
		end "$pid"
	done
	[ $status = 0 ] && until_true 60 connections n1 1 &&
		[ "$(grep -c "more than 66 connections have not said whose" "$TMP/job")" = 1 ]
}

cut_cable()
{
	local status

	ip1 link del v1
	wait "$JOB"
	status=$?
	echo "status $status:"
	cat "$TMP/job"
	failed $status && grep -q 'btl:esp: n1: .*through v1: ' "$TMP/job"
}
if [ -n "$long" ]; then
	check "there is one connection, and messages go round" rounds_go_on
	check "strangers that connect and say nothing: the oldest are closed" strangers
	check "a device that goes away ends it" cut_cable
	cable n1 v1 switch s1
	ip -n switch link set s1 master br0
fi

#
# Mistakes of users: one line tells them, and TCP carries the job
#

# any OPTION...: a job that may use TCP, too. without OPTION...: a job that may use only ESP.
# unnamed COMMAND...: the job doesn't ask for ESP by name.
any()
{
	two launch 2 --mca btl_tcp_if_include mg --mca btl "${BTL:-esp,tcp,self}" "$@" \
		NPopenmpi -o /dev/null -n 1 -u 100
}
unnamed() { BTL=^vader,sm "$@"; }
without() { two mpi 2 "$@" NPopenmpi -o /dev/null -n 1 -u 100; }

# goes_on WORDS LINES OPTION...: LINES lines have WORDS, nothing leaves by ESP, and the job ends
# well.
goes_on()
{
	local words=$1 lines=$2 before
	shift 2

	before=$(stat n0 OutData)
	any "$@" >"$TMP/any" 2>&1 || { cat "$TMP/any"; return 1; }
	if [ "$(grep -cF "$words" "$TMP/any")" != "$lines" ] || [ "$(stat n0 OutData)" != "$before" ]; then
		echo "$lines lines \"$words\" expected:"
		cat "$TMP/any"
		return 1
	fi
}

nosuch() { goes_on "interface 'nosuch' can't be used: there is no such interface" 2 --mca btl_esp_if_include nosuch; }
check "an interface that doesn't exist" unnamed nosuch
more "... and ESP is asked for by name" nosuch
more "... and without TCP: it ends as Open MPI lets it" dies "unreachable" \
	without --mca btl_esp_if_include nosuch
more "a name or label that is too long" goes_on "interface 'v0' can't be used: a name or label has 127 characters at most" 2 \
	--mca btl_esp_if_include "v0=$(printf %0128d 0)"
more "a parameter out of its range" goes_on "btl_esp_links is 99, which is not from 1 to 16" 2 \
	--mca btl_esp_links 99
more "more fragments than there is memory for" goes_on "no memory for fragments" 2 \
	--mca btl_esp_free_list_num 100000
more "a first burst that is too long" goes_on "btl_esp_first_burst is 65, which is not from -1 to 64" 2 \
	--mca btl_esp_first_burst 65
more "a size that is too small" goes_on "btl_esp_eager_limit is 10, which is not from" 2 \
	--mca btl_esp_eager_limit 10
more "both lists of interfaces" goes_on "btl_esp_if_include and btl_esp_if_exclude exclude each other" 2 \
	--mca btl_esp_if_include v0 --mca btl_esp_if_exclude v1
ip1 link set v1 down
more "an interface that is down, named" goes_on "n1: interface 'v1' can't be used: it is down" 1 \
	--mca btl_esp_if_include v0,v1
more "... not named" goes_on "n1: no interface is up and enabled for ESP" 1
ip1 link set v1 up
ip -n switch link set s1 down
more "no link" goes_on "n1: interface 'v1' can't be used: it has no link" 1 --mca btl_esp_if_include v0,v1
ip -n switch link set s1 up
n1 sysctl -qw net.esp.dev.v1.enable=0
more "not enabled" goes_on "n1: interface 'v1' can't be used: it is not enabled for ESP" 1 \
	--mca btl_esp_if_include v0,v1
more "... not named, nor ESP: it says nothing" unnamed goes_on "btl:esp: n1: " 0
n1 sysctl -qw net.esp.dev.v1.enable=1
# lacking WORDS: a peer lacks the component; a line has WORDS. The job doesn't ask for ESP by name,
# because then Open MPI would end it.
lacking()
{
	unnamed any >"$TMP/any" 2>&1 && [ "$(grep -cF "$1" "$TMP/any")" = 1 ] && return
	cat "$TMP/any"
	return 1
}
ln -s "$TMP/empty" "$TMP/instead-n1"
more "a peer without the component" lacking "n0: rank 1 on host n1 has no ESP"
ln -sfn "$MPI/other" "$TMP/instead-n1"
more "a peer with another version of it" \
	lacking "n0: rank 1 on host n1 has another byte order or version"
rm "$TMP/instead-n1"
more "all is well again" carries n0 1 without

# The module is loaded again, for later tests.
no_module()
{
	local status

	rmmod esp_diag esp || return
	any >"$TMP/any" 2>&1 && [ "$(grep -cF "load the module: modprobe esp" "$TMP/any")" = 2 ]
	status=$?
	[ $status = 0 ] || cat "$TMP/any"
	insmod "$BUILD/esp.ko" && insmod "$BUILD/esp_diag.ko" && return $status
}
check "no sockets are left" until_true 60 no_sockets n0 n1 n2 n3
check "the module isn't loaded" no_module
finish
