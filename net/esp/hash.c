// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finding sockets: tables of bound ports, listeners (and EDP sockets), and
 * connections. Lookups are RCU, sockets are freed after a grace period
 * (SOCK_RCU_FREE). A change, and a walk that lists sockets, take the bucket's
 * lock. A new socket becomes the first of its bucket, and its walk_pos is higher
 * than that of the sockets after it.
 */
#include <linux/mm.h>
#include <net/inet_sock.h>
#include <net/netns/hash.h>
#include "esp.h"
#include "hash.h"
#include "link.h"
#include "sock.h"
#include "tcp.h"

#define ESP_PORTS	1024	/* buckets of bound ports and of listeners */
#define ESP_FREE_FIRST	32768	/* free ports: the same range as TCP's */
#define ESP_FREE_LAST	60999

struct esp_bucket {
	spinlock_t		lock;	/* held to change or list it */
	struct hlist_head	head;
};

static struct esp_bucket esp_ports[ESP_PORTS];	/* of struct esp_port */
static struct esp_bucket esp_listeners[ESP_PORTS];
static struct esp_bucket *esp_conns;
static unsigned int esp_conns_mask;
static u64 esp_conn_key[4];

/* Is it an EDP socket? The two reliable types share a port space, EDP has its own. */
static bool sock_is_dgram(const struct sock *sk)
{
	return sk->sk_type == SOCK_DGRAM;
}

/* As TCP's: ports that follow one another are in buckets that do. */
static struct esp_bucket *port_bucket(struct esp_bucket *table,
				      const struct net *net, __be16 port,
				      bool dgram)
{
	return &table[(ntohs(port) + net_hash_mix(net) + dgram) % ESP_PORTS];
}

static inline struct esp_bucket *conn_bucket(const struct net *net, int ifindex,
					     __be16 sport, __be16 dport, const u8 *mac)
{
	u32 ports = (__force u32)sport << 16 | (__force u32)dport;
	u32 lo = mac[2] << 24 | mac[3] << 16 | mac[4] << 8 | mac[5];
	u32 hi = (mac[0] << 8 | mac[1]) ^ (u32)ifindex << 16;
	u64 h = esp_conn_key[0];

	/* multilinear: an attacker without the keys can't choose a bucket */
	h += esp_conn_key[1] * (ports ^ net_hash_mix(net));
	h += esp_conn_key[2] * lo;
	h += esp_conn_key[3] * hi;
	return &esp_conns[(h >> 32) & esp_conns_mask];
}

/*
 * A port that sockets have. Its owners asked for it: bound sockets and listeners. Its sharers are
 * connections that a listener or connect() made; their peers' addresses tell them apart. All
 * of it is under the lock of the port's bucket.
 */
struct esp_port {
	struct hlist_node	node;	/* in its bucket of esp_ports */
	const struct net	*net;
	__be16			port;
	bool			dgram;
	int			dev;	/* that they, or their listener, were bound to; 0: any */
	unsigned int		sharers;
	unsigned int		strict;	/* of these: without SO_REUSEADDR */
	struct hlist_head	owners;
};

#define ESP_PORT_OWNED	1	/* esp_opt.port_use */
#define ESP_PORT_SHARED	2
#define ESP_PORT_STRICT	3

static bool port_is(const struct esp_port *p, const struct sock *sk, __be16 port)
{
	return p->port == port && p->net == sock_net(sk) && p->dgram == sock_is_dgram(sk);
}

static bool devs_differ(int dev, int other)
{
	return dev && other && dev != other;
}

/*
 * Does an owner of @p keep @sk, which has the device @dev or any, from taking the port? The
 * bucket's lock is held.
 */
static bool port_owned(const struct esp_port *p, struct sock *sk, int dev, bool reuse)
{
	struct esp_opt *o;

	hlist_for_each_entry(o, &p->owners, bind_node) {
		if (devs_differ(dev, READ_ONCE(o->sk.sk_bound_dev_if)))
			continue;
		if (esp_tcp_gone(&o->sk)) {
			WRITE_ONCE(o->tcp_lost, true);
			continue;
		}
		/* the owner of o may set sk_reuse just now: either value will do */
		if (reuse && data_race(!!o->sk.sk_reuse) &&
		    READ_ONCE(o->sk.sk_state) != TCP_LISTEN)
			continue;
		return true;
	}
	return false;
}

