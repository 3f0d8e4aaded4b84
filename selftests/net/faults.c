// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -Wno-unused-function
/*
 * Make calls of the module fail, one at a time, by the kernel's fault injection: all requests for
 * memory, and accesses to the user's memory, that have a given return address of the module on
 * their stack.
 *
 *   faults [-a] MODULES < SITES
 *
 * MODULES is the directory of esp.ko and esp_diag.ko, which are loaded. A line of SITES:
 *	SECTION OFFSET TIMES NAME	a return address in esp.ko, and how often it shall fail
 *
 * For each site the scenarios run until one reaches the site. A call that fails must return ENOMEM,
 * ENOBUFS or EFAULT, and work when it is tried again; or the failure costs nothing but time. No
 * byte may be wrong. Then some scenarios run again (-a: all), while the first, second, third ...
 * request of their process fails. Prints
 *	site NAME: SCENARIO, CONSEQUENCE	or: never
 *	nth SCENARIO: places, refusals
 * Exit status: 0, or 1 if a scenario did not end well, which a line "failed" reports.
 */
#include "sock-lib.h"
#include "memcg.h"
#include <linux/esp_wire.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <sys/syscall.h>

#define DEBUG	"/sys/kernel/debug/"
#define SECTION	"/sys/module/esp/sections/"
#define MUCH	200000
#define TIMES	1000000		/* limit of failures with fail-nth, never reached */
#define REFUSED	10000		/* refusals after which a call counts as broken */
#define SPLICES	150		/* of 250 bytes: more than the pages taken at once */
#define SITES	256
#define PLACES	500		/* most requests that a scenario may make */
#define RANGE	0x100000UL	/* esp.ko's memory is not larger */

static const char * const faults[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
#define FAULTS	(sizeof(faults) / sizeof(faults[0]))

static struct site {
	char		section[32];
	unsigned long	base;		/* the section's address when it was last loaded */
	unsigned long	offset;
	int		times;
	bool		hit;
	char		name[128];
} sites[SITES];
static int nsites;

static const char *modules;		/* directory of the modules */
static bool seen[256];			/* errors returned for injected failures */
static int refused;			/* number of such errors */
static const char *where;		/* call or condition that failed for another reason */

/*
 * The kernel's side.
 */

static void put(const char *dir, const char *name, const char *format, ...)
{
	char path[128];
	va_list args;
	int fd;

	snprintf(path, sizeof(path), "%s%s%s", dir, name[0] ? "/" : "", name);
	fd = MUST(open(path, O_WRONLY | O_CLOEXEC));
	va_start(args, format);
	MUST(vdprintf(fd, format, args));
	va_end(args);
	close(fd);
}

static unsigned long get(const char *path)
{
	unsigned long v;
	FILE *f = fopen(path, "re");

	if (!f || fscanf(f, "%li", (long *)&v) != 1) {
		printf("# cannot read %s\n", path);
		exit(KSFT_FAIL);
	}
	fclose(f);
	return v;
}

/* Make every request fail, at most @times, that has a return address in this range. */
static void arm(unsigned long start, unsigned long end, int percent, int times)
{
	char dir[64];
	size_t i;

	for (i = 0; i < FAULTS; i++) {
		snprintf(dir, sizeof(dir), DEBUG "%s", faults[i]);
		put(dir, "require-start", "%#lx", start);
		put(dir, "require-end", "%#lx", end);
		put(dir, "times", "%d", times);
		put(dir, "probability", "%d", percent);
	}
}

/* Let no request fail any more; return how many of @times each have failed. */
static int disarm(int times)
{
	char path[64];
	int n = 0;
	size_t i;

	for (i = 0; i < FAULTS; i++) {
		snprintf(path, sizeof(path), DEBUG "%s", faults[i]);
		put(path, "probability", "0");
		snprintf(path, sizeof(path), DEBUG "%s/times", faults[i]);
		n += times - get(path);
	}
	return n;
}

static void prepare(void)
{
	char dir[64];
	size_t i;

	for (i = 0; i < FAULTS; i++) {
		snprintf(dir, sizeof(dir), DEBUG "%s", faults[i]);
		put(dir, "probability", "0");
		put(dir, "verbose", "0");
	}
	put(DEBUG "failslab", "ignore-gfp-wait", "N");
	put(DEBUG "fail_page_alloc", "ignore-gfp-wait", "N");
	put(DEBUG "fail_page_alloc", "ignore-gfp-highmem", "N");
	put(DEBUG "fail_page_alloc", "min-order", "0");
}

/* Find the sections of the module. The next load puts its init section at the same address. */
static void locate(void)
{
	char path[96];
	int i;

	for (i = 0; i < nsites; i++) {
		if (i && !strcmp(sites[i].section, sites[i - 1].section)) {
			sites[i].base = sites[i - 1].base;
			continue;
		}
		snprintf(path, sizeof(path), SECTION "%.31s", sites[i].section);
		sites[i].base = get(path);
	}
}

/*
 * Steps of scenarios.
 */

/* Did @call fail because of an injected failure, so that it may be tried again? */
static bool injected(const char *call)
{
	if (errno == ENOMEM || errno == ENOBUFS || errno == EFAULT) {
		seen[errno] = true;
		if (refused++ < REFUSED)
			return true;
	}
	where = call;
	return false;
}

#define TRY(call) ({							\
	typeof(call) ret_;						\
									\
	while ((ret_ = (call)) < 0 && injected(#call))			\
		;							\
	ret_;								\
})

/* For a function that returns whether it ended well. */
#define DO(call) do {							\
	if (TRY(call) < 0)						\
		return false;						\
} while (0)

