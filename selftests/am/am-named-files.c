// SPDX-License-Identifier: GPL-2.0-only
/*
 * The name server's registry: the file after restarts, damage, full disks and SIGKILL. Included
 * after am-named.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static uint8_t file[20000];

static size_t read_file(const char *from, void *data, size_t room)
{
	int fd = open(from, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, data, room);

	close(fd);
	return n > 0 ? n : 0;
}

static bool write_file(const char *to, const void *data, size_t n)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	bool ok = fd >= 0 && write(fd, data, n) == (ssize_t)n;

	close(fd);
	return ok;
}

static int restart(void)
{
	registry_close(&named.registry);
	return registry_open(&named.registry, path, seconds);
}

/* The names that were registered are there, as they were. */
TEST_F(named, restart)
{
	struct registry_record was[2];
	unsigned int i;
	en_t found;

	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
	ASSERT_EQ(AM_OK, reg(CALLER, "b", KEY, 10));
	for (i = 0; i < 2; i++)
		was[i] = named.registry.entries[i].r;
	seconds += 9;
	ASSERT_EQ(AM_OK, restart());
	ASSERT_EQ(2, named.registry.n);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, memcmp(&was[i], &named.registry.entries[i].r, sizeof(was[i])));
	EXPECT_TRUE(is_of(SERVICE, "a"));
	EXPECT_EQ(AM_ERR_NAME_TAKEN, reg(CALLER, "a", KEY + 1, 0));
	/* Its lease begins anew. */
	seconds += 9;
	EXPECT_TRUE(is_of(CALLER, "b"));
	seconds++;
	EXPECT_EQ(AM_ERR_NAME_UNKNOWN, look_up("b", &found));
	/* The file has more names than this server would take. */
	named.registry.most = 1;
	ASSERT_EQ(AM_OK, restart());
	EXPECT_EQ(2, named.registry.n);
	EXPECT_EQ(AM_ERR_NAME_FULL, reg(SERVICE, "c", KEY, 0));
	EXPECT_EQ(AM_OK, unreg(SERVICE, "a", KEY));
	EXPECT_TRUE(is_of(CALLER, "b"));
}

/* A file with another byte, or another length, is refused, and left as it is. */
TEST_F(named, damaged)
{
	uint8_t bad[1000], after[1000];
	size_t n, i;
	int error;

	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
	ASSERT_EQ(AM_OK, reg(CALLER, "b", KEY, 10));
	n = read_file(path, file, sizeof(file));
	ASSERT_EQ(sizeof(struct registry_header) + 2 * sizeof(struct registry_record), n);
	registry_close(&named.registry);
	for (i = 0; i < n; i++) {
		memcpy(bad, file, n);
		bad[i] ^= 1 << i % 8;
		ASSERT_TRUE(write_file(path, bad, n));
		error = registry_open(&named.registry, path, seconds);
		EXPECT_EQ(i < 12 ? AM_ERR_LOG_FOREIGN : AM_ERR_LOG_DAMAGED, error)
			TH_LOG("byte %zu: %s", i, AM_ErrorName(error));
		EXPECT_EQ(-1, named.registry.fd);
		EXPECT_EQ(n, read_file(path, after, sizeof(after)));
		EXPECT_EQ(0, memcmp(bad, after, n));
	}
	for (i = 0; i < n; i++) {
		ASSERT_TRUE(write_file(path, file, i));
		EXPECT_EQ(AM_ERR_LOG_DAMAGED, registry_open(&named.registry, path, seconds));
	}
	memcpy(bad, file, n);
	ASSERT_TRUE(write_file(path, bad, n + 1));
	EXPECT_EQ(AM_ERR_LOG_DAMAGED, registry_open(&named.registry, path, seconds));
	ASSERT_TRUE(write_file(path, file, n));
	EXPECT_EQ(AM_OK, registry_open(&named.registry, path, seconds));
	EXPECT_EQ(2, named.registry.n);
}

