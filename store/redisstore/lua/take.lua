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
const CHARGE '<BdI4I4c0' -- the index of its key, n, its limits

-- The first byte of an answer.
const DENIED '\0'
const ALLOWED '\1'
const UNREADY '\2'
const SKEWED '\3'

local TAKES = {
	'<BBc0Bc0BdI4dI4dI4dI4dI4', -- never, count, cost, its parts, room, its parts
	'<BBc0Bc0BdI4dI4dI4',       -- never, count, ref, period
	'<BBc0Bc0BdI4dI4',          -- never, count, period
	'<BBc0Bc0BdI4dI4dI4dI4dI4', -- never, count, starts of four windows
	'<BBc0Bc0BdI4dI4dI4',       -- never, count, ref, period
	'<BBc0Bc0BdI4dI4',          -- never, count, period
	limits = {}, how_many = 0,
}

-- limits_of returns the limits that a charge, or a settlement, has in a request. The library keeps them by their
-- bytes, which most requests have in common.
const MOST_LIMITS 1024
local function limits_of(kinds, bytes)
	local limits = kinds.limits[bytes]
	if limits then return limits end
	limits = {format = OF_CHARGE, logged = false}
	local at = 1
	while at <= #bytes do
		local kind = byte(bytes, at)
		local l = {unpack_from(kinds[kind], bytes, at)}
		limits[#limits + 1], at, limits.logged = l, l[#l], limits.logged or kind == LOGGING
		limits.format = limits.format .. (kind == BUCKET and OF_BUCKET or OF_OTHER)
	end
	if kinds.how_many >= MOST_LIMITS then kinds.limits, kinds.how_many = {}, 0 end
	kinds.limits[bytes], kinds.how_many = limits, kinds.how_many + 1
	return limits
end

-- The formats of answers. Each has those that continue it, with a charge. When there are too many, all are made anew.
local no_charge, how_many_formats = {format = '<c1'}, 0

local function continued(format, with)
	if not format[with] then
		format[with], how_many_formats = {format = format.format .. with}, how_many_formats + 1
		if how_many_formats >= MOST_LIMITS then no_charge, how_many_formats = {format = '<c1'}, 0 end
	end
	return format[with]
end

-- The charges of the present take: their accounts, limits and amounts, and the index in the answer before each of them.
local accounts, limits_asked, high, low, before = {}, {}, {}, {}, {}

-- weigh reports whether all limits of a charge let it pass, and adds their counters to the answer. It sets trouble if
-- that cannot be decided here.
local function weigh(a, limits, nh, nl, f)
	local allowed, counters = true, a[COUNTERS]
	answer[f + 1], answer[f + 2] = a[EPOCH], a[REVISION]
	f = f + 2
	if limits.logged and a[LOG] then log_ready(a, nh > 0 or nl > 0) end
	for k = 1, #limits do
		local l = limits[k]
		local kind, c = l[1], counters[l[2]]
		if not c and #counters > 0 and kind ~= LOGGING and inherits(counters, limits, l[3]) then trouble = UNREADY end
		allowed = ask[kind](a, c, l, nh, nl, f) and allowed
		if trouble then return false, f end
		f = f + (kind == BUCKET and 11 or 6)
	end
	return allowed, f
end

-- enter charges an account.
local function enter(a, limits, nh, nl)
	if not a[LIVE] then give_epoch(a) end
	a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, nowh, nowl, a[REVISION] + 1
	if limits.logged then log_charge(a, limits, nh, nl) end
	for k = 1, #limits do
		local l = limits[k]
		if l[1] ~= LOGGING then charge[l[1]](a, counter(a, l), l, nh, nl) end
	end
end

-- take is the step that takes all charges, or none if a limit denies one. PEEK takes none.
local function take(body, base, at)
	local step, count = byte(body, at, at + 1)
	local format = no_charge
	at = at + 2
	for i = 1, count do
		local key, nh, nl, bytes, next = unpack_from(CHARGE, body, at)
		local a, limits = find(KEYS[base + key]), limits_of(TAKES, bytes)
		if nowh < a[SEEN] or nowh == a[SEEN] and nowl < a[SEEN + 1] then return UNREADY end
		accounts[i], limits_asked[i], high[i], low[i] = a, limits, nh, nl
		format, at = continued(format, limits.format), next
	end
	local allowed, filled = true, 1
	for i = 1, count do
		before[i] = filled
		local allows
		allows, filled = weigh(accounts[i], limits_asked[i], high[i], low[i], filled)
		if trouble then return trouble end
		allowed = allowed and allows
	end
	answer[1] = allowed and ALLOWED or DENIED
	if allowed and step == TAKE then
		for i = 1, count do
			local a, nh, nl = accounts[i], high[i], low[i]
			if nh > 0 or nl > 0 then enter(a, limits_asked[i], nh, nl) end
			answer[before[i] + 1], answer[before[i] + 2] = a[EPOCH], a[REVISION]
		end
	end
	return pack(format.format, unpack(answer, 1, filled))
end
