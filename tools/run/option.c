// SPDX-License-Identifier: BSD-3-Clause
/*
 * Socket options of TCP and IP on an ESP socket: those that ESP has too, those that have no
 * meaning there and do no harm, and those that it must refuse.
 */
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/time.h>
#include "run.h"

/* Options that the headers of Debian 12 or musl's don't have */
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif
#ifndef SO_RCVTIMEO_NEW
#define SO_RCVTIMEO_NEW 66
#define SO_SNDTIMEO_NEW 67
#endif
#ifndef SO_RESERVE_MEM
#define SO_RESERVE_MEM 73
#endif
#ifndef SO_TXREHASH
#define SO_TXREHASH 74
#endif
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif
#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45
#endif
#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US 46
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif

static const struct {
	int tcp;
	int esp;
} same[] = {
	{ TCP_NODELAY,		ESP_NODELAY },
	{ TCP_CORK,		ESP_CORK },
	{ TCP_KEEPIDLE,		ESP_KEEPIDLE },
	{ TCP_KEEPINTVL,	ESP_KEEPINTVL },
	{ TCP_KEEPCNT,		ESP_KEEPCNT },
	{ TCP_USER_TIMEOUT,	ESP_USER_TIMEOUT },
};

/*
 * Options of TCP and IP without which the program gets the same bytes: of their packets, of their
 * handshake, of datagrams.
 */
static const int tcp_without_effect[] = {
	TCP_MAXSEG, TCP_SYNCNT, TCP_LINGER2, TCP_DEFER_ACCEPT, TCP_WINDOW_CLAMP, TCP_QUICKACK,
	TCP_THIN_LINEAR_TIMEOUTS, TCP_THIN_DUPACK, TCP_NOTSENT_LOWAT, TCP_FASTOPEN,
	TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_KEY, TCP_FASTOPEN_NO_COOKIE, TCP_RTO_MAX_MS,
	TCP_RTO_MIN_US, TCP_DELACK_MAX_US,
};

static const int ip_without_effect[] = {
	IP_TOS, IP_TTL, IP_MTU_DISCOVER, IP_RECVERR, IP_RECVERR_RFC4884, IP_RECVTOS, IP_RECVTTL,
	IP_RECVOPTS, IP_RETOPTS, IP_PKTINFO, IP_RECVORIGDSTADDR, IP_PASSSEC, IP_MINTTL,
	IP_CHECKSUM, IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_LOOP, IP_MULTICAST_ALL,
	IP_UNICAST_IF,
};

static const int ip6_without_effect[] = {
	IPV6_V6ONLY, IPV6_TCLASS, IPV6_UNICAST_HOPS, IPV6_MULTICAST_LOOP,
	IPV6_MTU_DISCOVER, IPV6_MTU, IPV6_RECVERR, IPV6_RECVERR_RFC4884, IPV6_RECVPKTINFO,
	IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS, IPV6_RECVPATHMTU, IPV6_RECVORIGDSTADDR,
	IPV6_RECVFRAGSIZE, IPV6_AUTOFLOWLABEL, IPV6_FLOWINFO, IPV6_FLOWINFO_SEND, IPV6_DONTFRAG,
	IPV6_FREEBIND, IPV6_MINHOPCOUNT, IPV6_ADDR_PREFERENCES, IPV6_UNICAST_IF,
};

/* Options of SOL_SOCKET that ESP_TCP_SOCKET copies, or connect() and listen() handle. */
static const int sol_copied[] = {
	SO_REUSEADDR, SO_REUSEPORT, SO_PRIORITY, SO_MARK, SO_RCVLOWAT, SO_LINGER, SO_RCVTIMEO,
	SO_SNDTIMEO, SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_BUF_LOCK,
	SO_KEEPALIVE, SO_BUSY_POLL, SO_PREFER_BUSY_POLL, SO_BINDTODEVICE,
	SO_BINDTOIFINDEX, SO_RCVTIMEO_NEW, SO_SNDTIMEO_NEW,
};

/* Flags of SOL_SOCKET, which are copied, too. They have no effect on a stream. */
static const int sol_flags[] = {
	SO_DEBUG, SO_DONTROUTE, SO_BROADCAST, SO_OOBINLINE, SO_NO_CHECK, SO_RXQ_OVFL,
	SO_WIFI_STATUS, SO_NOFCS, SO_SELECT_ERR_QUEUE,
};

static const int sol_without_effect[] = {
	SO_BSDCOMPAT, SO_BUSY_POLL_BUDGET, SO_INCOMING_CPU, SO_CNX_ADVICE, SO_TXREHASH,
};

static bool among(const int *names, size_t n, int name)
{
	while (n--) {
		if (names[n] == name)
			return true;
	}
	return false;
}

