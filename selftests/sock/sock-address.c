// SPDX-License-Identifier: GPL-2.0-only
/*
 * bind() and getsockname(): addresses, devices, ports and the right to use them
 * (socket-api.rst, "Addresses"), and socket() itself.
 */
#include "sock-hosts.h"
#include "sock-types.h"

FIXTURE_VARIANT_ADD(hosts, dgram)
{
	.type = SOCK_DGRAM,
};

static struct sockaddr_esp on(unsigned int ifindex, int port)
{
	struct sockaddr_esp a = any(port);

	a.sesp_ifindex = ifindex;
	return a;
}

TEST_F(hosts, malformed)
{
	int fd = esp_socket(A, variant->type);
	struct sockaddr_esp a = any(PORT);
	char big[128] = {};
	socklen_t len;

	for (len = 0; len < sizeof(a); len++)
		EXPECT_ERRNO(EINVAL, bind(fd, (void *)&a, len));
	EXPECT_ERRNO(EINVAL, bind(fd, (void *)&a, 129));
	EXPECT_ERRNO(EINVAL, bind(fd, (void *)&a, -1));
	EXPECT_ERRNO(EFAULT, bind(fd, (void *)8, sizeof(a)));
	a.sesp_family = AF_UNSPEC;
	EXPECT_ERRNO(EAFNOSUPPORT, do_bind(fd, a));
	a.sesp_family = AF_INET;
	EXPECT_ERRNO(EAFNOSUPPORT, do_bind(fd, a));
	a.sesp_family = AF_ESP;
	a.sesp_halen = 5;
	EXPECT_ERRNO(EINVAL, do_bind(fd, a));
	a.sesp_halen = 7;
	EXPECT_ERRNO(EINVAL, do_bind(fd, a));
	EXPECT_EQ(0, sockname(fd).sesp_port);
	/* halen 0: programs of the original; an address longer than needed: as TCP */
	a.sesp_halen = 0;
	memcpy(big, &a, sizeof(a));
	EXPECT_EQ(0, bind(fd, (void *)big, sizeof(big)));
	EXPECT_EQ(PORT, ntohs(sockname(fd).sesp_port));
	EXPECT_EQ(6, sockname(fd).sesp_halen);
}

/* getsockname() cuts the address to the size of the buffer, and returns the whole length. */
TEST_F(hosts, name_length)
{
	int fd = esp_socket(A, variant->type);
	struct sockaddr_esp a = {};
	socklen_t len = 4;

	ASSERT_EQ(0, do_bind(fd, any(PORT)));
	EXPECT_EQ(0, getsockname(fd, (void *)&a, &len));
	EXPECT_EQ(sizeof(a), len);
	EXPECT_EQ(PORT, ntohs(a.sesp_port));
	EXPECT_EQ(0, a.sesp_halen);
	len = -1;
	EXPECT_ERRNO(EINVAL, getsockname(fd, (void *)&a, &len));
	EXPECT_ERRNO(EFAULT, getsockname(fd, (void *)&a, NULL));
	len = sizeof(a);
	EXPECT_ERRNO(EFAULT, getsockname(fd, (void *)8, &len));
	EXPECT_ERRNO(ENOTCONN, getpeername(fd, (void *)&a, &len));
}

/* Port 0 takes a free one, each socket its own. */
TEST_F(hosts, port_zero)
{
	int fd, i, port[50], j;

	for (i = 0; i < 50; i++) {
		fd = esp_socket(A, variant->type);
		ASSERT_EQ(0, do_bind(fd, any(0)));
		port[i] = ntohs(sockname(fd).sesp_port);
		EXPECT_LE(1024, port[i]);
		for (j = 0; j < i; j++)
			EXPECT_NE(port[j], port[i]);
	}
}

TEST_F(hosts, taken)
{
	int fd = esp_socket(A, variant->type), fd2, fd3;

	ASSERT_EQ(0, do_bind(fd, any(PORT)));
	fd2 = esp_socket(A, variant->type);
	EXPECT_ERRNO(EADDRINUSE, do_bind(fd2, any(PORT)));
	EXPECT_ERRNO(EADDRINUSE, do_bind(fd2, on(A->ifindex, PORT)));
	/* another namespace is another host */
	fd3 = esp_socket(B, variant->type);
	EXPECT_EQ(0, do_bind(fd3, any(PORT)));
	close(fd);
	EXPECT_EQ(0, do_bind(fd2, any(PORT)));
}

