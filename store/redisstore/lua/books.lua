-- The books. A page of them, an hour or a day, is a hash: a field for each line, with the names of
-- its project, model and key between NULs, and the sums of its units as the value. Another key is
-- the set of the names of all pages. A line has as many units as it was ever given, so that an older gateway keeps those
-- of a newer one.

const MAX_HI 4611686018     -- 2^62, the most that a sum can be
const MAX_LO 427387904

-- correct adds to a sum. The result is from zero to 2^62. A number is a pair, hi * 1e9 + lo, because whole numbers beyond
-- 2^53 are not exact in Lua.
local function correct(usedh, usedl, h, l)
	local sumh, suml = usedh + h, usedl + l
	if suml >= BILLION then sumh, suml = sumh + 1, suml - BILLION end
	if sumh < 0 then return 0, 0 end
	if sumh > MAX_HI or sumh == MAX_HI and suml > MAX_LO then return MAX_HI, MAX_LO end
	return sumh, suml
end

const SUMS '<dI4dI4dI4dI4dI4dI4dI4dI4dI4dI4' -- of a short line, which has nothing beside tokens
const NUMBERS 20 -- of short sums: two for each unit
const UNIT_BYTES 12

-- packing returns how so many numbers of sums are packed.
local function packing(numbers)
	return numbers == NUMBERS and SUMS or '<' .. string.rep('dI4', numbers / 2)
end

-- page returns a page, as this call leaves it.
local function page(key, all)
	local p = pages[key]
	if not p then
		p = {key = key, all = all, lines = {}, gone = {}}
		pages[key] = p
	end
	return p
end

-- line returns the sums of a line, or nil if there is none.
local function line(p, field)
	local sums = p.lines[field]
	if not sums and not p.gone[field] then
		local value = call('HGET', p.key, field)
		if value then
			local numbers = #value / UNIT_BYTES * 2
			sums = {unpack_from(packing(numbers), value)}
			sums[numbers + 1] = nil -- where the value ends
			p.lines[field] = sums
		end
	end
	return sums
end

-- place returns the sums of the line that an entry goes to, as Place in package books does.
local function place(p, field, most)
	local sums = line(p, field)
	if sums then return sums end
	p.count = p.count or call('HLEN', p.key)
	if p.count >= most then
		local project = string.match(field, '^[^%z]*')
		local root = string.match(project, '^[^/]*/')
		local shared = {project, root and root .. '(other)' or project, '(other)'}
		for i = 1, 3 do
			field = shared[i] .. '\0(other)\0(other)'
			sums = line(p, field)
			if sums then return sums end
			if p.count < (i + 1) * most then break end
		end
	end
	p.count, p.fresh = p.count + 1, p.fresh or p.count == 0
	sums = {}
	for i = 1, NUMBERS do sums[i] = 0 end
	p.lines[field] = sums
	return sums
end

-- add_sums adds numbers to sums, which become long if the numbers are.
local function add_sums(sums, added)
	for i = #sums + 1, #added do sums[i] = 0 end
	for i = 1, #added, 2 do
		if added[i] ~= 0 or added[i + 1] ~= 0 then
			sums[i], sums[i + 1] = correct(sums[i], sums[i + 1], added[i], added[i + 1])
		end
	end
end

-- book adds to lines. The request has the most separate lines of a page, and of each line its field, how many numbers are
-- added, and these. The keys are the page and the set of all pages.
local function book(body, base, at)
	local p, most = page(KEYS[base], KEYS[base + 1]), unpack_from('<d', body, at + 1)
	local lines = {}
	at = at + 9
	while at <= #body do
		local field, numbers
		field, numbers, at = unpack_from('<I4c0B', body, at)
		local added = {unpack_from(packing(numbers), body, at)}
		at, added[numbers + 1] = added[numbers + 1], nil
		lines[#lines + 1] = {place(p, field, most), added}
	end
	for _, l in ipairs(lines) do add_sums(l[1], l[2]) end
	return DONE
end

-- move moves lines from an hour to its day. The request has the most separate lines of a page, and
-- the fields of the lines; those that are gone were moved before. The keys are the hour, the day, and
-- the set of all pages.
local function move(body, base, at)
	local hour, day = page(KEYS[base], KEYS[base + 2]), page(KEYS[base + 1], KEYS[base + 2])
	local most = unpack_from('<d', body, at + 1)
	at = at + 9
	while at <= #body do
		local field
		field, at = unpack_from('<I4c0', body, at)
		local sums = line(hour, field)
		if sums then
			add_sums(place(day, field, most), sums)
			hour.lines[field], hour.gone[field] = nil, true
		end
	end
	return DONE
end

-- flush_books writes the pages.
local function flush_books()
	for key, p in pairs(pages) do
		for field, sums in pairs(p.lines) do call('HSET', key, field, pack(packing(#sums), unpack(sums))) end
		if p.fresh then call('SADD', p.all, key) end
		if next(p.gone) then
			for field in pairs(p.gone) do call('HDEL', key, field) end
			if call('EXISTS', key) == 0 then call('SREM', p.all, key) end
		end
	end
end

const DONE '\1'

steps[BOOK], steps[MOVE] = book, move

-- An operation that is named happens once, whichever processes ask for it and however often: the key of a marker shows
-- that it has happened.
const MARKED 2851200000 -- milliseconds for which a marker is kept: longer than any deposit

-- once runs an operation, unless its marker is there or it cannot be done as a whole. The first key is the marker, and the others are those of the
-- operation, whose request follows.
local function once(body, base, at)
	local marker = KEYS[base]
	if marks[marker] or call('EXISTS', marker) == 1 then return DONE end
	strict = true
	local answer = steps[byte(body, at + 1)](body, base + 1, at + 1)
	marks[marker] = true
	return answer
end

steps[ONCE] = once

-- run runs one operation, and returns its answer. A step gets a body, the index of its first key, and the index in the
-- body where it begins.
local function run(sec, ns, base, body)
	nowh, nowl, stamp, strict = sec, ns, pack('<dI4', sec, ns), false
	return steps[byte(body)](body, base, 1)
end

-- flush writes what has changed.
local function flush()
	flush_accounts()
	flush_books()
	for marker in pairs(marks) do call('SET', marker, '1', 'PX', MARKED) end
end
