// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device's queue: how much of the connections' data waits in front of a device (tuning.rst).
 *
 *   write queue ---> esp_devq_may_send() ---> esp_devq_own() ---> queueing discipline, driver
 *        ^                   | no                                           |
 *        |                   v                                              | the frame is freed
 *        |               devq_want()                                        v
 *        +--- a turn <--- q->timer <--- q->ready <--------------------- devq_free()
 *
 * A frame with payload keeps its socket (skb->sk) until the device is done with it, as with TCP's
 * small queues. Data that waits in a socket instead of in the queue costs no round trip, is not
 * dropped there, and does not stand before another connection's data.
 *
 * The connections that have frames in a queue share its limit equally: each may have the n-th
 * part, and a single packet if that is less. It may have twice as much if nothing is outstanding,
 * because the device has only not reported yet what it has sent. So a connection waits
 * for nothing but its own frames, and no rule depends on the device's speed. Frames may stay in the
 * queue for long, in a slow class of the queueing discipline or with a neighbour that doesn't take
 * them. They stop no other connection. But they keep their share, and while they stay, the limit
 * does not grow.
 *
 * Of N connections that came one after another, the last one found N - 1 others, the one before it
 * N - 2. So the queue holds at most 1 + 1/2 + ... + 1/N times the limit, and two packets for each
 * connection (one counts, the other one is alone: see below).
 *
 * The unit of the limit is a full frame, or half of a GSO packet if the device takes these. The
 * least limit is two units: two frames, or one GSO packet. It grows if the queue runs dry while
 * connections wait: then the device takes its time to report what it has sent. It shrinks by half
 * of what is never needed. So it is the smallest one that keeps the device busy (as BQL's), and it
 * grows where frames are gone at once (veth, loopback).
 *
 * A connection that fq paces (SO_MAX_PACING_RATE) may have two frames of a millisecond, and does
 * not count for the others. Empty packets, FINs and retransmissions never wait. The latter are
 * counted. A packet is not if it is the only one of its connection, because all earlier ones were
 * acknowledged.
 *
 * Destructors run in any context but hard interrupts, also with interrupts off, and under locks of
 * queueing disciplines. They read the socket and the link, which RCU frees.
 */
#include "esp.h"
#include "dev_queue.h"
#include "link.h"

#define ESP_DEVQ_LEAST		2	/* smallest limit, units */
#define ESP_DEVQ_MOST		512	/* largest limit, units */
#define ESP_DEVQ_FRAME		1024	/* memory of a frame beyond its payload, bytes */
#define ESP_DEVQ_INTERVAL_US	100000	/* how long what was learned counts */

/* Does fq pace the socket, so that its frames may stay long in the queue? */
static bool devq_paced(const struct sock *sk)
{
	return esp_has_rate(sk) && READ_ONCE(sk->sk_pacing_status) == SK_PACING_FQ;
}

/**
 * esp_devq_held() - Count the memory of a socket's frames in the queue
 * @sk:	connection
 *
 * Fragments that IP makes of them don't count. Empty frames count only beside others.
 *
 * Return: bytes
 */
u32 esp_devq_held(const struct sock *sk)
{
	if (!atomic_read(&esp_sk(sk)->devq_frames) && !atomic_read(&esp_sk(sk)->devq_paced))
		return 0;
	return refcount_read(&sk->sk_wmem_alloc) - 1;
}

/* Memory of the frames that a socket may have in the queue, bytes. @most: payload of a frame */
static u32 devq_share(struct sock *sk, u32 most)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 unit = max_t(u32, esp->mss, most / 2) + ESP_DEVQ_FRAME, n;

	WRITE_ONCE(esp->devq_unit, unit);
	if (devq_paced(sk))
		return 2 * (max_t(u32, esp->mss, most) + ESP_DEVQ_FRAME);
	n = atomic_read(&esp->devq->busy) + !atomic_read(&esp->devq_frames);
	return READ_ONCE(esp->devq->limit) * unit / max(n, 1u);
}