/* A file that no server writes is refused, though its checksum is right. */
TEST_F(named, forged_file)
{
	struct {
		struct registry_header h;
		struct registry_record r[2];
	} whole, f;
	unsigned int i;

	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
	ASSERT_EQ(AM_OK, reg(CALLER, "b", KEY, 10));
	ASSERT_EQ(sizeof(whole), read_file(path, &whole, sizeof(whole)));
	registry_close(&named.registry);
	for (i = 0; i <= 9; i++) {
		f = whole;
		switch (i) {
		case 0:
			f.r[1].name[0] = 0;
			break;
		case 1:
			f.r[1].name[0] = ' ';
			break;
		case 2:
			f.r[1].name[AM_MAX_NAME] = 'x';
			break;
		case 3:
			memset(f.r[1].name, 'x', sizeof(f.r[1].name));
			break;
		case 4:
			f.r[1].kind = 0;
			break;
		case 5:
			f.r[1].kind = AM_KIND_VERBS + 1;
			break;
		case 6:
			f.r[1] = f.r[0];
			break;
		case 7:
			f.r[1].zero2 = 1;
			break;
		case 8:
			f.r[1].kind = AM_KIND_UDP;
			f.r[1].port = 65536;
			break;
		case 9:
			break;
		}
		f.h.crc = crc32c(crc32c(~0u, &f, offsetof(struct registry_header, crc)), f.r,
				 sizeof(f.r));
		ASSERT_TRUE(write_file(path, &f, sizeof(f)));
		EXPECT_EQ(i < 9 ? AM_ERR_LOG_DAMAGED : AM_OK,
			  registry_open(&named.registry, path, seconds))
			TH_LOG("%u", i);
	}
}

/* A file has one server. */
TEST_F(named, in_use)
{
	struct registry second = { .most = 8, .most_of_host = 8 };

	EXPECT_EQ(AM_ERR_SYSTEM, registry_open(&second, path, seconds));
	EXPECT_EQ(EWOULDBLOCK, errno);
	/* The next file, too. */
	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
	EXPECT_EQ(AM_ERR_SYSTEM, registry_open(&second, path, seconds));
	EXPECT_EQ(EWOULDBLOCK, errno);
	registry_close(&named.registry);
	EXPECT_EQ(AM_OK, registry_open(&second, path, seconds));
	EXPECT_EQ(1, second.n);
	registry_close(&second);
	EXPECT_EQ(AM_ERR_SYSTEM, registry_open(&second, "/tmp/am-named-none/registry", seconds));
	EXPECT_EQ(ENOENT, errno);
	ASSERT_EQ(0, mkfifo(part, 0600));
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, registry_open(&second, part, seconds));
	EXPECT_EQ(0, unlink(part));
	EXPECT_EQ(AM_ERR_SYSTEM, registry_open(&second, dir, seconds));
	EXPECT_EQ(EISDIR, errno);
	/* A new registry isn't written through a link of another user. */
	ASSERT_EQ(0, symlink("/dev/null", part));
	ASSERT_EQ(AM_OK, restart());
	EXPECT_EQ(AM_ERR_NAME_STORE, reg(SERVICE, "b", KEY, 0));
	EXPECT_EQ(0, unlink(part));
	EXPECT_EQ(AM_OK, reg(SERVICE, "b", KEY, 0));
}

/* There is no room on the disk: the client gets an error, and the old contents stay. */
static void no_room(struct __test_metadata *_metadata)
{
	size_t n = read_file(path, file, sizeof(file));
	uint8_t after[1000];
	en_t found;

	EXPECT_EQ(AM_ERR_NAME_STORE, reg(SERVICE, "new", KEY, 0));
	EXPECT_EQ(AM_ERR_NAME_STORE, reg(SERVICE, "a", KEY, 77));
	EXPECT_EQ(AM_ERR_NAME_STORE, unreg(SERVICE, "a", KEY));
	EXPECT_EQ(3, named.stats.store_errors);
	EXPECT_EQ(AM_ERR_NAME_UNKNOWN, look_up("new", &found));
	EXPECT_TRUE(is_of(SERVICE, "a"));
	/* A call that changes nothing needs no disk. */
	EXPECT_EQ(AM_OK, reg(SERVICE, "a", KEY, 5));
	EXPECT_EQ(n, read_file(path, after, sizeof(after)));
	EXPECT_EQ(0, memcmp(file, after, n));
	EXPECT_EQ(-1, access(part, F_OK));
}

TEST_F(named, disk_full)
{
	struct rlimit r, small;
	char filler[64];

	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 5));
	signal(SIGXFSZ, SIG_IGN);
	ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &r));
	small = r;
	small.rlim_cur = sizeof(struct registry_header) - 1;
	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &small));
	no_room(_metadata);
	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &r));
	EXPECT_EQ(AM_OK, reg(SERVICE, "new", KEY, 0));
	EXPECT_EQ(AM_OK, restart());
	EXPECT_EQ(2, named.registry.n);

	/* A file system has no room. */
	EXPECT_EQ(AM_OK, unreg(SERVICE, "new", KEY));
	registry_close(&named.registry);
	unlink(path);
	named.stats.store_errors = 0;
	ASSERT_EQ(0, unshare(CLONE_NEWNS));
	ASSERT_EQ(0, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	ASSERT_EQ(0, mount("none", dir, "tmpfs", 0, "size=8k"));
	ASSERT_EQ(AM_OK, registry_open(&named.registry, path, seconds));
	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 5));
	snprintf(filler, sizeof(filler), "%s/filler", dir);
	ASSERT_TRUE(write_file(filler, file, 4096));
	no_room(_metadata);
	EXPECT_EQ(0, unlink(filler));
	EXPECT_EQ(AM_OK, reg(SERVICE, "new", KEY, 0));
	EXPECT_EQ(AM_OK, restart());
	EXPECT_EQ(2, named.registry.n);
	registry_close(&named.registry);
	EXPECT_EQ(0, umount(dir));
}

