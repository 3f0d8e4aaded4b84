/* SPDX-License-Identifier: BSD-3-Clause */
/* Network devices by name, for all programs. */
#ifndef ESP_TOOLS_DEVICE_H
#define ESP_TOOLS_DEVICE_H

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#ifndef ALTIFNAMSIZ
#define ALTIFNAMSIZ 128		/* bytes of an alternative name, with its end */
#endif

/**
 * device_index() - Find a network device
 * @name:	its name, or an alternative name of it ("ip link property add ... altname")
 *
 * if_nametoindex() knows alternative names, too, but only those of 15 characters or less.
 *
 * Return: the device's index; 0 and errno: there is none, ENODEV, or the kernel could not be asked
 */
static inline unsigned int device_index(const char *name)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct {
		struct nlmsghdr nlh;
		struct ifinfomsg ifi;
		char attr[RTA_SPACE(ALTIFNAMSIZ)];
	} ask = {
		.nlh.nlmsg_type = RTM_GETLINK,
		.nlh.nlmsg_flags = NLM_F_REQUEST,
	};
	struct rtattr *attr = (struct rtattr *)ask.attr;
	size_t len = strlen(name);
	union {
		struct nlmsghdr nlh;
		char room[32768];
	} answer;
	unsigned int index = 0;
	int fd, err;
	ssize_t n;

	if (len < IF_NAMESIZE)
		return if_nametoindex(name);
	errno = ENODEV;
	if (len >= ALTIFNAMSIZ)
		return 0;
	attr->rta_type = IFLA_ALT_IFNAME;
	attr->rta_len = RTA_LENGTH(len + 1);
	memcpy(RTA_DATA(attr), name, len + 1);
	ask.nlh.nlmsg_len = NLMSG_LENGTH(sizeof(ask.ifi)) + RTA_ALIGN(attr->rta_len);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return 0;
	n = sendto(fd, &ask, ask.nlh.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel));
	if (n >= 0) {
		do {
			n = recv(fd, &answer, sizeof(answer), 0);
		} while (n < 0 && errno == EINTR);
	}
	err = n < 0 ? errno : ENODEV;
	if (n >= (ssize_t)NLMSG_SPACE(sizeof(ask.ifi)) && answer.nlh.nlmsg_type == RTM_NEWLINK)
		index = ((struct ifinfomsg *)NLMSG_DATA(&answer.nlh))->ifi_index;
	close(fd);
	errno = err;
	return index;
}

#endif /* ESP_TOOLS_DEVICE_H */
