// SPDX-License-Identifier: GPL-2.0-only
/*
 * server PORT: serves one client after the other, and sends its data back.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/af_esp.h>

int main(int argc, char **argv)
{
	struct sockaddr_esp addr = { .sesp_family = AF_ESP };
	int fd = socket(AF_ESP, SOCK_STREAM, 0), client;
	char buf[4096];
	ssize_t n;

	if (argc != 2)
		errx(1, "usage: server PORT");
	addr.sesp_port = htons(atoi(argv[1]));
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(fd, 16))
		err(1, "port %s", argv[1]);
	while ((client = accept(fd, NULL, NULL)) >= 0) {
		while ((n = recv(client, buf, sizeof(buf), 0)) > 0)
			if (send(client, buf, n, MSG_NOSIGNAL) != n)
				warn("send");
		if (n < 0)
			warn("recv");
		close(client);
	}
	err(1, "accept");
}
