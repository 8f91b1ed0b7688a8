-- Operations that happen once, whichever processes ask for them and however often: the key of a
-- marker shows that one has happened.

const MARKED 2851200000 -- milliseconds for which a marker is kept: longer than any deposit

F.marks = {}

-- once runs an operation, unless its marker is there. The first key is the marker, and the others are
-- those of the operation, whose request follows.
function F.once(body, base)
	local marker = KEYS[base + 1]
	if F.marks[marker] or call('EXISTS', marker) == 1 then return ALLOWED end
	local answer = F.steps[byte(body, 2)](string.sub(body, 2), base + 1)
	if answer == ALLOWED then F.marks[marker] = true end
	return answer
end

function F.flush_marks()
	for marker in pairs(F.marks) do call('SET', marker, '1', 'PX', MARKED) end
end

F.steps[ONCE] = F.once