#define AMONG(names, name) among(names, ARRAY_SIZE(names), name)

static int esp_option(int name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(same); i++) {
		if (same[i].tcp == name)
			return same[i].esp;
	}
	return 0;
}

/* Does the connection carry the same bytes whether this option of TCP or IP is set or not? */
static bool has_no_effect(int level, int name)
{
	switch (level) {
	case IPPROTO_TCP:
		return AMONG(tcp_without_effect, name);
	case IPPROTO_IP:
		return AMONG(ip_without_effect, name);
	case IPPROTO_IPV6:
		return AMONG(ip6_without_effect, name);
	}
	return false;
}

/* Would an ESP socket lack what this option, which a TCP socket has accepted, asks for? */
static bool is_lacking(int level, int name)
{
	if (level == SOL_SOCKET)
		return !AMONG(sol_copied, name) && !AMONG(sol_flags, name) &&
		       !AMONG(sol_without_effect, name);
	if (level == IPPROTO_TCP && (esp_option(name) || name == TCP_CONGESTION))
		return false;
	return !has_no_effect(level, name);
}

/* Does the value switch the option off? */
static bool is_off(int level, int name, const void *val, socklen_t len)
{
	unsigned long rate = 0;
	int v;

	if (len < sizeof(v))
		return !len;
	memcpy(&v, val, sizeof(v));
	if (level != SOL_SOCKET)
		return len == sizeof(v) && !v;
	switch (name) {
	case SO_ATTACH_BPF:
	case SO_ATTACH_REUSEPORT_EBPF:
		return false;		/* a descriptor */
	case SO_PEEK_OFF:
		return v < 0;
	case SO_MAX_PACING_RATE:
		memcpy(&rate, val, len < sizeof(rate) ? len : sizeof(rate));
		return len < sizeof(rate) ? v == -1 : rate == ~0UL;
	}
	return len == sizeof(v) && !v;
}

/*
 * Keep a TCP socket from being replaced, because the program has set an option that an ESP socket
 * would lack: it may be one that protects the connection (TCP_MD5SIG), or whose results the program
 * waits for (SO_TIMESTAMPING).
 */
static void keep_tcp(int fd)
{
	int protocol, err = errno;
	struct slot *slot;

	if (sys_getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, sizeof(protocol)) ||
	    protocol != IPPROTO_TCP)
		goto out;
	slot = run_slot_new(fd);
	if (!slot)
		goto out;
	slot->tcp_only = run_cookie(fd);
	run_mark_copies(fd);
	slot = run_listener(fd);
	if (slot) {
		run_log("descriptor %d listens: TCP, it has an option that ESP lacks", fd);
		syscall(SYS_shutdown, slot->hidden, SHUT_RD);
		run_end(slot);
	}
out:
	errno = err;
}

/* An option of a listener is the ESP listener's, too, whose connections inherit it. */
static void forward(const struct slot *slot, int level, int name, const void *val, socklen_t len)
{
	int err = errno;

	if (level == SOL_SOCKET && AMONG(sol_copied, name) && name != SO_RCVTIMEO &&
	    name != SO_RCVTIMEO_NEW && name != SO_BINDTODEVICE && name != SO_BINDTOIFINDEX)
		sys_setsockopt(slot->hidden, level, name, val, len);
	else if (level == IPPROTO_TCP && esp_option(name))
		sys_setsockopt(slot->hidden, SOL_ESP, esp_option(name), val, len);
	errno = err;
}

static int put(void *val, socklen_t *len, const void *from, socklen_t size)
{
	if (*len > size)
		*len = size;
	memcpy(val, from, *len);
	return 0;
}

static int get_tcp_info(int fd, void *val, socklen_t *len)
{
	struct tcp_info info = { 0 };
	struct esp_info esp = { 0 };

	if (sys_getsockopt(fd, SOL_ESP, ESP_INFO, &esp, sizeof(esp)))
		return -1;
	info.tcpi_state = esp.state;
	info.tcpi_retransmits = esp.retransmits;
	info.tcpi_probes = esp.probes;
	info.tcpi_rto = esp.rto_us;
	info.tcpi_snd_mss = esp.mss;
	info.tcpi_rcv_mss = esp.peer_mss;
	info.tcpi_advmss = esp.mss;
	info.tcpi_unacked = esp.send_next - esp.una_seq;
	info.tcpi_snd_cwnd = esp.edge - esp.una_seq;
	info.tcpi_rtt = esp.rtt_us;
	info.tcpi_rttvar = esp.rttvar_us;
	info.tcpi_total_retrans = esp.stats.retrans;
	return put(val, len, &info, sizeof(info));
}

