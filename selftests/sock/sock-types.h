/* SPDX-License-Identifier: GPL-2.0-only */
/* Run each test for both reliable types. Include this after sock-hosts.h. */
FIXTURE_VARIANT(hosts)
{
	int type;
};

FIXTURE_VARIANT_ADD(hosts, stream)
{
	.type = SOCK_STREAM,
};

FIXTURE_VARIANT_ADD(hosts, seqpacket)
{
	.type = SOCK_SEQPACKET,
};