/* A failed bind() leaves the socket as it was. */
TEST_F(hosts, failed_bind_leaves_nothing)
{
	int fd = esp_socket(A, variant->type), fd2;
	unsigned int other;

	make_dev("dummy", "other");
	dev_up(A, "other", true);
	other = if_nametoindex("other");
	ASSERT_EQ(0, do_bind(fd, on(A->ifindex, PORT)));
	fd2 = esp_socket(A, variant->type);
	EXPECT_ERRNO(EADDRINUSE, do_bind(fd2, on(A->ifindex, PORT)));
	EXPECT_EQ(0U, sockname(fd2).sesp_ifindex);
	EXPECT_EQ(0, do_bind(fd2, on(other, PORT)));
	EXPECT_EQ(other, sockname(fd2).sesp_ifindex);
}

TEST_F(hosts, reuse)
{
	int fd = esp_socket(A, variant->type), fd2 = esp_socket(A, variant->type);

	/* both sockets must have set SO_REUSEADDR */
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	ASSERT_EQ(0, do_bind(fd, any(PORT)));
	EXPECT_ERRNO(EADDRINUSE, do_bind(fd2, any(PORT)));
	set_int(fd2, SOL_SOCKET, SO_REUSEADDR, 1);
	EXPECT_EQ(0, do_bind(fd2, any(PORT)));
	if (variant->type == SOCK_DGRAM)
		return;
	/* not beside a listener */
	close(fd2);
	ASSERT_EQ(0, listen(fd, 1));
	fd2 = esp_socket(A, variant->type);
	set_int(fd2, SOL_SOCKET, SO_REUSEADDR, 1);
	EXPECT_ERRNO(EADDRINUSE, do_bind(fd2, any(PORT)));
	/* but after the listener is closed and only its connections are left */
	close(fd2);
	close(fd);
}

/* A server starts again while clients of the last one are connected. */
TEST_F(hosts, reuse_after_listener)
{
	int l, fd[2], again;

	if (variant->type == SOCK_DGRAM)
		EXPECT_ERRNO(EOPNOTSUPP, listen(esp_socket(B, SOCK_DGRAM), 1));
	if (variant->type == SOCK_DGRAM)
		return;
	l = listener(B, variant->type, PORT, 1);
	connect_through(l, variant->type, fd);
	close(l);
	again = esp_socket(B, variant->type);
	EXPECT_ERRNO(EADDRINUSE, do_bind(again, any(PORT)));
	close(again);
	l = listener(B, variant->type, PORT, 1);
	EXPECT_TRUE(alive(fd));
	connect_through(l, variant->type, fd);
	EXPECT_TRUE(alive(fd));
}

/* The two reliable types share a space of ports, EDP has its own. */
TEST_F(hosts, port_spaces)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };
	int fd = esp_socket(A, variant->type), i;

	ASSERT_EQ(0, do_bind(fd, any(PORT)));
	for (i = 0; i < 3; i++) {
		bool same = (types[i] == SOCK_DGRAM) ==
			    (variant->type == SOCK_DGRAM);

		fd = esp_socket(A, types[i]);
		EXPECT_ERRNO(same ? EADDRINUSE : 0, do_bind(fd, any(PORT)));
		close(fd);
	}
}

TEST_F(hosts, device)
{
	int fd = esp_socket(A, variant->type), fd2;
	struct sockaddr_esp a = on(A->ifindex, PORT);
	unsigned int other;

	make_dev("dummy", "other");
	other = if_nametoindex("other");
	EXPECT_ERRNO(ENODEV, do_bind(fd, on(12345, PORT)));
	/* the MAC, if there is one, is the device's */
	a.sesp_addr[0] = 2;
	a.sesp_addr[5] = 0x77;
	EXPECT_ERRNO(EADDRNOTAVAIL, do_bind(fd, a));
	EXPECT_ERRNO(EADDRNOTAVAIL, do_bind(fd, at(A, PORT)));
	memcpy(a.sesp_addr, A->mac, 6);
	EXPECT_EQ(0, do_bind(fd, a));
	a = sockname(fd);
	EXPECT_EQ(A->ifindex, a.sesp_ifindex);
	EXPECT_EQ(0, memcmp(A->mac, a.sesp_addr, 6));
	EXPECT_EQ(PORT, ntohs(a.sesp_port));

	/* the port is free on another device, but not on all */
	fd2 = esp_socket(A, variant->type);
	EXPECT_ERRNO(EADDRINUSE, do_bind(fd2, any(PORT)));
	EXPECT_EQ(0, do_bind(fd2, on(other, PORT)));
	EXPECT_EQ(other, sockname(fd2).sesp_ifindex);

	/* SO_BINDTODEVICE names another device */
	fd = esp_socket(A, variant->type);
	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "va", 3));
	EXPECT_ERRNO(EADDRNOTAVAIL, do_bind(fd, on(other, 3000)));
	EXPECT_EQ(0, do_bind(fd, on(A->ifindex, 3000)));
}

