-- The exact arithmetic of package limit, on the server.
--
-- Whole numbers beyond 2^53 are not exact in Lua, so a number is a pair:
-- hi * 1e9 + lo, with 0 <= lo < 1e9. A time is its seconds and nanoseconds. The
-- caller has multiplied and divided by a limit's rate: here costs are only added,
-- subtracted and compared. Rare cases are not handled here: the answer is UNREADY,
-- and the caller prepares the account in Go.
--
-- Redis runs this text once, when it loads the library, and keeps what it defines. Names in
-- capitals are constants, which script.go replaces.

const BILLION 1000000000

-- A whole number as text, because Redis formats those that it gets, which takes longer.
local function decimal(n) return string.format('%d', n) end

-- The state of one call, which begin resets: the library outlives it.
local KEYS, ARGV
local call, pack, unpack_from, byte -- functions that are not there while the library is loaded
local touched                 -- accounts that the call has read, by key
local nowh, nowl = 0, 0       -- the time of the call
local trouble                 -- UNREADY or SKEWED if an operation cannot be done here
local epoch                   -- of the accounts that the call creates
local pages, marks            -- of the books, and of operations that happen once

local function begin(keys, args)
	KEYS, ARGV = keys, args
	call, pack, unpack_from, byte = redis.call, struct.pack, struct.unpack, string.byte
	touched, epoch, pages, marks = {}, nil, {}, {}
end

-- foreign raises an error for a key that another program has written.
local function foreign(key, raw)
	error(key .. ': ' .. (type(raw) == 'table' and raw.err or 'it holds what go-ratelimit has not written'), 0)
end