/* Let a socket wait until a frame of its own is freed. Return false if none is in the queue. */
static bool devq_want(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	smp_store_release(&esp->devq_wants, 1);	/* after devq_unit */
	smp_mb();	/* pairs with devq_free() */
	if (esp_devq_held(sk))
		return true;
	WRITE_ONCE(esp->devq_wants, 0);
	return false;
}

/**
 * esp_devq_may_send() - Count the packets that a socket may hand to the device now, as one frame
 * @sk:		connection; its owner calls
 * @n:		packets with payload; more than one: a GSO packet
 * @size:	payload of a packet, bytes
 * @most:	most payload of a GSO packet, bytes
 *
 * A socket that must not send gets a turn when a frame of its own is freed: esp_devq_turns() sends
 * then.
 *
 * Return: number of packets, at most @n; 0: none
 */
u32 esp_devq_may_send(struct sock *sk, u32 n, u32 size, u32 most)
{
	u32 held = esp_devq_held(sk), share = devq_share(sk, most), frame;
	bool idle = esp_sk(sk)->snd.una_seq == esp_sk(sk)->snd.send_next;

	sock_owned_by_me(sk);
	n = clamp(share / size, 1u, n);
	frame = n * size + ESP_DEVQ_FRAME;
	/*
	 * If nothing is outstanding, the device is late to report what it has sent, as far as the
	 * peer can be believed. So one frame more may leave: the connection does not stand still.
	 */
	most = idle ? 2 * max(share, frame) - frame : share - min(share, frame);
	if (held && held > most && devq_want(sk))
		return 0;
	WRITE_ONCE(esp_sk(sk)->devq_wants, 0);
	return n;
}

/**
 * esp_devq_holds() - Is a buffer's last frame still in the device's queue?
 * @sk:		connection
 * @skb:	buffer of the write queue
 *
 * Such a packet is not lost. A copy that was made for a retransmission is not found.
 *
 * Return: true if so
 */
bool esp_devq_holds(const struct sock *sk, const struct sk_buff *skb)
{
	return skb_fclone_busy(sk, skb);
}

/* Have the timer give turns, at once. Under the lock. */
static void devq_start(struct esp_devq *q)
	__must_hold(&q->lock)
{
	lockdep_assert_held(&q->lock);
	if (!q->due)
		hrtimer_start(&q->timer, 0, HRTIMER_MODE_REL_SOFT);
	q->due = true;
}

/* A socket waits for its own frames, and one was freed: it is its turn. */
static noinline_for_stack void devq_ready(struct esp_devq *q, struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	unsigned long irqs;

	spin_lock_irqsave(&q->lock, irqs);
	/* esp_devq_leave() or esp_devq_attach() may come first: then the turn is for nothing */
	if (READ_ONCE(esp->devq) == q && READ_ONCE(esp->devq_wants) &&
	    list_empty(&esp->devq_node) && refcount_inc_not_zero(&sk->sk_refcnt)) {
		WRITE_ONCE(esp->devq_wants, 0);
		list_add_tail(&esp->devq_node, &q->ready);
		devq_start(q);
	}
	spin_unlock_irqrestore(&q->lock, irqs);
}

/* The device is done with a frame. */
static void devq_done(struct sk_buff *skb, bool counts)
{
	struct sock *sk = skb->sk;
	struct esp_devq *q;
	bool last;

	rcu_read_lock();
	q = READ_ONCE(esp_sk(sk)->devq);	/* NULL: between two connections */
	if (!counts)
		atomic_dec(&esp_sk(sk)->devq_paced);
	else if (atomic_dec_and_test(&esp_sk(sk)->devq_frames))
		atomic_dec(&q->busy);
	last = refcount_sub_and_test(skb->truesize, &sk->sk_wmem_alloc);
	smp_mb__after_atomic();		/* pairs with devq_want() */
	/* from here on the socket may end, but RCU keeps its memory, and the link's */
	if (unlikely(last)) {	/* the core frees by sk_free() only */
		refcount_set(&sk->sk_wmem_alloc, 1);
		sk_free(sk);
	} else if (unlikely(q && READ_ONCE(esp_sk(sk)->devq_wants))) {
		devq_ready(q, sk);
	}
	rcu_read_unlock();
}

