// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender's side of the peer's frames: acknowledgments, grants, round trips, and
 * retransmission requests.
 */
#include "esp.h"
#include "close.h"
#include "dev.h"
#include "dev_event.h"
#include "dev_queue.h"
#include "first_burst.h"
#include "link.h"
#include "rcv_ack.h"
#include "sock.h"
#include "timer.h"
#include "write_queue.h"
#include "trace.h"

#define ESP_NO_WIRE_US	50	/* longest round trip where there is no wire, microseconds */

/* Change the state after our FIN has been acknowledged. */
static void fin_acked(struct sock *sk)
{
	switch (sk->sk_state) {
	case TCP_FIN_WAIT1:
		esp_set_state(sk, TCP_FIN_WAIT2);
		esp_start_orphan_timer(sk);
		sk->sk_state_change(sk);
		break;
	case TCP_CLOSING:
		esp_time_wait(sk);
		sk->sk_state_change(sk);
		break;
	case TCP_LAST_ACK:
		esp_done(sk, 0);
		break;
	}
}

/* Let the round trips of a round adjust the receiver's budget, and begin the next round. */
static void ack_round_over(struct sock *sk, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);

	esp->min_rtt = esp_peer_rtt(sk, esp->round.least, now);
	if (esp->link && esp_ackq_rtt(&esp->link->ackq, &esp->grant, esp->min_rtt,
				      esp->round.most, 1000 * now))
		esp_ack_pump(&esp->link->ackq);
	esp_rtt_round_begin(&esp->round, now);
}

/* Take a round trip, for the timers and for the budget that the receiver grants from. */
static void ack_take_rtt(struct sock *sk, struct esp_frame *f, u64 now)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 rtt = (u32)now + esp->ts_off - f->ts_ecr;

	if (rtt >= ESP_RTT_MAX_US)
		return;
	esp_rtt_sample(&esp->rtt, rtt);
	if (esp_rtt_round_add(&esp->round, rtt, esp_rtt_smooth(&esp->rtt), now))
		ack_round_over(sk, now);
}

/*
 * Least age of a packet, microseconds, at which its absence from this frame's ack_seq
 * proves a loss: the round trip that this very frame took.
 */
static u32 ack_proof_time(struct esp_opt *esp, struct esp_frame *f, u32 now)
{
	u32 rtt = now + esp->ts_off - f->ts_ecr;

	return rtt < ESP_RTT_MAX_US ? rtt : esp_rtt_smooth(&esp->rtt);
}

/* Find the next buffer that has been sent; NULL: none. */
static struct sk_buff *sent_next_buffer(struct sock *sk, struct sk_buff *skb)
{
	if (skb_queue_is_last(&sk->sk_write_queue, skb))
		return NULL;
	skb = skb_queue_next(&sk->sk_write_queue, skb);
	return skb == sk->sk_send_head ? NULL : skb;
}

/* Retransmit after a timeout: from the front, a few packets for each ACK. */
static void ack_recover(struct sock *sk, struct esp_frame *f, u32 now)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 proof = ack_proof_time(esp, f, now), n = 4;
	u32 from = esp->snd.una_seq;
	struct sk_buff *skb;

	for (skb = skb_peek(&sk->sk_write_queue); skb;
	     skb = sent_next_buffer(sk, skb)) {
		u32 end = esp_tx_end(skb), to;

		if (!n || !esp_before(from, esp->rto_high))
			break;
		if (now - ESP_TX(skb)->sent_us < proof)
			break;
		/* no buffer goes beyond rto_high: what was sent after the timeout begins there */
		to = esp_before(from + n, end) ? from + n : end;
		skb = esp_retransmit(sk, skb, from, to);
		/* one that leaves in parts leaves alone; the next one follows its ACK */
		if (!skb || esp_tx_end(skb) != to)
			break;
		n -= to - from;
		from = to;
	}
}

/* Count packets that the peer has got. */
static void ack_count(struct esp_opt *esp, u32 packets)
{
	u32 n = READ_ONCE(esp->peer->lossless);

	/* a loss that another socket notes now must stay */
	if (n < ESP_LOSSLESS)
		cmpxchg(&esp->peer->lossless, n, n + packets);
}

