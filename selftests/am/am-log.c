// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages: the transaction log. A process is killed at each step, and lives again.
 * Included by host-am.c.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define TASKS	4		/* requests: bulk, medium, bulk, short */
#define BULK	3000

static char log_dir[32], log_path[64], log_part[64];

/* Memory that outlives the processes that are killed. */
static struct life {
	unsigned int	kill_at, steps;
	bool		once, stop;
	unsigned int	next;		/* of the initiator's tasks */
	unsigned int	bad;		/* other data than were sent */
	/* For each task: how often the handler ran << 48 | the last request's number; answers. */
	uint64_t	effect[TASKS];
	unsigned int	answers[TASKS];
	/* For each task: how often the handler ran, as far as the initiator knows. */
	unsigned int	least[TASKS], most[TASKS];
} *life;

FIXTURE(log) {
	struct am_options o;
	char address[2][40];
};

FIXTURE_VARIANT(log) {
	enum am_protocol_id protocol;
	unsigned int credits;
};

FIXTURE_VARIANT_ADD(log, nway) { .protocol = AM_NWAY, .credits = 2 };
FIXTURE_VARIANT_ADD(log, one_bit) { .protocol = AM_NWAY, .credits = 1 };
FIXTURE_VARIANT_ADD(log, amvia) { .protocol = AM_AMVIA, .credits = 2 };
FIXTURE_VARIANT_ADD(log, amudp) { .protocol = AM_AMUDP, .credits = 2 };

FIXTURE_SETUP(log)
{
	unsigned int i, pid = getpid();

	snprintf(log_dir, sizeof(log_dir), "/tmp/am-log.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(log_dir));
	snprintf(log_path, sizeof(log_path), "%s/log", log_dir);
	snprintf(log_part, sizeof(log_part), "%s/log.new", log_dir);
	/* Addresses that no other process has, and that are the same in each life. */
	for (i = 0; i < 2; i++)
		snprintf(self->address[i], sizeof(self->address[i]), "udp:127.%u.%u.%u:%u",
			 1 + (pid >> 16 & 0x7f), pid >> 8 & 0xff, pid & 0xff, 4001 + i);
	self->o = (struct am_options) {
		.protocol = variant->protocol, .credits = variant->credits, .pool = 4, .peers = 1,
		.retries = 1000000, .reply_retries = 1000000, .timeout_us = 2000,
		.reply_timeout_us = 5000, .log = log_path, .log_data = 4096,
		.address = self->address[CALLER],
	};
	life = mmap(NULL, sizeof(*life), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, life);
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &bundle));
	AM_SetTimeout(bundle, 1);
}

FIXTURE_TEARDOWN(log)
{
	AM_FreeBundle(bundle);
	unlink(log_part);
	unlink(log_path);
	EXPECT_EQ(0, rmdir(log_dir));
}

/* A process is killed at each step */

static bool may_die;		/* this process may be killed */

static void maybe_die(void *arg)
{
	(void)arg;
	if (may_die && ++life->steps == life->kill_at)
		kill(getpid(), SIGKILL);
}

static enum am_verdict frame_leaves(void *arg, uint8_t *frame, size_t len)
{
	(void)frame;
	(void)len;
	maybe_die(arg);
	return AM_PASS;
}

static int task_size(unsigned int task)
{
	return task % 2 == 0 ? BULK : task == 1 ? 100 : 0;
}

static void make_task(unsigned int task, uint8_t *data)
{
	int i;

	for (i = 0; i < task_size(task); i++)
		data[i] = i * 7 + i / 256 + task;
}

static void check_task(unsigned int task, const void *data, int n)
{
	uint8_t right[BULK];

	make_task(task, right);
	if (n != task_size(task) || (n && memcmp(data, right, n)))
		life->bad++;
}

/*
 * Do the work of a task. For "exactly once", look first whether this request's work was done
 * before.
 */
static void work(void *token, void *data, int n, int task)
{
	am_handle_t id = 0;

	check_task(task, data, n);
	AM_GetTokenHandle(token, &id);
	id &= (1ull << 48) - 1;
	maybe_die(NULL);
	if (!life->once || (life->effect[task] & ((1ull << 48) - 1)) != id)
		life->effect[task] = ((life->effect[task] >> 48) + 1) << 48 | id;
	maybe_die(NULL);
}

static void take_task(void *token, int task, int b, int c, int d)
{
	work(token, NULL, 0, task);
	AM_Reply4(token, ANSWER, task, b, c, d);
}

static void take_task_data(void *token, void *data, int n, int task, int b, int c, int d)
{
	work(token, data, n, task);
	AM_ReplyI4(token, ANSWER, data, n, task, b, c, d);
}

static void take_task_bulk(void *token, void *data, int n, int task, int b, int c, int d)
{
	work(token, data, n, task);
	AM_ReplyXfer4(token, 0, ANSWER, data, n, task, b, c, d);
}