static int refuse(void)
{
	errno = ENOPROTOOPT;
	return -1;
}

static const char congestion[16] = "esp";	/* TCP_CONGESTION of an ESP socket */

/*
 * TCP_CONGESTION takes back what it gave. Another algorithm has no effect, but it must be one that
 * TCP has, and that the program may use.
 */
static int set_congestion(const void *val, socklen_t len)
{
	int fd, ret, err;

	if (val && len >= strlen(congestion) && !memcmp(val, congestion, strlen(congestion)) &&
	    (len == strlen(congestion) || !((const char *)val)[strlen(congestion)]))
		return 0;
	fd = syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	ret = sys_setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, val, len);
	err = errno;
	sys_close(fd);
	errno = err;
	return ret;
}

/* Does the socket that the program sees have options of this level? */
static bool has_level(int fd, int level)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	return level != IPPROTO_IPV6 ||
	       (!getsockname(fd, (struct sockaddr *)&sa, &len) && sa.ss_family == AF_INET6);
}

static int get_ip_option(int fd, int level, int name, void *val, socklen_t *len)
{
	int v = 0;

	if ((int)*len < 0) {
		errno = EINVAL;
		return -1;
	}
	if (!has_level(fd, level)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return get_tcp_info(fd, val, len);
	if (level == IPPROTO_TCP && name == TCP_CONGESTION)
		return put(val, len, congestion, sizeof(congestion));
	if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
		if (sys_getsockopt(fd, SOL_ESP, ESP_MAXSEG, &v, sizeof(v)))
			return -1;
	} else if (level == IPPROTO_TCP && esp_option(name)) {
		if (sys_getsockopt(fd, SOL_ESP, esp_option(name), &v, sizeof(v)))
			return -1;
	} else if (level == IPPROTO_IP && name == IP_OPTIONS) {
		*len = 0;
		return 0;
	} else if (!has_no_effect(level, name)) {
		return refuse();
	}
	return put(val, len, &v, sizeof(v));
}

PUBLIC int getsockopt(int fd, int level, int name, void *__restrict val,
		      socklen_t *__restrict len)
{
	int ret = REAL(getsockopt)(fd, level, name, val, len);
	struct sockaddr_storage sa;
	socklen_t sa_len = sizeof(sa);
	int err = errno;

	if (!ret && level == SOL_SOCKET && *len == sizeof(int) &&
	    (name == SO_DOMAIN || name == SO_PROTOCOL) && run_is_esp(fd)) {
		if (name == SO_PROTOCOL)
			*(int *)val = IPPROTO_TCP;
		else if (!getsockname(fd, (struct sockaddr *)&sa, &sa_len))
			*(int *)val = sa.ss_family;
		errno = err;
		return 0;
	}
	if (!ret || err != ENOPROTOOPT ||
	    (level != IPPROTO_TCP && level != IPPROTO_IP && level != IPPROTO_IPV6) ||
	    !run_is_esp(fd))
		return ret;
	return get_ip_option(fd, level, name, val, len);
}

PUBLIC int setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	struct slot *slot = run_slot(fd);
	int ret, err = errno;

	if (level == SOL_SOCKET && name == SO_ZEROCOPY && slot &&
	    atomic_load(&slot->kind) == CONNECTED && run_is_esp(fd)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	/* most programs set such an option of each connection; the kernel knows what it is */
	if (level == IPPROTO_TCP && esp_option(name) && slot &&
	    atomic_load(&slot->kind) == CONNECTED) {
		if (!sys_setsockopt(fd, SOL_ESP, esp_option(name), val, len))
			return 0;
		errno = err;
	}
	ret = REAL(setsockopt)(fd, level, name, val, len);
	if (!ret && is_lacking(level, name) && !is_off(level, name, val, len))
		keep_tcp(fd);
	slot = ret ? NULL : run_listener(fd);
	if (slot && level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_RCVTIMEO_NEW))
		sys_getsockopt(fd, level, SO_RCVTIMEO, &slot->timeo, sizeof(slot->timeo));
	else if (slot)
		forward(slot, level, name, val, len);
	if (!ret || errno != ENOPROTOOPT ||
	    (level != IPPROTO_TCP && level != IPPROTO_IP && level != IPPROTO_IPV6) ||
	    !run_is_esp(fd))
		return ret;
	if (!has_level(fd, level))
		return refuse();
	if (level == IPPROTO_TCP && name == TCP_CONGESTION)
		return set_congestion(val, len);
	if (level == IPPROTO_TCP && esp_option(name))
		return REAL(setsockopt)(fd, SOL_ESP, esp_option(name), val, len);
	return has_no_effect(level, name) ? 0 : refuse();
}
