#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A message of Open MPI's over ESP of 2200 MiB, which is more than 2^31 bytes: as several puts, as
# one put, and in fragments. Each byte is compared. The guest needs memory for both ranks:
#
#	selftests/harness/vm run uml --mem 6G --time 600 -- selftests/mpi/net-mpi-big.sh

. "${0%/*}/../lib/lib.sh"
. "${0%/*}/hosts.sh"

BIG=$((2200 << 20))

mpi_hosts 2
cable n0 v0 n1 v1

big()
{
	local before

	before=$(bytes n0 v0)
	mpi 2 "$@" "$MPI/p2p" 0 $BIG && [ $(($(bytes n0 v0) - before)) -gt $BIG ]
}
check "a message of 2200 MiB" big
check "... as one put" big --mca btl_esp_rdma_pipeline_frag_size $((4 << 30))
check "... in fragments" big --mca btl_esp_flags "send,inplace"
check "no sockets are left" until_true 60 no_sockets n0 n1
finish
