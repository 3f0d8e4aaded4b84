// SPDX-License-Identifier: GPL-2.0-only
/*
 * forbid FAMILY... -- COMMAND...: run a command to which socket families are forbidden, by their
 * numbers, as RestrictAddressFamilies= of systemd does it: socket() fails with EAFNOSUPPORT.
 */
#include <err.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAMILIES 48

int main(int argc, char **argv)
{
	struct sock_filter code[5 + 2 * FAMILIES] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .filter = code };
	int i, n = 3;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, args[0]));
	for (i = 1; i < argc && strcmp(argv[i], "--") && i < FAMILIES; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(argv[i]),
							 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							 SECCOMP_RET_ERRNO | EAFNOSUPPORT);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog.len = n;
	if (i + 1 >= argc || strcmp(argv[i], "--"))
		errx(1, "see its first lines");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		err(1, "seccomp");
	execvp(argv[i + 1], argv + i + 1);
	err(1, "%s", argv[i + 1]);
}
