-- A log is a ring of entries, under a key of its own, and the windows over it. The indexes of a
-- log's table:
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
const WINDOW '<dI4ddI4'
-- An entry of the ring: a time, and an amount.
const ENTRY '<dI4dI4'
const ENTRY_BYTES 24
const FIRST_SIZE 8
const READ_TOGETHER 8
const MOST_ENTRIES 4096 -- in a longer ring, Go merges neighbours

-- The entries of a log are read when they are needed, and cached in log.entries by their slot
-- in the ring; log.chunks has the bytes that were read. log.changed has the slots that must be
-- written. log.whole has the bytes of a new ring.

function F.read_log(a, raw, at)
	local log, windows = {unpack_from(LOG_HEAD, raw, at)}, {}
	at = log[LOG_END]
	for i = 1, log[HOW_MANY_WINDOWS] do
		local w = {unpack_from(WINDOW, raw, at)}
		windows[i], at = w, w[WINDOW_END]
	end
	log.windows, log.entries, log.chunks, log.changed, a[LOG] = windows, {}, {}, {}, log
	return at
end

function F.log_bytes(log)
	local out = {pack(LOG_HEAD, log[1], log[2], log[3], log[4], log[5], log[6], log[7], #log.windows)}
	for _, w in ipairs(log.windows) do out[#out + 1] = pack(WINDOW, w[1], w[2], w[3], w[4], w[5]) end
	return table.concat(out)
end

-- entry returns an entry. Entries are read from Redis eight at a time.
function F.entry(a, i)
	local log = a[LOG]
	local slot = i % log[SIZE]
	local e = log.entries[slot]
	if e then return e end
	local first = slot - slot % READ_TOGETHER
	local bytes = log.chunks[first]
	if not bytes then
		local from, to = first * ENTRY_BYTES, (first + READ_TOGETHER) * ENTRY_BYTES
		bytes = log.whole and string.sub(log.whole, from + 1, to) or call('GETRANGE', a[RING], from, to - 1)
		log.chunks[first] = bytes
	end
	e = {unpack_from(ENTRY, bytes, (slot - first) * ENTRY_BYTES + 1)}
	log.entries[slot] = e
	return e
end

function F.put(log, i, ath, atl, nh, nl)
	local slot = i % log[SIZE]
	log.entries[slot], log.changed[slot] = {ath, atl, nh, nl}, true
end

function F.window(log, h, l)
	for _, w in ipairs(log.windows) do
		if w[PERIOD] == h and w[PERIOD + 1] == l then return w end
	end
end

-- lower subtracts n from a window's sum. A sum that has reached the maximum is computed
-- again from the entries.
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

-- slide removes the entries that have left the window w.
function F.slide(a, w)
	local fromh, froml = F.minus(F.h, F.l, w[PERIOD], w[PERIOD + 1])
	while w[FIRST] < a[LOG][NEXT] do
		local e = F.entry(a, w[FIRST])
		if F.less(fromh, froml, e[1], e[2]) then return end
		w[FIRST] = w[FIRST] + 1
		F.lower(a, w, e[3], e[4])
	end
end

-- drop forgets the entries that have left all windows.
function F.drop(a)
	local log = a[LOG]
	local first = log[NEXT]
	for _, w in ipairs(log.windows) do
		F.slide(a, w)
		first = math.min(first, w[FIRST])
	end
	if first > log[OLDEST] then
		local e = F.entry(a, first - 1)
		log[DROPPED], log[DROPPED + 1], log[OLDEST] = e[1], e[2], first
	end
end

-- grow doubles the ring. Its entries are numbered anew.
function F.grow(a)
	local log, bytes = a[LOG], F.ring(a)
	local from = log[OLDEST] % log[SIZE] * ENTRY_BYTES
	log.whole = string.sub(bytes, from + 1) .. string.sub(bytes, 1, from) .. string.rep('\0', #bytes)
	for _, w in ipairs(log.windows) do w[FIRST] = w[FIRST] - log[OLDEST] end
	log[SIZE], log[NEXT], log[OLDEST] = 2 * log[SIZE], log[NEXT] - log[OLDEST], 0
	log.entries, log.chunks, log.changed = {}, {}, {}
end

function F.full(log) return log[NEXT] - log[OLDEST] >= log[SIZE] end

-- log_ready sets F.trouble unless the log can be used: it is complete, has a window of the
-- period, no entry in the future, and can have one more entry if adds is set.
function F.log_ready(a, periodh, periodl, adds)
	local log = a[LOG]
	if not log then return end
	if not log.whole and not log.checked then
		local bytes = redis.pcall('STRLEN', a[RING])
		if type(bytes) == 'table' then foreign(a[RING], bytes) end
		log.checked = bytes == log[SIZE] * ENTRY_BYTES
		if not log.checked then F.trouble = UNREADY end
	end
	if log[NEXT] > log[OLDEST] and (F.ahead(log[NEWEST], log[NEWEST + 1]) or not F.window(log, periodh, periodl)) then
		F.trouble = UNREADY
	end
	if F.trouble or not adds or not F.full(log) then return end
	F.drop(a)
	if F.full(log) and log[SIZE] >= MOST_ENTRIES then F.trouble = UNREADY end
end

-- ensure_window returns the log's window of a period. It creates the log and the window if they
-- are missing.
function F.ensure_window(a, periodh, periodl)
	if not a[LOG] then
		local h, l = F.minus(F.h, F.l, 0, 1)
		a[LOG] = {FIRST_SIZE, 0, 0, h, l, 0, 0, windows = {}, entries = {}, chunks = {}, changed = {}, whole = string.rep('\0', FIRST_SIZE * ENTRY_BYTES)}
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
		if F.full(log) then F.grow(a) end
		F.put(log, log[NEXT], ath, atl, nh, nl)
		log[NEXT], log[NEWEST], log[NEWEST + 1] = log[NEXT] + 1, ath, atl
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

-- log adds an entry for a charge.
function F.log(a, charge)
	for k = 7, #charge do
		local l = charge[k]
		if l[1] == LOGGING then F.ensure_window(a, l[7], l[8]) end
	end
	F.add(a, F.h, F.l, charge[3], charge[4])
	F.log_in_use(a)
end

function F.ring(a)
	local log = a[LOG]
	local bytes = log.whole or redis.pcall('GET', a[RING]) or ''
	if type(bytes) == 'table' then foreign(a[RING], bytes) end
	for slot in pairs(log.changed) do
		local from, e = slot * ENTRY_BYTES, log.entries[slot]
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
	for slot in pairs(log.changed) do
		local e = log.entries[slot]
		call('SETRANGE', a[RING], slot * ENTRY_BYTES, pack(ENTRY, e[1], e[2], e[3], e[4]))
	end
end
