// SPDX-License-Identifier: GPL-2.0-only
/*
 * esp run: run a program with libesp-run.so (tools/run), which carries its TCP connections over
 * ESP.
 */
#include <elf.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "esp.h"

#define LIBRARY		"libesp-run.so"
#define SCRIPTS_MAX	4	/* interpreters that are scripts, too; the kernel's limit */

struct request {
	const char *log;
	bool verbose;
	const char *wait;
	bool only;
	bool check;
	char **program;
};

/* Find a program as execvp() does. */
static bool find(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return !access(path, X_OK);
	}
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; dirs; dirs = *end ? end + 1 : NULL) {
		struct stat st;

		end = strchrnul(dirs, ':');
		snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - dirs), dirs,
			 end == dirs ? "" : "/", name);
		if (!access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

/* Is it a script? Sets @path to its interpreter. */
static bool is_script(int fd, char path[PATH_MAX])
{
	char line[PATH_MAX], *word, *save;
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	word = strtok_r(line + 2, " \t", &save);
	if (!word)
		return false;
	snprintf(path, PATH_MAX, "%s", word);
	word = strrchr(path, '/');
	if (!strcmp(word ? word + 1 : path, "env")) {
		word = strtok_r(NULL, " \t", &save);
		if (word && *word != '-') {
			char name[PATH_MAX];

			snprintf(name, sizeof(name), "%s", word);
			return find(name, path);
		}
	}
	return true;
}

/*
 * Does the program gain privileges? Then the kernel and the dynamic linker take no library from the
 * user.
 */
static bool gains_privileges(int fd, const struct stat *st)
{
	return ((st->st_mode & S_ISUID) && st->st_uid != getuid()) ||
	       ((st->st_mode & S_ISGID) && st->st_gid != getgid()) ||
	       (getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

/* Is there a note "Go"? Go programs make system calls themselves, even if linked dynamically. */
static bool is_go(int fd, const Elf64_Phdr *ph)
{
	char notes[1024];
	ssize_t n = pread(fd, notes, sizeof(notes), ph->p_offset), at = 0;
	Elf64_Nhdr note;

	if (n > 0 && (size_t)n > ph->p_filesz)
		n = ph->p_filesz;
	while (at + (ssize_t)sizeof(note) + 4 <= n) {
		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		if (note.n_namesz == 4 && !memcmp(notes + at, "Go\0", 4))
			return true;
		if (note.n_namesz > sizeof(notes) || note.n_descsz > sizeof(notes))
			break;
		at += ((note.n_namesz + 3) & ~3u) + ((note.n_descsz + 3) & ~3u);
	}
	return false;
}

/* Return why a preloaded library would have no effect; NULL: no reason is known. */
static const char *look_at_elf(int fd)
{
	bool dynamic = false, go = false;
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	int i;

	if (pread(fd, &eh, sizeof(eh), 0) < EI_NIDENT || memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return NULL;	/* exec() reports it */
	if (eh.e_ident[EI_CLASS] != (sizeof(long) == 8 ? ELFCLASS64 : ELFCLASS32))
		return "is of another word size than " LIBRARY;
	if (eh.e_ident[EI_CLASS] != ELFCLASS64)
		return NULL;
	for (i = 0; i < eh.e_phnum; i++) {
		if (pread(fd, &ph, sizeof(ph), eh.e_phoff + i * sizeof(ph)) != sizeof(ph))
			return NULL;
		if (ph.p_type == PT_INTERP)
			dynamic = true;
		if (ph.p_type == PT_NOTE && is_go(fd, &ph))
			go = true;
	}
	if (go)
		return "is a program in Go, whose system calls no library sees";
	return dynamic ? NULL : "is linked statically, and loads no library";
}

/*
 * Return why the library would have no effect in the program @path, or in its interpreter, to which
 * @path is set; NULL: no reason is known.
 */
static const char *why_not(char path[PATH_MAX])
{
	const char *text = NULL;
	struct stat st;
	int depth, fd;

	for (depth = 0; depth <= SCRIPTS_MAX; depth++) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)	/* it may be executed, but not be read */
			return errno == ENOENT ? "does not exist" : NULL;
		if (!is_script(fd, path))
			break;
		close(fd);
	}
	if (depth > SCRIPTS_MAX)
		return NULL;		/* exec() reports it */
	if (!fstat(fd, &st) && gains_privileges(fd, &st))
		text = "gains privileges (set-user-ID or capabilities), and loads no library";
	else
		text = look_at_elf(fd);
	close(fd);
	return text;
}

/* End the program if the library would have no effect in it. */
static void refuse(const char *program)
{
	char path[PATH_MAX];
	const char *text;

	snprintf(path, sizeof(path), "%s", program);
	text = why_not(path);
	if (text)
		error(EXIT_USAGE, 0, "%s %s; by itself it works by TCP, by esp proxy over ESP",
		      path, text);
}

/*
 * Find the library beside this program, where it was built; else where it is installed. Returns
 * false and errno if it can't be read.
 */
static bool find_library(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof(LIBRARY) - 1);
	char *slash;

	if (n > 0) {
		path[n] = '\0';
		slash = strrchr(path, '/');
		if (slash) {
			strcpy(slash + 1, LIBRARY);
			if (!access(path, R_OK))
				return true;
		}
	}
	snprintf(path, PATH_MAX, "%s", RUNDIR "/" LIBRARY);
	return !access(path, R_OK);
}

static void preload(void)
{
	const char *others = getenv("LD_PRELOAD");
	char library[PATH_MAX], *all;

	if (!find_library(library))
		error(EXIT_IO, errno, "%s", library);
	if (strpbrk(library, ": "))
		error(EXIT_IO, 0, "%s: the dynamic linker takes no path with a colon or space",
		      library);
	/* some of the others insist on being first: AddressSanitizer's */
	if (asprintf(&all, "%s%s%s", others ? others : "", others && *others ? ":" : "",
		     library) < 0 || setenv("LD_PRELOAD", all, 1))
		error(EXIT_IO, errno, "memory");
	free(all);
}

/* Set the log. A relative name is of this directory, even if the program changes its own. */
static void set_log(const char *path)
{
	char dir[PATH_MAX] = "", *whole;
	int fd;

	if (*path != '/' && !getcwd(dir, sizeof(dir)))
		error(EXIT_IO, errno, "%s", path);
	if (asprintf(&whole, "%s%s%s", dir, *dir ? "/" : "", path) < 0)
		error(EXIT_IO, errno, "memory");
	fd = open(whole, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd < 0)
		error(EXIT_IO, errno, "%s", path);
	close(fd);
	setenv("ESP_RUN_LOG", whole, 1);
	free(whole);
}

static const struct argp_option options[] = {
	{ "verbose", 'v', NULL, 0, "Tell of each connection and listener on standard error", 0 },
	{ "log", 'l', "FILE", 0, "Tell of them in FILE, at its end", 0 },
	{ "only", 'o', NULL, 0, "Connections to other hosts fail that ESP does not carry", 0 },
	{ "check", 'c', NULL, 0, "Say whether ESP can carry its connections; run nothing", 0 },
	{ "wait", 'w', "MS", 0, "How long a peer may take to answer by ESP; 200 if not given", 0 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct request *r = state->input;

	switch (key) {
	case 'v':
		r->verbose = true;
		break;
	case 'l':
		r->log = arg;
		break;
	case 'o':
		r->only = true;
		break;
	case 'c':
		r->check = true;
		break;
	case 'w':
		parse_number(state, arg, "wait", 1, 60000);
		r->wait = arg;
		break;
	case ARGP_KEY_ARGS:
		r->program = state->argv + state->next;
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "the program is missing");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/*
 * "esp run --check": a service manager may forbid each thing that the library needs, and only a
 * process that it has started can tell.
 */

/* Print a line of the report; @why: NULL if it is so. Returns whether it is not so. */
static bool report(const char *what, const char *why)
{
	printf("%s: %s%s%s\n", why ? "no" : "ok", what, why ? ": " : "", why ? why : "");
	return why;
}

static const char *why_no_library(char path[PATH_MAX])
{
	const char *why = NULL;
	void *map;
	int fd;

	if (!find_library(path))
		return strerror(errno);
	if (strpbrk(path, ": "))
		return "the dynamic linker takes no path with a colon or space";
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return strerror(errno);
	map = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		why = errno == EPERM ? "nothing may be executed there (noexec, NoExecPaths=)" :
				       strerror(errno);
	else
		munmap(map, 1);
	close(fd);
	return why;
}

static const char *why_no_socket(int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);

	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	if (family == AF_ESP && errno == EAFNOSUPPORT && access("/proc/self/net/esp", F_OK))
		return "the kernel has no ESP; load the module: modprobe esp";
	if (errno == EAFNOSUPPORT || errno == EPERM || errno == EACCES)
		return family == AF_ESP ?
		       "not permitted here (RestrictAddressFamilies= lacks AF_ECONET, number 19)" :
		       "not permitted here (RestrictAddressFamilies= lacks AF_NETLINK)";
	return strerror(errno);
}

/* Is there a device, other than loopback, that carries ESP? */
static const char *why_no_device(void)
{
	FILE *file = fopen("/proc/self/net/esp/dev", "re");
	char line[256], name[IF_NAMESIZE];
	const char *why = "none is enabled (esp dev enable)";
	int enabled;

	if (!file)
		return errno == ENOENT ? "the kernel has no ESP" :
					 strerror(errno);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%15s %d", name, &enabled) == 2 && enabled == 1 &&
		    strcmp(name, "lo"))
			why = NULL;
	}
	fclose(file);
	return why;
}

