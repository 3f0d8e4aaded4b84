/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between name.c and a name server. All are medium; the first argument of each request is
 * the version, that of the answer an enum names_code. 64 bits of data are in network order.
 *
 *	NAMES_REGISTER		version, port, lease; key, name
 *	NAMES_UNREGISTER	version; key, name
 *	NAMES_LOOKUP		version; name
 *	NAMES_ANSWER		code, port; to a lookup that found: the host (NAME_HOST bytes)
 *
 * The host is the one that the frame came from.
 */
#ifndef AM_NAMES_H
#define AM_NAMES_H

#include "internal.h"

#define NAMES_VERSION	1
#define NAMES_TAG	0x414d206e616d6573ull	/* no other endpoint passes for a server */
#define NAMES_KEY	8			/* bytes of a key */

/* Handlers of the server, and of the client. */
enum { NAMES_REGISTER = 1, NAMES_UNREGISTER, NAMES_LOOKUP };
enum { NAMES_ANSWER = 1 };

enum names_code {
	NAMES_OK, NAMES_UNKNOWN, NAMES_TAKEN, NAMES_FULL, NAMES_INVALID, NAMES_OTHER_VERSION,
	NAMES_STORE,
};

#endif /* AM_NAMES_H */
