// SPDX-License-Identifier: GPL-2.0-only
/*
 * esp show: sockets (as ss), counters (as nstat), devices; and esp kill, which ends the sockets.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <glob.h>
#include <libmnl/libmnl.h>
#include <linux/esp_diag.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "esp.h"

#define BIT(n)		(1U << (n))
#define STATES_ALL	(BIT(TCP_CLOSING + 1) - 1)
#define STATES_LISTEN	(BIT(TCP_LISTEN) | BIT(TCP_CLOSE))

struct show {
	const char *what;
	bool all;
	bool listening;
	bool extended;
	bool json;
	bool nonzero;
	/* criteria of the sockets */
	unsigned int type;
	unsigned int states;
	unsigned int port;
	__u64 cookie;
	struct address peer;
	struct mnl_socket *kill;	/* ends the sockets, by netlink; NULL: show only */
	unsigned int count;
};

static const char *const states[] = {
	"UNKNOWN", "ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2",
	"TIME-WAIT", "UNCONN", "CLOSE-WAIT", "LAST-ACK", "LISTEN", "CLOSING",
};

static const char *const flags[] = {
	"trans_announced", "recv_announced", "rcv_mem_pressure", "parked",
	"held", "echoing", "crc32c", "busy",
};

/* The 32-bit members of struct esp_info, from mss on. */
static const char *const info_names[] = {
	"mss", "peer_mss", "rtt_us", "rttvar_us", "min_rtt_us", "rto_us",
	"una_seq", "send_next", "send_seq", "announce_seq", "edge", "recv_seq",
	"ack_seq", "recv_edge", "open", "advice", "advice_given", "notsent",
	"unacked",
};

static_assert(offsetof(struct esp_info, pad) ==
	       offsetof(struct esp_info, mss) +
	       ARRAY_SIZE(info_names) * sizeof(__u32), "a name is missing");

/* The members of struct esp_info behind the counters. */
static const char *const bucket_names[] = {
	"left", "left_told", "bucket", "bucket_open", "bucket_busy",
};

static_assert(offsetof(struct esp_info, pad2) ==
	       offsetof(struct esp_info, left) +
	       ARRAY_SIZE(bucket_names) * sizeof(__u32), "a name is missing");

static const char *const meminfo[] = {
	[SK_MEMINFO_RMEM_ALLOC]		= "r",
	[SK_MEMINFO_RCVBUF]		= "rb",
	[SK_MEMINFO_WMEM_ALLOC]		= "t",
	[SK_MEMINFO_SNDBUF]		= "tb",
	[SK_MEMINFO_FWD_ALLOC]		= "f",
	[SK_MEMINFO_WMEM_QUEUED]	= "w",
	[SK_MEMINFO_OPTMEM]		= "o",
	[SK_MEMINFO_BACKLOG]		= "bl",
	[SK_MEMINFO_DROPS]		= "d",
};

/* Names of the timers, which are in microseconds; those that are off are not shown. */
static const char *const timers[ESP_DIAG_T_MAX] = {
	[ESP_DIAG_T_SEND]	= "send",
	[ESP_DIAG_T_RRQ]	= "rrq",
	[ESP_DIAG_T_REORDER]	= "reorder",
	[ESP_DIAG_T_ACK]	= "ack",
	[ESP_DIAG_T_CONN]	= "conn",
	[ESP_DIAG_T_KEEP]	= "keep",
	[ESP_DIAG_T_CORK]	= "cork",
	[ESP_DIAG_T_TELL]	= "tell",
};

/**
 * struct details - attributes of a socket beside struct esp_diag_msg; other kernels' may be shorter
 * @info:	ESP_DIAG_INFO
 * @has_info:	ESP_DIAG_INFO was there
 * @mem:	ESP_DIAG_MEMINFO, or NULL
 * @nmem:	members of @mem
 * @left:	ESP_DIAG_TIMERS
 * @nleft:	members of @left; 0: ESP_DIAG_TIMERS wasn't there
 */
struct details {
	struct esp_info info;
	bool has_info;
	const __u32 *mem;
	size_t nmem;
	__u64 left[ESP_DIAG_T_MAX];
	size_t nleft;
};

