// SPDX-License-Identifier: GPL-2.0-only
// CFLAGS: -fsanitize=address,undefined -fno-sanitize-recover=all
/*
 * The sender's window under a hostile network: rules 2-4, 7, 13, 18.
 *
 *	host-window-fuzz [SEED | FILE]...	all seeds, or these, or bytes; one with its trace
 *
 * The sender decides by the real window.c, as output.c does; the receiver
 * grants, parks and sets first bursts at random. Frames of both directions are
 * lost, duplicated, reordered, and now and then made up.
 *
 * Checked: a packet is sent for the first time only within a grant or a first
 * burst; announcing voids earlier grants; made-up acknowledgements change
 * nothing; once the network loses nothing any more, all packets arrive.
 */
#include <stdarg.h>
#include "core/window.c"

#define RUNS	10000
#define HOLDS	"the sender keeps to its window, and nothing gets stuck"
#include "host-fuzz.h"

#define RING	1024
#define FRAMES	256
#define STEPS	300

#define TXS	1
#define TXF	2
#define SMALL	4	/* at most ESP_SMALL bytes */
#define EMPTY	8

struct frame {
	u8	flags;
	u32	seq;		/* data: pkt_seq; ACK: ack_seq */
	u16	grant;		/* ACK */
};

/* A direction of the network; frames leave it in any order. */
struct wire {
	struct frame f[FRAMES];
	int	n;
};

static struct wire to_rcv, to_snd;

/* Sender: the window, and the flags of the packets that it made. */
static struct esp_window w;
static u8 made[RING];

/* Receiver. */
static struct {
	u32	recv_seq;
	u32	edge;
	bool	announced;
	bool	parked;
	u16	advice;
	bool	here[RING];
	u8	flags[RING];
} r;

static u32 promised;		/* highest ack_seq + grant that the receiver ever sent */
static u32 begun;		/* number of the last packet sent with TXS */
static u32 own_limit;		/* end of the window at @begun, as ACKs of @begun move it */
static u32 first_max;		/* largest first burst ever allowed */
static bool calm;
static unsigned long sent, resent, probes, held;

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	complain(what);
	printf("# sender: una %u next %u made %u announce %u edge %u advice %u%s%s%s\n",
	       w.una_seq, w.send_next, w.send_seq, w.announce_seq, w.edge,
	       w.advice, w.announcing ? " announcing" : "",
	       w.in_trans ? " in_trans" : "", w.on_hold ? " held" : "");
	printf("# receiver: recv_seq %u edge %u advice %u%s%s, promised %u\n",
	       r.recv_seq, r.edge, r.advice, r.announced ? " announced" : "",
	       r.parked ? " parked" : "", promised);
	exit(1);
}

static void say(const char *fmt, ...)
{
	va_list ap;

	if (!verbose)
		return;
	va_start(ap, fmt);
	printf("# ");
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
}

static void put(struct wire *d, struct frame f)
{
	int copies = calm ? 1 : rnd(10) ? 1 : rnd(3);

	while (copies-- && d->n < FRAMES)
		d->f[d->n++] = f;
}

static bool take(struct wire *d, struct frame *f)
{
	int i;

	if (!d->n)
		return false;
	i = rnd(3) ? 0 : rnd(d->n);
	*f = d->f[i];
	memmove(d->f + i, d->f + i + 1, (--d->n - i) * sizeof(*f));
	return true;
}

/*
 * Sender, as in output.c.
 */

static void send_probe(void)
{
	struct frame f = { TXS | EMPTY, w.send_next, 0 };

	probes++;
	if (w.send_next == w.send_seq)
		f.seq--;
	put(&to_rcv, f);
}

/* esp_cwnd_test() */
static bool cwnd_test(u8 flags)
{
	bool small = (flags & SMALL) && (flags & TXS) && (flags & TXF);

	if ((flags & TXS) && esp_window_may_announce(&w)) {
		u32 n = esp_window_first_burst(&w);

		esp_window_announce(&w, small);
		n = small ? max(n, 1u) : n;
		if (w.send_next != w.una_seq)
			n = max(n, 1u);
		check(w.announce_seq == w.send_next &&
		      w.edge == w.send_next + n,
		      "announcing keeps what was granted before (rule 18)");
		check(n <= max(first_max, 1u), "first burst beyond the advice");
		if (w.edge == w.send_next) {
			send_probe();
			return false;
		}
	}
	return esp_window_test(&w);
}

