/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of a network namespace, in /proc/net/esp/stat by these names. */
#ifndef _ESP_MIB_H
#define _ESP_MIB_H

#include <net/snmp.h>

#define ESP_MIBS(X) \
	X(InFrames)		/* frames received on devices that carry ESP, as on a cable */ \
	X(OutFrames)		/* frames handed to a device, likewise */ \
	X(InGsoFrames)		/* frames received that stand for several: super-packets */ \
	X(OutGsoFrames)		/* and handed to a device */ \
	X(OutDiscards)		/* frames that the device or its queue refused */ \
	X(InDevDisabled)	/* frames on a device that isn't enabled for ESP */ \
	X(InShort)		/* malformed: ends before its header or payload */ \
	X(InVersion)		/* malformed: unknown version */ \
	X(InHeaderLength)	/* malformed: header length */ \
	X(InFlags)		/* malformed: flags that contradict each other, or the payload */ \
	X(InOption)		/* malformed: options */ \
	X(InPort)		/* malformed: port 0 */ \
	X(InRange)		/* malformed: ranges of an RRQ */ \
	X(InBadGso)		/* malformed: a super-packet that isn't one of ESP's */ \
	X(InChecksum)		/* malformed: checksum */ \
	X(InCRC)		/* malformed: CRC32c, or none on a connection that has it */ \
	X(InGroupSource)	/* malformed: sent by or to a group address */ \
	X(InNoSocket)		/* no socket for the frame */ \
	X(InCookie)		/* frames with the wrong cookie */ \
	X(InAckInvalid)		/* frames that acknowledge what was never sent */ \
	X(InBeyondWindow)	/* data too far ahead */ \
	X(InAfterFin)		/* data behind a FIN */ \
	X(InBacklogDrop)	/* frames for a busy socket whose backlog is full */ \
	X(InMemDrop)		/* data that came without permission and found no memory */ \
	X(InDuplicate)		/* data packets that were here already */ \
	X(InOutOfOrder)		/* data packets kept out of order */ \
	X(InResets)		/* RST accepted */ \
	X(InResetsIgnored)	/* RST with the wrong cookie or number */ \
	X(InData)		/* data packets queued in order */ \
	X(InEmpty)		/* empty packets received, RRQs too */ \
	X(OutData)		/* data packets sent for the first time */ \
	X(OutEmpty)		/* empty packets sent, RRQs not */ \
	X(OutRetrans)		/* data packets sent again */ \
	X(OutResets)		/* RST sent */ \
	X(OutAllocFail)		/* frames not sent, connections not made for want of memory */ \
	X(OutRRQ)		/* retransmission requests sent */ \
	X(InRRQ)		/* retransmission requests received */ \
	X(RRQIgnored)		/* packets asked for less than a round trip after sending */ \
	X(Timeouts)		/* expirations of the retransmission timer */ \
	X(Probes)		/* probes of a sender that waits for permission */ \
	X(KeepaliveProbes)	/* probes of an idle connection */ \
	X(AbortOnTimeout)	/* connections ended with ETIMEDOUT, or by fin_timeout_ms */ \
	X(AbortOnData)		/* connections reset because data came after close */ \
	X(AbortOnMTU)		/* connections ended because the MTU shrank */ \
	X(AbortOnDevice)	/* sockets whose device left or changed */ \
	X(GrantFast)		/* permissions given past the ACK queue */ \
	X(GrantQueued)		/* permissions parked in the ACK queue; not expired ones */ \
	X(GrantReleased)		/* ACKs with permission from the ACK queue */ \
	X(HoldsSent)		/* HOLDs sent */ \
	X(HoldsReceived)	/* HOLDs received */ \
	X(AckDelayed)		/* ACKs sent because nothing came to carry them */ \
	X(Expiries)		/* permissions that expired (RRQ timer) */ \
	X(ExpiryAbandoned)	/* transmissions given up after too many expiries */ \
	X(MemPressure)		/* permissions refused for want of memory */ \
	X(AdviceEmpty)		/* transmissions announced by an empty TXS */ \
	X(AdviceCut)		/* first bursts shortened */ \
	X(ActiveOpens)		/* connect() started */ \
	X(PassiveOpens)		/* connections accepted from a listener */ \
	X(SimultaneousOpens)	/* connections opened from both ends at once */ \
	X(AttemptFails)		/* connect() failed */ \
	X(SynRetrans)		/* SYN sent again */ \
	X(ListenOverflows)	/* SYN or echo dropped: backlog full */ \
	X(CookieInvalid)	/* frame for a listener, no SYN, without a valid cookie of ours */ \
	X(TypeMismatch)		/* stream met seqpacket */ \
	X(DgramIn)		/* datagrams received */ \
	X(DgramOut)		/* datagrams sent */ \
	X(DgramMemDrop)		/* datagrams dropped: receive buffer full */

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