static const char *type_name(unsigned int type)
{
	return type == SOCK_STREAM ? "stream" :
	       type == SOCK_SEQPACKET ? "seqpkt" :
	       type == SOCK_DGRAM ? "dgram" : "?";
}

static void print_values(const __u32 *v, const char *const *names, size_t n, bool json)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (json || v[i])
			printf(json ? ",\"%s\":%u" : " %s:%u", names[i], v[i]);
}

/* Print struct esp_info: flags, retransmits, probes, the 32-bit members, and the counters. */
static void print_info(const struct esp_info *info, bool json)
{
	const char *sep = "";
	size_t i;

	if (json)
		fputs(",\"info\":{\"flags\":[", stdout);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		if (!(info->flags & BIT(i)))
			continue;
		printf(json ? "%s\"%s\"" : "%s %s", sep, flags[i]);
		if (json)
			sep = ",";
	}
	printf(json ? "],\"retransmits\":%u,\"probes\":%u" :
		      " retransmits:%u probes:%u",
	       info->retransmits, info->probes);
	print_values(&info->mss, info_names, ARRAY_SIZE(info_names), json);
	print_values(&info->left, bucket_names, ARRAY_SIZE(bucket_names), json);
	if (json)
		fputs(",\"stats\":{", stdout);
	print_stats(&info->stats, json);
	if (json)
		fputs("}}", stdout);
}

static void print_meminfo(const __u32 *mem, size_t n, bool json)
{
	const char *sep = "";
	size_t i;

	fputs(json ? ",\"skmem\":{" : " skmem:(", stdout);
	for (i = 0; i < ARRAY_SIZE(meminfo) && i < n; i++) {
		/* it may be negative: a FIN is charged without asking for memory */
		long long v = i == SK_MEMINFO_FWD_ALLOC ? (long long)(__s32)mem[i] : mem[i];

		printf(json ? "%s\"%s\":%lld" : "%s%s%lld", sep, meminfo[i], v);
		sep = ",";
	}
	putchar(json ? '}' : ')');
}

static void print_timers(const __u64 *left, size_t n, bool json)
{
	const char *sep = "";
	size_t i;

	if (json)
		fputs(",\"timers_us\":{", stdout);
	for (i = 0; i < n; i++) {
		if (left[i] == ESP_DIAG_T_OFF)
			continue;
		if (json)
			printf("%s\"%s\":%llu", sep, timers[i], left[i]);
		else
			printf("%s%s,%.3fms", *sep ? sep : " timers:(", timers[i], left[i] / 1e3);
		sep = json ? "," : " ";
	}
	if (json)
		putchar('}');
	else if (*sep)
		putchar(')');
}

static void print_details(const struct details *d, bool json)
{
	if (d->mem)
		print_meminfo(d->mem, d->nmem, json);
	if (d->nleft)
		print_timers(d->left, d->nleft, json);
	if (d->has_info)
		print_info(&d->info, json);
}

static void show_socket(struct show *show, const struct esp_diag_msg *msg,
			const struct details *details)
{
	const char *state = states[msg->state < ARRAY_SIZE(states) ?
				   msg->state : 0];
	__u64 sk = msg->cookie[0] | (__u64)msg->cookie[1] << 32;
	char src[ADDRESS_STRLEN], dst[ADDRESS_STRLEN];

	address_format((const struct sockaddr *)&msg->src, src);
	address_format((const struct sockaddr *)&msg->dst, dst);
	if (show->json) {
		printf("%s{\"type\":\"%s\",\"state\":\"%s\",\"recvq\":%u,\"sendq\":%u,\"local\":",
		       show->count++ ? "," : "", type_name(msg->type), state,
		       msg->rqueue, msg->wqueue);
		json_string(src);
		fputs(",\"peer\":", stdout);
		json_string(dst);
		if (show->extended) {
			printf(",\"uid\":%u,\"ino\":%u,\"sk\":\"%llx\"",
			       msg->uid, msg->ino, sk);
			print_details(details, true);
		}
		putchar('}');
		return;
	}

	if (!show->count++)
		printf("%-7s%-11s%-8s%-8s%-32s%s\n", "Type", "State", "Recv-Q",
		       "Send-Q", "Local Address:Port", "Peer Address:Port");
	printf("%-6s %-10s %-7u %-7u %-31s %s", type_name(msg->type), state,
	       msg->rqueue, msg->wqueue, src, dst);
	if (show->extended) {
		printf(" uid:%u ino:%u sk:%llx", msg->uid, msg->ino, sk);
		if (details->mem || details->has_info)
			fputs("\n\t", stdout);
		print_details(details, false);
	}
	putchar('\n');
}

