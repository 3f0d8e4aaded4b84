// SPDX-License-Identifier: GPL-2.0-only
/*
 * esp dev: which devices carry ESP.
 */
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>
#include "../device.h"
#include "esp.h"

struct request {
	const char *value;
	int code;
	bool named;
};

static int set(const char *dev, const char *value)
{
	char path[64], name[IF_NAMESIZE];
	unsigned int index;
	int fd;

	index = device_index(dev);
	if (!index || !if_indextoname(index, name)) {
		error(0, errno == ENODEV ? 0 : errno,
		      "there is no device '%s', see 'ip link'", dev);
		return EXIT_UNREACHABLE;
	}
	if (access("/proc/sys/net/esp", F_OK)) {
		error(0, 0, "the kernel has no ESP; load the module: modprobe esp");
		return EXIT_IO;
	}
	snprintf(path, sizeof(path), "/proc/sys/net/esp/dev/%s/enable", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		error(0, 0, "%s is not an Ethernet device, or gets IP packets only", dev);
		return EXIT_UNREACHABLE;
	}
	if (fd < 0 || write(fd, value, 1) != 1) {
		error(0, 0, "%s: %s%s", dev, strerror(errno),
		      errno == EACCES || errno == EPERM ?
		      "; this needs CAP_NET_ADMIN" : "");
		if (fd >= 0)
			close(fd);
		return EXIT_IO;
	}
	close(fd);
	return EXIT_OK;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct request *r = state->input;
	int code;

	switch (key) {
	case ARGP_KEY_ARG:
		if (state->arg_num == 0) {
			if (!strcmp(arg, "enable"))
				r->value = "1";
			else if (!strcmp(arg, "disable"))
				r->value = "0";
			else
				argp_error(state, "'%s' is neither enable nor disable",
					   arg);
			break;
		}
		r->named = true;
		code = set(arg, r->value);
		if (code)
			r->code = code;
		break;
	case ARGP_KEY_END:
		if (!r->named)
			argp_error(state, "the device is missing");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_dev(int argc, char **argv)
{
	static const struct argp argp = {
		NULL, parse, "enable|disable DEVICE...",
		"Lets devices carry ESP, or stops it; 'esp show dev' tells which do.",
		NULL, NULL, NULL
	};
	struct request r = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &r);
	return r.code;
}
