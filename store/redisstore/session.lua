-- session runs a batch of operations exactly once. The text before it defines begin, which gets the
-- keys and the arguments of the call; run, which decides one operation; and flush, which writes the
-- changes of all of them.
--
-- KEYS[1]  the caller's marker: the number of its last batch, and the answers
-- KEYS[2]  the birth mark: since when the server remembers
-- KEYS[3…] the keys of the operations, in order
-- ARGV[1]  the batch's number, or "" if it only reads
-- ARGV[2]  the server's time in seconds when the batch was first sent
-- ARGV[3]  the time of a test's clock, "sec ns", or "" for the server's
-- ARGV[4]  for each operation, the number of its keys in two bytes
-- ARGV[5]  the birth mark as the caller knows it, or ""
-- ARGV[6…] the requests of the operations
local function session(KEYS, ARGV)
	begin(KEYS, ARGV)
	local time = redis.call('TIME')
	local sec, ns = tonumber(time[1]), tonumber(time[2]) * 1000
	local number, sent = ARGV[1], tonumber(ARGV[2])

	local marker, born
	if number ~= '' then
		local found = redis.call('MGET', KEYS[1], KEYS[2])
		marker, born = found[1], found[2]
	else
		born = redis.call('GET', KEYS[2])
	end
	if (born or '') ~= ARGV[5] or not born and number ~= '' then -- the server is new to the caller, or has forgotten everything
		if not born then
			born = time[1] .. '.' .. time[2]
			local written = redis.pcall('SET', KEYS[2], born)
			if written.err then
				return written
			end
		end
		return redis.error_reply('BORN ' .. born)
	end

	if number ~= '' then
		if marker then
			local last = string.match(marker, '^%d+') -- a space and the answers follow
			if last == number then
				return cmsgpack.unpack(string.sub(marker, #last + 2))
			end
			if tonumber(last) > tonumber(number) then
				return redis.error_reply('STALE the caller has gone on')
			end
		end
		-- The marker of a batch that has run lives for a minute. So a batch does not run if it may
		-- have been under way for that long, or if the clocks differ so much that nobody knows.
		if sec < sent - 5 or sec > sent + 50 then
			return redis.error_reply('LATE ' .. time[1] .. ' ' .. time[2])
		end
	end

	if ARGV[3] ~= '' then
		local s, n = string.match(ARGV[3], '^(%d+) (%d+)$')
		sec, ns = tonumber(s), tonumber(n)
	end

	local answers = {sec, ns}
	local base = 3
	for i = 1, #ARGV[4] / 2 do
		local high, low = string.byte(ARGV[4], 2 * i - 1, 2 * i)
		local ok, answer = pcall(run, sec, ns, base, ARGV[5 + i])
		if not ok then
			if type(answer) == 'table' then
				answer = answer.err
			end
			answer = '!' .. tostring(answer)
		end
		answers[i + 2] = answer
		base = base + 256 * high + low
	end

	if number ~= '' then
		-- If the server refuses writes, it refuses this one, and nothing has happened.
		local written = redis.pcall('SET', KEYS[1], number .. ' ' .. cmsgpack.pack(answers), 'PX', 60000)
		if written.err then
			return written
		end
		local ok, fault = pcall(flush)
		if not ok then -- this should not happen; if it does, the answers are not true
			redis.call('DEL', KEYS[1])
			error(fault, 0)
		end
	end
	return answers
end
