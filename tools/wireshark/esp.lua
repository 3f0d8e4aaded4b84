-- SPDX-License-Identifier: GPL-2.0-only
--
-- Wireshark's and tshark's dissector of ESP and EDP (include/uapi/linux/esp_wire.h).
--
--	tshark -X lua_script:esp.lua -r FILE -Y ethesp.rrq
--
-- "esp" is IPsec's; the filters of this protocol begin with "ethesp". The dissector shows
-- the fields of a frame and, from the frames before it, their meaning: packets that are
-- retransmitted, missing or beyond the grant, HOLDs, and the time of round trips. It puts a
-- transmission (TXS to TXF) or a record (to EOR) together, and gives it to the dissector that
-- is registered for its port in the table "ethesp.port", in order. Packets after a missing one
-- wait until that comes, or until it is acknowledged and so will not come.

-- Without bit32, use operators, which Lua 5.2 cannot read.
local bit32 = bit32 or load([[return {
	band = function(a, b) return a & b end,
	bxor = function(a, b) return a ~ b end,
	bnot = function(a) return ~a & 0xffffffff end,
	rshift = function(a, n) return a >> n end,
}]])()

local esp = Proto("ethesp", "Ethernet Streaming Protocol")

esp.prefs.ethertype = Pref.uint("EtherType", 0x88b5, "The module's parameter ethertype")
esp.prefs.checksum = Pref.bool("Verify the checksum", false,
	"Of frames captured where they were sent it is often not filled in yet")
esp.prefs.reassemble = Pref.bool("Reassemble transmissions and records", true,
	"A subdissector gets the whole")

local HLEN = 32
local MOST = 16 * 1024 * 1024	-- most bytes kept of a transmission, or after a gap
local AHEAD_MOST = 65536	-- packets beyond a gap; no grant lets a sender go further
local WAITING_MOST = 4096	-- most packets kept after a gap
local MSS_LEAST = 4		-- a smaller MSS is ignored: a frame would be too many packets

-- Bits of the flags, in the order in which their names are shown.
local FLAGS = {
	{ "syn", "SYN", 0x01 }, { "ack", "ACK", 0x02 }, { "fin", "FIN", 0x04 },
	{ "rst", "RST", 0x08 }, { "txs", "TXS", 0x10 }, { "txf", "TXF", 0x20 },
	{ "eor", "EOR", 0x40 }, { "rrq", "RRQ", 0x80 },
}

local TYPES = { [1] = "SOCK_STREAM", [5] = "SOCK_SEQPACKET" }
local OPTIONS = {
	[0] = "END", [1] = "COOKIE", [2] = "MSS", [3] = "TYPE", [4] = "FEATURES",
	[5] = "BURST", [6] = "ADVICE", [7] = "CRC", [8] = "PART", [9] = "LEFT",
}
-- Length of each option, with the bytes of its type and length.
local OPTION_LEN = {
	[1] = 6, [2] = 4, [3] = 3, [4] = 3, [5] = 6, [6] = 4, [7] = 6, [8] = 6, [9] = 6,
}

