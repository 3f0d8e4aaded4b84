// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages: the transaction log's files: damaged, forged, or impossible to make. Included by
 * host-am.c, after am-log.c.
 */

/* Open an endpoint with handlers that only answer; it is its own peer. */
static int open_own(const struct am_options *o)
{
	int error = AM_AllocateEndpointWith(bundle, o, &ep[CALLER], &name[CALLER]);

	if (error)
		return error;
	ep[SERVER] = ep[CALLER];
	set_handlers(CALLER);
	return AM_OK;
}

/* Make requests to itself: both pools have records, decided and not. */
static int fill_log(void)
{
	uint8_t data[100] = { 1, 2, 3 };
	int error = AM_Map(ep[CALLER], 0, name[CALLER], 0);

	AM_SetTimeout(bundle, -1);
	if (!error)
		error = AM_RequestI4(ep[CALLER], 0, ECHO, data, 100, 1, 2, 3, 4);
	while (!error && state_of(CALLER, sent()).state != AM_STATE_DONE)
		AM_WaitSema(bundle);
	if (!error)
		error = AM_Request1(ep[CALLER], 0, LATER, 7);
	while (!error && !later)
		AM_WaitSema(bundle);
	AM_SetTimeout(bundle, 1);
	AM_FreeEndpoint(ep[CALLER]);
	later = NULL;
	return error;
}

static int make_log(const struct am_options *o)
{
	int error = open_own(o);

	return error ? error : fill_log();
}

static size_t read_file(const char *path, uint8_t *data, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, data, room);

	if (fd >= 0)
		close(fd);
	return n < 0 ? 0 : n;
}

