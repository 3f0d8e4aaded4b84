// SPDX-License-Identifier: GPL-2.0-only
/* Sockets of each protocol that speed.c compares, and their addresses. Included by speed.c. */

static bool datagrams(enum proto proto)
{
	return proto == UDP || proto == PACKET;
}

static int new_socket(enum proto proto)
{
	static const struct { int family, type, protocol; } kinds[] = {
		[ESP]	= { AF_ESP, SOCK_STREAM, 0 },
		[TCP]	= { AF_INET, SOCK_STREAM, 0 },
		[UDP]	= { AF_INET, SOCK_DGRAM, 0 },
		[PACKET] = { AF_PACKET, SOCK_DGRAM, __constant_htons(ETHERTYPE) },
		[TIPC]	= { AF_TIPC, SOCK_STREAM, 0 },
		[SCTP]	= { AF_INET, SOCK_STREAM, IPPROTO_SCTP },
		[UNIX]	= { AF_UNIX, SOCK_STREAM, 0 },
	};
	int fd = socket(kinds[proto].family, kinds[proto].type, kinds[proto].protocol);
	int one = 1;

	if (fd < 0)
		die("socket");
	most = proto == SCTP ? 64 << 10 : MOST;
	if ((proto == TCP && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))) ||
	    (proto == SCTP && setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof(one))) ||
	    (proto == TIPC && setsockopt(fd, SOL_TIPC, TIPC_NODELAY, &one, sizeof(one))) ||
	    (proto == ESP && setsockopt(fd, SOL_ESP, ESP_NODELAY, &one, sizeof(one))))
		die("no delay");
	return fd;
}

/* Set *@addr to the address at which this side is reached, *@any to the one to bind to. */
static void own_address(enum proto proto, int port, struct answer *addr, struct answer *any)
{
	struct sockaddr_tipc *t = (void *)&addr->addr;
	struct sockaddr_esp *e = (void *)&addr->addr;
	struct sockaddr_ll *l = (void *)&addr->addr;
	struct sockaddr_un *u = (void *)&addr->addr;
	struct sockaddr_in *i = (void *)&addr->addr;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq ifr = { 0 };

	memset(addr, 0, sizeof(*addr));
	strncpy(ifr.ifr_name, device, IFNAMSIZ - 1);
	switch (proto) {
	case ESP:
	case PACKET:
		if (ioctl(fd, SIOCGIFHWADDR, &ifr))
			die("%s", device);
		break;
	case TCP:
	case UDP:
	case SCTP:
		if (ioctl(fd, SIOCGIFADDR, &ifr))
			die("%s", device);
		break;
	default:
		break;
	}
	close(fd);
	switch (proto) {
	case ESP:
		e->sesp_family = AF_ESP;
		e->sesp_port = htons(port);
		*any = *addr;
		e->sesp_halen = 6;
		memcpy(e->sesp_addr, ifr.ifr_hwaddr.sa_data, 6);
		addr->len = any->len = sizeof(*e);
		return;
	case PACKET:
		l->sll_family = AF_PACKET;
		l->sll_protocol = htons(ETHERTYPE);
		l->sll_ifindex = if_nametoindex(device);
		*any = *addr;
		l->sll_halen = 6;
		memcpy(l->sll_addr, ifr.ifr_hwaddr.sa_data, 6);
		addr->len = any->len = sizeof(*l);
		return;
	case TIPC:
		t->family = AF_TIPC;
		t->addrtype = TIPC_SERVICE_ADDR;
		t->scope = TIPC_CLUSTER_SCOPE;
		t->addr.name.name.type = SERVICE;
		t->addr.name.name.instance = port;
		addr->len = sizeof(*t);
		break;
	case UNIX:
		u->sun_family = AF_UNIX;
		strcpy(u->sun_path, UNIX_PATH);
		unlink(UNIX_PATH);
		addr->len = sizeof(*u);
		break;
	default:
		*i = *(struct sockaddr_in *)&ifr.ifr_addr;
		i->sin_port = htons(port);
		addr->len = sizeof(*i);
	}
	*any = *addr;
}

/* Make an address name a device of this side. */
static void localize(enum proto proto, struct sockaddr_storage *addr)
{
	if (proto == ESP)
		((struct sockaddr_esp *)addr)->sesp_ifindex = if_nametoindex(device);
	if (proto == PACKET)
		((struct sockaddr_ll *)addr)->sll_ifindex = if_nametoindex(device);
}

/* Connect to the server. Try again, because TIPC needs a while to spread a service's name. */
static int to_server(enum proto proto, struct answer *server)
{
	int fd, i;

	for (i = 0; i < 100; i++) {
		fd = new_socket(proto);
		if (proto == PACKET) {
			struct answer own, any;

			own_address(PACKET, 0, &own, &any);
			if (bind(fd, (struct sockaddr *)&any.addr, any.len))
				die("bind");
			return fd;
		}
		if (!connect(fd, (struct sockaddr *)&server->addr, server->len))
			return fd;
		if (proto != TIPC)
			break;
		close(fd);
		usleep(50000);
	}
	die("connect");
}
