-- run runs one operation, and returns its answer. A step gets a body, the index before that of its first key, and the
-- index in the body where it begins. If the clock went back, entries may be in windows again that had left them: known
-- accounts are forgotten.
local function run(sec, ns, base, body)
	if sec < nowh or sec == nowh and ns < nowl then known, how_many_known = {}, 0 end
	nowh, nowl, trouble = sec, ns, nil
	return steps[byte(body)](body, base - 1, 1)
end

-- write writes an account. Its key expires when nothing of it is in use any more.
local function write(a)
	local due = a[FULL] * 1000 + math.ceil(a[FULL + 1] / 1000000)
	if ARGV[3] ~= '' then due = 99999999999999 end -- by the clock of a test, keys do not expire
	local bytes, log = bytes_of(a), a[LOG]
	if not log or log.whole or #bytes ~= #a[RAW] then
		if log then due = due + SLACK end
		call('SET', a[KEY], log and bytes .. ring_bytes(a) or bytes, 'PXAT', decimal(due))
	else
		call('SETRANGE', a[KEY], '0', bytes)
		flush_ring(a)
		if log.due and due <= log.due then
			due = log.due
		else
			due = due + SLACK
			call('PEXPIREAT', a[KEY], decimal(due))
		end
	end
	if log then
		log.due, log.whole = due, nil
		for slot in pairs(log.changed) do log.changed[slot] = nil end
	end
	a[DIRTY], a[RAW] = false, bytes
end

-- flush writes the changed accounts, and the books.
local function flush()
	for _, a in pairs(touched) do
		if a[DIRTY] and (not a[LIVE] or not ahead(a[FULL], a[FULL + 1])) then
			call('DEL', a[KEY])
		else
			if a[DIRTY] then write(a) end
			if a[LIVE] then remember(a) end
		end
	end
	flush_books()
	flush_marks()
end
