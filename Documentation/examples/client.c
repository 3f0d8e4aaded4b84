// SPDX-License-Identifier: GPL-2.0-only
/*
 * client MAC DEVICE PORT: sends standard input, then prints what comes back.
 */
#include <arpa/inet.h>
#include <err.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/af_esp.h>

int main(int argc, char **argv)
{
	struct sockaddr_esp peer = { .sesp_family = AF_ESP, .sesp_halen = 6 };
	struct ether_addr mac;
	char buf[4096];
	ssize_t n;
	int fd;

	if (argc != 4 || !ether_aton_r(argv[1], &mac))
		errx(1, "usage: client MAC DEVICE PORT");
	memcpy(peer.sesp_addr, &mac, sizeof(mac));
	peer.sesp_ifindex = if_nametoindex(argv[2]);
	peer.sesp_port = htons(atoi(argv[3]));

	fd = socket(AF_ESP, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&peer, sizeof(peer)))
		err(1, "connect");
	while ((n = read(0, buf, sizeof(buf))) > 0)
		if (send(fd, buf, n, MSG_NOSIGNAL) != n)
			err(1, "send");
	shutdown(fd, SHUT_WR);
	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		if (write(1, buf, n) != n)
			err(1, "write");
	if (n < 0)
		err(1, "recv");
	return 0;
}