/* Destructors of frames that count for esp_devq.busy, and of those that fq paces */
static void devq_free(struct sk_buff *skb) { devq_done(skb, true); }
static void devq_free_paced(struct sk_buff *skb) { devq_done(skb, false); }

/* The core lowers the rate that fq obeys, and raises only TCP's. */
static void devq_set_rate(struct sock *sk)
{
	unsigned long rate = READ_ONCE(sk->sk_max_pacing_rate);

	if (unlikely(READ_ONCE(sk->sk_pacing_rate) != rate))
		WRITE_ONCE(sk->sk_pacing_rate, rate);
}

/**
 * esp_devq_own() - Let a frame keep its socket until the device is done with it
 * @skb:	frame with payload, that leaves now
 * @sk:		its connection; the owner calls
 */
void esp_devq_own(struct sk_buff *skb, struct sock *sk)
{
	devq_set_rate(sk);
	skb->sk = sk;
	refcount_add(skb->truesize, &sk->sk_wmem_alloc);
	if (unlikely(devq_paced(sk))) {
		skb->destructor = devq_free_paced;
		atomic_inc(&esp_sk(sk)->devq_paced);
		return;
	}
	skb->destructor = devq_free;
	if (atomic_inc_return(&esp_sk(sk)->devq_frames) == 1)
		atomic_inc(&esp_sk(sk)->devq->busy);
}

/**
 * esp_devq_follow() - Keep a frame in order with the frames that have the socket
 * @skb:	frame that counts for no limit: it has no data, or they are alone
 * @sk:		its connection; the caller has a reference
 *
 * fq takes frames with a socket, and those without, for two flows. It sets sk_pacing_status at the
 * first one that has the socket, so one frame may still overtake that. These frames are not charged
 * to the rate, as TCP's ACKs are not: they have a time of departure, which is now.
 */
void esp_devq_follow(struct sk_buff *skb, struct sock *sk)
{
	if (likely(READ_ONCE(sk->sk_pacing_status) != SK_PACING_FQ || !esp_sk(sk)->devq))
		return;
	devq_set_rate(sk);
	skb_set_delivery_type_by_clockid(skb, ktime_get(), CLOCK_MONOTONIC);
	skb->sk = sk;
	refcount_add(skb->truesize, &sk->sk_wmem_alloc);
	skb->destructor = sock_wfree;
}

/**
 * esp_devq_move() - Let the last segment of a GSO packet keep the socket
 * @skb:	GSO packet, which is to be freed
 * @last:	its last segment
 */
void esp_devq_move(struct sk_buff *skb, struct sk_buff *last)
{
	if (skb->destructor != devq_free && skb->destructor != devq_free_paced)
		return;
	swap(last->truesize, skb->truesize);
	swap(last->destructor, skb->destructor);
	swap(last->sk, skb->sk);
}

/**
 * esp_devq_refused() - Take note that the queue had no room
 * @sk:	connection whose frame was refused, or took another one's place; its owner calls
 */
void esp_devq_refused(struct sock *sk)
{
	struct esp_devq *q = esp_sk(sk)->devq;
	unsigned long irqs;
	u64 now;

	spin_lock_irqsave(&q->lock, irqs);
	now = esp_now();
	if (now - q->halved >= ESP_DEVQ_INTERVAL_US) {	/* a burst of drops is one reason */
		q->halved = now;
		WRITE_ONCE(q->limit, max(q->limit / 2, ESP_DEVQ_LEAST));
	}
	spin_unlock_irqrestore(&q->lock, irqs);
}

