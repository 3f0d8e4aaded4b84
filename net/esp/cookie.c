// SPDX-License-Identifier: GPL-2.0-only
/*
 * The listener's cookies. A cookie is a keyed hash of what the listener has told a client, and
 * of a slot of time. It makes one connection, once: a late copy of the echo must not deliver
 * its data to a second one.
 *
 * So each cookie that has made a connection is remembered until its slot is over. There is a
 * table for the present slot and one for the slot before; the cookies of older slots are
 * invalid. A slot lasts ESP_COOKIE_SLOT_US, or less: it ends when its table is half full. A
 * handshake fails, by an RST, if it takes longer than the rest of its slot and the next one.
 */
#include <linux/mm.h>
#include "esp.h"
#include "cookie.h"
#include "tcp.h"

#define ESP_COOKIE_SLOT_US	(64ull * 1000 * 1000)
#define ESP_COOKIE_RETURNED	(~0ull << 32)	/* no cookie is 0: in no use, but not free */

/* Cookies that have made a connection, of one slot. Open addressing; 0: free. */
struct cookie_table {
	u64		*keys;
	unsigned int	used;
};

/* The present slot. The lock guards all fields; slot, until and keys are read without it, too. */
static struct {
	spinlock_t		lock;	/* see above */
	u32			slot;	/* number of the present slot */
	u64			until;	/* when it ends at the latest, microseconds */
	struct cookie_table	table[2];	/* of slots with even and with odd numbers */
	unsigned int		mask;	/* entries of a table, minus 1 */
	u64			key[3];	/* of the hash: nobody can choose an entry */
} cookies;

static void cookie_forget(u32 slot)
{
	struct cookie_table *t = &cookies.table[slot & 1];

	if (t->used)
		memset(t->keys, 0, (cookies.mask + 1ul) * sizeof(*t->keys));
	t->used = 0;
}

/* Begin the next slot: @n is 1, or more if nobody has asked for a cookie for some slots. */
static void cookie_next_slot(u64 n)
	__must_hold(&cookies.lock)
{
	lockdep_assert_held(&cookies.lock);
	WRITE_ONCE(cookies.slot, cookies.slot + n);
	cookie_forget(cookies.slot);
	if (n > 1)
		cookie_forget(cookies.slot - 1);
}

/**
 * esp_cookie_slot() - Return the number of the present slot
 *
 * A slot lasts ESP_COOKIE_SLOT_US, the first one less. It ends earlier when many connections are
 * made.
 *
 * Return: the number; it wraps
 */
u32 esp_cookie_slot(void)
{
	u64 now = esp_now(), over;

	if (likely(now < READ_ONCE(cookies.until)))
		return READ_ONCE(cookies.slot);
	spin_lock_bh(&cookies.lock);
	if (now >= cookies.until) {
		over = div_u64(now - cookies.until, ESP_COOKIE_SLOT_US) + 1;
		cookie_next_slot(over);
		WRITE_ONCE(cookies.until, cookies.until + over * ESP_COOKIE_SLOT_US);
	}
	spin_unlock_bh(&cookies.lock);
	return READ_ONCE(cookies.slot);
}

/**
 * esp_listen_cookie() - Compute the listener's cookie for a peer
 * @sk:		listener
 * @ifindex:	device
 * @eth:	header of a frame from the peer
 * @f:		the same frame: ports, and the peer's cookie
 * @advice:	first burst that the listener gave the peer
 * @features: ESP_FEATURE_* that both sides agreed on
 * @slot:	esp_cookie_slot() when the cookie was made
 *
 * The cookie stands for all that the listener told the peer and doesn't keep.
 *
 * Return: the cookie, never 0
 */
u32 esp_listen_cookie(struct sock *sk, int ifindex, const struct ethhdr *eth,
		      const struct esp_frame *f, u16 advice, u8 features, u32 slot)
{
	struct {
		u8	macs[2 * ETH_ALEN];
		__be16	sport;
		__be16	dport;
		u32	ifindex;
		u32	peer_cookie;
		u16	advice;
		u8	type;
		u8	features;
		u32	slot;
	} __packed __aligned(8) in = {
		.sport		= f->sport,
		.dport		= f->dport,
		.ifindex	= ifindex,
		.peer_cookie	= f->peer_cookie,
		.advice		= advice,
		.type		= sk->sk_type,
		.features	= features,
		.slot		= slot,
	};
	u32 cookie;

	ether_addr_copy(in.macs, eth->h_source);
	ether_addr_copy(in.macs + ETH_ALEN, eth->h_dest);
	cookie = siphash(&in, sizeof(in), &esp_net(sock_net(sk))->secret);
	if (features & ESP_FEATURE_TCP)
		cookie = esp_tcp_cookie(sk, cookie);
	return cookie ? cookie : 1;
}

