// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-sign-compare -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=fsync,--wrap=renameat2 -fsanitize=address,undefined -fno-sanitize-recover=all
// SOURCES: tools/am/wire.c tools/am/crc.c tools/am/engine.c tools/am/request.c tools/am/reply.c tools/am/input.c tools/am/endpoint.c tools/am/bundle.c tools/am/log.c tools/am/name.c tools/am/transport.c tools/am/mem.c tools/am/socket.c tools/am/stream.c tools/am/registry.c tools/am/named.c
/*
 * The name server of Active Messages (am-named.c) in memory and over UDP; and the program.
 */
#include <limits.h>
#include "am-named.c"
#include "am-named-files.c"

FIXTURE_VARIANT_ADD(named, mem)
{
	.transport = "mem",
};

FIXTURE_VARIANT_ADD(named, udp)
{
	.transport = "udp",
};

/* Return an address that no other process has, and that is the same in each life. */
static const char *own_address(void)
{
	static char address[40];
	unsigned int pid = getpid();

	if (!*address)
		snprintf(address, sizeof(address), "udp:127.%u.%u.%u:4001",
			 1 + (pid >> 16 & 0x7f), pid >> 8 & 0xff, pid & 0xff);
	return address;
}

static void place(int i, struct am_options *o)
{
	o->address = net ? "mem" : i == SERVER ? own_address() :
		     i == OTHER ? "udp:127.0.0.2" : "udp:127.0.0.1";
}

/*
 * The program
 */

static int output;		/* of the program that serves */

/* Start the program; its standard output and errors go to @out. */
static pid_t start(const char *const *arguments, int *out)
{
	const char *argv[10] = { "am-named", "-f", path };
	char program[PATH_MAX];
	int pipes[2], i;
	ssize_t n;
	pid_t pid;

	for (i = 0; arguments[i]; i++)
		argv[3 + i] = arguments[i];
	if (pipe(pipes))
		return -1;
	pid = fork();
	if (pid) {
		close(pipes[1]);
		*out = pipes[0];
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(pipes[1], 1);
	dup2(pipes[1], 2);
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = 0;
	strcpy(strrchr(program, '/'), "/../am/am-named");
	execv(program, (char **)argv);
	_exit(99);
}

/* Run the program. Returns its exit status, and its output in @text. */
static int says(const char *const *arguments, char *text, size_t size)
{
	int out, status;
	size_t all = 0;
	ssize_t n;
	pid_t pid = start(arguments, &out);

	while ((n = read(out, text + all, size - 1 - all)) > 0)
		all += n;
	text[all] = 0;
	close(out);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Read until there is this line. */
static bool says_line(const char *line)
{
	char text[200];
	size_t n = 0;

	while (n + 1 < sizeof(text) && read(output, text + n, 1) == 1) {
		if (text[n] != '\n') {
			n++;
			continue;
		}
		text[n] = 0;
		if (!strcmp(text, line))
			return true;
		n = 0;
	}
	return false;
}

#define SAYS(status, what, ...) do {						\
	EXPECT_EQ(status, says((const char *const[]) { __VA_ARGS__, NULL }, text, sizeof(text)));	\
	EXPECT_NE(NULL, strstr(text, what))					\
		TH_LOG("%s", text);						\
} while (0)

TEST(program)
{
	const char *address[] = { own_address(), NULL };
	char text[4000], line[100], service[AM_NAME_LEN];
	struct stat st, now_st;
	int status;
	pid_t pid;

	snprintf(dir, sizeof(dir), "/tmp/am-named.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/registry", dir);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	ASSERT_EQ(AM_OK, open_end(SERVICE));
	ASSERT_EQ(AM_OK, open_end(CALLER));
	ASSERT_EQ(AM_OK, AM_NameFromString(own_address(), &name[SERVER]));
	SAYS(1, "No such file", "-p");
	SAYS(2, "Usage", "-p", "udp:127.0.0.1");
	SAYS(2, "Usage", "-x");
	SAYS(0, "am-named ", "-V");
	SAYS(2, "not a number", "-n", "0");
	SAYS(2, "not a number", "-n", "16385");
	SAYS(2, "not a number", "-m", "1x");
	SAYS(1, "tcp:127.0.0.1: there is no such address", "tcp:127.0.0.1");
	SAYS(1, "mem: there is no such address", "mem");

	pid = start(address, &output);
	ASSERT_TRUE(says_line(own_address()));
	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
	SAYS(1, "another server uses it", "udp:127.0.0.1");
	SAYS(1, "another server uses it", "-p");
	EXPECT_EQ(0, stat(path, &st));
	ASSERT_EQ(AM_OK, reg(SERVICE, "b", KEY, 1));
	/* The lease ends, and the file is as it was. */
	do {
		usleep(10000);
		ASSERT_EQ(0, stat(path, &now_st));
	} while (now_st.st_size != st.st_size);
	kill(pid, SIGUSR1);
	EXPECT_TRUE(says_line("names registered 2"));
	EXPECT_TRUE(says_line("names expired 1"));
	snprintf(line, sizeof(line), "%s peers_refused 0", own_address());
	EXPECT_TRUE(says_line(line));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	close(output);
	EXPECT_EQ(AM_OK, AM_NameToString(&name[SERVICE], service, sizeof(service)));
	snprintf(line, sizeof(line), "a %s 0\n", service);
	SAYS(0, line, "-p");
	EXPECT_STREQ(line, text);

	pid = start(address, &output);
	ASSERT_TRUE(says_line(own_address()));
	EXPECT_TRUE(is_of(SERVICE, "a"));
	kill(pid, SIGTERM);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	close(output);
	SAYS(0, "", "-d", "a");
	SAYS(1, "a isn't registered", "-d", "a");

	ASSERT_TRUE(write_file(path, "AM names", 8));
	SAYS(1, "it is damaged", own_address());
	ASSERT_TRUE(write_file(path, "something else, and more", 24));
	SAYS(1, "it is no registry", own_address());
	EXPECT_EQ(0, unlink(path));
	EXPECT_EQ(0, rmdir(dir));
	EXPECT_EQ(AM_OK, AM_FreeBundle(bundle));
}

TEST_HARNESS_MAIN