static bool write_file(const char *path, const void *data, size_t n)
{
	/* Cut it afterwards, because cutting first waits for the disk on some file systems. */
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	bool ok = fd >= 0 && write(fd, data, n) == (ssize_t)n && !ftruncate(fd, n);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Return a number for the contents of the log. */
static uint32_t digest(void)
{
	am_handle_t h[16];
	struct am_record r;
	uint32_t c = ~0u;
	int i, n, m;

	n = AM_ListSent(ep[CALLER], h, 8);
	m = AM_ListReceived(ep[CALLER], h + n, 8);
	for (i = 0; i < n + m; i++) {
		memset(&r, 0, sizeof(r));
		if (AM_GetRecord(ep[CALLER], h[i], &r))
			life->bad++;
		c = crc32c(c, &h[i], sizeof(h[i]));
		c = crc32c(c, r.request.data, r.request.nbytes);
		c = crc32c(c, r.reply.data, r.reply.nbytes);
		/* The address of the data differs. */
		r.request.data = NULL;
		r.reply.data = NULL;
		c = crc32c(c, &r, sizeof(r));
	}
	return c;
}

/* Open the log as it is in @data, and return its digest in @says. */
static int open_as(const struct am_options *o, const void *data, size_t n, uint32_t *says)
{
	int error;

	if (!write_file(log_path, data, n))
		return AM_ERR_SYSTEM;
	error = open_own(o);
	if (error)
		return error;
	*says = digest();
	AM_FreeEndpoint(ep[CALLER]);
	return AM_OK;
}

static bool refused(int error)
{
	return error == AM_ERR_LOG_DAMAGED || error == AM_ERR_LOG_FOREIGN;
}

#define WORD	sizeof(uint64_t)

struct entry {
	size_t	at, size;
};

/* Find the entries of a log of one peer. Returns how many. */
static int entries(const struct am_options *o, struct entry *e)
{
	unsigned int i, n = 0, records = o->pool + o->credits;
	size_t at = (sizeof(struct log_header) + 7) & ~7ul;

	for (i = 0; i < 1 + o->credits + records; i++) {
		e[n].at = at;
		e[n].size = !i ? sizeof(struct log_peer) : i <= o->credits ? 8 :
			    sizeof(struct log_record);
		at += WORD + 2 * e[n].size;
		n++;
	}
	return n;
}

/* Return the copy that is valid. */
static uint8_t *valid(uint8_t *file, const struct entry *e)
{
	return file + e->at + WORD + (file[e->at + 4] & 1) * e->size;
}

static size_t data_at(const struct am_options *o, int record)
{
	struct entry e[16];
	int n = entries(o, e);

	return e[n - 1].at + WORD + 2 * sizeof(struct log_record) + record * 2ul * o->log_data;
}

/* The records are there, with their contents. */
TEST_F(log, records)
{
	static const uint8_t data[100] = { 1, 2, 3 };
	struct am_record r;
	am_handle_t h[8];

	ASSERT_EQ(AM_OK, make_log(&self->o));
	ASSERT_EQ(AM_OK, open_own(&self->o));
	ASSERT_EQ(2, AM_ListSent(ep[CALLER], h, 8));
	ASSERT_EQ(AM_OK, AM_GetRecord(ep[CALLER], h[0], &r));
	EXPECT_TRUE(name_equal(&name[CALLER], &r.peer));
	EXPECT_EQ(AM_STATE_DONE, r.state.state);
	EXPECT_EQ(AM_ACKED, r.state.ack);
	EXPECT_EQ(AM_PROCESSED, r.state.operation);
	EXPECT_EQ(0, r.undecided);
	EXPECT_EQ(ECHO, r.request.handler);
	EXPECT_EQ(4, r.request.nargs);
	EXPECT_EQ(4, r.request.args[3]);
	ASSERT_EQ(100, r.request.nbytes);
	EXPECT_EQ(0, memcmp(data, r.request.data, 100));
	EXPECT_EQ(ANSWER, r.reply.handler);
	ASSERT_EQ(100, r.reply.nbytes);
	EXPECT_EQ(0, memcmp(data, r.reply.data, 100));
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Decide(ep[CALLER], h[0], AM_GIVE_UP));
	ASSERT_EQ(AM_OK, AM_GetRecord(ep[CALLER], h[1], &r));
	EXPECT_EQ(1, r.undecided);
	EXPECT_EQ(LATER, r.request.handler);
	EXPECT_EQ(7, r.request.args[0]);
	EXPECT_EQ(0, r.reply.handler);
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Decide(ep[CALLER], h[1], AM_RUN_AGAIN));
	EXPECT_EQ(AM_ERR_STALE, AM_GetRecord(ep[CALLER], h[1] + 1, &r));
	/* The second request took the same slot. */
	ASSERT_EQ(1, AM_ListReceived(ep[CALLER], h + 2, 6));
	ASSERT_EQ(AM_OK, AM_GetRecord(ep[CALLER], h[2], &r));
	EXPECT_EQ(1, r.undecided);
	EXPECT_EQ(7, r.request.args[0]);
	EXPECT_EQ(variant->protocol == AM_AMVIA ? AM_REPLY_NOT_SENT : AM_REQUEST_RECVD,
		  r.state.operation);
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Decide(ep[CALLER], h[2], AM_SEND_AGAIN));
	/* After the decision, it ends as it would have. */
	EXPECT_EQ(AM_OK, AM_Decide(ep[CALLER], h[1], AM_SEND_AGAIN));
	EXPECT_EQ(AM_OK, AM_Decide(ep[CALLER], h[2], AM_RUN_AGAIN));
	ASSERT_NE(NULL, later);
	EXPECT_EQ(AM_OK, AM_Reply0(later, ANSWER));
	EXPECT_STATE(CALLER, h[1], DONE, AM_ACKED, AM_PROCESSED);
	EXPECT_EQ(AM_ERR_BAD_ARG, AM_Decide(ep[CALLER], h[1], AM_GIVE_UP));
}

/* Each byte is changed: the log is refused if the byte counts, else its contents are as before. */
TEST_F_TIMEOUT(log, each_byte, 300)
{
	static uint8_t file[20000], counts[20000];
	uint32_t says, now_says;
	struct log_record rec;
	struct entry e[16];
	size_t i, size;
	int j, n, error;

	self->o.log_data = AM_MAX_MEDIUM;
	ASSERT_EQ(AM_OK, make_log(&self->o));
	size = read_file(log_path, file, sizeof(file));
	n = entries(&self->o, e);
	ASSERT_EQ(data_at(&self->o, self->o.pool + self->o.credits), size);
	memset(counts, 1, sizeof(struct log_header));
	for (j = 0; j < n; j++) {
		memset(counts + e[j].at, 1, WORD);
		memset(counts + (valid(file, &e[j]) - file), 1, e[j].size);
		if (j <= (int)self->o.credits)
			continue;
		memcpy(&rec, valid(file, &e[j]), sizeof(rec));
		i = data_at(&self->o, j - 1 - self->o.credits);
		memset(counts + i, 1, rec.request.total);
		memset(counts + i + self->o.log_data, 1, rec.reply.total);
	}
	ASSERT_EQ(AM_OK, open_as(&self->o, file, size, &says));
	for (i = 0; i < size; i++) {
		file[i] ^= 1 << i % 8;
		error = open_as(&self->o, file, size, &now_says);
		file[i] ^= 1 << i % 8;
		EXPECT_TRUE(counts[i] ? refused(error) : !error && now_says == says)
			TH_LOG("byte %zu: %s", i, AM_ErrorName(error));
	}
	EXPECT_EQ(0, life->bad);
}

