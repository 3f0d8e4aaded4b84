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

#ifndef SO_BUF_LOCK	/* Linux 5.14 */
#define SO_BUF_LOCK 72
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

static int esp_option(int name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(same); i++) {
		if (same[i].tcp == name)
			return same[i].esp;
	}
	return 0;
}

/* Does the connection carry the same bytes whether this option is set or not? */
static bool has_no_effect(int level, int name)
{
	switch (level) {
	case IPPROTO_TCP:
		return name == TCP_MAXSEG || name == TCP_SYNCNT || name == TCP_LINGER2 ||
		       name == TCP_DEFER_ACCEPT || name == TCP_WINDOW_CLAMP ||
		       name == TCP_QUICKACK || name == TCP_THIN_LINEAR_TIMEOUTS ||
		       name == TCP_THIN_DUPACK || name == TCP_NOTSENT_LOWAT ||
		       name == TCP_FASTOPEN || name == TCP_FASTOPEN_CONNECT;
	case IPPROTO_IP:
		return name == IP_TOS || name == IP_TTL || name == IP_MTU_DISCOVER ||
		       name == IP_RECVERR || name == IP_RECVTOS || name == IP_RECVTTL ||
		       name == IP_BIND_ADDRESS_NO_PORT;
	case IPPROTO_IPV6:
		return name == IPV6_V6ONLY || name == IPV6_TCLASS || name == IPV6_UNICAST_HOPS ||
		       name == IPV6_MTU_DISCOVER || name == IPV6_RECVERR ||
		       name == IPV6_RECVTCLASS || name == IPV6_RECVHOPLIMIT;
	}
	return false;
}

static void copy(int from, int to, int level, int name, size_t size)
{
	char val[sizeof(struct timeval)], now[sizeof(val)];

	if (!sys_getsockopt(from, level, name, val, size) &&
	    (sys_getsockopt(to, level, name, now, size) || memcmp(val, now, size)))
		sys_setsockopt(to, level, name, val, size);
}

/* Copy a buffer size that the program has set; the kernel reports it doubled. */
static void copy_buffer(int from, int to, int name)
{
	int size;

	if (sys_getsockopt(from, SOL_SOCKET, name, &size, sizeof(size)))
		return;
	size /= 2;
	sys_setsockopt(to, SOL_SOCKET, name, &size, sizeof(size));
}

/* Copy the options of a TCP socket. Returns 0, or -errno: no ESP socket can take its place. */
int run_copy_options(int from, int to)
{
	unsigned long rate = ~0UL;
	int on = 0, lock = 0, v;
	size_t i;

	if (!sys_getsockopt(from, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)) && on)
		return -EOPNOTSUPP;	/* ESP's notices differ from TCP's */
	if (!sys_getsockopt(from, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)) &&
	    rate != ~0UL && rate != ~0U)
		return -EOPNOTSUPP;	/* ESP doesn't pace */
	on = 0;
	copy(from, to, SOL_SOCKET, SO_REUSEADDR, sizeof(int));
	copy(from, to, SOL_SOCKET, SO_PRIORITY, sizeof(int));
	copy(from, to, SOL_SOCKET, SO_MARK, sizeof(int));
	copy(from, to, SOL_SOCKET, SO_RCVLOWAT, sizeof(int));
	copy(from, to, SOL_SOCKET, SO_LINGER, sizeof(struct linger));
	copy(from, to, SOL_SOCKET, SO_RCVTIMEO, sizeof(struct timeval));
	copy(from, to, SOL_SOCKET, SO_SNDTIMEO, sizeof(struct timeval));
	sys_getsockopt(from, SOL_SOCKET, SO_BUF_LOCK, &lock, sizeof(lock));
	if (lock & 1)
		copy_buffer(from, to, SO_SNDBUF);
	if (lock & 2)
		copy_buffer(from, to, SO_RCVBUF);
	/* Nagle's rule is the default of TCP only */
	if (!sys_getsockopt(from, IPPROTO_TCP, TCP_CORK, &v, sizeof(v)) && v)
		sys_setsockopt(to, SOL_ESP, ESP_CORK, &v, sizeof(v));
	if (!sys_getsockopt(from, IPPROTO_TCP, TCP_USER_TIMEOUT, &v, sizeof(v)) && v)
		sys_setsockopt(to, SOL_ESP, ESP_USER_TIMEOUT, &v, sizeof(v));
	if (sys_getsockopt(from, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) || !on)
		return 0;
	for (i = 0; i < ARRAY_SIZE(same); i++) {
		if ((same[i].tcp == TCP_KEEPIDLE || same[i].tcp == TCP_KEEPINTVL ||
		     same[i].tcp == TCP_KEEPCNT) &&
		    !sys_getsockopt(from, IPPROTO_TCP, same[i].tcp, &v, sizeof(v)))
			sys_setsockopt(to, SOL_ESP, same[i].esp, &v, sizeof(v));
	}
	sys_setsockopt(to, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	return 0;
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

/* TCP_CONGESTION takes back what it gave. */
static int set_congestion(const void *val, socklen_t len)
{
	if (len == strlen(congestion) || (len > strlen(congestion) &&
					  !((const char *)val)[strlen(congestion)])) {
		if (!memcmp(val, congestion, strlen(congestion)))
			return 0;
	}
	errno = ENOENT;
	return -1;
}

static int get_ip_option(int fd, int level, int name, void *val, socklen_t *len)
{
	int v = 0;

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
	int ret;

	if (level == SOL_SOCKET && name == SO_ZEROCOPY && slot &&
	    atomic_load(&slot->kind) == CONNECTED && run_is_esp(fd)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	ret = REAL(setsockopt)(fd, level, name, val, len);
	if (!ret && level == SOL_SOCKET && name == SO_RCVTIMEO && run_listener(fd))
		memcpy(&slot->timeo, val, sizeof(slot->timeo));
	if (!ret || errno != ENOPROTOOPT ||
	    (level != IPPROTO_TCP && level != IPPROTO_IP && level != IPPROTO_IPV6) ||
	    !run_is_esp(fd))
		return ret;
	if (level == IPPROTO_TCP && name == TCP_CONGESTION)
		return set_congestion(val, len);
	if (level == IPPROTO_TCP && esp_option(name))
		return REAL(setsockopt)(fd, SOL_ESP, esp_option(name), val, len);
	return has_no_effect(level, name) ? 0 : refuse();
}

/* TCP ignores an address given to a connected socket. */
PUBLIC ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr,
		      socklen_t len)
{
	ssize_t ret = REAL(sendto)(fd, buf, n, flags, addr, len);

	if (ret >= 0 || errno != EISCONN || !addr || !run_is_esp(fd))
		return ret;
	return REAL(sendto)(fd, buf, n, flags, NULL, 0);
}

PUBLIC ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t ret = REAL(sendmsg)(fd, msg, flags);
	struct msghdr nameless;

	if (ret >= 0 || errno != EISCONN || !msg->msg_name || !run_is_esp(fd))
		return ret;
	nameless = *msg;
	nameless.msg_name = NULL;
	nameless.msg_namelen = 0;
	return REAL(sendmsg)(fd, &nameless, flags);
}