/* bind() refuses a device that isn't Ethernet. */
TEST_F(hosts, device_not_ethernet)
{
	int fd = esp_socket(A, variant->type);

	ASSERT_TRUE(!system("ip link add sit9 type sit 2>/dev/null") ||
		    !system("ip link add ipip9 type ipip local 127.0.0.1 2>/dev/null") ||
		    !system("ip tuntap add tun9 mode tun"));
	EXPECT_ERRNO(ENODEV, do_bind(fd, on(if_nametoindex("sit9") ?:
					    if_nametoindex("ipip9") ?:
					    if_nametoindex("tun9"), PORT)));
}

TEST_F(hosts, twice)
{
	int fd = esp_socket(A, variant->type);

	ASSERT_EQ(0, do_bind(fd, any(PORT)));
	EXPECT_ERRNO(EINVAL, do_bind(fd, any(PORT)));
	EXPECT_ERRNO(EINVAL, do_bind(fd, any(PORT + 1)));
	EXPECT_ERRNO(EINVAL, do_bind(fd, any(0)));
	EXPECT_EQ(PORT, ntohs(sockname(fd).sesp_port));
}

/* Below 1024 only with CAP_NET_BIND_SERVICE. */
TEST_F(hosts, privileged)
{
	int fd = esp_socket(A, variant->type);
	pid_t pid;

	pid = MUST(fork());
	if (!pid) {
		struct sockaddr_esp a = any(1023);

		MUST(setuid(65534));
		if (!do_bind(fd, a) || errno != EACCES)
			_exit(1);
		a = any(1);
		if (!do_bind(fd, a) || errno != EACCES)
			_exit(2);
		_exit(do_bind(fd, any(1024)) ? 3 : 0);
	}
	EXPECT_EQ(0, reap(pid));
	fd = esp_socket(A, variant->type);
	EXPECT_EQ(0, do_bind(fd, any(1)));
	fd = esp_socket(A, variant->type);
	EXPECT_EQ(0, do_bind(fd, any(65535)));
}

/* A socket gets no port before it needs one. */
TEST_F(hosts, unbound)
{
	struct sockaddr_esp a = sockname(esp_socket(A, variant->type));

	EXPECT_EQ(AF_ESP, a.sesp_family);
	EXPECT_EQ(0, a.sesp_port);
	EXPECT_EQ(0U, a.sesp_ifindex);
}

/* A renamed device is still the same device. */
TEST_F(hosts, device_renamed)
{
	struct ifreq ifr = { .ifr_name = "va", .ifr_newname = "vx" };
	int fd = esp_socket(A, variant->type);

	ASSERT_EQ(0, do_bind(fd, on(A->ifindex, PORT)));
	link_up(A, false);
	ASSERT_EQ(0, ioctl(fd, SIOCSIFNAME, &ifr));
	EXPECT_EQ(A->ifindex, sockname(fd).sesp_ifindex);
	EXPECT_EQ(0, access("/proc/sys/net/esp/dev/vx/enable", R_OK));
	EXPECT_EQ(-1, access("/proc/sys/net/esp/dev/va/enable", R_OK));
	snprintf(A->dev, IFNAMSIZ, "vx");
}

TEST(socket_arguments)
{
	EXPECT_ERRNO(EPROTONOSUPPORT, socket(AF_ESP, SOCK_STREAM, 1));
	EXPECT_ERRNO(ESOCKTNOSUPPORT, socket(AF_ESP, SOCK_RAW, 0));
	EXPECT_ERRNO(ESOCKTNOSUPPORT, socket(AF_ESP, SOCK_RDM, 0));
	EXPECT_ERRNO(EINVAL, socket(AF_ESP, 77, 0));
	EXPECT_LE(0, socket(AF_ESP, SOCK_STREAM | SOCK_NONBLOCK, 0));
}

TEST(socketpair_refused)
{
	int fd[2];

	EXPECT_ERRNO(EOPNOTSUPP, socketpair(AF_ESP, SOCK_STREAM, 0, fd));
	EXPECT_ERRNO(EOPNOTSUPP, socketpair(AF_ESP, SOCK_DGRAM, 0, fd));
}

TEST_HARNESS_MAIN