/* A file of each other length is refused. */
TEST_F_TIMEOUT(log, each_length, 300)
{
	static uint8_t file[20000];
	size_t i, size;
	uint32_t says;

	self->o.log_data = AM_MAX_MEDIUM;
	ASSERT_EQ(AM_OK, make_log(&self->o));
	size = read_file(log_path, file, sizeof(file));
	for (i = 0; i <= size + 8; i++)
		EXPECT_EQ(i == size ? AM_OK : AM_ERR_LOG_DAMAGED,
			  open_as(&self->o, file, i, &says))
			TH_LOG("%zu bytes", i);
}

/* Make the checksums of an entry right again, and those of the data that it refers to. */
static void seal(uint8_t *file, const struct entry *e, int record, const struct am_options *o)
{
	const struct log_header *h = (void *)file;
	struct log_record *rec = (void *)valid(file, e);
	uint64_t at = e->at, *word = (uint64_t *)(file + at);
	uint32_t number = *word >> 32, c;
	uint8_t *data = file + data_at(o, record);

	if (record >= 0 && rec->request.total <= o->log_data && rec->request.total)
		rec->request.crc = crc32c(~0u, data, rec->request.total);
	if (record >= 0 && rec->reply.total <= o->log_data && rec->reply.total)
		rec->reply.crc = crc32c(~0u, data + o->log_data, rec->reply.total);
	c = crc32c(~0u, &h->id, sizeof(h->id));
	c = crc32c(c, &at, sizeof(at));
	c = crc32c(c, &number, sizeof(number));
	*word = (uint64_t)number << 32 | crc32c(c, rec, e->size);
}

/* Do all that can be done with a log that was accepted. */
static void use(void)
{
	struct am_record r;
	am_handle_t h[16];
	int i, j, n;

	digest();
	n = AM_ListSent(ep[CALLER], h, 8);
	n += AM_ListReceived(ep[CALLER], h + n, 8);
	for (i = 0; i < n; i++)
		for (j = AM_RUN_AGAIN; j >= AM_GIVE_UP; j--)
			if (!AM_GetRecord(ep[CALLER], h[i], &r) && r.undecided)
				AM_Decide(ep[CALLER], h[i], j);
	for (i = 0; i < 3; i++)
		AM_Poll(bundle);
	AM_Map(ep[CALLER], 0, name[CALLER], 0);
	for (i = 0; i < 3; i++)
		AM_Poll(bundle);
}

/* Lies with right checksums: refused or not, no memory is touched that isn't the library's. */
TEST_F_TIMEOUT(log, lies, 600)
{
	static uint8_t file[20000], good[20000];
	unsigned int accepted = 0, no = 0;
	struct entry e[16];
	size_t i, size;
	int j, n, k;

	self->o.log_data = AM_MAX_MEDIUM;
	ASSERT_EQ(AM_OK, make_log(&self->o));
	AM_SetTimeout(bundle, 0);
	size = read_file(log_path, good, sizeof(good));
	n = entries(&self->o, e);
	for (j = 0; j < n; j++) {
		for (i = 0; i < e[j].size; i++) {
			for (k = 0; k < 10; k++) {
				int error;

				memcpy(file, good, size);
				if (k < 8)
					valid(file, &e[j])[i] ^= 1 << k;
				else
					valid(file, &e[j])[i] = k == 8 ? 0 : 0xff;
				seal(file, &e[j], j - 1 - (int)self->o.credits, &self->o);
				ASSERT_TRUE(write_file(log_path, file, size));
				error = open_own(&self->o);
				if (error) {
					no++;
					EXPECT_TRUE(refused(error));
					continue;
				}
				accepted++;
				use();
				AM_FreeEndpoint(ep[CALLER]);
			}
		}
	}
	TH_LOG("%u refused, %u accepted", no, accepted);
	EXPECT_LT(0, no);
	EXPECT_LT(0, accepted);
}

/* Change one entry of the good log, and give it the right checksum: the log is refused. */
#define LIE(number, statement) do {						\
	memcpy(file, good, size);						\
	statement;								\
	seal(file, &e[number], (number) - 1 - (int)self->o.credits, &self->o);	\
	EXPECT_EQ(AM_ERR_LOG_DAMAGED, open_as(&self->o, file, size, &says))	\
		TH_LOG("%s", #statement);					\
} while (0)

