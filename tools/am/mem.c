// SPDX-License-Identifier: BSD-3-Clause
/*
 * A network in memory: a queue at each host. Its clock counts looks at queues, each as a
 * microsecond, and jumps ahead when an endpoint waits. So a run depends on nothing else.
 */
#include <stdlib.h>
#include "internal.h"

#define MEM_MTU	1468	/* EDP's on Ethernet */

struct slot {
	en_t	from;
	size_t	len;
	uint8_t	data[MEM_MTU];
};

struct node {
	unsigned int	head, used;
	bool		open;
	struct slot	*queue;
};

struct am_net {
	uint64_t	now;
	unsigned int	limit, nnodes;
	struct node	*nodes;
};

struct am_net *AM_NewNet(unsigned int queue)
{
	struct am_net *net = calloc(1, sizeof(*net));

	if (!net)
		return NULL;
	net->limit = queue ? queue : 1;
	/* Code that notes a time takes 0 for "never". */
	net->now = 1;
	return net;
}

void AM_FreeNet(struct am_net *net)
{
	unsigned int i;

	for (i = 0; i < net->nnodes; i++)
		free(net->nodes[i].queue);
	free(net->nodes);
	free(net);
}

void mem_advance(struct am_net *net, uint64_t until)
{
	if (net->now < until)
		net->now = until;
}

static int mem_open(struct transport *t, const struct am_options *o)
{
	struct am_net *net = o->net;
	struct node *nodes;

	if (!net)
		return AM_ERR_BAD_ARG;
	nodes = realloc(net->nodes, (net->nnodes + 1) * sizeof(*nodes));
	if (!nodes)
		return AM_ERR_RESOURCE;
	net->nodes = nodes;
	nodes += net->nnodes;
	memset(nodes, 0, sizeof(*nodes));
	nodes->queue = calloc(net->limit, sizeof(*nodes->queue));
	if (!nodes->queue)
		return AM_ERR_RESOURCE;
	nodes->open = true;
	t->node = net->nnodes++;
	t->net = net;
	t->mtu = MEM_MTU;
	t->name.kind = AM_KIND_MEM;
	memcpy(t->name.address, &t->node, sizeof(t->node));
	return AM_OK;
}

static void mem_close(struct transport *t)
{
	if (t->net)
		t->net->nodes[t->node].open = false;
}

static int mem_send(struct transport *t, const en_t *to, const void *data, size_t len)
{
	unsigned int number;
	struct node *n;
	struct slot *s;

	memcpy(&number, to->address, sizeof(number));
	if (number >= t->net->nnodes)
		return -1;
	n = &t->net->nodes[number];
	if (!n->open)
		return 0;
	if (n->used == t->net->limit)
		return 1;
	s = &n->queue[(n->head + n->used++) % t->net->limit];
	s->from = t->name;
	s->len = len;
	memcpy(s->data, data, len);
	return 0;
}

static int mem_receive(struct transport *t, struct frame *frames, int n, size_t room)
{
	struct node *node = &t->net->nodes[t->node];
	struct slot *s;
	int i;

	t->net->now++;
	for (i = 0; i < n && node->used; i++, node->used--) {
		s = &node->queue[node->head];
		node->head = (node->head + 1) % t->net->limit;
		frames[i].from = s->from;
		frames[i].len = s->len;
		memcpy(frames[i].data, s->data, s->len < room ? s->len : room);
	}
	return i;
}

static uint64_t mem_now(struct transport *t)
{
	return t->net->now;
}

static int mem_normalize(struct transport *t, en_t *name)
{
	(void)t;
	return name->kind == AM_KIND_MEM ? AM_OK : AM_ERR_BAD_ARG;
}

const struct transport_ops mem_ops = {
	.open = mem_open,
	.close = mem_close,
	.send = mem_send,
	.receive = mem_receive,
	.now = mem_now,
	.normalize = mem_normalize,
};