local f = {
	version	= ProtoField.uint8("ethesp.version", "Version", base.DEC, nil, 0xf0),
	hlen	= ProtoField.uint8("ethesp.hlen", "Header length", base.UNIT_STRING, { " bytes" }),
	flags	= ProtoField.uint8("ethesp.flags", "Flags", base.HEX),
	grant	= ProtoField.uint16("ethesp.grant", "Grant", base.UNIT_STRING,
				    { " packet", " packets" }),
	busy	= ProtoField.bool("ethesp.busy", "The sender's own link is busy"),
	later	= ProtoField.bool("ethesp.later", "The ACK may come later"),
	sport	= ProtoField.uint16("ethesp.srcport", "Source port"),
	dport	= ProtoField.uint16("ethesp.dstport", "Destination port"),
	port	= ProtoField.uint16("ethesp.port", "Source or destination port"),
	cookie	= ProtoField.uint32("ethesp.cookie", "Cookie", base.HEX),
	seq	= ProtoField.uint32("ethesp.pkt_seq", "Packet number"),
	ack_seq	= ProtoField.uint32("ethesp.ack_seq", "Next expected"),
	ts_val	= ProtoField.uint32("ethesp.ts_val", "Sender's clock", base.UNIT_STRING, { " us" }),
	ts_ecr	= ProtoField.uint32("ethesp.ts_ecr", "Echo of the addressee's", base.UNIT_STRING,
				    { " us" }),
	len	= ProtoField.uint16("ethesp.len", "Payload", base.UNIT_STRING,
				    { " byte", " bytes" }),
	csum	= ProtoField.uint16("ethesp.checksum", "Checksum", base.HEX),
	good	= ProtoField.bool("ethesp.checksum.good", "Checksum is right"),
	opt	= ProtoField.uint8("ethesp.option", "Option", base.DEC, OPTIONS),
	opt_len	= ProtoField.uint8("ethesp.option.len", "Length"),
	opt_raw	= ProtoField.bytes("ethesp.option.value", "Value"),
	peer	= ProtoField.uint32("ethesp.option.cookie", "Cookie of the sender", base.HEX),
	mss	= ProtoField.uint16("ethesp.option.mss", "Largest payload", base.UNIT_STRING,
				    { " bytes" }),
	type	= ProtoField.uint8("ethesp.option.type", "Socket type", base.DEC, TYPES),
	feat	= ProtoField.uint8("ethesp.option.features", "Features", base.HEX),
	burst	= ProtoField.uint16("ethesp.option.burst_length", "burst_length"),
	to_ack	= ProtoField.uint16("ethesp.option.packets_to_ack", "packets_to_ack"),
	advice	= ProtoField.uint16("ethesp.option.advice", "First burst that it was advised"),
	part	= ProtoField.uint16("ethesp.option.part_at", "Offset in the packet",
				    base.UNIT_STRING, { " byte", " bytes" }),
	size	= ProtoField.uint16("ethesp.option.part_size", "Length of the packet",
				    base.UNIT_STRING, { " byte", " bytes" }),
	left	= ProtoField.uint32("ethesp.option.left", "Number after the last packet"),
	first	= ProtoField.uint16("ethesp.option.first", "First burst from this packet on",
				    base.UNIT_STRING, { " packet", " packets" }),
	crc	= ProtoField.uint32("ethesp.crc", "CRC32c", base.HEX),
	crc_ok	= ProtoField.bool("ethesp.crc.good", "CRC32c is right"),
	from	= ProtoField.uint32("ethesp.rrq.from", "First packet that is missing"),
	count	= ProtoField.uint16("ethesp.rrq.count", "Packets"),
	range	= ProtoField.bytes("ethesp.rrq", "Missing"),
	data	= ProtoField.bytes("ethesp.data", "Payload"),
	pad	= ProtoField.bytes("ethesp.padding", "Padding"),
	stream	= ProtoField.uint32("ethesp.stream", "Connection"),
	edge	= ProtoField.uint32("ethesp.edge", "Edge: the first packet that the addressee may not send"),
	rtt	= ProtoField.relative_time("ethesp.analysis.rtt", "Round trip"),
	flight	= ProtoField.uint32("ethesp.analysis.in_flight", "Packets on their way"),
	again	= ProtoField.bool("ethesp.analysis.retransmission", "Sent before"),
	gap	= ProtoField.uint32("ethesp.analysis.missing", "Packets missing before this"),
	beyond	= ProtoField.bool("ethesp.analysis.beyond", "Beyond the permission"),
	hold	= ProtoField.bool("ethesp.analysis.hold", "HOLD: wait for permission"),
	whole	= ProtoField.uint32("ethesp.reassembled", "Reassembled", base.UNIT_STRING,
				    { " byte", " bytes" }),
	within	= ProtoField.framenum("ethesp.reassembled_in", "Reassembled in frame"),
	part	= ProtoField.bool("ethesp.reassembled.part", "A packet of it was not captured"),
}
for _, v in ipairs(FLAGS) do
	f[v[1]] = ProtoField.bool("ethesp.flags." .. v[1], v[2], 8, nil, v[3])
