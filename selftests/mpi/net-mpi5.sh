#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tools/btl_esp with Open MPI 5.0, of Debian 13: the most important tests of net-mpi.sh, and ranks
# that Slurm starts.
#
#	net-mpi5.sh

# shellcheck disable=SC2034 # of mpi/hosts.sh
MPI_VERSION=5.0
. "${0%/*}/../lib/lib.sh"
. "${0%/*}/hosts.sh"

mpi_hosts 4
mpi_switch 4

version() { chroot "$MPI_ROOT" mpirun --version | grep -F "(Open MPI) 5."; }
check "this is Open MPI 5" version
check "the component and its parameters are listed" listed
check "collective operations, 4 ranks" carries n1 100 mpi 4 "$MPI/coll" 3 4
check "messages, 2 ranks" carries n1 100 two mpi 2 "$MPI/p2p" 1
check "messages of several threads, 4 ranks" mpi 4 "$MPI/p2p" threads 1

for i in 0 1 2 3; do
	in_host n$i ip link set v$i gso_max_segs 1
	in_host n$i tc qdisc add dev v$i root netem loss 1% || exit
done
check "collective operations with 1 % loss, 4 ranks" mpi 4 "$MPI/coll" 3 100
check "... some were sent again" [ "$(stat n0 OutRetrans)" -gt 0 ]
for i in 0 1 2 3; do
	in_host n$i tc qdisc del dev v$i root
done

# The rank's parent lives on, so that only its peer notices.
printf "%s\n" "#!/bin/bash" '"$@"' "sleep 1000" >"$TMP/outlive"
chmod +x "$TMP/outlive"
check "a killed rank ends the job, and its peer says so" \
	dies "rank 1 on host n1 (v1, $(mac n1 v1)) through v0" two mpi 2 "$TMP/outlive" "$MPI/die" kill
#
# Slurm starts the ranks, by its PMIx
#

# at HOST COMMAND...: run COMMAND on HOST, in the root.
at() { chroot "$MPI_ROOT" "$TMP/agent" "$@"; }

slurm_conf()
{
	mkdir -p "$TMP/slurm" || return
	head -c 64 /dev/urandom >"$TMP/slurm/slurm.key"
	chmod 600 "$TMP/slurm/slurm.key"
	echo "CgroupPlugin=disabled" >"$TMP/slurm/cgroup.conf"
	cat >"$TMP/slurm/slurm.conf" <<-END
		ClusterName=esp
		SlurmctldHost=n0(10.8.0.1)
		SlurmUser=root
		AuthType=auth/slurm
		CredType=auth/slurm
		StateSaveLocation=$TMP/slurm
		SlurmdSpoolDir=$TMP/slurm/%n
		SlurmctldPidFile=$TMP/slurm/ctld.pid
		SlurmdPidFile=$TMP/slurm/%n.pid
		ProctrackType=proctrack/pgid
		TaskPlugin=task/none
		SelectType=select/linear
		SlurmdParameters=config_overrides
		ReturnToService=2
		NodeName=n0 NodeAddr=10.8.0.1 CPUs=2
		NodeName=n1 NodeAddr=10.8.0.2 CPUs=2
		PartitionName=all Nodes=n0,n1 Default=YES
	END
}

slurm_up()
{
	local h

	slurm_conf || return
	at n0 slurmctld -D -f "$TMP/slurm/slurm.conf" >"$TMP/slurm/ctld.log" 2>&1 &
	DAEMONS=($!)
	for h in n0 n1; do
		at $h slurmd -D -N $h -f "$TMP/slurm/slurm.conf" >"$TMP/slurm/$h.log" 2>&1 &
		DAEMONS+=($!)
	done
	until_true 60 idle && return
	tail -n 20 "$TMP/slurm/"*.log
	return 1
}
slurm() { at n0 env SLURM_CONF="$TMP/slurm/slurm.conf" "$@"; }
idle() { [ "$(slurm sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; }
# by_slurm RANKS PROGRAM...: Slurm runs the ranks, by ESP only.
by_slurm()
{
	slurm env OMPI_MCA_pml=ob1 OMPI_MCA_btl=esp,self OMPI_MCA_mpi_yield_when_idle=1 \
		OMPI_MCA_mca_base_component_path="$MPI:$COMPONENTS" \
		timeout -k 5 "$MPI_TIMEOUT" srun --mpi=pmix -N 2 -n "$@"
}
check "Slurm is up" slurm_up
check "messages of ranks that Slurm has started" carries n1 100 by_slurm 4 "$MPI/p2p" 1
slurm scontrol shutdown && wait "${DAEMONS[@]}"

check "no sockets are left" until_true 60 no_sockets n0 n1 n2 n3
mpi_end
finish
