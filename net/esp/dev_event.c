// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of a device, and the reactions of its sockets.
 */
#include "esp.h"
#include "close.h"
#include "dev.h"
#include "dev_event.h"
#include "link.h"
#include "negotiate.h"
#include "output.h"
#include "timer.h"
#include "write_queue.h"

/*
 * Report to a socket that its device has left, or has another address. A connection ends,
 * because it cannot continue.
 */
static void sock_lost_device(struct sock *sk)
{
	ESP_INC(sock_net(sk), AbortOnDevice);
	if (sk->sk_state == TCP_LISTEN || sk->sk_type == SOCK_DGRAM) {
		WRITE_ONCE(sk->sk_err, ENETDOWN);
		sk_error_report(sk);
		return;
	}
	esp_done(sk, -ENETDOWN);
}

/**
 * esp_packet_max_changed() - Adopt a new size of packets, and cut the write queue anew
 * @sk:	connection; its owner calls
 *
 * Ends the connection if a packet can't be sent any more (rule 9).
 */
void esp_packet_max_changed(struct sock *sk)
{
	sock_owned_by_me(sk);
	esp_update_mss(sk);
	if (!esp_resegment(sk)) {
		ESP_INC(sock_net(sk), AbortOnMTU);
		esp_abort(sk, -EMSGSIZE);
	}
}

/* Tell the peer how large packets the device takes, unless it knows. */
static void sock_tell_mss(struct sock *sk)
{
	if (!((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_SYN_SENT | TCPF_TIME_WAIT)) &&
	    esp_sk(sk)->mss_told != esp_own_mss(esp_sk(sk)->dev))
		esp_send_mss(sk);
}

static void sock_new_mtu(struct sock *sk)
{
	esp_packet_max_changed(sk);
	sock_tell_mss(sk);
}

static bool sock_mac_changed(struct esp_opt *esp)
{
	u8 mac[ETH_ALEN];

	return !esp_dev_mac(esp->dev, mac) &&
	       !ether_addr_equal_unaligned(mac, esp->saddr);
}

/*
 * Tell the peer that the device's address has changed. The RST still leaves with the old one.
 * No answer can arrive there, so send one RST for a peer that has all packets, too.
 */
static void sock_tell_peer(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	if (sk->sk_state == TCP_SYN_SENT || sk->sk_state == TCP_TIME_WAIT)
		return;
	esp_reset_peer(sk);
	if (esp->snd.una_seq != esp->snd.send_next &&
	    !(esp->fin_queued && esp->snd.una_seq == esp->fin_seq))	/* has been sent */
		esp_send_reset(sk, esp->snd.send_next);
}

/**
 * esp_dev_events_run() - process the pending events of a socket's device
 * @sk:	socket; its lock is held
 */
void esp_dev_events_run(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u8 ev = esp->dev_events;

	sock_owned_by_me(sk);
	WRITE_ONCE(esp->dev_events, 0);
	if (ev & ESP_EV_LOST) {
		if (sk->sk_state != TCP_CLOSE || sk->sk_type == SOCK_DGRAM)
			sock_lost_device(sk);
		return;
	}
	if (sk->sk_state == TCP_CLOSE || !esp->peer)
		return;
	if ((ev & ESP_EV_MAC) && sock_mac_changed(esp)) {
		sock_tell_peer(sk);
		sock_lost_device(sk);
		return;
	}
	if (ev & ESP_EV_MTU)
		sock_new_mtu(sk);
	if (!(ev & ESP_EV_UP) || sk->sk_state == TCP_CLOSE)
		return;
	if (esp->deadline[ESP_T_SEND])
		esp_timer_set(esp, ESP_T_SEND, esp_now());
	sock_tell_mss(sk);	/* the MTU may have changed while the device was down */
}

/*
 * Serializes esp_dev_tell(). A walk moves the sockets that it has not reached yet to a list
 * of its own, where a second walk would not find them. Taken inside RTNL, or without RTNL.
 */
static DEFINE_MUTEX(esp_tell_mutex);

/*
 * Report @event to the sockets of a device, one by one, each with a reference. The walk
 * does not wait for a socket's owner, because RTNL may be held. The owner processes the
 * event when it releases the socket (esp_release_cb()). The list may change during the
 * walk. A socket that joins it later sees the device's new state itself.
 */
void esp_dev_tell(struct esp_dev *ed, u8 event)
{
	LIST_HEAD(todo);

	mutex_lock(&esp_tell_mutex);
	spin_lock_bh(&ed->lock);
	list_splice_init(&ed->socks, &todo);
	while (!list_empty(&todo)) {
		struct esp_opt *esp = list_first_entry(&todo, struct esp_opt,
						       dev_node);
		struct sock *sk = &esp->sk;

		list_move_tail(&esp->dev_node, &ed->socks);
		if (!refcount_inc_not_zero(&sk->sk_refcnt))
			continue;
		spin_unlock_bh(&ed->lock);
		local_bh_disable();
		bh_lock_sock(sk);
		if (esp->dev == ed) {
			WRITE_ONCE(esp->dev_events, esp->dev_events | event);
			if (!esp_owned(sk))
				esp_dev_events_run(sk);
		}
		bh_unlock_sock(sk);
		local_bh_enable();
		sock_put(sk);
		spin_lock_bh(&ed->lock);
	}
	spin_unlock_bh(&ed->lock);
	mutex_unlock(&esp_tell_mutex);
}

/**
 * esp_dev_enabled() - report to sockets and ACK queue that a device may be usable again
 * @ed:	device, which came up, or on which ESP was enabled or disabled
 */
void esp_dev_enabled(struct esp_dev *ed)
{
	struct esp_link *link = esp_link_get(ed);

	esp_dev_tell(ed, ESP_EV_UP);
	esp_ack_pump(&link->ackq);
	esp_link_put(link);
}

/* Serializes esp_dev_policy(), so that the later one of two concurrent changes stays. */
static DEFINE_MUTEX(policy_mutex);

/**
 * esp_dev_policy() - apply a namespace's policy to the ACK queues of its devices
 * @net:	namespace, whose sysctls have changed
 */
void esp_dev_policy(struct net *net)
{
	struct esp_policy policy;
	struct net_device *dev;

	mutex_lock(&policy_mutex);
	esp_policy_get(net, &policy);
	rcu_read_lock();
	for_each_netdev_rcu(net, dev) {
		struct esp_dev *ed = esp_dev_rcu(dev);
		struct esp_link *link = NULL;

		if (!ed)
			continue;
		spin_lock_bh(&ed->lock);	/* dev_find_link() writes both */
		if (ed->own_link)
			link = ed->link;
		spin_unlock_bh(&ed->lock);
		if (link)
			esp_ackq_policy(&link->ackq, &policy);
	}
	rcu_read_unlock();
	mutex_unlock(&policy_mutex);
}
