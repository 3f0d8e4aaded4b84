// SPDX-License-Identifier: GPL-2.0-only
// LIBS: -luring
// CFLAGS: -Wno-unused-function
/*
 * Random system calls on sockets of all three types, from threads of several
 * processes at once, which share some of the sockets. Calls are valid, or wrong, or
 * another thread makes them wrong, while devices go down and change.
 *
 *	syscalls [-t SECONDS] [-j THREADS] [-p PROCESSES] [SEED]
 *
 * The seed determines the Nth call of a thread. Each kind of call must have
 * succeeded and failed at least once, no call may wait for ever, and after all
 * sockets are closed nothing may be left.
 */
#include <liburing.h>
#include <net/if_arp.h>
#include <sys/mman.h>
#include <sys/random.h>
#include "syscalls-calls.c"

#define THREADS		16		/* most threads of a process */
#define PROCESSES	16
#define TICK		20		/* ms; a call that takes longer is interrupted */
#define PATIENCE	1500		/* ticks after which a call counts as hanging */
#define BRIEF		20		/* calls of a brief process */
#define UNSEEN		150		/* s; then give up kinds of calls that were not seen */

/* Need this kind of call not fail, because its failure is worth no test? */
static bool may_never_fail(int kind)
{
	return kind >= K_pass;
}

/* Must this kind of call always fail? */
static bool must_fail(int kind)
{
	return kind == K_mmap;
}

static struct thread threads[THREADS];
static int failures, results;

/*
 * The watchdog interrupts calls that wait, and ends the process if one hangs all the same.
 */

static void show(const char *path)
{
	char line[256];
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f))
		printf("# %s", line);
	if (f)
		fclose(f);
}

static _Noreturn void hangs(const struct thread *t)
{
	char path[64];

	printf("# hangs: %s, call %lu of thread %d of process %d%s\n", names[t->kind], t->calls,
	       t->number, t->process, brief ? ", of a short process" : "");
	snprintf(path, sizeof(path), "/proc/self/task/%d/stack", t->tid);
	show(path);
	fflush(stdout);
	shared->hung = true;
	_exit(KSFT_FAIL);
}

/* Does the thread make the same call as at the last tick? End the process if it hangs. */
static bool waits(struct thread *t)
{
	unsigned long now = __atomic_load_n(&t->calls, __ATOMIC_RELAXED);

	if (now != t->seen)
		t->ticks = 0;
	t->seen = now;
	if (++t->ticks > PATIENCE)
		hangs(t);
	return t->ticks > 1;
}

static void on_signal(int sig)
{
	(void)sig;
	if (brief)
		waits(me);
}