/**
 * esp_devq_adapt() - Adapt the limit before a turn is given
 * @q:		device's queue; under its lock
 * @left:	units that the queue would hold if all connections had as much left as this one
 * @now:	microseconds
 */
void esp_devq_adapt(struct esp_devq *q, u32 left, u64 now)
	__must_hold(&q->lock)
{
	lockdep_assert_held(&q->lock);
	if (now - q->since >= ESP_DEVQ_INTERVAL_US) {
		/* what was left at each turn was not needed */
		if (q->low != U32_MAX)
			WRITE_ONCE(q->limit, max_t(int, q->limit - DIV_ROUND_UP(q->low, 2),
						   ESP_DEVQ_LEAST));
		q->low = U32_MAX;
		q->since = now;
	}
	q->low = min3(q->low, left, ESP_DEVQ_MOST);
	/* it ran dry: by one a time, because the machine may have been busy elsewhere */
	if (!atomic_read(&q->busy))
		WRITE_ONCE(q->limit, min(q->limit + 1, ESP_DEVQ_MOST));
}

/**
 * esp_devq_round() - Begin a round of turns
 * @q:	device's queue
 */
void esp_devq_round(struct esp_devq *q)
{
	unsigned long irqs;

	spin_lock_irqsave(&q->lock, irqs);
	q->due = false;
	spin_unlock_irqrestore(&q->lock, irqs);
}

/**
 * esp_devq_next() - Find the socket whose turn it is
 * @q:	device's queue
 *
 * Return: the socket, with a reference; NULL: there is none
 */
struct sock *esp_devq_next(struct esp_devq *q)
{
	struct sock *sk = NULL;
	struct esp_opt *esp;
	unsigned long irqs;

	spin_lock_irqsave(&q->lock, irqs);
	esp = list_first_entry_or_null(&q->ready, struct esp_opt, devq_node);
	if (esp) {
		list_del_init(&esp->devq_node);
		sk = &esp->sk;
		if (!devq_paced(sk))
			esp_devq_adapt(q, div_u64((u64)esp_devq_held(sk) * atomic_read(&q->busy),
						  READ_ONCE(esp->devq_unit)), esp_now());
	}
	spin_unlock_irqrestore(&q->lock, irqs);
	return sk;
}

/**
 * esp_devq_rest() - End a round of turns
 * @q:		device's queue
 *
 * If there are more turns, they come after a moment for other softirqs.
 */
void esp_devq_rest(struct esp_devq *q)
{
	unsigned long irqs;

	spin_lock_irqsave(&q->lock, irqs);
	if (!list_empty(&q->ready))
		devq_start(q);
	spin_unlock_irqrestore(&q->lock, irqs);
}

static void devq_leave(struct esp_devq *q, struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	unsigned long irqs;
	bool ready;

	spin_lock_irqsave(&q->lock, irqs);
	ready = !list_empty(&esp->devq_node);
	list_del_init(&esp->devq_node);
	WRITE_ONCE(esp->devq_wants, 0);
	spin_unlock_irqrestore(&q->lock, irqs);
	if (ready)
		__sock_put(sk);	/* the caller has a reference of its own */
}

/**
 * esp_devq_unused() - Count the packets that wait for the device, and not for the peer
 * @sk:	connection; its owner calls, when it has sent what it may
 * @n:	packets
 */
void esp_devq_unused(struct sock *sk, u32 n)
{
	struct esp_opt *esp = esp_sk(sk);

	if (n == esp->devq_unused)
		return;
	atomic_add(n - esp->devq_unused, &esp->devq->unused);
	esp->devq_unused = n;
}

/* From how many packets that wait for the device on is its link busy? */
static u32 devq_busy_from(const struct esp_devq *q)
{
	return esp_budget_busy_from(&container_of(q, const struct esp_link, devq)->budget);
}