static u64 cookie_key(u32 cookie, u32 peer_cookie)
{
	return (u64)peer_cookie << 32 | cookie;
}

/*
 * Find the entry of a cookie, or the free one where it belongs. There always is a free one. The
 * caller holds the lock, or only looks, and the slot may end meanwhile.
 */
static u64 *cookie_find(u32 slot, u32 cookie, u32 peer_cookie)
{
	u64 key = cookie_key(cookie, peer_cookie), h = cookies.key[0], k;
	u64 *keys = cookies.table[slot & 1].keys;
	unsigned int i;

	h += cookies.key[1] * cookie + cookies.key[2] * peer_cookie;
	for (i = (h >> 32) & cookies.mask; (k = READ_ONCE(keys[i])) && k != key;)
		i = (i + 1) & cookies.mask;
	return &keys[i];
}

/**
 * esp_cookie_used() - Has a cookie made a connection already?
 * @slot:		its slot: the present one, or the one before
 * @cookie:		the listener's cookie
 * @peer_cookie:	the client's cookie
 *
 * This only saves work: esp_cookie_use() decides, under the lock.
 *
 * Return: true if it has
 */
bool esp_cookie_used(u32 slot, u32 cookie, u32 peer_cookie)
{
	return READ_ONCE(*cookie_find(slot, cookie, peer_cookie));
}

/**
 * esp_cookie_use() - Use a cookie for a connection, if it has made none
 * @slot:		as for esp_cookie_used()
 * @cookie:		the listener's cookie
 * @peer_cookie:	the client's cookie
 *
 * A slot ends early when its table is half full. Clients may still use the cookies that they
 * got in it. When they have filled three quarters of the table, the next slot ends, too.
 *
 * Return: false if it has made one, or if its slot has just ended
 */
bool esp_cookie_use(u32 slot, u32 cookie, u32 peer_cookie)
{
	struct cookie_table *t = &cookies.table[slot & 1];
	bool unused = false;
	unsigned int most;
	u64 *e;

	spin_lock_bh(&cookies.lock);
	if (cookies.slot - slot > 1)
		goto out;
	e = cookie_find(slot, cookie, peer_cookie);
	unused = !*e;
	if (!unused)
		goto out;
	WRITE_ONCE(*e, cookie_key(cookie, peer_cookie));
	t->used++;
	most = cookies.mask / 4 * (slot == cookies.slot ? 2 : 3);
	if (t->used > most) {
		cookie_next_slot(1);
		WRITE_ONCE(cookies.until, esp_now() + ESP_COOKIE_SLOT_US);
	}
out:
	spin_unlock_bh(&cookies.lock);
	return unused;
}

/**
 * esp_cookie_return() - Let a cookie be used again, because the connection was not made
 * @slot:		as for esp_cookie_used()
 * @cookie:		the listener's cookie
 * @peer_cookie:	the client's cookie
 */
void esp_cookie_return(u32 slot, u32 cookie, u32 peer_cookie)
{
	u64 *e;

	spin_lock_bh(&cookies.lock);
	e = cookie_find(slot, cookie, peer_cookie);
	if (*e)		/* the entry stays, because others may stand behind it */
		WRITE_ONCE(*e, ESP_COOKIE_RETURNED);
	spin_unlock_bh(&cookies.lock);
}

int esp_cookie_init(void)
{
	/* an entry for each 64 KiB of memory: as many as buckets of connections, or more */
	unsigned long n = clamp_t(unsigned long,
				  totalram_pages() >> (16 - PAGE_SHIFT),
				  16384, 65536);
	int i;

	n = roundup_pow_of_two(n);
	for (i = 0; i < 2; i++) {
		cookies.table[i].keys = kvcalloc(n, sizeof(u64), GFP_KERNEL);
		cookies.table[i].used = 0;
		if (!cookies.table[i].keys) {
			esp_cookie_exit();
			return -ENOMEM;
		}
	}
	spin_lock_init(&cookies.lock);
	cookies.mask = n - 1;
	cookies.until = (div_u64(esp_now(), ESP_COOKIE_SLOT_US) + 1) * ESP_COOKIE_SLOT_US;
	get_random_bytes(cookies.key, sizeof(cookies.key));
	return 0;
}

void esp_cookie_exit(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		kvfree(cookies.table[i].keys);
		cookies.table[i].keys = NULL;
	}
}