static void push(void)
{
	while (w.send_next != w.send_seq) {
		u8 flags = made[w.send_next % RING];
		u32 seq = w.send_next;

		if (!cwnd_test(flags))
			return;
		check(esp_before(seq, promised) ||
		      seq - w.announce_seq < max(first_max, 1u),
		      "sent what was neither granted nor advised (rule 3)");
		check(!(flags & TXS) ||
		      seq - w.announce_seq < max(first_max, 1u),
		      "announced on another transmission's grant (rule 16)");
		if (flags & TXS) {
			begun = seq;
			own_limit = esp_window_limit(&w);
		}
		check(esp_before(seq, own_limit),
		      "went on with another transmission's grant (rule 16)");
		sent++;
		esp_window_sent(&w, 1, flags & TXS, flags & TXF);
		check(w.send_next == seq + 1, "send_next");
		put(&to_rcv, (struct frame){ flags, seq, 0 });
	}
}

static void write_some(void)
{
	u32 n = rnd(3) ? 1 : 1 + rnd(40), i;

	if (w.send_seq + n - w.una_seq >= RING)
		return;
	say("write %u at %u", n, w.send_seq);
	for (i = 0; i < n; i++)
		made[w.send_seq++ % RING] = (i ? 0 : TXS) |
			(i == n - 1 ? TXF : 0) | (n == 1 && rnd(2) ? SMALL : 0);
	push();
}

static void ack_rcv(struct frame *f)
{
	struct esp_window old;
	unsigned int res;

	memcpy(&old, &w, sizeof(w));	/* also copies padding, for memcmp() below */
	res = esp_window_ack(&w, f->seq, f->grant);

	say("ack %u grant %u: %#x, edge %u", f->seq, f->grant, res, w.edge);
	if (esp_after(f->seq, old.send_next)) {
		check(res == ESP_ACK_INVALID, "took an ACK of what was never sent");
	} else if (esp_before(f->seq, old.una_seq)) {
		check(res == ESP_ACK_STALE, "took a stale ACK");
	} else {
		check(!(res & (ESP_ACK_INVALID | ESP_ACK_STALE)), "refused an ACK");
		check(w.una_seq == f->seq, "una_seq");
		check(!(res & ESP_ACK_PROGRESS) == (f->seq == old.una_seq),
		      "PROGRESS");
		check((old.announcing && old.begun) ||
		      !(res & ESP_ACK_OPENED) == (w.edge == old.edge), "OPENED");
		check(!old.announcing || esp_after(f->seq, old.announce_seq) ||
		      (f->seq == old.announce_seq && !old.first) || w.edge == old.edge,
		      "took permission that announcing had voided");
		held += !!w.on_hold;
		if (!esp_before(f->seq, begun) &&
		    esp_after(f->seq + f->grant, own_limit))
			own_limit = f->seq + f->grant;
	}
	if (res & (ESP_ACK_INVALID | ESP_ACK_STALE))
		check(!memcmp(&old, &w, sizeof(w)), "a refused ACK left a trace");
	if (w.announce_seq == old.announce_seq)
		check(!esp_before(w.edge, old.edge) ||
		      (old.announcing && old.begun && !w.announcing &&
		       !esp_before(w.edge, esp_window_limit(&old))),
		      "the edge moved back");
	else
		check(w.announce_seq == begun && w.announcing &&
		      !esp_before(w.edge, w.send_next) &&
		      (w.granted ? f->seq == begun :
		       w.edge - old.announce_seq <= max(first_max, 1u)),
		      "announce_seq moved");
	push();
}

/* The timer of rule 8, or of rule 13. */
static void send_timeout(void)
{
	if (w.una_seq != w.send_next) {
		resent++;
		put(&to_rcv, (struct frame){ made[w.una_seq % RING], w.una_seq, 0 });
	} else if (w.send_next != w.send_seq) {
		send_probe();
	}
}

/*
 * Receiver, as in rcv_data.c and grant.c, but with random decisions instead of a queue.
 */

static void ack_out(void)
{
	u32 grant = !r.announced ? r.advice :
		    esp_after(r.edge, r.recv_seq) ? r.edge - r.recv_seq : 0;

	if (esp_after(r.recv_seq + grant, promised))
		promised = r.recv_seq + grant;
	put(&to_snd, (struct frame){ 0, r.recv_seq, grant });
}

