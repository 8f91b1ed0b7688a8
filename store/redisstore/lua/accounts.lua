-- Accounts: nodes decide with package limit, and the server compares and appends.
--
-- An account is a string: VERSION, and then records. A record is the length of its operations, these, and a trailer: when
-- the operations happened, a mark that no other record has, the total, the length of the string up to here, and the time
-- in milliseconds until which anything of the account may be in use. Two strings with the same trailer at the same place
-- are equal up to there.
--
-- The total is the sum of everything that was charged since the string began, takes and debts; refunds do not lower it.
-- A node that has read the string up to some trailer knows how much more than that can be charged before what it has
-- decided is no longer true: that is the spare amount. So its take is appended even if others have charged meanwhile.

const BILLION 1000000000
const VERSION '\2'
const TRAILER '<dI4c8dI4d'
const TRAILER_BYTES 40
const NEWEST '-40'
const MARK_BYTES 8
const BARRIER 1125899906842624 -- 2^50: what nodes must know of before they take raises the total by this, spare amounts are less
const FULL_TOTAL 4503599627370496 -- 2^52: beyond that, only a node that writes the string anew takes anything
const MOST 9007199254740992 -- 2^53: larger numbers are not exact

-- The state of one call, which begin resets: the library outlives it.
local KEYS, ARGV
local call, pack, unpack_from, byte -- functions that are not there while the library is loaded
local nowh, nowl, stamp       -- the time of the call
local late                    -- milliseconds by which that is after the time until which takes happen, at most
local written, keys, bytes, dues, begun = 0, {}, {}, {}, {} -- what is to be written: false in dues if a key does not expire later
local strict                  -- an operation is done as a whole, or not at all
local pages, marks            -- of the books, and of operations that happen once

local function begin(keys, args)
	KEYS, ARGV = keys, args
	call, pack, unpack_from, byte = redis.call, struct.pack, struct.unpack, string.byte
	written, pages, marks = 0, {}, {}
end

-- The indexes of an entry, which is a node's request about one account. Most entries are written as they are, and need
-- the first five values only.
const FLAGS 1
const KNOWN 2  -- the trailer up to which the node knows the string; '' if it has none
const DUE 3
const RECORD 4 -- what to write before the time and REST, if the string ends with KNOWN
const REST 5
const ENTRY '<BBc0dI4c0c28'
const SPARE 6
const ALWAYS_WEIGHT 7
const TAKE_WEIGHT 8
const LASTS 9   -- milliseconds by which the account may be longer in use than others know
const SKIP 10   -- bytes of RECORD before the operations
const CUT 11    -- bytes of the operations that are written always: those after them are takes
const ENTRY_END 12
const WHOLE_ENTRY '<BBc0dI4c0c28ddddI4I4'
const BESIDE 40 -- bytes of an entry after the first five values

-- Flags.
const ALONE 1   -- takes need a string that ends with KNOWN
const PROLONGS 2 -- DUE is later than what KNOWN says
const BEGINS 4  -- RECORD begins a new string
const DECIDES 8 -- a take depends on the entry

local function has(e, flag) return e[FLAGS] % (2 * flag) >= flag end

-- write notes that bytes are to be written to a key: as a new string, or behind what is there.
local function write(key, text, due, begins)
	written = written + 1
	keys[written], bytes[written], dues[written], begun[written] = key, text, due, begins
end

-- foreign notes that a key holds what this program has not written. It returns false.
local function foreign(e, fault)
	e.said = '!' .. e.key .. ': ' .. (fault or 'it holds what go-ratelimit has not written')
	if strict then error(string.sub(e.said, 2), 0) end
	return false
end

-- examine finds out what a node does not know, and reports whether its takes are true all the same. The string does not
-- end with what the node knows.
local function examine(e)
	local last, known = e.last, e[KNOWN]
	if type(last) == 'table' then return foreign(e, last.err) end
	e.text, e.total, e.length, e.due = '', 0, 0, 0
	if last == '' then
		if call('EXISTS', e.key) == 1 then return foreign(e) end
		if known == '' then return true end
		-- The key is gone. Nothing was in use any more if it has expired.
		local _, _, _, _, _, due = unpack_from(TRAILER, known)
		return due <= nowh * 1000 + nowl / 1000000 and not has(e, ALONE)
	end
	local h, l, _, fields
	e.length = call('STRLEN', e.key)
	if e.length <= TRAILER_BYTES or call('GETRANGE', e.key, '0', '0') ~= VERSION then return foreign(e) end
	h, l, _, e.total, fields, e.due = unpack_from(TRAILER, last)
	if fields ~= e.length then return foreign(e) end
	e.rewinds = nowh < h or nowh == h and nowl < l
	if known == last then return true end
	if known ~= '' then
		local _, _, _, total, length = unpack_from(TRAILER, known)
		if length < e.length and call('GETRANGE', e.key, length - TRAILER_BYTES, length - 1) == known then
			e.grown, e.text = true, call('GETRANGE', e.key, length, '-1')
			return e.total - total <= e[SPARE] and e.total <= FULL_TOTAL and not e.rewinds and not has(e, ALONE)
		end
	end
	e.text = call('GET', e.key)
	return false