/*
 * Does another socket keep @sk from owning @port? Sockets that all have SO_REUSEADDR share a
 * port, but only one of them listens.
 */
static bool port_taken(struct esp_bucket *b, struct sock *sk, __be16 port, bool reuse)
	__must_hold(&b->lock)
{
	int dev = READ_ONCE(sk->sk_bound_dev_if);
	struct esp_port *p;

	lockdep_assert_held(&b->lock);
	hlist_for_each_entry(p, &b->head, node) {
		if (!port_is(p, sk, port))
			continue;
		if (p->sharers && (!reuse || p->strict) && !devs_differ(dev, p->dev))
			return true;
		if (port_owned(p, sk, dev, reuse))
			return true;
	}
	return false;
}

/* Find the entry of a port and a device, or make it; NULL: no memory. */
static struct esp_port *port_get(struct esp_bucket *b, struct sock *sk, __be16 port, int dev)
	__must_hold(&b->lock)
{
	struct esp_port *p;

	lockdep_assert_held(&b->lock);
	hlist_for_each_entry(p, &b->head, node)
		if (port_is(p, sk, port) && p->dev == dev)
			return p;
	p = kzalloc_obj(*p, GFP_ATOMIC);
	if (!p)
		return NULL;
	p->net = sock_net(sk);
	p->port = port;
	p->dgram = sock_is_dgram(sk);
	p->dev = dev;
	hlist_add_head(&p->node, &b->head);
	return p;
}

static struct esp_bucket *bound_bucket(struct sock *sk, __be16 port)
{
	return port_bucket(esp_ports, sock_net(sk), port, sock_is_dgram(sk));
}

/* Make @sk an owner of @port. Returns 0, EADDRINUSE, ENOMEM. */
static int port_own(struct sock *sk, __be16 port, bool reuse)
{
	struct esp_bucket *b = bound_bucket(sk, port);
	struct esp_opt *esp = esp_sk(sk);
	int err = -EADDRINUSE;
	struct esp_port *p;

	spin_lock_bh(&b->lock);
	if (port_taken(b, sk, port, reuse && sk->sk_reuse))
		goto out;
	err = -ENOMEM;
	p = port_get(b, sk, port, READ_ONCE(sk->sk_bound_dev_if));
	if (!p)
		goto out;
	hlist_add_head(&esp->bind_node, &p->owners);
	esp->port = p;
	esp->port_use = ESP_PORT_OWNED;
	WRITE_ONCE(esp->sport, port);
	err = 0;
out:
	spin_unlock_bh(&b->lock);
	return err;
}

/* Count a connection among the sharers of @p; the bucket's lock is held. */
static void port_add_sharer(struct esp_port *p, struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	p->sharers++;
	p->strict += !sk->sk_reuse;
	esp->port = p;
	esp->port_use = sk->sk_reuse ? ESP_PORT_SHARED : ESP_PORT_STRICT;
	WRITE_ONCE(esp->sport, p->port);
}

/* Let a connection share @port with others, if nobody owns it. Returns 0, EADDRINUSE, ENOMEM. */
static int port_share(struct sock *sk, __be16 port)
{
	struct esp_bucket *b = bound_bucket(sk, port);
	int dev = READ_ONCE(sk->sk_bound_dev_if);
	int err = -EADDRINUSE;
	struct esp_port *p;

	spin_lock_bh(&b->lock);
	hlist_for_each_entry(p, &b->head, node)
		if (port_is(p, sk, port) && port_owned(p, sk, dev, false))
			goto out;
	p = port_get(b, sk, port, dev);
	err = p ? 0 : -ENOMEM;
	if (p)
		port_add_sharer(p, sk);
out:
	spin_unlock_bh(&b->lock);
	return err;
}