/* Did the user ask for this socket? Checks only the criteria that the kernel doesn't. */
static bool wanted(const struct show *show, const struct esp_diag_msg *msg)
{
	static const __u8 any[sizeof(msg->dst.sesp_addr)];
	const struct sockaddr_esp *peer = &show->peer.esp;

	if (show->cookie && show->cookie != (msg->cookie[0] | (__u64)msg->cookie[1] << 32))
		return false;
	if (peer->sesp_family != AF_ESP)
		return true;
	return (!peer->sesp_port || peer->sesp_port == msg->dst.sesp_port) &&
	       (!peer->sesp_ifindex || peer->sesp_ifindex == msg->dst.sesp_ifindex) &&
	       (!memcmp(peer->sesp_addr, any, sizeof(any)) ||
		!memcmp(peer->sesp_addr, msg->dst.sesp_addr, sizeof(any)));
}

/* End a socket. False: it has ended by itself meanwhile. */
static bool kill_socket(struct mnl_socket *nl, const struct esp_diag_msg *msg)
{
	char buf[1024];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct esp_diag_kill *req;
	ssize_t n;

	nlh->nlmsg_type = SOCK_DESTROY;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	req->sdiag_family = AF_ESP;
	req->sdiag_type = msg->type;
	memcpy(req->cookie, msg->cookie, sizeof(req->cookie));
	req->src = msg->src;
	req->dst = msg->dst;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		error(EXIT_IO, errno, "netlink");
	n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
	if (n >= 0)
		n = mnl_cb_run(buf, n, 0, mnl_socket_get_portid(nl), NULL, NULL);
	if (n >= 0)
		return true;
	if (errno == ENOENT || errno == ESTALE)
		return false;
	fflush(stdout);
	if (errno == EPERM)
		error(EXIT_IO, 0, "only who has CAP_NET_ADMIN may end sockets");
	if (errno == EOPNOTSUPP)
		error(EXIT_IO, 0, "the module esp_diag is too old to end sockets");
	error(EXIT_IO, errno, "cannot end a socket");
	return false;
}

static int diag_message(const struct nlmsghdr *nlh, void *data)
{
	const struct esp_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
	struct show *show = data;
	struct details d = { 0 };
	const struct nlattr *attr;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg)) {
		errno = EPROTO;
		return MNL_CB_ERROR;
	}
	if (!wanted(show, msg) || (show->kill && !kill_socket(show->kill, msg)))
		return MNL_CB_OK;
	mnl_attr_for_each(attr, nlh, sizeof(*msg)) {
		size_t len = mnl_attr_get_payload_len(attr);

		switch (mnl_attr_get_type(attr)) {
		case ESP_DIAG_INFO:
			memcpy(&d.info, mnl_attr_get_payload(attr),
			       len < sizeof(d.info) ? len : sizeof(d.info));
			d.has_info = true;
			break;
		case ESP_DIAG_MEMINFO:
			d.mem = mnl_attr_get_payload(attr);
			d.nmem = len / sizeof(*d.mem);
			break;
		case ESP_DIAG_TIMERS:
			if (len > sizeof(d.left))
				len = sizeof(d.left);
			memcpy(d.left, mnl_attr_get_payload(attr), len);
			d.nleft = len / sizeof(*d.left);
			break;
		}
	}
	show_socket(show, msg, &d);
	return MNL_CB_OK;
}

