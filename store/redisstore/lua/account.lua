-- The exact arithmetic of package limit, on the server.
--
-- Whole numbers beyond 2^53 are not exact in Lua, so a number is a pair:
-- hi * 1e9 + lo, with 0 <= lo < 1e9. A time is its seconds and nanoseconds. The
-- caller has multiplied and divided by a limit's rate: here costs are only added,
-- subtracted and compared. Rare cases are not handled here: the answer is UNREADY,
-- and the caller prepares the account in Go.
--
-- Redis runs the whole text for each call, and defining the functions would cost more
-- than most decisions. So takes from buckets are straight-line code below, and all other
-- functions are defined in rest(), which is only run when they are needed. Names in
-- capitals are constants, which script.go replaces.

const BILLION 1000000000

-- The indexes of an account's table. A number takes two.
const LIVE 1      -- false if nothing is in use
const DIRTY 2     -- true if the account must be written
const RAW 3       -- the account's bytes in Redis
const KEY 4
const RING 5      -- the key of the log's ring
const COUNTERS 6
const LOG 7       -- or false
const FULL 8
const SEEN 10
const EPOCH 12
const REVISION 13
const HOW_MANY 14 -- the number of counters when the account was read
const LOGGED 15   -- 1 if the account had a log then
const HEAD_END 17 -- after a byte that is 0
const HEAD '<dI4dI4c8dBBB'      -- the format of the account's bytes from FULL on
const WRITTEN '<BdI4dI4c8dBBB'  -- the same after VERSION
const HEAD_BYTES 44
const VERSION 1

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

local unpack_from, pack, call, byte = struct.unpack, struct.pack, redis.call, string.byte

local touched, order = {}, {} -- accounts that this call has read, by key and in order
local nowh, nowl              -- the time of this call
local rest                    -- defined below

-- F has the functions of rest(), and their common variables: the time, h and l; and trouble,
-- which is UNREADY or SKEWED if an operation cannot be done here.
local F = {}

-- read_account decodes an account.
local function read_account(raw, key)
	local counters = {}
	local a = {true, false, raw, key, false, counters, false, unpack_from(HEAD, raw, 2)}
	local at = a[HEAD_END]
	for i = 1, a[HOW_MANY] do
		local c = {unpack_from(COUNTER, raw, at)}
		counters[i], at = c, c[COUNTER_END]
	end
	if a[LOGGED] == 1 then at = F.read_log(a, raw, at) end
	if a[LOG] then a[RING] = key .. ':log' end -- even if this call does not use the log
	return a
end

-- foreign raises an error for a key that another program has written.
local function foreign(key, raw)
	error(key .. ': ' .. (type(raw) == 'table' and raw.err or 'it holds what go-ratelimit has not written'), 0)
end

-- find returns the account of a key. The account is not live if nothing is in use.
local function find(key, ring)
	local a = touched[key]
	if not a then
		local raw = redis.pcall('GET', key)
		if raw then
			if type(raw) == 'table' or #raw < HEAD_BYTES or byte(raw) ~= VERSION then foreign(key, raw) end
			if byte(raw, 43) > 0 and not F.read_log then rest() end
			local whole
			whole, a = pcall(read_account, raw, key)
			if not whole then foreign(key, raw) end
			if a[FULL] < nowh or a[FULL] == nowh and a[FULL + 1] <= nowl then a = nil end
		end
		a = a or {false, false, '', key, false, {}, false, 0, 0, nowh, nowl, NO_EPOCH, 0}
		touched[key], order[#order + 1] = a, a
	end
	if ring then a[RING] = ring end
	return a
end

-- give_epoch gives an account an epoch that its key has not had before. A call needs one epoch only,
-- because no key gets two in one call.
local epoch

local function give_epoch(a)
	if not epoch then
		local unique = redis.sha1hex(KEYS[1] .. ARGV[1])
		epoch = pack('>I4I2I2', 2147483648 + tonumber(string.sub(unique, 1, 7), 16), tonumber(string.sub(unique, 9, 12), 16), 0)
	end
	a[LIVE], a[FULL], a[FULL + 1], a[EPOCH], a[REVISION] = true, 0, 0, epoch, 0
end

-- bytes_of encodes an account.
local function bytes_of(a)
	local counters, log = a[COUNTERS], a[LOG]
	if #counters == 1 and not log then
		local c = counters[1]
		return pack(WRITTEN .. COUNTER, VERSION, a[8], a[9], a[10], a[11], a[12], a[13], 1, 0, 0,
			#c[1], c[1], #c[2], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15])
	end
	local out = {pack(WRITTEN, VERSION, a[8], a[9], a[10], a[11], a[12], a[13], #counters, log and 1 or 0, 0)}
	for i = 1, #counters do
		local c = counters[i]
		out[i + 1] = pack(COUNTER, #c[1], c[1], #c[2], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15])
	end
	if log then out[#out + 1] = F.log_bytes(log) end
	return table.concat(out)
end
