-- run runs one operation, and returns its answer. A step gets a body, the index before that of its first key, and the index in
-- the body where it begins.
local function run(sec, ns, base, body)
	nowh, nowl, trouble = sec, ns, nil
	return steps[byte(body)](body, base - 1, 1)
end

-- flush writes the changed accounts, and the books. A key expires when nothing of it is in use any more.
local function flush()
	for i = 1, #order do
		local a = order[i]
		local full = a[FULL] < nowh or a[FULL] == nowh and a[FULL + 1] <= nowl
		if a[DIRTY] and (full or not a[LIVE]) then
			call('DEL', a[KEY], a[RING] or a[KEY])
		elseif a[DIRTY] then
			local due = a[FULL] * 1000 + math.ceil(a[FULL + 1] / 1000000)
			if ARGV[3] ~= '' then due = 99999999999999 end -- by the clock of a test, keys do not expire
			if a[LOG] then flush_log(a, due) end
			local bytes = bytes_of(a)
			call('SET', a[KEY], bytes, 'PXAT', string.format('%d', due)) -- Redis would format it with an exponent
			remember(a, bytes)
		end
	end
	flush_books()
	flush_marks()
end
