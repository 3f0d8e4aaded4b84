// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages: the contents of the transaction log's files when a frame leaves, and on the disk
 * when the power fails. Included by host-am.c, after am-log-files.c.
 */

static uint8_t *disk;		/* NULL: msync() isn't replaced */
static size_t disk_size;

/* Is there a record of this instance in this state? Looks on the disk, if there is one. */
static bool in_log(const struct am_options *o, bool sent_one, int state, int instance,
		   int arg)
{
	static uint8_t file[200000];
	struct log_record rec;
	struct entry e[16];
	int i, n, first;

	if (disk)
		memcpy(file, disk, disk_size);
	else if (!read_file(log_path, file, sizeof(file)))
		return false;
	n = entries(o, e);
	first = 1 + o->credits + (sent_one ? 0 : o->pool);
	if (sent_one)
		n = first + o->pool;
	for (i = first; i < n; i++) {
		memcpy(&rec, valid(file, &e[i]), sizeof(rec));
		if (rec.known && rec.state == state && (instance < 0 || rec.instance == instance) &&
		    (arg < 0 || rec.request.args[0] == arg))
			return true;
	}
	return false;
}

/* No frame leaves before the log has it. */
static enum am_verdict look_in_log(void *arg, uint8_t *frame, size_t len)
{
	int instance = frame[14] << 8 | frame[15];
	bool right = true;

	(void)len;
	seen[frame[1]]++;
	switch (frame[1]) {
	case WIRE_REQUEST:
		right = in_log(arg, true, AM_STATE_CREATED, instance, -1);
		break;
	case WIRE_ACK:
		right = in_log(arg, false, AM_STATE_SENT, instance, -1);
		break;
	case WIRE_REPLY:
		right = in_log(arg, false, AM_STATE_DONE, instance, -1);
		break;
	case WIRE_NACK:
		right = in_log(arg, false, AM_STATE_ABANDONED, instance, -1);
		break;
	case WIRE_FINAL:
		right = in_log(arg, true, AM_STATE_DONE, instance, -1);
		break;
	}
	life->bad += !right;
	return AM_PASS;
}

static void answer_logged(void *token, int a, int b, int c, int d)
{
	(void)token; (void)b; (void)c; (void)d;
	answered++;
	/* The record of the request with argument @a. */
	life->bad += !in_log(ep[CALLER]->transport.faults.arg, true, AM_STATE_DONE, -1, a);
}

static int open_watched(struct am_options *o)
{
	int error;

	/* Nothing is retransmitted. */
	o->timeout_us = 60000000;
	o->reply_timeout_us = 60000000;
	o->min_timeout_us = 60000000;
	o->handler_max_us = 60000000;
	o->faults.filter = look_in_log;
	o->faults.arg = o;
	error = open_own(o);
	if (!error)
		AM_SetHandler(ep[CALLER], ANSWER, answer_logged);
	return error;
}

/* Make pairs of requests: one is answered, one is refused. */
static void request_watched(struct __test_metadata *_metadata)
{
	unsigned int i;

	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[CALLER], 0));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(AM_OK, AM_Request1(ep[CALLER], 0, ECHO, i));
		ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, UNKNOWN));
		while (state_of(CALLER, sent()).state != AM_STATE_ABANDONED || answered <= i)
			ASSERT_EQ(AM_OK, AM_WaitSema(bundle));
	}
}

TEST_F(log, order)
{
	ASSERT_EQ(AM_OK, open_watched(&self->o));
	request_watched(_metadata);
	EXPECT_EQ(0, life->bad);
	EXPECT_EQ(4, seen[WIRE_REPLY]);
	EXPECT_EQ(4, seen[WIRE_NACK]);
	EXPECT_EQ(8, seen[WIRE_REQUEST]);
	EXPECT_EQ(variant->protocol == AM_AMVIA ? 4 : 0, seen[WIRE_ACK]);
	EXPECT_EQ(variant->protocol == AM_AMUDP ? 4 : 0, seen[WIRE_FINAL]);
}

/*
 * Power failures: the disk has all for which msync() was called, and any part of the other stores
 */

static bool disk_asleep;	/* nothing gets to the disk before the process is killed */
static unsigned int names_synced;
static uint8_t *mapped;		/* the log: a new one calls msync() for all of it first */
static void (*at_msync)(void *arg);
static int disk_error, states;

int __real_msync(void *start, size_t n, int flags);

int __wrap_msync(void *start, size_t n, int flags)
{
	size_t at, size = sysconf(_SC_PAGESIZE);

	if (disk_error) {
		errno = disk_error;
		return -1;
	}
	if (disk_asleep)
		return 0;
	if (!mapped)
		mapped = start;
	if (!disk)
		return __real_msync(start, n, flags);
	if (at_msync)
		at_msync(NULL);
	at = (uint8_t *)start - mapped;
	/* The disk gets whole pages. */
	n = (n + size - 1) / size * size;
	memcpy(disk + at, start, at + n < disk_size ? n : disk_size - at);
	return 0;
}