#define HOLDS(cond) do {						\
	errno = 0;							\
	where = NULL;							\
	if (!(cond)) {							\
		if (!where)	/* or the call in it that failed */	\
			where = #cond;					\
		return false;						\
	}								\
} while (0)

static bool connected(int type, int fd[2])
{
	struct timeval t = { LONG / 1000, 0 };
	struct sockaddr_esp here = any(PORT), there = at(B, PORT);
	int l;

	enter(B);
	DO(l = socket(AF_ESP, type, 0));
	DO(bind(l, (struct sockaddr *)&here, sizeof(here)));
	DO(listen(l, 1));
	DO(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	enter(A);
	DO(fd[0] = socket(AF_ESP, type, 0));
	DO(connect(fd[0], (struct sockaddr *)&there, sizeof(there)));
	DO(fd[1] = accept(l, NULL, NULL));
	close(l);
	return true;
}

/* Receive what is there, and check it. @got: bytes received before; updated. */
static bool takes(int fd, size_t *got)
{
	static __u8 in[CHUNK];
	ssize_t r = TRY(recv(fd, in, CHUNK, MSG_DONTWAIT));

	if (r < 0 && errno == EAGAIN)
		return true;
	HOLDS(r > 0);
	HOLDS(right(in, *got, r));
	*got += r;
	return true;
}

/*
 * Move bytes from one end to the other. The writer's memory does not change, so it may be lent
 * (MSG_ZEROCOPY). @lags: the reader waits until the writer can't go on.
 */
static bool moves(int from, int to, size_t n, int flags, bool lags)
{
	static __u8 out[MUCH];
	size_t sent = 0, got = 0;
	long long end = now_ms() + 6 * LONG;

	fill(out, 0, n);
	while (got < n) {
		struct pollfd p[2] = {
			{ .fd = sent < n ? from : -1, .events = POLLOUT },
			{ .fd = to, .events = POLLIN },
		};
		size_t want = n - sent < CHUNK ? n - sent : CHUNK;
		ssize_t r;

		HOLDS(now_ms() < end);
		HOLDS(poll(p, 2, LONG) > 0);
		if (p[0].revents) {
			r = TRY(send(from, out + sent, want, MSG_DONTWAIT | MSG_NOSIGNAL | flags));
			if (r < 0 && errno != EAGAIN)
				return false;
			sent += r > 0 ? r : 0;
			if (lags && r > 0)
				continue;
		}
		HOLDS(takes(to, &got));
	}
	return true;
}

/* End both directions; true if both ends read the end of data. */
static bool ends(const int fd[2])
{
	struct timeval t = { LONG / 1000, 0 };
	char c;
	int i;

	for (i = 0; i < 2; i++) {
		DO(setsockopt(fd[i], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
		DO(shutdown(fd[i], SHUT_WR));
	}
	for (i = 0; i < 2; i++)
		HOLDS(TRY(recv(fd[i], &c, 1, 0)) == 0);
	return true;
}

/*
 * Scenarios.
 */

static bool stream(void)
{
	int fd[2];

	return connected(SOCK_STREAM, fd) && moves(fd[0], fd[1], 100, 0, false) &&
	       moves(fd[0], fd[1], 100000, 0, false) &&
	       moves(fd[1], fd[0], 5000, 0, false) && ends(fd);
}

static bool options(void)
{
	struct sockaddr_in dest = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(int);
	int fd, tcp, v = 0;

	enter(A);
	DO(fd = socket(AF_ESP, SOCK_STREAM, 0));
	DO(tcp = socket(AF_INET, SOCK_STREAM, 0));
	DO(set_int(fd, SOL_ESP, ESP_TCP_SOCKET, tcp));
	DO(setsockopt(fd, SOL_ESP, ESP_TCP_DEST, &dest, sizeof(dest)));
	DO(set_int(fd, SOL_SOCKET, SO_RCVBUF, 100000));
	DO(set_int(fd, SOL_ESP, ESP_NODELAY, 0));
	DO(getsockopt(fd, SOL_ESP, ESP_NODELAY, &v, &len));
	HOLDS(!v);
	DO(ioctl(fd, SIOCINQ, &v));
	return true;
}

/* Send a datagram until one arrives: it is lost where memory is missing or cannot be copied to. */
static bool datagram(int from, int to, void *in, size_t room, bool group)
{
	struct sockaddr_esp there = at(B, PORT);
	static __u8 out[1000];
	ssize_t n;
	int tries;

	if (group)
		memset(there.sesp_addr, 0xff, sizeof(there.sesp_addr));
	fill(out, 0, sizeof(out));
	for (tries = 0; tries < 100; tries++) {
		DO(sendto(from, out, sizeof(out), 0, (struct sockaddr *)&there, sizeof(there)));
		if (!events(to, POLLIN, SHORT))
			continue;
		n = recv(to, in, room, MSG_DONTWAIT);
		if (n >= 0)
			return right(in, 0, n) && n == (ssize_t)(room < sizeof(out) ? room : sizeof(out));
		if (!injected("recv of a datagram"))
			return false;
	}
	return false;
}

/* Pass addresses where the user has no memory. */
static bool addresses(void)
{
	void *bad = (void *)8;
	int fd[2], v = 0;
	socklen_t len = sizeof(v);

#define NO_ADDRESS(call) HOLDS((call) < 0 && errno == EFAULT)
	if (!connected(SOCK_STREAM, fd))
		return false;
	NO_ADDRESS(setsockopt(fd[0], SOL_ESP, ESP_NODELAY, bad, sizeof(v)));
	NO_ADDRESS(getsockopt(fd[0], SOL_ESP, ESP_NODELAY, &v, bad));
	NO_ADDRESS(getsockopt(fd[0], SOL_ESP, ESP_NODELAY, bad, &len));
	NO_ADDRESS(ioctl(fd[0], SIOCINQ, bad));
	DO(set_int(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1));
	NO_ADDRESS(send(fd[0], bad, 10000, MSG_ZEROCOPY));
	return moves(fd[0], fd[1], 5000, 0, false) && ends(fd);
}

/* Connect to a port without a listener. */
static bool refusal(void)
{
	struct sockaddr_esp there = at(B, PORT);
	int fd;

	enter(A);
	DO(fd = socket(AF_ESP, SOCK_STREAM, 0));
	if (TRY(connect(fd, (struct sockaddr *)&there, sizeof(there))) < 0 &&
	    errno == ECONNREFUSED)
		return true;
	where = "connect to nobody";
	return false;
}

static bool datagrams(void)
{
	struct sockaddr_esp here = any(PORT);
	static __u8 in[CHUNK];
	int from, to;

	enter(B);
	DO(to = socket(AF_ESP, SOCK_DGRAM, 0));
	DO(bind(to, (struct sockaddr *)&here, sizeof(here)));
	enter(A);
	DO(from = socket(AF_ESP, SOCK_DGRAM, 0));
	HOLDS(datagram(from, to, in, sizeof(in), false));
	HOLDS(datagram(from, to, in, 100, false));	/* cut */
	DO(set_int(from, SOL_SOCKET, SO_BROADCAST, 1));
	HOLDS(datagram(from, to, in, sizeof(in), true));
	return true;
}

/* Send with MSG_ZEROCOPY. */
static bool lends(void)
{
	char control[128];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
	int fd[2];

	if (!connected(SOCK_STREAM, fd))
		return false;
	DO(set_int(fd[0], SOL_SOCKET, SO_ZEROCOPY, 1));
	if (!moves(fd[0], fd[1], 100000, MSG_ZEROCOPY, false))
		return false;
	HOLDS(UNTIL(events(fd[0], 0, 0) & POLLERR));
	DO(recvmsg(fd[0], &msg, MSG_ERRQUEUE | MSG_DONTWAIT));
	return ends(fd);
}

/* Splice from packets with linear data into a pipe, which needs pages; and out of a pipe. */
static bool splices(void)
{
	__u8 buf[4000];
	int fd[2], p[2], i;

	if (!connected(SOCK_STREAM, fd))
		return false;
	MUST(pipe(p));
	MUST(fcntl(p[1], F_SETPIPE_SZ, 1 << 20));
	fill(buf, 0, sizeof(buf));
	for (i = 0; i < SPLICES; i++) {
		DO(send(fd[0], buf, 250, 0));
		HOLDS(events(fd[1], POLLIN, LONG));
		HOLDS(TRY(splice(fd[1], NULL, p[1], NULL, sizeof(buf), 0)) == 250);
	}
	for (i = 0; i < SPLICES; i++) {
		HOLDS(read(p[0], buf, 250) == 250);
		HOLDS(right(buf, 0, 250));
	}
	HOLDS(write(p[1], buf, sizeof(buf)) == sizeof(buf));
	DO(splice(p[0], NULL, fd[0], NULL, sizeof(buf), 0));
	memset(buf, 0, sizeof(buf));
	HOLDS(TRY(recv(fd[1], buf, sizeof(buf), MSG_WAITALL)) == sizeof(buf));
	HOLDS(right(buf, 0, sizeof(buf)));
	return ends(fd);
}

static bool bulk(void)
{
	int fd[2];

	return connected(SOCK_STREAM, fd) && moves(fd[0], fd[1], MUCH, 0, true) && ends(fd);
}

/* Receive @n bytes, or fail after a while. */
static bool receives(int fd, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t got = 0;

	while (got < n) {
		HOLDS(poll(&p, 1, LONG) > 0);
		HOLDS(takes(fd, &got));
	}
	return true;
}

/* A packet is lost, and is too large by the time when it is retransmitted. */
static bool shrinks(void)
{
	static __u8 out[8000];
	int fd[2];

	if (!connected(SOCK_STREAM, fd))
		return false;
	fill(out, 0, sizeof(out));
	enter(A);
	run("tc qdisc add dev va root netem loss 100%%");
	DO(send(fd[0], out, sizeof(out), MSG_NOSIGNAL));
	run("ip link set va mtu 1500 && tc qdisc delete dev va root");
	HOLDS(receives(fd[1], sizeof(out)));
	run("ip link set va mtu 9000");
	return ends(fd);
}

static void large_begin(void)
{
	enter(B);
	run("ip link set vb mtu 9000");
	enter(A);
	run("ip link set va mtu 9000");
}

static void large_end(void)
{
	enter(B);
	run("ip link set vb mtu 1500");
	enter(A);
	run("ip link set va mtu 1500");
}

/* Packet sockets: for all frames of A, for all of B, and for ESP frames that B's device gets. */
static int sniffers[3];

static int sniffer(const struct host *h, int type, int ifindex)
{
	struct sockaddr_ll a = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(type),
		.sll_ifindex = ifindex,
	};
	int fd, kept;

	enter(h);
	fd = MUST(socket(AF_PACKET, SOCK_RAW, 0));
	MUST(bind(fd, (struct sockaddr *)&a, sizeof(a)));
	kept = MUST(fcntl(fd, F_DUPFD_CLOEXEC, 256));	/* close_all() */
	close(fd);
	return kept;
}

static void sniffed_begin(void)
{
	sniffers[0] = sniffer(A, ETH_P_ALL, 0);
	sniffers[1] = sniffer(B, ETH_P_ALL, 0);
	sniffers[2] = sniffer(B, ESP_ETHERTYPE, B->ifindex);
}

/* Empty the packet sockets: a full one would take no copies of frames. */
static void read_sniffers(void)
{
	char c;
	int i;

	for (i = 0; i < 3; i++)
		while (recv(sniffers[i], &c, 1, MSG_DONTWAIT) > 0)
			;
}

static void sniffed_end(void)
{
	int i;

	for (i = 0; i < 3; i++)
		close(sniffers[i]);
}

/* Send B a frame of 5000 bytes. @linear: bytes at its start that are in one piece. */
static bool forge(int linear, __u8 ver_hlen)
{
	struct {
		struct virtio_net_hdr	vnet;
		struct ethhdr		eth;
		struct esp_wire		h;
		__u8			data[4900];
	} __attribute__((packed)) f = {
		.vnet.hdr_len = linear,
		.eth.h_proto = htons(ESP_ETHERTYPE),
		.h.ver_hlen = ver_hlen,
		.h.sport = htons(PORT),
		.h.dport = htons(PORT),
		.h.len = htons(100),
	};
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ESP_ETHERTYPE),
		.sll_ifindex = A->ifindex,
	};
	int fd, one = 1;

	memcpy(f.eth.h_dest, B->mac, ETH_ALEN);
	memcpy(f.eth.h_source, A->mac, ETH_ALEN);
	enter(A);
	fd = MUST(socket(AF_PACKET, SOCK_RAW, 0));
	MUST(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)));
	DO(sendto(fd, &f, sizeof(f), 0, (struct sockaddr *)&to, sizeof(to)));
	close(fd);
	return true;
}

