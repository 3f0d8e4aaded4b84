# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced by net-mpi*.sh and speed-mpi.sh, after lib.sh: network namespaces as the hosts
# of an Open MPI job, which mpirun reaches as it does with ssh. The device "mg" of
# each host has an IP address, for messages between Open MPI's daemons; the other
# devices have none, and carry ESP.
#
#	mpi_hosts N		n0 … with mg, on a bridge in the namespace "mg"
#	mpi_switch N		their devices v0 …, on a bridge in the namespace "switch": s0 …
#	launch RANKS OPTION... PROGRAM...	in the hosts MPI_HOSTS, from the first
#	mpi RANKS [OPTION...] PROGRAM...	the same by ESP only
#
# With MPI_VERSION=5.0 Open MPI is that version, in a root of its own, and $MPI is a copy in /tmp,
# which both roots have.

MPI=$SRC/build/mpi
# mpirun closes every possible descriptor, for each host and rank, and there may be a million.
ulimit -n 1024

MPI_HOSTS=
MPI_TIMEOUT=$(by_kernel 120 480 480)
MPI_ROOT=/
AGENT=(--mca plm_rsh_agent "$TMP/agent" --mca oob_tcp_if_include mg)

if [ "$MPI_VERSION" = 5.0 ]; then
	cp -r "$SRC/build/mpi5" "$TMP/mpi" || exit
	MPI=$TMP/mpi
	MPI_ROOT=/run/mpi-root
	AGENT=(--prtemca plm_ssh_agent "$TMP/agent")
# Without Open MPI there is nothing to test; the last line says so.
elif ! command -v mpirun >/dev/null || ! command -v NPopenmpi >/dev/null; then
	# shellcheck disable=SC2034 # of lib.sh
	FINISHED=1
	echo "Open MPI is not installed (openmpi-bin libopenmpi-dev netpipe-openmpi hpcc)"
	exit 4
fi

# mpi_root: make the root for chroot(), which must be a mount. Mounts of a namespace are in both
# roots.
mpi_root()
{
	local d

	mkdir -p "$MPI_ROOT" && mount --bind "$CACHE/roots/trixie-mpi" "$MPI_ROOT" || exit
	for d in dev sys; do
		mount --rbind "/$d" "$MPI_ROOT/$d" || exit
	done
	for d in proc tmp run; do
		mount --bind "/$d" "$MPI_ROOT/$d" || exit
	done
	mount --rbind /run/netns "$MPI_ROOT/run/netns" || exit
}

# mpi_end: remove the mounts.
mpi_end() { [ "$MPI_ROOT" = / ] || umount -lR "$MPI_ROOT"; }

mpi_hosts()
{
	local i

	hosts "$1"
	host mg
	ip -n mg link add br0 type bridge
	ip -n mg link set br0 up
	echo "127.0.0.1 localhost" >"$TMP/hosts"
	for ((i = 0; i < $1; i++)); do
		cable "n$i" mg mg "m$i"
		ip -n mg link set "m$i" master br0
		ip -n "n$i" addr add "10.8.0.$((i + 1))/24" dev mg
		in_host "n$i" sysctl -qw net.esp.dev.mg.enable=0 || exit
		echo "10.8.0.$((i + 1)) n$i" >>"$TMP/hosts"
		MPI_HOSTS+=${MPI_HOSTS:+,}n$i
	done

	# The agent takes the place of ssh: "AGENT [OPTION...] HOST COMMAND...". A link
	# "instead-HOST" leads to the folder that this host has in the place of the component's.
	mkdir "$TMP/empty"
	cat >"$TMP/agent" <<-END
		#!/bin/bash
		while [[ \$1 = -* ]]; do shift; done
		h=\$1
		shift
		set -- "mount --bind $TMP/hosts /etc/hosts && hostname \$h && \$*"
		[ ! -e "$TMP/instead-\$h" ] || set -- "mount --bind $TMP/instead-\$h/ $MPI && \$*"
		exec ip netns exec "\$h" unshare --uts bash -c "\$*"
	END
	chmod +x "$TMP/agent"
	[ "$MPI_ROOT" = / ] || mpi_root
	# The stock components are needed, too, so their folder must be known.
	COMPONENTS=$(chroot "$MPI_ROOT" ompi_info --path pkglibdir --parsable | sed -n 's/^path:pkglibdir://p')
	[ -d "$MPI_ROOT/$COMPONENTS" ] || exit
}

mpi_switch()
{
	local i

	host switch
	ip -n switch link add br0 type bridge
	ip -n switch link set br0 up
	for ((i = 0; i < $1; i++)); do
		cable "n$i" "v$i" switch "s$i"
		ip -n switch link set "s$i" master br0
	done
}

# launch RANKS OPTION... PROGRAM...: run the ranks, the same number on each host, in turn.
launch()
{
	local ranks=$1 n hosts
	shift

	n=$(tr -cd , <<<"$MPI_HOSTS" | wc -c)
	n=$(((ranks + n) / (n + 1)))
	hosts=${MPI_HOSTS//,/:$n,}:$n
	timeout -k 5 "$MPI_TIMEOUT" chroot "$MPI_ROOT" "$TMP/agent" "${MPI_HOSTS%%,*}" mpirun \
		--allow-run-as-root -H "$hosts" -n "$ranks" --map-by node "${AGENT[@]}" --mca pml ob1 \
		--mca mpi_yield_when_idle 1 --mca osc ^ucx --bind-to none \
		--mca mca_base_component_path "$MPI:$COMPONENTS" "$@"
}

mpi()
{
	local ranks=$1
	shift

	launch "$ranks" --mca btl esp,self "$@"
}

in_hosts() { MPI_HOSTS=$1 "${@:2}"; }
two() { in_hosts n0,n1 "$@"; }

# carries HOST PACKETS COMMAND...: COMMAND succeeds, and HOST sends PACKETS by ESP at least.
carries()
{
	local host=$1 packets=$2 before
	shift 2

	before=$(stat "$host" OutData)
	"$@" || return
	[ "$(stat "$host" OutData)" -ge $((before + packets)) ] && return
	echo "$host sent $(($(stat "$host" OutData) - before)) packets of data"
	return 1
}

# bytes HOST DEV: print the bytes that the device has sent.
bytes() { in_host "$1" cat "/proc/net/dev" | awk -v dev="$2:" '$1 == dev { print $10 }'; }

# failed STATUS: the job has failed by itself: 124 and 137 are from "timeout".
failed() { [ "$1" != 0 ] && [ "$1" != 124 ] && [ "$1" != 137 ]; }

# dies WORDS COMMAND...: COMMAND fails before its time is over, and prints WORDS.
dies()
{
	local words=$1 status
	shift

	"$@" >"$TMP/dies" 2>&1
	status=$?
	grep -F "$words" "$TMP/dies" && failed $status && return
	echo "status $status:"
	cat "$TMP/dies"
	return 1
}

# listed: ompi_info lists the component with its parameters.
listed()
{
	local info p

	info=$(OMPI_MCA_mca_base_component_path=$MPI:$COMPONENTS chroot "$MPI_ROOT" ompi_info --param btl esp --level 9)
	for p in if_include if_exclude links sndbuf rcvbuf first_burst bandwidth latency eager_limit \
		rndv_eager_limit max_send_size rdma_pipeline_frag_size put_limit flags exclusivity \
		free_list_num free_list_max free_list_inc; do
		grep -qF "\"btl_esp_$p\"" <<<"$info" || { echo "no $p"; return 1; }
	done
}
