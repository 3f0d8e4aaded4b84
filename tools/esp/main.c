// SPDX-License-Identifier: GPL-2.0-only
/*
 * esp COMMAND: find the command's function.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "esp.h"

const char *argp_program_version = "esp " VERSION;

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "listen",  cmd_listen,  "wait for a connection and pipe it to stdin and stdout" },
	{ "connect", cmd_connect, "connect stdin and stdout to a listening socket" },
	{ "perf",    cmd_perf,    "measure throughput and latency" },
	{ "ping",    cmd_ping,    "ask a host whether it has ESP: round trips, MTU" },
	{ "show",    cmd_show,    "show sockets, counters or devices" },
	{ "kill",    cmd_kill,    "end sockets" },
	{ "dev",     cmd_dev,     "enable or disable ESP on devices" },
	{ "run",     cmd_run,     "run a program, its TCP connections over ESP" },
	{ "proxy",   cmd_proxy,   "relay connections between TCP and ESP" },
};

static void usage(FILE *out)
{
	size_t i;

	fputs("Usage: esp COMMAND [OPTION...] [ARG...]\n"
	      "       esp help [COMMAND]\n"
	      "       esp --version\n\nCommands:\n", out);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-9s%s\n", commands[i].name, commands[i].help);
	fputs("\nAddresses are MAC%DEV:PORT, as 02:00:00:00:00:01%eth0:5000; see esp(8).\n",
	      out);
}

static int run(char *name, int argc, char **argv)
{
	static char full[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(name, commands[i].name))
			continue;
		snprintf(full, sizeof(full), "esp %s", name);
		argv[0] = full;
		program_invocation_name = full;
		return commands[i].run(argc, argv);
	}
	fprintf(stderr, "esp: there is no command '%s'; 'esp help' lists them\n",
		name);
	return EXIT_USAGE;
}

static int show_help(char *name)
{
	char option[] = "--help", *argv[] = { name, option, NULL };

	if (name)
		return run(name, 2, argv);
	usage(stdout);
	return EXIT_OK;
}

/*
 * Give descriptors 0 to 2 that are closed a file that is empty and can't be written. No socket may
 * get their numbers.
 */
static void fill_standard_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int code = EXIT_OK;

	if (strcmp(name, "run"))	/* the program gets what there is */
		fill_standard_streams();
	argp_err_exit_status = EXIT_USAGE;
	if (!*name) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		puts(argp_program_version);
	else if (!strcmp(name, "help") || !strcmp(name, "--help"))
		code = show_help(argv[2]);
	else
		code = run(argv[1], argc - 1, argv + 1);

	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "esp: stdout: %s\n", strerror(errno));
		return EXIT_IO;
	}
	return code;
}
