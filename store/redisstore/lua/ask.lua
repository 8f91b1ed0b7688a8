-- inherits reports whether a limit that has no counter may take over the counter of another limit
-- of the same shape: one that is not among limits, which begin at index first. It also reports
-- true if there are too many counters.
local function inherits(counters, limits, first, shape)
	for i = 1, #counters do
		local c, asked = counters[i], false
		if c[SHAPE] == shape then
			for k = first, #limits do asked = asked or limits[k][2] == c[LIMIT] end
			if not asked then return true end
		end
	end
	return #counters + #limits - first >= MOST_COUNTERS
end

-- ask has a function for each kind of limit. The function returns whether n may pass, the state
-- of the counter after that, and until when that is in use. It adds the counter to the answer,
-- so that package limit can make the same decision.
local ask = {}

local function report(c, answer, filled)
	if not c then
		for i = filled + 1, filled + 6 do answer[i] = 0 end
		return
	end
	if ahead(c[AT], c[AT + 1]) then trouble = UNREADY end
	for i = 1, 6 do answer[filled + i] = c[AT - 1 + i] end
end

-- fixed is ask for a fixed window: the one that the counter is in, or else a new one from start to
-- end.
local function fixed(c, l, charge, starth, startl, endh, endl)
	local usedh, usedl = charge[3], charge[4]
	if c and ahead(c[A], c[A + 1]) then
		starth, startl, endh, endl = c[AT], c[AT + 1], c[A], c[A + 1]
		usedh, usedl = plus(c[B], c[B + 1], usedh, usedl)
	end
	local allows = not less(l[5], l[6], usedh, usedl)
	return allows, starth, startl, endh, endl, usedh, usedl, endh, endl
end

ask[ALIGNED] = function(a, c, l, charge, answer, filled)
	report(c, answer, filled)
	local h, low = window_start(nowh, nowl, l[7], l[8], l[9], l[10])
	return fixed(c, l, charge, h, low, plus(h, low, l[9], l[10]))
end

ask[ANCHORED] = function(a, c, l, charge, answer, filled)
	report(c, answer, filled)
	return fixed(c, l, charge, nowh, nowl, plus(nowh, nowl, l[7], l[8]))
end

ask[CALENDAR] = function(a, c, l, charge, answer, filled)
	report(c, answer, filled)
	for i = 7, 11, 2 do
		if not ahead(l[i], l[i + 1]) and ahead(l[i + 2], l[i + 3]) then
			return fixed(c, l, charge, l[i], l[i + 1], l[i + 2], l[i + 3])
		end
	end
	trouble = SKEWED
end

ask[SLIDING] = function(a, c, l, charge, answer, filled)
	report(c, answer, filled)
	local ph, pl = l[9], l[10]
	local sh, sl = window_start(nowh, nowl, l[7], l[8], ph, pl)
	local eh, el = plus(sh, sl, ph, pl)
	local oldh, oldl, usedh, usedl = 0, 0, 0, 0
	if c then oldh, oldl, usedh, usedl = slid(c, sh, sl, ph, pl) end
	usedh, usedl = plus(usedh, usedl, charge[3], charge[4])
	local roomh, rooml = minus(l[5], l[6], usedh, usedl)
	local allows = roomh >= 0
	if allows and (oldh > 0 or oldl > 0) then
		local lefth, leftl = minus(eh, el, nowh, nowl)
		roomh, rooml = plus(roomh, rooml, 0, 1)
		allows = not within(roomh, rooml, ph, pl, oldh, oldl, lefth, leftl)
	end
	return allows, sh, sl, oldh, oldl, usedh, usedl, plus(eh, el, ph, pl)
end

-- For a log, the answer has the sum of the window, the time of the newest entry, and the time of
-- the entry that must leave the window before what is denied can pass.
ask[LOGGING] = function(a, c, l, charge, answer, filled)
	for i = 1, 6 do answer[filled + i] = 0 end
	log_ready(a, l[7], l[8], charge[5])
	local log = a[LOG]
	local w = log and window(log, l[7], l[8])
	if trouble then return end
	if not w then return not less(l[5], l[6], charge[3], charge[4]) end
	slide(a, w)
	answer[filled + 1], answer[filled + 2], answer[filled + 3], answer[filled + 4] = w[SUM], w[SUM + 1], log[NEWEST], log[NEWEST + 1]
	if l[4] == 1 then return false end
	local usedh, usedl = plus(w[SUM], w[SUM + 1], charge[3], charge[4])
	local overh, overl = minus(usedh, usedl, l[5], l[6])
	if overh < 0 or overh == 0 and overl == 0 then return true end
	local i = w[FIRST]
	while i < log[NEXT] and (overh > 0 or overh == 0 and overl > 0) do
		local e = entry(a, i)
		overh, overl = minus(overh, overl, e[3], e[4])
		answer[filled + 5], answer[filled + 6], i = e[1], e[2], i + 1
	end
	return false
end
