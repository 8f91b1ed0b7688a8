-- Accounts.

-- The indexes of an account's table. A number takes two.
const LIVE 1      -- false if nothing is in use
const DIRTY 2     -- true if the account must be written
const RAW 3       -- the account's bytes in Redis, up to the ring of its log
const KEY 4
const COUNTERS 5
const LOG 6       -- or false
const FULL 7
const SEEN 9
const EPOCH 11
const REVISION 12
const HOW_MANY 13 -- the number of counters when the account was read
const LOGGED 14   -- 1 if the account had a log then
const HEAD_END 16 -- after a byte that is 0
const HEAD '<dI4dI4c8dBBB'      -- the format of the account's bytes from FULL on
const WRITTEN '<BdI4dI4c8dBBB'  -- the same after VERSION
const HEAD_BYTES 44
const VERSION 1
const READ_LAST 399 -- the index of a byte that most accounts do not have without their ring

-- The indexes of a counter: its limit, its state as in package limit, its refunds.
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

const NO_EPOCH '\0\0\0\0\0\0\0\0'
const MOST_COUNTERS 250 -- if there are more, Go removes those that are full again

-- counter returns the counter of a limit, and creates it if the account has none. An account's counters are a list, in
-- which each stands under the name of its limit as well.
local function counter(a, l)
	local counters, name = a[COUNTERS], l[2]
	local c = counters[name]
	if not c then
		c = {name, l[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		counters[#counters + 1], counters[name] = c, c
	end
	return c
end

-- read_account decodes an account, and returns the index of its log's ring as well.
local function read_account(raw, key)
	local counters = {}
	local a = {true, false, raw, key, counters, false, unpack_from(HEAD, raw, 2)}
	local at = a[HEAD_END]
	for i = 1, a[HOW_MANY] do
		local c = {unpack_from(COUNTER, raw, at)}
		counters[i], counters[c[LIMIT]], at = c, c, c[COUNTER_END]
	end
	if a[LOGGED] == 1 then at = read_log(a, raw, at) end
	return a, at
end

-- Accounts as this library has last read or written them, by key. One is used again if Redis still has the
-- same bytes, which no other state of an account has: each change gives it another revision.
const MOST_KNOWN 1024
local known, how_many_known = {}, 0

-- remember keeps an account, with the bytes that Redis has.
local function remember(a)
	local log = a[LOG]
	if log then
		if log.cached > MOST_CACHED then log.entries, log.cached = {}, 0 end
		if #a[RAW] ~= log.ring then log.ring, a.last = #a[RAW], decimal(#a[RAW] - 1) end
	end
	if how_many_known >= MOST_KNOWN then known, how_many_known = {}, 0 end
	known[a[KEY]], how_many_known = a, how_many_known + 1
end

-- decode returns the account of a key whose first bytes are these.
local function decode(key, raw)
	if type(raw) == 'table' or #raw < HEAD_BYTES or byte(raw) ~= VERSION then foreign(key, raw) end
	local readable, a, ring = pcall(read_account, raw, key)
	if not readable and #raw > READ_LAST then
		readable, a, ring = pcall(read_account, call('GET', key), key)
	end
	if not readable then foreign(key, raw) end
	a[RAW] = string.sub(a[RAW], 1, ring - 1)
	if a[LOG] then a[LOG].complete = call('STRLEN', key) == ring - 1 + a[LOG][SIZE] * ENTRY_BYTES end
	return a
end

-- blank returns an account of which nothing is in use.
local function blank(key)
	return {false, false, '', key, {}, false, 0, 0, nowh, nowl, NO_EPOCH, 0}
end

-- find returns the account of a key. The account is not live if nothing is in use.
local function find(key)
	local a = touched[key]
	if a then return a end
	local raw
	a = known[key]
	if a then
		if ARGV[1] ~= '' then known[key], how_many_known = nil, how_many_known - 1 end -- unless the call changes nothing
		raw = a[LOG] and redis.pcall('GETRANGE', key, '0', a.last) or redis.pcall('GET', key)
		if raw ~= a[RAW] then a = nil end
	end
	if not a and raw ~= false then -- false is that GET has found nothing
		raw = redis.pcall('GETRANGE', key, '0', READ_LAST)
		a = (raw ~= '' or call('EXISTS', key) == 1) and decode(key, raw)
	end
	if not a or a[FULL] < nowh or a[FULL] == nowh and a[FULL + 1] <= nowl then
		a = blank(key)
	end
	touched[key] = a
	return a
end

-- give_epoch gives an account an epoch that its key has not had before. A call needs one epoch only,
-- because no key gets two in one call.
local function give_epoch(a)
	if not epoch then
		local unique = redis.sha1hex(KEYS[1] .. ARGV[1])
		epoch = pack('>I4I2I2', 2147483648 + tonumber(string.sub(unique, 1, 7), 16), tonumber(string.sub(unique, 9, 12), 16), 0)
	end
	a[LIVE], a[FULL], a[FULL + 1], a[EPOCH], a[REVISION] = true, 0, 0, epoch, 0
end

const ONE_WINDOW '<BdI4dI4c8dBBBddddI4dI4BdI4ddI4' -- the bytes of an account that has only a log
const TWO_WINDOWS '<BdI4dI4c8dBBBddddI4dI4BdI4ddI4dI4ddI4'

local formats = {} -- of accounts, by how many counters and windows they have

-- bytes_of encodes an account without the ring of its log.
local function bytes_of(a)
	local counters, log, v, n = a[COUNTERS], a[LOG], values, 10
	if #counters == 1 and not log then
		local c = counters[1]
		return pack(WRITTEN .. COUNTER, VERSION, a[7], a[8], a[9], a[10], a[11], a[12], 1, 0, 0,
			#c[1], c[1], #c[2], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15])
	end
	local windows = log and log.windows or {}
	if log and #counters == 0 and #windows <= 2 then
		local w, x = windows[1], windows[2] or windows[1] -- a format for one window leaves x out
		return pack(#windows == 1 and ONE_WINDOW or TWO_WINDOWS, VERSION, a[7], a[8], a[9], a[10], a[11], a[12], 0, 1, 0,
			log[1], log[2], log[3], log[4], log[5], log[6], log[7], #windows,
			w[1], w[2], w[3], w[4], w[5], x[1], x[2], x[3], x[4], x[5])
	end
	local shape = #counters * 1000 + #windows
	local format = formats[shape]
	if not format then
		format = WRITTEN .. string.rep(string.sub(COUNTER, 2), #counters)
		if log then format = format .. string.sub(LOG_HEAD, 2) .. string.rep(string.sub(WINDOW, 2), #windows) end
		formats[shape] = format
	end
	for i = 1, #counters do
		local c = counters[i]
		v[n], v[n + 1], v[n + 2], v[n + 3], n = #c[1], c[1], #c[2], c[2], n + 4
		v[n], v[n + 1], v[n + 2], v[n + 3], v[n + 4], v[n + 5], n = c[3], c[4], c[5], c[6], c[7], c[8], n + 6
		v[n], v[n + 1], v[n + 2], v[n + 3], v[n + 4], v[n + 5], v[n + 6], n = c[9], c[10], c[11], c[12], c[13], c[14], c[15], n + 7
	end
	if log then
		v[n], v[n + 1], v[n + 2], v[n + 3], v[n + 4], v[n + 5], v[n + 6], v[n + 7], n = log[1], log[2], log[3], log[4], log[5], log[6], log[7], #windows, n + 8
		for i = 1, #windows do
			local w = windows[i]
			v[n], v[n + 1], v[n + 2], v[n + 3], v[n + 4], n = w[1], w[2], w[3], w[4], w[5], n + 5
		end
	end
	return pack(format, VERSION, a[7], a[8], a[9], a[10], a[11], a[12], #counters, log and 1 or 0, 0, unpack(v, 10, n - 1))
end