/* Call @take with free ports until it takes one; returns what it returns then, or EADDRINUSE. */
static int port_find(struct sock *sk, int (*take)(struct sock *sk, __be16 port))
{
	u32 range = ESP_FREE_LAST - ESP_FREE_FIRST + 1;
	u32 i, start = get_random_u32() % range;
	int err = -EADDRINUSE;

	for (i = 0; i < range && err == -EADDRINUSE; i++) {
		err = take(sk, htons(ESP_FREE_FIRST + (start + i) % range));
		cond_resched();
	}
	return err;
}

static int port_own_free(struct sock *sk, __be16 port)
{
	return port_own(sk, port, false);
}

/**
 * esp_bind_port() - give a socket its port
 * @sk:		socket without one; its owner calls
 * @port:	port; 0: a free one
 *
 * Return: 0, EADDRINUSE, ENOMEM
 */
int esp_bind_port(struct sock *sk, __be16 port)
{
	sock_owned_by_me(sk);
	return port ? port_own(sk, port, true) : port_find(sk, port_own_free);
}

/**
 * esp_bind_listen() - make a bound socket the port's listener
 * @sk:	socket; its owner calls
 *
 * Return: 0; EADDRINUSE: another socket that shares the port listens
 */
int esp_bind_listen(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_bucket *b = bound_bucket(sk, esp->sport);
	int err = 0;

	sock_owned_by_me(sk);
	spin_lock_bh(&b->lock);
	hlist_del_init(&esp->bind_node);
	if (port_taken(b, sk, esp->sport, sk->sk_reuse))
		err = -EADDRINUSE;
	else
		esp_set_state(sk, TCP_LISTEN);
	hlist_add_head(&esp->bind_node, &esp->port->owners);
	spin_unlock_bh(&b->lock);
	return err;
}

/**
 * esp_bind_child() - let a connection share its listener's port, on the listener's devices
 * @child:	connection; its lock is held
 * @sk:		listener; its lock is held
 */
void esp_bind_child(struct sock *child, struct sock *sk)
{
	struct esp_bucket *b = bound_bucket(sk, esp_sk(sk)->sport);

	sock_owned_by_me(child);
	sock_owned_by_me(sk);
	spin_lock_bh(&b->lock);
	port_add_sharer(esp_sk(sk)->port, child);
	spin_unlock_bh(&b->lock);
}

/**
 * esp_unbind() - give back a socket's port, if it has one
 * @sk:	socket; its owner calls
 */
void esp_unbind(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	struct esp_port *p = esp->port;
	struct esp_bucket *b;

	sock_owned_by_me(sk);
	if (!p)
		return;
	b = bound_bucket(sk, esp->sport);
	spin_lock_bh(&b->lock);
	if (esp->port_use == ESP_PORT_OWNED) {
		hlist_del_init(&esp->bind_node);
	} else {
		p->sharers--;
		p->strict -= esp->port_use == ESP_PORT_STRICT;
	}
	if (!p->sharers && hlist_empty(&p->owners)) {
		hlist_del(&p->node);
		kfree(p);
	}
	spin_unlock_bh(&b->lock);
	esp->port = NULL;
	WRITE_ONCE(esp->sport, 0);
}

/**
 * esp_unshare() - give back a port that connect() has chosen
 * @sk:	socket; its owner calls. It keeps a port that it asked for
 */
void esp_unshare(struct sock *sk)
{
	if (esp_sk(sk)->port_use != ESP_PORT_OWNED)
		esp_unbind(sk);
}

static struct esp_bucket *sock_bucket(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (sk->sk_state == TCP_LISTEN || sock_is_dgram(sk))
		return port_bucket(esp_listeners, sock_net(sk), esp->sport,
				   sock_is_dgram(sk));
	return conn_bucket(sock_net(sk), esp->ifindex, esp->sport,
			   esp->dport, esp->daddr);
}