/* A log that no endpoint writes is refused. */
TEST_F(log, lies_refused)
{
	static uint8_t file[20000], good[20000];
	struct log_record *done, *asked, *got;
	struct log_peer *peer;
	struct entry e[16];
	uint64_t *instance;
	uint32_t says;
	size_t size;
	int q, r;

	self->o.log_data = AM_MAX_MEDIUM;
	ASSERT_EQ(AM_OK, make_log(&self->o));
	size = read_file(log_path, good, sizeof(good));
	entries(&self->o, e);
	/* The first two entries of the send pool, and the first one of the receive pool. */
	q = 1 + self->o.credits;
	r = q + self->o.pool;
	memcpy(file, good, size);
	peer = (void *)valid(file, &e[0]);
	instance = (void *)valid(file, &e[1]);
	done = (void *)valid(file, &e[q]);
	asked = (void *)valid(file, &e[q + 1]);
	got = (void *)valid(file, &e[r]);
	ASSERT_EQ(AM_STATE_DONE, done->state);
	ASSERT_EQ(LATER, asked->request.handler);
	ASSERT_EQ(LATER, got->request.handler);
	ASSERT_EQ(AM_OK, open_as(&self->o, file, size, &says));

	LIE(0, peer->session++);
	LIE(0, peer->flags = LOG_KNOWN);
	LIE(1, *instance |= 1 << 16);
	if (variant->credits > 1)
		LIE(1, *instance += 5);
	LIE(q, done->name.kind = 9);
	LIE(q, done->state = AM_STATE_RELEASED);
	LIE(q, done->operation = AM_REPLY_SENT);
	LIE(q, done->ack = 0xff);
	LIE(q, done->why = AM_CAUSE_DECIDED + 1);
	LIE(q, done->handled = 2);
	/* Two requests have one slot. */
	LIE(q, *done = *asked);
	LIE(q + 1, asked->slot = self->o.credits);
	LIE(q + 1, asked->name.address[15] ^= 1);
	LIE(q + 1, asked->request.size = WIRE_BULK + 1);
	LIE(q + 1, asked->request.size = WIRE_EMPTY);
	LIE(q + 1, memset(&asked->request, 0, sizeof(asked->request)));
	LIE(q + 1, asked->request.nargs = AM_MAX_ARGS + 1);
	LIE(q + 1, asked->request.handler = 0);
	LIE(q + 1, asked->request.handler = AM_HANDLERS);
	LIE(q + 1, asked->request.total = 1);
	LIE(q + 1, (asked->request.size = WIRE_MEDIUM, asked->request.total = AM_MAX_MEDIUM + 1));
	LIE(q + 1, (asked->request.size = WIRE_BULK, asked->request.total = AM_MAX_MEDIUM + 1));
	LIE(q + 1, asked->request.crc = 1);
	LIE(q + 1, asked->reply.total = 1);
	LIE(r, got->why = WHY_LOST + 1);
	LIE(r, got->state = AM_STATE_RESENT);
	LIE(r, memset(&got->request, 0, sizeof(got->request)));
	LIE(r, got->reply.nargs = 1);
	/* A connection without requests, which would not fit any more. */
	memcpy(file, good, size);
	memset(asked, 0, sizeof(*asked));
	seal(file, &e[q + 1], 1, &self->o);
	memcpy(good, file, size);
	ASSERT_EQ(AM_OK, open_as(&self->o, file, size, &says));
	LIE(0, peer->flags = 8);
	LIE(0, peer->name.kind = 9);
	LIE(0, peer->credits = 0);
	LIE(0, peer->credits = self->o.credits + 1);
	LIE(0, peer->peer_credits = 0);
	LIE(0, peer->peer_credits = self->o.credits + 1);
	LIE(0, (peer->flags |= LOG_OFFERED, peer->offered_credits = 0));
	LIE(0, (peer->flags |= LOG_OFFERED, peer->offered_credits = self->o.credits + 1));
}

