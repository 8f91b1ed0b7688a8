-- A log is a ring of entries, whose bytes follow those of the account, and the windows over it. The indexes
-- of a log's table:
const SIZE 1
const OLDEST 2
const NEXT 3
const DROPPED 4
const NEWEST 6
const HOW_MANY_WINDOWS 8
const LOG_END 9
const LOG_HEAD '<ddddI4dI4B'
-- The indexes of a window: the entries from FIRST on are in it.
const PERIOD 1
const FIRST 3
const SUM 4
const WINDOW_END 6
const LEAVES 6 -- a time before which no entry leaves the window; it is not stored
const WINDOW '<dI4ddI4'
-- An entry of the ring: a time, and an amount.
const ENTRY '<dI4dI4'
const ENTRY_BYTES 24
const FIRST_SIZE 8
const READ_TOGETHER 8
const MOST_ENTRIES 4096 -- in a longer ring, Go merges neighbours

-- A window is in the list log.windows, and in log.by under the name of each limit that has asked for it.
-- The entries of a log are read when they are needed, and cached in log.entries by their slot
-- in the ring; log.cached is how many. log.changed has the slots that must be written. log.whole has
-- the bytes of a new ring. log.windowed are the limits of the last charge, and log.settled those of the last settlement
-- that has logs alone: the log has all of their windows.
const MOST_CACHED 64 -- entries that are kept between calls
const MOST_TOGETHER 256 -- entries that are written at once
const SLACK 60000       -- milliseconds

local values = {} -- which are about to be packed

local function read_log(a, raw, at)
	local log, windows = {unpack_from(LOG_HEAD, raw, at)}, {}
	at = log[LOG_END]
	for i = 1, log[HOW_MANY_WINDOWS] do
		local w = {unpack_from(WINDOW, raw, at)}
		windows[i], at = w, w[WINDOW_END]
		w[LEAVES], w[LEAVES + 1] = 0, 0
	end
	log.windows, log.by, log.entries, log.cached, log.changed, a[LOG] = windows, {}, {}, 0, {}, log
	return at
end