static void take_done_data(void *token, void *data, int n, int task, int b, int c, int d)
{
	(void)token;
	check_task(task, data, n);
	if (b != 2 || c != 3 || d != 4)
		life->bad++;
	maybe_die(NULL);
	life->answers[task]++;
	maybe_die(NULL);
}

static void take_done(void *token, int task, int b, int c, int d)
{
	take_done_data(token, NULL, 0, task, b, c, d);
}

static int open_life(int i, const struct am_options *o)
{
	int error = AM_AllocateEndpointWith(bundle, o, &ep[i], &name[i]);

	if (error)
		return error;
	AM_SetSeg(ep[i], segment[i], sizeof(segment[i]));
	AM_SetHandler(ep[i], ECHO, take_task);
	AM_SetHandlerI(ep[i], ECHO, take_task_data);
	AM_SetHandlerXfer(ep[i], ECHO, take_task_bulk);
	AM_SetHandler(ep[i], ANSWER, take_done);
	AM_SetHandlerI(ep[i], ANSWER, take_done_data);
	AM_SetHandlerXfer(ep[i], ANSWER, take_done_data);
	AM_SetHandler(ep[i], LATER, take_later);
	return AM_OK;
}

/* Return the record of a task, or 0. */
static am_handle_t find_task(unsigned int task, struct am_record *record)
{
	am_handle_t h[8];
	int i, n = AM_ListSent(ep[CALLER], h, 8);

	for (i = 0; i < n; i++)
		if (!AM_GetRecord(ep[CALLER], h[i], record) && record->request.args[0] == (int)task)
			return h[i];
	return 0;
}

static int request_task(unsigned int task)
{
	uint8_t data[BULK];

	make_task(task, data);
	switch (task_size(task)) {
	case 0:
		return AM_Request4(ep[CALLER], 0, ECHO, task, 2, 3, 4);
	case 100:
		return AM_RequestI4(ep[CALLER], 0, ECHO, data, task_size(task), task, 2, 3, 4);
	default:
		return AM_RequestXfer4(ep[CALLER], 0, 0, ECHO, data, task_size(task), task, 2, 3,
				       4);
	}
}

/* Finish a task of the former life. */
static int recover(am_handle_t h, const struct am_record *r, unsigned int task)
{
	if (r->request.handler != ECHO)
		life->bad++;
	check_task(task, r->request.data, r->request.nbytes);
	if (!life->once)
		return AM_Decide(ep[CALLER], h, AM_GIVE_UP);
	if (r->state.state != AM_STATE_DONE)
		return AM_Decide(ep[CALLER], h, AM_SEND_AGAIN);
	return AM_Decide(ep[CALLER], h, life->answers[task] ? AM_GIVE_UP : AM_RUN_AGAIN);
}

/*
 * Do all tasks, one after the other. @again: this is not the first life. @alive is called between
 * looks.
 */
static int initiate(bool again, void (*alive)(void))
{
	struct am_record r;
	am_handle_t h;
	int error;

	error = AM_Map(ep[CALLER], 0, name[SERVER], 0);
	for (; !error && life->next < TASKS; life->next++) {
		unsigned int task = life->next;

		h = again ? find_task(task, &r) : 0;
		if (h && r.undecided)
			error = recover(h, &r, task);
		/* There is no record: the request was never sent. */
		if (again && !h && !life->once) {
			again = false;
			continue;
		}
		again = false;
		/* The last task has a session of its own. */
		if (!h && task == TASKS - 1) {
			error = AM_Unmap(ep[CALLER], 0);
			if (!error)
				error = AM_Map(ep[CALLER], 0, name[SERVER], 0);
		}
		while (!h && !error) {
			alive();
			error = request_task(task);
			if (!error)
				h = sent();
			else if (error == AM_ERR_TIMEOUT)
				error = AM_OK;
		}
		while (!error) {
			alive();
			error = AM_GetTransferState(ep[CALLER], h, &r.state);
			if (r.state.state == AM_STATE_DONE || r.state.state == AM_STATE_ABANDONED)
				break;
			AM_WaitSema(bundle);
		}
		/* Note how often the handler ran, as far as the initiator knows. */
		life->least[task] = r.state.state == AM_STATE_DONE;
		life->most[task] = 1;
	}
	return error;
}

static void nothing(void)
{
}

/* The lives of the process that is killed; they end by _exit(). */
static void initiator_lives(const struct am_options *o, bool again)
{
	int error = open_life(CALLER, o);

	if (!error)
		error = initiate(again, nothing);
	_exit(error);
}

static void target_lives(const struct am_options *o, bool again)
{
	int error = open_life(SERVER, o), i, n;
	struct am_record r;
	am_handle_t h[8];

	(void)again;
	n = error ? 0 : AM_ListReceived(ep[SERVER], h, 8);
	for (i = 0; i < n && !error; i++) {
		error = AM_GetRecord(ep[SERVER], h[i], &r);
		if (!error && r.undecided)
			error = AM_Decide(ep[SERVER], h[i],
					  life->once ? AM_RUN_AGAIN : AM_GIVE_UP);
	}
	while (!error && !life->stop) {
		error = AM_WaitSema(bundle);
		if (error == AM_ERR_TIMEOUT)
			error = AM_OK;
	}
	_exit(error);
}