end
esp.fields = f

local bad = ProtoExpert.new("ethesp.malformed", "Malformed", expert.group.MALFORMED,
			    expert.severity.ERROR)
local wrong = ProtoExpert.new("ethesp.checksum.bad", "Checksum is wrong",
			      expert.group.CHECKSUM, expert.severity.ERROR)
local note = ProtoExpert.new("ethesp.note", "Note", expert.group.SEQUENCE,
			     expert.severity.NOTE)
local warn = ProtoExpert.new("ethesp.reset", "Reset", expert.group.SEQUENCE,
			     expert.severity.WARN)
esp.experts = { bad, wrong, note, warn }

local by_port = DissectorTable.new("ethesp.port", "ESP port", ftypes.UINT16, base.DEC, esp)
local fallback = Dissector.get("data")

-- Is a before b? The numbers wrap.
local function before(a, b)
	return bit32.band(a - b, 0x80000000) ~= 0
end

local function add32(a, n)
	return bit32.band(a + n, 0xffffffff)
end

-- Connections seen so far, and the analysis of each frame: Wireshark dissects frames
-- more than once, and in any order after the first time.
local connections, known, n_connections

function esp.init()
	connections, known, n_connections = {}, {}, 0
end

-- Compute the checksum of RFC 1071 over the whole frame.
local function sum(tvb, n)
	local s = 0
	local raw = tvb:raw(0, n)

	for i = 1, n - 1, 2 do
		s = s + raw:byte(i) * 256 + raw:byte(i + 1)
	end
	if n % 2 == 1 then
		s = s + raw:byte(n) * 256
	end
	while s > 0xffff do
		s = bit32.band(s, 0xffff) + bit32.rshift(s, 16)
	end
	return s
end

local function new_direction()
	return { waiting = {}, n_waiting = 0, bytes_waiting = 0, parts = {}, bytes = 0,
		 missing = {}, n_missing = 0 }
end

-- Find the connection of a frame, and its sender's and its receiver's side.
local function find(pinfo, h)
	local a = tostring(pinfo.dl_src) .. "/" .. h.sport
	local b = tostring(pinfo.dl_dst) .. "/" .. h.dport
	local key = a < b and a .. "-" .. b or b .. "-" .. a
	local c = connections[key]

	-- a new connection of the same ports
	if not c or (h.syn and not h.ack and c.sides[a].cookie and
		     c.sides[a].cookie ~= h.peer) then
		c = { number = n_connections, sides = { [a] = new_direction(),
							[b] = new_direction() } }
		n_connections = n_connections + 1
		connections[key] = c
	end
	return c, c.sides[a], c.sides[b]
end

-- Give the collected bytes to the subdissector, in the frame of @r.
local function give(r, me, part)
	local bytes = {}

	for i, p in ipairs(me.parts) do
		bytes[i] = p.bytes
		p.r.within = p.r.len > 0 and r.number
	end
	if me.bytes > 0 then
		r.given[#r.given + 1] = {
			bytes = table.concat(bytes), part = part, record = me.records,
			own = me.parts[1].r == r and me.bytes == r.len,
		}
	end
	me.parts, me.bytes = {}, 0
end

