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
const OF_WINDOW 'dI4dI4dI4'
const OF_NUMBER 'dI4'
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

-- read_limits decodes the limits that a charge, or a settlement, has in a request. The library keeps them by their
-- bytes, which most requests have in common.
const MOST_LIMITS 1024
local function read_limits(kinds, bytes)
	local limits = {format = '', logged = false, counted = false}
	local at = 1
	while at <= #bytes do
		local kind = byte(bytes, at)
		local l = {unpack_from(kinds[kind], bytes, at)}
		limits[#limits + 1], at = l, l[#l]
		limits.logged, limits.counted = limits.logged or kind == LOGGING, limits.counted or kind ~= LOGGING
		limits.format = limits.format .. (kind == BUCKET and OF_BUCKET or kind == LOGGING and OF_NUMBER or OF_WINDOW)
	end
	limits.format = OF_CHARGE .. (limits.logged and OF_NUMBER or '') .. limits.format
	if kinds.how_many >= MOST_LIMITS then kinds.limits, kinds.how_many = {}, 0 end
	kinds.limits[bytes], kinds.how_many = limits, kinds.how_many + 1
	return limits
end

-- The formats of answers. Each has those that continue it, with a charge. When there are too many, all are made anew.
local no_charge, how_many_formats = {format = '<c1'}, 0

local function extended(format, with)
	local longer = {format = format.format .. with}
	format[with], how_many_formats = longer, how_many_formats + 1
	if how_many_formats >= MOST_LIMITS then no_charge, how_many_formats = {format = '<c1'}, 0 end
	return longer
end

-- The charges of the present take: their accounts, limits and amounts, and the index in the answer before each of them.
local accounts, limits_asked, high, low, before = {}, {}, {}, {}, {}

-- weigh reports whether all limits of a charge let it pass, and adds their counters to the answer. It sets trouble if
-- that cannot be decided here.
local function weigh(a, limits, nh, nl, f)
	local allowed, counters, log = true, a[COUNTERS], a[LOG]
	f = f + 2
	if limits.logged then
		if log then log_ready(a, nh > 0 or nl > 0) end
		if trouble then return false, f end
		answer[f + 1], answer[f + 2], f = log and log[NEWEST] or 0, log and log[NEWEST + 1] or 0, f + 2
	end
	for k = 1, #limits do
		local l = limits[k]
		local kind = l[1]
		if kind == LOGGING then
			allowed, f = ask_log(a, l, nh, nl, f) and allowed, f + 2
		else
			local c = counters[l[2]]
			if not c and #counters > 0 and inherits(counters, limits, l[3]) then trouble = UNREADY end
			allowed, f = ask[kind](a, c, l, nh, nl, f) and allowed, f + (kind == BUCKET and 11 or 6)
		end
	end
	return allowed, f
end

-- add_rooms adds to the answer when there is room in each log that was asked.
local function add_rooms(format, count, f)
	for i = 1, count do
		for _, l in ipairs(limits_asked[i]) do
			if l[1] == LOGGING then
				answer[f + 1], answer[f + 2] = room_at(accounts[i], l, high[i], low[i])
				format, f = format[OF_NUMBER] or extended(format, OF_NUMBER), f + 2
			end
		end
	end
	return format, f
end

-- enter charges an account.
local function enter(a, limits, nh, nl)
	if not a[LIVE] then give_epoch(a) end
	a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, nowh, nowl, a[REVISION] + 1
	if limits.logged then log_charge(a, limits, nh, nl) end
	if not limits.counted then return end
	for k = 1, #limits do
		local l = limits[k]
		if l[1] ~= LOGGING then charge[l[1]](a, counter(a, l), l, nh, nl) end
	end
end

-- take is the step that takes all charges, or none if a limit denies one. PEEK takes none.
local function take(body, base, at)
	local step, count = byte(body, at, at + 1)
	local format, allowed, filled = no_charge, true, 1
	at = at + 2
	for i = 1, count do
		local key, nh, nl, bytes, next = unpack_from(CHARGE, body, at)
		local a, limits, allows = find(KEYS[base + key]), TAKES.limits[bytes] or read_limits(TAKES, bytes), nil
		if nowh < a[SEEN] or nowh == a[SEEN] and nowl < a[SEEN + 1] then return UNREADY end
		accounts[i], limits_asked[i], high[i], low[i], before[i] = a, limits, nh, nl, filled
		allows, filled = weigh(a, limits, nh, nl, filled)
		if trouble then return trouble end
		format = format[limits.format] or extended(format, limits.format)
		allowed, at = allowed and allows, next
	end
	answer[1] = allowed and ALLOWED or DENIED
	if not allowed then format, filled = add_rooms(format, count, filled) end
	for i = 1, count do
		local a, nh, nl, f = accounts[i], high[i], low[i], before[i]
		if allowed and step == TAKE and (nh > 0 or nl > 0) then enter(a, limits_asked[i], nh, nl) end
		answer[f + 1], answer[f + 2] = a[EPOCH], a[REVISION]
	end
	return pack(format.format, unpack(answer, 1, filled))
end
