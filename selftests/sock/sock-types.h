/* SPDX-License-Identifier: GPL-2.0-only */
/* Each test for both of the reliable types; behind sock-hosts.h. */
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
