-- The books. A page of them, an hour or a day, is a hash: a field for each line, with the names of
-- its project, model and key between NULs, and the sums of its units as the value. Another key is
-- the set of the names of all pages. A line has as many units as it was ever given, so that an older gateway keeps those
-- of a newer one.

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
-- added, and these. It ends at index last, or with the body. The keys are the page and the set of all pages.
local function book(body, base, at, last)
	local p, most = page(KEYS[base + 1], KEYS[base + 2]), unpack_from('<d', body, at + 1)
	local lines = {}
	at, last = at + 9, last or #body
	while at <= last do
		local field, numbers
		field, numbers, at = unpack_from('<I4c0B', body, at)
		local added = {unpack_from(packing(numbers), body, at)}
		at, added[numbers + 1] = added[numbers + 1], nil
		lines[#lines + 1] = {place(p, field, most), added}
	end
	for _, l in ipairs(lines) do add_sums(l[1], l[2]) end
	return ALLOWED
end

-- move moves lines from an hour to its day. The request has the most separate lines of a page, and
-- the fields of the lines; those that are gone were moved before. The keys are the hour, the day, and
-- the set of all pages.
local function move(body, base, at)
	local hour, day = page(KEYS[base + 1], KEYS[base + 3]), page(KEYS[base + 2], KEYS[base + 3])
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
	return ALLOWED
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

-- booked runs an operation, and adds to lines if it could be done. The request has the length of that
-- of book, that of book, and that of the operation. The keys are the page, the set of all pages, and
-- those of the operation.
local function booked(body, base, at)
	local length, first = unpack_from('<I4', body, at + 1)
	local next = first + length
	local answer = steps[byte(body, next)](body, base + 2, next)
	if answer == ALLOWED then book(body, base, first, next - 1) end
	return answer
end

steps[BOOK], steps[MOVE], steps[BOOKED] = book, move, booked