/* A log of another endpoint, or with other options, is refused. */
TEST_F(log, foreign)
{
	static uint8_t file[20000];
	struct am_options o = self->o;
	struct log_header *h = (void *)file;
	uint32_t says;
	size_t size;

	self->o.log_data = AM_MAX_MEDIUM;
	o = self->o;
	ASSERT_EQ(AM_OK, make_log(&o));
	size = read_file(log_path, file, sizeof(file));
	o.address = self->address[SERVER];
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, open_as(&o, file, size, &says));
	o = self->o;
	o.pool++;
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, open_as(&o, file, size, &says));
	o = self->o;
	o.credits++;
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, open_as(&o, file, size, &says));
	o = self->o;
	o.peers++;
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, open_as(&o, file, size, &says));
	o = self->o;
	o.log_data++;
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, open_as(&o, file, size, &says));
	o = self->o;
	o.protocol = o.protocol % 3 + 1;
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, open_as(&o, file, size, &says));
	o = self->o;
	h->version++;
	h->crc = crc32c(~0u, h, offsetof(struct log_header, crc));
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, open_as(&o, file, size, &says));
	h->version--;
	h->crc = crc32c(~0u, h, offsetof(struct log_header, crc));
	EXPECT_EQ(AM_OK, open_as(&o, file, size, &says));
	/* Entries of another log, which has another number. */
	h->id++;
	h->crc = crc32c(~0u, h, offsetof(struct log_header, crc));
	EXPECT_EQ(AM_ERR_LOG_DAMAGED, open_as(&o, file, size, &says));
	memset(file, 0, size);
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, open_as(&o, file, size, &says));
}

/*
 * Open the log in a process of its own, after where(), whose effects stay there. Returns
 * open_life()'s result.
 */
static int open_where(const struct am_options *o, void (*where)(void), int *why)
{
	int error, status;
	pid_t pid = fork();

	if (!pid) {
		where();
		error = open_life(CALLER, o);
		_exit(error == AM_ERR_SYSTEM ? 100 + errno : error);
	}
	waitpid(pid, &status, 0);
	error = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	*why = error > 100 ? error - 100 : 0;
	return error > 100 ? AM_ERR_SYSTEM : error;
}

static void as_nobody(void)
{
	if (setuid(65534))
		_exit(99);
}

static void small_files(void)
{
	struct rlimit r = { 1000, 1000 };

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &r))
		_exit(99);
}

static void small_disk(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", log_dir, "tmpfs", 0, "size=8k"))
		_exit(99);
}

TEST_F(log, no_file)
{
	struct am_options o = self->o;
	eb_t other;
	ep_t second;
	en_t n;
	int why;

	o.log = log_dir;
	EXPECT_EQ(AM_ERR_SYSTEM, open_life(CALLER, &o));
	EXPECT_EQ(EISDIR, errno);
	o.log = "/tmp/am-log-no-such-directory/log";
	EXPECT_EQ(AM_ERR_SYSTEM, open_life(CALLER, &o));
	EXPECT_EQ(ENOENT, errno);
	o.log = "/dev/null";
	EXPECT_EQ(AM_ERR_LOG_FOREIGN, open_life(CALLER, &o));
	o.log = log_path;
	o.log_data = AM_MAX_MEDIUM - 1;
	EXPECT_EQ(AM_ERR_BAD_ARG, open_life(CALLER, &o));
	o.log_data = AM_MAX_LONG + 1;
	EXPECT_EQ(AM_ERR_BAD_ARG, open_life(CALLER, &o));
	/* Nothing is left of a log that could not be made. */
	EXPECT_EQ(AM_ERR_SYSTEM, open_where(&self->o, as_nobody, &why));
	EXPECT_EQ(EACCES, why);
	EXPECT_EQ(AM_ERR_SYSTEM, open_where(&self->o, small_files, &why));
	EXPECT_EQ(EFBIG, why);
	EXPECT_EQ(AM_ERR_SYSTEM, open_where(&self->o, small_disk, &why));
	EXPECT_EQ(ENOSPC, why);
	EXPECT_EQ(-1, access(log_path, F_OK));
	EXPECT_EQ(-1, access(log_part, F_OK));
	/* A log that is there can't be opened, either. */
	ASSERT_EQ(AM_OK, make_log(&self->o));
	EXPECT_EQ(AM_ERR_SYSTEM, open_where(&self->o, as_nobody, &why));
	EXPECT_EQ(EACCES, why);
	/* A log that is in use can't be opened. */
	ASSERT_EQ(AM_OK, open_life(CALLER, &self->o));
	ASSERT_EQ(AM_OK, AM_AllocateBundle(AM_SEQ, &other));
	o = self->o;
	o.address = self->address[SERVER];
	EXPECT_EQ(AM_ERR_SYSTEM, AM_AllocateEndpointWith(other, &o, &second, &n));
	EXPECT_EQ(EWOULDBLOCK, errno);
	EXPECT_EQ(AM_OK, AM_FreeBundle(other));
}