int __real_fsync(int fd);

int __wrap_fsync(int fd)
{
	names_synced++;
	return __real_fsync(fd);
}

#define TORN	1		/* more disks of each moment, with some of the other stores */

/* Write the disk as it may be now to files of their own. */
static void power_fails(void *arg)
{
	static uint8_t image[200000];
	static uint32_t seed = 1;
	unsigned int i;
	char path[100];
	size_t at;

	(void)arg;
	for (i = 0; disk && i <= TORN; i++) {
		memcpy(image, disk, disk_size);
		for (at = 0; i && at < disk_size; at += WORD)
			if (random_next(&seed) % 2)
				memcpy(image + at, mapped + at, WORD);
		snprintf(path, sizeof(path), "%s/%d", log_dir, states++);
		write_file(path, image, disk_size);
	}
}

TEST_F_TIMEOUT(log, power, 300)
{
	static uint8_t image[200000];
	int i, before = 0, now_n, error;
	char path[100];
	am_handle_t h[8];

	self->o.log_sync = 1;
	self->o.log_data = 2048;
	self->o.faults.step = power_fails;
	ASSERT_EQ(AM_OK, open_own(&self->o));
	disk_size = read_file(log_path, image, sizeof(image));
	ASSERT_LT(3 * sysconf(_SC_PAGESIZE), disk_size);
	ASSERT_EQ(0, disk_size % WORD);
	disk = image;
	at_msync = power_fails;
	error = fill_log();
	at_msync = NULL;
	disk = NULL;
	ASSERT_EQ(AM_OK, error);
	TH_LOG("%d states", states);
	EXPECT_LT(20, states);
	self->o.faults.step = NULL;
	self->o.log_sync = 0;
	for (i = 0; i < states; i++) {
		snprintf(path, sizeof(path), "%s/%d", log_dir, i);
		self->o.log = path;
		error = open_own(&self->o);
		EXPECT_EQ(AM_OK, error)
			TH_LOG("state %d: %s", i, AM_ErrorName(error));
		if (!error) {
			/* A record that was known stays known. */
			now_n = AM_ListSent(ep[CALLER], h, 8);
			EXPECT_LE(before, now_n);
			if (i % (TORN + 1) == 0)
				before = now_n;
			AM_FreeEndpoint(ep[CALLER]);
		}
		unlink(path);
	}
	EXPECT_EQ(2, before);
}

/* A record that must be in the log before a frame leaves is on the disk by then. */
TEST_F(log, order_on_disk)
{
	static uint8_t image[200000];

	self->o.log_sync = 1;
	ASSERT_EQ(AM_OK, open_watched(&self->o));
	/* The name of a new log is on the disk, too. */
	EXPECT_EQ(1, names_synced);
	disk_size = read_file(log_path, image, sizeof(image));
	disk = image;
	request_watched(_metadata);
	disk = NULL;
	EXPECT_EQ(0, life->bad);
	EXPECT_EQ(4, seen[WIRE_REPLY]);
}

/*
 * Records that were stored, but not on the disk when the process was killed, are there before they
 * count.
 */
TEST_F(log, killed_before_disk)
{
	static uint8_t image[200000], file[200000];

	self->o.log_sync = 1;
	ASSERT_EQ(AM_OK, open_own(&self->o));
	disk_size = read_file(log_path, image, sizeof(image));
	disk_asleep = true;
	EXPECT_EQ(AM_OK, fill_log());
	disk_asleep = false;
	EXPECT_EQ(disk_size, read_file(log_path, file, sizeof(file)));
	EXPECT_NE(0, memcmp(image, file, disk_size));
	mapped = NULL;
	disk = image;
	names_synced = 0;
	EXPECT_EQ(AM_OK, open_own(&self->o));
	disk = NULL;
	EXPECT_EQ(disk_size, read_file(log_path, file, sizeof(file)));
	EXPECT_EQ(0, memcmp(image, file, disk_size));
	/* The name is on the disk, too. */
	EXPECT_EQ(1, names_synced);
}

/* The disk fails: the call that waits returns the error. */
TEST_F(log, disk_fails)
{
	int error, why;

	self->o.log_sync = 1;
	disk_error = EIO;
	EXPECT_EQ(AM_ERR_SYSTEM, open_own(&self->o));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(-1, access(log_path, F_OK));
	disk_error = 0;
	ASSERT_EQ(AM_OK, open_own(&self->o));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[CALLER], 0));
	ASSERT_EQ(AM_OK, AM_Connect(ep[CALLER], 0, 1));
	disk_error = EIO;
	ASSERT_EQ(AM_OK, AM_Request0(ep[CALLER], 0, ECHO));
	error = AM_OK;
	while (!error)
		error = AM_WaitSema(bundle);
	why = errno;
	EXPECT_EQ(AM_ERR_SYSTEM, error);
	EXPECT_EQ(EIO, why);
	EXPECT_LT(0, stats(CALLER).log_errors);
}