static struct {
	void		(*lives)(const struct am_options *o, bool again);
	struct am_options o;
	unsigned int	lives_n, kill_at;
	pid_t		pid;
	int		status;		/* of the last life */
} mortal;

/* Begin a life. The first two are killed at that step. */
static void live(void)
{
	life->steps = 0;
	life->kill_at = mortal.lives_n < 2 ? mortal.kill_at : 0;
	mortal.pid = fork();
	if (mortal.pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	may_die = true;
	while (bundle->endpoints)
		AM_FreeEndpoint(bundle->endpoints);
	mortal.lives(&mortal.o, mortal.lives_n);
}

/* Begin the next life, if the process was killed. */
static void look_after(void)
{
	if (mortal.pid <= 0 || waitpid(mortal.pid, &mortal.status, WNOHANG) != mortal.pid)
		return;
	mortal.pid = 0;
	if (!WIFSIGNALED(mortal.status) || WTERMSIG(mortal.status) != SIGKILL)
		return;
	mortal.lives_n++;
	live();
}

/* Hold a conversation with an end that is killed at step @n. Returns how many lives it had more. */
static int converse(struct __test_metadata *_metadata, const struct am_options *o,
		    const char *const *address, int role, bool once, unsigned int n)
{
	struct am_options other = *o, own = *o;
	unsigned int i;

	memset(life, 0, sizeof(*life));
	life->once = once;
	unlink(log_path);
	unlink(log_part);
	/* AMUDP retransmits after handler_max_us, and a handler may take as long. */
	other.address = address[!role];
	own.address = address[role];
	other.log = NULL;
	own.faults.step = maybe_die;
	own.faults.filter = frame_leaves;
	/* With this pool, the third request takes the place of the first. */
	own.pool = 2;
	(role == CALLER ? &own : &other)->handler_max_us = 10000;
	(role == CALLER ? &other : &own)->handler_max_us = 1000000000;
	EXPECT_EQ(AM_OK, open_life(!role, &other));
	EXPECT_EQ(AM_OK, AM_NameFromString(own.address, &name[role]));
	memset(&mortal, 0, sizeof(mortal));
	mortal.lives = role == CALLER ? initiator_lives : target_lives;
	mortal.o = own;
	mortal.kill_at = n;
	live();
	if (role == SERVER) {
		EXPECT_EQ(AM_OK, initiate(false, look_after));
		life->stop = true;
	}
	while (mortal.pid) {
		AM_WaitSema(bundle);
		look_after();
	}
	EXPECT_TRUE(WIFEXITED(mortal.status) && !WEXITSTATUS(mortal.status))
		TH_LOG("step %u: status %#x", n, mortal.status);
	EXPECT_EQ(TASKS, life->next);
	EXPECT_EQ(0, life->bad);
	for (i = 0; i < TASKS; i++) {
		unsigned int ran_n = life->effect[i] >> 48;

		if (once) {
			EXPECT_EQ(1, ran_n)
				TH_LOG("step %u, task %u", n, i);
			EXPECT_EQ(1, life->answers[i])
				TH_LOG("step %u, task %u", n, i);
		} else {
			EXPECT_LE(life->least[i], ran_n)
				TH_LOG("step %u, task %u", n, i);
			EXPECT_GE(life->most[i], ran_n)
				TH_LOG("step %u, task %u", n, i);
			EXPECT_GE(1, life->answers[i])
				TH_LOG("step %u, task %u", n, i);
		}
	}
	AM_FreeEndpoint(ep[!role]);
	return mortal.lives_n;
}

/* Kill at each step, or each $AM_KILL_EVERYth, until there is none any more. */
static void kill_at_each(struct __test_metadata *_metadata, const struct am_options *o,
			 const char *const *address, int role, bool once)
{
	const char *s = getenv("AM_KILL_EVERY");
	unsigned int n = 1, every = s && atoi(s) > 1 ? atoi(s) : 1;

	while (converse(_metadata, o, address, role, once, n) && __test_passed(_metadata))
		n += every;
	TH_LOG("%u steps", n - 1);
	/* Each task has these steps at least: the request, its data, sent, answered. */
	EXPECT_LE(4 * TASKS, n - 1);
}

#define KILLED(role, once)						\
	const char *const address[] = { self->address[0], self->address[1] };	\
									\
	kill_at_each(_metadata, &self->o, address, role, once)

TEST_F_TIMEOUT(log, initiator_at_most_once, 1000)
{
	KILLED(CALLER, false);
}

TEST_F_TIMEOUT(log, initiator_exactly_once, 1000)
{
	KILLED(CALLER, true);
}

TEST_F_TIMEOUT(log, target_at_most_once, 1000)
{
	KILLED(SERVER, false);
}

TEST_F_TIMEOUT(log, target_exactly_once, 1000)
{
	KILLED(SERVER, true);
}