/* Send frames whose first piece ends in the header, in the options, or just after the header. */
static bool forged(void)
{
	__u8 plain = ESP_VERSION << 4 | ESP_HLEN / 4;

	read_sniffers();
	return forge(ETH_HLEN, plain) && forge(ETH_HLEN + ESP_HLEN / 2, plain) &&
	       forge(ETH_HLEN + ESP_HLEN, plain + 2) &&
	       forge(ETH_HLEN + ESP_HLEN, plain) && stream();
}

static bool namespace(void)
{
	enter(A);
	DO(unshare(CLONE_NEWNET));
	enter(A);
	return true;
}

static bool device(void)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd;

	enter(A);
	fd = MUST(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
	DO(ioctl(fd, TUNSETIFF, &ifr));
	close(fd);
	return true;
}

static bool insert(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.ko", modules, name);
	fd = MUST(open(path, O_RDONLY | O_CLOEXEC));
	DO(syscall(SYS_finit_module, fd, "", 0));
	close(fd);
	return true;
}

/* Unload the module, which is not in use, and load it again. */
static bool module(void)
{
	MUST(syscall(SYS_delete_module, "esp_diag", 0));
	HOLDS(UNTIL(!syscall(SYS_delete_module, "esp", 0)));
	if (!insert("esp") || !insert("esp_diag"))
		return false;
	locate();
	return true;
}

