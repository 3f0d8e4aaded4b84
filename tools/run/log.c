// SPDX-License-Identifier: BSD-3-Clause
/*
 * The settings of "esp run", and the log: a line for each connection and listener.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "run.h"

bool run_only;
bool run_logs;
int run_wait_ms = 200;

static int log_fd = -1;
static char program[32];	/* its name; programs write over their arguments */
static struct stat log_file;

/* Open a file out of the program's way, and never in the place of a missing standard stream. */
static int open_high(const char *path)
{
	int high, fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);

	if (fd < 0)
		return fd;
	high = sys_fcntl(fd, F_DUPFD_CLOEXEC, RUN_HIGH);
	if (high < 0)
		high = sys_fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	sys_close(fd);
	return high;
}

/*
 * Open the log. Standard error is not used if it is a socket: it can be the connection that the
 * program serves. It has no copy, because who reads it from a pipe waits until all are closed: a
 * daemon that closes standard error leaves the log.
 */
static void open_log(const char *path)
{
	bool file = strcmp(path, "stderr");
	int fd = file ? open_high(path) : STDERR_FILENO;

	if (fd < 0)
		return;
	if (fstat(fd, &log_file) || (!file && S_ISSOCK(log_file.st_mode))) {
		if (file)
			sys_close(fd);
		return;
	}
	log_fd = fd;
	run_logs = true;
}

static void __attribute__((constructor)) start(void)
{
	const char *log = secure_getenv("ESP_RUN_LOG");
	const char *wait = secure_getenv("ESP_RUN_WAIT");
	int err = errno, ms = 0;

	snprintf(program, sizeof(program), "%s", program_invocation_short_name);
	run_only = secure_getenv("ESP_RUN_ONLY");
	/* strtol() has another name in newer versions of glibc */
	for (; wait && *wait >= '0' && *wait <= '9' && ms <= 60000; wait++)
		ms = 10 * ms + *wait - '0';
	if (ms)
		run_wait_ms = ms;
	if (log)
		open_log(log);
	errno = err;
}

/* glibc's strerror() may take locks, and musl has no other. */
#pragma weak strerrordesc_np

const char *run_error(void)
{
	return strerrordesc_np ? strerrordesc_np(errno) : strerror(errno);
}

/*
 * Why is there no socket of AF_ESP or AF_NETLINK, by errno? A service manager's filter of system
 * calls forbids families with the error of a kernel that doesn't have them.
 */
const char *run_no_socket(int family)
{
	switch (errno) {
	case EAFNOSUPPORT:
		if (family == AF_ESP && access("/proc/self/net", F_OK))
			return "the kernel has no ESP here, or AF_ESP is not permitted";
		if (family == AF_ESP && access("/proc/self/net/esp", F_OK))
			return "the kernel has no ESP here";
		__attribute__((fallthrough));
	case EPERM:
	case EACCES:
		return family == AF_ESP ? "AF_ESP is not permitted here" :
					  "AF_NETLINK is not permitted here";
	default:
		return run_error();
	}
}

/* A program wants the log's number for another file: let the log have another one. */
void run_log_leave(int fd)
{
	struct stat st;
	int high;

	if (fd != log_fd || fd == STDERR_FILENO || run_is_vfork_child() || fstat(fd, &st) ||
	    st.st_dev != log_file.st_dev || st.st_ino != log_file.st_ino)
		return;
	high = sys_fcntl(fd, F_DUPFD_CLOEXEC, RUN_HIGH);
	if (high >= 0)
		log_fd = high;
}

/* Write a line at once; drop it if the program has closed the log's file. */
void run_log(const char *format, ...)
{
	char line[256];
	struct stat st;
	int err = errno;
	va_list args;
	size_t n;

	if (log_fd < 0 || fstat(log_fd, &st) || st.st_dev != log_file.st_dev ||
	    st.st_ino != log_file.st_ino)
		goto out;
	n = snprintf(line, sizeof(line), "esp run: %s[%d]: ", program, getpid());
	if (n < sizeof(line)) {
		va_start(args, format);
		n += vsnprintf(line + n, sizeof(line) - n, format, args);
		va_end(args);
	}
	if (n > sizeof(line) - 1)
		n = sizeof(line) - 1;
	line[n++] = '\n';
	if (syscall(SYS_write, log_fd, line, n) < 0)
		goto out;
out:
	errno = err;
}
