// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages go round until something ends the job. With "kill", rank 1 kills itself after some
 * rounds; the shell that started it lives on, so that only its peers can notice. Prints "rounds go
 * on" once they do. With "files PATH", rank 1 can have no more files, removes PATH, and only then
 * rank 0 sends to it. With "midst R", rank 0 kills rank R as soon as the beginning of a long
 * message from rank 1 has come.
 */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include "mpi-test.h"

static void midst(int who)
{
	int size = 64 << 20, done = 0, pid = getpid();
	volatile char *a = calloc(1, size);
	MPI_Request request;

	if (rank == 1) {
		MPI_Send(&pid, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
		memset((char *)a, 1, size);
		MPI_Send((char *)a, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		/* The kernel may have taken the message; the answer never comes. */
		MPI_Recv(&pid, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	MPI_Recv(&pid, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Irecv((char *)a, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
	while (!a[0])
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	CHECK(!done && !a[size - 1], "it has come already");
	puts("in the midst");
	fflush(stdout);
	if (who == 0)
		raise(SIGKILL);
	kill(pid, SIGKILL);
	while (kill(pid, 0) == 0)
		usleep(1000);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK(0, "who was killed has sent it all");
}

int main(int argc, char **argv)
{
	int value = 0, kills = argc > 1 && !strcmp(argv[1], "kill");
	int files = argc > 2 && !strcmp(argv[1], "files");
	struct rlimit none = { 0 };

	begin(&argc, &argv);
	if (argc > 2 && !strcmp(argv[1], "midst"))
		midst(atoi(argv[2]));
	if (files && rank == 0) {
		while (access(argv[2], F_OK) == 0)
			usleep(1000);
		MPI_Ssend(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		CHECK(0, "the message has come");
	} else if (files && setrlimit(RLIMIT_NOFILE, &none) == 0 && unlink(argv[2]) == 0) {
		MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(0, "a message has come");
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