/*
 * The order of steps before the answer leaves: f, a whole new file is on the disk; r, it is
 * renamed; d, the name is on the disk; A, the answer.
 */
static char order[20];
static int sync_error;		/* of the file 'f', of the directory 'd' */

static void did(char what)
{
	size_t n = strlen(order);

	if (n + 1 < sizeof(order))
		order[n] = what;
}

static bool whole(int fd)
{
	struct registry_header h;
	struct stat st;
	ssize_t n = pread(fd, file, sizeof(file), 0);

	memcpy(&h, file, sizeof(h));
	return !fstat(fd, &st) && n == st.st_size && n >= (ssize_t)sizeof(h) &&
	       h.crc == crc32c(crc32c(~0u, &h, offsetof(struct registry_header, crc)),
			       file + sizeof(h), n - sizeof(h));
}

int __real_fsync(int fd);

int __wrap_fsync(int fd)
{
	struct stat st;
	char what;

	fstat(fd, &st);
	what = S_ISDIR(st.st_mode) ? 'd' : whole(fd) ? 'f' : '?';
	did(what);
	if (sync_error != what)
		return __real_fsync(fd);
	errno = EIO;
	return -1;
}

int __real_renameat2(int from_dir, const char *from, int to_dir, const char *to,
		     unsigned int flags);

int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to,
		     unsigned int flags)
{
	did('r');
	return __real_renameat2(from_dir, from, to_dir, to, flags);
}

static enum am_verdict answer_leaves(void *arg, uint8_t *frame, size_t len)
{
	(void)arg;
	(void)len;
	if (frame[1] == WIRE_REPLY)
		did('A');
	return AM_PASS;
}

#define DOES(what, call, result) do {					\
	memset(order, 0, sizeof(order));				\
	EXPECT_EQ(result, call);					\
	/* An answer may be repeated. */				\
	while (strlen(order) > 1 && order[strlen(order) - 2] == 'A')	\
		order[strlen(order) - 1] = 0;				\
	EXPECT_STREQ(what, order);					\
} while (0)

TEST_F(named, order_on_disk)
{
	en_t found;

	ep[SERVER]->transport.faults.filter = answer_leaves;
	DOES("frdA", reg(SERVICE, "a", KEY, 0), AM_OK);
	DOES("frdA", reg(SERVICE, "a", KEY, 1), AM_OK);
	DOES("A", reg(SERVICE, "a", KEY, 1), AM_OK);
	DOES("A", look_up("a", &found), AM_OK);
	/* The disk fails at the file: all is as before. */
	sync_error = 'f';
	DOES("fA", reg(SERVICE, "b", KEY, 0), AM_ERR_NAME_STORE);
	DOES("A", look_up("b", &found), AM_ERR_NAME_UNKNOWN);
	DOES("fA", unreg(SERVICE, "a", KEY), AM_ERR_NAME_STORE);
	DOES("A", look_up("a", &found), AM_OK);
	/* The disk fails at the name: the result is unknown, until it is done again. */
	sync_error = 'd';
	DOES("frdA", reg(SERVICE, "b", KEY, 0), AM_ERR_NAME_STORE);
	DOES("frdA", reg(SERVICE, "b", KEY, 0), AM_ERR_NAME_STORE);
	/* Meanwhile a failure at the file is undone all the same. */
	sync_error = 'f';
	DOES("fA", unreg(SERVICE, "a", KEY), AM_ERR_NAME_STORE);
	DOES("A", look_up("a", &found), AM_OK);
	/* A name that is gone from memory only isn't gone. */
	sync_error = 'd';
	DOES("frdA", unreg(SERVICE, "b", KEY), AM_ERR_NAME_STORE);
	DOES("frdA", unreg(SERVICE, "b", KEY), AM_ERR_NAME_STORE);
	sync_error = 0;
	DOES("frdA", unreg(SERVICE, "b", KEY), AM_ERR_NAME_UNKNOWN);
	DOES("frdA", reg(SERVICE, "b", KEY, 0), AM_OK);
	DOES("A", reg(SERVICE, "b", KEY, 0), AM_OK);
	EXPECT_EQ(7, named.stats.store_errors);
	DOES("frdA", unreg(SERVICE, "a", KEY), AM_OK);
	/* Its writer may have been killed before the name was on the disk. */
	DOES("d", restart(), AM_OK);
	EXPECT_EQ(1, named.registry.n);
	/* Changes without a call are written later. */
	ASSERT_EQ(AM_OK, reg(SERVICE, "a", KEY, 1));
	seconds++;
	sync_error = 'f';
	DOES("f", (registry_look(&named.registry, seconds, &named.stats), 0), 0);
	sync_error = 0;
	DOES("frd", (registry_look(&named.registry, seconds, &named.stats), 0), 0);
	DOES("", (registry_look(&named.registry, seconds, &named.stats), 0), 0);
	EXPECT_EQ(1, named.stats.expired);
}