-- Collect the next packet in order.
local function collect(r, me, p)
	me.at = add32(p.seq, 1)
	if me.ended or (p.txs and not me.records) then
		give(r, me, true)
		me.broken = false
	end
	me.ended = p.eor or (p.txf and not me.records)
	if p.bytes then
		me.parts[#me.parts + 1] = p
		me.bytes = me.bytes + #p.bytes
	end
	-- the capture cut it off, or it is too long
	if not p.bytes or me.bytes > MOST then
		me.broken = true
		give(r, me, true)
	elseif me.ended then
		give(r, me, me.broken)
	end
end

-- Keep a packet until those before it are here.
local function keep(me, p)
	if me.waiting[p.seq] then
		return
	end
	if me.n_waiting == 0 or before(me.highest, p.seq) then
		me.highest = p.seq
	end
	me.waiting[p.seq] = p
	me.n_waiting = me.n_waiting + 1
	me.bytes_waiting = me.bytes_waiting + #(p.bytes or "")
end

local function drop(me, p)
	me.waiting[p.seq] = nil
	me.n_waiting = me.n_waiting - 1
	me.bytes_waiting = me.bytes_waiting - #(p.bytes or "")
end

-- Return the first packet that waits.
local function first(me)
	local p = me.waiting[me.at]

	if not p then
		for _, q in pairs(me.waiting) do
			if not p or before(q.seq, p.seq) then
				p = q
			end
		end
	end
	return p
end

-- Collect the packets that are in order now, and those that need not wait any longer:
-- because no frame of the peer was captured, because the missing packet before them was
-- acknowledged, or because they are too many.
local function advance(r, me, peer)
	while me.n_waiting > 0 do
		local gap = not me.waiting[me.at]
		local p

		if gap and peer.clock and not (me.una and before(me.at, me.una)) and
		   me.n_waiting <= WAITING_MOST and me.bytes_waiting <= MOST and
		   add32(me.highest, -me.at) < AHEAD_MOST then
			return
		end
		p = first(me)
		drop(me, p)
		if gap then
			me.broken, me.ended = true, false
			give(r, me, true)
		end
		collect(r, me, p)
	end
end

-- Take the packets of a frame: a GSO packet, which was not on a wire yet, has several.
local function packets(r, me, peer, h, payload)
	for i = 0, h.segs - 1 do
		local p = {
			seq = add32(h.seq, i), r = r, txs = h.txs and i == 0,
			txf = h.txf and i == h.segs - 1, eor = h.eor and i == h.segs - 1,
			bytes = h.segs == 1 and payload or
				payload and payload:sub(i * h.size + 1, (i + 1) * h.size),
		}

		if not me.at then	-- the first packet seen
			me.at, me.broken = p.seq, not h.txs
		end
		if me.at == p.seq then
			if me.waiting[p.seq] then
				drop(me, me.waiting[p.seq])
			end
			collect(r, me, p)
		elseif before(me.at, p.seq) then
			keep(me, p)
		end
	end
end

-- Add a part of a packet to those before it. Return the packet when it is complete, or nil.
local function put_together(me, h, payload)
	local p = me.packet

	if not p or p.seq ~= h.seq or p.length ~= h.whole then
		p = { seq = h.seq, length = h.whole, bytes = "" }
		me.packet = p
	end
	if payload and h.part <= #p.bytes then
		p.bytes = p.bytes .. payload:sub(#p.bytes - h.part + 1)
	end
	return #p.bytes == p.length and p.bytes or nil
end

-- Most missing packets that are remembered, because frames may be forged.
local MISSING_MOST = 65536

local function mark_missing(me, seq, missing)
	if me.missing[seq] ~= missing then
		me.missing[seq] = missing
		me.n_missing = me.n_missing + (missing and 1 or -1)
	end
end

-- Analyse a frame after those before it; @payload is a string, or nil.
local function analyse(pinfo, h, payload)
	local c, me, peer = find(pinfo, h)
	local r = { connection = c.number, number = pinfo.number, len = h.len, given = {} }
	local now = pinfo.rel_ts * 1e6

	if h.peer and h.syn then
		me.cookie = h.peer
	end
	if h.mss and h.mss >= MSS_LEAST then
		me.takes = h.mss
	end
	-- a frame that was not on a wire yet may be a GSO packet
	h.size = math.min(me.takes or 65535, peer.takes or 65535)
	if h.len > h.size and not h.rrq then
		h.segs = math.ceil(h.len / h.size)
	end
	if h.ack then
		if peer.clock then
			local us = bit32.band(peer.clock + math.floor(now - peer.clock_at) - h.ts_ecr,
					      0xffffffff)
			if us < 60e6 then
				r.rtt = us
			end
		end
		-- before the announcement has arrived, a grant advises a first burst
		if peer.announced and before(peer.announced, h.ack_seq) then
			if not peer.edge or before(peer.edge, add32(h.ack_seq, h.grant)) then
				peer.edge = add32(h.ack_seq, h.grant)
			end
			r.edge = peer.edge
		end
		if not peer.una or before(peer.una, h.ack_seq) then
			peer.una = h.ack_seq
		end
		r.hold = h.grant == 0 and peer.announced and not h.syn and not h.rst
	end
	if h.part then
		payload = put_together(me, h, payload)
	end
	if h.numbered and not h.syn and (payload or not h.part) then
		packets(r, me, peer, h, h.fin and "" or payload)
	end
	advance(r, me, peer)
	me.clock, me.clock_at = h.ts_val, now
	if not h.numbered then
		if h.txs and not me.announced then
			me.announced, me.edge = add32(h.seq, -1), nil
		end
		return r
	end
	if h.syn then
		if me.isn ~= h.seq then
			me.isn, me.next, me.announced, me.edge = h.seq, add32(h.seq, 1), nil, nil
			me.at, me.ended, me.records = me.next, true, h.type == 5
			me.waiting, me.n_waiting, me.bytes_waiting = {}, 0, 0
			me.parts, me.bytes = {}, 0
		end
		return r
	end
	if me.next and before(h.seq, me.next) then
		r.again = not me.missing[h.seq]
		for i = 0, h.segs - 1 do
			mark_missing(me, add32(h.seq, i), nil)
		end
		if before(me.next, add32(h.seq, h.segs)) then
			me.next = add32(h.seq, h.segs)
		end
	else
		if me.next and me.next ~= h.seq then
			r.gap = add32(h.seq, -me.next)
			for i = 0, math.min(r.gap, MISSING_MOST - me.n_missing) - 1 do
				mark_missing(me, add32(me.next, i), true)
			end
		end
		me.next = add32(h.seq, h.segs)
	end
	if me.una then
		r.flight = add32(me.next, -me.una)
	end
	-- the length of a first burst is not known here, so it has no edge; a FIN needs no grant
	if h.txs and not me.announced then
		me.announced, me.edge = h.seq, nil
	end
	r.beyond = not r.again and not h.fin and me.edge and before(me.edge, me.next)
	if (h.txf or h.fin) and not r.again then
		me.announced, me.edge = nil, nil
	end
	return r
end

-- Return why the header is malformed, or nil.
local function malformed(tvb, h)
	if h.version ~= 1 then
		return "unknown version"
	elseif h.hlen < HLEN then
		return "header length below 32"
	elseif h.hlen > tvb:reported_len() or h.hlen + h.len > tvb:reported_len() then
		return "frame ends before its header or payload does"
	elseif h.sport == 0 or h.dport == 0 then
		return "port 0"
	elseif h.len > 0 and (h.syn or h.fin or h.rst) then
		return "payload where there can't be any"
	elseif h.len == 0 and (h.txf or h.eor) then
		return "TXF or EOR without payload"
	elseif h.rrq and (h.len == 0 or h.len > 12 or h.len % 4 ~= 0) then
		return "RRQ without one to three ranges"
	end
end

-- CRC32c, reflected, a byte at a time.
local crc_table = {}
for i = 0, 255 do
	local c = i

	for _ = 1, 8 do
		c = bit32.bxor(bit32.rshift(c, 1), bit32.band(c, 1) * 0x82f63b78)
	end
	crc_table[i] = c
end

-- Verify the CRC at @at, over header and payload; its own value and the checksum count as 0.
local function show_crc(tvb, item, h, at)
	local n = h.hlen + h.len
	local crc, raw, good = 0xffffffff, nil, nil

	if n > tvb:captured_len() then
		return
	end
	raw = tvb:raw(0, 30) .. "\0\0" .. tvb:raw(32, at - 32) .. "\0\0\0\0" ..
		(n > at + 4 and tvb:raw(at + 4, n - at - 4) or "")
	for i = 1, n do
		crc = bit32.bxor(bit32.rshift(crc, 8),
				 crc_table[bit32.band(bit32.bxor(crc, raw:byte(i)), 255)])
	end
	good = bit32.bnot(crc) == tvb(at, 4):uint()
	item:add(f.crc_ok, good):set_generated(true)
	if not good then
		item:add_proto_expert_info(wrong, "CRC32c is wrong")
	end
end

local function options(tvb, tree, h)
	local at = HLEN

	while at < h.hlen do
		local kind = tvb(at, 1):uint()
		local n = kind ~= 0 and at + 1 < h.hlen and tvb(at + 1, 1):uint() or 0
		local want = OPTION_LEN[kind]
		local t

		if kind == 0 then
			tree:add(f.opt, tvb(at, 1)):append_text(" (padding)")
			return
		end
		if n < 2 or at + n > h.hlen or (want and n ~= want) then
			tree:add(f.opt, tvb(at, 1)):add_proto_expert_info(bad, "bad length of an option")
			return
		end
		t = tree:add(f.opt, tvb(at, 1))
		t:set_len(n)
		t:add(f.opt_len, tvb(at + 1, 1))
		if kind == 1 then
			h.peer = tvb(at + 2, 4):uint()
			t:add(f.peer, tvb(at + 2, 4))
		elseif kind == 2 then
			h.mss = tvb(at + 2, 2):uint()
			t:add(f.mss, tvb(at + 2, 2))
		elseif kind == 3 then
			h.type = tvb(at + 2, 1):uint()
			t:add(f.type, tvb(at + 2, 1))
		elseif kind == 4 then
			t:add(f.feat, tvb(at + 2, 1))
			if h.syn and not h.ack and bit32.band(tvb(at + 2, 1):uint(), 4) ~= 0 then
				-- the fields of the acknowledgment have the name of an IP address
				t:append_text(h.ack_seq == 0 and " (TCP server " .. tostring(tvb(24, 4):ipv4()) .. ")" or
					" (TCP server of IPv6)")
			end
		elseif kind == 5 then
			t:add(f.burst, tvb(at + 2, 2))
			t:add(f.to_ack, tvb(at + 4, 2))
		elseif kind == 6 then
			t:add(f.advice, tvb(at + 2, 2))
		elseif kind == 7 then
			show_crc(tvb, t:add(f.crc, tvb(at + 2, 4)), h, at + 2)
		elseif kind == 8 then
			h.part = tvb(at + 2, 2):uint()
			h.whole = tvb(at + 4, 2):uint()
			t:add(f.part, tvb(at + 2, 2))
			t:add(f.size, tvb(at + 4, 2))
		elseif kind == 9 then
			-- the low half of a number that is at most 65,535 after the packet's own
			t:add(f.left, tvb(at + 2, 2), add32(h.seq,
				bit32.band(tvb(at + 2, 2):uint() - h.seq, 0xffff)))
			t:add(f.first, tvb(at + 4, 2))
		elseif n > 2 then
			t:add(f.opt_raw, tvb(at + 2, n - 2))
		end
		at = at + n
	end
end

-- Name a frame in one or two words.
local function name(h)
	local said = {}

	if h.flags == 0 then
		return "EDP"
	end
	for _, v in ipairs(FLAGS) do
		if h[v[1]] then
			said[#said + 1] = v[2]
		end
	end
	return table.concat(said, " ")
end

local function header(tvb)
	local h = {
		version	= bit32.rshift(tvb(0, 1):uint(), 4),
		hlen	= bit32.band(tvb(0, 1):uint(), 15) * 4,
		flags	= tvb(1, 1):uint(),
		grant	= bit32.band(tvb(2, 2):uint(), 0x3fff),
		busy	= tvb(2, 1):uint() >= 0x80,
		later	= bit32.btest(tvb(2, 1):uint(), 0x40),
		sport	= tvb(4, 2):uint(),
		dport	= tvb(6, 2):uint(),
		cookie	= tvb(8, 4):uint(),
		seq	= tvb(12, 4):uint(),
		ack_seq	= tvb(16, 4):uint(),
		ts_val	= tvb(20, 4):uint(),
		ts_ecr	= tvb(24, 4):uint(),
		len	= tvb(28, 2):uint(),
		segs	= 1,
	}

	for _, v in ipairs(FLAGS) do
		h[v[1]] = bit32.band(h.flags, v[3]) ~= 0
	end
	h.numbered = h.flags ~= 0 and (h.syn or h.fin or (h.len > 0 and not h.rrq)) and not h.rst
	return h
end

local function show_header(tvb, tree, h)
	local t

	tree:add(f.version, tvb(0, 1))
	tree:add(f.hlen, tvb(0, 1), h.hlen)
	t = tree:add(f.flags, tvb(1, 1))
	t:append_text(" (" .. name(h) .. ")")
	for _, v in ipairs(FLAGS) do
		t:add(f[v[1]], tvb(1, 1))
	end
	tree:add(f.grant, tvb(2, 2), h.grant)
	tree:add(f.busy, tvb(2, 1), h.busy)
	tree:add(f.later, tvb(2, 1), h.later)
	tree:add(f.sport, tvb(4, 2))
	tree:add(f.dport, tvb(6, 2))
	tree:add(f.port, tvb(4, 2)):set_hidden(true)
	tree:add(f.port, tvb(6, 2)):set_hidden(true)
	tree:add(f.cookie, tvb(8, 4))
	tree:add(f.seq, tvb(12, 4))
	tree:add(f.ack_seq, tvb(16, 4))
	tree:add(f.ts_val, tvb(20, 4))
	tree:add(f.ts_ecr, tvb(24, 4))
	tree:add(f.len, tvb(28, 2))
	return tree:add(f.csum, tvb(30, 2))
end

local function show_analysis(tree, pinfo, r)
	local t = tree:add(esp, "Analysis")
	local said = ""

	t:set_generated(true)
	t:add(f.stream, r.connection):set_generated(true)
	if r.rtt then
		t:add(f.rtt, NSTime.new(math.floor(r.rtt / 1e6), r.rtt % 1e6 * 1000)):set_generated(true)
	end
	if r.edge then
		t:add(f.edge, r.edge):set_generated(true)
	end
	if r.flight then
		t:add(f.flight, r.flight):set_generated(true)
	end
	if r.hold then
		t:add(f.hold, true):set_generated(true)
		said = "[HOLD] "
	end
	if r.again then
		t:add(f.again, true):set_generated(true)
		t:add_proto_expert_info(note, "sent before")
		said = said .. "[again] "
	end
	if r.gap then
		t:add(f.gap, r.gap):set_generated(true)
		t:add_proto_expert_info(note, "previous packets not captured")
		said = said .. "[" .. r.gap .. " missing] "
	end
	if r.beyond then
		t:add(f.beyond, true):set_generated(true)
		t:add_proto_expert_info(note, "beyond the permission")
		said = said .. "[beyond the permission] "
	end
	return said
end

local function subdissect(one, pinfo, root, h)
	if by_port:try(h.dport, one, pinfo, root) == 0 and
	   by_port:try(h.sport, one, pinfo, root) == 0 then
		fallback:call(one, pinfo, root)
	end
end

local function show_payload(tvb, pinfo, tree, root, h, r)
	local payload = tvb(h.hlen, math.min(h.len, tvb:captured_len() - h.hlen))
	local one = payload:tvb()

	if h.rrq then
		for at = h.hlen, h.hlen + payload:len() - 4, 4 do
			local from = add32(h.ack_seq, tvb(at, 2):uint())
			local t = tree:add(f.range, tvb(at, 4), "", "Missing:")

			t:append_text(" " .. tvb(at + 2, 2):uint() .. " from " .. from)
			t:add(f.from, tvb(at, 2), from)
			t:add(f.count, tvb(at + 2, 2))
		end
		return
	end
	tree:add(f.data, payload)
	-- show_given() shows reassembled data
	if not r or (not esp.prefs.reassemble and not r.again) then
		subdissect(payload:tvb(), pinfo, root, h)
	end
end

-- Show transmissions and records that are complete with this frame, and parts of those
-- that never will be.
local function show_given(tvb, pinfo, tree, root, h, r)
	if r.within and r.within ~= pinfo.number then
		tree:add(f.within, r.within):set_generated(true)
	end
	for _, v in ipairs(r.given) do
		local one = v.own and tvb(h.hlen, h.len):tvb() or
			ByteArray.new(v.bytes, true):tvb(v.part and "Part" or
				v.record and "Record" or "Transmission")

		if not v.own then
			tree:add(f.whole, #v.bytes):set_generated(true)
		end
		if v.part then
			tree:add(f.part, true):set_generated(true)
		end
		-- part of a record is no message
		if v.part and v.record then
			fallback:call(one, pinfo, root)
		else
			subdissect(one, pinfo, root, h)
		end
	end
end

function esp.dissector(tvb, pinfo, root)
	local h, tree, t, why, r
	local text

	pinfo.cols.protocol = "ESP"
	if tvb:captured_len() < HLEN then
		root:add(esp, tvb()):add_proto_expert_info(bad, "shorter than a header")
		return tvb:captured_len()
	end
	h = header(tvb)
	tree = root:add(esp, tvb(0, math.min(math.max(h.hlen, HLEN), tvb:captured_len())))
	t = show_header(tvb, tree, h)
	text = h.sport .. " > " .. h.dport .. " [" .. name(h) .. "]"
	if h.flags == 0 then
		pinfo.cols.protocol = "EDP"
	else
		text = text .. " Seq=" .. h.seq
	end
	if h.ack then
		text = text .. " Ack=" .. h.ack_seq .. " Grant=" .. h.grant
	end
	text = text .. " Len=" .. h.len
	tree:append_text(", " .. text)
	why = malformed(tvb, h)
	if why then
		tree:add_proto_expert_info(bad, why)
		pinfo.cols.info = text .. " [malformed: " .. why .. "]"
		return tvb:captured_len()
	end
	if h.hlen > tvb:captured_len() then	-- the capture cut it off
		pinfo.cols.info = text
		return tvb:captured_len()
	end
	options(tvb, tree, h)
	if esp.prefs.checksum and h.hlen + h.len <= tvb:captured_len() then
		local good = sum(tvb, h.hlen + h.len) == 0xffff

		t:add(f.good, good):set_generated(true)
		if not good then
			t:add_proto_expert_info(wrong)
		end
	end
	if h.rst then
		tree:add_proto_expert_info(warn, "the connection is gone")
	end
	if h.flags ~= 0 then
		if not known[pinfo.number] then
			known[pinfo.number] = analyse(pinfo, h, h.len > 0 and not h.rrq and
				h.hlen + h.len <= tvb:captured_len() and tvb:raw(h.hlen, h.len) or nil)
		end
		r = known[pinfo.number]
		text = show_analysis(tree, pinfo, r) .. text
	end
	pinfo.cols.info = text
	if h.hlen + h.len < tvb:captured_len() then
		tree:add(f.pad, tvb(h.hlen + h.len))
	end
	if h.len > 0 and tvb:captured_len() > h.hlen then
		show_payload(tvb, pinfo, tree, root, h, r)
	end
	if r and esp.prefs.reassemble then
		show_given(tvb, pinfo, tree, root, h, r)
	end
	return tvb:captured_len()
end

local ethertype = DissectorTable.get("ethertype")
local registered = esp.prefs.ethertype

ethertype:add(registered, esp)

function esp.prefs_changed()
	if esp.prefs.ethertype ~= registered then
		ethertype:remove(registered, esp)
		registered = esp.prefs.ethertype
		ethertype:add(registered, esp)
	end
end
