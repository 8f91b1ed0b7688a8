-- session runs a batch of operations exactly once. The text before it defines begin, which gets the
-- keys and the arguments of the call; run, which decides one operation; and flush, which writes the
-- changes of all of them.
--
-- It returns a line with the batch's number, the birth mark, the time in seconds and nanoseconds, and the length of each
-- answer, and after it the answers.
--
-- KEYS[1]  the caller's marker: what its last batch has returned
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

	local born, marker, last = ARGV[5], false, nil
	if number ~= '' then
		marker = redis.call('GETRANGE', KEYS[1], '0', '63') -- which has all but the answers
	end
	local current
	if marker then
		last, current = string.match(marker, '^(%d+) (%S+)')
	end
	if current ~= born then -- or the server has the birth mark that the caller knows
		current = redis.call('GET', KEYS[2])
	end
	if (current or '') ~= born or not current and number ~= '' then -- the server is new to the caller, or has forgotten everything
		if not current then
			current = time[1] .. '.' .. time[2]
			local written = redis.pcall('SET', KEYS[2], current)
			if written.err then
				return written
			end
		end
		return redis.error_reply('BORN ' .. current)
	end

	if number ~= '' then
		if last == number then
			return redis.call('GET', KEYS[1])
		end
		if last and tonumber(last) > tonumber(number) then
			return redis.error_reply('STALE the caller has gone on')
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

	local head, answers, base = {number, born, string.format('%d', sec), string.format('%d', ns)}, {}, 3
	for i = 1, #ARGV[4] / 2 do
		local high, low = string.byte(ARGV[4], 2 * i - 1, 2 * i)
		local ok, answer = pcall(run, sec, ns, base, ARGV[5 + i])
		if not ok then
			if type(answer) == 'table' then
				answer = answer.err
			end
			answer = '!' .. tostring(answer)
		end
		head[i + 4], answers[i] = string.format('%d', #answer), answer
		base = base + 256 * high + low
	end

	answers[0] = table.concat(head, ' ') .. '\n'
	local reply = table.concat(answers, '', 0)
	if number ~= '' then
		-- If the server refuses writes, it refuses this one, and nothing has happened.
		local written = redis.pcall('SET', KEYS[1], reply, 'PX', 60000)
		if written.err then
			return written
		end
		local ok, fault = pcall(flush)
		if not ok then -- this should not happen; if it does, the answers are not true
			redis.call('DEL', KEYS[1])
			error(fault, 0)
		end
	end
	return reply
end