/* Load it twice: only from then on its init section gets the address of the load before. */
static void module_begin(void)
{
	MUST(module() ? 0 : -1);
	MUST(module() ? 0 : -1);
}

static void sums_begin(void)
{
	sysctl(A, "dev/va/tx_checksum", 1);
}

static void sums_end(void)
{
	sysctl(A, "dev/va/tx_checksum", 0);
}

static void apart_begin(void)
{
	enter(A);
	run("ethtool -K va gso off tso off tx-sctp-segmentation off");
}

static void apart_end(void)
{
	enter(A);
	run("ethtool -K va gso on tx-sctp-segmentation on");
}

/* Forged frames are in pieces that packet sockets share; GRO sees the frames, too. */
static void forged_begin(void)
{
	sniffed_begin();
	enter(B);
	run("ip link set vb mtu 9000 && ethtool -K vb gro on");
	enter(A);
	run("ip link set va mtu 9000 && ethtool -K va tso off tx-sctp-segmentation off");
}

static void forged_end(void)
{
	sniffed_end();
	enter(B);
	run("ip link set vb mtu 1500 && ethtool -K vb gro off");
	enter(A);
	run("ip link set va mtu 1500 && ethtool -K va tso on tx-sctp-segmentation on");
}

/* accept() charges the group of its caller, which may need memory. */
static void charged_begin(void)
{
	if (!make_group())
		MUST(-1);
	join_group(true);
}

