-- Takes and peeks.

-- Steps and kinds of limits, as Go writes them. A limit begins with its kind, name and shape.
const TAKE 1
const PEEK 2
const SETTLE 3
const READ 4
const REPLACE 5
const BOOK 6
const MOVE 7
const ONCE 8
const BOOKED 9
const REPLACE_EACH 10
const BUCKET 1
const ALIGNED 2
const ANCHORED 3
const CALENDAR 4
const SLIDING 5
const LOGGING 6
const OF_CHARGE 'c8d' -- in an answer
const OF_BUCKET 'dI4dI4dI4dI4dI4d'
const OF_OTHER 'dI4dI4dI4'
const CHARGE '<BBdI4B' -- the index of its key, the index of its log's key or 0, n, the number of limits

-- The first byte of an answer.
const DENIED '\0'
const ALLOWED '\1'
const UNREADY '\2'
const SKEWED '\3'

-- parse returns a request as a table: the step, the format of the answer, and the charges. Each
-- charge has the indexes of its two keys, n, whether n is above zero, whether it has a log, and
-- its limits from index 7 on.
local TAKES = {
	'<BBc0Bc0BdI4dI4dI4dI4dI4', -- never, count, cost, its parts, room, its parts
	'<BBc0Bc0BdI4dI4dI4',       -- never, count, ref, period
	'<BBc0Bc0BdI4dI4',          -- never, count, period
	'<BBc0Bc0BdI4dI4dI4dI4dI4', -- never, count, starts of four windows
	'<BBc0Bc0BdI4dI4dI4',       -- never, count, ref, period
	'<BBc0Bc0BdI4dI4',          -- never, count, period
}

-- The formats of answers. Each has those that continue it: with a charge, a bucket, or another limit.
local no_charge = {format = '<c1'}

local function continued(format, with)
	format[with] = {format = format.format .. with}
	return format[with]
end