static void (*before_lock)(void);

int __real_flock(int fd, int operation);

int __wrap_flock(int fd, int operation)
{
	void (*f)(void) = before_lock;

	before_lock = NULL;
	if (f)
		f();
	return __real_flock(fd, operation);
}

static const char theirs[] = "somebody's";

static void another_finishes(void)
{
	write_file(log_part, theirs, sizeof(theirs));
	rename(log_part, log_path);
}

static void another_begins(void)
{
	unlink(log_part);
	write_file(log_part, theirs, sizeof(theirs));
}

static bool still_theirs(const char *path)
{
	uint8_t data[sizeof(theirs) + 1];

	return read_file(path, data, sizeof(data)) == sizeof(theirs) &&
	       !memcmp(data, theirs, sizeof(theirs));
}

/* A log in the making: the library uses one that was left, but none of another user or process. */
TEST_F(log, in_the_making)
{
	char other[64];
	struct stat st;

	snprintf(other, sizeof(other), "%s/other", log_dir);
	ASSERT_TRUE(write_file(other, theirs, sizeof(theirs)));
	ASSERT_EQ(0, link(other, log_part));
	EXPECT_EQ(AM_ERR_SYSTEM, open_own(&self->o));
	EXPECT_EQ(EEXIST, errno);
	ASSERT_EQ(0, unlink(log_part));
	ASSERT_EQ(0, symlink(other, log_part));
	EXPECT_EQ(AM_ERR_SYSTEM, open_own(&self->o));
	EXPECT_EQ(ELOOP, errno);
	ASSERT_EQ(0, unlink(log_part));
	ASSERT_EQ(0, rename(other, log_part));
	ASSERT_EQ(0, chown(log_part, 65534, 65534));
	EXPECT_EQ(AM_ERR_SYSTEM, open_own(&self->o));
	EXPECT_EQ(EEXIST, errno);
	EXPECT_TRUE(still_theirs(log_part));
	ASSERT_EQ(0, unlink(log_part));
	/* Two processes make one at once. */
	before_lock = another_finishes;
	EXPECT_EQ(AM_ERR_SYSTEM, open_own(&self->o));
	EXPECT_EQ(EWOULDBLOCK, errno);
	EXPECT_TRUE(still_theirs(log_path));
	ASSERT_EQ(0, unlink(log_path));
	before_lock = another_begins;
	EXPECT_EQ(AM_ERR_SYSTEM, open_own(&self->o));
	EXPECT_EQ(EWOULDBLOCK, errno);
	EXPECT_TRUE(still_theirs(log_part));
	EXPECT_EQ(-1, access(log_path, F_OK));
	/* The other process was killed. */
	ASSERT_EQ(0, chmod(log_part, 0666));
	ASSERT_EQ(AM_OK, open_own(&self->o));
	ASSERT_EQ(0, stat(log_path, &st));
	EXPECT_EQ(S_IFREG | 0600, st.st_mode);
	EXPECT_EQ(-1, access(log_part, F_OK));
}

/* A message is too large for the log, on both sides. */
TEST_F(log, beyond)
{
	struct am_options other = self->o;
	static uint8_t data[5000];

	other.log = NULL;
	other.address = self->address[SERVER];
	ASSERT_EQ(AM_OK, open_life(CALLER, &self->o));
	ASSERT_EQ(AM_OK, open_life(SERVER, &other));
	AM_SetTimeout(bundle, -1);
	ASSERT_EQ(AM_OK, AM_Map(ep[CALLER], 0, name[SERVER], 0));
	ASSERT_EQ(AM_OK, AM_Map(ep[SERVER], 0, name[CALLER], 0));
	EXPECT_EQ(AM_ERR_TOO_BIG, AM_RequestXfer0(ep[CALLER], 0, 0, ECHO, data, 4097));
	ASSERT_EQ(AM_OK, AM_RequestXfer0(ep[SERVER], 0, 0, ECHO, data, 4097));
	while (state_of(SERVER, ep[SERVER]->last_handle).state != AM_STATE_ABANDONED)
		ASSERT_EQ(AM_OK, AM_WaitSema(bundle));
	EXPECT_EQ(AM_CAUSE_SEGMENT, state_of(SERVER, ep[SERVER]->last_handle).cause);
	EXPECT_EQ(0, life->effect[0]);
}
