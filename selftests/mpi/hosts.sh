# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Sourced by net-mpi.sh and bench-mpi.sh, after lib.sh: network namespaces as the hosts
# of an Open MPI job, which mpirun reaches as it does with ssh.  A device "mg" of
# each has an IP address, for what Open MPI's daemons say to each other; the
# others have none, and carry ESP.
#
#	mpi_hosts N		n0 … with mg, on a bridge in the namespace "mg"
#	mpi_switch N		their devices v0 …, on a bridge in the namespace "switch": s0 …
#	launch RANKS OPTION... PROGRAM...	in the hosts MPI_HOSTS, from the first
#	mpi RANKS [OPTION...] PROGRAM...	the same by ESP only

MPI=$SRC/build/mpi
MPI_HOSTS=
MPI_TIMEOUT=$(by_kernel 120 480 480)

# Whoever has no Open MPI can't test it, and says so as the last line.
if ! command -v mpirun >/dev/null || ! command -v NPopenmpi >/dev/null; then
	# shellcheck disable=SC2034 # of lib.sh
	FINISHED=1
	echo "Open MPI is not installed (openmpi-bin libopenmpi-dev netpipe-openmpi hpcc)"
	exit 4
fi

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

	# In the place of ssh: "AGENT [OPTION...] HOST COMMAND...". A link "instead-HOST" leads
	# to the folder that this host has in the place of the component's.
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
	# The stock components, too: without their folder there are none of them.
	COMPONENTS=$(ompi_info --path pkglibdir --parsable | sed -n 's/^path:pkglibdir://p')
	[ -d "$COMPONENTS" ] || exit
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

# launch RANKS OPTION... PROGRAM...: as many on each host, in turn.
launch()
{
	local ranks=$1 n hosts
	shift

	n=$(tr -cd , <<<"$MPI_HOSTS" | wc -c)
	n=$(((ranks + n) / (n + 1)))
	hosts=${MPI_HOSTS//,/:$n,}:$n
	timeout -k 5 "$MPI_TIMEOUT" "$TMP/agent" "${MPI_HOSTS%%,*}" mpirun --allow-run-as-root \
		-H "$hosts" -n "$ranks" --map-by node --mca plm_rsh_agent "$TMP/agent" --mca pml ob1 \
		--mca oob_tcp_if_include mg --mca mpi_yield_when_idle 1 --mca osc ^ucx --bind-to none \
		--mca mca_base_component_path "$MPI:$COMPONENTS" "$@"
}

mpi()
{
	local ranks=$1
	shift

	launch "$ranks" --mca btl esp,self "$@"
}
