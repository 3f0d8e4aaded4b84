// SPDX-License-Identifier: GPL-2.0-only
/*
 * Values that both ends agree on in the handshake: the size of packets, the cap of a burst,
 * and the number of packets after which an ACK is due.
 */
#include "esp.h"
#include "dev.h"
#include "negotiate.h"

/* Return the largest payload that a header of @hlen bytes leaves room for on the path. */
static u32 path_mss(struct esp_opt *esp, u32 hlen)
{
	int mtu = max(esp_dev_mtu(esp->dev), ESP_MTU_MIN);
	u32 mss;

	if (esp->path_small)
		mtu = min(mtu, ETH_DATA_LEN);
	mss = mtu - hlen;
	if (esp->peer_mss)	/* it assumes a header without options */
		mss = min(mss, esp->peer_mss - (hlen - ESP_HLEN));
	return mss;
}

/**
 * esp_packet_max() - Compute the largest payload of a packet that this end's device and the
 * peer's take
 * @sk:	connection
 *
 * Return: bytes; the user may have asked for smaller packets: esp_update_mss()
 */
u32 esp_packet_max(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	return path_mss(esp, esp_data_hlen(esp));
}

/**
 * esp_update_mss() - Compute the payload of a full packet from all its limits
 * @sk:	socket with a device
 */
void esp_update_mss(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	u32 mss = path_mss(esp, esp->handshake_unconfirmed ? ESP_HLEN_MAX : esp_data_hlen(esp));

	if (esp->user_mss)
		mss = min(mss, esp->user_mss);
	WRITE_ONCE(esp->mss, mss);
}

/* Return the payload of a full packet that the device takes, with a header without options. */
u16 esp_own_mss(struct esp_dev *ed)
{
	return max(esp_dev_mtu(ed), ESP_MTU_MIN) - ESP_HLEN;
}

/* Return the cap of a burst that this end wants, packets; 0: none. */
u16 esp_own_burst(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);
	int user = READ_ONCE(esp->user_burst);

	return user >= 0 ? user : READ_ONCE(esp->ns->conf.esp_burst_length);
}

/**
 * esp_set_burst() - Set the cap of a burst to the smaller one of this end's and the agreed one
 * @sk:	socket; its owner calls
 *
 * A connection never has a larger cap than the agreed one, because the peer relies on that.
 */
void esp_set_burst(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	sock_owned_by_me(sk);
	esp->snd.burst_length = min_not_zero(esp_own_burst(sk), esp->agreed_burst);
}

/**
 * esp_packets_to_ack() - Get the number of packets after which an ACK is due
 * @sk:	socket
 *
 * Return: the option's value, or the sysctl's
 */
u32 esp_packets_to_ack(struct sock *sk)
{
	struct esp_opt *esp = esp_sk(sk);

	int user = READ_ONCE(esp->user_to_ack);

	return user ? user : READ_ONCE(esp->ns->conf.esp_packets_to_ack);
}

/**
 * esp_ack_each() - Get the number of packets after which the sender needs an ACK
 * @sk:	socket
 *
 * A sender stops at the cap of a burst (ESP_BURST_LENGTH). It does not request an ACK there,
 * unless it has lowered the cap since the handshake.
 *
 * Return: esp_packets_to_ack(), or the agreed cap if that is smaller
 */
u32 esp_ack_each(struct sock *sk)
{
	return min_not_zero((u32)esp_sk(sk)->agreed_burst, esp_packets_to_ack(sk));
}

/**
 * esp_agree() - Find the features that a connection has
 * @own:	ESP_FEATURE_* of this end
 * @peers:	those in the peer's SYN
 *
 * Return: CRC32C if one end wants it; the others if both have them
 */
u8 esp_agree(u8 own, u8 peers)
{
	return ((own | peers) & ESP_FEATURE_CRC32C) |
	       (own & peers & ESP_FEATURES_KNOWN & ~ESP_FEATURE_CRC32C);
}

/**
 * esp_hello() - Fill in the options that the handshake's frames carry
 * @sk:	socket
 * @f:	frame to be completed
 */
void esp_hello(struct sock *sk, struct esp_frame *f)
{
	struct esp_opt *esp = esp_sk(sk);

	f->opts = ESP_HAS_HELLO | ESP_HAS(ESP_OPT_FEATURES) |
		  ESP_HAS(ESP_OPT_BURST);
	f->peer_cookie = esp->cookie;
	f->mss = esp_own_mss(esp->dev);
	if (esp->path_small)
		f->mss = min_t(u16, f->mss, ETH_DATA_LEN - ESP_HLEN);
	f->type = sk->sk_type;
	f->burst = esp_own_burst(sk);
	f->to_ack = esp_packets_to_ack(sk);
	/* one end's wish is enough for a CRC; the end that answers a SYN knows both */
	f->features = ESP_FEATURES_KNOWN;
	if (!esp->tcp_name)
		f->features &= ~ESP_FEATURE_TCP;
	if (!esp->user_crc && !esp->crc)
		f->features &= ~ESP_FEATURE_CRC32C;
	if (READ_ONCE(esp->handshake_unconfirmed)) {
		f->opts |= ESP_HAS(ESP_OPT_ADVICE);
		f->advice = esp->syn_advice;
		/* the CRC takes their room and replaces them: esp_listen_cookie() */
		if (esp->crc)
			f->opts &= ~(ESP_HAS(ESP_OPT_TYPE) | ESP_HAS(ESP_OPT_FEATURES));
	}
}