end

-- compose sets the bytes that are written of an entry whose string does not end as the node knows, or whose takes do not
-- happen, and what is answered.
local function compose(e, passes)
	local from, weight = e[SKIP] + 1, e[ALWAYS_WEIGHT] + (passes and e[TAKE_WEIGHT] or 0)
	local operations = string.sub(e[RECORD], from, passes and -1 or from + e[CUT] - 1)
	if operations ~= '' then
		local begins = e.length == 0
		-- A debt of a take that the string does not have may bring back what that has left in a bucket.
		if e.rewinds or e[ALWAYS_WEIGHT] > 0 and not e.grown then weight = weight + BARRIER end
		local due = math.min(math.max(e[DUE] + late, e.due + e[LASTS]), MOST)
		local length = e.length + (begins and 1 or 0) + 4 + #operations + TRAILER_BYTES
		local text = (begins and VERSION or '') .. pack('<I4', #operations) .. operations .. stamp ..
			string.sub(e[REST], 1, MARK_BYTES) .. pack('<dI4d', math.min(e.total + weight, MOST), length, due)
		write(e.key, text, due > e.due and due, begins)
		e.text = e.text .. text
	end
	e.said = (e.grown and 'T' or 'A') .. e.text
end

local steps = {}
const ACCOUNTS 1
const BOOK 2
const MOVE 3
const ONCE 4

-- compare is accounts for a request that does not go as the node expects. passes reports whether it was decided at a time
-- that counts.
local function compare(body, base, at, count, passes)
	local entries = {}
	for i = 1, count do
		local e = {unpack_from(WHOLE_ENTRY, body, at)}
		at, e.key = e[ENTRY_END], KEYS[base + i - 1]
		e.last = redis.pcall('GETRANGE', e.key, NEWEST, '-1')
		e.exact = e.last == e[KNOWN] and (e.last ~= '' or call('EXISTS', e.key) == 0)
		if not e.exact and not examine(e) and has(e, DECIDES) then passes = false end
		entries[i] = e
	end
	local answer = {passes and '\1' or '\0'}
	for i = 1, count do
		local e = entries[i]
		if e.exact and (passes or e[CUT] == 0) then
			if passes and e[RECORD] ~= '' then
				write(e.key, e[RECORD] .. stamp .. e[REST], has(e, PROLONGS) and e[DUE], has(e, BEGINS))
			end
			e.said = 'E'
		elseif not e.said then
			if e.exact then
				examine(e)
				e.grown = e.last ~= ''
			end
			compose(e, passes)
		end
		answer[2 * i], answer[2 * i + 1] = pack('<I4', #e.said), e.said
	end
	return table.concat(answer)
end

local records, rests, flags, due_times = {}, {}, {}, {} -- of the entries of a request, as long as all strings end as the node knows

-- accounts is the step that compares and appends. The request has the number of entries, the time at which the node has
-- decided, and the time in seconds after which that is too old. All takes of the entries happen, or none; what else the
-- entries have happens always. The answer is 2 if the takes have happened and all strings ended as the node knows.
-- Otherwise it is 1 if the takes have happened, or 0; and for each entry its length and 'E' if the string ended as the
-- node knows, 'T' and the bytes after that, 'A' and all bytes, or '!' and an error.
local function accounts(body, base, at)
	local _, count, h, l, last, first = unpack_from('<BI2dI4d', body, at)
	late = math.max(nowh + 1 - last, 0) * 1000
	if (nowh > h or nowh == h and nowl >= l) and nowh <= last then
		at = first
		for i = 1, count do
			local flag, known, due, record, rest, next = unpack_from(ENTRY, body, at)
			local key = KEYS[base + i - 1]
			if redis.pcall('GETRANGE', key, NEWEST, '-1') ~= known or known == '' and call('EXISTS', key) == 1 then
				return compare(body, base, first, count, true)
			end
			records[i], rests[i], flags[i], due_times[i], at = record, rest, flag, due, next + BESIDE
		end
		for i = 1, count do
			local flag = flags[i]
			if records[i] ~= '' then
				write(KEYS[base + i - 1], records[i] .. stamp .. rests[i], flag % 4 >= PROLONGS and due_times[i], flag % 8 >= BEGINS)
			end
		end
		return '\2'
	end
	return compare(body, base, first, count, false)
end

-- flush_accounts writes what has changed. By the clock of a test, keys do not expire.
local function flush_accounts()
	for i = 1, written do
		local due = ARGV[3] == '' and dues[i]
		if not begun[i] then
			call('APPEND', keys[i], bytes[i])
			if due then call('PEXPIREAT', keys[i], string.format('%d', due)) end
		elseif due then
			call('SET', keys[i], bytes[i], 'PXAT', string.format('%d', due))
		else
			call('SET', keys[i], bytes[i])
		end
	end
end

steps[ACCOUNTS] = accounts