/**
 * esp_devq_permitted() - Take note that a peer permits more
 * @sk:	connection; its owner calls, before it sends
 *
 * If earlier permission is still unused, on this connection or on others, then the own link is
 * what packets wait for. Frames tell that to their receivers (BUSY), and these give their grants to
 * other hosts.
 */
void esp_devq_permitted(struct sock *sk)
{
	struct esp_devq *q = esp_sk(sk)->devq;
	int unused = atomic_read(&q->unused);

	if (unlikely(unused > 0) && !READ_ONCE(q->link_busy) && unused > devq_busy_from(q))
		WRITE_ONCE(q->link_busy, 1);
}

/**
 * esp_devq_is_busy() - Is the own link what packets wait for?
 * @sk:	connection; its owner calls, or whoever keeps it from being disconnected
 *
 * Return: true if a frame that leaves now has BUSY
 */
bool esp_devq_is_busy(const struct sock *sk)
{
	const struct esp_devq *q = esp_sk(sk)->devq;

	return q && READ_ONCE(q->link_busy) &&
	       atomic_read(&q->unused) > (int)devq_busy_from(q) / 2;
}

/**
 * esp_devq_link_busy() - Is the own link what packets wait for, for a frame that leaves?
 * @sk:	connection; its owner calls
 *
 * Once this was not so, it is not until esp_devq_permitted() finds it again.
 *
 * Return: true if the frame has BUSY
 */
bool esp_devq_link_busy(struct sock *sk)
{
	struct esp_devq *q = esp_sk(sk)->devq;

	if (likely(!q || !READ_ONCE(q->link_busy)))
		return false;
	if (esp_devq_is_busy(sk))
		return true;
	WRITE_ONCE(q->link_busy, 0);
	return false;
}

/**
 * esp_devq_leave() - Give up a socket's turn
 * @sk:	socket that sends no data any more; its owner calls
 */
void esp_devq_leave(struct sock *sk)
{
	if (!esp_sk(sk)->devq)
		return;
	esp_devq_unused(sk, 0);
	devq_leave(esp_sk(sk)->devq, sk);
}

/**
 * esp_devq_attach() - Count a socket's frames in a device's queue
 * @sk:		connection that begins; its owner calls
 * @link:	the device's link
 *
 * As long as frames of an earlier connection are in another device's queue, they count there, and
 * so do those of this connection.
 */
void esp_devq_attach(struct sock *sk, struct esp_link *link)
{
	struct esp_opt *esp = esp_sk(sk);

	if (esp->devq == &link->devq ||
	    (esp->devq && refcount_read(&sk->sk_wmem_alloc) != 1))
		return;
	refcount_inc(&link->ref);
	esp_devq_detach(sk);
	WRITE_ONCE(esp->devq, &link->devq);
}

/**
 * esp_devq_detach() - End what esp_devq_attach() began
 * @sk:	socket without frames in a device's queue
 */
void esp_devq_detach(struct sock *sk)
{
	struct esp_devq *q = esp_sk(sk)->devq;
	unsigned long irqs;

	if (!q)
		return;
	esp_devq_unused(sk, 0);
	spin_lock_irqsave(&q->lock, irqs);	/* devq_ready() comes before or after */
	WRITE_ONCE(esp_sk(sk)->devq, NULL);
	spin_unlock_irqrestore(&q->lock, irqs);
	devq_leave(q, sk);
	esp_link_put(container_of(q, struct esp_link, devq));
}

/**
 * esp_devq_init() - Set up a device's queue
 * @q:		device's queue
 * @turns:	function of the timer that gives turns
 */
void esp_devq_init(struct esp_devq *q, enum hrtimer_restart (*turns)(struct hrtimer *timer))
{
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->ready);
	q->limit = ESP_DEVQ_LEAST;
	q->low = U32_MAX;
	hrtimer_setup(&q->timer, turns, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}
