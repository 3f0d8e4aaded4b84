// SPDX-License-Identifier: BSD-3-Clause
/*
 * The interfaces of this host that can carry ESP: named by the user, or all that
 * are up and enabled.
 */
#include "btl_esp.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "opal/util/argv.h"

#define UNKNOWN_SPEED	1000	/* Mbit/s */

/* Return the interface's speed in Mbit/s, as the driver says. */
static uint32_t speed(int fd, struct ifreq *ifr)
{
	struct {
		struct ethtool_link_settings s;
		uint32_t masks[3 * 127];
	} link = { .s.cmd = ETHTOOL_GLINKSETTINGS };

	ifr->ifr_data = (char *)&link;
	/* The first answer says, as a negative number, how long the masks are. */
	if (ioctl(fd, SIOCETHTOOL, ifr) || link.s.link_mode_masks_nwords >= 0)
		return UNKNOWN_SPEED;
	link.s.link_mode_masks_nwords = -link.s.link_mode_masks_nwords;
	link.s.cmd = ETHTOOL_GLINKSETTINGS;
	if (ioctl(fd, SIOCETHTOOL, ifr) || !link.s.speed || link.s.speed == (uint32_t)SPEED_UNKNOWN)
		return UNKNOWN_SPEED;
	return link.s.speed;
}

/* Fill IFACE for the interface of its name. Returns NULL, or why it can't be used. */
static const char *examine(int fd, struct mca_btl_esp_if *iface, bool enabled, bool named)
{
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, iface->name, IFNAMSIZ);
	if (ioctl(fd, SIOCGIFINDEX, &ifr))
		return "there is no such interface";
	iface->ifindex = ifr.ifr_ifindex;
	if (!enabled)
		return "it is not enabled for ESP (esp dev enable)";
	if (ioctl(fd, SIOCGIFFLAGS, &ifr))
		return strerror(errno);
	if (!(ifr.ifr_flags & IFF_UP))
		return "it is down";
	if (!(ifr.ifr_flags & IFF_RUNNING))
		return "it has no link";
	if (ifr.ifr_flags & IFF_LOOPBACK)
		return "it leads nowhere";
	/* Skip members of a bond, and dummies, which lead nowhere. */
	if (!named && (ifr.ifr_flags & (IFF_SLAVE | IFF_NOARP)))
		return "it is a bond's, or has no neighbours";
	if (ioctl(fd, SIOCGIFMTU, &ifr))
		return strerror(errno);
	iface->mtu = ifr.ifr_mtu;
	if (ioctl(fd, SIOCGIFHWADDR, &ifr))
		return strerror(errno);
	memcpy(iface->mac, ifr.ifr_hwaddr.sa_data, sizeof(iface->mac));
	iface->speed = speed(fd, &ifr);
	return NULL;
}

/*
 * Find the interface of ENTRY, "NAME" or "NAME=LABEL": set its name, which may be another one than
 * in ENTRY (altname), and its label. Returns NULL, or why it can't be used.
 */
static const char *split(struct mca_btl_esp_if *iface, const char *entry)
{
	size_t length = strcspn(entry, "=");
	const char *label = entry[length] ? entry + length + 1 : entry;
	char name[ALTIFNAMSIZ];

	if (length >= sizeof(name) || strlen(label) >= sizeof(iface->label))
		return "a name or label has 127 characters at most";
	memcpy(name, entry, length);
	name[length] = '\0';
	if (!if_indextoname(device_index(name), iface->name))
		return "there is no such interface";
	strcpy(iface->label, label);
	return NULL;
}

/* Is NAME an interface of LIST, with or without "=LABEL"? */
static bool listed(char **list, const char *name)
{
	struct mca_btl_esp_if iface;

	for (; list && *list; list++) {
		if (!split(&iface, *list) && strcmp(iface.name, name) == 0)
			return true;
	}
	return false;
}

/* Read a line "DEVICE ENABLED ..." of /proc/net/esp/dev. */
static bool next_device(FILE *f, char *name, int *enabled)
{
	char line[256];

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%15s %d", name, enabled) == 2 && name[0] != '#')
			return true;
	}
	return false;
}

/* Fill LIST. Returns how many there are; if there is none, the user was told why. */
int mca_btl_esp_interfaces(struct mca_btl_esp_if *list, int max)
{
	struct mca_btl_esp_component *c = &mca_btl_esp_component;
	char **include = opal_argv_split(c->if_include, ',');
	char **exclude = opal_argv_split(c->if_exclude, ',');
	const char *why;
	char name[IFNAMSIZ];
	int fd, enabled, n = 0;
	bool found, said = false;
	FILE *f;

	fd = socket(AF_ESP, SOCK_STREAM | SOCK_CLOEXEC, 0);
	f = fopen("/proc/net/esp/dev", "re");
	if (fd < 0 || !f) {
		mca_btl_esp_say(include, "the kernel has no ESP; load the module: modprobe esp");
		goto out;
	}

	/* Use the user's order, or the kernel's. */
	for (char **i = include; i && *i; i++) {
		struct mca_btl_esp_if iface = { 0 };

		why = split(&iface, *i);
		if (!why) {
			found = false;
			rewind(f);
			while (!found && next_device(f, name, &enabled))
				found = strcmp(name, iface.name) == 0 && enabled;
			why = examine(fd, &iface, found, true);
		}
		if (why) {
			mca_btl_esp_say(true, "interface '%.*s' can't be used: %s",
					(int)strcspn(*i, "="), *i, why);
			said = true;
		} else if (n < max) {
			list[n++] = iface;
		}
	}
	while (!include && next_device(f, name, &enabled)) {
		struct mca_btl_esp_if iface = { 0 };

		if (n == max || listed(exclude, name))
			continue;
		snprintf(iface.name, IFNAMSIZ, "%s", name);
		snprintf(iface.label, IFNAMSIZ, "%s", name);
		why = examine(fd, &iface, enabled, false);
		if (why)
			opal_output_verbose(10, opal_btl_base_framework.framework_output,
					    "btl:esp: %s: %s is not used: %s",
					    opal_process_info.nodename, name, why);
		else
			list[n++] = iface;
	}
	if (!n && !said)
		mca_btl_esp_say(false, "no interface is up and enabled for ESP (esp dev enable)");
out:
	if (f)
		fclose(f);
	if (fd >= 0)
		close(fd);
	opal_argv_free(include);
	opal_argv_free(exclude);
	return n;
}