/*
 * A server that is killed at each step
 */

static struct life {
	unsigned int	kill_at, steps, lives;
} *life;

static void maybe_die(void)
{
	if (++life->steps == life->kill_at)
		kill(getpid(), SIGKILL);
}

static enum am_verdict frame_leaves(void *arg, uint8_t *frame, size_t len)
{
	(void)arg;
	(void)frame;
	(void)len;
	maybe_die();
	return AM_PASS;
}

static void server_lives(struct am_options o, pid_t keeper)
{
	int error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(0);
	while (bundle->endpoints)
		AM_FreeEndpoint(bundle->endpoints);
	o.faults.filter = frame_leaves;
	named.registry.step = maybe_die;
	error = registry_open(&named.registry, path, seconds);
	if (!error)
		error = open_server(o);
	while (!error)
		error = AM_WaitSema(bundle);
	_exit(10 + error);
}

/* Keep a server alive: its first two lives end at that step. */
static pid_t keep(const struct am_options *o)
{
	pid_t keeper = fork(), pid;
	int status;

	if (keeper)
		return keeper;
	keeper = getpid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	do {
		if (life->lives++ >= 2)
			life->kill_at = 0;
		life->steps = 0;
		pid = fork();
		if (!pid)
			server_lives(*o, keeper);
	} while (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
		 WTERMSIG(status) == SIGKILL);
	_exit(WEXITSTATUS(status));
}

/*
 * Return the lease of a name in the file that is there now; -1: it isn't in it, -2: the file isn't
 * whole.
 */
static int lease_in_file(const char *text)
{
	struct registry_record r;
	struct registry_header h;
	unsigned int i;
	int fd = open(path, O_RDONLY);
	bool good = fd >= 0 && whole(fd);

	close(fd);
	if (!good)
		return -2;
	memcpy(&h, file, sizeof(h));
	for (i = 0; i < h.count; i++) {
		memcpy(&r, file + sizeof(h) + i * sizeof(r), sizeof(r));
		if (!strcmp(r.name, text))
			return r.lease;
	}
	return -1;
}

TEST_F_TIMEOUT(named, killed, 600)
{
	unsigned int n;
	int status;
	pid_t pid;

	/* In memory no process lives longer than the network. */
	if (net)
		return;
	life = mmap(NULL, sizeof(*life), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, life);
	AM_FreeEndpoint(ep[SERVER]);
	registry_close(&named.registry);
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	for (n = 1; __test_passed(_metadata); n++) {
		unlink(path);
		unlink(part);
		*life = (struct life) { .kill_at = n };
		pid = keep(&self->o);
		/* Each change that was answered is in the file, and all calls succeed. */
		EXPECT_EQ(AM_OK, reg(SERVICE, "a", KEY, 0));
		EXPECT_EQ(0, lease_in_file("a"));
		EXPECT_EQ(AM_OK, reg(SERVICE, "b", KEY, 5));
		EXPECT_EQ(5, lease_in_file("b"));
		EXPECT_EQ(AM_OK, reg(SERVICE, "a", KEY, 7));
		EXPECT_EQ(7, lease_in_file("a"));
		EXPECT_TRUE(is_of(SERVICE, "b"));
		EXPECT_EQ(AM_OK, unreg(SERVICE, "b", KEY));
		EXPECT_EQ(-1, lease_in_file("b"));
		EXPECT_EQ(7, lease_in_file("a"));
		EXPECT_TRUE(is_of(SERVICE, "a"));
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status))
			TH_LOG("step %u: status %#x", n, status);
		/* The server dies after its keeper, not at once; until then it has the address. */
		while (wait(NULL) > 0)
			;
		if (life->lives == 1)
			break;
	}
	TH_LOG("%u steps", n - 1);
	/* Seven steps of each of five files, and two frames of each of six questions. */
	EXPECT_LE(5 * 7 + 6 * 2, n - 1);
}