static void release(void)
{
	u32 base = esp_after(r.recv_seq, r.edge) ? r.recv_seq : r.edge;

	r.parked = false;
	r.edge = base + 1 + rnd(32);
	if (r.edge - r.recv_seq > 200)
		r.edge = r.recv_seq + 200;
	say("grant up to %u", r.edge);
	ack_out();
}

static void ask(void)
{
	if (!r.parked && rnd(2)) {
		release();
		return;
	}
	r.parked = true;
	ack_out();		/* HOLD */
}

static void probe_rcv(u32 seq)
{
	if (seq != r.recv_seq) {
		ack_out();
		return;
	}
	if (!r.announced) {
		r.announced = true;
		r.edge = seq;
	}
	if (esp_after(r.edge, r.recv_seq))
		ack_out();
	else
		ask();
}

static void data_rcv(struct frame *f)
{
	bool wanted = false;

	if (f->flags & EMPTY) {
		probe_rcv(f->seq);
		return;
	}
	if (esp_before(f->seq, r.recv_seq) || r.here[f->seq % RING]) {
		ack_out();
		return;
	}
	check(f->seq - r.recv_seq < RING, "far ahead");
	r.here[f->seq % RING] = true;
	r.flags[f->seq % RING] = f->flags;
	while (r.here[r.recv_seq % RING]) {
		u8 flags = r.flags[r.recv_seq % RING];

		r.here[r.recv_seq++ % RING] = false;
		if ((flags & TXS) && !(flags & TXF) && !r.announced) {
			r.announced = true;
			r.edge = r.recv_seq - 1 + r.advice;
			wanted = true;
		}
		if ((flags & TXF) && r.announced) {
			r.announced = false;
			r.parked = false;
			r.edge = r.recv_seq;
			wanted = false;
		}
	}
	say("receiver has %u, edge %u%s", r.recv_seq, r.edge,
	    r.announced ? ", announced" : "");
	if (r.announced && (wanted || !esp_after(r.edge, r.recv_seq)))
		ask();
	else
		ack_out();
}

static void made_up(void)
{
	struct frame f = { 0, w.una_seq - 1 - rnd(1000), rnd(65536) };

	if (rnd(2))
		f.seq = w.send_next + 1 + rnd(1000);
	ack_rcv(&f);
}

static void step(void)
{
	u32 op = rnd(100);
	struct frame f;

	if (op < 40) {
		if (take(&to_rcv, &f))
			data_rcv(&f);
	} else if (op < 70) {
		if (take(&to_snd, &f))
			ack_rcv(&f);
	} else if (op < 80) {
		write_some();
	} else if (op < 88) {
		send_timeout();
	} else if (op < 94) {
		if (r.parked)
			release();
	} else if (op < 96) {
		r.advice = rnd(2) ? rnd(33) : 0;
		first_max = max_t(u32, first_max, r.advice);
	} else {
		made_up();
	}
}

static void drain(void)
{
	int idle = 0;

	calm = true;
	while (r.recv_seq != w.send_seq || w.una_seq != w.send_seq) {
		struct frame f;
		u32 before = r.recv_seq, acked = w.una_seq;

		while (take(&to_rcv, &f))
			data_rcv(&f);
		if (r.parked)
			release();
		while (take(&to_snd, &f))
			ack_rcv(&f);
		if (!to_rcv.n)
			send_timeout();
		idle = before == r.recv_seq && acked == w.una_seq ? idle + 1 : 0;
		check(idle < 5, "deadlock: data left and nothing moves");
	}
	check(w.una_seq == w.send_next && !w.in_trans, "state at the end");
}

static void run(void)
{
	u32 isn;

	calm = false;
	to_rcv.n = 0;
	to_snd.n = 0;
	memset(&w, 0, sizeof(w));
	memset(&r, 0, sizeof(r));
	isn = rnd(2) ? -rnd(100) : (rnd(65536) << 16) + rnd(65536);
	w.initial = rnd(4) ? -1 : (int)rnd(20);
	w.burst_length = rnd(4) ? 0 : 1 + rnd(100);
	r.advice = rnd(3) ? rnd(33) : 0;
	w.advice = r.advice;
	esp_window_init(&w, isn);
	r.recv_seq = isn + 1;
	r.edge = r.recv_seq;
	promised = r.recv_seq;
	first_max = max((u32)r.advice, (u32)(w.initial + 1));
	for (int i = 0; i < STEPS && more(); i++)
		step();
	drain();
}

static void report(void)
{
	printf("# %lu packets sent, %lu again, %lu probes, %lu HOLDs\n",
	       sent, resent, probes, held);
}