static bool conn_matches(const struct sock *sk, const struct net *net,
			 int ifindex, __be16 sport, __be16 dport, const u8 *mac)
{
	const struct esp_opt *esp = esp_sk(sk);

	if (READ_ONCE(esp->sport) != sport || READ_ONCE(esp->dport) != dport ||
	    READ_ONCE(esp->ifindex) != ifindex || sock_net(sk) != net)
		return false;
	/* it may have left the table and get another peer just now: its cookie decides */
	return data_race(ether_addr_equal_unaligned(esp->daddr, mac));
}

static u64 bucket_first_pos(const struct esp_bucket *b)
{
	return esp_sk(hlist_entry(b->head.first, struct sock, sk_node))->walk_pos;
}

/**
 * esp_hash() - enter a socket into its table, so that frames find it
 * @sk:	listener, EDP socket or connection with addresses and ports; its lock is held
 *
 * Return: 0; EADDRNOTAVAIL: the table has such a connection already
 */
int esp_hash(struct sock *sk)
{
	struct esp_bucket *b = sock_bucket(sk);
	struct esp_opt *esp = esp_sk(sk);
	struct sock *other;
	int err = 0;

	sock_owned_by_me(sk);
	spin_lock_bh(&b->lock);
	if (sk->sk_state != TCP_LISTEN && !sock_is_dgram(sk)) {
		sk_for_each(other, &b->head) {
			if (conn_matches(other, sock_net(sk),
					 esp->ifindex, esp->sport,
					 esp->dport, esp->daddr)) {
				err = -EADDRNOTAVAIL;
				break;
			}
		}
	}
	if (!err) {
		esp->walk_pos = hlist_empty(&b->head) ? 1 : bucket_first_pos(b) + 1;
		sk_add_node_rcu(sk, &b->head);
		sock_prot_inuse_add(sock_net(sk), sk->sk_prot, 1);
	}
	spin_unlock_bh(&b->lock);
	return err;
}

/* Enter @sk into its table if it may share @port, and has no other connection's addresses then. */
static int hash_with_port(struct sock *sk, __be16 port)
{
	int err = port_share(sk, port);

	if (err)
		return err;
	err = esp_hash(sk);
	if (err)
		esp_unbind(sk);
	return err == -EADDRNOTAVAIL ? -EADDRINUSE : err;
}

/**
 * esp_hash_any_port() - enter a connection into its table with a port that is free for its peer
 * @sk:	connection with addresses, and without a port; its lock is held
 *
 * As with TCP, connections to several peers may have the same port.
 *
 * Return: 0, ENOMEM; EADDRNOTAVAIL: no port is left for this peer
 */
int esp_hash_any_port(struct sock *sk)
{
	int err;

	sock_owned_by_me(sk);
	err = port_find(sk, hash_with_port);
	return err == -EADDRINUSE ? -EADDRNOTAVAIL : err;
}

void esp_unhash(struct sock *sk)
{
	struct esp_bucket *b;

	if (sk_unhashed(sk))
		return;
	b = sock_bucket(sk);
	spin_lock_bh(&b->lock);
	if (sk_del_node_init_rcu(sk))
		sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
	spin_unlock_bh(&b->lock);
}

/**
 * esp_lookup() - find the connection of a frame
 * @net:	namespace
 * @ifindex:	device that received the frame
 * @sport:	our port (the frame's destination)
 * @dport:	the peer's port
 * @mac:	the peer's MAC address
 *
 * Context: RCU read side.
 * Return: the socket with a reference, or NULL
 */
struct sock *esp_lookup(struct net *net, int ifindex, __be16 sport,
			__be16 dport, const u8 *mac)
{
	struct esp_bucket *b = conn_bucket(net, ifindex, sport, dport, mac);
	struct sock *sk;

	sk_for_each_rcu(sk, &b->head)
		if (conn_matches(sk, net, ifindex, sport, dport, mac) &&
		    refcount_inc_not_zero(&sk->sk_refcnt))
			return sk;
	return NULL;
}

/**
 * esp_next_conn() - find any connection
 * @bucket:	where to begin; set to where the connection is
 *
 * Return: the connection with a reference, or NULL
 */
struct sock *esp_next_conn(unsigned int *bucket)
{
	struct sock *sk;