static void charged_end(void)
{
	if (!UNTIL(named(GROUP "/memory.stat", "sock") == 0) || !remove_group())
		MUST(-1);
}

static void lossy_begin(void)
{
	enter(A);
	run("ip link set va gso_max_size 9000");
	run("tc qdisc add dev va root netem delay 10ms 10ms loss 10%%");
	enter(B);
	run("tc qdisc add dev vb root netem delay 1ms loss 10%%");
}

static void lossy_end(void)
{
	enter(A);
	run("tc qdisc delete dev va root");
	run("ip link set va gso_max_size 65536");
	enter(B);
	run("tc qdisc delete dev vb root");
}

#define CONNECTED "sock.h af_esp.c sock.c hash.c first_burst.c connect.c sendmsg.c write_queue.c " \
		  "output.c recvmsg.c sockopt.c"

static const struct scenario {
	const char	*name;
	bool		(*run)(void);
	void		(*begin)(void);
	void		(*end)(void);
	const char	*files;		/* source files with sites that it may reach */
	bool		quick;		/* try_places() takes a short time */
	int		tries;		/* extra runs; not 0: runs vary, or are long */
} scenarios[] = {
	{ .name = "stream", .run = stream, .files = CONNECTED },
	{ .name = "charged", .run = stream, .begin = charged_begin, .end = charged_end,
	  .files = "memory.c" },
	{ .name = "options", .run = options, .files = "sockopt.c tcp.c", .quick = true },
	{ .name = "addresses", .run = addresses, .files = "" },
	{ .name = "refusal", .run = refusal, .files = "connect.c", .quick = true },
	{ .name = "datagrams", .run = datagrams, .files = "dgram.c af_esp.c sock.c", .quick = true },
	{ .name = "sums", .run = stream, .begin = sums_begin, .end = sums_end,
	  .files = CONNECTED },
	{ .name = "zerocopy", .run = lends, .files = "sendmsg.c write_queue.c input.c" },
	{ .name = "splice", .run = splices, .files = "sendmsg.c write_queue.c recvmsg.c" },
	{ .name = "sniffed", .run = stream, .begin = sniffed_begin, .end = sniffed_end,
	  .files = "input.c output.c", .tries = 1 },
	{ .name = "forged", .run = forged, .begin = forged_begin, .end = forged_end,
	  .files = "input.c offload.c", .tries = 1 },
	{ .name = "apart", .run = stream, .begin = apart_begin, .end = apart_end,
	  .files = "offload.c", .tries = 1 },
	{ .name = "lossy", .run = bulk, .begin = lossy_begin, .end = lossy_end,
	  .files = "sendmsg.c write_queue.c output.c rcv_data.c rcv_coalesce.c", .tries = 50 },
	{ .name = "shrinks", .run = shrinks, .begin = large_begin, .end = large_end,
	  .files = "rcv_part.c", .tries = 10 },
	{ .name = "namespace", .run = namespace, .files = "sysctl.c proc.c delayed_ack.c" },
	{ .name = "device", .run = device, .files = "dev.c notifier.c link.c first_burst.c sysctl.c", .quick = true },
	{ .name = "module", .run = module, .begin = module_begin,
	  .files = "module.c af_esp.c sock.c hash.c cookie.c dev.c notifier.c link.c",
	  .tries = 1 },
};
#define SCENARIOS	(sizeof(scenarios) / sizeof(scenarios[0]))