static void show_sockets(struct show *show)
{
	size_t size = 32768;
	char *buf = malloc(size);
	struct mnl_socket *nl = mnl_socket_open(NETLINK_SOCK_DIAG);
	struct esp_diag_req *req;
	struct nlmsghdr *nlh;
	ssize_t n;

	if (!buf || !nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID))
		error(EXIT_IO, errno, "netlink");
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	req->sdiag_family = AF_ESP;
	req->sdiag_type = show->type;
	req->port = htons(show->port);
	req->states = show->states ? show->states :
		      show->all || show->cookie ? STATES_ALL :
		      show->listening ? STATES_LISTEN :
		      STATES_ALL & ~(STATES_LISTEN | BIT(TCP_TIME_WAIT));
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		error(EXIT_IO, errno, "netlink");

	if (show->json)
		putchar('[');
	do {
		n = mnl_socket_recvfrom(nl, buf, size);
		if (n >= 0)
			n = mnl_cb_run(buf, n, 0, mnl_socket_get_portid(nl),
				       diag_message, show);
	} while (n > MNL_CB_STOP);
	if (n < 0 && errno == ENOENT)
		error(EXIT_IO, 0, "no list of ESP sockets; load the module: modprobe esp_diag");
	if (n < 0)
		error(EXIT_IO, errno, "netlink");
	if (show->json)
		puts("]");
	mnl_socket_close(nl);
	free(buf);
}

static FILE *open_proc(const char *path)
{
	FILE *file = fopen(path, "re");

	if (!file && errno == ENOENT)
		error(EXIT_IO, 0, "the kernel has no ESP; load the module: modprobe esp");
	if (!file)
		error(EXIT_IO, errno, "%s", path);
	return file;
}

static void show_stats(const struct show *show)
{
	FILE *file = open_proc("/proc/net/esp/stat");
	char line[256], name[128];
	const char *sep = "";
	__u64 value;

	if (show->json)
		putchar('{');
	/* After a line that begins with "#" the same counters follow under their old names. */
	while (fgets(line, sizeof(line), file) && *line != '#') {
		if (sscanf(line, "%127s %llu", name, &value) != 2 ||
		    (show->nonzero && !value))
			continue;
		if (show->json) {
			fputs(sep, stdout);
			json_string(name);
			printf(":%llu", value);
			sep = ",";
		} else {
			printf("%-32s%llu\n", name, value);
		}
	}
	if (show->json)
		puts("}");
	fclose(file);
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/*
 * Read the speed of a device's link in Mbit/s, and where the kernel has it from, in a line of
 * /proc/net/esp/dev. Returns false if the kernel tells none.
 */
static bool read_speed(FILE *file, const char *name, unsigned int *mbit, char from[16])
{
	char line[512], device[IF_NAMESIZE];

	if (!file)
		return false;
	rewind(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%15s %*s %*s %*s %*s %*s %*s %*s %u %15s", device, mbit,
			   from) == 3 && !strcmp(device, name))
			return true;
	return false;
}

/* Ask the driver of a device for a value. Returns -1 if it tells none. */
static int ask_driver(const char *name, unsigned int command)
{
	struct ethtool_value value = { .cmd = command };
	struct ifreq request = { .ifr_data = (void *)&value };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -1;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	ret = ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
	return ret ? -1 : (int)value.data;
}

/*
 * Read which processors get frames of a device by RPS: the mask of its first queue that has one, as
 * the kernel writes it, or "0". Returns false if it can't be known: sysfs may be of another
 * network namespace.
 */
static bool read_rps(const char *name, char mask[64])
{
	unsigned int ifindex = 0;
	bool found = false;
	char path[NAME_MAX + 64];
	glob_t queues;
	FILE *file;
	size_t i;

	snprintf(path, sizeof(path), "/sys/class/net/%s/ifindex", name);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%u", &ifindex) != 1)
		ifindex = 0;
	fclose(file);
	snprintf(path, sizeof(path), "/sys/class/net/%s/queues/rx-*/rps_cpus", name);
	if (!ifindex || ifindex != if_nametoindex(name) || glob(path, 0, NULL, &queues))
		return false;
	strcpy(mask, "0");
	for (i = 0; i < queues.gl_pathc && !strcmp(mask, "0"); i++) {
		char line[64] = "";

		file = fopen(queues.gl_pathv[i], "re");
		if (!file)
			continue;
		if (fscanf(file, "%63s", line) == 1) {
			found = true;
			if (strspn(line, "0,") < strlen(line))
				strcpy(mask, line + strspn(line, "0,"));
		}
		fclose(file);
	}
	globfree(&queues);
	return found;
}

static const char *yes_or_no(int value)
{
	return value < 0 ? "-" : value ? "yes" : "no";
}