	for (; *bucket <= esp_conns_mask; ++*bucket) {
		struct esp_bucket *b = &esp_conns[*bucket];

		spin_lock_bh(&b->lock);
		sk_for_each(sk, &b->head) {
			if (refcount_inc_not_zero(&sk->sk_refcnt)) {
				spin_unlock_bh(&b->lock);
				return sk;
			}
		}
		spin_unlock_bh(&b->lock);
	}
	return NULL;
}

static bool port_matches(const struct sock *sk, const struct net *net,
			 int ifindex, __be16 port)
{
	int dev = READ_ONCE(sk->sk_bound_dev_if);

	return READ_ONCE(esp_sk(sk)->sport) == port && sock_net(sk) == net &&
	       (!dev || dev == ifindex);
}

/**
 * esp_lookup_listener() - find a port's listener, best one bound to the device
 * @net:	namespace
 * @ifindex:	device
 * @port:	port
 *
 * It finds no listener for a TCP port whose listener demands signed segments.
 *
 * Return: the socket with a reference, or NULL
 */
struct sock *esp_lookup_listener(struct net *net, int ifindex, __be16 port)
{
	struct esp_bucket *b = port_bucket(esp_listeners, net, port, false);
	struct sock *sk, *best = NULL;

	rcu_read_lock();
	sk_for_each_rcu(sk, &b->head) {
		if (sock_is_dgram(sk) || !port_matches(sk, net, ifindex, port) || esp_tcp_gone(sk))
			continue;
		if (!best || READ_ONCE(sk->sk_bound_dev_if))
			best = sk;
	}
	if (best && (esp_tcp_signed(best) || !refcount_inc_not_zero(&best->sk_refcnt)))
		best = NULL;
	rcu_read_unlock();
	return best;
}

/**
 * esp_lookup_tcp() - find the listener that stands for a TCP listener
 * @tcp:	TCP's socket
 *
 * Return: the socket with a reference, or NULL
 */
struct sock *esp_lookup_tcp(const struct sock *tcp)
{
	struct esp_bucket *b = port_bucket(esp_listeners, sock_net(tcp), inet_sk(tcp)->inet_sport,
					   false);
	struct sock *sk, *found = NULL;