static int status;

/* Report a scenario that did not end well, or left sockets. */
static void judge(const struct scenario *s, bool well, const char *what)
{
	const char *why = strerror(errno);

	close_all();
	if (well && !UNTIL(inuse(A) + inuse(B) == 0)) {
		well = false;
		where = "sockets are left";
		why = "";
	}
	if (well)
		return;
	printf("failed %s, %s: %s: %s\n", what, s->name, where, why);
	dump_counters();
	status = 1;
}

static void errors(void)
{
	int i;

	for (i = 0; i < 256; i++)
		if (seen[i])
			printf(" %s", strerrorname_np(i));
	printf("%s\n", refused ? "" : " nobody was told");
}

/* Is the site in a file of the scenario? Names of sites begin with FILE:LINE. */
static bool of_file(const struct scenario *s, const struct site *site)
{
	size_t n = strcspn(site->name, ":");
	const char *p;

	for (p = s->files; *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");

		if (len == n && !strncmp(p, site->name, n))
			return true;
		p += len;
	}
	return false;
}

static void try_once(const struct scenario *s, struct site *site)
{
	unsigned long at = site->base + site->offset;
	bool well;
	int hits;

	memset(seen, 0, sizeof(seen));
	refused = 0;
	arm(at, at + 1, 100, site->times);
	well = s->run();
	hits = disarm(site->times);
	judge(s, well, site->name);
	if (!hits)
		return;
	site->hit = true;
	printf("site %s: %s,", site->name, s->name);
	errors();
}