static void show_bool(const char *name, int value)
{
	printf(",\"%s\":%s", name, value < 0 ? "null" : value ? "true" : "false");
}

static void show_dev_line(const struct show *show, const char *name, bool on, FILE *queues)
{
	int gro = ask_driver(name, ETHTOOL_GGRO), flags = ask_driver(name, ETHTOOL_GFLAGS);
	int vlan = flags < 0 ? -1 : !!(flags & ETH_FLAG_RXVLAN);
	char from[16] = "unknown", speed[64] = "unknown", rps[64];
	bool has_rps = read_rps(name, rps);
	unsigned int mbit = 0;

	read_speed(queues, name, &mbit, from);
	if (!show->json) {
		if (mbit)
			snprintf(speed, sizeof(speed), "%u Mbit/s (%s)", mbit, from);
		printf("%-16s%-9s%-26s%-5s%-6s%s\n", name, on ? "yes" : "no", speed,
		       yes_or_no(gro), yes_or_no(vlan), has_rps ? rps : "-");
		return;
	}
	printf("{\"ifname\":");
	json_string(name);
	printf(",\"enabled\":%s,\"mbit\":", on ? "true" : "false");
	if (mbit)
		printf("%u", mbit);
	else
		fputs("null", stdout);
	printf(",\"mbit_from\":");
	json_string(from);
	show_bool("gro", gro);
	show_bool("rx_vlan_offload", vlan);
	printf(",\"rps_cpus\":");
	if (has_rps)
		json_string(rps);
	else
		fputs("null", stdout);
	putchar('}');
}

static void show_dev(const struct show *show)
{
	static const char dir[] = "/proc/sys/net/esp/dev";
	struct dirent **entries;
	int n = scandir(dir, &entries, visible, alphasort), i;
	const char *sep = "";
	FILE *queues, *file;
	char line[512];

	if (n < 0)
		error(EXIT_IO, 0, "the kernel has no ESP; load the module: modprobe esp");
	queues = fopen("/proc/net/esp/dev", "re");
	if (show->json)
		putchar('[');
	else
		printf("%-16s%-9s%-26s%-5s%-6s%s\n", "Device", "Enabled", "Speed", "GRO", "VLAN",
		       "RPS");
	for (i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		char path[sizeof(dir) + NAME_MAX + sizeof("/enable")];
		int on;

		snprintf(path, sizeof(path), "%s/%s/enable", dir, name);
		file = fopen(path, "re");
		/* The device may be gone by now. */
		if (file && fscanf(file, "%d", &on) == 1) {
			if (show->json)
				fputs(sep, stdout);
			show_dev_line(show, name, on, queues);
			sep = ",";
		}
		if (file)
			fclose(file);
		free(entries[i]);
	}
	free(entries);
	if (show->json)
		puts("]");
	if (!queues)
		return;
	if (!show->json) {	/* the queues, as the kernel writes them */
		putchar('\n');
		rewind(queues);
		while (fgets(line, sizeof(line), queues))
			fputs(line, stdout);
	}
	fclose(queues);
}

static const struct argp_option options[] = {
	{ "sockets", 's', NULL, 0, "show sockets, as without an argument", 0 },
	{ "nonzero", 'z', NULL, 0, "only counters that are not zero", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 }
};

/* Options that choose sockets, and how they are printed. */
static const struct argp_option socket_options[] = {
	{ "all", 'a', NULL, 0, "sockets in all states", 0 },
	{ "listening", 'l', NULL, 0, "listening sockets, and unconnected ones for datagrams", 0 },
	{ "type", 't', "TYPE", 0, "sockets of this type: stream, seqpacket or dgram", 0 },
	{ "state", 'S', "STATE[,...]", 0, "sockets in these states, as they are shown", 0 },
	{ "port", 'p', "PORT", 0, "sockets of this port", 0 },
	{ "peer", 'P', "[MAC][%DEV][:PORT]", 0, "sockets with this peer", 0 },
	{ "sk", 'k', "SK", 0, "the socket that -e shows as sk:SK, in any state", 0 },
	{ "extended", 'e', NULL, 0, "owner, memory and protocol state of sockets", 0 },
	{ "json", 'j', NULL, 0, "output as JSON", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 }
};

