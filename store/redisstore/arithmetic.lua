-- The arithmetic of package limit, on the server, to the unit.
--
-- Whole numbers beyond 2^53 are not exact in Lua, so a number is a pair:
-- hi * 1e9 + lo, with 0 <= lo < 1e9. A time is its seconds and nanoseconds. Who
-- asks has multiplied and divided by a limit's rate: here costs are added,
-- subtracted and compared. What is rare is not done here at all: the answer is
-- UNREADY, and who asked makes the account ready in Go.
--
-- A call runs all of this text anew, and making a function costs more than many a
-- step. So takes from buckets are one straight line below, and all else is in
-- rest(), which is run if it is needed. Names in capitals are constants, which
-- script.go puts in place.

const BILLION 1000000000

-- An account, while a call has it. What is a number takes two places.
const LIVE 1      -- or nothing is in use
const DIRTY 2     -- it must be written
const RAW 3       -- its bytes as they are kept
const KEY 4
const RING 5      -- the key of its log
const COUNTERS 6
const LOG 7       -- or false
const FULL 8
const SEEN 10
const EPOCH 12
const REVISION 13
const HOW_MANY 14 -- counters, as it was read
const LOGGED 15   -- whether it had a log
const LEASED 16   -- how many leases it had
const HEAD_END 17
const LEASES 18   -- or nil: see lease
const HEAD '<dI4dI4c8dBBB'      -- of its bytes: from FULL to LEASED
const WRITTEN '<BdI4dI4c8dBBB'  -- and VERSION before it
const HEAD_BYTES 44
const VERSION 1

-- A counter of it: which limit's, its state as package limit has it, refunds.
const LIMIT 1
const SHAPE 2
const AT 3
const A 5
const B 7
const REFUNDED 9
const REFUNDED_PARTS 11
const CHANGES 13
const BEYOND 14
const COUNTER_END 16
const COUNTER '<Bc0Bc0dI4dI4dI4dI4dI4ddI4'

-- What is asked for, as Go writes it. A limit begins with its kind, name and shape.
const TAKE 1
const PEEK 2
const LEASE 3
const END 4
const SETTLE 5
const READ 6
const REPLACE 7
const BUCKET 1
const ALIGNED 2
const ANCHORED 3
const CALENDAR 4
const SLIDING 5
const LOGGING 6
const CHARGE '<BBdI4B' -- its key, its log's or 0, n, how many limits

-- How the answer begins.
const DENIED '\0'
const ALLOWED '\1'
const UNREADY '\2'
const FAR '\3'

const NO_EPOCH '\0\0\0\0\0\0\0\0'
const MOST_COUNTERS 250 -- beyond which those that are full again make room

local unpack_from, pack, call, byte = struct.unpack, struct.pack, redis.call, string.byte

local touched, order = {}, {} -- accounts that this call has read, by key and in order
local nowh, nowl              -- its time
local rest                    -- defined below

-- F is the functions of rest(), and what they share: the time, as h and l; trouble
-- is why an operation cannot be done here: UNREADY or FAR.
local F = {}

-- read_account returns the account that is kept as bytes.
local function read_account(raw, key)
	local counters = {}
	local a = {true, false, raw, key, false, counters, false, unpack_from(HEAD, raw, 2)}
	local at = a[HEAD_END]
	for i = 1, a[HOW_MANY] do
		local c = {unpack_from(COUNTER, raw, at)}
		counters[i], at = c, c[COUNTER_END]
	end
	if a[LOGGED] == 1 then at = F.read_log(a, raw, at) end
	if a[LEASED] > 0 then F.read_leases(a, raw, at) end
	return a
end

local function foreign(key, raw)
	error(key .. ': ' .. (type(raw) == 'table' and raw.err or 'it holds what go-ratelimit has not written'), 0)
end