	rcu_read_lock();
	sk_for_each_rcu(sk, &b->head) {
		if (READ_ONCE(esp_sk(sk)->tcp) == tcp && refcount_inc_not_zero(&sk->sk_refcnt)) {
			found = sk;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/**
 * esp_next_dgram() - find the next EDP socket of a port
 * @net:	namespace
 * @ifindex:	device
 * @port:	port
 * @prev:	previous socket; NULL: find the first
 *
 * Context: RCU read side.
 * Return: a socket, no reference; NULL: no more
 */
struct sock *esp_next_dgram(struct net *net, int ifindex, __be16 port,
			    struct sock *prev)
{
	struct esp_bucket *b = port_bucket(esp_listeners, net, port, true);
	struct hlist_node *next;
	struct sock *sk;

	/* A socket closed meanwhile still leads to the next until the RCU read side ends. */
	next = prev ? rcu_dereference_raw(hlist_next_rcu(&prev->sk_node)) :
		      rcu_dereference_raw(hlist_first_rcu(&b->head));
	sk = hlist_entry_safe(next, struct sock, sk_node);
	hlist_for_each_entry_from_rcu(sk, sk_node)
		if (sock_is_dgram(sk) && port_matches(sk, net, ifindex, port))
			return sk;
	return NULL;
}

/* Visit the sockets of a bucket after @walk->pos; return false if @fn ended the walk. */
static bool walk_bucket(struct esp_bucket *b, struct esp_walk *walk, struct net *net,
			bool (*fn)(struct sock *sk, void *data), void *data)
{
	struct sock *sk;
	bool go_on = true;

	spin_lock_bh(&b->lock);
	sk_for_each(sk, &b->head) {
		u64 place = esp_sk(sk)->walk_pos;

		if ((walk->pos && place >= walk->pos) || !net_eq(sock_net(sk), net))
			continue;
		go_on = fn(sk, data);
		if (!go_on)
			break;
		walk->pos = place;
	}
	spin_unlock_bh(&b->lock);
	return go_on;
}

/**
 * esp_for_each_sock() - visit the sockets of a namespace that lookups find
 * @net:	namespace
 * @walk:	position to begin at; updated, so that another call goes on from there
 * @fn:		called under the lock of the socket's bucket; returns false to refuse a
 *		socket: this ends the walk, and another call begins with that socket
 * @data:	for @fn
 *
 * A socket that stays in its table until the end is visited once, even if other
 * sockets come and go between the calls.
 */
void esp_for_each_sock(struct net *net, struct esp_walk *walk,
		       bool (*fn)(struct sock *sk, void *data), void *data)
{
	for (; walk->bucket < ESP_PORTS + esp_conns_mask + 1; walk->bucket++) {
		struct esp_bucket *b = walk->bucket < ESP_PORTS ?
				       &esp_listeners[walk->bucket] :
				       &esp_conns[walk->bucket - ESP_PORTS];

		if (!hlist_empty(&b->head) && !walk_bucket(b, walk, net, fn, data))
			return;
		walk->pos = 0;
		cond_resched();
	}
}
EXPORT_SYMBOL_GPL(esp_for_each_sock);

/**
 * esp_find_sock() - find a socket that a user has seen in a list
 * @net:	namespace
 * @type:	socket type
 * @src:	the socket's own address; only its port counts
 * @dst:	the peer of a connection; port 0: a socket without a peer, as a listener
 * @fn:		called under the lock of the bucket; returns true for the right socket
 * @data:	for @fn
 *
 * Return: the socket with a reference, or NULL
 */
struct sock *esp_find_sock(struct net *net, int type, const struct sockaddr_esp *src,
			   const struct sockaddr_esp *dst,
			   bool (*fn)(struct sock *sk, void *data), void *data)
{
	bool conn = type != SOCK_DGRAM && dst->sesp_port;
	struct sock *sk, *found = NULL;
	struct esp_bucket *b;

	b = conn ? conn_bucket(net, dst->sesp_ifindex, src->sesp_port, dst->sesp_port,
			       dst->sesp_addr) :
		   port_bucket(esp_listeners, net, src->sesp_port, type == SOCK_DGRAM);
	spin_lock_bh(&b->lock);
	sk_for_each(sk, &b->head) {
		if (sk->sk_type != type || esp_sk(sk)->sport != src->sesp_port ||
		    !net_eq(sock_net(sk), net))
			continue;
		if (dst->sesp_port ? !conn_matches(sk, net, dst->sesp_ifindex, src->sesp_port,
						   dst->sesp_port, dst->sesp_addr) :
				     !!READ_ONCE(esp_sk(sk)->dport))
			continue;
		if (!fn(sk, data))
			continue;
		sock_hold(sk);	/* the table has a reference */
		found = sk;
		break;
	}
	spin_unlock_bh(&b->lock);
	return found;
}
EXPORT_SYMBOL_GPL(esp_find_sock);

static void hash_init_table(struct esp_bucket *table, unsigned int n)
{
	while (n--) {
		spin_lock_init(&table[n].lock);
		INIT_HLIST_HEAD(&table[n].head);
	}
}

int esp_hash_init(void)
{
	/* a bucket for each 64 KiB of memory, 1,024 to 65,536 */
	unsigned long n = clamp_t(unsigned long,
				  totalram_pages() >> (16 - PAGE_SHIFT),
				  1024, 65536);

	n = roundup_pow_of_two(n);
	esp_conns = kvmalloc_array(n, sizeof(*esp_conns), GFP_KERNEL);
	if (!esp_conns)
		return -ENOMEM;
	esp_conns_mask = n - 1;
	esp_max_orphans = n / 2;	/* as TCP's: half as many as there are buckets */
	get_random_bytes(esp_conn_key, sizeof(esp_conn_key));
	hash_init_table(esp_conns, n);
	hash_init_table(esp_ports, ESP_PORTS);
	hash_init_table(esp_listeners, ESP_PORTS);
	return 0;
}

void esp_hash_exit(void)
{
	kvfree(esp_conns);
}
