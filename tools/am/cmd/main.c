// SPDX-License-Identifier: BSD-3-Clause
/*
 * am COMMAND: finds the command's function.
 */
#include <stdlib.h>
#include <string.h>
#include "cmd.h"

const char *argp_program_version = "am " VERSION;

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "logp",      cmd_logp,      "measure what messages cost: LogP, LogGP, P-LogP" },
	{ "calibrate", cmd_calibrate, "find how many credits a device needs" },
};

static void usage(FILE *out)
{
	size_t i;

	fputs("Usage: am COMMAND [OPTION...] ADDRESS...\n"
	      "       am help [COMMAND]\n"
	      "       am --version\n\nCommands:\n", out);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-11s%s\n", commands[i].name, commands[i].help);
	fputs("\nBoth measure with a server, 'am logp --serve'; see am(1).\n", out);
}

static int run(char *name, int argc, char **argv)
{
	static char full[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(name, commands[i].name))
			continue;
		snprintf(full, sizeof(full), "am %s", name);
		argv[0] = full;
		program_invocation_name = full;
		return commands[i].run(argc, argv);
	}
	fprintf(stderr, "am: there is no command '%s'; 'am help' lists them\n", name);
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

unsigned int parse_number(struct argp_state *state, const char *what, const char *text,
			  unsigned int low, unsigned int high)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < low || n > high)
		argp_error(state, "%s '%s' is not a number from %u to %u", what, text, low, high);
	return n;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int code = EXIT_OK;

	argp_err_exit_status = EXIT_USAGE;
	if (!*name) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		puts(argp_program_version);
	else if (!strcmp(name, "help") || !strcmp(name, "--help"))
		code = show_help(argc > 2 ? argv[2] : NULL);
	else
		code = run(argv[1], argc - 1, argv + 1);

	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "am: stdout: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return code;
}