local function parse(body)
	local step, count = byte(body, 1, 2)
	local op, format, at = {step}, no_charge, 3
	for i = 1, count do
		local key, ring, nh, nl, limits, first = unpack_from(CHARGE, body, at)
		local c = {key, ring, nh, nl, nh > 0 or nl > 0, false}
		format, at = format[OF_CHARGE] or continued(format, OF_CHARGE), first
		for k = 7, 6 + limits do
			local kind = byte(body, at)
			local l = {unpack_from(TAKES[kind], body, at)}
			local state = kind == BUCKET and OF_BUCKET or OF_OTHER
			format = format[state] or continued(format, state)
			c[k], at, c[6] = l, l[#l], c[6] or kind == LOGGING
		end
		op[i + 2] = c
	end
	op[2] = format.format
	return op
end

-- The states that counters get if all limits allow: ten values for each.
local planned = {}
-- The answer: its status; for each charge an epoch and a revision; for each limit its counter: six
-- values, or eleven for a bucket, with its refunds.
local answer = {}

local plans, filled = 0, 0

-- pour adds the cost of a charge to the backlog of a bucket, whose counter is c, or nil if it has
-- none. It returns whether the bucket has room for the cost, the new backlog in ns and parts, and
-- when that will have drained. It returns nil if the clock went back.
local function pour(c, l)
	local ah, al, bh, bl = l[7], l[8], l[9], l[10] -- its cost
	if c then
		local sinceh, sincel = nowh - c[AT], nowl - c[AT + 1]
		if sincel < 0 then sinceh, sincel = sinceh - 1, sincel + BILLION end
		if sinceh < 0 then return nil end
		local lefth, leftl = c[A] - sinceh, c[A + 1] - sincel
		if leftl < 0 then lefth, leftl = lefth - 1, leftl + BILLION end
		if lefth >= 0 then
			ah, al, bh, bl = ah + lefth, al + leftl, bh + c[B], bl + c[B + 1]
			if bl >= BILLION then bh, bl = bh + 1, bl - BILLION end
			if bh > l[5] or bh == l[5] and bl >= l[6] then -- the parts make a whole nanosecond
				al, bh, bl = al + 1, bh - l[5], bl - l[6]
				if bl < 0 then bh, bl = bh - 1, bl + BILLION end
			end
			if al >= BILLION then ah, al = ah + 1, al - BILLION end
		end
	end
	local untilh, untill = nowh + ah, nowl + al
	if bh > 0 or bl > 0 then untill = untill + 1 end
	if untill >= BILLION then untilh, untill = untilh + 1, untill - BILLION end
	local fits = bh < l[13] or bh == l[13] and bl <= l[14]
	if ah ~= l[11] then
		fits = ah < l[11]
	elseif al ~= l[12] then
		fits = al < l[12]
	end
	return fits and l[4] == 0, ah, al, bh, bl, untilh, untill
end

-- weigh returns whether all limits of a charge let it pass, or trouble if that cannot be
-- decided here. It plans the new states, and adds the counters to the answer, so that package
-- limit can make the same decisions.
local function weigh(a, charge)
	local allowed, counters = true, a[COUNTERS]
	answer[filled + 1], answer[filled + 2] = a[EPOCH], a[REVISION]
	filled = filled + 2
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
			if inherits(counters, charge, 7, l[3]) then return false, UNREADY end
		end
		local allows, ath, atl, ah, al, bh, bl, untilh, untill
		if kind == BUCKET then
			ath, atl = nowh, nowl
			allows, ah, al, bh, bl, untilh, untill = pour(c, l)
			if allows == nil then return false, UNREADY end
			for j = 1, 11 do answer[filled + j] = c and c[AT - 1 + j] or 0 end -- to CHANGES
			filled = filled + 11
		else
			trouble = nil
			allows, ath, atl, ah, al, bh, bl, untilh, untill = ask[kind](a, c, l, charge, answer, filled)
			if trouble then return false, trouble end
			filled = filled + 6
		end
		allowed = allowed and allows
		if kind ~= LOGGING and charge[5] then
			if not c then c = {name, l[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, true} end -- new
			planned[plans + 1], planned[plans + 2], planned[plans + 3], planned[plans + 4], planned[plans + 5] = a, c, ath, atl, ah
			planned[plans + 6], planned[plans + 7], planned[plans + 8], planned[plans + 9], planned[plans + 10] = al, bh, bl, untilh, untill
			plans = plans + 10
		end
	end
	return allowed
end

-- enter adds a charge to the log of its account, and makes the changes that every charge makes.
local function enter(a, charge)
	if not a[LIVE] then give_epoch(a) end
	a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, nowh, nowl, a[REVISION] + 1
	if charge[6] then log_charge(a, charge) end
end

-- carry_out stores the planned states in the accounts, which are live.
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

-- take is the step that takes all charges, or none if a limit denies one. PEEK takes none.
local function take(body, base)
	local op = parsed[body]
	if not op then
		op = parse(body)
		parsed[body] = op
	end
	local allowed = true
	for i = 3, #op do
		local charge = op[i]
		local a = find(KEYS[base + charge[1]], charge[2] > 0 and KEYS[base + charge[2]])
		if nowh < a[SEEN] or nowh == a[SEEN] and nowl < a[SEEN + 1] then return UNREADY end
	end
	plans, filled = 0, 1
	for i = 3, #op do
		local charge = op[i]
		local a = touched[KEYS[base + charge[1]]]
		local allows, trouble = weigh(a, charge)
		if trouble then return trouble end
		allowed = allowed and allows
	end
	answer[1] = allowed and ALLOWED or DENIED
	if op[1] == PEEK or not allowed then return pack(op[2], unpack(answer, 1, filled)) end

	local slot = 2
	for i = 3, #op do
		local charge = op[i]
		local a = touched[KEYS[base + charge[1]]]
		if charge[5] then enter(a, charge) end
		answer[slot], answer[slot + 1] = a[EPOCH], a[REVISION]
		slot = slot + 2
		for k = 7, #charge do slot = slot + (charge[k][1] == BUCKET and 11 or 6) end
	end
	carry_out()
	return pack(op[2], unpack(answer, 1, filled))
end