static const char *why_no_log(const char *path)
{
	int fd;

	if (!access(path, F_OK)) {
		fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
		if (fd >= 0) {
			close(fd);
			return NULL;
		}
	} else if (!access(dirname(strdupa(path)), W_OK)) {
		return NULL;
	}
	return strerror(errno);
}

static int check(const struct request *r, const char *program)
{
	char path[PATH_MAX], library[PATH_MAX];
	const char *why;
	bool no = false;

	snprintf(path, sizeof(path), "%s", program);
	why = why_not(path);
	no |= report(path, why);
	why = why_no_library(library);
	no |= report(library, why);
	no |= report("sockets of ESP", why_no_socket(AF_ESP, SOCK_STREAM, 0));
	no |= report("questions about routes and neighbours",
		     why_no_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	no |= report("a device that carries ESP", why_no_device());
	if (r->log)
		no |= report(r->log, why_no_log(r->log));
	return no ? EXIT_USAGE : EXIT_OK;
}

/* A script without an interpreter is the shell's, as with execvp(). */
static void execute_by_shell(char *path, char **program)
{
	char shell[] = "/bin/sh";
	size_t n = 0;
	char **args;

	while (program[n])
		n++;
	refuse(shell);
	args = calloc(n + 2, sizeof(*args));
	if (!args)
		error(EXIT_IO, errno, "memory");
	args[0] = shell;
	args[1] = path;
	memcpy(args + 2, program + 1, (n - 1) * sizeof(*args));
	execv(shell, args);
}

int cmd_run(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "PROGRAM [ARG...]",
		"Runs a program whose TCP connections go over ESP where the peer has it, too; see esp-run(1).",
		NULL, NULL, NULL
	};
	struct request r = { 0 };
	char path[PATH_MAX];

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &r);
	if (!find(r.program[0], path))
		error(EXIT_USAGE, 0, "%s: there is no such program", r.program[0]);
	if (r.check)
		return check(&r, path);
	refuse(path);
	preload();
	if (r.verbose)
		setenv("ESP_RUN_LOG", "stderr", 1);
	if (r.log)
		set_log(r.log);
	if (r.only)
		setenv("ESP_RUN_ONLY", "1", 1);
	if (r.wait)
		setenv("ESP_RUN_WAIT", r.wait, 1);
	execv(path, r.program);
	if (errno == ENOEXEC)
		execute_by_shell(path, r.program);
	error(EXIT_IO, errno, "%s", path);
	return EXIT_IO;
}
