-- run runs one operation, and returns its answer. A step gets a body, the index before that of its first key, and the
-- index in the body where it begins.
local function run(sec, ns, base, body)
	nowh, nowl, trouble = sec, ns, nil
	return steps[byte(body)](body, base - 1, 1)
end

-- flush writes the changed accounts, and the books. A key expires when nothing of it is in use any more.
local function flush()
	for _, a in pairs(touched) do
		local full = a[FULL] < nowh or a[FULL] == nowh and a[FULL + 1] <= nowl
		if a[DIRTY] and (full or not a[LIVE]) then
			call('DEL', a[KEY])
		elseif a[DIRTY] then
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
				if log.cached > MOST_CACHED then log.entries, log.cached = {}, 0 end
			end
			remember(a, bytes)
		end
	end
	flush_books()
	flush_marks()
end