-- find returns the account of a key. It is not live if nothing is in use.
local function find(key, ring)
	local a = touched[key]
	if not a then
		local raw = redis.pcall('GET', key)
		if raw then
			if type(raw) == 'table' or #raw < HEAD_BYTES or byte(raw) ~= VERSION then foreign(key, raw) end
			local logged, leased = byte(raw, 43, 44)
			if logged + leased > 0 and not F.read_log then rest() end
			a = read_account(raw, key)
			if a[FULL] < nowh or a[FULL] == nowh and a[FULL + 1] <= nowl then a = nil end
		end
		a = a or {false, false, '', key, false, {}, false, 0, 0, nowh, nowl, NO_EPOCH, 0}
		touched[key], order[#order + 1] = a, a
	end
	if ring then a[RING] = ring end
	return a
end

-- bear gives an account an epoch that no other has had.
local function bear(a)
	local unique = redis.sha1hex(KEYS[1] .. ARGV[1] .. a[KEY])
	a[LIVE], a[FULL], a[FULL + 1], a[REVISION] = true, 0, 0, 0
	a[EPOCH] = pack('>I4I2I2', 2147483648 + tonumber(string.sub(unique, 1, 7), 16), tonumber(string.sub(unique, 9, 12), 16), 0)
end

-- parse returns what is asked for as tables: a step, the format of the answer, and
-- charges, each its keys' places, n, whether that is any, whether it has a log, and
-- its limits from the seventh place on.
local TAKES = {
	'<BBc0Bc0BdI4dI4dI4dI4dI4', -- never, count, cost, its parts, room, its parts
	'<BBc0Bc0BdI4dI4dI4',       -- never, count, ref, period
	'<BBc0Bc0BdI4dI4',          -- never, count, period
	'<BBc0Bc0BdI4dI4dI4dI4dI4', -- never, count, starts of four days
	'<BBc0Bc0BdI4dI4dI4',       -- never, count, ref, period
	'<BBc0Bc0BdI4dI4',          -- never, count, period
}

local function parse(body)
	local step, count = byte(body, 1, 2)
	local op, format, at = {step}, '<c1', 3
	for i = 1, count do
		local key, ring, nh, nl, limits, first = unpack_from(CHARGE, body, at)
		local c = {key, ring, nh, nl, nh > 0 or nl > 0, false}
		format, at = format .. 'c8ddI4', first
		for k = 7, 6 + limits do
			local kind = byte(body, at)
			local l = {unpack_from(TAKES[kind], body, at)}
			format = format .. (kind == BUCKET and 'dI4dI4dI4dI4d' or 'dI4dI4dI4')
			c[k], at, c[6] = l, l[#l], c[6] or kind == LOGGING
		end
		op[i + 2] = c
	end
	op[2] = format
	if step >= LEASE then -- one charge, which is kept as it is asked for, and the lease: its name and for how long
		op.asked = string.char(TAKE) .. string.sub(body, 2, at - 1)
		op.lease, op.termh, op.terml = unpack_from('<c16dI4', body, at)
	end
	return op
end

-- What a take leaves behind, if all limits allow it: ten places a counter.
local planned = {}
-- The answer: its status; of each charge an epoch, a revision, what is leased, and
-- of each limit nine or six places.
local answer = {}
local parsed = {} -- what is asked for again is not parsed again

local plans, told = 0, 0

-- weigh lets all limits of a charge say whether it may pass. It plans what that
-- leaves behind, tells what package limit needs to answer the same, and returns
-- trouble if it cannot be done here.
local function weigh(a, charge)
	local allowed, counters, leases = true, a[COUNTERS], a[LEASES]
	local leasedh, leasedl = 0, 0
	if leases then leasedh, leasedl = F.leased(leases) end
	answer[told + 1], answer[told + 2], answer[told + 3], answer[told + 4] = a[EPOCH], a[REVISION], leasedh, leasedl
	told = told + 4
	for k = 7, #charge do
		local l = charge[k]
		local kind, name, c = l[1], l[2], nil
		for j = 1, #counters do
			if counters[j][LIMIT] == name then
				c = counters[j]
				break
			end
		end
		if not c and #counters > 0 and kind ~= LOGGING then
			if not F.inherits then rest() end
			if F.inherits(counters, charge, l[3]) then return false, UNREADY end
		end
		local allows, ath, atl, ah, al, bh, bl, untilh, untill
		if kind == BUCKET then
			ath, atl, ah, al, bh, bl = nowh, nowl, l[7], l[8], l[9], l[10] -- its cost, in ns and parts
			if c then
				local sinceh, sincel = nowh - c[AT], nowl - c[AT + 1]
				if sincel < 0 then sinceh, sincel = sinceh - 1, sincel + BILLION end
				if sinceh < 0 then return false, UNREADY end
				local lefth, leftl, parth, partl = c[A] - sinceh, c[A + 1] - sincel, c[B], c[B + 1]
				if leftl < 0 then lefth, leftl = lefth - 1, leftl + BILLION end
				if lefth < 0 then lefth, leftl, parth, partl = 0, 0, 0, 0 end
				answer[told + 1], answer[told + 2], answer[told + 3], answer[told + 4] = lefth, leftl, parth, partl
				answer[told + 5], answer[told + 6], answer[told + 7], answer[told + 8] = c[9], c[10], c[11], c[12]
				answer[told + 9] = c[CHANGES]
				bh, bl = bh + parth, bl + partl
				if bl >= BILLION then bh, bl = bh + 1, bl - BILLION end
				al = al + leftl
				if bh > l[5] or bh == l[5] and bl >= l[6] then -- a whole nanosecond
					al, bh, bl = al + 1, bh - l[5], bl - l[6]
					if bl < 0 then bh, bl = bh - 1, bl + BILLION end
				end
				ah = ah + lefth
				if al >= BILLION then ah, al = ah + 1, al - BILLION end
			else
				for j = told + 1, told + 9 do answer[j] = 0 end
			end
			told = told + 9
			untilh, untill = nowh + ah, nowl + al
			if bh > 0 or bl > 0 then untill = untill + 1 end
			if untill >= BILLION then untilh, untill = untilh + 1, untill - BILLION end
			if leases then
				allows = F.fits(leases, l, ah, al, bh, bl)
			elseif ah ~= l[11] then
				allows = ah < l[11]
			elseif al ~= l[12] then
				allows = al < l[12]
			else
				allows = bh < l[13] or bh == l[13] and bl <= l[14]
			end
			allows = allows and l[4] == 0
		else
			if not F.ask then rest() end
			F.trouble, F.leasedh, F.leasedl = nil, leasedh, leasedl
			allows, ath, atl, ah, al, bh, bl, untilh, untill = F.ask[kind](a, c, l, charge, answer, told)
			if F.trouble then return false, F.trouble end
			told = told + 6
		end
		allowed = allowed and (allows or not charge[5])
		if kind ~= LOGGING and charge[5] then
			if not c then c = {name, l[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, true} end -- new
			planned[plans + 1], planned[plans + 2], planned[plans + 3], planned[plans + 4], planned[plans + 5] = a, c, ath, atl, ah
			planned[plans + 6], planned[plans + 7], planned[plans + 8], planned[plans + 9], planned[plans + 10] = al, bh, bl, untilh, untill
			plans = plans + 10
		end
	end
	return allowed
end

-- enter charges a charge to its log, and changes the account as every charge does.
local function enter(a, charge)
	if not a[LIVE] then bear(a) end
	a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, nowh, nowl, a[REVISION] + 1
	if charge[6] then F.log(a, charge) end
end

-- carry_out does what is planned. The accounts are live.
local function carry_out()
	for i = 1, plans, 10 do
		local a, c = planned[i], planned[i + 1]
		if c[COUNTER_END] == true then
			c[COUNTER_END] = 0
			a[COUNTERS][#a[COUNTERS] + 1] = c
		end
		c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = planned[i + 2], planned[i + 3], planned[i + 4], planned[i + 5], planned[i + 6], planned[i + 7]
		local h, l = planned[i + 8], planned[i + 9]
		if a[FULL] < h or a[FULL] == h and a[FULL + 1] < l then a[FULL], a[FULL + 1] = h, l end
	end
end

-- take charges all, or none if a limit denies one. PEEK charges none. LEASE sets
-- aside what it is asked for, END charges what was used of that, whatever the limits
-- say: both are asked for one charge.
local function take(body, base)
	local op = parsed[body]
	if not op then
		op = parse(body)
		parsed[body] = op
	end
	local step, allowed = op[1], true
	if step >= LEASE and not F.lease then rest() end
	F.h, F.l = nowh, nowl
	for i = 3, #op do
		local charge = op[i]
		local a = find(KEYS[base + charge[1]], charge[2] > 0 and KEYS[base + charge[2]])
		if nowh < a[SEEN] or nowh == a[SEEN] and nowl < a[SEEN + 1] then return UNREADY end
		local trouble = a[LEASES] and step ~= PEEK and F.expire(a, charge)
		if trouble then return trouble end
	end
	plans, told = 0, 1
	for i = 3, #op do
		local charge = op[i]
		local a = touched[KEYS[base + charge[1]]]
		local allows, trouble = weigh(a, charge)
		if trouble then return trouble end
		allowed = allowed and allows
	end
	if step == END and not F.end_lease(touched[KEYS[base + 1]], op.lease) then return DENIED end
	answer[1] = (allowed or step == END) and ALLOWED or DENIED
	if step == PEEK or not allowed and step ~= END then return pack(op[2], unpack(answer, 1, told)) end
	if step == LEASE then
		F.lease(touched[KEYS[base + 1]], op)
		return pack(op[2], unpack(answer, 1, told))
	end

	local place = 2
	for i = 3, #op do
		local charge = op[i]
		local a = touched[KEYS[base + charge[1]]]
		if charge[5] then enter(a, charge) end
		answer[place], answer[place + 1] = a[EPOCH], a[REVISION]
		place = place + 4
		for k = 7, #charge do place = place + (charge[k][1] == BUCKET and 9 or 6) end
	end
	carry_out()
	return pack(op[2], unpack(answer, 1, told))
end

-- bytes_of returns the bytes of an account as it is now.
local function bytes_of(a)
	local counters, log = a[COUNTERS], a[LOG]
	if #counters == 1 and not log and not a[LEASES] then
		local c = counters[1]
		return pack(WRITTEN .. COUNTER, VERSION, a[8], a[9], a[10], a[11], a[12], a[13], 1, 0, 0,
			#c[1], c[1], #c[2], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15])
	end
	local out = {pack(WRITTEN, VERSION, a[8], a[9], a[10], a[11], a[12], a[13], #counters, log and 1 or 0, a[LEASES] and #a[LEASES] or 0)}
	for i = 1, #counters do
		local c = counters[i]
		out[i + 1] = pack(COUNTER, #c[1], c[1], #c[2], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15])
	end
	if log then out[#out + 1] = F.log_bytes(log) end
	if a[LEASES] then out[#out + 1] = F.lease_bytes(a[LEASES]) end
	return table.concat(out)
end

const MAX_HI 4611686018     -- 2^62, where counts stop
const MAX_LO 427387904
const WRAP_HI 18446744073   -- 2^64, at which refunds wrap
const WRAP_LO 709551616

-- A log: a ring of entries, which has a key of its own, and the windows over it.
const SIZE 1
const OLDEST 2
const NEXT 3
const DROPPED 4
const NEWEST 6
const HOW_MANY_WINDOWS 8
const LOG_END 9
const LOG_HEAD '<ddddI4dI4B'
-- A window of it: the entries from first on are in it.
const PERIOD 1
const FIRST 3
const SUM 4
const WINDOW_END 6
const WINDOW '<dI4ddI4'
-- An entry of the ring: when, and how much.
const ENTRY '<dI4dI4'
const ENTRY_BYTES 24
const FIRST_SIZE 8

function rest()
	function F.plus(ah, al, bh, bl)
		local lo = al + bl
		if lo >= BILLION then return ah + bh + 1, lo - BILLION end
		return ah + bh, lo
	end

	function F.minus(ah, al, bh, bl)
		local lo = al - bl
		if lo < 0 then return ah - bh - 1, lo + BILLION end
		return ah - bh, lo
	end

	function F.less(ah, al, bh, bl) return ah < bh or ah == bh and al < bl end

	-- correct adds to what is counted as used: not below zero, not past 2^62.
	function F.correct(usedh, usedl, h, l)
		local sumh, suml = F.plus(usedh, usedl, h, l)
		if sumh < 0 then return 0, 0 end
		if F.less(MAX_HI, MAX_LO, sumh, suml) then return MAX_HI, MAX_LO end
		return sumh, suml
	end

	-- digits returns the three digits of a number in base 1e7, the lowest first.
	function F.digits(h, l)
		local low = h % 100000 * BILLION + l
		local high = math.floor(low / 10000000)
		return low % 10000000, high % 10000000, math.floor(high / 10000000) + math.floor(h / 100000)
	end

	-- product returns the digits of a product.
	function F.product(ah, al, bh, bl)
		local a1, a2, a3 = F.digits(ah, al)
		local b1, b2, b3 = F.digits(bh, bl)
		local out = {a1 * b1, a1 * b2 + a2 * b1, a1 * b3 + a2 * b2 + a3 * b1, a2 * b3 + a3 * b2, a3 * b3, 0}
		for i = 1, 5 do
			local carry = math.floor(out[i] / 10000000)
			out[i], out[i + 1] = out[i] % 10000000, out[i + 1] + carry
		end
		return out
	end

	-- within reports whether a * b <= c * d.
	function F.within(ah, al, bh, bl, ch, cl, dh, dl)
		local left, right = F.product(ah, al, bh, bl), F.product(ch, cl, dh, dl)
		for i = 6, 1, -1 do
			if left[i] ~= right[i] then return left[i] < right[i] end
		end
		return true
	end

	-- A backlog is two numbers: ns, and parts of 1/count of one.

	function F.longer(an, anl, ap, apl, bn, bnl, bp, bpl)
		if an ~= bn then return an > bn end
		if anl ~= bnl then return anl > bnl end
		return F.less(bp, bpl, ap, apl)
	end

	function F.sum(an, anl, ap, apl, bn, bnl, bp, bpl, counth, countl)
		local h, l = F.plus(an, anl, bn, bnl)
		local ph, pl = F.plus(ap, apl, bp, bpl)
		if F.less(ph, pl, counth, countl) then return h, l, ph, pl end
		ph, pl = F.minus(ph, pl, counth, countl)
		h, l = F.plus(h, l, 0, 1)
		return h, l, ph, pl
	end

	-- difference returns a - b, or zero where b is larger.
	function F.difference(an, anl, ap, apl, bn, bnl, bp, bpl, counth, countl)
		if not F.longer(an, anl, ap, apl, bn, bnl, bp, bpl) then return 0, 0, 0, 0 end
		local h, l = F.minus(an, anl, bn, bnl)
		local ph, pl = F.minus(ap, apl, bp, bpl)
		if ph < 0 then
			ph, pl = F.plus(ph, pl, counth, countl)
			h, l = F.minus(h, l, 0, 1)
		end
		return h, l, ph, pl
	end

	-- left_at returns what is left of a bucket's backlog at a time after its last.
	function F.left_at(c, h, l)
		local dh, dl = F.minus(h, l, c[AT], c[AT + 1])
		if F.less(c[A], c[A + 1], dh, dl) then return 0, 0, 0, 0 end
		local ah, al = F.minus(c[A], c[A + 1], dh, dl)
		return ah, al, c[B], c[B + 1]
	end

	-- ahead reports whether a time has not come yet.
	function F.ahead(h, l) return F.less(F.h, F.l, h, l) end

	function F.in_use_until(a, h, l)
		if F.less(a[FULL], a[FULL + 1], h, l) then a[FULL], a[FULL + 1] = h, l end
	end

	-- inherits reports whether a limit without a counter may take over that of
	-- another, which is none of those that are asked for; or there are too many.
	function F.inherits(counters, charge, shape)
		for i = 1, #counters do
			local c, asked = counters[i], false
			if c[SHAPE] == shape then
				for k = 7, #charge do asked = asked or charge[k][2] == c[LIMIT] end
				if not asked then return true end
			end
		end
		return #counters >= MOST_COUNTERS
	end

	-- Windows.

	-- start returns when the window of a period begins that a time is in. ref is
	-- the start of one that is not far away.
	function F.start(h, l, refh, refl, ph, pl)
		local dh, dl = F.minus(h, l, refh, refl)
		if dh < -4000000 or dh >= 4000000 then -- 2^52 ns
			F.trouble = FAR
			return h, l
		end
		if ph >= 4000000 then
			if dh < 0 then return F.minus(refh, refl, ph, pl) end
			if F.less(dh, dl, ph, pl) then return refh, refl end
			return F.plus(refh, refl, ph, pl)
		end
		local past = math.fmod(dh * BILLION + dl, ph * BILLION + pl)
		if past < 0 then past = past + ph * BILLION + pl end
		return F.minus(h, l, math.floor(past / BILLION), past % BILLION)
	end

	-- slid returns a sliding counter as of the window that begins at a time: what
	-- was used in the one before, and in it.
	function F.slid(c, starth, startl, ph, pl)
		if c[AT] == starth and c[AT + 1] == startl then return c[A], c[A + 1], c[B], c[B + 1] end
		local nexth, nextl = F.plus(c[AT], c[AT + 1], ph, pl)
		if nexth == starth and nextl == startl then return c[B], c[B + 1], 0, 0 end
		return 0, 0, 0, 0
	end

	-- The log. Its entries are read when they are needed, and kept in log.entries by
	-- their place in the ring. Those in log.changed are to be written; log.whole is
	-- the bytes of a ring that is new.

	function F.read_log(a, raw, at)
		local log, windows = {unpack_from(LOG_HEAD, raw, at)}, {}
		at = log[LOG_END]
		for i = 1, log[HOW_MANY_WINDOWS] do
			local w = {unpack_from(WINDOW, raw, at)}
			windows[i], at = w, w[WINDOW_END]
		end
		log.windows, log.entries, log.changed, a[LOG] = windows, {}, {}, log
		return at
	end

	function F.log_bytes(log)
		local out = {pack(LOG_HEAD, log[1], log[2], log[3], log[4], log[5], log[6], log[7], #log.windows)}
		for _, w in ipairs(log.windows) do out[#out + 1] = pack(WINDOW, w[1], w[2], w[3], w[4], w[5]) end
		return table.concat(out)
	end

	function F.entry(a, i)
		local log = a[LOG]
		local place = i % log[SIZE]
		local e = log.entries[place]
		if e then return e end
		local from, bytes = place * ENTRY_BYTES, nil
		if log.whole then
			bytes = string.sub(log.whole, from + 1, from + 8 * ENTRY_BYTES)
		else
			bytes = call('GETRANGE', a[RING], from, from + 8 * ENTRY_BYTES - 1)
		end
		for k = 0, #bytes / ENTRY_BYTES - 1 do
			if not log.entries[place + k] then
				log.entries[place + k] = {unpack_from(ENTRY, bytes, k * ENTRY_BYTES + 1)}
			end
		end
		return log.entries[place]
	end

	function F.put(log, i, ath, atl, nh, nl)
		local place = i % log[SIZE]
		log.entries[place], log.changed[place] = {ath, atl, nh, nl}, true
	end

	function F.window(log, h, l)
		for _, w in ipairs(log.windows) do
			if w[PERIOD] == h and w[PERIOD + 1] == l then return w end
		end
	end

	-- lower takes n off a window's sum. One that was too large to count is counted
	-- anew.
	function F.lower(a, w, nh, nl)
		if F.less(w[SUM], w[SUM + 1], MAX_HI, MAX_LO) then
			w[SUM], w[SUM + 1] = F.minus(w[SUM], w[SUM + 1], nh, nl)
			return
		end
		w[SUM], w[SUM + 1] = 0, 0
		for i = w[FIRST], a[LOG][NEXT] - 1 do
			local e = F.entry(a, i)
			w[SUM], w[SUM + 1] = F.correct(w[SUM], w[SUM + 1], e[3], e[4])
		end
	end

	-- slide takes out of w what has left it.
	function F.slide(a, w)
		local fromh, froml = F.minus(F.h, F.l, w[PERIOD], w[PERIOD + 1])
		while w[FIRST] < a[LOG][NEXT] do
			local e = F.entry(a, w[FIRST])
			if F.less(fromh, froml, e[1], e[2]) then return end
			w[FIRST] = w[FIRST] + 1
			F.lower(a, w, e[3], e[4])
		end
	end

	-- log_ready sees whether the log can be used: it is all there, has a window of
	-- the period, no entry in the future, and room for one more if that is needed.
	function F.log_ready(a, periodh, periodl, adds)
		local log = a[LOG]
		if not log then return end
		if not log.whole and not log.checked then
			local bytes = redis.pcall('STRLEN', a[RING])
			if type(bytes) == 'table' then foreign(a[RING], bytes) end
			log.checked = bytes == log[SIZE] * ENTRY_BYTES
			if not log.checked then F.trouble = UNREADY end
		end
		if log[NEXT] > log[OLDEST] and (F.ahead(log[NEWEST], log[NEWEST + 1])
				or adds and log[NEXT] - log[OLDEST] >= log[SIZE] or not F.window(log, periodh, periodl)) then
			F.trouble = UNREADY
		end
	end

	-- open returns the log's window of a period, and makes what is missing.
	function F.open(a, periodh, periodl)
		if not a[LOG] then
			local h, l = F.minus(F.h, F.l, 0, 1)
			a[LOG] = {FIRST_SIZE, 0, 0, h, l, 0, 0, windows = {}, entries = {}, changed = {}, whole = string.rep('\0', FIRST_SIZE * ENTRY_BYTES)}
		end
		local log = a[LOG]
		local w = F.window(log, periodh, periodl)
		if not w then
			w = {periodh, periodl, log[OLDEST], 0, 0}
			table.insert(log.windows, w)
		end
		return w
	end

	function F.add(a, ath, atl, nh, nl)
		local log = a[LOG]
		local last = log[NEXT] - 1
		local merges = last >= log[OLDEST] and log[NEWEST] == ath and log[NEWEST + 1] == atl
		for _, w in ipairs(log.windows) do
			merges = merges and last >= w[FIRST]
			w[SUM], w[SUM + 1] = F.correct(w[SUM], w[SUM + 1], nh, nl)
		end
		if merges then
			local e = F.entry(a, last)
			F.put(log, last, ath, atl, F.correct(e[3], e[4], nh, nl))
		else
			log[NEXT], log[NEWEST], log[NEWEST + 1] = log[NEXT] + 1, ath, atl
			F.put(log, last + 1, ath, atl, nh, nl)
		end
	end

	function F.longest(log)
		local h, l = 0, 0
		for _, w in ipairs(log.windows) do
			if F.less(h, l, w[PERIOD], w[PERIOD + 1]) then h, l = w[PERIOD], w[PERIOD + 1] end
		end
		return h, l
	end

	function F.log_in_use(a)
		local log = a[LOG]
		if log[NEXT] > log[OLDEST] then F.in_use_until(a, F.plus(log[NEWEST], log[NEWEST + 1], F.longest(log))) end
	end

	-- log enters what a charge takes.
	function F.log(a, charge)
		for k = 7, #charge do
			local l = charge[k]
			if l[1] == LOGGING then F.open(a, l[7], l[8]) end
		end
		F.add(a, F.h, F.l, charge[3], charge[4])
		F.log_in_use(a)
	end

	function F.ring(a)
		local log = a[LOG]
		local bytes = log.whole or call('GET', a[RING]) or ''
		for place in pairs(log.changed) do
			local from, e = place * ENTRY_BYTES, log.entries[place]
			bytes = string.sub(bytes, 1, from) .. pack(ENTRY, e[1], e[2], e[3], e[4]) .. string.sub(bytes, from + ENTRY_BYTES + 1)
		end
		return bytes
	end

	function F.flush_log(a)
		local log = a[LOG]
		if log.whole then
			call('SET', a[RING], F.ring(a))
			return
		end
		for place in pairs(log.changed) do
			local e = log.entries[place]
			call('SETRANGE', a[RING], place * ENTRY_BYTES, pack(ENTRY, e[1], e[2], e[3], e[4]))
		end
	end

	-- ask lets a limit say whether n may pass, and tells what package limit needs to
	-- answer the same. It returns what would be left behind: a state, and until when
	-- it is in use.
	F.ask = {}

	function F.tell(c, answer, told)
		if c and F.ahead(c[AT], c[AT + 1]) then F.trouble = UNREADY end
		for i = 1, 6 do answer[told + i] = c and c[AT - 1 + i] or 0 end
	end

	-- fixed is a window that is open, or would open, from start to end.
	function F.fixed(c, l, charge, starth, startl, endh, endl)
		local usedh, usedl = charge[3], charge[4]
		if c and F.ahead(c[A], c[A + 1]) then
			starth, startl, endh, endl = c[AT], c[AT + 1], c[A], c[A + 1]
			usedh, usedl = F.plus(c[B], c[B + 1], usedh, usedl)
		end
		local allows = not F.less(l[5], l[6], F.plus(usedh, usedl, F.leasedh, F.leasedl))
		return allows, starth, startl, endh, endl, usedh, usedl, endh, endl
	end

	F.ask[ALIGNED] = function(a, c, l, charge, answer, told)
		F.tell(c, answer, told)
		local h, low = F.start(F.h, F.l, l[7], l[8], l[9], l[10])
		return F.fixed(c, l, charge, h, low, F.plus(h, low, l[9], l[10]))
	end

	F.ask[ANCHORED] = function(a, c, l, charge, answer, told)
		F.tell(c, answer, told)
		return F.fixed(c, l, charge, F.h, F.l, F.plus(F.h, F.l, l[7], l[8]))
	end

	F.ask[CALENDAR] = function(a, c, l, charge, answer, told)
		F.tell(c, answer, told)
		for i = 7, 11, 2 do
			if not F.ahead(l[i], l[i + 1]) and F.ahead(l[i + 2], l[i + 3]) then
				return F.fixed(c, l, charge, l[i], l[i + 1], l[i + 2], l[i + 3])
			end
		end
		F.trouble = FAR
	end

	F.ask[SLIDING] = function(a, c, l, charge, answer, told)
		F.tell(c, answer, told)
		local ph, pl = l[9], l[10]
		local sh, sl = F.start(F.h, F.l, l[7], l[8], ph, pl)
		local eh, el = F.plus(sh, sl, ph, pl)
		local oldh, oldl, usedh, usedl = 0, 0, 0, 0
		if c then oldh, oldl, usedh, usedl = F.slid(c, sh, sl, ph, pl) end
		usedh, usedl = F.plus(usedh, usedl, charge[3], charge[4])
		local roomh, rooml = F.minus(l[5], l[6], F.plus(usedh, usedl, F.leasedh, F.leasedl))
		local allows = roomh >= 0
		if allows and (oldh > 0 or oldl > 0) then
			local lefth, leftl = F.minus(eh, el, F.h, F.l)
			allows = F.within(oldh, oldl, lefth, leftl, roomh, rooml, ph, pl)
		end
		return allows, sh, sl, oldh, oldl, usedh, usedl, F.plus(eh, el, ph, pl)
	end

	-- A log tells what is in its window, when the newest entry was made, and which of
	-- them, once it has left, leaves room for what it denies.
	F.ask[LOGGING] = function(a, c, l, charge, answer, told)
		for i = 1, 6 do answer[told + i] = 0 end
		F.log_ready(a, l[7], l[8], charge[5])
		local log = a[LOG]
		local w = log and F.window(log, l[7], l[8])
		if F.trouble then return end
		if not w then
			local usedh, usedl = F.plus(charge[3], charge[4], F.leasedh, F.leasedl)
			return not F.less(l[5], l[6], usedh, usedl)
		end
		F.slide(a, w)
		answer[told + 1], answer[told + 2], answer[told + 3], answer[told + 4] = w[SUM], w[SUM + 1], log[NEWEST], log[NEWEST + 1]
		if l[4] == 1 then return false end
		local usedh, usedl = F.plus(w[SUM], w[SUM + 1], charge[3], charge[4])
		local overh, overl = F.minus(usedh, usedl, F.minus(l[5], l[6], F.leasedh, F.leasedl))
		if not charge[5] or overh < 0 or overh == 0 and overl == 0 then return true end
		local i = w[FIRST]
		while i < log[NEXT] and (overh > 0 or overh == 0 and overl > 0) do
			local e = F.entry(a, i)
			overh, overl = F.minus(overh, overl, e[3], e[4])
			answer[told + 5], answer[told + 6], i = e[1], e[2], i + 1
		end
		return false
	end

	-- Settling. s is a settlement: its key's place, its log's or 0, the epoch that it
	-- was taken in, n, at, actual, a revision that it undoes, how many limits, and
	-- these from the thirteenth place on. It is told whether actual is more than n,
	-- and whether the account is the one it was taken from.

	function F.counter(a, l)
		for _, c in ipairs(a[COUNTERS]) do
			if c[LIMIT] == l[2] then return c end
		end
		local c = {l[2], l[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		table.insert(a[COUNTERS], c)
		return c
	end

	F.fix = {}

	F.fix[BUCKET] = function(a, s, l)
		local c, kh, kl = F.counter(a, l), l[4], l[5]
		local dh, dl, dp, dpl = l[6], l[7], l[8], l[9]
		local hh, hl, hp, hpl = l[10], l[11], l[12], l[13] -- the backlog that it left behind, less what was refunded since
		if s.same and c[CHANGES] ~= l[18] then
			hh, hl, hp, hpl = 0, 0, 0, 0
		elseif s.same then
			local th, tl = F.minus(c[REFUNDED], c[REFUNDED + 1], l[14], l[15])
			local tp, tpl = F.minus(c[REFUNDED_PARTS], c[REFUNDED_PARTS + 1], l[16], l[17])
			if tp < 0 then
				tp, tpl = F.plus(tp, tpl, kh, kl)
				th, tl = F.minus(th, tl, 0, 1)
			end
			if th < 0 then th, tl = F.plus(th, tl, WRAP_HI, WRAP_LO) end
			hh, hl, hp, hpl = F.difference(hh, hl, hp, hpl, th, tl, tp, tpl, kh, kl)
		end
		if s.more then
			if F.less(c[AT], c[AT + 1], s[6], s[7]) then
				local lh, ll, lp, lpl = F.left_at(c, s[6], s[7])
				if F.longer(hh, hl, hp, hpl, lh, ll, lp, lpl) then lh, ll, lp, lpl = hh, hl, hp, hpl end
				c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = s[6], s[7], lh, ll, lp, lpl
			end
			c[A], c[A + 1], c[B], c[B + 1] = F.sum(c[A], c[A + 1], c[B], c[B + 1], dh, dl, dp, dpl, kh, kl)
			if F.less(MAX_HI, MAX_LO, c[A], c[A + 1]) then c[A], c[A + 1] = MAX_HI, MAX_LO end
		else -- frees what it still holds
			local sinceh, sincel = F.minus(F.h, F.l, s[6], s[7])
			hh, hl, hp, hpl = F.difference(hh, hl, hp, hpl, sinceh, sincel, 0, 0, kh, kl)
			if F.longer(dh, dl, dp, dpl, hh, hl, hp, hpl) then dh, dl, dp, dpl = hh, hl, hp, hpl end
			local lh, ll, lp, lpl = F.left_at(c, F.h, F.l)
			if F.longer(dh, dl, dp, dpl, lh, ll, lp, lpl) then dh, dl, dp, dpl = lh, ll, lp, lpl end
			c[A], c[A + 1], c[B], c[B + 1] = F.difference(c[A], c[A + 1], c[B], c[B + 1], dh, dl, dp, dpl, kh, kl)
			if s[10] ~= a[REVISION] then -- otherwise nothing has happened since, and it is as if it was not taken
				c[9], c[10], c[11], c[12] = F.sum(c[9], c[10], c[11], c[12], dh, dl, dp, dpl, kh, kl)
				if not F.less(c[9], c[10], WRAP_HI, WRAP_LO) then c[9], c[10] = F.minus(c[9], c[10], WRAP_HI, WRAP_LO) end
			end
		end
		local lh, ll, lp, lpl = F.left_at(c, F.h, F.l)
		if lp > 0 or lpl > 0 then lh, ll = F.plus(lh, ll, 0, 1) end
		F.in_use_until(a, F.plus(F.h, F.l, lh, ll))
	end

	F.fix[ALIGNED] = function(a, s, l)
		local c, anchored, nothing = F.counter(a, l), l[1] == ANCHORED, s[4] == 0 and s[5] == 0
		if s.more and not F.less(s[6], s[7], c[A], c[A + 1]) and (nothing or not anchored) then -- forgotten, or nothing was taken
			c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = l[4], l[5], l[6], l[7], 0, 0
		end
		local bh, bl = c[AT], c[AT + 1]
		if anchored and nothing then -- it began later, since nothing was taken
			bh, bl = F.minus(bh, bl, l[8], l[9])
			bh, bl = F.plus(bh, bl, 0, 1)
		end
		if not F.less(s[6], s[7], bh, bl) and F.less(s[6], s[7], c[A], c[A + 1]) then
			c[B], c[B + 1] = F.correct(c[B], c[B + 1], F.minus(s[8], s[9], s[4], s[5]))
		end
		if c[B] > 0 or c[B + 1] > 0 then
			if F.ahead(c[A], c[A + 1]) then F.in_use_until(a, c[A], c[A + 1]) end
		elseif anchored then -- what was given back has begun no window
			c[AT], c[AT + 1], c[A], c[A + 1] = 0, 0, 0, 0
		end
	end
	F.fix[ANCHORED], F.fix[CALENDAR] = F.fix[ALIGNED], F.fix[ALIGNED]

	F.fix[SLIDING] = function(a, s, l)
		local c, sh, sl, ph, pl = F.counter(a, l), l[4], l[5], l[6], l[7]
		if F.less(c[AT], c[AT + 1], sh, sl) then
			c[A], c[A + 1], c[B], c[B + 1] = F.slid(c, sh, sl, ph, pl)
			c[AT], c[AT + 1] = sh, sl
		end
		local dh, dl = F.minus(s[8], s[9], s[4], s[5])
		local beforeh, beforel = F.minus(c[AT], c[AT + 1], ph, pl)
		if sh == c[AT] and sl == c[AT + 1] then
			c[B], c[B + 1] = F.correct(c[B], c[B + 1], dh, dl)
		elseif sh == beforeh and sl == beforel then
			c[A], c[A + 1] = F.correct(c[A], c[A + 1], dh, dl)
		end
		local currenth, currentl = F.start(F.h, F.l, sh, sl, ph, pl)
		local oldh, oldl, newh, newl = F.slid(c, currenth, currentl, ph, pl)
		local eh, el = F.plus(currenth, currentl, ph, pl)
		if newh > 0 or newl > 0 then
			F.in_use_until(a, F.plus(eh, el, ph, pl))
		elseif oldh > 0 or oldl > 0 then
			F.in_use_until(a, eh, el)
		end
	end

	-- search returns the first entry at a time or later.
	function F.search(a, h, l)
		local low, high = a[LOG][OLDEST], a[LOG][NEXT]
		while low < high do
			local middle = low + math.floor((high - low) / 2)
			local e = F.entry(a, middle)
			if F.less(e[1], e[2], h, l) then low = middle + 1 else high = middle end
		end
		return low
	end

	-- fix_log corrects the entry that a take made, in whichever windows hold it.
	function F.fix_log(a, s)
		local log = a[LOG]
		local fromh, froml = F.minus(F.h, F.l, F.longest(log))
		if not F.less(fromh, froml, s[6], s[7]) then return end
		if not s.more and not F.less(log[DROPPED], log[DROPPED + 1], s[6], s[7]) then return end
		local dh, dl = F.minus(s[8], s[9], s[4], s[5])
		local i, after = F.search(a, s[6], s[7]), F.search(a, F.plus(s[6], s[7], 0, 1))
		if after > i then i = after - 1 end -- of those that a rewind has moved to its time it is the last
		if i == log[NEXT] then
			if s.more then F.add(a, s[6], s[7], dh, dl) end
			F.log_in_use(a)
			return
		end
		local e = F.entry(a, i)
		local h, l = F.correct(e[3], e[4], dh, dl)
		F.put(log, i, e[1], e[2], h, l)
		for _, w in ipairs(log.windows) do
			if w[FIRST] <= i and s.more then
				w[SUM], w[SUM + 1] = F.correct(w[SUM], w[SUM + 1], F.minus(h, l, e[3], e[4]))
			elseif w[FIRST] <= i then
				F.lower(a, w, F.minus(e[3], e[4], h, l))
			end
		end
		while log[NEXT] > log[OLDEST] do -- the newest says when everything has left
			e = F.entry(a, log[NEXT] - 1)
			if e[3] > 0 or e[4] > 0 then
				log[NEWEST], log[NEWEST + 1] = e[1], e[2]
				break
			end
			log[NEXT] = log[NEXT] - 1
		end
		for _, w in ipairs(log.windows) do w[FIRST] = math.min(w[FIRST], log[NEXT]) end
		F.log_in_use(a)
	end

	local SETTLES = {
		'<BBc0Bc0dI4dI4dI4dI4dI4dI4dI4d', -- count, difference, its parts, left behind, its parts, refunded, its parts, changes
		'<BBc0Bc0dI4dI4dI4',              -- start and end of the window of its time, period
		'<BBc0Bc0dI4dI4dI4',
		'<BBc0Bc0dI4dI4dI4',
		'<BBc0Bc0dI4dI4',                 -- start of the window of its time, period
		'<BBc0Bc0dI4',                    -- period
	}

	-- look sees whether a settlement can be done here.
	function F.look(a, s)
		if not a[LIVE] then return end
		local same_birth = string.sub(s[3], 1, 6) == string.sub(a[EPOCH], 1, 6)
		if F.ahead(a[SEEN], a[SEEN + 1]) or F.ahead(s[6], s[7]) or same_birth and s[3] ~= a[EPOCH] then F.trouble = UNREADY end
		for k = 13, #s do
			local l = s[k]
			if l[1] == LOGGING then
				F.log_ready(a, l[4], l[5], F.less(s[4], s[5], s[8], s[9]))
			else
				local found = false
				for _, c in ipairs(a[COUNTERS]) do
					if c[LIMIT] == l[2] then
						found = true
						if F.ahead(c[AT], c[AT + 1]) then F.trouble = UNREADY end
					end
				end
				if not found and F.inherits(a[COUNTERS], s, l[3]) then F.trouble = UNREADY end
			end
			if l[1] == SLIDING then F.start(F.h, F.l, l[4], l[5], l[6], l[7]) end
		end
	end

	-- settle corrects what was taken to what was used.
	function F.settle(body, base)
		local all, at = {}, 3
		for i = 1, byte(body, 2) do
			local s = {unpack_from('<BBc8dI4dI4dI4dB', body, at)}
			local limits = s[11]
			at = s[12]
			for k = 13, 12 + limits do
				local l = {unpack_from(SETTLES[byte(body, at)], body, at)}
				s[k], at = l, l[#l]
			end
			F.look(find(KEYS[base + s[1]], s[2] > 0 and KEYS[base + s[2]]), s)
			all[i] = s
		end
		if F.trouble then return F.trouble end
		for _, s in ipairs(all) do F.settle_one(touched[KEYS[base + s[1]]], s) end
		return ALLOWED
	end

	function F.settle_one(a, s)
		s.more, s.same = F.less(s[4], s[5], s[8], s[9]), a[LIVE] and s[3] == a[EPOCH]
		if not s.more and not s.same and (s[3] ~= NO_EPOCH or not a[LIVE]) then return end -- what it has taken is not there any more
		if not a[LIVE] then bear(a) end
		local logged = false
		for k = 13, #s do
			local l = s[k]
			if l[1] == LOGGING then
				F.slide(a, F.open(a, l[4], l[5]))
				logged = true
			else
				F.fix[l[1]](a, s, l)
			end
		end
		if logged then F.fix_log(a, s) end
		a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, F.h, F.l, a[REVISION] + 1
	end

	-- Leases. One is what a caller has set aside to spend by itself until it ends: a
	-- charge as it was asked for. Until it is ended, or its time is over, limits count
	-- it as if it was taken just now. Then what was used of it is charged: all of it,
	-- if nobody says.

	function F.read_leases(a, raw, at)
		a[LEASES] = {}
		for i = 1, a[LEASED] do
			local lease = {unpack_from('<c16dI4I2c0', raw, at)} -- its name, when it ends, what was asked for
			at, lease.op = lease[5], parse(lease[4])
			a[LEASES][i] = lease
		end
	end

	function F.lease_bytes(leases)
		local out = {}
		for i, lease in ipairs(leases) do out[i] = pack('<c16dI4I2c0', lease[1], lease[2], lease[3], #lease[4], lease[4]) end
		return table.concat(out)
	end

	-- leased returns how much is set aside.
	function F.leased(leases)
		local h, l = 0, 0
		for _, lease in ipairs(leases) do h, l = F.plus(h, l, lease.op[3][3], lease.op[3][4]) end
		return h, l
	end

	-- fits reports whether a bucket has room for a backlog and what is set aside of it.
	function F.fits(leases, l, h, low, p, pl)
		for _, lease in ipairs(leases) do
			for k = 7, #lease.op[3] do
				local of = lease.op[3][k]
				if of[2] == l[2] then h, low, p, pl = F.sum(h, low, p, pl, of[7], of[8], of[9], of[10], l[5], l[6]) end
			end
		end
		return not F.longer(h, low, p, pl, l[11], l[12], l[13], l[14])
	end

	-- covers reports whether a lease has all limits of a charge.
	function F.covers(lease, charge)
		for k = 7, #charge do
			local found = false
			for j = 7, #lease.op[3] do found = found or lease.op[3][j][2] == charge[k][2] end
			if not found then return false end
		end
		return true
	end

	-- expire charges the leases whose time is over. One that does not know all limits
	-- which are asked for must be charged in Go: these have changed.
	function F.expire(a, charge)
		local leases = a[LEASES]
		for i = #leases, 1, -1 do
			local lease = leases[i]
			local over = not F.ahead(lease[2], lease[3])
			if not over and not F.covers(lease, charge) then return UNREADY end
			if over then
				plans, told = 0, 1
				local _, trouble = weigh(a, lease.op[3])
				if trouble then return trouble end
				F.drop(a, i)
				enter(a, lease.op[3])
				carry_out()
			end
		end
	end

	function F.drop(a, i)
		table.remove(a[LEASES], i)
		if #a[LEASES] == 0 then a[LEASES] = nil end
	end

	function F.lease(a, op)
		if not a[LIVE] then bear(a) end
		local endh, endl = F.plus(F.h, F.l, op.termh, op.terml)
		a[LEASES] = a[LEASES] or {}
		table.insert(a[LEASES], {op.lease, endh, endl, op.asked, op = op})
		for i = 1, plans, 10 do F.in_use_until(a, F.plus(planned[i + 8], planned[i + 9], op.termh, op.terml)) end
		for k = 7, #op[3] do
			local l = op[3][k]
			if l[1] == LOGGING then F.in_use_until(a, F.plus(endh, endl, l[7], l[8])) end
		end
		a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, F.h, F.l, a[REVISION] + 1
	end

	-- end_lease forgets a lease. It returns false if that was charged before.
	function F.end_lease(a, name)
		for i, lease in ipairs(a[LEASES] or {}) do
			if lease[1] == name then
				F.drop(a, i)
				a[DIRTY], a[REVISION] = true, a[REVISION] + 1
				return true
			end
		end
		return false
	end

	-- Accounts as a whole.

	function F.bytes(a)
		if not a[LIVE] then return '' end
		return a[DIRTY] and bytes_of(a) or a[RAW]
	end

	-- read tells all of accounts: of each, the places of its key and its log's.
	function F.read(body, base)
		local out, at = {ALLOWED}, 3
		for i = 1, byte(body, 2) do
			local key, ring = byte(body, at, at + 1)
			local a = find(KEYS[base + key], KEYS[base + ring])
			local bytes, log = F.bytes(a), a[LIVE] and a[LOG] and F.ring(a) or ''
			out[i + 1], at = pack('<I4', #bytes) .. bytes .. pack('<I4', #log) .. log, at + 2
		end
		return table.concat(out)
	end

	-- replace writes accounts if they are still what was read of them, and otherwise
	-- none: of each, its places, its bytes as they were, as they are to be, its log's.
	function F.replace(body, base)
		local all, at = {}, 3
		for i = 1, byte(body, 2) do
			local r = {unpack_from('<BBI4c0I4c0I4c0', body, at)}
			local a = find(KEYS[base + r[1]], KEYS[base + r[2]])
			if F.bytes(a) ~= r[3] then return DENIED end
			all[i], at = r, r[6]
		end
		for _, r in ipairs(all) do
			local old = touched[KEYS[base + r[1]]]
			local a = r[4] ~= '' and read_account(r[4], old[KEY]) or {false, false, '', old[KEY], false, {}, false, 0, 0, F.h, F.l, NO_EPOCH, 0}
			a[DIRTY], a[RING], a[REVISION] = true, old[RING], a[REVISION] + 1
			if a[LOG] then a[LOG].whole = r[5] end
			touched[old[KEY]], order[#order + 1], old[DIRTY] = a, a, false
		end
		return ALLOWED
	end

	F.steps = {[SETTLE] = F.settle, [READ] = F.read, [REPLACE] = F.replace}
end

-- run does one operation, and returns its answer.
local function run(sec, ns, base, body)
	nowh, nowl = sec, ns
	local step = byte(body)
	if step <= END then return take(body, base - 1) end
	if not F.steps then rest() end
	F.h, F.l, F.trouble = sec, ns, nil
	return F.steps[step](body, base - 1)
end

-- flush writes what has changed. Every key expires when it is full.
local function flush()
	for i = 1, #order do
		local a = order[i]
		if a[DIRTY] and not a[LIVE] then
			call('DEL', a[KEY], a[RING] or a[KEY])
		elseif a[DIRTY] then
			if a[LOG] then F.flush_log(a) end
			if ARGV[3] ~= '' then -- by another clock
				call('SET', a[KEY], bytes_of(a))
			else
				local due = string.format('%.0f', a[FULL] * 1000 + math.ceil(a[FULL + 1] / 1000000))
				if a[LOG] then call('PEXPIREAT', a[RING], due) end
				call('SET', a[KEY], bytes_of(a), 'PXAT', due)
			end
		end
	end
end
