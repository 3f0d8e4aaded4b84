/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of a network namespace. /proc/net/esp/stat shows them by these names. */
#ifndef _ESP_MIB_H
#define _ESP_MIB_H

#include <net/snmp.h>

#define ESP_MIBS(X) \
	X(InFrames)		/* packets received on enabled devices, each of a GSO packet */ \
	X(OutFrames)		/* packets handed to a device, each of a GSO packet */ \
	X(InGsoFrames)		/* GSO packets received */ \
	X(OutGsoFrames)		/* GSO packets handed to a device */ \
	X(OutDiscards)		/* frames that the device or its queue refused */ \
	X(InDevDisabled)	/* frames received on a device that is not enabled for ESP */ \
	X(InShort)		/* malformed: the frame ends before its header or payload does */ \
	X(InVersion)		/* malformed: unknown version */ \
	X(InHeaderLength)	/* malformed: header length below the minimum */ \
	X(InFlags)		/* malformed: flags contradict each other, or the payload */ \
	X(InOption)		/* malformed: invalid option */ \
	X(InPort)		/* malformed: port 0 */ \
	X(InRange)		/* malformed: invalid ranges in an RRQ */ \
	X(InBadGso)		/* malformed: a GSO packet that is not one of ESP's */ \
	X(InChecksum)		/* malformed: wrong checksum */ \
	X(InCRC)		/* malformed: wrong CRC32c, or none although agreed on */ \
	X(InGroupSource)	/* malformed: sent from or to a group address */ \
	X(InNoSocket)		/* frames for which there is no socket */ \
	X(InCookie)		/* frames with the wrong cookie */ \
	X(InAckInvalid)		/* frames that acknowledge packets that were never sent */ \
	X(InBeyondWindow)	/* data packets beyond the window */ \
	X(InAfterFin)		/* data packets after a FIN */ \
	X(InBacklogDrop)	/* frames for a busy socket whose backlog is full */ \
	X(InMemDrop)		/* data without a grant, dropped because memory was short */ \
	X(InDuplicate)		/* data packets that had been received before */ \
	X(InOutOfOrder)		/* data packets received out of order and kept */ \
	X(InResets)		/* RSTs accepted */ \
	X(InResetsIgnored)	/* RSTs with the wrong cookie or number */ \
	X(InParts)		/* frames with a part of a packet that were of use */ \
	X(InPartDrop)		/* frames with a part, dropped because others were missing */ \
	X(InData)		/* data packets queued in order */ \
	X(InEmpty)		/* empty packets received, including RRQs */ \
	X(OutData)		/* data packets sent for the first time */ \
	X(OutEmpty)		/* empty packets sent, without RRQs */ \
	X(OutRetrans)		/* data packets retransmitted */ \
	X(OutParts)		/* frames with a part of a packet sent */ \
	X(OutResets)		/* RSTs sent */ \
	X(OutAllocFail)		/* frames or connections not made because memory was short */ \
	X(OutRRQ)		/* retransmission requests sent */ \
	X(InRRQ)		/* retransmission requests received */ \
	X(RRQIgnored)		/* requested packets that were sent less than a round trip ago */ \
	X(RRQLimited)		/* RRQs cut short: what was acknowledged does not pay for them */ \
	X(WqueueTooBig)		/* buffers not split, because the write queue is too large */ \
	X(Timeouts)		/* expirations of the retransmission timer */ \
	X(Probes)		/* probes of a sender that waits for a grant */ \
	X(KeepaliveProbes)	/* probes of an idle connection */ \
	X(AbortOnTimeout)	/* connections ended with ETIMEDOUT, or by fin_timeout_ms */ \
	X(AbortOnData)		/* connections reset because data came after close */ \
	X(AbortOnMemory)	/* closed connections reset: too many, or too much memory */ \
	X(TimeWaitOverflow)	/* FIN_WAIT2, TIME_WAIT cut short: too many closed sockets */ \
	X(AbortOnMTU)		/* connections ended because the MTU shrank */ \
	X(AbortOnDevice)	/* sockets whose device left or changed its address */ \
	X(GrantFast)		/* grants given at once, past the ACK queue */ \
	X(GrantQueued)		/* grants put into the ACK queue, except by an expiry */ \
	X(GrantReleased)	/* ACKs with a grant from the ACK queue */ \
	X(HoldsSent)		/* HOLDs sent */ \
	X(HoldsReceived)	/* HOLDs received */ \
	X(AckDelayed)		/* ACKs sent alone because no data came to carry them */ \
	X(Expiries)		/* grants that expired (RRQ timer) */ \
	X(ExpiryAbandoned)	/* transmissions abandoned after too many expiries */ \
	X(MemPressure)		/* grants refused because memory was short */ \
	X(AdviceEmpty)		/* transmissions announced by an empty TXS */ \
	X(AdviceCut)		/* first bursts shortened */ \
	X(ActiveOpens)		/* connect() started */ \
	X(PassiveOpens)		/* connections accepted from a listener */ \
	X(SimultaneousOpens)	/* SYNs that crossed one of ours */ \
	X(AttemptFails)		/* connect() failed */ \
	X(SynRetrans)		/* retransmissions of a SYN */ \
	X(ListenOverflows)	/* SYNs or echoes dropped because the backlog was full */ \
	X(CookieUsed)		/* an echo whose cookie has made a connection before */ \
	X(CookieInvalid)	/* no SYN, and without a valid cookie of the listener's */ \
	X(TypeMismatch)		/* a stream socket met a seqpacket socket */ \
	X(TcpMismatch)		/* a client of a TCP server met a socket that is none */ \
	X(DgramIn)		/* datagrams received */ \
	X(DgramOut)		/* datagrams sent */ \
	X(DgramMemDrop)		/* datagrams dropped because the receive buffer was full */

enum esp_mib_item {
	ESP_MIB_UNUSED,
#define ESP_MIB_ENUM(name)	ESP_MIB_##name,
	ESP_MIBS(ESP_MIB_ENUM)
#undef ESP_MIB_ENUM
	ESP_MIB_MAX,
};

struct esp_mib {
	unsigned long	mibs[ESP_MIB_MAX];
};

#endif /* _ESP_MIB_H */
