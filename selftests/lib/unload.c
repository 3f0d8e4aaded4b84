// SPDX-License-Identifier: GPL-2.0-only
/*
 * unload MODULE: ask the kernel to unload a module even if it is in use; rmmod refuses that
 * itself. Print the kernel's answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: unload MODULE\n");
		return 2;
	}
	if (!syscall(SYS_delete_module, argv[1], O_NONBLOCK))
		return 0;
	printf("%s\n", strerror(errno));
	return 1;
}
