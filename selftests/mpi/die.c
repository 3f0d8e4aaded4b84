// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages go round until something ends the job: with "kill", rank 1 kills itself
 * after some rounds, and the shell that started it lives on, so that nobody but its
 * peers can notice. Prints "rounds go on" once they do.
 */
#include <signal.h>
#include "mpi-test.h"

int main(int argc, char **argv)
{
	int value = 0, kills = argc > 1 && !strcmp(argv[1], "kill");

	begin(&argc, &argv);
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
