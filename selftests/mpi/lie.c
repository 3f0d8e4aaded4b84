// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loaded in front of libc (LD_PRELOAD): rank 1 of a job lies to its peers. With this LIE, in the
 * first put that it sends:
 *
 *	header	the header is too long
 *	huge	more bytes than memory can have
 *	wrap	bytes beyond the end of memory
 *	short	fewer bytes than follow
 *	nothing	no lie: another put goes before it, of 0 bytes
 *
 * or, with "version", in the first words of a connection.
 */
#include <dlfcn.h>
#include <sys/socket.h>
#include "btl_esp.h"

static bool lies(const char *kind)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *lie = getenv("LIE");

	return rank && !strcmp(rank, "1") && lie && !strcmp(lie, kind);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
	static ssize_t (*next)(int fd, const void *data, size_t size, int flags);
	struct mca_btl_esp_ident ident;

	if (!next)
		next = (typeof(next))dlsym(RTLD_NEXT, "send");
	if (size == sizeof(ident) && lies("version")) {
		memcpy(&ident, data, size);
		if (ident.magic == ESP_MAGIC)
			ident.version = ESP_VERSION + 1;
		return next(fd, &ident, size, flags);
	}
	return next(fd, data, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static ssize_t (*next)(int fd, const struct msghdr *msg, int flags);
	static bool done;
	struct mca_btl_esp_hdr *hdr;
	struct mca_btl_esp_put *put;

	if (!next)
		next = (typeof(next))dlsym(RTLD_NEXT, "sendmsg");
	hdr = msg->msg_iov[0].iov_base;
	if (done || msg->msg_iovlen < 3 || msg->msg_iov[0].iov_len != sizeof(*hdr) ||
	    msg->msg_iov[1].iov_len != sizeof(*put) || hdr->tag != ESP_TAG_PUT ||
	    hdr->size != sizeof(*put))
		return next(fd, msg, flags);
	done = true;
	put = msg->msg_iov[1].iov_base;
	if (lies("header")) {
		hdr->size += 8;
	} else if (lies("huge")) {
		put->size = INT64_MAX;
	} else if (lies("wrap")) {
		put->address = UINT64_MAX - put->size / 2;
	} else if (lies("short")) {
		put->size -= 4096;
	} else if (lies("nothing")) {
		uint64_t none[] = { *(uint64_t *)hdr, 8, 0 };
		struct iovec iov = { none, sizeof(none) };
		struct msghdr first = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n = next(fd, &first, flags);

		done = n > 0;
		if (n < 0)
			return n;
		if (n != sizeof(none))
			abort();
		fputs("a put of nothing is sent\n", stderr);
	}
	return next(fd, msg, flags);
}