/* Take the acknowledgment and the grant of a frame. */
static void ack_take(struct sock *sk, struct esp_frame *f, u64 now, bool late)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 una = esp->snd.una_seq;
	bool held = esp->snd.on_hold;
	unsigned int res;

	/* never ESP_ACK_INVALID: esp_ack_valid() */
	res = late && f->ack_seq == esp->snd.una_seq ? ESP_ACK_STALE :
	      esp_window_ack(&esp->snd, f->ack_seq, f->grant);
	ack_take_rtt(sk, f, now);
	esp->progress_us = now;
	WRITE_ONCE(esp->probes, 0);
	esp->keep_probes = 0;
	esp->syn_probes = 0;
	if (res & ESP_ACK_STALE)
		return;
	if (res & ESP_ACK_HOLD) {
		esp->stats.holds_rx++;
		ESP_INC_BH(esp->ns, HoldsReceived);
	}
	if (res & ESP_ACK_OPENED) {
		/*
		 * A grant up to the old end does not mean that the new one has come to the peer.
		 * One packet more means nothing, either: a peer grants it in any case
		 * (esp_grant_want()).
		 */
		if (esp_after(esp->snd.edge, esp->told_before + 1) ||
		    !esp_before(esp->snd.edge, esp->told_end))
			esp->told_growth = 0;
		if (esp->devq)
			esp_devq_permitted(sk);
	}
	if (res & ESP_ACK_PROGRESS) {
		esp->opened_at = 0;
		WRITE_ONCE(esp->retransmits, 0);
		ack_count(esp, esp->snd.una_seq - una);
		esp_clean_write_queue(sk);
		if (sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags))
			sk->sk_write_space(sk);
		if (esp->orphan)
			esp_start_orphan_timer(sk);
		if (esp->snd.recovering) {
			if (esp_before(esp->snd.una_seq, esp->rto_high))
				ack_recover(sk, f, (u32)now);
			else
				esp->snd.recovering = 0;
		}
	}
	if (res & (ESP_ACK_PROGRESS | ESP_ACK_OPENED)) {
		esp->waiting_since = now;
		esp->probe_tries = 0;
		esp_arm_send(sk, now);
	}
	if (held && !esp->snd.on_hold && esp->retransmits &&
	    esp->snd.una_seq != esp->snd.send_next) {
		/* packets that the receiver had no memory for find some now */
		WRITE_ONCE(esp->retransmits, 0);
		esp_timer_set(esp, ESP_T_SEND, now);
	}
}

/*
 * Renew what the peer's RRQs may cost. A buffer of the write queue that is passed costs 1, a
 * packet that is retransmitted ESP_RRQ_STEPS. Whatever the peer requests, and whatever round trip
 * it claims, each packet that it acknowledges pays for two packets more. One RRQ costs at most
 * twice what is outstanding, or ESP_RRQ_CREDIT. Without credit the retransmission timer goes on.
 */
static void rrq_credit(struct esp_opt *esp)
{
	u64 most = 2ull * ESP_RRQ_STEPS * (esp->snd.send_next - esp->snd.una_seq);
	u64 earned = 2ull * ESP_RRQ_STEPS * (esp->snd.una_seq - esp->rrq_una);

	esp->rrq_una = esp->snd.una_seq;
	most = max_t(u64, most, ESP_RRQ_CREDIT);
	esp->rrq_credit = min(esp->rrq_credit + earned, most);
}

/*
 * Was the oldest packet sent longer ago than the retransmission timeout was before it backed
 * off? Then an RRQ may have it without credit: when a cable is back, it need not wait for a
 * timeout that has backed off.
 */
static bool rrq_first_is_old(struct esp_opt *esp, struct sk_buff *first, u32 now)
{
	const struct esp_conf *conf = &esp->ns->conf;

	return now - ESP_TX(first)->sent_us >=
	       esp_rtt_timeout(&esp->rtt, READ_ONCE(conf->ack_delay_us),
			       READ_ONCE(conf->rto_min_us), 1000 * READ_ONCE(conf->rto_max_ms));
}

/* Pay for an RRQ. Returns how many of @n things that cost @each the credit allows. */
static u32 rrq_pay(struct sock *sk, u32 n, u32 each)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 paid = min(n, esp->rrq_credit / each);

	esp->rrq_credit -= paid * each;
	if (paid < n)
		ESP_INC_BH(esp->ns, RRQLimited);
	return paid;
}

