// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages go round until something ends the job: with "kill", rank 1 kills itself
 * after some rounds, and the shell that started it lives on, so that nobody but its
 * peers can notice. Prints "rounds go on" once they do. With "files", rank 1 can have no
 * more files, and is sent to.
 */
#include <signal.h>
#include <sys/resource.h>
#include "mpi-test.h"

int main(int argc, char **argv)
{
	int value = 0, kills = argc > 1 && !strcmp(argv[1], "kill");
	int files = argc > 1 && !strcmp(argv[1], "files");
	struct rlimit none = { 0 };

	begin(&argc, &argv);
	while (files) {
		if (rank == 0)
			MPI_Ssend(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		else if (setrlimit(RLIMIT_NOFILE, &none) == 0)
			MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	for (long i = 0; ; i++) {
		if (kills && rank == 1 && i == 100)
			raise(SIGKILL);
		MPI_Sendrecv_replace(&value, 1, MPI_INT, (rank + 1) % ranks, 0,
				     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
		if (rank == 0 && i == 50) {
			puts("rounds go on");
			fflush(stdout);
		}
	}
}