-- entry returns an entry. Entries are read from Redis eight at a time.
local function entry(a, i)
	local log = a[LOG]
	local slot, entries = i % log[SIZE], log.entries
	local e = entries[slot]
	if e then return e end
	if log.cached > MOST_CACHED and not next(log.changed) then
		entries = {}
		log.entries, log.cached = entries, 0
	end
	local first = slot - slot % READ_TOGETHER
	local from, to = first * ENTRY_BYTES, (first + READ_TOGETHER) * ENTRY_BYTES
	local bytes = log.whole and string.sub(log.whole, from + 1, to)
		or call('GETRANGE', a[KEY], decimal(#a[RAW] + from), decimal(#a[RAW] + to - 1))
	if #bytes ~= to - from then foreign(a[KEY], bytes) end
	for k = 0, READ_TOGETHER - 1 do
		if not entries[first + k] then entries[first + k] = {unpack_from(ENTRY, bytes, k * ENTRY_BYTES + 1)} end
	end
	log.cached = log.cached + READ_TOGETHER
	return entries[slot]
end

-- window returns the log's window for a limit of a name and a period, or nil if it has none.
local function window(log, name, h, l)
	local w = log.by[name]
	if w then return w end
	local windows = log.windows
	for i = 1, #windows do
		w = windows[i]
		if w[PERIOD] == h and w[PERIOD + 1] == l then
			log.by[name] = w
			return w
		end
	end
end

-- lower subtracts n from a window's sum. A sum that has reached the maximum is computed
-- again from the entries.
local function lower(a, w, nh, nl)
	if less(w[SUM], w[SUM + 1], MAX_HI, MAX_LO) then
		w[SUM], w[SUM + 1] = minus(w[SUM], w[SUM + 1], nh, nl)
		return
	end
	local h, l = 0, 0
	for i = w[FIRST], a[LOG][NEXT] - 1 do
		local e = entry(a, i)
		h, l = correct(h, l, e[3], e[4])
	end
	w[SUM], w[SUM + 1] = h, l -- only now: an entry that cannot be read must not lower the sum
end

-- change_sums adds a difference to the sum of each window that has entry i.
local function change_sums(a, log, i, dh, dl)
	local windows = log.windows
	for k = 1, #windows do
		local w = windows[k]
		if w[FIRST] <= i then
			local sumh = w[SUM]
			local h, l = sumh + dh, w[SUM + 1] + dl
			if l >= BILLION then h, l = h + 1, l - BILLION end
			if sumh < MAX_HI and h < MAX_HI then
				w[SUM], w[SUM + 1] = h, l
			elseif dh < 0 then
				lower(a, w, minus(0, 0, dh, dl))
			else
				w[SUM], w[SUM + 1] = correct(sumh, w[SUM + 1], dh, dl)
			end
		end
	end
end

-- slide removes the entries that have left the window w. It keeps until when no entry leaves it.
local function slide(a, w)
	if nowh < w[LEAVES] or nowh == w[LEAVES] and nowl < w[LEAVES + 1] then return end
	local fromh, froml = minus(nowh, nowl, w[PERIOD], w[PERIOD + 1])
	while w[FIRST] < a[LOG][NEXT] do
		local e = entry(a, w[FIRST])
		if less(fromh, froml, e[1], e[2]) then
			w[LEAVES], w[LEAVES + 1] = plus(e[1], e[2], w[PERIOD], w[PERIOD + 1])
			return
		end
		w[FIRST] = w[FIRST] + 1
		lower(a, w, e[3], e[4])
	end
end

-- drop forgets the entries that have left all windows.
local function drop(a)
	local log = a[LOG]
	local first = log[NEXT]
	for _, w in ipairs(log.windows) do
		slide(a, w)
		first = math.min(first, w[FIRST])
	end
	if first > log[OLDEST] then
		local e = entry(a, first - 1)
		log[DROPPED], log[DROPPED + 1], log[OLDEST] = e[1], e[2], first
	end
end

-- ring_bytes returns the ring as this call leaves it.
local function ring_bytes(a)
	local log = a[LOG]
	local bytes = log.whole or call('GETRANGE', a[KEY], decimal(#a[RAW]), '-1')
	for slot in pairs(log.changed) do
		local from, e = slot * ENTRY_BYTES, log.entries[slot]
		bytes = string.sub(bytes, 1, from) .. pack(ENTRY, e[1], e[2], e[3], e[4]) .. string.sub(bytes, from + ENTRY_BYTES + 1)
	end
	return bytes
end

-- grow doubles the ring. Its entries are numbered anew.
local function grow(a)
	local log, bytes = a[LOG], ring_bytes(a)
	local from = log[OLDEST] % log[SIZE] * ENTRY_BYTES
	log.whole = string.sub(bytes, from + 1) .. string.sub(bytes, 1, from) .. string.rep('\0', #bytes)
	for _, w in ipairs(log.windows) do w[FIRST] = w[FIRST] - log[OLDEST] end
	log[SIZE], log[NEXT], log[OLDEST] = 2 * log[SIZE], log[NEXT] - log[OLDEST], 0
	log.entries, log.cached, log.changed = {}, 0, {}
end

-- log_ready sets trouble unless the log can be used: it is complete, has no entry in the future, and can have one more
-- entry if adds is set.
local function log_ready(a, adds)
	local log = a[LOG]
	if not log.complete or nowh <= log[NEWEST] and ahead(log[NEWEST], log[NEWEST + 1]) and log[NEXT] > log[OLDEST] then
		trouble = UNREADY
	elseif adds and log[NEXT] - log[OLDEST] >= log[SIZE] then
		drop(a)
		if log[NEXT] - log[OLDEST] >= log[SIZE] and log[SIZE] >= MOST_ENTRIES then trouble = UNREADY end
	end
end

-- window_ready returns the log's window for a limit, or nil if it has none. It sets trouble if the log has entries, but
-- no such window.
local function window_ready(log, name, periodh, periodl)
	local w = log.by[name] or window(log, name, periodh, periodl)
	if not w and log[NEXT] > log[OLDEST] then trouble = UNREADY end
	return w
end

-- ensure_window gives an account a log with a window for a limit, if they are missing.
local function ensure_window(a, name, periodh, periodl)
	local log = a[LOG]
	if not log then
		local h, l = minus(nowh, nowl, 0, 1)
		log = {
			FIRST_SIZE, 0, 0, h, l, 0, 0, windows = {}, by = {}, entries = {}, cached = 0, changed = {}, complete = true,
			whole = string.rep('\0', FIRST_SIZE * ENTRY_BYTES),
		}
		a[LOG] = log
	end
	if not window(log, name, periodh, periodl) then
		log.windows[#log.windows + 1], log.longesth = {periodh, periodl, log[OLDEST], 0, 0, 0, 0}, nil
	end
end

-- add adds an entry that is not older than the newest one. Entries of one time are one.
local function add(a, ath, atl, nh, nl)
	local log = a[LOG]
	local i, merges = log[NEXT] - 1, log[NEWEST + 1] == atl and log[NEWEST] == ath and log[NEXT] > log[OLDEST]
	if merges then
		for _, w in ipairs(log.windows) do merges = merges and i >= w[FIRST] end
	end
	if merges then
		local e = entry(a, i)
		e[3], e[4] = correct(e[3], e[4], nh, nl)
		log.changed[i % log[SIZE]] = true
	else
		if log[NEXT] - log[OLDEST] >= log[SIZE] then grow(a) end
		i = log[NEXT]
		local slot = i % log[SIZE]
		log.entries[slot], log.changed[slot], log.cached = {ath, atl, nh, nl}, true, log.cached + 1
		log[NEXT], log[NEWEST], log[NEWEST + 1] = i + 1, ath, atl
	end
	change_sums(a, log, i, nh, nl)
end

-- find_longest finds the period of a log's longest window.
local function find_longest(log)
	local h, l = 0, 0
	for _, w in ipairs(log.windows) do
		if less(h, l, w[PERIOD], w[PERIOD + 1]) then h, l = w[PERIOD], w[PERIOD + 1] end
	end
	log.longesth, log.longestl = h, l
end

local function log_in_use(a)
	local log = a[LOG]
	if log[NEXT] == log[OLDEST] then return end
	if not log.longesth then find_longest(log) end
	local h, l = log[NEWEST] + log.longesth, log[NEWEST + 1] + log.longestl
	if l >= BILLION then h, l = h + 1, l - BILLION end
	if h >= a[FULL] then in_use_until(a, h, l) end
end

-- log_charge adds an entry for a charge of n.
local function log_charge(a, limits, nh, nl)
	if not a[LOG] or a[LOG].windowed ~= limits then
		for k = 1, #limits do
			local l = limits[k]
			if l[1] == LOGGING then ensure_window(a, l[2], l[7], l[8]) end
		end
		a[LOG].windowed = limits
	end
	add(a, nowh, nowl, nh, nl)
	log_in_use(a)
end

-- flush_ring writes the entries that have changed, neighbours at once.
local runs = {} -- the formats of so many neighbours
local function flush_ring(a)
	local changed, entries, v = a[LOG].changed, a[LOG].entries, values
	for first in pairs(changed) do
		if not changed[first - 1] or first % MOST_TOGETHER == 0 then
			local slot, n = first, 0
			repeat
				local e = entries[slot]
				v[n + 1], v[n + 2], v[n + 3], v[n + 4], n, slot = e[1], e[2], e[3], e[4], n + 4, slot + 1
			until not changed[slot] or slot % MOST_TOGETHER == 0
			runs[n] = runs[n] or '<' .. string.rep('dI4', n / 2)
			call('SETRANGE', a[KEY], decimal(#a[RAW] + first * ENTRY_BYTES), pack(runs[n], unpack(v, 1, n)))
		end
	end
end