/* Retransmit the packets that an RRQ names, unless they are on their way (rule 19). */
static noinline_for_stack void rrq_rcv(struct sock *sk, struct sk_buff *skb, u64 now)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct esp_opt *esp = esp_sk(sk);
	u32 proof = ack_proof_time(esp, f, (u32)now);
	struct esp_wire_range r[ESP_RRQ_RANGES];
	unsigned int i, n = f->len / sizeof(r[0]);
	struct sk_buff *p;

	esp->stats.rrq_rx++;
	ESP_INC_BH(esp->ns, InRRQ);
	trace_esp_rrq_in(sk, f->ack_seq, n);
	if (skb_copy_bits(skb, f->hlen, r, f->len))
		return;
	if (esp->snd.una_seq == esp->snd.send_next)
		return;
	rrq_credit(esp);
	p = skb_peek(&sk->sk_write_queue);
	if (p && esp->rrq_credit <= ESP_RRQ_STEPS && !r[0].offset &&
	    f->ack_seq == esp->snd.una_seq && rrq_first_is_old(esp, p, (u32)now)) {
		esp_retransmit(sk, p, esp->snd.una_seq, esp->snd.una_seq + 1);
		return;
	}
	for (i = 0; i < n; i++) {
		u32 from = f->ack_seq + ntohs(r[i].offset);
		u32 to = from + ntohs(r[i].count);

		if (esp_before(from, esp->snd.una_seq))
			from = esp->snd.una_seq;
		for (; p; p = sent_next_buffer(sk, p)) {
			u32 end = esp_tx_end(p), paid;

			if (!esp_before(ESP_TX(p)->seq, to))
				break;
			if (!rrq_pay(sk, 1, 1))
				return;
			if (!esp_before(from, end))
				continue;
			if (esp_before(from, ESP_TX(p)->seq))
				from = ESP_TX(p)->seq;
			if (esp_after(end, to))
				end = to;
			if (!esp_before(from, end))
				break;
			if ((u32)now - ESP_TX(p)->sent_us < proof || esp_devq_holds(sk, p)) {
				ESP_ADD_BH(esp->ns, RRQIgnored, end - from);
				if (end == to)	/* the next range may be in this buffer */
					break;
				continue;
			}
			if (unlikely(esp_leaves_in_parts(sk, p))) {
				if (from == esp->snd.una_seq && rrq_pay(sk, 1, ESP_RRQ_STEPS))
					esp_retransmit(sk, p, from, from + 1);
				return;
			}
			paid = rrq_pay(sk, end - from, ESP_RRQ_STEPS);
			if (paid)
				p = esp_retransmit(sk, p, from, from + paid);
			if (!p)
				esp->rrq_credit += paid * ESP_RRQ_STEPS;
			if (!p || paid < end - from)
				return;
		}
	}
}

/*
 * Does a writer send the next packets, so that this context need not? On the same host,
 * an ACK is processed on the reader's processor, which has to copy. A writer that waited
 * for queue space and has been woken (SOCK_NOSPACE is off) has another processor, and
 * sends: send_wait_memory(). A writer may get no processor, for example in a throttled
 * control group. Then the timer sends a probe; the reply brings no progress, so that
 * @probe_tries is not 0 here. A device that takes GSO packets may stand before a wire, as
 * macvlan does; the round trip tells.
 */
static bool ack_writer_sends(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	return esp->waits_for_queue && !esp->probe_tries && READ_ONCE(esp->dev->takes_gso) &&
	       esp->min_rtt && esp->min_rtt <= ESP_NO_WIRE_US &&
	       !(sk->sk_shutdown & SEND_SHUTDOWN) && !esp_owned(sk) &&
	       sk->sk_socket && !test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/**
 * esp_ack_rcv() - Take a frame's ACK, grant, and RRQ
 * @sk:		connection; its lock is held
 * @skb:	frame; esp_ack_valid()
 * @now:	microseconds
 * @late:	a frame that was sent later is here already: esp_overtaken()
 *
 * Packets that may be sent now are sent.
 */
void esp_ack_rcv(struct sock *sk, struct sk_buff *skb, u64 now, bool late)
{
	struct esp_frame *f = &ESP_RX(skb)->f;
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	ack_take(sk, f, now, late);
	if (f->flags & ESP_RRQ)
		rrq_rcv(sk, skb, now);
	if (sk->sk_send_head && !ack_writer_sends(sk))
		esp_push_frames(sk);
	if (esp->snd.una_seq != esp->snd.send_next)
		esp_ask_for_ack(sk);
	if (esp->fin_queued && esp_after(esp->snd.una_seq, esp->fin_seq))
		fin_acked(sk);
}

/**
 * esp_mss_rcv() - Take the size of packets that the peer's device takes
 * @sk:		connection; its lock is held
 * @mss:	payload of ESP_OPT_MSS, bytes
 *
 * Rule 9: only a smaller size than the known one counts. A repeated echo of the handshake carries
 * the old one, and each change has the write queue cut anew, which a peer must not cause without
 * end. Ends the connection if it can't send smaller packets.
 */
void esp_mss_rcv(struct sock *sk, u16 mss)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	mss = max_t(u16, mss, ESP_MSS_MIN);
	if (mss >= esp->peer_mss)
		return;
	esp->peer_mss = mss;
	esp_packet_max_changed(sk);
}