/* Parse names of states with commas between, in capitals or not. */
static unsigned int parse_states(struct argp_state *state, const char *arg)
{
	unsigned int mask = 0;
	size_t i, n;

	for (;; arg += n + 1) {
		n = strcspn(arg, ",");
		for (i = 1; i < ARRAY_SIZE(states); i++) {
			if (strlen(states[i]) == n && !strncasecmp(states[i], arg, n))
				break;
		}
		if (i == ARRAY_SIZE(states))
			argp_error(state, "'%.*s' is no state as 'esp show -a' prints them", (int)n,
				   arg);
		mask |= BIT(i);
		if (!arg[n])
			return mask;
	}
}

static error_t parse_sockets(int key, char *arg, struct argp_state *state)
{
	struct show *show = state->input;
	char *end;

	switch (key) {
	case 'a':
		show->all = true;
		break;
	case 'l':
		show->listening = true;
		break;
	case 't':
		show->type = !strcmp(arg, "stream") ? SOCK_STREAM :
			     !strcmp(arg, "seqpacket") ? SOCK_SEQPACKET :
			     !strcmp(arg, "dgram") ? SOCK_DGRAM : 0;
		if (!show->type)
			argp_error(state, "type '%s' is none of stream, seqpacket and dgram",
				   arg);
		break;
	case 'S':
		show->states |= parse_states(state, arg);
		break;
	case 'p':
		show->port = parse_number(state, arg, "port", 1, 65535);
		break;
	case 'P':
		address_parse_part(&show->peer, arg);
		break;
	case 'k':
		errno = 0;
		show->cookie = strtoull(arg, &end, 16);
		if (!isxdigit((unsigned char)*arg) || *end || errno || !show->cookie)
			argp_error(state, "'%s' is not a number as 'esp show -e' prints it",
				   arg);
		break;
	case 'e':
		show->extended = true;
		break;
	case 'j':
		show->json = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp sockets_argp = {
	socket_options, parse_sockets, NULL, NULL, NULL, NULL, NULL
};

static const struct argp_child children[] = {
	{ &sockets_argp, 0, NULL, 0 },
	{ NULL, 0, NULL, 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct show *show = state->input;

	switch (key) {
	case 's':
		show->what = "sockets";
		break;
	case 'z':
		show->nonzero = true;
		break;
	case ARGP_KEY_INIT:
		state->child_inputs[0] = show;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num || (strcmp(arg, "sockets") &&
				       strcmp(arg, "stats") &&
				       strcmp(arg, "dev")))
			argp_error(state, "'%s' is none of sockets, stats and dev",
				   arg);
		show->what = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_show(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "[sockets|stats|dev]",
		"Shows the sockets of ESP, its counters, or the devices that carry it.",
		children, NULL, NULL
	};
	struct show show = { .what = "sockets" };

	argp_parse(&argp, argc, argv, 0, NULL, &show);
	if (!strcmp(show.what, "stats"))
		show_stats(&show);
	else if (!strcmp(show.what, "dev"))
		show_dev(&show);
	else
		show_sockets(&show);
	return EXIT_OK;
}

static error_t parse_kill(int key, char *arg, struct argp_state *state)
{
	const struct show *show = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->input;
		return 0;
	case ARGP_KEY_END:
		if (!show->listening && !show->states && !show->type && !show->port &&
		    !show->cookie && !show->peer.len)
			argp_error(state, "which sockets? Name -l, -S, -t, -p, -P or -k");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_kill(int argc, char **argv)
{
	static const struct argp argp = {
		NULL, parse_kill, NULL,
		"Ends sockets of ESP, those that 'esp show' would list with the same options, and lists them.",
		children, NULL, NULL
	};
	struct show show = { .what = "sockets" };

	argp_parse(&argp, argc, argv, 0, NULL, &show);
	show.kill = mnl_socket_open(NETLINK_SOCK_DIAG);
	if (!show.kill || mnl_socket_bind(show.kill, 0, MNL_SOCKET_AUTOPID))
		error(EXIT_IO, errno, "netlink");
	show_sockets(&show);
	mnl_socket_close(show.kill);
	if (!show.count)
		error(EXIT_UNREACHABLE, 0, "no such socket; 'esp show' takes the same options");
	return EXIT_OK;
}
