-- Operations that happen once, whichever processes ask for them and however often: the key of a
-- marker shows that one has happened.

const MARKED 2851200000 -- milliseconds for which a marker is kept: longer than any deposit

-- once runs an operation, unless its marker is there. The first key is the marker, and the others are
-- those of the operation, whose request follows.
local function once(body, base, at)
	local marker = KEYS[base + 1]
	if marks[marker] or call('EXISTS', marker) == 1 then return ALLOWED end
	local answer = steps[byte(body, at + 1)](body, base + 1, at + 1)
	if answer == ALLOWED then marks[marker] = true end
	return answer
end

local function flush_marks()
	for marker in pairs(marks) do call('SET', marker, '1', 'PX', MARKED) end
end

steps[ONCE] = once