static void try_site(const struct scenario *s, struct site *site)
{
	int i = 0;

	while (!site->hit && i++ <= s->tries)
		try_once(s, site);
}

/* Run the scenario while the nth request of the process fails, for n = 1, 2, ... */
static void try_places(const struct scenario *s)
{
	unsigned long start = -1UL, end = 0, left = 0;
	int n, i;
	bool well;

	for (i = 0; i < nsites; i++) {
		if (sites[i].base < start)
			start = sites[i].base;
		if (sites[i].base > end)
			end = sites[i].base;
	}
	memset(seen, 0, sizeof(seen));
	refused = 0;
	for (n = 1; !left && n <= PLACES; n++) {
		arm(start, end + RANGE, 0, TIMES);
		put("/proc/thread-self/fail-nth", "", "%d", n);
		well = s->run();
		left = get("/proc/thread-self/fail-nth");
		put("/proc/thread-self/fail-nth", "", "0");
		judge(s, well, "nth");
	}
	if (!left) {
		printf("failed nth, %s: there is no end\n", s->name);
		status = 1;
	}
	printf("nth %s: %d places, %d refusals,", s->name, n - 2, refused);
	errors();
}

int main(int argc, char **argv)
{
	bool all;
	size_t i;
	int j;

	all = argc == 3 && !strcmp(argv[1], "-a");
	if (argc != 2 + all) {
		fprintf(stderr, "usage: faults [-a] MODULES < SITES\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	modules = argv[argc - 1];
	while (nsites < SITES &&
	       scanf("%31s %li %d %127[^\n]", sites[nsites].section,
		     (long *)&sites[nsites].offset, &sites[nsites].times,
		     sites[nsites].name) == 4)
		nsites++;
	if (!feof(stdin)) {
		printf("failed: line %d of SITES is wrong, or one too many\n", nsites + 1);
		return 1;
	}
	prepare();
	locate();
	make_hosts();
	for (j = 0; j < 2; j++) {
		sysctl(&hosts[j], "time_wait_ms", 1);
		sysctl(&hosts[j], "rto_max_ms", 50);
	}
	for (i = 0; i < SCENARIOS; i++) {
		const struct scenario *s = &scenarios[i];
		long long t = now_ms();

		if (s->begin)
			s->begin();
		judge(s, s->run(), "without faults");
		for (j = 0; j < nsites; j++)
			if (of_file(s, &sites[j]))
				try_site(s, &sites[j]);
		if (s->quick || (all && !s->tries))
			try_places(s);
		if (s->end)
			s->end();
		printf("# %s: %lld ms\n", s->name, now_ms() - t);
	}
	for (j = 0; j < nsites; j++)
		if (!sites[j].hit)
			printf("site %s: never\n", sites[j].name);
	return status;
}