static void brief_calls(void)
{
	struct itimerval t = { { 0, TICK * 1000 }, { 0, TICK * 1000 } };
	struct sigaction end = { .sa_handler = on_signal };
	__u64 from = (me->nth + 1) << 20;
	int i;

	brief = true;
	me->tid = getpid();
	me->child = 0;
	sigaction(SIGALRM, &end, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
	for (i = 0; i < BRIEF; i++)
		one_call(from + i);
}

static void *work(void *arg)
{
	__u64 n = 0;

	me = arg;
	me->tid = gettid();
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED))
		one_call(n++);
	begin(K_fork);
	reap_child();
	begin(K_uring_recv);
	io_uring_queue_exit(&me->ring);
	__atomic_store_n(&me->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Run a process: its threads make calls, and this thread watches them. */
static int process(int number, int count)
{
	struct sigaction again = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction end = { .sa_handler = on_signal };
	sigset_t all;
	int i, running;

	sigaction(SIGALRM, &again, NULL);
	sigaction(SIGIO, &again, NULL);
	sigaction(SIGURG, &again, NULL);
	sigaction(SIGUSR1, &end, NULL);
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < SOCKETS; i++)
		fds[i] = -1;
	arena = mmap(NULL, ARENA + 2 * GUARD, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(arena == MAP_FAILED ? -1 : 0);
	readonly = arena + ARENA + GUARD;
	MUST(mprotect(arena + ARENA, GUARD, PROT_NONE));
	MUST(mprotect(readonly, GUARD, PROT_READ));
	for (i = 0; i < count; i++) {
		struct thread *t = &threads[i];

		t->process = number;
		t->number = i;
		MUST(pipe2(t->pipe, O_NONBLOCK | O_CLOEXEC));
		MUST(pipe2(t->other, O_NONBLOCK | O_CLOEXEC));
		t->epoll = MUST(epoll_create1(EPOLL_CLOEXEC));
		MUST(-!!io_uring_queue_init(8, &t->ring, 0));
	}
	for (i = 0; i < count; i++)
		MUST(-pthread_create(&threads[i].id, NULL, work, &threads[i]));
	/* let the threads take the signals */
	sigfillset(&all);
	MUST(-pthread_sigmask(SIG_BLOCK, &all, NULL));
	do {
		nap_us(TICK * 1000);
		running = 0;
		for (i = 0; i < count; i++) {
			if (__atomic_load_n(&threads[i].done, __ATOMIC_ACQUIRE))
				continue;
			running++;
			if (waits(&threads[i]))
				pthread_kill(threads[i].id, SIGUSR1);
		}
	} while (running);
	return 0;
}

/*
 * Hosts, processes, and checks that nothing is left.
 */

/* For a moment set a device down, change its MTU or its address, or disable it; in turn. */
static void try_device(unsigned int turn)
{
	const struct host *h = &hosts[rnd(2)];
	struct ifreq ifr = {};
	int fd, mtu = one_in(2) ? rnd(2000) : rnd(80000), us = rnd(200000);
	char enable[64];

	enter(h);
	fd = MUST(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	strcpy(ifr.ifr_name, h->dev);
	switch (turn % 4) {
	case 0:
		link_up(h, false);
		nap_us(us);
		link_up(h, true);
		break;
	case 1:
		ifr.ifr_mtu = mtu;
		CALL(device, ioctl(fd, SIOCSIFMTU, &ifr));
		nap_us(us);
		ifr.ifr_mtu = 1500;
		CALL(device, ioctl(fd, SIOCSIFMTU, &ifr));
		break;
	case 2:
		ifr.ifr_hwaddr.sa_family = ARPHRD_ETHER;
		memcpy(ifr.ifr_hwaddr.sa_data, h->mac, 6);
		ifr.ifr_hwaddr.sa_data[4] = 1;
		CALL(device, ioctl(fd, SIOCSIFHWADDR, &ifr));
		nap_us(us);
		ifr.ifr_hwaddr.sa_data[4] = 0;
		CALL(device, ioctl(fd, SIOCSIFHWADDR, &ifr));
		break;
	case 3:
		snprintf(enable, sizeof(enable), "dev/%s/enable", h->dev);
		sysctl(h, enable, 0);
		nap_us(us);
		sysctl(h, enable, 1);
	}
	close(fd);
}

static void result(bool ok, const char *format, ...)
{
	va_list args;

	printf("%sok %d - ", ok ? "" : "not ", ++results);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	failures += !ok;
}

static bool seen_all(int kind)
{
	bool ok = shared->tally[kind].ok, failed = shared->tally[kind].failed;

	if (must_fail(kind))
		return !ok && failed;
	return ok && (failed || may_never_fail(kind));
}

static bool all_seen(void)
{
	int i;

	for (i = 0; i < K_MAX; i++)
		if (!seen_all(i) && !must_fail(i))
			return false;
	return true;
}

static void report(int kind)
{
	char why[1000] = "";
	size_t n = 0;
	int i;

	for (i = 0; i < 140; i++)
		if (shared->tally[kind].error[i] && n < sizeof(why) - 50)
			n += sprintf(why + n, " %s %ld", strerrorname_np(i) ?: "unknown",
				     shared->tally[kind].error[i]);
	result(seen_all(kind), "%s: %ld succeeded, %ld failed:%s", names[kind],
	       shared->tally[kind].ok, shared->tally[kind].failed, why);
}

/* Read the only number of a file. */
static long number_in(const char *path)
{
	FILE *f = fopen(path, "r");
	long n = -1;

	if (f) {
		MUST(fscanf(f, "%ld", &n) - 1);
		fclose(f);
	}
	return MUST(n);
}

static long references(void)
{
	return number_in("/sys/module/esp/refcnt");
}

/* Return the sockets, or the pages, of ESP and EDP in /proc/net/protocols. */
static long protocols(const struct host *h, bool pages)
{
	long sum = 0, sockets, memory;
	char line[256];
	int found = 0;
	FILE *f;

	enter(h);
	f = fopen("/proc/thread-self/net/protocols", "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "ESP ", 4) && strncmp(line, "EDP ", 4))
			continue;
		MUST(sscanf(line, "%*s %*d %ld %ld", &sockets, &memory) - 2);
		if (!pages)
			sum += sockets;
		else if (memory > sum)	/* both lines have the same account */
			sum = memory;
		found++;
	}
	MUST(found - 2);
	fclose(f);
	return sum;
}

/* Add up the peers and senders of all devices, and their parked and outstanding grants. */
static long peers(const struct host *h)
{
	long n, received, parked, open, sum = 0;
	char line[256];
	FILE *f;

	enter(h);
	f = fopen("/proc/thread-self/net/esp/dev", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %*d %ld %ld %ld %ld", &n, &received, &parked, &open) == 4)
			sum += n + labs(received) + parked + labs(open);
	MUST(f ? 0 : -1);
	fclose(f);
	return sum;
}

#define WITHIN(cond) ({							\
	int ticks_ = 0;							\
									\
	while (!(cond) && ticks_++ < PATIENCE)				\
		nap_us(TICK * 1000);					\
	(cond);								\
})

/* Return the module's references once they are steady for 3 s: an earlier test may be ending. */
static long steady_references(void)
{
	long n = references(), same;

	for (same = 0; same < 3000 / TICK; same++) {
		nap_us(TICK * 1000);
		if (references() != n) {
			n = references();
			same = 0;
		}
	}
	return n;
}

/* Wait until there are as many references as before. */
static void as_before(long refs, const char *what)
{
	result(WITHIN(references() == refs), what);
	if (references() != refs)
		printf("# %ld references, not %ld\n", references(), refs);
}

/* Wait for all processes; false: one of them hung, or died. */
static bool all_end(pid_t *pid, int count)
{
	int i, ticks, status;
	bool ok = true;
	char path[64];

	for (i = 0; i < count; i++) {
		for (ticks = 0; !waitpid(pid[i], &status, WNOHANG); ticks++) {
			if (ticks == 2 * PATIENCE) {
				printf("# process %d does not end\n", i);
				snprintf(path, sizeof(path), "/proc/%d/stack", pid[i]);
				show(path);
				return false;
			}
			nap_us(TICK * 1000);
		}
		if (status)
			printf("# process %d: status %#x\n", i, status);
		ok = ok && !status;
	}
	return ok && !shared->hung;
}

static void run_all(int seconds, int nthreads, int nprocesses)
{
	long long end = now_ms() + seconds * 1000LL, last = now_ms() + UNSEEN * 1000LL, next;
	long refs = steady_references(), pages;
	pid_t pid[PROCESSES];
	int fd[2], i;
	__u64 n = 0;
	bool ok;

	for (i = 0; i < nprocesses; i++) {
		pid[i] = MUST(fork());
		if (!pid[i])
			_exit(process(i, nthreads));
	}
	close(post[0]);
	close(post[1]);
	me = &threads[0];
	/* slow machines get more time, until all kinds of calls have succeeded and failed */
	while (now_ms() < end || (!all_seen() && now_ms() < last)) {
		rnd_begin(255, 0, n++);
		next = now_ms() + rnd(3000);
		while (now_ms() < next && !shared->hung)
			nap_us(TICK * 1000);
		try_device(n);
		if (shared->hung)
			break;
	}
	shared->stop = true;
	ok = all_end(pid, nprocesses);
	result(ok, "no call waits for ever, all processes end");
	for (i = 0; i < K_MAX; i++)
		report(i);
	if (!ok) {	/* a process that hangs keeps sockets, so don't wait for their end */
		for (i = 0; i < nprocesses; i++)
			kill(pid[i], SIGKILL);
		return;
	}

	result(WITHIN(!protocols(A, false) && !protocols(B, false)), "no sockets are left");
	as_before(refs, "none that is not seen, either");
	result(WITHIN(!peers(A) && !peers(B)), "no peers, no permission");
	/* each processor may keep up to a MiB for later use */
	pages = sysconf(_SC_NPROCESSORS_CONF) * (1 << 20) / sysconf(_SC_PAGESIZE);
	result(WITHIN(protocols(A, true) <= pages), "memory is given back");
	wait_running();
	make_pair(SOCK_STREAM, fd);
	result(alive(fd), "a connection works as before");
	close(fd[0]);
	close(fd[1]);
	as_before(refs, "and is gone then");
}

int main(int argc, char **argv)
{
	int seconds = 25, nthreads = 3, nprocesses = 2, opt;
	unsigned int random;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "t:j:p:")) != -1) {
		if (opt == 't')
			seconds = atoi(optarg);
		else if (opt == 'j')
			nthreads = atoi(optarg);
		else if (opt == 'p')
			nprocesses = atoi(optarg);
		else
			return 2;
	}
	if (seconds < 1 || nthreads < 1 || nthreads > THREADS || nprocesses < 1 ||
	    nprocesses > PROCESSES) {
		fputs("syscalls [-t SECONDS] [-j THREADS] [-p PROCESSES] [SEED]\n", stderr);
		return 2;
	}
	MUST(getrandom(&random, sizeof(random), 0));
	seed = optind < argc ? strtoul(argv[optind], NULL, 0) : random;
	printf("# syscalls -t %d -j %d -p %d %llu\n", seconds, nthreads, nprocesses,
	       (unsigned long long)seed);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	MUST(shared == MAP_FAILED ? -1 : 0);
	MUST(setpgid(0, 0));	/* no other process gets our signals */
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, post));
	file = MUST(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	MUST(ftruncate(file, ARENA));
	make_hosts();
	/* orphans end soon */
	sysctl(A, "fin_timeout_ms", 1000);
	sysctl(B, "fin_timeout_ms", 1000);
	run_all(seconds, nthreads, nprocesses);
	if (failures)
		dump_counters();
	printf("1..%d\n", results);
	return failures ? KSFT_FAIL : KSFT_PASS;
}
